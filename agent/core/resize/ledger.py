"""The walk as a list: each LV's extents before and after, and the running total of what is left.

Pure.  Not here: which changes are walked (`preflight`, `upgrade`), drawing it (`agent.cli`).
"""

from collections.abc import Iterator, Sequence

import msgspec

from agent.core.extents.growth import Growth
from agent.core.models import VolumeGroup
from agent.core.resize.document import Change, LedgerLine


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the walk, and why it is taken."""

    filesystem: str | None
    change: Change
    growth: Growth


def keep_ledger(free_extents: int, steps: Sequence[Step]) -> Iterator[LedgerLine]:
    """Write down each step; `free_extents` is what can be handed out before the first."""
    for step in steps:
        growth = step.growth
        free_extents -= growth.needed_extents
        yield LedgerLine(
            logical_volume=growth.logical_volume,
            filesystem=step.filesystem,
            change=step.change,
            before_extents=growth.before_extents,
            after_extents=growth.after_extents,
            needed_extents=growth.needed_extents,
            free_extents=free_extents,
        )


def unchanged_steps(volume_group: VolumeGroup, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The LVs that no step is about: they keep what they have."""
    changed = {step.growth.logical_volume for step in steps}
    return tuple(
        Step(
            filesystem=None,
            change=Change.NONE,
            growth=Growth(
                logical_volume=lv.name,
                areas=1,
                area_extents=0,
                before_extents=lv.extents,
                after_extents=lv.extents,
            ),
        )
        for lv in volume_group.logical_volumes
        if not lv.is_hidden and lv.name not in changed
    )
