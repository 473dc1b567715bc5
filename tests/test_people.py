"""People with several rows, weights, secret presence and exemptions: prices against every change that one person can make.

``oracle.people`` lists the changes. Prices are never below the truth, and equal to it wherever ``attained`` says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import brute, composed
from oracle import people as oracle
from oracle.brute import Asked
from oracle.people import Ints, Person
from strategies import asked_policies, coarser, examples, filters, policies, questions
from test_sensitivity import dense_layer

import tetraodon as td
from tetraodon.charges import cost_spec
from tetraodon.composition import loss_under
from tetraodon.entries import Charge
from tetraodon.errors import PolicyError, Unsupported
from tetraodon.loss import Loss
from tetraodon.mechanisms import kronecker
from tetraodon.people import People, Weight
from tetraodon.pricing import candidates
from tetraodon.sensitivity import query_layers, stacked
from tetraodon.sensitivity.joint import Joint
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

F = Fraction
NORMS = ("l1", "l2")
LOSSES = (Loss("epsilon", F(2)), Loss("rho", F(1, 2)))


# ---------- what is drawn ----------


def weight(low: object, high: object, weights: Any, step: object = 1) -> Weight:
    return Weight(F(low), F(high), F(step), weights)  # type: ignore[arg-type]


@st.composite
def crowds(draw: Any, cells: int) -> People:
    """One to three rows a person, with weights of up to three steps where there are few cells."""
    weights = None
    if draw(st.integers(0, 2)):
        low, high = draw(st.sampled_from(((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 2), (1, 1))))
        step = draw(st.sampled_from((F(1), F(1, 2))))
        weights = weight(low * step, high * step, draw(st.sampled_from(("public", "secret"))), step)
    most = 3 if cells <= 3 and weights is None else 2 if cells <= 4 or weights is None else 1
    return People(
        draw(st.integers(1, most)),
        draw(st.sampled_from(("public", "secret"))),
        draw(st.booleans()),
        weights,
    )


presences = st.sampled_from(("public", "secret"))


def peopled(policy: Any, people: People, presence: str) -> Any:
    """The same secrets, for tables to which one person adds this."""
    return td.Policy(policy.domain, policy.secrets, presence=presence).with_people(people)


def moved(policy: Any, exempt: Sequence[int] = ()) -> Ints:
    """Every change that one person can make to the weighted histogram under a policy."""
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    return oracle.changes(adjacent, oracle.declared(policy.people, policy.presence, exempt))


def attained(person: Person) -> bool:
    """Whether prices are the truth itself.

    All kept rows can move along one edge together, or be replaced together. They can vanish together if the person may be
    absent, or if all weights may become 0. Otherwise one row always stays, or some weight is left.
    """
    if person.presence_secret:
        return True
    weights_change = person.weights_secret or (person.displaces and len(person.weights) > 1)
    rows_vanish = person.counts_secret and person.most > 1
    return not (weights_change or rows_vanish) or (weights_change and 0 in person.weights)


def step_of(people: People) -> Fraction:
    """What one counted unit stands for: the enumeration counts in steps of weights."""
    return F(1) if people.weight is None else F(people.weight.step)


def matrix_of(asked: Asked, domain: Any) -> list[list[Fraction]]:
    """The question's rows over the cells of the domain."""
    return [list(row) for row in zip(*brute.rows(asked, domain), strict=True)]


# ---------- the oracle itself ----------


GRAPHS = ([[0, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
KINDS = list(itertools.product((False, True), repeat=4))


@pytest.mark.parametrize("weights", [(1,), (0, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("most", [1, 2])
def test_going_through_the_keys_gives_the_changes_of_the_text(most: int, weights: tuple[int, ...]) -> None:
    for adjacent, (counts, by_key, changing, presence) in itertools.product(GRAPHS, KINDS):
        if len(adjacent) * len(weights) * most > 8:
            continue
        person = Person(most, counts, by_key, weights, changing, presence)
        for keys in (2, 3) if len(adjacent) * len(weights) <= 2 else (2,):
            found = set(map(tuple, oracle.changes(adjacent, person, keys).tolist()))
            assert found == oracle.by_text(adjacent, person, keys), (adjacent, person, keys)


def test_exempt_rows_of_the_oracle_are_those_of_the_text() -> None:
    adjacent = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    for most, changing, presence in itertools.product((1, 2), (False, True), (False, True)):
        person = Person(most, False, True, (1, 2) if changing else (1,), changing, presence, frozenset([2]))
        found = set(map(tuple, oracle.changes(adjacent, person, 2).tolist()))
        assert found == oracle.by_text(adjacent, person, 2)
        assert found and not any(change[2] for change in found)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_twice_as_many_raw_rows_as_are_kept_are_enough(most: int) -> None:
    for adjacent, (counts, by_key, changing, presence) in itertools.product(GRAPHS, KINDS):
        person = Person(most, counts, by_key, (1, 2) if most < 3 else (1,), changing, presence)
        enough, more = (oracle.changes(adjacent, person, 2 * most + extra) for extra in (0, 1))
        assert np.array_equal(enough, more), (adjacent, person)


# ---------- questions ----------


@examples(400)
@given(st.data())
def test_sensitivities_are_those_of_enumeration(data: Any) -> None:
    """Sound always, and exact where ``attained``: every graph, question, filter, group and special cell; both norms."""
    plain, asked = data.draw(asked_policies(most=6))
    people = data.draw(crowds(len(brute.tuples(plain.domain))))
    policy = peopled(plain, people, data.draw(presences))
    person = oracle.declared(people, policy.presence)
    changes, matrix = moved(policy), matrix_of(asked, policy.domain)
    for norm, power in zip(NORMS, (1, 2), strict=True):
        found = policy.sensitivity(asked.query(), norm=norm).value / step_of(people) ** power
        true = oracle.largest(matrix, changes, power)
        assert found >= true, (person, asked, found, true)
        if attained(person):
            assert found == true, (person, asked, found, true)
        elif people.weight is None:
            # One row of m stays where the others vanish.
            assert found <= F(people.max_rows, people.max_rows - 1) ** power * true


@examples(150)
@given(st.data())
def test_prices_of_one_person_follow_from_those_of_one_row(data: Any) -> None:
    """m·W moves of one row of weight 1: along the edges, between any two cells where rows displace each other, and to nothing
    where rows, people or weights can go; squared for Gaussian noise."""
    plain, asked = data.draw(asked_policies(most=6))
    domain = plain.domain
    people = data.draw(crowds(len(brute.tuples(domain))))
    policy = peopled(plain, people, data.draw(presences))
    person = oracle.declared(people, policy.presence)
    columns = brute.rows(asked, domain)
    if person.displaces:
        pairs = set(itertools.combinations(range(len(columns)), 2))
    else:
        pairs = brute.edges(brute.adjacency(domain, plain.secrets))
    goes = person.presence_secret or (person.counts_secret and person.most > 1)
    goes |= people.weight is not None and (
        person.weights_secret or (person.displaces and len(person.weights) > 1)
    )
    for norm, power in zip(NORMS, (1, 2), strict=True):
        steps = [
            sum(abs(x - y) ** power for x, y in zip(columns[a], columns[b], strict=True)) for a, b in pairs
        ]
        steps += [sum(abs(x) ** power for x in column) for column in columns] if goes else []
        one = max(steps, default=F(0))
        found = policy.sensitivity(asked.query(), norm=norm)
        assert found.value == (person.most * person.top * step_of(people)) ** power * one
        assert (found.witness is None) == (not found.value)


def test_the_witness_of_a_presence_names_who_is_not_there() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, 4)), td.Within(1), presence="secret")
    assert policy.sensitivity(td.CDF("x")).witness == ({"x": "0"}, {"presence": "not in the table"})


# ---------- strategies ----------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few products to choose from: what is priced here does not depend on how good they are."""
    monkeypatch.setattr(kronecker, "WORK", 1e5)
    monkeypatch.setattr(kronecker, "EDGES", (4.0, 1.0, 0.25))


def unit_tables(strategy: Any, asked: Asked, domain: Any) -> list[Ints]:
    """For every cell of the domain the table of counts with one record there."""
    seen = {n: brute.positions(domain[n], asked.bins.get(n), asked.where.get(n)) for n in domain}
    resolved = strategy.resolved
    axis = None if resolved.axis is None else resolved.axis.name
    split = [n for n in domain if n in asked.by + (asked.attributes if asked.word == "Histogram" else ())]
    split = [n for n in split if n != axis]
    sizes = [1 + max(p for p in seen[n] if p is not None) for n in split]
    found = []
    for record in brute.tuples(domain):
        place = {n: seen[n][i] for n, i in zip(domain, record, strict=True)}
        table = np.zeros((resolved.n_groups, resolved.n_positions), dtype=np.int64)
        if None not in place.values():
            group = 0
            for n, size in zip(split, sizes, strict=True):
                group = group * size + place[n]
            table[group, place[axis] if axis is not None else 0] = 1
        found.append(table)
    return found


def observed(strategy: Any, asked: Asked, domain: Any) -> list[tuple[Ints, Fraction | None]]:
    """(rows × cells, noise) of what a strategy computes from a table; noise None is an exact row."""
    tables = unit_tables(strategy, asked, domain)
    if hasattr(strategy, "factors"):
        rows = np.stack([strategy._joint.applied(t).ravel() for t in tables], axis=1)
        return [(rows, strategy.draws[0][0])]
    found: list[tuple[Ints, Fraction | None]] = []
    applied = [strategy._apply(t) for t in tables]
    for at, part in enumerate(strategy.parts):
        rows = np.stack([a[at] for a in applied], axis=-1)  # groups × rows × cells
        size = rows.shape[-1]
        found.append((rows[:, part.exact].reshape(-1, size), None))
        scale = strategy.scale(part)
        if scale is not None:
            found.append((rows[:, ~part.exact].reshape(-1, size), scale))
    return found


def dense_term(term: Term, domain: Any) -> Ints:
    """The weighted rows of a term over the cells of the domain, repeated for every group."""
    resolved, size = term.resolved, term.resolved.n_positions
    group, position = term.place(np.arange(domain.size), domain)
    [*layers] = term.layers
    if isinstance(layers[0], Joint):
        rows = np.ones((1, 1), dtype=np.int64)
        for factor in layers[0].factors:
            rows = np.kron(rows, factor)
        place = np.where(group < 0, 0, group * size + position)
        return np.where(group < 0, 0, rows[:, place]) * layers[0].weight
    told = np.array([row for layer in layers for row in dense_layer(layer)], dtype=np.int64).reshape(-1, size)
    found = np.zeros((resolved.n_groups, len(told), domain.size), dtype=np.int64)
    for cell in np.flatnonzero(group >= 0).tolist():
        found[group[cell], :, cell] = told[:, position[cell]]
    return found.reshape(-1, domain.size)


def loss_of(parts: Sequence[tuple[Ints, Fraction | None]], changes: Ints, power: int) -> Fraction | float:
    """max over the changes of the summed loss; infinite if an exact row moves."""
    if not len(changes):
        return F(0)
    total = [F(0)] * len(changes)
    for rows, noise in parts:
        by = np.abs(changes @ rows.T) ** power
        if noise is None:
            if by.any():
                return math.inf
            continue
        price = 1 / noise if power == 1 else 1 / (2 * noise)
        total = [t + int(v) * price for t, v in zip(total, by.sum(axis=1), strict=True)]
    return max(total)


@examples(60)
@given(st.data())
@pytest.mark.usefixtures("quick")
def test_every_strategy_loses_at_most_what_it_charges(data: Any) -> None:
    """Every way of answering that a plan compares, by what it computes from a table and the noise that it draws; exact rows
    never move, and exactly the loss is spent where prices are attained."""
    plain, asked = data.draw(asked_policies(most=6))
    people = data.draw(crowds(len(brute.tuples(plain.domain))))
    policy = peopled(plain, people, data.draw(presences))
    loss, person = data.draw(st.sampled_from(LOSSES)), oracle.declared(people, policy.presence)
    changes = moved(policy)
    for strategy in candidates(asked.query(), policy, loss):
        true = loss_of(observed(strategy, asked, policy.domain), changes, loss.power)
        assert true <= strategy.spent.amount, (person, asked, strategy.mechanism)
        if attained(person) and not hasattr(strategy, "factors"):
            assert true == strategy.spent.amount, (person, asked, strategy.mechanism)
        for term in strategy.exact_terms:
            assert not (changes @ dense_term(term, policy.domain).T).any()


@examples(40)
@given(st.data())
def test_tables_together_lose_at_most_what_they_charge(data: Any) -> None:
    plain = data.draw(policies(most=6))
    domain, names = plain.domain, list(plain.domain)
    people = data.draw(crowds(len(brute.tuples(domain))))
    policy = peopled(plain, people, data.draw(presences))
    some = st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda t: tuple(sorted(t)))
    tables = data.draw(st.lists(some, min_size=1, max_size=3, unique=True))
    shown = sorted({n for t in tables for n in t})
    bins = {n: b for n in shown[:1] if (b := data.draw(coarser(domain[n], runs=False))) is not None}
    where = {n: data.draw(filters(domain[n])) for n in data.draw(st.sampled_from(((), (names[-1],))))}
    query = td.Marginals(tables, bins=bins, where=where)
    changes, person = moved(policy), oracle.declared(people, policy.presence)

    def rows(table: Sequence[str]) -> Ints:
        asked = Asked("Histogram", tuple(table), (), where, {n: b for n, b in bins.items() if n in table})
        return np.array(matrix_of(asked, domain)).astype(np.int64)

    whole = np.concatenate([rows(t) for t in tables])
    for norm, power in zip(NORMS, (1, 2), strict=True):
        found = policy.sensitivity(query, norm=norm).value / step_of(people) ** power
        true = oracle.largest(whole, changes, power)
        assert found >= true
        if attained(person) and not where:
            assert found == true
    loss = data.draw(st.sampled_from(LOSSES))
    for strategy in candidates(query, policy, loss):
        parts = []
        for part in strategy.parts:
            names_of = strategy.asked.names(part.table)
            own = rows(names_of) if part.table else rows(tables[0]).sum(axis=0, keepdims=True)
            parts.append((own, strategy.scale(part)))
        true = loss_of(parts, changes, loss.power)
        assert true <= strategy.spent.amount
        if attained(person) and not where:
            assert true == strategy.spent.amount


# ---------- several releases ----------


def release(name: str, policy: Any, query: Any, factor: Fraction, unit: Any) -> Charge:
    """A release of the query's own rows: loss = factor · their largest move."""
    resolved = resolve(query, policy.domain)
    term = Term(resolved, query_layers(resolved), factor)
    move = stacked([term], policy.neighbourhood, 2 if unit == "rho" else 1)
    loss = Loss(unit, F(move.value))
    by = {key: F(value) for key, value in move.by_secret.items()}
    return Charge(
        name, "", loss, query.to_spec(), {}, "", cost_spec(loss, move.rule, by, [term]), policy.hash
    )


def counting(asked: Asked) -> bool:
    """Whether the rows of a question are whole numbers of records."""
    return asked.word in ("Histogram", "CDF", "Ranges", "Linear")


@examples(120)
@given(st.data())
def test_joint_losses_are_never_below_the_truth(data: Any) -> None:
    """Two or three releases between the same two tables: the truth is the largest sum of their losses over the changes of one
    person, and that exactly where units are not mixed and prices are attained."""
    plain = data.draw(policies(most=6))
    domain = plain.domain
    people = data.draw(crowds(len(brute.tuples(domain))))
    policy = peopled(plain, people, data.draw(presences))
    unit = data.draw(st.sampled_from(("epsilon", "rho")))
    charges, seen = [], []
    for at in range(data.draw(st.integers(2, 3))):
        asked = data.draw(questions(domain))
        assume(counting(asked))
        own = "epsilon" if unit == "epsilon" or data.draw(st.integers(0, 3)) == 0 else "rho"
        factor = F(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5)))
        charges.append(release(str(at), policy, asked.query(), factor, own))
        matrix = [[int(v) for v in row] for row in matrix_of(asked, domain)]
        power = 1 if own == "epsilon" else 2
        noise = 1 / factor if power == 1 else 1 / (2 * factor)
        seen.append(composed.Noisy(matrix, [noise] * len(matrix), power))
    changes = moved(policy)
    total = [F(0)] * len(changes)
    for noisy in seen:
        own_losses = [F(v) for v in noisy.losses(changes)]
        if unit == "rho" and noisy.power == 1:
            own_losses = [v * v / 2 for v in own_losses]
        total = [t + v for t, v in zip(total, own_losses, strict=True)]
    found, true = loss_under(policy, charges, unit).value, max(total, default=F(0))
    assert found >= true
    mixed = any(c.loss.unit != unit for c in charges)
    if not mixed and attained(oracle.declared(people, policy.presence)):
        assert found == true


@examples(80)
@given(st.data())
def test_what_went_out_exactly_is_refused_where_a_person_can_change_it(data: Any) -> None:
    """Rows that went out exactly under a policy without secrets: free under another one only if nobody moves them there."""
    plain, asked = data.draw(asked_policies(most=6))
    assume(counting(asked))
    people = data.draw(crowds(len(brute.tuples(plain.domain))))
    policy, open_ = peopled(plain, people, data.draw(presences)), td.Policy(plain.domain, td.Nothing())
    assume(policy.hash != open_.hash)
    resolved, none = resolve(asked.query(), plain.domain), Loss("epsilon", F(0))
    cost = cost_spec(none, "", {}, [], [Term(resolved, query_layers(resolved))])
    charge = Charge("x", "", none, asked.query().to_spec(), {}, "", cost, open_.hash)
    matrix = np.array(matrix_of(asked, plain.domain)).astype(np.int64)
    if (moved(policy) @ matrix.T).any():
        with pytest.raises(PolicyError, match=r"exactly|number of records went out"):
            loss_under(policy, [charge], declared={open_.hash: open_})
    elif attained(oracle.declared(people, policy.presence)):
        assert loss_under(policy, [charge], declared={open_.hash: open_}).value == 0


@examples(40)
@given(st.data())
def test_outputs_of_records_and_weighted_counts_add_up(data: Any) -> None:
    """Outputs attached to records see no weights, so they lose all of theirs while a weight changes at the same time."""
    plain = data.draw(policies(most=3))
    domain = plain.domain
    drawn = data.draw(crowds(len(brute.tuples(domain))))
    people = People(min(drawn.max_rows, 2), "public", True, drawn.weight)
    policy = peopled(plain, people, "public")
    asked = data.draw(questions(domain))
    assume(counting(asked))
    factor, per_cell = F(data.draw(st.integers(1, 3)), 2), F(data.draw(st.integers(1, 3)), 4)
    whole = resolve(td.Histogram(*domain), domain)
    counts = Term(resolve(asked.query(), domain), query_layers(resolve(asked.query(), domain)), factor)
    records = Term(whole, query_layers(whole), per_cell, is_by_record=True)
    person = oracle.declared(people, "public")
    steps = oracle.row_steps(brute.adjacency(domain, plain.secrets), person)
    matrix = np.array(matrix_of(asked, domain)).astype(np.int64)
    true = {1: F(0), 2: F(0)}
    for together in itertools.combinations_with_replacement(steps, people.max_rows):
        before, after = ([step[at] for step in together] for at in (0, 1))
        change = np.subtract(oracle.weighed(after, domain.size), oracle.weighed(before, domain.size))
        rows = np.abs(matrix @ change)
        own = (
            per_cell * 2 * sum(a[0] != b[0] for a, b in together)
        )  # two cells of the histogram of one record
        true = {power: max(t, own + factor * int((rows**power).sum())) for power, t in true.items()}
    for power, value in true.items():
        assert stacked([counts, records], policy.neighbourhood, power).value >= value


# ---------- people who agreed to publication ----------


@st.composite
def agreed(draw: Any) -> Any:
    """A policy of one attribute with secrets, beside a public one of which some values are exempt."""
    size = draw(st.integers(2, 3))
    domain = td.Domain(
        x=td.Integer(0, size - 1), ok=td.Categorical(["no", "yes", "all"][: draw(st.integers(2, 3))])
    )
    names = draw(st.sampled_from((["yes"], ["yes", "all"], ["no"])))
    assume(set(names) < set(domain["ok"].values))
    drawn = draw(crowds(domain.size))
    people = People(drawn.max_rows, "public", True, drawn.weight)
    policy = td.Policy(
        domain,
        td.AttributeWise(x=draw(st.sampled_from((td.Full(), td.Within(1))))),
        presence=draw(presences) if people.max_rows == 1 else "public",
        exempt={"ok": names},
        people=people,
    )
    cells = [i for i, r in enumerate(brute.tuples(domain)) if domain["ok"].values[r[1]] in names]
    return policy, names, cells


@examples(80)
@given(agreed(), st.data())
def test_questions_about_the_exempt_alone_are_free_and_all_others_are_priced(drawn: Any, data: Any) -> None:
    policy, names, cells = drawn
    domain = policy.domain
    asked = data.draw(questions(domain))
    if data.draw(st.booleans()):
        kept = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        word = data.draw(st.sampled_from(("Histogram", "CDF", "Sum")))
        asked = Asked(word, ("x",), data.draw(st.sampled_from(((), ("ok",)))), {"ok": kept})
    changes, matrix = moved(policy, cells), matrix_of(asked, domain)
    is_free = "ok" in asked.where and all(
        i in cells or all(not row[i] for row in matrix) for i in range(len(brute.tuples(domain)))
    )
    for norm, power in zip(NORMS, (1, 2), strict=True):
        found = policy.sensitivity(asked.query(), norm=norm).value / step_of(policy.people) ** power
        assert found >= oracle.largest(matrix, changes, power)
    kept_values = brute.kept_cells(domain["ok"], asked.where.get("ok"))
    about_exempt = all(v in names for v, k in zip(domain["ok"].values, kept_values, strict=True) if k)
    if about_exempt:
        assert is_free and found == 0
        tables = td.Marginals([["x"]], where={"ok": [v for v in names if v in asked.where["ok"]]})
        assert policy.sensitivity(tables).value == 0
        assert all(s.spent.is_zero and not s.draws for s in candidates(tables, policy, LOSSES[0]))
        for strategy in candidates(asked.query(), policy, LOSSES[0]):
            assert strategy.spent.is_zero
            assert loss_of(observed(strategy, asked, domain), changes, 1) == 0
            assert not strategy.draws
    else:
        for strategy in candidates(asked.query(), policy, LOSSES[0]):
            assert loss_of(observed(strategy, asked, domain), changes, 1) <= strategy.spent.amount


def test_exempt_people_count_like_everybody_in_questions_about_all() -> None:
    """A total of all moves by a whole person although part of the table is exempt; that of the exempt alone never does."""
    domain = td.Domain(x=td.Integer(0, 2), ok=td.Categorical(["no", "yes"]))
    policy = td.Policy(domain, td.AttributeWise(x=td.Full()), presence="secret", exempt={"ok": ["yes"]})
    every = moved(policy, [i for i, r in enumerate(brute.tuples(domain)) if r[1] == 1])
    for where, value in (({}, 1), ({"ok": ["no"]}, 1), ({"ok": ["yes"]}, 0)):
        asked = Asked("Linear", ("x",), (), where, {}, [[1, 1, 1]])
        assert oracle.largest(matrix_of(asked, domain), every) == value
        assert policy.sensitivity(asked.query()).value == value


def test_exemptions_are_refused_where_rows_displace_each_other() -> None:
    """m = 1 and rows kept without a key: an exempt row takes the place of another, so tables of the exempt alone change."""
    domain = td.Domain(x=td.Integer(0, 1), ok=td.Categorical(["no", "yes"]))
    adjacent = brute.adjacency(domain, td.AttributeWise(x=td.Full()))
    cells = [i for i, r in enumerate(brute.tuples(domain)) if r[1] == 1]
    changes = oracle.changes(adjacent, Person(1, by_key=False, exempt=frozenset(cells)))
    asked = Asked("Linear", ("x",), (), {"ok": ["yes"]}, {}, [[1, 1]])
    assert oracle.largest(matrix_of(asked, domain), changes) == 1
    for people in (People(1, "public", False), People(2, "secret", True)):
        with pytest.raises(Unsupported, match="exempt"):
            td.Policy(domain, td.AttributeWise(x=td.Full()), exempt={"ok": ["yes"]}, people=people)
