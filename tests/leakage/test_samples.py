"""Pairs of estimates from samples: the figures of the planar Laplace square, bias, intervals, groups, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tetraodon import leakage
from tetraodon.errors import SpecificationError

CORNERS = np.array([(0, 0), (300, 0), (0, 300), (300, 300)], dtype=float)
# Planar Laplace with E[d] = 2/eps on a square of four users; B(X | Z) on the infinite plane by quadrature.
TRUTH = {100: 0.4025, 60: 0.2413}


def around(centres: np.ndarray, radius: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn = 2 * np.pi * rng.random(len(centres))
    return centres + np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)


def square(
    metres: int, cell: float, seeds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """100 places for each of four users, ``seeds`` outputs of each with eps = ln 2 / metres; cells that are cut by the axes.

    Returns users, cells numbered without gaps, and places.
    """
    users = np.repeat(np.arange(4), 100)
    places = around(CORNERS[users], 45 * np.sqrt(rng.random(400)), rng)
    outputs = around(np.repeat(places, seeds, axis=0), rng.gamma(2, metres / math.log(2), 400 * seeds), rng)
    _, cells = np.unique(np.floor((outputs - 150) / cell), axis=0, return_inverse=True)
    return np.repeat(users, seeds), cells.ravel(), np.repeat(np.arange(400), seeds)


@pytest.mark.parametrize(
    ("metres", "cell", "seeds", "in_sample", "held_out", "tolerance"),
    [
        (100, 30, 1, 0.058, 0.666, 0.06),
        (100, 30, 10, 0.286, 0.550, 0.02),
        (100, 30, 50, 0.360, 0.447, 0.01),
        (100, 30, 200, 0.389, 0.419, 0.01),
        (100, 150, 10, 0.402, 0.411, 0.02),
        (100, 150, 100, 0.403, 0.405, 0.01),
        (60, 30, 10, 0.200, 0.329, 0.02),
        (60, 30, 100, 0.236, 0.255, 0.01),
    ],
)
def test_figures_of_the_planar_laplace_square(
    metres: int, cell: float, seeds: int, in_sample: float, held_out: float, tolerance: float
) -> None:
    """In-sample on so many outputs per place; held-out learnt on as many and scored on as many others."""
    rng, repeats = np.random.default_rng(20), 10 if seeds == 1 else 1
    once, pairs = [], []
    for _ in range(repeats):
        users, cells, _ = square(metres, cell, seeds, rng)
        once.append(leakage.bayes_error(leakage.frequencies(users, cells)))
        users, cells, _ = square(metres, cell, 2 * seeds, rng)
        pairs.append(leakage.sample_bayes_error(users, cells, rng, resamples=20))
    assert np.mean(once) == pytest.approx(in_sample, abs=tolerance)
    assert np.mean([p.held_out for p in pairs]) == pytest.approx(held_out, abs=tolerance)
    assert all(p.in_sample < TRUTH[metres] + 0.01 and p.held_out > TRUTH[metres] - 0.01 for p in pairs)


def small(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sample of a law that is known."""
    joint = np.random.default_rng(8).dirichlet(np.ones(60)).reshape(3, 20)
    drawn = rng.choice(60, rows, p=joint.ravel())
    return joint, drawn // 20, drawn % 20


# Each estimate with the measure that it estimates, and whether the frequencies are biased low.
PAIRS = [
    (leakage.sample_bayes_error, leakage.bayes_error, True),
    (leakage.sample_information, leakage.information, False),
    (leakage.sample_conditional_entropy, leakage.conditional_entropy, True),
    (leakage.sample_min_entropy_leakage, leakage.min_entropy_leakage, False),
]


@pytest.mark.parametrize(("ask", "measure", "low"), PAIRS)
def test_the_truth_lies_between_on_average(ask: Any, measure: Any, low: bool) -> None:
    """Both biases have the stated sign, beyond the spread of the averages."""
    rng = np.random.default_rng(4)
    told = []
    for _ in range(200):
        joint, x, z = small(150, rng)
        pair = ask(x, z, rng, (3, 20), resamples=20)
        told.append((pair.in_sample, pair.held_out))
    (first, second), spread = np.mean(told, axis=0), 3 * np.std(told, axis=0).max() / math.sqrt(200)
    below, above = (first, second) if low else (second, first)
    assert below + spread < measure(joint) < above - spread
    assert pair.lean == (
        "biased low in-sample, high held-out" if low else "biased high in-sample, low held-out"
    )


@pytest.mark.parametrize(("ask", "measure", "low"), PAIRS)
def test_both_figures_reach_the_truth(ask: Any, measure: Any, low: bool) -> None:
    rng = np.random.default_rng(6)
    joint, x, z = small(200_000, rng)
    pair, truth = ask(x, z, rng, (3, 20), resamples=40), measure(joint)
    assert pair.in_sample == pytest.approx(truth, abs=0.01) == pair.held_out
    for bottom, top in (pair.in_sample_interval, pair.held_out_interval):
        assert bottom - 0.003 < truth < top + 0.003 and 0 < top - bottom < 0.03


def test_a_rule_worse_than_guessing_leaks_nothing() -> None:
    """Outputs that occur once: rules learnt elsewhere know only the likeliest secret."""
    x = np.array([0] * 30 + [1] * 20)
    pair = leakage.sample_min_entropy_leakage(x, np.arange(50), np.random.default_rng(1), resamples=20)
    assert pair.in_sample == pytest.approx(math.log2(50 / 30)) and 0 <= pair.held_out < 0.05


def test_intervals_cover() -> None:
    """The reflected interval of the frequencies covers the truth; the held-out one the risk of the rules, at a little less
    than the truth's other side."""
    rng = np.random.default_rng(9)
    held = []
    for _ in range(100):
        joint, x, z = small(2000, rng)
        pair = leakage.sample_bayes_error(x, z, rng, (3, 20), resamples=60)
        low, high = pair.in_sample_interval
        held.append(low <= leakage.bayes_error(joint) <= high)
    assert np.mean(held) > 0.85


def test_in_sample_is_the_measure_of_the_frequencies() -> None:
    rng = np.random.default_rng(1)
    _, x, z = small(500, rng)
    table = leakage.frequencies(x, z)
    for ask, measure, _ in PAIRS:
        assert ask(x, z, rng, resamples=20).in_sample == measure(table)
    counted = np.zeros((3, 20))
    np.add.at(counted, (x, z), 1)
    assert np.array_equal(table, leakage.normalised(counted[:, : table.shape[1]]))


def test_held_out_by_hand() -> None:
    """Two groups, so that the split is known: learn on one, score on the other, both ways."""
    x = np.array([0, 0, 1, 1, 0, 1, 1])
    z = np.array([0, 0, 1, 2, 1, 1, 0])
    groups = np.array(["a"] * 4 + ["b"] * 3)
    pair = leakage.sample_bayes_error(x, z, np.random.default_rng(0), groups=groups, resamples=20)
    # Learnt on a: 0 → 0, 1 → 1, 2 → 1; errs on two of b. Learnt on b: 0 → 1, 1 → 0 (the first of two), 2 → 1; errs on three of a.
    assert pair.held_out == pytest.approx(5 / 7)
    assert (pair.rows, pair.groups, pair.folds) == (7, 2, 2)
    assert "7 rows in 2 groups" in str(pair)


def test_rows_of_a_group_are_held_out_together() -> None:
    """An output that is its group's own name identifies the secret in-sample, and says nothing of the groups held out."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(100), 5)
    secret = rng.integers(0, 2, 100)[group]
    apart = leakage.sample_bayes_error(secret, group, rng, resamples=20)
    together = leakage.sample_bayes_error(secret, group, rng, groups=group, resamples=20)
    assert apart.held_out < 0.1 and together.in_sample == 0 and together.held_out > 0.35
    bits = leakage.sample_information(secret, group, rng, groups=group, resamples=20)
    assert bits.in_sample > 0.95 and bits.held_out < 0.02
    width = [np.diff(p.held_out_interval)[0] for p in (apart, together)]
    assert width[1] > width[0]


def test_one_secret_tells_nothing() -> None:
    rng = np.random.default_rng(3)
    for ask, _, _ in PAIRS:
        pair = ask(np.zeros(50, dtype=int), np.arange(50) % 7, rng, resamples=20)
        assert pair.in_sample == pair.held_out == 0 and pair.in_sample_interval == (0, 0)


def test_the_caller_s_generator_decides() -> None:
    _, x, z = small(200, np.random.default_rng(1))
    one, two = (leakage.sample_information(x, z, np.random.default_rng(7), resamples=30) for _ in range(2))
    assert one == two


def test_batches_give_both_estimates() -> None:
    """Mean predictions of a posterior: the bound tends to I(X; Z), TᵗQ / N to I(X; Y), which is less."""
    rng = np.random.default_rng(2)
    joint, x, z = small(100_000, rng)
    posterior = (joint / joint.sum(axis=0)).T
    shown = leakage.batch_information(x, posterior[z])
    assert shown.bound == pytest.approx(leakage.information(joint), abs=0.01)
    assert shown.guesses == pytest.approx(leakage.guess_information(joint, posterior), abs=0.01)
    assert shown.guesses < shown.bound - 0.05
    table = leakage.frequencies(x, z, (3, 20))
    assert shown.bound == pytest.approx(leakage.information_bound(table, posterior), abs=1e-12)
    assert shown.guesses == pytest.approx(leakage.guess_information(table, posterior), abs=1e-12)
    assert leakage.batch_information([0, 1], [[1, 0], [1, 0]]).bound == -math.inf


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: leakage.frequencies([], []), "secrets"),
        (lambda: leakage.frequencies([0, 1], [0]), "one of each"),
        (lambda: leakage.frequencies([0.5], [0]), "secrets"),
        (lambda: leakage.frequencies([0], [-1]), "outputs"),
        (lambda: leakage.frequencies([0, 2], [0, 0], (2, 1)), "from 0 to 1"),
        (lambda: leakage.frequencies([0, 1], [0, 10**9]), "without gaps"),
        (lambda: leakage.sample_bayes_error([0], [0], RNG), "folds"),
        (lambda: leakage.sample_bayes_error([0, 1], [0, 1], RNG, folds=1), "folds"),
        (lambda: leakage.sample_bayes_error([0, 1], [0, 1], RNG, groups=["a", "a"]), "folds"),
        (lambda: leakage.sample_bayes_error([0, 1], [0, 1], RNG, groups=["a"]), "groups"),
        (lambda: leakage.sample_information([0, 1], [0, 1], RNG, resamples=1), "resamples"),
        (lambda: leakage.sample_information([0, 1], [0, 1], RNG, level=1), "level"),
        (lambda: leakage.batch_information([0, 1], [[1, 0]]), "predictions"),
        (lambda: leakage.batch_information([2], [[1, 0]]), "from 0 to 1"),
        (lambda: leakage.batch_information([0], [[0.5, 0.4]]), "every row"),
    ],
)
def test_mistakes_are_named(ask: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        ask()
