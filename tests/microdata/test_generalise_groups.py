"""What groups must have, the words for what cannot be had, and constraint-aware K-means."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetraodon.errors import Refused, SpecificationError
from tetraodon.microdata.families import intervals
from tetraodon.microdata.kmeans import constrained_kmeans, grouped_values
from tetraodon.microdata.rectangles import rectangles
from tetraodon.microdata.requirements import Requirements, explain_infeasible


def plainly(need: Requirements, counts: list[int]) -> bool:
    """The definition, group by group."""
    held = [c for c in counts if c]
    rows = sum(held)
    if rows < need.k or (need.alpha is not None and rows > need.alpha):
        return False
    if need.beta is not None and len(held) > need.beta:
        return False
    if need.variety == "count":
        return len(held) >= need.l
    return rows > 0 and math.exp(-math.fsum(c / rows * math.log(c / rows) for c in held)) >= need.l - 1e-7


@st.composite
def requirements(draw: st.DrawFn) -> Requirements:
    k, l, entropy = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.booleans())  # noqa: E741
    alpha = draw(st.none() | st.integers(k, 40))
    beta = draw(st.none() | st.integers(l, 6))
    if entropy:
        return Requirements(
            k, draw(st.sampled_from([1, 1.3, 2, 2.7, l])) if l >= 3 else 1, alpha, beta, "entropy"
        )
    return Requirements(k, l, alpha, beta)


@given(requirements(), st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_requirements_are_their_definitions(need: Requirements, rows: list[int]) -> None:
    counts = np.array(rows)
    assert need.holds(counts) == plainly(need, rows)
    for family in (intervals(6), rectangles((2, 3))):
        expected = [
            plainly(need, [c if i in held else 0 for i, c in enumerate(rows)]) for held in family.members
        ]
        assert need.allowed(counts, family.members).tolist() == expected
        assert need.allowed(counts, list(family.members)).tolist() == expected


def test_equal_shares_reach_their_entropy_variety_exactly() -> None:
    for l, each in itertools.product(range(1, 60), (1, 3, 7)):  # noqa: E741
        need = Requirements(l=l, variety="entropy")
        assert need.holds(np.full(l, each)) and need.allowed(np.full(l, each), intervals(l).members)[l - 1]
        assert l == 1 or not need.holds(np.full(l - 1, each))


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"k": 0}, "k:"), ({"k": 2.5}, "k:"), ({"k": True}, "k:"), ({"k": "3"}, "k:"), ({"k": None}, "k:"),
        ({"l": 0}, "l:"), ({"l": 1.5}, "l:"), ({"l": 0.5, "variety": "entropy"}, "l:"),
        ({"l": math.nan, "variety": "entropy"}, "l:"), ({"l": True, "variety": "entropy"}, "l:"),
        ({"k": 5, "alpha": 4}, "alpha:"), ({"alpha": 0}, "alpha:"), ({"alpha": 7.5}, "alpha:"),
        ({"l": 3, "beta": 2}, "beta:"), ({"l": 2.5, "beta": 2, "variety": "entropy"}, "beta:"), ({"beta": -1}, "beta:"),
        ({"variety": "recursive"}, "variety"),
    ],
)  # fmt: skip
def test_bad_requirements_name_the_key(asked: dict[str, Any], name: str) -> None:
    with pytest.raises(SpecificationError, match=name):
        Requirements(**asked)


def test_whole_floats_are_whole_numbers() -> None:
    need = Requirements(k=np.int64(3), l=2.0, alpha=10.0)  # type: ignore[arg-type]
    assert (
        (need.k, need.l, need.alpha) == (3, 2, 10) and isinstance(need.l, int) and isinstance(need.alpha, int)
    )


def test_check_names_the_requirement_and_no_count() -> None:
    counts = np.array([11, 13, 17, 19])
    Requirements(k=24, l=2, alpha=36, beta=2).check(counts, np.array([0, 0, 5, 5]))
    for need, names in [
        (Requirements(k=25), ["(k)"]),
        (Requirements(alpha=35), ["(alpha)"]),
        (Requirements(l=3), ["(l)"]),
        (Requirements(beta=1), ["(beta)"]),
        (Requirements(k=25, l=2, beta=2, alpha=35), ["(k)", "(alpha)"]),
        (Requirements(l=2.5, variety="entropy"), ["(l)"]),
    ]:
        with pytest.raises(Refused) as caught:
            need.check(counts, np.array([0, 0, 1, 1]))
        said = str(caught.value)
        assert re.findall(r"\((?:k|alpha|l|beta)\)", said) == names
        stated = {str(v) for v in (need.k, need.alpha, need.beta, need.l)}
        assert set(re.findall(r"[\d.]*\d", said)) <= stated


def test_what_cannot_be_is_explained_from_stated_numbers() -> None:
    wide = Requirements(k=50, alpha=60, l=3, beta=10)
    assert "3 × 50 > 100" in explain_infeasible(wide, rows=100, groups=3)
    assert "1 × 60 < 100" in explain_infeasible(wide, rows=100, groups=1)
    assert "no whole number of groups" in explain_infeasible(wide, rows=140)
    assert "50 > 40" in explain_infeasible(wide, rows=40)
    assert "4 × 3 > 11" in explain_infeasible(wide, groups=4, values=11)
    assert "3 > 2" in explain_infeasible(wide, values=2)
    free = explain_infeasible(wide, rows=100, groups=2, values=30, distortion=True)
    assert set(re.findall(r"\d+", free)) <= {"50", "60", "3", "10", "2"}
    for word in ("lower k", "raise alpha", "lower l", "raise beta", "groups", "distortion"):
        assert word in free
    assert "order or hierarchy" in explain_infeasible(Requirements())


def test_the_number_of_rows_is_said_only_where_it_is_public() -> None:
    # Without rows the text is a function of the stated numbers alone: it cannot depend on the table.
    need = Requirements(k=50, alpha=60)
    assert "no whole number of groups" in explain_infeasible(need, rows=140)
    assert "no whole number of groups" not in explain_infeasible(need)


# K-means


def test_obvious_groups_are_found_whatever_the_start() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        values = np.repeat([10.0, 11, 12, 50, 51, 52, 90, 91, 92], 7)
        codes = np.repeat(np.arange(9), 7)
        shuffled = rng.permutation(63)
        need = Requirements(k=14, l=2, alpha=30, beta=4)
        found = constrained_kmeans(values[shuffled], 3, need, np.random.default_rng(seed), codes[shuffled])
        assert found.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_places_on_a_map() -> None:
    corners = np.array([[0, 0], [0, 9], [9, 0], [9, 9]])
    places = (corners[:, None, :] + np.array([[0, 0], [0, 1], [1, 0]])[None]).reshape(-1, 2).astype(float)
    counts = np.full(12, 5)
    for seed in range(10):
        found = grouped_values(places, counts, 4, Requirements(k=15, l=3), np.random.default_rng(seed))
        assert found.tolist() == np.repeat(np.arange(4), 3).tolist()


def test_what_kmeans_returns_meets_the_requirements() -> None:
    rng = np.random.default_rng(1)
    returned = refused = 0
    for trial in range(150):
        n, dims = int(rng.integers(3, 20)), int(rng.integers(1, 3))
        places, counts = rng.normal(size=(n, dims)), rng.integers(0, 12, n)
        k, l = int(rng.integers(1, 12)), int(rng.integers(1, 4))  # noqa: E741
        entropy = trial % 3 == 0
        need = Requirements(
            k, l, k + int(rng.integers(10, 60)) if rng.random() < 0.5 else None,
            l + int(rng.integers(1, 8)) if rng.random() < 0.5 else None, "entropy" if entropy else "count",
        )  # fmt: skip
        groups = int(rng.integers(1, 5))
        try:
            found = grouped_values(places, counts, groups, need, rng, tries=5)
        except Refused as error:
            refused += 1
            assert not set(re.findall(r"\d+", str(error))) - {"5"}  # the number of tries, and no count
            continue
        returned += 1
        need.check(counts, found)
        assert found.shape == (n,) and set(found) == set(range(groups))
        assert found[0] == 0 and (np.diff(np.unique(found, return_index=True)[1]) > 0).all()
    assert returned > 50 and refused > 20


def test_no_value_would_move_again() -> None:
    # The grouping is stable under the algorithm's own rule: every value is at the nearest centre that may take it.
    rng = np.random.default_rng(2)
    for _ in range(20):
        places, counts = rng.normal(size=(15, 2)), rng.integers(1, 9, 15)
        need = Requirements(k=10, l=2, alpha=60, beta=8)
        group = grouped_values(places, counts, 3, need, rng)
        centres = np.stack(
            [np.average(places[group == g], axis=0, weights=counts[group == g]) for g in range(3)]
        )
        for value in range(15):
            own = group[value]
            if not need.holds(np.where((group == own) & (np.arange(15) != value), counts, 0)):
                continue
            away = np.linalg.norm(centres - places[value], axis=1)
            for other in set(range(3)) - {int(own)}:
                joined = np.where((group == other) | (np.arange(15) == value), counts, 0)
                assert away[own] <= away[other] + 1e-9 or not need.holds(joined)


def test_equal_values_stay_together_and_same_generator_same_groups() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 8, 200)
    need = Requirements(k=30, l=2)
    first = constrained_kmeans(codes * 1.0, 3, need, np.random.default_rng(5), codes)
    assert first.shape == (8,)  # one group for each value: a function of it
    assert np.array_equal(first, constrained_kmeans(codes * 1.0, 3, need, np.random.default_rng(5), codes))


def test_values_without_rows_join_the_nearest_group() -> None:
    counts = np.array([5, 0, 5, 5, 0, 5])
    found = grouped_values(
        np.array([0.0, 1, 2, 20, 21, 22]), counts, 2, Requirements(k=10), np.random.default_rng(0)
    )
    assert found.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("need", "groups", "said"),
    [
        (Requirements(k=11), 2, "rows / k"),
        (Requirements(alpha=9), 2, "rows / alpha"),
        (Requirements(l=3), 2, "values / l"),
        (Requirements(beta=1), 3, "values / beta"),
        (Requirements(), 5, "values / l"),
        (Requirements(k=6, alpha=9), 3, "20 random starts"),
    ],
)
def test_impossible_numbers_of_groups_are_refused_without_a_count(
    need: Requirements, groups: int, said: str
) -> None:
    with pytest.raises(Refused, match=said) as caught:
        grouped_values(np.arange(4.0), np.full(4, 5), groups, need, np.random.default_rng(0))
    assert not re.findall(r"\d+", str(caught.value).replace("20 random", ""))


def test_bad_places_and_codes_are_refused() -> None:
    need, rng = Requirements(), np.random.default_rng(0)
    for bad in (
        lambda: constrained_kmeans(np.arange(3.0), 2, need, rng, np.array([0, 2, 2])),
        lambda: constrained_kmeans(np.arange(3.0), 2, need, rng, np.array([0, 1])),
        lambda: constrained_kmeans(np.arange(3.0), 2, need, rng, np.array([-1, 0, 1])),
        lambda: constrained_kmeans(np.array([]), 2, need, rng, np.array([], dtype=np.int64)),
        lambda: grouped_values(np.array([0.0, math.nan]), np.array([1, 1]), 2, need, rng),
        lambda: grouped_values(np.arange(2.0), np.array([1, 1, 1]), 2, need, rng),
        lambda: grouped_values(np.arange(2.0), np.array([1, 1]), 2, need, rng, rounds=0),
        lambda: grouped_values(np.arange(2.0), np.array([1, 1]), None, need, rng),
    ):
        with pytest.raises(SpecificationError):
            bad()


def starts_that_end(places: list[float], counts: list[int], groups: int, need: Requirements) -> int:
    """Of 60 single starts, how many end with a grouping."""
    ended = 0
    for seed in range(60):
        try:
            grouped_values(
                np.array(places), np.array(counts), groups, need, np.random.default_rng(seed), tries=1
            )
            ended += 1
        except Refused:
            pass
    return ended


def test_full_groups_are_passed_over_in_the_first_round() -> None:
    # Equal weights that fill all groups to the brim: refusing full ones makes every start end well.
    line = [float(i) for i in range(12)]
    assert starts_that_end(line, [5] * 12, 3, Requirements(k=5, alpha=20)) == 60
    assert starts_that_end(line, [5] * 12, 3, Requirements(k=5, beta=4)) == 60
    # α is heeded while a group lacks variety too: of two heavy values one group must not get both.
    heavy = starts_that_end([0.0, 1, 2, 10, 11, 12], [10, 10, 1, 10, 1, 1], 3, Requirements(l=2, alpha=12))
    assert heavy > 30  # 24 without
