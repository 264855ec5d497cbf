"""What the inventory believes of a volume group's room, beside what LVM really has.

The platform accepts or refuses a resize by the room of its last report, not by LVM: where the two
differ, it decides wrongly.  Pure.  Not here: recorded sizes (`compare`), whether they fit (`capacity`).
"""

from agent.core.models import Finding, PlatformView, RecordedSizes, Severity, VolumeGroup
from agent.core.units import format_gib


def find_stale_views(volume_group: VolumeGroup, recorded: RecordedSizes) -> tuple[Finding, ...]:
    """Findings where the platform's idea of this volume group is not LVM's."""
    return tuple(
        finding
        for view in recorded.platform_views
        if view.volume_group == volume_group.name
        for finding in _judge_view(volume_group, view)
    )


def _judge_view(volume_group: VolumeGroup, view: PlatformView) -> tuple[Finding, ...]:
    """At most one finding: a wrong size explains a wrong free count as well."""
    if view.extent_count != volume_group.extent_count:
        return (
            _stale(
                "platform_size_stale",
                volume_group,
                f"the platform believes {volume_group.name} has {view.extent_count} extents, "
                f"LVM has {volume_group.extent_count}{_since(view)}",
                Severity.WARNING,
            ),
        )
    surplus = view.free_extents - volume_group.free_extents
    if surplus == 0:
        return ()
    size = format_gib(abs(surplus) * volume_group.extent_size_bytes)
    text = (
        f"the platform believes {view.free_extents} extents of {volume_group.name} are free, "
        f"LVM has {volume_group.free_extents}{_since(view)}: "
    )
    if surplus > 0:
        text += f"it would accept a resize for which {size} are not there"
        return (_stale("platform_free_stale", volume_group, text, Severity.WARNING),)
    text += f"it would refuse resizes for which there are {size} more"
    return (_stale("platform_free_stale", volume_group, text, Severity.INFO),)


def _stale(kind: str, volume_group: VolumeGroup, message: str, severity: Severity) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        subject=volume_group.name,
        message=message,
        # sysinv's agent looks every 60 s and reports only what changed.
        hint="resize nothing until it agrees; if it still differs in two minutes, look at sysinv.log",
    )


def _since(view: PlatformView) -> str:
    if view.reported_at is None:
        return " (never reported since it was created)"
    return f" (reported {view.reported_at:%Y-%m-%dT%H:%M:%SZ})"
