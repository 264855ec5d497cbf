"""Sparse files as loop devices that vanish with the process that made them, and the tools to make them.

Not here: LVM (see `scratch_lvm`).  Standard library only.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PREFIX = "scratch-lvm"
SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"

_COMMAND_SECONDS = 60.0
_DETACH_SECONDS = 10.0

Completed = subprocess.CompletedProcess[str]


class LabError(Exception):
    """The scratch LVM could not be built or taken down."""


def attach(file: Path) -> tuple[str, int]:
    """Attach a file to a free loop device, marked to detach with its last close.

    Returns the device and the only lasting descriptor of it: even SIGKILL leaves no device behind.

    Raises:
        LabError: the kernel gives no loop device.
    """
    with signals_held_back():
        device = checked(run(["losetup", "--find", "--show", str(file)])).stdout.strip()
        descriptor = os.open(device, os.O_RDONLY)
        # Detaching a device that is open only sets its autoclear flag (loop(4)).
        checked(run(["losetup", "--detach", device]))
    return device, descriptor


def detach(device: str, descriptor: int) -> None:
    """Close the descriptor and wait until the device is really gone.

    Raises:
        LabError: somebody else holds it open.
    """
    os.close(descriptor)
    # udev may look at the device just now; the last close detaches it, whosever that is.
    deadline = time.monotonic() + _DETACH_SECONDS
    while Path("/sys/block", Path(device).name, "loop").exists():
        if time.monotonic() > deadline:
            raise LabError(f"{device} does not detach: something holds it open")
        time.sleep(0.01)


def leftovers(pid: int | None = None) -> list[str]:
    """List the loop devices that scratch LVMs of this process, or of `pid`, still hold."""
    mark = f"/{PREFIX}-{os.getpid() if pid is None else pid}-"
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            name = backing.read_text()
        except OSError:  # detached by its owner while we looked
            continue
        if mark in name:
            found.append(f"/dev/{backing.parts[3]} ({name.strip()})")
    return found


def run(command: list[str], environment: Mapping[str, str] | None = None) -> Completed:
    """Run a tool in a clean environment and return how it ended; signals wait until then.

    A signal between its start and our waiting for it would leave it at work unattended, on a configuration
    that is just being taken away: LVM would then take its defaults and see all disks of the host.
    """
    with signals_held_back():
        return subprocess.run(
            command,
            env={"PATH": SBIN, "LC_ALL": "C", **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
            # A Ctrl-C in the terminal is for us: an LVM command half done would be worse than one done.
            start_new_session=True,
        )


def checked(completed: Completed) -> Completed:
    """Pass on how a tool ended when it ended well.

    Raises:
        LabError: it did not; with the command and what it said.
    """
    if completed.returncode != 0:
        command = " ".join(completed.args)
        raise LabError(f"`{command}` ended with {completed.returncode}: {completed.stderr.strip()}")
    return completed


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until what must not be left half done is through."""
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
