"""Secret graphs against the dense graph that the definitions give, and what a declaration must refuse."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute
from strategies import domains, examples, interval_axes, listed_axes, policies

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.quotient import label_change, quotient

F = Fraction


def listed(graph: Any, chunk: int = 1_000_000) -> list[tuple[int, int]]:
    """Every edge that a graph or an axis yields, smaller end first, as often as it yields it."""
    return [
        (min(x, y), max(x, y))
        for a, b in graph.edges(chunk)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


def graph_of(domain: Any, secrets: Any) -> Any:
    return td.Policy(domain, secrets).graph


# ---------- the whole graph ----------


@examples(250)
@given(policies(), st.sampled_from((1, 3, 1_000_000)))
def test_edges_joined_and_distance_equal_the_dense_graph(policy: Any, chunk: int) -> None:
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    graph, n = policy.graph, len(adjacent)
    found = listed(graph, chunk)
    assert len(found) == len(set(found)), "an edge is listed twice"
    assert set(found) == brute.edges(adjacent)
    assert graph.has_edges == bool(found)
    every = np.arange(n)
    assert graph.joined(every[:, None], every[None, :]).tolist() == adjacent
    shortest = brute.distances(adjacent)
    for a, b in itertools.product(range(n), repeat=2):
        hops = graph.distance(a, b)
        assert (brute.INFINITE if hops is None else hops) == shortest[a][b]
        assert graph.same_component(a, b) == (shortest[a][b] < brute.INFINITE)
    assert graph.n_components == len({tuple(d < brute.INFINITE for d in row) for row in shortest})


@examples(200)
@given(policies())
def test_projections_and_unprotected_equal_the_dense_graph(policy: Any) -> None:
    domain, adjacent = policy.domain, brute.adjacency(policy.domain, policy.secrets)
    names = list(domain)
    bare = []
    for k in range(1, len(names) + 1):
        for kept in itertools.combinations(names, k):
            _, shadow = brute.projected(domain, adjacent, kept)
            small = policy.graph.project(kept)
            assert set(listed(small)) == brute.edges(shadow)
            assert small.domain.names == kept
            if k == 1 and not brute.edges(shadow):
                bare.append(kept[0])
    assert list(policy.graph.unprotected) == bare


@examples(100)
@given(domains())
def test_nothing_and_full_are_the_extremes(domain: Any) -> None:
    full, bare = graph_of(domain, td.Full()), graph_of(domain, td.Nothing())
    assert set(listed(bare)) <= set(listed(full))
    refusing = all(a.missing == "refuse" for a in domain.values())
    if refusing:
        assert not bare.has_edges
        assert len(listed(full)) == domain.size * (domain.size - 1) // 2
        assert bare.n_components == domain.size and full.n_components == 1


def test_neighbours_of_definition_4_1_move_one_record_along_one_edge() -> None:
    line = [[abs(a - b) == 1 for b in range(4)] for a in range(4)]
    loose = [[{a, b} in ({0, 1}, {2, 3}) for b in range(4)] for a in range(4)]
    for adjacent in (line, loose, [[a != b for b in range(3)] for a in range(3)]):
        found = set(brute.definition_neighbours(adjacent, 2))
        single = {
            (one, (*one[:i], v, *one[i + 1 :]))
            for one in itertools.product(range(len(adjacent)), repeat=2)
            for i in range(2)
            for v in range(len(adjacent))
            if adjacent[one[i]][v]
        }
        assert found == single


# ---------- one axis ----------


@examples(300)
@given(st.one_of(interval_axes(), listed_axes()), st.sampled_from((1, 2, 1000)))
def test_axes_equal_their_statement(axis: Axis, chunk: int) -> None:
    adjacent = brute.dense_axis(axis)
    found = listed(axis, chunk)
    assert len(found) == len(set(found)) == axis.n_edges
    assert set(found) == brute.edges(adjacent)
    assert axis.has_edges == bool(found)
    every = np.arange(axis.size)
    assert axis.joined(every[:, None], every[None, :]).tolist() == adjacent
    for star in range(len(axis.stars)):
        assert axis.star_mask(star).tolist() == adjacent[axis.base + star]
    shortest = brute.distances(adjacent)
    component = axis.components
    for a, b in itertools.product(range(axis.size), repeat=2):
        hops = axis.distance(a, b)
        assert (brute.INFINITE if hops is None else hops) == shortest[a][b]
        assert (component[a] == component[b]) == (shortest[a][b] < brute.INFINITE)
    assert set(component.tolist()) == set(range(axis.n_components))
    ordered = [b - a for a, b in brute.edges(adjacent) if b < axis.base]
    gap, (x, y) = axis.widest
    assert gap == y - x == max(ordered, default=0)
    assert not gap or adjacent[x][y]


@st.composite
def labelled_axes(draw: Any) -> tuple[Axis, np.ndarray[Any, Any]]:
    """An axis with a position (or −1, left out) for each of its cells: positions 0..P−1 all in use."""
    axis = draw(st.one_of(interval_axes(), listed_axes()))
    if draw(st.booleans()):  # as bins and filters make them: in order, stars after
        raw = sorted(draw(st.integers(0, 3)) for _ in range(axis.base))
        raw += [10 + s for s in range(len(axis.stars))]
    else:
        raw = [draw(st.integers(0, 3)) for _ in range(axis.size)]
    kept = [draw(st.integers(0, 3)) > 0 for _ in range(axis.size)]
    told = [r if k else None for r, k in zip(raw, kept, strict=True)]
    order = sorted({t for t in told if t is not None})
    return axis, np.array([-1 if t is None else order.index(t) for t in told], dtype=np.int64)


def assert_quotient(axis: Axis, labels: Any) -> None:
    """Positions are joined exactly where cells behind them are; all cells left out are one more position."""
    adjacent, count = brute.dense_axis(axis), int(labels.max(initial=-1)) + 1
    expected = set()
    for a, b in brute.edges(adjacent):
        p, q = (count if labels[c] < 0 else int(labels[c]) for c in (a, b))
        if p != q:
            expected.add((min(p, q), max(p, q)))
    small = quotient(axis, labels)
    assert small.size == count + bool((labels < 0).any())
    assert set(listed(small)) == expected
    assert small.has_edges == bool(expected)


@examples(300)
@given(labelled_axes())
def test_quotients_join_the_positions_of_joined_cells(drawn: tuple[Axis, Any]) -> None:
    axis, labels = drawn
    assert_quotient(axis, labels)
    assert set(listed(quotient(axis, None))) == brute.edges(brute.dense_axis(axis))


def test_quotients_of_every_small_axis_under_every_filter() -> None:
    for base, window in ((b, w) for b in range(1, 4) for w in range(b)):
        for stars in itertools.chain.from_iterable(
            itertools.product((True, False), repeat=k) for k in range(3)
        ):
            axis = Axis(base, window=window, stars=stars)
            for kept in itertools.product((True, False), repeat=axis.size):
                rank = np.cumsum(kept) - 1
                assert_quotient(axis, np.where(kept, rank, -1).astype(np.int64))


@examples(300)
@given(labelled_axes())
def test_label_change_is_the_largest_over_all_edges(drawn: tuple[Axis, Any]) -> None:
    axis, labels = drawn
    adjacent = brute.dense_axis(axis)

    def change(labels: Sequence[int], a: int, b: int) -> int:
        if labels[a] == labels[b]:
            return 0
        return int(labels[a] >= 0) + int(labels[b] >= 0)

    for told, plain in ((labels, labels.tolist()), (None, list(range(axis.size)))):
        found, (a, b) = label_change(axis, told)
        assert found == max((change(plain, x, y) for x, y in brute.edges(adjacent)), default=0)
        if found:
            assert adjacent[a][b] and change(plain, a, b) == found
        if found == 1:
            assert plain[a] >= 0


# ---------- counter-examples by name ----------


def line(low: Any, high: Any, **more: Any) -> Any:
    return td.Domain(x=td.Integer(low, high, **more))


def test_fractional_theta_takes_three_hops_where_the_quotient_says_two() -> None:
    # step 1, θ = 1.5, distance 3: ⌈3/1.5⌉ = 2, but a hop moves a whole number.
    assert graph_of(line(0, 9), td.Within(1.5)).distance(0, 3) == 3


def test_steps_of_two_with_theta_three_take_a_hop_each() -> None:
    # Points 0, 2, 4, …: 60 steps are 120 apart, ⌈120/3⌉ = 40, but a hop reaches one step only. As cells of two integers
    # the same numbers reach two cells (1 and 4 are three apart), hence 30 hops.
    codes = [f"{2 * i}" for i in range(61)]
    steps = td.Domain(x=td.Categorical(codes, ordered=True))
    assert graph_of(steps, td.Within(F(3, 2))).distance(0, 60) == 60
    assert graph_of(line(0, 121, step=2), td.Within(3)).distance(0, 60) == 30
    assert graph_of(line(0, 121, step=2), td.Within(2)).distance(0, 60) == 60


def test_cells_of_width_5_56_within_50_take_three_hops_over_94_52() -> None:
    # 94.52 is 17 cells of 5.56; a hop reaches ⌈50/5.56⌉ = 9 cells, so two; with points instead of cells it would be 8.
    domain = td.Domain(x=td.Numeric(0, "166.8", width="5.56"))
    graph = graph_of(domain, td.Within(50))
    adjacent = brute.adjacency(domain, td.Within(50))
    assert graph.distance(0, 17) == brute.distances(adjacent)[0][17] == 2
    points = td.Domain(x=td.Categorical([str(i) for i in range(30)], ordered=True))
    assert graph_of(points, td.Within(F("50") / F("5.56"))).distance(0, 17) == 3


def test_cells_of_width_ten_join_nine_and_twenty_one_within_twelve() -> None:
    # the values 9 and 21 differ by 12, the centres of their cells by 20.
    for attribute in (td.Numeric(0, 100, width=10), td.Integer(0, 99, step=10)):
        graph = graph_of(td.Domain(x=attribute), td.Within(12))
        a, b = attribute.cell(9), attribute.cell(21)
        assert (a, b) == (0, 2) and graph.joined(a, b) and not graph.joined(0, 3)


def test_half_open_cells_touch_without_holding_values_theta_apart() -> None:
    # [0, 10) and [20, 30) hold values more than 10 apart, all of them; so θ = 10 joins neighbours only.
    graph = graph_of(td.Domain(x=td.Numeric(0, 100, width=10)), td.Within(10))
    assert graph.joined(0, 1) and not graph.joined(0, 2)
    assert graph_of(td.Domain(x=td.Numeric(0, 100, width=10)), td.Within(F(1, 1000))).joined(0, 1)


def test_a_secret_missing_cell_puts_all_values_two_hops_apart() -> None:
    graph = graph_of(line(0, 99, missing="secret"), td.Within(1))
    assert graph.distance(0, 99) == 2 and graph.distance(0, 100) == 1 and graph.distance(3, 4) == 1


def test_a_public_missing_cell_is_alone() -> None:
    graph = graph_of(line(0, 9, missing="public"), td.Full())
    assert graph.distance(0, 10) is None and graph.n_components == 2


def test_listing_a_secret_missing_cell_adds_nothing() -> None:
    domain = line(0, 3, missing="secret")
    plain = graph_of(domain, td.Edges([(0, 1)]))
    listed_too = graph_of(domain, td.Edges([(0, 1), (2, "missing"), ("missing", "missing")]))
    assert sorted(listed(plain)) == sorted(listed(listed_too)) == [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4)]
    assert plain.axes[0].n_edges == listed_too.axes[0].n_edges == 5


def test_two_public_missing_cells_are_told_apart() -> None:
    # One block for everything: still, who did not answer which question is disclosed.
    domain = td.Domain(a=td.Integer(0, 1, missing="public"), b=td.Integer(0, 1, missing="public"))
    graph = graph_of(domain, td.Partition(by=["all"] * 9))
    assert graph.n_components == 4
    only_a, only_b = domain.encode([2, 0]), domain.encode([0, 2])
    assert not graph.joined(only_a, only_b) and graph.joined(only_a, domain.encode([2, 1]))


def test_hops_add_for_attribute_wise_and_do_not_for_full() -> None:
    domain = td.Domain(a=td.Integer(0, 3), b=td.Integer(0, 3))
    corner = domain.size - 1
    assert graph_of(domain, td.AttributeWise()).distance(0, corner) == 2
    assert graph_of(domain, td.Full()).distance(0, corner) == 1
    assert graph_of(domain, td.AttributeWise(a=td.Within(1), b=td.Within(3))).distance(0, corner) == 4
    assert graph_of(domain, td.AttributeWise(a=td.Full())).distance(0, corner) is None


def test_the_other_cell_is_joined_to_every_value_whatever_the_distance() -> None:
    ordered = td.Domain(x=td.Categorical(["p", "q", "r"], ordered=True, other="else"))
    for theta in (0, F(1, 2), 1):
        graph = graph_of(ordered, td.Within(theta))
        assert [bool(graph.joined(3, c)) for c in range(4)] == [True, True, True, False]


def test_weights_divide_the_distance() -> None:
    domain = line(0, 9)
    for metric in (td.L1(x=2), td.L2(x=2)):
        graph = graph_of(domain, td.Within(5, metric=metric))
        assert graph.joined(0, 2) and not graph.joined(0, 3)
    assert graph_of(domain, td.Within(1, metric=td.Discrete())).joined(0, 9)
    assert not graph_of(domain, td.Within("0.9", metric=td.Discrete())).has_edges


@pytest.mark.parametrize(("n", "blocks"), [(9, 4), (5, 4), (10, 3), (6, 6), (4, 7), (12, 1), (7, 2)])
def test_blocks_are_as_many_runs_as_asked_for_and_nearly_equal(n: int, blocks: int) -> None:
    graph = graph_of(line(1, n), td.Partition(blocks))
    component = graph.axes[0].components
    lengths = np.bincount(component)
    assert graph.n_components == min(blocks, n)
    assert (np.diff(component) >= 0).all() and lengths.max() - lengths.min() <= 1
    assert len(listed(graph)) == sum(k * (k - 1) // 2 for k in lengths.tolist())


def test_blocks_cross_the_attributes_that_are_not_cut() -> None:
    domain = td.Domain(lat=td.Integer(0, 3), lon=td.Integer(0, 2))
    graph = graph_of(domain, td.Partition(blocks={"lat": 2}))
    assert graph.n_components == 2
    assert graph.joined(domain.encode([0, 0]), domain.encode([1, 2]))
    assert not graph.joined(domain.encode([1, 0]), domain.encode([2, 0]))


def test_a_few_pairs_in_a_vast_domain_stay_few() -> None:
    domain = td.Domain(a=td.Integer(0, 10**6), b=td.Integer(0, 10**6))
    policy = td.Policy(domain, td.Edges([((0, 0), (10**6, 5)), ((10**6, 5), (7, 7)), ((1, 1), (1, 2))]))
    graph = policy.graph
    far, near = int(domain.encode([7, 7])), int(domain.encode([1, 1]))
    assert graph.distance(0, far) == 2 and graph.distance(0, near) is None and graph.distance(0, 5) is None
    assert graph.n_components == domain.size - 3
    end = int(domain.encode([10**6, 5]))
    assert graph.joined(0, [end, far, end + 1]).tolist() == [True, False, False]
    # Numbered as low·size + high this pair of cells would be the listed pair (0, end), modulo 2^64.
    low, high = divmod(end + 2**64, domain.size)
    assert low < high < domain.size and not graph.joined([low], [high]).any()
    assert graph.same_component(0, far) and not graph.same_component(0, near)
    assert "the group of joined value combinations in which each record lies" in policy.explain()
    with pytest.raises(Unsupported, match="coarser cells"):
        _ = graph.axes[0].components


def test_the_largest_graphs_answer_without_lists() -> None:
    graph = graph_of(line(1, 10**9), td.Full())
    assert graph.distance(0, 10**9 - 1) == 1 and graph.joined(5, 10**9 - 1)
    assert (
        graph.n_components == 1
        and graph_of(line(1, 10**9, missing="public"), td.Nothing()).n_components == 10**9 + 1
    )
    assert graph.axes[0].n_edges == 10**9 * (10**9 - 1) // 2
    wide = graph_of(line(1, 10**9), td.Within(1000))
    assert wide.distance(0, 10**9 - 1) == 10**6
    with pytest.raises(Unsupported, match="too many edges to list"):
        wide.axes[0].all_edges()
    with pytest.raises(Unsupported, match="coarser cells"):
        graph_of(line(1, 10**9, missing="secret"), td.Full()).axes[0].star_mask(0)
    with pytest.raises(Unsupported, match="too many edges to list"):
        next(graph_of(td.Domain(a=td.Integer(1, 5000), b=td.Integer(1, 5000)), td.Full()).edges())


# ---------- refusals ----------

WORD = td.Domain(w=td.Categorical(["p", "q"]), x=td.Integer(0, 9))
STEPS = td.Domain(x=td.Integer(0, 9, step=2))
REFUSED = [
    (WORD, td.Within(1, on="w"), "secrets.w: Within needs an order; declare ordered=True"),
    (WORD, td.Within(1, on="w", metric=td.L1()), "secrets.w: Within needs an order"),
    (WORD, td.AttributeWise(w=td.Within(1, metric=td.L2())), "secrets.w: Within needs an order"),
    (WORD, td.Within(1), "Within: the domain has several attributes; name one with on="),
    (WORD, td.Within(1, metric=td.L1(w=1, x=2)), "Within.metric.w: a distance needs an order"),
    (STEPS, td.Within(1, metric=td.L1(x=1, y=2)), "Within.metric: no attribute 'y'; declared: x"),
    (
        WORD,
        td.Within(1, on="x", metric=td.L1(x=1, w=2)),
        "metric: w: a distance over several attributes stands alone",
    ),
    (WORD, td.AttributeWise(x=td.Within(1, metric=td.L1(x=1, w=2))), "metric: w: a distance over several"),
    (WORD, td.Within(1, on="x", metric=td.Haversine()), "secrets.x: Haversine measures places"),
    (
        WORD,
        td.AttributeWise(x=td.Partition((2, 3))),
        "secrets.x.blocks: one number; rows and columns are for places",
    ),
    (STEPS, td.Within(-1), "secrets.x: a distance is not negative"),
    (STEPS, td.Within("3 USD"), "secrets.x: the attribute is declared in no unit, not in USD"),
    (WORD, td.Within(1, on="z"), "Within.on: no attribute 'z'; declared: w, x"),
    (WORD, td.AttributeWise(xx=td.Full()), "secrets: no attribute 'xx'; declared: w, x. Did you mean 'x'"),
    (WORD, td.AttributeWise(w=td.Within(1, on="x")), "secrets.w: 'x' names another attribute"),
    (WORD, td.AttributeWise(x=td.Partition({"w": 2})), "secrets.x.blocks: 'w' names another attribute"),
    (WORD, td.Partition(2), "Partition.blocks: name the attributes"),
    (WORD, td.Partition({"z": 2}), "Partition.blocks: no attribute 'z'"),
    (WORD, td.Partition(by={"p": 1}, on="w"), "secrets.w.by: no block for 'q'"),
    (WORD, td.Partition(by=[1, 2, 3], on="w"), "secrets.w.by: 2 cells are declared and 3 labels given"),
    (WORD, td.Partition(by={"p": 1, "q": 2, "s": 2}, on="w"), "secrets.w.by: no value 's'; declared: p, q"),
    (WORD, td.Partition(by={("p", 1): 1}), r"Partition.by: no block for \(p, 0\)"),
    (WORD, td.Partition(by=[1, 2]), "Partition.by: 20 cells are declared and 2 labels given"),
    (WORD, td.Partition(by={"p": 1}), "Partition.by: tuples of 2 values, in the domain's order"),
    (STEPS, td.Partition(by={v: v for v in range(10)}), "secrets.x.by: two blocks for the cell '0–1'"),
    (
        td.Domain(x=td.Integer(0, 3, step=2), y=td.Integer(0, 0)),
        td.Partition(by={(v, 0): v for v in range(4)}),
        r"Partition.by: two blocks for the cell \(0–1, 0\)",
    ),
    (
        td.Domain(x=td.Integer(0, 1, missing="secret")),
        td.Partition(by={0: 1, 1: 1, "missing": 1}),
        "secrets.x.by: the missing cell has edges of its own; leave it out",
    ),
    (WORD, td.Edges([("p", "r")], on="w"), "secrets.w.edges: no value 'r'; declared: p, q"),
    (WORD, td.Edges([("p", True)], on="w"), "secrets.w.edges: no value True"),
    (STEPS, td.Edges([(0, 11)]), "secrets.x.edges: a whole number from 0 to 9"),
    (WORD, td.Edges([("p", "q")]), "Edges: tuples of 2 values, in the domain's order"),
    (
        td.Domain(x=td.Integer(0, 9, missing="public")),
        td.Edges([(0, "missing")]),
        "secrets.x: an edge names the missing cell, which is declared public",
    ),
    (
        td.Domain(x=td.Integer(0, 9, missing="public"), y=td.Integer(0, 1)),
        td.Edges([((0, 0), ("missing", 0))]),
        "Edges: an edge joins a public missing cell to a value",
    ),
    (line(1, 2**26), td.Partition(4), "secrets.x: blocks of more than 2\\^25 cells"),
    (WORD, "full", "secrets: a secret graph such as td.Full"),
]


@pytest.mark.parametrize(("domain", "secrets", "says"), REFUSED)
def test_declarations_that_do_not_fit_are_refused_with_the_fix(domain: Any, secrets: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        td.Policy(domain, secrets)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: td.Partition(), "Partition: give either blocks or by"),
        (lambda: td.Partition(2, by=[1]), "Partition: give either blocks or by"),
        (lambda: td.Partition(0), "Partition.blocks: a whole number of at least 1"),
        (lambda: td.Partition(1.5), "Partition.blocks: a whole number of at least 1"),
        (lambda: td.Partition({"a": True}), "Partition.blocks.a: a truth value is not a number"),
        (lambda: td.Edges([(1, 2, 3)]), "Edges: a list of pairs of values"),
        (lambda: td.Within("far"), "Within: not a number"),
        (lambda: td.Within(float("nan")), "Within: must be finite"),
        (
            lambda: td.AttributeWise(a=td.AttributeWise()),
            "secrets.a: Full, Within, Partition, Edges or Nothing",
        ),
        (lambda: td.L1(a=0), "metric.a: must be above 0"),
        (lambda: td.Partition((2, 0)), "Partition.blocks: a whole number of at least 1"),
    ],
)
def test_wrong_secrets_are_refused_where_they_are_written(build: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        build()
