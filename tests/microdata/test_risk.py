"""Risk on textbook tables: k, l, t by hand, and who could be recognised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tetraodon.errors import DataError, SpecificationError
from tetraodon.microdata import risk as module
from tetraodon.microdata.risk import closeness, risk, risk_of

SALARY = [3, 4, 5, 6, 11, 8, 7, 9, 10]  # thousands
DISEASE = [
    "gastric ulcer", "gastritis", "stomach cancer", "gastritis", "flu", "bronchitis", "bronchitis", "pneumonia", "stomach cancer",
]  # fmt: skip


def patients() -> pa.Table:
    """Nine people in three classes by ZIP code and age: the table of Li, Li and Venkatasubramanian 2007."""
    zips = ["476**"] * 3 + ["4790*"] * 3 + ["476** "] * 3
    ages = ["2*"] * 3 + [">=40"] * 3 + ["3*"] * 3
    return pa.table({"zip": zips, "age": ages, "salary": SALARY, "disease": DISEASE})


def test_closeness_of_the_paper_by_hand() -> None:
    """Li et al. 2007, section 5: {3k, 4k, 5k} is 0.375 from the nine salaries, {6k, 8k, 11k} 0.167."""
    found = risk(patients(), ["zip", "age"], "salary")
    assert (found.rows, found.classes, found.k, found.l) == (9, 3, 3, 3)
    assert found.is_ordered and found.t == pytest.approx(0.375)
    one = risk_of(np.array([0] * 3 + [1] * 6), np.array([3, 5, 8, 0, 1, 2, 4, 6, 7]), is_ordered=True)
    assert one.t == pytest.approx(1 / 6)  # to 0.167: {6k, 8k, 11k} and, smaller, the other six
    assert found.entropy_l == pytest.approx(3.0)


def test_closeness_of_categories_is_total_variation() -> None:
    """Ulcer, gastritis, cancer at 1/3 each against 1/9, 2/9, 2/9 and 4/9 elsewhere: 1/2 (2/9 + 1/9 + 1/9 + 4/9) = 4/9.

    The other two classes have one value of share 1/9 and two of share 2/9 as well.
    """
    found = risk(patients(), ["zip", "age"], "disease")
    assert not found.is_ordered and found.t == pytest.approx(4 / 9)
    assert found.l == 3 and risk(patients(), ["zip", "age"], "disease", order=sorted(set(DISEASE))).is_ordered


def test_earth_movers_distance_equals_the_transport_programme() -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(4)
    for m in (2, 3, 6):
        p, q = rng.dirichlet(np.ones(m)), rng.dirichlet(np.ones(m))
        for is_ordered in (True, False):
            i, j = np.meshgrid(np.arange(m), np.arange(m), indexing="ij")
            price = abs(i - j) / (m - 1) if is_ordered else (i != j) * 1.0
            sums = np.concatenate([np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))])
            best = linprog(price.ravel(), A_eq=sums, b_eq=np.concatenate([p, q]), method="highs").fun
            assert closeness(p[None], q, is_ordered)[0] == pytest.approx(best)


def test_variety_by_hand() -> None:
    """A class of 8, 1 and 1 has three values but an entropy l of exp(0.639) = 1.895 only."""
    classes = np.repeat([0, 1], 10)
    values = np.array([0] * 8 + [1, 2] + [0, 1, 2, 3, 4] * 2)
    found = risk_of(classes, values)
    assert found.l == 3
    assert found.entropy_l == pytest.approx(np.exp(-(0.8 * np.log(0.8) + 0.2 * np.log(0.1))))
    assert risk_of(classes, classes).l == 1 and risk_of(classes, classes).entropy_l == pytest.approx(1.0)
    assert risk_of(classes, classes).t == pytest.approx(0.5)


def test_prosecutor_by_hand() -> None:
    """Classes of 1, 2, 2 and 5 rows: 1/f is 1, 1/2, 1/2 and 1/5; four classes for ten rows."""
    classes = np.repeat([0, 1, 2, 3], [1, 2, 2, 5])
    found = risk_of(classes, threshold=0.4)
    assert found.k == 1 and found.prosecutor == pytest.approx((1.0, 0.4, 0.5))
    assert found.journalist == found.prosecutor and found.marketer == pytest.approx(0.4)
    assert not found.has_population and found.l is None and found.t is None
    assert risk_of(classes, threshold=0.2).prosecutor[2] == pytest.approx(0.5)  # 1/5 is not above 1/5
    assert risk_of(classes, threshold=0.19).prosecutor[2] == pytest.approx(1.0)


def test_journalist_by_hand() -> None:
    """In the population the classes have 4, 2, 8 and 10 rows: 1/F by rows is (1/4 + 2/2 + 2/8 + 5/10)/10 = 0.2."""
    classes = np.repeat([0, 1, 2, 3], [1, 2, 2, 5])
    found = risk_of(classes, population=np.array([4, 2, 8, 10]))
    assert found.journalist == pytest.approx((0.5, 0.2, 0.3)) and found.marketer == pytest.approx(0.2)
    assert found.has_population and found.prosecutor[0] == 1.0
    with pytest.raises(DataError, match="lacks rows"):
        risk_of(classes, population=np.array([4, 1, 8, 10]))


def test_a_population_table_is_matched_by_values() -> None:
    table = pa.table({"sex": ["f", "m", "m"], "age": pa.array([30, 31, None])})
    everybody = pa.table(
        {
            "age": pa.array([31, 30, 30, None, 31, 99]),
            "sex": pa.array(["m", "f", "f", "m", "m", "f"]).dictionary_encode(),
            "name": list("abcdef"),
        }
    )
    found = risk(table, ["sex", "age"], population=everybody)
    assert found.prosecutor[0] == 1.0 and found.journalist == pytest.approx((1.0, (0.5 + 0.5 + 1) / 3, 1.0))
    with pytest.raises(DataError, match="lacks rows"):
        risk(table, ["sex", "age"], population=everybody.slice(4))
    with pytest.raises(DataError, match="convert"):
        risk(table, ["age"], population=pa.table({"age": ["31", "30"]}))
    with pytest.raises(SpecificationError, match="population"):
        risk(table, ["age", "sex"], population=everybody.drop_columns(["sex"]))


def test_frames_of_any_kind() -> None:
    table = patients()
    expected = risk(table, ["zip", "age"], "salary", population=table)
    frames: list[Any] = [
        table.to_pandas(), table.to_pandas().astype({"zip": "category"}), pl.from_arrow(table), table.to_pydict(),
        table.set_column(2, "salary", table["salary"].cast(pa.int16())),
    ]  # fmt: skip
    for frame in frames:
        for population in frames:
            assert risk(frame, ["zip", "age"], "salary", population=population) == expected
    with pytest.raises(SpecificationError, match="risk: a frame of"):
        risk(pd.Series([1, 2]), ["zip"])
    with pytest.raises(SpecificationError, match="population: a frame of"):
        risk(table, ["zip"], population=[1, 2])
    with pytest.raises(SpecificationError, match="'a' is there twice"):
        risk(pa.table([[1], [2]], names=["a", "a"]), ["a"])


def test_missing_quasi_identifiers_agree_with_each_other_only() -> None:
    table = pa.table({"zip": ["1", None, None, "1"]})
    assert risk(table, ["zip"]).k == 2 and risk(table, ["zip"]).classes == 2


def test_many_columns_and_blocks_equal_a_group_by(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    table = pa.table(
        {name: rng.integers(0, 3, 500) for name in ("a", "b", "c")} | {"s": rng.integers(0, 7, 500)}
    )
    classes: dict[tuple[int, ...], list[int]] = {}
    for *key, s in zip(*(table[n].to_pylist() for n in "abcs"), strict=True):
        classes.setdefault(tuple(key), []).append(s)
    whole = np.bincount(table["s"].to_numpy(), minlength=7) / 500
    laws = np.stack([np.bincount(c, minlength=7) / len(c) for c in classes.values()])
    monkeypatch.setattr(module, "_ENTRIES", 20)
    for order in (True, False):
        found = risk(table, ["a", "b", "c"], "s", order=order)
        assert found.classes == len(classes) and found.k == min(map(len, classes.values()))
        assert found.l == min(len(set(c)) for c in classes.values())
        assert found.t == pytest.approx(closeness(laws, whole, order).max())
        logs = np.log(np.where(laws > 0, laws, 1))
        assert found.entropy_l == pytest.approx(np.exp(-(laws * logs).sum(axis=1)).min())


def test_declared_orders() -> None:
    """Text in a declared order of four steps of which one does not occur: moves cost thirds."""
    table = pa.table({"q": ["x", "x", "y", "y"], "age": ["17-24", "17-24", "65+", "65+"]})
    steps = ["17-24", "25-44", "45-64", "65+"]
    assert risk(table, ["q"], "age", order=steps).t == pytest.approx(0.5)
    far = risk(table, ["q"], "age", order=["17-24", "65+", "a", "b"])
    assert far.t == pytest.approx(0.5 / 3) and far.is_ordered
    assert not risk(table, ["q"], "age").is_ordered and risk(table, ["q"], "age", order=True).is_ordered
    for order, error in (
        (steps[:2], DataError),
        ([*steps, "17-24"], SpecificationError),
        ([1, 2], SpecificationError),
    ):
        with pytest.raises(error):
            risk(table, ["q"], "age", order=order)


def test_refusals_name_no_value() -> None:
    table = patients()
    for wrong, error in (
        (lambda: risk(table, []), SpecificationError),
        (lambda: risk(table, "zip"), SpecificationError),
        (lambda: risk(table, ["zip", "zip"]), SpecificationError),
        (lambda: risk(table, ["zop"]), SpecificationError),
        (lambda: risk(table, ["zip"], "zip"), SpecificationError),
        (lambda: risk(table, ["zip"], "weight"), SpecificationError),
        (lambda: risk(table, ["zip"], threshold=1.5), SpecificationError),
        (lambda: risk(table.slice(0, 0), ["zip"]), DataError),
        (lambda: risk(pa.table({"a": [1], "s": pa.array([None], pa.int64())}), ["a"], "s"), DataError),
        (lambda: risk_of(np.array([0, 2])), SpecificationError),
        (lambda: risk_of(np.array([0, 1]), np.array([0])), SpecificationError),
        (lambda: risk_of(np.array([0, 1]), np.array([0, 3]), levels=3), SpecificationError),
        (lambda: risk_of(np.array([-1, 0])), SpecificationError),
        (lambda: risk_of(np.array([0, 0]), population=np.array([2.0])), SpecificationError),  # type: ignore[arg-type]
    ):
        with pytest.raises(error) as told:
            wrong()
        assert "476" not in str(told.value)


def test_words_say_when_there_is_no_population() -> None:
    told = risk(patients(), ["zip"], "salary").words()
    assert "no population given" in told and "upper end" in told and "k = 3" in told and "ordered" in told
    told = risk(patients(), ["zip"], "salary", population=patients()).words()
    assert "no population" not in told and "upper end" not in told
