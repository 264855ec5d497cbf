"""Values that travel between the outbox, the sender and the policy that ties them (`agent.reporting`).

Not here: doing anything with them.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from agent.core.delivery.retry import Moment, Wait
from agent.core.report import AuditDocument

WAITING: Final = "waiting"
"""The fate of a report that is still to be delivered."""


class QueuedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report as it will be sent, this time and every other time."""

    sequence: int | None
    """Its place in the queue; None = it could not be stored and is sent directly."""
    audit_id: UUID
    """The Idempotency-Key."""
    hostname: str
    """The host it was made on: the configured name may have changed since."""
    volume_group_name: str
    body: bytes
    read_at: Moment
    """When LVM was read."""


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one document in the outbox."""

    document: AuditDocument
    """With outbox id, sequence and repeats when it was stored; unchanged when it was not."""
    is_stored: bool
    """False only when the outbox is full of state changes and this document is none."""
    excess_bytes: int = 0
    """How far the outbox is above its limit, because a state change is never dropped."""
    dropped_count: int = 0
    """Older reports that told nothing new and had to make room."""


class Outcome(StrEnum):
    """What one try to deliver a report came to."""

    STORED = "stored"
    SEEN_BEFORE = "seen_before"
    RETRY = "retry"
    """Nobody can say whether it arrived, or the server asked to come back."""
    REFUSED = "refused"
    """The server will never take this report as it is."""
    UNKNOWN_HOST = "unknown_host"
    NO_REPORTS = "no_reports"
    """There is a web server, but not this API: it takes no reports at all."""

    @property
    def is_delivered(self) -> bool:
        """Whether the server has it."""
        return self in (Outcome.STORED, Outcome.SEEN_BEFORE)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome with its reason, which is fit to be shown: one line, no secret."""

    outcome: Outcome
    reason: str
    retry_after_seconds: float | None = None


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy remembers from one process to the next."""

    failures: int = 0
    """Tries in a row that failed."""
    wait: Wait | None = None
    """No try before this is over."""
    last_outcome: Outcome | None = None
    """Why the last try failed; None = it did not."""
    last_failure: str | None = None
    """The same in words."""
    last_failure_at: datetime | None = None
    last_delivery_at: datetime | None = None
    read_only_since: Moment | None = None
    """The server takes no reports since then; nothing more is stored."""


class SetAsideReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report that the server refused; kept until somebody decides."""

    sequence: int
    audit_id: UUID
    volume_group_name: str
    started_at: datetime
    set_aside_at: datetime
    reason: str


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What the outbox holds."""

    waiting_count: int
    waiting_bytes: int
    oldest_started_at: datetime | None
    """When the oldest audit that waits was started, folded ones included; None = nothing waits."""
    dropped_count: int
    """Reports without news dropped for room since the outbox was made."""
    set_aside: tuple[SetAsideReport, ...]
