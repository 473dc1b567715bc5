"""How much outputs tell about secrets. Everything is in bits, and of the table that it is given.

A joint table is P(secret, output), shape (secrets, outputs), read by the rule of ``tables``. X is the secret, Z the output,
Y what an attacker says. A classifier is q(secret | output), shape (outputs, secrets), each row a law.

A measure of a table of frequencies is a measure of that table, not of the law behind it: see ``samples``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import SpecificationError
from .tables import Floats, Ints, classifier_of, joint_table, labels, law, named, plain_array, stochastic

MOST_STEPS = 200_000
ROUNDING = 1e-12  # bits: well above what a sum of p log p loses


def _log2(p: Floats) -> Floats:
    """log₂ p, and 0 where p is 0 (0 · log 0 = 0)."""
    return np.log2(p, out=np.zeros_like(p), where=p > 0)


def entropy(law_of_x: object) -> float:
    """H(X) = −Σ p log₂ p, in bits, of a law of any shape (of a joint table: H(X, Z)).

    Raises:
        SpecificationError: it is not a law.

    >>> entropy([0.5, 0.25, 0.25])
    1.5
    """
    p = law(law_of_x, "law", None)
    return abs(float((p * _log2(p)).sum()))


def conditional_entropy(joint: object) -> float:
    """H(X | Z) = −Σ P(x, z) log₂ P(x | z), in bits: what is left to learn about the secret once the output is seen.

    Raises:
        SpecificationError: it is not a joint table.

    >>> conditional_entropy([[0.5, 0], [0, 0.5]])
    0.0
    """
    p = joint_table(joint)
    return abs(float((p * (_log2(p) - _log2(p.sum(axis=0)))).sum()))


def cross_entropy(joint: object, classifier: object) -> float:
    """CE(q) = −Σ P(x, z) log₂ q(x | z), in bits; H(X | Z) at the posterior and more elsewhere.

    Infinite where the classifier excludes what can happen.

    Args:
        classifier: shape (outputs, secrets), rows are laws.
    Raises:
        SpecificationError: one of the two is malformed.

    >>> cross_entropy([[0.5, 0], [0, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    1.0
    """
    p = joint_table(joint)
    q = classifier_of(classifier, p).T
    if ((p > 0) & (q == 0)).any():
        return math.inf
    return abs(float((p * _log2(q)).sum()))


def _divergence(p: Floats, rows: Floats, columns: Floats) -> float:
    """Σ p log₂(p / q), q = rows × columns, as Σ q φ(p / q) with φ(t) = t ln t − t + 1 ≥ 0: no cancellation near independence."""
    q = rows[:, None] * columns
    known = q > 0
    # A product that underflows has p ≤ rows and p ≤ columns, both below 1e-154: its share is below 1e-150 bits.
    t = np.divide(p, q, out=np.ones_like(p), where=known)
    d = t - 1
    near = np.abs(d) < 1e-3
    series = d * d * (0.5 + d * (-1 / 6 + d * (1 / 12 - d / 20)))
    log = np.log(t, out=np.zeros_like(t), where=t > 0)
    phi = np.where(near, series, t * log - d)
    return float((q * np.maximum(phi, 0)).sum() / math.log(2))


def information(joint: object) -> float:
    """I(X; Z) = Σ P(x, z) log₂ P(x, z) / (P(x) P(z)), in bits; 0 exactly when the output tells nothing.

    Raises:
        SpecificationError: it is not a joint table.

    >>> round(information([[0.45, 0.05], [0.05, 0.45]]), 4)  # a bit seen through a symmetric channel that errs in 10 %
    0.531
    """
    p = joint_table(joint)
    return _divergence(p, p.sum(axis=1), p.sum(axis=0))


def information_bound(joint: object, classifier: object) -> float:
    """H(X) − CE(q) = E log₂ q(x | z) / p(x), in bits: at most I(X; Z) for every classifier, and equal to it at the posterior.

    This is the estimate to use of what a trained attacker shows (Barber and Agakov 2003). It can be negative, −∞ included:
    that classifier then shows nothing.

    Raises:
        SpecificationError: one of the two is malformed.

    >>> table = [[0.45, 0.05], [0.05, 0.45]]
    >>> round(information_bound(table, [[0.9, 0.1], [0.1, 0.9]]), 4)
    0.531
    """
    p = joint_table(joint)
    return entropy(p.sum(axis=1)) - cross_entropy(p, classifier)


def guess_information(joint: object, classifier: object) -> float:
    """I(X; Y), in bits, of a guess Y *drawn* from the classifier: P(x, y) = Σ_z P(x, z) q(y | z).

    The quantity of Romanelli et al. 2020 (TᵗQ / N for a batch of N). It is at most I(X; Z), at the posterior too, where it
    can be six times less: prefer ``information_bound``, and print this one beside it.

    Raises:
        SpecificationError: one of the two is malformed.

    >>> round(guess_information([[0.45, 0.05], [0.05, 0.45]], [[0.9, 0.1], [0.1, 0.9]]), 4)
    0.3199
    """
    p = joint_table(joint)
    return information(p @ classifier_of(classifier, p))


def best_rule(joint: object) -> Ints:
    """The guess that errs least: for each output the likeliest secret (the first of several).

    Raises:
        SpecificationError: it is not a joint table.

    >>> best_rule([[0.4, 0.1], [0.2, 0.3]]).tolist()
    [0, 1]
    """
    return np.asarray(joint_table(joint).argmax(axis=0), dtype=np.int64)


def _least(p: Floats) -> float:
    """1 − Σ_z max_x P(x, z) as a sum of what is not guessed, which keeps small errors exact."""
    rest = p.copy()
    rest[p.argmax(axis=0), np.arange(p.shape[1])] = 0
    return float(rest.sum())


def bayes_error(joint: object, rule: object = None) -> float:
    """B(X | Z) = 1 − Σ_z max_x P(x, z): how often the best attacker with one try errs.

    With a rule, B(X | Y), where Y is the label that the rule gives to each output: the best attacker who sees Y instead of Z,
    and is free to read the labels as he likes. It is at least B(X | Z). How often the labels *as they stand* are wrong is
    ``risk``.

    Args:
        rule: a label for each output, shape (outputs,), integers from 0; or a classifier, shape (outputs, secrets), whose
            label is the likeliest secret of its row (the first of several). For a label drawn from the classifier:
            ``bayes_error(joint @ classifier)``.
    Raises:
        SpecificationError: one of the two is malformed.

    >>> table = [[0.45, 0.05], [0.05, 0.45]]
    >>> round(bayes_error(table), 6), round(bayes_error(table, rule=[0, 0]), 6)
    (0.1, 0.5)
    """
    p = joint_table(joint)
    if rule is None:
        return _least(p)
    labelled = _labels(rule, p)
    _, compact = np.unique(labelled, return_inverse=True)
    return _least(named(p, compact.astype(np.int64), int(compact.max()) + 1))


def risk(joint: object, rule: object) -> float:
    """How often a rule names the wrong secret: 1 − Σ_z P(rule(z), z), at least ``bayes_error``.

    Args:
        rule: a secret for each output, shape (outputs,); or a classifier, whose likeliest secret is named.
    Raises:
        SpecificationError: one of the two is malformed.

    >>> round(risk([[0.45, 0.05], [0.05, 0.45]], [1, 0]), 6)  # labels swapped: bayes_error of this rule is 0.1
    0.9
    """
    p = joint_table(joint)
    rest = p.copy()
    rest[_labels(rule, p, p.shape[0]), np.arange(p.shape[1])] = 0
    return float(rest.sum())


def _labels(rule: object, p: Floats, below: int | None = None) -> Ints:
    if plain_array(rule, "rule").ndim == 2:
        return np.asarray(classifier_of(rule, p, "rule").argmax(axis=1), dtype=np.int64)
    return labels(rule, p.shape[1], "rule", below)


def prior_vulnerability(joint: object) -> float:
    """V(X) = max_x P(x): how often a guess without the output is right.

    Raises:
        SpecificationError: it is not a joint table.

    >>> prior_vulnerability([[0.3, 0.3], [0.1, 0.3]])
    0.6
    """
    return float(joint_table(joint).sum(axis=1).max())


def vulnerability(joint: object) -> float:
    """V(X | Z) = Σ_z max_x P(x, z) = 1 − B(X | Z): how often the best guess with the output is right.

    Raises:
        SpecificationError: it is not a joint table.

    >>> round(vulnerability([[0.3, 0.3], [0.1, 0.3]]), 6)
    0.6
    """
    return float(joint_table(joint).max(axis=0).sum())


def min_entropy_leakage(joint: object) -> float:
    """log₂ V(X | Z) / V(X), in bits, from 0: the factor by which the output helps one guess.

    Raises:
        SpecificationError: it is not a joint table.

    >>> min_entropy_leakage([[0.5, 0], [0, 0.5]])
    1.0
    """
    p = joint_table(joint)
    return max(0.0, math.log2(vulnerability(p) / prior_vulnerability(p)))


def min_entropy_capacity(channel: object) -> float:
    """log₂ Σ_z max_x K[x, z], in bits: the min-entropy leakage of the worst prior, which is the uniform one.

    Args:
        channel: P(output | secret), shape (secrets, outputs), rows are laws.
    Raises:
        SpecificationError: it is not a channel matrix.

    >>> min_entropy_capacity([[1, 0], [0, 1], [0, 1]])
    1.0
    """
    k = stochastic(channel, "channel", ("secrets", "outputs"))
    return max(0.0, math.log2(float(k.max(axis=0).sum())))


@dataclass(frozen=True, eq=False)
class Capacity:
    """The most information that a channel can carry, between two figures.

    Attributes:
        value: I(X; Z), in bits, of ``prior``: a lower bound of the capacity.
        bound: an upper bound, max_x KL(K_x ‖ q), in bits, which holds for whatever q.
        prior: shape (secrets,), the law of secrets that carries ``value``.
    """

    value: float
    bound: float
    prior: Floats

    @property
    def gap(self) -> float:
        """``bound − value``, in bits; the capacity lies between them."""
        return self.bound - self.value


def capacity(channel: object, gap: float = 1e-6) -> Capacity:
    """max over priors of I(X; Z), in bits, with a certified gap (Blahut 1972 and Arimoto 1972, with longer steps).

    p ∝ p · exp(η D), D_x = KL(K_x ‖ pK); η grows while the information does, and falls back to 1, which never loses any.
    For every p the capacity is at most max_x D_x.

    Args:
        channel: P(output | secret), shape (secrets, outputs), rows are laws.
        gap: bits between the two bounds at which to stop; where 200,000 steps do not reach it, the gap is what the
            answer says.
    Raises:
        SpecificationError: it is not a channel matrix, or the gap is not positive.

    >>> found = capacity([[0.9, 0.1], [0.1, 0.9]])
    >>> round(found.value, 4), found.gap <= 1e-6
    (0.531, True)
    """
    k = stochastic(channel, "channel", ("secrets", "outputs"))
    if not 0 < gap < math.inf:
        raise SpecificationError("capacity: the gap is a positive number of bits.")
    k = k[:, k.any(axis=0)]
    own = (k * _log2(k)).sum(axis=1)
    spread = k.mean(axis=0)
    p = np.full(len(k), 1 / len(k))
    best = Capacity(0.0, math.inf, p)
    eta, last, held = 1.0, -math.inf, p
    for _ in range(MOST_STEPS):
        # q keeps every column positive, where a prior has sunk too; the bound holds for this q as for any.
        q = (1 - 1e-15) * (p @ k) + 1e-15 * spread
        d = own - k @ np.log2(q)
        value, bound = float(p @ d), float(d.max()) + ROUNDING
        if value < last - 1e-15 and eta > 1:
            p, eta = held, 1.0
            last = -math.inf
            continue
        better = value > best.value
        best = Capacity(value if better else best.value, min(bound, best.bound), p if better else best.prior)
        if best.gap <= gap:
            break
        held, last, eta = p, value, min(eta * 1.2, 1e6)
        raised = p * np.exp2(np.maximum(eta * (d - bound), -1000))
        p = np.maximum(raised / raised.sum(), 1e-250)
        p = p / p.sum()
    value = information(best.prior[:, None] * k)
    return Capacity(value, max(best.bound, value), best.prior)
