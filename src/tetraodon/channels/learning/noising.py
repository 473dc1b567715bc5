r"""A generator that adds noise of its own making to values of any dimension: z = w + s (n + N(w, n)).

n is spherical Laplace noise of density ∝ exp(−d r/m) in d dimensions: its length is Gamma(d) of mean m, its direction uniform
(in the plane: planar Laplace of ε = 2/m). N is a network whose last layer starts at 0, so that the generator *is* that noise
before it has learned anything; s = 1 but for a last correction that keeps the budget on fresh rows.

What training draws comes from a seed. What is released comes from the operating system's randomness and has none.
Source: Romanelli, Chatzikokolakis, Palamidessi 2020, whose generator starts as planar Laplace; the form is derived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gamma, pi, sqrt
from typing import Any

import numpy as np

from ..geometry import Floats
from .drawing import uniform
from .networks import Layers, forward, fresh, seen
from .samples import Samples

CHUNK = 1 << 16  # rows at once
HIDDEN = (100, 100)
DRAWS = 8192  # of all rows together, to judge by


@dataclass(frozen=True, eq=False, repr=False)
class Noising:
    """The generator, in scaled coordinates.

    Attributes:
        mean: m, expected length of n.
        inputs: how the network sees values, see ``networks.seen``.
        layers: of N; it sees values, and n as a multiple of m.
        metric: of the distortion.
        factor: s.
    """

    mean: float
    inputs: tuple[Floats, Floats]
    layers: Layers
    metric: str
    factor: float = 1.0

    @property
    def axes(self) -> int:
        """Dimensions of a value."""
        return len(self.inputs[0])

    def moves(self, values: Floats, noise: Floats) -> Floats:
        """z − w, shape (values, dimensions)."""
        return np.asarray(moved(self, self.layers, values, noise))

    def drawn(self, values: Floats) -> Floats:
        """An output for each value, from the operating system's randomness; shape (values, dimensions)."""
        found = np.empty(values.shape)
        for start in range(0, len(values), CHUNK):
            part = values[start : start + CHUNK]
            noise = spherical(uniform(len(part) * needed(self.axes)).reshape(len(part), -1), self.mean)
            found[start : start + CHUNK] = part + self.moves(part, noise)
        return found


def moved(of: Noising, layers: Any, values: Any, noise: Any, xp: Any = np) -> Any:
    """s (n + N(w, n)) with these layers for the generator's own, shape (values, dimensions)."""
    told = xp.concatenate([seen(of.inputs, values, xp), noise / of.mean], axis=1)
    return of.factor * (noise + forward(layers, told, xp))


def lengths(moves: Any, metric: str, xp: Any = np) -> Any:
    """Distances from values to their outputs, with gradients that stay finite at 0; shape (values,)."""
    if metric == "manhattan":
        return xp.sqrt(moves * moves + 1e-12).sum(axis=1)
    square = (moves * moves).sum(axis=1)
    return xp.sqrt(square + 1e-12) if metric == "euclidean" else square


def needed(axes: int) -> int:
    """Uniform numbers that ``spherical`` needs for each row."""
    return axes + 2 * ((axes + 1) // 2)


def spherical(uniforms: Any, mean: float, xp: Any = np) -> Any:
    """Noise of uniform direction whose length is Gamma(d) of this mean; shape (rows, d).

    Args:
        uniforms: in [0, 1), shape (rows, ``needed(d)``): d for the length, a sum of exponentials; pairs for Box and Muller's
            normals, whose direction is uniform.
        mean: expected length.
        xp: numpy, or jax.numpy.

    >>> noise = spherical(np.random.default_rng(0).random((40_000, needed(2))), 1.0)
    >>> round(float(np.hypot(*noise.T).mean()), 1)
    1.0
    """
    axes = uniforms.shape[1] // 2  # an odd number of axes leaves one normal over
    radius = -xp.log1p(-uniforms[:, :axes]).sum(axis=1) * (mean / axes)
    size = xp.sqrt(-2 * xp.log1p(-uniforms[:, axes::2]))
    turn = 2 * pi * uniforms[:, axes + 1 :: 2]
    normal = xp.concatenate([size * xp.cos(turn), size * xp.sin(turn)], axis=1)[:, :axes]
    length = xp.sqrt((normal * normal).sum(axis=1))
    return (radius / xp.where(length > 0, length, 1.0))[:, None] * normal


def mean_for(distortion: float, axes: int, metric: str) -> float:
    """The mean length of spherical Laplace noise of this expected distance.

    E ‖n‖₁ = m d E|u₁| with E|u₁| = Γ(d/2) / (√π Γ((d + 1)/2)) for a uniform direction u, and E ‖n‖² = m² (d + 1)/d.

    >>> mean_for(1.0, 2, "euclidean"), round(mean_for(4.0, 1, "squared"), 6), mean_for(3.0, 1, "manhattan")
    (1.0, 1.414214, 3.0)
    """
    if metric == "squared":
        return sqrt(distortion * axes / (axes + 1))
    if metric == "manhattan":
        return distortion / (axes * _along(axes))
    return distortion


def _along(axes: int) -> float:
    """E|u₁| of a uniform direction."""
    if axes > 300:  # where gamma overflows, its limit
        return sqrt(2 / (pi * axes))
    return gamma(axes / 2) / (sqrt(pi) * gamma((axes + 1) / 2))


def within(noising: Noising, samples: Samples, errors: float, rng: np.random.Generator) -> Noising:
    """The same with moves shortened until the distortion of these rows, and so many of its standard errors on top, come to the
    budget of 1. Moves that keep it already stay.
    """
    moves, _ = moves_of(noising, samples, rng)
    draws, axes = moves.shape[1:]
    own = np.bincount(samples.secrets, samples.weights, minlength=samples.n_secrets)
    own = np.where(own > 0, own, 1.0)

    rows = np.bincount(samples.secrets, minlength=samples.n_secrets)[samples.secrets]
    more = rows / np.maximum(rows - 1, 1)

    def distortion(factor: float) -> float:
        each = lengths(factor * moves.reshape(-1, axes), noising.metric).reshape(-1, draws).mean(axis=1)
        weighted = samples.weights * each
        mean = np.bincount(samples.secrets, weighted, minlength=samples.n_secrets) / own
        off = weighted - samples.weights * mean[samples.secrets]
        return float(weighted.sum() + errors * np.sqrt((np.square(off) * more).sum()))

    if distortion(1.0) <= 1:
        return noising
    low, high = 0.0, 1.0
    for _ in range(30):
        half = (low + high) / 2
        low, high = (half, high) if distortion(half) <= 1 else (low, half)
    return replace(noising, factor=noising.factor * low)


def moves_of(
    noising: Noising, samples: Samples, rng: np.random.Generator, least: int = DRAWS
) -> tuple[Floats, Floats]:
    """Moves and outputs of all rows, several draws of each where there are few rows; both (rows, draws, dimensions)."""
    draws = max(1, -(-least // samples.rows))
    values = np.repeat(samples.values, draws, axis=0)
    moves = noising.moves(values, spherical(rng.random((len(values), needed(noising.axes))), noising.mean))
    shape = samples.rows, draws, noising.axes
    return moves.reshape(shape), (values + moves).reshape(shape)


def untrained(samples: Samples, mean: float, metric: str, inputs: Any, rng: np.random.Generator) -> Noising:
    """The generator at its start: the noise alone. ``inputs`` as ``networks.standardising`` makes them."""
    axes = samples.values.shape[1]
    seen_ = 2 * inputs[1].shape[1] - axes
    layers: Layers = fresh((seen_ + axes, *HIDDEN, axes), rng, last=0.0)
    return Noising(mean, inputs, layers, metric)
