"""`agent status` as text: short lines for people, the same in a pipe as on a terminal.

Not here: finding any of it out (`wiring_status`).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from agent.core.delivery.queue import SetAsideReport
from agent.core.delivery.status import AuditSummary, DaemonStatus, DeliveryStatus, StatusDocument
from agent.core.names import to_visible

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_SHOWN: Final = 10


def describe_status(status: StatusDocument, now: datetime) -> Iterator[str]:
    """All lines; ages are measured against `now`."""
    yield _describe_daemon(status.daemon)
    if status.audits is None:
        yield "last audit: nothing is known"
    for audit in status.audits or ():
        yield f"last audit: {to_visible(_describe_audit(audit, now))}"
    yield from _describe_delivery(status, now)
    for problem in status.problems:
        yield f"problem: {to_visible(problem)}"


def _describe_daemon(daemon: DaemonStatus) -> str:
    if daemon.state == "running":
        return f"daemon: running (pid {daemon.pid})"
    if daemon.state == "not_running":
        return "daemon: not running; what follows was written down before"
    return "daemon: can't tell whether it runs"


def _describe_audit(audit: AuditSummary, now: datetime) -> str:
    text = f"{audit.volume_group_name} {audit.verdict.value}, {_when(audit.started_at, now)}"
    if audit.stale:
        last = "never" if audit.as_of is None else _when(audit.as_of, now)
        text += f"; LVM can't be read, last good read {last}"
    if audit.drift_count:
        text += f"; {audit.drift_count} recorded sizes differ"
    if audit.critical_count or audit.warning_count:
        text += f"; findings: {audit.critical_count} critical, {audit.warning_count} warning"
    return text


def _describe_delivery(status: StatusDocument, now: datetime) -> Iterator[str]:
    delivery = status.delivery
    if delivery is None:
        yield "reports: nothing is known (not configured with [report] url, or never sent)"
        return
    as_of = status.delivery_as_of
    seen = "" if as_of is None or (now - as_of).total_seconds() < _MINUTE else f", as of {_when(as_of, now)}"
    last = "never" if delivery.last_delivery_at is None else _when(delivery.last_delivery_at, now)
    yield f"last delivery: {last}{seen}"
    if delivery.read_only_since is not None:
        yield (
            f"the server takes no reports since {_when(delivery.read_only_since, now)}: "
            "none is stored; it is asked again every hour and at each start"
        )
    yield _describe_backlog(delivery, now)
    if delivery.last_failure is not None and delivery.last_failure_at is not None:
        yield f"last failure: {_when(delivery.last_failure_at, now)}: {to_visible(delivery.last_failure)}"
    if delivery.next_try_at is not None and delivery.waiting_count:
        yield f"next try: {_when(delivery.next_try_at, now)}, or with the next `agent audit --once`"
    if delivery.dropped_count:
        yield f"dropped for room: {delivery.dropped_count} reports without news"
    yield from _describe_set_aside(delivery, now)


def _describe_backlog(delivery: DeliveryStatus, now: datetime) -> str:
    if not delivery.waiting_count:
        return "waiting: nothing"
    oldest = (
        "" if delivery.oldest_waiting_at is None else f", oldest {_when(delivery.oldest_waiting_at, now)}"
    )
    plural = "" if delivery.waiting_count == 1 else "s"
    return f"waiting: {delivery.waiting_count} report{plural}, {delivery.waiting_bytes} bytes{oldest}"


def _describe_set_aside(delivery: DeliveryStatus, now: datetime) -> Iterator[str]:
    if not delivery.set_aside_count:
        return
    yield f"set aside: {delivery.set_aside_count}, refused by the server"
    shown = delivery.set_aside[-_SHOWN:]
    if len(shown) < delivery.set_aside_count:
        yield f"  (the latest {len(shown)}; --format json lists more)"
    for report in shown:
        yield f"  {to_visible(_describe_report(report, now))}"
    yield "hint: mend the cause, then `agent status --retry` sends them again"


def _describe_report(report: SetAsideReport, now: datetime) -> str:
    return (
        f"#{report.sequence} {report.volume_group_name}, {_when(report.started_at, now)}: {report.reason} "
        f"(audit {report.audit_id})"
    )


def _when(time: datetime, now: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC ({_distance((now - time).total_seconds())})"


def _distance(seconds: float) -> str:
    amount = _format_seconds(abs(seconds))
    return f"in {amount}" if seconds < 0 else f"{amount} ago"


def _format_seconds(seconds: float) -> str:
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{int(seconds)} s"
