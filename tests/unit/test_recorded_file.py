"""The recorded-size file: what it says, and every mistake named with its row."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import make_bug_vg, make_lv, make_vg

from agent.core.baseline import name_filesystems, write_baseline
from agent.core.errors import ExitCode, RecordedFileInvalid
from agent.core.judge import judge
from agent.core.models import Reading, RecordedSizes, Source
from agent.core.report import FilesystemVerdict
from agent.core.units import GIB
from agent.inventory.file import FileInventory

ROW = '[[filesystem]]\nname = "docker"\nlogical_volume = "docker-lv"\nsize = "30GiB"\n'


def fetch(tmp_path: Path, text: str | bytes, *, default: str = "cgts-vg") -> RecordedSizes:
    path = tmp_path / "sizes.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return FileInventory(str(path), default_volume_group=default).fetch()


def problems_of(tmp_path: Path, text: str | bytes) -> tuple[str, ...]:
    with pytest.raises(RecordedFileInvalid) as caught:
        fetch(tmp_path, text)
    assert caught.value.exit_code is ExitCode.INVENTORY
    assert caught.value.subject == str(tmp_path / "sizes.toml")
    return caught.value.problems


def test_rows_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = ROW + '[[filesystem]]\nname = "a"\nlogical_volume = "a"\nvolume_group = "nova-local"\nsize = 2\n'
    sizes = fetch(tmp_path, text, default="own-vg")
    assert [
        (row.name, row.volume_group, row.logical_volume, row.recorded_bytes) for row in sizes.filesystems
    ] == [("docker", "own-vg", "docker-lv", 30 * GIB), ("a", "nova-local", "a", 2 * GIB)]
    assert {row.source for row in sizes.filesystems} == {Source.FILE}
    assert {row.granularity_bytes for row in sizes.filesystems} == {None}
    assert {row.recorded_at for row in sizes.filesystems} == {None}
    assert sizes.origin == str(tmp_path / "sizes.toml")
    assert sizes.covers("anything")


def test_whole_gib_is_a_granularity(tmp_path: Path) -> None:
    (row,) = fetch(tmp_path, "whole_gib = true\n" + ROW).filesystems
    assert row.granularity_bytes == GIB


def test_an_empty_file_records_nothing(tmp_path: Path) -> None:
    assert fetch(tmp_path, "").filesystems == ()


def test_it_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "sizes.toml"
    path.write_text(ROW, encoding="utf-8")
    inventory = FileInventory(str(path), default_volume_group="cgts-vg")
    assert inventory.fetch().filesystems[0].recorded_bytes == 30 * GIB
    path.write_text(ROW.replace("30", "40"), encoding="utf-8")
    assert inventory.fetch().filesystems[0].recorded_bytes == 40 * GIB
    path.write_text(ROW.replace("30", "no"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(RecordedFileInvalid):
            inventory.fetch()
    path.unlink()
    with pytest.raises(RecordedFileInvalid, match="No such file"):
        inventory.fetch()
    path.write_text(ROW.replace("30", "40"), encoding="utf-8")
    assert inventory.fetch().filesystems[0].recorded_bytes == 40 * GIB


def test_the_same_bytes_are_not_parsed_again(tmp_path: Path) -> None:
    path = tmp_path / "sizes.toml"
    path.write_text(ROW, encoding="utf-8")
    inventory = FileInventory(str(path), default_volume_group="cgts-vg")
    assert inventory.fetch() is inventory.fetch()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("frob = 1", "unknown key 'frob' (known: whole_gib, filesystem)"),
        ("whole_gib = 1", "whole_gib: must be true or false, not 1"),
        ("filesystem = 3", "filesystem: must be a list of tables: write [[filesystem]] above each row"),
        ("filesystem = [3]", "filesystem: must be a list of tables: write [[filesystem]] above each row"),
        (
            '[filesystem]\nname = "x"',
            "filesystem: must be a list of tables: write [[filesystem]] above each row",
        ),
        (
            ROW + "sice = 1",
            "row 1 ('docker'): unknown key 'sice' (known: name, logical_volume, volume_group, size)",
        ),
        (ROW.replace("docker-lv", "-lv"), "row 1 ('docker'): logical_volume: '-lv' is no LVM name"),
        (ROW.replace("docker-lv", ".."), "row 1 ('docker'): logical_volume: '..' is no LVM name"),
        (ROW.replace("docker-lv", "a/b"), "row 1 ('docker'): logical_volume: 'a/b' is no LVM name"),
        (
            ROW.replace("docker-lv", "x" * 128),
            "row 1 ('docker'): logical_volume: the name has 128 characters, LVM allows 127",
        ),
        (ROW.replace("docker-lv", ""), "row 1 ('docker'): logical_volume is empty"),
        (ROW + 'volume_group = "a b"', "row 1 ('docker'): volume_group: 'a b' is no LVM name"),
        (ROW + "volume_group = 7", "row 1 ('docker'): volume_group must be text, not 7"),
        (ROW.replace('"docker"', '""'), "row 1: name is empty"),
        (ROW.replace('"docker"', "5"), "row 1: name must be text, not 5"),
        (
            ROW.replace('"docker"', "[0x" + "f" * 20_000 + "]"),
            "row 1: name must be text, not a huge number",
        ),
        (
            ROW.replace('"30GiB"', "0x" + "f" * 20_000),
            "row 1 ('docker'): size: a size above 2^63 bytes does not exist",
        ),
        (ROW.replace('name = "docker"', ""), "row 1: name is missing"),
        (ROW.replace('size = "30GiB"', ""), "row 1 ('docker'): size is missing"),
        (ROW.replace('logical_volume = "docker-lv"', ""), "row 1 ('docker'): logical_volume is missing"),
        (
            ROW.replace('"docker"', '"do\\u001b[31mcker"'),
            r"row 1 ('do\x1b[31mcker'): size",
        ),
    ],
)
def test_one_mistake(tmp_path: Path, text: str, problem: str) -> None:
    if "1b[31m" in text:
        text = text.replace("30GiB", "0")
    (only,) = problems_of(tmp_path, text)
    assert only.startswith(problem)


@pytest.mark.parametrize(
    "size",
    [
        "0", "-1", '"-30"', '"30 bananas"', '""', "true", "nan", "inf", "30.0", "1.5", '"1.5GiB"', "[30]",
        "{ gib = 30 }", "2026-12-01", '"30GB"', '"30  GiB"', '"٣٠"', "9223372036854775808", "0x" + "f" * 5000,
        '"9223372036854775808B"', '"8589934592GiB"', '"0B"',
    ],
)  # fmt: skip
def test_sizes_that_are_none(tmp_path: Path, size: str) -> None:
    (only,) = problems_of(tmp_path, ROW.replace('"30GiB"', size))
    assert only.startswith("row 1 ('docker'): size: ")
    assert len(only) < 200


def test_whole_gib_wants_whole_gib(tmp_path: Path) -> None:
    (only,) = problems_of(tmp_path, "whole_gib = true\n" + ROW.replace("30GiB", "8000MiB"))
    assert only == (
        "row 1 ('docker'): size: '8000MiB' is not a whole number of GiB, but the file says whole_gib = true"
    )
    text = "whole_gib = true\n" + ROW.replace("30GiB", "8192MiB")
    assert fetch(tmp_path, text).filesystems[0].recorded_bytes == 8 * GIB


def test_all_mistakes_are_told_together(tmp_path: Path) -> None:
    text = (
        "frob = 1\n"
        + ROW
        + ROW.replace("30GiB", "30 bananas").replace("docker", "backup")
        + ROW
        + ROW.replace('"docker"', '"other"')
    )
    assert problems_of(tmp_path, text) == (
        "unknown key 'frob' (known: whole_gib, filesystem)",
        (
            "row 2 ('backup'): size: '30 bananas' is not a size: "
            "write a whole number of GiB, or add GiB, MiB, KiB or B"
        ),
        "row 3 ('docker'): name 'docker' stands in row 1 ('docker') already",
        "row 3 ('docker'): logical_volume 'docker-lv' stands in row 1 ('docker') already",
        "row 4 ('other'): logical_volume 'docker-lv' stands in row 1 ('docker') already",
    )


def test_two_volume_groups_may_have_the_same_names(tmp_path: Path) -> None:
    sizes = fetch(tmp_path, ROW + ROW + 'volume_group = "nova-local"\n')
    assert [row.volume_group for row in sizes.filesystems] == ["cgts-vg", "nova-local"]


def test_a_named_default_volume_group_is_the_same_volume_group(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, ROW + ROW + 'volume_group = "cgts-vg"\n')
    assert len(problems) == 2


def test_a_thousand_mistakes_are_not_all_told(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, "[[filesystem]]\n" * 500)
    assert len(problems) == 51
    assert problems[-1] == "and 1450 more"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x7fELF\x00\xff\xfe", "is not UTF-8 text: byte 0xff on line 1"),
        (b"a\nb\xe9", "is not UTF-8 text: byte 0xe9 on line 2"),
        (b"<html>", "is not TOML: Invalid statement (at line 1, column 1)"),
        (b"\x00\x00", "is not TOML: Invalid statement (at line 1, column 1)"),
        (b"x = " + b"[" * 100_000, "is not TOML: "),
        (b"x = " + b"9" * 10_000, "is not TOML: "),
        (b"#" * (10 * 1000 * 1000), "is larger than 1 MiB, which no recorded-size file is"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, data: bytes, problem: str) -> None:
    (only,) = problems_of(tmp_path, data)
    assert only.startswith(problem)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, problem in (
        (tmp_path / "absent", "can't be read: No such file or directory"),
        (tmp_path, "can't be read: Is a directory"),
        (fifo, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (loop, "can't be read: Too many levels of symbolic links"),
        (tmp_path / ("x" * 300), "can't be read: File name too long"),
    ):
        with pytest.raises(RecordedFileInvalid) as caught:
            FileInventory(str(path), default_volume_group="cgts-vg").fetch()
        assert caught.value.problems == (problem,), path


def test_a_hostile_path_is_shown_harmlessly() -> None:
    inventory = FileInventory("/nowhere/\x1b[31m\udcff", default_volume_group="cgts-vg")
    assert inventory.origin == r"/nowhere/\x1b[31m\udcff"
    with pytest.raises(RecordedFileInvalid, match=r"/nowhere/\\x1b\[31m\\udcff: can't be read"):
        inventory.fetch()


# The file that `agent baseline` writes.

WHEN = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def test_an_audit_against_a_fresh_baseline_finds_only_matches(tmp_path: Path) -> None:
    group = make_bug_vg()
    sizes = fetch(tmp_path, write_baseline([group], hostname="controller-0", taken_at=WHEN))
    judgement = judge("cgts-vg", Reading(volume_group=group), sizes, grace_seconds=0)
    assert judgement.filesystems is not None
    assert len(judgement.filesystems) == 12
    assert {row.verdict for row in judgement.filesystems} == {FilesystemVerdict.MATCH}
    assert judgement.unrecorded == ()


def test_the_text_of_a_baseline() -> None:
    group = make_vg([make_lv("log-lv", 250), make_lv("odd", 1, extent_size_bytes=1000)])
    assert write_baseline([group], hostname="controller-0", taken_at=WHEN) == (
        "# Sizes as LVM had them: cgts-vg on controller-0, 2026-12-01T03:00:00Z.\n"
        "# Written by `agent baseline`; edit it when a size is changed on purpose.\n"
        "whole_gib = false\n"
        "\n"
        "[[filesystem]]\n"
        'name = "log"\n'
        'logical_volume = "log-lv"\n'
        'volume_group = "cgts-vg"\n'
        'size = "8000MiB"\n'
        "\n"
        "[[filesystem]]\n"
        'name = "odd"\n'
        'logical_volume = "odd"\n'
        'volume_group = "cgts-vg"\n'
        'size = "1000B"\n'
    )


def test_a_baseline_leaves_out_what_nobody_records(tmp_path: Path) -> None:
    group = make_vg(
        [
            make_lv("a-lv", 1),
            make_lv("a-snap", 1, roles=("public", "snapshot", "thicksnapshot")),
            make_lv("lvol0_pmspare", 1, hidden=True),
        ]
    )
    sizes = fetch(tmp_path, write_baseline([group], hostname="h", taken_at=WHEN))
    assert [row.logical_volume for row in sizes.filesystems] == ["a-lv"]


@pytest.mark.parametrize(
    ("lv_names", "names"),
    [
        (["docker-lv", "x"], ["docker", "x"]),
        (["a", "a-lv"], ["a", "a-lv"]),
        (["a-lv", "a"], ["a-lv", "a"]),
        (["a", "a-lv", "a-lv-lv"], ["a", "a-lv", "a-lv-lv"]),
        (["a.b_c+d-lv", "lv"], ["a.b_c+d", "lv"]),
        ([], []),
    ],
)
def test_names_in_a_baseline_are_short_and_unique(lv_names: list[str], names: list[str]) -> None:
    assert list(name_filesystems(lv_names).values()) == names


def test_a_hostile_host_name_stays_in_its_comment(tmp_path: Path) -> None:
    text = write_baseline([make_bug_vg()], hostname="h\nwhole_gib = true\x1b", taken_at=WHEN)
    assert {row.granularity_bytes for row in fetch(tmp_path, text).filesystems} == {None}
