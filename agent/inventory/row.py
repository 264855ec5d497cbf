"""One row of a JSON collection, read field by field with its type checked.

Every refusal names the row, the field and the value.  Not here: what the fields mean (`sysinv_map`).
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from agent.core.inventory_errors import InventoryGarbled
from agent.core.names import show_value


class Row:
    """A row and where it came from."""

    def __init__(self, fields: Mapping[str, object], *, url: str, number: int) -> None:
        self._fields = fields
        self._url = url
        self._number = number

    def value(self, field: str) -> object:
        """Whatever stands there; None when it is null or absent."""
        return self._fields.get(field)

    def optional_text(self, field: str) -> str | None:
        """A text, or None when it is null or absent."""
        value = self.value(field)
        if value is None or isinstance(value, str):
            return value
        raise self.refused(field, "is not text")

    def text(self, field: str) -> str:
        """A text that is not empty."""
        value = self.optional_text(field)
        if not value:
            raise self.refused(field, "is not there" if value is None else "is empty")
        return value

    def natural(self, field: str) -> int:
        """A whole number from 0.  JSON's true is not 1, and neither 1.0 nor "1" is a whole number."""
        value = self.value(field)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refused(field, "is not there" if value is None else "is not a whole number")
        if value < 0:
            raise self.refused(field, "is negative")
        return value

    def positive(self, field: str) -> int:
        """A whole number from 1."""
        value = self.natural(field)
        if value == 0:
            raise self.refused(field, "is zero")
        return value

    def time(self, field: str) -> datetime | None:
        """An ISO 8601 time in UTC; one without an offset is in UTC, as sysinv's database keeps them."""
        text = self.optional_text(field)
        if text is None:
            return None
        try:
            parsed = datetime.fromisoformat(text)
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.refused(field, "is not a time") from None

    def refused(self, field: str, problem: str) -> InventoryGarbled:
        """The error to raise: this row can't be what sysinv sent."""
        name = self._fields.get("name", self._fields.get("lvm_vg_name"))
        label = f"row {self._number}" + (f" ({show_value(name)})" if isinstance(name, str) else "")
        value = f" {show_value(self._fields[field])}" if self._fields.get(field) is not None else ""
        return InventoryGarbled(subject=self._url, reason=f"{label}: {field}{value} {problem}")
