"""What an operator should know and do: findings with hints, from what was judged.

Not here: the judging, how to mend one filesystem (`resize_advice`).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from agent.core.models import (
    Finding,
    RecordedFilesystem,
    RecordedSizes,
    Severity,
    VolumeGroup,
)
from agent.core.report import CapacitySection, FilesystemSection, FilesystemVerdict
from agent.core.resize_advice import advise, advise_thaw
from agent.core.units import format_gib


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


def extent_findings(volume_group: VolumeGroup, occupied: Mapping[str, int]) -> tuple[Finding, ...]:
    """Two sums that must agree: extents found below LVs, and extents LVM calls used."""
    attributed = sum(occupied.values())
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
    short_extents = capacity.short_extents
    thaw = advise_thaw(volume_group)
    size = format_gib(short_extents * volume_group.extent_size_bytes)
    room = f"free {short_extents} extents ({size}) or add a physical volume"
    return (
        Finding(
            kind="does_not_fit",
            severity=Severity.CRITICAL,
            subject=failure.logical_volume,
            message=f"{failure.logical_volume} would fail: {failure.needed_extents} extents needed, "
            f"but only {failure.available_extents} available",
            hint=f"{thaw or room} before the next upgrade, reinstall or unlock applies the recorded sizes",
        ),
    )


def drift_findings(
    volume_group: VolumeGroup,
    records: tuple[RecordedFilesystem, ...],
    filesystems: tuple[FilesystemSection, ...],
    recorded: RecordedSizes,
    *,
    below_drbd: AbstractSet[str] = frozenset(),
) -> tuple[Finding, ...]:
    """One finding for each filesystem whose record is a lie; `below_drbd` names the LVs with DRBD on them."""
    return tuple(
        Finding(
            kind=f"filesystem_{filesystem.verdict}",
            severity=_SEVERITIES[filesystem.verdict],
            subject=record.name,
            message=_describe(volume_group, record, filesystem),
            hint=advise(
                volume_group,
                record,
                filesystem,
                recorded.hostname,
                is_below_drbd=record.logical_volume in below_drbd,
            ),
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
