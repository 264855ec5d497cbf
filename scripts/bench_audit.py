"""An audit against bare `vgs` and `lvs` on real LVM, interleaved in one run.

Ratios are of medians of the same run on the same machine, so they hold on a slow one too.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

from bench_bed import SBIN, Bed, Beds
from bench_table import Figure, measure, measure_processor

from agent.audit import Auditor
from agent.cli.wiring import SystemClock
from agent.core.judge import judge
from agent.core.lvm.parse import parse_volume_group
from agent.core.models import Reading
from agent.core.report import HostSection, Trigger
from agent.host.layers import LayerScanner
from agent.host.lvm import LvmReader
from agent.host.prober import Prober
from agent.host.process import Runner
from agent.inventory.file import FileInventory

_HOST = HostSection(hostname="bench", boot_time=None, agent_version="bench", lvm_version=None)


@contextmanager
def warm_audit(bed: Bed) -> Iterator[Callable[[], object]]:
    """An audit within this process, as the daemon does one after the other."""
    with Runner() as runner, closing(Prober()) as prober:
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


def judging(bed: Bed) -> Callable[[], object]:
    """Decoding and judging alone: LVM's output and the record are already there."""
    vgs_output, lvs_output = bed.run_bare()
    recorded = FileInventory(str(bed.record), default_volume_group=bed.group).fetch()

    def parse_and_judge() -> object:
        volume_group = parse_volume_group(vgs_output, lvs_output, bed.group)
        reading = Reading(volume_group=volume_group, findings=())
        return judge(bed.group, reading, recorded, grace_seconds=600.0)

    return parse_and_judge


def reading_record(bed: Bed) -> Callable[[], object]:
    """Reading the record anew: the daemon's next fetch of the same bytes costs nothing."""
    return lambda: FileInventory(str(bed.record), default_volume_group=bed.group).fetch()


def count_processes(bed: Bed) -> int:
    """How many LVM processes one audit starts; `lvm version`, once per process, is not counted."""
    with tempfile.TemporaryDirectory(prefix="agent-bench-") as directory:
        log = Path(directory, "started")
        for program in ("vgs", "lvs", "lvm"):
            wrapper = Path(directory, program)
            wrapper.write_text(f'#!/bin/sh\necho "{program} $1" >>{log}\nexec {SBIN}/{program} "$@"\n')
            wrapper.chmod(0o755)
        bed.audit_cold("--lvm-dir", directory)
        return sum(line != "lvm version" for line in log.read_text().splitlines())


def measure_audit(beds: Beds, *, is_long: bool) -> Iterator[Figure]:
    """The figures of the audit itself."""
    small, large = beds.small, beds.large
    with warm_audit(small) as warm:
        bare_ms, both_ms, warm_ms, cold_ms = measure(
            75 if is_long else 25, small.run_bare, small.run_both, warm, small.audit_cold
        )
    yield Figure("12 LVs: bare vgs, then lvs", bare_ms, None, "ms")
    yield Figure("12 LVs: both at once / bare pair", both_ms / bare_ms, None, "x")
    yield Figure("12 LVs: warm audit", warm_ms, None, "ms")
    yield Figure("12 LVs: warm audit / bare pair", warm_ms / bare_ms, 0.7, "x")
    yield Figure("12 LVs: cold `agent audit --once`", cold_ms, None, "ms")
    yield Figure("12 LVs: cold - bare pair", cold_ms - bare_ms, 120.0, "ms")
    with warm_audit(large) as warm:
        bare_ms, both_ms, warm_ms, cold_ms = measure(
            45 if is_long else 15, large.run_bare, large.run_both, warm, large.audit_cold
        )
    yield Figure("1,000 LVs: bare vgs, then lvs", bare_ms, None, "ms")
    yield Figure("1,000 LVs: both at once / bare pair", both_ms / bare_ms, None, "x")
    yield Figure("1,000 LVs: warm audit", warm_ms, None, "ms")
    yield Figure("1,000 LVs: warm audit / bare pair", warm_ms / bare_ms, 0.8, "x")
    yield Figure("1,000 LVs: cold `agent audit --once`", cold_ms, None, "ms")
    judging_ms, record_ms = measure_processor(40, judging(large), reading_record(large))
    yield Figure("1,000 LVs: least CPU of parse and judge", judging_ms, 20.0, "ms")
    yield Figure("1,000 LVs: least CPU of reading the record", record_ms, None, "ms")
    yield Figure("LVM processes for one audit", count_processes(small), 2)
