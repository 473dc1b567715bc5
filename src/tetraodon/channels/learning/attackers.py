"""Attackers who learn, from outputs whose secrets they know, how likely each secret is for another output.

Each answers with probabilities q(secret | output), which is what a lower bound on leakage is worked out from. The plain answers
of a forest or of neighbours are 0 and 1 too often, and those of a network too sure; so every attacker keeps a fifth of
what he may learn from, and by it chooses how far to believe himself:

    q ← (1 − f) · p (q/p)^t / Σ p (q/p)^t + f · p,        t and f of least cross-entropy, p the prior.

f is never 0, so that ln q/p ≥ ln f whatever the output. Not the attackers of ``leakage.attackers``, which name one secret.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...axes import Ints
from ..geometry import Floats

TREES = 100
LEAF = 5
BELIEF = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2)
DOUBT = (0.5, 0.2, 0.05, 0.02, 0.005, 0.002)
KEPT = 5  # one row in so many is kept to choose by
FAINT = 1e-6

Answers = Callable[[Floats], Floats]
Model = Callable[[Ints, Floats, int, np.random.Generator], Answers]


@dataclass(frozen=True, eq=False)
class Trained:
    """One attacker who has learned.

    Attributes:
        answers: probabilities of secrets before he thinks twice.
        prior: of secrets.
        belief, doubt: t and f.
    """

    answers: Answers
    prior: Floats
    belief: float
    doubt: float

    def guesses(self, outputs: Floats) -> Floats:
        """q(secret | output), shape (outputs, secrets)."""
        return softened(self.answers(outputs), self.prior, self.belief, self.doubt)


def softened(answers: Floats, prior: Floats, belief: float, doubt: float) -> Floats:
    """Answers raised to a power over the prior, with a share of the prior mixed in.

    >>> softened(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), 1.0, 0.5).round(3).tolist()
    [[0.75, 0.25]]
    """
    logs = belief * np.log(np.maximum(answers, FAINT) / prior)
    told = prior * np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray((1 - doubt) * told / told.sum(axis=1, keepdims=True) + doubt * prior)


def trained(model: Model, secrets: Ints, outputs: Floats, prior: Floats, rng: np.random.Generator) -> Trained:
    """An attacker who has learned from these rows, which come in no order and each as often as the prior has it."""
    count = max(1, len(secrets) // KEPT)
    answers = model(secrets[count:], outputs[count:], len(prior), rng)
    told, own = answers(outputs[:count]), secrets[:count]
    best, chosen = np.inf, (0.0, DOUBT[0])
    rows = np.arange(count)
    for belief in BELIEF:
        right = softened(told, prior, belief, 0.0)[rows, own]
        for doubt in DOUBT:
            worth = -float(np.log((1 - doubt) * right + doubt * prior[own]).mean())
            if worth < best:
                best, chosen = worth, (belief, doubt)
    return Trained(answers, prior, *chosen)


def models() -> dict[str, Model]:
    """The attackers that there are, by name."""
    return {"classifier network": network, "random forest": forest, "nearest neighbours": neighbours}


def has_jax() -> bool:
    """Whether networks can be trained by JAX."""
    try:
        return find_spec("jax") is not None and find_spec("optax") is not None
    except (ValueError, ImportError):
        return False


def network(secrets: Ints, outputs: Floats, n_secrets: int, rng: np.random.Generator) -> Answers:
    """A fresh network; one of scikit-learn's where JAX is not installed."""
    if not has_jax():
        return _plain_network(secrets, outputs, n_secrets, rng)
    from .mine import classifying, fitted
    from .networks import softmax

    logits = fitted(secrets, outputs, n_secrets, classifying, rng)
    return lambda asked: np.asarray(softmax(logits(asked)))


def _plain_network(secrets: Ints, outputs: Floats, n_secrets: int, rng: np.random.Generator) -> Answers:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = MLPClassifier(
        (64, 64), learning_rate_init=3e-3, max_iter=60, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        return _learned(make_pipeline(StandardScaler(), made), secrets, outputs, n_secrets)


def forest(secrets: Ints, outputs: Floats, n_secrets: int, rng: np.random.Generator) -> Answers:
    """Trees that ask for one coordinate after the other."""
    from sklearn.ensemble import RandomForestClassifier

    made = RandomForestClassifier(TREES, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31)))
    return _learned(made, secrets, outputs, n_secrets)


def neighbours(secrets: Ints, outputs: Floats, n_secrets: int, rng: np.random.Generator) -> Answers:
    """The secrets of the outputs that lie nearest."""
    from sklearn.neighbors import KNeighborsClassifier

    near = min(len(secrets), max(15, round(len(secrets) ** 0.5)))
    return _learned(KNeighborsClassifier(near), secrets, outputs, n_secrets)


def _learned(made: Any, secrets: Ints, outputs: Floats, n_secrets: int) -> Answers:
    there = np.unique(secrets)
    if len(there) == 1:  # what has one secret is answered without a model
        alone = np.zeros(n_secrets)
        alone[there] = 1.0
        return lambda asked: np.tile(alone, (len(asked), 1))
    made.fit(outputs, secrets)

    def answers(asked: Floats) -> Floats:
        found = np.zeros((len(asked), n_secrets))
        found[:, there] = made.predict_proba(asked)
        return found

    return answers
