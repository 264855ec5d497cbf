"""From recorded sysfs, mountinfo and DRBD texts to layers and findings."""

import re
from pathlib import Path

import msgspec
import pytest
from builders import make_lv, make_vg

from agent.core.layers.drbd import metadata_bytes, parse_drbdsetup_json, parse_proc_drbd, parse_version
from agent.core.layers.findings import find_layer_problems
from agent.core.layers.mounts import Mount, parse_mountinfo
from agent.core.layers.stacks import Layer, LayerKind, Stack, can_probe, describe, find_stacks
from agent.core.layers.superblock import Superblock
from agent.core.layers.view import BlockDevice, HostView, Probe, Usage, make_probe
from agent.core.models import DrbdState, Finding, LogicalVolume, VolumeGroup
from agent.core.units import GIB, KIB, MIB

DATA = Path(__file__).parent.parent / "data"

# Mounts


def test_mountinfo_of_a_real_host() -> None:
    mounts = parse_mountinfo((DATA / "sysfs/mountinfo").read_text())
    assert mounts["254:2"] == Mount(path="/mnt/var log", type="ext4", is_whole=True)
    assert mounts["254:1"] == Mount(path="/mnt/docker", type="xfs", is_whole=True)  # not its bind mount
    assert mounts["147:0"] == Mount(path="/mnt/pg", type="ext4", is_whole=True)
    assert "254:0" not in mounts


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"1 2 8:1 / /a\134b\011c rw - ext4 /dev/x rw", Mount(path="/a\\b\tc", type="ext4", is_whole=True)),
        (
            "1 2 8:1 /sub /a rw shared:1 master:2 - xfs /dev/x rw",
            Mount(path="/a", type="xfs", is_whole=False),
        ),
        ("1 2 8:1 / /a rw ext4 /dev/x rw x y", None),
        ("1 2 8:1 / /a", None),
        ("", None),
        ("- - - - - - - - - -", None),
    ],
)
def test_mountinfo_lines(line: str, expected: Mount | None) -> None:
    assert parse_mountinfo(line).get("8:1") == expected


def test_the_filesystems_own_root_is_preferred_to_a_bind_mount_before_it() -> None:
    text = "1 2 8:1 /sub /bound rw - ext4 /dev/x rw\n3 2 8:1 / /whole rw - ext4 /dev/x rw\n4 2 8:1 / /later rw - ext4 x rw\n"
    assert parse_mountinfo(text)["8:1"].path == "/whole"


# DRBD


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("proc-drbd", ("WFConnection", "Primary", "Unknown", "UpToDate", "DUnknown", None)),
        ("two-node0-syncing", ("SyncSource", "Primary", "Secondary", "UpToDate", "Inconsistent", 6.3)),
        ("two-node0-after-resize", ("SyncSource", "Primary", "Secondary", "UpToDate", "Inconsistent", 11.8)),
        ("two-node0-synced", ("Connected", "Primary", "Secondary", "UpToDate", "UpToDate", None)),
        ("two-node1-syncing", ("WFSyncUUID", "Secondary", "Primary", "Inconsistent", "UpToDate", None)),
        ("two-node1-after-resize", ("SyncTarget", "Secondary", "Primary", "Inconsistent", "UpToDate", 11.8)),
        ("two-node1-synced", ("Connected", "Secondary", "Primary", "UpToDate", "UpToDate", None)),
    ],
)
def test_proc_drbd_of_real_pairs(file: str, expected: tuple[str, str, str, str, str, float | None]) -> None:
    text = (DATA / f"drbd/{file}.txt").read_text()
    state = parse_proc_drbd(text)["drbd0"]
    assert (
        state.connection_state, state.role, state.peer_role, state.disk_state, state.peer_disk_state,
        state.resync_percent,
    ) == expected  # fmt: skip
    assert parse_version(text) == "8.4.11"


@pytest.mark.parametrize(
    "text", ["", "version: 8.4.11 (api:1)\n", " 3: cs:Unconfigured\n", "garbage \0 \x1b", "sync'ed: 5%"]
)
def test_proc_drbd_without_devices(text: str) -> None:
    assert parse_proc_drbd(text) == {}


def test_several_devices_keep_their_own_percent() -> None:
    text = (
        " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n"
        " 8: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----\n"
        "\t[=>..................] sync'ed: 42.0% (1/2)K\n"
        "11: cs:StandAlone ro:Primary/Unknown ds:UpToDate/DUnknown   r-----\n"
    )
    assert {name: state.resync_percent for name, state in parse_proc_drbd(text).items()} == {
        "drbd0": None, "drbd8": 42.0, "drbd11": None,
    }  # fmt: skip


DRBD9 = b"""[{"name": "r0", "role": "Primary", "devices": [
  {"volume": 0, "minor": 1, "disk-state": "UpToDate", "size": 1048576}],
  "connections": [
   {"peer-node-id": 1, "connection-state": "Connected", "peer-role": "Secondary", "peer_devices": [
     {"volume": 0, "replication-state": "Established", "peer-disk-state": "UpToDate", "percent-in-sync": 100.0}]},
   {"peer-node-id": 2, "connection-state": "Connected", "peer-role": "Secondary", "peer_devices": [
     {"volume": 0, "replication-state": "SyncSource", "peer-disk-state": "Inconsistent", "percent-in-sync": 37.25}]}
  ]}]"""
"""As the manual of DRBD 9 describes it."""


def test_drbd_9_shows_the_peer_that_is_worst_off() -> None:
    assert parse_drbdsetup_json(DRBD9) == {
        "drbd1": DrbdState(
            device="drbd1", role="Primary", peer_role="Secondary", connection_state="SyncSource",
            disk_state="UpToDate", peer_disk_state="Inconsistent", resync_percent=37.25,
        )
    }  # fmt: skip
    assert parse_drbdsetup_json(b"[]") == {}


@pytest.mark.parametrize("data", [b"", b"{}", b"USAGE: drbdsetup", b'[{"devices": [{"minor": "x"}]}]'])
def test_drbd_9_garbage(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever msgspec says
        parse_drbdsetup_json(data)


@pytest.mark.parametrize(
    ("disk_bytes", "kept_bytes"),
    [
        (268435456, 268435456 - 268390400),
        (536870912, 536870912 - 536817664),
        (134217728, 134217728 - 134176768),
        (20 * GIB, 692224),
    ],
)
def test_drbd_metadata_as_seen_on_real_devices(disk_bytes: int, kept_bytes: int) -> None:
    assert metadata_bytes(disk_bytes, "8.4.11") == kept_bytes


# The recorded machine


def recorded_devices() -> dict[str, BlockDevice]:
    facts: dict[str, dict[str, str]] = {}
    for line in (DATA / "sysfs/sysfs.txt").read_text().splitlines():
        path, _, value = line.partition(": ")
        name, _, key = path.partition("/")
        facts.setdefault(name, {})[key.rstrip(":")] = value
    return {
        name: BlockDevice(
            name=name,
            number=values["dev"],
            size_bytes=int(values["size"]) * 512,
            holders=tuple(key.removeprefix("holders/") for key in values if key.startswith("holders/")),
            dm_name=values.get("dm/name"),
            dm_uuid=values.get("dm/uuid"),
        )
        for name, values in facts.items()
    }


def recorded_group() -> VolumeGroup:
    rows = msgspec.json.decode((DATA / "sysfs/lvs.json").read_bytes())["report"][0]["lv"]
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
        )
        for row in rows
    ]
    volume_group = make_vg(lvs, extent_size_bytes=4 * MIB)
    return msgspec.structs.replace(volume_group, uuid=(DATA / "sysfs/vguuid").read_text().strip())


def recorded_view() -> HostView:
    return HostView(
        devices=recorded_devices(),
        mounts=parse_mountinfo((DATA / "sysfs/mountinfo").read_text()),
        drbd=parse_proc_drbd((DATA / "sysfs/proc-drbd").read_text()),
        drbd_version="8.4.11",
        drbd_resources={"drbd0": "drbd-pgsql"},
    )


def test_stacks_of_the_recorded_machine() -> None:
    stacks = find_stacks(recorded_group(), recorded_view())
    assert {
        name: (
            stack.base.name,
            [layer.device.name for layer in stack.layers],
            stack.mount and stack.mount.path,
        )
        for name, stack in stacks.items()
    } == {
        "pgsql-lv": ("dm-0", ["drbd0"], "/mnt/pg"),
        "docker-lv": ("dm-1", [], "/mnt/docker"),
        "log-lv": ("dm-2", [], "/mnt/var log"),
        "log-snap": ("dm-18", [], None),
        "scratch-lv": ("dm-3", [], None),
        "secret-lv": ("dm-4", ["dm-19"], "/mnt/secret"),
        "raid-lv": ("dm-10", [], None),
        "thin-lv": ("dm-15", [], None),
    }  # etcd-lv is not active; sub-LVs and the pool carry only LVs
    assert all(stack.is_open_ended for stack in stacks.values())
    assert stacks["pgsql-lv"].top_path == "/dev/drbd0"
    assert stacks["secret-lv"].top_path == "/dev/mapper/secret"
    assert stacks["log-lv"].top_path == "/dev/cgts-vg/log-lv"


def test_nothing_is_wrong_on_the_recorded_machine() -> None:
    view = recorded_view()
    for stack in find_stacks(recorded_group(), view).values():
        assert list(find_layer_problems(stack, view, None, nearly_full_percent=90)) == []


# Layers made by hand

EXT4 = Superblock(type="ext4", block_bytes=4096, block_count=262144, group_blocks=32768)
"""1 GiB."""
XFS = Superblock(
    type="xfs", block_bytes=4096, block_count=262144, group_blocks=65536, tail_blocks=4096, log_blocks=16384
)
MOUNT = Mount(path="/m", type="ext4", is_whole=True)


def lv_of(size_bytes: int, **changes: object) -> LogicalVolume:
    return msgspec.structs.replace(make_lv("x-lv", 1), size_bytes=size_bytes, **changes)


def device(name: str, size_bytes: int, uuid: str | None = None, *, suspended: bool = False) -> BlockDevice:
    return BlockDevice(
        name=name, number="254:0", size_bytes=size_bytes, dm_uuid=uuid, dm_name="secret" if uuid else None,
        is_suspended=suspended,
    )  # fmt: skip


def stack_of(
    lv: LogicalVolume | int,
    base_bytes: int,
    *above: tuple[LayerKind, BlockDevice],
    mount: Mount | None = None,
    is_suspended: bool = False,
) -> Stack:
    return Stack(
        lv=lv if isinstance(lv, LogicalVolume) else lv_of(lv),
        path="/dev/cgts-vg/x-lv",
        base=device("dm-0", base_bytes),
        layers=tuple(Layer(kind=kind, device=one) for kind, one in above),
        mount=mount,
        is_suspended=is_suspended,
    )


def problems(stack: Stack, probe: Probe | None = None, view: HostView | None = None) -> list[Finding]:
    view = view or HostView(devices={}, mounts={})
    return list(find_layer_problems(stack, view, probe, nearly_full_percent=90))


def kinds(stack: Stack, probe: Probe | None = None, view: HostView | None = None) -> list[str]:
    return [finding.kind for finding in problems(stack, probe, view)]


def test_table_not_reloaded() -> None:
    (finding,) = problems(stack_of(20 * GIB, 10 * GIB))
    assert finding.kind == "lv_not_activated_at_new_size"
    assert "20 GiB in LVM's metadata, but the kernel still serves 10 GiB" in finding.message
    assert finding.hint == "`lvchange --refresh cgts-vg/x-lv`"
    assert kinds(stack_of(20 * GIB, 20 * GIB)) == []
    snapshot = lv_of(20 * GIB, roles=("public", "snapshot", "thicksnapshot"))
    assert kinds(stack_of(snapshot, 10 * GIB)) == []


@pytest.mark.parametrize(
    ("below_bytes", "drbd_bytes", "expected"),
    [
        (536870912, 268390400, ["drbd_not_grown"]),
        (536870912, 536817664, []),
        (268435456 + 4 * MIB, 268390400, ["drbd_not_grown"]),
        (GIB, GIB, []),
    ],
)
def test_drbd_not_grown(below_bytes: int, drbd_bytes: int, expected: list[str]) -> None:
    assert kinds(stack_of(below_bytes, below_bytes, ("drbd", device("drbd0", drbd_bytes)))) == expected


@pytest.mark.parametrize(
    ("peer_role", "command"),
    [
        ("Secondary", "`drbdadm resize drbd-pgsql` once"),
        ("Unknown", "`drbdadm -- --assume-peer-has-space resize drbd-pgsql` (the peer is away"),
    ],
)
def test_drbd_command_depends_on_the_peer(peer_role: str, command: str) -> None:
    view = HostView(
        devices={}, mounts={}, drbd={"drbd0": DrbdState(device="drbd0", peer_role=peer_role)},
        drbd_version="8.4.11", drbd_resources={"drbd0": "drbd-pgsql"},
    )  # fmt: skip
    (finding,) = problems(stack_of(GIB, GIB, ("drbd", device("drbd0", GIB // 2))), view=view)
    assert str(finding.hint).startswith(command)


@pytest.mark.parametrize(
    ("uuid", "crypt_bytes", "expected"),
    [
        ("CRYPT-LUKS2-1234-secret", GIB - 16 * MIB, []),
        ("CRYPT-LUKS2-1234-secret", GIB - 17 * MIB, ["crypt_not_grown"]),
        ("CRYPT-LUKS1-1234-secret", GIB - 2 * MIB, []),
        ("CRYPT-LUKS1-1234-secret", GIB - 3 * MIB, ["crypt_not_grown"]),
        ("CRYPT-PLAIN-secret", GIB, []),
        ("CRYPT-PLAIN-secret", GIB - 512, ["crypt_not_grown"]),
        ("CRYPT-TCRYPT-x", GIB - 16 * MIB, []),
    ],
)
def test_crypt_not_grown(uuid: str, crypt_bytes: int, expected: list[str]) -> None:
    found = problems(stack_of(GIB, GIB, ("crypt", device("dm-1", crypt_bytes, uuid))))
    assert [finding.kind for finding in found] == expected
    assert all(finding.hint == "`cryptsetup resize secret`" for finding in found)


def usage(blocks: int, used: int = 0, *, reserved: int = 0) -> Usage:
    return Usage(
        block_bytes=4096, blocks=blocks, free_blocks=blocks - used, available_blocks=blocks - used - reserved
    )


@pytest.mark.parametrize(
    ("device_bytes", "probe", "mount", "expected"),
    [
        (GIB, Probe(superblock=EXT4), None, []),
        (GIB + 3 * KIB, Probe(superblock=EXT4), None, []),
        (GIB + 4 * MIB, Probe(superblock=EXT4), None, ["filesystem_not_grown"]),
        (GIB + 4 * MIB, Probe(superblock=EXT4, usage=usage(300000)), MOUNT, ["filesystem_not_grown"]),
        (GIB, Probe(superblock=XFS), None, []),
        (GIB + 8 * MIB, Probe(superblock=XFS), None, []),  # too small for a group
        (GIB + 32 * MIB, Probe(superblock=XFS), None, ["filesystem_not_grown"]),
        # mounted: the kernel's count plus the log is the truth, whatever the superblock on disk says
        (GIB + 32 * MIB, Probe(superblock=XFS, usage=usage(262144 + 8192 - 16384)), MOUNT, []),
        (GIB + 32 * MIB, Probe(superblock=XFS, usage=usage(262144 - 16384)), MOUNT, ["filesystem_not_grown"]),
        (GIB, Probe(usage=usage(262144 - 102400)), MOUNT, []),
        (GIB, Probe(usage=usage(262144 - 102401)), MOUNT, ["filesystem_not_grown"]),
        (20 * GIB, Probe(usage=usage(5242880 - 262144)), MOUNT, []),
        (20 * GIB, Probe(usage=usage(5242880 - 262145)), MOUNT, ["filesystem_not_grown"]),
        (GIB, Probe(), None, []),
        (GIB, None, MOUNT, []),
    ],
)
def test_filesystem_not_grown(
    device_bytes: int, probe: Probe | None, mount: Mount | None, expected: list[str]
) -> None:
    assert kinds(stack_of(device_bytes, device_bytes, mount=mount), probe) == expected


@pytest.mark.parametrize(
    ("probe", "mount", "hint"),
    [
        (Probe(superblock=EXT4), None, "`resize2fs /dev/cgts-vg/x-lv`"),
        (Probe(superblock=XFS, usage=usage(1)), Mount(path="/var/lib/a b", type="xfs", is_whole=True),
         "`xfs_growfs /var/lib/a b`"),
        (Probe(superblock=XFS), None, "mount /dev/cgts-vg/x-lv, then `xfs_growfs` its mount point"),
        (Probe(usage=usage(1)), Mount(path="/m", type="btrfs", is_whole=True), "grow it with the tool of btrfs"),
    ],
)  # fmt: skip
def test_filesystem_command(probe: Probe, mount: Mount | None, hint: str) -> None:
    (finding,) = problems(stack_of(2 * GIB, 2 * GIB, mount=mount), probe)
    assert finding.hint == hint


@pytest.mark.parametrize(
    ("seen", "percent", "is_told"),
    [
        (usage(1000, 899), 89.9, False),
        (usage(1000, 900), 90.0, True),
        (usage(1000, 855, reserved=50), 90.0, True),  # what only root may use is not free
        (usage(0), None, False),
    ],
)
def test_nearly_full(seen: Usage, percent: float | None, is_told: bool) -> None:  # noqa: FBT001
    assert seen.used_percent == percent
    found = kinds(stack_of(GIB, GIB, mount=MOUNT), Probe(superblock=EXT4, usage=seen))
    assert found == (["filesystem_nearly_full"] if is_told else [])


def test_suspended_devices_are_not_read_and_not_blamed() -> None:
    stack = stack_of(2 * GIB, GIB, is_suspended=True)
    view = HostView(devices={}, mounts={})
    assert can_probe(stack, view) is False
    assert kinds(stack) == ["layer_unreadable"]


def test_a_secondary_device_is_not_read_and_its_filesystem_not_known() -> None:
    stack = stack_of(GIB, GIB, ("drbd", device("drbd0", GIB)))
    state = DrbdState(device="drbd0", role="Secondary")
    view = HostView(devices={}, mounts={}, drbd={"drbd0": state}, drbd_version="8.4.11")
    assert can_probe(stack, view) is False
    drbd, filesystem = describe(stack, view, None)
    assert (drbd.kind, drbd.device, drbd.type, drbd.drbd) == ("drbd", "/dev/drbd0", "8.4.11", state)
    assert (filesystem.kind, filesystem.type, filesystem.size_bytes) == ("filesystem", None, None)


def test_layers_as_published() -> None:
    crypt = device("dm-1", GIB - 16 * MIB, "CRYPT-LUKS2-1234-secret")
    stack = stack_of(GIB, GIB, ("crypt", crypt), mount=MOUNT)
    sections = describe(
        stack, HostView(devices={}, mounts={}), Probe(superblock=EXT4, usage=usage(1000, 123))
    )
    assert msgspec.json.decode(msgspec.json.encode(sections)) == [
        {"kind": "crypt", "device": "/dev/mapper/secret", "type": "luks2", "size_bytes": 1056964608,
         "mount_point": None, "used_percent": None, "drbd": None},
        {"kind": "filesystem", "device": "/dev/mapper/secret", "type": "ext4", "size_bytes": 1073741824,
         "mount_point": "/m", "used_percent": 12.3, "drbd": None},
    ]  # fmt: skip


def test_an_empty_volume_has_no_filesystem_and_an_unread_one_an_unknown_one() -> None:
    view = HostView(devices={}, mounts={})
    assert describe(stack_of(GIB, GIB), view, Probe()) == ()
    (unread,) = describe(stack_of(GIB, GIB), view, Probe(problem="Permission denied"))
    assert (unread.kind, unread.type, unread.size_bytes) == ("filesystem", None, None)
    assert kinds(stack_of(GIB, GIB), Probe(problem="Permission denied")) == ["layer_unreadable"]


def test_what_is_held_by_something_else_is_left_alone() -> None:
    devices = recorded_devices()
    devices["dm-3"] = msgspec.structs.replace(devices["dm-3"], holders=("md0",))
    devices["dm-1"] = msgspec.structs.replace(devices["dm-1"], holders=("dm-30", "dm-31"))
    devices["dm-2"] = msgspec.structs.replace(devices["dm-2"], holders=("drbd7",))  # vanished meanwhile
    view = msgspec.structs.replace(recorded_view(), devices=devices)
    stacks = find_stacks(recorded_group(), view)
    for name in ("scratch-lv", "docker-lv", "log-lv"):
        assert stacks[name].is_open_ended is False
        assert can_probe(stacks[name], view) is False
        assert describe(stacks[name], view, None) == ()


def test_holders_that_go_round_in_a_circle_end() -> None:
    devices = recorded_devices()
    devices["drbd0"] = msgspec.structs.replace(devices["drbd0"], holders=("dm-19",))
    devices["dm-19"] = msgspec.structs.replace(devices["dm-19"], holders=("drbd0",))
    stacks = find_stacks(recorded_group(), msgspec.structs.replace(recorded_view(), devices=devices))
    assert [layer.device.name for layer in stacks["pgsql-lv"].layers] == ["drbd0", "dm-19"]


def test_damaged_superblock_and_leftovers_of_another_filesystem() -> None:
    damaged = make_probe(None, b"XFSB" + b"\0" * 200, None, None)
    assert (damaged.superblock, damaged.problem) == (
        None,
        "its superblock is damaged: xfs block size 0 can't be",
    )
    head = (b"XFSB" + (4096).to_bytes(4, "big") + (100).to_bytes(8, "big")).ljust(84, b"\0")
    head = (head + b"".join(value.to_bytes(4, "big") for value in (100, 1, 0, 9))).ljust(
        120, b"\0"
    ) + b"\x0c" * 8
    assert make_probe(None, head, None, None).superblock is not None
    assert make_probe(MOUNT, head, None, None).superblock is None  # ext4 is mounted: those bytes are old


def test_mount_paths_are_harmless_in_messages_and_documents() -> None:
    mount = Mount(path="/m\x1b[31m\udcff", type="ext4", is_whole=True)
    stack = stack_of(GIB, GIB, mount=mount)
    probe = Probe(superblock=EXT4, usage=usage(100, 95))
    (section,) = describe(stack, HostView(devices={}, mounts={}), probe)
    text = msgspec.json.encode([section, *problems(stack, probe)]).decode()
    assert re.search(r"[\x00-\x1f]", text) is None
    assert "\\\\x1b" in text
