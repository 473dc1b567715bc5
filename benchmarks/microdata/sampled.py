"""Microdata of very many rows: groups found on a sample of them beside groups found on all.

    python -m benchmarks.microdata.sampled [--rows 1000000 10000000] [--sample 200000] [--only all sample]

30 columns of mixed people, Gower, 20 clusters, 6 groups of an age, one budget, through a session: read as declared cells (a number has 24), fitted,
drawn once. Every run is a process of its own. Processor seconds; the peak is that of the process, its table and the libraries
included. *All* is not run beyond a million rows unless it is asked for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from .people import mixed
from .scaling import SETTINGS, apart, peak

PART = 1_000_000


def _declared(name: str, column: Any) -> Any:
    import tetraodon as td

    if name == "age":
        return td.Integer(17, 90)
    if name.startswith("count"):
        return td.Integer(0, 23)
    if name.startswith("measure"):
        return td.Numeric(-3, 3, cells=24)
    return td.Categorical([v.as_py() for v in column.chunk(0).dictionary])


def write(folder: Path, rows: int) -> None:
    """Partition files, one after another, so that making them takes no more memory than one."""
    for number, start in enumerate(range(0, rows, PART)):
        table = mixed(min(PART, rows - start), seed=number + 1)
        pq.write_table(table, folder / f"part-{number:03}.parquet")


def measured(folder: str, rows: int, sample: int | None) -> dict[str, Any]:
    """Read, fit and draw once: processor seconds, memory, figures."""
    import tetraodon as td

    first = pq.read_table(sorted(Path(folder).glob("*.parquet"))[0])
    domain = td.Domain({name: _declared(name, first.column(name)) for name in first.column_names})
    columns = [n for n in first.column_names if n != "age"]
    del first
    session = td.Session(
        td.Table(folder, domain), td.Policy(domain, td.AttributeWise(age=td.Within(5))), epsilon=1
    )
    request = td.HybridObscuring("age", columns, k=rows // 25, sample=sample, **SETTINGS)
    start = time.process_time()
    made = session.release(request, guarantee="measured", name="people")
    taken = time.process_time() - start
    plan = made.plan
    if made.table.num_rows != rows or plan.figures["distortion"] > float(SETTINGS["distortion"]):
        raise AssertionError("rows are lacking, or the budget is not kept")
    return {
        "seconds": taken,
        "peak": peak(),
        "figures": dict(plan.figures),
        "sampled": plan.sampled,
        "bound": plan.bound,
        "channel_bound": plan.channel_bound,
        "realised": made.realised,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--sample", type=int, default=200_000)
    parser.add_argument("--only", nargs="+", choices=("all", "sample"), default=None)
    told = parser.parse_args()
    for rows in told.rows:
        ways = told.only or (["all", "sample"] if rows <= 1_000_000 else ["sample"])
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), rows)
            for way in ways:
                found = apart(measured, folder, rows, told.sample if way == "sample" else None)
                figures = found["figures"]
                print(
                    f"{rows:,} rows, groups found on {'all' if way == 'all' else f'{told.sample:,}'}: {found['seconds']:.1f} s",
                    end="",
                )
                print(
                    f", at most {found['peak']:.2f} GiB; {figures['leakage']:.4f} bits, distance {figures['distortion']:.4f}",
                    end="",
                )
                print(f" (this draw {found['realised']:.4f})", end="")
                if found["sampled"] is None:
                    print(f"; no groups leak less than {found['bound']:.4f}", flush=True)
                else:
                    seen = found["sampled"]
                    print(
                        f"; on the sample {seen['leakage']:.4f} bits, distance {seen['distortion']:.4f}",
                        end="",
                    )
                    print(f"; these groups leak {found['channel_bound']:.4f} or more", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
