"""What the agent last saw, delivered and still holds: the state file, and what `agent status` prints.

The state file (``status.json`` in the state directory) is written by the daemon and by `audit --once`, and
may be read by anybody: nothing in it is secret.  Not here: reading and writing it (`agent.state.file`).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

import msgspec

from agent.core.delivery.queue import Backlog, QueueState, SetAsideReport
from agent.core.delivery.retry import Moment
from agent.core.models import Severity
from agent.core.report import AuditDocument, AuditVerdict, Trigger

STATE_SCHEMA: Final = "agent.state/v1"
STATUS_SCHEMA: Final = "agent.status/v1"
_SHOWN_SET_ASIDE: Final = 100
"""More are counted, not listed: the state file stays small."""


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """One process that can be told from a later one with the same pid."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat: clock ticks after boot when it started."""
    boot_id: str | None


class AuditSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The last audit of one volume group, in short."""

    volume_group_name: str
    audit_id: UUID
    sequence: int | None
    trigger: Trigger
    started_at: datetime
    verdict: AuditVerdict
    stale: bool
    as_of: datetime | None
    drift_count: int | None
    """Filesystems whose record is a lie; None = not compared."""
    critical_count: int
    warning_count: int


class DeliveryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of reports."""

    last_delivery_at: datetime | None
    last_failure_at: datetime | None
    last_failure: str | None
    failures: int
    next_try_at: datetime | None
    """None = at the next occasion."""
    read_only_since: datetime | None
    waiting_count: int
    waiting_bytes: int
    oldest_waiting_at: datetime | None
    dropped_count: int
    set_aside_count: int
    set_aside: tuple[SetAsideReport, ...]
    """The latest hundred."""

    @classmethod
    def of(cls, queue: QueueState, backlog: Backlog, now: Moment) -> "DeliveryStatus":
        """From what the outbox remembers and holds; `now` is when it was asked."""
        remaining = None if queue.wait is None else queue.wait.remaining_seconds(now)
        return cls(
            last_delivery_at=queue.last_delivery_at,
            last_failure_at=queue.last_failure_at,
            last_failure=queue.last_failure,
            failures=queue.failures,
            next_try_at=now.wall + timedelta(seconds=remaining) if remaining else None,
            read_only_since=None if queue.read_only_since is None else queue.read_only_since.wall,
            waiting_count=backlog.waiting_count,
            waiting_bytes=backlog.waiting_bytes,
            oldest_waiting_at=backlog.oldest_started_at,
            dropped_count=backlog.dropped_count,
            set_aside_count=len(backlog.set_aside),
            set_aside=backlog.set_aside[-_SHOWN_SET_ASIDE:],
        )


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """Schema ``agent.state/v1``."""

    schema: Literal["agent.state/v1"] = STATE_SCHEMA
    written_at: datetime
    hostname: str
    agent_version: str
    daemon: ProcessIdentity | None = None
    """The daemon that ran last; whether it still does must be looked up."""
    audits: tuple[AuditSummary, ...] = ()
    delivery: DeliveryStatus | None = None
    """None = reports were never configured, or the outbox could never be read."""
    delivery_as_of: datetime | None = None
    """When `delivery` was true: an audit that reports nothing leaves it as it was."""


class DaemonStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the daemon runs."""

    state: Literal["running", "not_running", "unknown"]
    pid: int | None = None


class StatusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `agent status` prints: schema ``agent.status/v1``."""

    schema: Literal["agent.status/v1"] = STATUS_SCHEMA
    state_directory: str | None
    """None = it could not be found out, or nothing was looked at for one of the `problems`."""
    hostname: str | None
    daemon: DaemonStatus
    written_at: datetime | None
    """When audits were written down; None = never here."""
    audits: tuple[AuditSummary, ...] | None
    """None = nothing is known, for one of the `problems`."""
    delivery: DeliveryStatus | None
    delivery_as_of: datetime | None
    """When `delivery` was true."""
    problems: tuple[str, ...]
    """What could not be looked at, and why."""


def summarize(document: AuditDocument) -> AuditSummary:
    """One audit in short."""
    severities = [finding.severity for finding in document.findings]
    return AuditSummary(
        volume_group_name=document.volume_group_name,
        audit_id=document.audit_id,
        sequence=document.sequence,
        trigger=document.trigger,
        started_at=document.started_at,
        verdict=document.verdict,
        stale=document.stale,
        as_of=document.as_of,
        drift_count=document.drift_count,
        critical_count=severities.count(Severity.CRITICAL),
        warning_count=severities.count(Severity.WARNING),
    )


def update(
    earlier: StateFile | None,
    documents: Sequence[AuditDocument],
    *,
    written_at: datetime,
    delivery: DeliveryStatus | None,
    daemon: ProcessIdentity | None,
) -> StateFile:
    """The state file after an audit of one or more groups: what it does not speak about stays.

    `daemon` is given by the daemon only, `delivery` only where reports are sent.

    Raises:
        ValueError: there are no documents.
    """
    if not documents:
        msg = "no audit, so nothing to write down"
        raise ValueError(msg)
    host = documents[-1].host
    if earlier is None:
        earlier = StateFile(written_at=written_at, hostname=host.hostname, agent_version=host.agent_version)
    audits = {audit.volume_group_name: audit for audit in (*earlier.audits, *map(summarize, documents))}
    return StateFile(
        written_at=written_at,
        hostname=host.hostname,
        agent_version=host.agent_version,
        daemon=daemon or earlier.daemon,
        audits=tuple(audits.values()),
        delivery=delivery or earlier.delivery,
        delivery_as_of=written_at if delivery else earlier.delivery_as_of,
    )
