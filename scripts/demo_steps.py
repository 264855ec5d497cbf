"""What `scripts/demo` shows, step by step, on real LVM or replayed from captured output.

``--replay`` replays even where real LVM is to be had; ``--capture`` makes the captured output anew.
Not here: installing (see `demo`), the machine (see `bug_machine`), its captured output (see `demo_replay`).
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bug_machine import GROUP, GROWN_RECORD, HEALTHY_RECORD, build_bug_machine, write_record
from demo_replay import Moment, Replay, capture, capture_extend
from loop_disks import LabError
from scratch_lvm import GIB, ScratchLvm, can_run


class Machine(Protocol):
    """The bug report's machine: the real one, or what was captured from it."""

    directory: Path
    environment: Mapping[str, str]
    agent_options: tuple[str, ...]
    """Further words for the agent that this machine needs."""

    def become(self, moment: Moment) -> None:
        """Go on to that moment of its life."""

    def extend(self, lv_name: str, gib: int) -> tuple[int, str]:
        """Run lvextend; its exit status and what it said."""


class RealMachine:
    """The machine in a scratch LVM."""

    agent_options: tuple[str, ...] = ()

    def __init__(self, lvm: ScratchLvm, *, is_captured: bool) -> None:
        self._lvm = lvm
        self._is_captured = is_captured
        self._moment = Moment.HEALTHY
        self.directory = lvm.root
        self.environment = lvm.environment

    def become(self, moment: Moment) -> None:
        """Go on to that moment: LVs are made and grown by LVM's own commands."""
        match moment:
            case Moment.HEALTHY:
                build_bug_machine(self._lvm)
            case Moment.BEFORE_UPGRADE:
                self._lvm.check("lvextend", "-L", "32g", f"{GROUP}/dockerdistribution-lv")
            case Moment.AFTER_REINSTALL:
                # A reinstall makes everything anew, in an order that gives backup what is left.
                self._lvm.remove(GROUP, "backup-lv")
                self._lvm.check("lvextend", "-L", "40g", f"{GROUP}/docker-lv")
                self._lvm.create_volume(GROUP, "backup-lv", 1 * GIB)
        self._moment = moment
        if self._is_captured:
            capture(self._lvm, GROUP, moment)

    def extend(self, lv_name: str, gib: int) -> tuple[int, str]:
        """Run the real lvextend."""
        done = self._lvm.extend(GROUP, lv_name, gib * GIB)
        lines = (line.strip() for line in done.stderr.splitlines())
        # Each command says that this scratch LVM never activates anything: no news here.
        ending = done.returncode, "\n".join(line for line in lines if "Activation disabled" not in line)
        if self._is_captured:
            capture_extend(self._moment, lv_name, gib, ending)
        return ending


def main(words: list[str]) -> int:
    """Show the demo; 0 when everything went as it tells."""
    # A shell that starts us in the background has SIGINT ignored; the teardown must follow it all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _machine(words) as machine:
            _show(machine)
    except KeyboardInterrupt:
        return _end("\ninterrupted; nothing is left behind", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (LabError, LookupError) as error:
        return _end(f"the demo could not go on: {error}", 1)
    return 0


@contextmanager
def _machine(words: list[str]) -> Iterator[Machine]:
    reason = "asked for" if "--replay" in words else can_run()
    if reason is None:
        _say("Real LVM in a scratch LVM of its own; this host's volume groups are not touched.")
        with ScratchLvm() as lvm:
            yield RealMachine(lvm, is_captured="--capture" in words)
    else:
        _say(f"No real LVM here ({reason}): replaying output captured from it.")
        with tempfile.TemporaryDirectory(prefix="agent-demo-") as directory:
            yield Replay(Path(directory), GROUP)


def _show(machine: Machine) -> None:
    write_record(machine.directory / "healthy.toml", HEALTHY_RECORD, whole_gib=True)
    write_record(machine.directory / "grown.toml", GROWN_RECORD)

    _title("1. A healthy controller: 179 GiB in cgts-vg, twelve LVs, 16.156 GiB free.")
    machine.become(Moment.HEALTHY)
    _audit(machine, "healthy.toml", expected=0)

    _title("2. dockerdistribution was grown to 32 GiB; then docker was to grow from 30 to 40 GiB.")
    _say("The inventory accepted that and records 40 GiB. This is what LVM says to it:")
    machine.become(Moment.BEFORE_UPGRADE)
    _extend(machine, "docker-lv", 40)

    _title("3. Nobody saw that message. The audit shows it before the next upgrade does.")
    _audit(machine, "grown.toml", expected=7)

    _title("4. After a reinstall: docker got its 40 GiB, backup only 1 of its 25.")
    machine.become(Moment.AFTER_REINSTALL)
    _audit(machine, "grown.toml", expected=7)
    _say("LVM's own numbers are the same:")
    _extend(machine, "backup-lv", 25)

    _title("That was all; everything is taken down again.")


def _audit(machine: Machine, record: str, *, expected: int) -> None:
    options = ["--once", *machine.agent_options, "--inventory", f"file:{record}"]
    _say(f"$ agent audit {' '.join(options)}")
    command = [sys.executable, "-m", "agent", "audit", *options]
    with subprocess.Popen(command, cwd=machine.directory, env=machine.environment) as agent:
        try:
            status = agent.wait()
        except BaseException:
            # Not killed: it has to end its LVM processes before their files are taken away.
            agent.terminate()
            agent.wait()
            raise
    _require(status, expected)


def _extend(machine: Machine, lv_name: str, gib: int) -> None:
    _say(f"$ lvextend -L {gib}g {GROUP}/{lv_name}")
    status, message = machine.extend(lv_name, gib)
    _say(message)
    _require(status, 5)


def _require(status: int, expected: int) -> None:
    _say(f"(exit status {status})")
    if status != expected:
        raise LabError(f"exit status {expected} was expected here")


def _title(text: str) -> None:
    _say(f"\n=== {text}")


def _say(text: str) -> None:
    print(text, flush=True)


def _end(text: str, status: int) -> int:
    print(text, file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
