"""NAME=SIZE: what is understood, and what each mistake is told."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.resize.ask import parse_asked, suggest_names
from agent.core.resize.document import Code
from agent.core.units import GIB, MIB


@pytest.mark.parametrize(
    ("word", "name", "size_bytes", "is_relative"),
    [
        ("docker=40", "docker", 40 * GIB, False),
        ("docker=40GiB", "docker", 40 * GIB, False),
        ("docker=40 GiB", "docker", 40 * GIB, False),
        ("docker = 40 GiB", "docker", 40 * GIB, False),
        ("docker=512MiB", "docker", 512 * MIB, False),
        ("docker=1KiB", "docker", 1024, False),
        ("docker=1B", "docker", 1, False),
        ("docker=0040", "docker", 40 * GIB, False),
        ("docker=+10", "docker", 10 * GIB, True),
        ("docker=+ 10", "docker", 10 * GIB, True),
        ("docker=+512MiB", "docker", 512 * MIB, True),
        ("docker-distribution=32", "docker-distribution", 32 * GIB, False),
    ],
)
def test_understood(word: str, name: str, size_bytes: int, is_relative: bool) -> None:  # noqa: FBT001
    (asked,), mistakes = parse_asked([word])
    assert mistakes == ()
    assert (asked.name, asked.size_bytes, asked.is_relative) == (name, size_bytes, is_relative)


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("docker", "there is no ="),
        ("", "there is no ="),
        ("=40", "no name before"),
        ("docker=", "no size after"),
        ("docker=-5", "can't be made smaller"),
        ("docker=40.5", "whole number of GiB"),
        ("docker=4e1", "whole number of GiB"),
        ("docker=nan", "whole number of GiB"),
        ("docker=40G", "whole number of GiB"),
        ("docker=40gib", "whole number of GiB"),
        ("docker=40  GiB", "whole number of GiB"),
        ("docker=++4", "whole number of GiB"),
        ("docker==4", "whole number of GiB"),
        ("docker=4=5", "whole number of GiB"),
        ("docker=0x10", "whole number of GiB"),
        ("docker=1_000", "whole number of GiB"),
        ("docker=٤٠", "whole number of GiB"),
        ("docker=0", "size of 0"),
        ("docker=+0", "size of 0"),
        ("docker=8589934592", "2^63"),
        ("docker=" + "9" * 5000, "2^63"),
        ("docker\udcff=40", "not UTF-8"),
        ("docker=40\udc80", "not UTF-8"),
    ],
)
def test_mistakes(word: str, complaint: str) -> None:
    asked, (mistake,) = parse_asked([word])
    assert asked == ()
    assert (mistake.code, mistake.kind, mistake.blocks) == (Code.RULE, "syntax", True)
    assert complaint in mistake.message
    assert len(mistake.message) < 250
    assert "docker=40" in str(mistake.hint)


def test_same_name_twice_counts_once_and_is_told_each_time() -> None:
    asked, mistakes = parse_asked(["docker=40", "kubelet=11", "docker=41", "docker=40"])
    assert [one.text for one in asked] == ["40", "11"]
    assert [mistake.kind for mistake in mistakes] == ["name_twice", "name_twice"]
    assert "docker=40 and docker=41" in mistakes[0].message


def test_hostile_text_is_harmless_in_messages() -> None:
    _, (mistake,) = parse_asked(["\x1b[31mred\x07=\n1"])
    assert "\x1b" not in mistake.message + mistake.subject
    assert "\\x1b" in mistake.message


def test_ten_thousand_arguments() -> None:
    asked, mistakes = parse_asked(f"fs{number % 9000}={number + 1}" for number in range(10_000))
    assert (len(asked), len(mistakes)) == (9000, 1000)


KNOWN = ("scratch", "backup", "kubelet", "docker", "docker-distribution", "image-conversion", "etcd")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("dokcer", "docker"),
        ("docker-lv", "docker"),
        ("DOCKER", "docker"),
        ("dockerdistribution", "docker-distribution"),
        ("dockerdistribution-lv", "docker-distribution"),
        ("docker_distribution", "docker-distribution"),
        ("kublet", "kubelet"),
        ("etc", "etcd"),
        ("zzz", None),
        ("", None),
    ],
)
def test_nearest_name(name: str, first: str | None) -> None:
    assert next(iter(suggest_names(name, KNOWN)), None) == first


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_either_understood_or_a_mistake(word: str) -> None:
    asked, mistakes = parse_asked([word])
    assert len(asked) + len(mistakes) == 1


def test_whatever_is_typed_can_be_said_in_json() -> None:
    """Bytes that are no UTF-8 reach a program as lone surrogates, which JSON can't hold."""
    words = [bytes([byte]).decode("utf-8", "surrogateescape") + "=40" for byte in range(128, 256)]
    asked, mistakes = parse_asked(words)
    assert (asked, len(mistakes)) == ((), 128)
    msgspec.json.encode(mistakes)
