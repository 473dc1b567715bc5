"""Who is protected, and with what of theirs, in plain words: rows, weights, presence, exemptions, chosen rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .exact import show
from .people import People
from .phrases import Frozen, kept_text, thawed


def people_lines(people: People, presence: str) -> list[str]:
    """What one person is, and what else of a person is a secret."""
    lines = []
    if presence == "secret":
        lines.append(
            "Protected: presence: whether somebody is in the table at all. No total is published exactly."
        )
    if people.max_rows > 1:
        lines.append(
            f"Protected: a person as a whole: all of the up to {people.max_rows:,} rows that are kept of one may change at once, "
            f"each between secret values. Answers cost {people.max_rows:,} times as much as for one row"
            f"{'' if people.weight is None else ', times the largest weight'}."
        )
    if people.row_counts == "secret":
        lines.append(
            "Protected: how many rows a person has. A row that may or may not exist can push another one out of those that are "
            "kept, so answers are priced as if any two values were secret from each other."
        )
    elif not people.has_key:
        lines.append(
            "Priced as if any two values were secret from each other: rows are kept without a key (keep_by), so that a change of "
            "one value may change which rows are kept."
        )
    weight = people.weight
    if weight is not None:
        bounds = f"from {show(weight.low)} to {show(weight.high)} in steps of {show(weight.step)}"
        if weight.weights == "secret":
            lines.append(f"Protected: the weight of a record, {bounds}, which may change with its value.")
        else:
            lines.append(
                f"NOT protected: the weight of a record, {bounds}. It stays with its record whatever the secret value is."
            )
    if people.is_plain and presence == "public":
        lines.append(
            "One record is one person here. Who is in the table counts as known; somebody with several records is "
            "protected record by record."
        )
    elif people.is_plain:
        lines.append(
            "One record is one person here; somebody with several records is protected record by record."
        )
    return lines


def known_lines(people: People, presence: str) -> list[str]:
    """What is disclosed of who is there, and how often, as sentences without their head."""
    lines = []
    if presence == "public" and not people.rows_vanish and people.weight is None:
        lines.append("the number of records.")
    if people.row_counts == "public" and people.max_rows > 1:
        lines.append(f"how many rows each person has, up to the {people.max_rows:,} that are kept.")
    weight = people.weight
    if weight is not None:
        lines.append(
            f"that every weight lies from {show(weight.low)} to {show(weight.high)} (the table is refused otherwise)."
        )
        if presence == "public" and not people.weights_change and not people.rows_vanish:
            lines.append("the sum of all weights.")
    return lines


def exempt_text(exempt: Frozen) -> str:
    """Who is exempt, in a few words.

    >>> exempt_text((("agreed", ("list", "yes")),))
    'with agreed = yes'
    """
    return " or ".join(f"with {name} {kept_text(thawed(told))}" for name, told in exempt)


def exempt_lines(exempt: Frozen, has_constraints: bool) -> list[str]:
    """Who is not protected at all, and what their presence in the file gives away of the others."""
    lines = []
    for name, told in exempt:
        shown = kept_text(thawed(told))
        lines.append(
            f"Exempt: records with {name} {shown} are not protected at all: tables of them alone are exact and cost nothing."
        )
        lines.append(
            f"Exempt: that {name} {shown} is public for everybody in the table, and so is who did NOT agree. If agreeing goes "
            "together with a secret value, that somebody did not agree tells about theirs; and what is known exactly of the "
            "exempt can be taken off tables of all."
        )
        if has_constraints:
            lines.append(
                "Exempt: because counts are public, exempt records may have to make up for others and are priced like everybody."
            )
    return lines


def chosen_lines(where: Mapping[str, Any] | None, sql: str | None, presence: str) -> list[str]:
    """What it discloses that rows were chosen from a larger table, as sentences without their head."""
    if not where and sql is None:
        return []
    by = "the query in data.sql" if sql is not None else ""
    if where:
        told = " and ".join(f"{name} {kept_text(value)}" for name, value in where.items())
        by = f"{by} and {told}" if by else told
    if presence == "secret":
        return [f"that this table holds only records chosen by {by}; who they are is secret."]
    return [
        f"of every record of the source, whether it was chosen by {by}. Values that decide it are no secret there."
    ]
