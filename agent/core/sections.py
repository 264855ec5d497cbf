"""Published sections of a volume group and its LVs, from what LVM and the kernel showed.

Not here: verdicts and findings (`judge`).
"""

from collections.abc import Mapping

from agent.core.extents.room import allocatable_room
from agent.core.models import LogicalVolume, VolumeGroup
from agent.core.report import LayerSection, LogicalVolumeSection, LvRole, VolumeGroupSection


def volume_group_section(volume_group: VolumeGroup) -> VolumeGroupSection:
    """The published view of a volume group."""
    return VolumeGroupSection(
        name=volume_group.name,
        uuid=volume_group.uuid,
        seqno=volume_group.seqno,
        size_bytes=volume_group.size_bytes,
        extent_size_bytes=volume_group.extent_size_bytes,
        extent_count=volume_group.extent_count,
        free_extents=volume_group.free_extents,
        allocatable_extents=allocatable_room(volume_group).extents,
        pv_count=volume_group.pv_count,
        missing_pv_count=volume_group.missing_pv_count,
        lv_count=volume_group.lv_count,
        attributes=volume_group.attributes,
        read_mode=volume_group.read_mode,
    )


def logical_volume_sections(
    volume_group: VolumeGroup,
    occupied: Mapping[str, int],
    layers: Mapping[str, tuple[LayerSection, ...]] | None,
) -> tuple[LogicalVolumeSection, ...]:
    """The published view of every LV.

    By LV name: `occupied` extents (see `physical_extents`), and `layers`, None = nobody could look.
    """
    return tuple(
        LogicalVolumeSection(
            name=lv.name,
            uuid=lv.uuid,
            size_bytes=lv.size_bytes,
            extents=lv.extents,
            physical_extents=occupied[lv.name],
            role=_role(lv),
            active=lv.active,
            health=lv.health,
            data_percent=lv.data_percent,
            metadata_percent=lv.metadata_percent,
            layers=None if layers is None else layers.get(lv.name),
        )
        for lv in volume_group.logical_volumes
    )


_ROLES = (
    ("spare", LvRole.SPARE),
    ("pvmove", LvRole.PVMOVE),
)


def _role(lv: LogicalVolume) -> LvRole:
    for word, role in _ROLES:
        if word in lv.roles:
            return role
    if lv.is_hidden:
        return LvRole.PRIVATE
    if "thicksnapshot" in lv.roles:
        return LvRole.SNAPSHOT
    return LvRole.THIN_POOL if {"thin", "pool"} <= set(lv.layouts) else LvRole.PUBLIC
