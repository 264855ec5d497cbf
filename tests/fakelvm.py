"""Strict fake `vgs`, `lvs` and `lvm` programs in a directory for `--lvm-dir`.

Each is a shell script that fails with status 97 unless it is called with exactly one of the command lines
written out below, notes how it was called, and then does the next thing it was told to do.  The command
lines are written by hand on purpose: they are a part of the agent's contract with LVM.
"""

import shlex
from pathlib import Path

import msgspec

DATA = Path(__file__).parent / "data" / "lvm"
UNEXPECTED = 97

CONFIG = (
    'log{prefix="" command_names=0 report_command_log=0 verbose=0} report{prefixes=0 quoted=1 compact_output=0'
    ' compact_output_cols="" columns_as_rows=0 list_item_separator="," binary_values_as_numeric=1'
    " mark_hidden_devices=1} global{wait_for_locks=0}"
)
REPORT = ("--reportformat", "json", "--units", "b", "--nosuffix", "--config", CONFIG)
VG_FIELDS = (
    "vg_name,vg_uuid,vg_seqno,vg_attr,vg_size,vg_extent_size,vg_extent_count,vg_free_count,pv_count,"
    "vg_missing_pv_count,lv_count,vg_exported,pv_name,pv_uuid,pv_missing,pv_allocatable,pv_pe_count,"
    "pv_pe_alloc_count"
)
LV_FIELDS = (
    "vg_name,vg_uuid,vg_seqno,lv_uuid,lv_name,lv_size,lv_role,lv_layout,lv_attr,lv_parent,origin,pool_lv,"
    "lv_health_status,lv_active,data_percent,metadata_percent,sync_percent,segtype,stripes,data_stripes,"
    "data_copies,seg_start_pe,seg_size_pe,seg_pe_ranges"
)
NAME_FIELDS = "vg_name,vg_uuid,vg_exported,vg_systemid"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a fake does when it is called."""

    report: bytes = b""
    """Printed on the descriptor named by LVM_REPORT_FD."""
    messages: str = ""
    """Printed on stderr."""
    status: int = 0
    script: str = ""
    """Shell commands run after printing; `$REPORT` is the report's descriptor as a path."""


HANG = "exec sleep 600"
HANG_IGNORING_TERM = "trap '' TERM; exec sleep 600"
KILL_ITSELF = "kill -KILL $$"
FLOOD_REPORT = "yes '{' | head -c 50000000 > $REPORT"
FLOOD_MESSAGES = "yes warning | head -c 50000000 >&2"

_SCRIPT = """#!/bin/sh
home={home}
REPORT=/dev/fd/$LVM_REPORT_FD
args=$(printf '%s\\n' "$@")
for expected in {home}/expected/{program}.*; do
  [ "$args" = "$(cat "$expected")" ] && key=${{expected##*/}}
done
if [ -z "$key" ]; then
  echo "unexpected command line: {program} $*" >&2
  exit {unexpected}
fi
echo x >> "$home/count.$key"
number=$(wc -l < "$home/count.$key")
tr '\\0' '\\n' < /proc/$$/environ > "$home/environment.$key"
while [ ! -e "$home/reply.$key.$number" ] && [ "$number" -gt 0 ]; do number=$((number - 1)); done
. "$home/reply.$key.$number"
"""


class FakeLvm:
    """A directory with the three fakes.

    Keys of calls: `vgs.named`, `lvs.locked`, `lvs.lock_free`, `vgs.all` and `vgs.all_foreign` (a look at every group),
    `lvm.version`.
    """

    def __init__(self, directory: Path, vg_name: str = "cgts-vg") -> None:
        self.directory = directory / "sbin"
        self._home = directory / "fake"
        self.directory.mkdir(parents=True)
        (self._home / "expected").mkdir(parents=True)
        expected = {
            "vgs.named": (*REPORT, "--readonly", "-o", VG_FIELDS, vg_name),
            "lvs.locked": (*REPORT, "-a", "-o", LV_FIELDS, vg_name),
            "lvs.lock_free": (*REPORT, "--readonly", "-a", "-o", LV_FIELDS, vg_name),
            "vgs.all": (*REPORT, "--readonly", "-o", NAME_FIELDS),
            "vgs.all_foreign": (*REPORT, "--readonly", "--foreign", "-o", NAME_FIELDS),
            "lvm.version": ("version",),
        }
        for key, arguments in expected.items():
            (self._home / "expected" / key).write_text("\n".join(arguments) + "\n")
            self.reply(key, Reply(messages=f"no reply for {key}\n", status=UNEXPECTED))
        for program in ("vgs", "lvs", "lvm"):
            path = self.directory / program
            path.write_text(
                _SCRIPT.format(home=shlex.quote(str(self._home)), program=program, unexpected=UNEXPECTED)
            )
            path.chmod(0o755)
        self.reply("lvm.version", Reply(messages="  LVM version:     2.03.16(2) (2022-05-18)\n"))

    def reply(self, key: str, *replies: Reply) -> None:
        """Answer calls of that kind so from now on; the last reply also answers all calls after it."""
        done = self.count(key)
        for path in self._home.glob(f"reply.{key}.*"):
            if int(path.suffix[1:]) > done + len(replies):
                path.unlink()
        for number, reply in enumerate(replies, done + 1):
            files = self._home / f"files.{key}.{number}"
            files.mkdir(exist_ok=True)
            (files / "report").write_bytes(reply.report)
            (files / "messages").write_text(reply.messages)
            quoted = shlex.quote(str(files))
            lines = [f"cat {quoted}/messages >&2"]
            if reply.report:
                lines.append(f"cat {quoted}/report > $REPORT")
            (self._home / f"reply.{key}.{number}").write_text(
                "\n".join([*lines, reply.script, f"exit {reply.status}", ""])
            )

    def serve(self, case: str) -> None:
        """Answer with one of the captured cases."""
        self.reply("vgs.named", Reply(report=(DATA / case / "vgs.json").read_bytes()))
        for key in ("lvs.locked", "lvs.lock_free"):
            self.reply(key, Reply(report=(DATA / case / "lvs.json").read_bytes()))

    def count(self, key: str) -> int:
        """How often it was called so."""
        path = self._home / f"count.{key}"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def counts(self) -> dict[str, int]:
        """How often each was called, those never called left out."""
        keys = sorted(path.name for path in (self._home / "expected").iterdir())
        return {key: self.count(key) for key in keys if self.count(key)}

    def environment(self, key: str) -> dict[str, str]:
        """The environment of the last such call."""
        lines = (self._home / f"environment.{key}").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)
