"""Where recorded sizes come from (`file`, `sysinv`), and where reports go (`reports`): one module per kind.

Not here: judging the sizes (`agent.core.compare`), when a report is sent (`agent.reporting`).
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
