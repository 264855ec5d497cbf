"""The host's clocks.  Not here: what is measured with them."""

from datetime import UTC, datetime
from time import CLOCK_BOOTTIME, clock_gettime, monotonic

from agent.core.delivery.retry import Moment


class HostClock:
    """The real time.  `boot_id` is the kernel's (/proc/sys/kernel/random/boot_id); None = not known."""

    def __init__(self, boot_id: str | None) -> None:
        self._boot_id = boot_id

    def moment(self) -> Moment:
        """Now, on the wall clock and on the boot clock, which runs through suspend and is never set."""
        return Moment(
            wall=datetime.now(UTC),
            boottime_seconds=clock_gettime(CLOCK_BOOTTIME),
            boot_id=self._boot_id,
        )

    def monotonic_seconds(self) -> float:
        """For budgets, in seconds."""
        return monotonic()
