"""Golden numbers of policies with known counts: the table of small cases, and the papers' worked examples by name.

"True" is the largest change of the complete histogram over all neighbouring databases of n records, by enumeration, in
the literal reading and where every record moves along an edge. "Ours" is the package's value with n records known.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import brute, constrained

import tetraodon as td
from tetraodon.errors import PolicyError

F = Fraction


@dataclass(frozen=True)
class Golden:
    """One case: what is declared, and what comes out. ``ours`` is None where only "at least the truth" is promised."""

    name: str
    shape: tuple[int, ...]
    secrets: Any
    known: tuple[tuple[str, Any], ...]
    n: int
    literal: int
    edges: int
    ours: int | None

    @property
    def domain(self) -> Any:
        return td.Domain(
            **{name: td.Integer(0, size - 1) for name, size in zip("abc", self.shape, strict=False)}
        )

    @property
    def case(self) -> constrained.Drawn:
        return constrained.Drawn(self.domain, self.secrets, self.known, "golden", self.n)


def within(low: int, high: int) -> tuple[str, Any]:
    """The count of a range is known."""
    return "count", {"a": (low, high)}


def table(*names: str) -> tuple[str, Any]:
    """The counts of all cells of some attributes are known."""
    return "marginal", names


FULL, ATTRIBUTES = td.Full(), td.AttributeWise()
TWO_RANGES = (within(0, 1), within(3, 4))
OFF_GRAPH = (("count", {"a": [0, 2]}), ("count", {"a": [1, 3]}))
TABLE = [
    Golden("C1 one table, full", (2, 2), FULL, (table("a"),), 3, 4, 4, 4),
    Golden("C1 one table, attribute-wise", (2, 2), ATTRIBUTES, (table("a"),), 3, 2, 4, 4),
    Golden("C2 two tables, attribute-wise", (2, 2), ATTRIBUTES, (table("a"), table("b")), 4, 4, 4, 4),
    Golden("C2b no third value on the free attribute", (2, 3), ATTRIBUTES, (table("b"),), 3, 4, 4, None),
    Golden("C2c a third value on the free attribute", (3, 3), ATTRIBUTES, (table("b"),), 3, 6, 6, 6),
    Golden("C3 three classes, three records", (3, 2), FULL, (table("a"),), 3, 6, 6, 6),
    Golden("C3b too few records for three classes", (3, 2), FULL, (table("a"),), 2, 4, 4, 4),
    Golden("C5 two ranges, line", (6,), td.Within(1), TWO_RANGES, 3, 6, 4, 6),
    Golden("C5 two ranges, within 2", (6,), td.Within(2), TWO_RANGES, 3, 6, 6, 6),
    Golden("C5b two ranges, line, a fourth record", (6,), td.Within(1), TWO_RANGES, 4, 6, 4, 6),
    Golden("C6 one lone range", (6,), td.Within(1), (within(2, 3),), 3, 4, 4, 4),
    Golden("C7 one point", (6,), td.Within(1), (within(2, 2),), 3, 2, 2, 2),
    Golden("C8 ranges that tile the domain", (6,), td.Within(1), (within(0, 2), within(3, 5)), 3, 4, 2, 4),
    Golden(
        "C9 totals of the graph's own components",
        (4,), td.Partition(by={0: "x", 1: "x", 2: "y", 3: "y"}), (within(0, 1), within(2, 3)), 3, 2, 2, 2,
    ),
    Golden("C10 changes off the graph", (6,), td.Edges([(0, 1)]), OFF_GRAPH, 3, 6, 0, 6),
]  # fmt: skip


def complete(golden: Golden) -> Any:
    return td.Histogram(*golden.domain)


@pytest.mark.parametrize("golden", TABLE, ids=lambda g: g.name)
def test_truth(golden: Golden) -> None:
    adjacent, facts = golden.case.adjacent, golden.case.predicates
    for reading, value in (("literal", golden.literal), ("edges", golden.edges)):
        pairs = constrained.neighbours(adjacent, facts, golden.n, reading)
        assert constrained.largest(pairs, np.eye(len(adjacent))).value == value


@pytest.mark.parametrize("golden", TABLE, ids=lambda g: g.name)
def test_ours(golden: Golden) -> None:
    found = golden.case.policy().sensitivity(complete(golden), records=golden.n)
    assert found.value >= max(golden.literal, golden.edges)
    assert golden.ours is None or found.value == golden.ours
    assert found.rule


@pytest.mark.parametrize("golden", TABLE, ids=lambda g: g.name)
def test_ours_in_the_edges_reading(golden: Golden) -> None:
    policy = golden.case.policy()
    if not golden.edges:
        # Exact answers would disclose every secret of a table in which no other record can make up for it.
        with pytest.raises(PolicyError):
            policy.sensitivity(complete(golden), reading="edges", records=golden.n)
        return
    both = policy.sensitivity(complete(golden), records=golden.n).value
    value = policy.sensitivity(complete(golden), reading="edges", records=golden.n).value
    assert golden.edges <= value <= both


def test_the_edges_reading_is_priced_by_the_graph_of_counts() -> None:
    """C5 on the line: no chain along the edges leaves both ranges and returns, so 4 and not 6."""
    [golden] = [g for g in TABLE if g.name == "C5 two ranges, line"]
    assert golden.case.policy().sensitivity(complete(golden), reading="edges").value == 4


def test_neighbours_are_symmetric_in_both_readings() -> None:
    """C11: ordered neighbouring pairs of C5, by sets straight from the definition and by arrays."""
    [golden] = [g for g in TABLE if g.name == "C5 two ranges, line"]
    adjacent, facts = golden.case.adjacent, golden.case.predicates
    for reading, number in (("literal", 1320), ("edges", 612)):
        pairs = set(constrained.by_text(adjacent, facts, 3, reading))
        assert len(pairs) == number
        assert all((b, a) in pairs for a, b in pairs)
        fast = constrained.neighbours(adjacent, facts, 3, reading)
        ascending = {(a, b) for a, b in pairs if list(a) == sorted(a)}
        told = zip(map(tuple, fast.before.tolist()), map(tuple, fast.after.tolist()), strict=True)
        assert set(told) == ascending


@pytest.mark.parametrize("seed", range(3))
def test_both_oracles_find_the_same_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        case = constrained.drawn(rng, most=64)
        adjacent, facts = case.adjacent, case.predicates
        for reading in constrained.READINGS:
            pairs = {
                p for p in constrained.by_text(adjacent, facts, case.n, reading) if list(p[0]) == sorted(p[0])
            }
            fast = constrained.neighbours(adjacent, facts, case.n, reading)
            assert len(fast) == len(pairs)
            assert (
                set(zip(map(tuple, fast.before.tolist()), map(tuple, fast.after.tolist()), strict=True))
                == pairs
            )


# ---------- the papers' worked example: 2 × 2 × 3, the table of the first two attributes is known ----------

EXAMPLE = Golden("example 8", (2, 2, 3), FULL, (table("a", "b"),), 4, 8, 8, 8)
BEFORE = ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0))
AFTER = ((0, 1, 1), (1, 0, 1), (1, 1, 1), (0, 0, 1))


def test_example_8_1_every_pair_lifts_and_lowers_at_most_one_count() -> None:
    """The four known counts of (a, b): a pair of values that changes (a, b) lowers one and lifts one."""
    adjacent, facts = EXAMPLE.case.adjacent, EXAMPLE.case.predicates
    assert len(facts) == 4
    assert constrained.is_sparse(adjacent, facts)
    every = brute.tuples(EXAMPLE.domain)
    x, y = every.index((0, 0, 0)), every.index((0, 1, 1))
    assert [f[y] - f[x] for f in facts] == [-1, 1, 0, 0]


def test_example_8_2_the_policy_graph_is_complete() -> None:
    adjacent, facts = EXAMPLE.case.adjacent, EXAMPLE.case.predicates
    arcs = constrained.policy_graph(adjacent, facts)
    assert arcs == {*itertools.permutations(range(4), 2), (4, 5)}
    assert constrained.longest(arcs, 4) == (4, 1)


def test_example_8_3_the_complete_histogram_changes_by_eight() -> None:
    every = brute.tuples(EXAMPLE.domain)
    one, two = (tuple(every.index(r) for r in d) for d in (BEFORE, AFTER))
    pairs = constrained.neighbours(EXAMPLE.case.adjacent, EXAMPLE.case.predicates, 4, first=[one])
    assert list(two) in pairs.after.tolist()
    assert constrained.largest(pairs, np.eye(12)).value == 8
    policy = EXAMPLE.case.policy()
    for reading in ("both", "literal", "edges"):
        assert policy.sensitivity(complete(EXAMPLE), reading=reading).value == 8
    # Gaussian noise: eight cells change by one each.
    assert policy.sensitivity(complete(EXAMPLE), norm="l2").value >= 8


# ---------- special cases in closed form ----------


@pytest.mark.parametrize(("size", "free"), [(2, 2), (3, 2), (5, 4), (40, 3)])
def test_one_known_table_costs_two_per_cell(size: int, free: int) -> None:
    """Theorem 8.4: the complete histogram when the table of one attribute is known, any graph whose edges cross."""
    domain = td.Domain(a=td.Integer(0, size - 1), b=td.Integer(0, free - 1))
    policy = td.Policy(domain, td.Full(), constraints=[td.MarginalConstraint("a")])
    assert policy.sensitivity(td.Histogram("a", "b")).value == 2 * size
    assert policy.sensitivity(td.Histogram("a", "b"), records=size).value == 2 * size
    assert policy.sensitivity(td.Histogram("a", "b"), records=2).value == 4


def test_the_known_table_itself_is_free() -> None:
    domain = td.Domain(a=td.Integer(0, 3), b=td.Integer(0, 2))
    policy = td.Policy(domain, td.Full(), constraints=[td.MarginalConstraint("a")])
    assert policy.sensitivity(td.Histogram("a")).value == 0
    assert policy.sensitivity(td.CDF("a")).value == 0
    assert policy.sensitivity(td.Histogram("b")).value > 0


def test_totals_of_the_graphs_own_components_change_nothing() -> None:
    """C9 at length: constraints that no edge can break leave every cost as it is."""
    domain = td.Domain(sex=td.Categorical(["f", "m"]), age=td.Integer(0, 9))
    secrets = td.AttributeWise(age=td.Within(2))
    plain, known = (td.Policy(domain, secrets, constraints=c) for c in ([], [td.MarginalConstraint("sex")]))
    for query in (
        td.Histogram("sex", "age"),
        td.CDF("age", by="sex"),
        td.Ranges("age", "all"),
        td.Sum("age"),
    ):
        for norm in ("l1", "l2"):
            assert known.sensitivity(query, norm=norm).value == plain.sensitivity(query, norm=norm).value


def test_everything_known_costs_nothing() -> None:
    domain = td.Domain(a=td.Integer(0, 4))
    policy = td.Policy(domain, td.Full(), constraints=[td.MarginalConstraint("a")])
    for query in (td.Histogram("a"), td.CDF("a"), td.Ranges("a", "all")):
        assert policy.sensitivity(query).value == 0
