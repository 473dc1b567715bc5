"""Features read the same from every library, refuse what cannot be compared, and distances are those of the textbook."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.spatial.distance import jensenshannon

from tetraodon.errors import DataError, SpecificationError
from tetraodon.microdata import distances
from tetraodon.microdata.features import METRICS, Features, apart, between

TEAMS = ["red", "blue", "red", "green", "blue", "blue"]


def mixed(rows: int = 40, seed: int = 0) -> Features:
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "height": rng.normal(170, 10, rows),
            "rooms": rng.integers(0, 4, rows),
            "same": np.full(rows, 7),
            "team": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)],
            "member": rng.random(rows) < 0.5,
        }
    )
    return Features.of_arrow(table, ["team", "height", "member", "rooms", "same"])


def counts(rows: int = 40, columns: int = 7, seed: int = 0, rate: float = 0.8) -> Features:
    rng = np.random.default_rng(seed)
    data = rng.poisson(rate, (rows, columns)).astype(float)
    data[np.arange(rows), rng.integers(0, columns, rows)] += 1
    return Features.of_arrow(
        pa.table({f"c{j}": data[:, j] for j in range(columns)}), [f"c{j}" for j in range(columns)]
    )


def brute(features: Features, i: int, j: int, metric: str) -> float:
    """The definition, in plain Python."""
    x, y = features.numbers[i].tolist(), features.numbers[j].tolist()
    c, d = features.codes[i].tolist(), features.codes[j].tolist()
    other = sum(a != b for a, b in zip(c, d, strict=True))
    columns = len(x) + len(c)
    if metric == "gower":
        spread = (features.numbers.max(axis=0) - features.numbers.min(axis=0)).tolist()
        parts = [abs(a - b) / r if r else 0.0 for a, b, r in zip(x, y, spread, strict=True)]
        return (math.fsum(parts) + other) / columns
    if metric == "hamming":
        return (sum(a != b for a, b in zip(x, y, strict=True)) + other) / columns
    if metric == "euclidean":
        return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)) + other)
    return float(jensenshannon(x, y)) ** 2  # natural logarithm; scipy takes the root


@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_their_definition(metric: str) -> None:
    features = counts() if metric == "jensen-shannon" else mixed()
    every = np.arange(features.rows)
    truth = np.array([[brute(features, i, j, metric) for j in every] for i in every])
    assert between(features, every, every, metric) == pytest.approx(truth, abs=1e-12)
    a, b = (part.ravel() for part in np.meshgrid(every, every, indexing="ij"))
    assert apart(features, a, b, metric) == pytest.approx(truth.ravel(), abs=1e-12)
    assert np.diag(truth).max() == 0 and truth.max() > 0.2
    assert truth.max() <= distances.highest(metric)


@pytest.mark.parametrize("metric", METRICS)
def test_chunks_make_no_difference(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = counts(90, rate=0.2) if metric == "jensen-shannon" else mixed(90)
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 90, 300), rng.integers(0, 90, 300)
    whole, blocks = apart(features, a, b, metric), between(features, a, b, metric)
    monkeypatch.setattr(distances, "PAIRS", 7)
    monkeypatch.setattr(distances, "TILE", (5, 11))
    assert np.array_equal(apart(features, a, b, metric), whole)
    assert between(features, a, b, metric) == pytest.approx(blocks, abs=1e-14)
    assert between(features, a, b[:0], metric).shape == (300, 0)


def test_corners_of_jensen_shannon() -> None:
    table = pa.table({"a": [1, 0, 3, 1], "b": [0, 5, 0, 1]})
    features = Features.of_arrow(table, ["a", "b"])
    found = between(features, np.arange(4), np.arange(4), "jensen-shannon")
    assert found[0, 1] == pytest.approx(math.log(2), abs=1e-15) and found[0, 2] == 0  # scale plays no part
    assert found[0, 3] == pytest.approx(1.5 * math.log(2) - 0.75 * math.log(3), abs=1e-15)


def test_gower_takes_numbers_beyond_the_range_as_its_end() -> None:
    fitted = Features.of_arrow(pa.table({"n": [0.0, 10.0], "one": [3, 3]}), ["n", "one"])
    new = fitted.encode(pa.table({"n": [-50.0, 5.0, 99.0], "one": [3, 4, 3]}))
    assert between(new, np.arange(3), np.arange(3), "gower")[0].tolist() == [0.0, 0.25, 0.5]
    declared = Features.of_arrow(pa.table({"n": [0, 10]}), ["n"], ranges={"n": (0, 40)})
    assert apart(declared, np.array([0]), np.array([1]), "gower").tolist() == [0.25]
    assert apart(fitted, np.array([0]), np.array([2]), "gower", new).tolist() == [0.5]


def libraries() -> list[tuple[str, pa.Table]]:
    frame = {"team": TEAMS, "n": [1.5, 2.0, 3.0, 4.0, 5.0, 6.0]}
    codes = pa.DictionaryArray.from_arrays(
        pa.array([3, 0, 3, 1, 0, 0], pa.uint8()), pa.array(["blue", "green", "unused", "red"])
    )
    plain = pd.DataFrame(frame)
    categories = pd.Categorical(TEAMS, categories=["red", "none", "green", "blue"], ordered=True)
    return [
        ("pandas", pa.Table.from_pandas(plain, preserve_index=False)),
        ("pandas categories", pa.Table.from_pandas(plain.assign(team=categories), preserve_index=False)),
        ("polars", pl.DataFrame(frame).to_arrow()),
        ("polars categories", pl.DataFrame(frame, schema_overrides={"team": pl.Categorical}).to_arrow()),
        ("arrow", pa.table(frame)),
        ("arrow dictionary", pa.table({"team": codes, "n": frame["n"]})),
        ("chunks", pa.concat_tables([pa.table(frame).slice(0, 2), pa.table(frame).slice(2)])),
    ]


def test_every_library_gives_the_same() -> None:
    for name, table in libraries():
        found = Features.of_arrow(table, ["team", "n"])
        assert found.codes[:, 0].tolist() == [2, 0, 2, 1, 0, 0], name
        assert found.levels == (3,) and found.numbers[:, 0].tolist() == [1.5, 2, 3, 4, 5, 6], name
        assert found.to_arrow().to_pydict() == {"team": TEAMS, "n": [1.5, 2.0, 3.0, 4.0, 5.0, 6.0]}, name
        for _, other in libraries():
            assert np.array_equal(found.encode(other).codes, found.codes)


def test_kinds_of_columns() -> None:
    grades = pa.array([3, 1, 3], pa.int64()).dictionary_encode()
    table = pa.table(
        {
            "flag": [True, False, True],
            "small": pa.array([1, 2, 3], pa.uint8()),
            "money": pa.array([Decimal("1.25"), Decimal("2.50"), Decimal("3.00")]),
            "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "grade": grades,
        }
    )
    found = Features.of_arrow(table, table.column_names)
    assert found.number_names == ("small", "money", "single") and found.code_names == ("flag", "grade")
    assert found.numbers.tolist() == [[1, 1.25, 0.5], [2, 2.5, 1.5], [3, 3, 2.5]]
    assert found.codes.tolist() == [[1, 1], [0, 0], [1, 1]]
    again = found.encode(table.set_column(4, "grade", pa.array([1, 3, 3], pa.int32())))
    assert again.codes[:, 1].tolist() == [0, 1, 1]
    assert found.take(np.array([2, 0])).numbers[:, 0].tolist() == [3, 1]
    with pytest.raises(ValueError):
        found.numbers[0, 0] = 9


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1.0, None], "nulls"),
        ([1.0, float("nan")], "NaN"),
        ([1.0, float("inf")], "infinity"),
        ([1.0, 1e300], "1e100"),
        (["x", None], "nulls"),
        (pa.array([0, 1], pa.date32()), "date32"),
        (pa.array([[1], [2]]), "list"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None])), "nulls"),
        (pa.array([None, None]), "nulls"),
        (pa.array([1.5, float("nan")]).dictionary_encode(), "not a finite"),
    ],
)
def test_what_no_metric_compares_is_refused_by_name(column: Any, words: str) -> None:
    table = pa.table({"fine": [1, 2], "bad": column})
    with pytest.raises(DataError, match=f"'bad'.*{words}") as told:
        Features.of_arrow(table, ["fine", "bad"])
    assert "1e+300" not in str(told.value)


def test_declarations_that_are_wrong() -> None:
    table = pa.table({"n": [1, 2], "team": ["x", "y"]})
    for names, words in [
        ([], "at least one"),
        ("n", "a list"),
        (["n", "n"], "twice"),
        (["n", "tea"], "Did you mean 'team'"),
    ]:
        with pytest.raises(SpecificationError, match=words):
            Features.of_arrow(table, names)
    for ranges, words in [
        ({"m": (0, 1)}, "no column of numbers 'm'"),
        ({"team": (0, 1)}, "'team'"),
        ({"n": (1, 0)}, "'n'"),
        ({"n": 3}, "'n'"),
        ({"n": (0, math.nan)}, "'n'"),
    ]:
        with pytest.raises(SpecificationError, match=words):
            Features.of_arrow(table, ["n", "team"], ranges=ranges)  # type: ignore[arg-type]
    with pytest.raises(SpecificationError, match="twice"):
        Features.of_arrow(pa.table([[1], [2]], names=["n", "n"]), ["n"])
    with pytest.raises(DataError, match="no rows"):
        Features.of_arrow(table.slice(0, 0), ["n"])


def test_unseen_categories_and_other_kinds_at_encode() -> None:
    fitted = Features.of_arrow(pa.table({"n": [1, 2], "team": ["x", "y"]}), ["n", "team"])
    for table, column in [
        (pa.table({"n": [1], "team": ["secret"]}), "team"),
        (pa.table({"n": [1], "team": [5]}), "team"),
        (pa.table({"n": ["secret"], "team": ["x"]}), "n"),
        (pa.table({"n": [None], "team": ["x"]}), "n"),
    ]:
        with pytest.raises(DataError, match=f"'{column}'") as told:
            fitted.encode(table)
        assert "secret" not in str(told.value)
    with pytest.raises(SpecificationError, match="'team'"):
        fitted.encode(pa.table({"n": [1]}))
    grades = Features.of_arrow(pa.table({"g": pa.array([1, 2]).dictionary_encode()}), ["g"])
    for unseen in (3, 1.5):
        with pytest.raises(DataError, match="'g'"):
            grades.encode(pa.table({"g": [unseen]}))
    assert fitted.encode(pa.table({"team": ["y"], "n": [7.5]})).numbers.tolist() == [[7.5]]
    assert fitted.encode(pa.table({"n": [1], "team": ["x"]}).slice(0, 0)).rows == 0


def test_metrics_that_do_not_fit() -> None:
    with pytest.raises(SpecificationError, match="Did you mean 'gower'"):
        apart(mixed(), np.array([0]), np.array([1]), "gowers")
    with pytest.raises(SpecificationError, match=r"jensen-shannon.*'team'"):
        distances.check_features(mixed(), "jensen-shannon")
    negative = Features.of_arrow(pa.table({"fine": [1, 1], "low": [-1, 3]}), ["fine", "low"])
    with pytest.raises(DataError, match=r"jensen-shannon.*'low'"):
        distances.check_features(negative, "jensen-shannon")
    nothing = Features.of_arrow(pa.table({"a": [1, 0], "b": [2, 0]}), ["a", "b"])
    for refuse in (
        lambda: distances.check_features(nothing, "jensen-shannon"),
        lambda: between(nothing, np.array([0]), np.array([1]), "jensen-shannon"),
    ):
        with pytest.raises(DataError, match=r"jensen-shannon.*0 in every column"):
            refuse()


def test_nothing_private_is_shown() -> None:
    shown = repr(Features.of_arrow(pa.table({"n": [123456, 2], "team": ["hidden", "y"]}), ["n", "team"]))
    assert shown == "Features(1 number, 1 code: n, team)"
