"""What shows that a channel is near the best possible: a value, a bound that no channel beats, and all that the bound needs.

A certificate holds for the problem that its arrays state, whoever reads them: the bound can be worked out again from the
saved file alone (docs/channels.md has the formula of each kind, and a test does it in twenty lines).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError

KINDS = ("information", "distortion", "bayes")


@dataclass(frozen=True, eq=False)
class Certificate:
    """A two-sided statement about an optimum.

    Attributes:
        kind: "information" (least leakage, bits), "distortion" (least expected distortion) or "bayes" (largest error of the
            best guess).
        value: what the channel attains, from its exact table.
        bound: what no channel of the problem beats: a lower bound of what is made small, an upper one of what is made large.
        unit: of both.
        arrays: the problem and its dual numbers, by name.

    >>> Certificate("distortion", 1.25, 1.24, "km", {}).gap
    0.01
    """

    kind: str
    value: float
    bound: float
    unit: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SpecificationError(f"certificate: one of {', '.join(KINDS)}.")
        if not all(isinstance(v, float | int) and not isnan(v) for v in (self.value, self.bound)):
            raise SpecificationError("certificate: value and bound are numbers.")
        if not isinstance(self.unit, str):
            raise SpecificationError("certificate: unit is a text.")
        held = {}
        for name, array in self.arrays.items():
            own = np.array(array)
            own.flags.writeable = False
            held[name] = own
        object.__setattr__(self, "arrays", held)

    @property
    def gap(self) -> float:
        """How far the value may be from the optimum, rounded to twelve digits; 0 at least."""
        return max(0.0, float(f"{abs(self.value - self.bound):.12g}"))

    def __str__(self) -> str:
        side = "no channel gives less than" if self.kind != "bayes" else "no channel gives more than"
        return f"{self.value:.6g} {self.unit}, {side} {self.bound:.6g} (certified gap {self.gap:.2g} {self.unit})"

    def spec(self) -> dict[str, Any]:
        """All but the arrays, in plain values."""
        return {"kind": self.kind, "value": self.value, "bound": self.bound, "unit": self.unit}
