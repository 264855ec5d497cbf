"""What is mounted where: /proc/self/mountinfo, by device number.  Pure.  Not here: reading the file."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_LEAST_FIELDS: Final = 10


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """One mounted filesystem."""

    path: str
    type: str
    is_whole: bool
    """The filesystem's own root is mounted there, not one of its directories (a bind mount)."""


def parse_mountinfo(text: str) -> Mapping[str, Mount]:
    """One mount for each device number (``254:2``): the first of a filesystem's root, else the first.

    Bind mounts and namespaces show a filesystem several times; its size is the same at each.  Lines that
    are not understood are left out: a mount that can't be named can't be asked either.
    """
    mounts: dict[str, Mount] = {}
    for line in text.split("\n"):
        fields = line.split(" ")
        if len(fields) < _LEAST_FIELDS or "-" not in fields[6:]:
            continue
        number, root, path = fields[2:5]
        separator = fields.index("-", 6)
        mount = Mount(path=_unescape(path), type=_unescape(fields[separator + 1]), is_whole=root == "/")
        known = mounts.get(number)
        if known is None or (mount.is_whole and not known.is_whole):
            mounts[number] = mount
    return mounts


def _unescape(text: str) -> str:
    r"""Turn ``\040`` into a space."""
    if "\\" not in text:
        return text
    # Only ASCII is written so (space, tab, newline, backslash, #): nothing is to be decoded again.
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8) & 0xFF), text)
