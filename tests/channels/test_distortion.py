"""Channels of least distortion: known optima, a general solver, exact epsilon, and certificates that strangers can check."""

from __future__ import annotations

from fractions import Fraction
from math import exp, factorial, isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import examples

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.channels.bounds import bounds_of
from tetraodon.channels.channel import Channel
from tetraodon.channels.constrained import least_distortion
from tetraodon.channels.geo_interior import Program, exponential, solve
from tetraodon.channels.geometry import Geometry, distances
from tetraodon.channels.spanner import closure, needed, spanner
from tetraodon.channels.symmetry import Group
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.graphs import Graph

EXACT = {5: 1.228677, 7: 1.394617, 10: 1.530302}


def grid(rows: int, columns: int | None = None) -> td.Domain:
    box = ((0, columns or rows), (0, rows))
    return td.Domain(at=td.Point("x", "y", box=box, cell=1, metric="planar"))


def on_grid(side: int, delta: float) -> Any:
    """The programme of a spanner whose bounds are divided by δ, under an even prior."""
    lengths = distances(None, grid(side))
    which, orbit, size = Group.of_grid((side, side)).orbits
    first, second, _ = spanner(lengths, delta)
    program = Program(
        lengths[:, which] / side**2, first, second, lengths[first, second] / delta, size.astype(float), orbit
    )
    return solve(program, exponential(lengths / delta, which, program.weight, orbit))


def by_general_solver(prior: Any, cost: Any, first: Any, second: Any, losses: Any) -> float:
    """The optimum with every constraint written out."""
    n, outputs = cost.shape
    rows = []
    for a, b, loss in zip([*first, *second], [*second, *first], [*losses, *losses], strict=True):
        for z in range(outputs):
            row = np.zeros((n, outputs))
            row[a, z], row[b, z] = exp(-loss / 2), -exp(loss / 2)
            rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones(outputs))
    upper = np.array(rows).reshape(-1, n * outputs)
    found = linprog(
        (prior[:, None] * cost).ravel(), A_ub=upper, b_ub=np.zeros(len(upper)), A_eq=sums, b_eq=np.ones(n)
    )
    assert found.status == 0
    return float(found.fun)


def exactly_keeps(channel: Channel, a: int, b: int, loss: Fraction) -> bool:
    """K[a, z] ≤ e^loss K[b, z] and back, in rationals; a partial sum of the series is below e^loss."""
    power = sum((loss**k / factorial(k) for k in range(60)), Fraction(0))
    table: Any = channel.law
    x, y = table.exact_row(table.row_of[a]), table.exact_row(table.row_of[b])
    return all(p <= power * q and q <= power * p for p, q in zip(x, y, strict=True))


def bound_from_file(path: Any) -> float:
    """What a saved certificate proves, from its arrays alone."""
    told = np.load(path)
    prior, cost, below, above, output, exponent, multiplier = (
        told[f"certificate.{name}"]
        for name in ("prior", "cost", "below", "above", "output", "exponent", "multiplier")
    )
    assert (multiplier >= 0).all()
    reduced = prior[:, None] * cost
    for a, b, z, e, y in zip(below, above, output, exponent, multiplier, strict=True):
        reduced[a, z] += y
        reduced[b, z] -= y * np.exp(e)
    return float(reduced.min(axis=1).sum())


# ---------- known optima ----------


@pytest.mark.parametrize("side", EXACT)
def test_square_grids(side: int) -> None:
    channel = least_distortion(epsilon=1, epsilon_per=1, domain=grid(side))
    told = channel.certificate
    assert told is not None and told.value == pytest.approx(EXACT[side], abs=2e-6)
    assert 0 <= told.value - told.bound <= 5e-6 * told.value
    assert channel.distortion() == pytest.approx(told.value, rel=1e-12)
    assert Fraction(999_999, 10**6) < channel.epsilon_per(1) <= 1


@pytest.mark.parametrize(
    ("side", "delta", "pairs", "loss"),
    [
        (5, 1.05, 120, 1.265764), (5, 1.1, 72, 1.282462), (5, 1.25, 72, 1.361768), (7, 1.05, 276, 1.437444),
        (7, 1.1, 156, 1.453316), (7, 1.25, 156, 1.577903), (10, 1.1, 342, 1.600056),
    ],
)  # fmt: skip
def test_spanners_divided_by_delta(side: int, delta: float, pairs: int, loss: float) -> None:
    found = on_grid(side, delta)
    assert found.forward.shape[0] == pairs
    assert found.value == pytest.approx(loss, abs=2e-6)
    assert found.bound <= found.value <= found.bound * (1 + 2e-6)


@pytest.mark.parametrize(("side", "worse"), [(5, 1.265764), (7, 1.437444)])
def test_spanner_uses_all_of_epsilon(side: int, worse: float) -> None:
    channel = least_distortion(epsilon=1, epsilon_per=1, domain=grid(side), method="spanner")
    told = channel.certificate
    assert told is not None and channel.settings["method"] == "spanner"
    assert told.bound <= EXACT[side] <= told.value < worse
    assert told.gap < 0.02 * told.value
    assert 0.999 < channel.epsilon_per(1) <= 1


@pytest.mark.parametrize("n", [2, 3, 6])
def test_randomised_response_is_the_optimum_of_local_privacy(n: int) -> None:
    domain = td.Domain(vote=td.Categorical([f"v{k}" for k in range(n)]))
    channel = least_distortion(metric=td.Discrete(), secrets=td.Full(), epsilon="0.7", domain=domain)
    told = channel.certificate
    assert told is not None and told.value == pytest.approx((n - 1) / (exp(0.7) + n - 1), rel=2e-6)
    assert channel.epsilon(td.Full()) <= Fraction(7, 10)


def test_two_values_under_a_prior() -> None:
    """With 8 : 2 and e < 4 the best channel always says the likelier value; with 7 : 3 it sometimes says the other."""
    steps = td.Domain(x=td.Integer(0, 1))
    for prior, least in (([8, 2], 0.2), ([7, 3], 1 / (1 + exp(1)))):
        channel = least_distortion(prior, secrets=td.Full(), epsilon=1, domain=steps, source="public")
        assert channel.certificate is not None
        assert channel.certificate.value == pytest.approx(least, rel=1e-5)
    assert least_distortion([8, 2], secrets=td.Full(), epsilon=1, domain=steps).is_private


# ---------- against a general solver ----------


@st.composite
def programs(draw: Any) -> tuple[td.Domain, dict[str, Any], Any, Any]:
    """A small grid or line, a policy, a prior with or without zeros, a table of losses to as many or other outputs."""
    rows, columns = draw(st.sampled_from([(1, 1), (1, 2), (1, 5), (2, 3), (3, 3), (2, 4)]))
    domain = grid(rows, columns)
    n = rows * columns
    kind = draw(st.sampled_from(["per", "within", "full", "partition", "edges"]))
    asked: dict[str, Any] = {"epsilon": draw(st.sampled_from(["0.05", "1/3", "1", "2.5", "7"]))}
    if kind == "per":
        asked["epsilon_per"] = draw(st.sampled_from([1, "1/2", 3]))
    elif kind == "edges":
        pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
        told = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
        axis = Axis(n, pairs=np.array(told, dtype=np.int64).reshape(-1, 2))
        asked["secrets"] = Graph(domain, "flat", (axis,))
    else:
        blocks = td.Partition(blocks=(min(2, rows), min(2, columns)))
        asked["secrets"] = {"within": td.Within(1), "full": td.Full(), "partition": blocks}[kind]
    weights = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any))
    outputs = draw(st.sampled_from([None, 1, 4]))
    cost = None
    if outputs is not None or draw(st.booleans()):
        size = n if outputs is None else outputs
        cost = np.array(draw(st.lists(st.integers(0, 6), min_size=n * size, max_size=n * size)), dtype=float)
        cost = cost.reshape(n, size) * draw(st.sampled_from([1.0, 1000.0]))
    return domain, asked, np.array(weights, dtype=float), cost


@examples(40)
@given(programs())
def test_agrees_with_a_general_solver(made: Any) -> None:
    domain, asked, weights, cost = made
    to = None if cost is None else td.Domain(z=td.Integer(0, cost.shape[1] - 1))
    channel = least_distortion(weights, cost, **asked, domain=domain, outputs=to, source="public")
    bounds = bounds_of(domain, **asked)
    table = distances(None, domain) if cost is None else cost
    prior = weights / weights.sum()
    least = by_general_solver(prior, table, bounds.first, bounds.second, bounds.losses)
    scale = float((prior @ table).max())
    told = channel.certificate
    assert told is not None
    assert told.bound <= least + 1e-7 * scale
    assert least - 1e-7 * scale <= told.value <= least + 2e-6 * least + 2e-6 * scale
    assert told.value - told.bound <= 2e-5 * scale


@examples(40)
@given(programs())
def test_epsilon_is_kept_exactly(made: Any) -> None:
    domain, asked, weights, cost = made
    to = None if cost is None else td.Domain(z=td.Integer(0, cost.shape[1] - 1))
    channel = least_distortion(weights, cost, **asked, domain=domain, outputs=to, source="public")
    amount = Fraction(asked["epsilon"])
    if "secrets" in asked:
        bounds = bounds_of(domain, **asked)
        edges = list(zip(bounds.first.tolist(), bounds.second.tolist(), strict=True))
        losses = [amount] * len(edges)
    else:
        columns = Geometry(domain).shape[1]
        edges = [(a, b) for b in range(domain.size) for a in range(b)]
        squares = [(b // columns - a // columns) ** 2 + (b % columns - a % columns) ** 2 for a, b in edges]
        roots = [Fraction(isqrt(s << 100), 1 << 50) for s in squares]
        losses = [amount / Fraction(asked["epsilon_per"]) * r for r in roots]
    assert all(exactly_keeps(channel, a, b, loss) for (a, b), loss in zip(edges, losses, strict=True))
    every = np.arange(channel.law.n_inputs)
    assert channel.law.rows(every).sum(axis=1) == pytest.approx(1)


def test_all_methods_agree() -> None:
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(16))
    told = [
        least_distortion(prior, epsilon=1, epsilon_per=1, domain=grid(4), source="public", method=method)
        for method in ("exact", "highs", "spanner")
    ]
    exact, highs, few = (c.certificate for c in told)
    assert exact is not None and highs is not None and few is not None
    assert exact.value == pytest.approx(highs.value, rel=2e-6)
    assert exact.bound == pytest.approx(highs.bound, rel=2e-6)
    assert few.bound <= exact.value <= few.value <= 1.02 * exact.value
    assert all(c.epsilon_per(1) <= 1 for c in told)


def test_units_change_nothing() -> None:
    """Metres or kilometres: the same channel, a thousand times the distortion."""
    metres = td.Domain(
        at=td.Point("x", "y", box=((0, 4000), (0, 4000)), cell=1000, metric="planar", unit="m")
    )
    rng = np.random.default_rng(5)
    prior = rng.dirichlet(np.ones(16))
    small = least_distortion(prior, epsilon=1, epsilon_per=1, domain=grid(4))
    large = least_distortion(prior, epsilon=1, epsilon_per="km", domain=metres)
    assert small.certificate is not None and large.certificate is not None
    assert large.certificate.value == pytest.approx(1000 * small.certificate.value, rel=3e-6)
    assert large.certificate.unit == "m"
    assert str(large.asked) == "epsilon 1 per km"


def test_symmetry_is_used_only_where_it_is() -> None:
    """A prior that is even but for one cell: the optimum differs from that of the even prior, and is a general solver's."""
    even = np.ones(9)
    odd = even.copy()
    odd[1] = 5
    domain = grid(3)
    bounds = bounds_of(domain, 1, epsilon_per=1)
    for weights in (even, odd):
        prior = weights / weights.sum()
        least = by_general_solver(prior, distances(None, domain), bounds.first, bounds.second, bounds.losses)
        channel = least_distortion(weights, epsilon=1, epsilon_per=1, domain=domain, source="public")
        assert channel.certificate is not None
        assert channel.certificate.value == pytest.approx(least, rel=2e-6)
    turned = channel.matrix[::-1, ::-1]
    assert np.abs(turned - channel.matrix).max() > 0.01


# ---------- certificates ----------


@pytest.mark.parametrize("method", ["exact", "spanner", "highs"])
def test_certificate_is_rechecked_from_the_file(tmp_path: Any, method: str) -> None:
    rng = np.random.default_rng(7)
    prior = rng.dirichlet(np.ones(20))
    prior[3] = 0
    channel = least_distortion(
        prior, epsilon=1, epsilon_per=1, domain=grid(4, 5), source="public", method=method
    )
    channel.save(tmp_path / "channel.npz")
    told = channel.certificate
    assert told is not None
    assert bound_from_file(tmp_path / "channel.npz") == pytest.approx(told.bound, rel=1e-9)
    again = Channel.load(tmp_path / "channel.npz")
    assert again.certificate is not None and again.certificate.value == told.value
    # every inequality of the proof is one that was asked for, or weaker
    lengths = distances(None, grid(4, 5))
    arrays = told.arrays
    assert (arrays["exponent"] >= lengths[arrays["below"], arrays["above"]] * (1 - 1e-15)).all()
    assert (arrays["exponent"] <= lengths[arrays["below"], arrays["above"]] * (1 + 1e-10)).all()


def test_certificates_of_components_and_of_outputs_left_out(tmp_path: Any) -> None:
    channel = least_distortion(
        [1, 2, 0, 4, 5, 6, 7, 8],
        secrets=td.Partition(blocks=(1, 2)),
        epsilon=1,
        domain=grid(2, 4),
        source="public",
    )
    channel.save(tmp_path / "channel.npz")
    told = channel.certificate
    assert told is not None and channel.settings["components"] == 2
    assert bound_from_file(tmp_path / "channel.npz") == pytest.approx(told.bound, rel=1e-9)
    assert told.gap < 1e-5 * told.value


# ---------- degenerate cases, refusals ----------


def test_no_edges_gives_the_truth() -> None:
    channel = least_distortion(secrets=td.Nothing(), epsilon=1, domain=grid(3))
    assert channel.matrix.tolist() == np.eye(9).tolist()
    assert channel.certificate is not None and channel.certificate.value == channel.certificate.bound == 0


def test_one_cell() -> None:
    for policy in ({"secrets": td.Full()}, {"epsilon_per": 1}):
        channel = least_distortion(epsilon=1, domain=grid(1), **policy)
        assert channel.matrix.tolist() == [[1.0]]


def test_components_are_kept_apart() -> None:
    channel = least_distortion(secrets=td.Partition(blocks=(2, 2)), epsilon=1, domain=grid(4))
    assert channel.settings["components"] == 4
    blocks = np.arange(16).reshape(4, 4)[:2, :2].ravel()
    others = np.setdiff1d(np.arange(16), blocks)
    assert channel.matrix[np.ix_(blocks, others)].max() == 0
    assert channel.epsilon(td.Partition(blocks=(2, 2))) <= 1
    assert channel.epsilon(td.Full()) == float("inf")


def test_values_without_prior_mass_are_protected_too() -> None:
    prior = np.zeros(9)
    prior[[0, 8]] = 0.5
    channel = least_distortion(prior, epsilon=1, epsilon_per=1, domain=grid(3), source="public")
    assert channel.epsilon_per(1) <= 1
    assert (channel.matrix.sum(axis=1) > 0.99).all()


@pytest.mark.parametrize("epsilon", ["1e-4", "0.02", 9, 40, 90, 1000])
def test_extreme_epsilon(epsilon: Any) -> None:
    channel = least_distortion(epsilon=epsilon, epsilon_per=1, domain=grid(4))
    told = channel.certificate
    assert told is not None and channel.epsilon_per(1) <= Fraction(epsilon)
    assert -1e-300 <= told.value - told.bound <= 3e-6 * told.value + 1e-13
    assert (channel.matrix > 0).all() or Fraction(epsilon) < Fraction(1, 10)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"prior": [1, 2, 3]}, "9 numbers"),
        ({"prior": [1.0] * 8 + [float("nan")]}, "finite"),
        ({"prior": [-1.0] + [1.0] * 8}, "not negative"),
        ({"prior": [0] * 9}, "above 0"),
        ({"metric": np.full((9, 9), np.nan)}, "finite"),
        ({"metric": -np.ones((9, 9))}, "not negative"),
        ({"metric": np.ones((9, 8))}, "shape"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": "1e-12"}, "10^-9"),
        ({"secrets": td.Full()}, "one of them"),
        ({"epsilon_per": None}, "one of them"),
        ({"method": "simplex"}, "method"),
        ({"source": "mine", "prior": [1] * 9}, "source"),
    ],
)
def test_what_is_refused(told: Any, words: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        least_distortion(**({"epsilon": 1, "epsilon_per": 1, "domain": grid(3)} | told))
    assert words in str(caught.value)


def test_too_many_cells_are_refused_with_what_to_do() -> None:
    with pytest.raises(Unsupported, match="tight_constraints"):
        least_distortion([*range(1, 1601)], epsilon=1, epsilon_per=1, domain=grid(40))


def test_auto_does_not_take_an_hour_unasked() -> None:
    with pytest.raises(Unsupported, match="patience"):
        least_distortion([*range(1, 362)], epsilon=1, epsilon_per=1, domain=grid(19))


def test_cells_without_a_domain() -> None:
    channel = least_distortion([1, 2, 0, 4], secrets=td.Within(1), epsilon=1)
    assert channel.domain.size == 4
    with pytest.raises(SpecificationError, match="domain"):
        least_distortion(secrets=td.Within(1), epsilon=1)


def test_special_cells() -> None:
    """Whether a value is missing is a secret like the others, and costs as much as the widest mistake."""
    domain = td.Domain(x=td.Integer(0, 3, missing="secret"))
    channel = least_distortion(
        [1, 2, 3, 4, 1], secrets=td.Within(1), epsilon=1, domain=domain, source="public"
    )
    assert channel.epsilon(td.Within(1)) <= 1
    bounds = bounds_of(domain, 1, secrets=td.Within(1))
    prior = np.array([1, 2, 3, 4, 1]) / 11
    table = distances(None, domain)
    least = by_general_solver(prior, table, bounds.first, bounds.second, bounds.losses)
    assert table[4, :4].tolist() == [3.0] * 4
    assert channel.certificate is not None and channel.certificate.value == pytest.approx(least, rel=2e-6)


def test_refusals_tell_nothing_of_a_private_prior() -> None:
    """Neither zeros nor symmetries of a private prior change what is taken on, or what is said."""
    told = []
    for weights in (np.ones(1600), np.eye(1600)[0], np.arange(1600)):
        with pytest.raises(Unsupported) as caught:
            least_distortion(weights, epsilon=1, epsilon_per=1, domain=grid(40))
        told.append(str(caught.value))
    assert len(set(told)) == 1


def test_methods_tell_nothing_of_a_private_prior() -> None:
    told = [
        least_distortion(weights, epsilon=1, epsilon_per=1, domain=grid(3)).settings
        for weights in (np.ones(9), np.eye(9)[0], np.arange(9))
    ]
    assert told[0] == told[1] == told[2]


# ---------- what the programme leaves out ----------


@examples(60)
@given(st.integers(2, 7), st.integers(0, 10**6), st.booleans())
def test_needed_pairs_imply_all(n: int, seed: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (n, 2)).astype(float) + (0 if whole else 0.1) * rng.random((n, 2))
    lengths = np.abs(points[:, None] - points[None]).sum(axis=2) + 1e-3 * (1 - np.eye(n))
    keep = np.argwhere(needed(lengths))
    ways = closure(n, keep[:, 0], keep[:, 1], lengths[keep[:, 0], keep[:, 1]])
    assert ways == pytest.approx(lengths, rel=1e-8)


@examples(60)
@given(st.integers(2, 9), st.integers(0, 10**6), st.sampled_from([1.0, 1.1, 1.5, 3.0]))
def test_spanners_span(n: int, seed: int, delta: float) -> None:
    points = np.random.default_rng(seed).random((n, 2))
    lengths = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    first, second, longest = spanner(lengths, delta)
    ways = closure(n, first, second, lengths[first, second])
    off = ~np.eye(n, dtype=bool)
    assert (ways[off] / lengths[off]).max() == pytest.approx(longest)
    assert longest <= delta * (1 + 1e-9)


# ---------- larger ones ----------


@pytest.mark.slow
@pytest.mark.parametrize(("side", "loss"), [(12, 1.586338), (15, 1.644215), (20, 1.703932)])
def test_larger_grids(side: int, loss: float) -> None:
    channel = least_distortion(epsilon=1, epsilon_per=1, domain=grid(side))
    told = channel.certificate
    assert told is not None and channel.settings["method"] == "exact"
    assert told.value == pytest.approx(loss, rel=5e-6)
    assert told.gap <= 1e-5 * told.value
    assert channel.epsilon_per(1) <= 1


@pytest.mark.slow
def test_every_column_on_its_own_gives_the_same() -> None:
    """10 × 10 without the help of symmetry."""
    weights = np.ones(100)
    weights[0] += 1e-9
    channel = least_distortion(weights, epsilon=1, epsilon_per=1, domain=grid(10), source="public")
    told = channel.certificate
    assert told is not None and told.value == pytest.approx(EXACT[10], abs=3e-6)
    assert told.gap <= 5e-5 * told.value


@pytest.mark.slow
def test_spanner_of_an_uneven_grid() -> None:
    prior = np.random.default_rng(1).dirichlet(np.ones(225))
    channel = least_distortion(prior, epsilon=1, epsilon_per=1, domain=grid(15), source="public")
    told = channel.certificate
    assert told is not None and channel.settings["method"] == "spanner"
    assert told.gap <= 0.02 * told.value
    assert channel.epsilon_per(1) <= 1
