"""Which host this is in sysinv: from its name to its uuid and what it is there for.

Not here: the host's filesystems (`sysinv`).
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec

from agent.core.inventory_errors import HostUnknown, InventoryGarbled, InventoryRefused
from agent.http.messages import Deadline
from agent.inventory.row import Row
from agent.inventory.sysinv_api import SysinvApi, is_absent

CACHE_SECONDS: Final = 600.0
"""A reinstalled host gets a new uuid; sysinv answers the old one with an empty list, not with 404."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host as sysinv knows it."""

    uuid: str
    is_controller: bool
    """Whether the system-wide controller_fs rows are about it."""


class HostFinder:
    """Looks one host up and remembers it for a while."""

    def __init__(self, api: SysinvApi, *, hostname: str, monotonic_seconds: Callable[[], float]) -> None:
        self._api = api
        self._hostname = hostname
        self._monotonic_seconds = monotonic_seconds
        self._found: Host | None = None
        self._found_at_seconds = 0.0

    def cached(self) -> Host | None:
        """The host as it was found in the last ten minutes; None when it must be looked up."""
        if self._monotonic_seconds() - self._found_at_seconds >= CACHE_SECONDS:
            return None
        return self._found

    def look_up(self, deadline: Deadline) -> Host:
        """Ask for the host by its name: the only place where sysinv takes a name instead of a uuid.

        Raises:
            HostUnknown: sysinv has no host of that name.
            InventoryError: it can't be said.
        """
        self._found = None
        if set(self._hostname) <= {"."}:  # would lead out of /ihosts/
            raise self._unknown("no host can have this name")
        try:
            document = self._api.get(f"/ihosts/{quote(self._hostname, safe='')}", deadline)
        except InventoryRefused as error:
            if not (is_absent(error) and error.facts["is_api"]):
                raise
            raise self._unknown(str(error.facts["reason"])) from None
        row = Row(document.fields, url=document.url, number=1)
        uuid, hostname = row.text("uuid"), row.optional_text("hostname")
        if (hostname or "").lower() != self._hostname.lower():
            raise InventoryGarbled(
                subject=document.url,
                reason=f"asked for {self._hostname}, the answer is about {hostname!r:.60}",
            )
        self._found = Host(uuid=uuid, is_controller=row.optional_text("personality") == "controller")
        self._found_at_seconds = self._monotonic_seconds()
        return self._found

    def _unknown(self, reason: str) -> HostUnknown:
        return HostUnknown(subject=self._hostname, origin=self._api.origin, reason=reason)
