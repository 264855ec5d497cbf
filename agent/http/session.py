"""The requests session behind `client`: what is sent where, under which limits, and how much is read.

Not here: how a deadline reaches each byte (`limits`), anything about inventories.
"""

import errno
import http.client
import io
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.ssl_ import create_urllib3_context

from agent.http.causes import explain, unusable_file
from agent.http.limits import Limits, pool_classes
from agent.http.messages import Deadline, HttpAnswer, HttpError, HttpFailure, Transport, origin_of, safe_url

_CHUNK_BYTES = 64 * 1024
_MAX_REDIRECTS = 5
_REWRITING_REDIRECTS = frozenset({301, 302, 303})
"""requests repeats a POST as a GET on these: a report would look delivered and be lost."""


class _BoundedAdapter(HTTPAdapter):
    """Sends with the limits in force, reads the body at once, and refuses redirects to elsewhere."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        super().__init__(pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, *args: Any, **options: Any) -> None:
        options.update(_client_context(self._limits.transport))
        super().init_poolmanager(connections, maxsize, *args, **options)
        self.poolmanager.pool_classes_by_scheme = pool_classes(self._limits)

    def proxy_manager_for(self, proxy: str, **kwargs: object) -> urllib3.ProxyManager:
        is_new = proxy not in self.proxy_manager
        manager: urllib3.ProxyManager = super().proxy_manager_for(
            proxy, **kwargs, **_client_context(self._limits.transport)
        )
        if is_new and not proxy.lower().startswith("socks"):  # SOCKS brings connections of its own
            manager.pool_classes_by_scheme = pool_classes(self._limits)
        return manager

    def send(  # noqa: PLR0917 - requests' signature
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002, ARG002 - as above
        timeout: object = None,  # noqa: ARG002 - ours come from the deadline
        verify: bool | str = True,  # noqa: FBT001, FBT002 - as above
        cert: object = None,  # noqa: ARG002 - as above
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        url = safe_url(request.url or "")
        try:
            response = super().send(
                request,
                stream=True,
                timeout=(self._limits.connect_seconds(), self._limits.read_seconds()),
                verify=verify,
                proxies=proxies,
            )
            with response:
                body = self._read(response, url)
        except (
            requests.RequestException,
            urllib3.exceptions.HTTPError,
            OSError,
            http.client.HTTPException,
        ) as error:
            raise explain(error, url=url, transport=self._limits.transport) from None
        response.raw = io.BytesIO(body)
        _refuse_foreign_redirect(request, response, url)
        return response

    def _read(self, response: requests.Response, url: str) -> bytes:
        limit = self._limits.transport.max_body_bytes
        body = bytearray()
        for chunk in response.raw.stream(_CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > limit:
                raise HttpError(
                    HttpFailure.TOO_LARGE, url=url, detail=f"the answer is larger than {limit} bytes"
                )
        return bytes(body)


def _client_context(transport: Transport) -> dict[str, ssl.SSLContext]:
    """A TLS context with the client certificate; nothing without one.

    Raises:
        OSError: (ssl.SSLError too) the certificate or its key can't be used.
    """
    if transport.client_certificate_file is None:
        return {}
    context = create_urllib3_context()
    # Without a password OpenSSL would ask for one on the terminal and wait.
    context.load_cert_chain(transport.client_certificate_file, transport.client_key_file, password="")
    return {"ssl_context": context}


def _refuse_foreign_redirect(
    request: requests.PreparedRequest, response: requests.Response, url: str
) -> None:
    """Tokens and reports go to the server that was configured, and nowhere else."""
    if not response.is_redirect:
        return
    target = response.headers["location"]
    try:
        target = urljoin(request.url or "", target)
        is_same = origin_of(target) == origin_of(request.url or "")
    except ValueError:
        is_same = False
    if not is_same:
        raise HttpError(
            HttpFailure.REDIRECTED, url=url, detail=f"redirects to another server, {safe_url(target)[:200]}"
        )
    if request.method not in {"GET", "HEAD"} and response.status_code in _REWRITING_REDIRECTS:
        raise HttpError(
            HttpFailure.REDIRECTED,
            url=url,
            detail=f"redirects a {request.method} to {safe_url(target)[:200]}",
        )


class BoundedSession(requests.Session):
    """A requests session that keeps to a `Transport` and a `Deadline`; answers are read completely."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self.has_answered = False
        self._limits = Limits(transport)
        self.max_redirects = _MAX_REDIRECTS
        self.headers["User-Agent"] = transport.user_agent
        self.verify = True if transport.ca_file is None else str(transport.ca_file)
        # A callable, so that requests does not put a password from ~/.netrc over our token.
        self.auth = _keep_headers
        adapter = _load_trust(self._limits)
        for scheme in ("http://", "https://"):
            self.mount(scheme, adapter)

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """Everything sent inside ends with this deadline."""
        before, self._limits.deadline = self._limits.deadline, deadline
        try:
            yield
        finally:
            self._limits.deadline = before

    def exchange(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        """Send one request and read its answer.

        Raises:
            HttpError: there is no usable answer.
        """
        try:
            response = self.request(method, url, headers=dict(headers), data=body)
        except (requests.RequestException, ValueError) as error:
            raise explain(error, url=safe_url(url), transport=self._limits.transport) from None
        self.has_answered = True
        return HttpAnswer(
            url=safe_url(response.url),
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=response.content,
        )

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """Proxies from the environment, except towards loopback."""
        # An explicit `verify`, since $REQUESTS_CA_BUNDLE would override the session's (requests #3829).
        chosen = self.verify if verify is None else verify
        settings = super().merge_environment_settings(url, proxies, stream, chosen, cert)
        return {**settings, "proxies": {}} if _is_loopback(url) else settings

    def rebuild_proxies(self, prepared_request: requests.PreparedRequest, proxies: Any) -> Any:
        """The same for a redirect."""
        if _is_loopback(prepared_request.url or ""):
            return {}
        return super().rebuild_proxies(prepared_request, proxies)  # type: ignore[no-untyped-call] # no stub

    def rebuild_auth(self, prepared_request: Any, response: Any) -> None:
        """Nothing to do: redirects stay on one server, and ~/.netrc is not read."""


def _load_trust(limits: Limits) -> _BoundedAdapter:
    """The adapter, with our certificates looked at first: requests explains what is wrong with them badly."""
    transport = limits.transport
    try:
        if transport.ca_file is not None:
            _require_no_pipe(transport.ca_file)
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(transport.ca_file)
    except OSError as error:
        raise unusable_file("CA file", transport.ca_file, error) from None
    try:
        for path in (transport.client_certificate_file, transport.client_key_file):
            _require_no_pipe(path)
        return _BoundedAdapter(limits)
    except OSError as error:
        raise unusable_file(
            "client certificate or its key", transport.client_certificate_file, error
        ) from None


def _require_no_pipe(path: Path | None) -> None:
    """OpenSSL would wait for the writer of a named pipe, and no deadline reaches it there."""
    if path is not None and path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "not a regular file")


def _keep_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _is_loopback(url: str) -> bool:
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
