"""What the change of one person does to a table, by enumeration: several rows, weights, chosen rows, presence.

A person's raw rows are a map from keys to (cell, weight). Two tables are neighbours if they differ in one person, so:

* number of rows public: both maps have the same keys, and every row moves along an edge or stays;
* number of rows secret: the same for keys in both maps, and any keys may be in one map only. If presence is public, each map
  has at least one row;
* presence secret: besides, one of the two maps may be empty;
* weights public: a row that is in both maps keeps its weight; secret: it may have any other;
* of each map at most m rows are kept: the first by a fixed order of keys, or, without keys, any m that an adversary likes (also
  where the maps are the same, since then something that is not declared decides);
* a row in an exempt cell never changes. Whoever may be absent has no such rows.

What everything depends on is the change of the weighted histogram of kept rows. ``by_text`` lists these changes straight from
the sentences above, for very few tables; ``changes`` goes through the keys one after another and holds the set of changes so
far, which is the same and much faster. Only what was declared is read of the package's ``People``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Row = tuple[int, int]  # cell, weight in steps
Raw = dict[int, Row]
Step = tuple[Row | None, Row | None]
NOBODY: Raw = {}


@dataclass(frozen=True)
class Person:
    """What one person adds, and what of it is a secret.

    Attributes:
        most: rows that are kept.
        counts_secret: whether the number of rows is a secret.
        by_key: whether rows are kept by the order of their keys.
        weights: the weights that exist, in steps.
        weights_secret: whether a row's weight may change.
        presence_secret: whether she may be in one of the tables only.
        exempt: cells whose rows never change.
    """

    most: int = 1
    counts_secret: bool = False
    by_key: bool = True
    weights: tuple[int, ...] = (1,)
    weights_secret: bool = False
    presence_secret: bool = False
    exempt: frozenset[int] = frozenset()

    @property
    def top(self) -> int:
        return max(self.weights)

    @property
    def keys(self) -> int:
        """Raw rows that are enough: with as many again as are kept, all kept ones can be replaced."""
        return 2 * self.most

    @property
    def displaces(self) -> bool:
        return self.counts_secret or not self.by_key


def declared(people: Any, presence: str, exempt: Sequence[int] = ()) -> Person:
    """What a package's ``People`` declares."""
    weights, secret = (1,), False
    if people.weight is not None:
        w = people.weight
        weights = tuple(range(int(Fraction(w.low) / w.step), int(Fraction(w.high) / w.step) + 1))
        secret = w.weights == "secret"
    return Person(
        people.max_rows,
        people.row_counts == "secret",
        people.has_key,
        weights,
        secret,
        presence == "secret",
        frozenset(exempt),
    )


def row_steps(adjacent: Any, person: Person) -> list[Step]:
    """What one row may be in the two tables, if it is in both or if whether it exists is a secret."""
    size = len(adjacent)
    every = [(x, w) for x in range(size) for w in person.weights]
    found: list[Step] = [
        (one, two) for one in every for two in every if _may_become(adjacent, person, one, two)
    ]
    if person.counts_secret:
        found += [(one, None) for one in every if one[0] not in person.exempt]
        found += [(None, two) for two in every if two[0] not in person.exempt]
    return found


def _may_become(adjacent: Any, person: Person, one: Row, two: Row) -> bool:
    if one == two:
        return True
    if one[0] in person.exempt or two[0] in person.exempt:
        return False
    along = one[0] == two[0] or bool(adjacent[one[0]][two[0]])
    return along and (one[1] == two[1] or person.weights_secret)


# ---------- from the text, table by table ----------


def raw_tables(size: int, person: Person, keys: int) -> list[Raw]:
    """Every map from some of the keys to rows."""
    rows = [None, *((x, w) for x in range(size) for w in person.weights)]
    return [
        {k: row for k, row in enumerate(told) if row is not None}
        for told in itertools.product(rows, repeat=keys)
    ]


def are_neighbours(adjacent: Any, person: Person, one: Raw, two: Raw) -> bool:
    """Whether one person's raw rows may be these or those."""
    if one == two:
        return not person.by_key
    absent = not one or not two
    if absent and person.presence_secret:
        return all(cell not in person.exempt for cell, _ in (*one.values(), *two.values()))
    if absent:
        return False
    if not person.counts_secret and one.keys() != two.keys():
        return False
    return all(_may_become(adjacent, person, one[k], two[k]) for k in one.keys() & two.keys())


def kept(raw: Raw, person: Person, order: Sequence[int]) -> Iterator[list[Row]]:
    """The rows that are kept: by the order of their keys, or any."""
    if person.by_key:
        yield [raw[k] for k in order if k in raw][: person.most]
    else:
        for chosen in itertools.combinations(sorted(raw), min(person.most, len(raw))):
            yield [raw[k] for k in chosen]


def weighed(rows: Sequence[Row], size: int) -> tuple[int, ...]:
    """Weighted histogram."""
    found = [0] * size
    for cell, weight in rows:
        found[cell] += weight
    return tuple(found)


def by_text(adjacent: Any, person: Person, keys: int) -> set[tuple[int, ...]]:
    """Every change of the weighted histogram, from every pair of raw tables and every order of keys."""
    size = len(adjacent)
    tables = raw_tables(size, person, keys)
    orders = list(itertools.permutations(range(keys))) if person.by_key else [tuple(range(keys))]
    pairs = [(one, two) for one in tables for two in tables if are_neighbours(adjacent, person, one, two)]
    found = set()
    for order in orders:
        seen = {tuple(t.items()): {weighed(rows, size) for rows in kept(t, person, order)} for t in tables}
        for one, two in pairs:
            for a, b in itertools.product(seen[tuple(one.items())], seen[tuple(two.items())]):
                found.add(tuple(y - x for x, y in zip(a, b, strict=True)))
    return found - {(0,) * size}


# ---------- the same, key by key ----------


def changes(adjacent: Any, person: Person, keys: int | None = None) -> Ints:
    """The different changes of the weighted histogram of kept rows, one a row, without the zero one.

    Keys are numbered by their order, which is no loss: every map is gone through.
    """
    told = tuple(tuple(bool(v) for v in row) for row in adjacent)
    return _changes(told, person, person.keys if keys is None else keys)


@lru_cache(maxsize=512)
def _changes(adjacent: tuple[tuple[bool, ...], ...], person: Person, keys: int) -> Ints:
    size = len(adjacent)
    base = 2 * person.most * person.top + 1
    assert base**size < 2**62
    place = base ** np.arange(size, dtype=np.int64)
    found = _walked(row_steps(adjacent, person), person, keys, place)
    if person.presence_secret:
        gone: list[Step] = [
            ((x, w), None) for x in range(size) for w in person.weights if x not in person.exempt
        ]
        walked = _walked(gone, person, keys, place, both=False)
        found = np.concatenate([found, walked, -walked])
    found = np.unique(found[found != 0])
    # Digits from −mW to mW.
    shifted = found + (base // 2) * int(place.sum())
    return shifted[:, None] // place % base - base // 2


def _walked(steps: Sequence[Step], person: Person, keys: int, place: Ints, both: bool = True) -> Ints:
    """Codes of the changes that up to ``keys`` rows make together, each taking one of ``steps``.

    Args:
        both: whether she has a row in both tables.
    """
    kinds: dict[tuple[bool, bool], list[Step]] = {}
    for step in steps:
        kinds.setdefault((step[0] is not None, step[1] is not None), []).append(step)
    none = np.zeros(1, dtype=np.int64)
    # (rows before, rows after, kept before, kept after) → codes
    states: dict[tuple[int, int, int, int], Ints] = {(0, 0, 0, 0): none}
    for _ in range(keys):
        grown: dict[tuple[int, int, int, int], list[Ints]] = {k: [v] for k, v in states.items()}
        for (n, n2, k, k2), codes in states.items():
            for (here, there), listed in kinds.items():
                for take, take2 in _choices(person, here, there, k, k2):
                    moved = np.unique(
                        [
                            (place[s[1][0]] * s[1][1] if take2 and s[1] else 0)
                            - (place[s[0][0]] * s[0][1] if take and s[0] else 0)
                            for s in listed
                        ]
                    )
                    at = (
                        min(n + here, person.most + 1),
                        min(n2 + there, person.most + 1),
                        k + take,
                        k2 + take2,
                    )
                    if not person.by_key:
                        at = (n + here, n2 + there, k + take, k2 + take2)
                    grown.setdefault(at, []).append((codes[:, None] + moved[None, :]).ravel())
        states = {k: np.unique(np.concatenate(v)) for k, v in grown.items()}
    done = [
        codes
        for (n, n2, k, k2), codes in states.items()
        if k == min(n, person.most) and k2 == min(n2, person.most) and (not both or (n and n2))
    ]
    return np.concatenate([none, *done])


def _choices(person: Person, here: bool, there: bool, k: int, k2: int) -> list[tuple[int, int]]:
    """Whether a row is kept before and after, given how many are."""
    if person.by_key:
        return [(int(here and k < person.most), int(there and k2 < person.most))]
    before = [0, 1] if here and k < person.most else [0]
    after = [0, 1] if there and k2 < person.most else [0]
    return list(itertools.product(before, after))


# ---------- costs ----------


def largest(matrix: Sequence[Sequence[Any]], moved: Ints, power: int = 1) -> Fraction:
    """max over the changes of Σ_rows |A Δ|^power.

    Args:
        matrix: answers × cells, rationals.
    """
    whole, common = whole_rows(matrix)
    if not len(moved) or not len(whole):
        return Fraction(0)
    return Fraction(int((np.abs(moved @ whole.T) ** power).sum(axis=1).max()), common**power)


def whole_rows(matrix: Sequence[Sequence[Any]]) -> tuple[Ints, int]:
    """Rational rows as integer rows over one denominator."""
    told = [[Fraction(v) for v in row] for row in matrix]
    common = int(np.lcm.reduce([v.denominator for row in told for v in row] or [1]))
    return np.array([[int(v * common) for v in row] for row in told], dtype=np.int64), common
