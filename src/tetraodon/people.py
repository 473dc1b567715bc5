"""What one person adds to a table, as it is declared: how many rows, of what weight, and which of that is a secret.

Each person is padded to m slots, each of which holds one row or nothing. Between neighbouring tables one person's slots all
change, each along one edge, so that rows A with the largest move c along one edge cost m·c, and m²·c for squared moves
(Gaussian noise). Which edges a slot has:

* the policy's own, if the number of a person's rows is public and rows are kept by a declared key that no value changes;
* any two values, if rows are kept without a key, or if the number of rows is a secret: a row that may or may not be there
  can push another one out of the slots, and no edge joins their values (docs/people.md has the counter-example);
* a row and nothing, if presence is a secret, if several rows are kept and their number is a secret, or if weights are.

A weight of at most W steps multiplies all of it by W (by W² for squared moves). Derived, see docs/people.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from .errors import SpecificationError, unknown
from .exact import exact, show
from .numeric import MAX_EXACT
from .reading import kind_of, listed

Told = Literal["public", "secret"]
KEYS = (
    "id", "max_rows_per_id", "keep_by", "row_counts", "weight", "weight_bounds", "weight_step", "weights",
)  # fmt: skip
MOST_ROWS = 10**6
MOST_STEPS = 10**9


@dataclass(frozen=True)
class Weight:
    """What a record counts: a multiple of ``step`` from ``low`` to ``high``.

    Attributes:
        weights: "public": a record keeps its weight whatever its secret value is, and sums of weights alone may be
            published exactly; "secret": it may change with the value.

    >>> Weight(Fraction(0), Fraction(50), Fraction(1, 100), "secret").most
    5000
    """

    low: Fraction
    high: Fraction
    step: Fraction
    weights: Told

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise SpecificationError("weight_step: must be above 0.")
        if self.low < 0 or self.high <= 0 or self.low > self.high or self.high > MAX_EXACT:
            raise SpecificationError(
                "weight_bounds: 0 or more, the low one first, the high one above 0 and at most 2^53."
            )
        for name, bound in (("low", self.low), ("high", self.high)):
            if (bound / self.step).denominator != 1:
                raise SpecificationError(
                    f"weight_bounds: the {name} one, {show(bound)}, is no multiple of weight_step, {show(self.step)}."
                )
        if self.most > MOST_STEPS:
            raise SpecificationError("weight_step: too fine; the high bound is more than 10^9 steps.")

    @property
    def least(self) -> int:
        """The low bound in steps."""
        return int(self.low / self.step)

    @property
    def most(self) -> int:
        """The high bound in steps."""
        return int(self.high / self.step)


@dataclass(frozen=True)
class People:
    """What one person adds to a table. The default is one row, of weight 1.

    Attributes:
        max_rows: rows that are kept of a person, m.
        row_counts: whether the number of a person's rows is a secret.
        has_key: whether rows are kept by a declared key that no value changes.
        weight: what a record counts; None for 1.

    >>> People(3, "public").times
    3
    """

    max_rows: int = 1
    row_counts: Told = "public"
    has_key: bool = True
    weight: Weight | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows <= MOST_ROWS:
            raise SpecificationError("max_rows_per_id: a whole number from 1 to 1,000,000.")

    @property
    def is_plain(self) -> bool:
        """Whether one record is one person and counts 1."""
        return self == ONE_RECORD

    @property
    def displaces(self) -> bool:
        """Whether a kept row may become any other one."""
        return not self.has_key or self.row_counts == "secret"

    @property
    def rows_vanish(self) -> bool:
        """Whether a kept row may become nothing, though its person stays."""
        return self.row_counts == "secret" and self.max_rows > 1

    @property
    def weights_change(self) -> bool:
        """Whether what a kept row weighs may change: with its value, or because another row is kept instead of it."""
        weight = self.weight
        if weight is None:
            return False
        return weight.weights == "secret" or (self.displaces and weight.least < weight.most)

    @property
    def times(self) -> int:
        """m·W: how many moves of one record of weight 1 a person's change amounts to."""
        return self.max_rows * (1 if self.weight is None else self.weight.most)

    @property
    def grain(self) -> Fraction:
        """What one counted unit stands for: the step of weights, or 1."""
        return Fraction(1) if self.weight is None else self.weight.step

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``people_from_spec`` is its inverse."""
        told: dict[str, Any] = {
            "max_rows": self.max_rows, "row_counts": self.row_counts, "by_key": self.has_key,
        }  # fmt: skip
        if self.weight is not None:
            w = self.weight
            told["weight"] = {
                "bounds": [show(w.low), show(w.high)], "step": show(w.step), "weights": w.weights,
            }  # fmt: skip
        return told


ONE_RECORD = People()
"""One record is one person, and counts 1."""


def people_from_spec(spec: Any, where: str = "people") -> People:
    """What ``to_spec`` wrote.

    >>> people_from_spec({"max_rows": 3, "row_counts": "secret", "by_key": True}).times
    3
    """
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table, not {kind_of(spec)}.")
    known = ("max_rows", "row_counts", "by_key", "weight")
    for key in spec:
        if key not in known:
            raise unknown(where, "key", key, known)
    rows = _whole(spec.get("max_rows", 1), f"{where}.max_rows")
    by_key = spec.get("by_key", True)
    if not isinstance(by_key, bool):
        raise SpecificationError(f"{where}.by_key: true or false.")
    weight = None
    if "weight" in spec:
        told = spec["weight"]
        if not isinstance(told, Mapping) or set(told) != {"bounds", "step", "weights"}:
            raise SpecificationError(f"{where}.weight: a table of bounds, step and weights.")
        weight = _weight(told["bounds"], told["step"], told["weights"])
    return People(rows, _told(spec.get("row_counts", "public"), f"{where}.row_counts"), by_key, weight)


def people_of(
    id: object = None,
    max_rows_per_id: object = None,
    keep_by: object = None,
    row_counts: object = None,
    weight: object = None,
    weight_bounds: object = None,
    weight_step: object = None,
    weights: object = None,
) -> People:
    """The declaration that the arguments of ``Table``, or the keys of ``[data]``, make.

    Args:
        id: column that tells who is who; without it one record is one person.
        max_rows_per_id: rows that are kept of a person.
        keep_by: column of keys that no declared value changes, by which they are chosen.
        row_counts: "secret" (default) or "public": the number of a person's rows.
        weight: column of what each record counts.
        weight_bounds: (low, high).
        weight_step: weights are rounded to multiples of it; 1 by default.
        weights: "secret" (default) or "public": whether a record's weight may change with its value.

    Raises:
        SpecificationError: names the argument.

    >>> people_of(id="person", max_rows_per_id=3, keep_by="visit", row_counts="public").times
    3
    """
    for name, value in (("id", id), ("keep_by", keep_by), ("weight", weight)):
        if value is not None and (not isinstance(value, str) or not value):
            raise SpecificationError(f"{name}: the name of a column, as text, not {kind_of(value)}.")
    beside = {"max_rows_per_id": max_rows_per_id, "keep_by": keep_by, "row_counts": row_counts}
    if id is None:
        for name, value in beside.items():
            if value is not None:
                raise SpecificationError(f"{name}: goes with id, the column that tells who is who; add it.")
        told = ONE_RECORD
    else:
        if max_rows_per_id is None:
            raise SpecificationError("max_rows_per_id: is missing; say how many rows of a person are kept.")
        if keep_by == id:
            raise SpecificationError(
                "keep_by: another column than id; it tells the rows of one person apart."
            )
        rows = _whole(max_rows_per_id, "max_rows_per_id")
        told = People(
            rows,
            "secret" if row_counts is None else _told(row_counts, "row_counts"),
            keep_by is not None,
        )
    if weight is None:
        for name, value in (
            ("weight_bounds", weight_bounds),
            ("weight_step", weight_step),
            ("weights", weights),
        ):
            if value is not None:
                raise SpecificationError(f"{name}: goes with weight, the column of weights; add it.")
        return told
    if weight in (id, keep_by):
        raise SpecificationError("weight: another column than id and keep_by.")
    if weight_bounds is None:
        raise SpecificationError("weight_bounds: is missing; declare the least and the largest weight.")
    made = _weight(
        weight_bounds, 1 if weight_step is None else weight_step, "secret" if weights is None else weights
    )
    return People(told.max_rows, told.row_counts, told.has_key, made)


def _weight(bounds: Any, step: Any, weights: Any) -> Weight:
    pair = listed(bounds, "weight_bounds", "two bounds, [low, high]")
    if len(pair) != 2:
        raise SpecificationError("weight_bounds: two bounds, [low, high].")
    low, high = (exact(v, "weight_bounds") for v in pair)
    return Weight(low, high, exact(step, "weight_step"), _told(weights, "weights"))


def _told(value: object, where: str) -> Told:
    if value == "public":
        return "public"
    if value == "secret":
        return "secret"
    raise SpecificationError(f'{where}: "public" or "secret".')


def _whole(value: object, where: str) -> int:
    number = exact(value, where)
    if number.denominator != 1 or not 1 <= number <= MOST_ROWS:
        raise SpecificationError(f"{where}: a whole number from 1 to 1,000,000.")
    return int(number)
