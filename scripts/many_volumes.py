"""Metadata of a volume group with any number of small LVs: restoring it beats a thousand lvcreates.

Not here: restoring it (`ScratchLvm.restore`).
"""

from collections.abc import Iterator

EXTENTS_EACH = 2

_GROUP = """\
contents = "Text Format Volume Group"
version = 1
description = ""
creation_host = "lab"
creation_time = 1700000000

{name} {{
    id = "{uuid}"
    seqno = 3
    format = "lvm2"
    status = ["RESIZEABLE", "READ", "WRITE"]
    flags = []
    extent_size = 8192
    max_lv = 0
    max_pv = 0
    metadata_copies = 0

    physical_volumes {{
        pv0 {{
            id = "{pv_uuid}"
            device = "/dev/lab0"
            status = ["ALLOCATABLE"]
            flags = []
            dev_size = {sectors}
            pe_start = {pe_start}
            pe_count = {pe_count}
        }}
    }}

    logical_volumes {{
{volumes}
    }}
}}
"""
_VOLUME = """\
        {name} {{
            id = "{uuid}"
            status = ["READ", "WRITE", "VISIBLE"]
            flags = []
            creation_time = 1700000000
            creation_host = "lab"
            segment_count = 1
            segment1 {{
                start_extent = 0
                extent_count = {extents}
                type = "striped"
                stripe_count = 1
                stripes = ["pv0", {start}]
            }}
        }}"""
_PE_START = 16384
"""Sectors: eight MiB for LVM's metadata area, which a thousand LVs would overflow at its usual size."""


def volume_names(count: int) -> Iterator[str]:
    """Name the LVs in their order: ``vol-0000``, ``vol-0001`` and so on."""
    return (f"vol-{index:04d}" for index in range(count))


def write_metadata(group: str, count: int) -> str:
    """Write the metadata of a group of `count` LVs of two extents and as many free extents."""
    extents = 2 * EXTENTS_EACH * count
    volumes = (
        _VOLUME.format(name=name, uuid=_uuid(index + 2), extents=EXTENTS_EACH, start=EXTENTS_EACH * index)
        for index, name in enumerate(volume_names(count))
    )
    return _GROUP.format(
        name=group,
        uuid=_uuid(0),
        pv_uuid=_uuid(1),
        sectors=_PE_START + extents * 8192,
        pe_start=_PE_START,
        pe_count=extents,
        volumes="\n".join(volumes),
    )


def _uuid(number: int) -> str:
    digits = f"Many{number:028d}"
    return "-".join((digits[:6], *(digits[at : at + 4] for at in range(6, 26, 4)), digits[26:]))
