"""`agent baseline` as a process: what is written, and what is never replaced."""

import os
import select
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from agentprocess import agent, audit, environment, only_document
from fakelvm import HANG, FakeLvm, Reply


def test_an_audit_against_a_fresh_baseline_is_clean(fake: FakeLvm, tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    done = agent("baseline", "--lvm-dir", str(fake.directory), "-o", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert path.stat().st_mode & 0o777 == 0o644
    done = audit(fake, "--inventory", f"file:{path}", "--format", "json")
    document = only_document(done.stdout)
    assert done.returncode == 0
    assert {row["verdict"] for row in document["filesystems"]} == {"match"}
    assert document["unrecorded"] == []
    assert sorted(item.name for item in tmp_path.iterdir()) == ["fake", "new.toml", "sbin"]


def test_a_baseline_on_stdout(fake: FakeLvm) -> None:
    for args in ([], ["-o", "-"]):
        done = agent("baseline", "--lvm-dir", str(fake.directory), *args)
        assert (done.returncode, done.stderr) == (0, "")
        rows = tomllib.loads(done.stdout)["filesystem"]
        sizes = {row["name"]: row["size"] for row in rows}
        assert len(sizes) == 12
        assert sizes["log"] == "8000MiB"
        assert {row["volume_group"] for row in rows} == {"cgts-vg"}


def test_a_baseline_replaces_nothing_without_force(fake: FakeLvm, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("precious", encoding="utf-8")
    command = ["baseline", "--lvm-dir", str(fake.directory), "-o", str(path)]
    done = agent(*command)
    assert done.returncode == 2
    assert f"{path} exists and is not replaced without --force" in done.stderr
    assert path.read_text(encoding="utf-8") == "precious"
    assert fake.counts() == {}
    assert agent(*command, "--force").returncode == 0
    assert "docker-lv" in path.read_text(encoding="utf-8")


def test_a_baseline_that_can_not_be_written(fake: FakeLvm, tmp_path: Path) -> None:
    done = agent("baseline", "--lvm-dir", str(fake.directory), "-o", str(tmp_path / "no" / "x.toml"))
    assert done.returncode == 2
    assert "can't be written: No such file or directory" in done.stderr


def test_a_baseline_of_what_can_not_be_read_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    done = agent("baseline", "--lvm-dir", str(tmp_path), "-o", str(path))
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(f"agent: {tmp_path}/vgs: ")
    assert not path.exists()


@pytest.mark.parametrize("flags", [[], ["--force"]])
def test_a_baseline_takes_the_place_of_nothing_but_a_file(
    fake: FakeLvm, tmp_path: Path, flags: list[str]
) -> None:
    """A rename would put a file in the place of /dev/null as well."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        done = agent("baseline", "--lvm-dir", str(fake.directory), "-o", str(path), *flags)
        assert done.returncode == 2
        assert f"{path} is no regular file; without -o the sizes go to stdout" in done.stderr
        assert path.is_fifo()
    assert fake.counts() == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_baseline_is_no_failure_of_lvm(tmp_path: Path, number: signal.Signals) -> None:
    fake = FakeLvm(tmp_path)
    started, path = tmp_path / "started", tmp_path / "new.toml"
    os.mkfifo(started)
    for key in ("vgs.named", "lvs.locked"):
        fake.reply(key, Reply(script=f"echo x > {started}; {HANG}"))
    # Opened for both directions, neither side waits for the other.
    with (
        os.fdopen(os.open(started, os.O_RDWR), "rb", buffering=0) as fifo,
        subprocess.Popen(
            [sys.executable, "-m", "agent", "baseline", "--lvm-dir", str(fake.directory), "-o", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        assert select.select([fifo], [], [], 60)[0], "the fake was never called"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "agent: interrupted")
    assert not path.exists()
