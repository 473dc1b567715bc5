"""The package's own text, parsed once for all tests that look through it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import tetraodon as td

SOURCE = Path(td.__file__).parent


@cache
def nodes() -> Mapping[str, tuple[ast.AST, ...]]:
    """All nodes of every module, by its path within the package."""
    return {
        path.relative_to(SOURCE).as_posix(): tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted(SOURCE.rglob("*.py"))
    }
