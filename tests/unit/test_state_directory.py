"""The state directory: readable for `agent status` whoever makes it, and named errors."""

import os
from pathlib import Path

import pytest

from agent.cli.wiring_status import put_back
from agent.core.delivery.errors import OutboxError
from agent.state.directory import make_state_directory


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_everybody_may_look_into_it_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    directory = tmp_path / "state"
    before = os.umask(umask)
    try:
        make_state_directory(directory)
    finally:
        os.umask(before)
    assert directory.stat().st_mode & 0o777 == 0o755


def test_mode_of_a_directory_that_was_there_is_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    make_state_directory(directory)
    assert directory.stat().st_mode & 0o777 == 0o700


def test_directory_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutboxError, match="file/state"):
        make_state_directory(tmp_path / "file" / "state")


def test_reports_in_a_place_that_can_not_be_looked_at_are_not_called_nothing(tmp_path: Path) -> None:
    # Like a directory of somebody else's that only root may enter, but true for root as well.
    with pytest.raises(OutboxError, match="File name too long"):
        put_back(tmp_path / ("x" * 300))
