"""The evidence of a release: its exact cost and what attains it, its noise, its error, and what else was considered."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from ..exact import show
from .account import ledger_name
from .audits import audit_words
from .document import Document, Entry, Noise
from .losses import cost, symbol
from .spots import spotted
from .tables import Sheet
from .words import edge, equal, of_unit, percent, rational, safe, sentence, size

RELEASED = ' <span class="mark">released</span>'
KINDS = {
    "chain": ("running total", "running totals"),
    "rows": ("row of the query", "rows of the query"),
    "optimised": ("combination of whole multiples of counts", "combinations of whole multiples of counts"),
    "kronecker": (
        "combination of whole multiples of counts, over all attributes at once",
        "combinations of whole multiples of counts, over all attributes at once",
    ),
}
SETTLED = {
    "all": "Exact because the public counts settle it.",
    "some": "Some of it is exact because the public counts settle it.",
    "none": "",
}


def evidence(entry: Entry, seen: Sequence[Sheet], document: Document) -> str:
    rows = [
        ("Exact cost", f"{cost(entry, document.budget)}; row {entry.ledger_row} of {ledger_name(document)}.")
    ]
    rows.append(_attained(entry, document))
    groups = [g for g in seen[0].view.groups if not g.is_total]
    rows.append(("Noise", _noise(entry, len(groups), sum(len(g.value) for g in groups))))
    if entry.disclosed:
        told = sentence("; ".join(entry.disclosed), document.policy.domain)
        rows.append(("Without noise", f"{told} {SETTLED[entry.settled]}".rstrip()))
    rows.append(("Expected error", _error(entry)))
    if entry.audit is not None:
        rows.append(("Audit", audit_words(entry.audit)))
    if len(seen) > 1 and entry.tables:
        rows.append(("By table", _by_table(seen)))
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)
    return f'<div class="evidence">\n<div>\n<h4>Evidence</h4>\n<dl>\n{told}\n</dl>\n</div>\n{_considered(entry)}\n</div>'


def _attained(entry: Entry, document: Document) -> tuple[str, str]:
    """Which change costs as much, or why none can be named."""
    if entry.loss.is_zero:
        if document.is_tied:
            return (
                "Attained by",
                "Nothing: no change that agrees with the public counts alters what is published here.",
            )
        return "Attained by", "No edge: nothing published here changes along any edge of the policy."
    over_edges = entry.rule.endswith("edges")
    rule = f"the {safe(entry.rule)} of the policy" if over_edges else safe(entry.rule)
    if entry.witness is not None:
        told = safe(edge(spotted(entry.witness, document.policy.domain)))
        return "Attained by", f"{told[:1].upper()}{told[1:]}: {rule}."
    if document.is_tied:
        return (
            "Bounded by",
            f"{rule}. Because counts are public, several records have to move together, so no change of a single record "
            "can be named.",
        )
    return "Bounded by", f"{rule[:1].upper()}{rule[1:]}; no single edge is known to attain it."


def _by_table(seen: Sequence[Sheet]) -> str:
    """The ± of every table."""
    told = [
        f"<li>{sheet.title}: {'exact' if not sheet.entry.half_width else '± ' + size(sheet.entry.half_width)}</li>"
        for sheet in seen
    ]
    return f"<ul>{''.join(told)}</ul>"


def _noise(entry: Entry, groups: int, cells: int) -> str:
    if not entry.noise:
        return "None was drawn."
    law = "Discrete Laplace" if entry.loss.unit == "epsilon" else "Discrete Gaussian"
    # Without an order to exploit, every cell of a histogram is a group of its own.
    alone = entry.word == "histogram" and entry.axis not in entry.attributes
    if entry.tables:
        listed = "".join(
            f"<li>{part.number:,} cells of {safe(part.rows)}, {_scale(entry, part)}</li>"
            for part in entry.noise
        )
        return f"{law} on whole tables, from which the published ones are the least-squares estimate:<ul>{listed}</ul>{_steps(entry)}"
    each = f" in each of {groups:,} groups" if groups > 1 and entry.word != "kmeans" else ""
    if alone:
        each = f" in each of {cells:,} cells"
    if any(part.rows == "kronecker" for part in entry.noise):
        each, alone = "", False
    parts = []
    cells = entry.considered[entry.chosen].kind == "identity"
    for i, part in enumerate(entry.noise):
        one, many = (
            ("cell", "cells")
            if cells
            else KINDS.get(part.rows, (f"piece of {part.rows}", f"pieces of {part.rows}"))
        )
        told = f"{part.number:,} {'count' if alone else one if part.number == 1 else many}"
        if entry.word == "mean":
            told = "the total" if i == 0 else "the number of records"
        if entry.word == "kmeans":
            told = f"{part.number:,} {part.rows}"
        parts.append(f"<li>{safe(told)}, {_scale(entry, part)}</li>")
    return f"{law}{each}:<ul>{''.join(parts)}</ul>{_steps(entry)}"


def _steps(entry: Entry) -> str:
    """What a scale counts, where records weigh."""
    if entry.step is None or entry.step == 1:
        return ""
    what = "Scales count" if entry.loss.unit == "epsilon" else "σ² counts squares of"
    return f"{what} steps of {show(entry.step)}, the step of the weights."


def _scale(entry: Entry, part: Noise) -> str:
    return f"scale {rational(part.scale)}" if entry.loss.unit == "epsilon" else equal("σ²", part.scale)


def _error(entry: Entry) -> str:
    if entry.expected_error is None:
        return f"No bound over {safe(entry.workload)}."
    if entry.loss.is_zero:
        return "None."
    root = safe(of_unit(size(sqrt(entry.expected_error)), entry.unit))
    told = f"Mean squared error {size(entry.expected_error)} (root {root}), over {safe(entry.workload)}."
    if entry.word == "kmeans":
        told = f"{size(entry.expected_error)} times {safe(entry.workload.replace(' over that ', ' '))}."
    if entry.half_width:
        told += f" At {percent(entry.coverage)}: ± {safe(of_unit(size(entry.half_width), entry.unit))}."
    return told


def _considered(entry: Entry) -> str:
    rows = "".join(
        f'<tr{" class=chosen" if i == entry.chosen else ""}><th scope="row">{safe(row.name)}'
        f"{RELEASED if i == entry.chosen else ''}</th>"
        f'<td class="n">{size(row.half_width)}</td>'
        f'<td class="n">{size(row.expected_error)}</td></tr>'
        for i, row in enumerate(entry.considered)
    )
    unit = f"; ± in {safe(entry.unit)}" if entry.unit else ""
    error = "Times plain k-means" if entry.word == "kmeans" else "Mean squared error"
    return (
        f'<table class="considered"><caption>Considered at {symbol(entry.loss.unit)} = {show(entry.loss.amount)}{unit}</caption>'
        '<thead><tr><th scope="col">Mechanism</th><th scope="col" class="n">±</th>'
        f'<th scope="col" class="n">{error}</th></tr></thead><tbody>{rows}</tbody></table>'
    )
