"""Lives of a reporting process that end at a chosen instruction: forked, traced, killed with SIGKILL.

Reads one `Life` a line from stdin and answers with one `Death` a line.  It forks for each, so that two
hundred lives cost two hundred forks and one start of the interpreter.  Not here: the server, and what is
expected of the survivors (`integration/test_outbox_kill.py`).
"""

import os
import select
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import msgspec
from reports import make_document

from agent.host.clock import HostClock
from agent.http import session as http_session
from agent.http.client import HttpClient
from agent.http.messages import Transport
from agent.inventory.reports import ReportSender
from agent.outbox import store as outbox
from agent.outbox.keeper import OutboxKeeper
from agent.reporting.deliverer import Deliverer
from agent.reporting.reporter import Reporter
from agent.state.file import write_audits

if TYPE_CHECKING:
    from _typeshed import TraceFunction

Kind = Literal["line", "statement", "time", "none"]
STATES_A_LIFE = 3
PRELOADED = http_session.BoundedSession
"""Loaded lazily otherwise: once in each of two hundred lives."""
TRACED = ("outbox/", "reporting/", "state/", "inventory/reports")
"""Modules below agent/ whose lines count."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What one process does, and when it is killed."""

    directory: str
    url: str
    first_state: int
    kind: Kind
    point: float
    """Which line, which instruction of SQLite's machine, or which second."""


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended."""

    signal: int
    """0 = by itself."""
    done: int
    """States that it reported to the end."""
    points: int
    """Lines or instructions that it came through; 0 when it was killed."""


class Counter:
    """Kills the process at the chosen point."""

    def __init__(self, kill_at: float) -> None:
        self.count = 0
        self._kill_at = kill_at

    def step(self) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def trace_lines(counter: Counter) -> None:
    """Count each line of the traced modules before it runs."""
    room = str(Path(outbox.__file__).parent.parent)
    files: dict[str, bool] = {}

    def local(_: FrameType, event: str, __: object) -> "TraceFunction":
        if event == "line":
            counter.step()
        return local

    def enter(frame: FrameType, _: str, __: object) -> "TraceFunction | None":
        name = frame.f_code.co_filename
        if name not in files:
            files[name] = name.startswith(tuple(f"{room}/{start}" for start in TRACED))
        return local if files[name] else None

    sys.settrace(enter)


def live(life: Life, progress: int) -> None:
    """Report a few states, each twice: a change, and the same again."""
    counter = Counter(life.point if life.kind in {"line", "statement"} else 0)
    clock = HostClock("boot")
    directory = Path(life.directory)
    keeper = OutboxKeeper(directory, max_bytes=64 * 2**20, new_id=uuid4, now=lambda: datetime.now(UTC))
    client = HttpClient(Transport(connect_timeout_seconds=5, read_timeout_seconds=5))
    sender = ReportSender(client, url=life.url, token=None, now=lambda: datetime.now(UTC))
    deliverer = Deliverer(keeper=keeper, sender=sender, clock=clock, unit_random=lambda: 0.0)
    reporter = Reporter(keeper=keeper, deliverer=deliverer, clock=clock)
    if life.kind == "statement":
        keeper.current()._connection.set_progress_handler(lambda: counter.step(), 1)  # noqa: PLW0108 - returns None
    if life.kind == "line":
        trace_lines(counter)
    for state in range(life.first_state, life.first_state + STATES_A_LIFE):
        for _ in range(2):
            document = msgspec.structs.replace(make_document(docker_extents=state), audit_id=uuid4())
            reported = reporter.report([document], budget_seconds=20, at_once=True)
            assert not reported.is_lost, reported.documents[0].findings
            write_audits(
                directory, reported.documents, written_at=datetime.now(UTC), delivery=deliverer.describe()
            )
        os.write(progress, b".")
    keeper.close()
    sys.settrace(None)
    os.write(progress, b"%d" % counter.count)


def run(life: Life) -> Death:
    """Fork, let it live, and see how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            live(life, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    try:
        told = b""
        timeout = life.point if life.kind == "time" else None
        while True:
            ready, _, _ = select.select([reading], [], [], timeout)
            if not ready:
                os.kill(child, signal.SIGKILL)
                timeout = None
                continue
            chunk = os.read(reading, 4096)
            if not chunk:
                break
            told += chunk
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    ending = os.waitstatus_to_exitcode(status)
    if ending > 0:
        msg = f"the child failed with status {ending}"
        raise RuntimeError(msg)
    points = told.lstrip(b".")
    return Death(signal=-ending, done=told.count(b"."), points=int(points or b"0"))


def main() -> None:
    """Serve lives until stdin ends."""
    for line in sys.stdin.buffer:
        death = run(msgspec.json.decode(line, type=Life))
        sys.stdout.buffer.write(msgspec.json.encode(death) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
