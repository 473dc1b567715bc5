"""Plans: priced mechanisms for one query, and the words and numbers that are said of them. Nothing here was read or spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .clustering.declared import Clustering
from .exact import show
from .loss import Loss
from .marginals.mechanism import Tables
from .mechanisms import Mechanism
from .mechanisms.strategy import Strategy
from .queries import Query
from .sensitivity import Sensitivity
from .terminal import text_of

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy


@dataclass(frozen=True, eq=False)
class Priced:
    """One row of a plan: a mechanism with its exact cost and its error, before any data is read.

    Attributes:
        grain: what one counted unit stands for: the step of weights, or 1.
    """

    strategy: Strategy | MarginalStrategy | Way
    grain: Fraction = Fraction(1)

    @property
    def mechanism(self) -> Mechanism:
        return self.strategy.mechanism

    @property
    def cost(self) -> Sensitivity:
        """Exact cost in ε or ρ, with an edge that attains it."""
        return self.strategy.cost

    @property
    def expected_error(self) -> float:
        """Mean squared error of the linear estimate over the workload, in the square of the answer's unit; for ``KMeans`` the
        objective over that of plain k-means, on public synthetic data."""
        return in_unit(self.strategy, self.grain)[0]

    @property
    def half_width(self) -> float:
        """95 % half-width of an answer of average error, in the answer's unit."""
        return in_unit(self.strategy, self.grain)[1]

    @property
    def workload(self) -> str:
        """What the error is averaged over."""
        return describe_workload(self.strategy)

    def __repr__(self) -> str:
        error = "objective ratio" if self.strategy.query.word == "kmeans" else "mean squared error"
        return (
            f"{name_of(self.mechanism)}: {self.strategy.spent.show()}, ± {number(self.half_width)}, "
            f"{error} {number(self.expected_error)}"
        )

    def to_spec(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism.to_spec(),
            "name": name_of(self.mechanism),
            "cost": show(self.cost.value),
            "expected_error": finite(self.expected_error),
            "half_width": finite(self.half_width),
        }


def describe_workload(strategy: Strategy | MarginalStrategy | Way) -> str:
    """What an expected error speaks of, in words."""
    word = strategy.query.word
    if word == "kmeans":
        return "the objective over that of plain k-means, on public synthetic data"
    if not isinstance(strategy, Strategy):
        return "every cell of every table"
    if word == "quantiles":
        return "the least accurate cumulative count (quantiles are read off it)"
    if word == "mean":
        return "the total behind the mean; divide by the number of records of a group"
    return strategy.resolved.workload.description


def name_of(mechanism: Mechanism) -> str:
    """A mechanism in a few words.

    >>> from .mechanisms import OrderedHierarchical
    >>> name_of(OrderedHierarchical(16, block=50))
    'ordered hierarchical, fan-out 16, blocks of 50'
    """
    if isinstance(mechanism, Tables | Clustering):
        return mechanism.words
    [(name, inner)] = mechanism.to_spec().items()
    parts = [name.replace("-", " ")]
    if "fanout" in inner:
        parts.append(f"fan-out {inner['fanout']}")
    if "block" in inner:
        parts.append(f"blocks of {inner['block']}")
    return ", ".join(parts)


def number(value: float) -> str:
    """A number with three significant digits, thousands separated.

    >>> number(1234.5), number(0.01234), number(9.0)
    ('1,230', '0.0123', '9')
    """
    if not np.isfinite(value):
        return "unbounded"
    if value == 0:
        return "0"
    if abs(value) < 0.001:
        return "under 0.001"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    text = f"{round(value, digits):,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unit_of(strategy: Strategy | MarginalStrategy | Way) -> str:
    """The unit of an answer's ±: records for counts, the attribute's own for totals and means."""
    if isinstance(strategy, Strategy) and strategy.query.word in ("sum", "mean"):
        resolved = strategy.resolved
        return (resolved.axis.attribute.unit or "") if resolved.axis is not None else ""
    return "records"


def in_unit(strategy: Strategy | MarginalStrategy | Way, grain: Fraction) -> tuple[float, float]:
    """(expected error, half-width) in the answer's unit, of a strategy that counts in steps of ``grain``."""
    if strategy.query.word == "kmeans":  # an objective ratio, and the size of a cluster
        return strategy.expected_error, strategy.half_width * float(grain)
    return strategy.expected_error * float(grain**2), strategy.half_width * float(grain)


def finite(value: float) -> float | None:
    """A float for JSON, None where it is not finite."""
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Plan(Sequence[Priced]):
    """The applicable mechanisms for one query, best first. Nothing was read or spent.

    Attributes:
        notes: what was not tried, in words.
    """

    query: Query
    loss: Loss
    rows: tuple[Priced, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Priced]:
        return iter(self.rows)

    def __repr__(self) -> str:
        head = f"{self.query.title}, {self.loss.show()}: {self.rows[0].workload}"
        return text_of([head, *(f"  {row!r}" for row in self.rows), *(f"  ({note})" for note in self.notes)])
