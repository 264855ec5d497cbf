"""Verdicts of single filesystems."""

from datetime import timedelta

import pytest
from builders import NOW, make_bug_vg, make_lv, make_vg, record

from agent.core.compare import find_record_problems, find_unrecorded, judge_filesystem, unknown_filesystem
from agent.core.models import Phase, RecordedFilesystem
from agent.core.report import FilesystemVerdict
from agent.core.units import GIB

GRACE_SECONDS = 600.0


def verdict_of(row: RecordedFilesystem, **changed: int) -> tuple[str, int | None]:
    section = judge_filesystem(make_bug_vg(**changed), row, as_of=NOW, grace_seconds=GRACE_SECONDS)
    return section.verdict.value, section.delta_extents


@pytest.mark.parametrize(
    ("row", "changed", "verdict", "delta"),
    [
        (record("docker", 30), {}, "match", 0),
        (record("docker", 40), {}, "undersized", -320),
        (record("docker", 30), {"docker_lv": 961}, "oversized", 1),
        (record("docker", 40), {"docker_lv": 0}, "missing", -1280),
        (record("log", 8, whole_gib=True), {}, "rounding", -6),
        (record("log", 8), {}, "undersized", -6),
        (record("log", 9, whole_gib=True), {}, "undersized", -38),
        (record("log", 7, whole_gib=True), {}, "oversized", 26),
        (record("database", 10, lv="pgsql-lv", factor=2, whole_gib=True), {}, "match", 0),
        (record("database", 10, lv="pgsql-lv", factor=2, whole_gib=True), {"pgsql_lv": 577}, "rounding", -63),
        (
            record("database", 10, lv="pgsql-lv", factor=2, whole_gib=True),
            {"pgsql_lv": 576},
            "undersized",
            -64,
        ),
    ],
)
def test_verdict_and_difference(
    row: RecordedFilesystem, changed: dict[str, int], verdict: str, delta: int
) -> None:
    assert verdict_of(row, **changed) == (verdict, delta)


def aged(seconds: float, phase: Phase = Phase.SETTLED, *, lv: str = "docker-lv") -> RecordedFilesystem:
    return record("docker", 40, lv=lv, phase=phase, state="X", recorded_at=NOW - timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (aged(599), "transition"),
        (aged(600), "undersized"),
        (aged(-3600), "transition"),
        (aged(599, Phase.CHANGING), "transition"),
        (aged(600, Phase.CHANGING), "undersized"),
        (aged(0, Phase.FAILED), "undersized"),
        (aged(599, Phase.CREATING, lv="new-lv"), "transition"),
        (aged(600, Phase.CREATING, lv="new-lv"), "missing"),
        (aged(10**7, Phase.CREATING_ON_UNLOCK, lv="new-lv"), "transition"),
        (aged(10**7, Phase.CREATING_ON_UNLOCK), "undersized"),
        (aged(10**7, Phase.DELETING_ON_UNLOCK), "transition"),
        (aged(600, Phase.DELETING, lv="gone-lv"), "missing"),
        (record("docker", 40, phase=Phase.CHANGING), "transition"),
        (record("docker", 40), "undersized"),
        (record("docker", 30, phase=Phase.CHANGING, recorded_at=NOW), "match"),
    ],
)
def test_a_change_under_way_excuses_for_the_grace_only(row: RecordedFilesystem, verdict: str) -> None:
    assert verdict_of(row)[0] == verdict


def test_stuck_change_says_since_when() -> None:
    section = judge_filesystem(
        make_bug_vg(), aged(7200, Phase.CHANGING), as_of=NOW, grace_seconds=GRACE_SECONDS
    )
    assert section.detail == "X since 2026-12-01T10:00:00Z"


def test_unknown_claims_nothing_about_the_lv() -> None:
    section = unknown_filesystem(record("docker", 40))
    assert section.verdict is FilesystemVerdict.UNKNOWN
    assert section.recorded_bytes == 40 * GIB
    assert [
        section.recorded_extents,
        section.actual_bytes,
        section.actual_extents,
        section.delta_extents,
    ] == [None] * 4


def test_striped_record_needs_whole_stripes() -> None:
    lv = make_lv("striped-lv", 33, segtype="striped", areas=[("/dev/sda", 11)] * 3, data_stripes=3)
    section = judge_filesystem(make_vg([lv]), record("striped", 1), as_of=None, grace_seconds=GRACE_SECONDS)
    assert (section.verdict, section.recorded_extents) == (FilesystemVerdict.MATCH, 33)


def test_internal_volumes_are_not_unrecorded() -> None:
    volume_group = make_vg([
        make_lv("b-lv", 1),
        make_lv("pool0_tmeta", 1, hidden=True),
        make_lv("b-lv-snap", 1, roles=("public", "snapshot", "thicksnapshot")),
        make_lv("thin-snap", 1, segtype="thin", areas=[], roles=("public", "snapshot", "thinsnapshot")),
        make_lv("a-lv", 1),
    ])  # fmt: skip
    assert find_unrecorded(volume_group, (record("b", 1),)) == ("thin-snap", "a-lv")


def test_two_records_for_one_lv_are_named() -> None:
    findings = find_record_problems((record("a", 1), record("b", 1, lv="a-lv"), record("c", 1)))
    assert [(finding.subject, finding.message) for finding in findings] == [
        ("a-lv", "2 records name the same LV: a, b")
    ]
