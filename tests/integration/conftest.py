"""The machine that the command line is tried on: strict fake LVM programs, and a file of recorded sizes."""

from pathlib import Path

import pytest
from agentprocess import HEALTHY
from fakelvm import FakeLvm


@pytest.fixture
def fake(tmp_path: Path) -> FakeLvm:
    """The bug report's machine: docker-lv 30 GiB, log-lv 8000 MiB, 517 extents free."""
    lvm = FakeLvm(tmp_path)
    lvm.serve("bug-healthy")
    return lvm


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    """A recorded-size file, `HEALTHY`."""
    path = tmp_path / "sizes.toml"
    path.write_text(HEALTHY, encoding="utf-8")
    return path
