"""Layers on real device-mapper: each is grown in turn, each finding comes and goes, hung devices are survived."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.layers.superblock import HEAD_BYTES
from agent.core.layers.view import LayerScan
from agent.core.units import MIB
from agent.host.layers import LayerScanner
from agent.host.lvm import LvmReader
from agent.host.prober import ProbeHungError, Prober
from agent.host.process import Runner

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(os.environ.get("IN_VM") != "1", reason="needs a guest of scripts/vm"),
]

GROUP = "layers-vg"
DRBDSETUP = "/lib/drbd/drbdsetup-84"
"""DRBD 8.4 by hand: drbdadm wants a peer of another name, here it is the same guest."""
SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(*argv: str, text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def needs(program: str) -> None:
    if shutil.which(program, path=SBIN) is None:
        pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A volume group on a sparse disk in the guest's memory."""
    disk = tmp_path_factory.mktemp("disk") / "disk"
    disk.touch()
    os.truncate(disk, 2048 * MIB)
    loop = run("losetup", "--find", "--show", str(disk)).strip()
    run("vgcreate", "-q", GROUP, loop)
    yield GROUP
    run("vgremove", "-q", "-f", "-y", GROUP)
    run("losetup", "--detach", loop)


@pytest.fixture
def mount_point(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "mount point"
    directory.mkdir()
    yield directory
    subprocess.run(["umount", str(directory)], capture_output=True, check=False)


def make(name: str, size_mib: int) -> str:
    run("lvcreate", "-q", "-y", "-Wy", "-n", name, "-L", f"{size_mib}M", GROUP)
    return f"/dev/{GROUP}/{name}"


def extend(name: str, size_mib: int, *more: str) -> None:
    run("lvextend", "-q", "-L", f"{size_mib}M", f"{GROUP}/{name}", *more)


def remove(name: str) -> None:
    run("udevadm", "settle")
    run("lvremove", "-q", "-y", f"{GROUP}/{name}")


def scan(prober: Prober | None = None) -> LayerScan:
    """Look at the real thing, from LVM to the layers."""
    own = prober or Prober(timeout_seconds=30)
    try:
        with Runner() as runner:
            volume_group = LvmReader(runner, Path("/usr/sbin"), 60.0).read(GROUP).volume_group
        return LayerScanner(own).scan(volume_group)
    finally:
        if prober is None:
            own.close()


def problems(lv_name: str) -> dict[str, str]:
    """Kinds and hints of what is wrong on one LV."""
    return {finding.kind: str(finding.hint) for finding in scan().findings if finding.subject == lv_name}


def seen(lv_name: str) -> list[tuple[str, str, str | None, int | None, str | None]]:
    layers = scan().layers
    assert layers is not None
    return [(one.kind, one.device, one.type, one.size_bytes, one.mount_point) for one in layers[lv_name]]


def test_ext4(group: str, mount_point: Path) -> None:
    device = make("log-lv", 64)
    assert seen("log-lv") == []
    run("mkfs.ext4", "-q", device)
    assert seen("log-lv") == [("filesystem", device, "ext4", 64 * MIB, None)]
    run("mount", device, str(mount_point))
    assert seen("log-lv") == [("filesystem", device, "ext4", 64 * MIB, str(mount_point))]
    assert problems("log-lv") == {}

    extend("log-lv", 96)
    assert problems("log-lv") == {"filesystem_not_grown": f"`resize2fs {device}`"}
    run("resize2fs", device)
    assert problems("log-lv") == {}
    assert seen("log-lv") == [("filesystem", device, "ext4", 96 * MIB, str(mount_point))]

    with (mount_point / "much").open("wb") as file:
        file.truncate()
        os.posix_fallocate(file.fileno(), 0, 80 * MIB)
    assert list(problems("log-lv")) == ["filesystem_nearly_full"]
    (mount_point / "much").unlink()

    extend("log-lv", 128)
    run("umount", str(mount_point))
    assert problems("log-lv") == {"filesystem_not_grown": f"`resize2fs {device}`"}
    run("e2fsck", "-fp", device)
    run("resize2fs", device)
    assert problems("log-lv") == {}
    remove("log-lv")


def test_xfs(group: str, mount_point: Path) -> None:
    device = make("docker-lv", 320)
    run("mkfs.xfs", "-q", device)
    assert seen("docker-lv") == [("filesystem", device, "xfs", 320 * MIB, None)]
    run("mount", device, str(mount_point))
    assert seen("docker-lv") == [("filesystem", device, "xfs", 320 * MIB, str(mount_point))]
    extend("docker-lv", 400)
    assert problems("docker-lv") == {"filesystem_not_grown": f"`xfs_growfs {mount_point}`"}
    run("xfs_growfs", str(mount_point))
    assert problems("docker-lv") == {}  # at once, although the superblock on disk may follow later
    assert seen("docker-lv") == [("filesystem", device, "xfs", 400 * MIB, str(mount_point))]
    extend("docker-lv", 480)
    run("umount", str(mount_point))
    assert problems("docker-lv") == {
        "filesystem_not_grown": f"mount {device}, then `xfs_growfs` its mount point"
    }
    remove("docker-lv")


def test_table_that_was_not_loaded_anew(group: str) -> None:
    device = make("scratch-lv", 64)
    run("mkfs.ext4", "-q", device)
    extend("scratch-lv", 96, "--config", "global{activation=0}")
    assert problems("scratch-lv") == {
        "lv_not_activated_at_new_size": f"`lvchange --refresh {GROUP}/scratch-lv`"
    }
    run("lvchange", "--refresh", f"{GROUP}/scratch-lv")
    assert list(problems("scratch-lv")) == ["filesystem_not_grown"]
    run("e2fsck", "-fp", device)
    run("resize2fs", device)
    assert problems("scratch-lv") == {}
    remove("scratch-lv")


def test_luks(group: str) -> None:
    needs("cryptsetup")
    device = make("secret-lv", 64)
    options = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "-"]
    run("cryptsetup", "luksFormat", "-q", "--type", "luks2", *options, device, text="secret")
    run("cryptsetup", "open", "--key-file", "-", device, "layers-secret", text="secret")
    try:
        run("mkfs.ext4", "-q", "/dev/mapper/layers-secret")
        assert seen("secret-lv") == [
            ("crypt", "/dev/mapper/layers-secret", "luks2", 48 * MIB, None),
            ("filesystem", "/dev/mapper/layers-secret", "ext4", 48 * MIB, None),
        ]
        extend("secret-lv", 96)
        assert problems("secret-lv") == {"crypt_not_grown": "`cryptsetup resize layers-secret`"}
        run("cryptsetup", "resize", "layers-secret", "--key-file", "-", text="secret")
        assert problems("secret-lv") == {"filesystem_not_grown": "`resize2fs /dev/mapper/layers-secret`"}
        run("e2fsck", "-fp", "/dev/mapper/layers-secret")
        run("resize2fs", "/dev/mapper/layers-secret")
        assert problems("secret-lv") == {}
    finally:
        run("udevadm", "settle")
        run("cryptsetup", "close", "layers-secret")
    remove("secret-lv")


# DRBD 8.4, alone and with a peer that is another device of the same guest


def preflight(tmp_path: Path, lv_name: str, size_mib: int) -> tuple[int, list[dict[str, Any]]]:
    """Ask for twice the size as a user would."""
    record = tmp_path / "sizes.toml"
    record.write_text(
        f'[[filesystem]]\nname = "pgsql"\nlogical_volume = "{lv_name}"\nvolume_group = "{GROUP}"\nsize = "{size_mib}MiB"\n'
    )
    command = [sys.executable, "-m", "agent", "preflight", "--vg", GROUP, "--inventory", f"file:{record}"]
    done = subprocess.run(
        [*command, "--format", "json", f"pgsql={2 * size_mib}MiB"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)["reasons"]


def attach(minor: int, device: str) -> None:
    run("drbdmeta", "--force", str(minor), "v08", device, "internal", "create-md")
    run(DRBDSETUP, "new-resource", f"r{minor}")
    run(DRBDSETUP, "new-minor", f"r{minor}", str(minor), "0")
    # Slow on purpose: there has to be time to look at a resync.
    slow = ["--resync-rate=64k", "--c-plan-ahead=0"]
    run(DRBDSETUP, "attach", str(minor), device, device, "internal", *slow)


def connect(minor: int, own_port: int, peer_port: int) -> None:
    addresses = [f"ipv4:127.0.0.1:{own_port}", f"ipv4:127.0.0.1:{peer_port}"]
    run(DRBDSETUP, "connect", f"r{minor}", *addresses, "--protocol=C")


@pytest.fixture
def drbd(group: str) -> Iterator[None]:
    needs(DRBDSETUP)
    needs("drbdmeta")
    if subprocess.run(["modprobe", "drbd"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no DRBD")
    # The kernel asks drbdadm for leave before a resync, and that one knows nothing of these resources.
    Path("/sys/module/drbd/parameters/usermode_helper").write_text("/bin/true")
    yield
    for minor in (8, 9):
        subprocess.run([DRBDSETUP, "down", f"r{minor}"], capture_output=True, check=False)


def test_drbd_alone(drbd: None, mount_point: Path, tmp_path: Path) -> None:
    lower = make("pgsql-lv", 64)
    attach(8, lower)
    status, reasons = preflight(tmp_path, "pgsql-lv", 64)
    assert (status, [reason["kind"] for reason in reasons]) == (8, ["drbd_inconsistent"])
    assert seen("pgsql-lv") == [
        ("drbd", "/dev/drbd8", "8.4.11", 67067904, None),
        ("filesystem", "/dev/drbd8", None, None, None),  # Secondary: can't be opened
    ]
    run(DRBDSETUP, "primary", "8", "--force")
    assert preflight(tmp_path, "pgsql-lv", 64) == (0, [])
    run("mkfs.ext4", "-q", "/dev/drbd8")
    run("mount", "/dev/drbd8", str(mount_point))
    assert seen("pgsql-lv")[1] == ("filesystem", "/dev/drbd8", "ext4", 67067904, str(mount_point))
    assert problems("pgsql-lv") == {}

    extend("pgsql-lv", 128)
    hint = problems("pgsql-lv")["drbd_not_grown"]
    assert hint.startswith("`drbdadm -- --assume-peer-has-space resize ")
    run(DRBDSETUP, "resize", "8", "--assume-peer-has-space")
    assert problems("pgsql-lv") == {"filesystem_not_grown": "`resize2fs /dev/drbd8`"}
    run("resize2fs", "/dev/drbd8")
    assert problems("pgsql-lv") == {}
    assert seen("pgsql-lv")[0][3] == 134176768
    run("umount", str(mount_point))
    run(DRBDSETUP, "down", "r8")
    remove("pgsql-lv")


def test_drbd_resync_is_busy_with_its_percent(drbd: None, tmp_path: Path) -> None:
    attach(8, make("pgsql-lv", 64))
    attach(9, make("peer-lv", 64))
    run(DRBDSETUP, "primary", "8", "--force")
    connect(8, 7788, 7789)
    connect(9, 7789, 7788)
    run(DRBDSETUP, "wait-connect", "8", "--wfc-timeout=60")
    status, reasons = preflight(tmp_path, "pgsql-lv", 64)
    assert status == 8
    told = {reason["subject"]: reason["message"] for reason in reasons if reason["kind"] == "drbd_resync"}
    assert "SyncSource" in told["drbd8"]
    assert "% done" in told["drbd8"]
    for minor in (8, 9):
        run(DRBDSETUP, "down", f"r{minor}")
    remove("pgsql-lv")
    remove("peer-lv")


def test_an_active_origin_of_a_snapshot_can_not_be_resized(group: str, tmp_path: Path) -> None:
    make("docker-lv", 64)
    run("lvcreate", "-q", "-y", "-s", "-n", "docker-snap", "-L", "32M", f"{GROUP}/docker-lv")
    status, reasons = preflight(tmp_path, "docker-lv", 64)
    assert (status, [reason["kind"] for reason in reasons]) == (8, ["has_snapshot"])
    command = ["lvextend", "-L", "128M", f"{GROUP}/docker-lv"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 5  # LVM says the same
    remove("docker-snap")
    assert preflight(tmp_path, "docker-lv", 64) == (0, [])
    run(*command)
    remove("docker-lv")


# Hung devices


def test_suspended_device(group: str) -> None:
    device = make("hung-lv", 64)
    run("mkfs.ext4", "-q", device)
    name = f"{GROUP.replace('-', '--')}-hung--lv"
    number = Path(device).stat().st_rdev
    kernel_name = Path(device).resolve().name
    prober = Prober(timeout_seconds=2)
    run("dmsetup", "suspend", name)
    try:
        # Known to be suspended: not even asked.
        assert [finding.kind for finding in scan(prober).findings] == ["layer_unreadable"]
        # Not known (it may be suspended in the very next moment): only the helper hangs.
        with pytest.raises(ProbeHungError, match="does not answer within 2 s"):
            prober.read_head(f"/dev/{kernel_name}", f"{os.major(number)}:{os.minor(number)}", HEAD_BYTES)
        with pytest.raises(ProbeHungError, match="still does not answer"):
            prober.read_head(f"/dev/{kernel_name}", f"{os.major(number)}:{os.minor(number)}", HEAD_BYTES)
    finally:
        run("dmsetup", "resume", name)
        for helper in tuple(prober._abandoned.values()):
            helper.wait(60)
    assert prober.read_head(f"/dev/{kernel_name}", f"{os.major(number)}:{os.minor(number)}", HEAD_BYTES)
    prober.close()
    remove("hung-lv")
