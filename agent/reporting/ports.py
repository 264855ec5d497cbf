"""What the reporting policy needs from the outside, as Protocols.

Not here: the policy (`reporter`, `deliverer`) and the parts behind the ports.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from agent.core.delivery.errors import OutboxDamaged
from agent.core.delivery.queue import Answer, Appended, Backlog, QueuedReport, QueueState
from agent.core.delivery.retry import Moment
from agent.core.models import Finding
from agent.core.report import AuditDocument


class OutboxPort(Protocol):
    """Where reports wait (`agent.outbox.store.Outbox`).  Each method raises OutboxError when it can't."""

    def append(self, document: AuditDocument, read_at: Moment) -> Appended:
        """Store a report."""
        ...

    def take_head(self) -> QueuedReport | None:
        """The oldest that waits, marked as tried."""
        ...

    def remove(self, sequence: int, state: QueueState) -> None:
        """Forget a delivered one, and remember `state`."""
        ...

    def set_aside(self, sequence: int, reason: str, at: datetime, state: QueueState) -> None:
        """Take a refused one out of the queue, and remember `state`."""
        ...

    def find_fate(self, audit_id: UUID) -> str | None:
        """`core.delivery.queue.WAITING`, the reason why it was set aside, or None when it is not here."""
        ...

    def load_state(self) -> QueueState:
        """What was remembered last."""
        ...

    def save_state(self, state: QueueState) -> None:
        """Remember."""
        ...

    def describe(self) -> Backlog:
        """What is in it."""
        ...


class OutboxKeeperPort(Protocol):
    """Keeps the outbox open, and replaces a damaged one (`agent.outbox.keeper.OutboxKeeper`)."""

    def current(self) -> OutboxPort:
        """The outbox, opened when need be.  Raises OutboxError."""
        ...

    def replace(self, error: OutboxDamaged) -> None:
        """Set the damaged file aside and begin a new one.  Raises OutboxError."""
        ...

    def take_findings(self) -> tuple[Finding, ...]:
        """What happened to the file since this was asked last."""
        ...

    def try_delivery_lock(self) -> AbstractContextManager[bool]:
        """The right to deliver, if nobody has it.  Raises OutboxError."""
        ...


class Sender(Protocol):
    """Delivers one report (`agent.inventory.reports.ReportSender`)."""

    def send(self, report: QueuedReport, *, age_seconds: float, budget_seconds: float) -> Answer:
        """Try once; never raises."""
        ...


class Clock(Protocol):
    """The time, replaced in tests (`agent.host.clock.HostClock`)."""

    def moment(self) -> Moment:
        """Now, on the wall clock and the boot clock."""
        ...

    def monotonic_seconds(self) -> float:
        """For budgets."""
        ...


ONCE_BUDGET_SECONDS: Final = 10.0
"""How long `audit --once` delivers at most."""

UnitRandom = Callable[[], float]
"""A number from 0 to 1, for the jitter."""
