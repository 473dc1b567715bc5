"""Exact sampling from finite laws: the words against exact sums, every word's outcome, completion, and random orders."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.bits import NeedsMore, given_bits, never, words_of
from scipy.stats import chi2

from tetraodon import noise
from tetraodon._choices import TOP, Choices
from tetraodon._orders import ordered
from tetraodon.errors import Refused, SpecificationError

F = Fraction
HUGE = 1 << 64


def exact_rows(entries: np.ndarray, rest: np.ndarray) -> list[list[Fraction]]:
    rows = [[F(float(x)) for x in row] for row in entries]
    for row, k in zip(rows, rest, strict=True):
        row[k] = F(0)
        row[k] = 1 - sum(row)
    return rows


def floors(choices: Choices, row: int) -> list[int]:
    """The sorted words of one row, read back out of its tree."""

    def walk(place: int, depth: int) -> list[int]:
        if depth == 0:
            return []
        return [*walk(2 * place, depth - 1), int(choices.tree[place]), *walk(2 * place + 1, depth - 1)]

    return walk(choices.n_rows + row, choices.depth)


def chance(total: int) -> st.SearchStrategy[list[float]]:
    """Doubles of very different sizes, some of them 0."""
    sizes = st.floats(0, 1 / total, allow_subnormal=True) | st.just(0.0)
    return st.lists(sizes | st.integers(2, 1074).map(lambda e: 2.0**-e / total), min_size=1, max_size=total)


@given(chance(9), st.integers(0, 8))
@settings(max_examples=150, deadline=None)
def test_words_are_the_floors_of_exact_sums(entries: list[float], at: int) -> None:
    rest = np.array([at % len(entries)])
    choices = Choices.exact(np.array([entries]), rest)
    row = exact_rows(np.array([entries]), rest)[0]
    sums = list(accumulate(row))
    wanted = [min(HUGE * s // 1, TOP) for s in sums[:-1]]
    assert floors(choices, 0) == wanted + [TOP] * ((1 << choices.depth) - 1 - len(wanted))
    told, total = choices.cumulative(0)
    assert [F(s, total) for s in told] == sums and sums[-1] == 1


@given(st.lists(st.lists(st.integers(0, 2**70), min_size=1, max_size=6).filter(any), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_whole_numbers_of_any_total_and_length(rows: list[list[int]]) -> None:
    choices = Choices.of(rows)
    for r, row in enumerate(rows):
        sums = list(accumulate(F(n, sum(row)) for n in row))
        assert floors(choices, r)[: len(row) - 1] == [min(HUGE * s // 1, TOP) for s in sums[:-1]]
        edges = {w for s in sums for w in range(int(HUGE * s) - 2, int(HUGE * s) + 3) if 0 <= w <= TOP}
        for word in edges:
            low, high = F(word, HUGE), F(word + 1, HUGE)
            least, most = sum(s <= low for s in sums), sum(s < high for s in sums)
            words = words_of(word)
            if least == most:
                assert choices.outcomes(np.array([r]), words, given_bits(0, 0, 0)).tolist() == [least]
            else:  # several outcomes begin with this word: which, the next bits say
                first = choices.outcomes(np.array([r]), words, lambda: 0).tolist()
                last = choices.outcomes(np.array([r]), words, lambda: TOP).tolist()
                assert least <= first[0] <= last[0] <= most and row[first[0]] and row[last[0]]


def test_every_law_on_a_grid_of_words_is_exact() -> None:
    """A row of sixteenths: words that begin with the same four bits are counted, all 16 of them, at both ends."""
    rows = [[1, 0, 5, 10], [0, 0, 0, 16], [16, 0, 0, 0], [4, 4, 4, 4], [0, 3, 13, 0]]
    choices = Choices.of(rows)
    for r, row in enumerate(rows):
        for extra in (1, (1 << 60) - 1):
            words = np.array([(k << 60) + extra for k in range(16)], dtype=np.uint64)
            found = choices.outcomes(np.full(16, r), words, lambda: 0)
            assert np.bincount(found, minlength=4).tolist() == row


def test_an_undecided_word_is_completed_exactly() -> None:
    """p_0 = 2^-70: the word 0 is undecided, and the next 64 bits decide in the exact proportion."""
    choices = Choices.exact(np.array([[2.0**-70, 0.0]]), np.array([1]))
    row, word = np.array([0]), words_of(0)
    with pytest.raises(NeedsMore):
        choices.outcomes(row, word, given_bits())
    for more, outcome in ((0, 0), ((1 << 58) - 1, 0), (1 << 58, 1), (TOP, 1)):
        assert choices.outcomes(row, word, given_bits(more)).tolist() == [outcome]
    assert choices.outcomes(row, words_of(1), never).tolist() == [1]
    third = Choices.of([[1, 2]])  # 1/3 is undecided at 0101…, and again and again while the bits go on so
    word = words_of(HUGE // 3)
    assert third.outcomes(row, word, given_bits(HUGE // 3, HUGE // 3, 0)).tolist() == [0]
    assert third.outcomes(row, word, given_bits(HUGE // 3, HUGE // 3, TOP)).tolist() == [1]


def test_outcomes_of_probability_zero_never_come() -> None:
    """Also not at the first, the last, and the boundary words, however they are completed."""
    rows = [[0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 7], [3, 0, 0, 0, 0, 0]]
    choices = Choices.of(rows)
    words = words_of(0, 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, TOP - 1, TOP)
    for r, row in enumerate(rows):
        for more in (0, TOP, 1 << 63):
            found = choices.outcomes(np.full(len(words), r), words, lambda more=more: more)
            assert all(row[k] for k in found.tolist())


def test_one_outcome_needs_no_bits_of_its_word() -> None:
    choices = Choices.exact(np.array([[0.0], [1.0]]), np.array([0, 0]))
    assert choices.depth == 0
    assert choices.outcomes(np.array([0, 1]), words_of(5, 0), never).tolist() == [0, 0]
    assert choices.outcomes(np.array([0]), words_of(TOP), lambda: TOP).tolist() == [0]


def test_rows_do_not_mix() -> None:
    """Each row answers as it would alone, in tables of several blocks too."""
    rng = np.random.default_rng(5)
    entries = rng.random((700, 300)) ** 20
    entries /= entries.sum(axis=1, keepdims=True)
    rest = entries.argmax(axis=1)
    choices = Choices.exact(entries, rest)
    words = rng.integers(0, TOP, 50, dtype=np.uint64, endpoint=True)
    for r in (0, 1, 436, 437, 699):
        alone = Choices.exact(entries[r : r + 1], rest[r : r + 1])
        assert floors(choices, r) == floors(alone, 0)
        found = choices.outcomes(np.full(50, r), words, never)
        sums = np.cumsum(entries[r])
        assert (found == np.searchsorted(sums, words / 2.0**64, side="right")).mean() > 0.9
        assert (found == alone.outcomes(np.zeros(50, np.int64), words, never)).all()


def test_the_table_may_change_afterwards() -> None:
    """An array that can still be written is copied; one that cannot is kept."""
    entries, rest = np.array([[0.25, 0.75]]), np.array([1])
    choices = Choices.exact(entries, rest)
    entries[0, 0], rest[0] = 0.5, 0
    assert choices.cumulative(0) == ([1, 4], 4)
    entries.setflags(write=False)
    kept = Choices.exact(entries, rest)
    assert kept.cumulative.args[0] is entries  # type: ignore[attr-defined]
    assert not choices.tree.flags.writeable


@pytest.mark.parametrize(
    ("entries", "rest"),
    [
        ([[0.5, -0.1]], [0]), ([[0.5, np.nan]], [0]), ([[0.5, np.inf]], [0]), ([[0.7, 0.7, 0.0]], [2]), ([[0.5, 0.5]], [2]),
        ([[0.5, 0.5]], [-1]), ([[0.5, 0.5]], [0, 1]), ([0.5, 0.5], [0]), ([[]], [0]), ([[1.0, 2.0**-1074, 0.0]], [2]),
    ],
)  # fmt: skip
def test_what_is_no_law_is_refused(entries: object, rest: object) -> None:
    with pytest.raises(SpecificationError, match="choices"):
        Choices.exact(np.array(entries, dtype=np.float64), np.array(rest))


@pytest.mark.parametrize("rows", [[], [[]], [[0, 0]], [[1, -1, 1]], [[0.5, 0.5]], [[1], []]])
def test_what_is_no_row_of_numbers_is_refused(rows: list[list[int]]) -> None:
    with pytest.raises(SpecificationError, match="choices"):
        Choices.of(rows)


def test_choose_draws_the_law_of_each_row() -> None:
    """Chi-squared of 3 × 100,000 draws against the exact rows, at 1e-9."""
    rows = [[1, 2, 3, 4], [0, 9, 0, 1], [5, 0, 0, 5]]
    choices = Choices.of(rows)
    named = np.tile(np.arange(3), 100_000)
    drawn = noise.choose(choices, named)
    assert drawn.dtype == np.int64 and drawn.shape == named.shape
    for r, row in enumerate(rows):
        seen = np.bincount(drawn[named == r], minlength=4)
        expected = np.array(row) / sum(row) * 100_000
        held = expected > 0
        assert not seen[~held].any()
        statistic = ((seen - expected)[held] ** 2 / expected[held]).sum()
        assert statistic < chi2.isf(1e-9, held.sum() - 1)


@pytest.mark.parametrize("rows", [[0.0], [[0]], [3], [-1], ["0"], [True]])
def test_choose_takes_rows_only(rows: list[object]) -> None:
    with pytest.raises(SpecificationError, match="choose: "):
        noise.choose(Choices.of([[1, 1]]), np.array(rows))


def test_choose_of_nothing_and_of_small_types() -> None:
    choices = Choices.of([[1, 0], [0, 1]])
    assert noise.choose(choices, np.zeros(0, np.int64)).tolist() == []
    for kind in (np.uint8, np.int32, np.uint64):
        assert noise.choose(choices, np.array([0, 1, 1], dtype=kind)).tolist() == [0, 1, 1]


def test_without_entropy_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> bytes:
        raise OSError

    monkeypatch.setattr("os.urandom", broken)
    for action in (lambda: noise.choose(Choices.of([[1, 1]]), np.array([0])), lambda: noise.shuffled(2)):
        with pytest.raises(Refused, match="no randomness"):
            action()


# Orders


def test_every_order_is_as_likely() -> None:
    """All orders of four things, 48,000 times: chi-squared against equal chances at 1e-9."""
    seen = Counter(tuple(noise.shuffled(4).tolist()) for _ in range(48_000))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert sum((n - 2000) ** 2 / 2000 for n in seen.values()) < chi2.isf(1e-9, 23)


@pytest.mark.parametrize("size", [0, 1, 2, 255, 256, 8192, 8193, 20_000])
def test_an_order_holds_every_place_once(size: int) -> None:
    order = noise.shuffled(size)
    assert order.dtype == np.int64 and np.array_equal(np.sort(order), np.arange(size))


def test_equal_keys_are_drawn_longer() -> None:
    """Six places, keys that tie in two runs; the first longer keys tie again and are drawn anew."""
    first = [5, 9, 5, 9, 1, 9]
    longer = [
        [7, 8, 3, 3, 4],
        [7, 6, 3, 2, 1],
    ]  # of places 0, 2 (run of 5) and 1, 3, 5 (run of 9), in key order
    asked: list[int] = []

    def draw(count: int) -> np.ndarray:
        asked.append(count)
        keys = [k << 32 for k in first] if len(asked) == 1 else longer[len(asked) - 2]
        return np.array(keys, dtype=np.uint64)

    assert ordered(6, draw).tolist() == [4, 2, 0, 5, 3, 1]
    assert asked == [6, 5, 5]


def test_ties_leave_no_trace_of_the_places() -> None:
    """With one bit of key, nearly all places tie: every order of three must still be as likely."""
    rng = np.random.default_rng(3)

    def once() -> tuple[int, ...]:
        shifts = iter([63])
        return tuple(
            ordered(3, lambda n: rng.integers(0, 8, n, np.uint64) << np.uint64(next(shifts, 60))).tolist()
        )

    seen = Counter(once() for _ in range(24_000))
    assert len(seen) == 6
    assert sum((n - 4000) ** 2 / 4000 for n in seen.values()) < chi2.isf(1e-9, 5)


@pytest.mark.parametrize("size", [-1, 2.5, True, 2**40 + 1, "3"])
def test_orders_have_a_count(size: object) -> None:
    with pytest.raises(SpecificationError, match="size"):
        noise.shuffled(size)  # type: ignore[arg-type]
