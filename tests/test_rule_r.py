"""Costs under known counts against every neighbouring database: random tiny policies, never below the truth.

The number of policies per seed is multiplied by ``TETRAODON_EFFORT``. With ``-s`` the share of exact answers is printed.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import brute, composed, constrained, mechanisms
from strategies import asked_policies, examples, filters

import tetraodon as td
from tetraodon.errors import PolicyError, Unsupported
from tetraodon.loss import Loss
from tetraodon.pricing import candidates
from tetraodon.sensitivity import kinds, query_layers, rows, rule_r, stacked
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

EFFORT = int(os.environ.get("TETRAODON_EFFORT", "1"))
NORMS = {"l1": 1, "l2": 2}
# Some constraints name what to drop; every refusal must.
NAMES = ("number of records with", "table of")


@dataclass
class Tally:
    """What was met, for the printed summary and for bounds on how often a refusal is allowed."""

    policies: int = 0
    undetermined: int = 0
    answers: int = 0
    exact: int = 0
    refused: int = 0
    refused_secrets: int = 0
    ratios: list[float] = field(default_factory=list)
    free: list[float] = field(default_factory=list)  # where class counts are not determined
    kinds: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    def told(self) -> str:
        means = [sum(r) / max(len(r), 1) for r in (self.ratios, self.free)]
        return (
            f"{self.policies} policies ({self.undetermined} undetermined), {self.answers} answers; determined: exact "
            f"{self.exact / max(len(self.ratios), 1):.1%}, mean ratio {means[0]:.3f}, largest {max(self.ratios, default=1):.2f}; "
            f"undetermined: mean ratio {means[1]:.3f}, largest {max(self.free, default=1):.2f}; "
            f"refused {self.refused} (and {self.refused_secrets} for secrets that would be published); {dict(self.rules)}"
        )


def truths(case: constrained.Drawn) -> dict[str, constrained.Pairs]:
    """Neighbours in either reading."""
    adjacent, facts = case.adjacent, case.predicates
    return {r: constrained.neighbours(adjacent, facts, case.n, r) for r in constrained.READINGS}


def assert_refusal(
    case: constrained.Drawn, error: Exception, matrix: Any, reading: str, true: Any, tally: Tally
) -> None:
    """A refusal is allowed where the counts leave class counts free, or by name where edges move the answer and no
    neighbours along edges do."""
    if reading == "edges" and not true and constrained.edge_move(case.adjacent, matrix):
        tally.refused_secrets += 1
        return
    assert case.deficiency > 0, (case, reading)
    assert any(name in str(error) for name in NAMES), str(error)
    tally.refused += 1


def assert_sound(
    case: constrained.Drawn, rng: np.random.Generator, tally: Tally, asked: list[tuple[brute.Asked, str]]
) -> None:
    """Every reading, with and without the number of records: at least the truth."""
    policy, pairs = case.policy(), truths(case)
    tally.policies += 1
    tally.kinds[case.kind] += 1
    tally.undetermined += case.deficiency > 0
    for question, norm in asked:
        matrix = constrained.dense(question, case.domain)
        truth = {r: constrained.largest(pairs[r], matrix, NORMS[norm]).value for r in constrained.READINGS}
        truth["both"] = max(truth.values())
        told = {r: priced(case, policy, question, matrix, (norm, r, t), tally) for r, t in truth.items()}
        default = priced(case, policy, question, matrix, (norm, None, truth["both"]), tally)
        assert default is None or told["both"] is None or default >= told["both"], (
            "more records known, higher cost"
        )
        for reading, value in told.items():
            assert value is None or told["both"] is None or value <= told["both"], reading


def priced(
    case: constrained.Drawn, policy: Any, question: brute.Asked, matrix: Any, asked: Any, tally: Tally
) -> Fraction | None:
    """The package's value, which is at least the truth; None where it refuses. Reading None is the default with an unknown
    number of records."""
    norm, reading, true = asked
    more = {} if reading is None else {"reading": reading, "records": case.n}
    try:
        found = policy.sensitivity(question.query(), norm=norm, **more)
    except (PolicyError, Unsupported) as error:
        assert_refusal(case, error, matrix, reading, true, tally)
        return None
    value = Fraction(found.value)
    assert value >= true, (case, question, asked, found)
    if found.witness is not None:
        assert_witness(case, matrix, NORMS[norm], found)
    tally.answers += 1
    tally.rules[found.rule] += 1
    if reading == "both" and true:
        ratio = float(value / true) ** (1 / NORMS[norm])
        kept = tally.free if case.deficiency else tally.ratios
        kept.append(ratio)
        tally.exact += ratio < 1 + 1e-9 and not case.deficiency
    return value


def assert_witness(case: constrained.Drawn, matrix: Any, power: int, found: Any) -> None:
    """Two values of one record that an edge joins, in one class, and whose exchange makes the value."""
    names, every = list(case.domain), brute.tuples(case.domain)

    def behind(told: dict[str, str]) -> list[int]:
        return [i for i, r in enumerate(every) if all(str(r[names.index(n)]) == v for n, v in told.items())]

    one, two = found.witness
    moves = [
        int((np.abs(matrix[:, x] - matrix[:, y]) ** power).sum())
        for x, y in itertools.product(behind(one), behind(two))
        if case.adjacent[x][y] and all(f[x] == f[y] for f in case.predicates)
    ]
    assert found.value in moves, (case, found)


def two_questions(rng: np.random.Generator, told: list[brute.Asked]) -> list[tuple[brute.Asked, str]]:
    """Two of the questions, one in each norm."""
    return [(told[i], norm) for i, norm in zip(rng.permutation(len(told)), NORMS, strict=False)]


def every_question(rng: np.random.Generator, told: list[brute.Asked]) -> list[tuple[brute.Asked, str]]:
    """All questions in both norms."""
    return list(itertools.product(told, NORMS))


def run(seed: int, number: int, record: Any, choose: Callable[..., Any]) -> Tally:
    """Random policies, with the questions that ``choose`` picks."""
    rng, tally = np.random.default_rng(seed), Tally()
    for _ in range(number):
        case = constrained.drawn(rng)
        assert_sound(case, rng, tally, choose(rng, constrained.asked(rng, case.domain)))
    print(tally.told())
    record("tally", tally.told())
    assert tally.exact > 0.6 * len(tally.ratios)
    return tally


@pytest.mark.parametrize("seed", range(4))
def test_costs_are_never_below_the_truth(seed: int, record_property: Any) -> None:
    tally = run(seed, 130 * EFFORT, record_property, two_questions)
    assert tally.undetermined > 0
    assert tally.refused <= 0.03 * tally.answers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_costs_are_never_below_the_truth_at_length(seed: int, record_property: Any) -> None:
    tally = run(seed, 500 * EFFORT, record_property, every_question)
    assert tally.refused <= 0.03 * tally.answers


@st.composite
def declared(draw: Any) -> tuple[Any, brute.Asked, list[tuple[str, Any]]]:
    """A policy of any declared kind (bins, other and missing cells, every graph), a question, and one to three known counts."""
    policy, question = draw(asked_policies(most=6))
    names, known = list(policy.domain), []
    for _ in range(draw(st.integers(1, 3))):
        told = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        if draw(st.integers(0, 3)):
            known.append(("count", {n: draw(filters(policy.domain[n])) for n in told}))
        else:
            known.append(("marginal", tuple(told)))
    return policy, question, known


@examples(60)
@given(declared(), st.integers(2, 3))
def test_any_declared_domain_and_question(drawn: Any, n: int) -> None:
    plain, question, known = drawn
    facts = constrained.predicates(plain.domain, known)
    assume(all(0 < sum(f) < len(f) for f in facts))
    case = constrained.Drawn(plain.domain, plain.secrets, tuple(known), "declared", n)
    columns = brute.rows(question, plain.domain)
    unit = math.lcm(*(v.denominator for column in columns for v in column))
    matrix = np.array([[int(v * unit) for v in column] for column in columns], dtype=np.int64).T
    pairs = truths(case)
    for (norm, power), records in itertools.product(NORMS.items(), (n, None)):
        true = max(constrained.largest(p, matrix, power).value for p in pairs.values()) / unit**power
        try:
            found = case.policy().sensitivity(question.query(), norm=norm, records=records)
        except PolicyError as error:
            assert case.deficiency > 1, str(error)
            continue
        assert Fraction(found.value) >= true, (norm, records, found)


def test_squared_change_of_a_mean_weighs_its_count_in_squares() -> None:
    """A sum in halves beside a count in ones: 1½² + 1², not 1½² + ½."""
    domain = td.Domain(a=td.Numeric(0, 2, cells=2), b=td.Integer(7, 8))
    query = td.Mean("a", where={"b": [7]})
    for known, value in ([], Fraction(13, 4)), ([td.MarginalConstraint("b")], Fraction(1)):
        policy = td.Policy(domain, td.Full(), constraints=known)
        assert policy.sensitivity(query, norm="l2").value >= value
        assert policy.sensitivity(query, norm="l1").value >= 1
    assert td.Policy(domain, td.Full()).sensitivity(query, norm="l2").value == Fraction(13, 4)


@pytest.mark.parametrize("pairwise", [512, 0], ids=["all places", "hulls"])
def test_bounds_for_large_domains_hold_on_small_ones(pairwise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is used where cells are too many to go through in pairs: at least the truth, and at least the sharper bound."""
    rng, met = np.random.default_rng(77), 0
    for _ in range(40 * EFFORT):
        case = constrained.drawn(rng, most=625)
        policy, pairs = case.policy(), truths(case)
        for question, norm in two_questions(rng, constrained.asked(rng, case.domain)):
            matrix = constrained.dense(question, case.domain)
            true = max(constrained.largest(p, matrix, NORMS[norm]).value for p in pairs.values())
            try:
                sharp = policy.sensitivity(question.query(), norm=norm, records=case.n).value
            except PolicyError:
                continue
            with monkeypatch.context() as patch:
                patch.setattr(kinds, "FEW_KINDS", 0)
                patch.setattr(rule_r, "PAIRWISE", pairwise)
                loose = policy.sensitivity(question.query(), norm=norm, records=case.n).value
            assert loose >= true, (case, question, norm)
            assert loose >= sharp * (1 - Fraction(1, 10**9))
            met += 1
    assert met > 50


# ---------- sequences of releases ----------


def drawn_sequence(
    rng: np.random.Generator, policy: Any, domain: Any, power: int
) -> tuple[list[Term], list[composed.Noisy]]:
    """Two or three releases of one question each, noise of its own: for the package and for the oracle."""
    terms, seen = [], []
    told = constrained.asked(rng, domain)
    for at in rng.integers(0, len(told), int(rng.integers(2, 4))):
        noise = Fraction(int(rng.integers(1, 7)), int(rng.integers(1, 4)))
        resolved = resolve(told[at].query(), policy.domain)
        factor = 1 / noise if power == 1 else 1 / (2 * noise)
        if told[at].word == "Sum":
            continue  # its rows are counted in the denominator of its midpoints
        terms.append(Term(resolved, query_layers(resolved), factor))
        matrix = constrained.dense(told[at], domain).tolist()
        seen.append(composed.Noisy(matrix, [noise] * len(matrix), power))
    return terms, seen


@pytest.mark.parametrize("seed", range(3))
def test_sequences_are_never_below_the_truth(seed: int, record_property: Any) -> None:
    rng, ratios, refused = np.random.default_rng(1000 + seed), [], 0
    for _ in range(40 * EFFORT):
        case = constrained.drawn(rng, most=400)
        policy, pairs = case.policy(), truths(case)
        for power in (1, 2):
            terms, seen = drawn_sequence(rng, policy, case.domain, power)
            if not terms:
                continue
            true = max(composed.worst(seen, p).value for p in pairs.values())
            try:
                value = Fraction(stacked(terms, policy.neighbourhood, power).value)
            except (PolicyError, Unsupported) as error:
                assert case.deficiency > 0
                assert any(name in str(error) for name in NAMES), str(error)
                refused += 1
                continue
            assert value >= true, (case, power, seen, value, true)
            if true:
                ratios.append(float(value / true))
    told = f"{len(ratios)} sequences, mean ratio {sum(ratios) / len(ratios):.3f}, refused {refused}"
    print(told)
    record_property("tally", told)
    assert refused <= 0.1 * len(ratios)


# ---------- whole plans ----------


def dense_rows(layer: Any) -> list[list[int]]:
    """The rows of a layer without its weight."""
    size = layer.size
    if isinstance(layer, rows.Matrix):
        told: list[list[int]] = layer.matrix.tolist()
        return told
    if isinstance(layer, rows.Prefixes):
        starts = itertools.repeat(0)
        ends = range(1, size + 1) if layer.bounds is None else layer.bounds.tolist()
    else:
        starts = range(size) if layer.starts is None else layer.starts.tolist()
        ends = range(1, size + 1) if layer.ends is None else layer.ends.tolist()
    return [[int(a <= p < b) for p in range(size)] for a, b in zip(starts, ends, strict=False)]


def observed(strategy: Any, question: brute.Asked, domain: Any) -> composed.Noisy:
    """All rows that a strategy releases, over the cells of the domain, with the noise of each (0: exact)."""
    axis = strategy.resolved.axis
    where = mechanisms.places(question, domain, None if axis is None else axis.name)
    groups = sorted({w[0] for w in where if w is not None})
    matrix, noise = [], []
    for part in strategy.parts:
        scale = strategy.scale(part)
        for row, is_exact in zip(dense_rows(part.layer), part.exact.tolist(), strict=True):
            if scale is None and not is_exact:
                continue  # not released
            for group in groups:
                matrix.append([0 if w is None or w[0] != group else row[w[1]] for w in where])
                noise.append(Fraction(0) if is_exact else Fraction(scale))
    return composed.Noisy(matrix, noise, 2 if strategy.loss.unit == "rho" else 1)


def assert_plans(seed: int, unit: str, number: int, questions: int) -> list[float]:
    """The share of its charge that every way of answering truly loses."""
    rng, shares = np.random.default_rng(2000 + seed), []
    for _ in range(number):
        case = constrained.drawn(rng, most=300)
        policy, pairs = case.policy(), truths(case)
        told = constrained.asked(rng, case.domain)
        for question in [told[i] for i in rng.permutation(len(told))[:questions]]:
            loss = Loss(unit, Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 5))))
            try:
                found = candidates(question.query(), policy, loss)
            except PolicyError as error:
                assert case.deficiency > 1, str(error)
                continue
            for strategy in found:
                released = observed(strategy, question, case.domain)
                lost = max(composed.worst([released], p).value for p in pairs.values())
                assert lost <= strategy.spent.amount, (case, question, strategy.mechanism)
                if strategy.spent.amount:
                    shares.append(float(lost / strategy.spent.amount))
    return shares


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_plans_lose_no_more_than_they_charge(unit: str, record_property: Any) -> None:
    """Every way of answering: all rows that go out, exact ones included, between all neighbouring databases."""
    shares = assert_plans(0, unit, 14 * EFFORT, 2)
    told = f"{len(shares)} plans, mean share of the charge that is lost {sum(shares) / len(shares):.3f}"
    print(told)
    record_property("tally", told)
    assert len(shares) > 25
    assert sum(shares) / len(shares) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
@pytest.mark.parametrize("seed", range(1, 5))
def test_plans_lose_no_more_than_they_charge_at_length(seed: int, unit: str) -> None:
    assert len(assert_plans(seed, unit, 40 * EFFORT, 5)) > 100


# ---------- special cases ----------


def diameters(matrix: constrained.Ints, facts: list[list[int]]) -> dict[tuple[int, ...], int]:
    """Largest L1 difference of two columns inside each class."""
    found: dict[tuple[int, ...], list[int]] = {}
    for value, signature in enumerate(zip(*facts, strict=True)):
        found.setdefault(signature, []).append(value)
    return {
        s: max(int(np.abs(matrix[:, x] - matrix[:, y]).sum()) for x in c for y in c) for s, c in found.items()
    }


@pytest.mark.parametrize("seed", range(2))
def test_closed_forms_of_histogram_and_cumulative_histogram(seed: int) -> None:
    """Where every class count is determined and the graph is full: 2 per class of several values; its span of ranks."""
    rng, met = np.random.default_rng(50 + seed), 0
    for k, _ in itertools.product((4, 5, 6), range(12)):
        domain = td.Domain(a=td.Integer(0, k - 1))
        _, known = constrained.some_known(rng, domain)
        facts = constrained.predicates(domain, known)
        if constrained.deficiency(facts, k):
            continue
        met += 1
        told = [td.CountConstraint(where=w) for _, w in known]
        policy = td.Policy(domain, td.Full(), constraints=told)
        several = sum(d > 0 for d in diameters(np.eye(k, dtype=np.int64), facts).values())
        assert policy.sensitivity(td.Histogram("a")).value == 2 * several
        spans = diameters(np.tril(np.ones((k, k), dtype=np.int64)), facts)
        assert policy.sensitivity(td.CDF("a")).value == sum(spans.values())
    assert met > 20
