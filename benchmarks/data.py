"""Data files that benchmarks read and the project does not ship."""

from __future__ import annotations

import os
from pathlib import Path


def source(*parts: str) -> Path:
    """A data file under the folder named by TETRAODON_DATA.

    Raises:
        FileNotFoundError: naming the file, where it or the variable is missing.
    """
    folder = os.environ.get("TETRAODON_DATA")
    path = None if folder is None else Path(folder).joinpath(*parts)
    if path is None or not path.exists():
        raise FileNotFoundError(
            f"skipped: set TETRAODON_DATA to the folder that holds {'/'.join(parts)} (not shipped)"
        )
    return path
