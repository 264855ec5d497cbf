"""The judgement of each filesystem: what its record says beside what LVM has.

Pure: a volume group and recorded sizes in, verdicts and findings out.  Not here: whether the records
fit (`capacity`), the words of hints that only one inventory knows (they ride on its records).
"""

from collections import Counter
from datetime import datetime

from agent.core.extents.space import LINEAR, layout_of, needed_extents
from agent.core.models import (
    Finding,
    LogicalVolume,
    RecordedFilesystem,
    RecordedSizes,
    Severity,
    VolumeGroup,
)
from agent.core.report import FilesystemSection, FilesystemVerdict
from agent.core.units import round_up


def judge_filesystem(
    volume_group: VolumeGroup,
    record: RecordedFilesystem,
    *,
    as_of: datetime | None,
    grace_seconds: float,
) -> FilesystemSection:
    """Judge one recorded filesystem against its LV.

    `as_of` is the inventory's clock; a change younger than `grace_seconds` on it is still under way.
    """
    lv = volume_group.find(record.logical_volume)
    layout = LINEAR if lv is None else layout_of(volume_group, lv)
    recorded_extents = needed_extents(volume_group, record.recorded_bytes, layout)
    actual_extents = 0 if lv is None else lv.extents
    verdict = _verdict(record, lv, recorded_extents)
    is_drift, since = verdict.is_drift, None
    if is_drift and is_in_transition(record, lv, as_of=as_of, grace_seconds=grace_seconds):
        verdict = FilesystemVerdict.TRANSITION
    elif is_drift and record.phase.is_under_way and record.recorded_at is not None:
        since = f"{record.state or record.phase} since {record.recorded_at:%Y-%m-%dT%H:%M:%SZ}"
    return FilesystemSection(
        name=record.name,
        source=record.source,
        logical_volume=record.logical_volume,
        recorded_bytes=record.recorded_bytes,
        recorded_extents=recorded_extents,
        actual_bytes=None if lv is None else lv.size_bytes,
        actual_extents=None if lv is None else lv.extents,
        delta_extents=actual_extents - recorded_extents,
        verdict=verdict,
        state=record.state,
        recorded_at=record.recorded_at,
        detail=since or record.detail,
    )


def unknown_filesystem(record: RecordedFilesystem) -> FilesystemSection:
    """The judgement when LVM could not be read: the record as it is, and nothing claimed beside it."""
    return FilesystemSection(
        name=record.name,
        source=record.source,
        logical_volume=record.logical_volume,
        recorded_bytes=record.recorded_bytes,
        recorded_extents=None,
        actual_bytes=None,
        actual_extents=None,
        delta_extents=None,
        verdict=FilesystemVerdict.UNKNOWN,
        state=record.state,
        recorded_at=record.recorded_at,
        detail=record.detail,
    )


def _verdict(
    record: RecordedFilesystem, lv: LogicalVolume | None, recorded_extents: int
) -> FilesystemVerdict:
    """The verdict as if nothing were under way."""
    if lv is None:
        return FilesystemVerdict.MISSING
    if lv.extents == recorded_extents:
        return FilesystemVerdict.MATCH
    step = record.granularity_bytes
    if step is not None and round_up(lv.size_bytes, step) == record.recorded_bytes:
        return FilesystemVerdict.ROUNDING
    return FilesystemVerdict.UNDERSIZED if lv.extents < recorded_extents else FilesystemVerdict.OVERSIZED


def is_in_transition(
    record: RecordedFilesystem,
    lv: LogicalVolume | None,
    *,
    as_of: datetime | None,
    grace_seconds: float,
) -> bool:
    """Whether a difference is explained by a change that is still under way.

    A change that waits for the host's unlock takes as long as it takes, but only while the LV is not
    there yet (or not gone yet).  Every other change has `grace_seconds` since the record last
    changed.  A change dated in the inventory's future has just happened.  The inventory calling the
    change failed ends the excuse at once.
    """
    if record.phase is record.phase.FAILED:
        return False
    if record.phase is record.phase.CREATING_ON_UNLOCK and lv is None:
        return True
    if record.phase is record.phase.DELETING_ON_UNLOCK:
        return True
    if as_of is None or record.recorded_at is None:
        return record.phase.is_under_way
    return (as_of - record.recorded_at).total_seconds() < grace_seconds


def find_unrecorded(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> tuple[str, ...]:
    """Names of LVs that nothing is recorded for; internal ones and snapshots' stores don't count."""
    recorded = {record.logical_volume for record in records}
    return tuple(
        lv.name
        for lv in volume_group.logical_volumes
        if not lv.is_hidden and "thicksnapshot" not in lv.roles and lv.name not in recorded
    )


def records_of(volume_group_name: str, recorded: RecordedSizes) -> tuple[RecordedFilesystem, ...]:
    """The records that speak about this volume group, in recorded order."""
    return tuple(row for row in recorded.filesystems if row.volume_group == volume_group_name)


def find_record_problems(records: tuple[RecordedFilesystem, ...]) -> tuple[Finding, ...]:
    """Two rows that name one LV: both are judged, at most one can be right."""
    rows = Counter(record.logical_volume for record in records)
    return tuple(
        Finding(
            kind="duplicate_record",
            severity=Severity.WARNING,
            subject=lv_name,
            message=f"{count} records name the same LV: "
            + ", ".join(record.name for record in records if record.logical_volume == lv_name),
            hint="remove all but one of them from the inventory",
        )
        for lv_name, count in rows.items()
        if count > 1
    )
