"""Which test executes which line without a change, and how long it takes: one run of the fast tests, in a private copy."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutator import Mutant, mutants

SKIPPED = (".git", ".venv*", "__pycache__", ".mutation", ".hypothesis", ".*_cache", "published", "shared")


@dataclass(frozen=True)
class Measured:
    """One run without a change.

    Attributes:
        seconds: by test, of those that pass.
        unusable: tests that fail, are skipped, or need a server.
        lines: by file and line, the tests that execute it; "" where it is executed as modules are loaded.
        stale: files that have changed since.
    """

    seconds: Mapping[str, float]
    unusable: frozenset[str]
    lines: Mapping[str, Mapping[int, frozenset[str]]]
    stale: frozenset[str]


def copied(root: Path, work: Path) -> Path:
    """The private copy, brought up to date."""
    tree = work / "tree"
    shutil.copytree(root, tree, ignore=shutil.ignore_patterns(*SKIPPED), symlinks=True, dirs_exist_ok=True)
    return tree


def code_files(tree: Path, code: Iterable[str]) -> list[Path]:
    """The files that are changed."""
    at = [tree / "src" / "tetraodon" / name for name in code]
    return [path for one in at for path in (sorted(one.glob("*.py")) if one.is_dir() else [one])]


def prints(tree: Path, code: Iterable[str]) -> dict[str, str]:
    """SHA-256 of every file that is changed, by its path."""
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in code_files(tree, code)
    }


def every(tree: Path, code: Iterable[str]) -> list[Mutant]:
    """All changes."""
    return [
        m
        for path in code_files(tree, code)
        for m in mutants(str(path.relative_to(tree)), path.read_text(encoding="utf-8"))
    ]


def environment(tree: Path) -> dict[str, str]:
    """Of the tests: the copy before whatever is installed."""
    return {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def measure(work: Path, tree: Path, tests: Sequence[str], code: Iterable[str]) -> None:
    """Run the tests once, unless that was done."""
    where = work / "coverage"
    if where.exists():
        return
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow", "--cov=tetraodon",
        "--cov-context=test", "--cov-report=", "-o", "junit_family=xunit1", f"--junitxml={work / 'times.xml'}", *tests,
    ]  # fmt: skip
    told = {**environment(tree), "COVERAGE_FILE": str(work / "coverage.part")}
    subprocess.run(command, cwd=tree, env=told, check=False)
    (work / "prints.json").write_text(json.dumps(prints(tree, code), indent=1), encoding="utf-8")
    os.replace(work / "coverage.part", where)


def is_served(test: str) -> bool:
    """Whether a test needs a server, of which each process would start one of its own."""
    return "[postgres" in test


def read(work: Path, tree: Path, code: Iterable[str]) -> Measured:
    """What the run found out."""
    from coverage import CoverageData

    seconds, unusable = {}, set()
    for case in ET.parse(work / "times.xml").iter("testcase"):
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        if is_served(name) or any(case.find(kind) is not None for kind in ("failure", "error", "skipped")):
            unusable.add(name)
        else:
            seconds[name] = float(case.get("time", "0"))
    data = CoverageData(str(work / "coverage"))
    data.read()
    now, then = prints(tree, code), json.loads((work / "prints.json").read_text(encoding="utf-8"))
    files = {name: f for name in now for f in data.measured_files() if f.endswith(f"/{name}")}
    lines = {
        name: {
            line: frozenset(context.partition("|")[0] for context in contexts)
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for name, file in files.items()
    }
    return Measured(seconds, frozenset(unusable), lines, frozenset(n for n in now if now[n] != then.get(n)))


def lines_of(mutant: Mutant, source: str) -> range:
    """From the start of the statement that a change is in to its own line."""
    start = mutant.line
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            start = node.lineno if not isinstance(node, ast.FunctionDef | ast.ClassDef) else start
    return range(start, mutant.line + 1)


def executing(mutant: Mutant, source: str, found: Measured) -> tuple[frozenset[str], bool]:
    """The tests that execute a change, and whether it is executed as modules are loaded.

    All tests that touch the file, where only loading executes it and where the file has changed since.
    """
    by_line = found.lines.get(mutant.path, {})
    touching = frozenset().union(*by_line.values()) - {""}
    told = frozenset().union(*(by_line.get(line, ()) for line in lines_of(mutant, source)))
    if mutant.path in found.stale:
        return touching, not mutant.inside
    return (told - {""} or (touching if told else told)), "" in told
