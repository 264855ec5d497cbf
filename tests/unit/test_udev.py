"""The watcher's thread with scripted events: it filters, posts, reopens and never dies."""

import contextlib
import errno
import queue
from collections.abc import Callable

import pytest

from agent.host.block_event import BlockEvent
from agent.host.udev import EventSource, Watcher, concerns_lvm

LVM_UUID = "LVM-DexPKpXJNd9TAXf0VjtiBJYyaKoTtxbX6M5ZktCwSeIk5E1ZMyxSNRfXcFS3AWPn"
OVERRUN = OSError(errno.ENOBUFS, "No buffer space available")


def event(**properties: str) -> BlockEvent:
    return BlockEvent(action="change", device="dm-0", properties=properties)


EXTENDED = event(DM_UUID=LVM_UUID)


@pytest.mark.parametrize(
    ("properties", "is_lvm"),
    [
        ({"DM_UUID": LVM_UUID}, True),
        ({"DM_UUID": f"{LVM_UUID}-real"}, True),
        ({"ID_FS_TYPE": "LVM2_member"}, True),
        ({"DM_UUID": "CRYPT-LUKS2-0123", "ID_FS_TYPE": "LVM2_member"}, True),
        ({"DM_UUID": "CRYPT-LUKS2-0123"}, False),
        ({"DM_UUID": "mpath-360000"}, False),
        ({"ID_FS_TYPE": "ext4"}, False),
        ({}, False),
    ],
)
def test_only_lvm_is_of_interest(properties: dict[str, str], is_lvm: bool) -> None:  # noqa: FBT001 - a table
    assert concerns_lvm(event(**properties)) is is_lvm


class Script:
    """A source that yields what it was given; then it waits, as a quiet monitor does."""

    def __init__(self, *steps: BlockEvent | OSError) -> None:
        self._steps = list(steps)
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.is_closed = False

    def poll(self, timeout_seconds: float) -> BlockEvent | None:
        assert not self.is_closed
        if not self._steps:
            with contextlib.suppress(queue.Empty):
                self._woken.get(timeout=timeout_seconds)
            return None
        step = self._steps.pop(0)
        if isinstance(step, OSError):
            raise step
        return step

    def wake(self) -> None:
        self._woken.put(None)

    def close(self) -> None:
        self.is_closed = True


class Ears:
    """Hears what the watcher says, in order."""

    def __init__(self) -> None:
        self._heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def event_seen(self, event: BlockEvent) -> None:
        self._heard.put(f"event {event.device}")

    def monitor_reopened(self, reason: str) -> None:
        self._heard.put(f"reopened: {reason}")

    def monitor_failed(self, reason: str) -> None:
        self._heard.put(f"failed: {reason}")

    def hear(self, count: int) -> list[str]:
        return [self._heard.get(timeout=30.0) for _ in range(count)]

    def has_heard_more(self) -> bool:
        return not self._heard.empty()


def opener(*sources: EventSource | Exception) -> Callable[[], EventSource]:
    """Open these one after the other; an exception is a try that fails."""
    left = list(sources)

    def open_next() -> EventSource:
        source = left.pop(0)
        if isinstance(source, Exception):
            raise source
        return source

    return open_next


def test_matching_events_are_passed_on_and_others_are_not() -> None:
    ears = Ears()
    script = Script(EXTENDED, event(ID_FS_TYPE="ext4"), event(ID_FS_TYPE="LVM2_member"))
    watcher = Watcher(ears, open_source=opener(script))
    watcher.start()
    assert ears.hear(2) == ["event dm-0", "event dm-0"]
    assert watcher.is_healthy()
    watcher.stop()
    assert script.is_closed
    assert not ears.has_heard_more()
    assert not watcher.is_healthy()


def test_a_lost_event_reopens_the_monitor_and_says_so() -> None:
    ears = Ears()
    first, second = Script(EXTENDED, OVERRUN), Script(EXTENDED)
    watcher = Watcher(ears, open_source=opener(first, second))
    watcher.start()
    assert ears.hear(3) == ["event dm-0", "reopened: No buffer space available", "event dm-0"]
    assert first.is_closed
    assert watcher.is_healthy()
    watcher.stop()
    assert second.is_closed


def test_a_monitor_that_can_not_be_reopened_is_tried_until_it_can() -> None:
    ears = Ears()
    watcher = Watcher(
        ears,
        open_source=opener(
            Script(EXTENDED, OVERRUN),
            OSError(errno.EMFILE, "Too many open files"),
            OSError(errno.EMFILE, "Too many open files"),
            Script(EXTENDED),
        ),
    )
    watcher.start()
    assert ears.hear(4) == [
        "event dm-0",
        "failed: Too many open files",  # once, however often it fails
        "reopened: No buffer space available",
        "event dm-0",
    ]
    watcher.stop()


def test_without_udev_the_daemon_starts_all_the_same() -> None:
    ears = Ears()
    watcher = Watcher(ears, open_source=opener(ImportError("no libudev"), Script(EXTENDED)))
    watcher.start()
    assert ears.hear(3) == ["failed: no libudev", "reopened: it could not be opened", "event dm-0"]
    watcher.stop()


def test_a_thread_that_shows_no_sign_of_life_is_not_healthy() -> None:
    seconds = [0.0]
    watcher = Watcher(Ears(), open_source=opener(Script()), monotonic_seconds=lambda: seconds[0])
    assert not watcher.is_healthy(), "not started"
    watcher.start()
    assert watcher.is_healthy()
    seconds[0] = 31.0
    assert not watcher.is_healthy()
    watcher.stop()


def test_stopping_does_not_wait_for_an_event() -> None:
    script = Script()
    watcher = Watcher(Ears(), open_source=opener(script))
    watcher.start()
    watcher.stop()
    assert script.is_closed


def test_stopping_does_not_wait_for_a_monitor_that_never_opens() -> None:
    failures = [OSError(errno.EPERM, "Operation not permitted") for _ in range(1000)]
    watcher = Watcher(Ears(), open_source=opener(*failures))
    watcher.start()
    watcher.stop()
    assert not watcher.is_healthy()
