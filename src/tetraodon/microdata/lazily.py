"""The cheapest partition when a price is dear to compute: price only what the cheapest partition needs.

Every candidate c has a true price p(c) and a bound l(c) ≤ p(c) that costs nothing. Start with the bounds in place of prices;
find the cheapest partition; price those of its groups that are not priced yet; repeat until all are.

**Exact.** At the end every group of the chosen partition P is priced, and every candidate's entry e(c) is its price or its
bound, so e ≤ p. For any partition Q:  p(P) = e(P) ≤ e(Q) ≤ p(Q). **Ends.** Every round prices a candidate that was not
priced, and there are finitely many. The better the bounds, the fewer are priced; with bounds 0 it is still exact.

Prices may themselves be upper ends of a solver with a certified lower end, l'(c) ≤ p(c) ≤ u(c). Then u(P) is attained, and
the least Σ l' over all partitions is a lower bound on the least Σ p, found by one more run over the lower ends.

Source: best-first search with optimistic costs; in this form derived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..axes import Ints
from ..errors import SpecificationError
from .families import Family, Floats, read_costs

Price = float | tuple[float, float]  # a price, or (attained, certified lower end)
BELOW = 1e-9  # relative: rounding by which a price may lie below its bound


@dataclass(frozen=True, eq=False)
class Found:
    """A cheapest partition.

    Args:
        value: its total of attained prices.
        chosen: its candidates, shape (groups,).
        bound: no partition of the family has a lower total of true prices.
        priced: the candidates that were priced, in that order.
        rounds: how many partitions were looked at.
    """

    value: float
    chosen: Ints
    bound: float
    priced: Ints
    rounds: int

    @property
    def gap(self) -> float:
        return max(0.0, self.value - self.bound)


def lazily(
    family: Family,
    lower: Floats,
    exact: Callable[[int], Price],
    groups: int | None = None,
    batch: int | None = None,
) -> Found | None:
    """The cheapest partition, pricing candidates one call each; None where no partition is allowed.

    Args:
        family: the candidates.
        lower: a lower bound on the price of each, inf where it is not allowed, shape (candidates,).
        exact: the price of a candidate, or (attained price, certified lower end); inf forbids it.
        groups: how many groups exactly; None for any number.
        batch: how many candidates at most are priced before the partition is looked at again (None: all that it needs;
            1 prices fewest).
    Raises:
        SpecificationError: a price below its lower bound, which would make the result wrong without a sign.

    >>> from .families import intervals
    >>> family, dear = intervals(4), lambda candidate: 2.0
    >>> found = lazily(family, np.full(len(family.members), 1.5), dear)
    >>> found.value, found.chosen.tolist(), found.bound, len(found.priced), len(family.members)
    (2.0, [3], 2.0, 1, 10)
    """
    return lazily_together(family, lower, lambda several: [exact(c) for c in several.tolist()], groups, batch)


def lazily_together(
    family: Family,
    lower: Floats,
    exact: Callable[[Ints], Sequence[Price]],
    groups: int | None = None,
    batch: int | None = None,
) -> Found | None:
    """``lazily`` where ``exact`` prices several candidates in one call, which it may do side by side."""
    count = len(family.members)
    entries = read_costs(lower, count).copy()
    ends = entries.copy()  # certified lower ends
    if batch is not None and batch < 1:
        raise SpecificationError("batch: at least 1 candidate priced at once.")
    known = np.zeros(count, dtype=bool)
    priced: list[int] = []
    rounds = 0
    while True:
        rounds += 1
        found = family.best(entries, groups)
        if found is None:
            return None
        value, chosen = found
        new = chosen[~known[chosen]]
        if not len(new):
            break
        # The dearest by its bound first: where it rises, the others may not be needed.
        new = new[np.argsort(-entries[new], kind="stable")][:batch]
        prices = exact(new)
        for candidate, price in zip(new.tolist(), prices, strict=True):
            upper, end = price if isinstance(price, tuple) else (price, price)
            least = entries[candidate]
            if not upper >= least - BELOW * (1 + abs(least)) or not end <= upper:
                raise SpecificationError("exact: a price below the lower bound given for the same candidate.")
            entries[candidate] = upper
            ends[candidate] = max(end, ends[candidate]) if upper < inf else inf
        known[new] = True
        priced += new.tolist()
    least_ends = family.best(ends, groups)
    bound = value if least_ends is None else min(value, least_ends[0])
    return Found(value, chosen, bound, np.array(priced, dtype=np.int64), rounds)
