"""Priced ways of k-means in rounds and over whole blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import noise
from ..axes import Ints
from ..disclosure import filter_text
from ..domain import Domain
from ..errors import Unsupported
from ..exact import show
from ..loss import Loss
from ..mechanisms import charged
from ..mechanisms.variance import Floats
from ..sensitivity import Move, Term
from ..workload import Resolved
from .blocks import Blocks
from .costs import COARSE, FINE, Assignment
from .declared import InRounds, WholeBlocks
from .iterative import LARGEST, Found, Rounds, iterate, scales, start
from .lloyd import cluster, in_order, squares
from .released import Clusters, Way, places
from .simulate import Sample, drawn

if TYPE_CHECKING:
    from ..table import Counts

SEED = 20150831


@dataclass(frozen=True, eq=False)
class RoundsWay(Way):
    """k-means in rounds.

    The cost of a round is bounded over all pairs of cells, so the whole release costs any pair at most the loss, and twice
    the complete histogram at half the loss says so under every policy.

    Attributes:
        cells: the complete histogram of the records that the filter keeps.
        cell_move: its largest move between neighbours.
    """

    cells: Resolved
    cell_move: Move
    cell_term: Term
    mechanism: InRounds

    @property
    def resolved(self) -> Resolved:
        return self.cells

    @property
    def domain(self) -> Domain:
        """The attributes that are read."""
        return self.cells.domain

    @property
    def move(self) -> Move:
        return self.cell_move

    @property
    def terms(self) -> tuple[Term, ...]:
        """Rows that move at least as much as what is observed; none for ρ (``dominating``)."""
        return self.dominating(self.cell_term)

    def rounds(self, blocks: int) -> Rounds:
        """What is fixed in advance: the loss is per pair of cells, of which a neighbour may move several."""
        count, share = self.mechanism.rounds, self.mechanism.radius
        assert count is not None and share is not None
        radius = np.array([max(1, ceil(share * e)) for e in self.room.extents.tolist()], dtype=np.int64)
        each = self.loss.amount * 2 / Fraction(self.move.value)
        return Rounds(self.query.k, count, radius, Loss(self.loss.unit, each), blocks, self.cells.is_filtered)

    @property
    def n_exact(self) -> int:
        return 0

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """None in advance: scales follow from released centroids, and every round reserves its own noise."""
        return []

    @cached_property
    def _first(self) -> tuple[Fraction, Fraction]:
        """Scales of sizes and of sums in the first round."""
        rounds, centroids = self.rounds(FINE), start(self.room, self.query.k)
        return scales(rounds, self.room, Assignment(centroids, centroids, rounds.radius))

    @property
    def half_width(self) -> float:
        """95 % half-width of a size in the first round, in records."""
        return self.quantile(self._first[0])

    def admit(self, total: int) -> None:
        largest = max(self.rounds(FINE).radius.tolist())
        if largest * max(total, 1) >= LARGEST:
            raise Unsupported("kmeans: a sum could exceed 2^61 in steps of the cells; declare coarser cells.")

    def tabulate(self, counts: Counts) -> tuple[Ints, Ints]:
        """Places that hold records, and how many. Private."""
        codes, numbers = places(self.room, self.cells, counts)
        return self.room.places(codes)[0], numbers

    def observe(
        self, table: tuple[Ints, Ints], total: int | None, reserve: noise.Reserve
    ) -> tuple[Found, int]:
        """The rounds. Each draws all of its noise before it looks at the counts."""
        assert total is not None  # these ways are for tables whose number of records is public
        self.admit(total)

        def draw(draws: Sequence[tuple[Fraction, int]]) -> list[Ints]:
            with charged.reserved(self.loss, draws) as held:
                return [charged.taken(held, self.loss, scale, size) for scale, size in draws]

        return iterate(self.rounds(FINE), self.room, *table, draw, self._deviation), total

    def _deviation(self, scale: Fraction) -> float:
        return float(scale) ** 0.5 if self.is_gaussian else 2**0.5 * float(scale)

    def finish(self, noisy: tuple[Found, int]) -> Clusters:
        """Clusters from what the rounds released."""
        found, total = noisy
        scale = found.scale

        def halves(coverage: Fraction) -> Floats:
            return np.array(0.0 if scale is None else self.quantile(scale, coverage))

        return self.clusters(found.centroids, found.sizes, halves, total)

    def simulated(self, sample: Sample, rng: np.random.Generator) -> Floats:
        """Centroids of a run on synthetic data with simulated noise."""
        rounds = self.rounds(COARSE)
        return iterate(
            rounds,
            self.room,
            sample.points,
            sample.counts,
            lambda draws: drawn(rng, self.loss.unit, draws),
            self._deviation,
        ).centroids

    def noise_spec(self) -> list[dict[str, Any]]:
        """What carries noise in the first round, with its scale (σ² for Gaussian noise); later scales follow from what was
        released before."""
        told = zip(("sizes", "sums"), self._first, (1, len(self.room.lines)), strict=True)
        return [
            {
                "rows": f"{name} of the first of {self.mechanism.rounds} rounds",
                "scale": show(s),
                "number": self.query.k * n,
            }
            for name, s, n in told
        ]


@dataclass(frozen=True, eq=False)
class BlocksWay(Way):
    """k-means over whole blocks, for policies that disclose in which block a record lies.

        How many records a block holds changes along no edge: it is observed exactly. The clusters of blocks follow from these
        numbers, each block by its middle, and so do exact sizes. What is left is Σ (x − middle of its block) for every cluster,
        which an edge moves by at most the block's sides, and in one cluster alone, since no edge changes the
        label: one draw of noise per coordinate, once. Counted in half steps, residuals are whole, and any pair of cells moves the
    sums by at most twice the sides of a block.

        Attributes:
            blocks: the blocks.
            cell_term, cell_move: the complete histogram and its largest move; 0 where nothing is secret.
            cells: its layout.
    """

    blocks: Blocks
    counted: Term
    cells: Resolved
    cell_move: Move
    cell_term: Term
    mechanism: WholeBlocks

    @property
    def resolved(self) -> Resolved:
        return self.cells

    @property
    def domain(self) -> Domain:
        """The attributes that are read."""
        return self.cells.domain

    @property
    def scale(self) -> Fraction | None:
        """Laplace scale, or σ², of the sums, which are in half steps; None where no edge moves them."""
        moved = self.blocks.moved(self.power)
        if not moved:
            return None
        return charged.scale(self.loss, moved)

    @property
    def move(self) -> Move:
        return self.cell_move if self.scale is not None else Move(0, None)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Rows that move at least as much as the noisy sums; none for ρ (``dominating``)."""
        return self.dominating(self.cell_term)

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly."""
        return (self.counted,)

    @property
    def n_exact(self) -> int:
        """Blocks whose number of records is disclosed exactly."""
        return self.blocks.count

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        scale = self.scale
        return [] if scale is None else [(scale, self.query.k * len(self.room.lines))]

    @property
    def half_width(self) -> float:
        """Sizes are exact."""
        return 0.0

    def admit(self, total: int) -> None:
        largest = max(1, int(self.blocks.sides.max()))
        if largest * max(total, 1) >= LARGEST:
            raise Unsupported("kmeans: a sum could exceed 2^61 in steps of the cells; declare coarser cells.")

    def tabulate(self, counts: Counts) -> tuple[Ints, Ints]:
        """Cells that hold records, and how many. Private."""
        return places(self.room, self.cells, counts)

    def observe(
        self, table: tuple[Ints, Ints], total: int | None, reserve: noise.Reserve
    ) -> tuple[Found, int]:
        """Exact numbers of records per block, then the noisy sums of the clusters that these define."""
        assert total is not None  # these ways are for tables whose number of records is public
        self.admit(total)
        scale, size = self.scale, self.query.k * len(self.room.lines)
        none = np.zeros(size, dtype=np.int64)
        drawn_ = none if scale is None else charged.taken(reserve, self.loss, scale, size)
        return self._found(*table, drawn_), total

    def _found(self, codes: Ints, numbers: Ints, noise_: Ints) -> Found:
        k, d = self.query.k, len(self.room.lines)
        block = self.blocks.of(codes)
        held = np.zeros(self.blocks.count, dtype=np.int64)
        np.add.at(held, block, numbers)
        label, centroids = clusters_of_blocks(self.blocks.middles / 2, held, k)
        points, _ = self.room.places(codes)
        sums = np.zeros((k, d), dtype=np.int64)
        np.add.at(sums, label[block], (2 * points - self.blocks.middles[block]) * numbers[:, None])
        noisy = np.clip(sums + noise_.reshape(k, d), -LARGEST, LARGEST).astype(np.float64)
        sizes = np.bincount(label, held.astype(np.float64), k).astype(np.float64)
        half = self.blocks.sides / 2  # no mean lies farther from the middles of its blocks
        shift = np.clip(noisy / np.maximum(2 * sizes, 1.0)[:, None], -half, half)
        moved = np.where(sizes[:, None] > 0, np.clip(centroids + shift, 0, self.room.extents), centroids)
        order = np.lexsort(moved.T[::-1])
        return Found(in_order(moved), sizes[order], None)

    def finish(self, noisy: tuple[Found, int]) -> Clusters:
        """Clusters with exact sizes."""
        found, total = noisy
        return self.clusters(found.centroids, found.sizes, lambda _: np.zeros(1), total)

    def simulated(self, sample: Sample, rng: np.random.Generator) -> Floats:
        """Centroids of a run on synthetic data with simulated noise."""
        size = self.query.k * len(self.room.lines)
        scale = self.scale
        noise_ = (
            np.zeros(size, dtype=np.int64)
            if scale is None
            else drawn(rng, self.loss.unit, [(scale, size)])[0]
        )
        return self._found(sample.codes, sample.counts, noise_).centroids

    def noise_spec(self) -> list[dict[str, Any]]:
        """The sums, in half steps of the cells, their scale (σ² for Gaussian noise) and their number."""
        return [
            {"rows": "sums within blocks, in half steps", "scale": show(scale), "number": number}
            for scale, number in self.draws
        ]

    def disclosed(self) -> list[str]:
        """In words, what is published exactly because the policy does not hold it secret."""
        names, kept = ", ".join(self.room.domain.names), filter_text(self.query)
        return [
            f"the number of records{kept} in every one of the {self.blocks.count} blocks of {names} that the policy discloses"
        ]


def clusters_of_blocks(points: Floats, held: Ints, k: int) -> tuple[Ints, Floats]:
    """(cluster of every block, middle of every cluster) from the numbers of records alone, as they are disclosed.

    The generator's seed is fixed and published: these numbers are no secret.
    """
    weights = held.astype(np.float64)
    if not held.any():
        weights = np.ones(len(held))
    centroids = cluster(points, weights, k, np.random.default_rng(SEED))
    return squares(points, centroids).argmin(axis=1).astype(np.int64), centroids
