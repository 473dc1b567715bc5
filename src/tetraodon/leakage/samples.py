"""Measures of a law of which only samples are at hand: always a pair, in-sample and held-out.

The frequencies of a sample make an attacker look better than he is: their Bayes error is biased low and their information
high. An attacker who learns on one part and is scored on another has seen too little: his error is biased high and his
information low. In expectation the truth lies between the two, so both are given, each with a bootstrap interval.

A sample is two arrays of codes, one per row: secrets and outputs. Where rows belong to persons (or to places of which
several outputs were drawn), ``groups`` keeps them together: whole groups are held out and resampled. Randomness comes from
the ``numpy.random.Generator`` that the caller passes in: these are simulations on samples, no releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SpecificationError
from .measures import (
    bayes_error,
    conditional_entropy,
    entropy,
    guess_information,
    information,
    min_entropy_leakage,
)
from .tables import Floats, Ints, normalised, plain_array, stochastic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class Pair:
    """One measure of a sample, twice.

    Attributes:
        measure: what was measured.
        unit: "bits", or "" for a share.
        in_sample: of the frequencies of all rows, and ``in_sample_interval``: its basic bootstrap interval, which reflects
            the bias and so may lie beside the figure.
        held_out: of an attacker who learnt on other rows than he is scored on, and ``held_out_interval``: its percentile
            bootstrap interval for these attackers, over the rows scored.
        lean: how the two are biased, in words.
        rows: rows measured.
        groups: groups among them.
        folds: parts that the rows were split into; an attacker learns on all but one, and is scored on that one.
        level: of the intervals.
    """

    measure: str
    unit: str
    in_sample: float
    in_sample_interval: tuple[float, float]
    held_out: float
    held_out_interval: tuple[float, float]
    lean: str
    rows: int
    groups: int
    folds: int
    level: float

    def __str__(self) -> str:
        """Both figures, their intervals and their bias.

        >>> print(Pair("Bayes error", "", 0.39, (0.38, 0.42), 0.43, (0.42, 0.44), "low in-sample", 900, 900, 2, 0.95))
        Bayes error: 0.390 in-sample [0.380, 0.420], 0.430 held-out [0.420, 0.440]; 95 % intervals, 900 rows; low in-sample
        """
        unit = f" {self.unit}" if self.unit else ""
        told = [
            f"{value:.3f}{unit} {kind} [{low:.3f}, {high:.3f}]"
            for value, kind, (low, high) in (
                (self.in_sample, "in-sample", self.in_sample_interval),
                (self.held_out, "held-out", self.held_out_interval),
            )
        ]
        among = f" in {self.groups} groups" if self.groups != self.rows else ""
        return (
            f"{self.measure}: {', '.join(told)}; {100 * self.level:g} % intervals, {self.rows} rows{among}; "
            f"{self.lean}"
        )


@dataclass(frozen=True, eq=False)
class _Sample:
    """A sample read: per row the cell of its (secret, output) and the number of its group."""

    shape: tuple[int, int]
    cells: Ints
    groups: Ints
    n_groups: int

    def table(self, row_weights: Floats | None = None) -> Floats:
        """Rows counted by (secret, output)."""
        size = self.shape[0] * self.shape[1]
        counted = np.bincount(self.cells, row_weights, minlength=size)
        return counted.astype(np.float64).reshape(self.shape)


def _codes(value: object, where: str, size: int | None) -> Ints:
    array = plain_array(value, where)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size == 0:
        raise SpecificationError(f"{where}: one whole number from 0 for each row, at least one row.")
    if (array < 0).any() or (size is not None and (array >= size).any()):
        raise SpecificationError(f"{where}: codes from 0{'' if size is None else f' to {size - 1}'}.")
    return array.astype(np.int64)


def _sample(
    secrets: object, outputs: object, shape: tuple[int, int] | None, groups: object = None
) -> _Sample:
    x = _codes(secrets, "secrets", shape[0] if shape else None)
    z = _codes(outputs, "outputs", shape[1] if shape else None)
    if len(x) != len(z):
        raise SpecificationError(f"samples: {len(x)} secrets and {len(z)} outputs; one of each per row.")
    told = shape or (int(x.max()) + 1, int(z.max()) + 1)
    if told[0] * told[1] > MOST_CELLS:
        raise SpecificationError(
            f"samples: a table of {told[0]} × {told[1]} is too large; number the outputs that occur from 0 without gaps."
        )
    if groups is None:
        return _Sample(told, x * told[1] + z, np.arange(len(x)), len(x))
    g = plain_array(groups, "groups")
    if g.shape != x.shape:
        raise SpecificationError(f"groups: one for each of the {len(x)} rows.")
    _, number = np.unique(g, return_inverse=True)
    return _Sample(told, x * told[1] + z, number.astype(np.int64), int(number.max()) + 1)


def frequencies(secrets: object, outputs: object, shape: tuple[int, int] | None = None) -> Floats:
    """The joint table of a sample: the share of rows with each (secret, output).

    Args:
        secrets, outputs: codes from 0, one of each per row.
        shape: (secrets, outputs); by default up to the largest codes.
    Raises:
        SpecificationError: codes are not whole numbers from 0, or not as many of each.

    >>> frequencies([0, 1, 1, 1], [0, 0, 1, 1]).tolist()
    [[0.25, 0.0], [0.25, 0.5]]
    """
    return normalised(_sample(secrets, outputs, shape).table())


def sample_bayes_error(
    secrets: object,
    outputs: object,
    rng: Generator,
    shape: tuple[int, int] | None = None,
    groups: object = None,
    folds: int = 2,
    resamples: int = 200,
    level: float = 0.95,
) -> Pair:
    """The Bayes error B(X | Z) of the law behind a sample: of the frequencies (low), and of a rule learnt elsewhere (high).

    Held-out: for each output the rule names the secret that was likeliest there in the rows learnt on, or likeliest of all
    for an output that they lack.

    Args:
        secrets, outputs, shape: as for ``frequencies``.
        rng: for the split and the bootstrap.
        groups: one label per row; rows of a group stay together. Default: every row on its own.
        folds: parts; 2 learns on one half and scores on the other, both ways round.
        resamples, level: of the bootstrap.
    Raises:
        SpecificationError: the sample or a setting is malformed, or there are fewer groups than folds.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.integers(0, 2, 1000)
    >>> found = sample_bayes_error(x, x ^ (rng.random(1000) < 0.1), rng)  # truth: 0.1
    >>> 0.06 < found.in_sample <= found.held_out < 0.14
    True
    """

    return _pair(
        _sample(secrets, outputs, shape, groups), rng, folds, resamples, level,
        ("Bayes error", "", "biased low in-sample, high held-out"),
        lambda table: bayes_error(normalised(table)), _misses, lambda table, lost: lost,
    )  # fmt: skip


def sample_information(
    secrets: object,
    outputs: object,
    rng: Generator,
    shape: tuple[int, int] | None = None,
    groups: object = None,
    folds: int = 2,
    resamples: int = 200,
    level: float = 0.95,
) -> Pair:
    """I(X; Z), in bits, of the law behind a sample: of the frequencies (high), and H(X) − CE of a classifier learnt elsewhere (low).

    Held-out: q(x | z) = (n(x, z) + p(x)) / (n(z) + 1) over the rows learnt on, p their frequencies of secrets with half a
    row added to each. It can be negative: that classifier shows nothing.

    Args and raises: as for ``sample_bayes_error``.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.integers(0, 2, 1000)
    >>> found = sample_information(x, x ^ (rng.random(1000) < 0.1), rng)  # truth: 0.531 bits
    >>> 0.42 < found.held_out <= found.in_sample < 0.64
    True
    """

    return _pair(
        _sample(secrets, outputs, shape, groups), rng, folds, resamples, level,
        ("information", "bits", "biased high in-sample, low held-out"),
        lambda table: information(normalised(table)), _surprise,
        lambda table, lost: entropy(normalised(table.sum(axis=1))) - lost,
    )  # fmt: skip


def sample_conditional_entropy(
    secrets: object,
    outputs: object,
    rng: Generator,
    shape: tuple[int, int] | None = None,
    groups: object = None,
    folds: int = 2,
    resamples: int = 200,
    level: float = 0.95,
) -> Pair:
    """H(X | Z), in bits, of the law behind a sample: of the frequencies (low), and CE of a classifier learnt elsewhere (high).

    The classifier is that of ``sample_information``. Bounds of the Bayes error (``bounds``) worked out from the two are
    estimates too: Fano's from the low figure stays low, upper ones from the high figure stay high.

    Args and raises: as for ``sample_bayes_error``.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.integers(0, 2, 1000)
    >>> found = sample_conditional_entropy(x, x ^ (rng.random(1000) < 0.1), rng)  # truth: 0.469 bits
    >>> 0.36 < found.in_sample <= found.held_out < 0.58
    True
    """
    return _pair(
        _sample(secrets, outputs, shape, groups), rng, folds, resamples, level,
        ("conditional entropy", "bits", "biased low in-sample, high held-out"),
        lambda table: conditional_entropy(normalised(table)), _surprise, lambda table, lost: lost,
    )  # fmt: skip


def sample_min_entropy_leakage(
    secrets: object,
    outputs: object,
    rng: Generator,
    shape: tuple[int, int] | None = None,
    groups: object = None,
    folds: int = 2,
    resamples: int = 200,
    level: float = 0.95,
) -> Pair:
    """log₂ V(X | Z) / V(X), in bits, of the law behind a sample: of the frequencies (high), and of a rule learnt elsewhere (low).

    The rule is that of ``sample_bayes_error``; where it does worse than guessing, guessing takes its place.

    Args and raises: as for ``sample_bayes_error``.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.integers(0, 2, 1000)
    >>> found = sample_min_entropy_leakage(x, x ^ (rng.random(1000) < 0.1), rng)  # truth: 0.848 bits
    >>> 0.7 < found.held_out <= found.in_sample < 0.95
    True
    """

    def score(table: Floats, lost: float) -> float:
        prior = float(table.sum(axis=1).max() / table.sum())
        return float(np.log2(max(1 - lost, prior) / prior))

    return _pair(
        _sample(secrets, outputs, shape, groups), rng, folds, resamples, level,
        ("min-entropy leakage", "bits", "biased high in-sample, low held-out"),
        lambda table: min_entropy_leakage(normalised(table)), _misses, score,
    )  # fmt: skip


def _misses(learnt: Floats) -> Floats:
    """1 for every (secret, output) at which the likeliest secret of the rows learnt on is another one."""
    rule = np.where(learnt.any(axis=0), learnt.argmax(axis=0), learnt.sum(axis=1).argmax())
    wrong = np.ones_like(learnt)
    wrong[rule, np.arange(learnt.shape[1])] = 0
    return wrong


def _surprise(learnt: Floats) -> Floats:
    """−log₂ q(x | z) of the frequencies of the rows learnt on, smoothed by one row."""
    prior = normalised(learnt.sum(axis=1) + 0.5)
    return np.asarray(-np.log2((learnt + prior[:, None]) / (learnt.sum(axis=0) + 1)))


def _pair(
    sample: _Sample,
    rng: Generator,
    folds: int,
    resamples: int,
    level: float,
    words: tuple[str, str, str],
    measure: Callable[[Floats], float],
    loss: Callable[[Floats], Floats],
    score: Callable[[Floats, float], float],
) -> Pair:
    """Both figures of one measure; ``loss`` of a table learnt on says what each cell costs, ``score`` what the mean means."""
    if not 2 <= folds <= sample.n_groups:
        raise SpecificationError(
            f"folds: from 2 to the number of groups, here {sample.n_groups}; one group alone cannot be held out."
        )
    if resamples < 20 or not 0 < level < 1:
        raise SpecificationError("bootstrap: at least 20 resamples, and a level between 0 and 1.")
    rows = len(sample.cells)
    part = rng.permutation(np.arange(sample.n_groups) % folds)[sample.groups]
    lost = np.zeros(rows)
    for fold in range(folds):
        scored = part == fold
        lost[scored] = loss(sample.table((~scored).astype(np.float64))).ravel()[sample.cells[scored]]
    whole = sample.table()
    told = measure(whole), score(whole, float(lost.mean()))
    draws = np.zeros((2, resamples))
    for i in range(resamples):
        # Whole groups are drawn with replacement; each row counts as often as its group was drawn.
        times = np.bincount(rng.integers(0, sample.n_groups, sample.n_groups), minlength=sample.n_groups)
        weight = times[sample.groups].astype(np.float64)
        table = sample.table(weight)
        draws[:, i] = measure(table), score(table, float(weight @ lost / weight.sum()))
    (low, held_low), (high, held_high) = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1)
    basic = max(0.0, float(2 * told[0] - high)), max(0.0, float(2 * told[0] - low))
    name, unit, lean = words
    held = float(held_low), float(held_high)
    return Pair(name, unit, told[0], basic, told[1], held, lean, rows, sample.n_groups, folds, level)


@dataclass(frozen=True)
class Shown:
    """What the answers of a trained classifier show about the secret, in bits, two ways.

    Attributes:
        bound: H(X) − CE, the mean of log₂ q(x | z) / p(x): at most I(X; Z) up to sampling. The one to go by.
        guesses: I(X; Y) of a guess drawn from the classifier (TᵗQ / N of Romanelli et al. 2020), which understates.
    """

    bound: float
    guesses: float


def batch_information(secrets: object, predictions: object) -> Shown:
    """Both estimates of what a classifier shows, from one batch of rows; held-out rows, or else it is biased high.

    Args:
        secrets: codes from 0, shape (rows,).
        predictions: q(x | z) of each row, shape (rows, secrets), rows are laws.
    Raises:
        SpecificationError: one of the two is malformed, or they differ in length.

    >>> shown = batch_information([0, 1], [[0.9, 0.1], [0.1, 0.9]])
    >>> round(shown.bound, 3), round(shown.guesses, 3)
    (0.848, 0.531)
    """
    q = stochastic(predictions, "predictions", ("rows", "secrets"))
    x = _codes(secrets, "secrets", q.shape[1])
    if len(x) != len(q):
        raise SpecificationError(f"samples: {len(x)} secrets and {len(q)} predictions; one of each per row.")
    rows = np.arange(len(x))
    prior = normalised(np.bincount(x, minlength=q.shape[1]))
    told = q[rows, x]
    missed = np.inf if (told == 0).any() else float(-np.log2(told).mean())
    onehot = np.zeros_like(q)
    onehot[rows, x] = 1 / len(x)
    return Shown(entropy(prior) - missed, guess_information(onehot.T, q))
