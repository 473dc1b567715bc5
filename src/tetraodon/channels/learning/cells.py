"""A learned channel on declared cells, where it is one channel among the others: drawn exactly, measured, saved and released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...domain import Domain
from ...errors import SpecificationError, Unsupported
from ..channel import Channel
from ..geometry import MAX_ENTRIES, Geometry
from ..table import Table
from .samples import apart

if TYPE_CHECKING:
    from ..learned import LearnedChannel

CHUNK = 1 << 22


def on_cells(learned: LearnedChannel, domain: Domain) -> Channel:
    """From each cell's middle to the cells that hold the output points; special cells come out as they are.

    Raises:
        SpecificationError: a domain of other dimensions than the learned values.
        Unsupported: more than 2^24 probabilities.
    """
    place = Geometry(domain)
    axes = learned.points.shape[1]
    middles = place.points
    if middles.ndim != 2 or middles.shape[1] != axes:
        raise SpecificationError(
            f"channel: it was learned from values of {axes} dimensions, and this domain's cells have {middles.shape[-1]}."
        )
    ordinary = np.flatnonzero(place.ordinary)
    special = np.flatnonzero(~place.ordinary)
    home = np.empty(len(learned.points), dtype=np.int64)
    step = max(1, CHUNK // max(len(ordinary), 1))
    for start in range(0, len(home), step):
        part = slice(start, start + step)
        home[part] = ordinary[apart(learned.points[part], middles[ordinary], "euclidean").argmin(axis=1)]
    columns, at = np.unique(np.concatenate([home, special]), return_inverse=True)
    if domain.size * len(columns) > MAX_ENTRIES:
        raise Unsupported(
            "channel: more than 2^24 probabilities; learn fewer output points, or declare coarser cells."
        )
    matrix = np.zeros((domain.size, len(columns)))
    law = learned.law(middles[ordinary])
    for point in range(len(home)):
        matrix[ordinary, at[point]] += law[:, point]
    matrix[special, at[len(home) :]] = 1.0
    table = Table.of(matrix, columns=columns.astype(np.int64), n_outputs=domain.size)
    return Channel(domain, table, name="learned", source=learned.source, settings=dict(learned.settings))
