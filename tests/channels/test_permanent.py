"""Permanent answers: one answer for an id in an epoch whatever its rows hold, kept in a private file that holds no value."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import tetraodon as td
from tetraodon.channels.apply import Lasting, Target, applied
from tetraodon.channels.channel import Channel
from tetraodon.channels.permanent import Permanent, fingerprint
from tetraodon.errors import DataError, OutputError, Refused, SpecificationError

WIDE = td.Domain(v=td.Integer(0, 999))
UNIFORM = Channel.of_matrix(np.full((1000, 1000), 1e-3), WIDE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Permanent]:
    with Permanent.open(tmp_path / "answers") as opened:
        yield opened


def released(
    store: Permanent, rows: list[tuple[str, int]], epoch: str = "1", channel: Channel = UNIFORM
) -> dict[str, list[int]]:
    """The answers that leave, by id."""
    domain = td.Domain(v=channel.domain["v"])
    table = td.Table(
        pa.table(
            {
                "id": pa.array([i for i, _ in rows], pa.string()),
                "v": pa.array([v for _, v in rows], pa.int64()),
            }
        ),
        domain,
    )
    found = applied(table, [Target(channel, ("v",))], ["id"], Lasting(store, "id", epoch)).to_pydict()
    answers: dict[str, list[int]] = {}
    for who, value in zip(found["id"], found["v"], strict=True):
        answers.setdefault(who, []).append(value)
    return answers


# The counter-example of a memory by (id, value)


def _laws(key: str, rows: tuple[int, int], keep: Fraction) -> Counter[tuple[int, int]]:
    """The exact law of the two outputs of one person's two rows under binary randomised response, under each memory."""
    law: Counter[tuple[int, int]] = Counter()
    once = {(v, z): keep if v == z else 1 - keep for v, z in product((0, 1), repeat=2)}
    if key == "none" or (key == "id and value" and rows[0] != rows[1]):
        for z in product((0, 1), repeat=2):
            law[z] += once[rows[0], z[0]] * once[rows[1], z[1]]
    else:
        for lot in (0, 1):
            asked = rows[lot] if key == "id" else rows[0]
            for z in (0, 1):
                law[z, z] += Fraction(1, 2) * once[asked, z]
    return law


def test_a_memory_by_id_and_value_has_no_epsilon_and_one_by_id_has_the_channels() -> None:
    """One row moves from a to b: z1 ≠ z2 has probability 0 before and not after; by id alone the ratio stays 3."""
    keep = Fraction(3, 4)
    before, after = (_laws("id and value", rows, keep) for rows in ((0, 0), (0, 1)))
    assert before[0, 1] == 0 and after[0, 1] == keep * keep
    worst = max(
        max(one[z] / two[z], two[z] / one[z])
        for a, b in (((0, 0), (0, 1)), ((0, 1), (1, 1)))
        for one, two in [(_laws("id", a, keep), _laws("id", b, keep))]
        for z in ((0, 0), (1, 1))
    )
    assert worst <= keep / (1 - keep)
    assert all(
        _laws("id", rows, keep)[z] == 0 for rows in product((0, 1), repeat=2) for z in ((0, 1), (1, 0))
    )


def test_rows_of_one_id_agree_whatever_they_hold(store: Permanent) -> None:
    """(a, b) and (a, a) look alike: equality of answers tells nothing."""
    rows = [("ann", 1), ("ann", 500), ("bob", 7), ("bob", 7), ("eve", 3)]
    answers = released(store, rows)
    assert sorted(answers) == ["ann", "bob", "eve"] and [len(answers[i]) for i in ("ann", "bob", "eve")] == [
        2,
        2,
        1,
    ]
    assert all(len(set(told)) == 1 for told in answers.values())


def test_the_answers_have_the_law_of_the_memory_by_id(tmp_path: Path) -> None:
    """9,000 persons with rows (0, 0) or (0, 1) each: chi-squared of the answers against the exact law, at 1e-9."""
    domain = td.Domain(v=td.Integer(0, 1))
    channel = Channel.of_matrix([[0.75, 0.25], [0.25, 0.75]], domain)
    for second in (0, 1):
        rows = [(str(i), v) for i in range(9000) for v in (0, second)]
        with Permanent.open(tmp_path / f"{second}") as store:
            answers = released(store, rows, channel=channel)
        assert all(a == b for a, b in answers.values())
        ones = sum(a for a, _ in answers.values())
        share = float(_laws("id", (0, second), Fraction(3, 4))[1, 1])
        assert (ones - share * 9000) ** 2 / (share * (1 - share) * 9000) < chi2.isf(1e-9, 1)


def test_the_row_that_is_asked_does_not_depend_on_order(tmp_path: Path) -> None:
    """All rows but one hold 0; whether the one stands first or last, it is asked as often as the others."""
    domain = td.Domain(v=td.Integer(0, 1))
    honest = Channel.of_matrix(np.eye(2), domain)
    for place in (0, 3):
        rows = [(str(i), int(k == place)) for i in range(4000) for k in range(4)]
        with Permanent.open(tmp_path / f"{place}") as store:
            ones = sum(told[0] for told in released(store, rows, channel=honest).values())
        assert (ones - 1000) ** 2 / 750 < chi2.isf(1e-9, 1)


# What is remembered


def test_later_releases_repeat_the_answer_and_other_epochs_do_not(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    ids = [f"p{i}" for i in range(50)]
    with Permanent.open(path) as store:
        first = released(store, [(i, 1) for i in ids])
        assert store.epochs == ("1",)
    with Permanent.open(path) as store:
        later = released(store, [(i, 999) for i in [*ids, "new"] for _ in range(2)])
        assert {i: later[i] for i in ids} == {i: told * 2 for i, told in first.items()}
        other = released(store, [(i, 1) for i in ids], epoch="2")
        assert other != first  # equal with probability 10^-150
        assert store.epochs == ("1", "2")
        assert released(store, [("new", 5)]) == {"new": later["new"][:1]}


def test_a_store_is_known_by_itself_and_not_by_its_path(tmp_path: Path) -> None:
    """A store that was lost and made anew at the same place is another one; the name tells nothing of the key."""
    path = tmp_path / "answers"
    names = []
    for _ in range(2):
        with Permanent.open(path) as store:
            names.append(store.identity)
        with Permanent.open(path) as store:
            assert store.identity == names[-1] and store._key.hex() not in names[-1]
        path.unlink()
    assert names[0] != names[1]


def test_several_channels_share_one_answer(store: Permanent) -> None:
    domain = td.Domain(a=td.Integer(0, 99), b=td.Integer(0, 9))
    a, b = (
        Channel.of_matrix(np.full((n, n), 1 / n), domain.select(name)) for name, n in (("a", 100), ("b", 10))
    )
    table = td.Table({"id": ["x", "x", "y"], "a": [1, 2, 3], "b": [4, 5, 6], "r": ["u", "v", "w"]}, domain)

    def once() -> list[tuple[Any, ...]]:
        found = applied(table, [Target(b, ("b",)), Target(a, ("a",))], ["id", "r"], Lasting(store, "id", "e"))
        return sorted(zip(*(found[c].to_pylist() for c in ("id", "r", "b", "a")), strict=True))

    rows = once()
    assert once() == rows
    assert [row[:2] for row in rows] == [("x", "u"), ("x", "v"), ("y", "w")] and rows[0][2:] == rows[1][2:]
    assert all(0 <= row[2] < 10 and 0 <= row[3] < 100 for row in rows)


def test_columns_beside_the_answers_are_not_remembered(store: Permanent, tmp_path: Path) -> None:
    """What leaves unchanged belongs to the row; the store sees nothing of it."""
    domain = td.Domain(v=WIDE["v"], region=td.Categorical(["n", "s"]))
    table = td.Table({"id": ["x", "x"], "v": [1, 2], "region": ["n", "s"]}, domain)
    lasting = Lasting(store, "id", "e")
    found = applied(table, [Target(UNIFORM, ("v",))], (), lasting, ["region"])
    assert sorted(found["region"].to_pylist()) == ["n", "s"] and len(set(found["v"].to_pylist())) == 1
    ((answer,),) = sqlite3.connect(tmp_path / "answers").execute("SELECT answer FROM answers").fetchall()
    assert answer == found["v"].to_pylist()[0]


def test_an_epoch_has_the_answers_of_one_channel(store: Permanent) -> None:
    released(store, [("ann", 1)])
    other = Channel.of_matrix(np.eye(1000), WIDE)
    with pytest.raises(Refused, match="answers of other channels"):
        released(store, [("ann", 1), ("bob", 2)], channel=other)
    assert released(store, [("ann", 1)], "2", other) == {"ann": [1]}
    assert fingerprint([UNIFORM]) != fingerprint([other]) != fingerprint([other, other])


def test_no_rows_draw_nothing(store: Permanent) -> None:
    assert released(store, []) == {}


# The file


def test_the_file_is_its_owners_and_holds_no_value_and_no_id(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    before = os.umask(0)
    try:
        store = Permanent.open(path)
    finally:
        os.umask(before)
    with store:
        released(store, [("CANARY-ID", 371), ("bob", 371)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_bytes()
    assert b"CANARY" not in text and b"bob" not in text
    connection = sqlite3.connect(path)
    dump = "\n".join(connection.iterdump())
    assert "CREATE TABLE answers (epoch TEXT NOT NULL, who BLOB NOT NULL, answer INTEGER NOT NULL" in dump
    hashes = {row[0] for row in connection.execute("SELECT who FROM answers")}
    assert len(hashes) == 2 and all(len(h) == 16 for h in hashes)
    with Permanent.open(tmp_path / "other") as second:
        released(second, [("CANARY-ID", 371)])
    ((foreign,),) = sqlite3.connect(tmp_path / "other").execute("SELECT who FROM answers").fetchall()
    assert foreign not in hashes  # keyed: the same id looks different in every store


@pytest.mark.skipif(os.name != "posix", reason="owners of files")
def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    Permanent.open(path).close()
    path.chmod(0o640)
    with pytest.raises(Refused, match="chmod 600 answers"):
        Permanent.open(path)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes"
    text.write_bytes(b"CANARY " * 1000)
    text.chmod(0o600)
    with pytest.raises(DataError, match="notes: is no file of permanent answers") as caught:
        Permanent.open(text)
    assert "CANARY" not in str(caught.value) and caught.value.__suppress_context__
    other = tmp_path / "other"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    other.chmod(0o600)
    with pytest.raises(DataError, match="other: is no file of permanent answers"):
        Permanent.open(other)
    with pytest.raises(OutputError, match="cannot be made"):
        Permanent.open(tmp_path / "no folder" / "answers")


def test_answers_that_cannot_be_kept_do_not_leave(store: Permanent, tmp_path: Path) -> None:
    released(store, [("ann", 1)])
    connection = sqlite3.connect(tmp_path / "answers")
    connection.execute("CREATE TRIGGER full BEFORE INSERT ON answers BEGIN SELECT RAISE(FAIL, 'CANARY'); END")
    connection.close()
    with pytest.raises(OutputError, match="none was returned") as caught:
        released(store, [("ann", 1), ("bob", 2)])
    assert "CANARY" not in str(caught.value)
    assert len(released(store, [("ann", 1)])["ann"]) == 1


def test_a_failure_while_drawing_keeps_nothing(store: Permanent) -> None:
    def broken(_: object) -> Any:
        raise Refused("noise: the operating system gives no randomness; nothing was released.")

    with pytest.raises(Refused, match="no randomness"):
        store.settled("1", fingerprint([UNIFORM]), ["ann"], broken)
    assert store.epochs == ()
    assert store.settled("1", fingerprint([UNIFORM]), ["ann"], lambda new: new + 5).tolist() == [5]
    assert store.settled("1", fingerprint([UNIFORM]), ["bob", "ann"], lambda new: new + 7).tolist() == [7, 5]


@pytest.mark.parametrize(("epoch", "ids"), [("", ["a"]), (2025, ["a"]), ("1", ["a", "a"])])
def test_epochs_are_named_and_ids_come_once(store: Permanent, epoch: Any, ids: list[str]) -> None:
    with pytest.raises(SpecificationError):
        store.settled(epoch, fingerprint([UNIFORM]), ids, lambda new: new)


def test_two_at_once_agree(tmp_path: Path) -> None:
    """Two connections ask for the same ids at the same time: each id is drawn for once."""
    path = tmp_path / "answers"
    Permanent.open(path).close()
    ids = [str(i) for i in range(200)]
    told: list[list[int]] = []
    drawn: list[int] = []
    gate = threading.Barrier(4)

    def ask(mark: int) -> None:
        def draw(new: np.ndarray) -> np.ndarray:
            drawn.append(len(new))
            return np.full(len(new), mark, dtype=np.int64)

        with Permanent.open(path) as store:
            gate.wait()
            told.append(store.settled("1", fingerprint([UNIFORM]), ids, draw).tolist())

    threads = [threading.Thread(target=ask, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 4 and all(t == told[0] for t in told) and sum(drawn) == 200
