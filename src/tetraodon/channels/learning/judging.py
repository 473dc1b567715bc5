r"""How much a channel tells attackers who come after it: measured on values that it was not learned from.

Rows are halved, each secret's by itself. Attackers learn from fresh outputs of one half, whose secrets they know, and are scored
on fresh outputs of the other. For whatever they learned, q, two things hold of the law behind the rows:

    E log₂ q(x | z)/p(x) = H(X) − cross-entropy ≤ I(X; Z),        and the guess argmax_x q(x | z) errs no less often than the best.

So their leakage is a lower bound and their error an upper one, each with an interval for what the sample of rows does
(``intervals.mean_ends``). A histogram's frequencies are given twice, in-sample (biased towards the attacker) and held-out (against him):
the truth for that cell size lies between the two in expectation. Where outputs are finitely many points, what they tell about these
rows is computed exactly: the row "posterior". All of it is measured, bounds no other attacker, and is private unless the rows are public.

Draws of the channel come from where it draws releases from; the generator that is passed in is for attackers and comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import DataError, Refused, SpecificationError
from ...leakage.samples import sample_bayes_error, sample_information
from ..geometry import Floats
from ..lower_bound import LN2
from . import attackers, rivals
from .intervals import mean_ends
from .judged import ITSELF, Ends, Finding, Judged
from .networks import information
from .samples import METRICS, Samples, apart

DRAWS = 10_000
LEAST = 20  # draws for each secret
MOST_DRAWS = 10**7
COPIES = 50  # outputs of one row that are scored, at most
FINER = (4, 8, 16, 32)  # cells across the outputs
RESAMPLES = 200  # of the bootstrap, fewer for large tables
MOST_COUNTED = 10**8
CHUNK = 1 << 22


def judge(
    channel: Any,
    secrets: object,
    values: object,
    *,
    weights: object = None,
    prior: Any = "equal",
    metric: str = "euclidean",
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
    cells: Sequence[float] | None = None,
    level: float = 0.99,
    beside: bool = True,
    grid: int = 32,
    called: str = "secrets",
) -> Judged:
    """Attackers on fresh outputs of a channel, and the same for noise of equal distortion.

    Args:
        channel: anything with ``sample(values)``, which gives an output of the same dimensions for each value; with ``law(values)`` and
            ``points`` as well, what it tells is computed exactly too.
        secrets, values, weights, prior: rows that it was not learned from, as for ``learn``; two of every secret at least.
        metric: of the distortion.
        rng: for attackers and comparisons; the same one by default. The channel's own draws have none.
        draws: outputs to learn from, and about as many to score on; 20 for each secret at least.
        cells: sides of the histograms' cells, in the values' unit; by default from a quarter to a 32nd of the outputs' spread.
        level: of the two-sided intervals.
        beside: whether to measure Laplace noise of the same distortion too, and in two dimensions the exact optimum on a grid.
        grid: cells along the longer side of that grid.
        called: what the secrets are, in the plural, for the words.

    Raises:
        SpecificationError: arguments of the wrong kind or shape, a channel that gives no such outputs.
        DataError: values that are no finite numbers, secrets that are missing or have one row.
    """
    own = _samples(secrets, values, weights, prior)
    _checked(channel, metric, draws, level, grid, cells)
    chance = np.random.default_rng(0) if rng is None else rng
    halves = _halves(own, chance)
    draws = max(draws, LEAST * own.n_secrets)
    found: list[Finding] = []
    exact = _exact(channel, own, metric)
    ends: Ends | None = None
    if exact is None:
        spent, ends = _spent(channel, own, metric, draws, level, chance)
    else:
        bits, error, spent = exact
        found.append(Finding(ITSELF, "posterior", "exact", bits, None, error, None, "for these rows"))
    found += _attacked(ITSELF, channel, halves, draws, level, chance)
    found += _histograms(ITSELF, channel, own, draws, level, cells, exact is not None, chance)
    if beside and spent > 0:
        found += _beside(own, halves, spent, metric, draws, level, grid, chance)
    skipped: tuple[str, ...] = ()
    if not attackers.has_jax():
        skipped = ("MINE needs the extra 'learn': pip install 'tetraodon[learn]'",)
    law = own.prior
    return Judged(
        tuple(found), own.n_secrets, float(law.max()), float(-(law * np.log2(law)).sum()), spent, ends, metric,
        min(halves[0].rows, draws), min(halves[1].rows, draws), level, called, skipped,
    )  # fmt: skip


def _samples(secrets: object, values: object, weights: object, prior: Any) -> Samples:
    try:
        own = Samples.of(secrets, values, weights, prior)
    except (SpecificationError, Refused) as told:
        raise type(told)(str(told).replace("learn.", "judge.")) from None
    if np.bincount(own.secrets).min() < 2:
        raise DataError(
            "judge.values: a secret has one row only; attackers learn from some of a secret's rows and are scored on others. "
            "State two rows of every secret at least, better dozens, or leave such secrets out."
        )
    return own


def _checked(
    channel: Any, metric: str, draws: int, level: float, grid: int, cells: Sequence[float] | None
) -> None:
    if not callable(getattr(channel, "sample", None)):
        raise SpecificationError("judge.channel: something with a method sample(values).")
    if metric not in METRICS:
        raise SpecificationError(f"judge.metric: one of {', '.join(METRICS)}.")
    for name, number, least, most in (("draws", draws, LEAST, MOST_DRAWS), ("grid", grid, 1, 64)):
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise SpecificationError(f"judge.{name}: a whole number from {least} to {most:,}.")
    if not 0.5 <= level < 1:
        raise SpecificationError("judge.level: from 0.5 to below 1.")
    if cells is not None and not all(np.isfinite(c) and c > 0 for c in cells):
        raise SpecificationError("judge.cells: lengths above 0, in the unit of the values.")


def _halves(own: Samples, rng: np.random.Generator) -> tuple[Samples, Samples]:
    """Half of each secret's rows to learn from, the rest to score on."""
    order = rng.permutation(own.rows)
    order = order[np.argsort(own.secrets[order], kind="stable")]
    first = np.searchsorted(own.secrets[order], np.arange(own.n_secrets))
    turn = np.arange(own.rows) - first[own.secrets[order]]
    odd = turn % 2 == 1
    return own.only(np.sort(order[~odd])), own.only(np.sort(order[odd]))


def _drawn(channel: Any, values: Floats) -> Floats:
    found: Floats = np.asarray(channel.sample(values), dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.shape != values.shape or not np.isfinite(found).all():
        raise SpecificationError(
            "judge.channel: sample(values) gives a finite output of the same dimensions for each value."
        )
    return found


def _exact(channel: Any, own: Samples, metric: str) -> tuple[float, float, float] | None:
    """Leakage in bits, Bayes error and distortion of these rows, where outputs are finitely many points."""
    points = getattr(channel, "points", None)
    if points is None or not callable(getattr(channel, "law", None)):
        return None
    joint, far = np.zeros((own.n_secrets, len(points))), 0.0
    step = max(1, CHUNK // len(points))
    for start in range(0, own.rows, step):
        rows = slice(start, start + step)
        mass = own.weights[rows, None] * channel.law(own.values[rows])
        np.add.at(joint, own.secrets[rows], mass)
        far += float((mass * apart(own.values[rows], points, metric)).sum())
    return max(float(information(joint)) / LN2, 0.0), float(1 - joint.max(axis=0).sum()), far


def _spent(
    channel: Any, own: Samples, metric: str, draws: int, level: float, rng: np.random.Generator
) -> tuple[float, Ends]:
    """Expected distance from value to output, by draws."""
    at = rivals.even(own.weights, max(draws, min(own.rows, 10 * DRAWS)), rng)
    gap = _drawn(channel, own.values[at]) - own.values[at]
    far = np.abs(gap).sum(axis=1) if metric == "manhattan" else np.square(gap).sum(axis=1)
    far = np.sqrt(far) if metric == "euclidean" else far
    weights, none = np.full(len(at), 1 / len(at)), np.zeros(own.n_secrets)
    span = none, none + far.max(initial=0.0)
    mean, low, high = mean_ends(far, weights, own.secrets[at], span, (1 + level) / 2)
    return mean, (low, high)


def _attacked(
    name: str,
    channel: Any,
    halves: tuple[Samples, Samples],
    draws: int,
    level: float,
    rng: np.random.Generator,
) -> Iterator[Finding]:
    """Every attacker who learns, on one channel's outputs."""
    known, asked = halves
    prior, one_sided = known.prior, (1 + level) / 2
    at = rivals.even(known.weights, draws, rng)
    learnt, secrets = _drawn(channel, known.values[at]), known.secrets[at]
    asked = asked.at_most(draws, rng)
    copies = min(max(1, draws // asked.rows), COPIES)
    row = np.repeat(np.arange(asked.rows), copies)
    outputs, right = _drawn(channel, asked.values[row]), asked.secrets[row]
    centre = learnt.mean(axis=0)
    spread = float(np.sqrt(np.square(learnt - centre).mean())) or 1.0
    learnt, outputs = (learnt - centre) / spread, (outputs - centre) / spread
    none = np.zeros(len(prior))
    for title, model in attackers.models().items():
        taught = attackers.trained(model, secrets, learnt, prior, rng)
        q = taught.guesses(outputs)
        shown = np.log2(q[np.arange(len(q)), right] / prior[right])
        missed = q.argmax(axis=1) != right
        span = none + np.log2(taught.doubt), np.log2(taught.doubt + (1 - taught.doubt) / prior)
        bits = mean_ends(_by_row(shown, copies), asked.weights, asked.secrets, span, one_sided)
        error = mean_ends(_by_row(missed, copies), asked.weights, asked.secrets, (none, none + 1), one_sided)
        yield Finding(name, title, "bound", bits[0], bits[1:], error[0], error[1:])
    if attackers.has_jax():
        from .mine import estimated, statistics_network

        told = statistics_network(secrets, learnt, prior, rng)(outputs)
        found = estimated(told, right, asked.weights[row] / copies, prior, row, level)
        note = f"biased upward by about {found.bias:.2g} bits; no bound"
        yield Finding(name, "MINE", "estimate", found.bits, found.interval, None, None, note)


def _by_row(told: Any, copies: int) -> Floats:
    each: Floats = np.asarray(told, dtype=np.float64).reshape(-1, copies)
    return np.asarray(each.mean(axis=1))


def _histograms(
    name: str,
    channel: Any,
    own: Samples,
    draws: int,
    level: float,
    sides: Sequence[float] | None,
    finite: bool,
    rng: np.random.Generator,
) -> Iterator[Finding]:
    """Bayes' rule on cells of several sizes, each in-sample and held-out."""
    at = rivals.even(own.weights, draws, rng)
    outputs, secrets = _drawn(channel, own.values[at]), own.secrets[at]
    low, high = np.quantile(outputs, [0.01, 0.99], axis=0)
    spread = float((high - low).max())
    if sides is None:
        sides = [_round(spread / n) for n in FINER] if spread > 0 else [1.0]
    kinds: list[tuple[str, Any]] = [
        (f"histogram, cells of {side:g}", np.floor((outputs - (low + high) / 2) / side)) for side in sides
    ]
    if finite:
        kinds.append(("histogram of output points", outputs))
    for title, told in kinds:
        code = np.ravel(np.unique(told, axis=0, return_inverse=True)[1]).astype(np.int64)
        size = own.n_secrets * (int(code.max()) + 1)
        count = int(np.clip(MOST_COUNTED // size, 20, RESAMPLES))
        bits = sample_information(secrets, code, rng, groups=at, resamples=count, level=level)
        error = sample_bayes_error(secrets, code, rng, groups=at, resamples=count, level=level)
        yield Finding(
            name, title, "in-sample", bits.in_sample, bits.in_sample_interval, error.in_sample, error.in_sample_interval,
            "leakage biased high, error low",
        )  # fmt: skip
        yield Finding(
            name, title, "held-out", bits.held_out, bits.held_out_interval, error.held_out, error.held_out_interval,
            "leakage biased low, error high",
        )  # fmt: skip


def _round(side: float) -> float:
    return float(f"{side:.2g}")


def _beside(
    own: Samples,
    halves: tuple[Samples, Samples],
    spent: float,
    metric: str,
    draws: int,
    level: float,
    grid: int,
    rng: np.random.Generator,
) -> Iterator[Finding]:
    axes = own.values.shape[1]
    noise = rivals.Laplace.of(spent, axes, metric, rng)
    name = rivals.NAMES.get(axes, "spherical Laplace noise") if metric != "manhattan" else rivals.NAMES[1]
    known = rivals.known_law(noise, own, level)
    rows = "these rows" if known.rows == own.rows else f"{known.rows:,} of these rows"
    note = f"for {rows}, by simulation"
    yield Finding(
        name, "posterior", "simulated", known.bits, known.bits_interval, known.error, known.error_interval, note,
    )  # fmt: skip
    yield from _attacked(name, noise, halves, draws, level, rng)
    if axes != 2:
        return
    best = rivals.optimum(own, spent, metric, grid, rng)
    if best is not None:
        rows = "these rows" if best.rows == own.rows else f"{best.rows:,} of these rows"
        note = f"made for {rows}; no channel on this grid leaks less than {best.bound:.3f} bits about them"
        title = f"least leaking channel on a grid of {best.shape[1]} × {best.shape[0]}"
        yield Finding(title, "posterior", "exact", best.bits, None, best.error, None, note)
