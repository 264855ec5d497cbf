"""Values as they stand in a table's cells.  What is not known is a question mark, never a zero.

Not here: where they stand (`table`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from agent.core.units import GIB, format_gib

UNKNOWN: Final = "?"
_SEPARATORS: Final = "-._ "
"""Where a name is broken rather than elsewhere: before a hyphen, behind the others."""
_SMALLEST_SHOWN_BYTES: Final = GIB // 2000
"""Below half a thousandth three decimals would say 0."""


def format_size(size_bytes: int | None) -> str:
    """A size in GiB without the unit."""
    if size_bytes is None:
        return UNKNOWN
    if 0 < size_bytes <= _SMALLEST_SHOWN_BYTES:
        return "<0.001"
    return format_gib(size_bytes).removesuffix(" GiB")


def format_delta(delta_extents: int | None, extent_size_bytes: int | None) -> str:
    """A difference in GiB with its sign."""
    if delta_extents is None or extent_size_bytes is None:
        return UNKNOWN
    if delta_extents == 0:
        return "0"
    sign = "-" if delta_extents < 0 else "+"
    size = format_size(abs(delta_extents) * extent_size_bytes)
    digits = size.lstrip("<>")
    return f"{size.removesuffix(digits)}{sign}{digits}"


def format_extents(delta_extents: int | None) -> str:
    """A difference in extents with its sign."""
    if delta_extents is None:
        return UNKNOWN
    return f"{delta_extents:+}" if delta_extents else "0"


def fold_name(name: str, width: int) -> str:
    """Break a name into lines of at most `width` cells, at a hyphen, dot or underscore if there is one."""
    lines = []
    while len(name) > 1 and cell_width(name) > width:
        end = _fitting(name, width)
        separator = max(name.rfind(mark, 1, end) for mark in _SEPARATORS)
        if separator > 0:
            end = separator if name[separator] == "-" else separator + 1
        lines.append(name[:end])
        name = name[end:]
    return "\n".join((*lines, name))


def choose_widths(names: Sequence[tuple[str, str]], room: int, *, narrowest: int) -> tuple[int, int]:
    """Widths of two columns of names that share `room` cells: those that cost the fewest lines.

    Between equals the one that breaks fewer names where they have no separator.
    """
    natural = tuple(max(cell_width(pair[column]) for pair in names) for column in (0, 1))
    if sum(natural) <= room:
        return natural[0], natural[1]
    long = [pair for pair in names if max(map(cell_width, pair)) > narrowest]

    def cost(left: int) -> tuple[int, int]:
        folded = [(fold_name(pair[0], left), fold_name(pair[1], room - left)) for pair in long]
        lines = sum(max(name.count("\n") for name in pair) for pair in folded)
        return lines, sum(_count_hard_breaks(name) for pair in folded for name in pair)

    least = [min(narrowest, width) for width in natural]
    choices = range(max(least[0], room - natural[1]), min(natural[0], room - least[1]) + 1)
    left = min(choices, key=cost)
    return left, room - left


def _count_hard_breaks(folded: str) -> int:
    lines = folded.split("\n")
    return sum(above[-1] not in _SEPARATORS and below[:1] != "-" for above, below in pairwise(lines))


def cell_width(text: str) -> int:
    """Cells on a terminal: wide characters take two."""
    from rich.cells import cell_len  # noqa: PLC0415 - rich is loaded only when something is drawn

    return cell_len(text)


def _fitting(name: str, width: int) -> int:
    """How many characters fit, at least one."""
    count = 1
    while count < len(name) and cell_width(name[: count + 1]) <= width:
        count += 1
    return count
