"""The demo's machine where no LVM is to be had: programs that print what real LVM once printed.

They are strict: another volume group, another format or a field that was never captured fails as it would
with LVM.  Not here: the story (see `demo_steps`).
"""

import json
import os
import shlex
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scratch_lvm import ScratchLvm

from agent.core.models import ReadMode
from agent.host.argv import build_environment, lvs_argv, version_argv, vgs_argv

if TYPE_CHECKING:
    from collections.abc import Mapping

# A shell in between: a #! line can name no interpreter with a space in its path.
_PROGRAM = """\
#!/bin/sh
exec {python} -I {script} {program} "$@"
"""
_SCRIPT = """\
import json, os, pathlib, sys
program, *words = sys.argv[1:]
data = pathlib.Path({data!r})
if program == "lvm" and words == ["version"]:
    print((data / "version.txt").read_text(), end="")
    sys.exit()
if words[:2] != ["--reportformat", "json"] or words[-1] != {group!r}:
    sys.exit(3)
fields = words[words.index("-o") + 1].split(",")
document = json.loads((data / (program + ".json")).read_text())
rows = document["report"][0][program.replace("s", "")]
try:
    rows[:] = [{{field: row[field] for field in fields}} for row in rows]
except KeyError as missing:
    print(f"replay: {{missing}} was never captured; run scripts/demo --capture as root", file=sys.stderr)
    sys.exit(5)
with open(int(os.environ.get("LVM_REPORT_FD", "1")), "w") as report:
    json.dump(document, report)
"""


class Moment(StrEnum):
    """A moment in the life of the machine; also the name of its captured output."""

    HEALTHY = "healthy"
    BEFORE_UPGRADE = "before-upgrade"
    AFTER_REINSTALL = "after-reinstall"


class Replay:
    """The bug report's machine as it was captured."""

    DATA: ClassVar[Path] = Path(__file__).parent / "demo-data"

    def __init__(self, directory: Path, group: str) -> None:
        self.directory = directory
        self.environment: Mapping[str, str] = os.environ
        self.agent_options: tuple[str, ...] = ("--lvm-dir", "replay")
        self._group = group
        self._moment = Moment.HEALTHY
        (directory / "replay").mkdir()

    def become(self, moment: Moment) -> None:
        """Go on to that moment: from now on the programs print what was captured then."""
        self._moment = moment
        script = self.directory / "replay" / "replay.py"
        script.write_text(_SCRIPT.format(data=str(self.DATA / moment), group=self._group))
        python, quoted = shlex.quote(sys.executable), shlex.quote(str(script))
        for program in ("vgs", "lvs", "lvm"):
            file = self.directory / "replay" / program
            file.write_text(_PROGRAM.format(python=python, script=quoted, program=program))
            file.chmod(0o755)

    def extend(self, lv_name: str, gib: int) -> tuple[int, str]:
        """Say what lvextend said then; nothing is extended."""
        captured = json.loads((self.DATA / self._moment / "lvextend.json").read_text())
        if (captured["logical_volume"], captured["gib"]) != (lv_name, gib):
            raise LookupError(f"lvextend of {lv_name} to {gib} GiB was never captured")
        return int(captured["status"]), str(captured["message"])


def capture(lvm: ScratchLvm, group: str, moment: Moment) -> None:
    """Keep what the programs that an audit runs print about the machine now."""
    directory = Replay.DATA / moment
    directory.mkdir(parents=True, exist_ok=True)
    sbin = Path("/usr/sbin")
    for name, argv in (
        ("vgs.json", vgs_argv(sbin, group)),
        ("lvs.json", lvs_argv(sbin, group, ReadMode.LOCKED)),
        ("version.txt", version_argv(sbin)),
    ):
        done = subprocess.run(
            argv, env=build_environment(lvm.environment), capture_output=True, text=True, check=True
        )
        (directory / name).write_text(done.stdout)


def capture_extend(moment: Moment, lv_name: str, gib: int, ending: tuple[int, str]) -> None:
    """Keep how an lvextend ended."""
    captured = {"logical_volume": lv_name, "gib": gib, "status": ending[0], "message": ending[1]}
    (Replay.DATA / moment / "lvextend.json").write_text(json.dumps(captured, indent=1) + "\n")
