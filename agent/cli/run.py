"""`agent run`: the daemon, from its configuration to its exit status.

Not here: what the daemon does (`agent.daemon`), its parts (`wiring_daemon`).
"""

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from agent.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.cli.wiring import Wiring
    from agent.cli.wiring_daemon import DaemonWiring
    from agent.config.schema import Settings
    from agent.daemon.ports import Plan


_SIGNALS: Final = """\b
Signals:
  SIGHUP   read the configuration again; a bad one changes nothing
  SIGUSR1  audit now
  SIGTERM  end"""


@click.command(epilog=f"{_SIGNALS}\n\n{options.EXIT_STATUSES}")
@options.shared_options
@click.pass_context
def run(
    ctx: click.Context,
    *,
    config_path: str | None,
    flags: options.Flags,
) -> int:
    """Audit again and again: on a schedule, and at once when a device changes.

    This is what lvm-audit-agent.service starts.  It reports each audit to [report] url, and `agent status`
    shows what it saw last.
    """
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time of the other commands

    _run(ctx.obj or parts.Wiring(), config_path, flags)
    return 0


def _run(wiring: "Wiring", config_path: str | None, flags: options.Flags) -> None:
    """The daemon's whole life."""
    _import_structlog_lean()
    from agent import __version__  # noqa: PLC0415
    from agent.cli.wiring_daemon import DaemonWiring  # noqa: PLC0415
    from agent.daemon.life import EndedByForce, signals_posted  # noqa: PLC0415
    from agent.daemon.worker import Worker  # noqa: PLC0415
    from agent.log import get_logger  # noqa: PLC0415

    parts = DaemonWiring(wiring, config_path=config_path, flags=flags)
    try:
        with parts.runner, signals_posted(parts.mailbox, parts.runner.abort):
            settings = parts.load_settings()
            _configure_log(settings)
            _warn_of_short_watchdog(settings, parts.notifier.watchdog_seconds)
            get_logger().info("service.started", version=__version__, pid=os.getpid())
            worker = Worker(
                load=partial(_load_plan, parts),
                inbox=parts.mailbox,
                clock=wiring.clock,
                notifier=parts.notifier,
            )
            reason = worker.run()
    except EndedByForce:
        reason = "what was going on did not end in time"
    get_logger().info("service.stopped", reason=reason)


def _import_structlog_lean() -> None:
    """Import structlog as if rich were not installed.

    structlog loads rich for tracebacks that this program prints plainly (`agent.log`): 9 MiB of memory
    and a tenth of a second for nothing.
    """
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment] # how Python says that there is no such module
    try:
        import structlog  # noqa: F401, PLC0415 - for its effect on sys.modules
    finally:
        del sys.modules["rich"]


def _configure_log(settings: "Settings") -> None:
    from agent.log import configure  # noqa: PLC0415 - start-up time: structlog

    configure(settings.log, stream=sys.stderr, environment=os.environ)


def _load_plan(parts: "DaemonWiring", beat: "Callable[[], None]") -> "Plan":
    """What the configuration amounts to now.  It may change the log, too: last, when all the rest is good."""
    settings = parts.load_settings()
    plan = parts.make_plan(settings, beat)
    _configure_log(settings)
    return plan


def _warn_of_short_watchdog(settings: "Settings", watchdog_seconds: float | None) -> None:
    """The worker shows life after each volume group: reading one may take several LVM deadlines."""
    from agent.log import get_logger  # noqa: PLC0415

    longest_seconds = 4 * settings.lvm.timeout_seconds
    if watchdog_seconds is not None and watchdog_seconds < longest_seconds:
        get_logger().warning(
            "watchdog.limit.short", watchdog_seconds=watchdog_seconds, needed_seconds=longest_seconds
        )
