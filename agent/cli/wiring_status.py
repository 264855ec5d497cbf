"""Finds out what `agent status` shows: the state file, the daemon, and the outbox if it may be read.

Not here: what it looks like (`status_text`), the parts that report (`wiring_reporting`).
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from agent.core.delivery.errors import OutboxError
from agent.core.delivery.status import DaemonStatus, DeliveryStatus, StateFile, StatusDocument
from agent.host import facts
from agent.host.clock import HostClock
from agent.host.liveness import is_running
from agent.outbox.files import FILE_NAME
from agent.outbox.store import Outbox
from agent.state.file import StateUnreadable, read_state


def read_status(directory: Path) -> StatusDocument:
    """What the state file says, whether the daemon runs, and the outbox as it is now if it may be read."""
    problems: list[str] = []
    boot_id = facts.read_boot_id()
    state = None
    if not directory.is_dir():
        problems.append(f"there is no state directory {directory}: the agent never ran with it")
    else:
        try:
            state = read_state(directory)
        except StateUnreadable as error:
            problems.append(str(error))
    delivery, as_of = (None, None) if state is None else (state.delivery, state.delivery_as_of)
    try:
        current = _describe_outbox(directory, boot_id)
    except OutboxError as error:
        problems.append(str(error))
    else:
        if current is not None:
            delivery, as_of = current, datetime.now(UTC)
    return StatusDocument(
        state_directory=str(directory),
        hostname=None if state is None else state.hostname,
        daemon=_find_daemon(state, boot_id),
        written_at=None if state is None else state.written_at,
        audits=None if state is None else state.audits,
        delivery=delivery,
        delivery_as_of=as_of,
        problems=tuple(problems),
    )


def put_back(directory: Path) -> int:
    """Let the reports that were set aside wait again; returns how many.

    Raises:
        OutboxError: the outbox can't be changed.
    """
    path = directory / FILE_NAME
    try:
        is_there = path.exists()
    except OSError as error:
        raise OutboxError(subject=str(path), reason=error.strerror or str(error)) from error
    if not is_there:
        return 0
    with Outbox.open(path, max_bytes=0, new_id=uuid4()) as outbox:
        return outbox.put_back()


def _describe_outbox(directory: Path, boot_id: str | None) -> DeliveryStatus | None:
    """The queue as it is now; None = there is none, or only root may look.

    Raises:
        OutboxError: it should be readable and is not.
    """
    path = directory / FILE_NAME
    if not os.access(path, os.R_OK):
        return None
    with Outbox.open_for_reading(path) as outbox:
        return DeliveryStatus.of(outbox.load_state(), outbox.describe(), HostClock(boot_id).moment())


def _find_daemon(state: StateFile | None, boot_id: str | None) -> DaemonStatus:
    if state is None:
        return DaemonStatus(state="unknown")
    if state.daemon is None:
        return DaemonStatus(state="not_running")
    running = is_running(state.daemon, boot_id)
    if running is None:
        return DaemonStatus(state="unknown", pid=state.daemon.pid)
    return (
        DaemonStatus(state="running", pid=state.daemon.pid) if running else DaemonStatus(state="not_running")
    )
