"""What every group of a generalisation must have: rows and variety, from below to protect and from above to stay useful.

A group g holds N_g rows and the private values that appear in them.

    (k, α)-uniqueness:  k ≤ N_g ≤ α;        (l, β)-variety:  l ≤ variety of g ≤ β.

The variety is the number of distinct values that *appear* in the rows of the group, or for l, with ``variety="entropy"``,
exp(H(Y | g)) of their shares, which is never more (entropy l-diversity); β always bounds the number of values. Values that
are declared but appear in no row count for neither: to bound how wide a group may be declared, bound the family it is taken
from (``intervals(n, most=…)``).

The four numbers are tests on the rows that are *published*. Rows that are dropped or held back afterwards can break them.

Source: Han et al., HyObscure, constraints (10) and (11); that they bound these two counts is derived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..axes import Bools, Ints
from ..errors import Refused, SpecificationError, unknown
from .families import Floats, sums

SLACK = 1e-9  # relative, on exp(H): entropies of equal shares are whole only up to rounding


@dataclass(frozen=True)
class Requirements:
    """Bounds on the rows and on the variety of every group.

    Args:
        k, alpha: least and greatest number of rows (alpha None: any).
        l, beta: least variety, and greatest number of distinct values (beta None: any).
        variety: what l bounds: "count" (a whole number of values) or "entropy" (exp(H), any number from 1 on).
    Raises:
        SpecificationError: a bound that is no such number, or a lower one above its upper one.

    >>> needs = Requirements(k=3, l=2, beta=3)
    >>> needs.holds(np.array([0, 2, 1])), needs.holds(np.array([0, 3, 0]))
    (True, False)
    """

    k: int = 1
    l: int | float = 1  # noqa: E741  the name the field uses
    alpha: int | None = None
    beta: int | None = None
    variety: Literal["count", "entropy"] = "count"

    def __post_init__(self) -> None:
        if self.variety not in ("count", "entropy"):
            raise unknown("variety", "measure", self.variety, ("count", "entropy"))
        object.__setattr__(self, "k", _whole("k", self.k))
        least = _number("l", self.l) if self.variety == "entropy" else _whole("l", self.l)
        object.__setattr__(self, "l", least)
        for name in ("alpha", "beta"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if self.alpha is not None and self.alpha < self.k:
            raise SpecificationError("alpha: the most rows of a group, at least k, which is the fewest.")
        if self.beta is not None and self.beta < self.l:
            raise SpecificationError("beta: the most values of a group, at least l, which is the fewest.")

    def holds(self, counts: Ints) -> bool:
        """Whether one group is allowed, from the rows of each value in it, shape (values,)."""
        rows, seen, logs = facts(counts).sum(axis=0)
        return bool(self.met(np.array([rows]), np.array([seen]), np.array([logs]))[0])

    def allowed(self, counts: Ints, members: Sequence[Ints]) -> Bools:
        """Which of many candidate groups are allowed: whatever is, ``holds``.

        Args:
            counts: rows of each value, shape (values,).
            members: the values of each candidate, as ``family.members`` gives them.

        >>> from .families import intervals
        >>> family = intervals(3)
        >>> good = Requirements(k=2).allowed(np.array([1, 1, 3]), family.members)
        >>> [family.members[i].tolist() for i in np.flatnonzero(good)]
        [[0, 1], [0, 1, 2], [1, 2], [2]]
        """
        table = facts(counts)
        found = sums(members, table)
        # Running sums round more than a sum over one group: half the slack keeps what is allowed here within ``holds``.
        return self.met(found[:, 0], found[:, 1], found[:, 2], slack=SLACK / 2)

    def check(self, counts: Ints, group_of: Ints) -> None:
        """Test every group of a generalisation on the rows that are published.

        Args:
            counts: rows of each value, shape (values,).
            group_of: the group of each value, shape (values,), labels from 0.
        Raises:
            Refused: some group misses a bound; the message names the bounds, and neither the group nor a count.
        """
        _, labels = np.unique(group_of, return_inverse=True)
        table = facts(counts)
        rows, seen, logs = (
            np.asarray(np.bincount(labels, weights=column), dtype=np.float64) for column in table.T
        )
        misses = [name for name, good in self._each(rows, seen, logs, SLACK) if not good.all()]
        if misses:
            raise Refused(
                f"groups: not every group has {' and '.join(self._said(m) for m in misses)} in these rows. "
                "Fit the groups on the rows that are published, or relax what is named."
            )

    def met(self, rows: Floats, seen: Floats, logs: Floats, slack: float = SLACK) -> Bools:
        """Which groups are allowed, from what ``facts`` adds up to in each, shape (groups,)."""
        found = np.ones(len(rows), dtype=bool)
        for _, good in self._each(rows, seen, logs, slack):
            found &= good
        return found

    def _each(self, rows: Floats, seen: Floats, logs: Floats, slack: float) -> list[tuple[str, Bools]]:
        tests: list[tuple[str, Bools]] = [("k", rows >= self.k)]
        if self.alpha is not None:
            tests.append(("alpha", rows <= self.alpha))
        if self.variety == "count":
            tests.append(("l", seen >= self.l))
        else:
            some = np.maximum(rows, 1)
            entropy = np.log(some) - logs / some
            tests.append(("l", (rows > 0) & (entropy >= math.log(self.l) - slack)))
        if self.beta is not None:
            tests.append(("beta", seen <= self.beta))
        return tests

    def _said(self, name: str) -> str:
        value = getattr(self, name)
        entropy = " of entropy variety" if self.variety == "entropy" else " distinct values"
        ends = {"k": f"at least {value} rows (k)", "alpha": f"at most {value} rows (alpha)",
                "l": f"at least {value:g}{entropy} (l)", "beta": f"at most {value} distinct values (beta)"}  # fmt: skip
        return ends[name]

    def said(self) -> list[str]:
        """The bounds that bind anything, in words.

        >>> Requirements(k=5, beta=12).said()
        ['at least 5 rows (k)', 'at most 12 distinct values (beta)']
        """
        binding = {
            "k": self.k > 1,
            "alpha": self.alpha is not None,
            "l": self.l > 1,
            "beta": self.beta is not None,
        }
        return [self._said(name) for name, binds in binding.items() if binds]


def explain_infeasible(
    requirements: Requirements,
    *,
    rows: int | None = None,
    groups: int | None = None,
    values: int | None = None,
    distortion: bool = False,
) -> str:
    """Why no generalisation may exist, from the numbers that were stated alone.

    That there is none is itself learned from the private column; how far off it is stays private. So the text tests the
    stated numbers against each other, says what to relax, and holds no count of any group.

    Args:
        rows: the number of rows, *only where it is public*; None withholds every sentence about it.
        groups: the number of groups asked for (None: any).
        values: the number of declared private values.
        distortion: whether a distortion budget per group was also asked for, which can forbid groups too.

    >>> print(explain_infeasible(Requirements(k=50, alpha=60), rows=100, groups=3))
    No generalisation meets every requirement. groups × k is above the number of rows: 3 × 50 > 100. Lower k or groups.
    >>> "100" in explain_infeasible(Requirements(k=50, alpha=60), groups=3)
    False
    """
    need = requirements
    certain = []
    if groups is not None:
        if rows is not None and groups * need.k > rows:
            certain.append(f"groups × k is above the number of rows: {groups} × {need.k} > {rows}. "
                           "Lower k or groups.")  # fmt: skip
        if rows is not None and need.alpha is not None and groups * need.alpha < rows:
            certain.append(f"groups × alpha is below the number of rows: {groups} × {need.alpha} < {rows}. "
                           "Raise alpha or groups.")  # fmt: skip
        if values is not None and groups * math.ceil(need.l) > values:
            certain.append(f"groups × l is above the number of declared values: {groups} × {need.l:g} > {values}. "
                           "Lower l or groups.")  # fmt: skip
    elif rows is not None:
        if need.k > rows:
            certain.append(f"k is above the number of rows: {need.k} > {rows}. Lower k.")
        elif need.alpha is not None and -(-rows // need.alpha) > rows // need.k:
            certain.append(f"no whole number of groups lies between rows / alpha and rows / k for {rows} rows. "
                           "Raise alpha or lower k.")  # fmt: skip
    if groups is None and values is not None and math.ceil(need.l) > values:
        certain.append(f"l is above the number of declared values: {need.l:g} > {values}. Lower l.")
    opening = "No generalisation meets every requirement."
    if certain:
        return " ".join([opening, *certain])
    stated = need.said()
    if groups is not None:
        stated.append(f"{groups} groups in all")
    if distortion:
        stated.append("the distortion budget in every group, which a group of unlike rows can miss")
    fixes = [text for held, text in (
        (need.k > 1, "lower k"), (need.alpha is not None, "raise alpha or leave it out"), (need.l > 1, "lower l"),
        (need.beta is not None, "raise beta or leave it out"), (groups is not None, "leave groups out or ask for fewer"),
        (distortion, "raise the distortion budget or share one budget between the groups")) if held]  # fmt: skip
    if not stated:
        return f"{opening} None of them binds rows or values: look at the order or hierarchy of the values."
    return (
        f"{opening} Asked of every group: {'; '.join(stated)}. These numbers alone do not rule it out, but no grouping of "
        "the kind asked for meets them all on these rows. By how much, or which values are in the way, would tell "
        f"private counts and is not said. To relax: {'; '.join(fixes)}."
    )


def facts(counts: Ints) -> Floats:
    """Shape (values, 3): rows, whether the value appears, and rows · ln rows, all of which add up over a group."""
    rows = np.asarray(counts, dtype=np.float64)  # whole, below 2^53: sums are exact
    return np.stack([rows, rows > 0, rows * np.log(np.maximum(rows, 1))], axis=1)


def _whole(name: str, value: object) -> int:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 1:
        raise SpecificationError(f"{name}: a whole number, at least 1.")
    return int(value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise SpecificationError(f"{name}: a number, at least 1.")
    if not math.isfinite(value) or value < 1:
        raise SpecificationError(f"{name}: a finite number, at least 1.")
    return float(value)
