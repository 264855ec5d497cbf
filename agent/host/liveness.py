"""Whether a process that wrote its name down still runs.  Not here: who writes it."""

import os
from pathlib import Path
from typing import Final

from agent.core.delivery.status import ProcessIdentity

_START_TICKS: Final = 22 - 3
"""Index of field 22 behind the name, which ends with the last closing parenthesis (proc_pid_stat(5))."""


def identify_self(boot_id: str | None) -> ProcessIdentity:
    """This process, told from any later one with its pid.

    Raises:
        OSError: /proc is not there.
    """
    return ProcessIdentity(pid=os.getpid(), start_ticks=_read_start_ticks(os.getpid()), boot_id=boot_id)


def is_running(process: ProcessIdentity, boot_id: str | None) -> bool | None:
    """Whether it runs; None = can't be told."""
    if process.boot_id is not None and boot_id is not None and process.boot_id != boot_id:
        return False
    try:
        return _read_start_ticks(process.pid) == process.start_ticks
    except FileNotFoundError:
        # With hidepid even running processes look absent to others.
        return False if Path("/proc/1/stat").exists() else None
    except ProcessLookupError:
        return False
    except (OSError, ValueError, IndexError):
        return None


def _read_start_ticks(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return int(stat.rpartition(")")[2].split()[_START_TICKS])
