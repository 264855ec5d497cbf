"""Layouts whose creation needs device-mapper, brought to life from hand-written metadata.

Every expected number here was counted in the metadata files by hand.
"""

from collections.abc import Mapping

import msgspec
import pytest
from lvm_lab import METADATA, read_group
from scratch_lvm import ScratchLvm

from agent.core.extents.space import Layout, layout_of, physical_extents

pytestmark = pytest.mark.lvm


@pytest.fixture(scope="module")
def restored(lvm: ScratchLvm) -> ScratchLvm:
    """All the metadata files at once, each its own volume group."""
    for file in sorted(METADATA.glob("*.vgcfg")):
        lvm.restore(file.read_text())
    return lvm


@pytest.mark.parametrize(
    ("group", "used", "occupied"),
    [
        # raid1: 2 x 64, raid5: 3 x 64, raid6: 5 x 64, raid10: 4 x 64; one metadata extent for each image.
        ("raid-vg", 910, {"mirrored-lv": 130, "five-lv": 195, "six-lv": 325, "ten-lv": 260}),
        # The pool holds 200 of data and 2 of metadata; its volumes promise 2010 and occupy nothing.
        (
            "thin-vg",
            254,
            {"pool-lv": 202, "lvol0_pmspare": 2, "plain-lv": 50, "huge-lv": 0, "huge-snap": 0, "small-lv": 0},
        ),
        # 100 of origin, 20 + 2 of pool.
        ("cache-vg", 124, {"cached-lv": 122, "lvol0_pmspare": 2}),
        ("mirror-vg", 121, {"mirror-lv": 121}),
        # The volume being moved keeps its 50; the 40 that the move needs on top are the move's.
        ("move-vg", 120, {"moving-lv": 50, "still-lv": 30, "pvmove0": 40}),
        ("snap-vg", 150, {"origin-lv": 100, "before-snap": 20, "grown-lv": 30}),
        (
            "varied-vg",
            30886,
            {
                "scratch-lv": 4096, "log-lv": 768, "extension-lv": 256, "pgsql-lv": 5120, "docker-lv": 8192,
                "kubelet-lv": 2560, "backup-lv": 256, "platform-lv": 2560, "etcd-lv": 1280,
                "dockerdistribution-lv": 4096, "thin-pool0": 1282, "thin-vol-1": 0, "thin-snap-1": 0,
                "pgsql-lv-snap": 128, "raid1-lv": 130, "mirror-lv": 64, "striped-lv": 64,
                "my--double--dash-lv": 16, "a.b_c+d": 16, "lvol0_pmspare": 2,
            },
        ),
    ],
)  # fmt: skip
def test_every_used_extent_belongs_to_somebody(
    restored: ScratchLvm, group: str, used: int, occupied: Mapping[str, int]
) -> None:
    volume_group = read_group(restored, group)
    assert volume_group.used_extents == used
    found = physical_extents(volume_group)
    assert {name: found[name] for name in occupied} == occupied
    assert {name: extents for name, extents in found.items() if name not in occupied and extents} == {}


@pytest.mark.parametrize(
    ("group", "lv_name", "expected"),
    [
        ("raid-vg", "mirrored-lv", Layout(areas=2, metadata_areas=2)),
        ("raid-vg", "five-lv", Layout(areas=3, data_stripes=2, metadata_areas=3)),
        ("raid-vg", "six-lv", Layout(areas=5, data_stripes=3, metadata_areas=5)),
        ("raid-vg", "ten-lv", Layout(areas=4, data_stripes=2, metadata_areas=4)),
        ("thin-vg", "pool-lv", Layout(areas=2, data_stripes=2)),
        ("thin-vg", "huge-lv", Layout(is_pool_backed=True)),
        ("cache-vg", "cached-lv", Layout()),
        ("mirror-vg", "mirror-lv", Layout(areas=2)),
        ("move-vg", "still-lv", Layout()),
        ("snap-vg", "origin-lv", Layout()),
    ],
)
def test_growth_would_follow_the_layout(
    restored: ScratchLvm, group: str, lv_name: str, expected: Layout
) -> None:
    volume_group = read_group(restored, group)
    lv = volume_group.find(lv_name)
    assert lv is not None
    layout = layout_of(volume_group, lv)
    assert msgspec.structs.replace(layout, home=()) == expected
    # Where each area lies: LVM puts legs, images and stripes of one LV on disks of their own.
    assert len(set(layout.home)) == (0 if expected.is_pool_backed else expected.areas)


def test_what_lvm_cannot_say_without_device_mapper_is_unknown(restored: ScratchLvm) -> None:
    pool = read_group(restored, "thin-vg").find("pool-lv")
    assert pool is not None
    assert pool.data_percent is None
    assert pool.metadata_percent is None
