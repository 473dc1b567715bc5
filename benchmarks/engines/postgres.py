"""Counts on PostgreSQL against its own GROUP BY on the raw columns, in one run, on a server of our own that is thrown away.

    python benchmarks/engines/postgres.py --rows 20000000

Best of ``--times`` for each. Needs the extra ``postgres`` and the server's programs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "engines"))

import psycopg
from opened import server

from tetraodon import Categorical, Domain, Integer, Table

# 100 · 40 · 30 = 120,000 cells.
DOMAIN = Domain(age=Integer(0, 99), region=Integer(0, 39), trade=Categorical(list(range(30))))
MADE = """
CREATE TABLE people AS SELECT (random() * 99)::int AS age, (random() * 39)::int AS region, (random() * 29)::int AS trade
FROM generate_series(1, {rows})
"""


def best(times: int, action: Callable[[], object]) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--times", type=int, default=3)
    told = parser.parse_args()
    url = server()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(MADE.format(rows=told.rows).encode())
        connection.execute("VACUUM ANALYZE people")
        own = "SELECT age, region, trade, count(*) FROM people GROUP BY 1, 2, 3"
        theirs = best(told.times, lambda: connection.execute(own).fetchall())
    table = Table(url, DOMAIN, table="people")
    ours = best(told.times, table.counts)
    assert table.counts().total == told.rows
    print(
        f"{told.rows:,} rows, {DOMAIN.size:,} cells: GROUP BY {theirs:.2f} s, ours {ours:.2f} s, ratio {ours / theirs:.2f}"
    )
    start = time.perf_counter()
    rows = sum(len(part) for part in table.codes())
    print(f"rows one by one: {rows / (time.perf_counter() - start):,.0f} a second")


if __name__ == "__main__":
    main()
