"""Base URLs of APIs: what could never work is said at once."""

import pytest

from agent.core.urls import find_url_problems

NO_HOST = "must begin with http:// or https:// and name a host"


@pytest.mark.parametrize(
    "url", ["https://inventory.example/v1", "http://127.0.0.1:8080", "HTTP://[::1]:80/v1/", "https://h"]
)
def test_good_urls(url: str) -> None:
    assert list(find_url_problems(url)) == []


@pytest.mark.parametrize(
    ("url", "problems"),
    [
        ("inventory.example/v1", [NO_HOST]),
        ("ftp://inventory.example", [NO_HOST]),
        ("https://", [NO_HOST]),
        ("https://:443/v1", [NO_HOST]),
        ("http://h:0/", [NO_HOST]),
        ("http://[::1", ["is not a usable URL"]),
        ("http://h:99999/v1", ["is not a usable URL"]),
        ("https://h/v1?token=x", ["must end with its path: no ? and no #"]),
        ("https://h/v1#x", ["must end with its path: no ? and no #"]),
        (
            "https://user:secret@h/v1",
            ["holds a user or password: they belong into files, which other keys name"],
        ),
    ],
)
def test_bad_urls(url: str, problems: list[str]) -> None:
    assert list(find_url_problems(url)) == problems


def test_no_url_is_no_bad_one() -> None:
    assert list(find_url_problems(None)) == []
