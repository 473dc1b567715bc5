"""The mapping that was applied, for the publisher's own eyes: which row went where, and whose columns it was given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OutputError
from ..spreadsheets import harmless
from ..staged import MANIFEST, told_by

if TYPE_CHECKING:
    import pyarrow


def check_audit(path: Path) -> None:
    """Refuse, before anything is charged or drawn, what cannot be written, would replace a file, or lies beside what is
    published.

    Raises:
        OutputError: names the file and the fix.
    """
    if os.path.lexists(path):
        raise OutputError(
            f"audit: {path.name}: is there already; move it away or choose another name. Nothing was spent."
        )
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(
            f"audit: {path.name}: its folder does not exist or cannot be written. Nothing was spent."
        )
    for folder in path.resolve().parents:
        if _is_published(folder):
            raise OutputError(f"{_inside(path)} Nothing was spent.")


def check_apart(path: Path, folder: Path, note: str = "") -> None:
    """Refuse a private file inside a folder that is published.

    Raises:
        OutputError: names the fix.
    """
    if lies_in(path, folder):
        raise OutputError(f"{_inside(path)}{note}")


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a file is, or would be, somewhere below a folder; links are followed."""
    # ``Path.resolve`` raises where links go round in a circle.
    inside, outer = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    return inside == outer or outer in inside.parents


def _inside(path: Path) -> str:
    return (
        f"audit: {path.name}: lies in a folder that is published, and says whose values each row holds; choose a place outside "
        "of it."
    )


def _is_published(folder: Path) -> bool:
    """Whether a manifest of ours lies there."""
    return {"tetraodon", "releases"} <= set(told_by(folder / MANIFEST))


def write_audit(path: Path, table: pyarrow.Table) -> None:
    """Write a new file that its owner alone may read.

    Raises:
        OutputError: it is there already, or cannot be written.
    """
    from pyarrow import csv

    try:
        # Never an existing file, nor one behind a link: its owner and mode could be others'.
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(place, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            csv.write_csv(harmless(table), file, csv.WriteOptions(quoting_style="needed"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(f"audit: {path.name}: cannot be written ({error.strerror}).") from None
