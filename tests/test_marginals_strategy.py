"""``Marginals`` priced: the loss over every edge by enumeration, free tables, golden costs, and what is observed."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute, constrained
from strategies import coarser, examples, filters, policies

import tetraodon as td
from tetraodon.errors import PolicyError, SpecificationError, Unsupported
from tetraodon.loss import Loss
from tetraodon.marginals.asked import Asked, ask
from tetraodon.marginals.mechanism import Tables
from tetraodon.marginals.query import Marginals, marginals_from_spec
from tetraodon.marginals.residuals import Axes, cells
from tetraodon.marginals.select import EVERY, candidates, price
from tetraodon.marginals.strategy import MarginalStrategy, build

ONE = Loss("epsilon", Fraction(1))
LOSSES = st.sampled_from((ONE, Loss("epsilon", Fraction(3, 7)), Loss("rho", Fraction(1, 2))))


@st.composite
def questions(draw: Any) -> Any:
    """A policy and some tables over its domain, with bins and filters."""
    policy = draw(policies())
    domain = policy.domain
    names = list(domain)
    some = st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda t: tuple(sorted(t)))
    tables = draw(st.lists(some, min_size=1, max_size=3, unique=True))
    shown = sorted({n for t in tables for n in t})
    bins = {
        n: draw(coarser(domain[n], runs=False))
        for n in draw(st.lists(st.sampled_from(shown), unique=True, max_size=1))
    }
    bins = {n: b for n, b in bins.items() if b is not None}
    where = {
        n: draw(filters(domain[n])) for n in draw(st.lists(st.sampled_from(names), unique=True, max_size=1))
    }
    return policy, tables, bins, where


def histogram(asked: Asked, table: Axes, bins: Any, where: Any) -> brute.Asked:
    names = asked.names(table)
    return brute.Asked("Histogram", names, (), where, {n: b for n, b in bins.items() if n in names})


def losses(
    strategy: MarginalStrategy, domain: Any, adjacent: Any, bins: Any, where: Any
) -> tuple[list[Fraction], bool]:
    """The loss along every edge, and whether the exact tables stay as they are along all of them."""
    observed = {p.table for p in strategy.parts} | {strategy.asked.tables[0]}
    columns = {t: brute.rows(histogram(strategy.asked, t, bins, where), domain) for t in observed if t}
    columns[()] = [(sum(v),) for v in columns[strategy.asked.tables[0]]]
    found, still = [], True
    for x, y in brute.edges(adjacent):
        loss = Fraction(0)
        for part in strategy.parts:
            moved = [abs(a - b) for a, b in zip(columns[part.table][x], columns[part.table][y], strict=True)]
            scale = strategy.scale(part)
            if scale is None:
                still = still and not any(moved)
            elif strategy.is_gaussian:
                loss += sum(m * m for m in moved) / (2 * scale)
            else:
                loss += sum(moved) / scale
        found.append(loss)
    return found, still


@examples(150)
@given(questions(), LOSSES, st.sampled_from(EVERY))
def test_the_loss_along_every_edge_is_what_was_asked_for(
    question: Any, loss: Loss, mechanism: Tables
) -> None:
    policy, tables, bins, where = question
    domain = policy.domain
    asked = ask(Marginals(tables, bins=bins, where=where), domain)
    adjacent = brute.adjacency(domain, policy.secrets)
    strategy = price(mechanism, asked, policy.neighbourhood, loss)
    found, still = losses(strategy, domain, adjacent, bins, where)
    assert still
    assert max(found, default=Fraction(0)) <= strategy.spent.amount
    if strategy.spent.amount:
        # Attained; with filters it is a bound, since one edge may leave some tables and change others.
        assert asked.is_filtered or max(found) == loss.amount
    # Whatever no edge moves is exact, and nothing else is.
    known = {
        i for t in strategy.exact_tables for n in range(len(t) + 1) for i in itertools.combinations(t, n)
    }
    for table in asked.tables:
        columns = brute.rows(histogram(asked, table, bins, where), domain)
        moves = any(columns[x] != columns[y] for x, y in brute.edges(adjacent))
        assert (table in known) == (not moves)


@examples(60)
@given(questions(), st.integers(0, 99))
def test_tables_count_every_record_that_the_filter_keeps(question: Any, seed: int) -> None:
    policy, tables, bins, where = question
    domain = policy.domain
    asked = ask(Marginals(tables, bins=bins, where=where), domain)
    every = brute.tuples(domain)
    records = [every[i] for i in np.random.default_rng(seed).integers(0, len(every), 7)]
    numbers = np.bincount([every.index(r) for r in records], minlength=len(every))
    counts = td_counts(domain, numbers, asked.domain.names)
    found = asked.tabulate(counts, ((), *asked.tables))
    for table in asked.tables:
        told = brute.counter(histogram(asked, table, bins, where), domain)(records)
        # The oracle lays cells out in the order of the attributes as well.
        assert found[table].ravel().tolist() == [int(v) for v in told]
    assert int(found[()]) == int(found[asked.tables[0]].sum())


def td_counts(domain: Any, numbers: Any, names: Any) -> Any:
    """Counts of some attributes from counts over the whole domain."""
    from tetraodon.table import Counts

    small = domain.select(*names)
    places = dict(zip(domain.names, domain.decode(np.arange(domain.size)), strict=True))
    codes = small.encode([places[n] for n in small.names])
    return Counts.collect(small, [(codes, numbers)])


# ---------- golden ----------


def cube(*sizes: int) -> Any:
    return td.Domain({f"a{i}": td.Integer(0, s - 1) for i, s in enumerate(sizes)})


def cost(domain: Any, secrets: Any, query: Any) -> Fraction:
    """Sensitivity of all tables together: equal weights 1."""
    asked = ask(query, domain)
    hood = td.Policy(domain, secrets).neighbourhood
    made = build(Tables(), asked, hood, ONE, asked.tables, [1] * len(asked.tables), ())
    return Fraction(made.move.value)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_golden_costs_of_all_tables_of_k_attributes(m: int) -> None:
    domain = cube(*([2, 3, 2, 4, 3][:m]))
    for k in range(1, m + 1):
        assert cost(domain, td.AttributeWise(), Marginals(k)) == 2 * comb(m - 1, k - 1)
        assert cost(domain, td.Full(), Marginals(k)) == 2 * comb(m, k)


def test_golden_costs_of_the_two_by_three_table() -> None:
    domain = cube(2, 3)
    assert cost(domain, td.AttributeWise(), Marginals(1)) == 2  # A14
    assert cost(domain, td.Full(), Marginals(1)) == 4  # A15
    assert cost(domain, td.AttributeWise(), Marginals([("a0",)])) == 2  # A16


def test_tables_that_an_edge_cannot_change_cost_nothing() -> None:
    domain = cube(4, 3, 2)
    asked = ask(Marginals(2), domain)
    hood = td.Policy(domain, td.AttributeWise(a0=td.Full())).neighbourhood
    strategy = price(Tables(), asked, hood, ONE)
    assert strategy.exact_tables == ((1, 2),)
    assert strategy.disclosed() == ["the number of records for every a1, a2"]
    # Blocks of a partition are free; finer positions are not.
    blocks = td.Policy(domain, td.Partition({"a0": 2})).neighbourhood
    coarse = ask(Marginals([("a0",)], bins={"a0": 2}), domain)
    free = price(Tables(), coarse, blocks, ONE)
    assert free.spent.amount == 0 and free.expected_error == 0 and not free.terms
    assert price(Tables(), ask(Marginals([("a0",)]), domain), blocks, ONE).spent.amount == 1


def test_free_tables_that_say_nothing_new_are_left_out() -> None:
    domain = cube(3, 4, 5)
    asked = ask(Marginals([("a0", "a2"), ("a1", "a2")]), domain)
    hood = td.Policy(domain, td.AttributeWise(a2=td.Full())).neighbourhood
    for mechanism in EVERY:
        strategy = price(mechanism, asked, hood, ONE)
        assert strategy.exact_tables == ((0,), (1,))
        assert (0, 1) not in {p.table for p in strategy.parts}
    # A table too large to be compared with others is still released on its own.
    wide = cube(1500, 1000, 2)
    ranked = candidates(ask(Marginals([("a0", "a1")]), wide), td.Policy(wide, td.Full()).neighbourhood, ONE)
    assert [p.table for p in ranked[0].parts] == [(), (0, 1)]


def test_the_number_of_records_is_exact_only_where_no_edge_leads_out_of_the_filter() -> None:
    domain = cube(4, 3, 2)
    hood = td.Policy(domain, td.AttributeWise(a0=td.Full())).neighbourhood
    public = price(Tables(), ask(Marginals([("a0",)], where={"a1": [0]}), domain), hood, ONE)
    secret = price(Tables(), ask(Marginals([("a0",)], where={"a0": (0, 1)}), domain), hood, ONE)
    assert public.exact_tables == ((),) and secret.exact_tables == ()
    assert public.disclosed() == ["the number of records with a1 = 0"]


def test_the_witness_attains_the_cost() -> None:
    domain = cube(5, 3, 2)
    for secrets, query in (
        (td.AttributeWise(), Marginals(2)),
        (td.Within(2, on="a0"), Marginals(2)),
        (td.Full(), Marginals(1)),
    ):
        strategy = price(Tables(), ask(query, domain), td.Policy(domain, secrets).neighbourhood, ONE)
        witness = strategy.cost.witness
        assert witness is not None and witness[0] != witness[1]


# ---------- choice ----------


@pytest.mark.parametrize("loss", [ONE, Loss("rho", Fraction(1, 2))], ids=lambda x: x.unit)
@pytest.mark.parametrize("secrets", [td.AttributeWise(), td.Full()], ids=str)
def test_the_choice_is_the_best_of_what_was_compared(secrets: Any, loss: Loss) -> None:
    domain = cube(7, 2, 4, 2)
    asked = ask(Marginals(2), domain)
    hood = td.Policy(domain, secrets).neighbourhood
    ranked = candidates(asked, hood, loss)
    errors = [s.expected_error for s in ranked]
    assert errors == sorted(errors) and len(ranked) >= 3
    equal = price(Tables("asked", "equal"), asked, hood, loss)
    assert ranked[0].expected_error <= price(Tables(), asked, hood, loss).expected_error * (1 + 1e-3)
    assert errors[0] < equal.expected_error
    each = ranked[0].table_variances
    mean = sum(v * cells(asked.shape, t) for t, v in each.items()) / asked.n_cells
    assert ranked[0].expected_error == pytest.approx(mean)


def test_a_small_joint_table_wins_where_everything_moves_at_once() -> None:
    domain = cube(2, 2, 2, 2)
    hood = td.Policy(domain, td.Full()).neighbourhood
    assert candidates(ask(Marginals(2), domain), hood, ONE)[0].mechanism == Tables("joint")


# ---------- declarations ----------


def test_queries_are_read_back_from_their_specification() -> None:
    for query in (
        Marginals(2),
        Marginals(1, of=["a", "b"], bins={"a": 5}, where={"c": (1, 3)}),
        Marginals([("a", "b"), ["c"], "d"], where={"e": ["x", "y"]}, bins={"a": [0, 3]}),
    ):
        assert marginals_from_spec(query.to_spec()) == query


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0,), "at least one attribute"),
        (([],), "at least one table"),
        (([("a", "b"), ("b", "a")],), "asked for twice"),
        (([("a", "a")],), "each once"),
        ((True,), "a whole number k"),
        (("a",), "a whole number k"),
    ],
)
def test_wrong_queries_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        Marginals(*arguments)


def test_wrong_questions_are_refused_with_the_place() -> None:
    domain = td.Domain(age=td.Integer(0, 9), value=td.Integer(0, 1), sex=td.Categorical(["f", "m"]))
    for query, text in (
        (Marginals(4), "3 are declared"),
        (Marginals([("ages",)]), "Did you mean 'age'"),
        (Marginals([("value",)]), "name of a column"),
        (Marginals(1, of=["age"], where={"sex": []}), "leaves no cell"),
        (
            Marginals(1, of=["age"], bins={"age": 3}, where={"age": (5, 4)}),
            "range is empty",
        ),
    ):
        with pytest.raises(SpecificationError, match=text):
            ask(query, domain)
    odd = td.Domain({n: td.Integer(0, 1) for n in ("a", "b", "a by b")})
    with pytest.raises(SpecificationError, match="two tables would be called 'a by b'"):
        ask(Marginals([("a", "b"), ("a by b",)]), odd)
    with pytest.raises(SpecificationError, match="no attribute in these tables 'sex'"):
        Marginals(1, of=["age"], bins={"sex": 1})
    with pytest.raises(SpecificationError, match="measured"):
        Tables("all")  # type: ignore[arg-type]
    vast = td.Domain(x=td.Integer(0, 10**6), y=td.Integer(0, 10**6), z=td.Integer(0, 3))
    with pytest.raises(Unsupported, match="2·10"):
        ask(Marginals([("x", "y")]), vast)


# ---------- known counts ----------


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_under_known_counts_no_neighbour_loses_more_than_is_charged(unit: Any) -> None:
    """Random tiny policies with known counts: every pair of neighbouring databases, in both readings."""
    random, priced = np.random.default_rng(5), 0
    while priced < 40:
        case = constrained.drawn(random, most=256)
        domain = case.domain
        names = list(domain)
        query = (
            Marginals(1) if random.random() < 0.5 else Marginals([tuple(names), (names[0],)][: len(names)])
        )
        try:
            policy = case.policy()
            strategy = price(
                EVERY[priced % len(EVERY)], ask(query, domain), policy.neighbourhood, Loss(unit, Fraction(1))
            )
        except (PolicyError, Unsupported):
            continue
        priced += 1
        loud = [p for p in strategy.parts if not p.exact]
        matrix, scales = [], []
        for part in loud:
            rows = constrained.dense(brute.Asked("Histogram", strategy.asked.names(part.table)), domain)
            scale = strategy.scale(part)
            assert scale is not None
            matrix += rows.tolist()
            scales += [scale if unit == "epsilon" else 2 * scale] * len(rows)
        for reading in constrained.READINGS:
            pairs = constrained.neighbours(case.adjacent, case.predicates, case.n, reading)
            if loud:
                found = constrained.largest(pairs, matrix, 1 if unit == "epsilon" else 2, scales)
                assert found.value <= strategy.spent.amount
            for part in strategy.parts:
                if part.exact and part.table:
                    rows = constrained.dense(
                        brute.Asked("Histogram", strategy.asked.names(part.table)), domain
                    )
                    assert constrained.largest(pairs, rows).value == 0
