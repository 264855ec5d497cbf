"""Extents: attribution, layouts and what can be handed out."""

import msgspec
import pytest
from builders import make_bug_vg, make_lv, make_pv, make_vg
from hypothesis import given
from hypothesis import strategies as st

from agent.core.extents.room import Room, allocatable_room
from agent.core.extents.space import (
    LINEAR,
    Layout,
    layout_of,
    needed_extents,
    physical_extents,
)
from agent.core.models import LogicalVolume


def raid1(name: str, extents: int) -> list[LogicalVolume]:
    """A raid1 with two legs and their metadata."""
    legs = [(f"{name}_rimage_{leg}", extents) for leg in range(2)]
    return [
        make_lv(name, extents, segtype="raid1", areas=legs, layouts=("raid", "raid1"), data_stripes=2),
        *(
            make_lv(
                sub, size, hidden=True, parent=name, roles=("private", "raid"), areas=[(f"/dev/sd{i}", size)]
            )
            for i, leg in enumerate(("a", "b"))
            for sub, size in ((f"{name}_rimage_{i}", extents), (f"{name}_rmeta_{i}", 1))
            if leg
        ),
    ]


def thin_pool(name: str, extents: int, metadata: int) -> list[LogicalVolume]:
    """A thin pool with its data, metadata and the spare, and one overprovisioned volume."""
    return [
        make_lv(
            name, extents, segtype="thin-pool", areas=[(f"{name}_tdata", extents)], layouts=("thin", "pool")
        ),
        make_lv(
            f"{name}_tdata", extents, hidden=True, parent=name, roles=("private", "thin", "pool", "data")
        ),
        make_lv(
            f"{name}_tmeta", metadata, hidden=True, parent=name, roles=("private", "thin", "pool", "metadata")
        ),
        make_lv("lvol0_pmspare", metadata, hidden=True, roles=("private", "pool", "spare")),
        make_lv("thin-volume", 99999, segtype="thin", areas=[], layouts=("thin", "sparse")),
    ]


def test_legs_and_their_metadata_are_counted_on_the_raid() -> None:
    occupied = physical_extents(make_vg(raid1("mirrored-lv", 64)))
    assert occupied["mirrored-lv"] == 2 * 64 + 2
    assert occupied["mirrored-lv_rimage_0"] == occupied["mirrored-lv_rmeta_1"] == 0


def test_pool_counts_data_and_metadata_and_thin_volumes_nothing() -> None:
    occupied = physical_extents(make_vg(thin_pool("pool0", 1280, 2)))
    assert occupied["pool0"] == 1282
    assert occupied["lvol0_pmspare"] == 2
    assert occupied["thin-volume"] == 0


def test_volume_on_the_move_keeps_its_size_and_the_move_has_the_second_copy() -> None:
    move = make_lv(
        "pvmove0", 96, segtype="mirror", hidden=True, roles=("private", "pvmove"),
        areas=[("/dev/sda", 96), ("/dev/sdb", 96)],
    )  # fmt: skip
    occupied = physical_extents(make_vg([make_lv("moving-lv", 96, areas=[("pvmove0", 96)]), move]))
    assert occupied == {"moving-lv": 96, "pvmove0": 96}


def test_components_of_components_are_counted_on_the_top() -> None:
    volumes = [
        make_lv("pool0", 10, segtype="thin-pool", areas=[("pool0_tdata", 10)], layouts=("thin", "pool")),
        make_lv(
            "pool0_tdata",
            10,
            segtype="raid1",
            areas=[("leg0", 10), ("leg1", 10)],
            hidden=True,
            parent="pool0",
        ),
        make_lv("leg0", 10, hidden=True, parent="pool0_tdata"),
        make_lv("leg1", 10, hidden=True, parent="pool0_tdata"),
    ]
    assert physical_extents(make_vg(volumes))["pool0"] == 20
    assert layout_of(make_vg(volumes), volumes[0]) == Layout(
        areas=2, metadata_areas=2, home=("/dev/sda", "/dev/sda")
    )


def test_parents_in_a_circle_end() -> None:
    volumes = [make_lv("a", 5, parent="b", areas=[("b", 5)]), make_lv("b", 5, parent="a", areas=[("a", 5)])]
    assert sum(physical_extents(make_vg(volumes, extent_count=10)).values()) == 0
    assert layout_of(make_vg(volumes, extent_count=10), volumes[0]) == LINEAR


@given(st.lists(st.tuples(st.sampled_from(["linear", "raid", "thin"]), st.integers(1, 500)), max_size=6))
def test_attributed_extents_add_up_to_used_extents(parts: list[tuple[str, int]]) -> None:
    volumes: list[LogicalVolume] = []
    for index, (kind, extents) in enumerate(parts):
        if kind == "linear":
            volumes.append(make_lv(f"plain{index}", extents))
        elif kind == "raid":
            volumes.extend(raid1(f"raid{index}", extents))
        else:
            volumes.extend(lv for lv in thin_pool(f"pool{index}", extents, 2) if lv.name.startswith("pool"))
    volume_group = make_vg(volumes, extent_count=10_000)
    assert sum(physical_extents(volume_group).values()) == volume_group.used_extents


@pytest.mark.parametrize(
    ("segtype", "areas", "data_stripes", "expected"),
    [
        ("linear", 1, 1, Layout()),
        ("striped", 3, 3, Layout(areas=3, data_stripes=3)),
        ("raid1", 2, 2, Layout(areas=2, metadata_areas=2)),
        ("mirror", 3, 3, Layout(areas=3)),
        ("raid5_ls", 4, 3, Layout(areas=4, data_stripes=3, metadata_areas=4)),
        ("raid6_zr", 5, 3, Layout(areas=5, data_stripes=3, metadata_areas=5)),
        ("raid10", 4, 2, Layout(areas=4, data_stripes=2, metadata_areas=4)),
        ("error", 0, 1, Layout()),
    ],
)
def test_layout_of_a_segment(segtype: str, areas: int, data_stripes: int, expected: Layout) -> None:
    lv = make_lv(
        "x-lv",
        12,
        segtype=segtype,
        areas=[(f"/dev/sd{n}", 4) for n in range(areas)],
        data_stripes=data_stripes,
    )
    home = tuple(f"/dev/sd{n}" for n in range(areas))
    assert layout_of(make_vg([lv]), lv) == msgspec.structs.replace(expected, home=home)


def test_thin_volume_costs_the_volume_group_nothing() -> None:
    volume_group = make_vg(thin_pool("pool0", 10, 1))
    layout = layout_of(volume_group, volume_group.logical_volumes[-1])
    assert layout.area_extents(5000) == 0


@pytest.mark.parametrize(
    ("size_bytes", "stripes", "extents"),
    [(1, 1, 1), (33554432, 1, 1), (33554433, 1, 2), (40 * 2**30, 1, 1280), (40 * 2**30, 3, 1281)],
)
def test_needed_extents_round_up_to_extents_and_stripes(size_bytes: int, stripes: int, extents: int) -> None:
    layout = Layout(areas=stripes, data_stripes=stripes)
    assert needed_extents(make_bug_vg(), size_bytes, layout) == extents


def test_missing_and_non_allocatable_volumes_are_no_room() -> None:
    volume_group = make_vg(
        [],
        pvs=[make_pv("/dev/sda", 100, 40), make_pv("/dev/sdb", 100, allocatable=False), make_pv("[unknown]", 50, missing=True)],
    )  # fmt: skip
    assert volume_group.free_extents == 210
    assert allocatable_room(volume_group) == Room(free=(60,), names=("/dev/sda",), is_frozen=True)


def test_exported_group_has_no_room() -> None:
    assert allocatable_room(make_vg([], exported=True)).extents == 0


@pytest.mark.parametrize(
    ("free", "areas", "area_extents", "left"),
    [
        ((517,), 1, 517, (0,)),
        ((517,), 1, 518, None),
        ((517,), 1, 0, (517,)),
        ((), 1, 0, ()),
        ((), 1, 1, None),
        ((10, 30), 1, 40, (0, 0)),
        ((100,), 2, 10, None),
        ((100, 5), 2, 10, None),
        ((100, 10), 2, 10, (90, 0)),
        ((50, 50, 50), 2, 75, None),
        ((100, 60, 50), 2, 100, (0, 0, 10)),
    ],
)
def test_areas_go_to_separate_physical_volumes(
    free: tuple[int, ...], areas: int, area_extents: int, left: tuple[int, ...] | None
) -> None:
    assert Room(free=free).allocate(areas, area_extents) == (None if left is None else Room(free=left))


def test_placeable_says_how_far_it_would_get() -> None:
    assert Room(free=(100, 5)).placeable(2, 10) == 10
    assert Room(free=(100,)).placeable(2, 10) == 0


@pytest.mark.parametrize(
    ("home", "left"),
    [
        (("/dev/sda", "/dev/sdb"), (6, 4, 9)),
        (("/dev/sdb", "/dev/sdc"), (10, 4, 5)),
        (("/dev/sdb", "/dev/sdb"), (6, 4, 9)),
        (("/dev/sdb", "/dev/gone"), (6, 4, 9)),
        (("/dev/sdb",), (6, 4, 9)),
        ((), (6, 4, 9)),
    ],
)
def test_own_physical_volumes_come_first(home: tuple[str, ...], left: tuple[int, ...]) -> None:
    room = Room(free=(10, 8, 9), names=("/dev/sda", "/dev/sdb", "/dev/sdc"))
    after = room.allocate(2, 4, home)
    assert after is not None
    assert after.free == left


def test_group_with_a_missing_volume_hands_out_nothing() -> None:
    room = Room(free=(10, 8), is_frozen=True)
    assert room.allocate(1, 1) is None
    assert room.allocate(1, 0) == room
    assert room.placeable(1, 1) == 0
    assert room.extents == 18
