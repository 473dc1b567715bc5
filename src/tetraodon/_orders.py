"""Random orders: every order of n things with exactly the same probability.

Each place gets a random key, and the order is that of the keys, as long as they are needed: a byte says which of 256 parts a
place is in, 32 bits more say where in its part, and the few places of a part whose keys are equal are drawn longer until
they differ (Rao 1961, Sandelius 1962). Keys that go on for ever would give the same order, and every order of those is as
likely. Parts are small enough to be sorted near the processor.

Source: the two papers; ties derived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._tables import Ints, Words

MOST = 1 << 31  # places
WHOLE = 1 << 16  # places that are sorted at once
WORKERS = 4

Draw = Callable[[int], Words]


def mixed(arrays: Sequence[NDArray[Any]], draw: Draw) -> list[NDArray[Any]]:
    """Equally long arrays, all in the same random order; ``draw`` gives so many uniform 64-bit words.

    >>> keys = np.array([9, 9, 9, 9, 1, 3, 2, 0], dtype=np.uint16).view(np.uint64)
    >>> mixed([np.array([5, 6, 7, 8]), np.array([0, 1, 2, 3])], lambda n: keys)
    [array([8, 5, 7, 6]), array([3, 0, 2, 1])]
    """
    size = len(arrays[0])
    if size <= WHOLE:
        order = _part(size, draw)
        return [array[order] for array in arrays]
    parts = draw(-(-size // 8)).view(np.uint8)[:size]
    groups = np.argsort(parts, kind="stable")
    found = [array[groups] for array in arrays]
    ends = np.cumsum(np.bincount(parts, minlength=256)).tolist()

    def mix(start: int, end: int) -> None:
        order = _part(end - start, draw)
        for array in found:
            array[start:end] = array[start:end][order]

    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(mix, [0, *ends[:-1]], ends):
            pass
    return found


def _part(size: int, draw: Draw) -> Ints:
    # Keys of 16 bits are sorted digit by digit, which costs a tenth of comparing longer ones.
    keys = draw(-(-size // 2)).view(np.uint16)
    low, high = keys[:size], keys[size : 2 * size]
    order = np.argsort(low, kind="stable")
    order = order[np.argsort(high[order], kind="stable")]
    low, high = low[order], high[order]
    tied = np.zeros(size, dtype=np.bool_)
    np.logical_and(low[1:] == low[:-1], high[1:] == high[:-1], out=tied[1:])
    if tied.any():
        _untie(order, tied, draw)
    return order


def _untie(order: Ints, tied: NDArray[np.bool_], draw: Draw) -> None:
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
