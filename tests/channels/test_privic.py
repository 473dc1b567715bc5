"""Rounds of collecting, estimating and optimising again: what they find, what they cost, and what they may claim."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import paris, plane
from numpy.typing import NDArray

import tetraodon as td
from tetraodon.channels.channel import Channel
from tetraodon.channels.rounds import Learnt, earth_mover, estimated, privic
from tetraodon.errors import SpecificationError, Unsupported

Floats = NDArray[np.float64]

LINE = td.Domain(x=td.Integer(0, 7))
TRUTH = np.array([30.0, 2, 2, 10, 1, 1, 4, 50]) / 100


def expected(truth: Floats, rows: float = 1e5) -> object:
    """Collects the counts that are expected, so that what is estimated has no noise."""
    return lambda channel: rows * truth @ channel.matrix


def run(**changed: object) -> Learnt:
    told: dict[str, object] = {
        "domain": LINE,
        "epsilon": "3/2",
        "epsilon_per": 1,
        "rounds": 3,
        "truth": TRUTH,
    }
    return privic(**{"collect": expected(TRUTH), **told, **changed})  # type: ignore[arg-type]


def test_the_rounds_find_the_law() -> None:
    found = run(rounds=4)
    apart = [one.distance for one in found.rounds]
    assert all(d is not None for d in apart)
    assert max(apart) < 0.02
    uniform = earth_mover(np.full(8, 1 / 8), TRUTH, abs(np.subtract.outer(np.arange(8.0), np.arange(8.0))))
    assert apart[0] < 0.2 * uniform
    assert abs(found.law - TRUTH).max() < 0.01


def test_every_round_is_paid_for_and_all_of_them_add_up() -> None:
    found = run()
    assert [one.spent.epsilon for one in found.rounds] == [Fraction(3, 2), Fraction(3), Fraction(9, 2)]
    assert all(one.channel.epsilon_per(1) <= Fraction(3, 2) for one in found.rounds)
    assert found.channel.epsilon_per(1) <= Fraction(3, 2)
    assert str(found) == "3 rounds, epsilon 4.5 per 1 for a person in all of them, law released"


def test_laws_come_from_charged_outputs() -> None:
    found = run()
    assert [one.channel.source for one in found.rounds] == ["public", "released", "released"]
    assert found.source == "released" and not found.channel.is_private
    fitted = run(prior=TRUTH, source="private")
    assert fitted.channel.is_private and all(one.channel.is_private for one in fitted.rounds)


def test_the_truth_does_not_steer_the_rounds() -> None:
    """What is compared with changes no channel."""
    with_truth, without = run(), run(truth=None)
    assert all(one.distance is None for one in without.rounds)
    for a, b in zip(with_truth.rounds, without.rounds, strict=True):
        assert a.channel.digest == b.channel.digest and (a.law == b.law).all()


def test_channels_follow_what_was_learnt() -> None:
    """A crowd at one end: from the second round on, its output stays nearer than a lonely value's."""
    truth = np.array([0.24, 0.24, 0.24, 0.24, 0, 0, 0, 0.04])
    found = run(collect=expected(truth), truth=truth)
    moved = [
        (one.channel.matrix * abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))).sum(1)
        for one in found.rounds
    ]
    assert moved[0][7] == pytest.approx(moved[0][0], rel=1e-6)
    assert moved[-1][7] > 1.3 * moved[-1][1]
    assert found.channel.distortion(truth) < found.rounds[0].channel.distortion(truth)


def test_all_batches_count() -> None:
    """The estimate after two rounds is the likeliest law of both batches together, not of the last alone."""
    batches = iter([TRUTH * 1e6, TRUTH * 1.0])
    found = run(collect=lambda channel: next(batches) @ channel.matrix, rounds=2)
    alone = iter([TRUTH * 1.0])
    last = run(collect=lambda channel: next(alone) @ channel.matrix, rounds=1)
    assert abs(found.law - TRUTH).max() < 0.01
    assert abs(last.law - TRUTH).max() > abs(found.law - TRUTH).max()


def test_sampled_batches() -> None:
    people = np.repeat(np.arange(8), (TRUTH * 2000).astype(int))

    def collect(channel: Channel) -> Floats:
        return np.bincount(channel.sample(people), minlength=8)

    found = run(collect=collect, epsilon=3)
    assert found.rounds[0].counts.sum() == len(people)
    assert found.rounds[-1].distance is not None and found.rounds[-1].distance < 0.6


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ([1.0] * 7, "8 counts"),
        ([0.0] * 8, "8 counts"),
        ([-1.0] + [1.0] * 7, "8 counts"),
        (["many"] * 8, "in cell order"),
    ],
)
def test_counts_of_another_kind_are_refused(told: list[object], word: str) -> None:
    with pytest.raises(SpecificationError, match=word):
        run(collect=lambda channel: told)


def test_an_output_that_is_never_given_is_refused() -> None:
    channel = Channel.of_matrix([[1, 0], [1, 0]], td.Domain(x=td.Integer(0, 1)))
    with pytest.raises(SpecificationError, match="never gives"):
        estimated([(channel, np.array([2.0, 1.0]))], np.array([0.5, 0.5]))


@pytest.mark.parametrize("rounds", [0, 1.5, True])
def test_rounds_are_whole(rounds: object) -> None:
    with pytest.raises(SpecificationError, match="rounds"):
        run(rounds=rounds)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_earth_movers_on_a_line_are_the_area_between_distributions(seed: int, n: int) -> None:
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(seed)
    places, a, b = np.sort(rng.random(n)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
    cost = abs(np.subtract.outer(places, places))
    assert earth_mover(a, b, cost) == pytest.approx(wasserstein_distance(places, places, a, b), abs=1e-9)


def test_earth_movers_in_the_plane() -> None:
    corners = np.array([[0.0, 0], [0, 3], [4, 0], [4, 3]])
    cost = np.hypot(*(corners[:, None] - corners[None]).transpose(2, 0, 1))
    a, b = np.array([1.0, 0, 0, 0]), np.array([0, 0.5, 0, 0.5])
    assert earth_mover(a, b, cost) == pytest.approx(0.5 * 3 + 0.5 * 5)
    assert earth_mover(a, a, cost) == 0


def test_earth_movers_of_too_many_cells_are_refused() -> None:
    law = np.zeros(1200)
    law[:600] = 1 / 600
    with pytest.raises(Unsupported, match="1,000 cells"):
        earth_mover(law, law[::-1], np.zeros((1200, 1200)))


@pytest.mark.data
@pytest.mark.slow
def test_paris_is_learnt_from_protected_places(real_data: Path) -> None:
    """All users of the box on 16 × 12 cells, ε 1.4 per 500 m a round: the estimate comes within a cell of the truth."""
    joint, _ = paris(real_data, 16, 12, users=1026)
    counts = np.round(joint.sum(0) * 11190)
    people = np.repeat(np.arange(192), counts.astype(int))
    domain = plane(12, 16, (0, 5694), (0, 7717))

    def collect(channel: Channel) -> Floats:
        return np.bincount(channel.sample(people), minlength=192)

    found = privic(
        collect, domain=domain, epsilon="1.4", epsilon_per="500 m", rounds=3, truth=counts / counts.sum()
    )
    apart = [one.distance for one in found.rounds]
    assert apart[-1] is not None and apart[0] is not None
    assert apart[-1] < 310 and apart[0] < 330  # the uniform law: 1,033 m
