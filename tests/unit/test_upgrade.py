"""Would a rebuild from the records work?  The bug report's own sums, and what counts for how much."""

import msgspec
import pytest
from builders import make_bug_vg, make_lv, make_pv, make_vg, record, recorded

from agent.core.errors import ExitCode
from agent.core.models import Phase, Source
from agent.core.report import CapacitySection, FirstFailure
from agent.core.resize.document import Change, Code
from agent.core.resize.upgrade import check_rebuild

REPORT = (
    record("scratch", 16), record("backup", 25), record("kubelet", 10), record("docker", 40), record("platform", 10),
    record("pgsql", 20), record("extension", 1), record("etcd", 5), record("dockerdistribution", 32),
)  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"dockerdistribution_lv": 1024},
        {"docker_lv": 1280, "dockerdistribution_lv": 1024, "backup_lv": 32},
        {"docker_lv": 1280, "dockerdistribution_lv": 0},
    ],
    ids=["before the upgrade", "after the reinstall", "one volume gone"],
)
def test_the_reports_machine_can_not_be_rebuilt(changed: dict[str, int]) -> None:
    answer = check_rebuild(make_bug_vg(**changed), recorded(*REPORT))
    assert answer.capacity == CapacitySection(
        needed_extents=6042,
        available_extents=5727,
        fits=False,
        shortfall_extents=315,
        first_failure=FirstFailure(
            logical_volume="dockerdistribution-lv", needed_extents=1024, available_extents=709
        ),
    )
    (reason,) = answer.reasons
    assert (reason.code, reason.needed_extents, reason.available_extents) == (Code.DOES_NOT_FIT, 6042, 5727)
    assert reason.logical_volume == "dockerdistribution-lv"
    assert "1024 extents needed, but only 709 available" in reason.message
    assert "free 315 extents (9.844 GiB)" in str(reason.hint)
    assert "record dockerdistribution with 22 GiB at most" in str(reason.hint)
    assert "ceph-mon-lv (640 extents)" in str(reason.hint)
    assert (answer.allowed, answer.exit_code) == (False, ExitCode.DOES_NOT_FIT)


def test_the_hint_is_true() -> None:
    rows = [row for row in REPORT if row.name != "dockerdistribution"]
    answer = check_rebuild(make_bug_vg(), recorded(*rows, record("dockerdistribution", 22)))
    assert (answer.allowed, answer.reasons, answer.exit_code) == (True, (), ExitCode.OK)


def test_ledger_begins_with_what_is_not_recorded() -> None:
    answer = check_rebuild(make_bug_vg(), recorded(*REPORT))
    assert answer.ledger is not None
    assert [(line.logical_volume, line.change, line.free_extents) for line in answer.ledger] == [
        ("log-lv", Change.KEPT, 5477),
        ("rabbit-lv", Change.KEPT, 5413),
        ("ceph-mon-lv", Change.KEPT, 4773),
        ("scratch-lv", Change.RECORDED, 4261),
        ("backup-lv", Change.RECORDED, 3461),
        ("kubelet-lv", Change.RECORDED, 3141),
        ("docker-lv", Change.RECORDED, 1861),
        ("platform-lv", Change.RECORDED, 1541),
        ("pgsql-lv", Change.RECORDED, 901),
        ("extension-lv", Change.RECORDED, 869),
        ("etcd-lv", Change.RECORDED, 709),
        ("dockerdistribution-lv", Change.RECORDED, -315),
    ]
    assert {line.before_extents for line in answer.ledger} == {0}


def test_an_oversized_volume_counts_with_its_record() -> None:
    volume_group = make_vg([make_lv("docker-lv", 90)], extent_count=100)
    assert check_rebuild(volume_group, recorded(record("docker", 1), record("new", 2))).allowed is True


def test_snapshots_and_moves_are_not_made_again_and_deleted_rows_neither() -> None:
    volume_group = make_vg(
        [
            make_lv("docker-lv", 32),
            make_lv("snap", 40, roles=("public", "snapshot", "thicksnapshot"), origin="docker-lv"),
            make_lv("pvmove0", 0, areas=[], hidden=True, roles=("private", "pvmove")),
            make_lv("going-lv", 20),
        ],
        extent_count=100,
    )
    going = record("going", 90, phase=Phase.DELETING_ON_UNLOCK)
    answer = check_rebuild(volume_group, recorded(record("docker", 1), going))
    assert answer.capacity is not None
    assert answer.capacity.needed_extents == 32


def test_a_mirrored_volume_needs_its_copies_and_metadata_on_separate_disks() -> None:
    legs = [("m-lv_rimage_0", 32), ("m-lv_rimage_1", 32)]
    mirrored = make_lv("m-lv", 32, segtype="raid1", areas=legs, data_copies=2)
    images = [
        make_lv(
            f"m-lv_{kind}_{leg}", extents, areas=[(f"/dev/{'ab'[leg]}", extents)], hidden=True, parent="m-lv"
        )
        for leg in (0, 1)
        for kind, extents in (("rimage", 32), ("rmeta", 1))
    ]
    pvs = [make_pv("/dev/a", 40, 33), make_pv("/dev/b", 40, 33)]
    volume_group = make_vg([mirrored, *images], pvs=pvs)
    fits = check_rebuild(volume_group, recorded())
    assert fits.capacity is not None
    assert (fits.capacity.needed_extents, fits.allowed) == (66, True)
    grown = check_rebuild(volume_group, recorded(record("m", 2)))
    assert grown.capacity is not None
    assert grown.capacity.first_failure == FirstFailure(
        logical_volume="m-lv", needed_extents=130, available_extents=80
    )


def test_enough_in_all_but_not_side_by_side() -> None:
    striped = make_lv("s-lv", 20, segtype="striped", areas=[("/dev/a", 10), ("/dev/b", 10)], data_stripes=2)
    volume_group = make_vg([striped], pvs=[make_pv("/dev/a", 100, 10), make_pv("/dev/b", 12, 10)])
    answer = check_rebuild(volume_group, recorded(record("s", 1)))
    (reason,) = answer.reasons
    assert (reason.kind, reason.needed_extents, reason.available_extents) == ("extents_misplaced", 32, 112)
    assert "32 extents needed, but only 24 available" in reason.message


def test_the_most_that_may_be_recorded_is_counted_as_the_inventory_counts() -> None:
    """A database of n GiB has 2 n: of 10 GiB 320 extents of 32 MiB, 200 of them fit, which is 6.25 GiB."""
    database = record("database", 5, lv="pgsql-lv", source=Source.CONTROLLER_FS, whole_gib=True, factor=2)
    volume_group = make_vg([make_lv("pgsql-lv", 100)], extent_count=200)
    (reason,) = check_rebuild(volume_group, recorded(database)).reasons
    assert reason.message.startswith("pgsql-lv would fail: 320 extents needed, but only 200 available then")
    assert "record database with 3 GiB at most" in str(reason.hint)
    fits = record("database", 3, lv="pgsql-lv", source=Source.CONTROLLER_FS, whole_gib=True, factor=2)
    assert check_rebuild(volume_group, recorded(fits)).allowed is True


@pytest.mark.parametrize(
    ("segtype", "data_stripes", "pv_extents", "most", "too_much"),
    [
        # Two stripes of 96 extents = 192 extents = 6 GiB; two copies of 96 and one of metadata: 97 extents each.
        ("striped", 2, 96, 6, 7),
        ("raid1", 2, 97, 3, 4),
        ("raid1", 2, 96, 2, 3),
    ],
)
def test_the_most_of_stripes_and_copies(
    segtype: str, data_stripes: int, pv_extents: int, most: int, too_much: int
) -> None:
    areas = [("/dev/a", 2), ("/dev/b", 2)]
    if segtype == "raid1":
        areas = [("x-lv_rimage_0", 2), ("x-lv_rimage_1", 2)]
    volume = make_lv("x-lv", 2, segtype=segtype, areas=areas, data_stripes=data_stripes)
    images = [
        make_lv(f"x-lv_{kind}_{leg}", size, areas=[(f"/dev/{'ab'[leg]}", size)], hidden=True, parent="x-lv")
        for leg in (0, 1)
        for kind, size in (("rimage", 2), ("rmeta", 1))
        if segtype == "raid1"
    ]
    volume_group = make_vg(
        [volume, *images], pvs=[make_pv("/dev/a", pv_extents, 3), make_pv("/dev/b", pv_extents, 3)]
    )
    for gib in (too_much, 50):
        (reason,) = check_rebuild(volume_group, recorded(record("x", gib))).reasons
        assert f"record x with {most} GiB at most" in str(reason.hint)
    assert check_rebuild(volume_group, recorded(record("x", most))).allowed is True
    assert check_rebuild(volume_group, recorded(record("x", too_much))).allowed is False


def test_two_records_of_one_volume_make_it_once() -> None:
    answer = check_rebuild(make_bug_vg(), recorded(record("docker", 10), record("again", 20, lv="docker-lv")))
    assert answer.ledger is not None
    assert [line.after_extents for line in answer.ledger if line.logical_volume == "docker-lv"] == [640]


def test_a_missing_disk_has_no_room() -> None:
    volume_group = make_vg(
        [make_lv("docker-lv", 32)], pvs=[make_pv("/dev/sda", 40, 32), make_pv("/dev/sdb", 40, missing=True)]
    )
    answer = check_rebuild(
        msgspec.structs.replace(volume_group, missing_pv_count=1), recorded(record("docker", 2))
    )
    assert answer.capacity is not None
    assert (answer.capacity.available_extents, answer.allowed) == (40, False)
