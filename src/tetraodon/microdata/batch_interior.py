"""The obfuscation problem by a structured primal–dual interior point method, many blocks at a time.

Each block is a least leaking channel (``channels.interior`` has the derivation of the Newton system: a small factorisation
for each column, a Schur complement over the rows), and blocks meet in one scalar alone, the multiplier λ of the budget. With
t what is left of the budget, and for block g the use of the budget by the step with λ held still, u_g, and its fall for each unit of
λ, c_g, the step of a shared multiplier is

    δλ = (Σ_g u_g + target/λ − miss) / (Σ_g c_g + t/λ);

with a budget for each block the sums are of one term, and for a given λ, δλ = 0.

Invariant channels, Σ_c p(c) W(ĉ | c) = p(ĉ): the column's inverse Hessian D − D Pᵀ B P D is cut down to steps that leave
1ᵀ P δK_z alone, which only changes the small matrix: B + u uᵀ / (1ᵀ G u), u = (I − B G) 1, G = P D Pᵀ. It is made without
that difference, by 1 as one more column of N, the first to be eliminated, with nothing added on its diagonal. The column's multiplier is a constant added to θ[:, ĉ] (since Σ_y p(y | c) = 1), so the slack keeps its form (derived).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..channels.interior import _tangents
from ..channels.lower_bound import Floats, Ints
from .batches import Batch
from .blocks import Bools

REACH = 0.97  # share of the way to the border that a step may go
CORRECTIONS = 6
BLOCKED = 0.15  # a step shorter than that gives way to one towards the centre
CHUNK = 4_000_000  # numbers in one part of the Schur complement's factor
SMALL = 32  # rows up to which inverses of triangles are cheaper than calls


@dataclass(frozen=True, eq=False)
class Point:
    """One batch: channel, slack, classifier (with the multipliers of kept columns) and multipliers of the rows."""

    K: Floats
    S: Floats
    theta: Floats
    nu: Floats

    def only(self, keep: Ints) -> Point:
        return Point(self.K[keep], self.S[keep], self.theta[keep], self.nu[keep])

    def moved(self, step: Point, primal: Floats, dual: Floats) -> Point:
        a, b = primal[:, None, None], dual[:, None, None]
        return Point(
            self.K + a * step.K, self.S + b * step.S, self.theta + b * step.theta, self.nu + b[:, 0] * step.nu
        )


@dataclass(frozen=True, eq=False)
class Misses:
    """What is missing at a point: row sums, columns' shares (invariant channels), classifier; J and p of the point."""

    rows: Floats
    columns: Floats
    theta: Floats
    J: Floats
    p: Floats


@dataclass(frozen=True, eq=False)
class Half:
    """A step before the multiplier of the budget is known.

    Attributes:
        h, x: of the channel and of the rows.
        used: of the budget, (g,).
        first, inner: what ``Columns.whole`` goes on from.
    """

    h: Floats
    x: Floats
    used: Floats
    first: Floats = field(default_factory=lambda: np.empty(0))
    inner: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class Move:
    """A step of the channel, what goes with it for the rows, and, for kept columns, what the classifier's constants fall by."""

    K: Floats
    rows: Floats
    columns: Floats | None

    def __add__(self, other: Move) -> Move:
        more = None if self.columns is None or other.columns is None else self.columns + other.columns
        return Move(self.K + other.K, self.rows + other.rows, more)

    def where(self, pick: Bools, other: Move) -> Move:
        """Block by block of ``other`` unless ``pick``."""
        columns = (
            None
            if self.columns is None or other.columns is None
            else np.where(pick[:, None], self.columns, other.columns)
        )
        return Move(
            np.where(pick[:, None, None], self.K, other.K),
            np.where(pick[:, None], self.rows, other.rows),
            columns,
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """What all Newton systems of a batch at one point share."""

    D: Floats  # (g, rows, outputs): K / (p S)
    B: Floats  # (g, outputs, secrets, secrets)
    turn: Callable[[Floats], Floats]  # inverse of the Schur complement, on (g, rows)
    pushed: Floats  # P D price, (g, secrets, outputs)
    priced_rows: Floats
    solved_rows: Floats
    fall: Floats  # (g,)
    missed: Floats  # D times the gradient's part of the classifier's miss
    turned: Floats | None  # v = u / (1ᵀ G u), (g, secrets, outputs)
    turned_size: Floats | None  # 1 / (1ᵀ G u), (g, outputs)

    def half(self, batch: Batch, at: Point, miss: Misses, is_first: bool, target: Floats) -> Half:
        """The step towards K·S = K·S + target with λ held still; ``is_first``: classifiers miss what they do at the point."""
        h = target / at.S
        batch.masked(h)
        if is_first:
            h -= self.missed
        first = batch.P @ h
        inner = small(self.B, first)
        if self.turned is not None:
            inner -= self.turned * miss.columns[:, None, :]
        sums = h.sum(2) - np.einsum("gxw,gwx->gw", batch.P, self.D @ inner.transpose(0, 2, 1))
        x = self.turn(miss.rows - sums)
        used = np.einsum("gwz,gwz->g", batch.price, h) - np.einsum("gxz,gxz->g", self.pushed, inner)
        return Half(h, x, used + np.einsum("gw,gw->g", self.priced_rows, x), first, inner)

    def whole(self, batch: Batch, miss: Misses, part: Half, lam: Floats) -> Move:
        """The step, given that of the multiplier, (g,)."""
        P = batch.P
        y = part.x + self.solved_rows * lam[:, None]
        more = (P * y[:, None, :]) @ self.D
        more -= self.pushed * lam[:, None, None]
        K = P.transpose(0, 2, 1) @ (part.inner + small(self.B, more))
        np.subtract(y[:, :, None], K, out=K)
        K -= batch.price * lam[:, None, None]
        K *= self.D
        K += part.h
        if self.turned is None or self.turned_size is None:
            return Move(K, y, None)
        used = np.einsum("gxz,gxz->gz", self.turned, part.first + more)
        return Move(K, y, miss.columns * self.turned_size - used)


def tangents(miss: Misses) -> Floats:
    """(g, outputs, secrets, secrets − 1): N with N Nᵀ = diag(1/J) − 11ᵀ/p for each column of J."""
    n, secrets, outputs = miss.J.shape
    found = _tangents(miss.J.transpose(1, 0, 2).reshape(secrets, -1), miss.p.reshape(-1))
    return found.reshape(n, outputs, secrets, secrets - 1)


def factorise(batch: Batch, at: Point, miss: Misses, invariant: bool) -> Columns:
    """Woodbury for each column, one Schur complement over the rows for each block, and the budget's part."""
    P = batch.P
    n, secrets, rows = P.shape
    outputs = at.K.shape[2]
    D = at.K / at.S
    D *= batch.per_mass[:, :, None]
    batch.masked(D)
    N = tangents(miss)
    if batch.pairs is not None:
        G = (batch.pairs @ D).transpose(0, 2, 1).reshape(n, outputs, secrets, secrets)
    else:
        G = (P[:, None] * D.transpose(0, 2, 1)[:, :, None, :]) @ P.transpose(0, 2, 1)[:, None]
    turned = turned_size = None
    if invariant:
        total = G.sum((2, 3))
        unit = 1.0 / np.sqrt(np.where(total > 0, total, 1.0))
        ones = np.repeat(unit[:, :, None, None], secrets, axis=2)
        N = np.concatenate([ones, N], axis=3)
    NT = N.transpose(0, 1, 3, 2)
    T = NT @ (G @ N)
    rank = T.shape[2]
    index = np.arange(rank - secrets + 1, rank)
    size = np.trace(T, axis1=2, axis2=3)
    T[:, :, index, index] += 1.0 + 1e-14 * size[:, :, None]
    if invariant:
        T[:, :, 0, 0] = 1.0
    low = np.linalg.cholesky(T)
    R = np.linalg.solve(low, NT)  # (g, outputs, rank, secrets)
    B = R.transpose(0, 1, 3, 2) @ R
    if invariant:
        first = np.linalg.solve(low, np.eye(rank)[:, :1])[..., 0]
        turned = np.einsum("gzr,gzrx->gxz", first, R) * unit[:, None, :]
        turned_size = np.einsum("gzr,gzr->gz", first, first) * unit**2
    schur = np.zeros((n, rows, rows))
    part = max(CHUNK // (n * rows * max(rank, 1)), 1)
    PT = P.transpose(0, 2, 1)
    for start in range(0, outputs, part):
        cut = slice(start, start + part)
        Y = PT @ R[:, cut].reshape(n, -1, secrets).transpose(0, 2, 1)
        wide = Y.reshape(n, rows, D[:, :, cut].shape[2], rank)
        wide *= D[:, :, cut, None]
        Y = wide.reshape(n, rows, -1)
        schur -= Y @ Y.transpose(0, 2, 1)
    sums = D.sum(2)
    sums[batch.mass <= 0] = 1.0
    here = np.arange(rows)
    schur[:, here, here] += sums * (1 + 1e-13)
    if invariant:
        # The sums of all rows and of all columns are one thing said twice: the matrix takes the rows' masses to 0. Its diagonal,
        # the difference of numbers much larger than itself, is had from that without loss.
        schur[:, here, here] = 0.0
        sums = np.maximum(-np.einsum("gvw,gw->gv", schur, batch.mass) * batch.per_mass, 0.0)
        sums[batch.mass <= 0] = 1.0
        schur[:, here, here] = sums
        unit = batch.mass / np.sqrt(np.einsum("gw,gw->g", batch.mass, batch.mass))[:, None]
        schur += sums.mean(1)[:, None, None] * unit[:, :, None] * unit[:, None, :]
    turn = inverse(schur, sums)
    priced = D * batch.price
    pushed = P @ priced
    inner = small(B, pushed)
    priced -= D * (PT @ inner)
    priced_rows = priced.sum(2)
    solved_rows = turn(priced_rows)
    fall = np.einsum("gwz,gwz->g", batch.price, priced) - np.einsum("gw,gw->g", priced_rows, solved_rows)
    missed = D * (PT @ miss.theta)
    return Columns(D, B, turn, pushed, priced_rows, solved_rows, fall, missed, turned, turned_size)


def inverse(schur: Floats, sums: Floats) -> Callable[[Floats], Floats]:
    """The inverse of symmetric matrices (g, rows, rows), with a little more on the diagonal where rounding made one indefinite."""
    import scipy.linalg as linalg

    _n, rows = sums.shape
    here = np.arange(rows)
    for extra in (0.0, 1e-10, 1e-7, 1e-4):
        schur[:, here, here] += extra * sums
        try:
            if rows <= SMALL:
                low = np.linalg.inv(np.linalg.cholesky(schur))
                high = low.transpose(0, 2, 1)
                return lambda b: (high @ (low @ b[:, :, None]))[:, :, 0]
            factors = [linalg.cho_factor(one, check_finite=False) for one in schur]
        except np.linalg.LinAlgError:
            continue
        return lambda b: np.stack(
            [linalg.cho_solve(f, v, check_finite=False) for f, v in zip(factors, b, strict=True)]
        )
    raise np.linalg.LinAlgError


def small(B: Floats, values: Floats) -> Floats:
    """B applied column by column of (g, secrets, outputs)."""
    found: Floats = (B @ values.transpose(0, 2, 1)[..., None])[..., 0].transpose(0, 2, 1)
    return found


def finished(batch: Batch, miss: Misses, move: Move, lam: Floats) -> Point:
    """The step of the dual side too."""
    J = batch.P @ move.K
    theta = J / miss.J
    theta -= (J.sum(1) / miss.p)[:, None, :]
    theta += miss.theta
    if move.columns is not None:
        theta -= move.columns[:, None, :]
    nu = move.rows * batch.per_mass
    S = batch.given.transpose(0, 2, 1) @ theta
    S += batch.cost * lam[:, None, None]
    S -= nu[:, :, None]
    batch.masked(S)
    return Point(move.K, S, theta, nu)


def room(change: Floats) -> Floats:
    """(g,): the longest step that leaves something of all that it changes by these shares."""
    found: Floats = -1.0 / np.minimum(change.reshape(len(change), -1).min(1), -1e-9)
    return found
