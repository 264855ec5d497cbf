"""Pauses: how long, and that no clock can make them longer; what the policy remembers after an answer."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from reports import AWAY, DELIVERED, NO_REPORTS, REFUSED, SEEN_BEFORE, UNKNOWN_HOST

from agent.core.delivery import state as queue_state
from agent.core.delivery.queue import Answer, Outcome, QueueState
from agent.core.delivery.retry import Moment, Wait, backoff_seconds, parse_retry_after, seconds_between

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def moment(wall_offset: float = 0, boottime: float = 100, boot_id: str | None = "a") -> Moment:
    return Moment(wall=NOW + timedelta(seconds=wall_offset), boottime_seconds=boottime, boot_id=boot_id)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        pytest.param(moment(), moment(5, 105), 5, id="both clocks agree"),
        pytest.param(moment(), moment(-86400, 105), 5, id="the wall clock was set back"),
        pytest.param(moment(), moment(86400, 105), 5, id="the wall clock was set forward"),
        pytest.param(moment(), moment(60, 3, "b"), 60, id="another boot: only the wall clock can say"),
        pytest.param(moment(), moment(-60, 3, "b"), 0, id="another boot and set back: never negative"),
        pytest.param(moment(boot_id=None), moment(7, 5, None), 7, id="boots not known: wall clock"),
        pytest.param(moment(), moment(0, 99), 0, id="never negative within one boot"),
    ],
)
def test_time_passed(earlier: Moment, later: Moment, expected: float) -> None:
    assert seconds_between(earlier, later) == expected


@pytest.mark.parametrize(
    ("now", "remaining"),
    [
        (moment(4, 104), 26),
        (moment(40, 140), 0),
        (moment(-1e6, 104), 26),
        (moment(1e6, 104), 26),
        (moment(-1e6, 1, "b"), 30),
        (moment(1e6, 1, "b"), 0),
    ],
)
def test_a_pause_is_never_longer_than_it_was(now: Moment, remaining: float) -> None:
    assert Wait(since=moment(), seconds=30).remaining_seconds(now) == remaining


@pytest.mark.parametrize(
    ("failures", "unit_random", "retry_after", "expected"),
    [
        (1, 1.0, None, 2),
        (2, 1.0, None, 4),
        (3, 0.5, None, 4),
        (4, 0.0, None, 0),
        (10, 1.0, None, 600),
        (10_000_000, 1.0, None, 600),
        (0, 1.0, None, 2),
        (1, 0.0, 30.0, 30),
        (1, 1.0, 30.0, 32),
        (9, 1.0, 30.0, 34),
        (1, 0.0, 1e9, 3600),
        (9, 0.0, 0.0, 0),
    ],
)
def test_backoff(failures: int, unit_random: float, retry_after: float | None, expected: float) -> None:
    assert backoff_seconds(failures, unit_random, retry_after) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("", None),
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("99999999999999999999", 3600),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("Tue, 01 Dec 2026 12:00:30 GMT", 30),
        ("Tue, 01 Dec 2026 12:00:30", 30),
        ("Tue, 01 Dec 2026 11:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ("Tue, 01 Dec 2026 14:00:30 +0200", 30),
    ],
)
def test_retry_after(header: str | None, expected: float | None) -> None:
    assert parse_retry_after(header, NOW) == expected


BEFORE = QueueState(
    failures=2,
    wait=Wait(since=moment(), seconds=8),
    last_outcome=Outcome.RETRY,
    last_failure="HTTP 503",
    last_failure_at=NOW,
    last_delivery_at=NOW - timedelta(hours=1),
)


@pytest.mark.parametrize("answer", [DELIVERED, SEEN_BEFORE])
def test_a_delivery_ends_all_trouble(answer: Answer) -> None:
    assert queue_state.after(answer, BEFORE, moment(), 1.0) == QueueState(last_delivery_at=NOW)


def test_a_refusal_makes_no_pause() -> None:
    assert queue_state.after(REFUSED, BEFORE, moment(), 1.0) == QueueState(
        last_outcome=Outcome.REFUSED,
        last_failure="HTTP 422 schema_invalid: no such field",
        last_failure_at=NOW,
        last_delivery_at=NOW - timedelta(hours=1),
    )


def test_a_failure_doubles_the_pause_and_keeps_what_was_delivered() -> None:
    assert queue_state.after(AWAY, BEFORE, moment(60, 160), 1.0) == QueueState(
        failures=3,
        wait=Wait(since=moment(60, 160), seconds=8),
        last_outcome=Outcome.RETRY,
        last_failure="connection refused",
        last_failure_at=NOW + timedelta(seconds=60),
        last_delivery_at=NOW - timedelta(hours=1),
    )


def test_a_server_without_the_api_is_asked_once_an_hour() -> None:
    first = queue_state.after(NO_REPORTS, BEFORE, moment(), 0.0)
    second = queue_state.after(NO_REPORTS, first, moment(3600, 3700), 0.0)
    away = queue_state.after(AWAY, second, moment(7200, 7300), 0.0)

    for state in (first, second, away):
        assert state.read_only_since == moment()
        assert state.wait is not None
        assert state.wait.seconds == 3600


def test_only_the_api_itself_says_unknown_host() -> None:
    read_only = msgspec.structs.replace(BEFORE, read_only_since=moment())

    state = queue_state.after(UNKNOWN_HOST, read_only, moment(), 1.0)

    assert state.read_only_since is None
    assert state.wait == Wait(since=moment(), seconds=8)
