"""`agent status`: what was last seen, delivered and is still held, with or without a running daemon.

Not here: where it is read from (`wiring_status`), its words (`status_text`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli import options, output

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring


@click.command(epilog=options.EXIT_STATUSES)
@options.config_option
@options.state_dir_option
@options.log_level_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one agent.status/v1 document.",
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
    from agent.cli.wiring_status import put_back, read_status  # noqa: PLC0415

    wiring: Wiring = ctx.obj or parts.Wiring()
    flags = options.to_flags(state_dir=state_dir, log_level=log_level)
    directory = Path(wiring.load(config_path, flags).settings.agent.state_directory)
    if retry:
        count = put_back(directory)
        output.show_lines([f"{count} set-aside report{'' if count == 1 else 's'} put back to be sent again"])
    document = read_status(directory)
    if output_format == "json":
        output.write_result(msgspec.json.encode(document) + b"\n")
        return
    from agent.cli.status_text import describe_status  # noqa: PLC0415 - not for JSON

    lines = describe_status(document, wiring.clock.now())
    output.write_result("".join(f"{line}\n" for line in lines))
