"""What a manifest says of other policies: the ± of each along a grid of losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ..errors import SpecificationError
from ..exact import exact
from ..loss import Loss
from .keys import items, real, text, texts

MOST = 1000


@dataclass(frozen=True)
class Choice:
    """One policy: its ± at every loss of the grid, and what it gives up beside the strongest one, in sentences."""

    name: str
    mechanism: str
    half_widths: tuple[float | None, ...]
    gives_up: tuple[str, ...]

    def least(self, target: float) -> int | None:
        """Where on the grid the least loss is whose ± is at most a target; None where none is."""
        return next((i for i, h in enumerate(self.half_widths) if h is not None and h <= target), None)


@dataclass(frozen=True)
class Traded:
    """Policies that a release can be compared with, its own one first.

    Attributes:
        grid: losses in increasing order; ``spent`` is where that of the release is.
        strongest: name of the policy that the others are told beside.
    """

    grid: tuple[Fraction, ...]
    spent: int
    strongest: str
    choices: tuple[Choice, ...]

    @property
    def own(self) -> Choice:
        return self.choices[0]


def traded_of(spec: Any, loss: Loss, where: str) -> Traded | None:
    """The key ``frontier`` of an entry; None where there is nothing to trade.

    Raises:
        SpecificationError: names the key.
    """
    if spec is None:
        return None
    if not isinstance(spec, Mapping) or loss.is_zero:
        raise SpecificationError(f"{where}: a table, of a release that was charged.")
    if text(spec, "loss", where) != loss.unit:
        raise SpecificationError(f"{where}.loss: another unit than what was spent.")
    grid = tuple(exact(told, f"{where}.grid") for told in texts(spec, "grid", where))
    rising = all(a < b for a, b in pairwise(grid))
    if loss.amount not in grid or not rising or grid[0] <= 0 or len(grid) > MOST:
        raise SpecificationError(f"{where}.grid: increasing losses above 0, what was spent among them.")
    choices = tuple(_choice(told, len(grid), f"{where}.policies") for told in items(spec, "policies", where))
    strongest = text(spec, "strongest", where)
    if strongest not in {choice.name for choice in choices}:
        raise SpecificationError(f"{where}.strongest: one of the policies.")
    return Traded(grid, grid.index(loss.amount), strongest, choices)


def _choice(spec: Any, length: int, where: str) -> Choice:
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: tables.")
    widths = items(spec, "half_width", where)
    if len(widths) != length:
        raise SpecificationError(f"{where}.half_width: one for every loss of the grid.")
    return Choice(
        name=text(spec, "name", where),
        mechanism=text(spec, "mechanism", where),
        half_widths=tuple(None if h is None else real(h, f"{where}.half_width") for h in widths),
        gives_up=texts(spec, "gives_up", where),
    )
