"""The README tells the truth about flags, keys and exit statuses."""

import re
from pathlib import Path

import write_readme

from agent.cli.options import EXIT_STATUSES
from agent.core.errors import ExitCode

README = write_readme.README.read_text(encoding="utf-8")


def test_help_and_configuration_are_those_of_the_program() -> None:
    assert write_readme.fill(README) == README, "run scripts/write_readme.py"


def test_every_exit_status_is_in_the_table() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert {code.value for code in ExitCode} <= listed


def test_every_exit_status_in_the_help_is_one_of_ours() -> None:
    listed = {int(number) for number in re.findall(r"^  (\d+) ", EXIT_STATUSES, re.MULTILINE)}
    assert listed <= {code.value for code in ExitCode}


def test_files_it_names_exist() -> None:
    root = Path(write_readme.ROOT)
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", README):
        assert (root / target).exists(), target
    for script in set(re.findall(r"scripts/[a-z_.]+", README)):
        assert (root / script).exists(), script
