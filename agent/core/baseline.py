"""The recorded-size file that says exactly what LVM has: pure text, made from a reading.

Names in it are those an operator would use: the LV's without the platform's ``-lv``.  Not here: reading
such a file (`agent.inventory.file`), writing it to a disk (`agent.cli.baseline`).
"""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from agent.core.compare import find_unrecorded
from agent.core.models import VolumeGroup
from agent.core.names import to_visible
from agent.core.units import format_exact

_LV_SUFFIX = "-lv"


def write_baseline(volume_groups: Sequence[VolumeGroup], *, hostname: str, taken_at: datetime) -> str:
    """The file's text; an audit against it, with nothing changed since, finds only matches."""
    names = ", ".join(group.name for group in volume_groups)
    lines = [
        f"# Sizes as LVM had them: {names} on {to_visible(hostname)}, {taken_at:%Y-%m-%dT%H:%M:%SZ}.",
        "# Written by `agent baseline`; edit it when a size is changed on purpose.",
        "whole_gib = false",
    ]
    for group in volume_groups:
        lv_names = find_unrecorded(group, ())
        for lv_name, name in name_filesystems(lv_names).items():
            lv = group.find(lv_name)
            assert lv is not None  # noqa: S101 - the name came from this group
            lines += [
                "",
                "[[filesystem]]",
                f"name = {_quote(name)}",
                f"logical_volume = {_quote(lv_name)}",
                f"volume_group = {_quote(group.name)}",
                f"size = {_quote(format_exact(lv.size_bytes))}",
            ]
    return "\n".join(lines) + "\n"


def name_filesystems(lv_names: Sequence[str]) -> dict[str, str]:
    """A name for each LV, all different: without ``-lv``, or the LV's own where that is taken."""
    names = {lv_name: lv_name.removesuffix(_LV_SUFFIX) for lv_name in lv_names}
    while True:
        taken = Counter(names.values())
        twice = [lv_name for lv_name, name in names.items() if taken[name] > 1 and name != lv_name]
        if not twice:
            return names
        names.update({lv_name: lv_name for lv_name in twice})


def _quote(text: str) -> str:
    """A TOML basic string; JSON's escapes are all TOML escapes too, for text without surrogates."""
    return json.dumps(text)
