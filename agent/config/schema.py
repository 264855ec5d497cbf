"""The configuration: every key with its type, range, default and reason, in one place.

These structs are the validator, the documentation (`agent config show`, the README's table) and what
the rest of the program reads.  Not here: where values come from (`load`), printing
(`show`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from agent.core.models import DEFAULT_VOLUME_GROUP
from agent.core.names import find_lvm_name_problem
from agent.core.urls import find_url_problems
from agent.daemon.settings import UdevSection
from agent.inventory.settings import InventorySection, find_problems
from agent.reporting.settings import ReportSection

DEFAULT_PATH: Final = "/etc/lvm-audit-agent/agent.toml"
"""Read when it is there; its absence is fine unless --config names it."""

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]


class AgentSection(msgspec.Struct, frozen=True, kw_only=True):
    """Who this agent is."""

    hostname: Annotated[
        str | None,
        Meta(description="name in documents; set it when the kernel's host name is not the inventory's"),
    ] = None
    state_directory: Annotated[
        str,
        Meta(description="where state is kept; $STATE_DIRECTORY (set by systemd) replaces the default"),
    ] = "/var/lib/lvm-audit-agent"


class AuditSection(msgspec.Struct, frozen=True, kw_only=True):
    """What is audited."""

    volume_groups: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="volume groups to audit, each with a document of its own"),
    ] = (DEFAULT_VOLUME_GROUP,)
    interval_seconds: Annotated[
        float,
        Meta(ge=1, le=86400, description="the daemon audits at least so often; device events come on top"),
    ] = 60
    jitter_seconds: Annotated[
        float,
        Meta(ge=0, le=3600, description="random part added to each interval, so that a fleet spreads out"),
    ] = 5
    transition_grace_seconds: Annotated[
        float,
        Meta(ge=0, le=86400, description="how long a change may be under way before it counts as drift"),
    ] = 600
    nearly_full_percent: Annotated[
        float,
        Meta(
            ge=1, le=100, description="a mounted filesystem used above this is reported; 100 = only full ones"
        ),
    ] = 90


class LvmSection(msgspec.Struct, frozen=True, kw_only=True):
    """How LVM is read."""

    directory: Annotated[
        str,
        Meta(description="directory of vgs and lvs; PATH is never searched"),
    ] = "/usr/sbin"
    timeout_seconds: Annotated[
        float,
        Meta(ge=1, le=3600, description="deadline of one LVM command; raise it on hosts with slow disks"),
    ] = 30


class LogSection(msgspec.Struct, frozen=True, kw_only=True):
    """What goes to stderr.  `audit --once` logs only when a level is set explicitly."""

    level: Annotated[LogLevel, Meta(description="least severe level that is logged")] = "info"
    format: Annotated[
        LogFormat,
        Meta(description="auto = console on a terminal and in the journal, else json"),
    ] = "auto"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration."""

    agent: AgentSection = AgentSection()
    audit: AuditSection = AuditSection()
    lvm: LvmSection = LvmSection()
    udev: UdevSection = UdevSection()
    inventory: InventorySection = InventorySection()
    report: ReportSection = ReportSection()
    log: LogSection = LogSection()


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the configuration, as the structs above declare it."""

    section: str
    name: str
    type: object
    """The annotated type: msgspec converts and checks with it."""
    default: object
    description: str

    @property
    def path(self) -> str:
        """How messages name it."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"AGENT_{self.path}".replace(".", "_").upper()

    @property
    def expectation(self) -> str:
        """What its value must be, in words."""
        base, meta = get_args(self.type)
        if get_origin(base) is Literal:
            return f"one of {', '.join(get_args(base))}"
        if base is bool:
            return "true or false"
        if base in {int, float}:
            kind = "a whole number" if base is int else "a number"
            return f"{kind} from {meta.ge} to {meta.le}"
        return "a list of one or more texts" if self.is_list else "text"

    @property
    def is_list(self) -> bool:
        """Whether it takes several values (comma separated in the environment)."""
        return isinstance(self.default, tuple)


def list_keys() -> tuple[Key, ...]:
    """Every key, in the order of the sections; a section's own keys stand before its sub-sections'."""
    return tuple(
        key
        for section in msgspec.structs.fields(Settings)
        for key in _walk(section.type, section.encode_name)
    )


def _walk(struct: type[msgspec.Struct], section: str) -> Iterator[Key]:
    fields = msgspec.structs.fields(struct)
    for field in fields:
        if not _is_section(field.type):
            yield Key(
                section=section,
                name=field.encode_name,
                type=field.type,
                default=field.default,
                description=get_args(field.type)[1].description,
            )
    for field in fields:
        if _is_section(field.type):
            yield from _walk(field.type, f"{section}.{field.encode_name}")


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def find_value_problems(path: str, value: object) -> Iterator[str]:
    """What is wrong with a value that has the right type and range."""
    check = _CHECKS.get(path)
    if check is not None:
        yield from check(value)
    if isinstance(value, str) and any(not character.isprintable() for character in value):
        yield "holds characters that can't be printed"


def find_contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Keys that make no sense together: (key path, problem)."""
    for key, problem in find_problems(settings.inventory):
        yield f"inventory.{key}", problem
    report = settings.report
    if report.client_key_file is not None and report.client_certificate_file is None:
        yield "report.client_key_file", "is set without client_certificate_file"


def _check_volume_groups(value: object) -> Iterator[str]:
    assert isinstance(value, tuple)  # noqa: S101 - converted to its declared type before
    for name in value:
        problem = find_lvm_name_problem(name)
        if problem is not None:
            yield problem
    for name in dict.fromkeys(name for name in value if value.count(name) > 1):
        yield f"{name} is named {value.count(name)} times"


def _check_absolute(value: object) -> Iterator[str]:
    if value is not None and not str(value).startswith("/"):
        yield f"must be an absolute path, not {value!r:.60}"


def _check_not_empty(value: object) -> Iterator[str]:
    if value is not None and not str(value).strip():
        yield "must not be empty"


def _check_url(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from find_url_problems(value)


def _check_secret(value: object) -> Iterator[str]:
    if isinstance(value, str) and "/" in value and not value.startswith("/"):
        yield "must be an absolute path, or the bare name of a systemd credential"


_CHECKS: Final[Mapping[str, Callable[[object], Iterator[str]]]] = {
    "agent.hostname": _check_not_empty,
    "agent.state_directory": _check_absolute,
    "audit.volume_groups": _check_volume_groups,
    "lvm.directory": _check_absolute,
    "inventory.path": _check_absolute,
    "report.url": _check_url,
    "report.token_file": _check_secret,
    "report.ca_file": _check_absolute,
    "report.client_certificate_file": _check_absolute,
    "report.client_key_file": _check_absolute,
}
