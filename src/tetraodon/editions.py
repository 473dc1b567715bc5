"""Editions of one table in words and in manifests: whether the budget renews, what all of them lose together, raised totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .accounts import Account
from .exact import show

if TYPE_CHECKING:
    from .ledger import Ledger

RENEWAL = "The budget renews with every edition: whoever is in k editions may lose up to k times that."


def largest_of(accounts: Iterable[Account]) -> Fraction:
    """The largest loss over the policies in force."""
    return max(account.losses.value for account in accounts)


def editions_spec(ledger: Ledger, edition: str) -> dict[str, Any]:
    """What a manifest says about editions and raised totals.

    Returns:
        ``renews``; ``editions``: their ``number`` so far, the loss of ``this`` one alone and of all ``together``, which
        whoever is in each of them may lose; ``raises``, oldest first.
    """
    return {
        "renews": ledger.renews,
        "editions": {
            "number": len(ledger.editions),
            "this": show(largest_of(ledger.accounts_in(edition))),
            "together": show(largest_of(ledger.accounts)),
        },
        "raises": raises_spec(ledger),
    }


def raises_spec(ledger: Ledger) -> list[dict[str, Any]]:
    """Every raise of the total: when, from what, to what, and why."""
    return [
        {
            "row": row.seq,
            "time": row.time,
            "from": show(before),
            "to": show(after),
            "reason": row.body["reason"],
        }
        for row, before, after in ledger.raises
    ]


def raised_lines(raises: Sequence[Mapping[str, Any]]) -> list[str]:
    """The raises of ``raises_spec``, a sentence each.

    >>> raised_lines([{"row": 4, "time": "2026-03-01T09:00:00+00:00", "from": "1", "to": "2", "reason": "a second wave"}])
    ['The budget was raised on 2026-03-01 from 1 to 2: a second wave']
    """
    return [
        f"The budget was raised on {each['time'][:10]} from {each['from']} to {each['to']}: {each['reason']}"
        for each in raises
    ]


def account_lines(budget: Mapping[str, Any]) -> list[str]:
    """What a reader of a total must know beside it, from a manifest's budget."""
    told = budget["editions"]
    renewed = [RENEWAL] if budget["renews"] else []
    if budget["renews"]:
        counted = "1 edition" if told["number"] == 1 else f"{told['number']} editions"
        renewed.append(f"So far {counted}; whoever is in all of them may have lost {told['together']}.")
    return [*renewed, *raised_lines(budget["raises"])]
