"""What the daemon does with documents when the disk or the outbox does not go along."""

import pytest
from reports import make_document
from structlog.testing import capture_logs

from agent.core.delivery.errors import OutboxError
from agent.core.delivery.status import DeliveryStatus
from agent.daemon.delivery import DaemonDelivery, Documents

FULL = OutboxError(subject="/var/lib/x", reason="no space left on device")
STATUS = DeliveryStatus(
    last_delivery_at=None,
    last_failure_at=None,
    last_failure=None,
    failures=0,
    next_try_at=None,
    read_only_since=None,
    waiting_count=3,
    waiting_bytes=3000,
    oldest_waiting_at=None,
    dropped_count=0,
    set_aside_count=0,
    set_aside=(),
)
DOCUMENTS = (make_document(1),)
REPORTED = (make_document(2),)


class FakeQueue:
    """Works until it is told to fail."""

    def __init__(self) -> None:
        self.error: OutboxError | None = None
        self.deliveries = 0

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    def report(self, documents: Documents) -> Documents:
        assert documents == DOCUMENTS
        return REPORTED

    def deliver(self) -> None:
        self._fail()
        self.deliveries += 1

    def seconds_until_next_try(self) -> float | None:
        self._fail()
        return 7.0

    def describe(self) -> DeliveryStatus:
        self._fail()
        return STATUS


class Publisher:
    """Takes what is published, or fails."""

    def __init__(self) -> None:
        self.error: OutboxError | None = None
        self.published: list[tuple[Documents, DeliveryStatus | None]] = []

    def __call__(self, documents: Documents, delivery: DeliveryStatus | None) -> None:
        if self.error is not None:
            raise self.error
        self.published.append((documents, delivery))


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


def test_documents_are_published_as_they_were_reported(queue: FakeQueue, publisher: Publisher) -> None:
    delivery = DaemonDelivery(queue=queue, publish=publisher)
    assert delivery.take(DOCUMENTS) == REPORTED
    assert publisher.published == [(REPORTED, STATUS)]
    delivery.deliver_waiting()
    assert (queue.deliveries, delivery.seconds_until_next_try()) == (1, 7.0)


def test_without_a_server_they_are_published_all_the_same(publisher: Publisher) -> None:
    delivery = DaemonDelivery(queue=None, publish=publisher)
    assert delivery.take(DOCUMENTS) == DOCUMENTS
    assert publisher.published == [(DOCUMENTS, None)]
    delivery.deliver_waiting()
    assert delivery.seconds_until_next_try() is None


def test_an_outbox_that_fails_is_told_once_and_told_again_after_it_was_well(
    queue: FakeQueue, publisher: Publisher
) -> None:
    with capture_logs() as logs:
        delivery = DaemonDelivery(queue=queue, publish=publisher)
        for error in (FULL, FULL, None, FULL):
            queue.error = error
            delivery.deliver_waiting()
    assert [line["event"] for line in logs] == ["outbox.deliver.failed"] * 2
    assert delivery.seconds_until_next_try() is None
    assert delivery.take(DOCUMENTS) == REPORTED
    assert publisher.published == [(REPORTED, None)], "what the queue holds is unknown, not zero"


def test_a_state_file_that_can_not_be_written_costs_no_audit(queue: FakeQueue, publisher: Publisher) -> None:
    publisher.error = FULL
    with capture_logs() as logs:
        delivery = DaemonDelivery(queue=queue, publish=publisher)
        assert [delivery.take(DOCUMENTS) for _ in range(3)] == [REPORTED] * 3
    assert [(line["event"], line["log_level"]) for line in logs] == [("state.write.failed", "error")]
    assert "no space left" in logs[0]["error"]
