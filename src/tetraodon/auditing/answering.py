"""What a priced way of answering gives out for a made-up table: without noise once, and as it is released many times.

Draws go through the very steps of a release: the noise is reserved at the strategy's own scales, its own ``observe`` adds it.
Many draws at once are the same strategy over as many copies of the table, each with noise of its own. What is published
afterwards is computed from these numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..axes import Ints
from ..clustering.histogram import HistogramWay
from ..clustering.iterative import Found
from ..mechanisms import charged
from ..mechanisms.kron_strategy import KroneckerStrategy
from ..mechanisms.parts import Noisy
from ..mechanisms.strategy import Strategy
from ..table import Counts
from .bounds import Floats

CHUNK = 2**22
WHOLE = 2**8
"""Numbers with noise in an output, up to which all of them are drawn."""
SLOWLY = 1_000
"""Draws of ways that take milliseconds each."""
FINE = 10.0**9


class _Told:
    """In place of reserved noise: the number of each block, or nothing, so that it shows which numbers carry which block."""

    def __init__(self, is_silent: bool) -> None:
        self.scales: list[Fraction] = []
        self.is_silent = is_silent

    def laplace(self, scale: Fraction, size: int) -> Ints:
        self.scales.append(scale)
        return np.full(size, 0 if self.is_silent else len(self.scales), dtype=np.int64)

    gaussian = laplace


@dataclass(frozen=True, eq=False)
class Exact:
    """What is observed of one table before noise.

    Attributes:
        values: every number that is released.
        scales: its noise's scale (σ² for Gaussian noise); None for a number without noise.
    """

    values: Floats
    scales: tuple[Fraction | None, ...]


def linear(strategy: Any) -> Any:
    """The linear mechanism that a way of answering runs, or the way itself."""
    return strategy.strategy if isinstance(strategy, HistogramWay) else strategy


def is_linear(strategy: Any) -> bool:
    """Whether what is released is rows of the table plus noise, all of it drawn at once."""
    return hasattr(linear(strategy), "parts")


def true_values(strategy: Any, counts: Counts, total: int | None) -> Floats:
    """What a linear strategy observes, without noise."""
    way = linear(strategy)
    return _flat(way.observe(way.tabulate(counts), total, _Told(True)))


def exact(strategy: Any, counts: Counts, total: int | None) -> Exact:
    """What a linear strategy observes, with the noise scale of every number, as its own ``observe`` tells.

    Args:
        total: the number of records, where it is public.
    """
    way, table = linear(strategy), linear(strategy).tabulate(counts)
    silent, marked = _Told(True), _Told(False)
    values = _flat(way.observe(table, total, silent))
    block = np.rint(_flat(way.observe(table, total, marked)) - values).astype(np.int64)
    scales = [None, *marked.scales]
    return Exact(values, tuple(scales[b] for b in block.tolist()))


def drawn(strategy: Any, counts: Counts, total: int | None, draws: int, kept: Sequence[int]) -> Floats:
    """Outputs for one table, shape (draws, kept): as many independent releases of it.

    Args:
        kept: which numbers of an output; all others are drawn and dropped.
    """
    way = linear(strategy)
    table, columns = way.tabulate(counts), np.asarray(kept, dtype=np.int64)
    each = numbers(strategy)
    if is_linear(strategy) and each > WHOLE:
        return _projected(way, exact(strategy, counts, total), draws, columns)
    step = max(1, CHUNK // max(each, _size(table), 1))
    parts = []
    for start in range(0, draws, step):
        n = min(step, draws - start)
        with charged.reserved(way.loss, [(s, k * n) for s, k in way.draws]) as held:
            if is_linear(strategy):
                parts.append(_wide(way, table, total, n, held)[:, columns])
            else:
                parts.append(np.stack([_flat(way.observe(table, total, held))[columns] for _ in range(n)]))
    return np.concatenate(parts)


def is_projected(strategy: Any) -> bool:
    """Whether outputs are so long that noise is drawn only for the numbers that are looked at."""
    return is_linear(strategy) and numbers(strategy) > WHOLE


def numbers(strategy: Any) -> int:
    """How many numbers of an output carry noise."""
    return sum(n for _, n in linear(strategy).draws)


def _projected(way: Any, told: Exact, draws: int, columns: Ints) -> Floats:
    """Some numbers of an output, each with noise of its own, by the function that adds all noise."""
    found = np.empty((draws, len(columns)))
    for i, j in enumerate(columns.tolist()):
        true, scale = np.full(draws, told.values[j]), told.scales[j]
        if scale is not None:
            with charged.reserved(way.loss, [(scale, draws)]) as held:
                true = charged.added(true.astype(np.int64), held, way.loss, scale).astype(np.float64)
        found[:, i] = true
    return found


def most_draws(strategy: Any, draws: int) -> int:
    """How many draws of a table are taken of those asked for."""
    way = linear(strategy)
    return draws if is_linear(way) else min(draws, SLOWLY)


def _wide(way: Any, table: Any, total: int | None, n: int, held: Any) -> Floats:
    if isinstance(way, KroneckerStrategy):
        copies = np.ones((n, 1), dtype=np.int64)  # one more factor, which repeats every row
        told = replace(way, factors=(copies, *way.factors)).observe(table, total, held)
        return told.values[1].reshape(n, -1)
    if isinstance(way, Strategy):
        whole = np.tile(table, (n, 1))
        blocks = way.blocks
        told = _without_blocks(way).observe(whole, total, held)
        parts = [v.reshape(n, -1) for v in told.values]
        if blocks is not None:
            parts.append(np.tile(blocks.totals(table).astype(np.float64), (n, 1)))
        return np.concatenate(parts, axis=1)
    tables = {t: np.broadcast_to(v, (n, *np.shape(v))) for t, v in table.items()}
    return np.concatenate([v.reshape(n, -1) for v in way.observe(tables, total, held).values], axis=1)


def _without_blocks(way: Strategy) -> Strategy:
    """The same rows without the exact totals of blocks, which are laid out for one table."""
    if way.blocks is None:
        return way
    made = object.__new__(type(way))
    made.__dict__.update(way.__dict__, blocks=None)
    return made


def _flat(told: Any) -> Floats:
    """Every number that is observed, in one row."""
    if isinstance(told, Noisy):
        parts = [v.ravel() for v in told.values]
        if told.blocks is not None:
            parts.append(np.asarray(told.blocks, dtype=np.float64).ravel())
        return np.concatenate(parts)
    found, _ = told
    assert isinstance(found, Found)
    return np.concatenate([np.rint(found.centroids * FINE).ravel(), found.sizes])


def _size(table: Any) -> int:
    if isinstance(table, dict):
        return sum(int(np.size(v)) for v in table.values())
    return sum(int(np.size(v)) for v in table) if isinstance(table, tuple) else int(np.size(table))
