"""Prices of groups: those of leakage against the definition of information, and lazily computed ones against all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from tetraodon.errors import SpecificationError
from tetraodon.microdata.families import Family, intervals
from tetraodon.microdata.lazily import lazily, lazily_together
from tetraodon.microdata.leak_tables import interval_leakage, leakage_costs, stage_leakage
from tetraodon.microdata.rectangles import rectangles
from tetraodon.microdata.trees import tree_cuts


def information(joint: np.ndarray) -> float:
    """I(row; column) in nats by its definition."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    return math.fsum(
        joint[i, j] * math.log(joint[i, j] / (rows[i] * columns[j]))
        for i, j in np.argwhere(joint > 0).tolist()
    )


def published(tables: Sequence[np.ndarray], groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Joint law of the value and of what is seen of it: its group, and a cluster from its group's table."""
    values, targets = tables[0].shape
    joint = np.zeros((values, len(groups), targets))
    for g, held in enumerate(groups):
        joint[list(held), g] = tables[g][list(held)]
    return joint.reshape(values, -1)


def table(rng: np.random.Generator, values: int, targets: int) -> np.ndarray:
    found = rng.random((values, targets)) * (rng.random((values, targets)) < 0.7)
    found[0, 0] += 0.1
    return found / found.sum()


def test_prices_add_up_to_the_information() -> None:
    rng = np.random.default_rng(1)
    families: list[Family] = [
        intervals(6), intervals(6, 3, rng.permutation(6)), rectangles((2, 3)),
        tree_cuts("abcdef", {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "x": "z", "y": "z"}),
    ]  # fmt: skip
    for _, family in itertools.product(range(25), families):
        b = table(rng, 6, int(rng.integers(1, 5)))
        costs = leakage_costs(family, b)
        found = family.best(rng.random(len(costs)))
        assert found is not None
        groups = [family.members[c].tolist() for c in found[1]]
        assert costs[found[1]].sum() == pytest.approx(
            information(published([b] * len(groups), groups)), abs=1e-12
        )


def test_the_cheapest_intervals_leak_least() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        n, groups = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        b = table(rng, n, 3)
        found = intervals(n).best(interval_leakage(b), groups)
        if groups > n:
            assert found is None
            continue
        least = min(
            information(published([b] * groups, [range(s, e) for s, e in itertools.pairwise([0, *cuts, n])]))
            for cuts in itertools.combinations(range(1, n), groups - 1)
        )
        assert found is not None and found[0] == pytest.approx(least, abs=1e-12)


def test_the_cheapest_stages_leak_least() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        n, groups, clusters = int(rng.integers(3, 8)), int(rng.integers(1, 4)), 3
        joint = table(rng, n, clusters)
        channels = rng.dirichlet(np.full(clusters, 0.4), (groups, clusters))
        tables = np.stack([joint @ w for w in channels])
        family = intervals(n)
        found = family.best_by_stage(stage_leakage(family, tables))
        least = min(
            information(published(tables, [range(s, e) for s, e in itertools.pairwise([0, *cuts, n])]))
            for cuts in itertools.combinations(range(1, n), groups - 1)
        )
        assert found is not None and found[0] == pytest.approx(least, abs=1e-12)


def test_with_one_table_merging_never_leaks_more() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        b = table(rng, 5, 4)
        family, costs = intervals(5), interval_leakage(b)
        for start, middle, end in itertools.combinations(range(6), 3):
            parts = costs[family.candidate(start, middle)] + costs[family.candidate(middle, end)]
            assert costs[family.candidate(start, end)] <= parts + 1e-12
        found = family.best(costs)
        assert found is not None and found[0] == pytest.approx(costs[family.candidate(0, 5)], abs=1e-12)


def test_with_a_channel_for_each_stage_merging_can_leak_more() -> None:
    # The cluster is the value; stage 0 shows it, stage 1 hides it. Two groups leak H(1/4), one group everything.
    joint = np.eye(4) / 4
    tables = np.stack([joint, np.full((4, 4), 1 / 16)])
    family = intervals(4)
    one = family.best_by_stage(stage_leakage(family, tables[:1]))
    two = family.best_by_stage(stage_leakage(family, tables))
    assert one is not None and two is not None
    assert one[0] == pytest.approx(math.log(4))
    assert two[0] == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))
    assert family.members[int(two[1][0])].tolist() == [0]


def test_merging_can_pass_a_budget_that_every_group_keeps() -> None:
    # One cluster: rows of value 0 lie at 0, those of value 1 at 1. Within a group the mean distance of a random pair, which is
    # what replacing a row by a donor costs, is 0 for each value alone and 1/2 for both: above a budget of 0.2.
    places, values, budget = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1]), 0.2
    family = intervals(2)
    costs = interval_leakage(np.array([[0.5], [0.5]]))
    assert family.best(costs) == (pytest.approx(0.0), pytest.approx([family.candidate(0, 2)]))
    for place, held in enumerate(family.members):
        rows = places[np.isin(values, held)]
        if np.abs(np.subtract.outer(rows, rows)).mean() > budget:
            costs[place] = math.inf
    found = family.best(costs)
    assert found is not None and found[0] == pytest.approx(math.log(2)) and len(found[1]) == 2
    assert family.best(costs, groups=1) is None


def test_bad_tables_are_refused() -> None:
    for bad in (np.ones((2, 2)), np.full((3, 2), -1.0), np.full((3, 2), math.nan), np.ones(3)):
        with pytest.raises(SpecificationError, match="b:"):
            leakage_costs(intervals(3), bad)
    with pytest.raises(SpecificationError, match="tables"):
        stage_leakage(intervals(3), np.ones((3, 2)))


# Lazily


def instance(rng: np.random.Generator, places: int) -> tuple[np.ndarray, np.ndarray]:
    """True prices, some forbidden, and bounds of mixed quality below them."""
    true = rng.random(places) + 0.05
    lower = true * rng.random(places)
    exactly = rng.random(places) < 0.2
    lower[exactly] = true[exactly]
    true[rng.random(places) < 0.1] = math.inf
    lower[rng.random(places) < 0.05] = math.inf
    true[lower == math.inf] = math.inf
    return true, lower


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_lazily_equals_pricing_everything(batch: int | None) -> None:
    rng = np.random.default_rng(5)
    tree = tree_cuts("abcdefgh", {c: "xy"[i // 4] for i, c in enumerate("abcdefgh")} | {"x": "z", "y": "z"})
    families: list[Family] = [intervals(12), rectangles((3, 3)), tree]
    priced = candidates = 0
    for trial in range(120):
        family = families[trial % 3]
        true, lower = instance(rng, len(family.members))
        groups = None if rng.random() < 0.5 else int(rng.integers(1, 6))
        calls: list[int] = []

        def exact(candidate: int, true: np.ndarray = true, calls: list[int] = calls) -> float:
            calls.append(candidate)
            return float(true[candidate])

        found, eager = lazily(family, lower, exact, groups, batch), family.best(true, groups)
        assert len(calls) == len(set(calls))
        priced, candidates = priced + len(calls), candidates + len(true)
        assert (found is None) == (eager is None)
        if found is not None and eager is not None:
            assert found.value == pytest.approx(eager[0], abs=1e-12) and found.gap <= 1e-12
            assert found.priced.tolist() == calls and set(found.chosen) <= set(calls)
            assert true[found.chosen].sum() == pytest.approx(found.value, abs=1e-12)
    assert priced < candidates / 2


def test_exact_bounds_price_the_chosen_groups_alone() -> None:
    rng = np.random.default_rng(6)
    family = intervals(40)
    true = rng.random(len(family.members))
    found = lazily(family, true, lambda c: float(true[c]), groups=7)
    assert found is not None and sorted(found.priced) == sorted(found.chosen) and found.rounds == 2


def test_one_at_a_time_prices_no_more_than_all_at_once() -> None:
    rng = np.random.default_rng(7)
    several = single = 0
    for _ in range(30):
        family = intervals(20)
        true, lower = instance(rng, len(family.members))
        for batch in (None, 1):
            found = lazily(family, lower, lambda c, true=true: float(true[c]), 5, batch)
            assert found is not None
            several, single = (
                (several + len(found.priced), single)
                if batch is None
                else (several, single + len(found.priced))
            )
    assert single < several


def test_certified_prices_give_a_certified_bound() -> None:
    rng = np.random.default_rng(8)
    tight = 0
    for _ in range(100):
        family = intervals(9)
        true = rng.random(len(family.members))
        lower = true * rng.random(len(true))
        upper, end = true + 1e-3 * rng.random(len(true)), true - 1e-3 * rng.random(len(true))
        found = lazily(family, lower, lambda c, u=upper, e=end: (float(u[c]), float(e[c])))
        best = family.best(true)
        assert found is not None and best is not None
        assert found.bound <= best[0] + 1e-12 and best[0] <= found.value + 1e-12
        assert found.gap <= 2e-3 * family.n
        tight += best[0] - found.bound > 1e-6
    assert tight > 50  # the bound is that of the certified ends, not the value itself


def test_batches_are_priced_together() -> None:
    family = intervals(10)
    true = np.random.default_rng(9).random(len(family.members)) + 1
    sizes = []

    def exact(several: np.ndarray) -> list[float]:
        sizes.append(len(several))
        return true[several].tolist()

    found, eager = lazily_together(family, np.ones(len(true)), exact, 6, batch=4), family.best(true, 6)
    assert found is not None and eager is not None and found.value == pytest.approx(eager[0])
    assert max(sizes) == 4 and sum(sizes) == len(found.priced)


def test_a_wrong_bound_does_not_pass() -> None:
    family = intervals(2)
    with pytest.raises(SpecificationError, match="below the lower bound"):
        lazily(family, np.ones(3), lambda c: 0.5)
    with pytest.raises(SpecificationError, match="below the lower bound"):
        lazily(family, np.ones(3), lambda c: math.nan)
    with pytest.raises(SpecificationError, match="batch"):
        lazily(family, np.ones(3), lambda c: 1.0, batch=0)
