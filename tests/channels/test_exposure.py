"""Feasible sets: which cells lose every neighbour, and which edges give them one again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.channels.bounds import edges_of
from tetraodon.channels.constrained import least_distortion
from tetraodon.channels.exposed import exposure
from tetraodon.errors import PolicyError, SpecificationError
from tetraodon.graphs import Graph


def line(n: int) -> td.Domain:
    return td.Domain(x=td.Integer(0, n - 1))


def test_neighbours_that_are_impossible_protect_nobody() -> None:
    found = exposure(line(10), td.Within(1), [0, 1, 4, 6, 9])
    assert found.exposed.tolist() == [4, 6, 9] and found.inner.tolist() == []
    assert found.groups == 4


def test_truth_values_name_cells_too() -> None:
    mask = np.zeros(10, dtype=bool)
    mask[[0, 1, 4]] = True
    assert exposure(line(10), td.Within(1), mask).exposed.tolist() == [4]


def test_cells_that_never_had_a_neighbour() -> None:
    policy = td.Edges([(0, 1)])
    found = exposure(line(4), policy, [0, 1, 3])
    assert found.exposed.tolist() == [3] == found.inner.tolist()


def test_whole_graph_exposes_nobody() -> None:
    assert not len(exposure(line(5), td.Full(), range(5)).exposed)


def test_repair_takes_the_nearest_and_the_cheapest_first() -> None:
    found = exposure(line(10), td.Within(1), [0, 1, 4, 6, 9]).repaired()
    assert found.added.tolist() == [[4, 6], [6, 9]]  # 4–6 serves both of them
    assert found.lengths == (2.0, 3.0)
    assert not len(found.exposed)
    assert found.groups == 2


def test_repair_by_another_metric() -> None:
    plane = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 3))
    feasible = [0, 10, 3]  # (0, 0), (2, 2) and (0, 3)
    straight = exposure(plane, td.Nothing(), feasible).repaired()
    weighted = exposure(plane, td.Nothing(), feasible).repaired(td.L1(x=1, y=10))
    assert straight.added.tolist() == [[3, 10], [0, 10]]
    assert weighted.added.tolist() == [[3, 10], [0, 10]]
    assert weighted.lengths == (12.0, 22.0)


def test_a_single_feasible_cell_cannot_be_hidden() -> None:
    found = exposure(line(5), td.Within(1), [2])
    assert found.exposed.tolist() == [2]
    assert "nothing is left to hide" in str(found)
    with pytest.raises(PolicyError, match="one cell alone"):
        found.repaired()


def test_a_repaired_graph_makes_a_channel_that_hides() -> None:
    domain = line(7)
    before = exposure(domain, td.Within(1), [0, 1, 5])
    after = before.repaired()
    leaky = least_distortion(secrets=before.graph, epsilon="0.5", domain=domain)
    sound = least_distortion(secrets=after.graph, epsilon="0.5", domain=domain)
    a, b = np.array([1]), np.array([5])
    assert leaky.law.losses(a, b)[0] > 0.5
    assert sound.law.losses(a, b)[0] <= 0.5
    assert sound.epsilon(td.Within(1)) <= 0.5


def test_words() -> None:
    before = exposure(line(10), td.Within(1), [0, 1, 4, 5, 9])
    assert str(before) == (
        "To someone who knows that the value is one of 5 cells, 1 of them has no neighbour left and may be disclosed exactly."
        " The others fall into 2 groups; which group holds the value may be disclosed."
    )
    after = str(before.repaired())
    assert "every one of them still has a neighbour" in after
    assert "1 edge was added, the longest of 4." in after


@pytest.mark.parametrize("feasible", [[], [7], [-1], [0.5], "home", [True, False]])
def test_refused_sets(feasible: Any) -> None:
    with pytest.raises(SpecificationError, match="feasible"):
        exposure(line(5), td.Within(1), feasible)


def test_graph_of_another_domain() -> None:
    graph = exposure(line(5), td.Within(1), [0, 1]).graph
    with pytest.raises(SpecificationError, match="another domain"):
        exposure(line(6), graph, [0])


@examples(100)
@given(st.integers(2, 9), st.data())
def test_against_the_definition(n: int, data: Any) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
    told = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
    feasible = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=2)))
    graph = Graph(line(n), "flat", (Axis(n, pairs=np.array(told, dtype=np.int64).reshape(-1, 2)),))
    found = exposure(line(n), graph, feasible)
    bare = [c for c in feasible if not any({c, d} == set(p) for d in feasible for p in told)]
    assert found.exposed.tolist() == bare
    after = found.repaired()
    assert not len(after.exposed)
    edges = set(zip(*(e.tolist() for e in edges_of(after.graph)), strict=True))
    assert set(told) <= edges and {tuple(p) for p in after.added.tolist()} == edges - set(told)
    for a, b in after.added.tolist():
        assert {a, b} & set(bare) and {a, b} <= set(feasible)
    assert len(after.added) <= len(bare)
    nearest = {c: min(abs(c - d) for d in feasible if d != c) for c in bare}
    for (a, b), length in zip(after.added.tolist(), after.lengths, strict=True):
        assert length == abs(a - b) and any(nearest.get(c) == length for c in (a, b))
