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
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from ..errors import Refused, SpecificationError
from .archives import DAMAGED, no_such, read, write
from .geometry import Floats
from .learned_noise import LearnedNoise, learned_noise
from .learning.asked import MOST_OUTPUTS as MOST_OUTPUTS
from .learning.asked import UNIT, Asked, Others, generator_of, installed, outputs_of, positive, rules_of
from .learning.atoms import Atoms, told
from .learning.bounding import MOST_AXES, Bounded, bounded
from .learning.drawing import drawn
from .learning.intervals import Interval, leakage_interval
from .learning.networks import bits, packed, unpacked
from .learning.samples import METRICS, Samples, Scale, places_of
from .learning.starting import start
from .learning.watching import Checkpoint, Look, bar, clock, quiet
from .priors import SOURCES

if TYPE_CHECKING:
    from ..domain import Domain
    from .channel import Channel
    from .learning.judged import Judged

FORMAT = 1
CLASSIFIER_STEPS = 600


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
        bound: no channel within the distortion leaks less about these rows (in more than three dimensions: none with the same output
            points); None where it was not asked for.
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
        return bits(self.joint(secrets, values, weights, prior))

    def bayes_error_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal"
    ) -> float:
        """How often the best guess of the secret is wrong, for these rows."""
        return float(1 - self.joint(secrets, values, weights, prior).max(axis=0).sum())

    def distortion_of(
        self, secrets: object, values: object, weights: object = None, prior: Any = "equal"
    ) -> float:
        """Expected distance from value to output, of these rows, in the values' unit."""
        found = told(self.atoms, self._samples(secrets, values, weights, prior))
        return self.scale.length(found.distortion, self.atoms.metric)

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
        """What fresh attackers find out from fresh outputs of rows that it was not learned from, beside noise of equal distortion.

        Args:
            rng: for attackers and comparisons; outputs are drawn as for a release.
            settings: ``draws``, ``cells``, ``level``, ``beside``, ``grid``, ``called``, see ``learning.judging.judge``.

        Raises:
            SpecificationError: arguments of the wrong kind or shape.
            DataError: values that are no finite numbers, secrets that are missing or have one row.
        """
        from .learning.judging import judge

        told = {"weights": weights, "prior": prior, "rng": rng, "metric": self.atoms.metric, **settings}
        return judge(self, secrets, values, **told)

    def channel(self, domain: Domain) -> Channel:
        """The same channel on declared cells: from each cell's middle to the cells that hold the output points. The values that it
        was learned from were in the domain's own lengths (metres from the low corner, of a place in degrees).

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
        arrays |= packed(atoms.inputs, atoms.posterior)
        write(Path(path), spec, arrays, is_private=self.is_private)

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
            inputs, layers = unpacked(arrays, int(spec["layers"]))
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
            _check(found)
        except DAMAGED:
            raise no_such(name, "learned channel") from None
        return found

    def _values(self, values: object) -> Floats:
        return places_of(values, self.atoms.points.shape[1])

    def _samples(self, secrets: object, values: object, weights: object, prior: Any) -> Samples:
        return self.scale.rows(Samples.of(secrets, self._values(values), weights, prior))

    def __repr__(self) -> str:
        axes = self.atoms.points.shape[1]
        fitted = ", learned from private rows" if self.is_private else ""
        return f"LearnedChannel({axes} dimensions → {len(self.atoms.points)} points{fitted})"


@overload
def learn(
    secrets: object,
    values: object,
    *,
    distortion: float,
    generator: Literal["noise"],
    **others: Unpack[Others],
) -> LearnedNoise: ...
@overload
def learn(
    secrets: object,
    values: object,
    *,
    distortion: float,
    generator: Literal["atoms"] = "atoms",
    **others: Unpack[Others],
) -> LearnedChannel: ...
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
    rng: np.random.Generator | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    generator: str = "atoms",
    objective: str = "posterior",
    rounds: int = 200,
    patience: int = 60,
    alpha: float | None = None,
    beta: float = 2.0,
    noise: float | None = None,
    batch: int | None = None,
) -> LearnedChannel | LearnedNoise:
    """A channel that hides which secret a value belongs to as well as a stated distortion allows.

    min I(secret; output) with E d(value, output) ≤ ``distortion``, over channels with finitely many output points that are
    learned too (see ``learning.atoms`` for their form). It starts from the exact optimum for a few hundred rows and goes on by
    gradient steps on the leakage of all of them, which for finitely many outputs needs no adversary to be known.

    With ``generator="noise"`` outputs lie anywhere: values with noise of a law that is learned in a game against a classifier, the
    paper's way (``learning.game``). What that leaks is only bounded from below, and is more than atoms leak at a tight budget.

    Args:
        secrets: of each row; numbers or texts.
        values: finite numbers, shape (rows,) or (rows, dimensions).
        distortion: the largest expected distance, in the unit of ``values`` (of its square for "squared").
        metric: "euclidean", "manhattan" or "squared".
        weights: of rows; 1 each by default.
        prior: "equal" for every secret, "rows" for their shares of the weights, or a probability for each.
        outputs: how many output points at most.
        held_out: share of each secret's rows that are not learned from; more where rows abound. By them the distortion is set with a
            margin, so that it holds for other rows too where many were held out. 0: the rows are all there is.
        confidence: of that margin, by the normal law of means.
        steps: of training.
        bound: whether to work out what no channel leaks less than; takes seconds.
        source: where the rows come from: "private", "disjoint" (other persons), "released" (charged answers) or "public".
        rng: of training alone, the same one by default, so that the same rows give the same channel (on machines of like speed: solvers
            end by the clock too). A release draws by none.
        progress: show a line with leakage, distortion and bound. Private figures, on standard error.
        checkpoint: a private file to go on from after an interruption.
        max_seconds: end training early, with what is best so far.
        generator: "atoms" or "noise". ``outputs`` and ``steps`` are of atoms, all that follows is of noise.
        objective: "posterior", or "paper" for its TᵗQ estimate, see ``learning.stakes``.
        rounds: of the game, at most; ``patience`` of them in a row without a better generator end it.
        alpha, beta: weights of distance, by default 1 for "paper" and 0.03 for "posterior", and of information.
        noise: mean length of the Laplace noise at the start, in the unit of ``values``; by default its distortion is the budget.
        batch: rows of a step; by default as many as make the estimate steady.

    Raises:
        SpecificationError: arguments of the wrong kind or shape.
        DataError: values or secrets that are missing.
        Refused: so few points cannot keep the distortion.
        Unsupported: the extra is not installed.

    Source: derived, docs/learned.md; the problem is that of Romanelli, Chatzikokolakis, Palamidessi 2020.
    """
    budget = positive(distortion, "distortion", UNIT)
    asked = Asked(budget, metric, held_out, confidence, source, bound, progress, max_seconds)
    generator_of(generator, objective)
    outputs_of(outputs, steps)
    rules = rules_of(objective, rounds, patience, alpha, beta, batch)
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise SpecificationError("learn.rng: a numpy Generator, or none.")
    installed()
    own = Samples.of(secrets, values, weights, prior)
    chance = np.random.default_rng(0) if rng is None else rng
    if generator == "noise":
        return learned_noise(own, asked, rules, noise, chance, checkpoint)
    scale = Scale(own.weights @ own.values, asked.unit)
    every = scale.rows(own)
    settings = {
        "distortion": budget, "metric": metric, "outputs": outputs, "held_out": held_out, "confidence": confidence,
        "steps": steps,
    }  # fmt: skip
    kept = None
    if checkpoint is not None:
        kept = Checkpoint.of(checkpoint, every, [settings, chance.bit_generator.state])
    atoms, parts, looks, floor = _trained(every, asked, outputs, steps, chance, kept)
    found = told(atoms, every)
    return LearnedChannel(
        atoms, scale, own.names, budget, source, bits(found.joint), scale.length(found.distortion, metric),
        None if parts is None else leakage_interval(atoms, *parts), floor, tuple(looks), settings,
    )  # fmt: skip


def _trained(
    every: Samples,
    asked: Asked,
    outputs: int,
    steps: int,
    rng: np.random.Generator,
    checkpoint: Checkpoint | None,
) -> tuple[Atoms, tuple[Samples, Samples] | None, list[Look], Bounded | None]:
    from .learning import training

    metric, held_out = asked.metric, asked.held_out
    stop = clock(asked.max_seconds)
    share = max(held_out, 1 - training.MOST / every.rows) if held_out else 0.0
    train, fresh = every.split(share, rng) if held_out else (every, every)
    errors = NormalDist().inv_cdf(asked.confidence) if fresh is not train else 0.0
    judges = every.told_enough(train, fresh) if fresh is not train else every
    [apart] = rng.spawn(1)  # whether there is a bound changes nothing else
    begun = start(train, 1.0, metric, outputs, rng)
    anywhere = every.values.shape[1] <= MOST_AXES
    floor = bounded(every, 1.0, metric, begun.points, apart) if asked.bound and anywhere else None
    atoms = training.first(begun, train, training.classifier(train, CLASSIFIER_STEPS, rng), metric)
    limit = max(1 - errors * told(atoms, judges).error, 0.5)
    tell = bar(steps, None if floor is None else floor.bits) if asked.progress else quiet
    atoms, looks = training.refined(
        atoms, begun.multiplier, limit, train, judges, steps, rng, tell, stop, checkpoint
    )
    done = training.calibrated(atoms, judges, errors, every)
    if done is None:
        raise Refused(
            "learn.distortion: rows lie farther from the output points than the distortion allows, or those held out are too few to tell. "
            "State more outputs or more distortion; or, where these rows are all there is, held_out = 0."
        )
    if asked.bound and not anywhere:  # one for the points that training came to
        floor = bounded(every, 1.0, metric, done.points, apart)
    return done, (train, fresh) if fresh is not train else None, looks, floor


def _check(found: LearnedChannel) -> None:
    """Refuse a file whose parts do not fit each other."""
    atoms, scale = found.atoms, found.scale
    points, axes = atoms.points.shape
    figures = [atoms.sharpness, scale.unit, found.asked, found.leakage, found.distortion]
    figures += [] if found.bound is None else [float(found.bound.bits)]
    if (
        scale.centre.shape != (axes,)
        or atoms.offsets.shape != (len(found.secrets), points)
        or min(atoms.sharpness, scale.unit, found.asked) <= 0
        or not np.isfinite(figures).all()
        or not isinstance(found.settings, dict)
    ):
        raise ValueError
    tried = found.law(found.points[:1])
    if tried.shape != (1, points) or not np.isfinite(tried).all():
        raise ValueError
