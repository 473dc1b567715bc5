"""Which way of k-means: the least objective expected on public synthetic data. Reads nothing and spends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf

import numpy as np

from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..loss import Loss
from ..sensitivity import Neighbourhood
from .blocks import blocks
from .costs import COARSE
from .declared import Clustering, FromHistogram, InRounds, WholeBlocks
from .histogram import HistogramWay, binned, histogram_way, ladder
from .query import KMeans
from .released import as_cells, every_cell
from .simulate import DRAWS, SEED, Sample, samples
from .space import Space, space
from .strategy import BlocksWay, RoundsWay

AnyWay = HistogramWay | RoundsWay | BlocksWay
ROUNDS = (1, 2, 3, 5, 8)
RADII = tuple(Fraction(r, 100) for r in (100, 50, 25, 15))
# The ladder of blocks is left once it got worse so often in a row.
WORSE = 3


@dataclass(frozen=True, eq=False)
class Choice:
    """What is compared for one query under one policy at one loss."""

    query: KMeans
    whole: Domain
    hood: Neighbourhood
    loss: Loss

    @cached_property
    def room(self) -> Space:
        """The cells as points."""
        return room_of(self.query, self.whole)

    @cached_property
    def samples(self) -> list[Sample]:
        return samples(self.room, self.query.k, self.query.records)

    def scored(self, way: AnyWay) -> float:
        """Mean ratio over the synthetic sets, with the same simulated randomness for every way."""
        told = [
            sample.ratio(way.simulated(sample, np.random.default_rng((SEED, i, draw))))
            for i, sample in enumerate(self.samples)
            for draw in range(DRAWS)
        ]
        return float(np.mean(told))

    def histograms(self, mechanism: FromHistogram) -> list[HistogramWay]:
        """The best histogram that the declaration allows, on the query as it is."""
        query = self.query
        plain = KMeans(*query.columns, k=query.k, iterations=query.iterations, records=query.records)
        best, worse = None, 0
        seen = set()
        for along in [mechanism.along] if mechanism.along is not None else ladder(self.room, query.k):
            told = binned(plain, self.room, along)
            if told in seen:
                continue
            seen.add(told)
            asked = FromHistogram(along, mechanism.counted)
            found = histogram_way(asked, plain, self.room, self.whole, self.hood, self.loss)
            if not found:
                break
            rated = [replace(w, ratio=self.scored(w)) for w in found]
            here = min(rated, key=lambda w: w.ratio)
            if best is None or here.ratio < best.ratio:
                best, worse = here, 0
            else:
                worse += 1
                if worse == WORSE:
                    break
        if best is None or not self.query.where:
            return [] if best is None else [best]
        final = histogram_way(best.mechanism, self.query, self.room, self.whole, self.hood, self.loss)
        return [replace(w, ratio=best.ratio) for w in final]

    def in_rounds(self, mechanism: InRounds) -> list[RoundsWay]:
        """The best number of rounds and radius that the declaration allows."""
        if not self.hood.is_single or (self.loss.is_gaussian and not self.hood.is_plain):
            return []
        cells = every_cell(self.query, self.whole)
        term, move = as_cells(cells, self.hood, self.loss.power)
        if not move.value:
            return []
        most = self.query.iterations
        counts = [mechanism.rounds] if mechanism.rounds else sorted({min(r, most) for r in (*ROUNDS, most)})
        radii = [mechanism.radius] if mechanism.radius else RADII
        best = None
        for share in radii:
            for count in counts:
                told = InRounds(count, share)
                way = RoundsWay(told, self.query, self.room, self.loss, inf, cells, move, term)
                if not way.rounds(COARSE).fits:
                    continue
                way = replace(way, ratio=self.scored(way))
                if best is None or way.ratio < best.ratio:
                    best = way
        return [] if best is None else [best]

    def by_blocks(self, mechanism: WholeBlocks) -> list[BlocksWay]:
        """Whole blocks, where the policy has some."""
        if not self.hood.is_plain or not self.hood.is_single:
            return []
        pieces = blocks(self.room, self.hood.graph.project(self.room.domain.names), self.whole)
        if pieces is None:
            return []
        counted, told = as_cells(every_cell(self.query, self.whole, pieces.bins), self.hood, 1)
        if told.value:  # a filter on what is secret: sizes may change
            return []
        cells = every_cell(self.query, self.whole)
        term, move = as_cells(cells, self.hood, self.loss.power)
        way = BlocksWay(mechanism, self.query, self.room, self.loss, inf, pieces, counted, cells, move, term)
        return [replace(way, ratio=self.scored(way))]

    def found(self, mechanism: Clustering) -> Iterator[AnyWay]:
        """What a declaration means here."""
        if isinstance(mechanism, FromHistogram):
            yield from self.histograms(mechanism)
        elif isinstance(mechanism, InRounds):
            yield from self.in_rounds(mechanism)
        else:
            yield from self.by_blocks(mechanism)


def room_of(query: KMeans, whole: Domain) -> Space:
    """The cells of a query's attributes as points.

    Raises:
        SpecificationError: an attribute that is not declared or has no distances, or the name of a column of the answers.
    """
    for name in query.used:
        whole.attribute(name, "kmeans")
    taken = sorted({"value", "lower", "upper"} & set(query.attributes))
    if taken:
        raise SpecificationError(
            f"kmeans: {taken[0]!r} is the name of a column of the answers; declare the attribute under another name "
            f"with column={taken[0]!r}."
        )
    return space(whole.select(*query.attributes))


@lru_cache(maxsize=64)
def candidates(query: KMeans, whole: Domain, hood: Neighbourhood, loss: Loss) -> tuple[AnyWay, ...]:
    """The best of each way that applies, best first. A release asks again what a plan asked, and is told the same.

    Args:
        whole: the policy's domain.
        hood: what neighbouring tables are.

    Raises:
        SpecificationError: an attribute that has no distances.
        Unsupported: no way is offered for so many cells.
    """
    choice = Choice(query, whole, hood, loss)
    found = [w for m in (FromHistogram(), InRounds(), WholeBlocks()) for w in choice.found(m)]
    if not found:
        raise Unsupported("kmeans: too many cells even in blocks; name fewer attributes.")
    return tuple(sorted(found, key=lambda w: w.ratio))


@lru_cache(maxsize=64)
def price(mechanism: object, query: KMeans, whole: Domain, hood: Neighbourhood, loss: Loss) -> AnyWay:
    """The way that a named mechanism means.

    Raises:
        SpecificationError: it does not apply here.
    """
    if not isinstance(mechanism, Clustering):
        raise SpecificationError(
            "mechanism: KMeans is released by kmeans-histogram, kmeans-rounds or kmeans-blocks."
        )
    found = list(Choice(query, whole, hood, loss).found(mechanism))
    if found:
        return min(found, key=lambda w: w.ratio)
    reasons = {
        FromHistogram: "more than 2^14 blocks; ask for fewer along a side",
        InRounds: "needs secret values, a loss whose noise fits 64-bit integers and, for rho, no constraints that "
        "an edge can break",
        WholeBlocks: "needs a policy that discloses the block of every record, and no constraints",
    }
    raise SpecificationError(f"mechanism {next(iter(mechanism.to_spec()))!r}: {reasons[type(mechanism)]}.")
