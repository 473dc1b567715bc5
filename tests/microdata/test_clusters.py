"""Clusters: those that are there are found, each row is nearest to its own centre, few different rows make few clusters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from tetraodon.errors import DataError, SpecificationError
from tetraodon.microdata import clusters as module
from tetraodon.microdata.clusters import clustered
from tetraodon.microdata.features import METRICS, Features, between


def blobs(rows: int, metric: str, seed: int = 0, groups: int = 4) -> tuple[Features, np.ndarray]:
    """Rows about four profiles that every metric tells apart, and which."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, groups, rows)
    table: dict[str, object] = {
        f"n{j}": rng.poisson(np.where(which == j, 60.0, 1.0)) + 1 for j in range(groups)
    }
    if metric != "jensen-shannon":
        table["kind"] = np.array(["a", "b", "c", "d"])[which]
        table["flag"] = rng.random(rows) < 0.2
    return Features.of_arrow(pa.table(table), list(table)), which


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return len({*zip(a.tolist(), b.tolist(), strict=True)}) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("small", [False, True])
def test_clusters_that_are_there_are_found(metric: str, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if small:  # K-means on a part of the rows, assigned in chunks
        monkeypatch.setattr(module, "AGGLOMERATED", 100)
        monkeypatch.setattr(module, "FITTED", 200)
        monkeypatch.setattr(module, "BLOCK", 999)
    features, which = blobs(600, metric)
    found = clustered(features, 4, metric)
    assert same_partition(found.labels, which) and found.number == 4
    assert (found.centres is None) == (metric == "jensen-shannon" and not small)
    assert np.array_equal(found.assign(features), found.labels)
    again = clustered(features, 4, metric)
    assert np.array_equal(again.labels, found.labels)
    first = [int(np.flatnonzero(found.labels == k)[0]) for k in range(4)]
    assert first == sorted(first)  # numbered as they first occur
    for k in range(4):
        own = found.labels == k
        assert found.prototypes.numbers[k] == pytest.approx(features.numbers[own].mean(axis=0))
        for j in range(len(features.levels)):
            assert found.prototypes.codes[k, j] == np.bincount(features.codes[own, j]).argmax()


def test_agglomeration_is_scipys() -> None:
    rng = np.random.default_rng(3)
    data = rng.poisson(1.5, (150, 6)) + np.eye(6, dtype=int)[rng.integers(0, 6, 150)]
    features = Features.of_arrow(
        pa.table({f"c{j}": data[:, j] for j in range(6)}), [f"c{j}" for j in range(6)]
    )
    tree = linkage(pdist(data / data.sum(axis=1, keepdims=True), "cosine"), "complete")
    found = clustered(features, 7, "jensen-shannon")
    assert same_partition(found.labels, fcluster(tree, 7, "maxclust"))
    near = between(features, np.arange(150), np.arange(7), "jensen-shannon", found.prototypes)
    assert np.array_equal(found.assign(features), near.argmin(axis=1))


@pytest.mark.parametrize("wide", [False, True])
def test_every_row_is_nearest_to_its_own_centre(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(module, "WIDE", 3)  # indicators held sparse
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "n": rng.normal(size=300),
            "m": rng.normal(size=300),
            "kind": np.array(list("abcde"))[rng.integers(0, 5, 300)],
            "flag": rng.random(300) < 0.3,
        }
    )
    features = Features.of_arrow(table, table.column_names)
    for metric in ("euclidean", "gower", "hamming"):
        found = clustered(features, 6, metric)
        numbers = features.numbers
        if metric != "euclidean":
            numbers = (numbers - features.low) / features.ranges
        indicators = [
            (features.codes[:, j, None] == np.arange(n)) / np.sqrt(2) for j, n in enumerate(features.levels)
        ]
        points = np.hstack([numbers, *indicators])
        assert found.centres is not None and found.centres.shape == (6, 9)
        far = ((points[:, None] - found.centres) ** 2).sum(axis=2)
        assert np.array_equal(far.argmin(axis=1), found.labels)
        mean = np.stack([points[found.labels == k].mean(axis=0) for k in range(6)])
        assert found.centres == pytest.approx(mean, abs=1e-3)  # Lloyd has ended


@pytest.mark.parametrize("metric", METRICS)
def test_few_different_rows(metric: str) -> None:
    table = pa.table({"a": [1, 1, 2, 1, 2], "b": [3, 3, 1, 3, 1]})
    features = Features.of_arrow(table, ["a", "b"])
    for wanted, number in [(1, 1), (2, 2), (3, 2), (5, 2)]:
        found = clustered(features, wanted, metric)
        assert found.number == number
        assert found.labels.tolist() == ([0, 0, 0, 0, 0] if wanted == 1 else [0, 0, 1, 0, 1])
        assert found.assign(features).tolist() == found.labels.tolist()
    one = Features.of_arrow(pa.table({"a": [1]}), ["a"])
    assert clustered(one, 1, metric).labels.tolist() == [0]


def test_nearly_equal_rows_raise_no_warning() -> None:
    base = np.repeat(np.arange(3.0), 40)
    jitter = np.random.default_rng(0).random(120) * 1e-14
    features = Features.of_arrow(pa.table({"n": base + jitter}), ["n"])
    found = clustered(features, 20, "euclidean")
    assert 3 <= found.number <= 20 and np.bincount(found.labels).min() > 0


def test_mistakes() -> None:
    features, _ = blobs(5, "gower")
    with pytest.raises(SpecificationError, match="more clusters than rows") as told:
        clustered(features, 6, "gower")
    assert "5" not in str(told.value)
    for wrong in (0, -1, 2.5, True, "3"):
        with pytest.raises(SpecificationError, match="whole number"):
            clustered(features, wrong, "gower")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no rows"):
        clustered(features.take(np.array([], dtype=np.int64)), 1, "gower")
    with pytest.raises(SpecificationError, match="'kind'"):
        clustered(features, 2, "jensen-shannon")
    other = Features.of_arrow(pa.table({"n0": [1]}), ["n0"])
    found = clustered(features, 2, "gower")
    with pytest.raises(SpecificationError, match=r"Features\.encode"):
        found.assign(other)
    assert repr(found) == "Clusters(2 by gower)"


def test_equally_frequent_codes_give_the_first() -> None:
    features = Features.of_arrow(pa.table({"k": ["b", "a", "a", "b", "c"]}), ["k"])
    assert module.prototypes(features, np.zeros(5, dtype=np.int64), 1).to_arrow().to_pydict() == {"k": ["a"]}
