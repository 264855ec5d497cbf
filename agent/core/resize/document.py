"""The answer to "would these resizes be safe?": what `agent preflight --format json` prints.

Field names are a contract with other programs; ``None`` means "could not be looked at".  Not here:
deciding anything (`preflight`, `upgrade`), drawing it (`agent.cli`).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal

import msgspec

from agent.core.errors import AgentError, ExitCode, strongest
from agent.core.report import CapacitySection, VolumeGroupSection

PREFLIGHT_SCHEMA: Final = "agent.preflight/v1"


class Code(StrEnum):
    """Why a resize is refused, or what is worth knowing although it is not."""

    LVM_UNREADABLE = "lvm_unreadable"
    INVENTORY_UNREADABLE = "inventory_unreadable"
    CONFIG_INVALID = "config_invalid"
    INTERNAL = "internal"
    RULE = "rule"
    DOES_NOT_FIT = "does_not_fit"
    BUSY = "busy"
    EARLIER_RESIZE_NOT_APPLIED = "earlier_resize_not_applied"
    OVERSIZED = "oversized"
    LAYERS_UNKNOWN = "layers_unknown"


_EXIT_CODES: Final = {
    Code.LVM_UNREADABLE: ExitCode.LVM,
    Code.INVENTORY_UNREADABLE: ExitCode.INVENTORY,
    Code.CONFIG_INVALID: ExitCode.CONFIG,
    Code.RULE: ExitCode.USAGE,
    Code.DOES_NOT_FIT: ExitCode.DOES_NOT_FIT,
    Code.BUSY: ExitCode.BUSY,
    Code.EARLIER_RESIZE_NOT_APPLIED: ExitCode.DRIFT,
}
_CANT_TELL: Final = frozenset(
    {Code.LVM_UNREADABLE, Code.INVENTORY_UNREADABLE, Code.CONFIG_INVALID, Code.INTERNAL}
)
_CODES: Final = {
    ExitCode.USAGE: Code.RULE,
    ExitCode.LVM: Code.LVM_UNREADABLE,
    ExitCode.INVENTORY: Code.INVENTORY_UNREADABLE,
    ExitCode.CONFIG: Code.CONFIG_INVALID,
}


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to know before resizing.  Numbers are physical extents."""

    code: Code
    kind: str
    """Which case of the code: ``shrink``, ``drbd_resync``, ``vg_absent`` … (snake_case, stable)."""
    blocks: bool = True
    """False = a warning: worth knowing, and no reason to refuse."""
    subject: str
    message: str
    hint: str | None = None
    needed_extents: int | None = None
    available_extents: int | None = None
    logical_volume: str | None = None

    @classmethod
    def of_error(cls, error: AgentError) -> "Reason":
        """Why it can't be said at all."""
        return cls(
            code=_CODES.get(error.exit_code, Code.INTERNAL),
            kind=error.kind,
            subject=error.subject,
            message=str(error),
            hint=error.hint,
        )


def is_allowed(reasons: Sequence[Reason]) -> bool | None:
    """Whether none of the reasons refuses; None = one of them means that it can't be said."""
    blocking = [reason.code for reason in reasons if reason.blocks]
    if _CANT_TELL.intersection(blocking):
        return None
    return not blocking


def exit_code_of(reasons: Sequence[Reason]) -> ExitCode:
    """The exit status that the reasons stand for; warnings never change it."""
    blocking = [reason.code for reason in reasons if reason.blocks]
    return (
        ExitCode.INTERNAL
        if Code.INTERNAL in blocking
        else strongest([_EXIT_CODES[code] for code in blocking])
    )


class AskedSection(msgspec.Struct, frozen=True, kw_only=True):
    """One asked resize as it was understood.  Sizes are those of the LV, the platform's factor included."""

    name: str
    text: str
    """The size as it was typed."""
    logical_volume: str | None = None
    recorded_bytes: int | None = None
    actual_bytes: int | None = None
    asked_bytes: int | None = None


class Change(StrEnum):
    """Why an LV changes."""

    NONE = "none"
    KEPT = "kept"
    PENDING = "pending"
    ASKED = "asked"
    RECORDED = "recorded"


class LedgerLine(msgspec.Struct, frozen=True, kw_only=True):
    """One LV in the walk.  `free_extents` is what is left after it; negative = that many are short."""

    logical_volume: str
    filesystem: str | None
    change: Change
    before_extents: int
    """Logical extents, as are `after_extents`."""
    after_extents: int
    needed_extents: int
    """Physical extents it takes to get there."""
    free_extents: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the pure functions say.  None = that far nobody got."""

    reasons: tuple[Reason, ...] = ()
    asked: tuple[AskedSection, ...] = ()
    ledger: tuple[LedgerLine, ...] | None = None
    capacity: CapacitySection | None = None

    @property
    def allowed(self) -> bool | None:
        """Whether nothing speaks against it; None = it can't be said."""
        return is_allowed(self.reasons)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that the reasons stand for."""
        return exit_code_of(self.reasons)

    def with_reasons(self, *reasons: Reason) -> "Answer":
        """The same answer with more reasons, those first."""
        return msgspec.structs.replace(self, reasons=(*reasons, *self.reasons))


class PreflightDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One answer about one volume group: schema ``agent.preflight/v1``."""

    schema: Literal["agent.preflight/v1"] = PREFLIGHT_SCHEMA
    question: Literal["resize", "rebuild"]
    volume_group_name: str
    asked: tuple[AskedSection, ...]
    allowed: bool | None
    reasons: tuple[Reason, ...]
    ledger: tuple[LedgerLine, ...] | None
    capacity: CapacitySection | None
    volume_group: VolumeGroupSection | None
