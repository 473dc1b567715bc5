"""Formulas about people, weights and presence that look right and are not: each with the small case that breaks it.

Every test first shows by enumeration of what one person can change that the formula is too small, and then that ours is not.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import brute, composed, constrained
from oracle import people as oracle
from oracle.people import Person

import tetraodon as td
from tetraodon import composition
from tetraodon.charges import cost_spec
from tetraodon.composition import loss_under
from tetraodon.entries import Charge
from tetraodon.errors import PolicyError, Unsupported
from tetraodon.loss import Loss
from tetraodon.people import People, Weight
from tetraodon.pricing import candidates
from tetraodon.sensitivity import query_layers, stacked
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

F = Fraction
ONE = Loss("epsilon", F(1))
ONE_UNIT = F(1)


def line(size: int) -> Any:
    """Neighbouring values are secret from each other."""
    return [[abs(x - y) == 1 for y in range(size)] for x in range(size)]


def full(size: int) -> Any:
    return [[x != y for y in range(size)] for x in range(size)]


def cumulative(size: int) -> Any:
    return [[int(v <= at) for v in range(size)] for at in range(size)]


def identity(size: int) -> Any:
    return [[int(v == at) for v in range(size)] for at in range(size)]


def on(size: int, secrets: Any, people: People | None = None, presence: str = "public", **more: Any) -> Any:
    """A policy over x = 0 … size − 1."""
    return td.Policy(td.Domain(x=td.Integer(0, size - 1, **more)), secrets, presence=presence, people=people)


def weighted(low: int, high: int, weights: Any) -> Weight:
    return Weight(F(low), F(high), F(1), weights)


def term(policy: Any, query: Any, factor: object = 1, is_by_record: bool = False) -> Term:
    resolved = resolve(query, policy.domain)
    return Term(resolved, query_layers(resolved), F(factor), is_by_record)  # type: ignore[arg-type]


def is_all_noise(policy: Any, query: Any) -> bool:
    """Whether no way of answering publishes a row exactly."""
    return all(s.n_exact == 0 and not s.exact_terms for s in candidates(query, policy, ONE))


# ---------- the number of records is public: until rows can vanish ----------


def test_rows_dropped_by_value_make_the_total_of_the_visible_cells_a_secret() -> None:
    """A value 4 becomes missing: the total of the visible cells moves by 1, so published exactly it costs ε = ∞."""
    policy = on(5, td.Within(1), missing="secret")
    adjacent = brute.adjacency(policy.domain, policy.secrets)
    total = [[1, 1, 1, 1, 1, 0]]
    assert oracle.largest(total, oracle.changes(adjacent, Person())) == 1
    visible = {"x": (0, 4)}
    assert policy.sensitivity(td.Linear([[1] * 5], "x", where=visible)).value == 1
    assert is_all_noise(policy, td.CDF("x", where=visible))
    # The total over all vertices, the missing one included, is public.
    assert oracle.largest([[1] * 6], oracle.changes(adjacent, Person())) == 0
    assert policy.sensitivity(td.Linear([[1] * 6], "x")).value == 0


def test_the_number_of_kept_rows_is_a_secret_if_the_number_of_rows_is() -> None:
    """N = Σ min(m, rows of a person): one more row of a person who had one, m = 2."""
    total = [[1, 1, 1]]
    for counts, value in ((False, 0), (True, 1)):
        assert oracle.largest(total, oracle.changes(line(3), Person(2, counts_secret=counts))) == value
    policy = on(3, td.Within(1), People(2, "secret"))
    assert policy.sensitivity(td.Linear(total, "x")).value >= 1
    assert is_all_noise(policy, td.CDF("x"))
    free = candidates(td.CDF("x"), on(3, td.Within(1), People(2, "public")), ONE)
    assert any(s.n_exact for s in free)


def test_presence_makes_every_total_a_secret() -> None:
    """A person who may not be there moves the total by 1, and on a line every prefix that holds her."""
    changes = oracle.changes(line(4), Person(presence_secret=True))
    assert oracle.largest([[1] * 4], changes) == 1
    assert oracle.largest(cumulative(4), changes) == 4
    policy = on(4, td.Within(1), presence="secret")
    assert policy.sensitivity(td.Linear([[1] * 4], "x")).value == 1
    assert policy.sensitivity(td.CDF("x")).value == 4
    assert is_all_noise(policy, td.CDF("x")) and is_all_noise(policy, td.Histogram("x"))


def test_presence_makes_the_sizes_of_a_partitions_blocks_secrets() -> None:
    """Free under the partition, ∞ once presence is a secret."""
    blocks = [[1, 1, 0, 0], [0, 0, 1, 1]]
    adjacent = [[x != y and x // 2 == y // 2 for y in range(4)] for x in range(4)]
    totals = composed.Noisy(blocks, [F(0), F(0)])
    told = {p: oracle.changes(adjacent, Person(presence_secret=p)) for p in (False, True)}
    assert {p: max(totals.losses(changes)) for p, changes in told.items()} == {False: 0, True: math.inf}
    query = td.Histogram("x", bins={"x": 2})
    assert on(4, td.Partition(blocks=2)).sensitivity(query).value == 0
    assert on(4, td.Partition(blocks=2), presence="secret").sensitivity(query).value == 1


def test_the_total_of_part_of_the_domain_is_a_secret() -> None:
    """On the line 0 … 4 the number of values 1 … 3 changes at both ends of the filter."""
    part = [[0, 1, 1, 1, 0]]
    assert oracle.largest(part, oracle.changes(line(5), Person())) == 1
    policy = on(5, td.Within(1))
    assert policy.sensitivity(td.Linear([[1] * 3], "x", where={"x": (1, 3)})).value == 1
    assert is_all_noise(policy, td.CDF("x", where={"x": (1, 3)}))


# ---------- several rows of a person ----------


def test_squared_moves_grow_with_the_square_of_the_rows() -> None:
    """Gaussian noise, histogram: three rows cost 9 times one row's squared move, not 3 times."""
    one, three = (oracle.largest(identity(3), oracle.changes(full(3), Person(m)), 2) for m in (1, 3))
    assert (one, three) == (2, 18) and 3 * one < three
    assert on(3, td.Full(), People(3, "public")).sensitivity(td.Histogram("x"), norm="l2").value == three


def test_squared_moves_grow_with_the_square_of_the_weights() -> None:
    person = Person(weights=(0, 1, 2, 3))
    assert oracle.largest(identity(3), oracle.changes(full(3), person), 2) == 18
    policy = on(3, td.Full(), People(weight=weighted(0, 3, "public")))
    assert policy.sensitivity(td.Histogram("x"), norm="l2").value == 18
    assert policy.sensitivity(td.Histogram("x")).value == 6


def test_rows_that_vanish_cost_their_whole_column() -> None:
    """Line of five values, m = 3, prefix sums: three rows at the first value vanish with their person and move 15, not 3. If
    one row has to stay, it is at best at the far end: 14."""
    gone = oracle.changes(line(5), Person(3, counts_secret=True, presence_secret=True))
    stays = oracle.changes(line(5), Person(3, counts_secret=True))
    kept = oracle.changes(line(5), Person(3))
    assert [oracle.largest(cumulative(5), c) for c in (kept, stays, gone)] == [3, 14, 15]
    for people, presence, value in (
        (People(3, "public"), "public", 3),
        (People(3, "secret"), "public", 15),
        (People(3, "secret"), "secret", 15),
    ):
        assert on(5, td.Within(1), people, presence).sensitivity(td.CDF("x")).value == value


def test_selection_that_looks_at_values_changes_which_row_is_kept() -> None:
    """m = 1, rows 0 and 100, the one with the least hash of the whole row is kept: a move 0 → 1 along the line may uncover 100,
    and the prefix sums change by 100 instead of 1."""
    before, after = {0: (0, 1), 1: (100, 1)}, {0: (1, 1), 1: (100, 1)}
    chosen = Person(by_key=False)
    tops = [
        sum(abs(int(one[0][0] <= at) - int(two[0][0] <= at)) for at in range(101))
        for one, two in itertools.product(*(oracle.kept(raw, chosen, ()) for raw in (before, after)))
    ]
    assert max(tops) == 100
    keyed = Person()
    [[one]], [[two]] = (list(oracle.kept(raw, keyed, (0, 1))) for raw in (before, after))
    assert (one[0], two[0]) == (0, 1)
    assert on(101, td.Within(1), People(1, "public", False)).sensitivity(td.CDF("x")).value == 100
    assert on(101, td.Within(1), People(1, "public", True)).sensitivity(td.CDF("x")).value == 1
    # The same by enumeration of all raw rows of a small domain.
    for by_key, value in ((True, 1), (False, 4)):
        assert oracle.largest(cumulative(5), oracle.changes(line(5), Person(by_key=by_key))) == value


def test_known_counts_do_not_survive_the_choice_of_rows() -> None:
    """Three rows at 0, of which two are kept: a published count of 3 is wrong of what is released, so both are refused."""
    raw = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    [rows] = oracle.kept(raw, Person(2), (0, 1, 2))
    assert oracle.weighed(list(raw.values()), 2) == (3, 0) and oracle.weighed(rows, 2) == (2, 0)
    known = [td.CountConstraint({"x": 0}, answer=3)]
    with pytest.raises(Unsupported, match=r"policy\.constraints"):
        td.Policy(td.Domain(x=td.Integer(0, 1)), td.Full(), known, people=People(2, "public"))


def test_rule_r_does_not_speak_of_people_with_several_rows() -> None:
    """Full graph on 0 … 3, the number of values 0, 1 known: records make up for each other one by one and move the histogram
    by 4. A person whose two rows go (0, 0) → (2, 2), made up for by (3, 3) → (1, 1), moves it by 8."""
    facts = [[1, 1, 0, 0]]
    assert constrained.largest(constrained.neighbours(full(4), facts, 3), identity(4)).value == 4
    known = [td.CountConstraint({"x": (0, 1)})]
    domain = td.Domain(x=td.Integer(0, 3))
    assert td.Policy(domain, td.Full(), known).sensitivity(td.Histogram("x")).value == 4
    before, after = (
        oracle.weighed([(0, 1)] * 2 + [(3, 1)] * 2, 4),
        oracle.weighed([(2, 1)] * 2 + [(1, 1)] * 2, 4),
    )
    change = np.subtract(after, before)
    assert int(np.abs(change).sum()) == 8 and not (np.array(facts) @ change).any()
    for people, presence in (
        (People(2, "public"), "public"),
        (None, "secret"),
        (People(1, "secret"), "public"),
    ):
        with pytest.raises(Unsupported, match="known counts together"):
            td.Policy(domain, td.Full(), known, presence=presence, people=people)


# ---------- rows that push each other out ----------


@pytest.mark.parametrize("most", [1, 2])
def test_a_row_that_appears_displaces_another_that_no_edge_joins_to_it(most: int) -> None:
    """Regions a and b, no edge between them, number of rows secret, rows kept by a key. D = {k1: a}, D' = {k1: a, k2: b} with
    k2 first: what is kept goes from a to b and moves the histogram of regions by 2. "m times the largest move over the edges
    and ⊥" says 1, and m for m rows where the truth is 2m."""
    apart = [[False, False], [False, False]]
    person = Person(most, counts_secret=True)
    before = {most + i: (0, 1) for i in range(most)}
    after = before | dict.fromkeys(range(most), (1, 1))
    assert oracle.are_neighbours(apart, person, before, after)
    [one], [two] = (list(oracle.kept(raw, person, range(2 * most))) for raw in (before, after))
    assert (oracle.weighed(one, 2), oracle.weighed(two, 2)) == ((most, 0), (0, most))
    as_first_written = most * max(1, 0)  # a row and nothing: 1; along an edge: there is none
    true = oracle.largest(identity(2), oracle.changes(apart, person))
    assert (as_first_written, true) == (most, 2 * most)
    domain = td.Domain(region=td.Categorical(["a", "b"]), age=td.Integer(0, 1))
    for secrets in (td.AttributeWise(age=td.Full()), td.Nothing()):
        policy = td.Policy(domain, secrets, people=People(most, "secret"))
        assert policy.sensitivity(td.Histogram("region")).value == true
        assert policy.sensitivity(td.Histogram("region"), norm="l2").value == 2 * most**2
        assert is_all_noise(policy, td.Histogram("region"))
    # With a public number of rows nothing displaces anything.
    fixed = td.Policy(domain, td.AttributeWise(age=td.Full()), people=People(most, "public"))
    assert fixed.sensitivity(td.Histogram("region")).value == 0


@pytest.mark.parametrize(
    "people", [People(1, "secret"), People(1, "public", False)], ids=["counts", "no key"]
)
def test_a_row_that_displaces_another_brings_its_own_public_weight(people: People) -> None:
    """One value, weights 1 and 2, public: no row changes its weight, but the kept row does. D = {k2: (a, 1)}, D' = {k1: (a, 2),
    k2: (a, 1)}: the sum of weights, "public" by itself, moves by 1."""
    person = Person(1, people.row_counts == "secret", people.has_key, (1, 2))
    assert oracle.largest([[1]], oracle.changes([[False]], person)) == 1
    assert len(oracle.changes([[False]], Person(1, weights=(1, 2)))) == 0
    told = People(people.max_rows, people.row_counts, people.has_key, weighted(1, 2, "public"))
    policy = on(3, td.Within(1), told)
    assert policy.sensitivity(td.Linear([[1, 1, 1]], "x")).value >= 1
    assert is_all_noise(policy, td.CDF("x")) and is_all_noise(policy, td.Histogram("x"))
    keyed = on(3, td.Within(1), People(1, "public", True, weighted(1, 2, "public")))
    assert keyed.sensitivity(td.Linear([[1, 1, 1]], "x")).value == 0


# ---------- parts of a table ----------


def charge(
    name: str, policy: Any, query: Any, factor: Fraction = ONE_UNIT, is_by_record: bool = False
) -> Charge:
    """The query's own rows, at a loss of ``factor`` per unit."""
    rows, flag = term(policy, query, factor, is_by_record), "row" if is_by_record else "histogram"
    move = stacked([rows], policy.neighbourhood)
    loss, by = Loss("epsilon", F(move.value)), {key: F(value) for key, value in move.by_secret.items()}
    cost = cost_spec(loss, move.rule, by, [rows])
    return Charge(name, "", loss, query.to_spec(), {}, "", cost, policy.hash, flag=flag)


def test_parts_by_a_public_column_are_not_different_people_where_rows_displace_each_other() -> None:
    """Parallel by person needs sets of people that no other column decides. Region is no secret, yet the kept row of a person
    with rows in both regions may change from one to the other, so the losses of the two parts add up: 2, not 1."""
    domain = td.Domain(region=td.Categorical(["a", "b"]), age=td.Integer(0, 1))
    secrets, parts = td.AttributeWise(age=td.Full()), ([[1, 1, 0, 0]], [[0, 0, 1, 1]])
    adjacent = brute.adjacency(domain, secrets)
    for counts, value in ((False, 0), (True, 2)):
        changes = oracle.changes(adjacent, Person(1, counts_secret=counts))
        noisy = [composed.Noisy(rows, [F(1)]) for rows in parts]
        told = zip(*(n.losses(changes) for n in noisy), strict=True)
        assert max(sum(pair) for pair in told) == value
        policy = td.Policy(domain, secrets, people=People(1, "secret" if counts else "public"))
        charges = [charge(r, policy, td.Linear([[1, 1]], "age", where={"region": [r]})) for r in ("a", "b")]
        assert loss_under(policy, charges).value == value


def test_a_session_is_not_split_where_rows_displace_each_other() -> None:
    domain = td.Domain(region=td.Categorical(["a", "b"]), age=td.Integer(0, 1))
    told = {"who": ["p", "p", "q"], "visit": [1, 2, 1], "region": ["a", "b", "a"], "age": [0, 1, 1]}
    for counts in ("public", "secret"):
        table = td.Table(told, domain, id="who", max_rows_per_id=1, keep_by="visit", row_counts=counts)
        session = td.Session(table, td.Policy(domain, td.AttributeWise(age=td.Full())), epsilon=1)
        if counts == "public":
            assert list(session.split(by="region")) == ["a", "b"]
        else:
            with pytest.raises(PolicyError, match="secret pair"):
                session.split(by="region")


# ---------- weights beside outputs of records ----------


def test_a_value_and_its_weight_change_together() -> None:
    """Two values, weights 0 and 1, secret. The total moves by 1 along no edge, outputs of records by 1 along the edge, and
    (0, weight 1) → (1, weight 0) moves both: 2 where the larger of the two is 1."""
    policy = on(2, td.Full(), People(weight=weighted(0, 1, "secret")))
    person = Person(weights=(0, 1), weights_secret=True)
    assert ((0, 1), (1, 0)) in oracle.row_steps(full(2), person)
    total, records = term(policy, td.Linear([[1, 1]], "x")), term(policy, td.Histogram("x"), F(1, 2), True)
    assert [stacked([t], policy.neighbourhood).value for t in (total, records)] == [1, 1]
    assert stacked([total, records], policy.neighbourhood).value >= 2


@pytest.mark.parametrize("work", [0, 10**6], ids=["sums", "together"])
def test_an_account_adds_weights_to_outputs_of_records(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in a ledger, where the losses of a total are kept by secret: that of a weight goes with every attribute's."""
    monkeypatch.setattr(composition, "SMALL_WORK", work)
    domain = td.Domain(x=td.Integer(0, 1), y=td.Integer(0, 1))
    people = People(weight=weighted(0, 1, "secret"))
    policy = td.Policy(domain, td.AttributeWise(x=td.Full()), people=people)
    counts = charge("total", policy, td.Linear([[1, 1]], "x"))
    records = charge("rows", policy, td.Histogram("x"), F(1, 2), is_by_record=True)
    assert [c.loss.amount for c in (counts, records)] == [1, 1]
    assert loss_under(policy, [counts, records]).value >= 2


def test_whoever_may_be_absent_takes_her_exempt_rows_along() -> None:
    """A person with a row that is exempt and one that is not. Taking all of her away removes the exempt row; taking away only
    the other one, with m = 1, uncovers it. Either way the exact table of the exempt moves by 1."""
    no, yes = (0, 1), (1, 1)
    both, exempt_only = {0: no, 1: yes}, {1: yes}

    def exempt_kept(raw: oracle.Raw, most: int) -> int:
        [rows] = oracle.kept(raw, Person(most), (0, 1))
        return oracle.weighed(rows, 2)[1]

    assert (exempt_kept(both, 2), exempt_kept(oracle.NOBODY, 2)) == (1, 0)
    assert (exempt_kept(both, 1), exempt_kept(exempt_only, 1)) == (0, 1)
    domain = td.Domain(x=td.Integer(0, 1), ok=td.Categorical(["no", "yes"]))
    more: dict[str, Any] = {"presence": "secret", "exempt": {"ok": ["yes"]}}
    with pytest.raises(Unsupported, match=r"policy\.exempt"):
        td.Policy(domain, td.AttributeWise(x=td.Full()), people=People(2, "public"), **more)
    told = {"who": ["p", "p"], "visit": [1, 2], "ok": ["no", "yes"], "x": [0, 1]}
    table = td.Table(told, domain, id="who", max_rows_per_id=1, keep_by="visit", row_counts="public")
    with pytest.raises(Unsupported, match=r"policy\.exempt"):
        td.Session(table, td.Policy(domain, td.AttributeWise(x=td.Full()), **more), epsilon=1)


# ---------- bounds that nobody attains ----------


def test_where_prices_are_bounds_and_not_the_truth() -> None:
    """Rows vanish but their person stays: the total moves by m − 1 and not m. Secret weights of at least 2 out of 3: by 1 and
    not 3. Both are exact if presence is a secret too."""
    total, query = [[1, 1]], td.Linear([[1, 1]], "x")
    cases: list[tuple[Person, People, int, int]] = [
        (Person(2, counts_secret=True), People(2, "secret"), 1, 2),
        (Person(3, counts_secret=True), People(3, "secret"), 2, 3),
        (Person(weights=(2, 3), weights_secret=True), People(weight=weighted(2, 3, "secret")), 1, 3),
    ]
    for person, people, true, price in cases:
        assert oracle.largest(total, oracle.changes(full(2), person)) == true
        assert on(2, td.Full(), people).sensitivity(query).value == price
        gone = Person(person.most, person.counts_secret, True, person.weights, person.weights_secret, True)
        assert oracle.largest(total, oracle.changes(full(2), gone)) == price
        assert on(2, td.Full(), people, "secret").sensitivity(query).value == price
