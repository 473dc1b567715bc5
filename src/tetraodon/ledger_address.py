"""Where a shared ledger lies: the URL of a PostgreSQL database, who enters, with which password, over which kind of line.

The URL says all that decides *which* ledger is meant: host, database, schema, name. Nothing of that comes from the environment,
lest the same settings mean one account here and another there. What belongs to a person does: the role (``PGUSER``, or
the name of the login) and the password (``PGPASSWORD``, or libpq's password file), which therefore stands in no settings file.
"""

from __future__ import annotations

import getpass
import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .errors import SpecificationError

SCHEMES = ("postgresql", "postgres")
SSL_MODES = ("verify-full", "require", "disable")
_KEYS = ("ledger", "schema", "host", "sslmode", "sslrootcert")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_FIELD = re.compile(
    r"((?:[^:\\]|\\.)*):"
)  # of the password file, where a backslash makes the next sign a plain one
_SHOWN = "postgresql://user@host/base?ledger=name"


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A ledger in a database. As text it is ``postgres:name``, which shows neither host nor role.

    Attributes:
        host: a name, or the folder of a Unix socket.
        user: the role; None for the one of the environment.
        name: of the ledger, by which its tables are called.
        sslmode: "verify-full": encrypted, and the server proves who it is; "require": encrypted; "disable".
        sslrootcert: file of the authority that signed the server's certificate; "" for those of this system.
    """

    host: str
    port: int
    base: str
    user: str | None
    name: str
    schema: str
    sslmode: str
    sslrootcert: str

    def __str__(self) -> str:
        return f"postgres:{self.name}"

    def __repr__(self) -> str:
        return f"<ledger {self}>"

    @property
    def is_socket(self) -> bool:
        """Whether the server is reached through a file of this machine."""
        return self.host.startswith("/")

    @property
    def role(self) -> str:
        """Who enters: the URL's user, else ``PGUSER``, else the login's name."""
        try:
            return self.user or os.environ.get("PGUSER") or getpass.getuser()
        except (KeyError, OSError):  # a login without a name
            raise SpecificationError(f"ledger {self}: name the role: postgresql://role@host/…") from None


def is_address(where: object) -> bool:
    """Whether a ledger is named by a URL and not by the path of a file."""
    return isinstance(where, str) and "://" in where


def address_of(url: str) -> Address:
    """What a URL says.

    Raises:
        SpecificationError: another scheme, a password in the URL, no host, database or name, or a key that is not known; the
            message shows nothing of the URL but the key.

    >>> address_of("postgresql://ann@db.example.org/office?ledger=tax")
    <ledger postgres:tax>
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
        told = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _wrong(f"not a URL that can be read; write it as {_SHOWN}") from None
    if parts.scheme not in SCHEMES:
        raise _wrong(f"the path of a file, or {_SHOWN}; there is no ledger behind another kind of URL")
    keys = [key for key, _ in told]
    if parts.password is not None or "password" in keys:
        raise _wrong(
            "a password in the URL would stand in settings for all to read; put it into PGPASSWORD or the password file "
            "(~/.pgpass) and take it out of the URL"
        )
    for key in keys:
        if key not in _KEYS or keys.count(key) > 1:
            said = "is there twice" if key in _KEYS else f"is not known; the keys are {', '.join(_KEYS)}"
            raise _wrong(f"key {key!r} {said}")
    given = dict(told)
    host, base = given.get("host") or parts.hostname or "", unquote(parts.path.removeprefix("/"))
    if parts.fragment or "/" in base or "\0" in base + host:
        raise _wrong(f"not a URL that can be read; write it as {_SHOWN}")
    if not host or not base:
        raise _wrong(f"name the server and the database, so that the URL means one ledger: {_SHOWN}")
    for key, default in (("ledger", ""), ("schema", "public")):
        if _NAME.match(given.setdefault(key, default)) is None:
            raise _wrong(
                f"{key}: small letters, digits and _, at most 40, beginning with a letter; write {_SHOWN}"
            )
    local = host.startswith("/") or host in ("localhost", "127.0.0.1", "::1")
    mode = given.get("sslmode") or ("disable" if local else "verify-full")
    if mode not in SSL_MODES:
        raise _wrong(f"sslmode: one of {', '.join(SSL_MODES)}")
    user = None if parts.username is None else unquote(parts.username)
    return Address(
        host, port, base, user or None, given["ledger"], given["schema"], mode, given.get("sslrootcert", "")
    )


def _wrong(said: str) -> SpecificationError:
    return SpecificationError(f"ledger: {said}.")


def entry(address: Address, wait: float) -> dict[str, Any]:
    """The arguments with which pg8000 connects. They hold the password: they are shown nowhere.

    Raises:
        SpecificationError: a password file that others may read, or certificates that cannot be.
    """
    told: dict[str, Any] = {
        "user": address.role, "database": address.base, "password": password(address),
        "timeout": wait, "application_name": "tetraodon", "ssl_context": _line(address),
    }  # fmt: skip
    if address.is_socket:
        return told | {"unix_sock": f"{address.host}/.s.PGSQL.{address.port}"}
    return told | {"host": address.host, "port": address.port}


def _line(address: Address) -> ssl.SSLContext | bool:
    if address.sslmode == "disable" or address.is_socket:
        return False
    try:
        context = ssl.create_default_context(cafile=address.sslrootcert or None)
    except (OSError, ValueError):
        raise SpecificationError(
            f"ledger {address}: sslrootcert: cannot be read; name a file of certificates (PEM)."
        ) from None
    if address.sslmode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def password(address: Address) -> str | None:
    """The password of the environment: ``PGPASSWORD``, else the first line of libpq's password file that fits; None if none does.

    Raises:
        SpecificationError: the file that holds it may be read by others.
    """
    if (told := os.environ.get("PGPASSWORD")) is not None:
        return told
    named = os.environ.get("PGPASSFILE")
    try:
        file = Path(named) if named else Path.home() / ".pgpass"
        with file.open(encoding="utf-8") as opened:
            lines, mode = opened.read().splitlines(), os.fstat(opened.fileno()).st_mode
    except (OSError, RuntimeError, ValueError):
        return None
    host = "localhost" if address.is_socket else address.host
    wanted = (host, str(address.port), address.base, address.role)
    for line in lines:
        fields = [] if line.startswith("#") else _FIELD.findall(f"{line}:")
        if len(fields) < 5 or any(f != "*" and _meant(f) != w for f, w in zip(fields, wanted, strict=False)):
            continue
        if os.name == "posix" and mode & 0o077:
            raise SpecificationError(
                f"ledger {address}: the password file may be read by others; allow it to nobody else (chmod 600)."
            )
        return _meant(fields[4])
    return None


def _meant(field: str) -> str:
    """A field without the backslashes that make the next sign a plain one."""
    return re.sub(r"\\(.)", r"\1", field)
