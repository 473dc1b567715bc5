"""One group's part of the obfuscation problem on plain arrays, and lower bounds that a stranger can recompute.

Within a group g a record of cluster c is given the cluster ĉ with probability W_g(ĉ | c). The private value Y, c and ĉ form a
chain, and all groups together are asked for

    min_W Σ_g w_g I(Y; Ĉ | g)    s.t.    Σ_g w_g E[d | g] ≤ Δ    (or E[d | g] ≤ Δ in every group),    rows of W_g sum to 1.

For any log ratios A_g(y, ĉ) with Σ_y p(y | g) e^{A_g(y, ĉ)} ≤ 1 and any λ ≥ 0 every such channel leaks at least

    Σ_g Σ_c min_ĉ [ Σ_y p_g(y, c) A_g(y, ĉ) + λ p_g(c) d_g(c, ĉ) ] − λ Δ,

where p_g sums to the share w_g. Where the clusters have to keep their shares (Σ_c p_g(c) W_g(ĉ | c) = p_g(ĉ)), A may be anything,
and Σ_g Σ_ĉ p_g(ĉ) ln Σ_y p(y | g) e^{A_g(y, ĉ)} is subtracted (derived; microdata rules, certificates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..channels.attainable import best_constant, constant
from ..channels.lower_bound import MARGIN, UNIT, Floats, Ints, gains
from ..errors import Refused, SpecificationError

Bools = NDArray[np.bool_]
ROUNDING = 64.0 * UNIT  # of shares that should add up to one another


class NoTarget(Refused):
    """No cluster of the group may be published."""


@dataclass(frozen=True, eq=False)
class Block:
    """One group: how its records fall, and what it costs to publish each as another cluster.

    Args:
        joint: (values, clusters), share of **all** records; no empty row or column; it sums to the group's share w.
        cost: (clusters, targets), ≥ 0 and finite, in the unit of the distortion.

    Raises:
        SpecificationError: shapes that do not fit, a share that is negative or missing, a cost that is no finite number ≥ 0.

    >>> block = Block(np.array([[0.2, 0.0], [0.1, 0.2]]), np.array([[0.1, 0.5], [0.5, 0.2]]))
    >>> round(block.share, 6), round(block.least(), 6)
    (0.5, 0.07)
    """

    joint: Floats
    cost: Floats

    def __post_init__(self) -> None:
        joint = np.ascontiguousarray(self.joint, dtype=np.float64)
        cost = np.ascontiguousarray(self.cost, dtype=np.float64)
        if joint.ndim != 2 or cost.ndim != 2 or not cost.size or joint.shape[1] != cost.shape[0]:
            raise SpecificationError(
                f"block: joint (values, clusters) and cost (clusters, targets); got {joint.shape} and {cost.shape}."
            )
        if not (np.isfinite(joint).all() and (joint >= 0).all() and joint.size):
            raise SpecificationError("block: joint: shares of records, finite and at least 0.")
        if not (joint.sum(0).all() and joint.sum(1).all()):
            raise SpecificationError(
                "block: joint: a value or a cluster without records; Block.of leaves such out."
            )
        if not (np.isfinite(cost).all() and (cost >= 0).all()):
            raise SpecificationError("block: cost: finite numbers of at least 0.")
        joint.flags.writeable = cost.flags.writeable = False
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "cost", cost)

    @staticmethod
    def of(counts: Ints, cost: Floats, total: int, targets: Bools | None = None) -> tuple[Block, Ints, Ints]:
        """The block of a group's table of counts, and what its rows and columns stand for.

        Values and clusters without records are left out; so are targets that are forbidden or cost NaN from a cluster in use.

        Args:
            counts: (values, clusters), records of the group.
            cost: (clusters, clusters), mean distance from records of one to records of the other; NaN where there is none.
            total: all records, of all groups.
            targets: (clusters,), which may be published, such as those with at least k donors; None for all.

        Returns:
            The block; the clusters that its rows are; the clusters that its columns are.

        Raises:
            SpecificationError: a group without records, shapes that do not fit, a negative count or cost.
            NoTarget: no cluster is left to publish.

        >>> block, rows, columns = Block.of(np.array([[3, 0, 1], [1, 0, 5]]), 1 - np.eye(3), 10, np.array([True, True, False]))
        >>> rows.tolist(), columns.tolist(), block.joint.tolist()
        ([0, 2], [0, 1], [[0.3, 0.1], [0.1, 0.5]])
        """
        counts, cost = np.asarray(counts), np.asarray(cost, dtype=np.float64)
        clusters = counts.shape[-1]
        if counts.ndim != 2 or cost.shape != (clusters, clusters):
            raise SpecificationError(
                f"block: counts (values, clusters) and cost (clusters, clusters); got {counts.shape} and {cost.shape}."
            )
        if targets is not None and np.shape(targets) != (clusters,):
            raise SpecificationError(f"block: targets: one truth value for each of the {clusters} clusters.")
        if (counts < 0).any() or total < counts.sum():
            raise SpecificationError("block: counts: at least 0, and no more records than there are in all.")
        if not counts.any():
            raise SpecificationError("block: counts: a group without records has no channel; leave it out.")
        rows, values = np.flatnonzero(counts.any(0)), np.flatnonzero(counts.any(1))
        usable = ~np.isnan(cost[rows]).any(0)
        if targets is not None:
            usable &= np.asarray(targets, dtype=bool)
        columns = np.flatnonzero(usable)
        if not len(columns):
            raise NoTarget(
                "block: no cluster of a group may be published; allow fewer donors (k), take fewer clusters or larger groups."
            )
        return Block(counts[np.ix_(values, rows)] / total, cost[np.ix_(rows, columns)]), rows, columns

    @property
    def mass(self) -> Floats:
        """(clusters,): share of all records that are in the group and in the cluster."""
        found: Floats = self.joint.sum(0)
        return found

    @property
    def share(self) -> float:
        """w: the group's share of all records."""
        return float(self.joint.sum())

    def least(self) -> float:
        """Share × the least attainable mean distortion: every cluster goes to its nearest target."""
        return float(self.mass @ self.cost.min(1))

    @property
    def tells_nothing(self) -> bool:
        """One value, one cluster or one target: no channel leaks."""
        return 1 in (len(self.joint), *self.cost.shape)

    def nearest(self) -> Floats:
        """The channel of least distortion: every cluster goes to its nearest target."""
        channel = np.zeros(self.cost.shape)
        channel[np.arange(len(channel)), self.cost.argmin(1)] = 1.0
        return channel

    def constant(self) -> tuple[Floats, float]:
        """The cheapest channel that gives everybody the same target, and its share × mean distortion."""
        target, spent = best_constant(self.mass, self.cost)
        return constant(len(self.cost), self.cost.shape[1], target), spent

    def prior(self) -> Floats:
        """The log ratios (values, targets) of a classifier that learns nothing: 0."""
        return np.zeros((len(self.joint), self.cost.shape[1]))

    def distortion(self, channel: Floats) -> float:
        """w E[d | g] of a channel (clusters, targets)."""
        return float(self.mass @ np.einsum("wz,wz->w", channel, self.cost))

    def leak(self, channel: Floats) -> float:
        """w I(Y; Ĉ | g) of a channel (clusters, targets), in nats; never negative.

        >>> even = Block(np.array([[0.25, 0.0], [0.0, 0.25]]), 1 - np.eye(2))
        >>> round(even.leak(np.eye(2)) / even.share, 6), even.leak(np.full((2, 2), 0.5))  # ln 2
        (0.693147, 0.0)
        """
        J = self.joint @ channel
        apart = self.joint.sum(1, keepdims=True) * J.sum(0) / self.share
        told = J > 0
        return max(float(np.sum(J[told] * np.log(J[told] / apart[told]))), 0.0)


def information_bound(
    blocks: Sequence[Block],
    budget: float,
    log_ratios: Sequence[Floats],
    multiplier: float | Sequence[float],
    shared: bool = True,
    invariant: bool = False,
) -> float:
    """Nats that all channels within the budget leak at least, whatever classifiers and multipliers are given.

    Args:
        blocks: the groups.
        budget: Δ; shared: on Σ_g w_g E[d | g], otherwise on each E[d | g].
        log_ratios: for each block A(y, ĉ), (values, targets), natural logarithm; −inf stands for a classifier of 0.
        multiplier: λ ≥ 0, nats for each unit of distortion: one, or one for each block where budgets are not shared.
        shared, invariant: the problem, as asked of ``obfuscate``.

    Returns:
        The bound less a margin for rounding; −inf where the classifiers prove nothing; at most as useful as 0.

    Raises:
        SpecificationError: not one table of log ratios and one multiplier for each block, NaN, a negative multiplier.

    >>> even = Block(np.array([[0.5, 0.0], [0.0, 0.5]]), 1 - np.eye(2))
    >>> round(information_bound([even], 0.0, [np.log([[2, 1e-9], [1e-9, 2]])], 30.0), 6)  # ln 2
    0.693147
    """
    lams = np.broadcast_to(np.asarray(multiplier, dtype=np.float64), len(blocks))
    if len(log_ratios) != len(blocks) or not (np.isfinite(lams).all() and (lams >= 0).all()):
        raise SpecificationError(
            "information_bound: one table of log ratios and one multiplier ≥ 0 for each block."
        )
    if shared and not (lams == lams[:1]).all():
        raise SpecificationError("information_bound: one shared budget has one multiplier.")
    floor = -float(lams[0]) * budget if shared and len(lams) else 0.0
    margin = 0.0
    for block, A, lam in zip(blocks, log_ratios, lams, strict=True):
        if A.shape != (len(block.joint), block.cost.shape[1]) or np.isnan(A).any() or np.isposinf(A).any():
            raise SpecificationError("information_bound: log_ratios: (values, targets), no NaN and no +inf.")
        prior = block.joint.sum(1) / block.share
        top = np.maximum(A.max(0), -1e300)
        with np.errstate(divide="ignore"):
            total = top + np.log(prior @ np.exp(A - top))
        told = gains(block.joint, A if invariant else A - np.maximum(total, 0.0))
        floor += float((told + lam * (block.mass[:, None] * block.cost)).min(1).sum())
        if invariant:
            floor -= float(block.mass @ total)
        if not shared:
            floor -= float(lam) * budget * block.share
        size = (
            1 + np.abs(A[np.isfinite(A)]).max(initial=0.0) + lam * (block.cost.max() + budget / block.share)
        )
        margin += block.share * (MARGIN + 4 * UNIT * (sum(block.joint.shape) + A.shape[1]) * float(size))
    return floor - margin if np.isfinite(floor) else -np.inf
