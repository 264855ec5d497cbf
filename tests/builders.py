"""Small volume groups and records for pure tests, written as briefly as one thinks of them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from agent.core.models import (
    Area,
    LogicalVolume,
    Phase,
    PhysicalVolume,
    RecordedFilesystem,
    RecordedSizes,
    Segment,
    Source,
    VolumeGroup,
)
from agent.core.units import GIB, MIB

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
EXTENT = 32 * MIB

BUG_LVS: Mapping[str, int] = {
    "scratch-lv": 512,
    "log-lv": 250,
    "extension-lv": 32,
    "pgsql-lv": 640,
    "docker-lv": 960,
    "kubelet-lv": 320,
    "platform-lv": 320,
    "etcd-lv": 160,
    "dockerdistribution-lv": 512,
    "backup-lv": 800,
    "rabbit-lv": 64,
    "ceph-mon-lv": 640,
}
"""The bug report's machine in extents of 32 MiB: 5210 used, 517 free of 5727."""


def make_lv(
    name: str,
    extents: int,
    *,
    segtype: str = "linear",
    areas: Iterable[tuple[str, int]] | None = None,
    hidden: bool = False,
    roles: tuple[str, ...] = ("public",),
    layouts: tuple[str, ...] = ("linear",),
    parent: str | None = None,
    origin: str | None = None,
    extent_size_bytes: int = EXTENT,
    data_stripes: int = 1,
    data_copies: int = 1,
) -> LogicalVolume:
    """An LV of one segment; without `areas` it lies on /dev/sda alone."""
    below = tuple(
        Area(name=area, extents=count)
        for area, count in ([("/dev/sda", extents)] if areas is None else areas)
    )
    segment = Segment(
        segtype=segtype,
        extents=extents,
        stripes=len(below),
        data_stripes=data_stripes,
        data_copies=data_copies,
        areas=below,
    )
    return LogicalVolume(
        uuid=f"uuid-of-{name}",
        name=name,
        size_bytes=extents * extent_size_bytes,
        extents=extents,
        is_hidden=hidden,
        roles=roles,
        layouts=layouts,
        attributes="-wi-a-----",
        parent=parent,
        origin=origin,
        pool=None,
        health=None,
        active=True,
        data_percent=None,
        metadata_percent=None,
        sync_percent=None,
        segments=(segment,),
    )


def make_pv(
    name: str, extent_count: int, allocated: int = 0, *, allocatable: bool = True, missing: bool = False
) -> PhysicalVolume:
    """A physical volume in extents."""
    return PhysicalVolume(
        name=name,
        extent_count=extent_count,
        allocated_extents=allocated,
        is_allocatable=allocatable,
        is_missing=missing,
    )


def make_vg(
    lvs: Iterable[LogicalVolume],
    *,
    pvs: Iterable[PhysicalVolume] | None = None,
    extent_count: int = 5727,
    name: str = "cgts-vg",
    extent_size_bytes: int = EXTENT,
    exported: bool = False,
) -> VolumeGroup:
    """A volume group; without `pvs` everything lies on one that is large enough."""
    lvs = tuple(lvs)
    if pvs is None:
        used = sum(
            area.extents
            for lv in lvs
            for segment in lv.segments
            for area in segment.areas
            if area.name.startswith("/dev/")
        )
        pvs = (make_pv("/dev/sda", extent_count, used),)
    pvs = tuple(pvs)
    return VolumeGroup(
        name=name,
        uuid="uuid-of-vg",
        seqno=7,
        attributes="wz--n-",
        size_bytes=sum(pv.extent_count for pv in pvs) * extent_size_bytes,
        extent_size_bytes=extent_size_bytes,
        extent_count=sum(pv.extent_count for pv in pvs),
        free_extents=sum(pv.free_extents for pv in pvs),
        pv_count=len(pvs),
        missing_pv_count=sum(pv.is_missing for pv in pvs),
        lv_count=sum(not lv.is_hidden for lv in lvs),
        is_exported=exported,
        physical_volumes=pvs,
        logical_volumes=lvs,
    )


def make_bug_vg(**changed: int) -> VolumeGroup:
    """The bug report's machine; ``docker_lv=1280`` changes an LV, 0 leaves it out."""
    sizes = dict(BUG_LVS)
    sizes.update({name.replace("_", "-"): extents for name, extents in changed.items()})
    return make_vg(make_lv(name, extents) for name, extents in sizes.items() if extents)


def record(
    name: str,
    gib: int,
    *,
    lv: str | None = None,
    source: Source = Source.FILE,
    whole_gib: bool = False,
    phase: Phase = Phase.SETTLED,
    state: str | None = None,
    recorded_at: datetime | None = None,
    factor: int = 1,
    vg: str = "cgts-vg",
) -> RecordedFilesystem:
    """A record in GiB."""
    return RecordedFilesystem(
        name=name,
        source=source,
        logical_volume=lv or f"{name}-lv",
        volume_group=vg,
        recorded_bytes=gib * factor * GIB,
        granularity_bytes=factor * GIB if whole_gib else None,
        phase=phase,
        state=state,
        recorded_at=recorded_at,
    )


def recorded(*rows: RecordedFilesystem, as_of: datetime | None = None) -> RecordedSizes:
    """Records that came from a file."""
    return RecordedSizes(filesystems=rows, origin="file:recorded.toml", as_of=as_of)
