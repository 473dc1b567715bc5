"""Which mechanism, fan-out and budget: by exact expected error for the stated workload, from public inputs only.

Shapes are screened and their budgets improved in a floating-point model (``search``), then rounded to integer weights; the
price and the error that are reported are those of the rounded weights, exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction

import numpy as np

from ..errors import SpecificationError, Unsupported
from ..loss import Loss
from ..sensitivity import Neighbourhood, rows
from ..workload import Resolved, Rows, SomeRanges
from . import (
    Direct,
    Hierarchical,
    Identity,
    Kronecker,
    Levels,
    Mechanism,
    Optimised,
    Ordered,
    OrderedHierarchical,
    kron_strategy,
)
from .build import build, build_rows
from .forest import Forest
from .optimal import applies, longest, optimised
from .search import Search, Shape
from .strategy import Strategy
from .variance import Floats

FANOUTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64)
KINDS: tuple[Levels, ...] = ("optimal", "uniform", "geometric")
MAX_TREE = 2**23
MAX_ROWS = 2**12
SHARES = 10**6
SMALL, MEDIUM = 64, 2**16
FEW = 512
PLAIN = (2, 3, 4, 8, 16, 32)
KEPT, SLOW_KEPT = (16, 6, 3), (6, 3, 2)


def price(mechanism: Mechanism, resolved: Resolved, hood: Neighbourhood, loss: Loss) -> Strategy:
    """The strategy that a named mechanism means for a query, a policy and a loss.

    Raises:
        SpecificationError: the mechanism does not apply to this query.
    """
    return _priced(mechanism, Search(resolved, hood, loss))


def _priced(mechanism: Mechanism, search: Search) -> Strategy:
    resolved, size = search.resolved, search.resolved.n_positions
    where = f"mechanism {next(iter(mechanism.to_spec()))!r}"
    if isinstance(mechanism, Direct):
        if not isinstance(resolved.workload, Rows):
            raise SpecificationError(f"{where}: for Sum, Mean and Linear; use 'identity' or 'auto' here.")
        return _direct(mechanism, search)
    if resolved.query.word == "mean":
        raise SpecificationError(f"{where}: a Mean is released through its total; use 'direct' or 'auto'.")
    if isinstance(mechanism, Optimised):
        return optimised(search, _families(search) if search.power == 1 else [])
    if isinstance(mechanism, Kronecker):
        return kron_strategy.joined(search)
    if isinstance(mechanism, Identity):
        forest = Forest(size, size, max(size, 2))
        return _built(mechanism, search, forest, 0 if size > 1 else 1, (1,) * forest.height)
    if size == 1:
        raise SpecificationError(
            f"{where}: needs an axis of at least two cells; use 'identity' or 'auto' here."
        )
    if isinstance(mechanism, Ordered):
        return _built(mechanism, search, Forest(size, 1, 2), 1, ())
    if not isinstance(mechanism, Hierarchical | OrderedHierarchical):
        raise SpecificationError(f"{where}: not for this query; use 'auto' here.")
    if size > MAX_TREE:
        raise Unsupported(f"{where}: trees are offered up to 2^23 cells.")
    shape, share = search.shape(size, mechanism.fanout), None
    if isinstance(mechanism, OrderedHierarchical):
        block = search.reach if mechanism.block is None else mechanism.block
        shape, share = search.shape(min(block, size), mechanism.fanout), mechanism.split
    if share is not None and shape.active[0] and shape.active[1:].any():
        return _at_share(mechanism, shape, share)
    return _at_best(mechanism, shape)


def _at_best(mechanism: Hierarchical | OrderedHierarchical, shape: Shape) -> Strategy:
    """The budget that ``levels`` means. Where pieces of unequal depth cost less than the model takes them for, or the model
    ranks by something smoother than the stated error, "optimal" is the best of all three by exact error."""
    first = _with_budget(mechanism, shape, mechanism.levels)
    is_modelled = _slack(first, shape) == 1 and not shape.search.by_answer
    if mechanism.levels != "optimal" or is_modelled or shape.forest.size > MEDIUM:
        return first
    tried = [first, *(_with_budget(mechanism, shape, kind) for kind in KINDS[1:])]
    return min(tried, key=lambda s: s.expected_error)


def _with_budget(mechanism: Mechanism, shape: Shape, levels: Levels) -> Strategy:
    return _built(mechanism, shape.search, shape.forest, *shape.weights(shape.chosen(levels)))


def _slack(strategy: Strategy, shape: Shape) -> Fraction:
    """The exact cost as a share of what the model takes it for."""
    paid = sum(Fraction(m) * p.weight for m, p in zip(shape.moves.tolist(), strategy.parts, strict=True))
    return Fraction(strategy.move.value) / paid if paid else Fraction(1)


def _built(
    mechanism: Mechanism, search: Search, forest: Forest, chain: int, levels: tuple[int, ...]
) -> Strategy:
    return build(mechanism, search.resolved, search.hood, search.loss, forest, chain, levels, search.free)


def _at_share(mechanism: OrderedHierarchical | Hierarchical, shape: Shape, share: Fraction) -> Strategy:
    """The stated share, to within 1/SHARES²: crossing·w_chain : Σ move·w_level = share : 1 − share."""
    share = share.limit_denominator(SHARES)
    if not 0 < share < 1:
        raise SpecificationError(f"OrderedHierarchical.split: from 1/{SHARES} to 1 − 1/{SHARES}.")
    kind = mechanism.levels
    budget = shape.budget("uniform" if kind == "optimal" else kind)
    budget = np.append(float(share), float(1 - share) * budget[1:] / budget[1:].sum())
    if kind == "optimal":
        budget = shape.optimal(budget, chain=float(share))
    inside = shape.weights(np.append(0.0, budget[1:]))[1]
    tree = sum(w * math.ceil(m) for w, m in zip(inside, shape.moves[1:], strict=True))
    chain, rest = share.numerator * tree, (share.denominator - share.numerator) * math.ceil(shape.crossing)
    common = math.gcd(chain, *(w * rest for w in inside))
    levels = tuple(w * rest // common for w in inside)
    return _built(mechanism, shape.search, shape.forest, chain // common, levels)


def _direct(mechanism: Direct, search: Search) -> Strategy:
    resolved, hood, loss = search.resolved, search.hood, search.loss
    if resolved.query.word != "mean":
        return build_rows(mechanism, resolved, hood, loss, (1,))
    if resolved.axis is not None and not resolved.axis.n_ordinary:
        raise SpecificationError(f"mean: the filter on {resolved.axis.name} leaves no number to average.")
    asked = resolved.workload
    assert isinstance(asked, Rows)
    moves = [search.move(rows.Matrix(row[None, :])) for row in asked.matrix]
    if not moves[1]:
        return build_rows(mechanism, resolved, hood, loss, (1, 1))
    # Half of the loss for the total, half for the count, whatever the unit.
    return build_rows(mechanism, resolved, hood, loss, (math.ceil(moves[1]), max(math.ceil(moves[0]), 1)))


def candidates(resolved: Resolved, hood: Neighbourhood, loss: Loss) -> list[Strategy]:
    """The best strategy of each applicable family, best first.

    Along an ordered axis, trees of many fan-outs and blocks are compared, the named mechanisms at their default block
    among them.
    """
    search = Search(resolved, hood, loss)
    found = _families(search)
    if applies(search):
        found.append(optimised(search))
    if kron_strategy.applies(search):
        least = min(s.expected_error for s in found)
        found += [s for s in _joined(search) if s.expected_error < kron_strategy.WORTH * least]
    best: dict[type, Strategy] = {}
    for s in found:
        held = best.setdefault(type(s.mechanism), s)
        if s.expected_error < held.expected_error:
            best[type(s.mechanism)] = s
    return sorted(best.values(), key=lambda s: s.expected_error)


def _joined(search: Search) -> list[Strategy]:
    """Products over several attributes, where they apply. They are compared only where they gain more than a little: rows
    of groups are simpler to read."""
    with suppress(SpecificationError):
        return [kron_strategy.joined(search)]
    return []


def notes(resolved: Resolved, hood: Neighbourhood, loss: Loss) -> tuple[str, ...]:
    """What ``candidates`` does not try, in words."""
    search = Search(resolved, hood, loss)
    return (*_rows_notes(search), *kron_strategy.notes(search))


def _rows_notes(search: Search) -> tuple[str, ...]:
    """About rows repeated in every group."""
    resolved, hood, size = search.resolved, search.hood, search.resolved.n_positions
    if size <= 2 or isinstance(resolved.workload, Rows) or not hood.is_plain or search.free.all():
        return ()
    if size > longest(search):
        return (
            f"optimised rows are offered up to {longest(search):,} cells along the axis, not {size:,}: "
            f"this plan compares named mechanisms{' and products' if kron_strategy.applies(search) else ''}.",
        )
    return () if applies(search) else ('mechanism "optimised" takes some seconds and may do better.',)


def _families(search: Search) -> list[Strategy]:
    """Strategies of the applicable named families."""
    resolved = search.resolved
    size, own = resolved.n_positions, isinstance(resolved.workload, Rows)
    found: list[Strategy] = [_priced(Direct(), search)] if own else []
    if resolved.query.word == "mean" or (own and size > MAX_ROWS):
        return found
    found.append(_priced(Identity(), search))
    if size > 1:
        found.append(_priced(Ordered(), search))
    in_order = resolved.axis is not None and resolved.axis.is_run
    if in_order and 1 < size <= MAX_TREE:
        found.append(_best_tree(search, [size]))
        reach = search.reach
        if 1 < reach < size:
            factors = (1, 4, 8) if not search.by_answer else (1,)
            others = {min(size - 1, max(2, reach * k // 2)) for k in factors}
            found.append(_best_tree(search, [reach, *sorted(others - {reach})]))
        elif reach == 1 and size > 2:
            found.append(_best_tree(search, sorted({2, min(4, size - 1)})))
        if size <= FEW and (isinstance(resolved.workload, SomeRanges) or resolved.query.word == "quantiles"):
            found += _plainly_named(search)
    return found


def _plainly_named(search: Search) -> Iterator[Strategy]:
    """Trees at their default blocks, priced one by one: budgets for stated answers have many local optima, and the search
    may settle above what a plain budget reaches."""
    for fanout, levels in itertools.product(PLAIN, KINDS):
        yield _priced(Hierarchical(fanout, levels), search)
        if 1 < search.reach < search.resolved.n_positions:
            yield _priced(OrderedHierarchical(fanout, levels), search)


def _best_tree(search: Search, blocks: list[int]) -> Strategy:
    """Screen all shapes, improve the budgets of fewer and fewer of them, price the last few exactly, keep the best.

    Args:
        blocks: the default one first.
    """
    size = search.resolved.n_positions
    counts = KEPT
    if search.by_answer or size > MEDIUM:
        counts = SLOW_KEPT if size > FEW else KEPT
    shapes = list(_shapes(search, blocks))
    kept = [(_score(shape, b), shape, b) for shape in shapes for b in shape.starts[:1]]
    for count, rounds, starts in zip(counts[:2], (2, 4), (1, 2), strict=True):
        improved = []
        for _, shape, budget in _least(kept, count):
            tried = [shape.optimal(b, rounds) for b in (budget, *shape.starts[1:starts])]
            better = min(tried, key=shape.error)
            improved.append((_score(shape, better), shape, better))
        kept = improved
    last = [shape for _, shape, _ in _least(kept, counts[2] if size <= MEDIUM else 1)]
    if search.by_answer and size <= SMALL:
        # Deep trees have too many budgets for stated answers to be screened by a few.
        last += [s for s in shapes if s.forest.block == blocks[0] and s.is_deep and s not in last]
    return min((_named(shape) for shape in last), key=lambda s: s.expected_error)


def _least(kept: list[tuple[float, Shape, Floats]], count: int) -> list[tuple[float, Shape, Floats]]:
    return sorted(kept, key=lambda item: item[0])[:count]


def _score(shape: Shape, budget: Floats) -> float:
    """The model's error, corrected on short axes for a cost below that of the parts."""
    error = shape.error(budget)
    if shape.forest.size > SMALL:
        return error
    built = _built(Hierarchical(2), shape.search, shape.forest, *shape.weights(budget))
    return error * float(_slack(built, shape)) ** 2


def _named(shape: Shape) -> Strategy:
    """The strategy of a shape, by the name under which it can be asked for again."""
    forest = shape.forest
    if forest.block < forest.size:
        return _at_best(OrderedHierarchical(forest.fanout, "optimal", forest.block), shape)
    return _at_best(Hierarchical(forest.fanout, "optimal"), shape)


def _shapes(search: Search, blocks: Iterable[int]) -> Iterator[Shape]:
    """Every block with every fan-out that cuts it differently."""
    size = search.resolved.n_positions
    for block in blocks:
        seen = set()
        for fanout in FANOUTS:
            cuts = _cuts(size, block, fanout)
            if cuts not in seen:
                seen.add(cuts)
                yield search.shape(block, fanout)


def _cuts(size: int, block: int, fanout: int) -> frozenset[tuple[int, int]]:
    """(width, width of its pieces) of every piece that is cut."""
    found: set[tuple[int, int]] = set()
    waiting = {block, size - block * ((size - 1) // block)}
    while waiting:
        width = waiting.pop()
        step = -(-width // fanout)
        if width > 1 and (width, step) not in found:
            found.add((width, step))
            waiting |= {step, width - step * ((width - 1) // step)}
    return frozenset(found)
