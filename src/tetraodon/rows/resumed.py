"""Staged releases in the account: each is charged once, under a token that its folder bears, however often it goes on.

The folder is made, and says which table and which channels it is for, before anything is charged; the charge then bears the
folder's token. So a kill leaves one of three things: a folder of which the account knows nothing, in which nothing was
drawn; a charge whose folder goes on; or a charge that the account calls published, whose folder is only to be deleted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..admission import AlreadyReleased
from ..channels.apply import Target
from ..channels.channel import Channel
from ..channels.permanent import fingerprint
from ..entries import Charge, Entry, is_published, table_of, token_of
from ..errors import (
    DataError,
    LedgerError,
    OutputError,
    Refused,
    SpecificationError,
    TetraodonError,
    Unsupported,
)
from ..ledger import Ledger
from ..microdata.audit import lies_in
from ..noise import fresh_name
from ..policy import digest
from .folder import STATE, Folder, damaged
from .losses import keeps
from .staged import PART, Staged, bucket_count, check_files, digests_of, part_name
from .strategy import RowStrategy

if TYPE_CHECKING:
    from ..table import Table

TOKEN_BYTES = 32
# What a resumed request must say as the charge does.
SAME = {"query": "query", "loss": "loss", "policy_hash": "policy", "flag": "guarantee"}


def signed(charge: Charge, strategy: RowStrategy) -> Charge:
    """The charge with a token for the folder that its rows are kept in, where they are staged."""
    if strategy.query.staging is None:
        return charge
    return replace(charge, mechanism={**table_of(charge.mechanism), "staging": fresh_name(TOKEN_BYTES)})


def last_of(name: str, edition: str, entries: Sequence[Entry]) -> Entry | None:
    """The last charge of a release in an edition."""
    held = [e for e in entries if e.charge and (e.charge.name, e.charge.edition) == (name, edition)]
    return held[-1] if held else None


def unfinished(charge: Charge, staging: str | None, entries: Sequence[Entry]) -> Entry | None:
    """The charge that a resumed request goes on with; None where it was not charged yet.

    A folder whose release is published already is deleted.

    Args:
        charge: what the request would be charged.
        staging: its folder.

    Raises:
        SpecificationError: it is not staged.
        AlreadyReleased: it is published.
        LedgerError: it was charged without a folder, or says something else than what was charged.
    """
    if staging is None:
        raise SpecificationError(
            f"release {charge.name!r}: resume goes with staged rows (staging = 'a folder'); nothing else is kept when a run ends."
        )
    entry = last_of(charge.name, charge.edition, entries)
    if entry is None or entry.charge is None:
        return None
    token = token_of(entry.charge)
    if is_published(entry.seq, entries):
        discard(Path(staging), token)
        raise AlreadyReleased(
            f"release {charge.name!r}: already released on {entry.time}; there is nothing to resume. Nothing was spent."
        )
    if not token:
        raise LedgerError(
            f"release {charge.name!r}: was charged on {entry.time} without staging, so what was drawn is lost; --again (again=True) "
            "draws and charges afresh. Nothing was spent."
        )
    differ = [said for key, said in SAME.items() if getattr(charge, key) != getattr(entry.charge, key)]
    if differ:
        raise LedgerError(
            f"release {charge.name!r}: asks for another {' and another '.join(differ)} than what was charged on {entry.time}; resume "
            "it as it was asked. Nothing was spent."
        )
    return entry


def discard(path: Path, token: str) -> None:
    """Delete the folder of a release that is published, if it is that release's."""
    folder = Folder.found(path)
    if folder is None:
        return
    with suppress(DataError):
        if token and folder.read(STATE)["token"] == token:
            folder.remove()
    folder.close()


def opened(
    table: Table, strategy: RowStrategy, charge: Charge, entry: Entry | None, ledger: Ledger
) -> tuple[RowStrategy, Staged]:
    """The folder of a staged release, held by this process, before anything more is charged.

    Args:
        charge: what the request is charged, with its token, where it was not charged yet.
        entry: the charge that it goes on with.

    Returns:
        The strategy with the channels that rows are drawn from, and the rows.

    Raises:
        Unsupported: the table has no files whose bytes could be compared.
        DataError: the table is not the one that the release began with, or the folder is damaged.
        Refused: the folder is of another release, or another process has it.
    """
    staging = strategy.query.staging
    assert staging is not None
    path = Path(staging)
    check_stageable(table, ledger, charge.name)
    if entry is None:
        return strategy, _begun(path, table, strategy, charge, ledger)
    folder = Folder.found(path)
    if folder is None:
        raise Refused(
            f"staging {path.name}: what was drawn for {charge.name!r}, charged on {entry.time}, is not there. Name the folder in which "
            "it is; if it is lost, only --again (again=True) draws afresh, and charges afresh. Nothing was spent."
        )
    try:
        told = folder.read(STATE)
        if told["token"] != token_of(entry.charge):
            raise Refused(
                f"staging {path.name}: is the folder of another release than {charge.name!r} as charged on {entry.time}. Nothing was "
                "spent."
            )
        if told["reading"] != digest(table.reading):
            raise Refused(
                f"staging {path.name}: the release began with other rows of the files (table, null, where, id, keep_by, weight); "
                "resume it as it was asked. Nothing was spent."
            )
        check_files(table, told)
        made = _as_charged(strategy, folder, told)
        return made, Staged(charge.name, table, _targets(made), strategy.query.keep, folder)
    except BaseException:
        folder.close()
        raise


def abandon(staged: Staged, ledger: Ledger) -> None:
    """Let go of the folder of a run that failed; delete it if nothing was charged for it."""
    with suppress(TetraodonError):
        token = staged.state["token"]
        if not any(token_of(entry.charge) == token for entry in ledger.entries):
            staged.folder.remove()
    staged.folder.close()


def check_stageable(table: Table, ledger: Ledger, name: str) -> None:
    """Refuse a table, or an account, that a killed run could not go on with.

    Raises:
        Unsupported: the table has no files.
        SpecificationError: the account is in memory.
    """
    if not table.files:
        raise Unsupported(
            f"release {name!r}: staging needs a table in files: parquet, CSV, Arrow, or a table of a DuckDB file, whose bytes show "
            "whether it is the same when a run goes on. Frames, queries, views, generated columns and databases have none, and Spark "
            "stages rows itself. "
            "Write the rows to a parquet file, or leave staging out."
        )
    if ledger.name is None:
        raise SpecificationError(
            f"release {name!r}: staging needs a durable ledger; one in memory forgets the charge that a killed run would go on with."
        )


def _begun(path: Path, table: Table, strategy: RowStrategy, charge: Charge, ledger: Ledger) -> Staged:
    """A new folder that bears the charge's token."""
    _clear(path, ledger)
    folder = Folder.made(path)
    try:
        targets, before = _targets(strategy), digests_of(table)
        # Looking at every row refuses, before the charge, a table that does not fit its declaration.
        records = sum(len(batch.cells) for batch in table.rows(*strategy.domain.names))
        folder.write(
            STATE,
            {
                "token": token_of(charge),
                "ledger": ledger.entries[0].hash,
                "reading": digest(table.reading),
                "files": before,
                "laws": fingerprint([target.channel for target in targets]),
                "rows": records,
                "part": PART,
                "buckets": bucket_count(records),
            },
        )
        for at, target in enumerate(targets):
            target.channel.save(path / channel_name(at))
            (path / channel_name(at)).chmod(0o600)
    except BaseException:
        folder.remove()
        raise
    return Staged(charge.name, table, targets, strategy.query.keep, folder)


def _clear(path: Path, ledger: Ledger) -> None:
    """Delete what a run left that ended before it was charged; a folder in which something was drawn stays."""
    folder = Folder.found(path)
    if folder is None:
        return
    try:
        told = folder.read(STATE)
        if any(token_of(e.charge) == told["token"] for e in ledger.entries):
            return  # ``Folder.made`` refuses it
        if told["ledger"] != ledger.entries[0].hash or folder.has(part_name(0)):
            raise Refused(
                f"staging {path.name}: is of a release that was charged in another ledger, or in one that was put back from an older "
                "copy. Resume it with that ledger, or remove the folder. Nothing was spent."
            )
        folder.remove()
    finally:
        folder.close()


def channel_name(at: int) -> str:
    """The file of a channel as it was charged."""
    return f"channel-{at + 1}.npz"


def _targets(strategy: RowStrategy) -> tuple[Target, ...]:
    return tuple(Target(p.channel, p.names) for p in strategy.parts if p.channel is not None)


def _as_charged(strategy: RowStrategy, folder: Folder, told: Mapping[str, Any]) -> RowStrategy:
    """The strategy with the channels that the first parts were drawn from.

    A channel that is made anew may differ in its last digits, by another solver or library; then the saved one is used. One that
    was given, or read from a file, must be the same.
    """
    now = [target.channel for target in _targets(strategy)]
    if fingerprint(now) == told["laws"]:
        return strategy
    for part in strategy.parts:
        if part.declared is None or part.declared.kind == "file":
            raise Refused(
                f"staging {folder.path.name}: the release began with another channel of {', '.join(part.names)}; give that one. "
                "Nothing was spent."
            )
    saved = [Channel.load(folder.path / channel_name(at)) for at in range(len(now))]
    kept = all(
        part.epsilon is None or keeps(channel, part.secrets, part.epsilon)
        for part, channel in zip(strategy.parts, saved, strict=True)
    )
    if fingerprint(saved) != told["laws"] or not kept:
        raise damaged(folder.path / channel_name(0))
    parts = [replace(p, channel=c) for p, c in zip(strategy.parts, saved, strict=True)]
    return replace(strategy, parts=tuple(parts))


def check_unpublished(name: str, row: int, entries: Sequence[Entry]) -> None:
    """Refuse to publish staged rows of which the account holds others: two copies of a folder draw what was left each for itself.

    Args:
        row: of the ledger that holds the charge.

    Raises:
        AlreadyReleased: they are published.
    """
    if is_published(row, entries):
        raise AlreadyReleased(
            f"release {name!r}: was published from another copy of its folder while these rows were drawn. People of both would be "
            "drawn twice, so that these are not published; --resume deletes them."
        )


def check_outside(path: Path, folder: Path) -> None:
    """Refuse to keep what is being drawn inside a folder that is published.

    Raises:
        OutputError: names it.
    """
    if lies_in(path, folder):
        raise OutputError(
            f"staging {os.path.basename(os.path.realpath(path))}: lies in a folder that is published, and holds rows in the order of the table; choose a place "
            "outside of it."
        )
