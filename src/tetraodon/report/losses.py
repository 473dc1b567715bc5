"""Amounts of privacy loss on the page: ε, and ρ with what it comes to at a declared δ.

ρ is never put as a factor of odds: it bounds none. At a δ it reads as (ε, δ) (``zcdp.epsilon_of``), rounded up here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from ..exact import show
from ..loss import Loss, Unit
from ..plans import number
from ..zcdp import epsilon_of, of_pure
from .document import Budget, Document, Entry, Microdata, RowRelease
from .words import equal

SHORT = 12
SYMBOLS: dict[Unit, str] = {"epsilon": "ε", "rho": "ρ"}


def symbol(unit: Unit) -> str:
    """ε or ρ."""
    return SYMBOLS[unit]


def symbols(entries: Iterable[Entry | RowRelease | Microdata]) -> list[str]:
    """The units that releases were charged in, in their order; what has no proved loss has none."""
    charged = (e for e in entries if not (isinstance(e, RowRelease | Microdata) and e.is_measured))
    return list(dict.fromkeys(symbol(entry.loss.unit) for entry in charged))


def entering(loss: Loss, unit: Unit) -> Fraction:
    """What a release counts for in an account: a pure ε counts as ρ = ε²/2.

    >>> entering(Loss("epsilon", Fraction(1, 2)), "rho")
    Fraction(1, 8)
    """
    return of_pure(loss.amount) if loss.unit == "epsilon" and unit == "rho" else loss.amount


def up(value: float) -> str:
    """A positive number rounded up to three digits, for bounds.

    >>> up(2.1419), up(0.25), up(12341.0)
    ('2.15', '0.25', '12,400')
    """
    if not value or not math.isfinite(value):
        return number(value)
    step = 10.0 ** (2 - math.floor(math.log10(value)))
    return number(math.ceil(value * step) / step)


def most(amount: Fraction) -> str:
    """A loss as it is, or rounded up where that is too long to read.

    >>> most(Fraction(1, 8)), most(Fraction(10**20, 3 * 10**20 + 1))
    ('0.125', '≈ 0.334')
    """
    return _short(amount, math.ceil)


def least(amount: Fraction) -> str:
    """What is left as it is, or rounded down where that is too long to read.

    >>> least(Fraction(10**20, 3 * 10**20 + 1)), least(Fraction(0))
    ('≈ 0.333', '0')
    """
    return _short(amount, math.floor)


def _short(amount: Fraction, way: Callable[[Fraction], int]) -> str:
    told = show(amount)
    if len(told) <= SHORT:
        return told
    step = Fraction(10) ** (2 - math.floor(math.log10(amount)))
    return f"≈ {show(way(amount * step) / step)}"


def chance(delta: Fraction) -> str:
    """A δ, in HTML.

    >>> chance(Fraction(1, 10**6)), chance(Fraction(1, 48842)), chance(Fraction(1, 20))
    ('10<sup>−6</sup>', '1/48842', '0.05')
    """
    power = round(-math.log10(delta))
    if power > 2 and delta * 10**power == 1:
        return f"10<sup>−{power}</sup>"
    return show(delta)


def reading(rho: Fraction, delta: Fraction) -> str:
    """What ρ comes to at δ, in HTML.

    >>> reading(Fraction(1, 10), Fraction(1, 10**6))
    'ε = 2.15 at δ = 10<sup>−6</sup>'
    """
    return f"ε = {up(epsilon_of(rho, delta))} at δ = {chance(delta)}"


def power(epsilon: Fraction) -> str:
    """e^ε with its value, in HTML.

    >>> power(Fraction(1)), power(Fraction(50))
    ('2.72 (e<sup>1</sup>)', '10<sup>22</sup> (e<sup>50</sup>)')
    """
    return f"{_factor(float(epsilon))} (e<sup>{most(epsilon)}</sup>)"


def times(rho: Fraction, delta: Fraction) -> str:
    """e^ε for the ε that ρ comes to at δ, rounded up, in HTML.

    >>> times(Fraction(1, 10), Fraction(1, 10**6))
    '8.52'
    """
    epsilon = epsilon_of(rho, delta)
    return up(math.exp(epsilon)) if epsilon <= 20 else f"10<sup>{math.ceil(epsilon / math.log(10))}</sup>"


def _factor(epsilon: float) -> str:
    return number(math.exp(epsilon)) if epsilon <= 20 else f"10<sup>{epsilon / math.log(10):.0f}</sup>"


def cost(entry: Entry | RowRelease, budget: Budget) -> str:
    """The exact cost of a release, and what it means in the account, in HTML."""
    loss = entry.loss
    told = f"{equal(symbol(loss.unit), loss.amount)}, <b>{entry.guarantee}</b>"
    if loss.is_zero or budget.delta is None:
        return told
    if loss.unit == "rho":
        return f"{told}; alone it reads as {reading(loss.amount, budget.delta)}"
    if isinstance(entry, RowRelease):
        return f"{told}; this account counts it as {equal('ρ = ε²/2', entering(loss, budget.unit))}"
    return f"{told}; Laplace noise, which this account counts as {equal('ρ = ε²/2', entering(loss, budget.unit))}"


def who_changes(document: Document) -> str:
    """Between which tables the loss is bounded."""
    if document.is_tied:
        return "between any two tables that agree with the public counts and differ as little as these allow"
    return "along every edge of the policy"
