"""The scanner on a recorded sysfs: real device names, holders and texts, only the devices' answers are made."""

import json
from pathlib import Path

import msgspec
import pytest
from builders import make_lv, make_vg

from agent.core.layers.view import Usage
from agent.core.models import VolumeGroup
from agent.core.units import MIB
from agent.host.layers import LayerScanner
from agent.host.prober import ProbeError

DATA = Path(__file__).parent.parent / "data/sysfs"

EXT4_BLOCKS = {"drbd0": 262100, "dm-2": 262144, "dm-19": 114688}
"""1 KiB blocks of the ext4 filesystems, by device."""


class FakeProber:
    """Answers as the recorded machine would have."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.blocks = dict(EXT4_BLOCKS)
        self.fail: set[str] = set()
        self.drbd_status: bytes | None = None
        self.sysfs_to_remove: Path | None = None

    def read_head(self, path: str, number: str, length: int) -> bytes:
        if self.sysfs_to_remove is not None and self.sysfs_to_remove.exists():
            self.sysfs_to_remove.rename(self.sysfs_to_remove.with_name("was-sys"))
        name = Path(path).name
        self.asked.append(f"{name} {number}")
        if name in self.fail:
            raise ProbeError("Input/output error")
        if name == "dm-1":
            return xfs_head(262144, 65536, 16384)
        return ext4_head(self.blocks[name]) if name in self.blocks else b"\0" * length

    def read_usage(self, path: str, number: str) -> Usage:
        self.asked.append(f"{path} {number}")
        if path in self.fail:
            raise ProbeError("it does not answer within 2 s")
        if path == "/mnt/docker":
            return Usage(block_bytes=4096, blocks=245760, free_blocks=235783, available_blocks=235783)
        return Usage(block_bytes=1024, blocks=235431, free_blocks=235417, available_blocks=218214)

    def read_drbd_status(self) -> bytes:
        if self.drbd_status is None:
            raise ProbeError("No such file or directory")
        return self.drbd_status


def ext4_head(blocks: int) -> bytes:
    head = bytearray(4096)
    for offset, value, length in (
        (0x4, blocks, 4), (0x14, 1, 4), (0x20, 8192, 4), (0x28, 2048, 4), (0x38, 0xEF53, 2), (0x4C, 1, 4),
        (0x58, 256, 2), (0x60, 0x40, 4),
    ):  # fmt: skip
        head[1024 + offset : 1024 + offset + length] = value.to_bytes(length, "little")
    return bytes(head)


def xfs_head(blocks: int, group_blocks: int, log_blocks: int) -> bytes:
    head = bytearray(4096)
    head[:16] = b"XFSB" + (4096).to_bytes(4, "big") + blocks.to_bytes(8, "big")
    head[48:56] = (7).to_bytes(8, "big")
    head[84:100] = b"".join(
        value.to_bytes(4, "big") for value in (group_blocks, -(-blocks // group_blocks), 0, log_blocks)
    )
    head[120] = 12
    return bytes(head)


class Machine:
    """The recorded machine, laid out in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("sys/block", "proc/self", "dev/drbd/by-res"):
            (root / name).mkdir(parents=True)
        for line in (DATA / "sysfs.txt").read_text().splitlines():
            path, _, value = line.partition(":")
            file = root / "sys/block" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            (root / "sys/block" / path.split("/")[0] / "holders").mkdir(exist_ok=True)
            file.write_text(f"{value.strip()}\n")
        (root / "proc/self/mountinfo").write_bytes((DATA / "mountinfo").read_bytes())
        (root / "proc/drbd").write_bytes((DATA / "proc-drbd").read_bytes())
        (root / "dev/drbd/by-res/drbd-pgsql").symlink_to("../../drbd0")
        self.prober = FakeProber()

    def set(self, device: str, key: str, value: object) -> None:
        (self.root / "sys/block" / device / key).write_text(f"{value}\n")

    def scanner(self, nearly_full_percent: float = 90) -> LayerScanner:
        return LayerScanner(
            self.prober,
            nearly_full_percent=nearly_full_percent,
            sys_directory=str(self.root / "sys"),
            proc_directory=str(self.root / "proc"),
            dev_directory=str(self.root / "dev"),
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def group() -> VolumeGroup:
    rows = json.loads((DATA / "lvs.json").read_text())["report"][0]["lv"]
    lvs = [
        msgspec.structs.replace(
            make_lv(
                row["lv_name"].strip("[]"),
                int(row["lv_size"]) // (4 * MIB),
                hidden=row["lv_name"].startswith("["),
                roles=tuple(row["lv_role"].split(",")),
                layouts=tuple(row["lv_layout"].split(",")),
                extent_size_bytes=4 * MIB,
            ),
            uuid=row["lv_uuid"],
            active=row["lv_name"] != "etcd-lv",
        )
        for row in rows
    ]
    return msgspec.structs.replace(make_vg(lvs), uuid=(DATA / "vguuid").read_text().strip())


def test_the_whole_machine(machine: Machine, group: VolumeGroup) -> None:
    scan = machine.scanner().scan(group)
    assert scan.findings == ()
    assert scan.layers is not None
    seen = {
        name: [(one.kind, one.device, one.type, one.size_bytes, one.mount_point) for one in sections]
        for name, sections in scan.layers.items()
        if sections
    }
    assert seen == {
        "pgsql-lv": [
            ("drbd", "/dev/drbd0", "8.4.11", 268390400, None),
            ("filesystem", "/dev/drbd0", "ext4", 268390400, "/mnt/pg"),
        ],
        "docker-lv": [("filesystem", "/dev/cgts-vg/docker-lv", "xfs", 1073741824, "/mnt/docker")],
        "log-lv": [("filesystem", "/dev/cgts-vg/log-lv", "ext4", 268435456, "/mnt/var log")],
        "secret-lv": [
            ("crypt", "/dev/mapper/secret", "luks2", 117440512, None),
            ("filesystem", "/dev/mapper/secret", "ext4", 117440512, "/mnt/secret"),
        ],
    }
    # looked at, and nothing is there
    assert [scan.layers[name] for name in ("scratch-lv", "raid-lv", "pool", "raid-lv_rimage_0")] == [()] * 4
    assert "etcd-lv" not in scan.layers  # not active: can't be looked at
    assert scan.drbd is not None
    assert [(state.device, state.connection_state, state.role) for state in scan.drbd] == [
        ("drbd0", "WFConnection", "Primary")
    ]
    assert "drbd0 147:0" in machine.prober.asked
    assert "/mnt/var log 254:2" in machine.prober.asked


def test_each_layer_that_was_left_behind(machine: Machine, group: VolumeGroup) -> None:
    machine.set("dm-0", "size", 786432)  # pgsql-lv was extended: DRBD was not
    machine.set("dm-4", "size", 393216)  # secret-lv: dm-crypt was not
    machine.prober.blocks["dm-2"] = 131072  # log-lv: ext4 was not
    machine.set("dm-1", "size", 1048576)  # docker-lv: the table was not
    findings = machine.scanner().scan(group).findings
    assert {(finding.kind, finding.subject) for finding in findings} == {
        ("drbd_not_grown", "pgsql-lv"),
        ("crypt_not_grown", "secret-lv"),
        ("filesystem_not_grown", "log-lv"),
        ("lv_not_activated_at_new_size", "docker-lv"),
    }
    hints = {finding.kind: finding.hint for finding in findings}
    assert "drbdadm -- --assume-peer-has-space resize drbd-pgsql" in str(hints["drbd_not_grown"])
    assert hints["crypt_not_grown"] == "`cryptsetup resize secret`"
    assert hints["filesystem_not_grown"] == "`resize2fs /dev/cgts-vg/log-lv`"
    assert hints["lv_not_activated_at_new_size"] == "`lvchange --refresh cgts-vg/docker-lv`"


def test_threshold_of_nearly_full(machine: Machine, group: VolumeGroup) -> None:
    findings = machine.scanner(nearly_full_percent=4).scan(group).findings
    assert [(finding.kind, finding.subject) for finding in findings] == [
        ("filesystem_nearly_full", "docker-lv")
    ]
    assert "/mnt/docker is 4.1 % full" in findings[0].message


def test_no_sysfs(tmp_path: Path, group: VolumeGroup) -> None:
    scanner = LayerScanner(
        FakeProber(), sys_directory=str(tmp_path), proc_directory="/proc", dev_directory="/dev"
    )
    scan = scanner.scan(group)
    assert (scan.layers, scan.drbd, [finding.kind for finding in scan.findings]) == (
        None,
        None,
        ["layers_unseen"],
    )


def test_a_container_whose_sysfs_shows_other_devices(tmp_path: Path, group: VolumeGroup) -> None:
    (tmp_path / "block").mkdir()
    scanner = LayerScanner(
        FakeProber(), sys_directory=str(tmp_path), proc_directory="/proc", dev_directory="/dev"
    )
    scan = scanner.scan(group)
    (finding,) = scan.findings
    assert finding.kind == "layers_unseen"
    assert "pgsql-lv" in finding.message
    assert scan.layers is not None
    assert "pgsql-lv" not in scan.layers
    assert scan.drbd is None


def test_an_inactive_group_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "block").mkdir()
    inactive = make_vg([msgspec.structs.replace(make_lv("x-lv", 1), active=False)])
    scan = LayerScanner(FakeProber(), sys_directory=str(tmp_path)).scan(inactive)
    assert (scan.layers, scan.findings, scan.drbd) == ({}, (), ())


def test_without_drbd_and_mounts(machine: Machine, group: VolumeGroup) -> None:
    (machine.root / "proc/drbd").unlink()
    (machine.root / "proc/self/mountinfo").unlink()
    (machine.root / "sys/block/dm-0/holders/drbd0").unlink()
    scan = machine.scanner().scan(group)
    assert (scan.findings, scan.drbd) == ((), ())
    assert scan.layers is not None
    (section,) = scan.layers["log-lv"]
    assert (section.type, section.mount_point, section.used_percent) == ("ext4", None, None)


def test_drbd_that_says_nothing(machine: Machine, group: VolumeGroup) -> None:
    (machine.root / "proc/drbd").unlink()
    scan = machine.scanner().scan(group)
    assert [finding.kind for finding in scan.findings] == ["drbd_unreadable"]
    assert scan.drbd is None


def test_drbd_9(machine: Machine, group: VolumeGroup) -> None:
    (machine.root / "proc/drbd").write_text("version: 9.1.7 (api:2/proto:110-121)\n")
    scan = machine.scanner().scan(group)
    assert [finding.kind for finding in scan.findings] == ["drbd_unreadable"]
    machine.prober.drbd_status = (
        b'[{"name":"drbd-pgsql","role":"Secondary","devices":[{"volume":0,"minor":0,"disk-state":"UpToDate"}],'
        b'"connections":[]}]'
    )
    scan = machine.scanner().scan(group)
    assert scan.findings == ()
    assert scan.drbd is not None
    assert [state.role for state in scan.drbd] == ["Secondary"]
    assert "drbd0 147:0" not in machine.prober.asked[len(machine.prober.asked) // 2 :]


def test_volumes_of_one_resource_have_links_in_a_directory(machine: Machine, group: VolumeGroup) -> None:
    (machine.root / "dev/drbd/by-res/drbd-pgsql").unlink()
    (machine.root / "dev/drbd/by-res/r0").mkdir()
    (machine.root / "dev/drbd/by-res/r0/0").symlink_to("../../../drbd0")
    machine.set("dm-0", "size", 786432)
    (finding,) = machine.scanner().scan(group).findings
    assert "resize r0`" in str(finding.hint)


def test_suspended_device_is_not_touched(machine: Machine, group: VolumeGroup) -> None:
    machine.set("dm-1", "dm/suspended", 1)
    scan = machine.scanner().scan(group)
    assert not [asked for asked in machine.prober.asked if asked.startswith(("dm-1 ", "/mnt/docker"))]
    assert [(finding.kind, finding.subject) for finding in scan.findings] == [
        ("layer_unreadable", "docker-lv")
    ]
    assert scan.layers is not None
    (section,) = scan.layers["docker-lv"]
    assert (section.type, section.size_bytes, section.mount_point) == ("xfs", None, "/mnt/docker")


def test_devices_and_mounts_that_do_not_answer_are_named_and_the_others_judged(
    machine: Machine, group: VolumeGroup
) -> None:
    machine.prober.fail = {"dm-2", "/mnt/docker"}
    scan = machine.scanner().scan(group)
    assert {(finding.subject, finding.message.rpartition(": ")[2]) for finding in scan.findings} == {
        ("log-lv", "Input/output error"),
        ("docker-lv", "it does not answer within 2 s"),
    }
    assert scan.layers is not None
    assert scan.layers["pgsql-lv"][1].size_bytes == 268390400


@pytest.mark.parametrize(
    "gone", ["dm-19", "dm-19/size", "dm-19/dev", "dm-19/holders", "dm-4", "dm-4/dm", "dm-4/dm/uuid"]
)
def test_entries_that_vanish(machine: Machine, group: VolumeGroup, gone: str) -> None:
    path = machine.root / "sys/block" / gone
    path.rename(machine.root / "gone")
    scan = machine.scanner().scan(group)
    assert scan.layers is not None
    assert scan.layers["log-lv"][0].type == "ext4"
    assert not [section for section in scan.layers.get("secret-lv", ()) if section.kind == "filesystem"]


@pytest.mark.parametrize("garbage", ["", "x", "-5\0", "9" * 400])
def test_garbage_in_sysfs(machine: Machine, group: VolumeGroup, garbage: str) -> None:
    machine.set("dm-2", "size", garbage)
    scan = machine.scanner().scan(group)
    assert scan.layers is not None
    assert "log-lv" not in scan.layers
    assert "docker-lv" in scan.layers


def test_everything_vanishes_while_it_is_read(machine: Machine, group: VolumeGroup) -> None:
    machine.prober.sysfs_to_remove = machine.root / "sys"
    assert machine.scanner().scan(group).layers is not None
    assert not (machine.root / "sys").exists()
