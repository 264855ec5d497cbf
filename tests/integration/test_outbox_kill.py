"""kill -9 at two hundred points while the server flaps: every state change arrives, in order, once."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
import pytest
from kill_child import Death, Kind, Life
from reportserver import ReportServer, error, hang_up
from sysinvserver import Reply, Request

from agent.core.report import AuditDocument
from agent.outbox.files import FILE_NAME
from agent.state.file import read_state

KILLS = 200
SEED = int(os.environ.get("AGENT_TEST_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
TESTS = Path(__file__).parent.parent


class Zygote:
    """The process that forks the ones to be killed."""

    def __init__(self) -> None:
        path = os.pathsep.join((str(TESTS), str(TESTS.parent)))
        self._process = subprocess.Popen(
            [sys.executable, str(TESTS / "kill_child.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def live(self, life: Life) -> Death:
        """One life."""
        stdin, stdout = _pipe(self._process.stdin), _pipe(self._process.stdout)
        stdin.write(msgspec.json.encode(life) + b"\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the child failed, see its stderr"
        return msgspec.json.decode(line, type=Death)

    def close(self) -> None:
        """End it."""
        _pipe(self._process.stdin).close()
        self._process.wait()
        _pipe(self._process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    process = Zygote()
    yield process
    process.close()


class Flapping:
    """A server that is away a third of the time, and loses its answer another sixth."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be repeated

    def before(self, request: Request) -> Reply | None:
        number = self._random.random()
        if number < 1 / 6:
            return error(503, "unavailable")
        return hang_up(request) if number < 1 / 3 else None

    def after(self, request: Request) -> Reply | None:
        return hang_up(request) if self._random.random() < 1 / 6 else None


def states_of(documents: list[AuditDocument]) -> list[int]:
    """The state of each: the extents of docker-lv."""
    found = []
    for document in documents:
        assert document.logical_volumes is not None
        found += [lv.extents for lv in document.logical_volumes if lv.name == "docker-lv"]
    return found


def without_repeats(states: list[int]) -> list[int]:
    return [state for index, state in enumerate(states) if index == 0 or states[index - 1] != state]


def measure(zygote: Zygote, directory: Path, kind: Kind) -> int:
    """How many points of that kind a whole life comes through, with a server that works."""
    with ReportServer() as server:
        life = Life(directory=str(directory), url=f"{server.url}/v1", first_state=1, kind=kind, point=0)
        death = zygote.live(life)
    assert death.signal == 0
    assert death.points > 0
    return death.points


def test_every_state_change_arrives_once_and_in_order(zygote: Zygote, tmp_path: Path) -> None:
    print(f"AGENT_TEST_KILL_SEED={SEED}")  # noqa: T201 - what a failure is repeated with
    draw = random.Random(SEED)  # noqa: S311 - to be repeated
    most: dict[Kind, float] = {
        "line": measure(zygote, tmp_path / "line", "line"),
        "statement": measure(zygote, tmp_path / "statement", "statement"),
    }
    started = time.monotonic()
    measure(zygote, tmp_path / "time", "statement")
    most["time"] = time.monotonic() - started
    directory = tmp_path / "state"
    state, killed, kinds = 1, 0, Counter[Kind]()
    flapping = Flapping(SEED)
    with ReportServer() as server:
        server.before, server.after = flapping.before, flapping.after
        while killed < KILLS:
            kind = draw.choices(tuple(most), (6, 3, 2))[0]
            point = draw.uniform(0, most[kind]) if kind == "time" else draw.randint(1, int(most[kind]))
            life = Life(
                directory=str(directory), url=f"{server.url}/v1", first_state=state, kind=kind, point=point
            )
            death = zygote.live(life)
            state += death.done
            killed += death.signal == 9
            kinds[kind] += death.signal == 9
            read_state(directory)  # whole at any time, or it would raise
        server.before = server.after = lambda _: None
        last = Life(directory=str(directory), url=f"{server.url}/v1", first_state=state, kind="none", point=0)
        death = zygote.live(last)
        assert death.signal == 0
        state += death.done

    print(  # noqa: T201 - the figures
        f"killed {dict(kinds)} of {most}, {state - 1} states, {len(server.requests)} requests"
    )
    documents = server.documents
    assert without_repeats(states_of(documents)) == list(range(1, state))
    sequences = [document.sequence or 0 for document in documents]
    assert sequences == sorted(set(sequences))
    assert server.conflicts == []
    assert len({document.outbox_id for document in documents}) == 1
    assert len(server.requests) > len(documents), "nothing was ever sent twice: the server did not flap"
    assert min(kinds.values()) > 0
    assert [file.name for file in directory.iterdir() if "corrupt" in file.name] == []
    assert (directory / FILE_NAME).exists()
