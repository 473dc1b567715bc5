"""Our k-means with the package's prices and simulated noise, so that fifty runs take seconds.

    TETRAODON_DATA=… python -m benchmarks.blowfish.kmeans_ours

``run`` takes the way that the plan picks on public synthetic data (a release would take the same) and measures what it does
on real points: objective over that of plain k-means. ``centred`` is the baseline: ten sound rounds under ``Full``, sums
centred at the middle of the box, everything clipped to the box. The noise comes from a ``numpy.random.Generator`` at the
exact scales; a release draws it from the operating system.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

import tetraodon as td
from tetraodon.axes import Ints
from tetraodon.clustering.costs import Assignment, Weights, reach
from tetraodon.clustering.declared import Clustering
from tetraodon.clustering.iterative import observed, start
from tetraodon.clustering.lloyd import cluster, objective
from tetraodon.clustering.query import KMeans
from tetraodon.clustering.select import AnyWay, candidates, price
from tetraodon.clustering.simulate import Sample
from tetraodon.clustering.space import Space
from tetraodon.loss import Loss

REPETITIONS, ROUNDS = 50, 10
STARTS = 20


def sample(room: Space, cells: Sequence[Ints], counts: Ints, k: int) -> Sample:
    """Real points as what ways are tried on.

    Args:
        cells: one array of cells per attribute.
    """
    codes, place = np.unique(room.domain.encode(cells), return_inverse=True)
    held = np.bincount(place.ravel(), counts).astype(np.int64)
    points, _ = room.places(codes)
    weights = held.astype(float)
    centroids = cluster(points.astype(float), weights, k, np.random.default_rng(1), STARTS)
    return Sample(codes, points, held, objective(points.astype(float), weights, centroids))


def chosen(
    query: KMeans, domain: td.Domain, secrets: object, loss: Loss, mechanism: Clustering | None = None
) -> AnyWay:
    """The way that a plan puts first, or the named one."""
    hood = td.Policy(domain, secrets).neighbourhood
    if mechanism is not None:
        return price(mechanism, query, domain, hood, loss)
    return candidates(query, domain, hood, loss)[0]


def run(
    cells: Sequence[Ints],
    counts: Ints,
    domain: td.Domain,
    secrets: object,
    loss: Loss,
    repetitions: int,
    rng: np.random.Generator,
    k: int = 4,
    mechanism: Clustering | None = None,
) -> tuple[AnyWay, list[float]]:
    """The way taken and its ratios, one per run.

    Args:
        cells: cells of distinct points, one array per attribute of the domain.
        counts: records at each.
        secrets: the secret graph.
    """
    query = KMeans(*domain.names, k=k, records=int(counts.sum()))
    way = chosen(query, domain, secrets, loss, mechanism)
    points = sample(way.room, cells, counts, k)
    return way, [points.ratio(way.simulated(points, rng)) for _ in range(repetitions)]


def centred(room: Space, points: Sample, epsilon: Fraction, k: int, rng: np.random.Generator) -> float:
    """Ratio of one run of the baseline: rows priced together, half of a round's ε for sizes, half for sums."""
    each = epsilon / ROUNDS
    middle = np.tile(room.extents // 2, (k, 1))
    centroids = start(room, k)
    radius = np.maximum(room.extents, 1)
    for _ in range(ROUNDS):
        assignment = Assignment(centroids, middle, radius)
        told = reach(room, assignment, 1)
        weights = Weights(told.move(Weights(0, 1)), 2)  # 2·move for sizes beside 2·move for sums
        base = float(Fraction(told.move(weights)) / each)
        sizes, sums = observed(assignment, points.points, points.counts)
        noisy = sizes + rng.laplace(0, base / weights.size, k)
        total = sums + rng.laplace(0, base / weights.total, sums.shape)
        moved = middle + total / np.maximum(noisy, 1.0)[:, None]
        centroids = np.rint(np.clip(moved, 0, room.extents)).astype(np.int64)
    return points.ratio(centroids.astype(float))


def quartiles(ratios: Sequence[float]) -> str:
    """Mean and quartiles in a few characters."""
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return f"{np.mean(ratios):6.2f} ({low:.2f} {middle:.2f} {high:.2f})"


def main() -> int:
    from .clouds import skin
    from .figure1_points import SKIN01

    cloud = skin(100)
    domain = td.Domain(b=td.Integer(0, 255), g=td.Integer(0, 255), r=td.Integer(0, 255))
    cells = [c.astype(np.int64) for c in cloud.points.T]
    print(f"{cloud.told}, k = 4, {REPETITIONS} runs: objective over plain k-means, mean (quartiles)")
    worse = 0
    for at, epsilon in ((0, Fraction(1, 10)), (4, Fraction(1, 2)), (9, Fraction(1))):
        loss, rng = Loss("epsilon", epsilon), np.random.default_rng(7)
        full = [td.Full()] + [td.Within(t, metric=td.L1(b=1, g=1, r=1)) for t in (256, 128, 64, 32)]
        way, _ = run(cells, cloud.weights, domain, td.Full(), loss, 0, rng)
        points = sample(way.room, cells, cloud.weights, 4)
        base = [centred(way.room, points, epsilon, 4, rng) for _ in range(REPETITIONS)]
        print(f"ε = {float(epsilon)}: ours centred, clipped, Full: {quartiles(base)}")
        for secrets, name in zip(full, SKIN01, strict=True):
            way, ratios = run(cells, cloud.weights, domain, secrets, loss, REPETITIONS, rng)
            paper, mean = SKIN01[name][at], float(np.mean(ratios))
            worse += mean > paper or mean > float(np.mean(base))
            told = next(iter(way.mechanism.to_spec().items()))
            share = mean / float(np.mean(base))
            print(
                f"  {name:>8}: paper {paper:6.2f}   ours {quartiles(ratios)}   {share:.2f} of the baseline   {told[0]} {told[1]}"
            )
    print("Below the paper and the baseline everywhere." if not worse else f"{worse} point(s) above.")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
