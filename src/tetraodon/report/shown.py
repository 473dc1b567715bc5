"""How published numbers are shown, in plain sentences."""

from __future__ import annotations

from ..exact import show
from .document import Entry
from .words import counted, listed, percent


def shown_words(entry: Entry) -> str:
    """What was rounded, suppressed and added up, and how sure the intervals are; empty where nothing was asked for."""
    how, told = entry.presentation, []
    if how.round_to is not None:
        told.append(
            f"Numbers are rounded to multiples of {_number(show(how.round_to))}, halves away from zero, and the ends of their "
            "intervals outwards."
        )
    if how.suppress_below is not None:
        few = "is not shown, because it is" if entry.suppressed == 1 else "are not shown, because they are"
        told.append(
            f"{entry.suppressed:,} of {counted(entry.rows, 'number')} {few} below {_number(show(how.suppress_below))}. That protects nobody and costs nothing: what it "
            "hides was private already."
        )
    if how.totals:
        names = listed([entry.called(n) for n in how.totals], 12)
        rounded = "rounded" if how.round_to is not None else "printed"
        hidden = ", those that are not shown included" if how.suppress_below is not None else ""
        told.append(
            f"Totals over {names} stand in the file as All; they are sums of the {rounded} numbers{hidden}."
        )
    if entry.shown != entry.coverage:
        told.append(
            f"Published intervals hold with {percent(entry.shown)}; every ± here with {percent(entry.coverage)}."
        )
    return " ".join(told)


def _number(told: str) -> str:
    """An exact number with its thousands separated.

    >>> _number("10000"), _number("0.05")
    ('10,000', '0.05')
    """
    return f"{int(told):,}" if told.isdigit() else told
