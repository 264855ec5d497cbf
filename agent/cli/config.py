"""`agent config check` and `agent config show`.

Not here: what keys there are (`agent.config.schema`).
"""

from typing import TYPE_CHECKING

import click

from agent.cli import options, output

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring
    from agent.config.load import Loaded


@click.group()
def config() -> None:
    """Check or show the configuration.

    A flag beats the environment (AGENT_<SECTION>_<KEY>, lists separated by commas), which beats the file,
    which beats the default.
    """


@config.command(epilog=options.make_epilog("agent config check --config ./agent.toml"))
@options.shared_options
@click.pass_context
def check(
    ctx: click.Context,
    *,
    config_path: str | None,
    flags: options.Flags,
) -> None:
    """Check the configuration file and the environment; every mistake is listed."""
    loaded = _load(ctx, config_path, flags)
    output.write_result(f"the configuration is valid ({_describe_source(loaded)})\n")


@config.command(epilog=options.make_epilog("agent config show", "agent config show > agent.toml"))
@options.shared_options
@click.pass_context
def show(
    ctx: click.Context,
    *,
    config_path: str | None,
    flags: options.Flags,
) -> None:
    """Print the effective configuration as TOML: every key, why one would change it, and who set it."""
    from agent.config.show import show as show_toml  # noqa: PLC0415 - start-up time

    output.write_result(show_toml(_load(ctx, config_path, flags)))


def _load(ctx: click.Context, config_path: str | None, flags: options.Flags) -> "Loaded":
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time

    wiring: Wiring = ctx.obj or parts.Wiring()
    return wiring.load(config_path, flags)


def _describe_source(loaded: "Loaded") -> str:
    return "no file, defaults only" if loaded.path is None else loaded.path
