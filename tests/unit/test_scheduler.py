"""The schedule with APScheduler's real thread, and its trigger without it."""

import queue
from datetime import UTC, datetime, timedelta

from agent.host.scheduler import Schedule, _make_trigger

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def test_it_asks_again_and_again_until_stopped() -> None:
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()
    schedule = Schedule(lambda: asked.put(None), interval_seconds=0.02, jitter_seconds=0.0)
    schedule.start()
    for _ in range(3):
        asked.get(timeout=30.0)
    schedule.stop()
    while not asked.empty():
        asked.get()
    schedule.stop()  # a second time is no error
    assert asked.empty()


def test_it_can_be_started_again() -> None:
    asked: queue.SimpleQueue[None] = queue.SimpleQueue()
    schedule = Schedule(lambda: asked.put(None), interval_seconds=0.02, jitter_seconds=0.01)
    for _ in range(2):
        schedule.start()
        asked.get(timeout=30.0)
        schedule.stop()


def test_the_next_time_is_an_interval_and_some_jitter_ahead() -> None:
    trigger = _make_trigger(60.0, 10.0)
    seconds = [(trigger.get_next_fire_time(None, NOW) - NOW).total_seconds() for _ in range(200)]
    assert all(60.0 <= ahead <= 70.0 for ahead in seconds)
    assert max(seconds) - min(seconds) > 5.0


def test_a_clock_that_was_in_1970_until_now_costs_one_run() -> None:
    trigger = _make_trigger(60.0, 0.0)
    last = datetime(1970, 1, 1, tzinfo=UTC)
    assert trigger.get_next_fire_time(last, NOW) == NOW + timedelta(seconds=60)
