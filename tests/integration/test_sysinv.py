"""Recorded sizes from sysinv: the captured answers, and every answer that must not be believed."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from builders import BUG_LVS, make_lv, make_vg
from sysinvserver import (
    CONTROLLER_FS,
    DATE,
    HOST,
    HOST_FS,
    HOST_UUID,
    ILVGS,
    JSON_HEADERS,
    FakeMonotonic,
    Reply,
    SysinvServer,
    bug_machine,
    captured,
    captured_body,
    drip,
    pour,
    reply_json,
    send,
)

from agent.core.errors import InventoryError
from agent.core.inventory_errors import (
    HostUnknown,
    InventoryGarbled,
    InventoryRefused,
    InventoryUnreachable,
    NothingRecorded,
)
from agent.core.judge import judge
from agent.core.models import Reading, Source
from agent.core.report import AuditVerdict
from agent.core.units import GIB
from agent.inventory.settings import InventorySection
from agent.inventory.sysinv import SysinvInventory, open_sysinv

LOCAL_NOW = datetime(2030, 1, 1, tzinfo=UTC)
AS_OF = datetime(2026, 12, 1, 7, 49, 51, tzinfo=UTC)
OTHER_UUID = "22222222-2222-4222-8222-222222222222"
OTHER_HOST_FS = f"/v1/ihosts/{OTHER_UUID}/host_fs"


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
def clock() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture
def opened() -> Iterator[Callable[..., SysinvInventory]]:
    inventories: list[SysinvInventory] = []

    def open_one(
        url: str,
        *,
        hostname: str = "controller-0",
        clock: FakeMonotonic | None = None,
        deadline_seconds: float = 30.0,
    ) -> SysinvInventory:
        inventory = open_sysinv(
            InventorySection(url=url, deadline_seconds=deadline_seconds),
            hostname=hostname,
            credentials_directory=None,
            user_agent="lvm-audit-agent/test",
            monotonic_seconds=clock or FakeMonotonic(),
            now=lambda: LOCAL_NOW,
        )
        inventories.append(inventory)
        return inventory

    yield open_one
    for inventory in inventories:
        inventory.close()


Opener = Callable[..., SysinvInventory]


def changed_host(**fields: object) -> Reply:
    return reply_json({**captured_body("05"), **fields})


def host_fs(*rows: dict[str, Any]) -> Reply:
    return reply_json({"host_fs": list(rows)})


def one_row(**fields: object) -> dict[str, Any]:
    return {**captured_body("06")["host_fs"][3], **fields}


def test_the_bugs_records(server: SysinvServer, opened: Opener) -> None:
    recorded = opened(server.url).fetch()
    assert [
        (row.source, row.name, row.logical_volume, row.recorded_bytes // GIB) for row in recorded.filesystems
    ] == [
        (Source.CONTROLLER_FS, "platform", "platform-lv", 10),
        (Source.CONTROLLER_FS, "database", "pgsql-lv", 20),
        (Source.CONTROLLER_FS, "extension", "extension-lv", 1),
        (Source.CONTROLLER_FS, "etcd", "etcd-lv", 5),
        (Source.CONTROLLER_FS, "docker-distribution", "dockerdistribution-lv", 32),
        (Source.HOST_FS, "scratch", "scratch-lv", 16),
        (Source.HOST_FS, "backup", "backup-lv", 25),
        (Source.HOST_FS, "kubelet", "kubelet-lv", 10),
        (Source.HOST_FS, "docker", "docker-lv", 40),
    ]
    assert (recorded.as_of, recorded.hostname, recorded.origin) == (AS_OF, "controller-0", f"{server.url}/v1")
    assert (recorded.volume_groups, recorded.findings) == (("cgts-vg",), ())
    (view,) = recorded.platform_views
    assert (view.volume_group, view.extent_count, view.free_extents) == ("cgts-vg", 6047, 319)


def test_the_bug_is_seen_before_the_upgrade(server: SysinvServer, opened: Opener) -> None:
    sizes = {**BUG_LVS, "dockerdistribution-lv": 1024}
    volume_group = make_vg(make_lv(name, extents) for name, extents in sizes.items())
    recorded = opened(server.url).fetch()
    judgement = judge("cgts-vg", Reading(volume_group=volume_group), recorded, grace_seconds=10)
    assert judgement.verdict is AuditVerdict.DOES_NOT_FIT
    assert {row.name: str(row.verdict) for row in judgement.filesystems or ()} == {
        "platform": "match",
        "database": "match",
        "extension": "match",
        "etcd": "match",
        "docker-distribution": "match",
        "scratch": "match",
        "backup": "match",
        "kubelet": "match",
        "docker": "undersized",
    }


def test_three_reads_over_one_connection_when_warm(server: SysinvServer, opened: Opener) -> None:
    inventory = opened(server.url)
    inventory.fetch()
    assert server.targets == [HOST, HOST_FS, CONTROLLER_FS, ILVGS]
    inventory.fetch()
    assert server.targets[4:] == [HOST_FS, CONTROLLER_FS, ILVGS]
    assert {request.connection for request in server.requests} == {1}
    assert {request.method for request in server.requests} == {"GET"}
    assert server.requests[0].headers["user-agent"] == "lvm-audit-agent/test"


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_version_is_added_to_the_url_when_absent(server: SysinvServer, opened: Opener, suffix: str) -> None:
    assert opened(server.url + suffix).fetch().origin == f"{server.url}/v1"


@pytest.mark.parametrize("personality", ["worker", "storage", None])
def test_controller_fs_is_not_asked_for_elsewhere(
    server: SysinvServer, opened: Opener, personality: str | None
) -> None:
    server.answer(HOST, changed_host(personality=personality))
    recorded = opened(server.url).fetch()
    assert [row.name for row in recorded.filesystems] == ["scratch", "backup", "kubelet", "docker"]
    assert CONTROLLER_FS not in server.targets


def test_hostname_is_escaped_in_the_path(server: SysinvServer, opened: Opener) -> None:
    server.answer("/v1/ihosts/a%2Fb%3Fc", changed_host(hostname="a/b?c"))
    assert opened(server.url, hostname="a/b?c").fetch().hostname == "a/b?c"


@pytest.mark.parametrize("hostname", [".", ".."])
def test_hostname_that_would_leave_the_collection(
    server: SysinvServer, opened: Opener, hostname: str
) -> None:
    with pytest.raises(HostUnknown):
        opened(server.url, hostname=hostname).fetch()
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (captured("17"), "Host FS with id 99999999-9999-4999-8999-999999999999 not found"),
        (
            captured("18"),
            (
                "Invalid input for field/attribute host_fs_uuid. Value: 'notauuid'. unable to convert to "
                "uuid. Error: Expected a uuid but received notauuid."
            ),
        ),
    ],
)
def test_unknown_host(server: SysinvServer, opened: Opener, reply: Reply, reason: str) -> None:
    server.answer(HOST, reply)
    with pytest.raises(HostUnknown) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}/v1 knows no host 'controller-0': {reason}"
    assert caught.value.hint == (
        "set [agent] hostname to the name that `system host-list` shows for this host"
    )
    assert caught.value.exit_code == 6


def test_answer_about_another_host(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST, changed_host(hostname="controller-1"))
    with pytest.raises(InventoryGarbled, match="asked for controller-0, the answer is about 'controller-1'"):
        opened(server.url).fetch()


def test_row_of_another_host(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, host_fs(one_row(ihost_uuid=OTHER_UUID)))
    with pytest.raises(InventoryGarbled) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == (
        f"{server.url}{HOST_FS}: row 1 ('docker'): ihost_uuid '{OTHER_UUID}' is not this host's, {HOST_UUID}"
    )


def test_no_row_at_all_is_never_a_clean_bill(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, captured("19"))
    server.answer(CONTROLLER_FS, reply_json({"controller_fs": []}))
    with pytest.raises(NothingRecorded) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}/v1 records no filesystem for host 'controller-0'"
    assert caught.value.exit_code == 6


def test_controller_without_rows_of_its_own_is_said(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, captured("19"))
    recorded = opened(server.url).fetch()
    assert len(recorded.filesystems) == 5
    assert [(finding.kind, finding.severity) for finding in recorded.findings] == [
        ("host_fs_empty", "warning")
    ]


REINSTALLED = [
    pytest.param(captured("19"), id="empty list, the trap"),
    pytest.param(captured("17"), id="404"),
    pytest.param(captured("18"), id="400"),
]


@pytest.mark.parametrize("stale", REINSTALLED)
def test_host_is_looked_up_again_when_its_uuid_leads_nowhere(
    server: SysinvServer, opened: Opener, stale: Reply
) -> None:
    inventory = opened(server.url)
    inventory.fetch()
    server.requests.clear()
    server.answer(HOST_FS, stale)
    server.answer(HOST, changed_host(uuid=OTHER_UUID))
    server.answer(OTHER_HOST_FS, host_fs(one_row(ihost_uuid=OTHER_UUID, size=41)))
    recorded = inventory.fetch()
    assert recorded.filesystems[-1].recorded_bytes == 41 * GIB
    assert [target for target in server.targets if target not in {CONTROLLER_FS, ILVGS}] == [
        HOST_FS,
        HOST,
        OTHER_HOST_FS,
        f"/v1/ihosts/{OTHER_UUID}/ilvgs",
    ]


@pytest.mark.parametrize("stale", REINSTALLED)
def test_host_that_was_deleted_is_unknown_and_not_empty(
    server: SysinvServer, opened: Opener, stale: Reply
) -> None:
    inventory = opened(server.url)
    inventory.fetch()
    server.answer(HOST_FS, stale)
    server.answer(HOST, captured("17"))
    for _ in range(2):
        with pytest.raises(HostUnknown):
            inventory.fetch()


def test_host_is_looked_up_again_every_ten_minutes(
    server: SysinvServer, opened: Opener, clock: FakeMonotonic
) -> None:
    inventory = opened(server.url, clock=clock)
    inventory.fetch()
    clock.offset_seconds = 590.0
    inventory.fetch()
    assert server.targets.count(HOST) == 1
    clock.offset_seconds = 601.0
    inventory.fetch()
    assert server.targets.count(HOST) == 2


@pytest.mark.parametrize("date", [None, "yesterday"])
def test_without_a_date_the_local_clock_is_used_and_said(
    server: SysinvServer, opened: Opener, date: str | None
) -> None:
    headers = {} if date is None else {"Date": date}
    for path, name in ((HOST_FS, "06"), (CONTROLLER_FS, "09")):
        server.answer(path, Reply(headers=headers, body=captured(name).body))
    recorded = opened(server.url).fetch()
    assert recorded.as_of == LOCAL_NOW
    assert [(finding.kind, finding.severity) for finding in recorded.findings] == [
        ("inventory_clock_unknown", "info")
    ]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (captured("17"), "answered 404: Host FS with id 99999999-9999-4999-8999-999999999999 not found"),
        (send(b""), "the connection was closed before an answer came"),
        (reply_json({"ilvgs": [{"lvm_vg_name": "cgts-vg"}]}), "lvm_vg_total_pe is not there"),
    ],
)
def test_records_are_had_without_the_platforms_view(
    server: SysinvServer, opened: Opener, reply: Reply, message: str
) -> None:
    server.answer(ILVGS, reply)
    recorded = opened(server.url).fetch()
    assert (len(recorded.filesystems), recorded.platform_views) == (9, ())
    (finding,) = recorded.findings
    assert (finding.kind, finding.severity) == ("platform_view_unavailable", "info")
    assert message in finding.message


def test_volume_group_the_platform_never_saw(server: SysinvServer, opened: Opener) -> None:
    server.answer(ILVGS, reply_json({"ilvgs": []}))
    (finding,) = opened(server.url).fetch().findings
    assert finding.message == "the platform has never been told about cgts-vg on this host"


def test_pages_are_followed_in_order(server: SysinvServer, opened: Opener) -> None:
    rows = captured_body("06")["host_fs"]
    server.answer(HOST_FS, reply_json({"host_fs": rows[:2], "next": f"{server.url}{HOST_FS}?marker=2"}))
    server.answer(f"{HOST_FS}?marker=2", reply_json({"host_fs": rows[2:3], "next": "?marker=3"}))
    server.answer(f"{HOST_FS}?marker=3", reply_json({"host_fs": rows[3:], "next": None}))
    recorded = opened(server.url).fetch()
    assert [row.name for row in recorded.filesystems[5:]] == ["scratch", "backup", "kubelet", "docker"]


def test_bad_row_of_a_later_page_is_counted_from_the_first(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, reply_json({"host_fs": [one_row()], "next": "?marker=2"}))
    server.answer(f"{HOST_FS}?marker=2", host_fs(one_row(size=-1)))
    with pytest.raises(InventoryGarbled, match=r"row 2 \('docker'\): size -1 is negative"):
        opened(server.url).fetch()


@pytest.mark.parametrize(
    ("following", "reason"),
    [
        (HOST_FS, "its pages never end"),
        ("http://evil.example/v1/host_fs", "its next page is on another server"),
        ("https://127.0.0.1/v1/host_fs", "its next page is on another server"),
        ("http://[::1", "its next page is on another server"),
        (7, "the link to its next page is not text"),
    ],
)
def test_pages_that_lead_astray(server: SysinvServer, opened: Opener, following: object, reason: str) -> None:
    server.answer(HOST_FS, reply_json({"host_fs": [one_row()], "next": following}))
    with pytest.raises(InventoryGarbled) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}{HOST_FS}: {reason}"


def test_pages_without_end(server: SysinvServer, opened: Opener) -> None:
    for page in range(100):
        path = f"{HOST_FS}?page={page}" if page else HOST_FS
        server.answer(path, reply_json({"host_fs": [], "next": f"?page={page + 1}"}))
    with pytest.raises(InventoryGarbled, match="its pages never end"):
        opened(server.url).fetch()
    assert len(server.requests) == 51


def fault(text: str) -> bytes:
    """An error as sysinv encodes it: twice."""
    return json.dumps({"error_message": json.dumps({"faultstring": text, "debuginfo": None})}).encode()


@pytest.mark.parametrize(
    ("status", "body", "reason", "advice"),
    [
        (
            400,
            captured("31").body,
            "HostFs update failed: size for filesystem 'docker' should be bigger than 40.",
            "look at /var/log/sysinv.log on the active controller for the request it refused",
        ),
        (
            401,
            captured("keystone-05").body,
            "OIDC Authorization failed: Missing OIDC token in the request",
            "check [inventory.auth]: the user, its password or token, and their project",
        ),
        (
            401,
            captured("keystone-06").body,
            "The request you have made requires authentication.",
            "check [inventory.auth]: the user, its password or token, and their project",
        ),
        (
            403,
            captured("keystone-10").body,
            "Access was denied to this resource.",
            "give the user the role reader in the project admin or services",
        ),
        (
            404,
            b"<html><head><title>404 Not Found</title></head></html>",
            "a page of HTML or XML, <html><head><title>404 Not Found</title></head></html>",
            "check [inventory] url: it must be the API's, for example http://controller:6385/v1",
        ),
        (
            405,
            b"",
            "no reason given",
            "check [inventory] url: it must be the API's, for example http://controller:6385/v1",
        ),
        (
            418,
            b"short and stout",
            "short and stout",
            "look at /var/log/sysinv.log on the active controller for the request it refused",
        ),
        (
            429,
            b'{"message": "slow down"}',
            "slow down",
            "ask again later; if it lasts, check that sysinv-api runs on the active controller",
        ),
        (
            500,
            fault("\x1b[2J\u202eTraceback\n  File"),
            r"\x1b[2J\u202eTraceback File",
            "look at /var/log/sysinv.log on the active controller",
        ),
        (
            500,
            fault("x" * 5000),
            "x" * 299 + "…",
            "look at /var/log/sysinv.log on the active controller",
        ),
        (
            500,
            b'{"error_message": "plain words"}',
            "plain words",
            "look at /var/log/sysinv.log on the active controller",
        ),
        (
            500,
            b'{"error_message": "{broken"}',
            "{broken",
            "look at /var/log/sysinv.log on the active controller",
        ),
        (
            500,
            b'{"error_message": {"a": 1}}',
            '{"error_message": {"a": 1}}',
            "look at /var/log/sysinv.log on the active controller",
        ),
        (
            502,
            b"\xff\xfe\x00",
            "\ufffd\ufffd\\x00",
            "ask again later; if it lasts, check that sysinv-api runs on the active controller",
        ),
        (
            503,
            b"[" * 100_000,
            "[" * 119 + "…",
            "ask again later; if it lasts, check that sysinv-api runs on the active controller",
        ),
    ],
)
@pytest.mark.parametrize("path", [HOST_FS, CONTROLLER_FS])
def test_refusal_says_where_what_and_why(
    server: SysinvServer, opened: Opener, path: str, status: int, body: bytes, reason: str, advice: str
) -> None:
    server.answer(path, Reply(status=status, headers={"Date": DATE}, body=body))
    with pytest.raises(InventoryRefused) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}{path} answered {status}: {reason}"
    assert (caught.value.hint, caught.value.exit_code) == (advice, 6)


@pytest.mark.parametrize("status", [300, 304])
def test_an_answer_that_is_no_success_is_a_refusal(server: SysinvServer, opened: Opener, status: int) -> None:
    server.answer(HOST_FS, Reply(status=status))
    with pytest.raises(InventoryRefused, match=f"answered {status}: no reason given"):
        opened(server.url).fetch()


@pytest.mark.parametrize("body", [b"", b"<html>", b'"no such page"', b"[]"])
@pytest.mark.parametrize("status", [400, 404])
def test_a_proxys_404_does_not_say_that_the_host_is_unknown(
    server: SysinvServer, opened: Opener, status: int, body: bytes
) -> None:
    server.answer(HOST, Reply(status=status, body=body))
    with pytest.raises(InventoryRefused, match=f"answered {status}: "):
        opened(server.url).fetch()


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_host_that_can_not_be_asked_for_is_not_unknown(
    server: SysinvServer, opened: Opener, status: int
) -> None:
    server.answer(HOST, Reply(status=status, body=captured("17").body))
    with pytest.raises(InventoryRefused, match=f"answered {status}: Host FS with id"):
        opened(server.url).fetch()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "answered 200 with nothing"),
        (
            b"<html>Log in to continue</html>",
            (
                "answered 200 with 31 bytes that are not JSON (application/json): "
                "a page of HTML or XML, <html>Log in to continue</html>"
            ),
        ),
        (
            b'{"host_fs": [',
            'answered 200 with 13 bytes that are not JSON (application/json): {"host_fs": [',
        ),
        (
            b'{"host_fs": NaN}',
            'answered 200 with 16 bytes that are not JSON (application/json): {"host_fs": NaN}',
        ),
        (
            b"\x1b[2J",
            r"answered 200 with 4 bytes that are not JSON (application/json): \x1b[2J",
        ),
        (b"[]", "answered 200 with JSON that is no object"),
        (b"null", "answered 200 with JSON that is no object"),
        (b"{}", "the answer has no list 'host_fs'"),
        (b'{"host_fs": null}', "the answer has no list 'host_fs'"),
        (b'{"host_fs": {"name": "docker"}}', "the answer has no list 'host_fs'"),
        (b'{"host_fs": ["docker"]}', "row 1 of host_fs is not an object"),
        (b'{"host_fs": [{}]}', "row 1: name is not there"),
    ],
)
def test_answer_that_is_no_list_of_filesystems(
    server: SysinvServer, opened: Opener, body: bytes, reason: str
) -> None:
    server.answer(HOST_FS, Reply(headers=dict(JSON_HEADERS), body=body))
    with pytest.raises(InventoryGarbled) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}{HOST_FS}: {reason}"
    assert caught.value.exit_code == 6


@pytest.mark.parametrize("body", [b'{"host_fs": ' + b"[" * 100_000, b'{"a":' * 100_000])
def test_deep_nesting_does_not_end_the_agent(server: SysinvServer, opened: Opener, body: bytes) -> None:
    server.answer(HOST_FS, Reply(body=body))
    with pytest.raises(InventoryGarbled):
        opened(server.url).fetch()


@pytest.mark.parametrize("value", ["40", 40.5, 1e300, -1, True, None, [], {}, 10**30])
def test_one_bad_size_makes_the_whole_answer_unusable(
    server: SysinvServer, opened: Opener, value: object
) -> None:
    rows = captured_body("06")["host_fs"]
    server.answer(HOST_FS, host_fs(*rows[:3], one_row(size=value)))
    with pytest.raises(InventoryGarbled, match=r"row 4 \('docker'\): size "):
        opened(server.url).fetch()


@pytest.mark.parametrize(
    "fields",
    [{"uuid": None}, {"uuid": 7}, {"hostname": 7}, {"personality": 7}],
)
def test_host_of_wrong_types(server: SysinvServer, opened: Opener, fields: dict[str, object]) -> None:
    server.answer(HOST, changed_host(**fields))
    with pytest.raises(InventoryGarbled):
        opened(server.url).fetch()


def test_two_rows_for_one_lv_are_both_kept(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, host_fs(one_row(), one_row(name="docker2", size=41)))
    rows = opened(server.url).fetch().filesystems[5:]
    assert [(row.name, row.logical_volume) for row in rows] == [
        ("docker", "docker-lv"),
        ("docker2", "docker-lv"),
    ]


def test_unknown_state_is_a_finding(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, host_fs(one_row(state="Frobbing")))
    recorded = opened(server.url).fetch()
    assert [(finding.kind, finding.subject) for finding in recorded.findings] == [("unknown_state", "docker")]
    assert recorded.filesystems[-1].state == "Frobbing"


def test_failure_is_not_remembered(server: SysinvServer, opened: Opener) -> None:
    inventory = opened(server.url)
    server.answer(HOST_FS, Reply(status=503), *bug_machine()[HOST_FS])
    with pytest.raises(InventoryRefused):
        inventory.fetch()
    assert len(inventory.fetch().filesystems) == 9


def test_outage_does_not_make_a_known_host_unknown(server: SysinvServer, opened: Opener) -> None:
    inventory = opened(server.url)
    inventory.fetch()
    server.requests.clear()
    server.answer(HOST_FS, Reply(status=503), captured("06"))
    with pytest.raises(InventoryRefused):
        inventory.fetch()
    inventory.fetch()
    assert server.targets == [HOST_FS, HOST_FS, CONTROLLER_FS, ILVGS]


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("sent", "expected", "reason"),
    [
        (b"", InventoryUnreachable, "the connection was closed before an answer came"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n40\r\n{", InventoryGarbled, "the answer broke off"),
        (HEAD + b"Content-Length: 2005\r\n\r\n{}", InventoryGarbled, "the answer broke off"),
        (b"220 mail.example ESMTP\r\n", InventoryGarbled, "the answer is not HTTP (BadStatusLine)"),
    ],
)
def test_broken_transfer(
    server: SysinvServer, opened: Opener, sent: bytes, expected: type[InventoryError], reason: str
) -> None:
    server.answer(HOST_FS, send(sent))
    with pytest.raises(expected) as caught:
        opened(server.url).fetch()
    assert str(caught.value) == f"{server.url}{HOST_FS}: {reason}"


def test_body_of_a_gigabyte(server: SysinvServer, opened: Opener) -> None:
    server.answer(HOST_FS, pour(HEAD + b"Content-Length: 1000000000\r\n\r\n", 1_000_000_000))
    with pytest.raises(InventoryGarbled, match="the answer is larger than 8388608 bytes"):
        opened(server.url).fetch()


@pytest.mark.parametrize("path", [HOST, HOST_FS, CONTROLLER_FS])
def test_slow_loris_ends_with_the_deadline_of_the_audit(
    server: SysinvServer, opened: Opener, path: str
) -> None:
    server.answer(path, drip(server, HEAD + b"Content-Length: 100000\r\n\r\n"))
    with pytest.raises(InventoryUnreachable) as caught:
        opened(server.url, deadline_seconds=0.5).fetch()
    assert str(caught.value) == f"{server.url}{path}: no complete answer in time"
    assert caught.value.hint == (
        "look at the load of the active controller, or raise [inventory] deadline_seconds"
    )


def test_slow_view_costs_no_more_than_the_deadline(server: SysinvServer, opened: Opener) -> None:
    server.answer(ILVGS, drip(server, HEAD))
    recorded = opened(server.url, deadline_seconds=0.5).fetch()
    assert len(recorded.filesystems) == 9
    assert [finding.kind for finding in recorded.findings] == ["platform_view_unavailable"]


@pytest.mark.parametrize(
    ("url", "subject", "reason"),
    [
        (
            "http://user:secret@127.0.0.1:1",
            "http://127.0.0.1:1/v1/ihosts/controller-0",
            "no connection: Connection refused",
        ),
        ("controller:6385", "(not a URL)", "not a usable URL"),
    ],
)
def test_unreachable(opened: Opener, url: str, subject: str, reason: str) -> None:
    inventory = opened(url)
    with pytest.raises(InventoryUnreachable) as caught:
        inventory.fetch()
    assert str(caught.value) == f"{subject}: {reason}"
    assert "secret" not in f"{caught.value.hint}{caught.value!r}{inventory.origin}"


def test_neither_url_nor_catalogue(opened: Callable[..., SysinvInventory]) -> None:
    inventory = open_sysinv(
        InventorySection(),
        hostname="controller-0",
        credentials_directory=None,
        user_agent="x",
        monotonic_seconds=FakeMonotonic(),
        now=lambda: LOCAL_NOW,
    )
    with pytest.raises(InventoryError, match="is not set, and there is no catalogue"):
        inventory.fetch()


def test_redirect_to_another_server(server: SysinvServer, opened: Opener) -> None:
    with SysinvServer(bug_machine()) as other:
        server.answer(HOST_FS, Reply(status=302, headers={"Location": f"{other.url}{HOST_FS}"}))
        with pytest.raises(InventoryUnreachable) as caught:
            opened(server.url).fetch()
        assert other.requests == []
        expected = f"{server.url}{HOST_FS}: redirects to another server, {other.url}{HOST_FS}"
    assert str(caught.value) == expected


def test_replies_are_the_captured_bytes(server: SysinvServer) -> None:
    """The server's own promise: what it replays has the length that was captured."""
    replies: Sequence[Reply] = [captured(name) for name in ("05", "06", "07", "09", "17", "18", "19")]
    assert [len(reply.body) for reply in replies] == [6296, 2005, 756, 2789, 154, 231, 15]
