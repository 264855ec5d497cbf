"""What becomes of the watcher's words; and pyudev's own source on a real netlink socket."""

import pytest
from daemonfakes import FakeClock, FakeInbox
from structlog.testing import capture_logs

from agent.core.report import Trigger
from agent.daemon.listener import UdevListener
from agent.daemon.mailbox import AUDIT_FOR_UDEV, Request
from agent.host.block_event import BlockEvent
from agent.host.udev import open_netlink

EVENT = BlockEvent(action="change", device="dm-3", properties={})


def test_events_are_requests_and_a_new_monitor_is_one_with_a_finding() -> None:
    inbox = FakeInbox(FakeClock())
    with capture_logs() as logs:
        listener = UdevListener(inbox)
        listener.event_seen(EVENT)
        listener.monitor_failed("Too many open files")
        listener.monitor_reopened("No buffer space available")
    assert inbox.receive(1.0) is AUDIT_FOR_UDEV
    reopened = inbox.receive(1.0)
    assert isinstance(reopened, Request)
    assert reopened.trigger is Trigger.UDEV
    assert [(finding.kind, finding.severity) for finding in reopened.findings] == [
        ("udev_monitor_reopened", "warning")
    ]
    assert "No buffer space available" in reopened.findings[0].message
    assert [(line["event"], line["log_level"]) for line in logs] == [
        ("udev.event.matched", "debug"),
        ("udev.monitor.failed", "error"),
        ("udev.monitor.reopened", "warning"),
    ]


def test_a_quiet_socket_can_be_polled_woken_and_closed() -> None:
    try:
        source = open_netlink()
    except (ImportError, OSError) as error:
        pytest.skip(f"no udev monitor here: {error}")
    assert source.poll(0.0) is None
    source.wake()
    assert source.poll(3600.0) is None, "woken, or the test would wait for an hour"
    source.close()
