"""CSV that opens right in a spreadsheet: no text runs as a formula, and no text is read in another encoding.

UTF-8, comma, decimal point, no thousands separators, every text quoted. A text that a spreadsheet would run as a formula has
an apostrophe in front; numbers and ranges of numbers have not. What a spreadsheet or its import may strip off first (blanks,
line ends, control and invisible characters), and full-width forms of the signs, do not hide a formula.

Tables of answers have a byte order mark in front where some text is not ASCII, since spreadsheets take a file without one for
the local code page. Files of rows have none: they are for programs, which would take it for a part of the first name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

# Both Python and Arrow read these patterns; characters beyond ASCII stand in them as they are.
_BLANK = "\\x00-\\x20\\x7f-\\xa0" + "".join(
    chr(c)
    for c in (
        0xAD,
        0x1680,
        *range(0x2000, 0x2010),
        *range(0x2028, 0x2030),
        *range(0x205F, 0x2065),
        0x3000,
        0xFEFF,
    )
)
_SIGN = "=+\\-@＝＋－＠"
_STARTS = f"([{_BLANK}]*[{_SIGN}]|[\\t\\r\\n])"
RUNS = f"^'*{_STARTS}"
NUMBER = r"^-?[0-9.]+(–-?[0-9.]+)?$"
_RUNS, _NUMBER, _ESCAPED = (re.compile(p) for p in (RUNS, NUMBER[:-1] + r"\Z", f"'+{_STARTS}"))
MARK = b"\xef\xbb\xbf"


def escaped(text: str) -> str:
    """A text that no spreadsheet runs; ``unescaped`` is its inverse.

    >>> escaped("=1+1"), escaped("-5"), escaped("-5–-1"), escaped("'s-Hertogenbosch"), escaped("'=x"), escaped(" =1+1")
    ("'=1+1", '-5', '-5–-1', "'s-Hertogenbosch", "''=x", "' =1+1")
    """
    return f"'{text}" if _RUNS.match(text) and not _NUMBER.match(text) else text


def unescaped(text: str) -> str:
    """The text that ``escaped`` was given.

    >>> unescaped("'=1+1"), unescaped("'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return text[1:] if _ESCAPED.match(text) else text


def harmless(table: pyarrow.Table) -> pyarrow.Table:
    """A table with all its texts and names escaped."""
    import pyarrow as pa

    return pa.table([_harmless(c) for c in table.columns], names=[escaped(n) for n in table.column_names])


def _harmless(column: Any) -> Any:
    """A column with its texts escaped; of a dictionary the few distinct ones, not every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        parts = (
            pa.DictionaryArray.from_arrays(c.indices, _harmless(c.dictionary), ordered=kind.ordered)
            for c in column.chunks
        )
        return pa.chunked_array(parts, kind)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    runs = pc.and_not(pc.match_substring_regex(column, RUNS), pc.match_substring_regex(column, NUMBER))
    if not pc.any(runs).as_py():
        return column
    return pc.if_else(
        runs, pc.binary_join_element_wise(pa.scalar("'", kind), column, pa.scalar("", kind)), column
    )


def as_published(column: Any) -> Any:
    """A column of texts, as it stands in a CSV file of ours, as an Arrow array of what was published."""
    import pyarrow as pa

    if hasattr(column, "chunks"):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    coded = column.dictionary_encode()  # the few distinct texts, not every row
    return pa.array(
        [None if t is None else unescaped(t) for t in coded.dictionary.to_pylist()], pa.string()
    ).take(coded.indices)


def write_csv(table: pyarrow.Table, path: Path) -> None:
    """Write a table of answers as one CSV file; the same bytes for the same table."""
    write_rows(table, path)
    content = path.read_bytes()
    if not content.isascii():
        path.write_bytes(MARK + content)


def write_rows(table: pyarrow.Table, path: Path) -> None:
    """Write rows as one CSV file without a mark in front."""
    write_row_pieces([table], path)


def write_row_pieces(tables: Iterable[pyarrow.Table], path: Path) -> None:
    """``write_rows`` of tables of the same columns, one after another, at least one; each is held alone."""
    from pyarrow import csv

    with ExitStack() as held:
        writer: Any = None
        for table in tables:
            plain = harmless(table)
            told = csv.WriteOptions(quoting_style="needed")
            writer = writer or held.enter_context(csv.CSVWriter(path, plain.schema, write_options=told))
            writer.write_table(plain)
