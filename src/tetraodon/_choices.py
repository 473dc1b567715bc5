r"""Exact sampling from many finite laws at once: alias tables of whole numbers, and an exact remainder.

A law is a row of probabilities p_0, p_1, … that sum to 1 **exactly**: whole numbers over their total, or doubles read
as the dyadic rationals that they are, of which one a row stands for 1 − Σ of the others. Take whole numbers w_k, at most
2^64 p_k and hardly below, and the spare S = 2^64 − Σ w_k, less than the number of outcomes. A random word of 64 bits is one of
2^64 equal chances: w_k of them go to outcome k, the spare ones to a second draw, with law (2^64 p_k − w_k) / S in exact
integers of any length. Outcome k then has w_k / 2^64 + S / 2^64 · (2^64 p_k − w_k) / S = p_k. Nothing is rounded away, nothing
rejected, and an outcome of probability 0 never comes. The second draw is needed once in 2^44 draws from a million outcomes.

*Alias table* (Walker 1974). The 2^64 chances are laid out in 2^b columns of 2^(64−b), one for each outcome (rounded up to a
power of two), each shared by its own outcome, at the bottom, and one other. The first b bits of a word name the column, the
other bits, compared with the height of its own outcome, choose between the two: two reads and one comparison for each draw,
whatever the law and the outcome. Half a word is enough for most draws: where its bits are those that the height begins with,
or all 0, the other half is drawn too. The columns are filled in one sweep: the light outcomes, of less than a column, in order of
their number, each topped up by the first heavy one that has something left; a heavy one that thereby becomes light is topped
up by the next. With cumulative sums of what is missing and of what is over, that is one search for each of them. The most
likely outcome comes last, so that it fills its own column; the spare is at the bottom of that.

Source: derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import index

import numpy as np
from numpy.typing import NDArray

from ._tables import WORD_BITS, Ints, Words
from .errors import SpecificationError

Floats = NDArray[np.float64]
Row = tuple[Sequence[int], int]
"""The probabilities of one row as whole numbers, and their total."""

WHOLE = 1 << WORD_BITS
FULL = float(WHOLE)
_MOST = 1 << 31
_HALF_BITS = 22  # columns up to which half a word leaves few draws open
_BLOCK = 1 << 20  # entries turned into whole numbers at a time


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Finite laws, one a row, ready to be drawn from by ``noise.choose``.

    Attributes:
        n_rows: how many laws.
        bits: each law has 2^bits columns.
        heights: uint64, shape (n_rows · 2^bits,), read-only: how much of each column is its own outcome's.
        begins: uint32, the same shape, read-only: the heights without their last 32 bits.
        others: int32, the same shape, read-only: whose the rest of the column is.
        tops: int64, shape (n_rows,), read-only: the column of each row with the spare chances at its bottom.
        spares: uint64, shape (n_rows,), read-only: how many these are.
        exact_row: the probabilities of a row as whole numbers, for the second draw.

    >>> coin = Choices.of([[1, 3], [0, 5]])
    >>> words = np.array([0, 2**62, 2**63, 7], dtype=np.uint64)
    >>> coin.outcomes(np.array([0, 0, 0, 1]), words, lambda: 0).tolist()
    [0, 1, 1, 1]
    """

    n_rows: int
    bits: int
    heights: Words
    begins: NDArray[np.uint32]
    others: NDArray[np.int32]
    tops: Ints
    spares: Words
    exact_row: Callable[[int], Row]

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Choices:
        """Laws given by whole numbers: outcome k of a row has probability (number k) / (total of the row).

        Rows may be of different lengths. They are kept, for the second draw.

        Raises:
            SpecificationError: no rows, a row without a positive number, or one with a negative number.
        """
        try:
            told = [[index(number) for number in row] for row in rows]
        except TypeError:
            told = [[]]
        if any(not sum(row) or min(row) < 0 for row in told):
            raise SpecificationError("choices: each row is whole numbers of 0 or more, not all of them 0.")
        made = _empty(len(told), max(map(len, told), default=0), lambda row: (told[row], sum(told[row])))
        for r, row in enumerate(told):
            total = sum(row)
            shares = [min(number * WHOLE // total, WHOLE - 1) for number in row]
            made._plant(r, np.array(shares, dtype=np.uint64), WHOLE - sum(shares))
        return made._frozen()

    @staticmethod
    def exact(entries: Floats, rest: Ints) -> Choices:
        """Laws given by doubles, each read as the dyadic rational that it is.

        Args:
            entries: shape (rows, outcomes), finite and 0 or more. It is kept, and copied where it could still change.
            rest: shape (rows,): the outcome of each row that has 1 − Σ of the row's others, exactly; what ``entries``
                holds there is not read.
        Raises:
            SpecificationError: another shape, an entry that is negative or not finite, or others that sum to above 1.

        >>> law = Choices.exact(np.array([[0.25, 0.0, 2.0**-80]]), np.array([1]))
        >>> numbers, total = law.exact_row(0)
        >>> total == 2**80, [n / total for n in numbers]
        (True, [0.25, 0.75, 8.271806125530277e-25])
        """
        entries, rest = _checked(entries, rest)
        count, outcomes = entries.shape
        made = _empty(count, outcomes, partial(_exact_row, entries, rest))
        step = max(1, _BLOCK // outcomes)
        for start in range(0, count, step):
            here = rest[start : start + step]
            left = entries[start : start + step].copy()
            left[np.arange(len(here)), here] = 0.0
            if not (left.min() >= 0 and left.max() <= 1):  # NaN is neither
                raise SpecificationError("choices: probabilities are from 0 to 1.")
            left *= FULL
            whole = np.floor(left)
            # Every fraction that is cut off, and every chance that does not fit a word, is spare.
            above = np.count_nonzero(left != whole, axis=1) + np.count_nonzero(whole >= FULL, axis=1)
            whole[whole >= FULL] = 0.0
            shares = whole.astype(np.uint64)
            shares[left >= FULL] = np.uint64(WHOLE - 1)
            sums = (shares >> np.uint64(32)).sum(axis=1), (shares & np.uint64(0xFFFFFFFF)).sum(axis=1)
            for r, (high, low, cut) in enumerate(
                zip(*(s.tolist() for s in sums), above.tolist(), strict=True)
            ):
                free = WHOLE - (high << 32) - low
                if free < cut and made.exact_row(start + r)[0][int(here[r])] < 0:
                    raise SpecificationError(
                        "choices: the probabilities of a row, without its implied one, sum to more than 1."
                    )
                own = max(free - cut, 0)
                shares[r, here[r]] = min(own, WHOLE - 1)
                made._plant(start + r, shares[r], free - min(own, WHOLE - 1))
        return made._frozen()

    def drawn(self, rows: Ints, draw: Callable[[int], Words]) -> Ints:
        """One outcome of each row's law; ``draw`` gives so many uniform words.

        Args:
            rows: whole numbers, shape (n,), each from 0 to ``n_rows`` − 1 (not checked here).
        Returns:
            int64, shape (n,), fresh.
        """

        def more() -> int:
            return int(draw(1)[0])

        if self.bits > _HALF_BITS:
            return self.outcomes(rows, draw(len(rows)), more)
        halves = draw(-(-len(rows) // 2)).view(np.uint32)[: len(rows)]
        column = (halves >> np.uint32(32 - self.bits)).astype(np.int64)
        height = halves & np.uint32((1 << 32 - self.bits) - 1)
        at = np.asarray(rows, dtype=np.int64) << self.bits
        at += column
        begin = self.begins.take(at, mode="clip")
        found = np.where(height < begin, column, self.others.take(at, mode="clip"))
        open_ = (height == begin) | (height == 0)
        if open_.any():
            which = np.flatnonzero(open_)
            words = halves[which].astype(np.uint64) << np.uint64(32)
            words |= draw(len(which)) >> np.uint64(32)
            found[which] = self.outcomes(rows[which], words, more)
        return found

    def outcomes(self, rows: Ints, words: Words, more: Callable[[], int]) -> Ints:
        """The outcome of each row's law that each word stands for; ``more`` gives the 64 bits of a second draw.

        Args:
            rows: whole numbers, shape (n,), each from 0 to ``n_rows`` − 1 (not checked here).
            words: uint64, shape (n,), uniform.
        Returns:
            int64, shape (n,), fresh.
        """
        column: Ints = (words >> np.uint64(WORD_BITS - self.bits)).view(np.int64)
        height = words & np.uint64((1 << WORD_BITS - self.bits) - 1)
        at = np.asarray(rows, dtype=np.int64) << self.bits
        at += column
        found = np.where(
            height < self.heights.take(at, mode="clip"), column, self.others.take(at, mode="clip")
        )
        low = height < np.uint64(1 << self.bits)
        if low.any():  # hardly ever: only there can be spare chances
            for i in np.flatnonzero(low):
                row = int(rows[i])
                if column[i] == self.tops[row] and height[i] < self.spares[row]:
                    found[i] = self._second(row, more)
        return found

    def shares(self, row: int) -> list[int]:
        """How many of the 2^64 chances each column's outcome has, read back out of the table, and of the top one its own
        and the spare ones together."""
        columns = 1 << self.bits
        own = slice(row * columns, (row + 1) * columns)
        full = WHOLE >> self.bits
        found = [0] * columns
        for k, (height, other) in enumerate(
            zip(self.heights[own].tolist(), self.others[own].tolist(), strict=True)
        ):
            found[k] += height
            found[other] += full - height
        return found

    def _second(self, row: int, more: Callable[[], int]) -> int:
        """An outcome with the law of what the first draw leaves over."""
        numbers, total = self.exact_row(row)
        shares = self.shares(row)
        shares[int(self.tops[row])] -= int(self.spares[row])
        left = [n * WHOLE - share * total for n, share in zip(numbers, shares, strict=False)]
        sums = list(accumulate(left))
        prefix = length = 0

        def reached(bound: int) -> bool:
            """Whether a uniform number, of which as many bits are drawn as that takes, is at or above bound / sums[-1]."""
            nonlocal prefix, length
            while True:
                if prefix * sums[-1] >= bound << length:
                    return True
                if (prefix + 1) * sums[-1] <= bound << length:
                    return False
                prefix = prefix << WORD_BITS | more()
                length += WORD_BITS

        low, high = 0, len(sums) - 1  # no uniform number reaches the last sum
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if reached(sums[middle]) else (low, middle)
        return low

    def _plant(self, row: int, shares: Words, spare: int) -> None:
        """Lay out the columns of one row, whose shares and spare sum to 2^64."""
        columns = 1 << self.bits
        full = np.array([WHOLE >> self.bits], dtype=np.uint64)
        own = slice(row * columns, (row + 1) * columns)
        heights, others = self.heights[own], self.others[own]
        heights[: len(shares)] = shares
        top = int(shares.argmax())
        is_light = heights < full
        is_light[top] = False
        light = np.flatnonzero(is_light)
        is_light[top] = True
        heavy = np.append(np.flatnonzero(~is_light), top)
        # Sums of at most 2^64 − 2^(64−bits): they fit, and so do differences, whichever way they wrap meanwhile.
        over = heights[heavy] - full
        over[-1:] += np.uint64(spare)
        missing, over = np.cumsum(full - heights[light]), np.cumsum(over)
        others[light] = heavy[np.searchsorted(over, np.append(np.uint64(0), missing[:-1])[: len(light)])]
        closed = np.searchsorted(missing, over[:-1], side="right")
        falls = closed < len(missing)
        heights[heavy] = full
        heights[heavy[:-1][falls]] += over[:-1][falls] - missing[closed[falls]]
        others[heavy[:-1]] = heavy[1:]
        others[top] = top
        self.tops[row], self.spares[row] = top, spare

    def _frozen(self) -> Choices:
        np.right_shift(self.heights, np.uint64(32), out=self.begins, casting="unsafe")
        for array in (self.heights, self.begins, self.others, self.tops, self.spares):
            array.setflags(write=False)
        return self


def _empty(rows: int, outcomes: int, exact_row: Callable[[int], Row]) -> Choices:
    if not rows or not outcomes:
        raise SpecificationError("choices: at least one row, and at least one outcome in each.")
    bits = max(1, (outcomes - 1).bit_length())
    size = rows << bits
    if size > _MOST:
        raise SpecificationError("choices: more than 2^31 entries; use fewer rows or fewer outcomes.")
    heights, others = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int32)
    begins, spares = np.zeros(size, dtype=np.uint32), np.zeros(rows, dtype=np.uint64)
    return Choices(rows, bits, heights, begins, others, np.zeros(rows, dtype=np.int64), spares, exact_row)


def _checked(entries: Floats, rest: Ints) -> tuple[Floats, Ints]:
    table = np.asarray(entries, dtype=np.float64)
    implied = np.array(rest, dtype=np.int64)
    if table.ndim != 2 or not table.size or implied.shape != table.shape[:1]:
        raise SpecificationError("choices: entries of shape (rows, outcomes) and rest of shape (rows,).")
    if implied.min() < 0 or implied.max() >= table.shape[1]:
        raise SpecificationError("choices: rest names one outcome in each row.")
    if table.flags.writeable:
        table = table.copy()
        table.setflags(write=False)
    return table, implied


def _exact_row(entries: Floats, rest: Ints, row: int) -> Row:
    """One row of doubles as whole numbers over a power of two."""
    implied = int(rest[row])
    ratios = [x.as_integer_ratio() if k != implied else (0, 1) for k, x in enumerate(entries[row].tolist())]
    total = max(bottom for _, bottom in ratios)
    numbers = [top * (total // bottom) for top, bottom in ratios]
    numbers[implied] = total - sum(numbers)
    return numbers, total
