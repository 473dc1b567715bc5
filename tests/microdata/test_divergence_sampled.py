"""Sampled pairs: near the means over all pairs, enumerated where few, and bounds that hold as often as they say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tetraodon.microdata import sampled
from tetraodon.microdata.divergence import Divergences
from tetraodon.microdata.features import Features

SHAPE = (2, 4, 3)


def people(rows: int, seed: int = 0, skew: float = 0.3) -> tuple[Features, tuple[np.ndarray, ...]]:
    """Rows whose numbers depend on value and cluster; value 3 is rare and cluster 2 rare in it."""
    rng = np.random.default_rng(seed)
    values = rng.choice(4, rows, p=[0.4, 0.3, 0.28, 0.02])
    clusters = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    clusters[(values == 3) & (rng.random(rows) < 0.6)] = 0
    centre = 2.0 * clusters + 0.5 * values
    table = pa.table(
        {
            "a": centre + np.exp(skew * rng.normal(size=rows)),
            "b": rng.normal(size=rows),
            "kind": np.array(list("xyz"))[rng.integers(0, 3, rows)],
        }
    )
    classes = np.where(rng.random(rows) < 0.9, 0, 1)
    return Features.of_arrow(table, ["a", "b", "kind"]), (classes, values, clusters)


@pytest.fixture
def few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every metric sample."""
    monkeypatch.setattr("tetraodon.microdata.divergence.MOST", 0)


@pytest.mark.usefixtures("few_keys")
@pytest.mark.parametrize("metric", ["euclidean", "gower", "hamming"])
def test_near_the_exact_means_and_above(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "STEP", 1500)  # entries in several parts
    features, given = people(3000)
    with monkeypatch.context() as patch:
        patch.setattr("tetraodon.microdata.divergence.MOST", 10**6)
        exact = Divergences.of(features, metric, *given, SHAPE)
        truths = {q: exact.of_group(q[0], np.array(q[1])).mean for q in groups()}
    found = Divergences.of(features, metric, *given, SHAPE, exact_up_to=0, rng=np.random.default_rng(1))
    for (class_, members), truth in truths.items():
        for told in (
            found.of_group(class_, np.array(members)),
            found.update_final(class_, np.array(members)),
        ):
            assert told.how == "sampled" and not told.exact
            assert np.array_equal(np.isnan(told.mean), np.isnan(truth))
            np.testing.assert_allclose(told.mean, truth, rtol=0.05, atol=0.02)
            assert (told.upper - truth)[~np.isnan(truth)].min() > -1e-9
            assert (told.upper >= told.mean)[~np.isnan(truth)].all()
            assert np.array_equal(told.mean, told.mean.T, equal_nan=True)


def groups() -> list[tuple[int, tuple[int, ...]]]:
    return [(0, (0, 1, 2, 3)), (0, (2,)), (0, (3,)), (1, (3,)), (1, (0, 3))]


def test_few_pairs_are_all_looked_at() -> None:
    features, given = people(400)
    exact = Divergences.of(features, "euclidean", *given, SHAPE)
    found = Divergences.of(features, "euclidean", *given, SHAPE, exact_up_to=0)
    classes, values, clusters = given
    size = np.bincount(clusters[(classes == 0) & (values == 3)], minlength=3)
    assert 0 < size.max() ** 2 <= sampled.ENOUGH
    told, truth = (d.of_group(0, np.array([3])) for d in (found, exact))
    np.testing.assert_allclose(told.mean, truth.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(told.upper, told.mean)


def test_an_empty_group_and_an_empty_class() -> None:
    features, (_, values, clusters) = people(50)
    zeros = np.zeros(50, dtype=np.int64)
    found = Divergences.of(features, "euclidean", zeros, values, clusters, SHAPE, exact_up_to=0)
    for class_, members in [(1, [0]), (0, [])]:
        told = found.of_group(class_, np.array(members, dtype=np.int64))
        assert np.isnan(told.mean).all() and np.isnan(told.upper).all()


def test_draws_are_fresh() -> None:
    features, given = people(3000)
    one, two = (
        Divergences.of(features, "euclidean", *given, SHAPE, exact_up_to=0).of_group(0, np.arange(4)).mean
        for _ in range(2)
    )
    assert not np.array_equal(one, two)
    found = Divergences.of(features, "euclidean", *given, SHAPE, exact_up_to=0)
    kept = found.of_group(0, np.arange(3)).mean
    assert not np.array_equal(found.update_final(0, np.arange(3)).mean, kept)


def test_pairs_in_a_group_are_uniform_pairs_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool's pairs of two values: each ordered pair of rows comes equally often."""
    monkeypatch.setattr(sampled, "POOL", 200_000)
    monkeypatch.setattr(sampled, "MOST_EACH", 200_000)
    values = np.array([0, 0, 0, 1, 1, 0, 1])
    features = Features.of_arrow(pa.table({"n": 2.0 ** np.arange(7)}), ["n"])
    zeros = np.zeros(7, dtype=np.int64)
    pool = sampled.Pool.draw(features, "euclidean", np.arange(7), values, zeros, 2, np.random.default_rng(3))
    inside = (pool.first[0] == 0) & (pool.second[0] == 0)
    far, count = np.unique(pool.distance[0][inside], return_counts=True)
    own = 2.0 ** np.flatnonzero(values == 0)
    expected = np.unique(np.abs(own[:, None] - own).ravel(), return_counts=True)
    assert np.array_equal(far, expected[0])
    share = expected[1] / 16 * count.sum()
    assert ((count - share) ** 2 / share).sum() < 30  # chi-squared of 6 degrees: 4e-5 above


@pytest.mark.slow
@pytest.mark.usefixtures("few_keys")
@pytest.mark.parametrize("metric", ["gower", "euclidean"])
@pytest.mark.parametrize("skew", [0.3, 2.0])
def test_bounds_hold_as_often_as_they_say(metric: str, skew: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries of a group at once in at least 99 % of repeats: fails if 1,000 repeats show that they do not.

    The certain bound of the Euclidean distance is set aside, so that the statistical one alone is tested.
    """
    monkeypatch.setattr(sampled, "POOL", 9_000)
    features, given = people(3000, skew=skew)
    with monkeypatch.context() as patch:
        patch.setattr("tetraodon.microdata.divergence.MOST", 10**6)
        exact = Divergences.of(features, metric, *given, SHAPE)
        asked = [(0, np.arange(4)), (0, np.array([1])), (1, np.array([0, 2]))]
        truth = [exact.of_group(q, m).mean for q, m in asked]
    rng = np.random.default_rng(11)
    if metric == "euclidean":
        monkeypatch.setattr(sampled.Squares, "of", lambda *_: None)
    missed = np.zeros(3)
    close = []
    for _ in range(1000):
        found = Divergences.of(features, metric, *given, SHAPE, exact_up_to=0, rng=rng)
        for i, (q, m) in enumerate(asked):
            told = found.of_group(q, m)
            missed[i] += bool((told.upper < truth[i]).any())
            close.append(float(np.max(told.upper / truth[i])))
    assert missed.max() <= 20, missed  # of 1,000 at 1 %: more than 20 has probability 1e-3
    assert skew > 1 or np.median(close) < 1.5  # and the bound is not an empty one
