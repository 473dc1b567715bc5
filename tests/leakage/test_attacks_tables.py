"""Pairs of tables for an attack: every kind of source, alignment, and refusals that show no value."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from tetraodon import leakage
from tetraodon.errors import DataError, EngineError, SpecificationError, TetraodonError, Unsupported
from tetraodon.leakage.attack_tables import Given, column, middle

CANARY = "canary-7391"
N = 60
AGE = np.random.default_rng(2).integers(18, 66, N)
ORIGINAL = {"who": [f"p{i:03d}" for i in range(N)], "age": AGE.tolist(), "near": (AGE * 1.5).tolist()}
RELEASED = {
    "who": ORIGINAL["who"],
    "age": [f"{a // 12 * 12}–{a // 12 * 12 + 11}" for a in AGE],
    "near": ORIGINAL["near"],
}


def attacked(original: Any, released: Any, model: str = "knn", **more: Any) -> leakage.Attack:
    return leakage.attack(
        original, released, "age", model, repeats=1, rng=np.random.default_rng(3), **{"id": "who", **more}
    )


def sources(table: dict[str, Any], folder: Path, name: str) -> dict[str, Any]:
    arrow = pa.table(table)
    pq.write_table(arrow, folder / f"{name}.parquet", row_group_size=7)
    pa.csv.write_csv(arrow, folder / f"{name}.csv")
    pa.feather.write_feather(arrow, folder / f"{name}.arrow", compression="uncompressed", chunksize=11)
    return {
        "dict": table, "arrays": {k: np.array(v) for k, v in table.items()}, "arrow": arrow,
        "pandas": arrow.to_pandas(), "polars": pl.DataFrame(table), "lazy": pl.LazyFrame(table),
        "parquet": folder / f"{name}.parquet", "csv": str(folder / f"{name}.csv"), "arrow file": folder / f"{name}.arrow",
        "category": arrow.to_pandas().astype({"who": "category"}),
    }  # fmt: skip


def test_every_source_gives_the_same_figures(tmp_path: Path) -> None:
    left, right = sources(ORIGINAL, tmp_path, "original"), sources(RELEASED, tmp_path, "released")
    expected = attacked(ORIGINAL, RELEASED)
    for kind in left:
        assert attacked(left[kind], right[kind]) == expected, kind
    assert attacked(left["csv"], right["polars"]) == expected == attacked(left["pandas"], right["parquet"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_rows_stay_in_the_order_of_the_file(tmp_path: Path, ending: str) -> None:
    n = 150_000
    table = pa.table({"a": np.arange(n), "b": np.arange(n)[::-1].copy()})
    path = tmp_path / f"long.{ending}"
    if ending == "csv":
        pa.csv.write_csv(table, path)
    elif ending == "parquet":
        pq.write_table(table, path, row_group_size=10_000)
    else:
        pa.feather.write_feather(table, path, chunksize=10_000)
    read = Given.of(path, "original").read(["b", "a"])
    assert (read.columns["a"].numbers == np.arange(n)).all()
    assert (read.columns["b"].numbers == np.arange(n)[::-1]).all()


def test_ids_match_rows_in_any_order_and_leave_the_others_out() -> None:
    order = np.random.default_rng(5).permutation(N)
    shuffled = {k: [v[i] for i in order] for k, v in RELEASED.items()}
    assert attacked(ORIGINAL, shuffled) == attacked(ORIGINAL, RELEASED)
    own = {k: [v[i] for i in order] for k, v in ORIGINAL.items()}
    near = ["near"]
    by_order = attacked(own, shuffled, id=None, features=near)
    assert by_order.paired_by is None
    assert attacked(own, RELEASED, features=near) == replace(by_order, paired_by="who")
    assert attacked(own, RELEASED, id=None, features=near).success > by_order.success + 5
    fewer = {k: [*v[:50], v[0] if k != "who" else "stranger"] for k, v in RELEASED.items()}
    found = attacked(ORIGINAL, fewer)
    assert (found.people, found.left_out) == (50, 10)
    assert "who" not in found.features


def test_rows_paired_by_their_order_though_they_stand_in_another_are_warned_of() -> None:
    order = np.random.default_rng(5).permutation(N)
    shuffled = {k: [v[i] for i in order] for k, v in RELEASED.items()}
    for who in (ORIGINAL["who"], list(range(N))):
        one, other = {**ORIGINAL, "who": who}, {**shuffled, "who": [who[i] for i in order]}
        assert "'who' stands in different orders" in attacked(one, other, "group-median", id=None).words()
        assert "different orders" not in attacked(one, other, "group-median").words()
    assert "different orders" not in attacked(ORIGINAL, RELEASED, "group-median", id=None).words()
    own = {**ORIGINAL, "near": [v + 0.25 for v in ORIGINAL["near"]]}
    swapped = {**RELEASED, "near": [own["near"][i] for i in order]}  # fractions say who nobody is
    assert "different orders" not in attacked(own, swapped, "group-median", id=None).words()


def test_of_many_people_some_are_drawn() -> None:
    some = attacked(ORIGINAL, RELEASED, "group-median", most_people=40)
    assert (some.people, some.left_out) == (40, 0) and "drawn at random" in some.words()
    for most in (N, None):
        assert attacked(ORIGINAL, RELEASED, "group-median", most_people=most).people == N
    for wrong in (9, True, 40.0):
        with pytest.raises(SpecificationError, match=r"attack\.most_people"):
            attacked(ORIGINAL, RELEASED, "group-median", most_people=wrong)
    pair = leakage.paired(
        ORIGINAL,
        RELEASED,
        RELEASED,
        "age",
        "group-median",
        id="who",
        most_people=40,
        rng=np.random.default_rng(3),
    )
    assert pair.people == 40 and pair.difference == 0 and pair.interval == (0, 0)


def test_whole_number_ids_of_any_length_and_form() -> None:
    big = [2**60 + i for i in range(N)]
    one = {**ORIGINAL, "who": big}
    for theirs in ([str(b) for b in big], np.array(big)):
        assert attacked(one, {**RELEASED, "who": theirs}, "group-median").left_out == 0
    with pytest.raises(DataError, match="more than once"):
        attacked({**ORIGINAL, "who": ["0", "0.0", *map(str, range(1, N - 1))]}, RELEASED)
    small = {**ORIGINAL, "who": np.arange(N)}
    assert attacked(small, {**RELEASED, "who": np.arange(N) * 1.0}, "group-median").left_out == 0


def test_what_columns_become() -> None:
    def read(values: Any) -> Any:
        return column(pa.array(values), "t", "c")

    assert read(["1", "2.5", "", "NA", None]).numbers.tolist()[:2] == [1, 2.5]
    assert read(["1", "2.5", "", "NA", None]).missing.tolist() == [False, False, True, True, True]
    assert read(["1", "x"]).numbers is None and read(["", "x"]).missing.tolist() == [True, False]
    assert read(["NA", "?"]).levels == ("NA", "?")
    assert read([True, None]).missing.tolist() == [False, True]
    assert read([None, None]).missing.all()
    assert read([1.0, float("inf"), float("nan")]).missing.tolist() == [False, True, True]
    days = read([datetime.date(2020, 1, 1), datetime.date(2020, 1, 3)]).numbers
    assert days[1] - days[0] == 2
    hours = read([datetime.datetime(2020, 1, 1, 0), datetime.datetime(2020, 1, 1, 12)]).numbers
    assert hours[1] - hours[0] == 0.5
    coded = pa.array(["a", "b", "a"]).dictionary_encode()
    assert column(coded, "t", "c").codes.tolist() == [0, 1, 0]
    assert column(pa.chunked_array([["a"], ["b", "a"]]), "t", "c").codes.tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="t: column 'c' is list"):
        read([[1], [2]])


def test_middles_of_ranges() -> None:
    texts = ["17–24", "17-24", "-5 to -1", "[0.5, 1.5)", "65+", "under 3", "other"]
    assert [middle(t) for t in texts[:-1]] == [20.5, 20.5, -3.0, 1.0, 65.0, 3.0] and np.isnan(middle("other"))


def change(table: dict[str, Any], **columns: Any) -> dict[str, Any]:
    return {**table, **columns}


@pytest.mark.parametrize(
    ("original", "released", "more", "says"),
    [
        (ORIGINAL, {k: v[:50] for k, v in RELEASED.items()}, {"id": None}, "not equally many rows"),
        (ORIGINAL, change(RELEASED, who=[CANARY] * N), {}, "released: a value of the id column 'who' occurs more than once"),
        (change(ORIGINAL, who=[CANARY] * N), RELEASED, {}, "original: a value of the id column 'who' occurs more than once"),
        (change(ORIGINAL, who=[None, *ORIGINAL["who"][1:]]), RELEASED, {}, "id column 'who' has missing values"),
        (change(ORIGINAL, who=[f"{CANARY} {i}" for i in range(N)]), RELEASED, {}, "no id occurs in both"),
        (change(ORIGINAL, who=np.arange(N) % 2 == 0), RELEASED, {}, "id column 'who' is bool"),
        (ORIGINAL, RELEASED, {"id": "whom"}, "original: no column 'whom'"),
        (ORIGINAL, RELEASED, {"features": ["nearby"]}, "released: no column 'nearby'"),
        ({k: v for k, v in ORIGINAL.items() if k != "age"}, RELEASED, {}, "original: no column 'age'"),
        (change(ORIGINAL, age=[41] * N), RELEASED, {}, "one value for everybody"),
        (change(ORIGINAL, age=[CANARY] * N), RELEASED, {}, "one value for everybody"),
        (change(ORIGINAL, age=[None] * N), RELEASED, {}, "fewer than 10 people"),
        (change(ORIGINAL, age=[CANARY, "x"] * 30), RELEASED, {"kind": "number"}, "texts that are no numbers"),
        ({k: v[:9] for k, v in ORIGINAL.items()}, RELEASED, {}, "fewer than 10 people"),
        (ORIGINAL, {"who": RELEASED["who"]}, {}, "no column is left"),
        (change(ORIGINAL, near=[CANARY]), RELEASED, {}, "not equally long"),
        (ORIGINAL, pa.table({"who": ["a"], "near": [[CANARY]]}), {}, "column 'near' is list"),
        (ORIGINAL, pd.DataFrame([[1, 2]], columns=["near", "near"]), {"id": None}, "more than one column is named"),
        (f"{CANARY}.parquet", RELEASED, {}, "no such file"),
        ("people.xlsx", RELEASED, {}, "not one of"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(original: Any, released: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        attacked(original, released, **more)
    assert caught.value.exit_code == 1
    assert CANARY not in str(caught.value) or str(original).startswith(CANARY)


@pytest.mark.parametrize("source", [1, [1, 2], "duckdb://x.duckdb", None])
def test_other_sources_are_refused(source: object) -> None:
    with pytest.raises(Unsupported, match=r"^released: a path"):
        attacked(ORIGINAL, source)


def test_broken_files_and_headerless_ones_show_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(f"{CANARY}".encode())
    with pytest.raises(EngineError, match=r"bad\.parquet: opening failed") as caught:
        attacked(bad, RELEASED)
    headless = tmp_path / "headless.csv"
    headless.write_text(f"{CANARY},41\nx,42\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column 'age' in its first line") as told:
        attacked(headless, RELEASED)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text(f'who,age,near\n"{CANARY},41,1\n', encoding="utf-8")
    with pytest.raises(TetraodonError) as torn:
        attacked(ragged, RELEASED)
    for error in (caught, told, torn):
        assert CANARY not in str(error.value) and error.value.__cause__ is None
