"""Tells people what an audit found: log lines for news, one line for each audit, one line of status.

Not here: what is news (`history`), how lines look (the log's configuration).
"""

from collections.abc import Sequence
from typing import Final

import structlog

from agent.core.models import Finding, Severity
from agent.core.report import AuditDocument, AuditVerdict, FilesystemSection, Trigger
from agent.daemon.history import News

_NAMED_MAX: Final = 3


def announce(document: AuditDocument, news: News) -> None:
    """Log one audit: what began, what ended, and that it was done.  A clean one is a single line."""
    log = structlog.get_logger("agent").bind(vg=document.volume_group_name)
    for row in news.drifted:
        log.warning("drift.detected", **_facts(row))
    for row in news.resolved:
        log.info("drift.resolved", **_facts(row))
    for finding in news.appeared:
        level = log.error if finding.severity is Severity.CRITICAL else log.warning
        level("finding.appeared", **_finding_facts(finding))
    for finding in news.cleared:
        log.info("finding.cleared", kind=finding.kind, subject=finding.subject)
    group = document.volume_group
    log.info(
        "audit.finished",
        audit_id=str(document.audit_id),
        trigger=str(document.trigger),
        verdict=str(document.verdict),
        drift_count=document.drift_count,
        lv_count=None if group is None else group.lv_count,
        free_extents=None if group is None else group.free_extents,
        finding_count=len(document.findings),
        stale=document.stale,
        duration_seconds=document.duration_seconds,
    )


def to_status(documents: Sequence[AuditDocument]) -> str:
    """The last verdict of each volume group, in one line."""
    return "; ".join(_to_status(document) for document in documents)


def _to_status(document: AuditDocument) -> str:
    parts = [f"{document.volume_group_name}: {str(document.verdict).replace('_', ' ')}"]
    drifting = [row for row in document.filesystems or () if row.verdict.is_drift]
    if drifting:
        names = ", ".join(f"{row.name} {row.verdict}" for row in drifting[:_NAMED_MAX])
        more = len(drifting) - _NAMED_MAX
        parts.append(f"({names}{f' and {more} more' if more > 0 else ''})")
    group = document.volume_group
    if document.verdict is AuditVerdict.UNKNOWN or group is None:
        parts += [f"({finding.message})" for finding in document.findings[:1]]
    elif not drifting:
        parts.append(f"({group.lv_count} LVs, {group.free_extents} extents free)")
    when = document.as_of if document.stale else document.started_at
    if when is not None:
        parts.append(f"{'last seen' if document.stale else 'at'} {when:%Y-%m-%dT%H:%M:%SZ}")
    if document.trigger is Trigger.STARTUP:
        parts.append("(first audit)")
    return " ".join(parts)


def _facts(row: FilesystemSection) -> dict[str, object]:
    delta_bytes = None if row.actual_bytes is None else row.actual_bytes - row.recorded_bytes
    return {
        "filesystem": row.name,
        "lv": row.logical_volume,
        "kind": str(row.verdict),
        "recorded_bytes": row.recorded_bytes,
        "actual_bytes": row.actual_bytes,
        "delta_bytes": delta_bytes,
    }


def _finding_facts(finding: Finding) -> dict[str, object]:
    facts: dict[str, object] = {
        "kind": finding.kind,
        "subject": finding.subject,
        "message": finding.message,
    }
    if finding.hint is not None:
        facts["hint"] = finding.hint
    return facts
