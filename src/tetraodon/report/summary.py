"""The first screen, six lines: what is not protected, who is from what, at what odds, what was spent, what went out beside
the budget, and what kind of guarantee it is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from ..exact import show
from ..release import number
from .reading import Document
from .words import clean, counted, listed, percent, safe

# The end of such a line is ours; attribute names and values stand before it.
HOPS = re.compile(r"are (\d+) hops apart, so that pair costs up to \d+ epsilon\.\Z")
WORDS = {
    "proved": "the loss along every edge of the policy is at most the ε charged, by exact arithmetic on the mechanism "
    "that was run; nothing was fitted on private rows.",
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


def six(document: Document) -> list[Line]:
    """The lines in their order."""
    return [
        Line(
            "open",
            "Not protected",
            _open(document),
            not document.policy.headline.startswith("NOT protected: nothing"),
        ),
        Line("who", "Protected", _who(document)),
        Line("odds", "Odds", _odds(document)),
        Line("spent", "Spent", _spent(document)),
        Line("outside", "Outside the budget", _outside(document)),
        Line("guarantee", "Guarantee", _guarantee(document)),
    ]


def _open(document: Document) -> str:
    told = document.policy.headline.removeprefix("NOT protected: ")
    for dot in (". Its values ", ". Their values "):
        names, found, rest = told.rpartition(dot)
        if found:
            return f"<b>{safe(names)}</b>{dot}{safe(rest)}"
    return safe(told[:1].upper() + told[1:])


def _who(document: Document) -> str:
    """The lines of the policy, each in its first sentence; the whole of them stands further down."""
    lines = document.policy.protected
    if not lines:
        return "Nobody: under this policy nothing is secret."
    each = f"Each of the {document.records:,} records" if document.records is not None else "Each record"
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
        return f"{each}: {safe(head)}"
    alone = ", one attribute at a time," if head.startswith("one attribute of a record at a time") else ","
    rest = f" Also: {safe(head)}" if head and alone == "," else ""
    return f"{each}{alone} from anyone telling one value from another: {listed(told, 6)}.{rest}"


def _odds(document: Document) -> str:
    budget, odds = document.budget, document.policy.odds
    if not odds:
        return "None are promised, since nothing is secret."
    told = (
        f"Whatever else is known, nobody’s odds between two such values change by more than a factor of "
        f"<b>{_power(budget.spent)}</b> so far"
    )
    if budget.spent != budget.total:
        told += f", {_power(budget.total)} once all is spent"
    hops = max((int(found[1]) for line in odds if (found := HOPS.search(line))), default=1)
    far = (
        f" Values further apart are less protected: at most {hops:,} hops, so up to {hops:,} × ε."
        if hops > 1
        else ""
    )
    return f"{told}.{far}"


def _power(epsilon: Fraction) -> str:
    """e^ε with its value.

    >>> _power(Fraction(1)), _power(Fraction(50))
    ('2.72 (e<sup>1</sup>)', '10<sup>22</sup> (e<sup>50</sup>)')
    """
    value = float(epsilon)
    told = number(math.exp(value)) if value <= 20 else f"10<sup>{value / math.log(10):.0f}</sup>"
    return f"{told} (e<sup>{show(epsilon)}</sup>)"


def _spent(document: Document) -> str:
    budget = document.budget
    here = sum((entry.epsilon for entry in document.entries), Fraction(0))
    before = max(budget.spent - here, Fraction(0))
    told = (
        f"ε <b>{show(budget.spent)}</b> of {show(budget.total)} ({percent(float(budget.spent / budget.total))}); "
        f"{show(budget.remaining)} is left."
    )
    if before:
        told += f" {counted(len(document.entries), 'release')} here: {show(here)}; elsewhere: {show(before)}."
    parts = "".join(
        f'<span class="{kind}" style="width:{100 * min(float(part / budget.total), 1.0):.4g}%"></span>'
        for kind, part in (("before", before), ("here", min(here, budget.spent)))
        if part
    )
    return f'{told}<span class="bar" aria-hidden="true">{parts}</span>'


def _outside(document: Document) -> str:
    outside = [safe(text.removesuffix(".")) for text in document.budget.outside]
    if not outside:
        return "Nothing."
    return f"Published exactly, without noise: {listed(outside, 3)}."


def _guarantee(document: Document) -> str:
    kinds = list(dict.fromkeys(entry.guarantee for entry in document.entries)) or ["proved"]
    return " ".join(f"<b>{kind.capitalize()}</b>: {WORDS[kind]}" for kind in kinds)
