"""sysinv's REST API as this agent uses it: authenticated reads of one object or one whole collection.

Only ever GET.  Not here: which objects (`sysinv`), what their fields mean (`sysinv_map`).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urljoin

import msgspec

from agent.core.errors import InventoryError
from agent.core.inventory_errors import InventoryGarbled, InventoryRefused
from agent.http.client import HttpClient
from agent.http.messages import Deadline, HttpAnswer, HttpError, origin_of, printable, safe_url
from agent.inventory.auth import Auth
from agent.inventory.faults import describe_foreign, refused, unreachable
from agent.inventory.row import Row
from agent.inventory.settings import TOKEN_HEADER

MAX_PAGES: Final = 50
"""sysinv pages by 1000 rows; a host has about ten."""

_HEADERS: Final = {
    "Accept": "application/json",
    # A proxy's copy of yesterday's rows would be judged as today's.
    "Cache-Control": "no-cache",
}
_UNAUTHORIZED: Final = 401


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """One whole collection, all pages, in the API's order."""

    url: str
    rows: tuple[Row, ...]
    date: datetime | None
    """The server's clock when it answered; None when it did not say."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One decoded answer."""

    url: str
    fields: Mapping[str, object]
    date: datetime | None


class SysinvApi:
    """Reads from one sysinv, within the deadline of one fetch."""

    def __init__(self, client: HttpClient, auth: Auth, base_url: str | None) -> None:
        self._client = client
        self._auth = auth
        self._base_url = None if base_url is None else versioned(base_url)
        self._found_url: str | None = None

    @property
    def origin(self) -> str:
        """Where it is, for people; before the catalogue was asked only that it will be."""
        url = self._base_url or self._found_url
        return "sysinv, from Keystone's catalogue" if url is None else safe_url(url)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def get(self, path: str, deadline: Deadline) -> Document:
        """Read one object.  `path` is below the version, with a leading slash.

        Raises:
            InventoryError: it is not available.
        """
        return self._get(f"{self._base(deadline)}{path}", deadline)

    def collect(self, path: str, key: str, deadline: Deadline) -> Rows:
        """Read all pages of a collection, whose rows stand under `key`.

        Raises:
            InventoryError: it is not available, or not completely.
        """
        url = f"{self._base(deadline)}{path}"
        first = url
        rows: list[Row] = []
        seen: set[str] = set()
        while True:
            seen.add(url)
            document = self._get(url, deadline)
            rows += _rows_of(document, key, already=len(rows))
            following = document.fields.get("next")
            if following is None:
                return Rows(url=safe_url(first), rows=tuple(rows), date=document.date)
            url = _next_url(document, url, following)
            if url in seen or len(seen) >= MAX_PAGES:
                raise InventoryGarbled(subject=safe_url(first), reason="its pages never end")

    def _base(self, deadline: Deadline) -> str:
        if self._base_url is not None:
            return self._base_url
        found = self._auth.endpoint(deadline)
        if found is None:
            raise InventoryError(subject="[inventory] url", reason="is not set, and there is no catalogue")
        self._found_url = versioned(found)
        return self._found_url

    def _get(self, url: str, deadline: Deadline) -> Document:
        answer, token = self._exchange(url, deadline)
        if answer.status == _UNAUTHORIZED and self._auth.renew():
            answer, token = self._exchange(url, deadline)
        if not 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP's success
            raise refused(answer, token)
        return Document(url=answer.url, fields=_decode(answer, token), date=answer.date)

    def _exchange(self, url: str, deadline: Deadline) -> tuple[HttpAnswer, str | None]:
        """The answer, and the token it was asked with."""
        shown = self._auth.headers(deadline)
        try:
            answer = self._client.request("GET", url, deadline=deadline, headers={**_HEADERS, **shown})
        except HttpError as error:
            raise unreachable(error) from None
        return answer, shown.get(TOKEN_HEADER)


def versioned(url: str) -> str:
    """The URL with the API's version, `/v1` unless it has one, and without a slash at the end."""
    bare = url.rstrip("/")
    return bare if re.search(r"/v[0-9]+\Z", bare) else f"{bare}/v1"


def is_absent(error: InventoryRefused) -> bool:
    """Whether sysinv says that what was asked for does not exist: 404, or 400 for an id it can't read."""
    return error.facts["status"] in {400, 404}


def _decode(answer: HttpAnswer, token: str | None) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(answer.body, type=dict[str, object])
    except msgspec.ValidationError:
        reason = "JSON that is no object"
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        kind = printable(answer.headers.get("content-type", "no type"), 40)
        start = describe_foreign(answer.body, token)
        reason = f"{len(answer.body)} bytes that are not JSON ({kind}): {start}" if answer.body else "nothing"
    raise InventoryGarbled(subject=answer.url, reason=f"answered {answer.status} with {reason}")


def _rows_of(document: Document, key: str, *, already: int) -> list[Row]:
    rows = document.fields.get(key)
    if not isinstance(rows, list):
        raise InventoryGarbled(subject=document.url, reason=f"the answer has no list {key!r}")
    for number, fields in enumerate(rows, start=already + 1):
        if not isinstance(fields, dict):
            raise InventoryGarbled(subject=document.url, reason=f"row {number} of {key} is not an object")
    return [
        Row(fields, url=document.url, number=number) for number, fields in enumerate(rows, start=already + 1)
    ]


def _next_url(document: Document, url: str, following: object) -> str:
    """The next page, if it is on the same server: our token goes nowhere else."""
    if not isinstance(following, str):
        raise InventoryGarbled(subject=document.url, reason="the link to its next page is not text")
    try:
        target = urljoin(url, following)
        is_same = origin_of(target) == origin_of(url)
    except ValueError:
        is_same = False
    if not is_same:
        raise InventoryGarbled(subject=document.url, reason="its next page is on another server")
    return target
