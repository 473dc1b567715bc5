"""Bounds between entropy and error: they hold, they invert each other, and the sharp ones are reached."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon import leakage
from tetraodon.errors import SpecificationError


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.05, 3), st.integers(0, 2**32 - 1))
def test_every_bound_holds(n: int, m: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    joint = leakage.normalised(rng.dirichlet(np.full(n * m, spread)).reshape(n, m) + 1e-300)
    error, entropy = leakage.bayes_error(joint), leakage.conditional_entropy(joint)
    found = leakage.error_bounds(joint)
    assert found.error == pytest.approx(error, abs=1e-15) and found.at_least <= error + 1e-12
    assert all(error <= upper + 1e-12 for upper in found.at_most.values())
    assert found.at_most["sharp"] <= min(found.at_most.values()) + 1e-12
    assert entropy <= leakage.fano_entropy(error, n) + 1e-9
    assert entropy >= leakage.hellman_raviv_entropy(error) - 1e-12
    assert entropy >= leakage.santhi_vardy_entropy(error) - 1e-12
    assert entropy >= leakage.sharp_entropy(error, n) - 1e-9


@pytest.mark.parametrize("n", [2, 3, 6, 50])
def test_the_two_directions_invert_each_other(n: int) -> None:
    for error in np.linspace(0, 1 - 1 / n, 23):
        assert leakage.fano_bound(leakage.fano_entropy(error, n), n) == pytest.approx(error, abs=1e-7)
        assert leakage.sharp_bound(leakage.sharp_entropy(error, n), n) == pytest.approx(error, abs=1e-12)
        assert leakage.hellman_raviv_bound(leakage.hellman_raviv_entropy(error)) == pytest.approx(error)
        assert leakage.santhi_vardy_bound(leakage.santhi_vardy_entropy(error)) == pytest.approx(error)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_fano_and_the_sharp_bound_are_reached(n: int) -> None:
    for error in np.linspace(0.01, 1 - 1 / n, 9):
        even = np.full((n, 1), error / (n - 1))
        even[0] = 1 - error
        assert leakage.fano_entropy(error, n) == pytest.approx(leakage.entropy(even))
        # Uniform over i secrets at one output, over i + 1 at the other: on the straight line between two corners.
        i = min(int(1 / (1 - error) + 1e-9), n - 1)
        share = min(1.0, max(0.0, (error - (1 - 1 / i)) * i * (i + 1)))
        joint = np.zeros((n, 2))
        joint[:i, 0], joint[: i + 1, 1] = (1 - share) / i, share / (i + 1)
        assert leakage.bayes_error(joint) == pytest.approx(error)
        assert leakage.conditional_entropy(joint) == pytest.approx(leakage.sharp_entropy(error, n))


def test_corners() -> None:
    for n in (1, 2, 4, 7):
        full = math.log2(n)
        assert leakage.fano_bound(0, n) == 0 and leakage.sharp_bound(0, n) == 0
        assert leakage.fano_bound(full, n) == pytest.approx(1 - 1 / n, abs=1e-7)
        assert leakage.sharp_bound(full, n) == pytest.approx(1 - 1 / n)
        assert leakage.santhi_vardy_bound(full) == pytest.approx(1 - 1 / n)  # exact for uniform posteriors
    assert leakage.hellman_raviv_bound(1) == 0.5 == pytest.approx(leakage.santhi_vardy_bound(1))
    assert leakage.hellman_raviv_bound(0.5) < leakage.santhi_vardy_bound(0.5)
    assert leakage.hellman_raviv_bound(1.5) > leakage.santhi_vardy_bound(1.5)
    assert leakage.santhi_vardy_entropy(1) == math.inf and leakage.santhi_vardy_bound(math.inf) == 1


@pytest.mark.parametrize("n", [2, 3, 6, 1000])
def test_fano_rounds_down(n: int) -> None:
    for entropy in np.linspace(0, math.log2(n), 40):
        assert leakage.fano_entropy(leakage.fano_bound(entropy, n), n) <= entropy


@pytest.mark.parametrize(
    "ask",
    [
        lambda: leakage.fano_bound(2.1, 4), lambda: leakage.fano_bound(-0.1, 4), lambda: leakage.fano_bound(math.nan, 4),
        lambda: leakage.fano_bound(1, 0), lambda: leakage.fano_bound(0, True), lambda: leakage.fano_bound(1, 2.0),
        lambda: leakage.fano_entropy(0.8, 4), lambda: leakage.fano_entropy(math.nan, 4),
        lambda: leakage.hellman_raviv_bound(-1), lambda: leakage.hellman_raviv_entropy(1.5),
        lambda: leakage.santhi_vardy_bound(math.nan), lambda: leakage.santhi_vardy_entropy(-0.5),
        lambda: leakage.sharp_bound(3, 4), lambda: leakage.sharp_entropy(0.9, 4),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(ask: Any) -> None:
    with pytest.raises(SpecificationError):
        ask()
