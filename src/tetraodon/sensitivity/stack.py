"""The joint loss of what one or several releases observe, along the edges of a secret graph.

Without constraints neighbours differ in one record moved along one edge, so the loss of rows A at scales s is the largest
Σ_r |A[r, x] − A[r, y]|/s_r over the edges x – y, summed over all releases edge by edge (math: He, Machanavajjhala, Ding 2014,
section 5; composition derived, see docs/sensitivity.md). With constraints Rule R takes over (``rule_r``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from ..axes import Axis, Bools, Ints
from ..domain import Domain
from ..errors import Unsupported
from ..graphs import Graph
from ..lattice import Grid
from ..quotient import behind, label_change, quotient
from ..workload import Resolved
from . import rows
from .arithmetic import Loss, plain
from .joint import Joint
from .ratios import Ratios
from .rows import Layer

EDGES = "largest move over the edges"
EXACT_WORK = 4_000_000
CONTEXTS = 4096
LARGEST = 2**61


@dataclass(frozen=True, eq=False)
class Term:
    """What one release observes: weighted integer rows along a query's axis, repeated for every group.

    Attributes:
        resolved: the query over its domain.
        layers: rows along the axis, with integer weights; or one ``Joint``, over all cells of the query at once, or one
            ``Ratios``, for the outputs of a channel.
        factor: loss per unit of weighted move.
        is_by_record: whether outputs are attached to records (channels), so that records do not stand in for each other.
    """

    resolved: Resolved
    layers: tuple[Layer, ...]
    factor: Fraction = Fraction(1)
    is_by_record: bool = False

    @property
    def joint(self) -> Joint | Ratios | None:
        """The rows, where they join the groups."""
        only = self.layers[0] if len(self.layers) == 1 else None
        return only if isinstance(only, Joint | Ratios) else None

    def squared(self) -> Term:
        """The same rows with squared moves, for Gaussian noise."""
        return Term(self.resolved, rows.squared(self.layers), self.factor, self.is_by_record)

    def move(self, a: Ints, b: Ints, domain: Domain) -> Ints:
        """Weighted move of a record from cells a to cells b of a domain that holds the query's attributes."""
        resolved, size = self.resolved, self.resolved.n_positions
        (ga, pa), (gb, pb) = (self.place(c, domain) for c in (a, b))
        if self.joint is not None:
            end = self.joint.size
            x, y = np.where(ga < 0, end, ga * size + pa), np.where(gb < 0, end, gb * size + pb)
            return rows.difference(self.layers, x, y)
        x, y = np.where(ga < 0, size, pa), np.where(gb < 0, size, pb)
        nowhere = np.full(np.shape(x), size, dtype=np.int64)
        apart = rows.difference(self.layers, x, nowhere) + rows.difference(self.layers, y, nowhere)
        stay = (ga == gb) | (ga < 0) | (gb < 0)
        if resolved.n_groups == 1:
            return rows.difference(self.layers, x, y)
        return np.where(stay, rows.difference(self.layers, x, y), apart)

    def place(self, cells: Ints, domain: Domain) -> tuple[Ints, Ints]:
        """Group and position of cells of a domain that holds the query's attributes; group −1 for those left out."""
        told = dict(zip(domain.names, domain.decode(cells), strict=True))
        return self.resolved.place(self.resolved.domain.encode([told[n] for n in self.resolved.domain.names]))


@dataclass(frozen=True, eq=False)
class Move:
    """The largest weighted move, exact, or a proved bound of it.

    Attributes:
        value: the bound; for squared rows, of the squared norm.
        cells: two cells of ``domain`` that attain it (their exchange, for one record); None if nothing moves or several
            records do.
        rule: which rule gave it.
        domain: what the cells are.
        by_secret: the loss along the edges of each attribute; the key "any" for edges that move several at once.
    """

    value: Loss
    cells: tuple[int, int] | None
    rule: str = EDGES
    domain: Domain | None = None
    by_secret: Mapping[str, Loss] = field(default_factory=dict)


def joint_domain(whole: Domain, terms: Sequence[Term], *others: str) -> Domain:
    """The domain of all attributes that the terms use, and of others."""
    return whole.select(*dict.fromkeys([*others, *(n for t in terms for n in t.resolved.domain.names)]))


def check_size(terms: Sequence[Term]) -> None:
    """Refuse rows whose weighted moves could wrap 64-bit sums."""
    for term in terms:
        if sum(map(rows.ceiling, term.layers)) >= LARGEST:
            raise Unsupported(
                "the rows and their shares of the budget are too large to price exactly; use rounder shares."
            )


def along_edges(terms: Sequence[Term], graph: Graph) -> Move:
    """max over the edges of Σ_terms factor·move: exact for one term and where the edges can be gone through, else the sum
    of the terms' largest moves along each attribute's edges, a bound.
    """
    domain = joint_domain(graph.domain, terms)
    small = graph.project(domain.names)
    if len(terms) == 1 and (small.kind == "cartesian" or (small.kind != "flat" and not terms[0].joint)):
        [term] = terms
        value, cells, told = largest_by_attribute(term, small)
        if small.kind != "cartesian":
            told = {"any": value} if value else {}
        scaled: dict[str, Loss] = {n: plain(v * term.factor) for n, v in told.items()}
        return Move(plain(value * term.factor), cells, EDGES, domain, scaled)
    if small.kind == "flat" or edge_bound(small) * len(terms) <= EXACT_WORK:
        return _enumerated(terms, small)
    return _bounded(terms, small)


def edge_bound(graph: Graph) -> int:
    """At least the number of edges."""
    size = graph.domain.size
    if graph.kind == "cartesian":
        return sum(
            a.n_edges * (size // n)
            for a, n in zip(graph.axes, graph.domain.shape, strict=True)
            if a.has_edges
        )
    return size * size


def _enumerated(terms: Sequence[Term], graph: Graph) -> Move:
    """Every edge, all terms together; exact."""
    domain, best, cells = graph.domain, Fraction(0), None
    told: dict[str, Loss] = {}
    for a, b in graph.edges():
        moved = np.stack([t.move(a, b, domain) for t in terms], axis=1)
        if graph.kind == "cartesian":
            which = np.zeros(len(a), dtype=np.int64)
            for at, (x, y) in enumerate(zip(domain.decode(a), domain.decode(b), strict=True)):
                which = np.where(x != y, at, which)
            kinds = [(name, np.flatnonzero(which == at)) for at, name in enumerate(domain.names)]
        else:
            kinds = [("any", np.arange(len(a)))]
        for name, chosen in kinds:
            if not len(chosen):
                continue
            value, at_edge = largest_sum(moved[chosen], [t.factor for t in terms])
            told[name] = max(told.get(name, 0), plain(value))
            if value > best:
                best, cells = value, (int(a[chosen[at_edge]]), int(b[chosen[at_edge]]))
    return Move(plain(best), cells, EDGES, domain, {n: v for n, v in told.items() if v})


def largest_sum(moves: Ints, factors: Sequence[Fraction]) -> tuple[Fraction, int]:
    """(max over rows of Σ_i factor_i·moves[row, i], the row), exact: floats shortlist, fractions decide."""
    total = moves @ np.array([float(f) for f in factors])
    near = np.flatnonzero(total >= total.max() * (1 - 1e-9))
    distinct, first = np.unique(moves[near], axis=0, return_index=True)
    found = [sum((int(v) * f for v, f in zip(row, factors, strict=True)), Fraction(0)) for row in distinct]
    at = max(range(len(found)), key=found.__getitem__)
    return found[at], int(near[first[at]])


def _bounded(terms: Sequence[Term], graph: Graph) -> Move:
    """Terms one by one. Releases that filter an attribute which no edge changes to different values never meet on an edge."""
    single = [largest_by_attribute(t, graph.project(t.resolved.domain.names)) for t in terms]
    together = meeting(terms, graph)
    names = [n for n in graph.domain.names if graph.axis(n).has_edges]
    if graph.kind != "cartesian":
        parts = {"any": [found[0] for found in single]}
    else:
        parts = {n: [found[2].get(n, 0) for found in single] for n in names}
    told: dict[str, Loss] = {}
    for name, values in parts.items():
        sums = [
            sum((v * t.factor for v, t, here in zip(values, terms, row, strict=True) if here), Fraction(0))
            for row in together
        ]
        told[name] = plain(max(sums, default=Fraction(0)))
    value = max(told.values(), default=0)
    cells = None
    if value and len(terms) == 1:
        cells = single[0][1]
    return Move(value, cells, EDGES, graph.domain, {n: v for n, v in told.items() if v})


def meeting(terms: Sequence[Term], graph: Graph) -> Bools:
    """Shape (contexts, terms): which terms can see one and the same record whose unprotected attributes stay as they are."""
    patterns: list[Bools] = []
    for name in graph.domain.names:
        axis = graph.axis(name)
        if axis.has_edges:
            continue
        seen = np.ones((graph.domain[name].size, len(terms)), dtype=bool)
        for i, term in enumerate(terms):
            kept = dict(term.resolved.filters).get(name)
            for g in [*term.resolved.groups, *([term.resolved.axis] if term.resolved.axis else [])]:
                if g.name == name and g.labels is not None:
                    kept = g.labels >= 0
            if kept is not None:
                seen[:, i] = kept
        distinct = np.unique(seen, axis=0)
        if not distinct.all():
            patterns.append(distinct)
    every = np.ones((1, len(terms)), dtype=bool)
    count = 1
    for pattern in patterns:
        count *= len(pattern)
        if count > CONTEXTS:
            break  # fewer contexts are told apart: the bound stays one
        every = np.array([x & y for x, y in product(every, pattern)])
    return every


def largest_by_attribute(term: Term, graph: Graph) -> tuple[int, tuple[int, int] | None, dict[str, int]]:
    """(largest move, an edge of ``graph.domain`` that attains it, the largest move along each attribute's edges).

    A record that changes group leaves one copy of the rows and enters another (twice the norm of its column); one that
    the filter drops leaves one copy.

    Args:
        graph: over the query's attributes, one axis for each.
    """
    resolved, layers = term.resolved, term.layers
    if isinstance(term.joint, Ratios):
        return term.joint.largest(graph)
    if term.joint is not None:
        return _largest_joint(resolved, term.joint, graph)
    movers = [(g.name, g.labels) for g in resolved.groups]
    movers += [(n, np.where(kept, 0, -1).astype(np.int64)) for n, kept in resolved.filters]
    changes = [(name, *label_change(graph.axis(name), labels)) for name, labels in movers]
    norm, at = rows.largest_norm(layers) if any(change for _, change, _ in changes) else (0, 0)
    home = {g.name: _first_inside(g.labels) for g in resolved.groups}
    home |= {n: int(np.argmax(kept)) for n, kept in resolved.filters}
    if resolved.axis is not None:
        home[resolved.axis.name] = _a_cell(resolved.axis.labels, at)
    told: dict[str, int] = {}
    best: tuple[int, str, tuple[int, int]] = (0, "", (0, 0))
    if resolved.axis is not None:
        axis, labels = graph.axis(resolved.axis.name), resolved.axis.labels
        value, edge = rows.largest_difference(layers, quotient(axis, labels))
        if value:
            best = (value, resolved.axis.name, _cells_of(axis, labels, edge))
            told[resolved.axis.name] = value
    for name, change, edge in changes:
        if change * norm:
            told[name] = change * norm
        if change * norm > best[0]:
            best = (change * norm, name, edge)
    if not best[0]:
        return 0, None, told
    ends = []
    for cell in best[2]:
        place = home | {best[1]: cell}
        ends.append(int(resolved.domain.encode([place[n] for n in resolved.domain.names])))
    return best[0], (ends[0], ends[1]), told


def _largest_joint(
    resolved: Resolved, layer: Joint, graph: Graph
) -> tuple[int, tuple[int, int] | None, dict[str, int]]:
    """``largest_by_attribute`` for rows that join the groups: a bound where edges move several attributes at once."""
    if graph.kind != "cartesian":
        return (0 if _is_still(resolved, layer, graph) else layer.ceiling), None, {}
    every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    tops = [int(n.max()) for n in layer.norms]
    home = {g.name: _a_cell(g.labels, int(np.argmax(n))) for g, n in zip(every, layer.norms, strict=True)} | {
        n: int(np.argmax(kept)) for n, kept in resolved.filters
    }
    found: dict[str, tuple[int, tuple[int, int]]] = {}
    for i, g in enumerate(every):
        along = rows.Matrix(layer.factors[i], layer.weight, layer.power)
        axis = graph.axis(g.name)
        value, edge = rows.largest_difference((along,), quotient(axis, g.labels))
        if value:
            rest = prod(top for k, top in enumerate(tops) if k != i)
            found[g.name] = (value * rest, _cells_of(axis, g.labels, edge))
    for name, kept in resolved.filters:
        change, edge = label_change(graph.axis(name), np.where(kept, 0, -1).astype(np.int64))
        if change:
            found[name] = (layer.weight * prod(tops), edge)
    if not found:
        return 0, None, {}
    top = max(found, key=lambda name: found[name][0])
    ends = [
        int(resolved.domain.encode([(home | {top: cell})[n] for n in resolved.domain.names]))
        for cell in found[top][1]
    ]
    return found[top][0], (ends[0], ends[1]), {name: value for name, (value, _) in found.items()}


def _is_still(resolved: Resolved, layer: Joint, graph: Graph) -> bool:
    """Whether no edge moves any row, because none moves any factor: an edge that moves several attributes moves each of them
    along its own graph."""
    every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    for g, factor in zip(every, layer.factors, strict=False):
        if rows.largest_difference((rows.Matrix(factor),), quotient(graph.axis(g.name), g.labels))[0]:
            return False
    return not any(
        label_change(graph.axis(name), np.where(kept, 0, -1).astype(np.int64))[0]
        for name, kept in resolved.filters
    )


def _first_inside(labels: Ints | None) -> int:
    return 0 if labels is None else int(np.argmax(labels >= 0))


def _a_cell(labels: Ints | None, position: int) -> int:
    return position if labels is None else int(np.argmax(labels == position))


def _cells_of(axis: Axis, labels: Ints | None, edge: tuple[int, int]) -> tuple[int, int]:
    """Two joined cells that have the positions of an edge of the quotient."""
    if labels is None:
        return edge
    if isinstance(axis, Grid):
        return behind(axis, labels, edge)
    outside = int(labels.max()) + 1
    a, b = (np.flatnonzero(labels == (-1 if p == outside else p)) for p in edge)
    # On an interval graph, if any two are joined then some neighbouring two are, or a star is one of them.
    near = np.clip(np.searchsorted(b, a), 0, len(b) - 1)
    candidates = [(a, b[near]), (a, b[np.maximum(near - 1, 0)])]
    candidates += [(np.full(len(b), s), b) for s in a[a >= axis.base]]
    candidates += [(a, np.full(len(a), s)) for s in b[b >= axis.base]]
    if not axis.is_interval:
        ends = axis.all_edges()
        label = np.where(labels < 0, outside, labels)
        for i, j in ((0, 1), (1, 0)):
            hit = np.flatnonzero((label[ends[:, i]] == edge[0]) & (label[ends[:, j]] == edge[1]))
            if len(hit):
                return int(ends[hit[0], i]), int(ends[hit[0], j])
    for x, y in candidates:
        hit = np.flatnonzero(axis.joined(x, y))
        if len(hit):
            return int(x[hit[0]]), int(y[hit[0]])
    raise AssertionError("an edge of the quotient has no edge behind it")
