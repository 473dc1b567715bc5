"""Gaussian noise: certified floors and acceptances against 100-digit decimals, the drawn law, its facts, the pool."""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.bits import NeedsMore, dec, given_bits, never, words_of

from tetraodon import _gaussian, _laws, noise
from tetraodon._gaussian import STEEPEST, Coarse, accepted, coarse
from tetraodon._tables import search, settle
from tetraodon.errors import Refused, SpecificationError
from tetraodon.noise import (
    Reserve,
    discrete_gaussian,
    discrete_gaussian_quantile,
    discrete_gaussian_variance,
    reserve,
)

F = Fraction
TABLED = [F(1, 2000), F(1, 10), F(1, 3), F(1), F(17, 3), F(100), F(2500)]  # nothing is rejected
COARSE = [F(2892), F(10_000), F(1_000_003, 7), F(10**6), F(10**20, 3), F(2**100)]
WHOLE = 2**64


@pytest.fixture(autouse=True)
def _hundred_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 100
        yield


def weight(law: Coarse, k: int) -> Decimal:
    """The weight of a digit, straight from its definition."""
    start = k * law.unit if k >= 0 else (-1 - k) * law.unit + 1
    return (-dec(F(start * start) / (2 * law.sigma2))).exp()


@lru_cache(maxsize=16)
def cumulated(law: Coarse) -> tuple[int, list[Decimal]]:
    """The least digit in a range outside which weights are below 10^-60, and P(digit <= k) from it on."""
    with localcontext() as context:
        context.prec = 100
        reach = math.isqrt(math.ceil(280 * law.sigma2)) // law.unit + 3
        total, sums = Decimal(0), []
        for k in range(-reach, reach + 1):
            total += weight(law, k)
            sums.append(total)
        return -reach, [s / total for s in sums]


def true_cdf(law: Coarse, k: int) -> Decimal:
    first, sums = cumulated(law)
    return sums[min(k - first, len(sums) - 1)] if k >= first else Decimal(0)


def chance(law: Coarse, digit: int, rest: int) -> Decimal:
    """The probability that a proposal is accepted, from the weights of its value and of its digit."""
    value = law.value(digit, rest)
    return (-dec(F(value * value) / (2 * law.sigma2))).exp() / weight(law, digit)


# --- the table of the signed digit ----------------------------------------------------------------------------


@pytest.mark.parametrize("sigma2", [*TABLED, *COARSE], ids=str)
def test_every_table_word_is_the_floor_of_the_true_probability(sigma2: Fraction) -> None:
    law, table = coarse(sigma2)
    assert (law.unit == 1) == (sigma2 in TABLED)
    assert len(table.words) == 2**table.depth - 1 <= 1023
    assert table.words[0] == 0 and table.words[-1] == WHOLE - 1  # both tails are undecided words
    assert (table.words[1:] >= table.words[:-1]).all()
    for c, word in enumerate(table.words.tolist()):
        value = true_cdf(law, table.first + c) * WHOLE
        if value > WHOLE - 1:
            assert word == WHOLE - 1
        else:
            assert word == int(value)
            assert Decimal("1e-30") < value % 1 < 1 - Decimal("1e-30") or value < 1  # decimals decide


def test_floors_that_the_bits_leave_open_are_not_guessed() -> None:
    law = Coarse(F(100), 1)
    assert law.floors(64, 66) is None
    enough = law.floors(64, 192)
    assert enough is not None and enough == law.floors(64, 500)


def test_few_bits_leave_open_or_say_what_many_bits_say() -> None:
    """No interval is too narrow, however few bits it is worked out with."""
    decided = 0
    for a, b, unit in itertools.product(range(1, 8), (1, 2, 3), (1, 4)):
        law = Coarse(F(a, b), unit)
        for bits in range(5, 22, 2):
            told = law.floors(5, bits)
            assert told is None or told == law.floors(5, 200)
            decided += told is not None
            for k in range(-3, 4):
                (low, high), (least, most) = law.cdf(k, bits), law.cdf(k, 200)
                assert low << 200 - bits <= least <= most <= high << 200 - bits
    assert decided > 150


@settings(max_examples=60, deadline=None)
@given(st.fractions("1/50", 60, max_denominator=1000), st.integers(1, 2), st.integers(-30, 30))
def test_cumulative_probabilities_hold_the_true_one_closely(sigma2: Fraction, unit: int, k: int) -> None:
    law = Coarse(sigma2, unit)
    low, high = law.cdf(k, 150)
    with localcontext() as context:
        context.prec = 100
        value = true_cdf(law, k) * 2**150
        assert low - Decimal("1e-10") <= value <= high + Decimal("1e-10")
    assert 0 <= high - low < 2**8


@pytest.mark.parametrize("sigma2", [*TABLED, *COARSE], ids=str)
def test_digit_bits_and_acceptance_together_have_the_gaussian_law(sigma2: Fraction) -> None:
    law, table = coarse(sigma2)
    sigma = math.isqrt(math.ceil(sigma2))
    shifts = {z for c in (0, 1, 2, 3, 7) for z in (c * sigma, -c * sigma, c, -c, c * sigma - 1)}
    ratios = set()
    for z in shifts:
        folded = z if z >= 0 else -1 - z
        digit, rest = divmod(folded, law.unit)
        digit = digit if z >= 0 else -1 - digit
        assert law.value(digit, rest) == z
        probability = weight(law, digit) * (-dec(law.fall(digit, rest))).exp()
        ratios.add(probability / (-dec(F(z * z) / (2 * sigma2))).exp())
    assert max(ratios) / min(ratios) - 1 < Decimal("1e-90")
    values = [law.value(k, d) for k in (-2, -1, 0, 1) for d in {0, 1 % law.unit, law.unit - 1}]
    assert len(set(values)) == (4 if law.unit == 1 else 8 if law.unit == 2 else 12)
    # Digits in the table, with one to spare, fall no steeper than the series allows, so few are rejected.
    last = table.first + int((table.words < WHOLE - 1).sum()) + 1
    assert max(law.fall(table.first - 1, law.unit - 1), law.fall(last, law.unit - 1)) < F(STEEPEST)
    assert law.unit == 1 or law.unit**2 * 26**2 < sigma2


# --- from words to noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma2", "digit_bits"), [(F(1, 10), 10), (F(1), 10), (F(17, 3), 10), (F(900), 5)], ids=str
)
def test_all_five_bit_words_with_all_completions_follow_the_law_exactly(
    sigma2: Fraction, digit_bits: int
) -> None:
    w = 5
    law, table = coarse(sigma2, w, digit_bits)
    assert (law.unit == 1) == (sigma2 < 900)
    first, sums = cumulated(law)

    def digit(low: Decimal, high: Decimal) -> int | None:
        """The digit of every U in [low, high), or None if a step of the law lies inside."""
        if any(low < f < high for f in sums if 0 < f < 1 - Decimal("1e-60")):
            return None
        return next(first + i for i, f in enumerate(sums) if high <= f)

    asked = 0
    for word in range(2**w):
        at_once = digit(Decimal(word) / 2**w, Decimal(word + 1) / 2**w)
        if at_once is not None and word not in table.words:
            assert search(table, words_of(word), never).tolist() == [at_once]
            continue
        for extra in range(2**w):
            number = word << w | extra
            expected = digit(Decimal(number) / 4**w, Decimal(number + 1) / 4**w)
            if expected is None or number in (0, 4**w - 1):
                asked += 1
                with pytest.raises(NeedsMore):
                    search(table, words_of(word), given_bits(extra))
            else:
                assert search(table, words_of(word), given_bits(extra)).tolist() == [expected]
    assert asked


@pytest.mark.parametrize("sigma2", [F(1, 3), F(100), F(10**6)], ids=str)
def test_words_on_floors_are_completed_and_their_neighbours_are_not(sigma2: Fraction) -> None:
    law, table = coarse(sigma2)
    floors = sorted(set(table.words.tolist()))
    for floor in [*floors[:2], *floors[2:-2:97], *floors[-2:]]:
        for extra in ([0, 1, 0], [2**64 - 1, 2**64 - 2, 5], [0x9E3779B97F4A7C15, 7, 7]):
            number = Decimal(((floor << 64 | extra[0]) << 64 | extra[1]) << 64 | extra[2]) / 2**256
            digit = int(search(table, words_of(floor), given_bits(*extra))[0])
            assert true_cdf(law, digit - 1) <= number < true_cdf(law, digit) or abs(digit) * law.unit > 16 * (
                math.sqrt(sigma2)
            )  # beyond what the decimals sum up
        for word in (floor - 1, floor + 1):
            if 0 <= word < WHOLE and word not in floors:
                assert settle(table, word, never) == int(search(table, words_of(word), never)[0])


@pytest.mark.parametrize("sigma2", COARSE, ids=str)
def test_proposals_are_accepted_by_the_true_probability_word_by_word(sigma2: Fraction) -> None:
    law, table = coarse(sigma2)
    low_bits = law.unit.bit_length() - 1
    words = np.frombuffer(os.urandom(16 * 4000), dtype=np.uint64).reshape(2, 4000).copy()
    # Every second draw has its bits near the edge of acceptance: some are accepted, some are not, all are close.
    digits = search(table, words[0], never)
    for i in range(0, 4000, 2):
        rest = int(words[1, i]) % law.unit
        if rest:
            whole = 2 ** (64 - low_bits)
            edge = int(chance(law, int(digits[i]), rest) * whole) + (-1) ** (i // 2) * 2 ** (i % 30)
            words[1, i] = min(max(edge, 0), whole - 1) << low_bits | rest
    expected, on_the_edge, asked = [], 0, 0
    for digit, second in zip(digits.tolist(), words[1].tolist(), strict=True):
        rest, number = second % law.unit, second >> low_bits
        edge = chance(law, digit, rest) * 2 ** (64 - low_bits)
        on_the_edge += bool(rest) and number < edge < number + 1
        if number < edge:
            expected.append(law.value(digit, rest))

    def zeros() -> int:
        nonlocal asked
        asked += 1
        return 0  # an edge strictly above the number is then above all its completions by zeros

    assert 300 < 4000 - len(expected) < 3000
    assert accepted(law, table, words, zeros).tolist() == expected
    assert asked == on_the_edge


@pytest.mark.parametrize("sigma2", COARSE, ids=str)
@pytest.mark.parametrize("digit", [0, -1, 13, -40])
def test_the_word_on_the_edge_of_acceptance_is_completed(sigma2: Fraction, digit: int) -> None:
    law, table = coarse(sigma2)
    low_bits, rest = law.unit.bit_length() - 1, law.unit - 1
    word = int(table.words[digit - table.first - 1]) + 1
    assert search(table, words_of(word), never).tolist() == [digit]
    edge = chance(law, digit, rest) * 2 ** (64 - low_bits)
    floor, value = int(edge), law.value(digit, rest)

    def decided(number: int, more: Callable[[], int]) -> list[int]:
        second = number << low_bits | rest
        return accepted(law, table, words_of(word, second).reshape(2, 1), more).tolist()

    assert decided(floor - 1, never) == [value]
    assert floor + 1 == 2 ** (64 - low_bits) or decided(floor + 1, never) == []
    beyond = int((edge - floor) * WHOLE)
    assert decided(floor, given_bits(beyond - 1)) == decided(floor, given_bits(0)) == [value]
    assert decided(floor, given_bits(beyond + 1)) == decided(floor, given_bits(WHOLE - 1)) == []
    last = int(((edge - floor) * WHOLE - beyond) * WHOLE)
    assert decided(floor, given_bits(beyond, last - 1)) == [value]
    assert decided(floor, given_bits(beyond, last + 1)) == []
    with pytest.raises(NeedsMore):
        decided(floor, given_bits(beyond))


def test_both_words_of_a_draw_are_completed_where_both_are_open() -> None:
    law, table = coarse(F(10**6))
    low_bits, rest = law.unit.bit_length() - 1, law.unit // 2
    floor = int(table.words[table.words.size // 3])
    for first in (0, WHOLE - 1):  # two digits meet at the floor
        digit = int(search(table, words_of(floor), given_bits(first))[0])
        number = int(chance(law, digit, rest) * 2 ** (64 - low_bits))
        words = words_of(floor, number << low_bits | rest).reshape(2, 1)
        assert accepted(law, table, words, given_bits(first, 0)).tolist() == [law.value(digit, rest)]
        assert accepted(law, table, words, given_bits(first, WHOLE - 1)).tolist() == []


def test_a_rest_of_zero_is_always_accepted_and_needs_no_bits() -> None:
    law, table = coarse(F(10**6))
    for second in (0, (WHOLE - 1) // law.unit * law.unit):
        words = words_of(int(table.words[300]) + 1, second).reshape(2, 1)
        assert accepted(law, table, words, never).tolist() == [law.value(table.first + 301, 0)]


@pytest.mark.parametrize("digit", [2**70, -(2**70)])
def test_the_tails_end_in_saturation_and_not_in_overflow(digit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gaussian, "settle", lambda *_: digit)
    law, table = coarse(F(2**100))
    for second, expected in [(0, [2**62 if digit > 0 else -(2**62)]), (5, []), (law.unit + 5, [])]:
        words = words_of(0, second).reshape(2, 1)
        assert accepted(law, table, words, lambda: WHOLE - 1).tolist() == expected


@pytest.mark.parametrize("word", [0, WHOLE - 1])
def test_a_tail_is_followed_as_far_as_its_bits_go(word: int) -> None:
    _, table = coarse(F(1))
    seen = []
    for k in range(9):
        bits = given_bits(*[word] * k, 2**63, 2**63, 2**63)
        seen.append(abs(int(search(table, words_of(word), bits)[0])))
    assert seen == sorted(seen) and len(set(seen)) == 9
    with localcontext() as context:
        context.prec = 250
        whole = 1 + 2 * sum((-dec(F(z * z, 2))).exp() for z in range(1, 60))
        for k, z in enumerate(seen):  # U, or 1 - U, is about half of 2^-64(k+1)
            tail = [sum((-dec(F(y * y, 2))).exp() for y in range(z + j, z + j + 60)) / whole for j in (0, 1)]
            assert tail[1] < dec(F(1, 2 ** (64 * (k + 1) + 1))) < tail[0]


def test_the_same_steps_whatever_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    take = np.take

    def counted(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        return take(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "take", counted)
    law, table = coarse(F(10**6))
    steps = set()
    for fill in (1, 2**20, 2**63, 2**64 - 2):
        calls = 0
        accepted(law, table, np.full((2, 50), fill, dtype=np.uint64), noise._one_more_word)
        steps.add(calls)
    assert steps == {table.depth + 1}


@pytest.mark.parametrize("sigma2", [F(100), F(10**6)], ids=str)
@pytest.mark.parametrize("size", [1, 8191, 20_000])
def test_noise_is_what_was_accepted_first_whatever_was_rejected(
    sigma2: Fraction, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks: list[np.ndarray] = []
    words = noise._words

    def remembered(rows: int, count: int) -> np.ndarray:
        chunks.append(words(rows, count))
        return chunks[-1]

    monkeypatch.setattr(noise, "_words", remembered)
    draws = discrete_gaussian(sigma2, size)
    law, table = coarse(sigma2)
    values: list[int] = []
    for chunk in chunks:
        assert len(values) < size  # no chunk is drawn for nothing
        if law.unit == 1:
            values += search(table, chunk[0], never).tolist()
        else:
            values += accepted(law, table, chunk, noise._one_more_word).tolist()
    assert draws.tolist() == values[:size]
    proposed = sum(chunk.shape[1] for chunk in chunks)
    assert proposed == size if law.unit == 1 else size <= proposed < 1.05 * size + 20


# --- the drawn law --------------------------------------------------------------------------------------------


def below(sigma2: Fraction, z: np.ndarray) -> np.ndarray:
    """P(Z <= z), in floats: sums of weights, or beyond sigma = 2000 the normal law at half integers."""
    if sigma2 > 4_000_000:
        from scipy.stats import norm

        return norm.cdf((z + 0.5) / math.sqrt(sigma2))
    reach = int(12 * math.sqrt(sigma2)) + 3
    sums = np.cumsum(np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(sigma2))))
    return sums[np.clip(z + reach, 0, 2 * reach)] / sums[-1]


def p_value(draws: np.ndarray, sigma2: Fraction, cells: int = 150) -> float:
    from scipy.stats import chi2

    reach = 4 * math.sqrt(sigma2)
    edges = np.unique(np.linspace(-reach - 0.5, reach + 0.5, cells).round()).astype(np.int64)
    expected = np.diff(np.concatenate([[0.0], below(sigma2, edges), [1.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(edges) + 1)
    keep = expected >= 8
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    freedom = int(keep.sum()) - 1
    if (rest := expected[~keep].sum()) >= 8:
        statistic += (observed[~keep].sum() - rest) ** 2 / rest
        freedom += 1
    assert freedom >= 2
    return float(chi2.sf(statistic, freedom))


@pytest.mark.parametrize(
    "sigma2", [F(1, 10), F(1, 3), F(17, 3), F(100), F(10_000), F(10**6), F(10**20, 3)], ids=str
)
def test_two_million_draws_pass_chi_squared(sigma2: Fraction) -> None:
    draws = discrete_gaussian(sigma2, 2_000_000)
    assert draws.dtype == np.int64 and draws.shape == (2_000_000,)
    assert p_value(draws, sigma2) > 1e-6
    # The test can fail: a variance two per cent larger, an offset of a tenth of sigma.
    assert p_value(draws, sigma2 * F(102, 100)) < 1e-6
    assert p_value(draws + math.ceil(math.sqrt(sigma2) / 10), sigma2) < 1e-6


def test_single_values_have_their_probability_also_inside_a_unit() -> None:
    law, _ = coarse(F(10_000))
    assert law.unit == 2
    draws = discrete_gaussian(10_000, 2_000_000)
    for residue in range(4):  # a rest that is uniform, or an acceptance that leans, would show
        z = np.arange(-600 + residue, 600, 4)
        share = np.exp(-(z**2) / 20_000).sum() / np.exp(-(np.arange(-1000, 1001) ** 2) / 20_000).sum()
        assert abs(np.mean(draws % 4 == residue) - share) < 6 * math.sqrt(share / 2_000_000)
    at_zero, at_one = (np.count_nonzero(draws == z) / 2_000_000 for z in (0, -1))
    assert abs(at_zero - 0.003989423) < 6 * math.sqrt(0.004 / 2e6)
    assert abs(at_one - 0.003989223) < 6 * math.sqrt(0.004 / 2e6)


def test_neighbouring_draws_are_independent() -> None:
    draws = discrete_gaussian(10**6, 1_000_000).astype(float)
    for lag in (1, 2, 8192):
        assert abs(np.mean(draws[lag:] * draws[:-lag]) / draws.var()) < 6e-3  # six standard deviations
        sizes = np.abs(draws)
        assert abs(np.corrcoef(sizes[lag:], sizes[:-lag])[0, 1]) < 6e-3


# --- variance and quantile ------------------------------------------------------------------------------------


def weights(sigma2: Fraction) -> list[Decimal]:
    """exp(-z^2/(2 sigma2)) from z = 0 to below 10^-90."""
    return [(-dec(F(z * z) / (2 * sigma2))).exp() for z in range(math.isqrt(math.ceil(420 * sigma2)) + 3)]


@pytest.mark.parametrize(
    "text",
    [
        "0.001",
        "1/800",
        "1/100",
        "0.05",
        "0.1",
        "1/3",
        "3/7",
        "1",
        "2",
        "2.5",
        "3.999",
        "4",
        "17/3",
        "100",
        "1e4",
    ],
)
def test_variance_is_correctly_rounded(text: str) -> None:
    terms = weights(F(text))
    truth = 2 * sum(z * z * w for z, w in enumerate(terms)) / (2 * sum(terms) - 1)
    assert discrete_gaussian_variance(text) == float(truth)


def test_variance_is_below_sigma2_and_nears_it() -> None:
    for text in ("0.01", "0.1", "0.5", "1"):
        assert discrete_gaussian_variance(text) < float(F(text))
    assert discrete_gaussian_variance(F(1, 2000)) == 0.0
    assert discrete_gaussian_variance(F(1, 10**400)) == 0.0
    for sigma2 in (F(10**9, 7), F(2**100), F(2**99) + F(1, 3)):
        assert discrete_gaussian_variance(sigma2) == float(sigma2)


COVERAGES = ["0", "1e-9", "1/2", "0.95", "0.999999999999", str(1 - F(1, 10**30))]


@pytest.mark.parametrize("sigma2", [F(1, 10**9), F(1, 20), *TABLED, F(31), F(41), F(66), F(5000)], ids=str)
@pytest.mark.parametrize("coverage", COVERAGES)
def test_quantile_is_the_smallest_that_covers(sigma2: Fraction, coverage: str) -> None:
    t = discrete_gaussian_quantile(sigma2, coverage)
    terms = weights(sigma2)
    whole, allowed = 2 * sum(terms) - 1, 1 - dec(F(coverage))
    assert t >= 0 and 2 * sum(terms[t + 1 :]) / whole <= allowed
    assert t == 0 or 2 * sum(terms[t:]) / whole > allowed


PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211707"
)


def normal_inside(x: Decimal) -> Decimal:
    """P(|N| <= x) of the standard normal law, by the alternating series."""
    total, term, k = Decimal(0), x, 0
    while abs(term) > Decimal("1e-95"):
        total += term / (2 * k + 1)
        k += 1
        term *= -x * x / (2 * k)
    return total * 2 / (2 * PI).sqrt()


@pytest.mark.parametrize("sigma2", [F(2**70), F(10**24, 7), F(2**100)], ids=str)
@pytest.mark.parametrize("coverage", ["1/2", "0.95", "0.999999999999"])
def test_large_quantiles_are_the_smallest_that_cover(sigma2: Fraction, coverage: str) -> None:
    """Here P(|Z| > t) is the normal law's at t + 1/2 to within a relative 8/sigma2; a step of t is 1/sigma."""
    t = discrete_gaussian_quantile(sigma2, coverage)
    sigma, c = dec(sigma2).sqrt(), dec(F(coverage))
    near = 8 * (1 - c) / dec(sigma2)
    assert normal_inside((t + Decimal("0.5")) / sigma) > c + near
    assert normal_inside((t - Decimal("0.5")) / sigma) < c - near


@pytest.mark.parametrize("sigma2", [F(1, 3), F(20), F(100), F(10_000, 3), F(10**6)], ids=str)
def test_quantile_decides_coverages_that_are_met_nearly(sigma2: Fraction) -> None:
    terms = weights(sigma2)
    whole = 2 * sum(terms) - 1
    for t in {int(math.sqrt(sigma2)), int(2.5 * math.sqrt(sigma2))}:
        inside = F((2 * sum(terms[: t + 1]) - 1) / whole)
        assert discrete_gaussian_quantile(sigma2, inside - F(1, 10**60)) == t
        assert discrete_gaussian_quantile(sigma2, inside + F(1, 10**60)) == t + 1


def test_an_undecided_coverage_is_not_taken_for_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def wide(sigma2: Fraction, t: int, bits: int) -> tuple[int, int]:
        asked.append((t, bits))
        return (0, 1 << bits) if t < 7 else (0, 0)

    monkeypatch.setattr(_laws, "_beyond", wide)
    assert discrete_gaussian_quantile(F(123_456_789, 10**7), F(1234, 2345)) == 7
    assert len({bits for t, bits in asked if t < 7}) == 2


@pytest.mark.parametrize("sigma2", [F(10), F(64), F(100), F(20_001, 7)], ids=str)
@pytest.mark.parametrize("bits", [60, 120, 200, 300])
def test_both_ways_to_the_tail_hold_it_closely(sigma2: Fraction, bits: int) -> None:
    terms = weights(sigma2)
    whole = 2 * sum(terms) - 1
    for t in (0, 1, int(2 * math.sqrt(sigma2)), int(6 * math.sqrt(sigma2))):
        low, high = _laws._beyond(sigma2, t, bits)
        truth = 2 * sum(terms[t + 1 :]) / whole * 2**bits
        slack = 2 ** Decimal(bits) / Decimal(10) ** 88
        assert low - slack <= truth <= high + slack
        assert high - low <= 16


def test_a_variance_that_the_bits_leave_open_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sigma2, above, asked = F(123_457, 99_991), _laws._above, []

    def wide(s: Fraction, bits: int) -> list[tuple[int, int]]:
        asked.append(bits)
        return [(low // (3 - len(asked)), high) for low, high in above(s, bits)]

    expected = discrete_gaussian_variance(F(123_457, 99_991))
    monkeypatch.setattr(_laws, "_above", wide)
    _laws._gaussian_variance.cache_clear()
    assert discrete_gaussian_variance(sigma2) == expected and len(asked) == 2
    _laws._gaussian_variance.cache_clear()


@pytest.mark.parametrize("sigma2", [F(1, 3), F(50), F(10_000)], ids=str)
def test_what_follows_a_list_of_tails_is_less_than_one_unit(sigma2: Fraction) -> None:
    found, more = (_gaussian.tails(sigma2, 1, 0, 1, bits) for bits in (64, 300))
    assert len(found) < len(more) and more[len(found)][1] < 1 << 300 - 64


@pytest.mark.parametrize("bits", [64, 1000, 5000])
def test_pi_is_held_closely_however_many_bits(bits: int) -> None:
    (low, high), (least, most) = _laws._pi(bits), _laws._pi(bits + 2000)
    assert low << 2000 <= least <= most <= high << 2000
    assert high - low <= 3 + 2 * (bits // 1024)
    assert 314159265 * 2**bits <= low * 10**8 and high * 10**8 <= 314159266 * 2**bits


@settings(max_examples=60, deadline=None)
@given(st.fractions("1/1000", 600, max_denominator=1000), st.integers(40, 250))
def test_the_parts_of_large_tails_are_held_closely(y: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 400
        total, term, n = Decimal(0), Decimal(1), 1
        while term > Decimal("1e-120"):
            total += term
            n += 2
            term = term * dec(y) / n
        low, high = _laws._odd_series(4 * y, bits)
        assert low <= total * 2**bits <= high
        assert high - low < 2**17 * total
        low, high = _laws._root_of_two_pi(y, bits)
        assert low <= (2 * PI * dec(y)).sqrt() * 2**bits <= high
        assert high - low < 60 + 60 * y


def test_coefficients_at_midpoints_are_those_of_bernoulli() -> None:
    """(x/2) / sinh(x/2) = 1 - x^2/24 + 7 x^4/5760 - 31 x^6/967680 + ..."""
    assert [_laws._midpoint_coefficient(k) for k in range(4)] == [1, F(-1, 24), F(7, 5760), F(-31, 967_680)]


# --- refusals -------------------------------------------------------------------------------------------------

BAD = [0, -1, 0.0, -0.5, float("nan"), float("inf"), True, np.True_, "one", "", None, [1], 1j, Decimal("NaN"),
       "nan", 2**100 + 1, np.random.PCG64(), np.random.default_rng()]  # fmt: skip


@pytest.mark.parametrize("sigma2", BAD, ids=lambda v: type(v).__name__)
def test_what_is_no_positive_number_is_refused(sigma2: object) -> None:
    with reserve([(1, 1)], [(1, 1)]) as held:
        asks: list[Callable[[], object]] = [
            lambda: discrete_gaussian(sigma2, 3),  # type: ignore[arg-type]
            lambda: reserve([(1, 3)], gaussian=[(1, 3), (sigma2, 3)]),  # type: ignore[list-item]
            lambda: held.gaussian(sigma2, 1),  # type: ignore[arg-type]
            lambda: discrete_gaussian_variance(sigma2),  # type: ignore[arg-type]
            lambda: discrete_gaussian_quantile(sigma2, 0.9),  # type: ignore[arg-type]
        ]
        for ask in asks:
            with pytest.raises(SpecificationError, match="sigma2"):
                ask()
        assert len(held.gaussian(1, 1)) == 1


def test_other_refusals_name_their_argument() -> None:
    for size in (-1, True, 1.0, "3", None):
        with pytest.raises(SpecificationError, match="size"):
            discrete_gaussian(1, size)  # type: ignore[arg-type]
    for coverage in (1, -0.1, "1.5", float("nan"), True):
        with pytest.raises(SpecificationError, match="coverage"):
            discrete_gaussian_quantile(1, coverage)
    with pytest.raises(Refused, match="memory"):
        discrete_gaussian(1, 2**62)
    with pytest.raises(TypeError):
        discrete_gaussian(1, 3, seed=1)  # type: ignore[call-arg]


def test_exact_numbers_of_every_kind_are_one_sigma2() -> None:
    kinds = [F(1, 2), 0.5, "0.5", "1/2", Decimal("0.5"), np.float64(0.5)]
    with reserve([], [(kind, 2) for kind in kinds]) as held:  # type: ignore[misc]
        assert len(held.gaussian("1/2", 12)) == 12
    assert discrete_gaussian(3, 0).shape == (0,)
    assert not discrete_gaussian(F(1, 10**400), 1000).any()


# --- the pool -------------------------------------------------------------------------------------------------


def test_all_entropy_is_read_before_the_noise_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    urandom = os.urandom

    def counted(n: int) -> bytes:
        read.append(n)
        return urandom(n)

    monkeypatch.setattr(os, "urandom", counted)
    with reserve([(1, 10)], [(100, 20_000), (10**6, 9000), (100, 5)]) as held:
        drawn = sum(read)
        assert drawn >= 8 * (10 + 20_005 + 2 * 9000)
        for sigma2, size in [(100, 20_005), (10**6, 9000)]:
            held.gaussian(sigma2, size)
        held.laplace(1, 10)
    assert sum(read) == drawn
    read.clear()
    discrete_gaussian(100, 20_005)
    assert sum(read) == 8 * 20_005


def test_every_value_is_handed_out_once_and_laws_are_kept_apart() -> None:
    with reserve([(2**40, 30)], [(2**40, 60), (2**80, 100), (2**80, 50)]) as held:
        pool = held._pools["sigma2", F(2**80)]
        everything = pool.copy()
        parts = [held.gaussian(2**80, n) for n in (1, 60, 0, 88)]
        assert np.concatenate(parts).tolist() == everything[:149].tolist()
        assert not pool[:149].any()
        parts.append(held.gaussian(2**80, 1))
        with pytest.raises(Refused, match=f"1 draw.s. at sigma2 {2**80} asked, 0 left"):
            held.gaussian(2**80, 1)
        assert len(held.laplace(2**40, 30)) == 30
        with pytest.raises(Refused, match="scale"):
            held.laplace(2**40, 1)
        with pytest.raises(Refused, match="61 draw"):
            held.gaussian(2**40, 61)
        assert len(held.gaussian(2**40, 60)) == 60
        with pytest.raises(Refused, match="left"):
            held.gaussian(2**41, 1)
    assert len(set(everything.tolist())) == 150


def test_a_failure_destroys_the_noise_and_nothing_is_shown_or_copied() -> None:
    with pytest.raises(KeyError), reserve([], [(2**80, 10)]) as held:
        pool = held._pools["sigma2", F(2**80)]
        assert pool.all()
        held.gaussian(2**80, 4)
        assert repr(held) == "<Reserve: 6 draw(s) left>"
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(Refused, match="one process"):
                attempt(held)
        raise KeyError
    assert not pool.any()
    with pytest.raises(Refused, match="closed"):
        held.gaussian(2**80, 1)


def test_a_failure_while_reserving_destroys_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    urandom, calls = os.urandom, 0

    def breaks(n: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError("device")
        return urandom(n)

    opened: list[np.ndarray] = []
    open_pool = Reserve._open

    def remembered(self: Reserve, law: tuple[str, Fraction], size: int) -> np.ndarray:
        opened.append(open_pool(self, law, size))
        return opened[-1]

    monkeypatch.setattr(os, "urandom", breaks)
    monkeypatch.setattr(Reserve, "_open", remembered)
    with pytest.raises(Refused, match="no randomness"):
        reserve([(2**40, 100)], [(2**80, 20_000)])
    assert [len(pool) for pool in opened] == [100, 20_000] and not any(pool.any() for pool in opened)


FORK = """
import json, os
from tetraodon.errors import Refused
from tetraodon.noise import reserve

held = reserve([], [(2**90, 64)])
pool = next(iter(held._pools.values()))
get, put = os.pipe()
child = os.fork()
if child == 0:
    try:
        held.gaussian(2**90, 64)
    except Refused as refused:
        said = str(refused)
    with reserve([], [(2**90, 64)]) as own:
        drawn = own.gaussian(2**90, 64).tolist()
    with os.fdopen(put, "w") as out:
        json.dump({"said": said, "left": pool.tolist(), "drawn": drawn}, out)
    os._exit(0)
os.close(put)
with os.fdopen(get) as told:
    answer = json.load(told)
os.waitpid(child, 0)
print(json.dumps({"child": answer, "held": held.gaussian(2**90, 64).tolist()}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_share_no_noise() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert "another process" in told["child"]["said"] and told["child"]["left"] == [0] * 64
    values = [*told["held"], *told["child"]["drawn"]]
    assert len(values) == 128 == len(set(values)) and 0 not in told["held"]
