"""The envelope: whatever a solver hands over, the exact table keeps its bounds, and changes as little as it can."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tetraodon as td
from tetraodon.channels.bounds import Bounds, bounds_of
from tetraodon.channels.repair import envelope, repaired
from tetraodon.channels.spanner import closure
from tetraodon.channels.table import Table
from tetraodon.errors import SpecificationError


def plane(side: int) -> td.Domain:
    return td.Domain(at=td.Point("x", "y", box=((0, side), (0, side)), cell=1, metric="planar"))


def keeps(table: Table, bounds: Bounds) -> bool:
    """In rationals, from the table's exact rows; a partial sum of the series is below e^loss."""
    rows = [table.exact_row(int(r)) for r in table.row_of]
    assert all(sum(row) == 1 for row in rows)
    for a, b, loss in zip(bounds.first, bounds.second, bounds.losses, strict=True):
        power = sum((Fraction(loss) ** k / factorial(k) for k in range(60)), Fraction(0))
        if not all(p <= power * q and q <= power * p for p, q in zip(rows[a], rows[b], strict=True)):
            return False
    return True


@pytest.fixture(scope="module")
def ten() -> tuple[Bounds, Any, Any]:
    """10 × 10 cells of side 1, ε = 1 for each unit: its bounds, its distances, an exponential channel."""
    bounds = bounds_of(plane(10), 1, epsilon_per=1)
    apart = np.zeros((100, 100))
    apart[bounds.first, bounds.second] = apart[bounds.second, bounds.first] = bounds.losses
    weight = np.exp(-apart / 2)
    return bounds, apart, weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("size", [1e-10, 1e-7])
def test_one_entry_beside_an_exact_zero(ten: Any, size: float) -> None:
    """Mixing with a private channel realises 3.8 and 10.7 here, at weights of 10^-8."""
    bounds, apart, matrix = ten
    broken = matrix.copy()
    broken[:, 0] = 0
    broken[50, 0] = size
    broken /= broken.sum(axis=1, keepdims=True)
    assert not Table.of(broken).keeps(bounds)
    table = repaired(broken, bounds)
    assert table.keeps(bounds)
    realised = table.losses(bounds.first, bounds.second) / apart[bounds.first, bounds.second]
    assert 0.999_999 < realised.max() <= 1
    assert np.abs(table.rows(np.arange(100)) - broken).max() < size
    column = table.rows(np.arange(100))[:, 0]
    assert (column > 0).all()  # all or nothing


def test_what_keeps_its_bounds_is_left_alone(ten: Any) -> None:
    bounds, _, matrix = ten
    table, same = repaired(matrix, bounds), Table.of(matrix)
    assert np.array_equal(table.entries, same.entries) and np.array_equal(table.columns, same.columns)


def test_the_truth_itself(ten: Any) -> None:
    """Far off: the result is near the exponential channel, not near saying nothing."""
    bounds, apart, _ = ten
    table = repaired(np.eye(100), bounds)
    assert table.keeps(bounds)
    least, even = 1.53, float(apart.mean(axis=0).min())
    loss = float((table.rows(np.arange(100)) * apart).sum() / 100)
    assert least < loss < 0.7 * even


def test_entries_smaller_than_doubles() -> None:
    """e^-900 is not a double; the entry is floored, not zero."""
    bounds = Bounds(np.array([0]), np.array([1]), np.array([900.0]))
    table = repaired(np.eye(2), bounds)
    assert table.keeps(bounds)
    assert (table.entries > 0).all()
    assert table.entries.min() < 1e-200


def test_bounds_that_rounding_decides() -> None:
    bounds = Bounds(np.array([0]), np.array([1]), np.array([1e-18]))
    table = repaired([[0.5, 0.5, 0], [0.4, 0.5, 0.1]], bounds)
    assert table.keeps(bounds) and keeps(table, bounds)
    assert table.entries[0].tolist() == table.entries[1].tolist()


def test_components_do_not_mix() -> None:
    bounds = Bounds(np.array([0, 2]), np.array([1, 3]), np.array([1.0, 1.0]))
    matrix = np.eye(4)
    table = repaired(matrix, bounds)
    rows = table.rows(np.arange(4))
    assert table.keeps(bounds)
    assert rows[:2, 2:].max() == 0 == rows[2:, :2].max()
    assert (rows[:2, :2] > 0).all() and (rows[2:, 2:] > 0).all()


def test_outputs_by_name() -> None:
    bounds = Bounds(np.array([0]), np.array([1]), np.array([1.0]))
    table = repaired([[1 - 1e-9, 1e-9], [1, 0]], bounds, np.array([2, 5]), 7)
    assert table.columns.tolist() == [2, 5] and table.n_outputs == 7
    assert table.keeps(bounds)


def test_no_pairs_nothing_to_repair() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert repaired(np.eye(3), Bounds(none, none, np.zeros(0))).entries.tolist() == np.eye(3).tolist()


def test_refusals() -> None:
    bounds = Bounds(np.array([0]), np.array([5]), np.array([1.0]))
    for matrix in (np.eye(3), [[1.0, -0.1], [0.5, 0.5]], [[np.nan, 1.0]], [[0.5, 0.1]], "no"):
        with pytest.raises(SpecificationError):
            repaired(matrix, bounds)


@st.composite
def instances(draw: Any) -> tuple[Any, Bounds]:
    """Any table with zeros and near-zeros, any graph, any losses."""
    n, outputs = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    sizes = st.sampled_from([0.0, 0.0, 1e-300, 1e-17, 1e-10, 1e-7, 1e-3, 0.1, 1.0, 1.0])
    matrix = np.array(draw(st.lists(sizes, min_size=n * outputs, max_size=n * outputs))).reshape(n, outputs)
    matrix[:, draw(st.integers(0, outputs - 1))] += 0.5
    matrix /= matrix.sum(axis=1, keepdims=True)
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
    told = np.array(sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]}), dtype=np.int64).reshape(-1, 2)
    losses = draw(
        st.lists(st.sampled_from([5e-16, 1e-6, 0.01, 0.5, 1.0, 3.0]), min_size=len(told), max_size=len(told))
    )
    return matrix, Bounds(told[:, 0], told[:, 1], np.array(losses, dtype=float))


@examples(120)
@given(instances())
def test_always_keeps_its_bounds(made: Any) -> None:
    matrix, bounds = made
    table = repaired(matrix, bounds)
    assert keeps(table, bounds)


@examples(80)
@given(instances(), st.floats(0, 1e-8))
def test_small_faults_stay_small(made: Any, fault: float) -> None:
    """A table that kept its bounds before it was disturbed by t comes back changed by little more than t."""
    matrix, bounds = made
    sound = repaired(matrix, bounds).rows(np.arange(len(matrix)))
    disturbed = np.where(
        sound > 1e-3, sound * (1 + fault * np.cos(np.arange(sound.size)).reshape(sound.shape)), sound
    )
    disturbed /= disturbed.sum(axis=1, keepdims=True)
    again = repaired(disturbed, bounds)
    tight = 1e-6 if len(bounds) == 0 else float(bounds.losses.min())
    assert np.abs(again.rows(np.arange(len(matrix))) - sound).max() <= 20 * fault / min(tight, 1.0) + 1e-7


@examples(80)
@given(instances())
def test_envelopes_are_least(made: Any) -> None:
    """The envelope keeps every way's bound, is above the table, and every entry of it is one that the table forces."""
    matrix, bounds = made
    n = len(matrix)
    lengths = closure(n, bounds.first, bounds.second, bounds.losses)
    found = envelope(matrix, lengths)
    forced = (matrix[None, :, :] * np.exp(-lengths)[:, :, None]).max(axis=1)
    large = forced > 1e-14
    assert found[large] == pytest.approx(forced[large], rel=1e-12)
    shares = np.exp(-lengths)
    assert (found[:, None, :] * (1 + 1e-12) >= shares[:, :, None] * found[None, :, :]).all()
