"""Small made-up tables that a policy calls neighbours, chosen from its declaration alone.

Without known counts one record moves along an edge; of a person with several, all that are kept do; one may be gone where
presence, the number of rows or weights are secret. With known counts records change together so that every count stays,
no part of the change keeps all of them, and at least one record moves along an edge (math: docs/sensitivity.md). The two
tables of a pair have the same known counts as each other; they need not be the numbers that are public of the real table.

Of all such pairs those are listed whose *weighted rows* move most, as far as a search over some hundred cells tells: of
small domains all cells, of larger ones the ends of every attribute, of its widest edges, and a witness if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ..attributes import Attribute
from ..axes import Axis, Ints
from ..domain import Domain
from ..graphs import Graph
from ..policy import Policy
from ..sensitivity import Neighbourhood
from ..table import Counts
from .bounds import Floats

WATCHED = 256
ENTRIES = 2**23
SAMPLED = 24
LONGEST = 6
BACKGROUND = 5

Rows = Callable[[Ints], Floats]
"""Cells → what one record there adds to every row, in units of the row's noise; shape (cells, rows)."""


@dataclass(frozen=True)
class Pair:
    """Two tables that a policy calls neighbours.

    Attributes:
        domain: what cells are.
        before, after: (cell, how many records, or steps of weight) of what changes.
        others: what both tables hold besides.
    """

    domain: Domain
    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int], ...] = ()

    def counts(self, domain: Domain) -> tuple[Counts, Counts]:
        """Both tables, as counts of these attributes."""
        told = []
        for held in (self.before, self.after):
            cells = np.array([c for c, _ in (*held, *self.others)], dtype=np.int64)
            numbers = np.array([n for _, n in (*held, *self.others)], dtype=np.int64)
            each = dict(zip(self.domain.names, self.domain.decode(cells), strict=True))
            told.append(Counts.collect(domain, [(domain.encode([each[n] for n in domain.names]), numbers)]))
        return told[0], told[1]

    @property
    def words(self) -> str:
        """The change in words; all of it was declared."""
        gone, come = _less(self.before, self.after), _less(self.after, self.before)
        return f"{self._listed(gone)} → {self._listed(come)}"

    def _listed(self, held: Sequence[tuple[int, int]]) -> str:
        if not held:
            return "nothing"
        return "; ".join(f"{self._label(c)}{'' if n == 1 else f' ({n} times)'}" for c, n in held)

    def _label(self, cell: int) -> str:
        told = zip(self.domain.names, self.domain.labels(cell), strict=True)
        return ", ".join(f"{name} {label}" for name, label in told)


def _less(one: Sequence[tuple[int, int]], two: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    left: dict[int, int] = {}
    for sign, held in ((1, one), (-1, two)):
        for cell, n in held:
            left[cell] = left.get(cell, 0) + sign * n
    return [(cell, n) for cell, n in left.items() if n > 0]


@dataclass(frozen=True, eq=False)
class Watched:
    """Cells that changes are looked for among.

    Attributes:
        domain, graph: of the attributes that matter.
        cells: their numbers.
        rows: what a record in each adds, shape (cells, rows).
        power: 1: moves count in full; 2: squared; 0: the largest of each of several runs of rows counts.
        splits: where these runs start.
    """

    domain: Domain
    graph: Graph
    cells: Ints
    rows: Floats
    power: int
    splits: tuple[int, ...] = (0,)

    @property
    def edges(self) -> tuple[Ints, Ints]:
        """Indices of the cells that an edge joins, each pair once."""
        a, b = np.triu_indices(len(self.cells), 1)
        joined = self.graph.joined(self.cells[a], self.cells[b])
        return a[joined].astype(np.int64), b[joined].astype(np.int64)

    def size(self, moves: Floats) -> Floats:
        """How much moves of the rows lose, shape (moves, rows) → (moves,)."""
        if not self.power:
            return np.asarray(np.maximum.reduceat(np.abs(moves), self.splits, axis=-1).sum(axis=-1))
        return np.asarray((np.abs(moves) ** self.power).sum(axis=-1))


def pairs(
    policy: Policy,
    names: Sequence[str],
    rows: Rows,
    power: int = 1,
    witness: Sequence[tuple[Domain, Sequence[int]]] = (),
    count: int = 3,
    weighs: bool = True,
    splits: tuple[int, ...] = (0,),
) -> list[Pair]:
    """Neighbouring tables between which the rows move most, worst first; none if nothing that is asked about is secret.

    Args:
        names: attributes that are asked about.
        rows: what one record in a cell of ``names`` adds to every row.
        power: 1 for ε, 2 for ρ, 0 for channels, whose outputs are told apart by the largest move of a logarithm.
        witness: cells to look at, with what they are cells of.
        count: how many.
        weighs: whether records count by their weights.
        splits: for power 0, where the rows of each channel start.
    """
    hood = policy.neighbourhood
    held = names if hood.classes is None else [*names, *hood.classes.domain.names]
    domain = policy.domain.select(*dict.fromkeys(held))
    graph = hood.graph.project(domain.names)
    asked = domain.select(*names)
    cells = _watched(domain, graph, hood, witness)
    told = rows(_projected(cells, domain, asked)[:1])
    cells = cells[: max(8, ENTRIES // max(told.shape[1], 1))]
    seen = Watched(domain, graph, cells, rows(_projected(cells, domain, asked)), power, splits)
    found = _exchanged(seen, hood) if not hood.is_plain else _moved(seen, policy, weighs)
    ranked = sorted(found, key=lambda f: -f[0])[:count]
    return [Pair(domain, before, after, _background(seen)) for value, before, after in ranked if value > 0]


Held = tuple[tuple[int, int], ...]
Found = tuple[float, Held, Held]


def _moved(seen: Watched, policy: Policy, weighs: bool) -> Iterator[Found]:
    """A person's records that all move along one edge, that come or go, or that weigh more or less."""
    cells = seen.cells.tolist()
    a, b = seen.edges
    for name, mask in policy.neighbourhood.exempt:
        if name in seen.domain:
            at = seen.domain.decode(seen.cells)[seen.domain.names.index(name)]
            kept = ~mask[at[a]]
            a, b = a[kept], b[kept]
    own = np.arange(len(cells), dtype=np.int64)
    for before, after in _numbers(policy, weighs):
        if not seen.power and before != after:
            continue  # how many rows there are is published with them
        if before == after:
            one, two = a, b
        elif after:
            one, two = np.concatenate([a, b, own]), np.concatenate([b, a, own])
        else:
            one = two = own
        if not len(one):
            continue
        step = max(1, ENTRIES // max(seen.rows.shape[1], 1))
        lost = np.concatenate(
            [
                seen.size(before * seen.rows[one[i : i + step]] - after * seen.rows[two[i : i + step]])
                for i in range(0, len(one), step)
            ]
        )
        for i in np.argsort(-lost, kind="stable")[:SAMPLED].tolist():
            gone: Held = ((cells[one[i]], before),)
            yield float(lost[i]), gone, ((cells[two[i]], after),) if after else ()


def _numbers(policy: Policy, weighs: bool) -> list[tuple[int, int]]:
    """How many records, or steps of weight, a person adds to the one table and to the other."""
    people = policy.people
    most, least = (1, 1) if people.weight is None or not weighs else (people.weight.most, people.weight.least)
    m, changes = people.max_rows, people.weights_change and weighs
    found = [(m * most, m * most)]
    if changes:
        found.append((m * most, m * least))
    if people.rows_vanish:  # somebody who is in the table has a row
        found.append((m * most, least if changes else most))
    if policy.presence == "secret":
        found.append((m * most, 0))
    return found


def _exchanged(seen: Watched, hood: Neighbourhood) -> Iterator[Found]:
    """Records that change together so that known counts stay."""
    classes = hood.classes
    assert classes is not None
    told = dict(zip(seen.domain.names, seen.domain.decode(seen.cells), strict=True))
    label = classes.labels[classes.domain.encode([told[n] for n in classes.domain.names])]
    sign = np.concatenate([np.eye(int(s.max()) + 1, dtype=np.int64)[s] for s in classes.signatures.T], axis=1)
    cells, most = seen.cells.tolist(), hood.records
    a, b = seen.edges
    inside = label[a] == label[b]
    lost = seen.size(seen.rows[a] - seen.rows[b])
    for i in np.flatnonzero(inside)[np.argsort(-lost[inside], kind="stable")][:SAMPLED].tolist():
        yield float(lost[i]), ((cells[a[i]], 1),), ((cells[b[i]], 1),)
    across = np.flatnonzero(~inside)
    if most == 1 or not len(across):
        return
    for i in across[np.argsort(-lost[across], kind="stable")][:SAMPLED].tolist():
        for x, y in ((int(a[i]), int(b[i])), (int(b[i]), int(a[i]))):
            yield from _with_partner(seen, label, sign, cells, x, y)
            if classes.is_determined and classes.count > 2:
                yield _around(seen, label, cells, x, y, min(most or LONGEST, LONGEST, classes.count))


def _with_partner(
    seen: Watched, label: Ints, sign: Ints, cells: list[int], x: int, y: int
) -> Iterator[Found]:
    """A record x → y along an edge, and another one that makes up for it."""
    wanted = sign[label[x]] - sign[label[y]]
    heads = np.unique(label)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for u, v in product(heads.tolist(), repeat=2):
        if u == v or (sign[v] - sign[u] != wanted).any():
            continue
        one, two = np.flatnonzero(label == u), np.flatnonzero(label == v)
        base = seen.rows[y] - seen.rows[x]
        first = one[int(np.argmax(seen.size(base - seen.rows[one])))]
        lost = seen.size(base - seen.rows[first] + seen.rows[two])
        at = int(np.argmax(lost))
        best = max(best, (float(lost[at]), int(first), int(two[at])))
    if best[0]:
        yield best[0], ((cells[x], 1), (cells[best[1]], 1)), ((cells[y], 1), (cells[best[2]], 1))


def _around(seen: Watched, label: Ints, cells: list[int], x: int, y: int, longest: int) -> Found:
    """A cycle of classes that begins with a record x → y along an edge; each class loses one value and gains another."""
    total = seen.rows[y] - seen.rows[x]
    gained: dict[int, int] = {int(label[y]): y}
    lost: dict[int, int] = {int(label[x]): x}
    route = [int(label[x]), int(label[y])]
    rest = [c for c in np.unique(label).tolist() if c not in route]
    wide = {c: float(np.ptp(seen.rows[label == c], axis=0).sum()) for c in rest}
    route += sorted(rest, key=lambda c: -wide[c])[: longest - 2]
    for c in route:
        inside = np.flatnonzero(label == c)
        if c not in lost:
            at = inside[int(np.argmax(seen.size(total - seen.rows[inside])))]
            lost[c], total = int(at), total - seen.rows[at]
        if c not in gained:
            at = inside[int(np.argmax(seen.size(total + seen.rows[inside])))]
            gained[c], total = int(at), total + seen.rows[at]
    following = [*route[1:], route[0]]
    before = tuple((cells[lost[c]], 1) for c in route)
    after = tuple((cells[gained[c]], 1) for c in following)
    return float(seen.size(total)), before, after


def _projected(cells: Ints, domain: Domain, asked: Domain) -> Ints:
    told = dict(zip(domain.names, domain.decode(cells), strict=True))
    return asked.encode([told[n] for n in asked.names])


def _background(seen: Watched) -> Held:
    """A few records that both tables hold."""
    at = np.unique(np.linspace(0, len(seen.cells) - 1, 3).astype(np.int64))
    return tuple((int(c), BACKGROUND) for c in seen.cells[at])


# Which cells to look at


def _watched(
    domain: Domain, graph: Graph, hood: Neighbourhood, witness: Sequence[tuple[Domain, Sequence[int]]]
) -> Ints:
    """All cells of a small domain; of a larger one those that matter most, a witness first."""
    if domain.size <= WATCHED:
        return np.arange(domain.size, dtype=np.int64)
    each = [_ends(a, graph, name) for name, a in domain.items()]
    found: list[tuple[int, ...]] = []
    for small, cells in witness:
        for cell in cells:
            at = dict(zip(small.names, (int(v) for v in small.decode(cell)), strict=True))
            found.append(tuple(at.get(n, 0) for n in domain.names))
    bases = [*found, (0,) * len(each)]
    if graph.kind == "flat":
        a, b = next(iter(graph.edges()), (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        some = np.unique(np.linspace(0, max(len(a) - 1, 0), min(len(a), SAMPLED)).astype(np.int64))
        for side in (a[some], b[some]):
            found += [tuple(int(v) for v in domain.decode(c)) for c in side.tolist()]
    if np.prod([len(e) for e in each]) <= WATCHED:
        found += product(*each)
    for base in bases:
        for i, ends in enumerate(each):
            found += [(*base[:i], e, *base[i + 1 :]) for e in ends]
    for i in range(max(len(e) for e in each)):
        found.append(tuple(e[i % len(e)] for e in each))
    told = list(dict.fromkeys(found))[:WATCHED]
    return domain.encode([np.array([t[i] for t in told], dtype=np.int64) for i in range(len(each))])


def _ends(attribute: Attribute, graph: Graph, name: str) -> list[int]:
    """Cells of one attribute: both ends, the ends of its widest edge, of some other edges, and special cells."""
    size = attribute.size
    if size <= SAMPLED:
        return list(range(size))
    found = [0, 1, size - 1, size // 2]
    axis = graph.axis(name) if graph.kind != "flat" else None
    if isinstance(axis, Axis) and axis.is_interval:
        gap, edge = axis.widest
        found += [*edge, min(gap, size - 1)]
    elif axis is not None:
        a, b = next(iter(axis.edges()), (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        if len(a):
            at = np.unique(np.linspace(0, len(a) - 1, SAMPLED // 2).astype(np.int64))
            found += [*a[at].tolist(), *b[at].tolist()]
    found += range(attribute.n_values, size)
    return list(dict.fromkeys(int(v) for v in found))
