"""What measures are taken of: laws, joint tables and channel matrices, read once and by one rule.

The rule: entries are finite and non-negative, and a law sums to 1 within 1e-9; it is then divided by its sum. Counts are
not laws: ``normalised(counts)`` makes a table of them, so that a channel matrix or a table of counts given by mistake for
a joint table is refused instead of being measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOLERANCE = 1e-9


def plain_array(value: object, where: str) -> NDArray[Any]:
    """What numpy makes of a value.

    Raises:
        SpecificationError: its rows differ in length.
    """
    try:
        return np.asarray(value)
    except ValueError:
        raise SpecificationError(f"{where}: rows of different lengths.") from None


def weights(value: object, where: str, axes: tuple[str, ...] | None) -> Floats:
    """Finite non-negative numbers with the axes that are named (None: any), at least one along each, as a float64 array.

    Raises:
        SpecificationError: something else, with its kind and never its entries.
    """
    array = plain_array(value, where)
    if array.dtype.kind not in "iuf" or isinstance(value, np.ma.MaskedArray):
        raise SpecificationError(
            f"{where}: an array of numbers, none missing or masked, not {type(value).__name__}."
        )
    if array.size == 0 or (axes is None and array.ndim == 0):
        raise SpecificationError(
            f"{where}: an array with at least one entry, not empty and not a single number."
        )
    if axes is not None and array.ndim != len(axes):
        raise SpecificationError(
            f"{where}: shape ({', '.join(axes)}), not an array of {array.ndim} dimensions."
        )
    read = array.astype(np.float64)
    if not np.isfinite(read).all():
        raise SpecificationError(f"{where}: every entry is a finite number.")
    if (read < 0).any():
        raise SpecificationError(f"{where}: no entry is below 0.")
    return read


def normalised(counts: object) -> Floats:
    """Counts, or other non-negative weights of any shape, divided by their sum.

    Raises:
        SpecificationError: nothing is counted, or an entry is negative, missing or infinite.

    >>> normalised([[3, 1], [0, 4]]).tolist()
    [[0.375, 0.125], [0.0, 0.5]]
    """
    read = weights(counts, "counts", None)
    most = read.max()
    if most == 0:
        raise SpecificationError("counts: all of them are 0.")
    scaled: Floats = read / most
    return np.asarray(scaled / scaled.sum())


def law(value: object, where: str, axes: tuple[str, ...] | None) -> Floats:
    """A probability law of the given shape, by the rule of this module.

    Raises:
        SpecificationError: it is none.
    """
    read = weights(value, where, axes)
    total = read.sum()
    if abs(total - 1) > TOLERANCE:
        raise SpecificationError(
            f"{where}: sums to 1 within {TOLERANCE:g}, which this one does not; "
            "counts become a table by td.leakage.normalised(counts)."
        )
    return np.asarray(read / total)


def joint_table(value: object, where: str = "joint") -> Floats:
    """P(secret, output), shape (secrets, outputs)."""
    return law(value, where, ("secrets", "outputs"))


def stochastic(value: object, where: str, axes: tuple[str, str]) -> Floats:
    """A matrix of which every row is a law: a channel (secrets, outputs) or a classifier (outputs, secrets).

    Raises:
        SpecificationError: it is none.
    """
    read = weights(value, where, axes)
    totals = read.sum(axis=1, keepdims=True)
    if (abs(totals - 1) > TOLERANCE).any():
        raise SpecificationError(
            f"{where}: every row, shape ({', '.join(axes)}), sums to 1 within {TOLERANCE:g}."
        )
    return np.asarray(read / totals)


def classifier_of(value: object, joint: Floats, where: str = "classifier") -> Floats:
    """q(secret | output), shape (outputs, secrets), for a joint table.

    Raises:
        SpecificationError: it is none, or speaks of other outputs or secrets.
    """
    read = stochastic(value, where, ("outputs", "secrets"))
    if read.shape != joint.shape[::-1]:
        raise SpecificationError(
            f"{where}: one row for each of the {joint.shape[1]} outputs, one column for each of the "
            f"{joint.shape[0]} secrets, not {read.shape[0]} × {read.shape[1]}."
        )
    return read


def labels(value: object, outputs: int, where: str, below: int | None = None) -> Ints:
    """One label for each output: integers from 0 (to ``below``, where they name a secret).

    Raises:
        SpecificationError: they are something else.
    """
    array = plain_array(value, where)
    if array.dtype.kind not in "iu" or array.shape != (outputs,):
        raise SpecificationError(f"{where}: one whole number for each of the {outputs} outputs.")
    if (array < 0).any() or (below is not None and (array >= below).any()):
        raise SpecificationError(f"{where}: labels from 0{'' if below is None else f' to {below - 1}'}.")
    return array.astype(np.int64)


def named(joint: Floats, rule: Ints, size: int) -> Floats:
    """P(secret, label), shape (secrets, size): what is left of the outputs when each is replaced by its label."""
    found = np.zeros((joint.shape[0], size))
    np.add.at(found.T, rule, joint.T)
    return found
