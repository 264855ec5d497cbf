"""The watchdog's food: given only while the worker gets on and the watcher does, too.

Not here: what progress is; whoever makes some calls `beat`.
"""

from collections.abc import Callable
from typing import Final, Protocol

import structlog

from agent.core.models import Reading
from agent.daemon.ports import Clock, Notifier

_BEATS_PER_LIMIT: Final = 2
"""As sd_watchdog_enabled(3) recommends: at half of the limit."""
_LEAST_SECONDS: Final = 0.05
"""Whoever sets a limit that nobody could meet must not make us spin."""
_RECHECK_SECONDS: Final = 1.0


class Heartbeat:
    """Tells the service manager that we are alive, at half of its limit and never more often."""

    def __init__(self, notifier: Notifier, clock: Clock, is_watching: Callable[[], bool]) -> None:
        self._notifier = notifier
        self._clock = clock
        self._is_watching = is_watching
        limit = notifier.watchdog_seconds
        self._interval_seconds = None if limit is None else max(limit / _BEATS_PER_LIMIT, _LEAST_SECONDS)
        self._next_at = clock.monotonic_seconds()
        self._is_starving = False

    def beat(self) -> None:
        """The worker got on.  Passed on unless that was done just now, or the watcher is dead or asleep."""
        now = self._clock.monotonic_seconds()
        if self._interval_seconds is None or now < self._next_at:
            return
        if self._is_watching():
            self._notifier.alive()
            self._is_starving = False
            self._next_at = now + self._interval_seconds
            return
        self._next_at = now + _RECHECK_SECONDS
        if not self._is_starving:
            structlog.get_logger("agent").error(
                "watchdog.starved", reason="the udev watcher makes no progress"
            )
        self._is_starving = True

    def due_in_seconds(self) -> float | None:
        """When the next beat should come; None = never."""
        if self._interval_seconds is None:
            return None
        return max(0.0, self._next_at - self._clock.monotonic_seconds())


class Reader(Protocol):
    """Reads one volume group."""

    def read(self, volume_group: str) -> Reading:
        """Read it, or raise LvmError."""
        ...


class BeatingReader:
    """A reader that shows after each volume group that the daemon gets on, whatever came of reading."""

    def __init__(self, reader: Reader, beat: Callable[[], None]) -> None:
        self._reader = reader
        self._beat = beat

    def read(self, volume_group: str) -> Reading:
        """Read it.

        Raises:
            LvmError: it can't be said what is there.
        """
        try:
            return self._reader.read(volume_group)
        finally:
            self._beat()
