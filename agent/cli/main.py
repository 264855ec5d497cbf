"""The `agent` command: its group, and the one place where failures become exit statuses.

Not here: the commands (a module each, imported when asked for) and the wiring.
"""

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from agent import __version__
from agent.cli import output
from agent.cli.options import make_epilog
from agent.core.errors import AgentError, ExitCode

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring

_COMMANDS: Final = {
    "audit": ("agent.cli.audit", "audit"),
    "baseline": ("agent.cli.baseline", "baseline"),
    "config": ("agent.cli.config", "config"),
    "preflight": ("agent.cli.preflight", "preflight"),
    "run": ("agent.cli.run", "run"),
    "status": ("agent.cli.status", "status"),
}


class LazyGroup(click.Group):
    """Imports a command when it is needed: `agent --version` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 - the table above
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a name that is none gets a suggestion."""
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            ctx.fail(f"no such command: {args[0]!r}{_suggest(args[0])}")
        return super().resolve_command(ctx, args)


def _suggest(name: str) -> str:
    import difflib  # noqa: PLC0415 - only after a mistake

    close = difflib.get_close_matches(name, _COMMANDS, n=1)
    return f" (did you mean {close[0]!r}?)" if close else f" (there are: {', '.join(sorted(_COMMANDS))})"


@click.group(
    cls=LazyGroup,
    epilog=make_epilog(
        "agent audit --once                                  sizes as LVM has them",
        "agent baseline -o sizes.toml                        write them down",
        "agent audit --once --inventory file:sizes.toml      compare with them",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="agent", message="%(prog)s %(version)s")
def agent() -> None:
    """Compare the filesystem sizes that an inventory records with what LVM really has.

    It only ever reads: nothing on LVM or in the inventory is changed.
    """


def run(argv: Sequence[str], wiring: "Wiring | None" = None) -> int:
    """Run one command line and return its exit status; expected failures end as message and hint.

    `wiring` replaces the parts that commands work with; None = the real ones.
    """
    status = _run(argv, wiring)
    output.let_go_of_stderr()
    return status


def _run(argv: Sequence[str], wiring: "Wiring | None") -> int:
    is_stdout_closed = sys.stdout is None
    output.hold_standard_descriptors()
    if is_stdout_closed:
        output.show_error("stdout is closed: there is nowhere to write the result")
        return ExitCode.INTERNAL
    try:
        status = agent.main(list(argv), prog_name="agent", standalone_mode=False, obj=wiring)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        return _explain(error)
    except SystemExit:  # click's answer when the reader of a help text has gone
        return output.BROKEN_PIPE_STATUS
    return int(status or ExitCode.OK)


def _explain(error: BaseException) -> int:
    """Say what went wrong and give the exit status for it; what nobody expected is a bug."""
    if isinstance(error, click.UsageError):
        return _fail_usage(error)
    if isinstance(error, AgentError):
        output.show_agent_error(error)
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        output.show_error("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, output.OutputFailed):
        return _fail_output(error.reason)
    if isinstance(error, OSError) and error.filename is None and error.errno in _WRITE_ERRORS:
        return _fail_output(error)  # click wrote a help text
    return _fail_bug(error)


_WRITE_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})


def _fail_usage(error: click.UsageError) -> int:
    hint = getattr(error, "hint", None)
    if hint is None:
        command = "agent" if error.ctx is None else error.ctx.command_path
        hint = f"`{command} --help` shows what can be asked"
    output.show_error(error.format_message(), hint=hint)
    return ExitCode.USAGE


def _fail_output(error: OSError) -> int:
    output.silence_stdout()
    if error.errno == errno.EPIPE:
        return output.BROKEN_PIPE_STATUS
    output.show_error(f"the result could not be written to stdout: {error.strerror}")
    return ExitCode.INTERNAL


def _fail_bug(error: BaseException) -> int:
    import traceback  # noqa: PLC0415 - only for bugs

    output.show_lines("".join(traceback.format_exception(error)).splitlines())
    output.show_error("this is a bug, please report it with the lines above", hint=f"version {__version__}")
    return ExitCode.INTERNAL
