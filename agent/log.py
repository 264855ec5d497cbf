"""Logging, configured once by the command line: events with facts as fields, on stderr only.

Event names are constant, dotted and past tense (``audit.finished``).  structlog is imported when it is
configured, not before.  Not here: results, which go to stdout.
"""

import contextlib
import io
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TextIO, cast

from agent.config.schema import LogSection

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure(settings: LogSection, *, stream: TextIO, environment: Mapping[str, str]) -> None:
    """Set up structlog for this process: everything below the level is dropped for next to nothing."""
    import structlog  # noqa: PLC0415 - start-up time

    is_console = wants_console(settings, stream=stream, environment=environment)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_console(stream, environment) if is_console else _json()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=structlog.PrintLoggerFactory(file=cast("TextIO", _Patient(stream))),
        cache_logger_on_first_use=False,
    )


def get_logger() -> "FilteringBoundLogger":
    """The logger; `configure` must have been called."""
    import structlog  # noqa: PLC0415 - start-up time

    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def wants_console(settings: LogSection, *, stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether lines are for people: on a terminal, and in the journal, which people read too."""
    if settings.format != "auto":
        return settings.format == "console"
    return stream.isatty() or is_journal(stream, environment.get("JOURNAL_STREAM", ""))


def is_journal(stream: TextIO, journal_stream: str) -> bool:
    """Whether the stream goes to the journal: systemd names its device and inode in $JOURNAL_STREAM.

    The variable alone proves nothing, it is inherited by children whose stderr goes elsewhere.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{status.st_dev}:{status.st_ino}"


class _Patient(io.TextIOBase):
    """A stream on which a line that can't be written is lost, and nothing else.

    The journal's socket breaks when journald dies (EPIPE), a log file's disk may be full: neither may end
    an audit, let alone the daemon.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _console(stream: TextIO, environment: Mapping[str, str]) -> "tuple[Processor, ...]":
    from structlog.dev import ConsoleRenderer, plain_traceback  # noqa: PLC0415 - start-up time

    has_colors = stream.isatty() and not environment.get("NO_COLOR")
    return (ConsoleRenderer(colors=has_colors, exception_formatter=plain_traceback),)


def _json() -> "tuple[Processor, ...]":
    from structlog.processors import JSONRenderer, dict_tracebacks  # noqa: PLC0415 - start-up time

    return dict_tracebacks, JSONRenderer()
