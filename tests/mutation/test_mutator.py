"""The changes are those that the text says, each in its place, and the same ones every time."""

from __future__ import annotations

import ast

from mutator import mutants, sampled

SOURCE = '''
"""A text with 1 < 2."""

@decorated(1)
def f(x: int = 3, é: str = "é") -> "list[1]":
    """1 + 1"""
    if x < 2 and not é:
        raise ValueError(f"{x + 1} is 4")
    x += 1
    g(x)
    return max(x // 2, True, *zip(x, x, strict=False))
'''


def test_every_change_is_one_and_in_its_place() -> None:
    told = [(m.inside, m.kind, m.old, m.new) for m in mutants("f.py", SOURCE)]
    assert told == [
        ("f", "number", "3", "4"),
        ("f", "number", "3", "2"),
        ("f", "and, or", "x < 2 and not é", "(x < 2 or not é)"),
        ("f", "comparison", "x < 2", "(x <= 2)"),
        ("f", "number", "2", "3"),
        ("f", "number", "2", "1"),
        ("f", "not", "not é", "(é)"),
        ("f", "statement", 'raise ValueError(f"{x + 1} is 4")', "pass"),
        ("f", "statement", "x += 1", "pass"),
        ("f", "number", "1", "2"),
        ("f", "number", "1", "0"),
        ("f", "statement", "g(x)", "pass"),
        ("f", "returned value", "return max(x // 2, True, *zip(x, x, strict=False))", "return None"),
        (
            "f",
            "min, max",
            "max(x // 2, True, *zip(x, x, strict=False))",
            "(min(x // 2, True, *zip(x, x, strict=False)))",
        ),
        ("f", "arithmetic", "x // 2", "(x * 2)"),
        ("f", "number", "2", "3"),
        ("f", "number", "2", "1"),
        ("f", "truth value", "True", "False"),
    ]


def test_changed_files_are_programs_and_differ() -> None:
    found = mutants("f.py", SOURCE)
    changed = [m.applied(SOURCE) for m in found]
    assert (
        len({ast.dump(ast.parse(text)) for text in changed} | {ast.dump(ast.parse(SOURCE))}) == len(found) + 1
    )
    assert all(m.old in SOURCE for m in found)


def test_keys_name_a_change_wherever_it_stands() -> None:
    before, after = mutants("f.py", SOURCE), mutants("f.py", f"import os\n\n{SOURCE}")
    assert [m.key for m in before] == [m.key for m in after] and len({m.key for m in before}) == len(before)
    assert {m.key for m in sampled(before, 5)} < {m.key for m in sampled(before, 9)}
