"""Which secrets an adversary lays bare who knows where a person cannot be, and which edges protect them again.

A policy graph over places says which neighbours must not be told apart. Whoever knows that the place is one of a *feasible set*
(from a map, an earlier release, how far anyone walks in an hour) looks at the subgraph that the feasible cells induce. A cell
without a neighbour there may be disclosed exactly: the policy promises nothing between it and any other feasible cell, except
along ways through places that are known to be impossible, at ε for each of their steps. The repair joins each such cell to
the nearest feasible one (Cao, Xiao, Takagi, Xiong, Yoshikawa, Li, Xiong, Jin: PGLP, ESORICS 2020; chosen greedily, derived).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..axes import Axis, Ints
from ..binding import bind
from ..domain import Domain
from ..errors import PolicyError, SpecificationError
from ..graphs import Graph
from ..metrics import Metric
from ..secrets import Secrets
from .bounds import edges_of
from .geometry import Geometry


@dataclass(frozen=True, eq=False)
class Exposure:
    """What a feasible set does to a secret graph.

    Attributes:
        graph: as declared, or as repaired.
        feasible: the feasible cells, ascending.
        exposed: those of them without a feasible neighbour, though some other cell is feasible.
        inner: those of them that had no neighbour at all, whatever is feasible.
        added: edges that a repair added, shape (edges, 2).
        lengths: how long the added edges are, by the metric they were chosen by.
        groups: into how many connected parts the feasible cells fall; which one a place lies in may be disclosed.
    """

    graph: Graph
    feasible: Ints
    exposed: Ints
    inner: Ints
    added: Ints
    lengths: tuple[float, ...]
    groups: int

    def repaired(self, metric: Metric | None = None) -> Exposure:
        """The graph with the nearest feasible neighbour for every exposed cell, the cheapest edges first; a cell that such an
        edge has reached needs none of its own.

        Args:
            metric: what near means: ``L2`` unless told otherwise.

        Raises:
            PolicyError: only one cell is feasible, so that there is nothing to hide it among.

        >>> from ..attributes import Integer
        >>> from ..secrets import Within
        >>> found = exposure(Domain(x=Integer(0, 9)), Within(1), feasible=[0, 1, 4, 6])
        >>> found.exposed.tolist(), found.repaired().added.tolist()
        ([4, 6], [[4, 6]])
        """
        if len(self.feasible) == 1:
            raise PolicyError(
                "exposure: one cell alone is feasible; no edge hides it. Widen the feasible set, or release nothing."
            )
        place = Geometry(self.graph.domain)
        apart = place.between(metric, self.exposed[:, None], self.feasible[None, :])
        apart[self.exposed[:, None] == self.feasible[None, :]] = np.inf
        nearest = apart.argmin(axis=1) if len(apart) else np.zeros(0, dtype=np.int64)
        length = apart[np.arange(len(apart)), nearest]
        open_cells, added, lengths = set(self.exposed.tolist()), [], []
        for k in np.argsort(length, kind="stable").tolist():
            a, b = int(self.exposed[k]), int(self.feasible[nearest[k]])
            if a in open_cells:
                open_cells -= {a, b}
                added.append(sorted((a, b)))
                lengths.append(float(length[k]))
        new = np.array(added, dtype=np.int64).reshape(-1, 2)
        old = np.stack(edges_of(self.graph), axis=1)
        axis = Axis(
            self.graph.domain.size, pairs=np.unique(np.concatenate([np.sort(old, axis=1), new]), axis=0)
        )
        whole = Graph(self.graph.domain, "flat", (axis,))
        return _exposure(whole, self.feasible, new, tuple(lengths))

    def __str__(self) -> str:
        """In plain words; no cell is named.

        >>> from ..attributes import Integer
        >>> from ..secrets import Within
        >>> print(exposure(Domain(x=Integer(0, 9)), Within(1), feasible=[0, 1, 4]))
        To someone who knows that the value is one of 3 cells, 1 of them has no neighbour left and may be disclosed exactly.
        """
        n, bare = len(self.feasible), len(self.exposed)
        known = f"To someone who knows that the value is one of {_cells(n)}, "
        if n == 1:
            return known + "nothing is left to hide."
        if bare:
            verb = "has" if bare == 1 else "have"
            text = f"{known}{bare} of them {verb} no neighbour left and may be disclosed exactly."
        else:
            text = known + "every one of them still has a neighbour that it is not told apart from."
        if self.groups - bare > 1:
            text += f" The others fall into {self.groups - bare} groups; which group holds the value may be disclosed."
        if len(self.added):
            edges = "1 edge was" if len(self.added) == 1 else f"{len(self.added)} edges were"
            unit = Geometry(self.graph.domain).unit
            longest = f"{max(self.lengths):.4g}" + (f" {unit}" if unit else "")
            text += f" {edges} added, the longest of {longest}."
        return text


def exposure(domain: Domain, secrets: Secrets | Graph, feasible: object) -> Exposure:
    """Looks at a secret graph with the eyes of someone who knows a feasible set.

    Args:
        feasible: cells; or one truth value for each cell.

    Raises:
        SpecificationError: no cell, or one that the domain does not have.

    >>> from ..attributes import Point
    >>> from ..secrets import Within
    >>> plane = Domain(at=Point("x", "y", box=((0, 3), (0, 3)), cell=1, metric="planar"))
    >>> exposure(plane, Within(1), [0, 1, 8]).exposed.tolist()
    [8]
    """
    graph = secrets if isinstance(secrets, Graph) else bind(secrets, domain)
    if graph.domain != domain:
        raise SpecificationError("exposure: the graph is one over another domain.")
    told = np.asarray(feasible)
    if told.dtype == np.bool_ and told.size == domain.size:
        told = np.flatnonzero(told)
    elif told.dtype.kind not in "iu":
        raise SpecificationError("exposure.feasible: cells, or one truth value for each cell.")
    cells = np.unique(told).astype(np.int64)
    if not len(cells) or cells[0] < 0 or cells[-1] >= domain.size:
        raise SpecificationError(
            f"exposure.feasible: at least one of the {domain.size} cells, and no others."
        )
    return _exposure(graph, cells, np.zeros((0, 2), dtype=np.int64), ())


def _exposure(graph: Graph, feasible: Ints, added: Ints, lengths: tuple[float, ...]) -> Exposure:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = graph.domain.size
    a, b = edges_of(graph)
    degree = np.bincount(a, minlength=size) + np.bincount(b, minlength=size)
    inside = np.zeros(size, dtype=bool)
    inside[feasible] = True
    both = inside[a] & inside[b]
    place = np.searchsorted(feasible, a[both]), np.searchsorted(feasible, b[both])
    left = np.bincount(np.concatenate(place), minlength=len(feasible))
    ends = tuple(p.astype(np.int32) for p in place)
    part = coo_array((np.ones(len(ends[0])), ends), shape=(len(feasible), len(feasible)))
    groups = int(connected_components(part.tocsr(), directed=False)[0])
    bare = feasible[left == 0]
    exposed = bare if len(feasible) > 1 else feasible
    return Exposure(graph, feasible, exposed, bare[degree[bare] == 0], added, lengths, groups)


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"
