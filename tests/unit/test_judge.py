"""Whole judgements: which sections are there, which verdict, which exit status."""

from datetime import UTC, datetime
from string import Formatter
from uuid import UUID

import msgspec
import pytest
from builders import make_bug_vg, make_lv, make_vg, record, recorded

from agent.core.errors import (
    AgentError,
    ExitCode,
    InventoryError,
    LvmError,
    VolumeGroupAbsent,
    strongest,
)
from agent.core.judge import Judgement, exit_code_of, judge
from agent.core.models import Finding, Reading, RecordedSizes, Severity, VolumeGroup
from agent.core.report import AuditDocument, AuditVerdict, HostSection, LvRole, Trigger

ABSENT = VolumeGroupAbsent(subject="cgts-vg", visible="none")
NO_API = InventoryError(subject="http://inventory", reason="connection refused")


def read(volume_group: VolumeGroup, *findings: Finding) -> Reading:
    return Reading(volume_group=volume_group, findings=findings)


def judged(
    reading: Reading | LvmError, records: RecordedSizes | InventoryError | None
) -> tuple[Judgement, ExitCode]:
    judgement = judge("cgts-vg", reading, records, grace_seconds=600)
    return judgement, exit_code_of(document_of(judgement))


def document_of(judgement: Judgement) -> AuditDocument:
    return judgement.document(
        audit_id=UUID(int=1),
        trigger=Trigger.ONCE,
        started_at=datetime(2026, 12, 1, tzinfo=UTC),
        duration_seconds=0.1,
        boot_id=None,
        host=HostSection(hostname="controller-0", boot_time=None, agent_version="1", lvm_version=None),
    )


@pytest.mark.parametrize(
    ("reading", "records", "verdict", "code", "sections", "kinds"),
    [
        (read(make_bug_vg()), recorded(record("docker", 30)), "clean", 0, "vlfuc", []),
        (read(make_bug_vg()), recorded(record("docker", 40)), "drift", 3, "vlfuc", ["filesystem_undersized"]),
        (
            read(make_bug_vg()),
            recorded(record("docker", 47)),
            "does_not_fit",
            7,
            "vlfuc",
            ["does_not_fit", "filesystem_undersized"],
        ),
        (read(make_bug_vg()), recorded(record("docker", 20)), "drift", 3, "vlfuc", ["filesystem_oversized"]),
        (read(make_bug_vg()), recorded(record("new", 1)), "drift", 3, "vlfuc", ["filesystem_missing"]),
        (read(make_bug_vg()), None, "clean", 0, "vl", ["no_inventory"]),
        (read(make_bug_vg()), recorded(), "clean", 0, "vlfuc", ["nothing_recorded"]),
        (read(make_bug_vg()), NO_API, "unknown", 6, "vl", ["inventory_unavailable"]),
        (ABSENT, recorded(record("docker", 30)), "unknown", 5, "f", ["vg_absent"]),
        (ABSENT, NO_API, "unknown", 5, "", ["vg_absent", "inventory_unavailable"]),
        (ABSENT, None, "unknown", 5, "", ["vg_absent"]),
        (
            read(make_bug_vg()),
            RecordedSizes(filesystems=(), origin="sysinv", volume_groups=("other-vg",)),
            "clean",
            0,
            "vl",
            ["not_covered"],
        ),
    ],
)
def test_halves_that_failed_are_unknown_and_hide_nothing(
    reading: Reading | LvmError,
    records: RecordedSizes | InventoryError | None,
    verdict: str,
    code: int,
    sections: str,
    kinds: list[str],
) -> None:
    judgement, exit_code = judged(reading, records)
    present = "".join(
        letter
        for letter, section in [
            ("v", judgement.volume_group),
            ("l", judgement.logical_volumes),
            ("f", judgement.filesystems),
            ("u", judgement.unrecorded),
            ("c", judgement.capacity),
        ]
        if section is not None
    )
    assert (judgement.verdict.value, exit_code, present) == (verdict, code, sections)
    assert [finding.kind for finding in judgement.findings] == kinds


@pytest.mark.parametrize(
    ("reading", "records", "drift_count"),
    [
        (read(make_bug_vg()), recorded(record("docker", 30)), 0),
        (read(make_bug_vg()), recorded(record("docker", 40), record("new", 1)), 2),
        (read(make_bug_vg()), None, None),
        (read(make_bug_vg()), NO_API, None),
        (ABSENT, recorded(record("docker", 40)), None),
    ],
)
def test_drift_is_counted_only_where_it_was_looked_for(
    reading: Reading | LvmError, records: RecordedSizes | InventoryError | None, drift_count: int | None
) -> None:
    judgement, _ = judged(reading, records)
    assert document_of(judgement).drift_count == drift_count


def test_filesystems_of_an_unreadable_group_are_unknown_not_zero() -> None:
    judgement, _ = judged(ABSENT, recorded(record("docker", 40)))
    assert judgement.filesystems is not None
    (filesystem,) = judgement.filesystems
    assert (filesystem.verdict, filesystem.actual_extents, filesystem.delta_extents) == (
        "unknown",
        None,
        None,
    )
    assert document_of(judgement).as_of is None


def test_records_of_another_group_are_not_judged_here() -> None:
    judgement, code = judged(
        read(make_bug_vg()), recorded(record("docker", 30), record("x", 9, vg="other-vg"))
    )
    assert judgement.filesystems is not None
    assert [filesystem.name for filesystem in judgement.filesystems] == ["docker"]
    assert code is ExitCode.OK


def test_gravest_finding_comes_first() -> None:
    note = Finding(kind="read_lock_free", severity=Severity.INFO, subject="cgts-vg", message="no lock")
    judgement, _ = judged(read(make_bug_vg(), note), recorded(record("docker", 20), record("backup", 60)))
    assert [finding.severity.value for finding in judgement.findings] == [
        "critical",
        "critical",
        "warning",
        "info",
    ]


def test_extents_nobody_explains_are_said() -> None:
    volume_group = msgspec.structs.replace(make_bug_vg(), free_extents=500)
    judgement, code = judged(read(volume_group), recorded(record("docker", 30)))
    assert [(finding.kind, finding.message) for finding in judgement.findings] == [
        ("extents_unexplained", "5227 extents are used, but the LVs explain 5210 of them")
    ]
    assert code is ExitCode.OK


def test_roles_and_physical_extents_of_sections() -> None:
    volume_group = make_vg([
        make_lv("plain-lv", 10),
        make_lv("plain-snap", 2, roles=("public", "snapshot", "thicksnapshot"), origin="plain-lv"),
        make_lv("pool0", 5, segtype="thin-pool", areas=[("pool0_tdata", 5)], layouts=("thin", "pool"), roles=("private",)),
        make_lv("pool0_tdata", 5, hidden=True, parent="pool0", roles=("private", "thin", "pool", "data")),
        make_lv("lvol0_pmspare", 1, hidden=True, roles=("private", "pool", "spare")),
        make_lv("pvmove0", 1, hidden=True, roles=("private", "pvmove")),
    ])  # fmt: skip
    judgement, _ = judged(read(volume_group), None)
    assert judgement.logical_volumes is not None
    assert [(lv.name, lv.role, lv.physical_extents) for lv in judgement.logical_volumes] == [
        ("plain-lv", LvRole.PUBLIC, 10),
        ("plain-snap", LvRole.SNAPSHOT, 2),
        ("pool0", LvRole.THIN_POOL, 5),
        ("pool0_tdata", LvRole.PRIVATE, 0),
        ("lvol0_pmspare", LvRole.SPARE, 1),
        ("pvmove0", LvRole.PVMOVE, 1),
    ]


@pytest.mark.parametrize(
    ("codes", "winner"),
    [
        ([], 0), ([0, 3], 3), ([3, 8], 8), ([8, 7], 7), ([7, 2], 2), ([2, 4], 4), ([4, 6], 6), ([6, 5], 5), ([3, 0, 6], 6),
    ],
)  # fmt: skip
def test_strongest_exit_status(codes: list[int], winner: int) -> None:
    assert strongest([ExitCode(code) for code in codes]) is ExitCode(winner)


def test_every_error_explains_itself() -> None:
    for error_class in _leaves(AgentError):
        if "problems" in error_class.__init__.__annotations__:
            continue
        error = error_class(subject="cgts-vg", **_facts(error_class))
        finding = error.to_finding()
        assert finding.kind == error_class.kind
        assert finding.message
        assert "{" not in finding.message + (finding.hint or "")


def _facts(error_class: type[AgentError]) -> dict[str, object]:
    """Something for every field that the templates of a class name."""
    text = error_class.template + (error_class.hint_template or "")
    names = {name for _, name, _, _ in Formatter().parse(text) if name and name != "subject"}
    return {name: 30 if name.endswith("_seconds") else "fact" for name in names}


def _leaves(error_class: type[AgentError]) -> list[type[AgentError]]:
    children = error_class.__subclasses__()
    return [leaf for child in children for leaf in _leaves(child)] if children else [error_class]


def test_verdict_words_are_the_contract() -> None:
    assert [verdict.value for verdict in AuditVerdict] == ["clean", "drift", "does_not_fit", "unknown"]
