"""Tables: every kind of source gives the same counts; what cannot be read is refused by name; nothing is written."""

from __future__ import annotations

import csv
import gzip
import os
import random
import sqlite3
from collections import Counter
from decimal import Decimal
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
from hypothesis import given, settings
from hypothesis import strategies as st

import tetraodon.counting
from tetraodon import Categorical, Domain, Integer, Numeric, Table
from tetraodon.errors import DataError, EngineError, SpecificationError, Unsupported
from tetraodon.files import SPARE
from tetraodon.table import Counts

DOMAIN = Domain(
    age=Integer(0, 99, step=10, missing="secret"),
    height=Numeric(0, 2, width="0.1", missing="secret"),
    sex=Categorical(["Female", "Male"], other="Unknown", missing="public"),
    region=Categorical([f"R{i}" for i in range(80)], other="elsewhere", missing="public"),
)
DATA: dict[str, list[Any]] = {
    "age": [3, 17, None, 99, 250, -4, 42, 3],
    "height": [0.3, 1.7, 2.0, None, -1.0, 0.29999999999999999, 1.0, 0.3],
    "sex": ["Male", "Female", None, "male", "Male ", "Female", "Féminin", "Male"],
    "region": ["R0", "R79", "R80", "r0", None, "R7", "R64", "R0"],
}
ARROW = pa.table(DATA)


def expected(domain: Domain = DOMAIN, data: dict[str, list[Any]] = DATA) -> Counter[int]:
    return Counter(domain.encode([a.cells(data[a.column or n]) for n, a in domain.items()]).tolist())


def counted(counts: Counts) -> Counter[int]:
    return Counter(
        {int(c): int(n) for codes, numbers in counts.items() for c, n in zip(codes, numbers, strict=True)}
    )


def write_csv(path: Path, delimiter: str = ",", end: str = "\n") -> Path:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(DATA)
        writer.writerows(("" if v is None else v for v in row) for row in zip(*DATA.values(), strict=True))
    return path


def duckdb_file(path: Path, query: str = "SELECT * FROM rows", **tables: pa.Table) -> Path:
    with duckdb.connect(str(path)) as connection:
        for name, table in tables.items():
            connection.register("rows", table)
            connection.execute(f'CREATE TABLE "{name}" AS {query}')
    return path


def written(kind: str, folder: Path) -> dict[str, Any]:
    """Arguments of ``Table`` for the same rows in one of the kinds."""
    file = folder / f"people.{kind}"
    if kind in ("csv", "csv.gz"):
        return {"source": write_csv(file), "null": [""]}
    if kind == "tsv":
        return {"source": str(write_csv(file, "\t", "\r\n")), "null": [""]}
    if kind == "semicolon":
        return {"source": write_csv(folder / "semicolon.csv", ";"), "null": [""]}
    if kind == "parquet":
        pyarrow.parquet.write_table(ARROW, file, row_group_size=3)
        return {"source": file}
    if kind in ("feather", "arrow"):
        pyarrow.feather.write_feather(
            ARROW, file, compression="zstd" if kind == "feather" else "uncompressed", chunksize=3
        )
        return {"source": file}
    if kind == "url":
        return {
            "source": f"duckdb://{duckdb_file(folder / 'people.duckdb', people=ARROW)}",
            "table": "people",
        }
    frame = pd.DataFrame(DATA)
    return {
        "source": {
            "dict": DATA,
            "dict of arrays": {n: pd.Series(v).to_numpy() for n, v in DATA.items()},
            "pandas": frame,
            "pandas objects": frame.astype(object),
            "pandas categories": frame.astype("category"),
            "pandas nullable": frame.convert_dtypes(),
            "pandas arrow": pd.DataFrame({n: pd.Series(v, dtype=pd.ArrowDtype(ARROW[n].type)) for n, v in DATA.items()}),
            "polars": pl.DataFrame(DATA),
            "polars lazy": pl.LazyFrame(DATA),
            "polars categories": pl.DataFrame(DATA, schema_overrides={"sex": pl.Categorical, "region": pl.Categorical}),
            "pyarrow": ARROW,
            "pyarrow dictionaries": pa.table({n: pa.chunked_array([c.slice(0, 3).combine_chunks().dictionary_encode(), c.slice(3).combine_chunks().dictionary_encode()]) for n, c in zip(DATA, ARROW.columns, strict=True)}),
            "record batch": ARROW.combine_chunks().to_batches()[0],
            "ibis": ibis.memtable(ARROW),
        }[kind]
    }  # fmt: skip


KINDS = [
    "csv", "csv.gz", "tsv", "semicolon", "parquet", "feather", "arrow", "url", "dict", "dict of arrays", "pandas",
    "pandas objects", "pandas categories", "pandas nullable", "pandas arrow", "polars", "polars lazy",
    "polars categories", "pyarrow", "pyarrow dictionaries", "record batch", "ibis",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_counts(kind: str, tmp_path: Path) -> None:
    table = Table(domain=DOMAIN, **written(kind, tmp_path))
    counts = table.counts()
    assert counted(counts) == expected()
    assert counts.dense is not None
    assert counts.dense.dtype == np.int64 and counts.total == counts.dense.sum() == table.n_rows == 8
    some = table.counts("sex", "age")
    assert some.domain.names == ("age", "sex")
    assert counted(some) == expected(DOMAIN.select("age", "sex"))


def test_names(tmp_path: Path) -> None:
    domain = DOMAIN.select("age")
    file = write_csv(tmp_path / "a.b.csv.gz")
    assert Table(file, domain).name == "a.b"
    assert Table(file, domain, name="tax", edition="2025").name == "tax"
    assert Table(DATA, domain).name == "table"
    url = f"duckdb://{duckdb_file(tmp_path / 'x.duckdb', people=ARROW)}"
    assert Table(url, domain, table="people").name == "people"


def test_nothing_is_shown() -> None:
    table = Table(DATA, DOMAIN, edition="2025")
    assert repr(table) == f"Table('table', edition '2025': table, {DOMAIN!r})"
    counts = table.counts("age")
    assert repr(counts) == str(counts) == "Counts(11 cells of age)"


def test_counts_are_read_only_and_comparable() -> None:
    one, two = Table(DATA, DOMAIN).counts(), Table(ARROW, DOMAIN).counts()
    assert one == two and hash(one) == hash(two)
    assert one != Table({n: v[:-1] for n, v in DATA.items()}, DOMAIN).counts()
    assert one.dense is not None
    with pytest.raises(ValueError, match="read-only"):
        one.dense[0] = 1


# Sizes


@pytest.mark.parametrize("n", [0, 1, 8])
@pytest.mark.parametrize("kind", ["dict", "parquet", "csv"])
def test_no_row_and_one(n: int, kind: str, tmp_path: Path) -> None:
    data = {name: values[:n] for name, values in DATA.items()}
    source: Any = data
    if kind == "parquet":
        pyarrow.parquet.write_table(ARROW.slice(0, n), source := tmp_path / "x.parquet")
    if kind == "csv":
        lines = write_csv(tmp_path / "x.csv").read_text().splitlines()
        (source := tmp_path / "x.csv").write_text("\n".join(lines[: n + 1]))
    counts = Table(source, DOMAIN, null=[""]).counts()
    assert counted(counts) == expected(data=data) and counts.total == n


def test_columns_without_any_value() -> None:
    nothing: dict[str, list[Any]] = {name: [None] * 5 for name in DATA}
    for source in (nothing, pa.table(nothing), pl.DataFrame(nothing), pd.DataFrame(nothing)):
        assert counted(Table(source, DOMAIN).counts()) == expected(data=nothing)


def test_sparse_domains() -> None:
    rng = np.random.default_rng(5)
    values = {"a": rng.integers(0, 2**20, 5000), "b": rng.integers(0, 2**20, 5000)}
    values = {name: np.concatenate([v, v[:2000]]) for name, v in values.items()}
    domain = Domain(a=Integer(0, 2**20 - 1), b=Integer(0, 2**20 - 1))
    counts = Table(values, domain).counts()
    assert counts.dense is None and counts.codes is not None and counts.numbers is not None
    codes, numbers = np.unique(domain.encode(list(values.values())), return_counts=True)
    np.testing.assert_array_equal(counts.codes, codes)
    np.testing.assert_array_equal(counts.numbers, numbers)
    assert counts.total == 7000 and not counts.codes.flags.writeable


def test_a_domain_of_nearly_2_to_the_63_cells() -> None:
    domain = Domain(a=Integer(0, 2**31 - 1), b=Integer(0, 2**32 - 2))
    counts = Table({"a": [2**31 - 1, 0, 2**40], "b": [2**32 - 2, 0, 2**40]}, domain).counts()
    assert counted(counts) == {0: 1, domain.size - 1: 2}


def test_the_array_and_the_group_by_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = Table(DATA, DOMAIN).counts()
    monkeypatch.setattr(tetraodon.counting, "DENSE", 0)
    assert Table(DATA, DOMAIN).counts() == dense


def test_collect_sums_chunks_in_any_order_and_refuses_what_no_engine_should_return() -> None:
    big = Domain(a=Integer(0, 2**40))
    one = Counts.collect(big, [([5, 7, 9], [1, 2, 0]), ([0, 7], [4, 8])])
    assert one == Counts.collect(big, [([7, 0, 5], [10, 4, 1])]) and one.total == 15
    small = Domain(a=Integer(0, 9))
    for domain in (big, small):
        assert Counts.collect(domain, []).total == 0
        for chunk in ([-1], [1]), ([domain.size], [1]), ([0], [-1]):
            with pytest.raises(EngineError):
                Counts.collect(domain, [chunk])


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.binary(max_size=2),
            st.decimals(), st.fractions(), st.dates(), st.sampled_from(["1", " 2 ", "1e999", np.float32(0.1), pd.NA, pd.NaT]),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_mixed_columns_are_read_element_by_element(values: list[Any]) -> None:
    domain = Domain(
        i=Integer(0, 9, missing="secret"),
        n=Numeric(0, 1, cells=7, missing="secret"),
        c=Categorical([0, 1, 2], other="other", missing="secret"),
        t=Categorical(["1", "true", "0.5"], other="other", missing="secret"),
    )
    one_by_one = Counter(code for v in values for code in expected(domain, {name: [v] for name in domain}))
    assert expected(domain, dict.fromkeys(domain, values)) == one_by_one
    assert counted(Table(dict.fromkeys(domain, values), domain).counts()) == one_by_one
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name in domain})
    assert counted(Table(frame, domain).counts()) == one_by_one


def test_unusual_types() -> None:
    domain = Domain(x=Numeric(0, 4, cells=16, missing="secret"))
    values = [0.5, 2.25, None, 3.0]
    columns: list[Any] = [
        pa.array(np.array([0.5, 2.25, np.nan, 3.0], np.float16)),
        pa.array([Decimal("0.5"), Decimal("2.25"), None, Decimal(3)], pa.decimal256(60, 20)),
        np.ma.masked_array([0.5, 2.25, 7.0, 3.0], mask=[False, False, True, False]),  # type: ignore[no-untyped-call]
        np.array([0.5, 2.25, np.nan, 3.0], ">f8"),
        np.array([0.5, 2.25, np.nan, 3.0], np.float16),
        np.array([0.5, 2.25, np.nan, 3.0], np.longdouble),
        np.array(["0.5", "2.25", "", "3"]),
        pl.Series([0.5, 2.25, None, 3.0], dtype=pl.Object),
        pd.Series([0.5, 2.25, None, 3.0]).astype("category").cat.set_categories([3.0, 2.25, 0.5]),
        pd.Series([0.5, 2.25, None, 3.0], dtype="Float32"),
    ]
    for column in columns:
        assert counted(Table({"x": column}, domain).counts()) == expected(domain, {"x": values})


# CSV


def csv_counts(tmp_path: Path, body: str, **options: Any) -> list[int]:
    file = tmp_path / "rows.csv"
    file.write_bytes(body.encode("utf-8", "surrogateescape"))
    domain = Domain(
        a=Integer(0, 9, missing="secret"), b=Categorical(["x", "y\nz"], other="o", missing="secret")
    )
    counts = Table(file, domain, **options).counts()
    return sorted(c for c, n in counted(counts).items() for _ in range(n))


def test_csv_rows_too_short_and_too_long_change_no_other_row(tmp_path: Path) -> None:
    good = csv_counts(tmp_path, "a,b\n1,x\n2,x\n")
    short = csv_counts(tmp_path, "a,b\n1,x\n3\n2,x\n")
    spare = "," * SPARE
    long = csv_counts(tmp_path, f'a,b\n1,x\n3,x{spare}\n2,"x","q"\n')
    assert good == [1 * 4, 2 * 4] and short == [4, 8, 3 * 4 + 2] and long == [4, 8, 12]
    with pytest.raises(EngineError, match=r"rows.csv: reading failed"):
        csv_counts(tmp_path, f"a,b\n1,x\n3,x{spare},q\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_quotes(tmp_path: Path, end: str) -> None:
    body = end.join(["\ufeffb,a", '"y\nz",1', '"x",2', '"a,""b""",3', '"",4', ",5", "", "x,6"])
    assert csv_counts(tmp_path, body) == [1 * 4 + 1, 2 * 4, 3 * 4 + 2, 4 * 4 + 2, 5 * 4 + 2, 6 * 4]
    assert csv_counts(tmp_path, body, null=[""]) == [5, 8, 14, 4 * 4 + 3, 5 * 4 + 3, 24]


@pytest.mark.parametrize(
    "body",
    [
        'a,b\n1,x\n2,"x\n3,x\n',
        'a,b\n1,x\n2,"x" y\n',
        "a,b\n1,x\r\n2,x\n3,x\n",
        "a,b\n1,\udcff\n",
        'a,b\n1,"x',
    ],
    ids=["open quote", "text after quote", "mixed line ends", "not UTF-8", "open quote at the end"],
)
def test_a_malformed_csv_file_is_refused_by_name(tmp_path: Path, body: str) -> None:
    with pytest.raises(EngineError, match=r"rows.csv: reading failed .* close every quote"):
        csv_counts(tmp_path, body)


def test_csv_quoted_line_ends_in_a_large_file(tmp_path: Path) -> None:
    """Large enough for several of the reader's buffers; quoted text looks like rows."""
    rng = random.Random(1)
    texts = ["x", "y\nz", "1,x\n2,x\n3,x\n", '"', "\n\n", "1\n"]
    rows = [(rng.randrange(10), rng.choice(texts), "-" * 400) for _ in range(100_000)]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["a", "b", "c"])
        writer.writerows(rows)
    domain = Domain(a=Integer(0, 9), b=Categorical(["x", "y\nz"], other="o"))
    counts = Table(tmp_path / "rows.csv", domain).counts()
    assert counted(counts) == Counter(a * 3 + {"x": 0, "y\nz": 1}.get(b, 2) for a, b, _ in rows)


@pytest.mark.parametrize("body", ["", "\n", "17,Male\n18,Female\n"])
def test_a_csv_file_without_a_header(tmp_path: Path, body: str) -> None:
    (tmp_path / "x.csv").write_text(body)
    with pytest.raises(DataError, match=r"x.csv: no column '.*' in its first line") as caught:
        Table(tmp_path / "x.csv", DOMAIN)
    assert "17" not in str(caught.value) and "Male" not in str(caught.value)


# What is refused


def test_missing_refuse_names_the_first_such_column() -> None:
    domain = Domain(
        age=Integer(0, 99, missing="secret"), h=Numeric(0, 2, cells=2, column="height"), sex=Categorical(["Male", "Female"])
    )  # fmt: skip
    table = Table(DATA, domain)
    with pytest.raises(DataError, match=r"column 'height' holds a value .* attribute 'h'"):
        table.counts()
    with pytest.raises(DataError, match=r"column 'sex' .* or other= for values that are not listed"):
        table.counts("sex")
    assert table.counts("age").total == 8
    arrow = Domain(a=Integer(0, 2**40), age=Integer(0, 99))  # sparse
    with pytest.raises(DataError, match="column 'age'"):
        Table({"a": [1, 2], "age": [1, 2.5]}, arrow).counts()


def test_missing_refuse_in_a_file_that_is_read_in_batches(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(ARROW, tmp_path / "x.arrow", chunksize=2)
    with pytest.raises(DataError, match=r"x.arrow: column 'age'"):
        Table(tmp_path / "x.arrow", Domain(age=Integer(0, 99))).counts()


def test_unknown_columns(tmp_path: Path) -> None:
    domain = Domain(ages=Integer(0, 9))
    pyarrow.parquet.write_table(ARROW, tmp_path / "x.parquet")
    for source in (DATA, ARROW, pd.DataFrame(DATA), tmp_path / "x.parquet", ibis.memtable(ARROW)):
        with pytest.raises(DataError, match=r"no column 'ages'; the table has age, .*Did you mean 'age'\?"):
            Table(source, domain)
    (tmp_path / "x.csv").write_text("age,sex\n1,2\n")
    with pytest.raises(DataError, match=r"x.csv: no column 'agee' in its first line"):
        Table(tmp_path / "x.csv", Domain(sex=Integer(0, 1), agee=Integer(0, 1)))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True]), pd.Series(pd.to_datetime(["2020-01-01"])), pd.Series(pd.period_range("2020", periods=1)),
        pd.Series([pd.Interval(0, 1)]), pd.Series([pd.Interval(0, 1)]).astype("category"), np.array(["2020"], "M8[D]"),
        np.array([b"1"]), np.array([1j]), pa.array([[1]]), pa.array([b"1"]), pl.Series([[1]]), pl.Series([True]),
        np.array([[1]]), "text", 3,
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_types_that_are_no_numbers(column: Any) -> None:
    with pytest.raises(DataError, match="column 'x'"):
        Table({"x": column}, Domain(x=Integer(0, 1, missing="secret")))


def test_columns_of_different_lengths() -> None:
    with pytest.raises(DataError, match="not equally long"):
        Table({"age": [1], "sex": []}, DOMAIN.select("age", "sex"))


def test_missing_files(tmp_path: Path) -> None:
    for source in (tmp_path / "no.parquet", str(tmp_path / "no.csv"), tmp_path / "no.arrow"):
        with pytest.raises(DataError, match=r"no\.\w+: no such file"):
            Table(source, DOMAIN)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(DataError, match="a folder"):
        Table(tmp_path / "folder.parquet", DOMAIN)
    with pytest.raises(DataError, match=r"x.xlsx: not one of \.parquet"):
        Table(tmp_path / "x.xlsx", DOMAIN)
    with pytest.raises(DataError, match="opened by duckdb://"):
        Table(tmp_path / "x.duckdb", DOMAIN)
    with pytest.raises(DataError, match=r"typo.db: no such file"):
        Table(f"duckdb://{tmp_path}/typo.db", DOMAIN, table="people")
    assert {p.name for p in tmp_path.iterdir()} == {"folder.parquet"}


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "duckdb"])
def test_files_that_are_something_else(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"x.{suffix}"
    file.write_text("age,secret\n1,2\n" * 50)
    source = f"duckdb://{file}" if suffix == "duckdb" else file
    with pytest.raises(EngineError, match=rf"x.{suffix}: opening failed"):
        Table(source, DOMAIN, **({"table": "t"} if suffix == "duckdb" else {}))


def test_unsupported_sources() -> None:
    with pytest.raises(Unsupported, match="no engine for foo://"):
        Table("foo://user:password@host/base", DOMAIN, table="t")
    with pytest.raises(Unsupported, match="not set"):
        Table({1, 2}, DOMAIN)
    with pytest.raises(Unsupported, match="the polars frame itself"):
        Table(ibis.polars.connect({"t": pl.DataFrame(DATA)}).table("t"), DOMAIN)
    with pytest.raises(DataError, match="only a URL names a table"):
        Table(DATA, DOMAIN, table="people")


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(url: str) -> None:
        raise ModuleNotFoundError(url)

    monkeypatch.setattr(ibis, "connect", absent)
    with pytest.raises(Unsupported, match=r"mysql: install ibis-framework\[mysql\]") as caught:
        Table("mysql://user:password@host/base", DOMAIN, table="people")
    assert "password" not in str(caught.value)


def test_wrong_options() -> None:
    with pytest.raises(SpecificationError, match="no option 'nul'"):
        Table(DATA, DOMAIN, nul=["?"])
    for options in ({"null": "?"}, {"null": [1]}, {"null": ["a\0"]}, {"name": 3}, {"edition": 2025}):
        with pytest.raises(SpecificationError):
            Table(DATA, DOMAIN, **options)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="never inferred"):
        Table(DATA, {"age": Integer(0, 1)})  # type: ignore[arg-type]


# Databases


def test_duckdb_files_are_opened_read_only(tmp_path: Path) -> None:
    file = duckdb_file(tmp_path / "people's [1] file.duckdb", people=ARROW)
    before = (file.read_bytes(), sorted(os.listdir(tmp_path)))
    table = Table(f"duckdb://{file}", DOMAIN, table="people")
    assert counted(table.counts()) == expected()
    assert (file.read_bytes(), sorted(os.listdir(tmp_path))) == before
    file.chmod(0o400)
    assert table.n_rows == 8
    with table._source.opened() as (backend, _), pytest.raises(duckdb.Error, match="read-only"):
        backend.con.execute("CREATE TABLE source.main.more (x INTEGER)")
    with pytest.raises(DataError, match="table= must name a table; the file has people"):
        Table(f"duckdb://{file}", DOMAIN)
    with pytest.raises(DataError, match="no table 'persons'; the file has people"):
        Table(f"duckdb://{file}", DOMAIN, table="persons")
    with pytest.raises(DataError, match="give the path of a file"):
        Table("duckdb://", DOMAIN, table="people")


def test_duckdb_schemas_views_and_collations(tmp_path: Path) -> None:
    file = tmp_path / "x.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(
            "CREATE SCHEMA s; CREATE TABLE s.t (sex VARCHAR COLLATE NOCASE, e ENUM ('a', 'b'))"
        )
        connection.execute("INSERT INTO s.t VALUES ('Male', 'a'), ('MALE', 'b'), (NULL, NULL)")
        connection.execute("CREATE VIEW v AS SELECT * FROM s.t")
    domain = Domain(
        sex=Categorical(["Male"], other="o", missing="public"), e=Categorical(["b", "a"], missing="public")
    )
    for name in ("s.t", "v"):
        counts = Table(f"duckdb://{file}", domain, table=name).counts()
        assert counted(counts) == {0 * 3 + 1: 1, 1 * 3 + 0: 1, 2 * 3 + 2: 1}


def test_an_ibis_table_of_sqlite_is_refused_by_name(tmp_path: Path) -> None:
    """Text in an INTEGER column of SQLite sorts above every number, so it would land in the top cell."""
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE people (age INTEGER)")
        connection.execute("INSERT INTO people VALUES ('abc')")
    connection.close()
    opened = ibis.sqlite.connect(tmp_path / "x.db")
    with pytest.raises(Unsupported, match="give the URL of the SQLite file"):
        Table(opened.table("people"), Domain(age=Integer(0, 9)))
    opened.disconnect()


def test_what_an_engine_spills_is_private_and_removed() -> None:
    source = Table(DATA, DOMAIN)._source
    for failure in (None, KeyError):
        try:
            with source.opened() as (backend, _):
                spill = Path(backend.con.execute("SELECT current_setting('temp_directory')").fetchone()[0])
                spill.mkdir()
                (spill / "rows.tmp").write_text("1")
                assert spill.parent.stat().st_mode & 0o777 == 0o700
                if failure:
                    raise failure
        except KeyError:
            pass
        assert not spill.parent.exists()


@pytest.mark.parametrize(
    "body",
    ['age,"sex\n31,f\n45,SECRET\n', "31,sex\n45,SECRET\n", "SECRET,age\n1,2\n"],
    ids=["open quote", "row", "names"],
)
def test_the_first_line_of_a_csv_file_is_never_quoted(tmp_path: Path, body: str) -> None:
    (tmp_path / "x.csv").write_text(body)
    domain = Domain(age=Integer(0, 99), sex=Categorical(["f", "m"]))
    with pytest.raises(DataError) as caught:
        Table(tmp_path / "x.csv", domain)
    assert "SECRET" not in str(caught.value) and "31" not in str(caught.value)
