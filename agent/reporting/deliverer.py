"""Delivers what waits in the outbox: in order, one process at a time, with pauses after failures.

Every answer is written down before the next report is sent.  Not here: storing documents and what is said
about them (`reporter`), the arithmetic of pauses (`core.delivery.retry`, `core.delivery.state`).
"""

from typing import Final

from agent.core.delivery import state as queue_state
from agent.core.delivery.errors import OutboxDamaged
from agent.core.delivery.queue import Answer, Outcome, QueuedReport, QueueState
from agent.core.delivery.retry import seconds_between
from agent.core.delivery.status import DeliveryStatus
from agent.reporting.ports import Clock, OutboxKeeperPort, OutboxPort, Sender, UnitRandom

_LEAST_TRY_SECONDS: Final = 0.1
"""With less than that left nothing is begun."""


class Deliverer:
    """The queue's outgoing end.  For one thread at a time."""

    def __init__(
        self, *, keeper: OutboxKeeperPort, sender: Sender, clock: Clock, unit_random: UnitRandom
    ) -> None:
        self._keeper = keeper
        self._sender = sender
        self._clock = clock
        self._unit_random = unit_random

    def deliver(self, *, budget_seconds: float, at_once: bool = False) -> Answer | None:
        """Send the oldest first until nothing waits, time is up, or an answer says to stop.

        `at_once` tries whatever the pause says.  Returns the answer because of which something still
        waits; None when nothing does, when another process delivers, or when time was up.

        Raises:
            OutboxDamaged: caught by `Reporter.report`, which begins a new outbox.
            OutboxError: the outbox can't be used.
        """
        end = self._clock.monotonic_seconds() + budget_seconds
        with self._keeper.try_delivery_lock() as is_ours:
            if not is_ours:
                return None
            outbox = self._keeper.current()
            state = outbox.load_state()
            if not at_once and self._pause_seconds(state) > 0:
                return Answer(outcome=state.last_outcome or Outcome.RETRY, reason=state.last_failure or "")
            return self._drain(outbox, state, end)

    def deliver_in_background(self, *, budget_seconds: float) -> Answer | None:
        """`deliver` for the daemon's own timer: a damaged outbox is replaced on the way.

        Raises:
            OutboxError: the outbox can't be used.
        """
        try:
            return self.deliver(budget_seconds=budget_seconds)
        except OutboxDamaged as error:
            self._keeper.replace(error)
            return None

    def seconds_until_next_try(self) -> float | None:
        """When `deliver` has something to do again; None = nothing waits.

        Raises:
            OutboxError: can't say.
        """
        outbox = self._keeper.current()
        if not outbox.describe().waiting_count:
            return None
        return self._pause_seconds(outbox.load_state())

    def describe(self) -> DeliveryStatus:
        """The queue as `agent status` shows it.

        Raises:
            OutboxError: can't say.
        """
        outbox = self._keeper.current()
        return DeliveryStatus.of(outbox.load_state(), outbox.describe(), self._clock.moment())

    def is_read_only(self) -> bool:
        """Whether the server takes no reports, as far as is known.

        Raises:
            OutboxError: can't say.
        """
        return self._keeper.current().load_state().read_only_since is not None

    def send(self, report: QueuedReport, *, budget_seconds: float) -> Answer | None:
        """Send one report that is not in the queue; None = no time."""
        if budget_seconds < _LEAST_TRY_SECONDS:
            return None
        return self._sender.send(
            report,
            age_seconds=seconds_between(report.read_at, self._clock.moment()),
            budget_seconds=budget_seconds,
        )

    def _drain(self, outbox: OutboxPort, state: QueueState, end: float) -> Answer | None:
        while end - self._clock.monotonic_seconds() >= _LEAST_TRY_SECONDS:
            head = outbox.take_head()
            if head is None:
                return None
            answer = self.send(head, budget_seconds=end - self._clock.monotonic_seconds())
            if answer is None:
                return None
            state = self._settle(outbox, head, answer, state)
            if not answer.outcome.is_delivered and answer.outcome is not Outcome.REFUSED:
                return answer
        return None

    def _settle(
        self, outbox: OutboxPort, report: QueuedReport, answer: Answer, state: QueueState
    ) -> QueueState:
        """Write down what came of a try."""
        assert report.sequence is not None  # noqa: S101 - it was taken from the queue
        now = self._clock.moment()
        state = queue_state.after(answer, state, now, self._unit_random())
        if answer.outcome.is_delivered:
            outbox.remove(report.sequence, state)
        elif answer.outcome is Outcome.REFUSED:
            outbox.set_aside(report.sequence, answer.reason, now.wall, state)
        else:
            outbox.save_state(state)
        return state

    def _pause_seconds(self, state: QueueState) -> float:
        return 0.0 if state.wait is None else state.wait.remaining_seconds(self._clock.moment())
