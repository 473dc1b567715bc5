"""What the ledger keeps of a release: rows in plain values and back, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tetraodon as td
from tetraodon.chain import canonical
from tetraodon.costs import MAX_PACKED, terms_from_spec, terms_spec
from tetraodon.errors import LedgerError
from tetraodon.sensitivity import rows
from tetraodon.sensitivity.stack import Term
from tetraodon.workload import resolve

DOMAIN = td.Domain(age=td.Integer(0, 199), sex=td.Categorical(["f", "m"], other="x"))
QUERY = td.CDF("age", by="sex", where={"sex": ["f", "m"], "age": (0, 149)})
SIZE = 150
STARTS = np.arange(0, 150, 2)
LAYERS: list[rows.Layer] = [
    rows.Prefixes(SIZE),
    rows.Prefixes(SIZE, np.arange(1, 151), 3),
    rows.Blocks(SIZE, weight=2),
    rows.Blocks(SIZE, STARTS, STARTS + 2, 5),
    rows.Ranges(SIZE),
    rows.Ranges(SIZE, np.array([0, 3]), np.array([5, 150])),
    rows.Matrix(np.arange(300).reshape(2, 150) - 100, 7),
    rows.Matrix(np.zeros((0, 150), dtype=np.int64)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda x: f"{type(x).__name__}-{x.weight}")
def test_rows_go_in_and_out(layer: rows.Layer) -> None:
    """Through the ledger's own text, and with every move of a record as it was."""
    resolved = resolve(QUERY, DOMAIN)
    told = terms_spec([Term(resolved, (layer, rows.Prefixes(SIZE)), Fraction(2, 7))])
    [found] = terms_from_spec(json.loads(canonical("cost", told)), DOMAIN)
    assert found.factor == Fraction(2, 7) and found.resolved.query.to_spec() == QUERY.to_spec()
    a, b = (x.ravel() for x in np.meshgrid(np.arange(SIZE + 1), np.arange(SIZE + 1)))
    assert (rows.difference(found.layers, a, b) == rows.difference((layer, rows.Prefixes(SIZE)), a, b)).all()


def test_regular_rows_take_little_room() -> None:
    domain = td.Domain(age=td.Integer(0, 999_999))
    starts = np.arange(0, 10**6, 16)
    layers = (rows.Prefixes(10**6, starts + 16), rows.Blocks(10**6, starts, starts + 16))
    told = terms_spec([Term(resolve(td.CDF("age"), domain), layers)])
    assert len(canonical("cost", told)) < 10_000


def test_rows_without_order_beyond_the_limit_are_not_kept() -> None:
    domain = td.Domain(age=td.Integer(0, 1023))
    noise = np.random.default_rng(1).integers(-(2**40), 2**40, (1024, 1024))
    assert noise.size * 4 > MAX_PACKED
    assert terms_spec([Term(resolve(td.CDF("age"), domain), (rows.Matrix(noise),))]) is None


def spoilt(**changes: Any) -> list[dict[str, Any]]:
    [told] = json.loads(canonical("cost", terms_spec([Term(resolve(QUERY, DOMAIN), (LAYERS[1],))])))
    [layer] = told["rows"]
    return [told | {"rows": [layer | changes]}]


@pytest.mark.parametrize(
    "told",
    [
        [{}],
        [{"query": {"cdf": "height"}, "rows": [], "factor": "1"}],
        spoilt(prefixes=10),
        spoilt(prefixes=-1),
        spoilt(prefixes="150"),
        spoilt(weight=True),
        spoilt(bounds=[1.5]),
        spoilt(bounds=[True]),
        spoilt(bounds={"count": 150, "zlib": "!"}),
        spoilt(bounds={"count": 10**9, "zlib": ""}),
        spoilt(bounds={"count": 3, "zlib": "eJxjYBgFo2AUAAAAoAAB"}),
    ],
)
def test_damaged_rows_are_refused(told: Any) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        terms_from_spec(told, DOMAIN)
