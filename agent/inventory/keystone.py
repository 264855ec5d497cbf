"""A Keystone v3 user: a password becomes a token, and the catalogue names the API.

The only module that touches keystoneauth1 (extra ``[sysinv]``), loaded with the first token.  Its
requests go through our own session: same limits, same trust.  Not here: which kind of auth is used.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent.core.errors import InventoryError
from agent.core.inventory_errors import InventoryGarbled, InventoryUnreachable
from agent.http.client import HttpClient
from agent.http.messages import Deadline, HttpError, printable, safe_url
from agent.inventory.faults import refusal, unreachable
from agent.inventory.secret import SecretFile
from agent.inventory.settings import PLATFORM_SERVICE_TYPE, TOKEN_HEADER, AuthSettings

if TYPE_CHECKING:
    from keystoneauth1.access import AccessInfo
    from keystoneauth1.exceptions import ClientException
    from keystoneauth1.identity.v3 import Password


class KeystoneAuth:
    """Tokens for one user, each used until it is about to expire or is refused."""

    def __init__(self, settings: AuthSettings, password: SecretFile, client: HttpClient) -> None:
        self._settings = settings
        self._password = password
        self._client = client
        self._plugin: Password | None = None
        self._plugin_password = ""

    @property
    def _url(self) -> str:
        return safe_url(self._settings.url or "")

    def headers(self, deadline: Deadline) -> Mapping[str, str]:
        """A token that is still good for half a minute at least.

        Raises:
            InventoryError: Keystone gives none.
        """
        token = self._access(deadline).auth_token
        if not token:
            raise InventoryGarbled(subject=self._url, reason="Keystone's answer has no X-Subject-Token")
        return {TOKEN_HEADER: token}

    def renew(self) -> bool:
        """Forget the token, and read the password again."""
        self._password.forget()
        return self._plugin is not None and self._plugin.invalidate()

    def endpoint(self, deadline: Deadline) -> str | None:
        """The URL of sysinv in the catalogue, for the configured interface and region.

        Raises:
            InventoryError: it is not in there.
        """
        from keystoneauth1.exceptions import CatalogException  # noqa: PLC0415 - slow to load

        settings = self._settings
        try:
            url = self._access(deadline).service_catalog.url_for(
                service_type=PLATFORM_SERVICE_TYPE,
                interface=settings.interface,
                region_name=settings.region,
            )
        except CatalogException:
            url = None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._garbled("catalogue", error) from None
        if not url:
            where = f"{settings.interface}, region {settings.region or 'any'}"
            raise InventoryUnreachable(
                subject=self._url,
                reason=f"the catalogue has no service of type {PLATFORM_SERVICE_TYPE} ({printable(where)})",
                advice="set [inventory] url, or another interface or region in [inventory.auth]",
            )
        return str(url)

    def _access(self, deadline: Deadline) -> "AccessInfo":
        """The token with everything Keystone says about it, asked for when there is no good one."""
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415 - slow to load
        from keystoneauth1.session import Session  # noqa: PLC0415

        plugin = self._current_plugin()
        try:
            with self._client.within(deadline) as transport:
                session = Session(
                    session=transport,
                    verify=transport.verify,
                    redirect=False,
                    user_agent=str(transport.headers["User-Agent"]),
                )
                return plugin.get_access(session)
        except HttpError as error:
            raise unreachable(error) from None
        except ClientException as error:
            raise self._explain(error) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._garbled("token", error) from None

    def _current_plugin(self) -> "Password":
        """The plugin that holds the token; a new one when the password changed."""
        password = self._password.read()
        if self._plugin is None or password != self._plugin_password:
            from keystoneauth1.identity.v3 import Password  # noqa: PLC0415 - slow to load

            settings = self._settings
            self._plugin = Password(
                auth_url=settings.url or "",
                username=settings.username,
                password=password,
                user_domain_name=settings.user_domain,
                project_name=settings.project,
                project_domain_name=settings.project_domain,
            )
            self._plugin_password = password
        return self._plugin

    def _explain(self, error: "ClientException") -> InventoryError:
        """keystoneauth1's own texts may quote the answer, so only ours are shown."""
        response = getattr(error, "response", None)
        status = getattr(error, "http_status", None)
        if isinstance(status, int) and response is not None:
            return refusal(self._url, status, response.content, self._plugin_password)
        return self._garbled("answer", error)

    def _garbled(self, what: str, error: Exception) -> InventoryGarbled:
        # keystoneauth1 keeps a token whose life it can't read, and would stumble over it for ever.
        self._plugin = None
        return InventoryGarbled(
            subject=self._url, reason=f"Keystone's {what} is not what it should be ({type(error).__name__})"
        )
