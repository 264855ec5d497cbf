"""Every kind that a finding or a preflight reason can have, read from the source.

A kind stands where a `Finding` or `Reason` is made, in a call of a helper that makes one, or in an error
class.  Anything else is refused, so that no kind can hide.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from agent.core.report import FilesystemVerdict

AGENT = Path(__file__).parent.parent / "agent"
VERDICT_KINDS = frozenset(f"filesystem_{verdict}" for verdict in FilesystemVerdict if verdict.is_drift)


def find_kinds(made: str) -> frozenset[str]:
    """The kinds of every `Finding` or `Reason` that is made as such."""
    return frozenset(kind for tree in _trees() for kind in _of_calls(tree, made))


def find_error_kinds() -> frozenset[str]:
    """The kinds of expected failures, which become findings or reasons."""
    return frozenset(kind for tree in _trees() for kind in _of_errors(tree))


def _trees() -> Iterator[ast.Module]:
    for path in sorted(AGENT.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"), str(path))


def _of_errors(tree: ast.Module) -> Iterator[str]:
    """`kind = "…"`, or with its type in the base of them all, in the body of a class."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="kind")], value=value):
                    yield from _texts(value)
                case ast.AnnAssign(
                    target=ast.Name(id="kind"),
                    annotation=ast.Subscript(value=ast.Name(id="ClassVar")),
                    value=ast.expr() as value,
                ):
                    yield from _texts(value)


def _of_calls(tree: ast.Module, made: str) -> Iterator[str]:
    for function in _functions(tree):
        for call in _calls(function, made):
            kind = next(keyword.value for keyword in call.keywords if keyword.arg == "kind")
            if not isinstance(kind, ast.Name):
                yield from _texts(kind)
                continue
            position = [argument.arg for argument in function.args.args].index(kind.id)
            for place in _calls(tree, function.name):
                yield from _texts(place.args[position])


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Outermost ones: a nested one is looked at with the one around it."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (one for one in node.body if isinstance(one, ast.FunctionDef))


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _texts(value: ast.expr) -> frozenset[str]:
    """What an expression for a kind can be."""
    match value:
        case ast.Constant(value=str(text)):
            return frozenset({text})
        case ast.IfExp(body=body, orelse=other):
            return _texts(body) | _texts(other)
        case ast.JoinedStr(values=[ast.Constant(value="filesystem_"), ast.FormattedValue()]):
            return VERDICT_KINDS
        case ast.Attribute(value=ast.Name(id="finding" | "self" | "error"), attr="kind"):
            return frozenset()  # handed on from one that was counted where it was made
    msg = f"line {value.lineno}: {ast.unparse(value)} may be any kind"
    raise AssertionError(msg)
