"""The durable account of privacy loss: what was charged, for what, when, and what is left.

A ledger is one SQLite file with one table of hash-chained rows (see ``chain``): no row can be edited, removed or
moved without its neighbours showing it. A charge is decided and stored in one transaction, on disk before the call
returns and so before noise is drawn: a crash or a race can charge too much, never too little.

The account is in ε, or in ρ with a declared δ, and holds under every policy that was ever declared for the data
(``composition``): each release is priced under each of them, and the largest joint loss is what is spent.

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
    cover,
    declared_by,
    declaring,
    followed,
    policies_of,
    spent_of,
    total_of,
    unit_of,
)
from .chain import Book, File, Memory, PathText, Row, locate, seal
from .composition import InForce, in_force, loss_under
from .entries import Charge, Entry, Spec, charge_body, created_body, published_body
from .errors import BudgetError, LedgerError
from .loss import Loss, Unit
from .policy import Policy
from .verification import Verification, called, sound, verify

__all__ = ["Account", "AlreadyReleased", "Charge", "Entry", "Ledger", "Verification", "verify"]


class AlreadyReleased(LedgerError):
    """The ledger holds a charge of this name in this edition. Nothing was spent."""


class Ledger:
    """A privacy account whose loss, over all editions and under every policy in force, never exceeds its total.

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
        total: Loss,
        delta: Fraction | None = None,
    ) -> Ledger:
        """The ledger at ``path``, created if there is none, bound to this data, domain and total (above 0).

        A policy that it does not hold yet is declared: all that was released is priced under it, and it is in force from
        now on, beside the others.

        Args:
            total: in ε, or in ρ.
            delta: the δ at which ρ is read as (ε, δ); for a total in ρ only.

        Raises:
            SpecificationError: an argument of the wrong kind, a total that is not above 0, ρ without δ.
            LedgerError: the file is no ledger, cannot be written, was tampered with, or is bound to other data,
                another domain or another total; the message says which, and what to do.
            BudgetError: what was released already would exceed the total under this policy; nothing was declared.
            PolicyError: this policy holds secret what went out exactly, or a release cannot be priced under it; nothing
                was declared.
        """
        asked = created_body(data, domain_hash, policy, policy_hash, total, delta)
        store = File(locate(path), writable=True)
        store.create(asked)
        ledger = cls(store)

        new = []

        def match(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            _match(str(ledger), entries[0].body, asked)
            new.append(policy_hash not in declared_by(entries))
            return []

        ledger._append(match)
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
    ) -> Ledger:
        """A ledger that ends with this process; arguments and ``SpecificationError`` as for ``open``."""
        return cls(Memory(created_body(data, domain_hash, policy, policy_hash, total, delta)))

    @classmethod
    def read(cls, path: PathText) -> Ledger:
        """The ledger at ``path``, to look at: creates and changes nothing, refuses to charge.

        Raises:
            LedgerError: there is no such ledger, or it was tampered with (``verify`` lists how).
        """
        ledger = cls(File(locate(path), writable=False))
        sound(str(ledger), ledger._store.book())
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
        return sound(str(self), self._store.book())

    @property
    def unit(self) -> Unit:
        """What the account counts: "epsilon", or "rho"."""
        return unit_of(self.entries)

    @property
    def total(self) -> Fraction:
        """The budget, fixed at creation."""
        return total_of(self.entries)

    @property
    def delta(self) -> Fraction | None:
        """The declared δ of an account in ρ."""
        told = self.entries[0].body["delta"]
        return None if told is None else Fraction(told)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The joint loss of all charges, over all editions, under every policy in force, oldest first."""
        return accounts_of(self.entries)

    @property
    def spent(self) -> Fraction:
        """The largest joint loss of all charges over the policies in force."""
        return spent_of(self.entries)

    @property
    def remaining(self) -> Fraction:
        """``total - spent`` at one moment: what any release may still cost."""
        entries = self.entries
        return total_of(entries) - spent_of(entries)

    def remaining_within(self, cells: Mapping[str, int]) -> Fraction:
        """What is left for releases about the records that have this cell of each named attribute, which no edge changes."""
        entries = self.entries
        charges = [entry.charge for entry in entries if entry.charge]
        spent = Fraction(0)
        declared = policies_of(entries)
        by_hash = {policy.hash: policy for _, policy in declared}
        for each in in_force(declared):
            spent = max(spent, loss_under(each.policy, charges, unit_of(entries), by_hash, cells).value)
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
            BudgetError: the joint loss over all editions would exceed the total under some policy in force; nothing was
                spent.
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

        def allow(entries: tuple[Entry, ...]) -> list[dict[str, Any]]:
            _allow(str(self), entries, wanted)
            return bodies

        return self._append(allow)

    def check(self, charges: Iterable[Charge]) -> None:
        """Raise what ``charge_all`` would raise now; writes nothing. The decision itself is made when charging."""
        _allow(str(self), self.entries, list(charges))

    def after(self, charges: Sequence[Charge], policy: Policy) -> tuple[Account, ...]:
        """The accounts as they would stand if ``policy`` were declared and these were charged; writes nothing.

        Raises:
            PolicyError: something has no price under some policy in force.
        """
        return accounts_of(followed(self.entries, charges, policy))

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

    def _append(self, bodies: Callable[[tuple[Entry, ...]], Sequence[Mapping[str, Any]]]) -> tuple[int, ...]:
        """Numbers of the rows that ``bodies`` returns for the sound ledger that they follow; none if it raises."""

        def decide(book: Book) -> tuple[Row, ...]:
            entries = sound(str(self), book)
            rows = [book.rows[-1]]
            for body in bodies(entries):
                rows.append(seal(rows[-1], body))
            return tuple(rows[1:])

        return tuple(row[0] for row in self._store.extend(decide))


def _match(where: str, bound: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a ledger that is bound to something other than what is asked for."""
    words = {
        "data": "the data's name",
        "domain_hash": "the domain",
        "unit": "the unit of the budget",
        "total": f"the total {bound['unit']}",
        "delta": "delta",
    }
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


def _allow(where: str, entries: tuple[Entry, ...], wanted: Sequence[Charge]) -> None:
    """Refuse charges of an undeclared policy, of a name that is taken, or beyond what is left."""
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
    declared, unit = declared_by(entries), unit_of(entries)
    for each in wanted:
        if each.policy_hash not in declared:
            raise LedgerError(
                f"{where}: {called(each)} was priced under a policy ({each.policy_hash}) that the ledger does not hold. "
                "Nothing was spent. Open the ledger with that policy first."
            )
        if each.loss.unit == "rho" and unit == "epsilon":
            raise BudgetError(
                f"{where}: {called(each)} asks for {each.loss.show()}, but the budget is in epsilon, which Gaussian noise "
                "has none of. Nothing was spent. Open a ledger with rho and delta."
            )
        before = taken.get((each.name, each.edition))
        if before and not each.again:
            raise AlreadyReleased(
                f"{where}: {called(each)}: {before}; nothing spent; --again draws and charges afresh."
            )
        taken[each.name, each.edition] = "asked for twice at once"
    cover(where, entries, wanted)
