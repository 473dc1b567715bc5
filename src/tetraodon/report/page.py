"""The page itself: semantic HTML with its style inside, nothing loaded, nothing that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from ..plans import number
from .account import account_section, glossary, policy_section
from .answers import View
from .charts import drawing
from .choosing import admitted, choosing_section, script
from .document import Document, Entry, Microdata, RowRelease
from .evidence import evidence
from .losses import entering, most, symbol, symbols
from .microdata import asked_microdata, distance_microdata, microdata_article
from .moved import article, asked_rows, distance
from .places import place_map
from .reported import Reported, reported
from .shown import shown_words
from .summary import six
from .svg import drawn
from .tables import Sheet, sheets
from .tradeoff import tradeoff
from .words import asked, counted, of_unit, percent, safe, size

ALERT = ' class="alert"'
COUNTED = ("histogram", "cdf", "ranges", "marginals")
DRAWN = 7

Seen = tuple[Sheet, ...] | tuple[Reported, ...]


def page(document: Document, manifest: str) -> str:
    """The whole page.

    Args:
        manifest: the file's name, for the commands that check it.
    """
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    seen = [_seen(entry, document.policy.domain) for entry in document.entries]
    title = safe(document.name) or "Release"
    body = [
        _header(document),
        _glance(document),
        _table(document, seen),
        _details(document, seen),
        choosing_section(document),
        policy_section(document),
        _files(document, manifest),
        account_section(document, manifest),
        glossary(document),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"
        f'{admitted(document)}">\n'
        f"<title>{title}: what was released, and what it gives away</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + script(document)
        + "\n</body>\n</html>\n"
    )


def _seen(entry: Entry | RowRelease | Microdata, domain: Mapping[str, Mapping[str, Any]]) -> Seen:
    """What was published, from its file."""
    if isinstance(entry, Microdata):
        return ()
    return sheets(entry, domain) if isinstance(entry, Entry) else reported(entry, domain)


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
    return f'<section class="glance" aria-label="At a glance">\n<dl>\n{lines}\n</dl>\n</section>'


def _table(document: Document, seen: Sequence[Seen]) -> str:
    coverage = " / ".join(sorted({percent(entry.coverage) for entry in document.answers})) or "95 %"
    units = symbols(document.entries)
    alike = len(units) == 1
    moved = bool(document.rows or document.microdata)
    is_rows, is_both = not document.answers and moved, bool(document.answers) and moved
    far = "Distance" if is_rows else f"± at {coverage}" + (", or distance" if is_both else "")
    good = "Rows" if is_rows else "Smallest count good to 10\u00a0%"
    heads = (
        ("Release", ""), (units[0] if alike else "Loss", ' class="n"'), (far, ' class="n"'), (good, ' class="n"'), ("Mechanism", ""),
        ("Files", ""),
    )  # fmt: skip
    head = "".join(f'<th scope="col"{css}>{text}</th>' for text, css in heads)
    rows = []
    for i, (entry, shown) in enumerate(zip(document.entries, seen, strict=True)):
        if isinstance(entry, RowRelease):
            wide, small = distance(entry, _reported(shown))
            last = f"{entry.rows:,}" if is_rows else "–"
            told, short = asked_rows(entry), "Distance"
        elif isinstance(entry, Microdata):
            wide, small = distance_microdata(entry)
            last, told, short = (f"{entry.rows:,}" if is_rows else "–"), asked_microdata(entry), "Distance"
        else:
            wide, small = plus_minus(entry, _sheets(shown)[0].view)
            last, told, short = smallest(entry), asked(entry), "±"
        wide = f'{wide}<span class="small">{small}</span>' if small else wide
        links = " ".join(f'<a href="{_href(f.path)}">{safe(f.form)}</a>' for f in entry.files)
        cells = (
            ("n", units[0] if alike else "Loss", _loss(entry, document, alike)), ("n", short, wide),
            ("n blank" if last == "–" else "n", "Rows" if is_rows else "Good to 10 % from", last), ("", "Mechanism", safe(entry.mechanism)),
            ("files", "Files", links),
        )  # fmt: skip
        row = "".join(f'<td class="{css}" data-label="{label}">{text}</td>' for css, label, text in cells)
        rows.append(
            f'<tr><th scope="row"><a href="#release-{i + 1}">{safe(entry.name)}</a>'
            f'<span class="small">{safe(told)}</span></th>{row}</tr>'
        )
    return (
        '<section class="releases">\n<h2>What was released</h2>\n<div class="scroll">\n<table>\n'
        "<caption>Every release with its cost and its accuracy; names lead to charts and evidence</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>\n</div>\n</section>"
    )


def _reported(seen: Seen) -> tuple[Reported, ...]:
    return tuple(one for one in seen if isinstance(one, Reported))


def _sheets(seen: Seen) -> tuple[Sheet, ...]:
    return tuple(one for one in seen if isinstance(one, Sheet))


def _loss(entry: Entry | RowRelease | Microdata, document: Document, alike: bool) -> str:
    """The cost of a release: the bare number where all are in one unit, and what it counts for where the account's is another."""
    if isinstance(entry, RowRelease | Microdata) and entry.is_measured:
        return '<b class="alert">no bound</b>'
    told = ("" if alike else f"{symbol(entry.loss.unit)} ") + most(entry.loss.amount)
    if entry.loss.unit == document.budget.unit or entry.loss.is_zero:
        return told
    unit = document.budget.unit
    return f'{told}<span class="small">counts as {symbol(unit)} {most(entering(entry.loss, unit))}</span>'


def plus_minus(entry: Entry, seen: View) -> tuple[str, str]:
    """The ± of a release in its own unit, and what else must be said of it.

    A manifest's half-width speaks of the total behind a mean and of the cumulative count behind quantiles; the published
    intervals say what that comes to.
    """
    if entry.loss.is_zero:
        return "exact", ""
    told = size(entry.half_width)
    if entry.half_width is not None:
        told = of_unit(told, entry.unit)
    if entry.word not in ("mean", "quantiles"):
        return safe(told), ""
    behind = f"total ± {told}" if entry.word == "mean" else f"cumulative count ± {told}"
    if entry.shown != entry.coverage:
        behind = f"at {percent(entry.shown)}; {behind}"
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


def _details(document: Document, seen: Sequence[Seen]) -> str:
    articles = []
    for i, (entry, shown) in enumerate(zip(document.entries, seen, strict=True), 1):
        if isinstance(entry, Entry):
            articles.append(_article(i, entry, _sheets(shown), document))
        elif isinstance(entry, Microdata):
            articles.append(microdata_article(i, entry, document))
        else:
            articles.append(article(i, entry, _reported(shown), document))
    return '<section class="details">\n<h2>Release by release</h2>\n' + "\n".join(articles) + "\n</section>"


def _article(i: int, entry: Entry, seen: Sequence[Sheet], document: Document) -> str:
    traded, drawn_ones = tradeoff(entry), seen[:DRAWN]
    figures = [
        _figure(f"r{i}" if not j else f"r{i}-{j + 1}", entry, sheet, document.policy.domain)
        for j, sheet in enumerate(drawn_ones)
    ]
    if traded is not None:
        chart, label = traded
        of = {"mean": " on the total", "quantiles": " on the cumulative count"}.get(entry.word, "")
        figures.insert(
            1,
            f'<figure class="curve">{drawn(chart, label, f"c{i}")}'
            f"<figcaption><b>± against {symbol(entry.loss.unit)}</b>{of}; the dot is what was released."
            "</figcaption></figure>",
        )
    first, more = figures[:2], figures[2:]
    # One more beside nothing is as wide as the first.
    kind = "figures even" if len(more) > 1 else "figures more"
    rest = f'<div class="{kind}">\n{"".join(more)}\n</div>\n' if more else ""
    if len(seen) > DRAWN:
        rest += f'<p class="asked">{counted(len(seen) - DRAWN, "further table")} in the file.</p>\n'
    return (
        f'<article id="release-{i}">\n<div class="top">\n<h3>{safe(entry.name)}</h3>\n<p class="asked">{safe(asked(entry))}</p>\n'
        f'{_shown(entry)}<div class="figures">\n{"".join(first)}\n</div>\n</div>\n{rest}{evidence(entry, seen, document)}\n</article>'
    )


def _shown(entry: Entry) -> str:
    told = shown_words(entry)
    return f'<p class="asked">{safe(told)}</p>\n' if told else ""


def is_settled(entry: Entry, sheet: Sheet) -> bool:
    """Whether public counts make some numbers of a noisy table exact."""
    if entry.loss.is_zero or entry.rule.endswith("edges") or sheet.entry.word not in (*COUNTED, "linear"):
        return False
    return any(bool(((g.reach == 0) & (g.value > 0)).any()) for g in sheet.view.groups)


def _figure(prefix: str, entry: Entry, sheet: Sheet, domain: Mapping[str, Mapping[str, Any]]) -> str:
    """One published table, drawn."""
    place = place_map(sheet.entry, sheet.view, domain)
    if place is None:
        shown = drawing(sheet.entry, sheet.view)
        svg, said = drawn(shown.chart, shown.label, prefix), shown.notes
    else:
        svg, said = place.svg, place.notes
    notes = "".join(f" <span>{safe(note)}</span>" for note in said)
    if is_settled(entry, sheet):
        notes += " <span>Numbers without an interval are settled by public counts.</span>"
    sure = f" with {percent(entry.shown)} intervals"
    if place is not None:
        sure = f"; their {percent(entry.shown)} intervals are in the file"
    if sheet.entry.half_width == 0 or entry.loss.is_zero:
        sure = ", exact"
    title = safe(sheet.title or entry.name)
    return (
        f'<figure class="data">{svg}'
        f"<figcaption><b>{title}</b>, published numbers{sure}.{notes}"
        "</figcaption></figure>"
    )


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


def _href(path: str) -> str:
    return safe(quote(path))
