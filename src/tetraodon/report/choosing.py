"""What weaker secrets buy and give up: for a wished ±, the least loss under every policy that was looked at.

A table stands there as it is; where scripts run, one of a few lines adds a column for a ± of the reader's own choice. It loads
nothing, and the page's content policy admits it by its digest alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files

from ..exact import show
from ..plans import number
from .choices import Choice, Traded
from .document import Document, Entry
from .losses import most, symbol
from .words import asked, safe, size

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)
OF = {"mean": "± on the total", "quantiles": "± on the cumulative count"}
WORTH = 1.02
STEPS = 1000


def script(document: Document) -> str:
    """The script of the section, as an element; nothing where no release has anything to choose."""
    return f"<script>{_code()}</script>" if _chosen(document) else ""


def admitted(document: Document) -> str:
    """What the page's content policy says of scripts: this one by its digest, or nothing at all."""
    if not _chosen(document):
        return ""
    digest = base64.b64encode(hashlib.sha256(_code().encode()).digest()).decode()
    return f"; script-src 'sha256-{digest}'"


def _code() -> str:
    return files(__package__).joinpath("choosing.js").read_text(encoding="utf-8")


def _chosen(document: Document) -> list[tuple[int, Entry, Traded]]:
    found = []
    for i, entry in enumerate(document.entries, 1):
        traded = entry.traded if isinstance(entry, Entry) else None
        if isinstance(entry, Entry) and traded is not None and targets(traded):
            found.append((i, entry, traded))
    return found


def targets(traded: Traded) -> tuple[float, ...]:
    """The ± that the table speaks of: that of the release, and a few smaller and larger ones that something reaches.

    >>> own = Choice("own", "ordered", (40.0, 20.0, 10.0), ())
    >>> from fractions import Fraction
    >>> targets(Traded((Fraction(1, 2), Fraction(1), Fraction(2)), 1, "own", (own,)))
    (10.0, 20.0, 40.0)
    """
    here = traded.own.half_widths[traded.spent]
    if not here:
        return ()
    reached = [h for choice in traded.choices for h in choice.half_widths if h is not None]
    asked_for = [float(f"{here * times:.2g}") if times != 1 else here for times in TIMES]
    return tuple(dict.fromkeys(t for t in asked_for if min(reached) <= t <= max(reached)))


def choosing_section(document: Document) -> str:
    """The section; empty where no release has anything to choose."""
    chosen = _chosen(document)
    if not chosen:
        return ""
    units = list(dict.fromkeys(symbol(entry.loss.unit) for _, entry, _ in chosen))
    body = "\n".join(_one(i, entry, traded) for i, entry, traded in chosen)
    return (
        '<section class="choosing">\n<h2>What other secrets would buy</h2>\n'
        f"<p>The least {' or '.join(units)} that an answer of a given ± takes, under the policy of this page and under others. Less is "
        "paid where less is protected. All of it follows from what is public; nothing was spent on it.</p>\n"
        f"{body}\n{_given_up(chosen)}</section>"
    )


def _one(i: int, entry: Entry, traded: Traded) -> str:
    wished, sign = targets(traded), symbol(entry.loss.unit)
    widths = [h for choice in traded.choices for h in choice.half_widths if h]
    told = {
        "grid": [_amount(traded, k) for k in range(len(traded.grid))],
        "half_width": [list(choice.half_widths) for choice in traded.choices],
        "low": min(widths),
        "high": max(widths),
    }
    here = traded.own.half_widths[traded.spent]
    heads = "".join(
        f'<th scope="col" class="n{_marks(traded, wished, target)}">± {safe(size(target))}</th>'
        for target in wished
    )
    rows = "\n".join(_row(entry, traded, choice, wished) for choice in traded.choices)
    unit, of = safe(entry.unit), safe(OF.get(entry.word, "±"))
    value = f"{here:.6g}"
    return (
        f"<div class=\"traded\" data-traded='{json.dumps(told, separators=(',', ':'))}'>\n"
        f'<h3><a href="#release-{i}">{safe(entry.name)}</a></h3>\n<p class="asked">{safe(asked(entry))}</p>\n'
        f'<p class="pick"><label for="pick-{i}">Wished {of}</label>\n'
        f'<input id="pick-{i}" type="number" min="0" step="any" inputmode="decimal" value="{value}"> <span>{unit}</span>\n'
        f'<input type="range" min="0" max="{STEPS}" value="0" aria-label="Wished ±, from small to large"></p>\n'
        '<div class="scroll">\n<table>\n'
        f"<caption>Least {sign} for a {of} at 95 %{f', in {unit}' if unit else ''}, to the next of about "
        f"24 steps a decade; this release: ± {safe(size(here))} for {sign} {most(entry.loss.amount)}</caption>\n"
        f'<thead><tr><th scope="col">Secrets</th><th scope="col" class="n picked">your ±</th>{heads}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n</div>"
    )


def _row(entry: Entry, traded: Traded, choice: Choice, wished: Sequence[float]) -> str:
    bought = bought_words(entry, traded, choice)
    note = "the strongest of these" if choice.name == traded.strongest else f"buys {bought}" if bought else ""
    small = f'<span class="small">{safe(note)}</span>' if note else ""
    cells = "".join(
        f'<td class="n{_marks(traded, wished, target)}" data-label="± {safe(size(target))}">'
        f"{least_words(traded, choice, target)}</td>"
        for target in wished
    )
    own = ' class="own"' if choice is traded.own else ""
    return (
        f'<tr{own}><th scope="row">{safe(choice.name)}{small}</th><td class="n picked" data-label="your ±" aria-live="polite"></td>'
        f"{cells}</tr>"
    )


def _marks(traded: Traded, wished: Sequence[float], target: float) -> str:
    """Classes of a column: that of the release, and the outermost ones, for which a phone has no room."""
    if target == traded.own.half_widths[traded.spent]:
        return " here"
    return " far" if len(wished) == len(TIMES) and target in (wished[0], wished[-1]) else ""


def _given_up(chosen: Sequence[tuple[int, Entry, Traded]]) -> str:
    """What each policy gives up, said once for all releases."""
    told: dict[tuple[str, str, tuple[str, ...]], None] = {}
    for _, _, traded in chosen:
        told |= {(c.name, traded.strongest, c.gives_up): None for c in traded.choices if c.gives_up}
    if not told:
        return ""
    strongest = list(dict.fromkeys(first for _, first, _ in told))
    rows = []
    for name, first, texts in told:
        beside = f' <span class="small">beside {safe(first)}</span>' if len(strongest) > 1 else ""
        lines = "".join(f"<li>{safe(text)}</li>" for text in texts)
        rows.append(f"<div><dt>{safe(name)}{beside}</dt><dd><ul>{lines}</ul></dd></div>")
    whom = f", beside {safe(strongest[0])}" if len(strongest) == 1 else ""
    return f"<h3>What each gives up{whom}</h3>\n<dl>\n{''.join(rows)}\n</dl>\n"


def least_words(traded: Traded, choice: Choice, target: float) -> str:
    """The least loss of the grid for a ±, in words where it lies outside."""
    at = choice.least(target)
    if at is None:
        return f"over {_amount(traded, len(traded.grid) - 1)}"
    return f"{_amount(traded, at)} or less" if at == 0 else _amount(traded, at)


def _amount(traded: Traded, at: int) -> str:
    told = show(traded.grid[at])
    return told if len(told) <= 8 and "/" not in told else number(float(traded.grid[at]))


def bought_words(entry: Entry, traded: Traded, choice: Choice) -> str:
    """What a weaker policy buys at the loss of the release, beside the strongest; empty where it buys nothing."""
    strongest = next(each for each in traded.choices if each.name == traded.strongest)
    wide, here = strongest.half_widths[traded.spent], choice.half_widths[traded.spent]
    if choice is strongest or wide is None or here is None:
        return ""
    if here == 0:
        return "exact answers."
    told = (
        [f"a ± {number(wide / here)} times narrower at the same {symbol(entry.loss.unit)}"]
        if wide / here >= WORTH
        else []
    )
    at = choice.least(wide)
    saved = float(traded.grid[traded.spent] / traded.grid[at]) if at is not None else 1.0
    if saved >= WORTH:
        told.append(f"the ± of the strongest for {number(saved)} times less {symbol(entry.loss.unit)}")
    return f"{', or '.join(told)}." if told else ""
