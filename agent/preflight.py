"""One question before a resize: read LVM, look at the layers, fetch the records, answer.

Knows only ports.  LVM is read *before* the records, as in an audit.  Not here: the answer
(`agent.core.resize.preflight`, `agent.core.resize.upgrade`), how it looks (`agent.cli`).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

import msgspec

from agent.audit import Clock, LayerReader, VolumeGroupReader
from agent.core.errors import InventoryError, LvmError
from agent.core.layers.view import LayerScan
from agent.core.models import ReadMode, RecordedSizes, VolumeGroup
from agent.core.resize.ask import Asked
from agent.core.resize.busy import Activity
from agent.core.resize.document import (
    Answer,
    AskedSection,
    Code,
    PreflightDocument,
    Reason,
    is_allowed,
)
from agent.core.resize.preflight import preflight
from agent.core.resize.upgrade import check_rebuild
from agent.core.sections import volume_group_section
from agent.inventory import Inventory


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about one volume group."""

    volume_group: str
    asked: tuple[Asked, ...] = ()
    mistakes: tuple[Reason, ...] = ()
    """What of the question could not be understood."""
    is_rebuild: bool = False
    """Ask whether all LVs could be made anew, instead of resizes."""

    @property
    def kind(self) -> Literal["resize", "rebuild"]:
        """The document's word for it."""
        return "rebuild" if self.is_rebuild else "resize"


class Adviser:
    """Answers questions with the parts it is given."""

    def __init__(
        self,
        *,
        reader: VolumeGroupReader,
        inventory: Inventory | None,
        layers: LayerReader,
        clock: Clock,
        grace_seconds: float,
    ) -> None:
        self._reader = reader
        self._inventory = inventory
        self._layers = layers
        self._clock = clock
        self._grace_seconds = grace_seconds

    def answer(self, question: Question) -> PreflightDocument:
        """Answer; a half that could not be read is a reason beside those of the other half."""
        started_seconds = self._clock.monotonic_seconds()
        failures: list[Reason] = []
        volume_group = self._read(question.volume_group, failures)
        scan = None
        if volume_group is not None and not question.is_rebuild:
            scan = self._layers.scan(volume_group)
        recorded = self._fetch(question.volume_group, failures)
        answer = Answer(asked=tuple(AskedSection(name=one.name, text=one.text) for one in question.asked))
        if volume_group is not None and recorded is not None:
            if question.is_rebuild:
                answer = check_rebuild(volume_group, recorded)
            else:
                age = timedelta(seconds=self._clock.monotonic_seconds() - started_seconds)
                activity = self._activity(volume_group, scan, recorded, age)
                answer = preflight(volume_group, recorded, question.asked, activity)
        return compose(question, answer.with_reasons(*failures, *question.mistakes), volume_group)

    def _read(self, name: str, failures: list[Reason]) -> VolumeGroup | None:
        try:
            return self._reader.read(name).volume_group
        except LvmError as error:
            failures.append(Reason.of_error(error))
            return None

    def _fetch(self, name: str, failures: list[Reason]) -> RecordedSizes | None:
        if self._inventory is None:
            failures.append(_nothing_recorded("no_inventory", name, "no inventory is configured"))
            return None
        try:
            recorded = self._inventory.fetch()
        except InventoryError as error:
            failures.append(Reason.of_error(error))
            return None
        if not recorded.covers(name):
            text = f"{recorded.origin} keeps no records for volume group {name}"
            failures.append(_nothing_recorded("not_covered", name, text))
            return None
        return recorded

    def _activity(
        self, volume_group: VolumeGroup, scan: LayerScan | None, recorded: RecordedSizes, age: timedelta
    ) -> Activity:
        """What else is known; LVM's age is counted back from the inventory's own clock."""
        return Activity(
            drbd=None if scan is None else scan.drbd,
            is_lock_held=volume_group.read_mode is ReadMode.LOCK_FREE,
            read_at=None if recorded.as_of is None else recorded.as_of - age,
            grace_seconds=self._grace_seconds,
        )


def compose(question: Question, answer: Answer, volume_group: VolumeGroup | None) -> PreflightDocument:
    """The published document of an answer."""
    return PreflightDocument(
        question=question.kind,
        volume_group_name=question.volume_group,
        asked=answer.asked,
        allowed=is_allowed(answer.reasons),
        reasons=answer.reasons,
        ledger=answer.ledger,
        capacity=answer.capacity,
        volume_group=None if volume_group is None else volume_group_section(volume_group),
    )


def refuse(question: Question, reasons: Sequence[Reason]) -> PreflightDocument:
    """The document of a question that nobody could begin to answer."""
    return compose(question, Answer(reasons=tuple(reasons)), None)


def _nothing_recorded(kind: str, name: str, message: str) -> Reason:
    return Reason(
        code=Code.INVENTORY_UNREADABLE,
        kind=kind,
        subject=name,
        message=f"{message}: without recorded sizes it can't be said what is asked for",
        hint="name one with --inventory or [inventory]; `agent baseline` writes a file to start from",
    )
