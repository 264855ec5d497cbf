"""One audit: read LVM, fetch the records, judge, hand over the document.

Knows only ports.  LVM is read *before* the records: a resize in between then shows as a change that
is under way, never as an LV grown behind the inventory's back.  Not here: when audits happen
(`daemon`), how documents look (`cli`), where the parts come from (`cli.wiring`).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import msgspec

from agent.core.errors import AgentError, InventoryError, LvmError
from agent.core.models import Reading, RecordedSizes, VolumeGroup
from agent.core.report import AuditDocument, HostSection, Trigger
from agent.inventory import Inventory

if TYPE_CHECKING:
    from agent.core.layers.view import LayerScan


class VolumeGroupReader(Protocol):
    """Reads one volume group from LVM."""

    def read(self, volume_group: str) -> Reading:
        """Read it.

        Raises:
            LvmError: it can't be said what is there.
        """
        ...


class LayerReader(Protocol):
    """Looks at what sits on the LVs."""

    def scan(self, volume_group: VolumeGroup) -> "LayerScan":
        """Everything that can be seen.  Never raises, never hangs."""
        ...


class Clock(Protocol):
    """The time, replaced in tests."""

    def now(self) -> datetime:
        """Wall clock, UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """A clock that never jumps."""
        ...


class _Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one volume group on this host, and when."""

    name: str
    started_at: datetime
    started_seconds: float
    reading: Reading | LvmError
    scan: "LayerScan | None"


class Auditor:
    """Runs audits with the parts it is given."""

    def __init__(
        self,
        *,
        reader: VolumeGroupReader,
        inventory: Inventory | None,
        layers: LayerReader | None,
        host: Callable[[], HostSection],
        clock: Clock,
        new_id: Callable[[], UUID],
        boot_id: str | None,
        grace_seconds: float,
    ) -> None:
        self._reader = reader
        self._inventory = inventory
        self._layers = layers
        self._host = host
        self._clock = clock
        self._new_id = new_id
        self._boot_id = boot_id
        self._grace_seconds = grace_seconds

    def audit(self, volume_groups: Sequence[str], trigger: Trigger) -> tuple[AuditDocument, ...]:
        """Audit each volume group, with one fetch of the records for all of them."""
        sights = [self._look(name) for name in volume_groups]
        recorded = self._fetch()
        return tuple(self._compose(sight, recorded, trigger) for sight in sights)

    def _look(self, volume_group: str) -> _Sight:
        started_at, started_seconds = self._clock.now(), self._clock.monotonic_seconds()
        scan = None
        reading: Reading | LvmError
        try:
            reading = self._reader.read(volume_group)
        except LvmError as error:
            reading = error
        else:
            scan = None if self._layers is None else self._layers.scan(reading.volume_group)
        return _Sight(
            name=volume_group,
            started_at=started_at,
            started_seconds=started_seconds,
            reading=reading,
            scan=scan,
        )

    def _fetch(self) -> RecordedSizes | InventoryError | None:
        if self._inventory is None:
            return None
        try:
            return self._inventory.fetch()
        except InventoryError as error:
            return error

    def _compose(
        self, sight: _Sight, recorded: RecordedSizes | InventoryError | None, trigger: Trigger
    ) -> AuditDocument:
        from agent.core import judge  # noqa: PLC0415 - start-up time: loaded while LVM is at work

        judgement = judge.judge(
            sight.name, sight.reading, recorded, grace_seconds=self._grace_seconds, scan=sight.scan
        )
        return judgement.document(
            audit_id=self._new_id(),
            trigger=trigger,
            started_at=sight.started_at,
            duration_seconds=round(self._clock.monotonic_seconds() - sight.started_seconds, 6),
            boot_id=self._boot_id,
            host=self._host(),
        )


def failed_document(
    error: AgentError, *, volume_group: str, host: HostSection, started_at: datetime, audit_id: UUID
) -> AuditDocument:
    """The document of an audit that could not even begin: everything unknown, and why."""
    from agent.core import judge  # noqa: PLC0415 - as above

    judgement = judge.Judgement.of_failure(volume_group, error)
    return judgement.document(
        audit_id=audit_id,
        trigger=Trigger.ONCE,
        started_at=started_at,
        duration_seconds=0.0,
        boot_id=None,
        host=host,
    )
