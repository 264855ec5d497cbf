"""One report over a real socket: what is sent, and what each answer means."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from reports import FakeClock, make_document
from reportserver import ReportServer, document_of, error
from sysinvserver import JSON_HEADERS, Reply, SysinvServer, drip, hang, reply_json, send

from agent.core.delivery.queue import Answer, Outcome, QueuedReport
from agent.http.client import HttpClient
from agent.http.messages import Transport
from agent.inventory.reports import ReportSender
from agent.inventory.secret import SecretFile

CLOCK = FakeClock()
PATH = "/v1/hosts/controller-0/lvm_reports"
TOKEN = "s3cret-token-of-controller-0"  # noqa: S105 - of nothing but this test


def make_report(
    number: int = 1, *, hostname: str = "controller-0", body: bytes | None = None
) -> QueuedReport:
    document = make_document(number, hostname=hostname)
    return QueuedReport(
        sequence=number,
        audit_id=UUID(int=number),
        hostname=hostname,
        volume_group_name="cgts-vg",
        body=msgspec.json.encode(document) if body is None else body,
        read_at=CLOCK.moment(),
    )


@pytest.fixture
def client() -> Iterator[HttpClient]:
    opened = HttpClient(Transport(connect_timeout_seconds=5, read_timeout_seconds=5))
    yield opened
    opened.close()


def make_sender(client: HttpClient, server: SysinvServer, token: Path | None = None) -> ReportSender:
    return ReportSender(
        client,
        url=f"{server.url}/v1/",
        token=None if token is None else SecretFile(str(token)),
        now=CLOCK.now,
    )


def deliver(
    client: HttpClient, server: SysinvServer, report: QueuedReport | None = None, *, token: Path | None = None
) -> Answer:
    sender = make_sender(client, server, token)
    return sender.send(report or make_report(), age_seconds=1.25, budget_seconds=10)


def test_a_report_as_it_is_sent(client: HttpClient, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    report = make_report()
    with ReportServer() as server:
        answer = deliver(client, server, report, token=token)

    assert answer == Answer(outcome=Outcome.STORED, reason="HTTP 201")
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", PATH)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == "00000000-0000-0000-0000-000000000001"
    assert request.headers["audit-age"] == "1.250"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-encoding"] == "gzip"
    assert len(request.body) < len(report.body)
    assert document_of(request) == report.body


def test_sent_again_it_is_the_same_bytes(client: HttpClient) -> None:
    with ReportServer() as server:
        first = deliver(client, server)
        second = deliver(client, server)

    assert (first.outcome, second.outcome) == (Outcome.STORED, Outcome.SEEN_BEFORE)
    assert server.requests[0].body == server.requests[1].body
    assert server.requests[0].headers == server.requests[1].headers
    assert len(server.stored) == 1


def test_one_round_trip_on_a_kept_connection(client: HttpClient) -> None:
    with ReportServer() as server:
        for number in (1, 2, 3):
            deliver(client, server, make_report(number))

    assert [request.connection for request in server.requests] == [1, 1, 1]


@pytest.mark.parametrize(("size", "encoding"), [(1024, None), (1025, "gzip")])
def test_small_bodies_are_sent_as_they_are(client: HttpClient, size: int, encoding: str | None) -> None:
    body = json.dumps("x" * (size - 2)).encode()
    with ReportServer() as server:
        deliver(client, server, make_report(body=body))

    assert server.requests[0].headers.get("content-encoding") == encoding
    assert document_of(server.requests[0]) == body


def test_the_hostname_is_encoded(client: HttpClient) -> None:
    hostname = "host/../é ?#%"
    with ReportServer(hosts=(hostname,)) as server:
        answer = deliver(client, server, make_report(hostname=hostname))

    assert answer.outcome is Outcome.STORED
    assert server.targets == ["/v1/hosts/host%2F..%2F%C3%A9%20%3F%23%25/lvm_reports"]


@pytest.mark.parametrize("hostname", [".", ".."])
def test_a_name_that_changes_the_path_is_never_sent(client: HttpClient, hostname: str) -> None:
    with ReportServer(hosts=(hostname,)) as server:
        answer = deliver(client, server, make_report(hostname=hostname))

    assert answer == Answer(outcome=Outcome.REFUSED, reason=f"no host can be named {hostname!r}")
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    ["nonsense", "http://", "http://[::1", "ftp://host/v1", "http://host:99999/v1", "http://127.0.0.1:1/v1"],
)
def test_no_url_makes_it_raise(client: HttpClient, url: str) -> None:
    sender = ReportSender(client, url=url, token=None, now=CLOCK.now)

    assert sender.send(make_report(), age_seconds=0, budget_seconds=5).outcome is Outcome.RETRY


def test_the_token_is_read_again_when_it_changes(client: HttpClient, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    with ReportServer() as server:
        sender = make_sender(client, server, token)
        sender.send(make_report(1), age_seconds=0, budget_seconds=10)
        token.unlink()
        gone = sender.send(make_report(2), age_seconds=0, budget_seconds=10)
        token.write_text("second, longer")
        sender.send(make_report(2), age_seconds=0, budget_seconds=10)

    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer first",
        "Bearer second, longer",
    ]
    assert gone.outcome is Outcome.RETRY
    assert gone.reason == f"{token}: can't be read: No such file or directory"


def test_a_token_no_header_can_carry(client: HttpClient, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("tökén")
    with ReportServer() as server:
        answer = deliver(client, server, token=token)

    assert answer.outcome is Outcome.RETRY
    assert answer.reason == "the token holds characters that no header can carry"
    assert server.requests == []


HTML = {"Content-Type": "text/html; charset=utf-8"}
RETRY, REFUSED, STORED = Outcome.RETRY, Outcome.REFUSED, Outcome.STORED

ANSWERS = {
    "created without a body": (Reply(status=201), STORED, "HTTP 201", None),
    "accepted": (Reply(status=202), STORED, "HTTP 202", None),
    "no content": (Reply(status=204, headers={}), STORED, "HTTP 204", None),
    "log-in page": (
        Reply(status=200, headers=HTML, body=b"<html>Welcome to the hotel</html>"),
        RETRY,
        "HTTP 200 with text/html; charset=utf-8: a proxy or log-in page, not the inventory API",
        None,
    ),
    "another's receipt": (
        reply_json({"audit_id": "someone-else"}),
        RETRY,
        "HTTP 200 for another report (someone-else): a cache in between?",
        None,
    ),
    "bad request": (error(400, "malformed"), REFUSED, "HTTP 400 malformed: because", None),
    "no token": (error(401, "unauthorized"), REFUSED, "HTTP 401 unauthorized: because", None),
    "another's token": (error(403, "forbidden"), REFUSED, "HTTP 403 forbidden: because", None),
    "unknown host": (
        error(404, "unknown_host"),
        Outcome.UNKNOWN_HOST,
        "HTTP 404 unknown_host: because",
        None,
    ),
    "unknown host, other status": (
        error(403, "unknown_host"),
        Outcome.UNKNOWN_HOST,
        "HTTP 403 unknown_host: because",
        None,
    ),
    "other 404 of the API": (error(404, "no_such_thing"), REFUSED, "HTTP 404 no_such_thing: because", None),
    "no such page": (
        Reply(status=404, headers=HTML, body=b"<h1>Not\tfound</h1>\n"),
        Outcome.NO_REPORTS,
        "HTTP 404: <h1>Not found</h1>",
        None,
    ),
    "method not allowed": (
        Reply(status=405, body=b'{"detail": "no"}'),
        Outcome.NO_REPORTS,
        'HTTP 405: {"detail": "no"}',
        None,
    ),
    "request timeout": (Reply(status=408), RETRY, "HTTP 408 without a body", None),
    "conflict": (error(409, "conflict"), REFUSED, "HTTP 409 conflict: because", None),
    "too large": (error(413, "too_large"), REFUSED, "HTTP 413 too_large: because", None),
    "invalid": (
        reply_json({"code": "schema_invalid", "message": "capacity", "hint": "upgrade me"}, status=422),
        REFUSED,
        "HTTP 422 schema_invalid: capacity (upgrade me)",
        None,
    ),
    "too early": (Reply(status=425), RETRY, "HTTP 425 without a body", None),
    "too many": (
        error(429, "rate_limited", **{"Retry-After": "17"}),
        RETRY,
        "HTTP 429 rate_limited: because",
        17,
    ),
    "a bug there": (error(500, "internal"), RETRY, "HTTP 500 internal: because", None),
    "gateway": (Reply(status=502, headers=HTML, body=b"Bad"), RETRY, "HTTP 502: Bad", None),
    "later, by date": (
        # half a minute after the server's own Date, whatever our clock says
        Reply(status=503, headers={**JSON_HEADERS, "Retry-After": "Tue, 01 Dec 2026 07:50:21 GMT"}),
        RETRY,
        "HTTP 503 without a body",
        30,
    ),
    "later, by our clock": (
        Reply(status=503, headers={"Retry-After": "Tue, 01 Dec 2026 09:00:05 GMT"}),
        RETRY,
        "HTTP 503 without a body",
        5,
    ),
    "not modified": (Reply(status=304, headers={}), RETRY, "HTTP 304 without a body", None),
    "nasty": (
        Reply(status=400, body=b"\x1b[31mred\x00\xff" + b"x" * 1000),
        REFUSED,
        "HTTP 400: \\x1b[31mred\\x00\ufffd" + "x" * 273 + "…",
        None,
    ),
}


@pytest.mark.parametrize(("reply", "outcome", "reason", "retry_after"), ANSWERS.values(), ids=ANSWERS)
def test_what_an_answer_means(
    client: HttpClient, reply: Reply, outcome: Outcome, reason: str, retry_after: float | None
) -> None:
    with SysinvServer({PATH: [reply]}) as server:
        answer = deliver(client, server)

    assert answer == Answer(outcome=outcome, reason=reason, retry_after_seconds=retry_after)


def test_a_server_that_echoes_the_token_gives_nothing_away(client: HttpClient, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with SysinvServer({PATH: [error(401, "unauthorized", f"bad header 'Bearer {TOKEN}'")]}) as server:
        answer = deliver(client, server, token=token)

    assert answer.reason == "HTTP 401 unauthorized: bad header 'Bearer [token]'"


def truncated(_: SysinvServer) -> Reply:
    return send(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{")


def no_http(_: SysinvServer) -> Reply:
    return send(b"SSH-2.0-OpenSSH_9.2\r\n")


def elsewhere(_: SysinvServer) -> Reply:
    return Reply(status=307, headers={"Location": "http://192.0.2.1/v1"})


def as_a_read(server: SysinvServer) -> Reply:
    return Reply(status=302, headers={"Location": f"{server.url}/login"})


def slow(server: SysinvServer) -> Reply:
    return drip(server, b"HTTP/1.1 201 Created\r\nX: ")


def closed(_: SysinvServer) -> Reply:
    return send()


@pytest.mark.parametrize("fault", [truncated, no_http, elsewhere, as_a_read, slow, hang, closed])
def test_no_usable_answer_is_tried_again(client: HttpClient, fault: Callable[[SysinvServer], Reply]) -> None:
    with SysinvServer() as server:
        server.answer(PATH, fault(server))
        sender = make_sender(client, server)

        answer = sender.send(make_report(), age_seconds=0, budget_seconds=0.5)

        assert answer.outcome is Outcome.RETRY
        assert f"{server.url}{PATH}: " in answer.reason


def test_nobody_there(client: HttpClient) -> None:
    with SysinvServer() as server:
        url = server.url
    sender = ReportSender(client, url=url, token=None, now=CLOCK.now)

    answer = sender.send(make_report(), age_seconds=0, budget_seconds=5)

    assert answer.outcome is Outcome.RETRY
    assert "refused" in answer.reason.lower()
