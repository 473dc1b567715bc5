"""The tables that an audit makes up: neighbours by definition, and bad enough."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.answers import BOTH, LINE, NEAR, TWO
from audit.judge import answered, judged, neighbours
from audit.subjects import price

import tetraodon as td
from tetraodon.auditing.audited import answer_pairs
from tetraodon.loss import Loss
from tetraodon.mechanisms import Identity, Ordered
from tetraodon.people import people_of

EPSILON = Loss("epsilon", Fraction(1))
SMALL = td.Domain(v=td.Integer(0, 4))
MARGINS = td.Domain(a=td.Categorical(["0", "1"]), b=td.Categorical(["0", "1"]), c=td.Integer(0, 1))


def _people(**told: Any) -> Any:
    return td.Policy(SMALL, td.Within(1)).with_people(people_of(**told))


CASES: dict[str, Any] = {
    "a threshold": (NEAR, td.CDF("v"), Ordered()),
    "two attributes": (BOTH, td.Histogram("a", "b"), Identity()),
    "any attributes": (td.Policy(TWO, td.Full()), td.Histogram("a", "b"), Identity()),
    "blocks": (td.Policy(LINE, td.Partition(blocks=2)), td.Histogram("v"), Identity()),
    "pairs": (td.Policy(LINE, td.Edges([(0, 7), (1, 2)])), td.CDF("v"), Ordered()),
    "missing": (td.Policy(td.Domain(v=td.Integer(0, 4, missing="secret")), td.Within(1)), td.CDF("v"), Ordered()),
    "presence": (td.Policy(SMALL, td.Within(1), presence="secret"), td.CDF("v"), Ordered()),
    "three rows": (
        _people(id="p", max_rows_per_id=3, keep_by="k", row_counts="public"), td.CDF("v"), Ordered(),
    ),
    "secret rows": (_people(id="p", max_rows_per_id=2, row_counts="secret"), td.CDF("v"), Ordered()),
    "weights": (_people(weight="w", weight_bounds=(1, 3), weights="public"), td.CDF("v"), Ordered()),
    "secret weights": (_people(weight="w", weight_bounds=(1, 3)), td.CDF("v"), Ordered()),
    "exempt": (
        td.Policy(TWO, td.Within(1, on="a"), exempt={"b": ["x"]}), td.Histogram("a", "b"), Identity(),
    ),
    "a known range": (
        td.Policy(LINE, td.Within(1), constraints=[td.CountConstraint(where={"v": (0, 3)})]), td.CDF("v"), Ordered(),
    ),
    "nested known ranges": (
        td.Policy(
            td.Domain(v=td.Integer(0, 5)), td.Full(),
            constraints=[td.CountConstraint(where={"v": (0, 3)}), td.CountConstraint(where={"v": (0, 1)})],
        ),
        td.Histogram("v"), Identity(),
    ),
    "a known marginal": (
        td.Policy(MARGINS, td.AttributeWise(), constraints=[td.MarginalConstraint("a", "b")]), td.Histogram("a", "b", "c"), Identity(),
    ),
    "two known marginals": (
        td.Policy(MARGINS, td.AttributeWise(), constraints=[td.MarginalConstraint("a"), td.MarginalConstraint("b")]),
        td.Histogram("a", "b", "c"), Identity(),
    ),
}  # fmt: skip
MISSED = {"two known marginals", "a known marginal"}
"""Where the worst neighbours change more records, or in other ways, than the search goes through."""


@pytest.mark.parametrize("case", CASES)
def test_pairs_are_neighbours_by_definition_and_among_the_worst(case: str) -> None:
    policy, query, mechanism = CASES[case]
    strategy = price(query, policy, mechanism, EPSILON)
    found = answer_pairs(strategy, policy, 6)
    assert found
    if case == "exempt":
        for pair in found:
            for cell, _ in (*pair.before, *pair.after):
                assert pair.domain.labels(cell)[1] != "x"
        return
    records = 4 if "marginal" in case else 3
    true = {tuple((b - a).tolist()) for a, b in neighbours(policy, records)}
    losses = []
    for pair in found:
        one, two = (np.asarray(t.dense) for t in pair.counts(policy.domain))
        change = tuple((two - one).tolist())
        assert change in true or tuple(-v for v in change) in true, pair.words
        losses.append(judged(answered(strategy, policy), [(one, two)], 0).exact)
    worst = judged(answered(strategy, policy), neighbours(policy, records), 0).exact
    assert worst is not None and max(v for v in losses if v is not None) <= worst
    if case not in MISSED:
        assert max(v for v in losses if v is not None) == worst


def test_the_worst_edge_of_a_large_domain_is_found() -> None:
    domain = td.Domain(loss=td.Integer(0, 4356), sex=td.Categorical(["f", "m"]))
    policy = td.Policy(domain, td.Within(100, on="loss"))
    strategy = price(td.CDF("loss", by=["sex"]), policy, Ordered(), EPSILON)
    [pair] = answer_pairs(strategy, policy, 1)
    one, two = pair.counts(strategy.domain)
    moved = strategy._apply(strategy.tabulate(two))[0] - strategy._apply(strategy.tabulate(one))[0]
    assert np.abs(moved).sum() == 100
    assert pair.words.count("loss") == 2


def test_a_pair_is_told_in_declared_words() -> None:
    policy = td.Policy(SMALL, td.Within(1), presence="secret")
    strategy = price(td.CDF("v"), policy, Ordered(), EPSILON)
    words = {pair.words for pair in answer_pairs(strategy, policy, 20)}
    assert "v 0 → nothing" in words and "v 0 → v 1" in words
    several = answer_pairs(
        price(td.CDF("v"), CASES["three rows"][0], Ordered(), EPSILON), CASES["three rows"][0], 1
    )
    assert "(3 times)" in several[0].words


def test_nothing_secret_has_no_pairs() -> None:
    policy = td.Policy(SMALL, td.Nothing())
    assert answer_pairs(price(td.Histogram("v"), policy, Identity(), EPSILON), policy, 3) == []
