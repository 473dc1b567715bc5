"""What a release is charged: an exact amount of ε, or of ρ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from .errors import SpecificationError
from .exact import show

Unit: TypeAlias = Literal["epsilon", "rho"]
UNITS: tuple[Unit, ...] = ("epsilon", "rho")


@dataclass(frozen=True, slots=True)
class Loss:
    """An exact amount of privacy loss along one edge of the secret graph.

    Args:
        unit: "epsilon": probabilities change by a factor of at most e^amount (discrete Laplace noise); "rho": the
            Rényi divergence of every order α > 1 is at most amount·α (zero-concentrated, discrete Gaussian noise; Bun,
            Steinke 2016).
        amount: exact, 0 or more.

    Raises:
        SpecificationError: another unit, or an amount that is no exact Fraction of 0 or more.

    >>> Loss("rho", Fraction(1, 10)).show()
    'rho 0.1'
    """

    unit: Unit
    amount: Fraction

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SpecificationError('loss.unit: "epsilon" or "rho".')
        if not isinstance(self.amount, Fraction):
            raise SpecificationError(
                f"loss.{self.unit}: must be an exact Fraction; tetraodon.exact.exact reads numbers."
            )
        if self.amount < 0:
            raise SpecificationError(f"loss.{self.unit}: must be 0 or more.")

    @property
    def epsilon(self) -> Fraction | None:
        """The amount in ε; None where it is in ρ."""
        return self.amount if self.unit == "epsilon" else None

    @property
    def rho(self) -> Fraction | None:
        """The amount in ρ; None where it is in ε."""
        return self.amount if self.unit == "rho" else None

    @property
    def is_zero(self) -> bool:
        """Whether nothing is lost."""
        return self.amount == 0

    @property
    def is_gaussian(self) -> bool:
        """Whether it is paid with Gaussian noise."""
        return self.unit == "rho"

    @property
    def power(self) -> int:
        """1: moves of rows count in full (Laplace noise); 2: squared (Gaussian noise)."""
        return 2 if self.is_gaussian else 1

    def show(self) -> str:
        """The unit and the amount in the shortest exact text."""
        return f"{self.unit} {show(self.amount)}"
