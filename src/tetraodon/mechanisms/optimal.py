"""Optimised rows as a strategy: solved in floating point, rounded as a matrix, priced and reconstructed rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..axes import Axis, Bools, Ints
from ..errors import SpecificationError, Unsupported
from ..sensitivity import largest_move, rows
from ..workload import Rows
from . import Optimised
from .moves import MAX_POSITIONS, Moves, forest_rows, moves_along
from .optimised import MAX_LAPLACE, whole_strategy
from .parts import Part
from .search import Search
from .strategy import Strategy
from .variance import Floats

RECORDS = 2**40
WORK = 2e10  # some seconds
QUICK = 256
"""Longest axis for which ``auto`` optimises, for Gaussian noise; longer ones, and Laplace noise, by name."""


def longest(search: Search) -> int:
    """The longest axis for which rows are optimised."""
    return MAX_LAPLACE if search.power == 1 else MAX_POSITIONS


def optimised(search: Search, named: Sequence[Strategy] = ()) -> Strategy:
    """The optimised strategy for a query under a policy.

    Args:
        named: strategies to start from; those of forests are used.

    Raises:
        Unsupported: the axis is too long.
        SpecificationError: the query has no axis, or nothing of it is secret.
    """
    resolved, size = search.resolved, search.resolved.n_positions
    where = "mechanism 'optimised'"
    if resolved.query.word == "mean" or size < 2:
        raise SpecificationError(
            f"{where}: for answers along an axis of at least two cells; use 'auto' here."
        )
    if size > longest(search):
        raise Unsupported(
            f"{where}: offered up to {longest(search):,} cells along the axis, which has {size:,}; use 'auto'."
        )
    # Under public counts any position may have to make up for another, in another group too unless the group's total is known.
    moves = Moves.of(Axis(size, window=size - 1), size, np.full(size, 0.0 if search.free[size] else 2.0))
    if search.hood.is_plain:
        moves = moves_along(resolved, search.hood.graph)
        if search.hood.vanishing:
            moves = replace(moves, leaves=np.maximum(moves.leaves, 1.0))
    if not len(moves.pairs) and not moves.leaves.any():
        raise SpecificationError(f"{where}: no secret changes this answer; use 'auto' here.")
    starts = [forest_rows(s.forest) * _roots(s)[:, None] for s in named if s.forest is not None]
    found = whole_strategy(resolved.workload, moves, search.power, RECORDS, starts, WORK)
    return _built(search, found.matrix, search.free)


def _built(search: Search, matrix: Ints, free: Bools) -> Strategy:
    bounds = np.flatnonzero(free[1:]) + 1
    held = rows.Prefixes(search.resolved.n_positions, bounds.astype(np.int64))
    layer = rows.Matrix(matrix)
    parts = (
        Part("chain", held, 0, np.ones(len(bounds), dtype=bool)),
        Part("optimised", layer, 1, np.zeros(len(matrix), dtype=bool)),
    )
    move = largest_move(search.resolved, search.hood, (layer,), search.power)
    return Strategy(Optimised(), search.resolved, search.hood, search.loss, None, parts, move)


def _roots(strategy: Strategy) -> Floats:
    """Relative budget of every row of a forest, as the factor of the row."""
    chain, *levels = strategy.parts
    told = [np.where(chain.exact, 0.0, float(chain.weight))]
    told += [np.full(len(p.exact), float(p.weight)) for p in levels]
    return np.concatenate(told)


def applies(search: Search) -> bool:
    """Whether ``auto`` should look at optimised rows: those that take a moment, for several positions asked together."""
    own = isinstance(search.resolved.workload, Rows)
    quick = search.power == 2 and 2 < search.resolved.n_positions <= QUICK
    return quick and not own and not search.free.all()
