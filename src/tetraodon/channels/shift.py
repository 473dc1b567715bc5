r"""A law that moves every cell of a grid by the same random offset and stops at the border.

On a grid of r × c cells the output of cell (a, b) is (clamp(a + I, 0, r − 1), clamp(b + J, 0, c − 1)) with one law of the
offset (I, J) for all cells. Whatever lies farther out than r − 1 rows or c − 1 columns ends at the border from every cell,
so that offsets from −(r − 1) to r − 1 and −(c − 1) to c − 1 say everything, if the outermost ones carry all the mass from
there on. The law of 65,536 cells is then a table of 261,121 numbers instead of 4·10^9.

*States.* Seen along one axis, an output inside is reached by one offset ("point"), the low border from cell a by every
offset ≤ −a ("lower"), the high border by every offset ≥ r − 1 − a ("upper"). Summing the offset table along both axes gives
one number for each pair of states, in all about 16 r c, and these are all the probabilities of the channel there are.

*Loss.* For cells an offset δ apart, the states that one output has from both are again δ apart and of one kind, so the
largest |ln P(z | a) − ln P(z | b)| over all pairs of cells δ apart is found by comparing each of nine tables with itself,
moved by δ.

Exactness is that of ``Table``: entries are dyadic rationals, the largest one stands for 1 − Σ of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import fsum, inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from ..errors import SpecificationError, Unsupported
from ..metrics import L1, L2, Discrete
from .bounds import Bounds
from .geometry import Floats, Geometry, distances
from .states import States, clamped, fast_length
from .table import CHUNK, LEAST

SPHERICAL = 2**30
# Comparisons of states that are worth making; beyond, the promise of the law's construction answers.
DIRECT = 2**29
UNIT = 2.0**-53


@dataclass(frozen=True)
class Promise:
    """What the construction of a law proves of it: |ln P(z | a) − ln P(z | b)| ≤ rate·distance(a, b) + spread for every z.

    Attributes:
        kind: the construction (``planar.KINDS``).
        rate: per unit of length.
        steps: sides of a cell.
        spread: what rounding adds.
    """

    kind: str
    rate: Fraction
    steps: tuple[Fraction, Fraction]
    spread: float

    def spec(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "rate": str(self.rate),
            "steps": [str(s) for s in self.steps],
            "spread": self.spread,
        }


@dataclass(frozen=True, eq=False)
class Shift:
    """A translation-invariant law on a grid, clamped to it.

    Attributes:
        entries: float64, shape (2r − 1, 2c − 1), read-only: the law of the offset, offset (0, 0) in the middle, all mass
            farther out at the outermost offsets.
        rest: which entry, counted row by row, is exactly 1 − Σ of the others; the table holds that number's nearest double.
        fixed: how many special cells follow the grid's own; each comes out as it is.
        promise: what its construction proves, if anything.

    >>> law = Shift.of([[0.25, 0.5, 0.25]])
    >>> law.rows(np.array([0, 1])).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    entries: Floats
    rest: int
    fixed: int = 0
    promise: Promise | None = None

    moves_by_offsets = True

    @staticmethod
    def of(entries: object, fixed: int = 0, promise: Promise | None = None, rest: int | None = None) -> Shift:
        """The law nearest to a table of offsets that sums to 1 nearly.

        Raises:
            SpecificationError: a table without a middle, entries that are not positive numbers, a sum that is not 1.
        """
        told: Floats = np.array(entries, dtype=np.float64)
        if told.ndim != 2 or not told.size or not (told.shape[0] % 2 and told.shape[1] % 2):
            raise SpecificationError("channel: a table of offsets has odd numbers of rows and columns.")
        if not np.isfinite(told).all() or told.min() < LEAST:
            raise SpecificationError(
                "channel: every offset needs a positive probability that keeps its digits."
            )
        at = int(told.argmax()) if rest is None else rest
        flat = told.reshape(-1)
        if not 0 <= at < told.size or abs(told.sum() - 1) > 1e-6:
            raise SpecificationError("channel: the probabilities of the offsets must sum to 1.")
        flat[at] = -1.0
        flat[at] = -fsum(flat.tolist())  # correctly rounded
        if flat[at] <= 0:
            raise SpecificationError("channel: the probabilities of the offsets exceed 1.")
        told.flags.writeable = False
        return Shift(told, at, fixed, promise)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        return (self.entries.shape[0] + 1) // 2, (self.entries.shape[1] + 1) // 2

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return prod(self.shape) + self.fixed

    @property
    def n_outputs(self) -> int:
        """Number of outputs, the inputs themselves."""
        return self.n_inputs

    def exact(self) -> list[list[Fraction]]:
        """The law of the offset, exactly."""
        found = [Fraction(v) for v in self.entries.ravel().tolist()]
        found[self.rest] = Fraction(0)
        found[self.rest] = 1 - sum(found, Fraction(0))
        width = self.entries.shape[1]
        return [found[i : i + width] for i in range(0, len(found), width)]

    @cached_property
    def _axes(self) -> tuple[States, States]:
        return States(self.shape[0]), States(self.shape[1])

    @cached_property
    def states(self) -> Floats:
        """Shape (row states, column states): every probability of the channel."""
        rows, columns = self._axes
        return columns.sums(rows.sums(self.entries, 0), 1)

    def rows(self, cells: Ints) -> Floats:
        told = np.asarray(cells, dtype=np.int64)
        grid = prod(self.shape)
        found = np.zeros((len(told), self.n_outputs))
        inside = told < grid
        a, b = np.divmod(told[inside], self.shape[1])
        rows, columns = self._axes
        table = self.states[rows.seen(a)[:, :, None], columns.seen(b)[:, None, :]]
        found[inside, :grid] = table.reshape(len(a), grid)
        found[~inside, told[~inside]] = 1.0
        return found

    def push(self, joint: Floats) -> Floats:
        """Σ_w joint[x, w] P(z | w) by fast Fourier transforms; each entry is off by 10^-15 of its row's sum or so."""
        told = np.asarray(joint, dtype=np.float64)
        (r, c), grid = self.shape, prod(self.shape)
        found = np.zeros((len(told), self.n_outputs))
        found[:, grid:] = told[:, grid:]
        size = fast_length(3 * r - 2), fast_length(3 * c - 2)
        kernel = np.fft.rfft2(self.entries, size)
        step = max(1, CHUNK // prod(size))
        for at in range(0, len(told), step):
            part = told[at : at + step, :grid].reshape(-1, r, c)
            # Clamping is linear, so rows are clamped before the columns are transformed back.
            waves = np.fft.fft(np.fft.rfft(part, size[1], axis=2), size[0], axis=1)
            waves *= kernel
            rows = clamped(np.fft.ifft(waves, axis=1)[:, : 3 * r - 2], r, 1)
            inside = clamped(np.fft.irfft(rows, size[1], axis=2)[:, :, : 3 * c - 2], c, 2)
            found[at : at + step, :grid] = np.maximum(inside, 0.0).reshape(len(part), grid)
        return found

    def costs(self, cost: Floats) -> Floats:
        """Shape (r, c): Σ_z P(z | w) cost(z − w) of every cell w, for a cost of the offset, shape (2r − 1, 2c − 1).

        By cumulative sums over the states: work and memory grow with the number of cells, not with its square.
        """
        rows, columns = self._axes
        weighted = self.states * cost[np.ix_(rows.offsets, columns.offsets)]
        return columns.totals(rows.totals(weighted, 0), 1)

    def expected(self, prior: Floats, metric: object, place: Geometry) -> float:
        grid = prod(self.shape)
        if metric is None or isinstance(metric, L1 | L2 | Discrete):
            weights = np.asarray(prior, dtype=np.float64)[:grid].reshape(self.shape)
            return float((self.costs(self.offset_costs(metric, place)) * weights).sum())
        table = distances(metric, place.domain) if isinstance(metric, np.ndarray) else None
        held = np.flatnonzero(prior)
        if table is None and len(held) * grid > SPHERICAL:
            raise Unsupported(
                "distortion: of great circles on up to 32,768 cells; use td.L2(), or coarser cells."
            )
        total, step, outputs = 0.0, max(1, CHUNK // self.n_outputs), np.arange(self.n_outputs)
        for at in range(0, len(held), step):
            cells = held[at : at + step]
            cost = place.between(metric, cells[:, None], outputs) if table is None else table[cells]  # type: ignore[arg-type]
            total += float(np.einsum("w,wz,wz->", prior[cells], self.rows(cells), cost))
        return total

    def offset_costs(self, metric: L1 | L2 | Discrete | None, place: Geometry) -> Floats:
        """Shape (2r − 1, 2c − 1): the distance that each offset spans."""
        (r, c), names = self.shape, place.domain.names
        d, k = np.abs(np.arange(1 - r, r))[:, None], np.abs(np.arange(1 - c, c))[None, :]
        if isinstance(metric, Discrete):
            return np.asarray((d + k) > 0, dtype=np.float64)
        place.between(metric, np.array([0]), np.array([0]))  # whether the metric fits
        weight = dict(metric.weights) if metric is not None else {}
        told = [float(weight.get(n, Fraction(1))) for n in (names[0], names[-1])]
        d, k = d * float(place.steps[0]) * told[0], k * float(place.steps[1]) * told[1]
        return np.asarray(d + k if isinstance(metric, L1) else np.sqrt(d * d + k * k))

    def losses(self, a: Ints, b: Ints) -> Floats:
        grid, columns = prod(self.shape), self.shape[1]
        first, second = np.broadcast_arrays(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))
        special = (first >= grid) | (second >= grid)
        apart = np.stack([second // columns - first // columns, second % columns - first % columns], axis=-1)
        told = self.losses_of(np.where(special[..., None], 0, apart))
        return np.where(first == second, 0.0, np.where(special, inf, told))

    def losses_of(self, offsets: Ints) -> Floats:
        """For offsets, shape (n, 2): the largest |ln P(z | a) − ln P(z | b)| over cells that far apart and outputs z, rounded up.

        Where so many comparisons would take long, the promise of the construction (a little more) answers instead.
        """
        told = np.asarray(offsets, dtype=np.int64)
        turn = (told[:, 0] < 0) | ((told[:, 0] == 0) & (told[:, 1] < 0))
        told = np.where(turn[:, None], -told, told)  # the loss of −δ is that of δ
        width = 2 * self.shape[1]
        each, back = np.unique(told[:, 0] * width + told[:, 1] + self.shape[1], return_inverse=True)
        d, k = each // width, each % width - self.shape[1]
        promised = self._promised(d, k)
        if self.promise is None or len(each) * self.states.size <= DIRECT:
            pairs = zip(d.tolist(), k.tolist(), strict=True)
            direct = np.array([self._loss(i, j) for i, j in pairs]).reshape(-1) + self.margin
            promised = np.minimum(promised, direct)
        promised[(d == 0) & (k == 0)] = 0.0
        return np.asarray(promised[back.reshape(-1)])

    def _promised(self, d: Ints, k: Ints) -> Floats:
        if self.promise is None:
            return np.full(len(d), inf)
        # The products, squares, sum and root below are right to 8 units of rounding together.
        rows, columns = (n * float(s) for n, s in zip((d, k), self.promise.steps, strict=True))
        length = np.sqrt(rows * rows + columns * columns)
        return np.asarray(length * float(self.promise.rate) * (1 + 16 * UNIT) + self.promise.spread)

    @cached_property
    def _logs(self) -> tuple[Floats, ...]:
        rows, columns = self._axes
        logs = np.log(self.states)
        return tuple(np.ascontiguousarray(logs[i, j]) for i in rows.kinds for j in columns.kinds)

    @cached_property
    def margin(self) -> float:
        """More than what a difference of logarithms of states can be off: sums of positive doubles along both axes, each right to
        one unit for every term, and two logarithms right to two units in the last place."""
        largest = float(-np.log(self.states.min()))
        return 2 * (sum(self.entries.shape) + 8 + 4 * largest) * UNIT

    def _loss(self, d: int, k: int) -> float:
        most = 0.0
        for logs in self._logs:
            if d >= logs.shape[0] or abs(k) >= logs.shape[1]:
                continue
            lower = logs[: logs.shape[0] - d]
            upper = logs[d:]
            lower, upper = (
                (lower[:, :-k], upper[:, k:]) if k > 0 else (lower[:, -k:], upper[:, : upper.shape[1] + k])
            )
            apart = upper - lower
            most = max(most, float(apart.max()), -float(apart.min()))
        return most

    def keeps(self, bounds: Bounds) -> bool:
        """Whether every pair is within its bound, by certified upper bounds of the losses (which have room to spare)."""
        return bool((self.losses(bounds.first, bounds.second) <= bounds.losses).all())

    @cached_property
    def _choices(self) -> Any:
        from .._choices import Choices

        return Choices.exact(self.entries.reshape(1, -1), np.array([self.rest], dtype=np.int64))

    def draw(self, cells: Ints) -> Ints:
        from ..noise import choose

        told = np.asarray(cells, dtype=np.int64)
        (r, c), grid = self.shape, prod(self.shape)
        # A grid has at most 2^22 cells and four times as many offsets; dividing shorter numbers is several times quicker.
        drawn = choose(self._choices, np.zeros(len(told), dtype=np.int64)).astype(np.int32)
        place = told.astype(np.int32)
        wide, broad = np.int32(2 * c - 1), np.int32(c)
        down, a = drawn // wide, place // broad
        along, b = drawn - down * wide, place - a * broad
        moved = np.clip(a + down - (r - 1), 0, r - 1) * broad + np.clip(b + along - (c - 1), 0, c - 1)
        return np.where(told < grid, moved.astype(np.int64), told)

    def spec(self) -> dict[str, Any]:
        made = None if self.promise is None else self.promise.spec()
        return {"law": "shift", "rest": self.rest, "fixed": self.fixed, "made": made}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"entries": self.entries}

    @staticmethod
    def read(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Shift:
        """The law that ``spec`` and ``arrays`` wrote. What its construction promises is believed only if the construction,
        done again, gives the same numbers.

        Raises:
            SpecificationError: the numbers are not those of the construction.
        """
        found = Shift.of(arrays["entries"], int(spec["fixed"]), rest=int(spec["rest"]))
        made = spec["made"]
        if made is None:
            return found
        from .planar import ERROR, again

        steps, error = tuple(map(Fraction, made["steps"])), max(float(made["spread"]) / 2, ERROR)
        law = again(made["kind"], Fraction(made["rate"]), steps, found.shape, error=error)
        if law.promise is None or not np.allclose(found.entries, law.entries, rtol=1e-13, atol=0.0):
            raise SpecificationError("channel: the law is not the one that its construction gives.")
        return Shift(found.entries, found.rest, found.fixed, law.promise)

    def __repr__(self) -> str:
        told = "" if self.promise is None else f", {self.promise.kind} of rate {float(self.promise.rate):.6g}"
        return f"Shift({self.shape[0]} × {self.shape[1]} cells{told})"
