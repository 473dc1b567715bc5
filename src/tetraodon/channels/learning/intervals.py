r"""How much a channel with finitely many outputs leaks beyond the rows that it was learned from: one-sided bounds from fresh rows.

With P(k | w) known, I(X; Z) = Σ_x p_x E[ ψ_x(w) | x ], ψ_x(w) = Σ_k P(k | w) ln( p(k | x) / p(k) ).

*Upper end.* The plug-in figure of fresh rows is at least the mean of the true ψ over them, because I is convex in the laws of the
outputs and its gradient at the truth is ψ; so it falls short of the truth no more than that mean does. The end is the figure
plus so many standard errors of the means of ψ, with the plug-in's p(k | x).

*Lower end.* For any classifier q that the fresh rows had no part in, E ln q(x | z)/p(x) ≤ I; here q is the posterior of the rows
learned from. The end is the mean over fresh rows less so many standard errors.

*Rows of a kind that did not come.* Standard errors know only what was seen. Of a secret with n fresh rows, kinds of rows that
make up the share ε go unseen with probability (1 − ε)^n, which stays above 1 − level up to ε = 1 − (1 − level)^{1/n}. Without
allowance for them both ends fail where a few rows tell all or blur all: of four secrets' 30 rows each, of which 0.7 % are such, the
upper end held in 50 of 100 samples and the lower one in 47, instead of 99. So both ends allow in addition for the share ε of one secret, the secret and the kind that cost most:
above, a kind that goes to one point as often as any value may (I is convex, so that mixtures cost less, and so do shares of several
secrets); below, to the point where q says least for its secret. No value goes to point j less often than

    m_j = 1 / Σ_k exp( τ [ max_x (a[x, k] − a[x, j]) + d(z_k, z_j) ] ),

by the triangle inequality; so the kind goes to each point at least so often (0 for squared distances, which have no such
inequality). Where N rows of a rare kind did come, z√N + ln 1/(1 − level)
is no less than what the exact Poisson limit adds to N.

*Rows of equal values* are held out together and count as one. Secrets that have no fresh rows are taken to tell all of
themselves above, and nothing below: with U the event of one of them, (1 − p_U) I_rest ≤ I ≤ H(U) + (1 − p_U) I_rest + p_U H(X | U).

The ends lean on the normal law of means of many rows, otherwise. Rows that helped to choose among channels are not quite fresh,
which is not allowed for. Derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ...axes import Ints
from ..geometry import Floats
from ..lower_bound import LN2
from .atoms import Atoms
from .networks import information
from .samples import Samples, apart


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

    Secrets have the prior of ``known``; the estimate counts those without fresh rows as telling nothing.
    """
    seen = np.flatnonzero((fresh.prior > 0) & (known.prior > 0))
    if not len(seen):
        return Interval(0.0, 0.0, _entropy(known.prior) / LN2, level)
    of, away = _Pairs.of(atoms, known, seen), 1 - float(known.prior[seen].sum() / known.prior.sum())
    scored = _Pairs.of(atoms, fresh, seen)
    prior = of.joint.sum(axis=1)
    joint = scored.joint * (prior / scored.joint.sum(axis=1))[:, None]
    sigmas, some = NormalDist().inv_cdf(level), unseen(scored.count, level)
    plug_in = max(float(information(joint)), 0.0)
    least = least_law(atoms)
    trained = _log_ratio(of.joint, floor=1.0 / max(len(of.secrets), 2))
    over, under = scored.errors(prior, (_log_ratio(joint), trained))
    high = _worst(joint, some, least) + sigmas * over
    mean = (joint * trained).sum(axis=1)
    blurred = some * (mean - prior * (trained @ least + (1 - least.sum()) * trained.min(axis=1)))
    low = float(mean.sum() - blurred.max()) - sigmas * under
    if away > 0:
        others = np.delete(known.prior, seen)
        rest = _entropy(np.array([away, 1 - away])) + away * _entropy(others / max(others.sum(), 1e-300))
    else:
        rest = 0.0
    most = _entropy(known.prior)
    share = 1 - away
    return Interval(
        share * plug_in / LN2, share * max(low, 0.0) / LN2, min(rest + share * high, most) / LN2, level
    )


def unseen(count: Floats, level: float) -> Floats:
    """The largest share of a law whose kinds may all be missing, with probability 1 − level, among so many rows of it.

    >>> unseen(np.array([1.0, 100.0]), 0.99).round(4).tolist()
    [0.99, 0.045]
    """
    return np.asarray(-np.expm1(np.log1p(-level) / np.maximum(count, 1.0)))


def mean_ends(
    told: Floats, weights: Floats, secrets: Ints, span: tuple[Floats, Floats], level: float
) -> tuple[float, float, float]:
    """A weighted mean over rows with one-sided ends, of a figure that lies between two bounds; see the head of this module.

    Args:
        told: of each row.
        weights: of rows, summing to 1.
        secrets: of rows, each secret's being a sample of their own.
        span: least and largest that ``told`` can be, of each secret.
        level: with which each end holds.

    >>> rows = np.zeros(100)
    >>> ends = mean_ends(rows, rows + 0.01, rows.astype(int), (np.array([0.0]), np.array([1.0])), 0.99)
    >>> [round(v, 3) for v in ends]  # none of 100 came true: up to 4.5 % might
    [0.0, 0.0, 0.045]
    """
    size = len(span[0])
    prior = np.bincount(secrets, weights, minlength=size)
    kept = np.where(prior > 0, prior, 1.0)
    own = np.bincount(secrets, weights * told, minlength=size) / kept
    squares = np.bincount(secrets, weights * weights, minlength=size) / kept**2
    count = np.where(squares > 0, 1 / np.where(squares > 0, squares, 1.0), 0.0)
    few = np.bincount(secrets, minlength=size)
    off = np.bincount(secrets, np.square(weights * (told - own[secrets])), minlength=size)
    reach = NormalDist().inv_cdf(level) * float(np.sqrt((off * few / np.maximum(few - 1, 1)).sum()))
    some = prior * unseen(count, level)
    mean = float(prior @ own)
    low = mean - float((some * (own - span[0])).max()) - reach
    high = mean + float((some * (span[1] - own)).max()) + reach
    return mean, max(low, float(prior @ span[0])), min(high, float(prior @ span[1]))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Different pairs of secret and value among rows, with what goes out for them.

    Attributes:
        secrets: of pairs, numbered anew.
        values: of pairs.
        share: P(value | secret).
        joint: P(secret, point).
        count: for each secret, how many pairs of equal weight would tell as much.
    """

    atoms: Atoms
    secrets: Ints
    values: Floats
    share: Floats
    joint: Floats
    count: Floats

    @staticmethod
    def of(atoms: Atoms, samples: Samples, seen: Ints) -> _Pairs:
        values, value = np.unique(samples.values, axis=0, return_inverse=True)
        pairs, pair = np.unique(np.ravel(value) * samples.n_secrets + samples.secrets, return_inverse=True)
        weight = np.bincount(np.ravel(pair), samples.weights)
        kept = np.isin(pairs % samples.n_secrets, seen)
        secrets = np.searchsorted(seen, pairs[kept] % samples.n_secrets)
        values, weight = values[pairs[kept] // samples.n_secrets], weight[kept]
        own = np.bincount(secrets, weight)
        share, prior = weight / own[secrets], own / own.sum()
        joint = np.zeros((len(seen), len(atoms.points)))
        for part, law in atoms.laws(values):
            np.add.at(joint, secrets[part], (prior[secrets[part]] * share[part])[:, None] * law)
        return _Pairs(atoms, secrets, values, share, joint, 1 / np.bincount(secrets, share * share))

    def errors(self, prior: Floats, ratios: tuple[Floats, ...]) -> list[float]:
        """Standard error, for each ψ, of Σ_x p_x times its mean over the secret's pairs, each secret's being a sample of their own."""
        told = np.empty((len(ratios), len(self.share)))
        for part, law in self.atoms.laws(self.values):
            for at, ratio in enumerate(ratios):
                told[at, part] = np.einsum("rk,rk->r", law, ratio[self.secrets[part]])
        few = np.bincount(self.secrets)
        scale = (few / np.maximum(few - 1, 1))[self.secrets] * np.square(prior[self.secrets] * self.share)
        own = [np.bincount(self.secrets, self.share * one)[self.secrets] for one in told]
        return [float(np.sqrt(scale @ np.square(one - mean))) for one, mean in zip(told, own, strict=True)]


def least_law(atoms: Atoms) -> Floats:
    """m: how often, at least, any value at all goes to each point, shape (points,)."""
    if atoms.metric == "squared" and len(atoms.points) > 1:
        return np.zeros(len(atoms.points))
    gap = np.full((len(atoms.points),) * 2, -np.inf)
    for offsets in atoms.offsets:
        np.maximum(gap, offsets[:, None] - offsets[None, :], out=gap)
    logits = atoms.sharpness * (gap + apart(atoms.points, atoms.points, atoms.metric))
    top = logits.max(axis=0)
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(-top) / np.exp(logits - top).sum(axis=0))


def _worst(joint: Floats, some: Floats, least: Floats) -> float:
    """The most that I can be when ``some``[x] of the mass of one secret x goes to one point instead, as far as ``least`` allows."""

    def curve(p: Floats) -> Floats:
        return np.asarray(p * np.log(p, out=np.zeros_like(p), where=p > 0))

    prior, total = joint.sum(axis=1), joint.sum(axis=0)
    own = curve(joint)
    columns = own.sum(axis=0)
    entropy = -float(curve(prior).sum())
    found = max(float((columns - curve(total)).sum()) + entropy, 0.0)
    for x, (share, p) in enumerate(zip(some, prior, strict=True)):
        rest = columns - own[x]

        def column(mass: Floats, x: int = x, rest: Floats = rest) -> Floats:
            return np.asarray(rest + curve(mass) - curve(np.maximum(total - joint[x], 0.0) + mass))

        less = (1 - share) * joint[x] + share * p * least
        plain = column(less)
        moved = column(less + share * p * (1 - least.sum()))
        found = max(found, float(plain.sum() + (moved - plain).max()) + entropy)
    return found


def _log_ratio(joint: Floats, floor: float = 0.0) -> Floats:
    """ln q(x | k)/p(x), shape (secrets, points), of the posterior; with a share of the prior mixed in so that it stays finite."""
    prior = joint.sum(axis=1)
    mixed = (1 - floor) * joint + floor * np.outer(prior, joint.sum(axis=0)) + 1e-300
    given = mixed / mixed.sum(axis=0)
    return np.asarray(np.log(given) - np.log(prior)[:, None])


def _entropy(law: Floats) -> float:
    """In nats, with 0 · ln 0 = 0."""
    kept = law[law > 0]
    return float(-(kept * np.log(kept)).sum())
