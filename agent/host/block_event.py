"""One event of a block device, as the watcher and its source hand it on.

Not here: the source (`netlink`), what an event leads to (`udev`).
"""

from collections.abc import Mapping

import msgspec


class BlockEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a block device."""

    action: str
    device: str
    properties: Mapping[str, str]
