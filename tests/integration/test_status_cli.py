"""`agent status` as a process: with and without a daemon, a state directory, an outbox, a right to look."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from reports import AWAY, DELIVERED, NO_REPORTS, REFUSED, FakeClock, FakeSender, make_document, make_reporter

from agent.core.delivery.queue import Answer
from agent.core.delivery.status import ProcessIdentity
from agent.host.facts import read_boot_id
from agent.host.liveness import identify_self, is_running
from agent.state.file import FILE_NAME, read_state, write_audits

NOW = datetime.now(UTC)
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="becomes nobody, which needs root")


AS_NOBODY = """
import os, sys
from agent.cli.main import run
arguments = sys.argv[1:]
stdout = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
run(["status", "--state-dir", "/nowhere"])  # loads what is loaded late: nobody may not read our interpreter
import agent.outbox.store
os.dup2(stdout, 1)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
status = run(arguments)
sys.stdout.flush()
os._exit(status)  # without what measures coverage, which nobody may write down
"""


def run(*arguments: str, as_nobody: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
    return subprocess.run(
        [sys.executable, *(("-c", AS_NOBODY) if as_nobody else ("-m", "agent")), "status", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
        cwd=Path(__file__).parent.parent.parent,
    )


def show(directory: Path, *arguments: str, as_nobody: bool = False) -> str:
    done = run("--state-dir", str(directory), *arguments, as_nobody=as_nobody)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def show_json(directory: Path) -> Any:
    return json.loads(show(directory, "--format", "json"))


def run_audits(
    directory: Path, *answers: Answer, always: Answer = DELIVERED, daemon: ProcessIdentity | None = None
) -> None:
    """As many audits as there are answers, each another state, written down as the agent does."""
    clock = FakeClock()
    clock.wall = NOW - timedelta(hours=2)
    reporter, keeper = make_reporter(directory, FakeSender(*answers, always=always), clock)
    for number in range(1, len(answers) + 1):
        document = make_document(number, docker_extents=959 + number)
        reported = reporter.report([document], budget_seconds=10, at_once=True)
        write_audits(
            directory,
            reported.documents,
            written_at=clock.wall,
            delivery=reporter._deliverer.describe(),
            daemon=daemon,
        )
    keeper.close()


@pytest.fixture
def readable(tmp_path: Path) -> Path:
    """A state directory that everybody may enter, as in /var/lib."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    directory = tmp_path / "state"
    directory.mkdir()
    return directory


def test_without_a_state_directory(tmp_path: Path) -> None:
    assert show(tmp_path / "none").splitlines() == [
        "daemon: can't tell whether it runs",
        "last audit: nothing is known",
        "reports: nothing is known (not configured with [report] url, or never sent)",
        f"problem: there is no state directory {tmp_path / 'none'}: the agent never ran with it",
    ]
    document = show_json(tmp_path / "none")
    assert document["schema"] == "agent.status/v1"
    assert (document["audits"], document["delivery"], document["daemon"]["state"]) == (None, None, "unknown")


def test_after_audits_without_a_daemon(tmp_path: Path) -> None:
    run_audits(tmp_path, DELIVERED, DELIVERED)

    lines = show(tmp_path).splitlines()

    assert lines[0] == "daemon: not running; what follows was written down before"
    assert lines[1].startswith("last audit: cgts-vg drift, 2026-12-01 09:02:00 UTC (")
    assert lines[1].endswith("; 1 recorded sizes differ; findings: 0 critical, 1 warning")
    assert lines[2] == f"last delivery: {NOW - timedelta(hours=2):%Y-%m-%d %H:%M:%S} UTC (2 h ago)"
    assert lines[3:] == ["waiting: nothing"]


def test_a_backlog_and_why(tmp_path: Path) -> None:
    run_audits(tmp_path, AWAY, AWAY, AWAY)

    text = show(tmp_path)
    delivery = show_json(tmp_path)["delivery"]

    assert "last delivery: never\n" in text
    assert "waiting: 3 reports, " in text
    assert ", oldest 2026-12-01 09:01:00 UTC (" in text
    assert "last failure: " in text
    assert "(2 h ago): connection refused\n" in text
    assert delivery["waiting_count"] == 3
    assert delivery["oldest_waiting_at"] == "2026-12-01T09:01:00Z"
    assert delivery["failures"] == 3


def test_set_aside_reports_and_retry(tmp_path: Path) -> None:
    run_audits(tmp_path, REFUSED, DELIVERED)

    text = show(tmp_path)
    assert "set aside: 1, refused by the server\n  #1 cgts-vg, 2026-12-01 09:01:00 UTC (" in text
    assert "HTTP 422 schema_invalid: no such field (audit 00000000-0000-0000-0000-000000000001)\n" in text
    assert "agent status --retry" in text

    done = run("--state-dir", str(tmp_path), "--retry", "--format", "json")
    assert done.returncode == 0
    assert done.stderr == "1 set-aside report put back to be sent again\n"
    delivery = json.loads(done.stdout)["delivery"]
    assert (delivery["set_aside"], delivery["waiting_count"]) == ([], 1)

    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())
    reporter.report([make_document(3)], budget_seconds=10, at_once=True)
    keeper.close()
    assert sender.sent_ids == [1, 3]


def test_retry_without_anything_to_retry(tmp_path: Path) -> None:
    done = run("--state-dir", str(tmp_path), "--retry")

    assert (done.returncode, done.stderr) == (0, "0 set-aside reports put back to be sent again\n")
    assert list(tmp_path.iterdir()) == []


def test_a_server_without_the_api(tmp_path: Path) -> None:
    run_audits(tmp_path, NO_REPORTS)

    assert "the server takes no reports since " in show(tmp_path)


def test_a_running_daemon_is_told_from_a_dead_one(tmp_path: Path) -> None:
    myself = identify_self(read_boot_id())
    run_audits(tmp_path, DELIVERED, daemon=myself)
    assert show(tmp_path).startswith(f"daemon: running (pid {os.getpid()})\n")
    assert show_json(tmp_path)["daemon"] == {"state": "running", "pid": os.getpid()}

    # An audit beside it does not make it forgotten.
    run_audits(tmp_path, DELIVERED)
    assert show(tmp_path).startswith("daemon: running")

    dead = ProcessIdentity(pid=os.getpid(), start_ticks=myself.start_ticks - 1, boot_id=myself.boot_id)
    run_audits(tmp_path, DELIVERED, daemon=dead)
    assert show(tmp_path).startswith("daemon: not running")


def test_who_is_running() -> None:
    myself = identify_self("boot-1")
    gone = ProcessIdentity(pid=2**22 + 1, start_ticks=1, boot_id="boot-1")

    assert is_running(myself, "boot-1") is True
    assert is_running(myself, None) is True
    assert is_running(myself, "boot-2") is False
    assert is_running(gone, "boot-1") is False


@needs_root
def test_anybody_may_look_and_sees_how_old_it_is(readable: Path) -> None:
    run_audits(readable, AWAY)

    text = show(readable, as_nobody=True)

    assert "last audit: cgts-vg clean" in text
    assert "last delivery: never, as of " in text
    assert "waiting: 1 report, " in text
    assert "problem" not in text
    assert sorted(file.name for file in readable.iterdir() if file.stat().st_mode & 0o044) == [FILE_NAME]


@needs_root
def test_only_the_owner_may_retry(readable: Path) -> None:
    run_audits(readable, REFUSED)

    done = run("--state-dir", str(readable), "--retry", as_nobody=True)

    assert done.returncode == 6
    assert "outbox.sqlite3 can't be used: permission denied" in done.stderr


def test_damaged_files_are_problems_and_not_emptiness(tmp_path: Path) -> None:
    run_audits(tmp_path, DELIVERED)
    (tmp_path / FILE_NAME).write_text("{")
    (tmp_path / "outbox.sqlite3").write_bytes(b"garbage" * 1000)

    document = show_json(tmp_path)

    assert (document["audits"], document["delivery"]) == (None, None)
    state, outbox = document["problems"]
    assert state.startswith(f"{tmp_path / FILE_NAME} is damaged: ")
    assert outbox == f"the outbox {tmp_path / 'outbox.sqlite3'} is damaged: file is not a database"


def test_an_outbox_that_is_no_file_is_a_problem_and_not_waited_for(tmp_path: Path) -> None:
    """Opening a named pipe waits for a writer, who never comes."""
    run_audits(tmp_path, AWAY)
    outbox = tmp_path / "outbox.sqlite3"
    outbox.unlink()
    os.mkfifo(outbox)

    assert show_json(tmp_path)["problems"] == [f"the outbox {outbox} can't be used: it is no regular file"]

    done = run("--state-dir", str(tmp_path), "--retry")
    assert (done.returncode, done.stdout) == (6, "")
    assert "it is no regular file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--bogus"], 2, "No such option '--bogus'."),
        (["--state-dir", ""], 2, "Invalid value for '--state-dir': the path is empty"),
        (["--config", "/nowhere.toml"], 4, "/nowhere.toml: can't be read: No such file or directory"),
    ],
)
def test_a_look_that_fails_is_told_in_json_too(arguments: list[str], status: int, problem: str) -> None:
    done = run("--format", "json", *arguments)
    assert done.returncode == status
    document = json.loads(done.stdout)
    assert document.pop("problems") == [problem]
    assert document.pop("schema") == "agent.status/v1"
    assert document.pop("daemon") == {"state": "unknown", "pid": None}
    assert set(document.values()) == {None}


def test_hostile_words_are_harmless(tmp_path: Path) -> None:
    nasty = Answer(outcome=REFUSED.outcome, reason="HTTP 400: \x1b[31m\u202ered")
    run_audits(tmp_path, nasty)

    assert r"HTTP 400: \x1b[31m\u202ered" in show(tmp_path)


def test_the_state_file_keeps_other_groups(tmp_path: Path) -> None:
    for document in (make_document(1), make_document(2, group="nova-local"), make_document(3)):
        write_audits(tmp_path, [document], written_at=NOW, delivery=None)

    state = read_state(tmp_path)

    assert state is not None
    assert [(audit.volume_group_name, audit.audit_id) for audit in state.audits] == [
        ("cgts-vg", UUID(int=3)),
        ("nova-local", UUID(int=2)),
    ]
