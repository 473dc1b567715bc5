"""The exact law of a channel's outputs, from the numbers that it is drawn from."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from oracle import grids

from tetraodon.channels.shift import Shift
from tetraodon.channels.table import Table
from tetraodon.channels.then import Relabelled, Then

DIGITS = Context(prec=80)


def row(channel: Any, cell: int) -> list[Fraction]:
    """P(output | cell), exactly."""
    return _row(channel.law, cell)


def _row(law: Any, cell: int) -> list[Fraction]:
    found = [Fraction(0)] * law.n_outputs
    if isinstance(law, Table):
        for z, p in zip(law.columns.tolist(), law.exact_row(int(law.row_of[cell])), strict=True):
            found[z] = p
    elif isinstance(law, Shift):
        inner = grids.clamped(law.exact())
        if cell >= len(inner):
            found[cell] = Fraction(1)
        else:
            found[: len(inner)] = inner[cell]
    elif isinstance(law, Relabelled):
        for z, p in zip(law.names.tolist(), _row(law.first, cell), strict=True):
            found[z] += p
    else:
        assert isinstance(law, Then)
        for between, p in enumerate(_row(law.first, cell)):
            if p:
                for z, q in enumerate(_row(law.second, between)):
                    found[z] += p * q
    assert sum(found) == 1
    return found


def cell_of(whole: Any, cell: int, part: Any) -> int:
    """The cell of some attributes that a cell of the whole domain has."""
    told = dict(zip(whole.names, whole.decode(cell), strict=True))
    return int(part.encode([told[n] for n in part.names]))


def worst(one: list[Fraction], two: list[Fraction]) -> Fraction | None:
    """The largest ratio of two probabilities of an output; None where only one of them is 0."""
    if any((p == 0) != (q == 0) for p, q in zip(one, two, strict=True)):
        return None
    return max(max(p, q) / min(p, q) for p, q in zip(one, two, strict=True) if p)


def times(ratio: Fraction | None, factor: Fraction | None, power: int = 1) -> Fraction | None:
    """The product, unbounded if either is."""
    return None if ratio is None or factor is None else ratio * factor**power


def as_loss(ratio: Fraction | None, claim: Fraction) -> Fraction | float:
    """ln ratio to eighty digits, on the side of the claim on which it exactly is."""
    if ratio is None:
        return math.inf
    told = Fraction(DIGITS.ln(DIGITS.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))))
    if ratio <= grids.power(claim):
        return min(told, claim)
    return max(told, claim + Fraction(1, 10**60))
