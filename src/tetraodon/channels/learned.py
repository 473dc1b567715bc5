"""Channels that are learned: for continuous values of any dimension, judged by what no channel can do better.

``learn`` needs the extra ``learn`` (JAX and Optax); what it returns is plain arrays, which are applied, saved and read without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError, Refused, SpecificationError, Unsupported
from .archives import DAMAGED, no_such, read, write
from .geometry import Floats
from .learning.atoms import Atoms, told
from .learning.bounding import Bounded, bounded
from .learning.drawing import drawn
from .learning.intervals import Interval, leakage_interval
from .learning.networks import information
from .learning.samples import METRICS, Samples, Scale
from .learning.starting import start
from .learning.watching import Checkpoint, Look, bar, clock, quiet
from .lower_bound import LN2
from .priors import SOURCES

if TYPE_CHECKING:
    from ..domain import Domain
    from .channel import Channel

FORMAT = 1
CLASSIFIER_STEPS = 600
MOST_OUTPUTS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class LearnedChannel:
    """P(output | value) for values of any dimension, learned from rows; outputs are finitely many points.

    Whatever it tells of itself was computed from the rows it was learned from and is private unless they are public. Nothing
    about ε is promised: a release through it is *measured*.

    Attributes:
        atoms: the generator, in scaled coordinates.
        scale: from the values' own coordinates to those.
        secrets: names of the secrets it hides, in order.
        asked: the largest expected distance, in the values' unit.
        source: where the rows it was learned from come from (``channels.priors``).
        leakage: bits that its outputs tell of the secret, of the rows it was learned from and those held out together.
        distortion: expected, of the same rows.
        interval: one-sided bounds on the leakage from the rows held out alone; None where none were.
        bound: no channel within the distortion leaks less about these rows; None where it was not asked for.
        history: what training looked like.
        settings: what was asked.
    """

    atoms: Atoms
    scale: Scale
    secrets: tuple[Any, ...]
    asked: float
    source: str = "private"
    leakage: float = 0.0
    distortion: float = 0.0
    interval: Interval | None = None
    bound: Bounded | None = None
    history: tuple[Look, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    guarantee = "measured"

    @cached_property
    def points(self) -> Floats:
        """The outputs, shape (points, dimensions), in the values' own coordinates."""
        return self.scale.back(self.atoms.points)

    @property
    def is_private(self) -> bool:
        """Whether the channel is a function of private rows."""
        return self.source == "private"

    def law(self, values: object) -> Floats:
        """P(point | value), shape (values, points).

        Raises:
            SpecificationError: values of other dimensions.
            DataError: values that are no finite numbers.
        """
        return self.atoms.law(self.scale.to(self._values(values)))

    def sample(self, values: object) -> Floats:
        """An output for each value, drawn from the operating system's randomness; shape (values, dimensions).

        Rows keep their order, so that whoever publishes them shuffles first.
        """
        told_ = self.scale.to(self._values(values))
        found = np.empty(told_.shape)
        for part, law in self.atoms.laws(told_):
            found[part] = self.points[drawn(law)]
        return found

    def joint(self, secrets: object, values: object, weights: object = None, prior: Any = "equal") -> Floats:
        """P(secret, point) of these rows, shape (secrets, points), exactly but for rounding."""
        return told(self.atoms, self._samples(secrets, values, weights, prior)).joint

    def leakage_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal"
    ) -> float:
        """I(secret; output) in bits of other rows, exactly but for rounding: no attacker has to be trained."""
        return max(float(information(self.joint(secrets, values, weights, prior))) / LN2, 0.0)

    def bayes_error_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal"
    ) -> float:
        """How often the best guess of the secret is wrong, for these rows."""
        return float(1 - self.joint(secrets, values, weights, prior).max(axis=0).sum())

    def distortion_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal"
    ) -> float:
        """Expected distance from value to output, of these rows, in the values' unit."""
        return self._length(told(self.atoms, self._samples(secrets, values, weights, prior)).distortion)

    def channel(self, domain: Domain) -> Channel:
        """The same channel on declared cells: from each cell's middle to the cells that hold the output points.

        Raises:
            SpecificationError: a domain that is not one place, or as many numbers as the values have dimensions.
        """
        from .learning.cells import on_cells

        return on_cells(self, domain)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the channel as a file of plain arrays. It is as private as the rows it was learned from.

        Raises:
            OutputError: it cannot be written.
        """
        atoms, bound, interval = self.atoms, self.bound, self.interval
        spec = {
            "format": FORMAT, "metric": atoms.metric, "sharpness": atoms.sharpness, "unit": self.scale.unit,
            "secrets": list(self.secrets), "asked": self.asked, "source": self.source, "leakage": self.leakage,
            "distortion": self.distortion, "layers": len(atoms.posterior), "settings": dict(self.settings),
            "bound": None if bound is None else vars(bound), "interval": None if interval is None else vars(interval),
            "history": [list(vars(look).values()) for look in self.history],
        }  # fmt: skip
        arrays = {"points": atoms.points, "offsets": atoms.offsets, "centre": self.scale.centre}
        arrays |= {f"inputs.{i}": array for i, array in enumerate(atoms.inputs)}
        for i, (weights, offsets) in enumerate(atoms.posterior):
            arrays |= {f"layer.{i}.weights": weights, f"layer.{i}.offsets": offsets}
        write(Path(path), spec, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> LearnedChannel:
        """The channel that ``save`` wrote; nothing in the file is run.

        Raises:
            DataError: no such file, or none that ``save`` wrote.
        """
        name = Path(path).name
        spec, arrays = read(Path(path), "learned channel")
        try:
            if spec["format"] != FORMAT or spec["metric"] not in METRICS or spec["source"] not in SOURCES:
                raise ValueError
            layers = tuple(
                (arrays[f"layer.{i}.weights"], arrays[f"layer.{i}.offsets"])
                for i in range(int(spec["layers"]))
            )
            inputs = arrays["inputs.0"], arrays["inputs.1"]
            atoms = Atoms(
                arrays["points"], arrays["offsets"], float(spec["sharpness"]), inputs, layers, spec["metric"]
            )
            bound, interval = spec["bound"], spec["interval"]
            found = LearnedChannel(
                atoms, Scale(arrays["centre"], float(spec["unit"])), tuple(spec["secrets"]), float(spec["asked"]),
                spec["source"], float(spec["leakage"]), float(spec["distortion"]),
                None if interval is None else Interval(**interval), None if bound is None else Bounded(**bound),
                tuple(Look(int(s), float(a), float(b), float(c)) for s, a, b, c in spec["history"]), spec["settings"],
            )  # fmt: skip
            if not np.isfinite(found.law(found.points[:1])).all() or len(found.secrets) != len(atoms.offsets):
                raise ValueError
        except DAMAGED:
            raise no_such(name, "learned channel") from None
        return found

    def _values(self, values: object) -> Floats:
        try:
            found = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise SpecificationError("channel.values: numbers, one row for each record.") from None
        found = found[:, None] if found.ndim == 1 else found
        axes = self.atoms.points.shape[1]
        if found.ndim != 2 or found.shape[1] != axes:
            raise SpecificationError(
                f"channel.values: numbers of {axes} dimensions, one row for each record."
            )
        if not np.isfinite(found).all():
            raise DataError("channel.values: every value must be a finite number; leave such rows out.")
        return found

    def _samples(self, secrets: object, values: object, weights: object, prior: Any) -> Samples:
        return _scaled(Samples.of(secrets, self._values(values), weights, prior), self.scale)

    def _length(self, scaled: float) -> float:
        return scaled * (self.scale.unit**2 if self.atoms.metric == "squared" else self.scale.unit)

    def __repr__(self) -> str:
        axes = self.atoms.points.shape[1]
        fitted = ", learned from private rows" if self.is_private else ""
        return f"LearnedChannel({axes} dimensions → {len(self.atoms.points)} points{fitted})"


def learn(
    secrets: object,
    values: object,
    *,
    distortion: float,
    metric: str = "euclidean",
    weights: object = None,
    prior: Any = "equal",
    outputs: int = 128,
    held_out: float = 0.3,
    confidence: float = 0.99,
    steps: int = 400,
    bound: bool = True,
    source: str = "private",
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
) -> LearnedChannel:
    """A channel that hides which secret a value belongs to as well as a stated distortion allows.

    min I(secret; output) with E d(value, output) ≤ ``distortion``, over channels with finitely many output points that are
    learned too (see ``learning.atoms`` for their form). It starts from the exact optimum for a few hundred rows and goes on by
    gradient steps on the leakage of all of them, which for finitely many outputs needs no adversary to be known.

    Args:
        secrets: of each row; numbers or texts.
        values: finite numbers, shape (rows,) or (rows, dimensions).
        distortion: the largest expected distance, in the unit of ``values`` (of its square for "squared").
        metric: "euclidean", "manhattan" or "squared".
        weights: of rows; 1 each by default.
        prior: "equal" for every secret, "rows" for their shares of the weights, or a probability for each.
        outputs: how many output points at most.
        held_out: share of each secret's rows that are not learned from; more where rows abound. With it the distortion holds for
            rows that training has not seen. 0: the rows are all there is, and it holds for them.
        confidence: with which the expected distortion of fresh rows keeps the budget.
        steps: of training.
        bound: whether to work out what no channel leaks less than; takes seconds.
        source: where the rows come from: "private", "disjoint" (other persons) or "public".
        seed: of training alone. What a release draws has no seed.
        progress: show a line with leakage, distortion and bound. Private figures, on standard error.
        checkpoint: a private file to go on from after an interruption.
        max_seconds: end training early, with what is best so far.

    Raises:
        SpecificationError: arguments of the wrong kind or shape.
        DataError: values or secrets that are missing.
        Refused: so few points cannot keep the distortion.
        Unsupported: the extra is not installed.
    Source: derived, docs/learned.md; the problem is that of Romanelli, Chatzikokolakis, Palamidessi 2020.
    """
    budget = _positive(distortion, "distortion")
    if metric not in METRICS:
        raise SpecificationError(f"learn.metric: one of {', '.join(METRICS)}.")
    if not 0 <= held_out < 1 or not 0.5 <= confidence < 1:
        raise SpecificationError(
            "learn.held_out: a share from 0 to below 1; confidence: from 0.5 to below 1."
        )
    for name, number in (("outputs", outputs), ("steps", steps)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise SpecificationError(f"learn.{name}: a whole number of at least 1.")
    if outputs > MOST_OUTPUTS:
        raise SpecificationError(f"learn.outputs: at most {MOST_OUTPUTS:,}.")
    if source not in SOURCES[1:]:
        raise SpecificationError("learn.source: 'public', 'released', 'disjoint' or 'private'.")
    _installed()
    own = Samples.of(secrets, values, weights, prior)
    unit = budget if metric != "squared" else float(np.sqrt(budget))
    scale = Scale(own.weights @ own.values, unit)
    every = _scaled(own, scale)
    settings = {
        "distortion": budget, "metric": metric, "outputs": outputs, "held_out": held_out, "confidence": confidence,
        "steps": steps, "seed": seed,
    }  # fmt: skip
    rng = np.random.default_rng(seed)
    kept = None if checkpoint is None else Checkpoint.of(checkpoint, every, settings)
    atoms, parts, looks, floor = _trained(
        every, metric, outputs, held_out, confidence, steps, bound, rng, progress, kept, max_seconds
    )
    found = told(atoms, every)
    made = LearnedChannel(
        atoms, scale, own.names, budget, source, max(float(information(found.joint)) / LN2, 0.0), 0.0,
        leakage_interval(atoms, *parts) if held_out else None, floor, tuple(looks), settings,
    )  # fmt: skip
    object.__setattr__(made, "distortion", made._length(found.distortion))
    return made


def _trained(
    every: Samples,
    metric: str,
    outputs: int,
    held_out: float,
    confidence: float,
    steps: int,
    bound: bool,
    rng: np.random.Generator,
    progress: bool,
    checkpoint: Checkpoint | None,
    max_seconds: float | None,
) -> tuple[Atoms, tuple[Samples, Samples], list[Look], Bounded | None]:
    from .learning import training

    stop = clock(max_seconds)
    share = max(held_out, 1 - training.MOST / every.rows) if held_out else 0.0
    train, fresh = every.split(share, rng) if held_out else (every, every)
    errors = NormalDist().inv_cdf(confidence) if held_out else 0.0
    begun = start(train, 1.0, metric, outputs, rng)
    floor = bounded(every, 1.0, metric, begun.points, rng) if bound else None
    atoms = training.first(begun, train, training.classifier(train, CLASSIFIER_STEPS, rng), metric)
    limit = max(1 - errors * told(atoms, fresh).error, 0.5)
    tell = bar(steps, None if floor is None else floor.bits) if progress else quiet
    atoms, looks = training.refined(
        atoms, begun.multiplier, limit, train, fresh, steps, rng, tell, stop, checkpoint
    )
    done = training.calibrated(atoms, fresh, errors)
    if done is None:
        raise Refused(
            "learn.distortion: rows that were held out lie farther from the output points than the distortion allows, or are too few to "
            "tell. State more outputs or more distortion; or held_out = 0, where these rows are all there is."
        )
    return done, (train, fresh), looks, floor


def _scaled(samples: Samples, scale: Scale) -> Samples:
    return Samples(samples.names, samples.secrets, scale.to(samples.values), samples.weights)


def _positive(told: object, key: str) -> float:
    number = float(told) if isinstance(told, int | float | np.number) and not isinstance(told, bool) else -1.0
    if not 0 < number < 1e100:
        raise SpecificationError(
            f"learn.{key}: a number above 0, in the unit of the values; with 0 they would leave as they are."
        )
    return number


def _installed() -> None:
    try:
        import jax  # noqa: F401
        import optax  # noqa: F401
    except ImportError:
        raise Unsupported(
            "channels.learn: needs the extra 'learn': pip install 'tetraodon[learn]'. Channels that were learned elsewhere are read and "
            "applied without it, and channels.least_leaking needs no extra."
        ) from None
