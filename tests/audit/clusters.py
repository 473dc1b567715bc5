"""k-means in every way, and trees over released counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from audit.judge import Ran, answered, counted, edges
from audit.mutants import twin_noise as broken
from audit.subjects import Subject, asked, instead, patched, price, priced_under

import tetraodon as td
from tetraodon.auditing import answering, losses
from tetraodon.auditing.answering import Exact
from tetraodon.clustering import blocks as of_blocks
from tetraodon.clustering import costs, iterative
from tetraodon.clustering import strategy as ways
from tetraodon.clustering.declared import FromHistogram, InRounds, WholeBlocks
from tetraodon.clustering.trees import kd_tree
from tetraodon.loss import Loss
from tetraodon.mechanisms import Identity, charged

NOISES = {"Laplace": Loss("epsilon", Fraction(1)), "Gaussian": Loss("rho", Fraction(1))}
GRID = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 3))
NEAR = td.Policy(GRID, td.AttributeWise(x=td.Within(2), y=td.Within(2)))
NEXT = td.Policy(GRID, td.AttributeWise(x=td.Within(1), y=td.Within(1)))
LESS = td.Policy(GRID, td.AttributeWise(x=td.Within(2), y=td.Nothing()))
COARSE, FINE = (td.Policy(GRID, td.Partition(blocks={"x": 2, "y": n})) for n in (1, 2))
QUERY = td.KMeans("x", "y", k=2)
SLOW = 2_000
TREES = 4_000
PATHS = 32


def subjects() -> list[Subject]:
    """All of them."""
    found = []
    for noise, loss in NOISES.items():
        found += [_histogram(noise, loss), _rounds(noise, loss), _blocks(noise, loss), _trees(noise, loss)]
    return found


def _histogram(noise: str, loss: Loss) -> Subject:
    mechanism = FromHistogram(4, "identity")
    twins = {what: patched(p) for what, p in broken.EVERY.items()}
    twins["edges of one coordinate alone"] = priced_under(QUERY, LESS, NEAR, mechanism, loss)
    return Subject(
        f"k-means on a histogram, {noise}", ("kmeans-histogram",), "largest move over the edges, exact", NEAR,
        asked(QUERY, NEAR, mechanism, loss), twins,
    )  # fmt: skip


# ---------- in rounds ----------


def _rounds(noise: str, loss: Loss) -> Subject:
    mechanism = InRounds(2, "0.5")
    once = cache(lambda: price(QUERY, NEXT, mechanism, loss))

    def twin(patch: Callable[[], Any]) -> Any:
        return patched(patch)

    twins = {
        "published calibration": twin(_published),
        "sizes and sums have the whole loss each": twin(_whole_each),
        "every round has the whole loss": twin(_whole_rounds),
        "half the scale": twin(_half_scales),
    }
    return Subject(
        f"k-means in rounds, {noise}", ("kmeans-rounds",), "largest move over all pairs of cells, round by round", NEXT,
        lambda: _in_rounds(once(), loss), twins, draws=SLOW, is_loose=True, exact="all edges, along drawn centroids",
    )  # fmt: skip


def _in_rounds(way: Any, claim: Loss) -> Ran:
    """The rounds of a way: their exact loss along centroids that it may come to, and whole runs."""
    rounds = way.rounds(costs.FINE)
    told = answered(way, NEXT)

    @cache
    def paths() -> list[list[Any]]:
        flat = np.full(GRID.size, 2, dtype=np.int64)
        found = []
        for _ in range(PATHS):
            seen: list[Any] = []
            real = iterative.observed

            def spy(assignment: Any, *rest: Any, seen: list[Any] = seen, real: Any = real) -> Any:
                seen.append(assignment)
                return real(assignment, *rest)

            with mock.patch.object(iterative, "observed", spy):
                way.observe(way.tabulate(counted(flat, NEXT, way)), int(flat.sum()), None)
            found.append(seen)
        return found

    def exact(hist: Any, path: list[Any]) -> Exact:
        points, numbers = way.tabulate(counted(hist, NEXT, way))
        values: list[float] = []
        scales: list[Fraction] = []
        for assignment in path:
            size_scale, sum_scale = iterative.scales(rounds, way.room, assignment)
            sizes, sums = iterative.observed(assignment, points, numbers)
            values += [*sizes.tolist(), *sums.ravel().tolist()]
            scales += [size_scale] * sizes.size + [sum_scale] * sums.size
        return Exact(np.array(values, dtype=np.float64), tuple(scales))

    def loss(a: Any, b: Any) -> Fraction:
        every = [losses.of_rows(claim.unit, exact(a, path), exact(b, path)) for path in paths()]
        return max(f for f in every if f is not None)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        outputs = [
            answering.drawn(way, counted(h, NEXT, way), int(h.sum()), min(draws, SLOW), list(range(6)))
            for h in (a, b)
        ]
        return outputs[0], outputs[1]

    return Ran(told.claim, loss, drawn)


@contextmanager
def _published() -> Iterator[None]:
    """The published calibration: a record moves one sum by the length of its edge, which is 1 here, and never leaves it."""

    def move(_: Any, weights: Any) -> int:
        return int(2 * weights.size + weights.total)

    with mock.patch.object(costs.Reach, "move", move):
        yield


@contextmanager
def _whole_each() -> Iterator[None]:
    """Sizes at the whole share, sums at the whole share: 2ε a round."""
    real = iterative.scales

    def scales(rounds: Any, room: Any, assignment: Any) -> tuple[Fraction, Fraction]:
        told = costs.reach(room, assignment, rounds.power, rounds.blocks)
        base = Fraction(1) / rounds.each / (2 if rounds.power == 2 else 1)
        return 2 * base, max(1, told.move(costs.Weights(0, 1))) * base

    assert real is not scales
    with mock.patch.object(iterative, "scales", scales):
        yield


@contextmanager
def _whole_rounds() -> Iterator[None]:
    with mock.patch.object(iterative.Rounds, "each", property(lambda rounds: rounds.loss.amount)):
        yield


@contextmanager
def _half_scales() -> Iterator[None]:
    real = iterative.scales
    with mock.patch.object(iterative, "scales", lambda *a: tuple(s / 2 for s in real(*a))):
        yield


# ---------- whole blocks ----------


def _blocks(noise: str, loss: Loss) -> Subject:
    mechanism = WholeBlocks()
    once = cache(lambda: price(QUERY, COARSE, mechanism, loss))
    finer = instead(lambda: _over_blocks(price(QUERY, FINE, mechanism, loss), loss))

    @contextmanager
    def one_side() -> Iterator[None]:
        real = of_blocks.Blocks.moved
        with mock.patch.object(of_blocks.Blocks, "moved", lambda self, power: max(1, real(self, power) // 2)):
            yield

    @contextmanager
    def halved() -> Iterator[None]:
        real = charged.scale
        with mock.patch.object(charged, "scale", lambda *a, **k: real(*a, **k) / 2):
            yield

    twins = {
        "half the scale": patched(halved),
        "one side of the blocks": patched(one_side),
        "blocks that the policy does not disclose": finer,
    }
    return Subject(
        f"k-means over whole blocks, {noise}", ("kmeans-blocks",), "sides of a disclosed block, exact", COARSE,
        lambda: _over_blocks(once(), loss), twins, draws=SLOW,
    )  # fmt: skip


def _over_blocks(way: Any, claim: Loss) -> Ran:
    """Counts of blocks without noise and sums within them, from the definition; outputs by the way itself."""

    def exact(hist: Any) -> Exact:
        codes, numbers = way.tabulate(counted(hist, COARSE, way))
        block = way.blocks.of(codes)
        held = np.bincount(block, numbers.astype(float), way.blocks.count)
        label, _ = ways.clusters_of_blocks(way.blocks.middles / 2, held.astype(np.int64), way.query.k)
        points = way.room.places(codes)[0]
        sums = np.zeros((way.query.k, points.shape[1]))
        np.add.at(sums, label[block], (2 * points - way.blocks.middles[block]) * numbers[:, None])
        return Exact(np.concatenate([held, sums.ravel()]), (None,) * len(held) + (way.scale,) * sums.size)

    def loss(a: Any, b: Any) -> Fraction | float:
        found = losses.of_rows(claim.unit, exact(a), exact(b))
        return math.inf if found is None else found

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        outputs = [
            answering.drawn(way, counted(h, COARSE, way), int(h.sum()), draws, list(range(6))) for h in (a, b)
        ]
        return outputs[0], outputs[1]

    return Ran(way.spent, loss, drawn)


# ---------- trees ----------


def _trees(noise: str, loss: Loss) -> Subject:
    """Boxes of a k-d tree over a released histogram: post-processing, so that they cost what the histogram costs."""
    query = td.Histogram("x", "y")
    once = cache(lambda: price(query, NEAR, Identity(), loss))
    twins = {what: patched(p) for what, p in broken.EXACTLY.items()}
    twins["cuts at the true medians"] = instead(lambda: _tree(once(), by_truth=True))
    twins["boxes of true counts"] = instead(lambda: _tree(once(), by_truth=False, shows_truth=True))
    return Subject(
        f"Trees over released counts, {noise}", ("trees",), "post-processing of Identity", NEAR,
        lambda: _tree(once()), twins, _on_uneven_ground, TREES,
    )  # fmt: skip


def _on_uneven_ground() -> list[tuple[Any, Any]]:
    """One record moves along every edge, in a table whose median is near a tie."""
    floor = np.array([[2, 2, 2, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 0]], dtype=np.int64).ravel()
    eye = np.eye(GRID.size, dtype=np.int64)
    return [(floor + eye[a], floor + eye[b]) for a, b in edges(NEAR)]


def _tree(strategy: Any, by_truth: bool = False, shows_truth: bool = False) -> Ran:
    told = answered(strategy, NEAR)

    def loss(a: Any, b: Any) -> Any:
        if shows_truth:
            return math.inf  # a number that moves and has no noise
        if by_truth:  # boxes are a function of the table alone
            one, two = (kd_tree(h.reshape(GRID.shape).astype(float), 2) for h in (a, b))
            return 0.0 if [(x.low, x.high) for x in one] == [(x.low, x.high) for x in two] else math.inf
        return told.loss(a, b)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        n = min(draws, TREES)
        return tuple(_boxes(strategy, h, n, by_truth, shows_truth) for h in (a, b))  # type: ignore[return-value]

    return Ran(told.claim, loss, drawn)


def _boxes(strategy: Any, hist: Any, draws: int, by_truth: bool, shows_truth: bool) -> Any:
    true = np.asarray(hist, dtype=float).reshape(GRID.shape)
    cells = answering.drawn(
        strategy, counted(hist, NEAR, strategy), int(true.sum()), draws, _columns(strategy)
    )
    found = []
    for row in cells:
        noisy = row.reshape(GRID.shape)
        told = kd_tree(true if by_truth else noisy, 2)
        numbers: list[float] = []
        for box in told:
            inside = tuple(slice(a, b) for a, b in zip(box.low, box.high, strict=True))
            count = true[inside].sum() if shows_truth else np.maximum(noisy, 0)[inside].sum()
            numbers += [*box.low, *box.high, count]
        found.append(numbers[:20] + [-9.0] * (20 - len(numbers)))
    return np.array(found)


def _columns(strategy: Any) -> list[int]:
    """Numbers of an output that are cells, group by group: the others are the empty chain."""
    chain = len(strategy.parts[0].exact) * strategy.resolved.n_groups
    return list(range(chain, chain + GRID.size))
