"""What a release tells in bits: corrected for the size of the sample, with an interval that covers, and Fano's bound."""

from __future__ import annotations

import numpy as np
import pytest

from tetraodon import leakage
from tetraodon.errors import SpecificationError


def test_information_of_a_known_law() -> None:
    """Secret uniform on 8, group its half (1 bit), cluster right about the lowest bit with probability 3/4."""
    rng = np.random.default_rng(5)
    truth = 1 + (1 - (-0.75 * np.log2(0.75) - 0.25 * np.log2(0.25)))
    raw, corrected, covered = [], [], 0
    for _ in range(20):
        x = rng.integers(0, 8, 300)
        c = 4 * rng.integers(0, 3, 300) + np.where(rng.random(300) < 0.75, x % 2, 1 - x % 2)
        told = leakage.released_information(x, x // 4, c, rng=rng, resamples=100)
        raw.append(told.plug_in)
        corrected.append(told.corrected)
        covered += told.interval[0] <= truth <= told.interval[1]
        assert told.groups <= told.plug_in and told.held_out < told.plug_in
        assert told.error <= 1 - 0.25  # Fano holds for the best attacker of one value in four
    assert np.mean(raw) > truth + 0.03 and abs(np.mean(corrected) - truth) < 0.02 and covered >= 19


def test_many_values_and_few_people() -> None:
    """Clusters tell nothing here; their information is all bias, most of which the correction takes away."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 64, 700)
    told = leakage.released_information(x, x // 16, rng.integers(0, 7, 700), rng=rng, resamples=200)
    assert told.plug_in > told.groups + 0.3 and told.corrected < told.groups + 0.1
    assert told.interval[0] < told.groups < told.interval[1] and told.held_out < told.groups


def test_the_correction_is_miller_and_madows() -> None:
    x = np.array([0, 0, 1, 1, 2, 3, 2, 3])
    told = leakage.released_information(
        x, x // 2, [0, 1, 1, 0, 5, 5, 5, 5], rng=np.random.default_rng(1), resamples=20
    )
    # First group: two values, two clusters; second: one cluster. The part within the groups is 0 here and stays 0.
    assert told.clusters < 1e-9 and told.correction == pytest.approx(-1 / (16 * np.log(2)))
    told = leakage.released_information(
        x, x // 2, [0, 0, 1, 1, 5, 5, 5, 5], rng=np.random.default_rng(1), resamples=20
    )
    assert told.clusters == pytest.approx(0.5) and told.correction == pytest.approx(0, abs=1e-15)
    assert told.plug_in == pytest.approx(1.5) == told.corrected and told.prior == 2
    assert told.to_spec()["people"] == 8 and "bits" in told.words()


def test_fanos_bound_is_of_bits_and_of_what_is_estimated_to_remain() -> None:
    """64 equally likely values in 4 groups: 4 bits remain, and whoever guesses is wrong for 15 in 16."""
    x = np.arange(6400) % 64
    told = leakage.released_information(x, x // 16, rng=np.random.default_rng(1), resamples=20)
    assert (told.prior, told.unknown) == (pytest.approx(6), pytest.approx(4, abs=0.01))
    assert told.error == leakage.fano_bound(told.unknown, 64)
    assert 0.5 < told.error <= 15 / 16  # of nats it would be
    assert leakage.fano_bound(told.unknown * np.log(2), 64) < 0.5


def test_labels_of_any_kind_and_bad_ones() -> None:
    told = leakage.released_information(
        ["a", "b"] * 30, [True, False] * 30, rng=np.random.default_rng(1), resamples=20
    )
    assert told.plug_in == pytest.approx(1) and told.clusters == 0
    for option in ({"resamples": 5}, {"level": 1}, {"folds": 1}):
        with pytest.raises(SpecificationError):
            leakage.released_information([0, 1] * 9, [0, 1] * 9, **option)
    for bad in (([1, 2], [1]), ([1.0, float("nan")], [1, 2]), ([None, "a"], [1, 2]), ([], []), ([[1]], [1])):
        with pytest.raises(SpecificationError):
            leakage.released_information(*bad)
