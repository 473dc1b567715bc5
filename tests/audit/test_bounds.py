"""Bounds from draws, against exact probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from strategies import examples

from tetraodon.auditing import bounds
from tetraodon.auditing.events import learned
from tetraodon.zcdp import delta_of


@pytest.mark.parametrize("n", [20, 57])
@pytest.mark.parametrize("p", [0.0, 0.03, 0.4, 0.97, 1.0])
def test_a_bound_of_a_probability_is_wrong_no_more_often_than_allowed(n: int, p: float) -> None:
    """Summed over every outcome of n draws, exactly."""
    k = np.arange(n + 1)
    chance = binom.pmf(k, n, p)
    for error in (0.2, 0.01):
        assert chance[bounds.lower(k, n, error) > p].sum() <= error + 1e-12
        assert chance[bounds.upper(k, n, error) < p].sum() <= error + 1e-12


def test_a_loss_is_overstated_no_more_often_than_allowed() -> None:
    """Two coins whose log-ratio is the claim: every pair of outcomes, exactly."""
    n, p, loss, error = 40, 0.6, 0.9, 0.1
    k = np.arange(n + 1)
    one, two = binom.pmf(k, n, p), binom.pmf(k, n, p * math.exp(-loss))
    told = bounds.bound("epsilon", k[:, None], k[None, :], n, error)
    assert (np.outer(one, two)[told > loss]).sum() <= error
    assert told.max() > loss  # so that the test could fail


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
@examples(200)
def test_two_coins_lose_what_their_divergences_say(p: float, q: float) -> None:
    epsilon, rho = (float(bounds.of_coins(unit, p, q)) for unit in ("epsilon", "rho"))
    if p <= q:
        assert epsilon == rho == 0
        return
    assert epsilon == pytest.approx(math.log(p / q))
    for alpha in (1.02, 1.5, 2.0, 7.0, 50.0):
        divergence = math.log(p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)) / (
            alpha - 1
        )
        assert rho >= divergence / alpha * (1 - 0.05) - 1e-9
    # A coin that is ε-private along both sides is ε²/2-concentrated (Bun, Steinke 2016).
    both = max(math.log(p / q), math.log((1 - q) / (1 - p)))
    assert rho <= both**2 / 2 + 1e-9


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.01, 3.0))
@examples(150)
def test_whatever_breaks_the_curve_of_rho_breaks_the_divergence(p: float, q: float, rho: float) -> None:
    """Holding an event against (ε, δ(ε)), for many ε, never shows more than the bound that is used."""
    curve = any(p > math.exp(e) * q + delta_of(rho, e) + 1e-9 for e in (0.0, 0.3, 1.0, 2.0, 4.0))
    if curve:
        assert float(bounds.of_coins("rho", p, q)) > rho * 0.95


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_a_loss_at_the_resolution_is_seen(unit: str) -> None:
    """Exact chance, over the outcomes of both coins, that the bound exceeds the claim."""
    n, p, claim, error = 4000, 0.4, 0.5, 1e-6
    sharp = bounds.resolution(unit, claim, p, n, error)  # type: ignore[arg-type]
    assert sharp is not None
    q = bounds.least_likely(unit, p, sharp)  # type: ignore[arg-type]
    k = np.arange(n + 1)
    one, two = binom.pmf(k, n, p), binom.pmf(k, n, q)
    keep = np.flatnonzero(one > 1e-9), np.flatnonzero(two > 1e-9)
    told = bounds.bound(unit, keep[0][:, None], keep[1][None, :], n, error)  # type: ignore[arg-type]
    seen = np.outer(one[keep[0]], two[keep[1]])[told > claim].sum()
    assert seen >= bounds.SEEN - 1e-6
    worse = bounds.least_likely(unit, p, claim + (sharp - claim) / 3)  # type: ignore[arg-type]
    less = np.outer(one[keep[0]], binom.pmf(keep[1], n, worse))[told > claim].sum()
    assert less < 0.5


def test_few_draws_of_an_unlikely_event_have_no_resolution() -> None:
    assert bounds.resolution("epsilon", 1.0, 1e-4, 500, 1e-9) is None
    assert bounds.resolution("epsilon", 1.0, 0.0, 500, 1e-9) is None


# ---------- events ----------


def _seen(first: np.ndarray, second: np.ndarray, unit: str = "epsilon") -> tuple[float, str]:
    half = len(first) // 2
    event = learned(unit, first[:half], second[:half])  # type: ignore[arg-type]
    hits, others = (int(event.happens(part[half:]).sum()) for part in (first, second))
    if event.is_of_second:
        hits, others = others, hits
    return float(bounds.bound(unit, hits, others, len(first) - half, 1e-9)), event.words  # type: ignore[arg-type]


def test_the_same_law_shows_nothing() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, two = (rng.integers(0, 50, (4000, 4)).astype(float) for _ in range(2))
        assert _seen(one, two)[0] == 0


def test_every_kind_of_difference_is_found() -> None:
    rng = np.random.default_rng(1)
    n = 8000
    noise = rng.integers(-20, 21, (n, 3)).astype(float)
    bits, shared = 2 * noise, noise[:, :1] + np.zeros((n, 3))
    one = np.array([1.0, 0.0, 0.0])
    assert _seen(bits, bits + one)[0] > 5
    assert _seen(shared, shared + one)[0] > 5  # one word for all: the difference tells
    certain = np.where(rng.random((n, 1)) < 0.05, 99.0, noise[:, :1])  # an output that only one of them has
    assert _seen(certain, noise[:, :1])[0] > 1.5
    assert _seen(noise[:, :1], certain)[0] > 1.5


def test_the_best_event_of_laplace_noise_is_nearly_found() -> None:
    rng = np.random.default_rng(2)
    n, scale = 60_000, 2.0
    one, two = (np.rint(rng.laplace(0, scale, (n, 2))) + shift for shift in (0, 1))
    found, _ = _seen(one, two)
    assert 0.7 < found < 1.02  # true loss 1 in an event of probability about 0.3


def test_an_event_is_a_set_of_outputs_and_nothing_else() -> None:
    rng = np.random.default_rng(3)
    one, two = (rng.integers(0, 9, (2000, 2)).astype(float) + shift for shift in (0, 1))
    event = learned("epsilon", one, two)
    outputs = rng.integers(0, 10, (300, 2)).astype(float)
    order = rng.permutation(300)
    assert (event.happens(outputs)[order] == event.happens(outputs[order])).all()
