#!/usr/bin/env python3
"""Writes the published JSON Schemas of the documents into agent/schemas.

A test fails when they are not what this writes.  Run it after a change of `agent.core.report`.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from agent.core.report import AuditDocument, AuditsDocument  # noqa: E402
from agent.core.resize.document import PreflightDocument  # noqa: E402 - found through the line above

DIRECTORY: Final = ROOT / "agent" / "schemas"
DOCUMENTS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "agent.audit-v1.json": AuditDocument,
    "agent.audits-v1.json": AuditsDocument,
    "agent.preflight-v1.json": PreflightDocument,
}


def build(document: type[msgspec.Struct]) -> str:
    """The schema of one document.

    Every field is required, those with defaults too: a document always carries all of them.  Unknown
    fields are allowed, a later release may add some.
    """
    schema = msgspec.json.schema(document)
    for definition in schema["$defs"].values():
        if "properties" in definition:
            definition["required"] = list(definition["properties"])
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | schema, indent=2) + "\n"


def main() -> None:
    """Write all of them."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, document in DOCUMENTS.items():
        (DIRECTORY / name).write_text(build(document), encoding="utf-8")


if __name__ == "__main__":
    main()
