"""Whatever claims a loss is audited, and has broken twins; docs/assurance.md says so."""

from __future__ import annotations

import re
from pathlib import Path

from audit import assurance, rows
from audit.test_audited_mechanisms import ALL as MECHANISMS

import tetraodon
from tetraodon.mechanisms import NAMES
from tetraodon.rows.declared import KINDS

ALL = [*MECHANISMS, *rows.subjects()]
LEAST = 3
ASIDE = {"trees", "remap", "rows_per_person", "joint places", "known counts", "permanent"}


def test_every_mechanism_and_channel_of_the_package_is_audited() -> None:
    """The names come from the package, so that a new one without an audit fails here."""
    covered = {name for s in ALL for name in s.covers}
    missing = {*NAMES, *KINDS, *ASIDE} - covered
    assert missing <= ({"learned"} if not rows._floor() else set()), missing  # needs the extra learn
    assert covered <= {*NAMES, *KINDS, *ASIDE}


def test_every_way_of_answering_is_audited_with_both_noises() -> None:
    for name in NAMES:
        claims = {s.name.rsplit(", ", 1)[-1] for s in MECHANISMS if name in s.covers}
        assert {"Laplace", "Gaussian"} <= claims, name


def test_each_has_three_broken_twins_at_least() -> None:
    for subject in ALL:
        assert len(subject.twins) >= LEAST, subject.name
        assert subject.tables, subject.name
    assert len({s.name for s in ALL}) == len(ALL)


def test_broken_twins_cannot_be_imported_from_the_package() -> None:
    source = Path(tetraodon.__file__).parent
    for file in source.rglob("*.py"):
        assert not re.search(r"mutants|from audit\b|import audit\b", file.read_text(encoding="utf-8")), file


def test_the_committed_table_lists_what_is_audited() -> None:
    """All but the figures, which differ from run to run."""
    committed = assurance.read()
    wanted = [assurance.fixed(s) for s in ALL]
    if not rows._floor():
        committed = [c for c in committed if not c[0].startswith("learned")]
    assert committed == wanted
