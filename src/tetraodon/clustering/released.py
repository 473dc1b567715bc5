"""What every way of k-means has in common, and what a release of clusters holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import noise
from ..answers import Answers, Halves, around
from ..axes import Ints
from ..domain import Domain
from ..loss import Loss
from ..mechanisms import charged
from ..mechanisms.coverage import COVERAGE
from ..mechanisms.variance import Floats
from ..phrases import between
from ..queries import Histogram
from ..sensitivity import Move, Neighbourhood, Sensitivity, Term, rows, stacked
from ..workload import Resolved, resolve
from .declared import Clustering
from .query import KMeans
from .space import Space

if TYPE_CHECKING:
    from ..table import Counts

DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Clusters(Answers):
    """Released clusters: ``values``, ``lower`` and ``upper`` are sizes, shape (1, k).

    Nothing here is computed from rows but the noisy centroids and sizes: no labels, no objective, no number of rounds.

    Attributes:
        centroids: shape (k, d), in the published units of the coordinates, in lexicographic order.
        names: names of the coordinates.
    """

    centroids: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, Any]:
        """The published table: coordinates of the centroids, then ``value``, ``lower``, ``upper``."""
        told = {n: np.round(self.centroids[:, i], DECIMALS) + 0.0 for i, n in enumerate(self.names)}
        sizes = {"value": self.values, "lower": self.lower, "upper": self.upper}
        return told | {n: np.round(v[0], DECIMALS) + 0.0 for n, v in sizes.items()}


@dataclass(frozen=True, eq=False)
class Way:
    """A priced way of k-means under one policy at one loss.

    Attributes:
        mechanism: the declaration it came from.
        query, room: what is asked, and the cells as points.
        loss: what was asked for.
        ratio: objective over that of plain k-means, expected on public synthetic data.
    """

    mechanism: Clustering
    query: KMeans
    room: Space
    loss: Loss
    ratio: float

    @property
    def is_gaussian(self) -> bool:
        return self.loss.is_gaussian

    @property
    def power(self) -> int:
        """Of the norm that prices: 1 for pure ε, 2 for ρ."""
        return self.loss.power

    @property
    def move(self) -> Move:
        """What the cost comes from."""
        raise AssertionError

    @property
    def spent(self) -> Loss:
        """Exact privacy cost: what was asked for, or nothing if everything is free."""
        return charged.spent(self.loss, self.move)

    @property
    def cost(self) -> Sensitivity:
        """The cost in ε or ρ, with an edge that attains it."""
        return charged.cost(self.loss, self.move)

    @property
    def expected_error(self) -> float:
        """Objective of a private run over that of plain k-means, on average on public synthetic data (``simulate``)."""
        return self.ratio

    @property
    def half_width(self) -> float:
        """95 % half-width of a cluster's size, in records."""
        raise AssertionError

    @property
    def domain(self) -> Domain:
        """The attributes that are read."""
        return self.room.domain

    @property
    def terms(self) -> tuple[Term, ...]:
        """Rows that move at least as much as what is observed with noise."""
        raise AssertionError

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly."""
        return ()

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """(scale or σ², number) of every block of noise that is reserved in advance."""
        return []

    def tabulate(self, counts: Counts) -> Any:
        """What the noise is added to. Private."""
        raise AssertionError

    def observe(self, table: Any, total: int | None, reserve: noise.Reserve) -> Any:
        """The noisy numbers."""
        raise AssertionError

    def finish(self, noisy: Any) -> Clusters:
        """Clusters from what was observed with noise, alone."""
        raise AssertionError

    def noise_spec(self) -> list[dict[str, Any]]:
        """What carries noise, in plain values."""
        return []

    def tables_spec(self) -> list[dict[str, Any]]:
        """No tables."""
        return []

    def disclosed(self) -> list[str]:
        """In words, what is published exactly because the policy does not hold it secret."""
        return []

    def admit(self, total: int) -> None:
        """Whether rows over ``total`` records stay exact in 64 bits; asked before charging."""

    def clusters(self, centroids: Floats, sizes: Floats, halves: Halves, total: float) -> Clusters:
        """Published clusters from centroids in steps of the space and noisy sizes with their half-widths.

        Args:
            total: the number of records, infinite where it is not public.
        """
        found = around(np.clip(sizes, 0.0, total)[None, :], sizes[None, :], halves, 0.0, total)
        return Clusters(
            found.values,
            found.lower,
            found.upper,
            span=found.span,
            ends=found.ends,
            centroids=self.room.published(centroids),
            names=self.room.names,
        )

    def dominating(self, cells: Term) -> tuple[Term, ...]:
        """Rows that move at least as much as what is observed: the complete histogram, at the loss that was asked for.

        None for ρ: moves of several records add up in the norm and not in its square, so that later policies with known
        counts go by distances instead.
        """
        if not self.move.value or self.is_gaussian:
            return ()
        return (Term(cells.resolved, cells.layers, self.loss.amount / Fraction(self.move.value)),)

    def quantile(self, scale: Fraction, coverage: Fraction = COVERAGE) -> float:
        """Half-width (95 % if not told otherwise) of one draw of noise."""
        return charged.quantile(self.loss, scale, coverage)


def every_cell(query: KMeans, whole: Domain, bins: Mapping[str, Any] | None = None) -> Resolved:
    """The complete histogram of the clustered attributes, or a coarser one, of the records that the query's filter keeps."""
    return resolve(Histogram(*query.attributes, where=kept(query), bins=bins), whole)


def kept(query: KMeans) -> dict[str, Any]:
    """The query's filter, as a ``Histogram`` takes it."""
    return {n: between(v, "kmeans.where") for n, v in query.to_spec().get("where", {}).items()}


def as_cells(told: Resolved, hood: Neighbourhood, power: int) -> tuple[Term, Move]:
    """The complete histogram as a term of factor 1, and its largest move.

    A release that costs any pair of values at most λ is dominated by it at factor λ/2, whatever the policy: without known
    counts for both kinds of noise, with them for pure ε (moves of several records add up).
    """
    term = Term(told, (rows.Blocks(told.n_positions),))
    return term, stacked([term], hood, power)


def places(room: Space, cells: Resolved, counts: Counts) -> tuple[Ints, Ints]:
    """Cells of the space that hold records which the filter keeps, and how many each holds; places alone. Private."""
    codes: list[Ints] = [np.zeros(0, dtype=np.int64)]
    numbers: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for code, number in counts.items():
        told = dict(zip(counts.domain.names, counts.domain.decode(code), strict=True))
        at = room.domain.encode([told[n] for n in room.domain.names])
        kept = room.places(at)[1] & (cells.place(code)[0] >= 0)
        codes.append(at[kept])
        numbers.append(number[kept])
    return np.concatenate(codes), np.concatenate(numbers)
