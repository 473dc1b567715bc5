"""The part of the page that tells of one release of microdata: its groups, what was exchanged, and what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..plans import number
from .account import ledger_name
from .document import Document
from .microdata_charts import areas, bands, is_place
from .microdata_curve import leaking_groups
from .microdata_document import Microdata, MicrodataEvidence
from .microdata_moved import exchange_figure
from .microdata_tables import attackers_table, bits, bits_bar, groups_table, is_wide, risk_table
from .moved import in_kinds
from .svg import drawn
from .words import clean, counted, listed, safe, sentence

NO_BOUND = (
    "Groups and exchange were computed from these very rows, so what comes out depends on all of them. <b>Measured</b> means: "
    "found on these rows alone. It bounds no other attacker and no other knowledge."
)
HIDDEN = (
    "How much the rows give away, and how far they lie from the truth, was computed from private rows. It tells about them, so it "
    "is not published."
)
BITS = re.compile(r"(?:\d[\d.,]*|under 0\.001) bits?")


def asked_microdata(entry: Microdata) -> str:
    """A release of microdata in words."""
    told = f"Every record as a row, {listed([g.column for g in entry.groups], 6)} generalised"
    told += f", {counted(len(entry.exchanged), 'column')} exchanged within groups"
    if entry.quasi_identifiers:
        told += f"; {listed(entry.quasi_identifiers, 6)} in classes"
    return clean(f"{told}.")


def distance_microdata(entry: Microdata) -> tuple[str, str]:
    """How far rows lie from the truth, and in which distance; for the table of releases."""
    if entry.evidence is None:
        return "not published", ""
    return f'<span class="far">about {number(entry.evidence.realised)} away</span>', safe(
        f"{entry.limits.metric}, on average in this draw"
    )


def microdata_article(i: int, entry: Microdata, document: Document) -> str:
    """One release of microdata."""
    evidence, what = entry.evidence, listed([g.column for g in entry.groups], 6)
    words = f'<p class="lead hidden">{HIDDEN}</p>\n' if evidence is None else in_kinds(evidence.words, BITS)
    bar = "" if evidence is None else bits_bar(evidence.figures, what)
    tables = "\n".join(groups_table(c, entry, is_place(c, document.policy.domain)) for c in entry.groups)
    facts = f"<div>\n<h4>Evidence</h4>\n<dl>\n{_facts(entry, document)}\n</dl>\n</div>"
    parts = [
        f'<article id="release-{i}">\n<div class="top">\n<h3>{safe(entry.name)}</h3>\n'
        f'<p class="asked">{counted(entry.rows, "row")} in random order. {safe(asked_microdata(entry))}</p>\n'
        f'<p class="alert"><b>No proved bound.</b> {NO_BOUND}</p>\n</div>\n{words}{bar}',
        _figures(f"m{i}", entry, document.policy.domain, what),
        f'<div class="evidence micro{" single" if is_wide(entry) else ""}">\n{facts}\n<div>{tables}</div>\n</div>',
    ]
    if evidence is not None:
        parts.append(exchange_figure(evidence.exchange) if evidence.exchange.columns else "")
        parts.append(_measured(evidence, what, entry.is_typical))
    return "\n".join(part for part in [*parts, "</article>"] if part)


def _figures(prefix: str, entry: Microdata, domain: Mapping[str, Mapping[str, Any]], what: str) -> str:
    """Groups of every private column, and the curve."""
    evidence = entry.evidence
    figures = [f for j in range(len(entry.groups)) if (f := _groups(entry, j, domain))]
    curve = None if evidence is None else leaking_groups(evidence, entry.limits, what)
    if curve is not None:
        chart, label, notes = curve
        said = "".join(f" <span>{safe(note)}</span>" for note in notes)
        figures.insert(
            1,
            f'<figure class="curve">{drawn(chart, label, f"{prefix}-c")}<figcaption><b>Leakage against distance</b>; the dot is this '
            f"release.{said}</figcaption></figure>",
        )
    first, more = figures[:2], figures[2:]
    if not first:
        return ""
    rest = f'\n<div class="figures even">\n{"".join(more)}\n</div>' if more else ""
    return f'<div class="figures">\n{"".join(first)}\n</div>{rest}'


def _groups(entry: Microdata, at: int, domain: Mapping[str, Mapping[str, Any]]) -> str:
    column = entry.groups[at]
    histogram = None if entry.evidence is None else entry.evidence.histograms[at]
    made = areas(column, domain, histogram)
    if made is None:
        if histogram is None:
            return ""
        made = bands(histogram, column)
    told = "".join(f" <span>{safe(note)}</span>" for note in made.notes)
    name = safe(column.column)
    said = (
        f"<b>{name}</b>: its groups on the histogram of the private rows."
        if histogram is not None
        else f"<b>{name}</b>: its groups, as declared cells; where people are is not published."
    )
    return f'<figure class="data">{made.svg}<figcaption>{said}{told}</figcaption></figure>'


def _measured(evidence: MicrodataEvidence, what: str, is_typical: bool) -> str:
    """Attackers and risk."""
    attackers = "\n".join(attackers_table(found) for found in evidence.attackers)
    risk = risk_table(evidence.risk, what, is_typical) if evidence.risk else ""
    parts = "\n".join(f"<div>{part}</div>" for part in (attackers, risk) if part)
    return f'<div class="evidence micro">\n{parts}\n</div>' if parts else ""


def _facts(entry: Microdata, document: Document) -> str:
    limits, evidence = entry.limits, entry.evidence
    search = (
        "groups and exchange of least leakage, by exact search"
        if limits.method == "optimal"
        else "alternating steps, which need not end at the least leakage"
    )
    rows = [
        (
            "Cost",
            f"Nothing is charged, since nothing is proved: <b>{entry.guarantee}</b>; row {entry.ledger_row} of "
            f"{ledger_name(document)}.",
        ),
        ("Method", f"{search[:1].upper()}{search[1:]}."),
        ("Every group", safe(_needs(entry))),
        ("Exchanged", safe(f"{listed(entry.exchanged, 12)}: {_source(entry)}.")),
        ("Distance asked", safe(f"At most {limits.distortion} ({limits.metric}) on average over {'the rows of every group' if limits.is_each else 'all rows'}.")),
    ]  # fmt: skip
    if evidence is not None:
        told = evidence.figures
        rows.append(
            (
                "Distance kept",
                safe(f"{number(told.distortion)} expected; {number(evidence.realised)} in this draw."),
            )
        )
        if evidence.history:
            rows.append(("Steps", safe(f"{counted(len(evidence.history), 'step')}: {bits(evidence.history[0][1])} bits after the first, {bits(evidence.history[-1][1])} after the last.")))  # fmt: skip
    if entry.quasi_identifiers:
        size = "" if limits.class_size is None else f", at least {limits.class_size:,} rows in each"
        rows.append(("Classes", safe(f"Of {listed(entry.quasi_identifiers, 6)}{size}.")))
    leaves = "".join(f"<li>{sentence(line, document.policy.domain)}</li>" for line in entry.disclosed)
    rows.append(("Leaves", f"<ul>{leaves}</ul>"))
    return "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)


def _source(entry: Microdata) -> str:
    if entry.is_typical:
        return "typical values of clusters of people"
    return f"from donors of the same group, each row’s from at least {counted(entry.limits.donors, 'possible donor')}"


def _needs(entry: Microdata) -> str:
    """What every group has, from the numbers that were stated."""
    need, said = entry.limits, []
    variety = "values by entropy" if need.variety == "entropy" else "values"
    for low, high, least, most, what in (("k", "alpha", need.k, need.alpha, "rows"), ("l", "beta", need.l, need.beta, variety)):  # fmt: skip
        told = f"at least {least:g} {what.replace('s', '', 1) if least == 1 and what in ('rows', 'values') else what} ({low})"
        said.append(f"{told}, at most {most} ({high})" if most is not None else told)
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."
