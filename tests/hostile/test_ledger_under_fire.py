"""C20, under fire: many processes at once, releases killed at every statement, and every way in which a disk, a clock or a copy fails."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import database
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from together import PRICE, charge, opened

from tetraodon import chain, publish, staged, verification
from tetraodon.entries import Entry
from tetraodon.errors import LedgerError
from tetraodon.files import sha256
from tetraodon.ledger import Ledger, verify

TESTS = Path(__file__).parent.parent
posix = pytest.mark.skipif(os.name != "posix", reason="needs processes and permissions of Unix")


def python(script: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=TESTS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# Many at once


@posix
@pytest.mark.parametrize("charges", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_eight_processes_at_once_spend_exactly_what_they_were_granted(
    tmp_path: Path, kind: str, charges: int
) -> None:
    where = database.new_ledger() if kind == "postgres" else str(tmp_path / "tax.ledger")
    asked = 8 * charges
    total = PRICE * (asked - 20)  # the last twenty do not fit
    granted = python("together.py", where, total, 8, charges).split()
    assert sum(int(each) for each in granted) == asked - 20, granted
    found, ledger = verify(where), Ledger.read(where)
    assert found.ok and found.rows == 1 + asked - 20
    assert ledger.spent == ledger.total == total and ledger.remaining == 0
    assert len({entry.charge.name for entry in ledger.entries if entry.charge}) == asked - 20


# Killed

SETTINGS = """
[data]
name = "people"
source = "people.parquet"
edition = "2025"
[domain.age]
integer = [0, 9]
[domain.sex]
categorical = ["f", "m"]
[policy.secrets]
age = { within = 2 }
[budget]
epsilon = 8
ledger = "LEDGER"
[[release]]
name = "ages"
epsilon = "0.5"
query = { cdf = "age", by = ["sex"] }
present = { format = ["parquet", "csv"] }
[[release]]
name = "moved"
rows = ["age"]
keep = ["sex"]
epsilon = "0.5"
[release.channel]
kind = "exponential"
"""
FORMATS = ("parquet", "csv")
MOVED = (*FORMATS, "channel.npz")


def job(folder: Path, ledger: str) -> Path:
    folder.mkdir()
    (folder / "release.toml").write_text(SETTINGS.replace("LEDGER", ledger))
    rows = {"age": [1, 2, 2, 7, 9, 4], "sex": ["f", "m", "m", "f", "f", "m"]}
    pq.write_table(pa.table(rows), folder / "people.parquet")
    return folder


def check_sound(folder: Path, where: str) -> None:
    """After a kill: no file or manifest without its charge, no half file, and what was charged for nothing is named."""
    published = folder / "published"
    out = [p for p in published.iterdir() if not p.name.startswith(".")] if published.exists() else []
    if not Ledger.exists(where):
        assert out == []
        return
    found, ledger = verify(where), Ledger.read(where)
    assert found.ok, found.problems
    charges = {entry.seq: entry.charge for entry in ledger.entries if entry.charge}
    assert ledger.spent == sum((c.loss.amount for c in charges.values()), Fraction(0))
    done = {entry.body["charge"] for entry in ledger.entries if entry.kind == "published"}
    named = {
        int(m.group(1))
        for w in found.warnings
        if (m := re.match(r"row (\d+): .*: charged, never published", w))
    }
    assert named == set(charges) - done
    for path in out:
        if path.name not in ("manifest.json", "report.html"):
            assert path.name.partition(".")[0] in {c.name for c in charges.values()}, path
        if path.suffix == ".parquet":
            assert pq.read_table(path).num_rows > 0
        if path.suffix == ".csv":
            with path.open(newline="") as file:
                assert len({len(row) for row in csv.reader(file)}) == 1
    manifest = published / "manifest.json"
    if manifest.exists():
        assert verify(where, [manifest]).ok
        for release in json.loads(manifest.read_text())["releases"]:
            assert charges[release["ledger_row"]].name == release["name"]
            for each in release["files"].values():
                assert sha256(published / each["path"]) == each["sha256"]


@posix
@pytest.mark.parametrize(
    ("kind", "kills", "again"),
    [
        ("file", 12, 2),
        pytest.param("file", 240, 30, marks=pytest.mark.slow),
        pytest.param("postgres", 60, 20, marks=pytest.mark.slow),
    ],
)
def test_a_release_killed_anywhere_leaves_at_most_a_charge(
    tmp_path: Path, kind: str, kills: int, again: int
) -> None:
    told, runs = "people.ledger" if kind == "file" else f"{database.new_ledger()}_EACH", tmp_path / "runs"
    runs.mkdir()

    def ledger(folder: Path) -> str:
        return str(folder / told) if kind == "file" else told.replace("EACH", folder.name)

    lines = python("killed.py", "kill", job(tmp_path / "job", told), runs, kills).splitlines()
    ends = [line.split()[:2] for line in lines]
    # A statement that this run did not come by is missed.
    assert len(ends) == kills and [code for _, code in ends].count("-9") > kills * 9 // 10, lines
    lost = []
    for name, code in ends:
        folder = runs / name
        check_sound(folder, ledger(folder))
        if code == "-9" and Ledger.exists(ledger(folder)) and Ledger.read(ledger(folder)).spent:
            lost.append(folder)
    assert 0 < len(lost) < kills  # they fell on both sides of the charge
    picked = lost[:: max(1, len(lost) // again)][:again]
    before = [Ledger.read(ledger(folder)).spent for folder in picked]
    assert python("killed.py", "again", *picked).split() == ["0"] * len(picked)
    for folder, spent in zip(picked, before, strict=True):
        check_sound(folder, ledger(folder))
        assert Ledger.read(ledger(folder)).spent == spent + 1  # both once more, at ½ each
        names = {path.name for path in (folder / "published").iterdir()}
        assert names == {
            "manifest.json",
            "report.html",
            *(f"ages.{f}" for f in FORMATS),
            *(f"moved.{f}" for f in MOVED),
        }
        assert not list(folder.glob(".*"))


@posix
def test_charges_that_were_confirmed_outlive_a_kill(tmp_path: Path) -> None:
    """Killed at random moments, in SQLite's own code too: no charge that returned is lost, and nothing is left half written."""
    path = tmp_path / "tax.ledger"
    script = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from together import charge, opened
ledger = opened({str(path)!r}, "1")
for i in range(10**6):
    ledger.charge(charge(sys.argv[1] + "-" + str(i)))
    print(sys.argv[1] + "-" + str(i), flush=True)
"""
    confirmed: set[str] = set()
    for round_ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(round_)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            confirmed.add(child.stdout.readline().strip())  # it has begun
            time.sleep(0.05 + 0.037 * round_)
            child.send_signal(signal.SIGKILL)
            confirmed |= set(child.stdout.read().split())
        found = verify(path)
        assert found.ok, found.problems
        held = {entry.charge.name for entry in Ledger.read(path).entries if entry.charge}
        assert confirmed <= held and len(held) <= len(confirmed) + round_ + 1
    assert opened(str(path), "1").charge(charge("after")) == verify(path).rows
    assert os.listdir(tmp_path) == ["tax.ledger"]


@posix
def test_what_a_killed_run_left_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    mine = {"notes.txt": "mine", "ages.csv": "a,b\n", "moved.csv": "c,d\n", "orphan.csv": "e,f\n"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.csv").symlink_to("orphan.csv")

    def manifest(folder: Path, *files: tuple[str, str]) -> None:
        listed = {name: {"path": name, "sha256": digest} for name, digest in files}
        (folder / "manifest.json").write_text(json.dumps({"format": 1, "releases": [{"files": listed}]}))

    digests = {name: sha256(tmp_path / name) for name in [*mine, "link.csv"]}
    # As a run leaves it that was killed once its first files were moved: only the manifest in its own folder names them.
    left, held = tmp_path / ".writing-left", tmp_path / ".writing-file"
    (left / "more").mkdir(parents=True)
    held.write_text("mine")
    (tmp_path / ".writing-link").symlink_to(tmp_path)
    manifest(tmp_path, ("ages.csv", digests["ages.csv"]))
    manifest(
        left, ("orphan.csv", digests["orphan.csv"]), ("ages.csv", digests["ages.csv"]), ("link.csv", digests["link.csv"]),
        ("moved.csv", "0" * 64), ("../notes.txt", digests["notes.txt"]), ("absent.csv", "0" * 64),
    )  # fmt: skip
    before = {p.name for p in tmp_path.iterdir()}
    with staged.workplace(tmp_path) as first, staged.workplace(tmp_path) as second:
        assert first.is_dir() and second.is_dir()  # neither took the other for one that was left
        now = {p.name for p in tmp_path.iterdir()} - {first.name, second.name}
    # The name alone counts, never a way out of the folder; a file with another content is another file.
    assert before - now == {".writing-left", "orphan.csv", "notes.txt"}
    assert {p.name for p in tmp_path.iterdir()} == now


def test_the_manifest_is_moved_last_and_everything_is_on_disk_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, replace, sync = list[str](), os.replace, publish.sync
    monkeypatch.setattr(publish.os, "replace", lambda a, b: (done.append(f"move {b.name}"), replace(a, b)))
    monkeypatch.setattr(publish, "sync", lambda path: (done.append(f"sync {path.name}"), sync(path)))
    with publish.staging(tmp_path / "out") as stage:
        for name in ("zebra.csv", "manifest.json", "ages.csv"):
            (stage / name).write_text("x")
        assert os.listdir(tmp_path / "out") == [stage.name]
    names = ("ages.csv", "manifest.json", "zebra.csv")
    moves = ["move ages.csv", "move zebra.csv", "move manifest.json"]
    assert done == [*(f"sync {name}" for name in names), *moves, "sync out"]
    assert sorted(os.listdir(tmp_path / "out")) == sorted(names)


@posix
@pytest.mark.parametrize("locks", ["none on this system", "none on this disk"])
def test_without_locks_nothing_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: str
) -> None:
    import fcntl

    def refused(*arguments: Any) -> None:
        raise OSError(37, "No locks available")

    if locks == "none on this system":
        monkeypatch.setattr(staged, "fcntl", None)
    else:
        monkeypatch.setattr(fcntl, "flock", refused)
    (tmp_path / ".writing-left").mkdir()
    with staged.workplace(tmp_path) as place:
        assert place.is_dir() and stat.S_IMODE(place.stat().st_mode) == 0o700
    assert [p.name for p in tmp_path.iterdir()] == [".writing-left"]


@posix
def test_a_folder_that_is_taken_away_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = staged._locked, list[Path]()

    def locked(place: Path, wait: bool) -> int | None:
        seen.append(place)
        if len(seen) == 1:
            place.rmdir()
        return real(place, wait)

    monkeypatch.setattr(staged, "_locked", locked)
    with staged.workplace(tmp_path) as place:
        assert [place] == seen[1:] and place.is_dir()
    assert list(tmp_path.iterdir()) == []


# Copies, clocks, disks, permissions


def manifest(path: Path, head: str) -> Path:
    path.write_text(json.dumps({"budget": {"head": head}}))
    return path


def test_two_copies_spent_apart_are_found_by_the_manifests_of_both(tmp_path: Path) -> None:
    one, two = tmp_path / "one.ledger", tmp_path / "two.ledger"
    opened(str(one), "1/100").charge(charge("before"))
    shutil.copy(one, two)
    told = []
    for path in (one, two):
        ledger = opened(str(path), "1/100")
        for i in range(9):  # each copy spends what is left
            ledger.charge(charge(f"{path.stem}-{i}"))
        told.append(manifest(tmp_path / f"{path.stem}.json", ledger.head))
        assert ledger.remaining == 0 and verify(path, [told[-1]]).ok  # alone, each is honest
    for path, theirs in ((one, told[1]), (two, told[0])):
        assert verify(path, told).problems == (
            f"manifest {theirs}: its head is not in this ledger: an older copy, or another one.",
        )


def test_a_clock_that_goes_back_changes_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tax.ledger"
    ledger = opened(str(path), "1/500")

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)

    monkeypatch.setattr(chain, "datetime", Clock)
    ledger.charge(charge("a"))
    monkeypatch.undo()
    ledger.charge(charge("b"))
    found = verify(path)
    assert found.ok and ledger.spent == 2 * PRICE and [entry.seq for entry in ledger.entries] == [1, 2, 3]
    back = [warning for warning in found.warnings if "clock" in warning]
    assert back == [
        "row 2: dated 1999-12-31T23:59:59+00:00, before a row that it follows: a clock was set back."
    ]
    with pytest.raises(LedgerError, match=r"charged on 1999-12-31T23:59:59\+00:00, never published"):
        ledger.charge(charge("a"))  # a name is taken whenever it was


def test_times_that_cannot_be_read_and_clocks_that_differ_a_little() -> None:
    def dated(*times: str) -> list[str]:
        rows = (Entry(i, "policy", time, "", {}) for i, time in enumerate(times, 1))
        return verification._out_of_order(tuple(rows))

    assert dated("2026-01-01T12:00:00+00:00", "2026-01-01T11:56:00+00:00") == []
    assert dated("2026-01-01T12:00:00+00:00", "2026-01-01T13:57:00+02:00") == []
    assert dated("2026-01-01T12:00:00+00:00", "2026-01-01T13:30:00+02:00") != []
    assert dated("noon") == ["row 1: its time cannot be read."]
    assert len(dated("2026-01-01T12:00:00+00:00", "2025-01-01T11:56:00", "2025-06-01T00:00:00+00:00")) == 2


@posix
def test_a_ledger_and_what_stands_beside_it_belong_to_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "tax.ledger", dict[str, int]()
    before = os.umask(0)
    try:
        ledger = opened(str(path), "1")

        def look(book: chain.Book) -> tuple[chain.Row, ...]:
            new = chain.seal(
                book.rows[-1], {"kind": "raised", "unit": "epsilon", "total": "2", "reason": "x"}
            )
            return (new,)

        real = sqlite3.connect

        class Looking(sqlite3.Connection):
            def executemany(self, *arguments: Any) -> Any:
                done = super().executemany(*arguments)
                for each in tmp_path.iterdir():
                    seen[each.name] = stat.S_IMODE(each.stat().st_mode)
                return done

        monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **k, factory=Looking))
        ledger._store.extend(look)
    finally:
        os.umask(before)
    assert seen == {"tax.ledger": 0o600, "tax.ledger-journal": 0o600}
    monkeypatch.undo()
    assert not any("may be" in w for w in verify(path).warnings)
    for mode, what in ((0o604, "read"), (0o646, "written"), (0o602, "written")):
        path.chmod(mode)
        told = [w for w in verify(path).warnings if "may be" in w]
        assert told == [f"{path} may be {what} by every user of this machine; take that away (chmod o-rwx)."]
    path.chmod(0o660)  # a group that shares it was meant to
    assert not any("may be" in w for w in verify(path).warnings)


DISK = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from fractions import Fraction
from together import charge, opened
from tetraodon.errors import LedgerError
from tetraodon.ledger import Ledger, verify
path = Path(sys.argv[1], "tax.ledger")

def refusal(make, *arguments):
    try:
        make(*arguments)
    except LedgerError as error:
        return str(error).partition(".ledger: ")[2]
    raise SystemExit("it was not refused")
"""

FULL = """
ledger = opened(str(path), "1")
ledger.charge(charge("before"))
with path.with_name("fill").open("wb", buffering=0) as fill:
    try:
        while fill.write(b"x" * 4096):
            pass
    except OSError:
        pass
for i in range(40):
    said = refusal(ledger.charge, charge("x" * 9000))
    assert said == "the disk is full. Make room. Nothing was spent.", said
assert verify(path).ok and ledger.spent == Fraction(1, 1000)
said = refusal(opened, str(path.with_name("new.ledger")), "1")
assert "the disk is full" in said or "cannot be created" in said, said
path.with_name("fill").unlink()
assert os.listdir(path.parent) == ["tax.ledger"], os.listdir(path.parent)
ledger.charge(charge("after"))
assert verify(path).ok and ledger.spent == Fraction(2, 1000)
print("held")
"""

READ_ONLY = """
import subprocess
ledger = opened(str(path), "1")
ledger.charge(charge("before"))
subprocess.run(["mount", "-o", "remount,ro", str(path.parent)], check=True)
assert verify(path).ok and Ledger.read(path).spent == Fraction(1, 1000)
said = refusal(ledger.charge, charge("a"))
assert said == "it may not be written. Allow writing to the file and its folder. Nothing was spent.", said
said = refusal(opened, str(path.with_name("new.ledger")), "1")
assert said.startswith("cannot be created (Read-only file system). Allow writing"), said
assert verify(path).ok and ledger.spent == Fraction(1, 1000)
print("held")
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a disk of its own")
@pytest.mark.parametrize("script", [FULL, READ_ONLY], ids=["full", "read-only"])
def test_a_disk_that_takes_nothing_more_spends_nothing(tmp_path: Path, script: str) -> None:
    mounted = f'mount -t tmpfs -o size=160k none "{tmp_path}" && exec "$@"'
    done = subprocess.run(
        ["unshare", "-r", "-m", "sh", "-c", mounted, "sh", sys.executable, "-c", DISK + script, str(tmp_path), str(TESTS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("no disk can be mounted here")
    assert done.stdout == "held\n", done.stderr


UNPRIVILEGED = """
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
assert verify(path).ok and Ledger.read(path).spent == 0
print(refusal(Ledger.existing(path).charge, charge("a")))
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_a_user_who_may_only_read_it_spends_nothing() -> None:
    folder = Path(tempfile.mkdtemp(prefix="tetraodon-readable-"))
    try:
        path = folder / "tax.ledger"
        opened(str(path), "1")
        for mode in (0o444, 0o666):
            path.chmod(mode)
            folder.chmod(0o555)  # no journal can be made
            told = python("-c", DISK + UNPRIVILEGED, folder, TESTS)
            assert (
                told
                == "it may not be written. Allow writing to the file and its folder. Nothing was spent.\n"
            )
            folder.chmod(0o755)
    finally:
        shutil.rmtree(folder)


NO_LOCKS = ("SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_IOERR_UNLOCK", "SQLITE_PROTOCOL")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        *((code, "does not lock files") for code in NO_LOCKS),
        ("SQLITE_NEW_CODE", r"cannot be used \(SQLITE_NEW_CODE\)"),
    ],
)
def test_a_share_that_does_not_lock_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str
) -> None:
    ledger = opened(str(tmp_path / "tax.ledger"), "1")

    class Share(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> Any:
            if statement.startswith("BEGIN"):
                error = sqlite3.OperationalError("canary")
                error.sqlite_errorname = code
                raise error
            return super().execute(statement, *arguments)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **k, factory=Share))
    with pytest.raises(LedgerError, match=told) as refused:
        ledger.charge(charge("a"))
    assert "Nothing was spent" in str(refused.value) and "canary" not in str(refused.value)
    monkeypatch.undo()
    assert ledger.spent == 0


def test_rows_that_another_program_keeps_beside_the_file_are_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tax.ledger"
    ledger = opened(str(path), "1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        other.execute("SELECT count(*) FROM ledger").fetchone()
        monkeypatch.setattr(chain, "_WAIT", 0.1)
        with pytest.raises(LedgerError, match=r"other processes kept it") as refused:
            ledger.charge(charge("a"))
        assert "Nothing was spent" in str(refused.value)
    ledger.charge(charge("a"))
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert os.listdir(tmp_path) == ["tax.ledger"] and ledger.spent == PRICE
