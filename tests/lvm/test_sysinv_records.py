"""The bug's records, as sysinv answered them, against the bug's volume group on real LVM."""

from datetime import UTC, datetime

import pytest
from bug_machine import BEFORE_UPGRADE, GROUP, build_bug_machine
from lvm_lab import read_group
from scratch_lvm import ScratchLvm
from sysinvserver import SysinvServer, bug_machine

from agent.core.judge import judge
from agent.core.models import Reading
from agent.core.report import AuditVerdict
from agent.inventory.settings import InventorySection
from agent.inventory.sysinv import open_sysinv

pytestmark = pytest.mark.lvm


def test_docker_is_undersized_and_the_database_matches(own_lvm: ScratchLvm) -> None:
    build_bug_machine(own_lvm, BEFORE_UPGRADE)
    volume_group = read_group(own_lvm, GROUP)
    with SysinvServer(bug_machine()) as server:
        inventory = open_sysinv(
            InventorySection(url=server.url),
            hostname="controller-0",
            credentials_directory=None,
            user_agent="lvm-audit-agent/test",
            monotonic_seconds=lambda: 0.0,
            now=lambda: datetime.now(UTC),
        )
        recorded = inventory.fetch()
        inventory.close()
    judgement = judge(GROUP, Reading(volume_group=volume_group), recorded, grace_seconds=10)
    verdicts = {row.name: str(row.verdict) for row in judgement.filesystems or ()}
    assert verdicts.pop("docker") == "undersized"
    assert set(verdicts.values()) == {"match"}
    assert verdicts["database"] == "match"
    assert judgement.verdict is AuditVerdict.DOES_NOT_FIT
    assert judgement.capacity is not None
    failure = judgement.capacity.first_failure
    assert failure is not None
    assert (failure.logical_volume, failure.needed_extents, failure.available_extents) == (
        "docker-lv",
        320,
        5,
    )
