"""init --columns: names and types of a schema, and nothing that rows hold."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tetraodon.cli import main
from tetraodon.errors import DataError, EngineError, SpecificationError
from tetraodon.spec import load
from tetraodon.starting import settings_text

CANARY = "Zanzibar-1964"
ROWS = pa.table(
    {
        "age": pa.array([987654, 12], pa.int32()),
        "income of a year": [987654.25, 2.0],
        "region": [CANARY, "b"],
        "ok": [True, False],
        "when": [datetime.date(1964, 1, 12)] * 2,
        'odd "name" = ✓': pa.array([CANARY, "b"]).dictionary_encode(),
        "parts": [[987654], []],
        "@first": [987654, 2],
    }
).replace_schema_metadata({"pandas": f'{{"of": "{CANARY}"}}', "note": CANARY})


def written(kind: str, folder: Path) -> Path:
    file = folder / f"people.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(ROWS, file, write_statistics=True, use_dictionary=True)
    elif kind == "arrow":
        pyarrow.feather.write_feather(ROWS, file)
    elif kind == "csv":
        file.write_text(f"age,income of a year,region\n987654,2.5,{CANARY}\n", encoding="utf-8")
    else:
        with duckdb.connect(str(file)) as connection:
            connection.register("told", ROWS)
            connection.execute(
                f"CREATE TABLE people AS SELECT *, CAST('{CANARY}' AS ENUM ('{CANARY}')) AS e, 1.5 AS d FROM told"
            )
    return file


def ran(*arguments: object) -> int:
    try:
        main([str(a) for a in arguments])
    except SystemExit as done:
        return int(done.code or 0)
    return 0


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "duckdb"])
def test_names_and_types_alone_reach_the_file(kind: str, tmp_path: Path, capsys: Any) -> None:
    file = written(kind, tmp_path)
    out = tmp_path / "settings" / "release.toml"
    out.parent.mkdir()
    assert ran("init", "--columns", file, "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    shown = text + "".join(capsys.readouterr())
    for secret in (CANARY, "987654", "1964", "Zanzibar"):
        assert secret not in shown
    document = tomllib.loads(text)
    domain = document["domain"]
    if kind == "csv":
        assert domain == {"age": {}, "income of a year": {}, "region": {}}
        return
    found = {name: next(iter(told)) for name, told in domain.items()}
    expected = {
        "age": "integer", "income of a year": "numeric", "region": "categorical", "ok": "categorical",
        'odd "name" = ✓': "categorical", "@first": "integer",
    }  # fmt: skip
    assert found == expected | ({"e": "categorical", "d": "numeric"} if kind == "duckdb" else {})
    assert "# [domain.when]" in text and "# [domain.parts]" in text
    assert document["release"][0]["query"] == {"histogram": ["age"]}
    source = document["data"]["source"]
    assert source == (f"duckdb://{file}" if kind == "duckdb" else f"../people.{kind}")
    assert (out.parent / source).exists() or kind == "duckdb"


def filled(text: str, answers: Iterable[str]) -> str:
    for answer in answers:
        at = text.index('["?", "?"]')
        text = text[:at] + answer + text[at + len('["?", "?"]') :]
    return text


def test_the_file_loads_when_every_blank_is_filled_in_and_not_before(tmp_path: Path) -> None:
    file, out = written("parquet", tmp_path), tmp_path / "release.toml"
    text = settings_text(file, out)
    answers = ["[0, 99]", "[0, 100]", '["a", "b"]', '["a", "?"]', "[0, 9]"]
    keys = [
        "age.integer",
        "income of a year.numeric",
        "region.categorical",
        'odd "name" = ✓.categorical',
        "@first.integer",
    ]
    for known, key in enumerate(keys):
        out.write_text(filled(text, answers[:known]), encoding="utf-8")
        with pytest.raises(SpecificationError) as caught:
            load(out)
        assert f'release.toml: domain.{key}: "?" is still to be filled in' in str(caught.value)
    out.write_text(filled(text, answers), encoding="utf-8")
    document = load(out)
    assert len(document.policy.domain) == 6
    document.table()
    assert ran("plan", out) == 0


def test_of_columns_without_types_one_line_is_kept(tmp_path: Path) -> None:
    file, out = written("csv", tmp_path), tmp_path / "release.toml"
    out.write_text(settings_text(file, out), encoding="utf-8")
    with pytest.raises(SpecificationError, match=r"domain.age: exactly one of integer, numeric"):
        load(out)


@pytest.mark.parametrize(
    "line",
    [f"12,{CANARY}", f"{CANARY},", f'"{CANARY}",-', f"{CANARY}@example.org,a", f"{'x' * 80},a", "a,1e5"],
)
def test_a_first_line_that_may_be_a_row_is_refused(line: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(f"{line}\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"people.csv: its first line may be a row") as caught:
        settings_text(file, tmp_path / "release.toml")
    assert CANARY not in str(caught.value)


def test_files_that_cannot_be_described_are_named(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "release.toml"
    assert ran("init", "--columns", tmp_path / "nobody.parquet", "--out", out) == 1
    assert "nobody.parquet: no such file" in capsys.readouterr().err
    assert ran("init", "--table", "people", "--out", out) == 2
    assert "init --table: goes with --columns" in capsys.readouterr().err
    other = tmp_path / "people.xlsx"
    other.write_text(CANARY, encoding="utf-8")
    for file, error, text in (
        (tmp_path, DataError, "a folder"),
        (other, DataError, "people.xlsx: not one of .parquet"),
    ):
        with pytest.raises(error, match=text):
            settings_text(file, out)
    for name in ("torn.parquet", "torn.duckdb", "torn.arrow"):
        (tmp_path / name).write_text(CANARY, encoding="utf-8")
        with pytest.raises(EngineError, match=f"{name}: opening failed") as caught:
            settings_text(tmp_path / name, out)
        assert CANARY not in str(caught.value)
    with pytest.raises(DataError, match="only a DuckDB file has tables"):
        settings_text(written("parquet", tmp_path), out, "people")
    pyarrow.parquet.write_table(ROWS.select(["when"]), tmp_path / "dates.parquet")
    with pytest.raises(DataError, match=r"dates.parquet: no column holds numbers or text"):
        settings_text(tmp_path / "dates.parquet", out)
    pyarrow.parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"twice.parquet: more than one column is named 'a'"):
        settings_text(tmp_path / "twice.parquet", out)
    assert not out.exists()


def test_a_database_of_several_tables_is_asked_for_one(tmp_path: Path) -> None:
    file, out = written("duckdb", tmp_path), tmp_path / "release.toml"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t (n HUGEINT, p STRUCT(a INTEGER), t TIMESTAMP)")
    with pytest.raises(DataError, match=r"--table must name a table; the file has people, s.t"):
        settings_text(file, out)
    with pytest.raises(DataError, match="no table 't'"):
        settings_text(file, out, "t")
    told = tomllib.loads(settings_text(file, out, "s.t"))
    assert told["data"]["table"] == "s.t" and list(told["domain"]) == ["n"]
