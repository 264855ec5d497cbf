"""What the agent tells people whose records stand in a file: commands that would mend it."""

import msgspec
import pytest
from builders import make_bug_vg, record, recorded

from agent.core.judge import judge
from agent.core.layers.view import LayerScan
from agent.core.models import Reading, RecordedFilesystem, VolumeGroup
from agent.core.report import LayerSection


def advice_for(volume_group: VolumeGroup, *rows: RecordedFilesystem) -> dict[str, tuple[str, str | None]]:
    judgement = judge("cgts-vg", Reading(volume_group=volume_group), recorded(*rows), grace_seconds=600)
    return {
        f"{finding.kind}:{finding.subject}": (finding.message, finding.hint) for finding in judgement.findings
    }


@pytest.mark.parametrize(
    ("row", "changed", "key", "message", "hint"),
    [
        (
            record("docker", 40),
            {},
            "filesystem_undersized:docker",
            "recorded with 40 GiB, but cgts-vg/docker-lv has 30 GiB: 320 extents were never added",
            "`lvextend -r -L 40g cgts-vg/docker-lv`, or correct the record",
        ),
        (
            record("docker", 40),
            {"dockerdistribution_lv": 1024},
            "filesystem_undersized:docker",
            "recorded with 40 GiB, but cgts-vg/docker-lv has 30 GiB: 320 extents were never added",
            "first free 315 extents (9.844 GiB) or add a physical volume, then: `lvextend -r -L 40g cgts-vg/docker-lv`, or correct the record",
        ),
        (
            record("docker", 40),
            {"dockerdistribution_lv": 1024},
            "does_not_fit:docker-lv",
            "docker-lv would fail: 320 extents needed, but only 5 available",
            "free 315 extents (9.844 GiB) or add a physical volume before the next upgrade, reinstall or unlock applies the recorded sizes",
        ),
        (
            record("docker", 20),
            {},
            "filesystem_oversized:docker",
            "recorded with 20 GiB, but cgts-vg/docker-lv has 30 GiB: 320 extents more than anybody recorded",
            'correct the record: size = "30720MiB"',
        ),
        (
            record("new", 1),
            {},
            "filesystem_missing:new",
            "recorded with 1 GiB, but cgts-vg/new-lv does not exist",
            "`lvcreate -L 1g -n new-lv cgts-vg`, or correct the record",
        ),
    ],
)
def test_message_and_hint(
    row: RecordedFilesystem, changed: dict[str, int], key: str, message: str, hint: str
) -> None:
    assert advice_for(make_bug_vg(**changed), row)[key] == (message, hint)


def test_room_is_told_for_all_records_not_only_for_the_first_that_fails() -> None:
    """517 extents are free: docker's 544 fail first, and new's 512 come behind them."""
    message, hint = advice_for(make_bug_vg(), record("docker", 47), record("new", 16))[
        "does_not_fit:docker-lv"
    ]
    assert message == "docker-lv would fail: 544 extents needed, but only 517 available"
    assert hint is not None
    assert hint.startswith("free 539 extents (16.844 GiB) or add a physical volume before the next upgrade")


def test_lv_below_drbd_is_not_extended_with_its_filesystem() -> None:
    layer = LayerSection(kind="drbd", device="drbd0", type=None, size_bytes=5, mount_point=None)
    judgement = judge(
        "cgts-vg",
        Reading(volume_group=make_bug_vg()),
        recorded(record("pgsql", 21)),
        grace_seconds=600,
        scan=LayerScan(layers={"pgsql-lv": (layer,)}),
    )
    assert [finding.hint for finding in judgement.findings] == [
        "`lvextend -L 21g cgts-vg/pgsql-lv` (then `drbdadm resize` and grow the filesystem), or correct the record"
    ]


NO_DISK = (
    "bring the missing disk back (`vgextend --restoremissing cgts-vg DEVICE` if LVM still calls it missing) "
    "or give it up (`vgreduce --removemissing cgts-vg`; LVs that lie on it are removed with --force)"
)
NO_WRITING = (
    'make the volume group writable: `vgcfgbackup -f FILE cgts-vg`, add "WRITE" to its status in FILE, '
    "`vgcfgrestore -f FILE cgts-vg`"
)


@pytest.mark.parametrize(
    ("volume_group", "first"),
    [
        (msgspec.structs.replace(make_bug_vg(), missing_pv_count=1), NO_DISK),
        (msgspec.structs.replace(make_bug_vg(), attributes="rz--n-"), NO_WRITING),
    ],
    ids=["missing disk", "read-only"],
)
def test_a_group_that_lvm_changes_in_no_way_needs_no_room_but_something_else(
    volume_group: VolumeGroup, first: str
) -> None:
    advice = advice_for(volume_group, record("docker", 40))
    assert advice["does_not_fit:docker-lv"] == (
        "docker-lv would fail: 320 extents needed, but only 0 available",
        f"{first} before the next upgrade, reinstall or unlock applies the recorded sizes",
    )
    assert advice["filesystem_undersized:docker"][1] == (
        f"first {first}, then: `lvextend -r -L 40g cgts-vg/docker-lv`, or correct the record"
    )
    assert advice_for(volume_group, record("docker", 30)) == {}
