"""The one queue of the daemon, and the messages in it.

Not here: what they lead to (`worker`).
"""

import queue
from typing import Final

import msgspec

from agent.core.models import Finding
from agent.core.report import Trigger


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants an audit soon."""

    trigger: Trigger
    findings: tuple[Finding, ...] = ()
    """What the audit's documents should say beside what it finds."""


class Reload(msgspec.Struct, frozen=True):
    """Read the configuration again."""


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Come to an end."""

    reason: str


Message = Request | Reload | Stop

AUDIT_FOR_UDEV: Final = Request(trigger=Trigger.UDEV)
"""One object for every event: ten thousand of them in the queue cost ten thousand pointers."""
AUDIT_FOR_SCHEDULE: Final = Request(trigger=Trigger.SCHEDULE)
AUDIT_FOR_SIGNAL: Final = Request(trigger=Trigger.SIGNAL)


class Mailbox:
    """Where other threads put messages, and the worker alone takes them out."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def post(self, message: Message) -> None:
        """Leave a message; never waits."""
        self._queue.put(message)

    def receive(self, timeout_seconds: float) -> Message | None:
        """The next message; None = none came in time."""
        try:
            return self._queue.get(timeout=max(0.0, timeout_seconds))
        except queue.Empty:
            return None
