"""Would a rebuild work?  Every LV made anew on an empty volume group of this geometry, by the records.

An upgrade of a single-node system reinstalls it and makes its LVs with the *recorded* sizes; what does
not fit then leaves a host that does not unlock.  Pure.  Not here: resizing what is there (`preflight`).
"""

from collections.abc import Iterator, Sequence

from agent.core.compare import records_of
from agent.core.extents.growth import Growth, assess_growths
from agent.core.extents.room import Room
from agent.core.extents.space import LINEAR, Layout, layout_of, needed_extents, physical_extents
from agent.core.models import LogicalVolume, RecordedFilesystem, RecordedSizes, VolumeGroup
from agent.core.report import CapacitySection
from agent.core.resize.document import Answer, Change, Code, Reason
from agent.core.resize.ledger import Step, keep_ledger
from agent.core.resize.rules import factor_of
from agent.core.units import GIB, format_gib

_TRANSIENT_ROLES = frozenset({"thicksnapshot", "pvmove"})
"""What nobody makes again: snapshots' stores and the temporary volume of a pvmove."""


def check_rebuild(volume_group: VolumeGroup, recorded: RecordedSizes) -> Answer:
    """Say whether all LVs could be made again: first those without a record, then the records in order.

    An LV without a record counts with the physical extents it has, a record with its recorded size,
    whatever the LV has grown to.
    """
    records = records_of(volume_group.name, recorded)
    steps = (*_kept(volume_group, records), *_recorded(volume_group, records))
    room = empty_room(volume_group)
    capacity = assess_growths(room, tuple(step.growth for step in steps))
    return Answer(
        reasons=tuple(_explain(volume_group, records, steps, capacity)),
        ledger=tuple(keep_ledger(room.extents, steps)),
        capacity=capacity,
    )


def empty_room(volume_group: VolumeGroup) -> Room:
    """All extents of the physical volumes that are there and allocatable."""
    return Room(
        free=tuple(
            pv.extent_count for pv in volume_group.physical_volumes if pv.is_allocatable and not pv.is_missing
        )
    )


def _kept(volume_group: VolumeGroup, records: Sequence[RecordedFilesystem]) -> Iterator[Step]:
    """What is there and not recorded; the spare of pool metadata counts as well."""
    recorded = {row.logical_volume for row in records}
    occupied = physical_extents(volume_group)
    for lv in volume_group.logical_volumes:
        extents = occupied[lv.name]
        if extents > 0 and lv.name not in recorded and not _TRANSIENT_ROLES.intersection(lv.roles):
            growth = _made_again(volume_group, lv, extents)
            yield Step(filesystem=None, change=Change.KEPT, growth=growth)


def _made_again(volume_group: VolumeGroup, lv: LogicalVolume, extents: int) -> Growth:
    """In its own layout when that explains what it occupies; pools and the like as so many extents."""
    growth = _create(lv.name, lv.extents, layout_of(volume_group, lv))
    if growth.needed_extents == extents:
        return growth
    return Growth(logical_volume=lv.name, areas=1, area_extents=extents, after_extents=lv.extents)


def _recorded(volume_group: VolumeGroup, records: Sequence[RecordedFilesystem]) -> Iterator[Step]:
    """The records in recorded order, each LV once with the largest size that is recorded for it."""
    sizes: dict[str, int] = {}
    for row in records:
        if not row.phase.is_deleting:
            sizes[row.logical_volume] = max(sizes.get(row.logical_volume, 0), row.recorded_bytes)
    for row in records:
        if row.logical_volume in sizes:
            size_bytes = sizes.pop(row.logical_volume)
            lv = volume_group.find(row.logical_volume)
            layout = LINEAR if lv is None else layout_of(volume_group, lv)
            growth = _create(row.logical_volume, needed_extents(volume_group, size_bytes, layout), layout)
            yield Step(filesystem=row.name, change=Change.RECORDED, growth=growth)


def _create(lv_name: str, extents: int, layout: Layout) -> Growth:
    """What lvcreate would allocate; each RAID image has one extent of metadata beside its data."""
    with_metadata = 1 if layout.metadata_areas else 0
    return Growth(
        logical_volume=lv_name,
        areas=layout.areas,
        area_extents=layout.area_extents(extents) + with_metadata,
        after_extents=extents,
    )


def _explain(
    volume_group: VolumeGroup,
    records: Sequence[RecordedFilesystem],
    steps: Sequence[Step],
    capacity: CapacitySection,
) -> Iterator[Reason]:
    failure = capacity.first_failure
    if failure is None:
        return
    short_extents = capacity.short_extents
    (failing,) = (step for step in steps if step.growth.logical_volume == failure.logical_volume)
    size = format_gib(short_extents * volume_group.extent_size_bytes)
    yield Reason(
        code=Code.DOES_NOT_FIT,
        kind="rebuild_short" if capacity.shortfall_extents else "extents_misplaced",
        subject=failure.logical_volume,
        message=f"{failure.logical_volume} would fail: {failure.needed_extents} extents needed, but only "
        f"{failure.available_extents} available then (all LVs together: {capacity.needed_extents} of "
        f"{capacity.available_extents})",
        hint=f"before the upgrade, free {short_extents} extents ({size}): "
        + "; ".join(
            (
                *_less(volume_group, records, failing, short_extents),
                *_without_unrecorded(steps, short_extents),
                "or add a physical volume",
            )
        ),
        needed_extents=capacity.needed_extents,
        available_extents=capacity.available_extents,
        logical_volume=failure.logical_volume,
    )


def _less(
    volume_group: VolumeGroup, records: Sequence[RecordedFilesystem], failing: Step, short_extents: int
) -> Iterator[str]:
    """The most that the failing filesystem may be recorded with, in whole GiB of its inventory."""
    record = next((row for row in records if row.name == failing.filesystem), None)
    if record is None:
        return
    lv = volume_group.find(failing.growth.logical_volume)
    layout = LINEAR if lv is None else layout_of(volume_group, lv)
    area_extents = (failing.growth.needed_extents - short_extents) // layout.areas
    if layout.metadata_areas:
        area_extents -= 1
    left_bytes = area_extents * layout.data_stripes * volume_group.extent_size_bytes
    size_gib = left_bytes // (GIB * factor_of(record))
    if size_gib > 0:
        yield f"record {record.name} with {size_gib} GiB at most, or others with less"


def _without_unrecorded(steps: Sequence[Step], short_extents: int) -> Iterator[str]:
    """LVs that nothing is recorded for, each of which would make enough room."""
    kept = [step.growth for step in steps if step.change is Change.KEPT]
    enough = [growth for growth in kept if growth.needed_extents >= short_extents]
    if enough:
        names = ", ".join(f"{growth.logical_volume} ({growth.needed_extents} extents)" for growth in enough)
        yield f"or remove what is not recorded, if nobody needs it: {names}"
