"""The manual pages: true to the program, and clean for man(1)."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from write_man import PAGE, write_page

from agent.cli.main import agent
from agent.core.errors import ExitCode

MAN = Path(__file__).parent.parent.parent / "docs" / "man"
PAGES = sorted(MAN.glob("*.[58]"))


def test_the_configuration_page_has_every_key() -> None:
    assert PAGE.read_text(encoding="utf-8") == write_page(), "run scripts/write_man.py"


def test_the_command_page_has_every_command_and_exit_status() -> None:
    page = (MAN / "agent.8").read_text(encoding="utf-8").replace("\\-", "-")
    for command in agent.list_commands(click.Context(agent)):
        assert re.search(rf"^\.B (agent )?{command}\b", page, re.MULTILINE), command
    statuses = {int(line.split("|")[0]) for line in page.splitlines() if re.match(r"\d+\|", line)}
    assert statuses == set(ExitCode)


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_has_nothing_to_say_about_the_page(page: Path) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"},
    )
    assert (done.returncode, done.stderr) == (0, "")
