"""Real signals to this very process, while nobody and while somebody is busy."""

import os
import signal
import time

import pytest

from agent.daemon.life import EndedByForce, signals_posted
from agent.daemon.mailbox import AUDIT_FOR_SIGNAL, Mailbox, Message, Reload, Stop

# The timer under test is the one that pytest-timeout uses by default.
pytestmark = pytest.mark.timeout(60, method="thread")

PATIENCE_SECONDS = 30.0


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGUSR1, AUDIT_FOR_SIGNAL),
        (signal.SIGHUP, Reload()),
        (signal.SIGTERM, Stop(reason="SIGTERM")),
        (signal.SIGINT, Stop(reason="SIGINT")),
    ],
)
def test_each_signal_is_a_message(number: signal.Signals, message: Message) -> None:
    mailbox = Mailbox()
    aborts: list[None] = []
    handler = signal.getsignal(number)
    with signals_posted(mailbox, lambda: aborts.append(None)):
        os.kill(os.getpid(), number)
        assert mailbox.receive(PATIENCE_SECONDS) == message
    assert len(aborts) == isinstance(message, Stop)
    assert signal.getsignal(number) is handler


def test_many_signals_at_once_lose_no_kind() -> None:
    mailbox = Mailbox()
    with signals_posted(mailbox, lambda: None):
        for number in (signal.SIGUSR1, signal.SIGHUP) * 50:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        kinds = set()
        while not isinstance(message := mailbox.receive(PATIENCE_SECONDS), Stop):
            kinds.add(type(message))
    assert kinds == {type(AUDIT_FOR_SIGNAL), Reload}


def test_an_end_that_takes_too_long_is_enforced() -> None:
    def wait_for_a_server_that_never_answers() -> None:
        with signals_posted(Mailbox(), lambda: None, end_seconds=0.05):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(PATIENCE_SECONDS)  # never slept to its end

    with pytest.raises(EndedByForce):
        wait_for_a_server_that_never_answers()


def test_an_end_in_time_is_not() -> None:
    with signals_posted(Mailbox(), lambda: None, end_seconds=0.05):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
