"""Where the output goes: pipes, full disks, closed descriptors, terminals."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from agentprocess import environment
from fakelvm import FakeLvm

import agent


@pytest.mark.parametrize(
    "args",
    [["audit", "--once"], ["baseline"], ["config", "show"], ["--version"], ["--help"], ["audit", "-h"]],
)
def test_the_reader_of_a_pipe_may_leave(fake: FakeLvm, args: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "agent", *args],
        stdout=write_end,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
        env=environment(AGENT_LVM_DIRECTORY=str(fake.directory)),
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("args", [["audit", "--once"], ["config", "show"], ["--version"], ["--help"]])
def test_a_full_disk_is_told(fake: FakeLvm, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env=environment(AGENT_LVM_DIRECTORY=str(fake.directory)),
        )
    assert done.returncode == 1
    assert done.stderr == "agent: the result could not be written to stdout: No space left on device\n"


def test_a_closed_stdout_is_told_and_nothing_is_mistaken_for_it(fake: FakeLvm) -> None:
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'exec "$0" -m agent audit --once --lvm-dir "$1" >&-',
            sys.executable,
            str(fake.directory),
        ],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )
    assert done.returncode == 1
    assert done.stderr == "agent: stdout is closed: there is nowhere to write the result\n"


def test_a_closed_stdin_and_stderr_do_not_matter(fake: FakeLvm) -> None:
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'exec "$0" -m agent audit --once --lvm-dir "$1" <&- 2>&-',
            sys.executable,
            str(fake.directory),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        env=environment(),
    )
    assert done.returncode == 0
    assert done.stdout.startswith("NOT COMPARED  cgts-vg on ")


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_colour_unless_it_is_not_wanted(fake: FakeLvm, *, no_color: bool) -> None:
    leader, follower = pty.openpty()
    variables = environment(TERM="xterm-256color", COLUMNS="80", **({"NO_COLOR": "1"} if no_color else {}))
    with subprocess.Popen(
        [sys.executable, "-m", "agent", "audit", "--once", "--lvm-dir", str(fake.directory)],
        stdout=follower,
        env=variables,
    ) as process:
        os.close(follower)
        text = _read_to_the_end(leader)
    assert process.returncode == 0
    assert ("\x1b[1;36mNOT COMPARED" in text) is not no_color
    assert "docker-lv" in text


def _read_to_the_end(leader: int) -> str:
    data = b""
    try:
        while chunk := os.read(leader, 65536):
            data += chunk
    except OSError:  # EIO: Linux's way to say that the other side has closed
        pass
    os.close(leader)
    return data.decode("utf-8")


def test_an_interrupt_while_starting_is_no_bug(tmp_path: Path) -> None:
    """The signal comes while modules are imported: a `click` of ours sends it."""
    (tmp_path / "click.py").write_text("import signal, os\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-c", "from agent.__main__ import main; main()", "audit", "--once"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), str(Path(agent.__file__).parent.parent)])),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
