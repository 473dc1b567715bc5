"""Sessions, releases and what is written."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pricing import epsilon

import tetraodon as td
from tetraodon.errors import BudgetError, LedgerError, SpecificationError
from tetraodon.policy import Policy
from tetraodon.queries import query_from_spec
from tetraodon.session import Request

DOMAIN = td.Domain(
    age=td.Integer(0, 9, unit="years", missing="public"),
    sex=td.Categorical(["f", "m"], other="x"),
    pay=td.Numeric(0, 10, cells=5, unit="EUR"),
)
POLICY = td.Policy(DOMAIN, secrets=td.AttributeWise(age=td.Within(2), sex=td.Full(), pay=td.Within(3)))
ROWS: dict[str, list[Any]] = {
    "age": [1, 2, None, 7, 9, 40],
    "sex": ["f", "m", "q", "f", "f", "m"],
    "pay": [0.0, 1.5, 9.9, 10.0, 3.3, 7.0],
}
QUERIES = [
    td.Histogram("age"),
    td.Histogram("sex", "age", bins={"age": 5}),
    td.Histogram("sex", bins={"sex": {"both": ["f", "m"]}}, where={"age": (2, 8)}),
    td.CDF("age", by="sex"),
    td.CDF("pay", where={"sex": ["f"]}),
    td.Ranges("age", [(0, 3), (4, 9)], by="sex"),
    td.Ranges("pay"),
    td.Quantiles("age", [0.1, 0.5], by="sex"),
    td.Sum("pay", by="sex"),
    td.Mean("age"),
    td.Mean("pay", by="sex"),
    td.Linear([[1, 0, -1]], "sex"),
]


def session(epsilon: Any = 100, **more: Any) -> td.Session:
    return td.Session(td.Table(ROWS, DOMAIN), POLICY, epsilon, **more)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.title)
def test_every_query_from_plan_to_file(query: td.Histogram, tmp_path: Path) -> None:
    made = session()
    plan = made.plan(query, "1/2")
    assert [row.expected_error for row in plan] == sorted(row.expected_error for row in plan)
    assert made.ledger.spent == 0
    found = made.release(query, "1/2")
    assert found.epsilon == made.ledger.spent == Fraction(1, 2) == found.cost.value
    assert found.expected_error == plan[0].expected_error
    columns = found.columns
    lengths = {len(c) for c in columns.values()}
    assert len(lengths) == 1 and list(columns)[-3:] == ["value", "lower", "upper"]
    if not isinstance(query, td.Quantiles):
        assert (columns["lower"] <= columns["value"]).all() and (columns["value"] <= columns["upper"]).all()
    manifest = json.loads(found.save(tmp_path, ("parquet", "csv")).read_text())
    [entry] = manifest["releases"]
    assert query_from_spec(entry["query"]) == query
    assert manifest["budget"]["ledger"] is None
    stored = pq.read_table(tmp_path / entry["files"]["parquet"]["path"])
    assert stored.to_pydict() == {n: c.tolist() for n, c in columns.items()}
    assert Policy.from_spec(manifest["policy"]["spec"]).hash == POLICY.hash


def test_answers_come_near_the_truth_with_a_large_budget() -> None:
    """At ε = 1000 noise is 0 with all but negligible probability, so every answer must be the true one."""
    made = session(10_000)
    cdf = made.release(td.CDF("age", by="sex"), 1000)
    assert cdf.to_frame().pivot(index="age", columns="sex", values="value").loc["9"].tolist() == [3, 2, 0]
    assert cdf.range(1, 2).value == pytest.approx([1, 1, 0]) and cdf.range(0, 9).value == pytest.approx(
        [3, 2, 0]
    )
    assert cdf.quantile(0.5) == ["7", "2", "0"]
    assert cdf.histogram()[0] == pytest.approx([0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0], abs=1e-9)
    assert made.release(td.Sum("pay"), 1000).values.tolist() == [1 + 1 + 9 + 9 + 3 + 7]
    # The number of records with an age is public: only `missing="public"` is outside.
    assert made.release(td.Mean("age"), 1000).values[0] == pytest.approx((1 + 2 + 7 + 9 + 9) / 5)
    assert made.release(td.Linear([[1, 0, -1]], "sex"), 1000).values.tolist() == [2]
    table = made.release(
        td.Histogram("age", "sex", where={"pay": (0, 4)}, bins={"age": [0, 5]}), 1000
    ).to_arrow()
    assert table.to_pydict() == {
        "age": ["0–4"] * 3 + ["5–9"] * 3 + ["missing"] * 3,
        "sex": ["f", "m", "x"] * 3,
        "value": [1, 1, 0, 1, 0, 0, 0, 0, 0],
        "lower": table["lower"].to_pylist(),
        "upper": table["upper"].to_pylist(),
    }


def test_budget_is_exact_and_charged_before_drawing() -> None:
    made = session("1")
    for k in range(10):
        made.release(td.Histogram("age"), "0.1", name=f"n{k}")
    assert made.remaining.epsilon == 0
    with pytest.raises(BudgetError, match="Nothing was spent"):
        made.release(td.Histogram("age"), "1/1000000", name="more")


def test_a_failure_after_the_charge_leaves_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session("1")

    def broken(*told: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("tetraodon.session.answers", broken)
    with pytest.raises(RuntimeError):
        made.release(td.Histogram("age"), "0.5")
    assert made.ledger.spent == Fraction(1, 2)


def test_wrong_data_cost_nothing() -> None:
    domain = td.Domain(age=td.Integer(0, 9))
    made = td.Session(td.Table({"age": [1, None]}, domain), td.Policy(domain, secrets=td.Full()), 1)
    with pytest.raises(td.errors.DataError, match="age"):
        made.release(td.Histogram("age"), "0.5")
    assert made.ledger.spent == 0


def test_all_or_nothing() -> None:
    made = session("1")
    wanted = [
        Request(td.Histogram("age"), epsilon("3/4"), "a"),
        Request(td.CDF("age"), epsilon("1/2"), "b"),
    ]
    with pytest.raises(BudgetError):
        made.release_all(wanted)
    assert made.ledger.spent == 0


def test_the_same_name_again(tmp_path: Path) -> None:
    made = session("1", ledger=tmp_path / "a.ledger")
    made.release(td.Histogram("age"), "0.25")
    with pytest.raises(LedgerError, match="already released on"):
        made.release(td.Histogram("age"), "0.25")
    made.release(td.Histogram("age"), "0.25", again=True)
    assert made.remaining.epsilon == Fraction(1, 2)
    later = td.Session(td.Table(ROWS, DOMAIN, edition="2"), POLICY, "1", ledger=tmp_path / "a.ledger")
    later.release(td.Histogram("age"), "0.25")  # another edition: a fresh name, the same account
    assert later.remaining.epsilon == Fraction(1, 4)


def test_zero_cost_disclosures_are_recorded() -> None:
    domain = td.Domain(age=td.Integer(0, 9), sex=td.Categorical(["f", "m"]))
    table = td.Table({"age": [1, 2, 3], "sex": ["f", "f", "m"]}, domain)
    made = td.Session(table, td.Policy(domain, secrets=td.AttributeWise(age=td.Within(1))), 1)
    found = made.release(td.Histogram("sex"), "0.5")
    assert found.epsilon == 0 and found.values.tolist() == [2, 1] and found.cost.witness is None
    assert found.half_width == 0 and found.expected_error == 0
    assert made.ledger.spent == 0 and made.remaining.outside
    cdf = made.release(td.CDF("age", by="sex"), "0.5")
    assert cdf.values[-2:].tolist() == [2, 1]
    assert "number of records for every sex" in str(made.remaining)


def test_totals_are_free_only_if_nothing_moves_them() -> None:
    """A protected group, a filter or a secret missing cell makes the total noisy."""
    base = {"age": td.Integer(0, 9, missing="secret"), "sex": td.Categorical(["f", "m"])}
    domain = td.Domain(base)
    policy = td.Policy(domain, secrets=td.AttributeWise(age=td.Within(1)))
    table = td.Table({"age": [1, None, 3], "sex": ["f", "f", "m"]}, domain)
    made = td.Session(table, policy, 10)
    cdf = made.release(td.CDF("age"), 1)
    # Only n itself (public) is exact: the count of those who answered is not.
    assert cdf.disclosures() == [] and cdf.cost.value == 1
    filtered = made.release(td.CDF("age", where={"age": (0, 4)}, by="sex"), 1)
    assert filtered.disclosures() == []
    assert made.plan(td.Histogram("sex"), 1)[0].cost.value == 0


def test_policy_and_table_speak_of_one_domain() -> None:
    other = td.Domain(age=td.Integer(0, 8))
    with pytest.raises(SpecificationError, match="different domains"):
        td.Session(td.Table(ROWS, DOMAIN), td.Policy(other, secrets=td.Full()), 1)


def test_errors_of_ranges_and_quantiles() -> None:
    made = session()
    cdf = made.release(td.CDF("pay"), 1)
    with pytest.raises(SpecificationError, match="boundary"):
        cdf.range(0, 3)
    assert cdf.range(0, 4).value >= 0
    with pytest.raises(SpecificationError, match="from 0 to 1"):
        cdf.quantile(1.5)
    with pytest.raises(SpecificationError, match="only for a CDF"):
        made.release(td.Sum("pay"), 1).range(0, 2)
    with pytest.raises(SpecificationError, match="no mechanism 'laplace'"):
        made.release(td.CDF("pay"), 1, mechanism="laplace", name="o")


def test_named_mechanisms_run() -> None:
    made = session()
    for name in ("identity", "ordered", "hierarchical", "ordered-hierarchical"):
        found = made.release(td.CDF("age"), 1, mechanism=name, name=name)
        assert next(iter(found.mechanism.to_spec())) == name
        assert (np.diff(found.values) >= 0).all() and found.values[-1] == 6


def test_attributes_called_like_columns_of_the_answers_are_refused() -> None:
    domain = td.Domain(value=td.Integer(0, 3), level=td.Integer(0, 3), row=td.Integer(0, 3))
    made = td.Session(td.Table({n: [1] for n in domain}, domain), td.Policy(domain, secrets=td.Full()), 10)
    for query in (td.Histogram("value"), td.Quantiles("row", by="level"), td.Linear([[1, 0, 0, 0]], "row")):
        with pytest.raises(SpecificationError, match="another name"):
            made.plan(query, 1)
    assert made.release(td.CDF("level", by="row"), 1).columns.keys() == {
        "level",
        "row",
        "value",
        "lower",
        "upper",
    }


def test_questions_of_the_wrong_kind_are_refused_before_anything_is_spent() -> None:
    made = session()
    domain = td.Domain(a=td.Integer(0, 9, missing="secret"))
    other = td.Session(td.Table({"a": [1, None]}, domain), td.Policy(domain, secrets=td.Full()), 1)
    for ask in (
        lambda: made.release("age", 1),  # type: ignore[arg-type]
        lambda: made.plan("age", 1),  # type: ignore[arg-type]
        lambda: other.release(td.Mean("a", where={"a": ["missing"]}), 1),
    ):
        with pytest.raises(SpecificationError):
            ask()
    assert made.ledger.spent == other.ledger.spent == 0


@pytest.mark.parametrize("epsilon", ["100", "2000", "100000", "1e300"])
@pytest.mark.parametrize("mechanism", ["identity", "ordered", "hierarchical", "ordered-hierarchical"])
def test_numbers_stay_finite_whatever_the_budget(epsilon: str, mechanism: str) -> None:
    """A variance that underflows to 0 would make a noisy row count as exact."""
    domain = td.Domain(age=td.Integer(0, 99), sex=td.Categorical(["f", "m"]))
    table = td.Table({"age": [3, 4, 50], "sex": ["f", "m", "f"]}, domain)
    made = td.Session(table, td.Policy(domain, secrets=td.Full()), "1e301")
    found = made.release(td.CDF("age", by="sex"), epsilon, mechanism=mechanism)
    for name in ("value", "lower", "upper"):
        assert np.isfinite(found.columns[name]).all()
    assert found.half_width >= 0
    if epsilon != "100":  # 200 noisy rows share it there
        assert found.values[-2:] == pytest.approx([2, 1])


def test_an_interval_that_misses_everything_possible_tells_nothing() -> None:
    from tetraodon.answers import around

    told = around(np.array([[4.0]]), np.array([[40.0]]), lambda _: np.array([3.0]), 0.0, 4.0)
    assert (told.lower[0, 0], told.upper[0, 0]) == (0.0, 4.0)
