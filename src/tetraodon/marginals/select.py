"""Which tables carry noise, and how much: by exact expected error of the tables asked for, from public inputs only."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from ..errors import SpecificationError, Unsupported
from ..loss import Loss
from ..mechanisms import Mechanism
from ..mechanisms.variance import Floats
from ..sensitivity import Neighbourhood, stacked
from .asked import Asked
from .mechanism import Tables
from .residuals import Axes, cells, closure
from .strategy import MarginalStrategy, build, free_tables
from .weights import Problem, equal, optimal

MAX_TABLE = 2**20
MANY = 300
SLOW = 2**22

EVERY = (Tables(), Tables("asked", "equal"), Tables("lower"), Tables("joint"), Tables("any"))


def price(mechanism: Mechanism, asked: Asked, hood: Neighbourhood, loss: Loss) -> MarginalStrategy:
    """The strategy that a named mechanism means for some tables, a policy and a loss.

    Raises:
        SpecificationError: no mechanism for tables.
        Unsupported: a joint table of more than 2^20 cells, or more tables than can be compared.
    """
    if not isinstance(mechanism, Tables):
        name = next(iter(mechanism.to_spec()))
        raise SpecificationError(f"mechanism {name!r}: not for Marginals; use 'tables' or 'auto' here.")
    exact = free_tables(asked, hood)
    known = set(closure(exact))
    measured = tuple(t for t in _measured(mechanism, asked, hood) if t not in known)
    if known.issuperset(asked.tables):
        return build(mechanism, asked, hood, loss, (), (), exact)
    power = loss.power
    told = {t: stacked([asked.term(t)], hood, power).by_secret for t in measured}
    measured = tuple(t for t in measured if told[t])  # one that nothing moves says nothing new
    tried = []
    for moves in _moves([told[t] for t in measured], asked.is_filtered and hood.is_plain and hood.is_single):
        problem = Problem(asked.shape, measured, asked.tables, exact, moves, power)
        weights = [equal(problem)] if mechanism.budget == "equal" else [equal(problem), optimal(problem)]
        tried += [tuple(w.tolist()) for w in weights]
    # The exact price decides: what the search goes by is a bound where a filter takes records in and out.
    built = [build(mechanism, asked, hood, loss, measured, w, exact) for w in dict.fromkeys(tried)]
    return min(built, key=lambda s: s.expected_error)


def candidates(asked: Asked, hood: Neighbourhood, loss: Loss) -> list[MarginalStrategy]:
    """Every applicable choice of tables and budgets, best first; choices that come to the same are listed once."""
    found: list[MarginalStrategy] = []
    for mechanism in EVERY:
        try:
            strategy = price(mechanism, asked, hood, loss)
        except Unsupported:
            if mechanism == EVERY[0]:
                raise
            continue
        if all(set(s.parts) != set(strategy.parts) for s in found):
            found.append(strategy)
    return sorted(found, key=lambda s: s.expected_error)


def _measured(mechanism: Tables, asked: Asked, hood: Neighbourhood) -> tuple[Axes, ...]:
    """The tables that may carry noise."""
    every = tuple(sorted({i for t in asked.tables for i in t}))
    if mechanism.measured == "joint":
        if cells(asked.shape, every) > MAX_TABLE:
            raise Unsupported("mechanism 'tables': a joint table of more than 2^20 cells.")
        return (every,)
    if mechanism.measured == "asked":
        return asked.tables
    lower = tuple(t for t in closure(asked.tables) if t)
    found = lower if mechanism.measured == "lower" else _any_order(asked, every)
    if len(found) > MANY or _effort(asked, hood) * len(found) > SLOW:
        raise Unsupported("mechanism 'tables': too many tables to compare under this policy.")
    return found


def _any_order(asked: Asked, every: Axes) -> tuple[Axes, ...]:
    """All tables of up to 2^20 cells, order by order as far as there are not too many to compare."""
    found: list[Axes] = []
    for order in range(1, len(every) + 1):
        level = [t for t in itertools.combinations(every, order) if cells(asked.shape, t) <= MAX_TABLE]
        if len(found) + len(level) > MANY:
            break
        found += level
    listed, most = set(found), max(map(len, asked.tables))
    is_cut = len(found[-1]) < len(every) if found else True
    if not listed.issuperset(asked.tables) or (is_cut and len(found[-1]) <= most):
        raise Unsupported("mechanism 'tables': too many tables, or too large ones, of any order to compare.")
    return tuple(found)


def _effort(asked: Asked, hood: Neighbourhood) -> int:
    """Steps that pricing one table takes, where that is not a closed form."""
    small = hood.graph.project(asked.domain.names)
    if not hood.is_plain:
        return asked.domain.size
    return small.axes[0].n_edges if small.kind == "flat" else 1


def _moves(told: Sequence[Mapping[str, int | Fraction]], is_split: bool) -> list[Floats]:
    """Shape (kinds of edges, tables): how far each kind moves each table, in one or two readings.

    Along one attribute some edges may move a record within tables, and others in or out of all of them. The first reading
    adds the two up, the second tells them apart.
    """
    kinds = dict.fromkeys(k for by_secret in told for k in by_secret)
    moves = np.array([[float(Fraction(b.get(k, 0))) for b in told] for k in kinds])
    if not is_split:
        return [moves]
    within = np.where(moves > 1, moves, 0.0)
    apart = np.concatenate([within[within.any(axis=1)], np.minimum(moves[(moves == 1).any(axis=1)], 1.0)])
    return [moves, apart]
