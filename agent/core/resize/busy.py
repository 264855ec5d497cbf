"""What is going on on a volume group right now, so that a resize should be asked for again later.

Everything seen from outside LVM comes in an `Activity`.  Pure.  Not here: whether it would fit.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from agent.core.models import DrbdState, LogicalVolume, RecordedFilesystem, VolumeGroup
from agent.core.report import FilesystemSection, FilesystemVerdict
from agent.core.resize.document import Code, Reason

DEFAULT_GRACE_SECONDS = 600.0


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the host beside LVM's metadata and the records."""

    drbd: tuple[DrbdState, ...] | None = ()
    """The DRBD devices above the volume group; None = the host could not be looked at."""
    is_lock_held: bool = False
    """Somebody holds the volume group's lock: an LVM command is at work."""
    read_at: datetime | None = None
    """When LVM was read, on the inventory's clock; None = only just."""
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    """For so long after its record changed, a difference is a change under way."""


def find_activity(
    volume_group: VolumeGroup,
    records: Sequence[RecordedFilesystem],
    filesystems: Sequence[FilesystemSection],
    activity: Activity,
) -> Iterator[Reason]:
    """Every reason to wait; `filesystems` are the judged records, in the same order."""
    for record, filesystem in zip(records, filesystems, strict=True):
        yield from _check_transition(record, filesystem)
    yield from _check_drbd(activity.drbd)
    for lv in volume_group.logical_volumes:
        yield from _check_volume(lv)
    if activity.is_lock_held:
        text = f"the lock of {volume_group.name} is held right now: an LVM command is changing it"
        hint = (
            f"{_LATER}; if no LVM command runs, the lock can't be taken here at all: see `agent audit --once`"
        )
        yield msgspec.structs.replace(_busy("lock_held", volume_group.name, text), hint=hint)
    yield from _check_age(volume_group.name, records, activity.read_at)


def _check_transition(record: RecordedFilesystem, filesystem: FilesystemSection) -> Iterator[Reason]:
    """A change that waits for an unlock may wait for weeks and touches nothing meanwhile."""
    if record.phase.waits_for_unlock:
        return
    if record.phase.is_under_way:
        text = f"{record.name} is changing: state {record.state or record.phase}"
    elif filesystem.verdict is FilesystemVerdict.TRANSITION:
        text = f"{record.name} was recorded anew only just, and its LV has not followed yet"
    else:
        return
    if record.recorded_at is not None:
        text += f" (recorded {record.recorded_at:%Y-%m-%dT%H:%M:%SZ})"
    yield _busy("transition", record.name, text, record.logical_volume)


_CALM_CONNECTIONS = frozenset(
    {"Connected", "Established", "StandAlone", "Connecting", "WFConnection", "Unconnected"}
)
_CALM_REPLICATIONS = frozenset({"Off"})
_SOUND_DISKS = frozenset({"UpToDate", "Consistent", "DUnknown", "Outdated"})


def _check_drbd(devices: Iterable[DrbdState] | None) -> Iterator[Reason]:
    """A resize on top of a running resynchronisation is the bug report's first example."""
    if devices is None:
        yield Reason(
            code=Code.LAYERS_UNKNOWN,
            kind="drbd_unknown",
            blocks=False,
            subject="drbd",
            message="this host's devices can't be seen: whether DRBD is at work is not known",
            hint="run it on the host itself, where /sys and /proc/drbd are visible",
        )
        return
    for device in devices:
        yield from _check_device(device)


def _check_device(device: DrbdState) -> Iterator[Reason]:
    connection = device.connection_state
    if device.resync_percent is not None or (
        connection is not None and connection not in _CALM_CONNECTIONS | _CALM_REPLICATIONS
    ):
        done = "" if device.resync_percent is None else f", {device.resync_percent:g} % done"
        text = f"DRBD device {device.device} is at work: {connection or 'resynchronising'}{done}"
        yield _busy("drbd_resync", device.device, text)
        return
    disks = [("its disk", device.disk_state), ("the peer's disk", device.peer_disk_state)]
    for whose, state in disks:
        if state is not None and state not in _SOUND_DISKS:
            yield _busy(
                "drbd_inconsistent", device.device, f"DRBD device {device.device}: {whose} is {state}"
            )


_WHOLE_PERCENT = 100.0


def _check_volume(lv: LogicalVolume) -> Iterator[Reason]:
    """LVM's own long operations, read from lv_attr (lvs(8)) and the roles."""
    kind = lv.attributes[:1]
    if "pvmove" in lv.roles:
        yield _busy(
            "pvmove", lv.name, "a pvmove is running: LVM refuses to resize the LVs that it moves", lv.name
        )
    elif kind == "O":
        yield _busy("snapshot_merge", lv.name, f"a snapshot is being merged: {lv.name}", lv.name)
    elif kind == "c":
        yield _busy("conversion", lv.name, f"{lv.name} is being converted", lv.name)
    elif not lv.is_hidden and lv.sync_percent is not None and lv.sync_percent < _WHOLE_PERCENT:
        text = f"the copies of {lv.name} are being synchronised: {lv.sync_percent:g} % done"
        yield _busy("conversion", lv.name, text, lv.name)


def _check_age(
    name: str, records: Iterable[RecordedFilesystem], read_at: datetime | None
) -> Iterator[Reason]:
    """Figures from before the last recorded change may have been overtaken: the platform's own race."""
    changes = [(record.recorded_at, record.name) for record in records if record.recorded_at is not None]
    if read_at is None or not changes:
        return
    changed_at, filesystem = max(changes)
    if read_at < changed_at:
        yield _busy(
            "stale",
            name,
            f"LVM was read at {read_at:%Y-%m-%dT%H:%M:%SZ}, before the record of {filesystem} changed "
            f"at {changed_at:%Y-%m-%dT%H:%M:%SZ}",
        )


def find_snapshots(volume_group: VolumeGroup, lv_names: Iterable[str]) -> Iterator[Reason]:
    """Asked LVs with a thick snapshot: lvextend refuses, "can be resized only while inactive".

    The platform takes such snapshots during an upgrade and removes them afterwards.
    """
    for name in lv_names:
        lv = volume_group.find(name)
        if lv is None or "thickorigin" not in lv.roles or lv.active is False:
            continue
        snapshots = [one.name for one in volume_group.logical_volumes if one.origin == name]
        text = (
            f"{name} has a snapshot ({', '.join(snapshots) or '?'}): LVM resizes it only while it is inactive"
        )
        remove = f"`lvremove {volume_group.name}/SNAPSHOT`"
        hint = f"ask again when the snapshot is gone ({remove} if nobody needs it)"
        yield msgspec.structs.replace(_busy("has_snapshot", name, text, name), hint=hint)


_LATER = "wait until it has ended, then ask again"


def _busy(kind: str, subject: str, message: str, logical_volume: str | None = None) -> Reason:
    return Reason(
        code=Code.BUSY,
        kind=kind,
        subject=subject,
        message=message,
        hint=_LATER,
        logical_volume=logical_volume,
    )
