"""JSON on stdout is exactly one document, whatever fails."""

from pathlib import Path

import pytest
from agentprocess import agent, audit, only_document
from fakelvm import FakeLvm


def test_json_is_one_document(fake: FakeLvm, sizes: Path) -> None:
    done = audit(fake, "--inventory", f"file:{sizes}", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = only_document(done.stdout)
    assert document["schema"] == "agent.audit/v1"
    assert document["trigger"] == "once"
    assert document["verdict"] == "clean"
    assert document["host"]["lvm_version"] == "2.03.16"
    assert document["host"]["boot_time"] is not None
    assert document["boot_id"] is not None
    assert [row["verdict"] for row in document["filesystems"]] == ["rounding", "match"]
    assert document["capacity"]["needed_extents"] == 6


def test_json_for_several_volume_groups_is_one_document_too(fake: FakeLvm, sizes: Path) -> None:
    done = audit(
        fake, "--vg", "cgts-vg", "--vg", "other-vg", "--inventory", f"file:{sizes}", "--format", "json"
    )
    document = only_document(done.stdout)
    assert document["schema"] == "agent.audits/v1"
    assert [(one["volume_group_name"], one["verdict"]) for one in document["audits"]] == [
        ("cgts-vg", "clean"),
        ("other-vg", "unknown"),
    ]
    assert len({one["audit_id"] for one in document["audits"]}) == 2
    # The strongest of both: not having been able to look.
    assert done.returncode == 5


@pytest.mark.parametrize(
    ("args", "status", "kind"),
    [
        (["--config", "/nowhere/agent.toml"], 4, "config_invalid"),
        (["--vg", "-x"], 2, "usage"),
        (["--inventory", "sysinw:x"], 2, "usage"),
        (["--frob"], 2, "usage"),
        (["--lvm-dir", "/nowhere"], 5, "lvm_missing"),
    ],
)
def test_json_on_failure(args: list[str], status: int, kind: str) -> None:
    for flags in (["--format", "json"], ["--format=json"]):
        done = agent("audit", "--once", *args, *flags)
        assert done.returncode == status
        document = only_document(done.stdout)
        assert (document["schema"], document["verdict"]) == ("agent.audit/v1", "unknown")
        assert document["volume_group"] is None
        assert document["filesystems"] is None
        assert [finding["kind"] for finding in document["findings"]] == [kind]


@pytest.mark.parametrize("command", ["audit", "preflight"])
def test_help_beside_json_is_no_failure(command: str) -> None:
    done = agent(command, "--format", "json", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: agent {command} ")
    assert "{" not in done.stdout


def test_json_when_once_is_missing() -> None:
    done = agent("audit", "--format", "json")
    assert done.returncode == 2
    assert "`agent run`" in only_document(done.stdout)["findings"][0]["message"]


def test_json_on_failure_for_several_volume_groups() -> None:
    done = agent("audit", "--once", "--config", "/nowhere", "--vg", "a", "--vg", "b", "--format", "json")
    document = only_document(done.stdout)
    assert [one["volume_group_name"] for one in document["audits"]] == ["a", "b"]
    assert done.returncode == 4


def test_json_when_records_are_unavailable_keeps_the_actual_sizes(fake: FakeLvm) -> None:
    done = audit(fake, "--inventory", "file:/nowhere", "--format", "json")
    document = only_document(done.stdout)
    assert done.returncode == 6
    assert document["filesystems"] is None
    assert len(document["logical_volumes"]) == 12
