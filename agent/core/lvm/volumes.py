"""One logical volume from its rows: segments put in order, names undressed, sizes checked.

Not here: JSON (see `decode`), what several LVs must agree on (see `parse`).
"""

import re
from collections.abc import Sequence
from typing import Final

from agent.core.lvm.decode import Place, to_percent, to_words
from agent.core.lvm.rows import Listing, LvRow, Scalar
from agent.core.models import Area, LogicalVolume, Segment

_AREA: Final = re.compile(
    r"(?P<name>[^ ].*?):(?P<first>[0-9]{1,10})-(?P<last>[0-9]{1,10})(?: |\Z)", re.DOTALL
)
"""One item of seg_pe_ranges.  A device's path may hold `:` and `,`: the last numbers before a space count."""

_ACTIVE: Final = {"active": True, "1": True, "": False, "0": False}
"""lv_active; every other word ("unknown" without device-mapper, -1) leaves it open."""

Rows = Sequence[tuple[int, LvRow]]
"""The rows of one LV, one for each segment, with their numbers in the output."""


def build_logical_volume(rows: Rows, extent_size_bytes: int) -> LogicalVolume:
    """Make one LV of its rows.

    Raises:
        ReportError: they contradict each other or the extent size.
    """
    number, first = rows[0]
    name = _undressed(first.lv_name)
    if not name or not first.lv_uuid:
        raise _place(rows[0]).error("lv_name", first.lv_name, f"with lv_uuid {first.lv_uuid!r:.40}")
    segments = _segments(rows)
    return LogicalVolume(
        uuid=first.lv_uuid,
        name=name,
        size_bytes=first.lv_size,
        extents=_checked_extents(first, extent_size_bytes, segments, number),
        is_hidden=name != first.lv_name,
        roles=to_words(first.lv_role),
        layouts=to_words(first.lv_layout),
        attributes=first.lv_attr,
        parent=_undressed(first.lv_parent) or None,
        origin=_undressed(first.origin) or None,
        pool=_undressed(first.pool_lv) or None,
        health=first.lv_health_status or None,
        active=_ACTIVE.get(str(first.lv_active)),
        data_percent=_percent(rows[0], "data_percent", first.data_percent),
        metadata_percent=_percent(rows[0], "metadata_percent", first.metadata_percent),
        sync_percent=_percent(rows[0], "sync_percent", first.sync_percent),
        segments=segments,
    )


def _place(row: tuple[int, LvRow]) -> Place:
    return Place("lvs", row[0], row[1].lv_name)


def _percent(row: tuple[int, LvRow], field: str, value: Scalar) -> float | None:
    """A percentage; LVM prints none for whatever is not active."""
    return None if value is None or value == "" else to_percent(value, _place(row), field)


def _segments(rows: Rows) -> tuple[Segment, ...]:
    """The segments in logical order, without a gap or an overlap."""
    first = rows[0][1]
    segments: list[Segment] = []
    end = 0
    for row in rows if len(rows) == 1 else sorted(rows, key=_start):
        fields = row[1]
        if fields.seg_start_pe != end:
            raise _place(row).error(
                "seg_start_pe", fields.seg_start_pe, f"where a segment at {end} should follow"
            )
        if (fields.lv_name, fields.lv_size) != (first.lv_name, first.lv_size):
            raise _place(row).error("lv_uuid", fields.lv_uuid, f"as is that of {first.lv_name!r:.60}")
        segments.append(
            Segment(
                segtype=fields.segtype,
                extents=fields.seg_size_pe,
                stripes=fields.stripes,
                data_stripes=fields.data_stripes,
                data_copies=fields.data_copies,
                areas=_areas(row, fields.seg_pe_ranges),
            )
        )
        end += fields.seg_size_pe
    return tuple(segments)


def _start(row: tuple[int, LvRow]) -> int:
    return row[1].seg_start_pe


def _areas(row: tuple[int, LvRow], value: Listing) -> tuple[Area, ...]:
    if not value:
        return ()
    text = value if isinstance(value, str) else " ".join(value)
    areas: list[Area] = []
    end = 0
    while match := _AREA.match(text, end):
        name, first, last = match.groups()
        extents = int(last) - int(first) + 1
        if extents < 1:
            break
        areas.append(Area(name=_area_name(name), extents=extents))
        end = match.end()
    if end != len(text):
        raise _place(row).error("seg_pe_ranges", text, "no list of NAME:FIRST-LAST")
    return tuple(areas)


def _checked_extents(first: LvRow, extent_size_bytes: int, segments: Sequence[Segment], number: int) -> int:
    """The LV's logical extents: what lv_size says, which its segments must bear out.

    A RAID LV that was reshaped keeps spare extents in its segments that hold no data (reshape_len);
    lv_size leaves them out, so there the segments may be longer.
    """
    extents, rest = divmod(first.lv_size, extent_size_bytes)
    in_segments = sum([segment.extents for segment in segments])
    if rest == 0 and in_segments == extents:
        return extents
    place = _place((number, first))
    if rest:
        raise place.error("lv_size", first.lv_size, f"no multiple of the extent size {extent_size_bytes}")
    if in_segments > extents and segments[0].segtype.startswith("raid"):
        return extents
    raise place.error("lv_size", first.lv_size, f"{extents} extents where its segments have {in_segments}")


def _undressed(name: str | None) -> str:
    """A name without the brackets that mark an LV as hidden."""
    if name and name[0] == "[" and name[-1] == "]":
        return name[1:-1]
    return name or ""


def _area_name(name: str) -> str:
    """An area on a missing PV is called `[unknown]`; brackets of other names mark hidden LVs."""
    return name if name == "[unknown]" else _undressed(name)
