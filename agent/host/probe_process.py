"""The probe helper as a process: starting it, its two pipes, its end.

Not here: what is asked and how long an answer may take (`prober`), the helper's side (`probe_child`).
"""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Protocol


class Helper(Protocol):
    """A running helper process."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def requests(self) -> int:
        """Where requests are written to."""
        ...

    @property
    def answers(self) -> int:
        """Where answers are read from."""
        ...

    def poll(self) -> int | None:
        """Its exit status; None while it is there."""
        ...

    def kill(self) -> None:
        """Tell the kernel to end it, which may take for ever."""
        ...

    def wait(self, timeout: float) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it is still there.
        """
        ...

    def close(self) -> None:
        """Close both pipes: the helper ends when it notices."""
        ...


class _Process:
    """The helper as it really is."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin is not None  # noqa: S101 - asked for below
        assert process.stdout is not None  # noqa: S101 - as above
        self._pipes = (process.stdin, process.stdout)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def requests(self) -> int:
        return self._pipes[0].fileno()

    @property
    def answers(self) -> int:
        return self._pipes[1].fileno()

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> int:
        return self._process.wait(timeout)

    def close(self) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()


def start_helper() -> Helper:
    """Start the helper: without site-packages, in its own session, with nothing inherited but two pipes.

    Raises:
        OSError: it can't be started.
    """
    script = Path(__file__).with_name("probe_child.py")
    return _Process(
        subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            cwd="/",
            env={},
        )
    )
