"""How to mend one filesystem whose record and LV part: the hint, by who keeps the record.

A file can simply be edited.  sysinv refuses the size it already records, counts growth from its record
and not from the LV, and lets lvextend fail silently when the room is not there.  Commands stand in hints
as text and are never run.  Pure.  Not here: what was found (`advice`), whether a resize would be
accepted in full (`preflight`).
"""

from typing import Final

from agent.core.extents.growth import Growth, growth_to
from agent.core.extents.room import allocatable_room, is_read_only
from agent.core.models import Phase, RecordedFilesystem, Source, VolumeGroup
from agent.core.report import FilesystemSection, FilesystemVerdict
from agent.core.units import GIB, ceil_div, format_exact, format_gib

_KEPT_IN_BACKUP: Final = frozenset({"platform", "database"})
"""sysinv wants backup >= platform + database + 5 GiB before it lets one of these grow."""


def advise(
    volume_group: VolumeGroup,
    record: RecordedFilesystem,
    filesystem: FilesystemSection,
    hostname: str | None,
    *,
    is_below_drbd: bool,
) -> str:
    """What an operator can do about a filesystem that was judged to be drift."""
    if record.source is Source.FILE:
        return _advise_file(volume_group, record, filesystem, is_below_drbd=is_below_drbd)
    return _advise_sysinv(volume_group, record, filesystem, hostname)


def advise_thaw(volume_group: VolumeGroup) -> str | None:
    """What must come before any change, where LVM refuses them all; None = it does not.

    lvm2 has no command for the WRITE flag of a volume group.
    """
    name = volume_group.name
    if volume_group.missing_pv_count:
        return (
            f"bring the missing disk back (`vgextend --restoremissing {name} DEVICE` if LVM still calls it "
            f"missing) or give it up (`vgreduce --removemissing {name}`; LVs that lie on it are removed with "
            "--force)"
        )
    if is_read_only(volume_group):
        return (
            f"make the volume group writable: `vgcfgbackup -f FILE {name}`, add "
            f'"WRITE" to its status in FILE, `vgcfgrestore -f FILE {name}`'
        )
    return None


def _advise_file(
    volume_group: VolumeGroup,
    record: RecordedFilesystem,
    filesystem: FilesystemSection,
    *,
    is_below_drbd: bool,
) -> str:
    lv = volume_group.find(record.logical_volume)
    growth = growth_to(volume_group, record.logical_volume, record.recorded_bytes)
    size = _lvm_size(record.recorded_bytes)
    if lv is None:
        command = f"lvcreate -L {size} -n {record.logical_volume} {volume_group.name}"
    elif filesystem.verdict is FilesystemVerdict.UNDERSIZED:
        # `lvextend -r` ends with status 5 and extends nothing when DRBD is on the LV.
        resize = "" if is_below_drbd else "-r "
        command = f"lvextend {resize}-L {size} {volume_group.name}/{lv.name}"
    else:
        return f'correct the record: size = "{format_exact(lv.size_bytes)}"'
    then = " (then `drbdadm resize` and grow the filesystem)" if lv is not None and is_below_drbd else ""
    return f"{_room_first(volume_group, growth)}`{command}`{then}, or correct the record"


def _advise_sysinv(
    volume_group: VolumeGroup,
    record: RecordedFilesystem,
    filesystem: FilesystemSection,
    hostname: str | None,
) -> str:
    """What the platform accepts: never the same size again, and it writes an Error row back itself."""
    if record.phase is Phase.FAILED:
        return (
            "the platform will write the LV's size back into the record; if it does not, look at sysinv.log"
        )
    if record.phase.is_deleting:
        return "look at sysinv.log on the active controller for why the deletion did not end"
    if filesystem.verdict is FilesystemVerdict.MISSING:
        return _advise_missing(volume_group, record)
    if filesystem.verdict is FilesystemVerdict.OVERSIZED:
        return _advise_oversized(record, filesystem, hostname)
    first = ""
    if record.phase.is_under_way:
        # Its check for a pending report can stay true for ever: a failed lvextend changes nothing to report.
        first = (
            f"look at sysinv.log and puppet.log for why it is still {record.state or record.phase}: until it "
            "ends, the platform may refuse resizes (an LVG update is still pending); then "
        )
    return f"{first}{_advise_undersized(volume_group, record, hostname)}"


def _advise_missing(volume_group: VolumeGroup, record: RecordedFilesystem) -> str:
    """The full manifest makes every LV that is not there, and its lvcreate fails hard."""
    growth = growth_to(volume_group, record.logical_volume, record.recorded_bytes)
    short_extents = _short_extents(volume_group, growth)
    if short_extents == 0:
        return f"the next unlock creates it; the {growth.needed_extents} extents for it are free"
    thaw = advise_thaw(volume_group)
    if thaw is not None:
        return f"{thaw}: the next unlock creates it ({growth.needed_extents} extents), and fails until then"
    return (
        f"free {short_extents} extents ({_size(volume_group, short_extents)}) or add a physical volume: "
        f"the next unlock creates it with {growth.needed_extents} extents, and fails as long as they are "
        "not there"
    )


def _advise_oversized(record: RecordedFilesystem, filesystem: FilesystemSection, hostname: str | None) -> str:
    step = record.granularity_bytes or GIB
    size_gib = record.recorded_bytes // step
    actual_gib = ceil_div(filesystem.actual_bytes or 0, step)
    text = f"the platform tolerates it; to make the record true: {_modify(record, actual_gib, hostname)}"
    if record.source is Source.HOST_FS:
        text += f" (accepted only while {actual_gib - size_gib} GiB are free, though the LV has them already)"
    return text


def _advise_undersized(volume_group: VolumeGroup, record: RecordedFilesystem, hostname: str | None) -> str:
    step = record.granularity_bytes or GIB
    size_gib = record.recorded_bytes // step
    growth = growth_to(volume_group, record.logical_volume, (size_gib + 1) * step)
    needed = (
        f"lvextend will need {growth.needed_extents} extents ({_size(volume_group, growth.needed_extents)})"
    )
    text = (
        f"{_room_first(volume_group, growth)}the platform refuses {size_gib} again: ask for {size_gib + 1}, "
        f"{_modify(record, size_gib + 1, hostname)}"
    )
    if record.source is Source.HOST_FS:
        return f"{text}. It counts that as 1 GiB, but {needed} and fails silently without them"
    if step != GIB:
        text += f" (the LV gets {step // GIB} GiB for each)"
    if record.name in _KEPT_IN_BACKUP:
        text += ", while backup has room for platform, database and 5 GiB more"
    return f"{text}; {needed}, on both controllers"


def _modify(record: RecordedFilesystem, size_gib: int, hostname: str | None) -> str:
    if record.source is Source.CONTROLLER_FS:
        return f"`system controllerfs-modify {record.name}={size_gib}`"
    return f"`system host-fs-modify {hostname or 'HOST'} {record.name}={size_gib}`"


def _room_first(volume_group: VolumeGroup, growth: Growth) -> str:
    """The part of a hint that comes first when there is no room for the rest of it."""
    short_extents = _short_extents(volume_group, growth)
    if short_extents == 0:
        return ""
    thaw = advise_thaw(volume_group)
    if thaw is not None:
        return f"first {thaw}, then: "
    size = _size(volume_group, short_extents)
    return f"first free {short_extents} extents ({size}) or add a physical volume, then: "


def _short_extents(volume_group: VolumeGroup, growth: Growth) -> int:
    """Extents that must be freed before this growth finds room; 0 = none."""
    room = allocatable_room(volume_group)
    if room.allocate(growth.areas, growth.area_extents, growth.home) is not None:
        return 0
    return growth.needed_extents - room.placeable(growth.areas, growth.area_extents, growth.home)


def _size(volume_group: VolumeGroup, extents: int) -> str:
    return format_gib(extents * volume_group.extent_size_bytes)


def _lvm_size(size_bytes: int) -> str:
    """A size as LVM's -L takes it, exactly."""
    return f"{size_bytes // GIB}g" if size_bytes % GIB == 0 else f"{size_bytes}b"
