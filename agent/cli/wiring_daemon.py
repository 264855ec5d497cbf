"""Puts the daemon's parts together, as `wiring` does for a single audit.

Not here: any decision about audits; the life of the process (`run`).
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.audit import Auditor
from agent.config.schema import Settings
from agent.core.delivery.status import DeliveryStatus
from agent.core.report import AuditDocument
from agent.daemon.agenda import Pace
from agent.daemon.delivery import DaemonDelivery
from agent.daemon.heartbeat import BeatingReader
from agent.daemon.listener import UdevListener
from agent.daemon.mailbox import AUDIT_FOR_SCHEDULE, Mailbox
from agent.daemon.ports import Plan
from agent.host import facts
from agent.host.command_log import LoggingRunner
from agent.host.liveness import identify_self
from agent.host.lvm import LvmReader
from agent.host.notify import Notifier
from agent.host.process import Runner
from agent.host.scheduler import Schedule
from agent.host.udev import Watcher
from agent.state.directory import make_state_directory
from agent.state.file import write_audits

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring
    from agent.cli.wiring_reporting import Reporting

_REPORT_BUDGET_SECONDS: Final = 5.0
"""How long an audit's delivery may hold up the next audit; what is left goes out between audits."""
_BACKLOG_BUDGET_SECONDS: Final = 2.0
_OVERDUE_INTERVALS: Final = 2
_OVERDUE_SECONDS: Final = 30.0


class DaemonWiring:
    """Makes plans; what must outlive a reload is made once: mailbox, notifier, the runner of LVM programs."""

    def __init__(self, wiring: "Wiring", *, config_path: str | None, flags: dict[str, object]) -> None:
        self.wiring = wiring
        self.mailbox = Mailbox()
        self.runner = Runner()
        self.notifier = Notifier.from_environment(os.environ, os.getpid())
        self._config_path = config_path
        self._flags = flags
        self._boot_id = facts.read_boot_id()

    def load_settings(self) -> Settings:
        """The effective configuration, as it is now.

        Raises:
            ConfigError: it can't be used.
        """
        return self.wiring.load(self._config_path, self._flags).settings

    def make_plan(self, settings: Settings, beat: Callable[[], None]) -> Plan:
        """The parts that these settings ask for.

        Raises:
            AgentError: they can't be made.
        """
        interval_seconds, jitter_seconds = settings.audit.interval_seconds, settings.audit.jitter_seconds
        udev = settings.udev
        with contextlib.ExitStack() as parts:
            return Plan(
                volume_groups=settings.audit.volume_groups,
                auditor=self._make_auditor(settings, parts, beat),
                delivery=self._make_delivery(settings, parts),
                schedule=Schedule(
                    lambda: self.mailbox.post(AUDIT_FOR_SCHEDULE),
                    interval_seconds=interval_seconds,
                    jitter_seconds=jitter_seconds,
                ),
                watcher=Watcher(UdevListener(self.mailbox)) if udev.enabled else None,
                pace=Pace(
                    settle_seconds=udev.settle_seconds,
                    settle_max_seconds=udev.settle_max_seconds,
                    min_gap_seconds=udev.min_gap_seconds,
                ),
                overdue_seconds=_OVERDUE_INTERVALS * interval_seconds + jitter_seconds + _OVERDUE_SECONDS,
                close=parts.pop_all().close,
            )

    def _make_auditor(
        self, settings: Settings, parts: contextlib.ExitStack, beat: Callable[[], None]
    ) -> Auditor:
        runner = LoggingRunner(self.runner)
        reader = LvmReader(runner, Path(settings.lvm.directory), settings.lvm.timeout_seconds)
        return Auditor(
            reader=BeatingReader(reader, beat),
            inventory=self.wiring.make_inventory(settings, parts),
            layers=self.wiring.make_layers(settings, parts),
            host=lambda: self.wiring.read_host(settings, reader.version()),
            clock=self.wiring.clock,
            new_id=self.wiring.new_id,
            boot_id=self._boot_id,
            grace_seconds=settings.audit.transition_grace_seconds,
        )

    def _make_delivery(self, settings: Settings, parts: contextlib.ExitStack) -> DaemonDelivery:
        directory = Path(settings.agent.state_directory)
        daemon = identify_self(self._boot_id)

        def publish(documents: tuple[AuditDocument, ...], delivery: DeliveryStatus | None) -> None:
            make_state_directory(directory)
            write_audits(
                directory, documents, written_at=self.wiring.clock.now(), delivery=delivery, daemon=daemon
            )

        if settings.report.url is None:
            return DaemonDelivery(queue=None, publish=publish)
        from agent.cli.wiring_reporting import open_reporting  # noqa: PLC0415 - memory: sqlite3, requests

        reporting = parts.enter_context(open_reporting(settings.report, directory, boot_id=self._boot_id))
        return DaemonDelivery(queue=_Queue(reporting), publish=publish)


class _Queue:
    """The queue of reports with the daemon's budgets."""

    def __init__(self, reporting: "Reporting") -> None:
        self._reporting = reporting
        self.seconds_until_next_try = reporting.deliverer.seconds_until_next_try
        self.describe = reporting.deliverer.describe

    def report(self, documents: tuple[AuditDocument, ...]) -> tuple[AuditDocument, ...]:
        reported = self._reporting.reporter.report(
            documents, budget_seconds=_REPORT_BUDGET_SECONDS, at_once=False
        )
        return reported.documents

    def deliver(self) -> None:
        self._reporting.deliverer.deliver_in_background(budget_seconds=_BACKLOG_BUDGET_SECONDS)
