"""Why an inventory API gave no recorded sizes: unreachable, refused, garbled, or nothing there.

Not here: the base of all errors and those of recorded-size files (`errors`).
"""

from agent.core.errors import InventoryError


class InventoryUnreachable(InventoryError):
    """No connection to the inventory, or none that can be trusted, or no answer in time."""

    kind = "inventory_unreachable"
    template = "{subject}: {reason}"
    hint_template = "{advice}"


class InventoryRefused(InventoryError):
    """The inventory answered with an error.  `status` is HTTP's."""

    kind = "inventory_refused"
    template = "{subject} answered {status}: {reason}"
    hint_template = "{advice}"


class InventoryGarbled(InventoryError):
    """The inventory answered something that can't be what it records."""

    kind = "inventory_garbled"
    template = "{subject}: {reason}"
    hint_template = "see what `curl -i {subject}` answers: is it the inventory, or a proxy in between?"


class HostUnknown(InventoryError):
    """The inventory has never heard of this host; its empty lists for it mean nothing."""

    kind = "host_unknown"
    template = "{origin} knows no host {subject!r}: {reason}"
    hint_template = "set [agent] hostname to the name that `system host-list` shows for this host"


class NothingRecorded(InventoryError):
    """The inventory knows the host and records not one filesystem for it."""

    kind = "inventory_empty"
    template = "{origin} records no filesystem for host {subject!r}"
    hint_template = "look at `system host-fs-list {subject}`: a host that is installed always has some"
