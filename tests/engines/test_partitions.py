"""Folders and lists of parquet files as one table; ``opened`` runs the suite of every engine on a folder besides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon import Domain, Integer, Numeric, Table
from tetraodon.errors import DataError, EngineError, SpecificationError
from tetraodon.rows.staged import check_files, digests_of
from tetraodon.spec import load

DOMAIN = Domain(age=Integer(0, 9))


def write(file: Path, **columns: Any) -> Path:
    file.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(columns), file)
    return file


def folder_of(tmp_path: Path) -> Path:
    write(tmp_path / "people" / "b.parquet", age=[1, 2], who=["c", "d"])
    write(tmp_path / "people" / "a.parquet", who=["a", "b"], age=[3, 3])
    return tmp_path / "people"


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("attribute", [Integer(0, 999, missing="secret"), Numeric(0, 1000, cells=1000)])
def test_rows_come_in_the_order_of_the_files(is_list: bool, attribute: Any, tmp_path: Path) -> None:
    """In many row groups and more files than threads, by names in the order of letters ("10" before "9")."""
    kind = pa.int64() if isinstance(attribute, Integer) else pa.float64()
    names = sorted(f"{i}.parquet" for i in range(25))
    for place, name in enumerate(names):
        rows = pa.table({"age": pa.array(np.arange(40) + 40 * place, kind), "id": np.arange(40) + 40 * place})
        pq.write_table(rows, tmp_path / name, row_group_size=7)
    files = [tmp_path / name for name in names]
    if is_list:
        files.reverse()
    table = Table(files if is_list else tmp_path, Domain(age=attribute))
    read = list(table.rows(keep=["id"], ordered=True))
    expected = [40 * place + i for place in (range(24, -1, -1) if is_list else range(25)) for i in range(40)]
    assert np.concatenate([b.cells for b in read]).tolist() == expected
    assert [i for b in read for i in b.kept[0].to_pylist()] == expected
    assert table.counts().dense is not None and set(table.counts().dense.tolist()) <= {0, 1}
    listed = Table(table._given["source"], Domain(age=attribute), where={"id": list(range(100, 900, 3))})
    for _ in range(5):  # DuckDB makes a join of so long a list
        found = np.concatenate([b.cells for b in listed.rows(ordered=True)]).tolist()
        assert found == [i for i in expected if 100 <= i < 900 and i % 3 == 1]
    chosen = Table(table._given["source"], Domain(age=attribute), id="id", max_rows_per_id=1,
                   where={"id": {"between": [100, 600]}})  # fmt: skip
    read = list(chosen.rows(ordered=True))
    assert np.concatenate([b.cells for b in read]).tolist() == [i for i in expected if 100 <= i <= 600]


def test_names_and_files_of_sources(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "_SUCCESS").touch()
    table = Table(f"{folder}/", DOMAIN)
    assert table.name == "people" and table._source.where == "people/"
    assert table._source.files == (folder / "a.parquet", folder / "b.parquet")
    given = Table([str(folder / "b.parquet"), folder / "a.parquet"], DOMAIN, where={"age": [3, 1]})
    assert given.name == "table" and given._source.files == (folder / "b.parquet", folder / "a.parquet")
    assert table.n_rows == 4 and given.n_rows == 3
    one = pa.table({"age": [1]})
    pa.csv.write_csv(one, tmp_path / "p.csv")
    pa.feather.write_feather(one, tmp_path / "p.arrow", compression="uncompressed")
    for name in ("p.csv", "p.arrow", "people/a.parquet"):
        assert Table(tmp_path / name, DOMAIN)._source.files == (tmp_path / name,)
    assert Table(pl.from_arrow(one), DOMAIN)._source.files == () == Table({"age": [1]}, DOMAIN)._source.files


def test_only_tables_of_a_duckdb_file_are_its_bytes(tmp_path: Path) -> None:
    """A view or a query may read anything."""
    file = tmp_path / "p.duckdb"
    other = write(tmp_path / "other.parquet", age=[1])
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS age")
        connection.execute(f"CREATE VIEW shown AS SELECT * FROM read_parquet('{other}')")
        connection.execute("CREATE TABLE made (n INTEGER, age INTEGER AS (CAST(9 * random() AS INTEGER)))")

    def files(**told: str) -> tuple[Path, ...]:
        return Table(f"duckdb://{file}", DOMAIN, **told)._source.files

    assert files(table="people") == (file, tmp_path / "p.duckdb.wal")
    people = Table(f"duckdb://{file}", DOMAIN, table="people")
    before = digests_of(people)
    assert files(table="shown") == files(table="made") == () == files(sql="SELECT * FROM people")
    with duckdb.connect(
        str(file)
    ) as connection:  # a writer that was killed leaves what it committed in the log
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("INSERT INTO people VALUES (5)")
    assert [name for name, _ in digests_of(people)] == [name for name, _ in before] and digests_of(
        people
    ) != before
    with pytest.raises(DataError, match=r"p\.duckdb\.wal is not the file that the release began with"):
        check_files(people, {"files": before})


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: write(f / "year=2025" / "c.parquet", age=[1]), r"^people/: holds a folder, 'year=2025'; folders within"),
        (lambda f: (f / "c.csv").write_text("age\n1\n"), r"^people/: holds 'c.csv', which is no parquet file"),
        (lambda f: (f / "_temporary").mkdir(), r"^people/: holds _temporary, so the write of it has not ended"),
        (lambda f: write(f / "c.parquet", who=["e"], Age=[1]), r"^people/c.parquet: no column 'age'; .* Did you mean 'Age'"),
        (lambda f: write(f / "c.parquet", age=["canary"]), r"^people/c.parquet: column 'age' is VARCHAR and in people/a.parquet BIGINT"),
        (lambda f: write(f / "c.parquet", age=np.zeros(1, np.int32)), "'age' is INTEGER and"),
        (lambda f: write(f / "c.parquet", age=[1.0]), "'age' is DOUBLE and"),
        (lambda f: write(f / "c.parquet", age=[1], AGE=[2]), r"^people/c.parquet: .* differ from 'age' in letter case"),
        (lambda f: os.link(f / "a.parquet", f / "c.parquet"), r"^people/: people/a.parquet and people/c.parquet are one file"),
        (lambda f: (f / "c.parquet").symlink_to("b.parquet"), r"people/b.parquet and people/c.parquet are one file"),
        (lambda f: [file.unlink() for file in f.iterdir()], r"^people/: a folder without a parquet file"),
    ],
)  # fmt: skip
def test_what_a_folder_must_not_hold(spoil: Any, says: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    spoil(folder)
    with pytest.raises(DataError, match=says) as caught:
        Table(folder, DOMAIN)
    assert "canary" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "c.parquet").write_bytes(b"PAR1 canary")
    with pytest.raises(EngineError, match=r"^people/c.parquet: opening failed") as caught:
        Table(folder, DOMAIN)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "kind", "says"),
    [
        ([], SpecificationError, "at least one"),
        (["duckdb://a"], SpecificationError, "a list of the paths of parquet files"),
        ([{"age": [1]}], SpecificationError, "a list of the paths of parquet files"),
        (["a.csv"], DataError, "a.csv: is no parquet file"),
        (["no.parquet"], DataError, "no.parquet: no such file"),
    ],
)
def test_lists_of_something_else(source: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        Table(source, DOMAIN)


def test_one_file_may_have_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "p.parquet", AGE=[5], age=[2])
    for source in (file, [file]):
        assert Table(source, DOMAIN).counts().dense.tolist()[2] == 1  # type: ignore[union-attr]


def test_a_release_of_a_folder(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "release.toml").write_text(
        """[data]
source = "people/"
[domain.age]
integer = [0, 9]
[policy]
secrets = "full"
[budget]
epsilon = 40
[[release]]
name = "ages"
epsilon = 40
query = { histogram = ["age"] }
"""
    )
    session = load(tmp_path / "release.toml").session()
    made = session.release(td.Histogram("age"), epsilon=40)
    assert np.round(np.ravel(made.values)).tolist() == [0, 1, 1, 2, 0, 0, 0, 0, 0, 0]
