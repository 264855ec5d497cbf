"""The volume group as a bar: used, pending growth, and what stays free after that.

In extents, since LVM gives out nothing smaller.
Not here: whether the growth fits (`sentences`).
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from rich.text import Text

from agent.core.report import CapacitySection, VolumeGroupSection
from agent.core.units import format_gib

UNBREAKABLE: Final = "\N{NO-BREAK SPACE}"
"""Keeps a mark, its number and its unit on one line; whoever prints turns it into a space."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of the bar."""

    label: str
    mark: str
    style: str
    extents: int
    """Drawn; and named in the legend unless `named_extents` differs."""
    named_extents: int


_STYLES: Final = {
    "used": "blue",
    "pending": "yellow",
    "free": "green",
    "free after that": "green",
    "not allocatable": "red",
}


def split(volume_group: VolumeGroupSection, capacity: CapacitySection | None) -> tuple[Part, ...]:
    """The parts, left to right.  Their drawn extents add up to the volume group's."""
    pending = 0 if capacity is None else capacity.needed_extents
    drawn = min(pending, volume_group.allocatable_extents)
    parts = [
        _part("used", "#", volume_group.extent_count - volume_group.free_extents),
        _part("pending", "+", drawn, pending),
        # The free extents of `vgs` are named in the sentence below the bar: these are what growth leaves.
        _part("free after that" if pending else "free", ".", volume_group.allocatable_extents - drawn),
    ]
    lost = volume_group.free_extents - volume_group.allocatable_extents
    if lost:
        parts.append(_part("not allocatable", "x", lost))
    return tuple(part for part in parts if capacity is not None or part.label != "pending")


def _part(label: str, mark: str, extents: int, named_extents: int | None = None) -> Part:
    named = extents if named_extents is None else named_extents
    return Part(label=label, mark=mark, style=_STYLES[label], extents=extents, named_extents=named)


def scale(extents: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Widths of the parts: `width` together, and whatever exists is seen.

    Rounded by largest remainder after each part that is not empty got one cell.
    """
    total = sum(extents)
    if total == 0:
        return tuple(0 for _ in extents)
    shown = [1 if count else 0 for count in extents]
    rest = width - sum(shown)
    exact = [rest * count / total for count in extents]
    widths = [cell + int(share) for cell, share in zip(shown, exact, strict=True)]
    by_remainder = sorted(range(len(extents)), key=lambda index: int(exact[index]) - exact[index])
    for index in by_remainder[: width - sum(widths)]:
        widths[index] += 1
    return tuple(widths)


def draw_bar(
    volume_group: VolumeGroupSection, capacity: CapacitySection | None, width: int
) -> Iterator[Text]:
    """The bar and, below it, what each mark means."""
    parts = split(volume_group, capacity)
    total = f"] {volume_group.extent_count} extents"
    widths = scale(tuple(part.extents for part in parts), max(len(parts), width - 1 - len(total)))
    bar = Text("[", no_wrap=True)
    for part, cells in zip(parts, widths, strict=True):
        bar.append(part.mark * cells, style=part.style)
    yield bar.append(total)
    legend = Text()
    for part in parts:
        size = format_gib(part.named_extents * volume_group.extent_size_bytes)
        legend.append(part.mark, style=part.style)
        legend.append(f" {part.label} {part.named_extents} ({size})".replace(" ", UNBREAKABLE))
        legend.append("  ")
    yield legend
