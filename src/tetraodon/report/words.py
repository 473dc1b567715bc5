"""Texts and numbers of a report: cleaned, escaped, rounded to what their error supports, and put into sentences."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..exact import show
from ..plans import number
from ..sensitivity.persons import PRESENCE
from ..terminal import harmless
from .document import Entry

LONGEST = 24
WEIGHING = ("histogram", "marginals", "cdf", "ranges", "mean", "sum")
BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """One line of text, safe to show: blanks and line breaks become one blank, what cannot be shown becomes �.

    >>> clean("a\\n  b\\u202ec")
    'a b�c'
    """
    return harmless(BLANKS.sub(" ", text)).strip()


def safe(text: str) -> str:
    """Text for HTML, inside and outside attributes.

    >>> safe('<b>"R&D"')
    '&lt;b&gt;&quot;R&amp;D&quot;'
    """
    return html.escape(clean(text), quote=True)


def short(text: str, length: int = 28) -> str:
    """Clean text of at most ``length`` characters.

    >>> short("a very long label indeed", 10)
    'a very lo…'
    """
    told = clean(text)
    return told if len(told) <= length else told[: length - 1].rstrip() + "…"


def rounded(value: float, half: float | None) -> str:
    """A value to two significant digits of its half-width: what lies below says nothing.

    >>> rounded(1975367, 5872), rounded(36.4116, 0.1813), rounded(55.0, 0)
    ('1,975,400', '36.41', '55')
    """
    if not math.isfinite(value):
        return "unbounded"
    if half is None or not math.isfinite(half) or half <= 0:
        return exactly(value)
    digits = 1 - math.floor(math.log10(half))
    if float(value).is_integer():
        digits = min(digits, 0)
    told = f"{round(value, digits):,.{max(digits, 0)}f}"
    return minus("0" if told.strip("-0.") == "" else told)


def exactly(value: float) -> str:
    """A number without an error: thousands separated, at most two decimals above 1.

    >>> exactly(48842.0), exactly(0.5), exactly(-1234.567)
    ('48,842', '0.5', '−1,234.57')
    """
    if float(value).is_integer():
        return minus(f"{value:,.0f}")
    told = number(value) if abs(value) < 1 else f"{value:,.2f}"
    return minus(told.rstrip("0"))


def minus(text: str) -> str:
    """A true minus sign."""
    return text.replace("-", "−")


def of_unit(text: str, unit: str) -> str:
    """A number with its unit."""
    return f"{text} {clean(unit)}" if unit else text


def size(value: float | None) -> str:
    """An error: three digits, or in words where it is unbounded or too small to matter.

    >>> size(1234.5), size(None), size(0.0), size(1e-20)
    ('1,230', 'no bound', '0', 'under 0.001')
    """
    if value is None:
        return "no bound"
    return "under 0.001" if 0 < value < 0.001 else number(value)


def small(value: float) -> str:
    """A small number to two digits, without powers of ten.

    >>> small(9.1e-05), small(0.25), small(0.0)
    ('0.000091', '0.25', '0')
    """
    return f"{Decimal(f'{value:.2g}'):f}"


def rational(value: Fraction) -> str:
    """An exact number as a fraction, with its decimal where it has a finite one; rounded where it is too long to read.

    >>> rational(Fraction(1, 10)), rational(Fraction(1, 3)), rational(Fraction(20000)), rational(Fraction(1, 3**60))
    ('1/10 = 0.1', '1/3 ≈ 0.333', '20,000', '≈ 2.36e-29')
    """
    told = f"{value.numerator:,}" if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    if len(told) > LONGEST:
        return f"≈ {float(value):,.3g}"
    if value.denominator == 1:
        return told
    decimal = show(value)
    if "/" not in decimal:
        return f"{told} = {decimal}"
    return f"{told} ≈ {number(float(value)) if value > Fraction(1, 1000) else f'{float(value):.3g}'}"


def equal(name: str, value: Fraction) -> str:
    """An exact number under its name.

    >>> equal("σ²", Fraction(5, 2)), equal("ρ", Fraction(1, 3**60))
    ('σ² = 5/2 = 2.5', 'ρ ≈ 2.36e-29')
    """
    told = rational(value)
    return f"{name} {told}" if told.startswith("≈") else f"{name} = {told}"


def listed(items: Sequence[str], most: int = 6) -> str:
    """Items in a row.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    shown = list(items[:most]) + ([f"{len(items) - most:,} more"] if len(items) > most else [])
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def counted(count: int, thing: str, things: str = "") -> str:
    """A count with its noun, whose plural may be irregular.

    >>> counted(1, "release"), counted(1200, "record"), counted(2, "policy", "policies")
    ('1 release', '1,200 records', '2 policies')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {things or f'{thing}s'}"


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.95), percent(0.005)
    ('95 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def asked(entry: Entry) -> str:
    """A query in words."""
    query, by = entry.query, list(_names(entry.query.get("by", [])))
    word, body = entry.word, query[entry.word]
    if word == "marginals":
        body = [listed(t.attributes, 12) for t in entry.tables]
    names = listed(list(_names(body)), 12)
    if word == "marginals":
        count, kinds = len(body), {len(t.attributes) for t in entry.tables}
        each = (
            f"all {counted(count, 'table')} of {counted(kinds.pop(), 'attribute')}" if len(kinds) == 1 else ""
        )
        told = "Number of records in " + (
            each if count > 6 and each else f"{counted(count, 'table')}: {'; '.join(body)}"
        )
    elif word == "histogram":
        told = f"Number of records for every {names}"
    elif word == "cdf":
        told = f"Number of records at or below every value of {names}"
        if query.get("quantiles"):
            levels = listed([percent(float(Fraction(str(q)))) for q in query["quantiles"]], 9)
            told += f", with its quantiles at {levels}"
    elif word == "ranges":
        of = query.get("of")
        many = "all ranges" if isinstance(of, str) else counted(len(of or []), "range")
        told = f"Number of records in {many} of {names}"
    elif word == "quantiles":
        levels = listed([percent(float(Fraction(str(q)))) for q in query.get("levels", [])], 9)
        told = f"Values of {names} at or below which {levels} of the records lie"
    elif word == "mean":
        told = f"Mean of {names}"
    elif word == "sum":
        told = f"Total of {names}"
    elif word == "kmeans":
        told = f"Centres of {counted(int(query.get('k', 1)), 'cluster')} of records along {names}, with their sizes"
    else:
        told = f"{counted(len(query.get('matrix', [])), 'combination')} of the counts of {names}"
    if entry.step is not None and word in WEIGHING:
        told = f"Weighted {told[:1].lower()}{told[1:]}"
    if by:
        told += f", by {listed(by, 12)}"
    bins = query.get("bins")
    if isinstance(bins, Mapping) and bins:
        told += f"; {listed([_binned(n, b) for n, b in bins.items()], 12)}"
    where = query.get("where")
    if isinstance(where, Mapping) and where:
        told += f"; only records with {listed([_kept(n, w) for n, w in where.items()], 12)}"
    return clean(told) + "."


def _names(body: Any) -> Iterable[str]:
    return [str(body)] if isinstance(body, str) else [str(n) for n in body]


def _binned(name: str, bins: Any) -> str:
    if isinstance(bins, Mapping):
        return f"{name} in {counted(len(bins), 'group')}"
    if isinstance(bins, list):
        return f"{name} in {counted(len(bins), 'bin')}"
    return f"{name} in bins of {bins}"


def _kept(name: str, where: Any) -> str:
    if isinstance(where, Mapping):
        low, high = where.get("between", ["", ""])
        return f"{name} from {low} to {high}"
    values = where if isinstance(where, list) else [where]
    return f"{name} {' or '.join(short(str(v)) for v in values[:6])}{' or others' if len(values) > 6 else ''}"


def edge(witness: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    """The pair of values that attains a cost, in words.

    >>> edge(({"sex": "Male", "loss": "4"}, {"sex": "Male", "loss": "104"}))
    'a record with loss 104 instead of 4 (and sex Male in both)'
    >>> edge(({"loss": "4"}, {"presence": "not in the table"}))
    'a record with loss 4 that is there or is not'
    """
    first, second = witness
    if set(second) == {PRESENCE} != set(first):
        told = listed([f"{n} {short(v, 40)}" for n, v in first.items()], 12)
        return clean(f"a record with {told} that is there or is not")
    moved = [n for n in first if first[n] != second[n]]
    same = [f"{n} {short(first[n], 40)}" for n in first if first[n] == second[n]]
    told = listed([f"{n} {short(second[n], 40)} instead of {short(first[n], 40)}" for n in moved], 12)
    return clean(f"a record with {told}" + (f" (and {listed(same, 12)} in both)" if same else ""))


def sentence(line: str, names: Iterable[str] = ()) -> str:
    """A line of the manifest as a sentence, in HTML; one that begins with one of these names keeps its first letter."""
    told = clean(line)
    if not line.startswith(tuple(f"{name}{mark}" for name in names for mark in (": ", ", ", " of "))):
        told = told[:1].upper() + told[1:]
    return safe(told if told.endswith((".", "!", "?")) else f"{told}.")
