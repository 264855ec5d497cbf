"""Keeps one outbox open for a process, and begins a new one when the file is damaged or gone.

Not here: what an outbox does (`store`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from uuid import UUID

from agent.core.delivery import advice
from agent.core.delivery.errors import OutboxDamaged
from agent.core.models import Finding
from agent.outbox.files import FILE_NAME, FileIdentity, identify, set_aside
from agent.outbox.store import Outbox
from agent.state.directory import DeliveryLock, make_state_directory, state_lock


class OutboxKeeper:
    """The outbox of one state directory.  For one thread at a time."""

    def __init__(
        self,
        directory: Path,
        *,
        max_bytes: int,
        new_id: Callable[[], UUID],
        now: Callable[[], datetime],
    ) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME
        self._max_bytes = max_bytes
        self._new_id = new_id
        self._now = now
        self._outbox: Outbox | None = None
        self._identity: FileIdentity | None = None
        self._findings: list[Finding] = []

    def current(self) -> Outbox:
        """The outbox, opened when it is not open or the file was taken away.

        Raises:
            OutboxError: it can't be used.
        """
        if self._outbox is not None and not self._outbox.is_current:
            # SQLite would go on writing into a file that has no name any more.
            self.close()
            self._findings.append(advice.outbox_replaced(str(self._path), None))
        if self._outbox is None:
            try:
                self._outbox = self._open()
            except OutboxDamaged as error:
                self.replace(error)
                self._outbox = self._open()
        return self._outbox

    def replace(self, error: OutboxDamaged) -> None:  # noqa: ARG002 - the port's signature; the cause is said there
        """Set the damaged file aside, unless another process has done so; the next `current` begins anew.

        Raises:
            OutboxError: the directory does not allow it.
        """
        self.close()
        with state_lock(self._directory):
            aside = set_aside(self._path, self._identity, self._now())
        if aside is not None:
            self._findings.append(advice.outbox_replaced(str(self._path), str(aside)))

    def take_findings(self) -> tuple[Finding, ...]:
        """What happened to the file since this was asked last."""
        findings = tuple(self._findings)
        self._findings.clear()
        return findings

    def try_delivery_lock(self) -> AbstractContextManager[bool]:
        """The right to deliver, if nobody has it.

        Raises:
            OutboxError: there can be no lock file.
        """
        make_state_directory(self._directory)
        return DeliveryLock(self._directory).try_hold()

    def close(self) -> None:
        """Close the outbox; what it holds stays."""
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None

    def _open(self) -> Outbox:
        self._identity = identify(self._path)
        outbox = Outbox.open(self._path, max_bytes=self._max_bytes, new_id=self._new_id())
        self._identity = outbox.identity
        return outbox
