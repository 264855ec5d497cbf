"""Failures told in JSON too, to a command line that asks for it; and an audit's answer when it never began.

Not here: the failures that an audit itself reports (`agent.core.judge`), exit statuses (`main`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from agent.cli import output
from agent.core.errors import AgentError, Interrupted, UsageError
from agent.core.models import DEFAULT_VOLUME_GROUP

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring


def asks_for_json(args: Sequence[str]) -> bool:
    """Whether a command line that could not be parsed wants its answer in JSON."""
    return "--format=json" in args or ("--format", "json") in pairwise(args)


@contextmanager
def told_in_json(tell: Callable[[AgentError], None], *, is_wanted: bool) -> Iterator[None]:
    """While the block runs a failure is given to `tell`, if that is wanted, and in any case raised on."""
    try:
        yield
    except (output.OutputFailed, click.exceptions.Exit, click.Abort):
        raise  # a document on top would not arrive, or nothing failed
    except (Exception, KeyboardInterrupt) as error:
        if is_wanted:
            tell(_to_agent_error(error))
        raise


def _to_agent_error(error: BaseException) -> AgentError:
    if isinstance(error, AgentError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted(subject="agent")
    if isinstance(error, click.UsageError):
        return UsageError(subject="command line", detail=error.format_message())
    return AgentError(subject="agent", detail=f"a bug, please report it: {error!r:.200}")


def print_failure(wiring: "Wiring | None", error: AgentError, volume_groups: Sequence[str] = ()) -> None:
    """Print the document, or one for each volume group that was named."""
    from agent.audit import failed_document  # noqa: PLC0415 - start-up time
    from agent.cli.wiring import Wiring  # noqa: PLC0415
    from agent.config.schema import Settings  # noqa: PLC0415

    parts = wiring or Wiring()
    host = parts.read_host(Settings())
    output.write_result(
        output.encode_documents(
            [
                failed_document(
                    error,
                    volume_group=name,
                    host=host,
                    started_at=parts.clock.now(),
                    audit_id=parts.new_id(),
                )
                for name in volume_groups or (DEFAULT_VOLUME_GROUP,)
            ]
        )
    )
