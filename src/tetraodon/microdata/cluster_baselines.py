"""HyObscure's own halves as baselines: channels without moves of the groups, moves without new channels; and their draws.

``xobf`` finds the best channels for groups that are given and leaves the groups as they are. ``ygen`` moves values between
groups afterwards, in one pass, with the channels held. Both lack the alternation, which is what they are there to show.
``cluster_donors`` draws rows by channels between clusters, those of ``privcheck`` as well.

Leakage is in nats here, and everything is computed from private rows. Source: Han et al. 2021 (comparison).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Refused, SpecificationError
from ..noise import Choices, below, choose
from .blocks import Block
from .obfuscate import Unreachable, obfuscate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Cost = Callable[[Ints], Floats]
"""From the values of a group to the mean distance between its rows of two clusters, shape (clusters, clusters); NaN where the
group has no rows in one of them."""

Moved = Callable[[Ints, tuple[Floats, ...]], Ints]
"""One pass of moves: from the group of each value, and the channel of each group, to the new group of each value."""

_SUMS = 1e-9


@dataclass(frozen=True, eq=False)
class Swapped:
    """Groups with their channels. Private.

    Attributes:
        group_of: shape (values,), the group of each value.
        channels: for each group a channel, shape (clusters, clusters), rows are laws W(ĉ|c); NaN in the rows of clusters that
            the group did not have when the channels were made.
        leak: I(Y; Ĉ, Ỹ) = H(Ỹ) + Σ_g w_g I(Y; Ĉ | g), nats.
        naming: H(Ỹ) of it, nats.
        distortion: expected, over all rows, in the unit of the cost.
        bound: no channels for the groups that these were made for, within the budget, leak less; nats, with H(Ỹ) of those groups.
    """

    group_of: Ints
    channels: tuple[Floats, ...]
    leak: float
    naming: float
    distortion: float
    bound: float


def xobf(
    counts: Ints,
    group_of: Ints,
    cost: Cost,
    budget: float,
    shared: bool = True,
    tol: float = 4e-5,
    donors: int = 1,
) -> Swapped:
    """The best channels for given groups, and no move.

    Args:
        counts: rows by private value and cluster, shape (values, clusters).
        group_of: shape (values,), groups numbered from 0, each with rows.
        cost: what a group's swaps cost.
        budget: the largest expected distortion: of all rows together, or where not ``shared`` of each group.
        tol: certified gap, nats.
        donors: a cluster of a group may be published only if the group has so many rows in it.

    Raises:
        SpecificationError: counts or groups that do not fit.
        Refused: a group has no cluster to publish, or the budget is out of reach.
    """
    table, groups = _checked(counts, group_of)
    total = int(table.sum())
    pieces = [
        Block.of(table[members], cost(members), total, table[members].sum(axis=0) >= donors)
        for members in groups
    ]
    try:
        solved = obfuscate([block for block, _, _ in pieces], budget, shared=shared, tol=tol)
    except Unreachable:  # whose message tells how much would do, a function of private rows
        raise Refused("xobf: no channels of these groups keep the budget; raise it.") from None
    channels = []
    for (_, rows, columns), law in zip(pieces, solved.channels, strict=True):
        channel = np.full((table.shape[1], table.shape[1]), np.nan)
        channel[rows] = 0.0
        channel[np.ix_(rows, columns)] = law
        channels.append(channel)
    naming = _naming(table, groups)
    return Swapped(
        np.asarray(group_of, dtype=np.int64), tuple(channels), naming + solved.leak, naming, solved.distortion,
        naming + solved.bound,
    )  # fmt: skip


def ygen(
    counts: Ints,
    group_of: Ints,
    cost: Cost,
    budget: float,
    moved: Moved,
    shared: bool = True,
    tol: float = 4e-5,
    donors: int = 1,
) -> Swapped:
    """``xobf``, then one pass of moves with the channels held: a value that moves takes over the channel of its new group.

    Args:
        moved: one pass; it sees to the requirements on groups. Other arguments as ``xobf``.

    Raises:
        SpecificationError: as ``xobf``, or ``moved`` gave no groups of these values.
        Refused: as ``xobf``; or the groups that ``moved`` gave have no donors where their channels send rows.
    """
    start = xobf(counts, group_of, cost, budget, shared, tol, donors)
    after = np.asarray(moved(start.group_of, start.channels))
    found = evaluated(counts, after, start.channels, cost)
    if found is None:
        raise Refused(
            "ygen: after the moves a channel sends rows to clusters in which its group has no donors."
        )
    leak, naming, distortion = found
    return Swapped(after.astype(np.int64), start.channels, leak, naming, distortion, start.bound)


def evaluated(
    counts: Ints, group_of: Ints, channels: Sequence[Floats], cost: Cost
) -> tuple[float, float, float] | None:
    """Leakage, H(Ỹ) of it (both nats) and distortion of groups whose channels are held; None where a row has no donor.

    A cluster that was not in the group when its channel was made goes to its nearest cluster there.

    Raises:
        SpecificationError: counts or groups that do not fit, or not a channel for each group.
    """
    table, groups = _checked(counts, group_of)
    if len(channels) != len(groups):
        raise SpecificationError("channels: one for each group.")
    total, told, distortion = int(table.sum()), 0.0, 0.0
    for members, channel in zip(groups, channels, strict=True):
        block, rows, columns = Block.of(table[members], cost(members), total)
        law = channel[np.ix_(rows, columns)].copy()
        new = np.isnan(channel[rows]).any(axis=1)
        law[new] = 0.0
        law[np.flatnonzero(new), block.cost[new].argmin(axis=1)] = 1.0
        if np.abs(law.sum(axis=1) - 1).max() > _SUMS:
            return None
        told += block.leak(law)
        distortion += block.distortion(law)
    naming = _naming(table, groups)
    return naming + told, naming, distortion


def cluster_donors(
    channels: Sequence[Floats], channel_of: Ints, clusters: Ints, pools: Ints | None = None
) -> Ints:
    """A donor for each row: a cluster drawn by the row's channel, then a uniformly drawn row of it, both by exact chance.

    Args:
        channels: each of shape (clusters, clusters), rows are laws. The doubles are drawn from as they are, the likeliest
            cluster of each law standing for 1 − Σ of the others.
        channel_of: shape (rows,), which channel is the row's: its group, or 0 for everybody (``privcheck``).
        clusters: shape (rows,), the cluster of each row.
        pools: shape (rows,), whole numbers from 0: donors come from the same pool, such as the row's group; None for everybody.
    Returns:
        int64, shape (rows,): whose columns each row gets.
    Raises:
        SpecificationError: a law that is none, or codes that name no channel or cluster.
        Refused: a channel sends rows to a cluster that has no rows in their pool.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> cluster_donors([swap], np.zeros(3, dtype=int), np.array([0, 1, 1]))[1:].tolist()
    [0, 0]
    """
    which, own = _codes(channel_of, "channel_of"), _codes(clusters, "clusters")
    pool = np.zeros(len(own), dtype=np.int64) if pools is None else _codes(pools, "pools")
    if not len(which) == len(own) == len(pool):
        raise SpecificationError("cluster_donors: a channel, a cluster and a pool for each row.")
    number = len(channels[0]) if channels else 0
    if not len(own) or which.max() >= len(channels) or own.max() >= number:
        raise SpecificationError(
            "cluster_donors: codes name the channels and the clusters, and there is at least one row."
        )
    laws = np.concatenate([np.asarray(c, dtype=np.float64) for c in channels])
    used, law_of = np.unique(which * number + own, return_inverse=True)
    entries = laws[used]
    if laws.shape[1] != number or not (entries >= 0).all() or np.abs(entries.sum(axis=1) - 1).max() > _SUMS:
        raise SpecificationError(
            "cluster_donors: every row of a channel that is used is a law over the clusters."
        )
    cell = pool * number + own
    sizes = np.bincount(cell, minlength=(int(pool.max()) + 1) * number)
    # Whether every possible target has donors is checked before a draw: a refusal that depends on the draw would change its law.
    needs = np.zeros(len(sizes), dtype=np.bool_).reshape(-1, number)
    for at, law in np.unique(np.stack([pool, law_of], axis=1), axis=0):
        needs[at] |= entries[law] > 0
    if (needs.ravel() & (sizes == 0)).any():
        raise Refused(
            "cluster_donors: a channel sends rows to a cluster that has no rows in their pool; forbid that target."
        )
    choices = Choices.exact(entries, entries.argmax(axis=1).astype(np.int64))
    target = pool * number + choose(choices, law_of.astype(np.int64))
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return np.asarray(order[starts[target] + below(sizes[target])], dtype=np.int64)


def _naming(table: Ints, groups: Sequence[Ints]) -> float:
    """H(Ỹ), nats."""
    share = np.array([table[members].sum() for members in groups]) / table.sum()
    return float(-(share * np.log(share)).sum())


def _checked(counts: Ints, group_of: Ints) -> tuple[Ints, list[Ints]]:
    table, named = np.asarray(counts), np.asarray(group_of)
    if (
        table.ndim != 2
        or table.dtype.kind not in "iu"
        or not table.size
        or table.min() < 0
        or not table.any()
    ):
        raise SpecificationError("counts: whole numbers of shape (values, clusters), not all of them 0.")
    if named.shape != table.shape[:1] or named.dtype.kind not in "iu" or named.min() < 0:
        raise SpecificationError("group_of: a group, numbered from 0, for each value.")
    groups = [np.flatnonzero(named == g) for g in range(int(named.max()) + 1)]
    if any(not table[members].any() for members in groups):
        raise SpecificationError("group_of: every group from 0 to the last has rows.")
    return table.astype(np.int64), groups


def _codes(values: Ints, where: str) -> Ints:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found.size and found.min() < 0):
        raise SpecificationError(f"cluster_donors.{where}: a whole number from 0 for each row.")
    return found.astype(np.int64)
