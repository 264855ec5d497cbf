"""What an operator should know and do: findings with hints, from what was judged.

Commands stand in hints as text and are never run.  What a hint may promise depends on who keeps the
record: sysinv refuses the same size again, a file can simply be edited.  Not here: the judging.
"""

from agent.core.capacity import Growth, growth_to
from agent.core.models import (
    Finding,
    Phase,
    RecordedFilesystem,
    RecordedSizes,
    Severity,
    Source,
    VolumeGroup,
)
from agent.core.report import CapacitySection, FilesystemSection, FilesystemVerdict
from agent.core.space import allocatable_room, physical_extents
from agent.core.units import GIB, ceil_div, format_exact, format_gib


def no_inventory(volume_group: str) -> Finding:
    """Nothing to compare with: said plainly, since it is the default."""
    return Finding(
        kind="no_inventory",
        severity=Severity.INFO,
        subject=volume_group,
        message="no inventory is configured: actual sizes only, nothing was compared",
        hint="name one with --inventory or [inventory]; `agent baseline` writes a file to start from",
    )


def not_covered(volume_group: str, recorded: RecordedSizes) -> Finding:
    """The inventory never records anything for this volume group."""
    return Finding(
        kind="not_covered",
        severity=Severity.INFO,
        subject=volume_group,
        message=f"{recorded.origin} keeps no records for this volume group: nothing was compared",
        hint=f"it speaks only about {', '.join(recorded.volume_groups or ())}",
    )


def nothing_recorded(
    volume_group: str, records: tuple[RecordedFilesystem, ...], recorded: RecordedSizes
) -> tuple[Finding, ...]:
    """An inventory without a single row for the volume group is worth a question."""
    if records:
        return ()
    return (
        Finding(
            kind="nothing_recorded",
            severity=Severity.WARNING,
            subject=volume_group,
            message=f"{recorded.origin} records no filesystem on this volume group: nothing was compared",
            hint="check that it is the right file and volume group",
        ),
    )


def extent_findings(volume_group: VolumeGroup) -> tuple[Finding, ...]:
    """Two sums that must agree: extents found below LVs, and extents LVM calls used."""
    attributed = sum(physical_extents(volume_group).values())
    if attributed == volume_group.used_extents:
        return ()
    return (
        Finding(
            kind="extents_unexplained",
            severity=Severity.WARNING,
            subject=volume_group.name,
            message=f"{volume_group.used_extents} extents are used, but the LVs explain {attributed} of them",
            hint="compare with `pvs --segments`; please report the output as a bug of this agent",
        ),
    )


def capacity_findings(volume_group: VolumeGroup, capacity: CapacitySection) -> tuple[Finding, ...]:
    """The records can't all be made true: which would fail first, and how much is short."""
    failure = capacity.first_failure
    if failure is None:
        return ()
    short = failure.needed_extents - failure.available_extents
    return (
        Finding(
            kind="does_not_fit",
            severity=Severity.CRITICAL,
            subject=failure.logical_volume,
            message=f"{failure.logical_volume} would fail: {failure.needed_extents} extents needed, "
            f"but only {failure.available_extents} available",
            hint=f"free {short} extents ({format_gib(short * volume_group.extent_size_bytes)}) or add a "
            "physical volume before the next upgrade, reinstall or unlock applies the recorded sizes",
        ),
    )


def drift_findings(
    volume_group: VolumeGroup,
    records: tuple[RecordedFilesystem, ...],
    filesystems: tuple[FilesystemSection, ...],
    recorded: RecordedSizes,
) -> tuple[Finding, ...]:
    """One finding for each filesystem whose record is a lie."""
    return tuple(
        Finding(
            kind=f"filesystem_{filesystem.verdict}",
            severity=_SEVERITIES[filesystem.verdict],
            subject=record.name,
            message=_describe(volume_group, record, filesystem),
            hint=_advise(volume_group, record, filesystem, recorded.hostname),
        )
        for record, filesystem in zip(records, filesystems, strict=True)
        if filesystem.verdict.is_drift
    )


_SEVERITIES = {
    FilesystemVerdict.MISSING: Severity.CRITICAL,
    FilesystemVerdict.UNDERSIZED: Severity.CRITICAL,
    FilesystemVerdict.OVERSIZED: Severity.WARNING,
}


def _describe(volume_group: VolumeGroup, record: RecordedFilesystem, filesystem: FilesystemSection) -> str:
    path = f"{volume_group.name}/{record.logical_volume}"
    size = format_gib(record.recorded_bytes)
    if filesystem.actual_bytes is None or filesystem.delta_extents is None:
        text = f"recorded with {size}, but {path} does not exist"
    elif filesystem.delta_extents < 0:
        text = (
            f"recorded with {size}, but {path} has {format_gib(filesystem.actual_bytes)}: "
            f"{-filesystem.delta_extents} extents were never added"
        )
    else:
        text = (
            f"recorded with {size}, but {path} has {format_gib(filesystem.actual_bytes)}: "
            f"{filesystem.delta_extents} extents more than anybody recorded"
        )
    return f"{text} ({filesystem.detail})" if filesystem.detail else text


def _advise(
    volume_group: VolumeGroup,
    record: RecordedFilesystem,
    filesystem: FilesystemSection,
    hostname: str | None,
) -> str:
    if record.source is Source.FILE:
        return _advise_file(volume_group, record, filesystem)
    return _advise_sysinv(volume_group, record, filesystem, hostname)


def _advise_file(
    volume_group: VolumeGroup, record: RecordedFilesystem, filesystem: FilesystemSection
) -> str:
    lv = volume_group.find(record.logical_volume)
    growth = growth_to(volume_group, record.logical_volume, record.recorded_bytes)
    size = _lvm_size(record.recorded_bytes)
    if lv is None:
        command = f"lvcreate -L {size} -n {record.logical_volume} {volume_group.name}"
    elif filesystem.verdict is FilesystemVerdict.UNDERSIZED:
        command = f"lvextend -r -L {size} {volume_group.name}/{lv.name}"
    else:
        return f'correct the record: size = "{format_exact(lv.size_bytes)}"'
    return f"{_room_first(volume_group, growth)}`{command}`, or correct the record"


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
    step = record.granularity_bytes or GIB
    size = record.recorded_bytes // step
    if filesystem.verdict is FilesystemVerdict.OVERSIZED:
        actual = ceil_div(filesystem.actual_bytes or 0, step)
        return (
            f"the platform tolerates it; to make the record true: {_modify(record, actual, hostname)}"
            if actual > size
            else "the platform tolerates it, and its records count whole GiB: nothing to correct"
        )
    growth = growth_to(volume_group, record.logical_volume, (size + 1) * step)
    first = _room_first(volume_group, growth)
    if filesystem.verdict is FilesystemVerdict.MISSING:
        return f"{first}the platform creates it at the next unlock, which fails without that room"
    return (
        f"{first}the platform refuses {size} again: ask for {size + 1}, "
        f"{_modify(record, size + 1, hostname)}. "
        f"It counts that as 1 GiB, but lvextend will need {growth.needed_extents} extents"
    )


def _modify(record: RecordedFilesystem, size_gib: int, hostname: str | None) -> str:
    if record.source is Source.CONTROLLER_FS:
        return f"`system controllerfs-modify {record.name}={size_gib}`"
    return f"`system host-fs-modify {hostname or 'HOST'} {record.name}={size_gib}`"


def _room_first(volume_group: VolumeGroup, growth: Growth) -> str:
    """The part of a hint that comes first when there is no room for the rest of it."""
    room = allocatable_room(volume_group)
    if room.allocate(growth.areas, growth.area_extents) is not None:
        return ""
    short = growth.needed_extents - room.placeable(growth.areas, growth.area_extents)
    size = format_gib(short * volume_group.extent_size_bytes)
    return f"first free {short} extents ({size}) or add a physical volume, then: "


def _lvm_size(size_bytes: int) -> str:
    """A size as LVM's -L takes it, exactly."""
    return f"{size_bytes // GIB}g" if size_bytes % GIB == 0 else f"{size_bytes}b"
