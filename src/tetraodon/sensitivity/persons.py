"""What the change of one person moves: several records of some weight at once, and records that come or go.

A person's m slots all change, each along an edge: m moves of a record, m² of squares. A weight of at most W steps multiplies
a move by W, a squared one by W². A record x that becomes nothing moves rows A by their whole column, N(x) = ‖A e_x‖; the largest
of these is the largest move along the edges x – nothing. Derived, see docs/people.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..axes import Ints
from ..domain import Domain
from ..graphs import Graph
from . import rows
from .arithmetic import Loss, plain
from .joint import Joint
from .neighbours import Neighbourhood
from .stack import EDGES, EXACT_WORK, Move, Term, along_edges, joint_domain, largest_sum, meeting

PRESENCE = "presence"
NOTHING = -1
"""Stands for no cell, where a move's witness is a record that comes or goes."""
CHUNK = 1 << 20


def counted(terms: Sequence[Term], hood: Neighbourhood, power: int) -> list[Term]:
    """The terms that some change can move, weighed by how many records of what weight change together; a channel sees no
    weights."""
    people = hood.people
    told = [t for t in terms if not hood.spares(t.resolved)]
    if people.times == 1:
        return told
    times = [(people.max_rows if t.is_by_record else people.times) ** power for t in told]
    return [replace(t, factor=t.factor * k) for t, k in zip(told, times, strict=True)]


def with_gone(move: Move, terms: Sequence[Term], hood: Neighbourhood) -> Move:
    """A move along the edges, or that of a record that becomes nothing, if it is larger.

    A record that is gone takes no edge. One whose weight changes may: counts, which are linear in the weight, then move by no more
    than the larger of both, but what channels lose, who see no weights, comes on top.

    Args:
        move: what ``along_edges`` found for these terms.
    """
    if not hood.vanishing:
        return move
    counts = [t for t in terms if not t.is_by_record]
    if hood.rows_vanish or len(counts) == len(terms):
        value, cell, domain = _gone(terms, hood.graph)
        exclusive = hood.graph.kind == "cartesian" and "any" not in move.by_secret
        if exclusive and not hood.people.weights_change:
            told = dict(move.by_secret) | (
                {PRESENCE: max(value, move.by_secret.get(PRESENCE, 0))} if value else {}
            )
        else:
            told = {"any": max(value, move.value)} if max(value, move.value) else {}
        if value <= move.value:
            return replace(move, by_secret=told)
        return Move(value, None if cell is None else (cell, NOTHING), EDGES, domain, told)
    if not counts:
        return move
    channels = along_edges([t for t in terms if t.is_by_record], hood.graph)
    alone = with_gone(along_edges(counts, hood.graph), counts, hood)
    value = plain(Fraction(channels.value) + alone.value)
    return Move(value, None, EDGES, move.domain, {"any": value} if value else {})


def _gone(terms: Sequence[Term], graph: Graph) -> tuple[Loss, int | None, Domain]:
    """(max over x of Σ_terms factor·N(x), such a cell x, what the cells are): exact for one term and where the cells can be
    gone through, else the sum of the largest over the terms that can meet, a bound."""
    domain = joint_domain(graph.domain, terms)
    if domain.size * len(terms) > EXACT_WORK and len(terms) > 1:
        each = [Fraction(_largest_norm(t)) * t.factor for t in terms]
        sums = (
            sum((v for v, here in zip(each, row, strict=True) if here), Fraction(0))
            for row in meeting(terms, graph.project(domain.names))
        )
        return plain(max(sums, default=Fraction(0))), None, domain
    if domain.size > EXACT_WORK:
        [term] = terms
        return plain(_largest_norm(term) * term.factor), None, domain
    best, cell = Fraction(0), None
    for start in range(0, domain.size, CHUNK):
        cells = np.arange(start, min(start + CHUNK, domain.size), dtype=np.int64)
        norms = np.stack([norm(t, cells, domain) for t in terms], axis=1)
        value, at = largest_sum(norms, [t.factor for t in terms])
        if value > best:
            best, cell = value, int(cells[at])
    return plain(best), cell, domain


def norm(term: Term, cells: Ints, domain: Domain) -> Ints:
    """N(x) for an array of cells of a domain that holds the query's attributes: how far the weighted rows move when such a record
    comes or goes."""
    group, position = term.place(cells, domain)
    if term.joint is not None:
        end = term.joint.size
        at = np.where(group < 0, end, group * term.resolved.n_positions + position)
    else:
        end = term.resolved.n_positions
        at = np.where(group < 0, end, position)
    return rows.difference(term.layers, at, np.full(np.shape(at), end, dtype=np.int64))


def _largest_norm(term: Term) -> int:
    joint = term.joint
    if isinstance(joint, Joint):
        top = joint.weight
        for norms in joint.norms:
            top *= int(norms.max(initial=0))
        return top
    return rows.largest_norm(term.layers)[0]
