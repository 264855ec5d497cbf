"""Whether recorded sizes fit into the extents that can really be handed out.

`assess` walks the records in order as a series of lvextend and lvcreate commands would, and says
which one would fail first, in that command's own terms.  Pure; imports nothing of the host, so that
an inventory service can use it as well.  Not here: judging a filesystem (`compare`).
"""

from collections.abc import Iterator

import msgspec

from agent.core.models import RecordedFilesystem, VolumeGroup
from agent.core.report import CapacitySection, FirstFailure
from agent.core.space import LINEAR, Layout, Room, allocatable_room, layout_of, needed_extents


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What one command would have to allocate: `areas` runs of `area_extents` extents each."""

    logical_volume: str
    areas: int
    area_extents: int
    metadata_areas: int = 0

    @property
    def needed_extents(self) -> int:
        """Physical extents in all, one of metadata for each RAID image included."""
        return self.areas * self.area_extents + self.metadata_areas


def growth_to(volume_group: VolumeGroup, lv_name: str, size_bytes: int) -> Growth:
    """What bringing an LV to that size would allocate; nothing when it is there or larger already."""
    lv = volume_group.find(lv_name)
    layout: Layout = LINEAR if lv is None else layout_of(volume_group, lv)
    wanted = needed_extents(volume_group, size_bytes, layout)
    missing = wanted if lv is None else max(0, wanted - lv.extents)
    return Growth(logical_volume=lv_name, areas=layout.areas, area_extents=layout.area_extents(missing))


def pending_growths(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> Iterator[Growth]:
    """What applying each record would allocate, in recorded order; a row being deleted needs nothing.

    Of several rows for one LV the later ones need only what the earlier ones left undone.
    """
    reached: dict[str, int] = {}
    for record in records:
        if record.phase.is_deleting:
            continue
        growth = growth_to(volume_group, record.logical_volume, record.recorded_bytes)
        before = reached.get(record.logical_volume, 0)
        reached[record.logical_volume] = max(before, growth.area_extents)
        yield msgspec.structs.replace(growth, area_extents=max(0, growth.area_extents - before))


def assess(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> CapacitySection:
    """Say whether every recorded size could be applied now, in recorded order."""
    room = allocatable_room(volume_group)
    available = room.extents
    growths = tuple(pending_growths(volume_group, records))
    needed = sum(growth.needed_extents for growth in growths)
    failure = walk(room, growths)
    return CapacitySection(
        needed_extents=needed,
        available_extents=available,
        fits=failure is None,
        shortfall_extents=max(0, needed - available),
        first_failure=failure,
    )


def walk(room: Room, growths: tuple[Growth, ...]) -> FirstFailure | None:
    """Allocate one growth after the other; the first that finds no room ends the walk."""
    for growth in growths:
        left = room.allocate(growth.areas, growth.area_extents)
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
    if room.extents < growth.needed_extents:
        return room.extents
    return room.placeable(growth.areas, growth.area_extents)
