"""A volume group of a thousand LVs."""

from pathlib import Path

import pytest
from lvm_lab import audit, rows_of, write_rows
from many_volumes import volume_names, write_metadata
from scratch_lvm import ScratchLvm

from agent.core.report import FilesystemVerdict

pytestmark = pytest.mark.lvm


def test_thousand_volumes_are_all_audited(own_lvm: ScratchLvm, tmp_path: Path) -> None:
    own_lvm.restore(write_metadata("many-vg", 1000))
    own_lvm.extend("many-vg", "vol-0500", 12 * 1024**2)
    record = write_rows(tmp_path / "sizes.toml", dict.fromkeys(volume_names(1000), "8MiB"))
    status, document = audit(own_lvm, "many-vg", record)
    assert status == 3
    assert document.volume_group is not None
    assert (document.volume_group.lv_count, document.volume_group.free_extents) == (1000, 1999)
    assert document.logical_volumes is not None
    assert sum(lv.physical_extents for lv in document.logical_volumes) == 2001
    rows = rows_of(document)
    assert len(rows) == 1000
    assert [name for name, row in rows.items() if row.verdict is FilesystemVerdict.OVERSIZED] == ["vol-0500"]
    assert sum(row.verdict is FilesystemVerdict.MATCH for row in rows.values()) == 999
