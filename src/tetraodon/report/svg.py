"""Charts as inline SVG: one look for all of them, nothing loaded, nothing that runs, no name from outside evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from .words import safe, short

INK, MUTED, LINE, PALE = "#1b2733", "#5b6670", "#e3e5e6", "#b9cde0"
# Told apart with any colour vision, and from each other's grey in print.
COLOURS = ("#1d5b8f", "#d2691e", "#7a4a96", "#2f8573", "#a08a1c")

CONFIG: Mapping[str, Any] = {
    # Descriptions for readers are written by us: Vega makes them by evaluating text that holds titles.
    "aria": False,
    "background": None,
    "font": "Arial",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 11.5, "titleFontSize": 11.5, "titleFontWeight": "normal", "labelColor": MUTED, "titleColor": MUTED,
        "gridColor": LINE, "domain": False, "ticks": False, "labelPadding": 6, "titlePadding": 8, "labelLimit": 150,
        "titleLimit": 380, "labelOverlap": "greedy",
    },
    "axisX": {"grid": False, "domain": True, "domainColor": "#9aa3aa", "ticks": True, "tickColor": "#9aa3aa", "tickSize": 4},
    "axisY": {"tickCount": 5},
    "title": {"fontSize": 12, "color": INK, "anchor": "start", "fontWeight": "bold", "offset": 6, "limit": 220},
    "legend": {
        "labelFontSize": 12, "labelColor": INK, "orient": "top", "title": None, "symbolType": "square", "symbolSize": 90,
        "labelLimit": 150, "offset": 8, "padding": 0, "columnPadding": 14, "direction": "horizontal", "symbolStrokeWidth": 0,
        "symbolOpacity": 1,
    },
    "text": {"fontSize": 11.5, "fill": INK},
    "axisBand": {"ticks": False},
}  # fmt: skip

NAMESPACE = re.compile(r"^\{[^}]*\}")
REFERENCE = re.compile(r"url\(#([^)]*)\)")
DROPPED = frozenset({"class", "role", "pointer-events", "font-family", "version", "width", "height"})
ALLOWED = frozenset({"svg", "g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath"})


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows for a chart. Fields have names of ours; names from outside are only ever values."""
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def distinct(labels: Sequence[str], length: int = 28) -> list[str]:
    """Labels short enough for a chart, still all different.

    Each ends in a blank, which is not drawn: Vega uses labels as keys of objects, and those have keys of their own
    (``constructor``, ``__proto__``).

    >>> distinct(["a long label", "a long lapse", "b"], 8)
    ['a long… ', 'a long… (2) ', 'b ']
    """
    found: list[str] = []
    seen: set[str] = set()
    for label in labels:
        told = first = short(label, length) or "(blank)"
        copy = 1
        while told in seen:
            copy += 1
            told = f"{first} ({copy})"
        seen.add(told)
        found.append(f"{told} ")
    return found


def drawn(chart: Any, label: str, prefix: str) -> str:
    """An Altair chart as an ``<svg>`` element to stand in a page.

    Args:
        label: what it shows, for those who do not see it.
        prefix: makes its ids its own.
    """
    import altair as alt
    import vl_convert

    # Neither the look nor the bytes may depend on a theme or a transformer that the caller has switched on.
    with alt.data_transformers.enable("default"):
        spec = chart.to_dict()
    spec["config"] = dict(CONFIG)
    spec.pop("usermeta", None)
    return inline(vl_convert.vegalite_to_svg(spec), label, prefix)


def inline(svg: str, label: str, prefix: str) -> str:
    """An SVG document as an element of a page: sized by the page, in its font, with ids of its own.

    Raises:
        ValueError: an element that draws nothing (a script, a link, an image).
    """
    root = ElementTree.fromstring(svg)
    width = float(root.get("width", "0"))
    _tidy(root, prefix)
    root.set("role", "img")
    root.set("viewBox", root.get("viewBox", ""))
    text = ElementTree.tostring(root, encoding="unicode")
    head = f'<svg aria-label="{safe(label)}" style="max-width:{width:g}px"'
    return head + text.removeprefix("<svg")


def _tidy(element: ElementTree.Element, prefix: str) -> None:
    element.tag = NAMESPACE.sub("", element.tag)
    if element.tag not in ALLOWED:
        raise ValueError(f"a chart holds <{element.tag}>, which draws nothing")
    for name in list(element.attrib):
        if name in DROPPED or name.startswith(("aria-", "on")) or "href" in name:
            del element.attrib[name]
        elif name == "id":
            element.set(name, f"{prefix}-{element.attrib[name]}")
        else:
            element.set(name, REFERENCE.sub(rf"url(#{prefix}-\1)", element.attrib[name]))
    for child in list(element):
        _tidy(child, prefix)
        if _empty(child):
            element.remove(child)


def _empty(element: ElementTree.Element) -> bool:
    """Whether an element shows nothing: frames without paint, labels that overlap others, groups without content."""
    if element.get("opacity") == "0" or element.get("display") == "none":
        return True
    if element.tag == "path":
        return not (element.get("fill") or element.get("stroke")) or not element.get("d")
    return element.tag == "g" and len(element) == 0
