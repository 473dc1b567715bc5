"""Groups found on a sample of the rows: every promise is kept, and every figure told, of all rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import people

import tetraodon as td
from tetraodon.errors import Refused, SpecificationError
from tetraodon.loss import Loss
from tetraodon.microdata import from_sample, group_sums
from tetraodon.microdata.clusters import clustered
from tetraodon.microdata.distances import METRICS, between
from tetraodon.microdata.features import Deferred, Features
from tetraodon.microdata.group_sums import summed
from tetraodon.microdata.joint import channels
from tetraodon.microdata.planning import HybridPlan
from tetraodon.microdata.release import MicrodataRelease
from tetraodon.microdata.sample_error import error_of
from tetraodon.microdata.settings import Hybrid
from tetraodon.microdata.strategy import priced
from tetraodon.requests import Request


def asked(**more: Any) -> td.HybridObscuring:
    told = {
        "distortion": 0.2,
        "groups": 3,
        "k": 400,
        "l": 2,
        "clusters": 6,
        "donors": 9,
        "sample": 500,
    } | more
    return td.HybridObscuring("age", "all", **told)


@pytest.fixture(scope="module")
def large() -> pa.Table:
    """3,000 rows, of which one has an age that a sample hardly ever meets, and one a doing that nobody else has."""
    rows = people(3000)
    age, doing = rows["age"].to_numpy().copy(), rows["q_0"].to_numpy().copy()
    age[17], doing[40] = 60, 99
    return rows.set_column(0, "age", pa.array(age)).set_column(2, "q_0", pa.array(doing))


@pytest.fixture(scope="module")
def made(large: pa.Table) -> tuple[td.HybridObscuring, pa.Table]:
    hybrid = asked()
    return hybrid, hybrid.fit_transform(large)


# ---------- distances within groups ----------


def brute(features: Features, keys: Any, metric: str, groups: int, clusters: int) -> Any:
    """Means over all pairs, one by one."""
    every = np.arange(features.rows)
    pairs = between(features, every, every, metric)
    found = np.full((groups, clusters, clusters), np.nan)
    for g in range(groups):
        for a in range(clusters):
            for b in range(clusters):
                own, other = keys == g * clusters + a, keys == g * clusters + b
                if own.any() and other.any():
                    found[g, a, b] = pairs[np.ix_(own, other)].mean()
    return found


def mixed(rows: int, metric: str, many: bool, seed: int) -> Features:
    rng = np.random.default_rng(seed)
    told: dict[str, Any] = {
        "few": rng.integers(0, 9, rows) + 1.0,
        "zeros": rng.poisson(0.4, rows).astype(float),
    }
    if many:
        told["many"] = rng.gamma(0.7, 3.0, rows)
    if metric != "jensen-shannon":
        told["code"] = rng.choice(["x", "y", "z"], rows)
        told["low"] = rng.normal(1e6, 2.0, rows) if many else rng.integers(-4, 4, rows)
    return Features.of_arrow(pa.table(told), list(told))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("many", [False, True])
def test_distances_within_groups_are_those_of_all_pairs(metric: str, many: bool) -> None:
    """Exact where all values are counted, else an upper bound that is near; rows come in parts, knots from some of them."""
    for seed in range(3):
        features = mixed(700, metric, many, seed)
        keys = np.random.default_rng(seed).integers(0, 11, 700)  # one key of twelve has no row
        parts = [
            (features.take(p), keys[p]) for p in (np.arange(300), np.arange(300, 301), np.arange(301, 700))
        ]
        sample = features.take(np.arange(0, 700, 1 if not many else 7))
        found, is_exact = summed(parts, sample, metric, 3, 4)
        truth = brute(features, keys, metric, 3, 4)
        assert np.array_equal(np.isnan(found), np.isnan(truth))
        held = ~np.isnan(truth)
        assert is_exact == (metric != "euclidean" and not many)
        if is_exact:
            assert found[held] == pytest.approx(truth[held], rel=1e-12, abs=1e-12)
        assert (found[held] >= truth[held] - 1e-12).all()
        if metric in ("gower", "jensen-shannon"):
            assert (found[held] <= truth[held] + 0.01).all()


def test_values_that_the_sample_did_not_meet_count_as_far(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Features.of_arrow(pa.table({"n": [0.0, 1.0, 7.0, 7.0]}), ["n"], {"n": (0, 10)})
    keys = np.zeros(4, dtype=np.int64)
    for metric, bound in (("hamming", 14 / 16), ("gower", brute(numbers, keys, "gower", 1, 1)[0, 0, 0])):
        found, is_exact = summed([(numbers, keys)], numbers.take(np.arange(2)), metric, 1, 1)
        truth = brute(numbers, keys, metric, 1, 1)
        assert not is_exact and (found >= truth).all()
        assert metric != "hamming" or found[0, 0, 0] == pytest.approx(bound)
    monkeypatch.setattr(group_sums, "MOST", 1)
    with pytest.raises(SpecificationError, match=r"hybrid\.sample: .* fewer clusters"):
        summed([(numbers, keys)], numbers, "gower", 1, 1)


# ---------- plans ----------


def test_all_rows_keep_what_is_promised(large: pa.Table, made: Any) -> None:
    """Tested and computed again from the released rows, the plan's own numbers aside."""
    hybrid, out = made
    plan = hybrid.plan_
    assert out.num_rows == 3000 == plan.prepared.total and hybrid.bound_ is None and hybrid.gap_ is None
    stands = {int(v): label for label, values in hybrid.groups_["age"].items() for v in values}
    assert set(stands) == set(large["age"].to_pylist())  # the age that no sample of 500 need meet has a group
    labels = [stands[a] for a in large["age"].to_pylist()]
    assert labels == out["age"].to_pylist() and min(Counter(labels).values()) >= 400
    donors = hybrid.drawn_.donors
    assert all(labels[i] == labels[j] for i, j in enumerate(donors.tolist()))
    # Leakage and distance by brute force, from the laws, rows and clusters alone.
    clusters = plan.prepared.clusters.labels
    assert np.array_equal(clusters, plan.prepared.clusters.assign(plan.prepared.data.features))
    features = plan.prepared.data.features
    group = plan.joint_group(plan.prepared.data.codes)
    table: Counter[tuple[int, int, int]] = Counter()
    distance = 0.0
    for law in plan.laws:
        own = np.flatnonzero(group == law.group)
        matrix = law.matrix
        place = {int(c): i for i, c in enumerate(law.rows)}
        for j, target in enumerate(law.columns.tolist()):
            given = own[clusters[own] == target]
            if matrix[:, j].any():
                assert len(given) >= 9
            far = between(features, own, given, "gower").mean(axis=1)
            share = matrix[[place[c] for c in clusters[own].tolist()], j]
            distance += float((share * far).sum()) / 3000
            for age, part in zip(large["age"].to_numpy()[own].tolist(), share.tolist(), strict=True):
                table[age, law.group, target] += part / 3000
    ages: Counter[int] = Counter()
    seen: Counter[tuple[int, int]] = Counter()
    for (age, g, target), p in table.items():
        ages[age] += p
        seen[g, target] += p
    leakage = sum(p * np.log2(p / (ages[a] * seen[g, t])) for (a, g, t), p in table.items() if p > 0)
    assert leakage == pytest.approx(hybrid.leakage_, abs=1e-9)
    # Exact but for pairs of rows between the same two neighbouring values of the sample: which values of the 3,000 rows 500 of them
    # missed is chance, and each of them has few rows.
    assert distance - 1e-12 <= hybrid.distortion_ <= min(distance + 1e-3, 0.2)
    assert plan.channel_bound <= hybrid.leakage_ + 1e-9 and hybrid.leakage_ - plan.channel_bound < 1e-3
    assert dict(plan.sampled)["rows"] == 500 and dict(plan.sampled)["distortion"] <= 0.2
    assert json.loads(json.dumps(plan.to_spec()))["sampled"]["rows"] == 500


def test_a_sample_of_all_rows_is_none(large: pa.Table) -> None:
    small = large.slice(0, 400)
    told = {"k": 60, "donors": 3}
    whole, same = asked(sample=None, **told).fit(small), asked(sample=400, **told).fit(small)
    assert same.plan_.sampled is None and same.leakage_ == pytest.approx(whole.leakage_, abs=1e-4)
    assert same.bound_ is not None


def test_every_row_is_drawn_with_the_same_chance(monkeypatch: pytest.MonkeyPatch, large: pa.Table) -> None:
    """The sample is of the operating system's randomness, without replacement."""
    seen: list[Any] = []

    def stop(data: Any, *_: Any, **more: Any) -> Any:
        seen.append((data.features.numbers[:, 0], more["tested"].rows))
        raise Refused("stop")

    monkeypatch.setattr(from_sample.Prepared, "of", staticmethod(stop))
    numbered = large.set_column(2, "q_0", pa.array(np.arange(3000)))
    for _ in range(60):
        with pytest.raises(Refused, match="stop"):
            asked().fit(numbered)
    counts = np.bincount(np.concatenate([rows for rows, _ in seen]).astype(int), minlength=3000)
    assert all(len(set(rows)) == 500 and of == 3000 for rows, of in seen)
    assert counts.sum() == 30_000
    # Binomial(60, 1/6) each; six of its standard deviations either way.
    assert (
        60 * (counts.var() / 60) == pytest.approx(60 * (1 / 6) * (5 / 6), rel=0.25)
        and counts.max() < 10 + 6 * 2.9
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"sample": 99}, "at least 100"),
        ({"sample": "many"}, "number"),
        ({"sample": 200, "method": "alternating"}, "alternating"),
        ({"sample": 200, "publish": "prototypes"}, "prototypes are means of all rows"),
        (
            {"sample": 200, "quasi_identifiers": ["kind"], "insensitive": ["q_1"]},
            "classes of quasi-identifiers",
        ),
    ],
)
def test_what_a_sample_cannot_do_is_named(more: dict[str, Any], says: str) -> None:
    columns = more.pop("insensitive", "all")
    with pytest.raises(SpecificationError, match=rf"hybrid\.sample.*{says}"):
        Hybrid("age", columns, distortion="0.2", groups=3, **more)


def test_requirements_are_those_of_all_rows(large: pa.Table) -> None:
    """k is above what the sample has rows; what no groups of all rows have is refused, without a count."""
    found = asked(k=900, alpha=1200).fit(large)
    labels = {int(v): g for g, values in found.groups_["age"].items() for v in values}
    assert all(900 <= n <= 1200 for n in Counter(labels[a] for a in large["age"].to_pylist()).values())
    with pytest.raises(Refused, match="hybrid: ") as caught:
        asked(k=1001).fit(large)
    assert "3000" not in str(caught.value) and "3,000" not in str(caught.value)


def test_several_private_columns(large: pa.Table) -> None:
    found = td.HybridObscuring(
        ["age", "kind"],
        [f"q_{j}" for j in range(5)],
        distortion=0.3,
        k=100,
        beta=6,
        clusters=4,
        donors=5,
        sample=600,
    )
    out = found.fit_transform(large)
    sizes = Counter(zip(out["age"].to_pylist(), out["kind"].to_pylist(), strict=True))
    assert min(sizes.values()) >= 100 and found.distortion_ <= 0.3 and found.plan_.sampled is not None


@pytest.mark.parametrize("metric", ["jensen-shannon", "euclidean", "hamming"])
def test_other_metrics(metric: str, large: pa.Table) -> None:
    columns = [f"q_{j}" for j in range(5)]
    more = large.append_column("q_5", pa.array(np.ones(3000)))
    distortion = {"jensen-shannon": 0.25, "euclidean": 9.0, "hamming": 0.8}[metric]
    found = td.HybridObscuring(
        "age",
        [*columns, "q_5"],
        distortion=distortion,
        groups=3,
        k=300,
        clusters=5,
        metric=metric,
        sample=600,
    )
    out = found.fit_transform(more)
    assert out.num_rows == 3000 and found.distortion_ <= distortion
    assert found.realised_distortion_ < 1.1 * distortion


def test_a_bound_by_upper_bounds_of_distances_is_none_by_the_distances() -> None:
    """Why it is said of which channels nothing leaks less: another one keeps the mean distance, not the root of the mean square."""
    rng = np.random.default_rng(3)
    age = np.tile(np.arange(6), 100)
    rows = pa.table(
        {"age": age, "a": age * 2.0 + rng.integers(0, 12, 600), "b": rng.integers(0, 9, 600) * 1.0}
    )
    found = td.HybridObscuring(
        "age", ["a", "b"], groups=2, k=50, clusters=5, distortion=4.5, metric="euclidean", sample=200
    ).fit(rows)
    prepared = found.plan_.prepared
    assert isinstance(prepared.divergences, group_sums.GroupSums)
    keys = found.plan_.joint_group(prepared.data.codes) * 5 + prepared.clusters.labels
    mean = brute(prepared.data.features, keys, "euclidean", 2, 5)
    true = replace(prepared, divergences=replace(prepared.divergences, mean=mean), _pieces={}, _settled={})
    members = [prepared.present[prepared.divergences.groups == g].astype(np.int64) for g in range(2)]
    made = channels(true, members)
    assert made is not None and made[1].distortion <= 4.5 and not prepared.divergences.is_exact
    leakage = (sum(true.grouping(m) for m in members) + made[1].leak) / np.log(2)
    assert found.plan_.channel_bound is not None and leakage < found.plan_.channel_bound - 1e-3


# ---------- how far a sample is from all rows ----------


def test_figures_of_samples_lie_within_what_was_stated_beforehand() -> None:
    """Groups, clusters and a channel that are fixed: 300 samples of 400 of 5,000 rows."""
    rng = np.random.default_rng(5)
    rows = people(5000, seed=9)
    features = Features.of_arrow(rows, [f"q_{j}" for j in range(5)])
    clusters = clustered(features, 6, "gower").labels
    ages = rows["age"].to_numpy() - 20
    group = ages // 4
    matrix = rng.dirichlet(np.ones(6), 6)

    def leakage(chosen: Any) -> float:
        table = np.zeros((12, 3, 6))
        np.add.at(table, (ages[chosen], group[chosen]), matrix[clusters[chosen]] / len(chosen))
        joint = table.reshape(12, -1)
        held = joint > 0
        alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        return float((joint[held] * np.log2(joint[held] / alone[held])).sum())

    every = np.arange(5000)
    distance = between(features, every, rng.integers(0, 5000, 20), "gower").mean(axis=1)
    far = error_of(400, 12, 6, "gower")
    truth = leakage(every)
    worst = np.zeros(2)
    for _ in range(300):
        chosen = rng.choice(5000, 400, replace=False)
        now = abs(distance[chosen].mean() - distance.mean()), abs(leakage(chosen) - truth)
        worst = np.maximum(worst, now)
    assert worst[0] <= far["distortion"] and worst[1] <= far["leakage"]
    assert worst[0] > far["distortion"] / 20  # not empty words
    assert error_of(400, 12, 6, "euclidean")["distortion"] == np.inf


# ---------- under a policy ----------


@pytest.mark.parametrize(
    ("metric", "most", "distortion", "within"),
    [
        ("gower", 3, "0.3", "within the same distance"),
        ("euclidean", 12, "9", "that keeps the distance by the upper bounds used here"),
    ],
)
def test_a_release_under_a_policy(
    metric: str, most: int, distortion: str, within: str, tmp_path: Path, large: pa.Table
) -> None:
    """Features are made part by part; the report of evidence says what was found on the sample, and which exchanges a bound is of."""
    domain = td.Domain(
        age=td.Integer(20, 63),
        kind=td.Categorical(["a", "b", "c"]),
        **{f"q_{j}": td.Integer(0, most) for j in range(5)},
    )
    policy = td.Policy(domain, td.AttributeWise(age=td.Within(2)))
    query = Hybrid(
        "age", {"prefix": "q_"}, distortion=distortion, groups=3, k=400, clusters=6, metric=metric, sample=500
    )
    strategy = priced(query, policy)
    shown = repr(HybridPlan(strategy))
    assert "on 500 rows where there are more" in shown and ("± 0.077" in shown) == (metric == "gower")
    session = td.Session(td.Table(large, domain), policy, epsilon=1)
    request = Request(
        query, Loss("epsilon", Fraction(0)), "people", guarantee="measured", publishes_evidence=True
    )
    [made] = session.release_all([request])
    assert isinstance(made, MicrodataRelease)
    assert isinstance(made.plan.prepared.data.features, Deferred) and made.table.num_rows == 3000
    told = json.loads(made.save(tmp_path / "out").read_text(encoding="utf-8"))
    [entry] = [e for e in told["releases"] if e["kind"] == "microdata"]
    words = " ".join(entry["evidence"]["words"])
    assert "found on 500 rows drawn at random" in words and "of other groups nothing is certified" in words
    assert f"no exchange between these clusters (donors by the same rule) {within} leaks less than" in words
    assert entry["evidence"]["bound"] is None and (tmp_path / "out" / "report.html").exists() is False


def test_only_exact_distances_are_called_so(large: pa.Table) -> None:
    """Without a sample: means over all pairs are exact; of many rows, those of columns of few values are, and no others."""
    some = large.slice(0, 1500)
    amounts = pa.array(np.random.default_rng(4).gamma(0.7, 3.0, 1500))
    for rows, is_exact in ((some, True), (some.append_column("amount", amounts), False)):
        prepared = asked(sample=None, k=200).fit(rows).plan_.prepared
        assert prepared.is_exact
        of_many = replace(prepared, divergences=replace(prepared.divergences, exact_up_to=100, _held={}))
        assert of_many.is_exact == is_exact
