"""`agent preflight` as a process, on strict fake LVM programs: each answer, each exit status, each bad word."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import write_schemas
from agentprocess import agent as run_agent
from fakelvm import FakeLvm, Reply
from jsonschema import Draft202012Validator

from agent.core.resize.document import PreflightDocument

SIZES = """
[[filesystem]]
name = "docker"
logical_volume = "docker-lv"
size = 30
[[filesystem]]
name = "kubelet"
logical_volume = "kubelet-lv"
size = {kubelet}
"""


@pytest.fixture
def fake(tmp_path: Path) -> FakeLvm:
    """The bug report's machine: docker-lv 30 GiB, kubelet-lv 10 GiB, 517 extents free."""
    lvm = FakeLvm(tmp_path)
    lvm.serve("bug-healthy")
    return lvm


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.toml"
    path.write_text(SIZES.format(kubelet=10))
    return path


def agent(*args: str) -> subprocess.CompletedProcess[str]:
    return run_agent("preflight", *args)


def preflight(fake: FakeLvm, sizes: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return agent("--lvm-dir", str(fake.directory), "--inventory", f"file:{sizes}", *args)


DOES_NOT_FIT = (
    "does_not_fit: docker-lv would fail: 640 extents needed, but only 517 available "
    "(all growths together: 640 of 517)"
)
SCHEMA = Draft202012Validator(
    json.loads((write_schemas.DIRECTORY / "agent.preflight-v1.json").read_text(encoding="utf-8"))
)


def document_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Exactly one document, as published."""
    assert done.stdout.count("\n") == 1
    document: dict[str, Any] = json.loads(done.stdout)
    SCHEMA.validate(document)
    assert set(document) == set(PreflightDocument.__struct_fields__)
    return document


def kinds(document: dict[str, Any]) -> list[str]:
    return [reason["kind"] for reason in document["reasons"]]


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["docker=40"], 0, []),
        (["docker=+10"], 0, []),
        (["docker=40", "kubelet=12"], 0, []),
        (["docker=30"], 0, []),
        (["docker=29"], 2, ["shrink"]),
        (["docker=-1"], 2, ["syntax"]),
        (["docker=40.5"], 2, ["syntax"]),
        (["docker=99999999999999999999"], 2, ["syntax"]),
        (["docker=40", "docker=41"], 2, ["name_twice"]),
        (["dokcer=40"], 2, ["unknown_name"]),
        (["docker=47"], 7, ["extents_short"]),
        (["docker=47", "nope=1", "docker"], 2, ["syntax", "unknown_name", "extents_short"]),
        (["--all-recorded"], 0, []),
    ],
)
def test_answers(fake: FakeLvm, sizes: Path, words: list[str], status: int, expected: list[str]) -> None:
    done = preflight(fake, sizes, *words, "--format", "json")
    assert (done.returncode, done.stderr) == (status, "")
    document = document_of(done)
    assert kinds(document) == expected
    assert document["allowed"] is (status == 0)
    assert document["volume_group"]["free_extents"] == 517
    assert fake.counts() == {"vgs.named": 1, "lvs.locked": 1, "lvm.version": 1}


def test_3_an_earlier_resize_was_not_applied(fake: FakeLvm, sizes: Path) -> None:
    sizes.write_text(SIZES.format(kubelet=11))
    done = preflight(fake, sizes, "docker=40")
    assert done.returncode == 3
    assert done.stdout.startswith("REFUSED  cgts-vg: growing 1 filesystem\n")
    assert (
        "earlier_resize_not_applied: kubelet is recorded with 11 GiB, but cgts-vg/kubelet-lv has 10 GiB"
        in done.stdout
    )
    assert "hint: `lvextend -r -L 11g cgts-vg/kubelet-lv`" in done.stdout


def test_8_the_lock_is_held(fake: FakeLvm, sizes: Path) -> None:
    fake.reply("lvs.locked", Reply(status=5))
    done = preflight(fake, sizes, "docker=40")
    assert done.returncode == 8
    assert done.stdout.startswith("NOT NOW  cgts-vg")
    assert "busy: the lock of cgts-vg is held right now" in done.stdout


@pytest.mark.parametrize(
    ("args", "status", "code", "kind"),
    [
        (["docker=40", "--config", "/nowhere.toml"], 4, "config_invalid", "config_invalid"),
        (
            ["docker=40", "--inventory", "file:/nowhere.toml"],
            6,
            "inventory_unreadable",
            "recorded_file_invalid",
        ),
        (["docker=40", "--inventory", "none"], 6, "inventory_unreadable", "no_inventory"),
        (["docker=40", "--lvm-dir", "/nowhere"], 5, "lvm_unreadable", "lvm_missing"),
        ([], 2, "rule", "usage"),
        (["docker=40", "--all-recorded"], 2, "rule", "usage"),
        (["docker=40", "--vg", "a", "--vg", "b"], 2, "rule", "usage"),
        (["docker=40", "--vg", "-x"], 2, "rule", "usage"),
        (["--nonsense"], 2, "rule", "usage"),
    ],
)
def test_failures_are_one_document_too(
    fake: FakeLvm, sizes: Path, args: list[str], status: int, code: str, kind: str
) -> None:
    done = preflight(fake, sizes, *args, "--format", "json")
    assert done.returncode == status
    document = document_of(done)
    assert [(reason["code"], reason["kind"]) for reason in document["reasons"]] == [(code, kind)]
    assert document["allowed"] is (False if status == 2 else None)
    assert (document["ledger"], document["capacity"]) == (None, None)


def test_both_halves_unreadable_and_a_mistake_are_all_told(fake: FakeLvm, sizes: Path) -> None:
    sizes.unlink()
    fake.reply("vgs.named", Reply(script="kill -KILL $$"))
    done = preflight(fake, sizes, "docker=x", "--format", "json")
    assert done.returncode == 5
    document = document_of(done)
    assert kinds(document) == ["lvm_failed", "recorded_file_invalid", "syntax"]
    assert document["allowed"] is None


def test_text_of_an_answer(fake: FakeLvm, sizes: Path) -> None:
    done = preflight(fake, sizes, "docker=50", "--explain")
    assert done.returncode == 7
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "REFUSED  cgts-vg: growing 1 filesystem",
        "  docker: 30 GiB recorded, 30 GiB actual, 50 GiB asked (docker-lv)",
        "  640 of 517 extents needed, 123 short",
        DOES_NOT_FIT,
        "  hint: free 123 extents (3.844 GiB), add a physical volume, or ask for less",
    ]
    assert lines[5] == ""
    assert lines[6].split() == ["LV", "filesystem", "change", "before", "after", "needed", "free"]
    assert lines[-1].split() == ["docker-lv", "docker", "asked", "960", "1600", "640", "-123"]
    assert len(lines) == 7 + 12


def test_text_of_a_rebuild(fake: FakeLvm, sizes: Path) -> None:
    sizes.write_text(SIZES.format(kubelet=100))
    done = preflight(fake, sizes, "--all-recorded")
    assert done.returncode == 7
    assert done.stdout.startswith("REFUSED  cgts-vg: making every LV anew with its recorded size\n")
    assert "kubelet-lv would fail: 3200 extents needed, but only 837 available then" in done.stdout


def test_text_of_no_answer(fake: FakeLvm, sizes: Path) -> None:
    sizes.unlink()
    done = preflight(fake, sizes, "docker=40")
    assert done.returncode == 6
    assert done.stdout.startswith("CAN'T TELL  cgts-vg: growing 1 filesystem\n  docker: unknown, 40 asked\n")


def test_mistakes_without_json_are_told_on_stderr() -> None:
    done = agent()
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is asked: give NAME=SIZE" in done.stderr


def test_ten_thousand_arguments(fake: FakeLvm, sizes: Path) -> None:
    done = preflight(fake, sizes, *(f"fs{number}=40" for number in range(10_000)))
    assert done.returncode == 2
    assert "… and 9950 more" in done.stdout
    assert len(done.stdout.splitlines()) < 300


def test_help_teaches() -> None:
    done = agent("--help")
    assert done.returncode == 0
    for word in ("docker=+10", "--all-recorded", "--explain", "8    busy"):
        assert word in done.stdout


def test_of_several_configured_groups_the_platforms_own_is_meant(
    fake: FakeLvm, sizes: Path, tmp_path: Path
) -> None:
    config = tmp_path / "agent.toml"
    config.write_text('[audit]\nvolume_groups = ["other-vg", "cgts-vg"]\n')
    done = preflight(fake, sizes, "docker=40", "--config", str(config), "--format", "json")
    assert (done.returncode, document_of(done)["volume_group_name"]) == (0, "cgts-vg")
    config.write_text('[audit]\nvolume_groups = ["other-vg", "third-vg"]\n')
    done = preflight(fake, sizes, "docker=40", "--config", str(config), "--format", "json")
    assert done.returncode == 2
    assert "name it with --vg" in document_of(done)["reasons"][0]["message"]
