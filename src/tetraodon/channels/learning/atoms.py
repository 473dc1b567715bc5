r"""A channel with finitely many outputs for values of any dimension, in the form that the optimum itself has.

    P(k | w) ∝ exp( τ [ Σ_x h_x(w) a[x, k] − d(w, z_k) ] )

z_k are output points, h(w) = P(secret | w) a classifier network, a[x, k] what moving towards z_k is worth to secret x as a
length, and τ the sharpness. Mirror descent on min I(X; Z) + λ E d, from the uniform channel, is of this form after any number
of steps: each multiplies K by exp(−η(Σ_x p(x | w) ln p(x | z)/p(x) + λ d)). Its limit sends a value to the z_k of largest
Σ_x h_x(w) a[x, k] − d(w, z_k): cells of additively weighted Voronoi diagrams, one diagram for each mixture of secrets, with values on
borders shared.
Derived, docs/learned.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..geometry import Floats
from .networks import Layers, forward, seen, softmax
from .samples import Samples, apart

CHUNK = 1 << 22  # numbers held at once


@dataclass(frozen=True, eq=False, repr=False)
class Atoms:
    """The generator, in scaled coordinates.

    Attributes:
        points: z, shape (points, dimensions).
        offsets: a, shape (secrets, points).
        sharpness: τ.
        inputs: how the network sees values, see ``networks.seen``.
        posterior: layers of h.
        metric: of d.
    """

    points: Floats
    offsets: Floats
    sharpness: float
    inputs: tuple[Floats, Floats]
    posterior: Layers
    metric: str

    def secrets(self, values: Floats) -> Floats:
        """h: shape (values, secrets)."""
        return np.asarray(softmax(forward(self.posterior, seen(self.inputs, values))))

    def law(self, values: Floats) -> Floats:
        """P(point | value), shape (values, points)."""
        pull = self.secrets(values) @ self.offsets
        return np.asarray(softmax(self.sharpness * (pull - apart(values, self.points, self.metric))))

    def laws(self, values: Floats) -> Iterator[tuple[slice, Floats]]:
        """``law`` in parts that fit into memory."""
        rows = max(1, CHUNK // len(self.points))
        for start in range(0, len(values), rows):
            part = slice(start, start + rows)
            yield part, self.law(values[part])


@dataclass(frozen=True)
class Told:
    """A generator on a set of rows.

    Attributes:
        joint: shape (secrets, points).
        distortion: expected, in scaled coordinates.
        error: standard error of the distortion, were the rows of each secret a random sample of its rows.
    """

    joint: Floats
    distortion: float
    error: float


def told(atoms: Atoms, samples: Samples) -> Told:
    """What the outputs tell of these rows' secrets, and how far they lie; samples in scaled coordinates."""
    joint = np.zeros((samples.n_secrets, len(atoms.points)))
    mean = np.empty(samples.rows)
    for part, law in atoms.laws(samples.values):
        weighted = samples.weights[part, None] * law
        np.add.at(joint, samples.secrets[part], weighted)
        mean[part] = (law * apart(samples.values[part], atoms.points, atoms.metric)).sum(axis=1)
    distortion = float(samples.weights @ mean)
    own = np.bincount(samples.secrets, samples.weights * mean, minlength=samples.n_secrets)
    centred = mean - own[samples.secrets] / samples.prior[samples.secrets]
    rows = np.bincount(samples.secrets, minlength=samples.n_secrets)[samples.secrets]
    error = float(np.sqrt((np.square(samples.weights * centred) * rows / np.maximum(rows - 1, 1)).sum()))
    return Told(joint, distortion, error)
