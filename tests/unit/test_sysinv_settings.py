"""The sysinv tables of the configuration: what is needed, what is of no use, what can't be meant."""

from typing import Any, Literal

import pytest

from agent.inventory.settings import AuthSettings, InventorySection, find_problems, find_sysinv_problems

URL = "http://controller:6385"
SCHEME = "must begin with http:// or https:// and name a host"
USER = "holds a user or password: they belong into files, which other keys name"


def problems(auth: dict[str, Any] | None = None, **fields: Any) -> list[tuple[str, str]]:
    return list(find_sysinv_problems(InventorySection(auth=AuthSettings(**(auth or {})), **fields)))


KEYSTONE = {"kind": "keystone", "url": "http://k:5000/v3", "password_file": "/p"}


@pytest.mark.parametrize(
    ("auth", "fields", "expected"),
    [
        ({}, {"url": URL}, []),
        ({}, {"url": "https://[::1]:6385/v1"}, []),
        ({"kind": "token", "token_file": "/t"}, {"url": URL}, []),
        ({"kind": "token", "token_file": "sysinv-token"}, {"url": URL}, []),
        (KEYSTONE, {}, []),
        (KEYSTONE, {"url": URL}, []),
        ({}, {}, [("url", "is needed, unless Keystone's catalogue names it")]),
        ({}, {"url": "controller:6385"}, [("url", SCHEME)]),
        ({}, {"url": ""}, [("url", SCHEME)]),
        ({}, {"url": "ftp://c/"}, [("url", SCHEME)]),
        ({}, {"url": "http://"}, [("url", SCHEME)]),
        ({}, {"url": "http://[::1"}, [("url", "is not a usable URL")]),
        ({}, {"url": "http://c:99999"}, [("url", "is not a usable URL")]),
        ({}, {"url": "http://u:secret@c"}, [("url", USER)]),
        ({}, {"url": "http://c/v1?token=secret"}, [("url", "must end with its path: no ? and no #")]),
        ({}, {"url": URL, "ca_file": "ca.pem"}, [("ca_file", "must be an absolute path, not 'ca.pem'")]),
        (
            {},
            {"url": URL, "client_key_file": "/k"},
            [("client_key_file", "is set without client_certificate_file")],
        ),
        ({"kind": "token"}, {"url": URL}, [("auth.token_file", 'is needed when kind = "token"')]),
        (
            {"kind": "token", "token_file": "a/b"},
            {"url": URL},
            [("auth.token_file", "must be an absolute path, or the bare name of a systemd credential")],
        ),
        (
            {"kind": "keystone"},
            {},
            [
                ("auth.url", 'is needed when kind = "keystone"'),
                ("auth.password_file", 'is needed when kind = "keystone"'),
            ],
        ),
        (
            {"password_file": "/p"},
            {"url": URL},
            [("auth.password_file", 'is set, but kind = "none" does not use it')],
        ),
        ({**KEYSTONE, "url": "http://u:secret@k"}, {}, [("auth.url", USER)]),
    ],
)
def test_problems(auth: dict[str, Any], fields: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    found = problems(auth, **fields)
    assert found == expected
    assert "secret" not in str(found)


@pytest.mark.parametrize("kind", ["none", "file", "sysinv"])
def test_a_password_in_a_url_is_refused_whatever_is_configured(
    kind: Literal["none", "file", "sysinv"],
) -> None:
    """`agent config show` prints URLs, those of an inventory that is not in use too."""
    auth: dict[str, Any] = {**KEYSTONE, "url": "http://u:secret@k"}
    settings = InventorySection(
        kind=kind,
        path="/sizes.toml" if kind == "file" else None,
        url="http://u:secret@c",
        auth=AuthSettings(**auth),
    )
    assert list(find_problems(settings)) == [("url", USER), ("auth.url", USER)]
