"""Why an LVM program gave no volume group: one named error for each reason, told by status and content.

Status 5 stands for nearly everything, and texts change between releases: what is really there is asked
with one more look at all groups.  Not here: the policy of reading (see `lvm`).
"""

import os
import shlex
import signal
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from agent.core.errors import (
    LvmCommandFailed,
    LvmError,
    LvmGarbled,
    LvmMissing,
    LvmTimeout,
    VolumeGroupAbsent,
    VolumeGroupDuplicated,
    VolumeGroupExported,
    VolumeGroupForeign,
)
from agent.core.lvm.condition import harmless, meaningful_lines
from agent.core.lvm.decode import ReportError
from agent.core.lvm.parse import VisibleGroup, parse_visible_groups
from agent.host.argv import names_argv
from agent.host.child import Command
from agent.host.process import REPORT_MAX_BYTES, Ending, Outcome

REFUSED: Final = 5
"""ECMD_FAILED: a lock, an absent, exported, foreign or duplicated group, no permission, a broken device …"""
_SHOWN_GROUPS: Final = 10


class Runs(Protocol):
    """What runs the programs."""

    def run(
        self, commands: Sequence[Command], *, subject: str, timeout_seconds: float
    ) -> tuple[Outcome, ...]:
        """Run them at once and wait for all."""
        ...


class Lvm(msgspec.Struct, frozen=True, kw_only=True):
    """The LVM programs of one directory, and how they are run."""

    runner: Runs
    directory: Path
    timeout_seconds: float
    environment: Mapping[str, str]

    def run(self, commands: Sequence[tuple[str, ...]], subject: str) -> tuple[Outcome, ...]:
        """Run the command lines at once.

        Raises:
            LvmError: they could not be run.
        """
        return self.runner.run(
            [Command(argv=argv, environment=self.environment) for argv in commands],
            subject=subject,
            timeout_seconds=self.timeout_seconds,
        )


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A command line and what came of it."""

    argv: tuple[str, ...]
    outcome: Outcome

    @property
    def program(self) -> str:
        """`vgs` or `lvs`."""
        return Path(self.argv[0]).name

    @property
    def is_refusal(self) -> bool:
        """Whether LVM itself said no."""
        return self.outcome.ending is Ending.ITSELF and self.outcome.status == REFUSED


def require_program(path: Path) -> None:
    """Make sure that a program is there and can be run.

    Raises:
        LvmMissing: it is not.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise LvmMissing(subject=str(path), reason=(error.strerror or "unreadable").lower()) from error
    if not stat.S_ISREG(mode):
        raise LvmMissing(subject=str(path), reason="not a regular file")
    if not os.access(path, os.X_OK):
        raise LvmMissing(subject=str(path), reason="not executable")


def require_answered(finished: Finished, vg_name: str, timeout_seconds: float) -> None:
    """Make sure that a program ended by itself, with success or with LVM's own refusal.

    Raises:
        LvmTimeout: it was ended at the deadline.
        LvmGarbled: it printed without end.
        LvmCommandFailed: a signal ended it, or a status that a reading command does not have.
    """
    outcome = finished.outcome
    if outcome.ending is Ending.DEADLINE:
        raise LvmTimeout(subject=vg_name, command=finished.program, timeout_seconds=timeout_seconds)
    if outcome.ending is Ending.TOO_MUCH:
        raise _garbled(vg_name, finished, f"it printed more than {REPORT_MAX_BYTES // 1024**2} MiB")
    if outcome.status not in (0, REFUSED):
        raise _failed(vg_name, finished)


def garbled(vg_name: str, finished: Sequence[Finished], error: ReportError) -> LvmGarbled:
    """The error about an output that can't be used."""
    culprit = next((each for each in finished if each.program == error.program), finished[0])
    return _garbled(vg_name, culprit, error.reason)


def diagnose(lvm: Lvm, vg_name: str, refused: Finished) -> LvmError:
    """Look at all volume groups to say why LVM refused this one.

    The second look includes those of other hosts: what only it shows is foreign.
    """
    looks = [names_argv(lvm.directory, with_foreign=with_foreign) for with_foreign in (False, True)]
    outcomes = lvm.run(looks, vg_name)
    try:
        own, everything = (_visible(outcome) for outcome in outcomes)
    except ReportError:
        return _failed(vg_name, refused)
    is_complete = all(outcome.status == 0 for outcome in outcomes)
    return _explained(vg_name, own, everything, is_complete=is_complete) or _failed(vg_name, refused)


def _explained(
    vg_name: str, own: Sequence[VisibleGroup], everything: Sequence[VisibleGroup], *, is_complete: bool
) -> LvmError | None:
    """The reason in what is there; None when the group is there and looks usable."""
    namesakes = [group for group in everything if group.name == vg_name]
    if not namesakes:
        # A look that failed may have missed it: absent is said only of what was looked at in full.
        return VolumeGroupAbsent(subject=vg_name, visible=_listed(own)) if is_complete else None
    if len(namesakes) > 1:
        uuids = ", ".join(harmless(group.uuid) for group in namesakes)
        return VolumeGroupDuplicated(subject=vg_name, count=len(namesakes), uuids=uuids)
    (group,) = namesakes
    if group.uuid not in {each.uuid for each in own}:
        return VolumeGroupForeign(subject=vg_name, system_id=group.system_id)
    return VolumeGroupExported(subject=vg_name) if group.is_exported else None


def _visible(outcome: Outcome) -> tuple[VisibleGroup, ...]:
    if outcome.ending is not Ending.ITSELF or outcome.status not in (0, REFUSED):
        raise ReportError("vgs", "it failed")
    return parse_visible_groups(outcome.report)


def _listed(groups: Sequence[VisibleGroup]) -> str:
    names = sorted({harmless(group.name) for group in groups})
    rest = len(names) - _SHOWN_GROUPS
    return ", ".join(names[:_SHOWN_GROUPS] + ([f"and {rest} more"] if rest > 0 else [])) or "none"


def _failed(vg_name: str, finished: Finished) -> LvmCommandFailed:
    lines = meaningful_lines(finished.outcome.messages.decode("utf-8", "replace"))
    return LvmCommandFailed(
        subject=vg_name,
        command=finished.program,
        ending=_named(finished.outcome.status),
        seen=f": {harmless('; '.join(lines))}" if lines else "",
        command_line=shlex.join(finished.argv),
    )


def _garbled(vg_name: str, finished: Finished, reason: str) -> LvmGarbled:
    return LvmGarbled(
        subject=vg_name,
        command=finished.program,
        reason=harmless(reason),
        command_line=shlex.join(finished.argv),
    )


def _named(status: int | None) -> str:
    """An exit status in words."""
    if status is None or status >= 0:
        return f"status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
