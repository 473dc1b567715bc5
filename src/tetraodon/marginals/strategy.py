"""Noise on whole tables, priced together: what ``Marginals`` runs.

Every measured table is a set of integer rows, one for each of its cells; table S has an integer budget weight w_S. A record
that moves along an edge changes the rows of S by at most 2 if the edge changes its cell there, so without constraints the
cost is max over the edges of Σ_S w_S·|Δ_S|: 2·Σ_{S∋a} w_S under ``AttributeWise`` (the largest over the attributes a),
2·Σ_S w_S under ``Full``. It is computed, not assumed (``sensitivity.stacked``), with Rule R under constraints; scales are
then set so that it is the loss that was asked for, exactly. Tables that nothing moves are observed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import noise
from ..axes import Ints
from ..disclosure import filter_text
from ..domain import Domain
from ..errors import Unsupported
from ..exact import show
from ..loss import Loss
from ..mechanisms import charged
from ..mechanisms.coverage import COVERAGE, widest
from ..mechanisms.parts import Noisy
from ..mechanisms.strategy import LARGEST_SUM, LEAST_VARIANCE
from ..mechanisms.variance import Floats
from ..phrases import every
from ..sensitivity import Move, Neighbourhood, Sensitivity, Term, stacked
from .asked import Asked
from .mechanism import Tables
from .query import Marginals
from .residuals import Axes, cell_variance, cells, closure, precisions

if TYPE_CHECKING:
    from ..table import Counts


@dataclass(frozen=True)
class Part:
    """A table that is observed.

    Attributes:
        table: its attributes; () is the number of all records that count.
        weight: share of the budget, an integer; 0 for an exact one.
        exact: whether nothing moves it.
    """

    table: Axes
    weight: int
    exact: bool


@dataclass(frozen=True, eq=False)
class MarginalStrategy:
    """A priced mechanism for ``Marginals`` under one policy at one loss.

    Attributes:
        mechanism: the declaration it came from.
        asked: the tables over their domain.
        loss: what was asked for.
        parts: what is observed: exact tables first.
        move: the largest weighted move between neighbours (of squares, for Gaussian noise), exact or a proved bound.
    """

    mechanism: Tables
    asked: Asked
    loss: Loss
    parts: tuple[Part, ...]
    move: Move

    @property
    def is_gaussian(self) -> bool:
        return self.loss.is_gaussian

    @property
    def query(self) -> Marginals:
        return self.asked.query

    @property
    def domain(self) -> Domain:
        """Of the attributes that are counted."""
        return self.asked.domain

    @property
    def spent(self) -> Loss:
        """Exact privacy cost: what was asked for, or nothing if every table is free."""
        return charged.spent(self.loss, self.move)

    @property
    def cost(self) -> Sensitivity:
        """The cost in ε or ρ, with an edge that attains it where one does."""
        return charged.cost(self.loss, self.move)

    def scale(self, part: Part) -> Fraction | None:
        """Scale s of a table's Laplace noise, or σ² of its Gaussian noise; None without noise."""
        if part.exact:
            return None
        return charged.scale(self.loss, self.move.value, part.weight)

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is observed with noise: the largest joint move of the terms is the loss."""
        if not self.move.value:
            return ()
        return _terms(self.asked, self.parts, self.loss.amount / Fraction(self.move.value))

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly, beside the number of all records."""
        return tuple(self.asked.term(t) for t in self.exact_tables if t or self.asked.is_filtered)

    @cached_property
    def variances(self) -> dict[Axes, float]:
        """Exact variance of the sampler in the cells of every observed table; 0 for exact ones."""
        found = {}
        for part in self.parts:
            scale = self.scale(part)
            found[part.table] = (
                0.0 if scale is None else max(charged.variance(self.loss, scale), LEAST_VARIANCE)
            )
        return found

    @cached_property
    def table_variances(self) -> dict[Axes, float]:
        """Exact variance of the consistent estimate in the cells of every table asked for."""
        shape = self.asked.shape
        precision = precisions(shape, self.variances, self.asked.tables)
        return {t: cell_variance(shape, t, precision) for t in self.asked.tables}

    @cached_property
    def expected_error(self) -> float:
        """Mean squared error of a published cell, all cells of all tables alike; exact for the linear estimate."""
        total = math.fsum(cells(self.asked.shape, t) * v for t, v in self.table_variances.items())
        return total / self.asked.n_cells

    @property
    def half_width(self) -> float:
        """95 % half-width of a cell whose mean squared error is ``expected_error``, in records."""
        return self._wide(self.expected_error)

    def half_width_of(self, table: Axes, coverage: Fraction = COVERAGE) -> float:
        """Half-width (95 % if not told otherwise) of every cell of a table, or of a sum over some of its attributes: the exact
        quantile where a cell carries one draw of noise."""
        variance = self.table_variances.get(table)
        if variance is None:
            variance = cell_variance(
                self.asked.shape, table, precisions(self.asked.shape, self.variances, [table])
            )
        single = self.variances.get(table)
        if single and math.isclose(single, variance, rel_tol=1e-9):
            [scale] = [s for p in self.parts if p.table == table and (s := self.scale(p)) is not None]
            return charged.quantile(self.loss, scale, coverage)
        return self._wide(variance, coverage)

    def _wide(self, variance: float, coverage: Fraction = COVERAGE) -> float:
        if math.isinf(variance):
            return math.inf
        # Least squares gives every draw a weight of at most 1, so rounding up covers its being discrete.
        return math.ceil(widest(coverage, self.is_gaussian) * math.sqrt(variance) - 1e-9) + 0.0

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """(scale or σ², number) of every block of noise that a release needs."""
        shape = self.asked.shape
        return [(s, cells(shape, p.table)) for p in self.parts if (s := self.scale(p)) is not None]

    @property
    def exact_tables(self) -> tuple[Axes, ...]:
        """Tables that are observed without noise."""
        return tuple(p.table for p in self.parts if p.exact)

    @property
    def n_exact(self) -> int:
        """Cells that are disclosed exactly."""
        return sum(cells(self.asked.shape, t) for t in self.exact_tables)

    def admit(self, total: int) -> None:
        """Whether counts of up to ``total`` records, a public number, stay exact in 64 bits with their noise; asked before charging.

        Raises:
            Unsupported: a count could exceed 2^61.
        """
        if total >= LARGEST_SUM:
            raise Unsupported("marginals: a count could exceed 2^61.")

    def tabulate(self, counts: Counts) -> dict[Axes, Ints]:
        """The true tables that are observed."""
        return self.asked.tabulate(counts, tuple(p.table for p in self.parts))

    def observe(self, tables: dict[Axes, Ints], total: int | None, reserve: noise.Reserve) -> Noisy:
        """The observed tables with their noise, in the order of ``parts``. The noise was reserved before they were read.

        Raises:
            Unsupported: a count could exceed 2^61.
        """
        if total is not None:
            self.admit(total)
        values = []
        for part in self.parts:
            true, scale = tables[part.table], self.scale(part)
            if scale is not None:
                true = charged.added(true, reserve, self.loss, scale)
            values.append(np.asarray(true, dtype=np.float64))
        return Noisy(tuple(values), total)

    def observed(self, noisy: Noisy) -> dict[Axes, Floats]:
        """What was observed, by table."""
        return {p.table: v for p, v in zip(self.parts, noisy.values, strict=True)}

    def disclosed(self) -> list[str]:
        """In words, what is published exactly because the policy does not hold it secret."""
        told = []
        for table in self.exact_tables:
            if table or self.asked.is_filtered:  # the number of all records is public anyway
                told.append(_in_words(self.asked, table))
        return told

    def noise_spec(self) -> list[dict[str, Any]]:
        """What carries noise: the tables, their scale (σ² for Gaussian noise) and their number of cells."""
        found = []
        for part in self.parts:
            scale = self.scale(part)
            if scale is not None:
                names = self.asked.title(part.table)
                found.append(
                    {"rows": names, "scale": show(scale), "number": cells(self.asked.shape, part.table)}
                )
        return found

    def tables_spec(self) -> list[dict[str, Any]]:
        """The tables asked for, with the error of each."""
        return [
            {
                "attributes": list(self.asked.names(t)),
                "rows": cells(self.asked.shape, t),
                "axis": None if (axis := self.asked.term(t).resolved.axis) is None else axis.name,
                "expected_error": v,
                "half_width": self.half_width_of(t),
            }
            for t, v in self.table_variances.items()
        ]

    def spec(self) -> dict[str, Any]:
        """What was run, in plain values, for the account."""
        told = []
        for part in self.parts:
            scale = self.scale(part)
            told.append(
                {
                    "table": list(self.asked.names(part.table)),
                    "weight": part.weight,
                    "scale": None if scale is None else show(scale),
                }
            )
        return {"query": self.asked.query.to_spec(), "tables": told, "move": show(Fraction(self.move.value))}


def _terms(asked: Asked, parts: Iterable[Part], factor: Fraction = Fraction(1)) -> tuple[Term, ...]:
    return tuple(asked.term(p.table, p.weight, factor) for p in parts if not p.exact and p.weight)


def every_part(asked: Asked) -> tuple[Term, ...]:
    """All tables asked for, as they are."""
    return tuple(asked.term(t) for t in asked.tables)


def joint_move(asked: Asked, terms: tuple[Term, ...], hood: Neighbourhood, power: int) -> Move:
    """The largest joint move of some tables between neighbours, with an edge that attains it where a single one does."""
    if not terms:
        return Move(0, None)
    move = stacked(terms, hood, power)
    if not move.value or move.cells is not None or move.domain is None or not hood.is_plain:
        return move
    if not move.domain.is_numbered:
        return move
    told = [t.squared() for t in terms] if power == 2 else terms
    ends = _edge(asked, hood, move, move.domain)
    if ends is None or sum(t.factor * int(t.move(*ends, move.domain)[0]) for t in told) != move.value:
        return move
    return replace(move, cells=(int(ends[0][0]), int(ends[1][0])))


def build(
    mechanism: Tables,
    asked: Asked,
    hood: Neighbourhood,
    loss: Loss,
    measured: Iterable[Axes],
    weights: Iterable[int],
    exact: Iterable[Axes],
) -> MarginalStrategy:
    """Price tables with integer budget weights: scales spend the loss exactly.

    Args:
        hood: what neighbouring tables are.
        measured, weights: tables that carry noise, weight 0 meaning that one does not after all.
        exact: tables that nothing moves (``free_tables``).
    """
    parts = [Part(t, 0, True) for t in exact]
    parts += [Part(t, int(w), False) for t, w in zip(measured, weights, strict=True) if w]
    move = joint_move(asked, _terms(asked, parts), hood, loss.power)
    return MarginalStrategy(mechanism, asked, loss, tuple(parts), move)


def _edge(asked: Asked, hood: Neighbourhood, move: Move, domain: Domain) -> tuple[Ints, Ints] | None:
    """An edge along the attribute that costs most, or along all at once where edges move several."""
    axes = range(len(asked.groupings))
    if "any" not in move.by_secret:
        name = max(move.by_secret, key=move.by_secret.__getitem__)
        axes = [i for i in axes if asked.groupings[i].name == name]  # type: ignore[assignment]
    one = {n: asked.home(n) for n in domain.names}
    other = dict(one)
    for i in axes:
        single = stacked([asked.term((i,))], hood)
        if single.cells is None or single.domain is None:
            continue
        a, b = (single.domain.decode(np.array([c])) for c in single.cells)
        at = single.domain.names.index(asked.groupings[i].name)
        one[asked.groupings[i].name], other[asked.groupings[i].name] = a[at], b[at]
    x, y = (domain.encode([told[n] for n in domain.names]) for told in (one, other))
    return x, y


def free_tables(asked: Asked, hood: Neighbourhood) -> tuple[Axes, ...]:
    """The largest tables within those asked for that nothing moves; () is the number of all records that count.

    Whatever lies within a free table is free, so a table is looked at only where all of its parts are free.
    """
    free: set[Axes] = set()
    for table in closure(asked.tables):  # smaller ones first
        parts = (table[:i] + table[i + 1 :] for i in range(len(table)))
        known = not table and not asked.is_filtered and not hood.vanishing
        if known or (all(p in free for p in parts) and _is_still(asked, table, hood)):
            free.add(table)
    largest = [t for t in free if not any(set(t) < set(o) for o in free)]
    return tuple(sorted(largest, key=lambda t: (len(t), t)))


def _is_still(asked: Asked, table: Axes, hood: Neighbourhood) -> bool:
    return not stacked([asked.term(table)], hood).value


def _in_words(asked: Asked, table: Axes) -> str:
    names, spec = asked.names(table), asked.query.to_spec()
    bins = {n: v for n, v in spec.get("bins", {}).items() if n in names}
    return (
        "the number of records"
        + filter_text(asked.query)
        + (f" for every {every(names, bins)}" if names else "")
    )
