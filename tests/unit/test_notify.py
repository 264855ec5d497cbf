"""sd_notify on a real socket."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.host.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A listening socket and its name as NOTIFY_SOCKET would give it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.settimeout(10.0)
        if request.param == "path":
            name = str(tmp_path / "notify")
            server.bind(name)
        else:
            server.bind("")  # the kernel picks a free abstract name
            name = "@" + server.getsockname()[1:].decode()
        yield server, name


def test_what_is_said_arrives(listener: tuple[socket.socket, str]) -> None:
    server, name = listener
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": name}, os.getpid())
    notifier.ready()
    notifier.status("drift: docker\nundersized\t now")
    notifier.alive()
    notifier.stopping()
    assert [server.recv(4096).decode() for _ in range(4)] == [
        "READY=1",
        "STATUS=drift: docker undersized now",
        "WATCHDOG=1",
        "STOPPING=1",
    ]


def test_a_reload_carries_the_monotonic_time(listener: tuple[socket.socket, str]) -> None:
    server, name = listener
    before_usec = time.monotonic_ns() // 1000
    Notifier(name).reloading()
    state, at = server.recv(4096).decode().split("\n")
    assert state == "RELOADING=1"
    assert before_usec <= int(at.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_a_long_status_is_cut(listener: tuple[socket.socket, str]) -> None:
    server, name = listener
    Notifier(name).status("x" * 10_000)
    assert server.recv(65536).decode() == "STATUS=" + "x" * 400


@pytest.mark.parametrize("name", [None, "", "vsock:2:1234", "/nowhere/notify", "@nobody-listens-here"])
def test_nobody_listening_is_no_error(name: str | None) -> None:
    notifier = Notifier(name)
    notifier.ready()
    notifier.status("all is well")


def test_a_full_socket_does_not_make_us_wait(listener: tuple[socket.socket, str]) -> None:
    _, name = listener
    notifier = Notifier(name)
    for _ in range(5000):  # far more than any queue holds; nobody reads
        notifier.alive()


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"}, 30.0),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1500000"}, 1.5),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "-5"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "18446744073709551615"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "9" * 400}, None),
        ({"NOTIFY_SOCKET": "/x"}, None),
        ({"WATCHDOG_USEC": "30000000"}, None),
    ],
)
def test_the_watchdog_counts_only_when_it_is_ours(environment: dict[str, str], seconds: float | None) -> None:
    assert Notifier.from_environment(environment, 42).watchdog_seconds == seconds
