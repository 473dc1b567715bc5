"""The first screen, six lines: what is not protected, who is from what, at what odds, what was spent, what went out beside
the budget, and what kind of guarantee it is. Rows without a proved bound come first, in a line of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ..editions import RENEWAL
from ..exact import show
from ..zcdp import epsilon_of
from .document import Document, Microdata
from .losses import chance, least, most, power, symbol, symbols, times, up, who_changes
from .words import clean, counted, listed, percent, safe

# The end of such a line is ours; attribute names and values stand before it.
HOPS = re.compile(r"are (\d+) hops apart, so that pair costs up to \d+ epsilon\.\Z")
WORDS = {
    "certified": "an optimum with a bound that anybody can recheck; the gap is printed with its unit.",
    "measured": "what one stated attack found on one sample; it bounds no other attack.",
}


@dataclass(frozen=True)
class Line:
    """One line of the first screen: a label and sentences, in HTML; ``alert`` where it must not be missed."""

    key: str
    label: str
    text: str
    alert: bool = False


# How the manifest tells of rows that went out without a bound, in this release or in an earlier one.
UNPROVED = " without a proved bound"
SHOWN = "What one attacker was measured to learn stands with the release."
WITHHELD = "What one attacker was measured to learn comes from private rows and is not published."


def six(document: Document) -> list[Line]:
    """The lines in their order."""
    unproved = _unproved(document)
    return [
        *([Line("unproved", "No proved bound", unproved, True)] if unproved else ()),
        Line(
            "open",
            "Not protected",
            _open(document),
            not document.policy.headline.startswith("NOT protected: nothing")
            or any(entry.kept for entry in document.rows),
        ),
        Line("who", "Protected", _who(document)),
        Line("odds", "Odds", _odds(document)),
        Line("spent", "Spent", _spent(document)),
        Line("outside", "Outside the budget", _outside(document)),
        Line("guarantee", "Guarantee", _guarantee(document)),
    ]


def _unproved(document: Document) -> str:
    """Rows of which nothing is proved: those of this page, and earlier ones that the account names."""
    told = [f"<b>{safe(entry.name)}</b>" for entry in document.measured]
    lines = [text for text in document.budget.outside if text.endswith(UNPROVED)]
    own = {line for entry in document.measured for line in entry.disclosed}
    earlier = [safe(line) for line in lines if line not in own]
    parts = []
    if told:
        hidden = all(isinstance(entry, Microdata) and entry.evidence is None for entry in document.measured)
        parts.append(
            f"{listed(told, 6)}: nothing limits what another attacker, or one who knows more, learns from these rows; no amount of "
            f"the budget pays for that. {WITHHELD if hidden else SHOWN}"
        )
    if earlier:
        parts.append(f"Released before: {listed(earlier, 3)}.")
    return " ".join(parts)


def _is_unproved(document: Document) -> bool:
    """Whether nothing on the page, or of what was charged before, is proved."""
    return (
        bool(document.measured)
        and len(document.measured) == len(document.entries)
        and not document.budget.spent
    )


def _open(document: Document) -> str:
    told = _headline(document)
    if _is_unproved(document):
        told = f"By a proof, nothing on this page is protected. The policy itself leaves open: {told[:1].lower()}{told[1:]}"
    kept = list(dict.fromkeys(name for entry in document.rows for name in entry.kept))
    if kept:
        told += (
            f" Beside the replaced values every row carries <b>{safe(listed(kept, 6))}</b> unchanged: "
            f"{'quasi-identifiers' if len(kept) > 1 else 'a quasi-identifier'}, by which a person’s rows can be looked for."
        )
    return told


def _headline(document: Document) -> str:
    told = document.policy.headline.removeprefix("NOT protected: ")
    for dot in (". Its values ", ". Their values "):
        names, found, rest = told.rpartition(dot)
        if found:
            return f"<b>{safe(names)}</b>{dot}{safe(rest)}"
    return safe(told[:1].upper() + told[1:])


def _who(document: Document) -> str:
    """The lines of the policy, each in its first sentence; the whole of them stands further down."""
    lines = document.policy.protected
    also = f" Also secret: {listed(document.policy.also, 6)}." if document.policy.also else ""
    if not lines:
        return also.strip() or "Nobody: under this policy nothing is secret."
    each = f"Each of the {document.records:,} records" if document.records is not None else "Each record"
    if document.policy.max_rows > 1:
        each = f"Each person, with all of up to {document.policy.max_rows:,} records"
    told, head = [], ""
    for line in lines:
        name = max((n for n in document.policy.domain if line.startswith(f"{n}: ")), key=len, default=None)
        if name is None:
            head = head or clean(line)
            continue
        rule = (
            line.removeprefix(f"{name}: ")
            .split(f" Whether {name} is missing", 1)[0]
            .split(" (cells up to ", 1)[0]
        )
        told.append(f"<b>{safe(name)}</b> ({safe(rule.removesuffix('.').removeprefix('two values '))})")
    if not told:
        return f"{each}: {safe(head)}{also}"
    if _is_unproved(document):
        return f"Nobody, by a proof. The policy holds secret: {listed(told, 6)}."
    alone = ", one attribute at a time," if head.startswith("one attribute of a record at a time") else ","
    rest = f" Also: {safe(head)}" if head and alone == "," else ""
    return f"{each}{alone} from anyone telling one value from another: {listed(told, 6)}.{rest}{also}"


def words(document: Document) -> dict[str, str]:
    """The three kinds of statement, and what each means."""
    unit = " or ".join(symbols(document.entries)) or symbol(document.budget.unit)
    proved = (
        f"the loss {who_changes(document)} is at most the {unit} charged, by exact arithmetic on the mechanism that was "
        "run; nothing was fitted on private rows."
    )
    return {"proved": proved, **WORDS}


def _odds(document: Document) -> str:
    budget, odds = document.budget, document.policy.odds
    if not odds:
        return "None are promised, since nothing is secret."
    if _is_unproved(document):
        return "None are promised: nothing is proved of what stands on this page."
    told = _in_rho(document) if budget.unit == "rho" else _in_epsilon(document)
    if _unproved(document):
        told = f"Where a bound is proved: {told[:1].lower()}{told[1:]}"
    if budget.is_tied:
        return (
            f"{told} Several records may have to move together for that; about values that are not joined themselves "
            "no number is promised."
        )
    hops = max((int(found[1]) for line in odds if (found := HOPS.search(line))), default=1)
    if hops == 1:
        return told
    by = f"{hops:,} × ε" if budget.unit == "epsilon" else f"{hops:,}² × ρ"
    return f"{told} Values further apart are less protected: at most {hops:,} hops, so up to {by}."


def _in_epsilon(document: Document) -> str:
    budget = document.budget
    told = (
        f"Between any two tables that agree with {public(document)} and differ as little as these allow, odds change by no "
        "more than a factor of"
        if budget.is_tied
        else "Whatever else is known, nobody’s odds between two such values change by more than a factor of"
    )
    told += f" <b>{power(budget.spent)}</b> so far"
    if budget.spent != budget.total:
        told += f", {power(budget.total)} once all is spent"
    return f"{told}{_in_one(document)}."


def public(document: Document) -> str:
    """The public counts, with their names where the policy of the page states them."""
    known = [safe(each.title) for each in document.policy.known]
    return f"the public counts ({listed(known, 4)})" if known else "the public counts"


def _in_rho(document: Document) -> str:
    """(ε, δ) speaks of whatever may be looked for in the published numbers, not of odds."""
    budget = document.budget
    assert budget.delta is not None
    between = (
        f"under one of two tables that agree with {public(document)} and differ as little as these allow, as under the other"
        if budget.is_tied
        else "under one of two such values as under the other, whatever else is known"
    )
    told = (
        f"At δ = {chance(budget.delta)}, the loss so far reads as ε = <b>{up(epsilon_of(budget.spent, budget.delta))}</b>: "
        f"anything that one may look for in the published numbers is at most {times(budget.spent, budget.delta)} times as "
        f"likely {between}, plus δ."
    )
    if budget.spent != budget.total:
        told += f" Once all is spent: ε = {up(epsilon_of(budget.total, budget.delta))}."
    return f"{told} That is for this edition alone." if budget.renews else told


def _in_one(document: Document) -> str:
    """What the odds are for, where the budget renews."""
    return ", by what is published from this edition alone" if document.budget.renews else ""


def _spent(document: Document) -> str:
    budget = document.budget
    told = (
        f"{symbol(budget.unit)} <b>{most(budget.spent)}</b> of {show(budget.total)} "
        f"({percent(float(budget.spent / budget.total))}); {least(budget.remaining)} is left."
    )
    if budget.elsewhere:
        what = "this release" if len(document.entries) == 1 else f"these {len(document.entries):,} releases"
        told += f" Without {what} it would be {most(budget.elsewhere)}."
    if len(budget.accounts) > 1:
        told += f" {counted(len(budget.accounts), 'policy', 'policies')} are in force; the one that loses most counts."
    if _unproved(document):
        told += " Rows without a proved bound are in no such sum."
    if budget.renews:
        told += f" {RENEWAL}"
    for line in budget.raises:
        told += f" {safe(line if line.endswith('.') else f'{line}.')}"
    here = max(budget.spent - budget.elsewhere, Fraction(0))
    parts = "".join(
        f'<span class="{kind}" style="width:{100 * min(float(part / budget.total), 1.0):.4g}%"></span>'
        for kind, part in (("before", budget.elsewhere), ("here", here))
        if part
    )
    return f'{told}<span class="bar" aria-hidden="true">{parts}</span>'


def _outside(document: Document) -> str:
    outside = [
        safe(text.removesuffix(".")) for text in document.budget.outside if not text.endswith(UNPROVED)
    ]
    if not outside and _unproved(document):
        return "Rows without a proved bound."
    if not outside:
        return "Nothing."
    return f"Published exactly, without noise: {listed(outside, 3)}."


def _guarantee(document: Document) -> str:
    kinds = list(dict.fromkeys(entry.guarantee for entry in document.entries)) or ["proved"]
    meaning = words(document)
    return " ".join(f"<b>{kind.capitalize()}</b>: {meaning[kind]}" for kind in kinds)
