"""What an HTTP exchange is made of: how it is bounded, its answer, and why there is none.

Plain values; importing this loads nothing heavy.  Not here: sending anything (`client`, `session`).
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec

from agent.core.names import to_short

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""The largest body that is read, before and after decompression; sysinv's are a few KiB."""


class HttpFailure(StrEnum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"
    """No connection: no such name, refused, no route, or a proxy that won't."""
    CLOSED = "closed"
    """The connection ended before an answer began."""
    TIMEOUT = "timeout"
    TLS = "tls"
    """No trust: the server's certificate, our CA file, or our client certificate."""
    TRUNCATED = "truncated"
    """The answer began and broke off."""
    TOO_LARGE = "too_large"
    REDIRECTED = "redirected"
    """The answer points to another server, or would turn a write into a read."""
    GARBLED = "garbled"
    """Not HTTP, or a body that does not decompress."""


class HttpError(Exception):
    """There is no usable answer.  Its text holds no secret: no query, no user, no header, no body."""

    def __init__(self, failure: HttpFailure, *, url: str, detail: str) -> None:
        self.failure = failure
        self.url = url
        self.detail = detail
        super().__init__(f"{url}: {detail}")


class Deadline:
    """A point in time that several exchanges share; it never moves."""

    def __init__(self, seconds: float, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._end = monotonic_seconds() + seconds

    def remaining_seconds(self) -> float:
        """What is left; never negative."""
        return max(0.0, self._end - self._monotonic_seconds())


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """How connections are made."""

    connect_timeout_seconds: float = 5.0
    """For each address of the server."""
    read_timeout_seconds: float = 10.0
    """Without one byte; the `Deadline` bounds the whole."""
    ca_file: Path | None = None
    """Trust these authorities only; None = those requests trusts ($REQUESTS_CA_BUNDLE, else certifi)."""
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None
    """None = the key is in the certificate's file.  It must have no passphrase: nobody could type it."""
    max_body_bytes: int = MAX_BODY_BYTES
    user_agent: str = "lvm-audit-agent"


class TransportSettings(Protocol):
    """The keys of a configuration's table that say how connections are made; files by absolute path."""

    @property
    def connect_timeout_seconds(self) -> float:
        """For each address of the server."""
        ...

    @property
    def read_timeout_seconds(self) -> float:
        """Without one byte."""
        ...

    @property
    def ca_file(self) -> str | None:
        """Authorities to trust."""
        ...

    @property
    def client_certificate_file(self) -> str | None:
        """What to show to a server that asks."""
        ...

    @property
    def client_key_file(self) -> str | None:
        """Its key."""
        ...


def make_transport(settings: TransportSettings, *, user_agent: str) -> Transport:
    """How connections are made by these settings."""
    return Transport(
        connect_timeout_seconds=settings.connect_timeout_seconds,
        read_timeout_seconds=settings.read_timeout_seconds,
        ca_file=_to_path(settings.ca_file),
        client_certificate_file=_to_path(settings.client_certificate_file),
        client_key_file=_to_path(settings.client_key_file),
        user_agent=user_agent,
    )


def _to_path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer, whatever its status."""

    url: str
    """Where it came from, without secrets."""
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    """After decompression."""

    @property
    def date(self) -> datetime | None:
        """The server's clock when it answered (UTC); None when it did not say so that one can read it."""
        try:
            parsed = parsedate_to_datetime(self.headers["date"])
        except (KeyError, ValueError, OverflowError):
            return None
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def safe_url(url: str) -> str:
    """The URL as it may be shown: without user, password, query and fragment, on one line."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    if not parts.scheme or not parts.netloc:
        return "(not a URL)"
    return printable(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: what two URLs of one server have in common.

    Raises:
        ValueError: the URL names no usable port.
    """
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or {"http": 80, "https": 443}.get(scheme)


def printable(text: str, limit: int = 300) -> str:
    """Foreign text as it may stand in a message: one line, harmless, cut at `limit` characters."""
    return to_short(" ".join(text[: limit * 2].split()), limit)
