"""The cost function of a release in plain values, as the ledger keeps it, and back.

A release observes integer rows A over the groups and positions of queries, with noise. What is kept of each set of rows:
the query, the rows (numbers beyond a few are packed) and the exact factor that turns weighted moves into loss, so that
c(x, y) = Σ_terms factor · Σ_rows weight · |A[r, x] − A[r, y]| (squared for Gaussian noise) can be computed for any pair of
values, under policies that nobody had thought of when the release was made. Rows that went out exactly are kept beside
them: they cost nothing where no edge moves them, and no finite amount where one does.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from .axes import Ints
from .domain import Domain
from .errors import LedgerError, Unsupported
from .queries import query_from_spec
from .sensitivity import rows
from .sensitivity.joint import Joint
from .sensitivity.ratios import Listed, Ratios
from .sensitivity.rows import Layer
from .sensitivity.stack import Term
from .workload import resolve

FEW = 8
MAX_NUMBERS = 2**25
MAX_PACKED = 2**21


def terms_spec(terms: Sequence[Term]) -> list[dict[str, Any]] | None:
    """Terms in plain values; None where they are too large to keep (more than 2 MiB packed).

    >>> from .attributes import Integer
    >>> from .queries import CDF
    >>> domain = Domain(age=Integer(0, 9))
    >>> term = Term(resolve(CDF("age"), domain), (rows.Prefixes(10),), Fraction(1, 2))
    >>> terms_spec([term])
    [{'query': {'cdf': 'age'}, 'rows': [{'prefixes': 10, 'weight': 1}], 'factor': Fraction(1, 2)}]
    """
    told, size = [], 0
    for term in terms:
        if any(_numbers(layer) > MAX_NUMBERS for layer in term.layers):
            return None
        layers = [_layer_spec(layer) for layer in term.layers]
        size += sum(
            len(part["zlib"]) for layer in layers for part in layer.values() if isinstance(part, Mapping)
        )
        if size > MAX_PACKED:
            return None
        told.append({"query": term.resolved.query.to_spec(), "rows": layers, "factor": Fraction(term.factor)})
    return told


def terms_from_spec(
    told: Sequence[Mapping[str, Any]], domain: Domain, by_record: bool = False
) -> tuple[Term, ...]:
    """The terms that ``terms_spec`` wrote, over the same domain.

    Raises:
        LedgerError: what is kept does not fit the domain, or is damaged.
    """
    try:
        return tuple(_term(each, domain, by_record) for each in told)
    except (ArithmeticError, LookupError, TypeError, ValueError, zlib.error):
        raise LedgerError(
            "the rows of a release cannot be read; a newer version may have written them."
        ) from None


def _term(told: Mapping[str, Any], domain: Domain, by_record: bool) -> Term:
    resolved = resolve(query_from_spec(_lists(told["query"])), domain)
    layers = tuple(_layer(each) for each in told["rows"])
    term = Term(resolved, layers, Fraction(told["factor"]), by_record)
    if term.joint is not None:
        every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
        if term.joint.shape != tuple(g.size for g in every):
            raise ValueError
    elif not layers or any(isinstance(x, Joint | Ratios) or x.size != resolved.n_positions for x in layers):
        raise ValueError
    return term


def _lists(value: Any) -> Any:
    """Plain values with lists where the ledger holds tuples: in a filter a tuple would be a pair."""
    if isinstance(value, Mapping):
        return {key: _lists(each) for key, each in value.items()}
    return [_lists(each) for each in value] if isinstance(value, tuple | list) else value


def _numbers(layer: Layer) -> int:
    if isinstance(layer, Ratios):
        return layer.apart.table.size
    if isinstance(layer, Joint):
        return sum(f.size for f in layer.factors)
    return layer.matrix.size if isinstance(layer, rows.Matrix) else 0


def _layer_spec(layer: Layer) -> dict[str, Any]:
    told: dict[str, Any]
    if isinstance(layer, rows.Prefixes):
        told = {"prefixes": layer.size} | _arrays(bounds=layer.bounds)
    elif isinstance(layer, rows.Blocks):
        told = {"blocks": layer.size} | _arrays(starts=layer.starts, ends=layer.ends)
    elif isinstance(layer, rows.Ranges):
        told = {"ranges": layer.size} | _arrays(lows=layer.lows, highs=layer.highs)
    elif isinstance(layer, rows.Matrix):
        told = {"matrix": list(layer.matrix.shape)} | _arrays(values=layer.matrix.ravel())
    elif isinstance(layer, Joint):
        values = np.concatenate([f.ravel() for f in layer.factors])
        told = {"joint": [list(f.shape) for f in layer.factors]} | _arrays(values=values)
    elif isinstance(layer, Ratios):
        upper = np.triu_indices(layer.size, 1)
        told = {"ratios": list(layer.shape)} | _arrays(values=layer.apart.table[upper])
    else:
        raise Unsupported(f"ledger: rows of the kind {type(layer).__name__} cannot be kept.")
    return told | {"weight": layer.weight}


def _layer(told: Mapping[str, Any]) -> Layer:
    weight = _whole(told["weight"])
    if "prefixes" in told:
        return rows.Prefixes(_whole(told["prefixes"]), _array(told, "bounds"), weight)
    if "blocks" in told:
        return rows.Blocks(_whole(told["blocks"]), _array(told, "starts"), _array(told, "ends"), weight)
    if "ranges" in told:
        return rows.Ranges(_whole(told["ranges"]), _array(told, "lows"), _array(told, "highs"), weight)
    if "joint" in told:
        return _joint(told, weight)
    if "ratios" in told:
        return _ratios(told, weight)
    values, (count, size) = _array(told, "values"), map(_whole, told["matrix"])
    assert values is not None
    return rows.Matrix(values.reshape(count, size), weight)


def _joint(told: Mapping[str, Any], weight: int) -> Joint:
    values, factors, at = _array(told, "values"), [], 0
    assert values is not None
    for count, size in (map(_whole, shape) for shape in told["joint"]):
        factors.append(values[at : at + count * size].reshape(count, size))
        at += count * size
    if not factors or at != len(values):
        raise ValueError
    return Joint(tuple(factors), weight)


def _ratios(told: Mapping[str, Any], weight: int) -> Ratios:
    shape = tuple(map(_whole, told["ratios"]))
    size, values = prod(shape), _array(told, "values")
    upper = np.triu_indices(size, 1)
    if values is None or len(values) != len(upper[0]) or (len(values) and int(values.min()) < 0):
        raise ValueError
    table = np.zeros((size, size), dtype=np.int64)
    table[upper] = values
    return Ratios(shape, Listed(table + table.T), weight)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def _arrays(**arrays: Ints | None) -> dict[str, Any]:
    return {name: _packed(array) for name, array in arrays.items() if array is not None}


def _packed(array: Ints) -> Any:
    """A list of whole numbers; for more than a few, their differences, compressed: bounds and blocks come at regular steps."""
    flat = np.ascontiguousarray(array, dtype="<i8")
    if flat.size <= FEW:
        return flat.tolist()
    steps = np.diff(flat, prepend=np.int64(0))
    return {"count": int(flat.size), "zlib": base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode()}


def _array(told: Mapping[str, Any], name: str) -> Ints | None:
    value = told.get(name)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return np.array([_signed(v) for v in value], dtype=np.int64)
    count = _whole(value["count"])
    if count > MAX_NUMBERS:
        raise ValueError
    unpacked = zlib.decompressobj().decompress(base64.b64decode(value["zlib"], validate=True), 8 * count + 1)
    if len(unpacked) != 8 * count:
        raise ValueError
    found: Ints = np.cumsum(np.frombuffer(unpacked, dtype="<i8"), dtype=np.int64)
    return found


def _signed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value
