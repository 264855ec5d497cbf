"""Equal states are recognised whatever else differs; every real change is one."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
from reports import START, make_document

from agent.core.delivery.fold import extend_repeats, state_key
from agent.core.models import DrbdState, Finding, ReadMode, Severity
from agent.core.report import (
    AuditDocument,
    AuditVerdict,
    LayerSection,
    LogicalVolumeSection,
    Repeats,
    Trigger,
    VolumeGroupSection,
)

LATER = datetime(2027, 1, 1, tzinfo=UTC)
FULL = Finding(
    kind="thin_pool_full", severity=Severity.WARNING, subject="pool", message="data is 81.25 % full"
)


def first_lv(document: AuditDocument) -> LogicalVolumeSection:
    assert document.logical_volumes is not None
    return document.logical_volumes[0]


def with_first_lv(document: AuditDocument, **changes: object) -> AuditDocument:
    assert document.logical_volumes is not None
    changed = msgspec.structs.replace(first_lv(document), **changes)
    return msgspec.structs.replace(document, logical_volumes=(changed, *document.logical_volumes[1:]))


def group_of(document: AuditDocument) -> VolumeGroupSection:
    assert document.volume_group is not None
    return document.volume_group


BASE = msgspec.structs.replace(make_document(1), findings=(FULL,))
assert BASE.filesystems is not None

SAME = {
    "audit_id": {"audit_id": UUID(int=99)},
    "trigger": {"trigger": Trigger.UDEV},
    "started_at": {"started_at": LATER},
    "duration": {"duration_seconds": 9.0},
    "as_of": {"as_of": LATER},
    "boot_id": {"boot_id": "boot-2"},
    "outbox": {"outbox_id": UUID(int=5), "sequence": 17},
    "repeats": {"repeats": Repeats(count=2, first_started_at=START, last_started_at=LATER)},
    "boot_time": {"host": msgspec.structs.replace(BASE.host, boot_time=LATER)},
    "recorded_at": {
        "filesystems": tuple(msgspec.structs.replace(row, recorded_at=LATER) for row in BASE.filesystems)
    },
    "percent in words": {"findings": (msgspec.structs.replace(FULL, message="data is 82 % full"),)},
}

OTHER = {
    "verdict": {"verdict": AuditVerdict.DRIFT},
    "stale": {"stale": True},
    "hostname": {"host": msgspec.structs.replace(BASE.host, hostname="controller-1")},
    "agent_version": {"host": msgspec.structs.replace(BASE.host, agent_version="0.2.0")},
    "volume group gone": {"volume_group": None},
    "metadata revision": {"volume_group": msgspec.structs.replace(group_of(BASE), seqno=8)},
    "read mode": {"volume_group": msgspec.structs.replace(group_of(BASE), read_mode=ReadMode.LOCK_FREE)},
    "not compared": {"filesystems": None},
    "finding gone": {"findings": ()},
    "finding graver": {"findings": (msgspec.structs.replace(FULL, severity=Severity.CRITICAL),)},
    "finding's words": {"findings": (msgspec.structs.replace(FULL, message="data is 81.25 % fuller"),)},
    "unrecorded": {"unrecorded": None},
    "capacity": {"capacity": None},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_identities_times_and_percents_are_no_change(changes: dict[str, object]) -> None:
    changed = msgspec.structs.replace(BASE, **changes)

    assert changed != BASE
    assert state_key(changed) == state_key(BASE)


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_everything_else_is_a_change(changes: dict[str, object]) -> None:
    assert state_key(msgspec.structs.replace(BASE, **changes)) != state_key(BASE)


def test_fill_levels_are_no_change_and_a_replaced_lv_is_one() -> None:
    assert state_key(with_first_lv(BASE, data_percent=81.0, metadata_percent=1.5)) == state_key(BASE)
    assert state_key(with_first_lv(BASE, uuid="another")) != state_key(BASE)
    assert state_key(with_first_lv(BASE, health="partial")) != state_key(BASE)


def test_fill_levels_and_progress_of_layers_are_no_change_and_their_sizes_are_one() -> None:
    resync = DrbdState(device="drbd0", connection_state="SyncSource", resync_percent=11.8)
    layer = LayerSection(
        kind="drbd", device="drbd0", type=None, size_bytes=5, mount_point=None, used_percent=40.0, drbd=resync
    )
    base = with_first_lv(BASE, layers=(layer,))
    further = msgspec.structs.replace(
        layer, used_percent=41.0, drbd=msgspec.structs.replace(resync, resync_percent=90.0)
    )
    done = msgspec.structs.replace(layer, drbd=msgspec.structs.replace(resync, connection_state="Connected"))
    assert state_key(with_first_lv(BASE, layers=(further,))) == state_key(base)
    assert state_key(with_first_lv(BASE, layers=(done,))) != state_key(base)
    assert state_key(
        with_first_lv(BASE, layers=(msgspec.structs.replace(layer, size_bytes=6),))
    ) != state_key(base)
    assert state_key(with_first_lv(BASE, layers=None)) != state_key(with_first_lv(BASE, layers=()))


def test_every_field_of_the_document_is_decided_here() -> None:
    # A new field counts as a change until it is put into SAME on purpose; then this list grows.
    assert {field.name for field in msgspec.structs.fields(AuditDocument)} == {
        "schema", "audit_id", "trigger", "started_at", "duration_seconds", "verdict", "stale", "as_of",
        "boot_id", "outbox_id", "sequence", "repeats", "host", "volume_group_name", "volume_group",
        "logical_volumes", "filesystems", "unrecorded", "capacity", "findings",
    }  # fmt: skip


def test_one_extent_is_a_change() -> None:
    assert state_key(make_document(1, docker_extents=961)) != state_key(make_document(1))


def test_the_first_repeat_counts_both() -> None:
    latest = make_document(2)

    assert extend_repeats(None, START, latest) == Repeats(
        count=2, first_started_at=START, last_started_at=datetime(2026, 12, 1, 9, 2, tzinfo=UTC)
    )


def test_later_repeats_keep_the_first_start() -> None:
    earlier = Repeats(count=7, first_started_at=START, last_started_at=LATER)

    assert extend_repeats(earlier, LATER, make_document(3)) == Repeats(
        count=8, first_started_at=START, last_started_at=datetime(2026, 12, 1, 9, 3, tzinfo=UTC)
    )
