"""The likeliest law of inputs behind the outputs of a channel (iterative Bayesian update), with a bound on what is missing.

Of m_z outputs z the log-likelihood of a law θ of inputs is L(θ) = Σ_z m_z ln (θK)_z, concave in θ. The update

    θ'_w = θ_w g_w / N,   g_w = Σ_z K[w, z] m_z / (θK)_z,   N = Σ m

never lowers it (Agrawal and Aggarwal 2001; ElSalamouny and Palamidessi 2020). Concavity gives L(θ*) − L(θ) ≤ max_w g_w − N for
every θ* [derived: L(θ*) − L(θ) ≤ g·(θ* − θ), g·θ = N]: that is the gap, in nats, at which it stops. Two updates are
extrapolated along their difference (Varadhan and Roland 2008), and the extrapolation is kept only where it raises L.

The update is slow near the end where the channel blurs much. ``central`` solves the same problem by an interior point, in ten
steps or so, each as dear as inverting a matrix: for a few thousand values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from .channel import Channel
from .geometry import MAX_ENTRIES, Floats
from .shift import Shift
from .table import Table

# Below, a probability counts as 0.
LEAST = 1e-300


class Operator(Protocol):
    """A channel as a linear map and its transpose."""

    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...

    def push(self, law: Floats) -> Floats:
        """Σ_w law[w] K[w, z], shape (outputs,)."""

    def pull(self, value: Floats) -> Floats:
        """Σ_z K[w, z] value[z], shape (inputs,)."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A channel held as rows, which several inputs may share."""

    entries: Floats
    columns: Ints
    row_of: Ints
    n_outputs: int

    @property
    def n_inputs(self) -> int:
        return len(self.row_of)

    def push(self, law: Floats) -> Floats:
        found = np.zeros(self.n_outputs)
        found[self.columns] = np.bincount(self.row_of, law, minlength=len(self.entries)) @ self.entries
        return found

    def pull(self, value: Floats) -> Floats:
        return np.asarray((self.entries @ value[self.columns])[self.row_of])


@dataclass(frozen=True, eq=False)
class Moves:
    """A translation-invariant law, clamped to its grid, by fast Fourier transforms."""

    law: Shift

    @property
    def n_inputs(self) -> int:
        return self.law.n_inputs

    @property
    def n_outputs(self) -> int:
        return self.law.n_outputs

    def push(self, law: Floats) -> Floats:
        return np.asarray(self.law.push(law[None])[0])

    def pull(self, value: Floats) -> Floats:
        (r, c), grid = self.law.shape, prod(self.law.shape)
        # What lies outside is the border cell's: the value of the output that an offset ends at.
        wide = np.pad(value[:grid].reshape(r, c), ((r - 1, r - 1), (c - 1, c - 1)), mode="edge")
        size = wide.shape
        turned = self.law.entries[::-1, ::-1]
        product = np.fft.irfft2(np.fft.rfft2(wide, size) * np.fft.rfft2(turned, size), size)
        found = value.copy()
        found[:grid] = np.maximum(product[2 * r - 2 :, 2 * c - 2 :], 0.0).reshape(-1)
        return found


def operator_of(channel: Channel | Table) -> Operator:
    """The channel as a map, held as small as its law allows.

    Raises:
        Unsupported: a law that must be written out as a matrix of more than 2^24 entries.
    """
    law = channel.law if isinstance(channel, Channel) else channel
    if isinstance(law, Table):
        return Rows(law.entries, law.columns, law.row_of, law.n_outputs)
    if isinstance(law, Shift):
        return Moves(law)
    if law.n_inputs * law.n_outputs > MAX_ENTRIES:
        raise Unsupported("estimate: a composed channel of more than 2^24 entries; declare coarser cells.")
    inputs, outputs = np.arange(law.n_inputs), np.arange(law.n_outputs)
    return Rows(law.rows(inputs), outputs, inputs, law.n_outputs)


@dataclass(frozen=True, eq=False)
class Likeliest:
    """Where the update stopped.

    Attributes:
        law: shape (inputs,), sums to 1.
        log_likelihood: Σ m ln(θK), nats.
        gap: nats by which the largest log-likelihood may exceed it.
        path: log-likelihood after each round; of the update it never falls.
    """

    law: Floats
    log_likelihood: float
    gap: float
    path: tuple[float, ...]


def likeliest(channel: Operator, counts: Floats, start: Floats, gap: float, most: int) -> Likeliest:
    """The law of inputs that makes the counted outputs likeliest, from ``start``, to within ``gap`` nats or ``most`` rounds.

    Args:
        counts: shape (outputs,), not all 0; outputs that occur have positive probability under ``start``.
        start: shape (inputs,), a law; inputs at 0 stay there.
    """
    rows = float(counts.sum())
    seen = counts > 0

    def value(pushed: Floats) -> float:
        return float(counts[seen] @ np.log(np.maximum(pushed[seen], LEAST)))

    def slope(pushed: Floats) -> Floats:
        return channel.pull(np.divide(counts, pushed, out=np.zeros_like(counts), where=seen & (pushed > 0)))

    def step(law: Floats, along: Floats) -> Floats:
        raised = law * along
        return np.asarray(raised / raised.sum())

    law, allowed = start, start > 0
    pushed = channel.push(law)
    level, path = value(pushed), [value(pushed)]
    missing = np.inf
    for _ in range(most):
        along = slope(pushed)
        missing = max(0.0, float(along[allowed].max()) - rows)
        if missing <= gap:
            break
        first = step(law, along)
        second = step(first, slope(channel.push(first)))
        r, v = first - law, second - 2 * first + law
        size = float(np.sqrt((v * v).sum()))
        origin, law, pushed = law, second, channel.push(second)
        level = value(pushed)
        if size > 0:
            length = max(1.0, float(np.sqrt((r * r).sum())) / size)
            far = np.maximum(origin + 2 * length * r + length * length * v, second * 1e-3)
            far = far / far.sum()
            reached = channel.push(far)
            if value(reached) > level:
                law, pushed, level = far, reached, value(reached)
        path.append(level)
    return Likeliest(law, level, missing, tuple(path))


def central(matrix: Floats, counts: Floats, gap: float, most: int = 60) -> Likeliest:
    """The same by a primal-dual interior point, for a channel written out.

    Minimises −Σ (m/N) ln(θK) + Σ θ over θ ≥ 0, whose optimum sums to 1 by itself: θ·g/N = 1 for every θ, and g ≤ N at the
    optimum. With s = 1 − g/N ≥ 0 its dual, Newton steps on θ s = μ with a corrector (Mehrotra 1992), H = K diag(m/p²)Kᵀ/N +
    diag(s/θ). Where many laws are equally likely it goes to the middle of them.

    Args:
        matrix: shape (inputs, outputs).
        counts: shape (outputs,), not all 0; outputs that occur can.
        gap, most: nats, and steps, at which to stop.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    rows, seen = float(counts.sum()), counts > 0
    k, m = np.ascontiguousarray(matrix[:, seen]), counts[seen] / rows
    n = len(k)
    law, dual = np.full(n, 1 / n), np.zeros(0)
    best, path = Likeliest(law, -np.inf, np.inf, ()), []
    for _ in range(most):
        p = law @ k
        g, whole = k @ (m / p), law.sum()
        missing = rows * max(float(g.max()) * whole - 1, 0.0)
        path.append(rows * float(m @ np.log(p / whole)))
        if missing < best.gap:
            best = Likeliest(law / whole, path[-1], missing, ())
        if missing <= gap:
            break
        dual = dual if len(dual) else np.maximum(1 - g, 0.1)
        hessian = (k * (m / (p * p))) @ k.T
        hessian[np.diag_indices(n)] += dual / law
        try:
            factor = cho_factor(hessian, lower=True, overwrite_a=True)
        except (LinAlgError, ValueError):  # as far as doubles go
            break
        centre = float(law @ dual) / n
        step, turn = _newton(factor, cho_solve, law, dual, g, np.zeros(n))
        along, across = _room(law, step), _room(dual, turn)
        after = float((law + along * step) @ (dual + across * turn)) / n
        target = max((after / centre) ** 3, 1e-4) * centre
        step, turn = _newton(factor, cho_solve, law, dual, g, target - along * across * step * turn)
        law = law + 0.995 * _room(law, step) * step
        dual = dual + 0.995 * _room(dual, turn) * turn
    return replace(best, path=tuple(path))


def _newton(
    factor: Any, solve: Any, law: Floats, dual: Floats, slope: Floats, target: Floats
) -> tuple[Floats, Floats]:
    step = solve(factor, slope - 1 + target / law)
    return step, (target - dual * step) / law - dual


def _room(value: Floats, step: Floats) -> float:
    """How much of a step keeps every number positive, at most all of it."""
    falls = step < 0
    return min(1.0, float((-value[falls] / step[falls]).min())) if falls.any() else 1.0
