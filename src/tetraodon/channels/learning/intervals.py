r"""How much a channel with finitely many outputs leaks beyond the rows that it was learned from: one-sided bounds from fresh rows.

With P(k | w) known, I(X; Z) = Σ_x p_x E[ ψ_x(w) | x ], ψ_x(w) = Σ_k P(k | w) ln( p(k | x) / p(k) ).

*Upper end.* The plug-in figure of fresh rows is biased upward: x ↦ I is convex in the law of the outputs, so that its mean over
samples is no less than the truth (Jensen). Its standard error is that of the means of ψ, with the plug-in's p(k | x); the
end is the figure plus so many of them.

*Lower end.* For any classifier q that the fresh rows had no part in, E ln q(x | z)/p(x) ≤ I; here q is the posterior of the rows
learned from. The end is the mean over fresh rows less so many standard errors.

Both lean on the normal law of means of many rows. Derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..geometry import Floats
from ..lower_bound import LN2
from .atoms import Atoms
from .networks import information
from .samples import Samples


@dataclass(frozen=True)
class Interval:
    """Bits that the outputs tell of the secret.

    Attributes:
        estimate: plug-in figure of the fresh rows.
        lower, upper: one-sided ends, each of which holds with probability ``level``.
        level: such as 0.99.
    """

    estimate: float
    lower: float
    upper: float
    level: float


def leakage_interval(atoms: Atoms, known: Samples, fresh: Samples, level: float = 0.99) -> Interval:
    """Bounds on the leakage from rows that were not learned from, ``known`` being those that were; in scaled coordinates.

    The prior is taken as it stands in ``fresh``.
    """
    sigmas = NormalDist().inv_cdf(level)
    joint = _joint(atoms, fresh)
    plug_in = max(float(information(joint)), 0.0)
    spread = _error(atoms, fresh, _log_ratio(joint))
    trained = _log_ratio(_joint(atoms, known), floor=1.0 / max(known.rows, 2))
    mean = float((joint * trained).sum())
    low = mean - sigmas * _error(atoms, fresh, trained)
    return Interval(plug_in / LN2, max(low, 0.0) / LN2, (plug_in + sigmas * spread) / LN2, level)


def _joint(atoms: Atoms, samples: Samples) -> Floats:
    found = np.zeros((samples.n_secrets, len(atoms.points)))
    for part, law in atoms.laws(samples.values):
        np.add.at(found, samples.secrets[part], samples.weights[part, None] * law)
    return found


def _log_ratio(joint: Floats, floor: float = 0.0) -> Floats:
    """ln q(x | k)/p(x), shape (secrets, points), of the posterior; with a share of the prior mixed in so that it stays finite."""
    prior = joint.sum(axis=1)
    mixed = (1 - floor) * joint + floor * np.outer(prior, joint.sum(axis=0)) + 1e-300
    given = mixed / mixed.sum(axis=0)
    return np.asarray(np.log(given) - np.log(prior)[:, None])


def _error(atoms: Atoms, samples: Samples, log_ratio: Floats) -> float:
    """Standard error of the weighted mean of ψ over rows, each secret's rows being a sample of their own."""
    told = np.empty(samples.rows)
    for part, law in atoms.laws(samples.values):
        told[part] = np.einsum("rk,rk->r", law, log_ratio[samples.secrets[part]])
    count = np.bincount(samples.secrets, minlength=samples.n_secrets)
    own = np.bincount(samples.secrets, samples.weights * told, minlength=samples.n_secrets) / samples.prior
    off = np.square(samples.weights * (told - own[samples.secrets]))
    few = np.maximum(count - 1, 1)
    return float(np.sqrt((off * (count / few)[samples.secrets]).sum()))
