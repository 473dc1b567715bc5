"""Rows over several attributes: Kronecker products of one integer matrix per attribute, and their exact price.

A *term* observes (B₁ ⊗ … ⊗ B_m) x. Several terms with whole weights w cost max Σ_terms w·‖Δ‖^p over the moves of a record, p = 1
(Laplace) or 2 (Gaussian, the square). A record that moves along an edge of attribute j alone ("cartesian" graphs) changes a
term by

    ‖B_j (e_a − e_b)‖^p · Π_{i≠j} ‖B_i e_{v_i}‖^p,

so edge and column norms per attribute suffice. Under the "full" graph any two cells are joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from ..sensitivity.gram import exact_gram
from ..sensitivity.joint import Joint
from .moves import Moves
from .rounding import LARGEST
from .variance import Floats

Graph = Literal["cartesian", "full"]
Product = Sequence[Floats]  # V_j = W_jᵀW_j of every attribute
FRONT = 200_000
CELLS = 2_000


@dataclass(frozen=True, eq=False)
class Term:
    """One product: integer factors, shape (rows, positions) per attribute, and the weight of its rows."""

    factors: tuple[Ints, ...]
    weight: int

    @property
    def ceiling(self) -> int:
        """The largest entry of the product in magnitude."""
        return math.prod(int(np.abs(f).max(initial=0)) for f in self.factors)

    def apply(self, table: Ints) -> Ints:
        """Exact values of the rows, one axis per attribute, for a table of counts of the same form.

        Raises:
            Unsupported: one could exceed 2^61.

        >>> Term((np.ones((1, 2), dtype=np.int64), np.eye(2, dtype=np.int64)), 1).apply(np.array([[1, 2], [3, 4]])).tolist()
        [[4, 6]]
        """
        if self.ceiling * max(int(np.abs(table).sum()), 1) >= LARGEST:
            raise Unsupported("with so many records a row could exceed 2^61; use a named mechanism.")
        return Joint(self.factors).applied(table)

    def estimate(self, values: Floats, total: int | None = None) -> Floats:
        """Cells by least squares, attribute by attribute: ⊗ B_j⁺ values. Right in what the term's factors can tell.

        Args:
            total: number of all records where it is public and every factor identifies its attribute's cells.
        """
        cells: Floats = np.asarray(values, dtype=np.float64)
        for axis, factor in enumerate(self.factors):
            cells = np.moveaxis(np.tensordot(np.linalg.pinv(factor), cells, axes=(1, axis)), 0, axis)
        if total is None:
            return cells
        pull: Floats = np.ones(())
        for spread in self.spreads:
            pull = np.multiply.outer(pull, spread.sum(axis=1))
        held: Floats = cells + pull * ((total - cells.sum()) / pull.sum())
        return held

    @property
    def spreads(self) -> list[Floats]:
        """(B_jᵀB_j)⁺ of every factor."""
        halves = [np.linalg.pinv(f.astype(np.float64)) for f in self.factors]
        return [h @ h.T for h in halves]

    def error(self, product: Product) -> float:
        """Summed squared error of the answers of a product workload for noise of unit variance: Π_j tr(V_j (B_jᵀB_j)⁺)."""
        return math.prod(float((v * c).sum()) for v, c in zip(product, self.spreads, strict=True))

    def error_with_total(self, product: Product) -> float:
        """The same where the number of all records is public and held."""
        pulls = [c.sum(axis=1) for c in self.spreads]
        gain = math.prod(float(p @ v @ p) for v, p in zip(product, pulls, strict=True))
        return self.error(product) - gain / math.prod(float(p.sum()) for p in pulls)


def price(terms: Sequence[Term], attributes: Sequence[Moves], graph: Graph, power: int) -> tuple[int, bool]:
    """(max Σ_terms weight·‖Δ‖^power over the moves of a record, whether it is attained or only a bound), exact integers.

    Args:
        attributes: how a record may move along each attribute; the "full" graph joins all cells and does not look at it.

    >>> line = Moves(3, np.array([[0, 1], [1, 2]]), np.zeros(3))
    >>> price([Term((np.eye(3, dtype=np.int64), np.ones((1, 3), dtype=np.int64)), 5)], [line, line], "cartesian", 1)
    (10, True)
    """
    norms = [_stacked([_norms(t.factors[i], power) for t in terms]) for i in range(len(terms[0].factors))]
    weights = [t.weight for t in terms]
    if graph == "full":
        return _full(terms, norms, power)
    best, exact = 0, True
    for j, moves in enumerate(attributes):
        steps = _stacked([_steps(t.factors[j], moves, power) for t in terms])
        front, attained = _front([steps, *(n for i, n in enumerate(norms) if i != j)])
        cost = max((sum(w * v for w, v in zip(weights, row, strict=True)) for row in front), default=0)
        if cost > best or (cost == best and attained):
            best, exact = cost, attained
    return best, exact


def _norms(factor: Ints, power: int) -> Ints:
    """Shape (positions,): Σ_r |B[r, a]|^power."""
    if power == 2:
        square: Ints = exact_gram(factor).diagonal()
        return square
    _small(factor)
    size: Ints = np.abs(factor).sum(axis=0)
    return size


def _steps(factor: Ints, moves: Moves, power: int) -> Ints:
    """Shape (moves,): of every pair, then of every position that can be left (its factor rounded up)."""
    a, b = moves.pairs[:, 0], moves.pairs[:, 1]
    left = np.ceil(moves.leaves).astype(np.int64) * _norms(factor, power)
    if power == 2:
        square = exact_gram(factor)
        own = square.diagonal()
        return np.concatenate([own[a] + own[b] - 2 * square[a, b], left])
    found = np.zeros(len(a), dtype=np.int64)
    for row in factor:
        found += np.abs(row[a] - row[b])
    return np.concatenate([found, left])


def _small(factor: Ints) -> None:
    if 4 * int(np.abs(factor).max(initial=0)) * len(factor) >= LARGEST:
        raise Unsupported("the rows are too large to price exactly; use fewer bits.")


def _stacked(columns: list[Ints]) -> list[tuple[int, ...]]:
    """Distinct vectors over the terms, as Python integers, which cannot wrap."""
    return [tuple(row) for row in np.unique(np.stack(columns, axis=1), axis=0).tolist()]


def _front(factors: list[list[tuple[int, ...]]]) -> tuple[list[tuple[int, ...]], bool]:
    """Largest products of one vector from each list, entry by entry, and whether they are attained.

    Weighted sums of non-negative vectors are largest at vectors that no other one exceeds in every entry.
    """
    front, attained = _largest(factors[0]), True
    for other in factors[1:]:
        other = _largest(other)
        if len(front) * len(other) > FRONT:
            front, other, attained = [_top(front)], [_top(other)], False
        front = _largest([tuple(map(int.__mul__, x, y)) for x in front for y in other])
    return front, attained


def _top(vectors: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(max, zip(*vectors, strict=True)))


def _largest(vectors: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for v in sorted(set(vectors), reverse=True):
        if not any(all(x >= y for x, y in zip(k, v, strict=True)) for k in kept):
            kept.append(v)
    return kept


def _full(terms: Sequence[Term], norms: list[list[tuple[int, ...]]], power: int) -> tuple[int, bool]:
    """Any two cells: by going through all pairs of few cells, else by the triangle inequality."""
    sizes = [f.shape[1] for f in terms[0].factors]
    cells = math.prod(sizes)
    rows = sum(math.prod(len(f) for f in t.factors) for t in terms)
    if cells < 2:
        return 0, True
    if cells <= CELLS and (power == 2 or cells * rows <= CELLS * CELLS // 4):
        return _by_pairs(terms, cells, power), True
    front, _ = _front(norms)
    top = max(sum(t.weight * v for t, v in zip(terms, row, strict=True)) for row in front)
    if power == 1 or all((exact_gram(f) >= 0).all() for t in terms for f in t.factors):
        return 2 * top, False
    return 4 * top, False


def _by_pairs(terms: Sequence[Term], cells: int, power: int) -> int:
    """Python integers in object arrays: products of several factors may exceed 64 bits."""
    total: Any = np.zeros((cells, cells), dtype=object)
    for term in terms:
        if power == 2:
            square: Any = np.ones((1, 1), dtype=object)
            for factor in term.factors:
                square = np.kron(square, exact_gram(factor).astype(object))
            own = square.diagonal()
            total += term.weight * (own[:, None] + own - 2 * square)
        else:
            whole: Any = np.ones((1, 1), dtype=object)
            for factor in term.factors:
                whole = np.kron(whole, factor.astype(object))
            for row in whole:
                total += term.weight * np.abs(row[:, None] - row)
    return int(total.max())
