"""The ledger: exact sums, refusals that spend nothing, what it is bound to, and every way of spoiling its file."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import database
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetraodon import chain
from tetraodon.chain import canonical, plain
from tetraodon.errors import BudgetError, LedgerError, SpecificationError
from tetraodon.ledger import AlreadyReleased, Charge, Ledger, verify
from tetraodon.loss import Loss

DIGEST = "0123456789abcdef" * 4
TAX: dict[str, Any] = {
    "data": "tax",
    "domain_hash": "d1",
    "policy": {"secrets": {"income": {"within": 5000}}},
    "policy_hash": "p1",
    "total": Loss("epsilon", Fraction(1)),
}


def charge(name: str = "losses", epsilon: object = "1/10", **changes: Any) -> Charge:
    fields: dict[str, Any] = {
        "name": name,
        "edition": "2025",
        "loss": Loss("epsilon", Fraction(epsilon)),  # type: ignore[arg-type]
        "query": {"cdf": "income", "quantiles": [Fraction(1, 10), Fraction(1, 2)]},
        "mechanism": {"ordered": {}},
        "strategy": DIGEST,
        "cost": {"scale": [Fraction(3, 2)]},
        "policy_hash": "p1",
    }
    return Charge(**{**fields, **changes})


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return Ledger.in_memory(**TAX)
    return Ledger.open(tmp_path / "tax.ledger" if request.param == "file" else database.new_ledger(), **TAX)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of five rows: created, two charges (1/2 and 1/4), the first one's publication, a free disclosure."""
    path = tmp_path / "tax.ledger"
    made = Ledger.open(path, **TAX)
    first = made.charge(charge("a", "1/2"))
    made.charge(charge("b", "1/4"))
    made.published(first, {"values": DIGEST})
    made.charge(charge("c", 0, disclosures=["the number of rows"]))
    return path


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def bodies(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return [json.loads(row[0]) for row in connection.execute("SELECT body FROM ledger ORDER BY seq")]


def rebuild(path: Path, texts: list[dict[str, Any] | str]) -> None:
    """Put these rows in place of all, with every hash right: what someone who knows the format can do."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM ledger")
        connection.execute("DELETE FROM sqlite_sequence")
        prev = "0" * 64
        for seq, body in enumerate(texts, 1):
            text = body if isinstance(body, str) else json.dumps(body, sort_keys=True, separators=(",", ":"))
            digest = hashlib.sha256(f"{seq}\n{prev}\n{text}".encode()).hexdigest()
            connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", (seq, prev, text, digest))
            prev = digest
        connection.commit()


# Sums


def test_a_charge_is_stored_whole(ledger: Ledger) -> None:
    wanted = charge(again=True, disclosures=["rows", {"total": ["region"]}])
    seq = ledger.charge(wanted)
    created, entry = ledger.entries
    assert (seq, entry.seq, entry.kind, entry.charge) == (2, 2, "charge", wanted)
    assert (entry.body["unit"], entry.body["amount"]) == ("epsilon", "1/10") and entry.body["query"][
        "quantiles"
    ] == ["1/10", "1/2"]
    assert (created.kind, created.charge) == ("created", None)
    assert {key: created.body[key] for key in TAX} == {**TAX, "total": "1"}
    assert (created.body["unit"], created.body["format"], created.body["delta"]) == ("epsilon", 2, None)
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(entry.time) < timedelta(minutes=5)
    assert entry.time.endswith("+00:00")
    assert (ledger.spent, ledger.remaining, ledger.total) == (Fraction(1, 10), Fraction(9, 10), 1)
    assert ledger.head == entry.hash != created.hash


def test_zero_may_be_charged_when_nothing_is_left_and_is_kept(ledger: Ledger) -> None:
    ledger.charge(charge("all", 1))
    seq = ledger.charge(charge("free", 0, query={"totals": ["region"]}))
    assert ledger.remaining == 0
    assert [(entry.seq, what) for entry, what in ledger.disclosures] == [(seq, {"totals": ("region",)})]


def test_disclosures_are_the_listed_ones_and_the_free_queries(ledger: Ledger) -> None:
    ledger.charge(charge("a", "1/2"))
    ledger.charge(charge("b", "1/4", disclosures=["no income is missing"]))
    ledger.charge(charge("c", 0, disclosures=["n", "regions"]))
    assert [(entry.charge.name, what) for entry, what in ledger.disclosures if entry.charge] == [
        ("b", "no income is missing"),
        ("c", "n"),
        ("c", "regions"),
    ]


def test_the_sum_goes_over_editions(ledger: Ledger) -> None:
    ledger.charge(charge(epsilon="3/4", edition="2024"))
    with pytest.raises(BudgetError):
        ledger.charge(charge(epsilon="1/2", edition="2025"))
    ledger.charge(charge(epsilon="1/4", edition="2025"))
    assert ledger.remaining == 0


def test_the_smallest_excess_is_refused_with_exact_numbers(ledger: Ledger) -> None:
    ledger.charge(charge("a", "2/3"))
    head = ledger.head
    with pytest.raises(BudgetError) as refused:
        ledger.charge(charge("b", Fraction(1, 3) + Fraction(1, 10**30)))
    asked = Fraction(1, 3) + Fraction(1, 10**30)
    assert f"'b' asks for epsilon {asked}; 1/3 of 1 is left. Nothing was spent." in str(refused.value)
    assert ledger.head == head
    ledger.charge(charge("b", "1/3"))


def test_charge_all_is_all_or_nothing(ledger: Ledger) -> None:
    head = ledger.head
    with pytest.raises(BudgetError, match="'a' and 'b' together ask for epsilon 7/6; 1 of 1 is left"):
        ledger.charge_all([charge("a", "1/2"), charge("b", "2/3")])
    with pytest.raises(AlreadyReleased, match=r"'a'.*asked for twice at once"):
        ledger.charge_all([charge("a"), charge("a")])
    with pytest.raises(LedgerError, match="priced under a policy"):
        ledger.charge_all([charge("a"), charge("b", policy_hash="p2")])
    with pytest.raises(SpecificationError, match="only a Charge"):
        ledger.charge_all([charge("a"), "b"])  # type: ignore[list-item]
    assert ledger.head == head and ledger.charge_all([]) == ()
    assert ledger.charge_all([charge("a", "1/2"), charge("b", "1/2")]) == (2, 3)
    assert ledger.remaining == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.fractions(0, Fraction(2, 3), max_denominator=60), st.booleans()
        ),
        max_size=12,
    ),
    st.fractions(Fraction(1, 60), 2, max_denominator=60),
)
@settings(max_examples=60, deadline=None)
def test_any_sequence_keeps_the_sum_and_never_exceeds_the_total(
    steps: list[tuple[str, Fraction, bool]], total: Fraction
) -> None:
    ledger, spent, names = Ledger.in_memory(**{**TAX, "total": Loss("epsilon", total)}), Fraction(0), set()
    for name, epsilon, again in steps:
        try:
            ledger.charge(charge(name, epsilon, again=again))
        except AlreadyReleased:
            assert name in names and not again
        except BudgetError:
            assert spent + epsilon > total and (again or name not in names)
        else:
            assert again or name not in names
            names.add(name)
            spent += epsilon
        assert ledger.spent == spent == total - ledger.remaining <= total
        assert spent == sum(Fraction(entry.body["amount"]) for entry in ledger.entries[1:])


@pytest.mark.parametrize(
    "epsilon",
    [0.1, 1, 0, True, "1/10", Decimal("0.1"), np.float64(0.1), float("nan"), float("inf"), 1e-320, None],
)
def test_only_exact_fractions_are_budgets(epsilon: object) -> None:
    with pytest.raises(SpecificationError, match="epsilon: must be an exact Fraction"):
        Loss("epsilon", epsilon)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match=r"charge\.loss: a Loss, not"):
        dataclasses.replace(charge(), loss=epsilon)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match=r"ledger\.total: a Loss, not"):
        Ledger.in_memory(**{**TAX, "total": epsilon})


def test_negative_and_zero_budgets() -> None:
    with pytest.raises(SpecificationError, match=r"loss\.epsilon: must be 0 or more"):
        charge(epsilon=Fraction(-1, 10**40))
    for total in (Fraction(0), Fraction(-1)):
        with pytest.raises(SpecificationError, match=r"must be (above 0|0 or more)"):
            Ledger.in_memory(**{**TAX, "total": Loss("epsilon", total)})
    with pytest.raises(SpecificationError, match="more than 8192 bits"):
        charge(epsilon=Fraction(1, 2**8192))
    assert plain("epsilon", Fraction(1, 2**8191)) == str(Fraction(1, 2**8191))  # of 8192 bits


def test_sums_too_long_to_print_are_refused_all_the_same() -> None:
    ledger = Ledger.in_memory(**TAX)
    for i, odd in enumerate((3, 5, 7)):
        ledger.charge(charge(str(i), Fraction(1, odd**2900)))
    with pytest.raises(BudgetError, match=r"asks for epsilon 1; ≈ 1 of 1 is left"):
        ledger.charge(charge("x", 1))


# Charges


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, r"charge\.name: must be a text"),
        ({"name": 3}, r"charge\.name: must be a text"),
        ({"policy_hash": " "}, r"charge\.policy_hash: must be a text"),
        ({"edition": None}, "edition and strategy must be text"),
        ({"strategy": b"x"}, "edition and strategy must be text"),
        ({"again": 1}, r"charge\.again: must be True or False"),
        ({"disclosures": "all"}, r"charge\.disclosures: must be a list"),
        ({"query": {"quantiles": [0.5]}}, r"charge\.query\.quantiles: a float cannot be kept exactly"),
        ({"cost": {"scale": Decimal("1.5")}}, r"charge\.cost\.scale: a Decimal cannot"),
        ({"mechanism": {1: "x"}}, r"charge\.mechanism: a dict cannot"),
        ({"disclosures": [{"n": np.float64(1)}]}, r"charge\.disclosures\.n: a float64 cannot"),
    ],
)
def test_a_charge_of_the_wrong_kind_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        charge(**changes)


def test_a_release_depends_on_counts_or_is_attached_to_rows() -> None:
    assert [charge(flag=f).flag for f in ("histogram", "row", "measured")] == ["histogram", "row", "measured"]
    with pytest.raises(SpecificationError, match=r"charge\.flag: 'histogram', 'row' or 'measured'"):
        charge(flag="rows")


def test_a_charge_keeps_its_own_copy() -> None:
    query = {"cdf": ["income"]}
    kept = charge(query=query)
    query["cdf"].append("age")
    assert kept.query == {"cdf": ("income",)}


def test_canonical_text_is_one_per_meaning() -> None:
    assert (
        canonical("x", {"b": np.int64(3), "a": [Fraction(2, 4), True, None]})
        == '{"a":["1/2",true,null],"b":3}'
    )
    assert canonical("x", {"a": 1, "b": 2}) == canonical("x", {"b": 2, "a": 1})
    assert canonical("x", "é\ud800\0").isascii()
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    for value in (deep, 10**5000):
        with pytest.raises(SpecificationError, match="too long, or a nesting too deep"):
            canonical("x", value)
    assert plain("x", (1, [2])) == (1, (2,))


@pytest.mark.parametrize("name", ["Übersicht €", "a'b\"c", "a\nb", "\ud800", "x" * 5000, "../../etc"])
def test_any_name_goes_in_and_out(path: Path, name: str) -> None:
    Ledger.open(path, **TAX).charge(charge(name))
    stored = Ledger.read(path).entries[-1].charge
    assert stored is not None and stored.name == name
    assert verify(path).ok


def test_a_name_is_released_once_an_edition(ledger: Ledger) -> None:
    seq = ledger.charge(charge())
    head = ledger.head
    with pytest.raises(
        AlreadyReleased, match=r"'losses' \(edition '2025'\): charged on 2.*, never published"
    ):
        ledger.charge(charge())
    assert ledger.head == head
    ledger.published(seq, {"losses.csv": DIGEST})
    date = ledger.entries[1].time
    with pytest.raises(AlreadyReleased) as refused:
        ledger.charge(charge())
    assert f"already released on {date}; nothing spent; --again (again=True) draws and charges afresh" in str(
        refused.value
    )
    ledger.charge(charge(edition="2026"))
    seq = ledger.charge(charge(again=True))
    again = ledger.entries[seq - 1].charge
    assert again is not None and again.again and ledger.spent == Fraction(3, 10)


def test_publishing(ledger: Ledger) -> None:
    seq = ledger.charge(charge())
    for wrong in (1, 99, -1):
        with pytest.raises(LedgerError, match=f"row {wrong} is no charge"):
            ledger.published(wrong, {"values": DIGEST})
    for digests in ({}, {"values": "short"}, {"values": DIGEST.upper()}, {"": DIGEST}, [DIGEST]):
        with pytest.raises(SpecificationError, match="published"):
            ledger.published(seq, digests)  # type: ignore[arg-type]
    for number in (True, "2", 2.0):
        with pytest.raises(SpecificationError, match="by its row number"):
            ledger.published(number, {"values": DIGEST})  # type: ignore[arg-type]
    assert ledger.published(seq, {"values": DIGEST}) == seq + 1
    assert ledger.published(seq, {"a.csv": DIGEST, "a.parquet": DIGEST}) == seq + 2
    assert ledger.entries[-1].body["digests"] == {"a.csv": DIGEST, "a.parquet": DIGEST}
    assert ledger.spent == Fraction(1, 10)


def test_a_policy_that_was_not_declared_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"'losses' \(edition '2025'\) was priced under a policy \(p2\)"):
        ledger.charge(charge(policy_hash="p2"))
    assert ledger.spent == 0


def test_gaussian_noise_has_no_price_in_epsilon(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match=r"asks for rho 0\.1, but the budget is in epsilon"):
        ledger.charge(charge(loss=Loss("rho", Fraction(1, 10))))
    assert len(ledger.entries) == 1


def test_an_account_in_rho() -> None:
    told = {**TAX, "total": Loss("rho", Fraction(1, 2))}
    for delta, message in (
        (None, "needs an exact Fraction"),
        (Fraction(1), "needs an exact Fraction"),
        (0.1, "needs an exact Fraction"),
        (Fraction(0), "needs an exact Fraction"),
    ):
        with pytest.raises(SpecificationError, match=rf"ledger\.delta: .*{message}"):
            Ledger.in_memory(**told, delta=delta)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match=r"ledger\.delta: goes with a total in rho"):
        Ledger.in_memory(**TAX, delta=Fraction(1, 10))
    ledger = Ledger.in_memory(**told, delta=Fraction(1, 10**6))
    assert (ledger.unit, ledger.delta, ledger.total) == ("rho", Fraction(1, 10**6), Fraction(1, 2))
    ledger.charge(charge("gauss", loss=Loss("rho", Fraction(1, 4))))
    ledger.charge(charge("laplace", "2/5"))  # enters as ε²/2
    assert ledger.spent == Fraction(1, 4) + Fraction(2, 25)
    with pytest.raises(BudgetError, match=r"'more' asks for rho 0\.18; 0\.17 of 0\.5 is left"):
        ledger.charge(charge("more", "3/5"))


# Binding and files


def test_reopening_continues(path: Path) -> None:
    again = Ledger.open(str(path), **TAX)
    assert again.path == path and (again.spent, len(again.entries)) == (Fraction(3, 4), 5)
    other = Ledger.open(path, **TAX)
    other.charge(charge("d", "1/8"))
    assert again.spent == Fraction(7, 8) and again.head == other.head == Ledger.read(path).head
    assert (str(again), repr(again)) == (f"ledger {path}", f"<ledger {path}>")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "census"}, "the data's name is tax in the ledger and census here"),
        ({"domain_hash": "d2"}, "the domain is d1 in the ledger and d2 here"),
        ({"total": Loss("epsilon", Fraction(3, 2))}, "the total epsilon is 1 in the ledger and 3/2 here"),
        (
            {"total": Loss("epsilon", Fraction(1, 2)), "policy_hash": "p2"},
            "the total epsilon is 1 in the ledger and 1/2 here",
        ),
    ],
)
def test_a_ledger_of_something_else_is_refused(path: Path, change: dict[str, Any], message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerError) as refused:
        Ledger.open(path, **{**TAX, **change})
    assert message in str(refused.value) and "Use the ledger made for this data" in str(refused.value)
    assert path.read_bytes() == before


def test_a_policy_that_cannot_be_read_is_not_declared(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="row 1 declares a policy that cannot be read"):
        Ledger.open(path, **{**TAX, "policy_hash": "p2"})
    assert path.read_bytes() == before


def test_two_ledgers_with_equal_words_have_different_heads(tmp_path: Path) -> None:
    assert len({Ledger.open(tmp_path / name, **TAX).head for name in "abc"}) == 3
    assert Ledger.in_memory(**TAX).head != Ledger.in_memory(**TAX).head


@pytest.mark.parametrize(
    "change", [{"data": ""}, {"domain_hash": None}, {"policy_hash": 3}, {"policy": {"theta": 0.5}}]
)
def test_a_bad_binding_makes_no_file(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(SpecificationError, match=r"ledger\." + next(iter(change))):
        Ledger.open(tmp_path / "new.ledger", **{**TAX, **change})
    assert list(tmp_path.iterdir()) == []


def test_reading_never_makes_a_file_and_never_charges(path: Path) -> None:
    folder, mistyped = path.parent, path.with_name("taks.ledger")
    for look in (Ledger.read, verify):
        with pytest.raises(LedgerError, match="there is no such file"):
            look(mistyped)
        with pytest.raises(LedgerError, match="not a file"):
            look(folder)
    assert list(folder.iterdir()) == [path]
    before = path.read_bytes()
    reader = Ledger.read(path)
    assert reader.spent == Fraction(3, 4)
    with pytest.raises(LedgerError, match="opened for reading only"):
        reader.charge(charge("d"))
    with pytest.raises(LedgerError, match="opened for reading only"):
        reader.published(3, {"values": DIGEST})
    assert path.read_bytes() == before


def test_places_where_no_ledger_can_be(path: Path) -> None:
    folder = path.parent
    for place, message in (
        (folder / "absent" / "tax.ledger", "no such folder"),
        (path / "tax.ledger", "no such folder"),  # the parent is a file
        (folder, "not a file"),
        (folder / ("n" * 300), "cannot be created"),
        (folder / "a\0b", "not one that this system can open"),
    ):
        with pytest.raises(LedgerError, match=message):
            Ledger.open(place, **TAX)
    with pytest.raises(LedgerError, match="not one that this system can open"):
        Ledger.open(b"tax.ledger", **TAX)  # type: ignore[arg-type]
    assert list(folder.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_an_unwritable_folder_is_refused() -> None:
    with pytest.raises(LedgerError, match="Allow writing to the file and its folder"):
        Ledger.open("/proc/tax.ledger", **TAX)


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    text, empty, other = (tmp_path / name for name in ("notes.txt", "empty", "other.db"))
    text.write_text("canary " * 1000)
    empty.touch()
    sql(other, "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, prev TEXT, body TEXT, hash TEXT)")
    for file, message in (
        (text, "not an SQLite file"),
        (empty, "the file is empty"),
        (other, "not a Tetraodon ledger"),
    ):
        before = file.read_bytes()
        for attempt in (lambda file=file: Ledger.open(file, **TAX), lambda file=file: verify(file)):
            with pytest.raises(LedgerError, match=message) as refused:
                attempt()
            assert "canary" not in str(refused.value) and refused.value.__cause__ is None
        assert file.read_bytes() == before


def test_a_path_is_kept_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("odd ?#%name.ledger", **TAX)
    monkeypatch.chdir("elsewhere")
    ledger.charge(charge())
    assert ledger.path == tmp_path / "odd ?#%name.ledger" and list((tmp_path / "elsewhere").iterdir()) == []


def test_a_ledger_that_was_moved_away_is_not_made_anew(path: Path) -> None:
    ledger = Ledger.open(path, **TAX)
    path.rename(path.with_suffix(".away"))
    with pytest.raises(LedgerError, match="no such file"):
        ledger.charge(charge("d"))
    assert not path.exists()


def test_a_ledger_that_another_process_makes_meanwhile_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = Ledger.read(path).head
    monkeypatch.setattr(chain.os.path, "lexists", lambda _: False)  # we looked just before it was there
    assert Ledger.open(path, **TAX).head == head
    with pytest.raises(LedgerError, match="and census here"):
        Ledger.open(path, **{**TAX, "data": "census"})
    assert Ledger.read(path).head == head and list(path.parent.iterdir()) == [path]


def test_a_busy_ledger_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(path, **TAX)
    monkeypatch.setattr(chain, "_WAIT", 0.05)
    pauses: list[float] = []
    monkeypatch.setattr(chain.time, "sleep", lambda seconds: pauses.append(seconds))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"other processes kept it.*Nothing was spent"):
            ledger.charge(charge("d"))
        # Whoever waits asks again and again, without pauses that grow: else it never comes next among many.
        assert len(pauses) > 3 and set(pauses) == {chain._PAUSE}
        assert ledger.spent == Fraction(3, 4)  # looking is free
    with closing(sqlite3.connect(path, isolation_level=None)) as other:  # a reader holds up the commit only
        other.execute("BEGIN")
        other.execute("SELECT * FROM ledger").fetchone()
        with pytest.raises(LedgerError, match=r"other processes kept it.*Nothing was spent"):
            ledger.charge(charge("d"))
    assert ledger.spent == Fraction(3, 4)
    ledger.charge(charge("d"))


def test_commits_are_synced_and_no_connection_stays_open(path: Path) -> None:
    with chain.File(path, writable=True)._connect(path, "rw") as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
    ledger = Ledger.open(path, **TAX)
    ledger.charge(charge("d"))
    if Path("/proc/self/fd").exists():
        targets = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)]
        assert not any(target.startswith(str(path)) for target in targets)


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.mark.parametrize("first", ["a look", "a charge"])
def test_an_interrupted_write_is_undone(path: Path, tmp_path: Path, first: str) -> None:
    copied = tmp_path / "crashed"
    copied.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 2")  # pages reach the file before the commit
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE ledger SET body = 'half written'")
        writer.executemany(
            "INSERT INTO ledger VALUES (?, '', ?, '')", [(i, "x" * 3000) for i in range(9, 60)]
        )
        for name in (path.name, f"{path.name}-journal"):
            shutil.copy(path.with_name(name), copied)
        writer.execute("ROLLBACK")
    crashed = copied / path.name
    assert b"half written" in crashed.read_bytes()
    if first == "a charge":
        Ledger.open(crashed, **TAX).charge(charge("d", "1/8"))
    assert verify(crashed).ok and verify(crashed).rows == (6 if first == "a charge" else 5)
    assert os.listdir(copied) == [path.name] and b"half written" not in crashed.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_full_disk_spends_nothing_or_says_that_it_may_have(path: Path) -> None:
    script = """
import resource, signal, sys
from fractions import Fraction
from tests_ledger_case import TAX, charge
from tetraodon.errors import LedgerError
from tetraodon.ledger import Ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = Ledger.open(sys.argv[1], **TAX)
said = set()
for limit in (0, 600, 5000, 9000, 13000, 17000, 30000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        ledger.charge(charge("d", disclosures=["x" * 20000]))
    except LedgerError as error:
        said.add(str(error).partition("a copy. ")[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert len(ledger.entries) == 5, ledger.entries
assert "Nothing was spent." in said, said
assert "The charge may have been stored; nothing was drawn. `tetraodon ledger show` tells." in said, said
""".replace("tests_ledger_case", Path(__file__).stem)
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verify(path).rows == 5 and verify(path).ok


def test_memory_belongs_to_one_process() -> None:
    ledger = Ledger.in_memory(**TAX)
    assert ledger.path is None and str(ledger) == "ledger (in memory)"
    with pytest.raises(TypeError):
        copy.deepcopy(ledger)  # a copy would double the budget
    script = f"""
import os
from {Path(__file__).stem} import TAX, charge
from tetraodon.errors import LedgerError
from tetraodon.ledger import Ledger
ledger = Ledger.in_memory(**TAX)
ledger.charge(charge("a"))
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    ledger.charge(charge("b"))
except LedgerError as error:
    os._exit(7 if "belongs to the process that made it" in str(error) else 1)
os._exit(2)
"""
    if hasattr(os, "fork"):
        done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, check=False)
        assert done.returncode == 7


# Spoilt files: (what is done to the file, what verify says)

TAMPERED: dict[str, tuple[tuple[str, ...], str]] = {
    "smaller charge": (
        ("""UPDATE ledger SET body = replace(body, '"amount":"1/2"', '"amount":"1/9"') WHERE seq = 2""",),
        "row 2 was changed after it was written",
    ),
    "larger total": (
        ("""UPDATE ledger SET body = replace(body, '"total":"1"', '"total":"9"') WHERE seq = 1""",),
        "row 1 was changed after it was written",
    ),
    "one hash": (("UPDATE ledger SET hash = prev WHERE seq = 3",), "row 3 was changed after it was written"),
    "one link": (("UPDATE ledger SET prev = hash WHERE seq = 3",), "row 3 does not follow the row before it"),
    "first row deleted": (("DELETE FROM ledger WHERE seq = 1",), "row 1 is missing: row 2 follows row 0"),
    "charge deleted": (("DELETE FROM ledger WHERE seq = 3",), "row 3 is missing: row 4 follows row 2"),
    "last row deleted": (("DELETE FROM ledger WHERE seq = 5",), "row numbers up to 5, but its last row is 4"),
    "all rows deleted": (("DELETE FROM ledger",), "row numbers up to 5, but its last row is 0"),
    "deleted and renumbered": (
        ("DELETE FROM ledger WHERE seq = 3", "UPDATE ledger SET seq = seq - 1 WHERE seq > 3"),
        "row 3 does not follow the row before it",
    ),
    "reordered": (
        (
            "UPDATE ledger SET seq = 99 WHERE seq = 2",
            "UPDATE ledger SET seq = 2 WHERE seq = 3",
            "UPDATE ledger SET seq = 3 WHERE seq = 99",
        ),
        "row 2 does not follow the row before it",
    ),
    "row repeated": (
        ("INSERT INTO ledger SELECT 6, prev, body, hash FROM ledger WHERE seq = 5",),
        "row 6 does not follow the row before it",
    ),
    "not text": (
        ("UPDATE ledger SET body = x'ff00' WHERE seq = 4",),
        "row 4 was changed after it was written",
    ),
    "not UTF-8": (
        ("UPDATE ledger SET body = CAST(x'ff41' AS TEXT) WHERE seq = 4",),
        "row 4 was changed after it was written",
    ),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_spoilt_row_is_found_and_nothing_can_be_charged(path: Path, how: str) -> None:
    ledger = Ledger.open(path, **TAX)
    assert verify(path).ok
    statements, message = TAMPERED[how]
    sql(path, *statements)
    found = verify(path)
    assert not found.ok and any(message in problem for problem in found.problems), found.problems
    before = path.read_bytes()
    for attempt in (
        lambda: ledger.charge(charge("d")),
        lambda: ledger.published(3, {"values": DIGEST}),
        lambda: ledger.spent,
        lambda: Ledger.read(path),
        lambda: Ledger.open(path, **TAX),
    ):
        with pytest.raises(LedgerError, match="Nothing was spent"):
            attempt()
    assert path.read_bytes() == before


def changed(row: int, **changes: Any) -> Any:
    return lambda rows: [body | changes if i == row else body for i, body in enumerate(rows, 1)]


REBUILT: dict[str, tuple[Any, str]] = {
    "overspent": (changed(3, amount="3/4"), "row 3 spends beyond the total: 1.25 of 1"),
    "overspent by a later row": (changed(5, amount="1/3"), "row 5 spends beyond the total: 13/12 of 1"),
    "undeclared policy": (
        changed(3, policy_hash="p2"),
        "row 3 was priced under a policy that no row before it declares",
    ),
    "refund": (changed(3, amount="-1/4"), "row 3 cannot be read"),
    "float": (changed(3, amount=0.25), "row 3 cannot be read"),
    "float text": (changed(3, amount="0.25"), "row 3 cannot be read"),
    "no number": (changed(3, amount="1/0"), "row 3 cannot be read"),
    "another kind": (changed(3, kind="refund"), "row 3 cannot be read"),
    "one key more": (changed(3, waived=True), "row 3 cannot be read"),
    "newer format": (changed(1, format=3), "row 1 cannot be read"),
    "rho without delta": (changed(1, unit="rho"), "row 1 cannot be read"),
    "delta without rho": (changed(1, delta="1/10"), "row 1 cannot be read"),
    "unknown unit": (changed(1, unit="mu"), "row 1 cannot be read"),
    "rho in an account in epsilon": (changed(3, unit="rho"), "row 3 charges rho to an account in epsilon"),
    "a policy that is none": (
        lambda rows: [*rows, {"kind": "policy", "policy": {}, "policy_hash": "p2", "time": rows[0]["time"]}],
        "it cannot be priced: row 1 declares a policy that cannot be read",
    ),
    "no budget": (changed(1, total="0"), "row 1 cannot be read"),
    "time": (changed(3, time=None), "row 3 cannot be read"),
    "no digest": (changed(4, digests={}), "row 4 cannot be read"),
    "publishes no charge": (changed(4, charge=1), "row 4 publishes a charge that does not stand before it"),
    "publishes ahead": (changed(4, charge=5), "row 4 publishes a charge that does not stand before it"),
    "publishes a list": (changed(4, charge=[2]), "row 4 cannot be read"),
    "two beginnings": (lambda rows: [*rows, rows[0]], "row 1, and no other row"),
    "no beginning": (lambda rows: rows[1:], "row 1, and no other row"),
    "no row": (lambda rows: [], "row 1, and no other row"),
    "not JSON": (lambda rows: [*rows, "{"], "row 6 cannot be read"),
    "no object": (lambda rows: [*rows, "[]"], "row 6 cannot be read"),
    "too deep": (lambda rows: [*rows, "[" * 100_000], "row 6 cannot be read"),
}


@pytest.mark.parametrize("how", REBUILT)
def test_a_false_row_in_a_sound_chain_is_found(path: Path, how: str) -> None:
    change, message = REBUILT[how]
    rebuild(path, bodies(path))
    assert verify(path).ok  # the rebuilding itself is faithful
    rebuild(path, change(bodies(path)))
    found = verify(path)
    assert not found.ok and any(message in problem for problem in found.problems), found.problems
    with pytest.raises(LedgerError, match="Nothing was spent"):
        Ledger.open(path, **TAX)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER forget AFTER INSERT ON ledger BEGIN DELETE FROM ledger WHERE seq = NEW.seq; END",
        "CREATE TABLE more (x)",
        "CREATE VIEW sqliteview AS SELECT * FROM ledger",
        "PRAGMA application_id = 0",
        "DROP TABLE ledger",
    ],
)
def test_a_changed_schema_is_refused(path: Path, statement: str) -> None:
    ledger = Ledger.open(path, **TAX)
    sql(path, statement)
    for attempt in (lambda: ledger.charge(charge("d")), lambda: verify(path)):
        with pytest.raises(LedgerError, match="not a Tetraodon ledger"):
            attempt()


def test_a_damaged_file_is_refused(path: Path) -> None:
    for i in range(40):
        Ledger.open(path, **TAX).charge(charge(f"x{i}", 0))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LedgerError, match=r"damaged\. Restore it from a copy"):
        verify(path)
    with pytest.raises(LedgerError, match=r"Restore it from a copy.*Nothing was spent"):
        Ledger.open(path, **TAX)


# Manifests


def manifest(path: Path, head: object) -> Path:
    path.write_text(json.dumps({"budget": {"head": head}, "note": "canary"}))
    return path


def test_verify_reports(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.read(path)
    found = verify(path, [manifest(tmp_path / f"{e.seq}.json", e.hash) for e in ledger.entries])
    assert (found.ok, found.problems, found.head, found.rows) == (True, (), ledger.head, 5)
    time = ledger.entries[2].time
    assert found.warnings == (
        f"row 3: 'b' (edition '2025'), epsilon 0.25, {time}: charged, never published.",
        f"row 5: 'c' (edition '2025'), epsilon 0, {ledger.entries[4].time}: charged, never published.",
    )


def test_an_older_copy_is_found_by_any_later_manifest(path: Path, tmp_path: Path) -> None:
    early = manifest(tmp_path / "early.json", Ledger.read(path).head)
    older = path.read_bytes()
    ledger = Ledger.open(path, **TAX)
    ledger.charge(charge("d"))
    late = manifest(tmp_path / "late.json", ledger.head)
    assert verify(path, [early, late]).ok
    path.write_bytes(older)
    assert (
        verify(path).ok and verify(path, [early]).ok
    )  # without a manifest it cannot be told from an honest one
    ledger.charge(charge("d", "1/5"))  # nor does going on hide it
    found = verify(path, [early, str(late)])
    assert found.problems == (
        f"manifest {late}: its head is not in this ledger: an older copy, or another one.",
    )


def test_a_chain_rebuilt_whole_is_found_by_a_manifest_only(path: Path, tmp_path: Path) -> None:
    seen = manifest(tmp_path / "seen.json", Ledger.read(path).head)
    rebuild(path, changed(2, amount="1/100")(bodies(path)))
    assert verify(path).ok and not verify(path, [seen]).ok


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"budget": {}}',
        '{"budget": ["canary"]}',
        '{"budget": {"head": ["canary"]}}',
        "\xff",
    ],
)
def test_a_manifest_that_cannot_be_used_fails_the_check(path: Path, tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(text.encode("latin-1"))
    for each in (bad, tmp_path / "absent.json", tmp_path):
        found = verify(path, [each])
        assert found.problems == (f"manifest {each}: cannot be read, or carries no budget.head.",)


def test_manifest_heads_of_other_types_do_not_match(path: Path, tmp_path: Path) -> None:
    for head in (None, 3, "", Ledger.read(path).head[:-1]):
        assert not verify(path, [manifest(tmp_path / "m.json", head)]).ok
