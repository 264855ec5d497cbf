"""Command lines: what is refused, what helps, who configures."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from agentprocess import agent, audit, environment, only_document
from fakelvm import FakeLvm


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["audti"], "no such command: 'audti' (did you mean 'audit'?)"),
        (["frobnicate"], "no such command: 'frobnicate' (there are: audit, baseline, config, "),
        (["audit", "--once", "--vg", "a b"], "Invalid value for '--vg': 'a b' is no LVM name"),
        (["audit", "--once", "--vg", "a", "--vg", "a"], "Invalid value for '--vg': a is named 2 times"),
        (["audit", "--once", "--vg"], "Option '--vg' requires an argument"),
        (["audit", "--once", "--inventory", "/x"], "(did you mean file:/x?)"),
        (["audit", "--once", "--inventory", "file:"], "use file:PATH"),
        (["audit", "--once", "--format", "yaml"], "'yaml' is not one of 'table', 'json'"),
        (["audit", "--once", "extra"], "unexpected extra argument"),
        (["config", "chek"], "chek"),
        (["audit", "--once", "--lvm-dir", ""], "Invalid value for '--lvm-dir': the path is empty"),
        (["audit", "--once", "--state-dir="], "Invalid value for '--state-dir': the path is empty"),
        (["config", "check", "--config", ""], "Invalid value for '--config': the path is empty"),
        (["status", "--state-dir", ""], "Invalid value for '--state-dir': the path is empty"),
        (["baseline", "-o", ""], "Invalid value for '-o' / '--output': the path is empty"),
    ],
)
def test_wrong_command_lines(args: Sequence[str], message: str) -> None:
    done = agent(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.startswith("agent: ")
    assert done.stderr.splitlines()[-1].startswith("hint: ")


def test_version() -> None:
    done = agent("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "agent 0.1.0\n"


@pytest.mark.parametrize("args", [[], ["audit"], ["baseline"], ["config", "check"], ["config", "show"]])
def test_help_teaches(args: list[str]) -> None:
    done = agent(*args, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  Examples:\n    agent " in done.stdout
    assert "\\b" not in done.stdout
    assert "  7    the recorded sizes need more extents than can be allocated\n" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_relative_path_is_relative_to_where_it_is_typed(fake: FakeLvm, sizes: Path, tmp_path: Path) -> None:
    done = agent(
        "audit", "--once", "--lvm-dir", fake.directory.name, "--inventory", f"file:{sizes.name}",
        cwd=tmp_path, env=environment(PYTHONPATH=str(Path(__file__).parent.parent.parent)),
    )  # fmt: skip
    assert done.returncode == 0


def test_an_argument_that_is_no_text_is_shown_harmlessly(fake: FakeLvm) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "agent",
            "audit",
            "--once",
            "--format",
            "json",
            "--lvm-dir",
            str(fake.directory),
            "--inventory",
            b"file:/nowhere/\xff\x1b[31m",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )
    document = only_document(done.stdout)
    assert done.returncode == 6
    assert document["findings"][0]["subject"] == r"/nowhere/\udcff\x1b[31m"


def test_a_log_goes_to_stderr_when_it_is_asked_for(fake: FakeLvm) -> None:
    done = audit(fake, "--log-level", "info", "--format", "json")
    only_document(done.stdout)
    (line,) = done.stderr.splitlines()
    event = json.loads(line)
    assert event["event"] == "audit.finished"
    assert (event["vg"], event["verdict"], event["free_extents"]) == ("cgts-vg", "clean", 517)


def test_the_environment_configures(fake: FakeLvm) -> None:
    variables = environment(AGENT_LVM_DIRECTORY=str(fake.directory), AGENT_AGENT_HOSTNAME="controller-7")
    done = agent("audit", "--once", env=variables)
    assert done.returncode == 0
    assert done.stdout.startswith("NOT COMPARED  cgts-vg on controller-7, ")


def test_what_config_show_prints_passes_config_check(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    shown = agent("config", "show", "--vg", "a", "--vg", "b")
    assert shown.returncode == 0
    path.write_text(shown.stdout, encoding="utf-8")
    done = agent("config", "check", "--config", str(path))
    assert (done.returncode, done.stdout) == (0, f"the configuration is valid ({path})\n")
    assert tomllib.loads(shown.stdout)["audit"]["volume_groups"] == ["a", "b"]
