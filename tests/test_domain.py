"""Exact numbers, declared attributes and domains: the cell of every value, specifications and back, refusals by name."""

from __future__ import annotations

import bisect
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute
from strategies import attributes, domains, examples

import tetraodon as td
from tetraodon.domain import attribute_from_spec
from tetraodon.errors import SpecificationError
from tetraodon.exact import exact, plain, positive, show

F = Fraction


# ---------- exact numbers ----------


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (1, F(1)),
        (0.1, F(1, 10)),
        ("0.1", F(1, 10)),
        (" 1/3 ", F(1, 3)),
        ("1e-3", F(1, 1000)),
        (1e-320, F(1, 10**320)),
        (1e300, F(10**300)),
        (Decimal("0.25"), F(1, 4)),
        (F(2, 7), F(2, 7)),
        (np.float64(0.1), F(1, 10)),
        (np.float32(0.1), F(1, 10)),
        (np.int8(3), F(3)),
        (np.uint64(2**64 - 1), F(2**64 - 1)),
        (np.array(0.5), F(1, 2)),
        (np.str_("1/2"), F(1, 2)),
        (10**30, F(10**30)),
    ],
)
def test_numbers_are_read_as_written(given: Any, read: Fraction) -> None:
    assert exact(given, "epsilon") == positive(given, "epsilon") == read


@pytest.mark.parametrize("given", [0, 0.0, -0.0, -1, "-1", "0/5", F(-1, 3), Decimal(0), np.float64(-2)])
def test_an_epsilon_that_is_not_positive_is_refused(given: Any) -> None:
    with pytest.raises(SpecificationError, match=r"^epsilon: must be above 0\.$"):
        positive(given, "epsilon")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (True, "a truth value is not a number"),
        (np.bool_(False), "a truth value is not a number"),
        (math.nan, "must be finite"),
        (math.inf, "must be finite"),
        (-math.inf, "must be finite"),
        (np.float64("nan"), "must be finite"),
        (Decimal("NaN"), "must be finite"),
        (Decimal("sNaN"), "must be finite"),
        (Decimal("Infinity"), "must be finite"),
        (Decimal("1e1000000000000"), "an exponent beyond ±400"),
        (Decimal("1e-999999"), "an exponent beyond ±400"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        ("", "not a number"),
        ("1_000", "not a number"),
        ("1,5", "not a number"),
        ("0x10", "not a number"),
        ("1/0", "not a number"),
        ("１", "not a number"),
        ("1e999999999", "not a number"),
        ("9" * 500, "not a number"),
        ("1/2/3", "not a number"),
        (None, "expected a number, got NoneType"),
        ([1], "expected a number, got list"),
        (b"1", "expected a number, got bytes"),
        (1 + 0j, "expected a number, got complex"),
        (np.complex64(1), "expected one number, got complex64"),
        (np.complex128(1), "expected one number, got complex128"),
        (np.array([0.5]), "expected one number, got ndarray"),
        (np.array([1, 2]), "expected one number, got ndarray"),
        (np.timedelta64(5, "D"), "expected one number, got timedelta64"),
        (np.datetime64("2020-01-01"), "expected one number, got datetime64"),
    ],
)
def test_what_is_no_number_is_refused_by_kind(given: Any, says: str) -> None:
    for read in (exact, positive, plain):
        with pytest.raises(SpecificationError, match=f"^epsilon: {says}"):
            read(given, "epsilon")


@examples(300)
@given(
    st.fractions()
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9).map(F)
)
def test_shown_numbers_read_back_exactly(number: Fraction) -> None:
    shown = show(number)
    if len(shown) <= 200:
        assert exact(shown, "x") == number
        told = plain(number, "x")
        assert exact(told, "x") == number
        assert isinstance(told, int) == (number.denominator == 1)
        assert plain(told, "x") == told


def test_tenths_add_up_to_one() -> None:
    assert sum(exact(0.1, "epsilon") for _ in range(10)) == 1


# ---------- the cell of a value ----------


def rule_1(value: Any) -> float | None:
    """The number that a raw value is; None where it is not one."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip(" \t\n\r\f\v").lower()
        body = text[1:] if text[:1] in ("+", "-") else text
        if body in ("inf", "infinity"):
            return -math.inf if text[:1] == "-" else math.inf
        digits = body.replace("e+", "e").replace("e-", "e").split("e")
        ok = len(digits) <= 2 and all(
            set(d) <= set("0123456789.") and any(c.isdigit() for c in d) for d in digits
        )
        if not ok or digits[0].count(".") > 1 or (len(digits) == 2 and "." in digits[1]):
            return None
        value = Decimal(text)
    if isinstance(value, Decimal | Fraction | int):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None if math.isnan(value) else float(value)


def defined_cell(attribute: Any, value: Any) -> int:
    """Rules 2 to 5 of the definition, one value at a time; −1 where there is no cell."""
    listed = brute.cells(attribute)
    n = sum(c.kind == "value" for c in listed)
    fallback = next((j for j, c in enumerate(listed) if c.kind == "missing"), -1)
    other = next((j for j, c in enumerate(listed) if c.kind == "other"), fallback)
    if isinstance(attribute, td.Categorical):
        if value is None or value != value:
            return fallback
        if isinstance(attribute.values[0], int):
            number = rule_1(value)
            return next((j for j in range(n) if number == listed[j].code), other)
        text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
        return next((j for j in range(n) if text == listed[j].code), other)
    number = rule_1(value)
    if number is None:
        return fallback
    if isinstance(attribute, td.Integer):
        if not math.isinf(number) and number != int(number):
            return fallback
        number = min(max(number, attribute.low), attribute.high)
        return (int(number) - attribute.low) // attribute.step
    # float() of a Fraction is the nearest double, so that every boundary is rounded once.
    return sum(float(cell.low) <= number for cell in listed[1:n])


TEXTS = ["1", "-1", " 2.50 ", "1e3", "1e400", "-1e400", "inf", "-Infinity", "nan", "1e", ".", "0x1", "1_0", "", "p", "q",
         "P", "true", "else", "missing", "٣", "1.", ".5", "+3", "\t4\n", "1 2"]  # fmt: skip
RAW = (
    st.none()
    | st.sampled_from(TEXTS)
    | st.integers(-12, 12)
    | st.sampled_from([2**53 + 1, -(2**63), 10**400, -(10**400)])
    | st.floats()
    | st.fractions(-10, 10, max_denominator=12).map(float)
    | st.decimals(-10, 10, places=2)
    | st.booleans()
)


@examples(300)
@given(st.integers(1, 8).flatmap(attributes), st.lists(RAW, max_size=12))
def test_cells_follow_the_definition(attribute: Any, values: list[Any]) -> None:
    if isinstance(attribute, td.Categorical) and isinstance(attribute.values[0], str):
        # Only text, whole numbers, truth values and null have a stated text.
        values = [v for v in values if v is None or isinstance(v, str | int)]
    expected = [defined_cell(attribute, v) for v in values]
    assert attribute.cells(values).tolist() == expected
    assert attribute.cells(np.array(values, dtype=object)).tolist() == expected


@examples(200)
@given(st.integers(1, 8).flatmap(attributes))
def test_labels_and_sizes_are_those_of_the_cells(attribute: Any) -> None:
    listed = brute.cells(attribute)
    kinds = [c.kind for c in listed]
    assert attribute.size == len(listed)
    assert attribute.n_values == kinds.count("value")
    assert attribute.other_cell == (kinds.index("other") if "other" in kinds else None)
    assert attribute.missing_cell == (kinds.index("missing") if "missing" in kinds else None)
    labels = [attribute.label(j) for j in range(attribute.size)]
    assert len(set(labels)) == len(labels)
    if not isinstance(attribute, td.Categorical):
        numerators, denominator = attribute.midpoints()
        middles = [F(int(v), denominator) for v in numerators]
        ordinary = [c for c in listed if c.kind == "value"]
        assert middles == [(c.low + c.high) / 2 for c in ordinary]
        assert [attribute.cell(c.low) for c in ordinary] == list(range(attribute.n_values))


@pytest.mark.parametrize(
    ("low", "high", "cells"),
    [
        ("0", "1", 10),
        ("0.1", "0.7", 6),
        ("-1/3", "1/3", 7),
        ("1e-9", "2e-9", 3),
        (2**40, 2**40 + 1, 8),
        ("-180", "180", 7200),
        ("1/7", "8/7", 49),
    ],
)
def test_boundaries_belong_to_the_cell_above_to_the_last_bit(low: Any, high: Any, cells: int) -> None:
    attribute = td.Numeric(low, high, cells=cells)
    bounds = [float(attribute.low + j * attribute.width) for j in range(1, cells)]
    assert bounds == sorted(set(bounds))
    values = [v for b in bounds for v in (b, math.nextafter(b, -math.inf), math.nextafter(b, math.inf))]
    assert attribute.cells(values).tolist() == [bisect.bisect_right(bounds, v) for v in values]
    assert attribute.cells([float(attribute.high), math.inf, -math.inf]).tolist() == [cells - 1, cells - 1, 0]


def test_nothing_is_dropped_by_value() -> None:
    age = td.Integer(17, 90, missing="secret")
    assert age.cells([-math.inf, 16, 17, 90, 91, math.inf, "1e999"]).tolist() == [0, 0, 0, 73, 73, 73, 73]
    assert age.cells([None, math.nan, 17.5, "x", ""]).tolist() == [74] * 5
    strict = td.Integer(17, 90)
    assert strict.cells([None, 17.5, 17]).tolist() == [-1, -1, 0]
    code = td.Categorical(["p"], other="else", missing="public")
    assert code.cells(["p", "P", "p ", "", None]).tolist() == [0, 1, 1, 1, 2]


# ---------- domains ----------


@examples(200)
@given(domains())
def test_whole_cells_are_numbered_row_major(domain: Any) -> None:
    every = brute.tuples(domain)
    assert domain.size == len(every) == math.prod(domain.shape)
    codes = np.arange(domain.size)
    columns = domain.decode(codes)
    assert [tuple(int(c[i]) for c in columns) for i in range(domain.size)] == every
    assert domain.encode(columns).tolist() == codes.tolist()
    for code, record in enumerate(every):
        assert domain.labels(code) == tuple(a.label(j) for a, j in zip(domain.values(), record, strict=True))


def test_the_largest_domain_encodes_and_a_larger_one_is_looked_at_in_parts() -> None:
    side = 3037000499  # side² is just below 2^63
    domain = td.Domain(a=td.Integer(1, side), b=td.Integer(1, side))
    corner = [side - 1, side - 1]
    code = domain.encode(corner)
    assert int(code) == side * side - 1
    assert [int(c) for c in domain.decode(code)] == corner
    assert domain.is_numbered and domain.parts() == [domain]
    larger = td.Domain(a=td.Integer(1, side), b=td.Integer(1, side), c=td.Integer(0, 1))
    assert larger.size == 2 * side * side and not larger.is_numbered
    assert [part.names for part in larger.parts()] == [("a", "b"), ("c",)]
    for action in (lambda: larger.encode([1, 1, 1]), lambda: larger.decode([1]), lambda: larger.labels(1)):
        with pytest.raises(
            SpecificationError, match=r"a, b, c have more than 2\^63 − 1 cells together; name fewer"
        ):
            action()
    assert td.Domain.from_spec(larger.to_spec()) == larger
    assert larger.select("b", "c").is_numbered


def test_domains_are_mappings_in_declared_order() -> None:
    a, b = td.Integer(0, 3), td.Categorical(["p", "q"])
    domain = td.Domain({"hours-per-week": a}, sex=b)
    assert domain.names == ("hours-per-week", "sex") and domain.shape == (4, 2) and domain["sex"] is b
    assert domain.select("sex", "hours-per-week") == domain
    assert domain.select("sex").names == ("sex",)
    assert td.Domain(a=a, b=b) == td.Domain({"a": a, "b": b}) != td.Domain(b=b, a=a)
    assert len({td.Domain(a=a), td.Domain(a=a)}) == 1
    with pytest.raises(SpecificationError, match=r"domain\.select: no attribute 'sx'.*Did you mean 'sex'"):
        domain.select("sx")


# ---------- specifications ----------


@examples(200)
@given(domains())
def test_domains_come_back_from_their_specification(domain: Any) -> None:
    spec = json.loads(json.dumps(domain.to_spec()))
    assert td.Domain.from_spec(spec) == domain
    assert td.Domain.from_spec(spec).to_spec() == domain.to_spec() == spec


def test_specifications_keep_columns_units_and_exact_bounds() -> None:
    domain = td.Domain(
        income=td.Integer(0, 200000, step=100, unit="EUR", missing="public", column="INC_TOT"),
        share=td.Numeric("1/3", "7/3", width="1/9", unit="m"),
        code=td.Categorical([3, 1, 2], ordered=True, other="else", missing="secret"),
    )
    spec = json.loads(json.dumps(domain.to_spec()))
    assert spec["income"] == {
        "integer": [0, 200000], "step": 100, "missing": "public", "column": "INC_TOT", "unit": "EUR"
    }  # fmt: skip
    assert spec["share"] == {"numeric": ["1/3", "7/3"], "cells": 18, "unit": "m"}
    assert spec["code"] == {"categorical": [3, 1, 2], "ordered": True, "other": "else", "missing": "secret"}
    assert td.Domain.from_spec(spec) == domain


def test_files_of_codes(tmp_path: Any) -> None:
    (tmp_path / "plain.txt").write_text("p\nq\n", "utf-8")
    (tmp_path / "table.csv").write_text('name,code\n"a, b",p\nc,q\n', "utf-8")
    for name in ("plain.txt", "table.csv"):
        found = attribute_from_spec("region", {"categorical": name}, tmp_path)
        assert found == td.Categorical(["p", "q"]) == td.Categorical(tmp_path / name)
    (tmp_path / "wide.csv").write_text("p,q\nr,s\n", "utf-8")
    (tmp_path / "semicolons.csv").write_text("code;label\np;x\n", "utf-8")
    (tmp_path / "twice.txt").write_text("p\n\nq\np\n", "utf-8")
    (tmp_path / "short.csv").write_text("name,code\na,p\nb\n", "utf-8")
    for name, says in (
        ("wide.csv", ": one code a line, or a CSV file"),
        ("semicolons.csv", ": one code a line, or a CSV file, with commas"),
        ("none.txt", ": cannot be read"),
        ("twice.txt", ", line 4: this code stands in a line before"),
        ("short.csv", ", line 3: too few fields"),
    ):
        with pytest.raises(SpecificationError, match=rf"^domain\.region\.values: {name}{says}"):
            attribute_from_spec("region", {"categorical": name}, tmp_path)


def test_a_code_with_a_line_break_keeps_it(tmp_path: Any) -> None:
    (tmp_path / "table.csv").write_bytes(b'code\r\n"p\nq"\r\n"r\x0bs"\r\n')
    assert td.Categorical(tmp_path / "table.csv") == td.Categorical(["p\nq", "r\x0bs"])


def test_a_code_that_is_listed_twice_is_named_by_its_place() -> None:
    with pytest.raises(SpecificationError, match="number 5001 of the list stands there before"):
        td.Categorical([*map(str, range(5000)), "17", *map(str, range(5000, 9000))])


BOX = [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, "domain.a: exactly one of integer, numeric, categorical"),
        ({"integer": [0, 1], "numeric": [0, 1]}, "domain.a: exactly one of integer, numeric, categorical"),
        ({"integer": [0]}, r"domain.a.integer: two bounds, \[low, high\]"),
        ({"integer": "01"}, r"domain.a.integer: two bounds, \[low, high\]"),
        ({"integer": [1, 0]}, "domain.a.high: must not lie below low"),
        ({"integer": [0, 0.5]}, "domain.a.high: a whole number within ±2\\^53"),
        ({"integer": [0, True]}, "domain.a.high: a truth value is not a number"),
        ({"integer": [0, 1], "step": 0}, "domain.a.step: at least 1"),
        ({"integer": [0, 1], "stepp": 2}, "domain.a: no key 'stepp'; declared: .*Did you mean 'step'"),
        ({"integer": [0, 1], "cells": 2}, "domain.a: no key 'cells'"),
        ({"integer": [0, 1], "missing": "maybe"}, "domain.a.missing: 'refuse', 'secret' or 'public'"),
        ({"integer": [0, 1], "column": 3}, "domain.a.column: the name of a column, as text"),
        ({"numeric": [0, 1]}, "domain.a.cells or width: give exactly one of them"),
        ({"numeric": [0, 1], "cells": 2, "width": 1}, "domain.a.cells or width: give exactly one of them"),
        ({"numeric": [0, 1], "width": "0.3"}, "domain.a.width: high − low must be a multiple of it"),
        ({"numeric": [0, 1], "width": 0}, "domain.a.width: must be above 0"),
        ({"numeric": [1, 1], "cells": 2}, "domain.a.high: must lie above low"),
        ({"numeric": [0, 1], "cells": 0}, "domain.a.cells: a whole number from 1 to 2\\^40"),
        (
            {"numeric": [0, "1/3000000000000000"], "cells": 7},
            "domain.a.low, high: the boundaries need more than",
        ),
        (
            {"categorical": []},
            "domain.a.values: at least one; categories are declared, never read off the data",
        ),
        ({"categorical": ["p", 1]}, "domain.a.values: all texts or all integers"),
        ({"categorical": [True]}, "domain.a.values: all texts or all integers"),
        ({"categorical": ["p", "p"]}, "domain.a.values: number 2 of the list stands there before"),
        ({"categorical": [2**60]}, "domain.a.values: integer codes lie within ±2\\^53"),
        ({"categorical": ["p"], "other": "p"}, "domain.a.other: a text that is not itself a declared value"),
        ({"categorical": [1], "other": "1"}, "domain.a.other: a text that is not itself a declared value"),
        (
            {"categorical": ["missing"], "missing": "secret"},
            "domain.a.values, other: 'missing' names the missing",
        ),
        (
            {"categorical": ["p"], "other": "missing", "missing": "public"},
            "domain.a.values, other: 'missing' names the missing cell",
        ),
        (
            {"categorical": ["p"], "hierarchy": {}},
            "domain.a.hierarchy: the value 'p' has no parent",
        ),
        ({"point": ["lat", "lon"]}, "domain.a.box: is missing; add it"),
        ({"point": ["lat"], "box": BOX, "cell": 1}, "domain.a.point: the names of two columns"),
        ({"point": "lat", "box": BOX, "cell": 1}, "domain.a.point: the names of two columns, not text"),
        ({"point": ["lat", "lat"], "box": BOX, "cell": 1}, "domain.a.point: two different columns"),
        ({"point": ["lat", "lon"], "box": [0, 1], "cell": 1}, "domain.a.box: two pairs of bounds"),
        (
            {"point": ["lat", "lon"], "box": [[1, 0], [0, 1]], "cell": 1},
            "domain.a.box: each low bound must lie below",
        ),
        (
            {"point": ["lat", "lon"], "box": [[0, 91], [0, 1]], "cell": 1},
            "domain.a.box: latitudes, which come first",
        ),
        (
            {"point": ["lat", "lon"], "box": [[0, 1], [0, 361]], "cell": 1},
            "domain.a.box: longitudes lie from",
        ),
        (
            {"point": ["lat", "lon"], "box": BOX, "cell": "1 USD"},
            "domain.a.cell: the attribute is declared in m",
        ),
        ({"point": ["lat", "lon"], "box": BOX, "cell": 0}, "domain.a.cell: must be above 0"),
        ({"point": ["lat", "lon"], "box": BOX, "cell": "1 cm", "column": "x"}, "domain.a: no key 'column'"),
        (
            {"point": ["lat", "lon"], "box": BOX, "cell": "0.1 cm"},
            "domain.a.cell: more than 2.24 cells along",
        ),
        ({"point": ["lat", "lon"], "box": BOX, "cell": 1, "metric": "x"}, 'domain.a.metric: "local"'),
        (
            {"point": ["lat", "lon"], "box": BOX, "cell": 1, "unit": "USD"},
            "domain.a.unit: a length, one of m, km",
        ),
        (5, "domain.a: a table such as"),
        ("integer", "domain.a: a table such as"),
    ],
)
def test_wrong_attributes_are_refused_with_key_and_fix(spec: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{says}"):
        td.Domain.from_spec({"a": spec})


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: td.Domain(), "domain: at least one attribute"),
        (lambda: td.Domain(a=5), "domain.a: Integer, Numeric, Categorical or Point, not int"),
        (lambda: td.Domain({"": td.Integer(0, 1)}), "domain: attribute names are non-empty texts"),
        (lambda: td.Domain({1: td.Integer(0, 1)}), "domain: attribute names are non-empty texts"),
        (lambda: td.Domain.from_spec([1]), "domain: a table of attributes"),
        (lambda: td.Integer(0, 9).cell(10), "value: a whole number from 0 to 9"),
        (lambda: td.Integer(0, 9).cell(0.5), "value: a whole number from 0 to 9"),
        (lambda: td.Integer(0, 9).cell("missing"), "value: not a number"),
        (lambda: td.Numeric(0, 1, cells=2).cell(2), "value: a number from 0 to 1"),
        (lambda: td.Categorical(["p", "q"]).cell("P"), "value: no value 'P'; declared: p, q"),
        (lambda: td.Categorical([1, 0]).cell(True), "value: no value True; declared: 1, 0"),
        (lambda: td.Categorical([1, 0]).cell([1]), r"value: no value \[1\]; declared: 1, 0"),
        (lambda: td.Categorical("no such file"), "values: no such file: cannot be read"),
    ],
)
def test_wrong_domains_and_values_are_refused(build: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{says}"):
        build()


def test_public_names_exist_and_others_do_not() -> None:
    for name in td.__all__:
        assert getattr(td, name) is not None
    assert set(td.__all__) <= set(dir(td))
    with pytest.raises(AttributeError, match="no attribute 'Histogramm'"):
        td.Histogramm  # noqa: B018
