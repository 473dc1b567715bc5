"""How a release was shown, as its manifest tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SpecificationError
from ..presentation import Presentation, presentation_from_spec
from ..presenting import NUMBERS, STATUS
from .keys import items, mapping, take, text, whole


def shown_of(
    spec: Mapping[str, Any], attributes: tuple[str, ...], where: str
) -> tuple[Presentation, int, int | None]:
    """(how numbers are shown, how many are suppressed, rows of quantiles beside them).

    Args:
        attributes: columns before the numbers, by their own names.
    """
    shown, place = mapping(spec, "presentation", where), f"{where}.presentation"
    asked = mapping(shown, "asked", place)
    for key in ("interval", "format"):
        take(asked, key, f"{place}.asked")
    how = presentation_from_spec(asked, f"{place}.asked")
    written = [how.named(n) for n in (*attributes, *NUMBERS)]
    if how.suppress_below is not None:
        written.append(how.named(STATUS))
    if _columns(shown, place) != written:
        raise SpecificationError(f"{place}.columns: others than the release has.")
    beside = take(shown, "quantiles", place)
    if beside is None:
        return how, whole(shown, "suppressed", place), None
    table = mapping(shown, "quantiles", place)
    rows = whole(table, "rows", f"{place}.quantiles")
    if not set(NUMBERS) <= set(_columns(table, f"{place}.quantiles")):
        raise SpecificationError(f"{place}.quantiles.columns: others than quantiles have.")
    return how, whole(shown, "suppressed", place), rows


def _columns(spec: Mapping[str, Any], where: str) -> list[str]:
    """Names of columns as written, each with its unit or none."""
    found = []
    for i, column in enumerate(items(spec, "columns", where)):
        at = f"{where}.columns[{i}]"
        if not isinstance(column, Mapping):
            raise SpecificationError(f"{at}: a table.")
        found.append(text(column, "name", at))
        if take(column, "unit", at) is not None:
            text(column, "unit", at)
    return found
