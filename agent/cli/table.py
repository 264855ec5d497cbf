"""Audit documents for people: 80 columns are enough, a pipe gets plain text with a filesystem a line.

Only ASCII is drawn: at three in the morning the terminal may be a serial console.  Not here: what is
said about capacity (`sentences`), the JSON (`output`).
"""

import io
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from agent.cli.bar import UNBREAKABLE, draw_bar
from agent.cli.cells import choose_widths, fold_name, format_delta, format_extents, format_size
from agent.cli.layers_text import describe_layers
from agent.cli.output import write_result
from agent.cli.sentences import describe_capacity, describe_header, describe_unrecorded
from agent.core.models import Finding, Severity
from agent.core.names import to_visible
from agent.core.report import (
    AuditDocument,
    AuditVerdict,
    FilesystemSection,
    FilesystemVerdict,
    LogicalVolumeSection,
    LvRole,
)

_PIPE_WIDTH: Final = 100_000
"""In a pipe nothing is wrapped: one filesystem and one finding are one line each."""
_NARROWEST: Final = 12
"""Name columns never get narrower, however small the terminal."""

_AUDIT_STYLES: Final = {
    AuditVerdict.CLEAN: "bold green",
    AuditVerdict.DRIFT: "bold yellow",
    AuditVerdict.DOES_NOT_FIT: "bold red",
    AuditVerdict.UNKNOWN: "bold magenta",
}
_FILESYSTEM_STYLES: Final = {
    FilesystemVerdict.UNKNOWN: "magenta",
    FilesystemVerdict.MATCH: "green",
    FilesystemVerdict.ROUNDING: "green",
    FilesystemVerdict.TRANSITION: "cyan",
    FilesystemVerdict.MISSING: "bold red",
    FilesystemVerdict.UNDERSIZED: "bold red",
    FilesystemVerdict.OVERSIZED: "bold yellow",
}
_SEVERITY_STYLES: Final = {
    Severity.INFO: "cyan",
    Severity.WARNING: "bold yellow",
    Severity.CRITICAL: "bold red",
}


def print_documents(documents: Sequence[AuditDocument], *, with_layers: bool = False) -> None:
    """Draw all documents on stdout."""
    write_result(render(documents, is_terminal=sys.stdout.isatty(), with_layers=with_layers))


def render(
    documents: Sequence[AuditDocument],
    *,
    is_terminal: bool,
    width: int | None = None,
    with_layers: bool = False,
) -> str:
    """Draw all documents into one text; `width` None = the terminal's.

    rich decides about colour: none in a pipe, none with NO_COLOR or TERM=dumb.
    """
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        force_terminal=is_terminal,
        width=width if is_terminal else _PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for number, document in enumerate(documents):
        if number:
            console.print()
        for block in _blocks(document, console.width, is_terminal=is_terminal):
            console.print(block)
        if with_layers and document.logical_volumes is not None:
            console.print()
            for line in describe_layers(document.logical_volumes):
                console.print(Text(line))
    # rich pads the last cell of each row.  Spaces that were not to be broken are now spaces for grep.
    text = buffer.getvalue().replace(UNBREAKABLE, " ")
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")[:-1])


def _blocks(document: AuditDocument, width: int, *, is_terminal: bool) -> Iterator[RenderableType]:
    """Everything about one volume group, top down."""
    yield _header(document)
    yield ""
    if document.filesystems:
        yield _filesystem_table(document, width)
        yield ""
    elif document.logical_volumes:
        yield _lv_table(document, width)
        yield ""
    if document.volume_group is not None:
        yield from draw_bar(document.volume_group, document.capacity, min(width, 100) if is_terminal else 80)
    yield from (Text(line) for line in describe_capacity(document))
    yield from (Text(line) for line in describe_unrecorded(document))
    if document.findings:
        yield ""
    for finding in document.findings:
        yield _finding(finding)


def _header(document: AuditDocument) -> Text:
    word, style = document.verdict.upper(), _AUDIT_STYLES[document.verdict]
    if document.verdict is AuditVerdict.CLEAN and not document.filesystems:
        word, style = "NOT COMPARED", "bold cyan"  # a green CLEAN would read as "all is well"
    return Text.assemble((word, style), "  ", describe_header(document))


def _filesystem_table(document: AuditDocument, width: int) -> Table:
    assert document.filesystems is not None  # noqa: S101 - asked by the caller
    rows = [_number_cells(document, filesystem) for filesystem in document.filesystems]
    headings = ("recorded\nGiB", "actual\nGiB", "diff\nGiB", "diff\nextents")
    fixed = sum(
        max(len(line) for cell in (heading, *column) for line in cell.split("\n")) + 1
        for heading, *column in zip(headings, *rows, strict=True)
    ) + len(FilesystemVerdict.UNDERSIZED)
    names, volumes = _name_columns(
        [(to_visible(item.name), to_visible(item.logical_volume)) for item in document.filesystems],
        width - fixed - 2,
    )
    table = _new_table()
    table.add_column("\nfilesystem", no_wrap=True)
    table.add_column("\nLV", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("\nverdict", no_wrap=True)
    for name, volume, numbers, item in zip(names, volumes, rows, document.filesystems, strict=True):
        style = _FILESYSTEM_STYLES[item.verdict]
        table.add_row(Text(name), Text(volume), *numbers, Text(item.verdict, style=style))
    return table


def _number_cells(document: AuditDocument, item: FilesystemSection) -> tuple[str, str, str, str]:
    group = document.volume_group
    extent_size_bytes = None if group is None else group.extent_size_bytes
    actual = "none" if item.verdict is FilesystemVerdict.MISSING else format_size(item.actual_bytes)
    return (
        format_size(item.recorded_bytes),
        actual,
        format_delta(item.delta_extents, extent_size_bytes),
        format_extents(item.delta_extents),
    )


def _lv_table(document: AuditDocument, width: int) -> Table:
    """What there is, when there is nothing to compare it with; "?" = recorded sizes exist, but not here."""
    recorded = ("?",) if document.verdict is AuditVerdict.UNKNOWN else ()
    table = _new_table()
    table.add_column("\nLV", no_wrap=True)
    for heading in ("recorded\nGiB" for _ in recorded):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("actual\nGiB", justify="right", no_wrap=True)
    table.add_column("\nextents", justify="right", no_wrap=True)
    table.add_column("\nrole", no_wrap=True)
    for lv in document.logical_volumes or ():
        if lv.role is not LvRole.PRIVATE:
            name = fold_name(to_visible(lv.name), max(_NARROWEST, width - 40))
            table.add_row(
                Text(name), *recorded, format_size(lv.size_bytes), str(lv.extents), _describe_role(lv)
            )
    return table


def _describe_role(lv: LogicalVolumeSection) -> str:
    return "" if lv.role is LvRole.PUBLIC else lv.role.replace("_", " ")


def _new_table() -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)


def _name_columns(names: list[tuple[str, str]], room: int) -> tuple[list[str], list[str]]:
    """Both name columns, folded so that they fit into `room` cells together."""
    widths = choose_widths(names, max(room, 2 * _NARROWEST), narrowest=_NARROWEST)
    return (
        [fold_name(pair[0], widths[0]) for pair in names],
        [fold_name(pair[1], widths[1]) for pair in names],
    )


def _finding(finding: Finding) -> Table:
    """Severity, subject and message; the hint below, indented alike."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    is_named = finding.message.startswith((finding.subject, f"volume group {finding.subject}"))
    subject = "" if is_named else f"{finding.subject}: "
    text = Text(to_visible(f"{subject}{finding.message}"), overflow="fold")
    grid.add_row(Text(finding.severity, style=_SEVERITY_STYLES[finding.severity]), text)
    if finding.hint:
        grid.add_row("", Text(to_visible(f"hint: {finding.hint}"), overflow="fold"))
    return grid
