"""Hash-chained rows, in one SQLite file or in memory (``shared_chain``: in PostgreSQL). What they mean is the ledger's business.

A row is ``(seq, prev, body, hash)``: ``prev`` is the hash of the row before (64 zeros for the first), ``body`` is
canonical JSON (sorted keys, ASCII, no floats), and hash = SHA-256 of seq, prev and body, a line each.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .errors import LedgerError, SpecificationError
from .staged import sync, workplace

Row: TypeAlias = tuple[int, str, str, str]
PathText: TypeAlias = str | os.PathLike[str]

_APPLICATION = 0x54657472  # "Tetr" in the file's header
_BITS = 8192  # Python turns about 14 000 bits into text, no more
_WAIT = 120.0  # seconds for the transactions of other processes; eight that charge without a pause fill half a minute
_PAUSE = 0.002  # seconds between two tries to be next
_DAMAGED = "the file is damaged. Restore it from a copy."
_NO_LOCKS = "its folder does not lock files, as some network shares. Keep it on a local disk, or in PostgreSQL (docs/ledger.md)."
_SCHEMA = (
    # AUTOINCREMENT keeps the highest number ever given, which shows when the last rows are deleted
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY AUTOINCREMENT, prev TEXT NOT NULL, body TEXT NOT NULL, "
    "hash TEXT NOT NULL)"
)


class Book(NamedTuple):
    """All rows at one moment, and ``mark``, the highest row number that was ever given."""

    rows: tuple[Row, ...]
    mark: int


def plain(where: str, value: Any) -> Any:
    """A copy of ``value`` made of what JSON holds exactly: rationals become text, lists tuples, floats are refused.

    >>> plain("query", {"quantiles": [Fraction(1, 2)], "by": None})
    {'quantiles': ('1/2',), 'by': None}
    >>> plain("query", {"quantiles": 0.5})
    Traceback (most recent call last):
    tetraodon.errors.SpecificationError: query.quantiles: a float cannot be kept exactly; use text, whole numbers, Fractions, lists and mappings with text keys.
    """
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool:  # nearly all that is read back
        return value
    if isinstance(value, list | tuple):
        return tuple([plain(where, each) for each in value])
    if (kind is dict or isinstance(value, Mapping)) and all(isinstance(key, str) for key in value):
        return {key: plain(f"{where}.{key}", each) for key, each in value.items()}
    if isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
            raise SpecificationError(
                f"{where}: a rational of more than {_BITS} bits is not kept; round it first."
            )
        return str(value)
    raise SpecificationError(
        f"{where}: a {type(value).__name__} cannot be kept exactly; use text, whole numbers, Fractions, lists and "
        "mappings with text keys."
    )


def canonical(where: str, value: Any) -> str:
    """The one JSON text of ``value``.

    >>> canonical("policy", {"b": Fraction(1, 3), "a": "é"})
    '{"a":"\\\\u00e9","b":"1/3"}'
    """
    try:
        return json.dumps(plain(where, value), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SpecificationError):
            raise
        raise SpecificationError(f"{where}: a number too long, or a nesting too deep, to be kept.") from None


def seal(before: Row | None, body: Mapping[str, Any]) -> Row:
    """The row that says ``body``, at this time (UTC), after the row ``before``."""
    seq, prev = (before[0] + 1, before[3]) if before else (1, "0" * 64)
    text = canonical("ledger", {**body, "time": datetime.now(UTC).isoformat(timespec="seconds")})
    return seq, prev, text, _hash(seq, prev, text)


def broken_links(book: Book) -> list[str]:
    """What is wrong with the chain, in plain sentences; empty for a sound one."""
    problems, last, prev = [], 0, "0" * 64
    for seq, before, text, digest in book.rows:
        if seq != last + 1:
            problems.append(f"row {last + 1} is missing: row {seq} follows row {last}.")
        if before != prev:
            problems.append(
                f"row {seq} does not follow the row before it: a row was changed, removed or moved."
            )
        if digest != _hash(seq, before, text):
            problems.append(f"row {seq} was changed after it was written.")
        last, prev = seq, digest
    if last != book.mark:
        problems.append(
            f"the ledger has given out row numbers up to {book.mark}, but its last row is {last}."
        )
    return problems


def _hash(seq: int, prev: str, text: str) -> str:
    return hashlib.sha256(f"{seq}\n{prev}\n{text}".encode()).hexdigest()


def locate(path: PathText) -> Path:
    """``path`` as an absolute one, links followed, so that a later change of folder names the same file."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, TypeError, ValueError):
        raise LedgerError("ledger: the path is not one that this system can open; name a file.") from None


class Memory:
    """Rows that end with the process. A fork would hold a second copy of the budget, so it may not add any."""

    path: None = None
    name: None = None

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._book = Book((seal(None, body),), 1)
        self._process = os.getpid()
        self._lock = threading.Lock()

    def book(self) -> Book:
        """All rows now."""
        return self._book

    def extend(self, decide: Callable[[Book], tuple[Row, ...]]) -> tuple[Row, ...]:
        """Add the rows that ``decide`` returns for the present ones; none if it raises."""
        if os.getpid() != self._process:
            raise LedgerError(
                "ledger (in memory): it belongs to the process that made it. Nothing was spent. Give it a file."
            )
        with self._lock:
            new = decide(self._book)
            self._book = Book(self._book.rows + new, self._book.mark + len(new))
        return new


@dataclass(frozen=True, slots=True)
class File:
    """Rows in a SQLite file; each call opens and closes its own connection, so forks and threads may share it."""

    path: Path
    writable: bool

    @property
    def name(self) -> str:
        """What manifests call it."""
        return self.path.name

    def exists(self) -> bool:
        """Whether there is something at the path."""
        return os.path.lexists(self.path)

    def book(self) -> Book:
        """All rows now. Writes nothing, but for a write that a killed process left half done, which is undone."""
        with self._connect(self.path, "ro") as connection:
            try:
                return self._read(connection)
            except sqlite3.Error as error:
                if not _code(error).startswith("SQLITE_READONLY_ROLLBACK"):
                    raise
        with self._connect(self.path, "rw") as connection:
            return self._read(connection)

    def extend(self, decide: Callable[[Book], tuple[Row, ...]]) -> tuple[Row, ...]:
        """Add the rows that ``decide`` returns for the present ones, durably; none if it raises."""
        if not self.writable:
            raise LedgerError(f"ledger {self.path}: it was opened for reading only. Nothing was spent.")
        with self._connect(self.path, "rw") as connection:
            # The one setting of a file by which another program could make SQLite keep rows beside it.
            connection.execute("PRAGMA journal_mode = DELETE")
            _take_turn(connection)
            new = decide(self._read(connection))
            connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", new)
            try:
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                if _code(error).startswith("SQLITE_BUSY"):
                    raise
                raise LedgerError(
                    f"ledger {self.path}: {_reason(error)} The charge may have been stored; nothing was drawn. "
                    "`tetraodon ledger show` tells."
                ) from None
        return new

    def create(self, body: Mapping[str, Any]) -> None:
        """Make the file with its first row, unless there is one: whole at once, so that nobody sees half a ledger."""
        if self.exists():
            return
        if not os.path.isdir(self.path.parent):
            raise LedgerError(
                f"ledger {self.path}: there is no such folder; make it first. Nothing was spent."
            )
        try:
            with workplace(self.path.parent) as place:
                draft = place / "ledger"
                # SQLite gives its journals the permissions of the file.
                os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
                with self._connect(draft, "rw") as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(_SCHEMA)
                    connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?)", seal(None, body))
                    connection.execute("COMMIT")
                os.link(draft, self.path)  # fails if the name is taken, where a rename would replace
                sync(self.path.parent)
        except FileExistsError:
            pass  # another process was quicker; the caller checks that its ledger is the one asked for
        except OSError as error:
            raise LedgerError(
                f"ledger {self.path}: cannot be created ({error.strerror}). Allow writing to the file and its folder, on a local "
                "disk. Nothing was spent."
            ) from None

    def exposed(self) -> tuple[str, ...]:
        """Who else may do what with it, in plain sentences."""
        with suppress(OSError):
            others = os.stat(self.path).st_mode & 0o006 if os.name == "posix" else 0
            what = "written" if others & 0o002 else "read"
            told = f"{self.path} may be {what} by every user of this machine; take that away (chmod o-rwx)."
            return (told,) if others else ()
        return ()

    @contextmanager
    def _connect(self, path: Path, mode: str) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(path):
            what = "not a file" if os.path.exists(path) else "there is no such file"
            raise LedgerError(f"ledger {path}: {what}. Check the path. Nothing was spent.")
        address = f"{path.as_uri()}?mode={mode}"  # "ro" or "rw": neither makes a file
        try:
            opened = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)
            with closing(opened) as connection:
                # spoilt text is read all the same, and then fails its hash
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                # EXTRA also syncs the folder once the journal is gone: else a power cut could undo the commit
                if mode == "rw":
                    connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {self.path}: {_reason(error)} Nothing was spent.") from None
        except UnicodeDecodeError:  # of a message of SQLite's that quotes damaged text
            raise LedgerError(f"ledger {self.path}: {_DAMAGED} Nothing was spent.") from None

    def _read(self, connection: sqlite3.Connection) -> Book:
        if not connection.in_transaction:
            connection.execute("BEGIN")  # one snapshot for all that is read
        if connection.execute("PRAGMA schema_version").fetchone()[0] == 0:
            raise LedgerError(
                f"ledger {self.path}: the file is empty, which no ledger ever is. Nothing was spent. Restore it from a "
                "copy; if it never was a ledger, delete it."
            )
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        parts = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'"
        )
        # to the letter: a column can also be declared as an expression, which would be worked out when it is read
        if application != _APPLICATION or parts.fetchall() != [("table", "ledger", _SCHEMA)]:
            raise LedgerError(
                f"ledger {self.path}: an SQLite file, but not a Tetraodon ledger. Name another file. Nothing was spent."
            )
        rows = connection.execute("SELECT seq, prev, body, hash FROM ledger ORDER BY seq").fetchall()
        mark = connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'ledger'").fetchone()[0]
        return Book(tuple(rows), mark or 0)


def _take_turn(connection: sqlite3.Connection) -> None:
    """Begin to write, once no other process does. SQLite's own waiting backs off to a tenth of a second, in which a process
    that charges without a pause always comes first again: others would wait until they give up."""
    last = time.monotonic() + _WAIT
    connection.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if not _code(error).startswith("SQLITE_BUSY") or time.monotonic() > last:
                raise
            time.sleep(_PAUSE)
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _WAIT)}")


def _code(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "SQLITE_ERROR"))


def _reason(error: sqlite3.Error) -> str:
    """A sentence for SQLite's own code; its text is not passed on."""
    for prefix, sentence in (
        ("SQLITE_NOTADB", "not an SQLite file, so not a ledger. Name another file."),
        ("SQLITE_BUSY", f"other processes kept it for {_WAIT:.0f} seconds. Try again."),
        ("SQLITE_READONLY_ROLLBACK", "an interrupted write must be undone first. Allow writing to it once."),
        ("SQLITE_READONLY", "it may not be written. Allow writing to the file and its folder."),
        (
            "SQLITE_CANTOPEN",
            "it, or a file beside it, cannot be opened. Allow writing to the file and its folder.",
        ),
        ("SQLITE_FULL", "the disk is full. Make room."),
        ("SQLITE_IOERR_LOCK", _NO_LOCKS),
        ("SQLITE_IOERR_UNLOCK", _NO_LOCKS),
        ("SQLITE_IOERR_RDLOCK", _NO_LOCKS),
        ("SQLITE_IOERR_CHECKRESERVEDLOCK", _NO_LOCKS),
        ("SQLITE_PROTOCOL", _NO_LOCKS),
        ("SQLITE_CORRUPT", _DAMAGED),
    ):
        if _code(error).startswith(prefix):
            return sentence
    return f"it cannot be used ({_code(error)}). Check the disk and the file, or restore it from a copy."
