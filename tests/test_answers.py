"""Post-processing: made possible without raising the error, from noisy values alone."""

from __future__ import annotations

import inspect
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import price
from scipy.optimize import isotonic_regression
from strategies import examples

import tetraodon as td
from tetraodon import answers as module
from tetraodon import noise
from tetraodon.answers import Answers, answers, possible_prefixes, quantile_positions
from tetraodon.mechanisms import Direct, Hierarchical, Identity, Ordered, OrderedHierarchical
from tetraodon.mechanisms.strategy import Noisy, Strategy
from tetraodon.workload import Rows, resolve

FOREST = (Identity(), Ordered(), Hierarchical(3), OrderedHierarchical(3, "optimal", 4))


# ---------- prefix sums ----------


@st.composite
def noisy_prefixes(draw: Any) -> tuple[Any, Any, Any, float]:
    """(truth, raw, variance, total): non-decreasing truths in [0, total], exact where the variance is 0."""
    size = draw(st.integers(1, 12))
    steps = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    truth = np.concatenate([[0.0], np.cumsum(steps)])
    total = float(truth[-1]) + draw(st.sampled_from((0.0, 0.0, 7.0)))
    spread = st.sampled_from((0.0, 0.3, 1.0, 20.0, 400.0))
    variance = np.array([0.0, *draw(st.lists(spread, min_size=size, max_size=size))])
    shift = draw(st.lists(st.floats(-60, 60, width=16), min_size=size + 1, max_size=size + 1))
    raw = np.where(variance > 0, truth + np.array(shift), truth)
    return truth, raw, variance, total


@given(noisy_prefixes())
@examples(500)
def test_making_prefixes_possible_never_raises_the_weighted_error(told: Any) -> None:
    truth, raw, variance, total = told
    fitted = possible_prefixes(raw[None, :], variance, total)[0]
    loud = variance > 0

    def weighted(values: Any) -> float:
        return float((((values - truth) ** 2)[loud] / variance[loud]).sum())

    assert weighted(fitted) <= weighted(raw) * (1 + 1e-9) + 1e-9
    assert np.array_equal(fitted[~loud], raw[~loud]), "exact entries are kept"
    assert (np.diff(fitted) >= 0).all()
    assert fitted[0] == 0 and fitted.min() >= 0 and fitted.max() <= total


@given(noisy_prefixes())
@examples(200)
def test_what_is_possible_already_stays(told: Any) -> None:
    truth, _, variance, total = told
    assert np.allclose(possible_prefixes(truth[None, :], variance, total)[0], truth)


@given(noisy_prefixes())
@examples(200)
def test_no_possible_vector_is_closer_to_the_linear_estimate(told: Any) -> None:
    # KKT on the pools between exact entries: a part of a pool may move down from the left or up from the right, unless a
    # bound holds it; no such move gets nearer.
    _, raw, variance, total = told
    exact = variance <= 0
    low = np.maximum.accumulate(np.where(exact, raw, 0.0))
    high = np.minimum.accumulate(np.where(exact, raw, total)[::-1])[::-1]
    fitted = possible_prefixes(raw[None, :], variance, total)[0]
    weight = 1 / np.where(exact, 1.0, variance)
    runs = np.cumsum(exact)
    keys = [(runs[i], round(float(fitted[i]), 9)) for i in range(len(raw))]
    for _, group in itertools.groupby((i for i in range(len(raw)) if not exact[i]), key=lambda i: keys[i]):
        pool = list(group)
        value = fitted[pool[0]]
        for cut in range(len(pool) + 1):
            left, right = pool[:cut], pool[cut:]
            if left and value > low[pool[0]] + 1e-9:
                assert np.average(raw[left], weights=weight[left]) >= value - 1e-6
            if right and value < high[pool[0]] - 1e-9:
                assert np.average(raw[right], weights=weight[right]) <= value + 1e-6


def test_rule_12_unweighted_isotonic_regression_worsens_and_ours_does_not() -> None:
    # Standard deviations 20, 1, 1 and truth 0, 0, 50: pooling all alike drags the accurate entries along.
    rng = np.random.default_rng(0)
    runs, truth, deviation = 4000, np.array([0.0, 0.0, 50.0]), np.array([20.0, 1.0, 1.0])
    raw = np.concatenate([np.zeros((runs, 1)), truth + rng.normal(size=(runs, 3)) * deviation], axis=1)
    ours = possible_prefixes(raw, np.append(0.0, deviation**2), 1e6)
    alike = np.stack([isotonic_regression(row).x for row in raw])

    def last_range(values: Any) -> float:
        return float(((values[:, 3] - values[:, 2] - 50) ** 2).mean())

    assert last_range(raw) == pytest.approx(2.0, rel=0.15)
    assert last_range(alike) > 20
    assert last_range(ours) <= last_range(raw)


def test_prefixes_of_many_groups_are_fitted_one_by_one() -> None:
    rng = np.random.default_rng(1)
    raw = np.concatenate([np.zeros((5, 1)), np.cumsum(rng.normal(1, 3, (5, 8)), axis=1)], axis=1)
    variance = np.append(0.0, rng.uniform(0.5, 4, 8))
    together = possible_prefixes(raw, variance, 20.0)
    for group in range(5):
        assert np.array_equal(together[group], possible_prefixes(raw[group : group + 1], variance, 20.0)[0])


# ---------- published answers ----------


def observed(strategy: Strategy, table: Any) -> Noisy:
    with noise.reserve(strategy.draws) as held:
        return strategy.observe(table, int(table.sum()), held)


def strategy_for(query: Any, mechanism: Any, secrets: Any, size: int = 12, epsilon: Any = 1) -> Strategy:
    domain = td.Domain(x=td.Integer(0, size - 1), g=td.Integer(0, 1))
    return price(mechanism, resolve(query, domain), td.Policy(domain, secrets).graph, Fraction(epsilon))


SECRETS = (
    td.AttributeWise(x=td.Within(2)),
    td.AttributeWise(x=td.Within(2), g=td.Full()),
    td.AttributeWise(x=td.Partition(blocks=3)),
)


@given(st.data())
@examples(150)
def test_published_counts_are_possible(data: Any) -> None:
    by = data.draw(st.sampled_from(((), ("g",))))
    query = data.draw(
        st.sampled_from(
            (
                td.Histogram("x", by=by),
                td.CDF("x", by=by),
                td.Ranges("x", by=by),
                td.Ranges("x", [(0, 3), (2, 9)], by=by),
            )
        )
    )
    epsilon = data.draw(st.sampled_from((Fraction(1, 50), Fraction(1), Fraction(20))))
    strategy = strategy_for(
        query, data.draw(st.sampled_from(FOREST)), data.draw(st.sampled_from(SECRETS)), epsilon=epsilon
    )
    groups = strategy.resolved.n_groups
    table = np.array(
        data.draw(
            st.lists(
                st.lists(st.sampled_from((0, 1, 9, 999_983)), min_size=12, max_size=12),
                min_size=groups,
                max_size=groups,
            )
        )
    )
    total = int(table.sum())
    found = answers(strategy, observed(strategy, table))
    assert (found.lower <= found.values).all() and (found.values <= found.upper).all()
    assert found.lower.min() >= 0 and found.upper.max() <= total
    if found.prefix is not None:
        assert (np.diff(found.prefix, axis=1) >= 0).all()
        assert found.prefix.min() >= 0 and found.prefix.max() <= total
        exact = strategy.weights.prefix_variance == 0
        true = np.concatenate([np.zeros((groups, 1)), np.cumsum(table, axis=1)], axis=1)
        assert np.array_equal(found.prefix[:, exact], true[:, exact])


@pytest.mark.parametrize("mechanism", FOREST[1:], ids=str)
def test_cells_in_order_add_up_to_an_exact_total(mechanism: Any) -> None:
    strategy = strategy_for(td.Histogram("x"), mechanism, SECRETS[0])
    table = np.arange(12)[None, :]
    # (Cells of the identity are clamped one by one and need not.)
    assert answers(strategy, observed(strategy, table)).values.sum() == pytest.approx(table.sum())


@pytest.mark.parametrize("mechanism", [Direct(), *FOREST], ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1)], ids=str)
def test_sums_stay_between_what_the_bounds_allow(mechanism: Any, epsilon: Fraction) -> None:
    # Ten records between 3 and 14 add up to between 0 (none) and 140, whatever the noise says.
    domain = td.Domain(x=td.Integer(3, 14))
    strategy = price(mechanism, resolve(td.Sum("x"), domain), td.Policy(domain, td.Full()).graph, epsilon)
    table = np.eye(1, 12, 11, dtype=np.int64) * 10
    for _ in range(20):
        found = answers(strategy, observed(strategy, table))
        for values in (found.values, found.lower, found.upper):
            assert (values >= 0).all() and (values <= 140).all()


def test_means_stay_within_the_declared_range_even_of_nobody() -> None:
    domain = td.Domain(x=td.Integer(-5, 5, missing="secret"))
    strategy = price(
        Direct(), resolve(td.Mean("x"), domain), td.Policy(domain, td.Full()).graph, Fraction(1, 2)
    )
    for table in (np.zeros((1, 12), dtype=np.int64), np.eye(1, 12, 11, dtype=np.int64)):
        for _ in range(20):
            found = answers(strategy, observed(strategy, table))
            assert -5 <= found.lower[0, 0] <= found.values[0, 0] <= found.upper[0, 0] <= 5


@pytest.mark.parametrize("mechanism", [*FOREST, Direct()], ids=str)
@pytest.mark.parametrize("epsilon", [10**4, 10**9, 10**300])
def test_without_noise_to_speak_of_answers_are_the_truth(mechanism: Any, epsilon: int) -> None:
    table = np.array([[3, 0, 0, 1, 9, 2, 0, 0, 0, 4, 1, 7], [0] * 11 + [5]])
    for query in (td.CDF("x", by="g"), td.Histogram("x", by="g"), td.Sum("x", by="g"), td.Mean("x", by="g")):
        direct = isinstance(mechanism, Direct)
        if direct != (query.word in ("sum", "mean")):
            continue
        strategy = strategy_for(query, mechanism, SECRETS[1], epsilon=epsilon)
        found = answers(strategy, observed(strategy, table))
        rows = table @ np.arange(12)
        true = {
            "cdf": np.cumsum(table, axis=1),
            "histogram": table,
            "sum": rows[:, None],
            "mean": (rows / table.sum(axis=1))[:, None],
        }[query.word]
        np.testing.assert_allclose(found.values, true, atol=1e-3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), 100, 700, 800, 1500, 3000, 10**300], ids=str)
@pytest.mark.parametrize(
    "mechanism", [*FOREST, Hierarchical(2, "optimal"), OrderedHierarchical(3, "geometric", 5)], ids=str
)
def test_answers_exist_at_every_epsilon(mechanism: Any, epsilon: Any) -> None:
    # Rows whose noise is nearly certain to be 0 beside others that are loud: least squares keeps its digits.
    table = np.arange(14)[None, :].repeat(2, axis=0)
    queries = (td.CDF("x", by="g"), td.Ranges("x", by="g"), td.Histogram("x", by="g"), td.Sum("x", by="g"))
    for query, secrets in itertools.product(queries, SECRETS):
        strategy = strategy_for(query, mechanism, secrets, 14, epsilon)
        found = answers(strategy, observed(strategy, table[: strategy.resolved.n_groups]))
        assert np.isfinite([found.values, found.lower, found.upper]).all()
        assert np.isfinite(strategy.expected_error) and strategy.expected_error >= 0
        assert np.isfinite(strategy.half_width)


def test_the_mean_of_a_group_that_may_be_empty_is_anything_declared() -> None:
    domain = td.Domain(x=td.Integer(-5, 5, missing="secret"))
    strategy = price(Direct(), resolve(td.Mean("x"), domain), td.Policy(domain, td.Full()).graph, Fraction(2))
    few = answers(strategy, Noisy((np.array([[4.0]]), np.array([[1.0]])), 1))
    many = answers(strategy, Noisy((np.array([[40_000.0]]), np.array([[10_000.0]])), 10_000))
    assert (few.lower[0, 0], few.values[0, 0], few.upper[0, 0]) == (-5, 4, 5)
    assert 3.9 < many.lower[0, 0] < 4 < many.upper[0, 0] < 4.1


# ---------- quantiles ----------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.fractions(0, 1, max_denominator=12))
@examples(300)
def test_quantiles_are_the_first_position_that_reaches_the_share(counts: list[int], level: Fraction) -> None:
    prefix = np.concatenate([[0.0], np.cumsum(counts)])
    total = sum(counts)
    wanted = next(i for i in range(len(counts)) if sum(counts[: i + 1]) >= level * total)
    assert quantile_positions(prefix[None, :], (level,), len(counts))[0, 0] == wanted


def test_special_cells_do_not_count_in_quantiles() -> None:
    prefix = np.array([[0.0, 1.0, 2.0, 100.0]])  # two ordinary cells, then 98 missing
    assert quantile_positions(prefix, (Fraction(1, 2), Fraction(1)), 2).tolist() == [[0, 1]]


def test_quantiles_of_a_group_that_may_be_empty_are_anywhere() -> None:
    """Nobody is in the south, which is public: no median of it is known, and none is said to be."""
    domain = td.Domain(age=td.Integer(0, 99), reg=td.Categorical(["n", "s"]))
    session = td.Session(
        td.Table({"age": [40] * 200, "reg": ["n"] * 200}, domain), td.Policy(domain, td.Within(5, on="age")), epsilon=9
    )  # fmt: skip
    told = session.release(td.Quantiles("age", by="reg"), epsilon=1).to_frame()
    beside = session.release(td.CDF("age", by="reg", quantiles=[0.5]), epsilon=1, name="beside").quantiles
    for frame in (told, beside):
        south, north = frame[frame.reg == "s"], frame[frame.reg == "n"]
        assert (south.lower == 0).all() and (south.upper == 99).all()
        assert (north.lower > 0).any() and (north.upper < 99).any()


# ---------- C34: noisy values only ----------


def test_post_processing_takes_noisy_values_only() -> None:
    parameters = inspect.signature(answers).parameters
    assert {name: p.annotation for name, p in parameters.items()} == {
        "strategy": "Strategy | MarginalStrategy | Way",
        "noisy": "Noisy",
    }
    assert set(Noisy.__dataclass_fields__) == {
        "values",
        "total",
        "blocks",
    }  # the last two where they are public
    source = inspect.getsource(module)
    for private in ("Counts", "Table", "counts(", "tabulate", "_apply", "observe(", "session", "reserve"):
        assert private not in source, private


@pytest.mark.parametrize(
    "query", [td.CDF("x", by="g"), td.Histogram("x", by="g"), td.Linear([[1] * 12], "x"), td.Mean("x")]
)
def test_post_processing_is_a_function_of_what_was_observed(query: Any) -> None:
    mechanism: Any = Direct() if query.word in ("linear", "mean") else OrderedHierarchical(3)
    strategy = strategy_for(query, mechanism, SECRETS[1])
    table = np.ones((strategy.resolved.n_groups, 12), dtype=np.int64)
    noisy = observed(strategy, table)
    before = [v.copy() for v in noisy.values]
    first, second = answers(strategy, noisy), answers(strategy, noisy)
    for told in ((first, second), (first.at(Fraction(4, 5)), second.at(Fraction(4, 5)))):
        for name in set(Answers.__dataclass_fields__) - {"span", "ends"}:
            one, two = (getattr(each, name) for each in told)
            assert (one is None and two is None) or one.tobytes() == two.tobytes()
    assert first.span == second.span
    assert all(np.array_equal(a, b) for a, b in zip(before, noisy.values, strict=True))


def test_sums_through_a_tree_are_linear_in_what_was_observed() -> None:
    strategy = strategy_for(td.Linear([[2, -1, *[0] * 10]], "x"), Hierarchical(3), SECRETS[0])
    assert isinstance(strategy.resolved.workload, Rows)
    noisy = observed(strategy, np.full((1, 12), 50))
    doubled = Noisy(tuple(2 * v for v in noisy.values), 2 * noisy.total)
    assert np.allclose(2 * answers(strategy, noisy).values, answers(strategy, doubled).values)
