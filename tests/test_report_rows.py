"""Pages of row releases against the manifest and the files they were made from: what they say, draw and refuse."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_manifest import (
    COMPUTED,
    DOMAIN,
    EVIL,
    MEASURED,
    all_kinds,
    channel_spec,
    columns,
    drawn,
    entry,
    evidence,
    listed,
    manifest,
    moved,
)
from test_report import TAGS, Reader

import tetraodon as td
from tetraodon.errors import OutputError, SpecificationError
from tetraodon.loss import Loss
from tetraodon.report import render
from tetraodon.report.density import Field, counted_rows, ground
from tetraodon.report.document import ChannelText, RowRelease
from tetraodon.report.leaking import leaking
from tetraodon.report.losses import symbols
from tetraodon.report.maps import MOST, blocks, density
from tetraodon.report.origins import panels
from tetraodon.report.reading import read
from tetraodon.report.reported import reported
from tetraodon.report.shades import RAMP, shades
from tetraodon.report.summary import six
from tetraodon.report.words import clean

NAMES = ["places", "fitted", "hidden", "spending", "work", "two"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of every kind beside an answer."""
    return manifest(tmp_path_factory.mktemp("rows") / "out", 400, all_kinds, True)


@pytest.fixture(scope="module")
def page(published: Path) -> str:
    return render(published)


@pytest.fixture(scope="module")
def reader(page: str) -> Reader:
    return Reader(page)


@pytest.fixture
def copied(published: Path, tmp_path: Path) -> Path:
    """A copy of what was published, for a test to change."""
    return Path(shutil.copytree(published.parent, tmp_path / "out")) / published.name


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    spec = json.loads(path.read_text())
    change(spec)
    path.write_text(json.dumps(spec))
    return path


def told_of(page: str, name: str) -> str:
    """The text of one release."""
    found = re.search(
        rf"<article id=\"release-\d+\">\n<div class=\"top\">\n<h3>{name}</h3>.*?</article>", page, re.S
    )
    assert found is not None
    return re.sub(r"\s+", " ", " ".join(Reader(found[0]).text))


def rows_of(path: Path, name: str) -> RowRelease:
    return next(e for e in read(path).rows if e.name == name)


# ---------------------------------------------------------------------------------------------------------------- the page


def test_page_is_well_formed_and_semantic(reader: Reader) -> None:
    assert {tag for tag, _ in reader.elements} <= TAGS
    assert len(reader.all("h1")) == 1 and len(reader.all("h3")) == len(NAMES) + 1
    assert all(th.get("scope") in ("col", "row") for th in reader.all("th"))
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert len(reader.all("figcaption")) == len(reader.all("figure"))
    for chart in reader.all("svg"):
        assert chart["role"] == "img" and len(chart["aria-label"]) > 20
        assert [float(v) for v in chart["viewbox"].split()][:2] == [0, 0]


def test_nothing_is_loaded_and_nothing_runs(page: str, reader: Reader, published: Path) -> None:
    assert "<script" not in page.lower() and "@import" not in page and "url(" not in page
    assert "http:" not in page and "https:" not in page
    names = {name for _, attrs in reader.elements for name in attrs}
    assert not {n for n in names if n.startswith("on") or n in ("src", "srcset", "xlink:href", "action")}
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {a["href"] for a in reader.all("a")}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    files = {p.name for p in published.parent.iterdir()} - {"manifest.json"}
    assert {link for link in links if not link.startswith("#")} == files


def test_hostile_names_are_shown_and_nothing_more(page: str, reader: Reader) -> None:
    told = " ".join(reader.text)
    assert "&lt;/text&gt;&lt;script&gt;" in page and clean(EVIL)[:14] in told and "none of <these>" in told
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        Reader(svg)


def test_every_text_of_a_manifest_is_escaped(copied: Path) -> None:
    """Whatever stands where words stand, the page stays what it is."""
    kept = {
        "kind", "guarantee", "source", "attributes", "columns", "epsilon", "amount", "unit_of", "files", "name", "kept", "query", "file",
        "spent", "value", "disclosed_exactly",
    }  # fmt: skip

    def spoilt(told: Any, key: str = "") -> Any:
        if isinstance(told, dict):
            return {k: v if k in kept and k != "name" else spoilt(v, k) for k, v in told.items()}
        if isinstance(told, list):
            return [spoilt(v, key) for v in told]
        return f"{EVIL}\x00\u202e{key}" if isinstance(told, str) else told

    def change(spec: dict[str, Any]) -> None:
        for own in spec["releases"][1:]:
            unit = own["spent"]
            for channel in own["channels"]:
                channel |= spoilt(channel)
            own |= {k: spoilt(v, k) for k, v in own.items() if k not in (*kept, "channels")}
            own |= {"permanent": {"id": EVIL, "epoch": EVIL}, "name": EVIL, "spent": unit, "kept": [EVIL]}

    page = render(changed(copied, change))
    reader = Reader(page)
    assert {tag for tag, _ in reader.elements} <= TAGS
    assert "<script" not in page.lower() and "\x00" not in page and "\u202e" not in page
    assert not {n for _, attrs in reader.elements for n in attrs if n.startswith("on")}
    assert page.count("&lt;script&gt;") > 50


def test_charts_are_small(page: str) -> None:
    assert max(map(len, re.findall(r"<svg.*?</svg>", page, re.S))) < 60_000


def test_same_input_same_bytes(published: Path, page: str) -> None:
    assert render(published) == page


def test_every_file_is_digested(copied: Path) -> None:
    names = [p.name for p in copied.parent.iterdir() if p.name != "manifest.json"]
    assert "places.channel.npz" in names
    for name in names:
        path = copied.parent / name
        before = path.read_bytes()
        content = bytearray(before)
        content[len(content) // 2] ^= 1
        path.write_bytes(bytes(content))
        with pytest.raises(OutputError, match=f"{re.escape(name)}: its sha256"):
            render(copied)
        path.write_bytes(before)


# ------------------------------------------------------------------------------------------------------- what the words say


def test_no_proved_bound_comes_first(published: Path) -> None:
    lines = six(read(published))
    assert lines[0].key == "unproved" and lines[0].alert and lines[0].label == "No proved bound"
    assert "<b>fitted</b> and <b>hidden</b>" in lines[0].text and "places" not in lines[0].text
    assert [line.key for line in lines[1:]] == ["open", "who", "odds", "spent", "outside", "guarantee"]
    by = {line.key: line.text for line in lines}
    assert by["odds"].startswith("Where a bound is proved: whatever else is known")
    assert "without a proved bound are in no such sum" in by["spent"]
    assert "without a proved bound" not in by["outside"] and "the region of every record" in by["outside"]
    assert "<b>Proved</b>" in by["guarantee"] and "<b>Measured</b>" in by["guarantee"]


def test_six_lines_stay_six_where_all_is_proved(copied: Path) -> None:
    def only(spec: dict[str, Any]) -> None:
        spec["releases"] = [e for e in spec["releases"] if e["guarantee"] == "proved"]
        spec["budget"]["outside"] = []

    lines = six(read(changed(copied, only)))
    assert [line.key for line in lines] == ["open", "who", "odds", "spent", "outside", "guarantee"]
    assert "<b>region</b> unchanged: a quasi-identifier" in lines[0].text and lines[0].alert


def test_an_earlier_release_without_a_bound_is_named(copied: Path) -> None:
    def only(spec: dict[str, Any]) -> None:
        spec["releases"] = spec["releases"][:2]
        spec["budget"]["outside"] = ["rows of a<b through a channel without a proved bound"]

    lines = six(read(changed(copied, only)))
    assert lines[0].key == "unproved" and "Released before: rows of a&lt;b through a channel" in lines[0].text


def test_nothing_is_promised_where_nothing_is_proved(copied: Path) -> None:
    def only(spec: dict[str, Any]) -> None:
        spec["releases"] = [e for e in spec["releases"] if e["guarantee"] == "measured"]
        spec["budget"] |= {"spent": "0", "elsewhere": "0", "remaining": "10"}

    path = changed(copied, only)
    by = {line.key: line.text for line in six(read(path))}
    assert by["odds"] == "None are promised: nothing is proved of what stands on this page."
    told = re.sub(r"\s+", " ", " ".join(Reader(render(path)).text))
    assert "Proved :" not in told.split("Release by release")[0]
    assert "factor of" not in told.split("The policy in words")[0]
    assert "Everything on this page is certified or measured" in told


def test_the_three_words_are_kept_apart(page: str) -> None:
    fitted, places = told_of(page, "fitted"), told_of(page, "places")
    assert "No proved bound. The channel of home was computed from these very rows" in fitted
    assert "Measured means: found for one attacker" in fitted and "bounds no other attacker" in fitted
    assert "proved" not in re.sub("No proved bound|Nothing is proved|nothing is proved", "", fitted)
    assert MEASURED in fitted and MEASURED not in places
    assert "Nothing is charged, since nothing is proved: measured" in fitted
    assert "ε = 4, proved" in places and "measured" not in places.lower()
    for one in (fitted, places):
        assert "certified gap 0.0004 bits" in one


def test_words_of_the_evidence_are_told_in_full(page: str, published: Path) -> None:
    for entry_ in read(published).rows:
        told = told_of(page, entry_.name)
        for channel in entry_.channels:
            for sentence in channel.evidence.words if channel.evidence else ():
                kind, _, rest = sentence.partition(": ")
                assert kind in told
                for part in re.split(r"\d[\d.]* %", rest[1:]):
                    assert part.strip() in told


def test_hidden_evidence_says_why(page: str) -> None:
    told = told_of(page, "hidden")
    assert (
        "was computed from private rows. Its probabilities, its certificate and its expected distance" in told
    )
    assert "none of these is published" in told
    assert "on average" not in told and "bits" not in told


def test_charges_and_what_leaves_unchanged(page: str) -> None:
    assert "ε 8 per person = 1 place × 2 rows × 4." in told_of(page, "places")
    assert "ε 16 per person = 2 places × 2 rows × 4." in told_of(page, "two")
    assert "region leaves in the same row as it is, outside every guarantee." in told_of(page, "work")
    assert "a quasi-identifier" in told_of(page, "places") and "Unchanged" not in told_of(page, "spending")


def test_distances_stand_where_answers_have_their_error(page: str, published: Path) -> None:
    table = re.search(r"<table>\n<caption>Every release.*?</table>", page, re.S)
    assert table is not None
    rows = dict(re.findall(r'<a href="#release-\d+">([^<]*)</a>(.*?)</tr>', table[0], re.S))
    far = rows_of(published, "places").channels[0].evidence
    assert far is not None and far.distortion is not None
    assert f"about {far.distortion:.3g} m away" in rows["places"]
    assert "no bound" in rows["fitted"] and "not published" in rows["hidden"]
    assert re.search(r"about [\d.]+ % changed", rows["work"])
    assert "x and y about" in rows["two"] and "job about" in rows["two"]
    assert "± at 95 %, or distance" in table[0] and "records" in rows["jobs"]


def test_rows_alone_have_a_table_of_their_own(copied: Path) -> None:
    def only(spec: dict[str, Any]) -> None:
        spec["releases"] = spec["releases"][1:2]

    page = render(changed(copied, only))
    told = re.sub(r"\s+", " ", " ".join(Reader(page).text))
    assert "Release ε Distance Rows Mechanism Files" in told
    assert "Smallest count" not in told and "Good to 10 %" not in told and "Quasi-identifier" in told
    assert "1 release" in told


# ------------------------------------------------------------------------------------------------------------ what is drawn


@pytest.mark.parametrize("held", [1 << 18, 37])
@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_the_published_file(
    published: Path, name: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows are looked at together."""
    monkeypatch.setattr("tetraodon.report.density.ROWS", held)
    entry_ = rows_of(published, name)
    form = next(f for f in entry_.files if f.form in ("csv", "parquet"))
    path = published.parent / form.path
    if form.form == "csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = [
            {k: "" if v is None else str(v) for k, v in r.items()} for r in pq.read_table(path).to_pylist()
        ]
    for one in reported(entry_, read(published).policy.domain):
        expected = Counter(tuple(row[c] for c in one.channel.columns) for row in rows)
        assert int(one.counts.sum()) == len(rows) == entry_.rows
        found: Counter[tuple[str, ...]] = Counter()
        for cell in np.flatnonzero(one.counts):
            told = columns(one.ground.domain, np.array([cell]))
            found[tuple("" if v[0] is None else str(v[0]) for v in told.values())] += int(one.counts[cell])
        assert found == expected


def _painted(svg: str) -> dict[tuple[int, int], str]:
    """Colour of every cell by column and row from the top."""
    found = {}
    for colour, path in re.findall(r'<path fill="(#[0-9a-f]{6})" d="([Mhvz\d -]*)"', svg):
        for x, y, n in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path):
            for i in range(int(n)):
                assert (int(x) + i, int(y)) not in found
                found[int(x) + i, int(y)] = colour
    return found


def test_a_map_paints_every_cell_by_its_count(published: Path) -> None:
    document = read(published)
    [one] = reported(rows_of(published, "places"), document.policy.domain)
    field = one.ground.field
    assert field is not None and field.is_map
    grid = one.ground.grid(one.counts)
    told = shades(grid, is_whole=True)
    assert told is not None
    painted = _painted(density(field, grid, "rows", "a map").svg)
    rows, columns_ = field.shape
    assert len(painted) == (grid > 0).sum()
    for (x, y), colour in painted.items():
        amount = grid[rows - 1 - y, x]
        assert colour == told.colours[max(i for i, low in enumerate(told.limits) if low <= amount)]
    # North is up and east is right.
    place = DOMAIN["home"]
    corner = place.cells([(40.799, -73.931)])[0]
    assert one.ground.place(int(corner)) == (rows - 1, columns_ - 1)


def test_a_map_is_drawn_in_local_lengths(published: Path) -> None:
    """A kilometre is as long up as it is across, and the scale is right."""
    document = read(published)
    [one] = reported(rows_of(published, "places"), document.policy.domain)
    assert one.ground.field is not None
    svg = density(one.ground.field, one.ground.grid(one.counts), "rows", "a map").svg
    scale = re.search(r"scale\(([\d.]+) ([\d.]+)\)", svg)
    assert scale is not None
    tall, wide = (float(v) for v in DOMAIN["home"].lengths)
    across, up = float(scale[1]), float(scale[2])
    assert math.isclose(across / wide, up / tall, rel_tol=1e-4)
    assert math.isclose(wide / float(111195.08 * math.cos(math.radians(40.75)) * 0.09 / 22), 1, rel_tol=1e-6)
    bar = re.search(r'<line x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="\2" stroke="#1b2733"', svg)
    assert bar is not None and ">2 km</text>" in svg
    # Round coordinates stand where they are: 40.72° N one fifth of the way up, 73.95° W seven ninths across.
    move = re.search(r"translate\(([\d.]+) ([\d.]+)\)", svg)
    frame = re.search(r'width="([\d.]+)" height="([\d.]+)" fill="#f4f3ef"', svg)
    assert move is not None and frame is not None
    left, top, width, height = (float(v) for v in (move[1], move[2], frame[1], frame[2]))
    ticks = {
        told: (float(x), float(y))
        for x, y, told in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(\d[^<]*° [NW])</text>', svg)
    }
    assert math.isclose(ticks["40.72° N"][1] - 4, top + 0.8 * height, abs_tol=0.1)
    assert math.isclose(ticks["73.95° W"][0], left + width * 7 / 9, abs_tol=0.1)
    assert math.isclose((float(bar[3]) - float(bar[1])) / (across / wide), 2000, rel_tol=0.01)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 5))
def test_blocks_keep_every_count(rows: int, columns_: int, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(0, 9, (rows, columns_))
    drawn_, side = blocks(grid)
    assert drawn_.sum() == grid.sum() and drawn_.size <= MOST
    assert (
        drawn_[0, 0] == grid[:side, :side].sum()
        and drawn_[-1, -1] == grid[(rows - 1) // side * side :, (columns_ - 1) // side * side :].sum()
    )
    assert side == 1 or -(-rows // (side - 1)) * -(-columns_ // (side - 1)) > MOST


def test_many_cells_are_drawn_in_blocks_and_it_is_said() -> None:
    fine = td.Domain(home=td.Point("lat", "lon", box=((40, 41), (-74, -73)), cell="400 m"))
    place = fine["home"]
    field = Field(place.shape, (40.0, -74.0), (1 / place.shape[0], 1 / place.shape[1]), tuple(map(float, place.lengths)), "m", ("", ""), True, False)  # type: ignore[arg-type]  # fmt: skip
    shown = density(field, np.ones(place.shape, dtype=np.int64), "rows", "a map")
    [note] = shown.notes
    assert "Drawn in blocks of 4 × 4 cells" in note and "km" in note and "rows a block" in shown.svg
    assert len(shown.svg) < 60_000


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_shades_hold_every_count_once(amounts: list[int]) -> None:
    told = shades(np.array(amounts), is_whole=True)
    if told is None:
        assert not any(amounts)
        return
    assert 1 <= len(told.limits) == len(told.labels) == len(set(told.colours)) <= len(RAMP)
    assert list(told.limits) == sorted(set(told.limits))
    for amount, at in zip(amounts, told.of(np.array(amounts)).tolist(), strict=True):
        if not amount:
            assert at == -1
            continue
        assert (at == 0 or told.limits[at] <= amount) and all(amount < v for v in told.limits[at + 1 :])
        ends = [float(v.replace(",", "")) for v in re.findall(r"[\d,]+", told.labels[at])]
        if told.labels[at].startswith("under"):
            assert amount < ends[0]
        else:
            assert ends[0] <= amount <= ends[-1]


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=40))
def test_shades_of_probabilities_stay_apart(amounts: list[float]) -> None:
    told = shades(np.array(amounts), is_whole=False)
    assert told is not None and len(set(told.labels)) == len(told.labels) <= len(RAMP)
    assert (told.of(np.array(amounts)) >= 0).all()


def test_panels_show_the_rows_of_the_channel(published: Path) -> None:
    document = read(published)
    [one] = reported(rows_of(published, "places"), document.policy.domain)
    evidence_ = one.channel.evidence
    found = panels(one.channel, one.ground)
    assert found is not None and evidence_ is not None and len(found.pictures) == len(evidence_.rows) == 6
    told = shades(np.array([p for row in evidence_.rows for _, p in row.outputs]), is_whole=False)
    assert told is not None
    middles = []
    for row, (title, svg) in zip(evidence_.rows, found.pictures, strict=True):
        lat, lon = (float(v) for v in row.label.split())
        north, _, west, _ = title.split()
        assert abs(float(north.rstrip("°")) - lat) < 0.001 and abs(float(west.rstrip("°")) + lon) < 0.001
        # The ring stands on the cell of the record, which this channel makes the likeliest.
        ring = re.search(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
        move = re.search(r"translate\(([\d.]+) ([\d.]+)\) scale\(([\d.]+) ([\d.]+)\)", svg)
        assert ring is not None and move is not None
        x = (float(ring[1]) - float(move[1])) / float(move[3])
        y = (float(ring[2]) - float(move[2])) / float(move[4])
        painted = _painted(svg)
        most = max(p for _, p in row.outputs)
        assert painted[int(x), int(y)] == told.colours[told.of(np.array([most]))[0]]
        assert len(painted) <= len(row.outputs)
        if one.ground.field is not None and (at := one.ground.place(row.cell)) is not None:
            n = round(float(re.findall(r'width="([\d.]+)"', svg)[0]) / float(move[3]))
            m = round(float(re.findall(r'height="([\d.]+)"', svg)[0]) / float(move[4]))
            inside = all(
                k // 2 <= p < most - k // 2
                for p, k, most in zip(at, (m, n), one.ground.field.shape, strict=True)
            )
            assert not inside or (int(x), int(y)) == (n // 2, m // 2)
            middles.append(inside)
    assert any(middles) and not all(middles)


def test_panels_of_numbers_and_names(published: Path, page: str) -> None:
    document = read(published)
    [spend] = reported(rows_of(published, "spending"), document.policy.domain)
    found = panels(spend.channel, spend.ground)
    assert found is not None and not found.is_wide and len(found.pictures) == 6
    assert all("the bar of the true value is orange" in found.told for _ in found.pictures)
    [job] = reported(rows_of(published, "work"), document.policy.domain)
    named = panels(job.channel, job.ground)
    assert named is not None and named.is_wide
    keep = math.exp(2) / (math.exp(2) + 5)
    assert f">{100 * keep:.2g} %</text>" in named.pictures[0][1]
    assert ">missing</text>" in named.pictures[-1][1] and ">100 %</text>" in named.pictures[-1][1]
    assert panels(replace(job.channel, evidence=None), job.ground) is None


def test_the_curve_holds_the_numbers_of_the_manifest(published: Path) -> None:
    channel = rows_of(published, "places").channels[0]
    made = leaking(channel, False)
    assert made is not None and channel.evidence is not None and channel.evidence.attack is not None
    chart, label, notes = made
    points = json.dumps(chart.to_dict())
    for line in channel.evidence.curve:
        for amount in (*line.distortion, *line.leakage):
            assert json.dumps(amount) in points
    own = {"d": channel.evidence.distortion, "b": channel.evidence.attack.bits}
    assert json.dumps(own) in points
    assert "least leaking (certified) from" in label and "lower bound lies within 0.0001 bits" in notes[0]


def test_a_wide_gap_is_drawn_and_said(published: Path) -> None:
    channel = rows_of(published, "places").channels[0]
    assert channel.evidence is not None
    *named, best = channel.evidence.curve
    loose = replace(best, bound=tuple(v - 0.3 for v in best.leakage))
    made = leaking(replace(channel, evidence=replace(channel.evidence, curve=(*named, loose))), False)
    assert made is not None
    assert "no channel lies below the pale band (up to" in made[2][0] and '"area"' in json.dumps(
        made[0].to_dict()
    )
    single = replace(named[0], distortion=named[0].distortion[:1], leakage=named[0].leakage[:1])
    alone = leaking(replace(channel, evidence=replace(channel.evidence, curve=(single,))), False)
    assert alone is not None and alone[2] == () and "diamond" in json.dumps(alone[0].to_dict())
    assert leaking(replace(channel, evidence=replace(channel.evidence, curve=())), False) is None


@pytest.mark.parametrize("turned", [False, True])
def test_cells_lie_where_their_coordinates_are(turned: bool) -> None:
    """Every cell of a grid is drawn where its middle is, for a map, for two numbers, and for places of a plane."""
    place = td.Point("a", "b", box=((0, 3), (10, 14)), cell=1, metric="planar", missing="public")
    domain = (
        td.Domain(at=place)
        if turned
        else td.Domain(a=td.Integer(0, 2, missing="public"), b=td.Numeric(10, 14, cells=4))
    )
    spec = domain.to_spec()
    told = ground(_text(list(domain), domain.size), spec)
    assert told.field is not None
    cells = np.arange(domain.size)
    grid = told.grid(cells)
    assert grid.shape == told.field.shape == (4, 3)
    for cell in cells:
        at = told.place(int(cell))
        if at is None:
            assert "missing" in domain.labels(int(cell))[0]
            continue
        assert grid[at] == cell
        up, right = (
            low + step * (n + 0.5) for low, step, n in zip(told.field.low, told.field.step, at, strict=True)
        )
        if turned:
            assert domain.labels(int(cell))[0] == f"{right:g} {up:g}"
        else:
            assert domain.encode([domain["a"].cells([math.floor(right)]), domain["b"].cells([up])])[0] == cell


def _text(names: list[str], cells: int) -> Any:
    return ChannelText(
        tuple(names), tuple(names), "k", "n", None, None, "none", False, cells, None, "", None, None
    )


def test_rows_that_are_no_cells_are_refused(copied: Path) -> None:
    path = copied.parent / "spending.csv"
    for wrong in ("-0.5", "500.1", "abc"):
        lines = path.read_text().splitlines()
        lines[3] = wrong
        path.write_text("\n".join(lines) + "\n")

        def again(spec: dict[str, Any]) -> None:
            own = next(e for e in spec["releases"] if e["name"] == "spending")
            own["files"]["csv"] = listed(path)

        with pytest.raises(SpecificationError, match="does not hold the rows") as caught:
            render(changed(copied, again))
        assert wrong not in str(caught.value)


def test_places_outside_the_box_are_refused(copied: Path) -> None:
    path = copied.parent / "fitted.csv"
    lines = path.read_text().splitlines()
    lines[2] = "40.9,-73.98"
    path.write_text("\n".join(lines) + "\n")

    def again(spec: dict[str, Any]) -> None:
        next(e for e in spec["releases"] if e["name"] == "fitted")["files"]["csv"] = listed(path)

    with pytest.raises(SpecificationError, match="does not hold the rows"):
        render(changed(copied, again))


def test_what_an_attacker_sees_stands_in_a_table(page: str, published: Path) -> None:
    for name in ("places", "fitted", "work"):
        evidence_ = rows_of(published, name).channels[0].evidence
        assert evidence_ is not None and evidence_.attack is not None
        a = evidence_.attack
        told = told_of(page, name)
        assert (
            f"nothing: guessing 0 {100 * (1 - a.guessing_error):.1f} % this row {a.bits:.2f} {100 * (1 - a.bayes_error):.1f} %"
            in told
        )
        assert f"the value itself {a.plain_bits:.2f} {100 * (1 - a.plain_error):.1f} %" in told
        assert f"The secret: user, one of {a.secrets}; {a.prior_bits:.2f} bits would tell all of it." in told


def test_published_names_of_cells_are_read_too(tmp_path: Path) -> None:
    """Numbers may be published as middles or by the names of their cells."""
    people = {"spend": np.arange(100)}
    one = moved("spend", people)
    names = [one.channel.domain["spend"].label(int(c)) for c in drawn(one)]
    path = tmp_path / "a.csv"
    path.write_text("spend\n" + "\n".join(f'"{n}"' for n in names) + "\n")
    told = ground(_text(["spend"], 100), DOMAIN.to_spec())
    release = _release(path, ("spend",), 100)
    found = counted_rows(release, _text(["spend"], 100), told.domain)
    assert found.tolist() == np.bincount(drawn(one), minlength=100).tolist()


def _release(path: Path, names: tuple[str, ...], rows: int) -> Any:
    return RowRelease(
        "a", "proved", Loss("epsilon", Fraction(1)), "", None, "", rows, names, (), (), None, None, 1, (),  # type: ignore[arg-type]
        (path.suffix[1:], path.read_bytes()), (),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------- what is refused


def _keys(spec: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that a page of rows reads, as paths."""
    free = {"query", "mechanism", "title", "files", "records", "unit"}
    if isinstance(spec, dict):
        return [p for k, v in spec.items() if k not in free for p in ((*at, k), *_keys(v, (*at, k)))]
    return _keys(spec[0], (*at, 0)) if isinstance(spec, list) and spec else []


def test_a_lacking_or_wrong_key_is_named(copied: Path) -> None:
    spec = json.loads(copied.read_text())
    own = next(e for e in spec["releases"] if e["name"] == "places")
    spec["releases"] = [own]
    unread = {("per_person", k) for k in ("epsilon", "places", "rows", "each")} | {
        ("cost", "value"),
        ("cost", "witness", 0, "home"),
    }
    text, tried = json.dumps(spec), 0
    for path in _keys(own):
        if path in unread or path == ("kind",):
            continue
        for wrong in (None, {"no": "such"}):
            inner = json.loads(text)
            at = inner["releases"][0]
            for step in path[:-1]:
                at = at[step]
            if wrong is None:
                del at[path[-1]]
            else:
                at[path[-1]] = wrong
            copied.write_text(json.dumps(inner))
            with pytest.raises((SpecificationError, OutputError)) as caught:
                read(copied)
            assert str(path[-1]) in str(caught.value), path
            tried += 1
    assert tried > 80


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda e: e.update(kind="else"), "kind: this version reads"),
        (lambda e: e["channels"][0].update(private=True), "private: true for the source"),
        (lambda e: e["channels"][0].update(private=True, source="private"), "nothing is proved of a release through"),
        (lambda e: e.update(channels=[]), "channels: at least one"),
        (lambda e: e["channels"][0].update(cells=9), "outputs|cells"),
        (lambda e: e["channels"][0].update(columns=["lat"]), "columns: one for each attribute"),
        (lambda e: e["channels"][0].update(columns=["lat", "else"]), "columns: published columns"),
        (lambda e: e["channels"][0].update(attributes=["else"]), "attributes of the policy"),
        (lambda e: e["channels"][0].update(shape=[3]), "shape: two whole numbers"),
        (lambda e: e["channels"][0].update(file="other.npz"), "file: one of the files"),
        (lambda e: e.update(rows=7), "does not hold the rows"),
        (lambda e: e["channels"][0]["evidence"]["rows"][0].update(outputs=[[0, 0.7], [1, 0.7]]), "add up to 1"),
        (lambda e: e["channels"][0]["evidence"]["rows"][0].update(outputs=[[10**6, 0.7]]), "outputs: pairs of a cell"),
        (lambda e: e["channels"][0]["evidence"]["leakage"].update(bayes_error=1.5), "between 0 and 1"),
        (lambda e: e["channels"][0]["evidence"]["curve"][0].update(leakage=[1.0]), "as many numbers"),
        (lambda e: e["files"]["channel"].update(path="../places.channel.npz"), "beside the manifest"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    copied: Path, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    def of_places(spec: dict[str, Any]) -> None:
        change(next(e for e in spec["releases"] if e["name"] == "places"))

    with pytest.raises(SpecificationError, match=told):
        render(changed(copied, of_places))


# -------------------------------------------------------------------------------------------------- against real releases


def _real(tmp_path: Path, guarantee: str = "proved", **more: Any) -> Path:
    """Rows released by the library itself."""
    place = td.Point("lat", "lon", box=((0, 6), (0, 5)), cell=1, metric="planar", unit="km")
    domain = td.Domain(
        region=td.Categorical(["n", "s"]),
        home=place,
        age=td.Integer(0, 9),
        who=td.Categorical(["a", "b", "c"]),
    )
    rng = np.random.default_rng(1)
    rows = {
        "region": rng.choice(["n", "s"], 300).tolist(), "lat": (6 * rng.random(300)).tolist(), "lon": (5 * rng.random(300)).tolist(),
        "age": rng.integers(0, 10, 300).tolist(), "who": rng.choice(["a", "b", "c"], 300).tolist(),
    }  # fmt: skip
    policy = td.Policy(domain, td.AttributeWise(home=td.Within(1), age=td.Within(1), who=td.Full()))
    session = td.Session(td.Table(rows, domain, name="people"), policy, epsilon=5, ledger=tmp_path / "l")
    made = session.release(guarantee=guarantee, name="rows", **more)
    return Path(made.save(tmp_path / "out", ("parquet", "csv")))


def test_a_real_release_is_told(tmp_path: Path) -> None:
    query = td.Rows("home", "age", keep=["region"], channel={"kind": "planar-geometric"}, rows_per_person=2)
    path = _real(tmp_path, query=query, epsilon=4)
    spec = json.loads(path.read_text())["releases"][0]
    page = render(path)
    told = re.sub(r"\s+", " ", " ".join(Reader(page).text))
    assert spec["per_person"]["text"].replace("epsilon", "ε") in told
    assert "home about" in told and "age about" in told and "No proved bound" not in told
    for channel in spec["channels"]:
        assert f"{channel['file']}: law and certificate" in told.replace(" :", ":")
        for sentence in channel["evidence"]["words"]:
            assert sentence.partition(": ")[0] in told


def test_a_real_measured_release_is_told(tmp_path: Path) -> None:
    channel = {"kind": "least-leaking", "secret": "who", "distortion": "1 km"}
    path = _real(tmp_path, "measured", query=td.Rows("home", channel=channel))
    entry_ = read(path).rows[0]
    assert entry_.is_measured and entry_.channels[0].evidence is None
    told = re.sub(r"\s+", " ", " ".join(Reader(render(path)).text))
    assert "No proved bound" in told and "none of these is published" in told and "not published" in told


def test_an_account_in_rho_counts_rows_by_their_epsilon(tmp_path: Path) -> None:
    domain = td.Domain(age=td.Integer(0, 9))
    table = td.Table({"age": [1, 2, 3] * 20}, domain, name="people")
    session = td.Session(table, td.Policy(domain, td.Within(1)), rho=10, delta="1e-6")
    made = session.release(td.Rows("age", channel={"kind": "exponential"}), epsilon=2, name="rows")
    told = re.sub(r"\s+", " ", " ".join(Reader(render(made.save(tmp_path))).text))
    assert "this account counts it as ρ = ε²/2 = 2" in told and "Laplace noise" not in told.split("Words")[0]
    assert "The privacy loss of channels: odds" in told and "counts as ρ 2" in told


def test_permanent_answers_are_told(copied: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["releases"][1]["permanent"] = {"id": "who <1>", "epoch": "2025"}

    told = told_of(render(changed(copied, change)), "places")
    assert "One answer for every who <1> in the epoch 2025." in told
    assert "Every who <1> has one answer in the epoch 2025, however many rows it has." in told


def test_a_channel_that_reaches_far_is_shown_over_the_whole_box(tmp_path: Path) -> None:
    from tetraodon.channels.named import planar_geometric

    people = {"home": np.arange(DOMAIN["home"].size)}
    one = replace(moved("home", people), channel=planar_geometric(DOMAIN.select("home"), "0.3", "1 km"))
    spec = channel_spec(one, evidence(one, 4, COMPUTED))
    told = ground(_text(["home"], DOMAIN["home"].size), DOMAIN.to_spec())
    (tmp_path / "out").mkdir()
    path = manifest(
        tmp_path / "out",
        60,
        lambda folder, _: [entry(folder, "far", [(one, spec)], forms=("parquet",))],
        False,
    )
    found = panels(read(path).rows[0].channels[0], told)
    assert found is not None and "Each map shows the whole box." in found.told
    assert "Distance Rows" in re.sub(r"\s+", " ", " ".join(Reader(render(path)).text))


def test_a_histogram_of_places_is_a_map(tmp_path: Path) -> None:
    place = td.Point("lat", "lon", box=((40, 41), (-74, -73)), cell="20 km", missing="public")
    domain = td.Domain(home=place, sex=td.Categorical(["f", "m"]))
    rng = np.random.default_rng(2)
    rows = {
        "lat": [*(40.4 + 0.1 * rng.random(500)), None], "lon": [*(-73.9 + 0.3 * rng.random(500)), -73.5], "sex": ["f", "m", "m"] * 167
    }  # fmt: skip
    policy = td.Policy(domain, td.AttributeWise(home=td.Within("30 km"), sex=td.Full()))
    session = td.Session(td.Table(rows, domain, name="people"), policy, epsilon=9)
    release = session.release(td.Histogram("home"), 2, name="places")
    page = render(release.save(tmp_path))
    article = page.split('<article id="release-1">')[1].split("</article>")[0]
    half = release.half_width
    values = np.asarray(release.values)
    painted = _painted(article)
    assert len(painted) == int((values[: place.n_values] > half).sum()) > 0
    rows_, columns_ = place.shape
    for x, y in painted:
        assert values[(rows_ - 1 - y) * columns_ + x] > half
    assert "Not on the map: missing" in article and "which may as well hold none" in article
    # By another attribute, or with bins, it stays a chart.
    both = session.release(td.Histogram("home", by="sex"), 2, name="both")
    assert "Map of" not in render(both.save(tmp_path / "both"))


def test_what_is_not_charged_has_no_unit(published: Path) -> None:
    assert symbols([rows_of(published, "fitted")]) == []
    assert symbols([rows_of(published, "fitted"), rows_of(published, "places")]) == ["ε"]
