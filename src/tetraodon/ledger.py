"""The durable account of privacy loss: what was charged, for what, when, and what is left.

A ledger is one SQLite file, or two tables of a PostgreSQL database that a team shares (``shared_chain``), with hash-chained
rows (``chain``): no row can be edited, removed or moved without its neighbours showing it. A charge is decided and stored in one transaction, on disk before the call
returns and so before noise is drawn: a crash or a race can charge too much, never too little.

The account is in ε, or in ρ with a declared δ, and holds under every policy that was ever declared for the data
(``composition``): each release is priced under each of them, and the largest joint loss is what is spent. It holds over all
editions of the data together, or, where that was asked for when it was made, for each edition by itself.

What the chain cannot do: whoever may write the file may also rebuild it whole, or put back an older copy. Every
manifest carries the ledger's head, and ``verify`` finds a ledger that no longer contains one of them; without a
manifest a rolled-back file cannot be told from an honest one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from .accounts import (
    Account,
    accounts_of,
    counted,
    declared_by,
    declaring,
    editions_of,
    followed,
    of_edition,
    policies_of,
    raising,
    renews_of,
    spent_of,
    total_of,
    unit_of,
)
from .admission import AlreadyReleased, allow, match
from .chain import Book, Memory, PathText, Row, seal
from .composition import InForce, in_force, loss_under
from .entries import Charge, Entry, Spec, charge_body, created_body, published_body
from .errors import LedgerError
from .exact import Number, positive
from .loss import Loss, Unit
from .policy import Policy
from .stores import Store, stored_at
from .verification import Verification, linked, sound, verify

__all__ = ["Account", "AlreadyReleased", "Charge", "Entry", "Ledger", "Verification", "verify"]


class Ledger:
    """A privacy account whose loss, under every policy in force, never exceeds its total: over all editions, or in each of
    them where the budget renews.

    Nothing is cached and no connection outlives a call: threads, forked processes and other ``Ledger`` objects may share
    one file.

    >>> tax = {"data": "tax", "domain_hash": "d1", "policy": {"secrets": "full"}, "policy_hash": "p1"}
    >>> ledger = Ledger.in_memory(**tax, total=Loss("epsilon", Fraction(1)))
    >>> ledger.charge(Charge("losses", "2025", Loss("epsilon", Fraction(3, 4)), {"cdf": "loss"}, "ordered", "", {}, "p1"))
    2
    >>> ledger.charge(Charge("ages", "2026", Loss("epsilon", Fraction(1, 2)), {"cdf": "age"}, "ordered", "", {}, "p1"))
    Traceback (most recent call last):
    tetraodon.errors.BudgetError: ledger (in memory): 'ages' asks for epsilon 0.5; 0.25 of 1 is left. Nothing was spent.
    >>> ledger.remaining
    Fraction(1, 4)
    """

    def __init__(self, store: Store) -> None:
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
        total: Loss,
        delta: Fraction | None = None,
        renews: str | None = None,
    ) -> Ledger:
        """The ledger at ``path``, a file or a URL of PostgreSQL (docs/ledger.md), created if there is none, bound to this data,
        domain and total (above 0).

        A policy that it does not hold yet is declared: all that was released is priced under it, and it is in force from
        now on, beside the others.

        Args:
            total: in ε, or in ρ; the one in force, if it was raised.
            delta: the δ at which ρ is read as (ε, δ); for a total in ρ only.
            renews: "edition" for a budget that every edition of the data has to itself: whoever is in k of them may lose k
                times the total. Fixed when the ledger is made.

        Raises:
            SpecificationError: an argument of the wrong kind, a total that is not above 0, ρ without δ, a URL that names no ledger.
            LedgerError: the file is no ledger, cannot be written, was tampered with, or is bound to other data,
                another domain, another total, or renews otherwise; the message says which, and what to do.
            BudgetError: what was released already would exceed the total under this policy; nothing was declared.
            PolicyError: this policy holds secret what went out exactly, or a release cannot be priced under it; nothing
                was declared.
        """
        asked = created_body(data, domain_hash, policy, policy_hash, total, delta, renews)
        store = stored_at(path, writable=True)
        store.create(asked)
        ledger = cls(store)

        new = []

        def bound(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            match(str(ledger), entries, asked)
            new.append(policy_hash not in declared_by(entries))
            return []

        ledger._append(bound)
        if any(new):
            ledger._declare(asked["policy"], policy_hash)
        return ledger

    @classmethod
    def in_memory(
        cls,
        *,
        data: str,
        domain_hash: str,
        policy: Spec,
        policy_hash: str,
        total: Loss,
        delta: Fraction | None = None,
        renews: str | None = None,
    ) -> Ledger:
        """A ledger that ends with this process; arguments and ``SpecificationError`` as for ``open``."""
        return cls(Memory(created_body(data, domain_hash, policy, policy_hash, total, delta, renews)))

    @classmethod
    def read(cls, path: PathText) -> Ledger:
        """The ledger at ``path``, to look at: creates and changes nothing, refuses to charge.

        Raises:
            LedgerError: there is no such ledger, or it was tampered with (``verify`` lists how).
        """
        ledger = cls(stored_at(path, writable=False))
        sound(str(ledger), ledger._store.book())
        return ledger

    @classmethod
    def existing(cls, path: PathText) -> Ledger:
        """The ledger at ``path`` for ``raise_total``: creates nothing; every call checks the file."""
        return cls(stored_at(path, writable=True))

    @staticmethod
    def exists(path: PathText) -> bool:
        """Whether there is something at ``path``, so that ``open`` would make no ledger there; creates nothing."""
        return stored_at(path, writable=False).exists()

    def __str__(self) -> str:
        return f"ledger {self.path or self.name or '(in memory)'}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def path(self) -> Path | None:
        """The file, absolute; None in memory or in a database."""
        return self._store.path

    @property
    def name(self) -> str | None:
        """What manifests call it: the file's name, or "postgres:" and the name in the database; None in memory."""
        return self._store.name

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every row, oldest first, read and checked now. Raises ``LedgerError`` if the chain is broken."""
        return sound(str(self), self._store.book())

    @property
    def unit(self) -> Unit:
        """What the account counts: "epsilon", or "rho"."""
        return unit_of(self.entries)

    @property
    def total(self) -> Fraction:
        """The budget, fixed at creation; only ``raise_total`` changes it."""
        return total_of(self.entries)

    @property
    def renews(self) -> str | None:
        """ "edition" where every edition has the whole budget to itself; None where all editions share it."""
        return renews_of(self.entries)

    @property
    def editions(self) -> tuple[str, ...]:
        """The editions that something was charged for, oldest first."""
        return editions_of(self.entries)

    @property
    def raises(self) -> tuple[tuple[Entry, Fraction, Fraction], ...]:
        """The rows that raise the total, each with the total before and after it."""
        rows = self.entries
        raised = [at for at, entry in enumerate(rows) if entry.kind == "raised"]
        return tuple((rows[at], total_of(rows[:at]), total_of(rows[: at + 1])) for at in raised)

    @property
    def delta(self) -> Fraction | None:
        """The declared δ of an account in ρ."""
        told = self.entries[0].body["delta"]
        return None if told is None else Fraction(told)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The joint loss of all charges, over all editions, under every policy in force, oldest first: what whoever is in
        every edition may lose."""
        return accounts_of(self.entries)

    def accounts_for(self, edition: str) -> tuple[Account, ...]:
        """The accounts that releases from this edition are held against: ``accounts``, or where the budget renews those of
        the edition alone."""
        return accounts_of(counted(self.entries, edition))

    def accounts_in(self, edition: str) -> tuple[Account, ...]:
        """The joint loss of the charges of one edition."""
        return accounts_of(of_edition(self.entries, edition))

    @property
    def spent(self) -> Fraction:
        """The largest joint loss of all charges over the policies in force; of the edition that lost most, where the budget
        renews."""
        return spent_of(self.entries)

    @property
    def remaining(self) -> Fraction:
        """``total - spent`` at one moment: what any release may still cost."""
        entries = self.entries
        return total_of(entries) - spent_of(entries)

    def remaining_for(self, edition: str) -> Fraction:
        """What releases from this edition may still cost: ``remaining``, or where the budget renews what the edition left."""
        entries = self.entries
        return total_of(entries) - max(a.losses.value for a in accounts_of(counted(entries, edition)))

    def remaining_within(self, cells: Mapping[str, int], edition: str = "", reading: str = "") -> Fraction:
        """What is left for releases from this edition and choice of rows about the records that have this cell of each named
        attribute, which no edge changes. What others lose counts in full: there the same people may have other cells."""
        entries = self.entries
        charges = [entry.charge for entry in counted(entries, edition) if entry.charge]
        spent, unit = Fraction(0), unit_of(entries)
        declared = policies_of(entries)
        by_hash = {policy.hash: policy for _, policy in declared}
        for each in in_force(declared):
            spent = max(spent, loss_under(each.policy, charges, unit, by_hash, cells, edition, reading).value)
        return total_of(entries) - spent

    @property
    def declared(self) -> tuple[Entry, ...]:
        """The rows that declare policies: the first, and every later one."""
        return tuple(declared_by(self.entries).values())

    @property
    def policies(self) -> tuple[InForce, ...]:
        """Every policy in force, with its secret graph and known counts."""
        return in_force(policies_of(self.entries))

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
            for what in charge.disclosures or ((charge.query,) if charge.loss.is_zero else ())
        )

    def declare(self, policy: Policy) -> None:
        """Put one more policy in force, over the same domain; does nothing if it is in force already.

        Raises:
            BudgetError, PolicyError: as for ``open``.
        """
        self._declare(policy.to_spec(), policy.hash)

    def _declare(self, spec: Spec, policy_hash: str) -> None:
        def declare(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            return declaring(str(self), entries, spec, policy_hash)

        if declare(self.entries):  # the history is priced before the file is locked
            self._append(declare)

    def charge(self, charge: Charge) -> int:
        """Store one charge durably and return its row number; only then may noise be drawn.

        Raises:
            BudgetError: the joint loss over all editions, or where the budget renews over the charge's own, would exceed the
                total under some policy in force; nothing was spent.
            PolicyError: a policy in force holds secret what would go out exactly; nothing was spent.
            AlreadyReleased: the name is taken in this edition and ``again`` is False; nothing was spent.
            LedgerError: priced under a policy that was not declared; the chain is broken or the file cannot be written; the
                message says what was spent.
        """
        return self.charge_all([charge])[0]

    def charge_all(self, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Store all of these charges in one transaction, or none; row numbers in the same order. Raises as ``charge``.

        >>> half = Loss("epsilon", Fraction(1, 2))
        >>> tiny = Ledger.in_memory(data="t", domain_hash="d", policy={}, policy_hash="p", total=Loss("epsilon", Fraction(1)))
        >>> tiny.charge_all([Charge(name, "", half, {}, {}, "", {}, "p") for name in ("a", "b")])
        (2, 3)
        """
        wanted = list(charges)
        bodies = [charge_body(each) for each in wanted]

        def admitted(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            allow(str(self), entries, wanted)
            return bodies

        return self._append(admitted)

    def check(self, charges: Iterable[Charge]) -> None:
        """Raise what ``charge_all`` would raise now; writes nothing. The decision itself is made when charging."""
        allow(str(self), self.entries, list(charges))

    def after(self, charges: Sequence[Charge], policy: Policy) -> tuple[Account, ...]:
        """The accounts that these would be held against if ``policy`` were declared and they were charged; writes nothing.

        Raises:
            PolicyError: something has no price under some policy in force.
        """
        rows = followed(self.entries, charges, policy)
        editions = dict.fromkeys(each.edition for each in charges) if renews_of(rows) else (None,)
        return tuple(account for edition in editions for account in accounts_of(counted(rows, edition)))

    def raise_total(self, to: Number, reason: str) -> int:
        """Raise the total, in a row that every later manifest and report shows; returns the row's number.

        A promise that was made to people is weakened, also for what was released before: nothing else does that. A ledger
        that a later version prices beyond its total can be raised, and then be used again.

        Args:
            to: the new total, exact, in the ledger's unit.
            reason: one line; it is published.

        Raises:
            SpecificationError: no exact number above 0; no reason, or one of several lines.
            LedgerError: not above the total in force, or below what is spent; or as for ``charge``. Nothing was changed.

        >>> tax = {"data": "tax", "domain_hash": "d1", "policy": {}, "policy_hash": "p1"}
        >>> ledger = Ledger.in_memory(**tax, total=Loss("epsilon", Fraction(1)))
        >>> ledger.raise_total("3/2", "a second wave of the survey")
        2
        >>> ledger.total
        Fraction(3, 2)
        """
        total = positive(to, "ledger.raise.to")

        def raised(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            return [raising(str(self), entries, total, reason)]

        return self._append(raised, linked)[0]

    def published(self, seq: int, digests: Mapping[str, str]) -> int:
        """Record what came of the charge in row ``seq``; returns the new row's number.

        Args:
            digests: the SHA-256 of each file by its name, or of the values under "values".
        Raises:
            SpecificationError: no digests, or one that is not 64 lower-case hexadecimal digits.
            LedgerError: row ``seq`` is not a charge; or as for ``charge``.
        """
        body = published_body(seq, digests)

        def is_charge(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            if not any(entry.charge and entry.seq == seq for entry in entries):
                raise LedgerError(f"{self}: row {seq} is no charge; pass the number that charge() returned.")
            return [body]

        return self._append(is_charge)[0]

    def _append(
        self,
        bodies: Callable[[tuple[Entry, ...]], Sequence[Mapping[str, Any]]],
        checked: Callable[[str, Book], tuple[Entry, ...]] = sound,
    ) -> tuple[int, ...]:
        """Numbers of the rows that ``bodies`` returns for the ledger that they follow, once ``checked``; none if either raises."""

        def decide(book: Book) -> tuple[Row, ...]:
            entries = checked(str(self), book)
            rows = [book.rows[-1]]
            for body in bodies(entries):
                rows.append(seal(rows[-1], body))
            return tuple(rows[1:])

        return tuple(row[0] for row in self._store.extend(decide))
