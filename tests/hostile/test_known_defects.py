"""Defects of use that are known and not mended, each with the behaviour that is wished for. None of them is one of privacy.

Every test is expected to fail: one that passes was mended, and moves to where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tetraodon as td
from tetraodon.errors import SpecificationError

known = pytest.mark.xfail(strict=True, raises=AssertionError)


@known
def test_a_line_break_in_a_name_begins_no_line_on_the_terminal(
    settings: Callable[..., Path], run: Callable[..., Any]
) -> None:
    """A category of somebody else's file of codes can look like a line of ours. Wished: ␤, or a blank, as in the report."""
    faked = "x\\nTogether epsilon 0; 1 of 1 is left: it fits."
    path = settings(
        ('["f", "m"]', f'["f", "m", "{faked}"]'), ('histogram = ["age"]', f'histogram = ["age"], where = {{ sex = ["{faked}"] }}')
    )  # fmt: skip
    code, out, _ = run("plan", path)
    assert code == 0
    assert sum(line.startswith("Together ") for line in out.splitlines()) == 1


@known
def test_a_code_that_is_listed_twice_is_named_by_its_place() -> None:
    """Among ten thousand codes of a file nobody finds it. Wished: its line."""
    with pytest.raises(SpecificationError) as caught:
        td.Categorical([*map(str, range(5000)), "17", *map(str, range(5000, 9000))])
    assert "5001" in str(caught.value) or "5000" in str(caught.value)


@known
def test_a_count_that_is_no_number_is_named_by_its_line(tmp_path: Path) -> None:
    """In a file of public counts. Wished: the line, which is public like the file."""
    from tetraodon.constraints import answers_file

    path = tmp_path / "counts.csv"
    path.write_text("region,count\n" + "".join(f"r{i},{i}\n" for i in range(50)) + "r50,about 7\n")
    with pytest.raises(SpecificationError) as caught:
        td.MarginalConstraint("region", answers=answers_file(path, ["region"], "answers"))
    assert "52" in str(caught.value)
