"""What growth costs and when it fails: the agent's answer beside that of the real lvextend and lvcreate.

All expected numbers are LVM's own, written down by hand; both sides have to give them.
"""

import re
from pathlib import Path

import pytest
from lvm_lab import EXTENT, METADATA, audit, read_group, refusal, write_rows
from scratch_lvm import MIB, ScratchLvm

from agent.core.extents.growth import growth_to
from agent.core.extents.room import Room, allocatable_room

pytestmark = pytest.mark.lvm


def restore(lvm: ScratchLvm, file: str) -> None:
    lvm.restore((METADATA / file).read_text())


@pytest.mark.parametrize(
    ("file", "group", "lv_name", "to_extents", "costs"),
    [
        ("raid.vgcfg", "raid-vg", "mirrored-lv", 74, 20),  # 10 on each of two legs
        ("raid.vgcfg", "raid-vg", "five-lv", 138, 15),  # 5 on each of three images
        ("raid.vgcfg", "raid-vg", "five-lv", 139, 18),  # rounded up to 140 for its two data stripes
        ("raid.vgcfg", "raid-vg", "six-lv", 201, 15),  # 3 on each of five images
        ("raid.vgcfg", "raid-vg", "six-lv", 199, 15),  # rounded up to 201 for its three data stripes
        ("raid.vgcfg", "raid-vg", "ten-lv", 138, 20),
        ("cache.vgcfg", "cache-vg", "cached-lv", 110, 10),  # its origin grows
        ("mirror-log.vgcfg", "mirror-vg", "mirror-lv", 70, 20),
        ("pvmove.vgcfg", "move-vg", "still-lv", 40, 10),
        ("snapshot.vgcfg", "snap-vg", "origin-lv", 110, 10),
        ("snapshot.vgcfg", "snap-vg", "before-snap", 30, 10),
        ("snapshot.vgcfg", "snap-vg", "grown-lv", 31, 1),
        ("thin.vgcfg", "thin-vg", "huge-lv", 2000, 0),  # promises more and takes nothing
        ("thin.vgcfg", "thin-vg", "plain-lv", 51, 1),
        ("varied.vgcfg", "varied-vg", "striped-lv", 67, 4),  # rounded up to 68 for its two stripes
    ],
)
def test_growth_takes_from_the_group_what_the_agent_says(
    own_lvm: ScratchLvm, file: str, group: str, lv_name: str, to_extents: int, costs: int
) -> None:
    restore(own_lvm, file)
    before = read_group(own_lvm, group)
    growth = growth_to(before, lv_name, to_extents * EXTENT)
    assert own_lvm.extend(group, lv_name, to_extents * EXTENT).returncode == 0
    assert before.free_extents - read_group(own_lvm, group).free_extents == costs
    assert growth.needed_extents == costs


@pytest.mark.parametrize(
    ("file", "group", "lv_name", "to_extents", "numbers"),
    [
        ("raid.vgcfg", "raid-vg", "mirrored-lv", 564, (1000, 590)),
        ("raid.vgcfg", "raid-vg", "ten-lv", 628, (1000, 590)),
        ("raid.vgcfg", "raid-vg", "five-lv", 1127, (1500, 590)),
        ("raid.vgcfg", "raid-vg", "six-lv", 5192, (8335, 590)),
        ("mirror-log.vgcfg", "mirror-vg", "mirror-lv", 1060, (2000, 179)),
        ("cache.vgcfg", "cache-vg", "cached-lv", 377, (277, 276)),
        ("snapshot.vgcfg", "snap-vg", "grown-lv", 1030, (1000, 150)),
        ("varied.vgcfg", "varied-vg", "striped-lv", 40065, (40002, 20312)),
    ],
)
def test_growth_without_room_fails_with_the_agents_numbers(
    own_lvm: ScratchLvm,
    tmp_path: Path,
    file: str,
    group: str,
    lv_name: str,
    to_extents: int,
    numbers: tuple[int, int],
) -> None:
    restore(own_lvm, file)
    assert refusal(own_lvm.extend(group, lv_name, to_extents * EXTENT)) == numbers
    record = write_rows(tmp_path / "sizes.toml", {lv_name: f"{to_extents * EXTENT}B"})
    status, document = audit(own_lvm, group, record)
    assert status == 7
    assert document.capacity is not None
    failure = document.capacity.first_failure
    assert failure is not None
    assert failure.logical_volume == lv_name
    assert (failure.needed_extents, failure.available_extents) == numbers


def free_by_disk(lvm: ScratchLvm) -> tuple[int, ...]:
    return allocatable_room(read_group(lvm, "data-vg")).free


def make_uneven_group(lvm: ScratchLvm, free: tuple[int, ...]) -> None:
    lvm.create_group("data-vg", *(lvm.add_disk(MIB + extents * EXTENT) for extents in free))


@pytest.mark.parametrize(
    ("free", "stripes", "area_extents", "left"),
    [
        ((20, 10), 2, 10, (10, 0)),
        ((20, 10), 1, 30, (0, 0)),
        ((7, 13), 1, 4, (3, 13)),  # the first that is large enough, not the largest
        ((5, 17, 11, 18), 3, 1, (4, 16, 10, 18)),
        ((13, 14, 19, 15), 2, 4, (9, 10, 19, 15)),
        ((2, 9, 12), 1, 4, (2, 5, 12)),
        ((3, 8, 10), 2, 9, (2, 0, 1)),  # no two are large enough: 8 on the largest pair, then 1 more
        ((3, 8, 10), 2, 10, (1, 0, 0)),
    ],
)
def test_new_volume_lies_where_the_agent_expects_it(
    own_lvm: ScratchLvm, free: tuple[int, ...], stripes: int, area_extents: int, left: tuple[int, ...]
) -> None:
    make_uneven_group(own_lvm, free)
    assert free_by_disk(own_lvm) == free
    size_bytes = stripes * area_extents * EXTENT
    done = own_lvm.try_create("data-vg", "new-lv", size_bytes, f"-i{stripes}")
    assert done.returncode == 0, done.stderr
    assert free_by_disk(own_lvm) == left
    assert Room(free=free).allocate(stripes, area_extents) == Room(free=left)


@pytest.mark.parametrize(
    ("free", "stripes", "area_extents", "short"),
    [
        ((20, 10), 2, 11, 2),  # 30 extents are free and 22 would do, but only 10 lie opposite each other
        ((4, 4, 4), 2, 6, 4),  # 4 on the first pair leave only one disk, though 2 + 2 + 2 would do
        ((4, 8, 9), 2, 10, 2),
        ((20, 10, 1), 3, 2, 3),
    ],
)
def test_enough_extents_on_too_few_disks_are_not_enough(
    own_lvm: ScratchLvm, free: tuple[int, ...], stripes: int, area_extents: int, short: int
) -> None:
    make_uneven_group(own_lvm, free)
    failed = own_lvm.try_create("data-vg", "new-lv", stripes * area_extents * EXTENT, f"-i{stripes}")
    assert failed.returncode == 5
    match = re.search(r"Insufficient suitable allocatable extents .*: (\d+) more required", failed.stderr)
    assert match is not None, failed.stderr
    assert int(match[1]) == short
    room = Room(free=free)
    assert room.extents >= stripes * area_extents
    assert room.allocate(stripes, area_extents) is None
    assert stripes * area_extents - room.placeable(stripes, area_extents) == short


@pytest.mark.parametrize(
    ("free", "disks", "area_extents", "left"),
    [
        ((18, 8, 5, 10), (0, 2), 17, (0, 5, 0, 0)),  # 4 at home, then 10 and 3 opposite each other
        ((9, 12), (1,), 5, (9, 6)),  # at home, though the first disk has room as well
        ((9, 12), (0,), 12, (0, 8)),
        ((6, 6, 20), (0, 1), 3, (2, 2, 20)),
        ((6, 6, 20), (0, 1), 5, (0, 0, 20)),
    ],
)
def test_growing_volume_fills_its_own_disks_first(
    own_lvm: ScratchLvm,
    free: tuple[int, ...],
    disks: tuple[int, ...],
    area_extents: int,
    left: tuple[int, ...],
) -> None:
    make_uneven_group(own_lvm, free)
    names = [pv.name for pv in read_group(own_lvm, "data-vg").physical_volumes]
    made = own_lvm.try_create(
        "data-vg", "own-lv", len(disks) * EXTENT, f"-i{len(disks)}", *(names[disk] for disk in disks)
    )
    assert made.returncode == 0, made.stderr
    before = read_group(own_lvm, "data-vg")
    wanted_bytes = len(disks) * (1 + area_extents) * EXTENT
    growth = growth_to(before, "own-lv", wanted_bytes)
    expected = allocatable_room(before).allocate(growth.areas, growth.area_extents, growth.home)
    done = own_lvm.extend("data-vg", "own-lv", wanted_bytes)
    assert done.returncode == 0, done.stderr
    assert free_by_disk(own_lvm) == left
    assert expected is not None
    assert expected.free == left


def test_group_without_one_of_its_disks_lets_nothing_grow(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    disks = [own_lvm.add_disk(MIB + 20 * EXTENT) for _ in range(2)]
    own_lvm.create_group("data-vg", *disks)
    own_lvm.try_create("data-vg", "own-lv", 2 * EXTENT)
    own_lvm.detach(disks[1])
    assert own_lvm.extend("data-vg", "own-lv", 3 * EXTENT).returncode == 5
    status, document = audit(
        own_lvm, "data-vg", write_rows(tmp_path / "sizes.toml", {"own-lv": f"{3 * EXTENT}B"})
    )
    assert status == 7
    assert document.capacity is not None
    assert document.capacity.first_failure is not None
    assert (document.capacity.available_extents, document.capacity.shortfall_extents) == (18, 0)
    assert document.capacity.first_failure.available_extents == 0
