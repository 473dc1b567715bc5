"""Utility: 0 on the original itself, by hand on small tables, and models that know less from a table that says less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from tetraodon.errors import DataError, SpecificationError
from tetraodon.microdata.training import Trained, trained
from tetraodon.microdata.utility import Pair, utility


def people(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    job = np.where(rng.random(rows) < age / 100, "old job", "young job")
    return pa.table(
        {
            "age": age,
            "income": 100.0 * age + rng.normal(0, 300, rows),
            "job": job.tolist(),
            "member": (rng.random(rows) < 0.3).tolist(),
        }
    )


def shuffled(table: pa.Table, seed: int, columns: list[str] | None = None) -> pa.Table:
    """Rows in another order, or only some columns in an order of their own."""
    order = pa.array(np.random.default_rng(seed).permutation(table.num_rows))
    if columns is None:
        return table.take(order)
    return pa.table({n: table[n].take(order) if n in columns else table[n] for n in table.column_names})


def test_the_same_rows_in_another_order_are_0_apart() -> None:
    table = people(300)
    found = utility(table, shuffled(table, 5))
    assert [name for name, _ in found.marginals] == ["age", "income", "job", "member"]
    assert all(distance == pytest.approx(0, abs=1e-12) for _, distance in found.marginals)
    assert len(found.pairs) == 6 and all(
        distance == pytest.approx(0, abs=1e-12) for *_, distance in found.pairs
    )
    assert [c[:2] for c in found.correlations] == [("age", "income")]
    assert found.correlations[0][2] == pytest.approx(0, abs=1e-12) and found.trained is None


def test_margins_by_hand() -> None:
    one = pa.table({"x": [0, 0, 1, 3], "c": ["a", "a", "b", None]})
    other = pa.table({"x": [0, 1, 1, 4], "c": ["a", "b", "b", "d"]})
    # Sorted and matched: |0-0| + |0-1| + |1-1| + |3-4| over 4 rows and a range of 4; categories ½(¼ + ¼ + ¼ + ¼).
    found = dict(Pair.of(one, other).marginals())
    assert found == pytest.approx({"x": 2 / 4 / 4, "c": 0.5})
    apart = Pair.of(pa.table({"x": [1.0, 1.0], "c": ["a", "a"]}), pa.table({"x": [2.0], "c": ["b"]}))
    assert dict(apart.marginals()) == pytest.approx({"x": 1.0, "c": 1.0})
    flat = pa.table({"x": [7, 7]})
    assert Pair.of(flat, flat).marginals() == (("x", 0.0),)


def test_pairs_see_what_margins_do_not() -> None:
    """Two columns that agree, against the same with one of them turned over: margins are alike, two-way tables are not."""
    one = pa.table({"a": ["x", "y"] * 20, "b": ["x", "y"] * 20})
    other = pa.table({"a": ["x", "y"] * 20, "b": ["y", "x"] * 20})
    pair = Pair.of(one, other)
    assert [d for _, d in pair.marginals()] == [0.0, 0.0] and pair.pairs() == (("a", "b", 1.0),)
    x = np.arange(40.0)
    up, down = pa.table({"a": x, "b": x}), pa.table({"a": x, "b": x[::-1].copy()})
    found = Pair.of(up, down)
    assert found.pairs(bins=2) == (("a", "b", 1.0),)
    assert found.correlations() == (("a", "b", pytest.approx(-2.0)),)


def test_bins_are_of_the_original_and_what_is_outside_is_apart() -> None:
    one, other = pa.table({"x": [1, 2, 3, 4], "c": ["a"] * 4}), pa.table({"x": [0, 1, 4, 5], "c": ["a"] * 4})
    assert Pair.of(one, other).pairs(bins=2) == (("x", "c", 0.5),)
    inside = pa.table({"x": [1, 1, 4, 4], "c": ["a"] * 4})
    assert Pair.of(one, inside).pairs(bins=2) == (("x", "c", 0.0),)
    ties = pa.table({"x": [0] * 9 + [5], "c": ["a"] * 10})
    assert Pair.of(ties, ties).pairs() == (("x", "c", 0.0),)


def test_sparse_and_dense_tables_agree() -> None:
    rng = np.random.default_rng(3)
    told = {
        "a": rng.integers(0, 50, 60).astype(str).tolist(),
        "b": rng.integers(0, 50, 60).astype(str).tolist(),
    }
    one, other = pa.table(told), pa.table({"a": told["a"], "b": told["b"][::-1]})
    every: dict[tuple[str, str], float] = {}
    for sign, table in ((1, one), (-1, other)):
        for cell in zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True):
            every[cell] = every.get(cell, 0.0) + sign / 60
    assert Pair.of(one, other).pairs()[0][2] == pytest.approx(sum(map(abs, every.values())) / 2)


def test_a_constant_column_correlates_with_none() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": [1e9, 1e9, 1e9], "z": [3.0, 2.0, 1.0]})
    assert [c[2] for c in Pair.of(table, table).correlations()] == [0.0, 0.0, 0.0]
    moved = pa.table({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0], "z": [3.0, 2.0, 1.0]})
    assert [c[2] for c in Pair.of(table, moved).correlations()] == pytest.approx([1.0, 0.0, -1.0])


def test_columns_of_another_kind() -> None:
    one, other = people(50), people(50).set_column(0, "age", pa.array(["18-30"] * 50))
    assert Pair.of(one, other).names == ("income", "job", "member")
    for wrong, error in (
        (lambda: utility(one, other, ["age"]), SpecificationError),
        (lambda: utility(one, other, ["wage"]), SpecificationError),
        (lambda: utility(one, other, []), SpecificationError),
        (lambda: utility(one, other, ["job", "job"]), SpecificationError),
        (lambda: utility(one, one, bins=1), SpecificationError),
        (lambda: utility(one, one, folds=3), SpecificationError),
        (lambda: utility(one, one.slice(0, 0)), DataError),
        (lambda: utility(pa.table({"x": [1.0, None]}), pa.table({"x": [1.0, 2.0]})), DataError),
        (lambda: utility(pa.table({"x": [1.0, np.nan]}), pa.table({"x": [1.0, 2.0]})), DataError),
    ):
        with pytest.raises(error):
            wrong()
    coded = pa.table({"c": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert Pair.of(coded, pa.table({"c": ["b", "a", "a"]})).marginals() == (("c", 0.0),)


def test_frames_of_any_kind() -> None:
    table, other = people(200), shuffled(people(200), 4, ["income"])
    settings = {"target": "age", "folds": 2, "repeats": 1}
    expected = utility(table, other, **settings, rng=np.random.default_rng(1))
    for one, two in (
        (table.to_pandas(), other),
        (pl.from_arrow(table), other.to_pandas()),
        (table.to_pydict(), pl.from_arrow(other)),
    ):
        assert utility(one, two, **settings, rng=np.random.default_rng(1)) == expected
    with pytest.raises(SpecificationError, match="released: a frame of"):
        utility(table, 7)


def kept(found: Trained) -> None:
    assert found.rounds == 3 and found.released_interval[0] <= found.on_released <= found.released_interval[1]
    assert found.difference == pytest.approx(found.on_released - found.on_original)


@pytest.mark.parametrize("model", ["boosting", "forest"])
def test_models_of_a_good_release_do_as_well_and_of_a_bad_one_as_none(model: str) -> None:
    table = people(600)
    settings = {"model": model, "folds": 3, "repeats": 1}
    good = trained(
        table, shuffled(table, 1), "income", ["age", "job"], rng=np.random.default_rng(2), **settings
    )
    bad = trained(
        table,
        shuffled(table, 1, ["income"]),
        "income",
        ["age", "job"],
        rng=np.random.default_rng(2),
        **settings,
    )
    assert good.measure == "mean absolute error" and good.train_rows == 400 and good.test_rows == 200
    for found in (good, bad):
        kept(found)
        assert found.on_original < 0.5 * found.baseline
    assert abs(good.difference) < 0.2 * good.on_original
    assert bad.difference_interval[0] > 0 and bad.on_released > 0.8 * bad.baseline


def test_accuracy_of_categories() -> None:
    rng = np.random.default_rng(6)
    x = rng.random(900)
    table = pa.table({"x": x, "y": np.where(x > 0.3, "up", "down").tolist(), "z": rng.random(900)})
    settings = {"folds": 3, "repeats": 1, "rng": np.random.default_rng(0)}
    found = utility(table, shuffled(table, 2), target="y", **settings).trained
    assert found is not None and found.measure == "accuracy"
    kept(found)
    assert (
        found.on_released > 0.97
        and found.on_original > 0.97
        and found.baseline == pytest.approx(0.7, abs=0.05)
    )
    alone = trained(table, pa.table({"x": x, "y": ["up"] * 900, "z": x}), "y", **settings)
    assert alone.on_released == pytest.approx(
        alone.baseline
    )  # a release that says "up" of everybody teaches that
    assert "Computed from private rows" in utility(table, table).words()
    assert "difference" in utility(table, table, target="y", **settings).words()


def test_aligned_rows_keep_held_out_people_out() -> None:
    """The target is noise that a forest can only remember: with random rows of the release it has seen the test people."""
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.random(400), "y": rng.random(400)})
    settings = {"model": "forest", "folds": 2, "repeats": 2}
    held, free = (
        trained(table, table, "y", ["x"], is_aligned=a, rng=np.random.default_rng(3), **settings)
        for a in (True, False)
    )
    assert held.on_released == pytest.approx(held.on_original, rel=0.1)
    assert free.on_released < 0.85 * free.on_original
    with pytest.raises(SpecificationError, match="equally many"):
        trained(table, table.slice(1), "y", ["x"], is_aligned=True)


def test_training_refusals() -> None:
    table = people(60)
    general = table.set_column(2, "job", pa.array(["any job"] * 60))
    for wrong, error in (
        (lambda: trained(table, table, "wage"), SpecificationError),
        (lambda: trained(table, table, "job", ["job"]), SpecificationError),
        (lambda: trained(table, table, "job", []), SpecificationError),
        (lambda: trained(table, table, "job", model="net"), SpecificationError),
        (lambda: trained(table, table, "job", folds=1), SpecificationError),
        (lambda: trained(table, table, "job", level=1.0), SpecificationError),
        (lambda: trained(table.slice(0, 5), table, "job"), DataError),
        (lambda: trained(table, general, "job"), DataError),
    ):
        with pytest.raises(error) as told:
            wrong()
        assert "any job" not in str(told.value) and "old job" not in str(told.value)


def test_words_name_the_worst() -> None:
    table = people(200)
    told = utility(table, shuffled(table, 4, ["income"])).words()
    assert "'age' and 'income'" in told and "private" in told
