"""What neighbouring databases are: a secret graph, and what is publicly known about the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Bools
from ..graphs import Graph
from ..lattice import Grid
from ..people import ONE_RECORD, People
from ..quotient import label_change
from ..workload import Resolved
from .classes import Classes


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Neighbours of a table under a policy (He, Machanavajjhala, Ding 2014, definition 4.1, with condition 3a repaired).

    Without constraints: one record moves along one edge of the graph; of a person with several, each that is kept does. With
    constraints: a minimal set of records changes so that all known counts stay as they are, at least one record along an edge.

    Attributes:
        graph: the edges along which a record moves, over the whole domain.
        classes: the values that known counts cannot tell apart; None without constraints.
        records: the number of records, where it is known before the data are read.
        rows_vanish: whether a record and nothing are joined too.
        people: how many records of what weight change together.
        exempt: (attribute, cells): records that have one of these cells never change.
    """

    graph: Graph
    classes: Classes | None = None
    records: int | None = None
    rows_vanish: bool = False
    people: People = ONE_RECORD
    exempt: tuple[tuple[str, Bools], ...] = ()

    @cached_property
    def is_plain(self) -> bool:
        """Whether no record ever has to make up for another: no constraint, or none that an edge of the graph can break."""
        return self.classes is None or not crosses(self.graph, self.classes)

    @property
    def vanishing(self) -> bool:
        """Whether what a record counts may become nothing, so that no total is public: it may be gone, or lose its weight."""
        return self.rows_vanish or self.people.weights_change

    @property
    def is_single(self) -> bool:
        """Whether what changes is one record of weight 1, and the number of records is public."""
        return self.people.is_plain and not self.vanishing

    def spares(self, resolved: Resolved) -> bool:
        """Whether a question sees nobody but the exempt. Under known counts the exempt are priced like everybody, since they
        may have to make up for others."""
        if self.classes is not None:
            return False
        every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
        seen = dict(resolved.filters) | {g.name: g.labels >= 0 for g in every if g.labels is not None}
        return any(name in seen and not bool((seen[name] & ~cells).any()) for name, cells in self.exempt)


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
