"""The reporting policy on a real outbox, with a scripted server and a clock moved by hand."""

import shutil
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from reports import (
    AWAY,
    DELIVERED,
    NO_REPORTS,
    OUTBOX_ID,
    REFUSED,
    SEEN_BEFORE,
    UNKNOWN_HOST,
    FakeClock,
    FakeSender,
    decode,
    make_document,
    make_reporter,
)

from agent.core.delivery.queue import Answer, Outcome
from agent.core.report import AuditDocument
from agent.outbox.files import FILE_NAME
from agent.reporting.reporter import Reported, Reporter
from agent.state.directory import DeliveryLock

BUDGET = 10.0


def report(reporter: Reporter, *documents: AuditDocument, at_once: bool = True) -> Reported:
    return reporter.report(documents, budget_seconds=BUDGET, at_once=at_once)


def kinds(reported: Reported, index: int = 0) -> list[str]:
    """The findings about the report itself, not those about filesystems."""
    found = [finding.kind for finding in reported.documents[index].findings]
    return [kind for kind in found if not kind.startswith("filesystem_")]


def test_a_report_is_delivered_and_forgotten(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, clock)

    reported = report(reporter, make_document(1))

    assert reported.documents == (msgspec.structs.replace(make_document(1), outbox_id=OUTBOX_ID, sequence=1),)
    assert not reported.is_lost
    assert [decode(sent) for sent in sender.sent] == list(reported.documents)
    assert keeper.current().describe().waiting_count == 0
    assert keeper.current().load_state().last_delivery_at == clock.wall
    keeper.close()


def test_each_group_is_a_report_of_its_own(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    reported = report(reporter, make_document(1), make_document(2, group="nova-local"))

    assert [document.sequence for document in reported.documents] == [1, 2]
    assert [sent.volume_group_name for sent in sender.sent] == ["cgts-vg", "nova-local"]
    keeper.close()


def test_it_is_stored_before_it_is_sent(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())
    waiting: list[int] = []
    sender.on_send = lambda: waiting.append(keeper.current().describe().waiting_count)

    report(reporter, make_document(1))

    assert waiting == [1]
    keeper.close()


def test_an_outage_keeps_everything_in_order(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(always=AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)

    away = [
        report(reporter, make_document(number, docker_extents=960 + number // 3)) for number in range(1, 7)
    ]
    assert [kinds(reported) for reported in away] == [["report_pending"]] * 6
    assert not any(reported.is_lost for reported in away)
    assert "connection refused" in away[0].documents[0].findings[0].message

    sender.always = DELIVERED
    back = report(reporter, make_document(7, docker_extents=962))
    assert kinds(back) == []
    # The first was tried (and 2 could not be folded into it); 3 to 5 are one, so are 6 and 7.
    assert sender.sent_ids == [1, 1, 1, 1, 1, 1, 1, 2, 5, 7]
    assert len({sent.body for sent in sender.sent[:7]}) == 1
    keeper.close()


def test_the_daemon_waits_and_once_does_not(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    report(reporter, make_document(1))

    waiting = report(reporter, make_document(2), at_once=False)
    assert sender.sent_ids == [1]
    assert kinds(waiting) == ["report_pending"]
    assert "connection refused" in waiting.documents[0].findings[0].message

    clock.pass_seconds(1.9)
    report(reporter, make_document(3), at_once=False)
    assert sender.sent_ids == [1]
    report(reporter, make_document(4), at_once=True)
    assert sender.sent_ids == [1, 1, 4]
    keeper.close()


def test_the_pause_ends(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    report(reporter, make_document(1))
    clock.pass_seconds(2.1)

    report(reporter, make_document(2), at_once=False)

    assert sender.sent_ids == [1, 1, 2]
    keeper.close()


def test_clock_jumps_change_nothing(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    report(reporter, make_document(1))
    clock.wall -= timedelta(days=365)
    clock.pass_seconds(60)

    report(reporter, make_document(2), at_once=False)

    assert sender.sent_ids == [1, 1, 2]
    assert sender.ages == [0.25, 60.25, 0.25]
    keeper.close()


def test_after_a_boot_the_wall_clock_tells_the_age(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    report(reporter, make_document(1))
    clock.pass_seconds(300)
    clock.boot_id, clock.boottime_seconds = "boot-2", 20.0

    report(reporter, make_document(2))
    clock.boot_id = "boot-3"
    clock.wall -= timedelta(days=1)

    assert sender.ages == [0.25, 300.25, 0.25]
    keeper.close()


def test_a_stale_document_is_as_old_as_its_last_good_read(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())
    document = make_document(10)
    stale = msgspec.structs.replace(document, stale=True, as_of=document.started_at - timedelta(seconds=120))

    report(reporter, stale)

    assert sender.ages == [120.25]
    keeper.close()


def test_time_ends_a_long_backlog(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY, AWAY, AWAY, AWAY, AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    for number in range(1, 6):
        report(reporter, make_document(number, docker_extents=number))
    sender.sent.clear()
    sender.on_send = lambda: clock.pass_seconds(4)

    reported = report(reporter, make_document(6, docker_extents=6))

    assert sender.sent_ids == [1, 2, 3]
    assert kinds(reported) == ["report_pending"]
    assert "there was no time left" in reported.documents[0].findings[-1].message
    keeper.close()


def test_another_process_delivers(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    with DeliveryLock(tmp_path).try_hold() as is_ours:
        assert is_ours
        reported = report(reporter, make_document(1))

    assert sender.sent == []
    assert kinds(reported) == ["report_pending"]
    assert keeper.current().describe().waiting_count == 1
    keeper.close()


def test_a_refused_report_lets_the_next_one_through(tmp_path: Path) -> None:
    sender = FakeSender(REFUSED, SEEN_BEFORE)
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    reported = report(reporter, make_document(1), make_document(2, group="nova-local"))

    assert sender.sent_ids == [1, 2]
    assert kinds(reported, 0) == ["report_refused"]
    assert kinds(reported, 1) == []
    assert "HTTP 422 schema_invalid: no such field" in reported.documents[0].findings[0].message
    assert not reported.is_lost
    assert [aside.reason for aside in keeper.current().describe().set_aside] == [REFUSED.reason]
    keeper.close()


def test_an_unknown_host_is_kept_and_told_how_to_enrol(tmp_path: Path) -> None:
    sender = FakeSender(always=UNKNOWN_HOST)
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    reported = report(reporter, make_document(1))
    later = report(reporter, make_document(2), at_once=False)

    for run in (reported, later):
        assert kinds(run) == ["report_host_unknown", "report_pending"]
        assert run.documents[0].findings[0].subject == "controller-0"
        assert "agent inventory token" in (run.documents[0].findings[0].hint or "")
    assert keeper.current().describe().waiting_count == 2
    keeper.close()


def test_a_server_without_the_api_is_told_once_and_asked_hourly(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(always=NO_REPORTS)
    reporter, keeper = make_reporter(tmp_path, sender, clock)

    assert kinds(report(reporter, make_document(1), at_once=False)) == ["reports_not_accepted"]
    for number in range(2, 61):
        clock.pass_seconds(60)
        reported = report(reporter, make_document(number, docker_extents=number), at_once=False)
        assert reported.documents == (make_document(number, docker_extents=number),)
        assert not reported.is_lost
    assert sender.sent_ids == [1]
    assert keeper.current().describe().waiting_count == 1

    clock.pass_seconds(61)
    report(reporter, make_document(61), at_once=False)
    assert sender.sent_ids == [1, 1]

    sender.always = DELIVERED
    clock.pass_seconds(3601)
    assert kinds(report(reporter, make_document(62), at_once=False)) == []
    assert sender.sent_ids == [1, 1, 1, 62]
    keeper.close()


def test_a_server_without_the_api_is_asked_at_each_start(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(always=NO_REPORTS)
    for number in range(1, 4):
        reporter, keeper = make_reporter(tmp_path, sender, clock)
        report(reporter, make_document(number), at_once=False)
        keeper.close()

    assert sender.sent_ids == [1, 1, 1]


@pytest.fixture
def no_directory(tmp_path: Path) -> Path:
    """A state directory that can't be: a file is in its place."""
    (tmp_path / "state").touch()
    return tmp_path / "state"


def test_without_an_outbox_the_report_is_sent_directly(no_directory: Path) -> None:
    sender = FakeSender()
    reporter, _ = make_reporter(no_directory, sender, FakeClock())

    reported = report(reporter, make_document(1))

    assert [decode(sent) for sent in sender.sent] == [make_document(1)]
    assert kinds(reported) == ["outbox_unusable"]
    assert not reported.is_lost


def test_neither_delivered_nor_stored_is_lost_and_said(no_directory: Path) -> None:
    reporter, _ = make_reporter(no_directory, FakeSender(always=AWAY), FakeClock())

    reported = report(reporter, make_document(1))

    assert reported.is_lost
    assert kinds(reported) == ["outbox_unusable", "report_lost"]
    message = reported.documents[0].findings[1].message
    assert "state can't be used: file exists; sent directly: connection refused" in message


def test_a_full_disk_is_announced(tmp_path: Path) -> None:
    reporter, keeper = make_reporter(tmp_path, FakeSender(always=AWAY), FakeClock())
    connection = keeper.current()._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")

    reported = report(reporter, make_document(1))

    assert reported.is_lost
    assert [finding.kind for finding in reported.documents[0].findings] == ["outbox_unusable", "report_lost"]
    assert "database or disk is full" in reported.documents[0].findings[1].message
    keeper.close()


def test_damage_in_the_middle_of_the_work_begins_a_new_outbox(tmp_path: Path) -> None:
    clock = FakeClock()
    reporter, keeper = make_reporter(tmp_path, FakeSender(always=AWAY), clock)
    report(reporter, make_document(1))
    keeper.close()
    path = tmp_path / FILE_NAME
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, clock)

    reported = report(reporter, make_document(2))

    assert kinds(reported) == ["outbox_replaced"]
    assert reported.documents[0].sequence == 1
    # The inventory hears of it too.
    assert [finding.kind for finding in decode(sender.sent[-1]).findings] == ["outbox_replaced"]
    assert sender.sent_ids == [2]
    keeper.close()


def test_a_removed_state_directory_is_made_again(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path / "state", sender, FakeClock())
    report(reporter, make_document(1))
    shutil.rmtree(tmp_path / "state")

    reported = report(reporter, make_document(2))

    assert sender.sent_ids == [1, 2]
    assert kinds(reported) == ["outbox_replaced"]
    keeper.close()


def fill_up(reporter: Reporter, first: int) -> int:
    """Report changes until the outbox is above its limit; returns the next number."""
    number = first
    while "outbox_full" not in kinds(
        report(reporter, make_document(number, docker_extents=number), at_once=False)
    ):
        number += 1
    return number + 1


def test_a_full_outbox_is_loud_and_keeps_every_change(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(always=AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock, max_bytes=2**20)
    first = report(reporter, make_document(1, docker_extents=1, group="nova-local"))
    assert first.documents[0].sequence == 1
    number = fill_up(reporter, 2)

    refused = report(reporter, make_document(number, docker_extents=1, group="nova-local"), at_once=False)
    assert kinds(refused) == ["outbox_full", "report_lost"]
    assert refused.is_lost

    sender.always = DELIVERED
    sender.sent.clear()
    back = report(reporter, make_document(number + 1, docker_extents=1, group="nova-local"))
    assert kinds(back) == []
    assert sender.sent_ids == [*range(1, number), number + 1]
    keeper.close()


def test_when_the_next_try_is(tmp_path: Path) -> None:
    clock, sender = FakeClock(), FakeSender(AWAY)
    reporter, keeper = make_reporter(tmp_path, sender, clock)
    deliverer = reporter._deliverer
    assert deliverer.seconds_until_next_try() is None

    report(reporter, make_document(1))
    assert deliverer.seconds_until_next_try() == 2
    clock.pass_seconds(0.5)
    assert deliverer.seconds_until_next_try() == 1.5
    assert deliverer.describe().next_try_at == clock.wall + timedelta(seconds=1.5)
    clock.pass_seconds(5)
    assert deliverer.seconds_until_next_try() == 0

    assert deliverer.deliver_in_background(budget_seconds=BUDGET) is None
    assert deliverer.seconds_until_next_try() is None
    keeper.close()


def test_what_the_server_asks_for_is_waited(tmp_path: Path) -> None:
    clock = FakeClock()
    busy = Answer(outcome=Outcome.RETRY, reason="HTTP 503", retry_after_seconds=120)
    reporter, keeper = make_reporter(tmp_path, FakeSender(busy), clock)

    report(reporter, make_document(1))

    assert reporter._deliverer.seconds_until_next_try() == 122
    keeper.close()


def test_the_daemons_timer_replaces_a_damaged_outbox(tmp_path: Path) -> None:
    clock = FakeClock()
    reporter, keeper = make_reporter(tmp_path, FakeSender(always=AWAY), clock)
    report(reporter, make_document(1))
    keeper.close()
    (tmp_path / FILE_NAME).write_bytes(b"garbage" * 4096)

    assert reporter._deliverer.deliver_in_background(budget_seconds=BUDGET) is None

    assert reporter._deliverer.seconds_until_next_try() is None
    assert [finding.kind for finding in keeper.take_findings()] == ["outbox_replaced"]
    keeper.close()


def test_damage_found_only_at_the_head_is_survived_by_the_timer(tmp_path: Path) -> None:
    clock = FakeClock()
    reporter, keeper = make_reporter(tmp_path, FakeSender(always=AWAY), clock)
    report(reporter, make_document(1))
    keeper.close()
    path = tmp_path / FILE_NAME
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    clock.pass_seconds(3600)

    assert reporter._deliverer.deliver_in_background(budget_seconds=BUDGET) is None

    assert len(list(tmp_path.glob("*corrupt*-1"))) == 1
    assert keeper.current().describe().waiting_count == 0
    keeper.close()


def test_without_time_nothing_is_begun(tmp_path: Path) -> None:
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    reported = reporter.report([make_document(1)], budget_seconds=0.05, at_once=True)

    assert sender.sent == []
    assert kinds(reported) == ["report_pending"]
    keeper.close()


def test_a_newer_outbox_is_left_alone_and_the_report_sent_directly(tmp_path: Path) -> None:
    reporter, keeper = make_reporter(tmp_path, FakeSender(always=AWAY), FakeClock())
    report(reporter, make_document(1))
    keeper.current()._connection.execute("PRAGMA user_version=2")
    keeper.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    sender = FakeSender()
    reporter, keeper = make_reporter(tmp_path, sender, FakeClock())

    reported = report(reporter, make_document(2))

    assert kinds(reported) == ["outbox_newer"]
    assert not reported.is_lost
    assert sender.sent_ids == [2]
    assert (tmp_path / FILE_NAME).read_bytes() == before
