"""The account that a ledger's rows add up to: the joint loss under every policy in force, and what it allows.

Rows are only ever added, and a policy never leaves force, so losses only rise. A budget that renews with every edition is an
account for each edition, held against the same total.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from .chain import canonical
from .charges import is_repeated, rows_of, understated_by
from .composition import Composed, in_force, loss_under, plain_losses
from .entries import Charge, Entry, Spec, policy_body, raised_body
from .errors import BudgetError, LedgerError, PolicyError, SpecificationError
from .exact import show
from .loss import Loss, Unit
from .policy import Policy


@dataclass(frozen=True, slots=True)
class Account:
    """What all charges lose together under one policy in force.

    Attributes:
        policy_hash: of the policy.
        row: the ledger row that brought it.
        is_union: whether it joins one declared policy's secrets with the known counts of others.
        losses: the joint loss, by secret.
    """

    policy_hash: str
    row: int
    is_union: bool
    losses: Composed

    @property
    def title(self) -> str:
        return f"policy {self.policy_hash[:12]}" + (" with all known counts" if self.is_union else "")


def followed(
    entries: tuple[Entry, ...], wanted: Sequence[Charge], policy: Policy | None = None
) -> tuple[Entry, ...]:
    """The rows as they would stand with a policy declared and some charges made."""
    bodies: list[tuple[str, dict[str, Any], Charge | None]] = []
    if policy is not None and policy.hash not in declared_by(entries):
        bodies.append(("policy", policy_body(policy.to_spec(), policy.hash), None))
    bodies += [("charge", {}, each) for each in wanted]
    last = entries[-1].seq
    return (
        *entries,
        *(Entry(last + i, kind, "", "", body, each) for i, (kind, body, each) in enumerate(bodies, 1)),
    )


def cover(where: str, entries: tuple[Entry, ...], wanted: Sequence[Charge]) -> None:
    """Refuse charges that the budget does not cover under some policy in force."""
    total, after = total_of(entries), followed(entries, wanted)
    for edition in dict.fromkeys(each.edition for each in wanted) if renews_of(entries) else (None,):
        own = [each for each in wanted if edition in (None, each.edition)]
        try:
            accounts = accounts_of(counted(after, edition))
        except (PolicyError, LedgerError) as error:
            raise type(error)(f"{where}: {error} Nothing was spent.") from None
        worst = max(accounts, key=lambda each: each.losses.value)
        if worst.losses.value <= total:
            continue
        held = accounts_of(counted(entries, edition))
        before = next(each for each in held if each.policy_hash == worst.policy_hash).losses
        secret = worst.losses.secret
        had = before.by_secret.get(secret, before.by_secret.get("any", Fraction(0)))
        names = " and ".join(repr(each.name) for each in own)
        verb = "asks" if len(own) == 1 else "together ask"
        which = f" under {worst.title}" if len(accounts) > 1 else ""
        there = "" if edition is None else f" in edition {edition!r}"
        raise BudgetError(
            f"{where}: {names} {verb} for {unit_of(entries)} {show(worst.losses.value - had)}{_along(worst)}{which}; "
            f"{show(total - had)} of {show(total)} is left{there}. Nothing was spent."
        )


def _along(account: Account) -> str:
    """Which secret binds, where there are several."""
    losses = account.losses
    return f" for changes of {losses.secret}" if len(losses.by_secret) > 1 else ""


def total_of(entries: Sequence[Entry]) -> Fraction:
    """The budget, in the account's unit: as it was raised last, or else as it was made."""
    return Fraction(next(e.body["total"] for e in reversed(entries) if e.kind in ("raised", "created")))


def renews_of(entries: Sequence[Entry]) -> str | None:
    """ "edition" where every edition has the whole budget to itself, None where they share it."""
    found: str | None = entries[0].body.get("renews")
    return found


def editions_of(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The editions that something was charged for, oldest first."""
    return tuple(dict.fromkeys(entry.charge.edition for entry in entries if entry.charge))


def counted(entries: tuple[Entry, ...], edition: str | None) -> tuple[Entry, ...]:
    """The rows that a release from one edition shares its budget with: all, unless the budget renews with every edition."""
    if edition is None or renews_of(entries) is None:
        return entries
    return of_edition(entries, edition)


def of_edition(entries: tuple[Entry, ...], edition: str) -> tuple[Entry, ...]:
    """The rows without charges of other editions. Policies stay in force for all of them."""
    return tuple(e for e in entries if e.charge is None or e.charge.edition == edition)


def unit_of(entries: Sequence[Entry]) -> Unit:
    """What the account counts."""
    unit: Unit = entries[0].body["unit"]
    return unit


def spent_of(entries: tuple[Entry, ...]) -> Fraction:
    """The largest joint loss over the policies in force; of the edition that lost most, where the budget renews."""
    return worst_of(entries).losses.value


def worst_of(entries: tuple[Entry, ...]) -> Account:
    """The account that is nearest to the total."""
    editions = editions_of(entries) if renews_of(entries) else ()
    every = [a for edition in editions or (None,) for a in accounts_of(counted(entries, edition))]
    return max(every, key=lambda each: each.losses.value)


def declared_by(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The rows that declare policies, by the policies' hashes."""
    return {entry.body["policy_hash"]: entry for entry in entries if entry.kind in ("created", "policy")}


def policies_of(entries: Sequence[Entry]) -> list[tuple[int, Policy]]:
    """The declared policies themselves, with the rows that declare them.

    Raises:
        LedgerError: one cannot be read, or speaks of another domain, or of other ids and weights, than the first.
    """
    found = [(entry.seq, _policy(_Row(name, entry))) for name, entry in declared_by(entries).items()]
    for row, policy in found:
        if policy.domain != found[0][1].domain:
            raise LedgerError(f"row {row} declares a policy over another domain than the ledger's.")
        if policy.people != found[0][1].people:
            # Charges state what so many rows of a person cost; of other numbers of rows they say nothing.
            raise LedgerError(f"row {row} declares a policy for other ids or weights than the ledger's.")
    return found


@dataclass(frozen=True)
class _Row:
    """A row that declares a policy, under the policy's hash."""

    policy_hash: str
    entry: Entry = field(compare=False)


@lru_cache(maxsize=64)
def _policy(row: _Row) -> Policy:
    try:
        # Through the ledger's own text: a row that is only considered still holds tuples where a stored one holds lists.
        found = Policy.from_spec(json.loads(canonical("policy", row.entry.body["policy"])))
    except (SpecificationError, LookupError, TypeError, ValueError):
        found = None
    if found is None or found.hash != row.policy_hash:
        raise LedgerError(
            f"row {row.entry.seq} declares a policy that cannot be read; a newer version may have written it."
        )
    return found


def accounts_of(entries: tuple[Entry, ...]) -> tuple[Account, ...]:
    """The joint loss of these rows under every policy in force, summed over editions.

    Under the one policy of a plain ledger that is read off its rows: every charge states its loss there.
    """
    declared, unit = declared_by(entries), unit_of(entries)
    charges = [entry.charge for entry in entries if entry.charge]
    [first, *more] = declared.values()
    apart = _has_several_rows(first) or (_has_known(first) and any(map(is_repeated, charges)))
    if not more and not (apart and len(editions_of(entries)) > 1):
        stated = plain_losses(charges, unit)
        if stated is not None:
            return (Account(first.body["policy_hash"], first.seq, False, Composed(stated, "")),)
    policies = policies_of(entries)
    by_hash = {policy.hash: policy for _, policy in policies}
    return tuple(
        Account(each.policy.hash, each.row, each.is_union, loss_under(each.policy, charges, unit, by_hash))
        for each in in_force(policies)
    )


def _has_known(declared: Entry) -> bool:
    """Whether counts are known under a policy."""
    spec = declared.body["policy"]
    return not isinstance(spec, Mapping) or bool(spec.get("constraints"))


def _has_several_rows(declared: Entry) -> bool:
    """Whether a person may have several rows, which in different editions may change in different attributes."""
    spec = declared.body["policy"]
    people = spec.get("people") if isinstance(spec, Mapping) else None
    return isinstance(people, Mapping) and people.get("max_rows") != 1


def check_choice(where: str, entries: tuple[Entry, ...], policy: Policy, edition: str, rows: str) -> None:
    """Refuse a table of chosen rows beside known counts of another choice, before its policy is declared.

    Args:
        rows: the table's choice, as charges state it.

    Raises:
        PolicyError: the policy has known counts, and something was released from another choice; or rows are chosen, nothing was
            released from them yet, and another policy in force has known counts, which may be those of other rows.
    """
    seen = {rows_of(entry.charge) for entry in entries if entry.charge and entry.charge.edition == edition}
    others = [each for _, each in policies_of(entries) if each.known and each.hash != policy.hash]
    if (policy.known and seen - {rows}) or (rows and rows not in seen and others):
        raise PolicyError(
            f"{where}: known counts of a table say nothing of other choices of its rows (where, sql), and this account has both; "
            "keep a ledger for each choice. Nothing was spent or declared."
        )


def declaring(where: str, entries: tuple[Entry, ...], spec: Spec, policy_hash: str) -> list[dict[str, Any]]:
    """The row that declares a policy, if it is new and the history fits into the budget under it."""
    if policy_hash in declared_by(entries):
        return []
    body = policy_body(spec, policy_hash)
    total = total_of(entries)
    try:
        worst = worst_of((*entries, Entry(entries[-1].seq + 1, "policy", "", "", body)))
    except (PolicyError, LedgerError) as error:
        raise type(error)(f"{where}: {error} Nothing was spent or declared.") from None
    if worst.losses.value > total:
        raise BudgetError(
            f"{where}: under {worst.title} what was released already loses {unit_of(entries)} {show(worst.losses.value)}"
            f"{_along(worst)}, of {show(total)} in all. Nothing was spent or declared. Keep to a policy that "
            "`tetraodon ledger show` lists, or start a ledger with a larger total."
        )
    return [body]


def beyond(entries: tuple[Entry, ...]) -> list[str]:
    """Where a sound chain spends beyond its total under a policy in force."""
    return _beyond(entries, total_of(entries))


def healed(entries: tuple[Entry, ...]) -> list[str]:
    """Where a sound chain spent beyond the total of that time, which was raised since."""
    raised = [at for at, entry in enumerate(entries) if entry.kind == "raised"]
    return [
        f"{each} The total was raised in row {entries[at].seq}."
        for at in raised
        for each in _beyond(entries[:at], total_of(entries[:at]))
    ]


def _beyond(entries: tuple[Entry, ...], total: Fraction) -> list[str]:
    try:
        if spent_of(entries) <= total:
            return []
        # Neither charges nor policies ever leave, so losses only rise: find the first row that is too much.
        low, high = 1, len(entries)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if spent_of(entries[:middle]) > total else (middle + 1, high)
        return [
            f"row {entries[low - 1].seq} spends beyond the total: {show(spent_of(entries[:low]))} of {show(total)}."
        ]
    except (PolicyError, LedgerError, SpecificationError) as error:
        return [f"it cannot be priced: {error}"]


def raising(where: str, entries: tuple[Entry, ...], to: Fraction, reason: str) -> dict[str, Any]:
    """The row that raises the total.

    Raises:
        LedgerError: not above the total, or below what is spent.
        SpecificationError: no reason, or one of several lines.
    """
    total, unit = total_of(entries), unit_of(entries)
    body = raised_body(Loss(unit, to), reason)
    if to <= total:
        raise LedgerError(
            f"{where}: the total is {unit} {show(total)}; it can only be raised, not set to {show(to)}. Nothing was changed."
        )
    spent = spent_of(entries)
    if to < spent:
        raise LedgerError(
            f"{where}: {unit} {show(spent)} is spent already, more than {show(to)}. Nothing was changed. Raise it further."
        )
    return body


def understated(entries: tuple[Entry, ...]) -> list[str]:
    """Charges whose own rows cost more than they state, priced anew under the policies that they were made for."""
    found = []
    charges = [
        (entry.seq, entry.charge) for entry in entries if entry.charge and "terms" in entry.charge.cost
    ]
    try:
        own = {policy.hash: policy for _, policy in policies_of(entries)} if charges else {}
        for seq, charge in charges:
            more = understated_by(charge, own[charge.policy_hash])
            if more is not None:
                secret, loss = more
                along = "" if secret == "any" else f" for changes of {secret}"
                found.append(
                    f"row {seq} states {charge.loss.show()} in all, but its rows lose {show(loss)}{along}."
                )
    except (PolicyError, LedgerError, SpecificationError) as error:
        found.append(f"it cannot be priced anew: {error}")
    return found
