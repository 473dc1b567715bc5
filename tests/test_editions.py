"""Editions: what several tables of the same people lose together, budgets that renew, totals that are raised.

The number of random policies per seed is multiplied by ``TETRAODON_EFFORT``.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import brute, composed, constrained
from test_composition import EFFORT, LINE, PEOPLE, READINGS, SIX, TWO, count, opened, released
from test_ledger import DIGEST, TAX, bodies, charge, rebuild
from test_rows import DOMAIN as MAP
from test_rows import NEAR, people, permanent

import tetraodon as td
from tetraodon import composition
from tetraodon.composition import loss_under
from tetraodon.editions import RENEWAL
from tetraodon.entries import Charge
from tetraodon.errors import BudgetError, LedgerError, PolicyError, SpecificationError
from tetraodon.ledger import Ledger, verify
from tetraodon.loss import Loss
from tetraodon.parallel import check_split
from tetraodon.people import People

Run = Callable[..., tuple[int, str, str]]


def of(edition: str, made: Charge) -> Charge:
    return dataclasses.replace(made, edition=edition)


# ---------- the rule, against every pair of neighbours ----------


def worst(
    policy: Any, releases: Mapping[str, Sequence[composed.Noisy]], unit: str = "epsilon"
) -> Fraction | float:
    """The largest loss between neighbours over several editions, by enumeration: one person's record moves along some edge in
    every edition, of the same attribute in all of them where each attribute is a secret of its own."""
    cells = brute.tuples(policy.domain)
    every = brute.edges(brute.adjacency(policy.domain, policy.secrets))
    kinds: list[list[tuple[int, int]]] = [sorted(every)]
    if isinstance(policy.secrets, td.AttributeWise):
        kinds = [
            [(a, b) for a, b in sorted(every) if cells[a][i] != cells[b][i]]
            for i in range(len(policy.domain))
        ]
    best: Fraction | float = Fraction(0)
    for own in kinds:
        for moves in itertools.product(own, repeat=len(releases)) if own else ():
            total: Fraction | float = Fraction(0)
            for (a, b), seen in zip(moves, releases.values(), strict=True):
                change = [int(v == b) - int(v == a) for v in range(len(cells))]
                for noisy in seen:
                    loss = noisy.loss(change)
                    total += loss * loss / 2 if unit == "rho" and noisy.power == 1 else loss
            best = max(best, total)
    return best


def test_releases_of_other_values_in_another_edition_add_up() -> None:
    """Everybody has one age at a time: 0 or 1 in one year and 2 or 3 in the next. Releases that no single change of a record
    meets together are both told of the same person, and the odds change by the product."""
    domain = td.Domain(a=td.Integer(0, 3))
    policy = td.Policy(domain, td.Within(1))
    first, second = (
        released(n, policy, td.Linear([row], "a")) for n, row in (("x", [1, 0, 0, 0]), ("y", [0, 0, 0, 1]))
    )
    assert loss_under(policy, [first, second]).value == 1  # of one table
    # One person, 0 or 1 in the first edition and 3 or 2 in the second: exact laws of both outputs.
    q = Fraction(2, 5)
    before = composed.joint(composed.clamped(1, 4, q), lambda _: composed.clamped(1, 4, q))
    after = composed.joint(composed.clamped(0, 4, q), lambda _: composed.clamped(0, 4, q))
    assert composed.ratio(before, after) == (1 / q) ** 2 > 1 / q
    rows = {
        "2025": [composed.Noisy([[1, 0, 0, 0]], [Fraction(1)])],
        "2026": [composed.Noisy([[0, 0, 0, 1]], [Fraction(1)])],
    }
    assert worst(policy, rows) == 2
    assert loss_under(policy, [of("2025", first), of("2026", second)]).value == 2
    ledger = opened(policy, "1.5")
    ledger.declare(td.Policy(domain, td.AttributeWise(a=td.Within(1))))
    ledger.charge(of("2025", first))
    with pytest.raises(BudgetError, match=r"'y' asks for epsilon 1 .*; 0\.5 of 1\.5 is left"):
        ledger.charge(of("2026", second))
    ledger.charge(of("2025", second))
    assert ledger.spent == 1


def test_people_move_between_editions() -> None:
    """Who lives in the north this year may live in the south the next: parts are different people in one edition only."""
    policy = td.Policy(TWO, PEOPLE)
    north, south = (released(r, policy, td.CDF("age", where={"region": [r]})) for r in "ns")
    assert loss_under(policy, [of("2025", north), of("2025", south)]).value == 1
    assert loss_under(policy, [of("2025", north), of("2026", south)]).value == 2
    ledger = opened(policy, 2)
    ledger.charge_all([of("2025", north), of("2026", south)])
    # Of the people of the west in 2026 nothing is known from 2026, and 1 from 2025, where they may have lived in the north.
    assert [ledger.remaining_within({"region": r}, "2026") for r in range(3)] == [1, 0, 1]
    assert [ledger.remaining_within({"region": r}, "2027") for r in range(3)] == [0, 0, 0]
    ledger.charge(of("2026", released("w", policy, td.CDF("age", where={"region": ["w"]}))))
    assert ledger.spent == 2
    with pytest.raises(BudgetError, match="0 of 2 is left"):
        ledger.charge(of("2027", released("w", policy, td.CDF("age", where={"region": ["w"]}))))


def test_sessions_split_within_their_edition() -> None:
    rows = {"region": ["n", "s", "w"], "sex": ["f", "m", "f"], "age": [0, 1, 3]}
    policy = td.Policy(TWO, PEOPLE)
    made = td.Session(td.Table(rows, TWO, name="t", edition="2026"), policy, epsilon=2)
    made.ledger.charge(of("2025", released("all", policy, td.CDF("age"))))
    parts = made.split(by="region")
    assert {p.remaining.amount for p in parts.values()} == {1}
    parts["n"].release(td.CDF("age"), epsilon=1)
    assert [p.remaining.amount for p in parts.values()] == [0, 1, 1] and made.remaining.epsilon == 0
    parts["s"].release(td.CDF("age"), epsilon=1)
    assert made.ledger.spent == 2


def test_one_attribute_of_a_person_is_one_secret_in_all_editions() -> None:
    policy = td.Policy(TWO, PEOPLE)
    ages, sexes = released("ages", policy, td.CDF("age")), released("sexes", policy, td.Histogram("sex"))
    told = loss_under(policy, [of("1", ages), of("2", sexes), of("3", ages)])
    assert told.by_secret == {"age": 2, "sex": 2}


def stated(name: str, edition: str, by: Mapping[str, int], policy: Any) -> Charge:
    """A charge without rows, which says what it loses by secret."""
    loss = Loss("epsilon", Fraction(max(by.values())))
    return Charge(name, edition, loss, {}, {}, "", {"by": {k: str(v) for k, v in by.items()}}, policy.hash)


def test_a_loss_of_any_change_counts_for_secrets_that_only_another_edition_names() -> None:
    """5 for any change and 1 for ages in one edition, 10 for sexes in the next: a sex loses 15."""
    policy = td.Policy(TWO, PEOPLE)
    first = [stated("a", "1", {"any": 5}, policy), stated("b", "1", {"age": 1}, policy)]
    second = stated("c", "2", {"sex": 10}, policy)
    told = loss_under(policy, [*first, second])
    assert told.by_secret == {"age": 6, "sex": 15}
    assert loss_under(policy, first).by_secret == {"age": 6}
    ledger = opened(policy, 15)
    ledger.charge_all([*first, second])
    assert ledger.spent == 15


@pytest.mark.parametrize("work", [0, 10**6], ids=["sums", "together"])
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_losses_over_editions_are_never_below_the_truth(
    unit: str, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random releases from two or three editions under a policy that none was made for; exact for one attribute."""
    monkeypatch.setattr(composition, "SMALL_WORK", work)
    rng, compared, exact, above = np.random.default_rng(23 + len(unit)), 0, 0, 0
    for _ in range(50 * EFFORT):
        domain = constrained.drawn(rng, most=40).domain
        policy = td.Policy(domain, constrained.some_secrets(rng, domain))
        charges: list[Charge] = []
        seen: dict[str, list[composed.Noisy]] = {}
        declared = {}
        for at in range(int(rng.integers(2, 5))):
            asked = constrained.asked(rng, domain)
            question = asked[int(rng.choice([0, 1, 2, 4]))]
            own = td.Policy(domain, constrained.some_secrets(rng, domain))
            declared[own.hash] = own
            power = 2 if unit == "rho" and rng.random() < 0.6 else 1
            factor = Fraction(int(rng.integers(1, 6)), int(rng.integers(1, 6)))
            made = released(str(at), own, question.query(), factor, "rho" if power == 2 else "epsilon")
            edition = str(rng.integers(2026, 2028 if domain.size > 4 else 2029))
            matrix = constrained.dense(question, domain).tolist()
            noise = [1 / factor if power == 1 else 1 / (2 * factor)] * len(matrix)
            charges.append(of(edition, made))
            seen.setdefault(edition, []).append(composed.Noisy(matrix, noise, power))
        true = worst(policy, seen, unit)
        found = loss_under(policy, charges, unit, declared).value  # type: ignore[arg-type]
        assert found >= true, (policy, seen, found, true)
        compared += len(seen) > 1
        above += found > max(worst(policy, {k: v}, unit) for k, v in seen.items())
        if work and len(domain) == 1:
            assert found == true, (policy, seen)
            exact += len(seen) > 1
    assert compared > 20 * EFFORT and above > 10 * EFFORT and (exact > 5 * EFFORT or not work)


def test_known_counts_bind_each_edition_by_itself() -> None:
    """Several records of each table change; the losses of both tables' worst changes add up."""
    rng, compared = np.random.default_rng(29), 0
    for _ in range(25 * EFFORT):
        case = constrained.drawn(rng, most=400)
        own = td.Policy(case.domain, case.secrets)
        charges, seen = [], []
        for edition in ("1", "2"):
            asked = constrained.asked(rng, case.domain)
            question = asked[int(rng.choice([0, 1, 2, 4]))]
            charges.append(of(edition, released("x", own, question.query(), Fraction(1, 2))))
            matrix = constrained.dense(question, case.domain).tolist()
            seen.append(composed.Noisy(matrix, [Fraction(2)] * len(matrix)))
        try:
            found = loss_under(case.policy(), charges).value
        except PolicyError:
            continue
        for reading in READINGS:
            pairs = constrained.neighbours(case.adjacent, case.predicates, case.n, reading)
            assert found >= sum(composed.worst([noisy], pairs).value for noisy in seen)
        compared += 1
    assert compared >= 8 * EFFORT


def test_known_counts_with_other_answers_in_every_edition() -> None:
    """Two records in one edition, three in the next: at most so many change together. The account covers the sum of both
    truths, by enumeration, which neither policy's own price does."""
    domain = td.Domain(a=td.Integer(0, 2), b=td.Integer(0, 1))
    secrets = td.Full()
    answers = {"1": (1, 1, 0), "2": (1, 1, 1)}
    policies = {
        e: td.Policy(domain, secrets, [td.MarginalConstraint("a", answers=told)])
        for e, told in answers.items()
    }
    question = brute.Asked("Histogram", ("a", "b"))
    matrix = constrained.dense(question, domain).tolist()
    noisy = composed.Noisy(matrix, [Fraction(1)] * len(matrix))
    predicates = [[int(cell[0] == v) for cell in brute.tuples(domain)] for v in range(3)]
    adjacent = brute.adjacency(domain, secrets)
    true = Fraction(0)
    for told in answers.values():
        pairs = [constrained.neighbours(adjacent, predicates, sum(told), reading) for reading in READINGS]
        true += max(Fraction(composed.worst([noisy], each).value) for each in pairs)
    ledger = opened(policies["1"], 100)
    ledger.charge(of("1", released("cells", policies["1"], question.query())))
    ledger.declare(policies["2"])
    ledger.charge(of("2", released("cells", policies["2"], question.query())))
    by_policy = {account.title: account.losses.value for account in ledger.accounts}
    assert ledger.spent >= true and ledger.accounts[0].losses.value < ledger.spent, (true, by_policy)


# ---------- people whose rows come, go and displace each other ----------


def test_rows_that_may_become_any_other_are_of_no_part() -> None:
    """Rows kept without a key: a kept row of the north may make room for one of the south."""
    policy = td.Policy(TWO, PEOPLE, people=People(2, "public", False))
    charges = [released(r, policy, td.CDF("age", where={"region": [r]})) for r in "ns"]
    assert charges[0].loss == charges[1].loss
    assert loss_under(policy, charges).value == 2 * charges[0].loss.amount
    with pytest.raises(PolicyError, match="is a secret pair"):
        check_split(composition.in_force([(1, policy)]), "region")
    keyed = td.Policy(TWO, PEOPLE, people=People(2))
    charges = [released(r, keyed, td.CDF("age", where={"region": [r]})) for r in "ns"]
    assert loss_under(keyed, charges).value == charges[0].loss.amount == 2
    check_split(composition.in_force([(1, keyed)]), "region")


def test_gaussian_and_pure_releases_of_people_with_several_rows() -> None:
    """Three rows of a person move: 3² times the squared moves, and (3ε)²/2."""
    one, three = (td.Policy(LINE, td.Within(1), people=People(m)) for m in (1, 3))
    for policy, times in ((one, 1), (three, 9)):
        charges = [
            released("g", policy, td.CDF("a"), Fraction(1, 2), "rho"),
            released("l", policy, td.CDF("a"), Fraction(1)),
        ]
        assert loss_under(policy, charges, "rho").value == times * (Fraction(1, 2) + Fraction(1, 2))


def test_policies_in_force_keep_their_people() -> None:
    several = td.Policy(SIX, td.Within(1), people=People(3))
    [alone] = composition.in_force([(1, several)])
    assert alone.policy == several and not alone.is_union
    with pytest.raises(PolicyError, match="known counts of several policies together"):
        composition.in_force([(1, several), (2, td.Policy(SIX, td.Within(1), constraints=[count(0, 2)]))])


# ---------- budgets that renew ----------


RENEWING = {**TAX, "renews": "edition"}


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return Ledger.in_memory(**RENEWING)
    return Ledger.open(tmp_path / "tax.ledger", **RENEWING)


def test_every_edition_has_the_budget_to_itself(ledger: Ledger) -> None:
    ledger.charge(charge("a", "3/4", edition="2025"))
    ledger.charge(charge("a", "1/2", edition="2026"))
    head = ledger.head
    with pytest.raises(BudgetError, match=r"'b' asks for epsilon 0\.5; 0\.25 of 1 is left in edition '2025'"):
        ledger.charge(charge("b", "1/2", edition="2025"))
    with pytest.raises(BudgetError, match=r"'c' asks for epsilon 0\.75; 0\.5 of 1 is left in edition '2026'"):
        ledger.charge_all([charge("b", "1/4", edition="2025"), charge("c", "3/4", edition="2026")])
    assert ledger.head == head
    assert (ledger.renews, ledger.editions) == ("edition", ("2025", "2026"))
    assert (ledger.spent, ledger.remaining) == (Fraction(3, 4), Fraction(1, 4))
    assert [ledger.remaining_for(e) for e in ("2025", "2026", "2027")] == [Fraction(1, 4), Fraction(1, 2), 1]
    [all_of_them], [one] = ledger.accounts, ledger.accounts_for("2026")
    assert (all_of_them.losses.value, one.losses.value) == (Fraction(5, 4), Fraction(1, 2))
    ledger.charge_all([charge("b", "1/4", edition="2025"), charge("c", "1/2", edition="2026")])
    assert (ledger.remaining, ledger.remaining_for("2027")) == (0, 1)


def test_whether_a_budget_renews_is_fixed_when_the_ledger_is_made(tmp_path: Path) -> None:
    for name, made, asked, message in (
        (
            "a",
            TAX,
            RENEWING,
            "the budget renewed is with no edition in the ledger and with every edition here",
        ),
        (
            "b",
            RENEWING,
            TAX,
            "the budget renewed is with every edition in the ledger and with no edition here",
        ),
    ):
        path = tmp_path / name
        Ledger.open(path, **made)
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=message):
            Ledger.open(path, **asked)
        assert path.read_bytes() == before
        Ledger.open(path, **made)
    for wrong in ("year", "", True, ["edition"]):
        with pytest.raises(SpecificationError, match=r'ledger\.renews: "edition", or leave it out'):
            Ledger.in_memory(**TAX, renews=wrong)  # type: ignore[arg-type]


def test_ledgers_that_do_not_renew_keep_their_first_row(tmp_path: Path) -> None:
    """Word for word what earlier versions wrote; and a row that says something else about it is none of ours."""
    path = tmp_path / "a"
    Ledger.open(path, **TAX)
    [row] = bodies(path)
    assert set(row) == {
        "kind", "format", "identity", "data", "domain_hash", "policy", "policy_hash", "unit", "total", "delta", "time",
    }  # fmt: skip
    for wrong in (None, "year", False):
        rebuild(path, [row | {"renews": wrong}])
        assert any("row 1 cannot be read" in problem for problem in verify(path).problems)
    rebuild(path, [row | {"renews": "edition"}])
    assert verify(path).ok and Ledger.read(path).renews == "edition"


def test_a_policy_that_is_declared_later_is_held_against_each_edition() -> None:
    """A CDF of each edition costs 1 on a line, and 8 once #[0, 4] is known: 8 in each edition, 16 in both."""
    before = td.Policy(LINE, td.Within(1))
    after = td.Policy(LINE, td.Within(1), constraints=[count(0, 4)])
    for total, renews, fits in (
        ("7.9", "edition", False),
        (8, "edition", True),
        (15, None, False),
        (16, None, True),
    ):
        told = {"policy": before.to_spec(), "policy_hash": before.hash, "renews": renews}
        made = Ledger.in_memory(**TAX | told | {"total": Loss("epsilon", Fraction(total))})
        made.charge_all([of(e, released("cdf", before, td.CDF("a"))) for e in ("1", "2")])
        if fits:
            made.declare(after)
            assert made.spent == made.total and made.remaining_for("3") == (8 if renews else 0)
        else:
            with pytest.raises(BudgetError, match="already loses"):
                made.declare(after)


def test_permanent_answers_are_paid_for_in_every_edition_of_a_budget_that_renews(tmp_path: Path) -> None:
    """Somebody who is in the second edition alone is promised its budget, so its account counts the answers that he got."""
    for renews, spent in ((None, [1, 1]), ("edition", [1, 1, 2])):
        folder = tmp_path / str(renews)
        folder.mkdir()
        for edition in ("2025", "2026"):
            table = td.Table(people(), MAP, name="t", edition=edition)
            made = td.Session(table, NEAR, epsilon=4, ledger=folder / "a.ledger", renews=renews)
            made.release(permanent(folder), epsilon=1, name="day 1")
            made.release(permanent(folder), epsilon=1, name="day 2")
        assert made.ledger.spent == spent[0]
        assert made.ledger.accounts[0].losses.value == spent[-1]
        assert made.remaining.epsilon == 3


# ---------- raised totals ----------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """1/2 and 1/4 of 1 are spent."""
    path = tmp_path / "tax.ledger"
    made = Ledger.open(path, **TAX)
    made.charge_all([charge("a", "1/2"), charge("b", "1/4")])
    return path


def test_a_total_is_raised_with_a_reason(path: Path) -> None:
    old, made = Ledger.open(path, **TAX), Ledger.existing(path)
    assert made.raise_total("3/2", "a second wave") == 4
    row = made.entries[-1]
    assert (row.kind, {k: row.body[k] for k in ("unit", "total", "reason")}) == (
        "raised",
        {"unit": "epsilon", "total": "3/2", "reason": "a second wave"},
    )
    assert (made.total, made.remaining, old.total) == (Fraction(3, 2), Fraction(3, 4), Fraction(3, 2))
    old.charge(charge("c", "3/4"))
    assert made.remaining == 0
    made.raise_total(2, "a third one")
    assert [(e.seq, a, b) for e, a, b in made.raises] == [(4, 1, Fraction(3, 2)), (6, Fraction(3, 2), 2)]
    found = verify(path)
    assert found.ok and found.rows == 6 and all("never published" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("to", "reason", "error", "message"),
    [
        (
            1,
            "same",
            LedgerError,
            r"the total is epsilon 1; it can only be raised, not set to 1\. Nothing was",
        ),
        ("0.9", "down", LedgerError, r"it can only be raised, not set to 0\.9"),
        (0, "none", SpecificationError, r"ledger\.raise\.to"),
        (-1, "less", SpecificationError, r"ledger\.raise\.to"),
        ("two", "words", SpecificationError, r"ledger\.raise\.to"),
        (2, "", SpecificationError, r"raised\.reason: must be a text"),
        (2, " ", SpecificationError, r"raised\.reason: must be a text"),
        (2, None, SpecificationError, r"raised\.reason: must be a text"),
        (2, "one\ntwo", SpecificationError, r"raised\.reason: one line"),
        (2, "a\u202eb", SpecificationError, r"raised\.reason: one line"),
        (2, "x" * 501, SpecificationError, r"at most 500"),
    ],
)
def test_a_raise_that_is_none_changes_nothing(
    path: Path, to: Any, reason: Any, error: type[Exception], message: str
) -> None:
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        Ledger.existing(path).raise_total(to, reason)
    with pytest.raises(LedgerError, match="opened for reading only"):
        Ledger.read(path).raise_total(3, "why not")
    assert path.read_bytes() == before


def test_only_a_ledger_that_is_there_is_raised(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no such file"):
        Ledger.existing(tmp_path / "absent.ledger").raise_total(2, "why not")
    assert list(tmp_path.iterdir()) == [path]
    rows = bodies(path)
    rebuild(path, [rows[0], rows[1] | {"amount": "-1"}])
    with pytest.raises(LedgerError, match="row 2 cannot be read"):
        Ledger.existing(path).raise_total(2, "why not")


def test_settings_with_the_old_total_are_refused_with_the_new_one(path: Path) -> None:
    Ledger.existing(path).raise_total(2, "a second wave")
    with pytest.raises(
        LedgerError,
        match=r"the total epsilon is 2 in the ledger and 1 here \(raised in row 4, on 2.*: state 2\)",
    ):
        Ledger.open(path, **TAX)
    assert Ledger.open(path, **TAX | {"total": Loss("epsilon", Fraction(2))}).remaining == Fraction(5, 4)


def test_settings_with_a_larger_total_are_told_how_it_is_raised(path: Path) -> None:
    with pytest.raises(
        LedgerError, match=r"is 1 in the ledger and 2 here \(only `tetraodon ledger raise` changes it"
    ):
        Ledger.open(path, **TAX | {"total": Loss("epsilon", Fraction(2))})


RAISED = {
    "kind": "raised",
    "unit": "epsilon",
    "total": "2",
    "reason": "why",
    "time": "2026-01-01T00:00:00+00:00",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": "1"}, "row 4 sets a total that is not above the one before it"),
        ({"total": "1/2"}, "row 4 sets a total that is not above the one before it"),
        ({"unit": "rho"}, "row 4 sets a total that is not above the one before it"),
        ({"total": "2.0"}, "row 4 cannot be read"),
        ({"total": 2}, "row 4 cannot be read"),
        ({"total": "-2"}, "row 4 cannot be read"),
        ({"reason": ""}, "row 4 cannot be read"),
        ({"reason": "a\nb"}, "row 4 cannot be read"),
        ({"by": "me"}, "row 4 cannot be read"),
    ],
)
def test_a_false_raise_in_a_sound_chain_is_found(path: Path, change: dict[str, Any], message: str) -> None:
    rows = bodies(path)
    rebuild(path, [*rows, RAISED])
    assert verify(path).ok
    rebuild(path, [*rows, RAISED | change])
    assert any(message in problem for problem in verify(path).problems)
    with pytest.raises(LedgerError, match="Nothing was spent"):
        Ledger.read(path)


def test_a_ledger_that_is_priced_beyond_its_total_is_used_again_once_it_is_raised(path: Path) -> None:
    """What a stricter price of a later version leaves; a raise below what is spent is refused."""
    rows = bodies(path)
    rebuild(path, [*rows[:2], rows[2] | {"amount": "3/4"}])
    assert verify(path).problems == ("row 3 spends beyond the total: 1.25 of 1.",)
    with pytest.raises(
        LedgerError, match=r"row 3 spends beyond the total: 1\.25 of 1\. Nothing was spent\..*ledger raise"
    ):
        Ledger.open(path, **TAX)
    with pytest.raises(LedgerError, match=r"epsilon 1\.25 is spent already, more than 1\.2"):
        Ledger.existing(path).raise_total("1.2", "repriced")
    Ledger.existing(path).raise_total("1.25", "repriced")
    assert Ledger.read(path).remaining == 0
    found = verify(path)
    assert found.ok and found.warnings[0] == (
        "row 3 spends beyond the total: 1.25 of 1. The total was raised in row 4."
    )


def raise_and_spend(path: str, worker: int) -> tuple[int, int]:
    """20 charges of 1/20, and four raises by 1/4 each; how many of each were granted."""
    made, charged, raised = Ledger.existing(path), 0, 0
    for i in range(20):
        try:
            made.charge(charge(f"{worker}-{i}", "1/20"))
            charged += 1
        except BudgetError:
            pass
        if i % 5 == 4:
            try:
                made.raise_total(Fraction(5 + i // 5, 4), "more")
                raised += 1
            except LedgerError:
                pass
    return charged, raised


def test_processes_that_raise_and_charge_cannot_overspend(path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(raise_and_spend, [str(path)] * 3, range(3)))
    made = Ledger.read(path)
    raises = [after for _, _, after in made.raises]
    assert sum(raised for _, raised in found) == len(raises)
    assert raises == sorted(set(raises)) and raises[-1] == made.total == 2
    assert made.spent == Fraction(3, 4) + Fraction(sum(c for c, _ in found), 20) <= 2
    assert verify(path).ok


def test_a_renewing_budget_is_raised_for_every_edition(ledger: Ledger) -> None:
    ledger.charge_all([charge("a", 1, edition=e) for e in ("2025", "2026")])
    ledger.raise_total("3/2", "more questions")
    assert [ledger.remaining_for(e) for e in ("2025", "2026", "2027")] == [
        Fraction(1, 2),
        Fraction(1, 2),
        Fraction(3, 2),
    ]


# ---------- settings, pages, files ----------


SETTINGS = """
[data]
source = "people.csv"
name = "people"
edition = "{edition}"

[domain.age]
integer = [0, 9]

[policy.secrets]
age = {{ within = 1 }}

[budget]
epsilon = {total}
ledger = "people.ledger"
{renews}

[[release]]
name = "ages"
epsilon = "3/4"
query = {{ cdf = "age" }}
"""


def settings(folder: Path, edition: str, total: object = 1, renews: str = 'renews = "edition"') -> Path:
    (folder / "people.csv").write_text("age\n3\n4\n9\n")
    path = folder / f"{edition}.toml"
    path.write_text(SETTINGS.format(edition=edition, total=total, renews=renews))
    return path


def test_a_budget_that_renews_is_said_wherever_its_total_is(tmp_path: Path, run: Run) -> None:
    first, second = settings(tmp_path, "2025"), settings(tmp_path, "2026")
    for command in ("plan", "explain"):
        code, out, _ = run(command, first)
        assert code == 0 and RENEWAL in out
    assert run("release", first, "--out", tmp_path / "a")[0] == 0
    code, out, _ = run("plan", second)
    assert "1 of 1 is left: it fits" in out and RENEWAL in out
    code, out, err = run("release", second, "--out", tmp_path / "b")
    assert code == 0, err
    assert "Spent 0.75 of 1 in edition '2026'" in out and RENEWAL in out
    assert "So far 2 editions; whoever is in all of them may have lost 1.5." in out
    budget = json.loads((tmp_path / "b" / "manifest.json").read_text())["budget"]
    assert {k: budget[k] for k in ("renews", "spent", "remaining", "elsewhere", "editions", "raises")} == {
        "renews": "edition", "spent": "0.75", "remaining": "0.25", "elsewhere": "0",
        "editions": {"number": 2, "this": "0.75", "together": "1.5"}, "raises": [],
    }  # fmt: skip
    page = (tmp_path / "b" / "report.html").read_text()
    assert page.count(RENEWAL) == 2 and "So far 2 editions: this one loses ε 0.75, and whoever" in page
    code, out, _ = run("ledger", "show", tmp_path / "people.ledger")
    assert RENEWAL in out and "0.75 of 1 spent in the edition that lost most, 0.25 left there." in out
    assert "2 editions (2025 0.75, 2026 0.75): whoever is in all of them may have lost 1.5" in out
    told = json.loads(run("ledger", "show", tmp_path / "people.ledger", "--json")[1])
    assert (told["renews"], told["editions"], told["together"]) == (
        "edition",
        {"2025": "0.75", "2026": "0.75"},
        "1.5",
    )
    shared = settings(tmp_path, "2027", renews="")
    code, out, _ = run("plan", shared)
    assert "the budget renewed is with every edition in the ledger" in out and "it does NOT fit" in out
    code, _, err = run("release", shared)
    assert code == 1 and "with no edition here" in err and "Nothing was spent" in err


def test_editions_share_a_budget_that_does_not_renew(tmp_path: Path, run: Run) -> None:
    first, second = (settings(tmp_path, edition, renews="") for edition in ("2025", "2026"))
    code, out, _ = run("release", first)
    assert code == 0 and RENEWAL not in out
    code, out, _ = run("plan", second)
    assert "0.25 of 1 is left: it does NOT fit" in out and RENEWAL not in out
    code, _, err = run("release", second)
    assert code == 1 and "'ages' asks for epsilon 0.75; 0.25 of 1 is left" in err
    code, out, _ = run(
        "ledger", "raise", tmp_path / "people.ledger", "--to", "2", "--reason", "a <second> wave"
    )
    assert code == 0 and "from 1 to 2: a <second> wave. State the new total in settings" in out
    code, out, _ = run("plan", second)
    assert "1.25 of 2" not in out and "is 2 in the ledger and 1 here" in out and "does NOT fit" in out
    second = settings(tmp_path, "2026", total=2, renews="")
    code, out, err = run("release", second)
    assert code == 0 and "The budget was raised on 2" in out, err
    told = json.loads((tmp_path / "published" / "manifest.json").read_text())["budget"]
    [raised] = told["raises"]
    assert {k: raised[k] for k in ("row", "from", "to", "reason")} == {
        "row": 4, "from": "1", "to": "2", "reason": "a <second> wave",
    }  # fmt: skip
    assert told["spent"] == "1.5" and told["editions"] == {"number": 2, "this": "0.75", "together": "1.5"}
    page = (tmp_path / "published" / "report.html").read_text()
    assert page.count("from 1 to 2: a &lt;second&gt; wave") == 2 and "<second>" not in page
    code, out, _ = run("ledger", "show", tmp_path / "people.ledger")
    assert "The budget was raised on 2" in out and "1.5 of 2 spent, 0.5 left." in out


@pytest.mark.parametrize("arguments", [("--to", "2"), ("--reason", "why"), ()])
def test_a_raise_without_a_total_or_a_reason_is_a_usage_error(
    path: Path, run: Run, arguments: tuple[str, ...]
) -> None:
    before = path.read_bytes()
    assert run("ledger", "raise", path, *arguments)[0] == 2
    assert path.read_bytes() == before


def test_settings_that_renew_with_something_else_are_refused(tmp_path: Path, run: Run) -> None:
    code, _, err = run("plan", settings(tmp_path, "2025", renews='renews = "year"'))
    assert code == 2 and '2025.toml: budget.renews: "edition", or leave it out' in err


def test_verify_warns_of_published_files_that_changed_or_are_gone(tmp_path: Path, run: Run) -> None:
    assert run("release", settings(tmp_path, "2025"))[0] == 0
    folder, book = tmp_path / "published", tmp_path / "people.ledger"
    manifest = folder / "manifest.json"
    assert verify(book, [manifest]).warnings == ()
    text = (folder / "ages.csv").read_text()
    (folder / "ages.csv").write_text(text + "canary")
    (folder / "ages.parquet").unlink()
    found = verify(book, [manifest])
    assert found.ok and set(found.warnings) == {
        f"manifest {manifest}: ages.csv was changed after it was published.",
        f"manifest {manifest}: ages.parquet is gone.",
    }
    code, out, _ = run("ledger", "verify", book, manifest)
    assert code == 0 and "warning: " in out and "canary" not in out
    told = json.loads(manifest.read_text())
    told["releases"][0]["files"]["csv"]["sha256"] = DIGEST
    manifest.write_text(json.dumps(told))
    assert any(
        "ages.csv is not what the ledger holds as published for row 2" in w
        for w in verify(book, [manifest]).warnings
    )
    for wrong in ([3], {"x": 1}, [{"ledger_row": 2, "files": []}]):
        manifest.write_text(json.dumps(told | {"releases": wrong}))
        assert not verify(book, [manifest]).ok


def test_a_ledger_holds_policies_for_the_same_rows_of_people_only() -> None:
    """A CDF under Within(1) costs three rows of a person 3; under Within(2) it would cost them 6, not the 2 of one row."""
    domain = td.Domain(x=td.Integer(0, 9))
    three = {"id": "who", "max_rows_per_id": 3, "keep_by": "visit", "row_counts": "public"}
    table = td.Table({"x": [1, 2], "who": ["a", "b"], "visit": [1, 2]}, domain, **three)
    session = td.Session(table, td.Policy(domain, td.Within(1)), epsilon=10)
    session.release(td.CDF("x"), epsilon=3)
    with pytest.raises(LedgerError, match="other ids or weights"):
        session.ledger.declare(td.Policy(domain, td.Within(2)))
    session.ledger.declare(td.Policy(domain, td.Within(2)).with_people(table.people))
    assert session.ledger.spent == 6


def test_rows_of_the_same_people_that_were_chosen_otherwise_are_other_records() -> None:
    """One row of a person is kept of those chosen; two choices keep two rows, in two regions, and the losses of both count."""
    domain = td.Domain(age=td.Integer(0, 9), reg=td.Categorical(["n", "s"]))
    policy = td.Policy(domain, td.AttributeWise(age=td.Within(1)))
    rows = {"who": ["a", "a"], "visit": [1, 2], "kind": ["x", "y"], "age": [3, 7], "reg": ["n", "s"]}
    ids: Any = {"id": "who", "max_rows_per_id": 1, "keep_by": "visit", "row_counts": "public"}
    spent = {}
    for chosen in (False, True):
        charges = []
        for kind, reg in (("x", "n"), ("y", "s")):
            where = {"kind": [kind]} if chosen else None
            session = td.Session(td.Table(rows, domain, where=where, **ids), policy, epsilon=9)
            session.release(td.Histogram("age", where={"reg": [reg]}), epsilon=1, name=kind)
            charges += [e.charge for e in session.ledger.entries if e.charge is not None]
        spent[chosen] = loss_under(session.policy, charges).value
    assert spent == {False: 1, True: 2}


@pytest.mark.parametrize("query", [td.Sum("x"), td.Histogram("x", where={"x": (0, 3)}), td.CDF("x")])
def test_presence_cannot_become_a_secret_after_the_number_of_records_went_out(
    query: Any, tmp_path: Path
) -> None:
    domain = td.Domain(x=td.Integer(0, 9))
    table, ledger = td.Table({"x": [1, 2]}, domain, name="t"), tmp_path / "t.ledger"
    td.Session(table, td.Policy(domain, td.Within(1)), epsilon=99, ledger=ledger).release(query, epsilon=1)
    with pytest.raises(PolicyError, match="number of records went out"):
        td.Session(table, td.Policy(domain, td.Within(1), presence="secret"), epsilon=99, ledger=ledger)


def test_other_rows_of_a_person_may_change_in_another_attribute() -> None:
    """Of one choice of rows age is released, of another region: one person's two rows may change in one each."""
    domain = td.Domain(age=td.Integer(0, 9), reg=td.Categorical(["n", "s"]))
    policy = td.Policy(domain, td.AttributeWise(age=td.Within(1), reg=td.Full()))
    rows = {"who": ["a", "a"], "visit": [1, 2], "kind": ["x", "y"], "age": [3, 7], "reg": ["n", "s"]}
    ids: Any = {"id": "who", "max_rows_per_id": 1, "keep_by": "visit", "row_counts": "public"}
    charges = []
    for kind, query in (("x", td.Histogram("age")), ("y", td.Histogram("reg"))):
        session = td.Session(td.Table(rows, domain, where={"kind": [kind]}, **ids), policy, epsilon=9)
        session.release(query, epsilon=1)
        charges += [e.charge for e in session.ledger.entries if e.charge is not None]
    assert loss_under(session.policy, charges).value == 2
    assert (
        loss_under(
            session.policy, [dataclasses.replace(c, cost={**c.cost, "reading": ""}) for c in charges]
        ).value
        == 1
    )


def test_a_policy_that_holds_secret_what_rows_were_chosen_by_cannot_follow(tmp_path: Path) -> None:
    domain = td.Domain(age=td.Integer(0, 5), reg=td.Categorical(["n", "s"]))
    rows, ledger = {"age": [1, 2, 3], "reg": ["n", "s", "s"]}, tmp_path / "t.ledger"
    south = td.Table(rows, domain, name="t", where={"reg": ["s"]})
    td.Session(south, td.Policy(domain, td.Within(1, on="age")), epsilon=99, ledger=ledger).release(
        td.CDF("age"), epsilon=1
    )
    with pytest.raises(PolicyError, match="its rows were chosen by 'reg'"):
        td.Session(td.Table(rows, domain, name="t"), td.Policy(domain, td.Full()), epsilon=99, ledger=ledger)


def test_rows_are_not_chosen_by_what_may_change() -> None:
    """Of a person with several rows, one that leaves the chosen ones makes place for another (math in docs/people.md)."""
    domain = td.Domain(age=td.Integer(0, 5), reg=td.Categorical(["n", "s"]))
    rows = {"who": ["p", "p"], "k": [1, 2], "age": [2, 2], "reg": ["n", "s"], "w": [1, 1]}
    ids: Any = {"id": "who", "max_rows_per_id": 1, "keep_by": "k", "row_counts": "public"}
    age, weights = {"age": (0, 2)}, {"weight": "w", "weight_bounds": (0, 1)}

    def opened(presence: str, **told: Any) -> None:
        policy = td.Policy(domain, td.Within(1, on="age"), presence=presence)
        td.Session(td.Table(rows, domain, **told), policy, epsilon=1)

    for presence, told in itertools.product(("public", "secret"), ({}, ids)):
        with pytest.raises(SpecificationError, match=r"where\.age: decides by 'age'"):
            opened(presence, where=age, **told)
        with pytest.raises(SpecificationError, match=r"where\.w: decides by secret weights"):
            opened(presence, where={"w": [1]}, **told, **weights)
        opened(presence, where={"w": [1]}, **told, **weights, weights="public")


def test_a_record_that_leaves_the_chosen_rows_with_its_value_loses_on_top_of_the_edge() -> None:
    """Presence is a secret, so each table alone is priced for records that come and go. But 9 → 8 moves the histogram of everybody
    along that edge, and takes the whole of 9 out of the table of those who are 9: one and the same change does both."""
    domain = td.Domain(age=td.Integer(0, 9))
    policy = td.Policy(domain, td.Within(1), presence="secret")
    queries = td.Histogram("age"), td.Sum("age")
    scales = [Fraction(policy.sensitivity(query).value) for query in queries]
    assert scales == [2, 9]

    def seen(ages: list[int]) -> list[list[Fraction]]:
        old = td.Table({"age": ages}, domain, where={"age": [9]}).counts("age").dense
        counts = [int(n) for n in td.Table({"age": ages}, domain).counts("age").dense]
        total = sum(age * int(n) for age, n in enumerate(old))
        return [[n / scales[0] for n in counts], [total / scales[1]]]

    moves = zip(itertools.chain(*seen([3, 4, 9])), itertools.chain(*seen([3, 4, 8])), strict=True)
    truth = sum(abs(a - b) for a, b in moves)
    together = loss_under(
        policy, [released(n, policy, q, 1 / s) for n, q, s in zip("ab", queries, scales, strict=True)]
    )
    assert together.value == Fraction(3, 2) < truth == 2
    with pytest.raises(SpecificationError, match=r"where\.age: decides by 'age'"):
        td.Session(td.Table({"age": [9]}, domain, where={"age": [9]}), policy, epsilon=1)
    # A ledger that holds such a charge has no price.
    made = released("a", policy, td.Sum("age"))
    ledger = opened(policy, 9)
    with pytest.raises(PolicyError, match="its rows were chosen by 'age'"):
        ledger.charge(dataclasses.replace(made, cost={**made.cost, "chosen": ["age"]}))


def test_another_row_of_a_person_may_be_kept_in_another_edition(tmp_path: Path) -> None:
    """One row of a person is kept, by a key. The person's second row takes the place of the first next year, and may change in sex
    where the first changes in age: the person loses both."""
    domain = td.Domain(age=td.Integer(0, 3), sex=td.Categorical(["f", "m"]))
    policy = td.Policy(domain, td.AttributeWise(age=td.Full(), sex=td.Full()))

    def table(rows: list[tuple[str, int, int, str]], edition: str) -> td.Table:
        told = dict(zip(("who", "visit", "age", "sex"), map(list, zip(*rows, strict=True)), strict=True))
        return td.Table(
            told, domain, name="t", edition=edition, id="who", max_rows_per_id=1, keep_by="visit", row_counts="public"
        )  # fmt: skip

    first = ("p", 1, 0, "f")
    later = next(v for v in range(2, 99) if table([first, ("p", v, 3, "f")], "").counts("age").dense[3])
    before = [first], [first, ("p", later, 3, "f")]
    after = [("p", 1, 1, "f")], [("p", 1, 1, "f"), ("p", later, 3, "m")]  # the same rows, each along an edge
    truth = Fraction(0)
    for name, edition, *pair in (("age", "2025", before[0], after[0]), ("sex", "2026", before[1], after[1])):
        one, other = (table(rows, edition).counts(name).dense for rows in pair)
        truth += Fraction(int(np.abs(one - other).sum())) / policy.sensitivity(td.Histogram(name)).value
    assert truth == 2
    for name, edition, rows in (("age", "2025", before[0]), ("sex", "2026", before[1])):
        session = td.Session(table(rows, edition), policy, epsilon=3, ledger=tmp_path / "t.ledger")
        session.release(td.Histogram(name), epsilon=1)
    assert session.ledger.spent == 2
    session.ledger.declare(td.Policy(domain, td.AttributeWise(age=td.Within(1), sex=td.Full())))
    assert [account.losses.value for account in session.ledger.accounts] == [2, 2]
    session.release(td.Histogram("age"), epsilon=1)  # of the same row as the sexes of that edition
    assert session.ledger.spent == 2


def test_known_counts_of_all_rows_are_none_of_chosen_ones(tmp_path: Path) -> None:
    """How many are of each age is known of everybody: two people of different batches may trade ages, which moves nothing in the table
    of all and a cumulative count of one batch. An account that took the batch for the table would say 0."""
    domain, ledger = td.Domain(x=td.Integer(0, 9)), tmp_path / "l.ledger"
    data = {"x": [4, 5, 9, 0], "batch": ["1", "2", "1", "2"]}
    plain = td.Policy(domain, td.Within(1))
    known = td.Policy(
        domain, td.Within(1), [td.MarginalConstraint("x", answers=[data["x"].count(v) for v in range(10)])]
    )

    def session(policy: Any, path: Path = ledger, edition: str = "", **told: Any) -> td.Session:
        table = td.Table(data, domain, name="t", edition=edition, **told)
        return td.Session(table, policy, epsilon=9, ledger=path)

    batch: Any = {"where": {"batch": ["1"]}}
    chosen = session(plain, **batch)
    chosen.release(td.CDF("x"), epsilon=1)
    [made] = [e.charge for e in chosen.ledger.entries if e.charge]
    traded = [td.Table(d, domain, **batch).counts("x").dense for d in (data, data | {"x": [5, 4, 9, 0]})]
    assert (
        np.abs(np.cumsum(traded[0]) - np.cumsum(traded[1])).sum() == 1
    )  # one edge of one record of the batch
    assert loss_under(known, [dataclasses.replace(made, cost=dict(made.cost) | {"rows": ""})]).value == 0
    with pytest.raises(PolicyError, match="other choices of its rows"):
        session(known)
    session(known, edition="2026")  # another table
    first = tmp_path / "first.ledger"
    session(known, first)
    with pytest.raises(PolicyError, match="other choices of its rows"):
        session(plain, first, **batch)  # the counts in force are of all rows
    whole = session(plain, first)
    whole.release(td.Histogram("x"), epsilon=1)
    with pytest.raises(PolicyError, match="other choices of its rows"):
        whole.ledger.charge(dataclasses.replace(made, policy_hash=plain.hash))


def test_how_many_records_one_edition_has_lowers_no_price_of_another(tmp_path: Path) -> None:
    """Of 2026 the table of g is known, which has two records; of 2025, with five, nothing. More people make up for each other there."""
    domain = td.Domain(g=td.Categorical(["a", "b", "c", "d"]), v=td.Integer(0, 1))
    plain, ledger = td.Policy(domain, td.Full()), tmp_path / "l.ledger"
    five = td.Table({"g": ["a", "b", "c", "d", "a"], "v": [0, 0, 0, 0, 0]}, domain, name="t", edition="2025")
    td.Session(five, plain, epsilon=99, ledger=ledger).release(td.Histogram("g", "v"), epsilon=2)
    known = td.Policy(domain, td.Full(), [td.MarginalConstraint("g", answers=[1, 1, 0, 0])])
    two = td.Table({"g": ["a", "b"], "v": [0, 1]}, domain, name="t", edition="2026")
    session = td.Session(two, known, epsilon=99, ledger=ledger)
    assert {account.losses.value for account in session.ledger.accounts} == {
        2,
        8,
    }  # four records in a ring, each moves by 2
