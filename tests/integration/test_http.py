"""The HTTP client against servers that misbehave in every way a socket allows."""

import gzip
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from sysinvserver import DATE, Reply, SysinvServer, drip, hang, pour, send

from agent.http.client import HttpClient
from agent.http.messages import Deadline, HttpError, HttpFailure, Transport, printable, safe_url

PATH = "/v1/x"
ROOT = Path(__file__).parent.parent.parent
LONG_SECONDS = 30.0
SHORT_SECONDS = 0.3


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}:
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[SysinvServer]:
    with SysinvServer({PATH: [Reply(body=b"{}")]}) as running:
        yield running


def failure_of(
    url: str, transport: Transport | None = None, *, seconds: float = LONG_SECONDS, method: str = "GET"
) -> HttpError:
    client = HttpClient(transport or Transport())
    with pytest.raises(HttpError) as caught:
        client.request(method, url, deadline=Deadline(seconds))
    client.close()
    return caught.value


OK_HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("sent", "failure", "detail"),
    [
        (b"", HttpFailure.CLOSED, "the connection was closed before an answer came"),
        (
            OK_HEAD + b"Content-Length: 10\r\n\r\n{}",
            HttpFailure.TRUNCATED,
            "the answer broke off",
        ),
        (
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{}",
            HttpFailure.TRUNCATED,
            "the answer broke off",
        ),
        (
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
            HttpFailure.TRUNCATED,
            "the answer broke off",
        ),
        (
            OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
            HttpFailure.TRUNCATED,
            "the answer broke off",
        ),
        (
            OK_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
            HttpFailure.GARBLED,
            "the answer does not decompress",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", HttpFailure.GARBLED, "the answer is not HTTP (BadStatusLine)"),
        (
            OK_HEAD + b"X: " + b"a" * 70000 + b"\r\n\r\n",
            HttpFailure.GARBLED,
            "the answer is not HTTP (LineTooLong)",
        ),
        (
            OK_HEAD + b"X: a\r\n" * 200 + b"\r\n",
            HttpFailure.GARBLED,
            "the answer is not HTTP (HTTPException)",
        ),
    ],
)
def test_broken_answer_has_a_name(
    server: SysinvServer, sent: bytes, failure: HttpFailure, detail: str
) -> None:
    server.answer(PATH, send(sent))
    error = failure_of(server.url + PATH)
    assert (error.failure, error.detail) == (failure, detail)


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 "],
)
def test_slow_loris_ends_with_the_deadline(server: SysinvServer, start: bytes) -> None:
    server.answer(PATH, drip(server, start))
    error = failure_of(server.url + PATH, seconds=SHORT_SECONDS)
    assert (error.failure, error.detail) == (HttpFailure.TIMEOUT, "no complete answer in time")


def test_silence_ends_with_the_read_timeout(server: SysinvServer) -> None:
    server.answer(PATH, hang(server))
    error = failure_of(server.url + PATH, Transport(read_timeout_seconds=SHORT_SECONDS))
    assert error.failure is HttpFailure.TIMEOUT


def test_nothing_is_sent_after_the_deadline(server: SysinvServer) -> None:
    assert failure_of(server.url + PATH, seconds=0.0).failure is HttpFailure.TIMEOUT
    assert server.requests == []


def test_huge_body_is_not_read(server: SysinvServer) -> None:
    head = OK_HEAD + b"Content-Length: 1000000000\r\n\r\n"
    server.answer(PATH, pour(head, 1_000_000_000))
    error = failure_of(server.url + PATH)
    assert (error.failure, error.detail) == (
        HttpFailure.TOO_LARGE,
        "the answer is larger than 8388608 bytes",
    )


def test_huge_body_without_a_length_is_not_read(server: SysinvServer) -> None:
    server.answer(PATH, pour(OK_HEAD + b"\r\n", 1_000_000_000))
    assert failure_of(server.url + PATH).failure is HttpFailure.TOO_LARGE


def test_small_body_that_unpacks_to_a_huge_one_is_not_kept(server: SysinvServer) -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    server.answer(PATH, Reply(headers={"Content-Encoding": "gzip"}, body=bomb))
    assert failure_of(server.url + PATH).failure is HttpFailure.TOO_LARGE


def test_body_of_exactly_the_limit_is_read(server: SysinvServer) -> None:
    server.answer(PATH, Reply(body=b"a" * 1000))
    client = HttpClient(Transport(max_body_bytes=1000))
    assert client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS)).body == b"a" * 1000
    client.close()
    assert failure_of(server.url + PATH, Transport(max_body_bytes=999)).failure is HttpFailure.TOO_LARGE


def test_compressed_answer_is_unpacked(server: SysinvServer) -> None:
    server.answer(
        PATH, Reply(headers={"Content-Encoding": "gzip", "Date": DATE}, body=gzip.compress(b'{"a": 1}'))
    )
    client = HttpClient(Transport(user_agent="lvm-audit-agent/9"))
    answer = client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
    client.close()
    assert (answer.status, answer.body) == (200, b'{"a": 1}')
    assert f"{answer.date}" == "2026-12-01 07:49:51+00:00"
    assert server.requests[0].headers["user-agent"] == "lvm-audit-agent/9"


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (None, None),
        ("yesterday", None),
        ("Tue, 01 Dec 2026 09:49:51 +0200", "2026-12-01 07:49:51+00:00"),
        ("Tue, 01 Dec 2026 07:49:51 -0000", "2026-12-01 07:49:51+00:00"),
        ("Tue, 99 Dec 2026 07:49:51 GMT", None),
    ],
)
def test_date(server: SysinvServer, date: str | None, expected: str | None) -> None:
    server.answer(PATH, Reply(headers={} if date is None else {"Date": date}))
    client = HttpClient(Transport())
    answer = client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
    client.close()
    assert (answer.date and str(answer.date)) == expected


def test_connection_is_kept_and_replaced_when_the_server_gave_it_up(server: SysinvServer) -> None:
    client = HttpClient(Transport())
    for _ in range(3):
        client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
    server.answer(PATH, send(b""), Reply(body=b"{}"))
    answer = client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
    client.close()
    assert answer.status == 200
    assert [request.connection for request in server.requests] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(("headers", "tries"), [({}, 1), ({"Idempotency-Key": "k"}, 2)])
def test_only_repeatable_requests_are_repeated(
    server: SysinvServer, headers: dict[str, str], tries: int
) -> None:
    client = HttpClient(Transport())
    client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
    server.answer(PATH, send(b""))
    with pytest.raises(HttpError) as caught:
        client.request(
            "POST", server.url + PATH, deadline=Deadline(LONG_SECONDS), headers=headers, body=b"{}"
        )
    client.close()
    assert caught.value.failure is HttpFailure.CLOSED
    assert len(server.requests) == 1 + tries


def redirect(status: int, location: str) -> Reply:
    return Reply(status=status, headers={"Location": location})


def test_redirect_on_the_same_server_is_followed_with_all_headers(server: SysinvServer) -> None:
    server.answer("/old", redirect(302, PATH))
    client = HttpClient(Transport())
    answer = client.request(
        "GET", f"{server.url}/old", deadline=Deadline(LONG_SECONDS), headers={"X-Auth-Token": "t"}
    )
    client.close()
    assert answer.url == server.url + PATH
    assert [request.headers["x-auth-token"] for request in server.requests] == ["t", "t"]


def test_redirect_to_another_server_is_refused_before_anything_is_sent(server: SysinvServer) -> None:
    with SysinvServer() as other:
        server.answer(PATH, redirect(302, f"{other.url}/v1/x?token=secret"))
        error = failure_of(server.url + PATH)
        assert other.requests == []
        expected = f"redirects to another server, {other.url}/v1/x"
    assert (error.failure, error.detail) == (HttpFailure.REDIRECTED, expected)


@pytest.mark.parametrize("location", ["https://127.0.0.1/", "http://localhost/v1/x", "http://[::1", "//h/x"])
def test_another_scheme_or_name_is_another_server(server: SysinvServer, location: str) -> None:
    server.answer(PATH, redirect(307, location))
    assert failure_of(server.url + PATH).failure is HttpFailure.REDIRECTED


@pytest.mark.parametrize("status", [301, 302, 303])
def test_redirect_that_would_turn_a_report_into_a_read_is_refused(server: SysinvServer, status: int) -> None:
    server.answer(PATH, redirect(status, "/v1/y"))
    error = failure_of(server.url + PATH, method="POST")
    assert (error.failure, error.detail) == (
        HttpFailure.REDIRECTED,
        f"redirects a POST to {server.url}/v1/y",
    )
    assert server.targets == [PATH]


def test_redirects_without_end(server: SysinvServer) -> None:
    server.answer(PATH, redirect(302, PATH))
    error = failure_of(server.url + PATH)
    assert (error.failure, error.detail) == (HttpFailure.REDIRECTED, "redirects without end")
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("url", "shown", "detail"),
    [
        (
            "http://user:pass@127.0.0.1:1/v1?token=t",
            "http://127.0.0.1:1/v1",
            "no connection: Connection refused",
        ),
        (
            "http://no-such-host.invalid/v1",
            "http://no-such-host.invalid/v1",
            "the host name does not resolve (",
        ),
        ("controller:6385", "(not a URL)", "not a usable URL"),
        ("http://[::1/v1", "(not a URL)", "not a usable URL"),
        ("ftp://user:pass@h/v1", "ftp://h/v1", "not a usable URL"),
        ("http://", "(not a URL)", "not a usable URL"),
    ],
)
def test_no_connection(url: str, shown: str, detail: str) -> None:
    error = failure_of(url)
    assert (error.failure, error.url) == (HttpFailure.UNREACHABLE, shown)
    assert error.detail.startswith(detail)


def test_proxy_is_used_and_its_password_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with SysinvServer({"http://inventory.example/v1/x": [Reply(body=b"{}")]}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:secret@"))
        client = HttpClient(Transport())
        answer = client.request("GET", "http://inventory.example/v1/x", deadline=Deadline(LONG_SECONDS))
        client.close()
        assert (answer.status, proxy.targets) == (200, ["http://inventory.example/v1/x"])
    error = failure_of("http://inventory.example/v1/x")
    assert str(error) == "http://inventory.example/v1/x: no connection: Connection refused"


def test_redirect_through_a_proxy_stays_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    start, end = "http://inventory.example/v1/x", "http://inventory.example/v1/y"
    with SysinvServer({start: [redirect(302, "/v1/y")], end: [Reply(body=b"{}")]}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        client = HttpClient(Transport())
        answer = client.request("GET", start, deadline=Deadline(LONG_SECONDS))
        client.close()
        assert (answer.url, proxy.targets) == (end, [start, end])


@pytest.mark.parametrize("proxied", [True, False])
def test_slow_loris_behind_a_proxy_ends_too(monkeypatch: pytest.MonkeyPatch, *, proxied: bool) -> None:
    with SysinvServer() as proxy:
        proxy.answer("inventory.example:443", drip(proxy, b"HTTP/1.1 200 OK\r\nX-Slow: "))
        proxy.answer("http://inventory.example/v1/x", drip(proxy, b"HTTP/1.1 200 OK\r\nX-Slow: "))
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("https_proxy", proxy.url)
        url = f"http{'s' if proxied else ''}://inventory.example/v1/x"
        assert failure_of(url, seconds=SHORT_SECONDS).failure is HttpFailure.TIMEOUT
        assert len(proxy.requests) == 1


def test_unusable_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http:///")
    error = failure_of("http://inventory.example/v1/x")
    assert error.detail == "the proxy that the environment names is not a usable URL"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_never_reached_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, server: SysinvServer, host: str
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.answer("/old", redirect(302, PATH))
    client = HttpClient(Transport())
    url = f"http://{host}:{server.port}/old"
    assert client.request("GET", url, deadline=Deadline(LONG_SECONDS)).status == 200
    client.close()


def test_netrc_is_not_read(monkeypatch: pytest.MonkeyPatch, server: SysinvServer, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.answer("/old", redirect(302, PATH))
    client = HttpClient(Transport())
    headers = {"Authorization": "Bearer ours"}
    client.request("GET", f"{server.url}/old", deadline=Deadline(LONG_SECONDS), headers=headers)
    client.close()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer ours"] * 2


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def tls_context(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_private_authority_is_trusted_when_named(
    monkeypatch: pytest.MonkeyPatch, authority: trustme.CA, ca_file: Path
) -> None:
    # The environment's bundle must not win over the configured file.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent/bundle.pem")
    with SysinvServer({PATH: [Reply(body=b"{}")]}, context=tls_context(authority)) as server:
        client = HttpClient(Transport(ca_file=ca_file))
        assert client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS)).status == 200
        client.close()


def test_unknown_authority_is_not_trusted(authority: trustme.CA) -> None:
    with SysinvServer(context=tls_context(authority)) as server:
        error = failure_of(server.url + PATH)
        assert server.requests == []
    assert error.failure is HttpFailure.TLS
    assert error.detail == "its certificate is not trusted: unable to get local issuer certificate"


def test_certificate_of_another_host_is_not_trusted(authority: trustme.CA, ca_file: Path) -> None:
    with SysinvServer(context=tls_context(authority, "other.example")) as server:
        error = failure_of(server.url + PATH, Transport(ca_file=ca_file))
    assert error.failure is HttpFailure.TLS
    assert error.detail.startswith("its certificate is not trusted: IP address mismatch")


def test_tls_to_a_server_that_speaks_none(server: SysinvServer) -> None:
    error = failure_of(server.url.replace("http:", "https:") + PATH)
    assert error.failure in {HttpFailure.TLS, HttpFailure.CLOSED}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file or directory"), (b"no certificate", "NO_CERTIFICATE_OR_CRL_FOUND")],
)
def test_unusable_authority_file(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    error = failure_of("https://127.0.0.1:1/", Transport(ca_file=path))
    assert error.failure is HttpFailure.TLS
    assert str(error) == f"{path}: the CA file can't be used ({reason})"


@pytest.mark.parametrize("key", ["ca_file", "client_certificate_file", "client_key_file"])
def test_a_certificate_file_that_is_a_pipe_is_not_waited_for(
    authority: trustme.CA, tmp_path: Path, key: str
) -> None:
    pipe, pem = tmp_path / "pipe", tmp_path / "client.pem"
    os.mkfifo(pipe)
    authority.issue_cert("agent@example").private_key_and_cert_chain_pem.write_to_path(pem)
    files: dict[str, Any] = {"client_certificate_file": pem} if key == "client_key_file" else {}
    files[key] = pipe
    error = failure_of("https://127.0.0.1:1/", Transport(**files))
    assert error.failure is HttpFailure.TLS
    assert error.detail.endswith("can't be used (not a regular file)")


def test_authority_file_that_is_taken_away(authority: trustme.CA, ca_file: Path) -> None:
    with SysinvServer({PATH: [Reply(body=b"{}")]}, context=tls_context(authority)) as server:
        client = HttpClient(Transport(ca_file=ca_file))
        with client.within(Deadline(LONG_SECONDS)):
            ca_file.unlink()
        with pytest.raises(HttpError) as caught:
            client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS))
        client.close()
    assert caught.value.detail == f"the CA file {ca_file} does not exist"


def test_client_certificate_is_shown(authority: trustme.CA, ca_file: Path, tmp_path: Path) -> None:
    context = tls_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    pem = tmp_path / "client.pem"
    authority.issue_cert("agent@example").private_key_and_cert_chain_pem.write_to_path(pem)
    with SysinvServer({PATH: [Reply(body=b"{}")]}, context=context) as server:
        client = HttpClient(Transport(ca_file=ca_file, client_certificate_file=pem))
        assert client.request("GET", server.url + PATH, deadline=Deadline(LONG_SECONDS)).status == 200
        client.close()
        error = failure_of(server.url + PATH, Transport(ca_file=ca_file))
        assert error.failure in {HttpFailure.TLS, HttpFailure.CLOSED}
        assert len(server.requests) == 1


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_unusable_client_certificate(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "client.pem"
    if content is not None:
        path.write_bytes(content)
    error = failure_of("https://127.0.0.1:1/", Transport(client_certificate_file=path))
    assert (error.failure, error.url) == (HttpFailure.TLS, str(path))
    assert error.detail.startswith("the client certificate or its key can't be used (")


def test_key_with_a_passphrase_is_refused_without_asking_the_terminal(
    authority: trustme.CA, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - one test needs it

    issued = authority.issue_cert("agent@example")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = tmp_path / "client.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"phrase"),
        )
        + issued.cert_chain_pems[0].bytes()
    )
    error = failure_of("https://127.0.0.1:1/", Transport(client_certificate_file=pem))
    assert error.failure is HttpFailure.TLS


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h:6385/v1?a=b#c", "https://h:6385/v1"),
        ("https://h/a\x1b[31m", r"https://h/a\x1b[31m"),
        ("https://u:p@[::1/", "(not a URL)"),
    ],
)
def test_safe_url(url: str, shown: str) -> None:
    assert safe_url(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc  d", "a b c d"),
        ("\x1b[31m\u202e", r"\x1b[31m\u202e"),
        ("x" * 400, "x" * 299 + "…"),
        ("", ""),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_importing_the_client_does_not_load_requests() -> None:
    code = (
        "import sys, agent.inventory.sysinv;"
        "print([name for name in ('requests', 'urllib3', 'keystoneauth1') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
