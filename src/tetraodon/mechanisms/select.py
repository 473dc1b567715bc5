"""Which mechanism, fan-out and budget split: by exact expected error for the stated workload, from public inputs only.

Splits are searched in floating point and then rounded to integer weights; the price and the error that are reported are
those of the rounded weights, exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..axes import Axis
from ..errors import SpecificationError, Unsupported
from ..graphs import Graph
from ..quotient import quotient
from ..sensitivity import largest_move, rows
from ..workload import Cells, Prefixes, Resolved, Rows
from . import Direct, Hierarchical, Identity, Mechanism, Ordered, OrderedHierarchical
from .forest import Forest
from .strategy import Strategy, build, build_rows, free_bounds
from .variance import posterior

FANOUTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64)
WEIGHT_TOTAL = 1 << 16
ROUNDS = 14
MAX_TREE = 2**23
LONG_CHAIN = 256


@dataclass(frozen=True)
class Split:
    """A shape with relative budgets (floats while searching): the chain's and each level's."""

    forest: Forest
    chain: float
    levels: tuple[float, ...]

    @property
    def integers(self) -> tuple[int, tuple[int, ...]]:
        """The same shares as integer weights; a row that is released keeps at least 1."""
        whole = self.chain + sum(self.levels)

        def rounded(share: float) -> int:
            return max(1, round(share / whole * WEIGHT_TOTAL)) if share > 0 else 0

        return rounded(self.chain), tuple(rounded(v) for v in self.levels)


@dataclass(frozen=True, eq=False)
class Search:
    """What the search for budgets needs to know about a query under a policy, computed once.

    Attributes:
        resolved, graph: the query and the policy's graph.
        free: prefix rows that no edge changes.
    """

    resolved: Resolved
    graph: Graph

    @property
    def free(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return _free(self)

    def chain_move(self, forest: Forest) -> int:
        """Largest move of the chain's rows alone."""
        kept = np.flatnonzero(~self.free[forest.ends])
        if not len(kept):
            return 0
        return largest_move(self.resolved, self.graph, (forest.chain_rows(kept, 1),)).value

    def error(self, split: Split, crossing: int) -> float:
        """Error of the workload times cost², for continuous Laplace noise, if the cost were the sum of its parts."""
        cost = crossing * split.chain + 2 * sum(split.levels)
        forest = split.forest
        free = self.free[forest.ends]
        if forest.n_blocks > LONG_CHAIN:  # far from its ends a chain looks the same everywhere
            forest = Forest(forest.block * LONG_CHAIN, forest.block, forest.fanout)
            free = np.append(free[: LONG_CHAIN - 1], free[-1])
        loud = 2 / split.chain**2 if split.chain > 0 else math.inf
        found = posterior(forest, np.where(free, 0.0, loud), [2 / w**2 for w in split.levels])
        asked = self.resolved.workload
        mean = found.cells if isinstance(asked, Cells) else found.all_ranges
        if isinstance(asked, Prefixes):
            mean = found.prefixes
        return mean * cost**2

    def optimal(self, split: Split, crossing: int) -> Split:
        """Improve the budgets: at the optimum, each row kind's share of the cost is its share of the error.

        The error is homogeneous of degree −2 in the budgets, so its logarithmic derivatives sum to −2; a multiplicative
        step towards their shares is repeated, and the best split seen is kept.
        """
        names = len(split.levels) + 1
        weights = np.array([split.chain, *split.levels])
        price = np.array([float(crossing), *[2.0] * len(split.levels)])
        active = (weights > 0) & (price > 0)

        def value(w: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
            return self.error(Split(split.forest, float(w[0]), tuple(map(float, w[1:]))), crossing)

        best, best_weights, step = value(weights), weights, 1.0
        for _ in range(ROUNDS):
            shares = np.zeros(names)
            cost = float(price @ best_weights)
            bare = best / cost**2
            for i in np.flatnonzero(active):
                moved = best_weights.copy()
                moved[i] *= 1.01
                shares[i] = max(1e-9, math.log(bare) - math.log(value(moved) / float(price @ moved) ** 2))
            ratio = shares[active] / shares.sum() / (price * best_weights / cost)[active]
            fresh = best_weights.copy()
            fresh[active] *= np.clip(ratio, 0.05, 20.0) ** step
            found = value(fresh)
            if found >= best * (1 - 1e-5):
                step /= 2
                if step < 0.2:
                    break
            if found < best:
                best, best_weights = found, fresh
        return Split(split.forest, float(best_weights[0]), tuple(map(float, best_weights[1:])))


@lru_cache(maxsize=8)
def _free(search: Search) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return free_bounds(search.resolved, search.graph)


def _levels(kind: str, forest: Forest) -> tuple[float, ...]:
    if kind == "geometric":
        return tuple(forest.fanout ** (depth / 3) for depth in range(1, forest.height + 1))
    return (1.0,) * forest.height


def _reach(resolved: Resolved, graph: Graph) -> int:
    """Largest distance along the axis that an edge spans; all of it if an edge joins the ends, or a star is joined."""
    size = resolved.n_positions
    small = graph.project(resolved.domain.names)
    if resolved.axis is None or small.kind == "flat":
        return size
    axis = quotient(small.axis(resolved.axis.name), resolved.axis.labels)
    if Axis(axis.base, stars=axis.stars).has_edges or axis.widest[0] >= axis.base - 1:
        return size
    return max(1, axis.widest[0])


def _split(search: Search, forest: Forest, levels: str, share: Fraction | None) -> Split:
    """Starting or final budgets of a forest."""
    crossing = search.chain_move(forest)
    inside = _levels(levels, forest)
    tree = 2 * sum(inside)
    if not crossing:
        # Free ends cost nothing; without a tree they are everything.
        split = Split(forest, 0.0 if inside else 1.0, inside)
    elif share is not None and inside:
        split = Split(forest, float(share / (1 - share)) * tree / crossing, inside)
    else:
        split = Split(forest, tree / crossing / 2 if inside else 1.0, inside)
        if inside and levels != "optimal":
            split = _best_share(search, split, crossing)
    return search.optimal(split, crossing) if levels == "optimal" and inside and share is None else split


def _best_share(search: Search, split: Split, crossing: int) -> Split:
    """The chain's budget of least error, the levels' kept in proportion (golden section on its logarithm)."""

    def at(x: float) -> Split:
        return Split(split.forest, math.exp(x), split.levels)

    middle = math.log(split.chain)
    low, high, ratio = middle - 5, middle + 4, (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = search.error(at(a), crossing), search.error(at(b), crossing)
    for _ in range(22):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = search.error(at(a), crossing)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = search.error(at(b), crossing)
    return at((low + high) / 2)


def _built(search: Search, mechanism: Mechanism, split: Split, epsilon: Fraction) -> Strategy:
    chain, levels = split.integers
    return build(mechanism, search.resolved, search.graph, epsilon, split.forest, chain, levels)


def price(mechanism: Mechanism, resolved: Resolved, graph: Graph, epsilon: Fraction) -> Strategy:
    """The strategy that a named mechanism means for a query, a policy and ε.

    Raises:
        SpecificationError: the mechanism does not apply to this query.
    """
    size, where = resolved.n_positions, f"mechanism {next(iter(mechanism.to_spec()))!r}"
    if isinstance(mechanism, Direct):
        if not isinstance(resolved.workload, Rows):
            raise SpecificationError(f"{where}: for Sum, Mean and Linear; use 'identity' or 'auto' here.")
        return _direct(mechanism, resolved, graph, epsilon)
    if resolved.query.word == "mean":
        raise SpecificationError(f"{where}: a Mean is released through its total; use 'direct' or 'auto'.")
    search = Search(resolved, graph)
    if isinstance(mechanism, Identity):
        forest = Forest(size, size, max(size, 2))
        return build(mechanism, resolved, graph, epsilon, forest, 0 if size > 1 else 1, (1,) * forest.height)
    if size == 1:
        raise SpecificationError(
            f"{where}: needs an axis of at least two cells; use 'identity' or 'auto' here."
        )
    if isinstance(mechanism, Ordered):
        return build(mechanism, resolved, graph, epsilon, Forest(size, 1, 2), 1, ())
    if size > MAX_TREE:
        raise Unsupported(f"{where}: trees are offered up to 2^23 cells.")
    if isinstance(mechanism, Hierarchical):
        block, share = size, None
    else:
        block, share = min(mechanism.block or _reach(resolved, graph), size), mechanism.split
    forest = Forest(size, block, mechanism.fanout)
    if share is not None and forest.height and search.chain_move(forest):
        return _at_share(search, mechanism, forest, share, epsilon)
    return _built(search, mechanism, _split(search, forest, mechanism.levels, share), epsilon)


def _at_share(
    search: Search,
    mechanism: OrderedHierarchical | Hierarchical,
    forest: Forest,
    share: Fraction,
    epsilon: Fraction,
) -> Strategy:
    """Exactly the stated share: crossing·w_chain : 2·Σ w_level = share : 1 − share."""
    inside = Split(forest, 0.0, _levels(mechanism.levels, forest)).integers[1]
    crossing, tree = search.chain_move(forest), 2 * sum(inside)
    chain = share.numerator * tree
    rest = (share.denominator - share.numerator) * crossing
    common = math.gcd(chain, rest)
    chain, rest = chain // common, rest // common
    levels = tuple(w * rest for w in inside)
    common = math.gcd(chain, *levels)
    levels = tuple(w // common for w in levels)
    return build(mechanism, search.resolved, search.graph, epsilon, forest, chain // common, levels)


def _direct(mechanism: Direct, resolved: Resolved, graph: Graph, epsilon: Fraction) -> Strategy:
    if resolved.query.word != "mean":
        return build_rows(mechanism, resolved, graph, epsilon, (1,))
    asked = resolved.workload
    assert isinstance(asked, Rows)
    moves = [largest_move(resolved, graph, (rows.Matrix(row[None, :]),)).value for row in asked.matrix]
    if not moves[1]:
        return build_rows(mechanism, resolved, graph, epsilon, (1, 1))
    # Half of ε for the total, half for the count, whatever the unit.
    return build_rows(mechanism, resolved, graph, epsilon, (moves[1], max(moves[0], 1)))


def candidates(resolved: Resolved, graph: Graph, epsilon: Fraction) -> list[Strategy]:
    """The best strategy of each applicable family, best first.

    Every named mechanism at its default options is among those compared, so the first is at least as good as each.
    """
    if isinstance(resolved.workload, Rows):
        found = [price(Direct(), resolved, graph, epsilon)]
        if resolved.query.word != "mean" and resolved.n_positions <= 2**12:
            found += _named((Identity(), Ordered()), resolved, graph, epsilon)
        return _ranked(found)
    found = _named((Identity(), Ordered()), resolved, graph, epsilon)
    size = resolved.n_positions
    in_order = resolved.axis is not None and resolved.axis.is_run and 2 < size <= MAX_TREE
    if in_order:
        search = Search(resolved, graph)
        reach = _reach(resolved, graph)
        blocks = {min(size - 1, max(2, b)) for b in (reach, reach // 2, reach * 2, reach * 4)}
        found.append(_best_tree(search, epsilon, {size}, lambda f, b: Hierarchical(f, "optimal")))
        if reach < size - 1:
            found.append(
                _best_tree(search, epsilon, blocks, lambda f, b: OrderedHierarchical(f, "optimal", b))
            )
    return _ranked(found)


def _named(
    mechanisms: Iterable[Mechanism], resolved: Resolved, graph: Graph, epsilon: Fraction
) -> list[Strategy]:
    found = []
    for mechanism in mechanisms:
        if isinstance(mechanism, Ordered) and resolved.n_positions == 1:
            continue
        found.append(price(mechanism, resolved, graph, epsilon))
    return found


def _best_tree(
    search: Search, epsilon: Fraction, blocks: Iterable[int], name: Callable[[int, int], Mechanism]
) -> Strategy:
    """Screen fan-outs and blocks with uniform levels, polish the best few, price them and keep the best."""
    screened = []
    for block in sorted(blocks):
        crossing = search.chain_move(Forest(search.resolved.n_positions, block, 2))
        heights: set[int] = set()
        for fanout in FANOUTS:
            forest = Forest(search.resolved.n_positions, block, fanout)
            if fanout > 3 and forest.height == 1 and 1 in heights:
                continue  # the same tree again: every piece is a cell
            heights.add(forest.height)
            split = Split(
                forest,
                sum(_levels("uniform", forest)) / max(crossing, 1) if crossing else 0.0,
                _levels("uniform", forest),
            )
            screened.append((search.error(split, crossing), fanout, block, split, crossing))
    screened.sort(key=lambda item: item[0])
    polished = []
    for _, fanout, block, split, crossing in screened[:4]:
        better = search.optimal(split, crossing)
        polished.append((search.error(better, crossing), fanout, block, better))
    _, fanout, block, split = min(polished, key=lambda item: item[0])
    return _built(search, name(fanout, block), split, epsilon)


def _ranked(found: list[Strategy]) -> list[Strategy]:
    return sorted(found, key=lambda s: s.expected_error)
