"""When to try again: exponential back-off with full jitter, and what a server asks for.

Pure arithmetic in seconds.  A wait is remembered on two clocks: the boot clock, which no operator and
no time server can move, and the wall clock, for what another boot must honour.  Not here: reading any
clock, or the random numbers.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

BASE_SECONDS: Final = 2.0
MAX_BACKOFF_SECONDS: Final = 600.0
"""Ten minutes: after an outage the inventory knows everything again within that time."""
MAX_RETRY_AFTER_SECONDS: Final = 3600.0
"""A server may ask for more; nobody should be blind for longer because of one header."""
PROBE_SECONDS: Final = 3600.0
"""How often a server that takes no reports is asked whether it does by now."""
_MAX_DOUBLINGS: Final = 16
_MAX_DIGITS: Final = 9


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One point in time on both clocks."""

    wall: datetime
    """UTC; may jump."""
    boottime_seconds: float
    """CLOCK_BOOTTIME: runs through suspend, starts anew with each boot."""
    boot_id: str | None
    """Which boot that clock belongs to; None = not known, so it can't be compared with another."""


def seconds_between(earlier: Moment, later: Moment) -> float:
    """How much time passed, in seconds; never negative.

    Within one boot the boot clock answers, whatever happened to the wall clock.
    """
    if earlier.boot_id is not None and earlier.boot_id == later.boot_id:
        passed = later.boottime_seconds - earlier.boottime_seconds
    else:
        passed = (later.wall - earlier.wall).total_seconds()
    return max(0.0, passed)


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that began at a moment and lasts a number of seconds."""

    since: Moment
    seconds: float

    def remaining_seconds(self, now: Moment) -> float:
        """What is left of it: never negative, never more than the whole, so no clock can prolong it."""
        return max(0.0, self.seconds - seconds_between(self.since, now))


def backoff_seconds(failures: int, unit_random: float, retry_after_seconds: float | None = None) -> float:
    """How long to wait after so many failures in a row (1 or more).

    `unit_random` is from 0 to 1: full jitter, so that a fleet that failed together does not come back
    together.  What the server asked for is waited in full, the jitter on top of it.
    """
    ceiling = min(MAX_BACKOFF_SECONDS, BASE_SECONDS * 2.0 ** min(max(failures, 1) - 1, _MAX_DOUBLINGS))
    if retry_after_seconds is None:
        return ceiling * unit_random
    return min(retry_after_seconds, MAX_RETRY_AFTER_SECONDS) + min(ceiling, BASE_SECONDS * 2) * unit_random


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Read a Retry-After header: seconds, or a date measured against `now`, the same server's clock.

    None when there is none, or none that makes sense; from 0 to an hour otherwise.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:_MAX_DIGITS]), MAX_RETRY_AFTER_SECONDS)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = date.replace(tzinfo=UTC) if date.tzinfo is None else date
    return min(max(0.0, (aware - now).total_seconds()), MAX_RETRY_AFTER_SECONDS)
