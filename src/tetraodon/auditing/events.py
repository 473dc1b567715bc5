"""The event in which the outputs for two neighbouring tables differ most, learned from draws that are not counted later.

Outputs are rows of numbers. What is looked at: every number alone and its parity, differences between two of them, and a score
that weighs all of them (logistic regression on numbers cut to lie between their two medians, which is the likelihood
ratio of Laplace noise, and on the numbers themselves, which is that of Gaussian noise). Of each the values are put in order,
their own and that of the likelihood ratio, and an event is what comes first in an order, or last. A first part of the draws
gives score and orders; a second one chooses the event. Nothing here uses what a mechanism says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..axes import Bools
from ..loss import Unit
from .bounds import Floats, of_coins

DISTINCT = 2**12
CUTS = 512
PAIRED = 6
SCORED = 48
LEARNED = 20_000
STRICT = 6.1  # standard deviations that a chance of 1e-9 stands for


@dataclass(frozen=True, eq=False)
class View:
    """What is looked at: one number of each output.

    Attributes:
        words: in words.
        columns: which numbers it is made of.
        weights: of these, the first one 1; none for a score.
        period: only the rest by this, 0 for all of it.
        score: medians and weights of a score.
    """

    words: str
    columns: tuple[int, ...]
    weights: tuple[float, ...] = ()
    period: int = 0
    score: Score | None = None

    def of(self, outputs: Floats) -> Floats:
        """Shape (n,)."""
        if self.score is not None:
            return self.score.of(outputs)
        found = outputs[:, self.columns[0]].astype(np.float64)
        for column, weight in zip(self.columns[1:], self.weights[1:], strict=True):
            found = found + weight * outputs[:, column]
        return np.mod(found, self.period) if self.period else found


@dataclass(frozen=True, eq=False)
class Score:
    """A weighted sum of numbers, each as it is and cut to lie between two medians.

    Attributes:
        low, high: medians under one table and the other, the smaller one first.
        middle, spread: what numbers as they are are measured by.
        weights: shape (2·columns,).
    """

    low: Floats
    high: Floats
    middle: Floats
    spread: Floats
    weights: Floats

    def of(self, outputs: Floats) -> Floats:
        return np.round(_features(outputs, self.low, self.high, self.middle, self.spread) @ self.weights, 9)


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs.

    Attributes:
        view: what is looked at.
        values: those for which it happens, ascending; None for a threshold.
        most: it happens up to this value.
        is_rest: whether it happens for all others instead.
        is_of_second: whether it is likelier under the second table.
    """

    view: View
    values: Floats | None
    most: float
    is_rest: bool
    is_of_second: bool

    def happens(self, outputs: Floats) -> Bools:
        """Shape (n,)."""
        told = self.view.of(outputs)
        found = told <= self.most if self.values is None else np.isin(told, self.values)
        return ~found if self.is_rest else found

    @property
    def words(self) -> str:
        """What of an output was looked at."""
        return self.view.words


def learned(unit: Unit, first: Floats, second: Floats) -> Event:
    """The event that seems to show the largest loss.

    Args:
        first, second: shape (draws, numbers), outputs for two neighbouring tables; none of them may be counted afterwards.

    >>> one, two = np.arange(400.0)[:, None] % 4, np.arange(400.0)[:, None] % 2
    >>> event = learned("epsilon", one, two)
    >>> event.happens(np.array([[0.0], [3.0]])).tolist(), event.is_of_second
    ([False, True], False)
    """
    quarter = len(first) // 2
    best: tuple[float, Event | None] = (-4.0, None)
    for view in _views(first[:quarter], second[:quarter]):
        learn = [view.of(part[:quarter]) for part in (first, second)]
        judge = [view.of(part[quarter:]) for part in (first, second)]
        for value, event in _ordered(unit, view, learn, judge):
            if value > best[0]:
                best = value, event
    assert best[1] is not None
    return best[1]


def _views(first: Floats, second: Floats) -> Iterator[View]:
    width = first.shape[1]
    for j in range(width):
        yield View(f"number {j + 1}", (j,), (1.0,))
    for j in range(min(width, PAIRED)):
        yield View(f"the parity of number {j + 1}", (j,), (1.0,), 2)
    for i, j in combinations(range(min(width, PAIRED)), 2):
        yield View(f"the difference of numbers {i + 1} and {j + 1}", (i, j), (1.0, -1.0))
        yield View(f"the parity of the sum of numbers {i + 1} and {j + 1}", (i, j), (1.0, 1.0), 2)
    if width > 1:
        score = _fitted(first[:LEARNED, :SCORED], second[:LEARNED, :SCORED])
        yield View("all numbers, by the likelihood ratio", tuple(range(width)), score=score)


def _ordered(
    unit: Unit, view: View, learn: list[Floats], judge: list[Floats]
) -> Iterator[tuple[float, Event]]:
    """The best event of each order, with what it seems to show on the draws that judge."""
    values = np.unique(np.concatenate(learn))
    if len(values) > DISTINCT:
        at = np.linspace(0, len(values) - 1, CUTS).astype(np.int64)
        cuts = values[at]
        counts = [np.searchsorted(np.sort(part), cuts, side="right").astype(np.float64) for part in judge]
        yield from _best(unit, counts, judge, lambda i: (None, float(cuts[i])), view)
        return
    # What was never seen while learning is put behind all that was.
    first, second = ([np.searchsorted(values, part) for part in side] for side in (learn, judge))
    one, two = (np.bincount(part, minlength=len(values)).astype(np.float64) for part in first)
    seen = []
    for told, part in zip(second, judge, strict=True):
        known = np.minimum(told, len(values) - 1)
        hit = values[known] == part
        seen.append(np.bincount(known[hit], minlength=len(values)).astype(np.float64))
    likely = np.argsort(-(one + 1) / (two + 1), kind="stable")
    yield from _best(
        unit, [np.cumsum(s[likely]) for s in seen], judge, lambda i: (np.sort(values[likely[: i + 1]]), 0.0), view
    )  # fmt: skip
    below = [np.searchsorted(np.sort(part), values, side="right").astype(np.float64) for part in judge]
    yield from _best(unit, below, judge, lambda i: (None, float(values[i])), view)


def _best(
    unit: Unit, counts: list[Floats], judge: list[Floats], made: object, view: View
) -> Iterator[tuple[float, Event]]:
    """The best prefix of an order, or rest of one, for either of the tables.

    Args:
        counts: how many draws of each table lie in each prefix.
    """
    one, two = counts
    n, m = len(judge[0]), len(judge[1])
    for is_rest in (False, True):
        k, j = (n - one, m - two) if is_rest else (one, two)
        for is_second in (False, True):
            hits, others = (j, k) if is_second else (k, j)
            found = of_coins(unit, _rough(hits, n, -1), _rough(others, m, 1))
            # Where nothing is shown for sure, the event that differs most is the best to go on with.
            found = np.where(found > 0, found, hits / n - others / m - 2)
            at = int(np.argmax(found))
            values, most = made(at)  # type: ignore[operator]
            yield float(found[at]), Event(view, values, most, is_rest, is_second)


def _rough(hits: Floats, draws: int, sign: int) -> Floats:
    """A bound of a probability, nearly (Wilson 1927): good enough to choose by."""
    z2 = STRICT**2
    middle = (hits + z2 / 2) / (draws + z2)
    wide = STRICT / (draws + z2) * np.sqrt(hits * (draws - hits) / draws + z2 / 4)
    return np.asarray(np.clip(middle + sign * wide, 0.0, 1.0))


def _features(outputs: Floats, low: Floats, high: Floats, middle: Floats, spread: Floats) -> Floats:
    told = outputs[:, : len(low)]
    cut = (np.clip(told, low, high) - low) / np.maximum(high - low, 1e-12)
    plain = np.clip((told - middle) / spread, -8.0, 8.0)
    return np.concatenate([np.where(high > low, cut, 0.0), plain], axis=1)


def _fitted(first: Floats, second: Floats) -> Score:
    """Logistic regression by Newton's method, a little towards 0."""
    medians = np.stack([np.median(first, axis=0), np.median(second, axis=0)])
    both = np.concatenate([first, second])
    middle = np.median(both, axis=0)
    spread = np.maximum(np.median(np.abs(both - middle), axis=0), 1e-9)
    low, high = medians.min(axis=0), medians.max(axis=0)
    told = _features(both, low, high, middle, spread)
    shift = told.mean(axis=0)
    x = told - shift
    y: NDArray[np.float64] = np.repeat([1.0, 0.0], [len(first), len(second)])
    weights = np.zeros(x.shape[1])
    ridge = np.full(x.shape[1], 1e-3 * len(x))
    for _ in range(12):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (y - p) - ridge * weights
        bend = (x * (p * (1 - p))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-6:
            break
    return Score(low, high, middle, spread, weights)
