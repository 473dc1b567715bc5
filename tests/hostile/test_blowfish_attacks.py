"""Cases C02, C04 and C22–C30 on known counts, Gaussian noise, marginals, k-means and the account."""

from __future__ import annotations

import inspect
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import constrained

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers
from tetraodon.errors import BudgetError, DataError, PolicyError, SpecificationError
from tetraodon.loss import Loss
from tetraodon.mechanisms.select import candidates, price
from tetraodon.sensitivity import stacked
from tetraodon.workload import resolve

X = td.Domain(x=td.Integer(0, 5))


def session(policy: td.Policy, rows: dict[str, Any], **budget: Any) -> td.Session:
    return td.Session(td.Table(rows, policy.domain), policy, **budget)


def test_c02_gaussian_noise_has_the_exact_law_and_no_floating_point_sampler_is_offered() -> None:
    drawn = noise.discrete_gaussian("1/4", 4000)
    assert drawn.dtype == np.int64
    assert not [n for n in dir(noise) if n in ("normal", "gaussian", "laplace", "box_muller")]
    with pytest.raises(TypeError):
        noise.discrete_gaussian(1, 10, rng=np.random.default_rng(0))  # type: ignore[call-arg]


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
def test_c04_one_changed_row_of_1024_moves_what_is_observed_by_no_more_than_claimed(unit: Any) -> None:
    """Values of 2^40 and more: the true change of the exact rows, in Python integers, against the price."""
    top = 2**40 if unit == "epsilon" else 2**28  # squares must fit too
    domain = td.Domain(x=td.Integer(top - 400, top))
    policy = td.Policy(domain, td.Within(7))
    strategy = price(
        td.mechanisms.Direct(), resolve(td.Sum("x"), domain), policy.neighbourhood, Loss(unit, Fraction(1))
    )
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 390, 1024)
    before = int(rows.sum()) + 1024 * (top - 400)
    for offset in range(1, 8):
        after = before + offset
        moved = abs(after - before)
        [part] = strategy.parts
        scale = strategy.scale(part)
        assert scale is not None
        loss = Fraction(moved) / scale if unit == "epsilon" else Fraction(moved**2) / (2 * scale)
        assert loss <= 1
    assert loss == 1  # attained at the largest distance that is secret


@pytest.mark.parametrize(
    "mechanism", ["identity", "ordered", "hierarchical", "ordered-hierarchical", "optimised"]
)
def test_c22_every_mechanism_owns_the_price_of_its_own_noise(mechanism: str) -> None:
    """The same rows cost Σ|Δ|/s under Laplace noise and ΣΔ²/2σ² under Gaussian noise: recomputed from the parts."""
    domain = td.Domain(x=td.Integer(0, 9))
    policy = td.Policy(domain, td.Within(3))
    for loss, power in ((Loss("epsilon", Fraction(1)), 1), (Loss("rho", Fraction(1, 7)), 2)):
        strategy = price(
            td.mechanisms.mechanism_from_spec(mechanism),
            resolve(td.CDF("x"), domain),
            policy.neighbourhood,
            loss,
        )
        rows = []
        for part in strategy.parts:
            scale = strategy.scale(part)
            if scale is None:
                continue
            unit = np.eye(10, dtype=np.int64)
            layer = part.noisy
            for a, b in itertools.combinations(range(10), 2):
                if b - a <= 3:
                    rows.append(
                        (a, b, Fraction(int(layer.difference(np.array([a]), np.array([b]))[0])), scale)
                    )
            assert unit.shape == (10, 10)
        losses: dict[tuple[int, int], Fraction] = {}
        for a, b, moved, scale in rows:
            losses[a, b] = losses.get((a, b), Fraction(0)) + moved / (scale if power == 1 else 2 * scale)
        if mechanism != "optimised" or power == 1:
            assert max(losses.values()) == loss.amount
        [term] = strategy.terms
        assert stacked([term], policy.neighbourhood, power).value == loss.amount


def test_c22_a_rho_cannot_be_spent_from_an_account_in_epsilon() -> None:
    held = session(td.Policy(X, td.Full()), {"x": [1, 2]}, epsilon=1)
    with pytest.raises(BudgetError, match="rho"):
        held.release(td.Histogram("x"), rho="0.1")
    assert held.remaining.epsilon == 1


def test_c23_every_position_is_noised_and_lengths_are_declared() -> None:
    for rows in ([0], [0, 1, 2, 3, 4, 5] * 9):
        held = session(td.Policy(X, td.Full()), {"x": rows}, rho=2, delta="1e-6")
        for query in (td.Histogram("x"), td.CDF("x")):
            for at, row in enumerate(held.plan(query, rho="1/2")):
                made = held.release(query, rho="1/1000", mechanism=row.mechanism, name=f"{query.word} {at}")
                assert len(made.values) == 6
    loud = held.plan(td.Histogram("x"), rho="1/2")[0].strategy
    assert sum(n for _, n in loud.draws) >= 5  # at most the public total goes without


def test_c24_clusters_start_from_the_domain_and_nothing_else_of_the_rows_is_kept() -> None:
    domain = td.Domain(a=td.Integer(0, 15), b=td.Integer(0, 15))
    policy = td.Policy(domain, td.AttributeWise(a=td.Within(4), b=td.Within(4)))
    rng = np.random.default_rng(5)
    held = session(policy, {"a": rng.integers(0, 16, 60), "b": rng.integers(0, 16, 60)}, epsilon=50)
    query = td.KMeans("a", "b", k=3)
    for at, row in enumerate(held.plan(query, epsilon=1)):
        made = held.release(query, epsilon=1, mechanism=row.mechanism, name=f"clusters {at}")
        told = {n.strip("_") for n in dir(made)} | {n.strip("_") for n in dir(made.answers)}
        assert not told & {"labels", "inertia", "n_iter", "objective", "points"}
        frame = made.to_arrow().to_pydict()
        assert len(frame["a"]) == 3


def test_c25_no_exponential_mechanism_is_offered() -> None:
    """Quantiles and strategies are chosen from noisy or public numbers, never by scores of the data."""
    assert not [n for n in td.mechanisms.NAMES if "xponential" in n]
    held = session(td.Policy(X, td.Full()), {"x": [1, 2, 3]}, epsilon=1)
    assert {next(iter(r.mechanism.to_spec())) for r in held.plan(td.Quantiles("x"), 1)} <= {
        "identity", "ordered", "hierarchical", "ordered-hierarchical", "optimised",
    }  # fmt: skip


@pytest.mark.parametrize("outside", [[-1e9, 7, 1e300], [-2, 6, 99]])
def test_c26_values_inside_one_clamp_class_are_one_value(outside: list[float]) -> None:
    """Exact counts, and with them all that is observed, see the clipped cell alone."""
    domain = td.Domain(x=td.Integer(0, 5), home=td.Point("y", "z", box=((0, 1), (0, 1)), cell="50 km"))
    told = {"x": outside, "y": [0.5, 9, -9], "z": [0.5, 0.5, 400.0]}
    clipped = {"x": np.clip(outside, 0, 5), "y": [0.5, 1, 0], "z": [0.5, 0.5, 1.0]}
    raw, clean = (td.Table(t, domain).counts("x", "home") for t in (told, clipped))
    assert raw == clean


def test_c27_facts_about_a_domain_do_not_outlive_it(tmp_path: Any) -> None:
    """Prices are made for one policy: a request priced under another, or for a redefined column, is refused."""
    one = td.Domain(x=td.Integer(0, 5))
    two = td.Domain(x=td.Integer(0, 6))
    ledger = tmp_path / "l.ledger"
    td.Session(td.Table({"x": [1]}, one, name="t"), td.Policy(one, td.Full()), epsilon=1, ledger=ledger)
    with pytest.raises(td.errors.LedgerError, match="domain"):
        td.Session(td.Table({"x": [1]}, two, name="t"), td.Policy(two, td.Full()), epsilon=1, ledger=ledger)
    with pytest.raises(SpecificationError, match="different domains"):
        td.Session(td.Table({"x": [1]}, one), td.Policy(two, td.Full()), epsilon=1)


def test_c28_a_lie_about_public_counts_is_refused_before_the_budget_is_looked_at() -> None:
    policy = td.Policy(X, td.Full(), [td.CountConstraint({"x": (0, 2)}, answer=5)])
    held = session(policy, {"x": [0, 1, 5, 5]}, epsilon=1)
    for _ in range(3):
        with pytest.raises(DataError, match="does not have the stated answers") as caught:
            held.release(td.Histogram("x"), epsilon=1)
        assert "5" not in str(caught.value).replace("0 to 2", "")
    assert held.remaining.epsilon == 1 and not any(e.charge for e in held.ledger.entries)


LIES: list[tuple[Any, str]] = [
    (
        [td.CountConstraint({"x": (0, 2)}, answer=5), td.CountConstraint({"x": [0, 1, 2]}, answer=6)],
        "contradict",
    ),
    (
        [td.CountConstraint({"x": (0, 4)}, answer=5), td.CountConstraint({"x": (0, 2)}, answer=6)],
        "contradict",
    ),
    (
        [
            td.MarginalConstraint("x", answers=[1, 1, 1, 1, 1, 1]),
            td.CountConstraint({"x": (0, 5 - 1)}, answer=6),
        ],
        "contradict",
    ),
    ([td.MarginalConstraint("y")], "no attribute 'y'"),
    ([td.CountConstraint({"z": [1]})], "no attribute 'z'"),
    ([td.CountConstraint({"x": [1]})] * 1001, "1,000 are offered"),
    ([td.CountConstraint({"x": (0, 5)})], "holds for every value"),
    ([td.MarginalConstraint("x", answers=[1, 2])], "6 cells are declared, 2 counts given"),
    ([td.MarginalConstraint("x", answers={0: 1})], "no count for"),
]


@pytest.mark.parametrize(("constraints", "says"), LIES, ids=[s for _, s in LIES])
def test_c28_declarations_that_cannot_be_true_are_refused_by_name(constraints: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        td.Policy(X, td.Full(), constraints)


@pytest.mark.parametrize("answer", [-1, 1.5, "x", float("nan"), True, 2**60])
def test_c28_answers_are_counts(answer: Any) -> None:
    with pytest.raises(SpecificationError):
        td.CountConstraint({"x": [1]}, answer=answer)
    with pytest.raises(SpecificationError):
        td.MarginalConstraint("x", answers={0: answer})


def test_c28_a_million_public_counts_are_refused_at_once() -> None:
    with pytest.raises(SpecificationError, match="1,000,000 are declared"):
        td.Policy(X, td.Full(), [td.CountConstraint({"x": [1]})] * 10**6)


def test_c29_public_counts_raise_the_price_as_the_theory_says() -> None:
    """Brute force over all neighbouring tables of three records, histogram and CDF, L1 and squared L2."""
    graph = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) == 1
    predicates = [[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]]
    policy = td.Policy(
        X, td.Within(1), [td.CountConstraint({"x": (0, 1)}), td.CountConstraint({"x": (3, 4)})]
    )
    plain = td.Policy(X, td.Within(1))
    for query, rows in ((td.Histogram("x"), np.eye(6)), (td.CDF("x"), np.tril(np.ones((6, 6))))):
        for norm in ("l1", "l2"):
            true = _largest(graph, predicates, rows, norm)
            found = policy.sensitivity(query, norm=norm, records=3).value
            assert found >= true > plain.sensitivity(query, norm=norm).value
            if query.word == "histogram":
                assert found == true if norm == "l1" else found >= true


def _largest(graph: Any, predicates: Any, rows: Any, norm: str) -> int:
    pairs = constrained.neighbours(graph, predicates, 3, "literal")
    return int(constrained.largest(pairs, rows.astype(np.int64), 1 if norm == "l1" else 2).value)


def test_c29_tying_counts_that_leave_too_much_open_are_refused_by_name() -> None:
    domain = td.Domain(a=td.Integer(0, 3), b=td.Integer(0, 3))
    policy = td.Policy(domain, td.Full(), [td.MarginalConstraint("a"), td.MarginalConstraint("b")])
    with pytest.raises(PolicyError, match="Without the table of b"):
        policy.sensitivity(td.Histogram("a", "b"))


def test_c30_what_no_path_joins_is_said_to_be_disclosed() -> None:
    policy = td.Policy(td.Domain(x=td.Integer(0, 9)), td.Partition(blocks={"x": 2}))
    told = policy.explain()
    assert "block" in told and "Disclosed exactly" in told
    blocks = session(policy, {"x": [1, 7, 8]}, epsilon=1).release(
        td.Histogram("x", bins={"x": 5}), epsilon="1/2"
    )
    assert blocks.values.tolist() == [1, 2] and blocks.spent.is_zero
    with pytest.raises((PolicyError, BudgetError)):
        # The same account cannot later promise that the blocks are secret: they are out.
        held = session(policy, {"x": [1, 7, 8]}, epsilon=1)
        held.release(td.Histogram("x", bins={"x": 5}), epsilon="1/2")
        held.ledger.declare(td.Policy(policy.domain, td.Full()))


def test_every_gaussian_answer_holds_its_truth_as_often_as_it_says() -> None:
    """95 % intervals of a CDF in ρ: 300 draws of 20 answers, through the path of a release after its charge."""
    domain = td.Domain(x=td.Integer(0, 19))
    table = np.bincount(np.random.default_rng(1).integers(0, 20, 500), minlength=20)[None, :]
    truth, inside = np.cumsum(table), 0
    loss, hood = Loss("rho", Fraction(1, 50)), td.Policy(domain, td.Within(3)).neighbourhood
    strategy = candidates(resolve(td.CDF("x"), domain), hood, loss)[0]
    for _ in range(300):
        with noise.reserve([], gaussian=strategy.draws) as held:
            made = answers(strategy, strategy.observe(table, 500, held))
        inside += int(((made.lower[0] <= truth) & (truth <= made.upper[0])).sum())
    assert inside / 6000 > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 300)


def test_no_hidden_keyword_lowers_a_price() -> None:
    for function in (td.Session.release, td.Session.plan, price, candidates, stacked):
        names = set(inspect.signature(function).parameters)
        assert not names & {"sensitivity", "scale", "cost", "reading", "norm", "records", "unsafe"}
    # A secret presence makes no answer cheaper, and no total exact.
    hidden, shown = (td.Policy(X, td.Full(), presence=p) for p in ("secret", "public"))
    for query in (td.Histogram("x"), td.CDF("x"), td.Sum("x")):
        assert hidden.sensitivity(query).value >= shown.sensitivity(query).value
    assert hidden.sensitivity(td.CDF("x")).value == X["x"].size


def test_c28_a_slip_in_a_public_count_does_not_reach_the_ledger(tmp_path: Any) -> None:
    rows, ledger = {"x": [0, 1, 5, 5]}, tmp_path / "l.ledger"
    wrong, right = (td.Policy(X, td.Full(), [td.CountConstraint({"x": (0, 2)}, answer=n)]) for n in (3, 2))
    with pytest.raises(DataError, match="Nothing was spent"):
        td.Session(td.Table(rows, X, name="t"), wrong, epsilon=1, ledger=ledger)
    assert not ledger.exists()
    made = td.Session(td.Table(rows, X, name="t"), right, epsilon=1, ledger=ledger)
    assert made.release(td.Histogram("x"), epsilon="1/2").spent.amount == Fraction(1, 2)
