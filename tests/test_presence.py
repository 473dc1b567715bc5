"""Secret presence from plan to page: totals are noised, never used, and never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.cli import main
from tetraodon.pricing import most_counted

DOMAIN = td.Domain(age=td.Integer(0, 9), reg=td.Categorical(["n", "s"]))
ROWS = {"age": [3, 3, 4, 9, 0] * 40, "reg": ["n", "s", "s", "n", "s"] * 40}
QUERIES = [
    td.Histogram("reg"), td.Histogram("age", "reg"), td.CDF("age", by="reg"), td.Ranges("age", by="reg"),
    td.Quantiles("age"), td.Sum("age"), td.Mean("age", by="reg"), td.Marginals(2), td.KMeans("age", k=2, records=200),
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.title)
@pytest.mark.parametrize("loss", [{"epsilon": 100}, {"rho": 1000}], ids=["laplace", "gauss"])
def test_every_answer_comes_without_the_number_of_records(query: Any, loss: Any, tmp_path: Path) -> None:
    policy = td.Policy(DOMAIN, td.AttributeWise(age=td.Within(1)), presence="secret")
    more = {} if "epsilon" in loss else {"delta": "1e-9"}
    session = td.Session(td.Table(ROWS, DOMAIN), policy, **loss, **more)
    made = session.release(query, **loss)
    assert made.total is None and not made.disclosures() and not made.spent.is_zero
    told = json.loads(made.save(tmp_path).read_text(encoding="utf-8"))
    assert told["data"]["records"] is None and told["releases"][0]["records"] is None
    numbers = made.to_frame()[["value", "lower", "upper"]].to_numpy()
    assert np.isfinite(numbers).all()
    assert (numbers[:, 1] <= numbers[:, 0]).all() and (numbers[:, 0] <= numbers[:, 2]).all()


def test_with_a_large_budget_answers_come_near_the_truth() -> None:
    policy = td.Policy(DOMAIN, td.AttributeWise(age=td.Within(1)), presence="secret")
    session = td.Session(td.Table(ROWS, DOMAIN), policy, epsilon=10**6)
    assert session.release(td.Histogram("reg"), epsilon=10**5).values.tolist() == [80.0, 120.0]
    assert session.release(td.Sum("age"), epsilon=10**5).values.tolist() == [760.0]
    assert session.release(td.Mean("age"), epsilon=10**5).values.round(3).tolist() == [3.8]


def test_whatever_auto_chooses_can_be_released() -> None:
    """Rows have to stay exact for any number of records, which nobody may know."""
    secrets = td.AttributeWise(age=td.Within(1), reg=td.Full())
    session = td.Session(
        td.Table(ROWS, DOMAIN), td.Policy(DOMAIN, secrets, presence="secret"), rho=99, delta="1e-9"
    )
    for query in (td.CDF("age", by="reg"), td.Ranges("age", by="reg")):
        best = session.plan(query, rho=1)[0]
        assert session.release(query, rho=1).mechanism == best.mechanism
    wide = td.Domain(pay=td.Integer(0, 10**6))
    policy = td.Policy(wide, td.Full(), presence="secret")
    assert most_counted(policy) == 2**36
    assert (
        td.Session(td.Table({"pay": [5, 10**6]}, wide), policy, epsilon=9)
        .release(td.Sum("pay"), epsilon=1)
        .total
        is None
    )


SETTINGS = """
[data]
source = "people.parquet"
[domain.age]
integer = [0, 9]
[policy]
presence = "secret"
[policy.secrets]
age = { within = 1 }
[budget]
epsilon = 3
[[release]]
name = "total"
epsilon = 1
query = { sum = "age" }
[[release]]
name = "ages"
epsilon = 1
query = { cdf = "age" }
"""


def test_the_page_says_what_is_secret_and_which_change_costs_most(tmp_path: Path, capsys: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(ROWS), tmp_path / "people.parquet")
    path = tmp_path / "release.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        main(["release", str(path)])
    assert end.value.code == 0
    page = (tmp_path / "published" / "report.html").read_text(encoding="utf-8")
    assert "Also secret: whether somebody is in the table at all" in page
    assert "A record with age 9 that is there or is not" in page
    assert "200 records" not in page + capsys.readouterr().out
