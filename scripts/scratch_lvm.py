"""Real LVM to play with: volume groups on sparse loop files that only a private configuration can see.

Everything lives below one temporary directory: its own ``LVM_SYSTEM_DIR``, lock directory and a filter
that accepts no device but those made here, so neither the host's volume groups nor another scratch LVM
can be met.  ``activation=0`` keeps device-mapper out of it: sizes and exit statuses are LVM's own, while
no LV ever becomes a device.

Not here: any particular machine (see `bug_machine`), anything of the agent.  Standard library only.
"""

import fcntl
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from loop_disks import PREFIX, SBIN, Completed, LabError, attach, checked, detach, run, signals_held_back

MIB = 1024**2
GIB = 1024**3

_CONFIG = """\
# Written by scratch_lvm.py: only the loop devices listed here exist for this LVM.
devices {{
    global_filter = [ {accepted} "r|.*|" ]
    hints = "none"
    use_devicesfile = 0
    external_device_info_source = "none"
}}
global {{
    activation = 0
    locking_dir = "{root}/lock"
    use_lvmpolld = 0
    notify_dbus = 0
}}
backup {{
    backup = 0
    archive = 0
    backup_dir = "{root}/backup"
    archive_dir = "{root}/archive"
}}
activation {{
    udev_sync = 0
    udev_rules = 0
    monitoring = 0
}}
"""


def can_run() -> str | None:
    """Say in one line why no scratch LVM can be had here; None when it can."""
    if os.geteuid() != 0:
        return "not root"
    for tool in ("lvm", "losetup"):
        if shutil.which(tool, path=SBIN) is None:
            return f"{tool} is not installed"
    # Only trying tells: containers often show /dev/loop-control without letting anybody use it.
    with tempfile.NamedTemporaryFile(prefix=f"{PREFIX}-probe-") as probe:
        probe.truncate(MIB)
        try:
            os.close(attach(Path(probe.name))[1])
        except (LabError, OSError) as error:
            return f"no loop devices ({error})"
    return None


class ScratchLvm:
    """A private LVM, from entering the context until leaving it, by whatever way it is left.

    SIGTERM and SIGHUP, unless somebody handles them already, end the program through the same teardown.
    """

    def __init__(self) -> None:
        self.root = Path()
        self._disks: dict[str, int] = {}
        self._made = 0
        self._handlers: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        with signals_held_back():
            self.root = Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{os.getpid()}-"))
            for name in ("system", "lock", "disks", "backup", "archive"):
                (self.root / name).mkdir()
            self._write_config()
            self._catch_signals()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        errors: list[Exception] = []
        with signals_held_back():
            for device in reversed(tuple(self._disks)):
                _collect(errors, partial(self.detach, device))
            _collect(errors, partial(shutil.rmtree, self.root))
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            self._handlers.clear()
        if errors:
            raise ExceptionGroup("the scratch LVM could not be taken down completely", errors)

    @property
    def system_directory(self) -> Path:
        """What ``LVM_SYSTEM_DIR`` must be to see these volume groups."""
        return self.root / "system"

    @property
    def environment(self) -> Mapping[str, str]:
        """This process's environment, pointed at the scratch LVM."""
        return {**os.environ, "LVM_SYSTEM_DIR": str(self.system_directory)}

    # Disks

    def add_disk(self, size_bytes: int) -> str:
        """Attach a new sparse disk and return its device, for example ``/dev/loop7``."""
        self._made += 1
        file = self.root / "disks" / f"disk{self._made}"
        file.touch()
        os.truncate(file, size_bytes)
        device, descriptor = attach(file)
        self._disks[device] = descriptor
        self._write_config()
        return device

    def detach(self, device: str) -> None:
        """Take a disk away, as a dead controller would: its volume group then misses a PV."""
        descriptor = self._disks.pop(device)
        self._write_config()
        detach(device, descriptor)

    # Commands

    def run(self, *argv: str, only: tuple[str, ...] | None = None) -> Completed:
        """Run an LVM command and return how it ended, whatever that is.

        `only` shows the command these devices alone: that is how two volume groups get one name.
        """
        command = list(argv)
        if only is not None:
            command += ["--config", f'devices{{global_filter=[{_accepting(only)} "r|.*|"]}}']
        return run(
            command,
            {"LVM_SYSTEM_DIR": str(self.system_directory), "LVM_SUPPRESS_FD_WARNINGS": "1"},
        )

    def check(self, *argv: str, only: tuple[str, ...] | None = None) -> Completed:
        """Run an LVM command that has to succeed.

        Raises:
            LabError: it did not; with the command and what it said.
        """
        return checked(self.run(*argv, only=only))

    def create_group(self, name: str, *devices: str, extent_bytes: int = 4 * MIB) -> None:
        """Make an empty volume group on these disks."""
        self.check("vgcreate", "-s", f"{extent_bytes}b", name, *devices, only=devices)

    def create_volume(self, group: str, name: str, size_bytes: int, *more: str) -> None:
        """Make an LV; `more` are further words for lvcreate, such as ``-i2`` or a device."""
        checked(self.try_create(group, name, size_bytes, *more))

    def try_create(self, group: str, name: str, size_bytes: int, *more: str) -> Completed:
        """Run lvcreate and return how it ended.  Nothing is zeroed: there is no device to write to."""
        head = ("lvcreate", "-an", "-Zn", "-Wn", "-y", "-n", name)
        return self.run(*head, "-L", f"{size_bytes}b", group, *more)

    def extend(self, group: str, name: str, size_bytes: int, *more: str) -> Completed:
        """Run lvextend to an absolute size and return how it ended: status 5 when there is no room."""
        return self.run("lvextend", "-L", f"{size_bytes}b", f"{group}/{name}", *more)

    def remove(self, group: str, name: str) -> None:
        """Remove an LV."""
        self.check("lvremove", "-f", f"{group}/{name}")

    def restore(self, metadata: str) -> tuple[str, ...]:
        """Bring a volume group to life from metadata text (vgcfgbackup's format), disks included.

        This is the only way to layouts whose creation needs device-mapper: thin, RAID, snapshot, pvmove.
        Returns the devices in the order of the physical volumes in the text.
        """
        group = _found(r"^([A-Za-z0-9+_.-]+) \{", metadata)
        file = self.root / f"{group}.vgcfg"
        file.write_text(metadata)
        devices = []
        for uuid, sectors in re.findall(r'id = "(\S+)"\s+device = [^}]*?dev_size = (\d+)', metadata):
            device = self.add_disk(int(sectors) * 512)
            self.check("pvcreate", "--uuid", uuid, "--restorefile", str(file), device)
            devices.append(device)
        self.check("vgcfgrestore", "--force", "--yes", "-f", str(file), group)
        return tuple(devices)

    @contextmanager
    def hold_lock(self, group: str) -> Iterator[None]:
        """Hold the volume group's lock exclusively, as any changing LVM command does while it works."""
        with (self.root / "lock" / f"V_{group}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write_config(self) -> None:
        text = _CONFIG.format(accepted=_accepting(tuple(self._disks)), root=self.root)
        (self.system_directory / "lvm.conf").write_text(text)

    def _catch_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _collect(errors: list[Exception], step: Callable[[], object]) -> None:
    try:
        step()
    except (LabError, OSError) as error:
        errors.append(error)


def _accepting(devices: tuple[str, ...]) -> str:
    return "".join(f'"a|^{re.escape(device)}$|", ' for device in devices)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise LabError(f"no {pattern} in the metadata")
    return match[1]


if __name__ == "__main__":
    sys.exit(can_run())
