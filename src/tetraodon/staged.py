"""Private folders beside published files: what goes out is written there whole, and then moved into place.

A run that is killed leaves its folder behind. It holds answers that were drawn, charged and never published, so nothing that may
not be seen and nothing that anybody needs; the next run takes it away, with the files that it moved before any manifest named
them. A folder that a living process works in is locked, and left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .files import sha256

try:
    import fcntl
except ImportError:  # without such locks a folder that is left cannot be told from one in use
    fcntl = None  # type: ignore[assignment]

PREFIX = ".writing-"
MANIFEST = "manifest.json"


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """A folder of this process alone inside ``folder``, gone at the end; what killed ones left is taken away first.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    clear(folder)
    while True:
        place = Path(tempfile.mkdtemp(dir=folder, prefix=PREFIX))
        held = _locked(place, wait=True)
        if place.is_dir():  # else another process took it for one that was left, before it was locked
            break
        _let_go(held)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _let_go(held)


def clear(folder: Path) -> None:
    """Take away what killed processes left in ``folder``, and what they moved into it before any manifest named it."""
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            _clear(left, folder)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk before anything is said to be published."""
    with suppress(OSError):  # not every system can open a folder
        write_through(path)


def write_through(path: Path) -> None:
    """As ``sync``. Raises ``OSError`` where it cannot be done."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def told_by(manifest: Path) -> dict[str, Any]:
    """What a manifest says; nothing where it cannot be read, or could not be written again: it holds an infinity, or half a letter."""
    try:
        told = json.loads(manifest.read_text(encoding="utf-8"))
        json.dumps(told, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def files_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Names of the files beside a manifest and their digests, as it lists them; none where it lists them in no form of ours."""
    try:
        every = [f for entry in told["releases"] for f in entry["files"].values()]
        return {Path(f["path"]).name: str(f["sha256"]) for f in every}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


def _locked(place: Path, wait: bool) -> int | None:
    """A lock on a folder, which ends with the process; None where there are no such locks.

    Raises:
        OSError: another process holds it, and ``wait`` is false.
    """
    if fcntl is None:
        return None
    try:
        opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(opened)
        if wait:  # a disk without locks
            return None
        raise
    return opened


def _let_go(held: int | None) -> None:
    if held is not None:
        os.close(held)


def _clear(left: Path, folder: Path) -> None:
    """Take away what a killed process of this user left.

    Raises:
        OSError: a living process holds it, it is no folder, or it is gone already.
    """
    if not hasattr(os, "geteuid") or os.lstat(left).st_uid != os.geteuid():
        return
    held = _locked(left, wait=False)
    if held is None:
        return
    try:
        named = files_of(told_by(folder / MANIFEST))
        for name, digest in files_of(told_by(left / MANIFEST)).items():
            moved = folder / name
            # Moved into place by the process that was killed, before its manifest: no other one knows of it.
            if name not in named and moved.is_file() and not moved.is_symlink() and sha256(moved) == digest:
                moved.unlink()
        shutil.rmtree(left, ignore_errors=True)
    finally:
        _let_go(held)
