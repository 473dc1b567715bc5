"""Microdata against the cases that first struck counts: C02, C03, C05, C11, C13, C14, C15, C21, C26, C32."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microdata_people import asked, people, session

from tetraodon import noise
from tetraodon.microdata import drawing
from tetraodon.microdata.declared import read


def released(rows: Any = None, **more: Any) -> Any:
    return session(rows=people() if rows is None else rows).release(
        asked(), guarantee="measured", name="m", **more
    )


@pytest.fixture(scope="module")
def made() -> Any:
    return released()


def test_c02_rows_are_drawn_and_ordered_by_the_noise_module(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every choice of a donor is the operating system's: numpy's generators are never asked once the plan stands."""
    words: list[int] = []
    real = noise._entropy
    monkeypatch.setattr(noise, "_entropy", lambda count: (words.append(count), real(count))[1])

    def never(*_: object, **__: object) -> Any:
        raise AssertionError("a generator was asked")

    for name in ("default_rng", "Generator", "RandomState", "choice", "permutation", "shuffle", "random"):
        monkeypatch.setattr(np.random, name, never)
    first, second = (drawing.drawn(made.plan, made.plan.prepared.data) for _ in range(2))
    # Half a word for the cluster, one for the donor, of each row.
    assert sum(words) >= 2 * 240 and not np.array_equal(first.donors, second.donors)


def test_c03_the_order_of_rows_changes_no_requirement_and_no_count() -> None:
    """Groups are of the values and not of where they stand: permuted rows have the same groups, of the same sizes."""
    rows = people()
    order = np.random.default_rng(1).permutation(240)
    other = {k: [v[i] for i in order] for k, v in rows.items()}
    one, two = (released(r).groups["age"] for r in (rows, other))
    assert [(g.label, g.rows) for g in one] == [(g.label, g.rows) for g in two]


@pytest.mark.parametrize("value", [2**31 - 1, 2**63 - 1, -(2**63), 10**30, 1e308, -1e308])
def test_c05_numbers_at_the_ends_of_their_types_are_clipped_like_any_other(value: Any) -> None:
    rows = people()
    rows["hours"][3], rows["pay"][4] = value, float(value)
    own = session(rows=rows)
    cells = read(own.table, own.plan(asked()).strategy.layout).cells["hours"]
    assert int(cells[3]) == (60 if value > 0 else 0) and int(np.max(cells)) <= 60
    assert released(rows).to_arrow()["hours"].to_pylist().count(value) == 0


def test_c11_codes_and_dictionaries_come_from_the_declaration(tmp_path: Path) -> None:
    """Whatever order values come in, and whichever occur: the file's dictionaries are the declared ones, or the groups'."""
    rows = people()
    order = sorted(range(240), key=lambda i: (rows["mood"][i] != "high", rows["likes"][i]))
    rows = {k: [v[i] for i in order] for k, v in rows.items()}
    rows["likes"] = pa.array(
        rows["likes"]
    ).dictionary_encode()  # in order of appearance, with a value that nobody declared
    own = released(rows)
    table = own.to_arrow()
    assert table["mood"].chunk(0).dictionary.to_pylist() == ["low", "even", "high"]
    assert table["likes"].chunk(0).dictionary.to_pylist() == ["tea", "milk", "else"]
    assert table["age"].chunk(0).dictionary.to_pylist() == [g.label for g in own.groups["age"]]
    own.save(tmp_path, ("parquet", "csv"))
    for path in tmp_path.iterdir():
        assert b"canary" not in path.read_bytes(), path.name


def test_c13_values_that_nobody_has_stand_in_the_groups_like_all_others(tmp_path: Path) -> None:
    """The file that says what labels stand for names every declared value, so that it does not tell which ones occur."""
    rows = people()
    rows["age"] = [20 + (a - 20) // 2 * 2 for a in rows["age"]]  # only even ages occur
    released(rows).save(tmp_path, ("csv",))
    with (tmp_path / "m.groups.csv").open(encoding="utf-8", newline="") as file:
        told = Counter(int(line["value"]) for line in csv.DictReader(file))
    assert told == Counter(range(20, 40))


def test_c14_rows_leave_in_an_order_of_their_own(tmp_path: Path) -> None:
    """Sorted people: the published rows are uncorrelated with the order that they came in, and no file tells it."""
    rows = people(1000)
    order = np.argsort(rows["age"])
    rows = {k: [v[i] for i in order] for k, v in rows.items()}
    own = released(rows)
    groups = np.array([int(str(g)[:2]) for g in own.to_arrow()["age"].to_pylist()])
    # The correlation has a standard deviation of 1/31.6; at 1e-9 it stays within 6.2 of them.
    assert abs(np.corrcoef(groups, np.arange(1000))[0, 1]) < 6.2 / 31.6
    own.save(tmp_path)
    stored = pq.ParquetFile(tmp_path / "m.parquet").metadata
    assert not (stored.metadata or {}) and stored.num_row_groups == 1
    assert all(stored.row_group(0).column(c).statistics is None for c in range(stored.num_columns))


def test_c15_the_same_request_draws_other_rows(made: Any) -> None:
    other = released()
    key = [("age", "ascending"), ("hours", "ascending"), ("mood", "ascending")]
    one, two = (m.to_arrow().cast(pa.schema([("age", pa.string()), ("hours", pa.int64()), ("mood", pa.string()), ("likes", pa.string())])).sort_by(key) for m in (made, other))  # fmt: skip
    assert not one.equals(two)  # 240 donors drawn among three and more


def test_c21_microdata_read_or_saved_twice_are_the_same(made: Any, tmp_path: Path) -> None:
    assert made.to_arrow().equals(made.to_arrow())
    for folder in ("a", "b"):
        made.save(tmp_path / folder, ("parquet", "csv"))
    for name in ("m.parquet", "m.csv", "m.groups.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_c26_values_inside_one_clamp_class_are_one_value(tmp_path: Path) -> None:
    """What is compared, grouped, exchanged and published is the declared cell, not the raw value beside it."""
    plain, odd = people(), people()
    plain["hours"] = [min(max(h, 0), 60) for h in plain["hours"]]
    for i in range(0, 240, 7):
        plain["hours"][i], odd["hours"][i] = 60, 61 + i * 1000
    layouts = []
    for rows in (plain, odd):
        own = session(rows=rows)
        found = read(own.table, own.plan(asked()).strategy.layout)
        layouts.append([np.asarray(found.cells[n]).tolist() for n in ("hours", "mood", "likes")])
    assert layouts[0] == layouts[1]
    assert max(released(odd).to_arrow()["hours"].to_pylist()) <= 60


def test_c32_no_donor_comes_from_where_the_law_is_zero(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With extreme words in place of random ones, every donor is of the row's own group, in a cluster that its law allows."""
    data, plan = made.plan.prepared.data, made.plan
    joint, clusters = plan.joint_group(data.codes), plan.prepared.clusters.labels
    extreme = cycle([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**62 - 1, 2**61, 3])
    monkeypatch.setattr(
        noise, "_entropy", lambda count: np.array([next(extreme) for _ in range(count)], np.uint64).tobytes()
    )
    laws = {law.group: law for law in plan.laws}
    for _ in range(9):
        found = drawing.drawn(plan, data)
        assert np.array_equal(joint[found.donors], joint) and np.array_equal(
            clusters[found.donors], found.clusters
        )
        for i in range(data.rows):
            law = laws[int(joint[i])]
            row, column = law.rows.tolist().index(clusters[i]), law.columns.tolist().index(found.clusters[i])
            assert law.matrix[row, column] > 0
