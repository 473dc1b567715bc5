"""Rows through channels against the cases that first struck counts: C01, C08, C15, C17, C21, C23, C25, C26."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tetraodon as td
from tetraodon import noise
from tetraodon.channels.apply import apply
from tetraodon.channels.channel import Channel
from tetraodon.errors import DataError

LINE = td.Domain(v=td.Numeric(0, 8, cells=8, missing="secret"), kept=td.Categorical(["a", "b"], other="o"))
SECRET = td.Policy(LINE, td.AttributeWise(v=td.Full()))
ROWS = {"v": [0.1, 7.9, 3.0000000001, -1e300, 1e300], "kept": ["a", "b", "a", "CANARY", "b"]}


def session(rows: Any = ROWS, epsilon: Any = 9) -> Any:
    return td.Session(td.Table(rows, LINE), SECRET, epsilon)


def released(rows: Any = ROWS, **more: Any) -> Any:
    query = td.Rows("v", keep=["kept"], channel={"kind": "randomised-response"})
    return session(rows).release(query, epsilon=1, **more)


def test_c01_outputs_are_declared_cells_whatever_came_in() -> None:
    """No trace of a double: every published number is the middle of a declared cell, and any of them may come from any value."""
    middles = {i + 0.5 for i in range(8)} | {None}
    seen: list[set[Any]] = []
    for value in (0.1, 0.1 + 2**-50, 3.7, None):
        made = released({"v": [value] * 4000, "kept": ["a"] * 4000})
        [channel] = made.channels
        seen.append(set(made.to_arrow()["v"].to_pylist()))
        assert seen[-1] <= middles and (channel.matrix > 0).all()
    assert all(s == middles for s in seen)  # each is missed with probability below 4 · 9 · e^(−280)


@pytest.mark.parametrize("late", ["abc", "", "1,5", "0x3", "nan", "\x00", '"'])
def test_c08_what_does_not_parse_follows_the_rule_however_late_it_comes(late: str, tmp_path: Path) -> None:
    """The last of 3,000 lines of a CSV file: it is a missing value like any other, and no other row changes."""
    path = tmp_path / "rows.csv"
    text = '"' + late.replace('"', '""') + '"'
    path.write_text("v,kept\n" + "2.5,a\n" * 2999 + f"{text},b\n", encoding="utf-8")
    identity = Channel.of_matrix(np.eye(LINE["v"].size), LINE.select("v"))
    found = apply(identity, path, keep=["kept"])
    assert sorted(zip(found["v"].to_pylist(), found["kept"].to_pylist(), strict=True), key=str)[-1] == (
        None,
        "b",
    )
    assert found["v"].null_count == 1 and found.num_rows == 3000
    strict = td.Domain(v=td.Numeric(0, 8, cells=8))
    with pytest.raises(DataError, match="column 'v' holds a value") as caught:
        apply(Channel.of_matrix(np.eye(8), strict), path)
    assert late == "" or late == '"' or late not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_c15_a_fork_does_not_share_the_draws_of_rows() -> None:
    channel = Channel.of_matrix(np.full((2, 2), 0.5), td.Domain(v=td.Integer(0, 1)))
    cells = np.zeros(256, dtype=np.int64)
    channel.law.draw(cells)  # whatever is kept ready is ready before the fork
    read, write = os.pipe()
    child = os.fork()
    bits = channel.law.draw(cells).astype(np.uint8).tobytes()
    if child == 0:  # pragma: no cover (in the child)
        os.write(write, bits)
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(read, 256)
    os.close(read)
    os.close(write)
    assert len(told) == 256 and told != bits  # equal with probability 2^−256


def test_c17_what_is_drawn_takes_the_same_entropy_whatever_the_rows_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half a word a row: for certain rows and for uncertain ones, for rare outputs and for frequent ones."""
    asked: list[int] = []
    real = noise._entropy
    monkeypatch.setattr(noise, "_entropy", lambda count: (asked.append(count), real(count))[1])
    matrix = np.vstack([np.eye(4)[0], np.full(4, 0.25), [0.5, 0.5, 0, 0], [2.0**-20, 1 - 2.0**-20, 0, 0]])
    channel = Channel.of_matrix(matrix, td.Domain(v=td.Integer(0, 3)))
    words = []
    for cell in range(4):
        asked.clear()
        channel.law.draw(np.full(10_000, cell))
        words.append(sum(asked))
    # A draw in about 2^30 needs the other half of its word.
    assert max(words) - min(words) <= 4 and min(words) == 5000


def test_c21_rows_read_or_saved_twice_are_the_same(tmp_path: Path) -> None:
    made = released({"v": list(np.linspace(0, 8, 200)), "kept": ["a"] * 200}, name="r")
    one, two = made.to_arrow(), made.to_frame()
    assert one.equals(made.to_arrow()) and one["v"].to_pylist() == [None if v != v else v for v in two["v"]]
    for folder in ("a", "b"):
        made.save(tmp_path / folder, ("parquet", "csv"))
    for form in ("parquet", "csv"):
        assert (tmp_path / "a" / f"r.{form}").read_bytes() == (tmp_path / "b" / f"r.{form}").read_bytes()
    again = session({"v": list(np.linspace(0, 8, 200)), "kept": ["a"] * 200})
    query = td.Rows("v", keep=["kept"], channel={"kind": "randomised-response"})
    first, second = (again.release(query, epsilon=1, name=n).to_arrow() for n in ("x", "y"))
    assert not first.equals(second) and again.ledger.spent == 2


def test_c23_every_position_is_drawn_and_as_many_rows_leave_as_there_are() -> None:
    """No row keeps its value by what or where it is: the first, the last, missing and clipped ones change as often as others."""
    values, held, n = [0.5, 1.5, None, -9.0, 9.0], [0.5, 1.5, None, 0.5, 7.5], 2000
    rows = pa.table({"v": [values[i % 5] for i in range(n)], "at": range(n)})
    found = apply(td.channels.randomised_response(LINE.select("v"), "1/100"), rows, keep=["at"])
    assert sorted(found["at"].to_pylist()) == list(range(n))
    changed = np.zeros(5)
    for value, at in zip(found["v"].to_pylist(), found["at"].to_pylist(), strict=True):
        changed[at % 5] += value != held[at % 5]
    # Each changes with probability 0.888; 400 rows have a standard deviation of 6.3.
    assert (changed > 0.888 * 400 - 6.5 * 6.3).all()


@pytest.mark.parametrize("epsilon", ["1/1000000000", 700, 30_000])
def test_c25_wide_scores_leave_no_row_without_a_law(epsilon: Any) -> None:
    """300 outputs whose weights range over more than doubles hold: every row sums to one exactly, and ε is kept."""
    wide = td.Domain(v=td.Integer(0, 299))
    channel = td.channels.exponential(wide, epsilon, epsilon_per=1)
    drawn = channel.law.draw(np.array([0, 150, 299] * 50))
    assert drawn.min() >= 0 and drawn.max() <= 299
    matrix = channel.law.rows(np.array([0, 150, 299]))
    assert np.isfinite(matrix).all() and np.allclose(matrix.sum(axis=1), 1) and (matrix >= 0).all()
    assert (
        channel.epsilon(td.Within(1)) <= td.channels.exponential(wide, epsilon, epsilon_per=1).asked.epsilon
    )


def test_c26_values_inside_one_clamp_class_are_one_cell_of_a_channel() -> None:
    """What is drawn from is the declared cell: raw copies (kept, shown, ids) of a value beyond the bounds do not differ."""
    outside = [-1e308, -5, -0.0, 0.0, 0.999, float("-inf")]
    codes = [td.Table({"v": [v], "kept": ["z"]}, LINE).codes() for v in outside]
    assert len({int(c) for parts in codes for part in parts for c in part}) == 1
    made = released({"v": [*outside, 8, 1e9, float("inf")], "kept": ["x", "y", "z"] * 3})
    assert set(made.to_arrow()["kept"].to_pylist()) == {"o"}
    assert set(made.to_arrow()["v"].to_pylist()) <= {i + 0.5 for i in range(8)} | {None}


def test_c13_a_column_of_one_value_and_of_all_take_the_same_dictionary(tmp_path: Path) -> None:
    """The declared values stand in the file, whichever rows drew."""
    stored = []
    for rows in (
        {"v": [0.5] * 64, "kept": ["a"] * 64},
        {"v": list(np.linspace(0, 8, 64)), "kept": ["a", "b"] * 32},
    ):
        released(rows, name="r").save(tmp_path / str(len(stored)))
        stored.append(pq.read_table(tmp_path / str(len(stored)) / "r.parquet", read_dictionary=["kept"]))
    one, two = (t["kept"].chunk(0).dictionary.to_pylist() for t in stored)
    assert one == two == ["a", "b", "o"] and stored[0].schema == stored[1].schema
