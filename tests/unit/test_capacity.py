"""Whether records fit: the bug report's numbers, and the order of the walk."""

import pytest
from builders import make_bug_vg, make_lv, make_pv, make_vg, record

from agent.core.capacity import assess
from agent.core.models import Phase, RecordedFilesystem
from agent.core.report import CapacitySection, FirstFailure

HEALTHY = (
    record("scratch", 16), record("log", 8, whole_gib=True), record("extension", 1), record("pgsql", 20),
    record("docker", 30), record("kubelet", 10), record("platform", 10), record("etcd", 5),
    record("dockerdistribution", 16), record("backup", 25), record("rabbit", 2), record("ceph-mon", 20),
)  # fmt: skip
REPORT = (
    record("scratch", 16), record("backup", 25), record("kubelet", 10), record("docker", 40), record("platform", 10),
    record("pgsql", 20), record("extension", 1), record("etcd", 5), record("dockerdistribution", 32),
)  # fmt: skip


def capacity(
    needed: int, available: int, short: int = 0, failure: tuple[str, int, int] | None = None
) -> CapacitySection:
    first = failure and FirstFailure(
        logical_volume=failure[0], needed_extents=failure[1], available_extents=failure[2]
    )
    return CapacitySection(
        needed_extents=needed, available_extents=available, fits=first is None, shortfall_extents=short,
        first_failure=first,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("records", "changed", "expected"),
    [
        (HEALTHY, {}, capacity(6, 517)),
        (REPORT, {"dockerdistribution_lv": 1024}, capacity(320, 5, 315, ("docker-lv", 320, 5))),
        (
            REPORT,
            {"dockerdistribution_lv": 1024, "docker_lv": 1280, "backup_lv": 32},
            capacity(768, 453, 315, ("backup-lv", 768, 453)),
        ),
        ((), {}, capacity(0, 517)),
        ((record("docker", 20),), {}, capacity(0, 517)),
        ((record("new", 16),), {}, capacity(512, 517)),
        ((record("new", 16), record("docker", 31)), {}, capacity(544, 517, 27, ("docker-lv", 32, 5))),
        ((record("docker", 31), record("new", 16)), {}, capacity(544, 517, 27, ("new-lv", 512, 485))),
        ((record("new", 16, phase=Phase.DELETING), record("docker", 31)), {}, capacity(32, 517)),
        ((record("new", 16, phase=Phase.CREATING_ON_UNLOCK),), {}, capacity(512, 517)),
        ((record("docker", 40), record("again", 42, lv="docker-lv")), {}, capacity(384, 517)),
        ((record("again", 42, lv="docker-lv"), record("docker", 40)), {}, capacity(384, 517)),
    ],
)
def test_walk_in_recorded_order(
    records: tuple[RecordedFilesystem, ...], changed: dict[str, int], expected: CapacitySection
) -> None:
    assert assess(make_bug_vg(**changed), records) == expected


def test_enough_extents_on_one_volume_only_do_not_fit_a_striped_lv() -> None:
    striped = make_lv(
        "x-lv", 64, segtype="striped", areas=[("/dev/sda", 32), ("/dev/sdb", 32)], data_stripes=2
    )
    volume_group = make_vg([striped], pvs=[make_pv("/dev/sda", 1000, 32), make_pv("/dev/sdb", 40, 32)])
    assert assess(volume_group, (record("x", 3),)) == capacity(32, 976, 0, ("x-lv", 32, 16))


@pytest.mark.parametrize(
    ("section", "short_extents"),
    [
        (capacity(6, 517), 0),
        (capacity(320, 5, 315, ("docker-lv", 320, 5)), 315),
        # docker to 47 GiB fails first, 27 short; a new LV of 16 GiB behind it needs 512 more.
        (capacity(1056, 517, 539, ("docker-lv", 544, 517)), 539),
        # Enough in all, 16 of them on the wrong disk.
        (capacity(32, 976, 0, ("x-lv", 32, 16)), 16),
        # Both: 4 short in all, but 16 short where the stripes have to be.
        (capacity(980, 976, 4, ("x-lv", 32, 16)), 16),
    ],
)
def test_what_must_be_freed_for_all_of_them(section: CapacitySection, short_extents: int) -> None:
    assert section.short_extents == short_extents


def test_growing_a_mirror_costs_each_leg() -> None:
    mirrored = make_lv(
        "m-lv", 32, segtype="raid1", areas=[("/dev/sda", 32), ("/dev/sdb", 32)], data_stripes=2
    )
    volume_group = make_vg([mirrored], pvs=[make_pv("/dev/sda", 100, 32), make_pv("/dev/sdb", 100, 32)])
    assert assess(volume_group, (record("m", 2),)) == capacity(64, 136)


def test_record_inside_a_pool_needs_no_extents_of_the_group() -> None:
    thin = make_lv("t-lv", 32, segtype="thin", areas=[])
    assert assess(make_vg([thin]), (record("t", 5000),)) == capacity(0, 5727)
