"""The weaker reading of known counts, by name only: every record that changes moves along an edge of the secret graph.

With the rank test passed (E1): the larger of the longest in-class edge and the heaviest simple cycle of classes all of whose
arcs run along edges, min(Σ diam, Σ arcs). Where no edge raises or lowers more than one known count (Q sparse for the graph,
He, Machanavajjhala, Ding 2014, section 7.1), also (E2): the heaviest simple cycle of the *policy graph*, whose vertices are the
known counts and one vertex for "no count"; arc q → q' weighs the largest move along an edge that lowers q and raises q'.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from ..errors import PolicyError, Unsupported
from ..workload import Resolved
from .arithmetic import plain
from .cycles import MOST, Floats, heaviest_cycles, set_sums
from .kinds import Kinds, kinds_of
from .neighbours import Neighbourhood
from .rows import Layer
from .rule_r import SLACK, known_counts
from .stack import Move, Term, check_size

E1 = "edges reading, cycles of classes"
E2 = "edges reading, policy graph"


def edges_only(resolved: Resolved, hood: Neighbourhood, layers: tuple[Layer, ...], power: int) -> Move:
    """The smallest of Rule R and the bounds of the edges reading.

    Raises:
        PolicyError: the reading would let an edge's secret be published exactly, because no neighbour exists or shows.
        Unsupported: too many classes or kinds of cells to go through.
    """
    term = Term(resolved, layers).squared() if power == 2 else Term(resolved, layers)
    check_size([term])
    kinds = kinds_of((resolved,), hood)
    if kinds.joined is None or not kinds.is_few:
        raise Unsupported('reading="edges": too many kinds of cells to go through; use reading="both".')
    moves = kinds.moves(term)
    along = np.where(kinds.joined, moves, -1)
    same = kinds.label[:, None] == kinds.label[None, :]
    inside = Fraction(int(np.where(same, along, 0).max()))
    found: list[tuple[Fraction, str]] = []
    classes = hood.classes
    assert classes is not None
    if classes.is_determined and classes.count <= MOST:
        found.append((max(inside, _class_cycles(kinds, moves, along, power)), E1))
    sparse = _policy_graph(kinds, along)
    if sparse is not None and len(sparse) <= MOST:
        found.append((max(inside, _heaviest(sparse, power, len(sparse), hood.records)), E2))
    try:
        whole = known_counts([term], hood, power)
        found.append((Fraction(whole.value), whole.rule))
    except PolicyError:
        if not found:
            raise
    value, rule = min(found)
    if not value and int(along.max()) > 0:
        a, b = np.unravel_index(int(np.argmax(along)), along.shape)
        x, y = (", ".join(kinds.domain.labels(int(kinds.cells[k]))) for k in (a, b))
        raise PolicyError(
            f'reading="edges": the secrets ({x}) and ({y}) have no neighbouring tables that show in this query, so it would '
            'be published exactly and nothing be protected; use reading="both".'
        )
    return Move(plain(value), None, rule, kinds.domain)


def _class_cycles(kinds: Kinds, moves: np.ndarray, along: np.ndarray, power: int) -> Fraction:
    heads = kinds.heads

    def between(values: np.ndarray) -> Floats:
        return np.maximum.reduceat(np.maximum.reduceat(values, heads, axis=0), heads, axis=1).astype(
            np.float64
        )

    arcs = between(along)
    ends = np.append(heads, len(kinds.cells))
    # Records of a class that an arc leaves or enters are ends of edges.
    ended = (along >= 0) & (kinds.label[:, None] != kinds.label[None, :])
    touched = ended.any(axis=1)
    inner = []
    for a, b in pairwise(ends):
        at = np.flatnonzero(touched[a:b]) + a
        inner.append(float(moves[np.ix_(at, at)].max()) if len(at) else 0.0)
    return _best(arcs, np.array(inner), power, len(arcs), kinds.hood.records)


def _heaviest(arcs: Floats, power: int, count: int, records: int | None) -> Fraction:
    return _best(arcs, None, power, count, records)


def _best(arcs: Floats, inner: Floats | None, power: int, count: int, records: int | None) -> Fraction:
    most = count if records is None else min(records, count)
    weights = np.where(arcs < 0, -np.inf, np.sqrt(np.maximum(arcs, 0)) if power == 2 else arcs)
    np.fill_diagonal(weights, -np.inf)
    total = heaviest_cycles(weights, weights)
    if inner is not None:
        total = np.minimum(total, set_sums(np.sqrt(inner) if power == 2 else inner))
    size = np.array([s.bit_count() for s in range(1 << count)])
    found = float(total[(size >= 2) & (size <= most)].max(initial=0.0))
    return Fraction(round(found)) if power == 1 else Fraction(found * found * SLACK)


def _policy_graph(kinds: Kinds, along: np.ndarray) -> Floats | None:
    """Weights of the policy graph's arcs, "no count" last; None if some edge changes two counts the same way."""
    classes = kinds.hood.classes
    assert classes is not None
    columns = []
    for column, k in zip(classes.signatures.T, classes.known, strict=True):
        columns += [column == label for label in range(k.first, k.n_labels)]
    if len(columns) + 1 > MOST:
        return None
    held = np.stack(columns, axis=1)[kinds.label].astype(np.int64)
    a, b = np.nonzero(along >= 0)
    change = held[b] - held[a]
    raised, lowered = (change > 0).sum(axis=1), (change < 0).sum(axis=1)
    if (raised > 1).any() or (lowered > 1).any():
        return None
    nothing = held.shape[1]
    to = np.where(raised > 0, np.argmax(change > 0, axis=1), nothing)
    start = np.where(lowered > 0, np.argmax(change < 0, axis=1), nothing)
    weights = np.full((nothing + 1, nothing + 1), -1.0)
    np.maximum.at(weights, (start, to), along[a, b].astype(np.float64))
    return weights
