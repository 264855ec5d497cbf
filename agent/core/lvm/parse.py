"""Two LVM reports become one volume group: rows grouped, names undressed, sums checked.

LVM's word is taken only when it is complete and agrees with itself; anything else is a `ReportError`.
Not here: JSON (see `decode`), single LVs (see `volumes`), running LVM and what its failures mean
(`agent.host.lvm`), findings about the volume group's state (see `condition`).
"""

from collections.abc import Iterable, Sequence

import msgspec

from agent.core.lvm.decode import Extras, Place, ReportError, decode_lvs, decode_names, decode_vgs, to_flag
from agent.core.lvm.rows import LvRow, VgRow
from agent.core.lvm.volumes import build_logical_volume
from agent.core.models import PhysicalVolume, VolumeGroup


class VgReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `vgs` said about one volume group, checked; its LVs are not known yet."""

    volume_group: VolumeGroup
    """Without logical volumes."""
    extras: Extras


class LvReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `lvs` said about one volume group."""

    rows: Sequence[LvRow]
    uuid: str | None
    """None: there is no row that could say it."""
    seqno: int | None
    extras: Extras


class VisibleGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A volume group that is there, however usable it is."""

    name: str
    uuid: str
    is_exported: bool
    system_id: str


def parse_volume_group(vgs_output: bytes, lvs_output: bytes, name: str) -> VolumeGroup:
    """Decode both reports of one metadata revision.

    Raises:
        ReportError: either is not the report of that volume group, or they contradict each other.
    """
    return join(parse_vgs(vgs_output, name), parse_lvs(lvs_output, name))


def parse_vgs(output: bytes, name: str) -> VgReport:
    """Decode what `vgs` printed about the volume group of that name.

    Raises:
        ReportError: no complete report, another group's rows, or numbers that can't be.
    """
    rows, extras = decode_vgs(output)
    if not rows:
        raise ReportError("vgs", "the report is complete but has no row")
    for number, row in enumerate(rows):
        _require_group("vgs", number, row.vg_name, name)
        if row.vg_uuid != rows[0].vg_uuid:
            raise ReportError("vgs", f"two volume groups: {rows[0].vg_uuid:.40} and {row.vg_uuid:.40}")
        if row.vg_seqno != rows[0].vg_seqno:
            raise ReportError("vgs", f"two revisions: {rows[0].vg_seqno!r:.30} and {row.vg_seqno!r:.30}")
    _require_unique("vgs", "PVs", (row.pv_uuid for row in rows))
    volume_group = _volume_group(rows)
    _check_sums(volume_group)
    return VgReport(volume_group=volume_group, extras=extras)


def parse_lvs(output: bytes, name: str) -> LvReport:
    """Decode what `lvs` printed about the volume group of that name.

    Raises:
        ReportError: no complete report, or another group's rows.
    """
    rows, extras = decode_lvs(output)
    for number, row in enumerate(rows):
        _require_group("lvs", number, row.vg_name, name)
        if (row.vg_uuid, row.vg_seqno) != (rows[0].vg_uuid, rows[0].vg_seqno):
            raise ReportError("lvs", f"row {number}: not of the same volume group and revision as row 0")
    seqno = rows[0].vg_seqno if rows else None
    return LvReport(rows=rows, uuid=rows[0].vg_uuid if rows else None, seqno=seqno, extras=extras)


def are_same_revision(vgs: VgReport, lvs: LvReport) -> bool:
    """Whether both describe the same metadata.

    `lvs` of a group without LVs prints no row and so no revision: that agrees only with no LV at all.
    """
    if lvs.seqno is None:
        return vgs.volume_group.lv_count == 0 and vgs.volume_group.used_extents == 0
    return vgs.volume_group.seqno == lvs.seqno and vgs.volume_group.uuid == lvs.uuid


def join(vgs: VgReport, lvs: LvReport) -> VolumeGroup:
    """The volume group with its logical volumes.

    Raises:
        ReportError: the reports contradict each other or themselves.
    """
    group = vgs.volume_group
    if not are_same_revision(vgs, lvs):
        seen = f"{lvs.seqno} of {lvs.uuid}" if lvs.rows else f"no row, but vgs counts {group.lv_count} LVs"
        raise ReportError(
            "lvs", f"not the revision that vgs printed ({group.seqno} of {group.uuid}): {seen:.90}"
        )
    by_uuid: dict[str, list[tuple[int, LvRow]]] = {}
    for number, row in enumerate(lvs.rows):
        by_uuid.setdefault(row.lv_uuid, []).append((number, row))
    volumes = tuple(build_logical_volume(rows, group.extent_size_bytes) for rows in by_uuid.values())
    _require_unique("lvs", "LVs", [lv.name for lv in volumes])
    # lvm2 counts in lv_count exactly the LVs it prints without brackets (lv_is_visible).
    visible = sum(not lv.is_hidden for lv in volumes)
    if visible < group.lv_count:
        raise ReportError("lvs", f"it lists {visible} visible LVs where vgs counts {group.lv_count}")
    return msgspec.structs.replace(group, logical_volumes=volumes)


def parse_visible_groups(output: bytes) -> tuple[VisibleGroup, ...]:
    """Decode the `vgs` report about which groups are there.

    Raises:
        ReportError: no complete report.
    """
    return tuple(
        VisibleGroup(
            name=row.vg_name,
            uuid=row.vg_uuid,
            is_exported=to_flag(row.vg_exported, Place("vgs", number, row.vg_name), "vg_exported"),
            system_id=row.vg_systemid or "",
        )
        for number, row in enumerate(decode_names(output))
    )


def _volume_group(rows: Sequence[VgRow]) -> VolumeGroup:
    first = rows[0]
    place = Place("vgs", 0, first.vg_name)
    return VolumeGroup(
        name=first.vg_name,
        uuid=first.vg_uuid,
        seqno=first.vg_seqno,
        attributes=first.vg_attr,
        size_bytes=first.vg_size,
        extent_size_bytes=first.vg_extent_size,
        extent_count=first.vg_extent_count,
        free_extents=first.vg_free_count,
        pv_count=first.pv_count,
        missing_pv_count=first.vg_missing_pv_count,
        lv_count=first.lv_count,
        is_exported=to_flag(first.vg_exported, place, "vg_exported"),
        physical_volumes=tuple(_physical_volume(number, row) for number, row in enumerate(rows)),
        logical_volumes=(),
    )


def _physical_volume(number: int, row: VgRow) -> PhysicalVolume:
    place = Place("vgs", number, row.pv_name)
    volume = PhysicalVolume(
        name=row.pv_name,
        extent_count=row.pv_pe_count,
        allocated_extents=row.pv_pe_alloc_count,
        is_allocatable=to_flag(row.pv_allocatable, place, "pv_allocatable"),
        is_missing=to_flag(row.pv_missing, place, "pv_missing"),
    )
    if volume.allocated_extents > volume.extent_count:
        raise place.error(
            "pv_pe_alloc_count", row.pv_pe_alloc_count, f"above pv_pe_count {volume.extent_count}"
        )
    return volume


def _check_sums(group: VolumeGroup) -> None:
    """Refuse numbers that contradict each other: metadata that LVM accepts never does."""
    volumes = group.physical_volumes
    checks = (
        ("pv_count is", group.pv_count, "the number of rows", len(volumes)),
        ("vg_size is", group.size_bytes, "of all extents", group.extent_count * group.extent_size_bytes),
        ("vg_extent_count is", group.extent_count, "over all PVs", sum(pv.extent_count for pv in volumes)),
        ("vg_free_count is", group.free_extents, "over all PVs", sum(pv.free_extents for pv in volumes)),
    )
    for label, printed, meaning, expected in checks:
        if printed != expected:
            raise ReportError("vgs", f"{label} {printed}, not {expected} ({meaning})")


def _require_group(program: str, number: int, seen: str, name: str) -> None:
    if seen != name:
        raise ReportError(program, f"row {number} is about volume group {seen!r:.60}, not {name!r:.60}")


def _require_unique(program: str, what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ReportError(program, f"two {what} are {name!r:.60}")
        seen.add(name)
