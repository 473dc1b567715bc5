"""The report against the manifest and files it was made from: what it says, what it draws, what it refuses."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pricing import epsilon

from tetraodon import (
    CDF,
    AttributeWise,
    Categorical,
    Domain,
    Full,
    Histogram,
    Integer,
    Linear,
    Mean,
    Numeric,
    Policy,
    Quantiles,
    Ranges,
    Session,
    Sum,
    Table,
    Within,
)
from tetraodon.errors import OutputError, SpecificationError
from tetraodon.plans import number
from tetraodon.publish import publish
from tetraodon.release import Release
from tetraodon.report import render
from tetraodon.report.answers import View, view
from tetraodon.report.charts import drawing
from tetraodon.report.curves import SHARES, quantile
from tetraodon.report.frames import peaks, thin
from tetraodon.report.reading import read
from tetraodon.report.summary import six
from tetraodon.report.svg import distinct, drawn, inline
from tetraodon.report.tradeoff import curves
from tetraodon.report.words import clean, edge, rounded
from tetraodon.session import Request

VOID = {"meta", "br", "hr", "img", "input", "link"}
WORDS = """html head meta title style body header section article h1 h2 h3 h4 p dl dt dd div span b sup table caption thead
tbody tr th td a code pre ul li figure figcaption svg g path line rect circle text tspan defs clippath"""
TAGS = set(WORDS.split())

EUR = "<b>&\"'\n{{1+1}} ${x}`\\"
EVIL = '"+alert(1)+"\n</svg><script>alert(1)</script>'
GRADES = ["low\nest", "mid</text>", 'hi"gh', EVIL]
OPEN = ["x", "constructor", "__proto__"]
HOSTILE = Domain(
    {
        EUR: Integer(0, 499, unit="<EUR>", missing="secret"),
        "grade & <i>": Categorical(GRADES, ordered=True),
        "region": Categorical([f"R{i:02d}" for i in range(40)]),
        "temp": Numeric(-5, "7.5", cells=50, unit="°C", missing="public"),
        "size": Categorical([EVIL, "b & c", "d"], other="o<ther>", missing="public"),
        "open": Categorical(OPEN),
    }
)
THIRD = Fraction(1, 3)


def _session(epsilon: str, ledger: Path | None) -> Session:
    rng = np.random.default_rng(5)
    rows = {
        EUR: rng.integers(0, 500, 3000),
        "grade & <i>": rng.choice(GRADES, 3000),
        "region": rng.choice([f"R{i:02d}" for i in range(40)], 3000),
        "temp": rng.uniform(-5, 7.5, 3000),
        "size": rng.choice([EVIL, "b & c", "d"], 3000),
        "open": rng.choice(OPEN, 3000),
    }
    secrets = AttributeWise(
        {EUR: Within(50), "grade & <i>": Full(), "region": Full(), "temp": Within(2), "size": Full()}
    )
    table = Table(rows, HOSTILE, name='<h1>bad & "name"')
    return Session(table, Policy(HOSTILE, secrets=secrets), epsilon=epsilon, ledger=ledger)


REQUESTS = [
    Request(CDF(EUR, by=["open"]), epsilon(THIRD), "cdf"),
    Request(Histogram("grade & <i>", "size"), epsilon(THIRD), "cross"),
    Request(Histogram("region", "temp"), epsilon(THIRD), "many"),
    Request(Histogram("region"), epsilon(THIRD), "regions"),
    Request(Histogram(EUR), epsilon(THIRD), "long"),
    Request(Histogram("temp", bins={"temp": 5}, where={"open": OPEN[:2]}), epsilon(THIRD), "bins"),
    Request(Quantiles("grade & <i>", ["0.5", "0.9"], by="open"), epsilon(THIRD), "graded"),
    Request(Quantiles("temp", ["0.5", "0.5"], by="size"), epsilon(THIRD), "temps"),
    Request(Ranges("temp", "all"), epsilon(THIRD), "all-ranges"),
    Request(
        Ranges("grade & <i>", [(GRADES[0], GRADES[1]), (EVIL, EVIL)], by="size"), epsilon(THIRD), "ranges"
    ),
    Request(Linear([[1, 1, 0, 0], [0, -1, 1, 0]], "grade & <i>", by="open"), epsilon(THIRD), "linear"),
    Request(Mean("temp", by=["grade & <i>", "open"]), epsilon(THIRD), "mean"),
    Request(Sum(EUR), epsilon(THIRD), "sum"),
    Request(Histogram("open"), epsilon(THIRD), "free"),
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Release]]:
    """Every kind of query over names that try to break out, half of them published as text."""
    folder = tmp_path_factory.mktemp("hostile")
    session = _session("10", None)
    releases = session.release_all(REQUESTS)
    forms = [("csv",) if i % 2 else ("parquet", "csv") for i in range(len(releases))]
    return publish(folder, list(zip(releases, forms, strict=True)), session.context), releases


@pytest.fixture(scope="module")
def hostile_page(hostile: tuple[Path, list[Release]]) -> str:
    return render(hostile[0])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of a small table, after an earlier one, with a ledger."""
    folder = tmp_path_factory.mktemp("plain")
    domain = Domain(
        age=Integer(17, 90, unit="years"), sex=Categorical(["Female", "Male"]), job=Categorical(["a", "b"])
    )
    rng = np.random.default_rng(7)
    rows = {
        "age": rng.integers(17, 91, 800), "sex": rng.choice(["Female", "Male"], 800), "job": rng.choice(["a", "b"], 800)
    }  # fmt: skip
    policy = Policy(domain, secrets=AttributeWise(age=Within(10), job=Full()))
    table = Table(rows, domain, name="people", edition="2025")
    session = Session(table, policy, epsilon="2", ledger=folder / "people.ledger")
    session.release_all([Request(Histogram("job"), epsilon(Fraction(1, 4)), "earlier")])
    releases = session.release_all(
        [
            Request(CDF("age", by="sex"), epsilon(Fraction(1)), "ages"),
            Request(Histogram("job", by="sex"), epsilon(Fraction(1, 4)), "jobs"),
        ]
    )
    return publish(folder / "out", [(r, ("parquet", "csv")) for r in releases], session.context)


@pytest.fixture
def plain(published: Path, tmp_path: Path) -> Path:
    """A copy of what was published, for a test to change."""
    return Path(shutil.copytree(published.parent, tmp_path / "out")) / published.name


def _changed(manifest: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    spec = json.loads(manifest.read_text())
    change(spec)
    manifest.write_text(json.dumps(spec))
    return manifest


class Reader(HTMLParser):
    """Elements, attributes and text of a page, with unbalanced tags refused."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, told: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(told)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def reader(hostile_page: str) -> Reader:
    return Reader(hostile_page)


def test_page_is_well_formed_and_semantic(reader: Reader) -> None:
    assert {tag for tag, _ in reader.elements} <= TAGS
    assert reader.all("html")[0]["lang"] == "en"
    assert any(m.get("name") == "viewport" for m in reader.all("meta"))
    assert len(reader.all("h1")) == 1
    assert len(reader.all("h3")) == len(REQUESTS)
    assert all(th.get("scope") in ("col", "row") for th in reader.all("th"))
    assert len(reader.all("caption")) == len(reader.all("table")) == 2 + len(REQUESTS)
    assert len(reader.all("figcaption")) == len(reader.all("figure"))


def test_nothing_is_loaded_and_nothing_runs(hostile_page: str, reader: Reader) -> None:
    assert "<script" not in hostile_page.lower()
    assert "http:" not in hostile_page and "https:" not in hostile_page
    assert "@import" not in hostile_page and "url(" not in hostile_page
    names = {name for _, attrs in reader.elements for name in attrs}
    assert not {n for n in names if n.startswith("on") or n in ("src", "srcset", "xlink:href", "action")}
    links = [a["href"] for a in reader.all("a")]
    files = {
        f"{r.name}.{form}"
        for i, r in enumerate(REQUESTS)
        for form in (("csv",) if i % 2 else ("parquet", "csv"))
    }
    assert {link for link in links if not link.startswith("#")} == files
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    [policy] = [m["content"] for m in reader.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_hostile_names_are_shown_and_nothing_more(hostile_page: str, reader: Reader) -> None:
    told = " ".join(reader.text)
    for name in (EUR, "grade & <i>", GRADES[1], GRADES[2], EVIL, "o<ther>", '<h1>bad & "name"', "__proto__"):
        assert clean(name)[:20] in told, name
    assert "&lt;h1&gt;bad &amp; &quot;name&quot;" in hostile_page
    assert "\x00" not in hostile_page and "\u202e" not in hostile_page


def test_every_release_is_there_with_its_charts(reader: Reader, hostile_page: str) -> None:
    told = " ".join(reader.text)
    for i, request in enumerate(REQUESTS, 1):
        assert request.name in told
        assert f'id="release-{i}"' in hostile_page
    charts = reader.all("svg")
    # Two for every release but the one that cost nothing, which has no error to trade.
    assert len(charts) == 2 * len(REQUESTS) - 1
    for chart in charts:
        assert chart["role"] == "img" and len(chart["aria-label"]) > 20
        assert [float(v) for v in chart["viewbox"].split()][:2] == [0, 0]
        assert "width" not in chart and "height" not in chart


def test_charts_are_small(hostile_page: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", hostile_page, re.S)
    assert len(charts) == 2 * len(REQUESTS) - 1
    assert max(map(len, charts)) < 60_000
    assert sum(map(len, charts)) / len(charts) < 30_000


def test_charts_and_table_are_those_of_the_manifest(
    reader: Reader, hostile: tuple[Path, list[Release]]
) -> None:
    told = " ".join(reader.text)
    manifest = json.loads(hostile[0].read_text())
    for entry in manifest["releases"]:
        assert entry["mechanism_name"] in told
        for file in entry["files"].values():
            assert file["sha256"] in told
    free = next(r for r in hostile[1] if r.name == "free")
    assert all(f"{v:,.0f}" in told for v in free.values)


def test_of_many_cells_the_largest_are_drawn(hostile_page: str, hostile: tuple[Path, list[Release]]) -> None:
    release = next(r for r in hostile[1] if r.name == "regions")
    _, after = hostile_page.split("<h3>regions</h3>", 1)
    chart = re.search(r"<svg.*?</svg>", after, re.S)
    assert chart is not None
    drawn_names = [t.strip() for t in re.findall(r">(R\d\d ?)</text>", chart[0])]
    assert len(set(drawn_names)) == len(drawn_names) == 30
    values = dict(zip(release.columns["region"].tolist(), release.values, strict=True))
    assert min(values[n] for n in drawn_names) >= sorted(values.values())[10]
    assert "the 30 of 40 cells with the largest" in after


def _looked_up(release: Release, columns: list[str]) -> dict[tuple[str, ...], list[tuple[Any, Any, Any]]]:
    """The published rows by their labels, as text."""
    found: dict[tuple[str, ...], list[tuple[Any, Any, Any]]] = {}
    ends = [release.columns[c] for c in ("value", "lower", "upper")]
    for i in range(len(release.columns["value"])):
        key = tuple(clean(str(release.columns[c][i])) for c in columns)
        found.setdefault(key, []).append((ends[0][i], ends[1][i], ends[2][i]))
    return found


@pytest.mark.parametrize("name", ["cdf", "cross", "many", "long", "bins", "all-ranges", "regions", "free"])
def test_views_hold_the_published_numbers(hostile: tuple[Path, list[Release]], name: str) -> None:
    document = read(hostile[0])
    release = next(r for r in hostile[1] if r.name == name)
    entry = next(e for e in document.entries if e.name == name)
    seen = view(entry, document.policy.domain)
    attributes = [c for c in release.columns if c not in ("value", "lower", "upper")]
    axis = entry.axis if entry.axis in attributes else attributes[-1]
    others = [a for a in attributes if a != axis]
    truth = _looked_up(release, [*others, axis])
    count = 0
    for group in seen.groups:
        own = tuple(group.label.split(" · ")) if others else ()
        for i, label in enumerate(seen.axis.labels):
            key = next(
                k for k in truth if k[:-1] == own and k[-1][:59].strip() == label.rstrip("…")[:59].strip()
            )
            assert [(group.value[i], group.lower[i], group.upper[i])] == truth[key]
            count += 1
    assert count == len(release.columns["value"]) == entry.rows


@pytest.mark.parametrize(
    ("name", "answers"), [("ranges", 2), ("linear", 2), ("mean", 1), ("sum", 1), ("temps", 2)]
)
def test_views_of_single_numbers(hostile: tuple[Path, list[Release]], name: str, answers: int) -> None:
    document = read(hostile[0])
    release = next(r for r in hostile[1] if r.name == name)
    entry = next(e for e in document.entries if e.name == name)
    seen = view(entry, document.policy.domain)
    groups = len(release.columns["value"]) // answers
    assert [len(seen.groups), len(seen.axis.labels)] == [groups, answers]
    published = release.columns["value"].reshape(groups, answers)
    for g, row in zip(seen.groups, published, strict=True):
        if name == "temps":
            assert g.told == tuple(row)
            low, high = (float(v) for v in row[0].strip("[)]").split(", "))
            assert g.value[0] == (low + high) / 2
        else:
            assert g.value.tolist() == row.tolist()


def test_named_quantiles_stand_in_declared_order(hostile: tuple[Path, list[Release]]) -> None:
    document = read(hostile[0])
    release = next(r for r in hostile[1] if r.name == "graded")
    entry = next(e for e in document.entries if e.name == "graded")
    seen = view(entry, document.policy.domain)
    assert seen.named == tuple(clean(g) for g in GRADES)
    at = np.concatenate([g.value for g in seen.groups]).astype(int)
    assert [GRADES[i] for i in at] == release.columns["value"].tolist()


def test_quantile_marks_are_the_releases_own(plain: Path) -> None:
    document = read(plain)
    seen = view(document.entries[0], document.policy.domain)
    with (plain.parent / "ages.csv").open() as file:
        rows = list(csv.DictReader(file))
    for g in seen.groups:
        counts = [(int(r["age"]), float(r["value"])) for r in rows if r["sex"] == g.label]
        for share in SHARES:
            first = next(age for age, c in counts if c >= share * counts[-1][1] * (1 - 1e-12))
            assert seen.axis.labels[quantile(seen.axis, g, share)] == str(first)


def test_six_lines(plain: Path) -> None:
    lines = {line.key: re.sub(r"<[^>]*>", "", line.text) for line in six(read(plain))}
    assert list(lines) == ["open", "who", "odds", "spent", "outside", "guarantee"]
    assert lines["open"] == "sex. Its values may be disclosed exactly, person by person."
    assert "800 records" in lines["who"]
    assert "age (at most 10 years apart)" in lines["who"] and "job (any two values)" in lines["who"]
    # 1 for changes of age, 1/4 earlier and 1/4 here for those of job: the larger sum counts.
    assert f"{math.exp(1):.3g} (e1)" in lines["odds"] and f"{math.exp(2):.3g} (e2)" in lines["odds"]
    # 17 to 90 in steps of at most 10.
    assert "at most 8 hops" in lines["odds"] and "8 × ε" in lines["odds"]
    assert lines["spent"] == "ε 1 of 2 (50 %); 1 is left. Without these 2 releases it would be 0.25."
    assert lines["outside"] == "Published exactly, without noise: the number of records for every sex."
    assert lines["guarantee"].startswith(
        "Proved: the loss along every edge of the policy is at most the ε charged"
    )
    bar = next(line.text for line in six(read(plain)) if line.key == "spent")
    assert re.findall(r'class="(before|here)" style="width:([\d.]+)%"', bar) == [
        ("before", "12.5"),
        ("here", "37.5"),
    ]


def test_six_lines_where_nothing_is_secret(plain: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["policy"] |= {
            "protected": [],
            "odds": [],
            "headline": "NOT protected: every attribute. Nothing is secret.",
        }
        spec["budget"]["outside"] = []

    lines = {line.key: line.text for line in six(read(_changed(plain, change)))}
    assert lines["open"] == "Every attribute. Nothing is secret."
    assert lines["who"].startswith("Nobody") and lines["odds"].startswith("None are promised")
    assert lines["outside"] == "Nothing."


def test_evidence_ledger_and_accuracy(plain: Path) -> None:
    spec = json.loads(plain.read_text())
    told = re.sub(r"\s+", " ", " ".join(Reader(render(plain)).text))
    half = spec["releases"][0]["half_width"]
    assert f"{number(half)} records" in told and number(10 * half) in told
    assert "A record with age 27 instead of 17 (and sex Female in both): the largest move" in told
    assert "ε = 1/4 = 0.25" in told
    assert all(f"row {entry['ledger_row']} of people.ledger" in told for entry in spec["releases"])
    assert "tetraodon ledger verify people.ledger manifest.json" in told
    assert spec["budget"]["head"] in told and spec["policy"]["hash"] in told
    for entry in spec["releases"]:
        for part in entry["noise"]:
            assert f"scale {part['scale']}" in told
        for row in entry["considered"]:
            assert row["name"] in told
    assert "edition 2025" in told


def test_account_in_memory_is_said(reader: Reader) -> None:
    told = " ".join(reader.text)
    assert "This account was kept in memory and ends with the program." in told
    assert "ledger verify" not in told


def test_mean_and_quantiles_state_their_own_accuracy(
    reader: Reader, hostile: tuple[Path, list[Release]]
) -> None:
    mean = next(r for r in hostile[1] if r.name == "mean")
    value, lower, upper = (mean.columns[c] for c in ("value", "lower", "upper"))
    widest = float(np.maximum(value - lower, upper - value).max())
    told = " ".join(reader.text)
    assert f"up to {number(widest)} °C" in told
    assert f"total ± {number(mean.half_width)} °C" in told
    assert "cumulative count ±" in told


def test_unbounded_errors_are_said(plain: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        entry = spec["releases"][1]
        entry |= {"half_width": None, "expected_error": None}
        entry["considered"] = [
            row | {"half_width": None, "expected_error": None} for row in entry["considered"]
        ]
        entry["curve"] = [row | {"half_width": [None] * len(row["loss"])} for row in entry["curve"]]
        spec["releases"] = [entry]

    page = render(_changed(plain, change))
    told = " ".join(Reader(page).text)
    assert "no bound" in told and "No bound over" in told
    assert page.count("<svg") == 1  # nothing to trade


def test_same_input_same_bytes(plain: Path, tmp_path: Path) -> None:
    """In another process, with other hash seeds, from a copy of what was published and nothing else."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in plain.parent.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    run = "import sys; from pathlib import Path; from tetraodon.report import render; sys.stdout.write(render(Path(sys.argv[1])))"
    other = subprocess.run(
        [sys.executable, "-c", run, str(copy / "manifest.json")],
        env=os.environ | {"PYTHONHASHSEED": "77", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert other.stdout.decode() == render(plain)


@pytest.mark.parametrize("name", ["ages.csv", "ages.parquet", "jobs.csv"])
def test_another_file_is_refused(plain: Path, name: str) -> None:
    path = plain.parent / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(OutputError, match=f"{name}: its sha256"):
        render(plain)


def test_lacking_files_are_refused(plain: Path) -> None:
    (plain.parent / "jobs.parquet").unlink()
    with pytest.raises(OutputError, match=r"jobs\.parquet"):
        render(plain)
    plain.unlink()
    with pytest.raises(OutputError, match=r"manifest\.json"):
        render(plain)


@pytest.mark.parametrize("path", ["../people.ledger", "/etc/hostname", "..", "a:b", "a\\b"])
def test_paths_stay_beside_the_manifest(plain: Path, path: str) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["releases"][0]["files"]["csv"]["path"] = path

    with pytest.raises(SpecificationError, match="beside the manifest"):
        render(_changed(plain, change))


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", '{"format": 2}', "[" * 100000])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(SpecificationError):
        render(path)


def _keys(spec: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that a report reads, as paths."""
    free = {"spec", "query", "mechanism", "witness", "versions", "files", "title", "format", "tetraodon"}
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key not in free:
                yield (*at, key)
                yield from _keys(value, (*at, key))
    elif isinstance(spec, list) and spec:
        yield from _keys(spec[0], (*at, 0))


def test_a_lacking_or_wrong_key_is_named(plain: Path) -> None:
    text = plain.read_text()
    # What another key says too: the headline tells what is unprotected.
    unread = {
        ("policy", "unprotected"),
        ("releases", 0, "records"),
        ("releases", 0, "considered", 0, "cost"),
        ("releases", 0, "curve", 0, "name"),
    }
    tried = 0
    for path in _keys(json.loads(text)):
        if path in unread:
            continue
        for wrong in (None, {"no": "such"}):
            spec = json.loads(text)
            inner = spec
            for step in path[:-1]:
                inner = inner[step]
            if wrong is None:
                del inner[path[-1]]
            else:
                inner[path[-1]] = wrong
            plain.write_text(json.dumps(spec))
            with pytest.raises((SpecificationError, OutputError)) as caught:
                read(plain)
            assert str(path[-1]) in str(caught.value), path
            tried += 1
    assert tried > 60


def test_a_file_that_is_not_the_described_table_is_refused(plain: Path) -> None:
    def fewer(spec: dict[str, Any]) -> None:
        spec["releases"][1]["rows"] -= 1

    def other(spec: dict[str, Any]) -> None:
        spec["releases"][1]["query"] = {"histogram": ["age"], "by": ["sex"]}

    text = plain.read_text()
    for change in (fewer, other):
        plain.write_text(text)
        with pytest.raises(SpecificationError, match="not the table that the manifest describes"):
            render(_changed(plain, change))


def test_rows_out_of_order_are_refused(plain: Path) -> None:
    path = plain.parent / "jobs.csv"
    head, first, *rest = path.read_text().splitlines()

    def only_text(spec: dict[str, Any]) -> None:
        entry = spec["releases"][1]
        entry["files"] = {"csv": {"path": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}

    document = read(_changed(plain, only_text))
    assert view(document.entries[1], document.policy.domain).groups[0].label == "Female"
    path.write_text("\n".join([head, *rest, first]) + "\n")
    document = read(_changed(plain, only_text))
    with pytest.raises(SpecificationError, match="not the table that the manifest describes"):
        view(document.entries[1], document.policy.domain)


def test_what_is_exact_says_so(reader: Reader) -> None:
    row = re.sub(r"\s+", " ", " ".join(reader.text)).split("Number of records for every open.", 1)[1]
    assert row.lstrip().startswith("0 exact any identity")


def test_values_of_an_attribute_are_written_as_they_are(tmp_path: Path) -> None:
    """A year is no quantity: no thousands separators on its axis, as there are none in the file."""
    domain = Domain(born=Integer(1900, 2019))
    table = Table({"born": list(range(1900, 2020)) * 9}, domain, name="t")
    session = Session(table, Policy(domain, secrets=Within(1)), epsilon=2)
    release = session.release_all([Request(CDF("born"), epsilon(Fraction(1)), "born")])[0]
    page = render(release.save(tmp_path))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert "1960" in texts and "1,960" not in texts
    assert "1,000" in texts  # but counts have them


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=300).map(lambda steps: np.cumsum(steps)),
    st.integers(4, 120),
)
def test_thinned_curves_keep_ends_and_every_climb(value: Any, most: int) -> None:
    kept = thin(value, most)
    assert len(kept) <= max(most, 1) and kept == sorted(set(kept))
    assert kept[0] == 0 and kept[-1] == len(value) - 1
    if len(value) > most:
        # No point left out is farther than one step of the grid from the last one drawn.
        room = (value[-1] - value[0]) / ((most - 2) / 2)
        for i in range(len(value)):
            before = max(k for k in kept if k <= i)
            assert value[i] - value[before] <= room * (1 + 1e-9)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.integers(1, 60))
def test_thinned_histograms_keep_the_largest(value: list[int], most: int) -> None:
    kept = peaks(np.array(value, dtype=float), most)
    assert len(kept) <= most or len(value) <= most
    assert max(value) == max(value[k] for k in kept) and kept == sorted(set(kept))


@given(st.lists(st.text(max_size=30), max_size=30), st.integers(3, 20))
def test_labels_stay_apart_and_printable(labels: list[str], length: int) -> None:
    told = distinct(labels, length)
    assert len(set(told)) == len(labels)
    assert not any(set(t) & {"\n", "\r", "\x00", "\u202e"} for t in told)


@given(st.text())
def test_clean_text_can_always_be_written(text: str) -> None:
    told = clean(text + "\ud800\x00\u202e")
    assert told.encode("utf-8").decode() == told
    assert not set(told) & {"\n", "\r", "\t", "\x00", "\u202e", "\u2028"}


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e6))
def test_rounding_stays_within_the_error(value: float, half: float) -> None:
    told = float(rounded(value, half).replace(",", "").replace("−", "-"))
    assert abs(told - value) <= half / 19 + abs(value) * 1e-12


def test_tradeoff_lines_pass_through_what_was_released(plain: Path) -> None:
    for entry in read(plain).entries:
        chosen = dict(curves(entry)[entry.chosen])
        assert chosen[float(entry.loss.amount)] == entry.half_width
        assert list(chosen.values()) == sorted(chosen.values(), reverse=True)


def test_a_theme_of_the_caller_changes_nothing(plain: Path) -> None:
    import altair as alt

    document = read(plain)
    entry = document.entries[1]

    def once() -> str:
        shown = drawing(entry, view(entry, document.policy.domain))
        return drawn(shown.chart, shown.label, "r1")

    before = once()
    themes = alt.theme if hasattr(alt, "theme") else alt.themes
    for name in ("dark", "urbaninstitute", "fivethirtyeight", "latimes"):
        with themes.enable(name), alt.data_transformers.enable("csv"):
            assert once() == before, name


def test_ids_in_a_chart_are_its_own() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" viewBox="0 0 10 10">'
        '<defs><clipPath id="clip0"><rect width="4" height="4" fill="red"/></clipPath></defs>'
        '<g clip-path="url(#clip0)"><path d="M0,0h1" fill="red" onclick="x()" class="c"/></g></svg>'
    )
    told = inline(svg, 'a "label"', "r7")
    assert 'id="r7-clip0"' in told and "url(#r7-clip0)" in told
    assert "onclick" not in told and "xmlns" not in told and 'aria-label="a &quot;label&quot;"' in told
    with pytest.raises(ValueError, match="script"):
        inline(svg.replace("<defs>", "<script>1</script><defs>"), "", "r1")


def test_an_edge_in_words() -> None:
    pair = ({"sex": "Male", "loss": "4", "age": "17"}, {"sex": "Male", "loss": "104", "age": "17"})
    assert edge(pair) == "a record with loss 104 instead of 4 (and sex Male and age 17 in both)"


def test_views_are_frozen(plain: Path) -> None:
    document = read(plain)
    seen = view(document.entries[0], document.policy.domain)
    assert isinstance(seen, View)
    with pytest.raises(AttributeError):
        seen.by = ""  # type: ignore[misc]
