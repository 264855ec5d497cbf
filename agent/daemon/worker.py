"""The worker: takes messages, does one audit after the other, and comes to an end when told to.

Level-triggered: a message only says *soon*, the audit looks at everything.  Nothing interrupts an audit
but the end of the daemon.  Not here: signals (`life`), timing rules (`agenda`), words (`announce`).
"""

from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from agent.core.errors import AgentError
from agent.core.models import Finding
from agent.core.report import AuditDocument, Trigger
from agent.daemon.agenda import Agenda, Work
from agent.daemon.announce import announce, to_status
from agent.daemon.heartbeat import Heartbeat
from agent.daemon.history import History
from agent.daemon.mailbox import AUDIT_FOR_SCHEDULE, AUDIT_FOR_SIGNAL, Request, Stop
from agent.daemon.ports import Clock, Inbox, Notifier, Plan

_IDLE_SECONDS: Final = 3600.0
_AT_ONCE: Final = 1000
"""So many messages are noted before anything is done: neither a storm nor an audit starves the other."""
_LEAST_RETRY_SECONDS: Final = 0.1
"""A queue that claims to be due without getting shorter must not make us spin."""
_ABORTED: Final = "lvm_aborted"


class Worker:
    """Lives as long as the daemon.

    `load` makes a plan of the configuration as it is at that moment; its parts call what they are given
    whenever they get on.  Whatever it raises comes out of the constructor.
    """

    def __init__(
        self,
        *,
        load: Callable[[Callable[[], None]], Plan],
        inbox: Inbox,
        clock: Clock,
        notifier: Notifier,
    ) -> None:
        self._load = load
        self._inbox = inbox
        self._clock = clock
        self._notifier = notifier
        self._heartbeat = Heartbeat(notifier, clock, self._is_watching)
        self._plan = load(self._heartbeat.beat)
        self._agenda = Agenda(self._plan.pace)
        self._histories: dict[str, History] = {}
        self._last_audit_at = clock.monotonic_seconds()
        self._last_delivery_at = self._last_audit_at
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("agent")

    def run(self) -> str:
        """Work until told to stop; returns the reason.

        The first audit is asked for here, so that being ready never waits for LVM.
        """
        try:
            self._plan.start()
            self._inbox.post(Request(trigger=Trigger.STARTUP))
            self._notifier.ready()
            self._log.info("service.ready", volume_groups=list(self._plan.volume_groups))
            while (reason := self._take_messages()) is None:
                self._do_what_is_due()
            return reason
        finally:
            self._notifier.stopping()
            self._plan.end()

    def _take_messages(self) -> str | None:
        """Wait for something to do and note all that has arrived; returns why to stop, if so."""
        message = self._inbox.receive(self._patience_seconds())
        taken = 0
        is_reload_wanted = False
        while message is not None:
            if isinstance(message, Stop):
                return message.reason
            if isinstance(message, Request):
                self._agenda.add(message, self._clock.monotonic_seconds())
            else:
                is_reload_wanted = True
            taken += 1
            message = self._inbox.receive(0.0) if taken < _AT_ONCE else None
        if is_reload_wanted:  # once for all that asked: it reads what the file says now
            self._reload()
        return None

    def _do_what_is_due(self) -> None:
        self._heartbeat.beat()
        now = self._clock.monotonic_seconds()
        self._check_schedule(now)
        due_at = self._agenda.due_at()
        if due_at is not None and due_at <= now:
            self._audit(self._agenda.take())
            self._heartbeat.beat()
        elif self._seconds_until_delivery() == 0.0:
            self._plan.delivery.deliver_waiting()
            self._last_delivery_at = self._clock.monotonic_seconds()

    def _patience_seconds(self) -> float:
        """How long nothing has to be done unless a message comes."""
        now = self._clock.monotonic_seconds()
        due_at = self._agenda.due_at()
        waits = (
            _IDLE_SECONDS,
            self._last_audit_at + self._plan.overdue_seconds - now,
            None if due_at is None else due_at - now,
            self._seconds_until_delivery(),
            self._heartbeat.due_in_seconds(),
        )
        return max(0.0, min(wait for wait in waits if wait is not None))

    def _seconds_until_delivery(self) -> float | None:
        wait = self._plan.delivery.seconds_until_next_try()
        if wait is None:
            return None
        rested = self._last_delivery_at + _LEAST_RETRY_SECONDS - self._clock.monotonic_seconds()
        return max(0.0, wait, rested)

    def _is_watching(self) -> bool:
        return self._plan.watcher is None or self._plan.watcher.is_healthy()

    def _check_schedule(self, now: float) -> None:
        """The schedule guarantees that audits happen, and this guarantees the schedule."""
        if now - self._last_audit_at < self._plan.overdue_seconds:
            return
        self._log.warning("schedule.restarted", reason="no audit was asked for in time")
        self._plan.schedule.stop()
        self._plan.schedule.start()
        self._agenda.add(AUDIT_FOR_SCHEDULE, now)

    def _audit(self, work: Work) -> None:
        self._last_audit_at = self._clock.monotonic_seconds()
        if work.request_count > 1:
            self._log.debug("trigger.coalesced", count=work.request_count, trigger=str(work.trigger))
        has_changed = False
        try:
            documents = self._plan.auditor.audit(self._plan.volume_groups, work.trigger)
            if not any(finding.kind == _ABORTED for document in documents for finding in document.findings):
                has_changed = self._conclude(documents, work.findings)
        except Exception:  # noqa: BLE001 - a bug must not end the audits of a host; its traceback is logged
            self._log.exception("audit.crashed", trigger=str(work.trigger))
            self._notifier.status("the last audit ended with a bug, see the log")
        self._agenda.audit_ended(work.trigger, self._clock.monotonic_seconds(), has_changed=has_changed)

    def _conclude(self, documents: tuple[AuditDocument, ...], findings: tuple[Finding, ...]) -> bool:
        """Complete, deliver and announce; whether any volume group's metadata changed."""
        completed = tuple(
            self._history_of(document).complete(
                msgspec.structs.replace(document, findings=(*document.findings, *findings))
            )
            for document in documents
        )
        taken = self._plan.delivery.take(completed)
        self._notifier.status(to_status(taken))
        has_changed = False
        for document in taken:
            news, differs = self._history_of(document).observe(document)
            has_changed |= differs
            announce(document, news)
        return has_changed

    def _history_of(self, document: AuditDocument) -> History:
        return self._histories.setdefault(document.volume_group_name, History())

    def _reload(self) -> None:
        """Change to the new configuration, or say loudly that the old one stays."""
        self._notifier.reloading()
        try:
            plan = self._load(self._heartbeat.beat)
        except (AgentError, OSError) as error:  # OSError: out of descriptors, for one
            problems = getattr(error, "problems", ())
            self._log.error("config.reload.failed", error=str(error), problems=list(problems))
        else:
            self._plan.end()
            self._plan = plan
            self._agenda.pace = plan.pace
            plan.start()
            # Events may have come while nobody watched, and the new plan may see things differently.
            self._inbox.post(AUDIT_FOR_SIGNAL)
            self._log.info("config.reloaded", volume_groups=list(plan.volume_groups))
        self._notifier.ready()
