"""When two audits found the same state, and how one document stands for several.

A host that does not change sends the same thing every minute; while the inventory is away such reports
are folded into one.  What is *left out* of the comparison is listed here, so that anything a later
version adds counts as a change until somebody decides otherwise.  Not here: storing (`agent.outbox.store`).
"""

import hashlib
import re
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from agent.core.models import Finding
from agent.core.report import AuditDocument, LayerSection, LogicalVolumeSection, Repeats, Trigger

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOBODY: Final = UUID(int=0)
_PERCENT: Final = re.compile(r"\d+(?:\.\d+)?(?= ?%)", re.ASCII)


def state_key(document: AuditDocument) -> str:
    """A short text that is equal for equal states of one volume group on one host.

    Left out: identities of the audit (`audit_id`, `outbox_id`, `sequence`, `boot_id`), why it ran, every
    time and duration, percents (fill levels and progress move all day; in findings' messages too),
    `repeats`.  UUIDs of the volume group and its LVs stay: an LV that was made anew is another LV.
    """
    timeless = msgspec.structs.replace(
        document,
        audit_id=_NOBODY,
        trigger=Trigger.ONCE,
        started_at=_NEVER,
        duration_seconds=0.0,
        as_of=None,
        boot_id=None,
        outbox_id=None,
        sequence=None,
        repeats=None,
        host=msgspec.structs.replace(document.host, boot_time=None),
        logical_volumes=None
        if document.logical_volumes is None
        else tuple(_without_fill_levels(lv) for lv in document.logical_volumes),
        filesystems=None
        if document.filesystems is None
        else tuple(msgspec.structs.replace(row, recorded_at=None) for row in document.filesystems),
        findings=tuple(_without_percents(finding) for finding in document.findings),
    )
    return hashlib.sha256(msgspec.json.encode(timeless)).hexdigest()


def _without_fill_levels(lv: LogicalVolumeSection) -> LogicalVolumeSection:
    layers = None if lv.layers is None else tuple(_without_progress(layer) for layer in lv.layers)
    return msgspec.structs.replace(lv, data_percent=None, metadata_percent=None, layers=layers)


def _without_progress(layer: LayerSection) -> LayerSection:
    drbd = None if layer.drbd is None else msgspec.structs.replace(layer.drbd, resync_percent=None)
    return msgspec.structs.replace(layer, used_percent=None, drbd=drbd)


def _without_percents(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, message=_PERCENT.sub("", finding.message))


def extend_repeats(earlier: Repeats | None, first_started_at: datetime, latest: AuditDocument) -> Repeats:
    """What `latest` says when it takes the place of an equal document that waits before it.

    `earlier` is what that document said itself; `first_started_at` is when its own audit started.
    """
    return Repeats(
        count=2 if earlier is None else earlier.count + 1,
        first_started_at=first_started_at if earlier is None else earlier.first_started_at,
        last_started_at=latest.started_at,
    )
