"""The one GROUP BY through which private rows are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .attributes import Categorical
from .cellular import Cells
from .domain import Domain
from .engine import encoded
from .errors import DataError
from .files import Source, sealed

DENSE = 10**7
BATCH = 1_000_000


def grouped(source: Source, domain: Domain, null: Sequence[str] = ()) -> Iterator[tuple[Cells, Cells]]:
    """How many rows lie in each cell that has any: chunks of (codes, counts), each code once.

    One GROUP BY of the row-major code, out of core. Where the engine is DuckDB in this process and the domain is small
    enough for an array, the codes are streamed and tallied here instead, which costs less (benchmarks/counts.py).

    Raises:
        DataError: a null, invalid or undeclared value under ``missing="refuse"``; names the column, nothing else.
        EngineError: the engine failed.
    """
    refused = False
    with source.opened() as (backend, table):
        codes = sealed(source.where, "planning", encoded, table, domain, _columns(source, domain), null)
        if source.embedded and domain.size <= DENSE:
            tally = np.zeros(domain.size, dtype=np.int64)
            for batch in _batches(source.where, backend, codes):
                refused = batch.column(0).null_count > 0
                if refused:
                    break
                np.add.at(tally, batch.column(0).to_numpy(), 1)
            else:
                present = np.flatnonzero(tally)
                yield present, tally[present]
        else:
            for batch in _batches(source.where, backend, codes.group_by("code").aggregate(n=codes.count())):
                refused = batch.column(0).null_count > 0
                if refused:
                    break
                yield tuple(c.to_numpy().astype(np.int64) for c in batch.columns)
    if refused:
        raise _refusal(source, domain, null)


def _columns(source: Source, domain: Domain) -> list[str]:
    return [f"c{source.columns.index(c)}" for name, a in domain.items() for c in a.columns(name)]


def _batches(where: str, backend: Any, rows: Any) -> Iterator[Any]:
    reader = sealed(where, "reading", lambda: iter(backend.to_pyarrow_batches(rows, chunk_size=BATCH)))
    while (batch := sealed(where, "reading", next, reader, None)) is not None:
        yield batch


def _refusal(source: Source, domain: Domain, null: Sequence[str]) -> DataError:
    """Names the first attribute, in declared order, that meets a value it declared not to exist."""
    for name, attribute in domain.items():
        if attribute.missing_cell is None:
            with source.opened() as (backend, table):
                one = Domain({name: attribute})
                code = sealed(source.where, "planning", encoded, table, one, _columns(source, one), null)
                found = code.filter(code["code"].isnull()).limit(1)
                if any(batch.num_rows for batch in _batches(source.where, backend, found)):
                    break
    fix = "declare missing='secret' or missing='public'"
    if isinstance(attribute, Categorical) and attribute.other is None:
        fix += ", or other= for values that are not listed"
    named = " or ".join(map(repr, attribute.columns(name)))
    return DataError(
        f"{source.where}: column {named} holds a value that is null or outside what attribute "
        f"{name!r} declares, which with missing='refuse' does not exist: {fix}."
    )


def row_count(source: Source) -> int:
    """Number of rows."""
    with source.opened() as (_, table):
        return int(sealed(source.where, "reading", lambda: table.count().to_pyarrow().as_py()))
