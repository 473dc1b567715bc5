"""The methods compared: groups and channels, or donors row by row, under one distortion and the same k, l, alpha and beta.

Every search gets groups to start from by HyObscure's Algorithm 1 (constraint-aware K-means of the private value), or even ones.
``random``, ``frapp``, ``exponential`` and ``similarity`` draw donors within even groups; their one parameter is set so that they
distort as much as is allowed. What a method leaks is I(value; published cluster, group), worked out anew from its channels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tetraodon.axes import Ints
from tetraodon.errors import Refused
from tetraodon.microdata import alternating as search
from tetraodon.microdata import baselines
from tetraodon.microdata.alternating import alternate, first_groups
from tetraodon.microdata.cluster_baselines import Swapped, cluster_donors, evaluated, xobf, ygen
from tetraodon.microdata.distances import apart
from tetraodon.microdata.families import Floats
from tetraodon.microdata.fit import candidates_of
from tetraodon.microdata.joint import Found, optimal
from tetraodon.microdata.prepared import Prepared
from tetraodon.microdata.privcheck import privcheck

from .people import Case

LN2 = float(np.log(2.0))
ROWS = ("random", "frapp", "exponential", "similarity")
SEARCHED = ("privcheck", "xobf", "ygen", "alternating", "optimal")
METHODS = (*ROWS, *SEARCHED)
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Made:
    """What a method came to.

    Attributes:
        name: of the method.
        group_of: the group of every private value.
        leak: I(value; published cluster, group), in nats.
        bound: nats that nothing within the budget leaks less than: no channels for these groups, or of "optimal" no groups and
            channels; None of baselines.
        distortion: expected.
        seconds: of processor time.
        donors: draws the row whose columns each row gets.
        history: of an alternating search (nats).
    """

    name: str
    group_of: Ints
    leak: float
    bound: float | None
    distortion: float
    seconds: float
    donors: Callable[[], Ints]
    history: tuple[search.Step, ...] = ()


def released(case: Case, made: Made, donors: Ints) -> pa.Table:
    """What is published by one draw: names of groups, and donors' columns."""
    labels = np.array([f"group {g}" for g in range(int(made.group_of.max()) + 1)], dtype=object)
    shown = {case.secret: labels[made.group_of[case.codes]].tolist()}
    return pa.table({**shown, **{n: case.table[n].take(pa.array(donors)) for n in case.names}})


def realised(case: Case, prepared: Prepared, donors: Ints) -> float:
    """Mean distance of one draw."""
    every = np.arange(len(donors))
    return float(apart(prepared.data.features, every, donors, prepared.settings.metric).mean())


def even_start(case: Case, prepared: Prepared) -> Ints:
    """Groups of about as many people each, where those meet the requirements; else those of Algorithm 1.

    Raises:
        Refused: as ``start_of``.
    """
    number = prepared.settings.groups or 2
    found = case.even(number)
    parts = [np.flatnonzero(found == g) for g in range(number)]
    if prepared.settings.requirements.allowed(prepared.per_value(), parts).all():
        return found
    return start_of(prepared, 0)


def start_of(prepared: Prepared, seed: int) -> Ints:
    """Groups by Algorithm 1 that are intervals, as those of "optimal" are.

    Raises:
        Refused: K-means found none that meet the requirements, or none that are intervals.
    """
    found = first_groups(prepared, np.random.default_rng(seed))
    if (np.diff(found) < 0).any():
        raise Refused("no intervals that meet the requirements were found to start from.")
    return found


def made(name: str, case: Case, prepared: Prepared, start: Ints, seed: int = 0) -> Made:
    """Run one method.

    Args:
        prepared: with the budget and the requirements.
        start: groups to start from; "optimal" does not look at them.
        seed: of an alternating search.

    Raises:
        Refused: the method has nothing within the budget.
    """
    began = time.process_time()
    if name in ROWS:
        return _by_rows(name, case, prepared, start, began)
    counts, cost, budget = prepared.counts[0], _cost(prepared), prepared.settings.distortion
    donors = prepared.settings.donors
    if name == "privcheck":
        return _blind(case, prepared, start, began)
    if name == "xobf":
        swapped = xobf(counts, start, cost, budget, donors=donors)
        return _swapped(name, case, prepared, swapped, swapped.bound, began)
    if name == "ygen":
        swapped = ygen(counts, start, cost, budget, _moves(prepared, seed), donors=donors)
        return _swapped(name, case, prepared, swapped, None, began)
    if name == "alternating":
        found, history = alternate(prepared, start, np.random.default_rng(seed))
        return replace(_found(name, case, prepared, found, began), history=history)
    return _found("optimal", case, prepared, optimal(prepared, candidates_of(prepared, 0)), began)


def _cost(prepared: Prepared) -> Callable[[Ints], Floats]:
    def cost(members: Ints) -> Floats:
        return prepared.divergences.of_group(0, members).upper

    return cost


def _moves(prepared: Prepared, seed: int) -> Callable[[Ints, tuple[Floats, ...]], Ints]:
    """HyObscure's Algorithm 3, once, with the channels held."""

    def moved(group_of: Ints, channels: tuple[Floats, ...]) -> Ints:
        laws = {(g, 0): channel for g, channel in enumerate(channels)}
        groups = [np.flatnonzero(group_of == g) for g in range(len(channels))]
        now = search.evaluated(prepared, groups, laws)
        assert now is not None
        told = search.boosted(prepared, group_of, laws, now, np.random.default_rng(seed))
        return group_of if told is None else told[0]

    return moved


def _swapped(
    name: str, case: Case, prepared: Prepared, found: Swapped, bound: float | None, began: float
) -> Made:
    seconds = time.process_time() - began
    told = evaluated(prepared.counts[0], found.group_of, found.channels, _cost(prepared))
    assert told is not None and abs(told[0] - found.leak) < 1e-6
    own = found.group_of[case.codes]
    channels = [_whole(found.channels[g], prepared, found.group_of, g) for g in range(len(found.channels))]

    def donors() -> Ints:
        return cluster_donors(channels, own, prepared.clusters.labels, own)

    return Made(name, found.group_of, told[0], bound, told[2], seconds, donors)


def _whole(channel: Floats, prepared: Prepared, group_of: Ints, g: int) -> Floats:
    """The channel with rows for clusters that came into the group later: to the nearest cluster there, as leakage counts them."""
    members = np.flatnonzero(group_of == g)
    here = np.flatnonzero(prepared.counts[0, members].sum(axis=0))
    cost, law = _cost(prepared)(members), channel.copy()
    for c in here[np.isnan(law[here]).any(axis=1)]:
        law[c] = 0.0
        law[c, here[cost[c, here].argmin()]] = 1.0
    law = np.nan_to_num(law)
    law[:, np.setdiff1d(np.arange(len(law)), here)] = 0.0  # less than 1e-9, or the groups had been refused
    law[here] /= law[here].sum(axis=1, keepdims=True)
    return np.asarray(law)


def _found(name: str, case: Case, prepared: Prepared, found: Found, began: float) -> Made:
    seconds = time.process_time() - began
    order = sorted(range(len(found.groups)), key=lambda g: int(found.groups[g].min()))
    group_of, size = np.zeros(len(prepared.present), dtype=np.int64), prepared.clusters.number
    channels = []
    for at, g in enumerate(order):
        group_of[found.groups[g]] = at
        [piece] = found.pieces[g]
        law = np.full((size, size), np.nan)
        law[piece.rows] = 0.0
        law[np.ix_(piece.rows, piece.columns)] = found.channels[g]
        channels.append(law)
    swapped = Swapped(group_of, tuple(channels), found.leak, found.naming, found.distortion, found.bound)
    done = _swapped(name, case, prepared, swapped, found.bound, began)
    return replace(done, seconds=seconds)


def _blind(case: Case, prepared: Prepared, start: Ints, began: float) -> Made:
    """One channel for everybody, every group within the budget."""
    groups = [np.flatnonzero(start == g) for g in range(int(start.max()) + 1)]
    cost = np.stack([_cost(prepared)(members) for members in groups])
    counts = np.zeros((len(groups), *prepared.counts[0].shape), dtype=np.int64)
    for g, members in enumerate(groups):
        counts[g, members] = prepared.counts[0, members]
    found = privcheck(counts, cost, prepared.settings.distortion)
    told = evaluated(prepared.counts[0], start, [found.channel] * len(groups), _cost(prepared))
    if told is None:
        raise Refused("privcheck: some group has no donors where the channel sends rows.")
    seconds, own = time.process_time() - began, start[case.codes]

    def donors() -> Ints:
        return cluster_donors([found.channel], np.zeros_like(own), prepared.clusters.labels, own)

    return Made("privcheck", start, told[0], None, told[2], seconds, donors)


# ------------------------------------------------------------------------------------------------------------- row by row


def _by_rows(name: str, case: Case, prepared: Prepared, start: Ints, began: float) -> Made:
    own, features, metric = start[case.codes], prepared.data.features, prepared.settings.metric
    budget = prepared.settings.distortion

    def distortion(baseline: baselines.Baseline) -> float:
        return baselines.expected_distortion(baseline, features, metric, own, in_group=True)

    baseline = _tuned(name, metric, distortion, budget, len(own))
    spent = distortion(baseline)
    law = baselines.law(baseline, features, own, in_group=True)
    joint = np.zeros((int(start.max()) + 1, len(start), prepared.clusters.number))
    targets = law @ np.eye(prepared.clusters.number)[prepared.clusters.labels]
    np.add.at(joint, (own, case.codes), targets / len(own))
    told = joint.transpose(1, 0, 2).reshape(len(start), -1)
    seconds = time.process_time() - began

    def donors() -> Ints:
        return baselines.donors(baseline, features, own, in_group=True)

    return Made(name, start, _information(told), None, spent, seconds, donors)


def _tuned(
    name: str, metric: str, distortion: Callable[[Any], float], budget: float, rows: int
) -> baselines.Baseline:
    """The baseline that distorts most within the budget."""
    if name == "random":
        return baselines.Random(_share(budget, distortion(baselines.Random(1))))
    if name == "similarity":
        full = distortion(baselines.Similarity(80))
        return baselines.Similarity(80, 0 if full <= budget else 1 - float(_share(budget, full)))
    if name == "frapp":
        return baselines.Frapp(_least(lambda x: distortion(baselines.Frapp(x)), budget, 1.0, 1e4 * rows))
    return baselines.Exponential(
        _least(lambda x: distortion(baselines.Exponential(x, metric)), budget, 0.01, 1e5), metric
    )


def _share(budget: float, full: float) -> float:
    return 1.0 if full <= budget else np.floor(1e9 * budget / full) / 1e9


def _least(told: Callable[[float], float], budget: float, low: float, high: float) -> float:
    """The least parameter, to a part in a thousand, at which a falling distortion is within the budget."""
    if told(low) <= budget:
        return low
    while high / low > 1.001:
        middle = round(float(np.sqrt(low * high)), 9)
        low, high = (middle, high) if told(middle) > budget else (low, middle)
    return round(high, 9)


def _information(joint: Floats) -> float:
    """Of a table that sums to 1, in nats."""
    there = joint > 0
    alone = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return float((joint[there] * np.log(joint[there] / alone[there])).sum())


def holds(case: Case, prepared: Prepared, results: Sequence[Made]) -> None:
    """Check budget, k, alpha, l and beta of every result.

    Raises:
        AssertionError: one of them does not hold.
    """
    need, counts = prepared.settings.requirements, prepared.per_value()
    for each in results:
        if each.distortion > prepared.settings.distortion + SLACK:
            raise AssertionError(f"{each.name} distorts beyond the budget.")
        parts = [np.flatnonzero(each.group_of == g) for g in range(int(each.group_of.max()) + 1)]
        if not need.allowed(counts, parts).all():
            raise AssertionError(f"{each.name}: a group does not meet the requirements.")
