"""Would these resizes be safe now?  All reasons, each with its numbers, before anything is written.

The one function that the command line and an inventory service's guard share (also as
`capacity.preflight`).  Pure; imports nothing of the host.  Not here: the platform's rules
(`rules`), what makes a host busy (`busy`), whether a rebuild would work (`upgrade`).
"""

from collections.abc import Iterator, Sequence

from agent.core.advice import drift_findings
from agent.core.compare import judge_filesystem, records_of
from agent.core.extents.growth import assess_growths, growth_to, growths_to
from agent.core.extents.room import allocatable_room, is_frozen, is_read_only
from agent.core.models import RecordedFilesystem, RecordedSizes, VolumeGroup
from agent.core.report import CapacitySection, FilesystemSection, FilesystemVerdict
from agent.core.resize.ask import Asked
from agent.core.resize.busy import Activity, find_activity, find_snapshots
from agent.core.resize.document import Answer, AskedSection, Change, Code, Reason
from agent.core.resize.ledger import Step, keep_ledger, unchanged_steps
from agent.core.resize.rules import Resize, find_broken_rules, resolve
from agent.core.resize_advice import advise_thaw
from agent.core.units import MAX_BYTES, format_gib


def preflight(
    volume_group: VolumeGroup,
    recorded: RecordedSizes,
    asked: Sequence[Asked],
    activity: Activity,
) -> Answer:
    """Say whether all these resizes together would be safe now.

    The growth of an asked filesystem is counted from its *actual* size.  Before it come the growths
    that are recorded and were never applied: they have been promised already, and the next unlock or
    reinstall will claim them.
    """
    records = records_of(volume_group.name, recorded)
    resizes, unknown = resolve(volume_group.name, recorded.filesystems, asked)
    filesystems = tuple(
        judge_filesystem(volume_group, row, as_of=recorded.as_of, grace_seconds=activity.grace_seconds)
        for row in records
    )
    steps = _plan(volume_group, records, resizes)
    room = allocatable_room(volume_group)
    capacity = assess_growths(room, tuple(step.growth for step in steps))
    return Answer(
        reasons=(
            *unknown,
            *find_broken_rules(records, resizes),
            *explain_shortage(volume_group, capacity),
            *_explain_unchangeable(volume_group, capacity),
            *find_activity(volume_group, records, filesystems, activity),
            *find_snapshots(volume_group, _growing(steps)),
            *_explain_drift(volume_group, recorded, records, filesystems, resizes),
        ),
        asked=_describe_asked(volume_group, resizes, asked),
        ledger=tuple(keep_ledger(room.extents, (*unchanged_steps(volume_group, steps), *steps))),
        capacity=capacity,
    )


def _plan(
    volume_group: VolumeGroup, records: Sequence[RecordedFilesystem], resizes: Sequence[Resize]
) -> tuple[Step, ...]:
    """Pending growths in recorded order, then the asked ones in asked order."""
    names = {resize.record.name for resize in resizes}
    wanted = [
        *((row, Change.PENDING, row.recorded_bytes) for row in records if row.name not in names),
        *((one.record, Change.ASKED, one.size_bytes) for one in resizes),
    ]
    wanted = [step for step in wanted if not step[0].phase.is_deleting]
    # A size beyond 2^63 is refused by a rule; the walk only has to survive it.
    growths = growths_to(
        volume_group, ((row.logical_volume, min(size_bytes, MAX_BYTES)) for row, _, size_bytes in wanted)
    )
    return tuple(
        Step(filesystem=row.name, change=change, growth=growth)
        for (row, change, _), growth in zip(wanted, growths, strict=True)
    )


def _growing(steps: Sequence[Step]) -> tuple[str, ...]:
    """The LVs that would be extended because somebody asks for it."""
    return tuple(
        step.growth.logical_volume
        for step in steps
        if step.change is Change.ASKED and step.growth.after_extents > step.growth.before_extents
    )


def explain_shortage(volume_group: VolumeGroup, capacity: CapacitySection) -> Iterator[Reason]:
    """Name the command that would fail first and how many extents must be freed for all to succeed."""
    failure = capacity.first_failure
    if failure is None or is_frozen(volume_group):
        return
    first = (
        f"{failure.logical_volume} would fail: {failure.needed_extents} extents needed, "
        f"but only {failure.available_extents} available"
    )
    short_extents = capacity.short_extents
    is_total = capacity.shortfall_extents > 0
    # Enough in all, but not on enough separate physical volumes for stripes or copies.
    where = "" if is_total else " on the physical volumes that can hold its stripes or copies"
    yield Reason(
        code=Code.DOES_NOT_FIT,
        kind="extents_short" if is_total else "extents_misplaced",
        subject=failure.logical_volume,
        message=f"{first} (all growths together: {capacity.needed_extents} of {capacity.available_extents})",
        hint=f"free {short_extents} extents "
        f"({format_gib(short_extents * volume_group.extent_size_bytes)}){where}, "
        "add a physical volume, or ask for less",
        needed_extents=capacity.needed_extents if is_total else failure.needed_extents,
        available_extents=capacity.available_extents if is_total else failure.available_extents,
        logical_volume=failure.logical_volume,
    )


def _explain_unchangeable(volume_group: VolumeGroup, capacity: CapacitySection) -> Iterator[Reason]:
    """LVM answers "Cannot change VG … while PVs are missing", however much room the others have."""
    if volume_group.missing_pv_count and capacity.needed_extents:
        yield Reason(
            code=Code.DOES_NOT_FIT,
            kind="pv_missing",
            subject=volume_group.name,
            message=f"{volume_group.missing_pv_count} physical volume(s) of {volume_group.name} are missing: "
            "LVM changes nothing meanwhile",
            hint=advise_thaw(volume_group),
            needed_extents=capacity.needed_extents,
            available_extents=0,
        )
    if is_read_only(volume_group):
        yield Reason(
            code=Code.DOES_NOT_FIT,
            kind="vg_read_only",
            subject=volume_group.name,
            message=f"volume group {volume_group.name} is read-only: LVM changes nothing in it",
            hint=advise_thaw(volume_group),
            needed_extents=capacity.needed_extents,
            available_extents=0,
        )


def _explain_drift(
    volume_group: VolumeGroup,
    recorded: RecordedSizes,
    records: tuple[RecordedFilesystem, ...],
    filesystems: tuple[FilesystemSection, ...],
    resizes: Sequence[Resize],
) -> Iterator[Reason]:
    """Earlier resizes that never reached their LV; that of an asked filesystem is mended by asking."""
    asked = {resize.record.name: resize for resize in resizes}
    findings = iter(drift_findings(volume_group, records, filesystems, recorded))
    for record, filesystem in zip(records, filesystems, strict=True):
        if not filesystem.verdict.is_drift:
            continue
        finding = next(findings)
        is_oversized = filesystem.verdict is FilesystemVerdict.OVERSIZED
        message, hint = f"{record.name} is {finding.message}", finding.hint
        own = asked.get(record.name)
        if own is not None:
            message, hint = f"{message}; this resize is counted from the actual size", None
        needed = growth_to(
            volume_group, record.logical_volume, own.size_bytes if own else record.recorded_bytes
        ).needed_extents
        yield Reason(
            code=Code.OVERSIZED if is_oversized else Code.EARLIER_RESIZE_NOT_APPLIED,
            kind=finding.kind,
            blocks=own is None and not is_oversized,
            subject=record.name,
            message=message,
            hint=hint,
            needed_extents=needed,
            logical_volume=record.logical_volume,
        )


def _describe_asked(
    volume_group: VolumeGroup, resizes: Sequence[Resize], asked: Sequence[Asked]
) -> tuple[AskedSection, ...]:
    """What was understood, in asked order; a name that means nothing keeps only its text."""
    known = {resize.record.name: resize for resize in resizes}
    sections = []
    for one in asked:
        resize = known.get(one.name)
        if resize is None:
            sections.append(AskedSection(name=one.name, text=one.text))
            continue
        lv = volume_group.find(resize.record.logical_volume)
        sections.append(
            AskedSection(
                name=one.name,
                text=one.text,
                logical_volume=resize.record.logical_volume,
                recorded_bytes=resize.record.recorded_bytes,
                actual_bytes=None if lv is None else lv.size_bytes,
                asked_bytes=resize.size_bytes,
            )
        )
    return tuple(sections)
