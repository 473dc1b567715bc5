"""Uniform whole numbers below given bounds, exactly: words of 64 bits of which the incomplete last turn is rejected.

Of the 2^64 equal chances of a word u, the lowest 2^64 mod b are left out; the others are a multiple of b many, so that u mod b
takes each of 0, …, b − 1 equally often. A rejected word is drawn again. Below 2^31 that happens once in 2^33 draws at most,
and which words are rejected is independent of the numbers that are kept.

Source: standard (rejection to a multiple of the bound).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._tables import Ints, Words


def below_each(bounds: Ints, draw: Callable[[int], Words]) -> Ints:
    """One uniform whole number in [0, bound) for each bound from 1 on; ``draw`` gives so many uniform 64-bit words.

    >>> told = iter([[0, 5, 2**64 - 1], [9]])  # 2^64 mod 3 = 1: the word 0 is drawn again
    >>> below_each(np.array([3, 4, 10]), lambda count: np.array(next(told)[:count], dtype=np.uint64)).tolist()
    [0, 1, 5]
    """
    limit = np.asarray(bounds, dtype=np.int64).astype(np.uint64)
    first = (np.uint64(0) - limit) % limit  # 2^64 mod b
    found = np.empty(len(limit), dtype=np.int64)
    open_ = np.arange(len(limit))
    while len(open_):
        words = draw(len(open_))
        is_kept = words >= first[open_]
        kept = open_[is_kept]
        found[kept] = (words[is_kept] % limit[kept]).astype(np.int64)
        open_ = open_[~is_kept]
    return found
