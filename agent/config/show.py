"""The effective configuration as TOML, each key with its reason and who set it.

What is printed is a valid configuration file.  Not here: where values come from (`load`).
"""

import json
from itertools import groupby
from operator import attrgetter

from agent.config.load import Loaded
from agent.config.schema import list_keys


def show(loaded: Loaded) -> str:
    """All keys in the order of the sections; those without a value as a comment."""
    lines = [f"# file: {loaded.path or 'none'}"]
    for section, keys in groupby(list_keys(), key=lambda key: key.section):
        lines += ["", f"[{section}]"]
        for key in keys:
            value = attrgetter(key.path)(loaded.settings)
            lines.append(f"# {key.description}: {key.expectation}")
            assignment = f"# {key.name} =" if value is None else f"{key.name} = {to_toml(value)}"
            lines.append(f"{assignment}  # {loaded.origin_of(key.path)}")
    return "\n".join(lines) + "\n"


def to_toml(value: object) -> str:
    """One value as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # JSON's strings and numbers are TOML's.
    return json.dumps(value)
