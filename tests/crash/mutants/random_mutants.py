"""Small random changes of the source: flipped comparisons, numbers off by one, dropped statements, swapped and/or."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from tests.crash.mutants.patches import ROOT, Mutant

_FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


def draw(count: int, *, seed: int, folders: tuple[str, ...] = ("log",)) -> list[Mutant]:
    """`count` random mutants of the files in `folders`; the same seed on the same source gives the same ones."""
    package = ROOT / "src/lowwater"
    files = sorted(file for folder in folders for file in (package / folder).rglob("*.py"))
    sites = [mutant for file in files for mutant in _mutants(file, str(file.relative_to(package)))]
    return random.Random(seed).sample(sites, min(count, len(sites)))


def _mutants(path: Path, name: str) -> Iterator[Mutant]:
    source = path.read_text()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for changed, what in _changes(node):
            mutant = _splice(source, node, changed, name, what)
            if mutant is not None:
                yield mutant


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The mutated forms of one node, with a word for each."""
    changed = deepcopy(node)
    match changed:
        case ast.Compare(ops=[op]) if type(op) in _FLIPS:
            changed.ops = [_FLIPS[type(op)]()]
            yield changed, "comparison flipped"
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value), "constant negated"
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1), "off by one"
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
            changed.op = _ARITHMETIC[type(op)]()
            yield changed, "sign flipped"
        case ast.BoolOp(op=op):
            changed.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield changed, "and/or swapped"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand, "not dropped"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass(), "statement dropped"


def _splice(source: str, node: ast.AST, changed: ast.AST, file: str, what: str) -> Mutant | None:
    """A patch that replaces the node's whole lines, so that its text is unique."""
    if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
        return None
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno
    start = len("".join(lines[:first]).encode()) + node.col_offset
    end = len("".join(lines[: last - 1]).encode()) + node.end_col_offset
    raw = source.encode()
    text = ast.unparse(ast.fix_missing_locations(changed))
    mutated = (
        (raw[:start] + f"({text})".encode() + raw[end:])
        if isinstance(changed, ast.expr)
        else (raw[:start] + text.encode() + raw[end:])
    )
    result = mutated.decode()
    if result == source or not _compiles(result):
        return None
    old_lines, label = "".join(lines[first:last]).strip(), f"{file}:{node.lineno}"
    return Mutant(label, f"{what}: {old_lines[:90]} → {text[:60]}", file, source, result)


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True
