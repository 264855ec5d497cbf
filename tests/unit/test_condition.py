"""Findings about reading and damage, and what is made of LVM's messages."""

import msgspec
import pytest
from fakelvm import DATA

from agent.core.lvm.condition import (
    find_damage,
    find_reading_notes,
    find_warnings,
    harmless,
    meaningful_lines,
)
from agent.core.lvm.parse import parse_volume_group
from agent.core.models import ReadMode, Severity, VolumeGroup


def load(case: str, name: str) -> VolumeGroup:
    folder = DATA / case
    return parse_volume_group((folder / "vgs.json").read_bytes(), (folder / "lvs.json").read_bytes(), name)


@pytest.mark.parametrize(
    "line",
    [
        "  WARNING: Activation disabled. No device-mapper interaction will be attempted.",
        "  /dev/mapper/control: open failed: No such device",
        "  /dev/mapper/control: open failed: Operation not permitted",
        "  Failure to communicate with kernel device-mapper driver.",
        "  Check that device-mapper is available in the kernel.",
        "  Incompatible libdevmapper 1.02.185 (2022-05-18) and kernel driver (unknown version).",
        "WARNING: /dev/mapper/control: open failed: No such device",
        "   ",
    ],
)
def test_expected_noise_says_nothing(line: str) -> None:
    assert meaningful_lines(f"{line}\n") == ()


def test_other_lines_lose_only_level_and_indentation_and_warnings_come_first() -> None:
    messages = "  Reading VG\n  WARNING: PV missing\n  /dev/sda: read failed\n  WARNING: PV missing\n"
    assert meaningful_lines(messages) == ("PV missing", "Reading VG", "/dev/sda: read failed")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb", "a\\nb"),
        ("x" * 301, "x" * 299 + "…"),
        ("x" * 300, "x" * 300),
    ],
)
def test_harmless(text: str, expected: str) -> None:
    assert harmless(text) == expected


def test_ten_warnings_and_a_count_of_the_others() -> None:
    findings = find_warnings("cgts-vg", [f"line {number % 13}" for number in range(40)])
    assert [finding.message for finding in findings] == [f"line {number}" for number in range(10)] + [
        "... and 3 more lines"
    ]
    assert {finding.subject for finding in findings} == {"cgts-vg"}


def test_a_healthy_group_has_no_findings() -> None:
    group = load("bug-healthy", "cgts-vg")
    assert find_damage(group) == ()
    assert find_reading_notes(group, 0) == ()


def test_raid_legs_of_unknown_health_are_no_damage() -> None:
    assert find_damage(load("varied", "var-vg")) == ()


def test_damage_by_health_or_by_attributes() -> None:
    group = load("missing-pv", "miss-vg")
    volumes = tuple(msgspec.structs.replace(lv, health="unknown") for lv in group.logical_volumes)
    for each in (group, msgspec.structs.replace(group, logical_volumes=volumes)):
        findings = find_damage(each)
        assert [(finding.kind, finding.subject) for finding in findings] == [
            ("pv_missing", "miss-vg"),
            ("lv_partial", "gone-lv"),
            ("lv_partial", "half-lv"),
        ]
        assert findings[0].message == "1 of 2 physical volumes missing"
        assert all(finding.severity is Severity.CRITICAL and finding.hint for finding in findings)


def test_a_damaged_hidden_part_is_told_by_its_owner() -> None:
    group = load("missing-pv", "miss-vg")
    volumes = tuple(msgspec.structs.replace(lv, is_hidden=True) for lv in group.logical_volumes)
    findings = find_damage(msgspec.structs.replace(group, logical_volumes=volumes))
    assert [finding.kind for finding in findings] == ["pv_missing"]


def test_reading_notes() -> None:
    group = msgspec.structs.replace(load("bug-healthy", "cgts-vg"), read_mode=ReadMode.LOCK_FREE)
    assert [(note.kind, note.severity) for note in find_reading_notes(group, 3)] == [
        ("read_lock_free", Severity.INFO),
        ("lvm_output_repaired", Severity.INFO),
    ]
