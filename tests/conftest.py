"""What all tests share: the tier on real LVM, and guards that no test leaves anything behind."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

# The scratch LVM is a script of its own, not a part of the package.
sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from loop_disks import leftovers
from scratch_lvm import ScratchLvm, can_run

_THREAD_END_SECONDS = 10.0
_NO_LVM = pytest.StashKey[str | None]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_NO_LVM] = can_run()


def pytest_report_header(config: pytest.Config) -> str:
    reason = config.stash[_NO_LVM]
    return f"real LVM: {'yes, in a scratch LVM' if reason is None else f'skipped, {reason}'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reason = config.stash[_NO_LVM]
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("lvm"):
            item.add_marker(pytest.mark.skip(reason=f"no real LVM here: {reason}"))


@pytest.fixture(scope="module")
def lvm() -> Iterator[ScratchLvm]:
    """A private LVM without any disk yet, shared by the tests of one module."""
    with ScratchLvm() as scratch:
        yield scratch


@pytest.fixture
def own_lvm() -> Iterator[ScratchLvm]:
    """A private LVM for one test alone."""
    with ScratchLvm() as scratch:
        yield scratch


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail the test that leaves a thread or a child process behind."""
    threads = set(threading.enumerate())
    children = _children()
    yield
    for thread in set(threading.enumerate()) - threads:
        # A thread that was told to end may need a moment; one that was not, stays.
        thread.join(_THREAD_END_SECONDS)
        assert not thread.is_alive(), f"left a thread behind: {thread}"
    left = _children() - children
    assert not left, f"left processes behind: {left}"


@pytest.fixture(autouse=True, scope="session")
def no_loop_device_left() -> Iterator[None]:
    """Fail the run that leaves a loop device behind."""
    yield
    assert leftovers() == []


def _children() -> frozenset[psutil.Process]:
    """List child processes, unreaped ones included."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the cheap and usual answer: there are none
        return frozenset()
    return frozenset(psutil.Process().children())
