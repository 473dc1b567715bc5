"""Consistent tables: the interaction decomposition against dense least squares, budgets against their optimality conditions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from tetraodon.marginals.possible import possible
from tetraodon.marginals.residuals import (
    Agreement,
    Axes,
    assembled,
    cell_variance,
    cells,
    closure,
    consistent,
    precisions,
    summed,
)
from tetraodon.marginals.weights import Problem, equal, optimal, searched

SHAPES = ((2, 2), (2, 3), (3, 2, 2), (2, 1, 3), (4,), (2, 2, 2, 2))


def rows_of(shape: tuple[int, ...], table: Axes) -> Any:
    """The cells of a table as 0/1 rows over the whole domain, shape (cells of the table, cells of the domain)."""
    number = np.arange(math.prod(shape)).reshape(shape)
    places = np.stack(np.unravel_index(number.ravel(), shape))
    index = np.zeros(number.size, dtype=np.int64)
    for axis in table:
        index = index * shape[axis] + places[axis]
    found = np.zeros((cells(shape, table), number.size))
    found[index, np.arange(number.size)] = 1
    return found


def dense(shape: tuple[int, ...], observed: Any, variances: Any, wanted: Axes) -> tuple[Any, Any]:
    """Best linear unbiased estimate of a table and the variance of its cells, with exact tables held, by dense algebra."""
    size = math.prod(shape)
    held = [t for t, v in variances.items() if v == 0]
    fixed = np.concatenate([rows_of(shape, t) for t in held] or [np.zeros((0, size))])
    values = np.concatenate([observed[t].ravel() for t in held] or [np.zeros(0)])
    start = np.linalg.pinv(fixed) @ values if len(fixed) else np.zeros(size)
    _, found, right = np.linalg.svd(fixed if len(fixed) else np.zeros((1, size)))
    rank = int((found > 1e-9).sum())
    free = right[rank:].T
    loud = [t for t, v in variances.items() if v > 0]
    asked = rows_of(shape, wanted)
    if not loud:
        return asked @ start, np.diag(asked @ free @ free.T @ asked.T)
    matrix = np.concatenate([rows_of(shape, t) / math.sqrt(variances[t]) for t in loud])
    told = np.concatenate([observed[t].ravel() / math.sqrt(variances[t]) for t in loud])
    strength, along = np.linalg.eigh(free.T @ matrix.T @ matrix @ free)
    along = along[:, strength > 1e-9]
    inverse = along / strength[strength > 1e-9] @ along.T
    best = start + free @ inverse @ free.T @ matrix.T @ (told - matrix @ start)
    return asked @ best, np.diag(asked @ free @ inverse @ free.T @ asked.T)


@st.composite
def cases(draw: Any) -> Any:
    """A shape, tables with their variances (0: exact) and values that exact tables share with a true table."""
    shape = draw(st.sampled_from(SHAPES))
    every = closure([tuple(range(len(shape)))])
    measured = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    variances = {t: draw(st.sampled_from((0.0, 0.5, 1.0, 3.0, 40.0))) for t in measured}
    random = np.random.default_rng(draw(st.integers(0, 999)))
    true = random.integers(0, 20, shape).astype(float)
    observed = {}
    for table, variance in variances.items():
        noise = random.normal(size=[shape[i] for i in table]) * math.sqrt(variance)
        observed[table] = summed(true, tuple(range(len(shape))), table) + noise
    return shape, observed, variances, true


@examples(120)
@given(cases())
def test_estimates_and_variances_are_those_of_dense_least_squares(case: Any) -> None:
    shape, observed, variances, _ = case
    wanted = list(closure(variances))
    precision = precisions(shape, variances, wanted)
    found = consistent(shape, observed, variances, wanted)
    for table in wanted:
        best, variance = dense(shape, observed, variances, table)
        assert found[table].ravel() == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert np.full(len(variance), cell_variance(shape, table, precision)) == pytest.approx(
            variance, rel=1e-9, abs=1e-9
        )


@examples(60)
@given(cases())
def test_any_two_tables_agree_and_exact_ones_are_held(case: Any) -> None:
    shape, observed, variances, true = case
    wanted = list(closure(variances))
    found = consistent(shape, observed, variances, wanted)
    for table, inner in itertools.product(wanted, wanted):
        if set(inner) <= set(table):
            assert summed(found[table], table, inner) == pytest.approx(found[inner], abs=1e-9)
    for table in wanted:
        if any(v == 0 and set(table) <= set(t) for t, v in variances.items()):
            told = summed(true, tuple(range(len(shape))), table)
            assert found[table] == pytest.approx(told, abs=1e-9)


def test_what_no_table_tells_has_no_bound() -> None:
    precision = precisions((2, 3), {(0,): 1.0}, [(0, 1)])
    assert cell_variance((2, 3), (0, 1), precision) == math.inf
    assert cell_variance((2, 3), (0,), precision) == 1.0
    assert cell_variance((2, 1), (0, 1), precisions((2, 1), {(0,): 1.0}, [(0, 1)])) == 1.0


def test_a_table_is_the_sum_of_its_interactions() -> None:
    true = np.arange(24.0).reshape(2, 3, 4) ** 2
    parts = Agreement.of((2, 3, 4), {(0, 1, 2): 7.0}, [(0, 1, 2)]).interactions({(0, 1, 2): true})
    assert assembled((2, 3, 4), (0, 1, 2), parts) == pytest.approx(true)
    assert all(v.sum() == pytest.approx(0, abs=1e-9) for a, v in parts.items() if a)


# ---------- budgets ----------


def problem(
    shape: tuple[int, ...], measured: Any, wanted: Any, kind: str, power: int, exact: Any = ((),)
) -> Problem:
    moves = np.full((1, len(measured)), 2.0)
    if kind == "attribute-wise":
        moves = np.array([[2.0 * (a in t) for t in measured] for a in range(len(shape))])
    return Problem(shape, tuple(measured), tuple(wanted), tuple(exact), moves, power)


@st.composite
def problems(draw: Any) -> Problem:
    shape = tuple(draw(st.lists(st.integers(2, 9), min_size=2, max_size=4)))
    k = draw(st.integers(1, len(shape)))
    wanted = list(itertools.combinations(range(len(shape)), k))
    every = [t for t in closure([tuple(range(len(shape)))]) if t]
    more = draw(st.lists(st.sampled_from(every), max_size=4))
    measured = list(dict.fromkeys([*wanted, *more]))
    kind = draw(st.sampled_from(("full", "attribute-wise")))
    return problem(shape, measured, wanted, kind, draw(st.sampled_from((1, 2))))


@examples(40)
@given(problems(), st.integers(0, 99))
def test_the_error_that_budgets_are_ranked_by_is_that_of_the_tables(asked: Problem, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(1, 9, len(asked.measured))
    level = float((asked.moves @ weights).max())
    scale = [2 * (level / w) ** 2 if asked.power == 1 else level / w for w in weights]
    variances = dict(zip(asked.measured, scale, strict=True)) | {(): 0.0}
    precision = precisions(asked.shape, variances, asked.wanted)
    total = sum(cells(asked.shape, t) * cell_variance(asked.shape, t, precision) for t in asked.wanted)
    mean = total / sum(cells(asked.shape, t) for t in asked.wanted)
    assert asked.error(weights) == pytest.approx(mean, rel=1e-9)


@examples(10)
@given(problems())
def test_budgets_are_never_worse_than_equal_ones(asked: Problem) -> None:
    weights = optimal(asked)
    assert weights.min() >= 0 and weights.max() > 0 and np.gcd.reduce(weights) == 1
    assert asked.error(weights) <= asked.error(equal(asked)) * (1 + 1e-3)


@examples(15)
@given(problems())
def test_gaussian_budgets_come_with_a_certificate(asked: Problem) -> None:
    """For any μ ≥ 0 and λ ≥ 0, Σλ = 1, with Bᵀμ ≤ Mᵀλ: Σ c/q ≥ (Σ √(c·μ))² wherever max Mw ≤ 1 (Cauchy, Schwarz).

    With μ = c/q², scaled, the least Σλ is a linear program.
    """
    from scipy.optimize import linprog

    asked = Problem(asked.shape, asked.measured, asked.wanted, asked.exact, asked.moves, 2)
    weights = searched(asked)
    rows, columns, factors = asked.incidence
    costs = np.array(list(asked.costs.values()))
    matrix = np.zeros((len(costs), len(weights)))
    matrix[rows, columns] = factors
    weights /= (asked.moves @ weights).max()
    precision = matrix @ weights
    error = float((costs / precision).sum())
    assert asked.error(weights) == pytest.approx(error)
    slope = matrix.T @ (costs / precision**2)
    found = linprog(np.ones(len(asked.moves)), A_ub=-asked.moves.T, b_ub=-slope, bounds=(0, None))
    bound = error**2 / found.fun
    assert bound <= error * (1 + 1e-6)
    assert asked.error(optimal(asked)) <= bound * 1.005


def test_closed_forms_of_budgets() -> None:
    # One kind of edge that moves every table, tables that share nothing but the public total: cells − 1 contrasts each.
    tables = [(0,), (1,), (2,)]
    shape = (2, 9, 28)
    for power in (1, 2):
        weights = optimal(problem(shape, tables, tables, "full", power))
        aim = np.array([1.0, 8.0, 27.0]) ** (1 / 3 if power == 1 else 1 / 2)
        assert weights / weights.max() == pytest.approx(aim / aim.max(), abs=0.03)
    # Tables without a common attribute do not share a budget where one attribute changes at a time.
    assert optimal(problem(shape, tables, tables, "attribute-wise", 1)).tolist() == [1, 1, 1]
    # Alike in every attribute.
    pairs = list(itertools.combinations(range(4), 2))
    assert optimal(problem((3,) * 4, pairs, pairs, "attribute-wise", 1)).tolist() == [1] * 6


def test_higher_tables_may_carry_several_lower_ones() -> None:
    pairs = list(itertools.combinations(range(6), 2))
    every = [t for t in closure([tuple(range(6))]) if t]
    alone = problem((2,) * 6, pairs, pairs, "attribute-wise", 1)
    more = problem((2,) * 6, every, pairs, "attribute-wise", 1)
    assert more.error(optimal(more)) < 0.85 * alone.error(optimal(alone))


# ---------- possible tables ----------


@examples(40)
@given(cases(), st.integers(0, 999))
def test_possible_tables_are_the_nearest_that_agree(case: Any, seed: int) -> None:
    shape, _, variances, true = case
    random = np.random.default_rng(seed)
    every = tuple(range(len(shape)))
    true = np.where(random.random(shape) < 0.6, 0.0, true) + 0.0
    wanted = list(closure(variances))
    exact = {t: summed(true, every, t) for t, v in variances.items() if v == 0} | {(): np.array(true.sum())}
    variances = {t: 0.0 if t in exact else 4.0 * v for t, v in variances.items()} | {(): 0.0}
    observed = {
        t: exact[t] if v == 0 else summed(true, every, t) + random.normal(size=[shape[i] for i in t]) * math.sqrt(v)
        for t, v in variances.items()
    }  # fmt: skip
    estimate = consistent(shape, observed, variances, wanted)
    precision = precisions(shape, variances, wanted)
    spread = {t: cell_variance(shape, t, precision) for t in wanted}
    made = possible(shape, estimate, spread, exact)
    moved = nearer = 0.0
    for t in wanted:
        assert made[t].min() >= 0 or t in exact
        truth = summed(true, every, t)
        if spread[t] > 0:
            moved += float(((made[t] - truth) ** 2).sum()) / spread[t]
            nearer += float(((estimate[t] - truth) ** 2).sum()) / spread[t]
    assert moved <= nearer + 1e-2
    scale = max(1.0, float(true.sum()))
    for table, inner in itertools.product(wanted, wanted):
        if set(inner) <= set(table):
            assert summed(made[table], table, inner) == pytest.approx(made[inner], abs=1e-3 * scale)
