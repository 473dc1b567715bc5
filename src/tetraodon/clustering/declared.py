"""The three ways to release k-means, by name."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import SpecificationError
from ..exact import Number, exact, show

MAX_ALONG, MAX_ROUNDS = 2**14, 100
RELEASED = ("identity", "ordered")


def _whole(value: object, most: int, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise SpecificationError(f"{where}: a whole number from 1 to {most}.")


@dataclass(frozen=True)
class FromHistogram:
    """One noisy histogram, then Lloyd's algorithm on it as often as one likes, at no further cost.

    Args:
        along: number of blocks along the longest side of the box; None = the best by simulation.
        counted: "identity" (every block) or "ordered" (cumulative counts along a single attribute); None = the better one.

    >>> FromHistogram(6).to_spec()
    {'kmeans-histogram': {'along': 6}}
    """

    along: int | None = None
    counted: str | None = None

    def __post_init__(self) -> None:
        if self.along is not None:
            _whole(self.along, MAX_ALONG, "FromHistogram.along")
        if self.counted is not None and self.counted not in RELEASED:
            raise SpecificationError('FromHistogram.counted: "identity" or "ordered".')

    def to_spec(self) -> dict[str, Any]:
        inner = {"along": self.along, "counted": self.counted}
        return {"kmeans-histogram": {n: v for n, v in inner.items() if v is not None}}

    @property
    def words(self) -> str:
        """The way in a few words."""
        cut = "" if self.along is None else f", {self.along} blocks along the longest side"
        return f"k-means on a noisy histogram{cut}" + (", cumulative" if self.counted == "ordered" else "")


@dataclass(frozen=True)
class InRounds:
    """Noisy sizes and sums of clusters, round by round.

    Args:
        rounds: how many; None = the best by simulation, at most the query's ``iterations``.
        radius: residuals are clipped to ± this share of each side of the box, above 0, at most 1; None = the best by
            simulation.

    >>> InRounds(5, "0.25").to_spec()
    {'kmeans-rounds': {'rounds': 5, 'radius': '0.25'}}
    """

    rounds: int | None = None
    radius: Fraction | None = None

    def __init__(self, rounds: int | None = None, radius: Number | None = None) -> None:
        if rounds is not None:
            _whole(rounds, MAX_ROUNDS, "InRounds.rounds")
        share = None if radius is None else exact(radius, "InRounds.radius")
        if share is not None and not 0 < share <= 1:
            raise SpecificationError("InRounds.radius: a share of the box's sides, above 0 and at most 1.")
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "radius", share)

    def to_spec(self) -> dict[str, Any]:
        inner: dict[str, Any] = {} if self.rounds is None else {"rounds": self.rounds}
        return {"kmeans-rounds": inner | ({} if self.radius is None else {"radius": show(self.radius)})}

    @property
    def words(self) -> str:
        """The way in a few words."""
        cut = "" if self.radius is None else f", residuals within {show(100 * self.radius)} % of the box"
        count = "rounds" if self.rounds is None else f"{self.rounds} round{'s' * (self.rounds > 1)}"
        return f"k-means in {count} of noisy sums{cut}"


@dataclass(frozen=True)
class WholeBlocks:
    """Clusters of whole blocks, for policies that disclose the block of every record: exact sizes, noisy middles.

    >>> WholeBlocks().to_spec()
    {'kmeans-blocks': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"kmeans-blocks": {}}

    @property
    def words(self) -> str:
        """The way in a few words."""
        return "k-means over the blocks that the policy discloses"


Clustering = FromHistogram | InRounds | WholeBlocks
NAMES: dict[str, Any] = {
    "kmeans-histogram": FromHistogram,
    "kmeans-rounds": InRounds,
    "kmeans-blocks": WholeBlocks,
}
