"""Published check-ins (676 people, 67 home cells): the joint optimum against figures worked out independently."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tetraodon.microdata.alternating import alternate
from tetraodon.microdata.clusters import Clusters, clustered
from tetraodon.microdata.data import Data, PrivateColumn
from tetraodon.microdata.features import Features
from tetraodon.microdata.fit import candidates_of
from tetraodon.microdata.joint import channels, optimal
from tetraodon.microdata.prepared import Prepared
from tetraodon.microdata.settings import Hybrid

DATA = os.environ.get("TETRAODON_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="TETRAODON_DATA is not set: no check-ins")


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


def check_ins(distortion: str, budget: str) -> Prepared:
    assert DATA is not None
    told = np.genfromtxt(Path(DATA) / "hyobscure" / "check_in_data_3users.csv", delimiter=",", names=True)
    names = list(told.dtype.names)[:-2]
    counts, home = np.stack([told[n] for n in names], axis=1), told["grid"].astype(int)
    features = Features.of_arrow(pa.table({n: counts[:, i] for i, n in enumerate(names)}), names)
    labels = clustered(features, 8, "jensen-shannon").labels
    keep = labels != np.bincount(labels).argmin()
    cells, number = np.unique(home[keep], return_counts=True)
    keep &= np.isin(home, cells[number >= 3])
    assert keep.sum() == 676
    features = features.take(np.flatnonzero(keep))
    labels = np.unique(labels[keep], return_inverse=True)[1].astype(np.int64)
    places = np.array([hilbert(64, h % 60, h // 60) for h in home[keep]])
    cells, codes = np.unique(places, return_inverse=True)
    assert len(cells) == 67
    column = PrivateColumn("home", tuple(map(str, cells)), "ordered", np.arange(67.0))
    settings = Hybrid(
        "home", names, distortion=distortion, groups=4, k=10, l=5, alpha=320, beta=30, metric="jensen-shannon",
        clusters=7, donors=1, budget=budget,
    )  # fmt: skip
    data = Data(features, (column,), (codes.astype(np.int64),), np.zeros(676, dtype=np.int64))
    prototypes = features.take(np.unique(labels, return_index=True)[1].astype(np.int64))
    return Prepared.of(data, settings, Clusters(labels, prototypes, "jensen-shannon", None))


def even_cuts(case: Prepared) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    running = np.cumsum(case.per_value())
    cuts = [int(np.searchsorted(running, running[-1] * q / 4)) + 1 for q in (1, 2, 3)]
    return np.searchsorted(cuts, np.arange(67), side="right").astype(np.int64)


@pytest.mark.parametrize(("distortion", "value"), [("0.40", 1.0283), ("0.45", 0.9980)])
def test_groups_and_channels_with_a_budget_in_each_group(distortion: str, value: float) -> None:
    case = check_ins(distortion, "group")
    found = optimal(case, candidates_of(case, 0))
    assert found.objective == pytest.approx(value, abs=2e-4)
    assert found.objective - found.bound < 1e-4  # nats


def test_one_budget_for_all_is_no_worse_and_its_bound_holds() -> None:
    case = check_ins("0.45", "shared")
    found = optimal(case, candidates_of(case, 0))
    assert found.objective <= 0.9982
    assert 0.9960 <= found.bound <= found.objective


@pytest.mark.parametrize(
    ("distortion", "first", "most"), [("0.40", 1.4420, 1.3073), ("0.45", 1.3835, 1.1975)]
)
def test_the_alternating_search_starts_and_ends_where_it_should(
    distortion: str, first: float, most: float
) -> None:
    """From even groups; a shared budget leaves it no worse than the published form with a budget in each group."""
    own = check_ins(distortion, "group")
    start = even_cuts(own)
    groups = [np.flatnonzero(start == g) for g in range(4)]
    made = channels(own, groups)
    assert made is not None
    assert sum(own.grouping(g) for g in groups) + made[1].leak == pytest.approx(first, abs=2e-4)
    case = check_ins(distortion, "shared")
    found, history = alternate(case, start, np.random.default_rng(0))
    assert history[0].leak <= first + 1e-6
    assert found.leak <= most + 0.02
    best = optimal(case, candidates_of(case, 0))
    assert best.objective <= found.leak
