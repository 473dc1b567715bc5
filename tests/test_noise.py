"""Noise: the certified tables against 100-digit decimals, the exact law word by word, the drawn law, and the pool."""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.bits import NeedsMore, dec, given_bits, never, words_of

from tetraodon import _choices, _gaussian, _laws, _orders, _tables, _uniform, noise
from tetraodon._tables import Lower, Signed, Table, convert, exp_bounds, locate, search, settle, tables
from tetraodon.errors import Refused, SpecificationError
from tetraodon.noise import (
    Reserve,
    discrete_laplace,
    discrete_laplace_pmf,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    reserve,
)

F = Fraction
SCALES = [F(1, 20), F(3, 10), F(3, 7), F(1), F(10), F(100), F(1000), F(8_712_000, 137), F(2**50)]


@pytest.fixture(autouse=True)
def _hundred_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 100
        yield


def true_cdf(law: Signed | Lower, k: int) -> Decimal:
    """P(digit <= k), in decimals and straight from the law's definition."""
    r, ratio = (-1 / dec(law.scale)).exp(), (-law.unit / dec(law.scale)).exp()
    if isinstance(law, Lower):
        return (1 - ratio ** (k + 1)) / (1 - ratio**law.base)
    return r / (1 + r) * ratio ** (-k - 1) if k < 0 else 1 - ratio ** (k + 1) / (1 + r)


def true_pmf(law: Signed | Lower, k: int) -> Decimal:
    r, ratio = (-1 / dec(law.scale)).exp(), (-law.unit / dec(law.scale)).exp()
    if isinstance(law, Lower):
        return ratio**k * (1 - ratio) / (1 - ratio**law.base)
    return (1 - ratio) / (1 + r) * (ratio**k if k >= 0 else r * ratio ** (-1 - k))


# --- interval arithmetic and tables ---------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.fractions(0, 10**6, max_denominator=10**12), st.integers(4, 260))
def test_exp_bounds_hold_the_exponential_closely(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with localcontext() as context:
        context.prec = 120
        value = (-dec(x)).exp() * 2**bits
        assert low <= value <= high
    assert 0 <= high - low <= 2


@pytest.mark.parametrize("x", [F(10**400), F(10**400, 3), F(1, 10**400), F(0)])
def test_exp_bounds_at_the_ends_of_the_range(x: Fraction) -> None:
    low, high = exp_bounds(x, 64)
    assert (low, high) == (0, 1) if x > 1 else low >= 2**64 - 2 and high == 2**64


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_table_word_is_the_floor_of_the_true_probability(scale: Fraction) -> None:
    for table in tables(scale):
        count = table.law.base - 1 if isinstance(table.law, Lower) else len(table.words)
        for c in range(count):
            value = true_cdf(table.law, table.first + c) * 2**64
            if value > 2**64 - 1:
                assert int(table.words[c]) == 2**64 - 1
            else:
                assert int(table.words[c]) == int(value)
                assert Decimal("1e-30") < value % 1 < 1 - Decimal("1e-30") or value < 1  # decimals decide


@pytest.mark.parametrize("law", [Signed(F(10), 1), Lower(F(10), 1, 16)], ids=["signed", "lower"])
def test_floors_that_the_bits_leave_open_are_not_guessed(law: Signed | Lower) -> None:
    assert law.floors(64, 66) is None
    enough = law.floors(64, 192)
    assert enough is not None and enough == law.floors(64, 500)


def test_a_small_law_has_one_table() -> None:
    assert [len(tables(s)) for s in (F(1), F(1000, 99), F(1000))] == [1, 1, 2]


def test_few_bits_leave_open_or_say_what_many_bits_say() -> None:
    """No interval is too narrow, however few bits it is worked out with."""
    decided = 0
    for a, b, unit in itertools.product(range(1, 8), (1, 2, 3), (1, 4)):
        laws: tuple[tuple[Signed | Lower, range], ...] = (
            (Signed(F(a, b), unit), range(-3, 4)),
            (Lower(F(a, b), unit, 5), range(4)),
        )
        for (law, digits), bits in itertools.product(laws, range(5, 22, 2)):
            told = law.floors(5, bits)
            assert told is None or told == law.floors(5, 200)
            decided += told is not None
            for k in digits:
                (low, high), (least, most) = law.cdf(k, bits), law.cdf(k, 200)
                assert low << 200 - bits <= least <= most <= high << 200 - bits
    assert decided > 300


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_tables_are_small_full_and_ordered_for_the_search(scale: Fraction) -> None:
    found = tables(scale)
    assert found is tables(scale)
    assert found[0].words[0] == 0 and found[0].words[-1] == 2**64 - 1  # both tails are undecided words
    for table in found:
        assert table.words.dtype == table.tree.dtype == np.uint64
        assert len(table.words) == 2**table.depth - 1 <= 1023
        assert (table.words[1:] >= table.words[:-1]).all()
        assert not table.words.flags.writeable and not table.tree.flags.writeable

        def inorder(i: int, tree: list[int]) -> list[int]:
            return [] if i >= len(tree) else [*inorder(2 * i, tree), tree[i], *inorder(2 * i + 1, tree)]

        assert inorder(1, table.tree.tolist()) == table.words.tolist()


@pytest.mark.parametrize(
    ("scale", "digit_bits"), [(F(5), 3), (F(3, 7), 2), (F(100), 4), (F(9, 2), 10)], ids=str
)
def test_the_digits_together_have_the_laplace_law(scale: Fraction, digit_bits: int) -> None:
    found = tables(scale, 64, digit_bits)
    laws = [table.law for table in found]
    assert laws[-1].unit == 1
    for high, low in itertools.pairwise(laws):
        assert isinstance(low, Lower) and high.unit == low.unit * low.base
    r = (-1 / dec(scale)).exp()
    for z in range(-70, 70):
        folded, probability = (z if z >= 0 else -1 - z), Decimal(1)
        for law in laws:
            digit = folded // law.unit if isinstance(law, Signed) else folded // law.unit % law.base
            probability *= true_pmf(law, -1 - digit if z < 0 and isinstance(law, Signed) else digit)
        assert abs(probability / ((1 - r) / (1 + r) * r ** abs(z)) - 1) < Decimal("1e-80")


# --- from words to noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "digit_bits"), [(F(1), 10), (F(3, 7), 10), (F(1, 20), 10), (F(7), 3)], ids=str
)
def test_all_five_bit_words_with_all_completions_follow_the_law_exactly(
    scale: Fraction, digit_bits: int
) -> None:
    w = 5
    for table in tables(scale, w, digit_bits):
        last = table.law.base - 1 if isinstance(table.law, Lower) else 200
        ks = range(0 if isinstance(table.law, Lower) else -200, last)
        cdf = {k: true_cdf(table.law, k) for k in ks}

        def digit(low: Decimal, high: Decimal, cdf: dict[int, Decimal] = cdf, last: int = last) -> int | None:
            """The digit of every U in [low, high), or None if a step of the law lies inside."""
            if any(low < f < high for f in cdf.values()):
                return None
            return next((k for k, f in cdf.items() if high <= f), last)

        asked = 0
        for word in range(2**w):
            at_once = digit(Decimal(word) / 2**w, Decimal(word + 1) / 2**w)
            if at_once is not None:
                assert search(table, words_of(word), never).tolist() == [at_once]
                continue
            for extra in range(2**w):
                number = word << w | extra
                expected = digit(Decimal(number) / 4**w, Decimal(number + 1) / 4**w)
                if expected is None:
                    asked += 1
                    with pytest.raises(NeedsMore):
                        search(table, words_of(word), given_bits(extra))
                else:
                    assert search(table, words_of(word), given_bits(extra)).tolist() == [expected]
        assert asked or isinstance(table.law, Lower)


@pytest.mark.parametrize("scale", [F(3, 7), F(10), F(1000), F(2**50)], ids=str)
def test_words_on_floors_are_completed_and_their_neighbours_are_not(scale: Fraction) -> None:
    extras = [
        [0, 1, 0],
        [2**64 - 1, 2**64 - 2, 5],
        [2**63, 0, 1],
        [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 7],
    ]
    for table in tables(scale):
        floors = set(table.words.tolist())
        ends = sorted(floors)[:3] + sorted(floors)[-3:]
        for floor in ends + sorted(floors)[3:-3:23]:
            for extra in extras:
                number = Decimal(((floor << 64 | extra[0]) << 64 | extra[1]) << 64 | extra[2]) / Decimal(
                    2**256
                )
                digit = int(search(table, words_of(floor), given_bits(*extra))[0])
                lowest, highest = (
                    (0, table.law.base - 1) if isinstance(table.law, Lower) else (-(2**62), 2**62)
                )
                assert lowest <= digit <= highest
                assert digit == highest or number < true_cdf(table.law, digit)
                assert digit == lowest or number >= true_cdf(table.law, digit - 1)
            for word in (floor - 1, floor + 1):
                if 0 <= word < 2**64 and word not in floors:
                    digit = int(search(table, words_of(word), never)[0])
                    assert settle(table, word, never) == digit


def test_words_are_digits_in_every_position_of_an_array() -> None:
    scale = F(100)
    found = tables(scale)
    words = np.frombuffer(os.urandom(8 * len(found) * 300), dtype=np.uint64).reshape(len(found), 300)
    out = np.empty(300, dtype=np.int64)
    convert(found, words, never, out)
    for column, value in zip(words.T.tolist(), out.tolist(), strict=True):
        q, *lower = (settle(table, word, never) for table, word in zip(found, column, strict=True))
        worth = sum(d * table.law.unit for d, table in zip(lower, found[1:], strict=True))
        unit = found[0].law.unit
        assert value == (q * unit + worth if q >= 0 else -1 - ((-1 - q) * unit + worth))


@pytest.mark.parametrize(("word", "sign"), [(0, -1), (2**64 - 1, 1)])
def test_the_tails_end_in_saturation_and_not_in_overflow(word: int, sign: int) -> None:
    found = tables(F(2**50))
    out = np.empty(1, dtype=np.int64)
    words = np.full((len(found), 1), word, dtype=np.uint64)
    words[1:] = 2**63
    convert(found, words, lambda: word, out)  # a uniform number of ever more equal bits
    assert np.sign(out[0]) == sign and 2**62 <= abs(int(out[0])) <= 2**62 + 2**57
    for k in range(1, 12):  # a tail short of that is followed exactly
        bits = given_bits(*([word] * k), 2**63, 2**63, 2**63)
        digit, number = settle(found[0], word, bits), F(1, 2 ** (64 * (k + 1) + 1))
        law = found[0].law
        assert abs(digit) < 2**62 // law.unit
        with localcontext() as context:
            context.prec = 400
            far = digit if digit >= 0 else -digit - 1  # by symmetry U and 1 - U
            beyond = [
                (-(far + j) * law.unit / dec(law.scale)).exp() / (1 + (-1 / dec(law.scale)).exp())
                for j in (0, 1)
            ]
            if digit < 0:
                beyond = [b * (-1 / dec(law.scale)).exp() for b in beyond]
            assert beyond[1] < dec(number) < beyond[0]


def test_the_search_takes_the_same_steps_whatever_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    take = np.take

    def counted(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        return take(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "take", counted)
    for scale in (F(1), F(10), F(100), F(1000)):
        found = tables(scale)
        steps = set()
        for fill in (1, 2**20, 2**63, 2**64 - 2):
            calls = 0
            words = np.full((len(found), 50), fill, dtype=np.uint64)
            convert(found, words, noise._one_more_word, np.empty(50, dtype=np.int64))
            steps.add(calls)
        assert steps == {sum(table.depth + 1 for table in found)}
    assert (
        "if " not in inspect.getsource(locate).split("for _ in range")[1].split("at -=")[0]
    )  # no branch inside


# --- the drawn law --------------------------------------------------------------------------------------------


def below(scale: Fraction, z: np.ndarray) -> np.ndarray:
    """P(Z <= z) in floats."""
    s = float(scale)
    tail = np.exp(-np.where(z < 0, -z, z + 1) / s) / (1 + np.exp(-1 / s))
    return np.where(z < 0, tail, 1 - tail)


def p_value(draws: np.ndarray, scale: Fraction, cells: int = 150) -> float:
    from scipy.stats import chi2

    reach = discrete_laplace_quantile(scale, F(9999, 10000))
    edges = np.unique(np.linspace(-reach - 0.5, reach + 0.5, cells).round()).astype(np.int64)
    expected = np.diff(np.concatenate([[0.0], below(scale, edges), [1.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(edges) + 1)
    keep = expected >= 8
    rest = expected[~keep].sum()
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    freedom = int(keep.sum()) - 1
    if rest >= 8:
        statistic += (observed[~keep].sum() - rest) ** 2 / rest
        freedom += 1
    assert freedom >= 3
    return float(chi2.sf(statistic, freedom))


@pytest.mark.parametrize(
    "scale", [F(3, 10), F(3, 7), F(1), F(100), F(1000), F(8_712_000, 137), F(10**9)], ids=str
)
def test_a_million_draws_pass_chi_squared(scale: Fraction) -> None:
    draws = discrete_laplace(scale, 1_000_000)
    assert draws.dtype == np.int64 and draws.shape == (1_000_000,)
    assert p_value(draws, scale) > 1e-6
    if scale >= 1:  # the test can fail: a scale two per cent larger, an offset of a tenth of the scale
        assert p_value(draws, scale * F(102, 100)) < 1e-6
        assert p_value(draws + -(-scale.numerator // (10 * scale.denominator)), scale) < 1e-6


def test_neighbouring_draws_are_independent() -> None:
    draws = discrete_laplace(1000, 1_000_000).astype(float)
    for lag in (1, 2, 8192):
        correlation = np.mean(draws[lag:] * draws[:-lag]) / draws.var()
        assert abs(correlation) < 6e-3  # six standard deviations
    folded = np.where(draws < 0, -1 - draws, draws)
    for first, second in itertools.combinations((draws < 0, folded // 256, folded % 256), 2):
        assert abs(np.corrcoef(first, second)[0, 1]) < 6e-3  # sign and digits


def test_small_scales_are_nearly_always_zero_but_reach_further(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = discrete_laplace("0.05", 1_000_000)
    assert np.count_nonzero(draws) <= 3  # P(Z != 0) = 4.1e-9
    assert not discrete_laplace(F(1, 10**400), 1000).any()

    entropy, first = noise._entropy, True

    def zeros_first(count: int) -> bytes:
        nonlocal first
        was, first = first, False
        return bytes(8 * count) if was else entropy(count)

    monkeypatch.setattr(noise, "_entropy", zeros_first)
    far = discrete_laplace(1, 20)
    assert (far <= -44).all() and len(
        set(far.tolist())
    ) > 1  # beyond the table, each completed with its own bits


def test_opendp_draws_the_same_law() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP is not installed")
    dp.enable_features("contrib")
    draw = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), 3.0)
    assert p_value(np.array(draw([0] * 40_000)), F(3), 40) > 1e-6
    assert p_value(discrete_laplace(3, 40_000), F(3), 40) > 1e-6


# --- pmf, variance, quantile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_pmf_bounds_hold_the_true_probability(scale: Fraction) -> None:
    r = (-1 / dec(scale)).exp()
    for z in (0, 1, -1, 2, 7, -40, 1000, int(3 * scale), -int(40 * scale)):
        low, high = discrete_laplace_pmf(scale, z)
        with localcontext() as context:
            context.prec = 130
            truth = (1 - r) / (1 + r) * r ** abs(z)
            assert dec(low) * (1 - Decimal("1e-80")) <= truth <= dec(high) * (1 + Decimal("1e-80"))
        if abs(z) <= 4096 * scale:
            assert 0 < low <= high and high - low <= low / 2**100
        else:
            assert low == 0


@pytest.mark.parametrize("scale", [F(1, 2), F(3, 7), F(10)], ids=str)
def test_the_privacy_loss_of_a_shift_is_exactly_one_over_the_scale(scale: Fraction) -> None:
    loss = (1 / dec(scale)).exp()
    ratios = []
    for z in range(-30, 30):
        here, there = discrete_laplace_pmf(scale, z), discrete_laplace_pmf(scale, z + 1)
        assert dec(here[0] / there[1]) <= loss and dec(there[0] / here[1]) <= loss
        ratios.append(max(here[1] / there[0], there[1] / here[0]))
    assert dec(max(ratios)) >= loss
    assert discrete_laplace_pmf(scale, 0)[0] > 0


@pytest.mark.parametrize(
    "text", ["1/1000", "1/740", "1/100", "0.05", "1/3", "0.5", "1", "4", "1000", "1e6", "1e9"]
)
def test_variance_is_correctly_rounded(text: str) -> None:
    scale = F(text)
    r = (-1 / dec(scale)).exp()
    assert discrete_laplace_variance(scale) == float(2 * r / (1 - r) ** 2)


@pytest.mark.parametrize("scale", [*SCALES, F(1, 10**9), F(123_457, 1000)], ids=str)
@pytest.mark.parametrize("coverage", ["0", "1/2", "0.95", "0.999999999999", "1e-9"])
def test_quantile_is_the_smallest_that_covers(scale: Fraction, coverage: str) -> None:
    t = discrete_laplace_quantile(scale, coverage)
    r = (-1 / dec(scale)).exp()

    def outside(t: int) -> Decimal:
        return 2 * r ** (t + 1) / (1 + r) if t >= 0 else Decimal(1)

    allowed = 1 - dec(F(coverage))
    assert t >= 0 and outside(t) <= allowed
    assert t == 0 or outside(t - 1) > allowed


# --- refusals -------------------------------------------------------------------------------------------------

BAD_SCALES = [0, -1, 0.0, -0.5, float("nan"), float("inf"), float("-inf"), True, np.True_, "one", "", None, [1], 1j,
              Decimal("NaN"), "nan", "inf", 2**50 + 1, np.random.PCG64(), np.random.default_rng()]  # fmt: skip


@pytest.mark.parametrize("scale", BAD_SCALES, ids=lambda v: type(v).__name__)
def test_scales_that_are_no_positive_number_are_refused(scale: object) -> None:
    asks: list[Callable[[], object]] = [
        lambda: discrete_laplace(scale, 3),  # type: ignore[arg-type]
        lambda: reserve([(1, 3), (scale, 3)]),  # type: ignore[list-item]
        lambda: discrete_laplace_pmf(scale, 0),  # type: ignore[arg-type]
        lambda: discrete_laplace_variance(scale),  # type: ignore[arg-type]
        lambda: discrete_laplace_quantile(scale, 0.9),  # type: ignore[arg-type]
    ]
    for ask in asks:
        with pytest.raises(SpecificationError, match="scale"):
            ask()


@pytest.mark.parametrize("size", [-1, True, 1.0, "3", None, (2, 2)], ids=repr)
def test_sizes_that_are_no_count_are_refused(size: object) -> None:
    with pytest.raises(SpecificationError, match="size"):
        discrete_laplace(1, size)  # type: ignore[arg-type]


def test_other_refusals_name_their_argument() -> None:
    for coverage in (1, -0.1, "1.5", float("nan"), True):
        with pytest.raises(SpecificationError, match="coverage"):
            discrete_laplace_quantile(1, coverage)
    with pytest.raises(SpecificationError, match="z"):
        discrete_laplace_pmf(1, 0.5)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="memory"):
        discrete_laplace(1, 2**62)


def test_exact_numbers_of_every_kind_are_one_scale() -> None:
    kinds = [F(1, 2), 0.5, "0.5", "1/2", Decimal("0.5"), np.float64(0.5)]
    with reserve([(kind, 2) for kind in kinds]) as held:  # type: ignore[misc]
        assert len(held.laplace("1/2", 12)) == 12
    assert discrete_laplace(np.int64(3), np.int32(4)).shape == (4,)  # type: ignore[arg-type]
    assert discrete_laplace(3, 0).shape == (0,)


def test_whole_numbers_below_a_bound_are_uniform() -> None:
    """Chi-squared at 1e-6 for each bound, the bounds mixed as in use."""
    from scipy.stats import chi2

    sizes = np.array([1, 2, 3, 7, 10, 64])
    which = np.tile(np.arange(len(sizes)), 40_000)
    drawn = noise.below(sizes[which])
    assert drawn.dtype == np.int64 and drawn.min() == 0
    for at, size in enumerate(sizes.tolist()):
        counts = np.bincount(drawn[which == at], minlength=size)
        assert len(counts) == size
        expected = counts.sum() / size
        assert size == 1 or chi2.sf(((counts - expected) ** 2 / expected).sum(), size - 1) > 1e-6


def test_the_incomplete_turn_of_a_bound_is_drawn_again() -> None:
    """Of 2^64 words the first 2^64 mod b are rejected, and no other: exhaustive at the edge."""
    for bound in (3, 5, 6, 1000, 2**31 - 1, 2**40 + 1, 2**63 - 1):
        cut = 2**64 % bound
        told = [[cut - 1, cut, 2**64 - 1], [cut + 1]]
        asked: list[int] = []

        def draw(count: int, told: list[list[int]] = told, asked: list[int] = asked) -> noise.Words:
            asked.append(count)
            return np.array(told[len(asked) - 1], dtype=np.uint64)

        found = _uniform.below_each(np.full(3, bound), draw)
        assert asked == [3, 1]
        assert found.tolist() == [(cut + 1) % bound, cut % bound, (2**64 - 1) % bound]


def test_bounds_that_are_no_bounds_are_refused() -> None:
    for bounds in ([0], [-1], [1.5], [[2]], [True]):
        with pytest.raises(SpecificationError, match="below"):
            noise.below(np.array(bounds))
    with pytest.raises(SpecificationError, match="2\\^63"):
        noise.below(np.array([2**63], dtype=np.uint64))
    assert noise.below(np.zeros(0, dtype=np.int64)).shape == (0,)


def test_nothing_takes_a_seed_or_a_generator() -> None:
    """C15, C16: by signature, and by what the modules refer to."""
    asked: set[str] = set()
    public = [f for name in noise.__all__ if inspect.isfunction(f := getattr(noise, name))]
    public += [f for name, f in vars(Reserve).items() if inspect.isfunction(f) and name != "__exit__"]
    assert len(public) > 15
    for function in public:
        parameters = inspect.signature(function).parameters.values()
        asked |= {p.name for p in parameters}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        kind = inspect.Parameter.VAR_POSITIONAL if function is noise.shuffled else kind
        assert all(p.kind is kind for p in parameters), function
    assert asked == {
        "self",
        "draws",
        "gaussian",
        "scale",
        "size",
        "sigma2",
        "z",
        "coverage",
        "law",
        "wanted",
        "choices",
        "rows",
        "arrays",
        "bounds",
    }
    for module in (noise, _tables, _gaussian, _laws, _choices, _orders, _uniform):
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        assert not names & {"random", "default_rng", "secrets", "seed", "Generator", "RandomState"}


# --- the pool -------------------------------------------------------------------------------------------------


def test_all_entropy_is_read_before_and_by_declared_sizes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    urandom = os.urandom

    def counted(n: int) -> bytes:
        read.append(n)
        return urandom(n)

    monkeypatch.setattr(os, "urandom", counted)
    draws = [(F(1), 20_000), (F(1000), 9000), (F(1), 5)]
    needed = 8 * (20_005 * len(tables(F(1))) + 9000 * len(tables(F(1000))))
    for _ in range(3):
        read.clear()
        with reserve(draws) as held:
            assert sum(read) == needed
            for scale, size in draws:
                held.laplace(scale, size)
        assert sum(read) == needed


def test_every_value_is_handed_out_once_and_becomes_the_callers_own() -> None:
    with reserve([(2**40, 100), (2**40, 50)]) as held:
        pool = held._pools["scale", F(2**40)]
        everything = pool.copy()
        parts = [held.laplace(2**40, size) for size in (60, 70, 0, 20)]
        assert np.concatenate(parts).tolist() == everything.tolist()
        assert not pool.any()
        with pytest.raises(Refused, match=r"1 draw\(s\) .* asked, 0 left"):
            held.laplace(2**40, 1)
        kept = parts[0].copy()
    assert (parts[0] == kept).all() and parts[0].flags.writeable
    assert len(set(everything.tolist())) == 150

    with reserve([(2**40, 80)]) as held:
        whole = held.laplace(2**40, 80)
        with pytest.raises(Refused, match="0 left"):
            held.laplace(2**40, 80)
    assert np.count_nonzero(whole) == 80  # closing leaves what was handed out


def test_more_than_reserved_or_another_scale_is_refused_and_takes_nothing() -> None:
    with reserve([(1, 10)]) as held:
        for scale, size in [(1, 11), (2, 1)]:
            with pytest.raises(Refused, match="left in the reserve"):
                held.laplace(scale, size)
        assert len(held.laplace(1, 10)) == 10


def test_a_failure_destroys_the_noise() -> None:
    with pytest.raises(KeyError), reserve([(2**40, 10)]) as held:
        pool = held._pools["scale", F(2**40)]
        assert pool.all()
        held.laplace(2**40, 4)
        raise KeyError
    assert not pool.any()
    with pytest.raises(Refused, match="closed"):
        held.laplace(2**40, 1)
    assert repr(held) == "<Reserve: closed>"


def test_a_failure_while_reserving_destroys_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    urandom, calls = os.urandom, 0

    def breaks(n: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("device")
        return urandom(n)

    opened: list[np.ndarray] = []
    open_pool = Reserve._open

    def remembered(self: Reserve, law: tuple[str, Fraction], size: int) -> np.ndarray:
        opened.append(open_pool(self, law, size))
        return opened[-1]

    monkeypatch.setattr(os, "urandom", breaks)
    monkeypatch.setattr(Reserve, "_open", remembered)
    with pytest.raises(Refused, match="no randomness") as caught:
        reserve([(2**40, 100), (3, 5)])
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert len(opened) == 2 and not any(pool.any() for pool in opened)


def test_a_reserve_shows_and_copies_nothing() -> None:
    with reserve([(2**40, 3)]) as held:
        assert repr(held) == "<Reserve: 3 draw(s) left>"
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(Refused, match="one process"):
                attempt(held)


def test_threads_never_get_the_same_value() -> None:
    taken: list[np.ndarray] = []
    with reserve([(2**50, 8000)]) as held:

        def work() -> None:
            for _ in range(200):
                taken.append(held.laplace(2**50, 5))

        threads = [threading.Thread(target=work) for _ in range(8)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    values = np.concatenate(taken)
    assert len(values) == 8000 == len(np.unique(values))


def test_another_process_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with reserve([(1, 10)]) as held:
        monkeypatch.setattr(os, "getpid", lambda: -1)  # a fork that Python was not told of
        with pytest.raises(Refused, match="another process"):
            held.laplace(1, 10)
        monkeypatch.undo()
        assert len(held.laplace(1, 10)) == 10


FORK = """
import json, os
from tetraodon.errors import Refused
from tetraodon.noise import discrete_laplace, reserve

held = reserve([(2**40, 64)])
pool = next(iter(held._pools.values()))
discrete_laplace(2**40, 64)

def in_child(work):
    get, put = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(get)
        with os.fdopen(put, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(put)
    with os.fdopen(get) as told:
        answer = json.load(told)
    os.waitpid(child, 0)
    return answer

def work():
    try:
        held.laplace(2**40, 64)
    except Refused as refused:
        said = str(refused)
    held.close()
    with reserve([(2**40, 64)]) as own:
        inner = in_child(lambda: [bool(pool.any()), len(own._pools)])
        drawn = own.laplace(2**40, 64).tolist()
    return {"said": said, "left": pool.tolist(), "drawn": drawn, "inner": inner}

held._lock.acquire()                     # as if another thread were inside at the fork
children = []
children.append(in_child(work))
held._lock.release()
parent = os.getpid()
os.getpid = lambda: parent               # numbers are used again
children.append(in_child(work))
print(json.dumps({"children": children, "held": held.laplace(2**40, 64).tolist(),
                  "drawn": discrete_laplace(2**40, 64).tolist()}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_processes_share_no_noise() -> None:
    """C15: an inherited reserve is emptied and refused in the child; child, sibling and parent draw differently."""
    ran = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    streams = [told["held"], told["drawn"]]
    for child in told["children"]:
        assert "another process" in child["said"]
        assert child["left"] == [0] * 64
        assert child["inner"] == [False, 0]
        streams.append(child["drawn"])
    values = [value for stream in streams for value in stream]
    assert len(values) == 4 * 64 == len(set(values))
    assert 0 not in told["held"]


def test_table_digits_never_overflow() -> None:
    """At the largest scale too, so that only completed digits need an end."""
    for table in tables(noise.LARGEST_SCALE):
        assert isinstance(table, Table)
        digits = table.first + len(table.words)
        assert max(abs(table.first), abs(digits)) * table.law.unit < 2**61


@pytest.mark.parametrize("size", [1, 8, 9, 16, 18, 40])
def test_fresh_names_are_as_long_as_they_say(size: int) -> None:
    assert len(bytes.fromhex(noise.fresh_name(size))) == size
