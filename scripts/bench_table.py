"""Figures with their goals: measuring, one table for each group, and keeping them in the page.

Not here: what is measured (`bench_audit`, `bench_reporting`, `bench_daemon`, `bench_preflight`).
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "PERFORMANCE.md"
_THREE_DIGITS = 100


class Figure(NamedTuple):
    """One line of a table; `goal` is an upper bound of `value` in the same unit, None = there is none."""

    name: str
    value: float
    goal: float | None = None
    unit: str = ""

    @property
    def verdict(self) -> str:
        """Whether the goal is reached."""
        if self.goal is None:
            return ""
        return "reached" if self.value <= self.goal else "MISSED"


class Unmeasured(Exception):
    """Why some figures can't be measured here."""


def require(condition: object, what: str) -> None:
    """Refuse to measure what is not what was meant.

    Raises:
        RuntimeError: it is not.
    """
    if not condition:
        msg = f"not so: {what}"
        raise RuntimeError(msg)


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


def measure_processor(runs: int, *actions: Callable[[], object]) -> list[float]:
    """Least CPU milliseconds of each action in this process, interleaved, after one round.

    The least and not the median: what a computation takes above it is the neighbours' caches and clocks.
    """
    taken: list[list[float]] = [[] for _ in actions]
    for round_number in range(runs + 1):
        for action, times in zip(actions, taken, strict=True):
            start = time.process_time()
            action()
            if round_number:
                times.append((time.process_time() - start) * 1000)
    return [min(times) for times in taken]


def processor_ms(pid: int) -> float:
    """CPU milliseconds that all threads of a process have used, its children not counted."""
    # The kernel's clock of another process: CPUCLOCK_SCHED of include/linux/posix-timers.h.
    return time.clock_gettime((~pid << 3) | 2) * 1000


def file_read_us() -> float:
    """CPU microseconds of opening, reading and closing a small file of /proc: how dear system calls are."""
    rounds = 5000
    started = time.process_time()
    for _ in range(rounds):
        Path("/proc/self/stat").read_bytes()
    return (time.process_time() - started) / rounds * 1_000_000


def resident_kib(pid: int) -> int:
    """Memory of a process that is in RAM now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:")))


def format_table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table, readable as it is."""
    width = max(len(figure.name) for figure in figures)
    lines = [
        f"| {'figure':{width}} | {'value':>9} | {'goal':>9} |         |",
        f"|{'-' * (width + 2)}|{'-' * 10}:|{'-' * 10}:|---------|",
    ]
    for figure in figures:
        goal = "" if figure.goal is None else f"{_number(figure.goal)} {figure.unit}".strip()
        value = f"{_number(figure.value)} {figure.unit}".strip()
        lines.append(f"| {figure.name:{width}} | {value:>9} | {goal:>9} | {figure.verdict:7} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < _THREE_DIGITS else f"{value:.0f}"


def keep(group: str, text: str) -> None:
    """Put a group's table into the page, in place of its last one."""
    begin, end = f"<!-- scripts/bench --write: {group} -->", "<!-- end -->"
    before, found, rest = PAGE.read_text().partition(begin)
    if not found:
        msg = f"{PAGE.name} has no place for {group}: {begin} … {end}"
        raise ValueError(msg)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
