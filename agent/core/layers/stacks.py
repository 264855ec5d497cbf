"""What sits on each LV, from the LV up to the filesystem, found by holders and device numbers.

`find_stacks` says which devices are worth asking; `describe` joins the answers.  Pure: everything about
the host comes in a `HostView` and in `Probe`s.  Not here: reading them (`agent.host.layers`), what is
wrong with a layer (`findings`).
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from agent.core.layers.mounts import Mount
from agent.core.layers.view import BlockDevice, HostView, Probe
from agent.core.models import LogicalVolume, VolumeGroup
from agent.core.names import to_visible
from agent.core.report import LayerSection

LayerKind = Literal["drbd", "crypt"]


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A device on another one."""

    kind: LayerKind
    device: BlockDevice


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """An LV, the devices on it from below, and whether a filesystem can be on top."""

    lv: LogicalVolume
    path: str
    base: BlockDevice
    layers: tuple[Layer, ...] = ()
    mount: Mount | None = None
    is_open_ended: bool = True
    """The topmost device may carry a filesystem; False: something else holds it."""
    is_suspended: bool = False
    """One of its devices is: reading it would hang."""

    @property
    def top(self) -> BlockDevice:
        """The topmost device."""
        return self.layers[-1].device if self.layers else self.base

    @property
    def top_path(self) -> str:
        """Its name below /dev."""
        return device_path(self.layers[-1]) if self.layers else self.path


def device_path(layer: Layer) -> str:
    """The name below /dev that people use."""
    device = layer.device
    return f"/dev/mapper/{device.dm_name}" if device.dm_name else f"/dev/{device.name}"


def find_stacks(volume_group: VolumeGroup, view: HostView) -> Mapping[str, Stack]:
    """The stack on each LV that is a device now, by LV name."""
    prefix = f"LVM-{volume_group.uuid.replace('-', '')}"
    bases = {
        device.dm_uuid.removeprefix(prefix): device
        for device in view.devices.values()
        if device.dm_uuid is not None and device.dm_uuid.startswith(prefix)
    }
    stacks = {}
    for lv in volume_group.logical_volumes:
        # Sub-LVs and pools carry LVs only; suffixes such as -real and -cow are devices below an LV's own.
        base = bases.get(lv.uuid.replace("-", ""))
        if base is not None and not is_inner(lv):
            stacks[lv.name] = _stack(volume_group.name, lv, base, view)
    return stacks


def is_inner(lv: LogicalVolume) -> bool:
    """Whether only other LVs can sit on it."""
    return lv.is_hidden or "pool" in lv.layouts


def _stack(volume_group_name: str, lv: LogicalVolume, base: BlockDevice, view: HostView) -> Stack:
    layers: list[Layer] = []
    device = base
    seen = {base.name}
    while len(device.holders) == 1 and device.holders[0] not in seen:
        above = view.devices.get(device.holders[0])
        kind = None if above is None else _kind_of(above)
        if above is None or kind is None:
            break
        seen.add(above.name)
        layers.append(Layer(kind=kind, device=above))
        device = above
    return Stack(
        lv=lv,
        path=f"/dev/{volume_group_name}/{lv.name}",
        base=base,
        layers=tuple(layers),
        mount=view.mounts.get(device.number),
        is_open_ended=not device.holders,
        is_suspended=any(one.is_suspended for one in (base, *(layer.device for layer in layers))),
    )


def _kind_of(device: BlockDevice) -> LayerKind | None:
    if device.name.startswith("drbd"):
        return "drbd"
    return "crypt" if device.dm_uuid is not None and device.dm_uuid.startswith("CRYPT-") else None


def can_probe(stack: Stack, view: HostView) -> bool:
    """Whether reading the top device makes sense: a DRBD device can't even be opened while Secondary."""
    state = view.drbd.get(stack.top.name)
    is_closed = state is not None and state.role != "Primary"
    return stack.is_open_ended and not stack.is_suspended and not is_closed


def describe(stack: Stack, view: HostView, probe: Probe | None) -> tuple[LayerSection, ...]:
    """The published layers of one LV, from below.

    A filesystem that could not be looked at is there, with nothing known about it; where there is none,
    none is named.
    """
    sections = [_describe_layer(layer, view) for layer in stack.layers]
    if stack.is_open_ended:
        sections.extend(_describe_filesystem(stack, probe))
    return tuple(sections)


_CRYPT_TYPE_FIELD: Final = 1


def crypt_type(device: BlockDevice) -> str:
    """luks1, luks2, plain …: the second word of the dm UUID that cryptsetup gives."""
    words = (device.dm_uuid or "").split("-")
    return words[_CRYPT_TYPE_FIELD].lower() if len(words) > _CRYPT_TYPE_FIELD else "crypt"


def _describe_layer(layer: Layer, view: HostView) -> LayerSection:
    is_drbd = layer.kind == "drbd"
    return LayerSection(
        kind=layer.kind,
        device=device_path(layer),
        type=view.drbd_version if is_drbd else crypt_type(layer.device),
        size_bytes=layer.device.size_bytes,
        mount_point=None,
        drbd=view.drbd.get(layer.device.name) if is_drbd else None,
    )


def _describe_filesystem(stack: Stack, probe: Probe | None) -> Iterator[LayerSection]:
    is_unseen = probe is None or (probe.problem is not None and probe.superblock is None)
    superblock = None if probe is None else probe.superblock
    if superblock is None and stack.mount is None and not is_unseen:
        return
    usage = None if probe is None else probe.usage
    type_name = superblock.type if superblock else stack.mount.type if stack.mount else None
    yield LayerSection(
        kind="filesystem",
        device=stack.top_path,
        type=type_name,
        size_bytes=filesystem_bytes(probe),
        mount_point=None if stack.mount is None else to_visible(stack.mount.path),
        used_percent=None if usage is None else usage.used_percent,
    )


def filesystem_bytes(probe: Probe | None) -> int | None:
    """The filesystem's size: exact for ext and xfs, without its overhead for others.

    A mounted XFS is taken from the kernel plus its log: its superblock on disk follows a growth only
    later, and a read through the device's page cache may be older still.  ext keeps its superblock in that
    very cache.
    """
    if probe is None:
        return None
    superblock, usage = probe.superblock, probe.usage
    if superblock is not None and (superblock.type != "xfs" or usage is None):
        return superblock.size_bytes
    if usage is None:
        return None
    log_blocks = 0 if superblock is None else superblock.log_blocks
    return (usage.blocks + log_blocks) * usage.block_bytes
