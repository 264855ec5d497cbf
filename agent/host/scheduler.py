"""The clock of the daemon: an APScheduler job that does nothing but ask for an audit.

Not here: auditing.  The job only posts, so it can never run late, pile up or overlap.
"""

import logging
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.base import BaseTrigger


class Schedule:
    """Asks after every `interval_seconds` and up to `jitter_seconds` more, from `start` to `stop`.

    It goes by the wall clock, as APScheduler does: whoever relies on it must notice by a monotonic clock
    that a request is overdue (the time was set back), and start it again.
    """

    def __init__(self, ask: Callable[[], None], *, interval_seconds: float, jitter_seconds: float) -> None:
        self._ask = ask
        self._interval_seconds = interval_seconds
        self._jitter_seconds = jitter_seconds
        self._scheduler: BackgroundScheduler | None = None

    def start(self) -> None:
        """Begin; the first request comes after one interval."""
        from apscheduler.executors.debug import DebugExecutor  # noqa: PLC0415 - start-up time
        from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415

        # Its own lines ("Running job …") would be one for each audit.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        scheduler = BackgroundScheduler(
            timezone=UTC,
            # Runs jobs in the scheduler's own thread: posting needs no pool.
            executors={"default": DebugExecutor()},
            daemon=True,
        )
        scheduler.add_job(
            self._ask,
            _make_trigger(self._interval_seconds, self._jitter_seconds),
            coalesce=True,
            max_instances=1,
            # The default drops a run that is a second late, silently; late is better than never.
            misfire_grace_time=None,
        )
        scheduler.start()
        self._scheduler = scheduler

    def stop(self) -> None:
        """End the thread and wait for it."""
        if self._scheduler is not None:
            self._scheduler.shutdown()
            self._scheduler = None


def _make_trigger(interval_seconds: float, jitter_seconds: float) -> "BaseTrigger":
    """A trigger that counts from now.

    APScheduler's own interval trigger counts from the last run and lists every run it missed: a clock
    that jumps from 1970 to the present, as on a host without a battery, would cost it millions.
    """
    from apscheduler.triggers.base import BaseTrigger  # noqa: PLC0415 - start-up time

    class AfterNow(BaseTrigger):  # type: ignore[misc] # APScheduler has no types
        """The next run is one interval and a random part of the jitter ahead."""

        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
            del previous_fire_time
            jitter_seconds_now = random.uniform(0, jitter_seconds)  # noqa: S311 - spreads load, no secret
            return now + timedelta(seconds=interval_seconds + jitter_seconds_now)

    return AfterNow()
