"""The outbox's statements, one function each, on a connection that the caller opened and guards.

Not here: transactions and error names (`store`, `schema`).
"""

import sqlite3
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from agent.core.delivery.queue import WAITING, Backlog, QueuedReport, QueueState, SetAsideReport
from agent.core.delivery.retry import Moment
from agent.core.report import AuditDocument, Repeats
from agent.outbox.schema import read_pragma

_LOG_ALLOWANCE_BYTES: Final = 512 * 1024
"""What the write-ahead log may take beside the database, out of the same limit."""
_ROW_OVERHEAD_BYTES: Final = 2 * 4096
"""What a row costs beside its body: indexes, and the half-used page at its end."""
_IDLE_PAGES: Final = 64
"""Empty pages kept for the next report; more are given back to the file system."""


class FoldableReport(msgspec.Struct, frozen=True, kw_only=True):
    """The newest report of a volume group: it waits, was never tried, and found the same state."""

    sequence: int
    is_transition: bool
    started_at: datetime
    repeats: Repeats | None


class NewReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report about to be stored."""

    document: AuditDocument
    body: bytes
    state_key: str
    is_transition: bool
    read_at: Moment


def read_meta(connection: sqlite3.Connection, name: str) -> str:
    """One remembered text.

    Raises:
        sqlite3.DatabaseError: it is not there, which only damage can explain.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        error = sqlite3.DatabaseError(f"{name} is missing")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    return str(row[0])


def _write_meta(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def read_state(connection: sqlite3.Connection) -> QueueState:
    """What the policy remembered; the beginning when it never did."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'queue'").fetchone()
    return QueueState() if row is None else msgspec.json.decode(row[0], type=QueueState)


def write_state(connection: sqlite3.Connection, state: QueueState) -> None:
    """Remember it for the policy."""
    _write_meta(connection, "queue", msgspec.json.encode(state).decode())


def find_foldable(connection: sqlite3.Connection, volume_group: str, key: str) -> FoldableReport | None:
    """The report that an equal new one may replace; None = there is none, or it was tried already."""
    row = connection.execute(
        "SELECT sequence, is_transition, started_at, repeats, state_key, attempts FROM reports"
        " WHERE volume_group = ? ORDER BY sequence DESC LIMIT 1",
        (volume_group,),
    ).fetchone()
    if row is None or row[4] != key or row[5] > 0:
        return None
    return FoldableReport(
        sequence=row[0],
        is_transition=bool(row[1]),
        started_at=datetime.fromisoformat(row[2]),
        repeats=None if row[3] is None else msgspec.json.decode(row[3], type=Repeats),
    )


def is_news(connection: sqlite3.Connection, document: AuditDocument, key: str) -> bool:
    """Whether the state differs from the last one stored for that volume group, delivered or not."""
    row = connection.execute(
        "SELECT state_key FROM states WHERE volume_group = ?", (document.volume_group_name,)
    ).fetchone()
    return row is None or row[0] != key


def make_room(connection: sqlite3.Connection, body_bytes: int, max_bytes: int) -> tuple[int, int]:
    """Drop the oldest reports without news until a body of that size fits.

    Returns how many were dropped, and by how many bytes it is still too much.
    """
    limit = max_bytes - _LOG_ALLOWANCE_BYTES - _ROW_OVERHEAD_BYTES - body_bytes
    dropped = 0
    while (excess := _used_bytes(connection) - limit) > 0:
        gone = connection.execute(
            "DELETE FROM reports WHERE sequence ="
            " (SELECT sequence FROM reports WHERE is_transition = 0 ORDER BY sequence LIMIT 1)"
        ).rowcount
        if not gone:
            break
        dropped += gone
    if dropped:
        total = int(read_meta(connection, "dropped_count")) + dropped
        _write_meta(connection, "dropped_count", str(total))
    return dropped, max(0, excess)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
    return pages * read_pragma(connection, "page_size")


def give_back_space(connection: sqlite3.Connection) -> None:
    """Shorten the file after an outage, so that its size says what it holds."""
    if read_pragma(connection, "freelist_count") > _IDLE_PAGES:
        connection.execute("PRAGMA incremental_vacuum").fetchall()


def insert(connection: sqlite3.Connection, report: NewReport) -> None:
    """Store it, and remember its number and its state for good."""
    document = report.document
    connection.execute(
        "INSERT INTO reports (sequence, audit_id, hostname, volume_group, state_key, is_transition,"
        " started_at, repeats, read_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.sequence,
            str(document.audit_id),
            document.host.hostname,
            document.volume_group_name,
            report.state_key,
            report.is_transition,
            document.started_at.isoformat(),
            None if document.repeats is None else msgspec.json.encode(document.repeats).decode(),
            msgspec.json.encode(report.read_at).decode(),
            report.body,
        ),
    )
    _write_meta(connection, "last_sequence", str(document.sequence))
    connection.execute(
        "INSERT OR REPLACE INTO states VALUES (?, ?)", (document.volume_group_name, report.state_key)
    )


def mark_head(connection: sqlite3.Connection) -> QueuedReport | None:
    """The oldest report that waits, marked as tried."""
    # All rows are fetched: a statement that is not finished would keep the transaction from ending.
    rows = connection.execute(
        "UPDATE reports SET attempts = attempts + 1 WHERE sequence ="
        " (SELECT sequence FROM reports WHERE set_aside_at IS NULL ORDER BY sequence LIMIT 1)"
        " RETURNING sequence, audit_id, hostname, volume_group, body, read_at"
    ).fetchall()
    if not rows:
        return None
    (row,) = rows
    return QueuedReport(
        sequence=row[0],
        audit_id=UUID(row[1]),
        hostname=row[2],
        volume_group_name=row[3],
        body=row[4],
        read_at=msgspec.json.decode(row[5], type=Moment),
    )


def delete(connection: sqlite3.Connection, sequence: int) -> None:
    """Forget a report."""
    connection.execute("DELETE FROM reports WHERE sequence = ?", (sequence,))


def set_aside(connection: sqlite3.Connection, sequence: int, reason: str, at: datetime) -> None:
    """Take it out of the queue.

    A server that refuses everything must not fill the disk: of refused reports without news only the
    latest of each volume group is kept.
    """
    connection.execute(
        "UPDATE reports SET set_aside_at = ?, reason = ? WHERE sequence = ?",
        (at.isoformat(), reason, sequence),
    )
    connection.execute(
        "DELETE FROM reports WHERE set_aside_at IS NOT NULL AND is_transition = 0 AND sequence < ?"
        " AND volume_group = (SELECT volume_group FROM reports WHERE sequence = ?)",
        (sequence, sequence),
    )


def put_back(connection: sqlite3.Connection) -> int:
    """Let everything set aside wait again; returns how many."""
    return connection.execute(
        "UPDATE reports SET set_aside_at = NULL, reason = NULL WHERE set_aside_at IS NOT NULL"
    ).rowcount


def find_fate(connection: sqlite3.Connection, audit_id: UUID) -> str | None:
    """`WAITING`, the reason why it was set aside, or None."""
    row = connection.execute(
        "SELECT coalesce(reason, ?) FROM reports WHERE audit_id = ?", (WAITING, str(audit_id))
    ).fetchone()
    return None if row is None else str(row[0])


def describe(connection: sqlite3.Connection) -> Backlog:
    """Count and list."""
    waiting = connection.execute(
        "SELECT count(*), coalesce(sum(length(body)), 0) FROM reports WHERE set_aside_at IS NULL"
    ).fetchone()
    oldest = connection.execute(
        "SELECT started_at, repeats FROM reports WHERE set_aside_at IS NULL ORDER BY sequence LIMIT 1"
    ).fetchone()
    aside = connection.execute(
        "SELECT sequence, audit_id, volume_group, started_at, set_aside_at, reason FROM reports"
        " WHERE set_aside_at IS NOT NULL ORDER BY sequence"
    ).fetchall()
    return Backlog(
        waiting_count=waiting[0],
        waiting_bytes=waiting[1],
        oldest_started_at=None if oldest is None else _first_started_at(*oldest),
        dropped_count=int(read_meta(connection, "dropped_count")),
        set_aside=tuple(
            SetAsideReport(
                sequence=row[0],
                audit_id=UUID(row[1]),
                volume_group_name=row[2],
                started_at=datetime.fromisoformat(row[3]),
                set_aside_at=datetime.fromisoformat(row[4]),
                reason=row[5],
            )
            for row in aside
        ),
    )


def _first_started_at(started_at: str, repeats: str | None) -> datetime:
    if repeats is None:
        return datetime.fromisoformat(started_at)
    return msgspec.json.decode(repeats, type=Repeats).first_started_at
