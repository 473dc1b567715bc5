"""Least leaking channels: known optima, certificates that anyone can recompute, every degenerate case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import paris, plane, recomputed, square

import tetraodon as td
from tetraodon.channels import columns, interior, mirror
from tetraodon.channels.leaking import curve, least_leaking
from tetraodon.channels.leaking_search import search
from tetraodon.channels.lower_bound import Problem
from tetraodon.errors import Refused, SpecificationError, Unsupported

# Least information in bits, error of the best guess from the optimum, and the largest error of the best guess.
GOLDEN = {
    (10, 30): (1.3277686, 0.1161, 0.135664),
    (10, 60): (0.9360181, 0.2150, 0.251631),
    (10, 90): (0.6484142, 0.3076, 0.362537),
    (10, 150): (0.2459290, 0.4879, 0.568131),
    (10, 173): (0.1423786, 0.5654, 0.637580),
    (10, 212): (0.0, 0.75, 0.75),
    (20, 30): (1.3430790, 0.1119, 0.133676),
    (20, 60): (0.9443629, 0.2125, 0.252019),
    (20, 90): (0.6472659, 0.3081, 0.364996),
    (20, 150): (0.2459069, 0.4874, 0.567331),
    (20, 173): (0.1416624, 0.5700, 0.638423),
    (20, 212): (0.0, 0.75, 0.75),
}
DENSE = {30: (1.2263533, 0.1452), 90: (0.5858657, 0.3354), 150: (0.2046647, 0.5166)}
PARIS = {
    (16, 12): {
        150: (1.20843, 0.3475),
        300: (0.96278, 0.4083),
        518: (0.71288, 0.4778),
        1150: (0.24443, 0.6524),
    },
    (32, 24): {
        150: (1.22153, 0.3478),
        300: (0.95451, 0.4139),
        518: (0.70138, 0.4804),
        1150: (0.24122, 0.6541),
    },
}
WIDE = {30: 1.34907, 60: 0.94842, 90: 0.65016, 150: 0.24728, 173: 0.14303, 212: 0.00001}


def check(channel: td.Channel, joint: np.ndarray, best: float, slack: float = 1.5e-6) -> None:
    """Value within the certified gap of the optimum, bound below it, budget kept, bound recomputed from the arrays."""
    proof = channel.certificate
    assert proof is not None and proof.kind == "information" and proof.unit == "bits"
    value = channel.leakage(joint)
    assert proof.gap <= 1e-4
    assert proof.bound - slack <= best <= value + slack and value <= best + 1e-4 + slack
    assert value == pytest.approx(proof.value, abs=1e-9)
    arrays = dict(proof.arrays)
    assert proof.bound == 0 or proof.bound <= recomputed(arrays) <= proof.bound + 1e-8
    spent = arrays["joint"].sum(0) @ (channel.rows(arrays["rows"]) * arrays["cost"]).sum(1)
    assert spent <= arrays["budget"] * (1 + 1e-12)


@pytest.mark.parametrize(("n", "budget"), GOLDEN)
def test_square(n: int, budget: int) -> None:
    joint, grid = square(n)
    best, error, _ = GOLDEN[n, budget]
    channel = least_leaking(joint, distortion=budget, domain=grid, source="public")
    check(channel, joint, best)
    assert channel.bayes_error(joint) == pytest.approx(error, abs=1.5e-3)
    assert channel.distortion(joint.sum(0)) <= budget * (1 + 1e-12)
    if best == 0:
        assert channel.leakage(joint) < 1e-6


@pytest.mark.parametrize("budget", [30, 90, 173, 212])
def test_square_against_one_guess(budget: int) -> None:
    joint, grid = square(10)
    channel = least_leaking(joint, distortion=budget, domain=grid, leakage="bayes")
    assert channel.bayes_error(joint) == pytest.approx(GOLDEN[10, budget][2], abs=1e-5)
    proof = channel.certificate
    assert proof is not None and proof.kind == "bayes" and 0 <= proof.gap <= 1e-5
    held = proof.arrays
    strategy = held["strategy"] / held["strategy"].sum(0)
    priced = held["joint"].T @ strategy + held["multiplier"] * held["joint"].sum(0)[:, None] * held["cost"]
    assert 1 - (priced.min(1).sum() - held["multiplier"] * held["budget"]) == pytest.approx(
        proof.bound, abs=1e-9
    )


@pytest.mark.parametrize("budget", DENSE)
def test_everybody_everywhere(budget: int) -> None:
    joint, grid = square(10, dense=0.05)
    channel = least_leaking(joint, distortion=budget, domain=grid)
    check(channel, joint, DENSE[budget][0])
    assert channel.bayes_error(joint) == pytest.approx(DENSE[budget][1], abs=1.5e-3)


@pytest.mark.parametrize(("budget", "leak", "error"), [(90, 0.5888, 0.3076), (150, 0.2227, 0.4821)])
def test_another_prior_than_the_one_built_for(budget: int, leak: float, error: float) -> None:
    joint, grid = square(10)
    channel = least_leaking(joint, distortion=budget, domain=grid, tolerance=1e-6)
    other = joint * 4 * np.array([0.4, 0.3, 0.2, 0.1])[:, None]
    assert channel.leakage(other) == pytest.approx(leak, abs=1e-4)
    assert channel.bayes_error(other) == pytest.approx(error, abs=1e-4)


@pytest.mark.parametrize("budget", PARIS[16, 12])
@pytest.mark.data
def test_paris(real_data: Path, budget: int) -> None:
    joint, apart = paris(real_data, 16, 12)
    best, error = PARIS[16, 12][budget]
    channel = least_leaking(joint, apart, distortion=budget)
    check(channel, joint, best, slack=5e-5)
    assert channel.bayes_error(joint) == pytest.approx(error, abs=2e-3)


@pytest.mark.parametrize("budget", PARIS[32, 24])
@pytest.mark.data
@pytest.mark.slow
def test_paris_fine(real_data: Path, budget: int) -> None:
    joint, apart = paris(real_data, 32, 24)
    best, error = PARIS[32, 24][budget]
    grid = plane(24, 32, (0, 24), (0, 32))
    problem = Problem.of(joint[:, joint.sum(0) > 0], apart[joint.sum(0) > 0], budget)
    found = columns.on_grid(problem, (24, 32), np.flatnonzero(joint.sum(0) > 0))
    assert found.gap <= 1e-4 and found.bound - 5e-5 <= best + 1e-4 and found.value <= best + 1e-4
    channel = least_leaking(joint, apart, distortion=budget, domain=grid)
    check(channel, joint, best, slack=1e-4)
    assert channel.bayes_error(joint) == pytest.approx(error, abs=3e-3)


@pytest.mark.parametrize("budget", WIDE)
@pytest.mark.slow
def test_wide_square(budget: int) -> None:
    joint, grid = square(40)
    channel = least_leaking(joint, distortion=budget, domain=grid)
    check(channel, joint, WIDE[budget], slack=6e-5)


def test_pricing_certifies_every_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DIRECT", 100)
    joint, grid = square(20)
    rows = np.flatnonzero(joint.sum(0) > 0)
    cost = least_leaking(joint, distortion=300, domain=grid).certificate.arrays["cost"]
    problem = Problem.of(joint[:, rows], cost, 150.0)
    by_all = interior.solve(problem, 1e-5)
    for found in (columns.on_grid(problem, (20, 20), rows, 1e-5), columns.without_grid(problem, 1e-5)):
        assert found.gap <= 1e-5 and len(found.columns) < 400
        assert found.value == pytest.approx(by_all.value, abs=2e-5)
        assert found.log_ratio.shape == (4, 400)


def test_first_order_agrees() -> None:
    joint, grid = square(10)
    channel = least_leaking(joint, distortion=90, domain=grid)
    held = channel.certificate.arrays
    found = mirror.solve(held["joint"], held["cost"], 90.0, 1e-3, 20.0)
    assert found.bound - 1e-6 <= GOLDEN[10, 90][0] <= found.value + 1e-6


def test_saved_certificates_can_be_recomputed(tmp_path: Path) -> None:
    joint, grid = square(10)
    channel = least_leaking(joint, distortion=60, domain=grid)
    channel.save(tmp_path / "channel.npz")
    with np.load(tmp_path / "channel.npz") as file:
        arrays = {key.removeprefix("certificate."): file[key] for key in file.files if key.startswith("cert")}
    read = td.Channel.load(tmp_path / "channel.npz")
    assert read.certificate is not None
    assert read.certificate.bound <= recomputed(arrays) <= read.certificate.bound + 1e-8
    assert read.leakage(joint) == channel.leakage(joint)


def tiny(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    secrets, size = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    joint = rng.dirichlet(np.full(secrets * size, 0.6)).reshape(secrets, size)
    if seed % 3 == 0 and size > 1:
        joint[:, 0] = 0
    at = np.sort(rng.random(size)) * 10
    cost = abs(at[:, None] - at)
    mass = joint.sum(0) / joint.sum()
    return joint, cost, rng.uniform(0, 1.2) * float((mass @ cost).min())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_tiny_problems(seed: int) -> None:
    joint, cost, budget = tiny(seed)
    channel = least_leaking(joint, cost, distortion=budget)
    check(channel, joint, channel.certificate.value)
    assert channel.matrix.sum(1) == pytest.approx(np.ones(len(cost)), abs=1e-12)
    rng = np.random.default_rng(seed + 9)  # any channel within the budget leaks at least the bound
    mass = joint.sum(0) / joint.sum()
    for _ in range(10):
        K = rng.dirichlet(np.full(len(cost), 0.3), size=len(cost))
        spent = float(mass @ (K * cost).sum(1))
        share = 1.0 if spent <= budget else budget / spent
        K = share * K + (1 - share) * np.eye(len(cost))
        other = td.Channel.of_matrix(K, channel.domain)
        assert other.leakage(joint) >= channel.certificate.bound - 1e-12
        half = td.Channel.of_matrix((K + channel.matrix) / 2, channel.domain)
        assert half.leakage(joint) <= (other.leakage(joint) + channel.leakage(joint)) / 2 + 1e-12
        assert half.bayes_error(joint) >= (other.bayes_error(joint) + channel.bayes_error(joint)) / 2 - 1e-12


def test_curve_is_decreasing_and_convex() -> None:
    joint, grid = square(10)
    budgets = [150, 30, 60, 90, 120, 220]
    points = curve(joint, distortions=budgets, domain=grid, tolerance=1e-5)
    assert [p.distortion for p in points] == budgets
    points.sort(key=lambda p: p.distortion)
    leaks = np.array([p.leakage for p in points])
    at = np.array([p.distortion for p in points])
    slopes = np.diff(leaks) / np.diff(at)
    assert (slopes <= 1e-7).all() and (np.diff(slopes) >= -2e-6).all()
    for point in points:
        assert point.bound <= point.leakage and point.gap <= 1.1e-5
        assert point.bayes_error == pytest.approx(point.channel.bayes_error(joint), abs=1e-12)
        alone = least_leaking(joint, distortion=point.distortion, domain=grid, tolerance=1e-5)
        assert alone.leakage(joint) == pytest.approx(point.leakage, abs=2e-5)


def test_curve_on_many_outputs_starts_from_its_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DIRECT", 100)
    joint, grid = square(20)
    for point in curve(joint, distortions=[60, 90], domain=grid):
        best = GOLDEN[20, int(point.distortion)][0]
        assert point.gap <= 1e-4 and point.bound - 1e-6 <= best <= point.leakage + 1e-6


@pytest.mark.parametrize(
    ("per", "best", "error"), [(30, 0.262174, 0.4818), (60, 0.294116, 0.4684), (100, 0.3123, 0.4672)]
)
def test_with_epsilon_for_every_length(per: int, best: float, error: float) -> None:
    joint, grid = square(5, dense=0.05)
    epsilon = np.log(2)
    channel = least_leaking(joint, distortion=150, domain=grid, epsilon=epsilon, epsilon_per=per)
    assert channel.leakage(joint) == pytest.approx(best, abs=1e-4)
    assert channel.bayes_error(joint) == pytest.approx(error, abs=1e-3)
    assert channel.epsilon_per(per) <= epsilon
    proof = channel.certificate
    assert proof is not None and proof.gap < 1e-4 and channel.distortion(joint.sum(0)) <= 150
    assert channel.asked is not None and channel.asked.per == str(per)


def test_a_constant_tells_nothing() -> None:
    joint, grid = square(10)
    channel = least_leaking(joint, distortion=300, domain=grid)
    assert channel.leakage(joint) == 0 and channel.bayes_error(joint) == 0.75
    assert len(np.unique(channel.sample(np.arange(100)))) == 1


def test_one_secret_one_value() -> None:
    one = least_leaking([[1, 2, 1]], distortion=0.25)
    assert one.leakage([[1, 2, 1]]) == 0 and (one.matrix == np.eye(3)).all()
    only = least_leaking([[3], [1]], distortion=0)
    assert only.matrix.tolist() == [[1.0]] and only.certificate.gap == 0


def test_no_distortion_at_all_is_the_identity() -> None:
    joint = np.array([[3.0, 1, 0, 0], [0, 1, 1, 2]])
    channel = least_leaking(joint, distortion=0)
    assert (channel.matrix == np.eye(4)).all()
    assert channel.certificate.gap < 1e-5
    assert (
        channel.leakage(joint) == pytest.approx(0.75 - 0.0 + 0.0, abs=1e-12) or channel.leakage(joint) > 0.5
    )


def test_values_without_mass_follow_the_nearest_with() -> None:
    joint = np.array([[3.0, 1, 0, 0, 0], [0, 0, 0, 1, 3]])
    channel = least_leaking(joint, distortion=1)
    assert (channel.matrix[2] == channel.matrix[1]).all()  # as near to 1 as to 3: the lower one
    empty = least_leaking(np.vstack([joint, np.zeros(5)]), distortion=1)
    assert empty.leakage(joint) == pytest.approx(channel.leakage(joint), abs=1e-12)


def test_counts_and_probabilities_are_the_same() -> None:
    joint = np.array([[3, 1, 0, 0, 0], [0, 0, 0, 1, 3]])
    one, two = (least_leaking(j, distortion=1).matrix for j in (joint, joint / 8))
    assert (one == two).all()


def test_a_metric_gives_a_budget_a_unit() -> None:
    joint, grid = square(10)
    short = least_leaking(joint, td.L2(), distortion="0.09 km", domain=grid)
    assert short.settings["distortion"] == 90.0 and short.settings["unit"] == "m"


def test_out_of_reach_names_the_least() -> None:
    cost = np.array([[1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(Refused, match="at least 1, above"):
        least_leaking([[1, 0], [0, 1]], cost, distortion=0.5)
    exact = least_leaking([[1, 0], [0, 1]], cost, distortion=1)
    assert exact.leakage([[1, 0], [0, 1]]) == pytest.approx(1) and exact.certificate.gap < 1e-5


def test_the_source_of_the_joint_law_is_kept() -> None:
    joint = [[1, 1], [0, 2]]
    assert least_leaking(joint, distortion=0.1).is_private
    assert not least_leaking(joint, distortion=0.1, source="disjoint").is_private


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"joint": [[1, np.nan], [0, 1]]}, SpecificationError),
        ({"joint": [[1, -1], [0, 1]]}, SpecificationError),
        ({"joint": [[0, 0], [0, 0]]}, SpecificationError),
        ({"joint": [1, 2]}, SpecificationError),
        ({"joint": [[1, 2, 3]]}, SpecificationError),
        ({"metric": np.array([[0, np.nan], [1, 0]])}, SpecificationError),
        ({"metric": np.array([[0, -1.0], [1, 0]])}, SpecificationError),
        ({"distortion": -1}, SpecificationError),
        ({"distortion": float("nan")}, SpecificationError),
        ({"tolerance": 0}, SpecificationError),
        ({"leakage": "guess"}, SpecificationError),
        ({"secrets": td.Full()}, SpecificationError),
        ({"epsilon": 1, "secrets": td.Full(), "leakage": "bayes"}, Unsupported),
        ({"source": "mine"}, SpecificationError),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], error: type[Exception]) -> None:
    told: dict[str, object] = {"joint": [[1, 0], [0, 1]], "metric": 1 - np.eye(2), "distortion": 0.25}
    with pytest.raises(error):
        least_leaking(**(told | change))  # type: ignore[arg-type]


def test_many_secrets_are_left_to_the_first_order_method() -> None:
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(20, 0.3), size=130) / 130
    cost = abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    found = search(Problem.of(joint, cost, 3.0), None, np.arange(20), 1e-3, 5.0)
    assert found.gap < 1e-2
    small = search(Problem.of(joint[:100] / joint[:100].sum(), cost, 3.0), None, np.arange(20), 1e-4, 5.0)
    assert small.gap <= 1e-4


@pytest.mark.parametrize("n", [10, 20])
def test_without_time_the_gap_is_honest(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DIRECT", 100)
    joint, grid = square(n)
    channel = least_leaking(joint, distortion=90, domain=grid, max_seconds=0.0)
    proof = channel.certificate
    assert proof is not None and proof.gap > 1e-3
    assert proof.bound <= GOLDEN[n, 90][0] <= channel.leakage(joint)
    assert channel.distortion(joint.sum(0)) <= 90


def test_a_line_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DIRECT", 100)
    at = np.arange(310.0)
    joint = np.stack([np.exp(-(((at - c) / s) ** 2)) for c, s in ((60, 30), (200, 50), (280, 10))])
    joint[:, 150:170] = 0
    line = td.Domain(x=td.Integer(0, 309))
    channel = least_leaking(joint, distortion=20, domain=line, tolerance=1e-2)
    proof = channel.certificate
    assert proof is not None and proof.gap <= 1e-2
    assert proof.bound <= recomputed(dict(proof.arrays)) <= proof.bound + 1e-8
    assert (
        channel.law.row_of[155] == channel.law.row_of[149]
        and channel.law.row_of[165] == channel.law.row_of[170]
    )


@pytest.mark.parametrize("seed", [4, 21, 49, 52, 100, 108])
def test_masses_of_any_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(2, 6)), int(rng.integers(2, 12))
    joint = rng.dirichlet(np.full(shape[0] * shape[1], 0.03)).reshape(shape)
    if seed % 4 == 0:
        joint = np.where(joint > 0.01, joint, joint * 1e-30)
    at = rng.random(shape[1])
    cost = abs(at[:, None] - at) * (1e6 if seed % 7 == 0 else 1.0)
    budget = rng.uniform(0.1, 0.9) * (joint.sum(0) @ cost).min()
    channel = least_leaking(joint, cost, distortion=budget)
    check(channel, joint, channel.certificate.value)
