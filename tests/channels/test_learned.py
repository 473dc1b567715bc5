"""Learned channels: their rows, their start, what they keep and tell, and what they are judged by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import tetraodon as td
from tetraodon.channels.learned import LearnedChannel
from tetraodon.channels.learning.atoms import Atoms
from tetraodon.channels.learning.bounding import bounded, nearest
from tetraodon.channels.learning.drawing import drawn
from tetraodon.channels.learning.samples import Samples, Scale, apart
from tetraodon.channels.learning.starting import start
from tetraodon.channels.lower_bound import LN2
from tetraodon.errors import DataError, Refused, SpecificationError, Unsupported

CORNERS = np.array([[0.0, 0.0], [300.0, 0.0], [0.0, 300.0], [300.0, 300.0]])


def discs(rows: int, seed: int, users: int = 4) -> tuple[Any, Any]:
    """Users at the corners of a square, each within a disc of 45 m."""
    rng = np.random.default_rng(seed)
    radius, turn = 45 * np.sqrt(rng.uniform(size=(users, rows))), rng.uniform(0, 2 * np.pi, (users, rows))
    at = CORNERS[:users, None] + np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=-1)
    return np.repeat(np.arange(users), rows), at.reshape(-1, 2)


# ---------- rows ----------


def test_priors_weigh_secrets() -> None:
    secrets, values = ["a", "a", "a", "b"], [1.0, 2.0, 3.0, 9.0]
    assert Samples.of(secrets, values).prior.tolist() == pytest.approx([0.5, 0.5])
    assert Samples.of(secrets, values, prior="rows").prior.tolist() == pytest.approx([0.75, 0.25])
    stated = Samples.of(secrets, values, prior={"a": 0.2, "b": 0.8})
    assert stated.prior.tolist() == pytest.approx([0.2, 0.8])
    weighed = Samples.of(secrets, values, weights=[2, 1, 1, 4], prior="rows")
    assert weighed.weights.tolist() == pytest.approx([0.25, 0.125, 0.125, 0.5])


def test_equal_values_are_one_row_of_the_joint_law() -> None:
    values, joint = Samples.of(["a", "b", "b", "b"], [1.0, 1.0, 2.0, 2.0], prior="rows").distinct
    assert values.ravel().tolist() == [1.0, 2.0]
    assert joint.tolist() == [[0.25, 0.0], [0.25, 0.5]]


def test_a_split_keeps_secrets_shares_and_equal_values_together() -> None:
    rng = np.random.default_rng(0)
    secrets = np.repeat([0, 1, 2], [500, 300, 1])
    values = rng.integers(0, 400, size=(801, 1)).astype(float)
    whole = Samples.of(secrets, values)
    train, out = whole.split(0.3, rng)
    assert 0.2 < out.rows / 801 < 0.4 and train.rows + out.rows == 801
    assert not set(train.values.ravel()) & set(out.values.ravel())
    assert set(train.secrets) == {0, 1, 2}  # the one row of the last secret stays to learn from
    assert train.prior == pytest.approx(whole.prior)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"values": [[np.nan, 0.0], [1, 1]]}, DataError, "finite"),
        ({"values": [[1e200, 0.0], [1, 1]]}, DataError, "larger unit"),
        ({"values": "here"}, SpecificationError, "numbers"),
        ({"values": [["x", "y"], ["a", "b"]]}, SpecificationError, "numbers"),
        ({"values": np.zeros((0, 2))}, SpecificationError, "at least one row"),
        ({"secrets": ["a", "a"]}, SpecificationError, "one secret only"),
        ({"secrets": ["a"]}, SpecificationError, "one for each row"),
        ({"secrets": ["a", None]}, DataError, "missing"),
        ({"secrets": [1.0, np.nan]}, DataError, "missing"),
        ({"secrets": np.array(["a", 1], dtype=object)}, SpecificationError, "all numbers, or all texts"),
        ({"weights": [1, -1]}, SpecificationError, "weights"),
        ({"weights": [0, 0]}, SpecificationError, "weights"),
        ({"weights": "ab"}, SpecificationError, "weights"),
        ({"weights": [1e308, 1e308], "secrets": ["a", "a"]}, SpecificationError, "one secret only"),
        ({"secrets": ["a", float("nan")]}, DataError, "missing"),
        ({"secrets": ["a", 1]}, SpecificationError, "all numbers, or all texts"),
        ({"secrets": {"a": 1, "b": 2}}, SpecificationError, "secrets"),
        ({"prior": {"a": "x", "b": 1.0}}, SpecificationError, "prior"),
        ({"prior": np.ones(2)}, SpecificationError, "prior"),
        ({"held_out": "half"}, SpecificationError, "held_out"),
        ({"max_seconds": "long"}, SpecificationError, "max_seconds"),
        ({"rng": 5}, SpecificationError, "rng"),
        ({"prior": "even"}, SpecificationError, "prior"),
        ({"prior": {"a": 1.0}}, SpecificationError, "each secret"),
        ({"distortion": 0}, SpecificationError, "above 0"),
        ({"distortion": "far"}, SpecificationError, "above 0"),
        ({"metric": "hops"}, SpecificationError, "euclidean"),
        ({"outputs": 0}, SpecificationError, "outputs"),
        ({"outputs": 10_000}, SpecificationError, "at most"),
        ({"steps": 1.5}, SpecificationError, "steps"),
        ({"held_out": 1}, SpecificationError, "held_out"),
        ({"confidence": 1}, SpecificationError, "confidence"),
        ({"source": "rumour"}, SpecificationError, "source"),
    ],
)
def test_what_is_asked_is_checked_before_anything_is_learned(
    change: dict[str, Any], error: type[Exception], match: str
) -> None:
    told: dict[str, Any] = {"secrets": ["a", "b"], "values": [[0.0, 0.0], [1.0, 1.0]], "distortion": 1.0}
    with pytest.raises(error, match=match) as found:
        td.channels.learn(**(told | change))
    assert "1e+200" not in str(found.value)


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(Unsupported, match=r"tetraodon\[learn\]"):
        td.channels.learn([0, 1], [[0.0], [1.0]], distortion=1.0)


# ---------- where learning starts ----------


def test_the_start_is_near_the_certified_optimum_of_a_line() -> None:
    """Two secrets on a line of nine places; places between them may be used too, so that it can only be better."""
    places = np.arange(9.0)
    law = np.array([[4, 3, 2, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 2, 3, 4]]) / 20
    secrets, values = np.repeat([0, 1], 9), np.tile(places, 2)
    samples = Samples.of(secrets, values, weights=law.ravel(), prior="rows")
    begun = start(samples, 1.5, "euclidean", 24, np.random.default_rng(0))
    domain = td.Domain(x=td.Integer(0, 8))
    best = td.channels.least_leaking(law, distortion=1.5, domain=domain, tolerance=1e-6)
    assert begun.leak <= best.leakage(law) + 2e-3
    assert begun.leak == pytest.approx(best.leakage(law), abs=0.02)
    assert begun.masses.sum(axis=1) == pytest.approx([1, 1])


def test_so_few_points_that_the_budget_cannot_be_kept_are_refused_without_a_figure() -> None:
    secrets, values = discs(40, 0)
    with pytest.raises(Refused, match="more outputs") as found:
        start(Samples.of(secrets, values), 5.0, "euclidean", 4, np.random.default_rng(0))
    assert not any(c.isdigit() for c in str(found.value))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "squared"])
def test_distances(metric: str) -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    gap = one[:, None] - other[None]
    expected = {
        "euclidean": np.sqrt((gap**2).sum(-1)),
        "manhattan": np.abs(gap).sum(-1),
        "squared": (gap**2).sum(-1),
    }[metric]
    assert apart(one, other, metric) == pytest.approx(expected)
    assert nearest(one, other, other, metric) == pytest.approx(expected)
    assert (nearest(one, other - 0.3, other + 0.3, metric) <= expected + 1e-12).all()


# ---------- the generator ----------


def handmade(points: Any, offsets: Any, sharpness: float = 4.0) -> Atoms:
    """A generator over one dimension whose classifier says secret 1 from 0 upward."""
    inputs = np.zeros(1), np.eye(1)
    layers = ((np.array([[-200.0, 200.0]]), np.zeros(2)),)
    return Atoms(
        np.array(points, float)[:, None], np.array(offsets, float), sharpness, inputs, layers, "euclidean"
    )


def learned_by_hand() -> LearnedChannel:
    atoms = handmade([-1.0, 0.0, 1.0], [[0.0, 0.5, 0.0], [0.0, 0.0, 0.2]])
    return LearnedChannel(atoms, Scale(np.array([10.0]), 2.0), ("a", "b"), 2.0, "public")


def test_a_law_is_the_softmax_of_gain_less_distance() -> None:
    told = learned_by_hand()
    law = told.law([11.0])[0]  # 0.5 scaled: secret b
    logits = 4.0 * (np.array([0.0, 0.0, 0.2]) - np.array([1.5, 0.5, 0.5]))
    assert law == pytest.approx(np.exp(logits) / np.exp(logits).sum())
    assert told.points.ravel().tolist() == [8.0, 10.0, 12.0]


def test_what_is_drawn_has_the_law_and_what_is_told_is_of_it() -> None:
    told = learned_by_hand()
    values = np.repeat([[9.0], [12.5]], 100_000, axis=0)
    found = told.sample(values)
    for part, value in ((found[:100_000], 9.0), (found[100_000:], 12.5)):
        count = [int((part == p).sum()) for p in told.points.ravel()]
        assert sum(count) == 100_000
        assert chisquare(count, 100_000 * told.law([value])[0]).pvalue > 1e-6
    secrets = np.repeat(["a", "b"], 100_000)
    law = told.law([[9.0], [12.5]])
    p = law.mean(axis=0)
    exact = (law / 2 * np.log2(law / p)).sum()
    assert told.leakage_of(secrets, values) == pytest.approx(exact, abs=1e-9)
    assert told.bayes_error_of(secrets, values) == pytest.approx(1 - (law / 2).max(axis=0).sum())
    away = np.abs(np.array([[9.0], [12.5]]) - told.points.ravel())
    assert told.distortion_of(secrets, values) == pytest.approx((law * away).sum() / 2)
    assert np.abs(found - values).mean() == pytest.approx(told.distortion_of(secrets, values), rel=0.01)


def test_outcomes_of_no_probability_never_come() -> None:
    assert set(drawn(np.tile([0.0, 1.0, 0.0], (500, 1))).tolist()) == {1}


def test_a_file_holds_the_channel_and_nothing_that_runs(tmp_path: Path) -> None:
    told = learned_by_hand()
    told.save(tmp_path / "c.npz")
    told.save(tmp_path / "again.npz")
    assert (tmp_path / "c.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    back = LearnedChannel.load(tmp_path / "c.npz")
    values = np.linspace(5, 15, 7)
    assert np.array_equal(back.law(values), told.law(values))
    assert (back.secrets, back.asked, back.source) == (told.secrets, told.asked, told.source)
    for content in (b"", b"PK", (tmp_path / "c.npz").read_bytes()[:-40]):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.npz"):
            LearnedChannel.load(tmp_path / "bad.npz")
    with pytest.raises(DataError, match=r"absent\.npz: cannot be read"):
        LearnedChannel.load(tmp_path / "absent.npz")


def test_values_of_other_dimensions_are_refused() -> None:
    told = learned_by_hand()
    with pytest.raises(SpecificationError, match="1 dimensions"):
        told.law([[1.0, 2.0]])
    with pytest.raises(DataError, match="finite"):
        told.sample([np.nan])


def test_on_declared_cells_it_is_a_channel_like_others() -> None:
    told = learned_by_hand()
    domain = td.Domain(x=td.Integer(5, 15))
    made = told.channel(domain)
    law = told.law(np.arange(5.0, 16.0))
    assert made.matrix[:, [3, 5, 7]] == pytest.approx(law)
    assert made.guarantee == "proved" and made.name == "learned"
    joint = np.zeros((2, 11))
    joint[0, 4], joint[1, 7] = 0.5, 0.5
    assert made.leakage(joint) == pytest.approx(told.leakage_of(["a", "b"], [9.0, 12.0]))
    with pytest.raises(SpecificationError, match="1 dimensions"):
        told.channel(td.Domain(x=td.Integer(0, 1), y=td.Integer(0, 1)))


# ---------- the bound ----------


def test_no_channel_beats_the_bound() -> None:
    """The optimum for outputs anywhere is at most that on a fine grid, and the bound is at most the optimum."""
    rng = np.random.default_rng(2)
    secrets, values = discs(60, 3)
    samples = Samples.of(secrets, values / 90)
    grid = np.stack(np.meshgrid(np.linspace(-0.5, 3.8, 26), np.linspace(-0.5, 3.8, 26)), -1).reshape(-1, 2)
    from tetraodon.channels import leaking_search
    from tetraodon.channels.lower_bound import Problem

    rows, joint = samples.distinct
    best = leaking_search.search(
        Problem.of(joint, apart(rows, grid, "euclidean"), 1.0), None, np.arange(len(rows)), 1e-3, 60.0
    )
    found = bounded(samples, 1.0, "euclidean", grid, rng)
    assert found.outputs == "anywhere"
    assert best.value - 0.08 < found.bits <= best.value


def test_in_many_dimensions_the_bound_is_one_for_the_channels_own_points() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(80, 5)) + np.repeat([[0.0], [2.0]], 40, axis=0)
    points = rng.normal(size=(20, 5)) + 1
    found = bounded(Samples.of(np.repeat([0, 1], 40), values), 2.6, "euclidean", points, rng)
    assert found.outputs == "points" and found.boxes == 20 and 0 <= found.bits < 1


def test_interval_ends_hold_the_truth_of_a_channel_that_tells_nothing() -> None:
    from tetraodon.channels.learning.intervals import leakage_interval

    atoms = handmade([-1.0, 1.0], np.zeros((2, 2)), sharpness=1e-9)
    rng = np.random.default_rng(0)
    rows = Samples.of(rng.integers(0, 2, 400), rng.normal(size=(400, 1)))
    found = leakage_interval(atoms, rows, rows)
    assert found.lower == 0 and found.upper == pytest.approx(0, abs=1e-9)
    assert found.estimate / LN2 == pytest.approx(0, abs=1e-9)


# ---------- what a review found ----------


def test_a_value_that_goes_back_to_learning_goes_with_all_of_its_rows() -> None:
    for seed in range(60):
        secrets = np.repeat([0, 1], [10, 200])
        values = np.concatenate([np.full(10, 7.0), np.arange(200.0) + 100])[:, None]
        train, out = Samples.of(secrets, values).split(0.6, np.random.default_rng(seed))
        assert not set(train.values.ravel()) & set(out.values.ravel())


def test_secrets_with_few_values_held_out_are_judged_by_all_their_rows() -> None:
    rng = np.random.default_rng(0)
    secrets = np.repeat([0, 1, 2], [400, 20, 1])
    whole = Samples.of(secrets, rng.normal(size=(421, 1)))
    train, out = whole.split(0.5, rng)
    judges = whole.told_enough(train, out)
    count = np.bincount(judges.secrets)
    assert count[0] == np.bincount(out.secrets)[0] and count[1] == 20 and count[2] == 1
    assert judges.prior == pytest.approx(whole.prior)


def test_standard_errors_are_those_of_a_sample() -> None:
    """Of two rows the variance is their squared difference over 2, not over 4."""
    from tetraodon.channels.learning.atoms import told

    atoms = handmade([0.0], np.zeros((2, 1)))
    rows = Samples.of([0, 0, 1, 1], [1.0, 3.0, 2.0, 2.0])
    assert told(atoms, rows).error == pytest.approx(0.5 * np.sqrt(2.0 / 2))


def test_outputs_are_multiples_of_a_public_length() -> None:
    scale = Scale(np.array([1 / 3]), 90.0)
    step = 2.0 ** np.floor(np.log2(90.0 * 2.0**-20))
    found = scale.back(np.random.default_rng(0).normal(size=(50, 1)))
    assert np.array_equal(found / step, np.round(found / step))


def test_values_too_far_away_are_refused_wherever_they_come() -> None:
    with pytest.raises(DataError, match="10\\^100"):
        learned_by_hand().sample([1e200])
    with pytest.raises(DataError, match="so far away"):
        drawn(np.full((2, 3), np.nan))


def test_a_private_channels_file_is_the_owners_alone(tmp_path: Path) -> None:
    import os
    import stat
    from dataclasses import replace

    def mode(path: Path) -> int:
        return stat.S_IMODE(os.stat(path).st_mode)

    private = replace(learned_by_hand(), source="private")
    (tmp_path / "victim").write_text("theirs")
    (tmp_path / "c.npz.part").symlink_to(tmp_path / "victim")
    (tmp_path / "c.npz").write_text("old")
    (tmp_path / "c.npz").chmod(0o666)
    private.save(tmp_path / "c.npz")
    assert mode(tmp_path / "c.npz") == 0o600 and (tmp_path / "victim").read_text() == "theirs"
    learned_by_hand().save(tmp_path / "public.npz")
    assert mode(tmp_path / "public.npz") & 0o600 == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    assert "1." not in repr(private.atoms) and "10." not in repr(private.scale)


@pytest.mark.parametrize(
    ("key", "value"),
    [("unit", -1.0), ("unit", "inf"), ("sharpness", -1.0), ("leakage", "nan"), ("settings", []), ("secrets", ["a"]), ("metric", "hops")],
)  # fmt: skip
def test_files_whose_parts_do_not_fit_are_refused(key: str, value: Any, tmp_path: Path) -> None:
    from tetraodon.channels.archives import read, write

    learned_by_hand().save(tmp_path / "c.npz")
    spec, arrays = read(tmp_path / "c.npz", "learned channel")
    write(tmp_path / "c.npz", {**spec, key: value}, arrays)
    with pytest.raises(DataError, match="no learned channel"):
        LearnedChannel.load(tmp_path / "c.npz")


def test_checkpoints_of_another_make_are_refused(tmp_path: Path) -> None:
    from tetraodon.channels.archives import write
    from tetraodon.channels.learning.watching import Checkpoint

    rows = Samples.of([0, 1], [0.0, 1.0])
    held = Checkpoint.of(tmp_path / "state", rows, {})
    for spec in ({"key": held.key}, {"key": held.key, "step": 1, "looks": [3]}):
        write(tmp_path / "state", spec, {})
        with pytest.raises(DataError, match="no checkpoint"):
            held.load()
