"""What sits on each LV, as text for the audit's ``--layers``: one line a layer, indented from below.

Not here: finding any of it out (`agent.host.layers`).
"""

from collections.abc import Iterator, Sequence

from agent.core.models import DrbdState
from agent.core.names import to_visible
from agent.core.report import LayerSection, LogicalVolumeSection, LvRole
from agent.core.units import format_gib


def describe_layers(logical_volumes: Sequence[LogicalVolumeSection]) -> Iterator[str]:
    """All layers of all LVs that can have any."""
    for lv in logical_volumes:
        if lv.role in (LvRole.PRIVATE, LvRole.SPARE, LvRole.PVMOVE, LvRole.THIN_POOL):
            continue
        yield to_visible(f"{lv.name}: {format_gib(lv.size_bytes)}{_describe_none(lv.layers)}")
        for depth, layer in enumerate(lv.layers or (), 1):
            yield to_visible(f"{'  ' * depth}{_describe_layer(layer)}")


def _describe_none(layers: Sequence[LayerSection] | None) -> str:
    if layers is None:
        return ", layers unknown"
    return "" if layers else ", nothing on it"


def _describe_layer(layer: LayerSection) -> str:
    if layer.kind == "filesystem":
        what = f"{layer.type or 'filesystem ?'} on {layer.device}"
    else:
        what = " ".join(word for word in (layer.kind, layer.type, layer.device) if word)
    parts = [f"{what}: {'size ?' if layer.size_bytes is None else format_gib(layer.size_bytes)}"]
    if layer.kind == "filesystem":
        parts.append(f"at {layer.mount_point}" if layer.mount_point else "not mounted")
    if layer.used_percent is not None:
        parts.append(f"{layer.used_percent:g} % used")
    if layer.drbd is not None:
        parts.append(_describe_drbd(layer.drbd))
    return ", ".join(parts)


def _describe_drbd(state: DrbdState) -> str:
    roles = f"{state.role or '?'}/{state.peer_role or '?'}"
    disks = f"{state.disk_state or '?'}/{state.peer_disk_state or '?'}"
    text = f"{state.connection_state or '?'} {roles} {disks}"
    return text if state.resync_percent is None else f"{text}, {state.resync_percent:g} % in sync"
