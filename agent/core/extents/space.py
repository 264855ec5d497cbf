"""Extents: who occupies them, and what a volume of some size needs.

`physical_extents` attributes every used extent to a top-level LV; `Layout` says what growing an LV
costs.  See lvm2's lib/metadata/lv_manip.c for the rules followed here.  Not here: handing extents out
(`room`), recorded sizes (`compare`, `capacity`).
"""

from collections.abc import Mapping

import msgspec

from agent.core.models import LogicalVolume, Segment, VolumeGroup
from agent.core.units import ceil_div, round_up

_WHOLE_COPIES = frozenset({"raid1", "mirror"})
"""Segment types whose every area holds all the data; LVM calls their legs data stripes as well."""
_POOL_BACKED = frozenset({"thin", "vdo"})
"""Segment types that live inside a pool and occupy nothing of the volume group."""


class Layout(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How one LV spreads over physical volumes, and so what each further extent of it costs."""

    areas: int = 1
    """Areas that must lie on separate physical volumes: stripes, legs, images with their parity."""
    data_stripes: int = 1
    """Areas among them that hold different data: sizes are multiples of this."""
    metadata_areas: int = 0
    """One extent for each of so many RAID images, when the LV is first made."""
    is_pool_backed: bool = False
    home: tuple[str, ...] = ()
    """The physical volume under each area now, where growth is tried first; empty = no one in particular."""

    def rounded(self, extents: int) -> int:
        """Logical extents after LVM's rounding up to the stripe count."""
        return extents if self.data_stripes == 1 else round_up(extents, self.data_stripes)

    def area_extents(self, extents: int) -> int:
        """Extents on each area for so many logical extents."""
        return 0 if self.is_pool_backed else ceil_div(extents, self.data_stripes)


LINEAR = Layout()


def layout_of(volume_group: VolumeGroup, logical_volume: LogicalVolume) -> Layout:
    """The layout that growth of this LV would follow.

    That of its last segment; pools and caches, which only hand on, are looked through.
    """
    by_name = volume_group.by_name
    seen = {logical_volume.name}
    while logical_volume.segments:
        last = logical_volume.segments[-1]
        below = by_name.get(last.areas[0].name) if len(last.areas) == 1 else None
        if below is None and last.segtype == "linear" and len(last.areas) == 1:
            return Layout(home=(last.areas[0].name,))  # nearly all LVs are so
        if below is None or below.name in seen or "pvmove" in below.roles:
            return _segment_layout(last, by_name)
        seen.add(below.name)
        logical_volume = below
    return LINEAR


def _segment_layout(segment: Segment, by_name: Mapping[str, LogicalVolume]) -> Layout:
    if segment.segtype in _POOL_BACKED:
        return Layout(is_pool_backed=True)
    areas = max(1, len(segment.areas) or segment.stripes)
    data_stripes = 1 if segment.segtype in _WHOLE_COPIES else max(1, segment.data_stripes)
    return Layout(
        areas=areas,
        data_stripes=min(data_stripes, areas),
        metadata_areas=areas if segment.segtype.startswith("raid") else 0,
        home=_home(segment, by_name),
    )


def _home(segment: Segment, by_name: Mapping[str, LogicalVolume]) -> tuple[str, ...]:
    """The physical volume under each area; nothing unless each is on one alone."""
    names: list[str] = []
    for area in segment.areas:
        name = _volume_below(area.name, by_name)
        if name is None:
            return ()
        names.append(name)
    return tuple(names)


def _volume_below(name: str, by_name: Mapping[str, LogicalVolume]) -> str | None:
    """The physical volume an area ends on: itself, or the last one of the sub-LV it is; None when split."""
    lv = by_name.get(name)
    if lv is None:
        return name
    segments = lv.segments
    areas = segments[-1].areas if segments else ()
    return areas[0].name if len(areas) == 1 and areas[0].name not in by_name else None


def needed_extents(volume_group: VolumeGroup, size_bytes: int, layout: Layout = LINEAR) -> int:
    """Logical extents of an LV of that size: rounded up to the extent size and to the stripe count."""
    return layout.rounded(ceil_div(size_bytes, volume_group.extent_size_bytes))


def physical_extents(volume_group: VolumeGroup) -> Mapping[str, int]:
    """Extents each LV really occupies, by LV name, everything below a top-level LV counted on it.

    Sub-LVs have 0.  The spare of pool metadata and a pvmove's temporary volume, which belong to
    nobody, keep their own.  The values add up to the used extents of the volume group.
    """
    by_name = volume_group.by_name
    owners = _find_owners(by_name)
    counted = dict.fromkeys(by_name, 0)
    for lv in volume_group.logical_volumes:
        owner = _owner(lv.name, owners)
        for segment in lv.segments:
            for area in segment.areas:
                below = by_name.get(area.name)
                if below is None:
                    counted[owner] += area.extents
                elif "pvmove" in below.roles:
                    # The volume being moved keeps one copy; what the move needs on top is the move's.
                    counted[owner] += area.extents
                    counted[below.name] -= area.extents
    return counted


def _find_owners(by_name: Mapping[str, LogicalVolume]) -> Mapping[str, str]:
    """What each sub-LV is a component of, by name; top-level LVs are not in it.

    LVM names no parent for a cache's origin and pool (lv_parent is empty): there the cached LV names them.
    """
    owners = {lv.name: lv.parent for lv in by_name.values() if lv.parent and lv.parent in by_name}
    for lv in by_name.values():
        below = [area.name for segment in lv.segments for area in segment.areas]
        for name in (*below, lv.pool):
            component = by_name.get(name) if name else None
            if component and component.is_hidden and "pvmove" not in component.roles:
                owners.setdefault(component.name, lv.name)
    return owners


def _owner(name: str, owners: Mapping[str, str]) -> str:
    """The top-level LV above that one; an LV that is no component owns itself."""
    seen = {name}
    while name in owners and owners[name] not in seen:
        name = owners[name]
        seen.add(name)
    return name
