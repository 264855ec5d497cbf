#!/usr/bin/env python3
"""Writes docs/man/agent.toml.5 from the keys of the configuration.

A test fails when the page is not what this writes.  Run it after a change of a key.
"""

import sys
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from agent.config.schema import list_keys  # noqa: E402 - found through the line above
from agent.config.show import to_toml  # noqa: E402

PAGE: Final = ROOT / "docs" / "man" / "agent.toml.5"

_HEAD: Final = r""".\" Written by scripts/write_man.py from the keys of the configuration; change them there.
.TH AGENT.TOML 5 "" "lvm-audit-agent" "File Formats"
.SH NAME
agent.toml \- configuration of lvm-audit-agent
.SH SYNOPSIS
.I /etc/lvm-audit-agent/agent.toml
.SH DESCRIPTION
A TOML file; every key may be left out, and so may the file.
Unknown keys, wrong types and values out of range are errors, all of them reported at once by
.BR "agent config check" .
.PP
A flag of the command line beats an environment variable, which beats the file, which beats the default.
The variable of a key is named
.BR AGENT_\fISECTION\fB_\fIKEY ,
in capitals, as
.BR AGENT_AUDIT_INTERVAL_SECONDS .
.PP
A running daemon reads the file again on
.BR "systemctl reload lvm-audit-agent" ;
a file that can't be used changes nothing.
.PP
Secrets never stand in this file: keys that name a secret's file take a path, or the name of a credential
that the unit loads
.RB ( LoadCredential= ,
.BR systemd.exec (5)).
"""
_TAIL: Final = r""".SH EXAMPLE
.nf
[audit]
volume_groups = ["cgts\-vg"]
interval_seconds = 60

[inventory]
kind = "file"
path = "/etc/lvm\-audit\-agent/sizes.toml"

[report]
url = "https://inventory.example/v1"
token_file = "report.token"
.fi
.SH SEE ALSO
.BR agent (8)
"""


def write_page() -> str:
    """The whole page."""
    lines = [_HEAD.rstrip("\n")]
    for section, keys in groupby(list_keys(), key=lambda key: key.section):
        lines.append(f".SH [{_escape(section)}]")
        for key in keys:
            lines += [".TP", f".B {_escape(key.name)}", f"{_sentence(key.description)}"]
            default = "not set" if key.default is None else _escape(to_toml(key.default))
            lines.append(f"{_sentence(f'Takes {key.expectation}; default: ')[:-1]}{default}.")
    return "\n".join(lines) + "\n" + _TAIL


def _sentence(text: str) -> str:
    return _escape(text[0].upper() + text[1:]) + "."


def _escape(text: str) -> str:
    """Text as roff takes it: no line may begin with a control character, and a hyphen is not a minus."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
