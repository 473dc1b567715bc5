"""Entries of kind "microdata" of a manifest: whole rows that went out generalised and exchanged."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import OutputError, SpecificationError
from ..spreadsheets import unescaped
from .document import File
from .keys import items, mapping, take, text, texts, whole, whole_or_none
from .microdata_document import Generalised, GroupText, Limits, Microdata
from .parts import files_of, guarantee_of, loss_of
from .reading_microdata_evidence import evidence_of, number, table

VARIETIES = ("count", "entropy")
METHODS = ("optimal", "alternating")
HEADER = ["column", "group", "value"]


def microdata_of(spec: Mapping[str, Any], folder: Path, where: str) -> Microdata:
    """One release of microdata.

    Raises:
        OutputError: a published file cannot be read, or is not the one that was published.
        SpecificationError: names the key.
    """
    files, content = files_of(mapping(spec, "files", where), folder, where)
    guarantee, rows = guarantee_of(spec, where), whole(spec, "rows", where)
    if guarantee == "proved":
        raise SpecificationError(
            f"{where}.guarantee: nothing is proved of rows that are fitted on themselves."
        )
    attributes, private = texts(spec, "attributes", where), texts(spec, "private", where)
    values = _values(files, folder, where)
    groups = tuple(
        _column(c, rows, values, f"{where}.groups[{i}]") for i, c in enumerate(items(spec, "groups", where))
    )
    if not private or [g.column for g in groups] != list(private):
        raise SpecificationError(f"{where}.groups: one list for each private column, in their order.")
    exchanged = texts(spec, "exchanged", where)
    quasi = texts(spec, "quasi_identifiers", where)
    if not exchanged or not {*private, *exchanged, *quasi} <= set(attributes):
        raise SpecificationError(f"{where}.attributes: every private, exchanged and class column.")
    if len({*private, *exchanged, *quasi}) < len([*private, *exchanged, *quasi]):
        raise SpecificationError(f"{where}.exchanged: a column has one part only.")
    asked = mapping(mapping(spec, "query", where), "hybrid", f"{where}.query")
    evidence = take(spec, "evidence", where)
    return Microdata(
        name=text(spec, "name", where),
        guarantee=guarantee,
        loss=loss_of(spec, where),
        mechanism=text(spec, "mechanism_name", where),
        rows=rows,
        attributes=attributes,
        exchanged=exchanged,
        quasi_identifiers=quasi,
        groups=groups,
        limits=_limits(mapping(spec, "requirements", where), asked, where),
        is_typical=asked.get("publish") == "prototypes",
        disclosed=texts(spec, "disclosed_exactly", where),
        evidence=None
        if evidence is None
        else evidence_of(table(evidence, f"{where}.evidence"), groups, exchanged, rows, f"{where}.evidence"),
        ledger_row=whole(spec, "ledger_row", where),
        files=files,
        content=content,
    )


def _limits(spec: Mapping[str, Any], asked: Mapping[str, Any], where: str) -> Limits:
    """What was stated; the request names what is not by default."""
    at, query = f"{where}.requirements", f"{where}.query.hybrid"
    variety = text(spec, "variety", at)
    if variety not in VARIETIES:
        raise SpecificationError(f"{at}.variety: one of {', '.join(VARIETIES)}.")
    method = text({"method": "optimal", **asked}, "method", query)
    if method not in METHODS:
        raise SpecificationError(f"{query}.method: one of {', '.join(METHODS)}.")
    return Limits(
        k=whole(spec, "k", at),
        l=number(spec, "l", at),
        alpha=whole_or_none(spec, "alpha", at),
        beta=whole_or_none(spec, "beta", at),
        variety=variety,
        donors=whole(spec, "donors", at),
        class_size=whole_or_none(spec, "class_size", at),
        distortion=text(asked, "distortion", query),
        metric=text({"metric": "gower", **asked}, "metric", query),
        is_each=text({"budget": "shared", **asked}, "budget", query) == "group",
        method=method,
    )


def _values(files: tuple[File, ...], folder: Path, where: str) -> dict[tuple[str, str], list[str]]:
    """What each label of each column stands for, from the published file."""
    found = [f for f in files if f.form == "groups"]
    if not found:
        raise SpecificationError(f"{where}.files.groups: required.")
    [file] = found
    try:
        told = (folder / file.path).read_bytes().decode("utf-8")  # its digest was checked
        lines = list(csv.reader(io.StringIO(told, newline=""), strict=True))
    except OSError as error:
        raise OutputError(f"{file.path}: the published file cannot be read ({error.strerror}).") from None
    except (UnicodeDecodeError, csv.Error):
        raise SpecificationError(f"{file.path}: not CSV in UTF-8.") from None
    if not lines or lines[0] != HEADER or any(len(line) != len(HEADER) for line in lines):
        raise SpecificationError(f"{file.path}: lines of {', '.join(HEADER)}.")
    values: dict[tuple[str, str], list[str]] = {}
    for column, group, value in lines[1:]:
        values.setdefault((unescaped(column), unescaped(group)), []).append(unescaped(value))
    return values


def _column(spec: Any, rows: int, values: Mapping[tuple[str, str], list[str]], where: str) -> Generalised:
    table(spec, where)
    column, groups = text(spec, "column", where), []
    for i, group in enumerate(items(spec, "groups", where)):
        at = f"{where}.groups[{i}]"
        table(group, at)
        label = text(group, "label", at)
        if (column, label) not in values:
            raise SpecificationError(f"{at}.label: a group that the file of groups has.")
        groups.append(GroupText(label, whole(group, "rows", at), tuple(values[column, label])))
    if len({g.label for g in groups}) < len(groups) or len(groups) != sum(c == column for c, _ in values):
        raise SpecificationError(f"{where}.groups: every group of the file of groups, each once.")
    if sum(g.rows for g in groups) != rows:
        raise SpecificationError(f"{where}.groups: rows that add up to those of the release.")
    return Generalised(column, tuple(groups))
