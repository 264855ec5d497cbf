"""Findings about how LVM was read and in what state the volume group is.

Not here: recorded sizes and space (see `compare`, `capacity`).
"""

import re
from collections.abc import Iterable
from typing import Final

from agent.core.models import Finding, LogicalVolume, ReadMode, Severity, VolumeGroup
from agent.core.names import to_short

_MESSAGE_CHARACTERS: Final = 300
_MESSAGES_MAX: Final = 10
_EXPECTED_NOISE: Final = re.compile(
    r"/dev/mapper/control: open failed"
    r"|Failure to communicate with kernel device-mapper driver\."
    r"|Check that device-mapper is available in the kernel\."
    r"|Incompatible libdevmapper "
    r"|Activation disabled\. No device-mapper interaction will be attempted\."
)
"""What LVM says of a host or sandbox without device-mapper, where reading works all the same."""
_WARNING: Final = "WARNING:"
_PARTIAL_ATTRIBUTE: Final = 8
"""Index in lv_attr of the volume's health: `p` when a physical volume below it is missing."""


def harmless(text: str, limit: int = _MESSAGE_CHARACTERS) -> str:
    """Text of somebody else, short and with nothing in it that a terminal or log would act on."""
    return to_short(text, limit)


def meaningful_lines(messages: str) -> tuple[str, ...]:
    """The lines of LVM's messages that say something, each once, without indentation and level.

    Those that LVM calls warnings come first: `verbose` in lvm.conf adds hundreds of others.
    """
    stripped = [line.strip() for line in messages.splitlines()]
    ordered = [line for line in stripped if line.startswith(_WARNING)]
    ordered += [line for line in stripped if not line.startswith(_WARNING)]
    lines = (line.removeprefix(_WARNING).strip() for line in ordered)
    return tuple(dict.fromkeys(line for line in lines if line and not _EXPECTED_NOISE.match(line)))


def find_warnings(vg_name: str, lines: Iterable[str]) -> tuple[Finding, ...]:
    """One finding for each different line that LVM printed although it succeeded, the first ten of them."""
    different = list(dict.fromkeys(harmless(line) for line in lines))
    shown = different[:_MESSAGES_MAX]
    if len(different) > _MESSAGES_MAX:
        shown.append(f"... and {len(different) - _MESSAGES_MAX} more lines")
    return tuple(
        Finding(kind="lvm_warning", severity=Severity.WARNING, subject=vg_name, message=line)
        for line in shown
    )


def find_reading_notes(volume_group: VolumeGroup, repairs: int) -> tuple[Finding, ...]:
    """How the group was read, where that is not how it should be."""
    findings = []
    if volume_group.read_mode is ReadMode.LOCK_FREE:
        findings.append(
            Finding(
                kind="read_lock_free",
                severity=Severity.INFO,
                subject=volume_group.name,
                message="LVM's lock was not to be had, so the metadata was read without it",
                hint="an LVM command is at work; audit again when it has ended",
            )
        )
    if repairs:
        findings.append(
            Finding(
                kind="lvm_output_repaired",
                severity=Severity.INFO,
                subject=volume_group.name,
                message=f"LVM printed {repairs} character(s) that are not legal JSON; they were put right",
                hint="lvm2 2.03.33 and later escape backslashes; a device has an unusual name",
            )
        )
    return tuple(findings)


def find_damage(volume_group: VolumeGroup) -> tuple[Finding, ...]:
    """Missing physical volumes, and the LVs that can't be used in full because of them."""
    missing = sum(pv.is_missing for pv in volume_group.physical_volumes)
    findings = []
    if missing or volume_group.missing_pv_count:
        count = max(missing, volume_group.missing_pv_count)
        findings.append(
            Finding(
                kind="pv_missing",
                severity=Severity.CRITICAL,
                subject=volume_group.name,
                message=f"{count} of {volume_group.pv_count} physical volumes missing",
                hint="look for a failed or detached disk (`pvs`, dmesg)",
            )
        )
    findings += [
        Finding(
            kind="lv_partial",
            severity=Severity.CRITICAL,
            subject=lv.name,
            message=f"{lv.name} has extents on a missing physical volume",
            hint="bring the disk back, or restore the volume from a backup",
        )
        for lv in volume_group.logical_volumes
        if not lv.is_hidden and _is_partial(lv)
    ]
    return tuple(findings)


def _is_partial(lv: LogicalVolume) -> bool:
    """Whether LVM says so: in words, or in lv_attr where the words are unknown without device-mapper."""
    return lv.health == "partial" or lv.attributes[_PARTIAL_ATTRIBUTE : _PARTIAL_ATTRIBUTE + 1] == "p"
