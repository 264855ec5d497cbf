"""Runs the groups of figures, prints their tables, keeps them.

Not here: finding the right Python (see `bench`), the figures (`bench_audit` and its like).
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from bench_audit import measure_audit
from bench_bed import SBIN, Beds
from bench_daemon import measure_daemon
from bench_preflight import measure_preflight
from bench_reporting import measure_reports
from bench_table import Figure, Unmeasured, format_table, keep

_GROUPS: Mapping[str, Callable[..., Iterator[Figure]]] = {
    "audit": measure_audit,
    "reports": measure_reports,
    "daemon": measure_daemon,
    "preflight": measure_preflight,
}
_MISSED = 3


def main() -> int:
    """Measure, print, keep."""
    arguments = _parser().parse_args()
    # What is measured finds the agent as it always does, and spends no time on looking elsewhere first.
    os.environ.pop("PYTHONPATH", None)
    is_missed = False
    with Beds() as beds:
        for group in arguments.only or _GROUPS:
            machine = describe_machine()
            figures, reason = collect(_GROUPS[group](beds, is_long=arguments.long))
            parts = [format_table(figures) if figures else "", f"Not measured: {reason}" if reason else ""]
            text = "\n\n".join([*filter(None, parts), machine])
            print(f"{group}\n\n{text}\n", flush=True)
            is_missed |= any(figure.verdict == "MISSED" for figure in figures)
            if arguments.write:
                keep(group, text)
    return _MISSED if is_missed else 0


def collect(figures: Iterable[Figure]) -> tuple[Sequence[Figure], str | None]:
    """What could be measured, and why no more."""
    found: list[Figure] = []
    try:
        found.extend(figures)
    except Unmeasured as reason:
        return found, str(reason)
    return found, None


def describe_machine() -> str:
    """What it is measured on, and how busy that is."""
    try:
        done = subprocess.run([SBIN / "lvm", "version"], capture_output=True, text=True, check=False)
        release = f"lvm2 {done.stdout.split()[2]}"
    except (OSError, IndexError):
        release = "no lvm2"
    return (
        f"{release}, Python {platform.python_version()}, Linux {platform.release()}, "
        f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} before; {time.strftime('%Y-%m-%d')}."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="What the agent costs.")
    parser.add_argument(
        "--only", action="append", choices=_GROUPS, metavar="GROUP", help=f"one of {', '.join(_GROUPS)}"
    )
    parser.add_argument("--long", action="store_true", help="more rounds, steadier figures")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/PERFORMANCE.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
