"""Cases C31–C33, and what else must not leave beside the rows of a channel."""

from __future__ import annotations

import traceback
from fractions import Fraction
from importlib import import_module
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import tetraodon as td
from tetraodon import noise
from tetraodon.channels.apply import Lasting, Target, applied, apply
from tetraodon.channels.channel import Channel
from tetraodon.channels.permanent import Permanent
from tetraodon.channels.shift import Shift
from tetraodon.channels.table import Table as Law
from tetraodon.errors import DataError, TetraodonError
from tetraodon.publish import write_table

apply_module = import_module("tetraodon.channels.apply")
CANARY = "CANARY-8472"
FOUR = td.Domain(v=td.Integer(0, 3))
QUARTERS = Channel.of_matrix(
    [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0, 0, 0.5, 0.5], [0, 0, 0.25, 0.75]], FOUR
)


# C31: what a solver leaves behind


@pytest.mark.parametrize(
    "row", [[1 + 1e-6, -1e-6], [0.5, 0.4], [0.7, 0.7], [np.nan, 1.0], [np.inf, 0.0], [2.0, -1.0], [0.0, 0.0]]
)
def test_c31_rows_that_are_no_law_make_no_channel(row: list[float]) -> None:
    with pytest.raises(td.errors.SpecificationError, match="channel"):
        Channel.of_matrix([row, [0.5, 0.5]], td.Domain(v=td.Integer(0, 1)))


def test_c31_rows_sum_to_one_exactly_and_epsilon_is_that_of_the_table_drawn_from() -> None:
    """Rows off by a solver's 10^-7: what is drawn from is exact, and its ε is at least the true log-ratio of its entries."""
    made = np.random.default_rng(7)
    matrix = made.random((5, 5)) + 0.05
    matrix = matrix / matrix.sum(axis=1, keepdims=True) * (1 + 1e-7 * made.normal(size=(5, 1)))
    channel = Channel.of_matrix(matrix, td.Domain(v=td.Integer(0, 4)))
    law = channel.law
    assert isinstance(law, Law)
    rows = [law.exact_row(r) for r in range(5)]
    assert all(sum(row) == 1 and min(row) > 0 for row in rows)
    told = channel.epsilon(td.Full())
    ratios = [a[z] / b[z] for a in rows for b in rows for z in range(5)]
    assert log(max(ratios)) <= told <= log(max(ratios)) + 1e-11
    for r, row in enumerate(
        rows
    ):  # the sampler's chances are these very numbers, cut off, and a remainder of less than 5
        assert [Fraction(n, law._choices.exact_row(r)[1]) for n in law._choices.exact_row(r)[0]] == row
        cut = [2**64 * p - share for p, share in zip(row, law._choices.shares(r)[:5], strict=True)]
        assert all(-5 < c < 1 for c in cut) and sum(cut) == 0


def test_c31_an_entry_of_solver_size_beside_a_zero_has_no_finite_epsilon() -> None:
    """10^-10 beside an exact 0 is told as infinite, not as what a tolerance of 10^-6 would make of it."""
    channel = Channel.of_matrix([[1 - 1e-10, 1e-10], [1.0, 0.0]], td.Domain(v=td.Integer(0, 1)))
    assert channel.epsilon(td.Full()) == float("inf")


# C32: exact draws


def test_c32_outputs_of_probability_zero_never_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the first, the last and every boundary word in place of random ones."""
    words = [w for s in range(8) for w in (s << 61, (s << 61) - 1, (s << 61) + 1) if 0 <= w < 1 << 64]
    words.append((1 << 64) - 1)
    supply = np.resize(np.array(words, dtype=np.uint64), 4096)
    monkeypatch.setattr("os.urandom", lambda n: supply.tobytes()[:n])
    for cell in range(4):
        found = set(QUARTERS.law.draw(np.full(len(supply), cell)).tolist())
        assert found == set(np.flatnonzero(QUARTERS.matrix[cell]).tolist())


def test_c32_an_output_less_likely_than_any_word_is_still_there() -> None:
    """2^-200 is not rounded away: it comes when the bits say so."""
    law = Law.of([[1.0, 2.0**-200]])
    assert law.exact_row(0)[1] == Fraction(1, 2**200)
    first, spare = np.array([0]), np.array([int(law._choices.tops[0]) << 63], dtype=np.uint64)
    ends = {int(law._choices.outcomes(first, spare, more)[0]) for more in (lambda: 0, lambda: 2**64 - 1)}
    assert ends == {0, 1}


def test_c32_no_float_generator_draws_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bit of a released row comes from the operating system, through the noise module."""
    asked: list[int] = []
    real = noise._entropy

    def spy(count: int) -> bytes:
        asked.append(count)
        return real(count)

    monkeypatch.setattr(noise, "_entropy", spy)
    state = np.random.get_state()[1].tolist()  # type: ignore[index]
    apply(QUARTERS, {"v": np.zeros(1000, np.int64)})
    assert sum(asked) >= 1000  # half a word to draw each row, half a word to place it
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index]


# C33: many rows of one person


def test_c33_permanent_answers_are_by_id_and_epoch_never_by_value(tmp_path: Path) -> None:
    """Whatever 40 rows of a person hold, and however often they are released, one answer leaves."""
    rows = {"id": ["p"] * 40, "v": list(range(4)) * 10}
    table = td.Table(rows, FOUR)
    with Permanent.open(tmp_path / "store") as store:
        lasting = Lasting(store, "id", "2025")
        seen = {
            v
            for _ in range(5)
            for v in applied(table, [Target(QUARTERS, ("v",))], (), lasting)["v"].to_pylist()
        }
    assert len(seen) == 1


def test_c33_without_permanent_answers_every_row_is_drawn_anew() -> None:
    """The same row released each day tells more each day: that is what the charge per row is for."""
    rows = {"v": [0] * 64}
    assert len(set(apply(QUARTERS, rows)["v"].to_pylist())) > 1


# Constant and dictionary-encoded columns


def _constant(form: str, folder: Path) -> Any:
    """The value 0 in 40,000 rows, in the forms that engines like to look at once."""
    n = 40_000
    if form == "dictionary":
        return pa.table(
            {"v": pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), pa.array(["0", "3"]))}
        )
    if form == "categories":
        return pd.DataFrame({"v": pd.Categorical(["0"] * n, categories=["3", "0"])})
    if form == "doubles":
        return pa.table({"v": np.zeros(n)})
    path = folder / "constant.parquet"
    pq.write_table(pa.table({"v": np.zeros(n, np.int32)}), path, use_dictionary=True)
    return path


@pytest.mark.parametrize("form", ["dictionary", "categories", "doubles", "parquet"])
def test_a_constant_column_is_drawn_row_by_row(form: str, tmp_path: Path) -> None:
    """Chi-squared of the outputs, and of pairs that follow each other in the order they were drawn in, at 1e-9."""
    domain = td.Domain(v=td.Numeric(0, 4, cells=4)) if form == "doubles" else FOUR
    channel = Channel(domain, QUARTERS.law)
    drawn: list[np.ndarray] = []
    real = Law.draw

    def spy(law: Law, cells: np.ndarray) -> np.ndarray:
        assert not cells.any()
        drawn.append(real(law, cells))
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Law, "draw", spy)
        found = apply(channel, _constant(form, tmp_path))["v"].to_numpy()
    assert len(found) == 40_000
    before = np.concatenate(drawn)
    law = np.array([0.5, 0.25, 0.125, 0.125])
    released = np.bincount(np.unique(found, return_inverse=True)[1], minlength=4)
    for counts in (np.bincount(before, minlength=4), released):
        assert ((counts - law * 40_000) ** 2 / (law * 40_000)).sum() < chi2.isf(1e-9, 3)
    for sequence in (before, np.unique(found, return_inverse=True)[1]):
        for lag in (1, 2, 4096, 8192):  # neighbours, and rows at the same place of two parts
            pairs = np.zeros((4, 4))
            np.add.at(pairs, (sequence[:-lag], sequence[lag:]), 1)
            expected = np.outer(law, law) * pairs.sum()
            assert ((pairs - expected) ** 2 / expected).sum() < chi2.isf(1e-9, 15)


def test_dictionaries_say_nothing_of_the_rows() -> None:
    """All declared outputs in declared order, whichever were drawn; kept columns come without the source's dictionary."""
    sex = td.Domain(sex=td.Categorical(["a", "b", "c"]))
    honest = Channel.of_matrix(np.eye(3), sex)
    region = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1], pa.int8()), pa.array([CANARY, "n"]))
    found = apply(honest, pa.table({"sex": ["c", "c", "b"], "region": region}), keep=["region"])
    assert found["sex"].chunk(0).dictionary.to_pylist() == ["a", "b", "c"]
    assert found["region"].type == pa.string()
    assert all(
        CANARY.encode() not in buffer.to_pybytes()
        for c in found["region"].chunks
        for buffer in c.buffers()
        if buffer
    )


# What leaves


def test_a_column_that_is_not_named_never_leaves(tmp_path: Path) -> None:
    rows = pa.table({"v": [0, 1, 2], "name": [CANARY] * 3, "keep": ["x", "y", "z"]}).replace_schema_metadata(
        {"note": CANARY}
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path)
    for source in (rows, path, rows.to_pandas(), rows.to_pydict()):
        found = apply(QUARTERS, source, keep=["keep"])
        assert found.column_names == ["v", "keep"]
        for form in ("parquet", "csv"):
            write_table(found, tmp_path / f"out.{form}")
            assert CANARY.encode() not in (tmp_path / f"out.{form}").read_bytes()


def test_files_of_rows_carry_no_statistics_and_no_metadata(tmp_path: Path) -> None:
    """The written bytes depend on the rows that are written and on nothing else."""
    domain = td.Domain(home=td.Point("x", "y", box=((0, 64), (0, 64)), cell=1, metric="planar"))
    side = np.arange(-63, 64)
    law = np.exp(-np.hypot(side[:, None], side))
    made = np.random.default_rng(3)
    rows = pa.table(
        {"x": made.random(5000) * 64, "y": made.random(5000) * 64, "r": made.integers(0, 9, 5000)}
    )
    found = apply(Channel(domain, Shift.of(law / law.sum())), rows, keep=["r"])
    write_table(found, tmp_path / "a.parquet")
    stored = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert not (stored.metadata or {})
    for group in range(stored.num_row_groups):
        for column in range(stored.num_columns):
            assert stored.row_group(group).column(column).statistics is None
    write_table(pa.table({n: found[n].to_pylist() for n in found.column_names}), tmp_path / "plain.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "plain.parquet"))
    write_table(found.replace_schema_metadata({"a": CANARY}), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_the_order_of_the_output_does_not_depend_on_the_order_of_the_input() -> None:
    """Sorted rows, honest channel: ranks of the output are uncorrelated with places, and the first place is anybody's."""
    wide = td.Domain(v=td.Integer(0, 999))
    honest = Channel.of_matrix(np.eye(1000), wide)
    table = {"v": np.arange(1000), "r": np.arange(1000)}
    firsts = set()
    for _ in range(4):
        found = apply(honest, table, keep=["r"])
        values, kept = found["v"].to_numpy(), found["r"].to_numpy()
        assert np.array_equal(values, kept) and len(set(values.tolist())) == 1000
        # Both correlations have a standard deviation of 1/31.6; at 1e-9 they stay within 6.2 of them.
        assert abs(np.corrcoef(values, np.arange(1000))[0, 1]) < 6.2 / 31.6
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 6.2 / 31.6
        firsts.add(int(values[0]))
    assert len(firsts) > 1  # one and the same with probability 10^-9


def test_two_runs_differ() -> None:
    rows = {"v": np.zeros(200, np.int64)}
    one, two = (apply(QUARTERS, rows)["v"].to_pylist() for _ in range(2))
    assert one != two  # equal with probability below 10^-90


# What is said


@pytest.mark.parametrize("stage", ["missing", "id", "engine", "keep"])
def test_c35_no_value_reaches_an_error(stage: str, tmp_path: Path) -> None:
    """A text that stands only in the data is in no message, whatever fails and with everything that led to it."""
    sex = td.Domain(sex=td.Categorical(["f", "m"]))
    channel = Channel.of_matrix(np.full((2, 2), 0.5), sex)
    path: Any = tmp_path / "rows.parquet"
    rows = {"sex": ["f", CANARY if stage == "missing" else "m"], "id": [CANARY, None]}
    pq.write_table(pa.table(rows), path)
    keep: list[str] = []
    if stage == "engine":
        data = bytearray(path.read_bytes())
        at = data.index(CANARY.encode())
        data[at - 20 : at] = b"\xff" * 20
        path.write_bytes(bytes(data))
        keep = ["id"]
    with pytest.raises(TetraodonError) as caught:
        if stage == "id":
            with Permanent.open(tmp_path / "store") as store:
                applied(td.Table(path, sex), [Target(channel, ("sex",))], (), Lasting(store, "id", "1"))
        apply(channel, path, keep=["nobody"] if stage == "keep" else keep)
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in f"{error} {error.args}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_c35_nothing_that_is_held_shows_a_value(tmp_path: Path) -> None:
    table = td.Table({"v": [3, 3], "id": [CANARY, "x"]}, FOUR)
    (part,) = table.rows(keep=["id"], ident="id")
    with Permanent.open(tmp_path / "store") as store:
        lasting = Lasting(store, "id", "1")
        applied(table, [Target(QUARTERS, ("v",))], (), lasting)
        for thing in (table, part, store, lasting, QUARTERS, Target(QUARTERS, ("v",)), table.codes()):
            assert CANARY not in repr(thing)


@pytest.mark.parametrize("stage", ["draw", "order", "store"])
def test_c35_no_row_is_in_a_traceback(stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that record local variables see no cell, no output and no kept column when something fails half-way."""
    wide = td.Domain(v=td.Integer(0, 9999))
    flat = np.full((1, 10_000), 1e-4)
    channel = Channel(wide, Law.of(flat, row_of=np.zeros(10_000, np.int64)))
    table = td.Table(pa.table({"v": [8472] * 9, "id": ["a"] * 9, "text": [CANARY] * 9}), wide)

    def broken(*_: object) -> Any:
        raise RuntimeError("unforeseen")

    owner, name = {"draw": (Law, "draw"), "order": (apply_module, "shuffled"), "store": (Permanent, "_hash")}[
        stage
    ]
    monkeypatch.setattr(owner, name, broken)
    with Permanent.open(tmp_path / "store") as store, pytest.raises(RuntimeError) as caught:
        lasting = Lasting(store, "id", "1") if stage == "store" else None
        applied(table, [Target(channel, ("v",))], ["text"], lasting)
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "unforeseen" in shown and "apply.py" in shown
    assert "8472]" not in shown and "8472," not in shown.replace("[8472] * 9", "") and CANARY not in shown


def test_a_refusal_in_the_last_row_lets_nothing_out() -> None:
    """The refused row comes after the first batch was read: no table comes back, and no store is written."""
    column = np.zeros(1_100_000)
    column[-1] = np.nan
    with pytest.raises(DataError, match="column 'v' holds a value"):
        apply(Channel(td.Domain(v=td.Numeric(0, 4, cells=4)), QUARTERS.law), {"v": column})
