"""Logs each LVM command of the daemon at debug: what was run, how it ended, how long that took.

Not here: running it (`process`); a single audit logs nothing of the kind, and must not import this.
"""

import time
from collections.abc import Callable, Sequence

import structlog

from agent.host.child import Command
from agent.host.diagnosis import Runs
from agent.host.process import Outcome


class LoggingRunner:
    """A runner that says what it ran."""

    def __init__(self, runner: Runs, monotonic_seconds: Callable[[], float] = time.monotonic) -> None:
        self._runner = runner
        self._monotonic_seconds = monotonic_seconds
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agent")

    def run(
        self, commands: Sequence[Command], *, subject: str, timeout_seconds: float
    ) -> tuple[Outcome, ...]:
        """Run them; those of one call run at once, so each is logged with the seconds of the slowest.

        Raises:
            LvmError: as the runner does; nothing is logged then, the audit's finding says it.
        """
        began_at = self._monotonic_seconds()
        outcomes = self._runner.run(commands, subject=subject, timeout_seconds=timeout_seconds)
        duration_seconds = round(self._monotonic_seconds() - began_at, 6)
        for command, outcome in zip(commands, outcomes, strict=True):
            self._log.debug(
                "lvm.command.finished",
                argv=list(command.argv),
                status=outcome.status,
                ending=str(outcome.ending),
                duration_seconds=duration_seconds,
            )
        return outcomes
