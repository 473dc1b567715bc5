"""Distances over several attributes at once: two cells are joined iff their least weighted distance is at most θ.

Between two cells each attribute contributes the least distance of its own values; a star (``other``, a secret missing cell)
is at distance 0 from every cell of its attribute, as under every threshold. The sum over attributes (L1), or the sum of
squares (L2), is compared with the threshold in integers: cost(k) = f·(nearest + (k − 1)·step)^p + open for cells k ≥ 1
apart, with f one more than the number of attributes, so that the ``open`` marks of half-open cells, whose distance is only
approached, turn "≤" into "<" and never change anything else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm, prod

import numpy as np

from .axes import Axis, Bools, Ints
from .errors import Unsupported
from .numeric import Spacing

BITS = 61
MAX_WORK = 200_000_000
MAX_STEPS = 200_000
MAX_LISTED = 200_000_000
TOO_FAR = (
    "distance: too many cells lie between these two for several attributes at once; declare coarser cells."
)


@dataclass(frozen=True, eq=False)
class Side:
    """What one attribute contributes.

    Attributes:
        axis: its graph alone: the same threshold, nothing else changes.
        nearest, step, is_open: its ``Spacing``, weighted, in whole units.
        power: 1 or 2.
        factor: f above.
    """

    axis: Axis
    nearest: int
    step: int
    is_open: bool
    power: int
    factor: int

    def spent(self, k: int) -> int:
        """Cost of ordinary cells k apart."""
        return self.factor * (self.nearest + (k - 1) * self.step) ** self.power + self.is_open if k else 0

    def cost(self, x: Ints, y: Ints) -> Ints:
        """Cost of two cells; −1 where they are farther apart than the threshold on this attribute alone."""
        ordinary = (x < self.axis.base) & (y < self.axis.base)
        near = np.abs(x - y) <= self.axis.window
        k = np.where(ordinary & near, np.abs(x - y), 0)
        told = self.factor * (self.nearest + (k - 1) * self.step) ** self.power + self.is_open
        apart = np.where(ordinary, ~near, ~self.axis.joined(x, y)) & (x != y)
        return np.where(apart, -1, np.where(k == 0, 0, told))

    def reach(self, room: int) -> int:
        """The largest k whose cost is at most ``room`` (not negative)."""
        value = (room - self.is_open) // self.factor
        if value < self.nearest:
            return 0
        value = isqrt(value) if self.power == 2 else value
        return min((value - self.nearest) // self.step + 1, self.axis.window) if value >= self.nearest else 0


@dataclass(frozen=True, eq=False)
class Ball:
    """A graph over the cells of several attributes.

    Attributes:
        shape: cells of each attribute.
        sides: one per attribute; None where no edge changes the attribute.
        budget: the threshold in the unit of the costs.
    """

    shape: tuple[int, ...]
    sides: tuple[Side | None, ...]
    budget: int

    def joined(self, x: Sequence[Ints], y: Sequence[Ints]) -> Bools:
        """Elementwise, for one array of cells per attribute."""
        total: Ints | int = 0
        moved: Bools | bool = False
        apart: Bools | bool = False
        for side, a, b in zip(self.sides, x, y, strict=True):
            moved = moved | (a != b)
            if side is None:
                apart = apart | (a != b)
            else:
                cost = side.cost(a, b)
                apart = apart | (cost < 0)
                total = total + np.maximum(cost, 0)
        return np.asarray(moved & np.logical_not(apart) & (total <= self.budget), dtype=bool)

    def distance(self, x: Sequence[int], y: Sequence[int]) -> int | None:
        """Hops from x to y.

        A shortest path can be straightened: steps against the direction of the goal are left out and steps beyond it
        shortened, attribute by attribute, which lowers their cost; so hops depend on the offsets alone, without regard to
        the domain's ends. A star costs nothing, but a path through one takes two hops.
        """
        direct: list[tuple[Side, int]] = []
        around: list[tuple[Side, int]] = []
        least = 0
        for side, a, b in zip(self.sides, x, y, strict=True):
            if a == b:
                continue
            if side is None:
                return None
            base, stars = side.axis.base, side.axis.stars
            ends = [stars[c - base] for c in (a, b) if c >= base]
            if False in ends:
                return None
            least = 1
            if not ends:
                direct.append((side, abs(a - b)))
                if True not in stars:
                    around.append((side, abs(a - b)))
        if len(around) < len(direct) and self._fits(direct):
            return 1
        hops = self._hops(around)
        return None if hops is None else max(least + (len(around) < len(direct)), hops)

    def _fits(self, moves: Sequence[tuple[Side, int]]) -> bool:
        if any(k > side.axis.window for side, k in moves):
            return False
        return sum(side.spent(k) for side, k in moves) <= self.budget

    def _hops(self, moves: list[tuple[Side, int]]) -> int | None:
        """The least number of steps, each within the budget, that add up to these offsets."""
        if not moves:
            return 0
        if any(side.axis.window == 0 for side, _ in moves):
            return None
        if len(moves) == 1:
            return -(-moves[0][1] // moves[0][0].axis.window)
        if self._fits(moves):
            return 1
        first = moves[0][0]
        if first.power == 1 and all(
            (s.nearest, s.step, s.is_open) == (first.step, first.step, False) for s, _ in moves
        ):
            # Every unit of every attribute costs the same: steps are filled one after another.
            return -(-sum(k for _, k in moves) // (self.budget // (first.factor * first.step)))
        moves = sorted(moves, key=lambda move: move[1])
        (last, goal), rest = moves[-1], moves[:-1]
        steps = [range(min(k, s.axis.window) + 1) for s, k in rest]
        if prod(map(len, steps)) > MAX_STEPS:
            raise Unsupported(TOO_FAR)
        offsets = []
        for o in itertools.product(*steps):
            spent = sum(s.spent(v) for (s, _), v in zip(rest, o, strict=True))
            if spent <= self.budget:
                offsets.append((o, last.reach(self.budget - spent)))
        shape = tuple(k + 1 for _, k in rest)
        far = np.full(
            shape, -1, dtype=np.int64
        )  # the largest offset of the last attribute; −1: not reached yet
        far[(0,) * len(rest)] = 0
        work = hops = 0
        while far.flat[-1] < goal:
            work += len(offsets) * far.size
            if work > MAX_WORK:
                raise Unsupported(TOO_FAR)
            reached = far.copy()
            for offset, gain in offsets:
                source = far[tuple(slice(0, n - o) for n, o in zip(shape, offset, strict=True))]
                target = reached[tuple(slice(o, None) for o in offset)]
                np.maximum(target, np.where(source >= 0, source + gain, -1), out=target)
            far, hops = reached, hops + 1
        return hops

    def edges(self, chunk: int) -> Iterator[tuple[Ints, Ints]]:
        """Every edge once, smaller cell first, numbered row-major."""
        moves = [_moves(side, n) for side, n in zip(self.sides, self.shape, strict=True)]
        if prod(map(len, moves)) * prod(self.shape) > MAX_LISTED:
            raise Unsupported("this secret graph has too many edges to list; use coarser cells.")
        zero = np.zeros(1, dtype=np.int64)
        for a, b in self._combined(moves, 0, 0, zero, zero):
            kept = a < b
            a, b = a[kept], b[kept]
            for at in range(0, len(a), chunk):
                yield a[at : at + chunk], b[at : at + chunk]

    def _combined(
        self, moves: list[list[tuple[int, Ints, Ints]]], at: int, spent: int, a: Ints, b: Ints
    ) -> Iterator[tuple[Ints, Ints]]:
        if at == len(moves):
            yield a, b
            return
        for cost, x, y in moves[at]:
            if spent + cost <= self.budget:
                wider = [(c[:, None] * self.shape[at] + v[None, :]).ravel() for c, v in ((a, x), (b, y))]
                yield from self._combined(moves, at + 1, spent + cost, wider[0], wider[1])


def _moves(side: Side | None, n: int) -> list[tuple[int, Ints, Ints]]:
    """Every pair of cells of an attribute that an edge may hold, both ways, grouped by cost."""
    cells = np.arange(n, dtype=np.int64)
    listed = [(0, cells, cells)]
    if side is None:
        return listed
    base = side.axis.base
    for k in range(1, side.axis.window + 1):
        cost, low = side.spent(k), cells[: base - k]
        listed += [(cost, low, low + k), (cost, low + k, low)]
    stars = [np.stack(e) for e in Axis(base, stars=side.axis.stars).edges()]
    return listed + [(0, *e) for e in stars] + [(0, e[1], e[0]) for e in stars]


def ball(
    shape: tuple[int, ...],
    spacings: Sequence[tuple[Spacing | None, int, tuple[bool, ...]]],
    theta: Fraction,
    power: int,
) -> Ball:
    """The graph of a threshold.

    Args:
        shape: cells of each attribute.
        spacings: for each attribute its weighted spacing (None if it is not part of the distance: only its stars have
            edges), how many ordinary cells it has and its stars.
        theta: the threshold.
        power: 1 for L1, 2 for L2.

    Costs are exact where 61 bits suffice; otherwise distances are rounded down, so that more cells are joined, by less
    than 2^-28 of the threshold.
    """
    told = [s for s, _, _ in spacings if s is not None]
    factor = 1 + len(told)
    # No distance is larger than this, and smaller numbers stay exact.
    theta = min(
        theta, 1 + sum((s.nearest + s.step * n for s, n, _ in spacings if s is not None), Fraction(0))
    )
    unit = Fraction(1, lcm(theta.denominator, *(v.denominator for s in told for v in (s.nearest, s.step))))
    if factor * (theta / unit) ** power >= 2**BITS:
        unit = theta / 2 ** ((BITS - factor.bit_length()) // power)
    limit = int(theta / unit)
    budget = factor * limit**power
    sides: list[Side | None] = []
    for space, n, stars in spacings:
        if space is None:
            alone = Side(Axis(n, stars=stars), limit + 1, limit + 1, False, power, factor)
            sides.append(alone if True in stars else None)
            continue
        # Beyond the threshold a distance is as good as infinite.
        nearest, step = (min(int(v / unit), limit + 1) for v in (space.nearest, space.step))
        if not step:
            raise Unsupported(
                "Within: so many cells lie within the threshold that they cannot be told apart; declare coarser cells."
            )
        room = (budget - space.is_open) // factor
        room = isqrt(room) if power == 2 and room >= 0 else room
        window = 0 if room < nearest else min((room - nearest) // step + 1, n - 1)
        sides.append(Side(Axis(n, window=window, stars=stars), nearest, step, space.is_open, power, factor))
    return Ball(shape, tuple(sides), budget)
