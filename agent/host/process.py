"""Runs LVM programs: several at once, one deadline, nothing left behind, and never a hang of our own.

A child that the kernel won't let die is remembered, and no other is started before it has ended: LVM
commands hung on a dead disk would otherwise pile up, one for every audit.
Not here: how a child is started (see `child`), what is run and what its ending means (see `lvm`).
"""

import contextlib
import errno
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Self

import msgspec

from agent.core.errors import LvmAborted, LvmMissing, LvmNotStarted, LvmStuck
from agent.host.child import Child, Command, interrupt_held, start

REPORT_MAX_BYTES: Final = 32 * 1024**2
"""1,000 LVs make half a megabyte: whatever prints this much is not reporting."""
MESSAGES_MAX_BYTES: Final = 256 * 1024
"""What is kept of stdout and stderr together; the rest is read and dropped."""
_OUT_OF_RESOURCES: Final = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_CHUNK_BYTES: Final = 64 * 1024
_PIPE_CHUNKS: Final = 16
"""So many chunks make 1 MiB, the largest pipe there is without privileges; the usual one is 64 KiB."""


class Ending(StrEnum):
    """How a child came to its end."""

    ITSELF = "itself"
    DEADLINE = "deadline"
    TOO_MUCH = "too_much"
    """It printed more than `REPORT_MAX_BYTES`."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a child left."""

    ending: Ending
    status: int | None
    """Exit status, minus the signal that killed it, or None when it has not ended."""
    report: bytes
    messages: bytes
    """stdout and stderr, the first `MESSAGES_MAX_BYTES`."""


class _Run:
    """One child while it is being watched."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.ending = Ending.ITSELF
        self.status: int | None = None
        self._report = bytearray()
        self._messages = bytearray()

    def is_going(self) -> bool:
        """Whether it still is to be watched."""
        return self.status is None and self.ending is Ending.ITSELF

    def read(self, descriptor: int) -> bool:
        """Take one chunk of what is there, without waiting; False at the end of it."""
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if descriptor == self.child.messages_fd:
            self._messages += chunk[: MESSAGES_MAX_BYTES - len(self._messages)]
        else:
            self._report += chunk
            if len(self._report) > REPORT_MAX_BYTES:
                self.ending = Ending.TOO_MUCH
        return bool(chunk)

    def finish(self) -> None:
        """The child has ended: take what it left in the pipes, end what it started, reap it.

        A grandchild may keep the pipes open and write for ever, so no end of file is waited for: what
        the child itself wrote can't be more than a pipe holds.
        """
        self.child.signal_group(signal.SIGKILL)
        for descriptor in (self.child.report_fd, self.child.messages_fd):
            for _ in range(_PIPE_CHUNKS):
                if self.ending is Ending.TOO_MUCH or not self.read(descriptor):
                    break
        self.status = self.child.reap()

    def outcome(self) -> Outcome:
        return Outcome(
            ending=self.ending,
            status=self.status,
            report=bytes(self._report),
            messages=bytes(self._messages),
        )


class Runner:
    """Runs commands, one call at a time; `abort` may come from any thread or signal handler.

    Close it when done with it: it holds two descriptors.
    """

    def __init__(
        self,
        *,
        start: Callable[[Command], Child] = start,
        term_grace_seconds: float = 1.0,
        kill_grace_seconds: float = 2.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """`meanwhile` is called while the children of each run are at work: they mostly wait."""
        self._start = start
        self._term_grace_seconds = term_grace_seconds
        self._kill_grace_seconds = kill_grace_seconds
        self._now = now
        self._meanwhile = meanwhile
        self._unreaped: dict[int, tuple[Child, datetime]] = {}
        self._is_aborted = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptors back.  No run may be going on."""
        # First forgotten, then closed: a signal may call `abort` in between, and numbers are used again.
        ends = (self._wake_read, self._wake_write)
        self._wake_read = self._wake_write = -1
        for end in ends:
            os.close(end)

    def abort(self) -> None:
        """End the run that is going on, at once, and refuse every later one."""
        self._is_aborted = True
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    def run(
        self, commands: Sequence[Command], *, subject: str, timeout_seconds: float
    ) -> tuple[Outcome, ...]:
        """Run the commands at once and wait for all of them, `timeout_seconds` in all.

        Raises:
            LvmMissing: there is no such program.
            LvmNotStarted: it can't be started now.
            LvmStuck: an earlier child can't be killed.
            LvmAborted: `abort` was called.
        """
        if self._is_aborted:
            raise LvmAborted(subject=subject)
        self._require_none_stuck(subject)
        runs: list[_Run] = []
        try:
            with interrupt_held():
                for command in commands:
                    runs.append(_Run(self._started(command)))  # noqa: PERF401 - each at once, for `_end`
            self._meanwhile()
            self._watch(runs, timeout_seconds, subject)
        finally:
            self._end(runs)
        return tuple(run.outcome() for run in runs)

    def _started(self, command: Command) -> Child:
        try:
            return self._start(command)
        except OSError as error:
            failure = LvmNotStarted if error.errno in _OUT_OF_RESOURCES else LvmMissing
            raise failure(subject=command.argv[0], reason=error.strerror or str(error)) from error

    def _require_none_stuck(self, subject: str) -> None:
        for pid, (child, since) in list(self._unreaped.items()):
            if child.reap() is None:
                raise LvmStuck(subject=subject, pid=pid, since=since.isoformat(timespec="seconds"))
            child.close()
            del self._unreaped[pid]

    def _watch(self, runs: Sequence[_Run], timeout_seconds: float, subject: str) -> None:
        """Read until every child has ended by itself, or it is time to end them."""
        deadline = time.monotonic() + timeout_seconds
        with selectors.PollSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            for run in runs:
                for descriptor in (run.child.exit_fd, run.child.report_fd, run.child.messages_fd):
                    selector.register(descriptor, selectors.EVENT_READ, run)
            while going := [run for run in runs if run.is_going()]:
                left_seconds = deadline - time.monotonic()
                if left_seconds <= 0:
                    for run in going:
                        run.ending = Ending.DEADLINE
                    return
                ready = selector.select(left_seconds)
                if self._is_aborted:
                    raise LvmAborted(subject=subject)
                for key, _ in ready:
                    _serve(selector, key)

    def _end(self, runs: Sequence[_Run]) -> None:
        """End what has not ended, first asking, then not; remember what even then does not."""
        steps = ((signal.SIGTERM, self._term_grace_seconds), (signal.SIGKILL, self._kill_grace_seconds))
        for number, grace_seconds in steps:
            alive = [run for run in runs if run.status is None]
            for run in alive:
                run.child.signal_group(number)
            _await_exits(alive, grace_seconds)
        for run in runs:
            if run.status is None:
                self._unreaped[run.child.pid] = (run.child, self._now())
            else:
                run.child.close()


def _serve(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Do what one ready descriptor asks for."""
    run = key.data
    if not isinstance(run, _Run) or not run.is_going():
        return
    if key.fd == run.child.exit_fd:
        run.finish()
    elif not run.read(key.fd):
        selector.unregister(key.fd)
    if not run.is_going():
        for descriptor in (run.child.exit_fd, run.child.report_fd, run.child.messages_fd):
            if descriptor in selector.get_map():
                selector.unregister(descriptor)


def _await_exits(runs: Sequence[_Run], grace_seconds: float) -> None:
    """Reap each of them as it ends, for so long."""
    deadline = time.monotonic() + grace_seconds
    with selectors.PollSelector() as selector:
        for run in runs:
            selector.register(run.child.exit_fd, selectors.EVENT_READ, run)
        while selector.get_map() and (left_seconds := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_seconds):
                key.data.finish()
                selector.unregister(key.fd)
