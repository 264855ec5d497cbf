"""Runs the tests of this directory inside guests of scripts/vm, and reports them as if they had run here.

All tests with the same boot (`pytest.mark.vm(boot="service")`) share one guest: outside, the first of them
boots it and runs pytest in it for all that are selected; the reports come back through a shared file.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
REPORTS_VARIABLE = "VM_REPORTS"
ARTEFACTS_VARIABLE = "VM_ARTEFACTS"
IN_GUEST = REPORTS_VARIABLE in os.environ
_TIMEOUT_SECONDS = "600"
"""For all tests of a guest; on a quiet machine they take a third of it."""

_REASON = pytest.StashKey[str | None]()
_REPORTS = pytest.StashKey[dict[str, list[pytest.TestReport]]]()
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
                item.add_marker(pytest.mark.timeout(float(_TIMEOUT_SECONDS) + 200), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Outside: boot if need be, then repeat what the guest's pytest reported."""
    boot = boot_of(item)
    if IN_GUEST or boot is None:
        return None
    reason = reason_not_to_run(item.config)
    if reason is not None:
        item.add_marker(pytest.mark.skip(reason=f"no virtual machine here: {reason}"))
        return None
    reports = item.config.stash[_REPORTS]
    if item.nodeid not in reports:
        items = [other for other in item.session.items if boot_of(other) == boot]
        run_in_guest(item.config, boot, items, reports)
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


def run_in_guest(
    config: pytest.Config, boot: str, items: list[pytest.Item], reports: dict[str, list[pytest.TestReport]]
) -> None:
    """Run these tests in one guest; each gets its reports, or one that says why there are none."""
    with tempfile.TemporaryDirectory(prefix="vm-tests-") as name:
        shared = Path(name)
        prepare = PREPARATIONS.get(boot)
        problem = None if prepare is None else prepare(shared)
        if problem is None:
            problem = _run_guest(shared, boot, [item.nodeid for item in items])
        lines = shared / "reports.jsonl"
        for line in lines.read_text().splitlines() if lines.exists() else ():
            report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            reports.setdefault(report.nodeid, []).append(report)
    for item in items:
        if not any(report.when == "teardown" for report in reports.get(item.nodeid, ())):
            reports.setdefault(item.nodeid, []).append(_failed(item, problem or "the guest reported nothing"))


def _run_guest(shared: Path, boot: str, node_ids: list[str]) -> str | None:
    """Boot and run; returns what went wrong with the guest, not with a test."""
    command = [
        sys.executable,
        str(ROOT / "scripts" / "vm"),
        *("--timeout", _TIMEOUT_SECONDS, "--hostname", "controller-0", "--share", str(shared)),
        *(word for size in DISKS.get(boot, ()) for word in ("--disk", size)),
        *("--env", REPORTS_VARIABLE, "--env", ARTEFACTS_VARIABLE, "--"),
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *node_ids),
    ]
    environment = {
        **os.environ,
        REPORTS_VARIABLE: str(shared / "reports.jsonl"),
        ARTEFACTS_VARIABLE: str(shared),
    }
    for name in [name for name in environment if name.startswith("COVERAGE_")]:
        del environment[name]
    guest = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if guest.returncode in {0, 1}:  # pytest ran, whatever it found
        return None
    return f"the guest ended with {guest.returncode}:\n{guest.stdout[-3000:]}\n{guest.stderr[-3000:]}"


def _failed(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="failed",
        longrepr=text,
        when="call",
    )


def build_packages(shared: Path) -> str | None:
    """A wheelhouse and a Debian package for the system's Python, built outside, where there is a network."""
    builder = shared / "builder"
    wheelhouse = shared / "wheelhouse"
    steps = [
        ["/usr/bin/python3", "-m", "venv", str(builder)],
        [
            str(builder / "bin/pip"),
            "-q",
            "--disable-pip-version-check",
            "wheel",
            "--wheel-dir",
            str(wheelhouse),
            f"{ROOT}[sysinv]",
        ],
        [str(ROOT / "scripts" / "build-deb"), "--wheelhouse", str(wheelhouse), str(shared)],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=shared, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"`{' '.join(step)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    shutil.rmtree(builder)
    return None


PREPARATIONS: dict[str, Callable[[Path], str | None]] = {"service": build_packages}
DISKS = {"service": ("179G", "20G"), "common": ("8G", "8G", "8G")}
"""Sizes of each boot's fresh disks: /dev/ubda, /dev/ubdb, …"""


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
def artefacts() -> Path:
    """What was built outside for the tests in the guest."""
    return Path(os.environ[ARTEFACTS_VARIABLE])
