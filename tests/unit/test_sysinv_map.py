"""Rows of sysinv's two tables, as the platform names, counts and words them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sysinvserver import captured_body

from agent.core.inventory_errors import InventoryGarbled
from agent.core.models import Phase, Source
from agent.core.units import GIB
from agent.inventory.row import Row
from agent.inventory.sysinv_map import to_filesystem, to_platform_view

URL = "http://c:6385/v1/x"
ROW: dict[str, Any] = {
    "name": "docker",
    "size": 40,
    "logical_volume": "docker-lv",
    "state": "In-Use",
    "created_at": "2026-12-01T07:49:28.839859+00:00",
    "updated_at": None,
}


def make_row(**fields: object) -> Row:
    return Row({**ROW, **fields}, url=URL, number=4)


@pytest.mark.parametrize(
    ("source", "name", "logical_volume"),
    [
        (Source.CONTROLLER_FS, "database", "pgsql-lv"),
        (Source.CONTROLLER_FS, "platform", "platform-lv"),
        (Source.CONTROLLER_FS, "extension", "extension-lv"),
        (Source.CONTROLLER_FS, "dc-vault", "dc-vault-lv"),
        (Source.CONTROLLER_FS, "etcd", "etcd-lv"),
        (Source.CONTROLLER_FS, "docker-distribution", "dockerdistribution-lv"),
        (Source.CONTROLLER_FS, "ceph-float", "ceph-float-lv"),
        (Source.HOST_FS, "backup", "backup-lv"),
        (Source.HOST_FS, "scratch", "scratch-lv"),
        (Source.HOST_FS, "docker", "docker-lv"),
        (Source.HOST_FS, "kubelet", "kubelet-lv"),
        (Source.HOST_FS, "log", "log-lv"),
        (Source.HOST_FS, "var", "var-lv"),
        (Source.HOST_FS, "root", "root-lv"),
        (Source.HOST_FS, "image-conversion", "conversion-lv"),
        (Source.HOST_FS, "instances", "instances-lv"),
        (Source.HOST_FS, "ceph", "ceph-lv"),
    ],
)
@pytest.mark.parametrize("own", [None, ""])
def test_row_without_lv_gets_the_platforms(
    source: Source, name: str, logical_volume: str, own: str | None
) -> None:
    filesystem, findings = to_filesystem(make_row(name=name, logical_volume=own), source)
    assert (filesystem.name, filesystem.logical_volume, findings) == (name, logical_volume, ())
    assert filesystem.source is source
    assert filesystem.volume_group == "cgts-vg"


def test_the_records_own_lv_comes_first() -> None:
    filesystem, findings = to_filesystem(make_row(name="database", logical_volume="other-lv"), Source.HOST_FS)
    assert (filesystem.logical_volume, findings) == ("other-lv", ())


def test_unknown_filesystem_without_lv_is_named_as_the_platform_would_and_said() -> None:
    filesystem, findings = to_filesystem(make_row(name="new", logical_volume=None), Source.HOST_FS)
    assert filesystem.logical_volume == "new-lv"
    assert [(finding.kind, finding.subject) for finding in findings] == [("unknown_filesystem", "new")]
    assert findings[0].message == (
        "the record names no LV, and new is no filesystem this agent knows: new-lv is assumed, "
        "as the platform would name it"
    )


@pytest.mark.parametrize(
    ("source", "name", "size", "recorded_bytes", "granularity_bytes"),
    [
        (Source.CONTROLLER_FS, "database", 10, 20 * GIB, 2 * GIB),
        (Source.CONTROLLER_FS, "platform", 10, 10 * GIB, GIB),
        (Source.HOST_FS, "database", 10, 10 * GIB, GIB),
        (Source.HOST_FS, "docker", 1, GIB, GIB),
        (Source.HOST_FS, "docker", 8589934591, 9223372035781033984, GIB),
    ],
)
def test_sizes_are_gib_and_the_database_counts_twice(
    source: Source, name: str, size: int, recorded_bytes: int, granularity_bytes: int
) -> None:
    filesystem, _ = to_filesystem(make_row(name=name, size=size), source)
    assert (filesystem.recorded_bytes, filesystem.granularity_bytes) == (recorded_bytes, granularity_bytes)


@pytest.mark.parametrize(
    ("state", "phase", "word"),
    [
        (None, Phase.SETTLED, None),
        ("Ready", Phase.SETTLED, "Ready"),
        ("In-Use", Phase.SETTLED, "In-Use"),
        ("in-use", Phase.SETTLED, "in-use"),
        ("Creating", Phase.CREATING, "Creating"),
        ("Creating (on unlock)", Phase.CREATING_ON_UNLOCK, "Creating (on unlock)"),
        ("Modifying", Phase.CHANGING, "Modifying"),
        ("Deleting", Phase.DELETING, "Deleting"),
        ("Deleting (on unlock)", Phase.DELETING_ON_UNLOCK, "Deleting (on unlock)"),
        ("Reconfigure with App", Phase.CHANGING, "Reconfigure with App"),
        ("Error", Phase.FAILED, "Error"),
        ("available", Phase.SETTLED, "available"),
        ("{'status': 'available'}", Phase.SETTLED, "available"),
        ('{"status": "available"}', Phase.SETTLED, "available"),
        ({"status": "available"}, Phase.SETTLED, "available"),
        (
            "{'status': 'drbd_fs_resizing_in_progress'}",
            Phase.CHANGING,
            "drbd_fs_resizing_in_progress",
        ),
        ("drbd_fs_creating_in_progress", Phase.CREATING, "drbd_fs_creating_in_progress"),
        ("drbd_fs_creating_on_unlock", Phase.CREATING_ON_UNLOCK, "drbd_fs_creating_on_unlock"),
        ("drbd_fs_deleting_in_progress", Phase.DELETING, "drbd_fs_deleting_in_progress"),
        ("deleted", Phase.DELETING_ON_UNLOCK, "deleted"),
        ("reconfigure-with-app", Phase.CHANGING, "reconfigure-with-app"),
        ("{'status': 'drbd_fs_update_error'}", Phase.FAILED, "drbd_fs_update_error"),
    ],
)
def test_state(state: object, phase: Phase, word: str | None) -> None:
    filesystem, findings = to_filesystem(make_row(state=state), Source.CONTROLLER_FS)
    assert (filesystem.phase, filesystem.state, findings) == (phase, word, ())


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("Frobbing", "Frobbing"),
        ("", ""),
        ("{'status': 'frobbing'}", "frobbing"),
        ("{'status': 7}", "{'status': 7}"),
        ("{}", "{}"),
        ("{'status': __import__('os').getcwd()}", "{'status': __import__('os').getcwd()}"),
        ("{", "{"),
        ("{1, 2}", "{1, 2}"),
        ("{'status': 'available'" + " " * 200 + "}", "{'status': 'available' }"),
        ("a\x1b[31mb\nc", r"a\x1b[31mb c"),
        ("x" * 5000, "x" * 199 + "…"),
        ("{[]: 1}", "{[]: 1}"),
    ],
)
def test_unknown_state_is_settled_kept_and_said(state: str, shown: str) -> None:
    filesystem, findings = to_filesystem(make_row(state=state), Source.HOST_FS)
    assert (filesystem.phase, filesystem.state) == (Phase.SETTLED, shown)
    assert [(finding.kind, finding.subject) for finding in findings] == [("unknown_state", "docker")]
    assert f"the record's state {shown!r} is unknown" in findings[0].message


@pytest.mark.parametrize(
    ("created", "updated", "recorded_at"),
    [
        ("2026-12-01T07:00:00+00:00", None, datetime(2026, 12, 1, 7, tzinfo=UTC)),
        ("2026-12-01T07:00:00+00:00", "2026-12-01T08:00:00+00:00", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        (None, "2026-12-01T08:00:00+02:00", datetime(2026, 12, 1, 6, tzinfo=UTC)),
        (None, "2026-12-01T08:00:00Z", datetime(2026, 12, 1, 8, tzinfo=UTC)),
        (None, "2026-12-01T08:00:00.250000", datetime(2026, 12, 1, 8, 0, 0, 250000, tzinfo=UTC)),
        (None, None, None),
    ],
)
def test_a_row_is_as_old_as_its_last_change_or_its_creation(
    created: str | None, updated: str | None, recorded_at: datetime | None
) -> None:
    filesystem, _ = to_filesystem(make_row(created_at=created, updated_at=updated), Source.HOST_FS)
    assert filesystem.recorded_at == recorded_at


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("size", None, "size is not there"),
        ("size", "40", "size '40' is not a whole number"),
        ("size", 40.0, "size 40.0 is not a whole number"),
        ("size", True, "size True is not a whole number"),
        ("size", [40], "size [40] is not a whole number"),
        ("size", -1, "size -1 is negative"),
        ("size", 0, "size 0 is zero"),
        ("size", 8589934592, "size 8589934592 is above 2^63 bytes, which no volume can have"),
        pytest.param(
            "size", 10**5000, "size a huge number is above 2^63 bytes, which no volume can have", id="huge"
        ),
        ("logical_volume", 7, "logical_volume 7 is not text"),
        (
            "logical_volume",
            "x; reboot",
            "logical_volume 'x; reboot' is no name that LVM or the platform can have",
        ),
        (
            "logical_volume",
            "../sda",
            "logical_volume '../sda' is no name that LVM or the platform can have",
        ),
        ("state", 7, "state 7 is neither text nor null"),
        ("state", [], "state [] is neither text nor null"),
        ("updated_at", 1764575368, "updated_at 1764575368 is not text"),
        ("updated_at", "yesterday", "updated_at 'yesterday' is not a time"),
        ("updated_at", "0001-01-01T00:00:00+23:00", "updated_at '0001-01-01T00:00:00+23:00' is not a time"),
        ("created_at", "2026-13-01T00:00:00", "created_at '2026-13-01T00:00:00' is not a time"),
    ],
)
def test_a_row_of_wrong_types_makes_the_answer_unusable(field: str, value: object, problem: str) -> None:
    with pytest.raises(InventoryGarbled) as caught:
        to_filesystem(make_row(**{field: value}), Source.HOST_FS)
    assert str(caught.value) == f"http://c:6385/v1/x: row 4 ('docker'): {problem}"
    assert caught.value.exit_code == 6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (None, "row 4: name is not there"),
        ("", "row 4 (''): name '' is empty"),
        (7, "row 4: name 7 is not text"),
        (
            "a\x1b[31m`id`",
            r"row 4 ('a\x1b[31m`id`'): name 'a\x1b[31m`id`' is no name that LVM or the platform can have",
        ),
    ],
)
def test_a_row_without_a_usable_name(name: object, text: str) -> None:
    with pytest.raises(InventoryGarbled) as caught:
        to_filesystem(make_row(name=name), Source.HOST_FS)
    assert str(caught.value) == f"http://c:6385/v1/x: {text}"


def test_platform_view_of_the_captured_group() -> None:
    (fields,) = captured_body("43")["ilvgs"]
    view = to_platform_view(Row(fields, url=URL, number=1))
    assert (view.volume_group, view.extent_count, view.free_extents) == ("cgts-vg", 6047, 127)
    assert view.reported_at == datetime(2026, 12, 1, 7, 50, 2, 894180, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("lvm_vg_free_pe", 6048, "lvm_vg_free_pe 6048 is more than all 6047 extents"),
        ("lvm_vg_free_pe", None, "lvm_vg_free_pe is not there"),
        ("lvm_vg_total_pe", "6047", "lvm_vg_total_pe '6047' is not a whole number"),
        ("lvm_vg_total_pe", -1, "lvm_vg_total_pe -1 is negative"),
    ],
)
def test_platform_view_of_wrong_types(field: str, value: object, problem: str) -> None:
    (fields,) = captured_body("07")["ilvgs"]
    with pytest.raises(InventoryGarbled) as caught:
        to_platform_view(Row({**fields, field: value}, url=URL, number=1))
    assert str(caught.value) == f"http://c:6385/v1/x: row 1 ('cgts-vg'): {problem}"
