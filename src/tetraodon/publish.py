"""Writing releases: answers from scratch in public order, then one manifest. All or nothing.

Everything is first written into a folder of its own beside the target and then moved into place, the manifest last, so a
reader never meets half a file. What is written depends on the published numbers and public facts alone: fixed column
order, no row-group statistics, no pandas metadata.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OutputError, SpecificationError
from .files import sha256
from .manifest import AUDIT, KEYS, manifest_of, release_entry
from .microdata.audit import check_apart
from .microdata.publishing import GROUPS, microdata_entry
from .microdata.release import MicrodataRelease
from .presentation import FORMATS as FORMATS
from .presentation import Presentation, presentation_of
from .presenting import Presented, arrow
from .queries import CDF, Query
from .release import Release
from .rows.lasting import check_store
from .rows.publishing import row_entry, targets
from .rows.release import RowRelease
from .rows.resumed import check_outside, check_unpublished
from .rows.staged import Staged
from .spreadsheets import write_csv, write_row_pieces
from .staged import MANIFEST as MANIFEST
from .staged import clear, files_of, sync, told_by, workplace

if TYPE_CHECKING:
    import pyarrow

    from .ledger import Ledger


REPORT = "report.html"
QUANTILES = "quantiles"
NAME = re.compile(r"[\w][\w .+=-]{0,99}\Z")
BYTES_A_ROW = 64


def file_name(name: str) -> str:
    """``name`` if it can name a file inside the output folder.

    Raises:
        SpecificationError: path separators, a leading dot, control characters, or too long.
    """
    if (
        not isinstance(name, str)
        or NAME.match(name) is None
        or len(name.encode()) > 200
        or name.endswith((" ", "."))
        or name.lower() in ("manifest", "report")
        or f"{name.lower()}.csv".endswith(f".{GROUPS}")
        or name.lower().endswith(f".{QUANTILES}")
    ):
        raise SpecificationError(
            f"Release name {name!r}: letters, digits, blanks and _ . + = - only, at most 100, not 'manifest' or 'report', and not "
            "ending in '.groups' or '.quantiles'."
        )
    return name


def check_formats(formats: Sequence[str]) -> None:
    """Raises ``SpecificationError`` for a format that is not offered."""
    for form in formats:
        if form not in FORMATS:
            raise SpecificationError(f"format {form!r}: one of {', '.join(FORMATS)}.")


def check_targets(folder: Path, wanted: Mapping[str, Sequence[str]]) -> None:
    """Refuse to replace files that are no earlier answers, manifest or report of this folder, and names that are one to some disks.
    What a killed run left there is taken away.

    Raises:
        OutputError: names the file.
    """
    clear(folder)
    ours = _listed(folder)
    taken = [folder / f"{file_name(name)}.{form}" for name, formats in wanted.items() for form in formats]
    folded: dict[str, str] = {}
    for target in taken:
        other = folded.setdefault(unicodedata.normalize("NFC", target.name).casefold(), target.name)
        if other != target.name:
            raise OutputError(
                f"{other}, {target.name}: one file on some disks; choose names that differ in more than letter case."
            )
    for target in [*taken, folder / MANIFEST]:
        if target.is_dir() or (os.path.lexists(target) and target.name not in ours):
            raise OutputError(
                f"{target}: is there already and is none of this folder's earlier answers; choose another folder or name."
            )
    page = folder / REPORT
    if page.is_dir():
        raise OutputError(f"{page}: is a folder; choose another one.")
    if os.path.lexists(page) and not ours:
        raise OutputError(
            f"{page}: is there already, without a manifest of ours beside it; choose another folder."
        )


def prepare(
    folder: Path,
    wanted: Mapping[str, tuple[int, Sequence[str]]],
    beside: Mapping[str, Sequence[str]],
) -> None:
    """Check, before any budget is spent, that a folder can take these files and that they replace nothing of others.

    Args:
        wanted: rows and formats of each release, by name.
        beside: endings of files that stand beside them, by the release's name.

    Raises:
        OutputError: the folder cannot be made or written, the disk or a limit is too small, or a file of others is in the
            way. Nothing was spent.
    """
    for _, formats in wanted.values():
        check_formats(formats)
    endings = {name: [*forms, *beside.get(name, ())] for name, (_, forms) in wanted.items()}
    check_targets(folder, endings)
    size = 262_144 + sum(BYTES_A_ROW * rows * len(formats) for rows, formats in wanted.values())
    try:
        with workplace(folder) as place, open(place / "space", "wb") as trial:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(trial.fileno(), 0, size)
            else:
                trial.truncate(size)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot take the answers ({error.strerror}); choose another folder or free some space. Nothing was spent."
        ) from None


def _manifest(folder: Path) -> dict[str, Any]:
    """An earlier manifest of a folder, {} if there is none or it is none of ours."""
    told = told_by(folder / MANIFEST)
    return told if told.get("format") == 1 and isinstance(told.get("releases"), list) else {}


def _listed(folder: Path) -> set[str]:
    """Files that an earlier manifest lists, itself included."""
    told = _manifest(folder)
    return {MANIFEST, *files_of(told)} if told else set()


def check_account(folder: Path, ledger: Ledger, then: str = "") -> None:
    """Refuse a folder whose manifest tells of another account: it is the one proof of what that account has spent.

    Args:
        then: what became of the budget, in words.

    Raises:
        OutputError: names the manifest.
    """
    budget = _manifest(folder).get("budget")
    if not isinstance(budget, Mapping) or budget.get("ledger") is None or "head" not in budget:
        return  # none, or of an account that was forgotten when its run ended
    if budget["head"] not in {entry.hash for entry in ledger.entries}:
        raise OutputError(
            f"{folder / MANIFEST}: belongs to another account than {ledger}, or to a later copy of it, whose only evidence it may be. "
            f"Find that ledger, or choose another folder.{then}"
        )


LOST = "the other answers are lost, and only --again (again=True) draws new ones."
KEPT = "rows that are staged are kept, and --resume (resume=True) publishes them; other answers of this run are lost."


@contextlib.contextmanager
def staging(folder: Path, rest: str = LOST) -> Iterator[Path]:
    """A folder to write into; its files move into place together when the block ends well.

    Args:
        rest: what becomes of what was not written, in words.
    """
    place = workplace(folder)
    try:
        stage = place.__enter__()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror}).") from None
    moved: list[str] = []
    try:
        yield stage
        names = sorted(p.name for p in stage.iterdir())
        for name in names:
            sync(stage / name)
        # The manifest names the others, so it comes last.
        for name in sorted(names, key=lambda n: n == MANIFEST):
            os.replace(stage / name, folder / name)
            moved.append(name)
        sync(folder)
    except OSError as error:
        what = f"only {', '.join(moved)} was written" if moved else "nothing was published"
        raise OutputError(
            f"{folder}: writing failed ({error.strerror}); {what}. The budget was already charged: {rest}"
        ) from None
    finally:
        place.__exit__(None, None, None)


def publish(
    folder: Path,
    releases: Sequence[tuple[Release | RowRelease | MicrodataRelease, Presentation | Sequence[str]]],
    context: Mapping[str, Any],
    report: bool = False,
    audits: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write answers, manifest and, if asked, the report; returns the manifest's path.

    Args:
        audits: what the manifest says of the audits of releases, by name.
        releases: each with its presentation, or with file formats alone.
    """
    wanted = [(release, presentation_of(how)) for release, how in releases]
    for release, how in wanted:
        if how.changed and not isinstance(release, Release):
            raise SpecificationError(f"present.{how.changed[0]}: goes with a query; rows leave as they are.")
        if isinstance(release, MicrodataRelease) and release.audit is not None:
            check_apart(release.audit, folder)
        if isinstance(release, RowRelease):
            check_store(release.query, folder)
    staged = [
        release.held
        for release, _ in wanted
        if isinstance(release, RowRelease) and isinstance(release.held, Staged)
    ]
    for rows in staged:
        check_outside(rows.folder.path, folder)
        rows.draw()
    endings = {release.name: [*how.format, *extra_files(release, how)] for release, how in wanted}
    check_targets(folder, endings)
    check_account(folder, context["ledger"])
    ledger, digests = context["ledger"], dict[int, dict[str, str]]()
    with staging(folder, KEPT if staged else LOST) as stage:
        entries = []
        for release, how in wanted:
            if isinstance(release, Release):
                shown = release.presented(how)
                files = _answers(release.name, shown, stage)
                entries.append(release_entry(release, shown, files))
            else:
                files = {}
                for form in how.format:
                    path = stage / f"{release.name}.{form}"
                    write_tables(
                        release.held.pieces() if isinstance(release, RowRelease) else [release.to_arrow()],
                        path,
                    )
                    files[form] = _file(path)
                entries.append(
                    row_entry(release, stage, files)
                    if isinstance(release, RowRelease)
                    else microdata_entry(release, stage, files)
                )
            if audits is not None and release.name in audits:
                entries[-1][AUDIT] = dict(audits[release.name])
            digests[release.charge] = {f["path"]: f["sha256"] for f in entries[-1]["files"].values()}
        told = _manifest(folder)
        manifest = manifest_of([*_earlier(folder, told, entries, context), *entries], context)
        replaced = _replaced(folder, told, entries, files_of(manifest))
        text = json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        (stage / MANIFEST).write_text(text, encoding="utf-8")
        for release, _ in wanted:
            if isinstance(release, RowRelease) and release.is_staged:
                check_unpublished(release.name, release.charge, ledger.entries)
    for row, files_told in digests.items():
        ledger.published(row, files_told)
    for path in replaced:
        with contextlib.suppress(OSError):
            path.unlink()
    for rows in staged:
        rows.finish()
    if report:
        refresh_report(folder)
    return folder / MANIFEST


def _answers(name: str, shown: Presented, stage: Path) -> dict[str, dict[str, str]]:
    """Write a presented table, and the quantiles beside it, in every format."""
    tables = {"": shown.to_arrow()}
    if shown.quantile_columns is not None:
        tables[f"{QUANTILES}."] = arrow(shown.quantile_columns)
    files = {}
    for beside, table in tables.items():
        for form in shown.presentation.format:
            path = stage / f"{name}.{beside}{form}"
            write_csv(table, path) if form == "csv" else write_table(table, path)
            files[f"{beside}{form}"] = _file(path)
    return files


def _file(path: Path) -> dict[str, str]:
    return {"path": path.name, "sha256": sha256(path)}


def refresh_report(folder: Path) -> None:
    """Write the page, from the manifest and the files as they were published: a failure here loses no answers."""
    from .report import render

    page = render(folder / MANIFEST)
    try:
        with workplace(folder) as place:
            (place / REPORT).write_text(page, encoding="utf-8")
            os.replace(place / REPORT, folder / REPORT)
    except OSError as error:
        raise OutputError(
            f"{folder / REPORT}: cannot be written ({error.strerror}); the answers and the manifest were published."
        ) from None


def _earlier(
    folder: Path, told: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], context: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Releases of an earlier manifest that this ledger holds with these very files, under the same policy and edition."""
    held = [(e.body["charge"], e.body["digests"]) for e in context["ledger"].entries if e.kind == "published"]
    names = {entry["name"] for entry in entries}
    found = []
    for entry in told.get("releases", ()):
        try:
            files = {file_name_only(f["path"]): f["sha256"] for f in entry["files"].values()}
            kept = (
                told["policy"]["hash"] == context["policy"]["hash"]
                and all(told["data"][k] == v for k, v in context["data"].items())
                and frozenset(entry) - {AUDIT} == KEYS.get(entry.get("kind"))
                and entry["name"] not in names
                and (entry["ledger_row"], files) in held
                and _can_be_listed(entry)
                and all(sha256(folder / name) == digest for name, digest in files.items())
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if kept:
            found.append(entry)
    return found


def _replaced(
    folder: Path, told: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], kept: Iterable[str]
) -> list[Path]:
    """Files of earlier draws of these releases, as they were published, that no new file takes the place of: other formats."""
    names, stay, found = {entry["name"] for entry in entries}, set(kept), list[Path]()
    for entry in told.get("releases", ()):
        if not isinstance(entry, Mapping) or entry.get("name") not in names:
            continue
        for name, digest in files_of({"releases": [entry]}).items():
            with contextlib.suppress(OSError):
                if name not in stay and not (folder / name).is_symlink() and sha256(folder / name) == digest:
                    found.append(folder / name)
    return found


def _can_be_listed(entry: Mapping[str, Any]) -> bool:
    """Whether what a manifest as a whole takes from an entry is of the kinds that we write."""
    records, outside = entry["records"], entry["disclosed_exactly"]
    return (
        type(entry["ledger_row"]) is int
        and (records is None or type(records) is int)
        and isinstance(outside, list)
        and all(isinstance(line, str) for line in outside)
    )


def file_name_only(path: str) -> str:
    """The last part of a path, so that a manifest cannot point outside its folder."""
    return Path(path).name


def write_table(table: pyarrow.Table, path: Path) -> None:
    """One file from scratch: no statistics, no foreign metadata, the same bytes for the same table."""
    write_tables([table], path)


def write_tables(tables: Iterable[pyarrow.Table], path: Path) -> None:
    """``write_table`` of tables of the same columns, one after another, at least one; each is held alone."""
    if path.suffix == ".csv":
        write_row_pieces(tables, path)
        return
    from pyarrow import parquet

    with contextlib.ExitStack() as held:
        writer: Any = None
        for table in tables:
            plain = table.replace_schema_metadata(None)
            writer = writer or held.enter_context(
                parquet.ParquetWriter(
                    path, plain.schema, write_statistics=False, store_schema=False, compression="zstd"
                )
            )
            writer.write_table(plain)


def extra_files(release: Release | RowRelease | MicrodataRelease, how: Presentation) -> list[str]:
    """Endings of the files that stand beside the published numbers or rows."""
    if isinstance(release, MicrodataRelease):
        return [GROUPS]
    return (
        list(targets(release).values())
        if isinstance(release, RowRelease)
        else beside_query(release.query, how)
    )


def beside_query(query: Query, how: Presentation) -> list[str]:
    """Endings of the files that stand beside the answers of a query."""
    has_quantiles = isinstance(query, CDF) and bool(query.quantiles)
    return [f"{QUANTILES}.{form}" for form in how.format] if has_quantiles else []
