"""Public counts in the estimate: the projection against dense least squares with equalities, and what is released."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import epsilon, rho
from strategies import examples

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers, outward, possible_cells
from tetraodon.mechanisms import Hierarchical, Identity, Ordered, OrderedHierarchical
from tetraodon.mechanisms.project import facts
from tetraodon.mechanisms.select import candidates, price
from tetraodon.mechanisms.strategy import Noisy, Strategy
from tetraodon.workload import Prefixes, resolve

DOMAIN = td.Domain(g=td.Categorical(["a", "b", "c"]), x=td.Integer(0, 5), h=td.Categorical(["p", "q"]))
SHAPE = (3, 6)
KNOWN: dict[str, list[Any]] = {
    "the axis": [td.MarginalConstraint("x")],
    "the groups": [td.MarginalConstraint("g")],
    "a range": [td.CountConstraint({"x": (1, 3)})],
    "two ranges": [td.CountConstraint({"x": (0, 1)}), td.CountConstraint({"x": (4, 5)})],
    "a corner": [td.CountConstraint({"x": (2, 5), "g": ["b"]})],
    "nothing that the query sees": [td.MarginalConstraint("h")],
    "half of what the query sees": [td.CountConstraint({"x": (1, 3), "h": ["p"]})],
    "nested": [td.CountConstraint({"x": (0, 3)}), td.CountConstraint({"x": (0, 1)})],
}
MECHANISMS = (
    Identity(),
    Ordered(),
    Hierarchical(2),
    Hierarchical(3, "optimal"),
    OrderedHierarchical(2, block=2),
)


def strategy_for(known: str, query: Any, mechanism: Any, loss: Any = None, secrets: Any = None) -> Strategy:
    policy = td.Policy(DOMAIN, secrets or td.AttributeWise(g=td.Full(), x=td.Within(2)), KNOWN[known])
    return price(mechanism, resolve(query, DOMAIN), policy.neighbourhood, loss or epsilon(1))


def dense(strategy: Strategy) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(facts as rows over all cells, covariance of the unprojected cells, covariance after): plain matrices."""
    resolved = strategy.resolved
    size, groups = resolved.n_positions, resolved.n_groups
    eye = np.eye(size)
    weights = strategy.weights
    pairs = list(itertools.combinations(range(size), 2))
    both = weights.rows_variance(np.array([eye[i] + eye[j] for i, j in pairs]))
    own = weights.cell_variance
    sigma = np.diag(own)
    for (i, j), v in zip(pairs, both, strict=True):
        sigma[i, j] = sigma[j, i] = (v - own[i] - own[j]) / 2
    whole = np.kron(np.eye(groups), sigma)
    told = facts(resolved, strategy.hood)
    rows = np.zeros((len(told), size * groups))
    for c, fact in enumerate(told):
        rows[c, fact.places] = 1
    after = whole.copy()
    if len(told):
        gain = whole @ rows.T @ np.linalg.pinv(rows @ whole @ rows.T, rcond=1e-9)
        after = whole - gain @ rows @ whole
    return rows, whole, after


@given(st.sampled_from(sorted(KNOWN)), st.sampled_from(MECHANISMS), st.booleans(), st.booleans())
@examples(60)
def test_variances_after_projection_equal_dense_least_squares(
    known: str, mechanism: Any, cells: bool, gaussian: bool
) -> None:
    query = td.Histogram("g", "x") if cells else td.CDF("x", by="g")
    strategy = strategy_for(known, query, mechanism, rho("1/2") if gaussian else epsilon(1))
    _, _, after = dense(strategy)
    size, groups = strategy.resolved.n_positions, strategy.resolved.n_groups
    prefixes = np.kron(np.eye(groups), np.tril(np.ones((size, size))))
    wanted = (
        np.diag(prefixes @ after @ prefixes.T)
        if isinstance(strategy.resolved.workload, Prefixes)
        else np.diag(after)
    )
    found = np.broadcast_to(strategy.answer_variance(), (groups, size)).ravel()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * max(1.0, float(wanted.max())))
    assert strategy.expected_error == pytest.approx(float(found.mean()), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("known", sorted(KNOWN))
def test_ranges_and_rows_after_projection_equal_dense_least_squares(known: str) -> None:
    ranges = strategy_for(known, td.Ranges("x", "all", by="g"), Hierarchical(2))
    _, _, after = dense(ranges)
    size, groups = 6, 3
    rows = np.array(
        [[float(a <= i < b) for i in range(size)] for a in range(size) for b in range(a + 1, size + 1)]
    )
    every = np.kron(np.eye(groups), rows)
    mean = float(np.diag(every @ after @ every.T).mean())
    assert ranges.expected_error == pytest.approx(mean, rel=1e-6)
    total = strategy_for(known, td.Sum("x", by="g"), Identity())
    _, _, after = dense(total)
    values = np.kron(np.eye(groups), np.arange(size)[None, :].astype(float))
    wanted = np.diag(values @ after @ values.T)
    np.testing.assert_allclose(
        np.broadcast_to(total.answer_variance(), (3, 1)).ravel(), wanted, rtol=1e-6, atol=1e-6
    )


def counted(table: np.ndarray, known: str) -> list[Any]:
    """The constraints with the answers of a table of counts (g, x, h)."""
    policy = td.Policy(DOMAIN, td.Full(), KNOWN[known])
    found: list[Any] = []
    for k in policy.known:
        codes = np.arange(DOMAIN.size)
        cells = dict(zip(DOMAIN.names, DOMAIN.decode(codes), strict=True))
        own = k.labels[k.domain.encode([cells[n] for n in k.domain.names])]
        numbers = np.bincount(own, weights=table.ravel(), minlength=k.n_labels).astype(int).tolist()
        if isinstance(k.declared, td.MarginalConstraint):
            found.append(td.MarginalConstraint(*k.domain.names, answers=numbers))
        else:
            found.append(td.CountConstraint(dict(k.declared.to_spec()["where"]), answer=numbers[1]))
    return [
        td.CountConstraint({n: tuple(v["between"]) if isinstance(v, dict) else v for n, v in c.to_spec()["where"].items()}, c.answer)
        if isinstance(c, td.CountConstraint) else c
        for c in found
    ]  # fmt: skip


@pytest.mark.parametrize("known", sorted(KNOWN))
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["identity", "ordered", "tree-2", "tree-3", "blocks"])
def test_linear_estimates_obey_the_public_counts(known: str, mechanism: Any) -> None:
    rng = np.random.default_rng(7)
    table = rng.integers(0, 50, (3, 6, 2))
    policy = td.Policy(DOMAIN, td.AttributeWise(g=td.Full(), x=td.Within(2)), counted(table, known))
    strategy = price(mechanism, resolve(td.CDF("x", by="g"), DOMAIN), policy.neighbourhood, epsilon(1))
    true = table.sum(axis=2)
    chain, levels = strategy.forest.apply(true)
    noisy = [
        (v + rng.normal(0, 3, v.shape) * ~p.exact).astype(float)
        for v, p in zip([chain, *levels], strategy.parts, strict=True)
    ]
    found = answers(strategy, Noisy(tuple(noisy), int(table.sum())))
    cells = np.diff(found.raw_prefix, axis=1).ravel()
    for fact in facts(strategy.resolved, strategy.hood):
        stated = fact.constant + fact.records * table.sum()
        assert stated == true.ravel()[fact.places].sum()
        assert cells[fact.places].sum() == pytest.approx(stated, abs=1e-6)
    assert (np.diff(found.prefix, axis=1) >= -1e-9).all()
    settled = np.broadcast_to(strategy.prefix_variance() == 0, found.prefix.shape)
    truth = np.concatenate([np.zeros((3, 1)), np.cumsum(true, axis=1)], axis=1)
    np.testing.assert_allclose(found.prefix[settled], truth[settled], atol=1e-6)


def test_answers_that_the_public_counts_settle_are_exact_and_cost_nothing() -> None:
    policy = td.Policy(DOMAIN, td.Full(), [td.MarginalConstraint("x")])
    best = candidates(resolve(td.CDF("x"), DOMAIN), policy.neighbourhood, epsilon(1))[0]
    assert best.expected_error == 0 and best.spent.amount == 0 and not best.draws


def test_a_strategy_best_without_constraints_can_be_poor_with_them() -> None:
    domain = td.Domain(x=td.Integer(0, 255))
    query = resolve(td.CDF("x"), domain)
    free = td.Policy(domain, td.Within(1)).neighbourhood
    known = td.Policy(domain, td.Within(1), [td.CountConstraint({"x": (0, 127)})]).neighbourhood
    assert isinstance(candidates(query, free, epsilon(1))[0].mechanism, Ordered)
    ranked = candidates(query, known, epsilon(1))
    ordered = next(s for s in ranked if isinstance(s.mechanism, Ordered))
    assert not isinstance(ranked[0].mechanism, Ordered)
    assert ranked[0].expected_error < ordered.expected_error / 10


def test_a_table_that_breaks_a_public_count_is_refused_before_anything_is_spent() -> None:
    domain = td.Domain(sex=td.Categorical(["F", "M"]), x=td.Integer(0, 3))
    rows = {"sex": ["F"] * 11 + ["M"] * 7, "x": [1] * 18}
    for constraint in (
        td.MarginalConstraint("sex", answers={"F": 10, "M": 8}),
        td.CountConstraint({"sex": ["F"]}, answer=10),
    ):
        policy = td.Policy(domain, td.Full(), [constraint])
        session = td.Session(td.Table(rows, domain), policy, epsilon=1)
        with pytest.raises(td.errors.DataError, match=r"does not have the stated answers of .*sex") as caught:
            session.release(td.Histogram("x"), "1/2")
        assert not {"11", "7", "18"} & set(str(caught.value).replace(".", " ").split())
        assert session.remaining.epsilon == 1
    policy = td.Policy(domain, td.Full(), [td.MarginalConstraint("sex", answers={"F": 11, "M": 7})])
    made = td.Session(td.Table(rows, domain), policy, epsilon=1).release(td.Histogram("sex", "x"), "1/2")
    assert made.spent.amount == Fraction(1, 2)
    assert made.to_frame().groupby("sex")["value"].sum().tolist() == pytest.approx([11, 7])


def test_answers_are_needed_to_release_and_not_to_plan() -> None:
    domain = td.Domain(sex=td.Categorical(["F", "M"]), x=td.Integer(0, 3))
    session = td.Session(
        td.Table({"sex": ["F"], "x": [1]}, domain),
        td.Policy(domain, td.Full(), [td.MarginalConstraint("sex")]),
        epsilon=1,
    )
    assert session.plan(td.Histogram("x"), 1)[0].expected_error > 0
    with pytest.raises(td.errors.SpecificationError, match="no answer is stated"):
        session.release(td.Histogram("x"), 1)
    assert session.remaining.epsilon == 1


@given(st.lists(st.floats(-20, 60), min_size=6, max_size=6), st.floats(0, 100), st.floats(0, 100))
@examples(100)
def test_possible_cells_are_the_nearest_with_the_known_sums(
    told: list[float], one: float, two: float
) -> None:
    from scipy.optimize import minimize

    cells = np.array([told])
    sums = [(np.array([0, 1, 2]), one), (np.array([3, 4]), two)]
    found = possible_cells(cells, sums)[0]
    assert (found >= 0).all() and found[5] == max(told[5], 0)
    for places, total in sums:
        assert found[places].sum() == pytest.approx(total, abs=1e-6)
        v = cells[0, places]
        ranked = minimize(
            lambda x, v=v: float(((x - v) ** 2).sum()), np.full(len(v), total / len(v)), bounds=[(0, None)] * len(v),
            constraints={"type": "eq", "fun": lambda x, total=total: float(x.sum() - total)}, method="SLSQP",
        )  # fmt: skip
        assert ((found[places] - v) ** 2).sum() <= ranked.fun * (1 + 1e-6) + 1e-4


def test_overlapping_known_sums_are_met_together() -> None:
    cells = np.array([[5.0, -3.0], [1.0, 9.0]])
    sums = [
        (np.array([0, 1]), 4.0),
        (np.array([2, 3]), 8.0),
        (np.array([0, 2]), 5.0),
        (np.array([1, 3]), 7.0),
    ]
    found = possible_cells(cells, sums).ravel()
    for places, total in sums:
        assert found[places].sum() == pytest.approx(total, abs=1e-6)
    assert (found >= 0).all()


def test_published_cumulative_counts_agree_with_a_public_range_as_far_as_possible() -> None:
    domain = td.Domain(x=td.Integer(0, 19))
    rows = np.random.default_rng(4).integers(0, 20, 100)
    known = int(((rows >= 4) & (rows <= 9)).sum())
    policy = td.Policy(domain, td.Within(3), [td.CountConstraint({"x": (4, 9)}, answer=known)])
    strategy = candidates(resolve(td.CDF("x"), domain), policy.neighbourhood, epsilon("1/4"))[0]
    apart, table = [], np.bincount(rows, minlength=20)[None, :]
    for _ in range(30):
        with noise.reserve(strategy.draws) as held:
            values = answers(strategy, strategy.observe(table, 100, held)).prefix[0]
        assert (np.diff(values) >= -1e-9).all() and values[0] == 0 and values[-1] == 100
        apart.append(abs(values[10] - values[4] - known))
    assert max(apart) < 0.5 and float(np.mean(apart)) < 0.05


def test_intervals_of_a_few_records_end_at_whole_numbers() -> None:
    linear = np.array([3.02, 5.0, 7.4])
    widened = outward(linear, np.array([1.0, 0.0, 12.0]))
    assert (linear + widened)[0] == pytest.approx(5) or (linear - widened)[0] == pytest.approx(2)
    assert linear[0] - widened[0] <= 2.02 and linear[0] + widened[0] >= 4.02
    assert widened[1:].tolist() == [0.0, 12.0]
