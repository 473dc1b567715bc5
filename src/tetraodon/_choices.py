r"""Exact sampling from many finite laws at once: certified 64-bit floors of cumulative sums, searched at fixed depth.

A law is a row of probabilities p_0, p_1, … that sum to 1 **exactly**: whole numbers over their total, or doubles read
as the dyadic rationals that they are, of which one a row stands for 1 − Σ of the others. With C_k = p_0 + … + p_k and
U uniform on [0, 1), the outcome is the number of k with C_k ≤ U, so that each has its own probability, and one of
probability 0 never comes.

A row holds w_k = ⌊2^64 C_k⌋, exact. Let w be the first 64 bits of U. w_k < w gives 2^64 C_k < w ≤ 2^64 U, past it;
w_k > w gives 2^64 U < w + 1 ≤ w_k ≤ 2^64 C_k, not past it; only w_k = w says nothing, and then U is completed with
more bits and compared with the exact C_k in integers. So no word is wasted, no outcome rounded away, and the law of
the outcome is that of the row. (2^64 itself, where C_k = 1, is held as 2^64 − 1: a word that equals it is undecided.)

All rows are searched together. Each is padded to 2^depth − 1 words, and the search trees of all rows stand in one
array, level by level: row r has its root at place n + r of n rows, and the children of place i are 2i and 2i + 1
whatever the row, so that a search takes ``depth`` + 1 reads without a branch or a thought about rows.

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
Cumulative = tuple[Sequence[int], int]
"""The cumulative sums of one row as whole numbers, the last of which is their total, and that total."""

TOP = (1 << WORD_BITS) - 1
_DIGIT = 32  # bits of a digit of a double: int64 then holds sums of 2^31 of them
_ONE = 1 << _DIGIT
_BLOCK = 1 << 17  # entries split into digits at a time
_MOST = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Finite laws, one a row, ready to be drawn from by ``noise.choose``.

    Attributes:
        n_rows: how many laws.
        depth: steps of a search, the same for all of them.
        tree: uint64, shape (n_rows · 2^depth,), read-only: the search trees of all rows, level by level.
        cumulative: the exact cumulative sums of a row, to complete what its words leave undecided.

    >>> coin = Choices.of([[1, 2], [0, 5]])
    >>> words = np.array([0, 2**62, 2**63, 7], dtype=np.uint64)
    >>> coin.outcomes(np.array([0, 0, 0, 1]), words, lambda: 0).tolist()
    [0, 0, 1, 1]
    """

    n_rows: int
    depth: int
    tree: Words
    cumulative: Callable[[int], Cumulative]

    @staticmethod
    def of(rows: Iterable[Sequence[int]]) -> Choices:
        """Laws given by whole numbers: outcome k of a row has probability (number k) / (total of the row).

        Rows may be of different lengths. The rows are kept: they are compared with where words leave off.

        Raises:
            SpecificationError: no rows, an empty row, a negative number, or a row whose total is 0.
        """
        try:
            given = [[index(number) for number in row] for row in rows]
        except TypeError:
            given = [[]]
        if any(not sum(row) or min(row) < 0 for row in given):
            raise SpecificationError("choices: each row is whole numbers of 0 or more, not all of them 0.")
        told = [list(accumulate(row)) for row in given]
        depth = _depth(max(map(len, told), default=0), len(told))
        tree = _empty(len(told), depth)
        for r, sums in enumerate(told):
            words = np.full((1, (1 << depth) - 1), TOP, dtype=np.uint64)
            floors = [min((s << WORD_BITS) // sums[-1], TOP) for s in sums[:-1]]
            words[0, : len(floors)] = np.array(floors, dtype=np.uint64)
            _plant(tree, depth, len(told), r, words)
        return Choices(len(told), depth, _frozen(tree), lambda row: (told[row], told[row][-1]))

    @staticmethod
    def exact(entries: Floats, rest: Ints) -> Choices:
        """Laws given by doubles, each read as the dyadic rational that it is.

        Args:
            entries: shape (rows, outcomes), finite and 0 or more. It is kept, and copied where it could still change.
            rest: shape (rows,): the outcome of each row that has 1 − Σ of the row's others, exactly; what ``entries``
                holds there is not read.
        Raises:
            SpecificationError: another shape, an entry that is negative or not finite, or others that sum to above 1.
        Source: derived. The doubles are cut into digits of 32 bits, which is exact; their cumulative sums are summed
            digit by digit in int64 and carried from the last digit to the first.

        >>> law = Choices.exact(np.array([[0.25, 0.0, 2.0**-80]]), np.array([1]))
        >>> [str(s) for s in law.cumulative(0)[0]][:1], law.cumulative(0)[1] == 2**80
        (['302231454903657293676544'], True)
        """
        entries, rest = _checked(entries, rest)
        count, outcomes = entries.shape
        depth = _depth(outcomes, count)
        tree = _empty(count, depth)
        step = max(1, _BLOCK // outcomes)
        for start in range(0, count, step):
            part = slice(start, start + step)
            words = np.full((len(rest[part]), (1 << depth) - 1), TOP, dtype=np.uint64)
            words[:, : outcomes - 1] = _floors(entries[part], rest[part])[:, :-1]
            _plant(tree, depth, count, start, words)
        return Choices(count, depth, _frozen(tree), partial(_cumulative, entries, rest))

    def outcomes(self, rows: Ints, words: Words, more: Callable[[], int]) -> Ints:
        """The outcome of each row's law that each word stands for; ``more`` completes words with their next 64 bits.

        Args:
            rows: int64, shape (n,), each from 0 to ``n_rows`` − 1 (not checked here).
            words: uint64, shape (n,), uniform.
        Returns:
            int64, shape (n,), fresh.
        """
        at = np.asarray(rows + self.n_rows, dtype=np.int64)
        read = np.empty(len(at), dtype=np.uint64)
        past = np.empty(len(at), dtype=np.bool_)
        for _ in range(self.depth):
            np.take(self.tree, at, out=read, mode="clip")
            np.less_equal(read, words, out=past)
            np.add(at, at, out=at)
            np.add(at, past, out=at)
        # The last floor at or below the word is where the search last went right: above the last bit that is set. Where it
        # never did, that is a place before all roots, which holds 2^64 − 1.
        turn = at & -at
        np.add(turn, turn, out=turn)
        np.floor_divide(at, turn, out=turn)
        np.take(self.tree, turn, out=read, mode="clip")
        np.equal(read, words, out=past)
        at &= (1 << self.depth) - 1
        if past.any():
            for i in np.flatnonzero(past):
                at[i] = self._settle(int(rows[i]), int(words[i]), more)
        return at

    def _settle(self, row: int, prefix: int, more: Callable[[], int]) -> int:
        """The outcome of a uniform number that begins with the 64 bits of ``prefix``: the number of C_k at or below it."""
        sums, total = self.cumulative(row)
        length = WORD_BITS

        def reached(bound: int) -> bool:
            nonlocal prefix, length
            while True:
                if prefix * total >= bound << length:
                    return True
                if (prefix + 1) * total <= bound << length:
                    return False
                prefix = prefix << WORD_BITS | more()
                length += WORD_BITS

        low, high = 0, len(sums) - 1  # the last sum is 1, which no uniform number reaches
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if reached(sums[middle]) else (low, middle)
        return low


def _depth(outcomes: int, rows: int) -> int:
    if not rows or not outcomes:
        raise SpecificationError("choices: at least one row, and at least one outcome in each.")
    depth = (outcomes - 1).bit_length()
    if rows << depth > _MOST:
        raise SpecificationError("choices: more than 2^31 entries; use fewer rows or fewer outcomes.")
    return depth


def _empty(rows: int, depth: int) -> Words:
    """Room for all trees; the places before the roots belong to nobody."""
    return np.full(rows << depth, TOP, dtype=np.uint64)


def _frozen(tree: Words) -> Words:
    tree.setflags(write=False)
    return tree


def _plant(tree: Words, depth: int, rows: int, first: int, words: Words) -> None:
    """Put the sorted words of some rows, from ``first`` on, into the trees."""
    for level in range(depth):
        nodes = words[:, (1 << depth - level - 1) - 1 :: 1 << depth - level]
        start = rows + first << level
        tree[start : start + nodes.size] = nodes.ravel()


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


def _floors(entries: Floats, rest: Ints) -> Words:
    """⌊2^64 C_k⌋ for every entry of some rows, exact; 2^64 − 1 where that is 2^64."""
    here = np.arange(len(rest))
    left = entries.copy()
    left[here, rest] = 0.0
    if not (left.min() >= 0 and left.max() <= 1):  # NaN is neither
        raise SpecificationError("choices: probabilities are from 0 to 1.")
    sums: list[Ints] = []
    implied: list[Ints] = []
    while left.any() or len(sums) < 2:
        left *= _ONE
        whole = np.floor(left)
        left -= whole
        digits = whole.astype(np.int64)
        digits[here, rest] = -digits.sum(axis=1)
        if not sums:
            digits[here, rest] += _ONE
        implied.append(digits[here, rest])
        sums.append(np.cumsum(digits, axis=1, out=digits))
    for i in range(len(sums) - 1, 0, -1):
        sums[i - 1] += sums[i] >> _DIGIT
        implied[i - 1] += implied[i] >> _DIGIT
    if implied[0].min() < 0:
        raise SpecificationError(
            "choices: the probabilities of a row, without its implied one, sum to more than 1."
        )
    high = sums[0].astype(np.uint64)
    words: Words = (high << np.uint64(_DIGIT)) | (sums[1] & (_ONE - 1)).astype(np.uint64)
    words[high >= _ONE] = TOP
    return words


def _cumulative(entries: Floats, rest: Ints, row: int) -> Cumulative:
    """The exact cumulative sums of one row of doubles, over a power of two."""
    implied = int(rest[row])
    ratios = [x.as_integer_ratio() for x in entries[row].tolist()]
    ratios[implied] = (0, 1)
    total = max(bottom for _, bottom in ratios)
    numbers = [top * (total // bottom) for top, bottom in ratios]
    numbers[implied] = total - sum(numbers)
    return list(accumulate(numbers)), total
