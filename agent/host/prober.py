"""Asks a helper process what may never be answered: statvfs and reads of devices.

Both can hang in the kernel for ever (a suspended device, a dead network mount), and nothing can
interrupt them then.  So a small process of its own asks; it is started with the first question, kept for
the next, and abandoned when it does not answer.  Not here: what the answers mean (`agent.core.layers`),
the helper's side (`probe_child`).
"""

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import Final

from agent.core.layers.view import Usage
from agent.host.probe_process import Helper, start_helper

DEFAULT_TIMEOUT_SECONDS: Final = 2.0
MAX_ABANDONED: Final = 4
"""So many helpers may hang at once; then nothing more is asked until one of them ends."""

_DRBDSETUP: Final = "/usr/sbin/drbdsetup"
_END_SECONDS: Final = 1.0


class ProbeError(Exception):
    """A question that was not answered, with the reason."""


class ProbeHungError(ProbeError):
    """The kernel does not answer."""


class _HelperEndedError(Exception):
    """The helper is gone; another one can be asked."""


class Prober:
    """Asks one helper at a time.  To be closed at the end."""

    def __init__(
        self,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        start: Callable[[], Helper] | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._start = start or start_helper
        self._helper: Helper | None = None
        self._abandoned: dict[bytes, Helper] = {}

    def read_head(self, path: str, number: str, length: int) -> bytes:
        """The first bytes of the block device of that name and number (``major:minor``).

        Raises:
            ProbeError: it can't be read, is another device by now, or does not answer.
        """
        return bytes.fromhex(self._ask(f"read {_hex(path)} {number} {length}"))

    def read_usage(self, path: str, number: str) -> Usage:
        """The statvfs of what is mounted at that path, if its device has that number.

        Raises:
            ProbeError: it can't be asked, something else is mounted there, or it does not answer.
        """
        block_bytes, blocks, free, available = map(int, self._ask(f"stat {_hex(path)} {number}").split())
        return Usage(block_bytes=block_bytes, blocks=blocks, free_blocks=free, available_blocks=available)

    def read_drbd_status(self) -> bytes:
        """What `drbdsetup status --json` prints (DRBD 9).

        Raises:
            ProbeError: it is not installed, fails, or does not answer.
        """
        return bytes.fromhex(self._ask(" ".join(["run", *map(_hex, (_DRBDSETUP, "status", "--json"))])))

    def close(self) -> None:
        """End the helper; an abandoned one ends when the kernel lets it."""
        if self._helper is not None:
            self._end(self._helper)
            self._helper = None
        self._forget_ended()

    def _ask(self, request: str) -> str:
        """One question, asked again once when the helper had ended meanwhile."""
        line = request.encode("ascii") + b"\n"
        self._forget_ended()
        hung = self._abandoned.get(line)
        if hung is not None:
            msg = f"it still does not answer (process {hung.pid})"
            raise ProbeHungError(msg)
        if len(self._abandoned) >= MAX_ABANDONED:
            msg = f"{len(self._abandoned)} earlier questions still hang"
            raise ProbeHungError(msg)
        for _ in range(2):
            with contextlib.suppress(_HelperEndedError):
                return self._exchange(line)
        msg = "the probe helper does not stay alive"
        raise ProbeError(msg)

    def _exchange(self, line: bytes) -> str:
        if self._helper is None:
            try:
                self._helper = self._start()
            except OSError as error:
                msg = f"the probe helper can't be started: {error.strerror}"
                raise ProbeError(msg) from error
        helper = self._helper
        try:
            os.write(helper.requests, line)
            answer = self._receive(helper)
        except TimeoutError:
            self._abandon(line, helper)
            msg = f"it does not answer within {self._timeout_seconds:g} s"
            raise ProbeHungError(msg) from None
        except OSError:
            answer = b""
        if not answer:
            self._end(helper)
            self._helper = None
            raise _HelperEndedError
        verdict, _, rest = answer.decode("ascii").strip().partition(" ")
        if verdict != "ok":
            raise ProbeError(bytes.fromhex(rest).decode("utf-8", "replace"))
        return rest

    def _receive(self, helper: Helper) -> bytes:
        """One line; nothing when the helper has ended.

        Raises:
            TimeoutError: it did not come in time.
        """
        poll = select.poll()
        poll.register(helper.answers, select.POLLIN)
        deadline = time.monotonic() + self._timeout_seconds
        answer = bytearray()
        while not answer.endswith(b"\n"):
            # Late but there is not hanging: what has arrived is looked at even after the deadline.
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            piece = os.read(helper.answers, 65536)
            if not piece:
                return b""
            answer += piece
        return bytes(answer)

    def _abandon(self, line: bytes, helper: Helper) -> None:
        """Leave a hanging helper to the kernel; the same question is not asked again while it is there."""
        helper.kill()
        helper.close()
        self._helper = None
        self._abandoned[line] = helper

    def _forget_ended(self) -> None:
        for line, helper in list(self._abandoned.items()):
            if helper.poll() is not None:
                del self._abandoned[line]

    def _end(self, helper: Helper) -> None:
        helper.close()
        try:
            helper.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._abandon(b"", helper)


def _hex(text: str) -> str:
    return os.fsencode(text).hex()
