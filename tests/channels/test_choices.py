"""Exact sampling from finite laws: tables against exact laws, the second draw, the drawn law, and random orders."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.bits import NeedsMore, given_bits, never, words_of
from scipy.stats import chi2

from tetraodon import noise
from tetraodon._choices import Choices
from tetraodon._orders import mixed
from tetraodon.errors import Refused, SpecificationError

F = Fraction
HUGE = 1 << 64
ROW0 = np.array([0])


def exact_row(entries: np.ndarray, rest: int) -> list[Fraction]:
    row = [F(float(x)) for x in entries]
    row[rest] = F(0)
    row[rest] = 1 - sum(row)
    return row


def holds(choices: Choices, r: int, law: list[Fraction]) -> None:
    """The table's chances and the exact remainder together are the law: nothing is statistical here."""
    columns, full = 1 << choices.bits, HUGE >> choices.bits
    chances = [0] * columns
    for k in range(columns):
        height, other = int(choices.heights[r * columns + k]), int(choices.others[r * columns + k])
        assert 0 <= height <= full
        chances[k] += height
        chances[other] += full - height
    top, spare = int(choices.tops[r]), int(choices.spares[r])
    assert chances == choices.shares(r) and choices.heights[r * columns + top] == full
    chances[top] -= spare
    assert sum(chances) == HUGE - spare and 0 <= spare <= len(law)
    law = law + [F(0)] * (columns - len(law))
    left = [HUGE * p - chance for p, chance in zip(law, chances, strict=True)]
    assert min(left) >= 0 and sum(left) == spare
    numbers, total = choices.exact_row(r)
    assert [F(n, total) for n in numbers] == law[: len(numbers)] and not any(law[len(numbers) :])


def chance(total: int) -> st.SearchStrategy[list[float]]:
    """Doubles of very different sizes, some of them 0."""
    sizes = st.floats(0, 1 / total, allow_subnormal=True) | st.just(0.0)
    return st.lists(sizes | st.integers(2, 1074).map(lambda e: 2.0**-e / total), min_size=1, max_size=total)


@given(chance(9), st.integers(0, 8))
@settings(max_examples=150, deadline=None)
def test_doubles_are_laid_out_exactly(entries: list[float], at: int) -> None:
    rest = at % len(entries)
    choices = Choices.exact(np.array([entries]), np.array([rest]))
    holds(choices, 0, exact_row(np.array(entries), rest))


@given(st.lists(st.lists(st.integers(0, 2**70), min_size=1, max_size=6).filter(any), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_whole_numbers_of_any_total_and_length(rows: list[list[int]]) -> None:
    choices = Choices.of(rows)
    for r, row in enumerate(rows):
        holds(choices, r, [F(n, sum(row)) for n in row])


@pytest.mark.parametrize(
    ("entries", "rest"),
    [
        ([0.0], 0), ([1.0], 0), ([1.0, 0.0], 0), ([1.0, 0.0], 1), ([0.0, 1.0, 0.0, 0.0], 2), ([0.5, 0.5, 0.0], 2),
        ([0.25] * 4, 1), ([0.125] * 8, 0), ([1 / 3] * 3, 0), ([0.1] * 10, 9), ([0.1] * 9 + [0.0], 9),
        ([1 - 2.0**-53, 2.0**-53, 0.0], 2), ([1 - 2.0**-53, 2.0**-53 - 2.0**-106, 0.0], 2), ([2.0**-64] * 8, 3),
        ([1 - 2.0**-53, 2.0**-54, 2.0**-55, 2.0**-1074, 0.0], 4), ([2.0**-1074] * 5, 2),
    ],
)  # fmt: skip
def test_laws_at_the_edges_are_laid_out_exactly(entries: list[float], rest: int) -> None:
    choices = Choices.exact(np.array([entries]), np.array([rest]))
    holds(choices, 0, exact_row(np.array(entries), rest))


def test_every_law_on_a_grid_of_words_is_exact() -> None:
    """Rows of sixteenths: of words that begin with each of the 16 groups of four bits, as many give each outcome."""
    rows = [[1, 0, 5, 10], [0, 0, 0, 16], [16, 0, 0, 0], [4, 4, 4, 4], [0, 3, 13, 0], [7, 7, 1, 1]]
    choices = Choices.of(rows)
    for r, row in enumerate(rows):
        for extra in (16, (1 << 60) - 1):
            words = np.array([(k << 60) + extra for k in range(16)], dtype=np.uint64)
            found = choices.outcomes(np.full(16, r), words, never)
            assert np.bincount(found, minlength=4).tolist() == row


def test_spare_chances_are_drawn_again_exactly() -> None:
    """Thirds: each has ⌊2^64/3⌋ chances, and the one that is over is a third of a chance for each."""
    thirds = Choices.of([[1, 1, 1]])
    assert thirds.spares.tolist() == [1] and sorted(thirds.shares(0)) == [
        0,
        HUGE // 3,
        HUGE // 3,
        HUGE // 3 + 1,
    ]
    word = words_of(int(thirds.tops[0]) << 62)
    with pytest.raises(NeedsMore):
        thirds.outcomes(ROW0, word, given_bits())
    third = HUGE // 3  # 0101…: undecided for as long as the bits go on so
    for bits, outcome in (
        ((0,), 0), ((third - 1,), 0), ((third, third - 1), 0), ((third, third, third + 1), 1), ((third + 1,), 1),
        ((2 * third, 2 * third), 1), ((2 * third + 1,), 2), ((HUGE - 1,), 2),
    ):  # fmt: skip
        more = given_bits(*bits, 0, 0) if outcome == 0 else given_bits(*bits, HUGE - 1, HUGE - 1)
        if bits == (2 * third, 2 * third):
            more = given_bits(*bits, 0)
        assert thirds.outcomes(ROW0, word, more).tolist() == [outcome]
    assert thirds.outcomes(ROW0, word + np.uint64(1), never).tolist() == [int(thirds.tops[0])]


def test_an_outcome_rarer_than_any_word_keeps_its_probability() -> None:
    """p_0 = 2^-70 is 2^-6 of the one spare chance."""
    choices = Choices.exact(np.array([[2.0**-70, 0.0]]), np.array([1]))
    word = words_of(int(choices.tops[0]) << 63)
    assert choices.spares.tolist() == [1]
    for more, outcome in ((0, 0), ((1 << 58) - 1, 0), (1 << 58, 1), (HUGE - 1, 1)):
        assert choices.outcomes(ROW0, word, given_bits(more)).tolist() == [outcome]


def test_outcomes_of_probability_zero_never_come() -> None:
    """Also not at the first and last words of every column, nor by a second draw."""
    rows = [[0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 7], [3, 0, 0, 0, 0, 0], [0, 5, 0, 2, 0, 0]]
    choices = Choices.of(rows)
    words = words_of(*(w % HUGE for k in range(9) for w in range((k << 61) - 3, (k << 61) + 4)))
    for r, row in enumerate(rows):
        for more in (0, HUGE - 1, 1 << 63):
            found = choices.outcomes(np.full(len(words), r), words, lambda more=more: more)
            assert all(row[k] for k in found.tolist())


def test_one_outcome_is_certain() -> None:
    choices = Choices.exact(np.array([[0.0], [1.0]]), np.array([0, 0]))
    words = words_of(5, 0, HUGE - 1, 1 << 63)
    for row in (0, 1):
        assert choices.outcomes(np.full(4, row), words, lambda: 0).tolist() == [0] * 4


def test_rows_do_not_mix() -> None:
    """Each row is laid out as it would be alone, in tables of several blocks too."""
    rng = np.random.default_rng(5)
    entries = rng.random((900, 1300)) ** 20
    entries /= entries.sum(axis=1, keepdims=True)
    rest = entries.argmax(axis=1)
    choices = Choices.exact(entries, rest)
    words = rng.integers(0, HUGE - 1, 50, dtype=np.uint64, endpoint=True)
    for r in (0, 1, 805, 806, 807, 899):
        holds(choices, r, exact_row(entries[r], int(rest[r])))
        alone = Choices.exact(entries[r : r + 1], rest[r : r + 1])
        assert np.array_equal(choices.heights[r << 11 : (r + 1) << 11], alone.heights)
        found = choices.outcomes(np.full(50, r), words, never)
        assert (found == alone.outcomes(np.zeros(50, np.int64), words, never)).all()


def test_the_table_may_change_afterwards() -> None:
    """An array that can still be written is copied; one that cannot is kept."""
    entries, rest = np.array([[0.25, 0.75]]), np.array([1])
    choices = Choices.exact(entries, rest)
    entries[0, 0], rest[0] = 0.5, 0
    assert choices.exact_row(0) == ([1, 3], 4)
    entries.setflags(write=False)
    kept = Choices.exact(entries, rest)
    assert kept.exact_row.args[0] is entries  # type: ignore[attr-defined]
    assert not any(a.flags.writeable for a in (choices.heights, choices.others, choices.tops, choices.spares))


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
    for action in (
        lambda: noise.choose(Choices.of([[1, 1]]), np.array([0])),
        lambda: noise.shuffled(np.arange(2)),
    ):
        with pytest.raises(Refused, match="no randomness"):
            action()


def test_half_a_word_is_enough_where_it_decides() -> None:
    """Draws from halves of words: every undecided one, and no other, takes its second half, and the law stays exact."""
    made = np.random.default_rng(11)
    rows = [[3, 5, 0, 7, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]]
    choices = Choices.of(rows)
    columns = 1 << choices.bits
    for r in range(3):
        begins = choices.begins[r * columns : (r + 1) * columns].tolist()
        for column, begin in enumerate(begins):
            for height in {0, 1, begin - 1, begin, begin + 1, (1 << 32 - choices.bits) - 1}:
                if not 0 <= height < 1 << 32 - choices.bits:
                    continue
                half = column << 32 - choices.bits | height
                longer = made.integers(0, HUGE - 1, dtype=np.uint64)
                supply = iter([_halves([half]), np.array([longer], dtype=np.uint64)])
                seen = choices.drawn(np.array([r]), lambda n, supply=supply: next(supply))
                word = words_of(half << 32 | int(longer) >> 32)
                assert seen.tolist() == choices.outcomes(np.array([r]), word, lambda: 0).tolist()
                assert (next(supply, None) is None) == (height in (0, begin))


def test_laws_of_many_outcomes_are_drawn_from_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetraodon._choices._HALF_BITS", 1)
    drawn = noise.choose(Choices.of([[1, 0, 3]]), np.zeros(40_000, np.int64))
    assert not (drawn == 1).any() and abs((drawn == 0).mean() - 0.25) < 6.2 * (3 / 16 / 40_000) ** 0.5


# Orders


def test_every_order_is_as_likely() -> None:
    """All orders of four things, 48,000 times: chi-squared against equal chances at 1e-9."""
    seen = Counter(tuple(noise.shuffled(np.arange(4))[0].tolist()) for _ in range(48_000))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert sum((n - 2000) ** 2 / 2000 for n in seen.values()) < chi2.isf(1e-9, 23)


@pytest.mark.parametrize("size", [0, 1, 2, 255, 256, 8192, 8193, 70_000])
def test_arrays_are_put_into_one_order(size: int) -> None:
    places, halves = np.arange(size), np.arange(size) / 2
    order, other = noise.shuffled(places, halves)
    assert order.dtype == np.int64 and np.array_equal(np.sort(order), places)
    assert np.array_equal(order / 2, other) and np.array_equal(places, np.arange(size))


def _halves(keys: list[int]) -> np.ndarray:
    """Words whose 32-bit halves are these keys."""
    return np.array(keys + [0] * (len(keys) % 2), dtype=np.uint32).view(np.uint64)


def _keys(low: list[int], high: list[int]) -> np.ndarray:
    """Words that hold the 16-bit keys of places: first the low halves, then the high ones."""
    both = [*low, *high]
    return np.array(both + [0] * (-len(both) % 4), dtype=np.uint16).view(np.uint64)


def test_the_high_half_of_a_key_counts_first() -> None:
    keys = _keys([1, 2, 0, 7, 6], [3, 3, 3, 0, 9])
    assert mixed([np.arange(5)], lambda _: keys)[0].tolist() == [3, 2, 0, 1, 4]


def test_equal_keys_are_drawn_longer() -> None:
    """Six places, keys that tie in two runs; the first longer keys tie again and are drawn anew."""
    longer = [
        [7, 8, 3, 3, 4],
        [7, 6, 3, 2, 1],
    ]  # of places 0, 2 (run of 5) and 1, 3, 5 (run of 9), in key order
    supply = iter(
        [_keys([5, 9, 5, 9, 1, 9], [2, 2, 2, 2, 2, 2]), *(np.array(keys, dtype=np.uint64) for keys in longer)]
    )
    asked: list[int] = []

    def draw(count: int) -> np.ndarray:
        asked.append(count)
        return next(supply)

    assert mixed([np.arange(6)], draw)[0].tolist() == [4, 2, 0, 5, 3, 1]
    assert asked == [3, 5, 5]


def test_ties_leave_no_trace_of_the_places() -> None:
    """With two bits of key, many places tie: every order of three must still be as likely."""
    made = np.random.default_rng(3)

    def once() -> tuple[int, ...]:
        supply = iter([_keys(*made.integers(0, 2, (2, 3)).tolist())])

        def draw(count: int) -> np.ndarray:
            first = next(supply, None)
            return made.integers(0, 8, count, dtype=np.uint64) if first is None else first

        return tuple(mixed([np.arange(3)], draw)[0].tolist())

    seen = Counter(once() for _ in range(24_000))
    assert len(seen) == 6
    assert sum((n - 4000) ** 2 / 4000 for n in seen.values()) < chi2.isf(1e-9, 5)


def test_large_orders_go_through_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With parts from three places on, every order of three is as likely."""
    monkeypatch.setattr("tetraodon._orders.WHOLE", 2)
    seen = Counter(tuple(noise.shuffled(np.arange(3))[0].tolist()) for _ in range(240))
    assert set(seen) == set(itertools.permutations(range(3)))
    assert sum((n - 40) ** 2 / 40 for n in seen.values()) < chi2.isf(1e-9, 5)


def test_a_large_order_is_mixed() -> None:
    """Where the first and the last places of 100,000 end up, and which of neighbours comes first: within 1e-9."""
    (order,) = noise.shuffled(np.arange(100_000))
    where = np.argsort(order)
    for part in (where[:1000], where[-1000:], order[:1000], order[-1000:]):
        assert abs(part.mean() - 49_999.5) < 6.2 * 28_867.5 / 1000**0.5
    assert abs((where[1:] > where[:-1]).mean() - 0.5) < 6.2 * (1 / 12 / 100_000) ** 0.5


@pytest.mark.parametrize("arrays", [[], [np.arange(2), np.arange(3)]])
def test_orders_are_of_arrays_of_one_length(arrays: list[np.ndarray]) -> None:
    with pytest.raises(SpecificationError, match="shuffled"):
        noise.shuffled(*arrays)
