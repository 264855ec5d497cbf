"""Recorded sizes from a TOML file, for hosts without an inventory API.

Reads and checks the whole file and lists every mistake at once.  Not here: writing one
(`agent baseline`), judging the sizes.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

import msgspec

from agent.core.errors import RecordedFileInvalid
from agent.core.models import RecordedFilesystem, RecordedSizes, Source
from agent.core.names import find_lvm_name_problem, show_value, to_visible
from agent.core.toml import decode_toml
from agent.core.units import GIB, parse_size

MAX_FILE_BYTES: Final = 1024 * 1024
"""Far above any host's needs: a larger file is the wrong file."""

MAX_SHOWN_PROBLEMS: Final = 50

_ROW_KEYS: Final = ("name", "logical_volume", "volume_group", "size")
_FILE_KEYS: Final = ("whole_gib", "filesystem")


class FileInventory:
    """The recorded-size file at `path`, read anew by each `fetch`."""

    def __init__(self, path: str, *, default_volume_group: str) -> None:
        self._path = path
        self._default_volume_group = default_volume_group
        self._last: tuple[bytes, RecordedSizes] | None = None

    @property
    def origin(self) -> str:
        """The path, safe to print."""
        return to_visible(self._path)

    def fetch(self) -> RecordedSizes:
        """Read all rows, in the file's order.

        The file is read each time, but the same bytes are not parsed again: tomllib takes 20 ms for
        1,000 rows, as long as all the judging.

        Raises:
            RecordedFileInvalid: with every mistake that was found.
        """
        data = self._read()
        if self._last is None or self._last[0] != data:
            self._last = data, self._parse(data)
        return self._last[1]

    def _parse(self, data: bytes) -> RecordedSizes:
        check = _Check(self._decode(data), self._default_volume_group)
        filesystems = check.run()
        if check.problems:
            self._refuse(*check.problems)
        return RecordedSizes(filesystems=filesystems, origin=self.origin)

    def _read(self) -> bytes:
        try:
            # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    self._refuse("is not a regular file")
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            self._refuse(f"can't be read: {error.strerror}")
        except ValueError:  # a NUL in the path
            self._refuse("no file can have this name")
        if len(data) > MAX_FILE_BYTES:
            self._refuse("is larger than 1 MiB, which no recorded-size file is")
        return data

    def _decode(self, data: bytes) -> dict[str, object]:
        try:
            return decode_toml(data)
        except ValueError as error:
            self._refuse(str(error))

    def _refuse(self, *problems: str) -> NoReturn:
        shown = problems[:MAX_SHOWN_PROBLEMS]
        if len(problems) > len(shown):
            shown = (*shown, f"and {len(problems) - len(shown)} more")
        raise RecordedFileInvalid(subject=self.origin, problems=shown) from None


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row that has all its values."""

    label: str
    name: str
    volume_group: str
    logical_volume: str
    size_bytes: int


class _Check:
    """Walks one document and notes what is wrong with it."""

    def __init__(self, document: Mapping[str, object], default_volume_group: str) -> None:
        self.problems: list[str] = []
        self._document = document
        self._default_volume_group = default_volume_group
        self._whole_gib = False

    def run(self) -> tuple[RecordedFilesystem, ...]:
        """The rows; worth something only when `problems` stayed empty."""
        self._check_keys("", self._document, _FILE_KEYS)
        self._whole_gib = self._read_whole_gib()
        rows = [row for row in self._read_rows() if row is not None]
        self._check_unique("name", [(row.volume_group, row.name) for row in rows], rows)
        self._check_unique("logical_volume", [(row.volume_group, row.logical_volume) for row in rows], rows)
        return tuple(
            RecordedFilesystem(
                name=row.name,
                source=Source.FILE,
                logical_volume=row.logical_volume,
                volume_group=row.volume_group,
                recorded_bytes=row.size_bytes,
                granularity_bytes=GIB if self._whole_gib else None,
            )
            for row in rows
        )

    def _read_whole_gib(self) -> bool:
        value = self._document.get("whole_gib", False)
        if not isinstance(value, bool):
            self.problems.append(f"whole_gib: must be true or false, not {show_value(value)}")
            return False
        return value

    def _read_rows(self) -> "Iterator[_Row | None]":
        tables = self._document.get("filesystem", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.problems.append("filesystem: must be a list of tables: write [[filesystem]] above each row")
            return
        for number, table in enumerate(tables, start=1):
            yield self._read_row(number, table)

    def _read_row(self, number: int, table: Mapping[str, object]) -> _Row | None:
        name = table.get("name")
        label = f"row {number}" + (f" ({show_value(name)})" if isinstance(name, str) and name else "")
        before = len(self.problems)
        self._check_keys(f"{label}: ", table, _ROW_KEYS)
        name = self._read_text(label, table, "name")
        lv_name = self._read_lvm_name(label, table, "logical_volume")
        vg_name = self._default_volume_group
        if "volume_group" in table:
            vg_name = self._read_lvm_name(label, table, "volume_group")
        size_bytes = self._read_size(label, table)
        if len(self.problems) > before:
            return None
        return _Row(
            label=label, name=name, volume_group=vg_name, logical_volume=lv_name, size_bytes=size_bytes
        )

    def _read_text(self, label: str, table: Mapping[str, object], key: str) -> str:
        """The text, or "" with the problem noted."""
        value = table.get(key)
        if key not in table:
            self.problems.append(f"{label}: {key} is missing")
        elif not isinstance(value, str):
            self.problems.append(f"{label}: {key} must be text, not {show_value(value)}")
        elif not value.strip():
            self.problems.append(f"{label}: {key} is empty")
        else:
            return value
        return ""

    def _read_lvm_name(self, label: str, table: Mapping[str, object], key: str) -> str:
        value = self._read_text(label, table, key)
        problem = find_lvm_name_problem(value) if value else None
        if problem is not None:
            self.problems.append(f"{label}: {key}: {problem}")
        return value

    def _read_size(self, label: str, table: Mapping[str, object]) -> int:
        """Bytes, or 0 with the problem noted."""
        if "size" not in table:
            self.problems.append(f"{label}: size is missing")
            return 0
        try:
            size_bytes = parse_size(table["size"])
        except ValueError as error:
            self.problems.append(f"{label}: size: {to_visible(str(error))}")
            return 0
        if self._whole_gib and size_bytes % GIB:
            self.problems.append(
                f"{label}: size: {show_value(table['size'])} is not a whole number of GiB, "
                "but the file says whole_gib = true"
            )
        return size_bytes

    def _check_keys(self, label: str, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        self.problems.extend(
            f"{label}unknown key {show_value(key)} (known: {', '.join(known)})"
            for key in table
            if key not in known
        )

    def _check_unique(self, key: str, values: list[tuple[str, str]], rows: list[_Row]) -> None:
        first: dict[tuple[str, str], str] = {}
        for value, row in zip(values, rows, strict=True):
            if value in first:
                self.problems.append(
                    f"{row.label}: {key} {show_value(value[1])} stands in {first[value]} already"
                )
            first.setdefault(value, row.label)
