"""`agent audit --once` as a process, with reports: what is sent, printed and returned."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakelvm import FakeLvm
from reportserver import ReportServer, error

ROOT = Path(__file__).parent.parent.parent
SIZES = '[[filesystem]]\nname = "docker"\nlogical_volume = "docker-lv"\nsize = {gib}\n'


@pytest.fixture
def fake(tmp_path: Path) -> FakeLvm:
    lvm = FakeLvm(tmp_path)
    lvm.serve("bug-healthy")
    return lvm


def audit(fake: FakeLvm, directory: Path, url: str, *arguments: str, gib: int = 30) -> tuple[int, Any]:
    """Run it on the bug's machine; gives back the exit status and the document."""
    config, sizes = directory / "agent.toml", directory / "sizes.toml"
    sizes.write_text(SIZES.format(gib=gib))
    config.write_text(
        f'[agent]\nhostname = "controller-0"\nstate_directory = "{directory}/state"\n'
        f'[lvm]\ndirectory = "{fake.directory}"\n'
        f'[inventory]\nkind = "file"\npath = "{sizes}"\n[report]\nurl = "{url}"\n'
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "agent",
            "audit",
            "--once",
            "--format",
            "json",
            "--config",
            str(config),
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
        cwd=ROOT,
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def kinds(document: Any) -> list[str]:
    return [finding["kind"] for finding in document["findings"]]


def test_what_is_printed_is_what_was_sent(fake: FakeLvm, tmp_path: Path) -> None:
    with ReportServer() as server:
        status, document = audit(fake, tmp_path, f"{server.url}/v1")

    (body,) = server.stored.values()
    assert json.loads(body) == document
    assert document["sequence"] == 1
    assert status == 0


@pytest.mark.parametrize(("gib", "status"), [(30, 0), (31, 3), (100, 7)])
def test_a_report_that_waits_changes_no_exit_status(
    fake: FakeLvm, tmp_path: Path, gib: int, status: int
) -> None:
    with ReportServer() as server:
        server.before = lambda _: error(503, "unavailable")
        found, document = audit(fake, tmp_path, f"{server.url}/v1", gib=gib)

    assert found == status
    assert kinds(document)[-1] == "report_pending"


@pytest.mark.parametrize(("gib", "status"), [(30, 6), (31, 3), (100, 7)])
def test_a_lost_report_beats_only_ok(fake: FakeLvm, tmp_path: Path, gib: int, status: int) -> None:
    (tmp_path / "state").touch()
    with ReportServer() as server:
        server.before = lambda _: error(503, "unavailable")
        found, document = audit(fake, tmp_path, f"{server.url}/v1", gib=gib)

    assert found == status
    assert kinds(document)[-2:] == ["outbox_unusable", "report_lost"]


def test_no_report_sends_and_stores_nothing(fake: FakeLvm, tmp_path: Path) -> None:
    with ReportServer() as server:
        status, document = audit(fake, tmp_path, f"{server.url}/v1", "--no-report")

    assert (status, document["sequence"], server.requests) == (0, None, [])
    assert not (tmp_path / "state").exists()
