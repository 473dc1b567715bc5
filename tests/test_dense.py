"""Dense least squares beside the textbook: a system of Lagrange multipliers in exact fractions, and numpy's lstsq."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tetraodon.mechanisms.dense import DenseWeights
from tetraodon.mechanisms.estimate import Weights
from tetraodon.mechanisms.forest import Forest

INF = np.inf


def eliminated(rows: list[list[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form, and the pivots."""
    rows, pivots = [r[:] for r in rows], []
    for column in range(len(rows[0]) if rows else 0):
        at = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        rows[top] = [v / rows[top][column] for v in rows[top]]
        for i, row in enumerate(rows):
            if i != top and row[column]:
                rows[i] = [v - row[column] * w for v, w in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return rows, pivots


def true_variance(matrix: np.ndarray, variance: list[float], asked: np.ndarray) -> float:
    """Least variance of an unbiased combination of the rows that gives ``asked``, exact; infinite if there is none.

    min Σ c_r² v_r with Σ c_r row_r = asked: a linear system in c and multipliers.
    """
    rows = [i for i, v in enumerate(variance) if v < INF]
    size, count = matrix.shape[1], len(rows)
    system = []
    for k, i in enumerate(rows):
        own = [Fraction(0)] * count
        own[k] = Fraction(variance[i])
        system.append([*own, *(Fraction(int(v)) for v in matrix[i]), Fraction(0)])
    for j in range(size):
        system.append(
            [*(Fraction(int(matrix[i, j])) for i in rows), *[Fraction(0)] * size, Fraction(int(asked[j]))]
        )
    solved, pivots = eliminated(system)
    if count + size in pivots:
        return INF
    chosen = [Fraction(0)] * (count + size)
    for row, column in zip(solved, pivots, strict=False):
        chosen[column] = row[-1]
    return float(sum(c * c * Fraction(variance[i]) for c, i in zip(chosen[:count], rows, strict=True)))


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(1, 7)), int(rng.integers(1, 8))
    matrix = rng.integers(-2, 3, (count, size)) * int(rng.choice([1, 1, 70000]))
    variance = rng.choice([0.0, 0.5, 2.0, 100.0, INF], count, p=[0.2, 0.3, 0.2, 0.2, 0.1])
    return matrix.astype(np.int64), variance


@pytest.mark.parametrize("seed", range(80))
def test_variances_are_those_of_the_best_unbiased_combination(seed: int) -> None:
    matrix, variance = problem(seed)
    size = matrix.shape[1]
    weights = DenseWeights(matrix, variance)

    def true(row: np.ndarray) -> float:
        return true_variance(matrix, variance.tolist(), row)

    rng = np.random.default_rng(seed)
    asked = rng.integers(-3, 4, (4, size))
    lows = np.array([a for a in range(size + 1) for b in range(a, size + 1)])
    highs = np.array([b for a in range(size + 1) for b in range(a, size + 1)])
    spans = (np.arange(size) >= lows[:, None]) & (np.arange(size) < highs[:, None])
    close = {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(weights.rows_variance(asked), [true(r) for r in asked], **close)
    np.testing.assert_allclose(weights.cell_variance, [true(r) for r in np.eye(size)], **close)
    np.testing.assert_allclose(weights.range_variance(lows, highs), [true(r) for r in spans], **close)
    np.testing.assert_allclose(weights.prefix_variance, [true(r) for r in spans[: size + 1]], **close)
    lost = np.isinf(weights.cell_variance)
    kept = np.ix_(~lost, ~lost)
    assert np.array_equal(np.isinf(weights.covariance.diagonal()), lost)
    assert not np.isnan(weights.covariance[kept]).any()
    for i, j in zip(*np.triu_indices(size, 1), strict=True):
        if not lost[i] and not lost[j]:
            pair = np.eye(size)[i] + np.eye(size)[j]
            both = true(pair) - weights.cell_variance[i] - weights.cell_variance[j]
            assert 2 * weights.covariance[i, j] == pytest.approx(both, rel=1e-6, abs=1e-8)
        else:
            assert np.isnan(weights.covariance[i, j]) and np.isnan(weights.covariance[j, i])


@pytest.mark.parametrize("seed", range(40))
def test_estimates_minimise_and_hold_exact_rows(seed: int) -> None:
    matrix, variance = problem(500 + seed)
    rng = np.random.default_rng(seed)
    size = matrix.shape[1]
    table = rng.integers(0, 50, (3, size))
    noise = np.where(np.isfinite(variance), np.sqrt(np.minimum(variance, 1e6)), 5.0)
    values = table @ matrix.T + noise * rng.normal(size=(3, len(matrix)))
    weights = DenseWeights(matrix, variance)
    cells = weights.estimate(values)
    exact = variance == 0
    np.testing.assert_allclose(cells @ matrix[exact].T, values[:, exact], rtol=1e-9, atol=1e-9)
    # Heavy weights on the exact rows give the same by plain least squares.
    told = np.isfinite(variance)
    scale = 1 / np.sqrt(np.maximum(variance[told], 1e-10))
    plain = np.linalg.lstsq(matrix[told] * scale[:, None], (values[:, told] * scale).T, rcond=1e-13)[0].T
    known = np.isfinite(weights.cell_variance)
    np.testing.assert_allclose(cells[:, known], plain[:, known], rtol=1e-4, atol=1e-3)


def test_estimates_ignore_rows_that_are_not_released() -> None:
    weights = DenseWeights(np.array([[1, 0], [0, 1], [1, 1]]), np.array([1.0, 1.0, INF]))
    assert weights.estimate(np.array([[1.0, 2.0, 999.0]])).tolist() == [[1.0, 2.0]]


def test_the_mean_of_estimates_is_the_truth_and_their_spread_the_covariance() -> None:
    rng = np.random.default_rng(7)
    matrix = np.array([[3, 1, 0], [0, 2, -1], [1, 1, 1], [5, 0, 2]])
    weights = DenseWeights(matrix, np.array([4.0, 1.0, 0.0, 9.0]))
    truth, draws = np.array([10.0, 20.0, 30.0]), 40_000
    noise = np.sqrt(weights.variance) * rng.normal(size=(draws, 4))
    cells = weights.estimate(truth @ matrix.T + noise)
    spread = np.cov(cells.T)
    assert np.abs(cells.mean(axis=0) - truth).max() < 5 * np.sqrt(spread.diagonal().max() / draws)
    np.testing.assert_allclose(spread, weights.covariance, atol=0.05 * float(weights.covariance.max()))


@pytest.mark.parametrize(("size", "block", "fanout"), [(7, 7, 2), (9, 3, 3), (8, 1, 2), (10, 4, 2)])
def test_agrees_with_the_recursions_of_forests(size: int, block: int, fanout: int) -> None:
    forest = Forest(size, block, fanout)
    observed = np.append(np.full(forest.n_blocks - 1, 3.0), 0.0)
    levels = tuple(1.0 + level for level in range(forest.height))
    theirs = Weights(forest, observed, levels)
    rows, variance = [np.arange(size) < end for end in forest.ends], observed.tolist()
    for told, pieces in zip(levels, forest.levels, strict=True):
        inside = np.arange(size) >= pieces.starts[:, None]
        rows.extend(inside & (np.arange(size) < (pieces.starts + pieces.widths)[:, None]))
        variance.extend([told] * len(pieces.starts))
    ours = DenseWeights(np.array(rows).astype(np.int64), np.array(variance))
    np.testing.assert_allclose(ours.prefix_variance, theirs.prefix_variance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.cell_variance, theirs.cell_variance, rtol=1e-9, atol=1e-12)
    rng = np.random.default_rng(size)
    table = rng.integers(0, 9, (2, size))
    chain, pieces = forest.apply(table)
    noisy = [chain + np.where(observed > 0, rng.normal(size=chain.shape), 0.0)]
    noisy += [p + rng.normal(size=p.shape) for p in pieces]
    np.testing.assert_allclose(
        ours.estimate(np.concatenate(noisy, axis=1)), theirs.estimate(noisy[0], noisy[1:]), atol=1e-9
    )


def test_large_rows_keep_the_digits_of_exact_totals() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.integers(-(2**17), 2**17, (40, 40))
    weights = DenseWeights.of(matrix, 2.0**34, np.ones((1, 40), dtype=np.int64))
    table = rng.integers(0, 10**9, (2, 40))
    values = np.concatenate([table @ matrix.T, table.sum(axis=1, keepdims=True)], axis=1).astype(float)
    cells = weights.estimate(values)
    np.testing.assert_allclose(cells.sum(axis=1), table.sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(cells, table, rtol=1e-9, atol=1e-3)
    assert weights.prefix_variance[-1] == pytest.approx(0, abs=1e-9)


def test_nothing_released_and_everything_exact() -> None:
    nothing = DenseWeights(np.ones((1, 2), dtype=np.int64), np.array([INF]))
    assert np.isinf(nothing.cell_variance).all() and nothing.prefix_variance.tolist() == [0.0, INF, INF]
    assert nothing.estimate(np.array([[5.0]])).tolist() == [[0.0, 0.0]]
    exact = DenseWeights(np.eye(2, dtype=np.int64), np.zeros(2))
    assert not exact.covariance.any()
    assert exact.estimate(np.array([[5.0, 6.0]])).tolist() == [[5.0, 6.0]]
