"""Which logical volumes the kernel serves, from /sys/block/dm-*/dm/uuid.

LVM itself can't say so without device-mapper's control device, which a sandboxed reader does not get.
Not here: sizes and holders of devices.
"""

from pathlib import Path
from typing import Final

_PREFIX: Final = "LVM-"
_ID_CHARACTERS: Final = 64
"""32 of the volume group's UUID, 32 of the LV's, both without dashes."""
_HIDDEN_LAYERS: Final = frozenset({"-real", "-cow"})
"""What lies below an origin and its snapshots.  The LV itself has a device of its own above; after an
interrupted operation a layer can be left without it, and then nobody can use the LV.  All other suffixes
(-tpool, -pool, -tdata, -cdata, ...) name what the LV is, not a layer of something else."""


def read_active_volumes(root: Path = Path("/sys")) -> frozenset[str] | None:
    """The UUIDs of volume group and LV, joined and without dashes, of every LV that is active.

    None when the kernel's view is not visible here: no /sys, or an empty one, as in some containers.
    """
    block = root / "block"
    try:
        devices = list(block.iterdir())
    except OSError:
        return None
    # A machine with a volume group has at least the disk below it.
    if not devices:
        return None
    found = (_active_volume(device) for device in devices if device.name.startswith("dm-"))
    return frozenset(volume for volume in found if volume is not None)


def _active_volume(device: Path) -> str | None:
    """The LV that one device-mapper device makes active; None when it is no LV, or has just gone away."""
    try:
        uuid = (device / "dm" / "uuid").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
    volume, suffix = uuid.removeprefix(_PREFIX)[:_ID_CHARACTERS], uuid[len(_PREFIX) + _ID_CHARACTERS :]
    if not uuid.startswith(_PREFIX) or len(volume) != _ID_CHARACTERS or suffix in _HIDDEN_LAYERS:
        return None
    return volume
