"""The report half of docs/inventory-api.yaml on a real socket, with faults on demand.

Stores each Idempotency-Key once, in the order of arrival, and refuses a key that comes with another body.
Not here: validation beyond that; the tests check what was captured against the OpenAPI document.
"""

import gzip
import threading
from collections.abc import Callable
from urllib.parse import unquote

import msgspec
from sysinvserver import Reply, Request, SysinvServer, reply_json, send

from agent.core.report import AuditDocument

Fault = Callable[[Request], Reply | None]
"""Looks at a request and answers in the server's place, or lets it through (None)."""

RECEIVED_AT = "2026-12-01T09:00:00Z"


def error(status: int, code: str, message: str = "because", **headers: str) -> Reply:
    """An error as the API gives it."""
    return reply_json({"code": code, "message": message, "hint": None}, status=status, **headers)


def hang_up(_: Request) -> Reply:
    """Close the connection without an answer."""
    return send()


class ReportServer(SysinvServer):
    """Keeps what it gets."""

    def __init__(self, *, hosts: tuple[str, ...] = ("controller-0",)) -> None:
        super().__init__()
        self.hosts = hosts
        self.before: Fault = lambda _: None
        """Asked before anything is stored: the report is lost."""
        self.after: Fault = lambda _: None
        """Asked when it is stored: only the answer is lost."""
        self.stored: dict[str, bytes] = {}
        """Documents by key, in the order in which they came first."""
        self.conflicts: list[str] = []
        self._lock = threading.Lock()

    @property
    def documents(self) -> list[AuditDocument]:
        """What was stored, in order."""
        return [msgspec.json.decode(body, type=AuditDocument) for body in self.stored.values()]

    def _choose(self, request: Request) -> Reply:
        with self._lock:
            return self.before(request) or self._take(request)

    def _take(self, request: Request) -> Reply:
        if len(request.body) != int(request.headers["content-length"]):
            return send()  # the client was killed in the middle of it
        hostname = unquote(request.path.split("/")[3])
        if hostname not in self.hosts:
            return error(404, "unknown_host", f"no host named {hostname} is enrolled")
        key = request.headers["idempotency-key"]
        body = document_of(request)
        known = self.stored.setdefault(key, body)
        if known != body:
            self.conflicts.append(key)
            return error(409, "conflict", "this key was stored with another body")
        status = 201 if known is body else 200
        return self.after(request) or reply_json({"audit_id": key, "received_at": RECEIVED_AT}, status=status)


def document_of(request: Request) -> bytes:
    """The body after decompression."""
    is_compressed = request.headers.get("content-encoding") == "gzip"
    return gzip.decompress(request.body) if is_compressed else request.body
