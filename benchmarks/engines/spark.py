"""Spark in local mode: counting against Spark's own GROUP BY, and a channel against copying the file, in the same run.

    python benchmarks/engines/spark.py [million rows, default 20] [rounds, default 3] [threads, default 2]

Spark writes a parquet folder of an age (0 … 119) and a column of 1,000 values into a temporary folder. Then, alternately:

* ``raw``: ``SELECT age, code, count(*) … GROUP BY age, code``, collected as Arrow;
* ``ours``: ``Table.counts`` of the same 120,000 cells, opening the table included;
* ``copy``: the rows through ``mapInArrow`` untouched, written as parquet;
* ``channel``: the ages through a channel in the same workers, written, read back, shuffled into a table in this process.

Prints seconds and ratios of medians. Must hold at 20 million rows: ours/raw at most 1.2; channel at most 3 times copy.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tetraodon as td
from tetraodon.channels.channel import Channel


def session(threads: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{threads}]")
    for name, value in (
        ("spark.driver.memory", "4g"),
        ("spark.pyspark.python", sys.executable),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
    ):
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def write(spark: Any, path: str, rows: int) -> None:
    """Values follow from the row number, so that every run has the same rows."""
    spark.range(rows).selectExpr(
        "CAST(pmod(xxhash64(id), 120) AS INT) AS age",
        "CAST(pmod(xxhash64(id + 1000000000000), 1000) AS INT) AS code",
    ).write.parquet(path)


def raw(rows: Any) -> int:
    rows.createOrReplaceTempView("rows")
    found = rows.sparkSession.sql("SELECT age, code, count(*) AS n FROM rows GROUP BY age, code").toArrow()
    return int(np.sum(found["n"].to_numpy()))


def ours(rows: Any) -> int:
    domain = td.Domain(age=td.Integer(0, 119), code=td.Integer(0, 999))
    return int(td.Table(rows, domain).counts().total)


def untouched(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def copy(rows: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows.mapInArrow(untouched, rows.schema).write.parquet(f"{folder}/copy")
        return int(rows.sparkSession.read.parquet(f"{folder}/copy").count())


def channel() -> Channel:
    """An exponential law over the ages."""
    ages = np.arange(120)
    law = np.exp(-0.1 * np.abs(ages[:, None] - ages))
    return Channel.of_matrix(law / law.sum(axis=1, keepdims=True), td.Domain(age=td.Integer(0, 119)))


def main() -> None:
    warnings.simplefilter("ignore")  # pyspark warns of new versions of pandas
    told = [float(v) for v in sys.argv[1:]]
    count = int((told[0] if told else 20) * 1e6)
    rounds, threads = (int(told[i]) if len(told) > i else default for i, default in ((1, 3), (2, 2)))
    spark = session(threads)
    law = channel()
    actions: dict[str, Callable[[Any], int]] = {
        "raw": raw, "ours": ours, "copy": copy, "channel": lambda rows: law.apply(rows, keep=["code"]).num_rows,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write(spark, str(Path(folder, "rows")), count)
        rows = spark.read.parquet(str(Path(folder, "rows")))
        for action in actions.values():
            assert action(rows) == count  # compilers, workers, and the file into the system's cache
        times: dict[str, list[float]] = {name: [] for name in actions}
        for number in range(rounds):
            for name, action in actions.items() if number % 2 else reversed(actions.items()):
                began = time.perf_counter()
                assert action(rows) == count
                times[name].append(time.perf_counter() - began)
    spark.stop()
    middle = {name: statistics.median(each) for name, each in times.items()}
    print(f"{count:,} rows, 120,000 cells, {rounds} rounds, {threads} threads")
    for name, each in times.items():
        print(
            f"  {name:8} median {middle[name]:6.2f} s   least {min(each):6.2f} s   {count / middle[name] / 1e6:5.1f} million rows a second"
        )
    print(
        f"  ours/raw {middle['ours'] / middle['raw']:.2f}   channel/copy {middle['channel'] / middle['copy']:.2f} (medians)"
    )
    print(
        f"  ours/raw {min(times['ours']) / min(times['raw']):.2f}   channel/copy {min(times['channel']) / min(times['copy']):.2f} (least)"
    )


if __name__ == "__main__":
    main()
