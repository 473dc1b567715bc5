"""From a real strategy to the integer one that is released, priced and reconstructed.

Integer noise on the rows of a real matrix would tell neighbours apart with certainty (their answers differ by fractions),
and rounding the answers breaks the price. So the *matrix* is rounded: B = round(q·A) with a public q, and B is the strategy.
"""

from __future__ import annotations

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from ..sensitivity.gram import exact_gram
from .moves import Moves, classes, features, in_features, in_units
from .variance import Floats

LARGEST = 2**61
BITS = 16
# Directions seen with less than this share of the largest gain count as missing; they get rows of their own with this
# share of q.
FAINT, MENDED, SURE = 1e-6, 2**-8, 1e-10
MAX_PAIRS = 1 << 20


def rounded(matrix: Floats, square: Floats, moves: Moves, records: int, bits: int = BITS) -> Ints:
    """B = round(q·A), q = 2^bits, from which everything asked can be reconstructed.

    Every row is shifted by a whole number inside each component whose total is public, so that its entries are small:
    no move changes by that. Rows that are all zero are left out. Prefix sums are added where a direction was lost: then B
    identifies all counts, except that it may take together cells that nothing asked tells apart, so W B⁺ B = W (modulo
    public totals).

    Args:
        matrix: A, shape (rows, positions), in the scale in which the largest move is 1.
        square: V = WᵀW.
        records: B x stays below 2^61 in magnitude for up to so many.

    Raises:
        Unsupported: with so many records it would not.

    >>> from ..axes import Axis
    >>> rounded(np.tril(np.ones((2, 3))), np.eye(3), Moves.of(Axis(3, window=1), 3), 1000).tolist()
    [[32768, -32768, -32768], [32768, 32768, -32768]]
    """
    labels, closed = moves.components
    if float(np.abs(matrix).max(initial=0.0)) * 2.0**bits >= LARGEST:
        raise Unsupported(
            "optimised: the rows are too large to be rounded; scale them by their largest move."
        )
    whole = np.rint(np.ldexp(np.asarray(matrix, dtype=np.float64), bits)).astype(np.int64)
    whole = np.concatenate([whole, _missing(whole, square, moves, max(1, round(MENDED * 2**bits)))])
    order = np.argsort(labels, kind="stable")
    heads = np.flatnonzero(np.append(True, labels[order][1:] != labels[order][:-1])[: len(order)])
    if len(whole) and len(heads):
        top = np.maximum.reduceat(whole[:, order], heads, axis=1)
        low = np.minimum.reduceat(whole[:, order], heads, axis=1)
        whole -= np.where(closed, (top + low) // 2, 0)[:, labels]
    whole = whole[whole.any(axis=1)]
    if int(np.abs(whole).max(initial=0)) * max(records, 1) >= LARGEST:
        raise Unsupported("optimised: with so many records a row could exceed 2^61; use a named mechanism.")
    return whole


def _missing(whole: Ints, square: Floats, moves: Moves, weight: int) -> Ints:
    """Prefix sums for the directions that the rows do not see and something asked may need."""
    from scipy.linalg import qr

    labels = moves.components[0]
    place, first = classes(np.concatenate([whole.astype(np.float64), square]), labels)
    told, after = features(labels[first], moves.known[first])
    lost = np.arange(len(told))
    if len(whole) and len(told):
        seen = in_features(whole[:, first].astype(np.float64), told, after)
        values = np.linalg.eigvalsh(seen.T @ seen)
        if values[0] > SURE * values[-1]:
            lost = lost[:0]
        else:
            upper, pivots = qr(seen, mode="r", pivoting=True)
            gains = np.abs(np.diagonal(upper))
            lost = np.sort(pivots[int((gains > FAINT * gains[0]).sum()) :])
    rows = np.zeros((len(lost), len(told)))
    rows[np.arange(len(lost)), lost] = weight
    return np.rint(in_units(rows, told, after, len(first))).astype(np.int64)[:, place]


def largest(matrix: Ints, moves: Moves, power: int) -> int:
    """The largest move of integer rows, exact: max of Σ_r |Δ_r|^power over the moves of a record, ``leaves`` rounded up.

    Raises:
        Unsupported: the numbers are too large for 64 bits.
    """
    if not len(matrix):
        return 0
    cost = np.ceil(moves.leaves).astype(np.int64)
    a, b = moves.pairs[:, 0], moves.pairs[:, 1]
    if power == 2:
        square = exact_gram(matrix)
        own = square.diagonal()
        return max(int((own[a] + own[b] - 2 * square[a, b]).max(initial=0)), int((cost * own).max(initial=0)))
    if 2 * int(np.abs(matrix).max()) * len(matrix) * int(cost.max(initial=1)) >= LARGEST:
        raise Unsupported("optimised: the rows are too large to price exactly; use fewer bits.")
    best, columns = int((cost * np.abs(matrix).sum(axis=0)).max(initial=0)), np.ascontiguousarray(matrix.T)
    step = max(1, MAX_PAIRS // len(matrix))
    for at in range(0, len(a), step):
        chunk = np.abs(columns[a[at : at + step]] - columns[b[at : at + step]]).sum(axis=1)
        best = max(best, int(chunk.max(initial=0)))
    return best
