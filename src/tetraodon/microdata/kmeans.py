"""Constraint-aware K-means on the private values: Algorithm 1 of HyObscure.

K random centres. Users are assigned one at a time: while some group still lacks k users or l distinct values, only such groups
are candidates; afterwards all are, except a group that would pass α users or β values. The nearest candidate wins, and its
centre is recomputed at once. Rounds repeat until no assignment changes.

A generalisation is a function of the private *value*, so all rows of one value move together here, with their number as
weight: assigning equal values apart would not be one (derived; where all values differ this is the algorithm itself). From the
second round on a value is taken out of its group, offered by the same rule, and stays where no centre is strictly nearer; as
its own group lacks something without it, or always has room for it, there always is a candidate. Each move lowers

    S = Σ_values rows · |place − centre of its group|²,

first at fixed centres and then by their recomputation. Groups that hold just k rows let nothing go, so a poor first round would
stay; when nothing moves any more, all groups are emptied and filled again by the same rule from the centres they had, and that
is kept if it ends with a lower S. S falls throughout and there are finitely many groupings, so the rounds end (derived).

It is a heuristic: it can end in a poor grouping, or meet no requirement where one exists. The number of rows bounds the number
of groups, |U|/α ≤ K ≤ |U|/k. For one ordered attribute ``intervals`` solve the same problem exactly.

Source: Han et al., HyObscure, Algorithm 1. Here α and β also hold for a group that still lacks something, and a value too
heavy for all of those goes to the nearest other one (derived: heavy values do not occur there).
"""

from __future__ import annotations

import math

import numpy as np

from ..axes import Bools, Ints
from ..errors import Refused, SpecificationError
from .families import Floats, read_groups
from .requirements import Requirements, facts

NEARER = 1 - 1e-12  # relative: squared distances that differ by rounding only are equal


def constrained_kmeans(
    values: Floats,
    groups: int,
    requirements: Requirements,
    rng: np.random.Generator,
    codes: Ints,
) -> Ints:
    """The group of each private value, from rows.

    Args:
        values: where each row's private value lies, shape (rows,) or (rows, dims); equal codes lie at equal places.
        groups: how many groups.
        requirements: what every group must have.
        rng: random centres and the order of the users; a start of a search, no noise of a release.
        codes: the code of each row's value, shape (rows,); every code up to the greatest appears.
    Returns:
        Shape (values,), groups numbered by the smallest code in them.
    Raises:
        Refused: no such number of groups fits the rows, or none was found.
        SpecificationError: places or codes of other shapes, or a code without rows (``grouped_values`` takes those).

    >>> rows = np.array([1.0, 2, 3, 21, 22, 23])
    >>> constrained_kmeans(rows, 2, Requirements(k=2), np.random.default_rng(0), np.arange(6)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    at = np.asarray(codes, dtype=np.int64)
    if at.ndim != 1 or len(at) != len(values) or not len(at) or at.min() < 0:
        raise SpecificationError("codes: one code from 0 on for each row of values.")
    counts = np.bincount(at)
    if not counts.all():
        raise SpecificationError("codes: every code up to the greatest appears in some row.")
    first = np.unique(at, return_index=True)[1]
    return grouped_values(np.asarray(values)[first], counts, groups, requirements, rng)


def grouped_values(
    places: Floats,
    counts: Ints,
    groups: int,
    requirements: Requirements,
    rng: np.random.Generator,
    rounds: int = 100,
    tries: int = 20,
) -> Ints:
    """``constrained_kmeans`` from the place of each value and the rows that have it.

    Args:
        places: shape (values,) or (values, dims).
        counts: rows of each value, shape (values,); a value without rows joins the nearest group at the end.
        rounds: the most rounds of moves; a grouping that is cut short meets every requirement too.
        tries: starts from other random centres where a first round ends with a requirement missed.
    """
    at = np.asarray(places, dtype=np.float64)
    at = at[:, None] if at.ndim == 1 else at
    weights = np.asarray(counts, dtype=np.int64)
    if at.ndim != 2 or weights.shape != (len(at),) or (weights < 0).any() or not np.isfinite(at).all():
        raise SpecificationError("values: a finite place and a count of rows for each value.")
    wanted = read_groups(groups)
    if wanted is None:
        raise SpecificationError("groups: K-means needs their number.")
    if rounds < 1 or tries < 1:
        raise SpecificationError("rounds, tries: at least 1.")
    _fits(weights, wanted, requirements)
    for _ in range(tries):
        found = _Grouping.started(at, weights, wanted, requirements, rng).settled(rounds)
        while found is not None:
            again = found.emptied().settled(rounds)
            if again is None or again.scatter() >= NEARER * found.scatter():
                return found.labels()
            found = again
    raise Refused(
        f"groups: K-means met the requirements from none of {tries} random starts, which does not show that no grouping "
        "does. Ask for fewer groups, relax a requirement, or let the exact method search intervals."
    )


def _fits(counts: Ints, groups: int, need: Requirements) -> None:
    rows, values = int(counts.sum()), int((counts > 0).sum())
    if groups * need.k > rows or (need.alpha is not None and groups * need.alpha < rows):
        raise Refused("groups: with these rows, K-means needs rows / alpha ≤ groups ≤ rows / k; ask for another number, "
                      "lower k or raise alpha.")  # fmt: skip
    if groups * math.ceil(need.l) > values or (need.beta is not None and groups * need.beta < values):
        raise Refused("groups: with these rows, K-means needs values / beta ≤ groups ≤ values / l, counting values that "
                      "appear; ask for another number, lower l or raise beta.")  # fmt: skip


class _Grouping:
    """The group of each value, what each group holds, and the sums its centre comes from."""

    def __init__(self, at: Floats, counts: Ints, order: Ints, centres: Floats, need: Requirements) -> None:
        self.at, self.counts, self.order, self.need = at, counts, order, need
        self.centres = centres.copy()
        self.group = np.full(len(at), -1, dtype=np.int64)
        self.facts = facts(counts)
        self.held = np.zeros((len(centres), 3))
        self.sums = np.zeros_like(centres)

    @classmethod
    def started(
        cls, at: Floats, counts: Ints, groups: int, need: Requirements, rng: np.random.Generator
    ) -> _Grouping:
        """No value placed yet; centres are random users with different values, and users come in a random order."""
        held = np.flatnonzero(counts)
        chosen = rng.choice(held, size=groups, replace=False, p=counts[held] / counts.sum())
        return cls(at, counts, rng.permutation(held), at[chosen], need)

    def emptied(self) -> _Grouping:
        """No value placed yet, with the centres that were reached."""
        return _Grouping(self.at, self.counts, self.order, self.centres, self.need)

    def settled(self, rounds: int) -> _Grouping | None:
        """Filled, and moved until nothing moves; None where the first round misses a requirement."""
        if not self.filled():
            return None
        for _ in range(rounds):
            if not self.round():
                break
        return self

    def scatter(self) -> float:
        """S, the sum of squares about the centres."""
        away = ((self.at[self.order] - self.centres[self.group[self.order]]) ** 2).sum(axis=1)
        return float(self.counts[self.order] @ away)

    def _met(self, held: Floats) -> Bools:
        return self.need.met(held[:, 0], held[:, 1], held[:, 2])

    def _room(self, held: Floats) -> Bools:
        room = np.ones(len(held), dtype=bool)
        if self.need.alpha is not None:
            room &= held[:, 0] <= self.need.alpha
        if self.need.beta is not None:
            room &= held[:, 1] <= self.need.beta
        return room

    def _distances(self, value: int) -> Floats:
        return np.asarray(((self.centres - self.at[value]) ** 2).sum(axis=1))

    def _move(self, value: int, group: int, sign: int) -> None:
        self.held[group] += sign * self.facts[value]
        self.sums[group] += sign * self.counts[value] * self.at[value]
        if self.held[group, 0]:
            self.centres[group] = self.sums[group] / self.held[group, 0]

    def filled(self) -> bool:
        """The first round; whether it could place every value and met every requirement."""
        for value in self.order.tolist():
            after = self.held + self.facts[value]
            lacking = ~self._met(self.held)
            candidates = lacking & self._room(after)
            if not candidates.any():
                candidates = ~lacking & self._met(after)
            if not candidates.any():
                return False
            nearest = int(np.where(candidates, self._distances(value), math.inf).argmin())
            self.group[value] = nearest
            self._move(value, nearest, 1)
        self._resum()
        return bool(self._met(self.held).all())

    def round(self) -> bool:
        """Offer every value once more; whether one moved."""
        moved = False
        for value in self.order.tolist():
            own = int(self.group[value])
            if not self._met((self.held[own] - self.facts[value])[None])[0]:
                continue  # without it the group lacks something, and is the only candidate
            distances = self._distances(value)
            candidates = self._met(self.held + self.facts[value])
            nearest = int(np.where(candidates, distances, math.inf).argmin())
            if nearest == own or not candidates[nearest] or distances[nearest] >= NEARER * distances[own]:
                continue
            self._move(value, own, -1)
            self._move(value, nearest, 1)
            self.group[value] = nearest
            moved = True
        self._resum()
        return moved

    def _resum(self) -> None:
        """What the groups hold, added up afresh: differences do not pile up rounding."""
        held = np.flatnonzero(self.group >= 0)
        self.held = np.zeros_like(self.held)
        np.add.at(self.held, self.group[held], self.facts[held])
        self.sums = np.zeros_like(self.sums)
        np.add.at(self.sums, self.group[held], self.counts[held, None] * self.at[held])
        some = self.held[:, 0] > 0
        self.centres[some] = self.sums[some] / self.held[some, :1]

    def labels(self) -> Ints:
        """Every value's group, those without rows by the nearest centre, numbered by the smallest code."""
        for value in np.flatnonzero(self.group < 0).tolist():
            self.group[value] = int(self._distances(value).argmin())
        _, first, found = np.unique(self.group, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[found]
