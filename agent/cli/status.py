"""`agent status`: what was last seen, delivered and is still held, with or without a running daemon.

Not here: where it is read from (`wiring_status`), its words (`status_text`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli import options, output
from agent.cli.failure import asks_for_json, told_in_json

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring
    from agent.core.delivery.status import StatusDocument
    from agent.core.errors import AgentError


class StatusCommand(click.Command):
    """Answers a command line that can't be understood in the format it asks for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a mistake in a command line that asks for JSON is also told in JSON."""
        with told_in_json(_print_unknown, is_wanted=asks_for_json(args)):
            return super().parse_args(ctx, args)


@click.command(cls=StatusCommand, epilog=options.EXIT_STATUSES)
@options.config_option
@options.state_dir_option
@options.log_level_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints exactly one agent.status/v1 document, even on failure.",
)
@click.option("--retry", is_flag=True, help="Let the reports that were set aside be sent again.")
@click.pass_context
def status(
    ctx: click.Context,
    *,
    config_path: str | None,
    state_dir: str | None,
    log_level: str | None,
    output_format: str,
    retry: bool,
) -> None:
    """Show the last audit, the last delivery, and the reports that wait or were refused.

    Works without a running daemon, and says so.  Root sees the outbox as it is now; others see it as it
    was after the last audit.

    \b
    Examples:
      agent status
      agent status --format json
      agent status --retry
    """  # noqa: D301 - click needs the character itself
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time

    wiring: Wiring = ctx.obj or parts.Wiring()
    flags = options.to_flags(state_dir=state_dir, log_level=log_level)
    is_json = output_format == "json"
    with told_in_json(_print_unknown, is_wanted=is_json):
        document = _look(wiring, config_path, flags, is_retried=retry)
    if is_json:
        output.write_result(msgspec.json.encode(document) + b"\n")
        return
    from agent.cli.status_text import describe_status  # noqa: PLC0415 - not for JSON

    lines = describe_status(document, wiring.clock.now())
    output.write_result("".join(f"{line}\n" for line in lines))


def _look(
    wiring: "Wiring", config_path: str | None, flags: options.Flags, *, is_retried: bool
) -> "StatusDocument":
    """What there is to see, after set-aside reports were put back if that is asked for."""
    from agent.cli.wiring_status import put_back, read_status  # noqa: PLC0415 - start-up time

    directory = Path(wiring.load(config_path, flags).settings.agent.state_directory)
    if is_retried:
        count = put_back(directory)
        output.show_lines([f"{count} set-aside report{'' if count == 1 else 's'} put back to be sent again"])
    return read_status(directory)


def _print_unknown(error: "AgentError") -> None:
    """The one document of a look that failed: nothing is known, and why."""
    from agent.core.delivery.status import DaemonStatus, StatusDocument  # noqa: PLC0415 - start-up time

    document = StatusDocument(
        state_directory=None,
        hostname=None,
        daemon=DaemonStatus(state="unknown"),
        written_at=None,
        audits=None,
        delivery=None,
        delivery_as_of=None,
        problems=(str(error),),
    )
    output.write_result(msgspec.json.encode(document) + b"\n")
