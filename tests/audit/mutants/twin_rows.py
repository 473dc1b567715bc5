"""Broken mechanisms that are built here, row by row: the papers' own, and some that a careless hand would write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from audit.judge import Ran, answered
from oracle.mechanisms import published_tree

from tetraodon import noise
from tetraodon.auditing import losses
from tetraodon.auditing.answering import Exact
from tetraodon.loss import Loss


def noisy(
    observed: Callable[[Any], Any],
    scales: Sequence[Fraction | None],
    claim: Loss,
    after: Callable[[Any], Any] = np.asarray,
) -> Ran:
    """Rows of a table with independent noise.

    Args:
        observed: what is noised, as whole numbers, of a table of counts.
        scales: of each (σ² for Gaussian noise); None for what goes out as it is.
        after: what is done to the outputs.
    """

    def loss(a: Any, b: Any) -> Fraction | float:
        told = [Exact(np.asarray(observed(h), dtype=np.float64), tuple(scales)) for h in (a, b)]
        found = losses.of_rows(claim.unit, *told)
        return math.inf if found is None else found

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        one, two = (_outputs(np.asarray(observed(h), dtype=np.int64), draws) for h in (a, b))
        return after(one), after(two)

    def _outputs(true: Any, draws: int) -> Any:
        found = np.tile(true.astype(np.float64), (draws, 1))
        for j, scale in enumerate(scales):
            if scale is not None:
                draw = noise.discrete_gaussian if claim.is_gaussian else noise.discrete_laplace
                found[:, j] += draw(scale, draws)
        return found

    return Ran(claim, loss, drawn)


def published_budget(size: int, theta: int, fanout: int, claim: Loss) -> Ran:
    """The ordered hierarchical mechanism with the budget of its paper, half of it for the chain; for ρ σ = the scale."""
    nodes = published_tree(size, theta, fanout, Fraction(1, 2), "published")
    amount = claim.amount

    def scale(s: Fraction) -> Fraction:
        return s / amount if not claim.is_gaussian else s**2 / (2 * amount)

    return noisy(lambda h: [h[n.start : n.end].sum() for n in nodes], [scale(n.scale) for n in nodes], claim)


def rounded_answers(claim: Loss) -> Ran:
    """A real strategy with whole noise: 400 rows that each move by 0.01 on an edge of three, their answers rounded. The table of two
    records everywhere is just below where all of them are rounded up."""
    rows = np.outer(np.ones(400), np.arange(8) / 300)
    offset = 0.495 - 2 * 28 / 300
    moved = 3 / 300  # of one row, over the longest edge
    amount = claim.amount
    scale = (
        Fraction(400 * moved) / amount if not claim.is_gaussian else Fraction(400 * moved**2) / (2 * amount)
    )
    return noisy(lambda h: np.rint(rows @ h + offset), [scale] * 400, claim)


def unclipped(claim: Loss) -> Ran:
    """A sum that trusts the values of a table: one of them lies beyond the declared bounds, 0 to 7, and is not clipped."""
    values = np.array([0, 1, 2, 3, 4, 5, 6, 70])
    scale = Fraction(3) / claim.amount if not claim.is_gaussian else Fraction(9) / (2 * claim.amount)
    return noisy(lambda h: [values @ h], [scale], claim)


def with_total(strategy: Any, policy: Any) -> Ran:
    """Answers beside which the number of records goes out, though it is a secret."""
    ran = answered(strategy, policy)

    def loss(a: Any, b: Any) -> Any:
        return math.inf if np.sum(a) != np.sum(b) else ran.loss(a, b)

    def drawn(a: Any, b: Any, draws: int) -> tuple[Any, Any]:
        one, two = ran.drawn(a, b, draws)
        return tuple(np.column_stack([o, np.full(draws, float(np.sum(h)))]) for o, h in ((one, a), (two, b)))  # type: ignore[return-value]

    return Ran(ran.claim, loss, drawn)
