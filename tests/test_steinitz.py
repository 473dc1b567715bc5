"""Known counts that do not determine how many records of each class there are: what the changes look like, and their cost.

Changed records are arcs from class to class. Neighbours are irreducible: no part of the changes keeps all known counts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
import pytest
from oracle import constrained

import tetraodon as td
from tetraodon.errors import PolicyError

Vector = tuple[int, ...]


# ---------- how many records change at once ----------


def longest_irreducible(steps: list[Vector]) -> int:
    """Length of the longest zero-sum sequence of these vectors without a shorter one inside, by going through all.

    Such a sequence can be put in an order whose partial sums stay in the box [−d, d]^d (Steinitz 1913; Grinberg and
    Sevastyanov 1980), so sequences that leave the box need not be followed.
    """
    d = len(steps[0])
    zero, best, seen = (0,) * d, 0, set()
    stack: list[tuple[Vector, Vector, frozenset[Vector]]] = [(zero, (0,) * len(steps), frozenset())]
    while stack:
        at, used, sums = stack.pop()
        for i, step in enumerate(steps):
            to = tuple(a + b for a, b in zip(at, step, strict=True))
            grown = {tuple(a + b for a, b in zip(s, step, strict=True)) for s in sums} | {step}
            counts = (*used[:i], used[i] + 1, *used[i + 1 :])
            if to == zero:
                best = max(best, sum(counts) if is_minimal(steps, counts) else 0)
            if max(map(abs, to)) <= d and zero not in grown and counts not in seen:
                seen.add(counts)
                stack.append((to, counts, sums | grown))
    return best


def is_minimal(steps: list[Vector], counts: Vector) -> bool:
    """Whether a multiset of vectors is irreducible."""
    return constrained.is_irreducible([s for s, c in zip(steps, counts, strict=True) for _ in range(c)])


def test_one_free_dimension_needs_two_records() -> None:
    assert longest_irreducible([(1,), (-1,)]) == 2


def test_two_dimensions_need_four_records_where_steinitz_says_25() -> None:
    steps = [v for v in itertools.product((-1, 0, 1), repeat=2) if any(v)]
    assert longest_irreducible(steps) == 4


def test_three_counts_may_need_more_than_two_counts() -> None:
    """Lower bounds by hand: the length grows fast, so no small constant serves for all."""
    moves = [((1, 1), (0, 2))] * 3 + [((0, 0), (1, 1))] * 2 + [((0, 2), (1, 0))] * 2 + [((1, 2), (0, 1))]
    steps = [
        [int(b[0] == v) - int(a[0] == v) for v in range(2)]
        + [int(b[1] == v) - int(a[1] == v) for v in range(3)]
        for a, b in moves
    ]
    assert len(steps) == 8
    assert constrained.is_irreducible(steps)
    assert not constrained.is_irreducible([*steps, *steps])


# ---------- a single free direction ----------


def kernel(facts: list[list[int]]) -> Vector:
    """The primitive integer vector over the classes (in order of first appearance) that all known counts ignore."""
    signatures = list(dict.fromkeys(zip(*facts, strict=True)))
    rows = [[Fraction(1)] * len(signatures)]
    rows += [[Fraction(s[i]) for s in signatures] for i in range(len(facts))]
    pivots: list[int] = []
    for column in range(len(signatures)):
        r = len(pivots)
        found = next((i for i in range(r, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[r], rows[found] = rows[found], rows[r]
        rows[r] = [v / rows[r][column] for v in rows[r]]
        for i in range(len(rows)):
            if i != r:
                rows[i] = [a - rows[i][column] * b for a, b in zip(rows[i], rows[r], strict=True)]
        pivots.append(column)
    [free] = set(range(len(signatures))) - set(pivots)
    vector = [Fraction(0)] * len(signatures)
    vector[free] = Fraction(1)
    for i, column in enumerate(pivots):
        vector[column] = -rows[i][free]
    common = lcm(*(v.denominator for v in vector))
    whole = [int(v * common) for v in vector]
    return tuple(v // gcd(*whole) for v in whole)


def arcs_of(pairs: constrained.Pairs, facts: list[list[int]]) -> set[tuple[tuple[int, int], ...]]:
    """Class changes of every neighbouring pair."""
    signatures = list(zip(*facts, strict=True))
    number = {s: i for i, s in enumerate(dict.fromkeys(signatures))}
    label = [number[s] for s in signatures]
    return {
        tuple(sorted((label[x], label[y]) for x, y in zip(one, two, strict=True) if x != y))
        for one, two in zip(pairs.before.tolist(), pairs.after.tolist(), strict=True)
    }


def net(arcs: tuple[tuple[int, int], ...], size: int) -> Vector:
    """What arcs do to the class counts."""
    return tuple(sum(b == c for _, b in arcs) - sum(a == c for a, _ in arcs) for c in range(size))


def is_one_cycle(arcs: tuple[tuple[int, int], ...]) -> bool:
    """A loop, or one simple cycle of classes."""
    following = dict(arcs)
    if len(following) < len(arcs):
        return False
    at, steps = following[arcs[0][0]], 1
    while at != arcs[0][0] and at in following and steps <= len(arcs):
        at, steps = following[at], steps + 1
    return at == arcs[0][0] and steps == len(arcs)


def is_acyclic(arcs: tuple[tuple[int, int], ...], size: int) -> bool:
    """No class is left and reached again."""
    rest = set(range(size))
    while rest:
        ends = {c for c in rest if not any(a == c and b in rest for a, b in arcs)}
        if not ends:
            return False
        rest -= ends
    return True


def drawn(rng: np.random.Generator) -> tuple[list[list[int]], Any, int]:
    """Known counts of which one direction stays free, a random graph and a number of records."""
    while True:
        size, n = int(rng.integers(4, 7)), int(rng.integers(2, 5))
        bits = int(rng.integers(2, 4))
        codes = rng.integers(0, 2**bits, size)
        facts = [((codes >> i) & 1).tolist() for i in range(bits)]
        if size**n <= 1300 and constrained.deficiency(facts, size) == 1:
            joined = np.triu(rng.random((size, size)) < rng.choice([0.3, 0.7, 1.0]), 1)
            return facts, joined | joined.T, n


@pytest.mark.parametrize("seed", range(2))
def test_changes_are_a_loop_a_simple_cycle_or_an_acyclic_bundle(seed: int) -> None:
    """Net effect on class counts 0, or plus or minus the one free direction, never a multiple of it."""
    rng, met = np.random.default_rng(seed), Counter[str]()
    for _ in range(60):
        facts, joined, n = drawn(rng)
        u = kernel(facts)
        for reading in constrained.READINGS:
            for arcs in arcs_of(constrained.neighbours(joined, facts, n, reading), facts):
                moved = net(arcs, len(u))
                if not any(moved):
                    assert is_one_cycle(arcs)
                    met["loop" if len(arcs) == 1 else "cycle"] += 1
                else:
                    assert moved in (u, tuple(-v for v in u))
                    assert is_acyclic(arcs, len(u))
                    met["bundle"] += 1
    assert min(met[k] for k in ("loop", "cycle", "bundle")) > 10


# ---------- the chain of pair counts ----------


def chain(size: int, secrets: Any) -> Any:
    """c_i + c_{i+1} is known for every neighbouring pair of cells."""
    known = [td.CountConstraint(where={"x": (i, i + 1)}) for i in range(size - 1)]
    return td.Policy(td.Domain(x=td.Integer(0, size - 1)), secrets, constraints=known)


@pytest.mark.parametrize("secrets", [td.Full(), td.Within(1)], ids=["full", "line"])
@pytest.mark.parametrize("size", [4, 6, 8])
def test_chain_of_pair_counts_costs_its_length(size: int, secrets: Any) -> None:
    """Even k: every second cell can rise by one where the others fall by one; the complete histogram moves by k."""
    facts = [[int(x in (i, i + 1)) for x in range(size)] for i in range(size - 1)]
    joined = [
        [x != y and (secrets == td.Full() or abs(x - y) == 1) for y in range(size)] for x in range(size)
    ]
    n = size // 2
    rows = {"h": np.eye(size, dtype=int), "c": np.tril(np.ones((size, size), dtype=int))}
    policy = chain(size, secrets)
    assert constrained.deficiency(facts, size) == 1
    for reading in constrained.READINGS:
        pairs = constrained.neighbours(joined, facts, n, reading)
        truth = [constrained.largest(pairs, rows[q], power).value for q in "hc" for power in (1, 2)]
        assert truth == [size, size, n, n]
        assert not constrained.changes(constrained.neighbours(joined, facts, n - 1, reading))[0].any()
    for query, value in ((td.Histogram("x"), size), (td.CDF("x"), n)):
        for norm in ("l1", "l2"):
            assert policy.sensitivity(query, norm=norm).value == value
            assert policy.sensitivity(query, norm=norm, records=n).value == value
            assert policy.sensitivity(query, norm=norm, records=n - 1).value == 0


@pytest.mark.parametrize("size", [16, 64])
def test_long_chains_are_priced_too(size: int) -> None:
    policy = chain(size, td.Full())
    assert policy.sensitivity(td.Histogram("x")).value == size
    assert policy.sensitivity(td.CDF("x")).value == size // 2


@pytest.mark.parametrize("size", [3, 5, 7, 63])
def test_chains_of_odd_length_leave_nothing_to_hide(size: int) -> None:
    """An odd chain and n determine every count."""
    policy = chain(size, td.Full())
    assert policy.sensitivity(td.Histogram("x")).value == 0
    if size < 6:
        facts = [[int(x in (i, i + 1)) for x in range(size)] for i in range(size - 1)]
        assert constrained.deficiency(facts, size) == 0
        pairs = constrained.neighbours(~np.eye(size, dtype=bool), facts, 4)
        assert constrained.largest(pairs, np.eye(size, dtype=int)).value == 0


# ---------- known tables ----------


@pytest.mark.parametrize("secrets", [td.Full(), td.AttributeWise()], ids=["full", "attribute-wise"])
def test_two_binary_tables_cost_four(secrets: Any) -> None:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 1))
    known = (("marginal", ("a",)), ("marginal", ("b",)))
    case = constrained.Drawn(domain, secrets, known, "two tables", 4)
    truth = constrained.largest(constrained.neighbours(case.adjacent, case.predicates, 4), np.eye(4)).value
    assert truth == case.policy().sensitivity(td.Histogram("a", "b")).value == 4


def test_all_pairs_of_three_bits_cost_eight() -> None:
    """The parity of the bits is free: four cells rise, four fall."""
    domain = td.Domain(**{name: td.Integer(0, 1) for name in "abc"})
    known = tuple(("marginal", pair) for pair in itertools.combinations("abc", 2))
    case = constrained.Drawn(domain, td.AttributeWise(), known, "two tables", 4)
    assert case.deficiency == 1
    truth = constrained.largest(constrained.neighbours(case.adjacent, case.predicates, 4), np.eye(8)).value
    assert truth == case.policy().sensitivity(td.Histogram("a", "b", "c")).value == 8


@pytest.mark.parametrize("free", [2, 3])
def test_a_free_attribute_doubles_what_two_binary_tables_cost(free: int) -> None:
    """Classes of several values: paths may pass through a class and change its values on the way."""
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 1), c=td.Integer(0, free - 1))
    known = (("marginal", ("a",)), ("marginal", ("b",)))
    case = constrained.Drawn(domain, td.Full(), known, "two tables", 3)
    truth = constrained.largest(
        constrained.neighbours(case.adjacent, case.predicates, 3), np.eye(4 * free)
    ).value
    found = case.policy().sensitivity(td.Histogram("a", "b", "c"))
    assert truth <= found.value
    assert found.value >= 8


@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (5, 5)])
def test_two_larger_tables_are_refused_by_name(shape: tuple[int, int]) -> None:
    """More than one direction is free and nothing useful is proved: which table to drop is said. With few records, each
    of them moves at most as far as any."""
    domain = td.Domain(a=td.Integer(0, shape[0] - 1), b=td.Integer(0, shape[1] - 1))
    policy = td.Policy(
        domain, td.Full(), constraints=[td.MarginalConstraint("a"), td.MarginalConstraint("b")]
    )
    try:
        value = policy.sensitivity(td.Histogram("a", "b")).value
    except PolicyError as error:
        assert "table of b" in str(error)
    else:
        assert value >= 8  # by the eight moves above, inside two rows and three columns
    kept = td.Policy(domain, td.Full(), constraints=[td.MarginalConstraint("a")])
    assert kept.sensitivity(td.Histogram("a", "b")).value == 2 * shape[0]
    assert policy.sensitivity(td.Histogram("a", "b"), records=3).value <= 6
