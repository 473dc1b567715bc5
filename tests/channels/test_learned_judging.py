"""Judging learned channels: bounds hold as often as they say, attackers show no more than there is and little less, words."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from instances import square
from scipy.stats import binom

from tetraodon.channels.geometry import Geometry
from tetraodon.channels.learned import LearnedChannel
from tetraodon.channels.learning import attackers, intervals, judging, mine, rivals
from tetraodon.channels.learning.atoms import Atoms
from tetraodon.channels.learning.intervals import leakage_interval, least_law, mean_ends
from tetraodon.channels.learning.judging import judge
from tetraodon.channels.learning.samples import Samples, Scale
from tetraodon.errors import DataError, SpecificationError

SEEDS = 200
Law = list[tuple[float, float, float]]  # shares of segments of a line, uniform on each


def handmade(points: Any, secrets: int, sharpness: float, offsets: Any = None) -> Atoms:
    """A generator whose classifier knows nothing."""
    places = np.asarray(points, dtype=float).reshape(len(points), -1)
    axes = places.shape[1]
    told = np.zeros((secrets, len(places))) if offsets is None else np.asarray(offsets, dtype=float)
    blind = ((np.zeros((axes, secrets)), np.zeros(secrets)),)
    return Atoms(places, told, sharpness, (np.zeros(axes), np.eye(axes)), blind, "euclidean")


LINE = np.linspace(-2, 6, 17)
CHANNELS: dict[str, tuple[Atoms, list[Law]]] = {
    "next to nothing": (handmade(LINE, 2, 0.35), [[(1, 0, 1)], [(1, 0.5, 1.5)]]),
    "little": (handmade(LINE, 4, 0.8), [[(1, x, x + 1)] for x in range(4)]),
    "middling": (handmade(LINE, 4, 3.0), [[(1, x, x + 1.2)] for x in range(4)]),
    "nearly all": (
        handmade([0.5, 1.5, 2.5, 3.5], 4, 25.0),
        [[(1, x + 0.02, x + 0.98)] for x in range(4)],
    ),
    "rare rows tell all": (
        handmade([0, 10, 20, 30, 40], 4, 3.0),
        [[(0.993, -1, 1), (0.007, 10 * x + 9, 10 * x + 11)] for x in range(4)],
    ),
    "rare rows blur": (
        handmade([0, 10, 20, 30, 40], 4, 3.0),
        [[(0.007, -1, 1), (0.993, 10 * x + 9, 10 * x + 11)] for x in range(4)],
    ),
}


def true_joint(atoms: Atoms, laws: list[Law], nodes: int = 2000) -> np.ndarray:
    """P(secret, point) of equally likely secrets, by midpoints."""
    middle = (np.arange(nodes) + 0.5) / nodes
    found = []
    for law in laws:
        found.append(
            sum(share * atoms.law((low + (high - low) * middle)[:, None]).mean(0) for share, low, high in law)
        )
    return np.array(found) / len(laws)


def bits(joint: np.ndarray) -> float:
    """I of a joint law, written out."""
    product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    kept = joint > 0
    return float((joint[kept] * np.log2(joint[kept] / product[kept])).sum())


def rows(laws: list[Law], each: list[int], rng: np.random.Generator) -> tuple[Any, Any]:
    secrets = np.repeat(np.arange(len(laws)), each)
    values = []
    for law, count in zip(laws, each, strict=True):
        share, low, high = np.array(law).T
        part = rng.choice(len(law), count, p=share)
        values.append(low[part] + (high - low)[part] * rng.random(count))
    return secrets, np.concatenate(values)


def covered(name: str, each: list[int], seeds: int = SEEDS) -> tuple[float, float]:
    """How often the lower and the upper end hold."""
    atoms, laws = CHANNELS[name]
    truth = bits(true_joint(atoms, laws))
    held = np.zeros(2)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        known, fresh = (Samples.of(*rows(laws, each, rng)) for _ in range(2))
        found = leakage_interval(atoms, known, fresh)
        assert found.lower <= found.estimate + 1e-12 and found.estimate <= found.upper + 1e-12
        assert found.lower >= 0 and found.upper <= np.log2(len(laws)) + 1e-12
        held += found.lower <= truth, found.upper >= truth
    return tuple((held / seeds).tolist())  # type: ignore[return-value]


# ---------- one-sided bounds on leakage ----------


def test_the_channels_leak_from_next_to_nothing_to_nearly_all() -> None:
    truth = {name: bits(true_joint(*told)) for name, told in CHANNELS.items()}
    finer = {name: bits(true_joint(*told, nodes=4001)) for name, told in CHANNELS.items()}
    assert truth == pytest.approx(finer, abs=2e-4)
    assert [round(truth[name], 2) for name in CHANNELS] == [0.0, 0.3, 1.07, 1.91, 0.01, 1.99]


@pytest.mark.parametrize("each", [12, 60], ids=["few rows", "more rows"])
@pytest.mark.parametrize("name", CHANNELS)
def test_both_ends_hold_in_97_of_100_samples(name: str, each: int) -> None:
    secrets = len(CHANNELS[name][1])
    lower, upper = covered(name, [each] * secrets)
    assert lower >= 0.97 and upper >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANNELS)
def test_both_ends_hold_for_many_rows_and_for_uneven_ones(name: str) -> None:
    secrets = len(CHANNELS[name][1])
    for each in ([400] * secrets, [1500] * secrets, [400, 20, 90, 5][:secrets]):
        lower, upper = covered(name, each)
        assert lower >= 0.97 and upper >= 0.97


def test_without_allowance_for_rows_that_did_not_come_the_ends_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: by standard errors alone, rare rows are missed."""
    monkeypatch.setattr(intervals, "unseen", lambda count, level: np.zeros_like(count))
    assert covered("rare rows tell all", [30] * 4, 100)[1] < 0.9
    assert covered("rare rows blur", [30] * 4, 100)[0] < 0.9


def test_the_interval_narrows_to_the_truth() -> None:
    atoms, laws = CHANNELS["middling"]
    rng = np.random.default_rng(1)
    known, fresh = (Samples.of(*rows(laws, [20_000] * 4, rng)) for _ in range(2))
    found = leakage_interval(atoms, known, fresh)
    truth = bits(true_joint(atoms, laws))
    assert found.lower <= truth <= found.upper and found.upper - found.lower < 0.015


def test_no_value_goes_to_a_point_less_often_than_the_least_law() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        secrets, points = rng.integers(2, 5), rng.normal(size=(rng.integers(1, 8), 2))
        offsets = rng.normal(size=(secrets, len(points)))
        atoms = handmade(points, int(secrets), float(rng.uniform(0.1, 3)), offsets)
        atoms = dataclasses.replace(
            atoms, posterior=((rng.normal(size=(2, secrets)), rng.normal(size=secrets)),)
        )
        least = least_law(atoms)
        told = atoms.law(rng.normal(scale=rng.choice([0.5, 3, 100]), size=(400, 2)))
        assert (told >= least - 1e-12).all() and least.sum() <= 1 + 1e-12
    two = least_law(handmade([0.0, 1.0], 2, 2.0))  # reached on either side of both points
    assert two == pytest.approx([1 / (1 + np.exp(2.0))] * 2)
    assert handmade([0.0, 1.0], 2, 2.0).law(np.array([[5.0]]))[0, 0] == pytest.approx(two[0])


def test_secrets_without_fresh_rows_may_tell_all_or_nothing() -> None:
    atoms, laws = CHANNELS["little"]
    rng = np.random.default_rng(0)
    known = Samples.of(*rows(laws, [200] * 4, rng))
    fresh = Samples.of(*rows(laws, [200] * 4, rng))
    three = fresh.only(np.flatnonzero(fresh.secrets < 3))
    found = leakage_interval(atoms, known, three)
    truth = bits(true_joint(atoms, laws))
    assert found.lower <= truth <= found.upper and found.lower <= found.estimate <= found.upper
    assert found.upper > leakage_interval(atoms, known, fresh).upper + 0.2
    sharp = handmade([0, 1, 2, 3], 4, 40.0)
    own = Samples.of(np.arange(4).repeat(50), np.arange(4).repeat(50) + rng.normal(0, 1e-3, 200))
    told = leakage_interval(sharp, own, own.only(np.arange(100)))  # two of four secrets, which tell all
    assert told.upper == pytest.approx(2.0) and told.lower <= 1.0


def test_rows_of_equal_values_count_once() -> None:
    atoms, laws = CHANNELS["little"]
    secrets, values = rows(laws, [50] * 4, np.random.default_rng(3))
    one = leakage_interval(atoms, Samples.of(secrets, values), Samples.of(secrets, values))
    ten = leakage_interval(
        atoms, Samples.of(secrets, values), Samples.of(np.tile(secrets, 10), np.tile(values, 10))
    )
    assert dataclasses.astuple(ten) == pytest.approx(dataclasses.astuple(one))


@pytest.mark.parametrize("count", [3, 20, 150])
def test_ends_of_a_share_hold_by_the_exact_binomial_law(count: int) -> None:
    """Every count that can come, weighed by how likely it is."""
    span = np.zeros(1), np.ones(1)
    ends = []
    for hits in range(count + 1):
        told = (np.arange(count) < hits).astype(float)
        ends.append(mean_ends(told, np.full(count, 1 / count), np.zeros(count, dtype=np.int64), span, 0.99))
    means, lows, highs = np.array(ends).T
    assert means == pytest.approx(np.arange(count + 1) / count)
    for share in np.linspace(0.001, 0.999, 333):
        chance = binom.pmf(np.arange(count + 1), count, share)
        assert chance[lows > share].sum() <= 0.012 and chance[highs < share].sum() <= 0.012


# ---------- attackers ----------


class Seeded:
    """A channel with finitely many outputs, drawn from a seed so that tests repeat."""

    def __init__(self, atoms: Atoms, seed: int) -> None:
        self.atoms, self.points, self.rng = atoms, atoms.points, np.random.default_rng(seed)

    def law(self, values: Any) -> Any:
        return self.atoms.law(np.asarray(values))

    def sample(self, values: Any) -> Any:
        edges = self.law(values).cumsum(1)
        at = (self.rng.random(len(values))[:, None] >= edges / edges[:, -1:]).sum(1)
        return self.points[at]


class Only:
    """The same with ``sample`` alone."""

    def __init__(self, channel: Any) -> None:
        self.sample = channel.sample


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where JAX is not installed."""
    monkeypatch.setattr(attackers, "has_jax", lambda: False)
    monkeypatch.setattr(attackers, "TREES", 15)
    monkeypatch.setattr(judging, "RESAMPLES", 40)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["little", "nearly all"])
def test_attackers_show_no_more_than_there_is_and_little_less(name: str) -> None:
    atoms, laws = CHANNELS[name]
    joint = true_joint(atoms, laws)
    truth, least = bits(joint), 1 - joint.max(0).sum()
    secrets, values = rows(laws, [600] * 4, np.random.default_rng(5))
    found = judge(Seeded(atoms, 0), secrets, values, draws=10_000, beside=False)
    bounds = found.of(kind="bound")
    assert [row.attacker for row in bounds] == ["classifier network", "random forest", "nearest neighbours"]
    for row in bounds:
        assert row.leakage_interval is not None and row.error_interval is not None and row.error is not None
        assert row.leakage_interval[0] <= row.leakage <= row.leakage_interval[1]
        assert row.error_interval[0] <= row.error <= row.error_interval[1]
        assert row.leakage_interval[0] <= truth and row.error_interval[1] >= least
    assert found.most_shown().leakage >= truth - 0.03 and (found.strongest().error or 0) <= least + 0.03
    exact = found.of(kind="exact")[0]
    assert exact.leakage == pytest.approx(truth, abs=0.03) and exact.error == pytest.approx(least, abs=0.02)
    inside, outside = found.of(kind="in-sample"), found.of(kind="held-out")
    assert len(inside) == len(outside) == 5 and inside[-1].attacker == "histogram of output points"
    for one, other in zip(inside, outside, strict=True):
        assert one.attacker == other.attacker and one.leakage >= other.leakage
        assert one.error is not None and other.error is not None and one.error <= other.error + 1e-9
        assert other.leakage_interval is not None and other.leakage_interval[0] <= truth
        assert other.error_interval is not None and other.error_interval[1] >= least


@pytest.mark.usefixtures("plain")
def test_finite_outputs_are_computed_for_the_rows_given_with_their_weights() -> None:
    atoms = handmade([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]], 2, 1.5)
    learned = LearnedChannel(atoms, Scale(np.array([5.0, 5.0]), 2.0), ("p", "q"), 3.0)
    rng = np.random.default_rng(2)
    secrets, values = np.array(["p", "q"]).repeat(40), rng.normal(size=(80, 2)) + 6
    weights, prior = rng.uniform(0.5, 2, 80), {"p": 0.3, "q": 0.7}
    found = learned.judge(secrets, values, weights=weights, prior=prior, draws=400, grid=6)
    exact = found.of(kind="exact")[0]
    assert exact.leakage == pytest.approx(learned.leakage_of(secrets, values, weights, prior))
    assert exact.error == pytest.approx(learned.bayes_error_of(secrets, values, weights, prior))
    assert found.distortion == pytest.approx(learned.distortion_of(secrets, values, weights, prior))
    assert found.guess == pytest.approx(0.7) and found.distortion_interval is None
    assert found.channels[:2] == ("this channel", "planar Laplace noise")
    assert found.learnt + found.scored == 80
    assert any("MINE" in why for why in found.skipped)


@pytest.mark.usefixtures("plain")
def test_a_channel_with_samples_alone_is_judged_by_draws() -> None:
    noise = rivals.Laplace.of(90.0, 8, "euclidean", np.random.default_rng(0))
    rng = np.random.default_rng(1)
    secrets = np.repeat(list("abc"), 60)
    values = rng.normal(size=(180, 8)) * 5 + 40 * np.repeat(np.eye(3, 8), 60, axis=0)
    found = judge(Only(noise), secrets, values, draws=600)
    assert not found.of(kind="exact") and found.distortion_interval is not None
    assert found.distortion_interval[0] <= 90 <= found.distortion_interval[1]
    assert found.channels == ("this channel", "spherical Laplace noise")  # in eight dimensions no grid
    again = judge(
        Only(dataclasses.replace(noise, rng=np.random.default_rng(0))), secrets, values, draws=600, cells=[50]
    )
    assert {row.attacker for row in again.of(kind="held-out")} == {"histogram, cells of 50"}


@pytest.mark.usefixtures("plain")
def test_what_attackers_do_comes_from_the_generator_alone() -> None:
    atoms, laws = CHANNELS["middling"]
    told = rows(laws, [60] * 4, np.random.default_rng(5))
    one, same, other = (
        judge(Seeded(atoms, 0), *told, draws=200, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one == same and one != other


@pytest.mark.usefixtures("plain")
def test_the_identity_tells_all_and_one_output_tells_nothing() -> None:
    class Same:
        def sample(self, values: Any) -> Any:
            return values

    class One:
        def sample(self, values: Any) -> Any:
            return np.ones_like(values)

    secrets, values = rows(CHANNELS["nearly all"][1], [100] * 4, np.random.default_rng(0))
    all_ = judge(Same(), secrets, values, draws=800)
    assert all_.channels == ("this channel",)  # no noise of no distortion
    assert all_.most_shown().leakage > 1.85 and (all_.strongest().error or 0) < 0.03
    none = judge(One(), secrets, values, draws=800, beside=False)
    for row in none.rows:
        low = 0.0 if row.leakage_interval is None else row.leakage_interval[0]
        assert low <= 1e-9 and row.leakage < 0.02 and (row.error is None or row.error > 0.7)
    huge = judge(Same(), secrets, values * 1e90, draws=800, beside=False)
    assert huge.most_shown().leakage > 1.85


@pytest.mark.learn
def test_networks_and_mine_by_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    atoms, laws = CHANNELS["middling"]
    truth = bits(true_joint(atoms, laws))
    secrets, values = rows(laws, [600] * 4, np.random.default_rng(5))
    monkeypatch.setattr(attackers, "TREES", 5)
    monkeypatch.setattr(mine, "LOOKS", 6)
    monkeypatch.setattr(judging, "RESAMPLES", 40)
    found = judge(Seeded(atoms, 0), secrets, values, draws=4000, beside=False)
    assert not found.skipped
    network = next(row for row in found.rows if row.attacker == "classifier network")
    estimate = next(row for row in found.rows if row.attacker == "MINE")
    for row in (network, estimate):
        assert row.leakage_interval is not None and row.leakage_interval[0] <= truth
        assert truth - 0.1 < row.leakage < truth + 0.1
    assert estimate.kind == "estimate" and "biased upward" in estimate.note and estimate.error is None


def test_answers_are_softened_to_laws_that_exclude_nothing() -> None:
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(4))
    sure = np.eye(4)[rng.integers(0, 4, 50)]
    for belief in attackers.BELIEF:
        for doubt in attackers.DOUBT:
            told = attackers.softened(sure, prior, belief, doubt)
            assert told.sum(1) == pytest.approx(np.ones(50)) and (told >= doubt * prior - 1e-15).all()
    assert attackers.softened(sure, prior, 0.0, 0.1) == pytest.approx(np.tile(prior, (50, 1)))


# ---------- MINE ----------


def test_mine_is_exact_at_the_true_ratio_and_its_bias_is_what_is_said() -> None:
    """With the true ln p(x | z)/p(x) the second mean is 1. With another T, samples of 30 rows show the bias."""
    joint = np.array([[0.3, 0.15, 0.05], [0.05, 0.15, 0.3]])
    prior, ratio = joint.sum(1), np.log(joint / np.outer(joint.sum(1), joint.sum(0))).T
    secrets, outputs = np.divmod(np.repeat(np.arange(6), (joint * 100).round().astype(int).ravel()), 3)
    weights = np.full(100, 0.01)
    found = mine.estimated(ratio[outputs], secrets, weights, prior, np.arange(100), 0.99)
    assert found.bits == pytest.approx(bits(joint)) and found.bias == pytest.approx(0)
    assert found.interval[0] < found.bits < found.interval[1]
    crooked = ratio + np.array([[0.0], [0.8], [-0.6]])
    scale = np.exp(crooked) @ prior
    truth = float((joint * crooked.T).sum() - np.log(joint.sum(0) @ scale)) / np.log(2)
    right, rng, told = crooked.T.ravel(), np.random.default_rng(0), []
    for _ in range(2000):
        cell = rng.choice(6, 30, p=joint.ravel())
        x, z = np.divmod(cell, 3)
        made = mine.estimated(crooked[z], x, np.full(30, 1 / 30), prior, np.arange(30), 0.99)
        # Less what has mean 0 for sure, so that less chance is left.
        linear = right[cell].mean() - joint.ravel() @ right
        linear -= scale[z].mean() / (joint.sum(0) @ scale) - 1
        inside = made.interval[0] <= truth <= made.interval[1]
        told.append((made.bits - linear / np.log(2) - truth, made.bias, inside))
    mean = np.mean(told, axis=0)
    assert truth < bits(joint) and mean[0] == pytest.approx(mean[1], rel=0.1) and mean[1] > 0.005
    assert mean[2] > 0.95  # by the normal law, of 30 rows


# ---------- comparisons ----------


@pytest.mark.parametrize("axes", [1, 2, 5])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "squared"])
def test_laplace_noise_has_the_distortion_asked(metric: str, axes: int) -> None:
    gap = rivals.Laplace.of(3.0, axes, metric, np.random.default_rng(0)).sample(np.zeros((200_000, axes)))
    far = {
        "euclidean": np.linalg.norm(gap, axis=1),
        "manhattan": np.abs(gap).sum(1),
        "squared": np.square(gap).sum(1),
    }[metric]
    assert far.mean() == pytest.approx(3.0, abs=5 * far.std() / 200_000**0.5)


@pytest.mark.parametrize("far, told, error", [(90.0, 1.7088, 0.0674), (173.12, 1.0349, 0.2413)])
def test_planar_laplace_of_the_square_tells_what_quadrature_says(
    far: float, told: float, error: float
) -> None:
    rng = np.random.default_rng(4)
    radius, turn = 45 * np.sqrt(rng.random(4000)), 2 * np.pi * rng.random(4000)
    corners = np.repeat(np.array([[0, 0], [300, 0], [0, 300], [300, 300.0]]), 1000, axis=0)
    values = corners + radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    noise = rivals.Laplace.of(far, 2, "euclidean", rng)
    found = rivals.known_law(noise, Samples.of(np.arange(4).repeat(1000), values), 0.99)
    assert found.bits_interval[0] <= told <= found.bits_interval[1]
    assert found.error_interval[0] <= error <= found.error_interval[1]
    assert found.bits_interval[1] - found.bits_interval[0] < 0.1


@pytest.mark.parametrize("far, told, error", [(90, 0.6484142, 0.3076), (173, 0.1423786, 0.5654)])
def test_the_optimum_on_a_grid_is_the_known_one(far: float, told: float, error: float) -> None:
    """Cells of the square as rows; two rows of next to no weight make the box of the values that of the grid."""
    joint, domain = square(10)
    middles = Geometry(domain).points
    secrets, cells = np.nonzero(joint)
    values = np.concatenate([middles[cells], [[-45.0, -45.0], [345.0, 345.0]]])
    weights = np.concatenate([joint[secrets, cells], [1e-9, 1e-9]])
    rows_ = Samples.of(np.concatenate([secrets, [0, 3]]), values, weights)
    found = rivals.optimum(rows_, far, "euclidean", 10, np.random.default_rng(0))
    assert found is not None and found.shape == (10, 10)
    assert found.bound - 1e-5 <= told <= found.bits + 1e-5 and found.bits <= found.bound + 2e-3
    assert found.error == pytest.approx(error, abs=0.01) and found.distortion <= far * (1 + 1e-9)
    assert rivals.optimum(rows_, 0.5, "euclidean", 3, np.random.default_rng(0)) is None  # too coarse


# ---------- what is refused, and words ----------


def test_bad_requests_are_refused() -> None:
    channel = Seeded(*[CHANNELS["little"][0], 0])
    secrets, values = ["a", "a", "b", "b"], [0.1, 0.2, 1.1, 1.2]
    with pytest.raises(DataError, match="one row only"):
        judge(channel, ["a", "a", "b"], [0.1, 0.2, 1.1])
    with pytest.raises(DataError, match=r"judge\.values"):
        judge(channel, secrets, [0.1, np.nan, 1.1, 1.2])
    with pytest.raises(SpecificationError, match=r"judge\.secrets: one secret"):
        judge(channel, ["a"] * 4, values)
    with pytest.raises(SpecificationError, match=r"judge\.channel"):
        judge(object(), secrets, values)
    for wrong in ({"metric": "cosine"}, {"draws": 3}, {"level": 1.0}, {"grid": 0}, {"cells": [0.0]}):
        with pytest.raises(SpecificationError, match=f"judge\\.{next(iter(wrong))}"):
            judge(channel, secrets, values, **wrong)  # type: ignore[arg-type]

    class Wide:
        def sample(self, values: Any) -> Any:
            return np.zeros((len(values), 3))

    with pytest.raises(SpecificationError, match="same dimensions"):
        judge(Wide(), secrets, values)


@pytest.mark.usefixtures("plain")
def test_words_say_who_names_what_how_often() -> None:
    atoms = handmade([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 4, 6.0)
    rng = np.random.default_rng(0)
    secrets = np.repeat(list("abcd"), 50)
    values = rng.normal(0, 0.1, (200, 2)) + np.repeat([[0, 0], [1, 0], [0, 1], [1, 1]], 50, axis=0)
    found = judge(Seeded(atoms, 1), secrets, values, draws=400, called="users")
    told = str(found)
    best = found.strongest()
    assert best.error is not None
    assert f"names the right one of 4 users {100 * (1 - best.error):.3g} % of the time" in told
    assert (
        "guessing gives 25 %" in told and "planar Laplace noise" in told and "bound no other attacker" in told
    )
    assert "least leaking channel on a grid of" in told
    grid = next(row for row in found.rows if row.channel.startswith("least leaking"))
    itself, noise = (found.of(name)[0] for name in found.channels[:2])
    assert grid.leakage < itself.leakage < noise.leakage
    frame = found.to_frame()
    assert len(frame) == len(found.rows) and {"channel", "attacker", "kind", "leakage", "error"} <= set(frame)
    assert found.to_spec()["secrets"] == 4 and "a" not in str(found.to_spec()["called"]).split()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.secrets = 5  # type: ignore[misc]
