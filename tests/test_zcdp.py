"""(ε, δ) of ρ against a dense search in exact decimals, against the noise itself, and against the paper's example."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon.errors import SpecificationError
from tetraodon.zcdp import along_path, analytic_delta, delta_of, epsilon_of, of_pure, rho_of, row_delta

RHO = st.fractions(Fraction(1, 10**6), 50, max_denominator=10**6)
EPSILON = st.fractions(0, 60, max_denominator=10**4)
EPSILONS = [k / 20 for k in range(1, 100)]
DELTA = st.sampled_from([Fraction(1, 10**k) for k in (1, 2, 5, 9, 15, 40)] + [Fraction(9, 10)])


def least_log_delta(rho: Fraction, epsilon: Fraction) -> float:
    """The least logarithm of Canonne, Kamath, Steinke's δ(α) on a dense grid."""
    rest = 10 ** np.linspace(-8, 10, 20_000)
    alpha = 1 + rest
    return float(
        (rest * (alpha * float(rho) - float(epsilon)) - np.log(rest) + alpha * np.log1p(-1 / alpha)).min()
    )


@given(RHO, EPSILON)
@settings(max_examples=40, deadline=None)
def test_delta_is_the_least_of_the_formula_from_above(rho: Fraction, epsilon: Fraction) -> None:
    found = delta_of(rho, epsilon)
    best = least_log_delta(rho, epsilon)
    if best < math.log(1e-300):
        assert found < 2e-300
    else:
        assert min(0.0, best) * 1.0001 - 1e-4 <= math.log(found) <= min(0.0, best) + 1e-6


@given(RHO, DELTA)
@settings(max_examples=40, deadline=None)
def test_epsilon_and_rho_invert_delta_on_the_safe_side(rho: Fraction, delta: Fraction) -> None:
    epsilon = Fraction(epsilon_of(rho, delta))
    assert delta_of(rho, epsilon) <= delta * (1 + Fraction(1, 10**9))
    if epsilon:
        assert delta_of(rho, epsilon * Fraction(999, 1000)) > delta
    back = rho_of(epsilon, delta)
    assert delta_of(back, epsilon) <= float(delta) * (1 + 1e-9)
    assert back >= rho * (1 - Fraction(1, 10**9)) or not epsilon
    assert delta_of(back * Fraction(1001, 1000), epsilon) > delta


@given(
    st.sampled_from(["0.25", "0.49", "1", "4", "25"]),
    st.integers(1, 4),
    st.fractions(0, 8, max_denominator=8),
)
@settings(max_examples=40, deadline=None)
def test_the_noise_that_is_drawn_is_never_worse(sigma_squared: str, shift: int, epsilon: Fraction) -> None:
    rho = Fraction(shift * shift) / (2 * Fraction(sigma_squared))
    assert row_delta(sigma_squared, shift, epsilon) <= delta_of(rho, epsilon)


def test_the_continuous_formula_understates_the_discrete_noise() -> None:
    """The counter-example: Δ = 1, σ = 0.5, ε = 5.37."""
    assert row_delta("0.25", 1, "5.37") == pytest.approx(0.050, abs=5e-4)
    assert analytic_delta(0.5, 1, 5.37) == pytest.approx(0.0214, abs=5e-5)
    rho = Fraction(1, 2) / Fraction(1, 4)
    assert delta_of(rho, "5.37") > 0.05
    worst = []
    for sigma in (0.7, 2.0, 5.0):
        told = [(row_delta(Fraction(sigma) ** 2, 1, e), analytic_delta(sigma, 1, e)) for e in EPSILONS]
        worst.append(max(true / claimed for true, claimed in told if claimed > 1e-6))
    assert worst == pytest.approx([2.05, 1.27, 1.06], rel=0.1)


def test_row_delta_by_hand() -> None:
    """σ² = 1, shift 2, ε = 0: the total variation of the law and its translate."""
    law = {x: math.exp(-x * x / 2) for x in range(-40, 41)}
    whole = sum(law.values())
    distance = sum(max(0.0, law[x] - law.get(x - 2, 0.0)) for x in law) / whole
    assert row_delta(1, 2, 0) == pytest.approx(distance, rel=1e-12)
    assert row_delta(1, -2, 0) == row_delta(1, 2, 0) and row_delta(1, 0, 0) == 0


def test_paths_and_pure_releases() -> None:
    assert along_path(Fraction(1, 10), 5) == Fraction(5, 2)
    assert of_pure(Fraction(1, 2)) == Fraction(1, 8)


def test_the_ends() -> None:
    assert delta_of(0, 0) == 0 and epsilon_of(0, "0.1") == 0
    assert delta_of(1000, 1) == 1.0
    assert 0 < delta_of("0.5", 1000) < 1e-300  # never rounded down to none
    assert rho_of(0, "1e-9") < rho_of("1e-3", "1e-9") and rho_of(0, "1e-300") >= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: delta_of(-1, 1), "rho: must be 0 or more"),
        (lambda: delta_of(1, float("nan")), "epsilon: must be finite"),
        (lambda: epsilon_of(1, 0), "delta: must be above 0"),
        (lambda: epsilon_of(1, 1), "delta: must be below 1"),
        (lambda: rho_of(1, "2"), "delta: must be below 1"),
        (lambda: row_delta(0, 1, 1), "sigma_squared: must be above 0"),
    ],
)
def test_wrong_numbers(call: object, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        call()  # type: ignore[operator]
