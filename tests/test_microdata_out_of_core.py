"""Microdata from files and tables of Ibis: what is read, in what order it may come, and how much is held."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon.errors import EngineError, Refused, SpecificationError

COLORS = ["red", "green", "blue"]


def written(path: Path, rows: int, wide: int = 0, part: int = 20_000) -> Path:
    """People with counts and colours that follow their age, and a long text that nobody asks for."""
    writer = None
    for start in range(0, rows, part):
        rng, n = np.random.default_rng(start), min(part, rows - start)
        age = rng.integers(20, 60, n)
        told: dict[str, Any] = {"age": age}
        told |= {f"q_{j}": np.clip(rng.poisson(1 + age / 10, n), 0, 20) for j in range(4)}
        told["color"] = np.array(COLORS)[(age // 20 + rng.integers(0, 2, n)) % 3]
        told["note"] = [f"canary{x}" * max(wide // 10, 1) for x in rng.integers(100, 999, n)]
        table = pa.table(told)
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table, row_group_size=max(part // 10, 1))
    assert writer is not None
    writer.close()
    return path


def asked(**more: Any) -> td.HybridObscuring:
    told = {"distortion": 0.3, "groups": 3, "k": 100, "clusters": 6, "donors": 3} | more
    return td.HybridObscuring("age", ["q_0", "q_1", "q_2", "q_3", "color"], **told)


def check_donors(before: pa.Table, after: pa.Table, groups: dict[str, list[str]]) -> None:
    """Every published row stands, with its group, in the source."""
    names = ["q_0", "q_1", "q_2", "q_3", "color"]
    group = {v: label for label, values in groups.items() for v in values}
    told = zip(before.column("age").to_pylist(), *(before.column(n).to_pylist() for n in names), strict=True)
    held = {(group[str(age)], *rest) for age, *rest in told}
    shown = zip(*(after.column(n).to_pylist() for n in ("age", *names)), strict=True)
    assert set(shown) <= held and after.num_rows == before.num_rows


def test_a_table_of_ibis_gives_what_arrow_gives(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", 1600, part=200)
    table, whole = ibis.read_parquet(path), pq.read_table(path)
    hybrid = asked()
    out = hybrid.fit_transform(table)
    assert isinstance(out, pa.Table) and out.column_names == ["age", "q_0", "q_1", "q_2", "q_3", "color"]
    check_donors(whole, out, hybrid.groups_["age"])
    same = asked().fit(whole)
    assert same.groups_ == hybrid.groups_ and same.leakage_ == pytest.approx(hybrid.leakage_, abs=1e-9)
    again = hybrid.transform(table)
    check_donors(whole, again, hybrid.groups_["age"])
    with pytest.raises(Refused, match=r"at least 100 rows \(k\)"):
        hybrid.transform(table.filter(table.age < 21))
    with pytest.raises(SpecificationError, match="'color', which was fitted, is not there"):
        hybrid.transform(table.drop("color"))


def test_columns_without_a_part_are_not_read(tmp_path: Path) -> None:
    """A column whose every value makes the engine fail does no harm unless it is asked for, and is not quoted then."""
    table = ibis.read_parquet(written(tmp_path / "a.parquet", 600, part=300)).mutate(
        bad=ibis._.note.cast("int64")
    )
    hybrid = asked().fit(table)
    assert list(hybrid.feature_names_in_) == ["age", "q_0", "q_1", "q_2", "q_3", "color"]
    with pytest.raises(EngineError) as found:
        td.HybridObscuring("age", ["q_0", "bad"], distortion=1, groups=2).fit(table)
    assert "canary" not in str(found.value) and "withheld" in str(found.value)
    with pytest.raises(EngineError):
        td.HybridObscuring("age", "all", distortion=1, groups=2).fit(table)  # all other columns, this one too
    with pytest.raises(SpecificationError, match="no column 'q_9'"):
        td.HybridObscuring("age", ["q_9"], distortion=1, groups=2).fit(table)


PROGRAM = """
import json, resource, sys
import tetraodon as td, ibis, numpy, scipy.optimize, sklearn.cluster, pyarrow.parquet
way, path, out = sys.argv[1:]
names = ["q_0", "q_1", "q_2", "q_3", "color"]
hybrid = td.HybridObscuring("age", names, distortion=0.3, groups=4, k=10_000, clusters=8)
domain = td.Domain(age=td.Integer(20, 59), color=td.Categorical(["red", "green", "blue"]),
                   **{n: td.Integer(0, 20) for n in names[:4]})
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if way == "session":
    session = td.Session(td.Table(path, domain), td.Policy(domain, td.AttributeWise(age=td.Within(5))), epsilon=1)
    made = session.release(hybrid, guarantee="measured", name="people", audit=out + ".audit.csv")
    made.save(out, ("parquet", "csv"))
    groups = {g.label: list(g.values) for g in made.groups["age"]}
else:
    pyarrow.parquet.write_table(hybrid.fit_transform(ibis.read_parquet(path)), out + ".parquet")
    groups = hybrid.groups_["age"]
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
print(json.dumps({"used": used / 1024, "groups": groups}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["session", "ibis"])
def test_two_hundred_thousand_rows_of_a_file_are_released_in_bounded_memory(way: str, tmp_path: Path) -> None:
    """The file's long column alone would fill more than is used."""
    path = written(tmp_path / "a.parquet", 200_000, wide=4000)
    command = [sys.executable, "-c", PROGRAM, way, str(path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["used"] < 500, told["used"]  # MiB; the long column is 720 MiB
    out = tmp_path / ("out/people.parquet" if way == "session" else "out.parquet")
    names = ["age", "q_0", "q_1", "q_2", "q_3", "color"]
    check_donors(pq.read_table(path, columns=names), pq.read_table(out), told["groups"])
