"""Flags that several commands share, checked while the command line is read.

Not here: what the values do (`agent.config.load` merges them, `wiring` uses them).
"""

import os
from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar, get_args

import click

from agent.config.schema import LogLevel
from agent.core.names import find_lvm_name_problem, to_visible

_Result = TypeVar("_Result")

EXIT_STATUSES: Final = """\b
Exit status:
  0    audited, nothing to say
  1    a bug (with traceback), or the result could not be written
  2    wrong command line
  3    drift: a recorded size differs from its LV, or its LV is missing
  4    configuration unreadable or invalid
  5    LVM could not be read
  6    recorded sizes unavailable
  7    the recorded sizes need more extents than can be allocated
  8    `agent preflight` only: busy, ask again later
  130  interrupted
The strongest of several wins: 5, 6, 4, 2, 7, 8, 3."""


def make_epilog(*examples: str) -> str:
    """What stands below a command's flags: how it is called, and what its exit status means.

    The backspace tells click to keep the lines as they are.
    """
    lines = "".join(f"  {example}\n" for example in examples)
    return f"\b\nExamples:\n{lines}\n{EXIT_STATUSES}"


Flags = dict[str, object]
"""Values by key path of the configuration; absent = not given."""


def _check_vgs(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        problem = find_lvm_name_problem(name)
        if problem is not None:
            raise click.BadParameter(problem)
        if names.count(name) > 1:
            msg = f"{name} is named {names.count(name)} times"
            raise click.BadParameter(msg)
    return names


def _check_inventory(_ctx: click.Context, _param: click.Parameter, spec: str | None) -> str | None:
    if spec is None or spec == "none":
        return spec
    kind, _, place = spec.partition(":")
    if place and (kind == "file" or (kind == "sysinv" and place.startswith(("http://", "https://")))):
        return spec
    msg = f"{to_visible(f'{spec!r:.80}')} is no inventory: use file:PATH, sysinv:URL or none"
    if spec.startswith(("/", "./")):
        msg += f" (did you mean file:{to_visible(spec)}?)"
    raise click.BadParameter(msg)


def check_path(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    """Refuse "", which a script's unset variable leaves: it would mean the current directory."""
    if path == "":
        msg = "the path is empty"
        raise click.BadParameter(msg)
    return path


def _absolute(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Flags are relative to where they are typed; the configuration knows only absolute paths."""
    checked = check_path(ctx, parameter, path)
    return None if checked is None else os.path.abspath(checked)  # noqa: PTH100 - pathlib costs start-up time


config_option = click.option(
    "--config",
    "config_path",
    metavar="PATH",
    callback=check_path,
    help="Configuration file instead of the default one.",
)
vg_option = click.option(
    "--vg",
    "volume_groups",
    metavar="NAME",
    multiple=True,
    callback=_check_vgs,
    help="Volume group; may be given several times.  [default: cgts-vg]",
)
inventory_option = click.option(
    "--inventory",
    metavar="SPEC",
    callback=_check_inventory,
    help="Where recorded sizes come from: file:PATH, sysinv:URL (http or https), or none.  [default: none]",
)
lvm_dir_option = click.option(
    "--lvm-dir",
    metavar="DIR",
    callback=_absolute,
    help="Directory of vgs and lvs; PATH is never searched.  [default: /usr/sbin]",
)
state_dir_option = click.option(
    "--state-dir", metavar="DIR", callback=_absolute, help="Directory for state instead of the default one."
)
log_level_option = click.option(
    "--log-level",
    type=click.Choice(get_args(LogLevel)),
    help="Log to stderr from this level on.",
)
no_report_option = click.option("--no-report", is_flag=True, help="Neither send nor store a report.")


_SHARED_OPTIONS: Final = (
    config_option,
    vg_option,
    inventory_option,
    lvm_dir_option,
    state_dir_option,
    log_level_option,
    no_report_option,
)


def shared_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Add the flags that every command has that reads the configuration.

    The command gets `config_path` and, as one `flags`, all the others that were given, by key path.
    """

    @wraps(command)
    def with_flags(
        *args: object,
        volume_groups: tuple[str, ...],
        inventory: str | None,
        lvm_dir: str | None,
        state_dir: str | None,
        log_level: str | None,
        no_report: bool,
        **others: object,
    ) -> _Result:
        flags = to_flags(
            volume_groups=volume_groups,
            inventory=inventory,
            lvm_dir=lvm_dir,
            state_dir=state_dir,
            log_level=log_level,
            no_report=no_report,
        )
        return command(*args, flags=flags, **others)

    for option in reversed(_SHARED_OPTIONS):
        with_flags = option(with_flags)
    return with_flags


def to_flags(
    *,
    volume_groups: tuple[str, ...] = (),
    inventory: str | None = None,
    lvm_dir: str | None = None,
    state_dir: str | None = None,
    log_level: str | None = None,
    no_report: bool = False,
) -> Flags:
    """The given flags by key path."""
    flags: Flags = {}
    if volume_groups:
        flags["audit.volume_groups"] = volume_groups
    if inventory is not None:
        kind, _, place = inventory.partition(":")
        flags["inventory.kind"] = kind
        if kind == "file":
            flags["inventory.path"] = os.path.abspath(place)  # noqa: PTH100 - as above
        elif kind == "sysinv":
            flags["inventory.url"] = place
    if lvm_dir is not None:
        flags["lvm.directory"] = lvm_dir
    if state_dir is not None:
        flags["agent.state_directory"] = state_dir
    if log_level is not None:
        flags["log.level"] = log_level
    if no_report:
        flags["report.url"] = None
    return flags


def named_groups(flags: Flags) -> tuple[str, ...]:
    """The volume groups that the command line names."""
    groups = flags.get("audit.volume_groups", ())
    return groups if isinstance(groups, tuple) else ()
