"""Volume groups with their records on real LVM, to measure on.  Not here: any measuring."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from bench_table import ROOT, Unmeasured
from bug_machine import GROUP, HEALTHY_RECORD, build_bug_machine, write_record
from many_volumes import volume_names, write_metadata
from scratch_lvm import ScratchLvm, can_run

from agent.core.models import ReadMode
from agent.host.argv import build_environment, lvs_argv, vgs_argv

SBIN = Path("/usr/sbin")
_ANSWERED = (0, 3, 7)
"""Exit statuses of an audit or a question that got an answer."""


class Bed(NamedTuple):
    """A volume group with its record."""

    lvm: ScratchLvm
    group: str
    record: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What LVM commands run in, as the agent runs them."""
        return build_environment(self.lvm.environment)

    @property
    def commands(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The two commands an audit needs, with the audit's own arguments."""
        return vgs_argv(SBIN, self.group), lvs_argv(SBIN, self.group, ReadMode.LOCKED)

    def run_bare(self) -> list[bytes]:
        """Run both, one after the other, and return what they print."""
        return [
            subprocess.run(
                command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, check=True
            ).stdout
            for command in self.commands
        ]

    def run_both(self) -> list[bytes]:
        """Run both at once, and return what they print."""
        started = [
            subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for command in self.commands
        ]
        # `lvs` prints most: `vgs` fits into its pipe until somebody asks for it.
        return [process.communicate()[0] for process in reversed(started)]

    def audit_cold(self, *more: str) -> None:
        """Run `agent audit --once` as a process of its own, its JSON into a pipe."""
        self._run_cold("audit", "--once", *more)

    def preflight_cold(self) -> None:
        """Run `agent preflight` likewise."""
        self._run_cold("preflight", "docker=40")

    def _run_cold(self, *words: str) -> None:
        record = ("--format", "json", "--vg", self.group, "--inventory", f"file:{self.record}")
        done = subprocess.run(
            [sys.executable, "-m", "agent", *words, *record],
            cwd=ROOT,
            env=self.lvm.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode not in _ANSWERED:
            sys.exit(f"bench: agent {words[0]} ended with {done.returncode}: {done.stderr.decode()}")


class Beds:
    """Makes the beds when they are first asked for, and takes them down at the end."""

    def __init__(self) -> None:
        self._parts = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    @cached_property
    def lvm(self) -> ScratchLvm:
        """The scratch LVM that they are in.

        Raises:
            Unmeasured: there can be none here.
        """
        reason = can_run()
        if reason is not None:
            raise Unmeasured(f"no real LVM here: {reason}")
        return self._parts.enter_context(ScratchLvm())

    @cached_property
    def small(self) -> Bed:
        """The bug report's machine: 12 LVs."""
        build_bug_machine(self.lvm)
        record = self.lvm.root / "small.toml"
        write_record(record, HEALTHY_RECORD, whole_gib=True)
        return Bed(self.lvm, GROUP, record)

    @cached_property
    def large(self) -> Bed:
        """1,000 LVs."""
        self.lvm.restore(write_metadata("many-vg", 1000))
        record = self.lvm.root / "large.toml"
        write_record(record, dict.fromkeys(volume_names(1000), "8MiB"), suffix="")
        return Bed(self.lvm, "many-vg", record)
