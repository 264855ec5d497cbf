"""Who the agent is towards sysinv: tokens from files, and from a Keystone that replays a real one."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sysinvserver import (
    HOST,
    HOST_FS,
    ILVGS,
    TOKENS,
    FakeMonotonic,
    Reply,
    SysinvServer,
    bug_machine,
    captured,
    captured_body,
    drip,
    reply_json,
    send,
)

from agent.core.errors import ConfigError, InventoryError, SecretUnreadable
from agent.core.inventory_errors import InventoryGarbled, InventoryRefused, InventoryUnreachable
from agent.http.client import HttpClient
from agent.http.messages import Deadline, Transport
from agent.inventory.auth import make_auth
from agent.inventory.settings import AuthSettings, InventorySection
from agent.inventory.sysinv import SysinvInventory, open_sysinv

UNAUTHORIZED = captured("keystone-06")
NOW = datetime.now(UTC)
FAR_AWAY = NOW + timedelta(days=1)
"""When tokens end unless a test says otherwise: keystoneauth1 reads the real clock."""


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[SysinvServer]:
    with SysinvServer(bug_machine()) as running:
        yield running


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("lvagentpw\n")
    return path


Opener = Callable[..., SysinvInventory]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    inventories: list[SysinvInventory] = []

    def open_one(url: str | None, auth: AuthSettings, *, deadline_seconds: float = 30.0) -> SysinvInventory:
        inventory = open_sysinv(
            InventorySection(url=url, auth=auth, deadline_seconds=deadline_seconds),
            hostname="controller-0",
            credentials_directory=str(tmp_path),
            user_agent="lvm-audit-agent/test",
            monotonic_seconds=FakeMonotonic(),
            now=lambda: NOW,
        )
        inventories.append(inventory)
        return inventory

    yield open_one
    for inventory in inventories:
        inventory.close()


def shown_tokens(server: SysinvServer) -> list[str | None]:
    return [request.headers.get("x-auth-token") for request in server.requests if request.method == "GET"]


def token_auth(path: Path | str) -> AuthSettings:
    return AuthSettings(kind="token", token_file=str(path))


def test_no_auth_shows_nothing_and_has_nothing_to_renew(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST, captured("keystone-05"))
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url, AuthSettings()).fetch()
    assert caught.value.facts["status"] == 401
    assert shown_tokens(server) == [None]


def test_token_is_read_again_when_its_file_changes(
    server: SysinvServer, opened: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    inventory = opened(server.url, token_auth(path))
    inventory.fetch()
    assert shown_tokens(server) == ["one"] * 4
    # A new file in its place: the inode differs, even when size and time would be the same.
    before = path.stat()
    fresh = tmp_path / "fresh"
    fresh.write_text("two\n")
    os.utime(fresh, ns=(before.st_atime_ns, before.st_mtime_ns))
    fresh.rename(path)
    inventory.fetch()
    assert shown_tokens(server)[4:] == ["two"] * 3


def test_token_as_a_systemd_credential(server: SysinvServer, opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "sysinv-token").write_text("from-systemd")
    opened(server.url, token_auth("sysinv-token")).fetch()
    assert shown_tokens(server) == ["from-systemd"] * 4


def test_refused_token_is_read_again_and_the_new_one_shown(
    server: SysinvServer, opened: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    before = path.stat()
    inventory = opened(server.url, token_auth(path))
    inventory.fetch()
    server.requests.clear()
    # Rewritten in place within one tick of the clock: nothing but its content tells.
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    server.answer(HOST_FS, UNAUTHORIZED, captured("06"))
    inventory.fetch()
    assert shown_tokens(server) == ["one", "two", "two", "two"]


def test_refused_token_that_did_not_change_is_not_shown_again(
    server: SysinvServer, opened: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    server.answer(HOST_FS, UNAUTHORIZED)
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url, token_auth(path)).fetch()
    assert server.targets == [HOST, HOST_FS]
    assert str(caught.value) == (
        f"{server.url}{HOST_FS} answered 401: The request you have made requires authentication."
    )


def test_token_that_a_server_echoes_is_not_shown(
    server: SysinvServer, opened: Opener, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("gAAAAA-very-secret")
    echo = json.dumps({"error_message": json.dumps({"faultstring": "token gAAAAA-very-secret is expired"})})
    server.answer(HOST, Reply(status=403, body=echo.encode()))
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url, token_auth(path)).fetch()
    assert str(caught.value) == f"{server.url}{HOST} answered 403: token [secret] is expired"
    server.answer(HOST, Reply(status=200, body=b"<p>gAAAAA-very-secret"))
    with pytest.raises(InventoryGarbled) as garbled:
        opened(server.url, token_auth(path)).fetch()
    assert "very-secret" not in str(garbled.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "can't be read: No such file or directory"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"a\nb\n", "has more than one line"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a" * 65537, "is larger than 65536 bytes, which no secret is"),
        (b"a b", "holds characters that no token has"),
        ("a\u00e9".encode(), "holds characters that no token has"),
        (b"a\x1b[31m", "holds characters that no token has"),
    ],
)
def test_unusable_token_file(
    server: SysinvServer, opened: Opener, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretUnreadable) as caught:
        opened(server.url, token_auth(path)).fetch()
    assert str(caught.value) == f"{path}: {reason}"
    assert caught.value.exit_code == 6
    assert server.requests == []


def test_token_file_that_is_none(server: SysinvServer, opened: Opener, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, reason in (
        (tmp_path / "fifo", "is not a regular file"),
        (tmp_path, "can't be read: Is a directory"),
        (f"{tmp_path}/\0", "no file can have this name"),
    ):
        with pytest.raises(SecretUnreadable, match=reason):
            opened(server.url, token_auth(path)).fetch()


def test_credential_without_systemd() -> None:
    client = HttpClient(Transport())
    auth = make_auth(token_auth("sysinv-token"), client, credentials_directory=None)
    with pytest.raises(SecretUnreadable, match=r"\$CREDENTIALS_DIRECTORY is not set \(LoadCredential=\)"):
        auth.headers(None)  # type: ignore[arg-type] # a token from a file has no use for a deadline


# Keystone


def token_reply(
    server: SysinvServer,
    token: str = "gAAAAA64f1a83e370e4b43bbb845c6292bc284",  # noqa: S107 - the captured one, long expired
    *,
    expires_at: datetime = FAR_AWAY,
    **changes: Any,
) -> Reply:
    """The captured token exchange, with a life and endpoints that fit this test."""
    body = captured_body("keystone-02")
    body["token"]["expires_at"] = f"{expires_at:%Y-%m-%dT%H:%M:%S}.000000Z"
    for service in body["token"]["catalog"]:
        for endpoint in service["endpoints"]:
            if service["type"] == "platform":
                endpoint["url"] = f"{server.url}/v1"
    body["token"].update(changes)
    return reply_json(body, 201, **{"X-Subject-Token": token})


def keystone(server: SysinvServer, **fields: Any) -> AuthSettings:
    values = {"url": server.url, "username": "lvagent", "password_file": "password", **fields}
    return AuthSettings(kind="keystone", **values)


def test_captured_exchange(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    server.answer(TOKENS, token_reply(server))
    inventory = opened(None, keystone(server))
    assert inventory.origin == "sysinv, from Keystone's catalogue"
    recorded = inventory.fetch()
    assert len(recorded.filesystems) == 9
    assert recorded.origin == f"{server.url}/v1"
    first = server.requests[0]
    assert (first.method, first.target) == ("POST", TOKENS)
    exchange = json.loads(
        (Path(__file__).parent.parent / "data/sysinv/keystone-02-token-lvagent.json").read_text()
    )
    assert json.loads(first.body) == exchange["request"]["body"]
    assert first.headers["user-agent"].startswith("lvm-audit-agent/test")
    assert shown_tokens(server) == ["gAAAAA64f1a83e370e4b43bbb845c6292bc284"] * 4
    inventory.fetch()
    assert server.targets.count(TOKENS) == 1
    assert {request.connection for request in server.requests} == {1}


@pytest.mark.parametrize("suffix", ["", "/", "/v3", "/v3/"])
def test_version_of_keystone_is_added_when_absent(
    server: SysinvServer, opened: Opener, password_file: Path, suffix: str
) -> None:
    server.answer(TOKENS, token_reply(server))
    opened(server.url, keystone(server, url=server.url + suffix)).fetch()
    assert server.targets[0] == TOKENS


def test_token_that_expires_is_renewed_before_it_is_used(
    server: SysinvServer, opened: Opener, password_file: Path
) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=20)
    server.answer(TOKENS, token_reply(server, "old", expires_at=soon), token_reply(server, "new"))
    inventory = opened(server.url, keystone(server))
    inventory.fetch()
    # Each use within the last half minute of a token asks for another.
    assert shown_tokens(server) == ["old", "new", "new", "new"]
    inventory.fetch()
    assert server.targets.count(TOKENS) == 2


def test_refused_token_is_renewed_once(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    server.answer(TOKENS, token_reply(server, "old"), token_reply(server, "new"))
    inventory = opened(server.url, keystone(server))
    inventory.fetch()
    server.requests.clear()
    server.answer(HOST_FS, UNAUTHORIZED, captured("keystone-08"))
    recorded = inventory.fetch()
    assert len(recorded.filesystems) == 9
    assert server.targets[:3] == [HOST_FS, TOKENS, HOST_FS]
    assert shown_tokens(server) == ["old", "new", "new", "new"]


def test_token_refused_twice_is_an_error(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    server.answer(TOKENS, token_reply(server, "old"), token_reply(server, "new"))
    server.answer(HOST_FS, UNAUTHORIZED)
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url, keystone(server)).fetch()
    assert str(caught.value) == (
        f"{server.url}{HOST_FS} answered 401: The request you have made requires authentication."
    )
    assert caught.value.hint == ("check [inventory.auth]: the user, its password or token, and their project")
    assert server.targets == [TOKENS, HOST, HOST_FS, TOKENS, HOST_FS]


def test_user_without_a_role(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    server.answer(TOKENS, token_reply(server))
    server.answer(HOST, captured("keystone-10"))
    with pytest.raises(InventoryRefused, match="answered 403: Access was denied to this resource"):
        opened(server.url, keystone(server)).fetch()
    assert server.targets == [TOKENS, HOST]


def test_wrong_password_is_tried_once_per_audit_and_not_shown(
    server: SysinvServer, opened: Opener, password_file: Path
) -> None:
    echo = {"error": {"code": 401, "message": "no user with lvagentpw", "title": "Unauthorized"}}
    server.answer(TOKENS, reply_json(echo, 401))
    inventory = opened(server.url, keystone(server))
    with pytest.raises(InventoryRefused) as caught:
        inventory.fetch()
    assert str(caught.value) == f"{server.url} answered 401: no user with [secret]"
    assert server.targets == [TOKENS]
    # The new password is used without a restart.
    password_file.write_text("rotated")
    server.answer(TOKENS, token_reply(server))
    inventory.fetch()
    sent = json.loads(server.requests[1].body)["auth"]["identity"]["password"]["user"]["password"]
    assert sent == "rotated"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"region": "RegionTwo"}, "internal, region RegionTwo"),
        ({"region": "RegionTwo", "interface": "admin"}, "admin, region RegionTwo"),
    ],
)
def test_catalogue_without_our_region(
    server: SysinvServer, opened: Opener, password_file: Path, fields: dict[str, str], where: str
) -> None:
    server.answer(TOKENS, token_reply(server))
    with pytest.raises(InventoryUnreachable) as caught:
        opened(None, keystone(server, **fields)).fetch()
    assert str(caught.value) == f"{server.url}: the catalogue has no service of type platform ({where})"
    assert caught.value.hint == "set [inventory] url, or another interface or region in [inventory.auth]"


@pytest.mark.parametrize("catalog", [7, [7], [{"type": "platform", "endpoints": [7]}]])
def test_unreadable_catalogue(
    server: SysinvServer, opened: Opener, password_file: Path, catalog: object
) -> None:
    server.answer(TOKENS, token_reply(server, catalog=catalog))
    with pytest.raises(InventoryGarbled, match="Keystone's catalogue is not what it should be"):
        opened(None, keystone(server)).fetch()


def test_token_without_a_url_has_nowhere_to_go(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with pytest.raises(InventoryError, match="is not set, and there is no catalogue"):
        opened(None, token_auth("token")).fetch()


@pytest.mark.parametrize("catalog", [[], [{"type": "platform", "endpoints": []}]])
def test_empty_catalogue(
    server: SysinvServer, opened: Opener, password_file: Path, catalog: list[object]
) -> None:
    server.answer(TOKENS, token_reply(server, catalog=catalog))
    with pytest.raises(InventoryUnreachable, match="the catalogue has no service of type platform"):
        opened(None, keystone(server)).fetch()


@pytest.mark.parametrize(
    ("interface", "region", "port_of"),
    [("internal", None, 0), ("public", "RegionOne", 1), ("admin", "RegionTwo", 2)],
)
def test_interface_and_region_choose_the_endpoint(
    opened: Opener, password_file: Path, interface: str, region: str | None, port_of: int
) -> None:
    with SysinvServer() as first, SysinvServer() as second, SysinvServer() as third:
        servers = [first, second, third]
        for each in servers:
            each.replies.update({path: list(replies) for path, replies in bug_machine().items()})
        endpoints = [
            {"interface": "internal", "region": "RegionOne", "region_id": "RegionOne", "url": first.url},
            {
                "interface": "public",
                "region": "RegionOne",
                "region_id": "RegionOne",
                "url": f"{second.url}/v1",
            },
            {
                "interface": "admin",
                "region": "RegionTwo",
                "region_id": "RegionTwo",
                "url": f"{third.url}/v1/",
            },
        ]
        catalog = [{"type": "platform", "name": "sysinv", "id": "1", "endpoints": endpoints}]
        first.answer(TOKENS, token_reply(first, catalog=catalog))
        opened(None, keystone(first, interface=interface, region=region)).fetch()
        asked = [HOST in each.targets for each in servers]
    assert asked == [number == port_of for number in range(3)]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=201, body=b"<html>"), "Keystone's answer is not what it should be (InvalidResponse)"),
        (Reply(status=201, body=b"{}"), "Keystone's answer is not what it should be (InvalidResponse)"),
        (
            reply_json({"token": {}}, 201, **{"X-Subject-Token": "t"}),
            "Keystone's token is not what it should be (KeyError)",
        ),
        (reply_json({"token": {}}, 201), "Keystone's token is not what it should be (KeyError)"),
        (reply_json({"token": 7}, 201), "Keystone's token is not what it should be (KeyError)"),
        (reply_json([], 201), "Keystone's answer is not what it should be (InvalidResponse)"),
        (
            reply_json({"token": {"expires_at": 7}}, 201, **{"X-Subject-Token": "t"}),
            "Keystone's token is not what it should be (ValueError)",
        ),
        (send(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{"), "the answer broke off"),
        (
            Reply(status=201, body=b"a" * (8 * 1024 * 1024 + 1)),
            "the answer is larger than 8388608 bytes",
        ),
    ],
)
def test_keystone_that_answers_something_else(
    server: SysinvServer, opened: Opener, password_file: Path, reply: Reply, reason: str
) -> None:
    server.answer(TOKENS, reply)
    with pytest.raises(InventoryGarbled) as caught:
        opened(server.url, keystone(server)).fetch()
    assert str(caught.value).endswith(f": {reason}")
    assert str(caught.value).startswith(server.url)
    assert "lvagentpw" not in f"{caught.value!r}{caught.value.hint}"


def test_unusable_token_is_not_kept(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    broken = reply_json({"token": {"expires_at": 7}}, 201, **{"X-Subject-Token": "t"})
    server.answer(TOKENS, broken, token_reply(server))
    inventory = opened(server.url, keystone(server))
    with pytest.raises(InventoryGarbled):
        inventory.fetch()
    assert len(inventory.fetch().filesystems) == 9


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (503, b"<html>down</html>", "a page of HTML or XML, <html>down</html>"),
        (404, b"", "no reason given"),
        (500, b'{"error": {"message": "boom"}}', "boom"),
    ],
)
def test_keystone_that_refuses(
    server: SysinvServer, opened: Opener, password_file: Path, status: int, body: bytes, reason: str
) -> None:
    server.answer(TOKENS, Reply(status=status, body=body))
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url, keystone(server)).fetch()
    assert str(caught.value) == f"{server.url} answered {status}: {reason}"


def test_slow_keystone_ends_with_the_deadline_of_the_audit(
    server: SysinvServer, opened: Opener, password_file: Path
) -> None:
    server.answer(TOKENS, drip(server, b"HTTP/1.1 201 Created\r\nContent-Length: 100000\r\n\r\n"))
    with pytest.raises(InventoryUnreachable, match="no complete answer in time"):
        opened(server.url, keystone(server), deadline_seconds=0.5).fetch()


def test_password_goes_to_no_other_server(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    with SysinvServer() as other:
        server.answer(TOKENS, Reply(status=307, headers={"Location": f"{other.url}{TOKENS}"}))
        with pytest.raises(InventoryUnreachable, match="redirects to another server"):
            opened(server.url, keystone(server)).fetch()
        assert other.requests == []


def test_keystone_away(opened: Opener, password_file: Path, server: SysinvServer) -> None:
    with pytest.raises(InventoryUnreachable) as caught:
        opened(server.url, keystone(server, url="http://127.0.0.1:1/v3")).fetch()
    assert str(caught.value) == "http://127.0.0.1:1/v3/auth/tokens: no connection: Connection refused"


def test_view_refused_for_the_token_costs_only_a_finding(
    server: SysinvServer, opened: Opener, password_file: Path
) -> None:
    server.answer(TOKENS, token_reply(server))
    server.answer(ILVGS, UNAUTHORIZED)
    recorded = opened(server.url, keystone(server)).fetch()
    assert [finding.kind for finding in recorded.findings] == ["platform_view_unavailable"]


def test_incomplete_auth_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError) as caught:
        make_auth(AuthSettings(kind="token"), HttpClient(Transport()), credentials_directory=None)
    assert caught.value.problems == ('inventory.auth.token_file: is needed when kind = "token"',)
    assert caught.value.exit_code == 4


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, password_file: Path) -> None:
    # How Python itself marks a module that can't be imported.
    monkeypatch.setitem(sys.modules, "keystoneauth1", None)
    settings = AuthSettings(kind="keystone", url="http://k", password_file=str(password_file))
    with pytest.raises(ConfigError) as caught:
        make_auth(settings, HttpClient(Transport()), credentials_directory=None)
    (problem,) = caught.value.problems
    assert problem == (
        'inventory.auth.kind: "keystone" needs the package keystoneauth1: '
        "pip install 'lvm-audit-agent[sysinv]'"
    )


def test_no_secret_in_any_repr(server: SysinvServer, opened: Opener, password_file: Path) -> None:
    server.answer(TOKENS, token_reply(server, "gAAAA-secret"))
    settings = keystone(server)
    client = HttpClient(Transport())
    auth = make_auth(settings, client, credentials_directory=str(password_file.parent))
    with client.within(Deadline(30.0)):
        assert auth.headers(Deadline(30.0)) == {"X-Auth-Token": "gAAAA-secret"}
    client.close()
    shown = f"{auth!r}{settings!r}{client!r}"
    assert "lvagentpw" not in shown
    assert "gAAAA-secret" not in shown
