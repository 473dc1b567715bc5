"""From integer budget weights to a priced strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..axes import Bools
from ..errors import Unsupported
from ..loss import Loss
from ..sensitivity import Move, Neighbourhood, largest_move, rows
from ..workload import Resolved, Rows
from .forest import Forest, Level
from .parts import Part
from .strategy import MAX_CELLS, Strategy

if TYPE_CHECKING:
    from . import Mechanism


def build(
    mechanism: Mechanism,
    resolved: Resolved,
    hood: Neighbourhood,
    loss: Loss,
    forest: Forest,
    chain_weight: int,
    level_weights: tuple[int, ...],
    free: Bools,
) -> Strategy:
    """Price a forest with integer budget weights: scales spend the loss exactly, free rows are exact.

    Args:
        hood: what neighbouring tables are.
        chain_weight, level_weights: relative budget of each row of the chain and of each level.
        free: what ``free_bounds`` says about the query there.
    """
    if resolved.n_groups * resolved.n_positions > MAX_CELLS:
        raise Unsupported("more than 10^8 cells would have to be published; use coarser bins.")
    parts = [Part("chain", forest.chain_rows(np.arange(forest.n_blocks), 1), chain_weight, free[forest.ends])]
    for level, pieces in enumerate(forest.levels):
        exact = np.full(len(pieces.starts), is_still(pieces, free))
        parts.append(Part(f"level {level + 1}", forest.level_rows(level, 1), level_weights[level], exact))
    return _priced(mechanism, resolved, hood, loss, forest, parts)


def is_still(pieces: Level, free: Bools) -> bool:
    """Whether a level is free: no edge crosses the end of any of its pieces."""
    return bool(free[pieces.starts].all() and free[pieces.starts + pieces.widths].all())


def build_rows(
    mechanism: Mechanism, resolved: Resolved, hood: Neighbourhood, loss: Loss, weights: tuple[int, ...]
) -> Strategy:
    """Price the query's own rows: one weight for all of them, or one for each."""
    asked = resolved.workload
    assert isinstance(asked, Rows)
    split = [asked.matrix] if len(weights) == 1 else [row[None, :] for row in asked.matrix]
    parts = []
    for matrix, weight in zip(split, weights, strict=True):
        layer = rows.Matrix(matrix)
        still = largest_move(resolved, hood, (layer,)).value == 0
        parts.append(Part("rows", layer, weight, np.full(len(matrix), still)))
    return _priced(mechanism, resolved, hood, loss, None, parts)


def _priced(
    mechanism: Mechanism,
    resolved: Resolved,
    hood: Neighbourhood,
    loss: Loss,
    forest: Forest | None,
    parts: list[Part],
) -> Strategy:
    loud = tuple(layer for p in parts if (layer := p.noisy) is not None)
    move = largest_move(resolved, hood, loud, loss.power) if loud else Move(0, None)
    return Strategy(mechanism, resolved, hood, loss, forest, tuple(parts), move)
