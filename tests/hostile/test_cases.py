"""Every known case is met in every part of the product by a test that exists, or is said to be out of its reach."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from cases import CASES, PARTS

TESTS = Path(__file__).parent.parent


@cache
def functions(name: str) -> dict[str, list[str]]:
    """Tests at the top of a file, with their decorators, by name."""
    tree = ast.parse((TESTS / name).read_text(encoding="utf-8"))
    return {
        n.name: [ast.unparse(d) for d in n.decorator_list]
        for n in tree.body
        if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")
    }


def named() -> list[tuple[str, str, str]]:
    """(case, part, test) for every test that is named."""
    return [
        (case, part, test)
        for case, (_, cells) in CASES.items()
        for part, told in cells.items()
        if not isinstance(told, str)
        for test in told
    ]


def test_every_case_meets_every_part() -> None:
    assert list(CASES) == [f"C{i:02d}" for i in range(1, 39)]
    for case, (title, cells) in CASES.items():
        assert tuple(cells) == PARTS, case
        assert title and any(not isinstance(told, str) for told in cells.values()), case
        for part, told in cells.items():
            assert told, (case, part)
            if isinstance(told, str):  # one whole sentence, or two
                assert re.fullmatch(r"[A-Z][^\n]{10,220}\.", told) and "::" not in told, (case, part)


def test_every_test_that_is_named_is_there_and_named_once_a_part() -> None:
    for case, part, test in named():
        file, _, name = test.partition("::")
        assert name in functions(file), f"{case}, {part}: no {test}"
    assert max(Counter(named()).values()) == 1


def test_every_hostile_test_of_a_case_is_listed_with_it() -> None:
    """A test that says which case it is about is found from the case."""
    listed = {(case, test) for case, _, test in named()}
    lost = []
    for path in sorted([*TESTS.glob("hostile/test_*.py"), *TESTS.glob("engines/test_*.py")]):
        file = path.relative_to(TESTS).as_posix()
        for name in functions(file):
            told = re.match(r"test_(c\d\d)_", name)
            if told and (told[1].upper(), f"{file}::{name}") not in listed:
                lost.append(f"{told[1].upper()}: {file}::{name}")
    assert not lost


def test_no_named_test_is_skipped_or_expected_to_fail() -> None:
    """What stands for a case runs, unless a part of the system is not there to be attacked."""
    for _, _, test in named():
        file, _, name = test.partition("::")
        assert not [m for m in functions(file)[name] if "xfail" in m or "mark.skip(" in m], test
