"""Whether recorded or asked sizes fit into the extents that can really be handed out: one door to both.

`assess` walks the records in order as a series of lvextend and lvcreate commands would, and says
which one would fail first, in that command's own terms.  `preflight` does the same for resizes that
somebody is about to ask for.  Both are pure and import nothing of the host, so that an inventory service
can use them as well.  Not here: the arithmetic (`extents.growth`), judging a filesystem (`compare`).
"""

from agent.core.extents.growth import assess
from agent.core.resize.preflight import preflight

__all__ = ["assess", "preflight"]
