"""Rows of people with weights, several rows and secret presence: what leaves beside them, and what adds up, for less than it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tetraodon as td
from tetraodon.errors import SpecificationError

ROWS = td.Rows(["age"], channel={"kind": "randomised-response"})
DOMAIN = td.Domain(age=td.Integer(0, 3), region=td.Categorical(["n", "s"]))
RECORDS = {"age": [1, 2, 2], "region": ["n", "s", "s"]}


def manifest_of(made: Any, folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(made.save(folder).read_text(encoding="utf-8"))
    return told


@pytest.mark.parametrize("weights", ["secret", "public"])
def test_rows_go_out_with_their_number_and_not_with_the_sum_of_weights(weights: str, tmp_path: Path) -> None:
    """Rows know no weights: two tables that differ in one weight say the same."""
    told = []
    for last in (7, 8):
        people = {"weight": "w", "weight_bounds": (0, 10), "weights": weights}
        table = td.Table({**RECORDS, "w": [1, 5, last]}, DOMAIN, **people)  # type: ignore[arg-type]
        session = td.Session(table, td.Policy(DOMAIN, td.Full()), epsilon=2)
        made = manifest_of(session.release(ROWS, epsilon=2), tmp_path / str(last))
        told.append((made["data"]["records"], made["releases"][0]["records"]))
    assert told == [(3, 3), (3, 3)]


@pytest.mark.parametrize(
    "query",
    [td.Sum("age"), td.Linear([[1, 0, 0, 0]], "age"), td.Histogram("age", where={"region": ["n"]})],
    ids=lambda q: q.word,
)
def test_no_policy_hides_presence_once_the_number_of_records_went_out(query: Any, tmp_path: Path) -> None:
    """The manifest says n under public presence, whether or not the mechanism observes it."""
    secrets = td.AttributeWise(age=td.Full(), region=td.Full())

    def session(presence: str) -> td.Session:
        policy = td.Policy(DOMAIN, secrets, presence=presence)
        return td.Session(td.Table(RECORDS, DOMAIN), policy, epsilon=9, ledger=tmp_path / "l.ledger")

    made = session("public").release(query, epsilon=1)
    assert manifest_of(made, tmp_path / "out")["data"]["records"] == 3
    with pytest.raises(td.errors.PolicyError, match="number of records"):
        session("secret")
    assert session("public").ledger.spent == 1


STAYS = {
    "who": ["a", "a", "b", "b"],
    "visit": [1, 2, 1, 2],
    "kind": ["x", "y", "x", "y"],
    "age": [1, 2, 1, 2],
    "region": ["n", "s", "n", "s"],
}


@pytest.mark.parametrize(
    "first, second",
    [
        (td.Histogram("age", where={"region": ["n"]}), td.Histogram("age", where={"region": ["s"]})),
        (td.Histogram("age"), td.Histogram("region")),
    ],
    ids=["other regions", "other attributes"],
)
def test_releases_that_see_other_rows_of_the_same_people_add_up(
    first: Any, second: Any, tmp_path: Path
) -> None:
    """One person's row of kind x is in the north and hers of kind y in the south; both may change, each in what it likes."""
    secrets = td.AttributeWise(age=td.Full())
    if not first.to_spec().get("where"):
        secrets = td.AttributeWise(age=td.Full(), region=td.Full())

    def released(kind: str, query: Any) -> td.Session:
        people = {"id": "who", "max_rows_per_id": 1, "keep_by": "visit", "row_counts": "public"}
        table = td.Table(STAYS, DOMAIN, name="stays", where={"kind": [kind]}, **people)  # type: ignore[arg-type]
        session = td.Session(table, td.Policy(DOMAIN, secrets), epsilon=9, ledger=tmp_path / "l.ledger")
        session.release(query, epsilon=1, name=kind)
        return session

    released("x", first)
    assert released("y", second).ledger.spent == 2


def test_several_rows_of_a_person_may_change_in_another_attribute_in_every_edition(tmp_path: Path) -> None:
    """Of an account of one policy, whose losses are read off its rows."""
    policy = td.Policy(DOMAIN, td.AttributeWise(age=td.Full(), region=td.Full()))
    people = {"id": "who", "max_rows_per_id": 2, "keep_by": "visit", "row_counts": "public"}
    for edition, query, spent in (("2025", td.Histogram("age"), 1), ("2026", td.Histogram("region"), 2)):
        table = td.Table(STAYS, DOMAIN, name="stays", edition=edition, **people)  # type: ignore[arg-type]
        session = td.Session(table, policy, epsilon=9, ledger=tmp_path / "l.ledger")
        session.release(query, epsilon=1)
        assert session.ledger.spent == spent


def test_two_queries_may_put_one_record_into_two_cells(tmp_path: Path) -> None:
    """``sql`` says itself what a row is, so releases through two of them add up, though each filters another region."""
    import duckdb

    file = tmp_path / "a.duckdb"
    with duckdb.connect(str(file)) as held:
        held.execute("create table t as select 3 as age, 'n' as home, 's' as work")
    domain = td.Domain(age=td.Integer(0, 9), reg=td.Categorical(["n", "s"]))
    policy, ledger = td.Policy(domain, td.Within(1, on="age")), tmp_path / "a.ledger"
    for column, reg in (("home", "n"), ("work", "s")):
        sql = f"select age, {column} as reg from t"
        session = td.Session(
            td.Table(f"duckdb://{file}", domain, name="a", sql=sql), policy, epsilon=9, ledger=ledger
        )
        session.release(td.Histogram("age", where={"reg": [reg]}), epsilon=1, name=column)
    assert session.ledger.spent == 2
    hidden = "select * from query('select age, home as reg from t where random() < 0.5')"
    with pytest.raises(SpecificationError, match="sql: exactly one SELECT"):
        td.Table(f"duckdb://{file}", domain, sql=hidden)


def test_sums_of_weights_are_not_called_numbers_of_records(tmp_path: Path) -> None:
    domain = td.Domain(age=td.Integer(0, 9), reg=td.Categorical(["n", "s"]))
    rows = {"age": [3, 4], "reg": ["n", "s"], "w": [7, 5]}
    table = td.Table(rows, domain, weight="w", weight_bounds=(0, 9), weights="public")
    made = td.Session(table, td.Policy(domain, td.Within(1, on="age")), epsilon=9).release(
        td.CDF("age", by="reg"), epsilon=1
    )
    assert made.disclosures() == ["the sum of weights for every reg"] and made.records is None
    assert json.loads(made.save(tmp_path).read_text())["data"]["records"] is None
