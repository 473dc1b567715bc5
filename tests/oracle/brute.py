"""Secret graphs, answers and sensitivities straight from their definitions, by loops over values, cells and records.

Nothing here is clever, and nothing here uses what the package computes: only what was declared is read (bounds, steps,
labels, pairs, thresholds). A cell of the whole domain is the number of its tuple in ``itertools.product`` of the
attributes' cells; a record is such a tuple.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import tetraodon as td

INFINITE = math.inf
Record = tuple[int, ...]
Adjacency = list[list[bool]]


@dataclass(frozen=True)
class Cell:
    """One cell of one attribute: the values low … high (``high`` itself is left out where ``is_open``)."""

    kind: str  # "value", "other" or "missing"
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(0)
    is_open: bool = False
    code: Any = None


@dataclass(frozen=True)
class Asked:
    """A question as a user writes it: the word of the query and its arguments."""

    word: str
    attributes: tuple[str, ...]
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    bins: Mapping[str, Any] = field(default_factory=dict)
    extra: Any = None  # ranges, levels or the matrix

    def query(self) -> Any:
        """The package's query for this question."""
        common: dict[str, Any] = {"by": list(self.by), "where": dict(self.where), "bins": dict(self.bins)}
        if self.word == "Histogram":
            return td.Histogram(*self.attributes, **common)
        if self.word == "Linear":
            return td.Linear(self.extra, self.attributes[0], **common)
        more = [] if self.extra is None else [self.extra]
        return getattr(td, self.word)(self.attributes[0], *more, **common)


def number(value: Any) -> Fraction:
    """What the user wrote, exactly; floats by their shortest text."""
    if isinstance(value, float):
        value = repr(value)
    return Fraction(value) if isinstance(value, int | str | Fraction | Decimal) else Fraction(int(value))


# ---------- cells ----------


@lru_cache(maxsize=4096)
def cells(attribute: Any) -> tuple[Cell, ...]:
    """The cells of an attribute in their published order: values, other, missing."""
    found = []
    if isinstance(attribute, td.Integer):
        for start in range(attribute.low, attribute.high + 1, attribute.step):
            last = min(start + attribute.step - 1, attribute.high)
            found.append(Cell("value", Fraction(start), Fraction(last)))
    elif isinstance(attribute, td.Numeric):
        width = (attribute.high - attribute.low) / attribute.n_cells
        for j in range(attribute.n_cells):
            start = attribute.low + j * width
            found.append(Cell("value", start, start + width, is_open=j < attribute.n_cells - 1))
    else:
        for j, code in enumerate(attribute.values):
            found.append(Cell("value", Fraction(j), Fraction(j), code=code))
        if attribute.other is not None:
            found.append(Cell("other"))
    if attribute.missing != "refuse":
        found.append(Cell("missing"))
    return tuple(found)


def cell_of(attribute: Any, value: Any) -> int:
    """Number of the cell that a declared value lies in."""
    for j, cell in enumerate(cells(attribute)):
        if cell.kind == "missing":
            hit = value == "missing"
        elif cell.kind == "other":
            hit = value == attribute.other
        elif isinstance(attribute, td.Categorical):
            hit = value == cell.code
        elif value == "missing":
            hit = False
        else:
            hit = cell.low <= number(value) and (
                number(value) < cell.high if cell.is_open else number(value) <= cell.high
            )
        if hit:
            return j
    raise KeyError(value)


def values_in(attribute: Any, cell: Cell, theta: Fraction) -> list[Fraction]:
    """Values of a cell among which the closest to another cell's are found: all of them, or both ends of an interval.

    The upper end of an open interval is approached to less than what separates two different multiples of 1/q, q a
    common denominator of everything that is compared.
    """
    if isinstance(attribute, td.Integer):
        return [Fraction(v) for v in range(int(cell.low), int(cell.high) + 1)]
    if isinstance(attribute, td.Categorical):
        return [cell.low]
    q = math.lcm(cell.low.denominator, cell.high.denominator, theta.denominator, attribute.low.denominator)
    close = cell.high - Fraction(1, 4 * q) if cell.is_open else cell.high
    return [cell.low, (cell.low + close) / 2, close]


def tuples(domain: Any) -> list[Record]:
    """Every cell of the whole domain as a record."""
    return list(itertools.product(*(range(len(cells(a))) for a in domain.values())))


# ---------- secret graphs ----------


def is_within(attribute: Any, secrets: Any, name: str, x: Cell, y: Cell) -> bool:
    """Whether some value of x and some value of y are at most theta apart."""
    text = secrets.theta
    theta = number(text.split()[0] if isinstance(text, str) else text)
    if isinstance(secrets.metric, td.Discrete):
        return any(
            (0 if a == b else 1) <= theta
            for a in values_in(attribute, x, theta)
            for b in values_in(attribute, y, theta)
        )
    weight = Fraction(1) if secrets.metric is None else dict(secrets.metric.weights).get(name, Fraction(1))
    fine = theta / weight
    return any(
        weight * abs(a - b) <= theta
        for a in values_in(attribute, x, fine)
        for b in values_in(attribute, y, fine)
    )


def block_of(attribute: Any, secrets: Any, name: str, j: int) -> Any:
    """Block label of a value or ``other`` cell; None for an ``other`` cell that the partition does not name."""
    kind = cells(attribute)[j].kind
    n = sum(c.kind == "value" for c in cells(attribute))
    if secrets.blocks is not None:
        if kind == "other":
            return None
        count = dict(secrets.blocks).get(name, 1) if isinstance(secrets.blocks, tuple) else secrets.blocks
        return j * min(count, n) // n
    if not secrets.is_mapping:
        return secrets.by[j] if kind == "value" else None
    for value, label in secrets.by:
        if cell_of(attribute, value) == j:
            return label
    return None


def is_secret(attribute: Any, secrets: Any, name: str, i: int, j: int) -> bool:
    """Whether two cells of one attribute are secret from each other."""
    if i == j:
        return False
    x, y = cells(attribute)[i], cells(attribute)[j]
    if "missing" in (x.kind, y.kind):
        return attribute.missing == "secret"
    if isinstance(secrets, td.Full):
        return True
    if isinstance(secrets, td.Nothing):
        return False
    if isinstance(secrets, td.Within):
        return "other" in (x.kind, y.kind) or is_within(attribute, secrets, name, x, y)
    if isinstance(secrets, td.Partition):
        a, b = block_of(attribute, secrets, name, i), block_of(attribute, secrets, name, j)
        return a is None or b is None or a == b
    assert isinstance(secrets, td.Edges)
    listed = [{cell_of(attribute, v) for v in pair} for pair in secrets.pairs]
    return {i, j} in listed


def differing(domain: Any, a: Record, b: Record) -> list[str]:
    """Attributes on which two records differ."""
    return [n for n, i, j in zip(domain, a, b, strict=True) if i != j]


def is_edge(domain: Any, secrets: Any, a: Record, b: Record) -> bool:
    """Whether two cells of the whole domain are secret from each other."""
    moved = differing(domain, a, b)
    if not moved:
        return False
    at = {n: (i, j) for n, i, j in zip(domain, a, b, strict=True)}

    def along(name: str, graph: Any) -> bool:
        return is_secret(domain[name], graph, name, *at[name])

    if isinstance(secrets, td.AttributeWise):
        graphs = dict(secrets.graphs) or {n: td.Full() for n in domain}
        return len(moved) == 1 and along(moved[0], graphs.get(moved[0], td.Nothing()))
    if isinstance(secrets, td.Nothing):
        return len(moved) == 1 and along(moved[0], secrets)
    if isinstance(secrets, td.Within) or (isinstance(secrets, td.Edges) and secrets.on is not None):
        name = secrets.on or next(iter(domain))
        return len(moved) == 1 and along(moved[0], secrets if moved[0] == name else td.Nothing())
    if isinstance(secrets, td.Full):
        return all(along(n, secrets) for n in moved)
    if isinstance(secrets, td.Partition) and (
        secrets.blocks is not None or secrets.on is not None or len(domain) == 1
    ):
        name = secrets.on or next(iter(domain))
        return all(along(n, secrets if secrets.blocks is not None or n == name else td.Full()) for n in moved)
    if isinstance(secrets, td.Edges) and len(domain) == 1:
        return along(moved[0], secrets)
    if len(moved) == 1 and domain[moved[0]].missing == "secret" and along(moved[0], td.Nothing()):
        return True
    if isinstance(secrets, td.Edges):
        return {a, b} in [{record_of(domain, v) for v in pair} for pair in secrets.pairs]
    if any(
        domain[n].missing == "public" and "missing" in {cells(domain[n])[k].kind for k in at[n]}
        for n in moved
    ):
        return False
    return tuple_block(domain, secrets, a) == tuple_block(domain, secrets, b)


def record_of(domain: Any, values: Sequence[Any]) -> Record:
    """The cell of a tuple of values."""
    return tuple(cell_of(a, v) for a, v in zip(domain.values(), values, strict=True))


def tuple_block(domain: Any, secrets: Any, record: Record) -> Any:
    """Block of a cell under a partition of whole tuples; a cell that is not named is alone."""
    if not secrets.is_mapping:
        return ("named", secrets.by[tuples(domain).index(record)])
    for values, label in secrets.by:
        if record_of(domain, values) == record:
            return ("named", label)
    return ("alone", record)


def adjacency(domain: Any, secrets: Any) -> Adjacency:
    """The dense secret graph."""
    every = tuples(domain)
    return [[is_edge(domain, secrets, a, b) for b in every] for a in every]


def edges(adjacent: Adjacency) -> set[tuple[int, int]]:
    """Every edge once, smaller end first."""
    return {(a, b) for a, row in enumerate(adjacent) for b, joined in enumerate(row) if joined and a < b}


def distances(adjacent: Adjacency) -> list[list[float]]:
    """Least number of edges between any two cells (Floyd and Warshall)."""
    n = len(adjacent)
    d = [[0.0 if a == b else 1.0 if adjacent[a][b] else INFINITE for b in range(n)] for a in range(n)]
    for k, a, b in itertools.product(range(n), repeat=3):
        d[a][b] = min(d[a][b], d[a][k] + d[k][b])
    return d


def projected(domain: Any, adjacent: Adjacency, names: Sequence[str]) -> tuple[list[Record], Adjacency]:
    """Cells of some attributes (in the domain's order), joined where some records behind them are."""
    kept = [i for i, n in enumerate(domain) if n in names]
    every = tuples(domain)
    small = list(itertools.product(*(range(len(cells(domain[n]))) for n in domain if n in names)))
    number_of = {r: i for i, r in enumerate(small)}
    shadow = [number_of[tuple(r[i] for i in kept)] for r in every]
    joined = [[False] * len(small) for _ in small]
    for a, b in itertools.product(range(len(every)), repeat=2):
        if adjacent[a][b] and shadow[a] != shadow[b]:
            joined[shadow[a]][shadow[b]] = True
    return small, joined


def dense_axis(axis: Any) -> Adjacency:
    """The graph that the attributes of an axis state."""

    def joined(a: int, b: int) -> bool:
        a, b = min(a, b), max(a, b)
        if a == b:
            return False
        if b < axis.base:
            if axis.pairs is not None:
                return [a, b] in axis.pairs.tolist()
            return bool(a >= axis.starts[b]) if axis.starts is not None else b - a <= axis.window
        ends = [axis.stars[c - axis.base] for c in (a, b) if c >= axis.base]
        masks = [m for m in ends if not isinstance(m, bool)]
        if masks:
            other = a if axis.stars[b - axis.base] is masks[0] else b
            return bool(masks[0][other])
        return all(ends)

    return [[joined(a, b) for b in range(axis.size)] for a in range(axis.size)]


# ---------- questions ----------


def kept_cells(attribute: Any, where: Any) -> list[bool]:
    """Which cells a filter keeps: a pair (low, high) as a tuple, ends included; else a list of values."""
    listed = cells(attribute)
    if where is None:
        return [True] * len(listed)
    if isinstance(where, tuple):
        low, high = ends_of(attribute, *where)
        return [c.kind == "value" and low <= c.low and c.high <= high for c in listed]
    values = where if isinstance(where, list) else [where]
    return [any(cell_of(attribute, v) == j for v in values) for j in range(len(listed))]


def ends_of(attribute: Any, low: Any, high: Any) -> tuple[Fraction, Fraction]:
    """A stated range as numbers; steps along the order for a categorical."""
    if isinstance(attribute, td.Categorical):
        return Fraction(cell_of(attribute, low)), Fraction(cell_of(attribute, high))
    return number(low), number(high)


def bin_of(attribute: Any, bins: Any, j: int) -> int:
    """Number of the bin of an ordinary cell."""
    cell = cells(attribute)[j]
    if bins is None:
        return j
    if isinstance(bins, Mapping):
        return next(i for i, values in enumerate(bins.values()) if cell.code in values)
    if isinstance(bins, list | tuple):
        lower = [
            number(cell_of(attribute, b)) if isinstance(attribute, td.Categorical) else number(b)
            for b in bins
        ]
        return sum(b <= cell.low for b in lower) - 1
    start = 0 if isinstance(attribute, td.Categorical) else attribute.low
    return int((cell.low - start) // number(bins))


def positions(attribute: Any, bins: Any, where: Any) -> list[int | None]:
    """For every cell its place in the answer (None: filtered out): bins, then other, then missing; none is empty."""
    keep = kept_cells(attribute, where)
    told: list[Any] = []
    for j, cell in enumerate(cells(attribute)):
        rank = {"value": 0, "other": 1, "missing": 2}[cell.kind]
        told.append((rank, bin_of(attribute, bins, j) if rank == 0 else 0) if keep[j] else None)
    order = sorted({t for t in told if t is not None})
    return [None if t is None else order.index(t) for t in told]


def counter(asked: Asked, domain: Any) -> Callable[[Sequence[Record]], tuple[Fraction, ...]]:
    """The function from a database (a list of records) to the question's exact answers, group by group.

    ``Quantiles`` are read off the cumulative counts, and a ``Mean`` off a sum and a count, so these are their answers.
    """
    names = list(domain)
    seen = {n: positions(domain[n], asked.bins.get(n), asked.where.get(n)) for n in names}
    size = {n: 1 + max((p for p in seen[n] if p is not None), default=-1) for n in names}
    split = asked.by + (asked.attributes if asked.word == "Histogram" else ())
    axis = asked.attributes[0]
    at_axis = names.index(axis)
    listed = cells(domain[axis])

    def worth(record: Record) -> Fraction:
        cell = listed[record[at_axis]]
        return (cell.low + cell.high) / 2 if cell.kind == "value" else Fraction(0)

    def in_range(record: Record, pair: tuple[Any, Any]) -> bool:
        low, high = ends_of(domain[axis], *pair)
        cell = listed[record[at_axis]]
        return cell.kind == "value" and low <= cell.low and cell.high <= high

    def group_answers(inside: list[Record]) -> list[Fraction]:
        at = [seen[axis][r[at_axis]] for r in inside]
        if asked.word == "Histogram":
            return [Fraction(len(inside))]
        if asked.word in ("CDF", "Quantiles"):
            return [Fraction(sum(p <= q for p in at)) for q in range(size[axis])]  # type: ignore[operator]
        if asked.word == "Ranges" and asked.extra in (None, "all"):
            every = itertools.combinations_with_replacement(range(size[axis]), 2)
            return [Fraction(sum(low <= p <= high for p in at)) for low, high in every]  # type: ignore[operator]
        if asked.word == "Ranges":
            return [Fraction(sum(in_range(r, pair) for r in inside)) for pair in asked.extra]
        if asked.word == "Linear":
            return [Fraction(sum(row[p] for p in at)) for row in asked.extra]
        total = sum(map(worth, inside), Fraction(0))
        if asked.word == "Sum":
            return [total]
        assert asked.word == "Mean"
        return [total, Fraction(sum(listed[r[at_axis]].kind == "value" for r in inside))]

    def answers(database: Sequence[Record]) -> tuple[Fraction, ...]:
        counted = [r for r in database if all(seen[n][i] is not None for n, i in zip(names, r, strict=True))]
        found: list[Fraction] = []
        for group in itertools.product(*(range(size[n]) for n in split)):
            inside = [
                r
                for r in counted
                if all(seen[n][r[names.index(n)]] == g for n, g in zip(split, group, strict=True))
            ]
            found += group_answers(inside)
        return tuple(found)

    return answers


def rows(asked: Asked, domain: Any) -> list[tuple[Fraction, ...]]:
    """The columns of the dense query matrix: what one record of each cell contributes to every answer."""
    answers = counter(asked, domain)
    return [answers([record]) for record in tuples(domain)]


def gap(one: Sequence[Fraction], two: Sequence[Fraction]) -> Fraction:
    """L1 distance."""
    return sum((abs(a - b) for a, b in zip(one, two, strict=True)), Fraction(0))


def edge_sensitivity(columns: Sequence[Sequence[Fraction]], adjacent: Adjacency) -> Fraction:
    """Largest L1 difference of two columns along an edge."""
    return max((gap(columns[a], columns[b]) for a, b in edges(adjacent)), default=Fraction(0))


def database_sensitivity(asked: Asked, domain: Any, adjacent: Adjacency, n: int) -> Fraction:
    """Largest L1 change of the answers over all neighbouring databases of n records (one moves along one edge)."""
    answers, every = counter(asked, domain), tuples(domain)
    told = {d: answers([every[i] for i in d]) for d in itertools.product(range(len(every)), repeat=n)}
    best = Fraction(0)
    for one in told:
        for person, other in itertools.product(range(n), range(len(every))):
            if adjacent[one[person]][other]:
                two = (*one[:person], other, *one[person + 1 :])
                best = max(best, gap(told[one], told[two]))
    return best


def definition_neighbours(adjacent: Adjacency, n: int) -> Iterator[tuple[Record, Record]]:
    """Neighbouring databases by definition 4.1 of He et al. 2014, literally, without constraints.

    T = the secrets that the pair tells apart, Δ = the changed (record, value) pairs; a pair is a neighbour if T is not
    empty and no third database with T not empty has a smaller T, or the same T and a smaller Δ.
    """
    every = list(itertools.product(range(len(adjacent)), repeat=n))

    def told(one: Record, two: Record) -> frozenset[tuple[int, int, int]]:
        return frozenset((i, a, b) for i, (a, b) in enumerate(zip(one, two, strict=True)) if adjacent[a][b])

    def changed(one: Record, two: Record) -> frozenset[tuple[int, int]]:
        return frozenset(enumerate(one)) ^ frozenset(enumerate(two))

    for one in every:
        others = [(d, told(one, d), changed(one, d)) for d in every]
        others = [o for o in others if o[1]]
        for two, t, delta in others:
            if not any(t3 < t or (t3 == t and delta3 < delta) for _, t3, delta3 in others):
                yield one, two
