"""Watches udev for events of device-mapper and of physical volumes, in a thread that only passes them on.

An event is a hint to look soon, never information: most LVM changes cause some, a few cause none, and
some come without a change.  So the thread filters, posts and survives; the schedule is what is correct.
Not here: settling and coalescing (`agent.daemon.agenda`), reading LVM.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from agent.host.block_event import BlockEvent

POLL_SECONDS: Final = 5.0
"""How long the thread sleeps without events before it shows that it is alive."""
_STALE_SECONDS: Final = 30.0
_JOIN_SECONDS: Final = 2.0
_BACKOFF_SECONDS: Final = (0.1, 0.5, 2.0, 10.0)
"""Before the second, third … try to open a monitor; well below `_STALE_SECONDS`."""


class EventSource(Protocol):
    """An open monitor: the seam where tests put events without a netlink socket."""

    def poll(self, timeout_seconds: float) -> BlockEvent | None:
        """The next event; None = none came in time, or `wake` was called.

        Raises:
            OSError: the monitor is dead or has lost events (ENOBUFS).
        """
        ...

    def wake(self) -> None:
        """End a `poll` that is waiting in another thread."""
        ...

    def close(self) -> None:
        """Give its descriptor back."""
        ...


class Listener(Protocol):
    """Who is told; called in the watcher's thread, must not block."""

    def event_seen(self, event: BlockEvent) -> None:
        """LVM may have changed."""
        ...

    def monitor_reopened(self, reason: str) -> None:
        """Events were lost between the failure and now."""
        ...

    def monitor_failed(self, reason: str) -> None:
        """There is no monitor; it is tried again.  Said once for each failure."""
        ...


def concerns_lvm(event: BlockEvent) -> bool:
    """Whether LVM may have changed.

    Device-mapper events cover everything active.  LVM writes each metadata change into its physical
    volumes, and udev's watch turns the closing write into a change event of theirs: that is the only
    trace of `vgextend` or of an inactive LV's resize.  Our own reads open devices read-only and leave none.
    """
    properties = event.properties
    if properties.get("DM_UUID", "").startswith("LVM-"):
        return True
    return properties.get("ID_FS_TYPE") == "LVM2_member"


class Watcher:
    """The thread, from `start` to `stop`.  Reopens its monitor for ever, slower and slower."""

    def __init__(
        self,
        listener: Listener,
        *,
        open_source: Callable[[], EventSource] | None = None,
        monotonic_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._open_source = open_source or open_netlink
        self._monotonic_seconds = monotonic_seconds
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._source: EventSource | None = None
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._seen_at = monotonic_seconds()

    def start(self) -> None:
        """Listen from now on: the monitor is open when this returns, or has failed and is tried again."""
        self._open()
        self._thread = threading.Thread(target=self._watch, name="udev", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopping.set()
        with self._lock:
            if self._source is not None:
                self._source.wake()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def is_healthy(self) -> bool:
        """Whether the thread lives and has shown it lately."""
        thread = self._thread
        is_alive = thread is not None and thread.is_alive()
        return is_alive and self._monotonic_seconds() - self._seen_at < _STALE_SECONDS

    def _watch(self) -> None:
        """Pass events on until told to stop, with a new monitor whenever one dies."""
        lost_by = "it could not be opened"
        while not self._stopping.is_set():
            source = self._source
            if source is None:
                if self._open():
                    self._listener.monitor_reopened(lost_by)
                continue
            try:
                self._pass_on(source)
            except OSError as error:
                lost_by = _to_reason(error)
                self._drop(source)
        if self._source is not None:
            self._drop(self._source)

    def _pass_on(self, source: EventSource) -> None:
        while not self._stopping.is_set():
            event = source.poll(POLL_SECONDS)
            self._seen_at = self._monotonic_seconds()
            # A monitor that yields has recovered: when it dies the next one is opened at once.
            self._failures = 0
            if event is not None and concerns_lvm(event):
                self._listener.event_seen(event)

    def _open(self) -> bool:
        """Try to open a monitor, not too often; whether there is one now."""
        if self._failures:
            self._stopping.wait(_BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS)) - 1])
        self._seen_at = self._monotonic_seconds()
        self._failures += 1
        try:
            self._source = self._open_source()
        except (OSError, ImportError) as error:
            if self._failures == 1:
                self._listener.monitor_failed(_to_reason(error))
            return False
        return True

    def _drop(self, source: EventSource) -> None:
        with self._lock:  # `stop` may be about to wake it
            self._source = None
            source.close()


def open_netlink() -> EventSource:
    """The real source.

    Raises:
        OSError: there is no netlink socket to be had.
        ImportError: libudev is missing.
    """
    from agent.host.netlink import NetlinkSource  # noqa: PLC0415 - pyudev loads libudev at import

    return NetlinkSource()


def _to_reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
