"""The reader against strict fake programs: what is run, how often, and what each ending means."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakelvm import DATA, FLOOD_MESSAGES, FLOOD_REPORT, HANG, KILL_ITSELF, FakeLvm, Reply

from agent.core.errors import (
    LvmCommandFailed,
    LvmError,
    LvmGarbled,
    LvmMissing,
    LvmNotPermitted,
    LvmTimeout,
    UsageError,
    VolumeGroupAbsent,
    VolumeGroupChanging,
    VolumeGroupDuplicated,
    VolumeGroupExported,
    VolumeGroupForeign,
)
from agent.core.models import Finding, ReadMode, Severity
from agent.host.lvm import LvmReader
from agent.host.process import Runner

VG_UUID = "wSUFCe-akpU-twhJ-cYNS-TAOW-Qey0-2YZxjA"
DOCKER_ID = "wSUFCeakpUtwhJcYNSTAOWQey02YZxjAmGIZtKSTZc3agKxcnhXQAXucfxAFj0Nh"
EMPTY_VG = b'{"report":[{"vg":[]}]}'
EMPTY_LV = b'{"report":[{"lv":[]}]}'
REFUSED_VG = Reply(report=EMPTY_VG, messages="  something about it\n", status=5)
REFUSED_LV = Reply(report=EMPTY_LV, messages="  something about it\n", status=5)
NOISE = (
    "  WARNING: Activation disabled. No device-mapper interaction will be attempted.\n"
    "  /dev/mapper/control: open failed: Operation not permitted\n"
    "  Failure to communicate with kernel device-mapper driver.\n"
    "  Check that device-mapper is available in the kernel.\n"
    "  Incompatible libdevmapper 1.02.185 (2022-05-18) and kernel driver (unknown version).\n"
)
LONG = 60.0


@pytest.fixture
def fake(tmp_path: Path) -> FakeLvm:
    return FakeLvm(tmp_path)


@pytest.fixture
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def make_reader(
    runner: Runner,
    fake: FakeLvm,
    *,
    timeout_seconds: float = LONG,
    euid: int = 0,
    active: frozenset[str] | None = None,
) -> LvmReader:
    return LvmReader(
        runner,
        fake.directory,
        timeout_seconds,
        environment={
            "LVM_SYSTEM_DIR": "/etc/lvm-test",
            "LVM_VG_NAME": "x",
            "DM_DEV_DIR": "/x",
            "LANG": "de_DE",
        },
        geteuid=lambda: euid,
        read_active=lambda: active,
    )


def groups(*rows: tuple[str, str, str, str]) -> Reply:
    """A look at all volume groups: name, uuid, exported, system id of each."""
    text = ",".join(
        f'{{"vg_name":"{name}","vg_uuid":"{uuid}","vg_exported":"{exported}","vg_systemid":"{system_id}"}}'
        for name, uuid, exported, system_id in rows
    )
    return Reply(report=f'{{"report":[{{"vg":[{text}]}}]}}'.encode())


def test_two_processes_when_nothing_is_wrong_and_the_version_once(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("bug-healthy")
    reader = make_reader(runner, fake)
    reading = reader.read("cgts-vg")
    assert fake.counts() == {"vgs.named": 1, "lvs.locked": 1, "lvm.version": 1}
    group = reading.volume_group
    assert (group.extent_count, group.free_extents, len(group.logical_volumes)) == (5727, 517, 12)
    assert (group.read_mode, reading.findings) == (ReadMode.LOCKED, ())
    assert reader.read("cgts-vg") == reading
    assert reader.version() == "2.03.16"
    assert fake.counts() == {"vgs.named": 2, "lvs.locked": 2, "lvm.version": 1}


def test_the_environment_is_clean(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("bug-healthy")
    make_reader(runner, fake).read("cgts-vg")
    environment = fake.environment("lvs.locked")
    assert environment.pop("LVM_REPORT_FD").isdigit()
    assert environment == {
        "LC_ALL": "C",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LVM_SUPPRESS_FD_WARNINGS": "1",
        "LVM_SUPPRESS_SYSLOG": "1",
        "LVM_SYSTEM_DIR": "/etc/lvm-test",
    }


def test_the_process_environment_is_looked_at_only_for_the_system_directory(
    runner: Runner, fake: FakeLvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LVM_SYSTEM_DIR", raising=False)
    monkeypatch.setenv("LVM_COMMAND_PROFILE", "evil")
    fake.serve("bug-healthy")
    LvmReader(runner, fake.directory, LONG, geteuid=lambda: 0).read("cgts-vg")
    assert sorted(fake.environment("vgs.named")) == [
        "LC_ALL",
        "LVM_REPORT_FD",
        "LVM_SUPPRESS_FD_WARNINGS",
        "LVM_SUPPRESS_SYSLOG",
        "PATH",
    ]


@pytest.mark.parametrize(
    ("active", "expected"),
    [(None, None), (frozenset({DOCKER_ID}), True), (frozenset({VG_UUID}), False), (frozenset(), False)],
)
def test_activity_comes_from_the_kernel_where_lvm_can_not_say(
    runner: Runner,
    fake: FakeLvm,
    active: frozenset[str] | None,
    expected: bool | None,  # noqa: FBT001 - a table
) -> None:
    fake.serve("bug-healthy")
    docker = make_reader(runner, fake, active=active).read("cgts-vg").volume_group.find("docker-lv")
    assert docker is not None
    assert docker.active is expected


def test_lvms_own_word_about_activity_counts(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("release-2.03.11")
    group = make_reader(runner, fake, active=frozenset()).read("cgts-vg").volume_group
    assert [lv.name for lv in group.logical_volumes if not lv.active] == ["ceph-mon-lv"]


def test_the_kernel_is_asked_only_about_those_lvm_does_not_know(runner: Runner, tmp_path: Path) -> None:
    fake = FakeLvm(tmp_path, "var-vg")
    fake.serve("json-std")
    group = make_reader(runner, fake, active=frozenset()).read("var-vg").volume_group
    assert [lv.name for lv in group.logical_volumes if lv.active] == ["thin-pool0"]
    assert {lv.active for lv in group.logical_volumes} == {True, False}


def test_a_refused_lock_is_read_without_it_and_said(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("bug-healthy")
    fake.reply("lvs.locked", REFUSED_LV)
    reading = make_reader(runner, fake).read("cgts-vg")
    assert fake.counts() == {"vgs.named": 1, "lvs.locked": 1, "lvs.lock_free": 1, "lvm.version": 1}
    assert reading.volume_group.read_mode is ReadMode.LOCK_FREE
    assert [(each.kind, each.severity) for each in reading.findings] == [("read_lock_free", Severity.INFO)]
    assert reading.volume_group.free_extents == 517


def revision(seqno: int) -> tuple[Reply, Reply]:
    """Both reports of the healthy group, as another revision."""
    replies = []
    for name in ("vgs", "lvs"):
        text = (
            (DATA / "bug-healthy" / f"{name}.json")
            .read_text()
            .replace('"vg_seqno":"13"', f'"vg_seqno":"{seqno}"')
        )
        replies.append(Reply(report=text.encode()))
    return replies[0], replies[1]


def test_a_change_between_both_programs_is_read_again(runner: Runner, fake: FakeLvm) -> None:
    (old_vgs, old_lvs), (new_vgs, new_lvs) = (revision(seqno) for seqno in (13, 14))
    fake.reply("vgs.named", old_vgs, new_vgs, new_vgs)
    fake.reply("lvs.locked", new_lvs, old_lvs, new_lvs)
    assert make_reader(runner, fake).read("cgts-vg").volume_group.seqno == 14
    assert fake.counts() == {"vgs.named": 3, "lvs.locked": 3, "lvm.version": 1}


def test_changes_without_end_are_an_error_after_three_reads(runner: Runner, fake: FakeLvm) -> None:
    fake.reply("vgs.named", *(revision(seqno)[0] for seqno in (20, 21, 22)))
    fake.reply("lvs.locked", revision(13)[1])
    with pytest.raises(VolumeGroupChanging, match="3 reads"):
        make_reader(runner, fake).read("cgts-vg")
    assert fake.count("vgs.named") == 3


def test_no_lv_rows_where_vgs_counts_some_is_never_an_empty_group(runner: Runner, fake: FakeLvm) -> None:
    fake.reply("vgs.named", revision(13)[0])
    fake.reply("lvs.locked", Reply(report=EMPTY_LV))
    with pytest.raises(LvmGarbled, match=r"lvs printed no usable report.*vgs counts 12 LVs"):
        make_reader(runner, fake).read("cgts-vg")
    assert fake.count("lvs.locked") == 3


def test_an_empty_group_is_read(runner: Runner, tmp_path: Path) -> None:
    fake = FakeLvm(tmp_path, "e-vg")
    fake.serve("empty")
    group = make_reader(runner, fake).read("e-vg").volume_group
    assert (group.logical_volumes, group.free_extents) == ((), 319)


OWN = ("other-vg", "o", "0", "")
THIS = ("cgts-vg", "u1", "0", "")


@pytest.mark.parametrize(
    ("own", "everything", "error", "text"),
    [
        ([OWN], [OWN], VolumeGroupAbsent, "cgts-vg not found (visible: other-vg)"),
        ([], [], VolumeGroupAbsent, "(visible: none)"),
        ([OWN], [OWN, ("cgts-vg", "u1", "0", "host-b")], VolumeGroupForeign, "(system id 'host-b')"),
        ([("cgts-vg", "u1", "1", "")], [("cgts-vg", "u1", "1", "")], VolumeGroupExported, "is exported"),
        (
            [("cgts-vg", "u1", "exported", "")],
            [("cgts-vg", "u1", "exported", "")],
            VolumeGroupExported,
            "is exported",
        ),
        (
            [THIS, ("cgts-vg", "u2", "0", "")],
            [THIS, ("cgts-vg", "u2", "0", "")],
            VolumeGroupDuplicated,
            "u1, u2",
        ),
        (
            [THIS],
            [THIS, ("cgts-vg", "u2", "0", "b")],
            VolumeGroupDuplicated,
            "2 volume groups are named cgts-vg",
        ),
        ([THIS], [THIS], LvmCommandFailed, "vgs ended with status 5: something about it"),
    ],
)
def test_a_refusal_is_explained_by_what_is_there(
    runner: Runner,
    fake: FakeLvm,
    own: list[tuple[str, str, str, str]],
    everything: list[tuple[str, str, str, str]],
    error: type[LvmError],
    text: str,
) -> None:
    fake.reply("vgs.named", REFUSED_VG)
    fake.reply("lvs.locked", REFUSED_LV)
    fake.reply("vgs.all", groups(*own))
    fake.reply("vgs.all_foreign", groups(*everything))
    with pytest.raises(error) as caught:
        make_reader(runner, fake).read("cgts-vg")
    assert text in str(caught.value)
    assert caught.value.subject == "cgts-vg"
    assert caught.value.hint


def test_an_exported_group_is_one_although_vgs_shows_it(runner: Runner, fake: FakeLvm) -> None:
    vgs, _ = revision(13)
    fake.reply("vgs.named", vgs)
    fake.reply("lvs.locked", REFUSED_LV)
    fake.reply("lvs.lock_free", REFUSED_LV)
    fake.reply("vgs.all", groups(("cgts-vg", "u1", "1", "")))
    fake.reply("vgs.all_foreign", groups(("cgts-vg", "u1", "1", "")))
    with pytest.raises(VolumeGroupExported):
        make_reader(runner, fake).read("cgts-vg")


@pytest.mark.parametrize(
    "look",
    [
        Reply(report=EMPTY_VG, status=5),
        Reply(report=b"", status=0),
        Reply(report=EMPTY_VG, status=3),
        Reply(report=EMPTY_VG, script=KILL_ITSELF),
    ],
)
def test_absent_is_never_said_after_a_look_that_failed(runner: Runner, fake: FakeLvm, look: Reply) -> None:
    fake.reply("vgs.named", REFUSED_VG)
    fake.reply("lvs.locked", REFUSED_LV)
    fake.reply("vgs.all", groups())
    fake.reply("vgs.all_foreign", look)
    with pytest.raises(LvmCommandFailed, match="vgs ended with status 5"):
        make_reader(runner, fake).read("cgts-vg")


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        (Reply(report=EMPTY_VG, script=KILL_ITSELF), LvmCommandFailed, "vgs ended with signal SIGKILL"),
        (Reply(script="kill -40 $$"), LvmCommandFailed, "vgs ended with signal 40"),
        (Reply(messages="bad \x1b[31moption\n", status=3), LvmCommandFailed, "status 3: bad \\x1b[31moption"),
        (Reply(report=EMPTY_VG, status=139), LvmCommandFailed, "vgs ended with status 139"),
        (Reply(script=FLOOD_REPORT), LvmGarbled, "more than 32 MiB"),
        (Reply(), LvmGarbled, "it printed nothing"),
        (Reply(report=EMPTY_VG), LvmGarbled, "has no row"),
        (Reply(report=b"<html>\x1b[2J</html>"), LvmGarbled, "it began with '<html>\\x1b[2J</html>'"),
        (Reply(report=b'{"report":[{"vg":[{"vg_name":"cg'), LvmGarbled, "truncated"),
    ],
)
def test_every_other_ending_is_an_error_of_its_own_and_not_tried_again(
    runner: Runner, fake: FakeLvm, reply: Reply, error: type[LvmError], text: str
) -> None:
    fake.serve("bug-healthy")
    fake.reply("vgs.named", reply)
    with pytest.raises(error) as caught:
        make_reader(runner, fake).read("cgts-vg")
    assert text in str(caught.value)
    assert caught.value.hint is not None
    assert str(fake.directory / "vgs") in caught.value.hint
    assert fake.counts() == {"vgs.named": 1, "lvs.locked": 1, "lvm.version": 1}


def test_a_hanging_program_is_a_timeout(runner: Runner, fake: FakeLvm) -> None:
    fake.reply("vgs.named", revision(13)[0])
    fake.reply("lvs.locked", Reply(script=HANG))
    # Long enough for a slow machine to start the other two, which must not be the ones that are named.
    with pytest.raises(LvmTimeout, match=r"lvs did not end within 2 s"):
        make_reader(runner, fake, timeout_seconds=2).read("cgts-vg")


def test_a_flood_of_messages_does_not_hide_the_report(runner: Runner, fake: FakeLvm) -> None:
    vgs, lvs = revision(13)
    fake.reply("vgs.named", vgs)
    fake.reply("lvs.locked", Reply(report=lvs.report, script=FLOOD_MESSAGES))
    reading = make_reader(runner, fake).read("cgts-vg")
    assert reading.volume_group.free_extents == 517
    assert 1 <= len(reading.findings) <= 11


def test_messages_of_success_are_findings_and_the_expected_noise_is_not(
    runner: Runner, fake: FakeLvm
) -> None:
    vgs, lvs = revision(13)
    odd = "  WARNING: odd \x1b[2Jthing\n"
    fake.reply("vgs.named", Reply(report=vgs.report, messages=NOISE + odd))
    fake.reply("lvs.locked", Reply(report=lvs.report, messages=NOISE + odd))
    assert make_reader(runner, fake).read("cgts-vg").findings == (
        Finding(
            kind="lvm_warning", severity=Severity.WARNING, subject="cgts-vg", message="odd \\x1b[2Jthing"
        ),
    )


def test_the_command_log_of_newer_releases_is_read_as_well(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("release-2.03.40")
    reading = make_reader(runner, fake).read("cgts-vg")
    assert [(each.kind, each.message) for each in reading.findings] == [
        (
            "lvm_warning",
            "Device /dev/sdb has size of 100 sectors which is smaller than corresponding PV size of 200 sectors.",
        )
    ]


def test_repairs_are_a_finding(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("unescaped")
    reading = make_reader(runner, fake).read("cgts-vg")
    assert [(each.kind, each.severity) for each in reading.findings] == [
        ("lvm_output_repaired", Severity.INFO)
    ]
    assert "4 character" in reading.findings[0].message


def test_a_missing_disk_is_critical(runner: Runner, tmp_path: Path) -> None:
    fake = FakeLvm(tmp_path, "miss-vg")
    fake.serve("missing-pv")
    findings = make_reader(runner, fake).read("miss-vg").findings
    assert [(each.kind, each.subject, each.severity) for each in findings] == [
        ("pv_missing", "miss-vg", Severity.CRITICAL),
        ("lv_partial", "gone-lv", Severity.CRITICAL),
        ("lv_partial", "half-lv", Severity.CRITICAL),
    ]


@pytest.mark.parametrize(
    "name", ["-x", "--config", "", ".", "..", "a/b", "a b", "a\n", "v" * 128, "ü", "@tag"]
)
def test_what_can_not_be_a_name_never_reaches_a_command_line(
    runner: Runner, fake: FakeLvm, name: str
) -> None:
    with pytest.raises(UsageError, match="volume group"):
        make_reader(runner, fake).read(name)
    assert fake.counts() == {}


def test_without_root_a_refusal_is_about_permission(runner: Runner, fake: FakeLvm) -> None:
    fake.reply("vgs.named", REFUSED_VG)
    fake.reply("lvs.locked", REFUSED_LV)
    with pytest.raises(LvmNotPermitted, match="needs root"):
        make_reader(runner, fake, euid=1000).read("cgts-vg")


def test_without_root_a_success_is_one(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("bug-healthy")
    assert make_reader(runner, fake, euid=1000).read("cgts-vg").volume_group.name == "cgts-vg"


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("program", "spoil", "reason"),
    [
        ("vgs", Path.unlink, "no such file or directory"),
        ("lvs", Path.unlink, "no such file or directory"),
        ("lvs", lambda path: path.chmod(0o644), "not executable"),
        ("vgs", replace_by_directory, "not a regular file"),
        ("vgs", replace_by_pipe, "not a regular file"),
        ("vgs", lambda path: path.write_bytes(b"\x7fELF"), "Exec format error"),
    ],
)
def test_missing_programs(
    runner: Runner, fake: FakeLvm, program: str, spoil: Callable[[Path], object], reason: str
) -> None:
    path = fake.directory / program
    spoil(path)
    with pytest.raises(LvmMissing) as caught:
        make_reader(runner, fake).read("cgts-vg")
    assert str(caught.value) == f"{path}: {reason}"


def test_a_relative_directory_is_meant_from_here(
    runner: Runner, fake: FakeLvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.serve("bug-healthy")
    monkeypatch.chdir(fake.directory.parent)
    reader = LvmReader(runner, Path("sbin"), LONG, geteuid=lambda: 0, read_active=lambda: None)
    assert reader.read("cgts-vg").volume_group.seqno == 13


@pytest.mark.parametrize(
    "reply", [Reply(status=3), Reply(messages="no version here\n"), Reply(script=KILL_ITSELF)]
)
def test_an_unknown_version_is_asked_once_and_is_none(runner: Runner, tmp_path: Path, reply: Reply) -> None:
    fake = FakeLvm(tmp_path)
    fake.reply("lvm.version", reply)
    reader = make_reader(runner, fake)
    assert (reader.version(), reader.version()) == (None, None)
    assert fake.count("lvm.version") == 1


def test_no_program_to_ask_for_the_version_is_no_problem(runner: Runner, fake: FakeLvm) -> None:
    fake.serve("bug-healthy")
    (fake.directory / "lvm").unlink()
    reader = make_reader(runner, fake)
    assert reader.read("cgts-vg").volume_group.seqno == 13
    assert reader.version() is None
