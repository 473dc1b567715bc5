"""The policy in words, the account that the releases are charged to, and what the words of the page mean."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from ..editions import RENEWAL
from ..exact import show
from ..loss import Unit
from .document import Document
from .known import PublicCounts
from .losses import least, most, reading, symbol
from .summary import HOPS, words
from .words import counted, listed, safe, sentence

NOT_SECRET = (
    "Facts about groups of people (averages, trends, what is typical of a place or a trade) are not secret, even when they "
    "let somebody guess a person’s value."
)

WITHOUT_COST = "how many records have each value can be published without cost."
STATED = (
    "Everybody knows these counts, says the policy, and this table has them; a table that has not is refused."
)
UNITS: dict[Unit, str] = {
    "epsilon": "The privacy loss of {law}: odds between two {ends} change by a factor of at most e to the power of ε. "
    "Losses of several releases add up.",
    "rho": "The privacy loss of Gaussian noise (zero-concentrated): the Rényi divergence of every order α between two {ends} is "
    "at most α × ρ. Losses of several releases add up; a loss of ε counts as ρ = ε²/2.",
}
AT_DELTA = (
    "What ρ comes to: anything that one may look for in the published numbers is at most e to the power of ε times as likely "
    "under one of two {ends} as under the other, plus δ. Rounded up."
)
HOP = "Two values that the policy joins are one hop apart: nobody may tell which is true."
FAR: dict[Unit, str] = {
    "epsilon": "Values further apart are reached over several hops, and each hop costs ε.",
    "rho": "Values further apart are reached over several hops, and n hops cost n² times ρ.",
}
PUBLIC = (
    "Counts that the policy takes to be known to everybody. Two tables that agree with them may have to differ in several "
    "records at once, so answers cost more than without them; for values further apart no number is promised."
)
ACCURACY = [
    ("±", "The truth lies within ± of a published number of average error in at least 95 of 100 such releases. Every row "
          "of the files carries its own interval, which counts; “up to” is the widest of them."),
    ("Good to 10 %", "Ten times the ±: a published count of this size or more is within 10 % of the truth, as surely."),
]  # fmt: skip
MOVED = [
    ("Channel", "The law by which a value is replaced in its own row: for every true value, how likely each reported one is. Every "
                "row is drawn by itself, and rows go out in random order."),
    ("Distance", "How far the reported value lies from the true one, on average over the values that are named beside it. A "
                 "published row carries no interval: a single one may be far off."),
    ("Bits", "How much a row tells about a secret (mutual information, to the base 2). 1 bit is the answer to one question of yes or "
             "no; all the bits there are would tell the secret for certain."),
    ("Right guess", "How often the best possible guess, by somebody who knows how often each secret goes with each value, is right."),
    ("Quasi-identifier", "What leaves unchanged and may be known of a person from elsewhere, so that his rows can be looked for."),
]  # fmt: skip
# How the line of a policy that protects several attributes ends; the sum is right for ε alone.
ADDED = "a difference in several attributes costs the sum."
SEVERAL = "a difference in n attributes takes n hops, which cost up to n² times ρ."


def policy_section(document: Document) -> str:
    """The policy in words."""
    policy = document.policy
    # Public counts have a place of their own, with their numbers.
    given = [
        line for line in policy.disclosed if not any(line.startswith(f"{k.title}: ") for k in policy.known)
    ]
    if document.is_tied:
        # Records that make up for others may change in attributes that are no secret, so counts of these cost as well.
        given = [line for line in given if not line.endswith(WITHOUT_COST)]
    protected = [_several(line, document) for line in policy.protected]
    parts = [
        ("Protected", protected or ("nothing.",)),
        *([("Who is protected", [*map(_of_people, policy.people)])] if policy.people else ()),
        ("Odds", odds(document) or ["none are promised."]),
        *([("Public beforehand", [*map(_stated, policy.known), STATED])] if policy.known else ()),
        ("Given away by the policy itself", given),
        ("Released outside the budget", document.budget.outside or ("nothing.",)),
        ("Not a secret", (NOT_SECRET,)),
    ]
    told = "\n".join(
        f"<div><dt>{term}</dt><dd>{_items(lines, policy.domain)}</dd></div>" for term, lines in parts
    )
    return (
        f'<section class="policy">\n<h2>The policy in words</h2>\n<p class="lead">{safe(policy.headline)}</p>\n'
        f"<dl>\n{told}\n<div><dt>Hash</dt><dd><code>{safe(policy.hash)}</code></dd></div>\n</dl>\n</section>"
    )


def _of_people(line: str) -> str:
    """A line about people without the head that says where else it stands."""
    told = line.removeprefix("Protected: ").removeprefix("Exempt: ")
    return f"{told[:1].upper()}{told[1:]}"


def _several(line: str, document: Document) -> str:
    """A line of what is protected, right for the unit and for public counts."""
    if document.is_tied:
        return line.replace(f"; {ADDED}", ".")
    return line.replace(ADDED, SEVERAL) if document.budget.unit == "rho" else line


def odds(document: Document) -> list[str]:
    """The odds that the manifest tells, put for the unit of the account."""
    lines = [line.removeprefix("Odds: ") for line in document.policy.odds]
    budget = document.budget
    if budget.unit == "epsilon" or not lines:
        return lines
    told = []
    for line in lines:
        far = HOPS.search(line)
        if far:
            hops = int(far[1])
            line = f"{line[: far.start()]}are {hops:,} hops apart, so that pair costs up to {hops:,}² = {hops * hops:,} times ρ."
        told.append(
            line.replace("a loss of epsilon", "a loss of ρ").replace("no epsilon hides", "no budget hides")
        )
    if not document.is_tied:
        # The first line is the general one, about a factor of odds, which ρ does not bound.
        told[0] = (
            f"a loss of ρ = {show(budget.total)} keeps the Rényi divergence of every order α between two joined values at "
            "most α × ρ, whatever else is known about other people; what that comes to at δ stands at the top of this page."
        )
    return told


def _stated(known: PublicCounts) -> str:
    if not known.counts:
        return f"{known.title} ({counted(known.cells, 'count')})."
    if known.cells == 1:
        return f"{known.title}: {known.counts[0][1]:,}."
    return (
        f"{known.title}: {listed([f'{name} {count:,}' for name, count in known.counts], len(known.counts))}."
    )


def _items(lines: Iterable[str], names: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{sentence(line, names)}</li>" for line in lines) + "</ul>"


def ledger_name(document: Document) -> str:
    """The account's file, in HTML."""
    ledger = document.budget.ledger
    return "an account in memory" if ledger is None else f"<code>{safe(ledger)}</code>"


def account_section(document: Document, manifest: str) -> str:
    """What the account holds, and how anybody can check it."""
    budget = document.budget
    unit = symbol(budget.unit)
    told = f"{unit} {show(budget.total)} in all, {most(budget.spent)} spent, {least(budget.remaining)} left."
    if budget.delta is not None:
        told += f" All of it reads as {reading(budget.total, budget.delta)}, what is spent as {reading(budget.spent, budget.delta)}."
    rows = [
        (
            "Budget",
            f"{told} Losses that one and the same change can meet add up, over all releases {_over(document)}; the largest sum "
            "counts.",
        ),
        *([("Editions", _editions(document))] if budget.renews or budget.editions.number > 1 else []),
        *([("Raised", _items(budget.raises, ()))] if budget.raises else []),
        ("By secret" if len(budget.accounts) == 1 else "Policies in force", _accounts(document)),
    ]
    if budget.ledger is None:
        rows.append(("Account", "This account was kept in memory and ends with the program."))
        check = ""
    else:
        rows.append(("Account", f"<code>{safe(budget.ledger)}</code>"))
        place = shlex.quote(budget.ledger)
        if budget.ledger.startswith("postgres:"):  # a manifest names no server
            place = f'"postgresql://USER@HOST/BASE?ledger={budget.ledger.removeprefix("postgres:")}"'
        command = f"tetraodon ledger verify {place} {shlex.quote(manifest)}"
        check = (
            f"<p>The account is a chain of rows, each sealed by a hash. This command recomputes the chain and finds this "
            f"manifest’s head in it; it fails if a row was changed, removed or put back:</p>\n<pre>{safe(command)}</pre>\n"
        )
    rows.append(("Head", f"<code>{safe(budget.head)}</code>"))
    rows.append(
        ("Versions", safe(", ".join(f"{name} {version}" for name, version in document.versions)) + ".")
    )
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)
    return (
        f'<section class="account">\n<h2>The account, and how to check it</h2>\n<dl>\n{told}\n</dl>\n{check}'
        "</section>"
    )


def _over(document: Document) -> str:
    """What the total is for."""
    if not document.budget.renews:
        return "and all editions"
    return f"of edition {safe(document.edition)}" if document.edition else "of this edition"


def _editions(document: Document) -> str:
    """What whoever is in several editions may lose."""
    budget, editions = document.budget, document.budget.editions
    told = [RENEWAL] if budget.renews else []
    unit, number = symbol(budget.unit), counted(editions.number, "edition")
    told.append(
        f"So far {number}: this one loses {unit} {most(editions.this)}, and whoever is in all of them may have lost {unit} "
        f"{most(editions.together)} together."
    )
    return " ".join(told)


def _accounts(document: Document) -> str:
    """The joint loss under every policy in force, by secret."""
    budget = document.budget
    told = []
    for account in budget.accounts:
        by = [f"{most(loss)} for {_change(secret)}" for secret, loss in account.by_secret if loss]
        line = f"{symbol(budget.unit)} {listed(by, 12) or '0'}"
        if len(budget.accounts) > 1:
            own = ", the policy of this page" if account.policy == document.policy.hash else ""
            union = ", with the public counts of all policies" if account.is_union else ""
            worst = "; it loses most" if account.largest == budget.spent and budget.spent else ""
            line = f"<code>{safe(account.policy[:12])}</code>{own}{union}, since row {account.row}: {line}{worst}"
        told.append(f"<li>{line}.</li>")
    return f"<ul>{''.join(told)}</ul>"


def _change(secret: str) -> str:
    return "any change" if secret == "any" else safe(secret)


def _either(kinds: Sequence[str]) -> str:
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)


def _used(document: Document) -> list[str]:
    """The kinds of statement that the page makes."""
    found = {entry.guarantee for entry in document.entries} or {"proved"}
    evidences = [channel.evidence for entry in document.rows for channel in entry.channels]
    if any(e is not None and e.optimum is not None and e.optimum.bound is not None for e in evidences):
        found.add("certified")
    if any(e is not None and any(w.startswith("Measured") for w in e.words) for e in evidences):
        found.add("measured")
    if any(w.startswith("Certified") for entry in document.microdata for w in entry.words or ()):
        found.add("certified")
    return [kind for kind in ("proved", "certified", "measured") if kind in found]


def glossary(document: Document) -> str:
    """What the words of the page mean."""
    budget = document.budget
    units = {budget.unit, *(entry.loss.unit for entry in document.entries)}
    used = _used(document)
    rows = [
        (kind.capitalize(), meaning[:1].upper() + meaning[1:]) for kind, meaning in words(document).items()
    ]
    if document.answers or not (document.rows or document.microdata):
        rows += ACCURACY
    if document.rows:
        rows += MOVED
    ends = (
        "tables that agree with the public counts and differ as little as these allow"
        if budget.is_tied
        else "values that the policy joins"
    )
    law = "Laplace noise" if document.answers or not document.rows else ""
    law += (" and of " if law else "") + "channels" if document.rows else ""
    rows += [(symbol(unit), UNITS[unit].format(ends=ends, law=law)) for unit in UNITS if unit in units]
    if budget.delta is not None:
        rows.append(("(ε, δ)", AT_DELTA.format(ends=ends)))
    if budget.is_tied:
        rows += [("Edge, hop", HOP), ("Public counts", PUBLIC)]
    else:
        rows.append(("Edge, hop", f"{HOP} {FAR[budget.unit]}"))
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)
    return (
        f'<section class="words">\n<h2>Words</h2>\n<p class="lead">Everything on this page is {_either(used)}; one word '
        f"never stands for another.</p>\n<dl>\n{told}\n</dl>\n</section>"
    )
