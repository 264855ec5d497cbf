"""The outbox on real files: order, folding, limits, and what a damaged or foreign file does."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from reports import OUTBOX_ID, START, FakeClock, decode, make_document, make_keeper

from agent.core.delivery.errors import (
    OutboxBusy,
    OutboxDamaged,
    OutboxError,
    OutboxForeign,
    OutboxNewer,
)
from agent.core.delivery.queue import WAITING, Outcome, QueuedReport, QueueState
from agent.core.delivery.retry import Wait
from agent.core.report import Repeats
from agent.outbox.files import FILE_NAME
from agent.outbox.store import Outbox
from agent.state.directory import DeliveryLock, state_lock

NOTHING = QueueState()
CLOCK = FakeClock()
MAX_BYTES = 64 * 2**20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


@pytest.fixture
def outbox(path: Path) -> Iterator[Outbox]:
    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=OUTBOX_ID) as opened:
        yield opened


def append(outbox: Outbox, number: int, docker_extents: int = 960, *, group: str = "cgts-vg") -> int | None:
    document = make_document(number, docker_extents=docker_extents, group=group)
    return outbox.append(document, CLOCK.moment()).document.sequence


def drain(outbox: Outbox) -> list[QueuedReport]:
    """Deliver everything."""
    reports = []
    while (report := outbox.take_head()) is not None:
        assert report.sequence is not None
        reports.append(report)
        outbox.remove(report.sequence, NOTHING)
    return reports


def contents(outbox: Outbox) -> list[tuple[int, int, int]]:
    """(sequence, audit number, repeats) of everything that waits; delivers it on the way."""
    found = []
    for report in drain(outbox):
        document = decode(report)
        assert document.sequence == report.sequence
        assert document.audit_id == report.audit_id
        assert document.sequence is not None
        found.append(
            (document.sequence, document.audit_id.int, document.repeats.count if document.repeats else 1)
        )
    return found


def test_a_report_is_stored_with_its_place(outbox: Outbox) -> None:
    document = make_document(1)

    appended = outbox.append(document, CLOCK.moment())

    assert appended.is_stored
    assert appended.document == msgspec.structs.replace(document, outbox_id=OUTBOX_ID, sequence=1)
    head = outbox.take_head()
    assert head == QueuedReport(
        sequence=1,
        audit_id=UUID(int=1),
        hostname="controller-0",
        volume_group_name="cgts-vg",
        body=msgspec.json.encode(appended.document),
        read_at=CLOCK.moment(),
    )


def test_state_changes_keep_their_order(outbox: Outbox) -> None:
    for number, extents in enumerate((960, 961, 960, 962), start=1):
        append(outbox, number, extents)

    assert contents(outbox) == [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1)]


def test_equal_states_are_folded_into_the_latest(outbox: Outbox) -> None:
    for number, extents in enumerate((960, 960, 960, 961, 961), start=1):
        append(outbox, number, extents)

    reports = drain(outbox)

    assert [(decode(report).audit_id.int, decode(report).repeats) for report in reports] == [
        (3, Repeats(count=3, first_started_at=START + timedelta(minutes=1), last_started_at=START + timedelta(minutes=3))),
        (5, Repeats(count=2, first_started_at=START + timedelta(minutes=4), last_started_at=START + timedelta(minutes=5))),
    ]  # fmt: skip
    assert [report.sequence for report in reports] == [3, 5]


def test_groups_are_judged_apart(outbox: Outbox) -> None:
    for number in (1, 3, 5):
        append(outbox, number, 960, group="cgts-vg")
        append(outbox, number + 1, 100, group="nova-local")

    assert contents(outbox) == [(5, 5, 3), (6, 6, 3)]


def test_what_was_tried_is_never_changed(outbox: Outbox) -> None:
    append(outbox, 1)
    tried = outbox.take_head()
    append(outbox, 2)
    append(outbox, 3)

    assert tried is not None
    assert outbox.take_head() == tried
    outbox.remove(1, NOTHING)
    # The second stands for itself and the third, not for the first, which the server may have counted.
    assert contents(outbox) == [(3, 3, 2)]


def test_a_number_is_never_used_again(path: Path, outbox: Outbox) -> None:
    append(outbox, 1)
    append(outbox, 2)
    drain(outbox)
    outbox.close()

    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=UUID(int=77)) as again:
        appended = again.append(make_document(3), CLOCK.moment())

    assert appended.document.sequence == 3
    assert appended.document.outbox_id == OUTBOX_ID


def test_two_processes_share_it(path: Path, outbox: Outbox) -> None:
    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=UUID(int=77)) as other:
        append(outbox, 1, 960)
        append(other, 2, 961)
        append(outbox, 3, 961)

        assert contents(other) == [(1, 1, 1), (3, 3, 2)]


def test_a_refused_report_is_set_aside_and_comes_back(outbox: Outbox) -> None:
    append(outbox, 1)
    head = outbox.take_head()
    append(outbox, 2, 961)
    state = QueueState(last_failure="HTTP 422", last_outcome=Outcome.REFUSED)

    outbox.set_aside(1, "HTTP 422", START, state)

    assert outbox.load_state() == state
    assert outbox.find_fate(UUID(int=1)) == "HTTP 422"
    assert outbox.find_fate(UUID(int=2)) == WAITING
    assert outbox.find_fate(UUID(int=3)) is None
    backlog = outbox.describe()
    assert (backlog.waiting_count, backlog.oldest_started_at) == (1, START + timedelta(minutes=2))
    (aside,) = backlog.set_aside
    assert (aside.sequence, aside.audit_id, aside.reason, aside.set_aside_at) == (
        1,
        UUID(int=1),
        "HTTP 422",
        START,
    )
    assert outbox.put_back() == 1
    assert outbox.put_back() == 0
    assert outbox.take_head() == head


def test_a_server_that_refuses_everything_does_not_fill_the_disk(outbox: Outbox) -> None:
    for number in range(1, 30):
        append(outbox, number, 960 if number < 20 else 961)
        outbox.take_head()
        outbox.set_aside(number, "HTTP 401", START, NOTHING)

    # Both changes, and the latest that told nothing new.
    assert [report.sequence for report in outbox.describe().set_aside] == [1, 20, 29]


def test_the_oldest_start_counts_folded_ones(outbox: Outbox) -> None:
    append(outbox, 1)
    append(outbox, 2)

    backlog = outbox.describe()

    assert (backlog.waiting_count, backlog.oldest_started_at) == (1, START + timedelta(minutes=1))


def test_state_is_remembered(path: Path, outbox: Outbox) -> None:
    state = QueueState(failures=3, wait=Wait(since=CLOCK.moment(), seconds=8.5), last_failure="away")
    assert outbox.load_state() == QueueState()

    outbox.save_state(state)

    with Outbox.open_for_reading(path) as reader:
        assert reader.load_state() == state


def used_bytes(path: Path) -> int:
    return sum(Path(f"{path}{suffix}").stat().st_size for suffix in ("", "-wal"))


def fill(outbox: Outbox, first: int, count: int) -> int:
    """Append state changes; returns by how many bytes the last one was too much."""
    excess = 0
    for number in range(first, first + count):
        excess = outbox.append(make_document(number, docker_extents=number), CLOCK.moment()).excess_bytes
    return excess


def test_reports_without_news_make_room_first(path: Path) -> None:
    with Outbox.open(path, max_bytes=2**20, new_id=OUTBOX_ID) as outbox:
        append(outbox, 1, 1, group="nova-local")
        outbox.take_head()  # tried, so that the next is not folded into it
        append(outbox, 2, 1, group="nova-local")
        number = 3
        while not (
            appended := outbox.append(make_document(number, docker_extents=number), CLOCK.moment())
        ).dropped_count:
            assert appended.excess_bytes == 0
            assert used_bytes(path) <= 2**20
            number += 1

        assert appended.dropped_count == 1
        assert outbox.describe().dropped_count == 1
        assert outbox.find_fate(UUID(int=2)) is None
        assert [sequence for sequence, _, _ in contents(outbox)] == [1, *range(3, number + 1)]


def test_a_state_change_is_never_dropped(path: Path) -> None:
    with Outbox.open(path, max_bytes=2**20, new_id=OUTBOX_ID) as outbox:
        assert fill(outbox, 1, 200) > 0

        assert [number for _, number, _ in contents(outbox)] == list(range(1, 201))


def test_a_full_outbox_refuses_what_tells_nothing_new(path: Path) -> None:
    with Outbox.open(path, max_bytes=2**20, new_id=OUTBOX_ID) as outbox:
        append(outbox, 1, 1, group="nova-local")
        outbox.take_head()
        fill(outbox, 2, 199)

        refused = outbox.append(make_document(400, docker_extents=1, group="nova-local"), CLOCK.moment())
        folded = outbox.append(make_document(401, docker_extents=200), CLOCK.moment())

        assert not refused.is_stored
        assert refused.excess_bytes > 0
        assert refused.document == make_document(400, docker_extents=1, group="nova-local")
        assert folded.is_stored
        assert folded.document.sequence == 201  # the refused one has used up no number


def test_the_disk_is_given_back(path: Path) -> None:
    with Outbox.open(path, max_bytes=2**20, new_id=OUTBOX_ID) as outbox:
        fill(outbox, 1, 220)
        drain(outbox)

    assert used_bytes_after_close(path) < 2**20


def used_bytes_after_close(path: Path) -> int:
    assert not Path(f"{path}-wal").exists()
    return path.stat().st_size


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Outbox.open(tmp_path / "state" / FILE_NAME, max_bytes=MAX_BYTES, new_id=OUTBOX_ID) as outbox:
            append(outbox, 1)
            with DeliveryLock(tmp_path / "state").try_hold():
                modes = {
                    file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "state").iterdir()
                }
    finally:
        os.umask(before)
    assert modes == {
        "outbox.sqlite3": 0o600,
        "outbox.sqlite3-wal": 0o600,
        "outbox.sqlite3-shm": 0o600,
        "state.lock": 0o600,
        "deliver.lock": 0o600,
    }


def test_a_file_open_to_others_is_closed_to_them(path: Path) -> None:
    path.touch(mode=0o644)

    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=OUTBOX_ID):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def make_newer(path: Path) -> None:
    Outbox.open(path, max_bytes=MAX_BYTES, new_id=OUTBOX_ID).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=2")
    connection.close()


def make_foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()


def make_directory(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def make_garbage(path: Path) -> None:
    path.write_bytes(b"no database, " * 1000)


@pytest.mark.parametrize(
    ("prepare", "error", "text"),
    [
        (make_newer, OutboxNewer, "has format 2, this agent knows 1: nothing was changed"),
        (make_foreign, OutboxForeign, "is a database of another program: nothing was changed"),
        (make_directory, OutboxError, "can't be used: is a directory"),
        (make_link, OutboxError, "can't be used: too many levels of symbolic links"),
        (make_garbage, OutboxDamaged, "is damaged: file is not a database"),
    ],
)
def test_what_is_not_ours_is_left_alone(
    path: Path, prepare: Callable[[Path], None], error: type[OutboxError], text: str
) -> None:
    prepare(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(error) as caught:
        Outbox.open(path, max_bytes=MAX_BYTES, new_id=OUTBOX_ID)

    assert text in str(caught.value)
    assert str(path) in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_locked_outbox_says_so(path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox._connection.execute("PRAGMA busy_timeout=1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(OutboxBusy, match="is locked by another process"):
            append(outbox, 1)
    finally:
        other.close()
    assert append(outbox, 1) == 1


def test_a_full_disk_loses_nothing_that_is_stored(outbox: Outbox) -> None:
    append(outbox, 1, 960)
    pages = outbox._connection.execute("PRAGMA page_count").fetchone()[0]
    outbox._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(OutboxError, match="database or disk is full"):
        append(outbox, 2, 961)

    outbox._connection.execute("PRAGMA max_page_count=100000")
    assert append(outbox, 3, 962) == 2
    assert contents(outbox) == [(1, 1, 1), (2, 3, 1)]


def damage_head(path: Path) -> None:
    path.write_bytes(b"garbage" * 4096)


def damage_middle(path: Path) -> None:
    """Leave the header alone: the damage shows only when a page behind it is read."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


@pytest.mark.parametrize("damage", [damage_head, damage_middle])
def test_a_damaged_outbox_is_set_aside_and_a_new_one_begun(
    tmp_path: Path, path: Path, damage: Callable[[Path], None]
) -> None:
    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=UUID(int=5)) as outbox:
        append(outbox, 1)
    damage(path)
    damaged = path.read_bytes()
    keeper = make_keeper(tmp_path, FakeClock())

    try:
        sequence = append(keeper.current(), 2)
    except OutboxDamaged as error:
        keeper.replace(error)
        sequence = append(keeper.current(), 2)

    keeper.close()
    assert sequence == 1
    (finding,) = keeper.take_findings()
    aside = tmp_path / "outbox.sqlite3.corrupt-20261201T090000Z-1"
    assert finding.kind == "outbox_replaced"
    assert str(aside) in finding.message
    assert aside.read_bytes() == damaged
    assert keeper.take_findings() == ()


def test_names_of_damaged_files_are_never_taken_twice(tmp_path: Path, path: Path) -> None:
    keeper = make_keeper(tmp_path, FakeClock())
    for _ in range(2):
        path.write_bytes(b"garbage" * 1000)
        append(keeper.current(), 1)
        keeper.close()

    assert sorted(file.name for file in tmp_path.glob("*corrupt*")) == [
        "outbox.sqlite3.corrupt-20261201T090000Z-1",
        "outbox.sqlite3.corrupt-20261201T090000Z-2",
    ]


def test_an_outbox_that_another_process_replaced_is_not_replaced_again(tmp_path: Path, path: Path) -> None:
    first, second = make_keeper(tmp_path, FakeClock()), make_keeper(tmp_path, FakeClock())
    append(first.current(), 1)
    second.current()
    error = OutboxDamaged(subject=str(path), reason="test")
    first.replace(error)
    append(first.current(), 2)

    second.replace(error)

    assert second.current().describe().waiting_count == 1
    assert len(list(tmp_path.glob("*corrupt*[0-9]"))) == 1
    first.close()
    second.close()


def test_a_removed_outbox_is_begun_anew_at_once(tmp_path: Path, path: Path) -> None:
    keeper = make_keeper(tmp_path, FakeClock())
    append(keeper.current(), 1)
    for file in tmp_path.glob("outbox*"):
        file.unlink()

    assert append(keeper.current(), 2) == 1
    assert path.exists()
    assert [finding.kind for finding in keeper.take_findings()] == ["outbox_replaced"]
    keeper.close()


def test_one_process_delivers_at_a_time(tmp_path: Path) -> None:
    with DeliveryLock(tmp_path).try_hold() as first, DeliveryLock(tmp_path).try_hold() as second:
        assert (first, second) == (True, False)
    with DeliveryLock(tmp_path).try_hold() as third:
        assert third


def test_the_state_lock_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        state_lock(tmp_path),
        pytest.raises(OutboxBusy, match=r"state\.lock is locked by another process for more than 0\.05 s"),
        state_lock(tmp_path, timeout_seconds=0.05),
    ):
        pass


def test_a_database_without_its_own_facts_is_damaged(path: Path, outbox: Outbox) -> None:
    outbox._connection.execute("DELETE FROM meta")

    with pytest.raises(OutboxDamaged, match="outbox_id is missing"):
        append(outbox, 1)


def test_an_outbox_that_was_never_begun_can_not_be_looked_at(path: Path) -> None:
    path.touch()

    with pytest.raises(OutboxError, match="it holds nothing yet"):
        Outbox.open_for_reading(path)


def test_looking_changes_nothing(path: Path) -> None:
    with Outbox.open(path, max_bytes=MAX_BYTES, new_id=OUTBOX_ID) as outbox:
        append(outbox, 1)
    before = path.read_bytes()

    with Outbox.open_for_reading(path) as reader:
        assert reader.describe().waiting_count == 1
        with pytest.raises(OutboxError, match="readonly database"):
            reader.take_head()

    assert path.read_bytes() == before


def test_memory_and_disk_stay_flat(path: Path, outbox: Outbox) -> None:
    for number in range(1, 11):
        append(outbox, number)
    size = path.stat().st_size
    for number in range(11, 1011):
        append(outbox, number)

    assert outbox.describe().waiting_count == 1
    assert path.stat().st_size <= size + 8 * 4096


@pytest.mark.parametrize(
    ("column", "value"),
    [("read_at", "yesterday"), ("audit_id", "none")],
)
def test_a_value_that_can_not_be_read_is_damage(outbox: Outbox, column: str, value: str) -> None:
    append(outbox, 1)
    outbox._connection.execute(f"UPDATE reports SET {column} = ?", (value,))  # noqa: S608 - of the list above

    with pytest.raises(OutboxDamaged, match="unreadable value"):
        outbox.take_head()


def test_a_state_that_can_not_be_read_is_damage(outbox: Outbox) -> None:
    outbox.save_state(QueueState(failures=1))
    outbox._connection.execute("""UPDATE meta SET value = '{"failures": "many"}' WHERE name = 'queue'""")

    with pytest.raises(OutboxDamaged, match="unreadable value"):
        outbox.load_state()
