"""Hostile data: one test for each case of the data door that privacy software is known to have got wrong."""

from __future__ import annotations

import csv
import gc
import logging
import random
import traceback
import warnings
from collections.abc import Callable
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

import tetraodon as td
from tetraodon.domain import attribute_from_spec
from tetraodon.errors import DataError, EngineError, SpecificationError, TetraodonError
from tetraodon.files import sealed
from tetraodon.table import Counts

CANARY = "canary-7391"


def numbers(domain: td.Domain, source: object, **options: Any) -> list[int]:
    counts = td.Table(source, domain, **options).counts()
    assert counts.dense is not None
    return counts.dense.tolist()


def test_c03_order_of_rows_and_of_batches_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"x": np.r_[rng.normal(0, 1e9, 3000), np.nan, np.inf, -np.inf], "s": rng.choice(list("abc"), 3003)}
    )
    domain = td.Domain(
        x=td.Numeric(-(10**9), 10**9, cells=1000, missing="secret"), s=td.Categorical(["a", "b"], other="o")
    )  # fmt: skip
    first = td.Table(frame, domain).counts()
    for i in range(3):
        shuffled = frame.sample(frac=1, random_state=i)
        pyarrow.parquet.write_table(
            pa.Table.from_pandas(shuffled), tmp_path / f"{i}.parquet", row_group_size=7 + 100 * i
        )
        for source in (shuffled, tmp_path / f"{i}.parquet"):
            again = td.Table(source, domain).counts()
            assert again.dense is not None and first.dense is not None
            assert again.dense.tobytes() == first.dense.tobytes() and again.total == first.total


@pytest.mark.parametrize("base", [2.0**50, 2.0**53, -(2.0**60), 1e300])
def test_c04_one_changed_row_moves_one_count_however_large_the_others(base: float) -> None:
    domain = td.Domain(x=td.Numeric(0, 2**51, cells=2**10))
    values = [base + i * 1e-3 for i in range(1023)]
    before = np.array(numbers(domain, {"x": np.array([*values, 0.1])}))
    after = np.array(numbers(domain, {"x": np.array([*values, 2.0**51])}))
    assert np.abs(after - before).sum() == 2 and before.sum() == after.sum() == 1024


def test_c05_integers_at_the_ends_of_their_types_do_not_wrap() -> None:
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        limits = np.iinfo(kind)
        values = np.array([limits.min, limits.max, limits.max - 1], kind)
        for low, high in ((0, 9), (-(2**31), 2**31), (-(2**53), 2**53), (100, 2**53)):
            domain = td.Domain(x=td.Integer(low, high, step=2**40 + 1 if high > 2**40 else 2**20 + 1))
            assert (
                numbers(domain, {"x": values})
                == np.bincount(domain["x"].cells([int(v) for v in values]), minlength=domain.size).tolist()
            )


def test_c05_counts_widen_and_are_refused_before_they_overflow() -> None:
    for domain in (td.Domain(x=td.Integer(0, 3)), td.Domain(x=td.Integer(0, 2**40))):
        counts = Counts.collect(domain, [([1], [2**31 - 1]), ([1], [2**31 - 1]), ([2], [2**62])])
        held = {int(c): int(n) for codes, ns in counts.items() for c, n in zip(codes, ns, strict=True)}
        assert held == {1: 2**32 - 2, 2: 2**62} and counts.total == 2**62 + 2**32 - 2
        assert Counts.collect(domain, [([1], [2**63 - 1])]).total == 2**63 - 1
        for chunks in ([([1], [2**63 - 1]), ([1], [1])], [([0, 1, 2], [2**62] * 3)]):
            with pytest.raises(EngineError, match="more than 2"):
                Counts.collect(domain, chunks)


def test_c06_single_precision_is_widened_not_overflowed() -> None:
    values = np.array([1e38, -1e38, 3.4028235e38, 0.1, np.inf], np.float32)
    domain = td.Domain(x=td.Numeric(0, 1, cells=10))
    # 0.1 in single precision is a little more than 1/10; in a comparison of singles it would equal it.
    assert numbers(domain, {"x": values}) == [1, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    edges = np.array([16777216, 16777218], np.float32)
    assert numbers(td.Domain(x=td.Integer(16777216, 16777218)), {"x": edges}) == [1, 0, 1]
    assert numbers(td.Domain(x=td.Integer(16777217, 16777218)), {"x": edges}) == [1, 1]


def test_c07_nan_infinities_negative_zero_and_null_have_a_public_rule() -> None:
    values = [float("nan"), float("inf"), float("-inf"), -0.0, None]
    forms = [
        values,
        np.array(values, float),
        pa.array(values),
        pl.Series(values),
        pd.Series(values, dtype=object),
    ]
    number = td.Numeric(-1, 1, cells=4, missing="secret")
    for form in forms:
        assert numbers(td.Domain(x=number), {"x": form}) == [1, 0, 1, 1, 2]
        assert numbers(td.Domain(x=td.Integer(-1, 1, missing="public")), {"x": form}) == [1, 1, 1, 2]
        assert numbers(td.Domain(x=td.Categorical([0], other="o", missing="public")), {"x": form}) == [
            1,
            2,
            2,
        ]
        with pytest.raises(DataError, match="column 'x'"):
            numbers(td.Domain(x=td.Numeric(-1, 1, cells=4)), {"x": form})


def test_c08_what_does_not_parse_follows_the_rule_however_late_it_comes(tmp_path: Path) -> None:
    domain = td.Domain(x=td.Integer(0, 2, missing="secret"))
    odd = ["abc", "3.7", " 2 ", "1e3", "1_0", "0x1", "", "NaN", "-inf", "٢", CANARY, "9" * 400]
    for position in (0, 30_000):
        values = ["1"] * position + odd + ["1"] * (30_000 - position)
        with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["x", "y"], *([v, ""] for v in values)])
        for source in (tmp_path / "x.csv", {"x": values}, pl.DataFrame({"x": values})):
            assert numbers(domain, source) == [1, 30_000, 3, 8]


def test_c08_one_row_of_another_type_changes_no_other_cell() -> None:
    domain = td.Domain(x=td.Categorical(["1", "2"], other="o", missing="public"))
    for odd in (2.5, None, "x", True, [1], {"a": 1}, 10**5000, object(), b"1", 1j, float("nan")):
        plain, changed = numbers(domain, {"x": [1, "2", 2, 7]}), numbers(domain, {"x": [1, "2", 2, odd]})
        assert plain == [1, 2, 1, 0] and changed[:2] == [1, 2] and sum(changed) == 4
        frame = pd.DataFrame({"x": pd.Series([1, "2", 2, odd], dtype=object)})
        assert numbers(domain, frame) == changed
        assert np.bincount(domain["x"].cells([1, "2", 2, odd]), minlength=4).tolist() == changed


def test_c09_the_schema_comes_from_the_declaration_not_from_the_rows(tmp_path: Path) -> None:
    domain = td.Domain(x=td.Integer(0, 9, missing="secret"), s=td.Categorical(["01", "1"], other="o"))
    (tmp_path / "x.csv").write_text("x,s\n" + "1,1\n" * 3000 + "x,01\n2.0,true\n2020-01-01,1.0\n")
    counts = td.Table(tmp_path / "x.csv", domain).counts()
    assert counts.dense is not None
    table = counts.dense.reshape(domain.shape)
    assert (
        table[1].tolist() == [0, 3000, 0]
        and table[2].tolist() == [0, 0, 1]
        and table[10].tolist() == [1, 0, 1]
    )
    folder = tmp_path / "x=7"
    folder.mkdir()
    pyarrow.parquet.write_table(pa.table({"s": ["1"]}), folder / "part.parquet")
    with pytest.raises(DataError, match="no column 'x'"):  # a folder's name is no column
        td.Table(folder / "part.parquet", domain)
    pyarrow.parquet.write_table(pa.table({"s": ["1"], "x": [3]}), folder / "part.parquet")
    assert numbers(domain.select("x"), folder / "part.parquet")[3] == 1


def test_c10_bounds_bins_and_categories_left_out_are_refused() -> None:
    for declare in (
        lambda: td.Numeric(0, 1),
        lambda: td.Categorical([]),
        lambda: attribute_from_spec("x", {}),
        lambda: attribute_from_spec("x", {"integer": []}),
        lambda: attribute_from_spec("x", {"numeric": [0, 1]}),
        lambda: td.Domain(),
        lambda: td.Table({"x": [1, 2]}, None),  # type: ignore[arg-type]
    ):
        with pytest.raises(SpecificationError):
            declare()
    with pytest.raises(TypeError):
        td.Integer()  # type: ignore[call-arg]


def test_c11_codes_come_from_the_domain_not_from_the_order_of_appearance() -> None:
    domain = td.Domain(s=td.Categorical(["a", "b", "c"], other="o"))
    values = ["c", "c", "zz", "a", "c"]
    for order in (["a", "b", "c", "zz"], ["zz", "c", "b", "a"], ["c", "zz", "a"]):
        forms = [
            pd.Series(pd.Categorical(values, categories=order)),
            pd.Series(pd.Categorical(values, categories=order, ordered=True)),
            pl.Series(values, dtype=pl.Enum(order)),
            pl.Series(order + values, dtype=pl.Categorical)[len(order) :],
            pa.DictionaryArray.from_arrays(pa.array([order.index(v) for v in values]), pa.array(order)),
        ]
        for form in forms:
            assert numbers(domain, {"s": form}) == [1, 0, 3, 1]
    ages = pd.Series(pd.Categorical([30, 30, 10], categories=[30, 20, 10]))
    assert numbers(td.Domain(x=td.Integer(10, 30, step=10)), {"x": ages}) == [1, 0, 2]


def test_c12_a_value_absent_from_the_domain_goes_to_other_or_is_refused_unnamed() -> None:
    source = {"s": ["a", CANARY, "a"]}
    assert numbers(td.Domain(s=td.Categorical(["a", "b"], other="o")), source) == [2, 0, 1]
    assert numbers(td.Domain(s=td.Categorical(["a", "b"], missing="secret")), source) == [2, 0, 1]
    for values in (["a", "b"], [f"v{i}" for i in range(100)]):
        with pytest.raises(DataError, match="column 's'") as caught:
            numbers(td.Domain(s=td.Categorical(values)), source)
        assert CANARY not in str(caught.value)


# C35


class _Untouchable:
    """A value whose every use raises an error that quotes it."""

    def _raise(self, *_: object) -> Any:
        warnings.warn(CANARY, stacklevel=1)
        raise RuntimeError(CANARY)

    __str__ = __repr__ = __eq__ = __ne__ = __bool__ = __float__ = __int__ = __hash__ = __len__ = __iter__ = (
        _raise  # type: ignore[assignment]
    )


def _corrupt(path: Path) -> Path:
    """A parquet file with readable schema and damaged pages."""
    pyarrow.parquet.write_table(
        pa.table({"x": [CANARY] * 1000}), path, compression="none", use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    for i in range(4, len(data) - 600, 3):
        data[i] ^= 0x5A
    path.write_bytes(data)
    return path


def _csv(path: Path, body: str) -> Path:
    path.write_bytes(body.encode("utf-8", "surrogateescape"))
    return path


def _duckdb(path: Path, view: str) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{CANARY}' AS y; CREATE VIEW v AS {view}")
    return f"duckdb://{path}"


def _broken_stream() -> Any:
    """An Ibis table whose query fails on a row, with the row in the engine's message."""
    rows = ibis.memtable(pa.table({"y": [CANARY]}))
    return rows.select(x=rows.y.cast("int64"))


class _Column(list[Any]):
    def __iter__(self) -> Any:
        raise ValueError(CANARY)


SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "undeclared": lambda p: {"source": {"x": [CANARY]}},
    "long row": lambda p: {"source": _csv(p / "x.csv", f"x,y\n1,2\n{CANARY}{',q' * 99}\n")},
    "open quote": lambda p: {"source": _csv(p / "x.csv", f'x,y\n1,"{CANARY}\n')},
    "not UTF-8": lambda p: {"source": _csv(p / "x.csv", f"x,y\n{CANARY}\udcff,2\n")},
    "no header": lambda p: {"source": _csv(p / "x.csv", f"{CANARY},2\n")},
    "not parquet": lambda p: {"source": _csv(p / "x.parquet", CANARY * 9)},
    "not arrow": lambda p: {"source": _csv(p / "x.arrow", CANARY * 9)},
    "damaged parquet": lambda p: {"source": _corrupt(p / "x.parquet")},
    "failing view": lambda p: {"source": _duckdb(p / "x.db", "SELECT y::INTEGER AS x FROM t"), "table": "v"},
    "failing function": lambda p: {
        "source": _duckdb(p / "x.db", "SELECT error(y) AS x FROM t"),
        "table": "v",
    },
    "failing query": lambda p: {"source": _broken_stream()},
    "failing element": lambda p: {"source": {"x": [_Untouchable()]}},
    "failing column": lambda p: {"source": {"x": _Column([1])}},
    "failing frame": lambda p: {"source": pd.DataFrame({"x": pd.Series([_Untouchable()], dtype=object)})},
    "refused type": lambda p: {"source": {"x": pa.array([{CANARY: 1}])}},
    "password": lambda p: {"source": f"postgres://me:{CANARY}@localhost:1/base", "table": "t"},
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    "attribute", [td.Integer(0, 9), td.Categorical([f"v{i}" for i in range(70)])], ids=["number", "text"]
)
def test_c35_no_value_reaches_a_message_a_warning_or_a_stream(
    kind: str,
    attribute: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    arguments = SOURCES[kind](tmp_path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(TetraodonError) as caught:
            table = td.Table(domain=td.Domain(x=attribute), **arguments)
            assert CANARY not in repr(table)
            repr(table.counts())
        gc.collect()
    error: Any = caught.value
    assert error.__cause__ is None and error.__context__ is None
    shown = "".join(traceback.format_exception_only(error)) + repr(error.args)
    streams = capfd.readouterr()
    for text in (shown, streams.out, streams.err, caplog.text, *(str(w.message) for w in warned)):
        assert CANARY not in text
    assert streams.out == streams.err == ""


def test_c35_an_error_of_ours_drops_what_it_was_raised_from() -> None:
    def action() -> None:
        try:
            raise ValueError(CANARY)
        except ValueError as error:
            raise DataError("x: refused.") from error

    with pytest.raises(DataError, match=r"^x: refused\.$") as caught:
        sealed("x", "reading", action)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


# C37

NAMES = [
    "count", "select", "group by", "code", "n", "rows", "c0", "v0", "cell0", "a b", 'q"uo"te', "o'clock", "back`tick", "a;--",
    "[x]", "{x}", "%s", "$1", "?", "\\", "été", "e\u0301te\u0301", "名前", "X", "x", "Count", "COUNT", "source", "*", "a.b", "../x", "😀",
]  # fmt: skip


def test_c37_names_of_columns_are_only_names(tmp_path: Path) -> None:
    rng = random.Random(37)
    values = {name: [rng.randrange(10) for _ in range(50)] for name in NAMES}
    table = pa.table(values)
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "x.arrow")
    with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([NAMES, *zip(*values.values(), strict=True)])
    domain = td.Domain({name: td.Integer(0, 9) for name in NAMES[:6]})
    one = {name: td.Domain({name: td.Integer(0, 9)}) for name in NAMES}
    for source in (
        values,
        table,
        pl.DataFrame(values),
        pd.DataFrame(values),
        *map(tmp_path.joinpath, ("x.parquet", "x.arrow", "x.csv")),
    ):
        for name in NAMES:
            if source is values or name in ("count", 'q"uo"te', "X", "x", "Count", "名前"):
                assert numbers(one[name], source) == np.bincount(values[name], minlength=10).tolist()
        code = domain.encode([values[name] for name in domain])
        assert numbers(domain, source) == np.bincount(code, minlength=domain.size).tolist()


def test_c37_names_of_tables_and_files_are_only_names(tmp_path: Path) -> None:
    names = ['t"; DROP TABLE t; --', "count", "a.b", "it's"]
    path = tmp_path / "it's [a] *? file.duckdb"
    with duckdb.connect(str(path)) as connection:
        for i, name in enumerate(names):
            quoted = name.replace('"', '""')
            connection.execute(f'CREATE TABLE "{quoted}" AS SELECT {i} AS "select"')
    domain = td.Domain({"select": td.Integer(0, 3)})
    for i, name in enumerate(names):
        assert numbers(domain, f"duckdb://{path}", table=name) == [int(j == i) for j in range(4)]
    for i, name in enumerate(["w[1]", "w1", "s*", "s9", "q?", "it's", "a\\b", "%20 x"]):
        pyarrow.parquet.write_table(pa.table({"select": [i % 4]}), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.csv").write_text(f"select\n{i % 4}\n")
    for i, name in enumerate(["w[1]", "w1", "s*", "s9", "q?", "it's", "a\\b", "%20 x"]):
        for suffix in ("parquet", "csv"):
            assert numbers(domain, tmp_path / f"{name}.{suffix}") == [int(j == i % 4) for j in range(4)]
