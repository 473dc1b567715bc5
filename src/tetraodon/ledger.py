"""The durable account of privacy loss: what was charged, for what, when, and what is left.

A ledger is one SQLite file with one table of hash-chained rows (see ``chain``): no row can be edited, removed or
moved without its neighbours showing it. A charge is decided and stored in one transaction, on disk before the call
returns and so before noise is drawn: a crash or a race can charge too much, never too little.

What the chain cannot do: whoever may write the file may also rebuild it whole, or put back an older copy. Every
manifest carries the ledger's head, and ``verify`` finds a ledger that no longer contains one of them; without a
manifest a rolled-back file cannot be told from an honest one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from .chain import Book, File, Memory, PathText, Row, broken_links, locate, seal
from .entries import Charge, Entry, Spec, charge_body, created_body, entry_of, published_body
from .errors import BudgetError, LedgerError, PolicyError
from .exact import show

__all__ = ["AlreadyReleased", "Charge", "Entry", "Ledger", "MixedPolicies", "Verification", "verify"]


class MixedPolicies(LedgerError, PolicyError):
    """The ledger was made for another policy, and one ledger holds one policy. Nothing was spent."""


class AlreadyReleased(LedgerError):
    """The ledger holds a charge of this name in this edition. Nothing was spent."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found. ``ok`` iff there are no problems; a warning is not a problem."""

    ok: bool
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    head: str
    rows: int


class Ledger:
    """A privacy account whose charges add up exactly, over all editions, to no more than its total.

    All charges are priced under one policy, so their losses add along each of its edges: spent = Σ ε_i (basic
    composition, derived). Nothing is cached and no connection outlives a call: threads, forked processes and other
    ``Ledger`` objects may share one file.

    >>> tax = {"data": "tax", "domain_hash": "d1", "policy": {"secrets": "full"}, "policy_hash": "p1"}
    >>> ledger = Ledger.in_memory(**tax, epsilon=Fraction(1))
    >>> ledger.charge(Charge("losses", "2025", Fraction(3, 4), {"cdf": "loss"}, "ordered", "", {}, "p1"))
    2
    >>> ledger.charge(Charge("ages", "2026", Fraction(1, 2), {"cdf": "age"}, "ordered", "", {}, "p1"))
    Traceback (most recent call last):
    tetraodon.errors.BudgetError: ledger (in memory): 'ages' asks for epsilon 0.5; 0.25 of 1 is left. Nothing was spent.
    >>> ledger.remaining
    Fraction(1, 4)
    """

    def __init__(self, store: File | Memory) -> None:
        """Use ``open``, ``read`` or ``in_memory``."""
        self._store = store

    @classmethod
    def open(
        cls,
        path: PathText,
        *,
        data: str,
        domain_hash: str,
        policy: Spec,
        policy_hash: str,
        epsilon: Fraction,
    ) -> Ledger:
        """The ledger at ``path``, created if there is none, bound to this data, domain, policy and total (above 0).

        Raises:
            SpecificationError: an argument of the wrong kind, or a total that is not above 0.
            LedgerError: the file is no ledger, cannot be written, was tampered with, or is bound to other data,
                another domain or another total; the message says which, and what to do.
            MixedPolicies: all of that fits, but it was made for another policy.
        """
        asked = created_body(data, domain_hash, policy, policy_hash, epsilon)
        store = File(locate(path), writable=True)
        store.create(asked)
        ledger = cls(store)
        ledger._append([], lambda entries: _match(str(ledger), entries[0].body, asked))
        return ledger

    @classmethod
    def in_memory(
        cls, *, data: str, domain_hash: str, policy: Spec, policy_hash: str, epsilon: Fraction
    ) -> Ledger:
        """A ledger that ends with this process; arguments and ``SpecificationError`` as for ``open``."""
        return cls(Memory(created_body(data, domain_hash, policy, policy_hash, epsilon)))

    @classmethod
    def read(cls, path: PathText) -> Ledger:
        """The ledger at ``path``, to look at: creates and changes nothing, refuses to charge.

        Raises:
            LedgerError: there is no such ledger, or it was tampered with (``verify`` lists how).
        """
        ledger = cls(File(locate(path), writable=False))
        _sound(str(ledger), ledger._store.book())
        return ledger

    def __str__(self) -> str:
        return f"ledger {self.path or '(in memory)'}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def path(self) -> Path | None:
        """The file, absolute; None in memory."""
        return self._store.path

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every row, oldest first, read and checked now. Raises ``LedgerError`` if the chain is broken."""
        return _sound(str(self), self._store.book())

    @property
    def total(self) -> Fraction:
        """The budget, fixed at creation."""
        return _total(self.entries)

    @property
    def spent(self) -> Fraction:
        """The exact sum of all charges, over all editions."""
        return _spent(self.entries)

    @property
    def remaining(self) -> Fraction:
        """``total - spent`` at one moment."""
        entries = self.entries
        return _total(entries) - _spent(entries)

    @property
    def head(self) -> str:
        """The hash of the last row: what a manifest carries as ``["budget"]["head"]``."""
        return self.entries[-1].hash

    @property
    def disclosures(self) -> tuple[tuple[Entry, Spec], ...]:
        """What went out exactly so far, with its row: listed disclosures, and queries charged 0 that list none."""
        return tuple(
            (entry, what)
            for entry in self.entries
            if (charge := entry.charge)
            for what in charge.disclosures or ((charge.query,) if charge.epsilon == 0 else ())
        )

    def charge(self, charge: Charge) -> int:
        """Store one charge durably and return its row number; only then may noise be drawn.

        Raises:
            BudgetError: the sum over all editions would exceed the total; nothing was spent.
            AlreadyReleased: the name is taken in this edition and ``again`` is False; nothing was spent.
            MixedPolicies: priced under another policy than the ledger's; nothing was spent.
            LedgerError: the chain is broken or the file cannot be written; the message says what was spent.
        """
        return self.charge_all([charge])[0]

    def charge_all(self, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Store all of these charges in one transaction, or none; row numbers in the same order. Raises as ``charge``.

        >>> tiny = Ledger.in_memory(data="t", domain_hash="d", policy={}, policy_hash="p", epsilon=Fraction(1))
        >>> tiny.charge_all([Charge(name, "", Fraction(1, 2), {}, {}, "", {}, "p") for name in ("a", "b")])
        (2, 3)
        """
        wanted = list(charges)
        bodies = [charge_body(each) for each in wanted]
        return self._append(bodies, lambda entries: _allow(str(self), entries, wanted))

    def check(self, charges: Iterable[Charge]) -> None:
        """Raise what ``charge_all`` would raise now; writes nothing. The decision itself is made when charging."""
        _allow(str(self), self.entries, list(charges))

    def published(self, seq: int, digests: Mapping[str, str]) -> int:
        """Record what came of the charge in row ``seq``; returns the new row's number.

        Args:
            digests: the SHA-256 of each file by its name, or of the values under "values".
        Raises:
            SpecificationError: no digests, or one that is not 64 lower-case hexadecimal digits.
            LedgerError: row ``seq`` is not a charge; or as for ``charge``.
        """
        body = published_body(seq, digests)

        def is_charge(entries: tuple[Entry, ...]) -> None:
            if not any(entry.charge and entry.seq == seq for entry in entries):
                raise LedgerError(f"{self}: row {seq} is no charge; pass the number that charge() returned.")

        return self._append([body], is_charge)[0]

    def _append(
        self, bodies: Sequence[Mapping[str, Any]], allow: Callable[[tuple[Entry, ...]], None]
    ) -> tuple[int, ...]:
        """Row numbers of ``bodies``, once ``allow`` has seen the sound ledger that they follow."""

        def decide(book: Book) -> tuple[Row, ...]:
            allow(_sound(str(self), book))
            rows = [book.rows[-1]]
            for body in bodies:
                rows.append(seal(rows[-1], body))
            return tuple(rows[1:])

        return tuple(row[0] for row in self._store.extend(decide))


def verify(path: PathText, manifests: Iterable[PathText] = ()) -> Verification:
    """Check a whole ledger: every link of the chain, every sum, and that it holds the head of each manifest.

    Finds edited, removed and reordered rows, changed totals, spending beyond the total, and a file older than (or
    other than) the one that a manifest was written from. A charge that was never published is a warning: it is what
    a crash between charge and publication leaves, and its budget stays spent.

    Raises:
        LedgerError: there is no ledger to check: no such file, not SQLite, made by something else, or damaged.
    """
    book = File(locate(path), writable=False).book()
    entries, problems = _inspect(book)
    hashes = {row[3] for row in book.rows}
    for manifest in manifests:
        try:
            head = json.loads(Path(manifest).read_text(encoding="utf-8"))["budget"]["head"]
            if head not in hashes:
                problems.append(
                    f"manifest {manifest}: its head is not in this ledger: an older copy, or another one."
                )
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            problems.append(f"manifest {manifest}: cannot be read, or carries no budget.head.")
    done = {entry.body["charge"] for entry in entries if entry.kind == "published"}
    warnings = tuple(
        f"row {entry.seq}: {_called(charge)}, epsilon {show(charge.epsilon)}, {entry.time}: charged, never published."
        for entry in entries
        if (charge := entry.charge) and entry.seq not in done
    )
    return Verification(
        not problems, tuple(problems), warnings, book.rows[-1][3] if book.rows else "", len(book.rows)
    )


def _inspect(book: Book) -> tuple[tuple[Entry, ...], list[str]]:
    """Every row that can be read, and what is wrong with the ledger in plain sentences."""
    found = [(row[0], entry_of(row)) for row in book.rows]
    entries = tuple(entry for _, entry in found if entry)
    problems = broken_links(book)
    problems += [
        f"row {seq} cannot be read; a newer version may have written it." for seq, entry in found if not entry
    ]
    if [entry.seq for entry in entries if entry.kind == "created"] != [1]:
        return entries, [*problems, "row 1, and no other row, must say what the ledger was made for."]
    total, spent, charged = _total(entries), Fraction(0), set()
    for entry in entries:
        if entry.charge:
            charged.add(entry.seq)
            spent += entry.charge.epsilon
            if spent > total >= spent - entry.charge.epsilon:
                problems.append(f"row {entry.seq} spends beyond the total: {show(spent)} of {show(total)}.")
            if entry.charge.policy_hash != entries[0].body["policy_hash"]:
                problems.append(f"row {entry.seq} was priced under another policy than the ledger's.")
        elif entry.kind == "published" and entry.body["charge"] not in charged:
            problems.append(f"row {entry.seq} publishes a charge that does not stand before it.")
    return entries, problems


def _sound(where: str, book: Book) -> tuple[Entry, ...]:
    entries, problems = _inspect(book)
    if problems:
        raise LedgerError(
            f"{where}: {problems[0]} Nothing was spent. `tetraodon ledger verify` lists all; restore it from a copy."
        )
    return entries


def _match(where: str, bound: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a ledger that is bound to something other than what is asked for."""
    words = {"data": "the data's name", "domain_hash": "the domain", "epsilon": "the total epsilon"}
    differ = [
        f"{said} is {bound[key]} in the ledger and {asked[key]} here"
        for key, said in words.items()
        if bound[key] != asked[key]
    ]
    if differ:
        raise LedgerError(
            f"{where}: {'; '.join(differ)}. Nothing was spent. Use the ledger made for this data, or declare what "
            "`tetraodon ledger show` prints."
        )
    _same_policy(where, "this policy", bound, asked["policy_hash"])


def _same_policy(where: str, what: str, bound: Mapping[str, Any], policy_hash: str) -> None:
    if bound["policy_hash"] != policy_hash:
        raise MixedPolicies(
            f"{where}: {what} ({policy_hash}) is not the one it was made for ({bound['policy_hash']}), and "
            "losses under different policies do not add. Nothing was spent. Go back to the ledger's policy."
        )


def _allow(where: str, entries: tuple[Entry, ...], wanted: Sequence[Charge]) -> None:
    """Refuse charges of another policy, of a name that is taken, or beyond what is left."""
    done = {entry.body["charge"] for entry in entries if entry.kind == "published"}
    taken = {
        (entry.charge.name, entry.charge.edition): (
            f"already released on {entry.time}"
            if entry.seq in done
            else f"charged on {entry.time}, never published"
        )
        for entry in entries
        if entry.charge
    }
    for each in wanted:
        _same_policy(where, f"the policy of {_called(each)}", entries[0].body, each.policy_hash)
        before = taken.get((each.name, each.edition))
        if before and not each.again:
            raise AlreadyReleased(
                f"{where}: {_called(each)}: {before}; nothing spent; --again draws and charges afresh."
            )
        taken[each.name, each.edition] = "asked for twice at once"
    asked, total = sum((each.epsilon for each in wanted), Fraction(0)), _total(entries)
    left = total - _spent(entries)
    if asked > left:
        names = " and ".join(repr(each.name) for each in wanted)
        verb = "asks" if len(wanted) == 1 else "together ask"
        raise BudgetError(
            f"{where}: {names} {verb} for epsilon {show(asked)}; {show(left)} of {show(total)} is left. "
            "Nothing was spent."
        )


def _total(entries: Sequence[Entry]) -> Fraction:
    return Fraction(entries[0].body["epsilon"])


def _spent(entries: Sequence[Entry]) -> Fraction:
    return sum((entry.charge.epsilon for entry in entries if entry.charge), Fraction(0))


def _called(charge: Charge) -> str:
    return f"{charge.name!r}" + (f" (edition {charge.edition!r})" if charge.edition else "")
