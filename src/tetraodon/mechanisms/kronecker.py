"""Strategies over several attributes at once: weighted sums of Kronecker products of one matrix per attribute.

One term (see ``products``) per product workload. Scale every factor so that its largest column has norm 1. Under a graph
along whose edges one attribute changes, a term's price is then the largest edge norm κ of its factors and its error a product
over the attributes, so each attribute trades its own error f_j(κ) against κ; for Gaussian noise log f_j is convex in log κ,
since geometric means of feasible X are feasible (derived). Under the full graph only the columns' norms count. The number of
all records may be held afterwards where it is public; other public totals are not used.

No data is read and no noise is drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from ..sensitivity.gram import exact_gram
from .forest import Forest
from .moves import Moves, forest_rows
from .optimised import gaussian_strategy, laplace_strategy
from .products import Graph, Product, Term, price
from .rounding import BITS, LARGEST, rounded
from .variance import Floats

EDGES = tuple(
    2.0 ** (k / 2) for k in range(4, -11, -1)
)  # values of κ that are tried, the largest norms first
OPTIMISED = {1: 96, 2: 512}  # longest attributes whose factors are optimised
WORK = 1e9
FANOUTS = (2, 4, 8, 16)
LEAST_BITS = 6
ROUNDS, SWEEPS, SETTLED = 6, 100, 1e-6
WEIGHT = 2**12


@dataclass(frozen=True, eq=False)
class Kronecker:
    """A priced strategy.

    Attributes:
        terms: one per product workload.
        move: max Σ_terms weight·‖Δ‖^power over the moves of a record, or a bound of it.
        is_exact: whether some move attains it.
        power: 1 or 2.
        error: summed squared error of all answers at ε = 1 (power 1, variance 2s² of noise of scale s) or ρ = 1/2 (power 2).
    """

    terms: tuple[Term, ...]
    move: int
    is_exact: bool
    power: int
    error: float


@dataclass(frozen=True, eq=False)
class Option:
    """A factor for one attribute and one of its workloads.

    Attributes:
        matrix: in the scale in which the largest column has norm 1, or whole numbers.
        edge: its largest step, relative to the largest column (norms to the power p).
        error: tr(V (AᵀA)⁺) in that scale.
    """

    matrix: Floats
    edge: float
    error: float

    @property
    def is_whole(self) -> bool:
        return bool((self.matrix == np.rint(self.matrix)).all())


def options(square: Floats, moves: Moves, power: int, starts: Sequence[Floats] = ()) -> list[Option]:
    """Factors for one attribute: named ones, the given ones and, on short attributes, optimised ones for many κ."""
    size = moves.size
    if np.array_equal(square, np.full_like(square, square[0, 0])):
        return [_option(np.ones((1, size)), square, moves, power)]
    named = [np.eye(size), np.tril(np.ones((size, size))), *map(np.asarray, starts)]
    for fanout in FANOUTS:
        if fanout < size:
            named.append(forest_rows(Forest(size, size, fanout)))
    found = list(named)
    if size <= OPTIMISED[power]:
        last: list[Floats] = []
        for edge in EDGES if power == 2 else EDGES[2::2]:
            bounded = Moves(size, moves.pairs, np.full(size, edge))
            if power == 2:
                found.append(gaussian_strategy(square, bounded, 5e-3).matrix)
            else:
                last = [laplace_strategy(square, bounded, [*named, *last], WORK).matrix]
                found += last
    return [o for m in found if (o := _option(m, square, moves, power)).error < math.inf]


def _option(matrix: Floats, square: Floats, moves: Moves, power: int) -> Option:
    size = float((np.abs(matrix) ** power).sum(axis=0).max())
    if not (matrix == np.rint(matrix)).all():
        matrix = matrix / size ** (1 / power)
        size = 1.0
    inverse = np.linalg.pinv(matrix)
    error = float((square * (inverse @ inverse.T)).sum()) * size ** (2 / power)
    missed = square - square @ inverse @ matrix
    if np.abs(missed).max() > 1e-6 * np.abs(square).max():
        error = math.inf
    columns = np.concatenate([matrix, np.zeros((len(matrix), 1))], axis=1)
    step = np.zeros(1 + len(moves.pairs))
    for row in columns:
        step[1:] += np.abs(row[moves.pairs[:, 0]] - row[moves.pairs[:, 1]]) ** power
    step[0] = ((np.abs(matrix) ** power).sum(axis=0) * moves.leaves).max()
    return Option(matrix, float(step.max()) / size, error)


def kronecker_strategy(
    products: Sequence[Product], attributes: Sequence[Moves], graph: Graph, power: int, records: int
) -> Kronecker:
    """One term per product workload: factors, weights and whole numbers chosen for least summed squared error.

    Factors and weights are improved in turn: given the prices λ_j of the attributes' edges, every term takes the factors of
    least Π f_j(κ_j)·(Σ λ_j κ_j)^{2/p}; given the factors, weights and λ follow from a small convex problem.

    Args:
        products: per product workload V_j = W_jᵀW_j of every attribute, shape (positions, positions); see ``moves.gram``. An
            attribute that is summed over has a matrix of ones.
        attributes: how a record may move along each attribute.
        records: rows of up to so many records stay below 2^61.

    Raises:
        Unsupported: the products' entries leave no room for so many records.

    >>> line = Moves(4, np.array([[0, 1], [1, 2], [2, 3]]), np.zeros(4))
    >>> cells, total = np.eye(4), np.ones((4, 4))
    >>> best = kronecker_strategy([(cells, total), (total, cells)], [line, line], "cartesian", 2, 1000)
    >>> [len(term.factors) for term in best.terms], best.is_exact
    ([2, 2], True)
    """
    memo: dict[tuple[int, bytes], list[Option]] = {}
    offered = []
    for product in products:
        listed = []
        for j, square in enumerate(product):
            key = (j, np.ascontiguousarray(square, dtype=np.float64).tobytes())
            if key not in memo:
                moves = (
                    attributes[j]
                    if graph == "cartesian"
                    else Moves(len(square), _none(), np.zeros(len(square)))
                )
                memo[key] = options(square, moves, power)
            listed.append(memo[key])
        offered.append(listed)
    chosen = [_least(listed, None, power) for listed in offered]
    best: tuple[float, list[tuple[Option, ...]], Floats] = (math.inf, chosen, np.ones(len(chosen)))
    for _ in range(ROUNDS):
        value, weights, prices = _weighed(chosen, graph, power)
        if not value < best[0]:
            break
        best = (value, chosen, weights)
        if graph == "full":
            break
        chosen = [_least(listed, prices, power) for listed in offered]
    if graph == "cartesian" and len(products) > 1:
        best = _one_by_one(offered, *best, power)
    return _whole(products, attributes, graph, power, records, best[1], best[2])


def _one_by_one(
    offered: list[list[list[Option]]],
    value: float,
    chosen: list[tuple[Option, ...]],
    weights: Floats,
    power: int,
) -> tuple[float, list[tuple[Option, ...]], Floats]:
    """Replace one factor at a time while that helps: terms that share the price of an edge do not settle on prices alone."""
    for _ in range(ROUNDS):
        before = value
        for t, listed in enumerate(offered):
            for j, options_ in enumerate(listed):
                for option in options_:
                    fresh = list(chosen)
                    fresh[t] = (*chosen[t][:j], option, *chosen[t][j + 1 :])
                    found, told, _ = _weighed(fresh, "cartesian", power)
                    if found < value * (1 - SETTLED):
                        value, chosen, weights = found, fresh, told
        if value == before:
            break
    return value, chosen, weights


def _none() -> Ints:
    return np.zeros((0, 2), dtype=np.int64)


def _least(listed: list[list[Option]], prices: Floats | None, power: int) -> tuple[Option, ...]:
    """Factors of least error times price: the largest edge (prices None), or the edges at stated prices."""
    if prices is None:
        tried = []
        for limit in sorted({o.edge for options_ in listed for o in options_}):
            within = [[o for o in options_ if o.edge <= limit] for options_ in listed]
            if all(within):
                picked = tuple(min(w, key=lambda o: o.error) for w in within)
                cost = max(o.edge for o in picked) or 1.0
                tried.append((math.prod(o.error for o in picked) * cost ** (2 / power), picked))
        return min(tried, key=lambda item: item[0])[1]
    picked = _least(listed, None, power)
    for _ in range(ROUNDS):
        before = picked
        for j, offered in enumerate(listed):
            rest = sum(float(prices[i]) * o.edge for i, o in enumerate(picked) if i != j)
            price_ = float(prices[j])
            scores = [o.error * max(rest + price_ * o.edge, 1e-300) ** (2 / power) for o in offered]
            picked = (*picked[:j], offered[int(np.argmin(scores))], *picked[j + 1 :])
        if picked == before:
            break
    return picked


def _weighed(chosen: list[tuple[Option, ...]], graph: Graph, power: int) -> tuple[float, Floats, Floats]:
    """(error at unit price, weights of the terms, prices of the attributes' edges).

    min_w Σ_t F_t / w_t^{2/p} with Σ_t w_t e_tj ≤ 1 for every j; its dual is solved by multiplicative steps on λ.
    """
    errors = np.array([math.prod(o.error for o in term) for term in chosen])
    edges = np.array([[o.edge for o in term] for term in chosen])
    if graph == "full":
        edges = np.full((len(chosen), 1), 2.0)
    used = edges.any(axis=0)
    if not used.any():
        return 0.0, np.ones(len(chosen)), np.ones(edges.shape[1])
    prices = np.where(used, 1.0, 0.0)
    best: tuple[float, Floats, Floats] = (math.inf, np.ones(len(chosen)), prices)
    for _ in range(SWEEPS):
        prices = prices / prices.sum()
        paid = np.maximum(edges @ prices, 1e-12)
        weights = (errors / paid) ** (power / (power + 2))
        loads = weights @ edges
        weights, loads = weights / loads.max(), loads / loads.max()
        value = float((errors / weights ** (2 / power)).sum())
        if value < best[0]:
            best = (value, weights, prices)
        prices = prices * loads
    return best


def _whole(
    products: Sequence[Product],
    attributes: Sequence[Moves],
    graph: Graph,
    power: int,
    records: int,
    chosen: list[tuple[Option, ...]],
    weights: Floats,
) -> Kronecker:
    """Round the factors, give the terms whole weights, price them."""
    factors = [_rounded(product, term, records) for product, term in zip(products, chosen, strict=True)]
    sizes = [math.prod(_column(f, power) for f in term) for term in factors]
    relative = [w / size for w, size in zip(weights.tolist(), sizes, strict=True)]
    least = min(relative)
    terms = tuple(
        Term(term, max(1, round(WEIGHT * (r / least)))) for term, r in zip(factors, relative, strict=True)
    )
    move, exact = price(terms, attributes, graph, power)
    error = 0.0
    for term, product in zip(terms, products, strict=True):
        scale = move / term.weight
        error += term.error(product) * (scale if power == 2 else 2 * scale**2)
    return Kronecker(terms, move, exact, power, error)


def _rounded(product: Product, term: tuple[Option, ...], records: int) -> tuple[Ints, ...]:
    taken = math.prod(int(np.abs(o.matrix).max()) for o in term if o.is_whole)
    real = sum(not o.is_whole for o in term)
    room = (LARGEST - 1) // (taken * max(records, 1))
    bits = min(BITS, (room.bit_length() - 1) // max(real, 1) - 1) if real else 0
    if (real and bits < LEAST_BITS) or not room:
        raise Unsupported(
            "with so many attributes and records a row could exceed 2^61; use a named mechanism."
        )
    return tuple(
        o.matrix.astype(np.int64)
        if o.is_whole
        else rounded(o.matrix, square, Moves(len(square), _none(), np.ones(len(square))), 1, bits)
        for o, square in zip(term, product, strict=True)
    )


def _column(factor: Ints, power: int) -> int:
    """The largest column's norm to the power."""
    norms = exact_gram(factor).diagonal() if power == 2 else np.abs(factor).sum(axis=0)
    return int(norms.max())
