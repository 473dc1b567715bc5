"""One behaviour on every engine: the same rows give the same cells, people, weights and releases, and errors tell nothing."""

from __future__ import annotations

import math
import traceback
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened import ENGINES, seen, server

import tetraodon as td
from tetraodon import Categorical, Domain, Integer, Numeric, Point, Table
from tetraodon.errors import DataError, EngineError, SpecificationError, TetraodonError, Unsupported
from tetraodon.table import Counts

CANARY = "canary 987654321"
INF, NAN = float("inf"), float("nan")
ROWS = pa.table(
    {
        "id": pa.array(list(range(1, 25)), "int64"),
        'who "is" it': pa.array([f"p{i % 5}" for i in range(24)]),
        "Order by": pa.array([0, 1, -1, 7, 99, 100, 101, -32768, 32767, None, 12, 13, *range(12)], "int16"),
        "WHOLE": pa.array([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None, 0, 5, 6, 8, 9, 10, *range(30, 42)], "int64"),
        "float": pa.array([0.0, -0.0, 0.1, 0.3, 0.30000000000000004, 0.7, 1.0, 1.5, 2.0, 1e308, -1e308, 5e-324, NAN, INF, -INF, None, 3.0, 12.0, 2.5, 0.29999999999999993, 1e19, -1e19, 2.0**53, 0.5]),
        "money": pa.array([None if i == 3 else Decimal(7 * i - 20).scaleb(-1) for i in range(24)], pa.decimal128(9, 2)),
        "long money": pa.array([None if i == 3 else Decimal(10**19 + i).scaleb(-20) for i in range(24)], pa.decimal128(30, 20)),
        "text": pa.array(["", " ", "a", "A", "a ", "a  ", " a", "é", "e\u0301", "x'y", 'q"q', "\\", "%s", "a\nb", "日本", "?", "NA", None, "true", "True", "\u00a0", "ß", "a;--", "{}"]),
        "number": pa.array(["1", " 12 ", "12\t", "\v3\f", "1\n", "1e3", "2.50", ".5", "5.", "-0", "007", "+3", "1e999", "-1e999", "1e-999", "inf", "NaN", "1_0", "0x10", "١٢", "1,5", "", None, "0." + "0" * 400 + "1"]),
        "yes": pa.array([None if i % 3 == 2 else i % 3 == 1 for i in range(24)]),
        "weight": pa.array([0.05 + 0.2 * i for i in range(24)]),
        "lat": pa.array([None if i == 2 else i / 10 for i in range(24)], "float64"),
        "lon": pa.array([NAN if i == 3 else 2.4 - i / 10 for i in range(24)], "float64"),
        "day": pa.array([date(2020, 1, 1 + i) for i in range(24)]),
        "moment": pa.array([datetime(2020, 1, 1, i, 30) for i in range(24)], pa.timestamp("us")),
    }
)  # fmt: skip
COLUMNS: dict[str, list[Any]] = {name: ROWS[name].to_pylist() for name in ROWS.column_names}
TEXTS = sorted({t for t in COLUMNS["text"] if t})
MANY = [*TEXTS, *(f"r{i}" for i in range(80)), "nul \0 byte"]

ATTRIBUTES: dict[str, Any] = {
    "small integers": Integer(0, 99, step=7, missing="secret", column="Order by"),
    "small integers as text": Categorical(["0", "7", "99"], other="else", missing="secret", column="Order by"),
    "small integers as codes": Categorical([0, 7, 99, 40000], other="else", missing="secret", column="Order by"),
    "small integers in intervals": Numeric("-0.5", 40, cells=9, missing="secret", column="Order by"),
    "large integers": Integer(-(2**53), 2**53, step=3, missing="secret", column="WHOLE"),
    "large integers as codes": Categorical([2**53, -(2**53), 5], other="else", missing="secret", column="WHOLE"),
    "joined integers": Categorical(range(100), other="else", missing="secret", column="WHOLE"),
    "doubles": Numeric(0, 2, width="0.1", missing="secret", column="float"),
    "doubles in one cell": Numeric(0, 2, cells=1, missing="secret", column="float"),
    "whole doubles": Integer(0, 12, missing="public", column="float"),
    "doubles as codes": Categorical([0, 1, 2, 3], other="else", missing="secret", column="float"),
    "joined doubles": Categorical(range(100), missing="secret", column="float"),
    "decimals": Numeric(-2, 12, width="0.7", missing="secret", column="money"),
    "whole decimals": Integer(-2, 14, missing="secret", column="money"),
    "long decimals": Numeric(0, 1, cells=10, missing="secret", column="long money"),
    "text": Categorical([t for t in TEXTS if t != "?"], missing="secret", column="text"),
    "text and other": Categorical(["a", "é", "x'y", 'q"q', "\\", ""], other="else", missing="secret", column="text"),
    "joined text": Categorical(MANY, missing="secret", column="text"),
    "joined text and other": Categorical(["a", *(f"r{i}" for i in range(80))], other="else", missing="secret", column="text"),
    "numbers in text": Integer(0, 12, missing="secret", column="number"),
    "numbers in text in intervals": Numeric(0, 12, width="0.5", missing="secret", column="number"),
    "codes in text": Categorical([0, 1, 3, 12], other="else", missing="secret", column="number"),
    "truth values": Categorical(["true"], other="else", missing="secret", column="yes"),
    "places": Point("lat", "lon", box=((0, 2), (0, 2)), cell="0.5", metric="planar", unit="km", missing="secret"),
}  # fmt: skip

engines = pytest.mark.parametrize("engine", ENGINES)


def opened(engine: str, folder: Path, domain: Domain, rows: pa.Table = ROWS, **options: Any) -> Table:
    return Table(domain=domain, **ENGINES[engine](rows, folder), **options)


def counted(counts: Counts) -> Counter[int]:
    return Counter(
        {int(c): int(n) for codes, told in counts.items() for c, n in zip(codes, told, strict=True)}
    )


def cells(engine: str, attribute: Any, null: tuple[str, ...] = ()) -> list[int]:
    """The cell of each row by the definition."""
    told = [
        [None if isinstance(v, str) and v in null else v for v in seen(engine, COLUMNS[c])]
        for c in attribute.columns("x")
    ]
    return [int(c) for c in attribute.cells(list(zip(*told, strict=True)) if len(told) > 1 else told[0])]


@engines
def test_counts_equal_the_definition(engine: str, tmp_path: Path) -> None:
    given = ENGINES[engine](ROWS, tmp_path)
    for name, attribute in ATTRIBUTES.items():
        found = counted(Table(domain=Domain(x=attribute), **given).counts())
        assert found == Counter(cells(engine, attribute)), name


@engines
def test_several_columns_and_texts_that_count_as_null(engine: str, tmp_path: Path) -> None:
    chosen = {n: ATTRIBUTES[n] for n in ("small integers", "text and other", "numbers in text", "places")}
    null = ("?", "", "12\t")
    domain = Domain({f"a{i}": a for i, a in enumerate(chosen.values())})
    table = opened(engine, tmp_path, domain, null=null)
    told = [cells(engine, a, null) for a in chosen.values()]
    expected = [int(domain.encode(row)) for row in zip(*told, strict=True)]
    assert counted(table.counts()) == Counter(expected)
    assert Counter(code for part in table.codes() for code in part.tolist()) == Counter(expected)
    assert table.n_rows == 24


@engines
def test_a_sparse_domain_is_grouped(engine: str, tmp_path: Path) -> None:
    domain = Domain(
        w=Integer(0, 2**31 - 2, missing="secret", column="WHOLE"), i=Integer(0, 2**20, column="id")
    )
    expected = zip(cells(engine, domain["w"]), cells(engine, domain["i"]), strict=True)
    found = opened(engine, tmp_path, domain).counts()
    assert counted(found) == Counter(int(domain.encode(row)) for row in expected)


@engines
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"text": ["a", "é", "\\"]}, [2, 7, 11]),
        ({"Order by": {"between": [7, "100.5"]}}, [3, 4, 5, 10, 11, 19, 20, 21, 22, 23]),
        ({"number": {"between": [3, 12]}, "yes": ["true"]}, [1, 10]),
    ],
)
def test_chosen_rows(engine: str, where: Any, kept: list[int], tmp_path: Path) -> None:
    table = opened(engine, tmp_path, Domain(id=Integer(1, 24)), where=where)
    assert counted(table.counts()) == Counter(kept)


@engines
def test_rows_of_a_person_and_weights(engine: str, tmp_path: Path) -> None:
    """Kept rows are those of the least SHA-256 (``selecting``), the same on every engine; so are steps of a weight."""
    from hashlib import sha256

    who = 'who "is" it'
    domain = Domain(x=Integer(0, 99, missing="secret", column="Order by"))
    options = {"id": who, "max_rows_per_id": 2, "keep_by": "id", "name": "people"}
    salt = sha256(b"people").hexdigest()

    def mark(row: int) -> str:
        return sha256(f"{salt}:{COLUMNS[who][row]}:{COLUMNS['id'][row]}".encode()).hexdigest()

    kept = [
        row
        for p in sorted(set(COLUMNS[who]))
        for row in sorted((r for r in range(24) if COLUMNS[who][r] == p), key=mark)[:2]
    ]
    found = cells(engine, domain["x"])
    assert counted(opened(engine, tmp_path, domain, **options).counts()) == Counter(found[r] for r in kept)
    weighted = opened(
        engine, tmp_path, domain, **options, weight="weight", weight_bounds=(0, 5), weight_step="0.1"
    )
    expected: Counter[int] = Counter()
    for row in kept:
        expected[found[row]] += 2 * row + 1  # 0.05 + 0.2·row, rounded half up
    assert counted(weighted.counts()) == expected
    any_two = {"id": who, "max_rows_per_id": 2}
    assert opened(engine, tmp_path, domain, **any_two).counts().total == 10


@engines
def test_rows_and_columns_beside_them(engine: str, tmp_path: Path) -> None:
    attribute = ATTRIBUTES["text and other"]
    table = opened(engine, tmp_path, Domain(x=attribute))
    found = [
        (int(c), str(k), i)
        for batch in table.rows("x", keep=["id"], ident="id")
        for c, k, i in zip(batch.cells, batch.kept[0].to_pylist(), batch.ids.to_pylist(), strict=True)
    ]
    expected = [(c, str(i), str(i)) for c, i in zip(cells(engine, attribute), COLUMNS["id"], strict=True)]
    assert sorted(found) == sorted(expected)


@engines
def test_a_release_of_rows(engine: str, tmp_path: Path) -> None:
    domain = Domain(
        home=Point("lat", "lon", box=((0, 3), (0, 3)), cell=1, metric="planar", unit="km", missing="public"),
        yes=Categorical(["true"], other="else", missing="public"),
    )
    policy = td.Policy(domain, td.AttributeWise(home=td.Within(1)))
    session = td.Session(opened(engine, tmp_path, domain), policy, epsilon=1)
    made = session.release(
        td.Rows("home", keep=["yes"], channel={"kind": "planar-geometric"}), epsilon=1
    ).to_frame()
    assert len(made) == 24 and Counter(map(str, made["yes"])).most_common() == [
        (label, 8) for label in dict.fromkeys(map(str, made["yes"]))
    ]
    assert "canary" not in made.to_csv()


@engines
def test_no_rows(engine: str, tmp_path: Path) -> None:
    table = opened(engine, tmp_path, Domain(x=ATTRIBUTES["joined text"]), ROWS.slice(0, 0))
    assert counted(table.counts()) == Counter() and table.n_rows == 0
    assert sum(len(part) for part in table.codes()) == 0


# What is refused


def told(caught: TetraodonError) -> str:
    """Everything that a traceback of the error would show."""
    return "".join(traceback.format_exception(caught)[-1:]) + str(caught.__cause__) + str(caught.__context__)


@engines
def test_a_value_that_was_said_not_to_exist_names_its_column_alone(engine: str, tmp_path: Path) -> None:
    rows = pa.table({"a": [CANARY, "f", "f"], "b": ["1", "2", CANARY]})
    domain = Domain(a=Categorical(["f"], missing="secret"), second=Integer(0, 9, column="b"))
    with pytest.raises(DataError, match=r"column 'b' holds a value .* attribute 'second'") as caught:
        opened(engine, tmp_path, domain, rows).counts()
    assert "canary" not in told(caught.value)


@engines
def test_columns_that_are_not_there_or_of_a_wrong_type(engine: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'order by'; the table has id, .*Did you mean 'Order by'"):
        opened(engine, tmp_path, Domain(x=Integer(0, 9, column="order by")))
    if engine == "sqlite":  # where dates are text
        days = Domain(x=Categorical(["2020-01-03"], other="else", column="day"))
        assert counted(opened(engine, tmp_path, days).counts()) == {0: 1, 1: 23}
        return
    # A column of Python dates, which pandas makes of dates, is one of mixed objects: text.
    for column in ("moment",) if engine == "pandas" else ("day", "moment"):
        with pytest.raises(DataError, match=rf"column '{column}' is (date|timestamp)"):
            opened(engine, tmp_path, Domain(x=Integer(0, 9, column=column)))


@engines
def test_two_rows_of_one_key_are_refused_without_a_value(engine: str, tmp_path: Path) -> None:
    rows = pa.table({"who": [CANARY] * 3, "key": ["1", "1", CANARY], "x": [1, 2, 3]})
    table = opened(
        engine, tmp_path, Domain(x=Integer(0, 9)), rows, id="who", max_rows_per_id=2, keep_by="key"
    )
    for read in (table.counts, lambda: list(table.codes()), lambda: table.n_rows):
        with pytest.raises(DataError, match="two rows of one person, by column 'who'") as caught:
            read()
        assert "canary" not in told(caught.value)


QUERIES = {
    "duckdb-file": "CAST(text AS INTEGER)",
    "postgres": "CAST(text AS INTEGER)",
    "sqlite": "json(text)",
}


@pytest.mark.parametrize("engine", QUERIES)
def test_a_failing_query_shows_no_value(engine: str, tmp_path: Path) -> None:
    given = ENGINES[engine](pa.table({"text": [CANARY, "1"]}), tmp_path)
    name = given.pop("table").replace('"', '""')
    domain = Domain(x=Integer(0, 9, missing="secret"))
    sql = f'SELECT {QUERIES[engine]} AS x FROM "{name}"'
    with pytest.raises(EngineError, match=r"sql: (reading|opening) failed .*withheld") as caught:
        Table(domain=domain, sql=sql, **given).counts()
    assert "canary" not in told(caught.value) and "987654321" not in told(caught.value)
    good = f"SELECT CASE WHEN text = '1' THEN 7 END AS x FROM \"{name}\" WHERE text <> 'a''\\b' -- all"
    assert counted(Table(domain=domain, sql=good, **given).counts()) == {7: 1, 10: 1}


@pytest.mark.parametrize("engine", QUERIES)
@pytest.mark.parametrize(
    "sql", ["SELECT 1 AS x; DROP TABLE people", "DELETE FROM people", "SELECT random() AS x", "VACUUM"]
)
def test_a_query_reads(engine: str, sql: str, tmp_path: Path) -> None:
    given = ENGINES[engine](pa.table({"x": [1]}), tmp_path)
    del given["table"]
    with pytest.raises(SpecificationError, match="exactly one SELECT"):
        Table(domain=Domain(x=Integer(0, 9)), sql=sql, **given)


@pytest.mark.parametrize("engine", QUERIES)
def test_tables_that_are_not_there(engine: str, tmp_path: Path) -> None:
    given = ENGINES[engine](pa.table({"x": [1]}), tmp_path) | {"table": "no such table"}
    with pytest.raises(DataError, match=r"no (such )?table"):
        Table(domain=Domain(x=Integer(0, 9)), **given)


# SQLite


def test_values_of_one_column_of_sqlite_may_have_any_type(tmp_path: Path) -> None:
    """Each is read by its own type, which is how the definition reads a column of Python values."""
    import sqlite3
    from contextlib import closing

    values: list[Any] = [
        1, 2.5, 3.0, "4", " 5 ", "abc", "", None, b"6", INF, -INF, 2**53 + 1, -(2**63), "1e999", 1e-320, "é", "7\0", 8,
    ]  # fmt: skip
    file = tmp_path / "people.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE people (age INTEGER, anything)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(v, v) for v in values])
        connection.execute("INSERT INTO people VALUES (CAST(x'66ff' AS TEXT), CAST(x'66ff' AS TEXT))")
        connection.commit()
        stored = [row for (row,) in connection.execute("SELECT age FROM people LIMIT 18")]
    before = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())
    for column, held in (("anything", values), ("age", stored)):
        for attribute in (
            Integer(0, 9, missing="secret", column=column),
            Numeric(0, 9, cells=18, missing="secret", column=column),
            Categorical([1, 3, 4, 8], other="else", missing="secret", column=column),
            Categorical(["1", "2.5", "abc", "é", ""], other="else", missing="secret", column=column),
        ):
            table = Table(f"sqlite://{file}", Domain(x=attribute), table="people")
            assert counted(table.counts()) == Counter(attribute.cells([*held, "\ufffd"]).tolist())
    assert sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir()) == before
    cased = "SELECT 1 AS a, 2 AS A FROM people LIMIT 3"  # one name to SQLite
    assert counted(Table(f"sqlite://{file}", Domain(a=Integer(0, 9)), sql=cased).counts()) == {1: 3}
    with pytest.raises(DataError, match="no column 'A'"):
        Table(f"sqlite://{file}", Domain(x=Integer(0, 9, column="A")), sql=cased)
    with pytest.raises(DataError, match="table= must name a table; the file has people"):
        Table(f"sqlite://{file}", Domain(x=Integer(0, 1)))
    with pytest.raises(DataError, match="no such file"):
        Table(f"sqlite://{tmp_path}/typo.db", Domain(x=Integer(0, 1)), table="people")
    assert not (tmp_path / "typo.db").exists()


# PostgreSQL


def test_postgres_is_read_only_and_reads_its_own_types(tmp_path: Path) -> None:
    url = server()
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """CREATE SCHEMA "own.types";
            CREATE COLLATION "own.types".careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
            CREATE TYPE "own.types".sex AS ENUM ('f', 'm'); CREATE DOMAIN "own.types".age AS integer CHECK (VALUE > 0);
            CREATE TABLE "own.types".t (t text COLLATE "own.types".careless, e "own.types".sex, d "own.types".age, n numeric,
            m money, v varchar(3));
            INSERT INTO "own.types".t VALUES ('a', 'f', 3, 'NaN', 1, 'x'), ('A', 'm', 4, 'Infinity', 2, 'x '),
            ('b', NULL, NULL, '1e400', 3, NULL), (NULL, 'm', 5, '-1e400', 4, 'y'), ('a ', 'm', 5, '1e-400', 4, 'y')"""
        )
    domain = Domain(
        t=Categorical(["a"], other="else", missing="public"),
        e=Categorical(["m", "f"], missing="public"),
        d=Integer(3, 5, missing="public"),
        n=Numeric(0, 3, cells=3, missing="public"),
        v=Categorical(["x"], other="else", missing="public"),
    )
    options: dict[str, Any] = {"source": url, "table": "own.types.t"}
    with pytest.raises(DataError, match=r"no such table in the search path; name it schema\.table"):
        Table(domain=domain, **options)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('ALTER SCHEMA "own.types" RENAME TO own')
    options["table"] = "own.t"
    table = Table(domain=domain, **options)
    expected = {
        "t": {0: 1, 1: 3, 2: 1}, "e": {0: 3, 1: 1, 2: 1}, "d": {0: 1, 1: 1, 2: 2, 3: 1}, "n": {0: 2, 2: 2, 3: 1},
        "v": {0: 1, 1: 3, 2: 1},
    }  # fmt: skip
    for name, found in expected.items():
        assert counted(table.counts(name)) == found, name
    with pytest.raises(DataError, match="column 'm' is of an unknown type"):
        Table(domain=Domain(m=Integer(0, 9)), **options)
    with (
        table._source.opened() as (backend, _),
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        backend.con.execute("CREATE TABLE more (x integer)")


def test_a_refusal_leaves_the_transaction_of_a_postgres_connection_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A COPY that is left early ends it; then neither the column could be named nor the caller go on."""
    numbers = np.arange(40_000)
    rows = pa.table({"age": pa.array(numbers % 1000, mask=numbers == 0), "num": numbers // 20})
    told = ENGINES["postgres"](rows, tmp_path)
    monkeypatch.setattr("tetraodon.postgres.BATCH", 64)  # so that the refused code is in no last batch
    import psycopg
    from ibis.backends.postgres import Backend

    with psycopg.connect(told["source"]) as connection:  # a transaction is open from the first query on
        connection.execute("CREATE TEMP TABLE mine AS SELECT 7 AS n")
        source = Backend.from_connection(connection).table(told["table"])
        table = Table(source, Domain(age=Integer(0, 999), num=Integer(0, 2999)))
        with pytest.raises(DataError, match="column 'age' holds a value that is null"):
            table.counts()
        assert connection.execute("SELECT n FROM mine").fetchone() == (7,)


FREAKS = [
    "1e-400", "-1e-400", "1.7976931348623158e308", "1.7976931348623159e308", "-1.8e308", "2.4e-324", "2.5e-324", "0e99999999999999",
    "1" + "0" * 400 + "e-400", "1" + "0" * 400 + "e-10", "-1" + "0" * 400, "0." + "0" * 500 + "1e100", "0." + "0" * 20000 + "1e20001",
    "1e99999999999", "-1e99999999999", "1e-99999999999", " -INF ", "\f-1e+0400\v", "00000.000e-999", "000001e-0000400", "0" * 400 + "7",
    "12345678901234567890" * 30 + "e-599", "-.0000001e999999999999999999999",
]  # fmt: skip


def test_texts_of_numbers_that_postgres_itself_refuses(tmp_path: Path) -> None:
    for attribute in (
        Integer(-1, 12, missing="secret"),
        Numeric(-5, 5, cells=7, missing="secret"),
        Categorical([0, 1, 7], other="else", missing="secret"),
    ):
        table = opened("postgres", tmp_path, Domain(x=attribute), pa.table({"x": FREAKS}))
        assert counted(table.counts()) == Counter(attribute.cells(FREAKS).tolist())


@given(
    digits=st.text("0123456789", max_size=30), zeros=st.sampled_from([0, 1, 290, 320, 700]), rest=st.text("0123456789", max_size=5),
    power=st.integers(-800, 800), signs=st.tuples(st.sampled_from(["", "+", "-"]), st.sampled_from(["", " ", "\v"])),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_every_number_in_text_is_read_as_the_nearest_double(
    digits: str, zeros: int, rest: str, power: int, signs: tuple[str, str]
) -> None:
    """One by one, in the expression of the engine, to the last bit."""
    import ibis

    from tetraodon.number_cells import as_number
    from tetraodon.reading import number

    backend = connected()
    texts = [
        f"{signs[1]}{signs[0]}{body}{signs[1]}"
        for body in (
            f"{digits}{'0' * zeros}{rest}e{power}",
            f".{'0' * zeros}{digits}E{power}",
            f"{digits}.{rest}",
            "e1",
        )
    ]
    rows = ", ".join(f"({i}, '{text}')" for i, text in enumerate(texts))
    table = backend.sql(
        f"SELECT * FROM (VALUES {rows}) AS t(i, x)", schema=ibis.schema({"i": "int32", "x": "string"})
    )
    found = backend.to_pyarrow(table.select("i", x=as_number(table.x))).sort_by("i")["x"].to_pylist()
    expected = [None if math.isnan(v) else v for v in map(number, texts)]
    assert found == expected


@cache
def connected() -> Any:
    import ibis

    return ibis.connect(server())


def test_a_table_of_an_ibis_connection_to_postgres(tmp_path: Path) -> None:
    import ibis

    given = ENGINES["postgres"](ROWS, tmp_path)
    connection = ibis.connect(given["source"])
    rows = connection.table(given["table"])
    for name in ("joined text and other", "numbers in text", "doubles", "long decimals"):
        attribute = ATTRIBUTES[name]
        table = Table(rows.filter(rows.id > 0), Domain(x=attribute))
        assert counted(table.counts()) == Counter(cells("postgres", attribute)), name
    assert connection.table(given["table"]).count().to_pyarrow().as_py() == 24  # it stays open
    connection.disconnect()


def test_postgres_sends_rows_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tetraodon import postgres

    monkeypatch.setattr(postgres, "BATCH", 10)
    table = opened("postgres", tmp_path, Domain(id=Integer(1, 24)))
    assert [len(part) for part in table.codes()] == [10, 10, 4]


def test_counts_of_postgres_come_whole_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tetraodon import postgres

    # The last bytes of the last count are those that end a COPY.
    values = np.repeat([3, 1, 7], [5, 70_000, 65_535])
    for size in (1, 2, 65_536):
        monkeypatch.setattr(postgres, "BATCH", size)
        table = opened("postgres", tmp_path, Domain(x=Integer(0, 9)), pa.table({"x": values}))
        assert table.counts().dense.tolist() == [0, 70_000, 0, 5, 0, 0, 0, 65_535, 0, 0]  # type: ignore[union-attr]
    apart = Domain(x=Categorical([7, 8, 9, 3, 1, 0], other="more"))
    table = opened("postgres", tmp_path, apart, pa.table({"x": [7, 8, 9, 3, 1, 0, 2, 10]}))
    assert table.counts().dense.tolist() == [1, 1, 1, 1, 1, 1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("engine", ENGINES)
def test_codes_that_follow_one_another_lie_where_they_were_declared(engine: str, tmp_path: Path) -> None:
    codes = [5, 6, 7, -1, 0, 1, 32767, -32768, 3, 2]
    domain = Domain(x=Categorical(codes, other="more", missing="public"))
    given = [*codes, 8, 4, -2, None, 32766]
    rows = pa.table({"x": pa.array(given, pa.int16())})
    table = opened(engine, tmp_path, domain, rows)
    assert sorted(np.concatenate(list(table.codes())).tolist()) == [*range(10), 10, 10, 10, 10, 11]
    assert table.counts().dense.tolist() == [*[1] * 10, 4, 1]  # type: ignore[union-attr]


def test_a_server_that_is_not_there_shows_no_address(tmp_path: Path) -> None:
    server()
    with pytest.raises(EngineError, match="postgres:people: opening failed") as caught:
        Table(f"postgres://tester:canary@/canary?host={tmp_path}", Domain(x=Integer(0, 1)), table="people")
    assert "canary" not in told(caught.value) and str(tmp_path) not in told(caught.value)


def test_postgres_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unsupported, match=r"postgres: install tetraodon\[postgres\]") as caught:
        Table("postgres://user:password@host/base", Domain(x=Integer(0, 1)), table="people")
    assert "password" not in str(caught.value)
