"""Runs the tests of this directory inside guests of scripts/vm, and reports them as if they had run here.

All tests with the same boot (`pytest.mark.vm(boot="service")`) share one guest.  Outside, the first test of
this directory starts all guests that the selected tests need (`vmguests`), each with a pytest for its tests;
the reports come back through a shared file.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vmguests import ARTEFACTS_VARIABLE, REPORTS_VARIABLE, ROOT, TIMEOUT_SECONDS, Guests

IN_GUEST = REPORTS_VARIABLE in os.environ

_REASON = pytest.StashKey[str | None]()
_REPORTS = pytest.StashKey[dict[str, list[pytest.TestReport]]]()
_GUESTS = pytest.StashKey[Guests]()
_FIGURES = pytest.StashKey[list[tuple[str, str, object]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORTS] = {}
    config.stash[_FIGURES] = []


def boot_of(item: pytest.Item) -> str | None:
    """The guest that a test runs in; None = it runs outside."""
    marker = item.get_closest_marker("vm")
    boot: str | None = None if marker is None else marker.kwargs.get("boot", "common")
    return boot


def reason_not_to_run(config: pytest.Config) -> str | None:
    """Why no guest can run here; asked once."""
    if _REASON not in config.stash:
        check = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "vm"), "--check"],
            capture_output=True,
            text=True,
            check=False,
        )
        config.stash[_REASON] = check.stderr.strip() or None
    return config.stash[_REASON]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Outside, the first test waits for a whole guest; inside, each has its own limit."""
    if not IN_GUEST:
        for item in items:
            if boot_of(item) is not None:
                item.add_marker(pytest.mark.timeout(float(TIMEOUT_SECONDS) + 200), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Outside: start all guests if need be, then repeat what the guest's pytest reported."""
    if IN_GUEST or item.get_closest_marker("vm") is None:
        return None
    reason = reason_not_to_run(item.config)
    if reason is not None:
        item.add_marker(pytest.mark.skip(reason=f"no virtual machine here: {reason}"))
        return None
    if _GUESTS not in item.config.stash:
        start_guests(item.session)
    boot = boot_of(item)
    if boot is None:
        return None
    reports = item.config.stash[_REPORTS]
    if item.nodeid not in reports:
        replay(item.config, boot, [other for other in item.session.items if boot_of(other) == boot])
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in reports[item.nodeid]:
        item.ihook.pytest_runtest_logreport(report=report)
        if report.when == "call":
            figures = [(item.name, name, value) for name, value in report.user_properties]
            item.config.stash[_FIGURES] += figures
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What the tests in guests measured."""
    for test, name, value in config.stash[_FIGURES]:
        terminalreporter.write_line(f"vm: {test}: {name} = {value}")


def start_guests(session: pytest.Session) -> None:
    """Start a guest for each boot; the one that takes longest first."""
    guests = session.config.stash[_GUESTS] = Guests()
    node_ids: dict[str, list[str]] = {}
    for item in session.items:
        boot = boot_of(item)
        if boot is not None:
            node_ids.setdefault(boot, []).append(item.nodeid)
    for boot in sorted(node_ids, reverse=True):
        guests.start(boot, node_ids[boot])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Whatever still runs was not waited for (-x, Ctrl-C)."""
    if _GUESTS in config.stash:
        config.stash[_GUESTS].end()


def replay(config: pytest.Config, boot: str, items: list[pytest.Item]) -> None:
    """Take in the reports of a guest; each of its tests gets some, or one that says why there are none."""
    guest, reports = config.stash[_GUESTS].reports(boot), config.stash[_REPORTS]
    for line in guest.lines:
        report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
        reports.setdefault(report.nodeid, []).append(report)
    for item in items:
        if not any(report.when == "teardown" for report in reports.get(item.nodeid, ())):
            problem = guest.problem or "the guest reported nothing"
            reports.setdefault(item.nodeid, []).append(_failed(item, problem))


def _failed(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=text,
        when="call",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In the guest: write down each report for those outside."""
    report = yield
    if IN_GUEST and boot_of(item) is not None:
        data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
        with Path(os.environ[REPORTS_VARIABLE]).open("a") as lines:
            lines.write(json.dumps(data) + "\n")
    return report


@pytest.fixture
def nothing_left_running() -> None:
    """Replaces the guard of all tests: a server serves a whole story here, and the guest ends everything."""


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Notes something measured, which the summary prints."""
    return lambda name, value: request.node.user_properties.append((name, value))


@pytest.fixture(scope="session")
def artefacts(request: pytest.FixtureRequest) -> Path:
    """What is built outside, for the tests there and in the guest."""
    if IN_GUEST:
        return Path(os.environ[ARTEFACTS_VARIABLE])
    guests = request.config.stash[_GUESTS]
    problem = guests.build_packages()
    assert problem is None, problem
    return guests.artefacts
