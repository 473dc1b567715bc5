"""C04, C05 under known counts: large rows are priced like small ones, never wrapped, and never dearer than their scales say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tetraodon as td
from tetraodon.charges import cost_of
from tetraodon.loss import Loss
from tetraodon.pricing import price

HALVES = [td.CountConstraint({"x": (2 * i, 2 * i + 1)}) for i in range(3)]  # four classes of two values
CHAIN = [td.CountConstraint({"x": (i, i + 1)}) for i in range(5)]  # one free direction, three records at once


@pytest.mark.parametrize(("size", "known"), [(8, HALVES), (6, CHAIN)])
@pytest.mark.parametrize("bits", [20, 27, 28, 28.5, 29, 29.3, 29.49])
def test_c05_squared_moves_of_several_records_do_not_wrap(
    size: int, known: list[td.CountConstraint], bits: float
) -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, size - 1)), td.Full(), known)
    entry = int(2**bits)
    found = policy.sensitivity(td.Linear([[entry, -entry] * (size // 2)], "x"), norm="l2").value
    assert found == (size * entry) ** 2  # every value is left or entered once


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_prices_under_known_counts_grow_with_the_rows(norm: str) -> None:
    rng = np.random.default_rng(5)
    for known in (HALVES, CHAIN, HALVES[:1], CHAIN[:3]):
        policy = td.Policy(td.Domain(x=td.Integer(0, 7 if known[0] is HALVES[0] else 5)), td.Within(1), known)
        for _ in range(4):
            rows = rng.integers(-3, 4, (2, policy.domain.size))
            small, large = (
                policy.sensitivity(td.Linear((rows * c).tolist(), "x"), norm=norm).value for c in (1, 2**26)
            )
            assert abs(large / 2 ** (26 * (1 if norm == "l1" else 2)) - small) <= small / 10**9


def test_a_strategy_under_known_counts_costs_no_more_than_its_scales_say() -> None:
    """The rows at the loss that was asked for are priced by the very numbers that set the scales."""
    domain = td.Domain(a=td.Integer(0, 2), b=td.Integer(0, 1))
    policy = td.Policy(domain, td.AttributeWise(), [td.CountConstraint({"b": [1]})])
    query = td.Linear([[1, 1, 1], [2, 1, 1]], "a")
    for k in range(1, 12):
        strategy = price(td.mechanisms.Direct(), query, policy, Loss("rho", Fraction(1, k)))
        assert cost_of(strategy, policy)["by"] == {"any": str(Fraction(1, k))}
