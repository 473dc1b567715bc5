"""Mean distances of groups are the means over all pairs of rows; bounds from counts lie above them, and close."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon.errors import DataError, SpecificationError
from tetraodon.microdata import divergence, pair_sums, to_prototypes
from tetraodon.microdata.clusters import prototypes
from tetraodon.microdata.divergence import Divergences
from tetraodon.microdata.features import METRICS, Features, between
from tetraodon.microdata.squares import Squares

SHAPE = (3, 5, 4)


def people(rows: int, metric: str, seed: int = 0, grain: float | None = None) -> Features:
    """Rows of three number columns and, where the metric takes them, two of codes; ``grain`` makes few numbers differ."""
    rng = np.random.default_rng(seed)
    numbers = rng.gamma(0.7, 5.0, (rows, 3)) * (rng.random((rows, 3)) < 0.7)
    if grain:
        numbers = np.floor(numbers / grain)
    numbers[np.arange(rows), rng.integers(0, 3, rows)] += 1
    table: dict[str, np.ndarray] = {f"n{j}": numbers[:, j] for j in range(3)}
    if metric != "jensen-shannon":
        table["team"] = np.array(list("abc"))[rng.integers(0, 3, rows)]
        table["flag"] = rng.random(rows) < 0.3
    return Features.of_arrow(pa.table(table), list(table))


def codes(rows: int, seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> tuple[np.ndarray, ...]:
    """Classes, values and clusters; class 1, value 3 and cluster 2 are empty."""
    rng = np.random.default_rng(seed + 1000)
    empty = (1, 3, 2)
    kept = [np.setdiff1d(np.arange(n), e) for n, e in zip(shape, empty, strict=True)]
    return tuple(k[rng.integers(0, len(k), rows)] for k in kept)


def direct(
    features: Features, metric: str, group: np.ndarray, clusters: np.ndarray, number: int
) -> np.ndarray:
    """Means over all pairs of the group's rows, cluster by cluster."""
    every = np.arange(features.rows)
    apart = between(features, every, every, metric)
    found = np.full((number, number), np.nan)
    for c in range(number):
        for d in range(number):
            part = apart[np.ix_(group & (clusters == c), group & (clusters == d))]
            if part.size:
                found[c, d] = part.mean()
    return found


def groups() -> list[tuple[int, list[int]]]:
    return [(0, [0]), (0, [0, 1, 2, 3, 4]), (2, [4, 1, 1]), (2, [3]), (1, [0, 1]), (0, [])]


@pytest.mark.parametrize("grain", [None, 2.0])
@pytest.mark.parametrize("metric", METRICS)
def test_exact_means(metric: str, grain: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_sums, "TILE", 37)
    monkeypatch.setattr(pair_sums, "KNOTS", 12)
    features, (classes, values, clusters) = people(180, metric, grain=grain), codes(180)
    found = Divergences.of(features, metric, classes, values, clusters, SHAPE)
    for class_, members in groups():
        told = found.of_group(class_, np.array(members, dtype=np.int64))
        truth = direct(features, metric, (classes == class_) & np.isin(values, members), clusters, 4)
        assert told.exact and np.array_equal(told.upper, told.mean, equal_nan=True)
        np.testing.assert_allclose(told.mean, truth, rtol=1e-11, atol=1e-12)
        final = found.update_final(class_, np.array(members, dtype=np.int64))
        assert np.array_equal(final.mean, told.mean, equal_nan=True)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(METRICS),
    st.integers(1, 40),
    st.integers(0, 2**31),
    st.lists(st.integers(0, 4), max_size=5),
)
def test_exact_means_of_small_tables(metric: str, rows: int, seed: int, members: list[int]) -> None:
    features, (classes, values, clusters) = people(rows, metric, seed, grain=3.0), codes(rows, seed)
    found = Divergences.of(features, metric, classes, values, clusters, SHAPE)
    told = found.of_group(2, np.array(members, dtype=np.int64)).mean
    truth = direct(features, metric, (classes == 2) & np.isin(values, members), clusters, 4)
    np.testing.assert_allclose(told, truth, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(told, told.T)


@pytest.mark.parametrize("metric", ["gower", "hamming", "jensen-shannon"])
def test_counts_give_the_sums_over_pairs(metric: str) -> None:
    features, (_, values, clusters) = people(300, metric, grain=1.0), codes(300)
    rows, keys = np.arange(20, 300), (values * 4 + clusters)[20:]
    told = pair_sums.counted(features, metric, rows, keys, 20)
    assert told is not None and told[1]
    truth = pair_sums.pairwise(features, metric, rows, keys, 20)
    np.testing.assert_allclose(told[0], truth, rtol=1e-11, atol=1e-9)
    assert (truth[values.max() * 4 + 2] == 0).all()  # nobody has that key


def test_many_codes_and_many_different_numbers_stay_exact_by_hamming() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"n": rng.integers(0, 900, 2000) / 7, "town": rng.integers(0, 700, 2000).astype(str)})
    features = Features.of_arrow(table, ["n", "town"])
    keys = rng.integers(0, 30, 2000)
    told = pair_sums.counted(features, "hamming", np.arange(2000), keys, 30, exactly=True)
    assert told is not None
    np.testing.assert_allclose(
        told[0], pair_sums.pairwise(features, "hamming", np.arange(2000), keys, 30), atol=1e-8
    )


@pytest.mark.parametrize(("metric", "excess"), [("gower", 2e-4), ("jensen-shannon", 4e-4)])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_lie_above_and_close(metric: str, excess: float, seed: int) -> None:
    features, (classes, values, clusters) = people(1500, metric, seed), codes(1500, seed)
    exact = Divergences.of(features, metric, classes, values, clusters, SHAPE)
    bound = Divergences.of(features, metric, classes, values, clusters, SHAPE, exact_up_to=100)
    for members in ([0, 1], [4], [0, 1, 2, 4]):
        truth = exact.of_group(0, np.array(members))
        told = bound.of_group(0, np.array(members))
        assert truth.how == "exact" and told.how == "bounded" and not told.exact
        over = told.upper - truth.mean
        assert np.nanmin(over) >= -1e-12 and 0 < np.nanmax(over) < excess
        assert np.array_equal(np.isnan(over), np.isnan(truth.mean))


def test_bounds_hold_for_heavy_tails_and_few_knots(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    data = np.exp(rng.normal(0, 4, (800, 2)))
    features = Features.of_arrow(pa.table({"a": data[:, 0], "b": data[:, 1]}), ["a", "b"])
    keys, rows = rng.integers(0, 6, 800), np.arange(800)
    for knots in (128, 100, 99):
        monkeypatch.setattr(pair_sums, "KNOTS", knots)
        for metric in ("gower", "jensen-shannon"):
            truth = pair_sums.pairwise(features, metric, rows, keys, 6)
            told = pair_sums.counted(features, metric, rows, keys, 6)
            assert told is not None and not told[1]
            assert ((told[0] - truth) / np.outer(np.bincount(keys), np.bincount(keys)) > -1e-12).all()
            assert ((told[0] - truth) / truth).max() < 0.02


def test_the_proved_excess_of_jensen_shannon(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 400) * 0.9 + 0.1 / 3
    features = Features.of_arrow(pa.table({f"c{j}": p[:, j] for j in range(3)}), ["c0", "c1", "c2"])
    ratio = 1.5
    monkeypatch.setattr(pair_sums, "_few", lambda x: False)
    monkeypatch.setattr(
        pair_sums,
        "knots_of",
        lambda x, growing: np.minimum(
            x.min() * ratio ** np.arange(math.ceil(np.log(x.max() / x.min()) / np.log(ratio)) + 1), x.max()
        ),
    )
    keys, rows = np.arange(400), np.arange(400)  # every row its own key: no excess is averaged away
    told = pair_sums.counted(features, "jensen-shannon", rows, keys, 400)
    truth = pair_sums.pairwise(features, "jensen-shannon", rows, keys, 400)
    assert told is not None
    over = told[0] - truth
    assert over.min() >= -1e-12 and 0.2 < over.max() / ((ratio - 1) ** 2 / 16) <= 1


def test_what_is_kept_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    features, (classes, values, clusters) = people(200, "gower"), codes(200)
    before = Divergences.of(features, "gower", classes, values, clusters, SHAPE)
    after = Divergences.of(features, "gower", classes, values, clusters, SHAPE)
    monkeypatch.setattr(divergence, "MOST", 200)  # a class has 12 keys
    for class_ in (0, 2, 0, 2, 2, 0):
        two = after.of_group(class_, np.array([0, 2])).mean
        with monkeypatch.context() as patch:
            patch.setattr(divergence, "MOST", 10**6)
            one = before.of_group(class_, np.array([0, 2])).mean
        assert np.array_equal(one, two, equal_nan=True)
    assert len(before._held) == 2 and len(after._held) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_prototypes(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(to_prototypes, "BLOCK", 97)
    features, (classes, values, clusters) = people(150, metric), codes(150)
    centres = prototypes(features, np.minimum(clusters, 2), 3)
    found = Divergences.of(features, metric, classes, values, clusters, SHAPE).of_prototypes(centres)
    apart = between(features, np.arange(150), np.arange(3), metric, centres)
    for class_, members in groups():
        told = found.of_group(class_, np.array(members, dtype=np.int64))
        for c in range(4):
            own = (classes == class_) & np.isin(values, members) & (clusters == c)
            truth = apart[own].mean(axis=0) if own.any() else np.full(3, np.nan)
            assert told.mean[c] == pytest.approx(truth, abs=1e-12, nan_ok=True)
        assert told.exact
    with pytest.raises(SpecificationError, match="same order"):
        Divergences.of(features, metric, classes, values, clusters, SHAPE).of_prototypes(
            Features.of_arrow(pa.table({"other": [1.0]}), ["other"])
        )


def test_mean_squares() -> None:
    features, (_, values, clusters) = people(120, "euclidean"), codes(120)
    found = Squares.of(features, np.arange(10, 120), values, clusters, 5)
    member = np.array([True, False, True, False, True])
    group = member[values] & (np.arange(120) >= 10)
    every = np.arange(120)
    square = between(features, every, every, "euclidean") ** 2
    told = found.of_group(member, 4)
    for c in range(4):
        for d in range(4):
            part = square[np.ix_(group & (clusters == c), group & (clusters == d))]
            assert told[c, d] == pytest.approx(part.mean() if part.size else np.nan, nan_ok=True)


def test_mistakes() -> None:
    features, (classes, values, clusters) = people(50, "gower"), codes(50)
    right = (classes, values, clusters)
    for at, what in enumerate(("classes", "values", "clusters")):
        for wrong in (right[at][:-1], right[at] + 9, right[at] - 3, right[at] * 0.5):
            given = list(right)
            given[at] = wrong
            with pytest.raises(SpecificationError, match=what):
                Divergences.of(features, "gower", *given, SHAPE)
    found = Divergences.of(features, "gower", *right, SHAPE)
    for class_, members in [(3, [0]), (-1, [0]), (0, [5]), (0, [-1]), (0, [0.5])]:
        with pytest.raises(SpecificationError, match="divergences"):
            found.of_group(class_, np.array(members))
    with pytest.raises(SpecificationError, match="'gower'"):
        Divergences.of(features, "gowers", *right, SHAPE)
    with pytest.raises(SpecificationError, match="jensen-shannon"):
        Divergences.of(features, "jensen-shannon", *right, SHAPE)
    none = Features.of_arrow(pa.table({"a": [1, 0], "b": [1, 0]}), ["a", "b"])
    two = np.zeros(2, dtype=np.int64)
    with pytest.raises(DataError, match="0 in every column"):
        Divergences.of(none, "jensen-shannon", two, two, two, (1, 1, 1))
    assert "50" not in repr(found) + repr(found.of_group(0, np.array([0])))


def test_too_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divergence, "MOST", 50**2 - 1)
    rng = np.random.default_rng(0)
    features = people(60, "euclidean")
    given = np.zeros(60, dtype=np.int64), rng.integers(0, 10, 60), rng.integers(0, 5, 60)
    with pytest.raises(SpecificationError, match="fewer clusters or make the private column coarser"):
        Divergences.of(features, "euclidean", *given, (1, 10, 5))
    sampled = Divergences.of(features, "euclidean", *given, (1, 10, 5), exact_up_to=50)
    assert sampled.of_group(0, np.arange(10)).how == "sampled"
