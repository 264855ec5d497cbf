"""What the delivery policy remembers after each answer: pure steps from one `QueueState` to the next.

Not here: storing it (`agent.outbox.store`), acting on it (`agent.reporting.deliverer`).
"""

from agent.core.delivery.queue import Answer, Outcome, QueueState
from agent.core.delivery.retry import PROBE_SECONDS, Moment, Wait, backoff_seconds


def after(answer: Answer, state: QueueState, now: Moment, unit_random: float) -> QueueState:
    """The state after an answer; `unit_random` from 0 to 1 is the jitter of a pause, if there is one."""
    if answer.outcome.is_delivered:
        return QueueState(last_delivery_at=now.wall)
    if answer.outcome is Outcome.REFUSED:
        # The API is well and takes the next one: no pause.
        return QueueState(
            last_delivery_at=state.last_delivery_at,
            last_outcome=answer.outcome,
            last_failure=answer.reason,
            last_failure_at=now.wall,
        )
    failures = state.failures + 1
    read_only_since = _read_only_since(answer.outcome, state, now)
    seconds = PROBE_SECONDS
    if read_only_since is None:
        seconds = backoff_seconds(failures, unit_random, answer.retry_after_seconds)
    return QueueState(
        failures=failures,
        wait=Wait(since=now, seconds=seconds),
        last_outcome=answer.outcome,
        last_failure=answer.reason,
        last_failure_at=now.wall,
        last_delivery_at=state.last_delivery_at,
        read_only_since=read_only_since,
    )


def _read_only_since(outcome: Outcome, state: QueueState, now: Moment) -> Moment | None:
    if outcome is Outcome.UNKNOWN_HOST:
        return None  # only the API itself says that
    if outcome is Outcome.NO_REPORTS:
        return state.read_only_since or now
    return state.read_only_since
