"""The private folder of a release that can be resumed: every file in it is whole or not there, and one process has it at a time.

Files are written under another name, brought to the disk, and then renamed, so that a kill or a power cut at any moment leaves
what was committed and nothing else. Nobody but the owner can read the folder: it holds what is about to be published while it
still stands in the order of the table, and digests of private files.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, OutputError, Refused
from ..staged import write_through

STATE = "state.json"
LOCK = "lock"
UNFINISHED = ".tmp"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Stored:
    """Arrays in one file of the folder, with what was said of them when they were committed."""

    path: Path
    told: Mapping[str, Any]
    start: int

    def array(self, place: int, first: int = 0, past: int | None = None) -> NDArray[Any]:
        """Some elements of one of the arrays, all by default.

        Raises:
            DataError: the file ends before them.
        """
        before = sum(np.dtype(kind).itemsize * length for kind, length in self.told["arrays"][:place])
        kind, length = self.told["arrays"][place]
        count = (length if past is None else past) - first
        offset = self.start + before + np.dtype(kind).itemsize * first
        try:
            found = np.fromfile(self.path, dtype=kind, count=count, offset=offset)
        except OSError as error:
            raise _unread(self.path, error) from None
        if len(found) < count:
            raise damaged(self.path)
        return found

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All of them, checked.

        Raises:
            DataError: they are not what was committed.
        """
        found = [self.array(place) for place in range(len(self.told["arrays"]))]
        if _digest(found) != self.told["sha256"]:
            raise damaged(self.path)
        return found

    def check(self) -> None:
        """Raises ``DataError`` if the arrays are not what was committed."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unread(self.path, error) from None
        if found != self.told["sha256"]:
            raise damaged(self.path)


class Folder:
    """The folder, held by this process. Made by ``made`` or ``found``."""

    __slots__ = ("__weakref__", "_close", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._close = weakref.finalize(self, os.close, descriptor)

    @staticmethod
    def made(path: Path) -> Folder:
        """A new folder, or an empty one.

        Raises:
            Refused: it holds an unfinished release.
            OutputError: it holds anything else, or cannot be made.
        """
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"staging {path.name}: cannot be made ({error.strerror}). Nothing was spent."
            ) from None
        _fresh(path)
        _owned(path)
        folder = Folder(path, _locked(path))
        try:
            _fresh(path)  # another process may have begun in between
        except BaseException:
            folder.close()
            raise
        return folder

    @staticmethod
    def found(path: Path) -> Folder | None:
        """The folder of an earlier run; None if there is none, or nothing was begun in it.

        Raises:
            Refused: others may read it, or another process has it.
            OutputError: it cannot be looked at.
        """
        if not _is_begun(path):
            return None
        _owned(path)
        folder = Folder(path, _locked(path))
        if not _is_begun(path):  # finished by another process in between
            folder.close()
            return None
        return folder

    def has(self, name: str) -> bool:
        """Whether a file was committed."""
        return (self.path / name).is_file()

    def write(self, name: str, told: Mapping[str, Any]) -> None:
        """Commit a JSON file.

        Raises:
            OutputError: it cannot be written; what was there stays.
        """
        text = json.dumps(told)
        whole = {"format": FORMAT, "told": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        self._commit(name, [json.dumps(whole).encode()])

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file that was committed.

        Raises:
            DataError: it is not there, or damaged.
        """
        return read_json(self.path / name)

    def put(self, name: str, told: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
        """Commit arrays of whole numbers, with what is to be said of them. Raises as ``write``."""
        plain = [np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for a in arrays]
        kinds = [[a.dtype.str, len(a)] for a in plain]
        line = json.dumps({**told, "format": FORMAT, "arrays": kinds, "sha256": _digest(plain)})
        self._commit(name, [line.encode() + b"\n", *(a.data for a in plain if len(a))])

    def get(self, name: str) -> Stored:
        """Arrays that were committed.

        Raises:
            DataError: they are not there, or the file is longer or shorter than it was.
        """
        path = self.path / name
        try:
            with path.open("rb") as file:
                line = file.readline()
            told = json.loads(line)
            length = sum(np.dtype(kind).itemsize * count for kind, count in told["arrays"])
            if told["format"] != FORMAT or path.stat().st_size != len(line) + length:
                raise damaged(path)
        except OSError as error:
            raise _unread(path, error) from None
        except (ValueError, LookupError, TypeError, RecursionError):
            raise damaged(path) from None
        return Stored(path, told, len(line))

    def _commit(self, name: str, pieces: Sequence[bytes | memoryview]) -> None:
        part = self.path / (name + UNFINISHED)
        try:
            with open(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.path / name)
            if os.name == "posix":
                write_through(self.path)
        except OSError as error:
            raise OutputError(
                f"staging {self.path.name}: cannot be written ({error.strerror}); free some space, or allow writing."
            ) from None

    def remove(self) -> None:
        """Delete the folder and let go of it.

        What says whose it is goes when all else is gone, so that a half deleted folder can be told; the lock after it, so that nobody
        takes up a folder that is being deleted.
        """
        with suppress(OSError):
            for each in sorted(
                self.path.iterdir(),
                key=lambda p: (STATE, LOCK).index(p.name) if p.name in (STATE, LOCK) else -1,
            ):
                if each.is_file():
                    each.unlink()
            self.path.rmdir()
        self.close()

    def close(self) -> None:
        """Let other processes have it."""
        self._close()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that ``Folder.write`` committed.

    Raises:
        DataError: it is not there, or not what was written.
    """
    try:
        whole = json.loads(path.read_bytes())
        text = whole["told"]
        if whole["format"] != FORMAT or hashlib.sha256(text.encode()).hexdigest() != whole["sha256"]:
            raise damaged(path)
        told: dict[str, Any] = json.loads(text)
    except OSError as error:
        raise _unread(path, error) from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise damaged(path) from None
    return told


def damaged(path: Path) -> DataError:
    """The refusal of a file that is not what was committed."""
    return DataError(
        f"staging {path.parent.name}: {path.name} is not what was written there, so what was drawn can no longer be told. Restore "
        "it; else remove the folder, and only --again (again=True) draws afresh, and charges afresh."
    )


def _unread(path: Path, error: OSError) -> DataError:
    """The refusal of a file that is not there, ends too early, or may not be read."""
    if error.strerror is None or isinstance(error, FileNotFoundError):
        return damaged(path)
    return DataError(
        f"staging {path.parent.name}: {path.name} cannot be read ({error.strerror}); allow reading it."
    )


def _digest(arrays: Sequence[NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data if len(array) else b"")
    return found.hexdigest()


def _is_begun(path: Path) -> bool:
    """Whether a release was begun in a folder."""
    try:
        return stat.S_ISREG(os.stat(path / STATE).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise OutputError(
            f"staging {path.name}: cannot be looked at ({error.strerror}). Nothing was spent."
        ) from None


def _fresh(path: Path) -> None:
    """Refuses a folder in which something was begun, or which holds anything of others."""
    try:
        inside = sorted(each.name for each in path.iterdir())
    except OSError as error:
        raise OutputError(
            f"staging {path.name}: cannot be read ({error.strerror}). Nothing was spent."
        ) from None
    if STATE in inside:
        raise Refused(
            f"staging {path.name}: holds an unfinished release. --resume (resume=True) goes on with it. To draw and charge "
            "afresh instead, remove the folder first. Nothing was spent."
        )
    if [name for name in inside if name not in (LOCK, STATE + UNFINISHED)]:
        raise OutputError(
            f"staging {path.name}: is no folder of ours and not empty; name another one. Nothing was spent."
        )


def _owned(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise Refused(
            f"staging {path.name}: others than its owner may read it; chmod 700 {path.name}. Nothing was spent."
        )


def _locked(path: Path) -> int:
    """A descriptor that holds the folder's lock, which ends with the process however it ends.

    Raises:
        Refused: another process holds it.
        OutputError: the file system knows no locks, or the file cannot be made.
    """
    try:
        descriptor = os.open(path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if sys.platform == "win32":
                import msvcrt

                try:
                    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                except OSError:
                    raise BlockingIOError from None
            else:
                import fcntl

                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have deleted the folder in between.
            if not os.path.samestat(os.fstat(descriptor), os.stat(path / LOCK)):
                raise BlockingIOError
        except BaseException:
            os.close(descriptor)
            raise
    except (BlockingIOError, FileNotFoundError):
        raise Refused(
            f"staging {path.name}: another process, or a release that this one still has, is at it; wait for it, or end it first. "
            "Nothing was spent."
        ) from None
    except OSError as error:
        raise OutputError(
            f"staging {path.name}: cannot be locked ({error.strerror}); choose a folder on a local disk. Nothing was spent."
        ) from None
    return descriptor
