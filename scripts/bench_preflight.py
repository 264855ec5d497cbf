"""The answer before a resize, and the layers above the LVs.

The question itself is pure and measured on volume groups made in memory; the layers on a sysfs written
for it, with the real helper asking this kernel, and on real, mounted LVs in a guest.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from bench_bed import Beds
from bench_daemon import measure_guest
from bench_table import Figure, file_read_us, measure, measure_processor, processor_ms, require, resident_kib
from builders import make_lv, make_pv, make_vg

from agent.core.capacity import preflight
from agent.core.layers.view import Usage
from agent.core.models import RecordedFilesystem, RecordedSizes, Source, VolumeGroup
from agent.core.resize.ask import parse_asked
from agent.core.resize.busy import Activity
from agent.core.units import GIB, MIB
from agent.host.layers import LayerScanner
from agent.host.probe_process import start_helper
from agent.host.prober import Prober

_EXTENTS = 32
"""One GiB."""


def asking(count: int) -> Callable[[], object]:
    """The question for one LV of so many, each recorded and every third with a growth still to come."""
    names = [f"vol-{number:05d}" for number in range(count)]
    volume_group = make_vg(
        (make_lv(name, _EXTENTS) for name in names),
        pvs=(make_pv("/dev/sda", 4 * _EXTENTS * count, _EXTENTS * count),),
    )
    rows = tuple(
        RecordedFilesystem(
            name=name,
            source=Source.FILE,
            logical_volume=name,
            volume_group=volume_group.name,
            recorded_bytes=(2 if number % 3 == 0 else 1) * GIB,
            granularity_bytes=None,
        )
        for number, name in enumerate(names)
    )
    recorded = RecordedSizes(filesystems=rows, origin="file:bench")
    asked, mistakes = parse_asked([f"{names[-1]}=3"])
    require(not mistakes, "the question is understood")
    return lambda: preflight(volume_group, recorded, asked, Activity())


class _LoopProber:
    """The real helper and the real kernel; every device is one loop device, and every mount is `/`."""

    def __init__(self, device: str) -> None:
        self.helper = start_helper()
        self._prober = Prober(start=lambda: self.helper)
        self._device, self._device_number = device, _number(Path(device).stat().st_rdev)
        self._root_number = _number(Path("/").stat().st_dev)

    def read_head(self, path: str, number: str, length: int) -> bytes:  # noqa: ARG002 - the port's shape
        return self._prober.read_head(self._device, self._device_number, length)

    def read_usage(self, path: str, number: str) -> Usage:  # noqa: ARG002 - as above
        return self._prober.read_usage("/", self._root_number)

    def read_drbd_status(self) -> bytes:
        return b"[]"

    def close(self) -> None:
        self._prober.close()


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def measure_layers(device: str, *, count: int, scans: int) -> Iterator[Figure]:
    """Scans of so many active LVs, each of them mounted, in a sysfs written as the kernel would."""
    with (
        tempfile.TemporaryDirectory(prefix="agent-bench-") as name,
        contextlib.closing(_LoopProber(device)) as prober,
    ):
        root = Path(name)
        volume_group = _lay_out(root, count)
        scanner = LayerScanner(
            prober,
            sys_directory=str(root / "sys"),
            proc_directory=str(root / "proc"),
            dev_directory=str(root / "dev"),
        )
        scan = scanner.scan(volume_group)
        seen = [layer for layers in (scan.layers or {}).values() for layer in layers]
        require(len(seen) == count, "each LV has one layer")
        helper_ms = processor_ms(prober.helper.pid)
        (own_ms,) = measure_processor(scans, lambda: scanner.scan(volume_group))
        helper_ms = (processor_ms(prober.helper.pid) - helper_ms) / (scans + 1)
        helper_kib = resident_kib(prober.helper.pid)
    yield Figure(f"CPU of the layers of {count} LVs, with the helper's", own_ms + helper_ms, 10.0, "ms")
    yield Figure("memory of the probe helper", helper_kib / 1024, 12.0, "MiB")


def _lay_out(root: Path, count: int) -> VolumeGroup:
    (root / "proc/self").mkdir(parents=True)
    uuid, lvs, mounts = "V" * 32, [], []
    for number in range(count):
        lv_name, lv_uuid = f"vol-{number}", f"{number:032d}"
        lvs.append(msgspec.structs.replace(make_lv(lv_name, _EXTENTS), uuid=lv_uuid))
        device = root / f"sys/block/dm-{number}"
        (device / "dm").mkdir(parents=True)
        (device / "holders").mkdir()
        (device / "dm/uuid").write_text(f"LVM-{uuid}{lv_uuid}\n")
        (device / "dm/name").write_text(f"cgts--vg-vol--{number}\n")
        (device / "dev").write_text(f"252:{number}\n")
        (device / "size").write_text(f"{lvs[-1].size_bytes // 512}\n")
        mounts.append(f"{30 + number} 1 252:{number} / /mnt/{number} rw - ext4 /dev/dm-{number} rw\n")
    (root / "proc/self/mountinfo").write_text("".join(mounts))
    return msgspec.structs.replace(make_vg(lvs), uuid=uuid)


def measure_preflight(beds: Beds, *, is_long: bool) -> Iterator[Figure]:
    """The figures of questions and layers."""
    runs = 45 if is_long else 9
    fifty_ms, hundreds_ms = measure_processor(20 * runs, asking(50), asking(500))
    (all_ms,) = measure_processor(runs, asking(10_000))
    yield Figure("CPU of a question, 50 LVs", fifty_ms, 1.0, "ms")
    yield Figure("CPU of a question, 10,000 LVs", all_ms, None, "ms")
    # linear: as much for each LV, with half as much again for the processor's caches
    yield Figure("cost for each LV: 10,000 LVs / 500 LVs", all_ms / 20 / hundreds_ms, 1.5, "x")
    device = beds.lvm.add_disk(MIB)
    yield from measure_layers(device, count=12, scans=20 * runs)
    small = beds.small
    audit_ms, preflight_ms = measure(75 if is_long else 15, small.audit_cold, small.preflight_cold)
    yield Figure("cold `agent audit --once`", audit_ms, None, "ms")
    yield Figure("cold `agent preflight docker=40`", preflight_ms, None, "ms")
    yield Figure("cold preflight - cold audit", preflight_ms - audit_ms, 50.0, "ms")
    guest = measure_guest()
    yield Figure("guest: the layers of 12 mounted LVs, own CPU", guest["layers_ms"], 10.0, "ms")
    yield Figure("guest: reading a file / here", guest["file_read_us"] / file_read_us(), None, "x")
