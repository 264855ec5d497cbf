"""Recorded sizes from StarlingX's sysinv: this host's rows, and what the platform believes is free.

Three reads per audit over one kept-alive connection; the host's identity is cached.  Not here: HTTP
(`agent.http`), authentication (`auth`), the meaning of rows (`sysinv_map`).
"""

from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

import msgspec

from agent.core.errors import InventoryError
from agent.core.inventory_errors import InventoryRefused, NothingRecorded
from agent.core.models import (
    DEFAULT_VOLUME_GROUP,
    Finding,
    PlatformView,
    RecordedFilesystem,
    RecordedSizes,
    Severity,
    Source,
)
from agent.http.client import HttpClient
from agent.http.messages import Deadline, make_transport
from agent.inventory.auth import make_auth
from agent.inventory.settings import InventorySection
from agent.inventory.sysinv_api import Rows, SysinvApi, is_absent
from agent.inventory.sysinv_host import Host, HostFinder
from agent.inventory.sysinv_map import to_filesystem, to_platform_view


class _Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one fetch."""

    host: Host
    host_fs: Rows
    controller_fs: Rows | None


class SysinvInventory:
    """The records that sysinv keeps for one host."""

    def __init__(
        self,
        api: SysinvApi,
        *,
        hostname: str,
        deadline_seconds: float,
        monotonic_seconds: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._hostname = hostname
        self._deadline_seconds = deadline_seconds
        self._monotonic_seconds = monotonic_seconds
        self._now = now
        self._hosts = HostFinder(api, hostname=hostname, monotonic_seconds=monotonic_seconds)

    @property
    def origin(self) -> str:
        """The API's URL, without secrets."""
        return self._api.origin

    def fetch(self) -> RecordedSizes:
        """Read every row that is recorded for this host: controller_fs, then host_fs.

        Raises:
            InventoryError: they are not available, or not completely.
        """
        deadline = Deadline(self._deadline_seconds, self._monotonic_seconds)
        fetched = self._fetch_rows(deadline)
        filesystems, findings = _map(fetched)
        if not filesystems:
            raise NothingRecorded(subject=self._hostname, origin=self.origin)
        views, view_findings = self._fetch_views(fetched.host, deadline)
        as_of, clock_findings = self._clock(fetched)
        return RecordedSizes(
            filesystems=filesystems,
            origin=self.origin,
            as_of=as_of,
            volume_groups=(DEFAULT_VOLUME_GROUP,),
            hostname=self._hostname,
            platform_views=views,
            findings=(*findings, *self._find_gaps(fetched), *view_findings, *clock_findings),
        )

    def close(self) -> None:
        """End the connection; the next fetch opens a new one."""
        self._api.close()

    def _fetch_rows(self, deadline: Deadline) -> _Fetched:
        """All rows; when the cached identity no longer leads anywhere, once more with a new one."""
        cached = self._hosts.cached()
        if cached is not None:
            try:
                fetched = self._fetch_rows_of(cached, deadline)
            except InventoryRefused as error:
                if not is_absent(error):
                    raise
            else:
                if fetched.host_fs.rows:
                    return fetched
        return self._fetch_rows_of(self._hosts.look_up(deadline), deadline)

    def _fetch_rows_of(self, host: Host, deadline: Deadline) -> _Fetched:
        host_fs = self._api.collect(f"/ihosts/{quote(host.uuid, safe='')}/host_fs", "host_fs", deadline)
        for row in host_fs.rows:
            if row.optional_text("ihost_uuid") not in {None, host.uuid}:
                raise row.refused("ihost_uuid", f"is not this host's, {host.uuid}")
        controller_fs = None
        if host.is_controller:
            controller_fs = self._api.collect("/controller_fs", "controller_fs", deadline)
        return _Fetched(host=host, host_fs=host_fs, controller_fs=controller_fs)

    def _fetch_views(
        self, host: Host, deadline: Deadline
    ) -> tuple[tuple[PlatformView, ...], tuple[Finding, ...]]:
        """What the platform believes; its absence is worth a word, and costs the audit nothing."""
        try:
            rows = self._api.collect(f"/ihosts/{quote(host.uuid, safe='')}/ilvgs", "ilvgs", deadline).rows
            views = tuple(to_platform_view(row) for row in rows)
        except InventoryError as error:
            return (), (
                _no_view(f"the platform's own figures of free space can't be read: {error}", error.hint),
            )
        if any(view.volume_group == DEFAULT_VOLUME_GROUP for view in views):
            return views, ()
        return views, (
            _no_view(
                f"the platform has never been told about {DEFAULT_VOLUME_GROUP} on this host",
                f"look at `system host-lvg-list {self._hostname}` and sysinv.log",
            ),
        )

    def _find_gaps(self, fetched: _Fetched) -> tuple[Finding, ...]:
        """A host of its own without a filesystem of its own: every installed host has some."""
        if fetched.host_fs.rows:
            return ()
        finding = Finding(
            kind="host_fs_empty",
            severity=Severity.WARNING,
            subject=self._hostname,
            message=f"no host_fs row is recorded for {self._hostname}: only controller_fs was compared",
            hint=f"look at `system host-fs-list {self._hostname}`",
        )
        return (finding,)

    def _clock(self, fetched: _Fetched) -> tuple[datetime, tuple[Finding, ...]]:
        """The server's clock, on which its records are dated."""
        dates = [
            rows.date for rows in (fetched.controller_fs, fetched.host_fs) if rows is not None and rows.date
        ]
        if dates:
            return max(dates), ()
        finding = Finding(
            kind="inventory_clock_unknown",
            severity=Severity.INFO,
            subject=self.origin,
            message="the answers have no usable Date header: records' ages are measured on this host's clock",
            hint="compare the clocks of this host and the controller if a transition looks too long or short",
        )
        return self._now(), (finding,)


def _map(fetched: _Fetched) -> tuple[tuple[RecordedFilesystem, ...], tuple[Finding, ...]]:
    """All rows in recorded order, and what was odd about them."""
    tables = ((fetched.controller_fs, Source.CONTROLLER_FS), (fetched.host_fs, Source.HOST_FS))
    mapped = [
        to_filesystem(row, source) for table, source in tables if table is not None for row in table.rows
    ]
    return (
        tuple(filesystem for filesystem, _ in mapped),
        tuple(finding for _, findings in mapped for finding in findings),
    )


def _no_view(message: str, hint: str | None) -> Finding:
    return Finding(
        kind="platform_view_unavailable",
        severity=Severity.INFO,
        subject=DEFAULT_VOLUME_GROUP,
        message=message,
        hint=hint,
    )


def open_sysinv(
    settings: InventorySection,
    *,
    hostname: str,
    credentials_directory: str | None,
    user_agent: str,
    monotonic_seconds: Callable[[], float],
    now: Callable[[], datetime],
) -> SysinvInventory:
    """The inventory that `[inventory]` describes; nothing is sent before the first fetch.

    Raises:
        ConfigError: `[inventory.auth]` can't be used.
    """
    client = HttpClient(make_transport(settings, user_agent=user_agent))
    auth = make_auth(settings.auth, client, credentials_directory=credentials_directory)
    return SysinvInventory(
        SysinvApi(client, auth, settings.url),
        hostname=hostname,
        deadline_seconds=settings.deadline_seconds,
        monotonic_seconds=monotonic_seconds,
        now=now,
    )
