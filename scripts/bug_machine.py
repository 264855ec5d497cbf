"""The bug report's machine, rebuilt in a scratch LVM: a 179 GiB disk, 5727 extents, twelve LVs.

Three moments of its life, each with the sizes its inventory records:

- *healthy*: everything recorded is there;
- *before the upgrade*: dockerdistribution was grown, so the recorded growth of docker finds no room;
- *after the reinstall*: docker and dockerdistribution got theirs, and backup can't have its own any more.

Not here: how a scratch LVM is made (see `scratch_lvm`).
"""

from collections.abc import Mapping
from pathlib import Path

from scratch_lvm import GIB, MIB, ScratchLvm

GROUP = "cgts-vg"
DISK_BYTES = 179 * GIB
EXTENT_BYTES = 32 * MIB

HEALTHY: Mapping[str, int] = {
    "scratch": 16 * GIB,
    "log": 8000 * MIB,
    "extension": 1 * GIB,
    "pgsql": 20 * GIB,
    "docker": 30 * GIB,
    "kubelet": 10 * GIB,
    "platform": 10 * GIB,
    "etcd": 5 * GIB,
    "dockerdistribution": 16 * GIB,
    "backup": 25 * GIB,
    "rabbit": 2 * GIB,
    "ceph-mon": 20 * GIB,
}
"""Actual sizes in bytes of the LVs called ``<name>-lv``; 517 extents are left."""
BEFORE_UPGRADE = {**HEALTHY, "dockerdistribution": 32 * GIB}
AFTER_REINSTALL = {**HEALTHY, "docker": 40 * GIB, "dockerdistribution": 32 * GIB, "backup": 1 * GIB}

HEALTHY_RECORD = {name: "8GiB" if name == "log" else f"{size // GIB}GiB" for name, size in HEALTHY.items()}
"""What the inventory says of the healthy machine: whole GiB, so the log of 8000 MiB stands as 8."""
GROWN_RECORD = {
    **{name: size for name, size in HEALTHY_RECORD.items() if name not in ("log", "rabbit", "ceph-mon")},
    "docker": "40GiB",
    "dockerdistribution": "32GiB",
}
"""What it says before the upgrade and after the reinstall; log, rabbit and ceph-mon are not recorded."""


def build_bug_machine(lvm: ScratchLvm, sizes: Mapping[str, int] = HEALTHY) -> None:
    """Make the machine's volume group with LVs of these sizes in bytes."""
    lvm.create_group(GROUP, lvm.add_disk(DISK_BYTES), extent_bytes=EXTENT_BYTES)
    for name, size_bytes in sizes.items():
        lvm.create_volume(GROUP, f"{name}-lv", size_bytes)


def write_record(
    path: Path, record: Mapping[str, str], *, whole_gib: bool = False, suffix: str = "-lv"
) -> None:
    """Write a recorded-size file: one row for each name, its LV called name and suffix."""
    lines = [f"whole_gib = {str(whole_gib).lower()}"]
    for name, size in record.items():
        row = {"name": name, "logical_volume": f"{name}{suffix}", "size": size}
        lines += ["", "[[filesystem]]", *(f'{key} = "{value}"' for key, value in row.items())]
    path.write_text("\n".join(lines) + "\n")
