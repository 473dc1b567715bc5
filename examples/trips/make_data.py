"""Makes trips.parquet: 120,000 made-up journeys to work and shops in an invented city of 8 × 8 km, one of each person.

    python make_data.py

Nobody real is in it: places are drawn around a few centres with a fixed seed, in metres from the south-western corner.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
TRIPS = 120_000
SIDE = 8_000
# Centre in metres (east, north), spread in metres, and how much of all homes and of all destinations lies there.
CENTRES = (
    ((4_200, 3_900), 700, 0.14, 0.42),  # the old town
    ((6_300, 2_100), 900, 0.22, 0.09),
    ((2_300, 2_200), 1_000, 0.20, 0.10),
    ((5_600, 6_200), 800, 0.18, 0.14),
    ((1_500, 6_000), 600, 0.16, 0.18),  # the harbour
    ((3_600, 5_200), 1_300, 0.10, 0.07),
)
HOURS = (1, 1, 1, 1, 2, 6, 18, 42, 38, 20, 13, 12, 14, 12, 12, 16, 24, 30, 24, 14, 8, 6, 4, 2)


def places(rng: np.random.Generator, share: list[float]) -> np.ndarray:
    """Places in metres, shape (TRIPS, 2), drawn around the centres with these shares."""
    middle = np.array([c[0] for c in CENTRES], dtype=float)
    spread = np.array([c[1] for c in CENTRES], dtype=float)
    at = rng.choice(len(CENTRES), TRIPS, p=np.array(share) / sum(share))
    drawn = middle[at] + spread[at, None] * rng.standard_normal((TRIPS, 2))
    return np.clip(np.rint(drawn), 0, SIDE - 1)


def main() -> None:
    rng = np.random.default_rng(2025)
    start = places(rng, [c[2] for c in CENTRES])
    end = places(rng, [c[3] for c in CENTRES])
    is_short = rng.random(TRIPS) < 0.35  # a third go to a place nearby
    end[is_short] = np.clip(np.rint(start + 600 * rng.standard_normal((TRIPS, 2))), 0, SIDE - 1)[is_short]
    hour = rng.choice(24, TRIPS, p=np.array(HOURS) / sum(HOURS))
    columns = {
        "from_east": start[:, 0],
        "from_north": start[:, 1],
        "to_east": end[:, 0],
        "to_north": end[:, 1],
        "hour": hour,
    }
    pq.write_table(pa.table(columns), HERE / "trips.parquet")


if __name__ == "__main__":
    main()
