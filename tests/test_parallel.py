"""Releases about different people, accounts in ρ and several policies, through sessions."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.errors import BudgetError, PolicyError, SpecificationError
from tetraodon.ledger import Ledger, verify
from tetraodon.planning import ledger_text, ledger_told
from tetraodon.zcdp import epsilon_of

DOMAIN = td.Domain(
    region=td.Categorical(["n", "s"], other="elsewhere"),
    year=td.Integer(2020, 2039, step=10),
    sex=td.Categorical(["f", "m"]),
    age=td.Integer(0, 9, missing="public"),
)
SECRETS = td.AttributeWise(sex=td.Full(), age=td.Within(2))
ROWS = {
    "region": ["n", "s", "s", "x", "n", "s"],
    "year": [2020, 2021, 2030, 2039, 2025, 2031],
    "sex": list("ffmfmm"),
    "age": [1, 2, None, 4, 5, 9],
}


def session(secrets: Any = SECRETS, constraints: Any = (), **more: Any) -> td.Session:
    policy = td.Policy(DOMAIN, secrets, constraints=constraints)
    return td.Session(td.Table(ROWS, DOMAIN), policy, **({"epsilon": 1} | more))


def test_parts_are_charged_once() -> None:
    made = session()
    parts = made.split(by="region")
    assert list(parts) == ["n", "s", "elsewhere"]
    for value, part in parts.items():
        assert part.plan(td.CDF("age"), epsilon="0.5")[0].cost.value == Fraction(1, 2)
        found = part.release(td.CDF("age"), epsilon="0.5")
        assert found.name == f"cdf-age-region={value}"
    assert made.ledger.spent == Fraction(1, 2) and made.remaining.epsilon == Fraction(1, 2)
    parts["n"].release(td.Histogram("sex"), epsilon="0.5", name="sexes")
    parts["n"].release(td.CDF("age"), epsilon="0.25", name="again")
    assert {v: p.remaining.amount for v, p in parts.items()} == {
        "n": Fraction(1, 4),
        "s": Fraction(1, 2),
        "elsewhere": Fraction(1, 2),
    }
    with pytest.raises(BudgetError, match=r"0\.25 of 1 is left"):
        parts["n"].release(td.CDF("age"), epsilon="0.5", name="more")
    made.split(by="region")["s"].release(td.CDF("age"), epsilon="0.5", name="more")
    assert made.ledger.spent == 1  # changes of age in the south
    with pytest.raises(
        BudgetError, match=r"'everybody' asks for epsilon 0\.25 for changes of age; 0 of 1 is left"
    ):
        made.release(td.CDF("age"), epsilon="0.25", name="everybody")
    assert "region = n" in repr(parts["n"])


def test_parts_hold_the_records_of_their_value() -> None:
    """At ε = 2000 noise is 0 with all but negligible probability."""
    made = session(epsilon=2000)
    counts = {
        v: p.release(td.Histogram("sex"), epsilon=2000).values for v, p in made.split(by="region").items()
    }
    assert {v: np.ravel(c).tolist() for v, c in counts.items()} == {
        "n": [1, 1],
        "s": [1, 2],
        "elsewhere": [1, 0],
    }
    made = session(epsilon=2000)
    steps = {v: p.release(td.Histogram("sex"), epsilon=2000).values for v, p in made.split(by="year").items()}
    assert {v: np.ravel(c).tolist() for v, c in steps.items()} == {2020: [2, 1], 2030: [1, 2]}


def test_filters_of_the_query_are_kept() -> None:
    part = session(epsilon=2000).split(by="region")["s"]
    found = part.release(td.Histogram("sex", where={"year": [2030]}), epsilon=2000)
    assert np.ravel(found.values).tolist() == [0, 2]
    with pytest.raises(SpecificationError, match="the query filters region itself"):
        part.plan(td.Histogram("sex", where={"region": ["n"]}), epsilon=1)
    with pytest.raises(SpecificationError, match="a query such as"):
        part.plan("sex", epsilon=1)  # type: ignore[arg-type]


def test_an_attribute_that_an_edge_changes_does_not_split() -> None:
    with pytest.raises(PolicyError, match=r"\(sex = f\) – \(sex = m\) is a secret pair under policy"):
        session().split(by="sex")
    with pytest.raises(PolicyError, match=r"\(region = n\) – \(region = s\) is a secret pair"):
        session(td.Full()).split(by="region")
    flat = td.Edges([(("n", 2020, "f", 1), ("n", 2030, "f", 1))])
    assert list(session(flat).split(by="region")) == ["n", "s", "elsewhere"]
    with pytest.raises(PolicyError, match=r"\(year = 2020–2029\) – \(year = 2030–2039\)"):
        session(flat).split(by="year")
    with pytest.raises(SpecificationError, match="no attribute 'height'"):
        session().split(by="height")


def test_known_counts_that_an_edge_breaks_do_not_split() -> None:
    """Totals by sex known where sex is a secret: a record of another part may have to change back."""
    known = td.MarginalConstraint("sex", answers={"f": 3, "m": 3})
    with pytest.raises(
        PolicyError, match=r"the table of sex is known .* pair \(sex = f\) – \(sex = m\) changes it"
    ):
        session(constraints=[known]).split(by="region")
    with pytest.raises(PolicyError, match=r"\(region = n\) – \(region = s\)"):
        session(td.Full(), [known]).split(by="region")
    count = td.CountConstraint({"age": (0, 4)}, answer=3)
    with pytest.raises(
        PolicyError, match=r"age from 0 to 4 is known .*\(age = 3\) – \(age = 5\)|\(age = 4\) – \(age = 5\)"
    ):
        session(constraints=[count]).split(by="region")


def test_totals_of_the_graphs_own_components_are_free() -> None:
    """No edge changes them, so knowing them costs nothing and parts stay apart."""
    known = td.MarginalConstraint("region", answers={"n": 2, "s": 3, "elsewhere": 1})
    made = session(constraints=[known])
    for part in made.split(by="region").values():
        part.release(td.CDF("age"), epsilon=1)
    assert made.ledger.spent == 1
    made = session(
        td.AttributeWise(age=td.Partition(blocks=2)), [td.CountConstraint({"age": (0, 4)}, answer=3)]
    )
    for part in made.split(by="sex").values():
        part.release(td.CDF("age"), epsilon=1)
    assert made.ledger.spent == 1


def test_a_policy_declared_meanwhile_ends_the_split(tmp_path: Path) -> None:
    """Parts are checked against every policy in force; releases that were made stay priced under the new one."""
    path = tmp_path / "a.ledger"
    made = session(ledger=path, epsilon=4)
    part = made.split(by="region")["n"]
    session(td.AttributeWise(region=td.Full(), sex=td.Full(), age=td.Within(2)), ledger=path, epsilon=4)
    with pytest.raises(PolicyError, match=r"\(region = n\) – \(region = s\)"):
        made.split(by="region")
    with pytest.raises(PolicyError, match="published 'cdf-age' exactly in part"):
        part.release(td.CDF("age"), epsilon="0.5")  # its total is free under the first policy only
    assert made.ledger.spent == 0


def test_accounts_in_rho(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    made = session(epsilon=None, rho="0.5", delta="1e-6", ledger=path)
    made.release(td.CDF("age"), rho="0.25")
    made.release(td.CDF("age"), epsilon="0.5", name="laplace")
    assert made.ledger.spent == Fraction(1, 4) + Fraction(1, 8)
    assert (made.remaining.rho, made.remaining.epsilon) == (Fraction(1, 8), None)
    assert str(made.remaining).startswith("rho 0.125 left")
    with pytest.raises(BudgetError, match=r"asks for rho 0\.25; 0\.125 of 0\.5 is left"):
        made.release(td.CDF("age"), rho="0.25", name="more")
    told = json.loads(made.release(td.Histogram("sex"), rho="0.01").save(tmp_path / "out").read_text())[
        "budget"
    ]
    assert (told["unit"], told["delta"], told["total"]) == ("rho", "0.000001", "0.5")
    assert verify(path).ok


def test_a_ledger_in_words_and_in_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    made = session(epsilon=None, rho="0.5", delta="1e-6", ledger=path)
    made.release(td.CDF("age"), rho="0.125")
    made.release(td.Histogram("sex"), epsilon="0.1")
    session(td.AttributeWise(age=td.Within(3)), epsilon=None, rho="0.5", delta="1e-6", ledger=path)
    told = ledger_told(Ledger.read(path))
    assert (told["unit"], told["total"], told["delta"]) == ("rho", "0.5", "0.000001")
    assert told["epsilon"]["total"] >= epsilon_of("0.5", "1e-6") > told["epsilon"]["total"] - 0.001
    first, second = told["policies"]
    assert first["loss"] == {"age": "0.125", "sex": "0.005"} and first["largest"] == "0.125"
    assert list(second["loss"]) == ["age"] and (second["row"], second["all_known_counts"]) == (6, False)
    assert [row["kind"] for row in told["rows"]] == [
        "created",
        "charge",
        "published",
        "charge",
        "published",
        "policy",
    ]
    text = ledger_text(Ledger.read(path))
    assert "with delta 0.000001: epsilon" in text and "in force since row 1: sex 0.005, age 0.125" in text
    assert text.count("in force since row") == 2 and "histogram-sex: epsilon 0.1" in text


def test_an_account_in_epsilon_has_no_gaussian_releases() -> None:
    with pytest.raises(BudgetError, match=r"asks for rho 0\.25, but the budget is in epsilon"):
        session().release(td.CDF("age"), rho="0.25")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"epsilon": None}, "state the total as epsilon, or as rho and delta"),
        ({"epsilon": 1, "rho": 1, "delta": "0.1"}, "state the total as epsilon, or as rho and delta"),
        ({"epsilon": None, "rho": 1}, "delta: goes with rho, which needs one"),
        ({"epsilon": 1, "delta": "0.1"}, "delta: goes with rho"),
        ({"epsilon": None, "rho": 1, "delta": 1}, "delta: must be below 1"),
        ({"epsilon": None, "rho": 0, "delta": "0.1"}, "rho: must be above 0"),
        ({"epsilon": None, "rho": 1, "delta": float("nan")}, "delta: must be finite"),
    ],
)
def test_totals_of_the_wrong_kind(told: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        session(**told)


def test_releases_under_known_counts_can_be_priced_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    known = td.MarginalConstraint("sex", answers={"f": 3, "m": 3})
    made = session(constraints=[known], epsilon=None, rho=100, delta="1e-6", ledger=path)
    for query in (td.CDF("age"), td.Histogram("age"), td.Sum("age", by="sex")):
        made.release(query, epsilon="0.5")
        made.release(query, rho="0.5", name=f"{query.title} gaussian")
    assert verify(path).ok and made.ledger.spent <= 3 * (Fraction(1, 2) + Fraction(1, 8))
    session(
        epsilon=None, rho=100, delta="1e-6", ledger=path
    )  # without the known count: still in force with it
    accounts = made.ledger.accounts
    assert len(accounts) == 2 and made.ledger.spent == accounts[0].losses.value >= accounts[1].losses.value


def test_every_mechanism_can_be_priced_anew(tmp_path: Path) -> None:
    """What the ledger keeps of a release prices it, under its own policy and under a wider one, to the charge itself."""
    path = tmp_path / "a.ledger"
    wide = td.AttributeWise(sex=td.Full(), age=td.Within(2), year=td.Full(), region=td.Full())
    made = session(wide, epsilon=100, ledger=path)
    names = [
        "identity",
        "ordered",
        {"hierarchical": {"fanout": 2}},
        {"ordered-hierarchical": {"fanout": 2, "block": 3}},
    ]
    for i, name in enumerate(names):
        made.release(td.CDF("age", by="sex"), epsilon=1, mechanism=name, name=f"cdf {i}")
    for query in (
        td.Ranges("age"),
        td.Sum("age"),
        td.Mean("age", by="region"),
        td.Linear([[1, -1, 3]], "region"),
        td.Marginals(2),
    ):
        made.release(query, epsilon=1)
    assert verify(path).ok
    entries = made.ledger.entries
    session(td.Full(), epsilon=100, ledger=path)  # the same history under another graph
    accounts = made.ledger.accounts
    assert len(accounts) == 2 and accounts[0].losses.value < 9
    assert accounts[1].losses.value >= accounts[0].losses.value
    assert made.ledger.entries[: len(entries)] == entries and verify(path).ok
