"""Names: which ones LVM can have, and how text from outside is shown without doing anything.

Not here: whether anything of that name exists.
"""

import re
import unicodedata
from typing import Final

_LVM_NAME: Final = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]*", re.ASCII)
MAX_NAME_LENGTH: Final = 127
"""LVM's NAME_LEN is 128 with the closing NUL."""

_RIGHT_TO_LEFT: Final = frozenset(
    {"R", "AL", "AN", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "PDF", "PDI", "FSI"}
)


def find_lvm_name_problem(name: str) -> str | None:
    """Say why no volume group or LV can have this name; None when one can.

    The rules of lvm2's validate_name: letters, digits and ``+_.-``, no hyphen first (it would be an
    option), neither ``.`` nor ``..`` (they are directories below /dev).
    """
    if not name:
        return "the name is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"the name has {len(name)} characters, LVM allows {MAX_NAME_LENGTH}"
    if name in {".", ".."} or _LVM_NAME.fullmatch(name) is None:
        shown = f"{to_visible(name)!r:.60}"
        return f"{shown} is no LVM name: letters, digits and + _ . - are allowed, no hyphen first"
    return None


def to_visible(text: str) -> str:
    """Text from outside, made harmless for a terminal: nothing in it moves, colours or reorders.

    Control and format characters, lone surrogates and right-to-left letters become backslash escapes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() and unicodedata.bidirectional(character) not in _RIGHT_TO_LEFT
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def to_short(text: str, limit: int) -> str:
    """Text from outside as `to_visible` shows it, cut at `limit` characters."""
    shown = to_visible(text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def show_value(value: object, limit: int = 60) -> str:
    """A value from outside as it may stand in a message: short and harmless."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more than 4300 digits, alone or in a list, has no repr
        return "a huge number"
    return to_short(text, limit)
