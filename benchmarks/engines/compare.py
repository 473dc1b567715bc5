"""Our counts against each engine's own GROUP BY on the raw columns, and a channel on Spark against copying the rows.

    python benchmarks/engines/compare.py [--rows 20] [--few 2] [--rounds 3] [--engines duckdb postgres spark polars sqlite]

One run: the engines one after the other, each in a process of its own, on the same made-up rows: an age (0 … 119) and a column of
1,000 values, 120,000 cells. Polars and SQLite get ``--few`` million rows, the others ``--rows``. For every engine, alternately,

* ``raw``: ``SELECT age, code, count(*) … GROUP BY age, code`` by the engine's own client, put into an array of the cells;
* ``ours``: ``Table.counts``, opening the table included;

and on Spark, alternately with them,

* ``copy``: the rows through ``mapInArrow`` untouched, written as parquet;
* ``channel``: the ages through a channel in the same workers, written, read back, and shuffled into a table in this process.

Every pair of counts must be equal, cell by cell. Prints seconds, ratios, rows a second, and the peak memory of a fresh process that
counts once (of Python alone: neither a server's nor Spark's Java). Must hold at 20 million rows, medians of the ratios of rounds, in
which both sides run one after the other: DuckDB at most 1.0, PostgreSQL 1.5, Spark 1.2 of ``raw``; ``channel`` at most 3 times ``copy``.
PostgreSQL is a server of our own that is thrown away.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tetraodon as td

AGES, CODES = 120, 1000
DOMAIN = td.Domain(age=td.Integer(0, AGES - 1), code=td.Integer(0, CODES - 1))
# Of the row's number i, in words that every engine has.
AGE, CODE = f"((i * 48271 % 2147483647) % {AGES})", f"((i * 69621 % 2147483629) % {CODES})"
TYPED = f"{AGE}::INTEGER AS age, {CODE}::INTEGER AS code"
OWN = "SELECT age, code, count(*) AS n FROM people GROUP BY age, code"
FEW = ("polars", "sqlite")
LIMITS = {"duckdb": 1.0, "postgres": 1.5, "spark": 1.2}
Action = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """What is timed on an engine; ``raw`` and ``ours`` give the counts of all cells, the others how many rows there were."""

    raw: Action
    ours: Action
    others: dict[str, Action]


def dense(age: Any, code: Any, n: Any) -> Any:
    """Counts as one array of all cells."""
    found = np.zeros(AGES * CODES, dtype=np.int64)
    found[np.asarray(age, dtype=np.int64) * CODES + np.asarray(code)] = n
    return found


def counted(source: object, **told: Any) -> Any:
    return td.Table(source, DOMAIN, **told).counts().dense


def parquet(folder: Path, rows: int) -> Path:
    """The rows as one file, which is made where it is not there yet."""
    file = folder / f"people-{rows}.parquet"
    if not file.exists():
        with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
            connection.execute(f"COPY (SELECT {TYPED} FROM range({rows}) t(i)) TO '{file}'")
    return file


def of_duckdb(folder: Path, rows: int) -> Case:
    file = parquet(folder, rows)

    def raw() -> Any:
        with duckdb.connect() as connection:
            found = connection.execute(OWN.replace("people", f"read_parquet('{file}')")).fetchnumpy()
        return dense(found["age"], found["code"], found["n"])

    return Case(raw, lambda: counted(file), {})


def of_postgres(folder: Path, rows: int) -> Case:
    tests = Path(__file__).parents[2] / "tests"
    sys.path[:0] = [str(tests / "engines"), str(tests)]
    import psycopg
    from opened import server

    url = server()
    with psycopg.connect(url, autocommit=True) as connection:
        made = f"CREATE TABLE people AS SELECT {TYPED} FROM generate_series(0, {rows - 1}::bigint) t(i)"
        connection.execute(made.encode())
        connection.execute("VACUUM ANALYZE people")

    def raw() -> Any:
        with psycopg.connect(url) as connection:
            return dense(*np.array(connection.execute(OWN).fetchall()).T)

    return Case(raw, lambda: counted(url, table="people"), {})


def of_polars(folder: Path, rows: int) -> Case:
    import polars as pl

    frame = pl.read_parquet(parquet(folder, rows))

    def raw() -> Any:
        return dense(*(column.to_numpy() for column in frame.group_by("age", "code").len().get_columns()))

    return Case(raw, lambda: counted(frame), {})


def of_sqlite(folder: Path, rows: int) -> Case:
    file = folder / "people.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE people (age INTEGER, code INTEGER)")
        made = f"WITH RECURSIVE t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t WHERE i < {rows - 1})"
        connection.execute(f"INSERT INTO people {made} SELECT {AGE}, {CODE} FROM t")
        connection.commit()

    def raw() -> Any:
        with closing(sqlite3.connect(file)) as connection:
            return dense(*np.array(connection.execute(OWN).fetchall()).T)

    return Case(raw, lambda: counted(f"sqlite://{file}", table="people"), {})


def of_spark(folder: Path, rows: int) -> Case:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")  # pyspark warns of new versions of pandas
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sparkContext.pythonExec = sys.executable
    people = session.read.parquet(str(parquet(folder, rows)))
    people.createOrReplaceTempView("people")
    law = exponential()

    def raw() -> Any:
        return dense(*(column.to_numpy() for column in session.sql(OWN).toArrow().columns))

    def copy() -> int:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            people.mapInArrow(untouched, people.schema).write.parquet(f"{place}/copy")
            return int(session.read.parquet(f"{place}/copy").count())

    def channel() -> int:
        return int(law.apply(people, keep=["code"]).num_rows)

    return Case(raw, lambda: counted(people), {"copy": copy, "channel": channel})


def untouched(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def exponential() -> td.Channel:
    """A channel over the ages."""
    ages = np.arange(AGES)
    law = np.exp(-0.1 * np.abs(ages[:, None] - ages))
    return td.Channel.of_matrix(law / law.sum(axis=1, keepdims=True), td.Domain(age=DOMAIN["age"]))


ENGINES: dict[str, Callable[[Path, int], Case]] = {
    "duckdb": of_duckdb, "postgres": of_postgres, "spark": of_spark, "polars": of_polars, "sqlite": of_sqlite,
}  # fmt: skip


def timed(engine: str, folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    """Seconds of every round, by action; the peak memory after the first time that we counted, in MiB (Linux: KiB are told)."""
    case = ENGINES[engine](folder, rows)
    counts = case.ours()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert counts.sum() == rows and np.array_equal(counts, case.raw())
    for action in case.others.values():
        assert action() == rows  # compilers and workers
    actions = {"raw": case.raw, "ours": case.ours, **case.others}
    times: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds):
        for name, action in actions.items() if number % 2 else reversed(actions.items()):
            began = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - began)
    return {"times": times, "memory": memory, "cells": int(np.count_nonzero(counts))}


def show(engine: str, rows: int, told: dict[str, Any]) -> None:
    times = told["times"]
    middle = {name: statistics.median(each) for name, each in times.items()}
    print(
        f"{engine}: {rows:,} rows in {told['cells']:,} cells, peak memory of a count {told['memory']:,.0f} MiB"
    )
    for name, each in times.items():
        rate = rows / middle[name] / 1e6
        print(
            f"  {name:8} median {middle[name]:7.2f} s   least {min(each):7.2f} s   {rate:6.1f} million rows a second"
        )
    for one, other, limit in (("ours", "raw", LIMITS.get(engine)), ("channel", "copy", 3.0)):
        if one in times:
            each = [a / b for a, b in zip(times[one], times[other], strict=True)]
            ratio, least = statistics.median(each), min(times[one]) / min(times[other])
            must = "" if limit is None else f"; must be at most {limit} at 20 million rows"
            print(f"  {one}/{other}: {ratio:.2f} (median of the rounds), {least:.2f} (least by least){must}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=20, help="million rows")
    parser.add_argument("--few", type=float, default=2, help="million rows for Polars and SQLite")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one:
        print(json.dumps(timed(told.engines[0], told.one, int(told.rows), told.rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for engine in told.engines:
            rows = int((told.few if engine in FEW else told.rows) * 1e6)
            parquet(Path(folder), rows)
            own = [sys.executable, __file__, "--one", folder, "--engines", engine, "--rows", str(rows)]
            own += ["--rounds", str(told.rounds)]
            done = subprocess.run(own, check=True, stdout=subprocess.PIPE, text=True)
            show(engine, rows, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
