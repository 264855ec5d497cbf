"""The state directory and its two locks.

`state.lock` is held for moments (making or replacing a file), `deliver.lock` for as long as one process
delivers.  The kernel drops both with the process that holds them, however it ends.  Not here: the files
that are kept there (`outbox`, `file`).
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agent.core.delivery.errors import OutboxBusy, OutboxError

_PRIVATE: Final = 0o600
_LOCK_PAUSE_SECONDS: Final = 0.02


def make_state_directory(directory: Path) -> None:
    """Make it if it is not there: open to all, because `agent status` needs no root; its files are not.

    Raises:
        OutboxError: it can't be made.
    """
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o755)  # whatever the umask takes away
    except OSError as error:
        raise OutboxError(subject=str(directory), reason=describe(error)) from error


@contextmanager
def state_lock(directory: Path, *, timeout_seconds: float = 5.0) -> Iterator[None]:
    """Hold the lock under which files are made and replaced.

    Raises:
        OutboxBusy: somebody holds it for longer than the timeout.
        OutboxError: there can be no lock file.
    """
    path = directory / "state.lock"
    descriptor = _open_lock(path)
    try:
        end = time.monotonic() + timeout_seconds
        while not _try_lock(descriptor):
            if time.monotonic() >= end:
                raise OutboxBusy(subject=str(path), timeout_seconds=timeout_seconds)
            time.sleep(_LOCK_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)


class DeliveryLock:
    """The right to deliver, held by one process at a time."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "deliver.lock"

    @contextmanager
    def try_hold(self) -> Iterator[bool]:
        """Take it if it is free, without waiting; yields whether it is ours.

        Raises:
            OutboxError: there can be no lock file.
        """
        descriptor = _open_lock(self._path)
        try:
            yield _try_lock(descriptor)
        finally:
            os.close(descriptor)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    except OSError as error:
        raise OutboxError(subject=str(path), reason=describe(error)) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return False
        raise
    return True


def describe(error: OSError) -> str:
    """What the system said, without Python's decoration."""
    return (error.strerror or str(error)).lower()
