"""Who this agent is towards sysinv: nobody, the holder of a ready token, or a Keystone user.

Not here: what is asked with it (`sysinv`), other services' tokens.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol

from agent.core.errors import ConfigError, SecretUnreadable
from agent.http.client import HttpClient
from agent.http.messages import Deadline
from agent.inventory.secret import SecretFile
from agent.inventory.settings import TOKEN_HEADER, AuthSettings, find_auth_problems


class Auth(Protocol):
    """A way to show who asks."""

    def headers(self, deadline: Deadline) -> Mapping[str, str]:
        """The headers of a request.

        Raises:
            InventoryError: there is nothing to show.
        """
        ...

    def renew(self) -> bool:
        """The last headers were refused (401): forget them.  False = asking again would be the same."""
        ...

    def endpoint(self, deadline: Deadline) -> str | None:
        """Where the API is, as the catalogue says; None when there is no catalogue.

        Raises:
            InventoryError: there is a catalogue, and the API is not in it.
        """
        ...


class NoAuth:
    """Nothing to show."""

    def headers(self, deadline: Deadline) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """No header."""
        return {}

    def renew(self) -> bool:
        """Nothing to renew."""
        return False

    def endpoint(self, deadline: Deadline) -> str | None:  # noqa: ARG002 - the protocol's
        """No catalogue."""
        return None


class TokenAuth:
    """A ready token that somebody else keeps fresh in a file."""

    def __init__(self, secret: SecretFile) -> None:
        self._secret = secret
        self._sent: str | None = None

    def headers(self, deadline: Deadline) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """The token that stands in the file now.

        Raises:
            SecretUnreadable: the file has none.
        """
        token = self._secret.read().strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise SecretUnreadable(subject=self._secret.name, reason="holds characters that no token has")
        self._sent = token
        return {TOKEN_HEADER: token}

    def renew(self) -> bool:
        """Look whether the file has another token by now.

        Raises:
            SecretUnreadable: the file has none.
        """
        self._secret.forget()
        return self._secret.read().strip() != self._sent

    def endpoint(self, deadline: Deadline) -> str | None:  # noqa: ARG002 - the protocol's
        """No catalogue."""
        return None


def make_auth(settings: AuthSettings, client: HttpClient, *, credentials_directory: str | None) -> Auth:
    """The way that `[inventory.auth]` names.

    Raises:
        ConfigError: a key that this kind needs is absent, or its extra is not installed.
    """
    _check(settings)
    if settings.kind == "token":
        assert settings.token_file is not None  # noqa: S101 - checked above
        return TokenAuth(SecretFile(settings.token_file, credentials_directory=credentials_directory))
    if settings.kind == "keystone":
        from agent.inventory.keystone import KeystoneAuth  # noqa: PLC0415 - the extra may be absent

        assert settings.password_file is not None  # noqa: S101 - checked above
        password = SecretFile(settings.password_file, credentials_directory=credentials_directory)
        return KeystoneAuth(settings, password, client)
    return NoAuth()


def _check(settings: AuthSettings) -> None:
    problems = [f"inventory.auth.{key}: {problem}" for key, problem in find_auth_problems(settings)]
    if settings.kind == "keystone" and find_spec("keystoneauth1") is None:
        problems.append(
            'inventory.auth.kind: "keystone" needs the package keystoneauth1: '
            "pip install 'lvm-audit-agent[sysinv]'"
        )
    if problems:
        raise ConfigError(subject="[inventory.auth]", problems=tuple(problems))
