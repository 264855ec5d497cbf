"""LVM in an unkillable sleep, with the real runner and reader under the real worker."""

import os
import signal
from pathlib import Path
from uuid import uuid4

import pytest
from daemonfakes import HOST, FakeClock, FakeDelivery, FakeInbox, FakeNotifier, FakeSource, make_plan
from fakelvm import FakeLvm

from agent.audit import Auditor
from agent.core.models import Reading
from agent.core.report import AuditVerdict
from agent.daemon.mailbox import AUDIT_FOR_SCHEDULE, AUDIT_FOR_SIGNAL, Stop
from agent.daemon.worker import Worker
from agent.host.child import Child, Command, start
from agent.host.lvm import LvmReader
from agent.host.process import Runner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="reading LVM needs root")


class Unkillable:
    """A child in uninterruptible sleep: signals do nothing and it does not end, until it is released."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.signals: list[signal.Signals] = []
        self.is_released = False
        self._read_ends, self._write_ends = zip(*(os.pipe() for _ in range(3)), strict=True)
        self.report_fd, self.messages_fd, self.exit_fd = self._read_ends

    def reap(self) -> int | None:
        return -signal.SIGKILL if self.is_released else None

    def signal_group(self, number: signal.Signals) -> None:
        self.signals.append(number)

    def close(self) -> None:
        for descriptor in (*self._read_ends, *self._write_ends):
            os.close(descriptor)


def test_the_daemon_lives_with_an_lvm_that_can_not_be_killed(tmp_path: Path) -> None:
    clock = FakeClock()
    inbox = FakeInbox(clock)
    lvm = FakeLvm(tmp_path)
    lvm.serve("bug-healthy")
    delivery, notifier = FakeDelivery(clock), FakeNotifier(clock, watchdog_seconds=60.0)
    stuck: list[Unkillable] = []
    started: list[float] = []

    def start_stuck_in_the_second_minute(command: Command) -> Child:
        started.append(clock.seconds)
        if 60 <= clock.seconds < 120:
            stuck.append(Unkillable(4242 + len(stuck)))
            return stuck[-1]
        return start(command)

    def release() -> None:
        for child in stuck:
            child.is_released = clock.seconds > 200

    with Runner(
        start=start_stuck_in_the_second_minute,
        term_grace_seconds=0.01,
        kill_grace_seconds=0.01,
        now=clock.now,
    ) as runner:
        reader = LvmReader(runner, lvm.directory, 5.0)
        impatient = LvmReader(runner, lvm.directory, 0.05)

        class Reader:
            """Only the audit that gets stuck has a short deadline: a slow machine must not fail the others."""

            def read(self, volume_group: str) -> Reading:
                release()
                return (impatient if 60 <= clock.seconds < 120 else reader).read(volume_group)

        auditor = Auditor(
            reader=Reader(),
            inventory=None,
            layers=None,
            host=lambda: HOST,
            clock=clock,
            new_id=uuid4,
            boot_id=None,
            grace_seconds=600,
        )
        plan = make_plan(auditor, delivery, watcher=FakeSource())
        for second in (60.0, 120.0, 180.0, 240.0):
            inbox.at(second, AUDIT_FOR_SCHEDULE)
        inbox.at(150.0, AUDIT_FOR_SIGNAL)
        inbox.at(250.0, Stop(reason="SIGTERM"))
        Worker(load=lambda _: plan, inbox=inbox, clock=clock, notifier=notifier).run()

    good, timed_out, *blocked, recovered = delivery.documents
    assert good.verdict is AuditVerdict.CLEAN
    assert timed_out.findings[0].kind == "lvm_timeout"
    assert [document.findings[0].kind for document in blocked] == ["lvm_stuck"] * 3
    assert "4242" in blocked[0].findings[0].message
    assert "since 2026-12-01T12:01:00" in blocked[0].findings[0].message
    for document in (timed_out, *blocked):
        assert (document.verdict, document.stale) == (AuditVerdict.UNKNOWN, True)
        assert (document.as_of, document.volume_group) == (good.as_of, good.volume_group)
    assert (recovered.verdict, recovered.stale) == (AuditVerdict.CLEAN, False)
    assert all(child.signals == [signal.SIGTERM, signal.SIGKILL] for child in stuck)
    # vgs, lvs and, for the other reader, lvm version; then none until they have ended
    assert [second for second in started if 60 <= second < 240] == [60.0] * 3
    assert len([second for second in started if second >= 240]) == 2
    assert notifier.beats == pytest.approx([0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 180.0, 210.0, 240.0])
