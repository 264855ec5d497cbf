"""Host facts: from the real kernel, and from one that does not say."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.host.facts import read_boot_id, read_boot_time, read_hostname

BOOT_ID = "b525d707-ca17-449f-ac5f-5cd103fe41e2"


def test_hostname_is_the_kernels() -> None:
    assert read_hostname() == os.uname().nodename


def test_boot_time_is_what_the_kernel_says() -> None:
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    assert read_boot_time() == datetime.fromtimestamp(int(line.split()[1]), UTC)


def test_boot_time_has_whole_seconds() -> None:
    assert read_boot_time(lambda: 1796112067.25) == datetime(2026, 12, 1, 8, 1, 7, tzinfo=UTC)


@pytest.mark.parametrize("error", [OSError("no /proc"), RuntimeError("line 'btime' not found in /proc/stat")])
def test_boot_time_is_unknown_without_proc(error: Exception) -> None:
    def fail() -> float:
        raise error

    assert read_boot_time(fail) is None


def test_boot_id_is_read(tmp_path: Path) -> None:
    path = tmp_path / "boot_id"
    path.write_text(BOOT_ID + "\n")
    assert read_boot_id(path) == BOOT_ID
    assert read_boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("content", [b"", b"not an id\n", b"\xff\xfe"])
def test_boot_id_is_unknown_when_it_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "boot_id"
    path.write_bytes(content)
    assert read_boot_id(path) is None
    assert read_boot_id(tmp_path / "absent") is None
