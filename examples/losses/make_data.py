"""Makes first.parquet, second.parquet and third.parquet: the sample table of the package cut into three by row number.

    python make_data.py

They play three years of one register. The rows are real people of the 1994 census (Adult; Becker and Kohavi 1996, UCI, CC BY 4.0).
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parent
EDITIONS = ("first", "second", "third")


def main() -> None:
    with resources.as_file(resources.files("tetraodon") / "data" / "adult.parquet") as path:
        adult = pq.read_table(path, columns=["capital_loss", "sex"])
    number = np.arange(adult.num_rows)
    for k, edition in enumerate(EDITIONS):
        pq.write_table(adult.filter(number % len(EDITIONS) == k), HERE / f"{edition}.parquet")


if __name__ == "__main__":
    main()
