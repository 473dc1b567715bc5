"""What a loss means for every way of answering: its cost, the noise that it pays for, and the law of that noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .. import noise
from ..axes import Ints
from ..loss import Loss
from ..sensitivity import Move, Sensitivity, describe

LARGEST_SUM = 2**61


def spent(loss: Loss, move: Move) -> Loss:
    """Exact privacy cost: what was asked for, or nothing if every row is free."""
    return loss if move.value else Loss(loss.unit, Fraction(0))


def cost(loss: Loss, move: Move) -> Sensitivity:
    """The cost in ε or ρ, with an edge that attains it where one does."""
    found = describe(move)
    return Sensitivity(spent(loss, move).amount, found.witness, found.rule)


def scale(loss: Loss, move: int | Fraction, weight: int = 1) -> Fraction:
    """Scale s = move/(ε·weight) of Laplace noise, or σ² = move/(2ρ·weight) of Gaussian noise.

    >>> scale(Loss("rho", Fraction(1, 2)), 4, 2)
    Fraction(2, 1)
    """
    share = loss.amount * weight
    return Fraction(move) / (2 * share if loss.is_gaussian else share)


def variance(loss: Loss, scale: Fraction) -> float:
    """Exact variance of one draw."""
    exact = noise.discrete_gaussian_variance if loss.is_gaussian else noise.discrete_laplace_variance
    return exact(scale)


def quantile(loss: Loss, scale: Fraction, coverage: Fraction) -> float:
    """The least t with P(|Z| > t) ≤ 1 − coverage for one draw."""
    exact = noise.discrete_gaussian_quantile if loss.is_gaussian else noise.discrete_laplace_quantile
    return float(exact(scale, coverage))


def reserved(loss: Loss, draws: Sequence[tuple[Fraction, int]]) -> noise.Reserve:
    """All noise of (scale or σ², number) blocks, drawn before the data are read."""
    return noise.reserve([], gaussian=draws) if loss.is_gaussian else noise.reserve(draws)


def taken(reserve: noise.Reserve, loss: Loss, scale: Fraction, size: int) -> Ints:
    """The next draws of a reserve."""
    return (reserve.gaussian if loss.is_gaussian else reserve.laplace)(scale, size)


def added(true: Ints, reserve: noise.Reserve, loss: Loss, scale: Fraction) -> Ints:
    """Exact rows with one draw each.

    The sampler tells magnitudes apart up to 2^62; clipping below that gives the law of unbounded integers.
    """
    noisy = true + taken(reserve, loss, scale, true.size).reshape(true.shape)
    clipped: Ints = np.clip(noisy, -LARGEST_SUM, LARGEST_SUM)
    return clipped
