"""Where recorded sizes come from.  One module per kind: `file`, and more beside it.

Not here: judging them (`agent.core.compare`) or sending reports.
"""

from typing import Protocol

from agent.core.models import RecordedSizes


class Inventory(Protocol):
    """A place that records how big this host's filesystems should be."""

    @property
    def origin(self) -> str:
        """What it is, for people: a path or URL without secrets."""
        ...

    def fetch(self) -> RecordedSizes:
        """Read every row that is recorded for this host.

        Raises:
            InventoryError: the sizes are not available; never an empty answer instead.
        """
        ...
