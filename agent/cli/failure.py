"""The JSON answer of an audit that could not even begin: everything unknown, and why.

Not here: the failures that an audit itself reports (`agent.core.judge`).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from agent.cli import output
from agent.core.errors import AgentError
from agent.core.models import DEFAULT_VOLUME_GROUP

if TYPE_CHECKING:
    from agent.cli.wiring import Wiring


def asks_for_json(args: Sequence[str]) -> bool:
    """Whether a command line that could not be parsed wants its answer in JSON."""
    return "--format=json" in args or ("--format", "json") in pairwise(args)


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
