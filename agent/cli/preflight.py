"""`agent preflight`: whether these resizes would be safe now, or a rebuild from the records would work.

Not here: the answer (`agent.preflight`), its words (`preflight_text`).
"""

import os
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from agent.cli import options, output
from agent.cli.failure import asks_for_json, told_in_json
from agent.core.errors import AgentError
from agent.core.models import DEFAULT_VOLUME_GROUP

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring
    from agent.core.resize.document import PreflightDocument

_EPILOG = """\b
Examples:
  agent preflight docker=40
  agent preflight docker=+10 backup=25600MiB --explain
  agent preflight --all-recorded

\b
Exit status:
  0    allowed (warnings may be worth reading)
  2    wrong command line, unknown name, name twice, a shrink, a rule of the platform broken
  3    it would fit, but an earlier resize of another filesystem was never applied
  4    configuration unreadable or invalid
  5    LVM could not be read
  6    recorded sizes unavailable
  7    it does not fit
  8    busy: a resize, a DRBD resync or an LVM operation is under way; ask again later
  130  interrupted
The strongest of several wins: 5, 6, 4, 2, 7, 8, 3; all reasons are always listed."""


class PreflightCommand(click.Command):
    """Answers a command line that can't be understood in the format it asks for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a mistake in a command line that asks for JSON is also told in JSON."""
        with told_in_json(_print_refusal, is_wanted=asks_for_json(args)):
            return super().parse_args(ctx, args)


@click.command(
    cls=PreflightCommand, epilog=_EPILOG, short_help="Say before a resize whether it would be safe."
)
@click.argument("sizes", metavar="[NAME=SIZE]...", nargs=-1)
@click.option(
    "--all-recorded",
    is_flag=True,
    help="Ask instead whether all LVs could be made anew with their recorded sizes, as an upgrade does.",
)
@click.option("--explain", is_flag=True, help="Show each LV's extents before and after, and what is left.")
@options.shared_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json prints exactly one agent.preflight/v1 document, even on failure.",
)
@click.pass_context
def preflight(
    ctx: click.Context,
    *,
    sizes: tuple[str, ...],
    all_recorded: bool,
    explain: bool,
    output_format: str,
    config_path: str | None,
    flags: options.Flags,
) -> int:
    """Say before a resize whether it would be safe now.  Changes nothing.

    A plain number is GiB; docker=+10 means 10 GiB more than recorded.
    """
    is_json = output_format == "json"
    tell = partial(_print_refusal, groups=options.named_groups(flags), is_rebuild=all_recorded)
    with told_in_json(tell, is_wanted=is_json):
        document = _ask(ctx, sizes, config_path, flags, is_rebuild=all_recorded)
    return _print(document, is_json=is_json, with_ledger=explain)


def _ask(
    ctx: click.Context,
    sizes: tuple[str, ...],
    config_path: str | None,
    flags: options.Flags,
    *,
    is_rebuild: bool,
) -> "PreflightDocument":
    """The life of one question, from the configuration to the answer."""
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time
    from agent.cli.wiring_preflight import open_adviser  # noqa: PLC0415
    from agent.core.resize.ask import parse_asked  # noqa: PLC0415
    from agent.preflight import Question  # noqa: PLC0415

    if is_rebuild and sizes:
        raise click.UsageError("--all-recorded asks about the records alone: leave out NAME=SIZE", ctx)
    if not is_rebuild and not sizes:
        raise click.UsageError(
            "nothing is asked: give NAME=SIZE, for example docker=40, or --all-recorded", ctx
        )
    wiring: Wiring = ctx.obj or parts.Wiring()
    settings = wiring.load(config_path, flags).settings
    asked, mistakes = parse_asked(sizes)
    question = Question(
        volume_group=_choose_group(ctx, settings.audit.volume_groups),
        asked=asked,
        mistakes=mistakes,
        is_rebuild=is_rebuild,
    )
    with open_adviser(wiring, settings) as adviser:
        return adviser.answer(question)


def _choose_group(ctx: click.Context, groups: tuple[str, ...]) -> str:
    """The one that is asked about: of several configured ones, the platform's own."""
    if len(groups) == 1:
        return groups[0]
    if DEFAULT_VOLUME_GROUP in groups and ctx.get_parameter_source("volume_groups") is not (
        click.core.ParameterSource.COMMANDLINE
    ):
        return DEFAULT_VOLUME_GROUP
    msg = f"a question is about one volume group: name it with --vg (there are {', '.join(groups)})"
    raise click.UsageError(msg, ctx)


def _print(document: "PreflightDocument", *, is_json: bool, with_ledger: bool) -> int:
    from agent.core.resize.document import exit_code_of  # noqa: PLC0415 - start-up time

    if is_json:
        output.write_result(msgspec.json.encode(document) + b"\n")
    else:
        from agent.cli.preflight_text import describe_preflight  # noqa: PLC0415 - not for JSON

        is_terminal = sys.stdout.isatty()
        output.write_result(
            describe_preflight(
                document,
                with_ledger=with_ledger,
                width=shutil.get_terminal_size().columns if is_terminal else None,
                is_coloured=is_terminal
                and not os.environ.get("NO_COLOR")
                and os.environ.get("TERM") != "dumb",
            )
        )
    return exit_code_of(document.reasons)


def _print_refusal(error: AgentError, groups: tuple[str, ...] = (), *, is_rebuild: bool = False) -> None:
    """The one document of a question that could not be put."""
    from agent.core.resize.document import Reason  # noqa: PLC0415 - start-up time
    from agent.preflight import Question, refuse  # noqa: PLC0415

    name = groups[0] if groups else DEFAULT_VOLUME_GROUP
    question = Question(volume_group=name, is_rebuild=is_rebuild)
    output.write_result(msgspec.json.encode(refuse(question, [Reason.of_error(error)])) + b"\n")
