"""Measures in a guest of scripts/vm, where LVs are devices: prints one line of JSON.

- how long after `lvextend` has returned the daemon's report arrives, twenty times;
- what looking at the layers of 12 mounted LVs costs.

Not here: booting the guest (`bench_daemon`, `bench_preflight`).
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench_table import file_read_us, require  # noqa: E402 - its own imports need the line above
from vmhost import Receiver, run  # noqa: E402

from agent.host.layers import LayerScanner  # noqa: E402
from agent.host.lvm import LvmReader  # noqa: E402
from agent.host.prober import Prober  # noqa: E402
from agent.host.process import Runner  # noqa: E402

GROUP = "cgts-vg"
_LVS = 12
_EXTENTS = 16
_TIMES = 20
_SCANS = 100
"""Many, because User-Mode Linux counts CPU in steps of 10 ms."""
_SETTLED_SECONDS = 1.0


def build() -> None:
    """Twelve LVs with a mounted ext4 each."""
    run("vgcreate", GROUP, "/dev/ubda")
    for number in range(_LVS):
        name = f"lv{number}"
        run("lvcreate", "-y", "-l", str(_EXTENTS), "-n", name, GROUP)
        run("mkfs.ext4", "-q", f"/dev/{GROUP}/{name}")
        Path(f"/mnt/{name}").mkdir()
        run("mount", f"/dev/{GROUP}/{name}", f"/mnt/{name}")


@contextmanager
def daemon(receiver: Receiver) -> Iterator[None]:
    """The daemon with its defaults; it has reported its first audit."""
    with tempfile.TemporaryDirectory() as name:
        configuration = Path(name, "agent.toml")
        configuration.write_text(
            f"""
            [agent]
            state_directory = "{name}/state"
            [report]
            url = "{receiver.server.url}/v1"
            """
        )
        command = [sys.executable, "-m", "agent", "run", "--config", str(configuration)]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            receiver.next()
            try:
                yield
            finally:
                process.terminate()


def measure_latency() -> list[float]:
    """Seconds from lvextend's return until the report is there, each after a moment of rest."""
    taken = []
    with Receiver() as receiver, daemon(receiver):
        for extents in range(_EXTENTS + 1, _EXTENTS + 1 + _TIMES):
            time.sleep(_SETTLED_SECONDS)
            receiver.forget()
            run("lvextend", "-q", "-l", str(extents), f"{GROUP}/lv0")
            extended_at = time.monotonic()
            at, _ = receiver.wait_for_extents("lv0", extents)
            taken.append(at - extended_at)
    return taken


def measure_layers() -> float:
    """CPU milliseconds of a scan of all the LVs, in this process; the helper's come on top."""
    with Runner() as runner, closing(Prober()) as prober:
        volume_group = LvmReader(runner, Path("/usr/sbin"), 60.0).read(GROUP).volume_group
        scanner = LayerScanner(prober)
        scan = scanner.scan(volume_group)
        kinds = [layer.kind for layers in (scan.layers or {}).values() for layer in layers]
        require(kinds == ["filesystem"] * _LVS, "each LV has its filesystem")
        started = time.process_time()
        for _ in range(_SCANS):
            scanner.scan(volume_group)
        return (time.process_time() - started) * 1000 / _SCANS


def main() -> None:
    """Build, measure, print."""
    build()
    layers_ms = measure_layers()
    seconds = measure_latency()
    result = {
        "median_seconds": statistics.median(seconds),
        "worst_seconds": max(seconds),
        "layers_ms": layers_ms,
        "file_read_us": file_read_us(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
