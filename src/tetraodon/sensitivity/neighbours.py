"""What neighbouring databases are: a secret graph, and what is publicly known about the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..graphs import Graph
from ..lattice import Grid
from ..quotient import label_change
from .classes import Classes


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Neighbours of a table under a policy (He, Machanavajjhala, Ding 2014, definition 4.1, with condition 3a repaired).

    Without constraints: one record moves along one edge of the graph. With constraints: a minimal set of records changes so
    that all known counts stay as they are, at least one record along an edge.

    Attributes:
        graph: the secret graph over the whole domain.
        classes: the values that known counts cannot tell apart; None without constraints.
        records: the number of records, where it is known before the data are read.
    """

    graph: Graph
    classes: Classes | None = None
    records: int | None = None

    @cached_property
    def is_plain(self) -> bool:
        """Whether no record ever has to make up for another: no constraint, or none that an edge of the graph can break."""
        return self.classes is None or not crosses(self.graph, self.classes)


def crosses(graph: Graph, classes: Classes) -> bool:
    """Whether some edge joins two classes. An edge that moves several attributes does so only if one that moves a single
    attribute does, since a graph that has the one has the others on its way."""
    small = graph.project(classes.domain.names)
    if small.kind == "flat":
        return any(bool((classes.labels[a] != classes.labels[b]).any()) for a, b in small.edges())
    cube = classes.labels.reshape(classes.domain.shape)
    for at, name in enumerate(classes.domain.names):
        axis = small.axis(name)
        if not axis.has_edges:
            continue
        patterns = np.unique(np.moveaxis(cube, at, -1).reshape(-1, classes.domain.shape[at]), axis=0)
        if axis.is_interval and all(isinstance(s, bool) for s in axis.stars):
            # A part of an edge along the order is an edge, so if any crosses, one between neighbouring cells does.
            cells = np.arange(1, axis.base)
            near = cells[axis.first[1:] < cells]
            if len(near) and bool((patterns[:, near] != patterns[:, near - 1]).any()):
                return True
            for star, told in enumerate(axis.stars):
                partners = np.flatnonzero(axis.star_mask(star)) if told else near[:0]
                if bool((patterns[:, partners] != patterns[:, [axis.base + star]]).any()):
                    return True
        elif isinstance(axis, Grid):
            if any(label_change(axis, pattern)[0] for pattern in patterns):
                return True
        elif any(bool((patterns[:, a] != patterns[:, b]).any()) for a, b in axis.edges()):
            return True
    return False
