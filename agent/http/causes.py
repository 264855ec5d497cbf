"""What went wrong below an exchange, in words that hold no secret.

Exception texts of requests and urllib3 carry URLs with queries and proxies with passwords, so none of
them is ever shown: only the system's and OpenSSL's own words are.  Not here: what to do about it.
"""

import http.client
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import requests
import urllib3

from agent.http.messages import HttpError, HttpFailure, Transport, printable


def explain(error: BaseException, *, url: str, transport: Transport) -> HttpError:
    """The `HttpError` that stands for whatever requests, urllib3 or the system raised."""
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, HttpError):
            return cause
    for cause in causes:
        found = _explain_one(cause, transport)
        if found is not None:
            return HttpError(found[0], url=url, detail=found[1])
    return HttpError(HttpFailure.GARBLED, url=url, detail=f"no usable answer ({type(error).__name__})")


def unusable_file(what: str, path: Path | None, error: OSError) -> HttpError:
    """A certificate file of ours can't be loaded."""
    words = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    detail = f"the {what} can't be used ({printable(words or 'no reason given')})"
    return HttpError(HttpFailure.TLS, url=str(path), detail=detail)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it was made from, the innermost first."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        current = waiting.pop(0)
        if current in seen:
            continue
        seen.append(current)
        links = (*current.args, getattr(current, "reason", None), current.__cause__, current.__context__)
        waiting.extend(link for link in links if isinstance(link, BaseException))
    return reversed(seen)


def _explain_one(cause: BaseException, transport: Transport) -> tuple[HttpFailure, str] | None:  # noqa: PLR0911 - a table of types
    if isinstance(cause, ssl.SSLCertVerificationError):
        return HttpFailure.TLS, f"its certificate is not trusted: {printable(cause.verify_message)}"
    if isinstance(cause, ssl.SSLError):
        return HttpFailure.TLS, f"TLS failed: {printable(cause.reason or 'no reason given')}"
    if isinstance(cause, socket.gaierror):
        return HttpFailure.UNREACHABLE, f"the host name does not resolve ({printable(cause.strerror or '')})"
    if isinstance(cause, TimeoutError | requests.Timeout | urllib3.exceptions.TimeoutError):
        return HttpFailure.TIMEOUT, "no complete answer in time"
    if isinstance(cause, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError):
        return HttpFailure.CLOSED, "the connection was closed before an answer came"
    # ProtocolError wraps many things, which all come before it here; bare, it is a body cut between chunks.
    if isinstance(cause, http.client.IncompleteRead | urllib3.exceptions.ProtocolError):
        return HttpFailure.TRUNCATED, "the answer broke off"
    if isinstance(cause, urllib3.exceptions.DecodeError):
        return HttpFailure.GARBLED, "the answer does not decompress"
    if isinstance(cause, requests.TooManyRedirects):
        return HttpFailure.REDIRECTED, "redirects without end"
    if isinstance(cause, http.client.HTTPException | urllib3.exceptions.HeaderParsingError):
        return HttpFailure.GARBLED, f"the answer is not HTTP ({type(cause).__name__})"
    return _explain_system(cause, transport)


def _explain_system(cause: BaseException, transport: Transport) -> tuple[HttpFailure, str] | None:
    if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
        if cause.errno is not None:
            return HttpFailure.UNREACHABLE, f"no connection: {os.strerror(cause.errno)}"
        # requests says so in prose when a file was taken away since the session began.
        if transport.ca_file is not None and not transport.ca_file.exists():
            return HttpFailure.TLS, f"the CA file {transport.ca_file} does not exist"
    if isinstance(cause, requests.exceptions.InvalidProxyURL):
        return HttpFailure.UNREACHABLE, "the proxy that the environment names is not a usable URL"
    if isinstance(cause, _BAD_URL):
        return HttpFailure.UNREACHABLE, "not a usable URL"
    return None


_BAD_URL = (
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidSchema,
    urllib3.exceptions.LocationValueError,
    UnicodeError,
)
