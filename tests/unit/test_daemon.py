"""The worker on a fake clock: what it audits when, what it says, and that it outlives everything."""

import errno
from collections.abc import Callable

import msgspec
import pytest
from builders import make_bug_vg, record, recorded
from daemonfakes import (
    FakeAuditor,
    FakeClock,
    FakeDelivery,
    FakeInbox,
    FakeNotifier,
    FakeSource,
    make_plan,
)
from structlog.testing import capture_logs
from structlog.typing import EventDict

from agent.core.errors import ConfigError, InventoryError, LvmAborted, LvmStuck
from agent.core.models import Finding, Reading, Severity
from agent.core.report import AuditVerdict, FilesystemVerdict, Trigger
from agent.daemon.mailbox import AUDIT_FOR_SCHEDULE, AUDIT_FOR_SIGNAL, AUDIT_FOR_UDEV, Reload, Request
from agent.daemon.ports import Plan
from agent.daemon.worker import Worker

STUCK = LvmStuck(subject="cgts-vg", pid=4711, since="2026-12-01T12:00:30+00:00")


class Stage:
    """A worker with everything around it faked."""

    def __init__(self, watchdog_seconds: float | None = None) -> None:
        self.clock = FakeClock()
        self.inbox = FakeInbox(self.clock)
        self.auditor = FakeAuditor(self.clock, self.inbox)
        self.auditor.reading = Reading(volume_group=make_bug_vg())
        self.delivery = FakeDelivery(self.clock)
        self.notifier = FakeNotifier(self.clock, watchdog_seconds)
        self.schedule = FakeSource()
        self.watcher = FakeSource()
        self.closed: list[str] = []
        self.plans: list[Plan | Exception] = [self.plan()]
        self.beat: Callable[[], None] = lambda: None

    def plan(self, name: str = "first") -> Plan:
        return make_plan(
            self.auditor,
            self.delivery,
            schedule=self.schedule,
            watcher=self.watcher,
            close=lambda: self.closed.append(name),
        )

    def load(self, beat: Callable[[], None]) -> Plan:
        self.beat = beat
        plan = self.plans.pop(0)
        if isinstance(plan, Exception):
            raise plan
        return plan

    def run(self, seconds: float) -> list[EventDict]:
        """Run until then; returns what was logged."""
        self.auditor.stop_at(seconds)
        with capture_logs() as logs:
            worker = Worker(load=self.load, inbox=self.inbox, clock=self.clock, notifier=self.notifier)
            assert worker.run() == "SIGTERM"
        return logs


@pytest.fixture
def stage() -> Stage:
    return Stage()


def events(logs: list[EventDict], *names: str) -> list[EventDict]:
    return [line for line in logs if line["event"] in names]


def test_the_first_audit_comes_at_once(stage: Stage) -> None:
    stage.run(1.0)
    assert stage.auditor.audits == [(0.0, Trigger.STARTUP)]
    assert [document.trigger for document in stage.delivery.documents] == [Trigger.STARTUP]


def test_ready_is_said_with_both_sources_running_and_before_the_first_audit(stage: Stage) -> None:
    seen = []
    stage.auditor.during = lambda: seen.append((list(stage.notifier.said), stage.schedule.is_running))
    stage.run(1.0)
    assert seen == [(["READY"], True)]
    assert stage.watcher.starts == 1
    assert stage.notifier.said[-1] == "STOPPING"
    assert not stage.watcher.is_running
    assert not stage.schedule.is_running
    assert stage.closed == ["first"]


def test_a_storm_of_ten_thousand_events_in_a_second_is_one_audit(stage: Stage) -> None:
    stage.auditor.storm(10.0, 1.0, 10_000)
    stage.run(20.0)
    assert stage.auditor.audits[1:] == [(11.2, Trigger.UDEV)]


def test_an_endless_storm_is_audited_every_two_seconds_or_so(stage: Stage) -> None:
    stage.auditor.storm(10.0, 10.0, 10_000)
    stage.run(30.0)
    audits = [at for at, _ in stage.auditor.audits[1:]]
    assert audits[0] == 12.0
    assert 3 <= len(audits) <= 6


def test_any_number_of_events_during_an_audit_makes_one_more(stage: Stage) -> None:
    stage.auditor.seconds = 3.0
    stage.auditor.storm(0.5, 2.0, 500)
    stage.run(30.0)
    # the audit ends at 3.0; its events are settled by 3.2, the pause after an audit ends at 3.5
    assert stage.auditor.audits == [(0.0, Trigger.STARTUP), (3.5, Trigger.UDEV)]


def test_audits_that_cause_events_make_no_loop(stage: Stage) -> None:
    stage.auditor.during = lambda: stage.inbox.post(AUDIT_FOR_UDEV)
    for second in range(60, 600, 60):
        stage.inbox.at(second, AUDIT_FOR_SCHEDULE)
    stage.run(600.0)
    assert len(stage.auditor.audits) < 80


def test_a_change_hidden_among_the_events_of_an_audit_is_seen_soon(stage: Stage) -> None:
    stage.auditor.during = lambda: stage.inbox.post(AUDIT_FOR_UDEV)

    def extend() -> None:
        stage.auditor.reading = Reading(
            volume_group=msgspec.structs.replace(make_bug_vg(docker_lv=1280), seqno=8)
        )

    quiet: list[float] = []

    def change_in_the_fourth() -> None:
        quiet.append(stage.clock.seconds)
        stage.inbox.post(AUDIT_FOR_UDEV)
        if len(quiet) == 4:
            extend()

    stage.auditor.during = change_in_the_fourth
    stage.run(10.0)
    assert quiet[4] - quiet[3] < 2.5


def test_the_schedule_and_signals_audit_at_once(stage: Stage) -> None:
    stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)
    stage.inbox.at(61.0, AUDIT_FOR_SIGNAL)
    stage.run(70.0)
    assert stage.auditor.audits[1:] == [(60.0, Trigger.SCHEDULE), (61.0, Trigger.SIGNAL)]


def test_a_schedule_that_failed_is_started_again(stage: Stage) -> None:
    # As after the wall clock was set back by an hour: nobody asks for anything.
    logs = stage.run(400.0)
    assert stage.auditor.audits[1:] == [(150.0, Trigger.SCHEDULE), (300.0, Trigger.SCHEDULE)]
    assert stage.schedule.starts == 3
    assert len(events(logs, "schedule.restarted")) == 2


def test_a_reopened_monitor_is_said_in_the_next_documents_and_in_no_other(stage: Stage) -> None:
    finding = Finding(kind="udev_monitor_reopened", severity=Severity.WARNING, subject="udev", message="m")
    stage.inbox.at(10.0, Request(trigger=Trigger.UDEV, findings=(finding,)))
    stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)
    stage.run(70.0)
    kinds = [[found.kind for found in document.findings] for document in stage.delivery.documents]
    assert ["udev_monitor_reopened" in row for row in kinds] == [False, True, False]


def test_a_bug_in_an_audit_ends_nothing(stage: Stage) -> None:
    good = stage.auditor.reading
    stage.auditor.reading = ZeroDivisionError("a bug")

    def mend() -> None:
        if len(stage.auditor.audits) == 2:
            stage.auditor.reading = good

    stage.auditor.during = mend
    stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)
    logs = stage.run(70.0)
    assert [line["event"] for line in events(logs, "audit.crashed", "audit.finished")] == [
        "audit.crashed",
        "audit.finished",
    ]
    assert events(logs, "audit.crashed")[0]["exc_info"]
    assert len(stage.delivery.documents) == 1


class TestWatchdog:
    """A limit of 60 s: fed every 30 s, if all is well."""

    @pytest.fixture
    def stage(self) -> Stage:
        return Stage(watchdog_seconds=60.0)

    def test_it_is_fed_at_half_its_limit(self, stage: Stage) -> None:
        stage.run(100.0)
        assert stage.notifier.beats == pytest.approx([0.0, 30.0, 60.0, 90.0])

    def test_a_limit_that_nobody_could_meet_does_not_make_it_spin(self) -> None:
        stage = Stage(watchdog_seconds=1e-6)
        stage.run(1.0)
        assert len(stage.notifier.beats) <= 21

    def test_a_dead_watcher_starves_it(self, stage: Stage) -> None:
        stage.inbox.at(40.0, AUDIT_FOR_SIGNAL)
        stage.auditor.during = lambda: setattr(stage.watcher, "is_well", stage.clock.seconds < 40.0)
        logs = stage.run(200.0)
        assert stage.notifier.beats == pytest.approx([0.0, 30.0])
        assert len(events(logs, "watchdog.starved")) == 1

    def test_a_hanging_audit_starves_it(self, stage: Stage) -> None:
        stage.auditor.seconds = 1000.0
        stage.run(10.0)
        assert stage.notifier.beats == [0.0, 1000.0]

    def test_an_audit_that_gets_on_feeds_it(self, stage: Stage) -> None:
        def read_ten_slow_groups() -> None:
            for _ in range(10):
                stage.clock.seconds += 35.0
                stage.beat()

        stage.auditor.during = read_ten_slow_groups
        stage.run(10.0)
        assert stage.notifier.beats[:4] == [0.0, 35.0, 70.0, 105.0]

    def test_no_watcher_is_needed_where_none_is_wanted(self, stage: Stage) -> None:
        stage.plans = [msgspec.structs.replace(stage.plan(), watcher=None)]
        stage.run(100.0)
        assert len(stage.notifier.beats) == 4

    def test_nobody_is_told_when_nobody_watches(self) -> None:
        stage = Stage(watchdog_seconds=None)
        stage.run(100.0)
        assert stage.notifier.beats == []


class TestReload:
    """SIGHUP."""

    def test_a_good_configuration_replaces_everything_and_is_audited(self, stage: Stage) -> None:
        stage.plans.append(msgspec.structs.replace(stage.plan("second"), volume_groups=("nova-vg",)))
        stage.inbox.at(10.0, Reload())
        logs = stage.run(20.0)
        assert stage.auditor.volume_groups == [("cgts-vg",), ("nova-vg",)]
        assert stage.delivery.documents[1].trigger is Trigger.SIGNAL
        assert stage.closed == ["first", "second"]
        assert stage.schedule.starts == stage.watcher.starts == 2
        assert stage.notifier.said[2:4] == ["RELOADING", "READY"]
        assert len(events(logs, "config.reloaded")) == 1

    def test_any_number_of_wishes_at_once_is_one_reload(self, stage: Stage) -> None:
        stage.plans.append(stage.plan("second"))
        for _ in range(500):
            stage.inbox.at(10.0, Reload())
        stage.run(20.0)
        assert stage.closed == ["first", "second"]
        assert stage.notifier.said.count("RELOADING") == 1

    def test_a_host_without_descriptors_keeps_the_old_one(self, stage: Stage) -> None:
        stage.plans.append(OSError(errno.EMFILE, "Too many open files"))
        stage.inbox.at(10.0, Reload())
        stage.inbox.at(15.0, AUDIT_FOR_SIGNAL)
        logs = stage.run(20.0)
        assert [at for at, _ in stage.auditor.audits] == [0.0, 15.0]
        assert "Too many open files" in events(logs, "config.reload.failed")[0]["error"]

    def test_a_bad_one_changes_nothing_and_is_loud(self, stage: Stage) -> None:
        stage.plans.append(ConfigError(subject="/etc/agent.toml", problems=("audit.x: unknown key", "y")))
        stage.inbox.at(10.0, Reload())
        stage.inbox.at(15.0, AUDIT_FOR_SIGNAL)
        logs = stage.run(20.0)
        assert [at for at, _ in stage.auditor.audits] == [0.0, 15.0]
        assert stage.schedule.starts == 1
        assert stage.closed == ["first"]
        failed = events(logs, "config.reload.failed")
        assert [line["log_level"] for line in failed] == ["error"]
        assert failed[0]["problems"] == ["audit.x: unknown key", "y"]
        assert stage.notifier.said.count("READY") == 2

    def test_a_bad_one_at_the_start_is_an_error(self, stage: Stage) -> None:
        stage.plans = [ConfigError(subject="/etc/agent.toml", problems=("y",))]
        with pytest.raises(ConfigError):
            stage.run(1.0)
        assert stage.notifier.said == []


class TestStale:
    """LVM can't be read any more."""

    def test_the_last_good_state_goes_out_marked_as_such(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 40))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)
        stage.inbox.at(120.0, AUDIT_FOR_SCHEDULE)
        good = stage.auditor.reading
        stage.auditor.during = lambda: setattr(
            stage.auditor, "reading", STUCK if 50 < stage.clock.seconds < 100 else good
        )
        logs = stage.run(130.0)
        first, stale, recovered = stage.delivery.documents
        assert (stale.stale, stale.verdict, stale.as_of) == (True, AuditVerdict.UNKNOWN, first.started_at)
        assert stale.volume_group == first.volume_group
        assert stale.logical_volumes == first.logical_volumes
        assert [(row.verdict, row.actual_bytes) for row in stale.filesystems or ()] == [
            (FilesystemVerdict.UNKNOWN, None)
        ]
        assert stale.capacity is None
        assert stale.findings[0].kind == "lvm_stuck"
        assert "2026-12-01T12:00:30" in stale.findings[0].message
        assert (recovered.stale, recovered.verdict) == (False, AuditVerdict.DRIFT)
        changes = events(logs, "drift.detected", "drift.resolved", "finding.appeared", "finding.cleared")
        assert [(line["event"], line.get("kind")) for line in changes] == [
            ("drift.detected", "undersized"),
            ("finding.appeared", "lvm_stuck"),
            ("finding.cleared", "lvm_stuck"),
        ]

    def test_without_a_good_state_there_is_nothing_to_show(self, stage: Stage) -> None:
        stage.auditor.reading = STUCK
        stage.run(1.0)
        (document,) = stage.delivery.documents
        assert (document.stale, document.volume_group, document.as_of) == (False, None, None)

    def test_records_that_can_not_be_fetched_either_leave_the_last_rows_unknown(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 30))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)

        def fail() -> None:
            if stage.clock.seconds > 50:
                stage.auditor.reading = STUCK
                stage.auditor.recorded = InventoryError(subject="http://x", reason="no route")

        stage.auditor.during = fail
        stage.run(70.0)
        stale = stage.delivery.documents[1]
        assert stale.stale
        assert [(row.name, row.verdict) for row in stale.filesystems or ()] == [
            ("docker", FilesystemVerdict.UNKNOWN)
        ]
        assert {finding.kind for finding in stale.findings} >= {"lvm_stuck", "inventory_unavailable"}

    def test_the_watchdog_is_fed_all_the_same(self) -> None:
        stage = Stage(watchdog_seconds=60.0)
        stage.auditor.reading = STUCK
        for second in range(60, 600, 60):
            stage.inbox.at(second, AUDIT_FOR_SCHEDULE)
        stage.run(600.0)
        assert len(stage.notifier.beats) == 20

    def test_an_audit_that_the_end_cut_short_is_not_delivered(self, stage: Stage) -> None:
        stage.auditor.reading = LvmAborted(subject="cgts-vg")
        stage.run(1.0)
        assert stage.delivery.documents == []


class TestNews:
    """Drift is told when it begins and when it ends."""

    def test_a_clean_audit_is_one_line(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 30))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)
        logs = [line for line in stage.run(70.0) if line["log_level"] != "debug"]
        assert [line["event"] for line in logs] == ["service.ready", "audit.finished", "audit.finished"]
        assert (logs[1]["drift_count"], logs[1]["free_extents"], logs[1]["verdict"]) == (0, 517, "clean")

    def test_drift_that_stays_is_only_counted(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 40))
        for second in (60.0, 120.0, 180.0):
            stage.inbox.at(second, AUDIT_FOR_SCHEDULE)

        def extend() -> None:
            if stage.clock.seconds > 150:
                stage.auditor.reading = Reading(volume_group=make_bug_vg(docker_lv=1280))

        stage.auditor.during = extend
        logs = stage.run(190.0)
        told = [line["event"] for line in events(logs, "drift.detected", "drift.resolved", "audit.finished")]
        assert told == [
            "drift.detected",
            "audit.finished",
            "audit.finished",
            "audit.finished",
            "drift.resolved",
            "audit.finished",
        ]
        assert [line["drift_count"] for line in events(logs, "audit.finished")] == [1, 1, 1, 0]
        detected = events(logs, "drift.detected")[0]
        assert (detected["lv"], detected["kind"], detected["delta_bytes"]) == (
            "docker-lv",
            "undersized",
            -(10 * 2**30),
        )
        assert detected["log_level"] == "warning"

    def test_another_kind_of_drift_is_news(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 40))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)

        def remove() -> None:
            if stage.clock.seconds > 50:
                stage.auditor.reading = Reading(volume_group=make_bug_vg(docker_lv=0))

        stage.auditor.during = remove
        kinds = [line["kind"] for line in events(stage.run(70.0), "drift.detected")]
        assert kinds == ["undersized", "missing"]

    def test_a_record_that_is_gone_resolves_its_drift(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 40), record("log", 8))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)

        def drop() -> None:
            if stage.clock.seconds > 50:
                stage.auditor.recorded = recorded(record("etcd", 5))

        stage.auditor.during = drop
        resolved = [line["filesystem"] for line in events(stage.run(70.0), "drift.resolved")]
        assert resolved == ["docker", "log"]

    def test_records_that_can_not_be_fetched_resolve_nothing(self, stage: Stage) -> None:
        stage.auditor.recorded = recorded(record("docker", 40))
        stage.inbox.at(60.0, AUDIT_FOR_SCHEDULE)

        def fail() -> None:
            if stage.clock.seconds > 50:
                stage.auditor.recorded = InventoryError(subject="http://x", reason="no route")

        stage.auditor.during = fail
        logs = stage.run(70.0)
        assert events(logs, "drift.resolved") == []
        assert stage.delivery.documents[1].volume_group is not None
        assert events(logs, "audit.finished")[1]["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("docker_gib", "line"),
    [
        (30, "cgts-vg: clean (12 LVs, 517 extents free) at 2026-12-01T12:00:00Z (first audit)"),
        (40, "cgts-vg: drift (docker undersized) at 2026-12-01T12:00:00Z (first audit)"),
        (80, "cgts-vg: does not fit (docker undersized) at 2026-12-01T12:00:00Z (first audit)"),
    ],
)
def test_the_status_is_the_last_verdict(stage: Stage, docker_gib: int, line: str) -> None:
    stage.auditor.recorded = recorded(record("docker", docker_gib))
    stage.run(1.0)
    assert stage.notifier.said[1] == line


def test_the_status_says_why_nothing_is_known(stage: Stage) -> None:
    stage.auditor.reading = STUCK
    stage.run(1.0)
    assert stage.notifier.said[1].startswith("cgts-vg: unknown (cgts-vg: an earlier LVM process (4711)")


def test_waiting_reports_are_tried_when_they_are_due(stage: Stage) -> None:
    stage.delivery.due_at = [5.0, 7.0, 19.0, 1000.0]
    stage.run(30.0)
    assert stage.delivery.tries == [5.0, 7.0, 19.0]


def test_a_queue_that_is_always_due_does_not_make_it_spin(stage: Stage) -> None:
    stage.delivery.due_at = [0.0]
    stage.run(1.0)
    assert 5 <= len(stage.delivery.tries) <= 10
