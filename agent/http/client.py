"""One HTTP exchange, bounded in every way: the only door to the network for inventory and reports.

`HttpClient` sends a request and hands back the whole answer, or raises one `HttpError` that says what
went wrong in a word.  Importing this costs nothing: `requests` is loaded with the first exchange
(`session`).  Not here: what the answers mean, tokens, retries over time.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agent.http.messages import Deadline, HttpAnswer, HttpError, HttpFailure, Transport

if TYPE_CHECKING:
    from agent.http.session import BoundedSession


class HttpClient:
    """Exchanges requests for answers over kept-alive connections.  For one thread at a time.

    Redirects are followed within one scheme, host and port; proxies are taken from the environment as
    requests does, except towards loopback; ~/.netrc is never read.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._session: BoundedSession | None = None

    def request(
        self,
        method: str,
        url: str,
        *,
        deadline: Deadline,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:
        """Send one request and read the whole answer, at the latest when `deadline` ends.

        A kept-alive connection that the server has just given up is replaced once, if the request may
        be repeated: a read, or one that carries an Idempotency-Key.

        Raises:
            HttpError: there is no usable answer.
        """
        headers = headers or {}
        repeatable = method in {"GET", "HEAD"} or "Idempotency-Key" in headers
        with self.within(deadline) as session:
            was_used = session.has_answered
            try:
                return session.exchange(method, url, headers=headers, body=body)
            except HttpError as error:
                if not (was_used and repeatable and error.failure is HttpFailure.CLOSED):
                    raise
                return session.exchange(method, url, headers=headers, body=body)

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator["BoundedSession"]:
        """The requests session below, for a library that wants one; bounded like everything here."""
        if self._session is None:
            from agent.http.session import BoundedSession  # noqa: PLC0415 - slow to load

            self._session = BoundedSession(self._transport)
        with self._session.within(deadline):
            yield self._session

    def close(self) -> None:
        """End all connections; the next request opens new ones."""
        if self._session is not None:
            self._session.close()
            self._session = None
