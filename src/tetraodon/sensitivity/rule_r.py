"""Rule R: what integer rows cost when counts are known exactly.

With constraints several records may have to change at once, some along no edge. For a norm ‖·‖ of weighted rows A, classes C
of values that the constraints cannot tell apart, and diam(C) = max over x, y ∈ C of ‖A(e_x − e_y)‖:

* if the constraints and n determine all class counts (the rank test), the changed records form one loop inside a class or
  one simple cycle of classes with at least one edge, hence

      cost ≤ max( largest move along an edge inside a class ; X ),   X = Σ of the min(n, #classes) largest diam(C),

  X = 0 if no edge joins two classes. Sharper for few classes: X = max over simple cycles of classes that use an edge of
  min( Σ diam(C) ; Σ over the arcs of the largest move between the two classes, one arc restricted to edges );
* if a single direction of class counts stays free, the change may also be a bundle of paths (``bundle``);
* otherwise cost ≤ g·max over all x, y of ‖A(e_x − e_y)‖, g = min(n, (2d + 1)^d), d = rank − 1 (Steinitz), or a refusal.

Outputs that stay attached to records (channels) may not use diam: no class hides who moved. Source: derived, see
docs/sensitivity.md. Moves are exact; for Gaussian noise squared norms are added as roots, rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np

from ..axes import Axis, Ints
from ..quotient import quotient
from . import rows
from .arithmetic import plain, root_sum
from .bundle import bundle_cost
from .classes import Classes, refusal
from .cycles import MOST, Floats, heaviest_cycles, set_sums
from .inner import Whole, inner_products, squares_of_many, squares_of_sets
from .joint import Joint
from .kinds import Kinds, kinds_of
from .neighbours import Neighbourhood
from .ratios import Ratios
from .stack import Move, Term, along_edges

RULE = "Rule R (known counts)"
SHARP = "Rule R, cycles of classes (known counts)"
STEINITZ = "Steinitz bound (known counts that leave class counts open)"
BUNDLE = "Rule R with one free direction of class counts (known counts)"
PAIRWISE = 512
MAX_EDGES = 100_000
USEFUL = 64
EXACT_FLOAT = 2**52
SLACK = 1 + 1e-12


def known_counts(terms: Sequence[Term], hood: Neighbourhood, power: int) -> Move:
    """The cost of terms under constraints that an edge can break.

    Raises:
        PolicyError: the constraints leave class counts open and no useful bound is known; names those to drop.
        Unsupported: too many joint cells.
    """
    classes = hood.classes
    assert classes is not None
    # In units of the first factor, so that a strategy at its loss is priced by the very numbers that set its scales.
    unit = terms[0].factor or Fraction(1)
    # Rows that join groups are no table of groups: their bound adds up the moves of all changed records.
    terms = [
        replace(t, factor=t.factor / unit, is_by_record=t.is_by_record or t.joint is not None) for t in terms
    ]
    kinds = kinds_of(tuple(t.resolved for t in terms), hood)
    spread = Spread.of(terms, kinds, power)
    inside = _inside(terms, kinds, spread)
    found, rule = _cycles(spread, kinds)
    if not classes.is_determined:
        if classes.kernel is not None:
            extra = bundle_cost(terms, kinds, spread, power)
            found, rule = (extra, BUNDLE) if extra > found else (found, rule)
        else:
            found, rule = _steinitz(spread, kinds)
    cells = inside.cells if Fraction(inside.value) >= found else None
    value = plain(max(Fraction(inside.value), found) * unit)
    return Move(value, cells, rule, kinds.domain, {"any": value} if value else {})


@dataclass(frozen=True, eq=False)
class Spread:
    """How far apart the values of each class are for a stack of terms.

    Attributes:
        power: 1, or 2 for squared moves.
        diameters: diam(C) of every class (squared for power 2): exact where kinds are few, else a bound.
        pair: the largest move between any two cells, likewise.
        moves: shape (kinds, kinds): joint moves in units of 1/unit, where kinds are few; None otherwise.
        parts: the same of every term.
        unit: common denominator of the factors.
        by_record: which terms are attached to records.
    """

    power: int
    diameters: list[Fraction]
    pair: Fraction
    moves: Whole | None
    parts: list[Whole]
    unit: int
    by_record: tuple[bool, ...]

    @staticmethod
    def of(terms: Sequence[Term], kinds: Kinds, power: int) -> Spread:
        unit = lcm(*(t.factor.denominator for t in terms))
        flags = tuple(t.is_by_record for t in terms)
        if not kinds.is_few:
            return Spread(power, diameters(terms, kinds), _largest_pair(terms, kinds), None, [], unit, flags)
        parts: list[Whole] = []
        for t in terms:
            whole = int(t.factor * unit)
            found = kinds.moves(t)
            fits = int(found.max(initial=0)) * whole * len(terms) < rows.LARGEST
            parts.append(found * whole if fits else found.astype(object) * whole)
        moves = parts[0]
        for part in parts[1:]:
            moves = moves + part
        inner = _within(moves, kinds)
        pair = Fraction(int(moves.max()), unit)
        return Spread(power, [Fraction(int(v), unit) for v in inner], pair, moves, parts, unit, flags)


def _within(moves: Whole, kinds: Kinds) -> list[int]:
    """The largest entry of every class's own square."""
    ends = np.append(kinds.heads, len(kinds.cells))
    return [int(moves[a:b, a:b].max()) for a, b in pairwise(ends)]


def _inside(terms: Sequence[Term], kinds: Kinds, spread: Spread) -> Move:
    """Largest move along an edge inside a class: exact where kinds are few, else a bound."""
    if spread.moves is not None and kinds.joined is not None:
        inner = kinds.joined & (kinds.label[:, None] == kinds.label[None, :])
        kept = np.where(inner, spread.moves, 0)
        a, b = np.unravel_index(int(np.argmax(kept)), kept.shape)
        if not kept[a, b]:
            return Move(0, None)
        return Move(plain(Fraction(int(kept[a, b]), spread.unit)), _an_edge(kinds, int(a), int(b)))
    bound = along_edges(terms, kinds.hood.graph)
    if kinds.hood.graph.kind == "cartesian":
        return _inside_axes(terms, kinds, bound)
    widest = max(spread.diameters, default=Fraction(0))  # no edge inside a class is longer
    return bound if Fraction(bound.value) <= widest else Move(plain(widest), None)


def _an_edge(kinds: Kinds, a: int, b: int) -> tuple[int, int] | None:
    """Two joined cells of two kinds."""
    x, y = np.flatnonzero(kinds.number == a), np.flatnonzero(kinds.number == b)
    small = kinds.hood.graph.project(kinds.domain.names)
    for cell in x.tolist():
        hit = np.flatnonzero(small.joined(np.int64(cell), y))
        if len(hit):
            return cell, int(y[hit[0]])
    return None


def _inside_axes(terms: Sequence[Term], kinds: Kinds, bound: Move) -> Move:
    """The bound without edges that leave their class: along the query's axis those within runs of one class stay; an attribute
    none of whose edges stays inside a class drops out."""
    classes = kinds.hood.classes
    assert classes is not None
    axis, told = terms[0].resolved.axis, dict(bound.by_secret)
    for at, name in enumerate(classes.domain.names):
        if name not in told or len(terms) != 1:
            continue
        patterns = np.moveaxis(classes.labels.reshape(classes.domain.shape), at, -1)
        patterns = np.unique(patterns.reshape(-1, classes.domain.shape[at]), axis=0)
        whole = kinds.hood.graph.axis(name)
        if len(patterns) > PAIRWISE or not whole.is_interval:
            continue
        if terms[0].joint is None and axis is not None and axis.name == name:
            runs = [_within_runs(whole, pattern) for pattern in patterns]
            if all(r is not None for r in runs):
                found = [
                    rows.largest_difference(terms[0].layers, quotient(r, axis.labels))[0] for r in runs if r
                ]
                told[name] = plain(max(found) * terms[0].factor)
        elif whole.n_edges <= MAX_EDGES and not _stays(whole, patterns):
            del told[name]
    value = max(told.values(), default=0)
    return bound if value == bound.value else Move(value, None)


def _stays(axis: Axis, patterns: Ints) -> bool:
    """Whether some edge joins two cells of one class."""
    return any(bool((patterns[:, a] == patterns[:, b]).any()) for a, b in axis.edges(10_000))


def _within_runs(axis: Axis, pattern: Ints) -> Axis | None:
    """The edges of an interval graph inside runs of one label; None where a label returns after another."""
    if any(told is not False for told in axis.stars):
        return None
    inner = pattern[: axis.base]
    breaks = np.flatnonzero(np.diff(inner)) + 1
    if len(np.unique(inner)) != len(breaks) + 1:
        return None
    starts = np.zeros(axis.base, dtype=np.int64)
    starts[breaks] = breaks
    return Axis(axis.base, starts=np.maximum(np.maximum.accumulate(starts), axis.first), stars=axis.stars)


def diameters(terms: Sequence[Term], kinds: Kinds) -> list[Fraction]:
    """A bound of diam(C) for every class: the sum over the terms of the move between any two places of the class."""
    ends = np.append(kinds.heads, len(kinds.cells))
    done: dict[tuple[int, bytes], int] = {}
    norms = [_norms(t) for t in terms]
    found: list[Fraction] = []
    for low, high in pairwise(ends):
        total = Fraction(0)
        for i, term in enumerate(terms) if high - low > 1 else ():
            places = np.unique(kinds.places[low:high, i])
            key = (i, places.tobytes())
            if key not in done:
                done[key] = _spread(term, places, norms[i])
            total += done[key] * term.factor
        found.append(total)
    return found


def _norms(term: Term) -> Ints:
    size = term.resolved.n_positions if term.joint is None else term.joint.size
    positions = np.arange(size, dtype=np.int64)
    return rows.difference(term.layers, positions, np.full(len(positions), len(positions), dtype=np.int64))


def _spread(term: Term, places: Ints, norms: Ints) -> int:
    """max over two of these places of the move between them, or a bound."""
    size = term.resolved.n_positions
    inside = places[places >= 0]
    if term.joint is not None:
        leaving = int(norms[inside].max(initial=0)) if len(inside) < len(places) else 0
        return max(leaving, _spread_joint(term.joint, inside, norms))
    group, position = inside // size, inside % size
    best = int(norms[position].max(initial=0)) if len(inside) < len(places) else 0
    tops = []
    for g in np.unique(group):
        own = position[group == g]
        tops.append(int(norms[own].max()))
        best = max(best, _spread_along(term.layers, own, size))
    return max(best, sum(sorted(tops)[-2:])) if len(tops) > 1 else best


def _spread_joint(layer: Joint | Ratios, cells: Ints, norms: Ints) -> int:
    if isinstance(layer, Ratios):
        return layer.weight * layer.apart.widest(cells)
    if len(cells) < 2:
        return 0
    if len(cells) > PAIRWISE:
        return int(norms[cells].max()) * (4 if layer.power == 2 else 2)
    a, b = np.triu_indices(len(cells), 1)
    return int(rows.difference((layer,), cells[a], cells[b]).max())


def _spread_along(layers: tuple[rows.Layer, ...], positions: Ints, size: int) -> int:
    if len(positions) < 2:
        return 0
    if len(positions) <= PAIRWISE:
        a, b = np.triu_indices(len(positions), 1)
        most = int(rows.difference(layers, positions[a], positions[b]).max())
        return most
    # Every position of the hull: no smaller than the class.
    low, high = int(positions.min()), int(positions.max())
    if (low, high) == (0, size - 1):
        return rows.largest_difference(layers, Axis(size, window=size - 1))[0]
    starts = np.arange(size, dtype=np.int64)
    starts[low : high + 1] = low
    return rows.largest_difference(layers, Axis(size, starts=starts))[0]


def _cycles(spread: Spread, kinds: Kinds) -> tuple[Fraction, str]:
    """X of the rule: the closed form, or the sharp one where classes and kinds are few and it is smaller."""
    hood = kinds.hood
    assert hood.classes is not None
    most = hood.classes.count if hood.records is None else min(hood.records, hood.classes.count)
    if most < 2:
        return Fraction(0), RULE
    widest = sorted(spread.diameters, reverse=True)[:most]
    if any(spread.by_record):
        widest = [spread.pair] * most  # who moved is seen, so every arc counts in full
    closed = root_sum(widest, spread.power)
    if spread.power == 2 and not any(spread.by_record):
        closed = min(closed, _squares(spread, kinds, most))
    if hood.classes.count > MOST or spread.moves is None or kinds.joined is None:
        return closed, RULE
    sharp = _sharp(spread, kinds, most)
    return (sharp, SHARP) if sharp < closed * (1 - Fraction(1, 10**9)) else (closed, RULE)


def _squares(spread: Spread, kinds: Kinds, most: int) -> Fraction:
    """The bound of a squared norm by inner products; where kinds are many, classes in groups of their own are orthogonal."""
    if spread.moves is not None:
        return Fraction(squares_of_many(inner_products(spread.moves, kinds.heads), most), 2 * spread.unit)
    if kinds.places.shape[1] == 1 and kinds.are_apart:
        return sum(sorted(spread.diameters, reverse=True)[:most], Fraction(0))
    return root_sum(sorted(spread.diameters, reverse=True)[:most], 2)


def _sharp(spread: Spread, kinds: Kinds, most: int) -> Fraction:
    """max over sets of classes of min(Σ diam, heaviest cycle), for the stack or release by release, whichever is less."""
    joint = _by_sets([spread.moves], [any(spread.by_record)], spread, kinds, most)  # type: ignore[list-item]
    if len(spread.parts) < 2:
        return joint
    return min(joint, _by_sets(spread.parts, list(spread.by_record), spread, kinds, most))


def _by_sets(
    parts: Sequence[Whole], by_record: list[bool], spread: Spread, kinds: Kinds, most: int
) -> Fraction:
    classes = kinds.hood.classes
    assert classes is not None and kinds.joined is not None
    total, twice = np.zeros(1 << classes.count), None
    exact = spread.power == 1
    for moves, is_attached in zip(parts, by_record, strict=True):
        exact = exact and int(moves.max(initial=0)) * (most + 1) * len(parts) < EXACT_FLOAT
        free, bound = (_between(m, kinds) for m in (moves, np.where(kinds.joined, moves, -1)))
        inner = np.array([float(v) for v in _within(moves, kinds)])
        if spread.power == 2:
            free, inner = np.sqrt(free), np.sqrt(inner)
            bound = np.where(bound < 0, -np.inf, np.sqrt(np.maximum(bound, 0)))
        bound = np.where(bound < 0, -np.inf, bound)
        arcs = heaviest_cycles(free, bound)
        best = arcs if is_attached else np.minimum(arcs, set_sums(inner))
        total = total + (best if spread.power == 1 else np.where(best < 0, -np.inf, best * np.abs(best)))
        if spread.power == 2 and len(parts) == 1 and not is_attached:
            twice = squares_of_sets(inner_products(moves, kinds.heads))
    size = np.array([s.bit_count() for s in range(1 << classes.count)])
    looked = np.flatnonzero((size >= 2) & (size <= most) & np.isfinite(total))
    if not len(looked):
        return Fraction(0)
    if exact:
        return Fraction(round(float(total[looked].max())), spread.unit)
    if twice is None:
        return Fraction(float(total[looked].max()) * SLACK) / spread.unit
    # Where inner products tell less than the cycle, their whole numbers are the bound.
    both = np.minimum(total[looked] * SLACK, twice[looked].astype(np.float64) / 2 * SLACK)
    near = looked[both >= both.max() * (1 - 1e-9)]
    bounds = [min(Fraction(int(twice[s]), 2), Fraction(float(total[s]) * SLACK)) for s in near]
    return max(bounds) / spread.unit


def _between(moves: Whole, kinds: Kinds) -> Floats:
    """Shape (classes, classes): the largest move from a value of one class to a value of another."""
    rowwise = np.maximum.reduceat(moves, kinds.heads, axis=0)
    return np.maximum.reduceat(rowwise, kinds.heads, axis=1).astype(np.float64)


def _steinitz(spread: Spread, kinds: Kinds) -> tuple[Fraction, str]:
    hood = kinds.hood
    classes = hood.classes
    assert classes is not None
    longest = steinitz_length(classes, hood.records)
    if longest is None:
        raise refusal(classes)
    return spread.pair * longest**spread.power, STEINITZ


def steinitz_length(classes: Classes, records: int | None) -> int | None:
    """g = min(n, (2d + 1)^d), how many records change at once at most; None where that is of no use."""
    d = classes.rank - 1
    bound = (2 * d + 1) ** d if d <= 3 else None
    known = [b for b in (bound, records) if b is not None]
    return min(known) if known and min(known) <= USEFUL else None


def _largest_pair(terms: Sequence[Term], kinds: Kinds) -> Fraction:
    """A bound of the move between any two cells."""
    one = Kinds(kinds.hood, kinds.domain, kinds.number, kinds.cells, np.zeros_like(kinds.label), kinds.places)
    return diameters(terms, one)[0]
