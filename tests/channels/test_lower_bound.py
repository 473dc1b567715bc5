"""The bound never exceeds the optimum, whatever classifier and multiplier it is given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import recomputed

from tetraodon.channels import interior
from tetraodon.channels.leaking_search import search
from tetraodon.channels.lower_bound import (
    Problem,
    best_bound,
    gains,
    information_bound,
    leaked,
    normalised,
    posterior,
    within,
)
from tetraodon.errors import SpecificationError


def problem_of(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A small random problem; every third has a value without mass, every fifth a secret without."""
    rng = np.random.default_rng(seed)
    secrets, rows, outputs = rng.integers(2, 5), rng.integers(2, 6), rng.integers(2, 6)
    joint = rng.dirichlet(np.full(secrets * rows, 0.5)).reshape(secrets, rows)
    joint[rng.random(joint.shape) < 0.2] = 0
    if seed % 3 == 0:
        joint[:, 0] = 0
    if seed % 5 == 0:
        joint[0] = 0
    if joint.sum() == 0:
        joint[-1, -1] = 1
    cost = rng.random((rows, outputs))
    mass = joint.sum(0) / joint.sum()
    low, high = float(mass @ cost.min(1)), float((mass @ cost).min())
    return joint / joint.sum(), cost, low + rng.uniform(0.05, 1.1) * (high - low) + 1e-3


def feasible(joint: np.ndarray, cost: np.ndarray, budget: float, rng: np.random.Generator) -> np.ndarray:
    """A random channel within the budget."""
    mass = joint.sum(0)
    K = rng.dirichlet(np.full(cost.shape[1], 0.4), size=len(cost))
    nearest = np.zeros_like(K)
    nearest[np.arange(len(K)), cost.argmin(1)] = 1
    spent, least = mass @ (K * cost).sum(1), mass @ (nearest * cost).sum(1)
    share = 0.0 if spent <= budget else (spent - budget) / (spent - least)
    return (1 - share) * K + share * nearest


def bits(joint: np.ndarray, K: np.ndarray) -> float:
    J = joint @ K
    outer = J.sum(1, keepdims=True) * J.sum(0)
    return float((J[J > 0] * np.log2(J[J > 0] / outer[J > 0])).sum())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_no_channel_leaks_less_than_the_bound(seed: int) -> None:
    joint, cost, budget = problem_of(seed)
    rng = np.random.default_rng(seed + 1)
    q = rng.dirichlet(np.full(len(joint), 0.5), size=cost.shape[1]).T
    q[rng.random(q.shape) < 0.1] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(q) - np.log(np.where(joint.sum(1) > 0, joint.sum(1), 1.0))[:, None]
    lam = float(rng.exponential(2))
    told = information_bound(joint, cost, budget, ratio, lam)
    for _ in range(20):
        assert told <= bits(joint, feasible(joint, cost, budget, rng))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_bound_and_channel_enclose_the_optimum(seed: int) -> None:
    joint, cost, budget = problem_of(seed)
    rows, secrets = joint.sum(0) > 0, joint.sum(1) > 0
    part = joint[np.ix_(secrets, rows)]
    problem = Problem.of(part, cost[rows], budget)
    if secrets.sum() < 2 or problem.least() >= 0.999 * budget:
        return
    found = search(problem, None, np.arange(len(problem.mass)), 1e-6, 60.0)
    assert found.gap <= 1e-4
    assert abs(found.K.sum(1) - 1).max() < 1e-12 and problem.only(found.columns).distortion(
        found.K
    ) <= budget * (1 + 1e-12)
    whole = np.zeros(problem.cost.shape)
    whole[:, found.columns] = found.K
    assert found.value == pytest.approx(bits(part, whole), abs=1e-9)
    rng = np.random.default_rng(seed + 2)
    for _ in range(
        20
    ):  # a step from the optimum towards any channel raises the leakage: first order and value
        other = feasible(part, cost[rows], budget, rng)
        for share in (1.0, 0.1, 1e-3):
            assert bits(part, (1 - share) * whole + share * other) >= found.bound


@pytest.mark.parametrize("seed", [683, 731, 3454])
def test_outputs_that_hardly_come_are_priced_where_the_interior_point_leaves_no_proof(seed: int) -> None:
    joint, cost, budget = problem_of(seed)
    rows, secrets = joint.sum(0) > 0, joint.sum(1) > 0
    problem = Problem.of(joint[np.ix_(secrets, rows)], cost[rows], budget)
    assert interior.solve(problem, 1e-6).gap > 1e-4
    assert search(problem, None, np.arange(len(problem.mass)), 1e-6, 60.0).gap <= 1e-6


def test_an_independent_evaluation_agrees() -> None:
    joint, cost, budget = problem_of(7)
    problem = Problem.of(joint[:, joint.sum(0) > 0][joint.sum(1) > 0], cost[joint.sum(0) > 0], budget)
    found = interior.solve(problem, 1e-5)
    arrays = {
        "joint": problem.joint,
        "cost": problem.cost,
        "budget": budget,
        "multiplier": found.multiplier,
        "log_ratio": found.log_ratio,
    }
    assert recomputed(arrays) == pytest.approx(found.bound, abs=1e-8)
    assert found.bound <= recomputed(arrays)  # ours has a margin for rounding


def test_a_classifier_above_one_is_no_certificate() -> None:
    joint, cost = np.eye(2) / 2, 1 - np.eye(2)
    fair = np.log(2 * np.array([[0.75, 0.25], [0.25, 0.75]]))
    plain = information_bound(joint, cost, 0.25, fair, 1.0)
    raised = information_bound(joint, cost, 0.25, fair + np.log(1.001), 1.0)
    assert raised == pytest.approx(plain, abs=1e-8)
    assert plain <= 1 - 0.8112781  # 1 − h(1/4)


def test_zeros_are_taken_as_limits() -> None:
    joint = np.array([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    cost = np.array([[0.0, 1.0], [1.0, 0.0], [np.pi, 2.0]])
    sure = np.array([[np.log(2), -np.inf], [-np.inf, np.log(2)]])
    assert information_bound(joint, cost, 0.0, sure, 0.0) == -np.inf  # q = 0 where a secret may be
    assert information_bound(joint[:, :2], cost[:2], 0.0, np.zeros((2, 2)), 0.0) == pytest.approx(0, abs=1e-8)
    three = np.vstack([joint, np.zeros(3)])
    assert np.isfinite(
        information_bound(three, cost, 0.3, np.vstack([np.zeros((2, 2)), [[-np.inf] * 2]]), 0.2)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"multiplier": -1.0},
        {"multiplier": np.nan},
        {"log_ratio": np.full((2, 2), np.nan)},
        {"log_ratio": np.zeros((2, 3))},
        {"cost": np.array([[0.0, np.inf], [1.0, 0.0]])},
        {"cost": np.zeros((3, 2))},
        {"joint": -np.eye(2)},
        {"joint": np.zeros((2, 2))},
        {"budget": np.inf},
    ],
)
def test_nonsense_is_refused(change: dict[str, object]) -> None:
    told: dict[str, object] = {
        "joint": np.eye(2) / 2,
        "cost": 1 - np.eye(2),
        "budget": 0.25,
        "log_ratio": np.zeros((2, 2)),
        "multiplier": 1.0,
    }
    with pytest.raises(SpecificationError):
        information_bound(**(told | change))  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_the_search_over_multipliers_finds_the_top(seed: int) -> None:
    joint, cost, budget = problem_of(seed)
    rows, secrets = joint.sum(0) > 0, joint.sum(1) > 0
    problem = Problem.of(joint[np.ix_(secrets, rows)], cost[rows], budget)
    rng = np.random.default_rng(seed)
    K = within(problem, rng.dirichlet(np.ones(cost.shape[1]), size=int(rows.sum())))
    gain = gains(problem.given, posterior(problem, K))

    def at(lam: float) -> float:
        return float(problem.mass @ (gain + lam * problem.cost).min(1)) - lam * budget

    value, lam = best_bound(problem, gain, 1.0, evaluations=60)
    assert value == pytest.approx(at(lam), abs=1e-12)
    assert value >= max(at(x) for x in np.geomspace(1e-3, 1e3, 200)) - 1e-7


def test_helpers() -> None:
    problem = Problem.of(np.eye(2) / 2, 1 - np.eye(2), 0.25)
    K = np.array([[0.9, 0.1], [0.6, 0.4]])
    assert leaked(problem, K) == pytest.approx(bits(problem.joint, K), abs=1e-12)
    kept = within(problem, K)
    assert problem.distortion(kept) <= 0.25 and kept.sum(1) == pytest.approx([1, 1])
    ratio = normalised(problem, np.array([[3.0, -1.0], [2.0, 700.0]]))
    assert problem.prior @ np.exp(ratio) == pytest.approx([1, 1])
    with np.errstate(divide="ignore"):
        assert posterior(problem, np.eye(2)) == pytest.approx(np.log(np.eye(2) * 2))
