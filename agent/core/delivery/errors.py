"""Failures of the outbox, named by meaning.  Not here: the findings about single reports (`advice`)."""

from agent.core.errors import AgentError, ExitCode


class OutboxError(AgentError):
    """Reports can't be stored."""

    kind = "outbox_unusable"
    exit_code = ExitCode.INVENTORY
    template = "the outbox {subject} can't be used: {reason}"
    hint_template = "check free space and permissions there (`df`, `ls -ld`), or set [agent] state_directory"


class OutboxNewer(OutboxError):
    """A later version of the agent made the outbox; touching it could lose what it holds."""

    kind = "outbox_newer"
    template = "the outbox {subject} has format {found}, this agent knows {known}: nothing was changed"
    hint_template = "upgrade the agent again, or move the file away to begin a new outbox"


class OutboxForeign(OutboxError):
    """The file is a database of some other program."""

    kind = "outbox_foreign"
    template = "{subject} is a database of another program: nothing was changed"
    hint_template = "set [agent] state_directory to a directory of the agent's own"


class OutboxBusy(OutboxError):
    """Another process keeps the outbox locked."""

    kind = "outbox_busy"
    template = "the outbox {subject} is locked by another process for more than {timeout_seconds:g} s"
    hint_template = "see who holds it: `fuser -v {subject}`"


class OutboxDamaged(OutboxError):
    """The file is no database any more.  The policy sets it aside and begins a new one."""

    kind = "outbox_damaged"
    template = "the outbox {subject} is damaged: {reason}"
