"""The probe helper: real processes, real loop devices where there are any, and kernels that never answer."""

import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.layers.stacks import filesystem_bytes
from agent.core.layers.superblock import HEAD_BYTES
from agent.core.layers.view import make_probe
from agent.host.probe_child import serve
from agent.host.probe_process import Helper, start_helper
from agent.host.prober import MAX_ABANDONED, ProbeError, ProbeHungError, Prober


@pytest.fixture
def prober() -> Iterator[Prober]:
    prober = Prober(timeout_seconds=30)
    yield prober
    prober.close()


def root_number() -> str:
    device = Path("/").stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def test_usage_of_a_real_mount(prober: Prober) -> None:
    expected = os.statvfs("/")
    usage = prober.read_usage("/", root_number())
    assert (usage.block_bytes, usage.blocks) == (expected.f_frsize, expected.f_blocks)


def test_something_else_mounted_there(prober: Prober) -> None:
    with pytest.raises(ProbeError, match="something else is mounted there"):
        prober.read_usage("/proc", root_number())


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("/nowhere/at all", "No such file"),
        ("/etc/hostname\n", "No such file"),
        ("/dev/null", "another device"),
        ("/", "another device"),
    ],
)
def test_what_can_not_be_read(prober: Prober, path: str, complaint: str) -> None:
    with pytest.raises(ProbeError, match=complaint):
        prober.read_head(path, "254:0", HEAD_BYTES)


def test_a_pipe_in_place_of_a_device_does_not_hang(prober: Prober, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ProbeError, match="another device"):
        prober.read_head(str(tmp_path / "pipe"), "254:0", HEAD_BYTES)


def test_a_program_that_fails_is_told(prober: Prober) -> None:
    with pytest.raises(ProbeError, match=r"it ended with status|No such file"):
        prober.read_drbd_status()  # there is no DRBD 9 here


@pytest.mark.lvm
@pytest.mark.parametrize(
    ("tool", "options", "sector", "size_bytes"),
    [
        ("mkfs.ext4", ["-q", "-F", "-b", "1024"], 512, 64 * 2**20),
        ("mkfs.ext4", ["-q", "-F"], 4096, 64 * 2**20),
        ("mkfs.xfs", ["-q"], 512, 512 * 2**20),
        ("mkfs.xfs", ["-q"], 4096, 512 * 2**20),
    ],
)
def test_filesystems_on_real_devices(
    prober: Prober, tmp_path: Path, tool: str, options: list[str], sector: int, size_bytes: int
) -> None:
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, size_bytes)
    attach = ["losetup", "--find", "--show", "--sector-size", str(sector), str(image)]
    loop = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        subprocess.run([tool, *options, loop], check=True, capture_output=True)
        number = Path(loop).stat().st_rdev
        head = prober.read_head(loop, f"{os.major(number)}:{os.minor(number)}", HEAD_BYTES)
        assert filesystem_bytes(make_probe(None, head, None, None)) == size_bytes
        with pytest.raises(ProbeError, match="another device"):
            prober.read_head(loop, "253:999", HEAD_BYTES)
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)


# The helper's side, in this process


def answer_to(*words: str) -> str:
    """What the helper says to one request."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as answers:
        try:
            serve(io.BytesIO(" ".join(words).encode() + b"\n"), writer)
        finally:
            os.close(writer)
        verdict, _, rest = answers.read().decode().strip().partition(" ")
    return rest if verdict == "ok" else f"no: {bytes.fromhex(rest).decode()}"


def encoded(text: str) -> str:
    return text.encode().hex()


def test_answers_of_the_helper() -> None:
    values = os.statvfs("/")
    assert answer_to("stat", encoded("/"), root_number()).split()[:2] == [
        str(values.f_frsize),
        str(values.f_blocks),
    ]
    assert answer_to("stat", encoded("/proc"), root_number()) == "no: something else is mounted there by now"
    assert answer_to("read", encoded("/dev/null"), "1:3", "9") == "no: it is another device by now"
    assert answer_to("read", encoded("/nowhere"), "1:3", "9") == "no: No such file or directory"
    assert bytes.fromhex(answer_to("run", encoded("/bin/echo"), encoded("two words"))) == b"two words\n"
    assert answer_to("run", encoded("/bin/false")) == "no: it ended with status 1"
    assert answer_to("run", encoded("/nowhere")) == "no: No such file or directory"


# The process


def recording(helpers: list[Helper]) -> Callable[[], Helper]:
    def start() -> Helper:
        helpers.append(start_helper())
        return helpers[-1]

    return start


def test_one_helper_is_started_late_and_kept() -> None:
    helpers: list[Helper] = []
    prober = Prober(timeout_seconds=30, start=recording(helpers))
    assert helpers == []
    for _ in range(3):
        prober.read_usage("/", root_number())
    assert len(helpers) == 1
    prober.close()
    assert helpers[0].poll() == 0
    prober.close()


def test_helper_is_small_and_alone() -> None:
    helpers: list[Helper] = []
    prober = Prober(timeout_seconds=30, start=recording(helpers))
    try:
        prober.read_usage("/", root_number())
        process = Path(f"/proc/{helpers[0].pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        assert int(status["VmHWM"].split()[0]) <= 12 * 1024
        assert os.getsid(helpers[0].pid) == helpers[0].pid
        assert sorted(entry.name for entry in (process / "fd").iterdir()) == ["0", "1", "2"]
        assert (process / "environ").read_bytes().replace(b"LC_CTYPE=C.UTF-8\0", b"") == b""
    finally:
        prober.close()


def test_helper_that_was_killed_is_replaced() -> None:
    helpers: list[Helper] = []
    prober = Prober(timeout_seconds=30, start=recording(helpers))
    prober.read_usage("/", root_number())
    os.kill(helpers[0].pid, signal.SIGKILL)
    helpers[0].wait(30)
    prober.read_usage("/", root_number())
    assert len(helpers) == 2
    prober.close()


def test_helper_ends_when_its_owner_is_killed() -> None:
    script = (
        "import os,time; from agent.host.prober import Prober; p = Prober(); "
        "d = os.stat('/').st_dev; p.read_usage('/', f'{os.major(d)}:{os.minor(d)}'); "
        "print(p._helper.pid, flush=True); time.sleep(600)"
    )
    root = str(Path(__file__).parents[2])
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=root)
    assert owner.stdout is not None
    with owner.stdout:
        pid = int(owner.stdout.readline())
        descriptor = os.pidfd_open(pid)
        owner.kill()
        owner.wait()
    try:
        assert select.select([descriptor], [], [], 60)[0] == [descriptor]
    finally:
        os.close(descriptor)


def test_helper_that_can_not_be_started_is_an_answer() -> None:
    def start() -> Helper:
        raise OSError(12, "Cannot allocate memory")

    with pytest.raises(ProbeError, match="can't be started: Cannot allocate memory"):
        Prober(start=start).read_usage("/", "1:1")


class FakeHelper:
    """A helper whose kernel answers only what the test says, and which no signal ends before `end`."""

    def __init__(self, pid: int, answer: bytes | None = None) -> None:
        self.pid = pid
        self.requests, self._far_requests = os.pipe()[::-1]
        self.answers, self._far_answers = os.pipe()
        self._status: int | None = None
        self.killed = 0
        self._open = True
        if answer is not None:
            os.write(self._far_answers, answer)

    def end(self) -> None:
        self._status = -9

    def poll(self) -> int | None:
        return self._status

    def kill(self) -> None:
        self.killed += 1

    def wait(self, timeout: float) -> int:
        if self._status is None:
            raise subprocess.TimeoutExpired("helper", timeout)
        return self._status

    def close(self) -> None:
        if self._open:
            self._open = False
            for descriptor in (self.requests, self._far_requests, self.answers, self._far_answers):
                os.close(descriptor)


class Starter:
    """Starts fakes, one prepared answer each; None = it hangs."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.started: list[FakeHelper] = []

    def __call__(self) -> Helper:
        self.started.append(FakeHelper(1000 + len(self.started), self.answers.pop(0)))
        return self.started[-1]


GOOD = b"ok 4096 100 50 40\n"


def test_a_hanging_question_is_abandoned_and_the_others_go_on() -> None:
    starter = Starter(None, GOOD, GOOD)
    prober = Prober(timeout_seconds=0.01, start=starter)
    with pytest.raises(ProbeHungError, match=r"does not answer within 0\.01 s"):
        prober.read_usage("/hung", "1:1")
    assert starter.started[0].killed == 1
    assert prober.read_usage("/fine", "1:2").blocks == 100
    with pytest.raises(ProbeHungError, match=r"still does not answer \(process 1000\)"):
        prober.read_usage("/hung", "1:1")
    assert len(starter.started) == 2  # not asked again while the first one hangs

    starter.started[0].end()
    starter.started[1].end()
    prober.close()
    assert prober.read_usage("/hung", "1:1").blocks == 100
    starter.started[2].end()
    prober.close()


def test_hanging_helpers_do_not_pile_up() -> None:
    starter = Starter(*[None] * MAX_ABANDONED, GOOD)
    prober = Prober(timeout_seconds=0.01, start=starter)
    for number in range(MAX_ABANDONED):
        with pytest.raises(ProbeHungError, match="within"):
            prober.read_usage(f"/hung{number}", "1:1")
    with pytest.raises(ProbeHungError, match=f"{MAX_ABANDONED} earlier questions still hang"):
        prober.read_usage("/other", "1:1")
    assert len(starter.started) == MAX_ABANDONED
    starter.started[0].end()
    assert prober.read_usage("/other", "1:1").blocks == 100
    starter.started[-1].end()
    prober.close()


def test_half_an_answer_counts_as_none() -> None:
    prober = Prober(timeout_seconds=0.01, start=Starter(b"ok 4096 100"))
    with pytest.raises(ProbeHungError, match="does not answer"):
        prober.read_usage("/x", "1:1")


def test_a_helper_that_keeps_ending_is_given_up() -> None:
    class Ended(FakeHelper):
        def __init__(self, pid: int) -> None:
            super().__init__(pid)
            os.close(self._far_answers)
            self._far_answers = os.open(os.devnull, os.O_RDONLY)
            self.end()

    with pytest.raises(ProbeError, match="does not stay alive"):
        Prober(timeout_seconds=5, start=lambda: Ended(7)).read_usage("/x", "1:1")


def test_a_helper_that_does_not_end_is_killed_and_left() -> None:
    starter = Starter(GOOD)
    prober = Prober(timeout_seconds=5, start=starter)
    prober.read_usage("/x", "1:1")
    prober.close()
    assert starter.started[0].killed == 1
