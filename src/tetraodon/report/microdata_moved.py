"""Exchanged columns before and after, as small pictures: what stood in the rows, and what stands there now."""

from __future__ import annotations

from ..plans import number
from .maps import line, svg, text
from .microdata_document import Exchange, Exchanged
from .svg import COLOURS, INK, MUTED
from .words import clean, counted, exactly, percent, safe, short

WIDE, TALL = 196.0, 84.0
STEP = 17.0  # of a line of named values
NAMES = 78.0
BEFORE, AFTER = "#c6ccd0", COLOURS[0]


def exchange_figure(exchange: Exchange) -> str:
    """All pictures with their caption."""
    pictures = "\n".join(
        f'<div><p class="small"><b>{safe(short(c.column, 26))}</b> {percent(c.distance)}</p>{_picture(c)}</div>'
        for c in exchange.columns
    )
    some = (
        f" Drawn: the {len(exchange.columns)} of {exchange.compared:,} columns that changed most."
        if exchange.compared > len(exchange.columns)
        else ""
    )
    mean = (
        f" Over {counted(exchange.compared, 'column')} {percent(exchange.mean)} on average."
        if exchange.compared > 1
        else ""
    )
    return (
        f'<figure class="panels before">\n<div class="grid">\n{pictures}\n</div>\n'
        '<figcaption><b>Exchanged columns before and after</b> &#160; <span class="key"><span class="swatch was"></span>as they were</span>'
        '<span class="key"><span class="swatch now"></span>as published</span><span>The percentage is the share of rows that would have '
        f"to change bars for both to agree.{mean}{some}</span></figcaption>\n</figure>\n"
    )


def _picture(column: Exchanged) -> str:
    return _named(column) if column.labels else _numbers(column)


def _numbers(column: Exchanged) -> str:
    """Bars of what was, a line of what is."""
    most = max(*column.before, *column.after, 1)
    n = len(column.before)
    step = WIDE / n

    def y(count: int) -> float:
        return 4 + TALL * (1 - count / most)

    base = y(0)
    bars = "".join(
        f"M{i * step:.4g} {base:.4g}V{y(c):.4g}h{step:.4g}V{base:.4g}z"
        for i, c in enumerate(column.before)
        if c
    )
    tops = "".join(f"V{y(c):.4g}h{step:.4g}" for c in column.after)
    low, high = (exactly(float(f"{v:.4g}")) for v in _ends(column))
    parts = [
        f'<path fill="{BEFORE}" d="{bars}"></path>',
        f'<path fill="none" stroke="{AFTER}" stroke-width="1.6" d="M0 {base:.4g}{tops}V{base:.4g}"></path>',
        line(0, base, WIDE, base, MUTED, 0.8),
        text(0, base + 14, low),
        text(WIDE, base + 14, f"{high} and more" if column.is_open else high, "end"),
    ]
    return svg(WIDE, base + 19, _label(column), parts)


def _ends(column: Exchanged) -> tuple[float, float]:
    """The first and the last bin's ends; of bins between whole numbers the whole numbers within."""
    low, high = column.edges[0], column.edges[-1]
    if all((2 * e) % 2 == 1 for e in column.edges):
        low, high = low + 0.5, high - 0.5
        return low, column.edges[-2] + 0.5 if column.is_open else high
    return low, column.edges[-2] if column.is_open else high


def _named(column: Exchanged) -> str:
    """A line for each value."""
    most = max(*column.before, *column.after, 1)
    parts = []
    for i, (label, was, now) in enumerate(zip(column.labels, column.before, column.after, strict=True)):
        y = 2 + i * STEP
        before, after = ((WIDE - NAMES) * c / most for c in (was, now))
        parts.append(text(NAMES - 6, y + 11, short(label, 12) or "(blank)", "end", INK, 11))
        if was:
            parts.append(
                f'<path fill="{BEFORE}" d="M{NAMES:g} {y:.4g}h{before:.4g}v14h-{before:.4g}z"></path>'
            )
        parts.append(
            f'<path fill="none" stroke="{AFTER}" stroke-width="1.6" d="M{NAMES:g} {y + 3.5:.4g}h{after:.4g}v7h-{after:.4g}"></path>'
        )
    height = 4 + len(column.labels) * STEP
    parts.append(line(NAMES, 0, NAMES, height, MUTED, 0.8))
    return svg(WIDE, height, _label(column), parts)


def _label(column: Exchanged) -> str:
    name = clean(column.column)
    if column.labels:
        rows = list(zip(column.labels, column.before, column.after, strict=True))[:8]
        told = "; ".join(f"{clean(v)} {was:,}, now {now:,}" for v, was, now in rows)
        return f"{name} before and after: {told}."
    low, high = (number(abs(v)) if v >= 0 else f"−{number(abs(v))}" for v in _ends(column))
    return f"{name} in {counted(len(column.before), 'bin')} from {low} to {high}, before and after: {percent(column.distance)} apart."
