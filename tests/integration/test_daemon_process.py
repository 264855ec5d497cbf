"""The daemon as a real process: real signals, notify socket, HTTP server and children."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemonprocess import RunningDaemon
from fakelvm import HANG, HANG_IGNORING_TERM, Reply
from sysinvserver import Reply as HttpReply
from sysinvserver import hang

from agent.core.report import AuditVerdict, Trigger

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="reading LVM needs root")

NEVER = "3600"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as running:
        yield running


def test_a_whole_life(daemon: RunningDaemon) -> None:
    daemon.configure()
    daemon.start()
    assert daemon.hear() == "READY=1"
    assert daemon.next_report().trigger is Trigger.STARTUP
    assert daemon.hear().startswith("STATUS=cgts-vg: clean (12 LVs, 517 extents free) at ")

    daemon.signal(signal.SIGUSR1)
    assert daemon.next_report().trigger is Trigger.SIGNAL
    daemon.hear_until("STATUS=")

    daemon.configure("[audit]\ninterval_seconds = 120")
    daemon.signal(signal.SIGHUP)
    reloading, ready = daemon.hear(), daemon.hear()
    assert reloading.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert ready == "READY=1"
    assert daemon.next_report().trigger is Trigger.SIGNAL
    daemon.hear_until("STATUS=")

    daemon.configure("[audit]\ninterval = 120")
    daemon.signal(signal.SIGHUP)
    assert daemon.hear().startswith("RELOADING=1")
    assert daemon.hear() == "READY=1"

    daemon.signal(signal.SIGUSR1)
    report = daemon.next_report()
    assert (report.sequence, report.verdict) == (4, AuditVerdict.CLEAN)
    daemon.hear_until("STATUS=")

    daemon.signal(signal.SIGTERM)
    assert daemon.hear() == "STOPPING=1"
    assert daemon.wait() == 0
    assert daemon.log_events() == [
        "service.started",
        "service.ready",
        "audit.finished",
        "audit.finished",
        "config.reloaded",
        "audit.finished",
        "config.reload.failed",
        "audit.finished",
        "service.stopped",
    ]
    failed = daemon.log_lines()[6]
    assert failed["level"] == "error"
    assert "audit.interval: unknown key" in str(failed["problems"])


def test_a_bad_configuration_at_the_start_is_status_4_and_never_ready(daemon: RunningDaemon) -> None:
    daemon.configure("[audit]\ninterval = 120")
    daemon.start()
    assert daemon.wait() == 4
    assert "audit.interval" in daemon.log_file.read_text()


def test_the_schedule_audits_by_itself(daemon: RunningDaemon) -> None:
    daemon.configure("[audit]\ninterval_seconds = 1\njitter_seconds = 0")
    daemon.start()
    triggers = [daemon.next_report().trigger for _ in range(3)]
    assert triggers == [Trigger.STARTUP, Trigger.SCHEDULE, Trigger.SCHEDULE]


def test_the_watchdog_is_fed(tmp_path: Path) -> None:
    with RunningDaemon(tmp_path, watchdog_seconds=0.5) as daemon:
        daemon.configure()
        daemon.start()
        for _ in range(4):
            daemon.hear_until("WATCHDOG=1")
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0


def test_a_log_that_nobody_reads_any_more_ends_nothing(daemon: RunningDaemon) -> None:
    daemon.configure()
    read_end, write_end = os.pipe()
    daemon.start(stderr=write_end)
    os.close(write_end)
    daemon.next_report()
    os.close(read_end)
    for _ in range(2):
        daemon.signal(signal.SIGUSR1)
        assert daemon.next_report().trigger is Trigger.SIGNAL
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0


def test_a_full_log_ends_nothing(daemon: RunningDaemon) -> None:
    daemon.configure()
    full = os.open("/dev/full", os.O_WRONLY)
    daemon.start(stderr=full)
    os.close(full)
    daemon.next_report()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
def test_signals_during_the_start_do_not_end_it(daemon: RunningDaemon, number: signal.Signals) -> None:
    daemon.configure()
    daemon.start()
    assert daemon.process is not None
    while is_deadly(daemon.process.pid, number):  # the interpreter itself is starting
        assert daemon.process.poll() is None
        os.sched_yield()
    for _ in range(10):
        daemon.signal(number)
    assert daemon.next_report().verdict is AuditVerdict.CLEAN


def is_deadly(pid: int, number: signal.Signals) -> bool:
    """Whether the process neither ignores nor catches the signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigIgn:", "SigCgt:"))]
    return not any(mask >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1])
def test_signals_during_the_end_do_not_change_its_status(
    daemon: RunningDaemon, number: signal.Signals
) -> None:
    daemon.configure()
    daemon.start()
    daemon.next_report()
    daemon.signal(signal.SIGTERM)
    assert daemon.process is not None
    while daemon.process.poll() is None:
        daemon.signal(number)
    assert daemon.wait() == 0


@pytest.mark.parametrize("script", [HANG, HANG_IGNORING_TERM])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_does_not_wait_for_an_lvm_that_hangs(
    daemon: RunningDaemon, script: str, number: signal.Signals
) -> None:
    started = daemon.directory / "started"
    os.mkfifo(started)
    daemon.configure(timeout_seconds=NEVER)
    daemon.start()
    daemon.next_report()
    daemon.lvm.reply("vgs.named", Reply(script=f"echo > {started}; {script}"))
    daemon.signal(signal.SIGUSR1)
    started.read_text()
    daemon.signal(number)
    assert daemon.wait() == 0
    assert daemon.log_events()[-1] == "service.stopped"
    # cut short is not the same as unreadable: nothing was reported of it
    assert daemon.reports.empty()


def test_the_end_does_not_wait_for_a_server_that_hangs(daemon: RunningDaemon) -> None:
    asked = daemon.directory / "asked"
    os.mkfifo(asked)

    def hang_for_ever(_: object) -> HttpReply:
        asked.write_text("x")
        return hang(daemon.server)

    daemon.server.before = hang_for_ever
    daemon.configure("read_timeout_seconds = 300")
    daemon.start()
    asked.read_text()
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    # what was in the server's hands is still in ours
    assert (daemon.directory / "state" / "outbox.sqlite3").stat().st_size > 0


def test_the_state_file_is_for_everybody_and_holds_the_last_audit(daemon: RunningDaemon) -> None:
    daemon.configure()
    daemon.start()
    daemon.next_report()
    daemon.hear_until("STATUS=")
    path = daemon.directory / "state" / "status.json"
    assert path.stat().st_mode & 0o777 == 0o644
    state = json.loads(path.read_text())
    assert [audit["verdict"] for audit in state["audits"]] == ["clean"]
    assert daemon.process is not None
    assert state["daemon"]["pid"] == daemon.process.pid
    assert state["delivery"]["waiting_count"] == 0


def test_records_that_can_not_be_read_do_not_stop_the_audits(daemon: RunningDaemon) -> None:
    daemon.configure(f'[inventory]\nkind = "file"\npath = "{daemon.directory}/absent.toml"')
    daemon.start()
    report = daemon.next_report()
    assert report.verdict is AuditVerdict.UNKNOWN
    assert report.volume_group is not None
    assert report.volume_group.free_extents == 517


def count_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - names are all there is to count


def read_status(pid: int, key: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{key}:")))


def count_children(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def slope_kib(samples: list[int]) -> float:
    """Growth for each sample by least squares."""
    count = len(samples)
    middle, mean = (count - 1) / 2, sum(samples) / count
    above = sum((number - middle) * (value - mean) for number, value in enumerate(samples))
    return above / sum((number - middle) ** 2 for number in range(count))


@pytest.mark.timeout(1200)  # a minute on an idle machine
def test_nothing_grows_from_audit_to_audit(daemon: RunningDaemon, request: pytest.FixtureRequest) -> None:
    """Back to back, 2,000 of them; $AGENT_SOAK_AUDITS asks for more or fewer."""
    audits = int(os.environ.get("AGENT_SOAK_AUDITS", "2000"))
    daemon.configure("[audit]\ninterval_seconds = 3600")  # no audit but those asked for here
    daemon.start()
    daemon.next_report()
    assert daemon.process is not None
    pid = daemon.process.pid
    rss_kib: list[int] = []
    descriptors = set()
    counts = set()
    for number in range(audits):
        daemon.hear_until("STATUS=")
        if number >= audits // 2:
            rss_kib.append(read_status(pid, "VmRSS"))
            descriptors.add(count_descriptors(pid))
            counts.add((read_status(pid, "Threads"), count_children(pid)))
        daemon.signal(signal.SIGUSR1)
        daemon.next_report()
    growth = slope_kib(rss_kib)
    request.node.user_properties.append(("audits", audits))
    request.node.user_properties.append(("rss_kib", rss_kib[-1]))
    request.node.user_properties.append(("rss_growth_kib_per_audit", round(growth, 3)))
    # one more while the notify socket that just spoke to us is open
    assert max(descriptors) - min(descriptors) <= 1
    assert counts == {(3, 0)}, "worker, signals and schedule; no children"
    print(request.node.user_properties)  # noqa: T201 - the figures, for `pytest -rP`
    assert growth < 2.0, f"{growth:.2f} KiB more with each audit: {rss_kib}"
    assert rss_kib[-1] < 48 * 1024
