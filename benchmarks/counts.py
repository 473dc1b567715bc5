"""Counting rows per cell against the engine's own GROUP BY of the same two columns, in the same run.

    python benchmarks/counts.py [million rows, default 100] [rounds, default 5]

Writes a parquet file of an age (0 … 119) and a column of 1,000 values into a temporary folder, counts its 120,000 cells
with ``Table.counts`` and with ``SELECT age, code, count(*) … GROUP BY ALL``, alternately, and prints both times, their
ratio, and the peak memory of the process. Must hold at 100 million rows: ratio of the medians at most 1, memory below 1 GiB.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import tetraodon as td


def write(path: Path, rows: int) -> None:
    """The file, by DuckDB; values follow from the row number, so that every run has the same rows."""
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        connection.execute(
            f"COPY (SELECT (hash(i) % 120)::INTEGER AS age, (hash(i + 1_000_000_000_000) % 1000)::INTEGER AS code "
            f"FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )


def raw(path: Path) -> int:
    with duckdb.connect() as connection:
        query = f"SELECT age, code, count(*) AS n FROM read_parquet('{path}') GROUP BY ALL"
        return int(connection.execute(query).fetchnumpy()["n"].sum())


def ours(path: Path) -> int:
    domain = td.Domain(age=td.Integer(0, 119), code=td.Integer(0, 999))
    return int(td.Table(path, domain).counts().total)


def timed(action: Callable[[], int], expected: int) -> tuple[float, float]:
    """(wall, processor) seconds of one run."""
    wall, processor = time.perf_counter(), time.process_time()
    assert action() == expected
    return time.perf_counter() - wall, time.process_time() - processor


def peak_mib(path: Path) -> float:
    """Peak memory of a fresh process that counts once (Linux: ru_maxrss is in KiB)."""
    subprocess.run([sys.executable, __file__, "--once", str(path)], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 100_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        write(path, rows)
        memory = peak_mib(path)
        ours(path)  # imports, and the file into the system's cache
        times: dict[str, list[tuple[float, float]]] = {"raw": [], "ours": []}
        for number in range(rounds):
            order = [("raw", raw), ("ours", ours)]
            for name, action in order if number % 2 else reversed(order):
                times[name].append(timed(lambda action=action: action(path), rows))  # type: ignore[misc]
    print(f"{rows:,} rows, 120,000 cells, {rounds} rounds")
    for i, clock in enumerate(("wall", "processor")):
        figures = {
            name: (statistics.median(v[i] for v in t), min(v[i] for v in t)) for name, t in times.items()
        }
        for name, (median, least) in figures.items():
            print(f"  {clock:9} {name:4} median {median:6.2f} s   least {least:6.2f} s")
        ratios = [figures["ours"][k] / figures["raw"][k] for k in (0, 1)]
        print(f"  {clock:9} ours/raw: {ratios[0]:.2f} (medians), {ratios[1]:.2f} (least)")
    print(f"  peak memory of a process that counts once: {memory:,.0f} MiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        ours(Path(sys.argv[2]))
    else:
        main()
