"""The published schemas: up to date, valid, and true of real documents."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
import write_schemas
from builders import make_bug_vg, record, recorded
from jsonschema import Draft202012Validator, ValidationError

from agent.audit import failed_document
from agent.core import judge
from agent.core.errors import InventoryError, LvmError, RecordedFileInvalid, VolumeGroupAbsent
from agent.core.models import Reading, RecordedSizes
from agent.core.report import AuditDocument, AuditsDocument, HostSection, Trigger

HOST = HostSection(hostname="controller-0", boot_time=None, agent_version="0.1.0", lvm_version="2.03.11")
WHEN = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)


def document(name: str) -> AuditDocument:
    reading = Reading(volume_group=make_bug_vg())
    absent = VolumeGroupAbsent(subject="cgts-vg", visible="none")
    invalid = RecordedFileInvalid(subject="/x", problems=("can't be read",))
    cases: dict[str, tuple[Reading | LvmError, RecordedSizes | InventoryError | None]] = {
        "clean": (reading, recorded(record("docker", 30))),
        "does not fit": (reading, recorded(record("docker", 300))),
        "no inventory": (reading, None),
        "bad inventory": (reading, invalid),
        "no volume group": (absent, recorded(record("docker", 30))),
        "nothing": (absent, invalid),
    }
    judgement = judge.judge("cgts-vg", *cases[name], grace_seconds=600)
    return judgement.document(
        audit_id=UUID(int=1),
        trigger=Trigger.ONCE,
        started_at=WHEN,
        duration_seconds=0.1,
        boot_id=None,
        host=HOST,
    )


def load(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((write_schemas.DIRECTORY / name).read_text(encoding="utf-8"))
    return schema


def on_the_wire(value: AuditDocument | AuditsDocument) -> Any:
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("name", write_schemas.DOCUMENTS)
def test_the_published_schema_is_what_the_code_says(name: str) -> None:
    published = (write_schemas.DIRECTORY / name).read_text(encoding="utf-8")
    assert published == write_schemas.build(write_schemas.DOCUMENTS[name]), "run scripts/write_schemas.py"


@pytest.mark.parametrize("name", write_schemas.DOCUMENTS)
def test_it_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(load(name))


@pytest.mark.parametrize(
    "case", ["clean", "does not fit", "no inventory", "bad inventory", "no volume group", "nothing"]
)
def test_documents_obey_it(case: str) -> None:
    audit = document(case)
    Draft202012Validator(load("agent.audit-v1.json")).validate(on_the_wire(audit))
    both = AuditsDocument(audits=(audit, audit))
    Draft202012Validator(load("agent.audits-v1.json")).validate(on_the_wire(both))


def test_the_document_of_a_failure_obeys_it_too() -> None:
    failed = failed_document(
        RecordedFileInvalid(subject="/x", problems=("can't be read",)),
        volume_group="cgts-vg",
        host=HOST,
        started_at=WHEN,
        audit_id=UUID(int=2),
    )
    Draft202012Validator(load("agent.audit-v1.json")).validate(on_the_wire(failed))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "agent.audit/v2"),
        ("verdict", "fine"),
        ("findings", None),
        ("duration_seconds", "1"),
        ("volume_group", []),
    ],
)
def test_it_refuses_what_is_no_audit(field: str, value: object) -> None:
    wrong = on_the_wire(document("clean"))
    wrong[field] = value
    with pytest.raises(ValidationError):
        Draft202012Validator(load("agent.audit-v1.json")).validate(wrong)


@pytest.mark.parametrize("field", AuditDocument.__struct_fields__)
def test_every_field_is_required(field: str) -> None:
    incomplete = on_the_wire(document("clean"))
    del incomplete[field]
    with pytest.raises(ValidationError, match=f"'{field}' is a required property"):
        Draft202012Validator(load("agent.audit-v1.json")).validate(incomplete)
