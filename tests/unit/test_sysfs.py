"""Active LVs from a made-up /sys."""

from pathlib import Path

import pytest

from agent.host.sysfs import read_active_volumes

VG = "wSUFCeakpUtwhJcYNSTAOWQey02YZxjA"
LV = "mGIZtKSTZc3agKxcnhXQAXucfxAFj0Nh"


def make_device(root: Path, name: str, uuid: str | None) -> None:
    folder = root / "block" / name / "dm"
    folder.mkdir(parents=True)
    if uuid is not None:
        (folder / "uuid").write_text(uuid + "\n")


@pytest.mark.parametrize(
    ("uuid", "is_active"),
    [
        (f"LVM-{VG}{LV}", True),
        (f"LVM-{VG}{LV}-tpool", True),
        (f"LVM-{VG}{LV}-pool", True),
        (f"LVM-{VG}{LV}-tdata", True),
        (f"LVM-{VG}{LV}-real", False),
        (f"LVM-{VG}{LV}-cow", False),
        (f"CRYPT-LUKS2-{VG}{LV}", False),
        (f"LVM-{VG}", False),
        ("", False),
        (None, False),
    ],
)
def test_which_device_makes_an_lv_active(tmp_path: Path, uuid: str | None, is_active: bool) -> None:  # noqa: FBT001 - a table
    make_device(tmp_path, "dm-0", uuid)
    assert read_active_volumes(tmp_path) == (frozenset({VG + LV}) if is_active else frozenset())


def test_an_origin_is_active_by_its_own_device_beside_its_layer(tmp_path: Path) -> None:
    make_device(tmp_path, "dm-0", f"LVM-{VG}{LV}-real")
    make_device(tmp_path, "dm-1", f"LVM-{VG}{LV}")
    assert read_active_volumes(tmp_path) == frozenset({VG + LV})


def test_disks_that_are_no_device_mapper_make_nothing_active(tmp_path: Path) -> None:
    (tmp_path / "block" / "sda").mkdir(parents=True)
    assert read_active_volumes(tmp_path) == frozenset()


def test_no_sys_is_unknown_and_so_is_an_empty_one(tmp_path: Path) -> None:
    assert read_active_volumes(tmp_path) is None
    (tmp_path / "block").mkdir()
    assert read_active_volumes(tmp_path) is None
