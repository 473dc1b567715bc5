"""Hash-chained rows in PostgreSQL: one ledger that a team shares. The same rows, the same chain, as in a file (``chain``).

A ledger is two tables: its rows, which are only ever added, and one number, the highest row number that was ever given.
Whoever charges locks that number first, so that no two ever decide on the same rows; the primary key of the rows would refuse
the second one all the same. A role that may charge needs SELECT and INSERT on the rows, SELECT and UPDATE on the number, and
can then neither change nor delete a row (docs/ledger.md).

Needs SQLAlchemy and pg8000 (extra ``postgres``). What they raise never leaves this module: it may name the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .chain import Book, Row, seal
from .errors import LedgerError, TetraodonError, Unsupported
from .ledger_address import Address, entry

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

T = TypeVar("T")

INSTALL = "ledger: install tetraodon[postgres] to keep it in PostgreSQL."
_WAIT = 120  # seconds for the transactions of other processes
_ANSWER = 150.0  # seconds for the server; more than it may wait itself
# Functions, types and operators are PostgreSQL's own, whatever the role's search path holds, and a row that was confirmed
# stays, whatever the role's own settings are.
_SAFELY = (
    "SET LOCAL search_path = pg_catalog",
    f"SET LOCAL lock_timeout = '{_WAIT}s'",
    "SET LOCAL synchronous_commit = on",
)
_SHAPE = """
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relispartition AND NOT c.relhassubclass
    AND NOT c.relhasrules AND NOT c.relrowsecurity AND NOT c.relforcerowsecurity
    AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
    (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CAST(a.attgenerated AS text), ', '
        ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname IN (:rows, :mark)
"""
_STANDBY = "the server may only be read, as a standby. Name the one that may be written."
_ROWS, _MARK = "seq bigint, prev text, body text, hash text", "highest bigint"
_OPEN_TO_ALL = """
SELECT bool_or(has_table_privilege('public', c.oid, 'INSERT') OR has_table_privilege('public', c.oid, 'UPDATE')
    OR has_table_privilege('public', c.oid, 'DELETE') OR has_table_privilege('public', c.oid, 'TRUNCATE')),
    bool_or(has_table_privilege('public', c.oid, 'SELECT'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relname IN (:rows, :mark)
"""


@dataclass(frozen=True, slots=True)
class Shared:
    """Rows in a PostgreSQL database; each call opens and closes its own connection, so forks and threads may share it."""

    address: Address
    writable: bool

    @property
    def path(self) -> None:
        """None: there is no file."""

    @property
    def name(self) -> str:
        """What manifests and messages call it."""
        return str(self.address)

    def book(self) -> Book:
        """All rows now."""

        def read(connection: Connection) -> Book:
            self._check_shape(connection)
            rows, mark = self._tables()
            # One snapshot for both: the transaction is a repeatable read.
            highest = connection.execute(mark.select()).scalars().all()
            return self._book(connection, rows, max(highest, default=0))

        return self._transaction(read, writes=False)

    def extend(self, decide: Callable[[Book], tuple[Row, ...]]) -> tuple[Row, ...]:
        """Add the rows that ``decide`` returns for the present ones, durably; none if it raises."""
        if not self.writable:
            raise LedgerError(f"ledger {self.name}: it was opened for reading only. Nothing was spent.")

        def add(connection: Connection) -> tuple[Row, ...]:
            self._check_shape(connection)
            self._check_durable(connection)
            rows, mark = self._tables()
            highest = connection.execute(mark.select().with_for_update()).scalars().all()
            if len(highest) != 1:
                raise LedgerError(
                    f"ledger {self.name}: the number that counts its rows is gone. Nothing was spent. "
                    "`tetraodon ledger verify` lists what is wrong; restore it from a copy."
                )
            # A new snapshot, taken under the lock: it holds all that was ever confirmed.
            new = decide(self._book(connection, rows, highest[0]))
            if new:
                connection.execute(rows.insert(), [_named(row) for row in new])
                connection.execute(mark.update().values(highest=new[-1][0]))
            return new

        return self._transaction(add, writes=True)

    def create(self, body: Mapping[str, Any]) -> None:
        """Make the tables with the first row, unless there are any: in one transaction, so that nobody sees half a ledger."""

        def make(connection: Connection) -> None:
            from sqlalchemy import text

            # Two makers wait for each other here; whoever comes second finds the ledger of the first.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": self._key()})
            if self._shape(connection):
                return
            self._check_durable(connection)
            rows, mark = self._tables()
            for table in (rows, mark):
                table.create(connection)
                # Default privileges may have given it to everybody.
                quoted = connection.dialect.identifier_preparer.format_table(table)
                connection.execute(text(f"REVOKE ALL ON {quoted} FROM PUBLIC"))
            first = seal(None, body)
            connection.execute(rows.insert(), [_named(first)])
            connection.execute(mark.insert().values(highest=first[0]))

        if not self.exists():
            self._transaction(make, writes=True)

    def exists(self) -> bool:
        """Whether there is a ledger of this name, or something else in its place."""
        return bool(self._transaction(self._shape, writes=False))

    def exposed(self) -> tuple[str, ...]:
        """Who else than its roles may do what with it, in plain sentences."""

        def asked(connection: Connection) -> tuple[bool, bool]:
            from sqlalchemy import text

            written, read = connection.execute(text(_OPEN_TO_ALL), self._names()).one()
            return bool(written), bool(read)

        written, read = self._transaction(asked, writes=False)
        what = "written" if written else "read"
        told = f"{self.name} may be {what} by every role of the database; revoke that from PUBLIC."
        return (told,) if written or read else ()

    def _key(self) -> int:
        """The number of the lock under which this ledger is made."""
        told = f"tetraodon ledger {self.address.schema}.{self.address.name}"
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:8], "big", signed=True)

    def _names(self) -> dict[str, str]:
        name = self.address.name
        return {
            "schema": self.address.schema,
            "rows": f"tetraodon_ledger_{name}",
            "mark": f"tetraodon_mark_{name}",
        }

    def _tables(self) -> tuple[Table, Table]:
        from sqlalchemy import BigInteger, Column, MetaData, Table, Text

        names = self._names()
        made = MetaData(schema=names["schema"])
        texts = [Column(name, Text, nullable=False) for name in ("prev", "body", "hash")]
        key = Column("seq", BigInteger, primary_key=True, autoincrement=False)
        rows = Table(names["rows"], made, key, *texts)
        return rows, Table(names["mark"], made, Column("highest", BigInteger, nullable=False))

    def _book(self, connection: Connection, rows: Table, mark: int) -> Book:
        found = connection.execute(rows.select().order_by(rows.c.seq))
        return Book(tuple((row.seq, row.prev, row.body, row.hash) for row in found), mark)

    def _shape(self, connection: Connection) -> dict[str, tuple[bool, str]]:
        """Of each of the two tables that is there: whether it is a plain one, and its columns."""
        from sqlalchemy import text

        return {
            name: (is_plain, told) for name, is_plain, told in connection.execute(text(_SHAPE), self._names())
        }

    def _check_shape(self, connection: Connection) -> None:
        """Refuse anything that could show other rows than are stored, or store others than are written."""
        found, names = self._shape(connection), self._names()
        if not found:
            raise LedgerError(
                f"ledger {self.name}: there is no such ledger in this database. Check the URL. Nothing was spent."
            )
        if found != {names["rows"]: (True, _ROWS), names["mark"]: (True, _MARK)}:
            raise LedgerError(
                f"ledger {self.name}: tables of its name are there, but they are not those of a Tetraodon ledger as it is made: "
                "plain, without triggers, rules, row security or parts. Nothing was spent."
            )

    def _check_durable(self, connection: Connection) -> None:
        from sqlalchemy import text

        if connection.execute(text("SELECT current_setting('fsync')")).scalar_one() != "on":
            raise LedgerError(
                f"ledger {self.name}: the server runs with fsync = off and may forget what it confirmed. Nothing was spent. "
                "Set it on, or keep the ledger elsewhere."
            )

    def _transaction(self, work: Callable[[Connection], T], writes: bool) -> T:
        """What ``work`` returns, once its transaction is confirmed; an error of ours that carries nothing of theirs."""
        try:
            return self._worked(work, writes)
        except TetraodonError as error:
            failure = error
        except Exception as error:
            failure = LedgerError(f"ledger {self.name}: {_reason(error)} Nothing was spent.")
        failure.__cause__ = failure.__context__ = None
        raise failure.with_traceback(None)  # the frames hold the password

    def _worked(self, work: Callable[[Connection], T], writes: bool) -> T:
        try:
            import pg8000
            import sqlalchemy
        except ImportError:
            raise Unsupported(INSTALL) from None
        told = entry(self.address, _ANSWER)
        engine = sqlalchemy.create_engine(
            "postgresql+pg8000://",
            creator=lambda: pg8000.connect(**told),
            poolclass=sqlalchemy.pool.NullPool,
            hide_parameters=True,
        )
        connection = engine.connect()
        try:
            level = "READ COMMITTED, READ WRITE" if writes else "REPEATABLE READ, READ ONLY"
            for statement in (f"SET TRANSACTION ISOLATION LEVEL {level}", *_SAFELY):
                connection.exec_driver_sql(statement)
            made = work(connection)
            if writes:
                self._commit(connection)
            return made
        finally:
            # Whatever happens now, the transaction is confirmed or it is not.
            with suppress(Exception):
                connection.close()

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except Exception as error:
            raise LedgerError(
                f"ledger {self.name}: {_reason(error)} The charge may have been stored; nothing was drawn. "
                "`tetraodon ledger show` tells."
            ) from None


def _named(row: Row) -> dict[str, Any]:
    return dict(zip(("seq", "prev", "body", "hash"), row, strict=True))


def _reason(error: Exception) -> str:
    """A sentence for PostgreSQL's own code; its text is not passed on."""
    import ssl

    code, seen, open_ = "", list[BaseException](), list[BaseException | None]([error])
    while open_:
        # pg8000 says why it was refused, and then fails once more while it takes its leave: the reason is the context.
        cause = open_.pop()
        if cause is None or cause in seen:
            continue
        seen.append(cause)
        open_ += [cause.__context__, cause.__cause__, getattr(cause, "orig", None)]
        if isinstance(cause, ssl.SSLError):
            return (
                "the server does not prove who it is. Name the file of its authority (sslrootcert=…), or, on a line that nobody "
                "else can reach, sslmode=require."
            )
        told = cause.args[0] if cause.args else None
        if isinstance(told, Mapping) and isinstance(told.get("C"), str):
            code = code or told["C"]
    for prefix, sentence in (
        (
            "28",
            "the server does not let this role in. Check role and password (PGUSER, PGPASSWORD, ~/.pgpass).",
        ),
        ("3D", "there is no such database. Check the URL."),
        ("3F", "there is no such schema. Check the URL."),
        ("42501", "this role may not do that. Its owner can grant it (docs/ledger.md)."),
        ("55P03", f"other processes kept it for {_WAIT} seconds. Try again."),
        ("25006", _STANDBY),
        ("0A000", _STANDBY),
        ("53", "the server is short of room, memory or connections. Try again later."),
        ("57014", "a time limit of the server ran out. Try again."),
        ("25P03", "a time limit of the server ran out. Try again."),
        ("57", "the server is stopping, or ended the connection. Try again."),
        ("08", "the connection was lost. Try again."),
    ):
        if code.startswith(prefix):
            return sentence
    if code:
        return f"the server refused ({code}). Check its settings."
    return (
        f"the server cannot be reached, or the connection was lost ({type(error).__name__}). Check the URL, and whether the "
        "server accepts encrypted connections (sslmode=disable where nobody else can reach the line)."
    )
