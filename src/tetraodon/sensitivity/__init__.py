"""How far answers, or the rows of a strategy, can move between neighbouring tables: the one place where privacy is priced.

``stack`` prices rows along the edges of a secret graph, ``persons`` what a person with several records, weights or a secret
presence adds, ``rule_r`` known counts; ``claims`` lists every rule used here with the test that checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..errors import PolicyError
from ..workload import AllRanges, Cells, Prefixes, Resolved, SomeRanges
from . import rows
from .neighbours import Neighbourhood
from .persons import NOTHING, PRESENCE, counted, with_gone
from .ratios import INFINITE, Ratios
from .rows import Layer
from .rule_r import known_counts
from .stack import EDGES, Move, Term, along_edges, check_size

__all__ = [
    "EDGES",
    "Move",
    "Neighbourhood",
    "Sensitivity",
    "Term",
    "describe",
    "largest_move",
    "query_layers",
    "stacked",
]


@dataclass(frozen=True)
class Sensitivity:
    """The exact sensitivity of a query or strategy under a policy, or a proved bound of it.

    Attributes:
        value: largest L1 move of the rows, exact, in the answers' own unit (for the L2 norm its square; in ε or ρ for a
            strategy's cost).
        witness: two values of one record, attribute by attribute, whose exchange attains it (of which one may be that there
            is none); None if nothing moves, or if several records have to move together.
        rule: which rule gave it.
    """

    value: Fraction
    witness: tuple[dict[str, str], dict[str, str]] | None
    rule: str


def query_layers(resolved: Resolved, power: int = 1) -> tuple[Layer, ...]:
    """The rows of the query itself along its axis, in units of 1/denominator of the answer's unit (of its square, for power 2)."""
    size, asked = resolved.n_positions, resolved.workload
    if isinstance(asked, Cells):
        return (rows.Blocks(size),)
    if isinstance(asked, Prefixes):
        return (rows.Prefixes(size),)
    if isinstance(asked, AllRanges):
        return (rows.Ranges(size),)
    if isinstance(asked, SomeRanges):
        return (rows.Ranges(size, asked.lows, asked.highs),)
    if resolved.query.word == "mean":  # a sum in units of 1/denominator, then a plain count
        return rows.Matrix(asked.matrix[:1]), rows.Matrix(asked.matrix[1:], asked.denominator**power)
    return (rows.Matrix(asked.matrix),)


def stacked(terms: Sequence[Term], hood: Neighbourhood, power: int = 1) -> Move:
    """The joint loss of several releases between neighbouring tables: exact, or a proved bound.

    power 1: max over neighbours of Σ_terms factor·Σ_layers weight·Σ_rows |Δ| (pure ε). power 2: the same with Δ² (the bound of
    a squared norm, for Gaussian noise).

    Args:
        terms: what each release observes.
        hood: what neighbouring tables are.

    Raises:
        PolicyError: known counts for which no useful bound is known (names those to drop), or an output of a channel that tells
            two secrets apart for certain, or with a loss of more than 65,536 times what was asked.
        Unsupported: too many cells or edges, or rows too large for exact arithmetic.
    """
    told = [t.squared() for t in terms] if power == 2 else list(terms)
    check_size(told)
    if not told:
        return Move(0, None)
    found = _moved(told, hood, power)
    for term in told:
        if isinstance(term.joint, Ratios):
            alone = found if len(told) == 1 else _moved([term], hood, power)
            if alone.value >= INFINITE * term.factor:
                raise PolicyError(
                    "rows: some output would tell values apart for certain that this policy holds secret; no budget covers that."
                )
    return found


def _moved(terms: Sequence[Term], hood: Neighbourhood, power: int) -> Move:
    terms = counted(terms, hood, power)
    if not terms:
        return Move(0, None)
    if not hood.is_plain:
        return known_counts(terms, hood, power)
    return with_gone(along_edges(terms, hood.graph), terms, hood)


def largest_move(resolved: Resolved, hood: Neighbourhood, layers: tuple[Layer, ...], power: int = 1) -> Move:
    """``stacked`` for one release: rows along a query's axis, repeated for every group.

    Args:
        hood: over any domain that holds the query's attributes.
    """
    return stacked([Term(resolved, layers)], hood, power)


def describe(move: Move, denominator: Fraction | int = 1) -> Sensitivity:
    """A move with its witness in words."""
    witness = None
    if move.cells is not None and move.domain is not None:
        a, b = (
            {PRESENCE: "not in the table"}
            if cell == NOTHING
            else dict(zip(move.domain.names, move.domain.labels(cell), strict=True))
            for cell in move.cells
        )
        witness = (a, b)
    return Sensitivity(Fraction(move.value) / denominator, witness, move.rule)
