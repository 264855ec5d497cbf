"""What people read: at 80 columns, in a pipe, without colour, and with hostile names."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from builders import make_bug_vg, make_lv, make_pv, make_vg, record, recorded
from rich.cells import cell_len

from agent.cli.bar import scale, split
from agent.cli.cells import choose_widths, fold_name, format_delta, format_extents, format_size
from agent.cli.table import render
from agent.core.errors import LvmError, RecordedFileInvalid, VolumeGroupAbsent
from agent.core.judge import judge
from agent.core.models import Reading, ReadMode, RecordedSizes, VolumeGroup
from agent.core.names import to_visible
from agent.core.report import AuditDocument, HostSection, Trigger
from agent.core.units import GIB, MIB

GROWN = {"docker": 40, "dockerdistribution": 32, "backup": 25}
BEFORE_UPGRADE = recorded(*(record(name, gib) for name, gib in GROWN.items()))
ABSENT = VolumeGroupAbsent(subject="cgts-vg", visible="other-vg")
UNREADABLE = RecordedFileInvalid(subject="/etc/sizes.toml", problems=("can't be read: No such file",))


def before_upgrade_vg() -> VolumeGroup:
    return make_bug_vg(dockerdistribution_lv=1024)


def make_document(
    group: VolumeGroup | LvmError, sizes: RecordedSizes | RecordedFileInvalid | None
) -> AuditDocument:
    reading = group if isinstance(group, LvmError) else Reading(volume_group=group)
    return judge("cgts-vg", reading, sizes, grace_seconds=600).document(
        audit_id=UUID(int=1),
        trigger=Trigger.ONCE,
        started_at=datetime(2026, 12, 1, 3, 4, 5, tzinfo=UTC),
        duration_seconds=0.1,
        boot_id=None,
        host=HostSection(
            hostname="controller-0", boot_time=None, agent_version="0.1.0", lvm_version="2.03.11"
        ),
    )


def piped(group: VolumeGroup | LvmError, sizes: RecordedSizes | RecordedFileInvalid | None) -> list[str]:
    return render([make_document(group, sizes)], is_terminal=False).splitlines()


def on_terminal(
    group: VolumeGroup | LvmError, sizes: RecordedSizes | RecordedFileInvalid | None, width: int = 80
) -> str:
    return render([make_document(group, sizes)], is_terminal=True, width=width)


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture(autouse=True)
def colourful_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever terminal the tests run in."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_the_bug_in_a_pipe() -> None:
    assert piped(before_upgrade_vg(), BEFORE_UPGRADE) == [
        "DOES_NOT_FIT  cgts-vg on controller-0, 2026-12-01 03:04:05 UTC",
        "",
        "                                         recorded actual diff    diff",
        "filesystem         LV                         GiB    GiB  GiB extents verdict",
        "docker             docker-lv                   40     30  -10    -320 undersized",
        "dockerdistribution dockerdistribution-lv       32     32    0       0 match",
        "backup             backup-lv                   25     25    0       0 match",
        "",
        "[" + "#" * 64 + "+] 5727 extents",
        "# used 5722 (178.812 GiB)  + pending 320 (10 GiB)  . free after that 0 (0 GiB)",
        "the recorded sizes do not fit: docker-lv would fail: 320 extents needed, 5 available; 315 short",
        (
            "unrecorded: scratch-lv, log-lv, extension-lv, pgsql-lv, kubelet-lv, platform-lv, etcd-lv, "
            "rabbit-lv, ceph-mon-lv"
        ),
        "",
        "critical docker-lv would fail: 320 extents needed, but only 5 available",
        (
            "         hint: free 315 extents (9.844 GiB) or add a physical volume before the next upgrade, "
            "reinstall or unlock applies the recorded sizes"
        ),
        (
            "critical docker: recorded with 40 GiB, but cgts-vg/docker-lv has 30 GiB: 320 extents were never "
            "added"
        ),
        (
            "         hint: first free 315 extents (9.844 GiB) or add a physical volume, then: `lvextend -r -L "
            "40g cgts-vg/docker-lv`, or correct the record"
        ),
    ]


def test_a_clean_audit_says_how_much_is_needed() -> None:
    lines = piped(make_bug_vg(), recorded(record("log", 8, whole_gib=True), record("pgsql", 20)))
    assert lines[0].startswith("CLEAN  cgts-vg on controller-0")
    assert "log        log-lv          8  7.812 -0.188      -6 rounding" in lines
    assert "the recorded sizes fit: 6 of 517 free extents needed" in lines


def test_without_an_inventory_there_are_only_actual_sizes() -> None:
    lines = piped(make_vg([make_lv("docker-lv", 960)], extent_count=1000), None)
    assert lines[2:5] == [
        "          actual",
        "LV           GiB extents role",
        "docker-lv     30     960",
    ]
    assert "nothing was compared" in lines
    assert not any("?" in line or "pending" in line for line in lines)


def test_recorded_sizes_that_are_unavailable_are_unknown_not_zero() -> None:
    lines = piped(make_vg([make_lv("docker-lv", 960)], extent_count=1000), UNREADABLE)
    assert lines[0].startswith("UNKNOWN  ")
    assert lines[2:5] == [
        "          recorded actual",
        "LV             GiB    GiB extents role",
        "docker-lv        ?     30     960",
    ]
    assert "the recorded sizes are unknown, and so is whether they fit" in lines
    assert "critical /etc/sizes.toml: can't be read: No such file" in lines


def test_actual_sizes_that_are_unavailable_are_unknown_not_zero() -> None:
    lines = piped(ABSENT, recorded(record("docker", 30)))
    assert lines[4] == "docker     docker-lv       30      ?    ?       ? unknown"
    assert "the actual sizes are unknown, and so is whether the recorded sizes fit" in lines
    assert "critical volume group cgts-vg not found (visible: other-vg)" in lines
    assert not any("#" in line for line in lines)


def test_a_missing_lv_has_no_size() -> None:
    lines = piped(make_vg([], extent_count=1000), recorded(record("docker", 30)))
    assert lines[4] == "docker     docker-lv       30   none  -30    -960 missing"


def test_a_lock_free_read_is_said_in_the_first_line() -> None:
    group = msgspec.structs.replace(make_bug_vg(), read_mode=ReadMode.LOCK_FREE)
    assert piped(group, None)[0] == (
        "NOT COMPARED  cgts-vg on controller-0, 2026-12-01 03:04:05 UTC, lock-free"
    )


def test_several_volume_groups_are_set_apart() -> None:
    document = make_document(make_bug_vg(), None)
    text = render([document, document], is_terminal=False)
    assert text.count("NOT COMPARED  cgts-vg on controller-0") == 2
    assert "\n\nNOT COMPARED" in text


@pytest.mark.parametrize(
    "sizes",
    [
        BEFORE_UPGRADE,
        recorded(record("log", 8, whole_gib=True)),
        recorded(record("x" * 90, 123_456, lv="docker-lv"), record("gone", 1, lv="y-" * 60 + "y")),
        recorded(record("日本語のとても長いファイルシステムの名前です", 40, lv="docker-lv")),
        None,
        UNREADABLE,
    ],
)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_wider_than_the_terminal(
    sizes: RecordedSizes | RecordedFileInvalid | None, width: int
) -> None:
    lines = without_colour(on_terminal(before_upgrade_vg(), sizes, width)).splitlines()
    assert max(cell_len(line) for line in lines) <= width


def letters_of(lines: Iterable[str]) -> str:
    return "".join("".join(line.split()) for line in lines)


def test_nothing_is_cut_off_at_80_columns() -> None:
    """Long names are folded: taken together their column has every letter."""
    name, lv = "filesystem-" + "n" * 60, "volume-" + "v" * 60
    text = without_colour(on_terminal(make_bug_vg(), recorded(record(name, 123_456, lv=lv))))
    lines = text.split("\n\n")[1].splitlines()[2:]
    numbers = re.search(r" (123456) +none +(-123456) +(-3950592) missing$", lines[0])
    assert numbers is not None
    left = lines[0][: numbers.start()].rstrip()
    start_of_lv = left.rindex(" ") + 1
    assert letters_of(line[:start_of_lv] for line in [left, *lines[1:]]) == name
    assert letters_of(line[start_of_lv:] for line in [left, *lines[1:]]) == lv


def test_the_longest_name_of_the_platform_stays_whole_at_80_columns() -> None:
    text = without_colour(on_terminal(before_upgrade_vg(), BEFORE_UPGRADE))
    assert "\ndockerdistribution dockerdistribution-lv       32     32    0       0 match" in text


def test_a_terminal_gets_colour_and_words_that_differ_without_it() -> None:
    text = on_terminal(before_upgrade_vg(), BEFORE_UPGRADE)
    assert "\x1b[1;31mDOES_NOT_FIT\x1b[0m" in text
    assert "\x1b[1;31mundersized\x1b[0m" in text
    assert "\x1b[32mmatch" in text


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_when_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    text = on_terminal(before_upgrade_vg(), BEFORE_UPGRADE)
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)
    assert "undersized" in text


def test_a_pipe_gets_plain_text_even_when_colour_is_forced_elsewhere() -> None:
    text = render([make_document(before_upgrade_vg(), BEFORE_UPGRADE)], is_terminal=False)
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red]x[/red]", "[red]x[/red]"),
        ("[link=http://x]y[/link]", "[link=http://x]y[/link]"),
        (":skull:", ":skull:"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\x1b]0;title\x07b", r"a\x1b]0;title\x07b"),
        ("a\nDOES_NOT_FIT", r"a\nDOES_NOT_FIT"),
        ("a\rb\tc\x00", r"a\rb\tc\x00"),
        ("a\x9b31mb", r"a\x9b31mb"),
        ("a\u202egnirts", r"a\u202egnirts"),
        ("\u05d0\u05d1", r"\u05d0\u05d1"),
        ("a\u200bb\u2028c\ufeff", r"a\u200bb\u2028c\ufeff"),
        ("\udcff", r"\udcff"),
        ("日本", "日本"),
        ("é", "é"),
    ],
)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_hostile_names_are_harmless(name: str, shown: str, *, is_terminal: bool) -> None:
    document = make_document(make_bug_vg(), recorded(record(name, 40, lv="docker-lv")))
    text = render([document], is_terminal=is_terminal, width=200)
    # The name in the table, and in the finding.
    assert text.count(shown) == 2
    # Nothing but our own colours is left of escape sequences.
    assert without_colour(text).replace("\n", "").isprintable()


def test_text_that_is_harmless_stays_as_it_is() -> None:
    assert to_visible("docker-lv: 40 GiB, ü 日本 \\ '") == "docker-lv: 40 GiB, ü 日本 \\ '"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (None, "?"),
        (0, "0"),
        (1, "<0.001"),
        (512 * 1024, "<0.001"),
        (MIB, "0.001"),
        (30 * GIB, "30"),
        (8000 * MIB, "7.812"),
        (GIB + MIB, "1.001"),
        (2**63 - 1, "<8589934592"),
    ],
)
def test_sizes(size_bytes: int | None, text: str) -> None:
    assert format_size(size_bytes) == text


@pytest.mark.parametrize(
    ("delta", "gib", "extents"),
    [
        (None, "?", "?"),
        (0, "0", "0"),
        (-320, "-10", "-320"),
        (1, "+0.031", "+1"),
        (-6, "-0.188", "-6"),
    ],
)
def test_differences(delta: int | None, gib: str, extents: str) -> None:
    assert format_delta(delta, 32 * MIB) == gib
    assert format_extents(delta) == extents


def test_a_difference_that_was_rounded_keeps_its_sign() -> None:
    assert format_delta(-(GIB // 4096 - 1), 4096) == "<-1"
    assert format_delta(-1, 4096) == "<-0.001"
    assert format_delta(1, None) == "?"


@pytest.mark.parametrize(
    ("name", "width", "folded"),
    [
        ("docker-lv", 20, "docker-lv"),
        ("docker-lv", 9, "docker-lv"),
        ("dockerdistribution-lv", 18, "dockerdistribution\n-lv"),
        ("a.b_c", 2, "a.\nb_\nc"),
        ("aaaaaa", 2, "aa\naa\naa"),
        ("日本語", 4, "日本\n語"),
        ("日本", 1, "日\n本"),
    ],
)
def test_names_are_folded_at_separators(name: str, width: int, folded: str) -> None:
    assert fold_name(name, width) == folded


@pytest.mark.parametrize(
    ("names", "room", "widths"),
    [
        ([("docker", "docker-lv")], 30, (6, 9)),
        ([("dockerdistribution", "dockerdistribution-lv")], 36, (18, 18)),
        ([("x" * 30, "short")], 34, (29, 5)),
        ([("short", "x" * 30)], 34, (5, 29)),
    ],
)
def test_the_name_that_needs_it_gets_the_room(
    names: list[tuple[str, str]], room: int, widths: tuple[int, int]
) -> None:
    assert choose_widths(names, room, narrowest=12) == widths


@pytest.mark.parametrize(
    ("extents", "width", "widths"),
    [
        ((50, 25, 25), 20, (10, 5, 5)),
        ((5722, 5, 0), 40, (39, 1, 0)),
        ((1, 1_000_000), 10, (1, 9)),
        ((0, 0), 10, (0, 0)),
        ((0, 7), 10, (0, 10)),
        ((1, 1, 1), 10, (4, 3, 3)),
    ],
)
def test_the_bar_shows_whatever_there_is(
    extents: tuple[int, ...], width: int, widths: tuple[int, ...]
) -> None:
    assert scale(extents, width) == widths


def test_free_extents_that_can_not_be_handed_out_are_a_part_of_their_own() -> None:
    pvs = [make_pv("/dev/sda", 100, 60), make_pv("/dev/sdb", 50, allocatable=False)]
    document = make_document(make_vg([make_lv("docker-lv", 60)], pvs=pvs), recorded(record("docker", 2)))
    assert document.volume_group is not None
    parts = split(document.volume_group, document.capacity)
    assert [(part.label, part.extents, part.named_extents) for part in parts] == [
        ("used", 60, 60),
        ("pending", 4, 4),
        ("free after that", 36, 36),
        ("not allocatable", 50, 50),
    ]
    assert "x not allocatable 50 (1.562 GiB)" in render([document], is_terminal=False)
