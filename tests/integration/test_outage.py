"""The inventory is away for 10,000 audits, a week of them, with three changes: nothing that matters is lost."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from reports import START, FakeClock, make_document, make_keeper
from reportserver import ReportServer, hang_up

from agent.core.report import AuditDocument
from agent.http.client import HttpClient
from agent.http.messages import Transport
from agent.inventory.reports import ReportSender
from agent.outbox.files import FILE_NAME
from agent.reporting.deliverer import Deliverer
from agent.reporting.reporter import Reporter

AUDITS = 10_000
MAX_BYTES = 2**20
STATES = {1: 960, 2501: 961, 5001: 960, 7501: 1280}
"""From which audit on docker-lv has how many extents: the state before the outage, and three changes."""


def documents() -> Iterator[AuditDocument]:
    """One a minute."""
    document = make_document()
    for number in range(1, AUDITS + 1):
        if number in STATES:
            document = make_document(docker_extents=STATES[number])
        started_at = START + timedelta(minutes=number)
        yield msgspec.structs.replace(
            document, audit_id=UUID(int=number), started_at=started_at, as_of=started_at
        )


@pytest.fixture
def client() -> Iterator[HttpClient]:
    opened = HttpClient(Transport())
    yield opened
    opened.close()


def test_a_long_outage_loses_no_change(tmp_path: Path, client: HttpClient) -> None:
    clock = FakeClock()
    keeper = make_keeper(tmp_path, clock, max_bytes=MAX_BYTES)
    with ReportServer() as server:
        server.before = hang_up
        sender = ReportSender(client, url=f"{server.url}/v1", token=None, now=clock.now)
        deliverer = Deliverer(keeper=keeper, sender=sender, clock=clock, unit_random=lambda: 0.5)
        reporter = Reporter(keeper=keeper, deliverer=deliverer, clock=clock)
        wall, cpu = time.perf_counter(), time.process_time()
        largest = 0
        for document in documents():
            reported = reporter.report([document], budget_seconds=10, at_once=False)
            clock.pass_seconds(60)
            assert [finding.kind for finding in reported.documents[0].findings][-1] == "report_pending"
            largest = max(largest, sum(file.stat().st_size for file in tmp_path.glob(f"{FILE_NAME}*")))
        tries = len(server.requests)
        server.before = lambda _: None
        clock.pass_seconds(600)
        assert deliverer.deliver(budget_seconds=60) is None
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    keeper.close()

    print(  # noqa: T201 - the figures
        f"{AUDITS} audits: {wall:.1f} s, {cpu:.1f} s CPU, {tries} tries, files at most {largest} bytes"
    )
    assert largest < MAX_BYTES
    # The first was tried before it could be folded; all others are the latest of their state.
    assert [document.audit_id.int for document in server.documents] == [1, 2500, 5000, 7500, 10_000]
    assert [document.sequence for document in server.documents] == [1, 2500, 5000, 7500, 10_000]
    assert [document.repeats.count if document.repeats else 1 for document in server.documents] == [
        1,
        2499,
        2500,
        2500,
        2500,
    ]
    last = server.documents[-1].repeats
    assert last is not None
    assert last.first_started_at == START + timedelta(minutes=7501)
    assert last.last_started_at == START + timedelta(minutes=10_000)
    # Pauses grow to ten minutes at most, half of it with this jitter: every fifth audit or so.
    assert AUDITS / 12 < tries < AUDITS / 4
