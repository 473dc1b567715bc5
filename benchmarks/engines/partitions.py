"""A folder of partition files, counted in this process: rows a second, the engine's own GROUP BY in the same run, peak memory.

    python benchmarks/engines/partitions.py [--rows 1e9] [--sparse 1e8] [--rounds 3] [--at FOLDER]

Two tables are made up in a temporary folder and thrown away, by DuckDB, from the row number, so that every run has the same rows:

* *dense*: an age (0 … 119) and a column of 1,000 values, 120,000 cells; about 2.2 bytes a row, in files of 10 million rows;
* *sparse*: two columns of 2^31 values, 2^62 cells, of which at most 10 million hold rows; about 8 bytes a row.

For each: the least time of ``Table.counts`` and of ``SELECT …, count(*) … GROUP BY ALL``, alternately, and the peak memory of a
fresh process that counts once. Then k-means of the dense table under a policy: what it takes beside the counts does not grow with
the rows. As many rows are made as fit in 20 GB and in half of what is free on the disk; nothing is extrapolated, and fewer rows than were
asked for are said. Must hold: peak memory below 1 GiB for the dense table at any number of rows, and below 4 GiB for the sparse one (DuckDB may
hold 2 GB and spills the rest; the result is the rest).
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import tetraodon as td

FILE = 10_000_000  # rows of a partition file
MOST = 20e9  # bytes of all files
DISTINCT = 10_000_000
DENSE = td.Domain(age=td.Integer(0, 119), code=td.Integer(0, 999))
SPARSE = td.Domain(left=td.Integer(0, 2**31 - 1), right=td.Integer(0, 2**31 - 1))
TABLES = {
    "dense": (
        DENSE,
        2.3,
        "(hash(i) % 120)::INTEGER AS age, (hash(i + 1_000_000_000_000) % 1000)::INTEGER AS code",
        1.0,
    ),
    "sparse": (
        SPARSE,
        9.0,
        f"(hash(i % {DISTINCT}) % 2147483648)::INTEGER AS left, (hash(i % {DISTINCT} + 7) % 2147483648)::INTEGER AS right",
        4.0,
    ),
}


def written(folder: Path, name: str, rows: int) -> int:
    """Make as many rows as fit; how many there are."""
    _, each, columns, _ = TABLES[name]
    room = min(MOST, shutil.disk_usage(folder.parent).free / 2)
    rows = min(rows, int(room / each) // FILE * FILE) if rows > FILE else rows
    folder.mkdir()
    with duckdb.connect(config={"memory_limit": "1GB", "threads": 2}) as connection:
        for number, start in enumerate(range(0, rows, FILE)):
            end = min(start + FILE, rows)
            connection.execute(
                f"COPY (SELECT {columns} FROM range({start}, {end}) t(i)) TO '{folder}/part-{number:05}.parquet' (FORMAT parquet)"
            )
    return rows


def theirs(folder: Path) -> int:
    """All groups, counted by DuckDB, as Arrow."""
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        query = f"SELECT COLUMNS(*), count(*) AS n FROM read_parquet('{folder}/*.parquet') GROUP BY ALL"
        return int(connection.execute(query).fetchnumpy()["n"].sum())


def ours(folder: Path, name: str) -> int:
    return int(td.Table(folder, TABLES[name][0]).counts().total)


def timed(action: Callable[[], int], expected: int) -> float:
    start = time.perf_counter()
    if action() != expected:
        raise AssertionError("rows are lacking")
    return time.perf_counter() - start


def peak(folder: Path, name: str) -> float:
    """GiB of a fresh process that counts once (Linux: ru_maxrss is in KiB)."""
    told = subprocess.run(
        [sys.executable, __file__, "--once", name, "--at", str(folder)], check=True, stdout=subprocess.PIPE
    )
    return int(told.stdout) / 2**20


def shown(folder: Path, name: str, rows: int, asked: int, rounds: int) -> bool:
    """Counts of one table; whether memory stays within its limit."""
    size = sum(file.stat().st_size for file in folder.iterdir())
    memory = peak(folder, name)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    actions = {"ours": lambda: ours(folder, name), "theirs": lambda: theirs(folder)}
    for number in range(rounds):
        for which in sorted(actions, reverse=bool(number % 2)):
            times[which].append(timed(actions[which], rows))
    least = {which: min(found) for which, found in times.items()}
    fewer = "" if rows == asked else f" (of {asked:,} asked for, which do not fit)"
    print(
        f"{name}: {rows:,} rows{fewer} in {-(-rows // FILE)} files, {size / 1e9:.2f} GB, {TABLES[name][0].size:,} cells"
    )
    print(
        f"  GROUP BY {least['theirs']:.1f} s, ours {least['ours']:.1f} s: ratio {least['ours'] / least['theirs']:.2f}",
        end="",
    )
    print(
        f"; {rows / least['ours'] / 1e6:.0f} million rows a second; peak memory {memory:.2f} GiB", flush=True
    )
    return memory <= TABLES[name][3]


def clustered(folder: Path) -> None:
    """k-means of the dense table, priced and released: seconds beside those of counting."""
    policy = td.Policy(DENSE, td.AttributeWise(age=td.Within(5), code=td.Within(50)))
    session = td.Session(td.Table(folder, DENSE), policy, epsilon=1)
    query = td.KMeans("age", "code", k=5)
    start = time.perf_counter()
    session.plan(query, epsilon=1)
    planned = time.perf_counter()
    session.release(query, epsilon=1)
    released = time.perf_counter()
    print(
        f"k-means of 5 centres: plan {planned - start:.1f} s, release, counts included, {released - planned:.1f} s",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--sparse", type=float, default=1e8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=Path, default=None)
    parser.add_argument("--once", default=None)
    told = parser.parse_args()
    if told.once is not None:
        ours(told.at, told.once)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    good = True
    for name, asked in (("dense", int(told.rows)), ("sparse", int(told.sparse))):
        if not asked:
            continue
        with tempfile.TemporaryDirectory(dir=told.at) as private:
            folder = Path(private, name)
            rows = written(folder, name, asked)
            good &= shown(folder, name, rows, asked, told.rounds)
            if name == "dense":
                clustered(folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
