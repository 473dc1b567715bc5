"""Small changes to source text, each of which ought to make a test fail.

A change replaces one expression or statement and leaves every other character as it is. Sites are found in the syntax tree:
comparisons, arithmetic, whole numbers, truth values, returned values, statements, min and max. Annotations, decorators, texts,
what stands inside formatted texts and the ``strict`` of a zip are left alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
WORKED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
OTHER = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
SKIPPED = ("annotation", "returns", "decorator_list", "type_params")


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        key: names it in any version of the file that has the same function with the same expression in it.
        path: of the file, from the root of the tree.
        inside: the function or class that it is in; "" at the top.
        kind: what was changed.
        line: where it starts, from 1.
        old, new: the text that was there, and the text that is there instead.
        start, end: of the old text, in bytes.
    """

    key: str
    path: str
    inside: str
    kind: str
    line: int
    old: str
    new: str
    start: int
    end: int

    def applied(self, source: str) -> str:
        """The file with this change.

        >>> [m.applied("x = 1 < 2") for m in mutants("f.py", "x = 1 < 2")][0]
        'x = (1 <= 2)'
        """
        told = source.encode()
        return (told[: self.start] + self.new.encode() + told[self.end :]).decode()


def mutants(path: str, source: str) -> list[Mutant]:
    """Every change of a file, in the order of its text."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for inside, node, kind, new in _sites(ast.parse(source), ""):
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        old = source.encode()[start:end].decode()
        told = (path, inside, kind, old, new)
        seen[told] += 1
        key = hashlib.sha256("\n".join([*told, str(seen[told])]).encode()).hexdigest()[:10]
        found.append(Mutant(key, path, inside, kind, node.lineno, old, new, start, end))
    return found


def _sites(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.expr | ast.stmt, str, str]]:
    """(function, node, kind, text instead of it) of a tree."""
    for name, value in ast.iter_fields(node):
        if name in SKIPPED:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.keyword) and child.arg == "strict":  # of zip: says what holds already
                continue
            if isinstance(child, ast.Raise):  # what it says is text; that it is raised is a statement
                yield inside, child, "statement", "pass"
                continue
            within = inside
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                within = f"{inside}.{child.name}".lstrip(".")
            if isinstance(child, ast.expr | ast.stmt):
                yield from ((inside, child, kind, new) for kind, new in _changes(child))
            yield from _sites(child, within)


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """(kind, text) of what may stand instead of one node."""
    if isinstance(node, ast.Compare):
        for i, one in enumerate(node.ops):
            changed: list[ast.cmpop] = [*node.ops[:i], COMPARED[type(one)](), *node.ops[i + 1 :]]
            yield "comparison", _text(ast.Compare(node.left, changed, node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in WORKED:
        yield "arithmetic", _text(ast.BinOp(node.left, WORKED[type(node.op)](), node.right))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "truth value", str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        for other in (node.value + 1, node.value - 1):
            yield "number", f"({other})" if other < 0 else str(other)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", _text(ast.BoolOp(other_op, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", _text(node.operand)
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "returned value", "return None"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "statement", "pass"
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in OTHER:
            func: ast.expr = (
                ast.Name(OTHER[name])
                if isinstance(node.func, ast.Name)
                else ast.Attribute(node.func.value, OTHER[name])
            )  # type: ignore[attr-defined]
            yield "min, max", _text(ast.Call(func, node.args, node.keywords))


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def sampled(found: list[Mutant], count: int) -> list[Mutant]:
    """The ``count`` changes with the least keys: a sample that nobody chose and everybody can draw again."""
    return sorted(found, key=lambda m: m.key)[:count]
