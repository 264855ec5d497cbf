"""What is logged of LVM commands."""

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from agent.core.errors import LvmStuck
from agent.host.child import Command
from agent.host.command_log import LoggingRunner
from agent.host.process import Ending, Outcome

COMMANDS = tuple(
    Command(argv=(f"/sbin/{name}", "vg"), environment={"SECRET": "x"}) for name in ("vgs", "lvs")
)
OUTCOMES = (
    Outcome(ending=Ending.ITSELF, status=0, report=b"r", messages=b""),
    Outcome(ending=Ending.DEADLINE, status=-15, report=b"", messages=b""),
)


class FakeRunner:
    """Ends as told."""

    def __init__(self, error: LvmStuck | None = None) -> None:
        self._error = error

    def run(
        self, commands: Sequence[Command], *, subject: str, timeout_seconds: float
    ) -> tuple[Outcome, ...]:
        assert (tuple(commands), subject, timeout_seconds) == (COMMANDS, "vg", 30.0)
        if self._error is not None:
            raise self._error
        return OUTCOMES


def test_each_command_is_a_line_without_its_environment() -> None:
    times = iter((5.0, 7.5))
    with capture_logs() as logs:
        done = LoggingRunner(FakeRunner(), lambda: next(times)).run(
            COMMANDS, subject="vg", timeout_seconds=30.0
        )
    assert done == OUTCOMES
    same = {"event": "lvm.command.finished", "log_level": "debug", "duration_seconds": 2.5}
    assert logs == [
        {**same, "argv": ["/sbin/vgs", "vg"], "status": 0, "ending": "itself"},
        {**same, "argv": ["/sbin/lvs", "vg"], "status": -15, "ending": "deadline"},
    ]


def test_a_failure_is_passed_on() -> None:
    error = LvmStuck(subject="vg", pid=1, since="now")
    with capture_logs() as logs, pytest.raises(LvmStuck) as caught:
        LoggingRunner(FakeRunner(error)).run(COMMANDS, subject="vg", timeout_seconds=30.0)
    assert caught.value is error
    assert logs == []
