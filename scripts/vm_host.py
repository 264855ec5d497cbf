"""Runs a User-Mode-Linux guest as a process of this machine, and ends it whatever happens.

Knows when a guest has booted, when it is stuck and how its command ended.  Ends processes only by the
id of the session it gave the guest.  Not here: what is inside the guest (see `vm_guest`).
"""

import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import vm_guest

GUEST_FAILED = 125
"""The guest could not boot, or died under its command."""
TIMED_OUT = 124
CANNOT_RUN = 123

_PROGRAMS = {
    "linux.uml": "user-mode-linux",
    "udevadm": "udev",
    "modprobe": "kmod",
    "systemctl": "systemd",
    "dmsetup": "dmsetup",
    "ip": "iproute2",
}
_BOOT_SECONDS = 120.0
_HALT_SECONDS = 30.0
_STUBS_SECONDS = 10.0
_POLL_SECONDS = 0.05
_CONSOLE_LINES = 40
"""A kernel's last words are long: what went wrong stands before them."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How big a guest is and how long it may live."""

    memory: str = "1G"
    disks: tuple[str, ...] = ()
    """Sizes of fresh sparse disks: /dev/ubda, /dev/ubdb, …"""
    timeout_seconds: float = 600.0
    """For the command; booting has its own limit."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the guest kernel, as `eth0=mcast`."""


class GuestFailed(Exception):
    """The guest ended without telling how its command ended."""

    def __init__(self, message: str, *, had_started: bool) -> None:
        self.had_started = had_started
        super().__init__(message)


def reason_not_to_run() -> str | None:
    """Why no guest can run on this machine; None when one can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "user-mode-linux is packaged for x86_64 Linux only"
    if os.geteuid() != 0:
        return "a guest needs root: it reads the whole file tree of this machine"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted(
        {package for program, package in _PROGRAMS.items() if shutil.which(program, path=path) is None}
    )
    if missing:
        return f"not installed: {' '.join(missing)} (apt-get install {' '.join(missing)})"
    if not vm_guest.PACKAGE_MODULES.is_dir():
        return f"{vm_guest.PACKAGE_MODULES} is missing: reinstall user-mode-linux"
    return None


def run(machine: Machine, job: vm_guest.Job) -> int:
    """Run the job in a fresh guest and return its exit status.

    A guest that does not even boot is tried a second time; a command that has begun never is.

    Raises:
        GuestFailed: the guest died or never booted.
        TimeoutError: the command took too long; the guest is gone.
    """
    try:
        return _run_once(machine, job)
    except GuestFailed as failure:
        if failure.had_started:
            raise
        sys.stderr.write(f"vm: {failure}; trying once more\n")
        return _run_once(machine, job)


def _run_once(machine: Machine, job: vm_guest.Job) -> int:
    with tempfile.TemporaryDirectory(prefix="vm-", ignore_cleanup_errors=True) as name, _one_cpu() as cpu:
        work = Path(name)
        init = vm_guest.write_guest(work, job, os.environ)
        with _guest(work, machine, init, cpu) as guest:
            return _await_status(guest, work, machine.timeout_seconds)


@contextmanager
def _guest(work: Path, machine: Machine, init: Path, cpu: int) -> Iterator[subprocess.Popen[bytes]]:
    """A running guest whose command writes to our stdout and stderr; gone at the end of the block."""
    pumps = [_Pump(sys.stdout.buffer), _Pump(sys.stderr.buffer)]
    lines = [f"ssl{number}=null,fd:{pump.descriptor}" for number, pump in enumerate(pumps)]
    command = ["linux.uml", *_kernel_arguments(work, machine, init), *lines]
    with (work / "console").open("wb") as console:
        guest = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            pass_fds=[pump.descriptor for pump in pumps],
            start_new_session=True,
            preexec_fn=lambda: _prepare(cpu),  # noqa: PLW1509 - no other thread runs yet
        )
    try:
        for pump in pumps:
            pump.start()
        yield guest
    finally:
        _end(guest)
        for pump in pumps:
            pump.finish()


def _kernel_arguments(work: Path, machine: Machine, init: Path) -> list[str]:
    disks = []
    for number, size in enumerate(machine.disks):
        disk = work / f"disk{number}"
        _checked(["truncate", "--size", size, str(disk)])
        disks.append(f"ubd{number}={disk}")
    return [
        f"mem={machine.memory}",
        *disks,
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "quiet",
        "loglevel=3",
        f"init={init}",
        f"uml_dir={work}",
        "umid=guest",
        "con=null",
        "con0=null,fd:1",
        *machine.arguments,
    ]


def _prepare(cpu: int) -> None:
    """In the child, before it becomes the guest: one CPU, and no life after its parent's death.

    A guest is several processes handing over to each other: on two CPUs it is three times slower.
    """
    os.sched_setaffinity(0, {cpu})
    # The guest's kernel keeps a descriptor for each file that anybody in it used lately.
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _await_status(guest: "subprocess.Popen[bytes]", work: Path, timeout_seconds: float) -> int:
    started, status = work / "channel/started", work / "channel/status"
    deadline = time.monotonic() + _BOOT_SECONDS
    while not started.exists():
        if guest.poll() is not None:
            raise GuestFailed(f"the guest did not boot{_console_tail(work)}", had_started=False)
        if time.monotonic() > deadline:
            message = f"the guest did not boot within {_BOOT_SECONDS:g} s{_console_tail(work)}"
            raise GuestFailed(message, had_started=False)
        time.sleep(_POLL_SECONDS)
    deadline = time.monotonic() + timeout_seconds
    while guest.poll() is None and not status.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the command did not end within {timeout_seconds:g} s")
        time.sleep(_POLL_SECONDS)
    with suppress(subprocess.TimeoutExpired):
        guest.wait(_HALT_SECONDS)
    if not status.exists():
        raise GuestFailed(f"the guest died under its command{_console_tail(work)}", had_started=True)
    return int(status.read_text())


def _console_tail(work: Path) -> str:
    lines = (work / "console").read_text(errors="replace").splitlines()[-_CONSOLE_LINES:]
    return "".join(f"\n  | {line}" for line in lines)


def _end(guest: "subprocess.Popen[bytes]") -> None:
    """End every process of the guest: all of them are in the session that it was started in."""
    for number, grace_seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError):
            os.killpg(guest.pid, number)
        with suppress(subprocess.TimeoutExpired):
            guest.wait(grace_seconds)
    # The stubs of a kernel that was killed itself: not our children, so there is nothing to wait on.
    deadline = time.monotonic() + _STUBS_SECONDS
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(guest.pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)


class _Pump:
    """Copies what arrives on a pipe to one of our own streams; the guest gets the other end."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._reader, self.descriptor = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def start(self) -> None:
        """Begin, once the guest has inherited its end."""
        os.close(self.descriptor)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the rest of the output; the guest is gone by now."""
        with suppress(RuntimeError):  # a signal came while it was being started
            self._thread.join(10.0)
        os.close(self._reader)

    def _copy(self) -> None:
        while chunk := os.read(self._reader, 65536):
            with suppress(BrokenPipeError):
                self._target.write(chunk)
                self._target.flush()


@contextmanager
def _one_cpu() -> Iterator[int]:
    """A CPU of our own when one is free: the last one no other guest has taken, else the last."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        available = sorted(os.sched_getaffinity(0), reverse=True)
        yield next((cpu for cpu in available if _claim(claim, cpu)), available[0])


def _claim(claim: socket.socket, cpu: int) -> bool:
    """Whether the CPU was free; an abstract address is a lock that dies with its owner and leaves no file."""
    try:
        claim.bind(f"\0lvm-audit-agent-vm-cpu{cpu}")
    except OSError:
        return False
    return True


def _checked(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)
