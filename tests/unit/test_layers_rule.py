"""Which module may import which: the arrows of docs/ARCHITECTURE.md, read from the source."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = Path(__file__).parent.parent.parent / "agent"

ALLOWED = {
    "agent.core": ("agent.core",),
    "agent.host": ("agent.core", "agent.host"),
    "agent.http": ("agent.core", "agent.http"),
    "agent.inventory": ("agent.core", "agent.http", "agent.inventory"),
    "agent.state": ("agent.core", "agent.state"),
    "agent.outbox": ("agent.core", "agent.state", "agent.outbox"),
    "agent.reporting": ("agent.core", "agent.reporting"),
    "agent.audit": ("agent.core", "agent.inventory.Inventory"),
    "agent.preflight": ("agent.core", "agent.audit", "agent.inventory.Inventory"),
    "agent.daemon": ("agent.core", "agent.daemon"),
    "agent.config": (
        "agent.core",
        "agent.config",
        "agent.daemon.settings",
        "agent.inventory.settings",
        "agent.reporting.settings",
    ),
    "agent.log": ("agent.config.schema",),
    "agent.__main__": ("agent.cli",),
    "agent.cli": ("agent",),
}
"""By room: what its modules may import of ours.  `agent.cli` is where everything meets."""

WIRED_ONLY_BY = {
    "agent.host": "agent.cli.wiring",
    "agent.http": "agent.cli.wiring",
    "agent.inventory": "agent.cli.wiring",
    "agent.outbox": "agent.cli.wiring",
}
"""Within the command line only the composition root (`wiring` and `wiring_…`) knows these rooms."""

OUTSIDE = {
    "click": ("agent.cli",),
    "rich": ("agent.cli",),
    "psutil": ("agent.host",),
    "pyudev": ("agent.host",),
    "apscheduler": ("agent.host",),
    "requests": ("agent.http",),
    "urllib3": ("agent.http",),
    "keystoneauth1": ("agent.inventory",),
    "subprocess": ("agent.host",),
    "sqlite3": ("agent.outbox",),
    "tomllib": ("agent.core.toml",),
}
"""Each package from outside is touched by one room only."""

CORE_MAY_USE = {"msgspec"}
IMPURE = {"os", "subprocess", "socket", "sys", "time", "logging", "threading", "pathlib", "random", "io"}

ALWAYS_IMPORTED = ("agent.__main__", "agent.cli.main", "agent.cli.audit", "agent.cli.wiring")
"""What every `agent audit --once` imports, whatever it then does."""
HEAVY = {"rich", "structlog", "psutil", "tomllib", "requests", "sqlite3", "apscheduler", "pyudev"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(AGENT.rglob("*.py")):
        parts = path.relative_to(AGENT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(path.read_text(encoding="utf-8"), str(path))


MODULES = dict(modules())


def imports(tree: ast.AST) -> set[str]:
    """Every imported module or name, in whatever corner of the module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_below(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith((f"{room}.", f"{room}_")) for room in rooms)


def room_of(name: str) -> str | None:
    return next((room for room in ALLOWED if is_below(name, (room,))), None)


def test_there_is_something_to_look_at() -> None:
    assert {"agent.core.models", "agent.host.lvm", "agent.cli.wiring", "agent.inventory.file"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_imports_follow_the_arrows(name: str) -> None:
    if name == "agent":
        assert not imports(MODULES[name])
        return
    room = room_of(name)
    assert room is not None, f"{name} stands in no room: add it to ALLOWED and to docs/ARCHITECTURE.md"
    wrong = {
        target
        for target in imports(MODULES[name])
        if is_below(target, ("agent",))
        and target not in {"agent", "agent.__version__"}
        and not is_below(target, ALLOWED[room])
    }
    assert not wrong


@pytest.mark.parametrize("name", [name for name in MODULES if is_below(name, ("agent.cli",))])
def test_only_the_composition_root_knows_the_edges(name: str) -> None:
    for room, root in WIRED_ONLY_BY.items():
        wrong = {target for target in imports(MODULES[name]) if is_below(target, (room,))}
        assert is_below(name, (root,)) or not wrong


@pytest.mark.parametrize("name", MODULES)
def test_packages_from_outside_have_one_room(name: str) -> None:
    for package, rooms in OUTSIDE.items():
        if any(is_below(target, (package,)) for target in imports(MODULES[name])):
            assert is_below(name, rooms)


@pytest.mark.parametrize("name", [name for name in MODULES if is_below(name, ("agent.core",))])
def test_the_core_is_pure(name: str) -> None:
    for target in imports(MODULES[name]):
        package = target.partition(".")[0]
        assert package == "agent" or package in CORE_MAY_USE or package in sys.stdlib_module_names
        assert package not in IMPURE


def test_heavy_packages_are_not_imported_at_the_start() -> None:
    """Followed from module to module: an audit that prints JSON must start at once."""
    seen: set[str] = set()
    waiting = list(ALWAYS_IMPORTED)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            targets = imports(ast.Module(body=list(_run_at_import(MODULES[name])), type_ignores=[]))
            heavy = {target for target in targets if target.partition(".")[0] in HEAVY}
            assert not heavy, f"{name} imports {heavy}"
            waiting += [module for module in MODULES if module != "agent" and is_below_any(targets, module)]
    assert "agent.core.report" in seen, "the walk went nowhere"


def is_below_any(targets: set[str], module: str) -> bool:
    return any(target == module or target.startswith(f"{module}.") for target in targets)


def _run_at_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run at import: none of those for type checkers, no bodies of functions."""
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
