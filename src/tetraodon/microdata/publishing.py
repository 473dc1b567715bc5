"""Files and manifest entry of released microdata."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import sha256
from ..spreadsheets import escaped
from .entry import entry_of, evidence_of
from .evidence import measured_of
from .release import MicrodataRelease

GROUPS = "groups.csv"


def microdata_entry(
    release: MicrodataRelease, stage: Path, files: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Write what the groups' labels stand for, and say what the manifest says.

    What was computed from private rows is left out unless the request says that it is to be published.
    """
    path = stage / f"{release.name}.{GROUPS}"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["column", "group", "value"])
        for column, groups in release.groups.items():
            rows.writerows(map(escaped, (column, g.label, v)) for g in groups for v in g.values)
    found = {**files, "groups": {"path": path.name, "sha256": sha256(path)}}
    if not release.publishes_evidence:
        return entry_of(release, found, None)
    return entry_of(release, found, evidence_of(release) | measured_of(release))
