"""Baselines of single rows: laws by their formulas, draws by chi-squared, distances by loops."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from tetraodon.errors import SpecificationError
from tetraodon.microdata import baselines
from tetraodon.microdata.baselines import (
    BASELINES,
    Baseline,
    Exponential,
    Frapp,
    Random,
    Similarity,
    donors,
    expected_distortion,
    law,
)
from tetraodon.microdata.donor_distances import distances, vectors
from tetraodon.microdata.features import Features

ALL: list[Baseline] = [
    Random("0.3"),
    Frapp(7),
    Exponential(3),
    Exponential(2, "peak-euclidean"),
    Exponential(4, "jaccard"),
    Similarity(60, "0.2"),
]


@pytest.fixture(scope="module")
def twelve() -> Features:
    return of(np.random.default_rng(3), 12)


def of(rng: np.random.Generator, rows: int, copies: int = 1) -> Features:
    counts = rng.poisson(1.5, (rows, 4))
    team = rng.choice(["red", "blue", "green"], rows)
    told = {name: np.tile(counts[:, i], copies) for i, name in enumerate("abcd")}
    return Features.of_arrow(pa.table(told | {"team": np.tile(team, copies).tolist()}), [*told, "team"])


@pytest.mark.parametrize("baseline", ALL, ids=str)
def test_laws_are_laws_and_stay_inside_the_group(twelve: Features, baseline: Baseline) -> None:
    groups = np.array([0, 5, 5, 0, 2, 0, 5, 0, 0, 5, 2, 9])
    free, held = law(baseline, twelve), law(baseline, twelve, groups, in_group=True)
    for found in (free, held):
        assert found.shape == (12, 12) and found.min() >= 0
        assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
    assert not held[groups[:, None] != groups[None, :]].any()
    assert held[11, 11] == 1  # nobody else is in its group
    some = np.array([7, 2])
    assert np.array_equal(law(baseline, twelve, groups, in_group=True, rows=some), held[some])


def test_random_and_frapp_have_their_entries_exactly() -> None:
    features = of(np.random.default_rng(0), 7)
    found = law("random", features, parameter="0.3")
    assert np.allclose(np.diag(found), 0.7, atol=1e-15) and np.allclose(found[~np.eye(7, dtype=bool)], 0.05)
    for gamma in (1, 2, "7/3", 60):
        own, others = Frapp(gamma).odds(7)
        assert own / (others / 6) == Fraction(gamma)  # exactly γ times any other
        found = law("frapp", features, parameter=gamma)
        assert np.allclose(np.diag(found), float(own / (own + 6)), atol=1e-15)
        assert np.allclose(found[0, 1:], 1 / float(own + 6), atol=1e-15)
    assert Random("0.3").odds(7) == (Fraction(7, 10), Fraction(3, 10))
    assert Random("0.3").odds(1) == (1, 0)


def test_what_is_drawn_has_those_odds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coin and the bounds that reach the noise module are the rational law, and no rounding of it."""
    told: list[Sequence[Sequence[int]]] = []
    bounds: list[int] = []
    keep = baselines.Choices.of

    def of_rows(rows: Sequence[Sequence[int]]) -> baselines.Choices:
        told.append(rows)
        return keep(rows)

    class Spy:
        of = staticmethod(of_rows)

    def below(limits: baselines.Ints) -> baselines.Ints:
        bounds.extend(set(limits.tolist()))
        return np.zeros(len(limits), dtype=np.int64)

    monkeypatch.setattr(baselines, "Choices", Spy)
    monkeypatch.setattr(baselines, "below", below)
    features = of(np.random.default_rng(0), 50)
    for baseline, share in (
        (Random("1/3"), Fraction(1, 3)),
        (Frapp("5/2"), Fraction(49) / (Fraction(5, 2) + 49)),
    ):
        drawn = donors(baseline, features)
        (own, others), *rest = told.pop()
        assert not rest and Fraction(others, own + others) == share
        assert set(drawn.tolist()) <= {*range(50)} and set(bounds) == {49}
        moved = drawn != np.arange(50)
        assert set(drawn[moved].tolist()) <= {0, 1}  # the first other row: 0, or 1 of row 0 itself


def test_exponential_weights_are_the_metric_s(twelve: Features) -> None:
    for metric in ("gower", "euclidean", "hamming", "jaccard", "peak-euclidean"):
        baseline = Exponential("2.5", metric)
        everybody = np.arange(12)
        weights = np.exp(-2.5 * distances(twelve, everybody, everybody, metric))
        assert np.allclose(law(baseline, twelve), weights / weights.sum(axis=1, keepdims=True), atol=1e-14)
    assert np.allclose(law(Exponential(0), twelve), 1 / 12)
    far = law(Exponential(10_000), twelve)  # weights that all underflow but one's own
    assert np.isfinite(far).all() and np.allclose(far.sum(axis=1), 1)


def test_own_distances_by_loops(twelve: Features) -> None:
    everybody = np.arange(12)
    rows = vectors(twelve, everybody)
    assert rows.shape == (12, 4 + 3) and (rows[:, 4:].sum(axis=1) == 1).all()
    jaccard, peak = (distances(twelve, everybody, everybody, m) for m in ("jaccard", "peak-euclidean"))
    for u in range(12):
        for v in range(12):
            some = (rows[u] != 0) | (rows[v] != 0)
            assert jaccard[u, v] == pytest.approx((rows[u] != rows[v])[some].mean())
            one, other = rows[u] / rows[u].max(), rows[v] / rows[v].max()
            assert peak[u, v] == pytest.approx(np.sqrt(((one - other) ** 2).sum()))
    none = Features.of_arrow(pa.table({"a": [0, 0, 2], "b": [0, 0, 1]}), ["a", "b"])
    assert distances(none, np.array([0]), np.arange(3), "jaccard").tolist() == [[0, 0, 1]]
    assert np.isfinite(distances(none, np.array([0]), np.arange(3), "peak-euclidean")).all()


def test_similarity_cuts_at_the_percentile() -> None:
    """Ten rows at known angles from the first: the entry at place ⌊0.8 · 10⌋ of the sorted similarities stays, above goes."""
    angles = np.linspace(0.0, 0.9, 10)
    table = pa.table({"x": np.cos(angles), "y": np.sin(angles)})
    features = Features.of_arrow(table, ["x", "y"])
    near = np.cos(angles)
    near[0] = 0.0
    cut = np.sort(near)[8]
    expected = np.where(near > cut, 0.0, near)
    assert (expected == 0).sum() == 2  # itself, and the nearest other
    assert np.allclose(law(Similarity(80), features, rows=np.array([0]))[0], expected / expected.sum())
    assert np.allclose(law(Similarity(100), features, rows=np.array([0]))[0], near / near.sum())
    kept = law(Similarity(80, "0.25"), features)
    assert np.allclose(kept, 0.75 * law(Similarity(80), features) + 0.25 * np.eye(10))


def test_similarity_where_nobody_is_left() -> None:
    """Orthogonal rows and rows of zeros have no similar row, and opposite ones none with a positive similarity."""
    table = pa.table({"x": [1.0, 0.0, 0.0, 0.0], "y": [0.0, 1.0, -1.0, 0.0]})
    features = Features.of_arrow(table, ["x", "y"])
    assert np.array_equal(law(Similarity(100), features), np.eye(4))
    assert donors(Similarity(100), features).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("baseline", ALL, ids=str)
def test_draws_pass_chi_squared(baseline: Baseline) -> None:
    """150 groups that are copies of one another: inside each the law is that of one copy alone."""
    rng, copies, size = np.random.default_rng(11), 150, 6
    features = of(rng, size, copies)
    groups = np.repeat(np.arange(copies), size)
    counts = np.zeros((size, size))
    for _ in range(3):
        drawn = donors(baseline, features, groups, in_group=True)
        assert np.array_equal(drawn // size, groups)
        np.add.at(counts, (np.arange(copies * size) % size, drawn % size), 1)
    expected = (
        law(baseline, features, groups, in_group=True, rows=np.arange(size))[:, :size] * counts.sum() / size
    )
    assert not counts[expected == 0].any()
    likely = expected > 5
    rest, seen = expected[~likely].sum(), counts[~likely].sum()
    statistic = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    statistic += (seen - rest) ** 2 / rest if rest > 5 else 0.0
    assert chi2.sf(statistic, max(1, likely.sum() - size)) > 1e-6


def test_five_thousand_rows_are_drawn_in_blocks() -> None:
    rng = np.random.default_rng(2)
    features = Features.of_arrow(pa.table({"x": rng.random(5000), "y": rng.random(5000)}), ["x", "y"])
    drawn = donors(Exponential(40, "euclidean"), features)
    assert drawn.shape == (5000,) and drawn.min() >= 0 and drawn.max() < 5000
    apart = np.linalg.norm(features.numbers - features.numbers[drawn], axis=1)
    assert apart.mean() < 0.1 < np.linalg.norm(features.numbers - features.numbers[::-1], axis=1).mean()


def test_expected_distortion_is_the_law_s_and_the_draws_(twelve: Features) -> None:
    groups = np.arange(12) // 6
    everybody = np.arange(12)
    apart = distances(twelve, everybody, everybody, "gower")
    for baseline in ALL:
        for told in ({}, {"groups": groups, "in_group": True}):
            exact = (law(baseline, twelve, **told) * apart).sum() / 12  # type: ignore[arg-type]
            assert expected_distortion(baseline, twelve, "gower", **told) == pytest.approx(exact)  # type: ignore[arg-type]
    realised = [apart[everybody, donors(ALL[0], twelve)].mean() for _ in range(400)]
    exact = expected_distortion(ALL[0], twelve, "gower")
    assert abs(np.mean(realised) - exact) < 6 * np.std(realised) / 20


def test_by_name_and_refusals(twelve: Features) -> None:
    for name, parameter in (("random", 1), ("frapp", 3), ("exponential", 2), ("similarity", 80)):
        assert name in BASELINES and donors(name, twelve, None, parameter).shape == (12,)
    assert (donors("random", twelve, parameter=0) == np.arange(12)).all()
    assert (donors("random", twelve, parameter=1) != np.arange(12)).all()
    for wrong in (
        lambda: donors("frap", twelve, None, 3),
        lambda: donors("frapp", twelve),
        lambda: donors(Frapp(2), twelve, None, 3),
        lambda: donors(Frapp(2), twelve, in_group=True),
        lambda: donors(Frapp(2), twelve, np.zeros(3, dtype=int), in_group=True),
        lambda: Frapp("0.5"),
        lambda: Random("1.1"),
        lambda: Exponential(-1),
        lambda: Exponential(1, "cosine"),
        lambda: Similarity(101),
        lambda: Similarity(50, 2),
    ):
        with pytest.raises(SpecificationError):
            wrong()
