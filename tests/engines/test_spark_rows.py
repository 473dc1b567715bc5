"""Rows of a Spark table through channels: each is drawn by a worker and published exactly once, whatever Spark runs again."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark_local import session

import tetraodon as td
from tetraodon import Categorical, Domain, Integer, spark_rows
from tetraodon.channels.channel import Channel
from tetraodon.errors import DataError, EngineError, TetraodonError, Unsupported

ROWS = 20_000
EXPONENTIAL = {"kind": "exponential"}
DOMAIN = Domain(vote=Categorical(["no", "yes"]))


def voters(count: int = ROWS) -> Any:
    """One row in four says yes; each has a number, and there are four partitions."""
    rows = session().range(0, count, 1, 4)
    return rows.selectExpr("id", "CASE WHEN id % 4 = 0 THEN 'yes' ELSE 'no' END AS vote")


def published_once(told: pa.Table, count: int = ROWS) -> bool:
    return sorted(told["id"].to_pylist()) == list(range(count))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_every_row_is_drawn_for_itself_and_by_the_law_of_the_channel(folder: Path) -> None:
    lie = Channel.of_matrix([[0.75, 0.25], [0.125, 0.875]], DOMAIN)
    told = lie.apply(voters(), keep=["id"])
    assert not list(folder.iterdir())
    assert told.column_names == ["vote", "id"] and published_once(told)
    assert told["id"].to_pylist() != list(range(ROWS)), "rows are shuffled"
    told = told.sort_by("id")
    yes = np.array(told["vote"].to_pylist()) == "yes"
    was = np.arange(ROWS) % 4 == 0
    # Ten standard deviations either way.
    assert abs(yes[was].mean() - 0.875) < 10 * 0.33 / np.sqrt(was.sum())
    assert abs(yes[~was].mean() - 0.25) < 10 * 0.44 / np.sqrt((~was).sum())
    again = lie.apply(voters(), keep=["id"]).sort_by("id")
    # Workers that inherited one state would draw alike, in each partition and each time.
    assert again["vote"].to_pylist() != told["vote"].to_pylist()
    quarters = [yes[i : i + ROWS // 4].tolist() for i in range(0, ROWS, ROWS // 4)]
    assert all(a != b for i, a in enumerate(quarters) for b in quarters[:i])


def once(path: str) -> bool:
    """Whether nobody has been here yet."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Dying:
    """A law in a worker that ends, without a word, after some batches of its first attempt at a partition."""

    law: Any
    marks: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.law, name)

    def draw(self, cells: Any) -> Any:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        found = self.law.draw(cells)
        drawn = Path(self.marks, f"drawn-{task.partitionId()}-{task.attemptNumber()}")
        seen = int(drawn.read_text()) if drawn.exists() else 0
        drawn.write_text(str(seen + len(cells)))
        if seen > 1000 and task.partitionId() in (1, 3) and once(f"{self.marks}/died-{task.partitionId()}"):
            os._exit(1)
        return found


def test_rows_of_a_worker_that_dies_half_way_are_published_exactly_once(tmp_path: Path) -> None:
    session()
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it
    lie = Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN)
    dying = replace(lie, law=Dying(lie.law, str(tmp_path)))
    told = dying.apply(voters(), keep=["id"])
    assert {p.name for p in tmp_path.glob("died-*")} == {"died-1", "died-3"}
    first, second = (int(Path(tmp_path, f"drawn-1-{attempt}").read_text()) for attempt in (0, 1))
    assert 1000 < first < ROWS / 4 and second == ROWS / 4, "some rows were drawn twice"
    assert published_once(told)


def test_nothing_is_published_where_a_task_never_succeeds(folder: Path) -> None:
    def failing(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            raise ValueError("canary-4402")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark warns of new versions of pandas
        rows = voters().mapInArrow(failing, "id long, vote string")
    with pytest.raises(EngineError) as caught:
        Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN).apply(rows, keep=["id"])
    assert "canary" not in str(caught.value) and caught.value.__context__ is None
    assert not list(folder.iterdir())


def test_two_draws_of_one_partition_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lie = Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN)
    write = spark_rows._write

    def twice(backend: Any, codes: Any, drawing: Any, kinds: Any, stage: str) -> None:
        write(backend, codes, drawing, kinds, f"{stage}/a=1")
        write(backend, codes, drawing, kinds, f"{stage}/a=2")

    def lacking(backend: Any, codes: Any, drawing: Any, kinds: Any, stage: str) -> None:
        write(backend, codes.filter(codes.code == 0), drawing, kinds, stage)

    def split(backend: Any, codes: Any, drawing: Any, kinds: Any, stage: str) -> None:
        write(backend, codes.filter(codes.code == 0), drawing, kinds, f"{stage}/a=1")
        write(backend, codes.filter(codes.code == 1), drawing, kinds, f"{stage}/a=2")

    for made in (twice, lacking, split):
        monkeypatch.setattr(spark_rows, "_write", made)
        with pytest.raises(EngineError, match="did not write each row exactly once"):
            lie.apply(voters(100))


def test_a_refused_value_is_named_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rows, "_write", lambda *_: pytest.fail("drawn"))
    rows = session().createDataFrame(pa.table({"vote": ["no", "canary"]}))
    with pytest.raises(DataError, match="column 'vote' holds a value"):
        Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN).apply(rows)


def test_no_rows_make_columns_all_the_same() -> None:
    told = Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN).apply(voters(0), keep=["id"])
    assert told.num_rows == 0 and told.column_names == ["vote", "id"]


def test_a_release_of_rows_is_charged_once_and_goes_by_a_folder_that_the_session_names(
    tmp_path: Path,
) -> None:
    spark = session()
    domain = Domain(vote=Categorical(["no", "yes"]), age=Integer(0, 9), region=Categorical(["a", "b"]))
    rows = voters(2000).selectExpr(
        "vote", "id % 10 AS age", "CASE WHEN id < 500 THEN 'a' ELSE 'b' END AS region"
    )
    policy = td.Policy(domain, td.AttributeWise(vote=td.Full(), age=td.Within(3)))
    spark.conf.set(spark_rows.STAGING, f"file://{tmp_path}/stage")
    try:
        work = td.Session(td.Table(rows, domain, name="voters"), policy, epsilon=1)
        told = work.release(td.Rows("vote", keep="region", channel=EXPONENTIAL), epsilon="1/2", name="votes")
        assert work.remaining.epsilon == Fraction(1, 2)
    finally:
        spark.conf.unset(spark_rows.STAGING)
    table = told.to_arrow()
    assert table.num_rows == 2000 and table["region"].to_pylist().count("a") == 500
    assert list(Path(tmp_path, "stage").iterdir()) == []


def test_a_cluster_without_such_a_folder_is_refused_before_anything_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(_: object) -> None:
        raise Unsupported(spark_rows.NO_STAGE)

    monkeypatch.setattr(spark_rows, "_place", nowhere)
    domain = Domain(vote=Categorical(["no", "yes"]))
    work = td.Session(td.Table(voters(100), domain), td.Policy(domain, td.Full()), epsilon=1)
    with pytest.raises(TetraodonError, match=r"spark\.tetraodon\.staging"):
        work.release(td.Rows("vote", channel=EXPONENTIAL), epsilon="1/2", name="votes")
    assert work.remaining.epsilon == 1
