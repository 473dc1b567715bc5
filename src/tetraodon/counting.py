"""The two ways in which private rows are read: counted by one GROUP BY, or one by one as the cells that they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import postgres
from .attributes import Categorical, Integer, Numeric, Point
from .cellular import Cells
from .domain import Domain
from .engine import encoded, person_of
from .errors import DataError, EngineError
from .files import Source, sealed
from .number_cells import SMALL
from .readable import kind_of

DENSE = 10**7
BATCH = 1_000_000
MAX_COUNT = 2**63 - 1
ADDRESSED = 20  # bits of a code that DuckDB may use as an address: 16 MB a thread
PART = 1 << 15
TABLED = 1 << 16  # boundaries that are kept


def grouped(source: Source, domain: Domain, null: Sequence[str] = ()) -> Iterator[tuple[Cells, Cells]]:
    """How much the rows of each cell that has any count: chunks of (codes, counts), each code once. A row counts 1, or its weight.

    One GROUP BY of the row-major code, out of core. Where the engine is DuckDB in this process, which knows no bounds of the
    codes, and the domain is small enough for an array, the codes are streamed and tallied here instead, which costs less
    (benchmarks/counts.py).

    Raises:
        DataError: a null, invalid or undeclared value under ``missing="refuse"``; names the column, nothing else.
        EngineError: the engine failed.
    """
    refused, held = False, 0
    with source.opened() as (backend, table):
        codes = sealed(source.where, "planning", coded, source, table, domain, null)
        amount = codes.steps.sum() if source.is_weighted else codes.count()
        rows = codes.group_by("code").aggregate(n=amount)
        if source.embedded and domain.size <= DENSE and not _is_addressed(source, backend, domain, rows):
            tally = np.zeros(domain.size, dtype=np.int64)
            for batch in _batches(source.where, backend, codes):
                refused = batch.column(0).null_count > 0
                if refused:
                    break
                cells = _inside(source.where, domain, batch.column(0).to_numpy())
                np.add.at(tally, cells, _amounts(batch))
                held += int(np.sum(_amounts(batch))) if source.is_weighted else 0
                if held > MAX_COUNT:
                    raise EngineError(f"{source.where}: more than 2^63 − 1 weight steps cannot be counted.")
            else:
                present = np.flatnonzero(tally)
                yield present, tally[present]
        else:
            # A cursor of PostgreSQL takes one process and a plan for its first rows; COPY takes the best one. To leave it early would
            # end the transaction that it is in, which may be the caller's.
            copied = backend.name == "postgres"
            for batch in (_copied if copied else _batches)(source.where, backend, rows):
                refused |= batch.column(0).null_count > 0
                if not refused:
                    yield sealed(source.where, "reading", _whole, batch)
                elif not copied:
                    break
    if refused:
        raise refusal(source, domain, null)


def _is_addressed(source: Source, backend: Any, domain: Domain, rows: Any) -> bool:
    """Whether DuckDB counts by address: it does where it knows that the codes, and so all columns, lie between near bounds."""
    is_numeric = not any(isinstance(a, Categorical) for a in domain.values())
    if source.is_weighted or not is_numeric or _kinds(source, domain) != {"integer"}:
        return False

    def asked() -> bool:
        backend.con.execute(f"SET perfect_ht_threshold = {ADDRESSED}")
        plan = backend.con.execute(f"EXPLAIN {backend.compile(rows)}").fetchall()
        return any("PERFECT_HASH_GROUP_BY" in text for line in plan for text in line)

    return sealed(source.where, "planning", asked)


def _inside(where: str, domain: Domain, cells: Any) -> Any:
    """The cells, none of which is beyond the domain: engines believe what a file says of the bounds of its columns.

    Raises:
        EngineError: one is.
    """
    if len(cells) and not 0 <= int(cells.min()) <= int(cells.max()) < domain.size:
        raise _beyond(where)
    return cells


def _beyond(where: str) -> EngineError:
    return EngineError(
        f"{where}: the engine returned a cell outside the domain. A parquet file whose statistics are wrong does that: write it anew."
    )


def coded(
    source: Source, table: Any, domain: Domain, null: Sequence[str], carried: Sequence[str] = ()
) -> Any:
    """``encoded``, with null for the code of a row with a flaw, and what a row counts where that is not 1."""
    import ibis

    beside = [*(["steps"] if source.is_weighted else []), *carried]
    domain.check_numbered(source.where)
    flaw = ["flaw"] if source.flaws else []
    rows = encoded(table, domain, _columns(source, domain), null, [*beside, *flaw])
    if flaw:
        code = ibis.cases((rows.flaw.isnull(), rows.code), else_=ibis.null(rows.code.type()))
        rows = rows.select(code=code, **{c: rows[c] for c in beside})
    return rows


def _whole(batch: Any) -> tuple[Cells, Cells]:
    """Its two columns, whatever engines make of a sum."""
    import pyarrow as pa

    codes, amounts = (column.cast(pa.int64()).to_numpy() for column in batch.columns)
    return codes, amounts


def _amounts(batch: Any) -> Any:
    return batch.column("steps").to_numpy() if "steps" in batch.schema.names else 1


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Batch:
    """A batch of private rows. It shows nothing of them.

    Attributes:
        cells: int32 or int64, shape (rows,): the cell of each row.
        kept: the Arrow arrays of the columns that were asked for as they are, in that order.
        ids: the Arrow array of the id column as text, if one was asked for.
    """

    cells: Any
    kept: tuple[Any, ...]
    ids: Any


def streamed(
    source: Source,
    domain: Domain,
    null: Sequence[str] = (),
    keep: Sequence[str] = (),
    ident: str | None = None,
    ordered: bool = False,
) -> Iterator[Batch]:
    """Every row once, out of core and in no particular order: the cell that it lies in, and columns beside it.

    Args:
        keep: columns of the source that come as they are.
        ident: a column of texts or integers that comes as text, each null refused.
        ordered: as they stand in a file or a frame; a database has its own order.

    Raises:
        DataError: as ``grouped``, or an id column of another type or with nulls; names the column, nothing else.
        EngineError: the engine failed.
    """
    places = [f"c{source.columns.index(c)}" for c in keep]
    who = None if ident is None else f"c{source.columns.index(ident)}"
    carried = list(
        dict.fromkeys([*places, *([] if who is None else [who]), *(["place"] if source.is_placed else [])])
    )
    domain.check_numbered(source.where)
    columns = _columns(source, domain)
    numbers = source.embedded and _of_doubles(source, domain)
    refused = unnamed = False
    none = True
    with source.opened() as (backend, table):

        def planned() -> Any:
            if ordered and source.embedded:
                backend.con.execute("SET preserve_insertion_order = true")
            if numbers:
                flawed = ["flaw"] if source.flaws else []
                rows = table[list(dict.fromkeys([*columns, *carried, *flawed]))]
            else:
                rows = coded(source, table, domain, null, carried)
            rows = rows if who is None else rows.mutate(id=person_of(rows[who]))
            return rows.order_by("place") if source.is_placed else rows

        for batch in _batches(source.where, backend, sealed(source.where, "planning", planned)):
            if numbers:
                cells = _cells_of_doubles(domain, [batch.column(c) for c in columns])
                refused = bool(len(cells)) and int(cells.min()) < 0
                refused |= bool(source.flaws) and batch.column("flaw").null_count < batch.num_rows
            else:
                refused = batch.column("code").null_count > 0
                cells = None if refused else _inside(source.where, domain, batch.column("code").to_numpy())
            ids = None if who is None else batch.column("id")
            unnamed = ids is not None and ids.null_count > 0
            if refused or unnamed:
                break
            none = False
            yield Batch(cells, tuple(batch.column(c) for c in places), ids)
    if refused:
        raise refusal(source, domain, null)
    if unnamed:
        raise DataError(
            f"{source.where}: column {ident!r} holds a null, an empty text, or what is no text or number; every row needs the id of its "
            "person."
        )
    if none:  # columns have types all the same
        import pyarrow as pa

        types = [source.types[source.columns.index(c)].to_pyarrow() for c in keep]
        no_ids = None if ident is None else pa.array([], pa.string())
        yield Batch(np.empty(0, np.int64), tuple(pa.array([], t) for t in types), no_ids)


def streamed_cells(
    source: Source, domain: Domain, null: Sequence[str] = (), ordered: bool = False
) -> Iterator[dict[str, Cells]]:
    """Every row once, as the cell of each attribute, for domains of any number of cells. Otherwise as ``streamed``."""
    parts = domain.parts()
    if len(parts) == 1:
        for whole in streamed(source, domain, null, ordered=ordered):
            yield dict(zip(domain, domain.decode(whole.cells), strict=True))
        return
    refused = False
    with source.opened() as (backend, table):

        def planned() -> Any:
            if ordered and source.embedded:
                backend.con.execute("SET preserve_insertion_order = true")
            rows = _coded_in_parts(source, table, parts, null)
            return rows.order_by("place") if source.is_placed else rows

        for batch in _batches(source.where, backend, sealed(source.where, "planning", planned)):
            codes = [batch.column(f"part{at}") for at in range(len(parts))]
            refused = any(code.null_count for code in codes)
            refused |= bool(source.flaws) and batch.column("flaw").null_count < batch.num_rows
            if refused:
                break
            found: dict[str, Cells] = {}
            for part, code in zip(parts, codes, strict=True):
                found |= zip(part, part.decode(_inside(source.where, part, code.to_numpy())), strict=True)
            yield found
    if refused:
        raise refusal(source, domain, null)


def _coded_in_parts(source: Source, table: Any, parts: Sequence[Domain], null: Sequence[str]) -> Any:
    """Columns ``part<i>``: the cell of each row of each part, null where a value is refused."""
    kept = [*(["flaw"] if source.flaws else []), *(["place"] if source.is_placed else [])]
    for at, part in enumerate(parts):
        later = [c for other in parts[at + 1 :] for c in _columns(source, other)]
        table = encoded(table, part, _columns(source, part), null, [*later, *kept])
        table = table.rename({f"part{at}": "code"})
        kept.append(f"part{at}")
    return table


def _of_doubles(source: Source, domain: Domain) -> bool:
    """Whether all cells come from columns of doubles, which cost less to look at here than in the engine."""
    is_of_numbers = all(isinstance(a, Numeric | Point) for a in domain.values())
    return is_of_numbers and _kinds(source, domain) == {"float"}


def _kinds(source: Source, domain: Domain) -> set[str]:
    """Of what kinds the columns are that the domain needs."""
    columns = [c for name, a in domain.items() for c in a.columns(name)]
    return {kind_of(source.types[source.columns.index(c)]) for c in columns}


def _cells_of_doubles(domain: Domain, columns: Sequence[Any]) -> Any:
    """The cell of each row by the attributes' own definition, −1 where a value is refused, a few rows at a time."""
    # A null becomes NaN, and both are missing (rules 1 and 6).
    told = [c.to_numpy(zero_copy_only=False) for c in columns]
    lines = [_line(s) for a in domain.values() for s in (a.sides if isinstance(a, Point) else (a,))]
    found = np.empty(len(told[0]), dtype=np.int32 if domain.size < SMALL else np.int64)
    for start in range(0, len(found), PART):
        sides = iter([line(c[start : start + PART]) for line, c in zip(lines, told, strict=True)])
        code: Any = 0
        refused: Any = False
        for attribute in domain.values():
            cell, missing = next(sides)
            if isinstance(attribute, Point):
                column, also = next(sides)
                cell, missing = cell * attribute.shape[1] + column, missing | also
            if missing.any():
                if attribute.missing_cell is None:
                    refused = refused | missing
                else:
                    cell[missing] = attribute.missing_cell
            code = code * attribute.size + cell
        found[start : start + PART] = code if refused is False else np.where(refused, -1, code)
    return found


def _line(side: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Rule 3 for an array of doubles: (cells, int64, and which are missing). It is ``Numeric.cells`` with its boundaries worked
    out once, where there are few; the first guess is off by at most one, as there."""
    if side.n_cells > TABLED:
        return lambda numbers: (side.cells(numbers), np.isnan(numbers))
    start, gap, scale = side.lattice
    inner = (start + gap * np.arange(1, side.n_cells, dtype=np.float64)) / scale
    # Nothing lies beyond the outermost cells, not even an infinity: no comparison with NaN is true.
    lower, upper = np.append(np.nan, inner), np.append(inner, np.nan)
    low, high, rate, top = float(side.low), float(side.high), float(1 / side.width), float(side.n_cells - 1)

    def cells(numbers: Any) -> tuple[Any, Any]:
        guess = np.fmax(numbers.astype(np.float64, copy=False), low)  # also of NaN
        np.fmin(guess, high, out=guess)
        guess -= low
        guess *= rate
        np.minimum(guess, top, out=guess)
        cell = guess.astype(np.int64)
        after, before = numbers >= upper[cell], numbers < lower[cell]
        cell += after
        cell -= before
        return cell, np.isnan(numbers)

    return cells


def check_ids(source: Source, ident: str) -> None:
    """Refuses an id column that is neither text nor integers, by its declared type alone.

    Raises:
        DataError: names the column and its type.
    """
    if kind_of(source.types[source.columns.index(ident)]) not in ("text", "integer"):
        raise DataError(
            f"{source.where}: column {ident!r} is neither text nor integers, of which ids are read: convert it."
        )


def _columns(source: Source, domain: Domain) -> list[str]:
    return [f"c{source.columns.index(c)}" for name, a in domain.items() for c in a.columns(name)]


def _batches(where: str, backend: Any, rows: Any) -> Iterator[Any]:
    # The driver of PostgreSQL makes Python values of a batch.
    size = BATCH if backend.name != "postgres" else postgres.BATCH
    reader = sealed(where, "reading", lambda: iter(backend.to_pyarrow_batches(rows, chunk_size=size)))
    while (batch := sealed(where, "reading", next, reader, None)) is not None:
        yield batch


def _copied(where: str, backend: Any, rows: Any) -> Iterator[Any]:
    reader = sealed(where, "reading", postgres.copied, backend, rows)
    while (batch := sealed(where, "reading", next, reader, None)) is not None:
        yield batch


def _first_flaw(source: Source) -> DataError | None:
    if not source.flaws:
        return None
    with source.opened() as (_, table):
        first = sealed(source.where, "reading", lambda: table.flaw.min().to_pyarrow().as_py())
    return None if first is None else DataError(source.flaws[first])


def refusal(source: Source, domain: Domain, null: Sequence[str]) -> DataError | EngineError:
    """Names the first flaw of the rows, or else the first attribute that meets a value it declared not to exist."""
    flaw = _first_flaw(source)
    if flaw is not None:
        return flaw
    for name, attribute in domain.items():
        if attribute.missing_cell is None:
            with source.opened() as (backend, table):
                one = Domain({name: attribute})
                code = sealed(source.where, "planning", encoded, table, one, _columns(source, one), null)
                found = code.filter(code["code"].isnull()).limit(1)
                if sum(batch.num_rows for batch in _batches(source.where, backend, found)):
                    break
    else:  # a file that says it has no nulls, and has some
        return _beyond(source.where)
    kind = "values as they are listed"
    fix = "correct it, or declare missing='secret' or missing='public'"
    if not isinstance(attribute, Categorical):
        kind = f"{'whole ' if isinstance(attribute, Integer) else ''}numbers, with a point and no comma"
    if isinstance(attribute, Categorical) and attribute.other is None:
        fix += ", or other= for values that are not listed"
    named = " or ".join(map(repr, attribute.columns(name)))
    return DataError(
        f"{source.where}: column {named} holds a value that is null or outside what attribute "
        f"{name!r} declares ({kind}), which with missing='refuse' does not exist: {fix}."
    )


def row_count(source: Source) -> int:
    """Number of rows that are read.

    Raises:
        DataError: a row has a flaw; names columns, nothing else.
    """
    with source.opened() as (_, table):
        first = {"first": table.flaw.min()} if source.flaws else {}
        told = table.aggregate(n=table.count(), **first)
        found = sealed(source.where, "reading", lambda: told.to_pyarrow().to_pylist()[0])
    if found.get("first") is not None:
        raise DataError(source.flaws[found["first"]])
    return int(found["n"])
