"""Handing extents out, the way LVM's normal allocation policy does.

Follows lvm2's lib/metadata/lv_manip.c: an LV grows on its own physical volumes first, then goes to those
that could give most.  Free extents are counted for each physical volume, not where on it they lie.
Not here: what a volume needs (`space`), in which order volumes ask (`growth`).
"""

from collections.abc import Sequence
from itertools import chain, repeat

import msgspec

from agent.core.models import VolumeGroup


class Room(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Free extents by physical volume, those that can really be handed out."""

    free: tuple[int, ...]
    names: tuple[str, ...] = ()
    """The physical volumes, in the same order; empty = nobody asks for a particular one."""
    is_frozen: bool = False
    """LVM refuses every change: a physical volume of the group is missing, or the group is read-only."""

    @property
    def extents(self) -> int:
        """All of them together, whether or not LVM hands them out right now."""
        return sum(self.free)

    def allocate(self, areas: int, area_extents: int, home: Sequence[str] = ()) -> "Room | None":
        """What is left after handing out `areas` equal areas on separate physical volumes.

        None when there is no room for it.  `home` names the volumes to be tried first.
        """
        if area_extents == 0:
            return self
        left, placed = self._place(areas, area_extents, home)
        return msgspec.structs.replace(self, free=left) if placed == area_extents else None

    def placeable(self, areas: int, area_extents: int, home: Sequence[str] = ()) -> int:
        """How many of the `areas` times `area_extents` extents could be handed out."""
        return self._place(areas, area_extents, home)[1] * areas

    def _place(self, areas: int, area_extents: int, home: Sequence[str]) -> tuple[tuple[int, ...], int]:
        """What would be left, and how many extents each area would get."""
        free = list(self.free)
        placed = 0
        if self.is_frozen or areas > len(free):
            return self.free, placed
        if len(free) == 1:  # most hosts: there is nothing to choose
            placed = min(area_extents, free[0])
            return (free[0] - placed,), placed
        for chosen in chain([self._find(home) if len(home) == areas else []], repeat([])):
            # LVM sorts by what it could use of each: of several that are large enough, the first is taken.
            usable = [min(area_extents - placed, extents) for extents in free]
            volumes = chosen or sorted(range(len(free)), key=usable.__getitem__, reverse=True)[:areas]
            take = min(usable[index] for index in volumes)
            if take == 0 and not chosen:
                break
            for index in volumes:
                free[index] -= take
            placed += take
        return tuple(free), placed

    def _find(self, home: Sequence[str]) -> list[int]:
        """Where these physical volumes stand; nothing unless each is there and no two are one."""
        found = {self.names.index(name) for name in home if name in self.names}
        return [self.names.index(name) for name in home] if len(found) == len(home) else []


def allocatable_room(volume_group: VolumeGroup) -> Room:
    """The extents that can really be handed out.

    `vgs` counts free extents of missing and of non-allocatable physical volumes too; LVM won't give
    them to anybody, nor any extent of an exported volume group.
    """
    usable = tuple(
        pv
        for pv in volume_group.physical_volumes
        if pv.is_allocatable and not pv.is_missing and not volume_group.is_exported
    )
    return Room(
        free=tuple(pv.free_extents for pv in usable),
        names=tuple(pv.name for pv in usable),
        is_frozen=is_frozen(volume_group),
    )


def is_frozen(volume_group: VolumeGroup) -> bool:
    """Whether LVM refuses every change to it, however much room there is."""
    return volume_group.missing_pv_count > 0 or is_read_only(volume_group)


def is_read_only(volume_group: VolumeGroup) -> bool:
    """Whether its metadata lacks the WRITE flag: the first letter of vg_attr."""
    return volume_group.attributes.startswith("r")
