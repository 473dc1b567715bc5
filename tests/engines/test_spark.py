"""Spark as a source, in local mode: what is counted equals the definition of a cell, for odd values too, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_local import session

import tetraodon as td
from tetraodon import Categorical, Domain, Integer, Numeric, Point
from tetraodon import spark as engine
from tetraodon.domain import attribute_from_spec
from tetraodon.errors import DataError, EngineError, SpecificationError, Unsupported
from tetraodon.table import Counts

TEXTS = [
    "1", "12", " 12 ", "12\t", "\v12\f", "1\n", "1e3", "2.50", ".5", "5.", "1.e3", "-0", "007", "+3", "3", "300",
    "1e999", "-1e999", "1e-999", "inf", "-inf", "Infinity", "+infinity", "INF", "4.9e-324", "9007199254740993",
    "18446744073709551615", "0." + "0" * 400 + "1", "1" + "0" * 400,
    "", " ", "1_000", "0x10", "NaN", "nan", "infin", "1e", "e5", ".", "+", "--5", "1 2", "1,5", "1e5.5", "1\0", "1f", "1d",
    "١٢", "１２", "1\u00a0", "\u20091", "1\u2028", "1\x85", "abc", "A", "a", "a ", "é", "e\u0301", "x'y", 'q"q', "true",
    "false", "True", "${env:HOME}", "back\\slash", "\\u0041", "tab\t", "line\n", "%", "`", None,
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, 0.1, 0.3, 1 / 3, 2.5, -1e-20, 5e-324, -5e-324, 2.2250738585072014e-308, 16777217.0, 1e308, -1e308,
    2.0**53, 2.0**53 + 2, -(2.0**53) - 2, 2.0**63, -(2.0**63), 1e19, 2.0**53 - 1, float("inf"), float("-inf"), float("nan"),
    None,
]  # fmt: skip
SMALL_DECIMALS = [Decimal(t) for t in ("0.10", "0.30", "0.29", "12.00", "-99999999.99", "99999999.99")] + [
    None
]
LARGE_DECIMALS = [
    Decimal(t)
    for t in (
        "0.3",
        "0.299999999999999988897769753748",
        "1e-30",
        "12",
        "12.000000000000000000000001",
        "-9999999",
    )
] + [None]
NUMBERS = {
    "whole": Integer(-3, 300, step=7, missing="secret"),
    "wide": Integer(-(2**53), 2**53, step=3, missing="secret"),
    "tenths": Numeric(0, 1, cells=10, missing="secret"),
    "thirds": Numeric("-1/3", "3", width="1/3", missing="secret"),
    "codes": Categorical([0, 1, 12, 300, 2**53, -(2**53)], other="else", missing="secret"),
    "many": Categorical(range(80), missing="secret"),
}
WORDS = {
    "few": Categorical([t for t in TEXTS[:32] if t is not None], other="else", missing="secret"),
    "odd": Categorical([t for t in TEXTS[32:] if t is not None and t != "1\0"], missing="secret"),
    "nul": Categorical(["1\0", "a", "A"], other="else", missing="secret"),
    "joined": Categorical([t for t in TEXTS if t is not None], missing="secret"),
}
COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any], dict[str, Any]]] = {
    "text": (pa.string(), TEXTS, NUMBERS),
    "words": (pa.string(), TEXTS, WORDS),
    "double": (pa.float64(), DOUBLES, NUMBERS),
    "float": (pa.float32(), [None if v is None else float(np.float32(v)) for v in (0.1, 0.3, 1e30, 2.5, float("nan"), None)], NUMBERS),
    "small": (pa.decimal128(10, 2), SMALL_DECIMALS, NUMBERS),
    "large": (pa.decimal128(38, 30), LARGE_DECIMALS, NUMBERS),
    "boolean": (pa.bool_(), [True, False, None], {"b": Categorical(["false", "true"], missing="secret")}),
    "numerals": (pa.int32(), [1, 12, -1, 7, None], {"n": Categorical(["1", "-1", "007"], other="else", missing="secret")}),
} | {
    kind: (getattr(pa, kind)(), [0, 1, -1, 12, 7, 2**(bits - 1) - 1, -(2**(bits - 1)), None], NUMBERS)
    for kind, bits in (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))
}  # fmt: skip


def frame(columns: dict[str, pa.Array]) -> Any:
    return session().createDataFrame(pa.table(columns))


def people() -> tuple[dict[str, list[Any]], Domain, dict[str, Any]]:
    rows = np.random.default_rng(3)
    told = {
        "who": [f"p{i}" for i in rows.integers(0, 40, 200)],
        "visit": list(range(200)),
        "age": [int(v) for v in rows.integers(0, 12, 200)],
        "w": [float(v) / 8 for v in rows.integers(0, 17, 200)],
        "region": [["n", "s", "e "][v] for v in rows.integers(0, 3, 200)],
    }
    binding = {"id": "who", "max_rows_per_id": 3, "keep_by": "visit"}
    return told, Domain(age=Integer(0, 9), region=Categorical(["n", "s"], other="else")), binding


@pytest.mark.parametrize("column", COLUMNS)
def test_counts_equal_the_definition_of_a_cell(column: str) -> None:
    kind, values, attributes = COLUMNS[column]
    rows = frame({"x": pa.array(values, kind)})
    alone = [{n: a} for n, a in attributes.items() if n == "wide"]
    for each in [{n: a for n, a in attributes.items() if n != "wide"}, *alone]:
        domain = Domain(
            {
                n: attribute_from_spec(n, a.to_spec() | {"column": f"x{i}"})
                for i, (n, a) in enumerate(each.items())
            }
        )
        cells = domain.encode([np.asarray(a.cells(values)) for a in each.values()])
        table = td.Table(rows.selectExpr(*[f"x AS x{i}" for i in range(len(each))]), domain)
        assert table.counts() == Counts.collect(domain, [(cells, np.ones(len(cells)))])


def test_places_and_odd_names() -> None:
    near = {"LAT.`q`": [0.0, 1.5, 9.0, None], "lat.`Q`": [3.0, -1.0, 4.999, 1.0], "select": [1, 2, 3, 4]}
    domain = Domain(
        home=Point("LAT.`q`", "lat.`Q`", box=((0, 10), (0, 5)), cell=1, metric="planar", missing="secret"),
        n=Integer(1, 9, column="select"),
    )
    rows = frame({name: pa.array(values) for name, values in near.items()})
    assert td.Table(rows, domain).counts() == td.Table(near, domain).counts()
    assert sorted(np.concatenate(list(td.Table(rows, domain).codes("n"))).tolist()) == [0, 1, 2, 3]
    with pytest.raises(DataError, match="more than one column is named 'a'"):
        td.Table(session().sql("SELECT 1 AS a, 2 AS a"), Domain(a=Integer(0, 9)))
    with pytest.raises(DataError, match="no column 'b'; the table has a"):
        td.Table(session().sql("SELECT 1 AS a"), Domain(b=Integer(0, 9)))


def test_every_kind_of_spark_source() -> None:
    import ibis

    told, domain, binding = people()
    rows = frame({name: pa.array(values) for name, values in told.items()})
    expected = td.Table(told, domain, name="p", **binding)
    rows.createOrReplaceTempView("people")
    try:
        seen = [
            td.Table(rows, domain, name="p", **binding),
            td.Table(ibis.pyspark.connect(session()).table("people"), domain, name="p", **binding),
            td.Table("pyspark://", domain, name="p", table="people", **binding),
            td.Table(
                "pyspark://?spark.ui.enabled=false",
                domain,
                name="p",
                sql="SELECT * FROM `people`;",
                **binding,
            ),
        ]
        for table in seen:
            assert table.counts() == expected.counts()
            assert table.n_rows == expected.n_rows
        with pytest.raises(SpecificationError, match="only settings of Spark"):
            td.Table("pyspark://?user=secret", domain, table="people")
        with pytest.raises(EngineError, match=r"pyspark:nobody: opening failed \(AnalysisException\)"):
            td.Table("pyspark://", domain, table="nobody")
    finally:
        session().catalog.dropTempView("people")


def test_people_weights_and_choices_are_those_of_other_engines() -> None:
    told, domain, binding = people()
    rows = frame({name: pa.array(values) for name, values in told.items()})
    weighed = {"weight": "w", "weight_bounds": (0, 2), "weight_step": "1/4"}
    for options in (
        binding | weighed, weighed, {"where": {"region": ["n", "e "], "age": (2, 8)}}, binding | {"where": {"who": ["p1", "p2"]}},
        {"null": ["e "], "where": {"region": ["e ", "n"]}},
    ):  # fmt: skip
        ours, theirs = (td.Table(source, domain, name="p", **options) for source in (rows, pa.table(told)))
        assert ours.counts() == theirs.counts()
        assert ours.n_rows == theirs.n_rows
    kept = pa.Table.from_batches(
        [
            pa.record_batch({"visit": part.kept[0], "cell": part.cells, "who": part.ids})
            for part in td.Table(rows, domain, name="p", **binding).rows(keep=["visit"], ident="who")
        ]
    )
    other = [
        pa.record_batch({"visit": part.kept[0], "cell": part.cells, "who": part.ids})
        for part in td.Table(pa.table(told), domain, name="p", **binding).rows(keep=["visit"], ident="who")
    ]
    order = "visit"
    assert kept.sort_by(order).to_pydict() == pa.Table.from_batches(other).sort_by(order).to_pydict()


@pytest.mark.parametrize("spoilt", ["who", "visit", "same", "w"])
def test_what_breaks_a_declaration_is_refused_by_its_column(spoilt: str) -> None:
    told, domain, binding = people()
    options = binding | {"weight": "w", "weight_bounds": (0, 2)}
    if spoilt == "same":
        told["who"][:2], told["visit"][:2] = ["p1", "p1"], [7777, 7777]
    else:
        told[spoilt][5] = {"who": None, "visit": None, "w": 2.5}[spoilt]
    table = td.Table(
        frame({name: pa.array(values) for name, values in told.items()}), domain, name="p", **options
    )
    with pytest.raises(DataError, match={"same": "keep_by"}.get(spoilt, f"column '{spoilt}'")):
        table.counts()
    with pytest.raises(DataError):
        assert table.n_rows


def test_a_missing_value_is_refused_by_its_column() -> None:
    table = td.Table(frame({"age": pa.array([1, None])}), Domain(age=Integer(0, 9)))
    with pytest.raises(DataError, match="column 'age' holds a value that is null"):
        table.counts()
    with pytest.raises(DataError, match="column 'age' holds a value that is null"):
        list(table.codes())


def test_text_is_compared_letter_by_letter_whatever_its_collation() -> None:
    rows = session().sql(
        "SELECT collate(x, 'UTF8_LCASE_RTRIM') AS x FROM VALUES ('a'), ('A'), ('a '), ('b') AS t(x)"
    )
    domain = Domain(x=Categorical(["a", "A"], other="else"))
    assert td.Table(rows, domain).counts().dense.tolist() == [1, 1, 2]  # type: ignore[union-attr]
    assert td.Table(rows, domain, where={"x": ["a"]}).n_rows == 1


def test_sparse_domains_and_no_rows() -> None:
    domain = Domain(a=Integer(0, 10**9), b=Integer(0, 10**9))
    rows = frame({"a": pa.array([5, 5, 10**9]), "b": pa.array([7, 7, -1])})
    counts = td.Table(rows, domain).counts()
    assert counts.codes.tolist() == [5 * (10**9 + 1) + 7, 10**9 * (10**9 + 1)]  # type: ignore[union-attr]
    none = td.Table(rows.filter("a < 0"), domain)
    assert (none.counts().total, none.n_rows, len(next(iter(none.codes())))) == (0, 0, 0)


def test_the_session_is_left_as_it_was() -> None:
    spark = session()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        table = td.Table(frame({"age": pa.array(["1", "x"])}), Domain(age=Integer(0, 9)))
        with pytest.raises(DataError):
            table.counts()
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
        many = Categorical([f"k{i}" for i in range(100)], other="else")  # joined to a table of its own
        assert td.Table(frame({"x": pa.array(["k3"])}), Domain(x=many)).counts().total == 1
        assert not spark.catalog.listTables()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.ansi.enabled", "true")


@pytest.mark.parametrize("drawn", ["rand()", "uuid()", "monotonically_increasing_id()"])
def test_rows_that_are_drawn_anew_are_refused(drawn: str) -> None:
    rows = session().sql("SELECT 1 AS age").selectExpr("age", f"{drawn} AS more")
    with pytest.raises(SpecificationError, match="draws something at random"):
        td.Table(rows, Domain(age=Integer(0, 9)))


@pytest.mark.parametrize(
    "made, kind",
    [
        ("INTERVAL '1' YEAR", "interval"),
        ("DATE '2020-01-01'", "date"),
        ("array(1)", "array"),
        ("X'00'", "binary"),
        ("NULL", "null"),
    ],
)
def test_columns_of_other_kinds_are_refused_by_name(made: str, kind: str) -> None:
    with pytest.raises(DataError, match=rf"column 'x' is \w*{kind}"):
        td.Table(session().sql(f"SELECT {made} AS x"), Domain(x=Integer(0, 9)))


def test_without_pyspark_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(age=Integer(0, 9))
    for name in [m for m in sys.modules if m.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unsupported, match=r"install tetraodon\[spark\]"):
        td.Table("pyspark://", domain, table="people")


FILE = """
[data]
source = "pyspark://"
sql = "SELECT * FROM parquet.`{file}`"
name = "people"
[domain.age]
integer = [0, 9]
[domain.region]
categorical = ["n", "s"]
[policy.secrets]
age = "full"
[budget]
epsilon = 2
ledger = "people.ledger"
[[release]]
name = "ages"
epsilon = "1/2"
query = {{ histogram = ["age"], by = ["region"] }}
[[release]]
name = "rows"
rows = ["age"]
keep = ["region"]
epsilon = "1/2"
channel = {{ kind = "exponential" }}
"""


def test_a_settings_file_names_a_table_of_spark(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    session()
    people = {"age": [int(v) for v in np.arange(300) % 7], "region": ["n", "s", "s"] * 100}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    file = tmp_path / "release.toml"
    file.write_text(FILE.format(file=tmp_path / "people.parquet"), encoding="utf-8")
    code, explained, _ = run("explain", file)
    assert code == 0 and "Protected: age" in explained
    code, planned, _ = run("plan", file)
    assert code == 0 and "it fits" in planned and not (tmp_path / "people.ledger").exists()
    code, told, _ = run("release", file)
    assert code == 0 and "rows: epsilon 0.5, 300 rows, exponential" in told
    published = pq.read_table(tmp_path / "published" / "rows.parquet")
    assert published["region"].to_pylist().count("n") == 100
    assert pq.read_table(tmp_path / "published" / "ages.parquet").num_rows == 20
    assert (
        run("ledger", "verify", tmp_path / "people.ledger", tmp_path / "published" / "manifest.json")[0] == 0
    )
    code, _, refused = run("release", file)
    assert code == 1 and "nothing spent" in refused.lower()


CANARY = """
import sys
import tetraodon as td
from tetraodon.errors import TetraodonError

url, file = "pyspark://?spark.master=local[2]&spark.sql.shuffle.partitions=2", sys.argv[1]
domain = td.Domain(age=td.Integer(0, 9))
people = td.Table(url, domain, sql=f"SELECT age FROM parquet.`{file}`")
print(people.counts().dense.tolist())
print(sum(len(cells) for cells in people.codes()))

from pyspark.sql import SparkSession

spark = SparkSession.getActiveSession()
spark.sparkContext.setLogLevel("WARN")
rows = spark.sql("SELECT CAST(x AS INT) AS age, x FROM VALUES ('1'), ('canary-7391') AS t(x)")
for read in ("counts", "rows", "n_rows"):
    try:
        table = td.Table(rows, domain, where={"x": ["1", "canary-7391"], "age": (0, 9)})
        list(table.rows()) if read == "rows" else table.counts() if read == "counts" else table.n_rows
    except TetraodonError as error:
        assert error.__cause__ is None and error.__context__ is None
        print(error)
"""


def test_a_url_starts_a_session_and_what_spark_says_of_a_failure_is_withheld_from_errors_and_logs(
    tmp_path: Path,
) -> None:
    session()
    pq.write_table(pa.table({"age": [1, 1, 7]}), tmp_path / "people.parquet")
    other = tmp_path / "python3"  # the first of the path, which Spark would take for its workers
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o700)
    told = [sys.executable, "-W", "ignore", "-c", CANARY, str(tmp_path / "people.parquet")]
    path = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    path.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(told, capture_output=True, text=True, check=True, env=path)
    assert done.stdout.splitlines()[:2] == ["[0, 2, 0, 0, 0, 0, 0, 1, 0, 0]", "3"]
    assert done.stdout.count("table: reading failed") == 3
    assert "canary" not in done.stdout + done.stderr
    assert "CAST_INVALID" not in done.stdout + done.stderr


WITHOUT = """
import tetraodon as td

domain = td.Domain(age=td.Integer(0, 2))
print(td.Table({"age": [1]}, domain).counts().dense.tolist())
try:
    td.Table("pyspark://", domain, table="people")
except td.errors.Unsupported as error:
    print(error)
"""


def test_without_java_one_line_says_what_to_install() -> None:
    pytest.importorskip("pyspark")
    told = [sys.executable, "-W", "ignore", "-c", WITHOUT]
    done = subprocess.run(
        told, capture_output=True, text=True, check=True, env={**os.environ, "JAVA_HOME": "/nowhere"}
    )
    assert done.stdout.splitlines() == ["[0, 1, 0]", engine.NO_JAVA]
    assert done.stderr == ""
