"""Puts the effective configuration together: flag > environment > file > default.

Collects every problem before it gives up.  Not here: what keys there are (`schema`).
"""

import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NoReturn, cast

import msgspec

from agent.config.schema import (
    DEFAULT_PATH,
    Key,
    Settings,
    find_contradictions,
    find_value_problems,
    list_keys,
)
from agent.core.errors import ConfigError
from agent.core.names import show_value, to_visible
from agent.core.toml import decode_toml

_MAX_FILE_BYTES: Final = 1024 * 1024


class Origin(StrEnum):
    """Who set a value, the weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A value as somebody gave it, before it is checked."""

    key: Key
    value: object
    origin: Origin
    name: str
    """What messages call it: a key path, variable or flag."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration and who set what."""

    settings: Settings
    origins: Mapping[str, Origin]
    """By key path; keys that are not in it have their default."""
    path: str | None
    """The file that was read; None = there was none."""

    def origin_of(self, path: str) -> Origin:
        """Who set the key."""
        return self.origins.get(path, Origin.DEFAULT)


def load(
    *,
    path: str | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    default_path: str = DEFAULT_PATH,
) -> Loaded:
    """Read, check and merge all sources.

    `flags` has values by key path, absent when not given.  `path` None means the default file, which
    may be absent.

    Raises:
        ConfigError: with every problem that was found in any source.
    """
    document = _read_document(path, default_path)
    keys = {key.path: key for key in list_keys()}
    problems: list[str] = []
    given = [
        *_given_by_systemd(environment, keys),
        *_given_by_file(document or {}, keys, problems),
        *_given_by_environment(environment, keys, problems),
        *_given_by_flags(flags, keys),
    ]
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for item in given:
        value = _convert(item, problems)
        if value is not _INVALID:
            values[item.key.path] = value
            origins[item.key.path] = item.origin
    if flags.get("inventory.kind") in {"none", "sysinv"}:
        values["inventory.path"] = None  # the flag replaces the file that the configuration names
    settings = _build(values)
    if not problems:
        problems.extend(f"{name}: {problem}" for name, problem in find_contradictions(settings))
    used_path = (path or default_path) if document is not None else None
    if problems:
        raise ConfigError(subject=to_visible(used_path or "configuration"), problems=tuple(problems))
    return Loaded(settings=settings, origins=origins, path=used_path)


def _build(values: Mapping[str, object]) -> Settings:
    tree: dict[str, object] = {}
    for path, value in values.items():
        *sections, name = path.split(".")
        table = tree
        for section in sections:
            table = cast("dict[str, object]", table.setdefault(section, {}))
        table[name] = value
    return msgspec.convert(tree, Settings)


def _read_document(path: str | None, default_path: str) -> dict[str, object] | None:
    """The file's tables; None when the default file is not there."""
    if path is None and not os.path.lexists(default_path):
        return None
    name = default_path if path is None else path
    try:
        return decode_toml(_read_bytes(name))
    except OSError as error:
        _refuse(name, f"can't be read: {error.strerror}")
    except ValueError as error:
        _refuse(name, str(error))


def _read_bytes(path: str) -> bytes:
    """Read a regular file of sane size; O_NONBLOCK keeps a FIFO without a writer from hanging us."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            msg = "is not a regular file"
            raise ValueError(msg)
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        msg = "is larger than 1 MiB"
        raise ValueError(msg)
    return data


def _refuse(path: str, problem: str) -> NoReturn:
    raise ConfigError(subject=to_visible(path), problems=(problem,)) from None


def _given_by_file(
    table: Mapping[str, object], keys: Mapping[str, Key], problems: list[str], prefix: str = ""
) -> Iterator[Given]:
    """The values of one table and the tables in it."""
    below = [path.removeprefix(prefix) for path in keys if path.startswith(prefix)]
    names = dict.fromkeys(path.partition(".")[0] for path in below)
    for name, value in table.items():
        path = prefix + name
        if name not in names or "." in name:
            kind = "section" if isinstance(value, dict) else "key"
            problems.append(f"{prefix}{_quoted(name)}: unknown {kind}{_near(name, names)}")
        elif path in keys:
            yield Given(key=keys[path], value=value, origin=Origin.FILE, name=path)
        elif isinstance(value, dict):
            yield from _given_by_file(value, keys, problems, f"{path}.")
        else:
            problems.append(f"{path}: must be a table: write [{path}]")


def _given_by_systemd(environment: Mapping[str, str], keys: Mapping[str, Key]) -> Iterator[Given]:
    """StateDirectory= of the unit replaces a default, no more; it may name several."""
    directory = environment.get("STATE_DIRECTORY", "").split(":")[0]
    if directory:
        key = keys["agent.state_directory"]
        yield Given(key=key, value=directory, origin=Origin.DEFAULT, name="STATE_DIRECTORY")


def _given_by_environment(
    environment: Mapping[str, str], keys: Mapping[str, Key], problems: list[str]
) -> Iterator[Given]:
    """Variables of our sections; other AGENT_ names belong to somebody else (build servers set some)."""
    variables = {key.variable: key for key in keys.values()}
    prefixes = tuple({variable[: -len(key.name)] for variable, key in variables.items()})
    for name, text in environment.items():
        if name in variables:
            key = variables[name]
            value = tuple(part.strip() for part in text.split(",")) if key.is_list else text
            yield Given(key=key, value=value, origin=Origin.ENVIRONMENT, name=name)
        elif name.startswith(prefixes):
            problems.append(f"{to_visible(name)}: unknown environment variable{_near(name, variables)}")


def _given_by_flags(flags: Mapping[str, object], keys: Mapping[str, Key]) -> Iterator[Given]:
    for path, value in flags.items():
        yield Given(key=keys[path], value=value, origin=Origin.FLAG, name=path)


_INVALID: Final = object()


def _convert(item: Given, problems: list[str]) -> object:
    """The value in its declared type, or `_INVALID` with its problems noted."""
    try:
        value: object = msgspec.convert(
            item.value, type=item.key.type, strict=item.origin is not Origin.ENVIRONMENT
        )
    except msgspec.ValidationError:
        value = _INVALID
    # NaN passes every comparison of a range; TOML has no null, so None comes from nowhere.
    if value is _INVALID or (isinstance(value, float) and not math.isfinite(value)):
        problems.append(f"{item.name}: must be {item.key.expectation}, not {show_value(item.value)}")
        return _INVALID
    if item.origin is Origin.FLAG:
        return value  # checked where the command line was read, as a usage error
    found = [f"{item.name}: {problem}" for problem in find_value_problems(item.key.path, value)]
    problems.extend(found)
    return _INVALID if found else value


def _quoted(name: str) -> str:
    return to_visible(name) if name.isidentifier() else to_visible(f"{name!r:.60}")


def _near(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant, or at everything there is."""
    import difflib  # noqa: PLC0415 - only after a mistake

    close = difflib.get_close_matches(name, list(known), n=2)
    if close:
        return f" (did you mean {' or '.join(close)}?)"
    return f" (known: {', '.join(known)})"
