"""Each exit status of the command line, reached by a process on strict fake LVM programs."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agentprocess import HEALTHY, agent, audit, environment, only_document
from fakelvm import HANG, FakeLvm, Reply


def test_0_clean(fake: FakeLvm, sizes: Path) -> None:
    done = audit(fake, "--inventory", f"file:{sizes}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("CLEAN  cgts-vg on ")
    assert fake.counts() == {"vgs.named": 1, "lvs.locked": 1, "lvm.version": 1}


def test_1_a_bug_keeps_its_traceback() -> None:
    """Parts that fail as no part should: the same `run`, in a process of its own."""
    script = """
import sys
from agent.cli.main import run
from agent.cli.wiring import Wiring

class Broken(Wiring):
    def open_auditor(self, settings):
        raise ZeroDivisionError("part of a test")

sys.exit(run(["audit", "--once", *sys.argv[1:]], Broken()))
"""
    for flags in ((), ("--format", "json")):
        done = subprocess.run(
            [sys.executable, "-c", script, *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=environment(),
        )
        assert done.returncode == 1
        assert "ZeroDivisionError: part of a test" in done.stderr
        assert "agent: this is a bug, please report it with the lines above\n" in done.stderr
    document = only_document(done.stdout)
    assert document["verdict"] == "unknown"
    assert "ZeroDivisionError" in document["findings"][0]["message"]


def test_2_without_once_there_is_no_audit(fake: FakeLvm) -> None:
    done = agent("audit", "--lvm-dir", str(fake.directory))
    assert (done.returncode, done.stdout) == (2, "")
    assert "`agent run`" in done.stderr
    assert fake.counts() == {}


def test_3_drift(fake: FakeLvm, sizes: Path) -> None:
    sizes.write_text(HEALTHY.replace("size = 30", "size = 31"), encoding="utf-8")
    done = audit(fake, "--inventory", f"file:{sizes}")
    assert done.returncode == 3
    assert done.stdout.startswith("DRIFT  cgts-vg on ")
    assert " -1     -32 undersized\n" in done.stdout


def test_4_all_mistakes_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(
        "[audit]\nvolume_groups = []\n[lvm]\ntimeout_seconds = 0\ndirectroy = 1\n[log]\nlevel = 1\n[x]\n",
        encoding="utf-8",
    )
    for command in (("audit", "--once"), ("baseline",), ("config", "check"), ("config", "show")):
        done = agent(*command, "--config", str(path))
        assert (done.returncode, done.stdout) == (4, "")
        first, *rest = done.stderr.splitlines()
        assert first == f"agent: {path} can't be used"
        assert len([line for line in rest if line.startswith("  - ")]) == 5
        assert rest[-1] == "hint: correct them and run `agent config check`"


def test_5_lvm_could_not_be_read(tmp_path: Path, sizes: Path) -> None:
    done = agent("audit", "--once", "--lvm-dir", str(tmp_path / "nowhere"), "--inventory", f"file:{sizes}")
    assert done.returncode == 5
    assert done.stdout.startswith("UNKNOWN  cgts-vg on ")
    assert "docker     docker-lv       30      ?    ?       ? unknown" in done.stdout
    assert f"critical {tmp_path}/nowhere/vgs: " in done.stdout


def test_6_recorded_sizes_unavailable(fake: FakeLvm, tmp_path: Path) -> None:
    done = audit(fake, "--inventory", f"file:{tmp_path}/absent.toml")
    assert done.returncode == 6
    assert done.stdout.startswith("UNKNOWN  cgts-vg on ")
    assert "docker-lv                    ?     30     960\n" in done.stdout
    assert f"critical {tmp_path}/absent.toml: can't be read: No such file or directory\n" in done.stdout


def test_7_does_not_fit(fake: FakeLvm, sizes: Path) -> None:
    sizes.write_text(HEALTHY.replace("size = 30", "size = 60"), encoding="utf-8")
    done = audit(fake, "--inventory", f"file:{sizes}")
    assert done.returncode == 7
    assert (
        "the recorded sizes do not fit: docker-lv would fail: 960 extents needed, 511 available; 449 short\n"
        in done.stdout
    )


@pytest.mark.parametrize("output_format", ["table", "json"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_130_interrupted(tmp_path: Path, number: signal.Signals, output_format: str) -> None:
    """The LVM programs, which have sessions of their own, are ended as well."""
    fake = FakeLvm(tmp_path)
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    for key in ("vgs.named", "lvs.locked"):
        fake.reply(key, Reply(script=f"echo $$ > {pids}; {HANG}"))
    # Opened for both directions, neither side waits for the other.
    with (
        os.fdopen(os.open(pids, os.O_RDWR), "rb", buffering=0) as fifo,
        subprocess.Popen(
            [
                *(sys.executable, "-m", "agent", "audit", "--once", "--lvm-dir", str(fake.directory)),
                *("--format", output_format),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        assert select.select([fifo], [], [], 60)[0], "the fake was never called"
        child = int(fifo.readline())
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr.strip()) == (130, "agent: interrupted")
    if output_format == "table":
        assert stdout == ""
    else:
        assert [finding["kind"] for finding in only_document(stdout)["findings"]] == ["interrupted"]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
