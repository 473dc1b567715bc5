"""The rows of a strategy, and what is observed of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..axes import Bools, Ints
from ..sensitivity import rows
from .variance import Floats


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one kind that share a scale.

    Attributes:
        name: "chain", "level 1", …, or "rows".
        layer: the rows, with unit weight.
        weight: share of the budget, an integer; 0 = not released (except rows that are free).
        exact: shape (rows,): rows that no edge changes.
    """

    name: str
    layer: rows.Layer
    weight: int
    exact: Bools

    @property
    def noisy(self) -> rows.Layer | None:
        """The rows that carry noise, weighted; None if there are none."""
        if not self.weight or bool(self.exact.all()):
            return None
        layer = self.layer
        if isinstance(layer, rows.Prefixes):
            if not self.exact.any():
                return rows.Prefixes(layer.size, layer.bounds, self.weight)
            bounds = np.arange(1, layer.size + 1) if layer.bounds is None else layer.bounds
            return rows.Prefixes(layer.size, bounds[~self.exact], self.weight)
        if isinstance(layer, rows.Blocks):
            return rows.Blocks(layer.size, layer.starts, layer.ends, self.weight)
        assert isinstance(layer, rows.Matrix)
        return rows.Matrix(layer.matrix, self.weight)

    @property
    def quiet(self) -> rows.Layer | None:
        """The rows that are exact; None if there are none."""
        if not self.exact.any():
            return None
        layer = self.layer
        if isinstance(layer, rows.Prefixes):
            bounds = np.arange(1, layer.size + 1) if layer.bounds is None else layer.bounds
            return rows.Prefixes(layer.size, bounds[self.exact])
        return layer  # levels and rows are exact as a whole or not at all


@dataclass(frozen=True, eq=False)
class Noisy:
    """What a strategy observed: the only thing that reconstruction and post-processing ever see.

    Attributes:
        values: one float array (groups, rows) per part; rows that are not released hold 0.
        total: the number of records (the sum of their weights), where that is public; else None.
        blocks: exact totals of the blocks that the policy discloses, where a strategy has some.
    """

    values: tuple[Floats, ...]
    total: int | None
    blocks: Floats | None = None

    @property
    def most(self) -> float:
        """What no count exceeds: the public total, else nothing known."""
        return math.inf if self.total is None else float(self.total)


def dense(layer: rows.Layer) -> Ints:
    """The rows of a strategy without a forest as a matrix."""
    if isinstance(layer, rows.Matrix):
        return layer.matrix
    assert isinstance(layer, rows.Prefixes) and layer.bounds is not None
    return (np.arange(layer.size) < layer.bounds[:, None]).astype(np.int64)
