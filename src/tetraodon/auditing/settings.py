"""The audit of a settings file: every release of it, on made-up tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import PolicyError, SpecificationError, Unsupported
from ..plans import number
from ..policy import Policy
from ..requests import PricedRequest, chosen, price_all
from ..terminal import text_of
from .audited import SYMBOLS, Audit, audited

if TYPE_CHECKING:
    from ..spec import Document

MEANS = (
    "Measured, on made-up tables from the declared domain, policy and known counts: the data were not read, and nothing was spent. An "
    "audit can contradict a claim; it proves none."
)


@dataclass(frozen=True)
class Row:
    """One release: its audit, or why there is none."""

    name: str
    audit: Audit | None
    reason: str = ""


def audited_all(policy: Policy, priced: Sequence[PricedRequest], draws: int) -> list[Row]:
    """Every priced release put to the test."""
    found = []
    for each in priced:
        name = each.request.name
        try:
            found.append(Row(name, audited(each.strategy, policy, draws, name)))
        except (SpecificationError, Unsupported) as error:
            found.append(Row(name, None, str(error)))
    return found


def audited_document(document: Document, draws: int, only: Sequence[str] = ()) -> list[Row]:
    """Every release of a settings file, or those named.

    Raises:
        SpecificationError: a name that no release has.
    """
    named = {request.name for request in chosen(document.requests, only)}
    wanted = [p for p in price_all(document.policy, document.requests) if p.request.name in named]
    return audited_all(document.policy, wanted, draws)


def confirmed(policy: Policy, priced: Sequence[PricedRequest], draws: int) -> dict[str, dict[str, Any]]:
    """What a manifest says of the audits of releases that are about to be made, by name.

    Raises:
        PolicyError: a claim is contradicted. Nothing was spent.
    """
    rows = audited_all(policy, priced, draws)
    for row in rows:
        if row.audit is not None and row.audit.is_contradicted:
            raise PolicyError(
                f"release {row.name!r}: {row.audit.verdict} Nothing was spent; please report it."
            )
    return {row.name: row.audit.to_spec() for row in rows if row.audit is not None}


def audit_spec(rows: Sequence[Row]) -> dict[str, Any]:
    """The rows as JSON."""
    told = [
        {"name": row.name, "audit": None if row.audit is None else row.audit.to_spec()}
        | ({"reason": row.reason} if row.audit is None else {})
        for row in rows
    ]
    return {"releases": told, "contradicted": is_contradicted(rows), "means": MEANS}


def is_contradicted(rows: Sequence[Row]) -> bool:
    """Whether any claim is contradicted."""
    return any(row.audit is not None and row.audit.is_contradicted for row in rows)


def audit_text(rows: Sequence[Row]) -> str:
    """The rows as text."""
    lines = []
    for row in rows:
        found = row.audit
        if found is None:
            lines += [f"{row.name}: not audited: {row.reason}"]
            continue
        lines.append(f"{row.name}: {found.mechanism}, claims {found.claim.show()}")
        lines += [f"  {line}" for line in figures(found.to_spec())]
        lines.append(f"  {found.verdict}")
    return text_of([*lines, MEANS])


def figures(told: Mapping[str, Any]) -> list[str]:
    """What was tried and what it showed, in words, of what ``Audit.to_spec`` wrote."""
    symbol = SYMBOLS[told["claim"]["unit"]]
    lines = []
    if told["pairs"]:
        tables = f"{told['pairs']} pair{'s' * (told['pairs'] > 1)} of neighbouring tables"
        lines.append(
            f"at least {symbol} {number(told['at_least'])} (wrong with a chance of 1 in {1 / told['error']:,.0f}), from {told['draws']:,} draws of "
            f"each table, {tables}"
        )
        lines.append(f"shows most between {told['change']}")
    if told["exact"] is not None:
        lines.append(f"exactly {symbol} {number(told['exact'])} at most between the tables tried")
    return [*lines, *told["notes"]]
