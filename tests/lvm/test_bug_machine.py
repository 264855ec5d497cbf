"""The bug report's machine on real LVM, in its three moments, and LVM's own word on each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bug_machine import (
    AFTER_REINSTALL,
    BEFORE_UPGRADE,
    GROUP,
    GROWN_RECORD,
    HEALTHY_RECORD,
    build_bug_machine,
    write_record,
)
from lvm_lab import audit, refusal, rows_of, run_agent
from scratch_lvm import GIB, MIB, ScratchLvm

from agent.core.report import AuditVerdict, FilesystemVerdict

pytestmark = pytest.mark.lvm


@pytest.fixture(scope="module")
def healthy() -> Iterator[ScratchLvm]:
    with ScratchLvm() as scratch:
        build_bug_machine(scratch)
        yield scratch


@pytest.fixture(scope="module")
def before_upgrade() -> Iterator[ScratchLvm]:
    with ScratchLvm() as scratch:
        build_bug_machine(scratch, BEFORE_UPGRADE)
        yield scratch


@pytest.fixture(scope="module")
def after_reinstall() -> Iterator[ScratchLvm]:
    with ScratchLvm() as scratch:
        build_bug_machine(scratch, AFTER_REINSTALL)
        yield scratch


@pytest.fixture
def grown_record(tmp_path: Path) -> Path:
    write_record(tmp_path / "grown.toml", GROWN_RECORD)
    return tmp_path / "grown.toml"


def test_healthy_machine_is_clean_and_its_log_is_only_rounded(healthy: ScratchLvm, tmp_path: Path) -> None:
    record = tmp_path / "sizes.toml"
    write_record(record, HEALTHY_RECORD, whole_gib=True)
    status, document = audit(healthy, GROUP, record)
    assert status == 0
    assert document.verdict is AuditVerdict.CLEAN
    verdicts = {name: row.verdict for name, row in rows_of(document).items()}
    assert verdicts.pop("log") is FilesystemVerdict.ROUNDING
    assert set(verdicts.values()) == {FilesystemVerdict.MATCH}
    assert len(verdicts) == 11
    assert document.unrecorded == ()
    assert document.capacity is not None
    # The log's 8 GiB of record are six extents more than its 8000 MiB.
    assert (document.capacity.needed_extents, document.capacity.available_extents) == (6, 517)
    assert document.capacity.fits


def test_volume_group_is_the_reports_own(healthy: ScratchLvm) -> None:
    status, document = audit(healthy, GROUP)
    assert status == 0
    group = document.volume_group
    assert group is not None
    assert (group.extent_count, group.free_extents, group.allocatable_extents) == (5727, 517, 517)
    assert group.extent_size_bytes == 32 * MIB
    assert (group.pv_count, group.lv_count, group.missing_pv_count) == (1, 12, 0)
    assert document.logical_volumes is not None
    assert {lv.name: lv.extents for lv in document.logical_volumes} == {
        "scratch-lv": 512, "log-lv": 250, "extension-lv": 32, "pgsql-lv": 640, "docker-lv": 960,
        "kubelet-lv": 320, "platform-lv": 320, "etcd-lv": 160, "dockerdistribution-lv": 512,
        "backup-lv": 800, "rabbit-lv": 64, "ceph-mon-lv": 640,
    }  # fmt: skip
    assert sum(lv.physical_extents for lv in document.logical_volumes) == 5210
    assert document.filesystems is None
    assert document.capacity is None
    assert document.unrecorded is None


def test_exact_record_shows_the_log_six_extents_short(healthy: ScratchLvm, tmp_path: Path) -> None:
    record = tmp_path / "sizes.toml"
    write_record(record, HEALTHY_RECORD, whole_gib=False)
    status, document = audit(healthy, GROUP, record)
    assert status == 3
    log = rows_of(document)["log"]
    assert log.verdict is FilesystemVerdict.UNDERSIZED
    assert (log.recorded_extents, log.actual_extents, log.delta_extents) == (256, 250, -6)


def test_baseline_of_the_machine_is_clean(healthy: ScratchLvm, tmp_path: Path) -> None:
    record = tmp_path / "baseline.toml"
    written = run_agent(healthy, "baseline", "--vg", GROUP, "-o", str(record))
    assert written.returncode == 0, written.stderr
    status, document = audit(healthy, GROUP, record)
    assert status == 0
    rows = rows_of(document)
    assert len(rows) == 12
    assert {row.verdict for row in rows.values()} == {FilesystemVerdict.MATCH}


def test_before_the_upgrade_the_recorded_growth_finds_no_room(
    before_upgrade: ScratchLvm, grown_record: Path
) -> None:
    status, document = audit(before_upgrade, GROUP, grown_record)
    assert status == 7
    assert document.verdict is AuditVerdict.DOES_NOT_FIT
    docker = rows_of(document)["docker"]
    assert docker.verdict is FilesystemVerdict.UNDERSIZED
    assert (docker.recorded_extents, docker.actual_extents, docker.delta_extents) == (1280, 960, -320)
    assert rows_of(document)["dockerdistribution"].verdict is FilesystemVerdict.MATCH
    assert sorted(document.unrecorded or ()) == ["ceph-mon-lv", "log-lv", "rabbit-lv"]
    capacity = document.capacity
    assert capacity is not None
    assert (capacity.needed_extents, capacity.available_extents, capacity.shortfall_extents) == (320, 5, 315)
    assert capacity.fits is False


def test_lvextend_fails_with_the_audits_numbers_before_the_upgrade(
    before_upgrade: ScratchLvm, grown_record: Path
) -> None:
    _, document = audit(before_upgrade, GROUP, grown_record)
    assert document.capacity is not None
    failure = document.capacity.first_failure
    assert failure is not None
    assert failure.logical_volume == "docker-lv"
    said = refusal(before_upgrade.extend(GROUP, "docker-lv", 40 * GIB))
    assert said == (failure.needed_extents, failure.available_extents) == (320, 5)


def test_after_the_reinstall_lvextend_of_backup_fails_with_the_audits_numbers(
    after_reinstall: ScratchLvm, grown_record: Path
) -> None:
    status, document = audit(after_reinstall, GROUP, grown_record)
    assert status == 7
    assert {
        name for name, row in rows_of(document).items() if row.verdict is not FilesystemVerdict.MATCH
    } == {"backup"}
    assert document.capacity is not None
    failure = document.capacity.first_failure
    assert failure is not None
    assert failure.logical_volume == "backup-lv"
    said = refusal(after_reinstall.extend(GROUP, "backup-lv", 25 * GIB))
    assert said == (failure.needed_extents, failure.available_extents) == (768, 453)


def test_first_failure_is_the_one_that_applying_the_record_in_order_meets(
    own_lvm: ScratchLvm, tmp_path: Path
) -> None:
    build_bug_machine(own_lvm, AFTER_REINSTALL)
    # The first takes 160 of the 453 free extents, which leaves 293 for the second; the third would fit.
    record = {"kubelet": "15GiB", "backup": "11GiB", "etcd": "6GiB"}
    write_record(tmp_path / "sizes.toml", record)
    status, document = audit(own_lvm, GROUP, tmp_path / "sizes.toml")
    assert status == 7
    assert document.capacity is not None
    assert document.capacity.needed_extents == 160 + 320 + 32
    failure = document.capacity.first_failure
    assert failure is not None
    assert own_lvm.extend(GROUP, "kubelet-lv", 15 * GIB).returncode == 0
    assert failure.logical_volume == "backup-lv"
    said = refusal(own_lvm.extend(GROUP, "backup-lv", 11 * GIB))
    assert said == (failure.needed_extents, failure.available_extents) == (320, 293)


def test_lv_that_is_not_there_fails_as_lvcreate_would(before_upgrade: ScratchLvm, tmp_path: Path) -> None:
    write_record(tmp_path / "sizes.toml", {"image-conversion": "1GiB"})
    status, document = audit(before_upgrade, GROUP, tmp_path / "sizes.toml")
    assert status == 7
    assert rows_of(document)["image-conversion"].verdict is FilesystemVerdict.MISSING
    assert document.capacity is not None
    failure = document.capacity.first_failure
    assert failure is not None
    said = refusal(before_upgrade.try_create(GROUP, "image-conversion-lv", GIB))
    assert said == (failure.needed_extents, failure.available_extents) == (32, 5)
