"""Makes income.parquet, a made-up register of 40,000 people, and population.csv, what the population register publishes.

    python make_data.py

Nobody real is in it: incomes are drawn from a mixture of log-normal laws with a fixed seed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
PEOPLE = 40_000
# Name: share of the people, median income in EUR, spread of its logarithm.
REGIONS = {
    "XA11 Port Alder": (0.17, 31_500, 0.62),
    "XA12 Alder Coast": (0.09, 26_400, 0.52),
    "XA13 Low Meadows": (0.07, 24_100, 0.48),
    "XA21 Kingsbrook": (0.14, 29_800, 0.58),
    "XA22 Brook Valley": (0.08, 25_600, 0.50),
    "XA23 Old Mines": (0.06, 21_300, 0.47),
    "XA31 Saint Orm": (0.11, 27_900, 0.56),
    "XA32 Orm Plain": (0.06, 22_700, 0.49),
    "XA33 Vineyards": (0.05, 23_500, 0.51),
    "XA41 High Fells": (0.04, 20_900, 0.46),
    "XA42 Lake District": (0.05, 25_200, 0.54),
    "XA51 South March": (0.05, 22_100, 0.48),
    "XA52 The Islands": (0.03, 19_800, 0.50),
}


def main() -> None:
    rng = np.random.default_rng(2025)
    share, median, spread = (np.array(part) for part in zip(*REGIONS.values(), strict=True))
    region = rng.choice(len(REGIONS), PEOPLE, p=share / share.sum())
    income = median[region] * np.exp(spread[region] * rng.standard_normal(PEOPLE))
    income[rng.random(PEOPLE) < 0.01] = 0
    names = np.array(list(REGIONS), dtype=object)
    table = {"PERSON": np.arange(PEOPLE), "NUTS2": names[region], "INC_TOT": np.rint(income).astype(np.int64)}
    pq.write_table(pa.table(table), HERE / "income.parquet")
    with (HERE / "population.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["region", "count"])
        rows.writerows(zip(REGIONS, np.bincount(region, minlength=len(REGIONS)).tolist(), strict=True))


if __name__ == "__main__":
    main()
