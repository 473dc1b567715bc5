"""Whether a ledger is sound: its chain, its rows, and that its charges fit its total under every policy in force."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from .accounts import beyond, healed, understated, unit_of
from .chain import Book, PathText, broken_links
from .entries import Charge, Entry, entry_of
from .errors import LedgerError
from .published import differing
from .staged import told_by
from .stores import stored_at

_SKEW = timedelta(minutes=5)  # by which the clocks of a team may differ


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found. ``ok`` iff there are no problems; a warning is not a problem."""

    ok: bool
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    head: str
    rows: int


def verify(path: PathText, manifests: Iterable[PathText] = ()) -> Verification:
    """Check a whole ledger: every link of the chain, every sum, and that it holds the head of each manifest.

    Finds edited, removed and reordered rows, changed totals, charges that state less than their rows cost, spending
    beyond the total under any policy in force, and a file older than (or other than) the one that a manifest was written
    from. A charge that was never published is a warning: it is what a crash between charge and publication leaves, and
    its budget stays spent. So are files beside a manifest that are gone, or are not those that the ledger holds as
    published, spending beyond a total that was raised since, rows dated before those that they follow, and a ledger that
    everybody may read or write.

    Raises:
        LedgerError: there is no ledger to check: no such file or tables, made by something else, or damaged.
    """
    store = stored_at(path, writable=False)
    book = store.book()
    entries, problems = inspect(book)
    if not problems:
        problems += understated(entries)
    hashes, files = {row[3] for row in book.rows}, list[str]()
    for manifest in manifests:
        try:
            told = told_by(Path(manifest))
            if told["budget"]["head"] in hashes:
                files += differing(Path(manifest), told, entries)
            else:
                problems.append(
                    f"manifest {manifest}: its head is not in this ledger: an older copy, or another one."
                )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            problems.append(f"manifest {manifest}: cannot be read, or carries no budget.head.")
    done = {entry.body["charge"] for entry in entries if entry.kind == "published"}
    warnings = tuple(
        f"row {entry.seq}: {called(charge)}, {charge.loss.show()}, {entry.time}: charged, never published."
        for entry in entries
        if (charge := entry.charge) and entry.seq not in done
    )
    past = () if problems else tuple(healed(entries))
    return Verification(
        not problems,
        tuple(problems),
        (*past, *_out_of_order(entries), *warnings, *files, *store.exposed()),
        book.rows[-1][3] if book.rows else "",
        len(book.rows),
    )


def _out_of_order(entries: tuple[Entry, ...]) -> list[str]:
    """Rows dated well before one that stands before them. Their order is that of the chain, whatever the clocks said."""
    found, latest = [], None
    for entry in entries:
        try:
            here = datetime.fromisoformat(entry.time).astimezone(UTC)
        except (ValueError, OverflowError):
            found.append(f"row {entry.seq}: its time cannot be read.")
            continue
        if latest is not None and here < latest - _SKEW:
            found.append(
                f"row {entry.seq}: dated {entry.time}, before a row that it follows: a clock was set back."
            )
        latest = here if latest is None else max(latest, here)
    return found


def inspect(book: Book) -> tuple[tuple[Entry, ...], list[str]]:
    """Every row that can be read, and what is wrong with the ledger in plain sentences."""
    entries, problems = readable(book)
    return entries, problems or beyond(entries)


def readable(book: Book) -> tuple[tuple[Entry, ...], list[str]]:
    """The same but for what is spent: whether the rows form a chain, can be read, and follow from each other."""
    found = [(row[0], entry_of(row)) for row in book.rows]
    entries = tuple(entry for _, entry in found if entry)
    problems = broken_links(book)
    problems += [
        f"row {seq} cannot be read; a newer version may have written it." for seq, entry in found if not entry
    ]
    if [entry.seq for entry in entries if entry.kind == "created"] != [1]:
        return entries, [*problems, "row 1, and no other row, must say what the ledger was made for."]
    charged, declared, unit = set[int](), set[str](), unit_of(entries)
    total = Fraction(entries[0].body["total"])
    for entry in entries:
        if entry.kind in ("created", "policy"):
            declared.add(entry.body["policy_hash"])
        elif entry.charge:
            charged.add(entry.seq)
            if entry.charge.loss.unit == "rho" and unit == "epsilon":
                problems.append(f"row {entry.seq} charges rho to an account in epsilon.")
            if entry.charge.policy_hash not in declared:
                problems.append(f"row {entry.seq} was priced under a policy that no row before it declares.")
        elif entry.kind == "raised":
            if entry.body["unit"] != unit or Fraction(entry.body["total"]) <= total:
                problems.append(f"row {entry.seq} sets a total that is not above the one before it.")
            total = Fraction(entry.body["total"])
        elif entry.body["charge"] not in charged:
            problems.append(f"row {entry.seq} publishes a charge that does not stand before it.")
    return entries, problems


def sound(where: str, book: Book) -> tuple[Entry, ...]:
    """The rows of a ledger that nothing is wrong with.

    Raises:
        LedgerError: with the first thing that is.
    """
    entries = linked(where, book)
    for problem in beyond(entries):
        raise LedgerError(
            f"{where}: {problem} Nothing was spent. `tetraodon ledger verify` lists all; restore it from a copy. If it is the "
            "file that was written, and this version prices what was released higher than the one before, `tetraodon ledger "
            "raise` records a larger total, with the reason."
        )
    return entries


def linked(where: str, book: Book) -> tuple[Entry, ...]:
    """The same of a ledger that may spend beyond its total: what a raise of the total needs.

    Raises:
        LedgerError: with the first thing that is wrong.
    """
    entries, problems = readable(book)
    if problems:
        raise LedgerError(
            f"{where}: {problems[0]} Nothing was spent. `tetraodon ledger verify` lists all; restore it from a copy."
        )
    return entries


def called(charge: Charge) -> str:
    """A charge in words."""
    return f"{charge.name!r}" + (f" (edition {charge.edition!r})" if charge.edition else "")
