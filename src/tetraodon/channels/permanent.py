"""Answers that last: within an epoch each id has one answer, for all its rows and in every later release.

*Why.* An answer drawn anew for each row tells more with each: m rows of a person cost m times as much. A memory of answers
by (id, value) costs less and proves nothing: two rows with one value then always agree, two rows with different values
disagree with positive probability, so that agreement alone tells them apart, with certainty in one direction. A memory by
(id, epoch) makes all rows of an id agree whatever they hold, so that agreement says nothing.

*What is proved.* One row of the id, chosen by lot among those at hand when it is first met, is sent through the channel; the
lot looks at no value. Changing the value of any row of the id along an edge of the policy changes at most what goes in, along
that edge: ε for the whole epoch, however many rows and releases there are. The charge is one ε for each epoch.

*The store* is a private file: it holds outputs, never values, beside a keyed hash of each id; its key lies in the same file,
so that whoever has the file and guesses an id can look up its answer. Only its owner may read it. What was drawn is on the
disk before it is returned, so no crash makes an id be asked twice. One store serves an epoch: a copy of it, used beside it or
put back later, does not know what was answered since, and would answer those ids anew for the same charge.

Source: math of permanent answers: derived (counter-example and rule).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..axes import Ints
from ..errors import DataError, OutputError, Refused, SpecificationError
from ..noise import fresh_name
from .channel import Channel

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1
KEY_BYTES = 32
HASH_BYTES = 16
WAIT_SECONDS = 60.0

_TABLES = """
CREATE TABLE about (format INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE epochs (epoch TEXT PRIMARY KEY, channels TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE marks (mark TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE answers (epoch TEXT NOT NULL, who BLOB NOT NULL, answer INTEGER NOT NULL, PRIMARY KEY (epoch, who)) WITHOUT ROWID;
"""


class Permanent:
    """A store of permanent answers in one private file. Made by ``Permanent.open``; to be used in a ``with`` block.

    Processes may share it: answers are looked up and drawn under one lock, so that two of them never answer for one id.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Permanent.open(Path(folder.name) / "answers.permanent") as store:
    ...     store.epochs, store
    ((), <Permanent: answers.permanent>)
    >>> folder.cleanup()
    """

    __slots__ = ("_connection", "_key", "_name")

    def __init__(self, name: str, connection: sqlite3.Connection, key: bytes) -> None:
        self._name, self._connection, self._key = name, connection, key

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Permanent:
        """The store in a file, which is made if there is none.

        Raises:
            OutputError: the file cannot be made.
            DataError: the file is no store of permanent answers.
            Refused: others than its owner may read it; nothing was read.
        """
        import sqlite3

        file = Path(path)
        new = _made(file)
        try:
            connection = sqlite3.connect(file, timeout=WAIT_SECONDS, isolation_level=None)
            try:
                with _locked(connection):
                    if new or not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                        for statement in filter(str.strip, _TABLES.split(";")):
                            connection.execute(statement)
                        drawn = bytes.fromhex(fresh_name(KEY_BYTES))
                        connection.execute("INSERT INTO about VALUES (?, ?)", (FORMAT, drawn))
                    told = connection.execute("SELECT format, key FROM about").fetchall()
                key = told[0][1] if len(told) == 1 else None
                if not isinstance(key, bytes) or told[0][0] != FORMAT or len(key) != KEY_BYTES:
                    raise DataError(f"{file.name}: permanent answers of another version.")
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, TypeError, UnicodeDecodeError):  # also of messages that quote damaged text
            raise DataError(
                f"{file.name}: is no file of permanent answers, is damaged, or is held by another process."
            ) from None
        return Permanent(file.name, connection, told[0][1])

    @property
    def epochs(self) -> tuple[str, ...]:
        """The epochs that have answers; each was charged for when its first answer was drawn."""
        with self._sealed():
            return tuple(
                row[0] for row in self._connection.execute("SELECT epoch FROM epochs ORDER BY epoch")
            )

    @property
    def identity(self) -> str:
        """Tells this store from every other, also from one that is made anew under its name; says nothing of its key."""
        return hashlib.sha256(b"identity" + self._key).hexdigest()[:32]

    def has(self, mark: str) -> bool:
        """Whether the store holds the answers that went with this mark: not if it was restored from an older copy, nor if the run
        ended before its answers were kept."""
        with self._sealed():
            found = self._connection.execute("SELECT 1 FROM marks WHERE mark = ?", (mark,)).fetchone()
        return found is not None

    def admits(self, epoch: str, laws: str) -> None:
        """Refuse an epoch that has answers of other channels, or of persons told apart by another column.

        Args:
            laws: ``fingerprint`` of the channels and the column of ids.
        """
        with self._sealed():
            held = self._connection.execute(
                "SELECT channels FROM epochs WHERE epoch = ?", (epoch,)
            ).fetchone()
        if held is not None and held[0] != laws:
            raise Refused(
                f"{self._name}: this epoch has answers of other channels, or by another column of ids; use the same ones, or "
                "begin another epoch, which is charged anew. Nothing was drawn."
            )

    def settled(
        self, epoch: str, laws: str, ids: Sequence[str], draw: Callable[[Ints], Ints], mark: str = ""
    ) -> Ints:
        """The answer of each id in an epoch: the one it has, or, if it has none, one drawn now and kept.

        Args:
            epoch: a public name of the time, such as "2025". It must not depend on the data.
            laws: ``fingerprint`` of the channels that answers are drawn from and of the column of ids; the same for a whole epoch.
            ids: each once.
            mark: kept together with the answers, so that ``has`` tells whether they are still there.
            draw: gives new answers, as numbers from 0 to 2^63 − 1, for these places in ``ids``.
        Returns:
            int64, shape (ids,).
        Raises:
            SpecificationError: an epoch that is no text, an id that comes twice.
            Refused: the epoch has answers of other channels.
            DataError: an answer in the file is none.
            OutputError: the answers cannot be kept; none of them was returned.
        """
        if not isinstance(epoch, str) or not epoch:
            raise SpecificationError('epoch: a text, such as "2025".')
        if len(set(ids)) < len(ids):
            raise SpecificationError("permanent: an id comes twice.")
        hashes = [self._hash(i) for i in ids]
        found = np.zeros(len(ids), dtype=np.int64)
        with self._sealed(), _locked(self._connection):
            self.admits(epoch, laws)
            held = self._connection.execute(
                "SELECT channels FROM epochs WHERE epoch = ?", (epoch,)
            ).fetchone()
            if held is None:
                self._connection.execute("INSERT INTO epochs VALUES (?, ?)", (epoch, laws))
            if mark:
                self._connection.execute("INSERT OR IGNORE INTO marks VALUES (?)", (mark,))
            new = []
            for at, who in enumerate(hashes):
                row = self._connection.execute(
                    "SELECT answer FROM answers WHERE epoch = ? AND who = ?", (epoch, who)
                ).fetchone()
                if row is None:
                    new.append(at)
                elif (
                    not isinstance(row[0], int) or row[0] < 0
                ):  # SQLite keeps any kind of value in any column
                    raise DataError(f"{self._name}: is damaged; restore it from a copy.")
                else:
                    found[at] = row[0]
            if new:
                places = np.array(new, dtype=np.int64)
                found[places] = draw(places)
                rows = ((epoch, hashes[at], int(found[at])) for at in new)
                self._connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
        return found

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _hash(self, who: str) -> bytes:
        return hashlib.blake2b(who.encode(), key=self._key, digest_size=HASH_BYTES).digest()

    @contextmanager
    def _sealed(self) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError):
            raise OutputError(
                f"{self._name}: permanent answers cannot be read or kept; none was returned. Free some space, or close the "
                "process that holds the file."
            ) from None

    def __enter__(self) -> Permanent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Permanent: {self._name}>"


def _made(file: Path) -> bool:
    """Whether the file is new, made for its owner alone; refuses one that others may read."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return True
    except FileExistsError:
        if not file.is_file():
            raise OutputError(
                f"{file}: is there already and no file; name another one for permanent answers."
            ) from None
        if file.stat().st_size and file.read_bytes()[:15] != b"SQLite format 3":
            raise DataError(f"{file.name}: is no file of permanent answers; name another one.") from None
        if os.name == "posix" and file.stat().st_mode & 0o077:
            raise Refused(f"{file.name}: others than its owner may read it; chmod 600 {file.name}.") from None
        return False
    except OSError as error:
        raise OutputError(f"{file.name}: cannot be made ({error.strerror}).") from None


@contextmanager
def _locked(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, and nobody else meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def fingerprint(channels: Sequence[Channel], ident: str = "") -> str:
    """SHA-256 of the laws and outputs of channels: equal only if their answers mean the same and have the same law.

    Args:
        ident: the column that tells persons apart, which answers are remembered by.

    >>> from ..attributes import Categorical
    >>> from ..domain import Domain
    >>> vote = Domain(vote=Categorical(["no", "yes"]))
    >>> one, two = (Channel.of_matrix([[p, 1 - p], [1 - p, p]], vote) for p in (0.5, 0.75))
    >>> fingerprint([one]) == fingerprint([one]), fingerprint([one]) == fingerprint([two])
    (True, False)
    """
    digest = hashlib.sha256(ident.encode())
    for channel in channels:
        told: dict[str, Any] = {
            "domain": channel.domain.to_spec(),
            "outputs": channel.outputs.to_spec(),
            "order": [list(channel.domain.names), list(channel.outputs.names)],
            "law": channel.law.spec(),
        }
        digest.update(json.dumps(told, sort_keys=True, default=str).encode())
        for name, array in sorted(channel.law.arrays().items()):
            whole = np.ascontiguousarray(array)
            digest.update(f"\0{name} {whole.dtype.str} {whole.shape}\0".encode())
            digest.update(whole.tobytes())
    return digest.hexdigest()
