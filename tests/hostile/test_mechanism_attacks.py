"""How mechanisms and sessions of privacy software fail: C01, C03, C04, C05, C18, C19, C21, C34 and the order of a release."""

from __future__ import annotations

import decimal
import gc
import inspect
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pricing import candidates, price

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers
from tetraodon.errors import SpecificationError, TetraodonError, Unsupported
from tetraodon.ledger import Ledger
from tetraodon.mechanisms import (
    Direct,
    Hierarchical,
    Identity,
    Ordered,
    OrderedHierarchical,
    mechanism_from_spec,
)
from tetraodon.mechanisms.strategy import Noisy, Strategy
from tetraodon.session import Session
from tetraodon.table import Counts, Table
from tetraodon.workload import resolve

MECHANISMS: list[Any] = [Identity(), Ordered(), Hierarchical(3), OrderedHierarchical(3, "optimal", 4)]
AGES = td.Domain(age=td.Integer(0, 19))


def strategy_of(query: Any, mechanism: Any, domain: td.Domain = AGES, epsilon: Any = "1/3") -> Strategy:
    graph = td.Policy(domain, td.Full()).graph
    return price(mechanism, resolve(query, domain), graph, Fraction(epsilon))


def observed(strategy: Strategy, table: Any) -> Noisy:
    with noise.reserve(strategy.draws) as held:
        return strategy.observe(table, int(table.sum()), held)


def session_over(rows: Any, domain: td.Domain = AGES, **more: Any) -> Session:
    return td.Session(
        td.Table({"age": rows}, domain), td.Policy(domain, td.Full()), **({"epsilon": 1} | more)
    )


# ---------- C01: low bits of the noise ----------


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_c01_what_is_observed_is_whole_for_every_table(mechanism: Any) -> None:
    # No output can be told to come from a count of 0 rather than 1 by its low bits: both give whole numbers only.
    strategy = strategy_of(td.CDF("age"), mechanism)
    for table in (np.zeros((1, 20), dtype=np.int64), np.eye(1, 20, dtype=np.int64)):
        for _ in range(20):
            assert all((v == np.rint(v)).all() for v in observed(strategy, table).values)


def test_c01_linear_answers_and_sums_are_on_a_public_grid() -> None:
    for query, grid in ((td.Linear([[1] * 20, [3, -1] * 10], "age"), 1), (td.Sum("age"), 1)):
        strategy = strategy_of(query, Direct())
        told = answers(strategy, observed(strategy, np.full((1, 20), 50))).values * grid
        assert (told == np.rint(told)).all()
    halves = td.Domain(age=td.Numeric(0, 10, cells=10))  # cell middles are halves
    strategy = strategy_of(td.Sum("age"), Direct(), halves)
    told = answers(strategy, observed(strategy, np.full((1, 10), 50))).values * 2
    assert (told == np.rint(told)).all()


def test_c01_every_neighbouring_output_has_positive_probability() -> None:
    # The law of one noisy row, certified: the ratio along an edge is at most e^(1/scale), and nothing is impossible.
    for z in range(-30, 31):
        low, high = noise.discrete_laplace_pmf(3, z)
        assert low > 0
        assert float(high / noise.discrete_laplace_pmf(3, z + 1)[0]) <= math.exp(1 / 3) * (1 + 1e-12)


# ---------- C03: order of rows ----------


@pytest.mark.parametrize(
    "query", [td.Sum("age"), td.CDF("age"), td.Histogram("age"), td.Mean("age")], ids=lambda q: q.word
)
def test_c03_permuted_rows_give_the_same_exact_rows_bit_for_bit(query: Any) -> None:
    domain = td.Domain(age=td.Numeric(0, 1, cells=1000))
    rng = np.random.default_rng(0)
    rows = rng.random(5000) ** 7
    mechanism = Direct() if query.word in ("sum", "mean") else OrderedHierarchical(10, block=50)
    strategy = strategy_of(query, mechanism, domain)
    seen = set()
    for order in (np.arange(5000), np.arange(5000)[::-1], rng.permutation(5000)):
        counts = td.Table(pd.DataFrame({"age": rows[order]}), domain).counts("age")
        exact = strategy._apply(strategy.resolved.tabulate(counts))
        assert all(part.dtype == np.int64 for part in exact)
        seen.add(b"".join(part.tobytes() for part in exact))
    assert len(seen) == 1


# ---------- C04: large values beside small ones ----------


@pytest.mark.parametrize("low", [0, 2**20, 2**39, 2**40 - 10, -(2**40) + 1])
def test_c04_changing_one_of_1024_rows_moves_a_sum_by_no_more_than_claimed(low: int) -> None:
    domain = td.Domain(age=td.Integer(low, low + 9))
    policy = td.Policy(domain, td.Full())
    claimed = policy.sensitivity(td.Sum("age")).value
    strategy = price(Direct(), resolve(td.Sum("age"), domain), policy.graph, Fraction(1))
    assert strategy.scale(strategy.parts[0]) == claimed == 9
    exact = []
    for last in (low, low + 9):
        counts = td.Table({"age": [low + i % 10 for i in range(1023)] + [last]}, domain).counts("age")
        (rows,) = strategy._apply(strategy.resolved.tabulate(counts))
        exact.append(int(rows[0, 0]))
    assert exact[1] - exact[0] == claimed


def test_c04_values_whose_sums_would_not_be_exact_are_refused() -> None:
    domain = td.Domain(age=td.Integer(2**50, 2**50 + 9))
    session = td.Session(td.Table({"age": [2**50]}, domain), td.Policy(domain, td.Full()), epsilon=1)
    with pytest.raises(Unsupported, match="coarser unit"):
        session.release(td.Sum("age"), epsilon=1)
    assert session.remaining.epsilon == 1


# ---------- C05: overflow ----------


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**53 + 1, 2**60])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_c05_large_counts_are_added_up_exactly(count: int, mechanism: Any) -> None:
    strategy = strategy_of(td.CDF("age"), mechanism, epsilon=1000)
    table = np.zeros((1, 20), dtype=np.int64)
    table[0, [0, 19]] = count // 2, count - count // 2
    for part, applied in zip(strategy.parts, strategy._apply(table), strict=True):
        assert applied.max() <= count and applied.min() >= 0, part.name
    found = answers(strategy, observed(strategy, table)).values
    assert found[0, -1] == float(count) and abs(found[0, 0] - count // 2) <= 1e-9 * count + 1


@pytest.mark.parametrize("count", [2**61, 2**62, 2**63 - 1])
def test_c05_counts_beyond_exact_noise_are_refused_before_charging(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_over([1])
    huge = Counts.collect(AGES, [([3], [count])])
    monkeypatch.setattr(Table, "counts", lambda *_: huge)
    with pytest.raises(Unsupported, match=r"2\^61") as refused:
        session.release(td.CDF("age"), epsilon=1)
    assert str(count) not in str(refused.value)
    assert session.remaining.epsilon == 1


def test_c05_a_sum_that_could_overflow_is_refused_before_charging(monkeypatch: pytest.MonkeyPatch) -> None:
    # Values near 2^40 fit; three million records of them do not.
    domain = td.Domain(age=td.Integer(2**40 - 10, 2**40 - 1))
    session = td.Session(td.Table({"age": [2**40 - 1]}, domain), td.Policy(domain, td.Full()), epsilon=1)
    many = Counts.collect(domain, [([9], [3 * 10**6])])
    monkeypatch.setattr(Table, "counts", lambda *_: many)
    with pytest.raises(Unsupported, match="coarser values"):
        session.release(td.Sum("age"), epsilon=1, mechanism="direct")
    assert session.remaining.epsilon == 1
    few = Counts.collect(domain, [([9], [10**6])])
    monkeypatch.setattr(Table, "counts", lambda *_: few)
    assert session.release(td.Sum("age"), epsilon=1, mechanism="direct").values[0] > 0


def test_c05_noise_at_the_largest_scale_does_not_wrap() -> None:
    strategy = strategy_of(td.Sum("age"), Direct(), epsilon=Fraction(19, 2**50))
    table = np.full((1, 20), 2**40)
    for _ in range(50):
        (values,) = observed(strategy, table).values
        assert abs(values[0, 0]) <= 2**61
    with pytest.raises(SpecificationError, match=r"2\^50"):
        observed(strategy_of(td.Sum("age"), Direct(), epsilon=Fraction(19, 2**51)), table)


# ---------- C18: budgets that are no budgets ----------


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, "-0.5", float("nan"), float("inf"), -float("inf"), True, np.True_, None, "one", "", [1], 1j, "nan", "1e999", b"1",
     decimal.Decimal("NaN"), decimal.Decimal(0), np.float64("nan"), np.array([1.0, 2.0])],
    ids=repr,
)  # fmt: skip
def test_c18_epsilons_that_are_no_positive_number_are_refused(epsilon: Any) -> None:
    session = session_over([1, 2, 3])
    with pytest.raises(TetraodonError):
        session.release(td.CDF("age"), epsilon=epsilon)
    with pytest.raises(TetraodonError):
        session.plan(td.CDF("age"), epsilon=epsilon)
    with pytest.raises(TetraodonError):
        session_over([1], epsilon=epsilon)
    assert session.remaining.epsilon == 1


@pytest.mark.parametrize(
    ("epsilon", "exact"),
    [(0.1, Fraction(1, 10)), ("1/3", Fraction(1, 3)), (decimal.Decimal("0.25"), Fraction(1, 4)), (np.float64(0.1), Fraction(1, 10)),
     (np.int64(1), Fraction(1)), (Fraction(2, 7), Fraction(2, 7)), (1, Fraction(1))],
    ids=repr,
)  # fmt: skip
def test_c18_epsilons_are_exact_whatever_they_were_written_as(epsilon: Any, exact: Fraction) -> None:
    session = session_over([1, 2, 3])
    assert session.release(td.CDF("age"), epsilon=epsilon).epsilon == exact
    assert session.remaining.epsilon == 1 - exact


def test_c18_an_epsilon_too_small_for_the_noise_is_refused_and_not_spent() -> None:
    session = session_over([1, 2, 3])
    for tiny in (1e-320, "1e-30", Fraction(1, 2**80)):
        with pytest.raises(SpecificationError):
            session.release(td.CDF("age"), epsilon=tiny)
    assert session.remaining.epsilon == 1


def test_c18_a_huge_epsilon_is_a_huge_budget() -> None:
    session = session_over([0, 0, 5], epsilon="1e300")
    assert session.release(td.Histogram("age"), epsilon="1e300").values[0] == pytest.approx(2)
    assert session.remaining.epsilon == 0


# ---------- C19: sensitivity is computed ----------


def test_c19_no_function_takes_a_sensitivity_or_a_scale() -> None:
    takers = [
        Session.__init__,
        Session.plan,
        Session.release,
        price,
        candidates,
        td.Policy.__init__,
        *map(type, []),
    ]
    takers += [kind.__init__ for kind in (Identity, Ordered, Hierarchical, OrderedHierarchical, Direct)]
    for function in takers:
        for name in inspect.signature(function).parameters:
            assert not any(word in name for word in ("sensitiv", "scale", "noise", "seed", "random")), (
                function,
                name,
            )


@pytest.mark.parametrize("option", ["sensitivity", "scale", "noise", "seed", "weights"])
def test_c19_a_specification_cannot_carry_a_sensitivity(option: str) -> None:
    for name in ("identity", "ordered", "hierarchical", "ordered-hierarchical", "direct"):
        for value in (0, float("nan"), 1):
            with pytest.raises(TetraodonError):
                mechanism_from_spec({name: {option: value}})
    session = session_over([1])
    with pytest.raises(TypeError):
        session.release(td.CDF("age"), epsilon=1, **{option: 1})  # type: ignore[arg-type]
    assert session.remaining.epsilon == 1


@pytest.mark.parametrize(
    ("secrets", "free"),
    [(td.Nothing(), True), (td.Within(0), True), (td.Partition(blocks=20), True), (td.Partition(blocks=19), False),
     (td.Within(1), False), (td.Edges([(3, 4)]), False), (td.Full(), False)],
    ids=repr,
)  # fmt: skip
def test_c19_a_cost_of_zero_means_that_nothing_is_secret(secrets: Any, free: bool) -> None:
    policy = td.Policy(AGES, secrets)
    for query in (
        td.CDF("age"),
        td.Histogram("age"),
        td.Sum("age"),
        td.Linear([[i * i for i in range(20)]], "age"),
    ):
        for strategy in candidates(resolve(query, AGES), policy.graph, Fraction(1)):
            assert strategy.spent.is_zero == free
            assert (not strategy.draws) == free
            for scale, _ in strategy.draws:
                assert scale > 0


# ---------- C21: drawn once ----------


def test_c21_a_release_read_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    made = session_over([1, 5, 5, 17] * 20).release(td.CDF("age"), epsilon=1)
    assert made.values.tobytes() == made.values.tobytes()
    assert made.to_arrow().equals(made.to_arrow())
    assert made.to_frame().equals(made.to_frame())
    one, two = made.range(3, 9), made.range(3, 9)
    assert (one.value, one.lower, one.upper) == (two.value, two.lower, two.upper)
    assert made.histogram().tobytes() == made.histogram().tobytes()
    assert made.quantile(0.5) == made.quantile(0.5)
    written = []
    for folder in ("first", "second"):
        made.save(tmp_path / folder)
        (file,) = (tmp_path / folder).glob("*.parquet")
        written.append(file.read_bytes())
    assert written[0] == written[1]


def test_c21_changing_what_was_read_does_not_change_the_release() -> None:
    made = session_over([1, 5, 5, 17] * 20).release(td.CDF("age"), epsilon=1)
    before = made.to_arrow().column("value").to_pylist()
    frame = made.to_frame()
    frame["value"] = 0.0
    assert made.to_arrow().column("value").to_pylist() == before


def test_c21_noise_of_one_release_cannot_be_had_again() -> None:
    strategy = strategy_of(td.CDF("age"), Ordered())
    table = np.ones((1, 20), dtype=np.int64)
    with noise.reserve(strategy.draws) as held:
        strategy.observe(table, 20, held)
        with pytest.raises(TetraodonError, match="left in the reserve"):
            strategy.observe(table, 20, held)


def test_c21_the_same_query_again_is_charged_and_drawn_afresh() -> None:
    session = session_over([1, 5, 5, 17] * 20, epsilon=2)
    first = session.release(td.CDF("age"), epsilon=1)
    with pytest.raises(TetraodonError, match="already"):
        session.release(td.CDF("age"), epsilon=1)
    assert session.remaining.epsilon == 1
    second = session.release(td.CDF("age"), epsilon=1, again=True)
    assert session.remaining.epsilon == 0
    assert first.answers.raw_prefix is not None and second.answers.raw_prefix is not None
    assert not np.array_equal(first.answers.raw_prefix, second.answers.raw_prefix)


# ---------- C34: nothing looks at the data again ----------


def test_c34_a_release_holds_neither_table_nor_counts() -> None:
    made = session_over(list(range(20)) * 5).release(td.CDF("age"), epsilon=1)
    _ = made.values, made.range(0, 5), made.expected_error
    seen: set[int] = set()
    waiting: list[Any] = [made]
    true = np.full(20, 5)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or inspect.ismodule(thing) or inspect.isclass(thing) or inspect.isroutine(thing):
            continue
        seen.add(id(thing))
        assert not isinstance(thing, Table | Counts | Session)
        if isinstance(thing, np.ndarray) and thing.size == 20 and thing.dtype.kind in "iuf":
            assert not np.array_equal(thing.ravel(), true)
            assert not np.array_equal(thing.ravel(), np.cumsum(true))
        waiting += [t for t in gc.get_referents(thing) if not isinstance(t, str | bytes | int | float)]
    assert len(seen) > 20


def test_c34_answers_refuse_exact_counts() -> None:
    strategy = strategy_of(td.CDF("age"), Ordered())
    counts = td.Table({"age": [1, 2]}, AGES).counts("age")
    with pytest.raises((AttributeError, TypeError)):
        answers(strategy, counts)  # type: ignore[arg-type]
    assert inspect.signature(answers).parameters["noisy"].annotation == "Noisy"


def test_c34_rounding_to_the_truth_does_not_happen() -> None:
    # Were small true cells dropped or totals of groups matched, groups without records would come out as 0.
    domain = td.Domain(age=td.Integer(0, 3), sex=td.Categorical([f"s{i}" for i in range(200)]))
    policy = td.Policy(domain, td.AttributeWise())
    session = td.Session(td.Table({"age": [1] * 1000, "sex": ["s0"] * 1000}, domain), policy, epsilon=1)
    made = session.release(td.Histogram("age", "sex"), epsilon=1, mechanism="identity")
    assert (made.values[1:] > 0).mean() > 0.2


# ---------- the order of a release ----------


def test_noise_is_reserved_before_reading_and_charged_before_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    def noted(owner: Any, name: str, as_name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **more: Any) -> Any:
            happened.append(as_name)
            return real(*args, **more)

        monkeypatch.setattr(owner, name, call)

    session = session_over([1, 2, 3])
    noted(noise, "reserve", "reserve")
    noted(Table, "counts", "read")
    noted(Ledger, "charge_all", "charge")
    noted(Strategy, "observe", "draw")
    session.release(td.CDF("age"), epsilon=1)
    assert [k for k, _ in itertools.groupby(happened)] == ["reserve", "read", "charge", "draw"]


def test_a_table_that_cannot_be_read_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_over([1, 2, 3])

    def broken(*_: Any) -> Any:
        raise td.errors.EngineError("table: the engine failed.")

    monkeypatch.setattr(Table, "counts", broken)
    with pytest.raises(TetraodonError, match="failed"):
        session.release(td.CDF("age"), epsilon=1)
    assert session.remaining.epsilon == 1


@pytest.mark.parametrize("mechanism", ["direct", "sideways", Hierarchical(2)])
def test_a_mechanism_that_does_not_apply_costs_nothing(mechanism: Any) -> None:
    domain = td.Domain(age=td.Categorical(["a", "b"]))
    session = td.Session(td.Table({"age": ["a"]}, domain), td.Policy(domain, td.Full()), epsilon=1)
    with pytest.raises(SpecificationError):
        session.release(td.Histogram("age"), epsilon=1, mechanism=mechanism)
    assert session.remaining.epsilon == 1
