"""What every way of solving the obfuscation problem hands on: channels, and the arrays of their certificate."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..channels.lower_bound import Floats
from .batch_task import State


@dataclass(frozen=True, eq=False)
class Solution:
    """Channels and the arrays of their certificate, in the order of the blocks.

    Attributes:
        channels: for each block (clusters, targets).
        log_ratios: for each block (values, targets).
        multiplier: λ of a shared budget, or one for each block.
        steps: of the interior point.
        trail: where it has been, for the search of a similar budget to begin at.
        bound: what it knows to be leaked at least, in nats.
    """

    channels: list[Floats]
    log_ratios: list[Floats]
    multiplier: float | tuple[float, ...]
    steps: int = 0
    trail: tuple[State, ...] = ()
    bound: float = inf
