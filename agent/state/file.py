"""Reads and writes ``status.json`` in the state directory: replaced as a whole, readable by everybody.

Not here: what is in it (`core.delivery.status`).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from agent.core.delivery.errors import OutboxError
from agent.core.delivery.status import DeliveryStatus, ProcessIdentity, StateFile, update
from agent.core.report import AuditDocument
from agent.state.directory import describe, state_lock

FILE_NAME: Final = "status.json"
_MAX_BYTES: Final = 4 * 1024 * 1024
_READABLE: Final = 0o644


class StateUnreadable(Exception):
    """There is a state file, but nothing can be learned from it."""


def read_state(directory: Path) -> StateFile | None:
    """The state file; None = there is none (or no such directory).

    Raises:
        StateUnreadable: it can't be read, with the reason.
    """
    path = directory / FILE_NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{path}: {describe(error)}"
        raise StateUnreadable(msg) from error
    try:
        return msgspec.json.decode(data, type=StateFile)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"{path} is damaged: {error}"
        raise StateUnreadable(msg) from error


def write_audits(
    directory: Path,
    documents: Sequence[AuditDocument],
    *,
    written_at: datetime,
    delivery: DeliveryStatus | None,
    daemon: ProcessIdentity | None = None,
) -> None:
    """Write down the last audits; what other processes wrote about other groups stays.

    Raises:
        OutboxError: it could not be written; the earlier file is as it was.
    """
    with state_lock(directory):
        try:
            earlier = read_state(directory)
        except StateUnreadable:
            earlier = None  # it is replaced by what is known now
        state = update(earlier, documents, written_at=written_at, delivery=delivery, daemon=daemon)
        try:
            _replace(directory / FILE_NAME, msgspec.json.encode(state) + b"\n")
        except OSError as error:
            raise OutboxError(subject=str(directory), reason=describe(error)) from error


def _replace(path: Path, data: bytes) -> None:
    """Whoever reads sees the old file or the new one; a crash leaves at most one temporary file."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, _READABLE
        )
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _READABLE)  # whatever the umask says
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
