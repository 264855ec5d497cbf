"""Volume groups in every state an operator meets, on real LVM, audited by the real command."""

from pathlib import Path

import pytest
from lvm_lab import EXTENT, audit, audit_several, kinds_of, rows_of, write_rows
from scratch_lvm import MIB, ScratchLvm

from agent.core.models import ReadMode
from agent.core.report import AuditVerdict, FilesystemVerdict, FirstFailure

pytestmark = pytest.mark.lvm

DISK = (1 + 400) * MIB
"""A disk of a hundred extents."""


@pytest.fixture(scope="module")
def two(lvm: ScratchLvm) -> ScratchLvm:
    """Two volume groups that no test changes, one of them empty."""
    lvm.create_group("data-vg", lvm.add_disk(DISK))
    lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT)
    lvm.create_volume("data-vg", "log-lv", 10 * EXTENT)
    lvm.create_group("empty-vg", lvm.add_disk(DISK))
    return lvm


def test_nothing_recorded_lists_every_lv_as_unrecorded(two: ScratchLvm, tmp_path: Path) -> None:
    status, document = audit(two, "data-vg", write_rows(tmp_path / "sizes.toml", {}))
    assert status == 0
    assert document.filesystems == ()
    assert sorted(document.unrecorded or ()) == ["docker-lv", "log-lv"]
    assert document.capacity is not None
    assert (document.capacity.needed_extents, document.capacity.available_extents) == (0, 60)


def test_missing_lv_is_drift_and_needs_its_whole_size(two: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(
        tmp_path / "sizes.toml", {"docker-lv": "120MiB", "etcd-lv": "20MiB", "log-lv": "40MiB"}
    )
    status, document = audit(two, "data-vg", record)
    assert status == 3
    assert document.verdict is AuditVerdict.DRIFT
    etcd = rows_of(document)["etcd"]
    assert etcd.verdict is FilesystemVerdict.MISSING
    assert (etcd.actual_extents, etcd.delta_extents) == (None, -5)
    assert document.capacity is not None
    assert document.capacity.needed_extents == 5
    assert document.capacity.fits


def test_unrecorded_lv_is_no_drift(two: ScratchLvm, tmp_path: Path) -> None:
    status, document = audit(two, "data-vg", write_rows(tmp_path / "sizes.toml", {"log-lv": "40MiB"}))
    assert status == 0
    assert document.verdict is AuditVerdict.CLEAN
    assert document.unrecorded == ("docker-lv",)


def test_one_extent_too_many_is_oversized_and_frees_nothing(two: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "116MiB", "log-lv": "40MiB"})
    status, document = audit(two, "data-vg", record)
    assert status == 3
    docker = rows_of(document)["docker"]
    assert docker.verdict is FilesystemVerdict.OVERSIZED
    assert docker.delta_extents == 1
    assert document.capacity is not None
    assert (document.capacity.needed_extents, document.capacity.available_extents) == (0, 60)


def test_record_between_two_extents_matches_the_upper_one(two: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "117MiB", "log-lv": "41943040B"})
    status, document = audit(two, "data-vg", record)
    assert status == 0
    assert {row.verdict for row in rows_of(document).values()} == {FilesystemVerdict.MATCH}


def test_absent_group_is_unknown_and_the_visible_ones_are_named(two: ScratchLvm) -> None:
    status, document = audit(two, "no-such-vg")
    assert status == 5
    assert document.verdict is AuditVerdict.UNKNOWN
    assert document.volume_group is None
    assert document.logical_volumes is None
    assert document.filesystems is None
    (finding,) = (each for each in document.findings if each.kind == "vg_absent")
    assert "data-vg" in finding.message
    assert "empty-vg" in finding.message


def test_empty_group_has_room_and_no_lv(two: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "404MiB"})
    status, document = audit(two, "empty-vg", record)
    assert status == 7
    assert document.logical_volumes == ()
    assert document.volume_group is not None
    assert document.volume_group.free_extents == 100
    assert document.capacity is not None
    assert (document.capacity.needed_extents, document.capacity.shortfall_extents) == (101, 1)


def test_two_groups_are_two_audits_and_the_strongest_status_wins(two: ScratchLvm) -> None:
    status, both = audit_several(two, None, "data-vg", "no-such-vg", "empty-vg")
    assert status == 5
    assert [one.volume_group_name for one in both.audits] == ["data-vg", "no-such-vg", "empty-vg"]
    assert [one.verdict for one in both.audits] == [
        AuditVerdict.CLEAN,
        AuditVerdict.UNKNOWN,
        AuditVerdict.CLEAN,
    ]
    assert len({one.audit_id for one in both.audits}) == 3


def test_lock_held_by_somebody_does_not_delay_the_audit(two: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "120MiB", "log-lv": "40MiB"})
    with two.hold_lock("data-vg"):
        status, document = audit(two, "data-vg", record)
    assert status == 0
    assert document.volume_group is not None
    assert document.volume_group.read_mode is ReadMode.LOCK_FREE
    assert "read_lock_free" in kinds_of(document)
    status, document = audit(two, "data-vg", record)
    assert document.volume_group is not None
    assert document.volume_group.read_mode is ReadMode.LOCKED


def test_missing_pv_gives_no_room_and_makes_its_lv_partial(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    kept, lost = own_lvm.add_disk(DISK), own_lvm.add_disk(DISK)
    own_lvm.create_group("data-vg", kept, lost)
    own_lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT, kept)
    own_lvm.create_volume("data-vg", "log-lv", 10 * EXTENT, lost)
    own_lvm.detach(lost)
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "120MiB", "log-lv": "40MiB"})
    status, document = audit(own_lvm, "data-vg", record)
    assert status == 0
    assert document.volume_group is not None
    assert (document.volume_group.free_extents, document.volume_group.allocatable_extents) == (160, 70)
    assert document.volume_group.missing_pv_count == 1
    # The size of a partial LV is known from the metadata, so it is compared as usual.
    assert rows_of(document)["log"].verdict is FilesystemVerdict.MATCH
    assert "pv_missing" in kinds_of(document)
    (partial,) = (each for each in document.findings if each.kind == "lv_partial")
    assert partial.subject == "log-lv"


def test_pv_that_takes_nothing_new_is_not_allocatable(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    first, second = own_lvm.add_disk(DISK), own_lvm.add_disk(DISK)
    own_lvm.create_group("data-vg", first, second)
    own_lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT, first)
    own_lvm.check("pvchange", "-xn", second)
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "404MiB"})
    status, document = audit(own_lvm, "data-vg", record)
    assert status == 7
    assert document.volume_group is not None
    assert (document.volume_group.free_extents, document.volume_group.allocatable_extents) == (170, 70)
    assert document.capacity is not None
    failure = document.capacity.first_failure
    assert failure is not None
    assert (failure.needed_extents, failure.available_extents) == (71, 70)
    # LVM agrees: one extent less fits, this does not.
    assert own_lvm.extend("data-vg", "docker-lv", 101 * EXTENT).returncode == 5
    assert own_lvm.extend("data-vg", "docker-lv", 100 * EXTENT).returncode == 0


def test_exported_group_is_unknown(own_lvm: ScratchLvm) -> None:
    own_lvm.create_group("data-vg", own_lvm.add_disk(DISK))
    own_lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT)
    own_lvm.check("vgexport", "data-vg")
    status, document = audit(own_lvm, "data-vg")
    assert status == 5
    assert document.logical_volumes is None
    assert "vg_exported" in kinds_of(document)


def test_group_of_another_host_is_unknown(own_lvm: ScratchLvm) -> None:
    own_lvm.create_group("data-vg", own_lvm.add_disk(DISK))
    own_lvm.check("vgchange", "--yes", "--systemid", "elsewhere", "data-vg")
    status, document = audit(own_lvm, "data-vg")
    assert status == 5
    (finding,) = (each for each in document.findings if each.kind == "vg_foreign")
    assert "elsewhere" in finding.message


def test_a_read_only_group_takes_nothing_until_its_hint_was_followed(
    own_lvm: ScratchLvm, tmp_path: Path
) -> None:
    """lvm2 has no command for the flag: this is how it is set, and how the hint says that it is taken away."""
    own_lvm.create_group("data-vg", own_lvm.add_disk(DISK))
    own_lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT)
    copy = tmp_path / "copy.vgcfg"
    read_write, read_only = '"RESIZEABLE", "READ", "WRITE"', '"RESIZEABLE", "READ"'
    own_lvm.check("vgcfgbackup", "-f", str(copy), "data-vg")
    copy.write_text(copy.read_text().replace(read_write, read_only, 1))
    own_lvm.check("vgcfgrestore", "-f", str(copy), "data-vg")

    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "140MiB"})
    status, document = audit(own_lvm, "data-vg", record)
    assert status == 7
    assert document.capacity is not None
    assert document.capacity.first_failure == FirstFailure(
        logical_volume="docker-lv", needed_extents=5, available_extents=0
    )
    hint = next(each.hint for each in document.findings if each.kind == "does_not_fit")
    assert hint is not None
    assert "`vgcfgbackup -f FILE data-vg`" in hint
    assert "`vgcfgrestore -f FILE data-vg`" in hint
    assert own_lvm.extend("data-vg", "docker-lv", 35 * EXTENT).returncode != 0

    own_lvm.check("vgcfgbackup", "-f", str(copy), "data-vg")
    copy.write_text(copy.read_text().replace(read_only, read_write, 1))
    own_lvm.check("vgcfgrestore", "-f", str(copy), "data-vg")
    assert own_lvm.extend("data-vg", "docker-lv", 35 * EXTENT).returncode == 0
    assert audit(own_lvm, "data-vg", record)[0] == 0


def test_two_groups_of_one_name_are_unknown(own_lvm: ScratchLvm) -> None:
    for _ in range(2):
        own_lvm.create_group("data-vg", own_lvm.add_disk(DISK))
    uuids = own_lvm.check("vgs", "--noheadings", "-o", "vg_uuid").stdout.split()
    status, document = audit(own_lvm, "data-vg")
    assert status == 5
    (finding,) = (each for each in document.findings if each.kind == "vg_duplicated")
    assert len(uuids) == 2
    assert all(uuid in finding.message for uuid in uuids)


def test_names_with_dashes_dots_and_plus_signs(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    group = "my--vg.1_a+b"
    own_lvm.create_group(group, own_lvm.add_disk(DISK))
    names = ("a.b_c+d", "double--dash-lv", "x-y-z", "0")
    for name in names:
        own_lvm.create_volume(group, name, 2 * EXTENT)
    record = write_rows(tmp_path / "sizes.toml", dict.fromkeys(names, "8MiB"))
    status, document = audit(own_lvm, group, record)
    assert status == 0
    assert {row.logical_volume for row in rows_of(document).values()} == set(names)
    assert {row.verdict for row in rows_of(document).values()} == {FilesystemVerdict.MATCH}


def test_hostile_lvm_configuration_changes_nothing(own_lvm: ScratchLvm) -> None:
    own_lvm.create_group("data-vg", own_lvm.add_disk(DISK))
    own_lvm.create_volume("data-vg", "docker-lv", 30 * EXTENT)
    config = own_lvm.system_directory / "lvm.conf"
    config.write_text(
        config.read_text()
        + 'log { prefix = ">>" command_names = 1 report_command_log = 1 verbose = 2 }\n'
        + 'report { prefixes = 1 compact_output = 1 columns_as_rows = 1 list_item_separator = ";" }\n'
    )
    status, document = audit(own_lvm, "data-vg")
    assert status == 0
    assert document.logical_volumes is not None
    assert [(lv.name, lv.extents) for lv in document.logical_volumes] == [("docker-lv", 30)]
