"""docs/inventory-api.yaml: valid, and true of what the agent really sends and understands."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from openapi_spec_validator import validate
from reports import START, FakeClock, make_document
from reportserver import ReportServer, document_of
from sysinvserver import Request

from agent.core.delivery.queue import Outcome, QueuedReport
from agent.core.report import Repeats
from agent.http.client import HttpClient
from agent.http.messages import Transport
from agent.inventory.reports import ReportSender

ROOT = Path(__file__).parent.parent.parent
API = ROOT / "docs" / "inventory-api.yaml"


@pytest.fixture(scope="module")
def api() -> Any:
    return yaml.safe_load(API.read_text(encoding="utf-8"))


def test_it_is_valid_openapi(api: Any) -> None:
    assert api["openapi"].startswith("3.1")
    validate(api, base_uri=API.as_uri())


def check(schema: Any, instance: Any, api: Any) -> None:
    """Validate; local references are those of the whole document."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(
        {**schema, "components": api["components"]}, format_checker=checker
    ).validate(instance)


@pytest.fixture(scope="module")
def requests(api: Any) -> Iterator[list[Request]]:
    """What the agent sends: plain and with everything that storing adds."""
    document = make_document(1)
    stored = msgspec.structs.replace(
        make_document(2),
        outbox_id=document.audit_id,
        sequence=5,
        repeats=Repeats(count=2, first_started_at=START, last_started_at=START),
    )
    client = HttpClient(Transport())
    with ReportServer() as server:
        sender = ReportSender(client, url=f"{server.url}/v1", token=None, now=FakeClock().now)
        for sent in (document, stored):
            answer = sender.send(
                QueuedReport(
                    sequence=sent.sequence,
                    audit_id=sent.audit_id,
                    hostname=sent.host.hostname,
                    volume_group_name=sent.volume_group_name,
                    body=msgspec.json.encode(sent),
                    read_at=FakeClock().moment(),
                ),
                age_seconds=0.5,
                budget_seconds=10,
            )
            assert answer.outcome is Outcome.STORED
        client.close()
        yield server.requests


def operation(api: Any, request: Request) -> Any:
    """The operation that a captured request belongs to."""
    path = request.path.removeprefix("/v1")
    (template,) = [
        template for template in api["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
    ]
    return api["paths"][template][request.method.lower()]


def test_real_requests_match(api: Any, requests: list[Request]) -> None:
    assert len(requests) == 2
    for request in requests:
        submit = operation(api, request)
        assert submit["operationId"] == "submitLvmReport"
        for parameter in submit["parameters"]:
            value = request.headers.get(parameter["name"].lower())
            assert value is not None or not parameter["required"], parameter["name"]
            if value is not None:
                is_number = parameter["schema"]["type"] == "number"
                check(parameter["schema"], float(value) if is_number else value, api)
        (media_type,) = submit["requestBody"]["content"]
        assert request.headers["content-type"] == media_type
        reference = submit["requestBody"]["content"][media_type]["schema"]["$ref"]
        schema = json.loads((API.parent / reference).read_text(encoding="utf-8"))
        document = json.loads(document_of(request))
        jsonschema.Draft202012Validator(schema).validate(document)
        assert document["audit_id"] == request.headers["idempotency-key"]


def test_a_request_that_does_not_match_is_noticed(api: Any) -> None:
    schema = json.loads((ROOT / "agent" / "schemas" / "agent.audit-v1.json").read_text(encoding="utf-8"))
    document = json.loads(msgspec.json.encode(make_document(1)))
    document["sequence"] = "five"

    with pytest.raises(jsonschema.ValidationError, match="five"):
        jsonschema.Draft202012Validator(schema).validate(document)


def test_the_test_server_answers_as_the_contract_says(api: Any) -> None:
    check(api["components"]["schemas"]["Receipt"], {"audit_id": str(make_document(1).audit_id), "received_at": "2026-12-01T09:00:00Z"}, api)  # fmt: skip
    check(
        api["components"]["schemas"]["Error"],
        {"code": "unknown_host", "message": "because", "hint": None},
        api,
    )


def test_every_answer_has_the_error_document(api: Any) -> None:
    for path in api["paths"].values():
        for method in ("get", "post"):
            for status, response in path.get(method, {}).get("responses", {}).items():
                if int(status) < 400:
                    continue
                name = response.get("$ref", "").rpartition("/")[2]
                content = (api["components"]["responses"][name] if name else response)["content"]
                assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}


def test_every_code_is_explained(api: Any) -> None:
    code = api["components"]["schemas"]["Error"]["properties"]["code"]
    assert re.findall(r"^\| `(\w+)` \|", code["description"], re.MULTILINE) == code["enum"]
