"""The query that computes cells against the definition, by an oracle of its own and by ``Attribute.cells``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon import Categorical, Domain, Integer, Numeric
from tetraodon.attributes import Attribute
from tetraodon.engine import cells_expression, encoded
from tetraodon.errors import DataError
from tetraodon.readable import check_readable

BLANKS = " \t\n\r\f\v"
FEW = settings(max_examples=20, deadline=None)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

# Text that is a number, text that is nearly one, and text that is none.
TEXTS = [
    "1", "12", " 12 ", "12\t", "\v12\f", "1\n", "1e3", "2.50", ".5", "5.", "1.e3", "-0", "007", "+3", "3", "300",
    "1e999", "-1e999", "1e-999", "inf", "-inf", "Infinity", "+infinity", "INF", "4.9e-324", "9007199254740993",
    "18446744073709551615", "0." + "0" * 400 + "1", "1" + "0" * 400,
    "", " ", "1_000", "0x10", "NaN", "nan", "infin", "1e", "e5", ".", "+", "--5", "1 2", "1,5", "1e5.5", "1\0", "1f",
    "١٢", "１２", "1\u00a0", "\u20091", "abc", "A", "a", "a ", "é", "e\u0301", "x'y", 'q"q', "true", "false", "True",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, 0.1, 0.3, 1 / 3, 2.5, -1e-20, 5e-324, -5e-324, 2.2250738585072014e-308, 16777217.0, 1e308, -1e308,
    2.0**53, 2.0**53 + 2, -(2.0**53) - 2, 2.0**63, -(2.0**63), 1e19, float("inf"), float("-inf"), float("nan"),
]  # fmt: skip


# The oracle: exact arithmetic, one value at a time


def as_double(value: Any) -> float | None:
    """Rule 1; None where the value is not a number."""
    if value is None or isinstance(value, bool) or value != value:
        return None
    if isinstance(value, str):
        text = value.strip(BLANKS)
        if re.fullmatch(r"[+-]?inf(inity)?", text, re.IGNORECASE | re.ASCII):
            return float("-inf") if text.startswith("-") else float("inf")
        found = re.fullmatch(r"([+-]?)(\d+\.?\d*|\.\d+)(?:e([+-]?\d+))?", text, re.IGNORECASE | re.ASCII)
        if found is None:
            return None
        sign, digits, power = found.groups()
        value = Fraction(Decimal(digits)) * Fraction(10) ** int(power or 0) * (-1 if sign == "-" else 1)
    if isinstance(value, float | np.floating):
        return float(value)
    try:
        return float(Fraction(value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def truth(attribute: Attribute, value: Any) -> int:
    """The cell of a value by rules 2 to 5; −1 where it has none."""
    invalid = -1 if attribute.missing_cell is None else attribute.missing_cell
    if isinstance(attribute, Categorical):
        if value is None or value != value:
            return invalid
        unlisted = invalid if attribute.other is None else attribute.n_values
        key = as_double(value) if attribute.of_integers else value
        if not attribute.of_integers and not isinstance(value, str):
            key = str(value).lower() if isinstance(value, bool) else str(value)
        return attribute.values.index(key) if key in attribute.values else unlisted  # type: ignore[arg-type]
    number = as_double(value)
    if number is None:
        return invalid
    if isinstance(attribute, Integer):
        if abs(number) < float("inf") and not number.is_integer():
            return invalid
        clipped = min(max(number, attribute.low), attribute.high)
        return (int(clipped) - attribute.low) // attribute.step
    inner = range(1, attribute.n_cells)
    return bisect_right(inner, number, key=lambda j: float(attribute.low + j * attribute.width))


@pytest.fixture(scope="module")
def backend() -> Any:
    connection = ibis.duckdb.connect()
    yield connection
    connection.disconnect()


def by_query(backend: Any, attribute: Attribute, column: pa.Array) -> list[int]:
    """Cells in row order, −1 for null. Categories that need a join go through ``encoded``, one row after another."""
    rows = ibis.memtable(pa.table({"row": range(len(column)), "x": column}))
    shown = rows.select("row", cell=cells_expression(attribute, rows.x))
    cells = backend.to_pyarrow(shown).sort_by("row")["cell"].to_pylist()
    return [-1 if cell is None else cell for cell in cells]


def by_code(backend: Any, attribute: Attribute, column: pa.Array) -> list[int]:
    """The same by way of ``encoded``, sorted, which also covers joins."""
    codes = backend.to_pyarrow(encoded(ibis.memtable(pa.table({"x": column})), Domain(x=attribute), ["x"]))
    return sorted(-1 if code is None else code for code in codes["code"].to_pylist())


def agree(backend: Any, attribute: Attribute, column: pa.Array, values: Sequence[Any]) -> None:
    expected = [truth(attribute, v) for v in values]
    assert [int(c) for c in attribute.cells(values)] == expected
    assert by_query(backend, attribute, column) == expected
    assert by_code(backend, attribute, column) == sorted(expected)


# Attributes

missing = st.sampled_from(["refuse", "secret", "public"])
corners = st.sampled_from(
    [0, 1, -1, 17, 127, 128, -128, 255, -(2**31), 2**31 - 1, 2**31, -(2**53), 2**53 - 9]
)


@st.composite
def integers(draw: Any) -> Integer:
    low = draw(corners | st.integers(-1000, 1000))
    high = min(2**53, low + draw(st.sampled_from([0, 1, 8, 100, 2**20, 2**31, 2**54])))
    return Integer(
        low, high, step=draw(st.sampled_from([1, 1, 2, 3, 7, 100, 2**20 + 1])), missing=draw(missing)
    )


@st.composite
def numerics(draw: Any) -> Numeric:
    low = Fraction(
        draw(st.integers(-100, 100) | st.integers(-(2**35), 2**35)), draw(st.sampled_from([1, 3, 7, 10, 100]))
    )
    width = Fraction(draw(st.integers(1, 1000)), draw(st.sampled_from([1, 3, 7, 10, 100, 1024])))
    cells = draw(st.sampled_from([1, 2, 3, 10, 1000, 100_000]))
    return Numeric(low, low + cells * width, cells=cells, missing=draw(missing))


@st.composite
def code_lists(draw: Any) -> Categorical:
    values = draw(
        st.lists(
            st.integers(-3, 300) | st.sampled_from([2**53, -(2**53), 2**53 - 1]), min_size=1, unique=True
        )
    )
    return Categorical(values, other=draw(st.sampled_from([None, "other"])), missing=draw(missing))


@st.composite
def text_lists(draw: Any) -> Categorical:
    values = draw(
        st.lists(st.sampled_from([t for t in TEXTS if "\0" not in t]), min_size=1, max_size=20, unique=True)
    )
    return Categorical(values, other=draw(st.sampled_from([None, "other"])), missing=draw(missing))


def near(attribute: Attribute) -> list[float]:
    """Doubles at and beside the boundaries of an attribute."""
    if isinstance(attribute, Integer):
        ends = [float(b + d) for b in (attribute.low, attribute.high) for d in (-1, 0, 1)]
        return (
            ends
            + [e + 0.5 for e in ends]
            + [float(np.nextafter(e, d)) for e in ends for d in (-np.inf, np.inf)]
        )
    if isinstance(attribute, Numeric):
        cells = {0, 1, 2, attribute.n_cells // 3, attribute.n_cells - 1, attribute.n_cells}
        ends = [float(attribute.low + j * attribute.width) for j in sorted(cells)]
        return ends + [float(np.nextafter(e, d)) for e in ends for d in (-np.inf, np.inf)]
    return [float(v) for v in attribute.values if isinstance(v, int)]


by_number = integers() | numerics() | code_lists()


# Properties


@FEW
@given(attribute=by_number, drawn=st.lists(st.floats(width=64), max_size=20))
def test_float_columns(backend: Any, attribute: Attribute, drawn: list[float]) -> None:
    values = np.array(DOUBLES + near(attribute) + drawn)
    agree(backend, attribute, pa.array(values), values)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    agree(backend, attribute, pa.array(single), single)


@FEW
@given(attribute=by_number | text_lists(), kind=st.sampled_from(INTEGERS), data=st.data())
def test_integer_columns(backend: Any, attribute: Attribute, kind: str, data: Any) -> None:
    limits = np.iinfo(kind)
    low, high = int(limits.min), int(limits.max)
    values: list[Any] = [low, low + 1, 0, 1, 3, 5, high - 1, high, 2**53, 2**53 + 1, -(2**53) - 1]
    values += [int(v) for v in near(attribute)] + data.draw(st.lists(st.integers(low, high), max_size=20))
    values = [v for v in values if low <= v <= high] + [None]
    agree(backend, attribute, pa.array(values, kind), values)


@FEW
@given(attribute=by_number | text_lists(), drawn=st.lists(st.floats().map(repr) | st.text(max_size=5)))
def test_text_columns(backend: Any, attribute: Attribute, drawn: list[str]) -> None:
    values: list[Any] = [*TEXTS, *(repr(v) for v in near(attribute)), *(f"{v:.60f}" for v in near(attribute))]
    values += [t for t in drawn if t.isprintable()] + [None]
    agree(backend, attribute, pa.array(values), values)


@FEW
@given(
    attribute=by_number, shape=st.sampled_from([(5, 2), (15, 3), (18, 9), (38, 0), (38, 20)]), data=st.data()
)
def test_decimal_columns(backend: Any, attribute: Attribute, shape: tuple[int, int], data: Any) -> None:
    digits, places = shape
    limit = 10 ** min(digits, 36) - 1
    drawn = data.draw(st.lists(st.integers(-limit, limit) | st.integers(-1000, 1000), max_size=30))
    exact = [Fraction(v) for v in near(attribute)]
    drawn += [n for v in exact for n in (int(v * 10**places), int(v * 10**places) + 1) if abs(n) <= limit]
    values: list[Any] = [Decimal(n).scaleb(-places) if n else Decimal(0) for n in drawn if n < 10**28] + [
        None
    ]
    agree(backend, attribute, pa.array(values, pa.decimal128(digits, places)), values)


@FEW
@given(attribute=text_lists())
def test_boolean_columns(backend: Any, attribute: Categorical) -> None:
    values = [True, False, None]
    agree(backend, attribute, pa.array(values), values)


@FEW
@given(first=by_number, second=by_number, third=text_lists(), data=st.data())
def test_codes_are_row_major(
    backend: Any, first: Attribute, second: Attribute, third: Attribute, data: Any
) -> None:
    domain = Domain(a=first, b=second, c=third)
    if not domain.is_numbered:
        return
    n = data.draw(st.integers(0, 12))
    columns = [
        data.draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n)) for pool in (DOUBLES, TEXTS, TEXTS)
    ]
    typed = [pa.array(v, t) for v, t in zip(columns, ("float64", "string", "string"), strict=True)]
    rows = ibis.memtable(pa.table(dict(zip("abc", typed, strict=True))))
    codes = backend.to_pyarrow(encoded(rows, domain, ["a", "b", "c"]))["code"].to_pylist()
    cells = [a.cells(v) for a, v in zip(domain.values(), columns, strict=True)]
    refused = np.any([c < 0 for c in cells], axis=0) if n else np.zeros(0, bool)
    expected = [None if bad else int(code) for code, bad in zip(domain.encode(cells), refused, strict=True)]
    assert sorted(codes, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("kinds", [("int8", "int64", "uint16"), ("int64", "uint64", "int32")])
@pytest.mark.parametrize("missing", ["refuse", "secret"])
def test_codes_of_integer_columns(backend: Any, kinds: tuple[str, ...], missing: Any) -> None:
    """Every combination of below, between, above and null in three columns."""
    domain = Domain(
        a=Integer(-3, 99, step=10, missing=missing),
        b=Numeric("-0.5", 40, cells=9, missing=missing),
        c=Integer(5, 2**30, missing=missing),
    )
    rows = list(product([-4, 0, 7, 100, None], [-1, 0, 33, 41, None], [4, 5, 300, 2**30 + 1, None]))
    limits = [np.iinfo(kind) for kind in kinds]
    fits = [all(v is None or i.min <= v <= i.max for v, i in zip(r, limits, strict=True)) for r in rows]
    rows = [row for row, kept in zip(rows, fits, strict=True) if kept]
    columns = {n: pa.array([r[i] for r in rows], kinds[i]) for i, n in enumerate(domain)}
    cells = [
        [truth(a, v) for v in column]
        for a, column in zip(domain.values(), zip(*rows, strict=True), strict=True)
    ]
    expected = [None if -1 in row else int(domain.encode(row)) for row in zip(*cells, strict=True)]
    codes = backend.to_pyarrow(encoded(ibis.memtable(pa.table(columns)), domain, list(domain)))[
        "code"
    ].to_pylist()
    assert len(rows) > 40 and sorted(codes, key=str) == sorted(expected, key=str)


# Cases


@pytest.mark.parametrize(
    "attribute",
    [
        Numeric(0, 1, cells=10),
        Numeric(0, 100, width="0.1"),
        Numeric(-1, 1, cells=3),
        Numeric(Fraction(1, 3), Fraction(1000, 3), width=Fraction(1, 3)),
        Numeric("-0.7", "69.3", width="0.07"),
        Numeric("1099511627.7", "1099511628.7", cells=1000),
        Numeric(2**51 - 1000, 2**51, cells=1000),
        Numeric("0.000001", "0.001", cells=999),
    ],
    ids=repr,
)
def test_every_boundary_and_the_doubles_beside_it(backend: Any, attribute: Numeric) -> None:
    ends = np.array([float(attribute.low + j * attribute.width) for j in range(attribute.n_cells + 1)])
    values = np.concatenate([np.nextafter(ends, -np.inf), ends, np.nextafter(ends, np.inf)])
    agree(backend, attribute, pa.array(values), values)


def test_whole_numbers_that_doubles_cannot_divide_or_tell_apart(backend: Any) -> None:
    wide = Integer(-(2**53), 2**53, step=3)
    ends = [
        wide.low + wide.step * j for j in (1, 7, wide.n_values // 2, wide.n_values - 2, wide.n_values - 1)
    ]
    values = [*(e + d for e in ends for d in (-2, -1, 0, 1)), -(2**63), 2**63 - 1]
    agree(backend, wide, pa.array(values, "int64"), values)
    codes = Categorical([2**53, -(2**53), 7], missing="secret")
    agree(
        backend,
        codes,
        pa.array([2**53 + 1, 2**53, 7, 8, -(2**53) - 1]),
        [2**53 + 1, 2**53, 7, 8, -(2**53) - 1],
    )


@pytest.mark.parametrize("n", [1, 64, 65, 10_000])
@pytest.mark.parametrize("as_text", [True, False])
def test_many_categories(backend: Any, n: int, as_text: bool) -> None:
    values: list[Any] = [f"c{i}" if as_text else 3 * i for i in range(n)]
    attribute = Categorical(values, other="other", missing="secret")
    rows = [*values, *values[:3], None, "nothing" if as_text else -1]
    expected = sorted(truth(attribute, v) for v in rows)
    for column in [pa.array(rows)] if as_text else [pa.array(rows), pa.array(rows, "float64")]:
        assert by_code(backend, attribute, column) == expected
        if n <= 64:
            assert sorted(by_query(backend, attribute, column)) == expected
        else:
            with pytest.raises(ValueError, match="joined"):
                cells_expression(attribute, ibis.memtable(pa.table({"x": column})).x)


def test_categories_that_no_query_text_can_hold(backend: Any) -> None:
    attribute = Categorical(["a\0b", "a", "\ud800"], missing="secret")
    assert by_code(backend, attribute, pa.array(["a\0b", "a", "a\0c", None])) == [0, 1, 3, 3]


def test_texts_that_count_as_null(backend: Any) -> None:
    rows = ibis.memtable(pa.table({"x": ["1", "?", "", "99", "?  ", None, "na", "NA"]}))
    number = Integer(0, 99, missing="secret")
    codes = backend.to_pyarrow(encoded(rows, Domain(x=number), ["x"], ("?", "99", "NA")))["code"].to_pylist()
    assert sorted(codes) == [1] + [100] * 7
    texts = Categorical(["1", ""], other="other", missing="secret")
    codes = backend.to_pyarrow(encoded(rows, Domain(x=texts), ["x"], ("?", "99", "NA")))["code"].to_pylist()
    assert sorted(codes) == [0, 1, 2, 2, 3, 3, 3, 3]


def test_codes_of_nearly_2_to_the_63(backend: Any) -> None:
    domain = Domain(a=Integer(0, 2**31 - 1), b=Integer(0, 2**31 - 2), c=Categorical([0], other="x"))
    rows = ibis.memtable(pa.table({"a": [2**31 - 1, 0], "b": [2**31 - 2, 0], "c": [7, 0]}))
    codes = backend.to_pyarrow(encoded(rows, domain, ["a", "b", "c"]))["code"].to_pylist()
    assert sorted(codes) == [0, domain.size - 1]
    assert 2**62 < domain.size < 2**63


@pytest.mark.parametrize(
    "kind", ["boolean", "date", "timestamp", "binary", "array<int64>", "struct<a: int64>", "uuid"]
)
@pytest.mark.parametrize("attribute", [Integer(0, 1), Numeric(0, 1, cells=2), Categorical([0, 1])])
def test_a_declared_type_that_is_no_number_is_refused(attribute: Attribute, kind: str) -> None:
    with pytest.raises(DataError, match=rf"file: column 'x' is {kind.partition('<')[0]}"):
        check_readable(attribute, ibis.dtype(kind), "file", "x")


@pytest.mark.parametrize("kind", ["float64", "decimal(9, 2)", "date", "binary", "array<string>"])
def test_a_declared_type_that_is_no_text_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match="text categories are read from text"):
        check_readable(Categorical(["a"]), ibis.dtype(kind), "file", "x")
