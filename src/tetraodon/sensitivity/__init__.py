"""How far an answer, or the rows of a strategy, can move when one record moves along one edge of the secret graph.

Without constraints neighbours differ in one record, moved along one edge, so the cost of any integer rows is the largest
weighted move over the edges (math: He, Machanavajjhala, Ding 2014, section 5). ``claims`` lists every rule used here with
the test that checks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..axes import Axis, Ints
from ..graphs import Graph
from ..quotient import label_change, quotient
from ..workload import AllRanges, Cells, Prefixes, Resolved, SomeRanges
from . import rows
from .rows import Layer

EDGES = "largest move over the edges"


@dataclass(frozen=True)
class Sensitivity:
    """The exact sensitivity of a query or strategy under a policy.

    Attributes:
        value: largest L1 move of the rows, exact, in the answers' own unit (in ε for a strategy's cost).
        witness: two values of one record, attribute by attribute, whose exchange attains it; None if nothing moves.
        rule: which rule gave it.
    """

    value: Fraction
    witness: tuple[dict[str, str], dict[str, str]] | None
    rule: str


@dataclass(frozen=True)
class Move:
    """The largest weighted move, an integer, with the two cells (of the query's domain) that attain it."""

    value: int
    cells: tuple[int, int] | None


def query_layers(resolved: Resolved) -> tuple[Layer, ...]:
    """The rows of the query itself along its axis, in units of 1/denominator of the answer's unit."""
    size, asked = resolved.n_positions, resolved.workload
    if isinstance(asked, Cells):
        return (rows.Blocks(size),)
    if isinstance(asked, Prefixes):
        return (rows.Prefixes(size),)
    if isinstance(asked, AllRanges):
        return (rows.Ranges(size),)
    if isinstance(asked, SomeRanges):
        return (rows.Ranges(size, asked.lows, asked.highs),)
    if resolved.query.word == "mean":  # a sum in units of 1/denominator, then a plain count
        return rows.Matrix(asked.matrix[:1]), rows.Matrix(asked.matrix[1:], asked.denominator)
    return (rows.Matrix(asked.matrix),)


def largest_move(resolved: Resolved, graph: Graph, layers: tuple[Layer, ...]) -> Move:
    """max over the edges x – y of the policy of ‖rows(x) − rows(y)‖, rows repeated for every group, weighted.

    A record that changes group leaves one copy of the rows and enters another (twice the norm of its column); one that
    the filter drops leaves one copy.

    Args:
        graph: the policy's graph, over any domain that holds the query's attributes.
        layers: rows along the query's axis.
    """
    small = graph.project(resolved.domain.names)
    if small.kind == "flat":
        return _over_edges(resolved, small, layers)
    movers = [(g.name, g.labels) for g in resolved.groups]
    movers += [(n, np.where(kept, 0, -1).astype(np.int64)) for n, kept in resolved.filters]
    changes = [(name, *label_change(small.axis(name), labels)) for name, labels in movers]
    norm, at = rows.largest_norm(layers) if any(change for _, change, _ in changes) else (0, 0)
    home = {g.name: _first_inside(g.labels) for g in resolved.groups}
    home |= {n: int(np.argmax(kept)) for n, kept in resolved.filters}
    if resolved.axis is not None:
        home[resolved.axis.name] = _a_cell(resolved.axis.labels, at)
    best: tuple[int, str, tuple[int, int]] = (0, "", (0, 0))
    if resolved.axis is not None:
        axis, labels = small.axis(resolved.axis.name), resolved.axis.labels
        value, edge = rows.largest_difference(layers, quotient(axis, labels))
        if value:
            best = (value, resolved.axis.name, _cells_of(axis, labels, edge))
    for name, change, edge in changes:
        if change * norm > best[0]:
            best = (change * norm, name, edge)
    if not best[0]:
        return Move(0, None)
    ends = []
    for cell in best[2]:
        place = home | {best[1]: cell}
        ends.append(int(resolved.domain.encode([place[n] for n in resolved.domain.names])))
    return Move(best[0], (ends[0], ends[1]))


def _over_edges(resolved: Resolved, graph: Graph, layers: tuple[Layer, ...]) -> Move:
    best, cells = 0, None
    size = resolved.n_positions
    for a, b in graph.edges():
        (ga, pa), (gb, pb) = resolved.place(a), resolved.place(b)
        x, y = np.where(ga < 0, size, pa), np.where(gb < 0, size, pb)
        nowhere = np.full(len(a), size, dtype=np.int64)
        stay = (ga == gb) | (ga < 0) | (gb < 0)
        apart = rows.difference(layers, x, nowhere) + rows.difference(layers, y, nowhere)
        found = np.where(stay, rows.difference(layers, x, y), apart)
        at = int(np.argmax(found))
        if found[at] > best:
            best, cells = int(found[at]), (int(a[at]), int(b[at]))
    return Move(best, cells)


def _first_inside(labels: Ints | None) -> int:
    return 0 if labels is None else int(np.argmax(labels >= 0))


def _a_cell(labels: Ints | None, position: int) -> int:
    return position if labels is None else int(np.argmax(labels == position))


def _cells_of(axis: Axis, labels: Ints | None, edge: tuple[int, int]) -> tuple[int, int]:
    """Two joined cells that have the positions of an edge of the quotient."""
    if labels is None:
        return edge
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


def describe(resolved: Resolved, move: Move, denominator: int = 1) -> Sensitivity:
    """A move with its witness in words."""
    witness = None
    if move.cells is not None:
        a, b = (dict(zip(resolved.domain.names, resolved.domain.labels(c), strict=True)) for c in move.cells)
        witness = (a, b)
    return Sensitivity(Fraction(move.value, denominator), witness, EDGES)
