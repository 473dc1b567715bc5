"""Formulas that look right and are not: each with the small case that breaks it, and what the package says instead.

Every test first shows by enumeration of neighbouring databases that the formula is too small, and then that ours is not.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import composed, constrained
from oracle.composed import Noisy, PerRecord, Promise

import tetraodon as td
from tetraodon import zcdp
from tetraodon.errors import BudgetError, PolicyError, Unsupported
from tetraodon.loss import Loss
from tetraodon.pricing import candidates
from tetraodon.sensitivity import query_layers, stacked
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

F = Fraction
ONE = F(1)


def integers(size: int) -> Any:
    """One attribute x with values 0 … size − 1."""
    return td.Domain(x=td.Integer(0, size - 1))


def policy(size: int, secrets: Any, *known: Any) -> Any:
    """A policy on 0 … size − 1; a known count is a pair (low, high) or a list of values."""
    told = [td.CountConstraint(where={"x": w}) for w in known]
    return td.Policy(integers(size), secrets, constraints=told)


def fact(size: int, values: Any) -> list[int]:
    """A known count as a row: a pair (low, high), ends included, or a list of values."""
    kept = range(values[0], values[1] + 1) if isinstance(values, tuple) else values
    return [int(v in kept) for v in range(size)]


def line(size: int, theta: int = 1) -> Any:
    """Values at most theta apart are secret from each other."""
    return [[0 < abs(x - y) <= theta for y in range(size)] for x in range(size)]


def full(size: int) -> Any:
    """All values are secret from each other."""
    return [[x != y for y in range(size)] for x in range(size)]


def listed(size: int, *pairs: tuple[int, int]) -> Any:
    """Exactly these pairs are secret."""
    return [[(x, y) in pairs or (y, x) in pairs for y in range(size)] for x in range(size)]


def cumulative(size: int) -> Any:
    """The rows of the cumulative histogram."""
    return [[int(v <= at) for v in range(size)] for at in range(size)]


def identity(size: int) -> Any:
    """The rows of the complete histogram."""
    return [[int(v == at) for v in range(size)] for at in range(size)]


def true(
    adjacent: Any, facts: Any, n: int, matrix: Any, reading: str = "literal", power: int = 1
) -> Fraction:
    """The largest change over all neighbouring databases."""
    return constrained.largest(constrained.neighbours(adjacent, facts, n, reading), matrix, power).value


def term(told: Any, query: Any, factor: Fraction = ONE) -> Term:
    """What one release of a query's own rows observes, at a loss of ``factor`` per unit."""
    resolved = resolve(query, told.domain)
    return Term(resolved, query_layers(resolved), factor)


# ---------- known counts: the cost of every query but the complete histogram ----------


def test_cumulative_histogram_on_the_line_costs_eight_not_one() -> None:
    """T = 0 … 9, neighbouring values are secret, the number of values 0 … 4 is known: (0, 5) → (9, 4)."""
    size, known = 10, (0, 4)
    facts = [fact(size, known)]
    pairs = constrained.neighbours(line(size), facts, 2)
    assert constrained.edge_move(line(size), cumulative(size)) == 1
    assert constrained.largest(pairs, cumulative(size)).value == 8
    assert [9, 4] in pairs.after[(pairs.before == [0, 5]).all(axis=1)].tolist()
    for reading in ("both", "literal"):
        found = policy(size, td.Within(1), known).sensitivity(td.CDF("x"), reading=reading)
        assert found.value == 8


def test_ordered_mechanism_on_the_line_then_loses_eight_epsilon() -> None:
    """Prefix sums with noise of scale 1/ε, as published, are 8ε-private."""
    epsilon, size = F(1, 2), 10
    released = Noisy(cumulative(size), [1 / epsilon] * size)
    assert composed.worst([released], Promise(line(size)).neighbours(2)).value == epsilon
    assert (
        composed.worst([released], Promise(line(size), [fact(size, (0, 4))]).neighbours(2)).value
        == 8 * epsilon
    )


def test_edges_times_the_longest_cycle_of_counts_is_too_small() -> None:
    """The same case: α = 0 and ξ = 2, so "edge formula × max{α, ξ}" says 2."""
    facts = [fact(10, (0, 4))]
    for adjacent in (line(10), full(10)):
        assert max(constrained.longest(constrained.policy_graph(adjacent, facts), 1)) == 2
    assert constrained.edge_move(line(10), cumulative(10)) * 2 < true(line(10), facts, 2, cumulative(10))


def test_centred_cluster_sums_on_the_line_change_by_nine_not_one() -> None:
    """k-means: sums about the centre 5 of the records nearer to 2 and nearer to 8; the number of values 0 … 2 is known."""
    size, known = 11, (0, 2)
    sums = [[x - 5 if (x <= 5) == is_first else 0 for x in range(size)] for is_first in (True, False)]
    assert constrained.edge_move(line(size), sums) == 1
    assert true(line(size), [fact(size, known)], 2, sums) == 9
    assert policy(size, td.Within(1), known).sensitivity(td.Linear(sums, "x")).value >= 9


def test_nested_counts_are_not_read_off_the_policy_graph() -> None:
    """Full graph on 0 … 5, #[0, 3] and #[0, 1] known: a value may cross both at once, so Q is not sparse."""
    facts = [fact(6, (0, 3)), fact(6, (0, 1))]
    assert not constrained.is_sparse(full(6), facts)
    assert 2 * max(constrained.longest(constrained.policy_graph(full(6), facts), 2)) == 4
    assert true(full(6), facts, 3, identity(6)) == 6
    told = policy(6, td.Full(), (0, 3), (0, 1))
    for reading in ("both", "edges"):
        assert told.sensitivity(td.Histogram("x"), reading=reading).value == 6


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_chain_of_nested_ranges_costs_two_per_class(p: int) -> None:
    size = 2 * (p + 1)
    facts = [fact(size, (0, 2 * j + 1)) for j in range(p)]
    assert 2 * max(constrained.longest(constrained.policy_graph(full(size), facts), p)) == 4
    assert true(full(size), facts, p + 1, identity(size)) == 2 * (p + 1)
    told = policy(size, td.Full(), *((0, 2 * j + 1) for j in range(p)))
    assert told.sensitivity(td.Histogram("x")).value == 2 * (p + 1)


def test_the_cheapest_arc_on_the_graph_may_not_be_assumed() -> None:
    """Classes {0, 3}, {1, 4}, {2}: some arc must lie on the graph, but which one is up to the adversary."""
    adjacent = listed(5, (0, 1), (2, 3), (2, 4), (3, 4))
    classes = ([0, 3], [1, 4], [2])
    facts = [fact(5, c) for c in classes]

    def longest(one: list[int], two: list[int], on_graph: bool) -> int:
        return max(abs(x - y) for x in one for y in two if not on_graph or adjacent[x][y])

    arcs = [(classes[i], classes[(i + 1) % 3]) for i in range(3)]
    whole = sum(longest(a, b, False) for a, b in arcs)
    cheapest = min(whole - longest(a, b, False) + longest(a, b, True) for a, b in arcs)
    assert cheapest == 5 < true(adjacent, facts, 3, cumulative(5)) == 6
    told = policy(5, td.Edges([(0, 1), (2, 3), (2, 4), (3, 4)]), *classes)
    assert told.sensitivity(td.CDF("x")).value >= 6


def test_outputs_attached_to_records_may_not_use_class_diameters() -> None:
    """T = {0, 1}, the number of zeros is known: the histogram cannot change, yet two records swap their values."""
    epsilon = F(1)
    pairs = Promise(full(2), [fact(2, [0])]).neighbours(2)
    response = PerRecord([[F(0), epsilon], [epsilon, F(0)]])
    assert composed.worst([Noisy(identity(2), [1 / epsilon] * 2)], pairs).value == 0
    assert composed.worst([response], pairs).value == 2 * epsilon
    told = policy(2, td.Full(), [0])
    assert told.sensitivity(td.Histogram("x")).value == 0
    own = term(told, td.Histogram("x"), epsilon / 2)
    by_record = Term(own.resolved, own.layers, own.factor, is_by_record=True)
    assert stacked([by_record], told.neighbourhood).value >= 2 * epsilon


def test_weighted_sums_of_records_may_not_use_class_diameters() -> None:
    """The same swap moves Σ w_i x_i by |w_1 − w_2|."""
    pairs = constrained.neighbours(full(2), [fact(2, [0])], 2)
    assert constrained.largest_weighted(pairs, [0, 1], [1, 5]) == 4


def test_moves_inside_a_class_are_never_dropped() -> None:
    """Classes {0, 1, 2} and {3}, edges 01 and 23: a record that moves alone inside its class changes the answer by 2, where
    every cycle of classes has an arc along 23 and changes it by at most 1."""
    adjacent, facts, rows = listed(4, (0, 1), (2, 3)), [fact(4, (0, 2))], [[-1, 1, 0, 0]]
    assert true(adjacent, facts, 3, rows) == 2
    told = policy(4, td.Edges([(0, 1), (2, 3)]), (0, 2))
    for reading, norm in itertools.product(("both", "edges", "literal"), ("l1", "l2")):
        assert told.sensitivity(td.Linear(rows, "x"), reading=reading, norm=norm).value == (
            2 if norm == "l1" else 4
        )


def test_moves_inside_a_class_count_where_no_cycle_has_room_for_it() -> None:
    """Classes {0, 1}, {2}, {3}, edges 01 and 23: with two records no cycle with an edge comes through {0, 1}."""
    adjacent, facts = listed(4, (0, 1), (2, 3)), [fact(4, [2]), fact(4, [3])]
    assert true(adjacent, facts, 2, cumulative(4)) == 1
    told = policy(4, td.Edges([(0, 1), (2, 3)]), [2], [3])
    for reading in ("both", "edges", "literal"):
        assert told.sensitivity(td.CDF("x"), reading=reading, records=2).value == 1


# ---------- a total that is constant along every edge ----------


def test_a_total_of_connected_values_may_still_move() -> None:
    """G = {01, 23} and #{0, 2} known: the total of {0, 1} is constant along every edge and moves by (0, 3) → (1, 0)."""
    adjacent, facts = listed(4, (0, 1), (2, 3)), [fact(4, [0, 2])]
    total = [[1, 1, 0, 0]]
    assert constrained.edge_move(adjacent, total) == 0
    assert true(adjacent, facts, 2, total) == 1
    told = policy(4, td.Edges([(0, 1), (2, 3)]), [0, 2])
    assert told.sensitivity(td.Linear(total, "x")).value == 1
    assert policy(4, td.Edges([(0, 1), (2, 3)])).sensitivity(td.Linear(total, "x")).value == 0


# ---------- closed forms of the papers outside their reading ----------


def two_by_two_by_two(secrets: Any) -> tuple[Any, Any, Any]:
    """Three bits; the tables of a and of b are known."""
    domain = td.Domain(**{name: td.Integer(0, 1) for name in "abc"})
    known = (("marginal", ("a",)), ("marginal", ("b",)))
    case = constrained.Drawn(domain, secrets, known, "two tables", 4)
    return case.adjacent, case.predicates, case.policy()


def test_disjoint_tables_attribute_wise_cost_eight_not_four() -> None:
    """Theorem 8.5 (2 · the largest table) holds where every record moves along an edge, and fails otherwise."""
    adjacent, facts, told = two_by_two_by_two(td.AttributeWise())
    assert true(adjacent, facts, 4, identity(8), "edges") == 4
    assert true(adjacent, facts, 4, identity(8)) == 8
    for records in (4, None):
        assert told.sensitivity(td.Histogram("a", "b", "c"), records=records).value >= 8


def test_two_tables_under_the_full_graph_move_eight_records() -> None:
    """A of 2 and B of 3 values known, a free third attribute: 16 of the complete histogram, where 2 · the largest table
    says 6, and the *finer* joint table 12: knowing more can cost less."""
    moves = [((1, 1), (0, 2))] * 3 + [((0, 0), (1, 1))] * 2 + [((0, 2), (1, 0))] * 2 + [((1, 2), (0, 1))]
    steps = [
        [int(two[0] == v) - int(one[0] == v) for v in range(2)]
        + [int(two[1] == v) - int(one[1] == v) for v in range(3)]
        for one, two in moves
    ]
    assert constrained.is_irreducible(steps)
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 2), c=td.Integer(0, 7))
    query = td.Histogram("a", "b", "c")
    finer = td.Policy(domain, td.Full(), constraints=[td.MarginalConstraint("a", "b")])
    assert finer.sensitivity(query).value == 12
    both = [td.MarginalConstraint("a"), td.MarginalConstraint("b")]
    try:
        value = td.Policy(domain, td.Full(), constraints=both).sensitivity(query).value
    except PolicyError as error:
        assert "table of" in str(error)
    else:
        assert value >= 16
    assert td.Policy(domain, td.Full(), constraints=both).sensitivity(query, records=8).value == 16


def test_disjoint_rectangles_cost_six_not_four() -> None:
    """Theorem 8.6 on the line of six with two ranges: 4 along the edges, 6 in the literal reading."""
    facts = [fact(6, (0, 1)), fact(6, (3, 4))]
    assert true(line(6), facts, 3, identity(6), "edges") == 4
    assert true(line(6), facts, 3, identity(6)) == 6
    told = policy(6, td.Within(1), (0, 1), (3, 4))
    assert told.sensitivity(td.Histogram("x"), reading="edges").value == 4
    assert told.sensitivity(td.Histogram("x")).value == 6


def test_no_neighbour_is_no_protection() -> None:
    """G = {ab}, #{a, a'} and #{b, b'} known. Along the edge, records can only swap a and b, so the histogram never changes
    and "sensitivity 0" would publish it exactly; yet a table with a and no b has no neighbour at all. Refused."""
    a, b, c, d = 0, 1, 4, 5
    adjacent, facts = listed(6, (a, b)), [fact(6, [0, 2]), fact(6, [1, 3])]
    pairs = constrained.neighbours(adjacent, facts, 3, "edges")
    assert len(pairs) and constrained.largest(pairs, identity(6)).value == 0
    assert not (pairs.before == [a, c, d]).all(axis=1).any()
    told = policy(6, td.Edges([(0, 1)]), [0, 2], [1, 3])
    with pytest.raises(PolicyError, match="edges"):
        told.sensitivity(td.Histogram("x"), reading="edges")
    assert told.sensitivity(td.Histogram("x")).value == 6


def test_hops_say_nothing_about_chains_of_neighbours() -> None:
    """On the line 0 … 3 with #{0, 1} known, a lone record at 1 is one hop from 2 and no chain of neighbours leads there."""
    facts = [fact(4, (0, 1))]
    pairs = constrained.neighbours(line(4), facts, 1)
    reached, grown = {1}, True
    while grown:
        more = {int(b[0]) for a, b in zip(pairs.before, pairs.after, strict=True) if int(a[0]) in reached}
        grown = not more <= reached
        reached |= more
    assert reached == {0, 1}


def test_explain_prints_no_distances_where_counts_are_known() -> None:
    """What k hops cost holds without known counts only."""
    assert "9 hops" in policy(10, td.Within(1)).explain(epsilon=1)
    text = policy(10, td.Within(1), (0, 4)).explain(epsilon=1)
    assert "hops" not in text
    assert "number of records with x from 0 to 4" in text


# ---------- several releases: mixed policies, constraints that come later ----------


def test_sums_along_edges_are_too_small_with_known_counts() -> None:
    """One release of prefix sums, edge sum 1, real loss 8; and the package's stacked loss."""
    released = Noisy(cumulative(10), [F(1)] * 10)
    pairs = Promise(line(10), [fact(10, (0, 4))]).neighbours(2)
    assert composed.edge_sum([released], line(10)) == 1
    assert composed.worst([released], pairs).value == 8
    told = policy(10, td.Within(1), (0, 4))
    assert stacked([term(told, td.CDF("x"))], told.neighbourhood).value == 8


def test_a_count_that_becomes_known_raises_what_past_releases_cost() -> None:
    """The same release before and after: 1 and 8."""
    released = [Noisy(cumulative(10), [F(1)] * 10)]
    before, after = Promise(line(10)), Promise(line(10), [fact(10, (0, 4))])
    assert [w.value for w in composed.worst_of(released, [before, after], 2)] == [1, 8]
    for told, value in ((policy(10, td.Within(1)), 1), (policy(10, td.Within(1), (0, 4)), 8)):
        assert stacked([term(told, td.CDF("x"))], told.neighbourhood).value == value


def test_exact_totals_of_one_policy_are_disclosures_under_another() -> None:
    """Free under a partition, infinite on pairs that cross it: a ledger that forgets free releases is wrong."""
    totals = Noisy([[1, 1, 0, 0], [0, 0, 1, 1]], [F(0), F(0)])
    cells = listed(4, (0, 1), (2, 3))
    assert [w.value for w in composed.worst_of([totals], [Promise(cells), Promise(full(4))], 2)] == [
        0,
        math.inf,
    ]


def test_knowing_more_can_cost_less_and_gives_nothing_back() -> None:
    """All counts known: nothing can change any more, but what was at stake before was at stake."""
    assert true(line(4), [], 3, cumulative(4)) == 1
    assert true(line(4), [fact(4, [v]) for v in range(3)], 3, cumulative(4)) == 0


def test_counts_known_together_cost_more_than_each_alone() -> None:
    """Two ranges under the full graph: 4 and 4, together 6, so the union of all declared counts is always in force."""
    one, two = fact(6, (0, 1)), fact(6, (2, 3))
    assert [true(full(6), facts, 4, identity(6)) for facts in ([one], [two], [one, two])] == [4, 4, 6]
    for known, value in ((((0, 1),), 4), (((2, 3),), 4), (((0, 1), (2, 3)), 6)):
        assert policy(6, td.Full(), *known).sensitivity(td.Histogram("x")).value == value


def test_the_sharp_form_of_a_stack_is_not_the_sum_of_its_parts() -> None:
    """G = {02}, #{0, 1} known: 0 and 2 apart, 4 by the sharp form of the stack, truly 2: minima are taken release by
    release before they are added."""
    adjacent, facts = listed(4, (0, 2)), [fact(4, [0, 1])]
    one, two = [[1, 1, 0, 0]], [[0, 2, 0, 2]]
    parts = [true(adjacent, facts, 3, rows) for rows in (one, two)]
    assert [*parts, true(adjacent, facts, 3, one + two)] == [0, 2, 2]
    told = policy(4, td.Edges([(0, 2)]), [0, 1])
    terms = [term(told, td.Linear(rows, "x")) for rows in (one, two)]
    assert stacked(terms, told.neighbourhood).value == 2


def test_record_outputs_and_histograms_stack_along_one_cycle() -> None:
    """A histogram and a response per record on the same table: their losses add for one pair of databases."""
    facts = [fact(4, (0, 1))]
    pairs = Promise(line(4), facts).neighbours(3)
    counts = Noisy(identity(4), [F(2)] * 4)
    response = PerRecord([[F(int(x != y), 3) for y in range(4)] for x in range(4)])
    apart = [composed.worst([r], pairs).value for r in (counts, response)]
    assert apart == [2, F(2, 3)]
    together = composed.worst([counts, response], pairs).value
    assert together == sum(apart)
    told = policy(4, td.Within(1), (0, 1))
    own = term(told, td.Histogram("x"), F(1, 2))
    by_record = Term(own.resolved, own.layers, F(1, 6), is_by_record=True)
    assert stacked([own, by_record], told.neighbourhood).value >= together


def test_gaussian_losses_of_a_histogram_add_squares_not_diameters() -> None:
    """Two ranges under the full graph: squared change 6, where (Σ diameters)² says 18."""
    facts = [fact(6, (0, 1)), fact(6, (2, 3))]
    assert true(full(6), facts, 4, identity(6), power=2) == 6
    told = policy(6, td.Full(), (0, 1), (2, 3))
    assert 6 <= told.sensitivity(td.Histogram("x"), norm="l2").value <= 18


def test_gaussian_losses_along_a_path_grow_with_its_square() -> None:
    """d hops at ρ each cost d²ρ between the two ends: three steps of the line, prefix sums, σ² = 1."""
    rows = [[max(0, 3 - v) for v in range(4)]]  # a sum moves by 1 per hop
    released = Noisy(rows, [F(1)], power=2)
    one_hop, three = released.loss([1, -1, 0, 0]), released.loss([1, 0, 0, -1])
    assert three == 9 * one_hop == zcdp.along_path(F(one_hop), 3)


@pytest.mark.parametrize("seed", range(3))
def test_adaptive_sequences_stay_below_the_stacked_loss(seed: int) -> None:
    """Exact joint laws: a clamped noisy count, then a second one or a response per record, chosen by the first output.

    All noise has the ratio q, so a likelihood ratio is q^(−units) and units are compared exactly. The sum along edges
    is shown to fall short.
    """
    rng, q, n, short = np.random.default_rng(seed), F(1, 2), 3, 0
    for _ in range(25):
        size = int(rng.integers(3, 5))
        rows = rng.integers(0, 2, (3, size)).tolist()
        values = constrained.some(rng, range(size))
        secrets = td.Within(1) if rng.random() < 0.5 else td.Full()
        told = policy(size, secrets, values)
        facts, adjacent = [fact(size, values)], line(size) if isinstance(secrets, td.Within) else full(size)
        pairs = constrained.neighbours(adjacent, facts, n)

        def count(row: list[int], d: Any) -> composed.Law:
            return composed.clamped(sum(row[v] for v in d), n, q)

        def responses(d: Any, size: int = size) -> composed.Law:
            every = itertools.product(range(size), repeat=n)
            whole = 1 + (size - 1) * q
            return {
                z: math.prod((F(1) if a == b else q) / whole for a, b in zip(z, d, strict=True))
                for z in every
            }

        by_record = bool(rng.random() < 0.5)

        def law(
            d: Any, rows: Any = rows, by_record: bool = by_record, responses: Any = responses
        ) -> composed.Law:
            def then(first: Any) -> composed.Law:
                if first > 1 and by_record:
                    return responses(d)
                return count(rows[1 if first > 1 else 2], d)

            return composed.joint(count(rows[0], d), then)

        ratio = composed.worst_ratio(law, pairs)
        own = [term(told, td.Linear([row], "x")) for row in rows]
        cells = term(told, td.Histogram("x"), F(1, 2))
        record = Term(cells.resolved, cells.layers, F(1, 2), is_by_record=True)
        branches = [[own[0], own[2]], [own[0], record if by_record else own[1]]]
        bound = max(F(stacked(b, told.neighbourhood).value) for b in branches)
        assert ratio <= (1 / q) ** math.ceil(bound), (size, rows, values, by_record, ratio, bound)
        plain = policy(size, secrets)
        edges = max(F(stacked(b, plain.neighbourhood).value) for b in branches)
        short += ratio > (1 / q) ** math.floor(edges)
    assert short > 0


# ---------- splitting a table ----------


def test_splitting_by_value_needs_the_size_of_each_part_to_be_private() -> None:
    """T = {0, 1}, one part per value: a mechanism that takes the size of its part as public may print it, at ε = 0."""
    sizes = Noisy(identity(2), [F(0), F(0)])
    inside = Noisy([[1]], [F(0)])
    assert composed.worst([inside], constrained.neighbours([[False]], [], 1)).value == 0
    assert composed.worst([sizes], Promise(full(2)).neighbours(1)).value == math.inf


def test_splitting_by_record_costs_the_largest_part_only_without_known_counts() -> None:
    """Two fixed groups of records, ε each: one record moves, so ε; a known count makes two move, so 2ε."""
    rows = identity(4)
    groups, scales = (0, 1), (F(2), F(2))  # one unit of loss per moved record
    free = constrained.neighbours(line(4), [], 2)
    known = constrained.neighbours(line(4), [fact(4, (0, 1))], 2)
    assert constrained.largest_split(free, rows, groups, scales) == 1
    assert constrained.largest_split(known, rows, groups, scales) == 2


def test_counts_of_the_graphs_own_components_do_not_spoil_a_split() -> None:
    """No edge can break them, so a single record still moves alone."""
    cells = listed(4, (0, 1), (2, 3))
    known = constrained.neighbours(cells, [fact(4, (0, 1))], 2)
    assert constrained.largest_split(known, identity(4), (0, 1), (F(2), F(2))) == 1


def people(*known: Any, **secrets: Any) -> tuple[Any, Any]:
    """Four records with a sex and an age, and a policy over them."""
    domain = td.Domain(sex=td.Categorical(["f", "m"]), age=td.Integer(0, 9))
    table = td.Table({"sex": ["f", "f", "m", "m"], "age": [1, 4, 7, 7]}, domain)
    told = td.AttributeWise(**secrets) if secrets else td.Full()
    return table, td.Policy(domain, told, constraints=list(known))


def test_a_session_is_not_split_by_what_is_secret() -> None:
    """Known totals of the sexes under the full graph do not make women and men different people."""
    table, told = people(td.MarginalConstraint("sex", answers={"f": 2, "m": 2}))
    with pytest.raises(PolicyError, match=r"sex = f.*sex = m"):
        td.Session(table, told, epsilon=1).split(by="sex")


def test_a_session_is_not_split_where_a_count_ties_its_parts() -> None:
    """Sex is no secret, but a known number of ages makes a record of the other sex change back."""
    table, told = people(td.CountConstraint({"age": (0, 4)}, answer=2), age=td.Within(1))
    case = constrained.Drawn(told.domain, told.secrets, (("count", {"age": (0, 4)}),), "tied", 2)
    pairs = constrained.neighbours(case.adjacent, case.predicates, 2, "edges", first=[(4, 15)])
    assert [5, 14] in pairs.after.tolist()  # (f, 4), (m, 5) → (f, 5), (m, 4)
    with pytest.raises(PolicyError, match=r"age = 4.*age = 5"):
        td.Session(table, told, epsilon=1).split(by="sex")


def test_totals_of_the_graphs_own_components_are_free_and_do_not_forbid_a_split() -> None:
    table, told = people(td.MarginalConstraint("sex", answers={"f": 2, "m": 2}), age=td.Within(1))
    session = td.Session(table, told, epsilon=1)
    assert told.sensitivity(td.Histogram("sex")).value == 0
    for part in session.split(by="sex").values():
        part.release(td.CDF("age"), epsilon=1)
    assert session.ledger.spent == 1
    session.release(td.Histogram("sex"), epsilon=F(1, 2))
    assert session.ledger.spent == 1


def test_parts_by_value_publish_no_size_and_add_up() -> None:
    """Filters by a secret value: the size of a part is noised, and what a record loses by leaving one part adds to what it
    loses by entering the other."""
    table, told = people()
    session = td.Session(table, told, epsilon=2)
    for sex in ("f", "m"):
        query = td.Linear([[1] * 10], "age", where={"sex": [sex]})
        assert all(s.n_exact == 0 for s in candidates(query, told, Loss("epsilon", F(1))))
        session.release(query, epsilon=1, name=f"size {sex}")
    assert session.ledger.spent == 2


def test_cells_of_two_parts_by_value_lose_no_more_than_one_table() -> None:
    """The ledger adds change by change: the cells of both sexes are the cells of one table, at ε and not 2ε."""
    table, told = people()
    session = td.Session(table, told, epsilon=2)
    for sex in ("f", "m"):
        query = td.Histogram("age", where={"sex": [sex]})
        session.release(query, epsilon=1, name=sex, mechanism=td.mechanisms.Identity())
    assert session.ledger.spent == 1


def test_a_session_prices_the_past_anew_when_a_count_becomes_known(tmp_path: Path) -> None:
    """Ordered release on a line at ε = 1/8, then the number of ages 0 … 4 becomes known: it has cost 1."""
    domain = td.Domain(age=td.Integer(0, 9))
    table = td.Table({"age": [1, 4, 7, 7]}, domain)
    plain = td.Policy(domain, td.Within(1))
    knows = td.Policy(domain, td.Within(1), constraints=[td.CountConstraint({"age": (0, 4)}, answer=2)])
    for total, name in ((F(1), "enough"), (F(99, 100), "short")):
        where = tmp_path / f"{name}.ledger"
        first = td.Session(table, plain, epsilon=total, ledger=where)
        first.release(td.CDF("age"), epsilon=F(1, 8), mechanism=td.mechanisms.Ordered())
        assert first.ledger.spent == F(1, 8)
        if name == "short":
            with pytest.raises(BudgetError):
                td.Session(table, knows, epsilon=total, ledger=where)
        else:
            assert td.Session(table, knows, epsilon=total, ledger=where).ledger.spent == 1


# ---------- (ε, δ) of discrete noise ----------


def discrete_delta(sigma: float, shift: int, epsilon: float) -> float:
    """δ(ε) = Σ_z max(0, p(z) − e^ε p(z − shift)) of the discrete Gaussian."""
    reach = range(-int(60 * sigma) - 60, int(60 * sigma) + 60)
    weight = {z: math.exp(-z * z / (2 * sigma * sigma)) for z in reach}
    whole = math.fsum(weight.values())
    gaps = (p - math.exp(epsilon) * weight.get(z - shift, 0.0) for z, p in weight.items())
    return math.fsum(max(0.0, g) for g in gaps) / whole


def test_the_analytic_gaussian_formula_understates_discrete_noise() -> None:
    """σ = 0.5, ε = 5.37: 0.050 against 0.0214."""
    assert discrete_delta(0.5, 1, 5.37) == pytest.approx(0.0500, abs=5e-5)
    assert zcdp.analytic_delta(0.5, 1, 5.37) == pytest.approx(0.0214, abs=5e-5)
    assert zcdp.row_delta("0.25", 1, 5.37) == pytest.approx(discrete_delta(0.5, 1, 5.37), rel=1e-9)
    assert zcdp.delta_of(F(1, 2) / F("0.25"), "5.37") >= discrete_delta(0.5, 1, 5.37)


@pytest.mark.parametrize(
    ("sigma", "epsilon", "least"), [(0.5, 5.37, 2.3), (0.7, 6.87, 2.7), (2.0, 2.04, 1.2), (5.0, 0.8, 1.029)]
)
def test_how_far_the_analytic_formula_is_off(sigma: float, epsilon: float, least: float) -> None:
    exact = discrete_delta(sigma, 1, epsilon)
    assert exact / zcdp.analytic_delta(sigma, 1, epsilon) > least
    rho = 1 / (2 * F(str(sigma)) ** 2)
    assert zcdp.delta_of(rho, str(epsilon)) >= exact


def test_four_rows_have_no_formula_in_one_dimension() -> None:
    """Four rows that move by one each, σ = 1.5, against one row that moves by two: discrete noise is not round."""
    sigma, epsilon = 1.5, 2.0
    reach = range(-14, 15)
    weight = np.exp(-np.array([z * z for z in reach]) / (2 * sigma * sigma))
    law = weight / weight.sum()
    loss = np.array([(1 - 2 * z) / (2 * sigma * sigma) for z in reach])  # ln p(z)/p(z − 1) of one row
    joint: dict[int, float] = {0: 1.0}
    for _ in range(4):
        grown: dict[int, float] = {}
        for (at, p), (z, mass) in itertools.product(joint.items(), zip(reach, law, strict=True)):
            grown[at + z] = grown.get(at + z, 0.0) + p * float(mass)
        joint = grown
    # The losses of the rows add up, and their sum depends on the sum of the four outputs alone.
    told = {s: (4 - 2 * s) / (2 * sigma * sigma) for s in joint}
    exact = math.fsum(p * -math.expm1(epsilon - told[s]) for s, p in joint.items() if told[s] > epsilon)
    assert len(loss) == len(law)
    rho = F(4) / (2 * F("2.25"))
    analytic = zcdp.analytic_delta(sigma, 2, epsilon)
    assert exact > analytic
    assert exact != pytest.approx(discrete_delta(sigma, 2, epsilon), rel=1e-3)
    assert zcdp.delta_of(rho, str(epsilon)) >= exact


# ---------- constraints that cannot be priced ----------


def test_what_cannot_be_priced_is_refused_with_the_counts_to_drop() -> None:
    """Three bits, all pairs of bits known: whatever the package says, it is no number below the truth."""
    domain = td.Domain(**{name: td.Integer(0, 1) for name in "abc"})
    known = tuple(("marginal", pair) for pair in itertools.combinations("abc", 2))
    case = constrained.Drawn(domain, td.Full(), known, "two tables", 4)
    truth = true(case.adjacent, case.predicates, 4, identity(8))
    assert truth == 8
    try:
        value = case.policy().sensitivity(td.Histogram("a", "b", "c")).value
    except (PolicyError, Unsupported) as error:
        assert "table of" in str(error)
    else:
        assert value >= truth
