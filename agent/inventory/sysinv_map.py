"""From a row of sysinv's API to a recorded filesystem: the platform's naming and counting, as tables.

Pure.  A row that is not what sysinv sends makes the whole answer unusable: half an inventory must never
look like a whole one.  Not here: fetching rows (`sysinv_api`), judging them (`agent.core.compare`).
"""

import ast
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from agent.core.models import (
    DEFAULT_VOLUME_GROUP,
    Finding,
    Phase,
    PlatformView,
    RecordedFilesystem,
    Severity,
    Source,
)
from agent.core.names import find_lvm_name_problem
from agent.core.units import GIB, MAX_BYTES
from agent.http.messages import printable
from agent.inventory.row import Row

_FACTORS: Final[Mapping[tuple[Source, str], int]] = {
    # pgsql-lv holds the database twice, so that an upgrade can keep the old one beside the new.
    (Source.CONTROLLER_FS, "database"): 2,
}

_LOGICAL_VOLUMES: Final[Mapping[tuple[Source, str], str]] = {
    (Source.CONTROLLER_FS, "database"): "pgsql-lv",
    (Source.CONTROLLER_FS, "platform"): "platform-lv",
    (Source.CONTROLLER_FS, "extension"): "extension-lv",
    (Source.CONTROLLER_FS, "dc-vault"): "dc-vault-lv",
    (Source.CONTROLLER_FS, "etcd"): "etcd-lv",
    (Source.CONTROLLER_FS, "docker-distribution"): "dockerdistribution-lv",
    (Source.CONTROLLER_FS, "ceph-float"): "ceph-float-lv",
    (Source.HOST_FS, "backup"): "backup-lv",
    (Source.HOST_FS, "scratch"): "scratch-lv",
    (Source.HOST_FS, "docker"): "docker-lv",
    (Source.HOST_FS, "kubelet"): "kubelet-lv",
    (Source.HOST_FS, "log"): "log-lv",
    (Source.HOST_FS, "var"): "var-lv",
    (Source.HOST_FS, "root"): "root-lv",
    (Source.HOST_FS, "image-conversion"): "conversion-lv",
    (Source.HOST_FS, "instances"): "instances-lv",
    (Source.HOST_FS, "ceph"): "ceph-lv",
}
"""For rows without `logical_volume`; the record's own word comes first."""

_PHASES: Final[Mapping[str, Phase]] = {
    # host_fs.state
    "ready": Phase.SETTLED,
    "in-use": Phase.SETTLED,
    "creating": Phase.CREATING,
    "creating (on unlock)": Phase.CREATING_ON_UNLOCK,
    "modifying": Phase.CHANGING,
    "deleting": Phase.DELETING,
    "deleting (on unlock)": Phase.DELETING_ON_UNLOCK,
    "reconfigure with app": Phase.CHANGING,
    "error": Phase.FAILED,
    # controller_fs.state
    "available": Phase.SETTLED,
    "drbd_fs_resizing_in_progress": Phase.CHANGING,
    "drbd_fs_creating_in_progress": Phase.CREATING,
    "drbd_fs_creating_on_unlock": Phase.CREATING_ON_UNLOCK,
    "drbd_fs_deleting_in_progress": Phase.DELETING,
    # Nothing but the row is left, for however long: an absent LV is right, so no grace may end.
    "deleted": Phase.DELETING_ON_UNLOCK,
    "reconfigure-with-app": Phase.CHANGING,
    "drbd_fs_update_error": Phase.FAILED,
}
"""By lower-case word; the two tables of sysinv share none with different meanings."""

MAX_STATE_CHARACTERS: Final = 200


def to_filesystem(row: Row, source: Source) -> tuple[RecordedFilesystem, tuple[Finding, ...]]:
    """One recorded filesystem, and what was odd about its row.

    Raises:
        InventoryGarbled: naming the row, the field and its value.
    """
    name = _lvm_word(row, "name", row.text("name"))
    factor = _FACTORS.get((source, name), 1)
    logical_volume, lv_findings = _logical_volume(row, source, name)
    phase, state, state_findings = _phase(row, name)
    size_gib = row.positive("size")
    if size_gib * factor * GIB > MAX_BYTES:
        raise row.refused("size", "is above 2^63 bytes, which no volume can have")
    filesystem = RecordedFilesystem(
        name=name,
        source=source,
        logical_volume=logical_volume,
        volume_group=DEFAULT_VOLUME_GROUP,
        recorded_bytes=size_gib * factor * GIB,
        granularity_bytes=factor * GIB,
        phase=phase,
        state=state,
        recorded_at=_changed_at(row),
    )
    return filesystem, (*lv_findings, *state_findings)


def to_platform_view(row: Row) -> PlatformView:
    """What sysinv believes of one volume group.

    Raises:
        InventoryGarbled: naming the row, the field and its value.
    """
    extent_count = row.natural("lvm_vg_total_pe")
    free_extents = row.natural("lvm_vg_free_pe")
    if free_extents > extent_count:
        raise row.refused("lvm_vg_free_pe", f"is more than all {extent_count} extents")
    return PlatformView(
        volume_group=_lvm_word(row, "lvm_vg_name", row.text("lvm_vg_name")),
        extent_count=extent_count,
        free_extents=free_extents,
        reported_at=row.time("updated_at"),
    )


def _changed_at(row: Row) -> datetime | None:
    """`updated_at` is null until the first change; then the row is as old as its creation."""
    return row.time("updated_at") or row.time("created_at")


def _logical_volume(row: Row, source: Source, name: str) -> tuple[str, tuple[Finding, ...]]:
    own = row.optional_text("logical_volume")
    if own:
        return _lvm_word(row, "logical_volume", own), ()
    known = _LOGICAL_VOLUMES.get((source, name))
    if known is not None:
        return known, ()
    guess = f"{name}-lv"
    finding = Finding(
        kind="unknown_filesystem",
        severity=Severity.WARNING,
        subject=name,
        message=f"the record names no LV, and {name} is no filesystem this agent knows: {guess} is assumed, "
        "as the platform would name it",
        hint=f"check with `lvs {DEFAULT_VOLUME_GROUP}` which LV it is",
    )
    return guess, (finding,)


def _phase(row: Row, name: str) -> tuple[Phase, str | None, tuple[Finding, ...]]:
    """The phase, sysinv's own word for it, and a finding when that word is none we know."""
    value = row.value("state")
    if value is None:  # before release 10
        return Phase.SETTLED, None, ()
    word = _state_word(row, value)
    phase = _PHASES.get(word.lower())
    if phase is not None:
        return phase, word, ()
    shown = printable(word, MAX_STATE_CHARACTERS)
    finding = Finding(
        kind="unknown_state",
        severity=Severity.WARNING,
        subject=name,
        message=f"the record's state {shown!r} is unknown: treated as if nothing were under way",
        hint="look it up in the platform's release notes; an update of this agent may know it",
    )
    return Phase.SETTLED, shown, (finding,)


def _state_word(row: Row, value: object) -> str:
    """The word inside the text of a Python dict ``{'status': 'available'}``, or the text itself."""
    if not isinstance(value, str | dict):
        raise row.refused("state", "is neither text nor null")
    inner: object = value
    if isinstance(value, str) and value.startswith("{") and len(value) <= MAX_STATE_CHARACTERS:
        try:
            inner = ast.literal_eval(value)  # literals only: nothing in it is ever run
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return value
    word = inner.get("status") if isinstance(inner, dict) else None
    return word if isinstance(word, str) else str(value)


def _lvm_word(row: Row, field: str, word: str) -> str:
    """The word, if LVM and a command line can have it: it will stand in hints that people copy."""
    if find_lvm_name_problem(word) is not None:
        raise row.refused(field, "is no name that LVM or the platform can have")
    return word
