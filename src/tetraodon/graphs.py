"""Secret graphs over a declared domain, and, for those who look for them here, the declarations that they are made of.

An edge (x, y) says that "this record is x" and "this record is y" must not be told apart, up to e^ε. The public classes
(``Full`` … ``Nothing``) are declarations; ``binding.bind`` turns one into a ``Graph`` over a ``Domain``.

Special cells: a ``missing="secret"`` cell is joined to every cell of its attribute, a ``missing="public"`` one to none.
An ``other`` cell is one more value of its attribute; it has no place in an order, so under ``Within`` it is joined to
every value, as it is under a ``Partition`` that does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .axes import Axis, Bools, Ints
from .balls import Ball
from .domain import Domain
from .errors import Unsupported
from .secrets import (
    AttributeSecrets,
    AttributeWise,
    Edges,
    Full,
    Nothing,
    Partition,
    Secrets,
    Within,
)

__all__ = [
    "AttributeSecrets",
    "AttributeWise",
    "Edges",
    "Full",
    "Graph",
    "Nothing",
    "Partition",
    "Secrets",
    "Within",
]

LISTABLE = 2**22


@dataclass(frozen=True, eq=False)
class Graph:
    """A secret graph over a domain.

    Attributes:
        domain: what the cells are.
        kind: "cartesian" (an edge moves one attribute along its axis), "strong" (an edge moves any attributes, each
            along its axis), "ball" (an edge moves any attributes within one common distance) or "flat" (one axis over
            the cells of the whole domain). Except for "flat", an edge that is cut down to some of its attributes is an
            edge, so that the largest move of one attribute is found on its own axis.
        axes: one ``Axis`` per attribute: the edges that change it alone; a single one for "flat".
        ball: the common distance, for "ball".
    """

    domain: Domain
    kind: str
    axes: tuple[Axis, ...]
    ball: Ball | None = None

    def project(self, names: Sequence[str]) -> Graph:
        """The graph that is left when only some attributes are looked at: x_S – y_S for every edge x – y, x_S ≠ y_S."""
        small = self.domain.select(*names)
        if small.names == self.domain.names:
            return self
        if self.kind != "flat":
            kept = tuple(a for n, a in zip(self.domain.names, self.axes, strict=True) if n in small)
            if self.ball is None:
                return Graph(small, self.kind, kept)
            sides = tuple(s for n, s in zip(self.domain.names, self.ball.sides, strict=True) if n in small)
            return Graph(small, self.kind, kept, Ball(small.shape, sides, self.ball.budget))
        ends = self.axes[0].all_edges()
        at = [self.domain.names.index(n) for n in small.names]
        a, b = (small.encode([self.domain.decode(ends[:, k])[i] for i in at]) for k in (0, 1))
        return Graph(small, "flat", (Axis(small.size, pairs=_canonical(a, b)),))

    def axis(self, name: str) -> Axis:
        """The graph of one attribute, for graphs that have one per attribute."""
        return self.axes[self.domain.names.index(name)]

    @property
    def has_edges(self) -> bool:
        return any(a.has_edges for a in self.axes)

    @cached_property
    def unprotected(self) -> tuple[str, ...]:
        """Attributes on which no edge differs: their values are no secret at all."""
        if self.kind != "flat":
            return tuple(n for n, a in zip(self.domain.names, self.axes, strict=True) if not a.has_edges)
        return tuple(n for n in self.domain.names if not self.project([n]).has_edges)

    def joined(self, a: Any, b: Any) -> Bools:
        """Whether whole-domain cells a and b form an edge, elementwise."""
        if self.kind == "flat":
            return self.axes[0].joined(a, b)
        if self.ball is not None:
            return self.ball.joined(self.domain.decode(a), self.domain.decode(b))
        moved: Any = 0
        allowed: Any = True
        for axis, x, y in zip(self.axes, self.domain.decode(a), self.domain.decode(b), strict=True):
            differ = x != y
            moved = moved + differ
            allowed = allowed & (~differ | axis.joined(x, y))
        return np.asarray(allowed & ((moved == 1) if self.kind == "cartesian" else (moved > 0)), dtype=bool)

    def distance(self, a: int, b: int) -> int | None:
        """Hops from cell a to cell b, None where there is no path: changing a record from a to b costs at most hops·ε.

        Sum over attributes for "cartesian", maximum for "strong" (every coordinate can move at each hop); for "ball" the
        least number of steps within the distance that add up (closed form or dynamic programme).
        """
        if self.kind == "flat":
            return self.axes[0].distance(a, b)
        if self.ball is not None:
            ends = [[int(c) for c in self.domain.decode(cell)] for cell in (a, b)]
            return self.ball.distance(*ends)
        steps = [
            axis.distance(int(x), int(y))
            for axis, x, y in zip(self.axes, self.domain.decode(a), self.domain.decode(b), strict=True)
        ]
        known = [s for s in steps if s is not None]
        if len(known) < len(steps):
            return None
        return sum(known) if self.kind == "cartesian" else max(known)

    def edges(self, chunk: int = 1_000_000) -> Iterator[tuple[Ints, Ints]]:
        """Every edge once, as arrays of whole-domain cells; in chunks."""
        if self.kind == "flat":
            yield from self.axes[0].edges(chunk)
        elif self.ball is not None:
            yield from self.ball.edges(chunk)
        elif self.kind == "cartesian":
            strides = _strides(self.domain.shape)
            for axis, stride, size in zip(self.axes, strides, self.domain.shape, strict=True):
                outer, inner = self.domain.size // (stride * size), stride
                per = max(1, chunk // (outer * inner))
                rest = (
                    np.arange(outer, dtype=np.int64)[:, None] * (stride * size)
                    + np.arange(inner, dtype=np.int64)[None, :]
                ).ravel()
                for a, b in axis.edges(per):
                    yield (
                        (a[:, None] * stride + rest[None, :]).ravel(),
                        (b[:, None] * stride + rest[None, :]).ravel(),
                    )
        else:
            if self.domain.size > LISTABLE:
                raise Unsupported("this secret graph has too many edges to list.")
            cells = np.arange(self.domain.size, dtype=np.int64)
            for x in range(self.domain.size):
                later = cells[x + 1 :]
                partners = later[self.joined(np.int64(x), later)]
                if len(partners):
                    yield np.full(len(partners), x, dtype=np.int64), partners

    @cached_property
    def n_components(self) -> int:
        """Number of connected components; which component a record lies in is disclosed exactly."""
        count = 1
        for axis in self.axes:
            count *= axis.n_components
        return count

    def same_component(self, a: int, b: int) -> bool:
        """Whether a path joins two cells."""
        return self.distance(a, b) is not None


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides


def _canonical(a: Ints, b: Ints) -> Ints:
    low, high = np.minimum(a, b), np.maximum(a, b)
    keep = low != high
    if not keep.any():
        return np.zeros((0, 2), dtype=np.int64)
    return np.unique(np.stack([low[keep], high[keep]], axis=1), axis=0)
