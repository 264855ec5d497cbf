"""The daemon's life as a process: signals become messages, and the end is enforced when it takes too long.

A Python handler runs only when the main thread gets to its next instruction: a signal that arrives just
before a blocking call would wait for that call's end, an LVM deadline or an hour of sleep.  So the handlers
do nothing; the interpreter writes each signal's number into a pipe at once (set_wakeup_fd), and a thread
reads it from there.  Not here: work (`worker`).
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from agent.daemon.mailbox import AUDIT_FOR_SIGNAL, Message, Reload, Stop
from agent.daemon.ports import Inbox

END_SECONDS: Final = 3.0
"""So long an audit in progress may take to come to its end: a delivery may be waiting for a server."""
_REPEAT_SECONDS: Final = 0.25
"""An alarm just before a blocking call does not end it; the next one does."""
_MESSAGES: Final[dict[int, Message]] = {
    signal.SIGTERM: Stop(reason="SIGTERM"),
    signal.SIGINT: Stop(reason="SIGINT"),
    signal.SIGHUP: Reload(),
    signal.SIGUSR1: AUDIT_FOR_SIGNAL,
}


class EndedByForce(BaseException):
    """The end took too long.  Everything that matters is on disk: the outbox survives even SIGKILL."""


@contextlib.contextmanager
def signals_posted(
    inbox: Inbox, abort: Callable[[], None], *, end_seconds: float = END_SECONDS
) -> Iterator[None]:
    """While the block runs: SIGTERM and SIGINT end, SIGHUP reloads, SIGUSR1 audits now.

    `abort` ends a running LVM read; it is called in another thread.

    Raises:
        EndedByForce: within the block, `end_seconds` after the first signal to end.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(write_end, False)
    handlers = {**dict.fromkeys(_MESSAGES, _ignore), signal.SIGALRM: _enforce}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    wakeup_before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    thread = threading.Thread(
        target=_forward, args=(read_end, inbox, abort, end_seconds), name="signals", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup_before)
        os.close(write_end)
        thread.join()  # before the timer is stopped: the thread may be about to set it
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read_end)


def _forward(read_end: int, inbox: Inbox, abort: Callable[[], None], end_seconds: float) -> None:
    """Turn signal numbers into messages until the pipe's other end is closed."""
    is_ending = False
    while numbers := os.read(read_end, 64):
        for number in numbers:
            message = _MESSAGES.get(number)
            if message is None:
                continue
            inbox.post(message)
            if isinstance(message, Stop):
                abort()
                if not is_ending:
                    signal.setitimer(signal.ITIMER_REAL, end_seconds, _REPEAT_SECONDS)
                is_ending = True


def _ignore(_: int, __: FrameType | None) -> None:
    """Only a signal with a handler of Python's is written to the pipe."""


def _enforce(_: int, __: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise EndedByForce
