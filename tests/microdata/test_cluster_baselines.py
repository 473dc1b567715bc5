"""PrivCheck against other solvers and its own bound; XObf, YGen; draws by channels between clusters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import tetraodon as td
from tetraodon.channels.mirror import solve
from tetraodon.errors import Refused, SpecificationError
from tetraodon.microdata import alternating
from tetraodon.microdata.cluster_baselines import cluster_donors, evaluated, xobf, ygen
from tetraodon.microdata.privcheck import PrivCheck, privcheck

TOL = 5e-5


def case(
    seed: int, groups: int, values: int, clusters: int, holes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of intervals of values by cluster, and costs that differ from group to group."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((groups, values, clusters), dtype=int)
    for g, members in enumerate(np.array_split(np.arange(values), groups)):
        for v in members:
            counts[g, v] = rng.integers(0, 12, clusters) * (rng.random(clusters) < 0.7)
    cost = np.round(rng.random((groups, clusters, clusters)), 3)
    cost[:, np.arange(clusters), np.arange(clusters)] = np.round(0.1 * rng.random((groups, clusters)), 3)
    if holes:
        cost[0, :, 2] = np.nan
    return counts, cost


def bound_of(counts: np.ndarray, cost: np.ndarray, budget: float, found: PrivCheck) -> float:
    """The certificate from its definition, in loops."""
    total = counts.sum()
    joint, of_group = counts.sum(axis=0) / total, counts.sum(axis=(1, 2))
    prior = joint.sum(axis=1)
    for z in range(joint.shape[1]):
        used = prior > 0
        if found.log_ratio[used, z].any():
            assert prior[used] @ np.exp(found.log_ratio[used, z]) < 1 + 1e-9
    bound = -budget * found.multipliers.sum()
    for c in range(joint.shape[1]):
        if not joint[:, c].any():
            continue
        worth = np.full(joint.shape[1], np.inf)
        for z in range(joint.shape[1]):
            here = [g for g in range(len(counts)) if counts[g, :, c].any()]
            if np.isnan([cost[g, c, z] for g in here]).any():
                continue
            paid = sum(
                found.multipliers[g] * counts[g, :, c].sum() / of_group[g] * cost[g, c, z] for g in here
            )
            worth[z] = joint[:, c] @ found.log_ratio[:, z] + paid
        bound += worth.min()
    return float(bound)


def spent_of(counts: np.ndarray, cost: np.ndarray, channel: np.ndarray) -> np.ndarray:
    share = counts.sum(axis=1) / np.maximum(counts.sum(axis=(1, 2)), 1)[:, None]
    return np.einsum("gc,cz,gcz->g", share, channel, np.nan_to_num(cost))


def leak_of(joint: np.ndarray, channel: np.ndarray) -> float:
    told = joint / joint.sum() @ channel
    apart = told.sum(axis=1, keepdims=True) * told.sum(axis=0)
    return float((told[told > 0] * np.log(told[told > 0] / apart[told > 0])).sum())


GOLDEN = [  # by Clarabel through cvxpy 1.9.3
    ((1, 2, 6, 4), 0.10, 0.1223449),
    ((2, 3, 9, 5), 0.12, 0.1538461),
    ((3, 4, 12, 8), 0.10, 0.1975857),
    ((4, 3, 9, 5, True), 0.15, 0.1782072),
    ((5, 2, 8, 6), 0.30, 0.0219589),
]


@pytest.mark.parametrize(("told", "budget", "value"), GOLDEN)
def test_privcheck_equals_a_conic_solver(told: tuple[int, ...], budget: float, value: float) -> None:
    counts, cost = case(*told)  # type: ignore[arg-type]
    found = privcheck(counts, cost, budget)
    assert found.gap <= TOL and abs(found.leak - value) <= TOL + 1e-6
    assert found.bound <= value + 1e-6
    assert found.bound == pytest.approx(bound_of(counts, cost, budget, found), abs=1e-9)
    assert found.leak == pytest.approx(leak_of(counts.sum(axis=0), found.channel), abs=1e-9)
    assert found.distortions == pytest.approx(spent_of(counts, cost, found.channel), abs=1e-12)
    assert (found.distortions <= budget + 1e-12).all()
    assert found.channel.min() >= 0 and found.channel.sum(axis=1) == pytest.approx(
        np.ones(len(found.channel))
    )
    if len(told) == 5:
        held = counts[0].any(axis=0)
        assert (
            held.sum() == 4 and not found.channel[held, 2].any()
        )  # where a group has no donor none of its rows goes


def test_privcheck_of_one_group_is_the_least_leaking_channel() -> None:
    for seed in range(6):
        counts, cost = case(seed, 1, 6, 5)
        joint = counts[0] / counts.sum()
        if not joint.sum(axis=0).all():
            continue
        kept = joint[joint.any(axis=1)]
        other = solve(kept, cost[0], 0.15, tol_bits=1e-5)
        found = privcheck(counts, cost, 0.15, tol=1e-5)
        assert found.leak / np.log(2) == pytest.approx(other.value, abs=5e-5)


def test_privcheck_certifies_random_programs() -> None:
    refused = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        groups, clusters = int(rng.integers(1, 5)), int(rng.integers(2, 8))
        counts, cost = case(seed, groups, int(rng.integers(groups, 12)), clusters)
        if rng.random() < 0.3:
            counts[:, :, 0] = 0
        if not counts.any():
            continue
        budget = float(rng.choice([0.06, 0.1, 0.2, 0.4, 0.8]))
        try:
            found = privcheck(counts, cost, budget)
        except Refused:
            refused += 1
            continue
        assert found.gap <= TOL and found.leak >= found.bound
        assert (spent_of(counts, cost, found.channel) <= budget + 1e-12).all()
        assert found.bound == pytest.approx(max(0.0, bound_of(counts, cost, budget, found)), abs=1e-9)
    assert refused < 12


def test_privcheck_at_the_ends_of_the_budget() -> None:
    counts, cost = case(1, 2, 6, 4)
    nothing = privcheck(counts, cost, 10.0)
    assert nothing.leak == pytest.approx(0, abs=1e-12) and nothing.bound <= nothing.leak
    alike = np.ones((1, 3, 3)) - np.eye(3)
    alone = np.array([[[5, 0, 0], [0, 3, 0], [0, 0, 2]]])
    exact = privcheck(alone, alike, 0.0)  # only the identity is within it: all of H(Y) leaks
    share = np.array([0.5, 0.3, 0.2])
    assert exact.leak == pytest.approx(-(share * np.log(share)).sum())
    assert exact.channel == pytest.approx(np.eye(3), abs=1e-12)
    with pytest.raises(Refused, match="raise it"):
        privcheck(counts, cost + 1, 0.5)


def test_privcheck_refuses_what_is_no_program() -> None:
    counts, cost = case(1, 2, 6, 4)
    holes = cost.copy()
    holes[0] = np.nan
    with pytest.raises(Refused, match="donors"):
        privcheck(counts, holes, 0.1)
    for wrong in (
        lambda: privcheck(counts[0], cost, 0.1),
        lambda: privcheck(counts, cost[:, :3], 0.1),
        lambda: privcheck(counts, -cost, 0.1),
        lambda: privcheck(counts * 0, cost, 0.1),
        lambda: privcheck(counts, cost, float("nan")),
        lambda: privcheck(counts / 2, cost, 0.1),  # type: ignore[arg-type]
    ):
        with pytest.raises(SpecificationError):
            wrong()


# XObf and YGen


def small() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts, cost = case(7, 1, 8, 4)
    return counts[0] + 1, np.array([0, 0, 0, 0, 1, 1, 1, 1]), cost[0]


def test_xobf_is_the_best_channel_of_each_group() -> None:
    counts, group_of, cost = small()
    found = xobf(counts, group_of, lambda members: cost, 0.2, shared=False)
    total, expected, naming = counts.sum(), 0.0, 0.0
    for g in (0, 1):
        own = counts[group_of == g]
        share = own.sum() / total
        naming -= share * np.log(share)
        expected += share * solve(own / own.sum(), cost, 0.2, tol_bits=1e-5).value * np.log(2)
        assert spent_of(own[None], cost[None], found.channels[g])[0] <= 0.2 + 1e-9
    assert found.naming == pytest.approx(naming)
    assert found.leak == pytest.approx(naming + expected, abs=1e-4)
    assert found.bound <= found.leak <= found.bound + 1e-4
    again = evaluated(counts, group_of, found.channels, lambda members: cost)
    assert again == pytest.approx((found.leak, found.naming, found.distortion), abs=1e-9)


def test_a_shared_budget_leaks_no_more_than_one_for_each_group() -> None:
    counts, group_of, cost = small()
    prices = {0: cost, 4: cost * 2}
    shared, each = (
        xobf(counts, group_of, lambda m: prices[int(m[0])], 0.25, shared=s) for s in (True, False)
    )
    assert shared.leak <= each.leak + 1e-4 and shared.distortion <= 0.25 + 1e-9


def test_ygen_moves_values_and_keeps_channels() -> None:
    counts, group_of, cost = small()
    told: list[tuple[np.ndarray, ...]] = []

    def moved(groups: np.ndarray, channels: tuple[np.ndarray, ...]) -> np.ndarray:
        told.append((groups, *channels))
        after = groups.copy()
        after[3] = 1
        return after

    start = xobf(counts, group_of, lambda members: cost, 0.2)
    found = ygen(counts, group_of, lambda members: cost, 0.2, moved)
    assert told[0][0].tolist() == group_of.tolist()
    assert found.group_of.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    joint = np.zeros((8, 2 * 4))  # I(Y; Ĉ, Ỹ) of the table of values and of pairs (group, cluster)
    for y, g in enumerate(found.group_of):
        joint[y, 4 * g : 4 * g + 4] = counts[y] / counts.sum() @ found.channels[g]
    assert found.leak == pytest.approx(leak_of(joint, np.eye(8)))
    assert all(np.array_equal(a, b) for a, b in zip(found.channels, start.channels, strict=True))
    stays = ygen(counts, group_of, lambda members: cost, 0.2, lambda groups, channels: groups)
    assert (stays.leak, stays.distortion) == pytest.approx((start.leak, start.distortion), abs=1e-9)


def test_a_moved_value_brings_a_cluster_or_loses_its_donors() -> None:
    counts = np.array([[4, 4, 0], [4, 4, 0], [0, 3, 2], [0, 5, 5]])
    apart = np.array([[0.1, 0.5, 0.9], [0.5, 0.1, 0.4], [0.9, 0.4, 0.1]])

    def cost(members: np.ndarray) -> np.ndarray:
        empty = ~counts[members].any(axis=0)
        return np.where(empty[:, None] | empty[None, :], np.nan, apart)

    groups = np.array([0, 0, 1, 1])
    start = xobf(counts, groups, cost, 0.3)
    assert np.isnan(start.channels[0][2]).all() and np.isnan(start.channels[1][0]).all()
    told = evaluated(counts, np.array([0, 0, 0, 1]), start.channels, cost)
    assert told is not None  # cluster 2, new in group 0, stays where it is nearest
    joint = np.zeros((4, 6))
    law = start.channels[0].copy()
    law[2] = [0, 0, 1]
    for y in range(3):
        joint[y, :3] = counts[y] @ law
    joint[3, 3:] = counts[3] @ np.nan_to_num(start.channels[1])
    assert told[0] == pytest.approx(leak_of(joint, np.eye(6)))
    # Group 1 without any row in cluster 2: its channel would send rows there.
    forced = [start.channels[0], np.full((3, 3), [0.0, 0.5, 0.5])]
    lonely = np.array([[4, 4, 0], [4, 4, 1], [0, 3, 2], [0, 5, 0]])
    lost = evaluated(
        lonely, np.array([0, 0, 0, 1]), forced, lambda m: np.where(lonely[m].any(axis=0), apart, np.nan)
    )
    assert lost is None


def test_too_few_donors_are_forbidden_inside_the_solve() -> None:
    """Not afterwards: the channel that is held is the one that was optimised, and its figures are its own."""
    counts, group_of, cost = small()
    held = np.stack([counts[group_of == g].sum(axis=0) for g in (0, 1)])
    least = 22
    assert (held < least).any() and (held >= least).any(axis=1).all()
    found = xobf(counts, group_of, lambda members: cost, 0.25, donors=least)
    free = xobf(counts, group_of, lambda members: cost, 0.25)
    joint = np.zeros((8, 2 * 4))
    for g in (0, 1):
        assert not found.channels[g][:, held[g] < least].any() and np.allclose(
            found.channels[g].sum(axis=1), 1
        )
        joint[group_of == g, 4 * g : 4 * g + 4] = counts[group_of == g] @ found.channels[g]
    assert any(free.channels[g][:, held[g] < least].any() for g in (0, 1))
    assert found.leak == pytest.approx(leak_of(joint, np.eye(8))) and found.leak >= free.bound
    spent = sum(held[g] @ (found.channels[g] * cost).sum(axis=1) for g in (0, 1)) / counts.sum()
    assert found.distortion == pytest.approx(spent) and spent <= 0.25 + 1e-9


def test_xobf_refuses_what_is_no_group() -> None:
    counts, group_of, cost = small()
    for wrong in (np.zeros(3, dtype=int), group_of * 2, group_of - 1, group_of / 1.0):
        with pytest.raises(SpecificationError, match="group_of"):
            xobf(counts, wrong, lambda members: cost, 0.2)
    with pytest.raises(Refused):
        xobf(counts, group_of, lambda members: cost, 0.2, donors=10**6)
    for shared in (True, False):
        with pytest.raises(Refused, match="raise it") as told:
            xobf(counts, group_of, lambda members: cost + 1, 0.2, shared=shared)
        assert "1." not in str(told.value) and told.value.__cause__ is None  # how much would do is private


def test_on_a_prepared_table_they_are_the_first_steps_of_the_search(fitted: td.HybridObscuring) -> None:
    prepared = fitted.plan_.prepared
    settings, rng = prepared.settings, np.random.default_rng(3)
    groups = alternating.first_groups(prepared, rng)
    counts = prepared.counts[0]
    assert np.array_equal(counts.sum(axis=1), prepared.per_value())

    def cost(members: np.ndarray) -> np.ndarray:
        return prepared.divergences.of_group(0, members).upper

    def moved(group_of: np.ndarray, channels: tuple[np.ndarray, ...]) -> np.ndarray:
        laws = {(g, 0): channel for g, channel in enumerate(channels)}
        now = alternating.evaluated(prepared, [np.flatnonzero(group_of == g) for g in range(3)], laws)
        assert now is not None
        found = alternating.boosted(prepared, group_of, laws, now, rng)
        return group_of if found is None else found[0]

    told = counts, groups, cost, settings.distortion
    first = xobf(*told, donors=settings.donors)
    second = ygen(*told, moved, donors=settings.donors)
    found, history = alternating.alternate(prepared, groups, rng)
    assert history[0].leak == pytest.approx(first.leak, abs=1e-4)
    assert second.leak < first.leak and second.distortion < first.distortion <= settings.distortion + 1e-9
    assert history[1].kind == "boundaries" and history[1].leak == pytest.approx(second.leak, abs=1e-3)
    assert found.leak <= second.leak + 1e-4
    members = [np.flatnonzero(second.group_of == g) for g in range(3)]
    assert settings.requirements.allowed(prepared.per_value(), members).all()
    # One channel for everybody, within each group's budget, tells no less than XObf's, one for each group.
    own = np.stack([np.where((groups == g)[:, None], counts, 0) for g in range(3)])
    costs = np.stack([cost(np.flatnonzero(groups == g)) for g in range(3)])
    everybody = privcheck(own, costs, settings.distortion)
    joint = np.concatenate([own[g] @ everybody.channel for g in range(3)], axis=1)
    assert leak_of(joint, np.eye(joint.shape[1])) >= xobf(*told, shared=False).bound


# Draws


def test_a_million_draws_have_the_channels_law() -> None:
    """The channel sampled is the channel given, and donors are uniform in the cluster of the row's own pool."""
    rng = np.random.default_rng(5)
    channels = [rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), 4)]
    channels[0][1] = [0.5, 0.0, 0.5, 0.0]
    rows = 1_000_000
    pools, clusters = rng.integers(0, 2, rows), rng.integers(0, 4, rows)
    drawn = cluster_donors(channels, pools, clusters, pools)
    assert np.array_equal(pools[drawn], pools)
    counts = np.zeros((2, 4, 4))
    np.add.at(counts, (pools, clusters, clusters[drawn]), 1)
    expected = np.stack(channels) * counts.sum(axis=2, keepdims=True)
    assert not counts[expected == 0].any()
    likely = expected > 0
    statistic = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi2.sf(statistic, likely.sum() - 8) > 1e-6
    # Of a cell's members each is as likely: their mean place in the cell is the middle.
    cell = np.flatnonzero((pools == 1) & (clusters == 3))
    place = np.searchsorted(cell, drawn[(pools == 1) & (clusters[drawn] == 3)])
    assert abs(place.mean() / len(cell) - 0.5) < 6 * np.sqrt(1 / 12 / len(place))


def test_a_target_without_donors_is_refused_before_a_draw() -> None:
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(Refused, match="no rows"):
        cluster_donors([swap], np.zeros(2, dtype=int), np.array([0, 0]))
    one_pool = cluster_donors([swap], np.zeros(4, dtype=int), np.array([0, 1, 0, 1]))
    assert set(one_pool[[0, 2]].tolist()) <= {1, 3} and set(one_pool[[1, 3]].tolist()) <= {0, 2}
    with pytest.raises(Refused, match="no rows"):
        cluster_donors([swap], np.zeros(4, dtype=int), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]))
    for wrong in (
        lambda: cluster_donors([swap], np.ones(2, dtype=int), np.array([0, 1])),
        lambda: cluster_donors([swap], np.zeros(2, dtype=int), np.array([0, 2])),
        lambda: cluster_donors([swap], np.zeros(1, dtype=int), np.array([0, 1])),
        lambda: cluster_donors([swap / 2], np.zeros(2, dtype=int), np.array([0, 1])),
        lambda: cluster_donors([swap - 1], np.zeros(2, dtype=int), np.array([0, 1])),
        lambda: cluster_donors([swap], np.zeros(2), np.array([0, 1])),  # type: ignore[arg-type]
    ):
        with pytest.raises(SpecificationError):
            wrong()
