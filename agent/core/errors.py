"""Every failure the agent expects, named by meaning, with the next step in its hint.

Each class carries its message template; raise sites give facts, not prose.  An error that is not one
of these is a bug and keeps its traceback.  Not here: what is printed and how the process exits (`cli`).
"""

from enum import IntEnum
from typing import ClassVar

from agent.core.models import Finding, Severity


class ExitCode(IntEnum):
    """The exit statuses of every command."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    DRIFT = 3
    CONFIG = 4
    LVM = 5
    INVENTORY = 6
    DOES_NOT_FIT = 7
    BUSY = 8
    INTERRUPTED = 130


_STRONGEST_FIRST = (
    ExitCode.LVM,
    ExitCode.INVENTORY,
    ExitCode.CONFIG,
    ExitCode.USAGE,
    ExitCode.DOES_NOT_FIT,
    ExitCode.BUSY,
    ExitCode.DRIFT,
    ExitCode.OK,
)


def strongest(codes: "list[ExitCode]") -> ExitCode:
    """The one exit status that stands for several: not having been able to look beats everything."""
    return min(codes, key=_STRONGEST_FIRST.index, default=ExitCode.OK)


class AgentError(Exception):
    """Base of all expected failures.

    Keyword arguments fill the class's `template` and `hint`; they are kept in `facts`.
    """

    kind: ClassVar[str] = "agent_error"
    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL
    template: ClassVar[str] = "{detail}"
    hint_template: ClassVar[str | None] = None

    def __init__(self, *, subject: str, **facts: object) -> None:
        self.subject = subject
        self.facts = facts
        super().__init__(self.template.format(subject=subject, **facts))

    @property
    def hint(self) -> str | None:
        """What the operator can do next."""
        if self.hint_template is None:
            return None
        return self.hint_template.format(subject=self.subject, **self.facts)

    def to_finding(self) -> Finding:
        """The same failure as an entry of a document."""
        return Finding(
            kind=self.kind,
            severity=Severity.CRITICAL,
            subject=self.subject,
            message=str(self),
            hint=self.hint,
        )


class UsageError(AgentError):
    """The command line asks for something that makes no sense."""

    kind = "usage"
    exit_code = ExitCode.USAGE


class Interrupted(AgentError):
    """Somebody ended the command before it was done."""

    kind = "interrupted"
    exit_code = ExitCode.INTERRUPTED
    template = "interrupted before anything could be said"
    hint_template = "run it again"


class ConfigError(AgentError):
    """The configuration can't be used.  `problems` has one entry per mistake."""

    kind = "config_invalid"
    exit_code = ExitCode.CONFIG
    template = "{subject}: {listing}"
    hint_template = "correct them and run `agent config check`"

    def __init__(self, *, subject: str, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(subject=subject, listing="; ".join(problems))


class LvmError(AgentError):
    """The volume group could not be read."""

    kind = "lvm_failed"
    exit_code = ExitCode.LVM


class LvmMissing(LvmError):
    """The LVM programs are not where the configuration says."""

    kind = "lvm_missing"
    template = "{subject}: {reason}"
    hint_template = "install lvm2, or name the directory of vgs and lvs with --lvm-dir or [lvm] directory"


class LvmNotStarted(LvmError):
    """The programs are there, but the host has nothing left to start one with."""

    kind = "lvm_not_started"
    template = "{subject}: can't be started: {reason}"
    hint_template = "the host is out of processes, descriptors or memory: look at `ulimit -a` and `free`"


class LvmNotPermitted(LvmError):
    """LVM can be read only by root."""

    kind = "lvm_not_permitted"
    template = "{subject}: reading LVM needs root"
    hint_template = "run it as root, for example with sudo"


class LvmCommandFailed(LvmError):
    """An LVM program ended with a status that explains nothing."""

    kind = "lvm_failed"
    template = "{subject}: {command} ended with {ending}{seen}"
    hint_template = "run it by hand to see more: {command_line}"


class LvmTimeout(LvmError):
    """An LVM program did not end in time and was ended."""

    kind = "lvm_timeout"
    template = "{subject}: {command} did not end within {timeout_seconds:g} s and was killed"
    hint_template = "look for a hung device (dmesg, `dmsetup info`) or raise [lvm] timeout_seconds"


class LvmStuck(LvmError):
    """An LVM program can't even be killed; no other is started while it is there."""

    kind = "lvm_stuck"
    template = "{subject}: an earlier LVM process ({pid}) can't be killed since {since}: the kernel holds it"
    hint_template = "look for a hung device (dmesg, `ps -o pid,wchan,cmd {pid}`)"


class LvmAborted(LvmError):
    """The read was ended because the agent is stopping."""

    kind = "lvm_aborted"
    template = "{subject}: the read was ended because the agent is stopping"


class LvmGarbled(LvmError):
    """LVM printed something that is not the report it was asked for."""

    kind = "lvm_garbled"
    template = "{subject}: {command} printed no usable report: {reason}"
    hint_template = "run it by hand to see more: {command_line}"


class VolumeGroupAbsent(LvmError):
    """No volume group of that name is visible."""

    kind = "vg_absent"
    template = "volume group {subject} not found (visible: {visible})"
    hint_template = "check the name, and that its disks are attached (`pvs`)"


class VolumeGroupExported(LvmError):
    """The volume group is exported, so nothing on it can be used."""

    kind = "vg_exported"
    template = "volume group {subject} is exported"
    hint_template = "`vgimport {subject}` if it belongs to this host"


class VolumeGroupForeign(LvmError):
    """The volume group belongs to another host."""

    kind = "vg_foreign"
    template = "volume group {subject} belongs to another host (system id {system_id!r})"
    hint_template = "audit it on that host, or change its system id (lvmsystemid(7))"


class VolumeGroupDuplicated(LvmError):
    """Several volume groups have that name, so no one can say which is meant."""

    kind = "vg_duplicated"
    template = "{count} volume groups are named {subject}: {uuids}"
    hint_template = "rename one by its UUID: vgrename UUID NEWNAME"


class VolumeGroupChanging(LvmError):
    """The metadata changed between every pair of reads."""

    kind = "vg_changing"
    template = "volume group {subject} changed during each of {attempts} reads"
    hint_template = "wait until the running LVM operation has ended and audit again"


class InventoryError(AgentError):
    """The recorded sizes are not available."""

    kind = "inventory_unavailable"
    exit_code = ExitCode.INVENTORY
    template = "{subject}: {reason}"


class SecretUnreadable(InventoryError):
    """A password or token can't be read from its file."""

    kind = "secret_unreadable"
    template = "{subject}: {reason}"
    hint_template = (
        "put the secret alone into a file that this program can read (mode 0400 or LoadCredential=)"
    )


class RecordedFileInvalid(InventoryError):
    """The recorded-size file can't be used.  `problems` has one entry per mistake."""

    kind = "recorded_file_invalid"
    template = "{subject}: {listing}"
    hint_template = "correct the file; `agent baseline` prints the actual sizes as such a file"

    def __init__(self, *, subject: str, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(subject=subject, listing="; ".join(problems))
