"""Asking before resizing: the report's two examples in numbers, and every reason there is."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from builders import NOW, make_bug_vg, make_lv, make_pv, make_vg, record, recorded

from agent.core.capacity import preflight
from agent.core.errors import ExitCode
from agent.core.models import DrbdState, Phase, RecordedFilesystem, RecordedSizes, Source, VolumeGroup
from agent.core.report import CapacitySection, FirstFailure
from agent.core.resize.ask import Asked, parse_asked
from agent.core.resize.busy import Activity
from agent.core.resize.document import Answer, Change, Code, Reason
from agent.core.units import GIB

HOST, CONTROLLER = Source.HOST_FS, Source.CONTROLLER_FS


def ask(*words: str) -> tuple[Asked, ...]:
    asked, mistakes = parse_asked(words)
    assert mistakes == ()
    return asked


def codes(answer: Answer) -> list[str]:
    return [f"{reason.code}{'' if reason.blocks else ' (warning)'}" for reason in answer.reasons]


def kinds(answer: Answer) -> list[str]:
    return [reason.kind for reason in answer.reasons]


def the(answer: Answer, code: Code) -> Reason:
    (reason,) = [reason for reason in answer.reasons if reason.code is code]
    return reason


def run(
    volume_group: VolumeGroup,
    rows: Sequence[RecordedFilesystem],
    *words: str,
    activity: Activity | None = None,
) -> Answer:
    sizes = recorded(*rows, as_of=NOW)
    return preflight(volume_group, sizes, ask(*words), activity or Activity())


# The report's second example: nobody applies what was recorded.


@pytest.mark.parametrize(
    ("recorded_gib", "asked_gib", "needed", "code", "reasons"),
    [
        (30, 40, 320, ExitCode.OK, []),
        (40, 50, 640, ExitCode.DOES_NOT_FIT, ["does_not_fit", "earlier_resize_not_applied (warning)"]),
        (50, 60, 960, ExitCode.DOES_NOT_FIT, ["does_not_fit", "earlier_resize_not_applied (warning)"]),
        (60, 70, 1280, ExitCode.DOES_NOT_FIT, ["does_not_fit", "earlier_resize_not_applied (warning)"]),
        (70, 80, 1600, ExitCode.DOES_NOT_FIT, ["does_not_fit", "earlier_resize_not_applied (warning)"]),
        (40, 41, 352, ExitCode.OK, ["earlier_resize_not_applied (warning)"]),
    ],
)
def test_loop_without_lvextend(
    recorded_gib: int, asked_gib: int, needed: int, code: ExitCode, reasons: list[str]
) -> None:
    answer = run(make_bug_vg(), [record("docker", recorded_gib)], f"docker={asked_gib}")
    assert (answer.exit_code, codes(answer)) == (code, reasons)
    assert answer.allowed is (code is ExitCode.OK)
    assert answer.capacity is not None
    assert (answer.capacity.needed_extents, answer.capacity.available_extents) == (needed, 517)
    if code is ExitCode.DOES_NOT_FIT:
        short = the(answer, Code.DOES_NOT_FIT)
        assert (short.needed_extents, short.available_extents) == (needed, 517)
        assert short.logical_volume == "docker-lv"
        assert f"free {needed - 517} extents" in str(short.hint)


@pytest.mark.parametrize(
    ("actual_gib", "asked_gib", "needed", "available", "code"),
    [
        (30, 40, 320, 517, ExitCode.OK),
        (40, 50, 320, 197, ExitCode.DOES_NOT_FIT),
        (40, 46, 192, 197, ExitCode.OK),
        (46, 47, 32, 5, ExitCode.DOES_NOT_FIT),
    ],
)
def test_loop_with_lvextend_done_in_between(
    actual_gib: int, asked_gib: int, needed: int, available: int, code: ExitCode
) -> None:
    volume_group = make_bug_vg(docker_lv=actual_gib * 32)
    answer = run(volume_group, [record("docker", actual_gib)], f"docker={asked_gib}")
    assert answer.exit_code == code
    assert answer.capacity is not None
    assert (answer.capacity.needed_extents, answer.capacity.available_extents) == (needed, available)


# The report's first example: docker-distribution is being resized.

DISTRIBUTION = record(
    "docker-distribution",
    32,
    lv="dockerdistribution-lv",
    source=CONTROLLER,
    whole_gib=True,
    phase=Phase.CHANGING,
    state="drbd_fs_resizing_in_progress",
    recorded_at=NOW - timedelta(seconds=30),
)
DOCKER = record("docker", 30, source=HOST, whole_gib=True, state="In-Use")


@pytest.mark.parametrize(
    ("extents", "phase", "needed", "available", "reasons"),
    [
        (512, Phase.CHANGING, 832, 517, ["does_not_fit", "busy"]),
        (1024, Phase.CHANGING, 320, 5, ["does_not_fit", "busy"]),
        (1024, Phase.SETTLED, 320, 5, ["does_not_fit"]),
    ],
)
def test_first_example(extents: int, phase: Phase, needed: int, available: int, reasons: list[str]) -> None:
    other = msgspec.structs.replace(DISTRIBUTION, phase=phase)
    answer = run(make_bug_vg(dockerdistribution_lv=extents), [other, DOCKER], "docker=40")
    assert (codes(answer), answer.exit_code) == (reasons, ExitCode.DOES_NOT_FIT)
    short = the(answer, Code.DOES_NOT_FIT)
    assert (short.needed_extents, short.available_extents) == (needed, available)
    assert short.logical_volume == "docker-lv"
    assert "docker-lv would fail: 320 extents needed, but only 5 available" in short.message
    assert answer.capacity == CapacitySection(
        needed_extents=needed,
        available_extents=available,
        fits=False,
        shortfall_extents=315,
        first_failure=FirstFailure(logical_volume="docker-lv", needed_extents=320, available_extents=5),
    )


def test_another_filesystems_drift_must_be_mended_first() -> None:
    answer = run(make_bug_vg(), [record("docker", 31), record("kubelet", 10)], "kubelet=11")
    assert (codes(answer), answer.exit_code) == (["earlier_resize_not_applied"], ExitCode.DRIFT)
    reason = answer.reasons[0]
    assert (reason.subject, reason.kind, reason.needed_extents) == ("docker", "filesystem_undersized", 32)
    assert "lvextend" in str(reason.hint)
    assert answer.allowed is False


def test_a_missing_volume_is_an_earlier_change_that_was_not_applied() -> None:
    answer = run(make_bug_vg(), [record("new", 1), record("kubelet", 10)], "kubelet=11")
    assert (kinds(answer), answer.exit_code) == (["filesystem_missing"], ExitCode.DRIFT)


def test_an_oversized_neighbour_is_a_warning() -> None:
    answer = run(make_bug_vg(), [record("docker", 29), record("kubelet", 10)], "kubelet=11")
    assert (codes(answer), answer.exit_code) == (["oversized (warning)"], ExitCode.OK)


def test_pending_rounding_counts_but_is_no_drift() -> None:
    rows = [record("log", 8, whole_gib=True), record("kubelet", 10)]
    answer = run(make_bug_vg(), rows, "kubelet=26")
    assert codes(answer) == ["does_not_fit"]
    short = the(answer, Code.DOES_NOT_FIT)
    assert (short.needed_extents, short.available_extents) == (
        518,
        517,
    )  # 6 of log's rounding, 512 of kubelet


def test_waiting_for_an_unlock_is_pending_and_not_busy() -> None:
    waiting = record("instances", 10, source=HOST, whole_gib=True, phase=Phase.CREATING_ON_UNLOCK)
    answer = run(make_bug_vg(), [waiting, DOCKER], "docker=36")
    assert (codes(answer), answer.exit_code) == ([], ExitCode.OK)
    assert answer.capacity is not None
    assert answer.capacity.needed_extents == 320 + 192


def test_a_row_being_deleted_needs_no_room() -> None:
    going = record("instances", 30, source=HOST, whole_gib=True, phase=Phase.DELETING_ON_UNLOCK)
    answer = run(make_bug_vg(), [going, DOCKER], "docker=46")
    assert (codes(answer), answer.exit_code) == ([], ExitCode.OK)


def test_a_record_changed_only_just_is_busy() -> None:
    fresh = record("kubelet", 12, source=HOST, whole_gib=True, recorded_at=NOW - timedelta(seconds=599))
    assert codes(run(make_bug_vg(), [fresh, DOCKER], "docker=31")) == ["busy"]
    late = msgspec.structs.replace(fresh, recorded_at=NOW - timedelta(seconds=600))
    assert codes(run(make_bug_vg(), [late, DOCKER], "docker=31")) == ["earlier_resize_not_applied"]


def test_striped_growth_needs_separate_physical_volumes() -> None:
    striped = make_lv(
        "docker-lv", 20, segtype="striped", areas=[("/dev/a", 10), ("/dev/b", 10)], data_stripes=2
    )
    volume_group = make_vg([striped], pvs=[make_pv("/dev/a", 200, 10), make_pv("/dev/b", 12, 10)])
    rows = [msgspec.structs.replace(record("docker", 1), recorded_bytes=20 * 32 * 2**20)]
    answer = run(volume_group, rows, "docker=1GiB")
    short = the(answer, Code.DOES_NOT_FIT)
    assert short.kind == "extents_misplaced"
    assert (short.needed_extents, short.available_extents) == (12, 4)  # 32 - 20 extents; 2 rounds of 2 areas
    assert "free 8 extents" in str(short.hint)
    assert "stripes" in str(short.hint)


# Busy, seen on the host


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (DrbdState(device="drbd8", connection_state="SyncSource", disk_state="UpToDate",
                   peer_disk_state="Inconsistent", resync_percent=11.8), "drbd_resync"),
        (DrbdState(device="drbd8", connection_state="WFSyncUUID", disk_state="Inconsistent"), "drbd_resync"),
        (DrbdState(device="drbd8", connection_state="VerifyS", disk_state="UpToDate"), "drbd_resync"),
        (DrbdState(device="drbd8", connection_state="Connected", disk_state="UpToDate",
                   peer_disk_state="Inconsistent"), "drbd_inconsistent"),
        (DrbdState(device="drbd8", connection_state="WFConnection", disk_state="Inconsistent"), "drbd_inconsistent"),
        (DrbdState(device="drbd8", connection_state="WFConnection", disk_state="UpToDate",
                   peer_disk_state="DUnknown"), None),
        (DrbdState(device="drbd8", connection_state="StandAlone", disk_state="UpToDate"), None),
        (DrbdState(device="drbd8", connection_state="Connected", disk_state="UpToDate",
                   peer_disk_state="UpToDate"), None),
    ],
)  # fmt: skip
def test_drbd(state: DrbdState, kind: str | None) -> None:
    answer = run(make_bug_vg(), [DOCKER], "docker=31", activity=Activity(drbd=(state,)))
    assert kinds(answer) == ([] if kind is None else [kind])
    assert answer.exit_code == (ExitCode.OK if kind is None else ExitCode.BUSY)
    if state.resync_percent is not None:
        assert "11.8 % done" in answer.reasons[0].message


def test_not_seeing_the_devices_is_said_and_refuses_nothing() -> None:
    answer = run(make_bug_vg(), [DOCKER], "docker=31", activity=Activity(drbd=None))
    assert (codes(answer), answer.exit_code, answer.allowed) == (
        ["layers_unknown (warning)"],
        ExitCode.OK,
        True,
    )


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        (
            {
                "name": "pvmove0",
                "roles": ("private", "pvmove"),
                "is_hidden": True,
                "attributes": "p-C-aom---",
            },
            "pvmove",
        ),
        ({"attributes": "Owi-a-s---"}, "snapshot_merge"),
        ({"attributes": "cwi-a-m---"}, "conversion"),
        ({"attributes": "rwi-a-r---", "sync_percent": 41.5}, "conversion"),
        ({"attributes": "rwi-a-r---", "sync_percent": 100.0}, None),
        ({"attributes": "owi-a-s---"}, None),
    ],
)
def test_lvm_operations(changes: dict[str, object], kind: str | None) -> None:
    volume_group = make_bug_vg()
    working = msgspec.structs.replace(make_lv("busy-lv", 0, areas=[]), **changes)
    volume_group = msgspec.structs.replace(
        volume_group, logical_volumes=(*volume_group.logical_volumes, working)
    )
    answer = run(volume_group, [DOCKER], "docker=31")
    assert kinds(answer) == ([] if kind is None else [kind])
    assert answer.exit_code == (ExitCode.OK if kind is None else ExitCode.BUSY)


@pytest.mark.parametrize(
    ("roles", "active", "asked", "expected"),
    [
        (("public", "origin", "thickorigin"), True, "docker=31", ["has_snapshot"]),
        (("public", "origin", "thickorigin"), None, "docker=31", ["has_snapshot"]),
        (("public", "origin", "thickorigin"), False, "docker=31", []),
        (("public", "origin", "thinorigin"), True, "docker=31", []),
        (("public", "origin", "thickorigin"), True, "kubelet=11", []),
        (("public", "origin", "thickorigin"), True, "docker=30GiB", []),
    ],
)
def test_lvm_resizes_no_origin_of_an_active_snapshot(
    roles: tuple[str, ...],
    active: bool | None,  # noqa: FBT001
    asked: str,
    expected: list[str],
) -> None:
    snapshot = make_lv("docker-snap", 32, roles=("public", "snapshot", "thicksnapshot"), origin="docker-lv")
    origin = msgspec.structs.replace(make_lv("docker-lv", 960), roles=roles, active=active)
    volume_group = make_vg([origin, snapshot, make_lv("kubelet-lv", 320)])
    answer = run(volume_group, [record("docker", 30), record("kubelet", 10)], asked)
    assert kinds(answer) == expected
    assert answer.exit_code == (ExitCode.BUSY if expected else ExitCode.OK)
    if expected:
        assert "docker-lv has a snapshot (docker-snap)" in answer.reasons[0].message


def test_held_lock_and_old_data() -> None:
    row = msgspec.structs.replace(DOCKER, recorded_at=NOW - timedelta(hours=1))
    held = Activity(is_lock_held=True, read_at=NOW)
    assert kinds(run(make_bug_vg(), [row], "docker=31", activity=held)) == ["lock_held"]
    old = Activity(read_at=NOW - timedelta(hours=2))
    assert kinds(run(make_bug_vg(), [row], "docker=31", activity=old)) == ["stale"]
    same = Activity(read_at=NOW - timedelta(hours=1))
    assert kinds(run(make_bug_vg(), [row], "docker=31", activity=same)) == []


def test_nothing_changes_in_a_group_with_a_missing_or_read_only_volume() -> None:
    volume_group = msgspec.structs.replace(make_bug_vg(), missing_pv_count=1)
    answer = run(volume_group, [DOCKER], "docker=31")
    assert (kinds(answer), answer.exit_code) == (["pv_missing"], ExitCode.DOES_NOT_FIT)
    assert (answer.reasons[0].needed_extents, answer.reasons[0].available_extents) == (32, 0)
    assert str(answer.reasons[0].hint).startswith("bring the missing disk back")
    read_only = msgspec.structs.replace(make_bug_vg(), attributes="rz--n-")
    answer = run(read_only, [DOCKER], "docker=31")
    assert (kinds(answer), answer.exit_code) == (["vg_read_only"], ExitCode.DOES_NOT_FIT)
    assert str(answer.reasons[0].hint).startswith(
        "make the volume group writable: `vgcfgbackup -f FILE cgts-vg`"
    )


# Rules

PLATFORM = (
    record("database", 10, lv="pgsql-lv", source=CONTROLLER, whole_gib=True, factor=2),
    record("platform", 10, source=CONTROLLER, whole_gib=True),
    record("backup", 25, source=HOST, whole_gib=True),
    DOCKER,
)
FILE = (
    record("docker", 30),
    record("backup", 25),
    record("platform", 10),
    record("database", 20, lv="pgsql-lv"),
)


@pytest.mark.parametrize(
    ("rows", "words", "expected"),
    [
        (PLATFORM, ["docker=30"], ["not_larger"]),
        (PLATFORM, ["docker=29"], ["shrink"]),
        (PLATFORM, ["docker=31744MiB"], []),
        (PLATFORM, ["docker=31000MiB"], ["whole_gib"]),
        (PLATFORM, ["database=11"], ["backup_too_small"]),
        (PLATFORM, ["database=11", "backup=26"], []),
        (PLATFORM, ["platform=11", "backup=26"], []),
        (PLATFORM, ["platform=12", "backup=26"], ["backup_too_small"]),
        (PLATFORM, ["docker=31"], []),
        (PLATFORM, ["docker=+1"], []),
        (PLATFORM, ["dokcer=31"], ["unknown_name"]),
        (PLATFORM, ["pgsql-lv=31"], ["unknown_name"]),
        (FILE, ["docker=30"], []),
        (FILE, ["docker=29"], ["shrink"]),
        (FILE, ["docker=31000MiB"], []),
        (FILE, ["database=21"], []),
        (FILE, ["docker=+8589934591"], ["overflow", "extents_short"]),
        ((), ["docker=40"], ["unknown_name"]),
        ((record("docker", 30, vg="var-vg"),), ["docker=40"], ["unknown_name"]),
        ((record("docker", 30, whole_gib=True),), ["docker=31000MiB"], ["whole_gib"]),
        ((record("instances", 30, source=HOST, whole_gib=True, phase=Phase.CREATING_ON_UNLOCK),),
         ["instances=31"], ["state", "extents_short"]),
        ((record("docker", 30, source=HOST, whole_gib=True, phase=Phase.DELETING_ON_UNLOCK),),
         ["docker=31"], ["state"]),
    ],
)  # fmt: skip
def test_rules(rows: Sequence[RecordedFilesystem], words: list[str], expected: list[str]) -> None:
    answer = run(make_bug_vg(), rows, *words)
    assert kinds(answer) == expected
    assert answer.exit_code == (ExitCode.USAGE if expected else ExitCode.OK)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["dokcer=31"], "did you mean docker?"),
        (["docker-lv=31"], "did you mean docker?"),
        (["pgsql-lv=31"], "did you mean database?"),
        (["pgsql=31"], "did you mean database?"),
        (["zzz=31"], "recorded are: database, platform, backup, docker"),
        (["docker=30"], "ask for 31 or more"),
        (["docker=31000MiB"], "ask for 31"),
        (["database=11"], "ask for backup=26 as well"),
    ],
)
def test_hints(words: list[str], hint: str) -> None:
    assert run(make_bug_vg(), PLATFORM, *words).reasons[0].hint == hint


def test_a_database_counts_twice() -> None:
    answer = run(make_bug_vg(), PLATFORM, "database=+2", "backup=27")
    (database, backup) = answer.asked
    assert (database.recorded_bytes, database.asked_bytes) == (20 * GIB, 24 * GIB)
    assert backup.asked_bytes == 27 * GIB
    assert answer.capacity is not None
    assert answer.capacity.needed_extents == 4 * 32 + 2 * 32


def test_all_reasons_are_listed_and_the_strongest_decides() -> None:
    rows = (DISTRIBUTION, record("kubelet", 20), DOCKER)
    answer = run(make_bug_vg(), rows, "docker=29", "nothing=1", activity=Activity(is_lock_held=True))
    assert codes(answer) == ["rule", "rule", "does_not_fit", "busy", "busy", "earlier_resize_not_applied"]
    assert answer.exit_code == ExitCode.USAGE


# The ledger


def test_ledger_has_a_line_for_each_volume_and_a_running_total() -> None:
    rows = [record("kubelet", 11), record("docker", 30), record("new", 1)]
    answer = run(make_bug_vg(), rows, "docker=50")
    assert answer.ledger is not None
    lines = {line.logical_volume: line for line in answer.ledger}
    assert len(lines) == len(answer.ledger) == 13
    assert [
        (line.logical_volume, line.change, line.before_extents, line.after_extents, line.needed_extents,
         line.free_extents)
        for line in answer.ledger[-3:]
    ] == [
        ("kubelet-lv", Change.PENDING, 320, 352, 32, 485),
        ("new-lv", Change.PENDING, 0, 32, 32, 453),
        ("docker-lv", Change.ASKED, 960, 1600, 640, -187),
    ]  # fmt: skip
    scratch = lines["scratch-lv"]
    assert (scratch.change, scratch.before_extents, scratch.after_extents) == (Change.NONE, 512, 512)
    assert scratch.free_extents == 517


def test_two_filesystems_on_one_volume_are_counted_once() -> None:
    rows = [record("docker", 30), record("again", 32, lv="docker-lv")]
    answer = run(make_bug_vg(), rows, "docker=34")
    assert answer.capacity is not None
    assert answer.capacity.needed_extents == 128
    assert answer.ledger is not None
    assert [(line.before_extents, line.after_extents) for line in answer.ledger[-2:]] == [
        (960, 1024),
        (1024, 1088),
    ]


def test_ten_thousand_of_everything() -> None:
    """Finishes within the test's time limit only when the work grows linearly."""
    names = [f"fs{number}" for number in range(10_000)]
    volume_group = make_vg([make_lv(f"{name}-lv", 32) for name in names], extent_count=640_000)
    rows = [record(name, 1) for name in names]
    answer = run(volume_group, rows, *(f"{name}=2" for name in names))
    assert answer.exit_code == ExitCode.OK
    assert answer.capacity is not None
    assert answer.capacity.needed_extents == 320_000
    unknown = run(volume_group, rows, *(f"no{number}=2" for number in range(10_000)))
    assert len(unknown.reasons) == 10_000


def test_records_of_other_groups_play_no_part() -> None:
    sizes = RecordedSizes(filesystems=(record("docker", 30), record("x", 900, vg="other")), origin="file:x")
    answer = preflight(make_bug_vg(), sizes, ask("docker=40"), Activity())
    assert (answer.allowed, codes(answer)) == (True, [])
