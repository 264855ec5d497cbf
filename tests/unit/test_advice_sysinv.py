"""What the agent tells people whose records sysinv keeps: what it refuses, accepts and counts."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from builders import make_bug_vg, record, recorded
from sysinvserver import captured_body

from agent.core.judge import judge
from agent.core.models import Phase, Reading, RecordedFilesystem, Source, VolumeGroup

AS_OF = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
FULL = {"dockerdistribution_lv": 1024}
"""The bug's machine before the upgrade: 5 extents are left."""


def fs(
    name: str, gib: int, *, phase: Phase = Phase.SETTLED, state: str | None = "In-Use"
) -> RecordedFilesystem:
    return record(
        name,
        gib,
        source=Source.HOST_FS,
        whole_gib=True,
        phase=phase,
        state=state,
        recorded_at=AS_OF - timedelta(hours=1),
    )


def controller(name: str, gib: int, *, lv: str | None = None, factor: int = 1) -> RecordedFilesystem:
    return record(
        name,
        gib,
        lv=lv,
        factor=factor,
        source=Source.CONTROLLER_FS,
        whole_gib=True,
        state="available",
        recorded_at=AS_OF - timedelta(hours=1),
    )


def finding_about(volume_group: VolumeGroup, row: RecordedFilesystem) -> tuple[str, str | None]:
    records = msgspec.structs.replace(recorded(row, as_of=AS_OF), hostname="controller-0")
    judgement = judge("cgts-vg", Reading(volume_group=volume_group), records, grace_seconds=600)
    (finding,) = [found for found in judgement.findings if found.kind.startswith("filesystem_")]
    return finding.kind, finding.hint


@pytest.mark.parametrize(
    ("changed", "row", "kind", "hint"),
    [
        pytest.param(
            {},
            fs("docker", 40),
            "filesystem_undersized",
            "the platform refuses 40 again: ask for 41, `system host-fs-modify controller-0 docker=41`. "
            "It counts that as 1 GiB, but lvextend will need 352 extents (11 GiB) and fails silently "
            "without them",
            id="N+1 counts as one GiB only",
        ),
        pytest.param(
            FULL,
            fs("docker", 40),
            "filesystem_undersized",
            "first free 347 extents (10.844 GiB) or add a physical volume, then: "
            "the platform refuses 40 again: ask for 41, `system host-fs-modify controller-0 docker=41`. "
            "It counts that as 1 GiB, but lvextend will need 352 extents (11 GiB) and fails silently "
            "without them",
            id="room first, for N+1 and not for N",
        ),
        pytest.param(
            {},
            controller("database", 11, lv="pgsql-lv", factor=2),
            "filesystem_undersized",
            "the platform refuses 11 again: ask for 12, `system controllerfs-modify database=12` "
            "(the LV gets 2 GiB for each), while backup has room for platform, database and 5 GiB more; "
            "lvextend will need 128 extents (4 GiB), on both controllers",
            id="database counts twice",
        ),
        pytest.param(
            FULL,
            controller("database", 11, lv="pgsql-lv", factor=2),
            "filesystem_undersized",
            "first free 123 extents (3.844 GiB) or add a physical volume, then: "
            "the platform refuses 11 again: ask for 12, `system controllerfs-modify database=12` "
            "(the LV gets 2 GiB for each), while backup has room for platform, database and 5 GiB more; "
            "lvextend will need 128 extents (4 GiB), on both controllers",
            id="database without room",
        ),
        pytest.param(
            {},
            controller("etcd", 6),
            "filesystem_undersized",
            "the platform refuses 6 again: ask for 7, `system controllerfs-modify etcd=7`; "
            "lvextend will need 64 extents (2 GiB), on both controllers",
            id="controller_fs is counted from the LVs",
        ),
        pytest.param(
            {},
            fs("docker", 20),
            "filesystem_oversized",
            "the platform tolerates it; to make the record true: `system host-fs-modify controller-0 docker=30` "
            "(accepted only while 10 GiB are free, though the LV has them already)",
            id="larger than recorded",
        ),
        pytest.param(
            {"docker_lv": 961},
            fs("docker", 30),
            "filesystem_oversized",
            "the platform tolerates it; to make the record true: `system host-fs-modify controller-0 docker=31` "
            "(accepted only while 1 GiB are free, though the LV has them already)",
            id="one extent larger",
        ),
        pytest.param(
            {"pgsql_lv": 641},
            controller("database", 10, lv="pgsql-lv", factor=2),
            "filesystem_oversized",
            "the platform tolerates it; to make the record true: `system controllerfs-modify database=11`",
            id="database larger than recorded",
        ),
        pytest.param(
            {"scratch_lv": 0},
            fs("scratch", 16),
            "filesystem_missing",
            "the next unlock creates it; the 512 extents for it are free",
            id="missing, with room",
        ),
        pytest.param(
            {**FULL, "scratch_lv": 0},
            fs("scratch", 32),
            "filesystem_missing",
            "free 507 extents (15.844 GiB) or add a physical volume: the next unlock creates it with 1024 "
            "extents, and fails as long as they are not there",
            id="missing, without room",
        ),
        pytest.param(
            {},
            fs("docker", 40, phase=Phase.FAILED, state="Error"),
            "filesystem_undersized",
            "the platform will write the LV's size back into the record; if it does not, look at sysinv.log",
            id="Error is written back",
        ),
        pytest.param(
            {},
            fs("docker", 40, phase=Phase.CHANGING, state="Modifying"),
            "filesystem_undersized",
            "look at sysinv.log and puppet.log for why it is still Modifying: until it ends, the platform may "
            "refuse resizes (an LVG update is still pending); then the platform refuses 40 again: ask for 41, "
            "`system host-fs-modify controller-0 docker=41`. It counts that as 1 GiB, but lvextend will need "
            "352 extents (11 GiB) and fails silently without them",
            id="stuck in Modifying",
        ),
        pytest.param(
            {},
            fs("docker", 40, phase=Phase.DELETING, state="Deleting"),
            "filesystem_undersized",
            "look at sysinv.log on the active controller for why the deletion did not end",
            id="stuck in Deleting",
        ),
        pytest.param(
            {"instances_lv": 32},
            fs("instances", 8, phase=Phase.CREATING_ON_UNLOCK, state="Creating (on unlock)"),
            "filesystem_undersized",
            "the platform refuses 8 again: ask for 9, `system host-fs-modify controller-0 instances=9`. "
            "It counts that as 1 GiB, but lvextend will need 256 extents (8 GiB) and fails silently "
            "without them",
            id="on unlock, and yet there",
        ),
    ],
)
def test_hint(changed: dict[str, int], row: RecordedFilesystem, kind: str, hint: str) -> None:
    assert finding_about(make_bug_vg_with(changed), row) == (kind, hint)


def make_bug_vg_with(changed: dict[str, int]) -> VolumeGroup:
    return make_bug_vg(**changed)


@pytest.mark.parametrize("phase", [Phase.CREATING_ON_UNLOCK, Phase.DELETING_ON_UNLOCK])
def test_what_waits_for_the_unlock_is_not_missing(phase: Phase) -> None:
    row = fs("instances", 8, phase=phase, state="… (on unlock)")
    judgement = judge(
        "cgts-vg", Reading(volume_group=make_bug_vg()), recorded(row, as_of=AS_OF), grace_seconds=600
    )
    assert [str(found.verdict) for found in judgement.filesystems or ()] == ["transition"]
    assert judgement.findings == ()


def test_the_platform_says_itself_that_it_refuses_the_same_size() -> None:
    """What the hints rest on, in the platform's own captured words."""
    said = captured_body("31")["error_message"]
    assert "size for filesystem 'docker' should be bigger than 40." in said


def test_without_a_host_name_the_command_has_a_gap_to_fill() -> None:
    judgement = judge(
        "cgts-vg",
        Reading(volume_group=make_bug_vg()),
        recorded(fs("docker", 40), as_of=AS_OF),
        grace_seconds=600,
    )
    assert "`system host-fs-modify HOST docker=41`" in (judgement.findings[0].hint or "")
