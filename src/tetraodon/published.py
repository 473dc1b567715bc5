"""Whether the files beside a manifest are those that a ledger holds as published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .entries import Entry
from .files import sha256


def differing(manifest: Path, told: Mapping[str, Any], entries: Sequence[Entry]) -> list[str]:
    """What is wrong with the files that a manifest lists, in plain sentences; files are looked for beside it only.

    Raises:
        OSError, ValueError: a file cannot be read, or its name cannot be one.
        LookupError, TypeError, AttributeError: the manifest lists its releases in no form of ours.
    """
    held = {
        (e.body["charge"], *item)
        for e in entries
        if e.kind == "published"
        for item in e.body["digests"].items()
    }
    found = []
    for release in told.get("releases", ()):
        row = release["ledger_row"]
        for each in release["files"].values():
            name, digest = Path(each["path"]).name, each["sha256"]
            here = manifest.parent / name
            if (row, name, digest) not in held:
                found.append(
                    f"manifest {manifest}: {name} is not what the ledger holds as published for row {row}."
                )
            if not here.is_file():
                found.append(f"manifest {manifest}: {name} is gone.")
            elif sha256(here) != digest:
                found.append(f"manifest {manifest}: {name} was changed after it was published.")
    return found
