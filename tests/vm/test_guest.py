"""scripts/vm itself, from outside: its exit statuses, and that it leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
VM = (sys.executable, str(ROOT / "scripts" / "vm"))

_check = subprocess.run([*VM, "--check"], capture_output=True, text=True, check=False)
pytestmark = [
    pytest.mark.vm(boot=None),  # of a guest, not in one
    pytest.mark.skipif(_check.returncode != 0, reason=f"no virtual machine here: {_check.stderr.strip()}"),
    pytest.mark.skipif("IN_VM" in os.environ, reason="a guest inside a guest"),
]


def vm(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a guest whose working directory is `tmp_path`, with its own temporary directory."""
    return subprocess.run(
        [*VM, *arguments],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def guests_of(directory: Path) -> list[str]:
    """Processes that have this directory on their command line, as guests have."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # ended while we looked
            continue
        if line.startswith("linux.uml") and str(directory) in line:
            found.append(line)
    return found


def test_a_command_has_systemd_fresh_disks_and_its_own_exit_status(tmp_path: Path) -> None:
    script = """
        systemctl is-active systemd-udevd.service
        hostname
        vgcreate -q vg /dev/ubda /dev/ubdb && lvcreate -qy -L 1G -n lv vg && mkfs.ext4 -q /dev/vg/lv
        udevadm info --query=property --property=DM_LV_NAME --value /dev/vg/lv
        echo kept > kept; touch /usr/gone
        echo to-stderr >&2
        exit 7
    """
    done = vm(tmp_path, "--disk", "1G", "--disk", "2G", "--hostname", "guest-1", "--", "bash", "-c", script)
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["active", "guest-1"]
    assert lines[-1] == "lv"
    assert "to-stderr" in done.stderr.splitlines()
    assert (tmp_path / "kept").read_text() == "kept\n"
    assert not Path("/usr/gone").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_guest_that_dies_is_told_from_a_command_that_fails_and_not_tried_again(tmp_path: Path) -> None:
    script = "echo begun >> begun; sync; echo o > /proc/sysrq-trigger; sleep 60"
    done = vm(tmp_path, "--", "bash", "-c", script)
    assert done.returncode == 125
    assert "died under its command" in done.stderr
    assert (tmp_path / "begun").read_text() == "begun\n"


def test_a_guest_that_does_not_boot_is_tried_once_more(tmp_path: Path) -> None:
    done = vm(tmp_path, "--memory", "8M", "--", "true")
    assert done.returncode == 125
    assert done.stderr.count("did not boot") == 2
    assert done.stderr.count("trying once more") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_end_is_ended_with_its_guest(tmp_path: Path) -> None:
    done = vm(tmp_path, "--timeout", "1", "--", "sleep", "600")
    assert done.returncode == 124
    assert guests_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_signal_ends_the_guest_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*VM, "--", "sleep", "600"], cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        while not guests_of(tmp_path):
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143
    assert guests_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["", tempfile.gettempdir()])
def test_a_machine_without_it_is_told_what_to_install(path: str) -> None:
    done = subprocess.run([*VM, "--check"], env={"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 123
    assert "apt-get install" in done.stderr
    assert "user-mode-linux" in done.stderr
