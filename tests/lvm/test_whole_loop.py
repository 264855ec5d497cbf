"""The whole loop as processes: real LVM, sysinv on a socket, a report delivered, exit status and status."""

import json
from pathlib import Path

import pytest
from agentprocess import agent, environment
from bug_machine import BEFORE_UPGRADE, GROUP, build_bug_machine
from reportserver import ReportServer
from scratch_lvm import ScratchLvm
from sysinvserver import SysinvServer, bug_machine

pytestmark = pytest.mark.lvm


def write_config(directory: Path, sysinv_url: str, report_url: str) -> Path:
    config = directory / "agent.toml"
    config.write_text(
        f'[agent]\nhostname = "controller-0"\nstate_directory = "{directory}/state"\n'
        f'[audit]\ntransition_grace_seconds = 10\n[inventory]\nkind = "sysinv"\nurl = "{sysinv_url}"\n[report]\nurl = "{report_url}/v1"\n'
    )
    return config


def test_bug_is_seen_by_the_operator_and_by_the_inventory(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    build_bug_machine(own_lvm, BEFORE_UPGRADE)
    env = environment(LVM_SYSTEM_DIR=own_lvm.environment["LVM_SYSTEM_DIR"])
    with SysinvServer(bug_machine()) as sysinv, ReportServer() as reports:
        config = str(write_config(tmp_path, sysinv.url, reports.url))
        done = agent("audit", "--once", "--vg", GROUP, "--config", config, "--format", "json", env=env)
        (stored,) = reports.stored.values()

    assert done.returncode == 7, done.stderr
    document = json.loads(done.stdout)
    assert json.loads(stored) == document
    verdicts = {row["name"]: row["verdict"] for row in document["filesystems"]}
    assert verdicts["docker"] == "undersized"
    assert verdicts["database"] == "match"
    assert document["capacity"]["first_failure"] == {
        "logical_volume": "docker-lv",
        "needed_extents": 320,
        "available_extents": 5,
    }

    status = agent("status", "--config", config, "--format", "json", env=env)
    assert json.loads(status.stdout)["audits"][0]["verdict"] == "does_not_fit"
    assert status.returncode == 0, status.stderr


def test_sysinv_that_is_away_is_unknown_and_still_reported(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    build_bug_machine(own_lvm, BEFORE_UPGRADE)
    env = environment(LVM_SYSTEM_DIR=own_lvm.environment["LVM_SYSTEM_DIR"])
    with ReportServer() as reports:
        config = str(write_config(tmp_path, "http://127.0.0.1:1", reports.url))
        done = agent("audit", "--once", "--config", config, env=env)
        (stored,) = reports.stored.values()

    assert done.returncode == 6, done.stderr
    document = json.loads(stored)
    assert document["verdict"] == "unknown"
    assert document["filesystems"] is None
    assert document["volume_group"]["free_extents"] == 5
    assert "docker-lv" in done.stdout
