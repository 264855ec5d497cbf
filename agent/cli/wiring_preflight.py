"""Puts together what answers before a resize.  Not here: the parts themselves (`wiring`), any decision."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from agent.preflight import Adviser

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring
    from agent.config.schema import Settings


@contextmanager
def open_adviser(wiring: "Wiring", settings: "Settings") -> Iterator[Adviser]:
    """What answers, with `Wiring.open_reader`'s behaviour on signals."""
    with ExitStack() as parts, wiring.open_reader(settings) as reader:
        yield Adviser(
            reader=reader,
            inventory=wiring.make_inventory(settings, parts),
            layers=wiring.make_layers(settings, parts),
            clock=wiring.clock,
            grace_seconds=settings.audit.transition_grace_seconds,
        )
