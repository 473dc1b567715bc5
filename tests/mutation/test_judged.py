"""A change takes effect in what is loaded already, and the page counts what it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from judged import functions, put_in
from mutator import Mutant, mutants
from run import page

SOURCE = """
from functools import lru_cache

LIMIT = 10

class Box:
    @property
    def size(self):
        return 2 + 1

@lru_cache
def kept(x):
    return max(x, 5)

def outer(x):
    def inner():
        return x * 7
    return inner
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Path]:
    path = tmp_path / "tetraodon_part.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("tetraodon_part", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tetraodon_part", module)
    spec.loader.exec_module(module)
    return module, path


def changed(old: str, new: str) -> Mutant:
    [found] = [m for m in mutants("tetraodon_part.py", SOURCE) if (m.old, m.new) == (old, new)]
    return found


def test_changes_reach_functions_that_are_loaded(loaded: tuple[Any, Path]) -> None:
    module, path = loaded
    box, inner = module.Box(), module.outer(2)
    assert (box.size, module.kept(1), inner()) == (3, 5, 14)
    for old, new in (("2 + 1", "(2 - 1)"), ("max(x, 5)", "(min(x, 5))"), ("x * 7", "(x + 7)")):
        assert put_in(path, changed(old, new), functions(path.parent))
        told = box.size, module.kept(1), module.outer(2)()
        assert told == {"2 + 1": (1, 5, 14), "max(x, 5)": (3, 1, 14), "x * 7": (3, 5, 9)}[old]
    assert put_in(path, changed("10", "11"), functions(path.parent))  # takes the last one back
    assert not put_in(path, changed("10", "11"), functions(path.parent))  # is in no function


def test_the_page_counts_equivalent_changes_apart() -> None:
    found = mutants("src/tetraodon/f.py", "def f(x):\n    return x + 1 < 3\n")
    outcomes = dict(zip((m.key for m in found), ["killed", "too long", "survived", "survived"], strict=False))
    alive = [m.key for m in found if outcomes.get(m.key) == "survived"]
    told = page(found, outcomes, {alive[0]: "equivalent: so", alive[1]: "not so"}, 99)
    assert f"Tried: **4** of {len(found)}. Killed: **2** (1 of them by the time they took)." in told
    assert "**Score: 2 / (4 − 1) = 66.7 %**" in told and told.count("not so") == 1
