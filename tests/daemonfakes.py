"""A daemon's surroundings on a clock that moves only when somebody waits."""

import heapq
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

from agent.core import judge
from agent.core.errors import InventoryError, LvmError
from agent.core.models import Reading, RecordedSizes
from agent.core.report import AuditDocument, HostSection, Trigger
from agent.daemon.agenda import Pace
from agent.daemon.mailbox import AUDIT_FOR_UDEV, Message, Stop
from agent.daemon.ports import Auditor, Delivery, Plan, Source, Watcher

_BEGIN = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
HOST = HostSection(hostname="controller-0", boot_time=None, agent_version="1", lvm_version="2.03.16(2)")


class FakeClock:
    """Seconds since the begin of the test."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return _BEGIN + timedelta(seconds=self.seconds)

    def monotonic_seconds(self) -> float:
        return self.seconds


class FakeInbox:
    """A mailbox with a timetable: waiting moves the clock to the next message, or to the timeout."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._number = count()
        self._timetable: list[tuple[float, int, Message]] = []

    def at(self, seconds: float, message: Message) -> None:
        heapq.heappush(self._timetable, (seconds, next(self._number), message))

    def post(self, message: Message) -> None:
        self.at(self._clock.seconds, message)

    def receive(self, timeout_seconds: float) -> Message | None:
        until = self._clock.seconds + timeout_seconds
        if self._timetable and self._timetable[0][0] <= until:
            seconds, _, message = heapq.heappop(self._timetable)
            self._clock.seconds = max(self._clock.seconds, seconds)
            return message
        assert timeout_seconds or self._timetable, "waits for nothing, for ever"
        self._clock.seconds = until
        return None


class FakeAuditor:
    """Audits take `seconds` of the fake clock; `during` happens in the middle of each."""

    def __init__(self, clock: FakeClock, inbox: FakeInbox) -> None:
        self._clock = clock
        self._inbox = inbox
        self.seconds = 0.1
        self.reading: Reading | LvmError | Exception = LvmError(subject="cgts-vg", detail="not set")
        self.recorded: RecordedSizes | InventoryError | None = None
        self.during: Callable[[], None] = lambda: None
        self.audits: list[tuple[float, Trigger]] = []
        self.volume_groups: list[Sequence[str]] = []
        self.is_running = False

    def audit(self, volume_groups: Sequence[str], trigger: Trigger) -> tuple[AuditDocument, ...]:
        assert not self.is_running, "two audits at once"
        self.is_running = True
        self.audits.append((round(self._clock.seconds, 3), trigger))
        self.volume_groups.append(volume_groups)
        started_at = self._clock.now()
        self.during()
        self._clock.seconds += self.seconds
        self.is_running = False
        if not isinstance(self.reading, Reading | LvmError):
            raise self.reading
        return tuple(
            judge.judge(name, self.reading, self.recorded, grace_seconds=600).document(
                audit_id=UUID(int=len(self.audits)),
                trigger=trigger,
                started_at=started_at,
                duration_seconds=self.seconds,
                boot_id=None,
                host=HOST,
            )
            for name in volume_groups
        )

    def storm(self, begin: float, seconds: float, events: int) -> None:
        """Let that many events arrive, evenly spread."""
        for number in range(events):
            self._inbox.at(begin + seconds * number / events, AUDIT_FOR_UDEV)

    def stop_at(self, seconds: float) -> None:
        self._inbox.at(seconds, Stop(reason="SIGTERM"))


class FakeDelivery:
    """Remembers what it took."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.documents: list[AuditDocument] = []
        self.due_at: list[float] = []
        self.tries: list[float] = []

    def take(self, documents: tuple[AuditDocument, ...]) -> tuple[AuditDocument, ...]:
        self.documents += documents
        return documents

    def deliver_waiting(self) -> None:
        self.tries.append(round(self._clock.seconds, 3))

    def seconds_until_next_try(self) -> float | None:
        """The times in `due_at`, one for each try; the last one stays."""
        if not self.due_at:
            return None
        return max(0.0, self.due_at[min(len(self.tries), len(self.due_at) - 1)] - self._clock.seconds)


class FakeSource:
    """A schedule or watcher that does nothing but remember whether it runs."""

    def __init__(self) -> None:
        self.starts = 0
        self.is_running = False
        self.is_well = True

    def start(self) -> None:
        assert not self.is_running
        self.starts += 1
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False

    def is_healthy(self) -> bool:
        return self.is_running and self.is_well


class FakeNotifier:
    """Remembers what was said to the service manager, each with its time."""

    def __init__(self, clock: FakeClock, watchdog_seconds: float | None = None) -> None:
        self._clock = clock
        self.watchdog_seconds = watchdog_seconds
        self.said: list[str] = []
        self.beats: list[float] = []

    def ready(self) -> None:
        self.said.append("READY")

    def reloading(self) -> None:
        self.said.append("RELOADING")

    def stopping(self) -> None:
        self.said.append("STOPPING")

    def alive(self) -> None:
        self.beats.append(self._clock.seconds)

    def status(self, line: str) -> None:
        self.said.append(line)


def make_plan(
    auditor: Auditor,
    delivery: Delivery,
    *,
    schedule: Source | None = None,
    watcher: Watcher | None = None,
    pace: Pace | None = None,
    overdue_seconds: float = 150.0,
    close: Callable[[], None] = lambda: None,
) -> Plan:
    """A plan of one volume group."""
    return Plan(
        volume_groups=("cgts-vg",),
        auditor=auditor,
        delivery=delivery,
        schedule=schedule or FakeSource(),
        watcher=watcher,
        pace=pace or Pace(),
        overdue_seconds=overdue_seconds,
        close=close,
    )
