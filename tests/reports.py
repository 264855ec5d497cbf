"""Audit documents, clocks, keepers and scripted servers for the tests of reporting."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from builders import make_bug_vg, record, recorded

from agent.core.delivery.queue import Answer, Outcome, QueuedReport
from agent.core.delivery.retry import Moment
from agent.core.judge import judge
from agent.core.models import Reading
from agent.core.report import AuditDocument, HostSection, Trigger
from agent.outbox.keeper import OutboxKeeper
from agent.reporting.deliverer import Deliverer
from agent.reporting.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
OUTBOX_ID = UUID("00000000-0000-4000-8000-00000000000b")
DELIVERED = Answer(outcome=Outcome.STORED, reason="HTTP 201")
SEEN_BEFORE = Answer(outcome=Outcome.SEEN_BEFORE, reason="HTTP 200")
AWAY = Answer(outcome=Outcome.RETRY, reason="connection refused")
REFUSED = Answer(outcome=Outcome.REFUSED, reason="HTTP 422 schema_invalid: no such field")
UNKNOWN_HOST = Answer(outcome=Outcome.UNKNOWN_HOST, reason="HTTP 404 unknown_host")
NO_REPORTS = Answer(outcome=Outcome.NO_REPORTS, reason="HTTP 404 without a body")


def make_document(
    number: int = 1, *, docker_extents: int = 960, group: str = "cgts-vg", hostname: str = "controller-0"
) -> AuditDocument:
    """The audit number so-and-so of the bug's machine, a minute after the one before.

    `docker_extents` is its state: another number is another state.
    """
    volume_group = msgspec.structs.replace(make_bug_vg(docker_lv=docker_extents), name=group)
    records = recorded(record("docker", 30, vg=group))
    judgement = judge(group, Reading(volume_group=volume_group), records, grace_seconds=600)
    return judgement.document(
        audit_id=UUID(int=number),
        trigger=Trigger.SCHEDULE,
        started_at=START + timedelta(minutes=number),
        duration_seconds=0.25,
        boot_id="boot-1",
        host=HostSection(hostname=hostname, boot_time=START, agent_version="0.1.0", lvm_version="2.03.16"),
    )


class FakeClock:
    """All clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall = START
        self.boottime_seconds = 1000.0
        self.boot_id: str | None = "boot-1"
        self.monotonic = 0.0

    def now(self) -> datetime:
        return self.wall

    def moment(self) -> Moment:
        return Moment(wall=self.wall, boottime_seconds=self.boottime_seconds, boot_id=self.boot_id)

    def monotonic_seconds(self) -> float:
        return self.monotonic

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass on every clock."""
        self.wall += timedelta(seconds=seconds)
        self.boottime_seconds += seconds
        self.monotonic += seconds


class FakeSender:
    """Answers as told: a list of answers, then one for ever; keeps what was sent."""

    def __init__(self, *answers: Answer, always: Answer = DELIVERED) -> None:
        self.answers = list(answers)
        self.always = always
        self.sent: list[QueuedReport] = []
        self.ages: list[float] = []
        self.on_send: Callable[[], None] = lambda: None

    def send(self, report: QueuedReport, *, age_seconds: float, budget_seconds: float) -> Answer:
        assert budget_seconds > 0
        self.sent.append(report)
        self.ages.append(age_seconds)
        self.on_send()
        return self.answers.pop(0) if self.answers else self.always

    @property
    def sent_ids(self) -> list[int]:
        """Numbers of the audits, in the order of the tries."""
        return [report.audit_id.int for report in self.sent]


def make_keeper(directory: Path, clock: FakeClock, *, max_bytes: int = 64 * 2**20) -> OutboxKeeper:
    """A keeper on real files."""
    return OutboxKeeper(directory, max_bytes=max_bytes, new_id=lambda: OUTBOX_ID, now=clock.now)


def make_reporter(
    directory: Path, sender: FakeSender, clock: FakeClock, *, max_bytes: int = 64 * 2**20
) -> tuple[Reporter, OutboxKeeper]:
    """The policy on a real outbox with a scripted server; full jitter is always the longest pause."""
    keeper = make_keeper(directory, clock, max_bytes=max_bytes)
    deliverer = Deliverer(keeper=keeper, sender=sender, clock=clock, unit_random=lambda: 1.0)
    return Reporter(keeper=keeper, deliverer=deliverer, clock=clock), keeper


def decode(report: QueuedReport) -> AuditDocument:
    """The document in a body."""
    return msgspec.json.decode(report.body, type=AuditDocument)
