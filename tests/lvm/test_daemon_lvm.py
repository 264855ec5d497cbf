"""The daemon as a process on a real volume group: real LVM, notify socket, signals and HTTP."""

import signal
from pathlib import Path

import pytest
from agentprocess import agent
from bug_machine import GROUP, HEALTHY, build_bug_machine
from daemonprocess import RunningDaemon
from lvm_lab import rows_of, write_rows
from scratch_lvm import ScratchLvm

from agent.core.report import AuditVerdict, FilesystemVerdict, Trigger
from agent.core.units import GIB

pytestmark = pytest.mark.lvm


def test_failed_resize_is_seen_and_its_repair_as_well(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    build_bug_machine(own_lvm, HEALTHY)
    record = write_rows(tmp_path / "sizes.toml", {"docker-lv": "40GiB", "dockerdistribution-lv": "32GiB"})
    # 320 extents for docker would be there, but dockerdistribution takes 512 of the 517 first.
    assert own_lvm.extend(GROUP, "dockerdistribution-lv", 32 * GIB).returncode == 0
    assert own_lvm.extend(GROUP, "docker-lv", 40 * GIB).returncode == 5
    with RunningDaemon(tmp_path, lvm_system_directory=own_lvm.system_directory) as daemon:
        daemon.configure(f'[inventory]\nkind = "file"\npath = "{record}"\n[log]\nformat = "json"')
        daemon.start()
        assert "READY=1" in "".join(daemon.hear_until("READY=1"))
        first = daemon.next_report()
        assert first.verdict is AuditVerdict.DOES_NOT_FIT
        assert rows_of(first)["docker"].verdict is FilesystemVerdict.UNDERSIZED
        assert first.capacity is not None
        assert (first.capacity.needed_extents, first.capacity.available_extents) == (320, 5)
        daemon.hear_until(f"STATUS={GROUP}: does not fit (docker undersized)")

        own_lvm.remove(GROUP, "backup-lv")
        assert own_lvm.extend(GROUP, "docker-lv", 40 * GIB).returncode == 0
        daemon.signal(signal.SIGUSR1)
        second = daemon.next_report()
        assert (second.verdict, second.trigger) == (AuditVerdict.CLEAN, Trigger.SIGNAL)
        assert rows_of(second)["docker"].verdict is FilesystemVerdict.MATCH
        daemon.hear_until(f"STATUS={GROUP}: clean (11 LVs, 485 extents free)")

        status = agent("status", "--config", str(daemon.configuration_file))
        assert f"last audit: {GROUP} clean" in status.stdout
        assert "daemon: running" in status.stdout
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        events = [event for event in daemon.log_events() if str(event).startswith("drift.")]
        assert events == ["drift.detected", "drift.resolved"]
