"""Measures an audit against bare `vgs` and `lvs` on real LVM, all of it interleaved in one run.

Ratios are of medians of the same run on the same machine, so they hold on a slow one too.  Not here:
finding the right Python (see `bench`).
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from bug_machine import GROUP, HEALTHY_RECORD, build_bug_machine, write_record
from many_volumes import volume_names, write_metadata
from scratch_lvm import ScratchLvm, can_run

from agent.audit import Auditor
from agent.cli.wiring import SystemClock
from agent.core.judge import judge
from agent.core.lvm.parse import parse_volume_group
from agent.core.models import Reading, ReadMode
from agent.core.report import HostSection, Trigger
from agent.host.argv import build_environment, lvs_argv, vgs_argv
from agent.host.layers import LayerScanner
from agent.host.lvm import LvmReader
from agent.host.prober import Prober
from agent.host.process import Runner
from agent.inventory.file import FileInventory

ROOT = Path(__file__).resolve().parent.parent
SBIN = Path("/usr/sbin")
PAGE = ROOT / "docs" / "PERFORMANCE.md"
BEGIN, END = "<!-- scripts/bench --write: begin -->", "<!-- end -->"
_HOST = HostSection(hostname="bench", boot_time=None, agent_version="bench", lvm_version=None)


class Figure(NamedTuple):
    """One line of the table; `goal` is an upper bound of `value` in the same unit."""

    name: str
    value: float
    goal: float | None
    unit: str

    @property
    def verdict(self) -> str:
        """Whether the goal is reached."""
        if self.goal is None:
            return ""
        return "reached" if self.value <= self.goal else "MISSED"


class Bed(NamedTuple):
    """A volume group with its record, to measure on."""

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

    def run_cold(self, *more: str) -> None:
        """Run the agent as a process of its own, its JSON into a pipe."""
        words = (
            "audit",
            "--once",
            "--format",
            "json",
            "--vg",
            self.group,
            "--inventory",
            f"file:{self.record}",
        )
        done = subprocess.run(
            [sys.executable, "-m", "agent", *words, *more],
            cwd=ROOT,
            env=self.lvm.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode not in (0, 3, 7):
            sys.exit(f"bench: the audit ended with {done.returncode}: {done.stderr.decode()}")


@contextmanager
def warm_audit(bed: Bed) -> Iterator[Callable[[], object]]:
    """An audit within this process, as the daemon does one after the other."""
    prober = Prober()
    with Runner() as runner, closing(prober):
        auditor = Auditor(
            reader=LvmReader(runner, SBIN, 60.0, environment=bed.lvm.environment),
            inventory=FileInventory(str(bed.record), default_volume_group=bed.group),
            layers=LayerScanner(prober),
            host=lambda: _HOST,
            clock=SystemClock(),
            new_id=uuid4,
            boot_id=None,
            grace_seconds=600.0,
        )
        yield lambda: auditor.audit((bed.group,), Trigger.SCHEDULE)


def measure(runs: int, *actions: Callable[[], object]) -> list[float]:
    """Median milliseconds of each action, interleaved, after one round for warming up."""
    taken: list[list[float]] = [[] for _ in actions]
    for round_number in range(runs + 1):
        for action, times in zip(actions, taken, strict=True):
            start = time.perf_counter()
            action()
            if round_number:
                times.append((time.perf_counter() - start) * 1000)
    return [statistics.median(times) for times in taken]


def measure_processor(runs: int, action: Callable[[], object]) -> float:
    """Median CPU milliseconds of an action in this process."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        action()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times)


def judging(bed: Bed) -> Callable[[], object]:
    """Decoding and judging alone: LVM's output and the record are already there."""
    vgs_output, lvs_output = bed.run_bare()
    recorded = FileInventory(str(bed.record), default_volume_group=bed.group).fetch()

    def parse_and_judge() -> object:
        volume_group = parse_volume_group(vgs_output, lvs_output, bed.group)
        reading = Reading(volume_group=volume_group, findings=())
        return judge(bed.group, reading, recorded, grace_seconds=600.0)

    return parse_and_judge


def count_processes(bed: Bed) -> int:
    """How many LVM processes one audit starts; `lvm version`, once per process, is not counted."""
    with tempfile.TemporaryDirectory(prefix="agent-bench-") as directory:
        log = Path(directory, "started")
        for program in ("vgs", "lvs", "lvm"):
            wrapper = Path(directory, program)
            wrapper.write_text(f'#!/bin/sh\necho "{program} $1" >>{log}\nexec {SBIN}/{program} "$@"\n')
            wrapper.chmod(0o755)
        bed.run_cold("--lvm-dir", directory)
        return sum(line != "lvm version" for line in log.read_text().splitlines())


def measure_all(small: Bed, large: Bed) -> Iterator[Figure]:
    """Every figure, in the order of the table."""
    with warm_audit(small) as warm:
        bare_ms, warm_ms, cold_ms = measure(25, small.run_bare, warm, small.run_cold)
    yield Figure("12 LVs: bare vgs, then lvs", bare_ms, None, "ms")
    yield Figure("12 LVs: warm audit", warm_ms, None, "ms")
    yield Figure("12 LVs: warm audit / bare pair", warm_ms / bare_ms, 0.7, "x")
    yield Figure("12 LVs: cold `agent audit --once`", cold_ms, None, "ms")
    yield Figure("12 LVs: cold - bare pair", cold_ms - bare_ms, 120.0, "ms")
    with warm_audit(large) as warm:
        bare_ms, warm_ms, cold_ms = measure(9, large.run_bare, warm, large.run_cold)
    yield Figure("1,000 LVs: bare vgs, then lvs", bare_ms, None, "ms")
    yield Figure("1,000 LVs: warm audit", warm_ms, None, "ms")
    yield Figure("1,000 LVs: warm audit / bare pair", warm_ms / bare_ms, 0.8, "x")
    yield Figure("1,000 LVs: cold `agent audit --once`", cold_ms, None, "ms")
    yield Figure("1,000 LVs: CPU of parse and judge", measure_processor(25, judging(large)), 20.0, "ms")
    fetch = FileInventory(str(large.record), default_volume_group=large.group).fetch
    yield Figure("1,000 LVs: CPU of reading the record", measure_processor(25, fetch), None, "ms")
    yield Figure("LVM processes for one audit", count_processes(small), 2, "")


def format_table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table, readable as it is."""
    lines = [
        f"| {'figure':38} | {'value':>9} | {'goal':>9} |         |",
        f"|{'-' * 40}|{'-' * 10}:|{'-' * 10}:|---------|",
    ]
    for figure in figures:
        goal = "" if figure.goal is None else f"{_number(figure.goal)} {figure.unit}".strip()
        value = f"{_number(figure.value)} {figure.unit}".strip()
        lines.append(f"| {figure.name:38} | {value:>9} | {goal:>9} | {figure.verdict:7} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"  # noqa: PLR2004 - three digits say enough


def keep(table: str, machine: str) -> None:
    """Put the table into the page, in place of the last one."""
    kept = f"{BEGIN}\n{table}\n\n{machine}\n{END}"
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + kept + rest.partition(END)[2])


def main() -> int:
    """Measure, print, keep."""
    reason = can_run()
    if reason is not None:
        sys.exit(f"bench: no real LVM here: {reason}")
    load = os.getloadavg()[0]
    with ScratchLvm() as lvm:
        build_bug_machine(lvm)
        lvm.restore(write_metadata("many-vg", 1000))
        write_record(lvm.root / "small.toml", HEALTHY_RECORD, whole_gib=True)
        write_record(lvm.root / "large.toml", dict.fromkeys(volume_names(1000), "8MiB"), suffix="")
        figures = tuple(
            measure_all(
                Bed(lvm, GROUP, lvm.root / "small.toml"), Bed(lvm, "many-vg", lvm.root / "large.toml")
            )
        )
        release = lvm.check("lvm", "version").stdout.split()[2]
    table = format_table(figures)
    machine = (
        f"lvm2 {release}, Python {platform.python_version()}, Linux {platform.release()}, "
        f"{os.cpu_count()} CPUs, load {load:.1f} before; {time.strftime('%Y-%m-%d')}."
    )
    print(f"{table}\n\n{machine}")
    if "--write" in sys.argv[1:]:
        keep(table, machine)
    return 3 if any(figure.verdict == "MISSED" for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
