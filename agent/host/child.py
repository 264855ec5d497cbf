"""One LVM program as a child process: its own session, its own descriptor for the report.

The report comes on LVM_REPORT_FD, where no message can spoil it.  `Child` is the seam: tests put a child
there that can't be killed.  Not here: deadlines, reading and ending (see `process`).
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One program to run: absolute path first, environment complete."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


class Child(Protocol):
    """A started program."""

    @property
    def pid(self) -> int:
        """Process id, which is also its group's."""

    @property
    def report_fd(self) -> int:
        """Non-blocking: the report."""

    @property
    def messages_fd(self) -> int:
        """Non-blocking: stdout and stderr."""

    @property
    def exit_fd(self) -> int:
        """Readable once it has ended (a pidfd)."""

    def reap(self) -> int | None:
        """Its status when it has ended, else None; never waits."""

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to it and all it started; only before it is reaped."""

    def close(self) -> None:
        """Close the three descriptors."""


class _Process:
    """A real child."""

    def __init__(self, command: Command) -> None:
        with contextlib.ExitStack() as undo:
            self.report_fd, report_end = _pipe(undo)
            self.messages_fd, messages_end = _pipe(undo)
            self._process = subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=messages_end,
                stderr=subprocess.STDOUT,
                env={**command.environment, "LVM_REPORT_FD": str(report_end)},
                pass_fds=(report_end,),
                start_new_session=True,
                cwd="/",
            )
            self.pid = self._process.pid
            undo.callback(self._end_now)
            self.exit_fd = os.pidfd_open(self.pid)
            undo.pop_all()
        os.close(report_end)
        os.close(messages_end)

    def _end_now(self) -> None:
        """It runs, but can't be watched: out of descriptors, or a kernel without pidfd."""
        self.signal_group(signal.SIGKILL)
        self._process.wait()

    def reap(self) -> int | None:
        return self._process.poll()

    def signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def close(self) -> None:
        for descriptor in (self.report_fd, self.messages_fd, self.exit_fd):
            os.close(descriptor)


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    for end in ends:
        undo.callback(os.close, end)
    os.set_blocking(ends[0], False)
    return ends


def start(command: Command) -> Child:
    """Start a real child.

    Raises:
        OSError: there is no such program, or it can't be run.
    """
    return _Process(command)


@contextlib.contextmanager
def interrupt_held() -> Iterator[None]:
    """Let a Ctrl-C wait: between a child's start and its being remembered it would leave it behind.

    The children inherit that.  SIGUSR1 and SIGHUP are for us alone, but `systemctl kill --signal=USR1` sends
    to the whole service, and a `vgs` that died of it would make the volume group unreadable.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGUSR1, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
