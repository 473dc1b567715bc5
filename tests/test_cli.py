"""The command line: results, exit codes, messages that name file, key and fix."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tetraodon.ledger import Ledger

Settings = Callable[..., Path]


Run = Callable[..., tuple[int, str, str]]


def test_the_whole_path_from_settings_to_report(settings: Settings, run: Run) -> None:
    path = settings()
    code, out, err = run("plan", path)
    assert code == 0 and "Together epsilon 0.75; 1 of 1 is left: it fits." in out and not err
    assert not (path.parent / "people.ledger").exists()

    code, out, err = run("release", path)
    assert code == 0, err
    assert out.splitlines()[0].startswith("NOT protected: sex.")
    folder = path.parent / "published"
    assert sorted(p.name for p in folder.iterdir()) == [
        "ages.csv", "ages.parquet", "cells.csv", "cells.parquet", "manifest.json", "report.html",
    ]  # fmt: skip
    ages = pq.read_table(folder / "ages.parquet")
    assert ages.column_names == ["age", "sex", "value", "lower", "upper"]
    assert ages["age"].to_pylist() == [a for a in range(10) for _ in range(2)]
    # Sex is not protected, so the last cumulative count of each is exact.
    assert ages["value"].to_pylist()[-2:] == [3.0, 3.0]

    code, out, _ = run("ledger", "verify", path.parent / "people.ledger", folder / "manifest.json")
    assert code == 0 and "sound" in out
    code, out, _ = run("ledger", "show", path.parent / "people.ledger", "--json")
    told = json.loads(out)
    assert (told["spent"], told["remaining"]) == ("0.75", "0.25")
    assert {r["kind"] for r in told["rows"]} == {"created", "charge", "published"}


def test_a_name_is_released_once_unless_again_is_said(settings: Settings, run: Run) -> None:
    path = settings(("0.5", "0.25"))
    assert run("release", path)[0] == 0
    first = (path.parent / "published" / "ages.csv").read_bytes()
    assert "released already in this edition" in run("plan", path)[1]
    code, _, err = run("release", path)
    assert code == 1 and "already released on" in err and "--again" in err
    assert (path.parent / "published" / "ages.csv").read_bytes() == first
    assert run("release", path, "--again")[0] == 0
    code, _, err = run("release", path, "--again")
    assert code == 1 and "epsilon 0.5; 0 of 1 is left" in err


def test_only_one_release_and_the_manifest_keeps_the_other(settings: Settings, run: Run) -> None:
    path = settings()
    assert run("release", path, "--only", "cells")[0] == 0
    assert run("release", path, "--only", "ages")[0] == 0
    manifest = json.loads((path.parent / "published" / "manifest.json").read_text())
    assert [r["name"] for r in manifest["releases"]] == ["cells", "ages"]
    page = (path.parent / "published" / "report.html").read_text(encoding="utf-8")
    assert page.count("<h3") >= 2 and "cells" in page and "ages" in page
    code, _, err = run("release", path, "--only", "agse")
    assert code == 2 and "Did you mean 'ages'?" in err


def test_only_what_was_released_now_is_told_in_full(settings: Settings, run: Run) -> None:
    path = settings()
    run("release", path, "--only", "cells")
    out = run("release", path, "--only", "ages")[1]
    assert "ages: epsilon 0.5" in out and "cells: " not in out
    assert "In this folder since before: cells." in out.splitlines()


def test_a_folder_of_another_account_is_left_alone(settings: Settings, run: Run) -> None:
    """A ledger that was moved away: the folder's manifest is the one proof that it was, and what it had spent."""
    path = settings()
    folder, ledger = path.parent / "published", path.parent / "people.ledger"
    assert run("release", path)[0] == 0
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    copy = ledger.read_bytes()
    ledger.unlink()
    for arguments in ((), ("--only", "cells"), ("--again",)):
        code, _, err = run("release", path, *arguments)
        assert code == 1 and "manifest.json: belongs to another account" in err and "Nothing was spent" in err
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert run("release", path, "--out", path.parent / "elsewhere")[0] == 0
    ledger.write_bytes(copy)  # an older copy of what wrote the other folder
    assert run("release", path, "--again", "--only", "cells", "--out", path.parent / "elsewhere")[0] == 1
    assert run("release", path, "--again", "--only", "cells")[0] == 0


def test_files_of_a_format_that_is_left_out_go_with_their_draw(settings: Settings, run: Run) -> None:
    """A parquet file of the first draw beside the CSV of the second would be two answers of one name; what somebody changed stays."""
    path = settings(("0.5", "0.25"))
    folder = path.parent / "published"
    assert run("release", path)[0] == 0
    (folder / "cells.parquet").write_bytes(b"mine")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("query =", 'present = { format = ["csv"] }\nquery ='), encoding="utf-8")
    assert run("release", path, "--again")[0] == 0
    assert sorted(p.name for p in folder.iterdir()) == [
        "ages.csv", "cells.csv", "cells.parquet", "manifest.json", "report.html",
    ]  # fmt: skip
    assert (folder / "cells.parquet").read_bytes() == b"mine"


def test_an_interruption_is_told(settings: Settings) -> None:
    """Ctrl-C while the data are read: in a process of its own, as Typer ends there without a word."""
    script = """
        import sys
        from tetraodon import cli, counting

        def interrupted(*_):
            raise KeyboardInterrupt

        counting._batches = interrupted
        cli.main(sys.argv[1:])
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), "release", str(settings())],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("tetraodon: interrupted. A charge that was made stays made")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_no_defect_of_ours(settings: Settings) -> None:
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "tetraodon", "plan", str(settings())],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert found.returncode == 1
    assert found.stderr.startswith(
        "tetraodon: what was to be printed cannot be written (No space left on device)"
    )


def test_init_writes_a_file_that_plans(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "release.toml"
    assert run("init", "--out", path)[0] == 0
    assert run("plan", path)[0] == 0
    code, _, err = run("init", "--out", path)
    assert code == 1 and "exists already" in err


def test_explain_starts_with_what_is_not_protected(settings: Settings, run: Run) -> None:
    code, out, _ = run("explain", settings())
    assert code == 0 and out.startswith("NOT protected: sex.")


def test_demo_starts_over_only_in_its_own_folder(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "demo"
    for _ in range(2):
        code, out, err = run("demo", "--out", folder)
        assert code == 0, err
        assert (
            "Spent 0.4 of 1" in out
        )  # changes of age: no edge changes two attributes, so the others do not add up
    assert (folder / "published" / "report.html").stat().st_size > 20_000
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "work.txt").write_text("keep me")
    code, _, err = run("demo", "--out", mine)
    assert code == 1 and "not an earlier demo" in err and (mine / "work.txt").exists()


BAD_SETTINGS = [
    (("people.parquet", "peopel.parquet"), 1, "peopel.parquet"),
    (("[domain.age]", "[domain.agee]"), 2, "Did you mean 'agee'?"),
    (('cdf = "age"', 'cdf = "aeg"'), 2, "releases.ages.cdf: no attribute 'aeg'; declared: age, sex. Did you mean 'age'?"),
    (('epsilon = "0.5"', 'epsilon = "abc"'), 2, "releases.ages.epsilon: not a number"),
    (('epsilon = "0.5"', "epsilon = 0"), 2, "releases.ages.epsilon: must be above 0"),
    (('epsilon = "0.5"', "epsilon = true"), 2, "releases.ages.epsilon"),
    (('epsilon = "0.5"', "epsilon = nan"), 2, "releases.ages.epsilon"),
    (('epsilon = "0.5"', 'epsilon = "5"'), 1, "Nothing was spent"),
    (("edition", "editoin"), 2, "data: no key 'editoin'"),
    (("integer = [0, 9]", "integer = [9, 0]"), 2, "domain.age.high"),
    (("integer = [0, 9]", "integers = [0, 9]"), 2, "domain.age"),
    (("within = 2", "within = -2"), 2, "secrets.age"),
    (("name = \"ages\"", "name = \"../ages\""), 2, "Release name '../ages'"),
    (("name = \"cells\"", "name = \"ages\""), 2, "two releases have this name"),
    (("[budget]", "[budget"), 2, "not valid TOML"),
    (("epsilon = 1\n", "epsilon = 1\nrho = 1\n"), 2, "budget.rho: beside epsilon"),
    (('source = "people.parquet"', 'source = "people.parquet"\nweight = "w"'), 2, "data.weight_bounds: is missing"),
    (('source = "people.parquet"', 'source = "people.parquet"\nid = "who"\nmax_rows_per_id = 2'), 1, "column 'who'"),
    (('source = "people.parquet"', 'source = "people.parquet"\nid = "who"'), 2, "data.max_rows_per_id: is missing"),
    (('source = "people.parquet"', 'source = "people.parquet"\nkeep_by = "sex"'), 2, "data.keep_by: goes with id"),
    (('source = "people.parquet"', 'source = "people.parquet"\nweight = "age"\nweight_bounds = [0, 1]'), 1, "column 'age'"),
    (('source = "people.parquet"', 'source = "people.parquet"\nweight = "age"\nweight_bounds = [0, 9]\nweight_step = 4'), 2,
     "data.weight_bounds: the high one, 9, is no multiple of weight_step, 4"),
    (("within = 2", 'within = "2 lightyears"'), 2, "policy.secrets.age"),
    (("integer = [0, 9]", 'integer = [0, 9]\ncolumn = "sex"'), 2, "domain.sex: reads column 'sex', as attribute 'age' does"),
    (("[policy.secrets]", '[policy]\npresence = "maybe"\n[policy.secrets]'), 2, 'policy.presence: "public" or "secret"'),
    (('histogram = ["age"]', 'kmeans = "age"'), 2, "query.k: required"),
    (('query = { histogram = ["age"] }', 'rows = ["age"]'), 2, "releases.cells.channel: is missing"),
    (('query = { histogram = ["age"] }', 'rows = ["age"]\nchannel = { kind = "planar-geometrik" }'), 2,
     "releases.cells.channel.kind: no kind of channel 'planar-geometrik'"),
    (('query = { histogram = ["age"] }', 'query = { histogram = ["age"] }\nkeep = ["sex"]'), 2,
     "releases.cells.keep: goes with rows"),
    (('histogram = ["age"]', 'sum = "sex"'), 2, "sex is categorical"),
    (('source = "people.parquet"', 'source = "duckdb://nowhere.duckdb"'), 1, "nowhere.duckdb"),
]  # fmt: skip


@pytest.mark.parametrize(("replaced", "code", "text"), BAD_SETTINGS, ids=[t for _, _, t in BAD_SETTINGS])
def test_wrong_settings_are_refused_with_the_key_and_the_fix(
    settings: Settings, run: Run, replaced: tuple[str, str], code: int, text: str
) -> None:
    path = settings(replaced)
    found, out, err = run("release", path)
    assert (found, out) == (code, ""), err
    assert text in err
    assert not (path.parent / "nowhere.duckdb").exists()
    ledger = path.parent / "people.ledger"
    assert not ledger.exists() or Ledger.read(ledger).spent == 0
    assert not list((path.parent / "published").glob("*")) if (path.parent / "published").exists() else True


def test_missing_settings_file(tmp_path: Path, run: Run) -> None:
    code, _, err = run("plan", tmp_path / "nothing.toml")
    assert code == 2 and "nothing.toml" in err


BAD_ROWS = {
    "wrong type": {"age": [True, False], "sex": ["f", "m"]},
    "all nulls": {"age": [None, None], "sex": ["f", "m"]},
    "one null": {"age": [1, None], "sex": ["f", "m"]},
    "undeclared code": {"age": [1, 2], "sex": ["f", "SECRET-CODE"]},
    "missing column": {"age": [1, 2]},
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_wrong_data_are_refused_before_anything_is_spent(settings: Settings, run: Run, case: str) -> None:
    path = settings(rows=BAD_ROWS[case])
    code, _, err = run("release", path)
    assert code == 1
    assert ("age" in err or "sex" in err) and "SECRET-CODE" not in err
    if (path.parent / "people.ledger").exists():
        assert '"spent": "0"' in run("ledger", "show", path.parent / "people.ledger", "--json")[1]


@pytest.mark.parametrize(
    "rows", [{"age": [], "sex": []}, {"age": [3], "sex": ["m"]}], ids=["empty", "one row"]
)
def test_empty_and_one_row_tables_are_released_like_any_other(
    settings: Settings, run: Run, rows: dict[str, list[object]]
) -> None:
    import pyarrow as pa

    path = settings(rows=rows)
    if not rows["age"]:
        empty = pa.table({"age": pa.array([], pa.int64()), "sex": pa.array([], pa.string())})
        pq.write_table(empty, path.parent / "people.parquet")
    code, _, err = run("release", path)
    assert code == 0, err
    assert pq.read_table(path.parent / "published" / "ages.parquet").num_rows == 20


def test_ledger_of_another_table(settings: Settings, run: Run) -> None:
    path = settings()
    assert run("release", path)[0] == 0
    path.write_text(path.read_text().replace('name = "people"', 'name = "others"'))
    code, _, err = run("release", path, "--again")
    assert code == 1 and "people" in err and "others" in err


def test_another_policy_on_the_same_ledger(settings: Settings, run: Run) -> None:
    path = settings(("0.5", "0.1"))
    assert run("release", path, "--only", "ages")[0] == 0
    path.write_text(path.read_text().replace("within = 2", "within = 3"))
    assert "does not hold this policy yet" in run("plan", path)[1]
    assert run("release", path, "--only", "cells")[0] == 0
    shown = run("ledger", "show", path.parent / "people.ledger")[1]
    assert shown.count("in force since row") == 2 and "put in force" in shown
    told = json.loads(run("ledger", "show", path.parent / "people.ledger", "--json")[1])
    assert [each["loss"] for each in told["policies"]] == [
        {"age": told["policies"][0]["largest"]},
        {"age": told["spent"]},
    ]
    path.write_text(path.read_text().replace("within = 3", "within = 9"))
    assert "it does NOT fit" in run("plan", path)[1]
    code, _, err = run("release", path, "--again", "--out", path.parent / "elsewhere")
    assert code == 1 and "under policy" in err and "Nothing was spent" in err


def test_output_folder_that_cannot_be_made(settings: Settings, run: Run) -> None:
    path = settings()
    (path.parent / "published").write_text("a file is in the way")
    code, _, err = run("release", path)
    assert code == 1 and "Nothing was spent" in err
    assert not (path.parent / "people.ledger").exists()


def test_write_failing_half_way_leaves_nothing_half_written(settings: Settings, run: Run) -> None:
    """A limit on file sizes that the check beforehand passes and the report does not."""
    path = settings()
    script = textwrap.dedent(
        f"""
        import resource, signal, sys
        import tetraodon.publish as publish
        from tetraodon.cli import main
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        staging = publish.manifest_of
        def late(*told):
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            return staging(*told)
        publish.manifest_of = late
        main(["release", {str(path)!r}])
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "nothing was published" in done.stderr and "charged" in done.stderr
    assert list((path.parent / "published").iterdir()) == []
    code, out, _ = run("ledger", "verify", path.parent / "people.ledger")
    assert code == 0 and "charged, never published" in out


def test_a_disk_that_is_too_small_is_noticed_before_anything_is_spent(settings: Settings) -> None:
    path = settings()
    script = textwrap.dedent(
        f"""
        import resource, signal
        from tetraodon.cli import main
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        main(["release", {str(path)!r}])
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Nothing was spent" in done.stderr
    assert not (path.parent / "people.ledger").exists()


def test_json_of_plan_and_release(settings: Settings, run: Run) -> None:
    path = settings()
    told = json.loads(run("plan", path, "--json")[1])
    assert told["fits"] is True and told["cost"] == "0.75"
    assert {row["name"].split(",")[0] for row in told["releases"][0]["mechanisms"]} >= {
        "identity",
        "ordered",
        "hierarchical",
    }
    manifest = json.loads(run("release", path, "--json")[1])
    assert manifest["releases"][0]["guarantee"] == "proved"
