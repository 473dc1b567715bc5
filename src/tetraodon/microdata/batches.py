"""Blocks of similar size stacked and padded, so that one numpy call serves them all.

A padded row or column has mass 0 and a channel of ``NOTHING``; what the solver computes there is multiplied by the mask and
never enters a sum. For a single block there is no padding and no mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..channels.lower_bound import Floats, Ints
from .blocks import Block

NOTHING = 1e-30  # channel and posterior mass of what is only padding
TINY = 1e-300
WALL = 1e300  # price of a padded column
CALLS = 1.6e6  # operations that take as long as the calls of one step
TOGETHER = 2_000_000  # numbers (rows × outputs × secrets) of a batch


@dataclass(frozen=True, eq=False)
class Batch:
    """Several blocks, leading axis g.

    Attributes:
        index: which blocks they are.
        P: joint (g, secrets, rows); its sum over the last two axes is ``share``.
        mass: (g, rows); ``per_mass`` 1/mass or 0.
        prior, log_prior: p(y | g) and its logarithm, (g, secrets, 1); 0 and 0 on padding.
        given: p(y | c, g), (g, secrets, rows).
        cost, price: d − min d of the row, and p_g(c) times that, (g, rows, outputs): all distortions are above the least attainable.
        kept: p_g(ĉ), (g, outputs): what invariant channels keep.
        mask, wall, filler: 1 where real (g, rows, outputs), ``WALL`` where an output is not (g, 1, outputs), ``NOTHING``
            where a secret is not (g, secrets, 1); None without padding.
        outputs: how many outputs are real, (g,).
        pairs: products of two rows of P, (g, secrets², rows); None where there are many secrets.
    """

    index: Ints
    P: Floats
    mass: Floats
    per_mass: Floats
    prior: Floats
    log_prior: Floats
    given: Floats
    cost: Floats
    price: Floats
    kept: Floats
    share: Floats
    outputs: Ints
    mask: Floats | None
    wall: Floats | None
    filler: Floats | None
    pairs: Floats | None

    @staticmethod
    def of(blocks: Sequence[Block], index: Ints, weights: Floats) -> Batch:
        """The blocks of ``index``, the joint of each multiplied by its weight."""
        chosen = [blocks[i] for i in index]
        X = max(b.joint.shape[0] for b in chosen)
        W, Z = max(b.cost.shape[0] for b in chosen), max(b.cost.shape[1] for b in chosen)
        n = len(chosen)
        P, cost, mask = np.zeros((n, X, W)), np.zeros((n, W, Z)), np.zeros((n, W, Z))
        filler = np.full((n, X, 1), NOTHING)
        for g, (block, weight) in enumerate(zip(chosen, weights[index], strict=True)):
            x, w = block.joint.shape
            z = block.cost.shape[1]
            P[g, :x, :w] = block.joint * weight
            cost[g, :w, :z] = block.cost - block.cost.min(1, keepdims=True)
            mask[g, :w, :z] = 1.0
            filler[g, :x] = 0.0
        mass = P.sum(1)
        share = mass.sum(1)
        per_mass = np.where(mass > 0, 1.0 / np.where(mass > 0, mass, 1.0), 0.0)
        prior = P.sum(2, keepdims=True) / share[:, None, None]
        log_prior = np.log(np.where(prior > 0, prior, 1.0))
        kept = np.zeros((n, Z))
        if Z == W:
            kept[:] = mass
        padded = not mask.all() or bool(filler.any())
        real = mask.max(1, keepdims=True)
        pairs = (P[:, :, None, :] * P[:, None]).reshape(n, X * X, W) if X <= 16 else None
        return Batch(
            np.asarray(index),
            P,
            mass,
            per_mass,
            prior,
            log_prior,
            P * per_mass[:, None, :],
            cost,
            mass[:, :, None] * cost,
            kept,
            share,
            real.sum((1, 2)).astype(np.int64),
            mask if padded else None,
            WALL * (1 - real) if padded else None,
            filler if padded else None,
            pairs,
        )

    def only(self, keep: Ints) -> Batch:
        """Those of its blocks that ``keep`` numbers."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        kept: dict[str, Any] = {name: None if part is None else part[keep] for name, part in parts.items()}
        return Batch(**kept)

    def masked(self, values: Floats) -> Floats:
        """``values`` (g, rows, outputs) without the padding, in place."""
        if self.mask is not None:
            values *= self.mask
        return values

    def real(self, columns: Floats) -> Floats:
        """(g, outputs) with 0 where an output is padding."""
        return columns if self.wall is None else np.where(self.wall[:, 0] > 0, 0.0, columns)

    def spent(self, K: Floats) -> Floats:
        """(g,): Σ_c p_g(c) Σ_ĉ W d, above the least."""
        found: Floats = np.einsum("gwz,gwz->g", self.price, K)
        return found

    def posterior(self, K: Floats) -> tuple[Floats, Floats, Floats]:
        """J = P K, p = 1ᵀJ and ln p(y | ĉ)/p(y), all (g, ·, outputs)."""
        J = self.P @ K
        p = J.sum(1)
        if self.filler is not None:
            J += self.filler
        R = np.log(J)
        R -= np.log(p)[:, None, :]
        R -= self.log_prior
        return J, p, R

    def leak(self, K: Floats) -> Floats:
        """(g,): share × information of channels without padding, in nats."""
        J = self.P @ K
        p = J.sum(1, keepdims=True)
        logs = np.log(np.maximum(J, TINY)) - np.log(np.maximum(p, TINY)) - self.log_prior
        found: Floats = np.maximum(np.einsum("gxz,gxz->g", J, logs), 0.0)
        return found

    def weights(self, log_ratio: Floats) -> Floats:
        """ln Σ_y p(y) e^A, (g, outputs)."""
        top = log_ratio.max(1, keepdims=True)
        total = np.sum(self.prior * np.exp(log_ratio - top), axis=1)
        found: Floats = top[:, 0] + np.log(total)
        return found


def batches(blocks: Sequence[Block], weights: Floats) -> list[Batch]:
    """All blocks in batches, large ones first: together where the padding costs less than one more round of calls.

    >>> two = [Block(np.full((2, n), 0.1), np.ones((n, n))) for n in (5, 90, 4)]
    >>> [batch.index.tolist() for batch in batches(two, np.ones(3))]
    [[1], [0, 2]]
    """
    shapes = np.array([(len(b.joint), *b.cost.shape) for b in blocks], dtype=np.float64).reshape(-1, 3)
    order = np.argsort(-_work(shapes), kind="stable")
    shapes = shapes[order]
    best, begin = np.zeros(len(blocks) + 1), np.zeros(len(blocks), dtype=np.int64)
    for last in range(len(blocks)):  # the best way for all up to this one, whose batch begins at ``begin``
        wide = np.maximum.accumulate(shapes[last::-1])
        size = np.arange(1, last + 2)
        price = best[last::-1] + CALLS + size * _work(wide)
        price[1:][(size * wide.prod(1))[1:] > TOGETHER] = np.inf
        begin[last] = last - int(price.argmin())
        best[last + 1] = price.min()
    found, end = [], len(blocks)
    while end:
        first = int(begin[end - 1])
        found.append(Batch.of(blocks, np.sort(order[first:end]), weights))
        end = first
    return found[::-1]


def _work(shapes: Floats) -> Floats:
    """Operations of one step on one block, about; of (…, 3): secrets, rows, outputs."""
    secrets, rows, outputs = shapes.T
    by_columns = 3.0 * secrets**3 + 2.0 * rows * secrets**2 + secrets * rows**2
    by_rows = 3.0 * rows**3 + 2.0 * rows**2 * secrets + 2.0 * rows * secrets**2
    found: Floats = outputs * (np.minimum(by_columns, by_rows) + 60.0 * rows)
    return found
