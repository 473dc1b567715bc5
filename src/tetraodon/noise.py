r"""Exact discrete noise from the operating system's randomness: the only randomness of a release.

Two laws, of noise counted in the unit of the integers it is added to, z any integer:

    Laplace    P(Z = z) = (1 - r) / (1 + r) r^|z|,  r = exp(-1/scale)     (Ghosh, Roughgarden, Sundararajan 2009)
    Gaussian   P(Z = z) = exp(-z^2 / (2 sigma2)) / the sum of all         (Canonne, Kamath, Steinke 2020)

The sampler's laws are these exactly, not nearly: scale and sigma2 are rationals, each 64-bit word is looked up among
certified integer floors, and a word that the floors leave undecided is completed with more bits (``_tables`` and
``_gaussian`` have the arguments). Adding Laplace noise to integers that move by at most D in L1 along an edge costs
D/scale, with no delta; adding Gaussian noise to integers that move by at most D in L2 costs rho = D^2/(2 sigma2) of
zero-concentrated privacy. Every integer has positive probability.

``choose`` draws rows of a channel from finite laws in the same way (``_choices``), ``below`` whole numbers under a bound, and
``shuffled`` a random order.

*No seed, no generator.* Nothing here takes one. ``reserve`` draws all noise of a release **before** its private data
are read, as much as the declared scales and sizes say and nothing else; handing it out afterwards neither draws nor
searches. Each value is handed out once, a failure destroys the rest, and a process made by fork gets none of it.

*Time.* The search has a fixed depth, no branch, and tables of at most 8 KiB. Gaussian noise above sigma = 53 rejects
at most 1.5 % of what it proposes; how many, and which, is independent of the values that are kept. That reduces what
the time of a draw says about its size; it does not prove that nothing remains, since caches, the operating system and
what callers do with the noise are outside this module. ``benchmarks/noise.py`` measures it.

*Size.* Values are int64 and never wrap. Scales end at 2^50, where |Z| >= 2^62 has probability below exp(-4095), and
sigma2 at 2^100, where it is below exp(-2^22); such a value is replaced by one of the same sign with magnitude from
2^62 to 2^62 + 2^57. For answers of magnitude up to
M < 2^61 the sum with the noise does not wrap either, and the sums clipped to +-(2^62 - M) have the law that unbounded
integers would have, so clipping there is post-processing and keeps the guarantee.

*Memory.* Noise handed out is no longer held here, destroyed noise is overwritten. Python cannot promise that no copy
of the operating system's bytes lingers in freed memory.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._choices import Choices
from ._gaussian import accepted, coarse
from ._laws import (
    LARGEST_SCALE,
    LARGEST_SIGMA2,
    discrete_gaussian_quantile,
    discrete_gaussian_variance,
    discrete_laplace_pmf,
    discrete_laplace_quantile,
    discrete_laplace_variance,
    gaussian_sigma2,
    laplace_scale,
    whole_number,
)
from ._orders import MOST, mixed
from ._tables import Ints, Table, Words, convert, tables
from ._uniform import below_each
from .errors import Refused, SpecificationError
from .exact import Number

__all__ = [
    "LARGEST_SCALE",
    "LARGEST_SIGMA2",
    "Choices",
    "Reserve",
    "below",
    "choose",
    "discrete_gaussian",
    "discrete_gaussian_quantile",
    "discrete_gaussian_variance",
    "discrete_laplace",
    "discrete_laplace_pmf",
    "discrete_laplace_quantile",
    "discrete_laplace_variance",
    "fresh_name",
    "reserve",
    "shuffled",
]

_Law = tuple[str, Fraction]  # ("scale", s) is Laplace noise, ("sigma2", s) Gaussian

_CHUNK = 8192  # values drawn at a time: large enough to hide numpy's calls, small enough for the second cache


def discrete_laplace(scale: Number, size: int) -> Ints:
    """``size`` independent draws of exact discrete Laplace noise, P(z) = (1-r)/(1+r) r^|z|, r = exp(-1/scale).

    A release reserves its noise before it reads data: see ``reserve``, of which this is the one-shot form.

    Args:
        scale: exact and above 0, at most 2^50, in the unit of the integers the noise is for.
        size: how many, 0 or more.
    Returns:
        int64 array of shape (size,), the caller's own.
    Raises:
        SpecificationError: a scale that is not a positive finite number or too large, a size that is not a count.
        Refused: the operating system gives no randomness.
    Source: Ghosh, Roughgarden, Sundararajan 2009 (law); sampler derived in ``_tables``.

    >>> noise = discrete_laplace("3/7", 1000)
    >>> noise.shape, str(noise.dtype), bool(abs(noise).max() < 40)
    ((1000,), 'int64', True)
    """
    with reserve([(scale, size)]) as held:
        return held.laplace(scale, size)


def discrete_gaussian(sigma2: Number, size: int) -> Ints:
    """``size`` independent draws of exact discrete Gaussian noise, P(z) = exp(-z^2/(2 sigma2)) / the sum of all.

    Args:
        sigma2: exact and above 0, at most 2^100, in squared units of the integers the noise is for. It is the law's
            parameter: the variance (``discrete_gaussian_variance``) is a little less where sigma2 is small.
        size: how many, 0 or more.
    Returns:
        int64 array of shape (size,), the caller's own.
    Raises:
        SpecificationError: a sigma2 that is not a positive finite number or too large, a size that is not a count.
        Refused: the operating system gives no randomness.
    Source: Canonne, Kamath, Steinke 2020 (law and its privacy); sampler derived in ``_gaussian``.

    >>> noise = discrete_gaussian("30.25", 1000)
    >>> noise.shape, str(noise.dtype), bool(abs(noise).max() < 60)
    ((1000,), 'int64', True)
    """
    with reserve((), [(sigma2, size)]) as held:
        return held.gaussian(sigma2, size)


def reserve(draws: Sequence[tuple[Number, int]], gaussian: Sequence[tuple[Number, int]] = ()) -> Reserve:
    """All noise of one release, drawn now, before private data are read.

    Args:
        draws: (scale, size) pairs, as for ``discrete_laplace``; sizes at equal scales add up. They must come from
            the declaration (policy, query, budget), never from rows: how much is drawn can be seen from outside.
        gaussian: (sigma2, size) pairs in the same way, as for ``discrete_gaussian``.
    Returns:
        A ``Reserve``, to be used in a ``with`` block around the release.
    Raises:
        SpecificationError: as ``discrete_laplace`` and ``discrete_gaussian``; nothing is drawn then.
        Refused: the operating system gives no randomness; what was drawn is destroyed.
    Source: derived (math of the pool: each value once, destroyed on failure, one process).

    >>> with reserve([(2, 100), ("1/2", 50), (2, 20)], gaussian=[(2, 10)]) as held:
    ...     first, second, third = held.laplace(2, 100), held.laplace("1/2", 50), held.laplace(2, 20)
    ...     fourth = held.gaussian(2, 10)
    >>> len(first), len(second), len(third), len(fourth)
    (100, 50, 20, 10)
    """
    totals: dict[_Law, int] = {}
    for scale, size in draws:
        law = "scale", laplace_scale(scale)
        totals[law] = totals.get(law, 0) + _count(size)
    for sigma2, size in gaussian:
        law = "sigma2", gaussian_sigma2(sigma2)
        totals[law] = totals.get(law, 0) + _count(size)
    held = Reserve()
    try:
        for law, total in totals.items():
            _FILLERS[law[0]](held._open(law, total), law[1])
    except BaseException:
        held.close()
        raise
    return held


class Reserve:
    """Noise drawn before the data are read. Made by ``reserve``; each value is handed out at most once.

    Leaving the ``with`` block, by its end or by an exception, destroys what is left. A process made by fork cannot
    use a reserve it inherited, and a reserve cannot be copied or pickled. Threads may share it.

    >>> with reserve([(10, 5)]) as held:
    ...     held
    ...     noise = held.laplace(10, 5)
    ...     held.laplace(10, 1)
    Traceback (most recent call last):
    tetraodon.errors.Refused: noise: 1 draw(s) at scale 10 asked, 0 left in the reserve; reserve all of a release first.
    >>> held
    <Reserve: closed>
    """

    __slots__ = ("__weakref__", "_born", "_closed", "_lock", "_pools")

    def __init__(self) -> None:
        self._pools: dict[_Law, Ints] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._born = _process()
        _living.add(self)

    def laplace(self, scale: Number, size: int) -> Ints:
        """The next ``size`` values reserved at ``scale``: an int64 array, the caller's own. Draws nothing.

        Raises:
            SpecificationError: as ``discrete_laplace``.
            Refused: fewer are left at this scale, the reserve is closed, or it belongs to another process.
        """
        return self._take(("scale", laplace_scale(scale)), _count(size))

    def gaussian(self, sigma2: Number, size: int) -> Ints:
        """The next ``size`` values reserved at ``sigma2``, in the same way. Draws nothing.

        Raises:
            SpecificationError: as ``discrete_gaussian``.
            Refused: as ``laplace``.
        """
        return self._take(("sigma2", gaussian_sigma2(sigma2)), _count(size))

    def close(self) -> None:
        """Destroy what is left; the reserve then refuses to be used."""
        with self._lock:
            self._destroy()

    def __enter__(self) -> Reserve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "<Reserve: closed>"
        return f"<Reserve: {sum(map(len, self._pools.values()))} draw(s) left>"

    def __reduce__(self) -> NoReturn:
        raise Refused("noise: a reserve belongs to one process and cannot be copied or pickled.")

    def _take(self, law: _Law, wanted: int) -> Ints:
        if self._born != _process():
            raise Refused("noise: this reserve was drawn by another process; reserve again in this one.")
        with self._lock:
            if self._closed:
                raise Refused("noise: this reserve is closed and its noise destroyed; reserve again.")
            pool = self._pools.get(law)
            left = 0 if pool is None else len(pool)
            if pool is None or wanted > left:
                raise Refused(
                    f"noise: {wanted} draw(s) at {law[0]} {law[1]} asked, {left} left in the reserve; "
                    "reserve all of a release first."
                )
            # The pool moves on first: an interrupt here may lose noise, never hand it out twice.
            if wanted == left and pool.base is None:
                self._pools[law] = np.zeros(0, dtype=np.int64)
                return pool
            self._pools[law] = pool[wanted:]
            taken = pool[:wanted].copy()
            pool[:wanted] = 0
            return taken

    def _open(self, law: _Law, size: int) -> Ints:
        try:
            self._pools[law] = np.zeros(size, dtype=np.int64)
        except (MemoryError, ValueError, OverflowError):
            raise Refused(f"noise: {size} draws do not fit in memory; release fewer cells at once.") from None
        return self._pools[law]

    def _destroy(self) -> None:
        self._closed = True
        for pool in self._pools.values():
            pool.fill(0)
        self._pools.clear()

    def _drop_in_child(self) -> None:
        self._lock = threading.Lock()  # the parent's may be held by a thread that does not exist here
        self._destroy()


_living: weakref.WeakSet[Reserve] = weakref.WeakSet()
_forks = 0


def _process() -> tuple[int, int]:
    """This process: its number, and how many forks lie between it and the first (numbers are used again)."""
    return os.getpid(), _forks


def _after_fork() -> None:
    global _forks
    _forks += 1
    for held in list(_living):
        held._drop_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


def choose(choices: Choices, rows: Ints) -> Ints:
    """One outcome of the named row's law for each element, drawn independently with exactly that row's probabilities.

    Args:
        choices: the laws, see ``Choices.exact`` and ``Choices.of``.
        rows: whole numbers from 0 to ``choices.n_rows`` − 1, shape (n,): the law of each draw.
    Returns:
        int64 array of shape (n,), the caller's own.
    Raises:
        SpecificationError: rows that are not such numbers; the message shows none of them.
        Refused: the operating system gives no randomness.
    Source: derived in ``_choices``.

    >>> choose(Choices.of([[1, 0], [0, 1]]), np.array([0, 1, 1])).tolist()
    [0, 1, 1]
    """
    named = np.asarray(rows)
    if named.ndim != 1 or named.dtype.kind not in "iu":
        raise SpecificationError("choose: rows are whole numbers, one for each draw.")
    if named.size and not 0 <= int(named.min()) <= int(named.max()) < choices.n_rows:
        raise SpecificationError(f"choose: a row outside 0 to {choices.n_rows - 1}.")
    drawn = np.empty(len(named), dtype=np.int64)
    for start in range(0, len(named), _CHUNK):
        drawn[start : start + _CHUNK] = choices.drawn(named[start : start + _CHUNK], _row)
    return drawn


def below(bounds: Ints) -> Ints:
    """One whole number from 0 to bound − 1 for each element, every one of them with exactly the same probability.

    Args:
        bounds: whole numbers of 1 or more, shape (n,).
    Returns:
        int64 array of shape (n,), the caller's own.
    Raises:
        SpecificationError: bounds that are not such numbers; the message shows none of them.
        Refused: the operating system gives no randomness.
    Source: derived in ``_uniform``.

    >>> below(np.array([1, 1])).tolist(), set(below(np.full(200, 3)).tolist())
    ([0, 0], {0, 1, 2})
    """
    limits = np.asarray(bounds)
    if limits.ndim != 1 or limits.dtype.kind not in "iu" or (limits.size and int(limits.min()) < 1):
        raise SpecificationError("below: bounds are whole numbers of 1 or more, one for each draw.")
    if limits.size and int(limits.max()) >= 1 << 63:
        raise SpecificationError("below: bounds are below 2^63.")
    drawn = np.empty(len(limits), dtype=np.int64)
    for start in range(0, len(limits), _CHUNK):
        drawn[start : start + _CHUNK] = below_each(limits[start : start + _CHUNK], _row)
    return drawn


def shuffled(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Copies of equally long arrays, all in the same random order, every order with exactly the same probability.

    Raises:
        SpecificationError: no arrays, arrays of different lengths, or more than 2^31 places.
        Refused: the operating system gives no randomness.
    Source: Rao 1961, Sandelius 1962; derived in ``_orders``.

    >>> one, two = shuffled(np.arange(5), np.arange(5))
    >>> one.tolist() == two.tolist(), sorted(one.tolist())
    (True, [0, 1, 2, 3, 4])
    """
    if len({len(array) for array in arrays}) != 1 or len(arrays[0]) > MOST:
        raise SpecificationError("shuffled: arrays of one length, of at most 2^31 elements.")
    return mixed(arrays, _row)


def fresh_name(size: int) -> str:
    """``size`` random bytes in hexadecimal: a name that nobody else has. Not noise.

    >>> len(fresh_name(8))
    16
    """
    return _entropy(-(-size // 8))[:size].hex()


def _count(value: object) -> int:
    count = whole_number(value, "size")
    if count < 0:
        raise SpecificationError("size: must be 0 or more.")
    return count


def _entropy(count: int) -> bytes:
    try:
        return os.urandom(8 * count)
    except (OSError, NotImplementedError):
        raise Refused("noise: the operating system gives no randomness; nothing was released.") from None


def _one_more_word() -> int:
    return int.from_bytes(_entropy(1), "little")


def _words(rows: int, count: int) -> Words:
    return _row(rows * count).reshape(rows, count)


def _row(count: int) -> Words:
    return np.frombuffer(_entropy(count), dtype=np.uint64)


def _fill(pool: Ints, digits: tuple[Table, ...]) -> None:
    for start in range(0, len(pool), _CHUNK):
        part = pool[start : start + _CHUNK]
        convert(digits, _words(len(digits), len(part)), _one_more_word, part)


def _fill_laplace(pool: Ints, scale: Fraction) -> None:
    _fill(pool, tables(scale))


def _fill_gaussian(pool: Ints, sigma2: Fraction) -> None:
    """How many proposals are drawn says which were rejected, of which the accepted values are independent."""
    law, table = coarse(sigma2)
    if law.unit == 1:  # nothing is rejected
        _fill(pool, (table,))
        return
    done = 0
    while done < len(pool):
        left = len(pool) - done
        values = accepted(law, table, _words(2, min(_CHUNK, left + left // 32 + 8)), _one_more_word)[:left]
        pool[done : done + len(values)] = values
        done += len(values)


_FILLERS: dict[str, Callable[[Ints, Fraction], None]] = {"scale": _fill_laplace, "sigma2": _fill_gaussian}
