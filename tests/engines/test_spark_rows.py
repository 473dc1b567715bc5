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
from tetraodon.channels.apply import Lasting, Target, applied
from tetraodon.channels.channel import Channel
from tetraodon.channels.permanent import Permanent
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

    def twice(backend: Any, codes: Any, drawing: Any, stage: str) -> None:
        write(backend, codes, drawing, f"{stage}/a=1")
        write(backend, codes, drawing, f"{stage}/a=2")

    def lacking(backend: Any, codes: Any, drawing: Any, stage: str) -> None:
        write(backend, codes.filter(codes.code == 0), drawing, stage)

    def split(backend: Any, codes: Any, drawing: Any, stage: str) -> None:
        write(backend, codes.filter(codes.code == 0), drawing, f"{stage}/a=1")
        write(backend, codes.filter(codes.code == 1), drawing, f"{stage}/a=2")

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


def test_kept_columns_come_back_value_for_value_whatever_the_files_of_the_stage_could_hold() -> None:
    """Days before the Gregorian calendar, times beyond what nanoseconds hold, long decimals, lists, and nulls of each kind."""
    odd = session().sql(
        "SELECT 'no' AS vote, * FROM VALUES "
        "(1, DATE '1500-01-01', TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP_NTZ '0001-01-01 00:00:00', "
        "CAST(1.5 AS DECIMAL(38, 30)), array('a', null), 'é \\u0000', X'00FF', CAST('NaN' AS DOUBLE)), "
        "(2, null, null, null, null, null, null, null, -0D) AS t(id, day, at, local, long, list, text, raw, real)"
    )
    keep = [c for c in odd.columns if c != "vote"]
    lie = Channel.of_matrix([[1, 0], [0, 1]], DOMAIN)
    told = lie.apply(odd, keep=keep).sort_by("id")
    expected = odd.orderBy("id").toArrow()
    assert told.select(keep).schema.types == expected.select(keep).schema.types
    assert told.select(keep).to_pylist()[1] == expected.select(keep).to_pylist()[1]
    same, known = (t.select([c for c in keep if c != "real"]).to_pylist()[0] for t in (told, expected))
    assert same == known and np.isnan(told["real"][0].as_py())


def test_a_stage_that_is_no_folder_of_this_machine_is_read_back_by_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.far.link./shared", f"file://{tmp_path}")
    monkeypatch.setattr(spark_rows.tempfile, "mkdtemp", lambda **_: pytest.fail("a folder of this machine"))
    spark.conf.set(spark_rows.STAGING, "viewfs://far/shared/stage")
    try:
        told = Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN).apply(voters(3000), keep=["id"])
    finally:
        spark.conf.unset(spark_rows.STAGING)
        settings.unset("fs.viewfs.mounttable.far.link./shared")
    assert published_once(told, 3000)
    assert list((tmp_path / "stage").iterdir()) == []


@pytest.mark.parametrize("version", [None, "0.0.9"])
def test_workers_without_the_package_are_refused_before_anything_is_charged(
    version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version is None:
        monkeypatch.setattr(session().sparkContext, "pythonExec", "/nowhere/python")
    else:  # the workers have another one than this process
        monkeypatch.setattr(td, "__version__", version)
    work = td.Session(td.Table(voters(100), DOMAIN), td.Policy(DOMAIN, td.Full()), epsilon=1)
    with pytest.raises(Unsupported, match=r"the Python of Spark's workers needs tetraodon \d") as caught:
        work.release(td.Rows("vote", channel=EXPONENTIAL), epsilon="1/2", name="votes")
    assert work.remaining.epsilon == 1
    assert ("there is" in str(caught.value)) == (version is not None)
    if version is None:
        with pytest.raises(Unsupported, match="needs tetraodon"):
            Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN).apply(voters(100))


def test_permanent_answers_are_one_for_each_person_and_stay(tmp_path: Path) -> None:
    rows = voters(600).selectExpr("vote", "CAST(id % 200 AS STRING) AS who")
    lie = Channel.of_matrix([[0.5, 0.5], [0.5, 0.5]], DOMAIN)
    table, seen = td.Table(rows, DOMAIN), list[dict[str, set[str]]]()
    with Permanent.open(tmp_path / "answers") as store:
        for _ in range(2):
            told = applied(table, [Target(lie, ("vote",))], ["who"], Lasting(store, "who", "2025"))
            assert told.num_rows == 600
            answers: dict[str, set[str]] = {}
            for who, vote in zip(told["who"].to_pylist(), told["vote"].to_pylist(), strict=True):
                answers.setdefault(who, set()).add(vote)
            seen.append(answers)
    assert seen[0] == seen[1] and len(seen[0]) == 200
    assert all(len(votes) == 1 for votes in seen[0].values())


def test_microdata_of_a_table_of_spark_hold_every_row_once() -> None:
    domain = Domain(age=Integer(0, 9), hours=Integer(0, 4), films=Integer(0, 3))
    rows = session().range(0, 1000, 1, 4).selectExpr("id % 10 AS age", "id % 5 AS hours", "id % 4 AS films")
    work = td.Session(td.Table(rows, domain), td.Policy(domain, td.Full()), epsilon=1)
    asked = td.HybridObscuring("age", ["hours", "films"], groups=2, k=100, clusters=4, distortion=0.5)
    told = work.release(asked, guarantee="measured", name="whole")
    table = told.to_arrow()
    assert table.num_rows == 1000 and table.column_names == ["age", "hours", "films"]
    for group in told.groups["age"]:
        assert group.rows == 100 * len(group.values) == table["age"].to_pylist().count(group.label)


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
