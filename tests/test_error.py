"""Expected errors are the truth: by linear algebra, by simulation through the real path, and as coverage of intervals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import mechanisms as oracle
from pricing import candidates, price
from strategies import examples

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers
from tetraodon.layout import published_columns
from tetraodon.mechanisms import Direct, Hierarchical, Identity, Ordered, OrderedHierarchical
from tetraodon.mechanisms.strategy import COVERAGE, JUMP, WIDEST, Noisy, Strategy
from tetraodon.mechanisms.variance import posterior
from tetraodon.workload import AllRanges, Cells, Prefixes, Rows, SomeRanges, resolve

RUNS = 2000
SHARES = st.sampled_from(("uniform", "geometric", "optimal"))


def priced(
    query: td.Histogram,
    mechanism: Any,
    secrets: Any,
    size: int,
    epsilon: Fraction = Fraction(1),
    group: int = 1,
) -> Strategy:
    """A mechanism on x = 0 … size − 1, beside an attribute g of ``group`` values."""
    domain = td.Domain(x=td.Integer(0, size - 1), g=td.Integer(0, group - 1))
    return price(mechanism, resolve(query, domain), td.Policy(domain, secrets).graph, epsilon)


# ---------- by linear algebra ----------


@st.composite
def strategies_of_any_kind(draw: Any) -> Strategy:
    """Any mechanism, workload, exact rows and noisy totals."""
    size = draw(st.integers(2, 24))
    fanout, kind = draw(st.integers(2, 6)), draw(SHARES)
    mechanism = draw(
        st.sampled_from(
            (
                Identity(),
                Ordered(),
                Hierarchical(fanout, kind),
                OrderedHierarchical(fanout, kind, draw(st.none() | st.integers(1, size))),
            )
        )
    )
    secrets = draw(
        st.sampled_from(
            (
                td.AttributeWise(x=td.Within(draw(st.integers(1, size)))),
                td.AttributeWise(x=td.Within(draw(st.integers(1, size))), g=td.Full()),
                td.AttributeWise(x=td.Partition(blocks=draw(st.integers(1, size)))),
                td.Full(),
            )
        )
    )
    groups = draw(st.sampled_from(((), ("g",))))
    ends = sorted(draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2)))
    query = draw(
        st.sampled_from(
            (
                td.Histogram("x", by=groups),
                td.CDF("x", by=groups),
                td.Ranges("x", by=groups),
                td.Ranges("x", [(ends[0], ends[1]), (0, ends[1]), (ends[0], size - 1)], by=groups),
                td.Linear(
                    [[draw(st.integers(-3, 3)) for _ in range(size)] for _ in range(3)], "x", by=groups
                ),
                td.Sum("x", by=groups),
            )
        )
    )
    return priced(
        query, mechanism, secrets, size, draw(st.sampled_from((Fraction(1), Fraction(1, 4), Fraction(3)))), 3
    )


@given(strategies_of_any_kind())
@examples(250)
def test_expected_errors_are_those_of_dense_least_squares(strategy: Strategy) -> None:
    truth = oracle.answer_variances(strategy)
    asked = strategy.resolved.workload
    scale = asked.denominator if isinstance(asked, Rows) else 1
    assert strategy.expected_error == pytest.approx(
        float(truth.mean()) / scale**2, rel=1e-6, abs=digits(strategy)
    )
    if isinstance(asked, AllRanges):
        truth = np.diag(prefix_covariance(strategy))[1:]
    np.testing.assert_allclose(strategy.answer_variance(), truth, rtol=1e-6, atol=digits(strategy))


def digits(strategy: Strategy) -> float:
    """What rounding leaves of the oracle's variances: a row with next to no budget has 10^9 times the noise of another."""
    return 1e-7 + 1e-13 * float(oracle.released(strategy)[1].max(initial=0.0))


def prefix_covariance(strategy: Strategy) -> Any:
    """Covariance of F_0 … F_P."""
    size = strategy.resolved.n_positions
    sums = np.concatenate([np.zeros((1, size)), np.tril(np.ones((size, size)))])
    return sums @ oracle.least_squares(*oracle.released(strategy)).covariance @ sums.T


@given(strategies_of_any_kind(), st.integers(0, 2**32))
@examples(150)
def test_every_variance_and_estimate_is_that_of_dense_least_squares(strategy: Strategy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, size = strategy.weights, strategy.resolved.n_positions
    best = oracle.least_squares(*oracle.released(strategy))
    prefix = prefix_covariance(strategy)
    close = {"rtol": 1e-6, "atol": digits(strategy)}
    np.testing.assert_allclose(weights.prefix_variance, np.diag(prefix), **close)
    np.testing.assert_allclose(weights.cell_variance, np.diag(best.covariance), **close)
    low, high = (
        np.array(v) for v in zip(*itertools.combinations_with_replacement(range(size + 1), 2), strict=True)
    )
    spread = prefix[low, low] + prefix[high, high] - 2 * prefix[low, high]
    np.testing.assert_allclose(weights.range_variance(low, high), spread, **close)
    rows = rng.integers(-3, 4, (4, size)).astype(float)
    np.testing.assert_allclose(
        weights.rows_variance(rows), np.einsum("ri,ij,rj->r", rows, best.covariance, rows), **close
    )
    # The estimate itself: noisy rows first, then the exact ones, in the order in which the oracle lists them.
    table = rng.integers(0, 9, (2, size))
    observed = strategy._apply(table)
    noisy, exact, told = [], [], []
    for part, true in zip(strategy.parts, observed, strict=True):
        seen = np.where(part.exact, true, 0).astype(float)
        if strategy.scale(part) is not None:
            seen = seen + np.where(part.exact, 0, true + rng.integers(-5, 6, true.shape))
            noisy.append(seen[:, ~part.exact])
        exact.append(true[:, part.exact])
        told.append(seen)
    values = np.concatenate([*noisy, *exact], axis=1)
    np.testing.assert_allclose(
        weights.estimate(told[0], told[1:]),
        values @ best.gain.T,
        rtol=1e-6,
        atol=math.sqrt(digits(strategy)) / 100,
    )


@given(st.integers(2, 2000), st.integers(1, 2000), st.integers(2, 40), st.data())
@examples(60)
def test_closed_forms_agree_with_the_recursion_over_pieces(
    size: int, block: int, fanout: int, data: Any
) -> None:
    block = min(block, size)
    strategy = priced(
        data.draw(st.sampled_from((td.Histogram("x"), td.CDF("x")))),
        OrderedHierarchical(fanout, data.draw(st.sampled_from(("uniform", "geometric"))), block),
        td.AttributeWise(x=td.Within(data.draw(st.integers(1, size)))),
        size,
    )
    weights = strategy.weights
    assert strategy.posterior.cells == pytest.approx(float(weights.cell_variance.mean()), rel=1e-9)
    assert strategy.posterior.prefixes == pytest.approx(float(weights.prefix_variance[1:].mean()), rel=1e-9)
    if size <= 60:
        low, high = (np.array(v) for v in zip(*itertools.combinations(range(size + 1), 2), strict=True))
        assert strategy.posterior.all_ranges == pytest.approx(
            float(weights.range_variance(low, high).mean()), rel=1e-9
        )


def test_closed_forms_hold_on_a_million_positions() -> None:
    # Far from its ends a chain is stationary; the recurrences fill in at once what has settled.
    strategy = priced(
        td.CDF("x"), OrderedHierarchical(10, block=50), td.AttributeWise(x=td.Within(50)), 10**6
    )
    short = priced(td.CDF("x"), OrderedHierarchical(10, block=50), td.AttributeWise(x=td.Within(50)), 10**5)
    assert strategy.expected_error == pytest.approx(short.expected_error, rel=1e-3)
    assert strategy.expected_error == pytest.approx(
        float(strategy.weights.prefix_variance[1:].mean()), rel=1e-9
    )


def test_quantiles_are_ranked_by_their_least_accurate_prefix() -> None:
    strategy = priced(td.Quantiles("x", [0.5]), OrderedHierarchical(3), td.AttributeWise(x=td.Within(4)), 20)
    assert strategy.expected_error == pytest.approx(float(np.diag(prefix_covariance(strategy)).max()))


def test_a_mean_is_ranked_by_its_total() -> None:
    strategy = priced(td.Mean("x"), Direct(), td.Full(), 11)
    assert strategy.expected_error == pytest.approx(noise.discrete_laplace_variance(10))


@given(strategies_of_any_kind())
@examples(60)
def test_no_unbiased_combination_of_the_rows_does_better(strategy: Strategy) -> None:
    # Gauss–Markov on our own rows: for a single prefix, perturbing the estimate by any null direction only adds variance.
    noisy, variances, exact = oracle.released(strategy)
    rows = np.concatenate([noisy, exact])
    every = np.concatenate([variances, np.zeros(len(exact))])
    gain = oracle.least_squares(noisy, variances, exact).gain
    assert gain @ rows == pytest.approx(np.eye(rows.shape[1]), abs=1e-6)
    spare = np.eye(len(rows)) - rows @ np.linalg.pinv(rows)
    assert np.abs((gain * every) @ spare.T).max() < 1e-6 * max(1.0, every.max(initial=0.0))


# ---------- by simulation ----------


def simulate(strategy: Strategy, table: Any, runs: int) -> Noisy:
    """Independent observations of one table, drawn as the real path draws them: run r is row block r."""
    tiled = np.tile(table, (runs, 1))
    with noise.reserve([(scale, count * runs) for scale, count in strategy.draws]) as held:
        return strategy.observe(tiled, int(table.sum()), held)


def linear(strategy: Strategy, noisy: Noisy) -> Any:
    """The linear estimate of every answer, in the answer's unit, before it is made possible."""
    asked = strategy.resolved.workload
    if strategy.forest is None:
        return np.concatenate(noisy.values, axis=1) / asked.denominator
    chain, *trees = noisy.values
    cells = strategy.weights.estimate(chain, trees)
    if isinstance(asked, Rows):
        return cells @ asked.matrix.T / asked.denominator
    if isinstance(asked, Cells):
        return cells
    prefix = np.concatenate([np.zeros((len(cells), 1)), np.cumsum(cells, axis=1)], axis=1)
    if isinstance(asked, Prefixes):
        return prefix[:, 1:]
    if isinstance(asked, SomeRanges):
        return prefix[:, asked.highs] - prefix[:, asked.lows]
    low, high = (np.array(v) for v in zip(*itertools.combinations(range(prefix.shape[1]), 2), strict=True))
    return prefix[:, high] - prefix[:, low]


def truth(strategy: Strategy, table: Any) -> Any:
    """The exact answers of every group."""
    asked = strategy.resolved.workload
    rows = oracle.workload_rows(strategy)
    return table @ rows.T / (asked.denominator if isinstance(asked, Rows) else 1)


SIZE = 14
QUERIES = {
    "cells": lambda by: td.Histogram("x", by=by),
    "prefixes": lambda by: td.CDF("x", by=by),
    "all ranges": lambda by: td.Ranges("x", by=by),
    "some ranges": lambda by: td.Ranges("x", [(0, 3), (5, 5), (2, 12)], by=by),
    "linear": lambda by: td.Linear([[1, -2, 3] + [0] * 11, list(range(14))], "x", by=by),
    "sum": lambda by: td.Sum("x", by=by),
}
SECRETS = {
    "plain": ((), td.AttributeWise(x=td.Within(3))),
    "groups": (("g",), td.AttributeWise(x=td.Within(3), g=td.Full())),
    "exact rows": ((), td.AttributeWise(x=td.Partition(blocks=3))),
    "groups, exact rows": (("g",), td.AttributeWise(x=td.Partition(blocks=2))),
}


FORESTS = {
    "identity": Identity(),
    "ordered": Ordered(),
    "hierarchical": Hierarchical(3),
    "ordered-hierarchical": OrderedHierarchical(3, "optimal", 4),
}
SIMULATED = [(name, mechanism, asked) for name, mechanism in FORESTS.items() for asked in QUERIES]
SIMULATED += [("direct", Direct(), asked) for asked in ("linear", "sum")]


@pytest.mark.parametrize("told", SECRETS)
@pytest.mark.parametrize(
    ("mechanism", "asked"), [s[1:] for s in SIMULATED], ids=[f"{s[0]}-{s[2]}" for s in SIMULATED]
)
def test_simulated_errors_are_the_expected_ones(mechanism: Any, asked: str, told: str) -> None:
    by, secrets = SECRETS[told]
    strategy = priced(QUERIES[asked](by), mechanism, secrets, SIZE, Fraction(1, 2), 2)
    rng = np.random.default_rng(1)
    table = rng.integers(0, 40, (strategy.resolved.n_groups, SIZE))
    found = linear(strategy, simulate(strategy, table, RUNS))
    error = ((found.reshape(RUNS, len(table), -1) - truth(strategy, table)) ** 2).mean(axis=(1, 2))
    allowed = 5 * error.std() / math.sqrt(RUNS) + 1e-9
    assert abs(error.mean() - strategy.expected_error) < allowed


def test_simulated_means_are_unbiased_in_total_and_count() -> None:
    domain = td.Domain(x=td.Integer(0, 9, missing="secret"))
    strategy = price(Direct(), resolve(td.Mean("x"), domain), td.Policy(domain, td.Full()).graph, Fraction(1))
    table = np.arange(11)[None, :]
    sums, counts = simulate(strategy, table, RUNS).values
    for values, true, part in ((sums, 285, strategy.parts[0]), (counts, 45, strategy.parts[1])):
        scale = strategy.scale(part)
        assert scale is not None
        spread = noise.discrete_laplace_variance(scale)
        assert abs(values.mean() - true) < 5 * math.sqrt(spread / RUNS)


# ---------- intervals, exactly ----------


def law(scale: float, reach: int) -> Any:
    """P(Z = z) for |z| ≤ reach."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1.0))


SCALES = [Fraction(1, 20), Fraction(1, 5), Fraction(1, 3), Fraction(1, 2), Fraction(4, 5), Fraction(1), Fraction(7, 5), 2,
          Fraction(37, 10), 5, 10, Fraction(101, 4), 50, 100, 300, 1000]  # fmt: skip


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_half_widths_cover_single_rows_and_differences(scale: Any) -> None:
    # CDF by the ordered mechanism: every prefix is one noisy row, every range the difference of two.
    strategy = priced(td.CDF("x"), Ordered(), td.AttributeWise(x=td.Within(1)), 40, 1 / Fraction(scale))
    assert strategy.scale(strategy.parts[0]) == scale
    reach = math.ceil(40 * scale) + 5
    one = law(float(scale), reach)
    middle = reach
    (single,) = strategy.half_widths(np.array([noise.discrete_laplace_variance(scale)]))
    inside = one[middle - int(single) : middle + int(single) + 1].sum()
    assert inside >= 0.95
    assert single == 0 or one[middle - int(single) + 1 : middle + int(single)].sum() < 0.95, "not the least"
    spread = strategy.weights.range_variance(np.array([5]), np.array([20]))
    (double,) = strategy.half_widths(spread)
    two = np.convolve(one, one) if reach < 3000 else fft_convolve(one, one)
    assert two[2 * middle - int(double) : 2 * middle + int(double) + 1].sum() >= 0.95


def fft_convolve(a: Any, b: Any) -> Any:
    size = len(a) + len(b) - 1
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)


def tail(weights: Any, scales: Any, half: float, grid: int) -> float:
    """P(|Σ w_i Z_i| > half) for weights that are multiples of 1/grid, from the characteristic function.

    The sum lives on a lattice of step 1/grid, so its law is the Fourier inverse of Π (1 − q)²/(1 − 2q cos(w u) + q²).
    """
    deviation = math.sqrt(
        sum(w * w * oracle.laplace_variance(s) for w, s in zip(weights, scales, strict=True))
    )
    reach = max(half, 30 * deviation) + 2 * max(abs(w) for w in weights)
    size = 1 << math.ceil(math.log2(2 * reach * grid + 1))
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    transform = np.ones(len(angle))
    for w, s in zip(weights, scales, strict=True):
        q = math.exp(-1 / s)
        transform *= (1 - q) ** 2 / (1 - 2 * q * np.cos(angle * round(w * grid)) + q * q)
    mass = np.maximum(np.fft.irfft(transform, size), 0.0)
    kept = math.floor(half * grid + 1e-9)
    return float(1 - mass[0] - mass[1 : kept + 1].sum() - mass[size - kept :].sum())


def test_the_numeric_inversion_knows_single_draws() -> None:
    for scale, half in ((0.5, 1), (3.0, 7), (20.0, 60)):
        q = math.exp(-1 / scale)
        assert tail([1.0], [scale], half, 1) == pytest.approx(2 * q ** (half + 1) / (1 + q), abs=1e-9)


def test_no_weighted_sum_needs_much_more_than_the_widest() -> None:
    # Random sums of up to 40 draws with any weights up to 1, scales 0.1 … 30. The worst are one draw of weight just below
    # 1, which no least-squares estimate is; those stay at 5 % (next test).
    rng = np.random.default_rng(7)
    missed = []
    for _ in range(250):
        count = int(rng.integers(2, 41)) if rng.random() < 0.5 else int(rng.integers(2, 5))
        weights = np.round(rng.uniform(-1, 1, count) * 64) / 64
        weights[0] = rng.choice([1.0, weights[0] or 1 / 64])
        scales = np.exp(rng.uniform(math.log(0.1), math.log(30), 1 if rng.random() < 0.5 else count))
        scales = np.broadcast_to(scales, (count,))
        variance = sum(w * w * oracle.laplace_variance(s) for w, s in zip(weights, scales, strict=True))
        missed.append(tail(weights, scales, math.ceil(WIDEST * math.sqrt(variance) - 1e-9), 64))
    assert max(missed) <= 0.06 and float(np.mean(missed)) <= 0.05


def misses(strategy: Strategy, picked: Any) -> list[float]:
    """P(the interval misses) of some answers, from the noise that the oracle's least squares puts into each."""
    noisy, _, _exact = oracle.released(strategy)
    gain = oracle.least_squares(*oracle.released(strategy)).gain[:, : len(noisy)]
    scales = np.concatenate(
        [
            np.full(int((~p.exact).sum()), float(strategy.scale(p) or 0))
            for p in strategy.parts
            if strategy.scale(p) is not None
        ]
    )
    rows = oracle.workload_rows(strategy)
    weights = np.round(rows[picked % len(rows)] @ gain * 64) / 64
    loud = np.array([oracle.laplace_variance(s) for s in scales])
    halves = strategy.half_widths(
        (weights**2) @ loud,
        strategy.jumps if len(strategy.jumps) == 1 else strategy.jumps[picked % len(rows)],
    )
    return [
        tail(w[w != 0], scales[w != 0], half, 64)
        for w, half in zip(weights, halves, strict=True)
        if (w != 0).any()
    ]


@given(st.data(), st.integers(0, 2**32))
@examples(80)
def test_intervals_miss_at_most_five_percent_exactly(data: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, fanout = data.draw(st.integers(2, 12)), data.draw(st.integers(2, 5))
    mechanism = data.draw(
        st.sampled_from(
            (
                Identity(),
                Ordered(),
                Hierarchical(fanout, data.draw(SHARES)),
                OrderedHierarchical(fanout, "uniform", data.draw(st.integers(1, size))),
            )
        )
    )
    reach = data.draw(st.integers(1, size))
    secrets = data.draw(
        st.sampled_from(
            (td.AttributeWise(x=td.Within(reach)), td.AttributeWise(x=td.Within(reach), g=td.Full()))
        )
    )
    matrix = rng.choice([0, 0, 1, 10, -7], (3, size)).tolist()
    query = data.draw(
        st.sampled_from(
            (
                td.Histogram("x", by="g"),
                td.CDF("x", by="g"),
                td.Ranges("x", by="g"),
                td.Linear(matrix, "x", by="g"),
            )
        )
    )
    epsilon = Fraction(data.draw(st.integers(8, 400)), 20)
    strategy = priced(query, mechanism, secrets, size, epsilon, 2)
    if not strategy.spent.is_zero:
        assert max(misses(strategy, rng.integers(0, 10**6, 4)), default=0.0) <= 0.0505


def test_widest_is_the_interval_of_one_continuous_draw() -> None:
    # P(|X| > t) = e^(−t/s) and σ = s√2, so t/σ = −ln(0.05)/√2; a normal sum needs 1.96 σ only.
    assert pytest.approx(2.1183, abs=1e-4) == WIDEST
    assert Fraction(95, 100) == COVERAGE


def test_one_draw_exceeds_the_widest_by_no_more_than_the_jump() -> None:
    for scale in np.exp(np.linspace(math.log(0.05), math.log(3000), 400)):
        exact = Fraction(float(scale)).limit_denominator(10**4)
        least = noise.discrete_laplace_quantile(exact, COVERAGE)
        assert least <= WIDEST * math.sqrt(noise.discrete_laplace_variance(exact)) + JUMP


# ---------- intervals, by simulation ----------

NOMINAL = 0.95
EPSILON_GRID = [
    pytest.param(Fraction(1, 20), marks=pytest.mark.slow),
    Fraction(3, 10),
    pytest.param(Fraction(1), marks=pytest.mark.slow),
    Fraction(5),
]


def covered(strategy: Strategy, table: Any, runs: int = RUNS) -> float:
    """Share of published intervals that hold the truth."""
    found = answers(strategy, simulate(strategy, table, runs))
    true = np.tile(truth(strategy, table), (runs, 1))
    if isinstance(strategy.resolved.workload, AllRanges):
        true = np.tile(np.cumsum(table, axis=1), (runs, 1))
    assert (found.lower <= found.values).all() and (found.values <= found.upper).all()
    return float(((found.lower <= true + 1e-9) & (true - 1e-9 <= found.upper)).mean())


TABLES = {
    "dense": np.random.default_rng(3).integers(20, 60, (2, SIZE)),
    "sparse": np.array([[0] * 6 + [9] + [0] * 7, [0] * 13 + [1]]),
    "empty": np.zeros((2, SIZE), dtype=np.int64),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", EPSILON_GRID, ids=str)
@pytest.mark.parametrize("asked", QUERIES)
def test_intervals_of_counts_ranges_and_sums_cover(asked: str, epsilon: Fraction, table: str) -> None:
    for told in ("plain", "groups"):
        by, secrets = SECRETS[told]
        query = QUERIES[asked](by)
        rows = TABLES[table][: 2 if by else 1]
        for mechanism in (Identity(), Ordered(), Hierarchical(4), OrderedHierarchical(3, "optimal", 4)):
            strategy = priced(query, mechanism, secrets, SIZE, epsilon, 2)
            assert covered(strategy, rows) >= NOMINAL - 0.01, (told, mechanism)
        if asked in ("linear", "sum"):
            assert (
                covered(priced(query, Direct(), secrets, SIZE, epsilon, 2), rows, 20_000 // len(rows))
                >= NOMINAL - 0.01
            )


MEANS = {
    "public count": td.Domain(x=td.Integer(-3, 9)),
    "secret count": td.Domain(x=td.Integer(-3, 9, missing="secret")),
    "halves": td.Domain(x=td.Integer(-3, 9, step=2, missing="secret")),
}


@pytest.mark.parametrize("filled", ["dense", "sparse", "one", "empty"])
@pytest.mark.parametrize("epsilon", EPSILON_GRID, ids=str)
@pytest.mark.parametrize("kind", MEANS)
def test_intervals_of_means_cover(kind: str, epsilon: Fraction, filled: str) -> None:
    domain = MEANS[kind]
    strategy = price(Direct(), resolve(td.Mean("x"), domain), td.Policy(domain, td.Full()).graph, epsilon)
    size = domain["x"].size
    rng = np.random.default_rng(4)
    table = {
        "dense": rng.integers(20, 60, (1, size)),
        "sparse": np.eye(1, size, 2, dtype=np.int64) * 7 + np.eye(1, size, size - 2, dtype=np.int64),
        "one": np.eye(1, size, 3, dtype=np.int64),
        "empty": np.zeros((1, size), dtype=np.int64),
    }[filled]
    ordinary = np.array([(2 * v if domain["x"].step == 1 else v) / 2 for v in domain["x"].midpoints()[0]])
    counted = table[0, : len(ordinary)]
    found = answers(strategy, simulate(strategy, table, 20_000))
    assert (found.lower <= found.values).all() and (found.values <= found.upper).all()
    if counted.sum():  # the mean of nobody is nothing that an interval could miss
        mean = float(ordinary @ counted) / counted.sum()
        assert ((found.lower <= mean + 1e-9) & (mean - 1e-9 <= found.upper)).mean() >= NOMINAL - 0.01


QUANTILE_TABLES = {
    "dense": np.random.default_rng(5).integers(0, 60, 60),
    "one spike": np.eye(1, 60, 30, dtype=np.int64)[0] * 100,
    "two spikes": np.eye(1, 60, 5, dtype=np.int64)[0] * 51 + np.eye(1, 60, 50, dtype=np.int64)[0] * 49,
    "level just above a long flat": np.eye(1, 60, 2, dtype=np.int64)[0] * 50
    + np.eye(1, 60, 57, dtype=np.int64)[0] * 51,
    "few": np.eye(1, 60, 9, dtype=np.int64)[0] + np.eye(1, 60, 40, dtype=np.int64)[0] * 2,
}


@pytest.mark.parametrize("filled", QUANTILE_TABLES)
@pytest.mark.parametrize("epsilon", EPSILON_GRID, ids=str)
@pytest.mark.parametrize("told", ["public total", "secret total"])
def test_intervals_of_quantiles_cover(told: str, epsilon: Fraction, filled: str) -> None:
    levels = [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]
    domain = td.Domain(x=td.Integer(0, 59, missing="refuse" if told == "public total" else "secret"))
    counted = QUANTILE_TABLES[filled]
    table = np.append(counted, [] if told == "public total" else [20]).astype(np.int64)[None, :]
    reached = np.cumsum(counted)
    true = [int(np.argmax(reached >= level * int(reached[-1]))) for level in levels]
    graph = td.Policy(domain, td.Within(2)).graph
    for mechanism in (Ordered(), OrderedHierarchical(4, "optimal", 6), Hierarchical(4)):
        strategy = price(mechanism, resolve(td.Quantiles("x", levels), domain), graph, epsilon)
        found = published_columns(strategy, answers(strategy, simulate(strategy, table, RUNS)))
        lower, value, upper = (found[n].astype(int).reshape(RUNS, 3) for n in ("lower", "value", "upper"))
        assert (lower <= value).all() and (value <= upper).all()
        share = ((lower <= true) & (true <= upper)).mean(axis=0)
        assert share.min() >= NOMINAL - 0.01, (mechanism, share)


def test_ranges_read_off_a_release_cover() -> None:
    domain = td.Domain(x=td.Integer(0, 29))
    rows = [3] * 40 + [17] * 5 + [29]
    table = td.Table({"x": rows}, domain)
    hits = total = 0
    low, high = (
        np.array(v) for v in zip(*itertools.combinations_with_replacement(range(30), 2), strict=True)
    )
    counts = np.bincount(rows, minlength=30)
    prefix = np.concatenate([[0], np.cumsum(counts)])
    true = prefix[high + 1] - prefix[low]
    for _ in range(15):
        session = td.Session(table, td.Policy(domain, td.Within(3)), epsilon=1)
        found = session.release(td.CDF("x"), epsilon=1).range(low, high)
        hits += int(((found.lower <= true + 1e-9) & (true - 1e-9 <= found.upper)).sum())
        total += len(true)
    assert hits / total >= NOMINAL - 0.01


# ---------- which is best ----------


def test_half_widths_of_a_plan_are_those_of_its_average_answer() -> None:
    domain = td.Domain(x=td.Integer(0, 99))
    for strategy in candidates(
        resolve(td.CDF("x"), domain), td.Policy(domain, td.Within(10)).graph, Fraction(1)
    ):
        assert strategy.half_width >= math.sqrt(strategy.expected_error)
        assert strategy.half_width <= math.ceil(WIDEST * math.sqrt(strategy.expected_error))


def test_a_forest_without_a_tree_is_its_chain() -> None:
    strategy = priced(td.CDF("x"), Ordered(), td.AttributeWise(x=td.Within(1)), 5)
    assert strategy.forest is not None
    assert posterior(strategy.forest, 2.0, ()).prefixes == pytest.approx(2.0)
