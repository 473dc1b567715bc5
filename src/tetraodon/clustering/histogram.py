"""k-means from one noisy histogram: everything after the noise is post-processing, any number of rounds.

The blocks of the histogram are a public choice. Noisy counts are projected on what is possible (not negative, adding up to
the number of records where that is public), and Lloyd's algorithm runs on the middles of the blocks from k-means++ starts.
The starts are drawn from a generator with a fixed, published seed: its input is public, so there is nothing to hide, and the
same noisy counts always give the same centroids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import noise
from ..answers import answers
from ..attributes import Categorical, Point
from ..axes import Ints
from ..disclosure import exact_rows
from ..domain import Domain
from ..exact import show
from ..loss import Loss
from ..mechanisms import Identity, Ordered
from ..mechanisms.parts import Noisy
from ..mechanisms.select import price
from ..mechanisms.strategy import Strategy
from ..mechanisms.variance import Floats
from ..queries import Histogram
from ..sensitivity import Move, Neighbourhood, Term
from ..workload import Resolved, resolve
from .declared import FromHistogram
from .grid import Grid, grid
from .lloyd import STARTS, cluster, on_simplex, squares
from .query import KMeans
from .released import Clusters, Way, kept
from .simulate import Sample, drawn
from .space import Space

if TYPE_CHECKING:
    from ..table import Counts

SEED = 20150831
MAX_BLOCKS = 2**14
FEW = 8


@dataclass(frozen=True, eq=False)
class HistogramWay(Way):
    """k-means from a histogram.

    Attributes:
        base: the priced histogram.
        boxes: its blocks.
    """

    base: Strategy
    boxes: Grid
    mechanism: FromHistogram

    @cached_property
    def strategy(self) -> Strategy:
        """The histogram at the loss that was asked for."""
        return replace(self.base, loss=self.loss)

    @property
    def resolved(self) -> Resolved:
        """The layout of the histogram, under the query's own name."""
        return replace(self.base.resolved, query=self.query)

    @property
    def domain(self) -> Domain:
        """The attributes that are read."""
        return self.base.resolved.domain

    @property
    def move(self) -> Move:
        return self.strategy.move

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is observed with noise."""
        return self.strategy.terms

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly."""
        return self.strategy.exact_terms

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        return self.strategy.draws

    @property
    def n_exact(self) -> int:
        """Counts per group that are disclosed exactly."""
        return self.strategy.n_exact

    @property
    def half_width(self) -> float:
        """95 % half-width of the size of a cluster that has an equal share of the blocks, in records."""
        share = int(self.boxes.inside.sum()) / self.query.k
        variance = float(self.strategy.weights.cell_variance.mean()) * max(share, 1.0)
        return float(self.strategy.half_widths(np.array([variance]))[0])

    def admit(self, total: int) -> None:
        self.strategy.admit(total)

    def tabulate(self, counts: Counts) -> Ints:
        """The true table of counts. Private."""
        return self.base.resolved.tabulate(counts)

    def observe(self, table: Ints, total: int | None, reserve: noise.Reserve) -> Noisy:
        """The noisy histogram."""
        return self.strategy.observe(table, total, reserve)

    def finish(self, noisy: Noisy) -> Clusters:
        """Clusters from the noisy histogram alone."""
        linear = self.strategy.estimate(noisy)
        centroids = self.centroids(noisy, linear)
        points, inside = self.boxes.middles, self.boxes.inside
        label = squares(points, centroids).argmin(axis=1)
        sizes = np.bincount(label[inside], linear.ravel()[inside], self.query.k).astype(np.float64)
        variance = self._variance(np.where(inside, label, -1))
        halves = partial(self.strategy.half_widths, variance, 0.0)
        return self.clusters(centroids, sizes, halves, noisy.most)

    def centroids(self, noisy: Noisy, linear: Floats, starts: int = STARTS) -> Floats:
        """Shape (k, d), in steps of the space."""
        points, inside = self.boxes.middles, self.boxes.inside
        if self.base.forest is not None and self.base.forest.n_blocks > 1:
            weights = answers(self.strategy, noisy).values.ravel()
        else:
            weights = linear.ravel()
        weights = np.where(inside, weights, 0.0)
        public = inside.all() and not self.base.resolved.is_filtered and noisy.total is not None
        total = noisy.most if public else max(float(weights.sum()), 0.0)
        weights[inside] = on_simplex(weights[inside], total)
        if not weights.any():
            weights = inside.astype(np.float64)
        return cluster(points, weights, self.query.k, np.random.default_rng(SEED), starts)

    def _variance(self, label: Ints) -> Floats:
        """Variance of the noise in the sum of the blocks of every cluster, shape (k,)."""
        resolved, k = self.base.resolved, self.query.k
        if resolved.n_groups == 1:
            each = (label == np.arange(k)[:, None]).astype(np.float64)
            return np.asarray(self.strategy.weights.rows_variance(each))
        held = np.bincount(label[label >= 0], minlength=k).astype(np.float64)
        return np.asarray(held * float(self.strategy.weights.cell_variance.max()))

    def simulated(self, sample: Sample, rng: np.random.Generator) -> Floats:
        """Centroids of a run on synthetic data with simulated noise."""
        resolved, strategy = self.base.resolved, self.strategy
        group, position = resolved.place(sample.codes)
        table = np.zeros((resolved.n_groups, resolved.n_positions), dtype=np.int64)
        np.add.at(table, (group, position), sample.counts)
        values = []
        for part, true in zip(strategy.parts, strategy._apply(table), strict=True):
            scale = strategy.scale(part)
            if scale is None:
                values.append(np.where(part.exact, true, 0).astype(np.float64))
                continue
            [noise_] = drawn(rng, self.loss.unit, [(scale, true.size)])
            values.append(np.where(part.exact, true, true + noise_.reshape(true.shape)).astype(np.float64))
        noisy = Noisy(tuple(values), int(sample.counts.sum()))
        return self.centroids(noisy, strategy.estimate(noisy), FEW)

    def noise_spec(self) -> list[dict[str, Any]]:
        """The rows of the histogram, their scale (σ² for Gaussian noise) and their number."""
        kinds = {"chain": "cumulative counts of blocks"}
        return [
            {
                "rows": kinds.get(p.name, "counts of blocks"),
                "scale": show(s),
                "number": self.base.resolved.n_groups * int((~p.exact).sum()),
            }
            for p in self.strategy.parts
            if (s := self.strategy.scale(p)) is not None
        ]

    def disclosed(self) -> list[str]:
        """In words, what is published exactly because the policy does not hold it secret."""
        return exact_rows(self.strategy)


def binned(query: KMeans, room: Space, along: int) -> Histogram:
    """The histogram in blocks as nearly cubes as cells allow, ``along`` of them along the longest side of the box."""
    gaps = [int(e) / max(n - 1, 1) for e, n in zip(room.extents.tolist(), room.shape, strict=True)]
    longest = max(e + g for e, g in zip(room.extents.tolist(), gaps, strict=True))
    bins: dict[str, Any] = {}
    for number, (name, attribute) in enumerate(room.domain.items()):
        gap = min(g for g, a in zip(gaps, room.of, strict=True) if a == number)
        cells = min(max(1, round(longest / along / gap)) if gap else 1, max(room.shape))
        assert not isinstance(attribute, Categorical)
        if cells > 1:
            bins[name] = cells if isinstance(attribute, Point) else cells * attribute.width
    return Histogram(*query.attributes, where=kept(query), bins=bins)


def histogram_way(
    mechanism: FromHistogram, query: KMeans, room: Space, whole: Domain, hood: Neighbourhood, loss: Loss
) -> list[HistogramWay]:
    """The histogram of a stated number of blocks, counted in every way that applies (or as stated); none if too large."""
    assert mechanism.along is not None
    resolved = resolve(binned(query, room, mechanism.along), whole)
    if resolved.n_groups * resolved.n_positions > MAX_BLOCKS:
        return []
    single = resolved.n_groups == 1 and resolved.axis is not None and resolved.axis.is_run
    ways: Sequence[str] = ("identity", "ordered") if single and resolved.n_positions > 1 else ("identity",)
    boxes, found = grid(room, resolved), []
    for way in ways:
        if mechanism.counted in (None, way):
            base = price(Identity() if way == "identity" else Ordered(), resolved, hood, loss)
            told = FromHistogram(mechanism.along, way)
            found.append(HistogramWay(told, query, room, loss, float("nan"), base, boxes))
    return found


def ladder(room: Space, k: int) -> list[int]:
    """Numbers of blocks along the longest side that are worth a look, coarse to fine: from about 2k blocks on."""
    steps = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096]
    cells, sides = max(room.shape), room.extents / max(int(room.extents.max()), 1)
    told = [n for n in steps if n < cells and np.maximum(n * sides, 1).prod() >= 2 * k]
    return told + ([cells] if prod(room.shape) <= MAX_BLOCKS or not told else [])
