"""Sizes: parsing what people write, formatting what people read.  All arithmetic is in integers.

Not here: anything that knows about volume groups (see `extents.space`).
"""

import re
from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3

MAX_BYTES: Final = 2**63 - 1
"""The largest size accepted anywhere, in bytes: LVM and the kernel count in signed 64 bit."""

_UNITS: Final = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
_SIZE: Final = re.compile(r"(?P<number>[0-9]+)(?: ?(?P<unit>B|KiB|MiB|GiB))?", re.ASCII)


def parse_size(value: object) -> int:
    """Turn ``30`` or ``"30"`` (GiB), ``"30GiB"``, ``"8000 MiB"`` or ``"512B"`` into bytes.

    Raises:
        ValueError: not a positive whole number with one of the known units, or above 2**63 - 1 bytes.
    """
    if isinstance(value, int) and value > MAX_BYTES:
        # Told apart first: Python makes no text of a number of more than 4300 digits.
        msg = "a size above 2^63 bytes does not exist"
        raise ValueError(msg)
    match = None if isinstance(value, bool) else _SIZE.fullmatch(str(value))
    if match is None or not isinstance(value, int | str):
        msg = f"{value!r:.60} is not a size: write a whole number of GiB, or add GiB, MiB, KiB or B"
        raise ValueError(msg)
    digits = match["number"].lstrip("0")
    if not digits:
        msg = "a size of 0 makes no filesystem"
        raise ValueError(msg)
    if len(digits) > len(str(MAX_BYTES)):
        msg = "a size above 2^63 bytes does not exist"
        raise ValueError(msg)
    size_bytes = int(digits) * _UNITS[match["unit"] or "GiB"]
    if size_bytes > MAX_BYTES:
        msg = f"{value!r:.60} is above 2^63 bytes, which no volume can have"
        raise ValueError(msg)
    return size_bytes


def format_exact(size_bytes: int) -> str:
    """Write a size so that `parse_size` gives exactly the same bytes back: MiB, or B when odd."""
    if size_bytes % MIB == 0:
        return f"{size_bytes // MIB}MiB"
    return f"{size_bytes}B"


def format_gib(size_bytes: int) -> str:
    """Write a size for people: ``16.156 GiB``, at most three decimals.

    A size that only looks whole because of the rounding says so, as LVM does: ``<1 GiB``, ``>1 GiB``.
    """
    thousandths = round(1000 * size_bytes / GIB)
    if thousandths % 1000:
        return f"{thousandths / 1000:.3f}".rstrip("0") + " GiB"
    shown_bytes = thousandths // 1000 * GIB
    sign = "<" if size_bytes < shown_bytes else ">" if size_bytes > shown_bytes else ""
    return f"{sign}{thousandths // 1000} GiB"


def ceil_div(dividend: int, divisor: int) -> int:
    """Divide and round up, exactly."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return ceil_div(value, multiple) * multiple
