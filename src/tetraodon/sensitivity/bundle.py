"""Known counts that leave a single direction of class counts free.

Let u be the primitive integer vector over the classes with [1; φ]·u = 0, and P = ‖u‖₁/2. Draw every changed record as an arc
from its old class to its new one. An irreducible change is a loop, one simple cycle of classes, or an acyclic bundle of arcs
whose net effect on class counts is +u or −u, which splits into exactly P simple paths (m·u with m ≥ 2 falls apart: its paths
collapse to an m-regular bipartite graph, which has a perfect matching; König 1916). A bundle moves the rows A by at most

    min( ‖A·u_rep‖ + Σ_C |u_C|·max over v ∈ C of ‖A(e_v − e_rep)‖ ; Σ_C |u_C|·max over v ∈ C of ‖A e_v‖ ) + W,
    W = Σ over C with u_C = 0 of P·diam(C) + S(sources) + S(sinks),

u_rep = Σ_C u_C e_rep(C) for one value of each class, and S(I) = Σ of |u_i|·diam_j over i before j with I sorted by diam/|u|, the
records that pass through a class. Source: derived, docs/sensitivity.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from . import rows
from .arithmetic import root_sum
from .kinds import Kinds
from .stack import Term

if TYPE_CHECKING:
    from .rule_r import Spread


def bundle_cost(terms: Sequence[Term], kinds: Kinds, spread: Spread, power: int) -> Fraction:
    """The bound for bundles (squared for power 2); 0 where the table has too few records for one."""
    classes = kinds.hood.classes
    assert classes is not None and classes.kernel is not None
    u = classes.kernel
    paths = sum(map(abs, u)) // 2
    if kinds.hood.records is not None and kinds.hood.records < paths:
        return Fraction(0)
    if any(spread.by_record):
        # Every arc counts in full: P paths, each of at most #classes − 1 arcs.
        return spread.pair * Fraction(paths * (classes.count - 1)) ** power
    near = [(1, _of_direction(terms, kinds, u, power))]
    near += [(abs(c), radius) for c, radius in zip(u, _farthest(terms, kinds), strict=True)]
    plain = [(abs(c), norm) for c, norm in zip(u, _norms(terms, kinds), strict=True)]
    weights = min(near, plain, key=lambda told: root_sum([k**power * v for k, v in told], power))
    weights += [(paths, d) for c, d in zip(u, spread.diameters, strict=True) if c == 0]
    for sign in (1, -1):
        # Smith's order: the worst one for passing through.
        side = sorted(
            ((abs(c), d) for c, d in zip(u, spread.diameters, strict=True) if c * sign > 0),
            key=lambda item: item[1] / item[0] ** power,
        )
        before = 0
        for amount, d in side:
            weights.append((before, d))
            before += amount
    return root_sum([k**power * v for k, v in weights], power)


def _of_direction(terms: Sequence[Term], kinds: Kinds, u: Sequence[int], power: int) -> Fraction:
    """‖A·u_rep‖ (squared where moves are)."""
    total = Fraction(0)
    for i, term in enumerate(terms):
        resolved = term.resolved
        table = np.zeros(resolved.n_groups * resolved.n_positions, dtype=np.int64)
        for amount, head in zip(u, kinds.heads.tolist(), strict=True):
            place = int(kinds.places[head, i])
            if place >= 0:
                table[place] += amount
        shaped = table.reshape(resolved.n_groups, resolved.n_positions)
        total += rows.weighed(term.layers, shaped, power) * term.factor
    return total


def _norms(terms: Sequence[Term], kinds: Kinds) -> list[Fraction]:
    """Per class, the largest norm of the column of one of its values (a bound for several terms)."""
    ends = np.append(kinds.heads, len(kinds.cells))
    found = [Fraction(0)] * len(kinds.heads)
    for i, term in enumerate(terms):
        size = term.resolved.n_positions
        position = np.where(kinds.places[:, i] < 0, size, kinds.places[:, i] % size)
        norm = rows.difference(term.layers, position, np.full(len(position), size, dtype=np.int64))
        for c, (low, high) in enumerate(pairwise(ends)):
            found[c] += int(norm[low:high].max()) * term.factor
    return found


def _farthest(terms: Sequence[Term], kinds: Kinds) -> list[Fraction]:
    """Per class, the largest move between its representative and another of its values (a bound for several terms)."""
    ends = np.append(kinds.heads, len(kinds.cells))
    found = [Fraction(0)] * len(kinds.heads)
    for term in terms:
        for c, (low, high) in enumerate(pairwise(ends)):
            here = kinds.cells[low:high]
            found[c] += int(term.move(np.full(len(here), here[0]), here, kinds.domain).max()) * term.factor
    return found
