"""The five examples: each runs as its README says, its figures lie near the truth, and nothing of the rows leaves.

Bounds on noise hold with a probability of more than 1 − 10⁻⁹. Every source gets a column and metadata that no answer may show.
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tetraodon.plans import number

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NAMES = ("income", "trips", "stays", "household", "losses")
CANARY = "CANARY-5b1e"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A copy of an example with its data made, each source with a canary in it; the present folder from then on."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        outputs = shutil.ignore_patterns(
            "published", "*.ledger*", "*.parquet", "population.csv", "__pycache__"
        )
        shutil.copytree(EXAMPLES / name, folder, ignore=outputs)
        runpy.run_path(str(folder / "make_data.py"), run_name="__main__")
        for path in folder.glob("*.parquet"):
            table = pq.read_table(path)
            table = table.append_column("note", pa.array([CANARY] * table.num_rows))
            pq.write_table(table.replace_schema_metadata({"note": CANARY}), path)
        monkeypatch.chdir(folder)
        return folder

    return make


def release(run: Run, folder: Path) -> dict[str, Any]:
    """Release as `make example` does; returns the manifest."""
    code, out, err = run("release", "release.toml")
    assert code == 0, err
    assert out.splitlines()[-1] == f"Report: {Path('published') / 'report.html'}"
    manifest: dict[str, Any] = json.loads((folder / "published" / "manifest.json").read_text("utf-8"))
    check_published(run, folder / "published", manifest)
    return manifest


def check_published(run: Run, published: Path, manifest: dict[str, Any]) -> None:
    """The account is sound, the report is there, shows every release, and nothing of the rows is in any file."""
    [ledger] = Path().glob("*.ledger")
    assert run("ledger", "verify", ledger, published / "manifest.json")[0] == 0
    page = (published / "report.html").read_text("utf-8")
    for entry in manifest["releases"]:
        assert f">{entry['name']}</h3>" in page
    for path in [ledger, *(p for p in published.rglob("*") if p.is_file())]:
        assert CANARY.encode() not in path.read_bytes(), path.name
        if path.suffix == ".parquet":
            assert not [c for c in pq.read_table(path).to_pylist() if CANARY in map(str, c.values())]


def shown(folder: Path, name: str) -> Any:
    """A published table as a pandas frame."""
    return pq.read_table(folder / "published" / f"{name}.parquet").to_pandas()


def entry_of(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [e for e in manifest["releases"] if e["name"] == name]
    return found


def check_near(published: Any, truth: Any, half_width: float, step: float = 0.0) -> None:
    """Numbers are as near to the truth as the stated ± lets them be, and most of the intervals hold it.

    For sums of Laplace variables of which ± is the 95 % point, each misses by 15 ± with a probability below e^-40; their mean is
    above 1.25 ± with one below e^-30 from 30 independent ones on, and half of the intervals failing is less likely still.
    """
    value = published.to_numpy(dtype=float)
    error = np.abs(value - np.asarray(truth, dtype=float).ravel())[~np.isnan(value)]
    assert error.size >= 30
    assert error.max() <= 15 * half_width + step
    assert error.mean() <= 1.25 * half_width + step / 2
    assert error.max() > 0  # noise was drawn


def half_width(manifest: dict[str, Any], name: str) -> float:
    return float(entry_of(manifest, name)["half_width"])


def check_readme(name: str, manifest: dict[str, Any]) -> None:
    """The README states the ± of every noised table of counts, and what the file costs."""
    text = (EXAMPLES / name / "README.md").read_text("utf-8")
    for entry in manifest["releases"]:
        query = entry["query"]
        if "mean" not in query and entry["half_width"]:
            assert re.search(rf"±[^.|]*\b{re.escape(number(entry['half_width']))}\b", text), entry["name"]
    assert re.search(rf"(\b|ε = ){re.escape(manifest['budget']['spent'])}\b", text)


def test_income_by_region(run: Run, copy: Callable[[str], Path]) -> None:
    folder = copy("income")
    manifest = release(run, folder)
    rows = pq.read_table(folder / "income.parquet").to_pandas()
    regions = list(
        dict.fromkeys(
            line.split(",")[0] for line in (folder / "population.csv").read_text("utf-8").split("\n")[1:-1]
        )
    )
    cells = np.minimum(rows["INC_TOT"].to_numpy(), 200_000) // 100
    counts = np.zeros((len(regions), 2001))
    np.add.at(counts, (rows["NUTS2"].map(regions.index).to_numpy(), cells), 1)
    truth = counts.cumsum(axis=1)

    table = shown(folder, "income-by-region")
    assert list(table.columns) == [
        "Gross income up to (EUR)",
        "Region (NUTS 2)",
        "People",
        "lower",
        "upper",
        "status",
    ]
    half = half_width(manifest, "income-by-region")
    check_near(table["People"], truth.T, half, step=5)
    values = table["People"].dropna()
    assert (values % 10 == 0).all() and values.min() >= 30
    assert (table["status"] == "suppressed").sum() == table["People"].isna().sum()
    # Who lives where is public: the last count of every region is exact, but for its rounding.
    assert np.abs(table["People"].to_numpy()[-len(regions) :] - truth[:, -1]).max() <= 5

    quantiles = pq.read_table(folder / "published" / "income-by-region.quantiles.parquet").to_pydict()
    region, level, found = (list(column) for column in list(quantiles.values())[:3])
    misses = []
    for r, q, told in zip(region, level, found, strict=True):
        at, sums = int(str(told).split("–")[0]) // 100, truth[regions.index(r)]
        wanted = float(q) * sums[-1]
        misses.append(max(0.0, wanted - sums[at], (sums[at - 1] if at else 0.0) - wanted))
    assert len(misses) == 3 * len(regions) and np.mean(misses) <= 2 * half
    check_readme("income", manifest)


def test_what_tune_says_of_incomes_stands_in_the_readme(run: Run, copy: Callable[[str], Path]) -> None:
    text = (copy("income") / "README.md").read_text("utf-8")
    [told] = re.findall(r"(?m)^    tetraodon (tune .*)$", text)
    others = ["--compare", "{ income = { within = 20000 } }", "--json"]
    rows = re.findall(r"(?m)^\| (.+) \| (.+) \| (.+) \|$", text.replace("**", ""))[1:]
    tuned = json.loads(run(*shlex.split(told), *others)[1])["releases"][0]
    least = {p["policy"]: p["least"] for p in tuned["policies"]}
    planned = json.loads(run("plan", *shlex.split(told)[1:2], *shlex.split(told)[4:], *others)[1])
    half = {row["policy"]: number(row["half_width"]) for row in planned["compared"][0]["policies"]}
    order = [
        '{ income = "full" }',
        "{ income = { within = 20000 } }",
        "this policy",
        "{ income = { within = 1000 } }",
    ]
    assert [row[1:] for row in rows] == [(half[p], least[p]) for p in order]


def test_journeys_between_areas(run: Run, copy: Callable[[str], Path]) -> None:
    folder = copy("trips")
    manifest = release(run, folder)
    rows = pq.read_table(folder / "trips.parquet").to_pandas()

    def areas(side: int) -> np.ndarray:
        """True counts between squares of so many metres, shape (squares, squares)."""
        n = 8000 // side
        start, end = (
            (rows[f"{way}_east"] // side * n + rows[f"{way}_north"] // side).astype(int).to_numpy()
            for way in ("from", "to")
        )
        return np.bincount(start * n**2 + end, minlength=n**4).reshape(n**2, n**2)

    districts = shown(folder, "between-districts")
    with_totals = np.pad(areas(2000), (0, 1))
    with_totals[-1, :-1], with_totals[:-1, -1] = areas(2000).sum(axis=0), areas(2000).sum(axis=1)
    with_totals[-1, -1] = len(rows)
    assert districts["Journeys"].tolist() == with_totals.ravel().tolist()  # exact
    assert entry_of(manifest, "between-districts")["spent"]["amount"] == "0"

    between = shown(folder, "between-areas")["Journeys"]
    check_near(between, areas(1000), half_width(manifest, "between-areas"))
    sums = between.to_numpy().reshape((4, 2) * 4).sum(axis=(1, 3, 5, 7)).reshape(16, 16)
    assert (
        np.abs(sums - areas(2000)).max() < 1e-3
    )  # the areas of two districts add up to what is known of these
    check_near(
        shown(folder, "departures")["Departures"], areas(500).sum(axis=1), half_width(manifest, "departures")
    )
    end = (rows["to_east"] // 1000 * 8 + rows["to_north"] // 1000).astype(int).to_numpy()
    arrivals = np.bincount(end * 6 + rows["hour"].to_numpy() // 4, minlength=384)
    check_near(shown(folder, "arrivals")["Arrivals"], arrivals, half_width(manifest, "arrivals"), step=1)
    assert (manifest["budget"]["spent"], len(manifest["budget"]["outside"])) == ("1", 4)
    check_readme("trips", manifest)


def kept(rows: Any, name: str, most: int) -> Any:
    """A patient's rows of the least marks: SHA-256 of the digest of the data's name, the id and the key."""
    salt = hashlib.sha256(name.encode()).hexdigest()
    told = zip(rows["patient"], rows["stay"], strict=True)
    marks = [hashlib.sha256(f"{salt}:{who}:{key}".encode()).hexdigest() for who, key in told]
    return rows.assign(mark=marks).sort_values("mark").groupby("patient").head(most)


def test_hospital_stays(run: Run, copy: Callable[[str], Path]) -> None:
    folder = copy("stays")
    manifest = release(run, folder)
    rows = kept(pq.read_table(folder / "stays.parquet").to_pandas(), "stays", 3)
    table = shown(folder, "diagnosis-by-age")
    inner = table[(table["Diagnosis"] != "All") & (table["Age"] != "All")]
    counted = rows.groupby(["diagnosis", "age_group"]).size()
    truth = [counted.get(pair, 0) for pair in zip(inner["Diagnosis"], inner["Age"], strict=True)]
    check_near(inner["Stays"], truth, half_width(manifest, "diagnosis-by-age"), step=5)
    by_age = table[(table["Diagnosis"] == "All") & (table["Age"] != "All")]["Stays"].sum()
    by_diagnosis = table[(table["Diagnosis"] != "All") & (table["Age"] == "All")]["Stays"].sum()
    [everybody] = table[(table["Diagnosis"] == "All") & (table["Age"] == "All")]["Stays"]
    assert by_age == by_diagnosis == everybody

    lengths = shown(folder, "length-of-stay").set_index("Diagnosis")
    mean = rows.assign(days=rows["days"].clip(upper=60)).groupby("diagnosis")["days"].mean()
    half = (lengths["upper"] - lengths["lower"]) / 2
    # Nine means; that their errors are five of their ± on average has a probability below e^-100.
    assert ((lengths.iloc[:, 0] - mean[lengths.index]).abs() / half).mean() <= 5

    page = (folder / "published" / "report.html").read_text("utf-8")
    assert "whether somebody is in the table at all" in page and manifest["budget"]["outside"] == []
    assert "25,000" not in page and "49,001" not in page  # patients and stays
    for path in (folder / "published").iterdir():
        assert not re.search(rb"P\d{6}", path.read_bytes())
    check_readme("stays", manifest)


def test_a_household_survey(run: Run, copy: Callable[[str], Path]) -> None:
    folder = copy("household")
    manifest = release(run, folder)
    rows = pq.read_table(folder / "household.parquet").to_pandas()
    classes = np.searchsorted([1000, 2000, 3000, 4000, 6000], rows["income"], side="right")

    def weighed(chosen: Any) -> np.ndarray:
        """True sums of weights, shape (6 classes of income, 5 sizes)."""
        found = np.zeros((6, 5))
        np.add.at(found, (classes[chosen], rows["size"][chosen].to_numpy() - 1), rows["weight"][chosen])
        return found

    def inner(name: str) -> Any:
        """Published cells in the same order, "All" aside."""
        table = shown(folder, name)
        cells = table[(table["Persons"] != "All") & (table["Monthly income (EUR)"] != "All")]
        low = cells["Monthly income (EUR)"].str.split("–").str[0].astype(int)
        return cells.assign(low=low).sort_values(["low", "Persons"])["Households"]

    everybody = np.ones(len(rows), dtype=bool)
    agreed = (rows["agreed"] == "yes").to_numpy()
    by_size = shown(folder, "income-by-size")
    found = inner("income-by-size")
    half = half_width(manifest, "income-by-size")
    error = np.abs(found.to_numpy() - weighed(everybody).ravel())[found.notna()]
    assert len(found) == 30 and error.size >= 20  # three cells are below 500
    assert 0 < error.mean() <= 1.5 * half and error.max() <= 15 * half + 50
    assert (by_size["Households"].dropna() % 100 == 0).all()
    assert inner("agreed").tolist() == weighed(agreed).ravel().tolist()  # exact
    assert entry_of(manifest, "agreed")["spent"]["amount"] == "0"

    means = shown(folder, "mean-income").set_index("Stratum")
    mean = (
        rows.assign(income=rows["income"].clip(upper=9999)).groupby("stratum")["income"].mean()
    )  # one weight a stratum
    half_means = (means["upper"] - means["lower"]) / 2
    assert ((means.iloc[:, 0] - mean[means.index]).abs() / half_means).mean() <= 6
    check_readme("household", manifest)


def losses_near(folder: Path, edition: str, published: Path, manifest: dict[str, Any]) -> None:
    rows = pq.read_table(folder / f"{edition}.parquet").to_pandas()
    counts = np.zeros((4357, 2))
    np.add.at(counts, (rows["capital_loss"].to_numpy(), (rows["sex"] == "Male").to_numpy(dtype=int)), 1)
    table = pq.read_table(published / "losses-by-sex.parquet").to_pandas()
    assert list(table.columns) == ["Loss up to (USD)", "Sex", "People", "lower", "upper"]
    check_near(table["People"], counts.cumsum(axis=0), half_width(manifest, "losses-by-sex"), step=0.5)


def test_losses_over_three_editions(run: Run, copy: Callable[[str], Path]) -> None:
    folder = copy("losses")
    manifest = release(run, folder)
    losses_near(folder, "first", folder / "published", manifest)
    check_readme("losses", manifest)

    # What editions.sh says, line by line; what stands between if and fi has to be refused.
    script = (folder / "editions.sh").read_text("utf-8")
    steps = re.findall(r"(?m)^(if )?tetraodon ([^;\n]+)", script)
    assert len(steps) == 4
    for refused, step in steps:
        before = Path("losses.ledger").read_bytes()
        code, _, err = run(*shlex.split(step))
        assert code == (1 if refused else 0), err
        if refused:
            assert "the total epsilon is 1 in the ledger and 6/5 here" in err and "Nothing was spent" in err
            # With the total that the account has, it is refused for what is left of it.
            text = Path("third.toml").read_text("utf-8").replace('epsilon = "6/5"', "epsilon = 1")
            Path("unraised.toml").write_text(text, encoding="utf-8")
            code, _, err = run("release", "unraised.toml", "--out", "published/third")
            assert (
                code == 1
                and "'losses-by-sex' asks for epsilon 0.4; 0.2 of 1 is left. Nothing was spent." in err
            )
            assert (
                Path("losses.ledger").read_bytes() == before
                and not Path("published/third/report.html").exists()
            )

    for edition, spent, total in (("second", "0.8", "1"), ("third", "1.2", "1.2")):
        published = folder / "published" / edition
        later = json.loads((published / "manifest.json").read_text("utf-8"))
        assert (later["data"]["edition"], later["budget"]["spent"], later["budget"]["total"]) == (
            edition,
            spent,
            total,
        )
        check_published(run, published, later)
        losses_near(folder, edition, published, later)
    assert "A third edition was ordered" in (folder / "published/third/report.html").read_text("utf-8")
    assert "A third edition" not in (folder / "published/second/report.html").read_text("utf-8")
    told = json.loads(run("ledger", "show", "losses.ledger", "--json")[1])
    assert (told["together"], told["editions"]) == ("1.2", {"first": "0.4", "second": "0.4", "third": "0.4"})


def test_later_editions_differ_in_what_they_must() -> None:
    first, second, third = (
        re.sub(r" +#.*", "", (EXAMPLES / "losses" / f"{n}.toml").read_text("utf-8").split("\n\n", 1)[1])
        for n in ("release", "second", "third")
    )
    assert first.replace("first", "second") == second
    assert first.replace("first", "third").replace("epsilon = 1\n", 'epsilon = "6/5"\n') == third


def test_every_example_is_made_by_one_command_and_linked() -> None:
    assert sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()) == sorted(NAMES)
    made = (ROOT / "Makefile").read_text("utf-8")
    assert f"EXAMPLES := {' '.join(NAMES)}\n" in made
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in NAMES:
        assert f"(examples/{name}/README.md)" in readme
        assert f"    make example NAME={name}\n" in (EXAMPLES / name / "README.md").read_text("utf-8")
