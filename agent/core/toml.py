"""Text in TOML becomes tables; what is wrong with it is said in words that fit behind a file's name.

Not here: reading files, what the tables mean (`agent.config.load`, `agent.inventory.file`).
"""

from typing import Final

from agent.core.names import to_visible

MAX_DOTS: Final = 100
"""On one line: tomllib's time grows with the square of a dotted key's parts, to hours for a megabyte."""


def decode_toml(data: bytes) -> dict[str, object]:
    """Decode one document.

    Raises:
        ValueError: it is none, with the place where that shows.
    """
    import tomllib  # noqa: PLC0415 - start-up time: most hosts have no file

    _require_few_dots(data)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        msg = f"is not UTF-8 text: byte 0x{data[error.start]:02x} on line {line}"
    except (ValueError, RecursionError) as error:
        # Not only TOMLDecodeError: int() refuses a number of more than 4300 digits with a bare ValueError.
        msg = f"is not TOML: {to_visible(str(error))}"
    raise ValueError(msg)


def _require_few_dots(data: bytes) -> None:
    for number, line in enumerate(data.split(b"\n"), start=1):
        count = line.count(b".")
        if count > MAX_DOTS and not line.lstrip().startswith(b"#"):
            msg = f"has {count} dots on line {number}: no key and no value needs more than {MAX_DOTS}"
            raise ValueError(msg)
