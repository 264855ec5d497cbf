"""Sizes as people write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.units import ceil_div, format_exact, format_gib, parse_size, round_up


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        (30, 32212254720),
        ("30", 32212254720),
        ("30GiB", 32212254720),
        ("8000 MiB", 8388608000),
        ("1KiB", 1024),
        ("512B", 512),
        ("007GiB", 7516192768),
        ("9223372036854775807B", 2**63 - 1),
        (8589934591, 9223372035781033984),
    ],
)
def test_size_is_read_exactly(text: object, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "30 bananas", "", " 30", "30 ", "-1", -1, 0, "0", "0GiB", "000", "1.5", 1.5, True, None, [], "30gib", "30G",
        "1e3", "٣", "3\n", "30  GiB", "0x10", "9223372036854775808B", 8589934592, 2**80, "9" * 5000, float("nan"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|2\^63"):
        parse_size(text)


@given(st.integers(1, 2**63 - 1))
def test_exact_form_gives_the_same_bytes_back(size_bytes: int) -> None:
    assert parse_size(format_exact(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 GiB"),
        (2**30, "1 GiB"),
        (517 * 32 * 2**20, "16.156 GiB"),
        (8000 * 2**20, "7.812 GiB"),
        (-6 * 32 * 2**20, "-0.188 GiB"),
        (1, ">0 GiB"),
        (-1, "<0 GiB"),
        (2**30 - 1, "<1 GiB"),
        (2**30 + 1, ">1 GiB"),
        (2**62, "4294967296 GiB"),
        (100 * 2**30 + 4 * 2**20, "100.004 GiB"),
    ],
)
def test_size_for_people_never_hides_a_difference(size_bytes: int, text: str) -> None:
    assert format_gib(size_bytes) == text


def test_division_rounds_up() -> None:
    assert [ceil_div(value, 4) for value in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [round_up(value, 3) for value in (0, 1, 3, 4)] == [0, 3, 3, 6]
