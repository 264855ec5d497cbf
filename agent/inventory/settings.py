"""Settings of the inventory: the struct of each table, for the configuration to embed.

Not here: reading them from files, flags and environment (`agent.config.load`).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from agent.core.urls import find_url_problems

PLATFORM_SERVICE_TYPE: Final = "platform"
"""What sysinv is called in Keystone's catalogue."""

TOKEN_HEADER = "X-Auth-Token"  # noqa: S105 - a header's name

InventoryKind = Literal["sysinv", "file", "none"]
AuthKind = Literal["none", "token", "keystone"]


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[inventory.auth]`: how this agent shows who it is.

    A secret is named by an absolute path, or by a bare name below $CREDENTIALS_DIRECTORY (systemd's
    LoadCredential=); it never stands in the configuration itself.
    """

    kind: Annotated[
        AuthKind,
        Meta(description="none, token = a ready token from a file, keystone = a password (extra [sysinv])"),
    ] = "none"
    token_file: Annotated[
        str | None,
        Meta(description='file or credential with the token, for kind = "token"; re-read when it changes'),
    ] = None
    url: Annotated[
        str | None,
        Meta(description='Keystone\'s URL, for kind = "keystone"; /v3 is added when absent'),
    ] = None
    username: Annotated[str, Meta(description="Keystone user; it needs a reader role")] = "sysinv"
    user_domain: Annotated[str, Meta(description="name of the user's Keystone domain")] = "Default"
    password_file: Annotated[
        str | None,
        Meta(description="file or credential with the password; re-read when it changes"),
    ] = None
    project: Annotated[str, Meta(description="project of the role: services or admin")] = "services"
    project_domain: Annotated[str, Meta(description="name of the project's Keystone domain")] = "Default"
    interface: Annotated[
        Literal["internal", "public", "admin"],
        Meta(description="which of the catalogue's endpoints is used when inventory.url is not set"),
    ] = "internal"
    region: Annotated[
        str | None,
        Meta(description="region of that endpoint; needed in a distributed cloud, where there are several"),
    ] = None


class InventorySection(msgspec.Struct, frozen=True, kw_only=True):
    """`[inventory]`: where the recorded sizes come from."""

    kind: Annotated[
        InventoryKind,
        Meta(
            description="sysinv = StarlingX's inventory API, file = a recorded-size file, "
            "none = show actual sizes only"
        ),
    ] = "none"
    path: Annotated[
        str | None,
        Meta(description='the recorded-size file, for kind = "file"; `agent baseline` writes one'),
    ] = None
    url: Annotated[
        str | None,
        Meta(description="sysinv's URL, /v1 is added when absent; not needed with Keystone's catalogue"),
    ] = None
    ca_file: Annotated[
        str | None,
        Meta(description="PEM file of the authorities to trust, for a private one; default: the usual ones"),
    ] = None
    client_certificate_file: Annotated[
        str | None, Meta(description="PEM certificate to show to a server that asks for one")
    ] = None
    client_key_file: Annotated[
        str | None, Meta(description="its key, without passphrase; default: in the same file")
    ] = None
    connect_timeout_seconds: Annotated[
        float, Meta(ge=0.1, le=120, description="for each address of the server")
    ] = 5
    read_timeout_seconds: Annotated[float, Meta(ge=0.1, le=300, description="without a single byte")] = 10
    deadline_seconds: Annotated[
        float, Meta(ge=1, le=600, description="for everything one audit asks the inventory, token included")
    ] = 30
    auth: AuthSettings = AuthSettings()


_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "token": ("token_file",),
    "keystone": ("url", "password_file"),
}


def find_problems(settings: InventorySection) -> Iterator[tuple[str, str]]:
    """Keys that make no sense together: (key below `inventory`, problem).

    What only sysinv uses may stay set beside another kind: --inventory changes the kind for one command.
    """
    if settings.kind == "sysinv":
        yield from find_sysinv_problems(settings)
    else:  # not used, but shown by `agent config show`: a password in it would be as well
        yield from (("url", problem) for problem in find_url_problems(settings.url))
        yield from (("auth.url", problem) for problem in find_url_problems(settings.auth.url))
    if settings.kind == "file" and settings.path is None:
        yield "path", 'is needed when inventory.kind = "file"'
    if settings.kind != "file" and settings.path is not None:
        yield "path", f'is set, but inventory.kind is "{settings.kind}": nothing would be compared'


def find_sysinv_problems(settings: InventorySection) -> Iterator[tuple[str, str]]:
    """Keys that sysinv needs and are absent, of no use, or not usable: (key below `inventory`, problem)."""
    if settings.url is None and settings.auth.kind != "keystone":
        yield "url", "is needed, unless Keystone's catalogue names it"
    yield from (("url", problem) for problem in find_url_problems(settings.url))
    if settings.client_key_file is not None and settings.client_certificate_file is None:
        yield "client_key_file", "is set without client_certificate_file"
    for name in ("ca_file", "client_certificate_file", "client_key_file"):
        path = getattr(settings, name)
        if path is not None and not path.startswith("/"):
            yield name, f"must be an absolute path, not {path!r:.60}"
    for key, problem in find_auth_problems(settings.auth):
        yield f"auth.{key}", problem


def find_auth_problems(settings: AuthSettings) -> Iterator[tuple[str, str]]:
    """The same for `[inventory.auth]` alone."""
    needed = _NEEDED[settings.kind]
    for key in ("token_file", "url", "password_file"):
        value = getattr(settings, key)
        if key in needed and not value:
            yield key, f'is needed when kind = "{settings.kind}"'
        elif key not in needed and value:
            yield key, f'is set, but kind = "{settings.kind}" does not use it'
        elif value and key != "url" and "/" in value and not value.startswith("/"):
            yield key, "must be an absolute path, or the bare name of a systemd credential"
    yield from (("url", problem) for problem in find_url_problems(settings.url))
