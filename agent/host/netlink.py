"""The real source of udev's events: pyudev on a netlink socket.

Kept apart from the thread that uses it (`udev`), which tests run without any socket.
"""

import contextlib
import os
import select
from typing import Final

import pyudev

from agent.host.block_event import BlockEvent

_RECEIVE_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Some 5,000 events; without privileges the kernel grants no more than net.core.rmem_max."""
_PROPERTIES: Final = ("DM_UUID", "ID_FS_TYPE")


class NetlinkSource:
    """A monitor of processed ("udev") events of block devices: the rules have named the devices by then.

    Raises:
        OSError: there is no netlink socket to be had.
        ImportError: libudev is missing.
    """

    def __init__(self) -> None:
        monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="udev")
        monitor.filter_by("block")
        with contextlib.suppress(OSError):
            monitor.set_receive_buffer_size(_RECEIVE_BUFFER_BYTES)
        monitor.start()
        self._monitor: pyudev.Monitor | None = monitor
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        for descriptor in (monitor.fileno(), self._wake_fd):
            self._poll.register(descriptor, select.POLLIN)

    def poll(self, timeout_seconds: float) -> BlockEvent | None:
        """The next event; None = none came in time, or `wake` was called.

        Raises:
            OSError: the socket is dead or its buffer overran (ENOBUFS).
        """
        ready = self._poll.poll(timeout_seconds * 1000)
        if self._monitor is None or all(descriptor == self._wake_fd for descriptor, _ in ready):
            return None
        device = self._monitor.poll(timeout=0)
        if device is None:
            return None
        return BlockEvent(
            action=device.action or "",
            device=device.sys_name,
            properties={name: device.properties[name] for name in _PROPERTIES if name in device.properties},
        )

    def wake(self) -> None:
        """End a `poll` that is waiting in another thread."""
        os.eventfd_write(self._wake_fd, 1)

    def close(self) -> None:
        """Give the descriptors back."""
        self._monitor = None  # its last reference: libudev closes the socket
        os.close(self._wake_fd)
