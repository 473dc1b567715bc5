"""What is measured of released microdata beside their leakage: exchanged columns before and after, attackers, and risk.

Private, all of it. It is computed where the publisher says that it is to be published, and nowhere else. Attackers are tried on
the rows as they were published, on a sample where there are many; what they do by chance is the same for the same rows, since
a second set of figures would tell about the draw of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attributes import Categorical, Point
from ..axes import Ints
from ..errors import DataError
from .features import Features, Floats
from .release import MicrodataRelease, column_of
from .risk import Risk, risk_of

MOST_ROWS = 3_000  # that attackers are tried on
MOST_CELLS = 120_000  # rows × columns that attackers look at
LEAST_ROWS = 40  # with fewer people, a half of them teaches nothing
MOST_SECRETS = 3
NUMBERS = 10  # more different values of an ordered column than these are guessed as numbers
FOLDS, REPEATS, LEVEL = 2, 2, 0.99
MODELS: Mapping[str, Mapping[str, Any]] = {
    "group-median": {},
    "random-forest": {"trees": 40, "leaf": 2},
    "knn": {},
    "logistic": {},
}
DRAWN = 12  # columns before and after
BINS = 14
NAMED = 6  # values of a category column that are drawn by name
MOST_STEPS = 10**6  # of a grid of values
FAR = 1.5  # a range so many times as wide as that of 99 % of the rows is cut there
OTHERS = "all others"


def measured_of(release: MicrodataRelease) -> dict[str, Any]:
    """Columns before and after, attackers and risk, as plain values. Private.

    Args:
        release: with the mapping that it was drawn by.

    Raises:
        DataError: the release does not hold its mapping.
    """
    drawn = _Applied.of(release)
    return {
        "exchange": _exchange(drawn),
        "attackers": [found for at in range(min(len(drawn.labels), MOST_SECRETS)) if (found := _attackers(drawn, at))],
        "risk": _risks(drawn),
    }  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class _Applied:
    """The rows, and what was published of each. Private.

    Attributes:
        before: the exchanged columns.
        after, source: row i was published with the columns of row ``source[i]`` of ``after``.
        labels: of each private column, the published label of every row.
    """

    release: MicrodataRelease
    before: Features
    after: Features
    source: Ints
    labels: tuple[Any, ...]

    @staticmethod
    def of(release: MicrodataRelease) -> _Applied:
        mapping = release.mapping
        if mapping is None:
            raise DataError("evidence: the release does not hold what its rows were drawn from.")
        plan = release.plan
        before = plan.prepared.data.features
        labels = tuple(np.asarray(mapping[f"group:{c.name}"].to_pylist(), dtype=object) for c in plan.columns)
        if "donor_row" in mapping.column_names:
            return _Applied(release, before, before, np.asarray(mapping["donor_row"], dtype=np.int64), labels)
        clusters = np.asarray(mapping["cluster"], dtype=np.int64)
        return _Applied(release, before, plan.prepared.clusters.prototypes, clusters, labels)


# Columns before and after


def _exchange(drawn: _Applied) -> dict[str, Any]:
    """Each exchanged column as published beside what it was; those that moved most, in their order."""
    found = [_numbers(drawn, i) for i in range(len(drawn.before.number_names))]
    found += [_values(drawn, i) for i in range(len(drawn.before.code_names))]
    shown = [c for n in drawn.release.query.insensitive for c in drawn.release.strategy.domain[n].columns(n)]
    found.sort(key=lambda c: shown.index(c["column"]))
    apart = [c["distance"] for c in found]
    kept = sorted(np.argsort(-np.asarray(apart), kind="stable")[:DRAWN].tolist())
    return {"columns": [found[i] for i in kept], "compared": len(found), "mean": float(np.mean(apart))}


def _numbers(drawn: _Applied, at: int) -> dict[str, Any]:
    name = drawn.before.number_names[at]
    domain = drawn.release.strategy.domain
    before, after = drawn.before.numbers[:, at], drawn.after.numbers[drawn.source, at]
    places = {c: (domain[n], side) for n in drawn.release.query.insensitive if isinstance(domain[n], Point)
              for side, c in enumerate(domain[n].columns(n))}  # fmt: skip
    if name in places:  # held as a length from the low corner of the box
        place, side = places[name]
        assert isinstance(place, Point)
        low, scale = float(place.sides[side].low), float(place.scale[side])
        column, before, after = name, low + before / scale, low + after / scale
    else:
        attribute = domain[name]
        column = attribute.columns(name)[0]
        if isinstance(attribute, Categorical):
            codes = [np.rint(v).astype(np.int64) for v in (before, after)]
            labels = [attribute.label(c) for c in range(attribute.n_values)]
            return _counted(column, labels, codes[0], codes[1], is_ordered=True)
    edges, is_open = _edges(before)
    counts = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] for v in (before, after)]
    return {
        "column": column, "edges": edges.tolist(), "labels": [], "open": is_open, "before": counts[0].tolist(),
        "after": counts[1].tolist(), "distance": _apart(counts[0], counts[1]),
    }  # fmt: skip


def _edges(values: Floats) -> tuple[Floats, bool]:
    """Equal bins over what occurs, between values where these lie on a grid; a far end in the last bin."""
    low, high = float(values.min()), float(values.max())
    usual = float(np.quantile(values, 0.99, method="higher"))
    is_open = usual > low and high - low > FAR * (usual - low)
    high = usual if is_open else high
    if high <= low:
        return np.array([low - 0.5, low + 0.5]), False
    found = np.unique(values[values <= high])
    apart = float(np.diff(found).min())
    at = (found - low) / apart
    if at[-1] >= MOST_STEPS or np.abs(at - np.rint(at)).max() > 1e-6:
        return np.linspace(low, high, BINS + 1), is_open
    cells = round(at[-1]) + 1
    ends = np.append(np.arange(0, cells, -(-cells // BINS)), cells)
    return low + apart * (ends - 0.5), is_open


def _values(drawn: _Applied, at: int) -> dict[str, Any]:
    before = drawn.before
    name, labels = before.code_names[at], [str(v) for v in before.categories[at].to_pylist()]
    own = before.codes[:, at].astype(np.int64)
    told = drawn.after.codes[drawn.source, at].astype(np.int64)
    attribute = drawn.release.strategy.domain[name]
    return _counted(attribute.columns(name)[0], labels, own, told, is_ordered=False)


def _counted(column: str, labels: list[str], own: Ints, told: Ints, is_ordered: bool) -> dict[str, Any]:
    """Counts of values: all where they are few, else the most frequent and the rest together."""
    counts = [np.bincount(c, minlength=len(labels)) for c in (own, told)]
    distance = _apart(counts[0], counts[1])
    if len(labels) > NAMED + 1:
        most = np.argsort(-counts[0], kind="stable")[:NAMED]
        kept = np.sort(most) if is_ordered else most
        labels = [*(labels[i] for i in kept.tolist()), OTHERS]
        counts = [np.append(c[kept], c.sum() - c[kept].sum()) for c in counts]
    return {
        "column": column, "edges": [], "labels": labels, "open": False, "before": counts[0].tolist(), "after": counts[1].tolist(),
        "distance": distance,
    }  # fmt: skip


def _apart(before: Ints, after: Ints) -> float:
    """Total variation of two counts of equally many rows."""
    return float(np.abs(before - after).sum() / (2 * max(before.sum(), 1)))


# Attackers


def _attackers(drawn: _Applied, at: int) -> dict[str, Any] | None:
    """Trained attackers on one private column, who learn on published rows (Scenario II); None for too few rows to learn on."""
    from ..leakage.attacks import attacks

    data, release = drawn.release.plan.prepared.data, drawn.release
    column, codes = data.columns[at], data.codes[at]
    rows = _sample(data.rows, len(drawn.before.names))
    own = codes[rows]
    kinds = len(np.unique(own))
    if len(rows) < LEAST_ROWS or kinds < 2:
        return None
    is_number = column.kind == "ordered" and column.numbers is not None and kinds > NUMBERS
    secret = column.numbers[own] if is_number and column.numbers is not None else own
    original: dict[str, Any] = {"secret": secret}
    released: dict[str, Any] = {"secret": drawn.labels[at][rows].tolist()}
    for i in range(len(drawn.before.number_names)):
        original[f"n{i}"] = drawn.before.numbers[rows, i]
        released[f"n{i}"] = drawn.after.numbers[drawn.source[rows], i]
    for i in range(len(drawn.before.code_names)):
        original[f"c{i}"] = [f"v{c}" for c in drawn.before.codes[rows, i].tolist()]
        released[f"c{i}"] = [f"v{c}" for c in drawn.after.codes[drawn.source[rows], i].tolist()]
    for i, labels in enumerate(drawn.labels):
        if i != at:
            released[f"g{i}"] = [f"v {label}" for label in labels[rows].tolist()]
    if data.n_classes > 1:
        released["classes"] = [f"v{c}" for c in data.classes[rows].tolist()]
    found = attacks(
        original, released, "secret", list(MODELS), kind="number" if is_number else "category", folds=FOLDS, repeats=REPEATS,
        level=LEVEL, settings=MODELS, rng=np.random.default_rng(11),
    )  # fmt: skip
    first = found.found[0]
    return {
        "column": column_of(release.strategy.domain, column.name),
        "unit": _unit(release, column.name) if is_number else "",
        "scenario": first.scenario,
        "number": is_number,
        "kinds": kinds,
        "rows": len(rows),
        "of": data.rows,
        "level": LEVEL,
        "baseline": first.baseline,
        "baseline_interval": list(first.baseline_interval),
        "models": [
            {
                "model": a.model,
                "success": a.success,
                "interval": list(a.interval),
                "ceiling": a.ceiling,
                "gain_interval": list(a.gain_interval),
                "learns": not any("even with unprotected columns" in w for w in a.warnings),
            }
            for a in found
        ],
    }


def _sample(rows: int, columns: int) -> Ints:
    """Rows that attackers are tried on, ascending: all where they are few."""
    most = min(MOST_ROWS, max(MOST_CELLS // max(columns, 1), 300))
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(7).choice(rows, most, replace=False)).astype(np.int64)


def _unit(release: MicrodataRelease, name: str) -> str:
    attribute = release.strategy.domain[name]
    return "steps" if isinstance(attribute, Categorical) else (getattr(attribute, "unit", None) or "")


# Risk


def _risks(drawn: _Applied) -> list[dict[str, Any]]:
    """k, l, t and the prosecutor's risk of rows alike by their groups, by their quasi-identifiers, and by both."""
    release = drawn.release
    plan, data = release.plan, release.plan.prepared.data
    private = [column_of(release.strategy.domain, c.name) for c in plan.columns]
    groups = plan.joint_group(data.codes)
    ways: list[tuple[list[str], Ints]] = [(private, groups)]
    if data.n_classes > 1:
        named = release.strategy.domain
        quasi = [c for n in release.query.quasi_identifiers for c in named[n].columns(n)]
        ways += [(quasi, data.classes), (private + quasi, data.classes * (int(groups.max()) + 1) + groups)]
    is_ordered = len(plan.columns) == 1 and plan.columns[0].kind == "ordered"
    # Values of several columns: those that occur, since all combinations may be very many.
    present, values = np.unique(data.values, return_inverse=True)
    values, levels = (data.values, data.n_values) if is_ordered else (np.ravel(values), len(present))
    found = []
    for by, classes in ways:
        own = np.unique(classes, return_inverse=True)[1].ravel().astype(np.int64)
        found.append(_risk(by, risk_of(own, values.astype(np.int64), is_ordered=is_ordered, levels=levels)))
    return found


def _risk(by: list[str], told: Risk) -> dict[str, Any]:
    return {
        "by": by, "classes": told.classes, "k": told.k, "l": told.l, "entropy_l": told.entropy_l, "t": told.t,
        "ordered": told.is_ordered, "prosecutor": list(told.prosecutor), "threshold": told.threshold,
    }  # fmt: skip
