"""Rows released in parts that a killed run can go on with, against rows released all at once, in the same run.

    python benchmarks/channels/staged.py [million rows, default 10] [rounds, default 1]

Writes a parquet file of places (two doubles) and a region into a temporary folder. Then releases the places through planar geometric
noise on 128 × 128 cells, beside the region, and saves them as parquet: ``at once``, with everything in memory until it is written, and
``staged``, in parts of 2^20 rows. Each run is a fresh process. Prints wall seconds, rows a second, peak memory, and how much the
staging folder held.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import tetraodon as td

KINDS = ("at once", "staged")


def write(path: Path, rows: int) -> None:
    """The file, by DuckDB; values follow from the row number and tell nothing of anybody."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT (hash(i) % 1000003) / 7813.0 AS lat, (hash(i + 1000000000000) % 1000003) / 7813.0 AS lon, "
            f"chr(97 + (hash(i + 2000000000000) % 20)::INTEGER) AS region FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"
        )


def once(kind: str, path: Path) -> None:
    """Release and save; prints rows, seconds, peak KiB, and bytes that were staged."""
    domain = td.Domain(
        home=td.Point("lat", "lon", box=((0, 128), (0, 128)), cell=1, metric="planar"),
        region=td.Categorical([chr(97 + i) for i in range(20)]),
    )
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    stage = folder / "staging"
    start = time.perf_counter()
    policy = td.Policy(domain, td.AttributeWise(home=td.Within(2)))
    session = td.Session(td.Table(path, domain), policy, epsilon=1, ledger=folder / "rows.ledger")
    staging = stage if kind == "staged" else None
    asked = td.Rows("home", keep=["region"], channel={"kind": "planar-geometric"}, staging=staging)
    made = session.release(asked, epsilon=1, name="rows")
    held = sum(each.stat().st_size for each in stage.iterdir()) if stage.exists() else 0
    made.save(folder / "published")
    seconds = time.perf_counter() - start
    print(made.total, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, held)


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] in KINDS:
        once(sys.argv[1], Path(sys.argv[2]))
        return
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 10_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    told: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "places.parquet")
        write(path, rows)
        for number in range(rounds):
            for kind in KINDS[:: 1 if number % 2 else -1]:
                run = [sys.executable, __file__, kind, str(path)]
                out = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
                assert int(out[0]) == rows
                told[kind].append((float(out[1]), float(out[2]) / 1024, float(out[3]) / 1e6))
    print(f"{rows:,} rows, {rounds} rounds")
    for kind in KINDS:
        seconds, memory, held = (statistics.median(each) for each in zip(*told[kind], strict=True))
        print(
            f"  {kind:8} {seconds:7.1f} s  {rows / seconds:12,.0f} rows/s  peak {memory:7.0f} MiB  staged {held:7.0f} MB"
        )


if __name__ == "__main__":
    main()
