"""The outbox's database: opening it, its tables, and SQLite's failures in the agent's words.

WAL with `synchronous=FULL`: every commit reaches the disk before the first try to send.  `NORMAL` would
survive kill -9 as well, but a power failure could take back a commit, and with it a sequence number that
the inventory has already seen.  One commit costs one fsync, once a minute.
Not here: what is stored when (`store`), the files around it (`files`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from agent.core.delivery.errors import OutboxBusy, OutboxDamaged, OutboxError, OutboxForeign, OutboxNewer
from agent.outbox.files import make_private
from agent.state.directory import make_state_directory, state_lock

SCHEMA_VERSION: Final = 1
_APPLICATION_ID: Final = 0x4C564D41  # "LVMA"
BUSY_TIMEOUT_SECONDS: Final = 5.0
_WAL_PAGES: Final = 64
"""The write-ahead log is folded into the database every 256 KiB, so that both stay below one limit."""

_TABLES: Final = (
    """CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE reports (
        sequence INTEGER PRIMARY KEY,
        audit_id TEXT NOT NULL,
        hostname TEXT NOT NULL,
        volume_group TEXT NOT NULL,
        state_key TEXT NOT NULL,
        is_transition INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        started_at TEXT NOT NULL,
        repeats TEXT,
        read_at TEXT NOT NULL,
        set_aside_at TEXT,
        reason TEXT,
        body BLOB NOT NULL) STRICT""",
    """CREATE TABLE states (volume_group TEXT PRIMARY KEY, state_key TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE INDEX reports_without_news ON reports (is_transition, sequence)""",
    """CREATE INDEX reports_of_group ON reports (volume_group, sequence)""",
    """CREATE INDEX reports_waiting ON reports (sequence) WHERE set_aside_at IS NULL""",
)

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY_CODE: Final = 0xFF


def open_database(path: Path, new_id: UUID) -> sqlite3.Connection:
    """Open the outbox, making it first if it is not there; `new_id` becomes its id then.

    Raises:
        OutboxDamaged: the file is no database; nothing was changed.
        OutboxNewer, OutboxForeign: it is not ours to touch; nothing was changed.
        OutboxError: anything else, with SQLite's reason.
    """
    make_state_directory(path.parent)
    make_private(path)
    with named_errors(path):
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
        try:
            _prepare(connection, path, new_id)
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open an outbox that is there, to look only.

    Raises:
        OutboxError: and its kinds, as `open_database`.
    """
    if not path.is_file():  # SQLite would wait for ever for a writer of a named pipe
        raise OutboxError(subject=str(path), reason="it is no regular file")
    with named_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            uri=True,
        )
        try:
            _check_begun(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the agent's; values that can't be read are damage too.

    Raises:
        OutboxError: and its kinds.
    """
    try:
        yield
    except (msgspec.DecodeError, ValueError) as error:
        raise OutboxDamaged(subject=str(path), reason=f"unreadable value: {error}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
        if code in _DAMAGED:
            raise OutboxDamaged(subject=str(path), reason=str(error)) from error
        if code in _LOCKED:
            raise OutboxBusy(subject=str(path), timeout_seconds=BUSY_TIMEOUT_SECONDS) from error
        raise OutboxError(subject=str(path), reason=str(error)) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the write lock is taken at once, so that nothing read inside can change meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors (a full disk, for one).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """One of SQLite's numbers about this database."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _prepare(connection: sqlite3.Connection, path: Path, new_id: UUID) -> None:
    version = _check_identity(connection, path)
    if version == 0:
        # Several processes may find an empty file at once, and switching to WAL honours no time-out.
        with state_lock(path.parent, timeout_seconds=BUSY_TIMEOUT_SECONDS):
            _create(connection, path, new_id)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit={_WAL_PAGES * 4096}")
    connection.execute("PRAGMA trusted_schema=OFF")


def _create(connection: sqlite3.Connection, path: Path, new_id: UUID) -> None:
    """Make the tables in one transaction: whoever dies in it leaves an empty file, as found."""
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    with transaction(connection):
        if _check_identity(connection, path) != 0:
            return
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('outbox_id', ?)", (str(new_id),))
        connection.execute("INSERT INTO meta VALUES ('last_sequence', '0')")
        connection.execute("INSERT INTO meta VALUES ('dropped_count', '0')")
        connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _check_begun(connection: sqlite3.Connection, path: Path) -> None:
    if _check_identity(connection, path) == 0:
        raise OutboxError(subject=str(path), reason="it holds nothing yet")


def _check_identity(connection: sqlite3.Connection, path: Path) -> int:
    """The format's version; 0 = an empty file."""
    application_id = read_pragma(connection, "application_id")
    version = read_pragma(connection, "user_version")
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application_id != _APPLICATION_ID and (application_id or version or tables):
        raise OutboxForeign(subject=str(path))
    if version > SCHEMA_VERSION:
        raise OutboxNewer(subject=str(path), found=version, known=SCHEMA_VERSION)
    return version
