"""What goes on outside while tests run in guests: packages are built once, and all guests run at once.

A guest uses one CPU only, so two of them and the tests outside share a machine well.
Not here: which tests run in which guest, and their reports (`tests/vm/conftest.py`).
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORTS_VARIABLE = "VM_REPORTS"
ARTEFACTS_VARIABLE = "VM_ARTEFACTS"
TIMEOUT_SECONDS = 600
"""For all tests of a guest; on a quiet machine they take half of it."""
DISKS = {"service": ("179G", "20G"), "common": ("8G", "8G", "8G")}
"""Sizes of each boot's fresh disks: /dev/ubda, /dev/ubdb, …"""
NEED_PACKAGES = frozenset({"service"})


class GuestReports:
    """What came of one guest."""

    def __init__(self, lines: list[str], problem: str | None) -> None:
        self.lines = lines
        """Each a serialised report of pytest's."""
        self.problem = problem
        """What went wrong with the guest, not with a test."""


class Guests:
    """Started with the first test that needs one; `end` leaves nothing behind, however the session ended."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="vm-tests-", ignore_cleanup_errors=True)
        self.artefacts = Path(self._directory.name)
        self._processes: set[subprocess.Popen[str]] = set()
        self._is_ending = False
        self._builder = ThreadPoolExecutor(max_workers=1)
        self._executor = ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0)))
        self._packages: Future[str | None] | None = None
        self._guests: dict[str, Future[GuestReports]] = {}

    def start(self, boot: str, node_ids: Sequence[str]) -> None:
        """Boot and run these tests, as soon as what they need is there."""
        packages = self._begin_building() if boot in NEED_PACKAGES else None
        self._guests[boot] = self._executor.submit(self._run, boot, tuple(node_ids), packages)

    def reports(self, boot: str) -> GuestReports:
        """Wait for that guest."""
        return self._guests[boot].result()

    def build_packages(self) -> str | None:
        """Build wheelhouse and Debian package, if that was not done yet; returns what went wrong."""
        return self._begin_building().result()

    def end(self) -> None:
        """End what still runs and remove all that was built."""
        self._is_ending = True
        for process in tuple(self._processes):
            process.terminate()  # scripts/vm ends its guest then
        for executor in (self._builder, self._executor):
            executor.shutdown(cancel_futures=True)
        self._directory.cleanup()

    def _begin_building(self) -> "Future[str | None]":
        """Only ever called by the thread that runs the tests."""
        if self._packages is None:
            self._packages = self._builder.submit(self._build_packages)
        return self._packages

    def _run(self, boot: str, node_ids: Sequence[str], packages: "Future[str | None] | None") -> GuestReports:
        with contextlib.suppress(CancelledError):
            problem = None if packages is None else packages.result()
            lines = self.artefacts / f"reports-{boot}.jsonl"
            if problem is None:
                problem = self._run_guest(boot, node_ids, lines)
            return GuestReports(lines.read_text().splitlines() if lines.exists() else [], problem)
        return GuestReports([], "the tests were ended")

    def _run_guest(self, boot: str, node_ids: Sequence[str], lines: Path) -> str | None:
        command = [
            sys.executable,
            str(ROOT / "scripts" / "vm"),
            *(
                "--timeout",
                str(TIMEOUT_SECONDS),
                "--hostname",
                "controller-0",
                "--share",
                str(self.artefacts),
            ),
            *(word for size in DISKS.get(boot, ()) for word in ("--disk", size)),
            *("--env", REPORTS_VARIABLE, "--env", ARTEFACTS_VARIABLE, "--"),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *node_ids),
        ]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")
        } | {REPORTS_VARIABLE: str(lines), ARTEFACTS_VARIABLE: str(self.artefacts)}
        status, said = self._call(command, ROOT, environment)
        if status in {0, 1}:  # pytest ran, whatever it found
            return None
        return f"the guest ended with {status}:\n{said[-6000:]}"

    def _build_packages(self) -> str | None:
        """For the system's Python, outside, where there is a network."""
        builder, wheelhouse = self.artefacts / "builder", self.artefacts / "wheelhouse"
        quiet = ("-q", "--disable-pip-version-check")
        steps: list[list[str]] = [
            ["/usr/bin/python3", "-m", "venv", str(builder)],
            [str(builder / "bin/pip"), *quiet, "wheel", "--wheel-dir", str(wheelhouse), f"{ROOT}[sysinv]"],
            [str(ROOT / "scripts/build-deb"), "--wheelhouse", str(wheelhouse), str(self.artefacts)],
        ]
        for step in steps:
            status, said = self._call(step, self.artefacts, dict(os.environ))
            if status != 0:
                return f"`{' '.join(step)}` ended with {status}:\n{said}"
        return None

    def _call(self, command: Sequence[str], directory: Path, environment: dict[str, str]) -> tuple[int, str]:
        if self._is_ending:
            raise CancelledError
        with subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            self._processes.add(process)
            try:
                said, _ = process.communicate()
            finally:
                self._processes.discard(process)
            return process.returncode, said
