"""The rows that LVM reports are made of.  Their fields are exactly what is asked of `vgs` and `lvs`.

Every shape takes `json` (each value a string), `json_std` (numbers, nulls and arrays), keys in any order
and keys nobody asked for.  Not here: decoding (see `decode`), what the rows mean (see `parse`).
"""

from typing import Annotated

import msgspec

from agent.core.units import MAX_BYTES

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_BYTES)]
"""A whole number in whatever unit, printed as number or text.  Undefined is an error: unknown is not zero."""
Positive = Annotated[int, msgspec.Meta(gt=0, le=MAX_BYTES)]
Scalar = str | int | float | None
"""A field that holds one value of any kind."""
Listing = list[str] | str | None
"""A field that holds several: `json` joins them into one string, `json_std` prints an array."""


class VgRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of `vgs` asked with physical volume fields: one physical volume."""

    vg_name: str
    vg_uuid: str
    vg_seqno: Count
    vg_attr: str
    vg_size: Count
    vg_extent_size: Positive
    vg_extent_count: Count
    vg_free_count: Count
    pv_count: Count
    vg_missing_pv_count: Count
    lv_count: Count
    vg_exported: Scalar
    pv_name: str
    pv_uuid: str
    pv_missing: Scalar
    pv_allocatable: Scalar
    pv_pe_count: Count
    pv_pe_alloc_count: Count


class LvRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of `lvs` asked with segment fields: one segment, the LV's own fields repeated on each."""

    vg_name: str
    vg_uuid: str
    vg_seqno: Count
    lv_uuid: str
    lv_name: str
    lv_size: Count
    lv_role: Listing
    lv_layout: Listing
    lv_attr: str
    lv_parent: str | None
    origin: str | None
    pool_lv: str | None
    lv_health_status: str | None
    lv_active: Scalar
    data_percent: Scalar
    metadata_percent: Scalar
    sync_percent: Scalar
    segtype: str
    stripes: Count
    data_stripes: Count
    data_copies: Count
    seg_start_pe: Count
    seg_size_pe: Positive
    seg_pe_ranges: Listing


class NameRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the `vgs` that looks for what is there under which name."""

    vg_name: str
    vg_uuid: str
    vg_exported: Scalar
    vg_systemid: str | None


class LogRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of the command log: 2.03.26 and later print it after the report unless told not to."""

    log_type: str = ""
    log_message: str = ""
