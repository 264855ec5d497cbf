"""The README tells the truth about flags, keys and exit statuses."""

import re
from pathlib import Path

import pytest
import write_readme
from finding_kinds import VERDICT_KINDS, find_error_kinds, find_kinds

from agent.cli.options import EXIT_STATUSES
from agent.config.load import load
from agent.core.errors import ExitCode
from agent.inventory.file import FileInventory

README = write_readme.README.read_text(encoding="utf-8")
TOML_BLOCKS = re.findall(r"^```toml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def kinds_between(start: str, end: str) -> list[str]:
    """The kinds listed in the tables between two headings."""
    section = README.split(f"\n{start}\n", 1)[1].split(f"\n{end}\n", 1)[0]
    return re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)


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
    for script in set(re.findall(r"scripts/[a-z_-]+(?:\.[a-z]+)?", README)):
        assert (root / script).exists(), script


def test_every_finding_has_a_row_that_says_what_to_do() -> None:
    listed = kinds_between("## Findings", "### Reasons of `agent preflight`")
    assert sorted(listed) == sorted(find_kinds("Finding") | find_error_kinds())


def test_every_reason_has_a_row_that_says_what_to_do() -> None:
    """Drift's kinds are handed on from findings, errors' stand in the tables of findings."""
    listed = kinds_between("### Reasons of `agent preflight`", "### Without a kind")
    assert sorted(listed) == sorted(find_kinds("Reason") | VERDICT_KINDS)


def test_the_kinds_of_each_sort_are_found() -> None:
    """One made as such, one by a helper, one of two, one of a verdict; errors with and without bases."""
    assert {"does_not_fit", "crypt_not_grown", "platform_size_stale", "filesystem_missing"} <= find_kinds(
        "Finding"
    )
    assert {"lock_held", "shrink", "extents_short", "extents_misplaced"} <= find_kinds("Reason")
    assert {"agent_error", "vg_absent", "outbox_newer", "host_unknown"} <= find_error_kinds()


def test_there_are_examples_of_both_files() -> None:
    assert {"[[filesystem]]" in block for block in TOML_BLOCKS} == {True, False}


@pytest.mark.parametrize("block", TOML_BLOCKS)
def test_examples_of_files_are_accepted(block: str, tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(block, encoding="utf-8")
    if "[[filesystem]]" in block:
        assert FileInventory(str(file), default_volume_group="cgts-vg").fetch().filesystems
    else:
        assert load(path=str(file), environment={}, flags={}).path == str(file)
