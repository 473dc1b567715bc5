"""What a report says of ρ, of public counts and of several policies, against the library's own numbers."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import epsilon
from test_report import Reader

import tetraodon as td
from tetraodon.errors import SpecificationError
from tetraodon.loss import Loss
from tetraodon.publish import publish
from tetraodon.report import render
from tetraodon.report.answers import Group
from tetraodon.report.frames import FAR, within
from tetraodon.report.losses import least, most, times, up
from tetraodon.report.reading import read
from tetraodon.report.summary import six
from tetraodon.report.tradeoff import names, tradeoff
from tetraodon.session import Request
from tetraodon.zcdp import epsilon_of

DELTA = Fraction(1, 10**6)
DOMAIN = td.Domain(
    age=td.Integer(0, 19, unit="years"),
    sex=td.Categorical(["f", "m"]),
    job=td.Categorical(["a", "b", "c"]),
)
SECRETS = {"age": td.Within(5), "sex": td.Full(), "job": td.Full()}
ROWS = {"age": np.arange(600) % 20, "sex": ["f", "m", "m"] * 200, "job": ["a", "b", "c", "b"] * 150}
KNOWN = td.MarginalConstraint("sex", answers={"f": 200, "m": 400})


def rho(amount: str) -> Loss:
    return Loss("rho", Fraction(amount))


def table() -> td.Table:
    return td.Table(ROWS, DOMAIN, name="people")


REQUESTS = [
    Request(td.CDF("age", by="sex"), rho("0.1"), "ages"),
    Request(td.Histogram("sex"), rho("0.1"), "sexes"),
    Request(td.Histogram("job"), epsilon("0.2"), "jobs"),
    Request(td.Marginals(2, of=["sex", "job"]), rho("0.1"), "pairs"),
    Request(td.Mean("age", by="sex"), rho("0.05"), "mean"),
]


def told(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(Reader(page).text))


def plain(line: str) -> str:
    return re.sub(r"<[^>]*>", "", line)


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[td.Release]]:
    """Gaussian and Laplace noise in one account, under public counts that an edge can break."""
    folder = tmp_path_factory.mktemp("tied")
    policy = td.Policy(DOMAIN, td.AttributeWise(SECRETS), constraints=[KNOWN])
    session = td.Session(table(), policy, rho=1, delta=DELTA, ledger=folder / "people.ledger")
    releases = session.release_all(REQUESTS)
    return publish(folder / "out", [(r, ("parquet",)) for r in releases], session.context), releases


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, td.Session]:
    """The same without public counts, after a release under a stricter policy."""
    folder = tmp_path_factory.mktemp("free")
    strict = td.Policy(DOMAIN, td.AttributeWise(SECRETS | {"age": td.Full()}))
    account: dict[str, Any] = {"rho": 1, "delta": DELTA, "ledger": folder / "people.ledger"}
    td.Session(table(), strict, **account).release(td.CDF("age"), rho="0.05", name="earlier")
    session = td.Session(table(), td.Policy(DOMAIN, td.AttributeWise(SECRETS)), **account)
    optimised = Request(td.Ranges("age", "all"), rho("0.1"), "ranges", td.mechanisms.Optimised())
    ordered = Request(td.CDF("age", by="sex"), rho("0.1"), "ages", td.mechanisms.Ordered())
    releases = session.release_all([ordered, optimised])
    return publish(folder / "out", [(r, ("parquet",)) for r in releases], session.context), session


@pytest.fixture(scope="module")
def tied_page(tied: tuple[Path, list[td.Release]]) -> str:
    return render(tied[0])


@pytest.fixture(scope="module")
def free_page(free: tuple[Path, td.Session]) -> str:
    return render(free[0])


def test_every_release_states_its_unit_and_amount(tied: tuple[Path, list[td.Release]]) -> None:
    spec = json.loads(tied[0].read_text())
    for entry, release in zip(spec["releases"], tied[1], strict=True):
        assert entry["spent"] == {"unit": release.spent.unit, "amount": str(entry["cost"]["value"])}
        assert Fraction(entry["spent"]["amount"]) == release.spent.amount
        assert [len(c["loss"]) for c in entry["curve"]] == [len(c["half_width"]) for c in entry["curve"]]
    assert [e["spent"]["unit"] for e in spec["releases"]] == ["rho", "rho", "epsilon", "rho", "rho"]
    budget = spec["budget"]
    assert (budget["unit"], budget["delta"], budget["elsewhere"]) == ("rho", "0.000001", "0")


def test_rho_is_read_at_delta_and_never_put_as_a_factor_of_odds(tied: tuple[Path, list[td.Release]]) -> None:
    document = read(tied[0])
    lines = {line.key: line.text for line in six(document)}
    spent = document.budget.spent
    assert spent > 0
    assert f"ε = {up(epsilon_of(spent, DELTA))}:" in plain(lines["odds"])
    assert f"at most {up(math.exp(epsilon_of(spent, DELTA)))} times" in lines["odds"]
    assert f"Once all is spent: ε = {up(epsilon_of(1, DELTA))}." in lines["odds"]
    assert "plus δ" in lines["odds"] and "e<sup>" not in lines["odds"]
    assert plain(lines["spent"]).startswith(f"ρ {most(spent)} of 1")


def test_public_counts_are_told_with_their_numbers_and_consequences(
    tied: tuple[Path, list[td.Release]], tied_page: str
) -> None:
    lines = {line.key: line.text for line in six(read(tied[0]))}
    assert "agree with the public counts (the table of sex)" in lines["odds"]
    assert "hops" not in lines["odds"] and "no number is promised" in lines["odds"]
    assert "agree with the public counts" in lines["guarantee"]
    page = told(tied_page)
    assert "The table of sex: f 200 and m 400." in page
    assert "stated as public already" not in page  # said once, with its numbers
    assert "Rule R" in page and "several records have to move together" in page
    assert "A loss of ρ holds between any two tables" in page and "a loss of epsilon" not in page
    assert (
        "costs the sum" not in page
        and "n² times" not in page
        and "values that the policy joins is" not in page
    )


def test_what_public_counts_settle_is_exact_and_says_why(
    tied: tuple[Path, list[td.Release]], tied_page: str
) -> None:
    entries = {entry.name: entry for entry in read(tied[0]).entries}
    assert entries["sexes"].loss.is_zero and entries["sexes"].settled == "all"
    assert tied[1][1].values.tolist() == [200, 400]
    # Without the public counts the same answer carries noise.
    open_policy = td.Policy(DOMAIN, td.AttributeWise(SECRETS))
    session = td.Session(table(), open_policy, rho=1, delta=DELTA)
    assert session.plan(td.Histogram("sex"), rho="0.1")[0].cost.value > 0
    assert entries["ages"].settled == "all" and entries["jobs"].settled == "none"
    article = plain(tied_page.split("<h3>sexes</h3>")[1].split("</article>")[0])
    assert "no change that agrees with the public counts alters" in article
    assert "Exact because the public counts settle it." in article


def test_what_the_policy_gives_away_is_not_put_down_to_public_counts(tmp_path: Path) -> None:
    secrets = {name: graph for name, graph in SECRETS.items() if name != "job"}
    known = td.MarginalConstraint("job", answers={"a": 150, "b": 300, "c": 150})
    policy = td.Policy(DOMAIN, td.AttributeWise(secrets), constraints=[known])
    session = td.Session(table(), policy, rho=1, delta=DELTA)
    made = session.release_all([Request(td.Histogram("job"), rho("0.1"), "jobs")])
    [entry] = read(publish(tmp_path, [(made[0], ("csv",))], session.context)).entries
    assert entry.loss.is_zero and entry.settled == "none"


def test_counts_of_what_is_no_secret_are_not_called_free_where_records_move_together(tmp_path: Path) -> None:
    """To keep the table of sex, a record that stands in for another may have any job."""
    secrets = {name: graph for name, graph in SECRETS.items() if name != "job"}
    policy = td.Policy(DOMAIN, td.AttributeWise(secrets), constraints=[KNOWN])
    session = td.Session(table(), policy, rho=1, delta=DELTA)
    made = session.release_all([Request(td.Histogram("job"), rho("0.1"), "jobs")])
    assert made[0].spent.amount == Fraction("0.1")
    page = told(render(publish(tmp_path, [(made[0], ("csv",))], session.context)))
    assert "without cost" not in page and "Not protected job" in page


def test_each_noise_is_called_by_its_law(tied: tuple[Path, list[td.Release]], tied_page: str) -> None:
    articles = dict(re.findall(r"<h3>(\w+)</h3>(.*?)</article>", tied_page, re.S))
    spec = {entry["name"]: entry for entry in json.loads(tied[0].read_text())["releases"]}
    for name, article in articles.items():
        laplace = spec[name]["spent"]["unit"] == "epsilon"
        assert ("Discrete Laplace" in article) == laplace
        assert ("Discrete Gaussian" in article) == (not laplace and name != "sexes")
        assert article.count("σ²") == (0 if laplace else len(spec[name]["noise"]))
    scale = spec["jobs"]["noise"][0]["scale"]
    assert f"scale {scale}" in articles["jobs"]
    assert "counts as ρ = ε²/2 = 1/50 = 0.02" in articles["jobs"]
    assert f"alone it reads as ε = {up(epsilon_of('0.1', DELTA))} at δ" in articles["ages"]


def test_the_trade_is_drawn_in_the_unit_of_the_release(tied: tuple[Path, list[td.Release]]) -> None:
    for entry in read(tied[0]).entries:
        traded = tradeoff(entry)
        if entry.loss.is_zero:
            assert traded is None
            continue
        assert traded is not None
        assert traded[1].startswith(f"Half-width against {entry.loss.unit},")
        chart = json.dumps(traded[0].to_dict(), ensure_ascii=False)
        assert ('"title": "ρ"' in chart) == (entry.loss.unit == "rho")
        assert ('"title": "ε"' in chart) == (entry.loss.unit == "epsilon")


def test_releases_of_two_units_share_a_table(tied_page: str, free_page: str) -> None:
    mixed, alike = (page.split("</caption>", 1)[1].split("</table>")[0] for page in (tied_page, free_page))
    assert '<th scope="col" class="n">Loss</th>' in mixed
    assert ">ρ 0.1<" in mixed and '>ε 0.2<span class="small">counts as ρ 0.02</span>' in mixed
    assert '<th scope="col" class="n">ρ</th>' in alike and ">0.1<" in alike and "counts as" not in alike


def test_all_policies_in_force_are_listed_and_the_worst_one_named(
    free: tuple[Path, td.Session], free_page: str
) -> None:
    document, session = read(free[0]), free[1]
    accounts = session.ledger.accounts
    assert [a.policy for a in document.budget.accounts] == [a.policy_hash for a in accounts]
    assert [a.largest for a in document.budget.accounts] == [a.losses.value for a in accounts]
    assert [dict(a.by_secret) for a in document.budget.accounts] == [a.losses.by_secret for a in accounts]
    assert document.budget.elsewhere == Fraction("0.05")
    page = told(free_page)
    strict, own = (a.policy_hash[:12] for a in accounts)
    assert accounts[0].losses.value > accounts[1].losses.value
    assert re.search(rf"{strict} , since row 1: ρ [^;]*; it loses most\.", page)
    assert re.search(rf"{own} , the policy of this page, since row 4: ρ [^;]*\.", page)
    assert "2 policies are in force; the one that loses most counts." in page


def test_hops_cost_their_square_in_rho(free: tuple[Path, td.Session], free_page: str) -> None:
    lines = {line.key: line.text for line in six(read(free[0]))}
    # 0 to 19 in steps of at most 5.
    assert "at most 4 hops, so up to 4² × ρ" in lines["odds"]
    page = told(free_page)
    assert "age: 0 and 19 are 4 hops apart, so that pair costs up to 4² = 16 times ρ." in page
    assert "epsilon" not in page and "n hops cost n² times ρ" in page
    assert "costs the sum" not in page and "a difference in n attributes takes n hops" in page


def test_optimised_rows_are_named(free_page: str) -> None:
    article = free_page.split("<h3>ranges</h3>")[1].split("</article>")[0]
    assert re.search(r"\d+ combinations of whole multiples of counts, σ²", article)
    assert "certified" not in article.lower()


def test_rows_over_several_attributes_belong_to_no_group(
    free: tuple[Path, td.Session], tmp_path: Path
) -> None:
    for file in free[0].parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    spec = json.loads(free[0].read_text())
    assert "in each of 2 groups" in told(render(tmp_path / "manifest.json"))
    spec["releases"][0]["noise"] = [{"rows": "kronecker", "scale": "7", "number": 38}]
    (tmp_path / "manifest.json").write_text(json.dumps(spec))
    page = told(render(tmp_path / "manifest.json"))
    assert "38 combinations of whole multiples of counts, over all attributes at once, σ² = 7" in page
    assert "in each of" not in page


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda spec: spec["budget"].update(delta=None), "delta"),
        (lambda spec: spec["budget"].update(delta="2"), "delta"),
        (lambda spec: spec["budget"].update(unit="epsilon", delta=None), "epsilon"),
        (lambda spec: spec["budget"].update(unit="sigma"), "unit"),
        (lambda spec: spec["releases"][0]["spent"].update(amount="0.01"), "cost.value"),
        (lambda spec: spec["releases"][0].update(settled_by_known_counts="most"), "settled_by_known_counts"),
        (lambda spec: spec["policy"]["spec"].update(constraints=[{"marginal": ["shoe"]}]), "shoe"),
        (lambda spec: spec["policy"]["spec"].update(order=["age"]), "order"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tied: tuple[Path, list[td.Release]], tmp_path: Path, change: Any, named: str
) -> None:
    for file in tied[0].parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    spec = json.loads(tied[0].read_text())
    change(spec)
    (tmp_path / "manifest.json").write_text(json.dumps(spec))
    with pytest.raises(SpecificationError, match=named):
        read(tmp_path / "manifest.json")


@given(st.fractions(0, 10**6).filter(bool))
def test_losses_are_never_rounded_down_nor_what_is_left_up(amount: Fraction) -> None:
    assert Fraction(most(amount).removeprefix("≈ ")) >= amount >= Fraction(least(amount).removeprefix("≈ "))


@given(st.floats(0.001, 1e9))
def test_bounds_are_rounded_up(value: float) -> None:
    assert value <= float(up(value).replace(",", "")) <= value * 1.0101


@given(st.fractions(Fraction(1, 1000), 20))
def test_a_factor_covers_its_epsilon(amount: Fraction) -> None:
    shown = times(amount, DELTA)
    found = re.fullmatch(r"10<sup>(\d+)</sup>", shown)
    value = int(found[1]) * math.log(10) if found else math.log(float(shown.replace(",", "")))
    assert value >= epsilon_of(amount, DELTA) - 1e-12


def test_an_interval_that_holds_everything_does_not_set_the_scale() -> None:
    value, upper = np.array([5.0, 0.0, 7.0]), np.array([8.0, 1000.0, 9.0])
    wild = Group("", value, np.array([2.0, 0.0, 5.0]), upper)
    [kept], note = within((wild,))
    assert kept.upper.tolist() == [8, 9, 9] and kept.lower.tolist() == [2, 0, 5]
    assert note.startswith("1 interval reaches beyond the chart")
    tame = Group("", value, value - 1, value + FAR - 1)
    assert within((tame,)) == ((tame,), "")


def test_numbers_that_public_counts_settle_are_neither_rounded_nor_given_an_error(tmp_path: Path) -> None:
    """The range is known to hold 543 records; the other end of the same chart is noisy to about a hundred."""
    known = td.CountConstraint({"age": (0, 9)}, answer=543)
    rows = {"age": [0] * 543 + [15] * 1457, "sex": ["f"] * 2000, "job": ["a"] * 2000}
    policy = td.Policy(DOMAIN, td.AttributeWise(SECRETS), constraints=[known])
    session = td.Session(td.Table(rows, DOMAIN), policy, epsilon=1)
    query = td.Ranges("age", [(0, 9), (0, 4), (12, 19)])
    made = session.release_all([Request(query, epsilon("0.1"), "ranges")])
    page = render(publish(tmp_path, [(made[0], ("csv",))], session.context))
    assert made[0].values[0] == 543 and made[0].spent.amount == Fraction("0.1")
    assert re.search(r"<text[^>]*>543</text>", page)
    assert "Numbers without an interval are settled by public counts." in page
    odds = next(line.text for line in six(read(tmp_path / "manifest.json")) if line.key == "odds")
    assert "(the number of records with age from 0 to 9)" in odds and "1.11 (e<sup>0.1</sup>)" in odds
    assert "The number of records with age from 0 to 9: 543." in told(page)


def test_mechanisms_of_one_kind_go_by_what_tells_them_apart(tied: tuple[Path, list[td.Release]]) -> None:
    entry = next(e for e in read(tied[0]).entries if e.name == "pairs")
    shown = names(entry.considered)
    assert len(set(shown)) == len(shown) and not any("…" in name for name in shown)
