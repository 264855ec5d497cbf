"""What a User-Mode-Linux guest sees: its overlay layer, its first program and its job, as files.

The guest's root is this machine's own ``/``, read-only, below an overlay whose writes go to the guest's
memory.  So it has the same programs, the same Python and the same checkout, and no image is built.
Not here: running the guest (see `vm_host`).  Standard library only.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE_MODULES = Path("/usr/lib/uml/modules")
CHANNEL = "/run/vm"
"""Where the guest finds the host's control directory: job and exit status."""

_MODULES = ("dm-mod", "dm-thin-pool", "dm-snapshot", "dm-raid", "dm-mirror", "dm-crypt", "loop", "drbd")
_WANTED = {
    "dbus.socket",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-journald-dev-log.socket",
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udev-trigger.service",
}
"""What a guest starts of all that this machine would: each second counts."""
_UNIT_DIRECTORIES = (
    Path("/usr/lib/systemd/system"),
    Path("/lib/systemd/system"),
    Path("/etc/systemd/system"),
)
_BOOT_TARGETS = ("sysinit.target", "basic.target", "sockets.target", "timers.target", "local-fs.target")
_OVERLAY = "xino=off,index=off,lowerdir=/mnt/layer:/,upperdir=/mnt/upper,workdir=/mnt/work"
_PASSED_ON = ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "PYTHONPATH", "CI")

# A full cold-plug of every device takes 6 s; tests need disks and network interfaces.
_COLD_PLUG = """[Service]
ExecStart=
ExecStart=/usr/bin/udevadm trigger --action=add --subsystem-match=block --subsystem-match=net
"""
_TARGET = """[Unit]
Requires=basic.target vm-job.service
After=basic.target
AllowIsolate=yes
"""
_JOB_UNIT = f"""[Unit]
Wants=systemd-udevd.service systemd-udev-trigger.service dbus.socket
After=basic.target systemd-udevd.service systemd-udev-trigger.service dbus.socket
[Service]
Type=exec
StandardInput=null
StandardOutput=file:/dev/ttyS0
StandardError=file:/dev/ttyS1
ExecStart=/bin/bash {CHANNEL}/job
ExecStopPost=/bin/sh -c 'exec systemctl --force --force poweroff > /dev/null 2>&1'
TimeoutStartSec=infinity
TimeoutStopSec=5
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to run in the guest, and what it may see of the host."""

    command: tuple[str, ...]
    directory: Path
    """Where it runs; shared read-write."""
    shared: tuple[Path, ...] = ()
    """More directories shared read-write."""
    hostname: str = "vm"
    environment: tuple[str, ...] = ()
    """Names of further variables to pass on."""


def kernel_release() -> str:
    """The guest kernel's release: the one for which the package brought modules.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    releases = sorted(entry.name for entry in PACKAGE_MODULES.iterdir())
    if not releases:
        raise FileNotFoundError(PACKAGE_MODULES)
    return releases[-1]


def write_guest(work: Path, job: Job, environment: Mapping[str, str]) -> Path:
    """Write everything the guest needs below `work`; returns its first program."""
    layer = work / "layer"
    channel = work / "channel"
    channel.mkdir()
    _write_layer(layer, job.hostname)
    _write(channel / "job", job_script(job, environment))
    init = work / "init"
    _write(init, init_script(layer, channel, (job.directory, *job.shared)))
    init.chmod(0o755)
    return init


def job_script(job: Job, environment: Mapping[str, str]) -> str:
    """The shell script that systemd runs in the guest; its two serial lines are the command's output."""
    exports = [
        f"export {name}={shlex.quote(environment[name])}"
        for name in (*_PASSED_ON, *job.environment)
        if name in environment
    ]
    lines = [
        "stty raw -echo < /dev/ttyS0; stty raw -echo < /dev/ttyS1",
        *exports,
        "export IN_VM=1 TERM=dumb",
        f"cd {shlex.quote(str(job.directory))}",
        f"modprobe -qa {' '.join(_MODULES)}",
        "ip link set lo up",
        "udevadm settle --timeout=30",
        # From here on a failure is the command's own: the host sees this file and never starts it again.
        f": > {CHANNEL}/started; sync -f {CHANNEL}/started",
        f"{shlex.join(job.command)} < /dev/null",
        f"echo $? > {CHANNEL}/status.new; sync -f {CHANNEL}/status.new",
        f"mv {CHANNEL}/status.new {CHANNEL}/status",
    ]
    return "\n".join(lines) + "\n"


def init_script(layer: Path, channel: Path, shared: Sequence[Path]) -> str:
    """The guest's process 1 before systemd: builds the root and hands over to it."""
    root = "/mnt/root"
    release = kernel_release()
    lines = [
        "#!/bin/sh -e",
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        f"insmod {PACKAGE_MODULES}/{release}/kernel/fs/overlayfs/overlay.ko",
        "mount -t tmpfs vm /mnt",
        f"mkdir /mnt/layer /mnt/upper /mnt/work {root}",
        _mount("layer", layer, "/mnt/layer"),
        f"mount -t overlay vm -o {_OVERLAY} {root}",
        # These tell systemd that it is in a container, where it would start no udev.
        f"rm -f {root}/.dockerenv",
        f"mount -t devtmpfs vm {root}/dev",
        f"mount -t tmpfs vm {root}/run",
    ]
    for source, target in ((channel, CHANNEL), *((path, str(path)) for path in shared)):
        lines += [f"mkdir -p {shlex.quote(root + target)}", _mount("share", source, root + target)]
    systemd = "/lib/systemd/systemd --unit=vm-job.target --show-status=0 --log-level=warning"
    # Not chroot: the kernel gives a process in a chroot no user namespace.
    lines.append(f"exec switch_root {root} {systemd}")
    return "\n".join(lines) + "\n"


def _mount(name: str, source: Path, target: str) -> str:
    return f"mount -t hostfs {name} -o {shlex.quote(str(source))} {shlex.quote(target)}"


def _write_layer(layer: Path, hostname: str) -> None:
    release = kernel_release()
    units = layer / "etc/systemd/system"
    _write(layer / "etc/fstab", "")
    _write(layer / "etc/hostname", f"{hostname}\n")
    _write(layer / "etc/hosts", f"127.0.0.1 localhost {hostname}\n::1 localhost\n")
    modules = layer / "usr/lib/modules" / release
    modules.parent.mkdir(parents=True)
    modules.symlink_to(PACKAGE_MODULES / release)
    _write(units / "vm-job.target", _TARGET)
    _write(units / "vm-job.service", _JOB_UNIT)
    _write(units / "systemd-udev-trigger.service.d/vm.conf", _COLD_PLUG)
    for unit in _unwanted_units():
        (units / unit).symlink_to(os.devnull)


def _unwanted_units() -> set[str]:
    """What the machine's boot targets pull in and no test needs: masked in the guest."""
    wanted_by_boot = {
        entry.name
        for base in _UNIT_DIRECTORIES
        for target in _BOOT_TARGETS
        for entry in (base / f"{target}.wants").glob("*")
    }
    return {name for name in wanted_by_boot if not name.endswith(".target")} - _WANTED


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
