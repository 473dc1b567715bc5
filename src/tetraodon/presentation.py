"""How the numbers of a release are to be shown, as it is declared (``presenting`` does it)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .errors import SpecificationError, unknown
from .exact import exact, positive, show
from .reading import kind_of, listed, table

FORMATS = ("parquet", "csv")
KEYS = ("interval", "round_to", "suppress_below", "totals", "format", "labels", "units")
LEAST, MOST = Fraction(1, 2), Fraction(999, 1000)
LARGEST, FINEST = 10**12, Fraction(1, 10**6)
LONGEST = 200


@dataclass(frozen=True)
class Presentation:
    """How the numbers of one release are shown.

    Attributes:
        interval: coverage of ``lower`` and ``upper``, from 0.5 to 0.999.
        round_to: numbers are rounded to the nearest multiple of it, halves away from zero; lower ends down, upper ends up.
        suppress_below: numbers that are below it, once rounded, are not shown.
        totals: attributes over which sums of the shown numbers are added, under the name "All".
        format: file formats.
        labels: names of columns as written.
        units: units of columns, where others than the declared ones are to be stated.

    >>> Presentation(round_to=Fraction(10)).to_spec()
    {'interval': '0.95', 'round_to': '10', 'format': ['parquet', 'csv']}
    """

    interval: Fraction = Fraction(95, 100)
    round_to: Fraction | None = None
    suppress_below: Fraction | None = None
    totals: tuple[str, ...] = ()
    format: tuple[str, ...] = FORMATS
    labels: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()

    def to_spec(self) -> dict[str, Any]:
        """A plain JSON-ready form; ``presentation_from_spec`` is its inverse."""
        told: dict[str, Any] = {"interval": show(self.interval)}
        if self.round_to is not None:
            told["round_to"] = show(self.round_to)
        if self.suppress_below is not None:
            told["suppress_below"] = show(self.suppress_below)
        if self.totals:
            told["totals"] = list(self.totals)
        told["format"] = list(self.format)
        if self.labels:
            told["labels"] = dict(self.labels)
        if self.units:
            told["units"] = dict(self.units)
        return told

    @property
    def changed(self) -> tuple[str, ...]:
        """Keys beside ``format`` that are not at their defaults."""
        plain = Presentation()
        return tuple(k for k in KEYS if k != "format" and getattr(self, k) != getattr(plain, k))

    @property
    def decimals(self) -> int | None:
        """How many digits after the point numbers in whole steps need; None without a step, or where it is no decimal.

        >>> Presentation(round_to=Fraction(1, 20)).decimals, Presentation(round_to=Fraction(10)).decimals
        (2, 0)
        """
        told = "/" if self.round_to is None else show(self.round_to)
        return None if "/" in told else len(told.partition(".")[2])

    def named(self, column: str) -> str:
        """A column's name as written."""
        return dict(self.labels).get(column, column)


def presentation_from_spec(told: Any, where: str = "present") -> Presentation:
    """The presentation that ``to_spec`` wrote, or the ``present`` table of a settings file.

    Raises:
        SpecificationError: names the key.

    >>> presentation_from_spec({"interval": "0.9", "totals": ["sex"]}).interval
    Fraction(9, 10)
    """
    spec = table(told, where, "a table such as { round_to = 10 }")
    for key in spec:
        if key not in KEYS:
            raise unknown(where, "key", key, KEYS)
    interval = exact(spec.get("interval", "0.95"), f"{where}.interval")
    if not LEAST <= interval <= MOST:
        raise SpecificationError(f"{where}.interval: a coverage from 0.5 to 0.999, such as 0.95.")
    step = spec.get("round_to")
    round_to = None if step is None else positive(step, f"{where}.round_to")
    if round_to is not None and not FINEST <= round_to <= LARGEST:
        raise SpecificationError(f"{where}.round_to: a step from 0.000001 to 10^12.")
    least = spec.get("suppress_below")
    suppress = None if least is None else positive(least, f"{where}.suppress_below")
    if suppress is not None and suppress > LARGEST:
        raise SpecificationError(f"{where}.suppress_below: at most 10^12.")
    return Presentation(
        interval,
        round_to,
        suppress,
        _totals(spec.get("totals", ()), f"{where}.totals"),
        _formats(spec.get("format", FORMATS), f"{where}.format"),
        _texts(spec.get("labels", {}), f"{where}.labels"),
        _texts(spec.get("units", {}), f"{where}.units"),
    )


def _totals(told: Any, where: str) -> tuple[str, ...]:
    found = [told] if isinstance(told, str) else listed(told, where, "a list of attributes")
    for name in found:
        if not isinstance(name, str):
            raise SpecificationError(f"{where}: names of attributes, not {kind_of(name)}.")
    if len(set(found)) < len(found):
        raise SpecificationError(f"{where}: an attribute stands twice.")
    return tuple(found)


def _formats(told: Any, where: str) -> tuple[str, ...]:
    found = [told] if isinstance(told, str) else listed(told, where, "a list of formats")
    for form in found:
        if not isinstance(form, str):
            raise SpecificationError(f"{where}: expected texts, got {kind_of(form)}.")
        if form not in FORMATS:
            raise unknown(where, "format", form, FORMATS)
    if not found:
        raise SpecificationError(f"{where}: at least one of parquet, csv.")
    return tuple(dict.fromkeys(found))


def _texts(told: Any, where: str) -> tuple[tuple[str, str], ...]:
    found = table(told, where, 'a table such as { value = "People" }')
    for name, text in found.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise SpecificationError(f"{where}: texts for names of columns, not {kind_of(text)}.")
        if not text.strip() or len(text) > LONGEST or not text.isprintable():
            raise SpecificationError(
                f"{where}.{name}: a text of 1 to {LONGEST} characters on one line, not only blanks."
            )
    return tuple(found.items())


def presentation_of(given: Presentation | Sequence[str]) -> Presentation:
    """A presentation as it is, or from formats alone.

    >>> presentation_of(["csv"]).format
    ('csv',)
    """
    return given if isinstance(given, Presentation) else Presentation(format=_formats(given, "format"))
