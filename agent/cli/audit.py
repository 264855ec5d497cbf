"""`agent audit --once`: one audit of each volume group, printed as a table or as one JSON document.

Not here: auditing (`agent.audit`), drawing (`table`), the answer when nothing could begin (`failure`).
"""

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from agent.cli import options, output
from agent.cli.failure import asks_for_json, print_failure, told_in_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.cli.wiring import Wiring
    from agent.config.load import Loaded
    from agent.core.report import AuditDocument


class AuditCommand(click.Command):
    """Answers a command line that can't be understood in the format it asks for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a mistake in a command line that asks for JSON is also told in JSON."""
        with told_in_json(partial(print_failure, ctx.obj), is_wanted=asks_for_json(args)):
            return super().parse_args(ctx, args)


@click.command(
    cls=AuditCommand,
    short_help="Compare recorded sizes with LVM, once.",
    epilog=options.make_epilog(
        "agent audit --once",
        "agent audit --once --inventory file:/etc/lvm-audit-agent/sizes.toml",
        "agent audit --once --vg cgts-vg --vg nova-local --format json",
    ),
)
@click.option("--once", is_flag=True, help="Audit once, now.  (The daemon is `agent run`.)")
@options.shared_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json prints exactly one document, even on failure: agent.audit/v1, or agent.audits/v1 for several "
    "volume groups.",
)
@click.option("--layers", is_flag=True, help="Show what sits on each LV as well; JSON always has it.")
@click.pass_context
def audit(
    ctx: click.Context,
    *,
    once: bool,
    config_path: str | None,
    output_format: str,
    layers: bool,
    flags: options.Flags,
) -> int:
    """Compare recorded sizes with LVM, and say whether the recorded sizes could be made true."""
    is_json = output_format == "json"
    tell = partial(print_failure, ctx.obj, volume_groups=options.named_groups(flags))
    with told_in_json(tell, is_wanted=is_json):
        _require_once(ctx, is_given=once)
        documents, status = _audit(ctx, flags, config_path)
        _print(documents, is_json=is_json, with_layers=layers)
    return status


def _require_once(ctx: click.Context, *, is_given: bool) -> None:
    if not is_given:
        raise click.UsageError("--once is missing: the daemon that repeats audits is `agent run`", ctx)


def _audit(
    ctx: click.Context, flags: options.Flags, config_path: str | None
) -> "tuple[tuple[AuditDocument, ...], int]":
    """The life of one audit, from the configuration to the exit status."""
    from agent.cli import wiring as parts  # noqa: PLC0415 - start-up time
    from agent.cli.wiring_reporting import report_once  # noqa: PLC0415
    from agent.core.errors import ExitCode, strongest  # noqa: PLC0415
    from agent.core.judge import exit_code_of  # noqa: PLC0415
    from agent.core.report import Trigger  # noqa: PLC0415

    wiring: Wiring = ctx.obj or parts.Wiring()
    loaded = wiring.load(config_path, flags)
    with wiring.open_auditor(loaded.settings) as auditor:
        documents = auditor.audit(loaded.settings.audit.volume_groups, Trigger.ONCE)
    documents, is_lost = report_once(loaded.settings, documents)
    _log(loaded, documents)
    code = strongest([exit_code_of(document) for document in documents])
    return documents, ExitCode.INVENTORY if is_lost and code is ExitCode.OK else code


def _print(documents: "tuple[AuditDocument, ...]", *, is_json: bool, with_layers: bool) -> None:
    if is_json:
        output.write_result(output.encode_documents(documents))
    else:
        from agent.cli.table import print_documents  # noqa: PLC0415 - rich is slow to import

        print_documents(documents, with_layers=with_layers)


def _log(loaded: "Loaded", documents: "Sequence[AuditDocument]") -> None:
    """One event for each audit, if somebody asked for a log; the result itself is on stdout anyway."""
    from agent.config.load import Origin  # noqa: PLC0415 - start-up time

    if loaded.origin_of("log.level") is Origin.DEFAULT:
        return
    from agent import log  # noqa: PLC0415 - start-up time

    log.configure(loaded.settings.log, stream=sys.stderr, environment=os.environ)
    for document in documents:
        log.get_logger().info(
            "audit.finished",
            audit_id=str(document.audit_id),
            trigger=document.trigger.value,
            vg=document.volume_group_name,
            verdict=document.verdict.value,
            drift_count=document.drift_count,
            free_extents=None if document.volume_group is None else document.volume_group.free_extents,
            lv_count=None if document.volume_group is None else document.volume_group.lv_count,
            finding_count=len(document.findings),
            duration_seconds=document.duration_seconds,
        )
