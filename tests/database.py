"""A PostgreSQL server of the suite's own, in a private folder, that confirms nothing before it is on disk and can be killed."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROLE = "tester"
_numbers = itertools.count()
QUIET: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
}


@dataclass(frozen=True)
class Server:
    """A server that listens on a Unix socket in its folder."""

    folder: Path
    control: str
    user: dict[str, Any]

    @property
    def base(self) -> str:
        return str(self.folder / "base")

    def start(self, *settings: str) -> None:
        told = " ".join(f"-c {each}" for each in ("listen_addresses=''", "max_connections=40", *settings))
        self._ran(
            self.control,
            "-D",
            self.base,
            "-w",
            "-l",
            str(self.folder / "log"),
            "-o",
            f"-k {self.folder} {told}",
            "start",
        )

    def stop(self) -> None:
        """Without any farewell, as when the power fails."""
        with suppress(subprocess.SubprocessError, OSError):
            self._ran(self.control, "-D", self.base, "-m", "immediate", "stop")

    def kill(self) -> None:
        """End the server's first process, and wait until its other ones have noticed."""
        with suppress(OSError, ValueError):
            os.kill(int((Path(self.base) / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        time.sleep(0.2)
        self.stop()

    def promote(self) -> None:
        """Make a server that was started as a standby one that may be written."""
        self._ran(self.control, "-D", self.base, "promote")

    def url(self, ledger: str, role: str = ROLE, **keys: str) -> str:
        more = "".join(f"&{key}={value}" for key, value in keys.items())
        return f"postgresql://{role}@/postgres?host={self.folder}&ledger={ledger}{more}"

    def sql(self, *statements: str, role: str = ROLE) -> list[tuple[Any, ...]]:
        """Rows of the last statement, where it has any."""
        import psycopg

        with psycopg.connect(f"postgres://{role}@/postgres?host={self.folder}") as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _ran(self, *command: str) -> None:
        subprocess.run(command, check=True, timeout=90, cwd=self.folder, **QUIET, **self.user)


def _binary(name: str) -> str | None:
    places = [os.environ.get("PATH", ""), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))]
    return shutil.which(name, path=os.pathsep.join(places))


def made() -> Server:
    """A new server, not started yet; remove its folder at the end. Skips by name where there can be none."""
    initdb, control = _binary("initdb"), _binary("pg_ctl")
    try:
        import pg8000  # noqa: F401
        import psycopg  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError:
        pytest.skip("postgres: the extra postgres is not installed")
    if initdb is None or control is None or not hasattr(os, "geteuid"):
        pytest.skip("postgres: initdb and pg_ctl are not here")
    folder = Path(tempfile.mkdtemp(prefix="tetraodon-ledgers-"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        import pwd

        known = {entry.pw_name for entry in pwd.getpwall()}
        name = next((n for n in ("postgres", "nobody") if n in known), None)
        if name is None:
            pytest.skip("postgres: it refuses to run as root, and there is no other user")
        shutil.chown(folder, name)
        user = {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}
    server = Server(folder, control, user)
    try:
        server._ran(
            initdb, "-D", server.base, "-A", "trust", "-U", ROLE, "-E", "UTF8", "--no-locale", "--no-sync"
        )
    except (subprocess.SubprocessError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip("postgres: no server can be made here")
    return server


def started(*settings: str) -> Server:
    """A new server that runs until the tests end. Skips by name where there can be none."""
    found = made()
    atexit.register(shutil.rmtree, found.folder, ignore_errors=True)
    atexit.register(found.stop)
    try:
        found.start(*settings)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("postgres: the server does not start here")
    return found


@cache
def server() -> Server:
    """The server that tests of ledgers share."""
    return started()


def new_ledger() -> str:
    """The URL of a ledger that is not there yet."""
    return server().url(f"ledger{next(_numbers)}")
