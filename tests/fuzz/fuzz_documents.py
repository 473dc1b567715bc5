"""What the fuzz tests draw: whole settings files with their tables, and the same with parts of them spoilt.

A document is plain values (texts, numbers, truth values, lists, tables), so that any part of it can be replaced, dropped,
doubled or moved. The tables hold canaries: texts and numbers that stand in the rows alone, inside and outside of the
declared domain, and that may therefore appear nowhere else.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import strategies
from hypothesis import strategies as st

import tetraodon as td

CANARY = "canary7319"
# Each stands for a kind of value: a text, an id, numbers beyond every declared bound, numbers inside a wide cell.
CANARIES = (CANARY, "987654321", "483647", "271828.25", "61803398")
BEYOND = (987654321, -987654321, 987654321.5)

Rows = dict[str, list[Any]]

# ---------- the document as TOML ----------


def toml(value: Any) -> str:
    """A plain value as TOML, tables written inline.

    >>> toml({"a": [1, "x"], "b c": {"d": True}})
    '{ "a" = [1, "x"], "b c" = { "d" = true } }'
    """
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_text(str(k))} = {toml(v)}" for k, v in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(v) for v in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return _text(str(value))
    if isinstance(value, float | Decimal):
        told = str(value).lower()
        return told if re.search(r"[.einf]", told) else f"{told}.0"
    return str(value) if isinstance(value, int | datetime.date) else _text(str(value))


def _text(told: str) -> str:
    written = json.dumps(told.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return written.replace("\x7f", "\\u007f")


def document(told: Mapping[str, Any]) -> str:
    """A settings file: one inline value for each top-level key."""
    return "\n".join(f"{_text(str(key))} = {toml(value)}" for key, value in told.items()) + "\n"


def plain(spec: Any) -> Any:
    """A spec without what TOML cannot hold."""
    if isinstance(spec, Mapping):
        return {str(k): plain(v) for k, v in spec.items() if v is not None}
    if isinstance(spec, list | tuple):
        return [plain(v) for v in spec if v is not None]
    return spec


# ---------- sound documents ----------


@st.composite
def _attribute(draw: Any, name: str) -> tuple[dict[str, Any], list[Any]]:
    """(its table in [domain], values of its column); cells are few, and canaries are among the values."""
    kind = draw(st.sampled_from(("small", "small", "integer", "numeric", "categorical")))
    odd: list[Any] = []
    if kind == "integer":
        attribute: Any = td.Integer(
            0, 899_999, step=300_000, missing=draw(st.sampled_from(("secret", "public")))
        )
        values: list[Any] = [1, 483_647, 899_999, 483_647]
    elif kind == "numeric":
        attribute = td.Numeric(
            0, 1_000_000, cells=draw(st.integers(1, 4)), missing=draw(st.sampled_from(("secret", "public")))
        )
        values = [0.5, 271828.25, 999_999.0]
    elif kind == "categorical":
        attribute = td.Categorical(["f", "m"], other="else", missing="secret", ordered=draw(st.booleans()))
        values = ["f", "m", "m"]
    else:
        attribute = draw(strategies.attributes(draw(st.integers(2, 4))))
        values = [strategies.first_value(attribute, j) for j in range(len(strategies.ordinary(attribute)))]
        values = [float(v) if isinstance(v, Fraction) else v for v in values]
    if isinstance(attribute, td.Categorical):
        if attribute.other is not None and not attribute.of_integers:
            odd = [CANARY]
    elif attribute.missing != "refuse" or draw(st.booleans()):
        odd = list(BEYOND) if isinstance(attribute, td.Numeric) else list(BEYOND[:2])
    if attribute.missing != "refuse" or draw(st.integers(0, 9)) == 0:
        odd.append(None)
    column = draw(st.lists(st.sampled_from(values + odd), min_size=12, max_size=12))
    return plain(td.Domain({name: attribute}).to_spec()[name]), column


@st.composite
def tables(draw: Any) -> tuple[dict[str, Any], Rows]:
    """([domain], rows): one to three attributes of few cells."""
    domain, rows = {}, {}
    for name in strategies.NAMES[: draw(st.sampled_from((1, 1, 2, 2, 3)))]:
        domain[name], rows[name] = draw(_attribute(name))
    return domain, rows


@st.composite
def _secrets(draw: Any, domain: Any) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(("full", "attribute-wise")))
    return plain(draw(strategies.secrets(domain)).to_spec())


@st.composite
def _constraint(draw: Any, domain: Any, rows: Rows) -> dict[str, Any]:
    """Something known: mostly true of the rows, so that releases get through."""
    name = draw(st.sampled_from(list(domain)))
    truth = draw(st.integers(0, 3)) > 0
    cells = domain[name].cells(rows[name]).tolist()
    if draw(st.booleans()):
        answers = [cells.count(j) for j in range(domain[name].size)]
        if not truth:
            answers[0] += 1
        return {"marginal": [name], "answers": answers}
    kept = draw(strategies.filters(domain[name]))
    where = td.CountConstraint({name: kept}, 0).to_spec()["where"]
    return {"where": plain(where), "answer": draw(st.integers(0, 12))}


@st.composite
def _query(draw: Any, domain: Any) -> dict[str, Any]:
    if draw(st.integers(0, 9)) == 0:
        ways: list[Any] = [1, *([2] if len(domain) > 1 else []), [[name] for name in domain]]
        return {"marginals": draw(st.sampled_from(ways))}
    numbers = [n for n in domain if not isinstance(domain[n], td.Categorical)]
    if numbers and draw(st.integers(0, 14)) == 0:
        return {
            "kmeans": [draw(st.sampled_from(numbers))],
            "k": draw(st.integers(1, 2)),
            "iterations": 2,
            "records": 12,
        }
    return plain(draw(strategies.questions(domain)).query().to_spec())


MECHANISMS = (
    "auto", "auto", "auto", "identity", "ordered", "optimised", "kronecker", "direct", "kmeans-histogram", "kmeans-rounds",
    {"hierarchical": {"fanout": 2, "levels": "optimal"}}, {"hierarchical": {}}, {"ordered-hierarchical": {"fanout": 2}},
    {"tables": {"measured": "lower"}},
)  # fmt: skip


FITTING: dict[str, tuple[Any, ...]] = {
    "marginals": ("auto", {"tables": {"measured": "lower"}}),
    "kmeans": ("auto", "kmeans-histogram", "kmeans-rounds"),
    "sum": ("auto", "direct"),
    "mean": ("auto", "direct"),
    "linear": ("auto", "direct"),
    "histogram": ("auto", "identity", "optimised"),
}  # fmt: skip


@st.composite
def _asked(draw: Any, domain: Any, unit: str) -> dict[str, Any]:
    told: dict[str, Any] = {"query": draw(_query(domain))}
    told["epsilon" if unit == "epsilon" or draw(st.booleans()) else "rho"] = draw(
        st.sampled_from(("1/8", "0.25", Decimal("0.125")))
    )
    word = next(iter(told["query"]))
    fitting = FITTING.get(
        word,
        (
            "auto",
            "identity",
            "ordered",
            {"hierarchical": {"fanout": 2}},
            {"ordered-hierarchical": {"fanout": 2}},
        ),
    )
    mechanism = draw(st.sampled_from((*fitting, *fitting, *fitting, draw(st.sampled_from(MECHANISMS)))))
    if mechanism != "auto":
        told["mechanism"] = mechanism
    if draw(st.integers(0, 3)) == 0:
        offered: dict[str, Any] = {
            "interval": Decimal("0.9"), "round_to": 5, "suppress_below": 3, "format": ["csv"], "labels": {"value": "People"},
            "totals": [draw(st.sampled_from(list(domain)))],
        }  # fmt: skip
        told["present"] = {
            k: offered[k] for k in draw(st.lists(st.sampled_from(sorted(offered)), unique=True, max_size=3))
        }
    return told


@st.composite
def _rows(draw: Any, domain: Any) -> dict[str, Any]:
    names = list(domain)
    replaced = draw(st.sampled_from(names))
    channel: dict[str, Any] = draw(
        st.sampled_from(
            (
                {"kind": "randomised-response"},
                {"kind": "exponential"},
                {"kind": "planar-geometric"},
                {"kind": "tight-constraints"},
                {"kind": "least-distortion", "prior": "uniform"},
                {"kind": "randomised-response", "remap": {"prior": "uniform"}},
            )
        )
    )
    told: dict[str, Any] = {"rows": [replaced], "epsilon": "1/4", "channel": channel}
    rest = [n for n in names if n != replaced]
    if rest and draw(st.booleans()):
        told["keep"] = draw(st.lists(st.sampled_from(rest), unique=True, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        told["rows_per_person"] = draw(st.integers(1, 2))
    if draw(st.integers(0, 4)) == 0:
        told["publish_evidence"] = True
    return told


@st.composite
def documents(draw: Any) -> tuple[dict[str, Any], Rows]:
    """A settings file as plain values, and the rows that it is about. Sound in most parts; whether it is accepted as a whole
    (a mechanism that fits, a policy with a price) is for the package to say."""
    told, rows = draw(tables())
    domain = td.Domain.from_spec(told)
    unit = draw(st.sampled_from(("epsilon", "epsilon", "rho")))
    data: dict[str, Any] = {"name": "people", "source": "people.parquet"}
    policy: dict[str, Any] = {"secrets": draw(_secrets(domain))}
    # Most of these have no price beside each other, so few documents have more than one.
    wanted = draw(
        st.sampled_from(
            (
                "",
                "",
                "",
                "constraint",
                "constraint",
                "presence",
                "exempt",
                "id",
                "id",
                "weight",
                "where",
                "all",
            )
        )
    )
    if wanted in ("constraint", "all"):
        policy["constraint"] = [draw(_constraint(domain, rows))]
    if wanted in ("presence", "all"):
        policy["presence"] = "secret"
    if wanted in ("exempt", "all"):
        name = draw(st.sampled_from(list(domain)))
        policy["exempt"] = {name: [strategies.a_value(draw, domain[name], 0)]}
        if isinstance(policy["secrets"], str) or draw(st.booleans()):
            policy["secrets"] = {n: "full" for n in domain if n != name} or "nothing"
    if wanted in ("id", "all"):
        data |= {"id": "person", "max_rows_per_id": draw(st.integers(1, 2))}
        data |= draw(
            st.sampled_from(({}, {"keep_by": "visit"}, {"keep_by": "visit", "row_counts": "public"}))
        )
        rows["person"] = [f"{CANARY}-{i // 2}" for i in range(12)]
        rows["visit"] = [61803398 + i for i in range(12)]
    if wanted in ("weight", "all"):
        data |= {"weight": "w", "weight_bounds": [0, 3], "weight_step": "0.5"}
        rows["w"] = draw(st.lists(st.sampled_from([0.5, 1.0, 2.75, 2.999]), min_size=12, max_size=12))
    if wanted in ("where", "all"):
        data["where"] = {"year": ["2025"]}
        rows["year"] = draw(st.lists(st.sampled_from(["2025", "2025", CANARY]), min_size=12, max_size=12))
    releases = []
    for i in range(draw(st.sampled_from((1, 1, 2, 3)))):
        is_of_rows = wanted not in ("presence", "all") and draw(st.integers(0, 4)) == 0
        made = draw(_rows(domain)) if is_of_rows else draw(_asked(domain, unit))
        releases.append({"name": f"r{i}"} | made)
    budget = {"epsilon": 1} if unit == "epsilon" else {"rho": 1, "delta": "1e-9"}
    whole: dict[str, Any] = {
        "data": data,
        "domain": told,
        "policy": policy,
        "budget": budget,
        "release": releases,
    }
    if draw(st.booleans()):
        budget["ledger"] = "people.ledger"
    if draw(st.integers(0, 7)) == 0:
        whole["compare"] = {"any two": "attribute-wise"}
    return whole, rows


# ---------- spoilt documents ----------

JUNK: tuple[Any, ...] = (
    0, -1, 1, 2, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400, Decimal("0.1"), Decimal("-0.0"), Decimal("1e-320"), Decimal("1e300"),
    Decimal("1e999999"), Decimal("nan"), Decimal("inf"), Decimal("-inf"), True, False, "", " ", "a", "b", "c", "f", "m", "else",
    "missing", "full", "nothing", "uniform", "auto", "edition", "nan", "inf", "1/0", "1/3", "-1/3", "1e5", "1e400", "1_0", "0x10", "3 km",
    "5 USD", "٣", "\u0000", "../evil", "/etc/passwd", "a/b", "x" * 300, "é\u0301\u202e", "'; DROP TABLE x; --", '"', "$(id)", "{0}", "%s",
    "r0", "r1", [], [[]], [1], ["a"], ["a", "a"], ["a", "b"], [0, 9], [9, 0], [[0, 9]], [["a", "b"]], [["f", 1], ["m", 2]], [True],
    [Decimal("nan"), Decimal("inf")], {}, {"a": 1}, {"a": {}}, {"a": ["f"]}, {"a": "full"}, {"between": [0, 9]}, {"within": 2}, {"cells": 3},
    {"a": {"between": [0, 1]}}, {"answer": "r0"}, {"": 1}, datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 3), [[[[[[[[1]]]]]]]],
)  # fmt: skip

KEYS = (
    "a", "b", "c", "age", "", "name", "source", "edition", "table", "null", "sql", "where", "id", "max_rows_per_id", "keep_by", "row_counts",
    "weight", "weight_bounds", "weight_step", "weights", "integer", "step", "numeric", "width", "cells", "categorical", "ordered", "other",
    "hierarchy", "point", "box", "cell", "metric", "column", "unit", "missing", "secrets", "presence", "exempt", "constraint", "marginal",
    "answers", "answer", "within", "on", "partition", "blocks", "by", "edges", "full", "nothing", "l1", "l2", "discrete", "epsilon", "rho",
    "delta", "ledger", "renews", "compare", "query", "histogram", "cdf", "quantiles", "levels", "ranges", "of", "sum", "mean", "linear",
    "matrix", "marginals", "kmeans", "k", "iterations", "records", "bins", "mechanism", "hierarchical", "ordered-hierarchical", "fanout",
    "block", "tables", "measured", "present", "interval", "round_to", "suppress_below", "totals", "labels", "units", "format", "rows", "keep",
    "channel", "kind", "prior", "remap", "distortion", "secret", "tolerance", "seconds", "leakage", "path", "guarantee", "permanent", "store",
    "epoch", "rows_per_person", "publish_evidence", "hybrid", "private", "insensitive", "alpha", "beta", "l", "audit", "release", "budget",
    "data", "domain", "policy",
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document, the document itself left out."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*at, key)
        yield from places(part, (*at, key))


def _at(whole: Any, at: tuple[Any, ...]) -> Any:
    for key in at:
        whole = whole[key]
    return whole


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value


@st.composite
def spoilt(draw: Any, whole: dict[str, Any], most: int = 3) -> dict[str, Any]:
    """The document with one to ``most`` things changed, anywhere in it."""
    told = _copy(whole)
    for _ in range(draw(st.integers(1, most))):
        found = list(places(told))
        if not found:
            break
        at = draw(st.sampled_from(found))
        inside, key = _at(told, at[:-1]), at[-1]
        way = draw(st.sampled_from(("junk", "junk", "junk", "drop", "add", "rename", "move", "double")))
        if way == "junk":
            inside[key] = _copy(draw(st.sampled_from(JUNK)))
        elif way == "drop":
            del inside[key]
        elif way == "add" and isinstance(inside[key], dict):
            inside[key][draw(st.sampled_from(KEYS))] = _copy(draw(st.sampled_from(JUNK)))
        elif way == "rename" and isinstance(inside, dict):
            inside[draw(st.sampled_from(KEYS))] = inside.pop(key)
        elif way == "move":
            inside[key] = _copy(_at(told, draw(st.sampled_from(found))))
        elif way == "double" and isinstance(inside, list):
            inside.append(_copy(inside[key]))
    return told
