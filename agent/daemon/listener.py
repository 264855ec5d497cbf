"""Turns what the udev watcher hears into requests for audits.

Not here: listening (`agent.host.udev`), which calls this in its own thread.
"""

from typing import Protocol

import structlog

from agent.core.models import Finding, Severity
from agent.core.report import Trigger
from agent.daemon.mailbox import AUDIT_FOR_UDEV, Request
from agent.daemon.ports import Inbox


class Event(Protocol):
    """What is said about an event."""

    @property
    def action(self) -> str:
        """The kernel's word for it: add, change, remove."""
        ...

    @property
    def device(self) -> str:
        """The kernel's name of the device."""
        ...


class UdevListener:
    """Posts; never waits."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agent")

    def event_seen(self, event: Event) -> None:
        """LVM may have changed."""
        self._log.debug("udev.event.matched", action=event.action, device=event.device)
        self._inbox.post(AUDIT_FOR_UDEV)

    def monitor_reopened(self, reason: str) -> None:
        """Events were lost: a full audit, which says so."""
        self._log.warning("udev.monitor.reopened", reason=reason)
        finding = Finding(
            kind="udev_monitor_reopened",
            severity=Severity.WARNING,
            subject="udev",
            message=f"device events were lost ({reason}); the monitor was opened again and all was read anew",
            hint="if it happens often, something floods udev with events: `udevadm monitor`",
        )
        self._inbox.post(Request(trigger=Trigger.UDEV, findings=(finding,)))

    def monitor_failed(self, reason: str) -> None:
        """No events until it can be opened."""
        self._log.error("udev.monitor.failed", reason=reason)
