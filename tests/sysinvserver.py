"""sysinv and Keystone on a real socket, replaying answers captured from the real ones.

Every answer is sent as bytes that a test can choose, so that a server can also be broken: slow, cut
short, endless, no HTTP at all.  Not here: any knowledge of what the client should do.
"""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

DATA = Path(__file__).parent / "data" / "sysinv"
HOST_UUID = "11111111-1111-4111-8111-111111111111"
HOST = "/v1/ihosts/controller-0"
HOST_FS = f"/v1/ihosts/{HOST_UUID}/host_fs"
ILVGS = f"/v1/ihosts/{HOST_UUID}/ilvgs"
CONTROLLER_FS = "/v1/controller_fs"
TOKENS = "/v3/auth/tokens"
DATE = "Tue, 01 Dec 2026 07:49:51 GMT"
JSON_HEADERS = {"Content-Type": "application/json", "Date": DATE}

_JOIN_SECONDS = 10.0
_POLL_SECONDS = 0.05


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sent."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    connection: int
    """Which connection it came over, counted from 1."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path


Writer = Callable[[socket.socket], None]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: status, headers and body, or whatever `write` sends instead (then the line is cut)."""

    status: int = 200
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(JSON_HEADERS))
    body: bytes = b""
    write: Writer | None = None

    def encode(self) -> bytes:
        """As HTTP; Content-Length fits the body unless it is given."""
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def captured(name: str) -> Reply:
    """The captured answer in the file whose name begins like that, byte for byte as it was sent."""
    (path,) = DATA.glob(f"{name}-*.json")
    response = json.loads(path.read_text())["response"]
    body = json.dumps(response["body"]).encode()
    # The captured length proves that the body is what the server sent, blanks included.
    assert len(body) == int(response["headers"]["Content-Length"]), path.name
    return Reply(status=response["status"], headers=response["headers"], body=body)


def captured_body(name: str) -> Any:
    """The decoded body of a captured answer, to be changed by a test."""
    return json.loads(captured(name).body)


def reply_json(document: object, status: int = 200, **headers: str) -> Reply:
    """An answer with this document."""
    return Reply(
        status=status,
        headers={**JSON_HEADERS, **headers},
        body=json.dumps(document).encode(),
    )


def bug_machine() -> dict[str, Sequence[Reply]]:
    """The captured answers about the bug's machine: docker recorded with 40 GiB."""
    return {
        HOST: [captured("05")],
        HOST_FS: [captured("06")],
        CONTROLLER_FS: [captured("09")],
        ILVGS: [captured("07")],
    }


class SysinvServer:
    """Answers each path from its own list; the last one of a list is repeated for ever."""

    def __init__(
        self, replies: Mapping[str, Sequence[Reply]] | None = None, *, context: ssl.SSLContext | None = None
    ) -> None:
        self.replies = {path: list(answers) for path, answers in (replies or {}).items()}
        self.requests: list[Request] = []
        self.is_ending = threading.Event()
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_POLL_SECONDS)
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Its URL, without a path."""
        return f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        """What was asked for, in order."""
        return [request.target for request in self.requests]

    def answer(self, path: str, *replies: Reply) -> None:
        """From now on answer so."""
        self.replies[path] = list(replies)

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_ending.set()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while not self.is_ending.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            number += 1
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(connection)
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        # Clients hang up whenever they like, and refuse certificates: that is what is tested.
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            if self._context is not None:
                connection = stack.enter_context(self._context.wrap_socket(connection, server_side=True))
            stream = stack.enter_context(connection.makefile("rb"))
            while (request := _read_request(stream, number)) is not None:
                self.requests.append(request)
                reply = self._choose(request)
                if reply.write is not None:
                    reply.write(connection)
                    return
                connection.sendall(reply.encode())
                if reply.headers.get("Connection") == "close":
                    return

    def _choose(self, request: Request) -> Reply:
        replies = self.replies.get(request.target) or self.replies.get(request.path)
        if not replies:
            return captured("17")
        return replies.pop(0) if len(replies) > 1 else replies[0]


def _read_request(stream: Iterable[bytes], number: int) -> Request | None:
    lines = iter(stream)
    first = next(lines, b"")
    if not first.strip() or not first.isascii() or first.count(b" ") != 2:
        return None
    method, target, _ = first.decode("ascii").split()
    headers = {}
    for line in lines:
        if not line.strip():
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", "0")))  # type: ignore[attr-defined] # a buffered file
    return Request(method=method, target=target, headers=headers, body=body, connection=number)


def send(*chunks: bytes) -> Reply:
    """Send these bytes and nothing more, then close."""

    def write(connection: socket.socket) -> None:
        for chunk in chunks:
            connection.sendall(chunk)

    return Reply(write=write)


def drip(server: SysinvServer, start: bytes, pause_seconds: float = 0.02) -> Reply:
    """Send this, and then one more byte again and again: a slow-loris that never ends by itself."""

    def write(connection: socket.socket) -> None:
        connection.sendall(start)
        while not server.is_ending.wait(pause_seconds):
            connection.sendall(b"a")

    return Reply(write=write)


def hang(server: SysinvServer) -> Reply:
    """Accept the request and never answer."""

    def write(_: socket.socket) -> None:
        server.is_ending.wait()

    return Reply(write=write)


def pour(start: bytes, size_bytes: int) -> Reply:
    """Send this, and then so many bytes of nothing."""
    chunk = bytes(1024 * 1024)

    def write(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range(size_bytes // len(chunk)):
            connection.sendall(chunk)

    return Reply(write=write)


class FakeMonotonic:
    """A clock that moves when it is told to, on top of the real one (deadlines stay real)."""

    def __init__(self) -> None:
        self.offset_seconds = 0.0

    def __call__(self) -> float:
        """Seconds, never backwards."""
        return time.monotonic() + self.offset_seconds
