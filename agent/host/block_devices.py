"""Block devices as sysfs shows them, from a volume group's own upwards.

Anything may vanish while it is read; what vanished is not there.  Not here: what the devices mean
(`agent.core.layers.stacks`), which LVs are active (`sysfs`).
"""

import os
from collections.abc import Mapping
from typing import Final

from agent.core.layers.view import BlockDevice
from agent.core.units import MAX_BYTES

_SECTOR_BYTES: Final = 512
"""The unit of sysfs sizes, whatever the disk's own sectors are."""
_PIECE_BYTES: Final = 64 * 1024
_MAX_PIECES: Final = 256


def read_devices(directory: str, vg_uuid: str) -> Mapping[str, BlockDevice] | None:
    """The devices of that volume group and everything that holds them, by kernel name.

    `directory` is sysfs's ``block``.  None = it is not there.
    """
    try:
        names = names_in(directory)
    except OSError:
        return None
    prefix = f"LVM-{vg_uuid.replace('-', '')}"
    wanted = [
        name
        for name in names
        if name.startswith("dm-") and _read_dm(directory, name, "uuid").startswith(prefix)
    ]
    devices: dict[str, BlockDevice] = {}
    while wanted:
        name = wanted.pop()
        device = None if name in devices else _read_device(directory, name)
        if device is not None:
            devices[name] = device
            wanted += device.holders
    return devices


def _read_device(directory: str, name: str) -> BlockDevice | None:
    try:
        sectors = int(read_text(f"{directory}/{name}/size"))
        if not 0 <= sectors <= MAX_BYTES // _SECTOR_BYTES:
            return None
        return BlockDevice(
            name=name,
            number=read_text(f"{directory}/{name}/dev"),
            size_bytes=sectors * _SECTOR_BYTES,
            holders=tuple(names_in(f"{directory}/{name}/holders")),
            dm_name=_read_dm(directory, name, "name") or None,
            dm_uuid=_read_dm(directory, name, "uuid") or None,
            is_suspended=_read_dm(directory, name, "suspended") == "1",
        )
    except (OSError, ValueError):  # it has gone meanwhile
        return None


def _read_dm(directory: str, name: str, key: str) -> str:
    """One of device-mapper's own facts; empty for any other kind of device."""
    try:
        return read_text(f"{directory}/{name}/dm/{key}")
    except OSError:
        return ""


def names_in(directory: str) -> list[str]:
    """Sorted.

    Raises:
        OSError: it is no directory, or has gone.
    """
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def read_text(path: str) -> str:
    """A file of the kernel's, without its last newline.

    Hundreds of them are read in each audit: open() and its buffers would cost three times as much.

    Raises:
        OSError: it is not there, or has gone while it was read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = [os.read(descriptor, _PIECE_BYTES)]
        while len(pieces[-1]) > 0 and len(pieces) < _MAX_PIECES:
            pieces.append(os.read(descriptor, _PIECE_BYTES))
    finally:
        os.close(descriptor)
    return os.fsdecode(b"".join(pieces)).removesuffix("\n")
