"""Channels of all groups under budgets: brute force, Clarabel, independent bounds, degenerate cases."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon.channels.leaking_search import search
from tetraodon.channels.lower_bound import LN2, Problem
from tetraodon.errors import SpecificationError
from tetraodon.microdata import batch_steps
from tetraodon.microdata.batches import batches
from tetraodon.microdata.invariant import NoneKept
from tetraodon.microdata.obfuscate import (
    Block,
    NoTarget,
    Obfuscated,
    Unreachable,
    curve,
    information_bound,
    obfuscate,
    with_budget,
    with_budgets,
    with_multiplier,
    with_multipliers,
)

CLOSE = 5e-5  # nats


def crowd(clusters: int, groups: int, people: int = 900) -> tuple[list[Block], float]:
    """People on a curve that their value moves them along, clustered about some of them; a budget between staying and anybody."""
    rng = np.random.default_rng(7)
    values = 40
    code = np.minimum((values * rng.random(people) ** 1.3).astype(np.int64), values - 1)
    turn = code / 12 + rng.normal(0, 0.8, people)
    at = np.stack([np.cos(turn), np.sin(turn), turn / 4], axis=1) + rng.normal(0, 0.3, (people, 3))
    apart = np.sqrt(((at[:, None] - at[None]) ** 2).sum(2))
    label = apart[:, rng.permutation(people)[:clusters]].argmin(1)
    group = np.minimum(
        np.argsort(np.argsort(code, kind="stable"), kind="stable") * groups // people, groups - 1
    )
    group = np.array([np.bincount(group[code == v], minlength=groups).argmax() for v in range(values)])[code]
    found, stay, anybody = [], 0.0, 0.0
    for g in np.unique(group):
        member = np.flatnonzero(group == g)
        own = np.zeros((len(member), clusters))
        own[np.arange(len(member)), label[member]] = 1
        counts = np.zeros((values, clusters), dtype=np.int64)
        np.add.at(counts, (code[member], label[member]), 1)
        size = counts.sum(0)
        total = own.T @ apart[np.ix_(member, member)] @ own
        pairs = np.outer(size, size)
        cost = np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)
        block, rows, columns = Block.of(counts, cost, people)
        stay += float(block.mass @ cost[rows, rows])
        anybody += float(block.mass @ block.cost @ size[columns]) / len(member)
        found.append(block)
    return found, stay + 0.25 * (anybody - stay)


# By Clarabel 0.11.1 through cvxpy 1.9.3, in nats: one budget, one for each group (summed), and one with invariant channels.
GOLDEN: dict[tuple[int, int], tuple[float, float, float]] = {
    (8, 5): (0.0219213, 0.0235837, 0.0280575),
    (8, 10): (0.0068089, 0.0119758, 0.0113549),
    (20, 10): (0.0047848, 0.0182441, 0.0108473),
    (20, 5): (0.0238403, 0.0503289, 0.0353093),
    (50, 5): (0.0270481, 0.1246577, 0.0474109),
    (50, 10): (0.0025689, 0.0241904, 0.0107738),
}  # (clusters, groups)


def clarabel(blocks: list[Block], budget: float, shared: bool, invariant: bool) -> float:
    import cvxpy as cp

    goal, spent, limits = [], [], []
    for block in blocks:
        K = cp.Variable(block.cost.shape, nonneg=True)
        prior = block.joint.sum(1) / block.share
        shown = cp.reshape(block.mass @ K, (1, K.shape[1]), order="C")
        goal.append(cp.sum(cp.rel_entr(100 * block.joint @ K, 100 * prior[:, None] @ shown)))
        spent.append(cp.sum(cp.multiply(block.mass[:, None] * block.cost, K)))
        limits.append(cp.sum(K, axis=1) == 1)
        if invariant:
            limits.append(block.mass @ K == block.mass)
        if not shared:
            limits.append(spent[-1] <= budget * block.share)
    if shared:
        limits.append(sum(spent) <= budget)
    program = cp.Problem(cp.Minimize(sum(goal)), limits)
    program.solve(solver=cp.CLARABEL)
    assert program.status == "optimal"
    return float(program.value) / 100


def asked(blocks: list[Block], budget: float) -> list[tuple[float, bool, bool]]:
    """What the numbers of ``GOLDEN`` are of."""
    each = max(b.least() / b.share for b in blocks) + 0.1 * budget
    return [(budget, True, False), (each, False, False), (budget, True, True)]


@pytest.mark.parametrize("size", GOLDEN)
@pytest.mark.parametrize("kind", range(3))
def test_values_are_those_of_clarabel(size: tuple[int, int], kind: int) -> None:
    blocks, budget = crowd(*size)
    limit, shared, invariant = asked(blocks, budget)[kind]
    found = obfuscate(blocks, limit, shared=shared, invariant=invariant)
    golden = GOLDEN[size][kind]
    assert found.leak == pytest.approx(golden, abs=CLOSE)
    assert found.bound <= golden + 1e-6
    assert found.gap <= 4e-5
    checked(blocks, found, limit, shared, invariant)


@pytest.mark.parametrize("size", list(GOLDEN)[:3])
def test_clarabel_still_says_so(size: tuple[int, int]) -> None:
    pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    blocks, budget = crowd(*size)
    for golden, one in zip(GOLDEN[size], asked(blocks, budget), strict=True):
        assert clarabel(blocks, *one) == pytest.approx(golden, abs=2e-6)


def checked(
    blocks: list[Block], found: Obfuscated, budget: float, shared: bool = True, invariant: bool = False
) -> None:
    """Everything that a solution promises, computed again in other ways."""
    floor = leak = spent = 0.0
    lams = np.broadcast_to(np.asarray(found.multiplier), len(blocks))
    for block, K, A, lam in zip(blocks, found.channels, found.log_ratios, lams, strict=True):
        assert K.shape == block.cost.shape and (K >= 0).all()
        assert np.abs(K.sum(1) - 1).max() < 1e-12
        mass, prior = block.joint.sum(0), block.joint.sum(1) / block.share
        here = float((mass[:, None] * K * block.cost).sum())
        spent += here
        if not shared:
            assert here <= budget * block.share * (1 + 1e-9)
        for z in np.flatnonzero((block.joint @ K).sum(0) > 0):
            J = block.joint @ K[:, z]
            with np.errstate(divide="ignore", invalid="ignore"):
                leak += float(np.nansum(J * np.log(J / J.sum() / prior)))
        total = prior @ np.exp(A)
        worth = block.joint.T @ A + lam * mass[:, None] * block.cost
        if invariant:
            assert np.abs(mass @ K - mass).max() < 1e-12
            floor += float(worth.min(1).sum()) - float(mass @ np.log(total))
        else:
            floor += float((worth - mass[:, None] * np.log(np.maximum(total, 1))).min(1).sum())
        floor -= 0.0 if shared else float(lam) * budget * block.share
    assert found.leak == pytest.approx(leak, abs=1e-9)
    assert found.distortion == pytest.approx(spent, abs=1e-9)
    assert not shared or spent <= budget * (1 + 1e-9)
    assert found.bound == pytest.approx(max(floor - (lams[0] * budget if shared else 0), 0), abs=1e-6)
    assert found.bound <= found.leak + 1e-12


# ------------------------------------------------------------------------------------------------------------ brute force


def frontier(block: Block, steps: int = 401) -> tuple[np.ndarray, np.ndarray]:
    """Distortion and leak of all channels of two clusters and two targets on a grid, the least leak up to each distortion."""
    a, b = (side.ravel() for side in np.meshgrid(*[np.linspace(0, 1, steps)] * 2))
    K = np.stack([np.stack([a, 1 - a], 1), np.stack([b, 1 - b], 1)], 1)
    J = block.joint @ K
    apart = block.joint.sum(1)[:, None] * J.sum(1, keepdims=True) / block.share
    leak = np.sum(J * np.log(np.where(J > 0, J, 1) / np.where(J > 0, apart, 1)), axis=(1, 2))
    spent = np.einsum("w,nwz,wz->n", block.mass, K, block.cost)
    order = np.argsort(spent, kind="stable")
    return spent[order], np.minimum.accumulate(leak[order])


@pytest.mark.parametrize("seed", range(6))
def test_two_groups_of_two_clusters_against_a_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [
        Block(rng.dirichlet(np.full(6, 0.7)).reshape(3, 2) * w + 1e-4, rng.random((2, 2)) + 1 - np.eye(2))
        for w in (0.6, 0.4)
    ]
    least = sum(b.least() for b in blocks)
    budget = least + 0.4 * (sum(b.constant()[1] for b in blocks) - least)
    (one, mine), (other, their) = (frontier(b) for b in blocks)
    place = np.searchsorted(other, budget - one, side="right") - 1
    fits = place >= 0
    grid = float((mine[fits] + their[place[fits]]).min())
    found = obfuscate(blocks, budget, tol=1e-7)
    assert found.leak <= grid + 1e-7
    assert found.leak == pytest.approx(grid, abs=3e-4)
    for block, (spent, leak) in zip(blocks, ((one, mine), (other, their)), strict=True):
        lam = 0.5 + seed
        priced = with_multiplier(block, lam)
        assert priced.lower <= float((leak + lam * spent).min())
        assert priced.cost == pytest.approx(float((leak + lam * spent).min()), abs=3e-4)


def test_one_group_is_the_least_leaking_channel() -> None:
    block = crowd(12, 4)[0][1]
    for share in (0.02, 0.3, 0.7):
        least, most = block.least() / block.share, block.constant()[1] / block.share
        mean = least + share * (most - least)
        problem = Problem.of(block.joint / block.share, block.cost, mean)
        other = search(problem, None, np.arange(block.cost.shape[1]), 1e-6, np.inf).value * LN2 * block.share
        own, shared = with_budget(block, mean, 1e-6), obfuscate([block], mean * block.share, tol=1e-6)
        assert own is not None
        assert own.leak == pytest.approx(other, abs=3e-6)
        assert shared.leak == pytest.approx(other, abs=3e-6)
        assert obfuscate([block], mean, shared=False, tol=1e-6).leak == pytest.approx(other, abs=3e-6)


# ---------------------------------------------------------------------------------------------------- budgets and prices


def test_more_budget_never_leaks_more_and_curves_start_where_the_last_ended() -> None:
    blocks, budget = crowd(15, 4)
    least = sum(b.least() for b in blocks)
    budgets = [least + part * (budget - least) for part in (1.0, 0.1, 2.0, 0.5, 0.1, 0.45, 6.0)]
    warm = curve(blocks, budgets)
    for limit, found in zip(budgets, warm, strict=True):
        checked(blocks, found, limit)
        assert found.gap <= 4e-5
        assert found.leak == pytest.approx(obfuscate(blocks, limit).leak, abs=4e-5)
    ordered = [warm[i].leak for i in np.argsort(budgets, kind="stable")]
    assert all(b <= a + 4e-5 for a, b in pairwise(ordered))
    assert ordered[-1] == 0 and ordered[0] > 0.01
    assert sum(found.steps for found in warm) < sum(obfuscate(blocks, limit).steps for limit in budgets)


def test_prices_support_the_budgets_from_below() -> None:
    blocks, budget = crowd(10, 3)
    found = obfuscate(blocks, budget, tol=1e-6)
    assert isinstance(found.multiplier, float)
    for lam in (0.0, 0.3 * found.multiplier, found.multiplier, 4 * found.multiplier):
        priced = with_multipliers(blocks, lam)
        assert all(0 <= p.lower <= p.cost for p in priced)
        assert all(p.gap <= 1.1e-5 * b.share for p, b in zip(priced, blocks, strict=True))
        assert all(p.cost == pytest.approx(p.leak + lam * p.distortion, abs=1e-12) for p in priced)
        assert sum(p.lower for p in priced) - lam * budget <= found.leak + 1e-9
    exact = sum(p.cost for p in with_multipliers(blocks, found.multiplier)) - found.multiplier * budget
    assert exact == pytest.approx(found.leak, abs=3e-5)
    costs = [sum(p.cost for p in with_multipliers(blocks, lam)) for lam in (0.2, 0.6, 1.0)]
    assert costs[1] >= (costs[0] + costs[2]) / 2 - 1e-5  # a least of linear functions


def test_where_one_target_is_nearest_to_all_a_price_is_exact() -> None:
    block = Block(
        np.array([[0.1, 0.05, 0.15], [0.2, 0.1, 0.05]]), np.array([[1.0, 2.0], [0.5, 0.9], [0.7, 0.7001]])
    )
    for lam in (0.01, 1.0, 30.0):
        priced = with_multiplier(block, lam)
        assert priced.lower == pytest.approx(lam * block.least(), abs=2e-9)
        assert priced.gap < 1.1e-5 * block.share


def test_a_budget_for_each_is_never_better_than_the_same_one_for_all() -> None:
    blocks, budget = crowd(10, 4)
    each = asked(blocks, budget)[1][0]
    assert obfuscate(blocks, each).leak <= obfuscate(blocks, each, shared=False).leak + 4e-5


def test_many_blocks_in_one_call_are_each_solved_as_if_alone() -> None:
    blocks = crowd(20, 5)[0] + crowd(5, 3)[0] + [Block(np.full((1, 3), 0.1), 1 - np.eye(3))]
    assert len(batches(blocks, np.ones(len(blocks)))) > 1
    for block, together in zip(blocks, with_multipliers(blocks, 0.7), strict=True):
        assert together.cost == pytest.approx(with_multiplier(block, 0.7).cost, abs=1e-5 * block.share)
    mean = float(np.median([b.least() / b.share for b in blocks]))
    told = with_budgets(blocks, mean)
    assert any(t is None for t in told) and any(t is not None for t in told)
    for block, other in zip(blocks, told, strict=True):
        alone = with_budget(block, mean)
        assert (other is None) == (alone is None) == (block.least() / block.share > mean * (1 + 1e-12))
        if other is not None and alone is not None:
            assert other.leak == pytest.approx(alone.leak, abs=1e-5 * block.share)
            assert other.distortion <= mean * block.share * (1 + 1e-9)


@pytest.mark.parametrize("wide", [0.0, 100.0])
def test_both_forms_of_the_newton_system_end_at_the_same_optimum(
    wide: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, budget = crowd(12, 4)
    usual = obfuscate(blocks, budget, tol=1e-6)
    monkeypatch.setattr(batch_steps, "WIDE", wide)
    other = obfuscate(blocks, budget, tol=1e-6)
    assert other.leak == pytest.approx(usual.leak, abs=2e-6)
    assert abs(other.steps - usual.steps) <= 2


# --------------------------------------------------------------------------------------------------- masks and invariance


def test_forbidden_targets_are_never_published() -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(3.0, (6, 8))
    counts[:, 5] = 0
    cost = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0))) + 0.1
    targets = np.array([True, True, False, True, False, True, True, False])
    block, rows, columns = Block.of(counts, cost, int(counts.sum()), targets)
    assert rows.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert columns.tolist() == [0, 1, 3, 5, 6]
    free = Block.of(counts, cost, int(counts.sum()))[0]
    budget = block.least() + 0.3
    masked, open_ = obfuscate([block], budget), obfuscate([free], budget)
    checked([block], masked, budget)
    assert masked.channels[0].shape == (7, 5)
    assert open_.bound <= masked.leak
    gone = np.where(np.arange(8) == 6, np.nan, cost)  # no distance is known to this one
    assert 6 not in Block.of(counts, gone, int(counts.sum()))[2]
    with pytest.raises(NoTarget, match="donors"):
        Block.of(counts, cost, int(counts.sum()), np.zeros(8, dtype=bool))


@pytest.mark.parametrize("size", [(6, 3), (15, 4)])
def test_invariant_channels_keep_the_shares_and_leak_no_less(size: tuple[int, int]) -> None:
    blocks, budget = crowd(*size)
    kept, free = obfuscate(blocks, budget, invariant=True), obfuscate(blocks, budget)
    checked(blocks, kept, budget, invariant=True)
    identity = sum(b.leak(np.eye(len(b.cost))) for b in blocks)
    assert free.bound <= kept.leak <= identity
    each = asked(blocks, budget)[1][0] + 0.1
    checked(blocks, obfuscate(blocks, each, shared=False, invariant=True), each, False, True)


def test_invariance_at_its_ends() -> None:
    blocks, _ = crowd(6, 2)
    anybody = sum(b.distortion(np.tile(b.mass / b.share, (len(b.mass), 1))) for b in blocks)
    assert obfuscate(blocks, anybody + 1e-9, invariant=True).leak == pytest.approx(0, abs=1e-12)
    with pytest.raises(NoneKept, match="invariant") as told:
        obfuscate(blocks, 1e-3, invariant=True)
    least = obfuscate(blocks, told.value.least * (1 + 1e-10), invariant=True)
    checked(blocks, least, told.value.least * (1 + 1e-10), invariant=True)
    with pytest.raises(SpecificationError, match="invariant"):
        obfuscate([Block(np.full((2, 2), 0.25), np.ones((2, 3)))], 2.0, invariant=True)


# ------------------------------------------------------------------------------------------------------------- degenerate


def test_budgets_at_and_below_the_least() -> None:
    blocks, _ = crowd(8, 3)
    least = sum(b.least() for b in blocks)
    nearest = [b.nearest() for b in blocks]
    found = obfuscate(blocks, least)
    assert found.distortion == pytest.approx(least, abs=1e-12)
    assert found.leak == pytest.approx(sum(b.leak(K) for b, K in zip(blocks, nearest, strict=True)), abs=4e-5)
    assert found.gap <= 5e-5
    with pytest.raises(Unreachable) as told:
        obfuscate(blocks, least * 0.999)
    assert told.value.least == pytest.approx(least)
    with pytest.raises(Unreachable):
        obfuscate(blocks, min(b.least() / b.share for b in blocks), shared=False)


def test_the_least_budget_is_used_for_the_best_among_equally_near_targets() -> None:
    block = Block(
        np.array([[0.3, 0.1, 0.1], [0.05, 0.25, 0.2]]), np.array([[1.0, 1, 2], [1, 1, 2], [2, 1, 1]])
    )
    found = obfuscate([block], 1.0)
    assert found.leak == pytest.approx(0, abs=1e-9)  # everybody to the second
    assert found.distortion == pytest.approx(1.0)
    priced = with_budget(block, 1.0)
    assert priced is not None and priced.leak == pytest.approx(0, abs=1e-9)


def test_budgets_beyond_which_nothing_leaks() -> None:
    # One value lives at 0 and 10, the other at 1 and 11: moving by 1 hides them, and no single target does for so little.
    place = np.array([0.0, 1.0, 10.0, 11.0])
    block = Block(np.array([[0.25, 0, 0.25, 0], [0, 0.25, 0, 0.25]]), np.abs(place[:, None] - place) / 10)
    assert block.constant()[1] > 0.4
    for blocks in ([block], [block, Block(np.diag([0.5, 0.5]), 1 - np.eye(2))]):
        budget = 0.0501 + 0.5 * (len(blocks) - 1)
        found = obfuscate(blocks, budget)
        assert found.leak < 1e-9
        assert found.bound == 0 and found.multiplier == 0
        checked(blocks, found, budget)
    exact = np.log(2) + 0.4 * np.log(0.4) + 0.6 * np.log(0.6)  # four moves in ten
    assert obfuscate([block], 0.04, tol=1e-6).leak == pytest.approx(exact, abs=2e-6)
    assert obfuscate([block], 1.0).leak == 0


@pytest.mark.parametrize("shape", [(1, 4, 4), (4, 1, 4), (4, 4, 1)])
def test_groups_that_can_tell_nothing(shape: tuple[int, int, int]) -> None:
    values, clusters, targets = shape
    dull = Block(np.full((values, clusters), 0.5 / values / clusters), np.ones((clusters, targets)))
    other = Block(np.diag([0.25, 0.25]), 1 - np.eye(2))
    alone = obfuscate([dull], 0.5)
    assert alone.leak == 0 and alone.gap == 0
    found = obfuscate([dull, other], 0.5 + 0.1)
    assert found.leak == pytest.approx(obfuscate([other], 0.1).leak, abs=4e-5)
    assert with_multiplier(dull, 2.0).cost == pytest.approx(1.0)
    assert with_budget(dull, 0.9) is None


def test_what_is_no_problem_is_refused() -> None:
    even = Block(np.diag([0.5, 0.5]), 1 - np.eye(2))
    with pytest.raises(SpecificationError, match="without records"):
        Block.of(np.zeros((3, 2), dtype=np.int64), np.ones((2, 2)), 5)
    with pytest.raises(SpecificationError, match="at least one group"):
        obfuscate([], 1.0)
    refused: list[tuple[Any, ...]] = [(np.nan,), (-1.0,), (np.inf,)]
    for (budget,) in refused:
        with pytest.raises(SpecificationError, match="distortion"):
            obfuscate([even], budget)
        with pytest.raises(SpecificationError, match="distortion"):
            with_budget(even, budget)
        with pytest.raises(SpecificationError, match="lam"):
            with_multiplier(even, budget)
    with pytest.raises(SpecificationError, match="tol"):
        obfuscate([even], 0.1, tol=0.0)
    for joint, cost in [
        (np.diag([0.5, 0.0]), np.ones((2, 2))),
        (np.diag([0.5, np.nan]), np.ones((2, 2))),
        (np.diag([0.5, 0.5]), -np.ones((2, 2))),
        (np.diag([0.5, 0.5]), np.full((2, 2), np.nan)),
        (np.diag([0.5, 0.5]), np.ones((3, 2))),
    ]:
        with pytest.raises(SpecificationError, match="block"):
            Block(joint, cost)


# ---------------------------------------------------------------------------------------------------------- certificates


def test_no_classifier_and_no_multiplier_prove_too_much() -> None:
    blocks, budget = crowd(8, 3)
    found = obfuscate(blocks, budget, tol=1e-7)
    kept = obfuscate(blocks, budget, invariant=True, tol=1e-7)
    rng = np.random.default_rng(0)
    assert isinstance(found.multiplier, float) and isinstance(kept.multiplier, float)
    for scale in (1e-3, 0.1, 3.0):
        for one, invariant in ((found, False), (kept, True)):
            ratios = [A + rng.normal(0, scale, A.shape) for A in one.log_ratios]
            lam = float(one.multiplier) * float(np.exp(rng.normal(0, scale)))  # type: ignore[arg-type]
            assert information_bound(blocks, budget, ratios, lam, invariant=invariant) <= one.leak
    swollen = [A + 0.5 for A in found.log_ratios]  # probabilities that add up to more than 1
    assert information_bound(blocks, budget, swollen, found.multiplier) <= found.leak
    never = [np.where(rng.random(A.shape) < 0.1, -np.inf, A) for A in found.log_ratios]
    assert information_bound(blocks, budget, never, found.multiplier) <= found.leak
    for bad in (np.nan, np.inf):
        with pytest.raises(SpecificationError, match="log_ratios"):
            information_bound(blocks[:1], budget, [np.full_like(found.log_ratios[0], bad)], 1.0)
    with pytest.raises(SpecificationError, match="multiplier"):
        information_bound(blocks, budget, found.log_ratios, -1.0)
    with pytest.raises(SpecificationError, match="one multiplier"):
        information_bound(blocks, budget, found.log_ratios, [1.0, 2.0, 1.0])


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Block], float, bool]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = []
    shares = rng.dirichlet(np.full(draw(st.integers(1, 5)), 2.0)) + 1e-4
    square = draw(st.booleans())
    for share in shares:
        x, w, z = rng.integers(1, 9, 3)
        z = w if square else z
        joint = rng.dirichlet(np.full(x * w, rng.choice([0.1, 1.0, 10.0]))).reshape(x, w)
        joint[rng.random(joint.shape) < 0.3] = 0
        joint += 1e-5 * ((joint.sum(0) == 0) | (joint.sum(1, keepdims=True) == 0))
        cost = rng.random((w, z)) if draw(st.booleans()) else np.round(3 * rng.random((w, z))) / 3
        blocks.append(Block(joint / joint.sum() * share / shares.sum(), cost))
    least, most = sum(b.least() for b in blocks), sum(b.constant()[1] for b in blocks)
    return blocks, least + draw(st.floats(1e-4, 1.1)) * (most - least), square


@settings(max_examples=60, deadline=None)
@given(problems())
def test_solutions_keep_what_they_promise(problem: tuple[list[Block], float, bool]) -> None:
    blocks, budget, square = problem
    found = obfuscate(blocks, budget)
    assert found.gap <= 5e-5
    checked(blocks, found, budget)
    each = max(b.least() / b.share for b in blocks) + budget / 4
    checked(blocks, obfuscate(blocks, each, shared=False), each, False)
    if square:
        try:
            kept = obfuscate(blocks, budget, invariant=True)
        except NoneKept as told:
            assert told.least > budget
            return
        checked(blocks, kept, budget, invariant=True)
        assert kept.leak >= found.bound - 1e-9
