"""Runs the agent as a process, in an environment without what would change the result."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fakelvm import FakeLvm

HEALTHY = """
whole_gib = true
[[filesystem]]
name = "log"
logical_volume = "log-lv"
size = 8
[[filesystem]]
name = "docker"
logical_volume = "docker-lv"
size = 30
"""
"""Recorded sizes that fit the bug report's machine."""


def environment(**more: str) -> dict[str, str]:
    """Ours without what would change the result."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENT_", "LVM_")) and name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}
    }
    return {**kept, **more}


def agent(
    *args: str | bytes, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it to its end and give back what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "agent", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment() if env is None else env,
        cwd=cwd,
    )


def audit(fake: FakeLvm, *args: str | bytes) -> subprocess.CompletedProcess[str]:
    """One audit on fake LVM programs."""
    return agent("audit", "--once", "--lvm-dir", str(fake.directory), *args)


def only_document(stdout: str) -> dict[str, Any]:
    """Exactly one JSON document and nothing else."""
    assert stdout.endswith("\n")
    assert stdout.count("\n") == 1
    document: dict[str, Any] = json.loads(stdout)
    return document
