"""Tells the service manager how we are: sd_notify(3) over a datagram socket, nothing else.

Does nothing when nobody listens, so that the daemon runs by hand as well.  Not here: deciding when we
are ready or well (`agent.daemon`).
"""

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from typing import Final, Self

_STATUS_MAX_CHARACTERS: Final = 400
_USEC_INFINITY: Final = 2**64 - 1


class Notifier:
    """A client of the notify socket.  A lost message is never an error: there is nobody else to tell."""

    def __init__(self, address: str | None, *, watchdog_seconds: float | None = None) -> None:
        self._address = _to_socket_address(address)
        self._watchdog_seconds = watchdog_seconds

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], pid: int) -> Self:
        """What the service manager told the process `pid`; a watchdog meant for another one is not ours."""
        is_ours = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        watchdog_seconds = _to_seconds(environment.get("WATCHDOG_USEC", "")) if is_ours else None
        return cls(environment.get("NOTIFY_SOCKET"), watchdog_seconds=watchdog_seconds)

    @property
    def watchdog_seconds(self) -> float | None:
        """We are killed when we stay silent for so long; None = nobody watches."""
        return self._watchdog_seconds if self._address is not None else None

    def ready(self) -> None:
        """Start-up or reload is through."""
        self._send("READY=1")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it.  The time tells systemd >= 253 which reload it is."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The end begins."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Push the watchdog's deadline back."""
        self._send("WATCHDOG=1")

    def status(self, line: str) -> None:
        """What `systemctl status` shows."""
        shown = " ".join(line.split())
        self._send(f"STATUS={shown[:_STATUS_MAX_CHARACTERS]}")

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        # Never wait: a service manager that does not read must not stop the audits.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
        ):
            channel.sendto("\n".join(assignments).encode(), socket.MSG_DONTWAIT, self._address)


def _to_seconds(usec: str) -> float | None:
    """Nobody watches with a limit of nothing, nor for more than 64 bits of µs (sd_watchdog_enabled(3))."""
    try:
        limit_usec = int(usec)
    except ValueError:
        return None
    return limit_usec / 1_000_000 if 0 < limit_usec < _USEC_INFINITY else None


def _to_socket_address(address: str | None) -> bytes | None:
    """The kernel's form; '@' stands for the NUL byte of the abstract namespace.  Other kinds are ignored."""
    if not address or address[0] not in "@/":
        return None
    return os.fsencode(address if address[0] == "/" else f"\0{address[1:]}")
