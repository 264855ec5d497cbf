"""The scratch LVM itself: it sees nothing of the host, and leaves nothing behind however it ends."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loop_disks import LabError, leftovers
from lvm_lab import EXTENT, ROOT
from scratch_lvm import MIB, ScratchLvm

pytestmark = pytest.mark.lvm

HOLDER = """
import sys
from scratch_lvm import MIB, ScratchLvm
with ScratchLvm() as lvm:
    lvm.create_group("held-vg", lvm.add_disk(64 * MIB), lvm.add_disk(64 * MIB))
    print(lvm.root, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that holds a scratch LVM until it is ended; with the directory it is in."""
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(
        command, cwd=ROOT / "scripts", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        try:
            yield holder, Path(holder.stdout.readline().strip())
        finally:
            holder.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_everything_down(number: signal.Signals) -> None:
    with holding() as (holder, root):
        assert len(leftovers(holder.pid)) == 2
        holder.send_signal(number)
        assert holder.wait(60) != 0
        assert leftovers(holder.pid) == []
        assert not root.exists()


def test_even_sigkill_leaves_no_loop_device() -> None:
    with holding() as (holder, root):
        assert len(leftovers(holder.pid)) == 2
        holder.kill()
        holder.wait(60)
        assert leftovers(holder.pid) == []
        for file in sorted(root.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        root.rmdir()


def test_two_scratch_lvms_do_not_see_each_other(lvm: ScratchLvm, own_lvm: ScratchLvm) -> None:
    lvm.create_group("same-vg", lvm.add_disk(64 * MIB))
    own_lvm.create_group("same-vg", own_lvm.add_disk(64 * MIB))
    for each in (lvm, own_lvm):
        assert each.check("vgs", "--noheadings", "-o", "vg_name").stdout.split() == ["same-vg"]


def test_command_that_must_succeed_says_why_it_did_not(own_lvm: ScratchLvm) -> None:
    own_lvm.create_group("data-vg", own_lvm.add_disk(64 * MIB))
    with pytest.raises(
        LabError, match=re.compile("lvcreate .* ended with 5: .*insufficient free space", re.DOTALL)
    ):
        own_lvm.create_volume("data-vg", "x-lv", 1000 * EXTENT)


def test_removed_volume_gives_its_extents_back(own_lvm: ScratchLvm) -> None:
    own_lvm.create_group("data-vg", own_lvm.add_disk(65 * MIB))
    own_lvm.create_volume("data-vg", "x-lv", 4 * EXTENT)
    own_lvm.remove("data-vg", "x-lv")
    assert own_lvm.check("vgs", "--noheadings", "-o", "vg_free_count").stdout.split() == ["16"]
