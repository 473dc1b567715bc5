"""Pages of microdata against the manifest, the published rows and the private ones: what they say, draw, and refuse."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from microdata_people import POLICY, asked, people
from test_report import TAGS, Reader

import tetraodon as td
from tetraodon.errors import DataError, OutputError, SpecificationError
from tetraodon.leakage.attacks import attacks
from tetraodon.loss import Loss
from tetraodon.microdata import evidence as measuring
from tetraodon.microdata.release import MicrodataRelease
from tetraodon.microdata.risk import risk
from tetraodon.microdata.settings import Hybrid
from tetraodon.report import render
from tetraodon.report.document import Microdata
from tetraodon.report.microdata_charts import areas, bands
from tetraodon.report.microdata_curve import leaking_groups
from tetraodon.report.microdata_document import Generalised, GroupText, Histogram
from tetraodon.report.reading import read
from tetraodon.report.summary import six
from tetraodon.requests import Request

EVIL = '</text><script>alert("1")</script>\n& "q"'
HOSTILE = td.Domain(
    {
        "job & <b>": td.Categorical(["nurse", EVIL, "__proto__", "cook"]),
        "hours": td.Integer(0, 60, unit="<h>"),
        '"likes"': td.Categorical(["tea", EVIL, "milk"]),
    }
)
FEW = {"group-median": {}, "knn": {}}


def released(
    query: Hybrid, rows: dict[str, Any], policy: td.Policy = POLICY, shown: bool = True
) -> MicrodataRelease:
    """One release, with its evidence where it is shown."""
    session = td.Session(td.Table(rows, policy.domain, name="people"), policy, epsilon=2)
    request = Request(
        query, Loss("epsilon", Fraction(0)), "people", guarantee="measured", publishes_evidence=shown
    )
    [made] = session.release_all([request])
    return made


@pytest.fixture(scope="module")
def made() -> MicrodataRelease:
    """A release with evidence, for attackers who are quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "MODELS", FEW)
        found = released(asked(groups=3, insensitive=["hours", "mood", "likes", "home"], quasi_identifiers=["region"], class_size=40, clusters=4, distortion="0.3", k=5), people(300))  # fmt: skip
        return found


@pytest.fixture(scope="module")
def published(made: MicrodataRelease, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "MODELS", FEW)
        return made.save(tmp_path_factory.mktemp("shown") / "out")


@pytest.fixture(scope="module")
def hidden(made: MicrodataRelease, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows without their evidence."""
    from dataclasses import replace

    bare = replace(made, publishes_evidence=False, mapping=None)
    return bare.save(tmp_path_factory.mktemp("hidden") / "out")


@pytest.fixture(scope="module")
def page(published: Path) -> str:
    return render(published)


@pytest.fixture
def copied(published: Path, tmp_path: Path) -> Path:
    """A copy of what was published, for a test to change."""
    return Path(shutil.copytree(published.parent, tmp_path / "out")) / published.name


def entry_of(path: Path) -> Microdata:
    [found] = read(path).microdata
    return found


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    spec = json.loads(path.read_text())
    change(spec["releases"][0])
    path.write_text(json.dumps(spec))
    return path


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(Reader(page).text))


def article_of(page: str) -> str:
    found = re.search(r"<article.*?</article>", page, re.S)
    assert found is not None
    return found[0]


# ---------- the page ----------


def test_page_is_well_formed_and_nothing_runs(page: str, published: Path) -> None:
    reader = Reader(page)
    assert {tag for tag, _ in reader.elements} <= TAGS
    assert all(th.get("scope") in ("col", "row") for th in reader.all("th"))
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert len(reader.all("figcaption")) == len(reader.all("figure"))
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 20 for chart in reader.all("svg"))
    assert (
        "<script" not in page.lower() and "url(" not in page and "http:" not in page and "https:" not in page
    )
    ids = [attrs["id"] for _, attrs in reader.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    files = {p.name for p in published.parent.iterdir()} - {"manifest.json"}
    assert {a["href"] for a in reader.all("a") if not a["href"].startswith("#")} == files
    assert render(published) == page


def test_groups_are_told_with_their_published_rows_and_values(page: str, published: Path) -> None:
    entry = entry_of(published)
    rows = Counter(pq.read_table(published.parent / "people.parquet")["age"].to_pylist())
    with (published.parent / "people.groups.csv").open(encoding="utf-8", newline="") as file:
        stands = Counter(line["group"] for line in csv.DictReader(file))
    [column] = entry.groups
    assert {g.label: g.rows for g in column.groups} == rows
    assert {g.label: len(g.values) for g in column.groups} == stands
    for group in column.groups:
        values = "value" if len(group.values) == 1 else f"{len(group.values)} values"
        told = f"{group.label} {'' if len(group.values) == 1 else values} {group.rows:,} {100 * group.rows / 300:.1f} %"
        assert re.sub(r"\s+", " ", told) in text_of(article_of(page))


def test_without_evidence_nothing_private_stands_there(made: MicrodataRelease, hidden: Path) -> None:
    told = article_of(render(hidden))
    assert "it is not published" in told and entry_of(hidden).evidence is None
    assert six(read(hidden))[0].text.endswith("comes from private rows and is not published.")
    for word in (
        "Trained attackers",
        "before and after",
        "Leakage against",
        "histogram of the private",
        "Prosecutor",
        " bits",
    ):
        assert word not in told
    assert "3 groups of age" in text_of(told)
    figures = {*made.plan.figures.values(), made.realised} - {0.0, 0.3}
    assert not any(f"{f:.4g}" in told for f in figures)


def test_what_leaves_stands_on_the_first_screen(published: Path) -> None:
    lines = {line.key: line.text for line in six(read(published))}
    assert "measured to learn stands with the release" in lines["unproved"]
    assert "real values of real people, in rows of people of the same group" in lines["outside"]
    assert lines["guarantee"].startswith("<b>Measured</b>") and "Proved" not in lines["guarantee"]


def test_what_was_stated_and_what_leaves_stands_there(page: str, made: MicrodataRelease) -> None:
    told = text_of(article_of(page))
    assert "At least 5 rows (k); at least 2 values (l)." in told
    assert "At most 0.3 (gower) on average over all rows." in told
    assert "from donors of the same group, each row’s from at least 3 possible donors." in told
    assert "Of region, at least 40 rows in each." in told
    for line in made.disclosures():
        is_named = line.startswith(("hours, ", "region of "))  # names stay as they are
        begins = line if is_named else line[:1].upper() + line[1:]
        assert f" {begins}." in told
    assert "No proved bound" in page and "exact search" in told and "<b>measured</b>" in page


def test_the_words_and_the_bar_say_the_same(page: str, made: MicrodataRelease) -> None:
    told, figures = text_of(article_of(page)), made.plan.figures
    for key in ("exchange", "unknown"):
        assert f"{figures[key]:.2f}" in told or figures[key] < 0.01
    assert f"Of the {figures['unknown']:.2f} bits about age" in told
    widths = [
        float(w)
        for w in re.findall(r'<span class="(?:names|exchanged|kept|open)" style="width:([\d.]+)%"', page)
    ]
    assert sum(widths) == pytest.approx(100, abs=0.2)
    assert widths[0] == pytest.approx(
        100 * (figures["classes"] + figures["naming"]) / figures["unknown"], abs=0.1
    )
    entry = read_words(made)
    assert all(part in told for line in entry for part in [line.partition(": ")[2][1:60]])


def read_words(made: MicrodataRelease) -> list[str]:
    from tetraodon.microdata.entry import evidence_of

    return list(evidence_of(made)["words"])


def test_proved_is_said_of_nothing(page: str) -> None:
    told = text_of(article_of(page))
    assert "Certified" in told and "Measured" in told and not re.search(r"\bproved that\b|Proved", told)


# ---------- evidence against the private rows ----------


def test_columns_before_are_the_private_ones_and_after_the_published_ones(published: Path) -> None:
    rows, table = people(300), pq.read_table(published.parent / "people.parquet")
    evidence = entry_of(published).evidence
    assert evidence is not None
    exchange = evidence.exchange
    assert [c.column for c in exchange.columns] == [
        "hours",
        "mood",
        "likes",
        "lat",
        "lon",
    ] and exchange.compared == 5
    for column in exchange.columns:
        own, told = rows[column.column], table[column.column].to_pylist()
        if column.labels:
            own = ["else" if v == "canary-juice" else v for v in own]
            assert column.before == tuple(Counter(own)[v] for v in column.labels)
            assert column.after == tuple(Counter(told)[v] for v in column.labels)
        else:
            edges = np.array(column.edges)
            assert not column.is_open
            if column.column in ("lat", "lon"):  # declared cells of one degree
                own = (np.floor(own) + 0.5).tolist()
            assert column.before == tuple(np.histogram(own, edges)[0].tolist())
            assert column.after == tuple(np.histogram(told, edges)[0].tolist())
        apart = sum(abs(a - b) for a, b in zip(column.before, column.after, strict=True)) / 600
        assert column.distance == pytest.approx(apart)


def test_attackers_see_the_published_rows_and_are_scored_on_the_private_ones(
    made: MicrodataRelease, published: Path
) -> None:
    evidence = entry_of(published).evidence
    assert evidence is not None and made.mapping is not None
    [found] = evidence.attackers
    assert (found.column, found.is_number, found.rows, found.total) == ("age", True, 300, 300)
    rows, table = people(300), made.table
    place = np.asarray(made.mapping["published_row"])
    shown = {n: [table[n].to_pylist()[p] for p in place] for n in table.column_names}
    moods = ["low", "even", "high"]
    likes = ["else" if v == "canary-juice" else v for v in rows["likes"]]
    own = {n: rows[n] for n in ("age", "hours")} | {
        "likes": likes,
        "mood": [moods.index(m) for m in rows["mood"]],
    }
    own |= {n: np.floor(rows[n]) + 0.5 for n in ("lat", "lon")}
    told = {n: shown[n] for n in ("age", "hours", "likes", "lat", "lon")} | {
        "mood": [moods.index(m) for m in shown["mood"]]
    }
    told["classes"] = shown["region"]
    again = attacks(
        own, told, "age", list(FEW), kind="number", folds=2, repeats=2, level=0.99, rng=np.random.default_rng(11),
    )  # fmt: skip
    assert [g.model for g in found.found] == list(FEW)
    for guesser, other in zip(found.found, again, strict=True):
        assert guesser.success == pytest.approx(other.success, rel=1e-3)
        assert guesser.ceiling == pytest.approx(other.ceiling, rel=1e-3)
        assert found.baseline == pytest.approx(other.baseline) and guesser.helps == (
            other.gain_interval[0] > 0
        )
    knn = found.found[1]
    assert knn.ceiling < knn.success < found.baseline


def test_risk_is_that_of_the_published_columns(made: MicrodataRelease, published: Path) -> None:
    evidence = entry_of(published).evidence
    assert evidence is not None and made.mapping is not None
    assert [r.by for r in evidence.risk] == [("age",), ("region",), ("age", "region")]
    place = np.asarray(made.mapping["published_row"])
    import pyarrow as pa

    table = made.table.take(pa.array(place)).append_column("true", pa.array(people(300)["age"]))
    for told in evidence.risk:
        own = risk(table, list(told.by), "true", order=list(range(20, 40)))
        assert (told.classes, told.k, told.l) == (own.classes, own.k, own.l)
        assert (told.t, told.entropy_l) == (pytest.approx(own.t), pytest.approx(own.entropy_l))
        assert told.prosecutor == pytest.approx(own.prosecutor)


def test_evidence_is_computed_where_it_is_published_and_nowhere_else(
    made: MicrodataRelease, hidden: Path
) -> None:
    bare = released(asked(), people(), shown=False)
    assert bare.mapping is None and made.mapping is not None and hidden.exists()
    with pytest.raises(DataError, match="does not hold what its rows were drawn from"):
        measuring.measured_of(bare)


def test_the_same_rows_have_the_same_evidence(
    made: MicrodataRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MODELS", {"group-median": {}})
    monkeypatch.setattr(measuring, "MOST_ROWS", 200)
    first, second = measuring.measured_of(made), measuring.measured_of(made)
    assert first == second and first["attackers"][0]["rows"] == 200 and first["attackers"][0]["of"] == 300


@pytest.mark.parametrize(
    ("private", "more", "number"),
    [
        ("job", {"groups": 2, "l": 1}, False),
        ("home", {"groups": 2, "l": 1, "k": 5}, False),
        ("pay", {"groups": 2}, False),
    ],
)
def test_every_kind_of_private_column_has_a_page(
    private: str, more: Any, number: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MODELS", {"group-median": {}})
    told = render(
        released(asked(private, ["hours", "likes"], clusters=3, **more), people(120)).save(tmp_path)
    )
    words = text_of(article_of(told))
    assert f"Trained attackers on {private}." in words and "Share of right guesses" in words
    assert f"{private} : its groups on the histogram of the private rows." in words


def test_prototypes_and_alternating_steps_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MODELS", {"group-median": {}})
    query = asked(publish="prototypes", donors=1, method="alternating", clusters=3)
    path = released(query, people(120)).save(tmp_path)
    told = text_of(article_of(render(path)))
    assert "typical values of clusters of people" in told and "alternating steps" in told.lower()
    assert re.search(r"Steps \d+ steps?: [\d.]+ bits after the first", told)
    evidence = entry_of(path).evidence
    assert evidence is not None and evidence.bound is None and "none leak less" not in told
    shown = pq.read_table(tmp_path / "people.parquet")["mood"].to_pylist()
    mood = next(c for c in evidence.exchange.columns if c.column == "mood")
    assert mood.after == tuple(Counter(shown)[v] for v in mood.labels)


def test_hostile_names_are_shown_and_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MODELS", {"group-median": {}, "knn": {}})
    rng = np.random.default_rng(4)
    job = rng.integers(0, 4, 160)
    rows = {
        "job & <b>": [["nurse", EVIL, "__proto__", "cook"][j] for j in job],
        "hours": np.clip(job * 10 + rng.integers(0, 15, 160), 0, 60).tolist(),
        '"likes"': [["tea", EVIL, "milk"][j] for j in rng.integers(0, 3, 160)],
    }
    query = Hybrid("job & <b>", ["hours", '"likes"'], distortion="0.4", groups=2, k=10, clusters=3, donors=2)
    path = released(query, rows, td.Policy(HOSTILE, td.AttributeWise(**{"job & <b>": td.Full()}))).save(
        tmp_path, ("parquet", "csv")
    )
    page = render(path)
    reader = Reader(page)
    assert {tag for tag, _ in reader.elements} <= TAGS and "<script" not in page.lower()
    assert "&lt;/text&gt;&lt;script&gt;" in page and "job & <b>" in " ".join(reader.text)
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        Reader(svg)


def test_every_text_is_escaped_and_no_private_value_leaves(page: str, copied: Path) -> None:
    assert "canary" not in page

    def change(entry: dict[str, Any]) -> None:
        told = entry["evidence"]
        told["words"] = [f"Measured on private rows: {EVIL}"]
        told["metric"] = told["curve"][0]["name"] = entry["mechanism_name"] = entry["name"] = EVIL
        told["attackers"][0]["unit"] = entry["query"]["hybrid"]["distortion"] = EVIL
        entry["query"]["hybrid"]["metric"] = EVIL
        entry["disclosed_exactly"] = [EVIL]
        for seen in told["risk"]:
            seen["by"] = [EVIL]
        for column in told["exchange"]["columns"]:
            column["labels"] = [f"{EVIL}{i}" for i in range(len(column["labels"]))]

    hostile = render(changed(copied, change))
    reader = Reader(hostile)
    assert {tag for tag, _ in reader.elements} <= TAGS and "<script" not in hostile.lower()
    assert hostile.count("&lt;script&gt;") >= 12
    for svg in re.findall(r"<svg.*?</svg>", hostile, re.S):
        Reader(svg)


# ---------- pictures ----------


def column_with(sizes: list[int], name: str = "x") -> tuple[Histogram, Generalised]:
    """Values 0, 1, … with as many rows as their number, in groups of these sizes."""
    groups, values, at = [], [], 0
    for i, size in enumerate(sizes):
        own = tuple(str(v) for v in range(at, at + size))
        groups.append(GroupText(f"group {i}", sum(map(int, own)), own))
        values += [(v, f"group {i}", int(v)) for v in own]
        at += size
    return Histogram(name, tuple(values)), Generalised(name, tuple(groups))


def bars_of(svg: str) -> list[float]:
    """Heights of bars of an upright histogram, of both tones, from left to right."""
    found = re.findall(r"M([\d.]+) ([\d.]+)V([\d.e-]+)h", svg)
    return [float(base) - float(top) for _, base, top in sorted(found, key=lambda m: float(m[0]))]


def test_bars_are_as_high_as_their_counts_and_bands_as_wide_as_their_groups() -> None:
    histogram, column = column_with([5, 20, 15])
    svg = bands(histogram, column).svg
    heights = bars_of(svg)
    assert len(heights) == 39 and np.allclose(
        np.array(heights) / heights[-1], np.arange(1, 40) / 39, atol=2e-3
    )
    wide = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)" height="208"', svg)]
    assert np.allclose(np.array(wide) / sum(wide), np.array([5, 20, 15]) / 40, atol=1e-3)
    assert ">group 1<" in svg and ">group 0<" in svg


def test_many_values_are_drawn_as_means_of_neighbours_of_one_group() -> None:
    histogram, column = column_with([301, 199])
    made = bands(histogram, column)
    assert made.notes == ("A bar is the mean of up to 5 neighbouring values.",)
    assert len(bars_of(made.svg)) == 61 + 40
    values = np.array(bars_of(made.svg))
    assert values[60] / values[-1] == pytest.approx(300 / np.mean([499, 498, 497, 496]), rel=0.01)


def test_names_stand_on_lines_with_their_group_beside() -> None:
    groups = Generalised(
        "job", (GroupText("health", 30, ("nurse", "doctor")), GroupText("trade", 12, ("baker",)))
    )
    histogram = Histogram("job", (("nurse", "health", 10), ("baker", "trade", 12), ("doctor", "health", 20)))
    made = bands(histogram, groups)
    assert made.notes == ("Values stand by group, in their order within each.",)
    order = [m for m in re.findall(r">([a-z]+)</text>", made.svg) if m in ("nurse", "doctor", "baker")]
    assert order == ["nurse", "doctor", "baker"]
    wide = [float(w) for w in re.findall(r'width="([\d.]+)" height="12"', made.svg)]
    assert np.allclose(np.array(wide) / max(wide), np.array([10, 20, 12]) / 20, atol=2e-3)


def test_borders_of_a_map_are_where_groups_meet() -> None:
    place = td.Point("x", "y", box=((0, 4), (0, 3)), cell=1, metric="planar", unit="km")
    labels = [place.label(c) for c in range(12)]
    west = tuple(v for i, v in enumerate(labels) if i // 3 < 1)
    column = Generalised(
        "home",
        (GroupText("area 1", 5, west), GroupText("area 2", 7, tuple(v for v in labels if v not in west))),
    )
    declared = td.Domain(home=place).to_spec()
    made = areas(column, declared, None)
    assert made is not None and areas(Generalised("age", column.groups), declared, None) is None
    [path] = re.findall(r'<path fill="none" stroke="#a8401a"[^>]* d="([^"]+)"', made.svg)
    assert (
        len(re.findall("M", path)) == 3 and "H" not in path
    )  # one line between x = 0 and x = 1, three cells high
    assert ">area 1<" in made.svg and ">area 2<" in made.svg


def test_the_curve_holds_the_numbers_of_the_manifest(published: Path) -> None:
    entry = entry_of(published)
    assert entry.evidence is not None
    made = leaking_groups(entry.evidence, entry.limits, "age")
    assert made is not None
    told = json.dumps(made[0].to_dict())
    line, figures = entry.evidence.curve[0], entry.evidence.figures
    for value in (
        *line.leakage,
        *line.distortion,
        figures.unprotected,
        figures.leakage,
        figures.classes + figures.naming,
    ):
        assert repr(value) in told
    levels = {name: at for at, name in re.findall(r'"b": ([\d.e-]+), "t": "([^"]+)"', told)}
    assert float(levels["clusters unprotected"]) == figures.unprotected and "certified" in made[2][0]
    assert float(levels["groups\\u2019 names alone"]) == figures.classes + figures.naming > figures.naming


# ---------- what is refused ----------


def test_every_file_is_digested(copied: Path) -> None:
    groups = copied.parent / "people.groups.csv"
    groups.write_bytes(groups.read_bytes() + b"age,more,1\n")
    with pytest.raises(OutputError, match=r"people\.groups\.csv: its sha256 is not the one"):
        render(copied)


def cut(*keys: Any) -> Callable[[dict[str, Any]], Any]:
    def change(entry: dict[str, Any]) -> None:
        at: Any = entry
        for key in keys[:-1]:
            at = at[key]
        del at[keys[-1]]

    return change


def put(value: Any, *keys: Any) -> Callable[[dict[str, Any]], Any]:
    def change(entry: dict[str, Any]) -> None:
        at: Any = entry
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put("proved", "guarantee"), r"releases\[0\]\.guarantee: nothing is proved"),
        (cut("files", "groups"), r"files\.groups: required"),
        (cut("requirements", "k"), r"requirements\.k: required"),
        (put("few", "requirements", "l"), r"requirements\.l: a finite number"),
        (put("much", "requirements", "variety"), r"requirements\.variety: one of count, entropy"),
        (cut("query", "hybrid", "distortion"), r"query\.hybrid\.distortion: required"),
        (put("magic", "query", "hybrid", "method"), r"query\.hybrid\.method: one of optimal, alternating"),
        (put("none", "groups", 0, "groups", 0, "label"), r"groups\[0\]\.groups\[0\]\.label: a group that the file"),
        (put(1, "groups", 0, "groups", 0, "rows"), r"groups\[0\]\.groups: rows that add up"),
        (put(["age"], "exchanged"), r"exchanged: a column has one part only"),
        (put([], "exchanged"), r"attributes: every private, exchanged"),
        (put(["nobody"], "exchanged"), r"attributes: every private, exchanged"),
        (put([], "evidence"), r"evidence: a table"),
        (cut("evidence", "figures", "naming"), r"evidence\.figures\.naming: required"),
        (put(-1, "evidence", "figures", "leakage"), r"evidence\.figures\.leakage: a finite number of at least 0"),
        (put(None, "evidence", "gap"), r"evidence\.gap: a number where there is a bound"),
        (put([1], "evidence", "curve", 0, "leakage"), r"evidence\.curve\[0\]\.leakage: as many numbers"),
        (put("x", "evidence", "histograms", 0, "values", 0, "rows"), r"histograms\[0\]\.values\[0\]\.rows: a whole number"),
        (put(7, "evidence", "histograms", 0, "values", 0, "rows"), r"histograms\[0\]\.values: rows that add up"),
        (put("41", "evidence", "histograms", 0, "values", 0, "value"), r"histograms\[0\]\.values: those of the file of groups"),
        (put("age", "evidence", "exchange", "columns", 0, "column"), r"exchange\.columns: exchanged columns"),
        (put([1, 1], "evidence", "exchange", "columns", 0, "edges"), r"exchange\.columns\[0\]\.edges: ascending"),
        (put([300], "evidence", "exchange", "columns", 0, "before"), r"exchange\.columns\[0\]\.before: a count for each bin"),
        (put(2, "evidence", "exchange", "mean"), r"exchange\.mean: from 0 to 1"),
        (put(0, "evidence", "exchange", "compared"), r"exchange\.compared: at least as many"),
        (put(1, "evidence", "exchange", "more"), r"exchange: no key 'more' is known"),
        (put("oracle", "evidence", "attackers", 0, "models", 0, "model"), r"models\[0\]\.model: one of random-forest"),
        (put([3, 1], "evidence", "attackers", 0, "models", 0, "interval"), r"interval: the lower end first"),
        (put(999, "evidence", "attackers", 0, "rows"), r"attackers\[0\]\.rows: at most those"),
        (put("I", "evidence", "attackers", 0, "scenario"), r"attackers\[0\]\.scenario: 'II'"),
        (put("hours", "evidence", "attackers", 0, "column"), r"attackers\[0\]\.column: a private column"),
        (put([], "evidence", "attackers", 0, "models"), r"attackers\[0\]\.models: at least one"),
        (put(300, "evidence", "risk", 0, "k"), r"risk\[0\]\.k: classes of at least so many rows"),
        (put([0.1], "evidence", "risk", 0, "prosecutor"), r"risk\[0\]\.prosecutor: highest, mean"),
        (put(True, "evidence", "risk", 0, "t"), r"risk\[0\]\.t: a finite number"),
        (put("told", "evidence", "words"), r"evidence\.words: a list"),
    ],
)  # fmt: skip
def test_a_lacking_or_wrong_key_is_named(change: Any, text: str, copied: Path) -> None:
    with pytest.raises(SpecificationError, match=text):
        read(changed(copied, change))
