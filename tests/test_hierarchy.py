"""Levels above the values of a categorical attribute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tetraodon as td
from tetraodon.errors import SpecificationError
from tetraodon.policy import digest

JOBS = {"nurse": "health", "doctor": "health", "baker": "trade", "health": "services", "trade": "services"}
VALUES = ["nurse", "doctor", "baker"]


def test_a_mapping_and_a_file_of_it_are_the_same_attribute(tmp_path: Path) -> None:
    lines = ["note,parent,code", *(f"x,{parent},{code}" for code, parent in JOBS.items()), "x,,services"]
    (tmp_path / "jobs.csv").write_text("\n".join(lines), encoding="utf-8")
    stated = td.Categorical(VALUES, hierarchy=JOBS)
    assert stated == td.Categorical(VALUES, hierarchy=tmp_path / "jobs.csv")
    spec = {"job": {"categorical": VALUES, "hierarchy": "jobs.csv"}}
    read = td.Domain.from_spec(spec, tmp_path)
    assert read["job"] == stated and td.Domain.from_spec(read.to_spec()) == read
    assert dict(stated.parents) == JOBS


def test_a_hierarchy_is_part_of_the_declaration_and_leaves_other_hashes_as_they_were() -> None:
    plain, tree = td.Domain(job=td.Categorical(VALUES)), td.Domain(job=td.Categorical(VALUES, hierarchy=JOBS))
    assert plain.to_spec() == {"job": {"categorical": VALUES}}
    assert plain != tree and td.Policy(plain, td.Full()).hash != td.Policy(tree, td.Full()).hash
    assert td.Policy(plain, td.Full()).domain_hash == digest([{"job": {"categorical": VALUES}}, ["job"]])
    turned = td.Categorical(VALUES, hierarchy=dict(reversed(JOBS.items())))
    assert td.Policy(td.Domain(job=turned), td.Full()).hash == td.Policy(tree, td.Full()).hash
    assert tree["job"].cells(["baker", "health"]).tolist() == [2, -1]  # a level is no value


def test_integer_codes_have_levels_and_other_codes_are_left_out() -> None:
    made = td.Categorical([1, 2], hierarchy={1: "low", 2: "low", 3: "high", "high": "any"})
    assert made.parents == (("1", "low"), ("2", "low"))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"nurse": "health", "doctor": "health"}, "the value 'baker' has no parent"),
        (JOBS | {"services": "health"}, "go round in a circle"),
        (JOBS | {"doctor": "nurse"}, "the value 'nurse' stands above another code"),
        (JOBS | {"nurse": 3.5}, "texts, or integer codes, not a number"),
        (JOBS | {"nurse": ""}, "texts, or integer codes"),
        (["nurse"], "a table of codes and parents, or the path of a CSV file, not a list"),
        ("none.csv", r"none\.csv: cannot be read \(FileNotFoundError\)"),
    ],
)
def test_what_is_no_hierarchy_is_refused_by_name(told: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=f"^hierarchy: .*{says}"):
        td.Categorical(VALUES, hierarchy=told)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("code,above\na,b\n", "names each of the columns 'code', 'parent' once"),
        ("", "names each of the columns 'code', 'parent' once"),
        ("code,parent\nnurse\n", r"jobs\.csv, line 2: too few fields"),
        ("code,parent\nnurse,a\nnurse,b\n", "a code has two parents"),
    ],
)
def test_a_file_that_is_no_hierarchy_is_refused_without_its_lines(
    text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "jobs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SpecificationError, match=f"hierarchy: .*{says}"):
        td.Categorical(VALUES, hierarchy=tmp_path / "jobs.csv")
    with pytest.raises(SpecificationError, match=r"^domain\.job\.hierarchy: "):
        td.Domain.from_spec({"job": {"categorical": VALUES, "hierarchy": "jobs.csv"}}, tmp_path)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_every_value_has_a_way_to_a_root_or_is_refused(parents: list[int]) -> None:
    """Random maps of codes onto levels, circles among them, against a walk of as many steps as there are codes."""
    told = {f"v{i}": f"n{p}" for i, p in enumerate(parents[:5])} | {
        f"n{i}": f"n{p}" for i, p in enumerate(parents[5:15])
    }
    values = [f"v{i}" for i in range(min(5, len(parents)))]
    ends = []
    for value in values:
        code = value
        for _ in range(len(told) + 1):
            code = told.get(code, code)
        ends.append(code)
    if any(end in told for end in ends):
        with pytest.raises(SpecificationError, match="circle"):
            td.Categorical(values, hierarchy=told)
        return
    kept = dict(td.Categorical(values, hierarchy=told).parents)
    for value, end in zip(values, ends, strict=True):
        code = value
        while code in kept:
            assert kept[code] == told[code]
            code = kept[code]
        assert code == end
