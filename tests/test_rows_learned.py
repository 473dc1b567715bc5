"""Rows through channels that are learned from them: the budget, the certificate, what is published, and real check-ins."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon.channels.geometry import Geometry
from tetraodon.channels.lower_bound import information_bound
from tetraodon.channels.words import bits
from tetraodon.errors import SpecificationError
from tetraodon.leakage.measures import bayes_error, information
from tetraodon.publish import publish
from tetraodon.rows.evidence import evidence
from tetraodon.rows.learned import learned
from tetraodon.spec import load

pytestmark = pytest.mark.learn
pytest.importorskip("jax")

SETTINGS = """
[data]
source = "people.parquet"
[domain.region]
categorical = ["n", "s"]
[domain.home]
point = ["lat", "lon"]
box = [[0, 6], [0, 5]]
cell = 1
metric = "planar"
unit = "km"
missing = "public"
[policy.secrets]
home = { within = 1 }
[budget]
epsilon = 3
ledger = "people.ledger"
[[release]]
name = "learned"
rows = ["home"]
guarantee = "measured"
publish_evidence = true
[release.channel]
kind = "learned"
secret = "region"
distortion = "800 m"
outputs = 24
steps = 50
[[release]]
name = "floored"
rows = ["home"]
epsilon = 2
[release.channel]
kind = "learned"
secret = "region"
distortion = "800 m"
outputs = 24
steps = 50
floor = { epsilon = 2 }
"""
BUDGET = 0.8


def rows(n: int = 600) -> dict[str, Any]:
    """People of the south live in the south, mostly; of a few nobody knows where."""
    rng = np.random.default_rng(5)
    south = rng.random(n) < 0.4
    lat = np.clip(rng.normal(np.where(south, 2.0, 4.0), 1.0), 0, 5.99)
    lon = 5 * rng.random(n)
    hidden = rng.random(n) < 0.02
    return {
        "region": np.where(south, "s", "n").tolist(), "name": [f"canary{i}" for i in range(n)],
        "lat": [None if h else v for h, v in zip(hidden, lat.tolist(), strict=True)],
        "lon": [None if h else v for h, v in zip(hidden, lon.tolist(), strict=True)],
    }  # fmt: skip


@dataclass(frozen=True)
class Run:
    folder: Path
    made: list[Any]
    entries: list[Any]
    domain: Any
    joint: Any
    context: Any


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("learned")
    pq.write_table(pa.table(rows()), folder / "people.parquet")
    (folder / "release.toml").write_text(SETTINGS)
    document = load(folder / "release.toml")
    session = document.session()
    made = session.release_all(document.requests)
    with pytest.MonkeyPatch.context() as patch:
        from tetraodon.rows import publishing

        patch.setattr(publishing, "evidence", lambda *a, **k: evidence(*a, **k, seconds=1.0, points=2))
        manifest = publish(folder / "out", [(m, ("parquet",)) for m in made], session.context, report=True)
    entries = json.loads(manifest.read_text())["releases"]
    counts = document.table().counts("region", "home")
    joint = counts.dense.reshape(counts.domain.shape).astype(float)
    yield Run(folder, made, entries, document.policy.domain.select("home"), joint, session.context)


def test_the_table_keeps_the_distance_and_leaks_little(run: Run) -> None:
    [channel] = run.made[0].channels
    law = run.joint.sum(axis=0) / run.joint.sum()
    cost = Geometry(run.domain).matrix(None)
    assert float(law @ (channel.matrix * cost).sum(axis=1)) <= BUDGET
    assert channel.distortion(run.joint.sum(axis=0)) > 0.9 * BUDGET
    assert information(run.joint @ channel.matrix / run.joint.sum()) == pytest.approx(
        channel.leakage(run.joint), abs=1e-9
    )
    best = td.channels.least_leaking(run.joint, distortion=BUDGET, domain=run.domain)
    assert best.certificate.bound <= channel.leakage(run.joint) <= 1.15 * best.certificate.value + 0.02
    plain = td.channels.planar_geometric(run.domain, "1.3", "km")
    assert plain.distortion(run.joint.sum(axis=0)) > BUDGET  # farther, and yet:
    assert channel.leakage(run.joint) < 0.9 * plain.leakage(run.joint)


def test_special_cells_come_out_as_they_are(run: Run) -> None:
    [channel] = run.made[0].channels
    missing = run.domain["home"].missing_cell
    assert channel.matrix[missing, missing] == 1 and channel.matrix[:missing, missing].max() == 0
    frame = run.made[0].to_frame()
    assert frame["lat"].isna().sum() == int(run.joint[:, missing].sum()) > 0


def test_the_certificate_can_be_worked_out_again_and_bounds_the_exact_optimum(run: Run) -> None:
    [channel] = run.made[0].channels
    proof = channel.certificate
    arrays = proof.arrays
    again = information_bound(
        arrays["joint"], arrays["cost"], float(arrays["budget"]), arrays["log_ratio"], float(arrays["multiplier"])
    )  # fmt: skip
    assert again == pytest.approx(proof.bound, abs=1e-9) and proof.value == pytest.approx(
        channel.leakage(run.joint), abs=1e-9
    )
    whole = Geometry(run.domain).matrix(None)
    assert np.array_equal(arrays["cost"], whole[arrays["rows"]])
    assert np.allclose(arrays["joint"], (run.joint / run.joint.sum())[:, arrays["rows"]])
    best = td.channels.least_leaking(run.joint, distortion=BUDGET, domain=run.domain, tolerance=1e-5)
    assert 0 < proof.bound <= best.certificate.value
    assert proof.bound > best.certificate.value - 0.01


def test_what_is_measured_says_so_and_is_charged_nothing(run: Run) -> None:
    made, entry = run.made[0], run.entries[0]
    assert made.guarantee == entry["guarantee"] == "measured" and made.spent.is_zero
    [told] = entry["channels"]
    assert told["kind"] == told["name"] == "learned" and told["private"] and told["realised"] is None
    words, attack = told["evidence"]["words"], told["evidence"]["leakage"]
    assert words[0].startswith("Nothing is proved: the channel itself was learned from these rows")
    assert words[1].startswith("Certified: ") and "no channel gives less than" in words[1]
    assert all(w.startswith("Measured on private rows") for w in words[2:])
    channel = made.channels[0]
    assert attack["bits"] == pytest.approx(channel.leakage(run.joint), abs=1e-9)
    assert attack["bits"] < attack["plain_bits"]
    assert attack["bayes_error"] == pytest.approx(bayes_error(run.joint @ channel.matrix / run.joint.sum()))
    page = (run.folder / "out" / "report.html").read_text()
    assert "a network was trained on all of them" in page and "canary" not in page
    assert "leaks less than" in page


def test_the_channel_is_saved_without_the_counts_it_was_learned_from(run: Run) -> None:
    path = run.folder / "out" / "learned.channel.npz"
    with np.load(path) as file:
        assert not [n for n in file.files if n.startswith("certificate.")]
    saved, [channel] = td.Channel.load(path), run.made[0].channels
    assert saved.digest == channel.digest and saved.is_private
    assert saved.certificate is not None and saved.certificate.bound == channel.certificate.bound
    policy = td.Policy(run.domain, td.AttributeWise(home=td.Within(1)))
    frame = {"lat": [1.0], "lon": [1.0]}
    session = td.Session(td.Table(frame, run.domain), policy, epsilon=1)
    with pytest.raises(SpecificationError, match="no epsilon is proved"):
        session.release(td.Rows("home", channel=saved), epsilon=1)


def test_nothing_of_it_is_published_unless_asked(run: Run, tmp_path: Path) -> None:
    quiet = replace(run.made[0], publishes_evidence=False)
    manifest = publish(tmp_path, [(quiet, ("csv",))], run.context)
    [entry] = json.loads(manifest.read_text())["releases"]
    [told] = entry["channels"]
    assert told["evidence"] is None and told["file"] is None and not list(tmp_path.glob("*.npz"))


def test_with_a_floor_it_is_proved_and_learned_from_what_came_out(run: Run) -> None:
    made, entry = run.made[1], run.entries[1]
    [channel], joint = made.channels, np.asarray(made.joints[0], dtype=float)
    assert made.guarantee == "proved" and made.spent.amount == 2
    assert channel.epsilon(td.Within(1)) <= 2 and channel.source == "released"
    assert joint.shape == run.joint.shape and not np.array_equal(joint, run.joint)
    assert joint.sum(axis=1).tolist() == run.joint.sum(axis=1).tolist()
    second = channel.law.second.rows(np.arange(run.domain.size))
    law = joint.sum(axis=0) / joint.sum()
    assert float(law @ (second * Geometry(run.domain).matrix(None)).sum(axis=1)) <= BUDGET
    after, before = information(joint @ second / joint.sum()), information(joint / joint.sum())
    assert channel.certificate.bound <= after < before
    words = entry["channels"][0]["evidence"]["words"]
    assert any(f"tells {bits(before)}, what is published {bits(after)}" in w for w in words)
    assert entry["channels"][0]["evidence"]["distortion"] == pytest.approx(channel.distortion(law))


@pytest.mark.slow
def test_every_option_reaches_the_training() -> None:
    rng = np.random.default_rng(2)
    domain = td.Domain(x=td.Numeric(0, 10, cells=12), y=td.Numeric(0, 10, cells=12))
    joint = rng.integers(0, 30, (3, 144)) * (rng.random((3, 144)) < 0.4)
    told = {
        "secret": "s",
        "distortion": "2.5",
        "outputs": "20",
        "steps": "50",
        "seed": "3",
        "held_out": "0.2",
    }
    made = learned(joint, domain, told, td.L1())
    assert made.settings["metric"] == "manhattan" and made.settings["held_out"] == 0.2
    assert len(made.law.columns) <= 20 and made.distortion(joint.sum(axis=0), td.L1()) <= 2.5
    assert np.array_equal(learned(joint, domain, told, td.L1()).matrix, made.matrix)
    assert not np.array_equal(learned(joint, domain, told | {"seed": 4}, td.L1()).matrix, made.matrix)


@pytest.mark.slow
def test_real_training_before_a_private_channel_loses_far_more_than_its_epsilon() -> None:
    """41 people of two regions at the ends of a line, one of whom moves from one end to the other. The channel learned from the
    majority's table sends nearly all to its end. A channel of ε = 1 after it does not undo that: the outputs of all 41 follow."""
    domain = td.Domain(x=td.Integer(0, 9))
    post = td.channels.exponential(domain, Fraction(1), secrets=td.Full())
    assert post.epsilon(td.Full()) <= 1
    told = {"secret": "s", "distortion": "4.4", "steps": 50, "outputs": 8}

    def rest(low: int) -> Any:
        """The law of the output of each of the 40 who do not move."""
        joint = np.zeros((2, 10))
        joint[:, 0], joint[:, 9] = (low // 2, low - low // 2), ((41 - low) // 2, 41 - low - (41 - low) // 2)
        return (learned(joint, domain, told, None).matrix @ post.matrix)[[0] * 20 + [9] * 20]

    one, other = rest(21), rest(20)
    lost = np.abs(np.log(one) - np.log(other)).max(axis=1)
    assert (
        lost.max() <= 1 + 1e-9 and lost.sum() > 10
    )  # each row's own channel is private, all of them together are not


@pytest.mark.slow
@pytest.mark.data
def test_check_ins_of_new_york(tmp_path: Path) -> None:
    data = os.environ.get("TETRAODON_DATA")
    if not data:
        pytest.skip("TETRAODON_DATA names no folder")
    south, west, degree = 40.70, -74.02, 111_195.08
    with gzip.open(Path(data) / "gowalla" / "gowalla_nyc_checkins.csv.gz", "rt", encoding="utf-8") as file:
        every = [(r["user"], float(r["lat"]), float(r["lon"])) for r in csv.DictReader(file)]
    middle = [r for r in every if south <= r[1] <= 40.80 and west <= r[2] <= -73.93]
    names, count = np.unique([r[0] for r in middle], return_counts=True)
    heavy = {name: i for i, name in enumerate(names[count >= 200].tolist())}
    domain = td.Domain(x=td.Numeric(0, 7584, cells=32, unit="m"), y=td.Numeric(0, 11136, cells=32, unit="m"))
    x = domain["x"].cells(np.array([(r[2] - west) * degree * np.cos(np.radians(40.75)) for r in middle]))
    y = domain["y"].cells(np.array([(r[1] - south) * degree for r in middle]))
    who = np.array([heavy.get(r[0], len(heavy)) for r in middle])
    joint = np.zeros((len(heavy) + 1, 1024))
    np.add.at(joint, (who, domain.encode([x, y])), 1)
    made = learned(joint, domain, {"secret": "user", "distortion": "500 m"}, None)
    proof = made.certificate
    assert proof is not None and made.distortion(joint.sum(axis=0)) <= 500
    assert 0.12 < proof.bound <= proof.value < 1.15 * proof.bound + 0.02
