"""Codes that DuckDB counts by address, because it knows their bounds, beside codes that are tallied here; and bounds that are wrong."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon import counting
from tetraodon.errors import DataError, EngineError

KINDS = {"int8": (-128, 127), "uint16": (0, 65535), "int64": (-(2**63), 70000)}


@pytest.fixture
def addressed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What DuckDB said, each time that it was asked whether it counts by address."""
    told: list[bool] = []
    asked = counting._is_addressed

    def remembered(*given: Any) -> bool:
        told.append(asked(*given))
        return told[-1]

    monkeypatch.setattr(counting, "_is_addressed", remembered)
    return told


def truth(domain: td.Domain, rows: dict[str, Any]) -> Any:
    """Counts by the attributes' own definition, in Python."""
    counts = np.zeros(domain.size, dtype=np.int64)
    cells = [a.cells(rows[name]) for name, a in domain.items()]
    for row in zip(*cells, strict=True):
        counts[np.ravel_multi_index(row, domain.shape)] += 1
    return counts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("missing", ["refuse", "secret"])
def test_both_ways_of_counting_give_the_same(
    tmp_path: Path, addressed: list[bool], kind: str, near: bool, missing: str
) -> None:
    """Values between the declared bounds or all over their type, which DuckDB would need too large a table for."""
    rng = np.random.default_rng(list(KINDS).index(kind))
    low, high = (0, 90) if near else KINDS[kind]
    age = [int(v) for v in rng.integers(0, 90, 400)] + [low, high] * 3
    code = [int(v) for v in rng.integers(0, 50, len(age))]
    some: list[Any] = list(age)
    if missing == "secret":
        some[::7] = [None] * len(some[::7])
    rows = {"age": some, "code": code}
    held = pa.table({"age": pa.array(some, kind), "code": pa.array(code, "int16")})
    pq.write_table(held, tmp_path / "people.parquet", row_group_size=100)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM held")
    for ages, codes in (
        (td.Integer(10, 70, missing=missing), td.Integer(5, 20, missing="public")),
        (td.Numeric(0, 80, width=1, missing=missing), td.Integer(0, 49)),
    ):
        domain = td.Domain(age=ages, code=codes)
        expected = truth(domain, rows)
        for source in (tmp_path / "people.parquet", f"duckdb://{tmp_path}/people.duckdb", held):
            told = {"table": "people"} if isinstance(source, str) else {}
            counts = td.Table(source, domain, **told).counts()
            assert np.array_equal(counts.dense, expected)
            assert not addressed[-1] or source is not held  # a frame has no bounds
            if (
                near and source is not held and kind[0] != "u"
            ):  # DuckDB keeps no bounds through a cast of these
                assert addressed[-1]
        whole = td.Table(tmp_path / "people.parquet", td.Domain(age=ages)).counts()
        assert np.array_equal(whole.dense, truth(td.Domain(age=ages), rows))


def test_a_null_is_refused_by_either(tmp_path: Path, addressed: list[bool]) -> None:
    for high in (50, 2**31 - 1):
        table = pa.table({"age": pa.array([1, None, high], "int32"), "code": pa.array([1, 2, 3], "int32")})
        pq.write_table(table, tmp_path / "people.parquet")
        domain = td.Domain(age=td.Integer(0, 99), code=td.Integer(0, 9))
        with pytest.raises(DataError, match=r"people\.parquet: column 'age' holds a value that is null"):
            td.Table(tmp_path / "people.parquet", domain).counts()
    assert addressed == [True, False]


def test_other_columns_are_tallied_here(tmp_path: Path, addressed: list[bool]) -> None:
    """Texts, categories and weights, as before; and a domain beyond the addresses."""
    table = pa.table({"age": [3, 4], "sex": ["f", "m"], "n": [2, 1], "code": [1, 2]})
    pq.write_table(table, tmp_path / "people.parquet")
    age = td.Integer(0, 9)
    file = tmp_path / "people.parquet"
    for domain, told in (
        (td.Domain(age=age, sex=td.Categorical(["f", "m"])), {}),
        (td.Domain(age=age, code=td.Categorical([1, 2])), {}),
        (td.Domain(age=age), {"weight": "n", "weight_bounds": (0, 5)}),
    ):
        assert td.Table(file, domain, **told).counts().total == (3 if told else 2)
    assert addressed == [False, False, False]


def falsified(file: Path, *changes: tuple[bytes, bytes]) -> None:
    """Replaces bytes of the footer, which says what the columns hold."""
    held = file.read_bytes()
    end = len(held) - 8
    start = end - struct.unpack("<i", held[end : end + 4])[0]
    footer = held[start:end]
    for old, new in changes:
        footer = footer.replace(old, new)
    assert footer != held[start:end]
    file.write_bytes(held[:start] + footer + held[end:])


def lying(file: Path, value: int, told: int) -> Path:
    """A parquet file that holds ``value`` and says that it holds ``told`` at most, or at least."""
    ages, codes = pa.array([3, 4, value, 7] * 100, "int32"), pa.array([1, 2, 3, 4] * 100, "int32")
    pq.write_table(
        pa.table({"age": ages, "code": codes, "more": codes}), file, use_dictionary=False, compression="none"
    )
    falsified(file, (struct.pack("<i", value), struct.pack("<i", told)))
    return file


def counted(table: td.Table) -> int:
    return table.counts().total


def read(table: td.Table) -> int:
    return sum(len(batch["age"]) for batch in table.cells())


@pytest.mark.parametrize("ages", [td.Integer(0, 119), td.Numeric(0, 120, width=3)])
@pytest.mark.parametrize(("value", "told"), [(50001234, 100), (-77777, 2)])
def test_a_file_that_lies_about_its_bounds_shows_no_value(
    tmp_path: Path, ages: td.Attribute, value: int, told: int
) -> None:
    """DuckDB believes the statistics of a file. What is then wrong is refused, or is a cell of the domain; it never gets out."""
    file = lying(tmp_path / "people.parquet", value, told)
    seen = 0
    for more, actions in (
        ({}, (counted, read)),
        ({"code": td.Integer(0, 999)}, (counted, read)),
        ({"code": td.Integer(0, 2**40), "more": td.Integer(0, 2**40)}, (read,)),
    ):
        table = td.Table(file, td.Domain(age=ages, **more))
        for action in actions:
            try:
                assert action(table) == 400
            except EngineError as error:
                seen += 1
                assert str(value) not in str(error) and error.__cause__ is error.__context__ is None
    assert seen >= 3


def test_a_file_that_denies_its_nulls_is_told_from_a_value_that_is_refused(tmp_path: Path) -> None:
    """DuckDB then takes no row for a null, and no attribute can be named."""
    file = tmp_path / "people.parquet"
    ages = pa.array([3, None, 7] * 20, "int32")
    pq.write_table(pa.table({"age": ages}), file, use_dictionary=False, compression="none")
    falsified(
        file, *((bytes([field, 2 * 20]), bytes([field, 0])) for field in (0x16, 0x36))
    )  # Thrift doubles numbers
    assert pq.read_metadata(file).row_group(0).column(0).statistics.null_count == 0
    for missing in ("refuse", "secret"):
        try:
            assert counted(td.Table(file, td.Domain(age=td.Integer(0, 9, missing=missing)))) == 60
        except EngineError as error:
            assert "statistics are wrong" in str(error)
