"""The page itself: semantic HTML with its style inside, nothing loaded, nothing that runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from importlib.resources import files
from math import sqrt
from urllib.parse import quote

from ..exact import show
from ..release import number
from .answers import View
from .charts import drawing
from .reading import Document, Entry
from .summary import WORDS, six
from .svg import drawn
from .tables import Sheet, sheets
from .tradeoff import tradeoff
from .words import asked, clean, counted, edge, of_unit, percent, rational, safe, size

ALERT = ' class="alert"'
CHOSEN = ' class="chosen"'
RELEASED = ' <span class="mark">released</span>'
COUNTED = ("histogram", "cdf", "ranges", "marginals")
DRAWN = 7
KINDS = {"chain": ("running total", "running totals"), "rows": ("row of the query", "rows of the query")}
NOT_SECRET = (
    "Facts about groups of people (averages, trends, what is typical of a place or a trade) are not secret, even when they "
    "let somebody guess a person’s value."
)
ONE_RECORD = (
    "One record is one person here. Who is in the table counts as known; somebody with several records is protected record "
    "by record."
)


def page(document: Document, manifest: str) -> str:
    """The whole page.

    Args:
        manifest: the file's name, for the commands that check it.
    """
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    seen = [sheets(entry, document.policy.domain) for entry in document.entries]
    title = safe(document.name) or "Release"
    body = [
        _header(document),
        _glance(document),
        _table(document, seen),
        _details(document, seen),
        _policy(document),
        _files(document, manifest),
        _account(document, manifest),
        _glossary(document),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}: what was released, and what it gives away</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _header(document: Document) -> str:
    facts = [counted(len(document.entries), "release")]
    if document.edition:
        facts.insert(0, f"edition {safe(document.edition)}")
    if document.records is not None:
        facts.insert(0, counted(document.records, "record"))
    return (
        '<header>\n<p class="eyebrow">Release report</p>\n'
        f'<h1>{safe(document.name) or "Release"}</h1>\n<p class="facts">{" · ".join(facts)}</p>\n</header>'
    )


def _glance(document: Document) -> str:
    lines = "\n".join(
        f"<div{ALERT if line.alert else ''}><dt>{line.label}</dt><dd>{line.text}</dd></div>"
        for line in six(document)
    )
    return f'<section class="glance" aria-label="In six lines">\n<dl>\n{lines}\n</dl>\n</section>'


def _table(document: Document, seen: Sequence[Sequence[Sheet]]) -> str:
    coverage = {percent(entry.coverage) for entry in document.entries}
    heads = (
        ("Release", ""), ("ε", ' class="n"'), (f"± at {' / '.join(sorted(coverage)) or '95 %'}", ' class="n"'),
        ("Smallest count good to 10 %", ' class="n"'), ("Mechanism", ""), ("Files", ""),
    )  # fmt: skip
    head = "".join(f'<th scope="col"{css}>{text}</th>' for text, css in heads)
    rows = []
    for i, (entry, shown) in enumerate(zip(document.entries, seen, strict=True)):
        wide, small = plus_minus(entry, shown[0].view)
        told = f'{wide}<span class="small">{small}</span>' if small else wide
        links = " ".join(f'<a href="{_href(f.path)}">{safe(f.form)}</a>' for f in entry.files)
        cells = (
            ("n", "ε", show(entry.epsilon)), ("n", "±", told), ("n", "Good to 10 % from", smallest(entry)),
            ("", "Mechanism", safe(entry.mechanism)), ("files", "Files", links),
        )  # fmt: skip
        row = "".join(f'<td class="{css}" data-label="{label}">{text}</td>' for css, label, text in cells)
        rows.append(
            f'<tr><th scope="row"><a href="#release-{i + 1}">{safe(entry.name)}</a>'
            f'<span class="small">{safe(asked(entry))}</span></th>{row}</tr>'
        )
    return (
        '<section class="releases">\n<h2>What was released</h2>\n<div class="scroll">\n<table>\n'
        "<caption>Every release with its cost and its accuracy; names lead to charts and evidence</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>\n</section>"
    )


def plus_minus(entry: Entry, seen: View) -> tuple[str, str]:
    """The ± of a release in its own unit, and what else must be said of it.

    A manifest's half-width speaks of the total behind a mean and of the cumulative count behind quantiles; the published
    intervals say what that comes to.
    """
    if not entry.epsilon:
        return "exact", ""
    told = size(entry.half_width)
    if entry.half_width is not None:
        told = of_unit(told, entry.unit)
    if entry.word not in ("mean", "quantiles"):
        return safe(told), ""
    behind = f"total ± {told}" if entry.word == "mean" else f"cumulative count ± {told}"
    reach = max(float(g.reach.max()) for g in seen.groups)
    if seen.named is not None:
        return f"up to {counted(int(reach), 'step')}", safe(behind)
    return safe(f"up to {of_unit(size(reach), seen.unit)}"), safe(behind)


def smallest(entry: Entry) -> str:
    """Ten times the ±: from there on a count is good to 10 %."""
    if entry.word not in COUNTED:
        return "–"
    if entry.half_width is None:
        return "none"
    return "any" if entry.half_width == 0 else number(10 * entry.half_width)


def _details(document: Document, seen: Sequence[Sequence[Sheet]]) -> str:
    articles = [
        _article(i, entry, shown, document)
        for i, (entry, shown) in enumerate(zip(document.entries, seen, strict=True), 1)
    ]
    return '<section class="details">\n<h2>Release by release</h2>\n' + "\n".join(articles) + "\n</section>"


def _article(i: int, entry: Entry, seen: Sequence[Sheet], document: Document) -> str:
    traded, drawn_ones = tradeoff(entry), seen[:DRAWN]
    figures = [
        _figure(f"r{i}" if not j else f"r{i}-{j + 1}", entry, sheet) for j, sheet in enumerate(drawn_ones)
    ]
    if traded is not None:
        chart, label = traded
        of = {"mean": " on the total", "quantiles": " on the cumulative count"}.get(entry.word, "")
        figures.insert(
            1,
            f'<figure class="curve">{drawn(chart, label, f"c{i}")}'
            f"<figcaption><b>± against ε</b>{of}; the dot is what was released."
            "</figcaption></figure>",
        )
    first, more = figures[:2], figures[2:]
    rest = f'<div class="figures even">\n{"".join(more)}\n</div>\n' if more else ""
    if len(seen) > DRAWN:
        rest += f'<p class="asked">{counted(len(seen) - DRAWN, "further table")} in the file.</p>\n'
    return (
        f'<article id="release-{i}">\n<div class="top">\n<h3>{safe(entry.name)}</h3>\n<p class="asked">{safe(asked(entry))}</p>\n'
        f'<div class="figures">\n{"".join(first)}\n</div>\n</div>\n{rest}{_evidence(entry, seen, document)}\n</article>'
    )


def _figure(prefix: str, entry: Entry, sheet: Sheet) -> str:
    """One published table, drawn."""
    shown = drawing(sheet.entry, sheet.view)
    notes = "".join(f" <span>{safe(note)}</span>" for note in shown.notes)
    sure = (
        f" with {percent(entry.coverage)} intervals"
        if sheet.entry.half_width != 0 and entry.epsilon
        else ", exact"
    )
    title = safe(sheet.title or entry.name)
    return (
        f'<figure class="data">{drawn(shown.chart, shown.label, prefix)}'
        f"<figcaption><b>{title}</b>, published numbers{sure}.{notes}"
        "</figcaption></figure>"
    )


def _evidence(entry: Entry, seen: Sequence[Sheet], document: Document) -> str:
    cost = f"ε = {rational(entry.epsilon)}, <b>{entry.guarantee}</b>"
    rows = [("Exact cost", f"{cost}; row {entry.ledger_row} of {_ledger(document)}.")]
    if entry.witness is not None and entry.epsilon:
        told = safe(edge(entry.witness))
        rows.append(("Attained by", f"{told[:1].upper()}{told[1:]}: the {safe(entry.rule)} of the policy."))
    else:
        rows.append(("Attained by", "No edge: nothing published here changes along any edge of the policy."))
    rows.append(("Noise", _noise(entry, len(seen[0].view.groups))))
    if entry.disclosed:
        rows.append(("Without noise", _sentence("; ".join(entry.disclosed), ())))
    rows.append(("Expected error", _error(entry)))
    if len(seen) > 1:
        rows.append(("By table", _by_table(seen)))
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)
    return f'<div class="evidence">\n<div>\n<h4>Evidence</h4>\n<dl>\n{told}\n</dl>\n</div>\n{_considered(entry)}\n</div>'


def _by_table(seen: Sequence[Sheet]) -> str:
    """The ± of every table."""
    told = [
        f"<li>{sheet.title}: {'exact' if not sheet.entry.half_width else '± ' + size(sheet.entry.half_width)}</li>"
        for sheet in seen
    ]
    return f"<ul>{''.join(told)}</ul>"


def _noise(entry: Entry, groups: int) -> str:
    if not entry.noise:
        return "None was drawn."
    # Without an order to exploit, every cell of a histogram is a group of its own.
    alone = entry.word == "histogram" and entry.axis not in entry.attributes
    if entry.tables:
        listed = "".join(
            f"<li>{part.number:,} cells of {safe(part.rows)}, scale {rational(part.scale)}</li>"
            for part in entry.noise
        )
        return f"Discrete Laplace on whole tables, from which the published ones are the least-squares estimate:<ul>{listed}</ul>"
    each = f" in each of {groups:,} groups" if groups > 1 and entry.word != "kmeans" else ""
    if alone:
        each = f" in each of {entry.rows:,} cells"
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
        parts.append(f"<li>{safe(told)}, scale {rational(part.scale)}</li>")
    return f"Discrete Laplace{each}:<ul>{''.join(parts)}</ul>"


def _error(entry: Entry) -> str:
    if entry.expected_error is None:
        return f"No bound over {safe(entry.workload)}."
    if not entry.epsilon:
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
    return (
        f'<table class="considered"><caption>Considered at ε = {show(entry.epsilon)}{unit}</caption>'
        '<thead><tr><th scope="col">Mechanism</th><th scope="col" class="n">±</th>'
        f'<th scope="col" class="n">Mean squared error</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _policy(document: Document) -> str:
    policy = document.policy
    odds = [line.removeprefix("Odds: ") for line in policy.odds]
    parts = [
        ("Protected", policy.protected or ("nothing.",)),
        ("Odds", odds or ["none are promised."]),
        ("Given away by the policy itself", policy.disclosed),
        ("Released outside the budget", document.budget.outside or ("nothing.",)),
        ("Not a secret", (NOT_SECRET, ONE_RECORD)),
    ]
    told = "\n".join(
        f"<div><dt>{term}</dt><dd>{_items(lines, policy.domain)}</dd></div>" for term, lines in parts
    )
    return (
        f'<section class="policy">\n<h2>The policy in words</h2>\n<p class="lead">{safe(policy.headline)}</p>\n'
        f"<dl>\n{told}\n<div><dt>Hash</dt><dd><code>{safe(policy.hash)}</code></dd></div>\n</dl>\n</section>"
    )


def _items(lines: Iterable[str], names: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_sentence(line, names)}</li>" for line in lines) + "</ul>"


def _sentence(line: str, names: Iterable[str]) -> str:
    """A line of the manifest as a sentence; one that begins with an attribute's name keeps its first letter."""
    told = clean(line)
    if not any(line.startswith(f"{name}: ") for name in names):
        told = told[:1].upper() + told[1:]
    return safe(told if told.endswith((".", "!", "?")) else f"{told}.")


def _ledger(document: Document) -> str:
    ledger = document.budget.ledger
    return "an account in memory" if ledger is None else f"<code>{safe(ledger)}</code>"


def _files(document: Document, manifest: str) -> str:
    rows = "\n".join(
        f'<tr><th scope="row"><a href="{_href(f.path)}">{safe(f.path)}</a></th><td><code>{safe(f.sha256)}</code></td></tr>'
        for entry in document.entries
        for f in entry.files
    )
    return (
        '<section class="published">\n<h2>The files</h2>\n<table>\n'
        f"<caption>This page was made from <code>{safe(manifest)}</code> and these files beside it, and from nothing else. "
        "Each file was found to have the SHA-256 that the manifest states.</caption>\n"
        f'<thead><tr><th scope="col">File</th><th scope="col">SHA-256</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n'
        "</table>\n</section>"
    )


def _account(document: Document, manifest: str) -> str:
    budget = document.budget
    rows = [
        (
            "Budget",
            f"ε {show(budget.total)} in all, {show(budget.spent)} spent, {show(budget.remaining)} left. Losses add up over "
            "all releases and all editions.",
        )
    ]
    if budget.ledger is None:
        rows.append(("Account", "This account was kept in memory and ends with the program."))
        check = ""
    else:
        rows.append(("Account", f"<code>{safe(budget.ledger)}</code>"))
        command = f"tetraodon ledger verify {shlex.quote(budget.ledger)} {shlex.quote(manifest)}"
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


def _glossary(document: Document) -> str:
    used = sorted({entry.guarantee for entry in document.entries}) or ["proved"]
    rows = [(kind.capitalize(), meaning[:1].upper() + meaning[1:]) for kind, meaning in WORDS.items()]
    rows += [
        ("±", "The truth lies within ± of a published number of average error in at least 95 of 100 such releases. Every row "
              "of the files carries its own interval, which counts; “up to” is the widest of them."),
        ("Good to 10 %", "Ten times the ±: a published count of this size or more is within 10 % of the truth, as surely."),
        ("ε", "The privacy loss: odds between two values that the policy joins change by a factor of at most e to the power "
              "of ε. Losses of several releases add up."),
        ("Edge, hop", "Two values that the policy joins are one hop apart: nobody may tell which is true. Values further apart "
                      "are reached over several hops, and each hop costs ε."),
    ]  # fmt: skip
    told = "\n".join(f"<div><dt>{term}</dt><dd>{text}</dd></div>" for term, text in rows)
    return (
        f'<section class="words">\n<h2>Words</h2>\n<p class="lead">Everything on this page is {" or ".join(used)}; one word '
        f"never stands for another.</p>\n<dl>\n{told}\n</dl>\n</section>"
    )


def _href(path: str) -> str:
    return safe(quote(path))
