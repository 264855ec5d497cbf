"""Facts about the host that a document names: its name, when it booted, which boot this is.

Not here: LVM's version (see `lvm`).
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

BOOT_ID_FILE: Final = Path("/proc/sys/kernel/random/boot_id")


def read_hostname() -> str:
    """The kernel's name for this host."""
    return os.uname().nodename


def _ask_psutil() -> float:
    import psutil  # noqa: PLC0415 - start-up time: it costs as much as click

    return psutil.boot_time()


def read_boot_time(read_seconds: Callable[[], float] = _ask_psutil) -> datetime | None:
    """When the host booted (UTC, whole seconds); None when the kernel does not say, as in some containers.

    Moves when the wall clock is set, so it can't tell boots apart: `read_boot_id` does.
    """
    try:
        return datetime.fromtimestamp(int(read_seconds()), UTC)
    except (OSError, RuntimeError, ValueError, OverflowError):
        return None


def read_boot_id(path: Path = BOOT_ID_FILE) -> str | None:
    """The kernel's random id of this boot, new at every boot; None when it is not to be seen here."""
    try:
        return str(UUID(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        return None
