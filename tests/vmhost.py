"""The guest as a host: its volume group, its service, and the inventory that hears of both."""

import queue
import subprocess
import time
from pathlib import Path
from typing import Self

import msgspec
from reportserver import ReportServer, document_of
from sysinvserver import Reply, Request

from agent.core.report import AuditDocument

UNIT = "lvm-audit-agent.service"
CONFIG = Path("/etc/lvm-audit-agent/agent.toml")
STATE = Path("/var/lib/lvm-audit-agent")
SIZES = Path("/etc/lvm-audit-agent/sizes.toml")
PATIENCE_SECONDS = 60.0


def run(
    *command: str, check: bool = True, timeout_seconds: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a program of the guest; what it said is in the error when it fails."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_seconds,
        stdin=subprocess.DEVNULL,
    )
    if check and done.returncode != 0:
        message = f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}"
        raise AssertionError(message)
    return done


def show(name: str, unit: str = UNIT) -> str:
    """A property of the unit."""
    return run("systemctl", "show", "--value", "--property", name, unit).stdout.strip()


def wait_for(name: str, value: str) -> None:
    """Wait until a property of the unit has this value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (seen := show(name)) != value:
        assert time.monotonic() < deadline, f"{name} is {seen!r} and not {value!r}\n{journal()}"
        time.sleep(0.1)


def journal() -> str:
    """Everything the service logged."""
    run("journalctl", "--sync", check=False)
    return run("journalctl", "--no-pager", "--output=cat", "--unit", UNIT).stdout


def lv_extents(document: AuditDocument, name: str) -> int | None:
    """How large an LV is in a report; None = there is none."""
    return next((lv.extents for lv in document.logical_volumes or () if lv.name == name), None)


class Receiver:
    """The inventory's report API on a real socket, with the time at which each report came."""

    def __init__(self) -> None:
        self.server = ReportServer()
        self.server.after = self._note
        self._reports: queue.SimpleQueue[tuple[float, AuditDocument]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__(None, None, None)

    def _note(self, request: Request) -> Reply | None:
        at = time.monotonic()
        self._reports.put((at, msgspec.json.decode(document_of(request), type=AuditDocument)))
        return None

    def next(self) -> tuple[float, AuditDocument]:
        try:
            return self._reports.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            raise AssertionError(f"no report came\n{journal()}") from None

    def forget(self) -> None:
        while not self._reports.empty():
            self._reports.get()

    def wait_for_extents(self, name: str, extents: int | None) -> tuple[float, AuditDocument]:
        """The first report in which the LV has that size."""
        while True:
            at, document = self.next()
            if document.volume_group is not None and lv_extents(document, name) == extents:
                return at, document
