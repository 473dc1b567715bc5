"""People whose columns tell their age, for releases of microdata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tetraodon as td
from tetraodon.microdata.settings import Hybrid

JOBS = {
    "nurse": "health",
    "doctor": "health",
    "baker": "trade",
    "mason": "trade",
    "health": "any",
    "trade": "any",
}
DOMAIN = td.Domain(
    region=td.Categorical(["n", "e", "s", "w"], missing="public"),
    age=td.Integer(20, 39),
    hours=td.Integer(0, 60, unit="hours"),
    mood=td.Categorical(["low", "even", "high"], ordered=True),
    likes=td.Categorical(["tea", "milk"], other="else"),
    home=td.Point("lat", "lon", box=((0, 4), (0, 3)), cell=1, metric="planar", unit="km"),
    job=td.Categorical(["nurse", "doctor", "baker", "mason"], hierarchy=JOBS),
    pay=td.Numeric(0, 100, cells=10),
)
POLICY = td.Policy(DOMAIN, td.AttributeWise(age=td.Within(5), hours=td.Within(2)))


def people(n: int = 240, seed: int = 3) -> dict[str, Any]:
    """Rows by column, with columns that nobody declared."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 40, n)
    old = (age + rng.normal(0, 4, n) > 30).astype(int)
    return {
        "region": [None if r == 4 else "nesw"[r] for r in rng.integers(0, 5, n)],
        "age": age.tolist(),
        "hours": np.clip(age + rng.normal(0, 5, n), 0, 60).astype(int).tolist(),
        "mood": np.array(["low", "even", "high"])[np.clip(old + rng.integers(0, 2, n), 0, 2)].tolist(),
        "likes": np.array(["tea", "milk", "canary-juice"])[
            np.clip(old + rng.integers(0, 2, n), 0, 2)
        ].tolist(),
        "lat": (4 * rng.random(n)).tolist(),
        "lon": (3 * rng.random(n)).tolist(),
        "job": np.array(["nurse", "doctor", "baker", "mason"])[2 * old + rng.integers(0, 2, n)].tolist(),
        "pay": (50 * old + 50 * rng.random(n)).tolist(),
        "name": [f"canary{i}" for i in range(n)],
    }


def asked(private: Any = "age", insensitive: Any = ("hours", "mood", "likes"), **more: Any) -> Hybrid:
    """A request that these people meet."""
    told: dict[str, Any] = {"distortion": "0.4", "groups": 3, "k": 20, "l": 2, "clusters": 5, "donors": 3}
    return Hybrid(private, list(insensitive), **(told | more))


def session(policy: Any = POLICY, rows: Any = None, **more: Any) -> Any:
    """A session over them."""
    table = td.Table(people() if rows is None else rows, policy.domain, name="people")
    return td.Session(table, policy, **({"epsilon": 2} | more if "rho" not in more else more))


SETTINGS = """
[data]
name = "people"
source = "people.parquet"

[domain.age]
integer = [20, 39]
[domain.hours]
integer = [0, 60]
[domain.mood]
categorical = ["low", "even", "high"]
[domain.likes]
categorical = ["tea", "milk"]
other = "else"
[domain.job]
categorical = ["nurse", "doctor", "baker", "mason"]
hierarchy = "jobs.csv"

[policy.secrets]
age = { within = 5 }

[budget]
epsilon = 1
ledger = "people.ledger"

[[release]]
name = "ages"
epsilon = "1/2"
query = { histogram = ["age"] }

[[release]]
name = "people"
guarantee = "measured"
audit = "people.audit.csv"
[release.hybrid]
private = "age"
insensitive = ["hours", "mood", "likes"]
groups = 3
k = 20
l = 2
distortion = 0.4
clusters = 5
donors = 3
"""


def written(folder: Path, *replaced: tuple[str, str]) -> Path:
    """A settings file with its data; returns its path."""
    text = SETTINGS
    for old, new in replaced:
        assert old in text, old
        text = text.replace(old, new)
    pq.write_table(pa.table(people()), folder / "people.parquet")
    (folder / "jobs.csv").write_text(
        "code,parent\n" + "".join(f"{code},{parent}\n" for code, parent in JOBS.items()), encoding="utf-8"
    )
    path = folder / "release.toml"
    path.write_text(text, encoding="utf-8")
    return path
