"""The judgement of a whole audit: sections, verdict and findings from a reading and the records.

Puts `compare`, `extents.growth` and `advice` together into what the document says.  Not here: ids and times
(given by the caller), exit statuses of other commands.
"""

from datetime import datetime
from uuid import UUID

import msgspec

from agent.core import advice
from agent.core.compare import (
    find_record_problems,
    find_unrecorded,
    judge_filesystem,
    records_of,
    unknown_filesystem,
)
from agent.core.crosscheck import find_stale_views
from agent.core.errors import AgentError, ExitCode, InventoryError, LvmError
from agent.core.extents.growth import assess
from agent.core.extents.space import physical_extents
from agent.core.layers.view import LayerScan
from agent.core.models import (
    Finding,
    Reading,
    RecordedSizes,
    Severity,
    VolumeGroup,
)
from agent.core.report import (
    AuditDocument,
    AuditVerdict,
    CapacitySection,
    FilesystemSection,
    HostSection,
    LogicalVolumeSection,
    Trigger,
    VolumeGroupSection,
)
from agent.core.sections import logical_volume_sections, volume_group_section


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an audit says, before it has an id and a time."""

    volume_group_name: str
    verdict: AuditVerdict
    volume_group: VolumeGroupSection | None = None
    logical_volumes: tuple[LogicalVolumeSection, ...] | None = None
    filesystems: tuple[FilesystemSection, ...] | None = None
    unrecorded: tuple[str, ...] | None = None
    capacity: CapacitySection | None = None
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of_failure(cls, volume_group_name: str, error: AgentError) -> "Judgement":
        """Nothing could be looked at, and why."""
        return cls(
            volume_group_name=volume_group_name,
            verdict=AuditVerdict.UNKNOWN,
            findings=(error.to_finding(),),
        )

    def document(
        self,
        *,
        audit_id: UUID,
        trigger: Trigger,
        started_at: datetime,
        duration_seconds: float,
        boot_id: str | None,
        host: HostSection,
    ) -> AuditDocument:
        """The published document of this judgement."""
        return AuditDocument(
            audit_id=audit_id,
            trigger=trigger,
            started_at=started_at,
            duration_seconds=duration_seconds,
            verdict=self.verdict,
            as_of=None if self.volume_group is None else started_at,
            boot_id=boot_id,
            host=host,
            volume_group_name=self.volume_group_name,
            volume_group=self.volume_group,
            logical_volumes=self.logical_volumes,
            filesystems=self.filesystems,
            unrecorded=self.unrecorded,
            capacity=self.capacity,
            findings=self.findings,
        )


def judge(
    volume_group_name: str,
    reading: Reading | LvmError,
    recorded: RecordedSizes | InventoryError | None,
    *,
    grace_seconds: float,
    scan: LayerScan | None = None,
) -> Judgement:
    """Judge one volume group; a failed half is reported as unknown and never hides the other half.

    `scan` is what sits on its LVs; None = nobody looked.
    """
    if isinstance(reading, LvmError):
        return _judge_unread(volume_group_name, reading, recorded)
    read_only = _without_records(reading, scan)
    if recorded is None:
        return _add(read_only, advice.no_inventory(volume_group_name))
    if isinstance(recorded, InventoryError):
        return msgspec.structs.replace(_add(read_only, recorded.to_finding()), verdict=AuditVerdict.UNKNOWN)
    if not recorded.covers(volume_group_name):
        return _add(read_only, advice.not_covered(volume_group_name, recorded))
    return _judge_records(read_only, reading.volume_group, recorded, grace_seconds=grace_seconds)


def _judge_unread(name: str, error: LvmError, recorded: RecordedSizes | InventoryError | None) -> Judgement:
    """LVM could not be read: the records are shown beside `unknown`."""
    failed = Judgement.of_failure(name, error)
    if isinstance(recorded, InventoryError):
        return _add(failed, recorded.to_finding())
    if recorded is None or not recorded.covers(name):
        return failed
    return msgspec.structs.replace(
        _add(failed, *recorded.findings),
        filesystems=tuple(unknown_filesystem(row) for row in records_of(name, recorded)),
    )


def _without_records(reading: Reading, scan: LayerScan | None) -> Judgement:
    """What the host alone says."""
    volume_group = reading.volume_group
    occupied = physical_extents(volume_group)
    layers, layer_findings = (None, ()) if scan is None else (scan.layers, scan.findings)
    return Judgement(
        volume_group_name=volume_group.name,
        verdict=AuditVerdict.CLEAN,
        volume_group=volume_group_section(volume_group),
        logical_volumes=logical_volume_sections(volume_group, occupied, layers),
        findings=(*reading.findings, *advice.extent_findings(volume_group, occupied), *layer_findings),
    )


def _judge_records(
    read_only: Judgement, volume_group: VolumeGroup, recorded: RecordedSizes, *, grace_seconds: float
) -> Judgement:
    """Both halves are there: verdicts, capacity, and what to do about each."""
    records = records_of(volume_group.name, recorded)
    filesystems = tuple(
        judge_filesystem(volume_group, row, as_of=recorded.as_of, grace_seconds=grace_seconds)
        for row in records
    )
    capacity = assess(volume_group, records)
    below_drbd = {
        lv.name
        for lv in read_only.logical_volumes or ()
        if any(layer.kind == "drbd" for layer in lv.layers or ())
    }
    unrecorded = find_unrecorded(volume_group, records)
    verdict = AuditVerdict.CLEAN
    if any(filesystem.verdict.is_drift for filesystem in filesystems):
        verdict = AuditVerdict.DRIFT
    if not capacity.fits:
        verdict = AuditVerdict.DOES_NOT_FIT
    findings = (
        *advice.capacity_findings(volume_group, capacity),
        *advice.drift_findings(volume_group, records, filesystems, recorded, below_drbd=below_drbd),
        *find_record_problems(records),
        *find_stale_views(volume_group, recorded),
        *advice.nothing_recorded(volume_group.name, records, recorded),
        *recorded.findings,
    )
    return msgspec.structs.replace(
        _add(read_only, *findings),
        verdict=verdict,
        filesystems=filesystems,
        unrecorded=unrecorded,
        capacity=capacity,
    )


def exit_code_of(document: AuditDocument) -> ExitCode:
    """The exit status that an audit's document stands for; findings alone never change it."""
    if document.verdict is AuditVerdict.UNKNOWN:
        return ExitCode.LVM if document.volume_group is None else ExitCode.INVENTORY
    if document.verdict is AuditVerdict.DOES_NOT_FIT:
        return ExitCode.DOES_NOT_FIT
    return ExitCode.DRIFT if document.verdict is AuditVerdict.DRIFT else ExitCode.OK


_SEVERITIES = tuple(reversed(Severity))


def _add(judgement: Judgement, *findings: Finding) -> Judgement:
    """The judgement with more findings, the gravest first."""
    ordered = sorted(
        (*judgement.findings, *findings), key=lambda finding: _SEVERITIES.index(finding.severity)
    )
    return msgspec.structs.replace(judgement, findings=tuple(ordered))
