"""The outbox's database file: made private, told from another of its name, set aside when damaged.

Not here: anything SQLite (`schema`), the directory and its locks (`agent.state.directory`).
"""

import os
import stat
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from agent.core.delivery.errors import OutboxError
from agent.state.directory import describe

FILE_NAME: Final = "outbox.sqlite3"
_SIDE_FILES: Final = ("-wal", "-shm")
_PRIVATE: Final = 0o600

FileIdentity = tuple[int, int]
"""Device and inode: whether a name still means the same file."""


def make_private(path: Path) -> None:
    """Make sure the database file exists and is for its owner only; SQLite gives its side files that mode.

    Raises:
        OutboxError: it can't be made, or is no regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise OutboxError(subject=str(path), reason="it is no regular file")
            if mode & 0o077:
                os.fchmod(descriptor, _PRIVATE)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutboxError(subject=str(path), reason=describe(error)) from error


def identify(path: Path) -> FileIdentity | None:
    """Which file the name means now; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(path: Path, damaged: FileIdentity | None, now: datetime) -> Path | None:
    """Rename a damaged database with its side files; None when another process has done it already.

    The caller holds the state lock.  The database goes first: a crash in between leaves a log without a
    database, which SQLite deletes when it finds a new, empty one.  The other way round the next start
    would see the database without its latest commits, and give out a sequence number twice.

    Raises:
        OutboxError: the directory does not allow it.
    """
    if damaged is None or identify(path) != damaged:
        return None
    target = _free_name(path, now)
    try:
        path.rename(target)
        for suffix in _SIDE_FILES:
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{target}{suffix}")
    except OSError as error:
        raise OutboxError(subject=str(path), reason=f"damaged, and {describe(error)}") from error
    return target


def _free_name(path: Path, now: datetime) -> Path:
    number = 1
    while True:
        name = path.with_name(f"{path.name}.corrupt-{now:%Y%m%dT%H%M%SZ}-{number}")
        if not any(os.path.lexists(f"{name}{suffix}") for suffix in ("", *_SIDE_FILES)):
            return name
        number += 1
