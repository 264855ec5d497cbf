"""`agent status` in words: nothing unknown looks like nothing, and ages are right."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from agent.cli.status_text import describe_status
from agent.core.delivery.queue import SetAsideReport
from agent.core.delivery.status import AuditSummary, DaemonStatus, DeliveryStatus, StatusDocument, update
from agent.core.report import AuditVerdict, Trigger

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
AUDIT = AuditSummary(
    volume_group_name="cgts-vg",
    audit_id=UUID(int=1),
    sequence=1,
    trigger=Trigger.SCHEDULE,
    started_at=NOW - timedelta(seconds=59),
    verdict=AuditVerdict.CLEAN,
    stale=False,
    as_of=None,
    drift_count=0,
    critical_count=0,
    warning_count=0,
)
DELIVERY = DeliveryStatus(
    last_delivery_at=NOW - timedelta(minutes=5),
    last_failure_at=None,
    last_failure=None,
    failures=0,
    next_try_at=None,
    read_only_since=None,
    waiting_count=0,
    waiting_bytes=0,
    oldest_waiting_at=None,
    dropped_count=0,
    set_aside_count=0,
    set_aside=(),
)
STATUS = StatusDocument(
    state_directory="/var/lib/lvm-audit-agent",
    hostname="controller-0",
    daemon=DaemonStatus(state="running", pid=42),
    written_at=NOW,
    audits=(AUDIT,),
    delivery=DELIVERY,
    delivery_as_of=NOW,
    problems=(),
)


def lines(**changes: object) -> list[str]:
    return list(describe_status(msgspec.structs.replace(STATUS, **changes), NOW))


def delivery_lines(**changes: object) -> list[str]:
    """Without the two lines above."""
    return lines(delivery=msgspec.structs.replace(DELIVERY, **changes))[2:]


def test_all_is_well() -> None:
    assert lines() == [
        "daemon: running (pid 42)",
        "last audit: cgts-vg clean, 2026-12-01 11:59:01 UTC (59 s ago)",
        "last delivery: 2026-12-01 11:55:00 UTC (5 min ago)",
        "waiting: nothing",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {
                "verdict": AuditVerdict.UNKNOWN,
                "stale": True,
                "as_of": NOW - timedelta(hours=3),
                "drift_count": None,
            },
            (
                "unknown, 2026-12-01 11:59:01 UTC (59 s ago); LVM can't be read, last good read "
                "2026-12-01 09:00:00 UTC (3 h ago)"
            ),
        ),
        (
            {"verdict": AuditVerdict.UNKNOWN, "stale": True},
            "unknown, 2026-12-01 11:59:01 UTC (59 s ago); LVM can't be read, last good read never",
        ),
        (
            {"verdict": AuditVerdict.DOES_NOT_FIT, "drift_count": 2, "critical_count": 3},
            (
                "does_not_fit, 2026-12-01 11:59:01 UTC (59 s ago); 2 recorded sizes differ; "
                "findings: 3 critical, 0 warning"
            ),
        ),
        ({"started_at": NOW - timedelta(days=2, hours=5)}, "clean, 2026-11-29 07:00:00 UTC (2 d ago)"),
        ({"started_at": NOW + timedelta(seconds=90)}, "clean, 2026-12-01 12:01:30 UTC (in 1 min)"),
    ],
)
def test_an_audit(changes: dict[str, object], expected: str) -> None:
    assert lines(audits=(msgspec.structs.replace(AUDIT, **changes),))[1] == f"last audit: cgts-vg {expected}"


def test_what_is_not_known_is_said() -> None:
    assert lines(daemon=DaemonStatus(state="unknown"), audits=None, delivery=None, problems=("a\x1bb",)) == [
        "daemon: can't tell whether it runs",
        "last audit: nothing is known",
        "reports: nothing is known (not configured with [report] url, or never sent)",
        r"problem: a\x1bb",
    ]


def test_an_old_view_of_the_queue_says_how_old() -> None:
    assert lines(delivery_as_of=NOW - timedelta(hours=1))[2] == (
        "last delivery: 2026-12-01 11:55:00 UTC (5 min ago), as of 2026-12-01 11:00:00 UTC (1 h ago)"
    )


def test_a_queue_in_trouble() -> None:
    assert delivery_lines(
        waiting_count=1,
        waiting_bytes=4000,
        oldest_waiting_at=NOW - timedelta(hours=2),
        last_failure="HTTP 503",
        last_failure_at=NOW - timedelta(seconds=30),
        next_try_at=NOW + timedelta(seconds=34),
        dropped_count=3,
        read_only_since=NOW - timedelta(days=1),
    ) == [
        "last delivery: 2026-12-01 11:55:00 UTC (5 min ago)",
        (
            "the server takes no reports since 2026-11-30 12:00:00 UTC (1 d ago): none is stored; "
            "it is asked again every hour and at each start"
        ),
        "waiting: 1 report, 4000 bytes, oldest 2026-12-01 10:00:00 UTC (2 h ago)",
        "last failure: 2026-12-01 11:59:30 UTC (30 s ago): HTTP 503",
        "next try: 2026-12-01 12:00:34 UTC (in 34 s), or with the next `agent audit --once`",
        "dropped for room: 3 reports without news",
    ]


def test_many_refused_ones_are_counted() -> None:
    refused = tuple(
        SetAsideReport(
            sequence=number,
            audit_id=UUID(int=number),
            volume_group_name="cgts-vg",
            started_at=NOW,
            set_aside_at=NOW,
            reason="HTTP 422",
        )
        for number in range(1, 13)
    )

    shown = delivery_lines(set_aside_count=12, set_aside=refused)

    assert shown[2:5] == [
        "set aside: 12, refused by the server",
        "  (the latest 10; --format json lists more)",
        "  #3 cgts-vg, 2026-12-01 12:00:00 UTC (0 s ago): HTTP 422 (audit 00000000-0000-0000-0000-000000000003)",
    ]
    assert len(shown) == 2 + 2 + 10 + 1


def test_nothing_audited_is_nothing_to_write() -> None:
    with pytest.raises(ValueError, match="no audit"):
        update(None, [], written_at=NOW, delivery=None, daemon=None)
