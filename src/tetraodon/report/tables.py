"""The published tables of one release: the one that most queries have, or each of those of ``Marginals``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .answers import VALUES, View, columns_of, laid_out, misfit, view
from .document import Entry
from .words import clean, listed


@dataclass(frozen=True, eq=False)
class Sheet:
    """One published table.

    Attributes:
        entry: what the manifest says of it, as of a release of its own.
        view: its numbers as a chart sees them.
        title: what it is called beside others; empty where it is the only one.
    """

    entry: Entry
    view: View
    title: str = ""


def quantiles_of(entry: Entry) -> Entry:
    """The quantiles beside a CDF, as a release of their own."""
    assert entry.quantiles is not None
    query: dict[str, Any] = {"quantiles": entry.query["cdf"], "levels": entry.query.get("quantiles", [])}
    query |= {key: entry.query[key] for key in ("by", "where", "bins") if key in entry.query}
    by = entry.query.get("by", [])
    how, (rows, content) = entry.presentation, entry.quantiles
    labels = tuple((n, text) for n, text in how.labels if n not in VALUES)
    return replace(
        entry, word="quantiles", query=query, rows=rows, axis=None, content=content, quantiles=None, suppressed=0,
        attributes=(*(n for n in entry.attributes if n in by), "level"),
        presentation=replace(how, round_to=None, suppress_below=None, labels=labels),
    )  # fmt: skip


def sheets(entry: Entry, domain: Mapping[str, Mapping[str, Any]]) -> tuple[Sheet, ...]:
    """Every published table of a release.

    Raises:
        SpecificationError: the file is not the table that the manifest describes.
    """
    if entry.quantiles is not None and entry.word == "cdf":
        beside = quantiles_of(entry)
        return (
            Sheet(entry, view(entry, domain)),
            Sheet(
                beside, view(beside, domain), f"Quantiles of {clean(entry.called(str(entry.query['cdf'])))}"
            ),
        )
    if entry.word != "marginals":
        return (Sheet(entry, view(entry, domain)),)
    columns = columns_of(entry)
    if not entry.tables or sum(t.rows for t in entry.tables) != entry.rows or "table" not in columns:
        raise misfit(entry)
    found, start = [], 0
    named = columns["table"].to_pylist()
    for table in entry.tables:
        end = start + table.rows
        if set(named[start:end]) != {" by ".join(table.attributes)}:
            raise misfit(entry)
        query: dict[str, Any] = {"histogram": list(table.attributes)}
        query |= {key: entry.query[key] for key in ("where", "bins") if key in entry.query}
        one = replace(
            entry, word="histogram", query=query, rows=table.rows, attributes=table.attributes, axis=table.axis,
            expected_error=table.expected_error, half_width=table.half_width, tables=(),
        )  # fmt: skip
        kept = {n: columns[n].slice(start, table.rows) for n in (*table.attributes, *VALUES)}
        found.append(
            Sheet(
                one,
                laid_out(one, kept, domain),
                clean(listed([entry.called(n) for n in table.attributes], 12)),
            )
        )
        start = end
    return tuple(found)
