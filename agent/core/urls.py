"""Addresses in the configuration: what could never work is told before anything is sent.

Not here: sending (`agent.http`).
"""

from collections.abc import Iterator


def find_url_problems(url: str | None) -> Iterator[str]:
    """What is wrong with an API's base URL; nothing when it is not set (None).

    The URL itself is never shown: it may hold a password.
    """
    if url is None:
        return
    from urllib.parse import urlsplit  # noqa: PLC0415 - start-up time: only where a URL is set

    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        yield "is not a usable URL"
        return
    if parts.scheme not in {"http", "https"} or not has_host:
        yield "must begin with http:// or https:// and name a host"
    if parts.query or parts.fragment:
        yield "must end with its path: no ? and no #"
    if parts.username is not None or parts.password is not None:
        yield "holds a user or password: they belong into files, which other keys name"
