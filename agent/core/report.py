"""The published documents: what `--format json` prints and what a report carries.

Field names and meanings are a contract with other programs.  ``None`` means "could not be looked at"
and never "nothing there".  Not here: deciding anything (see `compare` and `capacity`).
"""

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal
from uuid import UUID

import msgspec

from agent.core.models import DrbdState, Finding, ReadMode, Source

AUDIT_SCHEMA: Final = "agent.audit/v1"
AUDITS_SCHEMA: Final = "agent.audits/v1"


class Trigger(StrEnum):
    """Why an audit ran."""

    ONCE = "once"
    STARTUP = "startup"
    SCHEDULE = "schedule"
    UDEV = "udev"
    SIGNAL = "signal"


class AuditVerdict(StrEnum):
    """The one word for a whole audit."""

    CLEAN = "clean"
    DRIFT = "drift"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


class FilesystemVerdict(StrEnum):
    """The one word for a filesystem: how its recorded size relates to its LV."""

    UNKNOWN = "unknown"
    MATCH = "match"
    ROUNDING = "rounding"
    TRANSITION = "transition"
    MISSING = "missing"
    UNDERSIZED = "undersized"
    OVERSIZED = "oversized"

    @property
    def is_drift(self) -> bool:
        """Whether the record is a lie."""
        return self in (FilesystemVerdict.MISSING, FilesystemVerdict.UNDERSIZED, FilesystemVerdict.OVERSIZED)


class LvRole(StrEnum):
    """What an LV is there for."""

    PUBLIC = "public"
    SNAPSHOT = "snapshot"
    THIN_POOL = "thin_pool"
    SPARE = "spare"
    PVMOVE = "pvmove"
    PRIVATE = "private"


class HostSection(msgspec.Struct, frozen=True, kw_only=True):
    """The host the audit ran on."""

    hostname: str
    boot_time: datetime | None
    agent_version: str
    lvm_version: str | None


class VolumeGroupSection(msgspec.Struct, frozen=True, kw_only=True):
    """The volume group; sizes in bytes and extents."""

    name: str
    uuid: str
    seqno: int
    size_bytes: int
    extent_size_bytes: int
    extent_count: int
    free_extents: int
    allocatable_extents: int
    pv_count: int
    missing_pv_count: int
    lv_count: int
    attributes: str
    read_mode: ReadMode


class LayerSection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that sits on an LV."""

    kind: Literal["drbd", "crypt", "filesystem"]
    device: str
    type: str | None
    size_bytes: int | None
    mount_point: str | None
    used_percent: float | None = None
    """How full a mounted filesystem is, as df counts it."""
    drbd: DrbdState | None = None


class LogicalVolumeSection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One LV.  `physical_extents` is what it occupies, sub-LVs included; theirs is 0."""

    name: str
    uuid: str
    size_bytes: int
    extents: int
    physical_extents: int
    role: LvRole
    active: bool | None
    health: str | None
    data_percent: float | None
    metadata_percent: float | None
    layers: tuple[LayerSection, ...] | None = None


class FilesystemSection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One recorded filesystem beside its LV.  `delta_extents` = actual - recorded, negative = undersized."""

    name: str
    source: Source
    logical_volume: str
    recorded_bytes: int
    recorded_extents: int | None
    actual_bytes: int | None
    actual_extents: int | None
    delta_extents: int | None
    verdict: FilesystemVerdict
    state: str | None
    recorded_at: datetime | None
    detail: str | None


class FirstFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The LV whose lvextend or lvcreate would fail first, in that command's own terms."""

    logical_volume: str
    needed_extents: int
    available_extents: int


class CapacitySection(msgspec.Struct, frozen=True, kw_only=True):
    """Whether every recorded size could be applied now, in recorded order."""

    needed_extents: int
    available_extents: int
    fits: bool
    shortfall_extents: int
    first_failure: FirstFailure | None

    @property
    def short_extents(self) -> int:
        """Extents that must be freed, at least, for everything to be applied; 0 = it fits.

        More than the shortfall when those that are free lie wrongly (stripes and copies on separate disks).
        """
        failure = self.first_failure
        if failure is None:
            return 0
        return max(self.shortfall_extents, failure.needed_extents - failure.available_extents)


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """How often the same state was found while the report waited: the audits this document stands for."""

    count: int
    """Audits, this one included: 2 or more."""
    first_started_at: datetime
    last_started_at: datetime
    """When this document's own audit started."""


class AuditDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One audit of one volume group: schema ``agent.audit/v1``."""

    schema: Literal["agent.audit/v1"] = AUDIT_SCHEMA
    audit_id: UUID
    trigger: Trigger
    started_at: datetime
    duration_seconds: float
    verdict: AuditVerdict
    stale: bool = False
    as_of: datetime | None
    boot_id: str | None
    outbox_id: UUID | None = None
    sequence: int | None = None
    repeats: Repeats | None = None
    host: HostSection
    volume_group_name: str
    volume_group: VolumeGroupSection | None
    logical_volumes: tuple[LogicalVolumeSection, ...] | None
    filesystems: tuple[FilesystemSection, ...] | None
    unrecorded: tuple[str, ...] | None
    capacity: CapacitySection | None
    findings: tuple[Finding, ...]

    @property
    def drift_count(self) -> int | None:
        """Filesystems whose record is a lie; None = they could not be compared."""
        if self.filesystems is None or self.verdict is AuditVerdict.UNKNOWN:
            return None
        return sum(filesystem.verdict.is_drift for filesystem in self.filesystems)


class AuditsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Several audits of one run: schema ``agent.audits/v1``."""

    schema: Literal["agent.audits/v1"] = AUDITS_SCHEMA
    audits: tuple[AuditDocument, ...]
