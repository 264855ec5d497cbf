"""What leaves the process: results on stdout, everything else on stderr, and what happens when they can't.

Not here: what results look like (`table`, `agent.core.report`).
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from agent.core.errors import AgentError
from agent.core.names import to_visible
from agent.core.report import AuditDocument, AuditsDocument

BROKEN_PIPE_STATUS: Final = 128 + 13
"""What a shell shows for a program that SIGPIPE ended: the reader of stdout has seen enough."""


def hold_standard_descriptors() -> None:
    """Occupy descriptors 0 to 2 when the caller closed them.

    Otherwise the next pipe gets the number 1 and LVM's messages would be taken for our result.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


class OutputFailed(Exception):
    """The result did not reach stdout.  Not an OSError: click would end the process for some of those."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason
        super().__init__(str(reason))


def write_result(text: str | bytes) -> None:
    """Write a result to stdout and make sure that it has arrived.

    Raises:
        OutputFailed: it has not (disk full, the reader has gone).
    """
    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OutputFailed(error) from error


def encode_documents(documents: Sequence[AuditDocument]) -> bytes:
    """One JSON document, whatever their number: a line of its own, UTF-8."""
    document = documents[0] if len(documents) == 1 else AuditsDocument(audits=tuple(documents))
    return msgspec.json.encode(document) + b"\n"


def show_error(message: str, *, details: Sequence[str] = (), hint: str | None = None) -> None:
    """Say on stderr what went wrong and what can be done."""
    lines = [f"agent: {message}", *(f"  - {detail}" for detail in details)]
    if hint:
        lines.append(f"hint: {hint}")
    show_lines(lines)


def show_agent_error(error: AgentError) -> None:
    """The same for an expected failure; its mistakes, when it has several, one a line."""
    problems: tuple[str, ...] = getattr(error, "problems", ())
    message = f"{error.subject} can't be used" if problems else str(error)
    show_error(message, details=problems, hint=error.hint)


def show_lines(lines: Sequence[str]) -> None:
    """Write lines to stderr; nobody listening is no reason to fail."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("".join(f"{to_visible(line)}\n" for line in lines))
            sys.stderr.flush()


def silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere: its failure has been dealt with."""
    _silence(1)


def let_go_of_stderr() -> None:
    """Keep what nobody could be told (disk full, journald gone) from becoming our exit status."""
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _silence(2)


def _silence(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
