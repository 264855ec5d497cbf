"""Recorded sizes fetched from sysinv, and reports stored and delivered: real sockets and files, no LVM."""

import gc
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec
from bench_bed import Beds
from bench_table import Figure, require, resident_kib
from reports import AWAY, DELIVERED, OUTBOX_ID, FakeClock, FakeSender, make_document, make_reporter
from reportserver import ReportServer
from sysinvserver import SysinvServer, bug_machine

from agent.core.delivery.queue import Answer, QueuedReport
from agent.http.client import HttpClient
from agent.http.messages import Transport
from agent.inventory.reports import ReportSender
from agent.inventory.settings import InventorySection
from agent.inventory.sysinv import open_sysinv
from agent.outbox.files import FILE_NAME
from agent.outbox.store import Outbox
from agent.reporting.deliverer import Deliverer
from agent.reporting.reporter import Reporter

_OUTBOX_BYTES = 64 * 2**20
_FLAT_KIB = 256
"""What a process may grow by and still be called flat: the allocator's own ups and downs."""


def count_fetch() -> tuple[int, int]:
    """Requests of the second fetch from sysinv, and connections of both."""
    with SysinvServer(bug_machine()) as server:
        inventory = open_sysinv(
            InventorySection(url=server.url),
            hostname="controller-0",
            credentials_directory=None,
            user_agent="bench",
            monotonic_seconds=time.monotonic,
            now=lambda: datetime.now(UTC),
        )
        inventory.fetch()
        before = len(server.requests)
        inventory.fetch()
        inventory.close()
        return len(server.requests) - before, len({request.connection for request in server.requests})


def count_delivery(reports: int) -> tuple[float, int]:
    """Requests for one delivered report, and connections for all."""
    clock, client = FakeClock(), HttpClient(Transport())
    with tempfile.TemporaryDirectory() as directory, ReportServer() as server:
        _, keeper = make_reporter(Path(directory), FakeSender(), clock)
        sender = ReportSender(client, url=f"{server.url}/v1", token=None, now=clock.now)
        deliverer = Deliverer(keeper=keeper, sender=sender, clock=clock, unit_random=lambda: 1.0)
        reporter = Reporter(keeper=keeper, deliverer=deliverer, clock=clock)
        for number in range(1, reports + 1):
            reporter.report([make_document(number)], budget_seconds=10, at_once=False)
        keeper.close()
        client.close()
        require(len(server.stored) == reports, "every report has arrived")
        return len(server.requests) / reports, len({request.connection for request in server.requests})


def append_ms(rounds: int, *, is_changing: bool) -> float:
    """CPU of one append of 12 LVs: folded with the one before, or a row of its own."""
    documents, clock = (make_document(docker_extents=960), make_document(docker_extents=961)), FakeClock()
    with (
        tempfile.TemporaryDirectory() as directory,
        Outbox.open(Path(directory) / FILE_NAME, max_bytes=_OUTBOX_BYTES, new_id=OUTBOX_ID) as outbox,
    ):
        started = time.process_time()
        for number in range(1, rounds + 1):
            document = documents[number % 2 if is_changing else 0]
            outbox.append(msgspec.structs.replace(document, audit_id=UUID(int=number)), clock.moment())
        return (time.process_time() - started) / rounds * 1000


class _Coming(FakeSender):
    """There for a thousand tries, away for a thousand; remembers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def send(self, report: QueuedReport, *, age_seconds: float, budget_seconds: float) -> Answer:  # noqa: ARG002
        self.tries += 1
        return AWAY if self.tries // 1000 % 2 else DELIVERED


def growth_kib(audits: int) -> int:
    """How much the last half of so many reported audits adds to this process, its peak against its peak.

    The state changes now and then, and the server is away half of the time.
    """
    states, clock = (make_document(docker_extents=960), make_document(docker_extents=961)), FakeClock()
    quarters = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as directory:
        reporter, keeper = make_reporter(Path(directory), _Coming(), clock)
        for number in range(audits):
            document = msgspec.structs.replace(states[number // 500 % 2], audit_id=UUID(int=number + 1))
            reporter.report([document], budget_seconds=10, at_once=False)
            clock.pass_seconds(60)
            if number % 50 == 0:
                quarter = number * 4 // audits
                quarters[quarter] = max(quarters[quarter], resident_kib(os.getpid()))
        keeper.close()
    return quarters[3] - quarters[1]


def measure_reports(_: Beds, *, is_long: bool) -> Iterator[Figure]:
    """The figures of inventory and reports."""
    trips, connections = count_fetch()
    yield Figure("warm fetch from sysinv: round trips", trips, 3)
    yield Figure("two fetches from sysinv: connections", connections, 1)
    trips_each, connections = count_delivery(20)
    yield Figure("round trips for each delivered report", trips_each, 1)
    yield Figure("20 delivered reports: connections", connections, 1)
    rounds = 2000 if is_long else 500
    yield Figure("CPU of an append, same state", append_ms(rounds, is_changing=False), 2.0, "ms")
    yield Figure("CPU of an append, another state", append_ms(rounds, is_changing=True), 2.0, "ms")
    gc.collect()
    audits = 100_000 if is_long else 8_000
    name = f"{audits:,} reported audits: growth over the last half"
    yield Figure(name, growth_kib(audits), _FLAT_KIB, "KiB")
