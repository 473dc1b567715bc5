"""``Marginals`` end to end: planned, charged, drawn, consistent, possible, published, reported."""

from __future__ import annotations

import itertools
import json
import re
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import tetraodon as td
from tetraodon.cli import main
from tetraodon.errors import SpecificationError
from tetraodon.loss import Loss
from tetraodon.marginals.answers import TableAnswers, table_answers
from tetraodon.marginals.asked import ask
from tetraodon.marginals.mechanism import Tables
from tetraodon.marginals.residuals import summed
from tetraodon.marginals.select import price
from tetraodon.mechanisms.strategy import Noisy
from tetraodon.noise import reserve

SOURCE = resources.files("tetraodon").joinpath("data", "adult.parquet")
RACES = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]


def adult() -> td.Domain:
    return td.Domain(
        age=td.Integer(17, 90),
        sex=td.Categorical(["Female", "Male"]),
        race=td.Categorical(RACES),
        education_num=td.Integer(1, 16),
        income=td.Categorical(["<=50K", ">50K"]),
    )


@pytest.fixture(scope="module")
def session() -> td.Session:
    domain = adult()
    secrets = td.AttributeWise(age=td.Within(5), education_num=td.Full(), income=td.Full())
    return td.Session(td.Table(str(SOURCE), domain), td.Policy(domain, secrets), epsilon=100)


@pytest.fixture(scope="module")
def released(session: td.Session) -> td.Release:
    return session.release(td.Marginals(2, bins={"age": 10}), epsilon=1, name="pairs")


def true_tables(domain: td.Domain, query: Any) -> dict[tuple[str, ...], Any]:
    asked = ask(query, domain)
    counts = td.Table(str(SOURCE), domain).counts(*asked.domain.names)
    return {asked.names(t): v for t, v in asked.tabulate(counts, asked.tables).items()}


def test_tables_agree_wherever_they_speak_of_the_same_counts(released: td.Release) -> None:
    assert len(released.tables) == 10
    for name in ("age", "sex", "race", "education_num", "income"):
        sums = [
            f.groupby(name, sort=False)["value"].sum().to_numpy()
            for t, f in released.tables.items()
            if name in t
        ]
        assert len(sums) == 4
        for one, other in itertools.pairwise(sums):
            assert one == pytest.approx(other, abs=1e-3)
    for frame in released.tables.values():
        assert frame["value"].sum() == pytest.approx(48842, abs=1e-3)
        assert frame["value"].min() >= 0
        assert (frame["lower"] <= frame["value"]).all() and (frame["value"] <= frame["upper"]).all()


def test_unprotected_tables_are_exact_and_named(released: td.Release) -> None:
    true = true_tables(adult(), td.Marginals(2, bins={"age": 10}))
    frame = released.tables["sex", "race"]
    assert frame["value"].tolist() == true["sex", "race"].ravel().tolist()
    assert (frame["lower"] == frame["upper"]).all()
    assert released.disclosures() == ["the number of records for every sex, race"]
    for frame in released.tables.values():
        if "race" in frame:
            told = frame.groupby("race", sort=False)["value"].sum()
            assert told.to_numpy() == pytest.approx(true["sex", "race"].sum(axis=0), abs=1e-3)


def test_the_plan_has_a_row_for_every_choice(session: td.Session) -> None:
    plan = session.plan(td.Marginals(2, bins={"age": 10}), epsilon=1)
    assert {row.mechanism for row in plan} >= {Tables(), Tables("asked", "equal"), Tables("joint")}
    assert [row.expected_error for row in plan] == sorted(row.expected_error for row in plan)
    assert all(row.cost.value == 1 for row in plan)
    assert "the tables asked for" in repr(plan) and "every cell of every table" in repr(plan)
    gaussian = session.plan(td.Marginals(2, bins={"age": 10}), rho="1/2")
    assert gaussian[0].cost.value == Fraction(1, 2)


def test_intervals_and_errors_hold_over_many_draws() -> None:
    """Unbiased linear estimates of the stated variance; intervals that hold at least as often as they say."""
    domain = adult()
    policy = td.Policy(domain, td.AttributeWise())
    query = td.Marginals([("sex", "income"), ("income", "race"), ("sex",)])
    asked = ask(query, domain)
    counts = td.Table(str(SOURCE), domain).counts(*asked.domain.names)
    for loss in (Loss("epsilon", Fraction(1, 10)), Loss("rho", Fraction(1, 100))):
        strategy = price(Tables(), asked, policy.neighbourhood, loss)
        true = strategy.tabulate(counts)
        told = asked.tabulate(counts, asked.tables)
        squares = dict.fromkeys(asked.tables, 0.0)
        held = total = 0
        rounds = 400
        draws = [(s, n * rounds) for s, n in strategy.draws]
        made = reserve([], gaussian=draws) if strategy.is_gaussian else reserve(draws)
        with made as noise:
            for _ in range(rounds):
                found = table_answers(strategy, strategy.observe(true, counts.total, noise))
                for t in asked.tables:
                    squares[t] += float(((found.linear[t] - told[t]) ** 2).mean()) / rounds
                    _, low, high = found.tables[t]
                    held += int(((low <= told[t]) & (told[t] <= high)).sum())
                    total += told[t].size
        for t in asked.tables:
            # 400 draws of a few cells: about 10 % of spread, five standard deviations allowed.
            assert squares[t] == pytest.approx(strategy.table_variances[t], rel=0.5)
        assert held / total > 0.93


def test_agreement_lowers_the_error_of_what_was_measured(session: td.Session) -> None:
    domain = adult()
    asked = ask(td.Marginals(2), domain)
    hood = td.Policy(domain, td.AttributeWise()).neighbourhood
    strategy = price(Tables(), asked, hood, Loss("epsilon", Fraction(1)))
    for table, variance in strategy.table_variances.items():
        assert variance < strategy.variances.get(table, np.inf)


def test_the_published_file_is_one_long_table(released: td.Release, tmp_path: Path) -> None:
    released.save(tmp_path, ("parquet", "csv"))
    names = ["table", "age", "sex", "race", "education_num", "income", "value", "lower", "upper"]
    for told in (pq.read_table(tmp_path / "pairs.parquet"), csv.read_csv(tmp_path / "pairs.csv")):
        assert told.column_names == names
        assert told.num_rows == sum(len(f) for f in released.tables.values())
    long = pq.read_table(tmp_path / "pairs.parquet").to_pandas()
    for attributes, frame in released.tables.items():
        part = long[long["table"] == " by ".join(attributes)]
        assert part["value"].tolist() == frame["value"].tolist()
        for name in names[1:6]:
            if name in attributes:
                assert (
                    part[name].astype(str).str.removesuffix(".0").tolist() == frame[name].astype(str).tolist()
                )
            else:
                assert part[name].isna().all()
    entry = json.loads((tmp_path / "manifest.json").read_text())["releases"][0]
    assert [t["attributes"] for t in entry["tables"]] == [list(t) for t in released.tables]
    assert sum(t["rows"] * t["expected_error"] for t in entry["tables"]) / entry["rows"] == pytest.approx(
        released.expected_error
    )


def test_what_tables_cannot_do_is_refused_by_name(session: td.Session, released: td.Release) -> None:
    with pytest.raises(SpecificationError, match="only for a CDF"):
        released.range(17, 20)
    with pytest.raises(SpecificationError, match="mechanism 'tables': for Marginals"):
        session.release(td.Histogram("sex"), epsilon=1, mechanism="tables")
    with pytest.raises(SpecificationError, match="not for Marginals"):
        session.release(td.Marginals(1), epsilon=1, mechanism="ordered")
    one = session.release(td.CDF("age"), epsilon=1)
    with pytest.raises(SpecificationError, match="only for Marginals"):
        _ = one.tables


def test_the_example_of_the_documents_runs() -> None:
    text = (Path(__file__).parent.parent / "docs" / "marginals.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "marginals.md", "exec"), names)
    assert set(names["made"].tables) == {("age", "sex"), ("age", "city"), ("sex", "city")}


def test_exact_tables_need_no_budget(session: td.Session) -> None:
    before = session.remaining.epsilon
    free = session.release(td.Marginals([("sex", "race"), ("race",)]), epsilon=1, name="free")
    assert session.remaining.epsilon == before and free.epsilon == 0 and free.half_width == 0
    assert free.tables["race",]["value"].sum() == 48842


def test_a_public_table_is_held() -> None:
    domain = td.Domain(a=td.Integer(0, 2), b=td.Integer(0, 2), c=td.Integer(0, 1))
    known = td.MarginalConstraint("a", "b", answers=[3, 0, 1, 0, 2, 0, 1, 1, 2])
    policy = td.Policy(domain, td.AttributeWise(), constraints=[known])
    cells = [
        (a, b)
        for a, row in enumerate([[3, 0, 1], [0, 2, 0], [1, 1, 2]])
        for b, n in enumerate(row)
        for _ in range(n)
    ]
    data = {"a": [a for a, _ in cells], "b": [b for _, b in cells], "c": [i % 2 for i in range(len(cells))]}
    session = td.Session(td.Table(data, domain), policy, epsilon=1)
    made = session.release(td.Marginals(2), epsilon=1)
    assert made.tables["a", "b"]["value"].tolist() == [3, 0, 1, 0, 2, 0, 1, 1, 2]
    assert made.tables["a", "c"].groupby("a")["value"].sum().tolist() == pytest.approx([4, 2, 4], abs=1e-3)
    assert made.spent.amount == 1


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return int(end.value.code or 0)


def test_settings_and_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "release.toml"
    path.write_text(f"""
[data]
source = {json.dumps(str(SOURCE))}
[domain]
age = {{ integer = [17, 90] }}
sex = {{ categorical = ["Female", "Male"] }}
race = {{ categorical = {json.dumps(RACES)} }}
[policy]
secrets = "attribute-wise"
[budget]
epsilon = 2
[[release]]
name = "tables"
epsilon = 1
query = {{ marginals = [["age", "sex"], ["race"]], bins = {{ age = 10 }}, where = {{ age = {{ between = [27, 66] }} }} }}
present = {{ format = ["csv"] }}
[[release]]
name = "pairs"
epsilon = "1/2"
query = {{ marginals = 2, of = ["sex", "race", "age"], bins = {{ age = 10 }} }}
mechanism = {{ tables = {{ measured = "asked", budget = "equal" }} }}
""")
    assert run("plan", path) == 0
    told = capfd.readouterr().out
    assert "the tables asked for" in told and "it fits" in told
    assert run("release", path) == 0
    folder = tmp_path / "published"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "By table" in page and "age and sex" in page and "2 tables: age and sex; race" in page
    assert csv.read_csv(folder / "tables.csv").num_rows == 4 * 2 + 5
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["releases"][1]["mechanism_name"] == "the tables asked for, equal budgets"


def test_wrong_settings_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "release.toml"
    path.write_text(f"""
data = {{ source = {json.dumps(str(SOURCE))} }}
domain = {{ sex = {{ categorical = ["Female", "Male"] }} }}
policy = {{ secrets = "full" }}
budget = {{ epsilon = 1 }}
release = [ {{ name = "x", epsilon = 1, query = {{ marginals = [["sexes"]] }} }} ]
""")
    assert run("plan", path) == 2
    told = capfd.readouterr().err
    assert "releases.x" in told and "no attribute 'sexes'" in told and "Did you mean 'sex'" in told


def test_what_is_published_depends_on_noisy_values_alone(session: td.Session) -> None:
    domain = adult()
    asked = ask(td.Marginals([("sex", "income"), ("income",)]), domain)
    strategy = price(
        Tables(), asked, td.Policy(domain, td.AttributeWise()).neighbourhood, Loss("epsilon", Fraction(1))
    )
    noisy = Noisy(
        tuple(np.full([asked.shape[i] for i in p.table], -5.0) for p in strategy.parts if not p.exact), 10
    )
    values = (np.array(10.0), *noisy.values)
    one = table_answers(strategy, Noisy(values, 10))
    assert isinstance(one, TableAnswers)
    # Far below what is possible: the nearest possible tables, and intervals that hold them.
    for table, (value, low, high) in one.tables.items():
        assert value.min() >= 0 and value.sum() == pytest.approx(10, abs=1e-3)
        assert (low <= value).all() and (value <= high).all() and high.max() <= 10
        assert summed(value, table, ()) == pytest.approx(10, abs=1e-3)


def test_intervals_are_those_of_the_linear_estimate(session: td.Session) -> None:
    domain = adult()
    asked = ask(td.Marginals([("sex", "income"), ("race", "income")]), domain)
    hood = td.Policy(domain, td.AttributeWise()).neighbourhood
    strategy = price(Tables(), asked, hood, Loss("epsilon", Fraction(1, 20)))
    random = np.random.default_rng(3)
    drawn = [
        random.normal(30, 60, [asked.shape[i] for i in p.table]).round()
        for p in strategy.parts
        if not p.exact
    ]
    found = table_answers(strategy, Noisy((np.array(100.0), *drawn), 100))
    moved = 0
    for table, (value, low, high) in found.tables.items():
        half, linear = strategy.half_width_of(table), found.linear[table]
        inside = (linear + half >= 0) & (linear - half <= 100)
        assert (low == np.minimum(np.where(inside, np.clip(linear - half, 0, 100), 0), value)).all()
        assert (high == np.maximum(np.where(inside, np.clip(linear + half, 0, 100), 100), value)).all()
        moved += int((np.abs(linear - value) > 1).sum())
    assert moved > 0


def test_a_filter_on_a_secret_leaves_the_total_unknown(session: td.Session) -> None:
    made = session.release(
        td.Marginals(2, of=["age", "education_num", "income"], where={"age": (60, 90)}),
        epsilon="1/10",
        name="old",
    )
    assert made.disclosures() == []
    totals = [frame["value"].sum() for frame in made.tables.values()]
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-6)
    assert all(frame["value"].min() >= 0 for frame in made.tables.values())
    assert list(made.tables["age", "income"]["age"].unique()) == list(range(60, 91))
