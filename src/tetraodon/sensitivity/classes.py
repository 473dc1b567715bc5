"""Values that known counts cannot tell apart, and what the counts of these classes are free to do.

Known counts split the domain into *classes*: the sets of cells with one signature φ(x) = (φ_1(x), …, φ_p(x)). The number of
records of each class is determined by the constraints and by n if the matrix M = [1; φ_1; …; φ_p] over the classes has full
column rank (sufficient, not necessary). Otherwise class counts can move by integer vectors u with M·u = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from ..axes import Ints
from ..constraints import Known
from ..domain import Domain
from ..errors import PolicyError, SpecificationError, Unsupported

MAX_JOINT = 2**22
MAX_RANKED = 3000
PRIME = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a list of constraints.

    Attributes:
        known: the constraints.
        whole: the domain that they speak of.
        domain: of all their attributes, in declared order.
        labels: shape (domain.size,): the class of each cell.
        signatures: shape (classes, constraints): label of each constraint.
        rank: of M over the rationals, at least; equal to the number of classes only if it truly is.
        kernel: the primitive integer vector u that spans {u: M·u = 0}, where that space has dimension 1 and it was found.
    """

    known: tuple[Known, ...]
    whole: Domain
    domain: Domain
    labels: Ints
    signatures: Ints
    rank: int
    kernel: tuple[int, ...] | None

    @property
    def count(self) -> int:
        return len(self.signatures)

    @property
    def is_determined(self) -> bool:
        """Whether n and the constraints determine every class count (the rank test)."""
        return self.rank == self.count

    @cached_property
    def records(self) -> int | None:
        """The number of records, where a whole public table states it."""
        return next((k.records for k in self.known if k.records is not None), None)

    @cached_property
    def droppable(self) -> tuple[Known, ...]:
        """Constraints without which the rank test holds, the later ones first to go."""
        kept: list[Known] = []
        dropped: list[Known] = []
        for known in self.known:
            fits = classes_of([*kept, known], self.whole).is_determined
            (kept if fits else dropped).append(known)
        return tuple(dropped)


def classes_of(known: Sequence[Known], whole: Domain) -> Classes:
    """The classes of constraints over a whole domain.

    Raises:
        Unsupported: their attributes have more than 2^22 joint cells, or more classes than the rank test takes.
    """
    every = whole.select(*dict.fromkeys(n for k in known for n in k.domain.names))
    if every.size > MAX_JOINT:
        raise Unsupported(
            "policy.constraints: the attributes of all constraints together have more than 2^22 cells; "
            "declare coarser attributes or fewer constraints."
        )
    cells = dict(zip(every.names, every.decode(np.arange(every.size, dtype=np.int64)), strict=True))
    labels = np.zeros(every.size, dtype=np.int64)
    columns = []
    for k in known:
        own = k.labels[k.domain.encode([cells[n] for n in k.domain.names])]
        columns.append(own)
        _, labels = np.unique(labels * k.n_labels + own, return_inverse=True)
    count = int(labels.max()) + 1
    _, first = np.unique(labels, return_index=True)
    signatures = np.stack([c[first] for c in columns], axis=1)
    if len(known) == 1 or any(len(np.unique(s)) == count for s in signatures.T):
        return Classes(
            tuple(known), whole, every, labels, signatures, count, None
        )  # one table tells all classes apart
    if count > MAX_RANKED:
        raise Unsupported(
            f"policy.constraints: together they tell {count:,} kinds of records apart; {MAX_RANKED:,} are offered. "
            "State fewer constraints, or one whole table that implies them."
        )
    matrix = _matrix(known, signatures)
    rank, basis = _modular_kernel(matrix)
    kernel = _lifted(matrix, basis) if count - rank == 1 else None
    return Classes(tuple(known), whole, every, labels, signatures, rank, kernel)


def _matrix(known: Sequence[Known], signatures: Ints) -> Ints:
    """Shape (1 + predicates, classes): the row of ones, then every predicate."""
    rows = [np.ones(len(signatures), dtype=np.int64)]
    for column, k in zip(signatures.T, known, strict=True):
        rows += [
            (column == label).astype(np.int64) for label in range(1, k.n_labels) if (column == label).any()
        ]
    return np.stack(rows)


def _modular_kernel(matrix: Ints) -> tuple[int, Ints | None]:
    """(rank mod a prime, a kernel vector mod it if the kernel has dimension 1).

    The rank over the rationals is at least the rank mod a prime, so a full one proves the rank test.
    """
    a = np.unique(matrix, axis=0) % PRIME
    pivots: list[int] = []
    row = 0
    for column in range(a.shape[1]):
        below = np.flatnonzero(a[row:, column])
        if not len(below):
            continue
        a[[row, row + below[0]]] = a[[row + below[0], row]]
        a[row] = a[row] * pow(int(a[row, column]), -1, PRIME) % PRIME
        others = np.flatnonzero(a[:, column])
        others = others[others != row]
        a[others] = (a[others] - a[others, column][:, None] * a[row]) % PRIME
        pivots.append(column)
        row += 1
        if row == len(a):
            break
    if a.shape[1] - row != 1:
        return row, None
    [free] = set(range(a.shape[1])) - set(pivots)
    vector = np.zeros(a.shape[1], dtype=np.int64)
    vector[free] = 1
    vector[pivots] = -a[:row, free] % PRIME
    return row, vector


def _lifted(matrix: Ints, vector: Ints | None) -> tuple[int, ...] | None:
    """The primitive integer kernel vector behind one mod a prime; None if its entries are not small fractions."""
    if vector is None:
        return None
    fractions = [_small_fraction(int(v)) for v in vector]
    if any(f is None for f in fractions):
        return None
    common = 1
    for f in fractions:
        assert f is not None
        common = common * f[1] // gcd(common, f[1])
    entries = [n * (common // d) for n, d in (f for f in fractions if f is not None)]
    divisor = gcd(*entries)
    u = [v // divisor for v in entries]
    if max(map(abs, u)) > 2**20 or (matrix @ np.array(u, dtype=np.int64)).any():
        return None
    return tuple(u)


def _small_fraction(value: int) -> tuple[int, int] | None:
    """n/d = value mod the prime with |n|, d ≤ 2^15, if there is one (the Euclidean algorithm, stopped half-way)."""
    r0, r1, t0, t1 = PRIME, value, 0, 1
    while r1 > 2**15:
        q = r0 // r1
        r0, r1, t0, t1 = r1, r0 - q * r1, t1, t0 - q * t1
    if t1 == 0 or abs(t1) > 2**15:
        return None
    return (r1, t1) if t1 > 0 else (-r1, -t1)


def check_answers(classes: Classes) -> None:
    """Refuse answers that no table has.

    Raises:
        SpecificationError: names the first constraint that contradicts those before it.
    """
    told = [k for k in classes.known if k.answers is not None]
    totals = {k.records for k in told if k.records is not None}
    if len(totals) > 1:
        raise SpecificationError("policy.constraints: the public tables have different numbers of records.")
    if len(told) < 2 or classes.count > MAX_RANKED:
        return
    for last in range(2, len(told) + 1):
        if len(told) > 64 and last < len(told):
            continue  # one look at all of them
        if not _is_possible(classes_of(told[:last], classes.whole)):
            name = told[last - 1].title if len(told) <= 64 else "one of them"
            raise SpecificationError(
                f"policy.constraints: the answers contradict each other ({name} against those before it): no table has them all."
            )


def _is_possible(classes: Classes) -> bool:
    """Whether some non-negative class counts have the stated answers."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    rows, right = [], []
    for column, k in zip(classes.signatures.T, classes.known, strict=True):
        assert k.answers is not None
        for label, answer in zip(range(k.first, k.n_labels), k.answers, strict=True):
            held = column == label
            if not held.any() and answer:
                return False
            rows.append(held.astype(np.float64))
            right.append(answer)
    found = linprog(
        np.zeros(classes.count), A_eq=csr_array(np.stack(rows)), b_eq=np.array(right, dtype=np.float64),
        bounds=(0, None), method="highs",
    )  # fmt: skip
    return bool(found.status != 2)


def refusal(classes: Classes) -> PolicyError:
    """Why constraints whose classes are not determined cannot be priced, and which to drop."""
    drop = ", ".join(k.title for k in classes.droppable[:4])
    more = f" and {len(classes.droppable) - 4} more" if len(classes.droppable) > 4 else ""
    return PolicyError(
        "policy.constraints: together they leave the counts of the kinds of records they tell apart undetermined, and the "
        f"bound for that case is too large to be of use. Without {drop}{more} the exact rule applies."
    )
