"""What fits a page, a phone and a sheet of paper: sizes of charts, names of places, maps of binned places, weights in words."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import epsilon

import tetraodon as td
from tetraodon.presentation import Presentation
from tetraodon.publish import publish
from tetraodon.report import render
from tetraodon.report.answers import Axis, Group, View, view
from tetraodon.report.charts import drawing
from tetraodon.report.document import Entry
from tetraodon.report.frames import ABOVE, NARROWEST, TALL, Panels, columns_of, fitting
from tetraodon.report.places import place_map
from tetraodon.report.reading import read
from tetraodon.report.shades import shades
from tetraodon.report.spots import spot
from tetraodon.report.svg import drawn
from tetraodon.requests import Request

SIDE, CELL = 6000, 1000
LARGEST = 780  # a chart of 460 pixels across with its legend, on a printed page


def place(name: str) -> td.Point:
    return td.Point(
        f"{name}_east", f"{name}_north", box=[[0, SIDE], [0, 3000]], cell=CELL, metric="planar", unit="m"
    )


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Journeys between places, in squares and in blocks of them, by hour, and with stated rows and columns."""
    rng = np.random.default_rng(3)
    rows: dict[str, Any] = {f"{n}_east": rng.uniform(0, SIDE, 4000) for n in "ab"}
    rows |= {f"{n}_north": 3000 * rng.beta(2, 4, 4000) for n in "ab"} | {"hour": rng.integers(0, 24, 4000)}
    domain = td.Domain(a=place("a"), b=place("b"), hour=td.Integer(0, 23, unit="h"))
    policy = td.Policy(domain, secrets=td.AttributeWise(a=td.Full(), b=td.Full()))
    session = td.Session(td.Table(rows, domain, name="trips"), policy, epsilon="3")
    half = epsilon(Fraction(1, 2))
    releases = session.release_all(
        [
            Request(td.Histogram("a", bins={"a": 2}), half, "blocks"),
            Request(td.Histogram("a", "b", bins={"a": 2, "b": 2}), half, "both"),
            Request(td.Histogram("b", by="hour", bins={"hour": 6}), half, "hours"),
            Request(td.Histogram("a", bins={"a": [[0, 1, 4], [0, 2]]}), half, "uneven"),
        ]
    )
    folder = tmp_path_factory.mktemp("trips")
    return publish(folder, [(r, ("csv",)) for r in releases], session.context)


def seen(path: Path, name: str) -> tuple[Entry, View, dict[str, Any]]:
    document = read(path)
    entry = next(e for e in document.answers if e.name == name)
    return entry, view(entry, document.policy.domain), dict(document.policy.domain)


def fills(svg: str) -> list[list[str]]:
    """Colours of all cells of every map, row 0 highest, from the runs that were drawn."""
    found = []
    for drawn_map in re.findall(r'<g transform="translate\([^"]*"[^>]*>(.*?)</g>', svg):
        cells: dict[tuple[int, int], str] = {}
        for colour, runs in re.findall(r'<path fill="([^"]+)" d="([^"]*)"', drawn_map):
            for x, y, n in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", runs):
                cells |= {(int(y), int(x) + i): colour for i in range(int(n))}
        found.append([cells.get((r, c), "") for r in range(20) for c in range(20)])
    return found


@pytest.mark.parametrize(("name", "side"), [("blocks", 2), ("both", 2), ("hours", 1)])
def test_binned_places_are_drawn_where_they_lie(trips: Path, name: str, side: int) -> None:
    entry, told, domain = seen(trips, name)
    picture = place_map(entry, told, domain)
    assert picture is not None
    half = entry.half_width or 0.0
    counts = [np.rint(np.where(g.value > half, g.value, 0)).astype(int) for g in told.groups]
    scale = shades(np.concatenate(counts), is_whole=True)
    assert scale is not None
    maps = fills(picture.svg)
    assert len(maps) == len(told.groups)
    rows = -(-3 // side)
    for drawn_map, amounts in zip(maps, counts, strict=True):
        expected = [""] * 400
        for label, amount in zip(told.axis.labels, amounts, strict=True):
            east, north = (Decimal(t) for t in label.strip("() km").split(", "))
            column, row = int(east // side), rows - 1 - int(north // side)
            shade = int(scale.of(np.array([amount]))[0])
            expected[20 * row + column] = scale.colours[shade] if shade >= 0 else ""
        assert drawn_map == expected


def test_a_ring_stands_on_the_place_that_a_map_is_of(trips: Path) -> None:
    entry, told, domain = seen(trips, "both")
    picture = place_map(entry, told, domain)
    assert picture is not None
    rings = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture.svg)[::2]
    frames = re.findall(
        r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="none"', picture.svg
    )
    assert len(rings) == len(frames) == len(told.groups) == 6
    for group, ring, frame in zip(told.groups, rings, frames, strict=True):
        east, north = (float(t) for t in group.label.strip("() km").split(", "))
        x, y, width, height = (float(t) for t in frame)
        column, row = int((float(ring[0]) - x) / width * 3), int((y + height - float(ring[1])) / height * 2)
        assert (column, row) == (int(east // 2), int(north // 2))
    assert any("ring" in note and "(a_east, a_north)" in note for note in picture.notes)


def test_uneven_blocks_are_no_map_and_their_names_say_where_they_lie(trips: Path) -> None:
    entry, told, domain = seen(trips, "uneven")
    assert place_map(entry, told, domain) is None
    assert told.axis.labels == tuple(f"({x}, {y}) km" for x in ("0.5", "2.5", "5") for y in ("1", "2.5"))
    page = render(trips)
    assert "A record with" in page and "(0.5, 0.5) km" in page and "500 500" not in page


@given(
    st.lists(st.tuples(st.decimals(-9999, 9999, places=3), st.decimals(-9999, 9999, places=3)), min_size=2)
)
def test_places_keep_names_of_their_own(pairs: list[tuple[Decimal, Decimal]]) -> None:
    labels = {f"{a.normalize():f} {b.normalize():f}" for a, b in pairs}
    for spec in (
        {"point": ["x", "y"], "metric": "planar", "unit": "m", "box": [["0", "9999"], ["0", "9999"]]},
        {"point": ["x", "y"], "metric": "planar", "box": [["0", "9999"], ["0", "9999"]]},
        {"point": ["lat", "lon"]},
    ):
        assert len({spot(label.replace("-0 ", "0 "), spec) for label in labels}) >= len(
            {tuple(Decimal(t) for t in label.split()) for label in labels}
        )


@given(st.integers(1, 40), st.integers(17, 620), st.floats(12, 180), st.floats(0, 160))
def test_small_charts_are_wide_enough_and_fit_a_page(
    count: int, height: int, left: float, right: float
) -> None:
    size = Panels(height, left, right)
    columns = columns_of(count, size)
    assert columns == 1 or size.width(columns) >= NARROWEST
    kept = fitting(count, size)
    assert kept == 1 or -(-kept // columns_of(kept, size)) * (height + ABOVE) <= TALL
    more = kept + 1
    assert kept == count or -(-more // columns_of(more, size)) * (height + ABOVE) > TALL


def groups_of(values: Any, labels: list[str]) -> tuple[Group, ...]:
    return tuple(
        Group(label, v, v - 1.0, v + 1.0)
        for label, v in zip(labels, np.asarray(values, dtype=float), strict=True)
    )


@pytest.mark.parametrize(("groups", "lines"), [(1, 40), (2, 30), (3, 5), (9, 5), (13, 3), (30, 30), (200, 2)])
@pytest.mark.parametrize("word", ["histogram", "linear"])
def test_charts_of_any_table_fit_a_printed_page(trips: Path, groups: int, lines: int, word: str) -> None:
    """Bars, whatever the number of groups and lines, with long names and short ones."""
    entry, _, _ = seen(trips, "blocks")
    names = [f"a long name of line {i}" if word == "linear" else f"b{i}" for i in range(lines)]
    values = np.arange(groups * lines).reshape(groups, lines)
    told = View(
        "records",
        "records",
        Axis("x", "", tuple(names), lines, False),
        "g",
        groups_of(values, [f"g{i}" for i in range(groups)]),
    )
    shown = drawing(replace(entry, word=word), told)
    svg = drawn(shown.chart, shown.label, "t")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    assert float(box[2]) / float(box[1]) * 460 <= LARGEST


def drawn_rows(chart: Any) -> list[dict[str, Any]]:
    """All rows that a chart holds, once each."""
    spec = chart.to_dict()
    sets = [*spec.get("datasets", {}).values()]
    if "values" in spec.get("data", {}):
        sets.append(spec["data"]["values"])
    assert sets
    return [row for rows in sets for row in rows]


def released(tmp_path: Path, query: Any, values: Any, groups: list[str]) -> tuple[Entry, View]:
    domain = td.Domain(x=td.Integer(0, 99, unit="years"), g=td.Categorical(sorted(set(groups))))
    policy = td.Policy(domain, secrets=td.AttributeWise(x=td.Within(5)))
    session = td.Session(td.Table({"x": values, "g": groups}, domain, name="t"), policy, epsilon="100")
    made = session.release_all([Request(query, epsilon(Fraction(50)), "r")])
    path = publish(tmp_path, [(made[0], ("csv",))], session.context)
    return seen(path, "r")[:2]


def test_many_groups_of_quantiles_take_one_line_each(tmp_path: Path) -> None:
    groups = [f"region {i:02d}" for i in range(13) for _ in range(50)]
    values = np.random.default_rng(1).integers(0, 100, len(groups))
    entry, told = released(tmp_path, td.Quantiles("x", ["0.1", "0.5", "0.9"], by="g"), values, groups)
    shown = drawing(entry, told)
    rows = drawn_rows(shown.chart)
    truth = {(g.label, i): float(g.value[i]) for g in told.groups for i in range(3)}
    levels = [label.strip() for label in told.axis.labels]
    assert {(r["c"].strip(), levels.index(r["g"].strip())): r["v"] for r in rows} == truth
    assert len(truth) == 39
    svg = drawn(shown.chart, shown.label, "q")
    assert all(len(re.findall(f">{g.label} ?</text>", svg)) == 1 for g in told.groups)


@pytest.mark.parametrize(
    ("values", "marked"), [([0] * 95 + [60, 70, 80, 90, 99], False), (list(range(100)), True)]
)
def test_shares_are_marked_where_they_tell_something(tmp_path: Path, values: list[int], marked: bool) -> None:
    entry, told = released(tmp_path, td.CDF("x"), values, ["g"] * 100)
    shown = drawing(entry, told)
    rows = drawn_rows(shown.chart)
    assert any(row["m"] == "mark" for row in rows) is marked
    assert any(note.startswith("Quantiles at") for note in shown.notes) is marked


@pytest.mark.parametrize("step", ["0.5", "1"])
def test_weights_are_said_wherever_records_are_counted(tmp_path: Path, step: str) -> None:
    domain = td.Domain(x=td.Integer(0, 9, unit="years"))
    policy = td.Policy(domain, secrets=td.Within(2))
    rows = {"x": [1, 2, 3, 8], "w": [1.0, 2.0, 3.0, 4.0]}
    table = td.Table(
        rows, domain, name="t", weight="w", weight_bounds=(0, 10), weight_step=step, weights="public"
    )
    session = td.Session(table, policy, epsilon="1")
    releases = session.release_all([Request(td.Histogram("x"), epsilon(Fraction(1)), "counts")])
    page = render(publish(tmp_path, [(releases[0], ("csv",))], session.context))
    assert "Weighted number of records for every x." in page
    assert " weighted records" in page and "Nor are the weights of records" in page
    assert ("Scales count steps of 0.5, the step of the weights." in page) is (step == "0.5")


def test_rounded_numbers_have_the_decimals_of_their_step(tmp_path: Path) -> None:
    domain = td.Domain(x=td.Integer(0, 99, unit="days"), g=td.Categorical(["a", "b", "c"]))
    policy = td.Policy(domain, secrets=td.AttributeWise(x=td.Within(5)))
    session = td.Session(
        td.Table({"x": [8, 8, 9, 5], "g": ["a", "a", "b", "c"]}, domain), policy, epsilon="1000"
    )
    made = session.release_all([Request(td.Mean("x", by="g"), epsilon(Fraction(1000)), "means")])
    path = publish(tmp_path, [(made[0], Presentation(round_to=Fraction(1, 10)))], session.context)
    entry, told, _ = seen(path, "means")
    texts = [row["t"] for row in drawn_rows(drawing(entry, told).chart)]
    assert texts == [f"{g.value[0]:.1f}" for g in told.groups]
    assert {t.partition(".")[2] for t in texts} == {"0"}
