"""The Debian package, as it is judged outside; how it lives is in `test_service`."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.vm(boot=None)


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not installed")
def test_lintian_finds_no_error(artefacts: Path) -> None:
    (package,) = artefacts.glob("*.deb")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", str(package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
