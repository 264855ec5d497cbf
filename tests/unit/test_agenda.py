"""When audits are due: bursts, pauses and loops, in plain numbers."""

import pytest

from agent.core.models import Finding, Severity
from agent.core.report import Trigger
from agent.daemon.agenda import Agenda, Pace
from agent.daemon.mailbox import AUDIT_FOR_SCHEDULE, AUDIT_FOR_SIGNAL, AUDIT_FOR_UDEV, Request

PACE = Pace(settle_seconds=0.2, settle_max_seconds=2.0, min_gap_seconds=0.5)


def test_nothing_is_due_when_nobody_asked() -> None:
    assert Agenda(PACE).due_at() is None


@pytest.mark.parametrize(
    ("events", "due_at"),
    [
        ([10.0], 10.2),
        ([10.0, 10.1], 10.3),
        ([10.0, 10.1, 10.25, 10.4], 10.6),
        # a burst that goes on and on gets its audit two seconds after its first event
        ([10.0 + number / 10 for number in range(19)], 12.0),
        ([10.0 + number / 10 for number in range(40)], 12.0),
    ],
)
def test_a_burst_is_one_audit_when_it_is_over(events: list[float], due_at: float) -> None:
    agenda = Agenda(PACE)
    for event in events:
        agenda.add(AUDIT_FOR_UDEV, event)
    assert agenda.due_at() == pytest.approx(due_at)
    work = agenda.take()
    assert (work.trigger, work.request_count) == (Trigger.UDEV, len(events))
    assert agenda.due_at() is None


@pytest.mark.parametrize("request_", [AUDIT_FOR_SCHEDULE, AUDIT_FOR_SIGNAL, Request(trigger=Trigger.STARTUP)])
def test_only_events_settle(request_: Request) -> None:
    agenda = Agenda(PACE)
    agenda.add(AUDIT_FOR_UDEV, 10.0)
    agenda.add(request_, 10.05)
    assert agenda.due_at() == 0.0


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ([Trigger.SCHEDULE, Trigger.UDEV], Trigger.UDEV),
        ([Trigger.UDEV, Trigger.SIGNAL], Trigger.SIGNAL),
        ([Trigger.SIGNAL, Trigger.STARTUP, Trigger.UDEV], Trigger.STARTUP),
    ],
)
def test_one_audit_answers_everybody(asked: list[Trigger], named: Trigger) -> None:
    agenda = Agenda(PACE)
    finding = Finding(kind="udev_monitor_reopened", severity=Severity.WARNING, subject="udev", message="m")
    for trigger in asked:
        agenda.add(Request(trigger=trigger, findings=(finding,)), 1.0)
    work = agenda.take()
    assert (work.trigger, work.request_count) == (named, len(asked))
    assert work.findings == (finding,)


def test_an_event_waits_for_the_pause_after_an_audit() -> None:
    agenda = Agenda(PACE)
    agenda.audit_ended(Trigger.SCHEDULE, 100.0, has_changed=False)
    agenda.add(AUDIT_FOR_UDEV, 100.1)
    assert agenda.due_at() == pytest.approx(100.5)


def pauses_of_an_echo(changed: list[bool], answer_seconds: float = 0.0) -> list[float]:
    """The waits between audits for events, each of which is followed by an event of its own."""
    agenda = Agenda(PACE)
    now = 0.0
    pauses = []
    agenda.audit_ended(Trigger.SCHEDULE, now, has_changed=False)
    for has_changed in changed:
        ended_at = now
        agenda.add(AUDIT_FOR_UDEV, now + answer_seconds)
        now = agenda.due_at() or 0.0
        pauses.append(round(now - ended_at, 3))
        agenda.take()
        agenda.audit_ended(Trigger.UDEV, now, has_changed=has_changed)
    return pauses


def test_an_audit_that_causes_its_own_events_dies_down() -> None:
    assert pauses_of_an_echo([False] * 11) == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_even_after_years() -> None:
    assert pauses_of_an_echo([False] * 3000)[-1] == 60.0


def test_real_changes_are_never_slowed_down() -> None:
    assert pauses_of_an_echo([True] * 6) == [0.5] * 6


def test_a_real_change_ends_the_longer_pauses() -> None:
    assert pauses_of_an_echo([False, False, False, True, False, False]) == [0.5, 0.5, 1.0, 2.0, 0.5, 0.5]


def test_events_at_their_own_pace_are_no_echo() -> None:
    # mkfs, mount and the like: no metadata change, but each comes long after the audit before it
    assert pauses_of_an_echo([False] * 8, answer_seconds=5.0) == [5.2] * 8


def test_an_audit_of_the_schedule_ends_the_longer_pauses() -> None:
    agenda = Agenda(PACE)
    for now in (10.0, 10.1, 10.2, 10.3):
        agenda.add(AUDIT_FOR_UDEV, now)
        agenda.take()
        agenda.audit_ended(Trigger.UDEV, now, has_changed=False)
    agenda.add(AUDIT_FOR_UDEV, 10.4)
    assert agenda.due_at() == pytest.approx(12.3)
    agenda.audit_ended(Trigger.SCHEDULE, 11.0, has_changed=False)
    assert agenda.due_at() == pytest.approx(11.5)
