"""Staged rows: a run that ends at any moment goes on, publishes each row once, and is charged once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import stats
from staged_runs import (
    ROWS,
    Killed,
    committed,
    ending,
    prepared,
    released,
    result,
    small_parts,
)

import tetraodon as td
from tetraodon.errors import (
    BudgetError,
    DataError,
    LedgerError,
    OutputError,
    Refused,
    SpecificationError,
    TetraodonError,
    Unsupported,
)
from tetraodon.ledger import AlreadyReleased, Ledger, verify
from tetraodon.noise import shuffled
from tetraodon.publish import write_table
from tetraodon.queries import query_from_spec
from tetraodon.rows import staged
from tetraodon.rows.folder import Folder

DOMAIN = td.Domain(age=td.Integer(0, 9), num=td.Integer(0, ROWS - 1))
POLICY = td.Policy(DOMAIN, td.AttributeWise(age=td.Full()))
SWAP = {"kind": "randomised-response"}


def asked(folder: Path, **more: Any) -> td.Rows:
    return td.Rows("age", **({"keep": ["num"], "channel": SWAP, "staging": folder / "rows.staging"} | more))


def session(folder: Path, **more: Any) -> td.Session:
    return td.Session(
        td.Table(folder / "people.parquet", DOMAIN, **more), POLICY, epsilon=4, ledger=folder / "p.ledger"
    )


def release(folder: Path, resumed: bool = False, epsilon: Any = 1, again: bool = False, **more: Any) -> Any:
    with small_parts():
        return session(folder).release(
            asked(folder, **more), epsilon=epsilon, name="rows", resume=resumed, again=again
        )


def stopped(folder: Path, at: str) -> None:
    """A release that an exception ends at a moment."""
    moments: list[str] = []

    def end(name: str) -> None:
        moments.append(name)
        if name == at:
            raise Killed

    true = Folder._commit

    def commit(self: Folder, name: str, pieces: Any) -> None:
        true(self, name, pieces)
        end(name)

    with mock.patch.object(Folder, "_commit", commit), pytest.raises(Killed):
        release(folder)
    assert moments[-1] == at


def charges(ledger: Ledger) -> list[Any]:
    return [e for e in ledger.entries if e.charge is not None and e.charge.name == "rows"]


# ---------- killed and resumed ----------


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of all moments of a run that nothing ends."""
    settings = prepared(tmp_path_factory.mktemp("whole"))
    with ending(0, lambda: None) as found:
        released(settings)
    result(settings)
    return found


def killed(folder: Path, at: Iterable[int]) -> list[dict[str, Any]]:
    """Processes killed at these moments, each followed by one that resumes."""
    script = Path(__file__).parent / "staged_runs.py"
    run = [sys.executable, str(script), str(folder), *map(str, at)]
    out = subprocess.run(run, check=True, capture_output=True, text=True)
    return [json.loads(line) | {"said": out.stderr} for line in out.stdout.splitlines()]


def check(case: Path, told: dict[str, Any], name: str) -> None:
    """Each row once, one charge, committed parts as they were, nothing left over, and a ledger that agrees."""
    assert told["first"] == signal.SIGKILL and told["then"] == 0, (name, told["said"])
    drawn, ledger = result(case / "release.toml")
    assert all(drawn[number] == output for number, output in told["held"]), name
    assert len(charges(ledger)) == 1 and ledger.spent == Fraction(3, 2), name
    assert not (case / "rows.staging").exists(), name
    left = [each.name for path in (case / "published").glob(".writing-*") for each in path.iterdir()]
    assert not [each for each in left if each.startswith("rows.")], (name, left)
    csv = pa.csv.read_csv(case / "published" / "rows.csv")
    assert csv.equals(pq.read_table(case / "published" / "rows.parquet").cast(csv.schema)), name
    manifest = case / "published" / "manifest.json"
    assert (case / "published" / "report.html").exists(), name
    assert verify(case / "people.ledger", [manifest]).problems == (), name


# One of every kind; all of them in the slow tier.
FAST = (
    "before moving state.json", "after charging", "before moving part-000001.rows", "after moving bucket-000001.rows",
    "after writing rows.parquet", "after moving rows.csv", "after recording", "before deleting",
)  # fmt: skip


def test_a_run_that_is_killed_anywhere_publishes_each_row_once_with_one_charge(
    tmp_path: Path, moments: list[str]
) -> None:
    """SIGKILL, no handler and no finally: only what was committed is there."""
    at = {len(moments) - moments[::-1].index(name): name for name in FAST}  # the last of that name
    told = killed(tmp_path, at)
    assert [each["at"] for each in told] == list(at) and len(at) == len(FAST)
    for each in told:
        check(tmp_path / str(each["at"]), each, at[each["at"]])
    parts = {at[each["at"]]: len(each["held"]) for each in told}
    assert parts["before moving part-000001.rows"] == 64 and parts["after writing rows.parquet"] == ROWS


@pytest.mark.slow
def test_a_run_that_is_killed_at_every_moment(tmp_path: Path, moments: list[str]) -> None:
    for each in killed(tmp_path, range(1, len(moments) + 1)):
        check(tmp_path / str(each["at"]), each, moments[each["at"] - 1])


def test_runs_that_are_killed_again_and_again_go_on(tmp_path: Path) -> None:
    """Every run commits one file more than the one before it, and is ended."""
    stopped(with_rows(tmp_path), "part-000000.rows")
    for at in ("part-000001.rows", "part-000003.rows", "bucket-000000.rows", "settled.json"):
        before = committed(tmp_path / "release.toml")
        with pytest.raises(Killed), mock.patch.object(Folder, "_commit", _ending(at)):
            release(tmp_path, resumed=True)
        after = committed(tmp_path / "release.toml")
        assert before.items() <= after.items()
    release(tmp_path, resumed=True).save(tmp_path / "published")
    drawn, ledger = Counter(), Ledger.read(tmp_path / "p.ledger")
    table = pq.read_table(tmp_path / "published" / "rows.parquet")
    drawn.update(table["num"].to_pylist())
    assert drawn == Counter(range(ROWS)) and len(charges(ledger)) == 1 and ledger.spent == 1
    assert after.items() == dict(zip(table["num"].to_pylist(), table["age"].to_pylist(), strict=True)).items()


def with_rows(folder: Path) -> Path:
    prepared(folder)
    return folder


def _ending(at: str) -> Callable[..., None]:
    true = Folder._commit

    def commit(self: Folder, name: str, pieces: Any) -> None:
        true(self, name, pieces)
        if name == at:
            raise Killed

    return commit


def test_what_a_killed_run_lost_is_named_and_the_rest_goes_on(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]], moments: list[str]
) -> None:
    """Answers of the same file that were charged and not yet written end with the run; rows do not."""
    settings = prepared(tmp_path)
    with pytest.raises(Killed), ending(moments.index("after charging") + 1, _kill):
        released(settings)
    with small_parts():
        code, _, said = run("release", settings, "--resume")
    assert code == 0 and "ages: charged on" in said and "--again --only ages" in said
    _, ledger = result(settings)
    assert ledger.spent == Fraction(3, 2)
    with small_parts():
        assert run("release", settings, "--resume")[0] == 0  # nothing is left to be done
    assert Ledger.read(tmp_path / "people.ledger").head == ledger.head
    code, _, said = run("release", settings, "--again", "--only", "ages")
    assert code == 0 and Ledger.read(tmp_path / "people.ledger").spent == 2


def _kill() -> None:
    raise Killed


def test_answers_are_published_before_rows_are_drawn(moments: list[str]) -> None:
    assert moments.index("after recording") < moments.index("before moving part-000000.rows")


MANY, WIDE = 10_000_000, 4000
MANY_SETTINGS = f"""
[data]
source = "many.parquet"
[domain.age]
integer = [0, 9]
[domain.high]
integer = [0, {MANY // WIDE - 1}]
[domain.low]
integer = [0, {WIDE - 1}]
[policy.secrets]
age = "full"
[budget]
epsilon = 1
ledger = "people.ledger"
[[release]]
name = "rows"
rows = ["age"]
keep = ["high", "low"]
epsilon = 1
staging = "rows.staging"
[release.channel]
kind = "randomised-response"
"""


@pytest.mark.slow
def test_ten_million_rows_killed_at_random_moments(tmp_path: Path) -> None:
    """Each row once, one charge, the channel's law, and an order that says nothing of the table's."""
    random = np.random.default_rng()
    number = np.arange(MANY)
    ages = random.integers(0, 10, MANY, dtype=np.int8)
    columns = {
        "age": ages,
        "high": (number // WIDE).astype(np.int16),
        "low": (number % WIDE).astype(np.int16),
    }
    pq.write_table(pa.table(columns), tmp_path / "many.parquet")
    (tmp_path / "release.toml").write_text(MANY_SETTINGS)
    command = [
        sys.executable,
        "-c",
        "from tetraodon.cli import main; main()",
        "release",
        str(tmp_path / "release.toml"),
    ]
    stage = tmp_path / "rows.staging"
    kills, code = 0, -1
    while code:
        until = len(list(stage.glob("*.rows"))) + int(random.integers(1, 5)) if kills < 6 else MANY
        process = subprocess.Popen([*command, *(["--resume"] if kills else [])], stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list(stage.glob("*.rows"))) < until:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        code = process.wait()
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert kills >= 3 and not stage.exists()
    table = pq.read_table(tmp_path / "published" / "rows.parquet")
    order = table["high"].to_numpy().astype(np.int64) * WIDE + table["low"].to_numpy()
    assert np.array_equal(np.bincount(order, minlength=MANY), np.ones(MANY))
    ledger = Ledger.read(tmp_path / "people.ledger")
    assert len(charges(ledger)) == 1 and ledger.spent == 1
    assert verify(tmp_path / "people.ledger", [tmp_path / "published" / "manifest.json"]).problems == ()
    law = td.channels.randomised_response(td.Domain(age=td.Integer(0, 9)), 1).matrix
    pairs = np.bincount(ages[order].astype(np.int64) * 10 + table["age"].to_numpy(), minlength=100).reshape(
        10, 10
    )
    expected = np.bincount(ages, minlength=10)[:, None] * law
    statistic = float(((pairs - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, 90) > 1e-9
    place = np.arange(MANY) - (MANY - 1) / 2
    away = order - (MANY - 1) / 2
    bound = (
        7 * float((place**2).sum()) / MANY**0.5
    )  # seven deviations of the correlation of two random orders
    assert abs(float(place @ away)) < bound and abs(float(away[1:] @ away[:-1])) < bound
    parts = np.bincount(order[: 1 << 20] >> 20, minlength=10)  # the first bucket takes from every part alike
    expect = np.bincount(number >> 20, minlength=10) / MANY * (1 << 20)
    assert stats.chi2.sf(float(((parts - expect) ** 2 / expect).sum()), 9) > 1e-9


# ---------- what is published ----------


def test_staged_rows_are_what_others_are(tmp_path: Path) -> None:
    """The same columns and types, in files without statistics or metadata; no word of the folder anywhere."""
    folder = with_rows(tmp_path)
    made = session(folder).release(asked(folder), epsilon=1, name="rows")
    plain = session(folder).release(asked(folder, staging=None), epsilon=1, name="plain")
    assert made.is_staged and not plain.is_staged and made.total == plain.total == ROWS
    table = made.to_arrow()
    assert table.schema == plain.to_arrow().schema and table.equals(made.to_arrow())
    assert sorted(table["num"].to_pylist()) == list(range(ROWS)) != table["num"].to_pylist()
    for form in ("parquet", "csv"):
        write_table(table, folder / f"whole.{form}")
    manifest = made.save(folder / "published", ("parquet", "csv"))
    for form in ("parquet", "csv"):  # piece by piece, the same bytes as at once
        assert (folder / "published" / f"rows.{form}").read_bytes() == (folder / f"whole.{form}").read_bytes()
    assert "staging" not in manifest.read_text() and "staging" not in made.query.to_spec()
    assert query_from_spec(made.query.to_spec()) == asked(folder, staging=None)
    with pytest.raises(OutputError, match="was published"):
        made.to_arrow()
    entries = Ledger.read(folder / "p.ledger").entries
    assert [e.body["charge"] for e in entries if e.kind == "published"] == [plain.charge, made.charge]


def test_a_published_file_is_cut_by_the_number_of_rows_alone(tmp_path: Path) -> None:
    """Buckets have random sizes; row groups do not, and have no statistics."""
    folder = with_rows(tmp_path)
    with small_parts(50, 60):
        session(folder).release(asked(folder), epsilon=1, name="rows").save(folder / "published")
    stored = pq.ParquetFile(folder / "published" / "rows.parquet").metadata
    groups = [stored.row_group(i) for i in range(stored.num_row_groups)]
    assert [g.num_rows for g in groups] == [60, 60, 60, 50]
    first = pq.ParquetFile(folder / "published" / "rows.parquet").read_row_group(0)["num"].to_numpy()
    assert len(set(first // 50)) > 1 and (np.diff(first) < 0).any()  # from several parts, and shuffled
    assert all(g.column(i).statistics is None for g in groups for i in range(2))
    assert not (stored.metadata or {}).keys() - {b"ARROW:schema"}


@pytest.mark.parametrize("rows", [0, 1, 64, 65])
def test_tables_of_few_rows(tmp_path: Path, rows: int) -> None:
    prepared(tmp_path, rows)
    release(tmp_path).save(tmp_path / "published", ("parquet", "csv"))
    table = pq.read_table(tmp_path / "published" / "rows.parquet")
    assert sorted(table["num"].to_pylist()) == list(range(rows)) and table.column_names == ["age", "num"]


def test_every_order_of_rows_is_as_likely() -> None:
    """Scattered, then shuffled bucket by bucket: 24 orders of 4 rows."""
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(4800):
        parts = [staged.scattered([np.arange(start, start + 2)], 2) for start in (0, 2)]
        buckets = [[part[0][ends[b] : ends[b + 1]] for part, ends in parts] for b in (0, 1)]
        seen[tuple(int(v) for b in buckets for v in shuffled(np.concatenate(b))[0])] += 1
    assert len(seen) == 24 and stats.chisquare(list(seen.values())).pvalue > 1e-9


def test_an_order_that_is_only_scattered_is_found_out() -> None:
    """The test above can fail: without the shuffle some orders never come."""
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(500):
        [rows], _ = staged.scattered([np.arange(4)], 2)
        seen[tuple(rows.tolist())] += 1
    assert len(seen) < 24


@pytest.mark.parametrize("kind", ["csv", "arrow", "duckdb", "folder"])
def test_every_source_of_files_can_be_resumed(tmp_path: Path, kind: str) -> None:
    """With conditions and a category read by a join, whose order is that of the rows."""
    prepared(tmp_path)
    rows = pq.read_table(tmp_path / "people.parquet")
    names = [f"k{i:03d}" for i in range(100)]
    rows = rows.append_column("word", pa.array([names[i % 100] for i in range(ROWS)]))
    domain = td.Domain(age=td.Integer(0, 9), num=td.Integer(0, ROWS - 1), word=td.Categorical(names))
    source, table = stored(rows, tmp_path, kind)
    policy = td.Policy(domain, td.AttributeWise(age=td.Full()))

    def made(resumed: bool) -> Any:
        there = td.Table(source, domain, table=table, name="t", where={"word": names[:90]})
        with small_parts():
            one = td.Session(there, policy, epsilon=1, ledger=tmp_path / "k.ledger")
            return one.release(asked(tmp_path, keep=["num", "word"]), epsilon=1, name="rows", resume=resumed)

    with pytest.raises(Killed), mock.patch.object(Folder, "_commit", _ending("part-000001.rows")):
        made(False)
    made(True).save(tmp_path / "published")
    told = pq.read_table(tmp_path / "published" / "rows.parquet")
    pairs = sorted(zip(told["num"].to_pylist(), told["word"].to_pylist(), strict=True))
    assert pairs == [(i, names[i % 100]) for i in range(ROWS) if i % 100 < 90]


def stored(rows: pa.Table, folder: Path, kind: str) -> tuple[Any, str | None]:
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return f"duckdb://{folder / 'people.duckdb'}", "people"
    if kind == "folder":
        (folder / "people").mkdir()
        for i in range(3):
            pq.write_table(rows.slice(i * 80, 80), folder / "people" / f"{i}.parquet")
        return folder / "people", None
    path = folder / f"people.{kind}"
    if kind == "csv":
        pa.csv.write_csv(rows, path)
    else:
        with pa.ipc.new_file(path, rows.schema) as file:
            file.write_table(rows, max_chunksize=33)
    return path, None


# ---------- what is refused ----------


def test_a_changed_table_is_refused_for_a_person_would_be_drawn_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter-example: row 0 was drawn in the first part; in the changed table it stands last, in a part that was not."""
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    rows = pq.read_table(folder / "people.parquet")
    moved = pa.concat_tables([rows.slice(ROWS - 1), rows.slice(1, ROWS - 2), rows.slice(0, 1)])
    pq.write_table(moved, folder / "people.parquet")
    with pytest.raises(DataError, match=r"people\.parquet is not the file .* lose twice"):
        release(folder, resumed=True)
    # A reader that gives the same files in another order is found out as well.
    monkeypatch.setattr("tetraodon.rows.resumed.check_files", lambda *_: None)
    monkeypatch.setattr("tetraodon.rows.staged.check_files", lambda *_: None)
    with pytest.raises(DataError, match=r"could draw a person twice .* charges nothing more"):
        release(folder, resumed=True)
    monkeypatch.setattr("tetraodon.rows.staged._same", lambda *_: None)
    release(folder, resumed=True).save(folder / "published")
    published = Counter(pq.read_table(folder / "published" / "rows.parquet")["num"].to_pylist())
    assert published[0] == 2 and published[ROWS - 1] == 0  # what the two checks are for


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    true = Folder.put

    def put(self: Folder, name: str, *args: Any) -> None:
        true(self, name, *args)
        with (folder / "people.parquet").open("ab") as file:
            file.write(b"more")

    with mock.patch.object(Folder, "put", put), pytest.raises(DataError, match="is not the file"):
        release(folder)


def test_two_processes_cannot_resume_one_folder(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    held = Folder.found(folder / "rows.staging")
    assert held is not None
    script = (
        "import sys; from pathlib import Path; from tetraodon.rows.folder import Folder\n"
        "from tetraodon.errors import Refused\n"
        "try: Folder.found(Path(sys.argv[1]))\nexcept Refused as error: print(error)"
    )
    run = [sys.executable, "-c", script, str(folder / "rows.staging")]
    assert (
        "another process, or a release"
        in subprocess.run(run, check=True, capture_output=True, text=True).stdout
    )
    with pytest.raises(Refused, match="another process"):
        release(folder, resumed=True)
    held.close()
    release(folder, resumed=True).save(folder / "published")


def test_nobody_can_take_up_a_folder_that_is_being_deleted(tmp_path: Path) -> None:
    """The state is gone before the lock is: without a lock another process would go on with the state alone, and draw anew."""
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    held = Folder.found(folder / "rows.staging")
    assert held is not None
    gone: list[str] = []
    true = Path.unlink

    def unlink(path: Path) -> None:
        gone.append(path.name)
        true(path)

    with mock.patch.object(Path, "unlink", unlink):
        held.remove()
    assert gone[-2:] == ["state.json", "lock"] and "part-000001.rows" in gone
    assert not (folder / "rows.staging").exists()


def test_two_copies_of_one_folder_are_not_both_published(tmp_path: Path) -> None:
    """Each draws what was left for itself: whose row is in both publications would be drawn twice for one charge."""
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    copy = tmp_path / "copy.staging"
    shutil.copytree(folder / "rows.staging", copy)
    copy.chmod(0o700)
    one, two = release(folder, resumed=True), release(folder, resumed=True, staging=copy)
    drawn = [dict(zip(*made.to_arrow().to_pydict().values(), strict=True)) for made in (one, two)]
    assert drawn[0] != drawn[1]
    one.save(folder / "published")
    with pytest.raises(AlreadyReleased, match="published from another copy of its folder"):
        two.save(folder / "other")
    assert list((folder / "other").iterdir()) == [] and not (folder / "rows.staging").exists()
    two.held.folder.close()
    with pytest.raises(AlreadyReleased, match="nothing to resume"):
        release(folder, resumed=True, staging=copy)
    assert not copy.exists() and len(charges(Ledger.read(folder / "p.ledger"))) == 1


def test_without_resume_an_unfinished_release_is_refused(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    with pytest.raises(
        AlreadyReleased,
        match=r"--resume \(resume=True\) goes on with what was drawn, --again \(again=True\) draws",
    ):
        release(folder)
    with pytest.raises(Refused, match=r"--resume \(resume=True\) goes on .* remove the folder first"):
        release(folder, again=True)
    assert Ledger.read(folder / "p.ledger").spent == 1
    shutil.rmtree(folder / "rows.staging")
    with pytest.raises(Refused, match=r"is not there\. .* only --again"):
        release(folder, resumed=True)
    release(folder, again=True).save(folder / "published")
    assert Ledger.read(folder / "p.ledger").spent == 2
    with pytest.raises(AlreadyReleased, match="nothing to resume"):
        release(folder, resumed=True)
    with pytest.raises(SpecificationError, match="one of them"):
        release(folder, resumed=True, again=True)
    code, _, said = run("release", folder / "release.toml", "--resume", "--again")
    assert code == 2 and "use one of them" in said


def test_a_folder_of_another_release_or_ledger_is_refused(tmp_path: Path) -> None:
    one, two = with_rows(tmp_path / "one"), with_rows(tmp_path / "two")
    stopped(one, "part-000001.rows")
    stopped(two, "part-000001.rows")
    shutil.rmtree(two / "rows.staging")
    shutil.copytree(one / "rows.staging", two / "rows.staging")
    with pytest.raises(Refused, match="the folder of another release"):
        release(two, resumed=True)
    (two / "p.ledger").unlink()
    with pytest.raises(Refused, match="charged in another ledger"):
        release(two, resumed=True)
    with pytest.raises(Refused, match="charged in another ledger"):
        release(two)
    part = (one / "rows.staging" / "part-000000.rows").read_bytes()
    (one / "rows.staging" / "part-000001.rows").write_bytes(part)
    with pytest.raises(DataError, match=r"part-000001\.rows is not what was written there"):
        release(one, resumed=True)


@pytest.mark.parametrize(
    "name", ["part-000001.rows", "bucket-000001.rows", "state.json", "settled.json", "channel-1.npz"]
)
@pytest.mark.parametrize("how", ["cut", "edited", "gone"])
def test_damaged_files_are_found_out_or_do_no_harm(tmp_path: Path, name: str, how: str) -> None:
    folder = with_rows(tmp_path)
    stopped(folder, "settled.json" if name in ("bucket-000001.rows", "settled.json") else "part-000002.rows")
    path = folder / "rows.staging" / name
    told = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    else:
        told[-9] ^= 1
        path.write_bytes(told[:-5] if how == "cut" else told)
    try:
        release(folder, resumed=True).save(folder / "published")
    except TetraodonError as error:
        assert "Traceback" not in str(error)
        assert len(charges(Ledger.read(folder / "p.ledger"))) == 1
        assert not (folder / "published" / "rows.parquet").exists()
        return
    # A part that is gone is one that nobody saw, and a channel is only needed where it cannot be made again.
    assert (name, how) in [
        ("part-000001.rows", "gone"), ("settled.json", "gone"), ("channel-1.npz", "cut"), ("channel-1.npz", "edited"),
        ("channel-1.npz", "gone"),
    ]  # fmt: skip
    assert sorted(pq.read_table(folder / "published" / "rows.parquet")["num"].to_pylist()) == list(
        range(ROWS)
    )


def test_a_file_that_may_not_be_read_is_not_called_lost(tmp_path: Path) -> None:
    """Whoever believed that would charge afresh."""
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    denied = PermissionError(13, "Permission denied")
    for name, method in (("state.json", "read_bytes"), ("part-000001.rows", "open")):
        with (
            mock.patch.object(Path, method, side_effect=denied),
            pytest.raises(
                DataError, match=rf"{name} cannot be read \(Permission denied\); allow reading it\.$"
            ),
        ):
            told = Folder(folder / "rows.staging", os.open(os.devnull, os.O_RDONLY))
            told.read(name) if name == "state.json" else told.get(name)
    release(folder, resumed=True)


def test_a_resumed_request_must_be_the_one_that_was_charged(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    stopped(folder, "part-000001.rows")
    with pytest.raises(LedgerError, match="another loss than what was charged"):
        release(folder, resumed=True, epsilon=2)
    with pytest.raises(LedgerError, match="another query"):
        release(folder, resumed=True, keep=[])
    with pytest.raises(Refused, match="other rows of the files"), small_parts():
        session(folder, where={"num": (0, 50)}).release(asked(folder), epsilon=1, name="rows", resume=True)
    other = td.Table(folder / "people.parquet", DOMAIN, where={"num": (0, 50)})
    assert other.reading != session(folder).table.reading
    release(folder, resumed=True)


def test_a_channel_from_a_file_must_be_the_same_and_one_that_is_made_is_taken_as_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_rows(tmp_path)
    domain = DOMAIN.select("age")
    for name, epsilon in (("a", 1), ("b", "1/2")):
        td.channels.randomised_response(domain, epsilon).save(folder / f"{name}.npz")
    shutil.copy(folder / "a.npz", folder / "c.npz")
    told = {"kind": "file", "path": str(folder / "c.npz")}
    with pytest.raises(Killed), mock.patch.object(Folder, "_commit", _ending("part-000001.rows")):
        release(folder, channel=told)
    shutil.copy(folder / "b.npz", folder / "c.npz")
    with pytest.raises(Refused, match="another channel of age"):
        release(folder, resumed=True, channel=told)
    shutil.copy(folder / "a.npz", folder / "c.npz")
    release(folder, resumed=True, channel=told).save(folder / "published")
    shutil.rmtree(folder / "published")
    # A library that makes another channel for the same words: half the epsilon, so that it could be told.
    (folder / "p.ledger").unlink()
    stopped(folder, "part-000001.rows")
    weaker = td.Channel.load(folder / "b.npz")
    monkeypatch.setattr("tetraodon.channels.randomised_response", lambda *_, **__: weaker)
    made = release(folder, resumed=True)
    assert made.channels[0].matrix.tolist() == td.Channel.load(folder / "a.npz").matrix.tolist()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"permanent": {"id": "num", "epoch": "1", "store": "s"}}, "goes without permanent"),
        (
            {"channel": {"kind": "least-leaking", "secret": "num", "distortion": 1}},
            "fitted on all rows at once",
        ),
        (
            {"channel": {"kind": "randomised-response", "remap": {"prior": {"answer": "ages"}}}},
            "prior from an answer",
        ),
        ({"staging": ""}, "the path of a folder"),
        ({"staging": 3}, "the path of a folder"),
    ],
)
def test_what_cannot_be_staged_is_refused_by_name(tmp_path: Path, more: dict[str, Any], text: str) -> None:
    folder = with_rows(tmp_path)
    with pytest.raises(SpecificationError, match=text):
        one = session(folder)
        measured = "fitted" in text
        one.release(
            asked(folder, **more), name="rows", **({"guarantee": "measured"} if measured else {"epsilon": 1})
        )
    assert not (folder / "rows.staging").exists() and not charges(Ledger.read(folder / "p.ledger"))


def test_tables_without_files_and_accounts_in_memory_are_refused(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    rows = pq.read_table(folder / "people.parquet")
    frame = td.Session(td.Table(rows, DOMAIN), POLICY, epsilon=1, ledger=folder / "f.ledger")
    with pytest.raises(Unsupported, match="staging needs a table in files"):
        frame.release(asked(folder), epsilon=1, name="rows")
    memory = td.Session(td.Table(folder / "people.parquet", DOMAIN), POLICY, epsilon=1)
    with pytest.raises(SpecificationError, match="a durable ledger"):
        memory.release(asked(folder), epsilon=1, name="rows")
    assert not (folder / "rows.staging").exists() and frame.ledger.spent == memory.ledger.spent == 0


def test_folders_that_are_not_fit_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    stage = folder / "rows.staging"
    stage.mkdir()
    (stage / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"):
        release(folder)
    (stage / "mine.txt").unlink()
    stage.chmod(0o755)
    with pytest.raises(Refused, match="chmod 700"):
        release(folder)
    stage.chmod(0o700)
    with pytest.raises(BudgetError, match="asks for epsilon 99"):
        release(folder, epsilon=99)
    (folder / "loop").symlink_to(folder / "loop")
    for odd in ("x" * 300, "loop"):
        with pytest.raises(OutputError, match=r"cannot be looked at .* Nothing was spent"):
            release(folder, staging=folder / odd)
    assert Ledger.read(folder / "p.ledger").spent == 0
    made = release(folder)
    modes = {oct(path.stat().st_mode & 0o777) for path in stage.iterdir()}
    assert modes == {"0o600"} and stage.stat().st_mode & 0o777 == 0o700
    with pytest.raises(OutputError, match="lies in a folder that is published"):
        made.save(folder)
    made.save(folder / "published")


def test_a_full_disk_says_what_becomes_of_the_rows(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    true = Folder._commit

    def commit(self: Folder, name: str, pieces: Any) -> None:
        if name == "part-000002.rows":
            raise OutputError(
                "staging rows.staging: cannot be written (No space left on device); free some space."
            )
        true(self, name, pieces)

    with (
        mock.patch.object(Folder, "_commit", commit),
        pytest.raises(OutputError, match=r"No space .* --resume"),
    ):
        release(folder)
    release(folder, resumed=True).save(folder / "published")
    assert Ledger.read(folder / "p.ledger").spent == 1


def test_a_value_that_may_not_be_is_refused_before_the_charge_and_leaves_no_folder(tmp_path: Path) -> None:
    folder = with_rows(tmp_path)
    rows = pq.read_table(folder / "people.parquet")
    ages = pa.array([None, *rows["age"].to_pylist()[1:]], pa.int64())
    pq.write_table(rows.set_column(0, "age", ages), folder / "people.parquet")
    with pytest.raises(DataError, match="column 'age' holds a value"):
        release(folder)
    assert Ledger.read(folder / "p.ledger").spent == 0 and not (folder / "rows.staging").exists()


def test_the_command_line_resumes_with_a_ledger_and_staged_rows_alone(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    settings = prepared(tmp_path)
    text = settings.read_text()
    settings.write_text(text.replace('ledger = "people.ledger"', ""))
    assert run("release", settings, "--resume")[::2] == (2, run("release", settings, "--resume")[2])
    assert "needs budget.ledger" in run("release", settings, "--resume")[2]
    settings.write_text(text.replace('staging = "rows.staging"', ""))
    assert "no release here has staging" in run("release", settings, "--resume")[2]
    settings.write_text(text.replace('staging = "rows.staging"', 'staging = "published/rows.staging"'))
    code, _, said = run("release", settings)
    assert (
        code == 1
        and "lies in a folder that is published" in said
        and not (tmp_path / "people.ledger").exists()
    )
    settings.write_text(text.replace("rows = [", 'query = { histogram = ["age"] }\n#'))
    code, _, said = run("release", settings)
    assert code == 2 and "goes with rows" in said
