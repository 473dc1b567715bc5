"""The people compared: check-ins, the Young People Survey, Big Five answers, and two kinds of people who never were.

Preparation, each time:

* *Check-ins* (HyObscure's table, 692 people, 200 categories of places): 8 clusters by agglomeration (cosine, complete linkage), the
  smallest dropped; home cells with fewer than 3 people left dropped: 676 people, 67 cells, 7 clusters. The private value is the
  home cell along Hilbert's curve through a square of 64 × 64 cells, so that groups are stretches of the curve.
* *Young People Survey* (1,010 people): the 19 questions on music and the 12 on films, from 1 to 5 ("Music" to "Action" in the
  file's order); people with an empty answer among these, or no age, are dropped. Ages are 15 to 30.
* *Big Five 2014* (19,711 people): the 15 answers that the file holds, from 1 to 5; people with an unanswered one (0) or an age
  outside 14 to 80 are dropped, and each 5th person is kept.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.data import source
from tetraodon.axes import Ints
from tetraodon.microdata.clusters import Clusters, clustered
from tetraodon.microdata.data import Data, PrivateColumn
from tetraodon.microdata.features import Features
from tetraodon.microdata.prepared import Prepared
from tetraodon.microdata.settings import Hybrid

from . import synthetic

SHARED = "shared"


@dataclass(frozen=True, eq=False)
class Case:
    """People to compare on.

    Attributes:
        name: in tables.
        secret: the private column of ``table``.
        table: the private column and the exchanged ones, a row for each person.
        settings: that every method is held to.
        column, codes: the private column as the search sees it, and each row's value.
        labels: clusters, where they are made here; else the settings' own are.
        kind: of the secret, as attackers see it.
    """

    name: str
    secret: str
    table: pa.Table
    settings: dict[str, Any]
    column: PrivateColumn
    codes: Ints
    labels: Ints | None = None
    kind: str = "number"

    @property
    def names(self) -> list[str]:
        """The exchanged columns."""
        return [n for n in self.table.column_names if n != self.secret]

    def prepared(self, **changed: Any) -> Prepared:
        """What the searches work on, with some settings changed."""
        settings = Hybrid(self.secret, self.names, **{**self.settings, **changed})
        features = Features.of_arrow(self.table, self.names)
        data = Data(features, (self.column,), (self.codes,), np.zeros(len(self.codes), dtype=np.int64))
        if self.labels is None or settings.clusters != self.settings["clusters"]:
            return Prepared.of(data, settings)
        first = np.unique(self.labels, return_index=True)[1].astype(np.int64)
        return Prepared.of(data, settings, Clusters(self.labels, features.take(first), settings.metric, None))

    def even(self, groups: int) -> Ints:
        """The group of every value, groups of about as many people each."""
        running = np.cumsum(np.bincount(self.codes, minlength=self.column.size))
        cuts = [int(np.searchsorted(running, running[-1] * q / groups)) + 1 for q in range(1, groups)]
        return np.searchsorted(cuts, np.arange(self.column.size), side="right").astype(np.int64)


def _ordered(name: str, values: Any) -> tuple[PrivateColumn, Ints]:
    told, codes = np.unique(values, return_inverse=True)
    column = PrivateColumn(name, tuple(map(str, told.tolist())), "ordered", told.astype(np.float64))
    return column, codes.astype(np.int64)


# ---------------------------------------------------------------------------------------------------------------- real people


def check_ins(distortion: str = "0.45") -> Case:
    """676 people by home cell; see the module."""
    told = np.genfromtxt(source("hyobscure", "check_in_data_3users.csv"), delimiter=",", names=True)
    names = list(told.dtype.names)[:-2]
    counts, home = np.stack([told[n] for n in names], axis=1), told["grid"].astype(int)
    features = Features.of_arrow(pa.table({n: counts[:, i] for i, n in enumerate(names)}), names)
    labels = clustered(features, 8, "jensen-shannon").labels
    keep = labels != np.bincount(labels).argmin()
    cells, number = np.unique(home[keep], return_counts=True)
    keep &= np.isin(home, cells[number >= 3])
    counts, home = counts[keep], home[keep]
    labels = np.unique(labels[keep], return_inverse=True)[1].astype(np.int64)
    along = np.array([hilbert(64, h % 60, h // 60) for h in home])
    cells, codes = np.unique(along, return_inverse=True)
    column = PrivateColumn("home", tuple(map(str, cells.tolist())), "ordered", np.arange(float(len(cells))))
    table = pa.table({"home": codes, **{n: counts[:, i] for i, n in enumerate(names)}})
    settings = {
        "distortion": distortion, "groups": 4, "k": 10, "l": 5, "alpha": 320, "beta": 30, "metric": "jensen-shannon",
        "clusters": 7, "donors": 1, "budget": SHARED,
    }  # fmt: skip
    return Case("check-ins", "home", table, settings, column, codes.astype(np.int64), labels, "category")


def hilbert(side: int, x: int, y: int) -> int:
    """Where a cell lies on Hilbert's curve through a square of 2^k cells a side."""
    place, half = 0, side // 2
    while half:
        right, up = bool(x & half), bool(y & half)
        place += half * half * ((3 * right) ^ up)
        if not up:
            if right:
                x, y = side - 1 - x, side - 1 - y
            x, y = y, x
        half //= 2
    return place


def young_people(distortion: str = "0.045") -> Case:
    """People of 15 to 30 and what music and films they like; see the module."""
    with gzip.open(source("young_people_survey", "responses.csv.gz"), "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    header = rows[0]
    first, last = header.index("Music"), header.index("Action")
    asked = [*range(first, last + 1), header.index("Age")]
    told = np.array(
        [[float(r[i]) for i in asked] for r in rows[1:] if all(r[i] != "" for i in asked)], dtype=np.float64
    )
    age, answers = told[:, -1].astype(np.int64), told[:, :-1]
    return _survey("Young People", age, [header[i] for i in asked[:-1]], answers, {
        "distortion": distortion, "groups": 4, "k": 100, "l": 2, "alpha": 450, "beta": 12, "metric": "jensen-shannon",
        "clusters": 10, "donors": 1, "budget": SHARED,
    })  # fmt: skip


def big_five(distortion: str = "0.045", each: int = 5) -> Case:
    """People of 14 to 80 and 15 answers; see the module."""
    with gzip.open(source("big5_2014", "big5.csv.gz"), "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    header = rows[0]
    asked = [i for i, n in enumerate(header) if n[:1] in "ENACO" and n[1:].isdigit()]
    at = header.index("age")
    told = [
        (int(r[at]), [int(r[i]) for i in asked])
        for r in rows[1:]
        if r[at] and 14 <= int(r[at]) <= 80 and all(r[i] not in ("", "0") for i in asked)
    ][::each]
    age, answers = np.array([t[0] for t in told]), np.array([t[1] for t in told], dtype=np.float64)
    return _survey("Big Five", age, [header[i] for i in asked], answers, {
        "distortion": distortion, "groups": 5, "k": 300, "l": 3, "alpha": 1500, "beta": 30, "metric": "jensen-shannon",
        "clusters": 10, "donors": 1, "budget": SHARED,
    })  # fmt: skip


def _survey(name: str, age: Ints, names: list[str], answers: Any, settings: dict[str, Any]) -> Case:
    column, codes = _ordered("age", age)
    clean = [f"q{i:02d}_{''.join(c if c.isalnum() else '_' for c in n)}" for i, n in enumerate(names)]
    table = pa.table({"age": age, **{n: answers[:, i] for i, n in enumerate(clean)}})
    return Case(name, "age", table, settings, column, codes)


# ------------------------------------------------------------------------------------------------------------ made-up people


def made_up(
    rows: int = 1200, values: int = 24, items: int = 30, seed: int = 1, distortion: str = "0.30"
) -> Case:
    """Counts of liked items whose taste drifts with a private value (``synthetic.people``)."""
    code, counts = synthetic.people(rows, values, items, 8, seed)
    column, codes = _ordered("age", code)
    table = pa.table({"age": code, **{f"item_{i}": counts[:, i] for i in range(items)}})
    return Case("made-up people", "age", table, {
        "distortion": distortion, "groups": 4, "k": 60, "l": 3, "alpha": rows // 2, "beta": 12, "metric": "jensen-shannon",
        "clusters": 8, "donors": 1, "budget": SHARED,
    }, column, codes)  # fmt: skip


def mixed(rows: int, columns: int = 30, seed: int = 1) -> pa.Table:
    """An age of 17 to 90, and columns that drift with it: a third of measures, a third of small counts, a third of categories."""
    rng = np.random.default_rng(seed)
    age = 17 + np.minimum((74 * rng.beta(1.6, 2.6, rows)).astype(np.int64), 73)
    drift = (age - 17) / 73
    taste = rng.normal(0, 1, rows)
    made: dict[str, Any] = {"age": age}
    for j in range(columns):
        own = np.cos(j) * drift + np.sin(1.7 * j) * 0.3 * taste
        if j % 3 == 0:
            made[f"measure_{j}"] = own + rng.normal(0, 0.4, rows)
        elif j % 3 == 1:
            made[f"count_{j}"] = rng.poisson(2 + 2 * (own - own.min()))
        else:
            levels = 3 + j % 5
            place = np.clip((own + 1 + rng.normal(0, 0.5, rows)) / 2 * levels, 0, levels - 1).astype(np.int8)
            names = pa.array([f"level {i}" for i in range(levels)])
            made[f"kind_{j}"] = pa.DictionaryArray.from_arrays(pa.array(place), names)
    return pa.table(made)


CASES: dict[str, Callable[[], Case]] = {
    "made-up": made_up,
    "check-ins": check_ins,
    "young-people": young_people,
    "big-five": big_five,
}
