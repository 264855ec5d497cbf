"""What an asked resize must satisfy whatever room there is: it names something, and the platform allows it.

Only the rules that the record's inventory has: a file knows none of sysinv's.  Pure.  Not here: room
(`preflight`), what is going on on the host (`busy`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from agent.core.models import Phase, RecordedFilesystem, Source
from agent.core.names import to_visible
from agent.core.resize.ask import Asked, suggest_names
from agent.core.resize.document import Code, Reason
from agent.core.units import GIB, MAX_BYTES, format_exact, format_gib

BACKUP_OVERHEAD_BYTES = 5 * GIB
"""What sysinv wants backup to hold beside one copy of platform and one of database."""

MAX_SUGGESTED_MISTAKES = 20
"""So many unknown names get suggestions: looking for near names is slow, and nobody reads more."""


class Resize(msgspec.Struct, frozen=True, kw_only=True):
    """An asked resize whose filesystem is known."""

    record: RecordedFilesystem
    size_bytes: int
    """What the LV would be, after the platform's factor."""
    text: str


def resolve(
    volume_group: str, filesystems: Sequence[RecordedFilesystem], asked: Iterable[Asked]
) -> tuple[tuple[Resize, ...], tuple[Reason, ...]]:
    """Find what each asked name means; a reason for each that means nothing here."""
    here: dict[str, RecordedFilesystem] = {}
    elsewhere: dict[str, RecordedFilesystem] = {}
    for row in filesystems:
        (here if row.volume_group == volume_group else elsewhere).setdefault(row.name, row)
    resizes: list[Resize] = []
    reasons: list[Reason] = []
    for one in asked:
        record = here.get(one.name)
        if record is None:
            is_helped = len(reasons) < MAX_SUGGESTED_MISTAKES
            reasons.append(
                _unknown(volume_group, one.name, here, elsewhere.get(one.name), is_helped=is_helped)
            )
            continue
        size_bytes = one.size_bytes * factor_of(record) + (record.recorded_bytes if one.is_relative else 0)
        resizes.append(Resize(record=record, size_bytes=size_bytes, text=one.text))
    return tuple(resizes), tuple(reasons)


def factor_of(record: RecordedFilesystem) -> int:
    """How many times the recorded number its LV holds: sysinv gives a database twice its size."""
    return max(1, (record.granularity_bytes or GIB) // GIB)


def _unknown(
    volume_group: str,
    name: str,
    here: Mapping[str, RecordedFilesystem],
    elsewhere: RecordedFilesystem | None,
    *,
    is_helped: bool,
) -> Reason:
    shown = to_visible(name)[:60]
    hint = f"recorded are: {', '.join(here)}" if here else f"nothing is recorded on {volume_group}"
    if elsewhere is not None:
        hint = (
            f"it is recorded on volume group {elsewhere.volume_group}: ask with --vg {elsewhere.volume_group}"
        )
    elif is_helped:
        near = suggest_names(name, tuple(here)) or _by_volume(name, here)
        hint = f"did you mean {' or '.join(near)}?" if near else hint
    message = f"no filesystem named {shown!r} is recorded on {volume_group}"
    return Reason(code=Code.RULE, kind="unknown_name", subject=shown, message=message, hint=hint)


def _by_volume(name: str, here: Mapping[str, RecordedFilesystem]) -> tuple[str, ...]:
    """The filesystem whose LV has that name: database for pgsql-lv."""
    return tuple(row.name for row in here.values() if row.logical_volume in (name, f"{name}-lv"))


def find_broken_rules(records: Sequence[RecordedFilesystem], resizes: Sequence[Resize]) -> Iterator[Reason]:
    """Every rule that a resize breaks."""
    for resize in resizes:
        yield from _check_size(resize)
        yield from _check_state(resize.record)
    yield from _check_backup(records, resizes)


def _check_size(resize: Resize) -> Iterator[Reason]:
    record = resize.record
    recorded, asked = format_gib(record.recorded_bytes), format_gib(resize.size_bytes)
    is_platform = record.source is not Source.FILE
    if resize.size_bytes > MAX_BYTES:
        yield _broken("overflow", record, f"{record.name}={resize.text} is above 2^63 bytes")
        return
    if resize.size_bytes < record.recorded_bytes:
        text = f"{record.name} can't be made smaller: {recorded} are recorded, {asked} asked"
        yield _broken(
            "shrink", record, text, "only growing is supported; nothing shrinks a mounted filesystem safely"
        )
    elif resize.size_bytes == record.recorded_bytes and is_platform:
        larger = record.recorded_bytes // (GIB * factor_of(record)) + 1
        text = (
            f"{record.name} is recorded with {recorded} already, and the platform refuses the same size again"
        )
        yield _broken("not_larger", record, text, f"ask for {larger} or more")
    step = record.granularity_bytes
    if step is not None and resize.size_bytes % step:
        text = f"{record.name}={resize.text} is no whole number of GiB, and its inventory counts in whole GiB"
        yield _broken("whole_gib", record, text, f"ask for {-(-resize.size_bytes // step)}")


def _check_state(record: RecordedFilesystem) -> Iterator[Reason]:
    if not (record.phase.is_deleting or record.phase.waits_for_unlock):
        return
    state = record.state or record.phase
    doing = "is being removed" if record.phase.is_deleting else "does not exist yet"
    hint = "unlock the host first" if record.phase is Phase.CREATING_ON_UNLOCK else None
    yield _broken("state", record, f"{record.name} {doing} (state {state}): it can't be resized", hint)


_BACKED_UP = ("platform", "database")


def _check_backup(records: Sequence[RecordedFilesystem], resizes: Sequence[Resize]) -> Iterator[Reason]:
    """sysinv: backup must hold platform, database and 5 GiB; here a database counts only once."""
    rows = {row.name: row for row in records if row.source is not Source.FILE}
    if any(name not in rows for name in ("backup", *_BACKED_UP)):
        return
    sizes = {name: rows[name].recorded_bytes // factor_of(rows[name]) for name in ("backup", *_BACKED_UP)}
    asked = {
        resize.record.name: resize.size_bytes // factor_of(resize.record)
        for resize in resizes
        if resize.record.name in sizes
    }
    sizes.update(asked)
    wanted = sum(sizes[name] for name in _BACKED_UP) + BACKUP_OVERHEAD_BYTES
    if not asked or sizes["backup"] >= wanted:
        return
    text = (
        f"backup would have {format_gib(sizes['backup'])}, but platform ({format_gib(sizes['platform'])}) "
        f"+ database ({format_gib(sizes['database'])}) + 5 GiB need {format_gib(wanted)}"
    )
    size = wanted // GIB if wanted % GIB == 0 else format_exact(wanted)
    yield _broken("backup_too_small", rows["backup"], text, f"ask for backup={size} as well")


def _broken(kind: str, record: RecordedFilesystem, message: str, hint: str | None = None) -> Reason:
    return Reason(
        code=Code.RULE,
        kind=kind,
        subject=record.name,
        message=message,
        hint=hint,
        logical_volume=record.logical_volume,
    )
