"""The daemon as a process on real LVM: memory, start, CPU; and from `lvextend` to the report, in a guest.

Not here: what runs in the guest (`bench_guest`).
"""

import functools
import json
import os
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import trustme
from bench_bed import Bed, Beds
from bench_table import ROOT, Figure, Unmeasured, processor_ms, resident_kib
from sysinvserver import TOKENS, SysinvServer, bug_machine, captured_body, reply_json
from vmhost import Receiver

_BARE_IMPORTS = "import requests, pyudev, apscheduler, structlog"
_HOSTNAME = "controller-0"
_PATIENCE_SECONDS = 60.0
_INTERVAL_SECONDS = 60.0
_REST_SECONDS = 1.0
"""After an audit, until it does nothing but wait."""
_MIB_KIB = 1024


class Daemon:
    """`agent run` on a bed, as a service manager runs it, with an inventory that hears of every audit."""

    def __init__(self, bed: Bed, directory: Path, *, inventory: str) -> None:
        self.receiver = Receiver()
        self._bed = bed
        self._directory = directory
        self._inventory = inventory
        self._parts = ExitStack()
        self._notify = self._parts.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self._notify.bind("")
        self._notify.settimeout(_PATIENCE_SECONDS)
        self.start_ms = 0.0

    def __enter__(self) -> Self:
        self._parts.enter_context(self.receiver)
        configuration = self._directory / "agent.toml"
        configuration.write_text(
            f"""
            [agent]
            hostname = "{_HOSTNAME}"
            state_directory = "{self._directory}/state"
            [audit]
            interval_seconds = 3600
            volume_groups = ["{self._bed.group}"]
            [report]
            url = "{self.receiver.server.url}/v1"
            {self._inventory}
            """
        )
        environment = {**self._bed.lvm.environment, "NOTIFY_SOCKET": "@" + self._address}
        environment["CREDENTIALS_DIRECTORY"] = str(self._directory)
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent", "run", "--config", str(configuration)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self._directory / "log").open("wb"),
        )
        self._parts.callback(self._end)
        self._hear("READY=1")
        self.start_ms = (time.perf_counter() - started) * 1000
        self.receiver.next()
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.close()

    @property
    def _address(self) -> str:
        return str(self._notify.getsockname()[1:].decode())

    def _hear(self, beginning: str) -> None:
        while not self._notify.recv(4096).decode().startswith(beginning):
            pass

    def _end(self) -> None:
        self.process.terminate()
        self.process.wait(_PATIENCE_SECONDS)

    def audit(self) -> None:
        """Have it audit, and wait until that is reported and it has nothing left to do."""
        self._drain()
        self.process.send_signal(signal.SIGUSR1)
        self.receiver.next()
        self._hear("STATUS=")

    def _drain(self) -> None:
        self._notify.settimeout(0.0)
        try:
            while self._notify.recv(4096):
                pass
        except BlockingIOError:
            self._notify.settimeout(_PATIENCE_SECONDS)

    def children_ms(self) -> float:
        """CPU of its children that have ended, in the kernel's steps of 10 ms."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[13]) + int(fields[14])) * 1000 / os.sysconf("SC_CLK_TCK")


def file_inventory(bed: Bed) -> str:
    """The configuration for recorded sizes from a file."""
    return f'[inventory]\nkind = "file"\npath = "{bed.record}"'


def open_platform(parts: ExitStack, directory: Path) -> str:
    """A sysinv and a Keystone behind TLS; returns the configuration that uses them."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = parts.enter_context(SysinvServer(bug_machine(), context=context))
    token = captured_body("keystone-02")
    token["token"]["expires_at"] = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%S}.000000Z"
    server.answer(TOKENS, reply_json(token, 201, **{"X-Subject-Token": "token"}))
    (directory / "password").write_text("secret\n")
    return f"""[inventory]
        kind = "sysinv"
        url = "{server.url}"
        ca_file = "{directory}/ca.pem"
        [inventory.auth]
        kind = "keystone"
        url = "{server.url}"
        username = "lvagent"
        password_file = "password"
        """


def measure_memory(bed: Bed, *, audits: int, has_platform: bool) -> float:
    """MiB of the daemon at rest after so many audits."""
    with tempfile.TemporaryDirectory(prefix="agent-bench-") as name, ExitStack() as parts:
        directory = Path(name)
        inventory = open_platform(parts, directory) if has_platform else file_inventory(bed)
        with Daemon(bed, directory, inventory=inventory) as daemon:
            for _ in range(audits):
                daemon.audit()
            return resident_kib(daemon.process.pid) / _MIB_KIB


def measure_start(bed: Bed, *, runs: int) -> tuple[float, float]:
    """Median milliseconds of the bare imports as a program, and of the daemon until READY, interleaved."""
    bare: list[float] = []
    ready: list[float] = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", _BARE_IMPORTS], cwd=ROOT, check=True)
        bare.append((time.perf_counter() - started) * 1000)
        with (
            tempfile.TemporaryDirectory(prefix="agent-bench-") as name,
            Daemon(bed, Path(name), inventory=file_inventory(bed)) as daemon,
        ):
            ready.append(daemon.start_ms)
    return statistics.median(bare[1:]), statistics.median(ready[1:])


def measure_audits(bed: Bed, *, audits: int, idle_seconds: float) -> Iterator[Figure]:
    """CPU of the daemon's own process for each audit, and while nothing happens."""
    with (
        tempfile.TemporaryDirectory(prefix="agent-bench-") as name,
        Daemon(bed, Path(name), inventory=file_inventory(bed)) as daemon,
    ):
        daemon.audit()
        own_ms, children_ms = processor_ms(daemon.process.pid), daemon.children_ms()
        for _ in range(audits):
            daemon.audit()
        own_ms = (processor_ms(daemon.process.pid) - own_ms) / audits
        children_ms = (daemon.children_ms() - children_ms) / audits
        time.sleep(_REST_SECONDS)
        idle_ms = processor_ms(daemon.process.pid)
        time.sleep(idle_seconds)
        idle_ms = (processor_ms(daemon.process.pid) - idle_ms) * _INTERVAL_SECONDS / idle_seconds
    yield Figure("12 LVs: CPU of an audit and its report", own_ms, 10.0, "ms")
    yield Figure("12 LVs: CPU of its LVM children", children_ms, None, "ms")
    share = (own_ms + idle_ms) / (_INTERVAL_SECONDS * 1000) * 100
    yield Figure("share of a core at one audit in 60 s, LVM not counted", share, 0.05, "%")


@functools.cache
def measure_guest() -> Mapping[str, float]:
    """What `bench_guest` measures in a guest, booted once.

    Raises:
        Unmeasured: no guest can run here, or it failed.
    """
    options = ("--hostname", _HOSTNAME, "--timeout", "240", "--disk", "8G")
    done = subprocess.run(
        [sys.executable, "scripts/vm", *options, "--", sys.executable, "scripts/bench_guest.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    line = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0 or not line.startswith("{"):
        raise Unmeasured(f"the guest ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    figures: Mapping[str, float] = json.loads(line)
    return figures


def measure_daemon(beds: Beds, *, is_long: bool) -> Iterator[Figure]:
    """The figures of the daemon."""
    bed = beds.small
    audits = 500 if is_long else 40
    yield Figure(
        "idle daemon: memory", measure_memory(bed, audits=audits // 4, has_platform=False), 48, "MiB"
    )
    yield Figure(
        "the same with Keystone and TLS",
        measure_memory(bed, audits=audits // 4, has_platform=True),
        56,
        "MiB",
    )
    bare_ms, ready_ms = measure_start(bed, runs=25 if is_long else 7)
    yield Figure("start of bare imports", bare_ms, None, "ms")
    yield Figure("start until READY", ready_ms, None, "ms")
    yield Figure("start until READY / bare imports", ready_ms / bare_ms, 1.5, "x")
    yield from measure_audits(bed, audits=audits, idle_seconds=60.0 if is_long else 5.0)
    guest = measure_guest()
    yield Figure("guest: lvextend to report, median of 20", guest["median_seconds"], 1.0, "s")
    yield Figure("guest: lvextend to report, worst of 20", guest["worst_seconds"], 3.0, "s")
