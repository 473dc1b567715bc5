"""The evidence of microdata in a manifest: what was computed from private rows, each key checked for its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..errors import SpecificationError
from .keys import flag, items, mapping, real, take, text, texts, whole
from .microdata_document import (
    Attackers,
    Exchange,
    Exchanged,
    Figures,
    Generalised,
    Guesser,
    Histogram,
    MicrodataEvidence,
    RiskText,
)
from .reading_rows import line_of, signed

MODELS = ("random-forest", "xgboost", "knn", "logistic", "group-median")
OVER = 1e-6  # what rounding may have added to a share, or taken off an amount


def evidence_of(
    spec: Mapping[str, Any], groups: Sequence[Generalised], exchanged: Sequence[str], rows: int, where: str
) -> MicrodataEvidence:
    """What is published of private rows.

    Args:
        groups, exchanged, rows: of the release.

    Raises:
        SpecificationError: names the key.
    """
    figures = mapping(spec, "figures", where)
    bound, gap = take(spec, "bound", where), take(spec, "gap", where)
    if (bound is None) != (gap is None):
        raise SpecificationError(f"{where}.gap: a number where there is a bound, and nothing elsewhere.")
    names = [g.column for g in groups]
    histograms = tuple(
        _histogram(h, rows, f"{where}.histograms[{i}]")
        for i, h in enumerate(items(spec, "histograms", where))
    )
    if [h.column for h in histograms] != names:
        raise SpecificationError(f"{where}.histograms: one for each private column, in their order.")
    for i, (histogram, column) in enumerate(zip(histograms, groups, strict=True)):
        if sorted((v, g) for v, g, _ in histogram.values) != sorted((v, g.label) for g in column.groups for v in g.values):  # fmt: skip
            raise SpecificationError(f"{where}.histograms[{i}].values: those of the file of groups.")
    return MicrodataEvidence(
        figures=Figures(**{key: amount(figures, key, f"{where}.figures") for key in Figures.__annotations__}),
        bound=None if bound is None else signed(bound, f"{where}.bound"),
        gap=None if gap is None else real(gap, f"{where}.gap"),
        coarse=amount(spec, "coarse", where),
        realised=amount(spec, "realised", where),
        curve=tuple(line_of(c, f"{where}.curve[{i}]") for i, c in enumerate(items(spec, "curve", where))),
        history=tuple(_step(s, f"{where}.history[{i}]") for i, s in enumerate(items(spec, "history", where))),
        histograms=histograms,
        exchange=_exchange(mapping(spec, "exchange", where), exchanged, rows, f"{where}.exchange"),
        attackers=tuple(
            _attackers(a, names, rows, f"{where}.attackers[{i}]")
            for i, a in enumerate(items(spec, "attackers", where))
        ),
        risk=tuple(_risk(r, rows, f"{where}.risk[{i}]") for i, r in enumerate(items(spec, "risk", where))),
        words=texts(spec, "words", where),
    )


def _step(spec: Any, where: str) -> tuple[str, float, float]:
    table(spec, where, ("kind", "leakage", "distortion"))
    return text(spec, "kind", where), amount(spec, "leakage", where), amount(spec, "distortion", where)


def _histogram(spec: Any, rows: int, where: str) -> Histogram:
    table(spec, where, ("column", "values"))
    values = []
    for i, value in enumerate(items(spec, "values", where)):
        at = f"{where}.values[{i}]"
        table(value, at, ("value", "group", "rows"))
        values.append((text(value, "value", at), text(value, "group", at), whole(value, "rows", at)))
    if sum(n for *_, n in values) != rows:
        raise SpecificationError(f"{where}.values: rows that add up to those of the release.")
    return Histogram(text(spec, "column", where), tuple(values))


def _exchange(spec: Mapping[str, Any], exchanged: Sequence[str], rows: int, where: str) -> Exchange:
    table(spec, where, ("columns", "compared", "mean"))
    columns = tuple(
        _exchanged(c, rows, f"{where}.columns[{i}]") for i, c in enumerate(items(spec, "columns", where))
    )
    if not {c.column for c in columns} <= set(exchanged):
        raise SpecificationError(f"{where}.columns: exchanged columns of the release.")
    compared = whole(spec, "compared", where)
    if compared < len(columns):
        raise SpecificationError(f"{where}.compared: at least as many as are listed.")
    return Exchange(columns, compared, share(spec, "mean", where))


def _exchanged(spec: Any, rows: int, where: str) -> Exchanged:
    table(spec, where, ("column", "edges", "labels", "open", "before", "after", "distance"))
    edges = tuple(signed(v, f"{where}.edges") for v in items(spec, "edges", where))
    labels, is_open = texts(spec, "labels", where), flag(spec, "open", where)
    if bool(edges) == bool(labels) or any(a >= b for a, b in pairwise(edges)):
        raise SpecificationError(f"{where}.edges: ascending edges of bins, or nothing beside labels.")
    bins = len(labels) if labels else len(edges) - 1
    told = []
    for key in ("before", "after"):
        counts = items(spec, key, where)
        if len(counts) != bins or any(type(n) is not int or n < 0 for n in counts) or sum(counts) != rows:
            raise SpecificationError(f"{where}.{key}: a count for each bin, which add up to the rows.")
        told.append(tuple(counts))
    return Exchanged(
        text(spec, "column", where), edges, labels, is_open, told[0], told[1], share(spec, "distance", where)
    )


def _attackers(spec: Any, columns: Sequence[str], rows: int, where: str) -> Attackers:
    table(spec, where, ("column", "unit", "scenario", "number", "kinds", "rows", "of", "level", "baseline", "baseline_interval", "models"))  # fmt: skip
    column, is_number = text(spec, "column", where), flag(spec, "number", where)
    if column not in columns:
        raise SpecificationError(f"{where}.column: a private column of the release.")
    if text(spec, "scenario", where) != "II":
        raise SpecificationError(f"{where}.scenario: 'II', learnt on published rows.")
    tried, total = whole(spec, "rows", where), whole(spec, "of", where)
    if not 0 < tried <= total == rows:
        raise SpecificationError(f"{where}.rows: at most those of the release.")
    found = tuple(
        _guesser(m, is_number, f"{where}.models[{i}]") for i, m in enumerate(items(spec, "models", where))
    )
    if not found:
        raise SpecificationError(f"{where}.models: at least one.")
    told = amount if is_number else share
    return Attackers(
        column=column,
        unit=text(spec, "unit", where),
        is_number=is_number,
        kinds=whole(spec, "kinds", where),
        rows=tried,
        total=total,
        level=share(spec, "level", where),
        baseline=told(spec, "baseline", where),
        baseline_interval=_span(spec, "baseline_interval", where),
        found=found,
    )


def _guesser(spec: Any, is_number: bool, where: str) -> Guesser:
    table(spec, where, ("model", "success", "interval", "ceiling", "gain_interval", "learns"))
    model = text(spec, "model", where)
    if model not in MODELS:
        raise SpecificationError(f"{where}.model: one of {', '.join(MODELS)}.")
    told = amount if is_number else share
    low, high = (signed(v, f"{where}.gain_interval") for v in _pair(spec, "gain_interval", where))
    return Guesser(
        model=model,
        success=told(spec, "success", where),
        interval=_span(spec, "interval", where),
        ceiling=told(spec, "ceiling", where),
        helps=(low > 0) - (high < 0),
        learns=flag(spec, "learns", where),
    )


def _risk(spec: Any, rows: int, where: str) -> RiskText:
    table(spec, where, ("by", "classes", "k", "l", "entropy_l", "t", "ordered", "prosecutor", "threshold"))
    by, classes, k = texts(spec, "by", where), whole(spec, "classes", where), whole(spec, "k", where)
    if not by or not 1 <= classes <= rows or not 1 <= k * classes <= rows:
        raise SpecificationError(f"{where}.k: classes of at least so many rows, in the rows of the release.")
    prosecutor = items(spec, "prosecutor", where)
    if len(prosecutor) != 3:
        raise SpecificationError(f"{where}.prosecutor: highest, mean, and the share above the threshold.")
    highest, mean, above = (share({"prosecutor": v}, "prosecutor", where) for v in prosecutor)
    return RiskText(
        by=by,
        classes=classes,
        k=k,
        l=whole(spec, "l", where),
        entropy_l=amount(spec, "entropy_l", where),
        t=share(spec, "t", where),
        is_ordered=flag(spec, "ordered", where),
        prosecutor=(highest, mean, above),
        threshold=share(spec, "threshold", where),
    )


# Kinds of values


def table(spec: Any, where: str, keys: Sequence[str] = ()) -> Mapping[str, Any]:
    """A table, of no other keys than these where they are named.

    Raises:
        SpecificationError: it is none, or has another key.
    """
    if not isinstance(spec, Mapping):
        raise SpecificationError(f"{where}: a table.")
    for key in spec:
        if keys and key not in keys:
            raise SpecificationError(f"{where}: no key {str(key)[:40]!r} is known there.")
    return spec


def number(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A finite number of at least 0."""
    return real(take(spec, key, where), f"{where}.{key}")


def amount(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A number of at least 0, which rounding may have put just below."""
    found = signed(take(spec, key, where), f"{where}.{key}")
    if found < -OVER:
        raise SpecificationError(f"{where}.{key}: a finite number of at least 0.")
    return max(found, 0.0)


def share(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A number from 0 to 1."""
    found = amount(spec, key, where)
    if found > 1 + OVER:
        raise SpecificationError(f"{where}.{key}: from 0 to 1.")
    return min(found, 1.0)


def _pair(spec: Mapping[str, Any], key: str, where: str) -> tuple[Any, Any]:
    found = items(spec, key, where)
    if len(found) != 2:
        raise SpecificationError(f"{where}.{key}: both ends of an interval.")
    return found[0], found[1]


def _span(spec: Mapping[str, Any], key: str, where: str) -> tuple[float, float]:
    low, high = (amount({key: v}, key, where) for v in _pair(spec, key, where))
    if low > high:
        raise SpecificationError(f"{where}.{key}: the lower end first.")
    return low, high
