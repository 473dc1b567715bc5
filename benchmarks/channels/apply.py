"""Ten million places through channels, against copying the file they lie in, in the same run.

    python benchmarks/channels/apply.py [million rows, default 10] [rounds, default 3]

Writes a parquet file of two columns of doubles into a temporary folder. Then, alternately:

* ``copy``: pyarrow reads the file and writes it again, same columns, its own defaults;
* ``cp``: the system copies the bytes;
* ``shift``: a planar geometric law on 256 × 256 cells: rows read, drawn, shuffled, and written as they are published;
* ``table``: the same through a table of 1,024 × 1,024 probabilities on 32 × 32 cells.

Prints the seconds of each, and the ratios to ``copy``. Must hold: both at most 3. The peak memory is that of a fresh process
that applies ``shift`` once.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tetraodon as td
from tetraodon.channels.channel import Channel
from tetraodon.channels.shift import Shift
from tetraodon.publish import write_table

WIDTH = 256


def write(path: Path, rows: int) -> None:
    """Places around two centres, a few outside the box; the numbers tell nothing of anybody."""
    made = np.random.default_rng(1)
    near = made.random(rows) < 0.3
    lat = np.where(near, 70.0, 150.0) + made.normal(0, 25, rows)
    lon = np.where(near, 90.0, 160.0) + made.normal(0, 25, rows)
    pq.write_table(pa.table({"lat": lat, "lon": lon}), path)


def shift() -> Channel:
    """A planar geometric law: offsets with probability falling as exp(−distance/10)."""
    side = np.arange(1 - WIDTH, WIDTH)
    law = np.exp(-0.1 * np.hypot(side[:, None], side))
    return Channel(_grid(WIDTH), Shift.of(law / law.sum()))


def table() -> Channel:
    """An exponential law on 32 × 32 cells."""
    i, j = np.divmod(np.arange(1024), 32)
    law = np.exp(-0.5 * np.hypot(i[:, None] - i, j[:, None] - j))
    return Channel.of_matrix(law / law.sum(axis=1, keepdims=True), _grid(32))


def _grid(cells: int) -> td.Domain:
    return td.Domain(
        home=td.Point("lat", "lon", box=((0, 256), (0, 256)), cell=256 // cells, metric="planar")
    )


def copied(path: Path, out: Path) -> None:
    pq.write_table(pq.read_table(path), out)


def applied(channel: Channel) -> Callable[[Path, Path], None]:
    return lambda path, out: write_table(channel.apply(path), out)


def timed(action: Callable[[Path, Path], object], path: Path, out: Path) -> tuple[float, float]:
    """(wall, processor) seconds of one run."""
    wall, processor = time.perf_counter(), time.process_time()
    action(path, out)
    return time.perf_counter() - wall, time.process_time() - processor


def peak_mib(path: Path, what: str) -> float:
    """Peak memory of a fresh process (Linux: ru_maxrss is in KiB)."""
    run = [sys.executable, __file__, what, str(path)]
    return int(subprocess.run(run, check=True, capture_output=True, text=True).stdout) / 1024


def once(what: str, path: Path) -> None:
    action = {"--copy": copied, "--shift": applied(shift())}[what]
    action(path, path.with_suffix(".out.parquet"))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1].startswith("--"):
        once(sys.argv[1], Path(sys.argv[2]))
        return
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 10_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    actions: dict[str, Callable[[Path, Path], object]] = {
        "cp": shutil.copyfile,
        "copy": copied,
        "shift": applied(shift()),
        "table": applied(table()),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in actions}
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "places.parquet"), Path(folder, "out.parquet")
        write(path, rows)
        memory = {what: peak_mib(path, f"--{what}") for what in ("copy", "shift")}
        for action in actions.values():  # imports, tables, and the file into the system's cache
            action(path, out)
        for number in range(rounds):
            for name in list(actions)[:: 1 if number % 2 else -1]:
                times[name].append(timed(actions[name], path, out))
    print(f"{rows:,} places, two columns of doubles, {rounds} rounds")
    for i, clock in enumerate(("wall", "processor")):
        median = {name: statistics.median(v[i] for v in told) for name, told in times.items()}
        least = {name: min(v[i] for v in told) for name, told in times.items()}
        for name in actions:
            ratio = (
                f"   {median[name] / median['copy']:5.2f} (least {least[name] / least['copy']:5.2f}) × copy"
            )
            print(f"  {clock:9} {name:6} median {median[name]:6.2f} s   least {least[name]:6.2f} s{ratio}")
    print(f"  peak memory: copy {memory['copy']:.0f} MiB, shift {memory['shift']:.0f} MiB")


if __name__ == "__main__":
    main()
