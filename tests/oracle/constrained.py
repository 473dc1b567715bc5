"""Neighbours of a policy with known counts by enumeration, and true sensitivities on tiny domains.

Definition 4.1 of He, Machanavajjhala, Ding 2014, with condition 3(a) repaired: the third database must itself tell a
secret apart from the first (otherwise the first database would rule out every pair). A database is a tuple of values
0 … k−1, one per record; a predicate is a row of k zeros and ones, whose count is known.

* reading "literal": a record may also change along a pair that is no edge, where a known count forces it.
* reading "edges": every changed record moves along an edge, in the pair and in the databases that could rule it out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from oracle import brute

import tetraodon as td

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Database = tuple[int, ...]
READINGS = ("literal", "edges")


# ---------- from the text, by sets ----------


def by_text(
    adjacent: Any, predicates: Any, n: int, reading: str = "literal"
) -> Iterator[tuple[Database, Database]]:
    """Every neighbouring pair, sentence by sentence; only for very few databases."""
    every = list(itertools.product(range(len(adjacent)), repeat=n))

    def answers(d: Database) -> list[int]:
        return [sum(int(p[v]) for v in d) for p in predicates]

    def told(a: Database, b: Database) -> frozenset[tuple[int, int, int]]:
        return frozenset((i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=True)) if adjacent[x][y])

    def changed(a: Database, b: Database) -> frozenset[tuple[int, int]]:
        return frozenset(enumerate(a)) ^ frozenset(enumerate(b))

    def is_allowed(a: Database, b: Database) -> bool:
        along = all(x == y or adjacent[x][y] for x, y in zip(a, b, strict=True))
        return answers(a) == answers(b) and (reading == "literal" or along)

    for one in every:
        others = [(d, told(one, d), changed(one, d)) for d in every if is_allowed(one, d)]
        others = [o for o in others if o[1]]
        for two, t, delta in others:
            if not any(t3 < t or (t3 == t and delta3 < delta) for _, t3, delta3 in others):
                yield one, two


# ---------- the same with arrays ----------


@dataclass(frozen=True)
class Space:
    """All databases of n records over k values, and those in ascending order as first databases.

    Records may be renumbered, so first databases in ascending order suffice for everything that does not look at who
    a record belongs to.
    """

    every: Ints  # databases × n
    first: Ints  # numbers of the ascending ones
    weights: Ints  # place values of a database's number
    marks: Ints  # place values with a digit more, for "record i now has value v"


@lru_cache(maxsize=32)
def space(k: int, n: int) -> Space:
    """The databases of n records over k values."""
    every = np.array(list(itertools.product(range(k), repeat=n)), dtype=np.int64).reshape(-1, n)
    first = np.flatnonzero((np.diff(every, axis=1) >= 0).all(axis=1))
    return Space(every, first, k ** np.arange(n - 1, -1, -1), (k + 1) ** np.arange(n - 1, -1, -1))


@dataclass(frozen=True)
class Pairs:
    """Neighbouring databases: row r of ``before`` and row r of ``after``, over ``size`` values."""

    before: Ints
    after: Ints
    size: int

    def __len__(self) -> int:
        return len(self.before)


def neighbours(
    adjacent: Any, predicates: Any, n: int, reading: str = "literal", first: Sequence[Database] | None = None
) -> Pairs:
    """Every neighbouring pair whose first database is in ascending order, or is one of ``first``.

    A third database rules a pair out (3a) only through the secrets it tells apart, so it is enough to know which
    sets of secrets occur at all for each first database; and (3b) only by undoing some of the pair's own changes.
    """
    joined = np.array(adjacent, dtype=bool)
    k = len(joined)
    where = space(k, n)
    facts = np.array(predicates, dtype=np.int64).reshape(-1, k)
    counts = facts[:, where.every].sum(axis=2)  # predicates × databases
    known = (
        np.unique(counts.T, axis=0, return_inverse=True)[1].reshape(-1)
        if len(facts)
        else 0 * counts.sum(axis=0)
    )

    firsts = where.first if first is None else np.array(first, dtype=np.int64).reshape(-1, n) @ where.weights
    at, to = np.nonzero(known[firsts][:, None] == known[None, :])
    one, two = where.every[firsts[at]], where.every[to]
    told = joined[one, two]
    moved = one != two
    keep = told.any(axis=1) if reading == "literal" else (told == moved).all(axis=1) & moved.any(axis=1)
    at, one, two, told, moved = at[keep], one[keep], two[keep], told[keep], moved[keep]

    secrets = np.where(told, two + 1, 0) * where.marks  # one number per set of secrets: their sum
    whole = secrets.sum(axis=1)
    occurs = np.zeros((len(firsts), (k + 1) ** n), dtype=bool)
    occurs[at, whole] = True
    home = known[firsts[at]]
    stays, goes = one * where.weights, two * where.weights
    ruled_out = np.zeros(len(at), dtype=bool)
    for choice in itertools.product((False, True), repeat=n):
        chosen = np.array(choice)
        part = secrets[:, chosen].sum(axis=1)
        ruled_out |= (part > 0) & (part < whole) & occurs[at, part]
        redone = told | (moved & chosen)
        third = np.where(redone, goes, stays).sum(axis=1)
        ruled_out |= (redone != moved).any(axis=1) & (known[third] == home)
    return Pairs(one[~ruled_out], two[~ruled_out], k)


def changes(pairs: Pairs) -> tuple[Ints, Ints]:
    """The different changes of the histogram (rows), and for each the number of a pair that makes it."""
    if not len(pairs):
        return np.zeros((0, pairs.size), dtype=np.int64), np.zeros(0, dtype=np.int64)
    n = pairs.before.shape[1]
    code = (2 * n + 1) ** np.arange(pairs.size, dtype=np.int64)
    number = code[pairs.after].sum(axis=1) - code[pairs.before].sum(axis=1)
    _, chosen = np.unique(number, return_index=True)
    values = np.arange(pairs.size)
    gained = (pairs.after[chosen][:, :, None] == values).sum(axis=1)
    lost = (pairs.before[chosen][:, :, None] == values).sum(axis=1)
    return gained - lost, chosen


@dataclass(frozen=True)
class Largest:
    """The largest change of an answer, and neighbouring databases that make it (None where nothing changes)."""

    value: Fraction
    before: Database | None = None
    after: Database | None = None


def largest(pairs: Pairs, matrix: Any, power: int = 1, scales: Sequence[Any] | None = None) -> Largest:
    """max over the pairs of Σ_rows |A Δh|^power / scale, for an integer matrix (answers × values)."""
    rows = np.array(matrix, dtype=np.int64).reshape(-1, pairs.size)
    moves, chosen = changes(pairs)
    size = np.abs(moves @ rows.T) ** power  # moves × rows
    if not size.size or not size.any():
        return Largest(Fraction(0))
    scaled = [Fraction(1) for _ in rows] if scales is None else [Fraction(s) for s in scales]
    common = np.lcm.reduce([s.numerator for s in scaled])
    weight = np.array([int(common / s) for s in scaled], dtype=object)
    total = size.astype(object) @ weight if scales is not None else size.sum(axis=1)
    best = int(np.argmax(total))
    pair = chosen[best]
    return Largest(
        Fraction(int(total[best])) / int(common),
        tuple(pairs.before[pair].tolist()),
        tuple(pairs.after[pair].tolist()),
    )


# ---------- outputs attached to records ----------


def largest_by_rows(pairs: Pairs, loss: Any) -> float:
    """max over the pairs of Σ_records loss[x, y] of a record's change: outputs per record, drawn independently."""
    table = np.array(loss, dtype=float)
    if not len(pairs):
        return 0.0
    moved = pairs.before != pairs.after
    return float(np.where(moved, table[pairs.before, pairs.after], 0.0).sum(axis=1).max())


def largest_weighted(pairs: Pairs, values: Any, weights: Sequence[int]) -> int:
    """max over the pairs of |Σ_i w_i (v(y_i) − v(x_i))|: sums that look at who a record belongs to."""
    if not len(pairs):
        return 0
    table = np.array(values, dtype=np.int64)
    step = table[pairs.after] - table[pairs.before]
    orders = np.array(list(set(itertools.permutations(weights))), dtype=np.int64)
    return int(np.abs(step @ orders.T).max())


def largest_split(pairs: Pairs, matrix: Any, groups: Sequence[int], scales: Sequence[Any]) -> Fraction:
    """max over the pairs of Σ_groups Σ_rows |A Δh_g| / scale_g, where record i belongs to the fixed group ``groups[i]``."""
    rows = np.array(matrix, dtype=np.int64).reshape(-1, pairs.size)
    best = Fraction(0)
    for order in sorted(set(itertools.permutations(groups))):
        total: Any = np.zeros(len(pairs), dtype=object)
        for group, scale in enumerate(scales):
            inside = np.array(order) == group
            moved = rows[:, pairs.after[:, inside]].sum(axis=2) - rows[:, pairs.before[:, inside]].sum(axis=2)
            total = total + np.abs(moved).sum(axis=0).astype(object) * (1 / Fraction(scale))
        best = max(best, *total.tolist()) if len(pairs) else best
    return best


def edge_move(adjacent: Any, matrix: Any, power: int = 1) -> int:
    """max over edges of Σ_rows |A(e_x − e_y)|^power: the formula that is right without known counts."""
    rows = np.array(matrix, dtype=np.int64)
    apart = (np.abs(rows[:, :, None] - rows[:, None, :]) ** power).sum(axis=0)
    return int(np.where(np.array(adjacent, dtype=bool), apart, 0).max())


# ---------- minimal changes, without databases ----------


def is_irreducible(steps: Sequence[Sequence[int]]) -> bool:
    """Whether vectors sum to zero and no proper non-empty part of them does."""
    whole = tuple(int(v) for v in np.sum(np.array(steps), axis=0))
    if any(whole):
        return False
    sums = {(0,) * len(whole)}
    for at, step in enumerate(steps):
        grown = {tuple(a + b for a, b in zip(s, step, strict=True)) for s in sums}
        if (0,) * len(whole) in grown and at < len(steps) - 1:
            return False
        sums |= grown
    # A part that holds the last vector is the complement of one that does not, so what is left is the whole alone.
    return True


# ---------- the papers' policy graph ----------


def is_sparse(adjacent: Any, facts: Sequence[Sequence[int]]) -> bool:
    """Whether every edge, in both directions, lifts at most one known count and lowers at most one."""
    size = len(adjacent)
    return all(
        sum(not f[x] and bool(f[y]) for f in facts) <= 1
        for x in range(size)
        for y in range(size)
        if adjacent[x][y] or adjacent[y][x]
    )


def policy_graph(adjacent: Any, facts: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Arcs q → q' of an edge that lowers q and lifts q'; vertex p is v+, p + 1 is v− (He et al. 2014, section 8)."""
    source, sink = len(facts), len(facts) + 1
    arcs = {(source, sink)}
    for x, y in itertools.permutations(range(len(adjacent)), 2):
        if adjacent[x][y]:
            lowers = [i for i, f in enumerate(facts) if f[x] and not f[y]] or [source]
            lifts = [i for i, f in enumerate(facts) if f[y] and not f[x]] or [sink]
            if (lowers, lifts) != ([source], [sink]):
                arcs |= set(itertools.product(lowers, lifts))
    return arcs


def longest(arcs: set[tuple[int, int]], n_facts: int) -> tuple[int, int]:
    """(α, ξ): edges of the longest simple cycle of counts, and of the longest simple path from v+ to v−."""
    source, sink = n_facts, n_facts + 1

    def walk(path: tuple[int, ...], goal: int) -> int:
        ends = [len(path)] if (path[-1], goal) in arcs else [0]
        return max(
            ends + [walk((*path, v), goal) for v in range(n_facts) if (path[-1], v) in arcs and v not in path]
        )

    return max((walk((v,), v) for v in range(n_facts)), default=0), walk((source,), sink)


# ---------- random policies ----------


@dataclass(frozen=True)
class Drawn:
    """A declared policy with known counts, and what it means: adjacency and predicates over the cells of the domain."""

    domain: Any
    secrets: Any
    known: tuple[tuple[str, Any], ...]  # ("count", where) or ("marginal", attributes)
    kind: str
    n: int

    def constraints(self) -> list[Any]:
        """What the package is told."""
        return [
            td.CountConstraint(where=told) if kind == "count" else td.MarginalConstraint(*told)
            for kind, told in self.known
        ]

    def policy(self) -> Any:
        """The package's policy."""
        return td.Policy(self.domain, self.secrets, constraints=self.constraints())

    @cached_property
    def adjacent(self) -> brute.Adjacency:
        """The dense secret graph."""
        return brute.adjacency(self.domain, self.secrets)

    @cached_property
    def predicates(self) -> list[list[int]]:
        """One row of zeros and ones per known count."""
        return predicates(self.domain, self.known)

    @cached_property
    def deficiency(self) -> int:
        """How many directions of class counts the known counts leave free."""
        return deficiency(self.predicates, len(self.adjacent))


def predicates(domain: Any, known: Sequence[tuple[str, Any]]) -> list[list[int]]:
    """The known counts as rows over all cells of the domain; a known table is one row per cell of it."""
    names, every = list(domain), brute.tuples(domain)
    found = []
    for kind, told in known:
        if kind == "count":
            keep = {n: brute.kept_cells(domain[n], told.get(n)) for n in names}
            found.append([int(all(keep[n][i] for n, i in zip(names, r, strict=True))) for r in every])
        else:
            shadow = [tuple(r[names.index(n)] for n in told) for r in every]
            found += [[int(s == cell) for s in shadow] for cell in sorted(set(shadow))]
    return found


def n_classes(facts: Sequence[Sequence[int]]) -> int:
    """Number of different signatures."""
    return len(set(zip(*facts, strict=True))) if facts else 1


def deficiency(facts: Sequence[Sequence[int]], k: int) -> int:
    """Number of classes less the rank of [1; φ]: 0 where the known counts determine the count of every class."""
    rows = [[Fraction(1)] * k] + [[Fraction(v) for v in row] for row in facts]
    rank = 0
    for column in range(k):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        head = rows[rank]
        for i in range(rank + 1, len(rows)):
            share = rows[i][column] / head[column]
            rows[i] = [a - share * b for a, b in zip(rows[i], head, strict=True)]
        rank += 1
    return n_classes(facts) - rank


def some(rng: np.random.Generator, listed: Sequence[Any]) -> list[Any]:
    """A proper non-empty part of a list, in its order."""
    while True:
        chosen = rng.random(len(listed)) < rng.uniform(0.2, 0.8)
        if chosen.any() and not chosen.all():
            return [v for v, c in zip(listed, chosen, strict=True) if c]


def a_graph(rng: np.random.Generator, values: Sequence[int]) -> Any:
    """Secrets of one attribute."""
    way = rng.integers(6)
    if way < 2:
        return td.Within(int(rng.integers(1, 3)))
    if way == 2:
        return td.Partition(by={v: str(rng.integers(2)) for v in values})
    if way == 3:
        pairs = [p for p in itertools.combinations(values, 2) if rng.random() < 0.5]
        return td.Edges(pairs or [tuple(values[:2])])
    return td.Full() if way == 4 else td.Nothing()


def some_secrets(rng: np.random.Generator, domain: Any) -> Any:
    """A secret graph over the whole domain, every kind in turn."""
    names = list(domain)
    cells = {n: list(range(domain[n].low, domain[n].high + 1)) for n in names}
    way = rng.integers(6)
    if way == 0:
        return td.Full()
    if way == 1:
        density = rng.uniform(0.15, 0.6)
        every = list(itertools.product(*cells.values()))
        pairs = [p for p in itertools.combinations(every, 2) if rng.random() < density] or [tuple(every[:2])]
        if len(names) == 1:
            return td.Edges([(a[0], b[0]) for a, b in pairs])
        return td.Edges(pairs)
    if len(names) == 1:
        return td.Nothing() if rng.random() < 0.05 else a_graph(rng, cells[names[0]])
    if way == 2:
        return td.AttributeWise()
    if way == 3:
        return td.Partition({n: int(rng.integers(1, 3)) for n in names})
    if way == 4:
        return td.Partition(by={r: str(rng.integers(2)) for r in itertools.product(*cells.values())})
    return td.AttributeWise({n: a_graph(rng, cells[n]) for n in names})


def some_known(rng: np.random.Generator, domain: Any) -> tuple[str, list[tuple[str, Any]]]:
    """Known counts: disjoint, nested or ranges, arbitrary, one or two tables."""
    names = list(domain)
    cells = {n: list(range(domain[n].low, domain[n].high + 1)) for n in names}
    way = str(rng.choice(["disjoint", "nested", "overlapping", "tables"]))
    one = str(rng.choice(names))
    if way == "tables":
        if len(names) > 1 and rng.random() < 0.5:
            return "two tables", [("marginal", (n,)) for n in names]
        if len(names) > 1:
            return "one table", [("marginal", (one,))]
        way = "overlapping"
    p = int(rng.integers(1, 4))
    if way == "disjoint":
        labels = rng.integers(0, p + 1, len(cells[one]))
        parts = [[v for v, c in zip(cells[one], labels, strict=True) if c == j] for j in range(p)]
        told = [{one: part} for part in parts if 0 < len(part) < len(cells[one])]
    elif way == "nested":
        told, inner = [], cells[one]
        while len(inner) > 1 and len(told) < p:
            inner = some(rng, inner)
            told.append({one: inner})
    else:
        told = []
        for _ in range(p):
            spoken = [n for n in names if rng.random() < 0.7] or [one]
            if rng.random() < 0.4:
                low, high = sorted(rng.integers(0, len(cells[one]), 2).tolist())
                if high - low + 1 < len(cells[one]):
                    told.append({one: (cells[one][low], cells[one][high])})
                    continue
            told.append({n: some(rng, cells[n]) for n in spoken})
    told = told or [{one: some(rng, cells[one])}]
    return way, [("count", t) for t in told]


def drawn(rng: np.random.Generator, most: int = 1296) -> Drawn:
    """A random policy with known counts and a number of records, of at most ``most`` databases."""
    while True:
        shape = [(3,), (4,), (5,), (6,), (2, 2), (2, 3), (3, 2), (2, 2), (2, 3), (3, 2)][rng.integers(10)]
        n = int(rng.integers(2, 5))
        if math.prod(shape) ** n > most:
            continue
        domain = td.Domain(**{name: td.Integer(0, size - 1) for name, size in zip("ab", shape, strict=False)})
        kind, known = some_known(rng, domain)
        return Drawn(domain, some_secrets(rng, domain), tuple(known), kind, n)


def asked(rng: np.random.Generator, domain: Any) -> list[brute.Asked]:
    """Histogram, cumulative histogram, all ranges, sum and a random integer matrix."""
    names = list(domain)
    axis = str(rng.choice(names))
    rest = tuple(n for n in names if n != axis)
    by = rest if rng.random() < 0.7 else ()
    matrix = rng.integers(-3, 4, (int(rng.integers(1, 4)), domain[axis].high + 1)).tolist()
    return [
        brute.Asked("Histogram", tuple(names)),
        brute.Asked("CDF", (axis,), by),
        brute.Asked("Ranges", (axis,), by, extra="all"),
        brute.Asked("Sum", (axis,), by),
        brute.Asked("Linear", (axis,), by, extra=matrix),
    ]


def dense(question: brute.Asked, domain: Any) -> Ints:
    """The question's integer matrix over all cells of the domain (answers × cells)."""
    columns = brute.rows(question, domain)
    assert all(v.denominator == 1 for column in columns for v in column)
    return np.array([[int(v) for v in column] for column in columns], dtype=np.int64).T
