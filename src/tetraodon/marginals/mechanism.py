"""The mechanism ``Tables``: noise on whole tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..errors import SpecificationError

Measured = Literal["asked", "lower", "joint", "any"]
Budget = Literal["optimal", "equal"]
MEASURED: tuple[Measured, ...] = ("asked", "lower", "joint", "any")
BUDGETS: tuple[Budget, ...] = ("optimal", "equal")


@dataclass(frozen=True)
class Tables:
    """Noise on whole tables, for ``Marginals``; the tables asked for are the least-squares estimate from all of them.

    Args:
        measured: which tables carry noise: those "asked" for; also "lower" ones, within those; one "joint" table of all
            attributes; or tables of "any" number of attributes.
        budget: how the budget is split between them: "optimal" (least exact error) or "equal".

    >>> Tables("lower").to_spec()
    {'tables': {'measured': 'lower', 'budget': 'optimal'}}
    """

    measured: Measured = "asked"
    budget: Budget = "optimal"

    def __post_init__(self) -> None:
        if self.measured not in MEASURED:
            raise SpecificationError(f"Tables.measured: one of {', '.join(MEASURED)}.")
        if self.budget not in BUDGETS:
            raise SpecificationError(f"Tables.budget: one of {', '.join(BUDGETS)}.")

    def to_spec(self) -> dict[str, Any]:
        return {"tables": {"measured": self.measured, "budget": self.budget}}

    @property
    def words(self) -> str:
        """What carries noise, in a few words."""
        told = {
            "asked": "the tables asked for",
            "lower": "these and smaller tables",
            "joint": "one joint table",
            "any": "tables of any order",
        }[self.measured]
        return told if self.budget == "optimal" or self.measured == "joint" else f"{told}, equal budgets"
