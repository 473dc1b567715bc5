"""Domains of nearly 2^63 cells and of more: what looks at some attributes works on every engine, what needs all is refused by name."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened import ENGINES

import tetraodon as td
from tetraodon import Categorical, Domain, Integer, Numeric, Table
from tetraodon.errors import DataError, Refused, SpecificationError, TetraodonError, Unsupported
from tetraodon.spec import load
from tetraodon.table import Counts

engines = pytest.mark.parametrize("engine", ENGINES)

# 92 % of 2^63 cells.
NEARLY: dict[str, Any] = {
    "a": Integer(0, 6),
    "text": Categorical(list("bcdefghij"), other="else"),
    "float": Numeric(0, 64, width="0.5"),
    "b": Integer(-500, 500),
    "yes": Categorical(["no", "yes"]),
    "code": Categorical([3, 1, 4, 5, 9]),
    "c": Integer(1, 100_000),
    "d": Integer(0, 947),
    "e": Integer(-5, 994),
}
MORE = {**NEARLY, "f": Integer(0, 9), "g": Integer(0, 1), "h": Integer(0, 2**31)}


def made(rows: int) -> pa.Table:
    """Rows at all corners, and others between and beyond."""
    rng = np.random.default_rng(8)
    numbers = {
        n: rng.integers(a.low - 3, a.high + 4, rows) for n, a in MORE.items() if isinstance(a, Integer)
    }
    told: dict[str, Any] = {**numbers, "float": rng.uniform(-1, 70, rows)}
    told["text"] = rng.choice([*"bcdefghijk"], rows)
    told["yes"] = rng.choice(["no", "yes"], rows)
    told["code"] = rng.choice([3, 1, 4, 5, 9], rows)
    ends = {"text": ("b", "k"), "float": (-1.0, 1e300), "yes": ("no", "yes"), "code": (3, 9)}
    for at, name in enumerate(MORE):
        low, high = ends[name] if name in ends else (-(2**31), 2**31 + 5)
        values = np.array(told[name], dtype=object)
        values[0], values[1], values[2 + at] = low, high, low
        told[name] = values.tolist()
        for other in range(len(MORE)):
            if other != at:
                told[name][2 + other] = high
    return pa.table({name: told[name] for name in MORE})


ROWS = made(60)


def cells(domain: Domain) -> list[tuple[int, ...]]:
    each = [a.cells(ROWS[n].to_pylist()).tolist() for n, a in domain.items()]
    return list(zip(*each, strict=True))


def numbered(domain: Domain, row: tuple[int, ...]) -> int:
    """The number of a cell, in Python's integers."""
    code = 0
    for size, cell in zip(domain.shape, row, strict=True):
        code = code * size + cell
    return code


def counted(counts: Counts) -> Counter[int]:
    return Counter({int(c): int(n) for cs, ns in counts.items() for c, n in zip(cs, ns, strict=True)})


@engines
def test_nearly_2_to_the_63_cells(engine: str, tmp_path: Path) -> None:
    domain = Domain(NEARLY)
    assert 0.9 * 2**63 < domain.size < 2**63
    table = Table(domain=domain, **ENGINES[engine](ROWS, tmp_path))
    expected = Counter(numbered(domain, row) for row in cells(domain))
    assert domain.size - 1 in expected and 0 in expected
    assert counted(table.counts()) == expected
    assert Counter(code for part in table.codes() for code in part.tolist()) == expected
    some = domain.select("text", "d", "c")
    assert counted(table.counts("c", "d", "text")) == Counter(numbered(some, row) for row in cells(some))


@engines
def test_more_cells_than_have_numbers(engine: str, tmp_path: Path) -> None:
    domain = Domain(MORE)
    assert domain.size > 2**90
    table = Table(
        domain=domain,
        **ENGINES[engine](ROWS, tmp_path),
        where={"a": [*range(-3, 10), -(2**31), 2**31 + 5]},
    )
    found = [
        row
        for part in table.cells(ordered=True)
        for row in zip(*(part[n].tolist() for n in domain), strict=True)
    ]
    assert Counter(found) == Counter(cells(domain))
    if engine not in ("postgres", "spark"):
        assert found == cells(domain)
    some = domain.select("h", "b", "f")
    assert counted(table.counts("b", "f", "h")) == Counter(numbered(some, row) for row in cells(some))
    for action in (table.counts, lambda: list(table.codes()), lambda: list(table.rows(*domain))):
        with pytest.raises(
            SpecificationError,
            match=r"a, text, float, b, yes, code and 6 more have more than 2\^63 − 1 cells",
        ):
            action()


def test_a_value_that_does_not_exist_is_refused_in_any_part(tmp_path: Path) -> None:
    for name in ("text", "h"):
        spoilt = ROWS.set_column(
            ROWS.column_names.index(name), name, pa.array([None, *ROWS[name].to_pylist()[1:]])
        )
        with pytest.raises(DataError, match=f"column '{name}' holds a value that is null"):
            list(Table(spoilt, Domain(MORE)).cells())
    keyed = ROWS.append_column("who", pa.array([None, *map(str, range(59))]))
    with pytest.raises(DataError, match="column 'who' holds a null"):
        list(Table(keyed, Domain(MORE), id="who", max_rows_per_id=1).cells())


# ---------- under a policy ----------

QUESTIONS = [f"q{i}" for i in range(40)]


def survey(rows: int) -> pa.Table:
    rng = np.random.default_rng(4)
    age = rng.integers(17, 91, rows)
    taste = (age - 17) / 74
    told = {
        n: np.clip(rng.normal(1 + 3 * np.abs(taste - i / 40), 1).round(), 1, 5).astype(int)
        for i, n in enumerate(QUESTIONS)
    }
    return pa.table({"age": age, **told})


@pytest.fixture(scope="module")
def people() -> Domain:
    return Domain({"age": Integer(17, 90), **{n: Integer(1, 5) for n in QUESTIONS}})


def test_a_survey_of_40_questions(tmp_path: Path, people: Domain) -> None:
    """74 · 5^40 cells, through a settings file: marginals, a CDF and whole rows."""
    assert people.size > 2**63
    rows = survey(600)
    pq.write_table(rows, tmp_path / "people.parquet")
    questions = "\n".join(f"[domain.{n}]\ninteger = [1, 5]" for n in QUESTIONS)
    path = tmp_path / "release.toml"
    path.write_text(
        f"""[data]
source = "people.parquet"
[domain.age]
integer = [17, 90]
{questions}
[policy]
secrets = "attribute-wise"
[budget]
epsilon = 1000
ledger = "people.ledger"
[[release]]
name = "pairs"
epsilon = 800
query = {{ marginals = [["q0", "q39"], ["q1", "q2"], ["age"]] }}
[[release]]
name = "ages"
epsilon = 100
query = {{ cdf = "age", by = ["q7"] }}
[[release]]
name = "rows"
guarantee = "measured"
[release.hybrid]
private = "age"
insensitive = {{ prefix = "q" }}
groups = 3
k = 100
clusters = 6
distortion = 0.25
"""
    )
    document = load(path)
    made = document.session().release_all(document.requests)
    frame = made[0].to_frame()
    pair = frame[frame["q0"].notna() & frame["q39"].notna()]
    truth = Counter(zip(rows["q0"].to_pylist(), rows["q39"].to_pylist(), strict=True))
    assert len(pair) == 25
    assert all(
        abs(v - truth[int(a), int(b)]) < 3
        for a, b, v in zip(pair["q0"], pair["q39"], pair["value"], strict=True)
    )
    assert abs(float(np.max(made[1].values)) - max(Counter(rows["q7"].to_pylist()).values())) < 5
    out = made[2].to_arrow()
    assert out.num_rows == 600 and out.column_names == ["age", *QUESTIONS]
    assert made[2].plan.figures["distortion"] <= 0.25


@pytest.mark.parametrize("secrets", [td.AttributeWise(), td.Full(), td.Within(5, on="age")])
def test_marginals_of_all_pairs_have_a_price(secrets: Any, people: Domain) -> None:
    policy = td.Policy(people, secrets)
    session = td.Session(Table(survey(20), people), policy, epsilon=1)
    assert session.plan(
        td.Marginals([(a, b) for a, b in itertools.combinations(QUESTIONS[:6], 2)] + [("q39", "age")]),
        epsilon="1",
    )
    assert "protect" in str(policy.explain()).lower()


def test_what_needs_all_attributes_at_once_is_refused_before_anything_is_charged(
    tmp_path: Path, people: Domain
) -> None:
    session = td.Session(
        Table(survey(50), people), td.Policy(people, td.AttributeWise()), epsilon=100, ledger=tmp_path / "l"
    )
    queries = [
        td.Histogram(*people),
        td.CDF("age", by=QUESTIONS),
        td.KMeans(*people, k=2),
        td.Marginals([tuple(people)]),
        td.Sum("age", by=QUESTIONS),
    ]
    for query in queries:
        with pytest.raises((Unsupported, SpecificationError, Refused)) as caught:
            session.release(query, epsilon=1)
        assert isinstance(caught.value, TetraodonError) and "cells" in str(caught.value), query
    assert "epsilon 100 left" in str(session.remaining)
