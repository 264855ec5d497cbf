"""The sentences of the table: header, capacity, unrecorded LVs.

Not here: findings, which bring their own words (`agent.core.advice`).
"""

from collections.abc import Iterator

from agent.core.models import ReadMode
from agent.core.names import to_visible
from agent.core.report import AuditDocument, AuditVerdict, CapacitySection


def describe_header(document: AuditDocument) -> str:
    """What was looked at, where and when."""
    when = f"{document.started_at:%Y-%m-%d %H:%M:%S} UTC"
    text = f"{document.volume_group_name} on {document.host.hostname}, {when}"
    group = document.volume_group
    if group is not None and group.read_mode is ReadMode.LOCK_FREE:
        text += ", lock-free"
    return to_visible(text)


def describe_capacity(document: AuditDocument) -> Iterator[str]:
    """Whether the recorded sizes could all be made true."""
    capacity = document.capacity
    if capacity is not None:
        yield _describe_fit(capacity)
    elif document.verdict is not AuditVerdict.UNKNOWN:
        yield "nothing was compared"
    elif document.volume_group is not None:
        yield "the recorded sizes are unknown, and so is whether they fit"
    else:
        yield "the actual sizes are unknown, and so is whether the recorded sizes fit"


def _describe_fit(capacity: CapacitySection) -> str:
    failure = capacity.first_failure
    if failure is None:
        return (
            f"the recorded sizes fit: {capacity.needed_extents} of {capacity.available_extents} "
            "free extents needed"
        )
    short_extents = failure.needed_extents - failure.available_extents
    text = (
        f"the recorded sizes do not fit: {to_visible(failure.logical_volume)} would fail: "
        f"{failure.needed_extents} extents needed, {failure.available_extents} available; "
        f"{short_extents} short"
    )
    if capacity.shortfall_extents not in {0, short_extents}:
        text += f" (all growth together: {capacity.shortfall_extents} short)"
    return text


def describe_unrecorded(document: AuditDocument) -> Iterator[str]:
    """LVs that nothing is recorded for."""
    if document.unrecorded:
        yield f"unrecorded: {to_visible(', '.join(document.unrecorded))}"
