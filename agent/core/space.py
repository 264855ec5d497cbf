"""Extents: who occupies them, which can be handed out, and what a volume of some size needs.

`physical_extents` attributes every used extent to a top-level LV; `Layout` says what growing an LV
costs; `Room` hands extents out the way LVM's normal allocation policy does.  See lvm2's
lib/metadata/lv_manip.c for the rules followed here.  Not here: recorded sizes (`compare`, `capacity`).
"""

from collections.abc import Mapping

import msgspec

from agent.core.models import LogicalVolume, Segment, VolumeGroup
from agent.core.units import ceil_div, round_up

_WHOLE_COPIES = frozenset({"raid1", "mirror"})
"""Segment types whose every area holds all the data; LVM calls their legs data stripes as well."""
_POOL_BACKED = frozenset({"thin", "vdo"})
"""Segment types that live inside a pool and occupy nothing of the volume group."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How one LV spreads over physical volumes, and so what each further extent of it costs."""

    areas: int = 1
    """Areas that must lie on separate physical volumes: stripes, legs, images with their parity."""
    data_stripes: int = 1
    """Areas among them that hold different data: sizes are multiples of this."""
    metadata_areas: int = 0
    """One extent for each of so many RAID images, when the LV is first made."""
    is_pool_backed: bool = False

    def rounded(self, extents: int) -> int:
        """Logical extents after LVM's rounding up to the stripe count."""
        return round_up(extents, self.data_stripes)

    def area_extents(self, extents: int) -> int:
        """Extents on each area for so many logical extents."""
        return 0 if self.is_pool_backed else ceil_div(extents, self.data_stripes)


LINEAR = Layout()


def layout_of(volume_group: VolumeGroup, logical_volume: LogicalVolume) -> Layout:
    """The layout that growth of this LV would follow.

    That of its last segment; pools and caches, which only hand on, are looked through.
    """
    by_name = {lv.name: lv for lv in volume_group.logical_volumes}
    seen = {logical_volume.name}
    while logical_volume.segments:
        last = logical_volume.segments[-1]
        below = by_name.get(last.areas[0].name) if len(last.areas) == 1 else None
        if below is None or below.name in seen or "pvmove" in below.roles:
            return _segment_layout(last)
        seen.add(below.name)
        logical_volume = below
    return LINEAR


def _segment_layout(segment: Segment) -> Layout:
    if segment.segtype in _POOL_BACKED:
        return Layout(is_pool_backed=True)
    areas = max(1, len(segment.areas) or segment.stripes)
    data_stripes = 1 if segment.segtype in _WHOLE_COPIES else max(1, segment.data_stripes)
    return Layout(
        areas=areas,
        data_stripes=min(data_stripes, areas),
        metadata_areas=areas if segment.segtype.startswith("raid") else 0,
    )


def needed_extents(volume_group: VolumeGroup, size_bytes: int, layout: Layout = LINEAR) -> int:
    """Logical extents of an LV of that size: rounded up to the extent size and to the stripe count."""
    return layout.rounded(ceil_div(size_bytes, volume_group.extent_size_bytes))


def physical_extents(volume_group: VolumeGroup) -> Mapping[str, int]:
    """Extents each LV really occupies, by LV name, everything below a top-level LV counted on it.

    Sub-LVs have 0.  The spare of pool metadata and a pvmove's temporary volume, which belong to
    nobody, keep their own.  The values add up to the used extents of the volume group.
    """
    by_name = {lv.name: lv for lv in volume_group.logical_volumes}
    counted = dict.fromkeys(by_name, 0)
    for lv in volume_group.logical_volumes:
        owner = _owner(lv, by_name)
        for segment in lv.segments:
            for area in segment.areas:
                below = by_name.get(area.name)
                if below is None:
                    counted[owner.name] += area.extents
                elif "pvmove" in below.roles:
                    # The volume being moved keeps one copy; what the move needs on top is the move's.
                    counted[owner.name] += area.extents
                    counted[below.name] -= area.extents
    return counted


def _owner(lv: LogicalVolume, by_name: Mapping[str, LogicalVolume]) -> LogicalVolume:
    """The top-level LV a sub-LV belongs to; an LV without a parent owns itself."""
    seen = {lv.name}
    while lv.parent is not None and lv.parent in by_name and lv.parent not in seen:
        lv = by_name[lv.parent]
        seen.add(lv.name)
    return lv


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """Free extents by physical volume, those that can really be handed out."""

    free: tuple[int, ...]

    @property
    def extents(self) -> int:
        """All of them together."""
        return sum(self.free)

    def allocate(self, areas: int, area_extents: int) -> "Room | None":
        """What is left after handing out `areas` equal areas on separate physical volumes.

        None when there is no room for it.
        """
        left, placed = self._place(areas, area_extents)
        return Room(free=left) if placed == area_extents else None

    def placeable(self, areas: int, area_extents: int) -> int:
        """How many of the `areas` times `area_extents` extents could be handed out."""
        return self._place(areas, area_extents)[1] * areas

    def _place(self, areas: int, area_extents: int) -> tuple[tuple[int, ...], int]:
        """Take from the fullest physical volumes, round by round, as LVM's normal policy does."""
        free = list(self.free)
        placed = 0
        while placed < area_extents and areas <= len(free):
            chosen = sorted(range(len(free)), key=free.__getitem__, reverse=True)[:areas]
            take = min(area_extents - placed, *(free[index] for index in chosen))
            if take == 0:
                break
            for index in chosen:
                free[index] -= take
            placed += take
        return tuple(free), placed


def allocatable_room(volume_group: VolumeGroup) -> Room:
    """The extents that can really be handed out.

    `vgs` counts free extents of missing and of non-allocatable physical volumes too; LVM won't give
    them to anybody, nor any extent of an exported volume group.
    """
    if volume_group.is_exported:
        return Room(free=())
    return Room(
        free=tuple(
            pv.free_extents for pv in volume_group.physical_volumes if pv.is_allocatable and not pv.is_missing
        )
    )
