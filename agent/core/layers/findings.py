"""Where a size got lost: each layer compared with the one below it, and what would mend it.

Commands stand in hints as text and are never run.  Pure.  Not here: finding the layers (`stacks`).
"""

from collections.abc import Iterator
from typing import Final

from agent.core.layers.drbd import metadata_bytes
from agent.core.layers.stacks import Layer, Stack, crypt_type, device_path, filesystem_bytes
from agent.core.layers.view import BlockDevice, HostView, Probe
from agent.core.models import Finding, Severity
from agent.core.names import to_visible
from agent.core.units import MIB, format_gib

DEFAULT_NEARLY_FULL_PERCENT: Final = 90.0

_CRYPT_HEADER_BYTES: Final = {"luks1": 2 * MIB, "luks2": 16 * MIB, "plain": 0}
_LARGEST_HEADER_BYTES: Final = 16 * MIB

_TOLERANCE_BYTES: Final = 400 * MIB
_TOLERANCE_PART: Final = 20
"""Filesystems that only statvfs knows keep back up to a twentieth or 400 MiB, whichever is more."""


def find_layer_problems(
    stack: Stack, view: HostView, probe: Probe | None, *, nearly_full_percent: float
) -> Iterator[Finding]:
    """Everything that is wrong on one LV, from below.  Nothing is said of devices being suspended."""
    if stack.is_suspended:
        yield _unreadable(stack, "a device is suspended: reading it would hang")
        return
    yield from _check_table(stack)
    below = stack.base
    for layer in stack.layers:
        if layer.kind == "drbd":
            yield from _check_drbd(stack, layer, below, view)
        else:
            yield from _check_crypt(stack, layer, below)
        below = layer.device
    if probe is None:
        return
    if probe.problem is not None:
        yield _unreadable(stack, probe.problem)
    yield from _check_filesystem(stack, probe)
    yield from _check_usage(stack, probe, nearly_full_percent)


def _check_table(stack: Stack) -> Iterator[Finding]:
    """LVM's metadata say one size, the kernel serves another: the table was not loaded anew."""
    lv = stack.lv
    if "thicksnapshot" in lv.roles:
        return  # its device has the size of its origin
    if stack.base.size_bytes < lv.size_bytes:
        yield _finding(
            "lv_not_activated_at_new_size",
            lv.name,
            f"{stack.path} has {format_gib(lv.size_bytes)} in LVM's metadata, but the kernel still serves "
            f"{format_gib(stack.base.size_bytes)}",
            f"`lvchange --refresh {stack.path.removeprefix('/dev/')}`",
        )


def _check_drbd(stack: Stack, layer: Layer, below: BlockDevice, view: HostView) -> Iterator[Finding]:
    path, device = device_path(layer), layer.device
    if device.size_bytes + metadata_bytes(below.size_bytes, view.drbd_version) >= below.size_bytes:
        return
    resource = view.drbd_resources.get(device.name, "RESOURCE")
    state = view.drbd.get(device.name)
    is_alone = state is not None and state.peer_role in (None, "Unknown")
    command = (
        f"drbdadm -- --assume-peer-has-space resize {resource}" if is_alone else f"drbdadm resize {resource}"
    )
    when = (
        " (the peer is away; both hosts need the larger LV)"
        if is_alone
        else " once the LV is larger on both hosts"
    )
    yield _finding(
        "drbd_not_grown",
        stack.lv.name,
        f"{path} has {format_gib(device.size_bytes)} on {format_gib(below.size_bytes)}: DRBD was not grown",
        f"`{command}`{when}",
    )


def _check_crypt(stack: Stack, layer: Layer, below: BlockDevice) -> Iterator[Finding]:
    device = layer.device
    header_bytes = _CRYPT_HEADER_BYTES.get(crypt_type(device), _LARGEST_HEADER_BYTES)
    if device.size_bytes + header_bytes >= below.size_bytes:
        return
    yield _finding(
        "crypt_not_grown",
        stack.lv.name,
        f"{device_path(layer)} has {format_gib(device.size_bytes)} on {format_gib(below.size_bytes)}: "
        "dm-crypt was not grown",
        f"`cryptsetup resize {device.dm_name or device.name}`",
    )


def _check_filesystem(stack: Stack, probe: Probe) -> Iterator[Finding]:
    size_bytes = filesystem_bytes(probe)
    if size_bytes is None:
        return
    device_bytes = stack.top.size_bytes
    if probe.superblock is not None:
        is_grown = size_bytes >= probe.superblock.reachable_bytes(device_bytes)
        about = ""
    else:
        tolerance_bytes = max(device_bytes // _TOLERANCE_PART, _TOLERANCE_BYTES)
        is_grown = size_bytes + tolerance_bytes >= device_bytes
        about = "about "
    if is_grown:
        return
    yield _finding(
        "filesystem_not_grown",
        stack.lv.name,
        f"the filesystem on {stack.top_path} has {about}{format_gib(size_bytes)} of "
        f"{format_gib(device_bytes)}: it was not grown",
        _grow_command(stack, probe),
    )


def _grow_command(stack: Stack, probe: Probe) -> str:
    kind = None if probe.superblock is None else probe.superblock.type
    mount = stack.mount
    if kind == "xfs":
        return (
            f"`xfs_growfs {to_visible(mount.path)}`"
            if mount
            else f"mount {stack.top_path}, then `xfs_growfs` its mount point"
        )
    if kind is not None:
        return f"`resize2fs {stack.top_path}`"
    return f"grow it with the tool of {mount.type if mount else 'its kind'}"


def _check_usage(stack: Stack, probe: Probe, nearly_full_percent: float) -> Iterator[Finding]:
    used_percent = None if probe.usage is None else probe.usage.used_percent
    if used_percent is None or stack.mount is None or used_percent < nearly_full_percent:
        return
    yield _finding(
        "filesystem_nearly_full",
        stack.lv.name,
        f"{to_visible(stack.mount.path)} is {used_percent:g} % full",
        "free space there, or grow it: `agent preflight` says what would fit",
    )


def layers_unseen(volume_group: str, reason: str) -> Finding:
    """The host shows too little for any word about layers."""
    return Finding(
        kind="layers_unseen",
        severity=Severity.INFO,
        subject=volume_group,
        message=f"what is on the LVs was not looked at: {reason}",
        hint="run the agent on the host itself, or give its container the host's /sys and /dev",
    )


def drbd_unreadable(reason: str) -> Finding:
    """DRBD is there, but does not say how it is."""
    return Finding(
        kind="drbd_unreadable",
        severity=Severity.WARNING,
        subject="drbd",
        message=f"DRBD's state could not be read: {reason}",
        hint="look at /proc/drbd, and with DRBD 9 at `drbdsetup status --json`",
    )


def _unreadable(stack: Stack, problem: str) -> Finding:
    return Finding(
        kind="layer_unreadable",
        severity=Severity.WARNING,
        subject=stack.lv.name,
        message=f"what is on {stack.top_path} could not be looked at: {problem}",
        hint="look for a hung device (dmesg, `dmsetup info`)",
    )


def _finding(kind: str, subject: str, message: str, hint: str) -> Finding:
    return Finding(kind=kind, severity=Severity.WARNING, subject=subject, message=message, hint=hint)
