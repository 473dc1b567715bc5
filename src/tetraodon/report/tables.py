"""The published tables of one release: the one that most queries have, or each of those of ``Marginals``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .answers import View, columns_of, laid_out, misfit, view
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


def sheets(entry: Entry, domain: Mapping[str, Mapping[str, Any]]) -> tuple[Sheet, ...]:
    """Every published table of a release.

    Raises:
        SpecificationError: the file is not the table that the manifest describes.
    """
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
        kept = {
            n: columns[n].slice(start, table.rows) for n in (*table.attributes, "value", "lower", "upper")
        }
        found.append(Sheet(one, laid_out(one, kept, domain), clean(listed(table.attributes, 12))))
        start = end
    return tuple(found)
