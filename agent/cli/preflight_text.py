"""`agent preflight` as text: the verdict first, then the numbers, then every reason with its hint.

A pipe gets each reason on one line.  Not here: the answer (`agent.core.resize.preflight`).
"""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from agent.core.errors import ExitCode
from agent.core.names import to_visible
from agent.core.report import CapacitySection
from agent.core.resize.document import (
    AskedSection,
    Change,
    LedgerLine,
    PreflightDocument,
    Reason,
    exit_code_of,
)
from agent.core.units import format_gib

_MAX_SHOWN: Final = 50
_VERDICTS: Final = {True: "ALLOWED", False: "REFUSED", None: "CAN'T TELL"}
_COLOURS: Final = {True: "32", False: "31", None: "35"}
"""ANSI: green, red, magenta."""


def describe_preflight(
    document: PreflightDocument, *, with_ledger: bool, width: int | None = None, is_coloured: bool = False
) -> str:
    """The whole answer; `width` None = nothing is wrapped."""
    is_busy = exit_code_of(document.reasons) is ExitCode.BUSY
    verdict = "NOT NOW" if is_busy else _VERDICTS[document.allowed]
    shown = f"\x1b[1;{_COLOURS[document.allowed]}m{verdict}\x1b[0m" if is_coloured else verdict
    lines = [f"{shown}  {_describe_question(document)}"]
    lines += [f"  {_describe_asked(one)}" for one in document.asked[:_MAX_SHOWN]]
    lines += _more(len(document.asked))
    if document.capacity is not None:
        lines.append(_describe_capacity(document.capacity))
    for reason in document.reasons[:_MAX_SHOWN]:
        lines += _describe_reason(reason, width)
    lines += _more(len(document.reasons))
    if with_ledger and document.ledger is not None:
        lines += ["", *_draw_ledger(document.ledger)]
    return "".join(f"{line}\n" for line in lines)


def _more(count: int) -> Iterator[str]:
    if count > _MAX_SHOWN:
        yield f"  … and {count - _MAX_SHOWN} more (--format json has them all)"


def _describe_question(document: PreflightDocument) -> str:
    name = to_visible(document.volume_group_name)
    if document.question == "rebuild":
        return f"{name}: making every LV anew with its recorded size"
    return f"{name}: growing {len(document.asked)} filesystem{'' if len(document.asked) == 1 else 's'}"


def _describe_asked(asked: AskedSection) -> str:
    name = to_visible(asked.name)[:80]
    if asked.asked_bytes is None or asked.recorded_bytes is None:
        return f"{name}: unknown, {asked.text[:40]} asked"
    text = f"{name}: {format_gib(asked.recorded_bytes)} recorded, "
    text += "no LV" if asked.actual_bytes is None else f"{format_gib(asked.actual_bytes)} actual"
    return f"{text}, {format_gib(asked.asked_bytes)} asked ({to_visible(asked.logical_volume or '')})"


def _describe_capacity(capacity: CapacitySection) -> str:
    left = capacity.available_extents - capacity.needed_extents
    rest = f"{left} left" if left >= 0 else f"{-left} short"
    return f"  {capacity.needed_extents} of {capacity.available_extents} extents needed, {rest}"


def _describe_reason(reason: Reason, width: int | None) -> Iterator[str]:
    mark = reason.code if reason.blocks else f"warning: {reason.code}"
    yield from _wrap(f"{mark}: {reason.message}", width, "", "  ")
    if reason.hint:
        yield from _wrap(f"hint: {reason.hint}", width, "  ", "    ")


def _wrap(text: str, width: int | None, first: str, rest: str) -> list[str]:
    text = to_visible(text)
    if width is None:
        return [f"{first}{text}"]
    return textwrap.wrap(
        text, width=max(width, 40), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


_HEADINGS: Final = ("LV", "filesystem", "change", "before", "after", "needed", "free")


def _draw_ledger(ledger: Sequence[LedgerLine]) -> Iterator[str]:
    """One line for each LV, in extents; below zero the running total says how many are short."""
    rows = [
        (
            to_visible(line.logical_volume),
            to_visible(line.filesystem or "-"),
            "-" if line.change is Change.NONE else line.change.value,
            str(line.before_extents),
            str(line.after_extents),
            str(line.needed_extents),
            str(line.free_extents),
        )
        for line in ledger
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    for row in (_HEADINGS, *rows):
        cells = [
            cell.ljust(width) if number < 3 else cell.rjust(width)  # noqa: PLR2004 - texts, then numbers
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
