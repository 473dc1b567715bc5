"""Largest moves over the edges of maps, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, interval_axes, listed_axes

import tetraodon as td
from tetraodon.axes import Axis
from tetraodon.errors import SpecificationError, Unsupported
from tetraodon.hops import farthest, widest
from tetraodon.lattice import Blocks, Grid, Lattice
from tetraodon.map_hops import farthest_on_map
from tetraodon.quotient import behind, label_change, quotient
from tetraodon.sensitivity import rows
from tetraodon.sensitivity.lattices import boundary_move, largest_partner

STARS = st.sampled_from(((), (True,), (False,), (True, False)))


@st.composite
def lattices(draw: Any) -> Lattice:
    """A map whose reach shrinks with the row distance or, in another way for every row, does as it likes."""
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    depth = draw(st.integers(0, height - 1))
    if draw(st.booleans()):
        reach = [sorted((draw(st.integers(0, width)) for _ in range(depth + 1)), reverse=True)]
    else:
        # Great circles: every row of its own, all neighbours joined.
        reach = [
            [draw(st.integers(1 if d < 2 else -1, width)) for d in range(depth + 1)] for _ in range(height)
        ]
    return Lattice(height * width, stars=draw(STARS), columns=width, reach=np.array(reach, dtype=np.int64))


@st.composite
def blocks(draw: Any) -> Blocks:
    told = draw(st.lists(st.integers(0, 3), min_size=1, max_size=10))
    _, labels = np.unique(told, return_inverse=True)
    return Blocks(len(told), stars=draw(STARS), labels=labels.astype(np.int64))


GRIDS = st.one_of(lattices(), blocks())


def edges_of(axis: Axis) -> list[tuple[int, int]]:
    return [
        (a, b)
        for a in range(axis.size)
        for b in range(a + 1, axis.size)
        if axis.joined(np.array([a]), np.array([b]))[0]
    ]


def some(draw: Any, size: int, low: int, high: int) -> Any:
    return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=np.int64)


@examples(200)
@given(st.data(), st.one_of(GRIDS, interval_axes(), listed_axes()))
def test_the_largest_partner_of_every_cell(data: Any, axis: Axis) -> None:
    if not axis.base:
        return
    values = some(data.draw, axis.base, -9, 9)
    truth = values.copy()
    for a, b in edges_of(axis):
        if b < axis.base:
            truth[a], truth[b] = max(truth[a], values[b]), max(truth[b], values[a])
    assert largest_partner(axis, values).tolist() == truth.tolist()


@examples(200)
@given(st.data(), GRIDS, st.sampled_from((1, 2)))
def test_rows_move_as_far_as_enumeration_says(data: Any, axis: Grid, power: int) -> None:
    layers: list[Any] = []
    for _ in range(data.draw(st.integers(1, 2))):
        weight = data.draw(st.integers(1, 3))
        if data.draw(st.integers(0, 3)) == 0:
            layers.append(rows.Blocks(axis.size, weight=weight))
        else:
            count = data.draw(st.integers(1, 3))
            matrix = np.stack([some(data.draw, axis.size, -4, 4) for _ in range(count)])
            layers.append(rows.Matrix(matrix, weight, power=power))
    told = tuple(layers)
    every = edges_of(axis)
    moves = [int(rows.difference(told, np.array([a]), np.array([b]))[0]) for a, b in every]
    value, edge = rows.largest_difference(told, axis)
    assert value == max(moves, default=0)
    if value:
        assert moves[every.index((min(edge), max(edge)))] == value


@examples(200)
@given(st.data(), GRIDS)
def test_labels_change_and_quotients_as_enumeration_says(data: Any, axis: Grid) -> None:
    labels = some(data.draw, axis.size, -1, 3)
    kept = np.unique(labels[labels >= 0])
    labels = np.where(labels < 0, -1, np.searchsorted(kept, labels))
    if not len(kept):
        return
    every = edges_of(axis)
    kinds = {
        2
        if labels[a] != labels[b] and min(labels[a], labels[b]) >= 0
        else 1
        if (labels[a] < 0) != (labels[b] < 0)
        else 0
        for a, b in every
    }
    change, edge = label_change(axis, labels)
    assert change == max(kinds, default=0)
    if change:
        assert (min(edge), max(edge)) in every and labels[edge[0]] >= 0 and labels[edge[0]] != labels[edge[1]]
    at = np.where(labels < 0, len(kept), labels)
    pairs = {(int(min(at[a], at[b])), int(max(at[a], at[b]))) for a, b in every if at[a] != at[b]}
    small = quotient(axis, labels)
    assert small.size == len(kept) + (labels < 0).any()
    assert {(int(a), int(b)) for x, y in small.edges() for a, b in zip(x, y, strict=True)} == pairs
    for p, q in pairs:
        for edge in ((p, q), (q, p)):
            a, b = behind(axis, labels, edge)
            assert (at[a], at[b]) == edge and (min(a, b), max(a, b)) in every
    assert label_change(axis, None)[0] == (2 if every else 0)


def moved(axis: Axis, labels: Any, coordinates: Any) -> int:
    """Over all pairs of cells, straight from the definition."""
    best = 0
    for a, b in edges_of(axis):
        x, y = coordinates[a] * (labels[a] >= 0), coordinates[b] * (labels[b] >= 0)
        step = np.abs(x - y).sum() if labels[a] == labels[b] else np.abs(x).sum() + np.abs(y).sum()
        best = max(best, int(step))
    return best


@examples(300)
@given(st.data(), st.one_of(GRIDS, interval_axes(), listed_axes()), st.integers(1, 3))
def test_sums_by_label_move_as_far_as_enumeration_says(data: Any, axis: Axis, dims: int) -> None:
    labels = some(data.draw, axis.size, -1, 2)
    coordinates = np.stack([some(data.draw, axis.size, -9, 9) for _ in range(dims)], axis=1)
    assert boundary_move(axis, labels, coordinates) == moved(axis, labels, coordinates)


def test_a_step_across_a_boundary_moves_both_sums() -> None:
    axis = Axis(4, window=1)
    assert boundary_move(axis, np.array([0, 0, 1, 1]), np.array([[-2], [3], [-4], [1]])) == 7
    # Steps inside a label are longer than any across.
    assert boundary_move(axis, np.array([0, 0, 1, 1]), np.array([[-9], [0], [0], [9]])) == 9
    assert boundary_move(axis, np.array([-1, 0, 0, -1]), np.array([[99], [2], [-3], [99]])) == 5


# ---------- policies ----------


@pytest.mark.parametrize(
    "secrets", [td.Within(2), td.Within(1, metric=td.L1()), td.Partition(2), td.Full(), td.Nothing()]
)
@pytest.mark.parametrize("missing", ["refuse", "secret", "public"])
def test_queries_about_places_are_as_sensitive_as_enumeration_says(secrets: Any, missing: str) -> None:
    home = td.Point("x", "y", box=((0, 3), (0, 4)), cell=1, metric="planar", missing=missing)
    domain = td.Domain(home=home, sex=td.Categorical(["f", "m"]))
    policy = td.Policy(domain, td.AttributeWise(home=secrets, sex=td.Nothing()))
    every = [(int(x), int(y)) for a, b in policy.graph.edges() for x, y in zip(a, b, strict=True)]
    row = [[(7 * c) % 5 - 2 for c in range(home.size)], [c % 3 for c in range(home.size)]]
    kept = [home.label(c) for c in (0, 1, 6)]

    def cell(code: int) -> int:
        return int(domain.decode(code)[0])

    def histogram(code: int) -> Any:
        return np.eye(home.size)[cell(code)]

    def coarse(code: int) -> Any:
        c = cell(code)
        block = c if c == home.n_values else 2 * (c // 8) + c % 4 // 2
        return np.eye(home.size)[block]

    def filtered(code: int) -> Any:
        return np.array([cell(code) == c for c in (0, 1, 6)], dtype=float)

    asked = [
        (td.Histogram("home"), histogram),
        (td.Histogram("home", by="sex"), histogram),
        (td.Histogram("home", bins={"home": 2}), coarse),
        (td.Histogram("home", where={"home": kept}), filtered),
        (td.Histogram("sex", where={"home": kept}), lambda code: filtered(code).sum(keepdims=True)),
        (td.Linear(row, "home"), lambda code: np.array(row, dtype=float)[:, cell(code)]),
    ]
    for query, answer in asked:
        truth = max((np.abs(answer(a) - answer(b)).sum() for a, b in every), default=0)
        found = policy.sensitivity(query)
        assert found.value == truth, query
        if truth:
            assert found.witness is not None


def test_what_has_no_order_is_refused_with_the_reason() -> None:
    domain = td.Domain(
        home=td.Point("x", "y", box=((0, 3), (0, 4)), cell=1, metric="planar"), n=td.Integer(0, 1)
    )
    policy = td.Policy(domain, td.AttributeWise())
    for query in (td.CDF("home"), td.Ranges("home"), td.Quantiles("home")):
        with pytest.raises(SpecificationError, match="home is a place and has no order"):
            policy.sensitivity(query)
    for query in (td.Sum("home"), td.Mean("home")):
        with pytest.raises(SpecificationError, match="home is a place; only numbers can be added up"):
            policy.sensitivity(query)
    with pytest.raises(SpecificationError, match=r"where.home: places have no order; list places, or labels"):
        policy.sensitivity(td.Histogram("n", where={"home": (1, 2)}))
    with pytest.raises(SpecificationError, match=r"bins.home: a whole number k, for blocks of k × k cells"):
        policy.sensitivity(td.Histogram("home", bins={"home": [0, 2]}))


def test_several_attributes_at_once_are_priced_as_enumeration_says() -> None:
    domain = td.Domain(x=td.Integer(0, 4), y=td.Integer(0, 3), z=td.Integer(0, 1))
    policy = td.Policy(domain, td.Within(3, metric=td.L1(x=1, y=2)))
    every = [(int(a), int(b)) for x, y in policy.graph.edges() for a, b in zip(x, y, strict=True)]

    def change(answer: Any) -> float:
        told = [answer(*map(int, domain.decode(c))) for c in range(domain.size)]
        return max(np.abs(np.asarray(told[a]) - np.asarray(told[b])).sum() for a, b in every)

    eye, below = np.eye(40), np.tri(5)
    for query, answer in [
        (td.Histogram("x", "y"), lambda x, y, z: eye[8 * x + y]),
        (td.Histogram("z"), lambda x, y, z: eye[z]),
        (td.CDF("x"), lambda x, y, z: below[:, x]),
        (td.CDF("x", by="y"), lambda x, y, z: np.outer(eye[y], below[:, x])),
        (td.Sum("y", by="z"), lambda x, y, z: eye[z] * y),
    ]:
        assert policy.sensitivity(query).value == change(answer), query


def test_a_map_of_120_000_cells_answers_rows_and_filters() -> None:
    home = td.Point("lat", "lon", box=((30, 50), (-125, "-105.4")), cell="5.57 km")
    policy = td.Policy(td.Domain(home=home), td.Within("500 km"))
    number = np.arange(home.size)
    row, column = np.divmod(number, home.shape[1])
    assert policy.sensitivity(td.Linear([row.tolist()], "home")).value == 90
    assert policy.sensitivity(td.Linear([column.tolist(), (-row).tolist()], "home")).value == 129
    kept = [home.label(c) for c in (0, 5, 700)]
    assert policy.sensitivity(td.Histogram("home", where={"home": kept})).value == 2
    many = td.Linear(np.random.default_rng(1).integers(0, 9, (20, home.size)).tolist(), "home")
    with pytest.raises(Unsupported, match="too many rows for this secret graph"):
        policy.sensitivity(many)


def test_a_histogram_of_places_is_released() -> None:
    home = td.Point("lat", "lon", box=((0, 2), (0, 3)), cell=1, metric="planar", missing="public")
    domain = td.Domain(home=home)
    table = td.Table({"lat": [0.5, 1.5, None, 7.0], "lon": [0.5, 2.5, 1.0, -1.0]}, domain)
    session = td.Session(table, td.Policy(domain, td.Within(1)), epsilon=2)
    release = session.release(td.Histogram("home"), epsilon=1)
    frame = release.to_frame()
    assert list(frame["home"]) == [home.label(c) for c in range(7)]
    assert all(0 <= v <= 4 for v in frame["value"])
    # One block for the whole map: no edge changes a count, so both are exact.
    coarse = session.release(td.Histogram("home", bins={"home": 3}), epsilon=1, name="coarse").to_frame()
    assert list(coarse["home"]) == ["1.0 1.5", "missing"] and list(coarse["value"]) == [3, 1]


# ---------- hops between graphs ----------

DECLARED = (
    [td.Within(t, metric=m) for t in (0, 1, 2, "2.5") for m in (td.L1(), td.L2())]
    + [td.Partition((r, c)) for r, c in ((1, 1), (2, 2), (3, 1), (2, 4))]
    + [td.Full(), td.Nothing()]
)


@pytest.mark.parametrize("missing", ["refuse", "secret", "public"])
def test_hops_between_maps_are_those_of_enumeration_or_a_bound(missing: str) -> None:
    home = td.Point("x", "y", box=((0, 4), (0, 5)), cell=1, metric="planar", missing=missing)
    domain = td.Domain(home=home)
    axes = [td.Policy(domain, secrets).graph.axes[0] for secrets in DECLARED]
    for measured in axes:
        for along in axes:
            if not (isinstance(measured, Grid) or isinstance(along, Grid)):
                continue
            told = [measured.distance(a, b) for a, b in edges_of(along)]
            truth = None if None in told else max(told, default=0)
            found = farthest_on_map(measured, along)
            if missing == "secret" or (isinstance(measured, Lattice) and not isinstance(along, Lattice)):
                assert (found is None) == (truth is None)
                assert found is None or truth <= found <= 2 * max(truth, 1)
            else:
                assert found == truth


@pytest.mark.parametrize("missing", ["refuse", "secret", "public"])
def test_the_farthest_cells_of_a_map(missing: str) -> None:
    home = td.Point("x", "y", box=((0, 60), (0, 70)), cell=1, metric="planar", missing=missing)
    graph = td.Policy(td.Domain(home=home), td.Within(10)).graph
    assert home.size > 2048
    corners = graph.distance(0, home.n_values - 1)
    assert corners == 2 if missing == "secret" else corners > 2
    assert widest(graph) == (None if missing == "public" else corners)
    whole = td.Policy(td.Domain(home=home), td.Partition(1)).graph
    assert widest(whole) == {"refuse": 1, "secret": 2, "public": None}[missing]


def test_hops_over_several_attributes_at_once_add_up() -> None:
    # Two attributes at their limits are two hops of a common distance, though each is one.
    domain = td.Domain(x=td.Integer(0, 9), y=td.Integer(0, 9))
    ball, full = (td.Policy(domain, s).graph for s in (td.Within(9, metric=td.L1(x=1, y=1)), td.Full()))
    assert max(ball.distance(0, c) or 0 for c in range(domain.size)) == 2
    assert farthest(ball, full) == {"any": 2}
