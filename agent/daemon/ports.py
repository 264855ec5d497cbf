"""What the worker needs from others, as it sees them.

Not here: any of them.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from agent.core.report import AuditDocument, Trigger
from agent.daemon.agenda import Pace
from agent.daemon.mailbox import Message


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """A clock that never jumps."""
        ...


class Inbox(Protocol):
    """Where messages arrive."""

    def post(self, message: Message) -> None:
        """Leave a message; never waits."""
        ...

    def receive(self, timeout_seconds: float) -> Message | None:
        """The next message; None = none came in time."""
        ...


class Auditor(Protocol):
    """Runs one audit."""

    def audit(self, volume_groups: Sequence[str], trigger: Trigger) -> tuple[AuditDocument, ...]:
        """Audit each volume group."""
        ...


class Delivery(Protocol):
    """Takes finished documents away."""

    def take(self, documents: tuple[AuditDocument, ...]) -> tuple[AuditDocument, ...]:
        """Report and publish them; returns them with what became of that.  Never raises for the world."""
        ...

    def deliver_waiting(self) -> None:
        """Try again what could not be delivered, for a short while.  Never raises for the world."""
        ...

    def seconds_until_next_try(self) -> float | None:
        """When `deliver_waiting` has something to do; None = not at all."""
        ...


class Source(Protocol):
    """Something that posts messages on its own: the schedule, the watcher."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End, and wait for its thread."""
        ...


class Watcher(Source, Protocol):
    """A source that can fall silent without anybody noticing."""

    def is_healthy(self) -> bool:
        """Whether it would still tell us."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one configuration amounts to."""

    volume_groups: tuple[str, ...]
    auditor: Auditor
    delivery: Delivery
    schedule: Source
    watcher: Watcher | None
    """None = udev is not to be watched."""
    pace: Pace
    overdue_seconds: float
    """After so long without an audit the schedule itself must have failed."""
    close: Callable[[], None]
    """Gives back what its parts hold, once they are stopped."""

    def start(self) -> None:
        """Start its sources."""
        self.schedule.start()
        if self.watcher is not None:
            self.watcher.start()

    def end(self) -> None:
        """Stop its sources and close it."""
        self.schedule.stop()
        if self.watcher is not None:
            self.watcher.stop()
        self.close()


class Notifier(Protocol):
    """The service manager."""

    @property
    def watchdog_seconds(self) -> float | None:
        """We are ended when silent for so long; None = nobody watches."""
        ...

    def ready(self) -> None:
        """Start-up or reload is through."""
        ...

    def reloading(self) -> None:
        """A reload begins."""
        ...

    def stopping(self) -> None:
        """The end begins."""
        ...

    def alive(self) -> None:
        """We make progress."""
        ...

    def status(self, line: str) -> None:
        """How we are, in one line."""
        ...
