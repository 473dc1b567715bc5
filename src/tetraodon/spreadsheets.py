"""CSV that opens right in a spreadsheet: no text runs as a formula, and no text is read in another encoding.

UTF-8, comma, decimal point, no thousands separators, every text quoted. A byte order mark stands in front where some text is
not ASCII, since spreadsheets take a file without one for the local code page. A text that a spreadsheet would run
as a formula has an apostrophe in front; numbers and ranges of numbers have not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

RUNS = r"^'*[=+\-@\t\r]"
NUMBER = r"^-?[0-9.]+(–-?[0-9.]+)?$"
ESCAPED = re.compile(r"'+[=+\-@\t\r]")
MARK = b"\xef\xbb\xbf"


def escaped(text: str) -> str:
    """A text that no spreadsheet runs; ``unescaped`` is its inverse.

    >>> escaped("=1+1"), escaped("-5"), escaped("-5–-1"), escaped("'s-Hertogenbosch"), escaped("'=x")
    ("'=1+1", '-5', '-5–-1', "'s-Hertogenbosch", "''=x")
    """
    return f"'{text}" if re.match(RUNS, text) and not re.fullmatch(NUMBER[1:-1], text, re.ASCII) else text


def unescaped(text: str) -> str:
    """The text that ``escaped`` was given.

    >>> unescaped("'=1+1"), unescaped("'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return text[1:] if ESCAPED.match(text) else text


def harmless(table: pyarrow.Table) -> pyarrow.Table:
    """A table with all its texts and names escaped."""
    import pyarrow as pa

    columns = [_harmless(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=[escaped(name) for name in table.column_names])


def _harmless(column: Any) -> Any:
    import pyarrow as pa

    # The few distinct texts of a column, not every row.
    coded = pa.concat_arrays(column.chunks).dictionary_encode()
    return pa.array([escaped(t) for t in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def write_csv(table: pyarrow.Table, path: Path) -> None:
    """Write a table as one CSV file; the same bytes for the same table."""
    from pyarrow import csv

    csv.write_csv(harmless(table), path, csv.WriteOptions(quoting_style="needed"))
    content = path.read_bytes()
    if not content.isascii():
        path.write_bytes(MARK + content)
