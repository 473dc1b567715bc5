"""Published names of places, which are the middles of their cells, as coordinates that say their unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

PAIR = re.compile(r"(-?\d+(?:\.\d+)?) (-?\d+(?:\.\d+)?)\Z")
SIDES = (("N", "S"), ("E", "W"))
MINUS = "−"
FAR = 1000
PREFIXED = 14


def is_place(spec: Mapping[str, Any]) -> bool:
    """Whether a declared attribute is a place."""
    return "point" in spec


def spot(label: str, spec: Mapping[str, Any]) -> str:
    """A published name as it is shown; whatever names no place of the attribute stands as it is.

    Two places of one attribute never get the same name: no digit is left out.

    >>> plane = {"point": ["x", "y"], "box": [["0", "8000"], ["0", "8000"]], "metric": "planar", "unit": "m"}
    >>> spot("1500 500", plane), spot("missing", plane)
    ('(1.5, 0.5) km', 'missing')
    >>> spot("40.75 -73.9", {"point": ["lat", "lon"]})
    '40.75° N 73.9° W'
    """
    pair = PAIR.match(label)
    if pair is None or not is_place(spec):
        return label
    if spec.get("metric", "local") == "local":
        return " ".join(_degrees(text, sides) for text, sides in zip(pair.groups(), SIDES, strict=True))
    unit, factor = _scale(spec)
    told = ", ".join(_plain(Decimal(text) * factor) for text in pair.groups())
    return f"({told}) {unit}".rstrip()


def headings(called: str, labels: tuple[str, ...], spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of groups as they stand over a chart: places as coordinates, bare numbers behind what they are of.

    >>> headings("Persons", ("1", "2"), {}), headings("sex", ("f", "m"), {})
    (('Persons 1', 'Persons 2'), ('f', 'm'))
    """
    if is_place(spec):
        return tuple(spot(label, spec) for label in labels)
    bare = not any(c.isalpha() for label in labels for c in label) and len(called) <= PREFIXED
    return tuple(f"{called} {label}" for label in labels) if bare else labels


def _degrees(text: str, sides: tuple[str, str]) -> str:
    bare = text.removeprefix("-")
    return f"{bare}° {sides[text != bare]}" if bare.strip("0.") else f"{bare}°"


def _scale(spec: Mapping[str, Any]) -> tuple[str, Decimal]:
    """The unit of coordinates, in kilometres where metres would be long, and what they are multiplied by."""
    unit = str(spec.get("unit") or "")
    if unit != "m" or not any(abs(Fraction(str(end))) >= FAR for side in spec.get("box", ()) for end in side):
        return unit, Decimal(1)
    return "km", Decimal("0.001")


def _plain(number: Decimal) -> str:
    told = f"{number:f}"
    told = told.rstrip("0").rstrip(".") if "." in told else told
    return told.replace("-", MINUS)


def axes_note(spec: Mapping[str, Any]) -> str:
    """What the names of places are, where coordinates have names of their own."""
    if spec.get("metric", "local") == "local":
        return "Places are named by the middles of their cells."
    return f"Places are named by the middles of their cells: ({', '.join(str(n) for n in spec['point'])})."


def spotted(
    witness: tuple[Mapping[str, str], Mapping[str, str]], domain: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Two values of one record with places as they are shown."""
    first, second = (
        {name: spot(label, domain.get(name, {})) for name, label in end.items()} for end in witness
    )
    return first, second
