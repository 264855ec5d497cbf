"""LVM's JSON decoded into typed rows: releases 2.03.11 to 2.03.40, mended where LVM prints it wrong.

Not here: the rows' shapes (see `rows`), what they mean together (see `parse`).
"""

import math
import re
from typing import Final, TypeVar

import msgspec

from agent.core.lvm.rows import Listing, LogRow, LvRow, NameRow, Scalar, VgRow

_SEEN_CHARACTERS: Final = 120
_FALSE_WORDS: Final = frozenset({"", "0", "-1"})
_TRUE_WORDS: Final = frozenset({"1", "exported", "missing", "allocatable"})

_BACKSLASH: Final = re.compile(
    rb'(?P<lone>\\(?="\s*(?:,\s*"[a-z_0-9]+"\s*:|\}))|\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\.', re.DOTALL
)
"""A backslash that escapes nothing, or a legal escape (which is skipped).  Before 2.03.33 LVM escapes `"`
but not the backslash, so one at the end of a value hides the closing quote: the next field gives it away."""
_STRING_OR_COMMA: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|,(?=\s*[\]}])', re.DOTALL)
"""A whole string (so that only its inside is changed), or the comma too many that releases before 2.03.23
print in the command log.  Always succeeds at an opening quote, which keeps the time linear."""
_MISFIT: Final = re.compile(
    r"(?P<problem>.*) - at `\$\.report\[(?P<section>[0-9]+)\]"
    r"\.(?P<kind>vg|lv)\[(?P<row>[0-9]+)\]\.(?P<field>[a-z_]+)"
)
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")


class ReportError(ValueError):
    """What an LVM program printed is not the report it was asked for."""

    def __init__(self, program: str, reason: str) -> None:
        self.program = program
        """`vgs` or `lvs`: whose output it is."""
        self.reason = reason
        super().__init__(f"{program}: {reason}")


class Place(msgspec.Struct, frozen=True):
    """Where in an output a value stands."""

    program: str
    row: int
    name: str

    def error(self, field: str, value: Scalar, problem: str) -> ReportError:
        """The error about one field of this row."""
        return ReportError(
            self.program, f"row {self.row} ({self.name!r:.60}): {field} is {value!r:.60}, {problem}"
        )


class _VgSection(msgspec.Struct, frozen=True, kw_only=True):
    vg: list[VgRow]


class _LvSection(msgspec.Struct, frozen=True, kw_only=True):
    lv: list[LvRow]


class _NameSection(msgspec.Struct, frozen=True, kw_only=True):
    vg: list[NameRow]


class _VgDocument(msgspec.Struct, frozen=True, kw_only=True):
    report: list[_VgSection]
    log: list[LogRow] = []


class _LvDocument(msgspec.Struct, frozen=True, kw_only=True):
    report: list[_LvSection]
    log: list[LogRow] = []


class _NameDocument(msgspec.Struct, frozen=True, kw_only=True):
    report: list[_NameSection]
    log: list[LogRow] = []


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """What an output held beside its rows."""

    log: tuple[LogRow, ...]
    repairs: int
    """Places that were no legal JSON and were put right: lone backslashes, raw control characters."""


def decode_vgs(output: bytes) -> tuple[list[VgRow], Extras]:
    """Decode a `vgs` report.

    Raises:
        ReportError: not a complete report with every field that was asked for.
    """
    document, repairs = _decode("vgs", output, _VgDocument)
    rows = [row for section in document.report for row in section.vg]
    return rows, Extras(log=tuple(document.log), repairs=repairs)


def decode_lvs(output: bytes) -> tuple[list[LvRow], Extras]:
    """Decode an `lvs` report.

    Raises:
        ReportError: not a complete report with every field that was asked for.
    """
    document, repairs = _decode("lvs", output, _LvDocument)
    rows = [row for section in document.report for row in section.lv]
    return rows, Extras(log=tuple(document.log), repairs=repairs)


def decode_names(output: bytes) -> list[NameRow]:
    """Decode the `vgs` report about what is there.

    Raises:
        ReportError: not a complete report with every field that was asked for.
    """
    document, _ = _decode("vgs", output, _NameDocument)
    return [row for section in document.report for row in section.vg]


_Document = TypeVar("_Document", _VgDocument, _LvDocument, _NameDocument)


def _decode(program: str, output: bytes, shape: type[_Document]) -> tuple[_Document, int]:
    """Decode as it is, and once more after repairs when it is no legal JSON; also returns their number."""
    repairs = 0
    try:
        try:
            document = msgspec.json.decode(output, type=shape, strict=False)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            output, repairs = _repair(output)
            document = msgspec.json.decode(output, type=shape, strict=False)
    except msgspec.ValidationError as error:
        raise ReportError(program, _describe_misfit(output, str(error))) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReportError(program, f"{error}; {_describe_seen(output)}") from error
    if not document.report:
        raise ReportError(program, "the report has no section")
    return document, repairs


def _describe_misfit(output: bytes, problem: str) -> str:
    """Name row and field, and show what stands there."""
    match = _MISFIT.search(problem)
    try:
        document = msgspec.json.decode(output)
    except (msgspec.DecodeError, RecursionError):  # the misfit stood before what is no JSON at all
        match = None
    if match is None:
        return f"{problem}; {_describe_seen(output)}"
    row = document["report"][int(match["section"])][match["kind"]][int(match["row"])]
    name = row.get("lv_name", row.get("pv_name", row.get("vg_name")))
    field = match["field"]
    return f"row {match['row']} ({name!r:.60}): {field} is {row[field]!r:.60}: {match['problem']}"


def _repair(output: bytes) -> tuple[bytes, int]:
    """Put right what LVM is known to print wrong inside strings, and count the places."""
    repairs = 0

    def escape_backslash(match: re.Match[bytes]) -> bytes:
        nonlocal repairs
        if match["lone"] is None:
            return match[0]
        repairs += 1
        return rb"\\"

    def escape_control(match: re.Match[bytes]) -> bytes:
        nonlocal repairs
        repairs += 1
        return b"\\u%04x" % match[0][0]

    def clean(match: re.Match[bytes]) -> bytes:
        return b"" if match[0] == b"," else _CONTROL.sub(escape_control, match[0])

    output = _BACKSLASH.sub(escape_backslash, output)
    return _STRING_OR_COMMA.sub(clean, output), repairs


def _describe_seen(output: bytes) -> str:
    """Say what an output began with, short and harmless on a terminal."""
    if not output.strip():
        return "it printed nothing"
    return f"it began with {output[:_SEEN_CHARACTERS].decode('utf-8', 'replace')!a} ({len(output)} bytes)"


def to_percent(value: str | float, place: Place, field: str) -> float | None:
    """Read a percentage; None for -1, which some releases print for undefined.

    Raises:
        ReportError: not a number.
    """
    try:
        percent = float(value)
    except (ValueError, OverflowError):
        percent = math.nan
    if not math.isfinite(percent):
        raise place.error(field, value, "not a percentage")
    return None if percent < 0 else percent


def to_flag(value: Scalar, place: Place, field: str) -> bool:
    """Read a yes or no: 1, 0, a word, or nothing for no.

    Raises:
        ReportError: a word that is not known.
    """
    word = "" if value is None else str(value)
    if word in _TRUE_WORDS:
        return True
    if word in _FALSE_WORDS:
        return False
    raise place.error(field, value, "neither yes nor no")


def to_words(value: Listing) -> tuple[str, ...]:
    """Read a list field: joined with commas, or an array."""
    if not value:
        return ()
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)
