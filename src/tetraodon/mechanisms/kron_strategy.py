"""Kronecker products of one optimised matrix per attribute as a strategy: rows that join the groups of a query.

Rows repeated in every group let a record that changes group pay for two whole columns. A product ⊗ B_j with correlated columns
makes near groups cheap to move between where the policy protects only them: price max_j κ_j over edge norms κ_j, error a product
over the attributes (``kronecker``). Histograms, and CDFs and all ranges of groups, under secrets that change one attribute at a
time and without known counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from .. import noise
from ..axes import Ints
from ..binning import Grouping
from ..errors import SpecificationError, Unsupported
from ..points import Point
from ..quotient import label_change, quotient
from ..sensitivity import Term, rows, stacked
from ..sensitivity.joint import Joint
from ..workload import AllRanges, Cells, Prefixes, Resolved
from . import Kronecker, charged
from .kronecker import OPTIMISED, kronecker_strategy
from .moves import Moves, gram
from .parts import Noisy, Part
from .products import Product
from .products import Term as Observed
from .search import Search
from .strategy import LARGEST_SUM, LEAST_VARIANCE, Strategy
from .variance import Floats

RECORDS = 2**32
MAX_CELLS = 2**20
QUICK = 128
"""Longest attribute for which ``auto`` looks at products, for Gaussian noise: about a second for two of them."""
WORTH = 0.97
"""Largest error relative to the best other strategy with which ``auto`` still takes products into account."""
WHERE = "mechanism 'kronecker'"


@dataclass(frozen=True, eq=False)
class KroneckerStrategy(Strategy):
    """A priced product for one query. ``parts`` hold an empty chain and its rows, which belong to no single group.

    Attributes:
        factors: one integer matrix per attribute, groups first, then the axis; each identifies its attribute's positions.
    """

    factors: tuple[Ints, ...]

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is observed with noise: its largest move is the loss."""
        return (_term(self.resolved, self.factors, self.loss.amount / Fraction(self.move.value)),)

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """Nothing: the number of all records, which is used where nothing is filtered, is public."""
        return ()

    def scale(self, part: Part) -> Fraction | None:
        """Scale s of the Laplace noise, or σ² of the Gaussian noise; None for the empty chain."""
        if not part.weight:
            return None
        return charged.scale(self.loss, self.move.value)

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """(scale or σ², number) of every block of noise that a release needs."""
        return [(self._scale, len(self.parts[1].exact))]

    @property
    def _scale(self) -> Fraction:
        found = self.scale(self.parts[1])
        assert found is not None
        return found

    @cached_property
    def _noise(self) -> float:
        """Variance of one row's noise."""
        return max(self.noise_variance(self._scale), LEAST_VARIANCE)

    @property
    def _has_total(self) -> bool:
        """Whether the number of records that the cells add up to is public."""
        return not self.resolved.is_filtered and not self.hood.vanishing

    @property
    def _joint(self) -> Joint:
        return Joint(self.factors)

    @property
    def _observed(self) -> Observed:
        return Observed(self.factors, 1)

    def admit(self, total: int) -> None:
        """Whether rows over up to ``total`` records, a public number, stay exact in 64 bits with their noise; asked before charging.

        Raises:
            Unsupported: a row could exceed 2^61.
        """
        if self._observed.ceiling * max(total, 1) >= LARGEST_SUM:
            raise Unsupported(f"{WHERE}: with so many records a row could exceed 2^61; use 'auto'.")

    def observe(self, table: Ints, total: int | None, reserve: noise.Reserve) -> Noisy:
        """Exact rows plus noise. The noise was reserved before the table was read."""
        if total is not None:
            self.admit(total)
        true = self._joint.applied(table).reshape(1, -1)
        told = charged.added(true, reserve, self.loss, self._scale).astype(np.float64)
        return Noisy((np.zeros((len(table), 0)), told), total)

    def estimate(self, noisy: Noisy) -> Floats:
        """Cells by least squares, shape (groups, positions); they add up to the number of records where nothing is filtered."""
        values = noisy.values[1].reshape([len(f) for f in self.factors])
        found = self._observed.estimate(values, noisy.total if self._has_total else None)
        return found.reshape(self.resolved.n_groups, self.resolved.n_positions)

    @cached_property
    def blocks(self) -> None:
        """Not for products."""
        return None

    @cached_property
    def projection(self) -> None:
        """There are no known counts."""
        return None

    @cached_property
    def _spreads(self) -> list[Floats]:
        """(B_jᵀB_j)⁻¹ of every attribute, the axis last (of one position where there is none)."""
        found = self._observed.spreads
        return found if self.resolved.axis is not None else [*found, np.ones((1, 1))]

    @cached_property
    def _groups(self) -> tuple[Floats, Floats]:
        """(variance of every group's factor, its pull by the total), shape (groups,) each."""
        own, pull = np.ones(1), np.ones(1)
        for spread in self._spreads[:-1]:
            own = np.multiply.outer(own, spread.diagonal()).ravel()
            pull = np.multiply.outer(pull, spread.sum(axis=1)).ravel()
        return own, pull

    def _varying(self, along: Floats, pulled: Floats) -> Floats:
        """Shape (groups, answers): variance of what has variance ``along`` and pull ``pulled`` under the axis's factor."""
        own, pull = self._groups
        found = np.multiply.outer(own, along)
        if not self.resolved.is_filtered:
            whole = math.prod(float(s.sum()) for s in self._spreads)
            found = found - np.multiply.outer(pull, pulled) ** 2 / whole
        return np.maximum(found, 0.0) * self._noise

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """Covariance of F_0 … F_P under the axis's factor, and their pull."""
        spread = self._spreads[-1]
        found = np.zeros((len(spread) + 1, len(spread) + 1))
        found[1:, 1:] = spread.cumsum(axis=0).cumsum(axis=1)
        return found, np.append(0.0, spread.sum(axis=1).cumsum())

    def prefix_variance(self) -> Floats:
        """Shape (groups, P + 1)."""
        spread, pull = self._prefixes
        return self._varying(spread.diagonal(), pull)

    def range_variance(self, lows: Ints, highs: Ints) -> Floats:
        """Shape (groups, ranges): variance of the count of positions low … high − 1."""
        spread, pull = self._prefixes
        own = spread.diagonal()
        return self._varying(own[lows] + own[highs] - 2 * spread[lows, highs], pull[highs] - pull[lows])

    def answer_variance(self) -> Floats:
        """Shape (groups, answers)."""
        if isinstance(self.resolved.workload, Cells):
            spread = self._spreads[-1]
            return self._varying(spread.diagonal(), spread.sum(axis=1))
        return self.prefix_variance()[:, 1:]

    @cached_property
    def expected_error(self) -> float:
        """Mean squared error of an answer, exact for the linear estimate."""
        product, answers = _product(self.resolved)
        error = self._observed.error_with_total(product) if self._has_total else self._observed.error(product)
        return max(error, 0.0) / answers * self._noise


def _every(resolved: Resolved) -> list[Grouping]:
    return [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]


def _term(resolved: Resolved, factors: Sequence[Ints], factor: Fraction = Fraction(1)) -> Term:
    return Term(resolved, (Joint(tuple(factors)),), factor)


def _product(resolved: Resolved) -> tuple[Product, int]:
    """(V of every attribute, number of answers)."""
    product = [np.eye(g.size) for g in resolved.groups]
    count = resolved.n_groups
    if resolved.axis is not None:
        square, along = gram(resolved.workload, resolved.axis.size)
        product, count = [*product, square], count * along
    return product, count


def _refused(search: Search) -> SpecificationError | None:
    """Why products are not for this question, in words."""
    resolved = search.resolved
    if not isinstance(resolved.workload, Cells | Prefixes | AllRanges) or resolved.query.word == "quantiles":
        return SpecificationError(f"{WHERE}: for Histogram, CDF and all Ranges; use 'auto' here.")
    if not search.hood.is_plain:
        return SpecificationError(f"{WHERE}: not under known counts; use 'auto' here.")
    every = _every(resolved)
    if sum(g.size > 1 for g in every) < 2:
        return SpecificationError(f"{WHERE}: for queries over two or more attributes; use 'auto' here.")
    if any(isinstance(g.attribute, Point) for g in every):
        return SpecificationError(f"{WHERE}: not for places on a map; use 'auto' here.")
    graph = search.hood.graph
    if graph.kind != "cartesian":
        return SpecificationError(
            f"{WHERE}: for secrets that change one attribute at a time (AttributeWise, Within on one attribute); "
            "otherwise rows repeated in every group are as good."
        )
    return None


def _too_large(search: Search) -> Unsupported | None:
    resolved, most = search.resolved, OPTIMISED[search.power]
    longest = max(g.size for g in _every(resolved))
    if longest > most:
        return Unsupported(
            f"{WHERE}: offered up to {most} positions of an attribute, not {longest:,}; use 'auto'."
        )
    cells = resolved.n_groups * resolved.n_positions
    if cells > MAX_CELLS:
        return Unsupported(f"{WHERE}: offered up to 2^20 cells, not {cells:,}; use 'auto'.")
    return None


def applies(search: Search) -> bool:
    """Whether ``auto`` should look at products: those that take a moment."""
    if search.power != 2 or _refused(search) is not None or _too_large(search) is not None:
        return False
    return max(g.size for g in _every(search.resolved)) <= QUICK


def notes(search: Search) -> tuple[str, ...]:
    """What ``auto`` leaves out, in words."""
    if _refused(search) is not None:
        return ()
    if _too_large(search) is not None:
        return (
            f"products of rows over several attributes are offered up to {OPTIMISED[search.power]} positions of an "
            "attribute and 2^20 cells: this plan compares rows repeated in every group.",
        )
    helps = search.power == 2 or not isinstance(search.resolved.workload, Cells)
    return (
        ()
        if applies(search) or not helps
        else ('mechanism "kronecker" takes some seconds and may do better.',)
    )


def joined(search: Search) -> KroneckerStrategy:
    """The product of least error for a query under a policy.

    Raises:
        SpecificationError: not for this query or policy, or nothing of it is secret.
        Unsupported: too many positions or cells, or attributes.
    """
    refused = _refused(search) or _too_large(search)
    if refused is not None:
        raise refused
    resolved = search.resolved
    graph = search.hood.graph.project(resolved.domain.names)
    moves = [Moves.of(quotient(graph.axis(g.name), g.labels), g.size) for g in _every(resolved)]
    product = list(_product(resolved)[0])
    for name, kept in resolved.filters:
        change, _ = label_change(graph.axis(name), np.where(kept, 0, -1).astype(np.int64))
        moves.append(Moves(1, np.zeros((0, 2), dtype=np.int64), np.full(1, float(change))))
        product.append(np.ones((1, 1)))
    if search.hood.vanishing:  # like an edge of a filter: a record comes or goes
        moves.append(Moves(1, np.zeros((0, 2), dtype=np.int64), np.ones(1)))
        product.append(np.ones((1, 1)))
    if search.hood.spares(resolved) or not any(len(m.pairs) or m.leaves.any() for m in moves):
        raise SpecificationError(f"{WHERE}: no secret changes this answer; use 'auto' here.")
    [found] = kronecker_strategy([product], moves, "cartesian", search.power, RECORDS).terms
    return _built(search, found.factors[: len(_every(resolved))])


def _built(search: Search, factors: tuple[Ints, ...]) -> KroneckerStrategy:
    resolved = search.resolved
    move = stacked([_term(resolved, factors)], search.hood, search.power)
    last = factors[-1] if resolved.axis is not None else np.ones((1, 1), dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    parts = (
        Part("chain", rows.Prefixes(resolved.n_positions, none), 0, np.zeros(0, dtype=bool)),
        Part("kronecker", rows.Matrix(last), 1, np.zeros(Joint(factors).count, dtype=bool)),
    )
    return KroneckerStrategy(Kronecker(), resolved, search.hood, search.loss, None, parts, move, factors)
