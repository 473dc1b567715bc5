"""Cases C36 and C38 for microdata, and what else must not leave, be spent or be believed beside rows that are fitted on themselves."""

from __future__ import annotations

import json
import shutil
import traceback
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microdata_people import DOMAIN, JOBS, POLICY, SETTINGS, asked, people, session, written

import tetraodon as td
from tetraodon import leakage
from tetraodon.cli import main
from tetraodon.composition import loss_under
from tetraodon.errors import DataError, OutputError, Refused, SpecificationError, TetraodonError
from tetraodon.ledger import Ledger, verify
from tetraodon.loss import Loss
from tetraodon.microdata import drawing, fit
from tetraodon.microdata.audit import write_audit
from tetraodon.microdata.declared import read
from tetraodon.microdata.settings import Hybrid
from tetraodon.microdata.strategy import HybridStrategy
from tetraodon.plans import number
from tetraodon.queries import query_from_spec
from tetraodon.requests import Request

CANARY = "canary"
ODD = 54_321  # hours that nobody declared


def release(query: Any, s: Any = None, **more: Any) -> Any:
    return (session() if s is None else s).release(query, guarantee="measured", **more)


def run(arguments: list[str], capfd: pytest.CaptureFixture[str], code: int) -> str:
    """Both streams of a command."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    out, err = capfd.readouterr()
    assert end.value.code == code, out + err
    return out + err


def every_text(folder: Path, *but: str) -> bytes:
    """All that lies in a folder, sources aside."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in but)
    return b"\n".join(p.read_bytes() for p in files)


# ---------- C36: what is computed from private rows ----------

WAYS: dict[str, Any] = {
    "donors": {},
    "alternating": {"method": "alternating"},
    "prototypes": {"publish": "prototypes", "donors": 1},
    "classes": {"quasi_identifiers": ["region"], "class_size": 30, "groups": 2, "clusters": 3, "donors": 1},
    "several": {"private": ["age", "job"], "insensitive": ["hours", "likes"], "groups": 2, "k": 5, "l": 1, "donors": 1},
    "coarse": {"groups": None, "coarseness": 2},
}  # fmt: skip


def written_forms(value: float) -> set[bytes]:
    """A figure as somebody could have printed it, where that is not a text that comes by chance."""
    texts = {repr(float(value))[:8], f"{value:.4f}", f"{value:.5g}", number(value)}
    return {t.encode() for t in texts if len(t.replace(".", "").lstrip("0")) >= 4 and "." in t}


@pytest.mark.parametrize("way", WAYS)
def test_c36_figures_of_private_rows_are_in_nothing_that_is_written(
    way: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Leakage, bound, gap, distances, realised ones, and where a search went: in no file, stream or repr."""
    s = session(ledger=tmp_path / "a.ledger")
    found = release(asked(**({"distortion": "0.6"} | WAYS[way])), s, name="people")
    found.save(tmp_path / "out", ("parquet", "csv"))
    from tetraodon.report import render

    page = render(tmp_path / "out" / "manifest.json")
    told = [*found.plan.figures.values(), found.plan.bound, found.plan.gap, found.plan.coarse, found.realised]
    told += [x for step in found.plan.history for x in (step.leak, step.distortion)]
    figures = [f for f in told if f is not None and abs(f) > 1e-4 and f not in (0.6, 2.0)]
    assert len(figures) >= 6
    run(["ledger", "show", str(tmp_path / "a.ledger"), "--json"], capfd, 0)
    # What stands in the rows themselves (means of clusters) is no figure of the plan.
    rows = ("people.csv", "people.parquet")
    shown = b"\n".join(
        [every_text(tmp_path, *rows), page.encode(), repr((found, s, s.remaining, found.plan)).encode()]
    )
    for figure in figures:
        assert not [t for t in written_forms(figure) if t in shown], way
    [entry] = json.loads((tmp_path / "out" / "manifest.json").read_text())["releases"]
    assert entry["evidence"] is None
    assert all(set(g) == {"label", "rows"} for c in entry["groups"] for g in c["groups"])
    frame = found.to_frame()
    for column in entry["groups"]:  # these counts are those of the rows that leave
        counted = Counter(frame[column["column"]])
        assert {g["label"]: g["rows"] for g in column["groups"] if g["rows"]} == dict(counted)


def test_c36_figures_leave_only_where_the_settings_say_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The waiver is a key of the release, true or false, and off where it is left out."""
    default = Request(asked(), Loss("epsilon", Fraction(0)), "p", guarantee="measured")
    assert default.publishes_evidence is False
    path = written(
        tmp_path, ('guarantee = "measured"', 'guarantee = "measured"\npublish_evidence = "yes, please"')
    )
    assert "releases.people.publish_evidence" in run(["plan", str(path)], capfd, 2)
    path.write_text(SETTINGS, encoding="utf-8")
    text = run(["release", str(path)], capfd, 0)
    assert "are not published" in text and "Measured on" not in text and "bits" not in text
    told = json.loads((tmp_path / "published" / "manifest.json").read_text())["releases"][1]
    assert told["evidence"] is None


# ---------- C38: attackers who flatter us ----------


@pytest.fixture(scope="module")
def attacked() -> tuple[dict[str, Any], Any, list[dict[str, Any]]]:
    """People, what was released of them row by row, and how it was drawn."""
    import tempfile

    rows = people(1200, seed=8)
    with tempfile.TemporaryDirectory() as folder:
        found = release(
            asked(k=100, groups=4, distortion="0.5"), session(rows=rows), audit=Path(folder) / "a.csv"
        )
        import csv

        with (Path(folder) / "a.csv").open(encoding="utf-8") as file:
            mapping = list(csv.DictReader(file))
    frame = found.to_frame().iloc[[int(m["published_row"]) for m in mapping]].reset_index(drop=True)
    kept = {k: rows[k] for k in ("age", "hours", "mood", "likes")}
    return kept, frame, mapping


def attack(original: Any, released: Any, model: str = "group-median", **more: Any) -> Any:
    told = {"repeats": 2, "rng": np.random.default_rng(5)} | more
    return leakage.attack(original, released, "age", model, **told)


@pytest.mark.parametrize("model", ["group-median", "knn", "logistic"])
def test_c38_baseline_ceiling_and_interval_stand_beside_every_attack(model: str, attacked: Any) -> None:
    original, frame, _ = attacked
    found = attack(original, frame, model)
    told, said = found.to_spec(), found.words()
    for key in ("baseline", "ceiling", "interval", "gain_interval"):
        assert key in json.dumps(told), key
    assert "Without" in said and "unprotected" in said and "%" in said
    assert found.interval[0] < found.success < found.interval[1]
    # Between who sees the rows as they are and who sees nothing, up to what chance allows.
    slack = found.interval[1] - found.interval[0]
    assert found.ceiling - slack <= found.success <= found.baseline + slack


def test_c38_fifty_rows_of_training_are_called_too_few(attacked: Any) -> None:
    original, frame, _ = attacked
    few = {k: v[:50] for k, v in original.items()}
    assert "fewer than 100 people" in attack(few, frame.iloc[:50]).words()


def test_c38_the_target_does_not_leak_into_what_the_attacker_sees(attacked: Any) -> None:
    """The original secret of who is attacked is not looked at: attacks on people whose secrets were shuffled find nothing."""
    original, frame, _ = attacked
    blind = {
        **{k: original[k] for k in ("hours", "mood", "likes")},
        "age": np.random.default_rng(1).permutation(original["age"]).tolist(),
    }
    found = attack(blind, frame.drop(columns="age"), "knn")
    assert found.gain_interval[0] <= 0


def test_c38_an_attack_gets_no_better_by_what_is_done_to_the_release(attacked: Any) -> None:
    """Groups that are joined, and columns that are left out, tell no more (data processing)."""
    original, frame, _ = attacked
    labels = sorted(frame["age"].unique())
    joined = frame.assign(age=frame["age"].map({label: "low" if i < 2 else "high" for i, label in enumerate(labels)}))  # fmt: skip
    none = frame.assign(age="everybody")
    for better, worse in ((frame, joined), (joined, none)):
        found = leakage.paired(
            original, better, worse, "age", "group-median", repeats=3, rng=np.random.default_rng(2)
        )
        assert found.interval[0] <= found.interval[1]
        first, second = (
            attack(original, each, rng=np.random.default_rng(2)).success for each in (better, worse)
        )
        assert first <= second + 1e-9


def test_c38_leakage_counts_the_group_of_a_donor_whose_row_is_his_alone(attacked: Any) -> None:
    """An own row that goes to others still tells its owner's group: the name of the group is never counted as hidden."""
    original, frame, mapping = attacked
    group = {int(m["row"]): m["group:age"] for m in mapping}
    seen = Counter(zip(original["hours"], original["mood"], original["likes"], strict=True))
    alone = {
        (h, m, "else" if x == "canary-juice" else x): group[i]
        for i, (h, m, x) in enumerate(
            zip(original["hours"], original["mood"], original["likes"], strict=True)
        )
        if seen[h, m, x] == 1
    }
    shown = [
        (row.age, (row.hours, row.mood, row.likes))
        for row in frame.itertuples()
        if (row.hours, row.mood, row.likes) in alone
    ]
    assert shown and all(label == alone[features] for label, features in shown)


# ---------- what reaches messages, logs and files ----------


def marked(n: int = 240) -> dict[str, Any]:
    """People with values that nobody declared, in declared columns and beside them."""
    rows = people(n)
    rows["hours"][7] = ODD
    return rows


def test_no_value_of_a_row_reaches_a_message_a_log_or_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path)
    pq.write_table(pa.table(marked()), tmp_path / "people.parquet")
    shown = run(["explain", str(path)], capfd, 0)
    shown += run(["plan", str(path)], capfd, 0)
    shown += run(["release", str(path)], capfd, 0)
    shown += run(["release", str(path)], capfd, 1)
    shown += run(["ledger", "show", str(tmp_path / "people.ledger")], capfd, 0)
    everything = shown.encode() + caplog.text.encode() + every_text(tmp_path, "people.parquet")
    assert CANARY.encode() not in everything and str(ODD).encode() not in everything


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('other = "else"', ""),
        ("integer = [0, 60]", 'integer = [0, 60]\ncolumn = "name"'),
        ("k = 20", "k = 230"),
        ("k = 20", "k = 10000"),
        ("distortion = 0.4", "distortion = 0.000001"),
        ("clusters = 5", "clusters = 10000"),
        ("donors = 3", "donors = 10000"),
        ("k = 20", "k = 100\nalpha = 119"),
        ("donors = 3", 'donors = 3\nmethod = "alternating"\nbeta = 3'),
        ("donors = 3", 'donors = 3\nquasi_identifiers = ["job"]\nclass_size = 9999'),
    ],
)
def test_refused_rows_are_neither_shown_nor_counted_and_nothing_is_spent(
    old: str, new: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A paid release stands before it in the same run: all or nothing."""
    rows = marked()
    path = written(tmp_path, (old, new))
    pq.write_table(pa.table(rows), tmp_path / "people.parquet")
    with pytest.raises(SystemExit) as end:
        main(["release", str(path)])
    out, err = capfd.readouterr()
    assert end.value.code in (1, 2) and "unexpected" not in err and not out
    assert CANARY not in err + caplog.text and str(ODD) not in err + caplog.text
    stated = {"230", "100", "119", "10000", "9999", "240"}
    private = {str(n) for n in [*Counter(rows["age"]).values(), *Counter(rows["likes"]).values()]} - stated
    words = {w.strip("().,:;–%").replace(",", "") for w in err.split()}
    assert not {w for w in words & private if int(w) > 20}, err
    ledger = Ledger.read(tmp_path / "people.ledger") if (tmp_path / "people.ledger").exists() else None
    assert ledger is None or (ledger.spent == 0 and not [e for e in ledger.entries if e.charge is not None])
    assert not (tmp_path / "people.audit.csv").exists()
    assert not list((tmp_path / "published").glob("*"))


def test_how_far_rows_are_from_a_requirement_is_not_told() -> None:
    """The same words for tables that miss by little and by much."""
    said = []
    for extra in (1, 30, 110):
        rows = people()
        rows["age"] = [20] * extra + [20 + i % 20 for i in range(240 - extra)]
        with pytest.raises(Refused) as found:
            release(asked(k=85, groups=3, distortion="0.9"), session(rows=rows))
        said.append(str(found.value))
    assert len(set(said)) == 1
    far = []
    for spread in (1, 30):
        rows = people()
        rows["hours"] = [(i * 17 * spread) % 60 for i in range(240)]
        with pytest.raises(Refused) as found:
            release(asked(distortion="0.0001"), session(rows=rows))
        far.append(str(found.value))
    assert far[0] == far[1]


def test_nothing_that_is_held_shows_a_row() -> None:
    rows = people()
    rows["age"] = [33] * 200 + rows["age"][200:]
    s = session(rows=rows)
    found = release(asked(groups=2, k=10), s)
    plan = found.plan
    held = [found, plan, plan.prepared, plan.prepared.data, *plan.laws, s, s.ledger, s.plan(asked())]
    held += [read(s.table, found.strategy.layout), drawing.drawn(plan, plan.prepared.data), found.mapping]
    for thing in held:
        text = repr(thing)
        assert CANARY not in text and "array(" not in text and "13, 13" not in text, type(thing)


@pytest.mark.parametrize("stage", ["fit", "draw", "audit"])
def test_no_row_is_in_a_traceback(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that record local variables see no cell where something unforeseen fails half-way."""

    def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("unforeseen")

    where = {"fit": (fit, "fit"), "draw": (drawing, "drawn")}
    if stage == "audit":
        monkeypatch.setattr("tetraodon.microdata.release.write_audit", broken)
    else:
        monkeypatch.setattr(*where[stage], broken)
    rows = people()
    rows["hours"] = [47] * 240
    s = session(rows=rows)
    del rows
    with pytest.raises(RuntimeError) as caught:
        s.release(asked(), guarantee="measured", audit=tmp_path / "a.csv")
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "unforeseen" in shown and "47, 47" not in shown and CANARY not in shown


# ---------- the private file of the mapping ----------


def test_the_mapping_is_refused_wherever_it_would_be_published(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "door").symlink_to(tmp_path / "published", target_is_directory=True)
    for audit in ("published/a.csv", "elsewhere/../published/a.csv", "door/a.csv", "published/deep/a.csv"):
        (tmp_path / "release.toml").unlink(missing_ok=True)
        path = written(tmp_path, ('audit = "people.audit.csv"', f'audit = "{audit}"'))
        err = run(["release", str(path)], capfd, 1)
        assert "a.csv: lies in a folder that is published" in err and "Nothing was spent" in err
        assert not (tmp_path / "people.ledger").exists() and not list(tmp_path.rglob("a.csv"))
    # Another output folder does not make a folder private that was published before.
    path = written(tmp_path)
    run(["release", str(path)], capfd, 0)
    later = written(tmp_path, ('audit = "people.audit.csv"', 'audit = "published/b.csv"'))
    err = run(["release", str(later), "--out", str(tmp_path / "new"), "--again"], capfd, 1)
    assert "lies in a folder that is published" in err and not (tmp_path / "published" / "b.csv").exists()


def test_a_release_is_not_saved_around_its_mapping(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    found = release(asked(), audit=tmp_path / "in" / "a.csv")
    for folder in (tmp_path / "in", tmp_path):
        with pytest.raises(OutputError, match="lies in a folder that is published"):
            found.save(folder)
        assert not list(tmp_path.rglob("manifest.json")) and not list(tmp_path.rglob("*.parquet"))
    told = json.loads(found.save(tmp_path / "out").read_text())
    assert "a.csv" not in json.dumps(told) and "audit" not in json.dumps(told)


def test_a_mapping_replaces_nothing_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("kept")
    (tmp_path / "link.csv").symlink_to(tmp_path / "target.csv")
    for name in ("old.csv", "link.csv", "none/a.csv"):
        s = session(ledger=tmp_path / f"{name.replace('/', '-')}.ledger")
        with pytest.raises(OutputError, match="Nothing was spent"):
            release(asked(), s, audit=tmp_path / name)
        assert not [e for e in s.ledger.entries if e.charge is not None]
    assert (tmp_path / "old.csv").read_text() == "kept" and not (tmp_path / "target.csv").exists()
    with pytest.raises(OutputError, match="cannot be written"):  # also where it came there meanwhile
        write_audit(tmp_path / "link.csv", pa.table({"row": [1]}))


# ---------- what is asked ----------


@pytest.mark.parametrize("guarantee", ["proved", "", "Measured", None, 1])
def test_no_other_guarantee_is_given(guarantee: Any) -> None:
    with pytest.raises(SpecificationError, match=r"guarantee|no epsilon is proved"):
        session().release(asked(), guarantee=guarantee)
    with pytest.raises(SpecificationError, match="nothing is charged"):
        session().release(asked(), epsilon=1, guarantee="measured")


REFUSED: dict[str, tuple[Callable[[], Hybrid], str]] = {
    "private unknown": (lambda: asked("wage"), r"hybrid\.private: no column 'wage'.*Did you mean 'age'"),
    "private missing": (lambda: asked([]), r"hybrid\.private"),
    "insensitive unknown": (lambda: asked(insensitive=["hourz"]), r"hybrid\.insensitive: no column 'hourz'"),
    "a column beside the declared ones": (lambda: asked(insensitive=["name"]), r"hybrid\.insensitive: no column 'name'"),
    "prefix of none": (
        lambda: Hybrid("age", {"prefix": "q_"}, distortion="0.4", groups=3),
        r"hybrid\.insensitive: no column begins with 'q_'",
    ),
    "a class of none": (lambda: asked(quasi_identifiers=["zip"]), r"hybrid\.quasi_identifiers: no column 'zip'"),
    "one column twice": (lambda: asked(insensitive=["hours", "hours"]), r"hybrid\.insensitive: attribute names, each once"),
    "two parts": (lambda: asked(insensitive=["age"]), r"'age' has another part"),
    "several, alternating": (
        lambda: asked(["age", "job"], ["hours"], method="alternating"), r"hybrid\.method: 'alternating' has one private column"
    ),
    "counts of categories": (lambda: asked(metric="jensen-shannon"), r"hybrid\.metric: .*'likes' holds categories"),
    "no tree": (lambda: asked(generalise="tree"), r"hybrid\.generalise: 'tree' needs a hierarchy"),
    "too little": (lambda: asked(groups=None), r"hybrid: one of groups, alpha, beta and coarseness"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_that_does_not_fit_the_declaration_is_refused_before_rows_are_read(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, says = REFUSED[case]
    monkeypatch.setattr(td.Table, "rows", lambda *a, **k: pytest.fail("the rows were read"))
    for does in (lambda: session().plan(make()), lambda: release(make())):
        with pytest.raises(SpecificationError, match=says):
            does()


NULLS = {"null": None, "nan": float("nan")}


@pytest.mark.parametrize("value", NULLS)
@pytest.mark.parametrize("column", ["age", "hours", "pay", "lat", "mood", "job"])
def test_cells_without_a_value_are_refused_by_column(column: str, value: str) -> None:
    rows = people()
    if isinstance(rows[column][0], str) and value == "nan":
        pytest.skip("a text is no number")
    rows[column] = [*rows[column][:-1], NULLS[value]]
    private = column if column in ("age", "job") else "age"
    insensitive = ["hours", "pay", "home", "mood"]
    s = session(rows=rows)
    with pytest.raises(DataError, match=rf"'{column}'") as found:
        release(asked(private, insensitive, l=1, groups=2), s)
    assert CANARY not in str(found.value) and s.ledger.entries[-1].kind != "charge"


def test_missing_cells_may_be_declared_where_they_are_a_category() -> None:
    """A null region is a value of its own, exchanged with others; a number that may be missing has no distance."""
    found = release(asked(insensitive=["hours", "region"]))
    shown = Counter(found.to_frame()["region"].astype(object).where(lambda c: c.notna(), "none"))
    assert set(shown) <= {"n", "e", "s", "w", "none"}
    open_ = td.Domain({**DOMAIN, "pay": td.Numeric(0, 100, cells=10, missing="public")})
    policy = td.Policy(open_, td.AttributeWise(age=td.Within(5)))
    with pytest.raises(SpecificationError, match="'pay' is a number or a place with a cell for missing"):
        release(asked(insensitive=["hours", "pay"]), session(policy))
    with pytest.raises(SpecificationError, match="'pay' has a cell for other or missing values"):
        release(asked("pay", ["hours"]), session(policy))


def test_constant_columns_one_group_and_one_row() -> None:
    rows = people()
    rows |= {"hours": [30] * 240, "mood": ["low"] * 240, "likes": ["tea"] * 240}
    told = release(asked(), session(rows=rows))
    assert told.plan.figures["exchange"] == pytest.approx(0, abs=1e-9) and told.realised == 0
    assert set(map(tuple, told.to_frame()[["hours", "mood", "likes"]].values)) == {(30, "low", "tea")}
    one = release(asked(groups=1))
    assert [(g.label, g.rows) for g in one.groups["age"]] == [("20–39", 240)]
    assert one.plan.figures["naming"] == 0
    constant = session(rows=people() | {"age": [33] * 240})
    with pytest.raises(Refused, match=r"at least 2 distinct values \(l\).*Nothing was spent"):
        release(asked(), constant)
    whole = release(asked(l=1, groups=1), constant)
    assert whole.plan.figures["unknown"] == whole.plan.leakage == 0
    single = {k: v[:1] for k, v in people().items()}
    lone = release(asked(k=1, l=1, groups=1, clusters=1, donors=1), session(rows=single))
    assert lone.to_arrow().num_rows == 1 and lone.realised == 0
    with pytest.raises(SpecificationError, match=r"hybrid\.k: more than the table has rows"):
        release(asked(), session(rows=single))
    with pytest.raises(TetraodonError, match="rows"):
        release(asked(k=1, l=1), session(rows={k: v[:0] for k, v in people().items()}))
    tiny = td.Domain(age=td.Integer(30, 30), hours=td.Integer(0, 60))
    with pytest.raises(SpecificationError, match="'age' has one value only"):
        release(
            asked(insensitive=["hours"], groups=1, l=1), session(td.Policy(tiny, td.AttributeWise(hours=td.Full())))
        )  # fmt: skip


def test_more_clusters_than_rows_and_as_many() -> None:
    with pytest.raises(SpecificationError, match="more clusters than rows"):
        release(asked(clusters=241))
    found = release(asked(clusters=240, donors=1, distortion="0.9"))
    assert found.to_arrow().num_rows == 240


def test_rows_that_come_twice_are_rows() -> None:
    """Who stands in several rows counts once for each; no column that was not named leaves, ids included."""
    rows = people() | {"name": ["canary-one"] * 240}
    found = release(asked(), session(rows=rows))
    assert "name" not in found.to_arrow().column_names
    doubled = {k: v + v for k, v in people(120).items()}
    again = release(asked(k=40), session(rows=doubled))
    assert all(g.rows >= 40 and g.rows % 2 == 0 for g in again.groups["age"])


def test_a_value_that_was_not_fitted_is_refused_by_column_alone() -> None:
    """The estimator learns categories from its rows; others are refused unnamed, and never put somewhere."""
    rows = {k: v for k, v in people().items() if k in ("age", "hours", "mood", "likes")}
    hybrid = td.HybridObscuring(
        "age", ["hours", "mood", "likes"], distortion=0.4, groups=3, k=20, clusters=5, donors=3
    ).fit(rows)
    for column in ("likes", "mood"):
        odd = rows | {column: ["canary-new", *rows[column][1:]]}
        with pytest.raises((DataError, SpecificationError), match=column) as found:
            hybrid.transform(odd)
        assert "canary-new" not in str(found.value)
    with pytest.raises(SpecificationError, match="'age' has a value that was not fitted"):
        hybrid.transform(rows | {"age": [99, *rows["age"][1:]]})


# ---------- k, alpha, l and beta hold of the rows that leave ----------

UNIFORM = [20 + i % 20 for i in range(240)]
BREAKS: dict[str, tuple[dict[str, Any], list[int], list[int], str]] = {
    "k": ({"k": 80, "l": 1}, UNIFORM, [20] * 200 + UNIFORM[200:], r"at least 80 rows \(k\)"),
    "alpha": ({"k": 1, "l": 1, "alpha": 140}, UNIFORM, [20] * 200 + UNIFORM[200:], r"at most 140 rows \(alpha\)"),
    "l": ({"k": 1, "l": 10}, UNIFORM, [20 + i % 12 for i in range(240)], r"at least 10 distinct values \(l\)"),
    "beta": (
        {"k": 1, "l": 1, "beta": 6}, [20 + 2 * (i % 10) for i in range(240)], UNIFORM, r"at most 6 distinct values \(beta\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("requirement", BREAKS)
def test_groups_that_were_found_on_other_rows_are_tested_on_those_that_leave(
    requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan comes from one table, the rows from another that breaks one requirement; without the test it would go out."""
    told, fitted, leaving, says = BREAKS[requirement]
    query = asked(**({"groups": 2, "clusters": 1, "donors": 1, "distortion": "1"} | told))
    others, rows = people() | {"age": fitted}, people() | {"age": leaving}
    release(query, session(rows=others))  # these rows do meet it
    plan = release(query, session(rows=others)).plan
    monkeypatch.setattr(HybridStrategy, "fitted", lambda *_: plan)
    s = session(rows=rows)
    with pytest.raises(Refused, match=says) as found:
        release(query, s)
    assert "charged already" in str(found.value) and s.ledger.spent == 0
    monkeypatch.setattr(drawing, "check", lambda *_: None)
    out = release(query, session(rows=rows)).groups["age"]
    ages = Counter(map(str, leaving))
    held = [(g.rows, sum(ages[v] > 0 for v in g.values)) for g in out]
    need = query.requirements
    assert not all(
        need.k <= n and need.l <= v and n <= (need.alpha or n) and v <= (need.beta or v) for n, v in held
    )


# ---------- the account ----------

SPECS = [
    asked(),
    asked(["age", "job"], ["hours"], k=5, l="1.5", variety="entropy", coarseness="0.25"),
    asked(quasi_identifiers=["region"], class_size=30, publish="prototypes", invariant=True, donors=1),
    Hybrid("job", {"prefix": "h"}, distortion="0.123456789", alpha=100, beta=3, generalise="tree", budget="group"),
    Hybrid("age", "all", distortion="1/3", groups=2, metric="euclidean", method="alternating", clusters=7),
]  # fmt: skip


@pytest.mark.parametrize("query", SPECS, ids=lambda q: q.title)
def test_a_ledger_gives_back_what_was_asked(query: Hybrid) -> None:
    spec = json.loads(json.dumps(query.to_spec()))
    assert query_from_spec(spec) == query
    assert query_from_spec(spec).to_spec() == query.to_spec()


@pytest.mark.parametrize(
    "later",
    [
        td.Policy(DOMAIN, td.Full()),
        td.Policy(DOMAIN, td.AttributeWise(age=td.Within(1), mood=td.Full())),
        td.Policy(
            DOMAIN,
            td.AttributeWise(age=td.Full(), job=td.Full()),
            [td.CountConstraint(where={"age": (20, 24)}, answer=sum(a < 25 for a in people()["age"]))],
        ),
    ],
    ids=["full", "another attribute", "public counts"],
)  # fmt: skip
def test_an_account_with_microdata_in_it_can_be_gone_on_with_under_any_policy(
    later: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was let out stays named; what is proved of other releases stays what it was; what is refused later is refused."""
    path = tmp_path / "a.ledger"
    first = session(ledger=path)
    first.release(td.Histogram("age"), epsilon="1/4")
    release(asked(), first)
    again = session(later, ledger=path)
    told = "whole rows: age generalised, 3 columns exchanged within groups, without a proved bound"
    assert told in again.remaining.outside
    again.release(td.Histogram("age"), epsilon="1/4", name="more")
    release(asked("job", ["hours", "mood"], groups=2, l=1), again, name="jobs")
    charges = [e.charge for e in Ledger.read(path).entries if e.charge is not None]
    assert [c.flag for c in charges] == ["histogram", "measured", "histogram", "measured"]
    proved = [c for c in charges if c.flag == "histogram"]
    for policy in (POLICY, later):
        assert loss_under(policy, charges).value == loss_under(policy, proved).value
    assert verify(path, []).ok and again.ledger.spent <= 2
    assert told in run(["ledger", "show", str(path)], capfd, 0)
    assert run(["ledger", "show", str(path), "--json"], capfd, 0).count('"hybrid"') >= 2
    with pytest.raises(td.errors.BudgetError):
        again.release(td.Histogram("age"), epsilon=3, name="too much")


def test_an_audited_run_leaves_the_order_of_a_file_as_it_is(tmp_path: Path) -> None:
    """Rows of the mapping are numbered as in the file, however many parts of it are read at once."""
    n = 60_000
    rng = np.random.default_rng(2)
    rows = {
        "age": 20 + np.arange(n) % 20,
        "hours": rng.integers(0, 61, n),
        "mood": ["low", "even", "high"] * (n // 3),
    }
    pq.write_table(pa.table(rows), tmp_path / "people.parquet", row_group_size=500)
    small = td.Domain({k: DOMAIN[k] for k in ("age", "hours", "mood")})
    policy = td.Policy(small, td.AttributeWise(age=td.Within(5)))
    s = td.Session(td.Table(tmp_path / "people.parquet", small), policy, epsilon=1)
    found = release(
        asked(insensitive=["hours", "mood"], k=5000, clusters=4, distortion="0.9"),
        s,
        audit=tmp_path / "a.csv",
    )
    from pyarrow import csv

    told = csv.read_csv(tmp_path / "a.csv")
    stands = {v: g.label for g in found.groups["age"] for v in g.values}
    assert told["group:age"].to_pylist() == [stands[str(v)] for v in rows["age"].tolist()]
    given = found.to_arrow().take(told["published_row"])
    assert given["hours"].to_pylist() == rows["hours"][told["donor_row"].to_numpy()].tolist()


def test_the_sources_of_a_run_stay_as_they_were(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    run(["release", str(path)], capfd, 0)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    shutil.rmtree(tmp_path / "published")
    assert json.loads(json.dumps(JOBS)) == dict(DOMAIN["job"].parents)


# ---------- files in each other's way ----------


def test_no_release_takes_the_place_of_another_ones_groups(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("people.groups", "PEOPLE.Groups"):
        path = written(tmp_path, ('name = "ages"', f'name = "{name}"'))
        assert "not ending in '.groups'" in run(["plan", str(path)], capfd, 2)


def test_a_file_of_others_in_the_way_is_found_before_anything_is_charged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "people.groups.csv").write_text("mine")
    assert "is there already" in run(["release", str(path)], capfd, 1)
    assert not (tmp_path / "people.ledger").exists()
    assert (tmp_path / "published" / "people.groups.csv").read_text() == "mine"
    (tmp_path / "published" / "people.groups.csv").unlink()
    run(["release", str(path)], capfd, 0)
    (tmp_path / "people.audit.csv").unlink()
    run(["release", str(path), "--again", "--only", "people"], capfd, 0)  # its own file it replaces
