"""Makes stays.parquet: made-up hospital stays of 25,000 patients in one year, one row a stay.

    python make_data.py

Nobody real is in it: how often people come, why and for how long is drawn with a fixed seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
PATIENTS = 25_000
# Name: how frequent it is at the ages 0–19, 20–39, 40–59, 60–79, 80 and over; mean days of a stay.
DIAGNOSES = {
    "Circulation": ((1, 3, 16, 30, 34), 8),
    "Cancer": ((1, 3, 14, 18, 10), 10),
    "Digestion": ((9, 11, 14, 11, 9), 5),
    "Injury": ((20, 14, 10, 9, 15), 6),
    "Breathing": ((18, 5, 6, 9, 12), 7),
    "Bones and joints": ((3, 7, 15, 12, 6), 6),
    "Birth": ((2, 32, 2, 0, 0), 4),
    "Mind": ((6, 10, 9, 3, 3), 22),
    "Other": ((40, 15, 14, 8, 11), 5),
}
AGES = ("0–19", "20–39", "40–59", "60–79", "80 and over")


def main() -> None:
    rng = np.random.default_rng(2025)
    age = rng.choice(len(AGES), PATIENTS, p=[0.12, 0.2, 0.22, 0.31, 0.15])
    stays = np.minimum(1 + rng.geometric(0.62 - 0.05 * age) - 1, 12)
    patient = np.repeat(np.arange(PATIENTS), stays)
    group = age[patient]
    often = np.array([d[0] for d in DIAGNOSES.values()], dtype=float).T
    bounds = np.cumsum(often / often.sum(axis=1, keepdims=True), axis=1)
    first = (rng.random(PATIENTS)[:, None] > bounds[age]).sum(axis=1)
    anew = (rng.random(len(patient))[:, None] > bounds[group]).sum(axis=1)
    reason = np.where(
        rng.random(len(patient)) < 0.7, first[patient], anew
    )  # most come back for the same reason
    mean = np.array([d[1] for d in DIAGNOSES.values()], dtype=float)[reason] * (0.8 + 0.1 * group)
    days = 1 + rng.poisson(rng.gamma(1.5, mean / 1.5))
    order = rng.permutation(len(patient))
    table = {
        "patient": [f"P{p:06d}" for p in patient[order]],
        "stay": np.arange(len(patient)),
        "diagnosis": np.array(list(DIAGNOSES), dtype=object)[reason[order]],
        "age_group": np.array(AGES, dtype=object)[group[order]],
        "days": days[order],
    }
    pq.write_table(pa.table(table), HERE / "stays.parquet")


if __name__ == "__main__":
    main()
