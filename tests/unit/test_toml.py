"""Text in TOML: what can't be decoded, and what must not be tried."""

import pytest

from agent.core.toml import decode_toml


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            b"a" + b".a" * 500_000 + b" = 1",
            "has 500000 dots on line 1: no key and no value needs more than 100",
        ),
        (
            b"x = 1\n[a" + b".a" * 101 + b"]",
            "has 101 dots on line 2: no key and no value needs more than 100",
        ),
        (b"x = 1\ny = \xff", "is not UTF-8 text: byte 0xff on line 2"),
        (b"x = [" * 100_000, "is not TOML: "),
        (b"x = " + b"9" * 5000, "is not TOML: "),
        (b"x = \x1b[31m", "is not TOML: "),
    ],
    ids=["a long dotted key", "a long header", "bytes", "deep", "a huge number", "an escape"],
)
def test_refused_at_once(data: bytes, problem: str) -> None:
    """Without the limit the first one alone takes tomllib hours."""
    with pytest.raises(ValueError, match=r"^[a-z]") as caught:
        decode_toml(data)
    assert str(caught.value).startswith(problem)
    assert "\x1b" not in str(caught.value)


def test_a_key_of_a_hundred_dots_and_a_ruler_are_fine() -> None:
    assert decode_toml(b"x.y = 1\n# " + b"." * 500) == {"x": {"y": 1}}
    assert "a" in decode_toml(b"a" + b".a" * 100 + b" = 1")
