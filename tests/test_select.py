"""``auto`` is never worse than any named mechanism, chooses from public inputs alone, and optimal budgets are optimal."""

from __future__ import annotations

import inspect
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import mechanisms as oracle
from pricing import candidates, looking, price
from strategies import examples

import tetraodon as td
from tetraodon.errors import TetraodonError
from tetraodon.graphs import Graph
from tetraodon.mechanisms import Direct, Hierarchical, Identity, Ordered, OrderedHierarchical, search, select
from tetraodon.mechanisms.forest import Forest
from tetraodon.mechanisms.search import Search
from tetraodon.mechanisms.strategy import Strategy
from tetraodon.sensitivity import Neighbourhood
from tetraodon.table import Table
from tetraodon.workload import Resolved, resolve

FANOUTS = (2, 3, 4, 8, 16, 32)
KINDS = ("uniform", "geometric", "optimal")
NAMED: list[Any] = [
    Identity(),
    Ordered(),
    *(Hierarchical(f, k) for f in FANOUTS for k in KINDS),
    *(OrderedHierarchical(f, k) for f in FANOUTS for k in KINDS),
]
THETAS = (1, 10, 50, 100, 500, 1000, 4356)


def asked(
    size: int, theta: int, query: Any, by: tuple[str, ...] = (), groups: bool = False
) -> tuple[Resolved, Graph]:
    """A query on x = 0 … size − 1 with distances up to theta secret, and the policy's graph."""
    domain = td.Domain(x=td.Integer(0, size - 1), g=td.Integer(0, 2))
    graphs: dict[str, Any] = {"x": td.Within(theta)} | ({"g": td.Full()} if groups else {})
    return resolve(query, domain), td.Policy(domain, td.AttributeWise(graphs)).graph


def least_named(told: tuple[Resolved, Graph], epsilon: Fraction, over: list[Any]) -> tuple[float, Any]:
    """The named mechanism of least exact expected error."""
    return min((price(m, *told, epsilon).expected_error, str(m)) for m in over)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize(
    "epsilon",
    [
        pytest.param(Fraction(1, 10), marks=pytest.mark.slow),
        pytest.param(Fraction(1, 2), marks=pytest.mark.slow),
        Fraction(1),
    ],
    ids=str,
)
def test_auto_is_never_worse_than_a_named_mechanism_on_4357_values(theta: int, epsilon: Fraction) -> None:
    told = asked(4357, theta, td.Ranges("x"))
    best = candidates(*told, epsilon)[0].expected_error
    assert best <= least_named(told, epsilon, NAMED)[0] * (1 + 1e-6)  # weights are rounded to 2^-16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theta", "query", "epsilon"),
    list(
        itertools.product(
            THETAS,
            (td.CDF("x"), td.Histogram("x"), td.Quantiles("x", [0.5]), td.Ranges("x", [(0, 9), (300, 2000)])),
            (Fraction(1, 10), Fraction(1, 2), Fraction(1)),
        )
    ),
    ids=str,
)
def test_auto_is_never_worse_on_4357_values_for_any_query(theta: int, query: Any, epsilon: Fraction) -> None:
    told = asked(4357, theta, query)
    assert candidates(*told, epsilon)[0].expected_error <= least_named(told, epsilon, NAMED)[0] * (1 + 1e-6)


@given(st.data())
@examples(6)
def test_auto_is_never_worse_on_small_axes(data: Any) -> None:
    check_small_axes(data)


@pytest.mark.slow
@given(st.data())
@examples(60)
def test_auto_is_never_worse_on_many_small_axes(data: Any) -> None:
    check_small_axes(data)


def check_small_axes(data: Any) -> None:
    size = data.draw(st.integers(2, 64))
    ends = sorted(data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2)))
    by = data.draw(st.sampled_from(((), ("g",))))
    query = data.draw(
        st.sampled_from(
            (
                td.CDF("x", by=by),
                td.Ranges("x", by=by),
                td.Histogram("x", by=by),
                td.Quantiles("x", [0.5], by=by),
                td.Ranges("x", [(ends[0], ends[1]), (0, ends[1])], by=by),
            )
        )
    )
    told = asked(size, data.draw(st.integers(1, size)), query, by, data.draw(st.booleans()))
    epsilon = data.draw(st.sampled_from((Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(4))))
    tried = [
        NAMED[i]
        for i in data.draw(st.lists(st.integers(0, len(NAMED) - 1), min_size=6, max_size=6, unique=True))
    ]
    best, name = least_named(told, epsilon, tried)
    assert candidates(*told, epsilon)[0].expected_error <= best * (1 + 1e-6), (
        name
    )  # weights are rounded to 2^-16


@given(
    st.integers(3, 200),
    st.integers(1, 200),
    st.integers(2, 20),
    st.sampled_from(("CDF", "Ranges", "Histogram")),
)
@examples(40)
def test_optimal_levels_are_no_worse_than_the_others(size: int, theta: int, fanout: int, word: str) -> None:
    told = asked(size, min(theta, size), getattr(td, word)("x"))
    for kind in (Hierarchical, OrderedHierarchical):
        one, two, best = (price(kind(fanout, k), *told, Fraction(1)).expected_error for k in KINDS)
        assert best <= min(one, two) * (1 + 1e-5)  # weights are rounded to 2^-16


# Blocks of θ positions cost a chain. With few blocks, where they do not save a level of the tree (small fan-outs save
# nothing, since optimal budgets leave levels out anyway), they lose to one tree over everything.
WORSE = {(4357, 1000, 2), (4357, 1000, 3), (400, 90, 2), (400, 90, 3), (400, 90, 8), (400, 90, 32)}


@pytest.mark.parametrize(("size", "theta"), [(4357, t) for t in THETAS[:-1]] + [(400, t) for t in (1, 9, 90)])
def test_repaired_blocks_beat_one_tree_of_the_same_fanout(size: int, theta: int) -> None:
    told = asked(size, theta, td.Ranges("x"))
    for fanout in FANOUTS:
        blocks = price(OrderedHierarchical(fanout, "optimal"), *told, Fraction(1)).expected_error
        tree = price(Hierarchical(fanout, "optimal"), *told, Fraction(1)).expected_error
        assert (blocks > tree) == ((size, theta, fanout) in WORSE), fanout


def test_at_the_full_threshold_blocks_are_one_tree() -> None:
    told = asked(4357, 4356, td.Ranges("x"))
    blocks, tree = (
        price(kind(16, "optimal"), *told, Fraction(1)) for kind in (OrderedHierarchical, Hierarchical)
    )
    assert blocks.forest == tree.forest and blocks.expected_error == tree.expected_error


def test_a_plan_is_sorted_and_says_what_it_averages_over() -> None:
    domain = td.Domain(x=td.Integer(0, 99))
    session = td.Session(td.Table({"x": [1]}, domain), td.Policy(domain, td.Within(10)), epsilon=1)
    plan = session.plan(td.Ranges("x"), epsilon="0.5")
    errors = [row.expected_error for row in plan]
    assert errors == sorted(errors) and len(errors) == 4
    assert {row.workload for row in plan} == {"all ranges, on average"}
    assert all(row.cost.value == Fraction(1, 2) for row in plan)
    assert session.remaining.epsilon == 1


@given(st.integers(2, 40), st.integers(1, 40), st.sampled_from(("CDF", "Ranges", "Histogram", "Quantiles")))
@examples(12)
def test_what_a_plan_names_can_be_asked_for_by_that_name(size: int, theta: int, word: str) -> None:
    told = asked(size, min(theta, size), getattr(td, word)("x"))
    for offered in candidates(*told, Fraction(1, 3)):
        again = price(offered.mechanism, *told, Fraction(1, 3))
        assert [p.weight for p in again.parts] == [p.weight for p in offered.parts]
        assert again.expected_error == offered.expected_error


def test_linear_queries_are_ranked_by_their_own_error() -> None:
    # All prefix sums as one linear query: noise on cells or trees beats noise on the rows under a full graph.
    size = 24
    told = asked(size, size, td.Linear(np.tril(np.ones((size, size), dtype=int)).tolist(), "x"))
    best, *rest = candidates(*told, Fraction(1))
    assert not isinstance(best.mechanism, Direct)
    assert best.expected_error == pytest.approx(float(oracle.answer_variances(best).mean()))
    assert {Direct(), Identity(), Ordered()} <= {s.mechanism for s in [best, *rest]}


# ---------- the model behind the search ----------


@given(
    st.integers(2, 60),
    st.integers(1, 60),
    st.integers(2, 9),
    st.sampled_from(("CDF", "Ranges", "Histogram")),
    st.data(),
)
@examples(60)
def test_the_model_is_the_exact_error_up_to_the_cost(
    size: int, theta: int, fanout: int, word: str, data: Any
) -> None:
    told = asked(size, min(theta, size), getattr(td, word)("x"))
    search = looking(*told, Fraction(1, 5))
    shape = search.shape(data.draw(st.integers(1, size)), fanout)
    budget = shape.budget("geometric")
    built = select._built(Hierarchical(fanout), search, shape.forest, *shape.weights(budget))
    slack = float(select._slack(built, shape))
    assert 0 < slack <= 1
    if slack == 1:
        assert shape.error(budget) == pytest.approx(built.expected_error, rel=1e-3)
    else:
        assert built.expected_error < shape.error(budget) * (1 + 1e-3)


@pytest.mark.parametrize("word", ["CDF", "Ranges", "Histogram"])
def test_a_long_chain_is_measured_by_a_short_one(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = asked(9_005, 20, getattr(td, word)("x"))
    shape = looking(*told, Fraction(1)).shape(10, 8)  # 901 blocks, the last of 5 positions, cut differently
    budget = shape.budget("uniform")
    short = shape.error(budget)
    monkeypatch.setattr(search, "LONG_CHAIN", 10**6)
    assert short == pytest.approx(shape.error(budget), rel=3e-3)


def test_the_last_block_counts_even_on_a_long_chain() -> None:
    # 4357 = 435·10 + 7 with fan-out 8: the first level alone holds the cells of the last block. A search that forgot them
    # would leave that level no budget.
    told = asked(4357, 10, td.Histogram("x"))
    found = price(OrderedHierarchical(8, "optimal"), *told, Fraction(1))
    assert found.expected_error < price(OrderedHierarchical(8), *told, Fraction(1)).expected_error


@given(st.integers(3, 80), st.integers(1, 80), st.integers(2, 9), st.integers(0, 2**32))
@examples(30)
def test_no_nearby_budget_is_better(size: int, theta: int, fanout: int, seed: int) -> None:
    told = asked(size, min(theta, size), td.CDF("x"))
    shape = looking(*told, Fraction(1)).shape(min(theta, size), fanout)
    budget = shape.chosen("optimal")
    rng = np.random.default_rng(seed)
    for _ in range(10):
        other = budget * np.exp(rng.normal(0, 0.2, len(budget)))
        assert shape.error(budget) <= shape.error(other / other.sum()) * (1 + 1e-3)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(2, 40), st.integers(2, 40))
@examples(200)
def test_shapes_are_told_apart_by_what_they_cut(size: int, block: int, one: int, two: int) -> None:
    block = min(block, size)
    same = select._cuts(size, block, one) == select._cuts(size, block, two)
    pieces = [
        [(p.starts.tolist(), p.widths.tolist()) for p in Forest(size, block, f).levels] for f in (one, two)
    ]
    assert same == (pieces[0] == pieces[1])


# ---------- rule 12(iii): public inputs only ----------


def test_rule_12_selection_takes_declarations_only() -> None:
    public = {"mechanism", "resolved", "hood", "loss", "forest", "chain_weight", "level_weights", "free", "search",
              "shape", "share", "levels", "weights", "blocks", "size", "block", "fanout", "strategy", "chain", "budget", "kept", "count"}  # fmt: skip
    for name, function in inspect.getmembers(select, inspect.isfunction):
        if function.__module__ == select.__name__:
            assert set(inspect.signature(function).parameters) <= public, name
    fields = (
        set(Search.__dataclass_fields__)
        | set(Neighbourhood.__dataclass_fields__)
        | set(Resolved.__dataclass_fields__)
        | set(Strategy.__dataclass_fields__)
    )
    assert fields == {"resolved", "hood", "loss", "graph", "classes", "records", "query", "domain", "groups", "axis", "filters", "workload",
                      "mechanism", "forest", "parts", "move", "people", "rows_vanish", "exempt"}  # fmt: skip


def test_rule_12_a_plan_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = td.Domain(x=td.Integer(0, 99), g=td.Categorical(["a", "b"]))
    table = td.Table({"x": [1, 2], "g": ["a", "b"]}, domain)

    def unreadable(*_: Any, **__: Any) -> Any:
        raise AssertionError("a plan touched the rows")

    monkeypatch.setattr(Table, "counts", unreadable)
    monkeypatch.setattr(Table, "n_rows", property(unreadable))
    monkeypatch.setattr("tetraodon.table.grouped", unreadable)
    session = td.Session(table, td.Policy(domain, td.AttributeWise()), epsilon=1)
    for query in (
        td.CDF("x", by="g"),
        td.Histogram("g"),
        td.Ranges("x"),
        td.Quantiles("x"),
        td.Sum("x"),
        td.Mean("x", by="g"),
    ):
        assert session.plan(query, epsilon=1)
    with pytest.raises(AssertionError, match="touched"):
        session.release(td.CDF("x"), epsilon=1)


def test_rule_12_the_choice_does_not_depend_on_the_rows() -> None:
    domain = td.Domain(x=td.Integer(0, 299))
    policy = td.Policy(domain, td.Within(30))
    names = set()
    for rows in ([], [5], [0, 299] * 50, list(range(300))):
        session = td.Session(td.Table({"x": np.array(rows, dtype=np.int64)}, domain), policy, epsilon=1)
        released = session.release(td.CDF("x"), epsilon=1)
        names.add(
            (
                str(released.mechanism),
                tuple(p.weight for p in released.strategy.parts),
                released.expected_error,
            )
        )
    assert len(names) == 1


def test_no_query_fails_to_find_a_mechanism() -> None:
    domain = td.Domain(x=td.Integer(0, 1), c=td.Categorical(["a"]), m=td.Integer(3, 3, missing="secret"))
    for secrets in (td.Full(), td.AttributeWise(), td.Nothing(), td.Within(1, on="x")):
        graph = td.Policy(domain, secrets).graph
        for query in (
            td.Histogram("x", "c", "m"),
            td.CDF("m", by="c"),
            td.Sum("m", by="x"),
            td.Mean("m"),
            td.Ranges("x"),
        ):
            try:
                assert candidates(resolve(query, domain), graph, Fraction(1))
            except TetraodonError as refused:
                pytest.fail(f"{query}: {refused}")
