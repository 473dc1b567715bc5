"""What an attacker looks at, as matrices: the columns as released, and the same columns unprotected.

Both matrices have one layout, so that an attacker who learnt on either can be tried on either (Scenario I does that). The
secret of the original is never in them. The released column of the same name is, as it is, in both: an attacker of the
unprotected columns is then at least as well informed as one of the release, which makes him a ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError
from .attack_tables import Column, Rows, middle
from .tables import Floats, Ints

# A published secret that is a number with so few values is looked at as a category too.
FEW = 64


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """The columns of an attack.

    Attributes:
        released, clean: (people, columns) as published and unprotected; NaN for a missing number, −1 for a missing category.
        numbers, categories: which columns are which.
        published: which columns are the released secret.
        group: the published group of each person (all 0 if the secret has no released column).
        grouped: whether there is such a column.
        names: of the columns looked at, the secret's among them.
        without_original: those that the original lacks; they are the same in both matrices.
        mixed: those that are numbers in one table and texts in the other.
    """

    released: Floats
    clean: Floats
    numbers: tuple[int, ...]
    categories: tuple[int, ...]
    published: tuple[int, ...]
    group: Ints
    grouped: bool
    names: tuple[str, ...]
    without_original: tuple[str, ...]
    mixed: tuple[str, ...]


def features(original: Rows, released: Rows, names: list[str], secret: str) -> Features:
    """Matrices of the named columns, and of the published secret where there is one.

    Args:
        original, released: the same person in each row.
        names: released columns, the secret's not among them.
        secret: the column attacked.
    """
    both: list[tuple[Floats, Floats, bool]] = []
    lacking, mixed = [], []
    for name in names:
        told = released.columns[name]
        own = original.columns.get(name)
        if own is None:
            lacking.append(name)
            own = told
        if any(a.numbers is not None and b.levels for a, b in ((told, own), (own, told))):
            mixed.append(name)
        both.append(_alike(told, own))
    first, published = len(both), released.columns.get(secret)
    group = np.zeros(released.size, np.int64)
    if published is not None:
        values, _, numeric = _alike(published, published)
        both.append((values, values, numeric))
        levels, group = np.unique(np.nan_to_num(values, nan=np.inf), return_inverse=True)
        if numeric and len(levels) <= FEW:
            codes = group.astype(np.float64)
            both.append((codes, codes, False))
    if not both:
        raise DataError(f"{released.where}: no column is left to attack with; release one beside the id.")
    numeric_at = [i for i, (_, _, numeric) in enumerate(both) if numeric]
    return Features(
        np.column_stack([r for r, _, _ in both]), np.column_stack([c for _, c, _ in both]), tuple(numeric_at),
        tuple(i for i in range(len(both)) if i not in set(numeric_at)),
        tuple(range(first, len(both))), group.ravel().astype(np.int64), published is not None,
        (*names, secret) if published is not None else tuple(names), tuple(lacking), tuple(mixed),
    )  # fmt: skip


def _alike(told: Column, own: Column) -> tuple[Floats, Floats, bool]:
    """Both columns in the form that suits both, and whether it is numbers."""
    if told.numbers is not None and own.numbers is not None:
        return told.numbers, own.numbers, True
    if told.numbers is not None or own.numbers is not None:
        # Numbers on one side, ranges on the other: a range stands where its middle is.
        middles = [_middles(c) for c in (told, own)]
        if middles[0] is not None and middles[1] is not None:
            return middles[0], middles[1], True
    levels = sorted({*_levels(told), *_levels(own)}, key=_natural)
    place = {level: i for i, level in enumerate(levels)}
    return _codes(told, place), _codes(own, place), False


def _middles(column: Column) -> Floats | None:
    if column.numbers is not None:
        return column.numbers
    found = np.array([middle(level) for level in column.levels] or [np.nan])
    if column.levels and np.isnan(found).any():
        return None
    return np.asarray(np.where(column.codes < 0, np.nan, found[column.codes]))


def _levels(column: Column) -> list[str]:
    if column.numbers is None:
        return list(column.levels)
    return [repr(v) for v in np.unique(column.numbers[~np.isnan(column.numbers)]).tolist()]


def _codes(column: Column, place: dict[str, int]) -> Floats:
    if column.numbers is None:
        own = np.array([place[level] for level in column.levels] or [-1], dtype=np.float64)
        return np.asarray(np.where(column.codes < 0, -1.0, own[column.codes]))
    return np.array([place.get(repr(v), -1) for v in column.numbers.tolist()], dtype=np.float64)


def _natural(level: str) -> tuple[float, str]:
    """Ranges in the order of their middles, then the rest by name."""
    at = middle(level)
    return (np.inf if np.isnan(at) else at, level)


@dataclass(frozen=True, eq=False, repr=False)
class Secret:
    """What is attacked.

    Attributes:
        values: per person; numbers, or the code of a category.
        ordered: whether errors are distances.
        kinds: how many different values there are.
    """

    values: Any
    ordered: bool
    kinds: int


def secret_of(column: Column, kind: str | None, where: str, name: str) -> Secret:
    """The secret without its missing values, as numbers or codes.

    Args:
        column: of the people whose secret is known.
        kind: "number", "category", or None: numbers with more than 10 different values or with fractions are numbers.
    Raises:
        DataError: a text is to be a number, or there is one value only.
    """
    if column.numbers is None:
        if kind == "number":
            raise DataError(f"{where}: column {name!r} holds texts that are no numbers; use kind='category'.")
        different, codes = np.unique(column.codes, return_inverse=True)
    else:
        different, codes = np.unique(column.numbers, return_inverse=True)
    if len(different) < 2:
        raise DataError(
            f"{where}: column {name!r} has one value for everybody; there is nothing to find out."
        )
    fine = len(different) > 10 or bool((different % 1 != 0).any())
    if column.numbers is not None and (kind == "number" or (kind is None and fine)):
        return Secret(column.numbers, True, len(different))
    return Secret(codes.ravel().astype(np.int64), False, len(different))
