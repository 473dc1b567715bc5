"""Trained attackers: what they see, what they must not, baseline and ceiling, intervals, refusals."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tetraodon import leakage
from tetraodon.errors import DataError, SpecificationError, Unsupported
from tetraodon.leakage import attack_rounds
from tetraodon.leakage.attack_features import Secret, features
from tetraodon.leakage.attack_tables import Given
from tetraodon.leakage.attackers import MODELS, Attacker, by_group

needs_xgboost = pytest.mark.skipif(
    importlib.util.find_spec("xgboost") is None, reason="xgboost is not installed (extra attack)"
)
LEARNERS = ["random-forest", pytest.param("xgboost", marks=needs_xgboost), "knn", "logistic"]
SMALL: dict[str, dict[str, Any]] = {"random-forest": {"trees": 15}, "xgboost": {"trees": 8, "rate": 0.4}}


def people(n: int = 300, seed: int = 1) -> tuple[dict[str, Any], dict[str, Any], np.random.Generator]:
    """Ages with one column that follows them, one of places and one of noise; released in four groups, noise put in."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 66, n)
    near = age + rng.normal(0, 3, n)
    place = np.where(rng.random(n) < 0.8, np.where(age < 40, "city", "village"), "sea")
    original = {"age": age, "near": near, "place": place, "noise": rng.normal(size=n)}
    group = np.array(["18–29", "30–41", "42–53", "54–65"])[(age - 18) // 12]
    released = {
        **original,
        "age": group,
        "near": near + rng.normal(0, 12, n),
        "place": rng.permutation(place),
    }
    return original, released, rng


def run(original: Any, released: Any, model: str, secret: str = "age", **more: Any) -> leakage.Attack:
    told = {"repeats": 1, "settings": SMALL.get(model), "rng": np.random.default_rng(7), **more}
    return leakage.attack(original, released, secret, model, **told)


# ---------- baseline, ceiling, and order between them ----------


@pytest.mark.parametrize("model", [*LEARNERS, "group-median"])
def test_the_identity_release_is_the_ceiling(model: str) -> None:
    original, _, _ = people(120)
    for secret, scenario in (("age", "I"), ("age", "II"), ("place", "II")):
        found = run(original, original, model, secret, scenario=scenario)
        assert found.success == found.ceiling and found.interval == found.ceiling_interval
    without = {k: v for k, v in original.items() if k != "age"}
    found = run(original, without, model)
    assert found.success == found.ceiling
    assert model == "group-median" or found.success < found.baseline / 2


@pytest.mark.parametrize("model", [*LEARNERS, "group-median"])
def test_a_constant_release_is_the_baseline(model: str) -> None:
    original, _, _ = people(300)
    income = {**original, "age": np.exp(original["age"] / 8)}  # skewed: a mean is a bad guess of it
    nothing = {"near": np.zeros(300), "place": ["x"] * 300, "noise": [None] * 300}
    for table, secret in ((original, "age"), (income, "age"), (original, "place")):
        found = run(table, nothing, model, secret, repeats=2)
        assert found.success == pytest.approx(found.baseline, rel=0.12)
        assert found.gain_interval[0] <= 0
        assert "not clearly better" in found.words() or "worse than without" in found.words()


@pytest.mark.parametrize("model", LEARNERS)
def test_learners_lie_between_baseline_and_ceiling(model: str) -> None:
    original, released, _ = people(400)
    for scenario in ("I", "II"):
        found = run(original, released, model, scenario=scenario)
        assert found.ceiling < found.success < found.baseline / 2
        assert found.interval[0] < found.success < found.interval[1]
        assert found.gain == pytest.approx(found.baseline - found.success) and found.gain_interval[0] > 0
        assert "The release helps him" in found.words()


def test_more_noise_means_a_worse_attack() -> None:
    original, _, rng = people(400)
    errors = []
    for noise in (0, 4, 16, 1000):
        blurred = {"near": original["near"] + rng.normal(0, 1, 400) * noise}
        errors.append(run(original, blurred, "random-forest").success)
    assert errors == sorted(errors) and errors[0] < 5 and errors[-1] > 10


def test_the_group_median_is_what_it_says() -> None:
    """By hand: ages 0…9, groups of five; half of each is known."""
    known = np.array([0, 0, 0, 1, 1])
    assert by_group(known, np.array([1, 1, 2, 0, 0]), np.array([0, 1, 5]), False).tolist() == [1, 0, 0]
    age = np.repeat(np.arange(40), 25)
    found = run({"age": age}, {"age": age // 10}, "group-median", repeats=1)
    assert found.success == pytest.approx(2.5, abs=0.15)  # the mean distance to the middle of ten even values
    assert found.baseline == pytest.approx(10, abs=0.3) and found.ceiling == found.success


def test_scenario_one_learns_on_clean_rows() -> None:
    """Published values are shifted: who learns on clean rows is misled, who learns on published ones is not."""
    original, _, _ = people(300)
    shifted = {"near": original["near"] + 20}
    two = run(original, shifted, "logistic", scenario="II")
    one = run(original, shifted, "logistic", scenario="I")
    assert two.success < 4 and one.success > 10 and one.ceiling == pytest.approx(two.ceiling)


def test_figures_of_every_model_by_kind() -> None:
    original, released, _ = people(200)
    found = leakage.attacks(
        original, released, "place", rng=np.random.default_rng(1), repeats=1, settings=SMALL
    )  # fmt: skip
    assert [a.model for a in found] + list(found.skipped) == list(MODELS) or "xgboost" in found.skipped
    for a in found:
        assert a.metric == "share right" and 0 <= a.interval[0] <= a.success <= a.interval[1] <= 1
    assert found.strongest.success == max(a.success for a in found)
    assert len(found.rows()) == len(found) and found["knn"].model == "knn"
    assert found.to_spec()["attacks"][0]["model"] == found.found[0].model
    assert found.words().count("Scenario II") == len(found)


# ---------- what an attacker must not see, and what he may ----------


def test_the_original_secret_is_never_looked_at() -> None:
    original, released, _ = people(300)
    twin = {**original, "age": np.random.default_rng(3).permutation(original["age"])}
    noise_only = {"noise": released["noise"]}
    for model in ("random-forest", "knn", "logistic"):
        found = run(original, noise_only, model)
        assert found.success > 0.9 * found.baseline and found.ceiling > 0.9 * found.baseline
        assert run(twin, noise_only, model).success > 0.9 * found.baseline
    with pytest.raises(SpecificationError, match="other than the secret"):
        run(original, released, "knn", features=["age", "near"])


def test_matrices_hold_the_released_secret_and_not_the_original_one() -> None:
    original, released, _ = people(50)
    own = Given.of(original, "original").read(["age", "near"])
    told = Given.of(released, "released").read(["near", "age"])
    seen = features(own, told, ["near"], "age")
    assert seen.names == ("near", "age") and seen.released.shape == (50, 2)
    assert (seen.clean[:, 0] == original["near"]).all() and (seen.released[:, 0] == released["near"]).all()
    for matrix in (seen.released, seen.clean):
        # Codes of the four published ranges, in their order.
        assert (matrix[:, 1] == (original["age"] - 18) // 12).all()


@pytest.mark.parametrize(
    ("model", "share"),
    [
        ("random-forest", 0.45),
        pytest.param("xgboost", 0.6, marks=needs_xgboost),
        ("knn", 0.97),  # to which it is one column among others
        ("logistic", 0.3),
    ],
)
def test_a_copy_of_the_secret_under_another_name_is_found(model: str, share: float) -> None:
    original, released, _ = people(300)
    leaking = {**released, "years": original["age"]}
    found = run(original, leaking, model)
    assert found.success < share * run(original, released, model).success
    assert "The original has no column 'years'" in found.words()


def test_only_the_features_named_are_looked_at() -> None:
    original, released, _ = people(300)
    leaking = {**released, "years": original["age"]}
    found = run(original, leaking, "random-forest", features=["noise"])
    assert found.features == ("noise", "age") and found.success > 2.5


def test_ranges_on_one_side_and_numbers_on_the_other() -> None:
    original, released, _ = people(300)
    coarse = {**released, "near": [f"{v // 10 * 10:g} to {v // 10 * 10 + 10:g}" for v in original["near"]]}
    found = run(original, coarse, "random-forest", scenario="I")
    assert found.success < 4 and "'near': numbers in one table" in found.words()


# ---------- hostile tables ----------


@pytest.mark.parametrize("model", [*LEARNERS, "group-median"])
def test_missing_values_infinities_and_rare_categories(model: str) -> None:
    original, released, rng = people(200)
    holes = rng.random(200) < 0.3
    worn = {
        **released,
        "near": np.where(holes, np.nan, np.where(rng.random(200) < 0.02, np.inf, released["near"])),
        "place": [None if h else f"street {i}" for i, h in enumerate(holes)],
        "empty": [None] * 200,
        "void": np.full(200, np.nan),
    }
    for secret in ("age", "place"):
        found = run(original, worn, model, secret)
        assert np.isfinite([found.success, *found.interval, found.ceiling]).all()


def test_people_whose_secret_is_missing_are_left_out() -> None:
    original, released, _ = people(300)
    gone = np.arange(300) < 40
    holed = {**original, "age": np.where(gone, np.nan, original["age"])}
    found = run(holed, released, "group-median")
    rest = {k: np.asarray(v)[~gone] for k, v in original.items()}
    same = run(rest, {k: np.asarray(v)[~gone] for k, v in released.items()}, "group-median")
    assert (found.people, found.left_out) == (260, 40) and found.success == same.success
    assert "left out" in found.words()


@pytest.mark.parametrize("model", [*LEARNERS, "group-median"])
def test_fifty_people_are_warned_of(model: str) -> None:
    original, released, _ = people(50)
    found = run(original, released, model)
    assert found.train == 25 and "fewer than 100 people" in found.words()
    assert found.interval[1] > found.interval[0]


def test_an_attacker_who_learns_nothing_from_clean_rows_is_warned_of() -> None:
    rng = np.random.default_rng(1)
    original = {"age": rng.integers(0, 50, 300), "noise": rng.normal(size=300)}
    found = run(original, {"noise": np.zeros(300)}, "knn")
    assert "says little about the release" in found.words()


def test_one_class_in_what_is_learnt_on() -> None:
    original = {"ill": ["no"] * 198 + ["yes"] * 2, "x": np.arange(200)}
    for model in ("random-forest", "knn", "logistic", "group-median"):
        found = run(original, {"x": np.arange(200)}, model, "ill", repeats=4)
        assert found.success == pytest.approx(0.99, abs=0.02)
    guess = Attacker.of("logistic").guess(
        np.zeros((3, 1)), np.array([4, 4, 4]), np.zeros((2, 1)), None, None, 1,  # type: ignore[arg-type]
    )  # fmt: skip
    assert guess.tolist() == [4, 4]


def test_by_rank_a_column_without_news_gives_the_median() -> None:
    told = np.zeros((110, 1)), np.repeat(np.arange(10.0) ** 3, 11), np.zeros((2, 1))
    seen = features(
        Given.of({"x": [0.0] * 110}, "original").read(["x"]),
        Given.of({"x": [0.0] * 110}, "released").read(["x"]), ["x"], "y",
    )  # fmt: skip
    for scale, expected in (("rank", (4**3 + 5**3) / 2), ("value", 202.5)):
        guess = Attacker.of("logistic", {"scale": scale}).guess(*told, seen, Secret(told[1], True, 10), 1)
        assert guess == pytest.approx([expected] * 2)


def test_kinds_of_secret() -> None:
    n = 100
    few = {"x": np.arange(n) % 5, "z": np.arange(n)}
    assert run(few, few, "group-median", "x").metric == "share right"
    assert run(few, few, "group-median", "x", kind="number").metric == "mean absolute error"
    halves = {"x": np.arange(n) % 5 / 2, "z": np.arange(n)}
    assert run(halves, few, "group-median", "x").metric == "mean absolute error"
    assert run(few, few, "group-median", "z", kind="category").metric == "share right"
    text = {"x": [str(v) for v in range(n)]}
    assert run(text, {"y": np.arange(n)}, "group-median", "x").metric == "mean absolute error"
    truth = {"x": np.arange(n) % 2 == 0}
    assert run(truth, {"y": np.arange(n)}, "group-median", "x").metric == "share right"


# ---------- intervals ----------


def test_the_interval_of_a_mean_covers_it() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        told = rng.exponential(1, (1, 80)) + rng.normal(0, 0.3, (6, 80)) + rng.normal(0, 0.2, (6, 1))
        _, low, high = attack_rounds.mean_interval(told, 0.9)
        hits += low <= 1 <= high
    assert 0.86 <= hits / 400 <= 0.97


def test_the_interval_of_a_share_covers_it_and_never_vanishes() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(400):
        chance = np.clip(0.9 + rng.choice([-0.1, 0.1], (1, 120)), 0, 1)
        told = (rng.random((3, 120)) < chance).astype(float)
        _, low, high = attack_rounds.share_interval(told, 0.9)
        hits += low <= 0.9 <= high
    assert 0.86 <= hits / 400 <= 0.99
    assert attack_rounds.share_interval(np.ones((2, 50)), 0.99) == (1.0, pytest.approx(0.883, abs=0.001), 1.0)
    assert attack_rounds.mean_interval(np.zeros((1, 9)), 0.99) == (0, 0, 0)


def test_everybody_is_asked_once_in_every_repeat() -> None:
    rounds = attack_rounds.split(11, 3, 4, np.random.default_rng(1))
    assert len(rounds) == 4
    for once in rounds:
        asked = np.zeros(11)
        for known, mask, _ in once.folds():
            assert not (known & mask).any() and (known | mask).all()
            asked += mask
        assert (asked == 1).all()
    assert any((a.part != b.part).any() for a, b in pairwise(rounds))


def test_a_generator_makes_it_repeatable_and_none_does_not() -> None:
    original, released, _ = people(150)
    one, two = (run(original, released, "random-forest") for _ in range(2))
    assert one == two
    other = run(original, released, "random-forest", rng=None)
    assert other.success != one.success


# ---------- two releases ----------


def test_paired_tells_the_better_release_and_sees_no_difference_in_none() -> None:
    original, released, rng = people(300)
    coarse = [{"age": np.where(original["age"] < 42, "young", "old")} for _ in range(3)]
    fine = [{"age": released["age"]} for _ in range(3)]
    found = leakage.paired(original, coarse, fine, "age", "group-median", rng=np.random.default_rng(2))
    assert found.interval[0] > 0 and found.difference == pytest.approx(found.first - found.second)
    assert "the first release protects better" in found.words() and (found.releases, found.rounds) == (3, 3)
    back = leakage.paired(original, fine, coarse, "age", "group-median", rng=np.random.default_rng(2))
    assert back.difference == pytest.approx(-found.difference) and "the second release" in back.words()
    same = leakage.paired(original, fine, fine, "age", "knn", rng=np.random.default_rng(2))
    assert same.difference == 0 and "no clear difference" in same.words()
    noisy = [{"near": original["near"] + rng.normal(0, 9, 300)} for _ in range(6)]
    other = [{"near": original["near"] + rng.normal(0, 9, 300)} for _ in range(6)]
    found = leakage.paired(original, noisy, other, "age", "knn", rng=np.random.default_rng(2))
    assert found.interval[0] < 0 < found.interval[1]
    shares = leakage.paired(
        original, {"place": original["place"]}, {"noise": original["noise"]}, "place", "group-median",
        rng=np.random.default_rng(2),
    )  # fmt: skip
    assert shares.difference > 0 and "the second release protects better" in shares.words()
    assert shares.to_spec()["interval"] == list(shares.interval)


def test_paired_refuses_what_is_not_paired() -> None:
    original, released, _ = people(60)
    with pytest.raises(SpecificationError, match="as many first releases"):
        leakage.paired(original, [released, released], [released], "age")
    ids = {"id": np.arange(60)}
    with pytest.raises(DataError, match="same people"):
        leakage.paired(
            {**original, **ids}, {**released, **ids},
            {k: np.asarray(v)[:50] for k, v in {**released, **ids}.items()}, "age", "group-median", id="id",
        )  # fmt: skip


# ---------- refusals ----------

CANARY = "canary-7391"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "svm"}, "attack: no model 'svm'"),
        ({"scenario": "III"}, "attack.scenario"),
        ({"kind": "ordinal"}, "attack.kind"),
        ({"folds": 1}, "attack.folds"),
        ({"folds": 40}, "attack.folds"),
        ({"repeats": 0}, "attack.repeats"),
        ({"repeats": True}, "attack.repeats"),
        ({"level": 1}, "attack.level"),
        ({"rng": 7}, "attack.rng"),
        ({"settings": {"tres": 3}}, "attack.settings of random-forest: no setting 'tres'"),
        ({"settings": {"trees": 0}}, "attack.settings.trees"),
        ({"settings": {"trees": 2.5}}, "attack.settings.trees"),
        ({"settings": {"scale": "log"}}, "attack.settings.scale"),
        ({"features": "near"}, "attack: the secret is the name"),
        ({"features": ["near", "near"]}, "attack.features"),
        ({"id": "age"}, "attack.id"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], says: str) -> None:
    original, released, _ = people(30)
    with pytest.raises(SpecificationError, match=says) as caught:
        leakage.attack(original, released, **{"secret": "age", **change})
    assert caught.value.exit_code == 2


def test_models_and_settings_of_several() -> None:
    original, released, _ = people(30)
    for bad in ({"models": []}, {"models": "knn"}, {"models": ["knn"], "settings": {"logistic": {}}}):
        with pytest.raises(SpecificationError):
            leakage.attacks(original, released, "age", **bad)


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "xgboost" else found(name))
    original, released, _ = people(40)
    with pytest.raises(Unsupported, match=r"xgboost needs xgboost; install tetraodon\[attack\]"):
        run(original, released, "xgboost")
    told = leakage.attacks(original, released, "age", repeats=1, settings={"random-forest": {"trees": 3}})
    assert told.skipped == ("xgboost",) and "Not run" in told.words() and len(told) == 4


def test_a_model_that_fails_says_nothing_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr(Attacker, "guess", fails)
    original, released, _ = people(40)
    with pytest.raises(Exception, match="knn failed \\(ValueError\\)") as caught:
        run(original, released, "knn")
    assert (
        CANARY not in str(caught.value)
        and caught.value.__cause__ is None
        and caught.value.__context__ is None
    )
