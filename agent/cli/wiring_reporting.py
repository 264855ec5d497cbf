"""Puts the parts of reporting together, for an audit that is done once.

Everything is imported late: an audit that reports nothing should not pay for it.  Not here: any decision
about reports (`agent.reporting.reporter`), the daemon's parts (`wiring_daemon`).
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from agent import __version__

if TYPE_CHECKING:
    from agent.config.schema import Settings
    from agent.core.report import AuditDocument
    from agent.reporting.deliverer import Deliverer
    from agent.reporting.reporter import Reporter
    from agent.reporting.settings import ReportSection


class Reporting(NamedTuple):
    """What stores and delivers reports; its parts share one outbox."""

    reporter: "Reporter"
    deliverer: "Deliverer"


@contextmanager
def open_reporting(report: "ReportSection", directory: Path, *, boot_id: str | None) -> Iterator[Reporting]:
    """The parts for `[report]`, whose url must be set; closed at the end, the outbox keeps what it holds."""
    from agent.host.clock import HostClock  # noqa: PLC0415
    from agent.http.client import HttpClient  # noqa: PLC0415
    from agent.http.messages import make_transport  # noqa: PLC0415
    from agent.inventory.reports import ReportSender  # noqa: PLC0415
    from agent.inventory.secret import SecretFile  # noqa: PLC0415
    from agent.outbox.keeper import OutboxKeeper  # noqa: PLC0415
    from agent.reporting.deliverer import Deliverer  # noqa: PLC0415
    from agent.reporting.reporter import Reporter  # noqa: PLC0415

    assert report.url is not None  # noqa: S101 - without one there is nothing to open
    clock = HostClock(boot_id)
    client = HttpClient(make_transport(report, user_agent=f"lvm-audit-agent/{__version__}"))
    keeper = OutboxKeeper(directory, max_bytes=report.outbox_max_bytes, new_id=uuid4, now=_now)
    token = None
    if report.token_file is not None:
        token = SecretFile(report.token_file, credentials_directory=os.environ.get("CREDENTIALS_DIRECTORY"))
    deliverer = Deliverer(
        keeper=keeper,
        sender=ReportSender(client, url=report.url, token=token, now=_now),
        clock=clock,
        unit_random=random.random,
    )
    try:
        yield Reporting(
            reporter=Reporter(keeper=keeper, deliverer=deliverer, clock=clock), deliverer=deliverer
        )
    finally:
        keeper.close()
        client.close()


def report_once(
    settings: "Settings", documents: "tuple[AuditDocument, ...]"
) -> "tuple[tuple[AuditDocument, ...], bool]":
    """Report the documents of one audit, if that is configured, and write down what was seen.

    Returns them with what became of their reports, and whether a report is lost.
    """
    directory = Path(settings.agent.state_directory)
    is_wanted = settings.report.url is not None
    if not is_wanted and not directory.is_dir():
        return documents, False
    from agent.core.delivery.errors import OutboxError  # noqa: PLC0415
    from agent.state.file import write_audits  # noqa: PLC0415

    delivery, is_lost = None, False
    if is_wanted:
        from agent.host.facts import read_boot_id  # noqa: PLC0415
        from agent.reporting.ports import ONCE_BUDGET_SECONDS  # noqa: PLC0415

        with open_reporting(settings.report, directory, boot_id=read_boot_id()) as reporting:
            reported = reporting.reporter.report(documents, budget_seconds=ONCE_BUDGET_SECONDS, at_once=True)
            documents, is_lost = reported.documents, reported.is_lost
            with suppress(OutboxError):  # the findings say it
                delivery = reporting.deliverer.describe()
    if directory.is_dir():
        with suppress(OutboxError):  # a help for `agent status`; an audit is complete without it
            write_audits(directory, documents, written_at=_now(), delivery=delivery)
    return documents, is_lost


def _now() -> datetime:
    return datetime.now(UTC)
