"""What `agent audit --once` does with its documents: settings, real files, a real socket."""

from pathlib import Path
from uuid import UUID

import msgspec
from reports import make_document
from reportserver import ReportServer, error

from agent.cli.wiring_reporting import report_once
from agent.cli.wiring_status import read_status
from agent.config.schema import AgentSection, Settings
from agent.reporting.settings import ReportSection
from agent.state.directory import DeliveryLock
from agent.state.file import read_state


def make_settings(directory: Path, url: str | None, token_file: Path | None = None) -> Settings:
    return Settings(
        agent=AgentSection(state_directory=str(directory)),
        report=ReportSection(url=url, token_file=None if token_file is None else str(token_file)),
    )


def test_the_backlog_goes_first_whatever_the_pause(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-of-this-test")
    state = tmp_path / "state"
    with ReportServer() as server:
        settings = make_settings(state, f"{server.url}/v1", token)
        server.before = lambda _: error(503, "unavailable", **{"Retry-After": "3000"})
        away, is_lost = report_once(settings, (make_document(1), make_document(2, group="b")))
        assert not is_lost
        assert [document.findings[-1].kind for document in away] == ["report_pending"] * 2
        assert "HTTP 503 unavailable: because" in away[0].findings[-1].message

        server.before = lambda _: None
        back, is_lost = report_once(settings, (make_document(3, docker_extents=961),))

    assert not is_lost
    assert [finding.kind for finding in back[0].findings] == ["filesystem_oversized"]
    assert [document.audit_id.int for document in server.documents] == [1, 2, 3]
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer secret-of-this-test"}
    written = read_state(state)
    assert written is not None
    assert [(audit.volume_group_name, audit.sequence) for audit in written.audits] == [
        ("cgts-vg", 3),
        ("b", 2),
    ]
    assert written.delivery is not None
    assert written.delivery.waiting_count == 0
    for file in state.iterdir():
        assert b"secret-of-this-test" not in file.read_bytes()


def test_another_process_delivers(tmp_path: Path) -> None:
    with ReportServer() as server, DeliveryLock(tmp_path).try_hold():
        settings = make_settings(tmp_path, f"{server.url}/v1")
        documents, is_lost = report_once(settings, (make_document(1),))

    assert not is_lost
    assert server.requests == []
    assert [finding.kind for finding in documents[0].findings] == ["report_pending"]


def test_an_unknown_host(tmp_path: Path) -> None:
    with ReportServer(hosts=()) as server:
        documents, _ = report_once(make_settings(tmp_path, f"{server.url}/v1"), (make_document(1),))

    assert [finding.kind for finding in documents[0].findings] == ["report_host_unknown", "report_pending"]
    assert "no host named controller-0 is enrolled" in documents[0].findings[0].message


def test_nothing_is_stored_unasked(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "state", None)
    assert report_once(settings, (make_document(1),)) == ((make_document(1),), False)
    assert not (tmp_path / "state").exists()

    (tmp_path / "state").mkdir()
    report_once(settings, (make_document(1),))
    assert sorted(file.name for file in (tmp_path / "state").iterdir()) == ["state.lock", "status.json"]


def test_without_reports_status_keeps_what_was_delivered(tmp_path: Path) -> None:
    with ReportServer() as server:
        report_once(make_settings(tmp_path, f"{server.url}/v1"), (make_document(1),))
    first = read_state(tmp_path)
    report_once(make_settings(tmp_path, None), (make_document(2),))
    second = read_state(tmp_path)

    assert first is not None
    assert second is not None
    assert (second.delivery, second.delivery_as_of) == (first.delivery, first.written_at)
    assert second.written_at > first.written_at
    assert second.audits[0].audit_id == UUID(int=2)
    assert read_status(tmp_path).audits == second.audits


def test_lost_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with ReportServer() as server:
        url = f"{server.url}/v1"

    documents, is_lost = report_once(make_settings(tmp_path / "state", url), (make_document(1),))

    assert is_lost
    assert [finding.kind for finding in documents[0].findings] == ["outbox_unusable", "report_lost"]
    assert msgspec.structs.replace(documents[0], findings=()) == msgspec.structs.replace(
        make_document(1), findings=()
    )
