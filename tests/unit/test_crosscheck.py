"""What the platform believes is free, beside what LVM has."""

from datetime import UTC, datetime

import msgspec
import pytest
from builders import make_bug_vg, recorded

from agent.core.crosscheck import find_stale_views
from agent.core.models import PlatformView, Severity

REPORTED = datetime(2026, 12, 1, 7, 50, 2, 894180, tzinfo=UTC)


def stale(
    free: int, *, total: int = 5727, name: str = "cgts-vg", reported_at: datetime | None = REPORTED
) -> list[tuple[str, Severity, str]]:
    view = PlatformView(volume_group=name, extent_count=total, free_extents=free, reported_at=reported_at)
    records = msgspec.structs.replace(recorded(), platform_views=(view,))
    findings = find_stale_views(make_bug_vg(), records)
    assert all(finding.subject == "cgts-vg" and finding.hint for finding in findings)
    return [(finding.kind, finding.severity, finding.message) for finding in findings]


@pytest.mark.parametrize(("free", "name"), [(517, "cgts-vg"), (0, "nova-local")])
def test_agreement_and_other_groups_are_nothing_to_say(free: int, name: str) -> None:
    assert stale(free, name=name) == []


def test_platform_that_believes_in_too_much_room() -> None:
    assert stale(837) == [
        (
            "platform_free_stale",
            Severity.WARNING,
            (
                "the platform believes 837 extents of cgts-vg are free, LVM has 517 "
                "(reported 2026-12-01T07:50:02Z): it would accept a resize for which 10 GiB are not there"
            ),
        )
    ]


def test_platform_that_believes_in_too_little_room() -> None:
    assert stale(516) == [
        (
            "platform_free_stale",
            Severity.INFO,
            (
                "the platform believes 516 extents of cgts-vg are free, LVM has 517 "
                "(reported 2026-12-01T07:50:02Z): it would refuse resizes for which there are 0.031 GiB more"
            ),
        )
    ]


def test_platform_that_was_never_told() -> None:
    assert stale(519, reported_at=None) == [
        (
            "platform_free_stale",
            Severity.WARNING,
            (
                "the platform believes 519 extents of cgts-vg are free, LVM has 517 (never reported since it was "
                "created): it would accept a resize for which 0.062 GiB are not there"
            ),
        )
    ]


def test_platform_that_believes_in_another_size() -> None:
    assert stale(319, total=6047) == [
        (
            "platform_size_stale",
            Severity.WARNING,
            "the platform believes cgts-vg has 6047 extents, LVM has 5727 (reported 2026-12-01T07:50:02Z)",
        )
    ]


def test_without_a_view_nothing_is_claimed() -> None:
    assert find_stale_views(make_bug_vg(), recorded()) == ()
