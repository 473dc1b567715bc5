"""The channel itself: exact tables, what they realise, places of cells, priors, post-processing, saved files."""

from __future__ import annotations

import io
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tetraodon as td
from tetraodon.channels.bounds import Bounds, bounds_of, down, stretch
from tetraodon.channels.certificate import Certificate
from tetraodon.channels.geometry import Geometry, distances, plain_domain
from tetraodon.channels.priors import prior_of, source_of, worst
from tetraodon.channels.table import Table, _power
from tetraodon.errors import DataError, OutputError, SpecificationError, Unsupported

F = Fraction


def a_matrix(rng: np.random.Generator, rows: int, columns: int, spread: float = 0.0) -> Any:
    law = rng.dirichlet(np.ones(columns), rows) * np.exp(-spread * rng.random((rows, columns)))
    return law / law.sum(axis=1, keepdims=True)


# ---------- exact tables ----------


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.0, 40.0, 300.0]))
@settings(max_examples=60, deadline=None)
def test_rows_sum_to_one_exactly_and_nothing_positive_is_lost(
    seed: int, rows: int, columns: int, spread: float
) -> None:
    told = a_matrix(np.random.default_rng(seed), rows, columns, spread)
    table = Table.of(told)
    for i in range(rows):
        exact = table.exact_row(i)
        assert sum(exact) == 1 and min(exact) >= 0
        for z, p in zip(table.columns, exact, strict=True):
            assert (p > 0) == (told[i, z] > 0)
            assert abs(p - F(told[i, z] / told[i].sum())) <= F(told[i, z]) / 2**40 + F(1, 2**50)
        assert [float(p) for p in exact] == table.entries[i].tolist()  # entries are the nearest doubles


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_bounds_are_decided_as_fractions_decide_them(seed: int) -> None:
    """Losses just above and just below the largest exact ratio of a pair."""
    rng = np.random.default_rng(seed)
    table = Table.of(a_matrix(rng, 3, 4, 20.0))
    rows = [table.exact_row(i) for i in range(3)]
    for a, b in ((0, 1), (1, 2), (0, 2)):
        ratio = max(max(x / y, y / x) for x, y in zip(rows[a], rows[b], strict=True))
        near = float(np.log(float(ratio)))
        for loss in (near * (1 + k * 2.0**-52) for k in (-8, -1, 0, 1, 8)):
            bound = Bounds(np.array([a]), np.array([b]), np.array([loss]))
            assert table.keeps(bound) == (ratio <= _power(loss))
        told = table.losses(np.array([a]), np.array([b]))[0]
        assert _power(float(told)) >= ratio and told - near < 1e-11


def test_a_power_is_just_below_the_exponential() -> None:
    for exponent in (0.0, 1e-300, 0.1, 1.0, 20.0, 700.0):
        low = _power(exponent)
        term, total = F(1), F(0)
        for n in range(1, 3000):
            total += term
            term = term * F(exponent) / n
            if term * 2**400 < total and n > 2 * exponent:
                break
        assert 0 < low < total and total - low < total / 10**50


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ([[0.5, 0.6]], "sum to 1"),
        ([[1.5, -0.5]], "not negative"),
        ([[float("nan"), 1.0]], "finite"),
        ([], "at least one row"),
        ([0.5, 0.5], "at least one row"),
        ([["a"]], "a table of probabilities"),
    ],
    ids=["sum", "negative", "nan", "empty", "flat", "text"],
)
def test_what_is_no_table_is_refused(told: Any, text: str) -> None:
    with pytest.raises(SpecificationError, match=text):
        Table.of(told)


def test_outputs_that_one_of_two_never_gives_have_an_infinite_loss() -> None:
    table = Table.of([[0.5, 0.5, 0], [0.5, 0, 0.5], [0.25, 0.75, 0]])
    assert table.losses(np.array([0, 0, 1]), np.array([1, 2, 1])).tolist()[0] == np.inf
    assert table.losses(np.array([0]), np.array([2]))[0] == pytest.approx(np.log(2), abs=1e-11)
    channel = td.Channel.of_matrix([[1, 0], [0, 1]], plain_domain(2))
    assert channel.epsilon(td.Full()) == float("inf") and channel.epsilon(td.Nothing()) == 0


def test_only_distinct_rows_are_held() -> None:
    table = Table.of(
        [[0.25, 0.75]], columns=np.array([3, 1]), n_outputs=5, row_of=np.zeros(4, dtype=np.int64)
    )
    assert table.rows(np.array([2])).tolist() == [[0, 0.75, 0, 0.25, 0]]
    assert table.push(np.full((1, 4), 0.25)).tolist() == [[0, 0.75, 0, 0.25, 0]]
    assert not table.losses(np.array([0]), np.array([3]))[0]


# ---------- samples ----------


def test_outputs_of_probability_zero_never_come_and_rare_ones_are_not_lost() -> None:
    rare = 2.0**-12
    channel = td.Channel.of_matrix(
        [[0.5, 0, 0.5 - rare, rare], [0, 1, 0, 0]], plain_domain(2), plain_domain(4)
    )
    drawn = channel.sample(np.zeros(200_000, dtype=np.int64))
    count = np.bincount(drawn, minlength=4)
    assert count[1] == 0 and 10 < count[3] < 120
    assert set(channel.sample([1] * 50).tolist()) == {1}


@pytest.mark.parametrize(
    "cells", [[2], [-1], [0.5], ["canary"]], ids=["high", "negative", "fraction", "text"]
)
def test_cells_that_are_none_are_refused_without_being_shown(cells: list[Any]) -> None:
    channel = td.Channel.of_matrix([[0.5, 0.5], [0.25, 0.75]], plain_domain(2))
    with pytest.raises(SpecificationError, match=r"^channel: (a cell|cells)") as caught:
        channel.sample(cells)
    assert str(cells[0]) not in str(caught.value).replace("2 declared", "")


# ---------- what it answers ----------


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_figures_are_those_of_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = td.Domain(x=td.Integer(0, 3), y=td.Integer(0, 1))
    channel = td.Channel.of_matrix(a_matrix(rng, 8, 8), domain)
    prior, joint = rng.dirichlet(np.ones(8)), rng.random((3, 8))
    cells = np.array([[i, j] for i in range(4) for j in range(2)], dtype=float)
    apart = np.sqrt(((cells[:, None] - cells[None]) ** 2).sum(axis=2))
    law = channel.matrix
    assert channel.distortion(prior) == pytest.approx((prior[:, None] * law * apart).sum())
    assert channel.distortion(prior, apart**2) == pytest.approx((prior[:, None] * law * apart**2).sum())
    pushed = joint / joint.sum() @ law
    expected = (pushed * np.log2(pushed / np.outer(pushed.sum(1), pushed.sum(0)))).sum()
    assert channel.leakage(joint) == pytest.approx(expected)
    assert channel.bayes_error(joint) == pytest.approx(1 - pushed.max(axis=0).sum())
    ratios = np.abs(np.log(law)[:, None, :] - np.log(law)[None]).max(axis=2)
    pairs = [(a, b) for a in range(8) for b in range(a) if apart[a, b] == 1]
    near = td.AttributeWise(x=td.Within(1), y=td.Within(1))
    assert float(channel.epsilon(near)) == pytest.approx(max(ratios[p] for p in pairs), rel=1e-9)
    np.fill_diagonal(apart, np.inf)
    assert float(channel.epsilon_per(1)) == pytest.approx((ratios / apart).max(), rel=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_post_processing_is_the_product_and_costs_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = td.Domain(x=td.Integer(0, 4))
    one, two = (td.Channel.of_matrix(a_matrix(rng, 5, 5), domain) for _ in range(2))
    both = one.then(two)
    np.testing.assert_allclose(both.matrix, one.matrix @ two.matrix, rtol=1e-12)
    joint = rng.random((2, 5))
    assert both.epsilon(td.Full()) <= one.epsilon(td.Full())
    assert both.leakage(joint) <= one.leakage(joint) + 1e-12
    prior = rng.dirichlet(np.ones(5))
    moved = one.remap(prior, source="public")
    assert moved.distortion(prior) <= one.distortion(prior) + 1e-12
    assert moved.epsilon(td.Full()) <= one.epsilon(td.Full())
    np.testing.assert_allclose(moved.matrix.sum(axis=1), 1)
    best = min(
        (one.matrix.T * prior @ np.abs(np.subtract.outer(np.arange(5), np.arange(5))))[z].min()
        for z in range(5)
    )
    assert best >= 0 and set(moved.sample([0] * 20).tolist()) <= set(range(5))


def test_a_prior_leaves_its_mark_on_everything_made_from_it() -> None:
    domain = td.Domain(x=td.Integer(0, 2))
    fixed = td.channels.randomised_response(domain, 1)
    assert fixed.guarantee == "proved" and not fixed.is_private
    assert fixed.remap([1, 2, 3]).guarantee == "measured"  # private unless told otherwise
    assert fixed.remap("uniform").source == "public"
    assert fixed.remap([1, 2, 3], source="disjoint").then(fixed.remap([1, 2, 3])).is_private
    assert worst("none", "public") == "public" and source_of("private", "uniform") == "public"
    with pytest.raises(SpecificationError, match="source"):
        fixed.remap([1, 2, 3], source="mine")


# ---------- places, bounds, priors ----------


def test_distances_are_between_centres_in_the_declared_unit() -> None:
    home = td.Domain(home=td.Point("a", "b", box=((48, 49), (2, 3)), cell="10 km", unit="km"))
    place = Geometry(home)
    height, width = home["home"].lengths  # type: ignore[union-attr]
    rows, columns = place.shape
    corner = place.between(None, np.array(0), np.array(rows * columns - 1))
    assert corner == pytest.approx(np.hypot(float(height) * (rows - 1), float(width) * (columns - 1)))
    round_earth = place.between(td.Haversine(), np.array(0), np.array(rows * columns - 1))
    assert abs(round_earth - corner) / corner < 0.01
    far = td.Domain(x=td.Numeric(10**9, 10**9 + 1, cells=4))
    assert Geometry(far).matrix(None)[0].tolist() == [0, 0.25, 0.5, 0.75]  # no digits lost to the origin


def test_special_cells_lie_as_far_as_the_two_farthest() -> None:
    domain = td.Domain(x=td.Integer(0, 3, missing="public"))
    told = distances(None, domain)
    assert told[4].tolist() == [3, 3, 3, 3, 0] and told[:4, :4].max() == 3


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: distances(None, td.Domain(c=td.Categorical(["a", "b"]))), "have no place"),
        (lambda: distances(td.L2(x=1), td.Domain(x=td.Integer(0, 1), y=td.Integer(0, 1))), "every attribute"),
        (lambda: distances(None, td.Domain(x=td.Integer(0, 1, unit="m"), y=td.Integer(0, 1))), "different units"),
        (lambda: distances([[0, 1]], plain_domain(2)), "shape"),
        (lambda: distances([[0, -1], [1, 0]], plain_domain(2)), "not negative"),
        (lambda: distances([[0, float("nan")], [1, 0]], plain_domain(2)), "finite"),
        (lambda: distances(td.Haversine(), plain_domain(2)), "places of one Point"),
        (lambda: distances(None, plain_domain(5000)), "4,096 cells"),
        (lambda: bounds_of(plain_domain(3), 1), "one of them"),
        (lambda: bounds_of(plain_domain(3), 1, td.Full(), 1), "one of them"),
        (lambda: bounds_of(plain_domain(3), 0, td.Full()), "above 0"),
        (lambda: stretch(0, None), "above 0"),
        (lambda: stretch("km", None), "not in km"),
        (lambda: prior_of([1, 2], plain_domain(3)), "3 numbers"),
        (lambda: prior_of([0, 0], plain_domain(2)), "above 0"),
        (lambda: prior_of([1, -1], plain_domain(2)), "not negative"),
        (lambda: prior_of("even", plain_domain(2)), "'uniform'"),
        (lambda: Certificate("luck", 0, 0, "m"), "one of information"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_what_has_no_meaning_is_refused_by_name(ask: Any, text: str) -> None:
    with pytest.raises((SpecificationError, Unsupported), match=text):
        ask()


def test_bounds_are_rounded_down() -> None:
    third = bounds_of(plain_domain(4), "1/3", epsilon_per="2")
    assert all(F(float(v)) <= F(1, 6) * d for v, d in zip(third.losses, (1, 2, 3, 1, 2, 1), strict=True))
    assert F(down(F(1, 3))) <= F(1, 3) and down(F(1, 2)) == 0.5
    dense = bounds_of(plain_domain(3), 1, td.Within(1)).dense(3)
    assert dense.tolist() == [[0, 1, np.inf], [1, 0, 1], [np.inf, 1, 0]]


# ---------- files ----------


def some_channels() -> list[Any]:
    domain = td.Domain(x=td.Integer(0, 5), y=td.Integer(0, 4))
    planar = td.channels.planar_geometric(domain, 1, 1)
    response = td.channels.randomised_response(domain, "1/3")
    best = td.channels.least_distortion(
        "uniform", epsilon=1, epsilon_per=1, domain=td.Domain(x=td.Integer(0, 4))
    )
    return [planar, response, best, planar.remap("uniform"), planar.then(response)]


@pytest.mark.parametrize("at", range(5), ids=["shift", "table", "certified", "relabelled", "then"])
def test_a_saved_channel_is_the_same_channel(at: int, tmp_path: Path) -> None:
    channel = some_channels()[at]
    channel.save(tmp_path / "a.npz")
    channel.save(tmp_path / "b.npz")
    again = td.Channel.load(tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert again.digest == channel.digest and again.domain == channel.domain and again.asked == channel.asked
    np.testing.assert_array_equal(again.matrix, channel.matrix)
    if channel.certificate is not None:
        assert again.certificate.spec() == channel.certificate.spec()
        for name, array in channel.certificate.arrays.items():
            np.testing.assert_array_equal(again.certificate.arrays[name], array)


def altered(source: Path, target: Path, name: str, change: Any) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.namelist():
            raw = old.read(item)
            if item == f"{name}.npy":
                array = change(np.load(io.BytesIO(raw)))
                held = io.BytesIO()
                np.save(held, array, allow_pickle=True)
                raw = held.getvalue()
            new.writestr(item, raw)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("law.entries", lambda a: a * 2),
        ("law.entries", lambda a: -a),
        ("law.entries", lambda a: a.astype(object)),
        ("law.rest", lambda a: a + 100),
        ("law.columns", lambda a: a - 1),
        ("law.row_of", lambda a: a[:2]),
        ("spec", lambda a: a[:-5]),
        ("spec", lambda a: np.frombuffer(b'{"format": 99}', dtype=np.uint8)),
    ],
    ids=["doubled", "negative", "objects", "rest", "columns", "rows", "cut", "format"],
)
def test_damaged_files_are_refused_and_nothing_in_them_runs(name: str, change: Any, tmp_path: Path) -> None:
    some_channels()[1].save(tmp_path / "good.npz")
    altered(tmp_path / "good.npz", tmp_path / "bad.npz", name, change)
    with pytest.raises(DataError, match=r"^bad\.npz: is no channel"):
        td.Channel.load(tmp_path / "bad.npz")


def test_what_is_no_file_of_a_channel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("canary")
    with pytest.raises(DataError, match="is no channel") as caught:
        td.Channel.load(tmp_path / "text.npz")
    assert "canary" not in str(caught.value)
    with pytest.raises(DataError, match="cannot be read"):
        td.Channel.load(tmp_path / "none.npz")
    with pytest.raises(OutputError):
        some_channels()[1].save(tmp_path / "no" / "folder.npz")
