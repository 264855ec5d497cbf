"""Two LVM reports become one volume group: rows grouped, names undressed, sums checked.

LVM's word is taken only when it is complete and agrees with itself; anything else is a `ReportError`.
Not here: JSON (see `lvmjson`), running LVM and what its failures mean (`agent.host.lvm`), findings about
the volume group's state (see `condition`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agent.core.lvmjson import (
    Extras,
    Listing,
    LvRow,
    Place,
    ReportError,
    VgRow,
    decode_lvs,
    decode_names,
    decode_vgs,
    to_count,
    to_flag,
    to_percent,
    to_words,
)
from agent.core.models import Area, LogicalVolume, PhysicalVolume, Segment, VolumeGroup

_AREA: Final = re.compile(
    r"(?P<name>[^ ].*?):(?P<first>[0-9]{1,10})-(?P<last>[0-9]{1,10})(?: |\Z)", re.DOTALL
)
"""One item of seg_pe_ranges.  A device's path may hold `:` and `,`: the last numbers before a space count."""

_ACTIVE: Final = {"active": True, "1": True, "": False, "0": False}
"""lv_active; every other word ("unknown" without device-mapper, -1) leaves it open."""


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
    seqno = to_count(rows[0].vg_seqno, Place("lvs", 0, rows[0].lv_name), "vg_seqno") if rows else None
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
    volumes = tuple(_logical_volume(rows, group.extent_size_bytes) for rows in by_uuid.values())
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
        seqno=to_count(first.vg_seqno, place, "vg_seqno"),
        attributes=first.vg_attr,
        size_bytes=to_count(first.vg_size, place, "vg_size"),
        extent_size_bytes=to_count(first.vg_extent_size, place, "vg_extent_size"),
        extent_count=to_count(first.vg_extent_count, place, "vg_extent_count"),
        free_extents=to_count(first.vg_free_count, place, "vg_free_count"),
        pv_count=to_count(first.pv_count, place, "pv_count"),
        missing_pv_count=to_count(first.vg_missing_pv_count, place, "vg_missing_pv_count"),
        lv_count=to_count(first.lv_count, place, "lv_count"),
        is_exported=to_flag(first.vg_exported, place, "vg_exported"),
        physical_volumes=tuple(_physical_volume(number, row) for number, row in enumerate(rows)),
        logical_volumes=(),
    )


def _physical_volume(number: int, row: VgRow) -> PhysicalVolume:
    place = Place("vgs", number, row.pv_name)
    volume = PhysicalVolume(
        name=row.pv_name,
        extent_count=to_count(row.pv_pe_count, place, "pv_pe_count"),
        allocated_extents=to_count(row.pv_pe_alloc_count, place, "pv_pe_alloc_count"),
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
        ("vg_extent_size is", group.extent_size_bytes, "positive", max(1, group.extent_size_bytes)),
        ("pv_count is", group.pv_count, "the number of rows", len(volumes)),
        ("vg_size is", group.size_bytes, "of all extents", group.extent_count * group.extent_size_bytes),
        ("vg_extent_count is", group.extent_count, "over all PVs", sum(pv.extent_count for pv in volumes)),
        ("vg_free_count is", group.free_extents, "over all PVs", sum(pv.free_extents for pv in volumes)),
    )
    for label, printed, meaning, expected in checks:
        if printed != expected:
            raise ReportError("vgs", f"{label} {printed}, not {expected} ({meaning})")


def _logical_volume(rows: list[tuple[int, LvRow]], extent_size_bytes: int) -> LogicalVolume:
    number, first = rows[0]
    place = Place("lvs", number, first.lv_name)
    name = _undressed(first.lv_name)
    if not name or not first.lv_uuid:
        raise place.error("lv_name", first.lv_name, f"with lv_uuid {first.lv_uuid!r:.40}")
    size_bytes = to_count(first.lv_size, place, "lv_size")
    segments = _segments(rows)
    extents = _checked_extents(size_bytes, extent_size_bytes, segments, place)
    return LogicalVolume(
        uuid=first.lv_uuid,
        name=name,
        size_bytes=size_bytes,
        extents=extents,
        is_hidden=name != first.lv_name,
        roles=to_words(first.lv_role),
        layouts=to_words(first.lv_layout),
        attributes=first.lv_attr,
        parent=_undressed(first.lv_parent) or None,
        origin=_undressed(first.origin) or None,
        pool=_undressed(first.pool_lv) or None,
        health=first.lv_health_status or None,
        active=_ACTIVE.get("" if first.lv_active == "" else str(first.lv_active)),
        data_percent=to_percent(first.data_percent, place, "data_percent"),
        metadata_percent=to_percent(first.metadata_percent, place, "metadata_percent"),
        sync_percent=to_percent(first.sync_percent, place, "sync_percent"),
        segments=segments,
    )


def _segments(rows: list[tuple[int, LvRow]]) -> tuple[Segment, ...]:
    """The segments in logical order, without a gap or an overlap."""
    if len(rows) == 1 and not rows[0][1].segtype:
        return ()
    starts = [
        (to_count(row.seg_start_pe, Place("lvs", number, row.lv_name), "seg_start_pe"), number, row)
        for number, row in rows
    ]
    starts.sort(key=lambda item: item[:2])
    segments: list[Segment] = []
    end = 0
    for start, number, row in starts:
        place = Place("lvs", number, row.lv_name)
        if start != end or (row.lv_name, row.lv_size) != (rows[0][1].lv_name, rows[0][1].lv_size):
            raise place.error("seg_start_pe", row.seg_start_pe, f"not the segment that follows extent {end}")
        segment = _segment(row, place)
        segments.append(segment)
        end += segment.extents
    return tuple(segments)


def _segment(row: LvRow, place: Place) -> Segment:
    extents = to_count(row.seg_size_pe, place, "seg_size_pe")
    if extents == 0 or not row.segtype:
        raise place.error("seg_size_pe", row.seg_size_pe, f"with segtype {row.segtype!r:.30}")
    return Segment(
        segtype=row.segtype,
        extents=extents,
        stripes=to_count(row.stripes, place, "stripes"),
        data_stripes=to_count(row.data_stripes, place, "data_stripes"),
        data_copies=to_count(row.data_copies, place, "data_copies"),
        areas=_areas(row.seg_pe_ranges, place),
    )


def _areas(value: Listing, place: Place) -> tuple[Area, ...]:
    if not value:
        return ()
    text = value if isinstance(value, str) else " ".join(value)
    areas: list[Area] = []
    end = 0
    while match := _AREA.match(text, end):
        first, last = int(match["first"]), int(match["last"])
        if last < first:
            break
        areas.append(Area(name=_area_name(match["name"]), extents=last - first + 1))
        end = match.end()
    if end != len(text):
        raise place.error("seg_pe_ranges", text, "not a list of NAME:FIRST-LAST")
    return tuple(areas)


def _checked_extents(
    size_bytes: int, extent_size_bytes: int, segments: Iterable[Segment], place: Place
) -> int:
    """The LV's logical extents: what lv_size says, which its segments must bear out.

    A RAID LV that was reshaped keeps spare extents in its segments that belong to no data (reshape_len);
    lv_size leaves them out, so there the segments may only be longer.
    """
    extents, rest = divmod(size_bytes, extent_size_bytes)
    if rest:
        raise place.error("lv_size", size_bytes, f"not a multiple of the extent size {extent_size_bytes}")
    in_segments = sum(segment.extents for segment in segments)
    is_raid = any(segment.segtype.startswith("raid") for segment in segments)
    if in_segments != extents and not (is_raid and in_segments > extents):
        raise place.error("lv_size", size_bytes, f"{extents} extents where its segments have {in_segments}")
    return extents


def _undressed(name: str | None) -> str:
    """A name without the brackets that mark an LV as hidden."""
    if name and name[0] == "[" and name[-1] == "]":
        return name[1:-1]
    return name or ""


def _area_name(name: str) -> str:
    """An area on a missing PV is called `[unknown]`; brackets of other names mark hidden LVs."""
    return name if name == "[unknown]" else _undressed(name)


def _require_group(program: str, number: int, seen: str, name: str) -> None:
    if seen != name:
        raise ReportError(program, f"row {number} is about volume group {seen!r:.60}, not {name!r:.60}")


def _require_unique(program: str, what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ReportError(program, f"two {what} are {name!r:.60}")
        seen.add(name)
