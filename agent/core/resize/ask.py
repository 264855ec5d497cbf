"""What somebody asks for on a command line: ``docker=40``, ``docker=+10``, ``backup=25600MiB``.

All mistakes of all arguments are found at once.  Pure.  Not here: whether the names exist and the sizes
make sense (`rules`).
"""

from collections.abc import Iterable, Sequence

import msgspec

from agent.core.names import to_short, to_visible
from agent.core.resize.document import Code, Reason
from agent.core.units import parse_size

MAX_SUGGESTED_NAMES = 3
_MAX_SHOWN_CHARACTERS = 60

_HINT = (
    "write NAME=SIZE, for example docker=40 (GiB), docker=40GiB, docker=40960MiB, "
    "or docker=+10 (GiB more than recorded)"
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One asked resize.  Sizes are the inventory's: before the platform's factor."""

    name: str
    size_bytes: int
    is_relative: bool = False
    """The size is what comes on top of the recorded one."""
    text: str
    """The size as it was typed, for messages."""


def parse_asked(words: Iterable[str]) -> tuple[tuple[Asked, ...], tuple[Reason, ...]]:
    """Read all arguments: those that could be read, and one reason for each that could not.

    The first argument for a name counts; each further one is a reason.
    """
    asked: dict[str, Asked] = {}
    reasons: list[Reason] = []
    for word in words:
        try:
            one = _parse(word)
        except ValueError as error:
            reasons.append(_mistake("syntax", word, f"{_shown(word)}: {error}", _HINT))
            continue
        if one.name in asked:
            first = f"{_shown(one.name)}={asked[one.name].text}"
            message = f"{_shown(one.name)} is asked for twice: {first} and {_shown(word)}"
            reasons.append(_mistake("name_twice", one.name, message, "ask for one size of each filesystem"))
            continue
        asked[one.name] = one
    return tuple(asked.values()), tuple(reasons)


def _parse(word: str) -> Asked:
    try:
        word.encode()
    except UnicodeEncodeError:  # Python keeps such bytes as lone surrogates, and JSON can't hold them
        msg = "it is not UTF-8 text"
        raise ValueError(msg) from None
    name, equals, size = (part.strip(" ") for part in word.partition("="))
    if not equals:
        msg = "there is no = in it"
        raise ValueError(msg)
    if not name:
        msg = "there is no name before the ="
        raise ValueError(msg)
    if not size:
        msg = "there is no size after the ="
        raise ValueError(msg)
    if size.startswith("-"):
        msg = "a filesystem can't be made smaller"
        raise ValueError(msg)
    is_relative = size.startswith("+")
    number = size.removeprefix("+").lstrip(" ") if is_relative else size
    return Asked(name=name, size_bytes=parse_size(number), is_relative=is_relative, text=to_visible(size))


def _mistake(kind: str, subject: str, message: str, hint: str) -> Reason:
    return Reason(code=Code.RULE, kind=kind, subject=_shown(subject), message=message, hint=hint)


def _shown(text: str) -> str:
    """Typed text, harmless and of bearable length."""
    return to_short(text, _MAX_SHOWN_CHARACTERS)


def suggest_names(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """The known names that may have been meant, the nearest first; an LV's name leads to its filesystem."""
    import difflib  # noqa: PLC0415 - only after a mistake

    wanted = name.lower().removesuffix("-lv").replace("_", "-")
    close = difflib.get_close_matches(wanted, known, n=MAX_SUGGESTED_NAMES, cutoff=0.6)
    joined = wanted.replace("-", "")
    same = [one for one in known if one.replace("-", "") == joined and one not in close]
    return (*same, *close)[:MAX_SUGGESTED_NAMES]
