"""Tables of private rows, and what the rest of the package sees of them: counts, and cells on their way into a channel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .cellular import Cells
from .counting import DENSE, MAX_COUNT, Batch, check_ids, grouped, row_count, streamed, streamed_cells
from .domain import Domain, check_columns
from .engine import is_joined
from .errors import EngineError, SpecificationError, unknown
from .exact import Number
from .files import Source, suffix
from .people import people_of
from .readable import check_readable
from .reading import kind_of
from .selecting import check_types, choice_of, conditions, conditions_spec, selected, selection_of
from .sources import open_source

if TYPE_CHECKING:
    from .spark_rows import Drawing

CHUNK = 1 << 20
OPTIONS = (
    "name", "edition", "null", "table", "id", "max_rows_per_id", "keep_by", "row_counts", "weight", "weight_bounds",
    "weight_step", "weights", "where", "sql",
)  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class Counts:
    """How many rows lie in each cell of a domain, or how much they weigh. Private: it shows its shape, never a number.

    Attributes:
        domain: the counted attributes, in the order of the table's domain.
        dense: int64, shape (domain.size,), row-major and read-only; None above 10^7 cells.
        codes, numbers: above 10^7 cells, int64 and read-only: the cells that hold rows, ascending, and how many each
            holds. None otherwise.
        total: number of rows. Of a table with weights, every count and the total are in steps of weight.

    >>> Counts.collect(Domain.from_spec({"age": {"integer": [0, 2]}}), [([0, 2], [5, 1])]).dense.tolist()
    [5, 0, 1]
    """

    domain: Domain
    dense: Cells | None
    codes: Cells | None
    numbers: Cells | None
    total: int

    @staticmethod
    def collect(domain: Domain, chunks: Iterable[tuple[object, object]]) -> Counts:
        """Counts from chunks of (codes, counts).

        Raises:
            EngineError: a code outside the domain, a negative count, or more than 2^63 − 1 rows in all.
        """
        pieces = [(np.asarray(c, dtype=np.int64), np.asarray(n, dtype=np.int64)) for c, n in chunks]
        codes = np.concatenate([np.empty(0, np.int64), *(c for c, _ in pieces)])
        numbers = np.concatenate([np.empty(0, np.int64), *(n for _, n in pieces)])
        del pieces
        if codes.size and (codes.min() < 0 or codes.max() >= domain.size or numbers.min() < 0):
            raise EngineError("table: the engine returned a cell outside the domain or a negative count.")
        # Exact in any order: the halves of a count add up without overflow below 2^31 chunks of cells.
        total = (int((numbers >> 32).sum()) << 32) + int((numbers & 0xFFFFFFFF).sum())
        if total > MAX_COUNT:
            raise EngineError("table: more than 2^63 − 1 rows cannot be counted.")
        if domain.size <= DENSE:
            dense = np.zeros(domain.size, dtype=np.int64)
            np.add.at(dense, codes, numbers)
            return Counts(domain, _frozen(dense), None, None, total)
        order = np.argsort(codes)
        codes, numbers = codes[order], numbers[order]
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        numbers = np.add.reduceat(numbers, first) if first.size else numbers
        held = numbers > 0
        return Counts(domain, None, _frozen(codes[first][held]), _frozen(numbers[held]), total)

    def items(self) -> Iterator[tuple[Cells, Cells]]:
        """Chunks of (codes, counts) of the cells that hold rows, ascending, in either form."""
        if self.dense is not None:
            for start in range(0, len(self.dense), CHUNK):
                part = self.dense[start : start + CHUNK]
                held = np.flatnonzero(part)
                yield held + start, part[held]
        elif self.codes is not None and self.numbers is not None:
            for start in range(0, len(self.codes), CHUNK):
                yield self.codes[start : start + CHUNK], self.numbers[start : start + CHUNK]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        pairs = ((self.dense, other.dense), (self.codes, other.codes), (self.numbers, other.numbers))
        return self.domain == other.domain and all(_same(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(self.domain)

    def __repr__(self) -> str:
        return f"Counts({' × '.join(map(str, self.domain.shape))} cells of {', '.join(self.domain)})"


def _frozen(array: Cells) -> Cells:
    array.flags.writeable = False
    return array


def _same(a: Cells | None, b: Cells | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))


class Table:
    """Private rows and the domain declared for them.

    Opening looks at the schema alone. Which rows there are is only ever seen as ``Counts``, except by a channel, which sees
    the cell of each row and replaces it before it leaves. Rows that ``where`` does not choose, and a person's rows beyond
    ``max_rows_per_id``, are not there for any way of reading (``selecting`` says which are kept).

    Args:
        source: a path (parquet, csv, csv.gz, tsv, arrow, feather), a folder of parquet files or a list of their paths, an Ibis URL
            (``duckdb://people.duckdb``), a pandas, polars or pyarrow frame, a dict of columns, or an Ibis table. All are read,
            never written.
        domain: what the rows can hold; never read off the data.
        name: the table's name in ledgers; the file's stem unless given, "table" for what has no file.
        edition: which edition of the table this is.
        null: texts that count as null, letter by letter, in text columns ("?", "", "NA"); none unless given. An empty
            field of a CSV file is the empty text.
        table: the table's name within a URL's database.
        id: column of texts or integers that tells who is who, none of them null; without it one row is one person.
        max_rows_per_id: how many rows of each person are read.
        keep_by: column of texts or integers that tells a person's rows apart and does not change with any declared value,
            such as the number of a visit. Rows are kept by a digest of id and key, so not the first ones; without it any
            rows may be kept, and releases are priced for that.
        row_counts: "secret" (default) or "public": the number of a person's rows.
        weight: column of numbers: what each row counts, instead of 1. ``codes`` and ``rows`` know no weights.
        weight_bounds: (low, high), ends included; a weight that is null or beyond is refused with the table.
        weight_step: weights are rounded half up to multiples of it, and counts are in such steps; 1 by default.
        weights: "secret" (default) or "public": whether a row's weight may change with its value.
        where: which rows are read, by column, declared or not: a list of texts or of whole numbers, compared as categories
            are, or two numbers as a tuple or as {"between": [low, high]}, ends included. All conditions hold of a row that
            is read; a null is never chosen. That a row is chosen counts as public.
        sql: for a URL, one SELECT whose result is read instead of ``table``. Each of its rows must come from rows of one
            person; that it is there counts as public.

    Attributes:
        people: what one person adds to the table, by these declarations; ``Session`` prices releases with it.
        where, sql: as they are stated; nothing and None where every row is read.

    Raises:
        SpecificationError: an argument of the wrong kind, two attributes that read one column, an id or a key that an
            attribute reads; names the argument and the fix.
        DataError: a missing file, table or column, or a column of a type that cannot be read so.
        EngineError: the source cannot be opened.
        Unsupported: a kind of source that this version does not offer.

    >>> from tetraodon import Categorical, Integer
    >>> domain = Domain(age=Integer(0, 3), sex=Categorical(["f", "m"], missing="public"))
    >>> table = Table({"age": [1, 9, 1], "sex": ["f", None, "f"]}, domain)
    >>> table.counts("age").dense.tolist(), table.counts().dense.reshape(domain.shape).tolist()
    ([0, 2, 0, 1], [[0, 0, 0], [2, 0, 0], [0, 0, 0], [0, 0, 1]])

    Two rows of a person at most, each with its weight in halves:

    >>> stays = {"who": ["a", "a", "b"], "stay": [1, 2, 1], "age": [2, 2, 3], "w": [1.5, 0.7, 2]}
    >>> people = {"id": "who", "max_rows_per_id": 2, "keep_by": "stay"}
    >>> weighed = Table(stays, Domain(age=Integer(0, 3)), **people, weight="w", weight_bounds=(0, 2), weight_step="0.5")
    >>> weighed.counts().dense.tolist(), weighed.n_rows
    ([0, 0, 4, 4], 3)
    """

    def __init__(
        self,
        source: object,
        domain: Domain,
        *,
        name: str | None = None,
        edition: str = "",
        null: Iterable[str] = (),
        table: str | None = None,
        id: str | None = None,
        max_rows_per_id: int | None = None,
        keep_by: str | None = None,
        row_counts: str | None = None,
        weight: str | None = None,
        weight_bounds: Sequence[Number] | None = None,
        weight_step: Number | None = None,
        weights: str | None = None,
        where: Mapping[str, Any] | None = None,
        sql: str | None = None,
        **unheard: Any,
    ) -> None:
        for option in unheard:
            raise unknown("table", "option", option, OPTIONS)
        if not isinstance(domain, Domain):
            raise SpecificationError(
                f"domain: a Domain, not {type(domain).__name__}; domains are declared, never inferred."
            )
        texts = tuple(null)
        if isinstance(null, str) or not all(isinstance(n, str) and "\0" not in n for n in texts):
            raise SpecificationError("null: a list of texts, none with a NUL character.")
        for what, value in (("name", name), ("edition", edition), ("table", table), ("sql", sql)):
            if value is not None and not isinstance(value, str):
                raise SpecificationError(f"{what}: text, not {kind_of(value)}.")
        check_columns(domain)
        self.domain = domain
        self.name = name or _name(source, table)
        self.edition = edition
        self.null = texts
        self.people = people_of(
            id, max_rows_per_id, keep_by, row_counts, weight, weight_bounds, weight_step, weights
        )
        chosen = conditions(where)
        self.where = conditions_spec(chosen)
        self.sql = sql
        self._given: dict[str, Any] = {
            "source": source, "name": self.name, "edition": edition, "null": texts, "table": table, "id": id,
            "max_rows_per_id": max_rows_per_id, "keep_by": keep_by, "row_counts": row_counts, "weight": weight,
            "weight_bounds": weight_bounds, "weight_step": weight_step, "weights": weights, "where": where, "sql": sql,
        }  # fmt: skip
        self._selection = selection_of(
            domain, name=self.name, null=texts, where=chosen, id=id, most=self.people.max_rows, keep_by=keep_by,
            weight=weight, weights=self.people.weight,
        )  # fmt: skip
        columns = dict.fromkeys(c for n, a in domain.items() for c in a.columns(n))
        self._open = partial(open_source, source, table=table, sql=sql)
        self._opened = self._open(list(dict.fromkeys([*columns, *self._selection.columns])))
        check_types(self._selection, self._opened)
        self._source = selected(self._opened, self._selection)
        types = dict(zip(self._source.columns, self._source.types, strict=True))
        for attribute_name, attribute in domain.items():
            for column in attribute.columns(attribute_name):
                check_readable(attribute, types[column], self._source.where, column)

    def counts(self, *attributes: str) -> Counts:
        """Batch per cell of some attributes (all of them, if none is named), in the order of the domain.

        Raises:
            DataError: a selected attribute with ``missing="refuse"`` meets a value that is null, invalid or
                undeclared, or what ``id``, ``keep_by`` or ``weight`` declare does not hold of a row; names the column,
                never a row or how many.
            EngineError: the engine failed.
        """
        domain = self.domain.select(*attributes) if attributes else self.domain
        return Counts.collect(domain, grouped(self._source, domain, self.null))

    def codes(self, *attributes: str) -> Iterator[Cells]:
        """The cell of every row, of some attributes (all of them, if none is named) in the order of the domain.

        Private: int64 chunks of up to a million rows, out of core, in no particular order.

        Raises:
            DataError: as ``counts``; what came before the refusal must not leave.
            EngineError: the engine failed.

        >>> from tetraodon import Integer
        >>> table = Table({"age": [1, 9, 1]}, Domain(age=Integer(0, 3)))
        >>> sorted(np.concatenate(list(table.codes())).tolist())
        [1, 1, 3]
        """
        return (np.asarray(part.cells, dtype=np.int64) for part in self.rows(*attributes))

    def rows(
        self, *attributes: str, keep: Iterable[str] = (), ident: str | None = None, ordered: bool = False
    ) -> Iterator[Batch]:
        """As ``codes``, with other columns of the source beside each cell, declared or not. Private.

        Args:
            keep: columns that come as they are.
            ident: a column of texts or integers that comes as text.
            ordered: as they stand in a file or a frame; a database has its own order.

        Raises:
            DataError: as ``codes``; no such column; an id column of another type, or with nulls.
            EngineError: the engine failed.
        """
        domain = self.domain.select(*attributes) if attributes else self.domain
        named = list(keep)
        source = self._showing(domain, named, ident, ordered)
        return streamed(source, domain, self.null, named, ident, ordered)

    def cells(self, *attributes: str, ordered: bool = False) -> Iterator[dict[str, Cells]]:
        """The cells of every row, attribute by attribute, of some attributes (all of them, if none is named), which may have more
        joint cells than have numbers. Private: chunks of up to a million rows, out of core.

        Args:
            ordered: as they stand in a file or a frame; a database has its own order.

        Raises:
            DataError: as ``codes``; what came before the refusal must not leave.
            EngineError: the engine failed.

        >>> from tetraodon import Integer
        >>> table = Table({"age": [1, 9], "size": [2, 0]}, Domain(age=Integer(0, 3), size=Integer(0, 2)))
        >>> {name: cells.tolist() for name, cells in next(table.cells(ordered=True)).items()}
        {'age': [1, 3], 'size': [2, 0]}
        """
        domain = self.domain.select(*attributes) if attributes else self.domain
        return streamed_cells(self._showing(domain, (), None, ordered), domain, self.null, ordered)

    def _showing(self, domain: Domain, named: Sequence[str], ident: str | None, ordered: bool) -> Source:
        """The source with other columns besides."""
        beside = [*named] if ident is None else [*named, ident]
        source, opened = self._source, self._opened
        if set(beside) - set(opened.columns):
            opened = self._open(list(dict.fromkeys([*opened.columns, *beside])))
        # Choosing a person's rows loses their order, and so does a join, which DuckDB makes of a list of values too.
        loses = self._selection.person is not None or self._selection.is_listed or is_joined(domain)
        is_placed = ordered and opened.embedded and loses
        if is_placed or opened is not self._opened:
            source = selected(opened, self._selection, is_placed=is_placed)
        if ident is not None:
            check_ids(source, ident)
        return source

    @property
    def is_spread(self) -> bool:
        """Whether a channel draws these rows where they lie, in the workers of their engine."""
        return self._source.is_spread

    def check_spread(self) -> None:
        """Whether rows can be drawn where they lie, looked at before anything is charged.

        Raises:
            Unsupported: there is no place to write them to; says which setting names one.
        """
        if self.is_spread:
            from .spark_rows import check_stage

            check_stage(self._source)

    def spread(
        self, attributes: Iterable[str], keep: Sequence[str], drawing: Drawing, kinds: Sequence[type[Any]]
    ) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
        """What ``drawing`` draws for the cell of every row, in the workers of the table's engine, and kept columns beside it.
        Private until the last batch was given (``spark_rows.spread``).

        Raises:
            DataError, EngineError, Unsupported: as ``spark_rows.spread``.
        """
        from .spark_rows import spread

        domain = self.domain.select(*attributes)
        return spread(self._showing(domain, keep, None, False), domain, self.null, keep, drawing, kinds)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files whose bytes, and nothing else, are the table, in the order in which they are read; () where there are none."""
        return self._source.files

    @property
    def reading(self) -> dict[str, Any]:
        """Which of its source's rows are read, and what counts as null, in plain values."""
        told: dict[str, Any] = {"table": self._given["table"], "sql": self.sql, "null": sorted(self.null)}
        return told | {"where": self.where, "people": self.binding}

    def declared(self, domain: Domain) -> Table:
        """The same rows under another domain.

        Raises:
            DataError: as ``Table``.
        """
        return Table(domain=domain, **self._given)

    @property
    def binding(self) -> dict[str, Any]:
        """Which rows of a person are read, and what they count, as declared; {} where every row is one person's and counts 1."""
        if self._given["id"] is None and self._given["weight"] is None:
            return {}
        told = {key: self._given[key] for key in ("id", "keep_by", "weight") if self._given[key] is not None}
        return told | {"people": self.people.to_spec()}

    @property
    def choice(self) -> dict[str, Any]:
        """What charges say of the rows that ``where`` and ``sql`` choose; {} for all."""
        return choice_of(self.domain, self._given["id"], self._given["where"], self.sql)

    @property
    def n_rows(self) -> int:
        """Number of rows that are read. Public only where the policy has ``presence="public"`` and public row counts.

        Raises:
            DataError: what ``id``, ``keep_by`` or ``weight`` declare does not hold of a row; names columns, never a row.
            EngineError: the engine failed.
        """
        return row_count(self._source)

    def __repr__(self) -> str:
        edition = f", edition {self.edition!r}" if self.edition else ""
        return f"Table({self.name!r}{edition}: {self._source.where}, {self.domain!r})"


def _name(source: object, table: str | None) -> str:
    if isinstance(source, str) and "://" in source:
        return table or "table"
    if isinstance(source, str | os.PathLike):
        file = Path(os.fspath(source)).name
        return file[: len(file) - len(suffix(file))] or "table"
    return "table"
