"""The outbox: reports wait here, in order, from before their first try until the inventory has them.

One SQLite file, shared by the daemon and `audit --once`.  Every method is one transaction, so a process
may be killed at any instruction.  A row that was tried is never changed again: the server may have it, and
the same Idempotency-Key must always carry the same bytes.
Not here: when to deliver and to whom (`agent.reporting`), the statements (`rows`), tables (`schema`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

import msgspec

from agent.core.delivery.fold import extend_repeats, state_key
from agent.core.delivery.queue import Appended, Backlog, QueuedReport, QueueState
from agent.core.delivery.retry import Moment
from agent.core.report import AuditDocument
from agent.outbox import rows
from agent.outbox.files import FileIdentity, identify
from agent.outbox.schema import named_errors, open_database, open_for_reading, transaction


class Outbox:
    """An open outbox.  For one thread at a time; closes with its context."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, max_bytes: int) -> None:
        self._connection = connection
        self._path = path
        self._max_bytes = max_bytes
        self.identity: FileIdentity | None = identify(path)
        """Which file is open: the name may come to mean another one."""

    @classmethod
    def open(cls, path: Path, *, max_bytes: int, new_id: UUID) -> Self:
        """Open it, or make it with that id.

        Raises:
            OutboxError: it can't be used; its kinds say why.
        """
        return cls(open_database(path, new_id), path, max_bytes=max_bytes)

    @classmethod
    def open_for_reading(cls, path: Path) -> Self:
        """Open one that exists, to look only.

        Raises:
            OutboxError: it can't be read.
        """
        return cls(open_for_reading(path), path, max_bytes=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what it holds stays."""
        self._connection.close()

    @property
    def is_current(self) -> bool:
        """Whether the name still means the file that is open: it may have been removed or replaced."""
        return self.identity is not None and identify(self._path) == self.identity

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with named_errors(self._path), transaction(self._connection):
            yield self._connection

    @contextmanager
    def _look(self) -> Iterator[sqlite3.Connection]:
        with named_errors(self._path):
            yield self._connection

    def append(self, document: AuditDocument, read_at: Moment) -> Appended:
        """Store a report, folding it with an equal one of its volume group that was never tried.

        A state change is always stored.  A report without news is refused when there is no room even
        after all older ones without news are gone.

        Raises:
            OutboxError: it was not stored.
        """
        key = state_key(document)
        with self._change() as connection:
            tail = rows.find_foldable(connection, document.volume_group_name, key)
            stored = msgspec.structs.replace(
                document,
                outbox_id=UUID(rows.read_meta(connection, "outbox_id")),
                sequence=int(rows.read_meta(connection, "last_sequence")) + 1,
                repeats=extend_repeats(tail.repeats, tail.started_at, document) if tail else None,
            )
            report = rows.NewReport(
                document=stored,
                body=msgspec.json.encode(stored),
                state_key=key,
                is_transition=tail.is_transition if tail else rows.is_news(connection, document, key),
                read_at=read_at,
            )
            if tail:
                rows.delete(connection, tail.sequence)
            dropped, excess = rows.make_room(connection, len(report.body), self._max_bytes)
            is_stored = report.is_transition or tail is not None or not excess
            if is_stored:
                rows.insert(connection, report)
        return Appended(
            document=stored if is_stored else document,
            is_stored=is_stored,
            excess_bytes=excess,
            dropped_count=dropped,
        )

    def take_head(self) -> QueuedReport | None:
        """The oldest report that waits, marked as tried before anybody sends it; None = nothing waits.

        Raises:
            OutboxError: it could not be marked, so it must not be sent.
        """
        with self._change() as connection:
            return rows.mark_head(connection)

    def remove(self, sequence: int, state: QueueState) -> None:
        """Forget a report that was delivered, and remember `state`, at once.

        Raises:
            OutboxError: it is still there.
        """
        with self._change() as connection:
            rows.delete(connection, sequence)
            rows.write_state(connection, state)
        with self._look() as connection:
            rows.give_back_space(connection)

    def set_aside(self, sequence: int, reason: str, at: datetime, state: QueueState) -> None:
        """Take a refused report out of the queue; earlier refused ones of its group without news go.

        Raises:
            OutboxError: it still waits.
        """
        with self._change() as connection:
            rows.set_aside(connection, sequence, reason, at)
            rows.write_state(connection, state)

    def put_back(self) -> int:
        """Let everything that was set aside wait again, in its old place; returns how many.

        Raises:
            OutboxError: nothing was changed.
        """
        with self._change() as connection:
            return rows.put_back(connection)

    def find_fate(self, audit_id: UUID) -> str | None:
        """`core.delivery.queue.WAITING`, the reason why it was set aside, or None: not here (any more).

        Raises:
            OutboxError: can't say.
        """
        with self._look() as connection:
            return rows.find_fate(connection, audit_id)

    def load_state(self) -> QueueState:
        """What was remembered last.

        Raises:
            OutboxError: can't say.
        """
        with self._look() as connection:
            return rows.read_state(connection)

    def save_state(self, state: QueueState) -> None:
        """Remember.

        Raises:
            OutboxError: the earlier one stays.
        """
        with self._change() as connection:
            rows.write_state(connection, state)

    def describe(self) -> Backlog:
        """What is in it.

        Raises:
            OutboxError: can't say.
        """
        with self._look() as connection:
            return rows.describe(connection)
