"""What a strategy costs: ε exactly, by an oracle that goes through every edge; exact rows never move."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import brute
from oracle import mechanisms as oracle
from pricing import candidates, looking, price
from strategies import asked_policies, attributes, examples, policies, questions
from strategies import secrets as all_secrets

import tetraodon as td
from tetraodon import noise
from tetraodon.errors import SpecificationError, TetraodonError, Unsupported
from tetraodon.loss import Loss
from tetraodon.mechanisms import (
    Direct,
    Hierarchical,
    Identity,
    Ordered,
    OrderedHierarchical,
    mechanism_from_spec,
)
from tetraodon.mechanisms.build import build
from tetraodon.mechanisms.forest import Forest
from tetraodon.mechanisms.strategy import Strategy
from tetraodon.sensitivity.rows import Matrix
from tetraodon.workload import Rows, resolve

PAPER = [(4357, t) for t in (1, 10, 50, 100, 500, 1000, 4356)] + [(400, t) for t in (1, 9, 90, 399)]
SECTION_D = [(64, 4, 4), (64, 4, 2), (64, 8, 2), (64, 16, 4)]
EPSILONS = st.sampled_from((Fraction(1), Fraction(1, 10), Fraction(3, 7), Fraction(5)))


def along(
    size: int, theta: int, mechanism: Any, query: str = "Ranges", epsilon: Fraction = Fraction(1)
) -> Strategy:
    """A mechanism on positions 0 … size − 1 whose secrets are distances up to theta."""
    domain = td.Domain(x=td.Integer(0, size - 1))
    graph = td.Policy(domain, td.Within(theta)).graph
    return price(mechanism, resolve(getattr(td, query)("x"), domain), graph, epsilon)


# ---------- cost = ε ----------


@pytest.mark.parametrize(("size", "theta"), PAPER)
@pytest.mark.parametrize(
    "mechanism",
    [
        Ordered(),
        Hierarchical(16),
        Hierarchical(16, "optimal"),
        OrderedHierarchical(16),
        OrderedHierarchical(16, "geometric"),
    ],
    ids=str,
)
def test_the_papers_cases_cost_epsilon_exactly(size: int, theta: int, mechanism: Any) -> None:
    assert oracle.threshold_cost(along(size, theta, mechanism), theta) == 1


@pytest.mark.parametrize(("size", "theta", "fanout"), SECTION_D)
def test_the_published_split_breaks_its_promise_and_ours_does_not(size: int, theta: int, fanout: int) -> None:
    share = oracle.best_split(size, theta, fanout)
    published = oracle.tree_cost(oracle.published_tree(size, theta, fanout, share, "published"), size, theta)
    golden = {(4, 4): 1.3250, (4, 2): 1.1101, (8, 2): 1.0657, (16, 4): 1.1500}[theta, fanout]
    assert float(published) == pytest.approx(golden, abs=5e-5) and published > 1
    repaired = oracle.published_tree(size, theta, fanout, share, "repaired")
    assert oracle.tree_cost(repaired, size, theta) == 1
    ours = along(size, theta, OrderedHierarchical(fanout, block=theta, split=share))
    assert oracle.threshold_cost(ours, theta) == 1
    scale = {n.scale for n in repaired}
    asked = {ours.scale(p) for p in ours.parts}
    assert {round(float(s), 6) for s in scale} == {round(float(s), 6) for s in asked if s is not None}


def test_ragged_blocks_cost_less_and_the_rest_is_used() -> None:
    # |T| = 8, θ = 7, fan-out 2: no edge changes both the chain and two whole paths of a tree.
    share = Fraction(21, 100)
    plain = oracle.published_tree(8, 7, 2, share, "repaired")
    assert oracle.tree_cost(plain, 8, 7) == Fraction(79, 100)
    ours = along(8, 7, OrderedHierarchical(2, block=7, split=share))
    assert oracle.threshold_cost(ours, 7) == 1
    chain, *trees = ours.parts
    assert ours.scale(chain) == Fraction(79, 100) / share
    assert {ours.scale(p) for p in trees} == {Fraction(79, 100) * 6 / (1 - share)}


def test_many_ragged_trees_would_leave_budget_unused() -> None:
    rng = np.random.default_rng(12)
    cheaper = 0
    for _ in range(250):
        size = int(rng.integers(2, 65))
        theta, fanout = int(rng.integers(1, size + 1)), int(rng.integers(2, 7))
        share = (
            Fraction(0)
            if theta == size
            else Fraction(1)
            if theta == 1
            else Fraction(int(rng.integers(1, 10)), 10)
        )
        cost = oracle.tree_cost(
            oracle.published_tree(size, theta, fanout, share, "repaired"), size, min(theta, size - 1)
        )
        assert cost <= 1
        cheaper += cost < 1
    assert cheaper > 25


@given(st.data())
@examples(250)
def test_random_shapes_cost_epsilon_exactly(data: Any) -> None:
    size = data.draw(st.integers(2, 64))
    theta, fanout = data.draw(st.integers(1, size)), data.draw(st.integers(2, 9))
    kind = data.draw(st.sampled_from(("uniform", "geometric", "optimal")))
    block = data.draw(st.none() | st.integers(1, size))
    split = data.draw(st.none() | st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50))
    mechanism = data.draw(
        st.sampled_from(
            (
                Ordered(),
                Identity(),
                Hierarchical(fanout, kind),
                OrderedHierarchical(fanout, kind, block, split),
            )
        )
    )
    epsilon = data.draw(EPSILONS)
    query = data.draw(st.sampled_from(("CDF", "Ranges", "Histogram", "Quantiles")))
    strategy = along(size, theta, mechanism, query, epsilon)
    assert strategy.spent.amount == strategy.cost.value == epsilon
    assert oracle.threshold_cost(strategy, min(theta, size - 1)) == epsilon
    for rows, applied in zip(oracle.part_rows(strategy), observed_matrix(strategy), strict=True):
        assert np.array_equal(rows, applied)


def observed_matrix(strategy: Strategy) -> list[Any]:
    """What the strategy really computes from a table: its rows, from one record at a time."""
    size = strategy.resolved.n_positions
    return [part.T for part in strategy._apply(np.eye(size, dtype=np.int64))]


# ---------- every graph, groups, filters, bins, special cells ----------


def check_cost(policy: td.Policy, asked: brute.Asked, mechanism: Any, epsilon: Fraction) -> Strategy:
    """Price a mechanism; the oracle's cost over the brute-force graph is ε, or 0 where every row is free."""
    resolved = resolve(asked.query(), policy.domain)
    strategy = price(mechanism, resolved, policy.graph, epsilon)
    edges = brute.edges(brute.adjacency(policy.domain, policy.secrets))
    if strategy.forest is None:
        cost = direct_cost(strategy, asked, policy.domain, edges)
    else:
        axis = None if resolved.axis is None else resolved.axis.name
        moves = oracle.edge_places(oracle.places(asked, policy.domain, axis), edges)
        cost = oracle.strategy_cost(strategy, moves)
    assert cost == strategy.spent.amount
    assert strategy.spent.amount in (0, epsilon)
    return strategy


def direct_cost(
    strategy: Strategy, asked: brute.Asked, domain: td.Domain, edges: set[tuple[int, int]]
) -> Fraction:
    """Cost of the question's own rows, from what one record contributes to each answer."""
    columns = brute.rows(asked, domain)
    workload = strategy.resolved.workload
    assert isinstance(workload, Rows)
    unit = [workload.denominator] * len(workload.matrix)
    owners = list(strategy.parts) if len(strategy.parts) > 1 else [strategy.parts[0]] * len(workload.matrix)
    if asked.word == "Mean":
        unit[1] = 1
    best = Fraction(0)
    for a, b in edges:
        cost = Fraction(0)
        for r, (x, y) in enumerate(zip(columns[a], columns[b], strict=True)):
            row = r % len(workload.matrix)
            scale = strategy.scale(owners[row])
            if scale is None:
                assert x == y, "a row that is published exactly moves along an edge"
            else:
                cost += abs(x - y) * unit[row] / scale
        best = max(best, cost)
    return best


@given(asked_policies(), st.data(), EPSILONS)
@examples(150)
def test_any_question_under_any_graph_costs_epsilon_exactly(told: Any, data: Any, epsilon: Fraction) -> None:
    policy, asked = told
    fanout = data.draw(st.integers(2, 5))
    kind = data.draw(st.sampled_from(("uniform", "geometric", "optimal")))
    options: list[Any] = [
        Identity(),
        Ordered(),
        Hierarchical(fanout, kind),
        OrderedHierarchical(fanout, kind),
    ]
    if asked.word in ("Sum", "Mean", "Linear"):
        options = [Direct()] if asked.word == "Mean" else [Direct(), *options]
    mechanism = data.draw(st.sampled_from(options))
    if resolve(asked.query(), policy.domain).n_positions < 2 and not isinstance(mechanism, Identity | Direct):
        with pytest.raises(SpecificationError):
            check_cost(policy, asked, mechanism, epsilon)
        return
    check_cost(policy, asked, mechanism, epsilon)


@st.composite
def longer(draw: Any) -> Any:
    """A long axis beside a short one, at most 64 cells in all."""
    size = draw(st.integers(6, 16))
    domain = td.Domain(
        a=draw(attributes(size, ("integer", "numeric"))), b=draw(attributes(draw(st.integers(2, 4))))
    )
    return td.Policy(domain, draw(all_secrets(domain))), draw(questions(domain))


@given(longer(), st.data(), EPSILONS)
@examples(60)
def test_longer_axes_with_groups_cost_epsilon_exactly(told: Any, data: Any, epsilon: Fraction) -> None:
    policy, asked = told
    assume(asked.word not in ("Mean", "Sum"))
    resolved = resolve(asked.query(), policy.domain)
    assume(resolved.n_positions > 1)
    fanout = data.draw(st.integers(2, 5))
    block = data.draw(st.none() | st.integers(1, resolved.n_positions))
    mechanism = data.draw(
        st.sampled_from(
            (Ordered(), Hierarchical(fanout, "optimal"), OrderedHierarchical(fanout, "uniform", block))
        )
    )
    check_cost(policy, asked, mechanism, epsilon)


@given(asked_policies())
@examples(60)
def test_whatever_a_plan_offers_costs_epsilon_exactly(told: Any) -> None:
    policy, asked = told
    for strategy in candidates(resolve(asked.query(), policy.domain), policy.graph, Fraction(2)):
        assert check_cost(policy, asked, strategy.mechanism, Fraction(2)).spent == strategy.spent


# ---------- totals ----------


def test_a_total_with_protected_groups_is_noised() -> None:
    # Groups are secret: how many records each holds changes along an edge, so the last prefix sum carries noise.
    domain = td.Domain(x=td.Integer(0, 9), sex=td.Categorical(["f", "m"]))
    query = resolve(td.CDF("x", by="sex"), domain)
    for mechanism in (Ordered(), Hierarchical(4), OrderedHierarchical(4)):
        protected = price(mechanism, query, td.Policy(domain, td.AttributeWise()).graph, Fraction(1))
        assert not protected.parts[0].exact.any()
        assert (
            price(mechanism, query, td.Policy(domain, td.Within(2, on="x")).graph, Fraction(1))
            .parts[0]
            .exact[-1]
        )


def test_a_total_is_noised_where_a_secret_value_is_filtered_out() -> None:
    domain = td.Domain(x=td.Integer(0, 9, missing="secret"))
    graph = td.Policy(domain, td.Within(1)).graph
    everyone = price(Ordered(), resolve(td.CDF("x"), domain), graph, Fraction(1))
    answered = price(Ordered(), resolve(td.CDF("x", where={"x": (0, 9)}), domain), graph, Fraction(1))
    assert everyone.parts[0].exact[-1] and not answered.parts[0].exact.any()


def test_a_mean_splits_its_budget_evenly_between_total_and_secret_count() -> None:
    domain = td.Domain(x=td.Integer(-3, 9, missing="secret"))
    strategy = price(
        Direct(), resolve(td.Mean("x"), domain), td.Policy(domain, td.Full()).graph, Fraction(1, 5)
    )
    total, count = (strategy.scale(p) for p in strategy.parts)
    assert total is not None and count is not None
    # The total moves by up to 12, the count by 1: alike in budget, and less than their sum along any one edge (9 to missing).
    assert (total, count) == (12 * count, Fraction(9 + 12, 12) * 5)
    public = td.Domain(x=td.Integer(-3, 9))
    strategy = price(
        Direct(), resolve(td.Mean("x"), public), td.Policy(public, td.Full()).graph, Fraction(1, 5)
    )
    assert [strategy.scale(p) for p in strategy.parts] == [60, None]


def test_exact_rows_of_a_partition_are_the_ends_of_its_blocks() -> None:
    domain = td.Domain(x=td.Integer(0, 9))
    graph = td.Policy(domain, td.Partition(blocks=2)).graph
    found = price(Ordered(), resolve(td.CDF("x"), domain), graph, Fraction(1)).parts[0].exact
    assert np.flatnonzero(found).tolist() == [4, 9]


# ---------- golden numbers ----------


@pytest.mark.parametrize(
    ("size", "theta", "golden"),
    [
        (4357, 4357, 3557.7), (4357, 1000, 2885.2), (4357, 500, 2893.6), (4357, 100, 1017.4), (4357, 50, 822.6),
        (4357, 10, 192.8), (400, 400, 1249.6), (400, 90, 847.3), (400, 9, 174.4),
    ],
)  # fmt: skip
def test_repaired_trees_reproduce_the_published_error(size: int, theta: int, golden: float) -> None:
    # Prefix walks, continuous Laplace variance 2·scale², with the scales that our own strategy sets at the paper's split.
    share = oracle.best_split(size, theta, 16)
    if theta == size:
        ours = along(size, theta, Hierarchical(16, "uniform"))
    else:
        ours = along(size, theta, OrderedHierarchical(16, "uniform", block=theta, split=share))
    nodes = oracle.published_tree(size, theta, 16, share, "repaired")
    chain = ours.scale(ours.parts[0])
    trees = {ours.scale(p) for p in ours.parts[1:]}
    (tree,) = trees
    told = [
        oracle.Node(
            n.start, n.end, tree if n.scale == 2 * (len(ours.parts) - 1) / (1 - share) else chain, n.used
        )
        for n in nodes
    ]
    assert oracle.walk_error(told, size) == pytest.approx(golden, rel=1e-3)
    assert ours.expected_error <= oracle.walk_error(told, size)


@pytest.mark.parametrize("size", [4357, 400])
def test_line_graph_ranges_reproduce_the_published_error(size: int) -> None:
    ours = along(size, 1, Ordered())
    assert ours.scale(ours.parts[0]) == 1
    nodes = oracle.published_tree(size, 1, 16, Fraction(1), "repaired")
    assert oracle.walk_error(nodes, size) == pytest.approx(4 * (size - 1) / (size + 1))
    # With the sampler's own variance, 1.841 instead of 2 a row; a range has two ends unless one of them is the end.
    assert 2 * noise.discrete_laplace_variance(1) == pytest.approx(3.683, abs=5e-4)
    assert ours.expected_error == pytest.approx(3.683 * (size - 1) / (size + 1), rel=2e-4)


# ---------- rules of the mathematics, by name ----------


def test_rule_4_strategies_are_integer_matrices() -> None:
    domain = td.Domain(x=td.Integer(0, 12))
    graph = td.Policy(domain, td.Within(3)).graph
    for mechanism in (Identity(), Ordered(), Hierarchical(3, "geometric"), OrderedHierarchical(3, "optimal")):
        strategy = price(mechanism, resolve(td.CDF("x"), domain), graph, Fraction(1, 3))
        for part, applied in zip(strategy.parts, observed_matrix(strategy), strict=True):
            assert applied.dtype == np.int64 and isinstance(part.weight, int)
    linear = price(
        Direct(), resolve(td.Linear([[1] * 13, list(range(13))], "x"), domain), graph, Fraction(1, 3)
    )
    assert observed_matrix(linear)[0].dtype == np.int64


def test_one_draw_moves_an_answer_by_its_span_from_nothing() -> None:
    """Where it is at most 1, nothing is said."""
    domain = td.Domain(x=td.Integer(0, 2))
    matrix = [[-3, -2, -1], [1, 2, 3], [-1, 0, 2], [-1, 0, 0], [0, 1, 1], [-1, 1, 0]]
    strategy = price(
        Ordered(), resolve(td.Linear(matrix, "x"), domain), td.Policy(domain, td.Full()).graph, Fraction(1)
    )
    assert strategy.jumps.tolist() == [3, 3, 3, 0, 0, 2]


def test_the_largest_entry_of_any_part_decides_how_many_records_are_admitted() -> None:
    small, large = (SimpleNamespace(layer=Matrix(np.array([[v, -1]]))) for v in (1, -4))
    told: Any = SimpleNamespace(
        forest=None, parts=(small, large), resolved=resolve(td.CDF("x"), td.Domain(x=td.Integer(0, 1)))
    )
    Strategy.admit(told, 2**59 - 1)
    with pytest.raises(Unsupported, match=r"could exceed 2\^61"):
        Strategy.admit(told, 2**59)


@pytest.mark.parametrize(
    "matrix", [[[0.5, 1.0]], [[1.0, 0.0]], np.ones((1, 2)), [[True, False]], [["1", "0"]]]
)
def test_rule_4_linear_refuses_anything_but_integers(matrix: Any) -> None:
    with pytest.raises(SpecificationError, match="integers"):
        td.Linear(matrix, "x")


@given(st.data())
@examples(40)
def test_rule_4_observed_rows_are_integers_before_reconstruction(data: Any) -> None:
    size = data.draw(st.integers(2, 20))
    mechanism = data.draw(
        st.sampled_from(
            (Identity(), Ordered(), Hierarchical(3, "optimal"), OrderedHierarchical(2, "geometric"))
        )
    )
    strategy = along(size, data.draw(st.integers(1, size)), mechanism, "CDF", Fraction(2, 7))
    table = np.array([data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))])
    with noise.reserve(strategy.draws) as held:
        seen = strategy.observe(table, int(table.sum()), held)
    for values in seen.values:
        assert (values == np.round(values)).all()


def test_rule_15_the_noise_of_a_release_is_reserved_by_its_declaration() -> None:
    strategy = along(40, 5, OrderedHierarchical(4), "CDF")
    told = {(scale, count) for scale, count in strategy.draws}
    rows = oracle.part_rows(strategy)
    counted = {
        (strategy.scale(p), int((~p.exact).sum())) for p in strategy.parts if strategy.scale(p) is not None
    }
    assert told == counted and sum(c for _, c in told) == sum(map(len, rows)) - strategy.n_exact
    with noise.reserve(strategy.draws) as held:
        strategy.observe(np.ones((1, 40), dtype=np.int64), 40, held)
        assert "0 draw(s) left" in repr(held)


@given(policies())
@examples(30)
def test_without_secrets_everything_is_exact_and_free(policy: td.Policy) -> None:
    nothing = td.Policy(policy.domain, td.Nothing())
    assume(not nothing.graph.has_edges)
    for name in policy.domain:
        (best, *_) = candidates(resolve(td.Histogram(name), policy.domain), nothing.graph, Fraction(1))
        assert best.spent.is_zero and best.expected_error == 0 and not best.draws


# ---------- shapes ----------


@given(st.integers(1, 300), st.integers(1, 300), st.integers(2, 40))
@examples(200)
def test_forests_are_the_shape_of_the_definition(size: int, block: int, fanout: int) -> None:
    block = min(block, size)
    forest = Forest(size, block, fanout)
    assert forest.ends.tolist() == [e for _, e in oracle.blocks(size, block)]
    assert forest.height == oracle.depth_of(block, fanout)
    found = [list(zip(p.starts.tolist(), (p.starts + p.widths).tolist(), strict=True)) for p in forest.levels]
    assert found == oracle.levels(size, block, fanout)
    singles = sum(1 for level in found for s, e in level if e - s == 1)
    assert singles + sum(1 for s, e in oracle.blocks(size, block) if e - s == 1) == size


def test_heights_are_whole_powers() -> None:
    # In floating point log(125, 5) and log(216, 6) round up to 4 levels.
    assert math.ceil(math.log(125, 5)) == 4
    assert Forest(125, 125, 5).height == 3 and Forest(216, 216, 6).height == 3


# ---------- options ----------


@pytest.mark.parametrize("fanout", [1, 0, -3, 2.5, True, "4"])
def test_fanouts_that_make_no_tree_are_refused(fanout: Any) -> None:
    for kind in (Hierarchical, OrderedHierarchical):
        with pytest.raises(SpecificationError, match="fanout"):
            kind(fanout)


@pytest.mark.parametrize("split", [0, 1, -1, 2, "nan", math.inf, True])
def test_splits_that_leave_one_side_without_budget_are_refused(split: Any) -> None:
    with pytest.raises(SpecificationError, match="split"):
        OrderedHierarchical(4, split=split)


@pytest.mark.parametrize(
    "mechanism",
    [
        Identity(),
        Ordered(),
        Direct(),
        Hierarchical(5, "geometric"),
        OrderedHierarchical(3, "optimal", 7, "1/3"),
    ],
    ids=str,
)
def test_mechanisms_survive_their_specification(mechanism: Any) -> None:
    assert mechanism_from_spec(mechanism.to_spec()) == mechanism


def test_mechanisms_that_do_not_apply_are_refused_by_name() -> None:
    domain = td.Domain(x=td.Integer(0, 9), colour=td.Categorical(["a", "b"]))
    graph = td.Policy(domain, td.Full()).graph
    with pytest.raises(SpecificationError, match="direct"):
        price(Direct(), resolve(td.CDF("x"), domain), graph, Fraction(1))
    with pytest.raises(SpecificationError, match="total"):
        price(Identity(), resolve(td.Mean("x"), domain), graph, Fraction(1))
    with pytest.raises(SpecificationError, match="two cells"):
        price(Ordered(), resolve(td.Histogram("colour"), domain), graph, Fraction(1))
    with pytest.raises(SpecificationError, match="no mechanism"):
        mechanism_from_spec("orderd")
    with pytest.raises(SpecificationError):
        mechanism_from_spec({"ordered": {"speed": 3}})


def test_trees_beyond_their_size_are_refused() -> None:
    domain = td.Domain(x=td.Integer(0, 2**24))
    graph = td.Policy(domain, td.Within(1)).graph
    with pytest.raises(Unsupported, match="2\\^23"):
        price(Hierarchical(2), resolve(td.CDF("x"), domain), graph, Fraction(1))


@pytest.mark.parametrize(
    "split",
    [
        "0.498618632572852",
        "0.12345678901234567",
        0.1 + 0.2,
        Fraction(1, 3**60),
        1 - Fraction(1, 10**18),
        "1e-300",
    ],
)
def test_a_split_of_many_digits_is_priced_exactly(split: Any) -> None:
    # Weights of 60 bits and more wrap in 64-bit arithmetic and understate the cost (the first of these: 1.99 ε for ε).
    try:
        strategy = along(60, 7, OrderedHierarchical(2, "geometric", block=7, split=split))
    except TetraodonError:
        return
    assert oracle.threshold_cost(strategy, 7) == 1


def test_weights_beyond_exact_pricing_are_refused() -> None:
    domain = td.Domain(x=td.Integer(0, 59))
    search = looking(resolve(td.CDF("x"), domain), td.Policy(domain, td.Within(7)).graph, Fraction(1))
    forest = Forest(60, 7, 2)
    parts = (1 << 61, (1 << 61,) * forest.height)
    with pytest.raises(Unsupported, match="price exactly"):
        build(
            Ordered(), search.resolved, search.hood, Loss("epsilon", Fraction(1)), forest, *parts, search.free
        )


def test_signatures_of_pricing_take_no_table() -> None:
    for function in (price, candidates):
        assert "table" not in inspect.signature(function).parameters
