#!/usr/bin/env python3
"""Writes the parts of README.md that repeat the program: help, configuration, a transcript of preflight.

A test fails when they are not what this writes.  Run it after a change of a flag, a key or an answer.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from bug_machine import GROUP, HEALTHY_RECORD, write_record  # noqa: E402 - they need the line above as well
from demo_replay import Moment, Replay  # noqa: E402 - as above

from agent.config.schema import list_keys  # noqa: E402 - found through the line above
from agent.config.show import to_toml  # noqa: E402

README: Final = ROOT / "README.md"


def _environment(**more: str) -> dict[str, str]:
    """Ours without what would configure the agent."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")} | more


def write_help() -> str:
    """What `agent audit --help` prints on a terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "agent", "audit", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=_environment(COLUMNS="80", NO_COLOR="1"),
    )
    return f"```text\n$ agent audit --help\n{done.stdout}```"


def write_keys() -> str:
    """One row for each key of the configuration."""
    rows = ["| key | default | value | why one would change it |", "|---|---|---|---|"]
    for key in list_keys():
        default = "none" if key.default is None else f"`{to_toml(key.default)}`"
        rows.append(f"| `{key.path}` | {default} | {key.expectation} | {key.description} |")
    return "\n".join(rows)


_QUESTIONS: Final = (("docker=40",), ("docker=40", "dockerdistribution=32"))


def write_preflight() -> str:
    """What `agent preflight` answers on the demo's healthy machine, as it was captured."""
    lines = ["```text"]
    with tempfile.TemporaryDirectory() as directory:
        machine = Replay(Path(directory), GROUP)
        machine.become(Moment.HEALTHY)
        write_record(machine.directory / "healthy.toml", HEALTHY_RECORD, whole_gib=True)
        for words in _QUESTIONS:
            shown = ("--inventory", "file:healthy.toml", *words)
            done = subprocess.run(
                [sys.executable, "-m", "agent", "preflight", *machine.agent_options, *shown],
                capture_output=True,
                text=True,
                check=False,
                cwd=directory,
                env=_environment(PYTHONPATH=str(ROOT)),
            )
            asked = " ".join(shown)
            lines += [f"$ agent preflight {asked}", f"{done.stdout}$ echo $?", str(done.returncode)]
    return "\n".join([*lines, "```"])


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "help": write_help,
    "configuration": write_keys,
    "preflight": write_preflight,
}


def fill(text: str) -> str:
    """The text with every block between its two comments written anew.

    Raises:
        ValueError: a block is not there.
    """
    for name, write in BLOCKS.items():
        block = f"<!-- {name}: begin -->\n{write()}\n<!-- {name}: end -->"
        pattern = rf"<!-- {name}: begin -->\n.*?<!-- {name}: end -->"
        found = re.findall(pattern, text, re.DOTALL)
        if len(found) != 1:
            msg = f"{len(found)} blocks are named {name}"
            raise ValueError(msg)
        text = text.replace(found[0], block)
    return text


def main() -> None:
    """Bring README.md up to date."""
    README.write_text(fill(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
