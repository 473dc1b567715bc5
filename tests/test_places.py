"""Places and distances over several attributes, against direct enumeration of value pairs and breadth-first search."""

from __future__ import annotations

import itertools
import math
from collections import deque
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute
from strategies import attributes, examples

import tetraodon as td
from tetraodon.engine import cells_expression, encoded
from tetraodon.errors import DataError, SpecificationError, Unsupported
from tetraodon.lattice import Blocks, Lattice
from tetraodon.lengths import cosine, measured

F = Fraction
CLOSE = F(1, 10**9)  # how near a value comes to the open end of its cell


def plane(rows: int, columns: int, **more: Any) -> td.Point:
    """A map of unit cells."""
    return td.Point("x", "y", box=((0, rows), (0, columns)), cell=1, metric="planar", **more)


def places(point: Any, cell: int) -> list[tuple[Fraction, Fraction]]:
    """Places of a cell, in units of length: its corners and its middle, open ends approached."""
    lines = []
    for side, scale, k, count in zip(
        point.sides, point.scale, divmod(cell, point.shape[1]), point.shape, strict=True
    ):
        low, high = side.low + k * side.width, side.low + (k + 1) * side.width
        top = high if k == count - 1 else high - CLOSE
        lines.append([low * scale, (low + high) / 2 * scale, top * scale])
    return list(itertools.product(*lines))


def is_near(point: Any, a: int, b: int, theta: Fraction, power: int) -> bool:
    return any(
        abs(p - q) ** power + abs(r - s) ** power <= theta**power
        for (p, r), (q, s) in itertools.product(places(point, a), places(point, b))
    )


def dense(point: Any, theta: Fraction, power: int) -> list[list[bool]]:
    n = point.n_values
    return [[a != b and is_near(point, a, b, theta, power) for b in range(n)] for a in range(n)]


def with_star(adjacent: list[list[bool]], missing: str) -> list[list[bool]]:
    if missing == "refuse":
        return adjacent
    joined = missing == "secret"
    return [[*row, joined] for row in adjacent] + [[joined] * len(adjacent) + [False]]


def hops_from(adjacent: list[list[bool]], start: int) -> list[int | None]:
    found: list[int | None] = [None] * len(adjacent)
    found[start], queue = 0, deque([start])
    while queue:
        a = queue.popleft()
        for b, joined in enumerate(adjacent[a]):
            if joined and found[b] is None:
                found[b] = found[a] + 1  # type: ignore[operator]
                queue.append(b)
    return found


def agrees(axis: Any, adjacent: list[list[bool]]) -> None:
    """An axis says what a dense graph says, in every one of its ways."""
    n = len(adjacent)
    assert axis.size == n
    every = np.arange(n)
    assert axis.joined(every[:, None], every[None, :]).tolist() == adjacent
    truth = {(a, b) for a in range(n) for b in range(a + 1, n) if adjacent[a][b]}
    for chunk in (2, 1000):
        listed = [(int(x), int(y)) for a, b in axis.edges(chunk) for x, y in zip(a, b, strict=True)]
        assert len(listed) == len(set(listed)) == axis.n_edges and set(listed) == truth
    assert axis.has_edges == bool(truth)
    inner = [(b - a, (a, b)) for a, b in truth if b < axis.base]
    gap, edge = axis.widest
    assert gap == max(inner, default=(0, ()))[0] and (not gap or (gap, edge) in inner)
    for a in range(n):
        assert [axis.distance(a, b) for b in range(n)] == hops_from(adjacent, a)
    groups = {tuple(d is not None for d in hops_from(adjacent, a)) for a in range(n)}
    assert axis.n_components == len(groups)
    assert len(set(axis.components.tolist())) == len(groups)
    for a, b in truth:
        assert axis.components[a] == axis.components[b]


# ---------- one attribute over two columns ----------

SIDES = st.sampled_from((F(1), F(10), F(1, 2), F(7, 3)))
GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def maps(draw: Any, most: int = 12) -> Any:
    """A small map whose cells have sides in any proportion."""
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(1, max(1, most // rows)))
    height, width = draw(SIDES), draw(SIDES)
    missing = draw(st.sampled_from(("refuse", "secret", "public")))
    box = ((F(-1), F(-1) + rows * height), (F(2), F(2) + columns * width))
    return td.Point("x", "y", box=box, cell=max(height, width), metric="planar", missing=missing)


@examples(120)
@given(maps(), st.integers(0, 9), st.sampled_from((1, 2, 3)), st.sampled_from((1, 2)))
def test_near_cells_hops_and_components_equal_value_pairs(
    point: Any, top: int, bottom: int, power: int
) -> None:
    theta = F(top, bottom) * max(point.lengths)
    metric = td.L1() if power == 1 else td.L2()
    graph = td.Policy(td.Domain(home=point), td.Within(theta, metric=metric)).graph
    assert isinstance(graph.axes[0], Lattice)
    agrees(graph.axes[0], with_star(dense(point, theta, power), point.missing))


@pytest.mark.parametrize("theta", [0, F(1, 2), 1, F(3, 2), 2, F(9, 4), 3])
def test_the_metric_of_a_place_is_the_flight_of_a_crow(theta: Fraction) -> None:
    domain = td.Domain(home=plane(4, 5))
    bare, crow = (td.Policy(domain, td.Within(theta, metric=m)).graph.axes[0] for m in (None, td.L2()))
    assert list(map(np.ndarray.tolist, next(bare.edges(10**6), ()))) == list(
        map(np.ndarray.tolist, next(crow.edges(10**6), ()))
    )
    assert bare.n_edges == crow.n_edges
    heavy = td.Policy(domain, td.Within(2 * theta, metric=td.L2(home=2))).graph.axes[0]
    assert heavy.n_edges == bare.n_edges


def test_cells_fill_the_box_and_are_no_longer_than_declared() -> None:
    home = td.Point("lat", "lon", box=((48, 49), (1, 3)), cell="10 km")
    height, width = home.lengths
    assert home.shape == (12, 15) and height <= 10_000 and width <= 10_000
    assert height * 12 == F("111195.08") and width * 15 == 2 * F("111195.08") * cosine(F("48.5"))
    assert home.size == 180 and home.unit == "m" and home.columns("home") == ("lat", "lon")
    assert home.label(0) == "48.042 1.07" and home.label(179) == "48.958 2.93"
    assert len({home.label(c) for c in range(home.size)}) == home.size
    for cell in (0, 14, 15, 97, 179):
        assert home.cell(home.label(cell)) == cell
        assert home.cells([[float(v) for v in home.label(cell).split()]]).tolist() == [cell]


def test_cosines_are_those_of_the_mathematical_library() -> None:
    for degrees in ("0", "0.001", "23.44", "45", "60", "89.9", "-48.5", "90"):
        assert abs(float(cosine(F(degrees))) - math.cos(math.radians(float(degrees)))) <= 5.1e-10


def test_lengths_are_converted_exactly() -> None:
    assert measured("5 km", "m", "Within") == 5000 and measured("1 mi", "m", "x") == F("1609.344")
    assert measured("250 m", "km", "x") == F(1, 4) and measured(3, "km", "x") == 3
    with pytest.raises(SpecificationError, match="declared in USD, not in km"):
        measured("5 km", "USD", "Within")


def test_places_are_clipped_coordinate_by_coordinate() -> None:
    point = plane(2, 3, missing="secret")
    inf, nan = float("inf"), float("nan")
    told = [
        (-5, 1.5),
        (5, -1),
        (inf, -inf),
        (0.0, -0.0),
        (nan, 1),
        (1, nan),
        (None, None),
        ("1", "2.5"),
        ("x", 1),
    ]
    assert point.cells(np.array(told, dtype=object)).tolist() == [1, 3, 3, 0, 6, 6, 6, 5, 6]
    assert plane(2, 3).cells([(None, 1), (0, 1)]).tolist() == [-1, 1]
    with pytest.raises(SpecificationError, match="values: pairs of numbers"):
        point.cells([1, 2, 3])


def test_declared_places_are_pairs_or_labels_within_the_box() -> None:
    point = plane(2, 3, missing="secret")
    assert point.cell((0.5, 2)) == 2 and point.cell([1, 3]) == 5 and point.cell("1.5 0.5") == 3
    assert point.cell("missing") == 6
    for wrong in ((0, 4), (3, 0), "1.5", 7, (1, 2, 3), ("a", 1), None, {"x": 1}):
        with pytest.raises(SpecificationError):
            point.cell(wrong)


@pytest.mark.parametrize("point", [
    td.Point("lat", "lon", box=(("48.1", "49.2"), (1.4, 3.6)), cell="250 m"),
    td.Point("lat", "lon", box=((-10, 10), (170, 190)), cell=2, unit="km", missing="public"),
    td.Point("x", "y", box=((0, 255), (0, 255)), cell="1/3", metric="planar", missing="secret"),
    td.Point("x", "y", box=((0, 10), (0, 10)), cell="2 m", metric="planar", unit="m"),
])  # fmt: skip
def test_places_survive_their_specification(point: Any) -> None:
    domain = td.Domain(home=point)
    again = td.Domain.from_spec(domain.to_spec())
    assert again == domain and hash(again) == hash(domain) and again["home"].shape == point.shape
    policy = td.Policy(domain, td.AttributeWise(home=td.Partition((2, 3))))
    assert td.Policy.from_spec(policy.to_spec()).hash == policy.hash
    near = td.Policy(domain, td.Within(2, metric=td.L1(home=2)))
    assert td.Policy.from_spec(near.to_spec()) == near


def test_the_map_of_release_toml_reads_as_the_declaration() -> None:
    spec = {"home": {"point": ["home_lat", "home_lon"], "box": [[48.1, 49.2], [1.4, 3.6]], "cell": "250 m"}}
    told = td.Point("home_lat", "home_lon", box=((48.1, 49.2), (1.4, 3.6)), cell="250 m")
    assert td.Domain.from_spec(spec)["home"] == told


@pytest.mark.parametrize(("sides", "cell"), [((1, 1), 1), ((3, 2), 3), ((F(1, 3), 5), 5)])
def test_middles_on_the_integer_grid_are_near_the_middles(sides: Any, cell: Any) -> None:
    point = td.Point("x", "y", box=((0, 4 * F(sides[0])), (0, 5 * F(sides[1]))), cell=cell, metric="planar")
    grid, unit = point.centres()
    assert grid.shape == (point.n_values, 2) and grid.dtype == np.int64
    for c in range(point.n_values):
        for a, (side, k) in enumerate(zip(point.sides, divmod(c, point.shape[1]), strict=True)):
            assert abs(int(grid[c, a]) * unit - side.width * F(2 * k + 1, 2)) <= unit / 2
    height, width = point.lengths
    assert unit * (2 if height == width else 200) == min(height, width)


# ---------- the query computes the definition ----------

CORNERS = [
    0.0,
    -0.0,
    1.0,
    1 / 3,
    2 / 3,
    0.1,
    2.0,
    3.0,
    -1.0,
    1e300,
    -1e300,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    None,
]
NUMBERS = st.sampled_from(CORNERS) | st.floats(-1, 4).map(lambda v: round(v * 3) / 3) | st.floats()
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30)


def spelt(value: Any) -> Any:
    return None if value is None else repr(value)


@examples(15)
@given(PAIRS, st.sampled_from(("1/3", "0.1", 1, 5)), st.sampled_from(("refuse", "secret", "public")))
def test_the_query_and_the_definition_agree(pairs: Any, cell: Any, missing: str) -> None:
    check_agreement(pairs, cell, missing)


@pytest.mark.slow
@examples(300)
@given(PAIRS, st.sampled_from(("1/3", "0.1", 1, 5)), st.sampled_from(("refuse", "secret", "public")))
def test_the_query_and_the_definition_agree_on_many(pairs: Any, cell: Any, missing: str) -> None:
    check_agreement(pairs, cell, missing)


def check_agreement(pairs: Any, cell: Any, missing: str) -> None:
    point = td.Point("x", "y", box=((0, 2), (-1, 3)), cell=cell, metric="planar", missing=missing)
    expected = point.cells(np.array(pairs, dtype=object)).tolist()
    for kind, told in (("float64", lambda v: v), ("string", spelt)):
        columns = [pa.array([told(p[i]) for p in pairs], getattr(pa, kind)()) for i in (0, 1)]
        rows = ibis.memtable(pa.table({"row": range(len(pairs)), "x": columns[0], "y": columns[1]}))
        shown = rows.select("row", cell=cells_expression(point, (rows.x, rows.y))).to_pyarrow().sort_by("row")
        assert [-1 if c is None else c for c in shown["cell"].to_pylist()] == expected
        domain = td.Domain(n=td.Integer(0, 1), home=point)
        both = ibis.memtable(pa.table({"n": pa.array([1] * len(pairs)), "x": columns[0], "y": columns[1]}))
        codes = encoded(both, domain, ["n", "x", "y"]).to_pyarrow()["code"].to_pylist()
        assert sorted(-1 if c is None else c - point.size for c in codes) == sorted(expected)


def test_whole_coordinates_are_read_as_numbers() -> None:
    point = td.Point("x", "y", box=((0, 5), (0, 7)), cell=2, metric="planar")
    pairs = [(a, b) for a in range(-1, 7) for b in range(-1, 9)]
    table = pa.table({"x": pa.array([p[0] for p in pairs], pa.int16()), "y": [p[1] for p in pairs]})
    codes = encoded(ibis.memtable(table), td.Domain(home=point), ["x", "y"]).to_pyarrow()["code"].to_pylist()
    assert sorted(codes) == sorted(point.cells(pairs).tolist())


def test_tables_of_places_are_counted(tmp_path: Path) -> None:
    point = td.Point("lat", "lon", box=((0, 2), (0, 2)), cell=1, metric="planar", missing="public")
    domain = td.Domain(home=point, sex=td.Categorical(["f", "m"]))
    file = tmp_path / "places.csv"
    file.write_text("lat,sex,lon\n0.5,f,1.5\n1,m,9\n,m,1\nNaN,f,0\ninf,f,-inf\n", encoding="utf-8")
    counts = td.Table(file, domain).counts("home").dense
    assert counts is not None and counts.tolist() == [0, 1, 1, 1, 2]
    refusing = td.Domain(home=td.Point("lat", "lon", box=((0, 2), (0, 2)), cell=1, metric="planar"))
    with pytest.raises(DataError, match="column 'lat' or 'lon' holds a value that is null"):
        td.Table(file, refusing).counts()
    with pytest.raises(DataError, match="no column 'lon'"):
        td.Table({"lat": [1.0]}, refusing)
    with pytest.raises(DataError, match="column 'lon' is boolean"):
        td.Table(pa.table({"lat": [1.0], "lon": [True]}), refusing)


# ---------- great circles ----------


def angle(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Central angle between two places in degrees, by the formula that is accurate at every distance."""
    p, q, r, s = (math.radians(v) for v in (*a, *b))
    across = math.cos(r) * math.sin(s - q)
    along = math.cos(p) * math.sin(r) - math.sin(p) * math.cos(r) * math.cos(s - q)
    return math.atan2(
        math.hypot(across, along), math.sin(p) * math.sin(r) + math.cos(p) * math.cos(r) * math.cos(s - q)
    )


@pytest.mark.parametrize(
    ("box", "cell", "theta"),
    [
        (((30, 50), (-125, -100)), "400 km", "700 km"),
        (((60, 90), (0, 150)), "700 km", "900 km"),
        (((-85, -40), (10, 100)), "900 km", "2000 km"),
        (((-20, 25), (0, 60)), "900 km", "1500 km"),
        (((-10, 10), (170, 190)), "500 km", "40 km"),
    ],
)
def test_great_circles_join_what_sampled_places_show(box: Any, cell: str, theta: str) -> None:
    point = td.Point("lat", "lon", box=box, cell=cell)
    axis = td.Policy(td.Domain(home=point), td.Within(theta, metric=td.Haversine())).graph.axes[0]
    limit = float(measured(theta, "m", "x")) / 6371008.8
    n, steps = point.n_values, 24
    edges = [[float(s.low + i * s.width) for i in range(s.n_cells + 1)] for s in point.sides]
    told = axis.joined(np.arange(n)[:, None], np.arange(n)[None, :])
    assert 0 < told.sum() < n * (n - 1)
    for a, b in itertools.combinations(range(n), 2):
        (i, j), (k, m) = divmod(a, point.shape[1]), divmod(b, point.shape[1])
        gap = max(0.0, max(edges[1][m] - edges[1][j + 1], edges[1][j] - edges[1][m + 1]))
        lat = [np.linspace(edges[0][r], edges[0][r + 1], steps) for r in (i, k)]
        nearest = min(angle((p, 0.0), (q, gap)) for p in lat[0] for q in lat[1])
        assert told[a, b] or nearest > limit
        assert not told[a, b] or nearest <= limit * (1 + 1e-3) + 1e-6
    adjacent = told.tolist()
    for start in range(0, n, 7):
        assert [axis.distance(start, b) for b in range(n)] == hops_from(adjacent, start)
    assert axis.n_edges == told.sum() // 2 and axis.n_components == 1


def test_close_to_a_pole_longitude_matters_little() -> None:
    point = td.Point("lat", "lon", box=((88, 90), (0, 180)), cell="120 km")
    axis = td.Policy(td.Domain(home=point), td.Within("10 km", metric=td.Haversine())).graph.axes[0]
    last = point.shape[1] - 1
    top = (point.shape[0] - 1) * point.shape[1]
    assert axis.joined([top], [top + last]).all() and not axis.joined([0], [last]).any()


@pytest.mark.parametrize("metric", [td.L1(), td.L2(), td.Haversine()])
@pytest.mark.parametrize("theta", ["19000 km", "30000 km", "1e300 km"])
def test_distances_beyond_the_map_join_everything(metric: Any, theta: str) -> None:
    point = td.Point("lat", "lon", box=((-30, 60), (0, 100)), cell="1500 km")
    axis = td.Policy(td.Domain(home=point), td.Within(theta, metric=metric)).graph.axes[0]
    assert axis.n_edges == point.size * (point.size - 1) // 2


def test_distances_beyond_the_domain_join_everything() -> None:
    domain = td.Domain(x=td.Integer(0, 10**6), y=td.Numeric(0, 1, cells=3))
    for metric in (td.L1(x=1, y=1), td.L2(x=1, y="1/7")):
        graph = td.Policy(domain, td.Within("1e200", metric=metric)).graph
        assert graph.joined(0, domain.size - 1) and graph.distance(0, domain.size - 1) == 1


def test_great_circles_touch_and_zero_joins_nothing() -> None:
    point = td.Point("lat", "lon", box=((0, 2), (0, 2)), cell="50 km")
    touching = td.Policy(td.Domain(home=point), td.Within("1 m", metric=td.Haversine())).graph.axes[0]
    assert touching.n_edges == sum(touching.joined([a], [b])[0] for a in range(point.size) for b in range(a))
    assert touching.distance(0, point.size - 1) == max(point.shape) - 1
    assert not td.Policy(td.Domain(home=point), td.Within(0, metric=td.Haversine())).graph.has_edges


# ---------- several attributes at once ----------


@st.composite
def balls(draw: Any) -> Any:
    """A domain and a threshold over some of its attributes."""
    sizes = draw(st.sampled_from([(2, 3), (4, 3), (3, 4), (2, 2, 3), (5, 2), (3, 2, 2), (6, 2)]))
    kinds = ("integer", "numeric", "ordered")
    told = {n: draw(attributes(s, kinds)) for n, s in zip("abc", sizes, strict=False)}
    domain = td.Domain(told)
    chosen = list(told)[: draw(st.integers(2, len(told)))]
    weights = {n: draw(st.sampled_from((1, 2, F(1, 2), F(1, 3)))) for n in chosen}
    theta = F(draw(st.integers(0, 12)), draw(st.sampled_from((1, 2, 3, 7))))
    return domain, td.Within(theta, metric=draw(st.sampled_from((td.L1, td.L2)))(weights))


def ball_of(domain: Any, secrets: Any) -> list[list[bool]]:
    """The dense graph: some values of two cells are within theta, stars at no distance from anything."""
    theta = F(secrets.theta)
    power = 1 if isinstance(secrets.metric, td.L1) else 2
    weights = dict(secrets.metric.weights)
    every = brute.tuples(domain)

    def least(name: str, i: int, j: int) -> Fraction | None:
        attribute = domain[name]
        x, y = brute.cells(attribute)[i], brute.cells(attribute)[j]
        if i == j:
            return F(0)
        if "missing" in (x.kind, y.kind):
            return F(0) if attribute.missing == "secret" else None
        if name not in weights:
            return None
        if "other" in (x.kind, y.kind):
            return F(0)
        ends = [[c.low, c.high - CLOSE if c.is_open else c.high] for c in (x, y)]
        return weights[name] * min(abs(p - q) for p in ends[0] for q in ends[1])

    def joined(a: Any, b: Any) -> bool:
        told = [least(n, i, j) for n, i, j in zip(domain, a, b, strict=True)]
        return a != b and None not in told and sum(v**power for v in told) <= theta**power  # type: ignore[operator]

    return [[joined(a, b) for b in every] for a in every]


@examples(150)
@given(balls(), st.sampled_from((1, 1000)))
def test_balls_equal_value_pairs_and_breadth_first_search(drawn: Any, chunk: int) -> None:
    domain, secrets = drawn
    graph, adjacent = td.Policy(domain, secrets).graph, ball_of(domain, secrets)
    n = domain.size
    every = np.arange(n)
    assert graph.kind == "ball"
    assert graph.joined(every[:, None], every[None, :]).tolist() == adjacent
    listed = [(int(x), int(y)) for a, b in graph.edges(chunk) for x, y in zip(a, b, strict=True)]
    assert len(listed) == len(set(listed)) and set(listed) == brute.edges(adjacent)
    assert graph.has_edges == bool(listed)
    for a in range(n):
        assert [graph.distance(a, b) for b in range(n)] == hops_from(adjacent, a)
    assert graph.n_components == len({tuple(d is not None for d in hops_from(adjacent, a)) for a in range(n)})
    names = list(domain)
    bare = []
    for k in range(1, len(names) + 1):
        for kept in itertools.combinations(names, k):
            _, shadow = brute.projected(domain, adjacent, kept)
            small = graph.project(kept)
            some = np.arange(small.domain.size)
            assert small.joined(some[:, None], some[None, :]).tolist() == shadow
            if k == 1:
                axis = graph.axis(kept[0])
                assert axis.joined(some[:, None], some[None, :]).tolist() == shadow
                bare += [] if brute.edges(shadow) else [kept[0]]
    assert list(graph.unprotected) == bare
    assert td.Policy.from_spec(td.Policy(domain, secrets).to_spec()).hash == td.Policy(domain, secrets).hash


def test_two_coordinates_at_once_are_more_than_one_after_the_other() -> None:
    domain = td.Domain(x=td.Integer(0, 9), y=td.Integer(0, 9))
    graph = td.Policy(domain, td.Within(3, metric=td.L1(x=1, y=2))).graph
    start = int(domain.encode([0, 0]))
    assert graph.joined(start, domain.encode([1, 1])) and not graph.joined(start, domain.encode([2, 1]))
    assert (
        graph.distance(start, int(domain.encode([9, 9]))) == 9
    )  # (1, 1) nine times; one by one it would be 3 + 9
    assert graph.axis("x").window == 3 and graph.axis("y").window == 1


def test_step_1_theta_1_5_takes_three_hops_where_the_formula_says_two() -> None:
    domain = td.Domain(x=td.Integer(0, 9), y=td.Integer(0, 9))
    graph = td.Policy(domain, td.Within("1.5", metric=td.L1(x=1, y=1))).graph
    assert (
        graph.distance(0, int(domain.encode([3, 0]))) == 3
        and graph.distance(0, int(domain.encode([2, 1]))) == 3
    )
    euclid = td.Policy(domain, td.Within("1.5", metric=td.L2(x=1, y=1))).graph
    assert euclid.distance(0, int(domain.encode([3, 3]))) == 3 and euclid.joined(0, domain.encode([1, 1]))


def test_points_5_56_km_apart_within_50_km_take_three_hops_over_94_52_km() -> None:
    # Points, not cells: a hop reaches ⌊50/5.56⌋ = 8 of them and 94.52 km are 17; ⌈94.52/50⌉ would be 2.
    places = td.Categorical([f"p{i}" for i in range(30)], ordered=True)
    domain = td.Domain(x=places, y=places)
    graph = td.Policy(domain, td.Within(50, metric=td.L2(x="5.56", y="5.56"))).graph
    for x, y, hops in ((17, 0, 3), (0, 17, 3), (8, 0, 1), (9, 0, 2), (16, 0, 2), (12, 12, 2)):
        assert graph.distance(0, int(domain.encode([x, y]))) == hops


def test_cells_of_width_10_within_12_join_the_values_9_and_21() -> None:
    home = td.Point("x", "y", box=((0, 100), (0, 100)), cell=10, metric="planar")
    axis = td.Policy(td.Domain(home=home), td.Within(12)).graph.axes[0]
    a, b, c = home.cells([(9, 5), (21, 5), (31, 5)]).tolist()
    assert axis.joined([a], [b]).all() and not axis.joined([a], [c]).any()
    both = td.Domain(x=td.Numeric(0, 100, width=10), y=td.Numeric(0, 100, width=10))
    graph = td.Policy(both, td.Within(12, metric=td.L1(x=1, y=1))).graph
    assert graph.joined(both.encode([0, 0]), both.encode([2, 0])) and not graph.joined(
        both.encode([0, 0]), both.encode([3, 0])
    )


def test_large_numbers_are_rounded_outward() -> None:
    # Denominators beyond 61 bits: more is joined, never less.
    third, seventh = F(1, 3**20), F(1, 7**16)
    domain = td.Domain(x=td.Integer(0, 50), y=td.Integer(0, 50))
    secrets = td.Within(5, metric=td.L2(x=1 + third, y=1 + seventh))
    graph = td.Policy(domain, secrets).graph
    for x, y in itertools.product(range(7), repeat=2):
        inside = ((1 + third) * x) ** 2 + ((1 + seventh) * y) ** 2 <= 25
        told = bool(graph.joined(0, domain.encode([x, y])))
        assert told or not inside or (x, y) == (0, 0)
        assert inside or not told or (x, y) in ((3, 4), (4, 3), (5, 0), (0, 5))


def test_distances_of_several_attributes_that_are_too_far_are_refused() -> None:
    domain = td.Domain({n: td.Integer(0, 3000) for n in "abc"})
    graph = td.Policy(domain, td.Within(50, metric=td.L2(a=1, b="1.5", c=2))).graph
    assert graph.distance(0, int(domain.encode([20, 10, 10]))) == 1
    with pytest.raises(Unsupported, match="distance: too many cells"):
        graph.distance(0, domain.size - 1)
    with pytest.raises(Unsupported, match="too many edges to list"):
        next(graph.edges())
    uniform = td.Policy(domain, td.Within(50, metric=td.L1(a=1, b=1, c=1))).graph
    assert uniform.distance(0, domain.size - 1) == 180


# ---------- blocks, edges and whole maps ----------


@examples(60)
@given(maps(), st.integers(1, 5), st.integers(1, 5))
def test_blocks_of_a_map_are_rectangles_of_cells(point: Any, rows: int, columns: int) -> None:
    graph = td.Policy(td.Domain(home=point), td.Partition(blocks={"home": (rows, columns)})).graph
    cut = [[i * min(k, n) // n for i in range(n)] for n, k in zip(point.shape, (rows, columns), strict=True)]
    block = [(cut[0][c // point.shape[1]], cut[1][c % point.shape[1]]) for c in range(point.n_values)]
    adjacent = [[a != b and x == y for b, y in enumerate(block)] for a, x in enumerate(block)]
    assert isinstance(graph.axes[0], Blocks)
    agrees(graph.axes[0], with_star(adjacent, point.missing))


def test_one_number_of_blocks_is_for_rows_and_columns() -> None:
    domain = td.Domain(home=plane(4, 6), sex=td.Categorical(["f", "m"]))
    both, one = (td.Policy(domain, td.Partition(blocks={"home": k})).graph for k in ((2, 2), 2))
    assert both.n_components == one.n_components == 4
    assert one.joined(domain.encode([0, 0]), domain.encode([7, 1]))  # sex is not cut
    mixed = td.Policy(domain, td.AttributeWise(home=td.Within(2), sex=td.Full())).graph
    assert mixed.joined(domain.encode([0, 0]), domain.encode([1, 0]))
    assert not mixed.joined(domain.encode([0, 0]), domain.encode([1, 1]))
    assert mixed.distance(int(domain.encode([0, 0])), int(domain.encode([1, 1]))) == 2


def test_edges_and_labels_of_places() -> None:
    domain = td.Domain(home=plane(2, 2), n=td.Integer(0, 1))
    graph = td.Policy(domain, td.Edges([((0.5, 0.5), (1.5, 1.5))], on="home")).graph
    assert graph.joined(domain.encode([0, 1]), domain.encode([3, 1])) and graph.axes[0].n_edges == 1
    listed = td.Policy(domain, td.Edges([(("0.5 0.5", 0), ("1.5 0.5", 1))])).graph
    assert listed.joined(domain.encode([0, 0]), domain.encode([2, 1]))
    by = td.Policy(domain, td.Partition(by=["a", "b", "b", "a"], on="home")).graph
    assert by.joined(domain.encode([0, 0]), domain.encode([3, 0])) and not by.joined(0, domain.encode([1, 0]))


REFUSED = [
    (td.Within(1, metric=td.Haversine()), "Haversine measures latitudes and longitudes"),
    (td.Within("1 km"), "declared in no unit, not in km"),
    (td.AttributeWise(home=td.Within(-1)), "a distance is not negative"),
    (td.Within(1, metric=td.L1(home=1, n=1)), "Within.metric.home: a place has a distance of its own"),
    (td.Partition(blocks={"n": (1, 2)}), "secrets.n.blocks: one number; rows and columns are for places"),
    (td.Edges([(1, 2)], on="home"), "secrets.home.edges: a place: a pair of numbers"),
    (td.Edges([((9, 9), (0, 0))], on="home"), "secrets.home.edges: a number from 0 to 2"),
]  # fmt: skip


@pytest.mark.parametrize(("secrets", "says"), REFUSED)
def test_secrets_that_do_not_fit_places_are_refused(secrets: Any, says: str) -> None:
    domain = td.Domain(home=plane(2, 2), n=td.Integer(0, 3))
    if isinstance(secrets, td.Within) and not getattr(secrets.metric, "weights", ()):
        secrets = td.AttributeWise(home=secrets)
    with pytest.raises(SpecificationError, match=says):
        td.Policy(domain, secrets)


BOX = ((0, 1), (0, 1))


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: td.Point("a", "b", box=BOX, cell=[1]), "cell: expected a number"),
        (lambda: td.Point("a", "b", box=BOX, cell=True), "cell: a truth value is not a number"),
        (lambda: td.Point("a", "b", box=BOX, cell=float("nan")), "cell: must be finite"),
        (lambda: td.Point("a", "b", box=BOX, cell="-1 km"), "cell: a distance is not negative"),
        (lambda: td.Point("a", "b", box=BOX, cell=1, unit=[1]), "unit: text, not a list"),
        (lambda: td.Point("a", "b", box=BOX, cell=1, metric=["local"]), 'metric: "local"'),
        (
            lambda: td.Point("a", 5, box=BOX, cell=1),
            "point: the names of two columns, as texts, not a number",
        ),
        (lambda: td.Point("a", "b", box=5, cell=1), "box: two pairs of bounds"),
        (lambda: td.Point("a", "b", box=((0, 1), (None, 1)), cell=1), "box: expected a number"),
        (
            lambda: td.Point("a", "b", box=BOX, cell=1, missing="drop"),
            "missing: 'refuse', 'secret' or 'public'",
        ),
        (
            lambda: td.Point("a", "b", box=((F(1, 3**40), 1), (0, 1)), cell=1, metric="planar"),
            "box: the boundaries",
        ),
        (lambda: td.Within(1, metric=td.Haversine), "Within.metric: L1, L2, Discrete or Haversine"),
        (lambda: td.Partition({"home": (1, 2, 3)}), "Partition.blocks.home: expected a number"),
    ],
)
def test_wrong_places_are_refused_where_they_are_written(build: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{says}"):
        build()


def test_great_circles_need_half_a_globe_at_most() -> None:
    wide = td.Point("lat", "lon", box=((-60, 60), (-180, 180)), cell="500 km")
    with pytest.raises(SpecificationError, match="spans at most 180 degrees"):
        td.Policy(td.Domain(home=wide), td.Within("500 km", metric=td.Haversine()))


def test_a_map_of_120_000_cells_answers_without_its_billion_edges() -> None:
    home = td.Point("lat", "lon", box=((30, 50), (-125, "-105.4")), cell="5.57 km")
    policy = td.Policy(td.Domain(home=home), td.Within("500 km"))
    axis = policy.graph.axes[0]
    assert home.shape == (400, 300) and axis.n_edges > 10**9
    assert policy.sensitivity(td.Histogram("home")).value == 2
    assert policy.sensitivity(td.Histogram("home", bins={"home": 4})).value == 2
    assert axis.distance(0, home.size - 1) == 6 and axis.n_components == 1


# ---------- plain words ----------


def lines_of(domain: Any, secrets: Any) -> list[str]:
    return td.Policy(domain, secrets).explain().split("\n")


def test_distances_between_places_are_told_in_their_unit() -> None:
    home = td.Point("lat", "lon", box=(("48.1", "49.2"), (1.4, 3.6)), cell="250 m")
    domain = td.Domain(home=home, sex=td.Categorical(["f", "m"]))
    near = "are joined, since some of their places are that close; a cell is about 249.6 m × 249.8 m)."
    told = lines_of(domain, td.AttributeWise(home=td.Within("500 m"), sex=td.Full()))
    # A hop is at most (1, 3), (2, 2) or (3, 1) cells, and 489 rows and 646 columns lie between the corners.
    assert (
        "Protected: home: two places at most 500 m apart, as the crow flies, in local lengths (cells up to 3 rows or 3 "
        f"columns apart {near}" in told
    )
    assert (
        "Odds: home: 48.1011 1.4017 and 49.1989 3.5983 are 284 hops apart, so that pair costs up to 284 epsilon."
        in told
    )
    told = lines_of(domain, td.Within("5 km", on="home", metric=td.Haversine()))
    assert told[0].startswith("NOT protected: sex.")
    assert (
        f"Protected: home: two places at most 5 km apart, along great circles (cells up to 21 rows or 21 columns apart {near}"
        in told
    )
    told = lines_of(domain, td.Within(300, on="home", metric=td.L1(home="1.5")))
    assert (
        "Protected: home: two places at most 300 m apart, along the two coordinates, in local lengths, each unit counted 1.5 "
        f"times (cells up to 1 rows or 1 columns apart {near}" in told
    )
    told = lines_of(domain, td.Partition({"home": (2, 3)}))
    assert "Protected: home: two places of the same block of the map." in told
    assert "Disclosed exactly: the block in which each record's home lies, and how many lie in each." in told
    assert (
        "Odds: no epsilon hides in which block a record's home lies: two values in different blocks are not secret from each "
        "other." in told
    )


def test_distances_over_several_attributes_are_told_as_one_rule() -> None:
    domain = td.Domain(x=td.Integer(0, 99, unit="km"), y=td.Integer(0, 9, unit="km"), n=td.Integer(0, 3))
    told = lines_of(domain, td.Within("6 km", metric=td.L1(x=1, y=2)))
    assert told[0] == "NOT protected: n. Its values may be disclosed exactly, person by person."
    for line in (
        "Protected: several attributes at once: any two combinations of values for which the differences in x, 2 × y, added "
        "up, are at most 6 km.",
        "Protected: x: two values at most 6 km apart, if nothing else differs.",
        "Protected: y: two values at most 3 km apart, if nothing else differs.",
        "Odds: x: 0 and 99 are 17 hops apart, so that pair costs up to 17 epsilon.",
        "Odds: x, y together: 0, 0 and 99, 9 are 20 hops apart, so that pair costs up to 20 epsilon.",
    ):
        assert line in told, line
    euclid = lines_of(domain, td.Within(5, metric=td.L2(x=1, y=1)))
    assert any(
        "the squared differences in x, y, added up, are at most the square of 5 km." in line
        for line in euclid
    )


def test_pairs_that_no_path_joins_are_told() -> None:
    domain = td.Domain(a=td.Integer(0, 1), b=td.Integer(0, 1))
    told = lines_of(domain, td.Edges([((0, 0), (1, 1))]))
    assert any(
        line.startswith("Odds: no epsilon hides in which group of joined value combinations") for line in told
    )
    assert not any("no epsilon" in line for line in lines_of(domain, td.Full()))
