"""Rows that go out exactly, and rounds of k-means that records enter and leave: no neighbour shows in them for less."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import brute, constrained

import tetraodon as td
from tetraodon.clustering.costs import FINE, Assignment
from tetraodon.clustering.declared import InRounds
from tetraodon.clustering.iterative import observed, scales
from tetraodon.loss import Loss
from tetraodon.mechanisms.free import free_bounds
from tetraodon.pricing import price
from tetraodon.table import Counts
from tetraodon.workload import resolve

ONE = Loss("epsilon", Fraction(1))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_a_record_that_comes_in_by_a_secret_filter_costs_a_round_its_share(k: int, unit: Any) -> None:
    """Places are no secret here, whether a record counts is: it brings a size and a sum with it."""
    domain = td.Domain(a=td.Integer(0, 10), s=td.Integer(0, 1))
    policy = td.Policy(domain, td.AttributeWise(s=td.Full()))
    loss = Loss(unit, Fraction(1))
    way = price(InRounds(2, "1/2"), td.KMeans("a", k=k, where={"s": [1]}), policy, loss)
    rounds = way.rounds(FINE)
    nobody = way.tabulate(Counts.collect(way.domain, []))
    for centres in np.random.default_rng(k).integers(0, 11, (12, k, 1)):
        assignment = Assignment(centres, centres, rounds.radius)
        size, total = scales(rounds, way.room, assignment)
        before = observed(assignment, *nobody)
        for cell in range(11):
            one = Counts.collect(way.domain, [([int(way.domain.encode([cell, 1]))], [1])])
            sizes, sums = (
                x - y for x, y in zip(observed(assignment, *way.tabulate(one)), before, strict=True)
            )
            if unit == "epsilon":
                spent = int(np.abs(sizes).sum()) / size + int(np.abs(sums).sum()) / total
            else:
                spent = int((sizes**2).sum()) / (2 * size) + int((sums**2).sum()) / (2 * total)
            assert spent * rounds.count <= loss.amount


XY = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 1))
CHAIN = [td.CountConstraint({"x": (i, i + 1)}) for i in range(3)]
KNOWN = {
    "one class in two groups": [td.CountConstraint({"x": [0, 1]})],
    "one free direction": CHAIN,
    "classes over groups": [td.MarginalConstraint("x"), td.CountConstraint({"x": [0], "y": [0]})],
    "two tables": [td.MarginalConstraint("x"), td.MarginalConstraint("y")],
    "no kernel": [td.CountConstraint({"x": [0]}), td.MarginalConstraint("y"), td.CountConstraint({"x": [2]})],
}


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("by", [[], ["y"]])
@pytest.mark.parametrize("where", [{}, {"x": (0, 2)}, {"x": [1, 3]}, {"y": [1]}])
def test_exact_prefix_rows_under_known_counts_move_for_no_neighbour(
    known: str, by: list[str], where: dict[str, Any]
) -> None:
    told = {} if by and "y" in where else where
    asked = brute.Asked("CDF", ("x",), tuple(by), told)
    for secrets in (td.Full(), td.AttributeWise(x=td.Within(1))):
        policy = td.Policy(XY, secrets, KNOWN[known])
        free = free_bounds(resolve(asked.query(), XY), policy.neighbourhood)[1:]
        matrix = np.array([[int(v) for v in column] for column in brute.rows(asked, XY)]).T
        facts = [
            [int(k.labels[k.domain.encode([np.int64(dict(zip(XY, r, strict=True))[n]) for n in k.domain.names])] == label)
             for r in brute.tuples(XY)]
            for k in policy.known for label in range(k.first, k.n_labels)
        ]  # fmt: skip
        pairs = constrained.neighbours(brute.adjacency(XY, secrets), facts, 3)
        moves, _ = constrained.changes(pairs)
        moved = (moves @ matrix.T).any(axis=0).reshape(-1, len(free)).any(axis=0)
        assert not (moved & free).any()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_prices_of_many_kinds_of_records_are_never_below_those_of_few(
    norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same question with every pair of kinds looked at, by enumeration, and by the rules for too many kinds."""
    from tetraodon.sensitivity import kinds

    monkeypatch.setattr(kinds, "FEW_KINDS", 0)
    rows = td.Linear([[1, 1, 3, 0], [0, 2, 2, 1]], "x", by=["y"])
    questions: list[tuple[td.Query, Any]] = [
        (td.Histogram("x", "y"), np.eye(8, dtype=np.int64)),
        (td.CDF("x", by=["y"]), np.kron(np.tril(np.ones((4, 4), dtype=np.int64)), np.eye(2, dtype=np.int64))),
        (td.CDF("x"), np.kron(np.tril(np.ones((4, 4), dtype=np.int64)), np.ones((1, 2), dtype=np.int64))),
        (rows, np.kron(np.array([[1, 1, 3, 0], [0, 2, 2, 1]]), np.eye(2, dtype=np.int64))),
        (td.Histogram("x", where={"y": [1]}), np.kron(np.eye(4, dtype=np.int64), [[0, 1]])),
        (td.CDF("x", where={"y": [1]}), np.kron(np.tril(np.ones((4, 4), dtype=np.int64)), [[0, 1]])),
    ]
    for known in (
        [td.CountConstraint({"x": [0, 1]})],
        [td.MarginalConstraint("x")],
        [td.MarginalConstraint("y")],
    ):
        for secrets in (td.Full(), td.AttributeWise(x=td.Within(1), y=td.Full())):
            policy = td.Policy(XY, secrets, known)
            facts = [
                [int(k.labels[k.domain.encode([np.int64(dict(zip(XY, r, strict=True))[n]) for n in k.domain.names])] == label)
                 for r in brute.tuples(XY)]
                for k in policy.known for label in range(k.first, k.n_labels)
            ]  # fmt: skip
            pairs = constrained.neighbours(brute.adjacency(XY, secrets), facts, 4)
            for query, matrix in questions:
                truth = constrained.largest(pairs, matrix, 1 if norm == "l1" else 2).value
                assert policy.sensitivity(query, norm=norm).value >= truth


@pytest.mark.parametrize("secrets", [td.Full(), td.AttributeWise(), td.AttributeWise(x=td.Within(1))])
def test_filters_on_a_secret_meet_where_edges_are_too_many_to_go_through(
    secrets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tetraodon.sensitivity import Term, stack, stacked
    from tetraodon.sensitivity.rows import Blocks

    hood = td.Policy(XY, secrets).neighbourhood
    asked = [resolve(td.Histogram("x", "y", where={"x": [v]}), XY) for v in (0, 1)]
    terms = [Term(a, (Blocks(a.n_positions),)) for a in asked]
    exact = stacked(terms, hood).value
    assert exact == 2  # from x = 0 to x = 1 a record leaves one and enters the other
    monkeypatch.setattr(stack, "EXACT_WORK", 0)
    assert stacked(terms, hood).value >= exact
