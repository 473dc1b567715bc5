"""What draws from two neighbouring tables prove about a loss, and what they could have seen.

An event E happens in k of n draws from one table and in j of n from the other. Clopper and Pearson (1934) bound its two
probabilities, p from below and q from above, each with half of the allowed error. Then, whatever the mechanism is,

    ε ≥ ln(p/q)                    if it is ε-private,
    ρ ≥ max over α > 1 of D_α(p‖q)/α    if it is ρ-zero-concentrated private,

D_α(p‖q) = ln(p^α q^(1−α) + (1−p)^α (1−q)^(1−α))/(α − 1) being the Rényi divergence of two coins: looking at one event is
post-processing, and D_α of coins rises with p and falls with q where p ≥ q. The second bound is at least as strong as holding
the event against the curve (ε, δ(ε)) of ρ, for every ε at once, because that curve follows from the same divergences.

The event has to be chosen without the draws that are counted (``events``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..loss import Unit

Floats = NDArray[np.float64]

SEEN = 0.999
"""With how much certainty a loss at the resolution would have been seen."""
_ORDERS = 1 + np.geomspace(2.0**-6, 63, 40)
_STEPS = 60
_MOST = 200.0


def lower(hits: Any, draws: int, error: float) -> Any:
    """The probability is at least this, with a chance of ``error`` of being wrong, after ``hits`` of ``draws``.

    >>> round(float(lower(90, 100, 0.05)), 4)
    0.8363
    """
    from scipy.special import betaincinv

    k = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = betaincinv(np.maximum(k, 1), draws - np.maximum(k, 1) + 1, error)
    return np.where(k > 0, found, 0.0)


def upper(hits: Any, draws: int, error: float) -> Any:
    """The probability is at most this, with a chance of ``error`` of being wrong.

    >>> round(float(upper(0, 100, 0.05)), 4)
    0.0295
    """
    return 1.0 - lower(draws - np.asarray(hits, dtype=np.float64), draws, error)


def bound(unit: Unit, hits: Any, others: Any, draws: int, error: float) -> Any:
    """The loss is at least this, with a chance of ``error`` of being wrong: 0 where the counts say nothing.

    Args:
        hits, others: how often one event happened in ``draws`` draws from each of two neighbouring tables.

    >>> round(float(bound("epsilon", 50_000, 20_000, 100_000, 1e-9)), 3)
    0.858
    """
    p, q = lower(hits, draws, error / 2), upper(others, draws, error / 2)
    return of_coins(unit, p, q)


def of_coins(unit: Unit, p: Any, q: Any) -> Any:
    """The loss that an event of probabilities ``p`` and ``q`` shows, 0 where p is no larger.

    >>> round(float(of_coins("epsilon", 0.75, 0.25)), 4), round(float(of_coins("rho", 0.75, 0.25)), 4)
    (1.0986, 0.5478)
    """
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    more = p > q
    high, low = np.where(more, p, 0.5), np.where(more, q, 0.5)
    low = np.maximum(low, 1e-300)
    if unit == "epsilon":
        return np.where(more, np.log(high / low), 0.0)
    with np.errstate(divide="ignore"):
        yes, no = np.log(high) - np.log(low), np.log1p(-high) - np.log1p(-low)
        heads = np.log(low)[..., None] + _ORDERS * yes[..., None]
        tails = np.log1p(-low)[..., None] + _ORDERS * no[..., None]
    divergence = np.logaddexp(heads, tails) / (_ORDERS - 1)
    return np.where(more, np.maximum((divergence / _ORDERS).max(axis=-1), 0.0), 0.0)


def resolution(unit: Unit, claim: float, likely: float, draws: int, error: float) -> float | None:
    """The least loss that would have been seen to exceed a claim, with a chance of ``SEEN``, in an event as likely as this.

    "Seen" means that its bound exceeds the claim. The event is one that a mechanism of that loss shows in full: of
    probability ``likely`` under one table and as much less under the other as the loss allows.

    Args:
        likely: probability of the event.
        draws: from each of the two tables.
        error: of the bound.
    Returns:
        The loss, or None if so few draws, of so unlikely an event, show nothing above the claim.

    >>> round(resolution("epsilon", 0.5, 0.5, 100_000, 1e-9), 3)
    0.577
    """
    from scipy.stats import binom

    if not 0 < likely < 1:
        return None
    hits = float(binom.ppf((1 - SEEN) / 2, draws, likely))

    def shown(loss: float) -> float:
        other = least_likely(unit, likely, loss)
        return float(bound(unit, hits, float(binom.ppf((1 + SEEN) / 2, draws, other)), draws, error))

    low, high = claim, max(2 * claim, claim + 1.0)
    while shown(high) <= claim:
        low, high = high, 2 * high
        if high > _MOST:
            return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) > claim else (middle, high)
    return high


def least_likely(unit: Unit, p: float, loss: float) -> float:
    """The least probability that an event of probability ``p`` can have under a neighbour at a loss."""
    if unit == "epsilon":
        return max(p * math.exp(-loss), (p - 1) * math.exp(loss) + 1)
    low, high = 0.0, p
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if float(of_coins(unit, p, middle)) <= loss else (middle, high)
    return high
