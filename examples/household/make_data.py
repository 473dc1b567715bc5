"""Makes household.parquet: a made-up survey of 6,000 households that stand for about 300,000.

    python make_data.py

Nobody real is in it: sizes, incomes and who agrees to publication are drawn with a fixed seed. The weight of a household was
fixed when it was drawn: rural strata were sampled more densely, so that each of their households stands for fewer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
HOUSEHOLDS = 6_000
# Stratum: share of the sample, households that each one stands for.
STRATA = {"City": (0.45, 70.0), "Suburbs": (0.30, 47.5), "Country": (0.25, 22.5)}


def main() -> None:
    rng = np.random.default_rng(2025)
    stratum = rng.choice(len(STRATA), HOUSEHOLDS, p=[s[0] for s in STRATA.values()])
    size = 1 + rng.choice(5, HOUSEHOLDS, p=[0.36, 0.32, 0.14, 0.12, 0.06])
    median = np.array([1_900, 2_900, 3_400, 3_800, 3_700])[size - 1] * np.array([1.05, 1.1, 0.88])[stratum]
    income = np.rint(median * np.exp(0.48 * rng.standard_normal(HOUSEHOLDS)))
    agreed = rng.random(HOUSEHOLDS) < 0.15
    table = {
        "stratum": np.array(list(STRATA), dtype=object)[stratum],
        "size": size,
        "income": income.astype(np.int64),
        "agreed": np.where(agreed, "yes", "no").astype(object),
        "weight": np.array([s[1] for s in STRATA.values()])[stratum],
    }
    pq.write_table(pa.table(table), HERE / "household.parquet")


if __name__ == "__main__":
    main()
