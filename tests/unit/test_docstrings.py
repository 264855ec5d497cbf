"""Where a module says what it is not responsible for, the modules that it names are really there."""

import ast
import re
from pathlib import Path

import pytest

AGENT = Path(__file__).parent.parent.parent / "agent"
MODULES = {
    ".".join(path.relative_to(AGENT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(AGENT.rglob("*.py"))
}
_NOT_HERE = re.compile(r"Not here: (?P<text>.*)", re.DOTALL)
_PLACE = re.compile(r"\((?P<names>[^()]*)\)")
_REFERENCE = re.compile(r"`(?P<name>[a-z_]+(?:\.[a-z_]+)*)`")


def docstring_of(name: str) -> str:
    return ast.get_docstring(ast.parse(MODULES[name].read_text(encoding="utf-8"))) or ""


def references(docstring: str) -> list[str]:
    match = _NOT_HERE.search(docstring)
    places = [] if match is None else _PLACE.findall(match["text"])
    return [name for place in places for name in _REFERENCE.findall(place)]


def is_found(reference: str, name: str) -> bool:
    """Whether it is a module of ours: in full, or seen from the module's package or one around it."""
    packages = [name.rsplit(".", count)[0] for count in range(name.count(".") + 1)]
    return reference in MODULES or any(f"{package}.{reference}" in MODULES for package in packages)


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("One thing.", []),
        ("Speaks (`vgs`).  Not here: printing (see `agent.cli`, `bare`), `vgs`.", ["agent.cli", "bare"]),
        ("Not here: reading such a file (`agent baseline`).", []),
        ("Not here: one\n(`lvm.parse`).", ["lvm.parse"]),
    ],
)
def test_references(docstring: str, expected: list[str]) -> None:
    assert references(docstring) == expected


@pytest.mark.parametrize(
    ("reference", "name", "expected"),
    [
        ("agent.core.lvm.parse", "agent.host.lvm", True),
        ("parse", "agent.core.lvm.rows", True),
        ("units", "agent.core.lvm.rows", True),
        ("cli.wiring", "agent.audit", True),
        ("parse", "agent.host.lvm", False),
        ("lvmjson", "agent.core.lvm.rows", False),
    ],
)
def test_is_found(reference: str, name: str, *, expected: bool) -> None:
    assert is_found(reference, name) is expected


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    assert docstring_of(name)


@pytest.mark.parametrize("name", MODULES)
def test_modules_named_as_somebody_elses_place_are_there(name: str) -> None:
    missing = [reference for reference in references(docstring_of(name)) if not is_found(reference, name)]
    assert not missing, f"{name} names modules that are not there"
