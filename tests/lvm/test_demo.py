"""The demo, as a user starts it: on real LVM, replayed, and interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from loop_disks import leftovers
from lvm_lab import ROOT

COMMAND = [sys.executable, "scripts/demo_steps.py"]
STATUSES = ["(exit status 0)", "(exit status 5)", "(exit status 7)", "(exit status 7)", "(exit status 5)"]


@contextmanager
def demo(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("words", [pytest.param((), marks=pytest.mark.lvm), ("--replay",)])
def test_demo_tells_its_story_to_the_end(words: tuple[str, ...]) -> None:
    with demo(*words) as process:
        told, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    lines = told.splitlines()
    assert [line for line in lines if line.startswith("(exit status")] == STATUSES
    assert "Insufficient free space: 320 extents needed, but only 5 available" in lines
    assert "Insufficient free space: 768 extents needed, but only 453 available" in lines
    assert "Traceback" not in told


@pytest.mark.lvm
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupted_demo_leaves_nothing_behind(number: signal.Signals, status: int) -> None:
    with demo() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while "=== 2." not in process.stdout.readline():
            assert process.poll() is None
        assert len(leftovers(process.pid)) == 1
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == status
    assert leftovers(process.pid) == []
    assert "Traceback" not in errors


def test_reader_that_stops_listening_ends_the_demo_quietly() -> None:
    with demo("--replay") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(120) != 0
        assert process.stderr.read() == ""
