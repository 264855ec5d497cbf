"""Running the agent and LVM's own commands on a scratch LVM, for the tests in `tests/lvm`."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from loop_disks import Completed
from scratch_lvm import MIB, ScratchLvm

from agent.core.models import VolumeGroup
from agent.core.report import AuditDocument, AuditsDocument, FilesystemSection
from agent.host.lvm import LvmReader
from agent.host.process import Runner

ROOT = Path(__file__).parent.parent
METADATA = ROOT / "tests" / "data" / "vgcfg"
EXTENT = 4 * MIB
"""The extent size of all scratch volume groups but the bug machine's, in bytes."""

_LVEXTEND = re.compile(r"Insufficient free space: (\d+) extents needed, but only (\d+) available")
_LVCREATE = re.compile(r"has insufficient free space \((\d+) extents\): (\d+) required")


def run_agent(lvm: ScratchLvm, *words: str) -> Completed:
    """Run the agent as a process of its own, as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "agent", *words],
        cwd=ROOT,
        env=lvm.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def audit(lvm: ScratchLvm, group: str, record: Path | None = None) -> tuple[int, AuditDocument]:
    """Audit one volume group and return exit status and document."""
    completed = run_audit(lvm, record, group)
    return completed.returncode, msgspec.json.decode(completed.stdout, type=AuditDocument)


def audit_several(lvm: ScratchLvm, record: Path | None, *groups: str) -> tuple[int, AuditsDocument]:
    """Audit several volume groups in one run."""
    completed = run_audit(lvm, record, *groups)
    return completed.returncode, msgspec.json.decode(completed.stdout, type=AuditsDocument)


def run_audit(lvm: ScratchLvm, record: Path | None, *groups: str) -> Completed:
    """Run ``agent audit --once --format json``; it must print its document and no traceback."""
    words = ["audit", "--once", "--format", "json", "--lvm-dir", "/usr/sbin"]
    words += ["--inventory", "none" if record is None else f"file:{record}"]
    for group in groups:
        words += ["--vg", group]
    completed = run_agent(lvm, *words)
    assert "Traceback" not in completed.stderr, completed.stderr
    return completed


def read_group(lvm: ScratchLvm, group: str) -> VolumeGroup:
    """Read a volume group with the real reader, in this process."""
    environment = {"LVM_SYSTEM_DIR": str(lvm.system_directory)}
    with Runner() as runner:
        reader = LvmReader(runner, Path("/usr/sbin"), 60.0, environment=environment)
        return reader.read(group).volume_group


def write_rows(path: Path, rows: Mapping[str, str]) -> Path:
    """Write a recorded-size file: LV name to size, exact, in this order."""
    lines = []
    for lv_name, size in rows.items():
        name = lv_name.removesuffix("-lv")
        lines += ["[[filesystem]]", f'name = "{name}"', f'logical_volume = "{lv_name}"', f'size = "{size}"']
    path.write_text("\n".join(["whole_gib = false", *lines, ""]))
    return path


def rows_of(document: AuditDocument) -> dict[str, FilesystemSection]:
    """The document's filesystems by name."""
    assert document.filesystems is not None
    return {row.name: row for row in document.filesystems}


def kinds_of(document: AuditDocument) -> set[str]:
    """What kinds of findings the document has."""
    return {finding.kind for finding in document.findings}


def refusal(completed: Completed) -> tuple[int, int]:
    """The numbers of LVM's own message when there is no room: extents needed, extents available."""
    assert completed.returncode == 5, completed
    if match := _LVEXTEND.search(completed.stderr):
        return int(match[1]), int(match[2])
    match = _LVCREATE.search(completed.stderr)
    assert match is not None, completed.stderr
    return int(match[2]), int(match[1])
