"""Made-up people for tests of microdata: a private number that shows in what they do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tetraodon as td


def people(rows: int, seed: int = 1, ages: int = 12, columns: int = 5) -> pa.Table:
    """Ages, counts of doings that drift with age, and a category that hangs on it."""
    rng = np.random.default_rng(seed)
    age = 20 + rng.integers(0, ages, rows)
    drift = (age - 20) / max(ages - 1, 1)
    told = {
        "age": age,
        "kind": np.array(["a", "b", "c"], dtype=object)[(drift * 2 + rng.random(rows)).astype(int)],
    }
    for j in range(columns):
        told[f"q_{j}"] = rng.poisson(0.5 + 4 * np.abs(drift - j / max(columns - 1, 1)))
    return pa.table({name: pa.array(list(values)) for name, values in told.items()})


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return people(400)


@pytest.fixture(scope="session")
def fitted(table: pa.Table) -> td.HybridObscuring:
    return td.HybridObscuring("age", "all", distortion=0.2, groups=3, k=60, l=2, clusters=6, donors=3).fit(
        table
    )
