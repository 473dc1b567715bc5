"""The ledger in PostgreSQL: what a file promises, and what only a server can do to it: roles, settings, deaths, lost confirmations.

What both promise is asked of both in ``test_ledger``.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import database
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_ledger import DIGEST, TAX, charge

import tetraodon as td
from tetraodon import shared_chain
from tetraodon.errors import BudgetError, LedgerError, PolicyError, SpecificationError, Unsupported
from tetraodon.ledger import AlreadyReleased, Ledger, verify
from tetraodon.ledger_address import address_of, entry, is_address, password
from tetraodon.loss import Loss
from tetraodon.rows.staged import Staged
from tetraodon.stores import called

HERE = Path(__file__).parent
CANARY = "canary-5eCret"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url() -> str:
    """A ledger of five rows: created, two charges (1/2 and 1/4), the first one's publication, a free disclosure."""
    where = database.new_ledger()
    made = Ledger.open(where, **TAX)
    first = made.charge(charge("a", "1/2"))
    made.charge(charge("b", "1/4"))
    made.published(first, {"values": DIGEST})
    made.charge(charge("c", 0, disclosures=["the number of rows"]))
    return where


def tables(url: str) -> tuple[str, str]:
    name = address_of(url).name
    return f"tetraodon_ledger_{name}", f"tetraodon_mark_{name}"


def sql(url: str, *statements: str) -> list[tuple[Any, ...]]:
    rows, mark = tables(url)
    return database.server().sql(*(each.replace("ROWS", rows).replace("MARK", mark) for each in statements))


# What a file promises too


def test_it_is_one_account_wherever_it_is_opened(url: str) -> None:
    ledger, again = Ledger.read(url), Ledger.open(url, **TAX)
    assert (again.spent, len(again.entries), again.remaining) == (Fraction(3, 4), 5, Fraction(1, 4))
    again.charge(charge("d", "1/8"))
    assert ledger.head == again.head and ledger.spent == Fraction(7, 8)
    assert verify(url).ok and verify(url).rows == 6
    with pytest.raises(AlreadyReleased, match="'d'"):
        again.charge(charge("d", "1/8"))
    with pytest.raises(BudgetError, match=r"asks for epsilon 0\.25; 0\.125 of 1 is left"):
        again.charge(charge("e", "1/4"))
    assert again.raise_total("3/2", "a second wave") == 7 and ledger.total == Fraction(3, 2)
    assert ledger.raises[0][1:] == (1, Fraction(3, 2))


def test_its_names_show_neither_server_nor_role(url: str) -> None:
    ledger, name = Ledger.read(url), address_of(url).name
    for text in (
        str(ledger),
        repr(ledger),
        repr(ledger._store),
        repr(ledger.__dict__),
        ledger.name,
        called(url),
    ):
        assert text is not None and name in text
        assert database.ROLE not in text and str(database.server().folder) not in text
    assert (ledger.path, ledger.name, str(ledger)) == (None, f"postgres:{name}", f"ledger postgres:{name}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "census"}, "the data's name is tax in the ledger and census here"),
        ({"domain_hash": "d2"}, "the domain is d1 in the ledger and d2 here"),
        ({"total": Loss("epsilon", Fraction(3, 2))}, "the total epsilon is 1 in the ledger and 3/2 here"),
    ],
)
def test_a_ledger_of_something_else_is_refused(url: str, change: dict[str, Any], message: str) -> None:
    before = sql(url, "SELECT * FROM ROWS ORDER BY seq")
    with pytest.raises(LedgerError, match=re.escape(message)):
        Ledger.open(url, **{**TAX, **change})
    assert sql(url, "SELECT * FROM ROWS ORDER BY seq") == before


def test_reading_makes_and_charges_nothing(url: str) -> None:
    absent = database.new_ledger()
    assert not Ledger.exists(absent) and Ledger.exists(url)
    for look in (Ledger.read, verify, lambda where: Ledger.existing(where).raise_total(3, "why")):
        with pytest.raises(LedgerError, match="there is no such ledger in this database"):
            look(absent)
    assert not Ledger.exists(absent)
    reader = Ledger.read(url)
    for attempt in (lambda: reader.charge(charge("d")), lambda: reader.published(3, {"values": DIGEST})):
        with pytest.raises(LedgerError, match="opened for reading only"):
            attempt()
    assert len(reader.entries) == 5


def test_names_are_two_ledgers_and_another_schema_is_another(url: str) -> None:
    sql(url, "CREATE SCHEMA IF NOT EXISTS office")
    there = Ledger.open(f"{url}&schema=office", **TAX)
    assert there.spent == 0 and there.head != Ledger.read(url).head


def test_twenty_makers_at_once_make_one(tmp_path: Path) -> None:
    where, heads, ready = database.new_ledger(), list[str](), threading.Barrier(20)

    def make() -> None:
        ready.wait()
        heads.append(Ledger.open(where, **TAX).head)

    threads = [threading.Thread(target=make) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(heads) == 20 and len(set(heads)) == 1


TAMPERED: dict[str, tuple[tuple[str, ...], str]] = {
    "smaller charge": (
        ("""UPDATE ROWS SET body = replace(body, '"amount":"1/2"', '"amount":"1/9"') WHERE seq = 2""",),
        "row 2 was changed after it was written",
    ),
    "one hash": (("UPDATE ROWS SET hash = prev WHERE seq = 3",), "row 3 was changed after it was written"),
    "charge deleted": (("DELETE FROM ROWS WHERE seq = 3",), "row 3 is missing: row 4 follows row 2"),
    "last row deleted": (("DELETE FROM ROWS WHERE seq = 5",), "row numbers up to 5, but its last row is 4"),
    "all rows deleted": (("DELETE FROM ROWS",), "row numbers up to 5, but its last row is 0"),
    "number set back": (("UPDATE MARK SET highest = 4",), "row numbers up to 4, but its last row is 5"),
    "deleted and renumbered": (
        ("DELETE FROM ROWS WHERE seq = 3", "UPDATE ROWS SET seq = seq - 1 WHERE seq > 3"),
        "row 3 does not follow the row before it",
    ),
    "row repeated": (
        ("INSERT INTO ROWS SELECT 6, prev, body, hash FROM ROWS WHERE seq = 5",),
        "row 6 does not follow the row before it",
    ),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_row_spoilt_in_the_database_is_found_and_nothing_can_be_charged(url: str, how: str) -> None:
    ledger, (statements, message) = Ledger.open(url, **TAX), TAMPERED[how]
    sql(url, *statements)
    found = verify(url)
    assert not found.ok and any(message in problem for problem in found.problems), found.problems
    before = sql(url, "SELECT * FROM ROWS ORDER BY seq")
    for attempt in (
        lambda: ledger.charge(charge("d")),
        lambda: ledger.published(3, {"values": DIGEST}),
        lambda: ledger.spent,
        lambda: Ledger.open(url, **TAX),
    ):
        with pytest.raises(LedgerError, match="Nothing was spent"):
            attempt()
    assert sql(url, "SELECT * FROM ROWS ORDER BY seq") == before


def test_without_its_number_nothing_can_be_charged(url: str) -> None:
    for statement in ("DELETE FROM MARK", "INSERT INTO MARK VALUES (5), (5)"):
        sql(url, statement)
        with pytest.raises(LedgerError, match=r"the number that counts its rows is gone\. Nothing was spent"):
            Ledger.existing(url).charge(charge("d"))
    sql(url, "DELETE FROM MARK")
    assert not verify(url).ok


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE RULE lost AS ON INSERT TO ROWS DO INSTEAD NOTHING",
        "CREATE TRIGGER lost BEFORE UPDATE ON ROWS FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "ALTER TABLE ROWS ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE ROWS SET UNLOGGED",
        "ALTER TABLE ROWS ADD COLUMN more text",
        "ALTER TABLE ROWS RENAME COLUMN body TO told",
        "ALTER TABLE MARK ALTER COLUMN highest TYPE integer",
        "CREATE TABLE ROWS_part () INHERITS (ROWS)",
        "ALTER TABLE ROWS DROP COLUMN hash; ALTER TABLE ROWS ADD hash text GENERATED ALWAYS AS (md5(body)) STORED",
        "DROP TABLE MARK",
        "ALTER TABLE ROWS RENAME TO ROWS_real; CREATE VIEW ROWS AS SELECT * FROM ROWS_real",
    ],
)
def test_tables_that_could_lose_or_hide_rows_are_refused(url: str, statement: str) -> None:
    ledger = Ledger.open(url, **TAX)
    sql(url, *statement.split("; "))
    for attempt in (lambda: ledger.charge(charge("d")), lambda: verify(url), lambda: Ledger.open(url, **TAX)):
        with pytest.raises(LedgerError, match=r"not those of a Tetraodon ledger.*Nothing was spent"):
            attempt()


# Roles


def test_a_role_that_may_charge_can_neither_change_nor_delete(url: str) -> None:
    rows, _ = tables(url)
    role = f"charger_{address_of(url).name}"
    sql(url, f"CREATE ROLE {role} LOGIN")
    theirs = url.replace(f"{database.ROLE}@", f"{role}@")
    for attempt in (lambda: Ledger.read(theirs), lambda: Ledger.open(theirs, **TAX), lambda: verify(theirs)):
        with pytest.raises(LedgerError, match=r"this role may not do that.*Nothing was spent"):
            attempt()  # a ledger is made for its owner alone
    sql(url, f"GRANT SELECT ON ROWS, MARK TO {role}")
    assert Ledger.read(theirs).spent == Fraction(3, 4) and verify(theirs).ok
    with pytest.raises(LedgerError, match="this role may not do that"):
        Ledger.existing(theirs).charge(charge("d"))
    sql(url, f"GRANT INSERT ON ROWS TO {role}", f"GRANT UPDATE ON MARK TO {role}")
    assert Ledger.open(theirs, **TAX).charge(charge("d")) == 6
    import psycopg

    for statement in (
        f"UPDATE {rows} SET body = ''",
        f"DELETE FROM {rows}",
        f"TRUNCATE {rows}",
        f"DROP TABLE {rows}",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            database.server().sql(statement, role=role)
    assert verify(url).ok and verify(url).rows == 6


def test_it_is_made_for_its_owner_alone_and_verify_tells_of_more(url: str) -> None:
    sql(url, "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")
    try:
        where = database.new_ledger()
        Ledger.open(where, **TAX)
    finally:
        sql(url, "ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM PUBLIC")
    assert not any("may be" in w for w in verify(where).warnings)
    for given, what in (("SELECT ON ROWS", "read"), ("UPDATE ON MARK", "written")):
        sql(where, f"GRANT {given} TO PUBLIC")
        name = address_of(where)
        told = f"{name} may be {what} by every role of the database; revoke that from PUBLIC."
        assert told in verify(where).warnings


def test_functions_of_others_are_not_called(url: str) -> None:
    sql(url, "CREATE SCHEMA IF NOT EXISTS trap")
    sql(
        url,
        "CREATE OR REPLACE FUNCTION trap.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'off' $$",
        "CREATE OR REPLACE FUNCTION trap.pg_advisory_xact_lock(bigint) RETURNS int LANGUAGE sql AS $$ SELECT 1/0 $$",
        f"ALTER ROLE {database.ROLE} SET search_path = trap, pg_catalog, public",
    )
    try:
        Ledger.open(url, **TAX).charge(charge("d"))
        Ledger.open(database.new_ledger(), **TAX)
    finally:
        sql(url, f"ALTER ROLE {database.ROLE} RESET search_path")


@pytest.mark.parametrize(
    "setting",
    [
        "synchronous_commit = off", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = on",
        "bytea_output = 'escape'", "datestyle = 'SQL, DMY'", "client_encoding = 'LATIN1'", "search_path = ''",
    ],
)  # fmt: skip
def test_settings_of_a_role_change_nothing(url: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, real = [], shared_chain.Shared._commit

    def commit(self: Any, connection: Any) -> None:
        seen.append(connection.exec_driver_sql("SHOW synchronous_commit").scalar_one())
        real(self, connection)

    monkeypatch.setattr(shared_chain.Shared, "_commit", commit)
    sql(url, f"ALTER ROLE {database.ROLE} SET {setting}")
    try:
        ledger = Ledger.open(url, **TAX)
        assert ledger.charge(charge("Übersicht €", "1/8")) == 6 and ledger.spent == Fraction(7, 8)
        stored = ledger.entries[-1].charge
        assert stored is not None and stored.name == "Übersicht €" and verify(url).ok
        assert set(seen) == {"on"}
    finally:
        key = setting.partition(" ")[0]
        subprocess_sql(f"ALTER ROLE {database.ROLE} RESET {key}")


def subprocess_sql(statement: str) -> None:
    """As a role that may write whatever its own settings say."""
    import psycopg

    with psycopg.connect(
        f"postgres://{database.ROLE}@/postgres?host={database.server().folder}",
        options="-c default_transaction_read_only=off",
    ) as connection:
        connection.execute(statement.encode())


# Errors


def test_what_goes_wrong_is_said_without_the_server_or_the_role(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, role = str(database.server().folder), database.ROLE
    monkeypatch.setenv("PGPASSWORD", CANARY)
    for wrong, said in (
        (url.replace("/postgres?", "/nobase?"), "there is no such database"),
        (url.replace(f"{role}@", "stranger@"), "does not let this role in"),
        (url.replace(folder, "/nowhere"), "cannot be reached"),
        ("postgresql://me@localhost:1/base?ledger=tax", "cannot be reached"),
        (f"{url}&schema=absent", "there is no such"),
    ):
        for attempt in (Ledger.read, lambda where: Ledger.open(where, **TAX)):
            with pytest.raises(LedgerError, match="Nothing was spent") as refused:
                attempt(wrong)
            text, error = str(refused.value), refused.value
            assert said in text, text
            assert not {CANARY, folder, role, "stranger", "nobase"} & set(re.split(r"[\s/@?:]+", text))
            assert error.__cause__ is None and error.__context__ is None
            frames = [frame for frame in _frames(error) if "shared_chain" in frame.f_code.co_filename]
            assert CANARY not in repr([frame.f_locals for frame in frames])


def _frames(error: BaseException) -> Iterator[Any]:
    step = error.__traceback__
    while step is not None:
        yield step.tb_frame
        step = step.tb_next


def test_a_busy_ledger_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    _, mark = tables(url)
    waits = tuple(s.replace(f"{shared_chain._WAIT}s", "100ms") for s in shared_chain._SAFELY)
    monkeypatch.setattr(shared_chain, "_SAFELY", waits)
    with psycopg.connect(f"postgres://{database.ROLE}@/postgres?host={database.server().folder}") as other:
        other.execute(f"SELECT * FROM {mark} FOR UPDATE".encode())
        ledger = Ledger.read(url)
        assert ledger.spent == Fraction(3, 4)  # looking is free
        with pytest.raises(LedgerError, match=r"other processes kept it for 120 seconds.*Nothing was spent"):
            Ledger.existing(url).charge(charge("d"))
    assert Ledger.existing(url).charge(charge("d")) == 6


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **more: Any) -> Any:
        if name.partition(".")[0] in ("sqlalchemy", "pg8000"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(
        Unsupported, match=r"ledger: install tetraodon\[postgres\] to keep it in PostgreSQL\.$"
    ):
        Ledger.open("postgresql://a@localhost/b?ledger=c", **TAX)


def test_an_error_while_deciding_is_not_one_of_the_server(url: str) -> None:
    with pytest.raises(PolicyError, match=r"^no$"):
        Ledger.existing(url)._store.extend(lambda book: _raise(PolicyError("no")))
    assert len(Ledger.read(url).entries) == 5


def _raise(error: Exception) -> Any:
    raise error


# Deaths


def test_a_server_that_may_forget_is_refused() -> None:
    server = database.server()
    where = server.url("forgetful")
    ledger = Ledger.open(where, **TAX)
    server.stop()
    server.start("fsync=off")
    try:
        assert ledger.spent == 0  # looking is free
        for attempt in (lambda: ledger.charge(charge()), lambda: Ledger.open(server.url("another"), **TAX)):
            with pytest.raises(LedgerError, match=r"fsync = off and may forget.*Nothing was spent"):
                attempt()
    finally:
        server.stop()
        server.start()
    assert ledger.charge(charge()) == 2 and not Ledger.exists(server.url("another"))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("how", ["stop", pytest.param("kill", marks=pytest.mark.slow)])
def test_a_server_that_dies_around_the_commit_never_lets_a_charge_pass_unnamed(
    url: str, monkeypatch: pytest.MonkeyPatch, moment: str, how: str
) -> None:
    """Killed before the commit it stored nothing, killed right after it it stored the charge: the caller, who was told neither,
    hears that it may have been stored, and draws nothing."""
    from sqlalchemy import Connection

    server, ledger = database.server(), Ledger.open(url, **TAX)
    real = Connection.commit

    def dying(self: Any) -> None:
        if moment == "after":
            real(self)
        getattr(server, how)()
        real(self) if moment == "before" else _raise(ConnectionResetError("canary"))

    monkeypatch.setattr(Connection, "commit", dying)
    try:
        with pytest.raises(LedgerError) as refused:
            ledger.charge(charge("d", "1/8"))
    finally:
        monkeypatch.undo()
        server.start()
    text = str(refused.value)
    assert "The charge may have been stored; nothing was drawn. `tetraodon ledger show` tells." in text
    assert "Nothing was spent" not in text and "canary" not in text
    found = verify(url)
    assert found.ok and found.rows == (6 if moment == "after" else 5)
    if moment == "after":
        assert any("'d'" in w and "charged, never published" in w for w in found.warnings)
        with pytest.raises(AlreadyReleased):
            ledger.charge(charge("d", "1/8"))
    else:
        assert ledger.charge(charge("d", "1/8")) == 6


def test_a_server_that_dies_before_the_commit_is_sent_spends_nothing(url: str) -> None:
    server, ledger = database.server(), Ledger.open(url, **TAX)

    def decide(book: Any) -> Any:
        server.stop()
        return (
            shared_chain.seal(
                book.rows[-1], {"kind": "raised", "unit": "epsilon", "total": "2", "reason": "x"}
            ),
        )

    try:
        with pytest.raises(
            LedgerError, match=r"(connection was lost|ended the connection).*Nothing was spent"
        ):
            ledger._store.extend(decide)
    finally:
        server.start()
    assert verify(url).ok and ledger.total == 1


@pytest.mark.slow
def test_what_was_confirmed_outlives_the_server(url: str) -> None:
    server, ledger = database.server(), Ledger.open(url, **TAX)
    for i in range(8):
        ledger.charge(charge(f"d{i}", "1/100"))
        server.kill()
        server.start()
        assert verify(url).ok and ledger.spent == Fraction(3, 4) + Fraction(i + 1, 100)


def test_a_standby_is_read_and_never_charged(url: str) -> None:
    server, ledger = database.server(), Ledger.open(url, **TAX)
    server.stop()
    (Path(server.base) / "standby.signal").touch()
    server.start()
    try:
        assert verify(url).ok and ledger.spent == Fraction(3, 4)
        for attempt in (
            lambda: ledger.charge(charge("d")),
            lambda: Ledger.open(server.url("never"), **TAX),
        ):
            with pytest.raises(LedgerError, match=r"may only be read, as a standby.*Nothing was spent"):
                attempt()
    finally:
        server.promote()
    assert ledger.charge(charge("d")) == 6


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_server_on_the_network_proves_who_it_is(url: str, tmp_path: Path) -> None:
    server = database.server()
    folder = server.folder / "line"
    if not folder.exists():
        folder.mkdir()
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            *subject,
            "-out",
            "crt",
            "-keyout",
            "key",
        ]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        (folder / "key").chmod(0o600)
        if "user" in server.user:
            shutil.chown(folder / "key", server.user["user"])
    shutil.copy(folder / "crt", tmp_path / "root.pem")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server.stop()
    server.start(
        "ssl=on", f"ssl_cert_file={folder / 'crt'}", f"ssl_key_file={folder / 'key'}",
        "listen_addresses=127.0.0.1", f"port={port}",
    )  # fmt: skip
    try:
        there = f"postgresql://{database.ROLE}@localhost:{port}/postgres?ledger={address_of(url).name}"
        for known in (f"&sslmode=verify-full&sslrootcert={tmp_path / 'root.pem'}", "&sslmode=require", ""):
            assert Ledger.read(there + known).spent == Fraction(3, 4)
        for wrong in (
            f"{there}&sslmode=verify-full",  # signed by nobody
            f"{there}&sslmode=verify-full&sslrootcert={tmp_path / 'root.pem'}".replace(
                "localhost", "127.0.0.1"
            ),
        ):
            with pytest.raises(LedgerError, match=r"does not prove who it is.*Nothing was spent"):
                Ledger.existing(wrong).charge(charge("d"))
    finally:
        server.stop()
        server.start()
    assert len(Ledger.read(url).entries) == 5


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("28P01", "does not let this role in"), ("3F000", "no such schema"), ("53300", "short of room, memory or connections"),
        ("57014", "time limit"), ("57P01", "is stopping, or ended the connection"), ("08006", "connection was lost"),
        ("XX001", "the server refused (XX001)"),
    ],
)  # fmt: skip
def test_codes_of_the_server_become_sentences(code: str, said: str) -> None:
    error = ValueError({"C": code, "M": CANARY})
    assert said in shared_chain._reason(error) and CANARY not in shared_chain._reason(error)
    outer = OSError(CANARY)
    outer.__context__ = error
    assert said in shared_chain._reason(outer)


# The address


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (f"postgresql://me:{CANARY}@h/b?ledger=t", "a password in the URL"),
        (f"postgresql://me:@h/b?ledger=t&password={CANARY}", "a password in the URL"),
        (f"postgresql://me@h/b?ledger=t&password={CANARY}", "a password in the URL"),
        ("postgresql://me@h/b", "ledger: small letters, digits and _"),
        ("postgresql://me@h/b?ledger=Tax", "ledger: small letters"),
        ('postgresql://me@h/b?ledger=t";drop', "ledger: small letters"),
        ("postgresql://me@h/b?ledger=" + "t" * 41, "at most 40"),
        ("postgresql://me@h/b?ledger=t&schema=A b", "schema: small letters"),
        ("postgresql:///b?ledger=t", "name the server and the database"),
        ("postgresql://me@h?ledger=t", "name the server and the database"),
        ("postgresql://me@h/b/c?ledger=t", "not a URL that can be read"),
        ("postgresql://me@h/b?ledger=t#x", "not a URL that can be read"),
        ("postgresql://me@h:port/b?ledger=t", "not a URL that can be read"),
        ("postgresql://[::1/b?ledger=t", "not a URL that can be read"),
        ("postgresql://me@h/b?ledger", "not a URL that can be read"),
        ("postgresql://me@h/b?ledger=t&ledger=u", "key 'ledger' is there twice"),
        ("postgresql://me@h/b?ledger=t&options=x", "key 'options' is not known"),
        ("postgresql://me@h/b?ledger=t&sslmode=prefer", "sslmode: one of verify-full, require, disable"),
        ("mysql://me@h/b?ledger=t", "no ledger behind another kind of URL"),
        ("sqlite:///tax.ledger", "the path of a file"),
    ],
)
def test_a_url_that_names_no_ledger_is_refused(
    where: str, said: str, settings: Callable[..., Path], run: Run
) -> None:
    for attempt in (Ledger.read, verify, Ledger.exists, lambda url: Ledger.open(url, **TAX)):
        with pytest.raises(SpecificationError, match=r"^ledger: ") as refused:
            attempt(where)
        assert said in str(refused.value) and CANARY not in str(refused.value)
    if '"' not in where:
        code, _, told = run("plan", settings(("people.ledger", where)))
        assert code == 2 and "release.toml: budget.ledger: " in told and said in told and CANARY not in told


def test_what_the_url_leaves_to_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in ("PGUSER", "PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "login")
    told = address_of("postgres://db.example.org/office?ledger=tax")
    assert (told.host, told.port, told.base, told.user, told.name, told.schema, told.sslmode) == (
        "db.example.org", 5432, "office", None, "tax", "public", "verify-full",
    )  # fmt: skip
    assert told.role == "login" and password(told) is None
    monkeypatch.setenv("PGUSER", "ann")
    assert told.role == "ann" and address_of("postgres://bob@h/b?ledger=t").role == "bob"
    monkeypatch.setenv("PGPASSWORD", "")
    assert password(told) == ""
    monkeypatch.setenv("PGHOST", "elsewhere")  # where a ledger lies is said by its URL alone
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    assert entry(told, 1.0) | {"ssl_context": None} == {
        "user": "ann", "database": "office", "password": "", "timeout": 1.0, "application_name": "tetraodon",
        "ssl_context": None, "host": "db.example.org", "port": 5432,
    }  # fmt: skip
    socket = address_of("postgres://ann@/b?ledger=t&host=/run/pg")
    assert socket.is_socket and entry(socket, 1.0)["unix_sock"] == "/run/pg/.s.PGSQL.5432"
    assert entry(socket, 1.0)["ssl_context"] is False


def test_how_the_line_is_kept(tmp_path: Path) -> None:
    import ssl

    def line(more: str, host: str = "db.example.org") -> Any:
        return entry(address_of(f"postgres://a@{host}/b?ledger=t{more}"), 1.0)["ssl_context"]

    kept = line("")
    assert kept.verify_mode == ssl.CERT_REQUIRED and kept.check_hostname
    assert line("&sslmode=require").verify_mode == ssl.CERT_NONE and line("&sslmode=disable") is False
    for local in ("localhost", "127.0.0.1", "[::1]"):
        assert line("", local) is False and line("&sslmode=verify-full", local).check_hostname
    (tmp_path / "root.pem").write_text("no certificate")
    for wrong in ("absent.pem", "root.pem"):
        with pytest.raises(SpecificationError, match="sslrootcert: cannot be read"):
            line(f"&sslrootcert={tmp_path / wrong}")


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of Unix")
def test_the_password_file_is_read_as_libpq_reads_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    file = tmp_path / "passwords"
    monkeypatch.setenv("PGPASSFILE", str(file))
    told = address_of(r"postgres://an%3An@db:5433/of%5Cfice?ledger=t")
    assert password(told) is None  # no such file
    file.write_text(
        "# a remark: with: many: colons: here\n"
        "short:line\n"
        "db:5432:*:*:wrong port\n"
        "other:5433:*:*:wrong host\n"
        r"db:5433:of\\fice:an\:n:it\:s \\ right:and what follows" + "\n"
        "*:*:*:*:too late\n"
    )
    file.chmod(0o600)
    assert password(told) == r"it:s \ right"
    assert password(address_of("postgres://x@/b?ledger=t&host=/run")) == "too late"
    file.write_text("localhost:5432:b:x:by socket\n")
    assert password(address_of("postgres://x@/b?ledger=t&host=/run")) == "by socket"
    assert password(told) is None
    file.chmod(0o640)
    assert password(told) is None  # nothing in it is for this server
    with pytest.raises(
        SpecificationError, match=r"password file may be read by others.*chmod 600"
    ) as refused:
        password(address_of("postgres://x@/b?ledger=t&host=/run"))
    assert "by socket" not in str(refused.value)


def test_a_password_is_used_and_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    """A role with a password, on a server that asks for it."""
    server = database.server()
    hba = Path(server.base) / "pg_hba.conf"
    plain = hba.read_text()
    where = server.url("locked", role="locked")
    server.sql(
        "CREATE ROLE locked LOGIN",
        f"ALTER ROLE locked PASSWORD '{CANARY}'",
        "GRANT CREATE ON SCHEMA public TO locked",
    )
    caplog.set_level(0)
    try:
        hba.write_text(f"local all locked scram-sha-256\n{plain}")
        server.sql("SELECT pg_reload_conf()")
        monkeypatch.setenv("PGPASSWORD", "wrong")
        for _ in range(50):  # until the server has read its file anew
            with pytest.raises(LedgerError) as refused:
                Ledger.open(where, **TAX).charge(charge("early" + DIGEST))
            if "does not let this role in" in str(refused.value):
                break
        assert "does not let this role in. Check role and password" in str(refused.value)
        monkeypatch.setenv("PGPASSWORD", CANARY)
        ledger = Ledger.open(where, **TAX)
        ledger.charge(charge("d"))
        shown = [
            repr(ledger),
            str(ledger),
            repr(vars(ledger)),
            repr(ledger._store),
            repr(ledger.entries),
            str(verify(where)),
        ]
    finally:
        hba.write_text(plain)
        server.sql("SELECT pg_reload_conf()")
    out, err = capfd.readouterr()
    assert CANARY not in "".join([*shown, out, err, caplog.text])


# The whole way


def test_a_release_into_a_shared_ledger(settings: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    where = database.new_ledger()
    name, path = address_of(where).name, settings(("people.ledger", where))
    code, out, err = run("plan", path)
    assert code == 0 and not Ledger.exists(where), err
    assert run("release", path)[0] == 0
    manifest = tmp_path / "published" / "manifest.json"
    told = json.loads(manifest.read_text())["budget"]
    assert told["ledger"] == f"postgres:{name}" and told["head"] in {
        e.hash for e in Ledger.read(where).entries
    }
    for text in [p.read_bytes() for p in (tmp_path / "published").iterdir()]:
        assert str(database.server().folder).encode() not in text and b"tester" not in text
    page = (tmp_path / "published" / "report.html").read_text()
    assert f"postgresql://USER@HOST/BASE?ledger={name}" in page and f"<code>postgres:{name}</code>" in page
    code, out, err = run("release", path)
    assert code == 1 and f"ledger postgres:{name}: 'ages'" in err and "already released" in err
    code, out, _ = run("plan", path)
    assert "released already" in out and "0.25 of 1 is left" in out
    code, out, _ = run("ledger", "show", where)
    assert code == 0 and "ages" in out and "tester" not in out
    code, out, _ = run("ledger", "verify", where, manifest)
    assert code == 0 and f"postgres:{name}: sound" in out and "tester" not in out
    code, out, _ = run("ledger", "raise", where, "--to", "2", "--reason", "a second wave")
    assert code == 0 and f"settings that use postgres:{name}." in out and Ledger.read(where).total == 2
    sql(
        where, "DELETE FROM ROWS WHERE seq > 2", "UPDATE MARK SET highest = 2"
    )  # as a backup that is put back
    assert run("ledger", "verify", where)[0] == 0
    code, out, _ = run("ledger", "verify", where, manifest)
    assert code == 1 and "its head is not in this ledger" in out


def test_a_session_takes_the_url(tmp_path: Path) -> None:
    where, domain = database.new_ledger(), td.Domain(age=td.Integer(0, 9))
    table, policy = td.Table({"age": [1, 2, 2]}, domain, name="people"), td.Policy(domain, td.Within(1))
    made = td.Session(table, policy, epsilon=1, ledger=where).release(td.Histogram("age"), epsilon="1/2")
    made.save(tmp_path / "out")
    assert td.Session(table, policy, epsilon=1, ledger=where).remaining.epsilon == Fraction(1, 2)
    assert verify(where, [tmp_path / "out" / "manifest.json"]).ok


def test_staged_rows_go_on_with_the_charge_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, domain = database.new_ledger(), td.Domain(age=td.Integer(0, 9), num=td.Integer(0, 9))
    pq.write_table(pa.table({"age": [3] * 10, "num": range(10)}), tmp_path / "people.parquet")
    rows = td.Rows(
        "age", keep=["num"], channel={"kind": "randomised-response"}, staging=tmp_path / "rows.staging"
    )

    def session() -> td.Session:
        policy = td.Policy(domain, td.AttributeWise(age=td.Full()))
        return td.Session(td.Table(tmp_path / "people.parquet", domain), policy, epsilon=1, ledger=where)

    with monkeypatch.context() as broken:
        broken.setattr(Staged, "draw", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session().release(rows, epsilon=1, name="rows")
    assert Ledger.read(where).spent == 1
    made = session().release(rows, epsilon=1, name="rows", resume=True)
    made.save(tmp_path / "out")
    assert sorted(pq.read_table(tmp_path / "out" / "rows.parquet")["num"].to_pylist()) == [*range(10)]
    assert Ledger.read(where).spent == 1 and verify(where, [tmp_path / "out" / "manifest.json"]).ok


def test_settings_with_a_shared_ledger_load_no_database() -> None:
    program = (
        "import sys\nfrom tetraodon.ledger_address import address_of\nfrom tetraodon.stores import stored_at\n"
        "stored_at('postgresql://a@h/b?ledger=c', True)\nprint(*sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tetraodon.shared_chain" in told and not {"sqlalchemy", "pg8000"} & set(told)
    assert is_address("a://b") and not is_address(Path("a")) and called("a/b.ledger") == "a/b.ledger"
