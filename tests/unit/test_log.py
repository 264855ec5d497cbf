"""Logging: where it goes, in which shape."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from agent import log
from agent.config.schema import LogFormat, LogLevel, LogSection


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def configured_anew() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def emit(stream: TextIO, *, level: LogLevel = "info", form: LogFormat = "auto", **environment: str) -> None:
    log.configure(LogSection(level=level, format=form), stream=stream, environment=environment)
    logger = log.get_logger()
    logger.debug("audit.started", vg="cgts-vg")
    logger.info("audit.finished", vg="cgts-vg", drift_count=2)


def test_json_when_nobody_watches() -> None:
    stream = io.StringIO()
    emit(stream)
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", event.pop("timestamp"))
    assert event == {"event": "audit.finished", "level": "info", "vg": "cgts-vg", "drift_count": 2}


def test_the_level_is_the_least_severe_that_is_logged() -> None:
    stream = io.StringIO()
    emit(stream, level="debug")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == [
        "audit.started",
        "audit.finished",
    ]
    stream = io.StringIO()
    emit(stream, level="warning")
    assert stream.getvalue() == ""


def test_lines_for_people_on_a_terminal() -> None:
    stream = Terminal()
    emit(stream)
    assert "audit.finished" in stream.getvalue()
    assert "\x1b[" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_no_colour_when_it_is_not_wanted() -> None:
    stream = Terminal()
    emit(stream, NO_COLOR="1")
    assert "\x1b[" not in stream.getvalue()
    assert "drift_count=2" in stream.getvalue()


@pytest.mark.parametrize(("form", "starts_with"), [("json", "{"), ("console", "20")])
def test_a_format_that_was_asked_for(form: LogFormat, starts_with: str) -> None:
    for stream in (Terminal(), io.StringIO()):
        emit(stream, form=form, NO_COLOR="1")
        assert stream.getvalue().startswith(starts_with)


def test_the_journal_is_read_by_people(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w") as stream:
        status = os.fstat(stream.fileno())
        ours = f"{status.st_dev}:{status.st_ino}"
        assert log.is_journal(stream, ours)
        assert not log.is_journal(stream, f"{status.st_dev}:{status.st_ino + 1}")
        assert not log.is_journal(stream, "")
        emit(stream, JOURNAL_STREAM=ours)
    assert "drift_count=2" in (tmp_path / "journal").read_text()


def test_a_stream_without_a_descriptor_is_not_the_journal() -> None:
    assert not log.is_journal(io.StringIO(), "1:2")


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_line_that_can_not_be_written_is_lost_and_nothing_else(form: LogFormat) -> None:
    emit(Broken(), form=form)
    closed = io.StringIO()
    closed.close()
    log.configure(LogSection(format="json"), stream=closed, environment={})
    log.get_logger().info("audit.finished")


def test_a_traceback_is_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(LogSection(), stream=sys.stderr, environment={})
    try:
        raise KeyError("boom")  # noqa: TRY301 - a traceback is wanted
    except KeyError:
        log.get_logger().exception("audit.crashed")
    event = json.loads(capsys.readouterr().err)
    assert event["event"] == "audit.crashed"
    assert event["exception"][0]["exc_type"] == "KeyError"
