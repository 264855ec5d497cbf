"""One question from reading to answer, with the parts replaced: order, clocks, failures, and its text."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from builders import NOW, make_bug_vg, record, recorded

from agent.cli.layers_text import describe_layers
from agent.cli.preflight_text import describe_preflight
from agent.core.errors import InventoryError, LvmError, VolumeGroupAbsent
from agent.core.layers.view import LayerScan
from agent.core.models import DrbdState, Reading, ReadMode, RecordedSizes, Source, VolumeGroup
from agent.core.report import LayerSection, LogicalVolumeSection, LvRole
from agent.core.resize.ask import parse_asked
from agent.core.resize.document import PreflightDocument
from agent.core.units import GIB
from agent.preflight import Adviser, Question

SYNCING = DrbdState(device="drbd8", connection_state="SyncSource", disk_state="UpToDate", resync_percent=11.8)


class Host:
    """A host, its inventory and a clock on which each step takes two seconds."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.reading: Reading | LvmError = Reading(volume_group=make_bug_vg())
        self.recorded: RecordedSizes | InventoryError = recorded(record("docker", 30), as_of=NOW)
        self.drbd: tuple[DrbdState, ...] | None = ()
        self._seconds = 0.0

    @property
    def origin(self) -> str:
        return "a test"

    def now(self) -> datetime:
        return datetime(2001, 1, 1, tzinfo=UTC)  # the host's own clock plays no part

    def monotonic_seconds(self) -> float:
        return self._seconds

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self._seconds += 2

    def read(self, volume_group: str) -> Reading:
        self._step(f"read {volume_group}")
        if isinstance(self.reading, LvmError):
            raise self.reading
        return self.reading

    def scan(self, volume_group: VolumeGroup) -> LayerScan:
        self._step(f"scan {volume_group.name}")
        return LayerScan(layers={}, drbd=self.drbd)

    def fetch(self) -> RecordedSizes:
        self._step("fetch")
        if isinstance(self.recorded, InventoryError):
            raise self.recorded
        return self.recorded

    def answer(self, *words: str, is_rebuild: bool = False, has_inventory: bool = True) -> PreflightDocument:
        asked, mistakes = parse_asked(words)
        adviser = Adviser(
            reader=self, inventory=self if has_inventory else None, layers=self, clock=self, grace_seconds=600
        )
        return adviser.answer(
            Question(volume_group="cgts-vg", asked=asked, mistakes=mistakes, is_rebuild=is_rebuild)
        )


def kinds(document: PreflightDocument) -> list[str]:
    return [reason.kind for reason in document.reasons]


def test_lvm_is_read_before_the_records() -> None:
    host = Host()
    document = host.answer("docker=40")
    assert host.steps == ["read cgts-vg", "scan cgts-vg", "fetch"]
    assert (document.allowed, document.question, kinds(document)) == (True, "resize", [])
    assert document.volume_group is not None
    assert document.volume_group.allocatable_extents == 517


def test_a_rebuild_does_not_look_at_layers() -> None:
    host = Host()
    document = host.answer(is_rebuild=True)
    assert host.steps == ["read cgts-vg", "fetch"]
    assert (document.allowed, document.question) == (True, "rebuild")


def test_drbd_at_work_is_busy_and_an_unseen_one_a_warning() -> None:
    host = Host()
    host.drbd = (SYNCING,)
    assert kinds(host.answer("docker=40")) == ["drbd_resync"]
    host.drbd = None
    document = host.answer("docker=40")
    assert (kinds(document), document.allowed) == (["drbd_unknown"], True)


def test_reading_without_the_lock_means_that_it_is_held() -> None:
    host = Host()
    host.reading = Reading(volume_group=msgspec.structs.replace(make_bug_vg(), read_mode=ReadMode.LOCK_FREE))
    assert kinds(host.answer("docker=40")) == ["lock_held"]


@pytest.mark.parametrize(("age_seconds", "expected"), [(5, ["stale"]), (7, [])])
def test_a_record_that_changed_while_lvm_was_read(age_seconds: float, expected: list[str]) -> None:
    """Reading began six seconds before the answer came, on the inventory's clock."""
    host = Host()
    changed = record("docker", 30, source=Source.HOST_FS, recorded_at=NOW - timedelta(seconds=age_seconds))
    host.recorded = recorded(changed, as_of=NOW)
    assert kinds(host.answer("docker=40")) == expected


def lvm_fails(host: Host) -> None:
    host.reading = VolumeGroupAbsent(subject="cgts-vg", visible="none")


def inventory_fails(host: Host) -> None:
    host.recorded = InventoryError(subject="http://x", reason="no answer")


def inventory_does_not_cover(host: Host) -> None:
    assert isinstance(host.recorded, RecordedSizes)
    host.recorded = msgspec.structs.replace(host.recorded, volume_groups=("other-vg",))


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        ([lvm_fails], ["vg_absent"]),
        ([inventory_fails], ["inventory_unavailable"]),
        ([inventory_does_not_cover], ["not_covered"]),
        ([lvm_fails, inventory_fails], ["vg_absent", "inventory_unavailable"]),
    ],
)
def test_each_unreadable_half_is_named(break_it: list[Callable[[Host], None]], expected: list[str]) -> None:
    host = Host()
    for one in break_it:
        one(host)
    document = host.answer("docker=40", "x")
    assert kinds(document) == [*expected, "syntax"]
    assert (document.allowed, document.ledger, document.capacity) == (None, None, None)
    assert [one.name for one in document.asked] == ["docker"]


def test_no_inventory() -> None:
    document = Host().answer("docker=40", has_inventory=False)
    assert kinds(document) == ["no_inventory"]
    assert document.allowed is None


# Text


def test_on_a_terminal_lines_are_wrapped_and_the_verdict_coloured() -> None:
    document = Host().answer("docker=50", "dokcer=1", "\x1b[31mx=1")
    text = describe_preflight(document, with_ledger=True, width=60, is_coloured=True)
    assert text.startswith("\x1b[1;31mREFUSED\x1b[0m  cgts-vg: growing 3 filesystems\n")
    assert "\x1b[31m" not in text.replace("\x1b[1;31m", "")
    reasons = text.partition("\n\n")[0].splitlines()[5:]
    assert max(map(len, reasons)) <= 60
    assert "docker-lv would fail: 640 extents needed, but only 517 available" in " ".join(
        " ".join(reasons).split()
    )


def test_verdict_words() -> None:
    host = Host()
    assert describe_preflight(host.answer("docker=40"), with_ledger=False).startswith("ALLOWED  ")
    host.drbd = (SYNCING,)
    assert describe_preflight(host.answer("docker=40"), with_ledger=False).startswith("NOT NOW  ")
    lvm_fails(host)
    assert describe_preflight(host.answer("docker=40"), with_ledger=False).startswith("CAN'T TELL  ")


def lv_section(
    name: str, layers: tuple[LayerSection, ...] | None, role: LvRole = LvRole.PUBLIC
) -> LogicalVolumeSection:
    return LogicalVolumeSection(
        name=name, uuid="u", size_bytes=GIB, extents=32, physical_extents=32, role=role, active=True, health=None,
        data_percent=None, metadata_percent=None, layers=layers,
    )  # fmt: skip


def test_layers_as_text() -> None:
    drbd = LayerSection(
        kind="drbd", device="/dev/drbd8", type="8.4.11", size_bytes=GIB // 2, mount_point=None, drbd=SYNCING
    )
    mounted = LayerSection(
        kind="filesystem", device="/dev/drbd8", type="ext4", size_bytes=GIB // 4, mount_point="/var/lib/x",
        used_percent=12.5,
    )  # fmt: skip
    unknown = LayerSection(
        kind="filesystem", device="/dev/drbd0", type=None, size_bytes=None, mount_point=None
    )
    crypt = LayerSection(kind="crypt", device="/dev/mapper/s", type="luks2", size_bytes=GIB, mount_point=None)
    lvs = [
        lv_section("a-lv", (drbd, mounted)),
        lv_section("b-lv", (crypt, unknown)),
        lv_section("c-lv", ()),
        lv_section("d-lv", None),
        lv_section("hidden", (), LvRole.PRIVATE),
    ]
    assert list(describe_layers(lvs)) == [
        "a-lv: 1 GiB",
        "  drbd 8.4.11 /dev/drbd8: 0.5 GiB, SyncSource ?/? UpToDate/?, 11.8 % in sync",
        "    ext4 on /dev/drbd8: 0.25 GiB, at /var/lib/x, 12.5 % used",
        "b-lv: 1 GiB",
        "  crypt luks2 /dev/mapper/s: 1 GiB",
        "    filesystem ? on /dev/drbd0: size ?, not mounted",
        "c-lv: 1 GiB, nothing on it",
        "d-lv: 1 GiB, layers unknown",
    ]
