"""The child runner with real children, and with one that can't be killed."""

import errno
import os
import select
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from pytest_mock import MockerFixture

from agent.core.errors import LvmAborted, LvmMissing, LvmNotStarted, LvmStuck
from agent.host.child import Child, Command, start
from agent.host.process import MESSAGES_MAX_BYTES, REPORT_MAX_BYTES, Ending, Outcome, Runner

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
LONG = 60.0
SHORT = 0.2
NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


@pytest.fixture
def runner() -> Iterator[Runner]:
    descriptors = open_descriptors()
    with Runner(term_grace_seconds=0.2, kill_grace_seconds=LONG) as runner:
        yield runner
    assert open_descriptors() == descriptors


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the numbers, not paths


def shell(script: str) -> Command:
    return Command(
        argv=("/bin/sh", "-c", f"REPORT=/dev/fd/$LVM_REPORT_FD; {script}"), environment=ENVIRONMENT
    )


def run(runner: Runner, *scripts: str, timeout_seconds: float = LONG) -> tuple[Outcome, ...]:
    return runner.run(
        [shell(script) for script in scripts], subject="cgts-vg", timeout_seconds=timeout_seconds
    )


def require_end(pid: int) -> None:
    """Fail unless a process that is no child of ours ends (it was sent SIGKILL, which takes a moment)."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], LONG)
        assert ready, f"{pid} goes on"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", Outcome(ending=Ending.ITSELF, status=0, report=b"", messages=b"")),
        ("exit 5", Outcome(ending=Ending.ITSELF, status=5, report=b"", messages=b"")),
        ("kill -KILL $$", Outcome(ending=Ending.ITSELF, status=-9, report=b"", messages=b"")),
        ("printf r > $REPORT", Outcome(ending=Ending.ITSELF, status=0, report=b"r", messages=b"")),
        ("echo o; echo e >&2", Outcome(ending=Ending.ITSELF, status=0, report=b"", messages=b"o\ne\n")),
    ],
)
def test_outcome(runner: Runner, script: str, expected: Outcome) -> None:
    assert run(runner, script) == (expected,)


def test_children_run_at_once_and_keep_their_order(runner: Runner, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    # Each waits for the other: one after the other they would reach the deadline.
    first, second = run(
        runner,
        f"echo x > {there}; read line < {back}; echo $line > $REPORT",
        f"read line < {there}; echo y > {back}; echo $line > $REPORT",
    )
    assert (first.report, second.report) == (b"y\n", b"x\n")


def test_a_child_sees_its_own_session_and_nothing_of_ours(runner: Runner) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)  # noqa: FBT003 - the system call's own argument
    (outcome,) = run(
        runner, "cut -d' ' -f6 /proc/$$/stat; echo $$; readlink /proc/$$/fd/0; pwd; ls /proc/$$/fd"
    )
    session, pid, stdin, folder, *descriptors = outcome.messages.decode().split()
    os.close(read_end)
    os.close(write_end)
    assert (session, stdin, folder) == (pid, "/dev/null", "/")
    assert str(write_end) not in descriptors
    assert len(descriptors) == 4


def test_environment_is_exactly_the_given_one_and_the_report_descriptor(runner: Runner) -> None:
    (outcome,) = run(runner, "tr '\\0' '\\n' < /proc/$$/environ")
    lines = outcome.messages.decode().split()
    assert sorted(line.split("=")[0] for line in lines) == ["LC_ALL", "LVM_REPORT_FD", "PATH"]


@pytest.mark.parametrize(
    "script", ["exec sleep 600", "trap '' TERM; exec sleep 600", "trap '' TERM; sleep 600"]
)
def test_deadline_ends_the_whole_group(runner: Runner, tmp_path: Path, script: str) -> None:
    pids = tmp_path / "pids"
    (outcome,) = run(
        runner, f"sleep 600 & echo $! > {pids}; printf half > $REPORT; {script}", timeout_seconds=SHORT
    )
    assert (outcome.ending, outcome.report) == (Ending.DEADLINE, b"half")
    assert outcome.status in (-signal.SIGTERM, -signal.SIGKILL)
    require_end(int(pids.read_text()))


def test_one_hanging_child_does_not_spoil_the_other(runner: Runner) -> None:
    hanging, done = run(runner, "exec sleep 600", "printf r > $REPORT", timeout_seconds=SHORT)
    assert hanging.ending is Ending.DEADLINE
    assert done == Outcome(ending=Ending.ITSELF, status=0, report=b"r", messages=b"")


def test_a_grandchild_in_the_group_that_keeps_the_pipes_is_ended(runner: Runner, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (outcome,) = run(runner, f"sleep 600 & echo $! > {pids}; printf r > $REPORT")
    assert outcome == Outcome(ending=Ending.ITSELF, status=0, report=b"r", messages=b"")
    require_end(int(pids.read_text()))


def test_a_grandchild_that_got_away_and_writes_for_ever_holds_nobody_up(
    runner: Runner, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    (outcome,) = run(
        runner, f"setsid sh -c 'echo $$ > {ready}; exec yes' & read pid < {ready}; echo $pid > $REPORT"
    )
    os.kill(int(outcome.report), signal.SIGKILL)
    assert (outcome.ending, outcome.status) == (Ending.ITSELF, 0)


def test_a_report_without_end_is_cut_off(runner: Runner) -> None:
    (outcome,) = run(runner, "yes | head -c 50000000 > $REPORT")
    assert outcome.ending is Ending.TOO_MUCH
    assert REPORT_MAX_BYTES < len(outcome.report) < REPORT_MAX_BYTES + 1024**2


def test_messages_without_end_are_dropped_and_the_report_kept(runner: Runner) -> None:
    (outcome,) = run(runner, "yes | head -c 50000000; printf r > $REPORT")
    assert (outcome.ending, outcome.status, outcome.report) == (Ending.ITSELF, 0, b"r")
    assert len(outcome.messages) == MESSAGES_MAX_BYTES


def test_abort_from_another_thread_ends_the_run_and_refuses_later_ones(
    runner: Runner, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)

    def abort_when_running() -> None:
        ready.read_text()
        runner.abort()

    thread = threading.Thread(target=abort_when_running)
    thread.start()
    with pytest.raises(LvmAborted, match="cgts-vg"):
        run(runner, f"echo x > {ready}; exec sleep 600")
    thread.join()
    with pytest.raises(LvmAborted):
        run(runner, "exit 0")


def test_abort_from_a_signal_handler(runner: Runner) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: runner.abort())
    try:
        with pytest.raises(LvmAborted):
            run(runner, f"kill -USR1 {os.getpid()}; exec sleep 600")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_without_consequence_does_not_disturb_a_run(runner: Runner) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        (outcome,) = run(runner, f"kill -USR1 {os.getpid()}; printf r > $REPORT")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert outcome.report == b"r"


@pytest.mark.parametrize("name", ["INT", "USR1", "HUP"])
def test_what_is_sent_to_the_whole_service_does_not_end_a_child(runner: Runner, name: str) -> None:
    (outcome,) = run(runner, f"kill -{name} $$; printf r > $REPORT")
    assert (outcome.status, outcome.report) == (0, b"r")


def test_an_interrupt_leaves_no_child(runner: Runner, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(KeyboardInterrupt):
        run(runner, f"echo $$ > {pids}; kill -INT {os.getpid()}; exec sleep 600")
    require_end(int(pids.read_text()))


def test_a_child_that_can_not_be_watched_is_ended(runner: Runner, mocker: MockerFixture) -> None:
    # Running out of descriptors exactly there can't be made to happen from outside.
    mocker.patch("os.pidfd_open", side_effect=OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    children = set(psutil.Process().children())
    with pytest.raises(LvmNotStarted, match="Too many open files"):
        run(runner, "exec sleep 600")
    assert set(psutil.Process().children()) == children


def test_a_program_that_can_not_be_started_ends_those_that_were(runner: Runner, tmp_path: Path) -> None:
    broken = tmp_path / "vgs"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    commands = [shell("exec sleep 600"), Command(argv=(str(broken),), environment=ENVIRONMENT)]
    with pytest.raises(LvmMissing, match="Exec format error") as caught:
        runner.run(commands, subject="cgts-vg", timeout_seconds=LONG)
    assert caught.value.subject == str(broken)


class Unkillable:
    """A child in uninterruptible sleep: signals do nothing, it does not end, until it is released."""

    def __init__(self) -> None:
        self.pid = 4242
        self.signals: list[signal.Signals] = []
        self._status: int | None = None
        self._read_ends, self._write_ends = zip(*(os.pipe() for _ in range(3)), strict=True)
        self.report_fd, self.messages_fd, self.exit_fd = self._read_ends

    def reap(self) -> int | None:
        return self._status

    def signal_group(self, number: signal.Signals) -> None:
        self.signals.append(number)

    def close(self) -> None:
        for descriptor in (*self._read_ends, *self._write_ends):
            os.close(descriptor)

    def release(self) -> None:
        self._status = -signal.SIGKILL


def test_an_unkillable_child_is_remembered_and_no_other_is_started_before_it_ends() -> None:
    stuck: list[Unkillable] = []
    started: list[Command] = []

    def start_stuck_first(command: Command) -> Child:
        started.append(command)
        if stuck:
            return start(command)
        stuck.append(Unkillable())
        return stuck[0]

    descriptors = open_descriptors()
    with Runner(
        start=start_stuck_first, term_grace_seconds=0.01, kill_grace_seconds=0.01, now=lambda: NOW
    ) as runner:
        (outcome,) = run(runner, "exit 0", timeout_seconds=0.01)
        assert (outcome.ending, outcome.status) == (Ending.DEADLINE, None)
        assert stuck[0].signals == [signal.SIGTERM, signal.SIGKILL]
        for _ in range(2):
            with pytest.raises(LvmStuck, match=r"4242.*since 2026-12-01T08:00:00"):
                run(runner, "exit 0")
        assert len(started) == 1
        stuck[0].release()
        assert run(runner, "printf r > $REPORT")[0].report == b"r"
    assert open_descriptors() == descriptors


def test_abort_after_close_does_nothing_to_others() -> None:
    runner = Runner()
    runner.close()
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    runner.abort()
    with pytest.raises(BlockingIOError):
        os.read(read_end, 1)
    os.close(read_end)
    os.close(write_end)
