"""C20: 0.1 ten times against 1.0; concurrent spenders; a crash after the charge; an old copy; an edited file."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import database
import pytest

from tetraodon.errors import BudgetError, LedgerError
from tetraodon.exact import exact
from tetraodon.ledger import Charge, Ledger, verify
from tetraodon.loss import Loss


def opened(path: Path | str, total: str = "1") -> Ledger:
    return Ledger.open(
        path,
        data="tax",
        domain_hash="d",
        policy={"secrets": "full"},
        policy_hash="p",
        total=Loss("epsilon", Fraction(total)),
    )


def charge(name: str, epsilon: Fraction) -> Charge:
    return Charge(name, "2025", Loss("epsilon", epsilon), {"cdf": "income"}, "ordered", "", {}, "p")


def spend(path: str, worker: int) -> int:
    """25 charges of 1/100, the ledger opened (by the first: made) here; how many were granted."""
    ledger, granted = opened(path, "1/2"), 0
    for i in range(25):
        try:
            ledger.charge(charge(f"{worker}-{i}", Fraction(1, 100)))
            granted += 1
        except BudgetError:
            pass
    return granted


def test_a_tenth_fits_ten_times_and_not_eleven(tmp_path: Path) -> None:
    ledger = opened(tmp_path / "tax.ledger")
    for i in range(10):
        ledger.charge(charge(str(i), exact(0.1, "epsilon")))
    assert ledger.remaining == 0
    with pytest.raises(BudgetError, match=r"asks for epsilon 0\.1; 0 of 1 is left"):
        ledger.charge(charge("10", exact(0.1, "epsilon")))
    with pytest.raises(BudgetError):
        ledger.charge(charge("dust", Fraction(1, 10**300)))
    assert ledger.spent == 1


def test_four_processes_cannot_overspend(tmp_path: Path) -> None:
    path = str(tmp_path / "tax.ledger")
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        granted = list(pool.map(spend, [path] * 4, range(4)))
    assert sum(granted) == 50
    found, ledger = verify(path), Ledger.read(path)
    assert found.ok and found.rows == 51 and ledger.spent == ledger.total == Fraction(1, 2)
    assert [entry.kind for entry in ledger.entries].count("created") == 1
    assert os.listdir(tmp_path) == ["tax.ledger"]


@pytest.mark.parametrize("kind", ["file", "memory", "postgres"])
def test_threads_sharing_one_ledger_cannot_overspend(tmp_path: Path, kind: str) -> None:
    ledger = (
        opened(tmp_path / "tax.ledger" if kind == "file" else database.new_ledger(), "1/10")
        if kind != "memory"
        else Ledger.in_memory(
            data="tax", domain_hash="d", policy={}, policy_hash="p", total=Loss("epsilon", Fraction(1, 10))
        )
    )
    together = threading.Barrier(5)

    def run(worker: int) -> int:
        together.wait()
        granted = 0
        for i in range(4):
            try:
                ledger.charge(charge(f"{worker}-{i}", Fraction(1, 100)))
                granted += 1
            except BudgetError:
                pass
        return granted

    with ThreadPoolExecutor(5) as pool:
        assert sum(pool.map(run, range(5))) == 10
    assert ledger.remaining == 0 and len(ledger.entries) == 11


HERE = Path(__file__).parent
SCRIPT = """
import os, signal, sys
from fractions import Fraction
from test_c20_ledger import charge, opened
ledger = opened(sys.argv[1])
"""


def run(path: Path, body: str) -> int:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + body, str(path)],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        check=False,
    ).returncode


def test_a_crash_between_charge_and_publication_stays_charged_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tax.ledger"
    for how, code in (("os._exit(9)", 9), ("os.kill(os.getpid(), signal.SIGKILL)", -9)):
        assert run(path, f"ledger.charge(charge({how!r}, Fraction(1, 4)))\n{how}\n") == code
    ledger = opened(path)
    assert ledger.spent == Fraction(1, 2)
    seq = ledger.charge(charge("whole", Fraction(1, 4)))
    ledger.published(seq, {"values": "0" * 64})
    found = verify(path)
    assert found.ok and len(found.warnings) == 2
    assert all("charged, never published" in each for each in found.warnings)
    assert "'os._exit(9)'" in found.warnings[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_parent_and_forked_child_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "tax.ledger"
    body = """
ledger.charge(charge("before", Fraction(1, 10)))
child = os.fork()
for i in range(5):
    ledger.charge(charge(f"{bool(child)}-{i}", Fraction(1, 100)))
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
    assert run(path, body) == 0
    assert opened(path).spent == Fraction(2, 10) and verify(path).ok


def test_an_old_copy_put_back_is_found_against_a_manifest(tmp_path: Path) -> None:
    path, manifest = tmp_path / "tax.ledger", tmp_path / "manifest.json"
    ledger = opened(path)
    old = path.read_bytes()
    ledger.charge(charge("a", Fraction(1)))
    manifest.write_text(json.dumps({"budget": {"head": ledger.head}}))
    assert verify(path, [manifest]).ok
    path.write_bytes(old)
    assert not verify(path, [manifest]).ok
    path.unlink()
    opened(path)  # deleted and made anew, word for word
    assert not verify(path, [manifest]).ok


def test_an_edited_ledger_grants_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tax.ledger"
    ledger = opened(path)
    ledger.charge(charge("a", Fraction(1)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            """UPDATE ledger SET body = replace(body, '"amount":"1"', '"amount":"0"') WHERE seq = 2"""
        )
        connection.commit()
    with pytest.raises(LedgerError, match="row 2 was changed after it was written"):
        ledger.charge(charge("b", Fraction(1)))
    assert not verify(path).ok
