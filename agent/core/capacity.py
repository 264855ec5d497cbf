"""Whether recorded or asked sizes fit into the extents that can really be handed out.

`assess` walks the records in order as a series of lvextend and lvcreate commands would, and says
which one would fail first, in that command's own terms.  `preflight` does the same for resizes that
somebody is about to ask for.  Pure; imports nothing of the host, so that an inventory service can use
it as well.  Not here: judging a filesystem (`compare`), the arithmetic (`growth`).
"""

from agent.core.growth import Growth, assess_growths, growth_to, pending_growths, walk
from agent.core.models import RecordedFilesystem, VolumeGroup
from agent.core.preflight import preflight
from agent.core.report import CapacitySection
from agent.core.room import allocatable_room

__all__ = ["Growth", "assess", "growth_to", "pending_growths", "preflight", "walk"]


def assess(volume_group: VolumeGroup, records: tuple[RecordedFilesystem, ...]) -> CapacitySection:
    """Say whether every recorded size could be applied now, in recorded order."""
    return assess_growths(allocatable_room(volume_group), tuple(pending_growths(volume_group, records)))
