"""Sensitivities against enumeration: over all edges, over all neighbouring databases, and the papers' golden numbers."""

from __future__ import annotations

import ast
import itertools
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import brute
from oracle.brute import Asked
from strategies import asked_policies, examples, interval_axes, listed_axes

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.sensitivity import largest_move, rows
from tetraodon.sensitivity.claims import CLAIMS
from tetraodon.workload import resolve

F = Fraction


def number_of(domain: Any, name: str, label: str) -> int:
    """The cell with a published name; the names of an attribute's cells are all different."""
    hits = [c for c in range(len(brute.cells(domain[name]))) if domain[name].label(c) == label]
    assert len(hits) == 1
    return hits[0]


def assert_witness(policy: Any, asked: Asked, found: Any, columns: Any, adjacent: Any) -> None:
    """The witness is an edge of the graph of the question's attributes and attains the value."""
    if not found.value:
        assert found.witness is None
        return
    domain = policy.domain
    one, two = found.witness
    query = asked.query()
    names = [n for n in domain if n in query.used]
    assert list(one) == list(two) == names
    ends = [tuple(number_of(domain, n, w[n]) for n in names) for w in (one, two)]
    every = brute.tuples(domain)
    at = [list(domain).index(n) for n in names]
    behind = [
        (a, b)
        for a, b in itertools.product(range(len(every)), repeat=2)
        if adjacent[a][b]
        and tuple(every[a][i] for i in at) == ends[0]
        and tuple(every[b][i] for i in at) == ends[1]
    ]
    assert behind, "no edge of the policy looks like the witness"
    assert all(brute.gap(columns[a], columns[b]) == found.value for a, b in behind)


# ---------- against enumeration ----------


@examples(700)
@given(asked_policies())
def test_sensitivity_equals_the_largest_move_over_the_dense_edges(drawn: Any) -> None:
    policy, asked = drawn
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    columns = brute.rows(asked, policy.domain)
    found = policy.sensitivity(asked.query())
    assert found.value == brute.edge_sensitivity(columns, adjacent)
    assert_witness(policy, asked, found, columns, adjacent)


@examples(40)
@given(asked_policies(most=6))
def test_sensitivity_equals_the_largest_change_over_neighbouring_databases(drawn: Any) -> None:
    policy, asked = drawn
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    expected = policy.sensitivity(asked.query()).value
    for n in (1, 2):
        assert brute.database_sensitivity(asked, policy.domain, adjacent, n) == expected


@pytest.mark.parametrize("reading", ["both", "edges", "literal"])
def test_readings_agree_without_constraints(reading: str) -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, 4)), td.Within(2))
    assert policy.sensitivity(td.CDF("x"), reading=reading).value == 2


# ---------- the rows of strategies ----------


def dense_layer(layer: Any) -> list[list[int]]:
    """The rows that a layer states, weighted, over its positions."""
    size = layer.size
    if isinstance(layer, rows.Prefixes):
        bounds = range(1, size + 1) if layer.bounds is None else layer.bounds.tolist()
        told = [[int(p < b) for p in range(size)] for b in bounds]
    elif isinstance(layer, rows.Blocks):
        starts = range(size) if layer.starts is None else layer.starts.tolist()
        ends = range(1, size + 1) if layer.ends is None else layer.ends.tolist()
        told = [[int(a <= p < b) for p in range(size)] for a, b in zip(starts, ends, strict=True)]
    elif isinstance(layer, rows.Matrix):
        told = layer.matrix.tolist()
    elif layer.lows is None:
        told = [[int(a <= p <= b) for p in range(size)] for a in range(size) for b in range(a, size)]
    else:
        pairs = zip(layer.lows.tolist(), layer.highs.tolist(), strict=True)
        told = [[int(a <= p < b) for p in range(size)] for a, b in pairs]
    return [[layer.weight * v for v in row] for row in told]


@st.composite
def layers_of(draw: Any, size: int) -> tuple[Any, ...]:
    """Layers over ``size`` positions: single ones of every kind, trees, and anything together."""
    weight = st.integers(1, 5)

    def blocks(cuts: list[int], lonely: bool) -> Any:
        runs = list(itertools.pairwise([0, *cuts, size]))
        if lonely:
            runs = [r for r in runs if draw(st.booleans())]
        starts, ends = (np.array([r[k] for r in runs], dtype=np.int64) for k in (0, 1))
        return rows.Blocks(size, starts, ends, draw(weight))

    inner = list(range(1, size))

    def some(pool: list[int]) -> list[int]:
        return sorted(draw(st.sets(st.sampled_from(pool)))) if pool else []

    def one(kind: str) -> Any:
        if kind == "prefixes":
            bounds = some([*inner, size]) or [size]
            return rows.Prefixes(size, draw(st.sampled_from((None, np.array(bounds)))), draw(weight))
        if kind == "cells":
            return rows.Blocks(size, weight=draw(weight))
        if kind == "runs":
            return blocks(some(inner), draw(st.booleans()))
        if kind == "matrix":
            matrix = [[draw(st.integers(-2, 2)) for _ in range(size)] for _ in range(draw(st.integers(1, 3)))]
            return rows.Matrix(np.array(matrix, dtype=np.int64), draw(weight))
        if kind == "ranges":
            return rows.Ranges(size, weight=draw(weight))
        pairs = draw(
            st.lists(st.tuples(st.integers(0, size - 1), st.integers(1, size)), min_size=1, max_size=4)
        )
        lows, highs = (np.array([f(p) for p in pairs], dtype=np.int64) for f in (min, max))
        return rows.Ranges(size, lows, highs, draw(weight))

    if draw(st.booleans()):  # a tree: cuts of every level are kept by the finer ones; prefix sums on top
        listed: list[Any] = []
        cuts: list[int] = []
        for _ in range(draw(st.integers(1, 3))):
            cuts = sorted({*cuts, *some(inner)})
            listed.append(blocks(cuts, draw(st.booleans())))
        if draw(st.booleans()):
            listed.append(one("prefixes"))
        return tuple(draw(st.permutations(listed)))
    kinds = st.sampled_from(("prefixes", "cells", "runs", "matrix", "ranges", "list"))
    return tuple(one(draw(kinds)) for _ in range(draw(st.integers(1, 3))))


@st.composite
def moving_rows(draw: Any) -> tuple[Axis, tuple[Any, ...]]:
    """An axis and layers over its positions; the last cell may stand for "nowhere"."""
    axis = draw(st.one_of(interval_axes(), listed_axes()))
    nowhere = bool(axis.stars) and not isinstance(axis.stars[-1], bool)
    size = axis.size - nowhere
    assume(size > 0)
    return axis, draw(layers_of(size))


@examples(500)
@given(moving_rows())
def test_rows_move_as_far_as_enumeration_says(drawn: Any) -> None:
    axis, layers = drawn
    size = layers[0].size
    matrix = [[*row, 0] for layer in layers for row in dense_layer(layer)]
    columns = list(zip(*matrix, strict=True)) if matrix else [()] * (size + 1)

    def move(a: int, b: int) -> int:
        return sum(abs(x - y) for x, y in zip(columns[a], columns[b], strict=True))

    every = np.arange(size + 1, dtype=np.int64)
    told = rows.difference(layers, every[:, None], every[None, :])
    assert told.tolist() == [[move(a, b) for b in range(size + 1)] for a in range(size + 1)]
    adjacent = brute.dense_axis(axis)
    value, (a, b) = rows.largest_difference(layers, axis)
    assert value == max((move(x, y) for x, y in brute.edges(adjacent)), default=0)
    assert not value or (adjacent[a][b] and move(a, b) == value)
    norm, at = rows.largest_norm(layers)
    assert norm == max(move(p, size) for p in range(size)) == move(at, size)


def every_interval(size: int) -> list[Axis]:
    """All interval graphs on a few ordered cells."""
    told = itertools.product(*(range(y + 1) for y in range(size)))
    return [Axis(size, starts=np.array(t, dtype=np.int64)) for t in told if list(t) == sorted(t)]


def largest(layers: Any, axis: Axis) -> int:
    """The largest move over the dense edges."""
    matrix = [row for layer in layers for row in dense_layer(layer)]
    pairs = brute.edges(brute.dense_axis(axis))
    return max((sum(abs(row[a] - row[b]) for row in matrix) for a, b in pairs), default=0)


def test_one_row_on_every_small_interval_graph() -> None:
    for axis in [axis for size in range(1, 5) for axis in every_interval(size)]:
        for row in itertools.product((-2, 0, 1), repeat=axis.base):
            layers = (rows.Matrix(np.array([row], dtype=np.int64), 3),)
            value, (a, b) = rows.largest_difference(layers, axis)
            assert value == largest(layers, axis) == 3 * abs(row[a] - row[b])


@st.composite
def trees(draw: Any) -> tuple[Axis, tuple[Any, ...]]:
    """Nested runs without gaps, prefix sums at some of their ends or none, on an interval graph."""
    axis = draw(interval_axes())
    assume(axis.base > 1)
    axis = Axis(axis.base, axis.window, axis.starts)
    cuts: set[int] = set()
    layers: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        cuts |= draw(st.sets(st.integers(1, axis.base - 1)))
        bounds = np.array([0, *sorted(cuts), axis.base], dtype=np.int64)
        layers.append(rows.Blocks(axis.base, bounds[:-1], bounds[1:], draw(st.integers(1, 9))))
    if draw(st.booleans()):
        ends = sorted(draw(st.sets(st.integers(1, axis.base), min_size=1)))
        layers.append(rows.Prefixes(axis.base, np.array(ends, dtype=np.int64), draw(st.integers(1, 9))))
    return axis, tuple(draw(st.permutations(layers)))


@examples(300)
@given(trees())
def test_trees_are_priced_without_going_through_the_edges(drawn: Any) -> None:
    axis, layers = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_enumerate", lambda *_: pytest.fail("went through the edges"))
        value, (a, b) = rows.largest_difference(layers, axis)
    assert value == largest(layers, axis)
    assert value == int(rows.difference(layers, np.array([a]), np.array([b]))[0])
    assert not value or brute.dense_axis(axis)[a][b]


@examples(150)
@given(asked_policies(), st.data())
def test_strategies_repeated_in_every_group_move_as_far_as_enumeration_says(drawn: Any, data: Any) -> None:
    policy, asked = drawn
    domain = policy.domain
    resolved = resolve(asked.query(), domain)
    layers = data.draw(layers_of(resolved.n_positions))
    matrix = [row for layer in layers for row in dense_layer(layer)]
    # The same rows as a Linear question in every group: contributions at the place where a record counts.
    names = list(domain)
    seen = {n: brute.positions(domain[n], asked.bins.get(n), asked.where.get(n)) for n in names}
    axis = None if resolved.axis is None else resolved.axis.name
    split = [n for n in asked.by + (asked.attributes if asked.word == "Histogram" else ()) if n != axis]

    def column(record: Any) -> dict[Any, int]:
        if any(seen[n][i] is None for n, i in zip(names, record, strict=True)):
            return {}
        place = {n: seen[n][i] for n, i in zip(names, record, strict=True)}
        group = tuple(place[n] for n in split)
        at = place[axis] if axis is not None else 0
        return {(group, r): row[at] for r, row in enumerate(matrix)}

    columns = [column(record) for record in brute.tuples(domain)]

    def move(a: int, b: int) -> int:
        return sum(
            abs(columns[a].get(k, 0) - columns[b].get(k, 0)) for k in columns[a].keys() | columns[b].keys()
        )

    pairs = brute.edges(brute.adjacency(domain, policy.secrets))
    found = largest_move(resolved, policy.neighbourhood, layers)
    assert found.value == max((move(a, b) for a, b in pairs), default=0)


@examples(150)
@given(asked_policies())
def test_places_of_cells_are_those_of_the_question(drawn: Any) -> None:
    policy, asked = drawn
    domain = policy.domain
    resolved = resolve(asked.query(), domain)
    used = [n for n in domain if n in asked.query().used]
    small = td.Domain({n: domain[n] for n in used})
    seen = {n: brute.positions(domain[n], asked.bins.get(n), asked.where.get(n)) for n in used}
    axis = None if resolved.axis is None else resolved.axis.name
    split = [
        n
        for n in used
        if n in asked.by + (asked.attributes if asked.word == "Histogram" else ()) and n != axis
    ]
    sizes = [1 + max(p for p in seen[n] if p is not None) for n in split]
    groups, positions = resolved.place(np.arange(small.size))
    assert resolved.n_groups == int(np.prod(sizes, dtype=int))
    for record, group, position in zip(brute.tuples(small), groups.tolist(), positions.tolist(), strict=True):
        place = {n: seen[n][i] for n, i in zip(used, record, strict=True)}
        if None in place.values():
            assert group == -1
            continue
        expected = 0
        for n, size in zip(split, sizes, strict=True):
            expected = expected * size + place[n]
        assert group == expected
        assert position == (0 if axis is None else place[axis])
    assert resolved.is_filtered == bool((groups < 0).any())


# ---------- golden numbers ----------


def value(secrets: Any, query: Any, high: int = 4, **more: Any) -> Fraction:
    """Sensitivity on T = {0, …, high}."""
    return td.Policy(td.Domain(x=td.Integer(0, high, **more)), secrets).sensitivity(query).value


CELLS = td.Partition(by=[0, 0, 1, 1, 1])
GRID = [(a, b) for a in range(2) for b in range(3)]
MARGINALS = [[int(c[0] == v) for c in GRID] for v in range(2)] + [
    [int(c[1] == v) for c in GRID] for v in range(3)
]
ONE_CHANGE = td.Edges(
    [(f"{p}{q}", f"{r}{s}") for (p, q), (r, s) in itertools.combinations(GRID, 2) if (p != r) + (q != s) == 1]
)
GOLDEN = [
    ("A1", lambda: value(td.Within(1), td.Histogram("x")), 2),
    ("A2", lambda: value(td.Within(1), td.CDF("x")), 1),
    ("A3", lambda: value(td.Full(), td.CDF("x")), 4),
    ("A4", lambda: value(td.Within(3), td.CDF("x")), 3),
    ("A5", lambda: value(CELLS, td.Histogram("x", bins={"x": [0, 2]})), 0),
    ("A6", lambda: value(CELLS, td.Histogram("x")), 2),
    ("A7", lambda: value(CELLS, td.Histogram("x", bins={"x": [0, 1, 3]})), 2),
    ("A8", lambda: value(td.Within(1), td.Histogram("x", bins={"x": [0, 2]})), 2),
    ("A9", lambda: 3 * value(td.Within(2), td.Sum("x")), 6),
    ("A9 linear", lambda: value(td.Within(2), td.Linear([[3 * v for v in range(5)]], "x")), 6),
    ("A10", lambda: value(td.Full(), td.Linear([[3 * v for v in range(5)]], "x")), 12),
    ("A11", lambda: value(td.Within(1), td.Ranges("x", [(1, 3)])), 1),
    ("A12", lambda: value(td.Within(1), td.Ranges("x")), 5),
    ("A13", lambda: value(td.Full(), td.Ranges("x")), 9),
    ("A14", lambda: on_grid(ONE_CHANGE), 2),
    ("A15", lambda: on_grid(td.Full()), 4),
    ("A16", lambda: on_table(td.AttributeWise(), "a"), 2),
]


def on_grid(secrets: Any) -> Fraction:
    """Both one-way tables of a 2 × 3 domain as stacked rows over one combined attribute."""
    domain = td.Domain(c=td.Categorical([f"{a}{b}" for a, b in GRID]))
    return td.Policy(domain, secrets).sensitivity(td.Linear(MARGINALS, "c")).value


def on_table(secrets: Any, *columns: str) -> Fraction:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 2))
    return td.Policy(domain, secrets).sensitivity(td.Histogram(*columns)).value


@pytest.mark.parametrize(("name", "found", "expected"), GOLDEN, ids=[g[0] for g in GOLDEN])
def test_golden_table_a(name: str, found: Any, expected: int) -> None:
    assert found() == expected, name


def test_one_way_tables_add_up_only_under_full() -> None:
    # 2m under full is attained; under attribute-wise secrets the two tables do not move together (2, not 4).
    for secrets in (td.Full(), td.AttributeWise()):
        assert on_table(secrets, "a") == on_table(secrets, "b") == on_table(secrets, "a", "b") == 2
    assert (on_grid(ONE_CHANGE), on_grid(td.Full())) == (2, 4)


def test_worked_numbers_of_the_literature() -> None:
    # |T| = 4357: all prefix sums 4356 under full, 1 on the line, 100 within 100. Ages 0–100: sum 100, 5, 10.
    assert [value(s, td.CDF("x"), 4356) for s in (td.Full(), td.Within(1), td.Within(100))] == [4356, 1, 100]
    by_ten = td.Partition(by=[v // 10 for v in range(101)])
    assert [value(s, td.Sum("x"), 100) for s in (td.Full(), td.Within(5), by_ten)] == [100, 5, 9]
    # Cells of width 10 hold values up to 9 apart on whole numbers; the literature's 10 is for reals.


@pytest.mark.parametrize("k", range(2, 9))
@pytest.mark.parametrize("theta", range(1, 9))
def test_closed_forms_on_small_lines(k: int, theta: int) -> None:
    reach = min(theta, k - 1)
    line = td.Within(theta)
    assert value(line, td.CDF("x"), k - 1) == reach
    assert value(line, td.Histogram("x"), k - 1) == 2
    assert value(line, td.Sum("x"), k - 1) == reach
    assert value(line, td.Ranges("x"), k - 1) == max(d * (k + 1 - d) for d in range(1, reach + 1))


# ---------- counter-examples by name ----------


def test_a_secret_missing_cell_costs_the_cumulative_count_its_whole_length() -> None:
    # a record moves from the first value to the missing cell, past every prefix.
    assert value(td.Within(1), td.CDF("x"), missing="secret") == 5
    assert value(td.Within(1), td.CDF("x"), 99, missing="secret") == 100
    assert value(td.Within(1), td.CDF("x", where={"x": (0, 4)}), missing="secret") == 5


def test_a_public_missing_cell_costs_nothing_and_its_total_is_disclosed() -> None:
    assert value(td.Within(1), td.CDF("x"), missing="public") == 1
    answered = td.Linear([[1, 1, 1, 1, 1, 0]], "x")
    assert value(td.Full(), answered, missing="public") == 0
    assert value(td.Full(), answered, missing="secret") == 1


def test_a_filter_makes_the_total_a_secret() -> None:
    # on the line, [1, 3] of 0..4 loses a record at its end, so its last prefix moves too.
    assert value(td.Within(1), td.CDF("x", where={"x": (1, 3)})) == 3
    assert value(td.Within(1), td.Linear([[1, 1, 1]], "x", where={"x": (1, 3)})) == 1


def test_moving_between_groups_costs_both_columns() -> None:
    domain = td.Domain(x=td.Integer(0, 4), g=td.Categorical(["p", "q"]))
    query = td.CDF("x", by="g")
    assert td.Policy(domain, td.AttributeWise(x=td.Within(1))).sensitivity(query).value == 1
    assert td.Policy(domain, td.AttributeWise()).sensitivity(query).value == 10
    assert td.Policy(domain, td.Full()).sensitivity(query).value == 10
    filtered = td.CDF("x", where={"g": ["p"]})
    assert td.Policy(domain, td.AttributeWise(g=td.Full())).sensitivity(filtered).value == 5


def test_a_mean_is_a_sum_and_a_plain_count_in_their_own_units() -> None:
    # Cells {0, 1}, {2, 3}: middles 1/2 and 5/2. Answering 5/2 or nothing moves the sum by 5/2 and the count by 1.
    assert value(td.Full(), td.Mean("x"), 3, step=2, missing="secret") == F(7, 2)
    assert value(td.Full(), td.Mean("x"), 3, step=2) == 2


def test_empty_intersections_are_refused_and_not_priced() -> None:
    domain = td.Domain(x=td.Integer(0, 4), g=td.Categorical(["p", "q"]))
    policy = td.Policy(domain, td.Full())
    for where in ({"g": []}, {"x": []}):
        with pytest.raises(SpecificationError, match=rf"cdf\.where\.{next(iter(where))}: leaves no cell"):
            policy.sensitivity(td.CDF("x", where=where))


def test_values_that_nothing_distinguishes_cost_nothing() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, 4), y=td.Integer(0, 4)), td.AttributeWise(x=td.Full()))
    found = policy.sensitivity(td.Histogram("y"))
    assert found.value == 0 and found.witness is None


# ---------- size ----------


def peak(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("missing", ["refuse", "secret", "public"])
def test_full_on_a_billion_cells_needs_no_array_of_that_size(missing: Any) -> None:
    n = 10**9
    domain = td.Domain(x=td.Integer(1, n, missing=missing), g=td.Categorical(["p", "q"]))
    policy = td.Policy(domain, td.Full())
    extra, length = missing != "refuse", n - 1 + (missing == "secret")

    def ask() -> None:
        assert policy.sensitivity(td.CDF("x")).value == length
        assert policy.sensitivity(td.CDF("x", by="g")).value == 2 * (n + extra)
        assert policy.sensitivity(td.Histogram("x")).value == 2
        assert policy.sensitivity(td.Histogram("x", "g")).value == 2
        assert policy.sensitivity(td.CDF("x", where={"g": ["p"]})).value == n + extra

    assert peak(ask) < 64 * 2**20


def test_all_ranges_of_a_billion_cells_have_a_closed_form() -> None:
    n = 10**9
    policy = td.Policy(td.Domain(x=td.Integer(1, n), g=td.Categorical(["p", "q"])), td.Full())

    def ask() -> None:
        half = (n + 1) // 2
        assert policy.sensitivity(td.Ranges("x")).value == half * (n + 1 - half)
        assert policy.sensitivity(td.Ranges("x", by="g")).value == 2 * ((n - 1) // 2 + 1) * (n - (n - 1) // 2)

    assert peak(ask) < 64 * 2**20


def test_within_on_a_million_cells() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(1, 10**6)), td.Within(100))
    assert policy.sensitivity(td.CDF("x")).value == 100
    assert policy.sensitivity(td.Histogram("x")).value == 2
    assert policy.sensitivity(td.Sum("x")).value == 100
    assert policy.sensitivity(td.CDF("x", bins={"x": 1000})).value == 1
    full = td.Policy(td.Domain(x=td.Integer(1, 10**6)), td.Full())
    assert full.sensitivity(td.Sum("x")).value == 10**6 - 1
    assert full.sensitivity(td.Mean("x")).value == 10**6 - 1


def test_what_is_too_large_is_refused_by_name() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(1, 10**9)), td.Full())
    for query in (td.Sum("x"), td.CDF("x", bins={"x": 10}), td.CDF("x", where={"x": (1, 10)})):
        with pytest.raises(Unsupported, match="coarser cells"):
            policy.sensitivity(query)
    two = td.Policy(td.Domain(x=td.Integer(1, 10**9), g=td.Integer(0, 1)), td.Partition({"g": 2}))
    with pytest.raises(Unsupported, match=r"cdf\.where\.x: filters on more than 2\^25 cells"):
        two.sensitivity(td.CDF("g", where={"x": (1, 10)}))
    assert two.sensitivity(td.CDF("x", by="g")).value == 10**9 - 1
    many = td.Policy(td.Domain(x=td.Integer(1, 6000)), td.Full())
    with pytest.raises(Unsupported, match="up to 5,000 positions"):
        many.sensitivity(td.Ranges("x", [(1, 2), (3, 3000)]))


# ---------- claims ----------

COVERED = {
    "edges/one-record",
    "edges/groups",
    "edges/filters",
    "edges/flat",
    "rows/cells",
    "rows/prefixes",
    "rows/all-ranges",
    "rows/some-ranges",
    "rows/one-row",
    "rows/still-rows",
    "rows/at-bounds",
    "rows/nested",
    "rows/star",
    "rows/norm",
    "rows/mean",
    "quotient/positions",
    "quotient/outside",
    "quotient/label-change",
    "axes/window-distance",
    "axes/interval-distance",
    "axes/star-distance",
    "graphs/sum-of-hops",
    "graphs/largest-of-hops",
    "reach/integer",
    "reach/numeric",
    "reach/categorical",
    "reach/discrete",
    "reach/plane",
    "reach/sphere",
    "axes/map-distance",
    "graphs/ball",
    "graphs/ball-distance",
    "rows/map-signs",
    "quotient/map",
    "sums/by-label",
    "hops/maps",
    "kmeans/round",
    "kmeans/blocks",
    "tables/together",
    "rows/joint",
    "stack/disjoint-filters",
    "people/rows",
    "people/displaced",
    "people/presence",
    "people/weights",
    "people/exempt",
    "counts/unbroken",
    "counts/rank",
    "rule-r/closed",
    "rule-r/sharp",
    "rule-r/many-cells",
    "rule-r/squares",
    "rule-r/stack",
    "rule-r/by-record",
    "bundle/shape",
    "bundle/cost",
    "steinitz/length",
    "edges-reading",
    "free/known",
}


def test_every_closed_form_has_a_claim() -> None:
    keys = [claim.key for claim in CLAIMS]
    assert len(keys) == len(set(keys))
    assert set(keys) == COVERED


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.key for claim in CLAIMS])
def test_every_claim_has_a_living_check(claim: Any) -> None:
    file, name = claim.checked_by.split("::")
    path = Path(__file__).parent.parent / file
    tests = {n.name for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)}
    assert name.startswith("test_") and name in tests, f"{claim.key}: no test {claim.checked_by}"
    assert len(claim.text) > 40 and claim.source
