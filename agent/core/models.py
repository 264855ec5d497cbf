"""What the agent knows: volume groups as LVM has them, filesystems as the inventory records them.

Frozen values without behaviour beyond questions about themselves.  *actual* is always LVM's word,
*recorded* is always the inventory's.  Quantities carry their unit in their name.  Those that come by the
thousand are hidden from the garbage collector (gc=False: frozen values can't form a cycle), which took a
quarter of the time of judging them.

Not here: the published document (`report`), parsing (`lvm.parse`), arithmetic (`extents.space`).
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property

import msgspec

DEFAULT_VOLUME_GROUP = "cgts-vg"
"""The volume group that StarlingX keeps its filesystems in; sysinv's rows belong to it."""


class Severity(StrEnum):
    """How much a finding matters to an operator."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Finding(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something an operator should know, with what to do about it."""

    kind: str
    """A stable snake_case word: programs match on this, never on the message."""
    severity: Severity
    subject: str
    """The thing it is about: a volume group, LV, filesystem, file or URL."""
    message: str
    hint: str | None = None


class ReadMode(StrEnum):
    """Under which protection LVM metadata was read."""

    LOCKED = "locked"
    LOCK_FREE = "lock_free"


class PhysicalVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One physical volume of a volume group, in extents of that group."""

    name: str
    extent_count: int
    allocated_extents: int
    is_allocatable: bool
    is_missing: bool

    @property
    def free_extents(self) -> int:
        """Extents not in use, whether or not they could be handed out."""
        return self.extent_count - self.allocated_extents


class Area(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run of extents below a segment: on a physical volume or on another LV."""

    name: str
    extents: int


class Segment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One segment of an LV, as `lvs` prints it with segment fields."""

    segtype: str
    extents: int
    """Logical extents (seg_size_pe)."""
    stripes: int
    """Areas side by side: stripes, mirror legs, RAID images with their parity."""
    data_stripes: int
    data_copies: int
    areas: tuple[Area, ...]


class LogicalVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One LV, hidden sub-LVs included.  `name` carries no brackets."""

    uuid: str
    name: str
    size_bytes: int
    extents: int
    """Logical extents: the sum over its segments."""
    is_hidden: bool
    roles: tuple[str, ...]
    layouts: tuple[str, ...]
    attributes: str
    """lv_attr, ten characters."""
    parent: str | None
    """The LV this one is a component of."""
    origin: str | None
    pool: str | None
    health: str | None
    """lv_health_status; None = healthy, "unknown" = LVM can't say."""
    active: bool | None
    """None = neither LVM nor sysfs can say."""
    data_percent: float | None
    metadata_percent: float | None
    sync_percent: float | None
    segments: tuple[Segment, ...]


class VolumeGroup(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A volume group and all its volumes, from one metadata revision."""

    name: str
    uuid: str
    seqno: int
    """The metadata revision: grows with every change LVM commits."""
    attributes: str
    """vg_attr, six characters or seven."""
    size_bytes: int
    extent_size_bytes: int
    extent_count: int
    free_extents: int
    pv_count: int
    missing_pv_count: int
    lv_count: int
    is_exported: bool
    physical_volumes: tuple[PhysicalVolume, ...]
    logical_volumes: tuple[LogicalVolume, ...]
    read_mode: ReadMode = ReadMode.LOCKED

    @property
    def used_extents(self) -> int:
        """Extents that belong to some LV."""
        return self.extent_count - self.free_extents

    @cached_property
    def by_name(self) -> Mapping[str, LogicalVolume]:
        """Its LVs by name, hidden ones included: without it, judging 10,000 LVs takes minutes."""
        return {lv.name: lv for lv in self.logical_volumes}

    def find(self, lv_name: str) -> LogicalVolume | None:
        """The LV of that name, hidden ones included; None when there is none."""
        return self.by_name.get(lv_name)


class DrbdState(msgspec.Struct, frozen=True, kw_only=True):
    """What DRBD says about one of its devices, in its own words."""

    device: str
    """The kernel's name, for example drbd0."""
    role: str | None = None
    peer_role: str | None = None
    connection_state: str | None = None
    disk_state: str | None = None
    peer_disk_state: str | None = None
    resync_percent: float | None = None
    """Done so far; None = no resync is running."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One successful read of a volume group, with what LVM said beside it."""

    volume_group: VolumeGroup
    findings: tuple[Finding, ...] = ()


class Source(StrEnum):
    """Which table a recorded size stands in."""

    HOST_FS = "host_fs"
    CONTROLLER_FS = "controller_fs"
    FILE = "file"


class Phase(StrEnum):
    """What the inventory says is happening to a filesystem, whatever words it uses for it."""

    SETTLED = "settled"
    CHANGING = "changing"
    CREATING = "creating"
    DELETING = "deleting"
    CREATING_ON_UNLOCK = "creating_on_unlock"
    DELETING_ON_UNLOCK = "deleting_on_unlock"
    FAILED = "failed"

    @property
    def is_deleting(self) -> bool:
        """Whether the filesystem is on its way out, so that it needs no room."""
        return self in (Phase.DELETING, Phase.DELETING_ON_UNLOCK)

    @property
    def waits_for_unlock(self) -> bool:
        """Whether the change happens only at the host's next unlock, however long that takes."""
        return self in (Phase.CREATING_ON_UNLOCK, Phase.DELETING_ON_UNLOCK)

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is at work on it right now."""
        return self in (Phase.CHANGING, Phase.CREATING, Phase.DELETING)


class RecordedFilesystem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One filesystem as the inventory records it."""

    name: str
    source: Source
    logical_volume: str
    volume_group: str
    recorded_bytes: int
    """What the LV should be, after the platform's factor (a database row counts twice)."""
    granularity_bytes: int | None = None
    """The record counts in these steps, rounded up (whole GiB); None = exact."""
    phase: Phase = Phase.SETTLED
    state: str | None = None
    """The inventory's own word for the phase."""
    recorded_at: datetime | None = None
    """When the record last changed (UTC)."""
    detail: str | None = None


class PlatformView(msgspec.Struct, frozen=True, kw_only=True):
    """What the inventory believes of a volume group's room: the last report it accepted from the host."""

    volume_group: str
    extent_count: int
    free_extents: int
    reported_at: datetime | None
    """When that last changed (UTC); None = since the group was first seen, nothing was reported."""


class RecordedSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one inventory recorded for this host, in recorded order."""

    filesystems: tuple[RecordedFilesystem, ...]
    origin: str
    """Where they came from, for people: a path or URL."""
    as_of: datetime | None = None
    """The inventory's own clock when it answered (UTC): the ages of records are measured on it."""
    volume_groups: tuple[str, ...] | None = None
    """The groups it can speak about; None = any."""
    hostname: str | None = None
    """The host they are recorded for, in the inventory's words."""
    platform_views: tuple[PlatformView, ...] = ()
    """What it believes of each volume group's room; it decides about resizes with these."""
    findings: tuple[Finding, ...] = ()

    def covers(self, volume_group: str) -> bool:
        """Whether these records say anything about that volume group."""
        return self.volume_groups is None or volume_group in self.volume_groups
