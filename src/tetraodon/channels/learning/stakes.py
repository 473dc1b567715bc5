r"""What the generator of the adversarial game descends on, for a classifier that stands still (docs/learned.md):

    α softplus( mean distance, L ) + β information,      softplus(a, b) = ln(1 + exp(a − b)).

``information`` of a batch of N rows with one-hot secrets T and answers Q of the classifier is one of two:

    "paper"       I of the joint law TᵗQ/N: what a guess *drawn* from the answers tells. It understates what the outputs tell,
                  up to six-fold: for a binary symmetric channel of error 0.1, 0.320 bits of 0.531.
    "posterior"   mean of ln q(x | z)/p(x): never above what the outputs tell, and equal to it where q is the posterior.

Both are told after every round.

Lengths are told in 270ths of the budget: the paper's L is 270 m and its softplus is of metres, so that α and β mean here what
they mean there, whatever the unit. Source: Romanelli, Chatzikokolakis, Palamidessi 2020, Algorithm 1; the second information,
and the way rows are drawn, are derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .networks import forward, information, seen
from .noising import Noising, lengths, moved

OBJECTIVES = ("posterior", "paper")
BUDGET = 270.0  # the paper's, in its metres


@dataclass(frozen=True)
class Rules:
    """How the game is played.

    Attributes:
        objective: "posterior" or "paper".
        alpha, beta: weights of distance and information.
        rounds: at most; ``patience`` of them without a better generator end it.
        classifier_steps, generator_steps: in each round.
        batch: rows of a step; None chooses them, see ``steady_batch``.
    """

    objective: str
    alpha: float
    beta: float
    rounds: int
    patience: int
    classifier_steps: int
    generator_steps: int
    batch: int | None


def estimates(log_answers: Any, targets: Any, log_prior: Any, xp: Any = np) -> tuple[Any, Any]:
    """Both estimates of the information of a batch, in nats: "posterior", then "paper".

    Args:
        log_answers: ln Q, shape (rows, secrets).
        targets: T, one-hot, shape (rows, secrets).
        log_prior: of secrets.

    A binary symmetric channel of error 0.1, known to the classifier: 0.531 and 0.320 bits.

    >>> targets = np.repeat(np.eye(2), 10, axis=0)
    >>> said = np.where(np.arange(20) % 10 == 0, 1 - targets.argmax(1), targets.argmax(1))
    >>> answers = np.where(np.eye(2)[said] > 0, 0.9, 0.1)
    >>> [round(float(e / np.log(2)), 4) for e in estimates(np.log(answers), targets, np.log([0.5, 0.5]))]
    [0.531, 0.3199]
    """
    posterior = (targets * (log_answers - log_prior)).sum(axis=1).mean()
    return posterior, information(targets.T @ xp.exp(log_answers) / len(targets), xp)


def log_softmax(logits: Any, xp: Any = np) -> Any:
    """Logarithms of probabilities along the last axis."""
    told = logits - logits.max(axis=-1, keepdims=True)
    return told - xp.log(xp.exp(told).sum(axis=-1, keepdims=True))


def softplus(a: Any, b: Any, xp: Any = np) -> Any:
    """ln(1 + exp(a − b)).

    >>> round(float(softplus(3.0, 3.0)), 4), float(softplus(900.0, 0.0))
    (0.6931, 900.0)
    """
    return xp.logaddexp(a - b, 0.0)


def loss(
    layers: Any,
    begun: Noising,
    classifier: Any,
    batch: tuple[Any, Any, Any],
    log_prior: Any,
    rules: Rules,
    xp: Any = np,
) -> Any:
    """What the generator descends on, for a frozen classifier (inputs and layers) and a budget of 1.

    Args:
        batch: values, one-hot secrets and noise, a row each.
    """
    values, targets, noise = batch
    moves = moved(begun, layers, values, noise, xp)
    answers = log_softmax(forward(classifier[1], seen(classifier[0], values + moves, xp), xp), xp)
    posterior, guessed = estimates(answers, targets, log_prior, xp)
    told = posterior if rules.objective == "posterior" else guessed
    length = lengths(moves, begun.metric, xp).mean()
    return rules.alpha * softplus(BUDGET * length, BUDGET, xp) + rules.beta * told
