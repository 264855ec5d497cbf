"""What the daemon remembers from one audit to the next, so that it tells news only once.

Pure: documents in, news out.  Not here: logging them (`announce`).
"""

from typing import Final

import msgspec

from agent.core.models import Finding, Severity
from agent.core.report import AuditDocument, AuditVerdict, FilesystemSection, FilesystemVerdict

_TOLD_AS_DRIFT: Final = frozenset(
    f"filesystem_{verdict}" for verdict in FilesystemVerdict if verdict.is_drift
)
"""Findings that say of a filesystem what its drift already says."""

_Subject = tuple[str, str]
"""A filesystem's source and name, or a finding's kind and subject."""


class News(msgspec.Struct, frozen=True, kw_only=True):
    """How one audit differs from what was known before it."""

    drifted: tuple[FilesystemSection, ...] = ()
    """Filesystems that began to drift, or drift in another way."""
    resolved: tuple[FilesystemSection, ...] = ()
    """Filesystems that no longer drift, as they are now, or as they were last when the record is gone."""
    appeared: tuple[Finding, ...] = ()
    """Warnings and worse that were not there before."""
    cleared: tuple[Finding, ...] = ()


class History:
    """The memory of one volume group."""

    def __init__(self) -> None:
        self._last_good: AuditDocument | None = None
        self._drifting: dict[_Subject, FilesystemSection] = {}
        self._findings: dict[_Subject, Finding] = {}

    def complete(self, document: AuditDocument) -> AuditDocument:
        """The document itself, or, when LVM could not be read, with the last good state marked stale.

        Verdict and every filesystem stay unknown: what was true then may be a lie by now.
        """
        last = self._last_good
        if document.volume_group is not None or last is None:
            return document
        filesystems = document.filesystems
        if filesystems is None and last.filesystems is not None:
            filesystems = tuple(_to_unknown(filesystem) for filesystem in last.filesystems)
        return msgspec.structs.replace(
            document,
            stale=True,
            as_of=last.as_of,
            volume_group=last.volume_group,
            logical_volumes=last.logical_volumes,
            filesystems=filesystems,
        )

    def observe(self, document: AuditDocument) -> tuple[News, bool]:
        """Take a completed document in: the news in it, and whether LVM's metadata changed since the last.

        An audit that could not look resolves nothing; what it adds is news all the same.
        """
        is_good = document.volume_group is not None and not document.stale
        before = None if self._last_good is None else _revision(self._last_good)
        has_changed = is_good and _revision(document) != before
        drifted, resolved = self._observe_filesystems(document)
        appeared, cleared = self._observe_findings(document)
        if is_good:
            self._last_good = document
        news = News(drifted=drifted, resolved=resolved, appeared=appeared, cleared=cleared)
        return news, has_changed

    def _observe_filesystems(
        self, document: AuditDocument
    ) -> tuple[tuple[FilesystemSection, ...], tuple[FilesystemSection, ...]]:
        if document.filesystems is None:
            return (), ()
        now = {(str(row.source), row.name): row for row in document.filesystems}
        drifted = []
        resolved = []
        for subject, row in now.items():
            before = self._drifting.get(subject)
            if row.verdict.is_drift:
                if before is None or before.verdict is not row.verdict:
                    drifted.append(row)
                self._drifting[subject] = row
            elif before is not None and row.verdict is not FilesystemVerdict.UNKNOWN:
                resolved.append(row)
                del self._drifting[subject]
        if document.verdict is not AuditVerdict.UNKNOWN:
            gone = [subject for subject in self._drifting if subject not in now]
            resolved += [self._drifting.pop(subject) for subject in gone]
        return tuple(drifted), tuple(resolved)

    def _observe_findings(self, document: AuditDocument) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        now = {
            (finding.kind, finding.subject): finding
            for finding in document.findings
            if finding.severity is not Severity.INFO and finding.kind not in _TOLD_AS_DRIFT
        }
        appeared = tuple(finding for subject, finding in now.items() if subject not in self._findings)
        if document.verdict is AuditVerdict.UNKNOWN:
            self._findings.update(now)
            return appeared, ()
        cleared = tuple(finding for subject, finding in self._findings.items() if subject not in now)
        self._findings = now
        return appeared, cleared


def _revision(document: AuditDocument) -> tuple[str, int] | None:
    group = document.volume_group
    return None if group is None else (group.uuid, group.seqno)


def _to_unknown(filesystem: FilesystemSection) -> FilesystemSection:
    return msgspec.structs.replace(
        filesystem,
        actual_bytes=None,
        actual_extents=None,
        delta_extents=None,
        verdict=FilesystemVerdict.UNKNOWN,
        detail=None,
    )
