"""Chosen rows, persons and weights: every way of reading every source sees the rows that a plain loop keeps."""

from __future__ import annotations

import csv
import hashlib
import math
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tetraodon as td
from tetraodon import Categorical, Domain, Integer, Numeric, Table
from tetraodon.domain import check_columns
from tetraodon.errors import DataError, EngineError, SpecificationError, Unsupported
from tetraodon.people import Weight
from tetraodon.reading import number
from tetraodon.selecting import conditions, selection_of, steps_of
from tetraodon.table import Counts

DOMAIN = Domain(
    age=Integer(0, 99, missing="secret"),
    sex=Categorical(["f", "m"], other="else", missing="public"),
)
CANARY = 987654321


def columns(seed: int = 0, n: int = 400) -> dict[str, list[Any]]:
    random = np.random.default_rng(seed)
    who = random.integers(0, 90, n).tolist()
    return {
        "who": who,
        "visit": random.permutation(10 * n)[:n].tolist(),
        "age": [None if v == 7 else v for v in random.integers(0, 120, n).tolist()],
        "sex": random.choice(["f", "m", "x"], n).tolist(),
        "region": random.choice(["north", "east", "south"], n).tolist(),
        "w": (random.integers(0, 2000, n) / 400).tolist(),
    }


DATA = columns()
PEOPLE: dict[str, Any] = {"id": "who", "max_rows_per_id": 3, "keep_by": "visit"}
WEIGHTS: dict[str, Any] = {"weight": "w", "weight_bounds": (0, 5), "weight_step": "0.1"}
WHERE: dict[str, Any] = {"region": ["north", "south"], "visit": {"between": [100, "3500"]}}


def mark(name: str, who: object, key: object) -> str:
    salt = hashlib.sha256(name.encode()).hexdigest()
    return hashlib.sha256(f"{salt}:{who}:{key}".encode()).hexdigest()


def kept(
    data: dict[str, list[Any]], most: int, name: str = "people", rows: Sequence[int] | None = None
) -> list[int]:
    """Places of the rows that are kept, in the order of the data."""
    of: dict[str, list[int]] = defaultdict(list)
    for i in range(len(data["who"])) if rows is None else rows:
        of[str(data["who"][i])].append(i)
    chosen = [
        sorted(places, key=lambda i: mark(name, data["who"][i], data["visit"][i]))[:most]
        for places in of.values()
    ]
    return sorted(i for places in chosen for i in places)


def in_where(data: dict[str, list[Any]]) -> list[int]:
    return [
        i
        for i, (region, visit) in enumerate(zip(data["region"], data["visit"], strict=True))
        if region in ("north", "south") and 100 <= visit <= 3500
    ]


def steps(weight: float, step: Fraction) -> int:
    """The k for which (k − ½)·step, rounded to a double, is the last one that does not lie above the weight."""
    k = math.floor(Fraction(weight) / step) + 2
    while float((k - Fraction(1, 2)) * step) > weight:
        k -= 1
    return k


def cells(data: dict[str, list[Any]], rows: Sequence[int], domain: Domain = DOMAIN) -> list[int]:
    return domain.encode([a.cells([data[n][i] for i in rows]) for n, a in domain.items()]).tolist()  # type: ignore[no-any-return]


def counted(counts: Counts) -> Counter[int]:
    found = {int(c): int(n) for codes, numbers in counts.items() for c, n in zip(codes, numbers, strict=True)}
    return Counter(found)


def written(kind: str, folder: Path, data: dict[str, list[Any]] = DATA) -> dict[str, Any]:
    """Arguments of ``Table`` for the rows in one kind of source."""
    file = folder / f"people.{kind}"
    arrow = pa.table(data)
    if kind == "csv":
        with file.open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text)
            writer.writerow(data)
            writer.writerows(
                ("" if v is None else v for v in row) for row in zip(*data.values(), strict=True)
            )
        return {"source": file, "null": [""]}
    if kind == "parquet":
        pyarrow.parquet.write_table(arrow, file, row_group_size=50)
        return {"source": file}
    if kind == "arrow":
        pyarrow.feather.write_feather(arrow, file, compression="uncompressed", chunksize=50)
        return {"source": file}
    if kind in ("url", "sql"):
        file = folder / "people.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.register("told", arrow)
            connection.execute("CREATE TABLE people AS SELECT * FROM told")
        told = {"table": "people"} if kind == "url" else {"sql": "SELECT * FROM people WHERE true;"}
        return {"source": f"duckdb://{file}", "name": "people"} | told
    source = {
        "dict": data, "pandas": pd.DataFrame(data), "polars": pl.DataFrame(data), "pyarrow": arrow, "ibis": ibis.memtable(arrow),
    }[kind]  # fmt: skip
    return {"source": source, "name": "people"}


KINDS = ["dict", "pandas", "polars", "pyarrow", "ibis", "csv", "parquet", "arrow", "url", "sql"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_and_every_way_of_reading_keeps_the_same_rows(kind: str, tmp_path: Path) -> None:
    told = written(kind, tmp_path)
    table = Table(domain=DOMAIN, **told, **PEOPLE)
    rows = kept(DATA, 3)
    assert len(rows) < len(DATA["who"])
    assert counted(table.counts()) == Counter(cells(DATA, rows))
    assert table.counts().total == table.n_rows == len(rows)
    assert counted(table.counts("sex")) == Counter(cells(DATA, rows, DOMAIN.select("sex")))
    assert sorted(np.concatenate(list(table.codes())).tolist()) == sorted(cells(DATA, rows))
    found = [
        (cell, str(visit), region, who)
        for batch in table.rows(keep=["visit", "region"], ident="who")
        for cell, visit, region, who in zip(
            np.asarray(batch.cells).tolist(), *(k.to_pylist() for k in batch.kept), batch.ids.to_pylist(), strict=True
        )
    ]  # fmt: skip
    expected = zip(
        cells(DATA, rows),
        *([str(DATA[n][i]) for i in rows] for n in ("visit", "region", "who")),
        strict=True,
    )
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_chosen_before_they_are_counted_and_weigh(kind: str, tmp_path: Path) -> None:
    table = Table(domain=DOMAIN, **written(kind, tmp_path), **PEOPLE, **WEIGHTS, where=WHERE)
    rows = kept(DATA, 3, rows=in_where(DATA))
    expected: Counter[int] = Counter()
    for cell, i in zip(cells(DATA, rows), rows, strict=True):
        expected[cell] += steps(DATA["w"][i], Fraction(1, 10))
    counts = table.counts()
    assert counted(counts) == +expected
    assert counts.total == sum(expected.values())
    assert table.n_rows == len(rows)
    assert sorted(np.concatenate(list(table.codes())).tolist()) == sorted(cells(DATA, rows))
    assert table.where == {"region": ["north", "south"], "visit": {"between": [100, 3500]}}


@pytest.mark.parametrize("kind", ["dict", "polars", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("numbers", [False, True], ids=["encoded", "doubles"])
def test_kept_rows_come_as_they_stand(kind: str, numbers: bool, tmp_path: Path) -> None:
    data = columns(3, 5000)
    domain = Domain(w=Numeric(0, 5, width=1)) if numbers else DOMAIN
    table = Table(domain=domain, **written(kind, tmp_path, data), **PEOPLE)
    places = [int(v) for b in table.rows(keep=["visit"], ordered=True) for v in b.kept[0].to_pylist()]
    assert places == [data["visit"][i] for i in kept(data, 3)]


def test_rows_of_many_categories_come_as_they_stand(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    regions = [f"r{i}" for i in range(100)]
    data = {"region": random.choice(regions, 50_000), "visit": np.arange(50_000)}
    pyarrow.parquet.write_table(pa.table(data), tmp_path / "x.parquet", row_group_size=3000)
    for told in ({}, {"where": {"visit": (100, 40_000)}}):
        table = Table(tmp_path / "x.parquet", Domain(region=Categorical(regions)), **told)  # type: ignore[arg-type]
        places = [v for b in table.rows(keep=["visit"], ordered=True) for v in b.kept[0].to_pylist()]
        assert places == (list(range(100, 40_001)) if told else list(range(50_000)))


person = st.sampled_from(["a", "b", "é", "0", "a:b"])
row = st.tuples(person, st.integers(0, 120) | st.none(), st.floats(0, 4))


@given(st.lists(row, max_size=12), st.integers(1, 4), st.sampled_from(["people", "tax 'é:"]))
@examples(40)
def test_kept_rows_are_those_of_a_plain_loop(rows: list[Any], most: int, name: str) -> None:
    who, age, w = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
    data = {"who": who, "visit": list(range(len(rows))), "age": age, "w": w}
    domain = DOMAIN.select("age")
    table = Table(data, domain, name=name, **PEOPLE | {"max_rows_per_id": most})
    places = kept(data, most, name)
    assert counted(table.counts()) == Counter(cells(data, places, domain))
    again = table.declared(Domain(w=Numeric(0, 4, width=1)))
    found = [int(v) for b in again.rows(keep=["visit"]) for v in b.kept[0].to_pylist()]
    assert sorted(found) == places  # whatever the attributes: no value chooses


def test_no_value_and_no_order_chooses_rows() -> None:
    def visits(data: dict[str, list[Any]], **told: Any) -> list[int]:
        table = Table(data, DOMAIN, **PEOPLE, **told)
        return sorted(int(v) for b in table.rows(keep=["visit"]) for v in b.kept[0].to_pylist())

    first = visits(DATA)
    other = columns(9)
    assert visits(DATA | {n: other[n] for n in ("age", "sex", "region", "w")}) == first
    order = np.random.default_rng(1).permutation(len(DATA["who"]))
    assert visits({n: [v[i] for i in order] for n, v in DATA.items()}) == first
    assert visits(DATA, edition="2026") == first
    assert visits(DATA, name="another") != first
    spelt = DATA | {n: [str(v) for v in DATA[n]] for n in ("who", "visit")}
    assert visits(spelt) == first


def test_without_a_key_any_rows_are_kept_but_never_too_many() -> None:
    table = Table(DATA, DOMAIN, id="who", max_rows_per_id=2)
    assert not table.people.has_key
    numbers = Counter(DATA["who"])
    assert table.n_rows == table.counts().total == sum(min(2, n) for n in numbers.values())
    found: Counter[str] = Counter()
    for batch in table.rows(keep=["visit"], ident="who"):
        found.update(batch.ids.to_pylist())
    assert found == {str(who): min(2, n) for who, n in numbers.items()}
    assert table.counts() == Table(DATA, DOMAIN, id="who", max_rows_per_id=2).counts()


def test_rows_of_two_persons_may_have_one_key() -> None:
    table = Table({"who": ["a", "b"], "visit": [1, 1], "age": [1, 2]}, DOMAIN.select("age"), **PEOPLE)
    assert table.n_rows == 2


def refused(table: Table) -> list[str]:
    """What every way of reading refuses the table with."""
    found = []
    ways: list[Callable[[], object]] = [
        table.counts, lambda: list(table.codes()), lambda: list(table.rows(keep=[])), lambda: table.n_rows,
        lambda: list(table.rows(ordered=True)),
    ]  # fmt: skip
    for way in ways:
        with pytest.raises(DataError) as caught:
            way()
        assert str(CANARY) not in "".join(traceback.format_exception(caught.value))
        found.append(str(caught.value))
    return found


BAD_PEOPLE = [
    ({"who": [None, "a"]}, "column 'who' holds a null"),
    ({"who": ["?", "a"]}, "column 'who' holds a null"),
    ({"who": ["", "a"]}, "column 'who' holds a null, an empty text"),
    ({"who": ["a", "  "]}, "column 'who' holds a null, an empty text"),
    ({"who": ["a", b"b"]}, "or what is no text or number"),
    ({"visit": [None, 2]}, "column 'visit' holds a null"),
    ({"visit": [2, 2]}, "two rows of one person, by column 'who', have one key in column 'visit'"),
    ({"visit": ["2", 2]}, "two rows of one person, by column 'who', have one key in column 'visit'"),
]


@pytest.mark.parametrize(("told", "text"), BAD_PEOPLE)
@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("numbers", [False, True], ids=["encoded", "doubles"])
def test_ids_and_keys_that_tell_nobody_apart_are_refused(
    told: dict[str, Any], text: str, most: int, numbers: bool
) -> None:
    domain = Domain(w=Numeric(0, 5, width=1)) if numbers else DOMAIN.select("age")
    data = {"who": ["a", "a"], "visit": [1, CANARY], "age": [1, CANARY], "w": [1.0, 2.0]} | told
    table = Table(data, domain, null=["?"], **PEOPLE | {"max_rows_per_id": most})
    assert all(text in found for found in refused(table))


BAD_WEIGHTS: list[Any] = [
    None, math.nan, math.inf, -math.inf, -0.001, 5.0000001, CANARY, "five", "", Decimal("5.1"), np.nextafter(5, 6),
    np.nextafter(0, -1),
]  # fmt: skip


@pytest.mark.parametrize("weight", BAD_WEIGHTS, ids=repr)
@pytest.mark.parametrize("people", [{}, PEOPLE | {"max_rows_per_id": 1}], ids=["rows", "persons"])
def test_weights_out_of_bounds_refuse_the_table(weight: Any, people: dict[str, Any]) -> None:
    data = {"who": ["a", "a", "a"], "visit": [1, 2, 3], "age": [1, 2, 3], "w": [0.5, weight, 5]}
    for domain in (DOMAIN.select("age"), Domain(age=Integer(0, 10**8))):
        found = refused(Table(data, domain, **people, **WEIGHTS))
        assert all(
            "column 'w' holds a weight that is null, not a number, or outside weight_bounds, 0 to 5" in f
            for f in found
        )


def test_weights_on_the_bounds_count() -> None:
    bounds = {"weight": "w", "weight_bounds": ("0.3", "0.7"), "weight_step": "0.1"}
    data: dict[str, Any] = {"w": [0.3, 0.7, 0.35], "age": [0, 1, 2]}
    for w in (
        data["w"],
        pd.Series(data["w"]),
        [str(v) for v in data["w"]],
        [Decimal(str(v)) for v in data["w"]],
    ):
        assert Table(data | {"w": w}, Domain(age=Integer(0, 2)), **bounds).counts().dense.tolist() == [
            3,
            7,
            4,
        ]
    whole = Table(
        {"w": np.array([1, 2, 3]), "age": [0, 1, 2]},
        Domain(age=Integer(0, 2)),
        weight="w",
        weight_bounds=(1, 3),
    )
    assert whole.counts().dense.tolist() == [1, 2, 3]  # type: ignore[union-attr]


STEPS = [Fraction(1), Fraction(1, 10), Fraction(1, 3), Fraction(7, 100), Fraction(25), Fraction(1, 2**20)]


@given(st.data(), st.sampled_from(STEPS), st.integers(1, 10**6))
@examples(150)
def test_steps_are_the_nearest_ones(data: Any, step: Fraction, most: int) -> None:
    weight = Weight(Fraction(0), most * step, step, "secret")
    tie = st.integers(1, most).map(lambda k: float((k - Fraction(1, 2)) * step))
    near = tie.flatmap(
        lambda t: st.sampled_from([t, float(np.nextafter(t, 0)), float(np.nextafter(t, math.inf))])
    )
    told = data.draw(st.lists(st.floats(0, float(weight.high)) | near, min_size=1, max_size=20))
    told = [min(w, float(weight.high)) for w in told]
    found = steps_of(weight).cells(told).tolist()
    for w, k in zip(told, found, strict=True):
        exact = math.floor(Fraction(w) / step + Fraction(1, 2))
        tied = w in (float((k - Fraction(1, 2)) * step), float((k + Fraction(1, 2)) * step))
        assert k == min(exact, most) or (tied and abs(k - exact) == 1)
        assert weight.least <= k <= weight.most
    if data.draw(st.integers(0, 9)):  # the engine takes most of the time
        return
    one = Domain(one=Integer(0, 0))
    table = Table(
        {"w": np.array(told), "one": np.zeros(len(told), int)}, one, weight="w",
        weight_bounds=(0, weight.high), weight_step=step,
    )  # fmt: skip
    assert table.counts().total == sum(found)  # the query and the definition agree


def test_weights_in_a_domain_too_large_for_an_array_and_of_many_categories() -> None:
    data = columns(5)
    rows = kept(data, 3)
    regions = [f"r{i}" for i in range(100)] + ["north", "east", "south"]
    for domain in (
        Domain(age=Integer(0, 10**8, missing="secret")),
        Domain(region=Categorical(regions), age=Integer(0, 99, missing="secret")),
    ):
        expected: Counter[int] = Counter()
        for cell, i in zip(cells(data, rows, domain), rows, strict=True):
            expected[cell] += steps(data["w"][i], Fraction(1, 10))
        counts = Table(data, domain, name="people", **PEOPLE, **WEIGHTS).counts()
        assert counted(counts) == +expected
        assert counts.total == sum(expected.values())


def test_sums_of_weights_that_no_count_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetraodon.counting.MAX_COUNT", 10)
    table = Table({"age": [1, 2], "w": [5, 6]}, DOMAIN.select("age"), weight="w", weight_bounds=(0, 6))
    with pytest.raises(EngineError, match="weight steps cannot be counted"):
        table.counts()


# Chosen rows

mixed = st.sampled_from(
    [
        None,
        True,
        1,
        2,
        3.0,
        2.5,
        "1",
        "2",
        " 2 ",
        "a",
        "A",
        "true",
        "",
        "1e999",
        math.nan,
        Decimal("2.0"),
        2**60,
    ]
)


@given(
    st.lists(mixed, max_size=8),
    st.sampled_from([["a", "1", "true"], ["2.5"], [1, 2], [2**53], (1, 2), (2, "2.5"), {"between": [-5, 3]}]),
)
@examples(60)
def test_rows_are_chosen_as_cells_are(values: list[Any], chosen: Any) -> None:
    data: dict[str, Any] = {"x": values, "place": list(range(len(values)))}
    if isinstance(chosen, list):
        attribute = Categorical(chosen, other="other", missing="public")
        expected = [i for i, c in enumerate(attribute.cells(values)) if c < attribute.n_values]
    else:
        low, high = chosen["between"] if isinstance(chosen, dict) else chosen
        expected = [i for i, v in enumerate(values) if float(low) <= number(v) <= float(high)]
    domain = Domain(place=Integer(0, 9))
    table = Table(data, domain, where={"x": chosen})
    assert [i for i, n in enumerate(table.counts().dense.tolist()) if n] == expected  # type: ignore[union-attr]
    assert table.n_rows == len(expected)


def test_typed_columns_are_chosen_as_cells_are() -> None:
    domain = Domain(place=Integer(0, 9))

    def chosen(x: Any, where: Any) -> list[int]:
        counts = Table({"x": x, "place": list(range(len(x)))}, domain, where={"x": where}).counts()
        return np.flatnonzero(counts.dense).tolist()  # type: ignore[no-any-return, arg-type]

    assert chosen(np.array([1, 2, 3], np.int8), [2, 300]) == [1]
    assert chosen(np.array([1, 2, 3], np.uint8), ["2", "-1"]) == [1]
    assert chosen(np.array([True, False]), ["true", "1"]) == [0]
    assert chosen(np.array([1.0, 2.5, math.nan, math.inf]), [1]) == [0]
    assert chosen(np.array([1.0, 2.5, math.nan, math.inf]), (0, 5)) == [0, 1]
    assert chosen(np.array([0.1, 0.3, 0.7]), ("0.1", "0.3")) == [0, 1]
    assert chosen(["a", None, "b"], [f"c{i}" for i in range(500)] + ["b"]) == [2]
    assert chosen(["a", "?"], ["?", "a"]) == [0, 1]
    null = Table({"x": ["a", "?"], "place": [0, 1]}, domain, null=["?"], where={"x": ["?", "a"]})
    assert null.n_rows == 1


BAD_WHERE = [
    ("region", "where: a table from columns"), ({}, "where: at least one column"), ({1: ["a"]}, "named by texts"),
    ({"region": "north"}, "where.region.values: a list of values"), ({"region": []}, "where.region.values: at least one"),
    ({"region": {"from": 1}}, "where.region.values: a list of values"), ({"region": [1, "a"]}, "all texts or all integers"),
    ({"region": ["a\0"]}, "NUL"), ({"visit": (1, 2, 3)}, "where.visit.between: two numbers"),
    ({"visit": (2, 1)}, "where.visit.between: the low end first"), ({"visit": (1, "x")}, "where.visit.between"),
    ({"visit": {"between": [0, "1/9007199254740993"]}}, "rounder numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "text"), BAD_WHERE)
def test_conditions_of_the_wrong_kind_are_named(where: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        Table(DATA, DOMAIN, where=where)


def test_columns_that_conditions_cannot_read_are_named() -> None:
    with pytest.raises(DataError, match=r"no column 'regionn'.*Did you mean 'region'"):
        Table(DATA, DOMAIN, where={"regionn": ["north"]})
    with pytest.raises(DataError, match="column 'w' is float64; text categories are read from"):
        Table(DATA | {"w": np.array(DATA["w"])}, DOMAIN, where={"w": ["1"]})
    moments = DATA | {"when": np.array(["2025-01-01"] * 400, "M8[s]")}
    with pytest.raises(DataError, match="column 'when' is timestamp"):
        Table(moments, DOMAIN, where={"when": (1, 2)})


# Declarations


def test_columns_of_ids_keys_and_weights_are_checked_by_name() -> None:
    for told, text in (
        ({"id": "whom", "max_rows_per_id": 1}, "no column 'whom'"),
        (PEOPLE | {"keep_by": "visits"}, "no column 'visits'"),
        (WEIGHTS | {"weight": "weight"}, "no column 'weight'"),
        (PEOPLE | {"keep_by": "f"}, "column 'f' is neither text nor integers"),
        (PEOPLE | {"id": "f"}, "column 'f' is neither text nor integers"),
        (WEIGHTS | {"weight": "b"}, "column 'b' is boolean"),
    ):
        data = DATA | {"f": np.zeros(400), "b": np.zeros(400, bool)}
        with pytest.raises(DataError, match=text):
            Table(data, DOMAIN, **told)
    for told, text in (
        (PEOPLE | {"keep_by": "age"}, "keep_by: attribute 'age' is read from column 'age'"),
        (PEOPLE | {"id": "sex"}, "id: attribute 'sex' is read from column 'sex'"),
        (PEOPLE | WEIGHTS | {"keep_by": "w"}, "weight: another column"),
        (
            WEIGHTS | {"weight": "age", "weights": "public"},
            "weights: attribute 'age' is read from column 'age'",
        ),
        (PEOPLE | {"keep_bye": "x"}, "no option 'keep_bye'; declared: .*Did you mean 'keep_by'"),
    ):
        with pytest.raises(SpecificationError, match=text):
            Table(DATA, DOMAIN, **told)
    home = Domain(home=td.Point("visit", "w", box=((0, 10), (0, 10)), cell="1 m", metric="planar", unit="m"))
    with pytest.raises(SpecificationError, match="keep_by: attribute 'home' is read from column 'visit'"):
        Table(DATA, home, **PEOPLE)


def test_steps_that_doubles_cannot_tell_apart_are_refused() -> None:
    assert steps_of(Weight(Fraction(0), Fraction(10**9), Fraction(1), "secret")).n_values == 10**9 + 1
    with pytest.raises(SpecificationError, match="weight_step: doubles cannot tell"):
        steps_of(Weight(Fraction(0), Fraction(1, 3**34), Fraction(1, 3**34), "secret"))


def test_two_attributes_on_one_column_are_refused() -> None:
    both = Domain(age=Integer(0, 9), old=Integer(0, 1, column="age"))
    home = Domain(
        x=Numeric(0, 1, cells=2),
        home=td.Point("x", "y", box=((0, 1), (0, 1)), cell="1 m", metric="planar", unit="m"),
    )
    for domain, text in (
        (both, "domain.old: reads column 'age', as attribute 'age' does"),
        (home, "domain.home: reads column 'x'"),
    ):
        with pytest.raises(SpecificationError, match=text):
            check_columns(domain)
        with pytest.raises(SpecificationError, match=text):
            Table({"age": [1], "x": [0.5], "y": [0.5]}, domain)
    check_columns(Domain(age=Integer(0, 9), old=Integer(0, 1)))


def test_what_is_released_is_of_kept_rows() -> None:
    table = Table(DATA, DOMAIN, name="people", **PEOPLE)
    swap = td.Channel.of_matrix(np.eye(4)[[1, 0, 2, 3]], DOMAIN.select("sex"))
    rows = kept(DATA, 3)
    out = swap.apply(table, keep=["visit"])
    assert sorted(map(int, out["visit"].to_pylist())) == sorted(DATA["visit"][i] for i in rows)
    other = table.declared(Domain(region=Categorical(["north", "east", "south"])))
    assert other.people == table.people and other.n_rows == len(rows)
    assert str(CANARY) not in repr(table) and "who" not in repr(table)


def test_an_engine_without_digests_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from ibis.backends.duckdb import Backend

    has = Backend.has_operation
    monkeypatch.setattr(Backend, "has_operation", lambda self, o: o.__name__ != "HexDigest" and has(o))
    with pytest.raises(Unsupported, match="keep_by: duckdb cannot compute SHA-256"):
        Table(DATA, DOMAIN, **PEOPLE).counts()
    assert Table(DATA, DOMAIN, id="who", max_rows_per_id=1).n_rows == len(set(DATA["who"]))


def test_a_selection_reads_no_more_columns_than_it_names() -> None:
    told = selection_of(
        DOMAIN, name="people", null=(), where=conditions({"region": ["north"]}), id="who", most=1, keep_by="visit",
        weight="w", weights=Weight(Fraction(0), Fraction(5), Fraction(1), "secret"),
    )  # fmt: skip
    assert told.columns == ("region", "who", "visit", "w")


# Queries


@pytest.fixture
def database(tmp_path: Path) -> str:
    file = tmp_path / "people.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE rows (age INTEGER, sex VARCHAR COLLATE NOCASE); CREATE TABLE s.t AS SELECT 3 AS age;"
            "INSERT INTO rows VALUES (1, 'F'), (2, 'f'), (3, 'm')"
        )
    return f"duckdb://{file}"


@pytest.mark.parametrize(
    ("sql", "ages"),
    [
        ("SELECT * FROM rows WHERE age > 1", [2, 3]),
        ("select age, sex from rows; -- all of them\n", [1, 2, 3]),
        ("WITH young AS (SELECT * FROM rows WHERE age < 3) SELECT * FROM young", [1, 2]),
        ("SELECT age + 1 AS age FROM rows UNION ALL SELECT age FROM s.t", [2, 3, 3, 4]),
        ("SELECT age FROM rows -- a comment at the end", [1, 2, 3]),
    ],
)
def test_a_query_is_read_like_a_table(database: str, sql: str, ages: list[int]) -> None:
    table = Table(database, Domain(age=Integer(0, 9)), sql=sql)
    assert table.sql == sql and table.n_rows == len(ages)
    assert sorted(np.concatenate(list(table.codes())).tolist()) == ages


def test_a_query_reads_text_letter_by_letter(database: str) -> None:
    regions = Categorical([f"r{i}" for i in range(70)] + ["f", "m"], other="else")
    for domain, expected in (
        (Domain(sex=Categorical(["f", "m"], other="else")), [1, 1, 1]),
        (Domain(sex=regions), [1, 1, 1]),
    ):
        counts = Table(database, domain, sql="SELECT sex FROM rows", where={"sex": ["f", "m", "F"]}).counts()
        assert [n for _, numbers in counts.items() for n in numbers.tolist()] == expected
    assert (
        Table(database, Domain(age=Integer(0, 9)), sql="SELECT * FROM rows", where={"sex": ["f"]}).n_rows == 1
    )


@pytest.mark.parametrize(
    "sql",
    [
        "", ";", "SELECT 1; SELECT 2", "DROP TABLE rows", "INSERT INTO rows VALUES (1)", "COPY rows TO 'x.csv'", "PRAGMA version",
        "CREATE TABLE t AS SELECT 1", "SELECT * INTO t FROM rows", "SELECT 1) AS q; DROP TABLE rows; SELECT (1",
        "WITH t AS (INSERT INTO rows VALUES (1) RETURNING *) SELECT * FROM t", "SELECT * FROM rows USING SAMPLE 2",
        "SELECT * FROM rows WHERE random() < 0.5", "not sql at all", "SELECT '", "(" * 5000,
    ],
)  # fmt: skip
def test_anything_but_one_select_is_refused(database: str, sql: str) -> None:
    with pytest.raises(SpecificationError, match=r"^sql: exactly one SELECT") as caught:
        Table(database, Domain(age=Integer(0, 9)), sql=sql)
    assert caught.value.__cause__ is None


def test_queries_in_the_wrong_place(database: str, tmp_path: Path) -> None:
    domain = Domain(age=Integer(0, 9))
    with pytest.raises(SpecificationError, match="sql: instead of table"):
        Table(database, domain, table="rows", sql="SELECT 1")
    with pytest.raises(DataError, match="sql: only a URL"):
        Table(DATA, domain, sql="SELECT 1")
    with pytest.raises(DataError, match="no column 'age'; the table has ages"):
        Table(database, domain, sql="SELECT age AS ages FROM rows")
    with pytest.raises(EngineError, match=r"people.duckdb:sql: opening failed") as caught:
        Table(database, domain, sql=f"SELECT {CANARY} AS age FROM nowhere")
    assert str(CANARY) not in str(caught.value)
    with pytest.raises(EngineError, match=r"people.duckdb:sql: reading failed") as caught:
        Table(database, domain, sql=f"SELECT CAST(sex || '{CANARY}' AS INTEGER) AS age FROM rows").counts()
    assert str(CANARY) not in "".join(traceback.format_exception(caught.value))
