"""What is asked of learning, checked before a row is looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from ...errors import SpecificationError, Unsupported
from ..priors import SOURCES
from .samples import METRICS
from .stakes import OBJECTIVES, Rules

MOST_OUTPUTS = 1024
GENERATORS = ("atoms", "noise")
CLASSIFIER_STEPS = 100  # in each round of the game
GENERATOR_STEPS = 20
ALPHA = {"paper": 1.0, "posterior": 0.03}  # a steep slope beyond the budget drowns what leakage says
MOST_BATCH = 1 << 16
UNIT = "in the unit of the values; with 0 they would leave as they are"


class Others(TypedDict, total=False):
    """What ``learn`` takes beside rows, distortion and generator."""

    metric: str
    weights: object
    prior: Any
    outputs: int
    held_out: float
    confidence: float
    steps: int
    bound: bool
    source: str
    rng: np.random.Generator | None
    progress: bool
    checkpoint: str | os.PathLike[str] | None
    max_seconds: float | None
    objective: str
    rounds: int
    patience: int
    alpha: float | None
    beta: float
    noise: float | None
    batch: int | None


@dataclass(frozen=True)
class Asked:
    """What is asked of any generator.

    Attributes:
        distortion: the budget, above 0, in the unit of the values (of its square for "squared").
        metric: of the distortion.
        held_out: share of rows that are not learned from.
        confidence: with which fresh rows keep the budget.
        source: of the rows.
        bound: whether to work out what no channel leaks less than.
        progress: whether to show a line.
        max_seconds: of training.
    """

    distortion: float
    metric: str
    held_out: float
    confidence: float
    source: str
    bound: bool
    progress: bool
    max_seconds: float | None

    def __post_init__(self) -> None:
        for name, told in (("held_out", self.held_out), ("confidence", self.confidence)):
            if isinstance(told, bool) or not isinstance(told, int | float):
                raise SpecificationError(f"learn.{name}: a number.")
        seconds = self.max_seconds
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
            raise SpecificationError("learn.max_seconds: a number of seconds, or none.")
        if self.metric not in METRICS:
            raise SpecificationError(f"learn.metric: one of {', '.join(METRICS)}.")
        if not 0 <= self.held_out < 1 or not 0.5 <= self.confidence < 1:
            raise SpecificationError(
                "learn.held_out: a share from 0 to below 1; confidence: from 0.5 to below 1."
            )
        if self.source not in SOURCES[1:]:
            raise SpecificationError("learn.source: 'public', 'released', 'disjoint' or 'private'.")

    @property
    def unit(self) -> float:
        """The length that is 1 in scaled coordinates."""
        return self.distortion if self.metric != "squared" else float(np.sqrt(self.distortion))


def generator_of(generator: str, objective: str) -> None:
    """Check which generator is asked for, and that the objective is one it has."""
    if generator not in GENERATORS:
        raise SpecificationError(f"learn.generator: one of {', '.join(GENERATORS)}.")
    if objective not in OBJECTIVES:
        raise SpecificationError(f"learn.objective: one of {', '.join(OBJECTIVES)}.")
    if generator == "atoms" and objective == "paper":
        raise SpecificationError(
            "learn.objective: 'paper' is an estimate for outputs without end; those of generator = 'atoms' are finite and their leakage is "
            "computed exactly, so that nothing is left to estimate. State generator = 'noise', or leave the objective out."
        )


def rules_of(
    objective: str, rounds: int, patience: int, alpha: float | None, beta: float, batch: int | None
) -> Rules:
    """The rules of a game, checked."""
    for name, number in (("rounds", rounds), ("patience", patience)):
        counted(number, name)
    alpha = ALPHA[objective] if alpha is None else alpha
    for name, weight in (("alpha", alpha), ("beta", beta)):
        positive(weight, name, "the weight of distance (alpha) or of information (beta)")
    if batch is not None:
        counted(batch, "batch")
        if batch > MOST_BATCH:
            raise SpecificationError(f"learn.batch: at most {MOST_BATCH:,} rows a step.")
    return Rules(
        objective, float(alpha), float(beta), rounds, patience, CLASSIFIER_STEPS, GENERATOR_STEPS, batch
    )


def counted(number: object, key: str) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise SpecificationError(f"learn.{key}: a whole number of at least 1.")


def outputs_of(outputs: object, steps: object) -> None:
    """Check what is asked of output points and their training."""
    counted(outputs, "outputs")
    counted(steps, "steps")
    if isinstance(outputs, int) and outputs > MOST_OUTPUTS:
        raise SpecificationError(f"learn.outputs: at most {MOST_OUTPUTS:,}.")


def positive(told: object, key: str, what: str) -> float:
    """A finite number above 0."""
    number = float(told) if isinstance(told, int | float | np.number) and not isinstance(told, bool) else -1.0
    if not 0 < number < 1e100:
        raise SpecificationError(f"learn.{key}: a number above 0, {what}.")
    return number


def installed() -> None:
    """Refuse where the extra is missing."""
    try:
        import jax  # noqa: F401
        import optax  # noqa: F401
    except ImportError:
        raise Unsupported(
            "channels.learn: needs the extra 'learn': pip install 'tetraodon[learn]'. Channels that were learned elsewhere are read and "
            "applied without it, and channels.least_leaking needs no extra."
        ) from None
