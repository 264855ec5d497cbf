"""The exact command lines and environment of every LVM program that is ever run: all of them read.

Not here: running them (see `process`), deciding which (see `lvm`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent.core.lvm.rows import LvRow, NameRow, VgRow
from agent.core.models import ReadMode

VGS_FIELDS: Final = VgRow.__struct_fields__
LVS_FIELDS: Final = LvRow.__struct_fields__
NAME_FIELDS: Final = NameRow.__struct_fields__

NEUTRAL_CONFIG: Final = (
    'log{prefix="" command_names=0 report_command_log=0 verbose=0} '
    'report{prefixes=0 quoted=1 compact_output=0 compact_output_cols="" columns_as_rows=0 '
    'list_item_separator="," binary_values_as_numeric=1 mark_hidden_devices=1} '
    "global{wait_for_locks=0}"
)
"""Takes back every lvm.conf setting that changes what a JSON report looks like, and never waits on a lock
(LVM's default is for ever).  A key that a release does not know costs one line on stderr, no more."""

_REPORT: Final = ("--reportformat", "json", "--units", "b", "--nosuffix", "--config", NEUTRAL_CONFIG)
"""`json`, not `json_std`: 2.03.11 and 2.03.16 know only the former."""
_LOCK_FREE: Final = ("--readonly",)
"""Read without taking file locks, and without device-mapper (so lv_active and *_percent are unknown)."""


def vgs_argv(directory: Path, vg_name: str) -> tuple[str, ...]:
    """One row per physical volume of the group, the group's own fields on each; always lock-free.

    Releasing LVM's lock file takes it exclusively for a moment (to unlink it), which makes a second reader
    that does not wait fail: one in five pairs.  So only `lvs`, which may also need device-mapper, takes the
    lock; that both saw one revision (vg_seqno) makes its protection good for both.
    """
    return (*_start(directory, "vgs", ReadMode.LOCK_FREE), "-o", ",".join(VGS_FIELDS), vg_name)


def lvs_argv(directory: Path, vg_name: str, read_mode: ReadMode) -> tuple[str, ...]:
    """One row per segment of every LV, hidden ones included."""
    return (*_start(directory, "lvs", read_mode), "-a", "-o", ",".join(LVS_FIELDS), vg_name)


def names_argv(directory: Path, *, with_foreign: bool) -> tuple[str, ...]:
    """What groups there are, lock-free; optionally also those of other hosts (system id)."""
    foreign = ("--foreign",) if with_foreign else ()
    return (*_start(directory, "vgs", ReadMode.LOCK_FREE), *foreign, "-o", ",".join(NAME_FIELDS))


def version_argv(directory: Path) -> tuple[str, ...]:
    """The release of lvm2."""
    return (str(directory / "lvm"), "version")


def build_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of an LVM program.

    Of the inherited one only LVM_SYSTEM_DIR survives, which says where LVM's configuration is; other LVM_*
    and DM_* variables would change what is read or printed.
    """
    environment = {
        "LC_ALL": "C",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LVM_SUPPRESS_FD_WARNINGS": "1",
        "LVM_SUPPRESS_SYSLOG": "1",
    }
    if "LVM_SYSTEM_DIR" in inherited:
        environment["LVM_SYSTEM_DIR"] = inherited["LVM_SYSTEM_DIR"]
    return environment


def _start(directory: Path, program: str, read_mode: ReadMode) -> tuple[str, ...]:
    lock_free = _LOCK_FREE if read_mode is ReadMode.LOCK_FREE else ()
    return (str(directory / program), *_REPORT, *lock_free)
