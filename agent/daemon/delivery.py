"""What the daemon does with finished documents: reports them, if that is wanted, and publishes its state.

Not here: the queue of reports (`agent.reporting`), the state file (`agent.state.file`).
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from agent.core.delivery.errors import OutboxError
from agent.core.delivery.status import DeliveryStatus
from agent.core.report import AuditDocument

Documents = tuple[AuditDocument, ...]


class Queue(Protocol):
    """Reports that wait (`agent.reporting`).  Each method but `report` raises OutboxError when it can't."""

    def report(self, documents: Documents) -> Documents:
        """Store them and deliver what waits; the findings say what became of it."""
        ...

    def deliver(self) -> None:
        """Deliver what waits, for a short while."""
        ...

    def seconds_until_next_try(self) -> float | None:
        """When there is something to deliver; None = nothing waits."""
        ...

    def describe(self) -> DeliveryStatus:
        """The queue as `agent status` shows it."""
        ...


class DaemonDelivery:
    """`queue` None = no reports.  `publish` writes the state file, or raises OutboxError."""

    def __init__(
        self, *, queue: Queue | None, publish: Callable[[Documents, DeliveryStatus | None], None]
    ) -> None:
        self._queue = queue
        self._publish = publish
        self._told: dict[str, str] = {}
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agent")

    def take(self, documents: Documents) -> Documents:
        """Report and publish them; returns them with what became of that."""
        if self._queue is not None:
            documents = self._queue.report(documents)
        try:
            self._publish(documents, self._describe())
        except OutboxError as error:
            self._tell_once("state.write.failed", error)
        else:
            self._told.pop("state.write.failed", None)
        return documents

    def deliver_waiting(self) -> None:
        """Try again what could not be delivered, for a short while."""
        if self._queue is None:
            return
        try:
            self._queue.deliver()
        except OutboxError as error:
            self._tell_once("outbox.deliver.failed", error)
        else:
            self._told.pop("outbox.deliver.failed", None)

    def seconds_until_next_try(self) -> float | None:
        """When there is something to deliver; None = nothing, or nobody can say."""
        if self._queue is None:
            return None
        try:
            return self._queue.seconds_until_next_try()
        except OutboxError:  # the next audit's findings say it
            return None

    def _describe(self) -> DeliveryStatus | None:
        if self._queue is None:
            return None
        try:
            return self._queue.describe()
        except OutboxError:  # as above
            return None

    def _tell_once(self, event: str, error: OutboxError) -> None:
        """A disk that stays full is one line, not one for each audit."""
        if self._told.get(event) != str(error):
            self._log.error(event, error=str(error))
        self._told[event] = str(error)
