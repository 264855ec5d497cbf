"""The state directory on a file system that is really full, or really read-only."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from reports import AWAY, FakeClock, FakeSender, make_document, make_reporter

from agent.core.delivery.errors import OutboxError
from agent.reporting.reporter import Reported
from agent.state.file import read_state, write_audits

SIZE_BYTES = 512 * 1024
BUDGET = 10.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a mebibyte."""
    directory = tmp_path / "small"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES},mode=755", "tmpfs", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip() or 'mount failed'}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def fill(directory: Path) -> Path:
    """Take every byte that is left."""
    path = directory / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return path


def kinds(reported: Reported) -> list[str]:
    found = [finding.kind for finding in reported.documents[0].findings]
    return [kind for kind in found if not kind.startswith("filesystem_")]


def test_a_full_disk_loses_nothing_stored_and_says_what_is_lost(small: Path) -> None:
    clock, sender = FakeClock(), FakeSender(always=AWAY)
    reporter, keeper = make_reporter(small, sender, clock)
    stored = reporter.report([make_document(1)], budget_seconds=BUDGET, at_once=False)
    write_audits(small, stored.documents, written_at=clock.wall, delivery=None)
    before = read_state(small)
    filler = fill(small)

    lost = [
        reporter.report([make_document(number, docker_extents=number)], budget_seconds=BUDGET, at_once=False)
        for number in range(2, 60)
    ]
    with pytest.raises(OutboxError, match="no space left on device"):
        write_audits(small, stored.documents, written_at=clock.wall, delivery=None)

    # What is there already has room for a few; from some report on each is lost, and each says so.
    first = next(index for index, reported in enumerate(lost) if reported.is_lost)
    for reported in lost[first:]:
        assert kinds(reported) == ["outbox_unusable", "report_lost"]
    assert {kind for reported in lost[:first] for kind in kinds(reported)} <= {"report_pending"}
    assert read_state(small) == before

    filler.unlink()
    sender.always = FakeSender().always
    sender.sent.clear()
    clock.pass_seconds(3600)
    assert kinds(reporter.report([make_document(99)], budget_seconds=BUDGET, at_once=False)) == []
    assert sender.sent_ids == [*range(1, first + 2), 99]
    assert [report.sequence for report in sender.sent] == list(range(1, first + 3))
    keeper.close()


def test_a_full_disk_from_the_start(small: Path) -> None:
    fill(small)
    reporter, keeper = make_reporter(small, FakeSender(always=AWAY), FakeClock())

    reported = reporter.report([make_document(1)], budget_seconds=BUDGET, at_once=True)

    assert reported.is_lost
    assert kinds(reported) == ["outbox_unusable", "report_lost"]
    keeper.close()


def test_a_read_only_file_system(small: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    sender = FakeSender()
    reporter, _ = make_reporter(small, sender, FakeClock())

    reported = reporter.report([make_document(1)], budget_seconds=BUDGET, at_once=True)

    assert not reported.is_lost
    assert kinds(reported) == ["outbox_unusable"]
    assert "read-only file system" in reported.documents[0].findings[-1].message
    assert sender.sent_ids == [1]
    assert os.listdir(small) == []  # noqa: PTH208 - iterdir is no clearer
