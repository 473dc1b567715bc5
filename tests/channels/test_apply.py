"""Rows through channels: which cells go in, which columns come out, for every kind of attribute and source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon.channels.apply import Target, applied, apply, placed
from tetraodon.channels.channel import Channel
from tetraodon.channels.shift import Shift
from tetraodon.errors import DataError, SpecificationError
from tetraodon.publish import write_table

POINT = td.Point("x", "y", box=((0, 2), (0, 3)), cell=1, metric="planar")


def same(domain: td.Domain) -> Channel:
    """Every cell comes out as it is: what is left of the law is the way in and out."""
    return Channel.of_matrix(np.eye(domain.size), domain)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


# Row codes


def test_codes_are_the_counts_row_by_row() -> None:
    domain = td.Domain(
        age=td.Integer(0, 9, missing="secret"),
        home=POINT,
        sex=td.Categorical(["f", "m"], other="x", missing="public"),
    )
    made = np.random.default_rng(1)
    rows = {
        "age": [None if a > 9 else int(a) for a in made.integers(-2, 12, 500)],
        "x": made.normal(1, 1, 500),
        "y": made.normal(1, 1, 500),
        "sex": made.choice(["f", "m", "d", None], 500).tolist(),
    }
    table = td.Table(rows, domain)
    for names in ((), ("sex", "home")):
        chosen = domain.select(*names) if names else domain
        codes = np.concatenate(list(table.codes(*names)))
        assert codes.dtype == np.int64 and len(codes) == 500
        assert np.bincount(codes, minlength=chosen.size).tolist() == table.counts(*names).dense.tolist()


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_doubles_have_the_cells_that_the_engine_gives_them(kind: str) -> None:
    """Cells of doubles are found in this process, counts find them in the engine: at every boundary, just beside it, and
    for what is no number or missing."""
    point = td.Point("x", "y", box=((-1, 1), ("-1.5", "1.5")), cell="0.3", metric="planar", missing="secret")
    domain = td.Domain(home=point, z=td.Numeric("-0.7", "1.4", cells=7, missing="public"))
    edges = np.arange(-20, 21) / 10
    edges = np.concatenate([edges, np.linspace(-1, 1, 8), np.linspace(-0.7, 1.4, 8)]).astype(kind)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(kind).max, np.finfo(kind).min], kind)
    told = np.concatenate(
        [edges, np.nextafter(edges, 9, dtype=kind), np.nextafter(edges, -9, dtype=kind), odd]
    )
    made = np.random.default_rng(2)
    columns = [made.choice(told, 20_000) for _ in "xyz"]
    arrays = [pa.array(c, mask=made.random(len(c)) < 0.01) for c in columns]
    table = td.Table(pa.table(dict(zip("xyz", arrays, strict=True))), domain)
    codes = np.concatenate(list(table.codes()))
    assert np.bincount(codes, minlength=domain.size).tolist() == table.counts().dense.tolist()
    assert np.count_nonzero(np.bincount(codes)) > domain.size // 2


@pytest.mark.parametrize("cells", [60_000, 70_000])
def test_fine_cells_of_narrow_doubles(cells: int) -> None:
    """Boundaries kept and boundaries worked out; single precision does not reach the guess."""
    domain = td.Domain(a=td.Numeric(0, cells, cells=cells), b=td.Numeric(-5, 5, cells=10))
    made = np.random.default_rng(4).integers(0, 4 * cells, 20_000) / 4
    rows = pa.table({"a": made.astype(np.float32), "b": np.zeros(20_000, np.float32)})
    codes = np.concatenate(list(td.Table(rows, domain).codes("a")))
    assert np.array_equal(np.sort(codes), np.sort(np.minimum(np.floor(made), cells - 1)))


@pytest.mark.parametrize("width", [1, 127, 128, 181])
def test_grids_at_the_ends_of_integer_types(width: int) -> None:
    """Cells of 127, 128 and 129 places, and 181 × 181, whose numbers just fit 16 bits."""
    rows = width if width == 181 else 1
    domain = td.Domain(home=td.Point("x", "y", box=((0, rows), (0, width)), cell=1, metric="planar"))
    places = pa.table({"x": np.array([rows - 0.5, 0.5]), "y": np.array([width - 0.5, 0.5])})
    law = np.full((2 * rows - 1, 2 * width - 1), 1e-18)
    law[rows - 1, width - 1] += 1 - law.sum()
    found = apply(Channel(domain, Shift.of(law)), places)
    assert rows_of(found) == sorted(zip(places["x"].to_pylist(), places["y"].to_pylist(), strict=True))


@pytest.mark.parametrize("value", [None, float("nan")])
@pytest.mark.parametrize("at", [0, 40_000])
def test_doubles_that_are_refused_name_their_column(value: float | None, at: int) -> None:
    column = [0.5] * 40_001
    column[at] = value  # type: ignore[call-overload]
    domain = td.Domain(a=td.Numeric(0, 1, cells=2), b=td.Numeric(0, 1, cells=2))
    rows = pa.table({"a": np.full(40_001, 0.25), "b": pa.array(column, pa.float64())})
    with pytest.raises(DataError, match=r"column 'b' holds a value .* attribute 'b'"):
        list(td.Table(rows, domain).codes())
    missing = td.Domain(a=domain["a"], b=td.Numeric(0, 1, cells=2, missing="secret"))
    codes = np.concatenate(list(td.Table(rows, missing).codes()))
    assert codes[codes % 3 == 2].tolist() == [2] and len(codes) == 40_001


def test_codes_above_32_bits() -> None:
    domain = td.Domain(a=td.Numeric(0, 1, cells=2**20), b=td.Numeric(0, 1, cells=2**20), c=td.Integer(0, 1))
    last = td.Table({"a": np.array([1.0]), "b": np.array([1.0]), "c": [1]}, domain)
    assert np.concatenate(list(last.codes())).tolist() == [2**41 - 1]
    doubles = domain.select("a", "b")
    assert np.concatenate(list(last.codes(*doubles))).tolist() == [2**40 - 1]


def test_columns_and_ids_come_beside_the_cells() -> None:
    table = td.Table({"a": [3, 1], "who": [7, 8], "t": ["CANARY", None]}, td.Domain(a=td.Integer(0, 9)))
    (part,) = table.rows(keep=["t", "a"], ident="who")
    assert (part.cells.tolist(), part.ids.to_pylist()) == ([3, 1], ["7", "8"])
    assert [c.to_pylist() for c in part.kept] == [["CANARY", None], ["3", "1"]]
    assert "CANARY" not in repr(part)
    with pytest.raises(DataError, match="no column 'b'"):
        table.rows(keep=["b"])


@pytest.mark.parametrize(
    ("ids", "said"), [([1.5, 2.0], "neither text nor integers"), ([1, None], "'who' holds a null")]
)
def test_ids_are_texts_or_integers_and_none_is_null(ids: list[Any], said: str) -> None:
    kind = pa.float64() if isinstance(ids[0], float) else pa.int64()
    rows = pa.table({"a": [0, 1], "who": pa.array(ids, kind)})
    with pytest.raises(DataError, match=said) as caught:
        list(td.Table(rows, td.Domain(a=td.Integer(0, 1))).rows(ident="who"))
    assert "1.5" not in str(caught.value)


# Columns that come out


def test_every_kind_of_attribute_comes_out_as_its_values() -> None:
    domain = td.Domain(
        home=POINT,
        age=td.Integer(10, 12),
        income=td.Integer(0, 24, step=10, missing="secret"),
        height=td.Numeric("1.5", "2", cells=4),
    )
    rows = {
        "x": np.array([0.1, 1.9, 9.0]),
        "y": np.array([2.5, 0.0, -1.0]),
        "age": np.array([10, 12, 11]),
        "income": pa.array([5, None, 24]),
        "height": np.array([1.5, 1.99, 1.7]),
    }
    names = list(domain)
    targets = [Target(same(domain.select(n)), (n,)) for n in names]
    found = applied(td.Table(rows, domain), targets)
    assert found.column_names == ["x", "y", "age", "income", "height"]
    assert rows_of(found) == [
        (0.5, 2.5, 10, 4.5, 1.5625),  # cells 0–9, 10–19 and 20–24
        (1.5, 0.5, 11, 22.0, 1.6875),
        (1.5, 0.5, 12, None, 1.9375),
    ]
    kinds = [f.type.value_type for f in found.schema]
    assert kinds == [pa.float64(), pa.float64(), pa.int64(), pa.float64(), pa.float64()]
    assert found.schema.metadata is None


def test_categories_come_out_as_their_names() -> None:
    domain = td.Domain(
        sex=td.Categorical(["f", "m"], other="x", missing="public"),
        code=td.Categorical([7, 3]),
        job=td.Categorical([1, 2], other="none"),
    )
    rows = pa.table({"sex": ["m", "?", None], "code": [3, 7, 3], "job": [2, 5, 1]})
    found = applied(td.Table(rows, domain), [Target(same(domain), domain.names)])
    assert rows_of(found) == [("m", 3, "2"), ("x", 7, "none"), (None, 3, "1")]
    assert found["sex"].type.value_type == pa.string() and found["code"].type.value_type == pa.int64()


def test_places_that_are_missing_are_null_in_both_columns() -> None:
    domain = td.Domain(
        home=td.Point("x", "y", box=((0, 2), (0, 3)), cell=1, metric="planar", missing="public")
    )
    rows = pa.table({"x": [0.5, None, 1.5], "y": [0.5, 0.5, float("nan")]})
    found = apply(same(domain), rows)
    assert rows_of(found) == [(0.5, 0.5), (None, None), (None, None)]
    moved = np.zeros((7, 7))
    moved[:, 2] = 1.0  # a channel of its own may give any place to what is missing
    assert rows_of(apply(Channel.of_matrix(moved, domain), rows)) == [(0.5, 2.5)] * 3


def test_outputs_may_lie_in_another_domain() -> None:
    """A column that replaces a value of its name takes its column; any other has its own."""
    values = td.Domain(age=td.Integer(0, 3, column="years"))
    outputs = td.Domain(age=td.Categorical(["young", "old"]), sure=td.Categorical(["no", "yes"]))
    law = np.zeros((4, 4))
    law[[0, 1, 2, 3], [0, 0, 3, 3]] = 1.0
    found = apply(Channel.of_matrix(law, values, outputs), {"years": [0, 1, 2, 3], "age": ["a"] * 4})
    assert found.column_names == ["years", "sure"]
    assert rows_of(found) == [("old", "yes")] * 2 + [("young", "no")] * 2


def test_columns_are_named_by_on() -> None:
    channel = same(td.Domain(home=POINT))
    rows = {
        "lon": np.array([0.2, 1.2]),
        "lat": np.array([2.7, 0.0]),
        "region": ["a", "b"],
        "name": ["p", "q"],
    }
    found = apply(channel, rows, {"x": "lon", "y": "lat"}, ["region"])
    assert found.column_names == ["lon", "lat", "region"]
    assert rows_of(found) == [(0.5, 2.5, "a"), (1.5, 0.5, "b")]
    assert placed(channel.domain, {})["home"] == POINT


def test_a_table_that_is_open_already_is_read_under_the_channels_domain() -> None:
    domain = td.Domain(sex=td.Categorical(["f", "m"], missing="public"))
    table = td.Table({"sex": ["f", "?", "m"], "k": [1, 2, 3]}, td.Domain(k=td.Integer(0, 9)), null=["?"])
    assert rows_of(apply(same(domain), table)) == [("f",), ("m",), (None,)]


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "pandas", "polars", "dict", "table", "ibis"])
def test_every_source_gives_the_same_rows(kind: str, tmp_path: Path) -> None:
    table = pa.table({"x": [0.5, 1.5, 0.5], "y": [0.25, 2.0, 1.0], "region": ["a", "b", None]})
    source: Any = table
    if kind == "parquet":
        pq.write_table(table, source := tmp_path / "t.parquet")
    elif kind == "csv":
        source = tmp_path / "t.csv"
        table.to_pandas().to_csv(source, index=False)
    elif kind == "arrow":
        source = tmp_path / "t.arrow"
        with pa.ipc.new_file(source, table.schema) as file:
            file.write_table(table)
    elif kind in ("pandas", "polars"):
        source = table.to_pandas() if kind == "pandas" else pl.from_arrow(table)
    elif kind == "dict":
        source = table.to_pydict()
    elif kind == "ibis":
        source = ibis.duckdb.connect().create_table("t", table)
    found = apply(same(td.Domain(home=POINT)), source, keep=["region"])
    nothing = "" if kind == "csv" else None
    assert rows_of(found) == sorted([(0.5, 0.5, "a"), (0.5, 1.5, nothing), (1.5, 2.5, "b")], key=repr)


def test_kept_columns_keep_their_types() -> None:
    kept = pa.table(
        {
            "f": pa.array([1.5, None], pa.float32()),
            "i": pa.array([1, 2], pa.int16()),
            "b": pa.array([True, None]),
            "d": pa.array([1, 2], pa.date32()),
            "t": pa.array([10**15, None], pa.timestamp("us")),
            "m": pa.array(["1.10", "2.20"]).cast(pa.decimal128(5, 2)),
        }
    )
    rows = kept.append_column("age", pa.array([0, 0]))
    found = apply(same(td.Domain(age=td.Integer(0, 0))), rows, keep=kept.column_names).select(
        kept.column_names
    )
    assert found.schema.types == kept.schema.types
    assert rows_of(found) == rows_of(kept)


def test_attributes_shown_leave_as_their_declared_cells() -> None:
    domain = td.Domain(age=td.Integer(0, 9), region=td.Categorical(["a", "b"], other="else"))
    table = td.Table({"age": [1, 2, 3], "region": ["a", "q", "b"]}, domain)
    found = applied(table, [Target(same(domain.select("age")), ("age",))], shown=["region"])
    assert rows_of(found) == [(1, "a"), (2, "else"), (3, "b")]
    assert found["region"].chunk(0).dictionary.to_pylist() == ["a", "b", "else"]


def test_several_channels_draw_for_themselves() -> None:
    """Two channels over attributes in another order than the table's, one of them over two attributes at once."""
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 2), c=td.Integer(0, 1))
    flip = Channel.of_matrix([[0.0, 1.0], [1.0, 0.0]], td.Domain(q=td.Integer(0, 1)))
    law = np.zeros((6, 6))
    law[np.arange(6), 5 - np.arange(6)] = 1.0  # (c, b) to (1 − c, 2 − b)
    pair = Channel.of_matrix(law, td.Domain(c=domain["c"], b=domain["b"]))
    table = td.Table({"a": [0, 1, 0], "b": [0, 1, 2], "c": [0, 1, 1]}, domain)
    found = applied(table, [Target(flip, ("a",)), Target(pair, ("c", "b"))])
    assert found.column_names == ["a", "c", "b"]
    assert rows_of(found) == [(0, 0, 1), (1, 0, 0), (1, 1, 2)]


def test_laws_that_shift_are_drawn_from_in_parts() -> None:
    """More rows than are drawn at a time: every offset stays where it can, in its own proportion."""
    domain = td.Domain(x=td.Numeric(0, 9, cells=9))
    channel = Channel(domain, Shift.of(np.full((1, 17), 1 / 17)))
    found = apply(channel, {"x": np.full(100_000, 4.5)})["x"].to_numpy()
    seen = np.bincount(found.astype(int), minlength=9)
    expected = np.array([5, 1, 1, 1, 1, 1, 1, 1, 5]) / 17 * 100_000
    assert ((seen - expected) ** 2 / expected).sum() < 60  # chi-squared with 8 degrees: 5e-10


def test_no_rows_and_one_row(tmp_path: Path) -> None:
    rows = pa.table(
        {"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64()), "r": pa.array([], pa.int8())}
    )
    found = apply(same(td.Domain(home=POINT)), rows, keep=["r"])
    assert (found.num_rows, found["r"].type) == (0, pa.int8())
    write_table(found, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").schema.types == [pa.float64(), pa.float64(), pa.int8()]
    one = td.Domain(age=td.Integer(3, 3))
    assert rows_of(apply(same(one), {"age": [9]})) == [(3,)]


def test_both_forms_of_file_hold_the_values(tmp_path: Path) -> None:
    domain = td.Domain(age=td.Integer(0, 9, missing="public"), sex=td.Categorical(["f", "m"]))
    found = apply(same(domain), pa.table({"age": [1, None], "sex": ["m", "f"]}))
    for form in ("parquet", "csv"):
        write_table(found, tmp_path / f"t.{form}")
    assert rows_of(pq.read_table(tmp_path / "t.parquet")) == rows_of(found) == [(1, "m"), (None, "f")]
    assert sorted(pd.read_csv(tmp_path / "t.csv").fillna(-1).itertuples(index=False)) == [
        (-1.0, "f"),
        (1.0, "m"),
    ]


# Refusals


@pytest.mark.parametrize(
    ("on", "keep", "said"),
    [
        ({"z": "lon"}, [], "on: no name 'z'"),
        ({"home": "lon"}, [], "on: no name 'home'"),
        ({"x": 3}, [], "on: a mapping"),
        (["x"], [], "on: a mapping"),
        ({}, "region", "keep: a list"),
        ({}, ["x"], "keep: 'x' is what the channel replaces"),
        ({"x": "region"}, ["region"], "keep: 'region' is what the channel replaces"),
        ({}, ["region", "region"], "two columns of the result would be named 'region'"),
    ],
)
def test_what_is_named_wrongly_is_refused(on: Any, keep: Any, said: str) -> None:
    rows = {"x": np.array([0.5]), "y": np.array([0.5]), "region": np.array([0.5])}
    with pytest.raises(SpecificationError, match=said):
        apply(same(td.Domain(home=POINT)), rows, on, keep)


def test_targets_must_fit_the_table() -> None:
    domain = td.Domain(a=td.Integer(0, 9), b=td.Integer(0, 9))
    table = td.Table({"a": [1], "b": [2]}, domain)
    ten, nine = same(td.Domain(q=td.Integer(0, 9))), same(td.Domain(q=td.Integer(0, 8)))
    for targets, shown, said in (
        ([], [], "at least one"),
        ([Target(nine, ("a",))], [], "'a' of the table is declared otherwise than the channel's 'q'"),
        ([Target(ten, ("a", "b"))], [], "declared otherwise"),
        ([Target(ten, ("c",))], [], "no attribute 'c'"),
        ([Target(ten, ("a",)), Target(ten, ("a",))], [], "named twice"),
        ([Target(ten, ("a",))], ["a"], "named twice"),
    ):
        with pytest.raises(SpecificationError, match=said):
            applied(table, targets, shown=shown)


def test_rows_that_may_not_be_missing_are_refused_whole() -> None:
    domain = td.Domain(age=td.Integer(0, 9))
    with pytest.raises(DataError, match="column 'age' holds a value"):
        apply(same(domain), pa.table({"age": [1, None]}))
