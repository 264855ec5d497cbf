"""Settings of the daemon: the `[udev]` table, for the configuration to embed.

Not here: reading it from file, flags and environment (`agent.config.load`).
"""

from typing import Annotated

import msgspec
from msgspec import Meta


class UdevSection(msgspec.Struct, frozen=True, kw_only=True):
    """How the daemon follows device events."""

    enabled: Annotated[
        bool,
        Meta(description="watch udev, so that changes are seen at once; false = by the schedule alone"),
    ] = True
    settle_seconds: Annotated[
        float, Meta(ge=0, le=60, description="an event is followed by an audit when none came for so long")
    ] = 0.2
    settle_max_seconds: Annotated[
        float, Meta(ge=0, le=600, description="a burst of events that does not end is audited after so long")
    ] = 2
    min_gap_seconds: Annotated[
        float,
        Meta(ge=0, le=600, description="least time between an audit and the next one for an event"),
    ] = 0.5
