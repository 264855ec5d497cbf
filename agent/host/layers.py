"""Looks at what sits on the LVs: sysfs, mountinfo, /proc/drbd and, through the helper, the devices.

Devices are found by dm UUID, holders and major:minor, never by parsing names.  Anything may vanish while
it is read; what vanished is not there.  Not here: what it means (`agent.core.layers.stacks`,
`agent.core.layers.findings`).
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Protocol

from agent.core.layers.drbd import parse_drbdsetup_json, parse_proc_drbd, parse_version
from agent.core.layers.findings import (
    DEFAULT_NEARLY_FULL_PERCENT,
    drbd_unreadable,
    find_layer_problems,
    layers_unseen,
)
from agent.core.layers.mounts import Mount, parse_mountinfo
from agent.core.layers.stacks import Stack, can_probe, describe, find_stacks, is_inner
from agent.core.layers.superblock import HEAD_BYTES
from agent.core.layers.view import HostView, LayerScan, Probe, Usage, make_probe
from agent.core.models import DrbdState, Finding, VolumeGroup
from agent.host.block_devices import names_in, read_devices, read_text
from agent.host.prober import ProbeError


class DeviceProber(Protocol):
    """Asks devices and mounts, each answer within bounded time."""

    def read_head(self, path: str, number: str, length: int) -> bytes:
        """The first bytes of a block device.

        Raises:
            ProbeError: they can't be had.
        """
        ...

    def read_usage(self, path: str, number: str) -> Usage:
        """The statvfs of a mount point.

        Raises:
            ProbeError: it can't be had.
        """
        ...

    def read_drbd_status(self) -> bytes:
        """What `drbdsetup status --json` prints.

        Raises:
            ProbeError: it can't be had.
        """
        ...


class LayerScanner:
    """Scans one volume group at a time; the directories are replaced in tests."""

    def __init__(
        self,
        prober: DeviceProber,
        *,
        nearly_full_percent: float = DEFAULT_NEARLY_FULL_PERCENT,
        sys_directory: str = "/sys",
        proc_directory: str = "/proc",
        dev_directory: str = "/dev",
    ) -> None:
        self._prober = prober
        self._nearly_full_percent = nearly_full_percent
        self._block = f"{sys_directory}/block"
        self._proc = proc_directory
        self._dev = dev_directory

    def scan(self, volume_group: VolumeGroup) -> LayerScan:
        """Everything on the LVs of that volume group, and what is wrong there.  Never raises, never hangs."""
        devices = read_devices(self._block, volume_group.uuid)
        if devices is None:
            return LayerScan(
                layers=None, findings=(layers_unseen(volume_group.name, "/sys shows no block devices here"),)
            )
        stacks = find_stacks(volume_group, HostView(devices=devices, mounts={}))
        view = HostView(devices=devices, mounts=self._read_mounts() if stacks else {})
        drbd = {
            layer.device.name for stack in stacks.values() for layer in stack.layers if layer.kind == "drbd"
        }
        findings: list[Finding] = []
        if drbd:
            view = self._add_drbd(view, findings)
        stacks = find_stacks(volume_group, view)
        probes = {
            name: self._probe(stack) if can_probe(stack, view) else None for name, stack in stacks.items()
        }
        layers = {name: describe(stack, view, probes[name]) for name, stack in stacks.items()}
        # Only other LVs sit on these, and that is no layer.
        layers.update((lv.name, ()) for lv in volume_group.logical_volumes if is_inner(lv))
        for name, stack in stacks.items():
            findings += find_layer_problems(
                stack, view, probes[name], nearly_full_percent=self._nearly_full_percent
            )
        hidden = [lv.name for lv in volume_group.logical_volumes if lv.active and lv.name not in layers]
        if hidden:
            findings.append(layers_unseen(volume_group.name, f"active, but not in /sys: {', '.join(hidden)}"))
        return LayerScan(
            layers=layers, findings=tuple(findings), drbd=None if hidden else _states(view, drbd)
        )

    def _read_mounts(self) -> Mapping[str, Mount]:
        try:
            return parse_mountinfo(read_text(f"{self._proc}/self/mountinfo"))
        except OSError:
            return {}

    def _add_drbd(self, view: HostView, findings: list[Finding]) -> HostView:
        """The view with DRBD's own word; a finding when it can't be had."""
        states: Mapping[str, DrbdState] = {}
        version = None
        try:
            text = read_text(f"{self._proc}/drbd")
            version = parse_version(text)
            is_old = version is None or version.startswith("8.")
            states = (
                parse_proc_drbd(text) if is_old else parse_drbdsetup_json(self._prober.read_drbd_status())
            )
        except (OSError, ValueError, ProbeError) as error:
            findings.append(drbd_unreadable(str(error)))
        return HostView(
            devices=view.devices,
            mounts=view.mounts,
            drbd=states,
            drbd_version=version,
            drbd_resources=dict(self._read_resources()),
        )

    def _read_resources(self) -> Iterator[tuple[str, str]]:
        """Device and resource of each link that DRBD's udev rule made: NAME, or NAME/VOLUME."""
        directory = f"{self._dev}/drbd/by-res"
        for name in _names_if_any(directory):
            volumes = [f"{directory}/{name}/{volume}" for volume in _names_if_any(f"{directory}/{name}")]
            for path in (f"{directory}/{name}", *volumes):
                with contextlib.suppress(OSError):
                    yield os.readlink(path).rpartition("/")[2], name  # noqa: PTH115 - start-up time

    def _probe(self, stack: Stack) -> Probe:
        """Ask the topmost device and its mount; whatever does not answer is named."""
        head, usage, problem = None, None, None
        device, mount = stack.top, stack.mount
        try:
            head = self._prober.read_head(f"{self._dev}/{device.name}", device.number, HEAD_BYTES)
        except ProbeError as error:
            problem = str(error)
        if mount is not None:
            try:
                usage = self._prober.read_usage(mount.path, device.number)
            except ProbeError as error:
                problem = problem or str(error)
        return make_probe(mount, head, usage, problem)


def _states(view: HostView, names: set[str]) -> tuple[DrbdState, ...] | None:
    """DRBD's word on these devices; None when it is silent about one of them."""
    states = [view.drbd.get(name) for name in sorted(names)]
    known = tuple(state for state in states if state is not None)
    return known if len(known) == len(states) else None


def _names_if_any(directory: str) -> list[str]:
    try:
        return names_in(directory)
    except OSError:
        return []
