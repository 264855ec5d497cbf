"""Reads one volume group from LVM: two programs at once, and a named error for everything that is not it.

A status and an output are judged together: LVM prints a perfectly valid empty report when it was
interrupted, when a lock was refused and when the group does not exist.  Messages are never matched, their
wording is no interface.  Not here: argv (see `argv`), children (see `process`), why a read failed
(see `diagnosis`), decoding (`agent.core.lvm.parse`).
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent.core.errors import LvmError, LvmNotPermitted, UsageError, VolumeGroupChanging
from agent.core.lvm.condition import find_damage, find_reading_notes, find_warnings, meaningful_lines
from agent.core.lvm.decode import ReportError
from agent.core.lvm.parse import LvReport, VgReport, are_same_revision, join, parse_lvs, parse_vgs
from agent.core.models import LogicalVolume, Reading, ReadMode, VolumeGroup
from agent.core.names import find_lvm_name_problem
from agent.host.argv import build_environment, lvs_argv, version_argv, vgs_argv
from agent.host.diagnosis import Finished, Lvm, Runs, diagnose, garbled, require_answered, require_program
from agent.host.process import Outcome
from agent.host.sysfs import read_active_volumes

MAX_ATTEMPTS: Final = 3
"""Reads of a group whose metadata changes between `vgs` and `lvs`."""
_VERSION: Final = re.compile(rb"LVM version:\s*([0-9]+\.[0-9]+\.[0-9]+)")


class LvmReader:
    """Reads volume groups with the LVM programs of one directory, `timeout_seconds` for each pair of them."""

    def __init__(
        self,
        runner: Runs,
        directory: Path,
        timeout_seconds: float,
        *,
        environment: Mapping[str, str] | None = None,
        geteuid: Callable[[], int] = os.geteuid,
        read_active: Callable[[], frozenset[str] | None] = read_active_volumes,
    ) -> None:
        self._lvm = Lvm(
            runner=runner,
            directory=directory.absolute(),
            timeout_seconds=timeout_seconds,
            environment=build_environment(os.environ if environment is None else environment),
        )
        self._directory = self._lvm.directory
        self._geteuid = geteuid
        self._read_active = read_active
        self._version: str | None = None
        self._is_version_asked = False

    def read(self, volume_group: str) -> Reading:
        """Read one volume group: two processes when nothing is wrong.

        Raises:
            UsageError: LVM can't have a group of that name.
            LvmError: it can't be said what is there; the class says why.
        """
        problem = find_lvm_name_problem(volume_group)
        if problem is not None:
            raise UsageError(subject=volume_group, detail=f"volume group: {problem}")
        for program in ("vgs", "lvs"):
            require_program(self._directory / program)
        mode = ReadMode.LOCKED
        for attempt in range(1, MAX_ATTEMPTS + 1):
            mode, finished = self._read_both(volume_group, mode)
            vgs, lvs = _parse(volume_group, finished)
            if are_same_revision(vgs, lvs) or (lvs.seqno is None and attempt == MAX_ATTEMPTS):
                return self._reading(volume_group, mode, finished, vgs, lvs)
        raise VolumeGroupChanging(subject=volume_group, attempts=MAX_ATTEMPTS)

    def version(self) -> str | None:
        """The release of lvm2, such as 2.03.16; None when it can't be had.

        Asked once, at the same time as the first read when there is one.
        """
        if not self._is_version_asked:
            try:
                require_program(self._directory / "lvm")
                (outcome,) = self._lvm.run([version_argv(self._directory)], "lvm version")
            except LvmError:
                return None
            self._note_version(outcome)
        return self._version

    def _version_command(self) -> tuple[tuple[str, ...], ...]:
        """What to run beside the first read, where there is a program to ask."""
        if self._is_version_asked:
            return ()
        try:
            require_program(self._directory / "lvm")
        except LvmError:
            return ()
        return (version_argv(self._directory),)

    def _note_version(self, outcome: Outcome) -> None:
        self._is_version_asked = True
        match = _VERSION.search(outcome.messages)
        self._version = match[1].decode("ascii") if match and outcome.status == 0 else None

    def _read_both(self, vg_name: str, mode: ReadMode) -> tuple[ReadMode, tuple[Finished, Finished]]:
        """Both programs at once; `lvs` once more without the lock when LVM refuses it with the lock."""
        vgs, lvs = self._run(
            vg_name, vgs_argv(self._directory, vg_name), lvs_argv(self._directory, vg_name, mode)
        )
        if lvs.is_refusal and mode is ReadMode.LOCKED and not vgs.is_refusal:
            # Every trouble with a lock is status 5, as are many others; only reading without it tells.
            mode = ReadMode.LOCK_FREE
            (lvs,) = self._run(vg_name, lvs_argv(self._directory, vg_name, mode))
        for each in (vgs, lvs):
            if each.is_refusal:
                if self._geteuid() != 0:
                    raise LvmNotPermitted(subject=vg_name)
                raise diagnose(self._lvm, vg_name, each)
        return mode, (vgs, lvs)

    def _run(self, vg_name: str, *commands: tuple[str, ...]) -> list[Finished]:
        beside = self._version_command()
        outcomes = self._lvm.run((*commands, *beside), vg_name)
        if beside:
            self._note_version(outcomes[-1])
        finished = [Finished(argv=argv, outcome=each) for argv, each in zip(commands, outcomes, strict=False)]
        for each in finished:
            require_answered(each, vg_name, self._lvm.timeout_seconds)
        return finished

    def _reading(
        self,
        vg_name: str,
        mode: ReadMode,
        finished: tuple[Finished, Finished],
        vgs: VgReport,
        lvs: LvReport,
    ) -> Reading:
        try:
            group = join(vgs, lvs)
        except ReportError as error:
            raise garbled(vg_name, finished, error) from error
        group = msgspec.structs.replace(self._with_activity(group), read_mode=mode)
        messages = [each.outcome.messages.decode("utf-8", "replace") for each in finished]
        messages += [
            row.log_message
            for report in (vgs, lvs)
            for row in report.extras.log
            if row.log_type in {"warn", "error"}
        ]
        return Reading(
            volume_group=group,
            findings=(
                *find_damage(group),
                *find_reading_notes(group, vgs.extras.repairs + lvs.extras.repairs),
                *find_warnings(vg_name, meaningful_lines("\n".join(messages))),
            ),
        )

    def _with_activity(self, group: VolumeGroup) -> VolumeGroup:
        """Ask the kernel where LVM could not say whether an LV is active."""
        if all(lv.active is not None for lv in group.logical_volumes):
            return group
        active = self._read_active()
        if active is None:
            return group

        def known(lv: LogicalVolume) -> LogicalVolume:
            if lv.active is not None:
                return lv
            return msgspec.structs.replace(lv, active=(group.uuid + lv.uuid).replace("-", "") in active)

        return msgspec.structs.replace(group, logical_volumes=tuple(map(known, group.logical_volumes)))


def _parse(vg_name: str, finished: tuple[Finished, Finished]) -> tuple[VgReport, LvReport]:
    try:
        return (
            parse_vgs(finished[0].outcome.report, vg_name),
            parse_lvs(finished[1].outcome.report, vg_name),
        )
    except ReportError as error:
        raise garbled(vg_name, finished, error) from error
