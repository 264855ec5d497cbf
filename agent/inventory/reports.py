"""Delivers one report to the inventory API and says what came of it.

The contract is docs/inventory-api.yaml.  A report that is sent again carries the same bytes and the same
Idempotency-Key.  Not here: the queue, and when to try again (`agent.reporting.reporter`).
"""

import gzip
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from agent.core.delivery.queue import Answer, Outcome, QueuedReport
from agent.core.delivery.retry import parse_retry_after
from agent.core.errors import SecretUnreadable
from agent.http.messages import Deadline, HttpAnswer, HttpError, printable

_GZIP_ABOVE_BYTES: Final = 1024
_GZIP_LEVEL: Final = 6
_RETRIED: Final = frozenset({408, 425, 429})
_NO_SUCH_PLACE: Final = frozenset({404, 405})
_REASON_CHARACTERS: Final = 300


class Exchange(Protocol):
    """Sends one HTTP request (`agent.http.client.HttpClient`)."""

    def request(
        self,
        method: str,
        url: str,
        *,
        deadline: Deadline,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:
        """Exchange.

        Raises:
            HttpError: there is no usable answer.
        """
        ...


class TokenSource(Protocol):
    """Gives the bearer token (`agent.inventory.secret.SecretFile`)."""

    def read(self) -> str:
        """The token as it is now.

        Raises:
            SecretUnreadable: there is none.
        """
        ...


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How the API says no.  `code` is what tells it from any other web server."""

    code: str
    message: str | None = None
    hint: str | None = None


class _Receipt(msgspec.Struct, frozen=True, kw_only=True):
    audit_id: str | None = None


class ReportSender:
    """Sends reports to one inventory API."""

    def __init__(
        self, client: Exchange, *, url: str, token: TokenSource | None, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._token = token
        self._now = now

    def send(self, report: QueuedReport, *, age_seconds: float, budget_seconds: float) -> Answer:
        """Try once, for at most that long.  Never raises for anything that a network or server can do.

        `age_seconds` is how long ago LVM was read.
        """
        if report.hostname in {".", ".."}:
            # A path segment of that name is taken away by every HTTP library: it would be another address.
            return Answer(outcome=Outcome.REFUSED, reason=f"no host can be named {report.hostname!r}")
        try:
            token = None if self._token is None else self._token.read()
        except SecretUnreadable as error:
            return Answer(outcome=Outcome.RETRY, reason=str(error))
        if token is not None and not (token.isascii() and token.isprintable()):
            return Answer(outcome=Outcome.RETRY, reason="the token holds characters that no header can carry")
        headers, body = _encode(report, age_seconds)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        url = f"{self._url}/hosts/{quote(report.hostname, safe='')}/lvm_reports"
        try:
            answer = self._client.request(
                "POST", url, deadline=Deadline(budget_seconds), headers=headers, body=body
            )
        except HttpError as error:
            return Answer(outcome=Outcome.RETRY, reason=_harmless(str(error), token))
        judged = _judge(answer, report, self._now())
        return msgspec.structs.replace(judged, reason=_harmless(judged.reason, token))


def _encode(report: QueuedReport, age_seconds: float) -> tuple[dict[str, str], bytes]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Idempotency-Key": str(report.audit_id),
        "Audit-Age": f"{max(0.0, age_seconds):.3f}",
    }
    if len(report.body) <= _GZIP_ABOVE_BYTES:
        return headers, report.body
    headers["Content-Encoding"] = "gzip"
    # Without a time in it, so that the same report is the same bytes each time.
    return headers, gzip.compress(report.body, _GZIP_LEVEL, mtime=0)


def _judge(answer: HttpAnswer, report: QueuedReport, now: datetime) -> Answer:
    if 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP's own classes of statuses
        return _judge_success(answer, report)
    document = _read_error(answer)
    reason = _describe(answer, document)
    if document is not None and document.code == "unknown_host":
        return Answer(outcome=Outcome.UNKNOWN_HOST, reason=reason)
    if document is None and answer.status in _NO_SUCH_PLACE:
        return Answer(outcome=Outcome.NO_REPORTS, reason=reason)
    if 400 <= answer.status < 500 and answer.status not in _RETRIED:  # noqa: PLR2004 - as above
        return Answer(outcome=Outcome.REFUSED, reason=reason)
    return Answer(
        outcome=Outcome.RETRY,
        reason=reason,
        retry_after_seconds=parse_retry_after(answer.headers.get("retry-after"), answer.date or now),
    )


def _judge_success(answer: HttpAnswer, report: QueuedReport) -> Answer:
    """A log-in page also answers 200: a report is given up only for an answer that can be the API's."""
    media_type = answer.headers.get("content-type", "")
    if "html" in media_type.lower():
        reason = f"HTTP {answer.status} with {media_type}: a proxy or log-in page, not the inventory API"
        return Answer(outcome=Outcome.RETRY, reason=reason)
    try:
        receipt = msgspec.json.decode(answer.body, type=_Receipt)
    except (msgspec.DecodeError, RecursionError):
        receipt = _Receipt()
    if receipt.audit_id not in {None, str(report.audit_id)}:
        reason = f"HTTP {answer.status} for another report ({receipt.audit_id}): a cache in between?"
        return Answer(outcome=Outcome.RETRY, reason=reason)
    outcome = Outcome.SEEN_BEFORE if answer.status == 200 else Outcome.STORED  # noqa: PLR2004 - as above
    return Answer(outcome=outcome, reason=f"HTTP {answer.status}")


def _read_error(answer: HttpAnswer) -> ErrorDocument | None:
    try:
        return msgspec.json.decode(answer.body, type=ErrorDocument)
    except (msgspec.DecodeError, RecursionError):
        return None


def _describe(answer: HttpAnswer, document: ErrorDocument | None) -> str:
    if document is None:
        seen = answer.body[: 4 * _REASON_CHARACTERS].decode("utf-8", "replace")
        return f"HTTP {answer.status}: {seen}" if seen.strip() else f"HTTP {answer.status} without a body"
    text = f"HTTP {answer.status} {document.code}"
    if document.message:
        text += f": {document.message}"
    return f"{text} ({document.hint})" if document.hint else text


def _harmless(reason: str, token: str | None) -> str:
    """Fit to be shown and stored: one short line, and a server that echoes the token gives nothing away."""
    if token:
        reason = reason.replace(token, "[token]")
    return printable(reason, _REASON_CHARACTERS)
