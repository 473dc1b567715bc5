"""``tetraodon attack``: the table, its sentences, JSON, exit codes, and nothing of the rows in any text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

Run = Callable[..., tuple[int, str, str]]
CANARY = "canary-7391"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 66, 150)
    street = [f"{CANARY} {i}" for i in range(150)]
    pq.write_table(pa.table({"who": street, "age": age, "near": age * 2.0}), tmp_path / "original.parquet")
    groups = [f"{a // 12 * 12}–{a // 12 * 12 + 11}" for a in age]
    near = rng.permutation(age * 2.0)
    pa.csv.write_csv(pa.table({"age": groups, "near": near, "who": street}), tmp_path / "released.csv")
    return tmp_path / "original.parquet", tmp_path / "released.csv"


def test_a_table_and_a_sentence_for_each(files: tuple[Path, Path], run: Run) -> None:
    before = {p: p.read_bytes() for p in files[0].parent.iterdir()}
    code, out, err = run(
        "attack",
        *files,
        "--secret",
        "age",
        "--id",
        "who",
        "--model",
        "knn",
        "--model",
        "group-median",
        "--repeats",
        2,
    )
    assert code == 0 and not err
    lines = out.splitlines()
    assert lines[0].startswith(
        "Scenario II, mean absolute error of age; less is a better attack. 150 people, 75 known"
    )
    assert lines[1].split() == ["attacker", "baseline", "success", "99", "%", "interval", "ceiling"]
    assert lines[2].startswith("Nearest neighbours") and lines[3].startswith("Group's typical value")
    assert out.count("He is off by") == 2 and "they are private" in out and "Baseline:" in out
    assert CANARY not in out
    assert {p: p.read_bytes() for p in files[0].parent.iterdir()} == before  # nothing is written


def test_json(files: tuple[Path, Path], run: Run) -> None:
    code, out, _ = run(
        "attack", *files, "--secret", "age", "--id", "who", "--model", "logistic", "--scenario", "I", "--features", "near",
        "--folds", 3, "--repeats", 1, "--json",
    )  # fmt: skip
    told = json.loads(out)["attacks"][0]
    assert code == 0 and told["features"] == ["near", "age"] and (told["folds"], told["scenario"]) == (3, "I")
    assert told["interval"][0] < told["success"] and CANARY not in out
    assert (
        "paired by their order"
        not in run("attack", *files, "--secret", "age", "--id", "who", "--model", "group-median")[1]
    )
    by_order = run(
        "attack",
        *files,
        "--secret",
        "age",
        "--model",
        "group-median",
        "--features",
        "near",
        "--most-people",
        100,
    )
    assert "paired by their order" in by_order[1] and " 100 people, 50 known" in by_order[1]
    both = run(
        "attack", *files, "--secret", "age", "--model", "group-median", "--features", "near,who", "--json"
    )
    assert json.loads(both[1])["attacks"][0]["features"] == ["near", "who", "age"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--secret", "agee"], 1, "original.parquet: no column 'agee'"),
        (["--secret", "who"], 2, ""),
        (["--secret", "age", "--model", "svm"], 2, "no model 'svm'"),
        (["--secret", "age", "--scenario", "3"], 2, "attack.scenario"),
        (["--secret", "age", "--id", "nobody"], 1, "no column 'nobody'"),
        (["--secret", "age", "--kind", "word"], 2, "attack.kind"),
        (["--secret", "age", "--folds", "1"], 2, "attack.folds"),
        (["--secret", "age", "--most-people", "3"], 2, "attack.most_people"),
        (["--secret", "age", "--features", "age"], 2, "attack.features"),
        ([], 2, "--secret"),
    ],
)
def test_refusals(files: tuple[Path, Path], run: Run, arguments: list[str], code: int, says: str) -> None:
    if arguments == ["--secret", "who"]:
        arguments = [*arguments, "--id", "who"]
    got, out, err = run("attack", *files, *arguments)
    assert got == code and not out and says in err
    assert "Traceback" not in err and CANARY not in err


def test_duplicated_ids_name_no_value(files: tuple[Path, Path], run: Run, tmp_path: Path) -> None:
    table = pq.read_table(files[0])
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), tmp_path / "twice.parquet")
    code, _, err = run("attack", tmp_path / "twice.parquet", files[1], "--secret", "age", "--id", "who")
    assert code == 1 and "twice.parquet: a value of the id column 'who' occurs more than once" in err
    assert CANARY not in err
    code, _, err = run("attack", tmp_path / "twice.parquet", files[1], "--secret", "age")
    assert code == 1 and "not equally many rows" in err
