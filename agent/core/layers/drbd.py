"""What DRBD says about its devices, and how much of a disk it keeps for itself.

DRBD 8.4 speaks through /proc/drbd (run here); DRBD 9 through `drbdsetup status --json`, which is written
after its documentation and has met no real DRBD 9 yet.  Pure.  Not here: reading either.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from agent.core.models import DrbdState
from agent.core.units import KIB, round_up

_VERSION: Final = re.compile(r"^version: (\d+)\.([0-9.]+)", re.ASCII | re.MULTILINE)
_DEVICE: Final = re.compile(
    r"^ *(?P<minor>\d{1,7}): cs:(?P<cs>\w+)(?: ro:(?P<role>\w+)/(?P<peer_role>\w+))?"
    r"(?: ds:(?P<disk>\w+)/(?P<peer_disk>\w+))?",
    re.ASCII,
)
_SYNCED: Final = re.compile(r"sync'ed: *(\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)


def parse_version(text: str) -> str | None:
    """The version that /proc/drbd begins with, such as ``8.4.11``; None when there is none."""
    match = _VERSION.search(text)
    return None if match is None else f"{match[1]}.{match[2]}"


def parse_proc_drbd(text: str) -> Mapping[str, DrbdState]:
    """The devices of DRBD 8.4 by kernel name.  An unconfigured minor is none."""
    devices: dict[str, DrbdState] = {}
    current: str | None = None
    for line in text.split("\n"):
        match = _DEVICE.match(line)
        if match is not None:
            current = f"drbd{int(match['minor'])}"
            if match["cs"] != "Unconfigured":
                devices[current] = DrbdState(
                    device=current,
                    role=match["role"],
                    peer_role=match["peer_role"],
                    connection_state=match["cs"],
                    disk_state=match["disk"],
                    peer_disk_state=match["peer_disk"],
                )
            continue
        synced = _SYNCED.search(line)
        if synced is not None and current in devices:
            devices[current] = msgspec.structs.replace(devices[current], resync_percent=float(synced[1]))
    return devices


class _PeerDevice(msgspec.Struct, frozen=True, rename="kebab"):
    volume: int = 0
    replication_state: str | None = None
    peer_disk_state: str | None = None
    percent_in_sync: float | None = None


class _Connection(msgspec.Struct, frozen=True, rename="kebab"):
    connection_state: str | None = None
    peer_role: str | None = None
    peer_devices: list[_PeerDevice] = msgspec.field(name="peer_devices", default_factory=list)
    """The one key that DRBD writes with an underscore."""


class _Device(msgspec.Struct, frozen=True, rename="kebab"):
    minor: int
    volume: int = 0
    disk_state: str | None = None


class _Resource(msgspec.Struct, frozen=True, rename="kebab"):
    role: str | None = None
    devices: list[_Device] = []
    connections: list[_Connection] = []


_SETTLED: Final = frozenset({None, "Off", "Established"})


def parse_drbdsetup_json(data: bytes) -> Mapping[str, DrbdState]:
    """The devices of DRBD 9 by kernel name; of several peers the one that is worst off is shown.

    Raises:
        ValueError: that is not what drbdsetup(8) of DRBD 9 prints.
    """
    resources = msgspec.json.decode(data, type=list[_Resource])
    return {state.device: state for resource in resources for state in _states(resource)}


def _states(resource: _Resource) -> Iterator[DrbdState]:
    for device in resource.devices:
        connection, peer = min(
            (
                (connection, peer)
                for connection in resource.connections
                for peer in connection.peer_devices
                if peer.volume == device.volume
            ),
            key=lambda pair: (pair[1].replication_state in _SETTLED, pair[1].peer_disk_state == "UpToDate"),
            default=(None, None),
        )
        is_syncing = peer is not None and peer.replication_state not in _SETTLED
        yield DrbdState(
            device=f"drbd{device.minor}",
            role=resource.role,
            peer_role=None if connection is None else connection.peer_role,
            connection_state=_connection_state(connection, peer),
            disk_state=device.disk_state,
            peer_disk_state=None if peer is None else peer.peer_disk_state,
            resync_percent=peer.percent_in_sync if peer is not None and is_syncing else None,
        )


def _connection_state(connection: _Connection | None, peer: _PeerDevice | None) -> str | None:
    """8.4 has one word for what 9 says in two: that of the replication when there is any."""
    if peer is not None and peer.replication_state not in (None, "Off"):
        return peer.replication_state
    return None if connection is None else connection.connection_state


_SUPERBLOCK_BYTES: Final = 4 * KIB
_ACTIVITY_LOG_BYTES: Final = 32 * KIB
_MAX_PEERS: Final = 31


def metadata_bytes(disk_bytes: int, version: str | None) -> int:
    """The most that internal metadata takes at the end of a disk of that size.

    One bit for 4 KiB, in steps of 4 KiB, beside the superblock and the activity log.  DRBD 9 keeps a
    bitmap for each of the peers that the metadata was made for; how many can't be seen, so all count.
    """
    bitmap_bytes = round_up(-(-disk_bytes // (4 * KIB * 8)), 4 * KIB)
    peers = 1 if version is None or version.startswith("8.") else _MAX_PEERS
    return _SUPERBLOCK_BYTES + _ACTIVITY_LOG_BYTES + peers * bitmap_bytes
