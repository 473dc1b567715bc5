"""Noise that was learned: for continuous values of any dimension, outputs anywhere.

``learn(…, generator="noise")`` needs the extra ``learn`` (JAX and Optax); what it returns is plain arrays, which are applied, saved
and read without. Outputs of ``generator="atoms"`` are finitely many, so that their leakage is computed; here it can only be
bounded from below, by whatever attacker is tried. Prefer atoms unless outputs must lie anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from .archives import DAMAGED, no_such, read, write
from .geometry import Floats
from .learning import game
from .learning.asked import Asked, positive
from .learning.bounding import MOST_AXES, Bounded, bounded
from .learning.intervals import mean_ends
from .learning.networks import forward, packed, seen, standardising, unpacked
from .learning.noising import Noising, lengths, mean_for, moves_of, untrained, within
from .learning.samples import METRICS, Samples, Scale, places_of
from .learning.stakes import Rules, log_softmax
from .learning.watching import Checkpoint, bar, clock, quiet
from .lower_bound import LN2
from .priors import SOURCES

if TYPE_CHECKING:
    from .learning.judged import Judged

FORMAT = 1
WAVES = 32  # that the generator sees of values
JUDGE_STEPS = 600
JUDGE_BATCH = 1024
LEVEL = 0.99


@dataclass(frozen=True)
class AtLeast:
    """Bits that outputs tell of the secret at the least: what a fresh classifier finds, of rows that it has not seen.

    Attributes:
        estimate: its mean of log₂ q(x | z)/p(x), which no q lifts above the leakage.
        lower: one-sided end of that mean, which holds with probability ``level``.
        level: such as 0.99.
    """

    estimate: float
    lower: float
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class LearnedNoise:
    """A law z = w + s (n + N(w, n)) of outputs for values of any dimension, learned from rows in the adversarial game.

    Whatever it tells of itself was measured on the rows it was learned from and is private unless they are public. Nothing about
    ε is promised: a release through it is *measured*.

    Attributes:
        noising: the generator, in scaled coordinates.
        scale: from the values' own coordinates to those.
        secrets: names of the secrets it hides, in order.
        asked: the largest expected distance, in the values' unit.
        source: where the rows it was learned from come from (``channels.priors``).
        leakage: what a classifier trained afresh found. It bounds the leakage from below; no figure bounds it from above.
        distortion: expected, of all rows (of 50,000, where there are more), by fresh draws.
        bound: no channel within the distortion leaks less about these rows; None where it was not asked for.
        history: of each round, both estimates of the leakage and the distortion.
        settings: what was asked.
    """

    noising: Noising
    scale: Scale
    secrets: tuple[Any, ...]
    asked: float
    source: str = "private"
    leakage: AtLeast = AtLeast(0.0, 0.0, LEVEL)
    distortion: float = 0.0
    bound: Bounded | None = None
    history: tuple[game.Round, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    guarantee = "measured"

    @property
    def is_private(self) -> bool:
        """Whether the channel is a function of private rows."""
        return self.source == "private"

    def sample(self, values: object) -> Floats:
        """An output for each value, drawn from the operating system's randomness; shape (values, dimensions).

        Rows keep their order, so that whoever publishes them shuffles first.

        Raises:
            SpecificationError: values of other dimensions.
            DataError: values that are no finite numbers.
        """
        return self.scale.back(self.noising.drawn(self.scale.to(self._values(values))))

    def distortion_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal", draws: int = 8
    ) -> float:
        """Expected distance from value to output, of these rows, in the values' unit, by so many draws of each."""
        own = Samples.of(secrets, self._values(values), weights, prior)
        told = self.scale.to(own.values)
        metric = self.noising.metric
        mean = [own.weights @ lengths(self.noising.drawn(told) - told, metric) for _ in range(draws)]
        return self.scale.length(float(np.mean(mean)), metric)

    def judge(
        self,
        secrets: object,
        values: object,
        *,
        weights: object = None,
        prior: Any = "equal",
        rng: np.random.Generator | None = None,
        **settings: Any,
    ) -> Judged:
        """What fresh attackers find out from fresh outputs of rows that it was not learned from, see ``learning.judging.judge``.

        Raises:
            SpecificationError: arguments of the wrong kind or shape.
            DataError: values that are no finite numbers, secrets that are missing or have one row.
        """
        from .learning.judging import judge

        told = {"weights": weights, "prior": prior, "rng": rng, "metric": self.noising.metric, **settings}
        return judge(self, secrets, values, **told)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the channel as a file of plain arrays. It is as private as the rows it was learned from.

        Raises:
            OutputError: it cannot be written.
        """
        own, bound = self.noising, self.bound
        spec = {
            "format": FORMAT, "metric": own.metric, "mean": own.mean, "factor": own.factor, "unit": self.scale.unit,
            "secrets": list(self.secrets), "asked": self.asked, "source": self.source, "leakage": vars(self.leakage),
            "distortion": self.distortion, "layers": len(own.layers), "settings": dict(self.settings),
            "bound": None if bound is None else vars(bound), "history": [list(vars(look).values()) for look in self.history],
        }  # fmt: skip
        arrays = {"centre": self.scale.centre}
        arrays |= packed(own.inputs, own.layers)
        write(Path(path), spec, arrays, is_private=self.is_private)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> LearnedNoise:
        """The channel that ``save`` wrote; nothing in the file is run.

        Raises:
            DataError: no such file, or none that ``save`` wrote.
        """
        name = Path(path).name
        spec, arrays = read(Path(path), "learned noise")
        try:
            if spec["format"] != FORMAT or spec["metric"] not in METRICS or spec["source"] not in SOURCES:
                raise ValueError
            inputs, layers = unpacked(arrays, int(spec["layers"]))
            noising = Noising(float(spec["mean"]), inputs, layers, spec["metric"], float(spec["factor"]))
            bound = spec["bound"]
            found = LearnedNoise(
                noising, Scale(arrays["centre"], float(spec["unit"])), tuple(spec["secrets"]), float(spec["asked"]),
                spec["source"], AtLeast(**spec["leakage"]), float(spec["distortion"]),
                None if bound is None else Bounded(**bound),
                tuple(game.Round(int(step), *map(float, rest)) for step, *rest in spec["history"]), spec["settings"],
            )  # fmt: skip
            tried = found.sample(found.scale.centre[None])
            if (
                not np.isfinite(tried).all()
                or tried.shape != (1, noising.axes)
                or not isinstance(found.settings, dict)
            ):
                raise ValueError
        except DAMAGED:
            raise no_such(name, "learned noise") from None
        return found

    def _values(self, values: object) -> Floats:
        return places_of(values, self.noising.axes)

    def __repr__(self) -> str:
        fitted = ", learned from private rows" if self.is_private else ""
        return f"LearnedNoise({self.noising.axes} dimensions{fitted})"


def learned_noise(
    own: Samples,
    asked: Asked,
    rules: Rules,
    noise: float | None,
    rng: np.random.Generator,
    checkpoint: str | os.PathLike[str] | None,
) -> LearnedNoise:
    """Play the game for these rows, in the values' own coordinates, and measure what came of it.

    Args:
        noise: mean length of the noise at the start, in the unit of the values; by default such that its distortion is the budget.
    """
    scale = Scale(own.weights @ own.values, asked.unit)
    every = scale.rows(own)
    axes = every.values.shape[1]
    if noise is None:
        mean = mean_for(1.0, axes, asked.metric)
    else:
        mean = positive(noise, "noise", "the mean length of the noise at the start") / scale.unit
    settings = {**vars(asked), **vars(rules), "generator": "noise", "noise": mean * scale.unit}
    for unrecorded in ("progress", "max_seconds", "bound", "source"):
        settings.pop(unrecorded)
    kept = None
    if checkpoint is not None:
        kept = Checkpoint.of(checkpoint, every, [settings, rng.bit_generator.state])
    stop = clock(asked.max_seconds)
    train, fresh = every.split(asked.held_out, rng) if asked.held_out else (every, every)
    train, fresh = train.at_most(game.MOST, rng), fresh.at_most(game.MOST, rng)
    seed = int(rng.integers(2**31))
    inputs = standardising(train.values, train.weights, WAVES, rng)
    table = game.Table.laid(train, fresh, untrained(train, mean, asked.metric, inputs, rng), rng)
    floor = None
    if asked.bound and axes <= MOST_AXES:  # in more dimensions the bound would be for stated outputs alone
        floor = bounded(every, 1.0, asked.metric, every.values[:1], rng)
    tell = bar(rules.rounds, None if floor is None else floor.bits) if asked.progress else quiet
    noising, looks, batch = game.play(table, rules, seed, tell, stop, kept)
    errors = NormalDist().inv_cdf(asked.confidence) if asked.held_out else 0.0
    judges = fresh if fresh is train else every.told_enough(train, fresh)
    noising = within(noising, judges, errors, rng)
    some = every.at_most(game.MOST, rng)
    moves, _ = moves_of(noising, some, rng)
    length = lengths(moves.reshape(-1, axes), asked.metric).reshape(some.rows, -1).mean(axis=1)
    return LearnedNoise(
        noising, scale, own.names, asked.distortion, asked.source,
        at_least(noising, train, fresh, rng), scale.length(float(some.weights @ length), asked.metric),
        floor, tuple(looks), {**settings, "batch": batch},
    )  # fmt: skip


def at_least(
    noising: Noising, train: Samples, fresh: Samples, rng: np.random.Generator, level: float = LEVEL
) -> AtLeast:
    """What a classifier that learns afresh from outputs of ``train`` finds of those of ``fresh``; in scaled coordinates.

    Its answers are mixed with a little of the prior, so that none says that something cannot be and the mean has bounds.
    """
    table = game.Table.laid(train, fresh, noising, rng, game.JUDGE)
    inputs, layers = game.answered(table, int(rng.integers(2**31)), JUDGE_STEPS, JUDGE_BATCH)
    _, outputs = moves_of(noising, fresh, rng)
    some = 1.0 / max(train.rows, 2)
    prior = np.maximum(train.prior, 1e-300)
    told = np.empty(outputs.shape[:2])
    for draw in range(outputs.shape[1]):
        answers = np.exp(log_softmax(forward(layers, seen(inputs, outputs[:, draw]))))
        mixed = (1 - some) * answers / prior + some
        told[:, draw] = np.log(mixed[np.arange(fresh.rows), fresh.secrets])
    span = np.full(fresh.n_secrets, np.log(some)), np.log((1 - some) / prior + some)
    mean, lower, _ = mean_ends(told.mean(axis=1), fresh.weights, fresh.secrets, span, level)
    return AtLeast(max(mean, 0.0) / LN2, max(lower, 0.0) / LN2, level)
