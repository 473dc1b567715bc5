"""Tables of private rows, and what the rest of the package sees of them: counts, and cells on their way into a channel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .cellular import Cells
from .counting import DENSE, Batch, check_ids, grouped, row_count, streamed
from .domain import Domain
from .engine import check_readable
from .errors import EngineError, SpecificationError, Unsupported, unknown
from .files import suffix
from .sources import open_source

MAX_COUNT = 2**63 - 1
CHUNK = 1 << 20
LATER = ("id", "max_rows_per_id", "keep_by", "row_counts", "weight", "weight_bounds", "where", "sql")


@dataclass(frozen=True, repr=False, eq=False)
class Counts:
    """How many rows lie in each cell of a domain. Private: it shows its shape, never a number.

    Attributes:
        domain: the counted attributes, in the order of the table's domain.
        dense: int64, shape (domain.size,), row-major and read-only; None above 10^7 cells.
        codes, numbers: above 10^7 cells, int64 and read-only: the cells that hold rows, ascending, and how many each
            holds. None otherwise.
        total: number of rows.

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
        order = np.argsort(codes, kind="stable")
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
    the cell of each row and replaces it before it leaves.

    Args:
        source: a path (parquet, csv, csv.gz, tsv, arrow, feather), an Ibis URL (``duckdb://people.duckdb``), a pandas,
            polars or pyarrow frame, a dict of columns, or an Ibis table. All are read, never written.
        domain: what the rows can hold; never read off the data.
        name: the table's name in ledgers; the file's stem unless given, "table" for what has no file.
        edition: which edition of the table this is.
        null: texts that count as null, letter by letter, in text columns ("?", "", "NA"); none unless given. An empty
            field of a CSV file is the empty text.
        table: the table's name within a URL's database.

    Raises:
        DataError: a missing file, table or column, or a column of a type that its attribute cannot be read from.
        EngineError: the source cannot be opened.
        Unsupported: an option or kind of source that this version does not offer.

    >>> from tetraodon import Categorical, Integer
    >>> domain = Domain(age=Integer(0, 3), sex=Categorical(["f", "m"], missing="public"))
    >>> table = Table({"age": [1, 9, 1], "sex": ["f", None, "f"]}, domain)
    >>> table.counts("age").dense.tolist(), table.counts().dense.reshape(domain.shape).tolist()
    ([0, 2, 0, 1], [[0, 0, 0], [2, 0, 0], [0, 0, 0], [0, 0, 1]])
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
        **later: Any,
    ) -> None:
        for option in later:
            if option in LATER:
                raise Unsupported(f"table.{option}: not available in this version.")
            raise unknown("table", "option", option, ("name", "edition", "null", "table"))
        if not isinstance(domain, Domain):
            raise SpecificationError(
                f"domain: a Domain, not {type(domain).__name__}; domains are declared, never inferred."
            )
        texts = tuple(null)
        if isinstance(null, str) or not all(isinstance(n, str) and "\0" not in n for n in texts):
            raise SpecificationError("null: a list of texts, none with a NUL character.")
        for what, value in (("name", name), ("edition", edition), ("table", table)):
            if value is not None and not isinstance(value, str):
                raise SpecificationError(f"{what}: a text.")
        self.domain = domain
        self.name = name or _name(source, table)
        self.edition = edition
        self.null = texts
        columns = dict.fromkeys(c for n, a in domain.items() for c in a.columns(n))
        self._open = partial(open_source, source, table=table)
        self._source = self._open(list(columns))
        types = dict(zip(self._source.columns, self._source.types, strict=True))
        for attribute_name, attribute in domain.items():
            for column in attribute.columns(attribute_name):
                check_readable(attribute, types[column], self._source.where, column)

    def counts(self, *attributes: str) -> Counts:
        """Batch per cell of some attributes (all of them, if none is named), in the order of the domain.

        Raises:
            DataError: a selected attribute with ``missing="refuse"`` meets a value that is null, invalid or
                undeclared; names the column, never a row or how many.
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
        beside = named if ident is None else [*named, ident]
        source = self._source
        if set(beside) - set(source.columns):
            source = self._open(list(dict.fromkeys([*source.columns, *beside])))
        if ident is not None:
            check_ids(source, ident)
        return streamed(source, domain, self.null, named, ident, ordered)

    def declared(self, domain: Domain) -> Table:
        """The same rows under another domain.

        Raises:
            DataError: as ``Table``.
        """
        source, table = self._open.args[0], self._open.keywords["table"]
        return Table(source, domain, name=self.name, edition=self.edition, null=self.null, table=table)

    @property
    def n_rows(self) -> int:
        """Number of rows. Public only where the policy has ``presence="public"``."""
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
