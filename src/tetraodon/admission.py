"""What a ledger lets in: a caller whose words are those that it was made for, and charges that it has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .accounts import cover, declared_by, total_of, unit_of
from .entries import Charge, Entry, token_of
from .errors import BudgetError, LedgerError
from .exact import show
from .verification import called


class AlreadyReleased(LedgerError):
    """The ledger holds a charge of this name in this edition. Nothing was spent."""


def differing(entries: Sequence[Entry], asked: Mapping[str, Any]) -> list[str]:
    """What a first row that is asked for, or some of its keys, says otherwise than the ledger, in words; of the total, the one
    in force."""
    bound = {**entries[0].body, "total": str(total_of(entries))}
    words = {
        "data": "the data's name",
        "domain_hash": "the domain",
        "unit": "the unit of the budget",
        "total": f"the total {bound['unit']}",
        "delta": "delta",
        "renews": "the budget renewed",
    }
    found = []
    for key, said in words.items():
        here, there = asked.get(key), bound.get(key)
        if here == there or (key != "renews" and key not in asked):
            continue
        if key == "renews":
            here, there = (f"with {'every' if each else 'no'} edition" for each in (here, there))
        text = f"{said} is {there} in the ledger and {here} here"
        if key == "total" and entries[0].body["unit"] == asked["unit"]:
            text += _raised(entries, str(here))
        found.append(text)
    return found


def _raised(entries: Sequence[Entry], here: str) -> str:
    """Where a total comes from that is not the one asked for."""
    last = next((entry for entry in reversed(entries) if entry.kind == "raised"), None)
    if last is not None:
        return f" (raised in row {last.seq}, on {last.time}: state {show(total_of(entries))})"
    if Fraction(here) > total_of(entries):
        return " (only `tetraodon ledger raise` changes it, with a reason)"
    return ""


def match(where: str, entries: Sequence[Entry], asked: Mapping[str, Any]) -> None:
    """Refuse a ledger that is bound to something other than what is asked for."""
    differ = differing(entries, asked)
    if differ:
        raise LedgerError(
            f"{where}: {'; '.join(differ)}. Nothing was spent. Use the ledger made for this data, or declare what "
            "`tetraodon ledger show` prints."
        )


def allow(where: str, entries: tuple[Entry, ...], wanted: Sequence[Charge]) -> None:
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
    # Of several charges of one name the last one counts.
    last = {(entry.charge.name, entry.charge.edition): entry for entry in entries if entry.charge}
    unfinished = {key for key, entry in last.items() if entry.seq not in done and token_of(entry.charge)}
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
            staged = (each.name, each.edition) in unfinished
            onward = "--resume (resume=True) goes on with what was drawn, " if staged else ""
            raise AlreadyReleased(
                f"{where}: {called(each)}: {before}; nothing spent; {onward}--again (again=True) draws and charges afresh."
            )
        taken[each.name, each.edition] = "asked for twice at once"
    cover(where, entries, wanted)
