"""Random orders: every order of n things with exactly the same probability.

Each place gets a random key and the keys are sorted, which is uniform as long as no two keys are equal. Keys are the
high bits of random words, and the place rides in the low bits, so that one sort in place does everything; the few runs
of equal keys are drawn longer until they differ. The order is that of infinitely long keys.

Source: derived.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ._tables import Ints, Words

MOST = 1 << 40  # places: keys then hold at least 23 bits
_CHUNK = 8192


def ordered(size: int, draw: Callable[[int], Words]) -> Ints:
    """The numbers 0 to ``size`` − 1 in a random order; ``draw`` gives so many uniform 64-bit words.

    >>> ordered(3, lambda n: np.arange(n, 0, -1, dtype=np.uint64) << np.uint64(32)).tolist()
    [2, 1, 0]
    """
    places = np.uint64((1 << size.bit_length()) - 1)
    keys = np.empty(size, dtype=np.uint64)
    for start in range(0, size, _CHUNK):
        part = keys[start : start + _CHUNK]
        np.bitwise_and(draw(len(part)), ~places, out=part)
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    tied = np.zeros(size, dtype=np.bool_)
    np.less_equal(keys[1:] ^ keys[:-1], places, out=tied[1:])
    keys &= places
    order: Ints = keys.view(np.int64)
    if tied.any():
        _untie(order, tied, draw)
    return order


def _untie(order: Ints, tied: NDArray[np.bool_], draw: Callable[[int], Words]) -> None:
    """Put runs of equal keys into the order of longer ones; ``tied`` says which elements equal the one before."""
    among = tied.copy()
    among[:-1] |= tied[1:]
    where = np.flatnonzero(among)
    run = np.cumsum(~tied[where])
    while True:
        longer = draw(len(where))
        turn = np.lexsort((longer, run))
        sorted_run, sorted_key = run[turn], longer[turn]
        if not ((sorted_run[1:] == sorted_run[:-1]) & (sorted_key[1:] == sorted_key[:-1])).any():
            break
    order[where] = order[where[turn]]
