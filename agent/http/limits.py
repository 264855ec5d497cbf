"""A total deadline for everything urllib3 reads, headers included.

requests alone can't do that: its read timeout starts anew with every byte a slow server drips.  So the
socket's timeout is set before each single read to what is left.  Not here: sessions and redirects.
"""

import http.client
import io
import socket

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from agent.http.messages import Deadline, Transport


class Limits:
    """The deadline now in force, shared by a session and its connections."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.deadline = Deadline(0.0)

    def connect_seconds(self) -> float:
        """For one connect.  Raises TimeoutError when the deadline is over."""
        return self._at_most(self.transport.connect_timeout_seconds)

    def read_seconds(self) -> float:
        """For one read of the socket.  Raises TimeoutError when the deadline is over."""
        return self._at_most(self.transport.read_timeout_seconds)

    def _at_most(self, seconds: float) -> float:
        remaining = self.deadline.remaining_seconds()
        if remaining <= 0:
            msg = "the deadline is over"
            raise TimeoutError(msg)
        return min(seconds, remaining)


class _BoundedReader(io.RawIOBase):
    """Reads a socket; each single read gets what is left of the whole deadline."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, limits: Limits) -> None:
        self._sock = sock
        self._raw = raw
        self._limits = limits

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int] | bytearray") -> int | None:  # type: ignore[override] # BufferedReader passes only these
        self._sock.settimeout(self._limits.read_seconds())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def pool_classes(limits: Limits) -> dict[str, type[HTTPConnectionPool]]:
    """Connection pools whose answers are read through `_BoundedReader`."""

    class Response(http.client.HTTPResponse):
        def __init__(
            self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
        ) -> None:
            super().__init__(sock, debuglevel, method, url)
            self.fp = io.BufferedReader(_BoundedReader(sock, self.fp.detach(), limits))

    class Plain(HTTPConnection):
        response_class = Response

    class Secure(HTTPSConnection):
        response_class = Response

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}
