"""The programs behind channels against published figures, other solvers and each other: information with and without pairs, one
guess, no leakage at all, and secret = value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import paris, plane, recomputed, square
from numpy.typing import NDArray

from tetraodon import Integer
from tetraodon.channels import bayes, joint_program, mirror, rate, zero
from tetraodon.channels.attainable import Unreachable
from tetraodon.channels.bounds import Bounds
from tetraodon.channels.geometry import distances
from tetraodon.channels.joint_pairs import needed
from tetraodon.channels.repair import repaired
from tetraodon.domain import Domain
from tetraodon.errors import SpecificationError

Floats = NDArray[np.float64]
LN2 = np.log(2)


def supported(n: int) -> tuple[Floats, Floats]:
    """The square's joint law on cells with mass, and distances from them to all cells."""
    joint, domain = square(n)
    rows = joint.sum(0) > 0
    return joint[:, rows], distances(None, domain)[rows]


def random_problem(seed: int) -> tuple[Floats, Floats, float]:
    """A small joint law, some of it 0, costs, some of them 0, and a budget between the least and the dearest that matters."""
    rng = np.random.default_rng(seed)
    secrets, rows, outputs = rng.integers(2, 5), rng.integers(2, 6), rng.integers(2, 6)
    joint = rng.dirichlet(np.full(secrets * rows, 0.7)).reshape(secrets, rows)
    joint[joint < 0.02] = 0
    joint[0, 0] += 0.05
    joint[1, 1] += 0.05
    if seed % 3 == 0:
        joint[:, -1] = 0
    if seed % 5 == 0:
        joint[-1] = 0
    joint /= joint.sum()
    cost = rng.random((rows, outputs))
    cost[rng.random(cost.shape) < 0.2] = 0
    mass = joint.sum(0)
    low, high = float(mass @ cost.min(1)), float((mass @ cost).min())
    return joint, cost, low + rng.uniform(0.1, 0.9) * (high - low) + 1e-9


def bits(joint: Floats, K: Floats) -> float:
    J = joint @ K
    told = J > 0
    return float((J[told] * np.log2(J[told] / (J.sum(1, keepdims=True) * J.sum(0))[told])).sum())


def spent(joint: Floats, K: Floats, cost: Floats) -> float:
    return float(joint.sum(0) @ (K * cost).sum(1))


# Mirror descent


@pytest.mark.parametrize(("budget", "least"), [(30, 1.3277686), (90, 0.6484142), (150, 0.2459290)])
def test_mirror_descent_certifies_the_known_optimum(budget: float, least: float) -> None:
    joint, cost = supported(10)
    found = mirror.solve(joint, cost, budget, tol_bits=1e-4)
    assert found.gap <= 1e-4
    assert found.bound <= least + 1e-7 and least <= found.value + 1e-7
    only = cost[:, found.columns]
    assert found.value == pytest.approx(bits(joint, found.K), abs=1e-12)
    assert spent(joint, found.K, only) <= budget
    arrays = {"joint": joint, "cost": cost, "budget": budget}
    arrays |= {"multiplier": found.multiplier, "log_ratio": found.log_ratio}
    assert recomputed(arrays) == pytest.approx(found.bound, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "least"),
    [(30, 1.3430790), (60, 0.9443629), (90, 0.6472659), (150, 0.2459069), (173, 0.1416624)],
)
def test_mirror_descent_at_four_hundred_cells(budget: float, least: float) -> None:
    joint, cost = supported(20)
    found = mirror.solve(joint, cost, budget, tol_bits=1e-4, max_seconds=120)
    assert found.gap <= 1e-4
    assert found.bound <= least + 1e-7 and least <= found.value + 1e-7


def test_mirror_descent_says_how_far_it_got_when_time_is_up() -> None:
    joint, cost = supported(10)
    found = mirror.solve(joint, cost, 90, tol_bits=1e-9, max_seconds=0)
    assert found.steps == 0 and found.bound < 0.6484142 < found.value
    assert spent(joint, found.K, cost[:, found.columns]) <= 90


def test_mirror_descent_starts_from_a_channel_of_a_nearby_budget() -> None:
    joint, cost = supported(10)
    first = mirror.solve(joint, cost, 92, tol_bits=1e-4)
    start = np.zeros(cost.shape)
    start[:, first.columns] = first.K
    again = mirror.solve(joint, cost, 90, tol_bits=1e-4, start=start)
    fresh = mirror.solve(joint, cost, 90, tol_bits=1e-4)
    assert again.gap <= 1e-4 and again.value == pytest.approx(fresh.value, abs=2e-4)
    assert again.steps < fresh.steps


def test_outputs_that_left_come_back_when_they_pay() -> None:
    """From a start that avoids the best outputs altogether, the optimum is still found and certified over all of them."""
    joint, cost = supported(10)
    best = mirror.solve(joint, cost, 90, tol_bits=1e-4)
    start = np.full(cost.shape, 1.0)
    start[:, best.columns] = 1e-30
    start /= start.sum(1, keepdims=True)
    found = mirror.solve(joint, cost, 90, tol_bits=1e-4, start=start)
    assert found.gap <= 1e-4 and found.value == pytest.approx(best.value, abs=2e-4)


# What every program says at the ends


def test_a_budget_for_one_output_leaks_nothing() -> None:
    joint, cost = supported(10)
    for found in (
        mirror.solve(joint, cost, 214),
        joint_program.solve(joint, cost, 214, np.full((32, 32), 1.0)),
    ):
        assert found.value == 0 and found.gap == 0
        assert spent(joint, found.K, cost[:, found.columns]) == pytest.approx(213.89, abs=0.01)
    assert bayes.solve(joint, cost, 214).value == pytest.approx(0.75)


def test_one_secret_or_one_row_leaks_nothing() -> None:
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    one = np.array([[0.5, 0.5]])
    for found in (
        mirror.solve(one, cost, 0.2),
        joint_program.solve(one, cost, 0.4, np.array([[0, 2.0], [2.0, 0]])),
    ):
        assert found.value == 0 and found.gap < 1e-8
        assert spent(one, found.K, cost[:, found.columns]) <= 0.4
    alone = joint_program.solve(np.array([[0.5], [0.5]]), cost[:1], 0.0, np.zeros((1, 1)))
    assert alone.value == 0 and alone.K.tolist() == [[1.0, 0.0]]
    assert bayes.solve(np.array([[0.5], [0.5]]), cost[:1], 0.0).value == pytest.approx(0.5)


def test_a_budget_of_nothing_gives_the_truth() -> None:
    prior, cost = np.full(5, 0.2), abs(np.arange(5.0)[:, None] - np.arange(5.0))
    for found in (mirror.solve(np.diag(prior), cost, 0.0), rate.at_distortion(prior, cost, 0.0)):
        assert found.value == pytest.approx(np.log2(5), abs=1e-9) and found.gap < 1e-5
        assert np.array_equal(found.K, np.eye(5))
    assert bayes.solve(np.diag(prior), cost, 0.0).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "solve", [mirror.solve, bayes.solve, lambda P, D, L: rate.at_distortion(P.sum(0), D, L)]
)
def test_a_budget_below_the_nearest_output_is_refused(solve: object) -> None:
    cost = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])
    with pytest.raises(Unreachable, match=r"at least 1, above the 0\.5") as refused:
        solve(np.eye(2) / 2, cost, 0.5)  # type: ignore[operator]
    assert refused.value.least == pytest.approx(1)


@pytest.mark.parametrize(
    ("joint", "cost", "budget", "word"),
    [
        ([[1.0, -1.0]], [[1.0], [1.0]], 1.0, "joint"),
        ([[0.5, 0.5]], [[np.nan], [1.0]], 1.0, "cost"),
        ([[0.5, 0.5]], [[1.0]], 1.0, "shape|joint"),
        ([[0.5, 0.5]], [[1.0], [1.0]], np.inf, "distortion"),
        ([[0.0, 0.0]], [[1.0], [1.0]], 1.0, "joint"),
    ],
)
def test_numbers_that_fit_no_program_are_named(joint: object, cost: object, budget: float, word: str) -> None:
    for solve in (
        lambda: mirror.solve(joint, cost, budget),  # type: ignore[arg-type]
        lambda: bayes.solve(joint, cost, budget),  # type: ignore[arg-type]
        lambda: joint_program.solve(joint, cost, budget, np.zeros((2, 2))),  # type: ignore[arg-type]
    ):
        with pytest.raises(SpecificationError, match=word):
            solve()


@pytest.mark.parametrize("unit", [1e-7, 1e7])
def test_units_of_the_cost_do_not_matter(unit: float) -> None:
    joint, domain = square(4, dense=0.05)
    cost, budget, asked = distances(None, domain), 120.0, LN2 / 40 * distances(None, domain)
    prior = joint.sum(0)
    for solve in (
        lambda D, L: mirror.solve(joint, D, L, 1e-4),
        lambda D, L: joint_program.solve(joint, D, L, asked),
        lambda D, L: bayes.solve(joint, D, L),
        lambda D, L: rate.at_distortion(prior, D, L),
    ):
        one, other = solve(cost, budget), solve(unit * cost, unit * budget)
        assert other.value == pytest.approx(one.value, abs=2e-4) and other.gap <= 1e-4
        assert other.multiplier * unit == pytest.approx(one.multiplier, rel=0.05)
    assert zero.solve(joint, unit * cost).value == pytest.approx(
        unit * zero.solve(joint, cost).value, rel=1e-6
    )
    with pytest.raises(Unreachable) as refused:
        joint_program.solve(joint, unit * cost, unit, LN2 / 400 * cost)
    assert refused.value.least > 50 * unit


# Information with pairs


@pytest.mark.parametrize(
    ("scale", "budget", "least"),
    [(30, 150, 0.262174), (60, 150, 0.294116), (100, 150, 0.312254), (30, 200, 0.033595)],
)
def test_the_joint_program_meets_its_figures(scale: float, budget: float, least: float) -> None:
    joint, domain = square(5, dense=0.05)
    cost = distances(None, domain)
    asked = LN2 / scale * cost
    found = joint_program.solve(joint, cost, budget, asked)
    assert found.gap <= 1e-5
    assert found.value == pytest.approx(least, abs=6e-6)
    assert spent(joint, found.K, cost) <= budget
    logs = np.log(found.K)
    assert (abs(logs[:, None] - logs[None]).max(2) <= asked).all()


def test_pairs_only_add_to_what_must_leak() -> None:
    joint, domain = square(5, dense=0.05)
    cost = distances(None, domain)
    free = joint_program.solve(joint, cost, 150, np.full(cost.shape, np.inf))
    assert free.value == pytest.approx(0.233171, abs=6e-6)
    assert mirror.solve(joint, cost, 150, 1e-5).value == pytest.approx(free.value, abs=2e-5)
    values = [joint_program.solve(joint, cost, 150, LN2 / scale * cost).value for scale in (1, 30, 60)]
    assert free.value - 1e-5 <= values[0] <= values[1] <= values[2]


def test_the_joint_bound_is_what_a_stranger_finds() -> None:
    joint, domain = square(5, dense=0.05)
    cost = distances(None, domain)
    found = joint_program.solve(joint, cost, 150, LN2 / 30 * cost)
    lam, R = found.multiplier, found.log_ratio
    assert lam >= 0 and (found.multipliers >= 0).all()
    assert (joint.sum(1) @ np.exp(R) <= 1 + 1e-12).all()
    total = joint.T @ R + lam * joint.sum(0)[:, None] * cost
    pairs = zip(found.first, found.second, found.exponents, found.multipliers, strict=True)
    for a, b, exponent, y in pairs:
        assert exponent <= LN2 / 30 * cost[a, b] * (1 + 1e-9)
        total[a] += np.exp(-exponent / 2) * y
        total[b] -= np.exp(exponent / 2) * y
    assert (total.min(1).sum() - lam * 150) / LN2 == pytest.approx(found.bound, abs=1e-8)


def test_a_joint_channel_is_repaired_into_a_table_that_keeps_its_bounds() -> None:
    joint, domain = square(5, dense=0.05)
    cost = distances(None, domain)
    first, second = np.triu_indices(25, 1)
    for scale, budget in ((30, 150), (100, 180)):
        bounds = Bounds(first, second, LN2 / scale * cost[first, second] * (1 - 1e-12))
        found = joint_program.solve(joint, cost, budget, bounds.dense(25))
        table = repaired(found.K, bounds)
        assert table.keeps(bounds)
        K = table.rows(np.arange(25))
        assert spent(joint, K, cost) <= budget and bits(joint, K) == pytest.approx(found.value, abs=1e-8)


def test_the_least_distortion_of_the_pairs_is_named() -> None:
    """What a refused budget names is the optimum of the linear program without information."""
    joint, domain = square(4, dense=0.05)
    cost = distances(None, domain)
    asked = LN2 / 200 * cost
    with pytest.raises(Unreachable, match="pairs need") as refused:
        joint_program.solve(joint, cost, 100, asked)
    assert refused.value.least == pytest.approx(_cheapest(joint, cost, asked)[0], rel=1e-4)
    just = joint_program.solve(joint, cost, refused.value.least * 1.001, asked)
    assert just.gap < 1e-3


def _cheapest(joint: Floats, cost: Floats, asked: Floats) -> tuple[float, Floats]:
    from scipy.optimize import linprog

    rows, outputs = cost.shape
    unequal, equal = [], []
    for a in range(rows):
        one = np.zeros((rows, outputs))
        one[a] = 1
        equal.append(one.ravel())
        for b in range(rows):
            if a != b and np.isfinite(asked[a, b]):
                for z in range(outputs):
                    line = np.zeros((rows, outputs))
                    line[a, z], line[b, z] = 1, -np.exp(asked[a, b])
                    unequal.append(line.ravel())
    A = np.array(unequal)
    done = linprog(
        (joint.sum(0)[:, None] * cost).ravel(),
        A,
        np.zeros(len(A)),
        np.array(equal),
        np.ones(rows),
        method="highs",
    )
    return float(done.fun), done.x.reshape(rows, outputs)


def test_rows_without_mass_keep_their_pairs() -> None:
    joint, domain = square(5)
    assert (joint.sum(0) == 0).any()
    cost = distances(None, domain)
    asked = np.where(cost <= 78.1, 0.4, np.inf)
    np.fill_diagonal(asked, 0)
    found = joint_program.solve(joint, cost, 150, asked)
    logs = np.log(found.K)
    assert (abs(logs[:, None] - logs[None]).max(2) <= asked + 1e-9).all()
    assert found.gap < 1e-4


def test_pairs_of_exponent_zero_make_rows_equal() -> None:
    joint, cost, budget = np.diag([0.3, 0.3, 0.4]), np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]), 0.6
    asked = np.array([[0, 0, np.inf], [0, 0, 1.0], [np.inf, 1.0, 0]])
    found = joint_program.solve(joint, cost, budget, asked)
    assert (found.K[0] == found.K[1]).all() and found.gap < 1e-5
    merged = joint_program.solve(
        np.array([[0.3, 0], [0.3, 0], [0, 0.4]]),
        np.array([[0.5, 0.5, 1.5], [2.0, 1.0, 0.0]]),
        budget,
        np.array([[0, 1.0], [1.0, 0]]),
    )
    assert found.value == pytest.approx(merged.value, abs=1e-5)


def test_a_single_pair_of_exponent_zero_already_makes_rows_equal() -> None:
    """K[0] ≤ K[1] for every output, and both rows sum to 1."""
    joint, cost = np.diag([0.3, 0.3, 0.4]), np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
    asked = np.full((3, 3), np.inf)
    np.fill_diagonal(asked, 0)
    asked[0, 1] = 0
    found = joint_program.solve(joint, cost, 0.5, asked)
    asked[1, 0] = 0
    both = joint_program.solve(joint, cost, 0.5, asked)
    assert np.array_equal(found.K[0], found.K[1])
    assert found.value == pytest.approx(both.value, abs=1e-5) and found.gap < 1e-5


def test_one_sided_pairs_are_one_sided() -> None:
    joint, cost = np.eye(2) / 2, 1 - np.eye(2)
    found = joint_program.solve(joint, cost, 0.31, np.array([[0, 0.5], [np.inf, 0]]))
    ratio = found.K[0] / found.K[1]
    assert (ratio <= np.exp(0.5)).all() and ratio.min() < np.exp(-0.5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_joint_channels_keep_what_was_asked(seed: int) -> None:
    joint, cost, budget = random_problem(seed)
    rng = np.random.default_rng(seed + 1)
    n = len(cost)
    asked = np.where(rng.random((n, n)) < 0.6, rng.exponential(1.5, (n, n)), np.inf)
    np.fill_diagonal(asked, 0)
    try:
        found = joint_program.solve(joint, cost, budget, asked)
    except Unreachable as refused:
        assert refused.least > budget * (1 - 1e-5)
        return
    assert found.bound <= found.value and found.gap < 1e-4
    assert spent(joint, found.K, cost) <= budget + 1e-12
    over = np.where(np.isfinite(asked), np.exp(-asked), 0.0)[:, :, None] * found.K[:, None] - found.K[None]
    assert over.max() <= 1e-12
    # No feasible channel is below the bound: the least leaking one without pairs need not be feasible, this one is.
    mean = (joint.sum(0) @ found.K)[None].repeat(n, 0)
    share = 0.5
    mixed = share * found.K + (1 - share) * mean
    if spent(joint, mixed, cost) <= budget:
        assert bits(joint, mixed) >= found.bound - 1e-9


@pytest.mark.parametrize("seed", [2, 4, 7])
def test_cutting_planes_agree_about_joint_channels(seed: int) -> None:
    """Kelley's method with a linear solver: each tangent of the information is a plane below it; the program under all planes is
    below the optimum, and each of its channels above."""
    from scipy.optimize import linprog

    joint, cost, _ = random_problem(seed)
    n, m = cost.shape
    asked = np.full((n, n), 1.2)
    np.fill_diagonal(asked, 0)
    budget = 0.5 * (_cheapest(joint, cost, asked)[0] + float((joint.sum(0) @ cost).min()))
    found = joint_program.solve(joint, cost, budget, asked)
    unequal, right = [np.append((joint.sum(0)[:, None] * cost).ravel(), 0)], [budget]
    for a in range(n):
        for b in range(n):
            for z in range(m):
                if a != b:
                    line = np.zeros((n, m))
                    line[a, z], line[b, z] = 1, -np.exp(1.2)
                    unequal.append(np.append(line.ravel(), 0))
                    right.append(0)
    equal = np.hstack([np.kron(np.eye(n), np.ones((1, m))), np.zeros((n, 1))])
    prior, K, low, high = joint.sum(1), 0.5 * found.K + 0.5 / m, -np.inf, np.inf
    centre = K
    for _ in range(150):
        near = 0.999 * K + 0.001 / m
        J = joint @ near
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = joint.T @ np.nan_to_num(
                np.log(J / J.sum(0) / prior[:, None])
            )  # I(K') ≥ Σ slope · K', tangent at ``near``
        unequal.append(np.append(slope.ravel(), -1))
        right.append(0)
        done = linprog(
            np.append(np.zeros(n * m), 1),
            np.array(unequal),
            right,
            equal,
            np.ones(n),
            (0, None),
            method="highs",
        )
        low = max(low, done.fun / LN2)
        tip = done.x[:-1].reshape(n, m)
        centre = 0.7 * centre + 0.3 * tip  # steadier than the tip alone
        K = centre if len(right) % 2 else tip
        if (
            spent(joint, centre, cost) <= budget
            and (centre <= np.exp(1.2) * centre.min(0) * (1 + 1e-9)).all()
        ):
            high = min(high, bits(joint, centre))
        high = min(high, bits(joint, tip))
    assert high - low < 0.01
    assert low <= found.value + 1e-7 and found.bound <= high + 1e-7
    assert found.gap < 1e-4


def test_implied_pairs_are_left_out() -> None:
    line = abs(np.arange(5.0)[:, None] - np.arange(5.0))
    assert sorted(zip(*np.nonzero(needed(line)), strict=True)) == sorted(
        [(i, i + 1) for i in range(4)] + [(i + 1, i) for i in range(4)]
    )
    apart = np.array([[0, np.inf], [np.inf, 0]])
    assert not needed(apart).any()


@pytest.mark.slow
def test_the_joint_program_at_a_hundred_cells() -> None:
    joint, domain = square(10, dense=0.05)
    cost = distances(None, domain)
    found = joint_program.solve(joint, cost, 150, LN2 / 30 * cost, tol_bits=1e-4)
    assert found.gap <= 1e-4 and found.value == pytest.approx(0.30657, abs=1e-4)


# One guess


@pytest.mark.parametrize(
    ("n", "budget", "most"),
    [
        (10, 30, 0.135664),
        (10, 60, 0.251631),
        (10, 90, 0.362537),
        (10, 150, 0.568131),
        (10, 173, 0.637580),
        (10, 212, 0.75),
        (20, 30, 0.133676),
        (20, 90, 0.364996),
        (20, 150, 0.567331),
        (20, 173, 0.638423),
    ],
)
def test_the_largest_bayes_error(n: int, budget: float, most: float) -> None:
    joint, cost = supported(n)
    found = bayes.solve(joint, cost, budget)
    assert found.value == pytest.approx(most, abs=1e-5)
    assert found.value <= found.bound + 1e-12 and found.gap <= 1e-5
    assert spent(joint, found.K, cost[:, found.columns]) <= budget
    assert found.value == pytest.approx(1 - (joint @ found.K).max(0).sum(), abs=1e-12)


def test_a_guessing_strategy_bounds_every_channel() -> None:
    joint, cost = supported(10)
    found = bayes.solve(joint, cost, 90)
    y, lam = found.strategy, found.multiplier
    assert (y >= 0).all() and np.allclose(y.sum(0), 1) and lam >= 0
    total = joint.T @ y + lam * joint.sum(0)[:, None] * cost
    assert 1 - (total.min(1).sum() - lam * 90) == pytest.approx(found.bound, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["error", "gain", "distance"]))
def test_a_general_solver_agrees_about_guesses(seed: int, kind: str) -> None:
    joint, cost, budget = random_problem(seed)
    rng = np.random.default_rng(seed + 1)
    gain, about = None, "secret"
    if kind == "gain":
        gain = rng.normal(size=(3, len(joint)))
    elif kind == "distance":
        gain, about = -rng.random((4, len(cost))), "value"
    found = bayes.solve(joint, cost, budget, gain, about)
    other = bayes.by_highs(joint, cost, budget, gain, about)[1]
    assert found.value == pytest.approx(found.offset - other, abs=1e-5)
    assert found.bound >= found.offset - other - 1e-6


def test_an_attacker_who_wants_to_be_near() -> None:
    """Three places in a row: with distance 1 to spend, the attacker's expected distance is that of guessing without an output."""
    place = np.arange(3.0)
    apart = abs(place[:, None] - place)
    joint = np.full((1, 3), 1 / 3)
    for budget, least in ((0.0, 0.0), (1.0, 2 / 3)):
        found = bayes.solve(joint, apart, budget, -apart, about="value")
        assert found.value == pytest.approx(least, abs=1e-6)


def test_gains_of_another_shape_are_refused() -> None:
    joint, cost = np.eye(2) / 2, 1 - np.eye(2)
    with pytest.raises(SpecificationError, match=r"gain: finite numbers, \(guesses, 2\)"):
        bayes.solve(joint, cost, 0.1, np.ones((2, 3)))
    with pytest.raises(SpecificationError, match="about"):
        bayes.solve(joint, cost, 0.1, about="user")
    with pytest.raises(SpecificationError, match="multiplier"):
        bayes.gain_bound(joint, [0.5, 0.5], cost, 0.1, np.eye(2), -1.0)


# No leakage


@pytest.mark.parametrize(("n", "least"), [(10, 211.6228), (20, 211.9057)])
def test_the_zero_leakage_budget(n: int, least: float) -> None:
    joint, cost = supported(n)
    found = zero.solve(joint, cost)
    assert found.value == pytest.approx(least, abs=1e-4) and found.bound == pytest.approx(least, abs=1e-4)
    assert found.bound <= found.value
    assert abs(bits(joint, found.K)) < 1e-12 and np.allclose(found.K.sum(1), 1)
    assert spent(joint, found.K, cost) == pytest.approx(found.value, abs=1e-9)
    spread = joint / joint.sum(1, keepdims=True) - joint.sum(0)
    reduced = joint.sum(0)[:, None] * cost - spread.T @ found.potentials
    assert reduced.min(1).sum() == pytest.approx(found.bound, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_general_solver_agrees_about_no_leakage(seed: int) -> None:
    from scipy.optimize import linprog

    joint, cost, _ = random_problem(seed)
    found = zero.solve(joint, cost)
    told = joint[joint.sum(1) > 0]
    spread = told / told.sum(1, keepdims=True) - joint.sum(0)
    outputs = cost.shape[1]
    equal = np.concatenate(
        [np.kron(np.eye(len(cost)), np.ones((1, outputs))), np.kron(spread, np.eye(outputs))]
    )
    right = np.concatenate([np.ones(len(cost)), np.zeros(len(spread) * outputs)])
    done = linprog((joint.sum(0)[:, None] * cost).ravel(), A_eq=equal, b_eq=right, method="highs")
    assert found.value == pytest.approx(done.fun, abs=2e-6)
    assert found.bound <= done.fun + 1e-9 and found.value - found.bound < 2e-6


def test_equal_laws_need_no_distortion() -> None:
    cost = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.7]])
    found = zero.solve(np.array([[0.2, 0.3, 0.0], [0.2, 0.3, 0.0]]), cost)
    assert found.value == 0 and found.K.tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.data
def test_paris_without_leakage_and_with_one_guess(real_data: Path) -> None:
    joint, apart = paris(real_data, 16, 12)
    rows = joint.sum(0) > 0
    joint, cost = joint[:, rows], apart[rows]
    assert zero.solve(joint, cost).value == pytest.approx(1827.2, abs=0.05)
    for budget, most in ((150, 0.40384), (300, 0.47454), (518, 0.54945), (1150, 0.71291)):
        found = bayes.solve(joint, cost, budget)
        assert found.value == pytest.approx(most, abs=1e-5) and found.gap < 1e-5


# Secret = value


def blahut(prior: Floats, cost: Floats, beta: float, rounds: int) -> Floats:
    r = np.full(cost.shape[1], 1 / cost.shape[1])
    for _ in range(rounds):
        K = r * np.exp(-beta * cost)
        K /= K.sum(1, keepdims=True)
        r = prior @ K
    return np.where(K > 1e-200, K, 0.0)


def test_the_rate_at_a_multiplier() -> None:
    prior = np.random.default_rng(0).dirichlet(np.ones(12))
    cost = abs(np.subtract.outer(np.arange(12.0), np.arange(12.0)))
    found = rate.at_multiplier(prior, cost, 0.8)
    assert found.value == pytest.approx(0.7299737, abs=1e-6) and found.gap < 1e-6
    K = blahut(prior, cost, 0.8, 5000)
    assert found.value + 0.8 / LN2 * spent(np.diag(prior), found.K, cost[:, found.columns]) <= (
        bits(np.diag(prior), K) + 0.8 / LN2 * spent(np.diag(prior), K, cost) + 1e-7
    )
    budget = spent(np.diag(prior), found.K, cost[:, found.columns])
    for other in (rate.at_distortion(prior, cost, budget), mirror.solve(np.diag(prior), cost, budget, 1e-5)):
        assert other.value == pytest.approx(0.7299737, abs=2e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_the_rate_at_a_distortion(seed: int) -> None:
    joint, cost, budget = random_problem(seed)
    prior = joint.sum(0)
    found = rate.at_distortion(prior, cost, budget)
    assert found.gap < 5e-6 and found.bound <= found.value + 1e-12
    assert spent(joint, found.K, cost[:, found.columns]) <= budget + 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 4))
def test_elastic_noise_keeps_twice_its_multiplier(seed: int, beta: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.random((8, 2))
    cost = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    prior = rng.dirichlet(np.full(8, 0.3))
    prior[0] = 0
    found = rate.at_multiplier(prior, cost, beta)
    logs = np.log(found.K)
    most = abs(logs[:, None] - logs[None]).max(2)
    assert (most <= rate.promised(cost, beta) + 1e-9).all()
    assert (rate.promised(cost, beta) <= 2 * beta * cost + 1e-12).all()


def test_elastic_noise_spreads_a_lonely_value_more() -> None:
    line = Domain(x=Integer(0, 20))
    prior = np.zeros(21)
    prior[:5], prior[15] = 1.0, 0.2
    channel = rate.blahut_arimoto(prior, domain=line, epsilon=1, epsilon_per=1, source="public")
    K, apart = channel.matrix, abs(np.subtract.outer(np.arange(21.0), np.arange(21.0)))
    moved = (K * apart).sum(1)
    assert moved[15] > 1.3 * moved[2]


def test_blahut_arimoto_channels_promise_and_prove() -> None:
    grid = plane(4, 4, (0, 400), (0, 400))
    prior = np.arange(16.0)
    elastic = rate.blahut_arimoto(prior, domain=grid, epsilon="1/2", epsilon_per="100 m")
    assert elastic.epsilon_per("100 m") <= 0.5 and str(elastic.asked) == "epsilon 0.5 per 100 m"
    assert elastic.is_private and elastic.certificate is not None
    least = rate.blahut_arimoto(prior, domain=grid, distortion=60, source="released")
    assert least.distortion(prior) <= 60 and least.source == "released"
    for channel in (elastic, least):
        assert channel.certificate is not None and channel.certificate.gap < 1e-5
        arrays = dict(channel.certificate.arrays)
        assert recomputed(arrays) == pytest.approx(channel.certificate.bound, abs=1e-7)
        assert channel.certificate.value == pytest.approx(
            bits(np.diag(prior / 120), channel.matrix), abs=1e-9
        )
    for wrong in ({}, {"distortion": 1.0, "epsilon": 1, "epsilon_per": 1}, {"epsilon": 1}):
        with pytest.raises(SpecificationError, match="state distortion, or epsilon with epsilon_per"):
            rate.blahut_arimoto(prior, domain=grid, **wrong)  # type: ignore[arg-type]
