"""What a failed exchange with sysinv or Keystone means to an operator: named errors with a next step.

Pure.  Not here: the exchange itself (`agent.http`).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent.core.errors import InventoryError
from agent.core.inventory_errors import InventoryGarbled, InventoryRefused, InventoryUnreachable
from agent.http.messages import HttpAnswer, HttpError, HttpFailure, printable

MAX_REASON_CHARACTERS: Final = 300

_NO_CONNECTION: Final = "check [inventory] url, and that the API answers there (`curl -i {url}`)"

_ADVICE: Final[Mapping[HttpFailure, str]] = {
    HttpFailure.TIMEOUT: "look at the load of the active controller, or raise [inventory] deadline_seconds",
    HttpFailure.TLS: "check [inventory] ca_file, client_certificate_file, and the name in the URL",
    HttpFailure.REDIRECTED: "name the server it redirects to in [inventory] url, if that is the inventory",
}
_GARBLED: Final = frozenset({HttpFailure.TRUNCATED, HttpFailure.TOO_LARGE, HttpFailure.GARBLED})


def unreachable(error: HttpError) -> InventoryError:
    """The inventory error for an exchange that brought no usable answer."""
    if error.failure in _GARBLED:
        return InventoryGarbled(subject=error.url, reason=error.detail)
    advice = _ADVICE.get(error.failure, _NO_CONNECTION.format(url=error.url))
    return InventoryUnreachable(subject=error.url, reason=error.detail, advice=advice)


def refused(answer: HttpAnswer, hidden: str | None) -> InventoryRefused:
    """The error for an answer whose status is not 2xx.  `hidden` is the secret that was sent."""
    return refusal(answer.url, answer.status, answer.body, hidden)


def refusal(url: str, status: int, body: bytes, hidden: str | None) -> InventoryRefused:
    """The same from its parts."""
    fault = read_fault(body, hidden)
    return InventoryRefused(
        subject=url,
        status=status,
        reason=fault or describe_foreign(body, hidden),
        advice=_advise(status),
        # A proxy or a wrong URL answers 404 too; only the API's own word says that something is absent.
        is_api=fault is not None,
    )


def _advise(status: int) -> str:
    if status == 401:  # noqa: PLR2004 - HTTP's own numbers say more than names
        return "check [inventory.auth]: the user, its password or token, and their project"
    if status == 403:  # noqa: PLR2004 - as above
        return "give the user the role reader in the project admin or services"
    if status in {404, 405}:
        return "check [inventory] url: it must be the API's, for example http://controller:6385/v1"
    if status in {408, 425, 429, 502, 503, 504}:
        return "ask again later; if it lasts, check that sysinv-api runs on the active controller"
    if status >= 500:  # noqa: PLR2004 - as above
        return "look at /var/log/sysinv.log on the active controller"
    return "look at /var/log/sysinv.log on the active controller for the request it refused"


def read_fault(body: bytes, hidden: str | None = None) -> str | None:
    """The reason in the body of an error answer, on one line and harmless, the secret blotted out.

    sysinv encodes twice: ``{"error_message": "<JSON text with faultstring>"}``; Keystone's middleware
    and Keystone itself answer ``{"error": {"message": …}}``.  None when the body is none of these.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    found = _find_text(document) if isinstance(document, dict) else None
    return printable(_blot(found, hidden), MAX_REASON_CHARACTERS) if found else None


def _find_text(document: object, depth: int = 4) -> str | None:
    """The message inside nested objects and JSON texts."""
    if isinstance(document, str):
        if depth and document.lstrip().startswith("{"):
            try:
                return _find_text(msgspec.json.decode(document), depth - 1)
            except (msgspec.DecodeError, RecursionError):
                return document
        return document
    if isinstance(document, dict) and depth:
        for key in ("error_message", "faultstring", "error", "message", "title"):
            found = _find_text(document.get(key), depth - 1)
            if found:
                return found
    return None


def describe_foreign(body: bytes, hidden: str | None = None) -> str:
    """A body that is nothing we know: what it looks like, and its beginning."""
    text = _blot(body[: MAX_REASON_CHARACTERS * 4].decode("utf-8", "replace").strip(), hidden)
    if not text:
        return "no reason given"
    if text[:1] == "<":
        return f"a page of HTML or XML, {printable(text, 80)}"
    return printable(text, 120)


def _blot(text: str, hidden: str | None) -> str:
    """A server that echoes our token or password gives nothing away."""
    return text.replace(hidden, "[secret]") if hidden else text
