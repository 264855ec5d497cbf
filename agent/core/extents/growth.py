"""What bringing LVs to some size would allocate, and which command of a series would fail first.

Each `Growth` stands for one lvextend or lvcreate.  Pure; imports nothing of the host.  Not here: which
growths somebody asks for (`resize.preflight`, `resize.upgrade`).
"""

from collections.abc import Iterable, Iterator

import msgspec

from agent.core.extents.room import Room, allocatable_room
from agent.core.extents.space import LINEAR, Layout, layout_of, needed_extents
from agent.core.models import RecordedFilesystem, VolumeGroup
from agent.core.report import CapacitySection, FirstFailure


class Growth(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one command would have to allocate: `areas` runs of `area_extents` extents each."""

    logical_volume: str
    areas: int
    area_extents: int
    metadata_areas: int = 0
    before_extents: int = 0
    """Logical extents of the LV before, 0 = it does not exist, and `after_extents` of it afterwards."""
    after_extents: int = 0
    home: tuple[str, ...] = ()
    """The physical volumes it grows on first (see `Layout.home`)."""

    @property
    def needed_extents(self) -> int:
        """Physical extents in all, one of metadata for each RAID image included."""
        return self.areas * self.area_extents + self.metadata_areas


def growth_to(volume_group: VolumeGroup, lv_name: str, size_bytes: int) -> Growth:
    """What bringing an LV to that size would allocate; nothing when it is there or larger already."""
    lv = volume_group.find(lv_name)
    layout: Layout = LINEAR if lv is None else layout_of(volume_group, lv)
    before = 0 if lv is None else lv.extents
    after = max(before, needed_extents(volume_group, size_bytes, layout))
    return Growth(
        logical_volume=lv_name,
        areas=layout.areas,
        area_extents=layout.area_extents(after - before),
        before_extents=before,
        after_extents=after,
        home=layout.home,
    )


def pending_growths(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> Iterator[Growth]:
    """What applying each record would allocate, in recorded order; a row being deleted needs nothing."""
    return growths_to(
        volume_group,
        ((row.logical_volume, row.recorded_bytes) for row in records if not row.phase.is_deleting),
    )


def growths_to(volume_group: VolumeGroup, targets: Iterable[tuple[str, int]]) -> Iterator[Growth]:
    """What bringing each LV, in this order, to its size in bytes would allocate.

    Of several targets for one LV the later ones need only what the earlier ones left undone.
    """
    reached: dict[str, Growth] = {}
    for lv_name, size_bytes in targets:
        growth = growth_to(volume_group, lv_name, size_bytes)
        earlier = reached.get(lv_name)
        if earlier is None:
            reached[lv_name] = growth
            yield growth
            continue
        reached[lv_name] = max(earlier, growth, key=_after_extents)
        yield msgspec.structs.replace(
            growth,
            area_extents=max(0, growth.area_extents - earlier.area_extents),
            before_extents=earlier.after_extents,
            after_extents=reached[lv_name].after_extents,
        )


def _after_extents(growth: Growth) -> int:
    return growth.after_extents


def assess(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> CapacitySection:
    """Say whether every recorded size could be applied now, in recorded order."""
    return assess_growths(allocatable_room(volume_group), tuple(pending_growths(volume_group, records)))


def assess_growths(room: Room, growths: tuple[Growth, ...]) -> CapacitySection:
    """Say whether all of them could be had from that room, one after the other."""
    needed = sum(growth.needed_extents for growth in growths)
    failure = walk(room, growths)
    return CapacitySection(
        needed_extents=needed,
        available_extents=room.extents,
        fits=failure is None,
        shortfall_extents=max(0, needed - room.extents),
        first_failure=failure,
    )


def walk(room: Room, growths: tuple[Growth, ...]) -> FirstFailure | None:
    """Allocate one growth after the other; the first that finds no room ends the walk."""
    for growth in growths:
        left = room.allocate(growth.areas, growth.area_extents, growth.home)
        if left is None:
            return FirstFailure(
                logical_volume=growth.logical_volume,
                needed_extents=growth.needed_extents,
                available_extents=_available(room, growth),
            )
        room = left
    return None


def _available(room: Room, growth: Growth) -> int:
    """What lvextend would call available: all free extents, or, when they lie wrongly, what is placeable."""
    if room.extents < growth.needed_extents and not room.is_frozen:
        return room.extents
    return room.placeable(growth.areas, growth.area_extents, growth.home)
