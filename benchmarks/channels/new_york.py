"""Check-ins of New York released as rows, by the command line: all of them with a proved epsilon, and those of the middle of
the city through the least leaking channel for the users who check in most.

    python -m benchmarks.channels.new_york [FOLDER]

Needs the folder named by TETRAODON_DATA. Settings, rows, manifests and reports stay in FOLDER (a temporary one by default).
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tetraodon.planning import run
from tetraodon.spec import load

SOUTH, NORTH, WEST, EAST = 40.70, 40.80, -74.02, -73.93
DEGREE = 111_195.08  # metres
OFTEN = 200

PROVED = """
[data]
name = "new-york"
source = "all.parquet"
[domain.place]
point = ["lat", "lon"]
box = [["40.48", "40.92"], ["-74.26", "-73.70"]]
cell = "250 m"
[policy.secrets]
place = { within = "500 m" }
[budget]
epsilon = 1
ledger = "all.ledger"
[[release]]
name = "check-ins"
rows = ["place"]
epsilon = 1
[release.channel]
kind = "planar-geometric"
"""

MEASURED = """
[data]
name = "new-york-middle"
source = "middle.parquet"
[domain.user]
categorical = "users.csv"
other = "everybody else"
[domain.x]
numeric = [0, 7584]
cells = 32
unit = "m"
[domain.y]
numeric = [0, 11136]
cells = 32
unit = "m"
[policy]
secrets = "attribute-wise"
[budget]
epsilon = 1
ledger = "middle.ledger"
[[release]]
name = "places"
rows = [["x", "y"]]
guarantee = "measured"
publish_evidence = true
[release.channel]
kind = "least-leaking"
secret = "user"
distortion = "500 m"
"""


def prepare(data: Path, folder: Path) -> None:
    """Two tables and the list of users who check in often."""
    with gzip.open(data / "gowalla" / "gowalla_nyc_checkins.csv.gz", "rt", encoding="utf-8") as file:
        every = [(row["user"], float(row["lat"]), float(row["lon"])) for row in csv.DictReader(file)]
    pq.write_table(
        pa.table({"lat": [r[1] for r in every], "lon": [r[2] for r in every]}), folder / "all.parquet"
    )
    middle = [r for r in every if SOUTH <= r[1] <= NORTH and WEST <= r[2] <= EAST]
    count = Counter(user for user, _, _ in middle)
    often = sorted(user for user, n in count.items() if n >= OFTEN)
    (folder / "users.csv").write_text("code\n" + "\n".join(often) + "\n", encoding="utf-8")
    east = DEGREE * math.cos(math.radians((SOUTH + NORTH) / 2))
    columns = {
        "user": [r[0] for r in middle], "x": [(r[2] - WEST) * east for r in middle],
        "y": [(r[1] - SOUTH) * DEGREE for r in middle],
    }  # fmt: skip
    pq.write_table(pa.table(columns), folder / "middle.parquet")
    print(
        f"{len(every):,} check-ins; {len(middle):,} in the middle, {len(often)} users with {OFTEN} or more there"
    )


def released(folder: Path, name: str, settings: str) -> dict[str, Any]:
    """The manifest's only entry, after a release by the command line's own function."""
    path = folder / f"{name}.toml"
    path.write_text(settings.lstrip(), encoding="utf-8")
    began, used = time.perf_counter(), time.process_time()
    manifest = run(load(path), folder / name, [], False)
    took, cpu = time.perf_counter() - began, time.process_time() - used
    [entry] = json.loads(manifest.read_text(encoding="utf-8"))["releases"]
    print(
        f"\n{name}: {entry['rows']:,} rows in {took:.0f} s ({cpu:.0f} s of CPU), report and all: {folder / name}"
    )
    for channel in entry["channels"]:
        for sentence in channel["evidence"]["words"]:
            print(f"  {sentence}")
    return dict(entry)


def main() -> None:
    data = os.environ.get("TETRAODON_DATA")
    if not data:
        raise SystemExit("TETRAODON_DATA: names the folder that holds gowalla/gowalla_nyc_checkins.csv.gz.")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="new-york-"))
    folder.mkdir(parents=True, exist_ok=True)
    prepare(Path(data), folder)
    released(folder, "all", PROVED)
    released(folder, "middle", MEASURED)


if __name__ == "__main__":
    main()
