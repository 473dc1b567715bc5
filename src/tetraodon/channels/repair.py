"""From a channel that nearly keeps its bounds to an exact table that keeps them.

A solver's channel is off by its tolerance, and one entry of 10^-10 beside an exact 0 has no ε at all. The *envelope*

    K'[w, z] = max over w' of K[w', z] e^{−(1−η) b(w, w')},   rows divided by their sums 1 + δ_w,

where b is the length of the shortest way between two inputs along the pairs, falls by at most (1−η) b between any two inputs,
whatever K was, and changes entries by little more than what K was off. The sums cost a log-ratio of at most
ln (1 + max δ)/(1 + min δ), which η makes room for. At η = 1/2 it always does: the sums are themselves b/2-Lipschitz in the
logarithm. Within a component of the pairs a column is positive throughout or zero throughout. Whether the table keeps its
bounds is decided exactly, at the end. Derived.

Where bounds are so small that rounding decides, all inputs of a component get its mean row.
"""

from __future__ import annotations

import numpy as np

from ..axes import Ints
from ..errors import SpecificationError, Unsupported
from .bounds import Bounds
from .geometry import MAX_ENTRIES, Floats
from .spanner import closure
from .table import Table

ROOM = (1e-11, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.2, 0.3, 0.4, 0.5)
FLOOR = 2.0**-940  # where e^-b is less than doubles hold
FAINT = 1e-15  # a column with no more than that in a component is none of its own


def repaired(
    matrix: object, bounds: Bounds, columns: Ints | None = None, outputs: int | None = None
) -> Table:
    """The exact table nearest to a channel, by the module's repair, that keeps every pair of ``bounds``, exactly.

    Args:
        matrix: shape (inputs, columns), rows of sum 1 nearly.
        columns, outputs: which outputs its columns are, of how many; all of them unless told otherwise.

    Raises:
        SpecificationError: no table of probabilities, or pairs of inputs that it does not have.
        Unsupported: more than 4,096 inputs to repair.

    >>> pair = Bounds(np.array([0]), np.array([1]), np.array([1.0]))
    >>> table = repaired([[1 - 1e-9, 1e-9], [1, 0]], pair)
    >>> table.keeps(pair), round(float(table.rows(np.array([1]))[0, 1]), 13)
    (True, 3.679e-10)
    """
    table = Table.of(matrix, columns, outputs)
    if len(bounds) and max(int(bounds.first.max()), int(bounds.second.max())) >= table.n_inputs:
        raise SpecificationError("channel: bounds between values that the table does not have.")
    if table.keeps(bounds):
        return table
    if table.n_inputs**2 > MAX_ENTRIES:
        raise Unsupported("channel: repairs of up to 4,096 values; declare coarser cells.")
    lengths = closure(table.n_inputs, bounds.first, bounds.second, bounds.losses)
    told = table.entries[table.row_of]
    for room in ROOM:
        made = envelope(told, lengths * (1 - room))
        tried = Table.of(made / made.sum(axis=1, keepdims=True), table.columns, table.n_outputs)
        if tried.keeps(bounds):
            return tried
    mean = np.empty_like(told)
    for inputs in components(lengths):
        mean[inputs] = told[inputs].mean(axis=0)
    even = Table.of(mean, table.columns, table.n_outputs)
    if not even.keeps(bounds):
        raise Unsupported("channel: its bounds cannot be kept exactly.")
    return even


def envelope(matrix: Floats, lengths: Floats) -> Floats:
    """max over w' of K[w', z] e^{−lengths[w, w']}, shape (inputs, columns); positive throughout a component or nowhere in it.

    >>> envelope(np.array([[0.5, 0.0], [0.5, 0.25]]), np.log([[1, 2], [2, 1]])).tolist()
    [[0.5, 0.125], [0.5, 0.25]]
    """
    shares = np.exp(-lengths)
    found = np.zeros_like(matrix)
    for other in np.flatnonzero(matrix.any(axis=1)):
        np.maximum(found, shares[:, other, None] * matrix[other], out=found)
    for inputs in components(lengths):
        own = found[inputs]
        most = own.max(axis=0)
        # Not where it would leave a row with nothing.
        drop = (most <= FAINT) & (own[:, most > FAINT].sum(axis=1).min() > 0.5)
        found[inputs] = np.where(drop, 0.0, np.where(most > 0, np.maximum(own, FLOOR), 0.0))
    return found


def components(lengths: Floats) -> list[Ints]:
    """The inputs that ways join, in groups."""
    label = np.isfinite(lengths).argmax(axis=1)
    return [np.flatnonzero(label == one) for one in np.unique(label)]
