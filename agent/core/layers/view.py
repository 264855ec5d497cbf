"""What a host shows of its block devices, mounts and filesystems at one moment: plain values.

Pure.  Not here: reading them (`agent.host.layers`), joining them (`stacks`).
"""

from collections.abc import Mapping

import msgspec

from agent.core.layers.mounts import Mount
from agent.core.layers.superblock import Superblock, SuperblockError, read_superblock
from agent.core.models import DrbdState, Finding
from agent.core.report import LayerSection


class BlockDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One block device as sysfs shows it."""

    name: str
    """The kernel's name: dm-3, drbd0."""
    number: str
    """major:minor, as mountinfo writes it."""
    size_bytes: int
    holders: tuple[str, ...] = ()
    dm_name: str | None = None
    dm_uuid: str | None = None
    is_suspended: bool = False


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """What the host shows of its devices at one moment."""

    devices: Mapping[str, BlockDevice]
    mounts: Mapping[str, Mount]
    drbd: Mapping[str, DrbdState] = {}
    drbd_version: str | None = None
    drbd_resources: Mapping[str, str] = {}
    """Resource names by device, where udev made links for them."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """statvfs of a mounted filesystem, in blocks."""

    block_bytes: int
    blocks: int
    """Without the filesystem's own overhead."""
    free_blocks: int
    available_blocks: int

    @property
    def used_percent(self) -> float | None:
        """As df counts it: of what is used or can still be used; None for a filesystem without blocks."""
        used = self.blocks - self.free_blocks
        total = used + self.available_blocks
        return round(100 * used / total, 1) if total > 0 else None


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What reading a device and asking its mount gave."""

    superblock: Superblock | None = None
    usage: Usage | None = None
    problem: str | None = None
    """Why something could not be looked at."""


def make_probe(mount: Mount | None, head: bytes | None, usage: Usage | None, problem: str | None) -> Probe:
    """Make sense of the first bytes of a device (None: not read); a mount's own word counts more."""
    superblock = None
    try:
        superblock = None if head is None else read_superblock(head)
    except SuperblockError as error:
        problem = problem or f"its superblock is damaged: {error}"
    if superblock is not None and mount is not None and superblock.type[:3] != mount.type[:3]:
        superblock = None
    return Probe(superblock=superblock, usage=usage, problem=problem)


class LayerScan(msgspec.Struct, frozen=True, kw_only=True):
    """All layers of one volume group."""

    layers: Mapping[str, tuple[LayerSection, ...]] | None
    """By LV name; an LV that is missing here could not be looked at.  None = none could."""
    findings: tuple[Finding, ...] = ()
    drbd: tuple[DrbdState, ...] | None = None
    """The DRBD devices on the volume group; None = it can't be said."""
