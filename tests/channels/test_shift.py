"""Laws that move by offsets: against their dense matrices, exactly where that is small."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.grids import clamped, pairwise, plane
from scipy.stats import chi2

from tetraodon.channels import planar
from tetraodon.channels.bounds import Bounds
from tetraodon.channels.channel import Channel
from tetraodon.channels.geometry import Geometry
from tetraodon.channels.shift import Promise, Shift
from tetraodon.channels.states import fast_length
from tetraodon.domain import Domain, Integer, Point
from tetraodon.errors import DataError, SpecificationError, Unsupported
from tetraodon.metrics import L1, L2, Discrete, Haversine

F = Fraction
SHAPES = [(1, 1), (1, 2), (2, 1), (1, 5), (4, 1), (2, 2), (2, 3), (3, 2), (3, 3), (4, 6), (7, 3)]


def any_law(shape: tuple[int, int], seed: int = 0, fixed: int = 0) -> Shift:
    """A law without any symmetry."""
    made = np.random.default_rng(seed).random((2 * shape[0] - 1, 2 * shape[1] - 1)) ** 3 + 1e-4
    return Shift.of(made / made.sum(), fixed)


def dense(law: Shift) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in clamped(law.exact())])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fixed", [0, 1])
def test_rows_are_those_of_the_definition(shape: tuple[int, int], fixed: int) -> None:
    law, n = any_law(shape, 1, fixed), shape[0] * shape[1]
    expected = np.zeros((n + fixed, n + fixed))
    expected[:n, :n] = dense(any_law(shape, 1))
    expected[n:, n:] = np.eye(fixed)
    cells = np.random.default_rng(2).permutation(n + fixed)
    assert law.shape == shape and law.n_inputs == law.n_outputs == n + fixed
    np.testing.assert_allclose(law.rows(cells), expected[cells], rtol=1e-14, atol=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32), st.integers(0, 2), st.integers(1, 4))
def test_push_is_a_product_with_the_matrix(r: int, c: int, seed: int, fixed: int, secrets: int) -> None:
    law = any_law((r, c), seed, fixed)
    joint = np.random.default_rng(seed).random((secrets, law.n_inputs)) ** 4
    joint /= joint.sum()
    pushed = law.push(joint)
    np.testing.assert_allclose(pushed, joint @ law.rows(np.arange(law.n_inputs)), rtol=0, atol=1e-15)
    assert pushed.min() >= 0


def test_push_in_parts_is_push(monkeypatch: pytest.MonkeyPatch) -> None:
    law = any_law((5, 4), 3)
    joint = np.random.default_rng(4).random((7, 20)) / 140
    whole = law.push(joint)
    monkeypatch.setattr("tetraodon.channels.shift.CHUNK", 2 * fast_length(13) * fast_length(10))
    np.testing.assert_allclose(law.push(joint), whole, rtol=0, atol=1e-17)


@pytest.mark.parametrize("least", [1, 2, 7, 13, 97, 766, 1021, 3070])
def test_lengths_of_transforms(least: int) -> None:
    smooth = [n for n in range(least, 2 * least + 1) if _divided(n) == 1]
    assert fast_length(least) == smooth[0]


def _divided(n: int) -> int:
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n


@pytest.mark.parametrize("shape", SHAPES)
def test_losses_are_the_largest_of_their_offset(shape: tuple[int, int]) -> None:
    """Exactly the largest over all pairs that far apart, and no pair loses more than is said of it."""
    law, n, columns = any_law(shape, 5), shape[0] * shape[1], shape[1]
    true = pairwise(dense(law))
    a, b = (v.ravel() for v in np.indices((n, n)))
    told = law.losses(a, b)
    assert (told >= true.ravel()).all() and (told[a == b] == 0).all()
    offset = (b // columns - a // columns) * 100 + b % columns - a % columns
    for each in np.unique(np.abs(offset)):
        some = np.abs(offset) == each
        assert told[some].max() - told[some].min() == 0
        assert told[some][0] - true.ravel()[some].max() < 1e-12


def test_special_cells_are_told_from_all_others() -> None:
    law = any_law((2, 3), 6, fixed=2)
    told = law.losses(np.array([0, 6, 6, 7, 6]), np.array([6, 6, 7, 1, 5]))
    assert told.tolist() == [np.inf, 0.0, np.inf, np.inf, np.inf]


@pytest.mark.parametrize("metric", [None, L2(), L1(), Discrete(), L2(at=3), L1(at="0.5")])
@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (2, 2), (5, 4)])
def test_expected_distance_of_every_cell(metric: L1 | L2 | Discrete | None, shape: tuple[int, int]) -> None:
    place = Geometry(plane(*shape, height=2, width=2))
    law, n = any_law(shape, 7), shape[0] * shape[1]
    prior = np.random.default_rng(8).random(n)
    cells = np.arange(n)
    cost = place.between(metric, cells[:, None], cells[None, :])
    expected = float((prior[:, None] * dense(law) * cost).sum())
    assert law.expected(prior, metric, place) == pytest.approx(expected, rel=1e-13)
    assert law.expected(prior, cost, place) == pytest.approx(expected, rel=1e-13)


def test_expected_distance_over_two_attributes_with_weights() -> None:
    domain = Domain(x=Integer(0, 3), y=Integer(10, 14))
    law, place, cells = any_law((4, 5), 9), Geometry(domain), np.arange(20)
    prior = np.random.default_rng(10).random(20)
    for metric in (L1(x=2, y=5), L2(x=2, y=5)):
        cost = place.between(metric, cells[:, None], cells[None, :])
        told = law.expected(prior, metric, place)
        assert told == pytest.approx(float((prior[:, None] * dense(law) * cost).sum()), rel=1e-13)
    with pytest.raises(SpecificationError):
        law.expected(prior, L1(x=2), place)


def test_expected_great_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain(home=Point("lat", "lon", box=((48, 49), (2, 3)), cell="20 km", missing="public"))
    place = Geometry(domain)
    law = any_law(place.shape, 11, fixed=1)
    cells = np.arange(domain.size)
    prior = np.full(domain.size, 1 / domain.size)
    cost = place.between(Haversine(), cells[:, None], cells[None, :])
    expected = float((prior[:, None] * law.rows(cells) * cost).sum())
    assert law.expected(prior, Haversine(), place) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr("tetraodon.channels.shift.SPHERICAL", 10)
    with pytest.raises(Unsupported, match="great circles"):
        law.expected(prior, Haversine(), place)


def test_special_cells_cost_nothing() -> None:
    domain = Domain(x=Integer(0, 3, missing="public"))
    law = any_law((1, 4), 12, fixed=1)
    place = Geometry(domain)
    assert law.expected(np.array([0, 0, 0, 0, 1.0]), None, place) == 0
    cells = np.arange(4)
    expected = float((dense(law) * np.abs(cells[:, None] - cells)).sum() / 8)
    assert law.expected(np.array([1, 1, 1, 1, 4]) / 8, None, place) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("shape", [(1, 3), (3, 4)])
def test_draws_have_the_law_of_the_rows(shape: tuple[int, int]) -> None:
    law, n = any_law(shape, 13, fixed=1), shape[0] * shape[1]
    for cell in (0, n // 2, n - 1):
        drawn = law.draw(np.full(60_000, cell))
        counts = np.bincount(drawn, minlength=n + 1)
        expected = law.rows(np.array([cell]))[0] * 60_000
        assert counts[n] == 0
        statistic = float(((counts[:n] - expected[:n]) ** 2 / expected[:n]).sum())
        assert chi2.sf(statistic, n - 1) > 1e-9
    assert law.draw(np.array([n, n])).tolist() == [n, n]


def test_draws_are_independent() -> None:
    """Two records of one cell: all pairs of outputs come as often as a product says."""
    law = Shift.of([[0.1, 0.2, 0.4, 0.2, 0.1]])
    pairs = law.draw(np.tile([1, 1], 40_000)).reshape(-1, 2)
    row = law.rows(np.array([1]))[0]
    counts = np.bincount(pairs[:, 0] * 3 + pairs[:, 1], minlength=9)
    expected = np.outer(row, row).ravel() * len(pairs)
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), 8) > 1e-9


def test_the_law_is_exact() -> None:
    law = Shift.of([[0.1, 0.3, 0.6]])
    [row] = law.exact()
    assert sum(row) == 1 and row[0] == F(0.1) and row[1] == F(0.3) and row[2] == 1 - F(0.1) - F(0.3)
    assert law.rest == 2 and law.entries[0, 2] == float(row[2])
    assert not law.entries.flags.writeable


@pytest.mark.parametrize(
    "table",
    [
        [[0.5, 0.5]],
        [[0.5, 0.0, 0.5]],
        [[0.5, float("nan"), 0.5]],
        [[0.5, 0.6, 0.5]],
        [[0.9, 0.2, -0.1]],
        [[1e-300, 0.5, 0.5]],
        [0.25, 0.5, 0.25],
        [[]],
    ],
)
def test_tables_that_are_no_law(table: list[list[float]]) -> None:
    with pytest.raises(SpecificationError):
        Shift.of(table)


def test_keeps_and_bounds() -> None:
    law = planar.law("geometric", F(1), (F(1), F(1)), (3, 4))
    place = Geometry(plane(3, 4))
    a, b = np.triu_indices(12, 1)
    apart = place.between(None, a, b)
    assert law.keeps(Bounds(a, b, apart))
    assert not law.keeps(Bounds(a, b, apart * (1 - 1e-10)))


def test_saved_and_loaded(tmp_path: Path) -> None:
    law = planar.law("laplace", F(1, 3), (F(2), F(3, 2)), (6, 5), fixed=1)
    channel = Channel(Domain(x=Integer(0, 29, missing="public")), law)
    channel.save(tmp_path / "one.npz")
    again = Channel.load(tmp_path / "one.npz")
    assert isinstance(again.law, Shift)
    assert np.array_equal(again.law.entries, law.entries)
    assert (again.law.rest, again.law.fixed, again.law.promise) == (law.rest, law.fixed, law.promise)


def test_a_wide_promise_is_loaded_as_it_was(tmp_path: Path) -> None:
    law = planar.again("geometric", F(1), (F(1), F(1)), (3, 3), error=1e-9)
    Channel(plane(3, 3), law).save(tmp_path / "wide.npz")
    again = Channel.load(tmp_path / "wide.npz").law
    assert isinstance(again, Shift) and again.promise == law.promise and again.promise is not None
    assert again.promise.spread == 2e-9


def test_a_promise_that_the_numbers_do_not_keep_is_refused(tmp_path: Path) -> None:
    """A file that says "geometric of rate 1" over the numbers of another law would be believed on large grids."""
    law = any_law((4, 4), 14)
    liar = Shift(law.entries, law.rest, 0, Promise("geometric", F(1), (F(1), F(1)), 1e-12))
    Channel(plane(4, 4), liar).save(tmp_path / "liar.npz")
    with pytest.raises(DataError):
        Channel.load(tmp_path / "liar.npz")
    Channel(plane(4, 4), law).save(tmp_path / "plain.npz")
    assert Channel.load(tmp_path / "plain.npz").law.losses(np.array([0]), np.array([1]))[0] > 0


def test_many_offsets_are_answered_by_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    law = planar.law("geometric", F(1), (F(1), F(1)), (6, 7))
    offsets = np.array([(d, k) for d in range(6) for k in range(-6, 7)])
    direct = law.losses_of(offsets)
    monkeypatch.setattr("tetraodon.channels.shift.DIRECT", 0)
    promised = law.losses_of(offsets)
    assert (promised >= direct).all() and (promised <= np.hypot(*offsets.T)).all()
    assert promised[6] == direct[6] == 0 and promised[5] < 1
