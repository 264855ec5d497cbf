"""When the next audit is due: settling, coalescing and pauses, as pure arithmetic on a monotonic clock.

Not here: waiting, auditing.  Times are seconds of whatever clock the caller reads.
"""

from typing import Final

import msgspec

from agent.core.models import Finding
from agent.core.report import Trigger
from agent.daemon.mailbox import Request

_LONGEST_PAUSE_SECONDS: Final = 60.0
_MOST_DOUBLINGS: Final = 16
_STRONGEST_FIRST: Final = (
    Trigger.STARTUP,
    Trigger.SIGNAL,
    Trigger.UDEV,
    Trigger.SCHEDULE,
)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How quickly events are followed by an audit."""

    settle_seconds: float = 0.2
    """A burst of events is over when none came for so long."""
    settle_max_seconds: float = 2.0
    """A burst that does not end gets its audit all the same."""
    min_gap_seconds: float = 0.5
    """At least so long between the end of an audit and the next one for an event."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One audit to do, and how many requests it answers."""

    trigger: Trigger
    findings: tuple[Finding, ...]
    request_count: int


class Agenda:
    """What was asked for and not yet done."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._triggers: set[Trigger] = set()
        self._findings: dict[Finding, None] = {}
        self._request_count = 0
        self._first_event_at = 0.0
        self._last_event_at = 0.0
        self._ended_at: float | None = None
        self._quiet_count = 0

    def add(self, request: Request, now: float) -> None:
        """Note a request that arrived now."""
        if request.trigger is Trigger.UDEV:
            if Trigger.UDEV not in self._triggers:
                self._first_event_at = now
            self._last_event_at = now
        self._triggers.add(request.trigger)
        self._findings.update(dict.fromkeys(request.findings))
        self._request_count += 1

    def due_at(self) -> float | None:
        """When the next audit should begin: at once for all but events; None = nothing was asked for."""
        if not self._triggers:
            return None
        if self._triggers != {Trigger.UDEV}:
            return 0.0
        settled_at = min(
            self._last_event_at + self.pace.settle_seconds,
            self._first_event_at + self.pace.settle_max_seconds,
        )
        return max(settled_at, self._not_before())

    def take(self) -> Work:
        """Everything that was asked for, as one audit: whoever asked is answered by it."""
        work = Work(
            trigger=min(self._triggers, key=_STRONGEST_FIRST.index),
            findings=tuple(self._findings),
            request_count=self._request_count,
        )
        self._triggers.clear()
        self._findings.clear()
        self._request_count = 0
        return work

    def audit_ended(self, trigger: Trigger, now: float, *, has_changed: bool) -> None:
        """Note that an audit ended now, and whether it saw another metadata revision than the one before.

        Audits for events that show nothing new make the pause before the next one longer: should an
        audit ever cause events itself, the loop dies down instead of spinning, and yet a real change
        that hides among them is seen as soon as the pause is over.
        """
        is_chained = self._ended_at is not None and self._first_event_at < self._not_before()
        if has_changed or trigger is not Trigger.UDEV or not is_chained:
            self._quiet_count = 0
        else:
            self._quiet_count += 1
        self._ended_at = now

    def _not_before(self) -> float:
        if self._ended_at is None:
            return 0.0
        # The first quiet audit is normal: mkfs and resize2fs cause events behind the lvextend's own.
        doublings = min(max(0, self._quiet_count - 1), _MOST_DOUBLINGS)
        longer_seconds: float = min(self.pace.min_gap_seconds * 2.0**doublings, _LONGEST_PAUSE_SECONDS)
        return self._ended_at + max(self.pace.min_gap_seconds, longer_seconds)
