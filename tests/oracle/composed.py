"""Privacy loss of a sequence of releases between neighbouring databases, by enumeration.

A release of integer rows with discrete Laplace noise of scale s has the loss Σ_rows |A Δh| / s between two databases,
exactly: far in the tail every coordinate attains it, and coordinates are independent. With discrete Gaussian noise of
variance σ² the zCDP cost is Σ_rows (A Δh)² / (2σ²), exactly for integer shifts. Outputs attached to records add up
record by record. So the loss of a sequence is the sum over its releases for one pair of databases, and the privacy of
the sequence under a policy is the largest such sum over the policy's neighbours, whatever later releases were chosen by.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from oracle.constrained import Database, Ints, Pairs, changes, neighbours

Law = Mapping[Any, Fraction]


@dataclass(frozen=True)
class Noisy:
    """Integer rows over the cells of the domain, each with its own noise.

    Attributes:
        matrix: answers × cells.
        noise: per row the Laplace scale, or the Gaussian variance σ²; 0 publishes the row exactly.
        power: 1 for Laplace (loss in ε), 2 for Gaussian (loss in ρ).
    """

    matrix: Sequence[Sequence[int]]
    noise: Sequence[Fraction]
    power: int = 1

    def loss(self, change: Sequence[int]) -> Fraction | float:
        """The loss for a change of the histogram; infinite if an exact row moves."""
        return self.losses(np.array([change], dtype=np.int64))[0]

    def losses(self, changes: Ints) -> list[Fraction | float]:
        """The same for many changes, one a row."""
        matrix = np.array(self.matrix, dtype=np.int64).reshape(-1, changes.shape[1])
        moved = np.abs(changes @ matrix.T)
        is_exact = np.array([not v for v in self.noise], dtype=bool)
        broken = moved[:, is_exact].any(axis=1)
        kept = [Fraction(v) * (1 if self.power == 1 else 2) for v in self.noise if v]
        common = math.lcm(*(v.numerator for v in kept)) if kept else 1
        weights = np.array([int(common / v) for v in kept], dtype=object)
        total = (moved[:, ~is_exact] ** self.power).astype(object) @ weights if kept else [0] * len(changes)
        return [
            math.inf if b else Fraction(int(t), common) for b, t in zip(broken.tolist(), total, strict=True)
        ]


@dataclass(frozen=True)
class PerRecord:
    """Outputs attached to records: ``loss[x][y]`` of one record that changes from x to y."""

    table: Sequence[Sequence[Fraction]]

    def moves(self, before: Database, after: Database) -> Fraction:
        """The loss between two databases, record by record."""
        return sum((self.table[x][y] for x, y in zip(before, after, strict=True) if x != y), Fraction(0))


@dataclass(frozen=True)
class Promise:
    """A policy in force: a secret graph, and which counts are known."""

    adjacent: Any
    known: Sequence[Sequence[int]] = ()

    def neighbours(self, n: int, reading: str = "literal") -> Pairs:
        return neighbours(self.adjacent, self.known, n, reading)


@dataclass(frozen=True)
class Worst:
    """The largest summed loss, and neighbouring databases that have it."""

    value: Fraction | float
    before: Database | None = None
    after: Database | None = None


def distinct(pairs: Pairs) -> list[tuple[Database, Database]]:
    """The pairs as different multisets of changes (x, y); what no record does is left out."""
    found = {}
    for before, after in zip(pairs.before.tolist(), pairs.after.tolist(), strict=True):
        key = tuple(sorted((x, y) for x, y in zip(before, after, strict=True) if x != y))
        found.setdefault(key, (tuple(before), tuple(after)))
    return list(found.values())


def worst(releases: Iterable[Noisy | PerRecord], pairs: Pairs) -> Worst:
    """max over neighbouring databases of the summed loss of all releases."""
    told = list(releases)
    if any(isinstance(release, PerRecord) for release in told):
        chosen = distinct(pairs)
    else:
        at = changes(pairs)[1]
        chosen = [(tuple(pairs.before[i].tolist()), tuple(pairs.after[i].tolist())) for i in at]
    if not chosen:
        return Worst(Fraction(0))
    moves = np.array([histogram(b, pairs.size) - histogram(a, pairs.size) for a, b in chosen])
    total: list[Fraction | float] = [Fraction(0)] * len(chosen)
    for release in told:
        if isinstance(release, Noisy):
            own = release.losses(moves)
        else:
            own = [release.moves(a, b) for a, b in chosen]
        total = [t + v for t, v in zip(total, own, strict=True)]
    best = max(range(len(total)), key=total.__getitem__)
    return Worst(total[best], *chosen[best]) if total[best] else Worst(Fraction(0))


def worst_of(
    releases: Sequence[Noisy | PerRecord], promises: Sequence[Promise], n: int, reading: str = "literal"
) -> list[Worst]:
    """The same under each policy in force."""
    return [worst(releases, promise.neighbours(n, reading)) for promise in promises]


def edge_sum(releases: Sequence[Noisy], adjacent: Any) -> Fraction | float:
    """max over edges of the summed loss of one record that moves along it: right without known counts only."""
    size = len(adjacent)
    best: Fraction | float = Fraction(0)
    for x, y in itertools.permutations(range(size), 2):
        if adjacent[x][y]:
            change = [int(v == y) - int(v == x) for v in range(size)]
            best = max(best, sum((r.loss(change) for r in releases), Fraction(0)))
    return best


# ---------- exact laws of adaptive sequences ----------


def clamped(count: int, top: int, q: Fraction) -> Law:
    """Law of max(0, min(top, count + noise)), noise two-sided geometric with ratio q = e^(−1/scale), exact.

    Its loss for a change d of the count is at most |d|·ln(1/q), attained at an end whenever the counts lie in 0 … top.
    """
    base = (1 - q) / (1 + q)
    inner = {z: base * q ** abs(z - count) for z in range(1, top)}
    return {0: q**count / (1 + q), **inner, top: q ** (top - count) / (1 + q)}


def joint(first: Law, then: Callable[[Any], Law]) -> Law:
    """Law of (first output, second output) where the second release is chosen by the first output."""
    return {(a, b): p * r for a, p in first.items() for b, r in then(a).items()}


def ratio(one: Law, two: Law) -> Fraction | float:
    """max over outputs of p(z)/p'(z); infinite if some output is possible under the first only."""
    best: Fraction | float = Fraction(0)
    for output, p in one.items():
        if p:
            q = two.get(output, Fraction(0))
            if not q:
                return math.inf
            best = max(best, p / q)
    return best


def worst_ratio(law: Callable[[Database], Law], pairs: Pairs) -> Fraction | float:
    """max over neighbouring databases and outputs of the likelihood ratio, for a law that looks at the histogram only."""
    laws = {}
    best: Fraction | float = Fraction(0)
    for before, after in distinct(pairs):
        for d in (before, after):
            laws.setdefault(d, law(d))
        best = max(best, ratio(laws[before], laws[after]))
    return best


def histogram(database: Database, size: int) -> Ints:
    """Counts of a database's values."""
    return np.bincount(np.array(database, dtype=np.int64), minlength=size)
