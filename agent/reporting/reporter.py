"""What happens to the documents of an audit: stored first, then delivered, never lost silently.

Knows only ports (`ports`).  Not here: the queue's outgoing end (`deliverer`), SQLite
(`outbox`), HTTP (`inventory.reports`), words for people (`core.delivery.advice`).
"""

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from agent.core.delivery import advice
from agent.core.delivery.errors import OutboxDamaged, OutboxError
from agent.core.delivery.queue import WAITING, Answer, Outcome, QueuedReport
from agent.core.delivery.retry import Moment
from agent.core.models import Finding
from agent.core.report import AuditDocument
from agent.reporting.deliverer import Deliverer
from agent.reporting.ports import Clock, OutboxKeeperPort


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the documents of one run."""

    documents: tuple[AuditDocument, ...]
    """As stored, with outbox id and sequence; findings about their reports are added behind the others."""
    is_lost: bool
    """One was neither delivered nor stored: exit status 6 where it would be 0."""


class _Fate(msgspec.Struct, kw_only=True):
    """What happened to one document so far."""

    document: AuditDocument
    is_stored: bool = False
    is_lost: bool = False
    excess_bytes: int = 0
    findings: list[Finding] = []


class Reporter:
    """Stores reports and has them delivered.  For one thread at a time."""

    def __init__(self, *, keeper: OutboxKeeperPort, deliverer: Deliverer, clock: Clock) -> None:
        self._keeper = keeper
        self._deliverer = deliverer
        self._clock = clock
        self._was_probed = False

    def report(self, documents: Sequence[AuditDocument], *, budget_seconds: float, at_once: bool) -> Reported:
        """Store the documents, then deliver what waits, oldest first, for at most so long.

        `at_once` tries whatever the pause says.  Never raises for anything that disk, network or
        server can do: the findings say it.
        """
        end = self._clock.monotonic_seconds() + budget_seconds
        fates = [_Fate(document=document) for document in documents]
        try:
            try:
                self._store_and_deliver(fates, end, at_once=at_once)
            except OutboxDamaged as error:
                self._keeper.replace(error)
                fates[:] = [_Fate(document=document) for document in documents]
                self._store_and_deliver(fates, end, at_once=at_once)
        except OutboxError as error:
            for fate in fates:
                self._do_without(fate, error, end)
        return Reported(
            documents=tuple(_with_findings(fate.document, fate.findings) for fate in fates),
            is_lost=any(fate.is_lost for fate in fates),
        )

    def _store_and_deliver(self, fates: list[_Fate], end: float, *, at_once: bool) -> None:
        if self._deliverer.is_read_only() and self._stays_read_only(end):
            return
        self._was_probed = True
        replaced = self._keeper.take_findings()
        for fate in fates:
            fate.document = _with_findings(fate.document, replaced)
        self._store(fates)
        ending = self._deliver(end, at_once=at_once)
        refused = [fate for fate in fates if not fate.is_stored]
        if refused:  # delivering may have made the room that was missing
            self._store(refused)
            ending = self._deliver(end, at_once=at_once)
        for fate in fates:
            self._conclude(fate, ending)

    def _stays_read_only(self, end: float) -> bool:
        """Ask the server again, at each start and every hour, with a report that waits since then."""
        self._deliver(end, at_once=not self._was_probed)
        self._was_probed = True
        return self._deliverer.is_read_only()

    def _deliver(self, end: float, *, at_once: bool) -> Answer | None:
        budget = end - self._clock.monotonic_seconds()
        return self._deliverer.deliver(budget_seconds=budget, at_once=at_once)

    def _store(self, fates: Sequence[_Fate]) -> None:
        for fate in fates:
            read_at = _read_at(fate.document, self._clock.moment())
            appended = self._keeper.current().append(fate.document, read_at)
            fate.document = appended.document
            fate.is_stored = appended.is_stored
            fate.excess_bytes = appended.excess_bytes

    def _conclude(self, fate: _Fate, ending: Answer | None) -> None:
        """Say what became of a document's report."""
        group = fate.document.volume_group_name
        if fate.excess_bytes:
            fate.findings.append(advice.outbox_full(fate.excess_bytes))
        if not fate.is_stored:
            fate.is_lost = True
            fate.findings.append(advice.lost(group, "the outbox is full"))
            return
        where = self._keeper.current().find_fate(fate.document.audit_id)
        if where == WAITING:
            fate.findings.extend(_explain_waiting(fate.document, ending))
        elif where is not None:
            fate.findings.append(advice.refused(group, where))

    def _do_without(self, fate: _Fate, error: OutboxError, end: float) -> None:
        """The outbox failed: what is not in it is sent directly, or lost, and either is said."""
        group = fate.document.volume_group_name
        fate.findings.append(error.to_finding())
        if fate.is_stored:
            fate.findings.append(advice.pending(group, str(error)))
            return
        report = _direct(fate.document, self._clock.moment())
        answer = self._deliverer.send(report, budget_seconds=end - self._clock.monotonic_seconds())
        if answer is not None and answer.outcome.is_delivered:
            return
        fate.is_lost = True
        reason = str(error) if answer is None else f"{error}; sent directly: {answer.reason}"
        fate.findings.append(advice.lost(group, reason))


def _explain_waiting(document: AuditDocument, ending: Answer | None) -> tuple[Finding, ...]:
    group = document.volume_group_name
    if ending is None:
        return (advice.pending(group, None),)
    if ending.outcome is Outcome.NO_REPORTS:
        return (advice.not_accepted(group, ending.reason),)
    if ending.outcome is Outcome.UNKNOWN_HOST:
        hostname = document.host.hostname
        return (advice.unknown_host(hostname, ending.reason), advice.pending(group, ending.reason))
    return (advice.pending(group, ending.reason),)


def _with_findings(document: AuditDocument, findings: Sequence[Finding]) -> AuditDocument:
    return msgspec.structs.replace(document, findings=(*document.findings, *findings))


def _read_at(document: AuditDocument, now: Moment) -> Moment:
    """When LVM was read: at the start of the audit, or for a stale document at its last good read.

    Counted back from now by durations, so that a clock set between the two changes nothing.
    """
    ago_seconds = document.duration_seconds
    if document.as_of is not None:
        ago_seconds += max(0.0, (document.started_at - document.as_of).total_seconds())
    return Moment(
        wall=now.wall - timedelta(seconds=ago_seconds),
        boottime_seconds=now.boottime_seconds - ago_seconds,
        boot_id=now.boot_id,
    )


def _direct(document: AuditDocument, now: Moment) -> QueuedReport:
    return QueuedReport(
        sequence=None,
        audit_id=document.audit_id,
        hostname=document.host.hostname,
        volume_group_name=document.volume_group_name,
        body=msgspec.json.encode(document),
        read_at=_read_at(document, now),
    )
