"""Asking before resizing, on real LVM: every number beside the one that LVM's own refusal names."""

import json
from pathlib import Path
from typing import Any

import pytest
from bug_machine import AFTER_REINSTALL, BEFORE_UPGRADE, DISK_BYTES, EXTENT_BYTES, GROUP, build_bug_machine
from lvm_lab import EXTENT, read_group, refusal, run_agent, write_rows
from scratch_lvm import GIB, MIB, ScratchLvm
from sysinvserver import SysinvServer
from sysinvserver import bug_machine as sysinv_of_the_bug_machine

from agent.core.capacity import preflight
from agent.core.models import Phase, RecordedFilesystem, RecordedSizes, Source
from agent.core.resize.ask import parse_asked
from agent.core.resize.busy import Activity
from agent.core.resize.document import Code

pytestmark = pytest.mark.lvm

RECORDED_ORDER = {
    "scratch-lv": "16GiB", "backup-lv": "25GiB", "kubelet-lv": "10GiB", "docker-lv": "40GiB", "platform-lv": "10GiB",
    "pgsql-lv": "20GiB", "extension-lv": "1GiB", "etcd-lv": "5GiB", "dockerdistribution-lv": "32GiB",
}  # fmt: skip
"""The report's records, in the order in which they are recorded."""


@pytest.fixture
def machine(own_lvm: ScratchLvm) -> ScratchLvm:
    build_bug_machine(own_lvm)
    return own_lvm


def ask(lvm: ScratchLvm, record: Path, *words: str, group: str = GROUP) -> tuple[int, dict[str, Any]]:
    """Ask as a user would; the exit status and the one document."""
    done = run_agent(
        lvm, "preflight", "--format", "json", "--lvm-dir", "/usr/sbin", "--vg", group, "--inventory", f"file:{record}", *words
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def reasons(document: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(reason["code"], reason["blocks"]) for reason in document["reasons"]]


def needs(document: dict[str, Any]) -> tuple[int, int]:
    return document["capacity"]["needed_extents"], document["capacity"]["available_extents"]


def test_second_example_without_lvextend(machine: ScratchLvm, tmp_path: Path) -> None:
    def recorded(gib: int) -> Path:
        return write_rows(tmp_path / "sizes.toml", {"docker-lv": f"{gib}GiB"})

    status, document = ask(machine, recorded(30), "docker=40")
    assert (status, reasons(document), needs(document)) == (0, [], (320, 517))
    for before, asked, extents in ((40, 50, 640), (50, 60, 960), (60, 70, 1280), (70, 80, 1600)):
        status, document = ask(machine, recorded(before), f"docker={asked}")
        assert (status, needs(document)) == (7, (extents, 517))
        assert reasons(document) == [("does_not_fit", True), ("earlier_resize_not_applied", False)]
        assert document["reasons"][0]["needed_extents"] == extents
        # LVM itself refuses the same with the same numbers.
        assert refusal(machine.extend(GROUP, "docker-lv", asked * GIB)) == (extents, 517)
    status, document = ask(machine, recorded(40), "docker=41")
    assert (status, needs(document)) == (0, (352, 517))
    assert reasons(document) == [("earlier_resize_not_applied", False)]
    assert machine.extend(GROUP, "docker-lv", 41 * GIB).returncode == 0  # what was allowed works


def test_second_example_with_lvextend_in_between(machine: ScratchLvm, tmp_path: Path) -> None:
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "30GiB"})
    assert ask(machine, record, "docker=40")[0] == 0
    assert machine.extend(GROUP, "docker-lv", 40 * GIB).returncode == 0
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "40GiB"})
    status, document = ask(machine, record, "docker=50")
    assert (status, needs(document), reasons(document)) == (7, (320, 197), [("does_not_fit", True)])
    assert refusal(machine.extend(GROUP, "docker-lv", 50 * GIB)) == (320, 197)


def first_example(phase: Phase) -> RecordedSizes:
    rows = [
        ("docker-distribution", "dockerdistribution-lv", 32, phase),
        ("docker", "docker-lv", 30, Phase.SETTLED),
    ]
    return RecordedSizes(
        filesystems=tuple(
            RecordedFilesystem(
                name=name,
                source=Source.HOST_FS,
                logical_volume=lv_name,
                volume_group=GROUP,
                recorded_bytes=gib * GIB,
                granularity_bytes=GIB,
                phase=state,
            )
            for name, lv_name, gib, state in rows
        ),
        origin="a test",
    )


def test_first_example(machine: ScratchLvm) -> None:
    asked, _ = parse_asked(["docker=40"])

    def numbers(phase: Phase) -> tuple[list[Code], int | None, int | None]:
        answer = preflight(read_group(machine, GROUP), first_example(phase), asked, Activity())
        first = answer.reasons[0]
        return [reason.code for reason in answer.reasons], first.needed_extents, first.available_extents

    assert numbers(Phase.CHANGING) == ([Code.DOES_NOT_FIT, Code.BUSY], 832, 517)
    assert machine.extend(GROUP, "dockerdistribution-lv", 32 * GIB).returncode == 0
    assert numbers(Phase.CHANGING) == ([Code.DOES_NOT_FIT, Code.BUSY], 320, 5)
    assert numbers(Phase.SETTLED) == ([Code.DOES_NOT_FIT], 320, 5)
    assert refusal(machine.extend(GROUP, "docker-lv", 40 * GIB)) == (320, 5)


@pytest.mark.parametrize(
    "sizes", [BEFORE_UPGRADE, AFTER_REINSTALL], ids=["before the upgrade", "after the reinstall"]
)
def test_rebuild_as_lvcreate_would_have_it(
    own_lvm: ScratchLvm, tmp_path: Path, sizes: dict[str, int]
) -> None:
    build_bug_machine(own_lvm, sizes)
    record = write_rows(tmp_path / "sizes.toml", RECORDED_ORDER)
    status, document = ask(own_lvm, record, "--all-recorded")
    assert status == 7
    assert document["capacity"] == {
        "needed_extents": 6042,
        "available_extents": 5727,
        "fits": False,
        "shortfall_extents": 315,
        "first_failure": {
            "logical_volume": "dockerdistribution-lv", "needed_extents": 1024, "available_extents": 709,
        },
    }  # fmt: skip

    # The same on an empty group of the same geometry, by real commands in the ledger's order.
    own_lvm.create_group("new-vg", own_lvm.add_disk(DISK_BYTES), extent_bytes=EXTENT_BYTES)
    for line in document["ledger"]:
        done = own_lvm.try_create("new-vg", line["logical_volume"], line["after_extents"] * EXTENT_BYTES)
        if line["free_extents"] < 0:
            assert line["logical_volume"] == "dockerdistribution-lv"
            assert refusal(done) == (1024, 709)
            break
        assert done.returncode == 0, done
        assert read_group(own_lvm, "new-vg").free_extents == line["free_extents"]


def test_asked_with_sysinvs_own_records(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    """The platform refuses 40 again; it would accept 41 as one GiB of growth, and lvextend would fail."""
    build_bug_machine(own_lvm, BEFORE_UPGRADE)
    config = tmp_path / "agent.toml"
    with SysinvServer(sysinv_of_the_bug_machine()) as server:
        config.write_text(
            f'[agent]\nhostname = "controller-0"\n[inventory]\nkind = "sysinv"\nurl = "{server.url}"\n'
            "[audit]\ntransition_grace_seconds = 0\n"
        )

        def ask_sysinv(*words: str) -> tuple[int, list[tuple[str, bool]], dict[str, Any]]:
            done = run_agent(own_lvm, "preflight", "--format", "json", "--config", str(config), *words)
            document = json.loads(done.stdout)
            return done.returncode, [(one["kind"], one["blocks"]) for one in document["reasons"]], document

        status, kinds, document = ask_sysinv("docker=40")
        assert (status, kinds) == (
            2,
            [("not_larger", True), ("extents_short", True), ("filesystem_undersized", False)],
        )
        status, kinds, document = ask_sysinv("docker=41")
        assert (status, kinds, needs(document)) == (
            7,
            [("extents_short", True), ("filesystem_undersized", False)],
            (352, 5),
        )
        assert refusal(own_lvm.extend(GROUP, "docker-lv", 41 * GIB)) == (352, 5)
        status, kinds, document = ask_sysinv("database=11", "docker=+1")
        assert ("backup_too_small", True) in kinds
        assert document["asked"][0]["asked_bytes"] == 22 * GIB
        assert needs(document) == (352 + 64, 5)


@pytest.fixture(scope="module")
def uneven(lvm: ScratchLvm) -> ScratchLvm:
    """Two disks of 49 and 19 extents with a striped LV of 8 on each."""
    disks = [lvm.add_disk(200 * MIB), lvm.add_disk(80 * MIB)]
    lvm.create_group("uneven-vg", *disks)
    lvm.create_volume("uneven-vg", "docker-lv", 16 * EXTENT, "-i2")
    return lvm


@pytest.mark.parametrize("more_extents", [2, 20, 22, 24, 40, 60])
def test_striped_growth_is_allowed_exactly_when_lvm_does_it(
    uneven: ScratchLvm, tmp_path: Path, more_extents: int
) -> None:
    size_bytes = (16 + more_extents) * EXTENT
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": f"{16 * EXTENT}B"})
    status, document = ask(uneven, record, f"docker={size_bytes}B", group="uneven-vg")
    tried = uneven.extend("uneven-vg", "docker-lv", size_bytes, "--test")
    assert (status == 0) is (tried.returncode == 0), tried
    assert status in (0, 7)
    if status:
        # When all together would be enough, LVM only says that they are not suitable.
        is_short = more_extents > document["capacity"]["available_extents"]
        (reason,) = document["reasons"]
        assert reason["kind"] == ("extents_short" if is_short else "extents_misplaced")
        assert reason["needed_extents"] == more_extents
        assert ("Insufficient suitable allocatable extents" in tried.stderr) is not is_short


def test_a_held_lock_is_busy_and_a_missing_disk_lets_nothing_change(
    own_lvm: ScratchLvm, tmp_path: Path
) -> None:
    disks = [own_lvm.add_disk(200 * MIB), own_lvm.add_disk(80 * MIB)]
    own_lvm.create_group("two-vg", *disks)
    own_lvm.create_volume("two-vg", "docker-lv", 4 * EXTENT, disks[0])
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": f"{4 * EXTENT}B"})
    asked = f"docker={8 * EXTENT}B"
    assert ask(own_lvm, record, asked, group="two-vg")[0] == 0
    with own_lvm.hold_lock("two-vg"):
        status, document = ask(own_lvm, record, asked, group="two-vg")
    assert (status, reasons(document)) == (8, [("busy", True)])

    own_lvm.detach(disks[1])
    status, document = ask(own_lvm, record, asked, group="two-vg")
    assert (status, [reason["kind"] for reason in document["reasons"]]) == (7, ["pv_missing"])
    assert own_lvm.extend("two-vg", "docker-lv", 8 * EXTENT).returncode == 5
