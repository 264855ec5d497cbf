"""One audit: read LVM, fetch the records, judge, hand over the document.

Knows only ports.  LVM is read *before* the records: a resize in between then shows as a change that
is under way, never as an LV grown behind the inventory's back.  Not here: when audits happen
(`daemon`), how documents look (`cli`), where the parts come from (`cli.wiring`).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from agent.core import judge
from agent.core.errors import AgentError, InventoryError, LvmError
from agent.core.models import Finding, Reading, RecordedSizes
from agent.core.report import AuditDocument, HostSection, Trigger
from agent.inventory import Inventory


class VolumeGroupReader(Protocol):
    """Reads one volume group from LVM."""

    def read(self, volume_group: str) -> Reading:
        """Read it.

        Raises:
            LvmError: it can't be said what is there.
        """
        ...


class Clock(Protocol):
    """The time, replaced in tests."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """A clock that never jumps."""
        ...


class Auditor:
    """Runs audits with the parts it is given."""

    def __init__(
        self,
        *,
        reader: VolumeGroupReader,
        inventory: Inventory | None,
        host: Callable[[], HostSection],
        clock: Clock,
        new_id: Callable[[], UUID],
        boot_id: str | None,
        grace_seconds: float,
    ) -> None:
        self._reader = reader
        self._inventory = inventory
        self._host = host
        self._clock = clock
        self._new_id = new_id
        self._boot_id = boot_id
        self._grace_seconds = grace_seconds

    def audit(self, volume_groups: Sequence[str], trigger: Trigger) -> tuple[AuditDocument, ...]:
        """Audit each volume group, with one fetch of the records for all of them."""
        starts = []
        readings: list[Reading | LvmError] = []
        for volume_group in volume_groups:
            starts.append((self._clock.now(), self._clock.monotonic_seconds()))
            readings.append(self._read(volume_group))
        recorded = self._fetch()
        return tuple(
            self._compose(name, reading, recorded, trigger, start)
            for name, reading, start in zip(volume_groups, readings, starts, strict=True)
        )

    def _read(self, volume_group: str) -> Reading | LvmError:
        try:
            return self._reader.read(volume_group)
        except LvmError as error:
            return error

    def _fetch(self) -> RecordedSizes | InventoryError | None:
        if self._inventory is None:
            return None
        try:
            return self._inventory.fetch()
        except InventoryError as error:
            return error

    def _compose(
        self,
        name: str,
        reading: Reading | LvmError,
        recorded: RecordedSizes | InventoryError | None,
        trigger: Trigger,
        start: tuple[datetime, float],
    ) -> AuditDocument:
        judgement = judge.judge(name, reading, recorded, grace_seconds=self._grace_seconds)
        return judgement.document(
            audit_id=self._new_id(),
            trigger=trigger,
            started_at=start[0],
            duration_seconds=round(self._clock.monotonic_seconds() - start[1], 6),
            boot_id=self._boot_id,
            host=self._host(),
        )


def failed_document(
    error: AgentError, *, volume_group: str, host: HostSection, started_at: datetime, audit_id: UUID
) -> AuditDocument:
    """The document of an audit that could not even begin: everything unknown, and why."""
    judgement = judge.Judgement.of_failure(volume_group, error)
    return judgement.document(
        audit_id=audit_id,
        trigger=Trigger.ONCE,
        started_at=started_at,
        duration_seconds=0.0,
        boot_id=None,
        host=host,
    )


def with_findings(document: AuditDocument, findings: Sequence[Finding]) -> AuditDocument:
    """The same document with more findings: what happened to its own report, for example."""
    return msgspec.structs.replace(document, findings=(*document.findings, *findings))
