"""What ``tetraodon release --resume`` does: it finishes a run that ended before everything was published, and charges nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .entries import Entry, is_published, token_of
from .errors import Refused, SpecificationError
from .planning import published
from .publish import MANIFEST, refresh_report
from .requests import Request, chosen
from .rows.resumed import discard, last_of
from .spec import Document


@dataclass(frozen=True)
class Resumed:
    """What came of it.

    Attributes:
        manifest: path of the manifest.
        notes: what was not done, and why, in plain sentences.
    """

    manifest: Path
    notes: tuple[str, ...]


def resumed(document: Document, folder: Path, only: Sequence[str], audit_draws: int | None = None) -> Resumed:
    """Go on with the staged rows of a document that were charged and not published, and release what was never charged.

    What was charged without staging and not published is lost, and is named.

    Args:
        only: names of releases; all for none.
        audit_draws: as ``planning.run``.

    Raises:
        SpecificationError: no durable ledger, no staged rows among the releases, or an unknown name.
        Refused: nothing is left to be done and nothing was published here.
        LedgerError, DataError, OutputError, EngineError: as for a release.
    """
    requests = chosen(document.requests, only)
    if document.ledger is None:
        raise SpecificationError("--resume: needs budget.ledger, which knows what was charged.")
    if not any(r.staging for r in requests):
        raise SpecificationError(
            "--resume: no release here has staging, a folder in which rows are kept until they are published."
        )
    session = document.session()
    entries, edition = session.ledger.entries, session.table.edition
    left, notes = list[Request](), list[str]()
    for request in requests:
        entry, staging = last_of(request.name, edition, entries), request.staging
        if entry is None:
            left.append(request)
        elif is_published(entry.seq, entries):
            if staging is not None:
                discard(Path(staging), token_of(entry.charge))
        elif staging is not None and token_of(entry.charge):
            left.append(replace(request, resume=True))
        else:
            notes.append(_lost(request.name, entry))
    if left:
        return Resumed(published(document, folder, left, lambda: session, audit_draws), tuple(notes))
    if not (folder / MANIFEST).is_file():
        raise Refused(
            f"--resume: everything else was published before, and {folder} holds no manifest of it; name its folder with --out. "
            f"{' '.join(notes)}Nothing was spent."
        )
    refresh_report(folder)
    return Resumed(folder / MANIFEST, tuple(notes))


def _lost(name: str, entry: Entry) -> str:
    return (
        f"{name}: charged on {entry.time} and not published; its answers ended with that run. --again --only {name} draws and charges "
        "afresh."
    )
