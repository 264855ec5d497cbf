"""The real daemon as a process, with a real notify socket and a real HTTP server around it."""

import os
import queue
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from fakelvm import FakeLvm
from reportserver import ReportServer, document_of
from sysinvserver import Reply, Request

from agent.core.report import AuditDocument

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 20.0
"""How long anything may take before the test fails; no test waits for it to pass."""


class RunningDaemon:
    """`agent run` with fake LVM programs; ended by its context, whatever happens.

    `lvm_system_directory` gives it the real programs instead, with that LVM_SYSTEM_DIR.
    """

    def __init__(
        self,
        directory: Path,
        *,
        configuration: str = "",
        watchdog_seconds: float | None = None,
        lvm_system_directory: Path | None = None,
    ) -> None:
        self.directory = directory
        self.lvm = FakeLvm(directory)
        self.lvm.serve("bug-healthy")
        self.server = ReportServer()
        self.reports: queue.SimpleQueue[AuditDocument] = queue.SimpleQueue()
        self.server.after = self._note
        self.configuration_file = directory / "agent.toml"
        self.configuration = configuration
        self.log_file = directory / "log"
        self._watchdog_seconds = watchdog_seconds
        self._lvm_system_directory = lvm_system_directory
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind("")
        self._notify.settimeout(PATIENCE_SECONDS)
        self.process: subprocess.Popen[bytes] | None = None

    def _note(self, request: Request) -> Reply | None:
        self.reports.put(msgspec.json.decode(document_of(request), type=AuditDocument))
        return None

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()  # it ends its children; nobody does after a SIGKILL
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._notify.close()
        self.server.__exit__(kind, error, trace)

    def configure(self, configuration: str = "", **keys: str) -> None:
        """Write the configuration; `configuration` comes on top of what every test needs."""
        self.configuration_file.write_text(
            f"""
            [agent]
            hostname = "controller-0"
            state_directory = "{self.directory}/state"
            [lvm]
            directory = "{"/usr/sbin" if self._lvm_system_directory else self.lvm.directory}"
            timeout_seconds = {keys.get("timeout_seconds", "30")}
            [udev]
            enabled = false
            [report]
            url = "{self.server.url}/v1"
            {configuration or self.configuration}
            """
        )

    def start(self, *, stderr: int | None = None) -> None:
        """`stderr` None = the log file."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "NOTIFY_SOCKET": "@" + self._notify.getsockname()[1:].decode(),
        }
        if self._lvm_system_directory is not None:
            environment["LVM_SYSTEM_DIR"] = str(self._lvm_system_directory)
        if self._watchdog_seconds is not None:
            environment["WATCHDOG_USEC"] = str(int(self._watchdog_seconds * 1_000_000))
        for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
            if name in os.environ:
                environment[name] = os.environ[name]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agent", "run", "--config", str(self.configuration_file)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log if stderr is None else stderr,
                cwd=ROOT,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(PATIENCE_SECONDS)

    def hear(self) -> str:
        """The next thing that it tells the service manager."""
        return self._notify.recv(4096).decode()

    def hear_until(self, beginning: str) -> list[str]:
        """Everything up to and with the first message that begins so."""
        heard = [self.hear()]
        while not heard[-1].startswith(beginning):
            heard.append(self.hear())
        return heard

    def next_report(self) -> AuditDocument:
        return self.reports.get(timeout=PATIENCE_SECONDS)

    def log_lines(self) -> list[dict[str, object]]:
        return [msgspec.json.decode(line) for line in self.log_file.read_bytes().splitlines()]

    def log_events(self) -> list[object]:
        return [line["event"] for line in self.log_lines()]
